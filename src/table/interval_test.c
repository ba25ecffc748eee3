/* Tests of interval.h: central intervals for draws that differ, shorter ones for whole numbers and spikes, and their
 * coverage of new draws, by counting. */
#include "table/interval.h"

#include "base/rng.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 120 };

static double uniform(int64_t i, uint32_t draw) {
    return acf_rng_uniform((acf_rng_counter){5, (uint64_t)i, ACF_STREAM_TEST, 0, draw});
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void same(acf_interval in, double low, double high) {
    if (!(fabs(in.low - low) < 1e-12 && fabs(in.high - high) < 1e-12))
        fail_msg("%g to %g, expected %g to %g", in.low, in.high, low, high);
}

/* Values with these numbers of draws, ascending. */
static int64_t draws_of(const int *count, int values, double *x) {
    int64_t m = 0;
    for (int v = 0; v < values; v++)
        for (int k = 0; k < count[v]; k++) x[m++] = v + 1;
    return m;
}

static void distinct_draws_have_the_central_interval(void **state) {
    (void)state;
    double x[MOST];
    for (int m = 1; m <= MOST; m++) {
        for (int k = 0; k < m; k++) x[k] = uniform(k, (uint32_t)m);
        qsort(x, (size_t)m, sizeof *x, ascending);
        for (int p = 5; p < 100; p += 5) {
            const acf_interval a = acf_interval_central(x, m, p / 100.0), b = acf_interval_of(x, m, p / 100.0, NULL);
            same(b, a.low, a.high);
            assert_true(a.low <= a.high);
        }
    }
    for (int k = 0; k < 20; k++) x[k] = 10 * k;
    same(acf_interval_of(x, 20, 0.9, NULL), 0.5, 189.5);
    same(acf_interval_of(x, 20, 0.5, NULL), 42.5, 147.5);
    same(acf_interval_of(x, 9, 0.9, NULL), 0, 80); /* too few draws: all of them */
    same(acf_interval_of(x, 1, 0.9, NULL), 0, 0);
}

static void tied_end_values_are_left_out(void **state) {
    (void)state;
    double x[MOST];
    int64_t m = draws_of((int[]){60, 20, 9, 4, 3, 1, 1, 1, 1}, 9, x); /* 100 draws, of which 10.1 should be outside */
    same(acf_interval_central(x, m, 0.9), 1, 5);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 3); /* 11 outside; with 4 it would be 7 */
    m = draws_of((int[]){60, 20, 9, 2, 3, 2, 2, 1, 1}, 9, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 4); /* 9.5 is nearer than 11 and a ninth */
    m = draws_of((int[]){60, 20, 8, 4, 3, 2, 1, 1, 1}, 9, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 4); /* 12 would do, but part of 3 itself is lost, too */
    m = draws_of((int[]){60, 20, 7, 7, 2, 1, 1, 1, 1}, 9, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 4); /* 13 is nearer than 6, but too many */
    m = draws_of((int[]){1, 1, 1, 1, 3, 4, 9, 20, 60}, 9, x);
    same(acf_interval_of(x, m, 0.9, NULL), 7, 9);
    m = draws_of((int[]){3, 92, 5}, 3, x);
    same(acf_interval_of(x, m, 0.9, NULL), 2, 2); /* a nearly certain value */
    m = draws_of((int[]){6, 50, 40, 4}, 4, x);
    same(acf_interval_central(x, m, 0.9), 1, 3);
    same(acf_interval_of(x, m, 0.9, NULL), 2, 3);
    m = draws_of((int[]){8, 50, 37, 5}, 4, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 3); /* 13 would be outside */
    m = draws_of((int[]){5, 50, 37, 8}, 4, x);
    same(acf_interval_of(x, m, 0.9, NULL), 2, 4);
    m = draws_of((int[]){7, 86, 7}, 3, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 2); /* equal ends: either */
    m = draws_of((int[]){8, 85, 7}, 3, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 2); /* the end with fewer draws */
    m = draws_of((int[]){7, 85, 8}, 3, x);
    same(acf_interval_of(x, m, 0.9, NULL), 2, 3);
    m = draws_of((int[]){7, 86, 7}, 3, x);
    for (int64_t k = 93; k < m; k++) x[k] = 2.5;
    same(acf_interval_of(x, m, 0.9, NULL), 2, 2.5); /* of equals the shorter interval */
    m = draws_of((int[]){50, 50}, 2, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 2);
    m = draws_of((int[]){87, 13}, 2, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 2); /* all that matters is inside */
    m = draws_of((int[]){4, 4}, 2, x);
    same(acf_interval_of(x, m, 0.01, NULL), 1.455, 1.545); /* the ends do not cross */
    m = draws_of((int[]){19, 1}, 2, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 1);
    m = draws_of((int[]){17, 1, 1}, 3,
                 x); /* 2 should be outside, and a draw that occurs once is not certainly inside */
    same(acf_interval_of(x, m, 0.9, NULL), 1, 2);
    m = draws_of((int[]){16, 1, 1, 1}, 4, x);
    same(acf_interval_of(x, m, 0.9, NULL), 1, 3);
}

/* The coverage of one more draw by intervals of m draws, and their length; value(u) maps uniform numbers. */
typedef struct held {
    double of, central, length, central_length;
} held;

static held hold(double (*value)(double), int m) {
    enum { N = 20000 };
    held h = {0};
    double x[MOST];
    for (int i = 0; i < N; i++) {
        const double truth = value(uniform(i, MOST));
        for (int k = 0; k < m; k++) x[k] = value(uniform(i, (uint32_t)k));
        qsort(x, (size_t)m, sizeof *x, ascending);
        const acf_interval in = acf_interval_of(x, m, 0.9, NULL), all = acf_interval_central(x, m, 0.9);
        assert_true(in.low >= all.low && in.high <= all.high && in.low <= in.high);
        h.of += truth >= in.low && truth <= in.high, h.central += truth >= all.low && truth <= all.high;
        h.length += in.high - in.low, h.central_length += all.high - all.low;
    }
    return (held){h.of / N, h.central / N, h.length / N, h.central_length / N};
}

static double itself(double u) { return u; }
static double spike(double u) { return u < 0.6 ? 0 : u; }                  /* a price that is mostly 0 */
static double grades(double u) { return floor(1 + 9.99 * u * u * u * u); } /* half are 1, few are 9 */
static double rank(double u) { return floor(5 * u); }                      /* five equally likely values */

static void coverage_of_new_draws(void **state) {
    (void)state;
    for (int m = 20; m <= 100; m += 80) {
        held h = hold(itself, m);
        acf_assert_close(h.of, 0.9, 0.006, "all differ");
        h = hold(spike, m);
        acf_assert_close(h.of, 0.9, 0.012, "a spike and a tail");
        assert_true(h.central > 0.94 && h.length < 0.96 * h.central_length);
        h = hold(grades, m);
        assert_true(h.of > 0.89 && h.of < 0.93 && h.central > 0.935 && h.length < 0.85 * h.central_length);
        h = hold(rank, m); /* there are only 0.8 and 1 */
        assert_true(h.of > 0.9 && h.of <= h.central && h.central > 0.96);
    }
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

static void values_are_appended_in_order(void **state) {
    (void)state;
    double value[8], weight[8];
    acf_weighted d = {0, value, weight};
    acf_weighted_add(&d, (double[]){1, 3, 3}, 3, 0.1);
    acf_weighted_add(&d, (double[]){0, 2, 3, 9}, 4, 0.05);
    acf_weighted_add(&d, NULL, 0, 1);
    static const double values[] = {0, 1, 2, 3, 3, 3, 9}, sum[] = {0.05, 0.15, 0.2, 0.45, 0.5};
    double all = 0;
    assert_int_equal(d.n, 7);
    for (int k = 0; k < 7; k++) {
        all += weight[k];
        assert_true(value[k] == values[k]);
        if (k < 3 || k > 4) acf_assert_close(all, sum[k < 3 ? k : k - 2], 1e-12, "weights");
    }
}

/* Appends n values of this weight from `from` on. */
static void append(acf_weighted *d, double from, int n, double each) {
    for (int k = 0; k < n; k++) d->value[d->n] = from + k, d->weight[d->n++] = each;
}

static void ends_of_a_distribution(void **state) {
    (void)state;
    double value[300], weight[300];
    acf_weighted d = {0, value, weight};
    acf_shared s = {.n = 1};
    append(&d, 0, 100, 0.01); /* the k-th represents the values around (k + ½)/100 */
    same(acf_interval_of_weighted(&d, 0.9, NULL), 4.5, 94.5);
    same(acf_interval_of_weighted(&d, 0.5, NULL), 24.5, 74.5);
    same(acf_interval_of_weighted(&d, 0.999, NULL), 0, 99);
    for (int k = 0; k < 100; k++) weight[k] *= 7;
    same(acf_interval_of_weighted(&d, 0.9, NULL), 4.5, 94.5); /* for any sum of the weights */
    d.n = 1;
    same(acf_interval_of_weighted(&d, 0.9, NULL), 0, 0);

    d.n = 0, append(&d, 0, 1, 0.3), append(&d, 1, 100, 0.007);
    /* A heavy value is a step, not the end of a slope; half of it is lost. */
    same(acf_interval_of_weighted(&d, 0.9, NULL), 0, 100 - (0.05 - 0.0035) / 0.007);
    same(acf_interval_of_weighted(&d, 0.6, NULL), 0, 65);
    s.value[0] = 0;
    same(acf_interval_of_weighted(&d, 0.9, &s), 0, 86); /* it is fully inside: above, 14 values and half of the next */
    d.n = 0, append(&d, 0, 100, 0.007), append(&d, 100, 1, 0.3), s.value[0] = 100;
    same(acf_interval_of_weighted(&d, 0.9, &s), 14, 100);
    d.n = 0, append(&d, 0, 100, 0.0069), append(&d, 100, 1, 0.31), s.value[0] = 7;
    same(acf_interval_of_weighted(&d, 0.9, &s), (0.05 - 0.00345) / 0.0069, 100); /* not shared: half of it is lost */
}

/* The coverage of a distribution given by 199 evenly spaced quantiles. */
static void coverage_of_a_distribution(void **state) {
    (void)state;
    enum { N = 199, FINE = 100000 };
    static const struct {
        double (*value)(double);
        double least, most, length;
    } cases[] = {{itself, 0.898, 0.902, 0.902}, {spike, 0.895, 0.91, 0.905}, {grades, 0.88, 0.92, 6}, {rank, 1, 1, 4}};
    for (int c = 0; c < 4; c++) {
        double value[N], weight[N], x[N], inside = 0;
        acf_weighted d = {0, value, weight};
        for (int k = 0; k < N; k++) x[k] = cases[c].value((k + 0.5) / N);
        acf_weighted_add(&d, x, N, 1.0 / N);
        const acf_interval in = acf_interval_of_weighted(&d, 0.9, NULL);
        for (int k = 0; k < FINE; k++) {
            const double v = cases[c].value((k + 0.5) / FINE);
            inside += v >= in.low && v <= in.high;
        }
        if (!(inside / FINE >= cases[c].least && inside / FINE <= cases[c].most && in.high - in.low <= cases[c].length))
            fail_msg("case %d: %g to %g hold %g", c, in.low, in.high, inside / FINE);
    }
}

/* ---- shared values ----------------------------------------------------------------------------------------------- */

/* Draws that repeat a donor's cell are not a reason to leave values out; values that the column's cells share are. */
static void shared_values(void **state) {
    (void)state;
    double x[MOST];
    acf_shared s = {.n = 1};
    int64_t m = draws_of((int[]){60, 20, 6, 6, 3, 2, 1, 1, 1}, 9, x);
    s.value[0] = 7;
    same(acf_interval_of(x, m, 0.9, &s), 1, 5.95); /* 1 is a quantile like any other */
    s.value[0] = 1;
    same(acf_interval_of(x, m, 0.9, &s), 1,
         5); /* 5 are outside, and 3 have this very value; with 4 at the end it would be 14 */
    s.n = 2, s.value[1] = 4;
    same(acf_interval_of(x, m, 0.9, &s), 1, 4); /* 8, and none of 4 itself */
    m = draws_of((int[]){87, 4, 9}, 3, x);
    s.value[1] = 2;
    same(acf_interval_of(x, m, 0.9, &s), 1, 2);
    s.n = 1;
    same(acf_interval_of(x, m, 0.9, &s), 1, 3); /* 9, and the four of 2 itself */
    s.n = 0;
    for (int i = 0; i < 200; i++) { /* five donors */
        for (int k = 0; k < 20; k++) x[k] = floor(5 * uniform(k, (uint32_t)i));
        qsort(x, 20, sizeof *x, ascending);
        const acf_interval a = acf_interval_central(x, 20, 0.9);
        same(acf_interval_of(x, 20, 0.9, &s), a.low, a.high);
    }

    for (int k = 0; k < 100; k++) x[k] = 1000 + k;
    x[7] = x[50] = x[3] = -1, x[20] = x[21] = 5;
    acf_shared_of(&s, x, 100);
    assert_true(s.n == 1 && s.value[0] == -1); /* two cells are not enough */
    for (int k = 0; k < 100; k++) x[k] = k % 50;
    acf_shared_of(&s, x, 100);
    assert_int_equal(s.n, 0);
    for (int k = 0; k < 120; k++) x[k] = 39 - k % 40;
    acf_shared_of(&s, x, 120);
    assert_int_equal(s.n, 40); /* three of 120 */
    for (int k = 0; k < 40; k++) assert_true(s.value[k] == k);
    s.n = 0;
    acf_shared_count(&s, 1, 3, 150), acf_shared_count(&s, 2, 3, 151), acf_shared_count(&s, 3, 4, 200),
        acf_shared_count(&s, 4, 4, 201);
    assert_true(s.n == 2 && s.value[0] == 1 && s.value[1] == 3);
}

static void minimum_number_of_draws(void **state) {
    (void)state;
    assert_int_equal(acf_interval_draws(0.9), 19);
    assert_int_equal(acf_interval_draws(0.5), 3);
    assert_int_equal(acf_interval_draws(0.99), 199);
}

ACF_TESTS(interval, cmocka_unit_test(distinct_draws_have_the_central_interval),
          cmocka_unit_test(tied_end_values_are_left_out), cmocka_unit_test(coverage_of_new_draws),
          cmocka_unit_test(values_are_appended_in_order), cmocka_unit_test(ends_of_a_distribution),
          cmocka_unit_test(coverage_of_a_distribution), cmocka_unit_test(shared_values),
          cmocka_unit_test(minimum_number_of_draws))
