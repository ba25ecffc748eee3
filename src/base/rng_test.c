/* Tests of rng.h: the published vectors, the distributions, and the independence of neighbouring counters. Everything
 * is a function of fixed counters, so a test that passes once always does. Thresholds are those of a one-in-a-thousand
 * event or rarer. */
#include "base/rng.h"

#include "harness/check.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

enum { N = 100000 };
static const acf_rng_counter start = {.seed = 20240607, .row = 0, .stream = ACF_STREAM_TEST, .column = 0, .draw = 0};

static acf_rng_counter at_row(uint64_t row) {
    acf_rng_counter at = start;
    at.row = row;
    return at;
}

/* From the file kat_vectors of Random123, "philox4x32 10": counter, key, answer. */
static void published_vectors(void **state) {
    (void)state;
    static const struct {
        acf_rng_counter at;
        uint32_t answer[4];
    } vectors[] = {
        {{0, 0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT64_MAX, 0xffffffffffff, 0xffff, UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: the digits of pi */
        {{0x299f31d0a4093822, 0x85a3243f6a88, 0x08d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t out[4];
        acf_rng_bits(vectors[i].at, out);
        assert_memory_equal(out, vectors[i].answer, sizeof out);
    }
}

/* The layout that rng.h draws, against a direct call of the library. */
static void the_counter_is_laid_out_as_documented(void **state) {
    (void)state;
    acf_rng_counter at = {0x1122334455667788, 0xaabbccddeeff, 0x1234, 0x9abcdef0, 0x0fedcba9};
    philox4x32_ctr_t ctr = {{0xccddeeff, 0xaabb1234, 0x9abcdef0, 0x0fedcba9}};
    philox4x32_key_t key = {{0x55667788, 0x11223344}};
    philox4x32_ctr_t expected = philox4x32(ctr, key);
    uint32_t out[4];
    acf_rng_bits(at, out);
    for (int i = 0; i < 4; i++) assert_int_equal(out[i], expected.v[i]);
}

static void the_interval_is_open(void **state) {
    (void)state;
    assert_true(acf_rng_unit(0, 0) == 0x1p-53);
    assert_true(acf_rng_unit(UINT32_MAX, UINT32_MAX) == 1.0 - 0x1p-53);
    assert_true(acf_rng_unit(0, 0x80000000u) > 0.5 && acf_rng_unit(UINT32_MAX, 0x7fffffffu) < 0.5);
    /* Symmetry: flipping every bit mirrors the value at one half. */
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t w[4];
        acf_rng_bits(at_row(i), w);
        assert_true(acf_rng_unit(w[0], w[1]) + acf_rng_unit(~w[0], ~w[1]) == 1.0);
    }
    double farthest = sqrt(-2.0 * log(acf_rng_unit(0, 0)));
    assert_true(isfinite(farthest) && farthest < 8.7); /* the bound that rng.h promises for normals */
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double identity(double x) { return x; }
static double normal_cdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

/* sqrt(n) times the largest gap between the empirical and the true distribution (Kolmogorov-Smirnov). Sorts x. */
static double ks(double *x, int n, double (*cdf)(double)) {
    double gap = 0.0;
    qsort(x, (size_t)n, sizeof *x, by_value);
    for (int i = 0; i < n; i++) {
        gap = fmax(gap, fabs(cdf(x[i]) - (double)i / n));
        gap = fmax(gap, fabs(cdf(x[i]) - (double)(i + 1) / n));
    }
    return gap * sqrt(n);
}

static double sample[N];

/* Moments 1 to 4 of sample[] against the truth, each in units of its standard error. */
static void assert_moments(const double truth[4], const double variance[4]) {
    for (int m = 1; m <= 4; m++) {
        double sum = 0.0;
        for (int i = 0; i < N; i++) sum += pow(sample[i], m);
        double z = (sum / N - truth[m - 1]) / sqrt(variance[m - 1] / N);
        if (fabs(z) > 3.5) fail_msg("moment %d is off by %.1f standard errors", m, z);
    }
}

static void uniforms_are_uniform(void **state) {
    (void)state;
    int count[256] = {0};
    for (int i = 0; i < N; i++) {
        sample[i] = acf_rng_uniform(at_row((uint64_t)i));
        count[(int)(sample[i] * 256.0)]++;
    }
    double chi2 = 0.0, expected = N / 256.0;
    for (int k = 0; k < 256; k++) chi2 += (count[k] - expected) * (count[k] - expected) / expected;
    assert_true(fabs(chi2 - 255.0) < 3.5 * sqrt(2.0 * 255.0)); /* too even is as wrong as too uneven */
    assert_moments((const double[]){1 / 2., 1 / 3., 1 / 4., 1 / 5.},
                   (const double[]){1 / 3. - 1 / 4., 1 / 5. - 1 / 9., 1 / 7. - 1 / 16., 1 / 9. - 1 / 25.});
    assert_true(ks(sample, N, identity) < 1.95);
}

static void normals_are_normal(void **state) {
    (void)state;
    int beyond = 0;
    for (int i = 0; i < N; i++) {
        sample[i] = acf_rng_normal(at_row((uint64_t)i));
        beyond += fabs(sample[i]) > 3.0;
    }
    assert_moments((const double[]){0, 1, 0, 3}, (const double[]){1, 2, 15, 96});
    assert_in_range(beyond, 218, 322); /* 270 of 100000, plus or minus three standard errors and a bit */
    assert_true(ks(sample, N, normal_cdf) < 1.95);
}

/* The same counter gives the same bits; a counter that differs in one coordinate gives unrelated ones. */
static acf_rng_counter neighbour(acf_rng_counter at, int which) {
    switch (which) {
    case 0: at.row++; break;
    case 1: at.column++; break;
    case 2: at.draw++; break;
    case 3: at.stream--; break;
    case 4: at.seed++; break;
    default: at.row += (uint64_t)1 << 32; break; /* the high part of the row */
    }
    return at;
}

static void neighbours_are_independent(void **state) {
    (void)state;
    for (int which = 0; which < 6; which++) {
        double uu = 0.0, zz = 0.0, bits = 0.0;
        for (int i = 0; i < N / 4; i++) {
            acf_rng_counter a = {9, (uint64_t)i * 3, ACF_STREAM_TEST, (uint32_t)i % 11, (uint32_t)i % 7},
                            b = neighbour(a, which);
            uint32_t wa[4], wb[4];
            acf_rng_bits(a, wa);
            acf_rng_bits(b, wb);
            for (int k = 0; k < 4; k++) bits += __builtin_popcount(wa[k] ^ wb[k]);
            uu += (acf_rng_uniform(a) - 0.5) * (acf_rng_uniform(b) - 0.5) * 12.0;
            zz += acf_rng_normal(a) * acf_rng_normal(b);
        }
        double root = sqrt(N / 4);
        assert_true(fabs(uu / root) < 3.5 && fabs(zz / root) < 3.5);
        assert_true(fabs(bits - 64.0 * (N / 4)) / sqrt(32.0) / root < 3.5); /* half of the bits flip */
    }
}

static void places_do_not_collide(void **state) {
    (void)state;
    static uint64_t seen[8 * 8 * 8 * 8];
    size_t n = 0;
    for (uint32_t i = 0; i < 8 * 8 * 8 * 8; i++) {
        acf_rng_counter at = {1, i % 8, 1 + i / 8 % 8, i / 64 % 8, i / 512};
        uint32_t w[4];
        acf_rng_bits(at, w);
        seen[n++] = (uint64_t)w[1] << 32 | w[0];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (seen[i] == seen[k]) fail_msg("places %zu and %zu share their bits", k, i);
}

static void categories_come_as_weighted(void **state) {
    (void)state;
    static const double weight[] = {0.0, 3.0, 0.0, 1.0, 6.0, 0.0};
    int count[6] = {0};
    for (int i = 0; i < N; i++) count[acf_rng_categorical(at_row((uint64_t)i), weight, 6)]++;
    double chi2 = 0.0;
    for (int k = 0; k < 6; k++) {
        double expected = N * weight[k] / 10.0;
        if (weight[k] == 0.0) assert_int_equal(count[k], 0);
        if (weight[k] > 0.0) chi2 += (count[k] - expected) * (count[k] - expected) / expected;
    }
    assert_true(chi2 < 13.8); /* two degrees of freedom, one in a thousand */
}

static void odd_weights_have_an_answer(void **state) {
    (void)state;
    const double zero[] = {0.0, 0.0}, one[] = {0.0, 1e-300, 0.0}, inf[] = {1.0, INFINITY}, not [] = {NAN, 1.0},
                 huge[] = {DBL_MAX, DBL_MAX}, tiny[] = {5e-324, 5e-324, 0.0};
    int first = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(acf_rng_categorical(at_row(i), zero, 2), -1);
        assert_int_equal(acf_rng_categorical(at_row(i), inf, 2), -1);
        assert_int_equal(acf_rng_categorical(at_row(i), not, 2), -1);
        assert_int_equal(acf_rng_categorical(at_row(i), huge, 2), -1);
        assert_int_equal(acf_rng_categorical(at_row(i), one, 3), 1);
        assert_int_equal(acf_rng_categorical(at_row(i), one + 1, 1), 0);
        /* Rounding is coarse here: half of the draws exceed the last cumulative weight, and must not give the
         * impossible 2. */
        int64_t k = acf_rng_categorical(at_row(i), tiny, 3);
        assert_in_range(k, 0, 1);
        first += k == 0;
    }
    assert_in_range(first, 1, 999);
}

static void below_covers_its_range(void **state) {
    (void)state;
    int count[6] = {0};
    for (uint64_t i = 0; i < 60000; i++) {
        int64_t k = acf_rng_below(at_row(i), 6);
        assert_in_range(k, 0, 5);
        count[k]++;
        assert_int_equal(acf_rng_below(at_row(i), 1), 0);
    }
    double chi2 = 0.0;
    for (int k = 0; k < 6; k++) chi2 += (count[k] - 1e4) * (count[k] - 1e4) / 1e4;
    assert_true(chi2 < 20.5); /* five degrees of freedom, one in a thousand */
    assert_in_range(acf_rng_below(at_row(1), (int64_t)1 << 32), 0, UINT32_MAX);
}

/* Seeds depend on the hash: it must never change. */
static void names_hash_as_ever(void **state) {
    (void)state;
    /* FNV-1a of "" and "a" are published; the fold is h ^ h >> 48, cut to 48 bits. */
    const uint64_t empty = 0xcbf29ce484222325, a = 0xaf63dc4c8601ec8c;
    assert_int_equal(acf_rng_name(""), (empty ^ empty >> 48) & 0xffffffffffff);
    assert_int_equal(acf_rng_name("a"), (a ^ a >> 48) & 0xffffffffffff);
    assert_true(acf_rng_name("flow.0.w") != acf_rng_name("flow.1.w"));
    assert_true(acf_rng_name("flow.0.w") >> 48 == 0); /* fits a row */
}

ACF_TESTS(rng, cmocka_unit_test(published_vectors), cmocka_unit_test(the_counter_is_laid_out_as_documented),
          cmocka_unit_test(the_interval_is_open), cmocka_unit_test(uniforms_are_uniform),
          cmocka_unit_test(normals_are_normal), cmocka_unit_test(neighbours_are_independent),
          cmocka_unit_test(places_do_not_collide), cmocka_unit_test(categories_come_as_weighted),
          cmocka_unit_test(odd_weights_have_an_answer), cmocka_unit_test(below_covers_its_range),
          cmocka_unit_test(names_hash_as_ever))
