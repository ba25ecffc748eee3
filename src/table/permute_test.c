/* Tests of permute.h: it is a permutation, and all orders and positions are equally likely. Every count below is a
 * function of fixed seeds; thresholds are those of a one-in-a-thousand event or rarer. */
#include "table/permute.h"

#include "harness/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static acf_permutation order(int64_t n, uint32_t epoch) {
    return acf_permutation_make(n, 20240607, ACF_STREAM_SHUFFLE, epoch);
}

static void everything_comes_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 4095, 4097, 100003};
    bool *seen = calloc(100003, 1);
    assert_non_null(seen);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        acf_permutation p = order(n, (uint32_t)s), same = acf_permutation_identity(n);
        memset(seen, 0, (size_t)n);
        for (int64_t i = 0; i < n; i++) {
            int64_t v = acf_permutation_at(&p, i);
            assert_true(v >= 0 && v < n && !seen[v]);
            seen[v] = true;
            assert_int_equal(acf_permutation_at(&same, i), i);
        }
    }
    free(seen);
}

/* All n! orders are equally frequent. */
static void small_orders_are_uniform(void **state) {
    (void)state;
    static const struct {
        int n, orders;
        double limit; /* of chi-square with orders - 1 degrees of freedom, one in a thousand */
    } cases[] = {{2, 2, 10.8}, {3, 6, 20.5}, {4, 24, 49.7}, {5, 120, 172.0}, {6, 720, 843.0}};
    for (size_t c = 0; c < 5; c++) {
        int n = cases[c].n, count[720] = {0}, draws = cases[c].orders * 500;
        for (int d = 0; d < draws; d++) {
            acf_permutation p = order(n, (uint32_t)d);
            int code = 0, used = 0; /* Lehmer code: how many smaller ones are still to come */
            for (int i = 0; i < n; i++) {
                int v = (int)acf_permutation_at(&p, i);
                code = code * (n - i) + v - __builtin_popcount((unsigned)used & ((1u << v) - 1u));
                used |= 1 << v;
            }
            count[code]++;
        }
        double chi2 = 0.0;
        for (int k = 0; k < cases[c].orders; k++) chi2 += (count[k] - 500.0) * (count[k] - 500.0) / 500.0;
        if (chi2 > cases[c].limit) fail_msg("orders of %d: chi-square %.1f", n, chi2);
    }
}

/* Where thing 7 lands, and how far apart neighbours land, over epochs; n is no power of two. */
static void positions_are_uniform_over_epochs(void **state) {
    (void)state;
    enum { N = 1000, BINS = 20, EPOCHS = 20000 };
    int place[BINS] = {0}, gap[BINS] = {0};
    for (uint32_t e = 0; e < EPOCHS; e++) {
        acf_permutation p = order(N, e);
        int64_t a = acf_permutation_at(&p, 7), b = acf_permutation_at(&p, 8);
        place[a * BINS / N]++;
        gap[((b - a + N) % N - 1) * BINS / (N - 1)]++;
    }
    double chi_place = 0.0, chi_gap = 0.0, expected = EPOCHS / (double)BINS;
    for (int k = 0; k < BINS; k++) {
        chi_place += (place[k] - expected) * (place[k] - expected) / expected;
        chi_gap += (gap[k] - expected) * (gap[k] - expected) / expected;
    }
    assert_true(chi_place < 43.8 && chi_gap < 43.8); /* 19 degrees of freedom */
}

/* Within one order: position and thing are uncorrelated, and so are neighbours. */
static void one_order_is_without_trend(void **state) {
    (void)state;
    enum { N = 100003 };
    acf_permutation p = order(N, 0), q = order(N, 1);
    double trend = 0.0, lag = 0.0, epochs = 0.0, before = 0.0;
    for (int64_t i = 0; i < N; i++) {
        double v = ((double)acf_permutation_at(&p, i) + 0.5) / N - 0.5;
        double w = ((double)acf_permutation_at(&q, i) + 0.5) / N - 0.5;
        trend += v * (((double)i + 0.5) / N - 0.5) * 12.0;
        lag += v * before * 12.0;
        epochs += v * w * 12.0;
        before = v;
    }
    double root = sqrt(N);
    assert_true(fabs(trend) / root < 3.5 && fabs(lag) / root < 3.5 && fabs(epochs) / root < 3.5);
}

static void the_key_decides(void **state) {
    (void)state;
    acf_permutation a = order(1 << 20, 3), b = order(1 << 20, 3);
    acf_permutation other[3] = {order(1 << 20, 4), acf_permutation_make(1 << 20, 1, ACF_STREAM_SHUFFLE, 3),
                                acf_permutation_make(1 << 20, 20240607, ACF_STREAM_SPLIT, 3)};
    int same[3] = {0};
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(acf_permutation_at(&a, i), acf_permutation_at(&b, i));
        for (int k = 0; k < 3; k++) same[k] += acf_permutation_at(&a, i) == acf_permutation_at(&other[k], i);
    }
    for (int k = 0; k < 3; k++) assert_in_range(same[k], 0, 2);
    int64_t huge = (int64_t)1 << 47;
    acf_permutation c = order(huge, 0);
    for (int64_t i = 0; i < 1000; i++) assert_in_range(acf_permutation_at(&c, huge - 1 - i), 0, huge - 1);
}

ACF_TESTS(permute, cmocka_unit_test(everything_comes_once), cmocka_unit_test(small_orders_are_uniform),
          cmocka_unit_test(positions_are_uniform_over_epochs), cmocka_unit_test(one_order_is_without_trend),
          cmocka_unit_test(the_key_decides))
