/* Tests of resolution.h: steps of columns as people write them, and rounding that gives back exactly the number that
 * was written. */
#include "table/resolution.h"

#include "base/rng.h"
#include "harness/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform(int i, double lo, double hi) {
    return lo + (hi - lo) * acf_rng_uniform((acf_rng_counter){5, (uint64_t)i, ACF_STREAM_TEST, 0, 0});
}

static double step_of(double *x, int64_t n) {
    qsort(x, (size_t)n, sizeof *x, by_value);
    return acf_resolution_step(acf_resolution_find(x, n, false));
}

enum { N = 400 };

/* Values lo..hi rounded to a step; with through_float, converted to float and back. */
static double step_of_rounded(double lo, double hi, double step, bool through_float) {
    double x[N];
    char text[64];
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "%.12g", nearbyint(uniform(i, lo, hi) / step) * step);
        x[i] = through_float ? (double)strtof(text, NULL) : strtod(text, NULL);
    }
    return step_of(x, N);
}

static void finds_what_values_were_rounded_to(void **state) {
    (void)state;
    static const struct {
        double lo, hi, step;
    } cases[] = {{3, 15, 0.1},    {0, 1, 0.005}, {0.98, 1.04, 1e-5}, {1, 10, 1},    {-40, 40, 0.5},
                 {0, 2000, 25},   {0, 3, 0.25},  {-1e6, 1e6, 1000},  {1e9, 2e9, 1}, {-1e-7, 1e-7, 1e-9},
                 {0, 1e12, 1e10}, {0, 5000, 10}, {20, 21, 0.002}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        double found = step_of_rounded(cases[k].lo, cases[k].hi, cases[k].step, false);
        if (!(fabs(found - cases[k].step) <= 1e-12 * cases[k].step))
            fail_msg("step %g, found %g", cases[k].step, found);
    }
    assert_true(fabs(step_of_rounded(3, 15, 0.1, true) - 0.1) < 1e-12); /* numbers that were floats */
    assert_true(fabs(step_of_rounded(0, 900, 0.01, true) - 0.01) < 1e-12);
}

static void measurements_have_no_step(void **state) {
    (void)state;
    double x[N];
    for (int i = 0; i < N; i++) x[i] = uniform(i, -3, 50);
    assert_true(step_of(x, N) == 0);
    for (int i = 0; i < N; i++) x[i] = (double)(float)uniform(i, -3, 50);
    assert_true(step_of(x, N) == 0);
    for (int i = 0; i < N; i++) x[i] = uniform(i, -3, 50) * 1e-300;
    assert_true(step_of(x, N) == 0);
    for (int i = 0; i < N; i++) x[i] = uniform(i, -1.7e308, 1.7e308);
    assert_true(step_of(x, N) == 0);
    for (int i = 0; i < N; i++) x[i] = 0.1;
    assert_true(step_of(x, N) == 0 && step_of(x, 1) == 0 && step_of(x, 0) == 0); /* constant, a single cell, no cells */
}

/* A few thirds among tenths, as in wine's alcohol; and a spike, which is a multiple of everything. */
static void some_cells_may_be_off(void **state) {
    (void)state;
    double x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = i < 12 ? 10 + i / 3.0 + 1 / 30.0 : (double)(80 + i % 60) / 10.0, y[i] = x[i];
    assert_true(step_of(x, N) == 0.1);
    for (int i = 0; i < 100; i++) y[i] = uniform(i, 8, 14);
    assert_true(step_of(y, N) < 0.05); /* a quarter is too much */
    /* a frequent value counts for 1 % only */
    for (int i = 0; i < N; i++) x[i] = i < 60 ? 10 / 3.0 : 5.0 * (80 + i % 60);
    assert_true(step_of(x, N) == 5);
    for (int i = 0; i < N; i++) x[i] = i < 380 ? 0 : (double)(i * i); /* 95 % zeros, whole numbers else */
    assert_true(step_of(x, N) == 1);
    for (int i = 0; i < N; i++) x[i] = i < 390 ? 0 : i % 2 ? 0.5 : 0.83; /* yeast's pox */
    assert_true(fabs(step_of(x, N) - 0.01) < 1e-15);
}

/* Few values are multiples of five by chance: 5, 10 and 15 are whole numbers. From eight distinct values on, such steps
 * are accepted. */
static void few_values_get_common_steps(void **state) {
    (void)state;
    double x[9] = {5, 10, 10, 15, 15, 20, 25, 30, 35};
    assert_true(step_of(x, 5) == 1 && step_of(x, 9) == 1);
    double y[9] = {5, 10, 15, 20, 25, 30, 35, 40, 45};
    assert_true(step_of(y, 9) == 5);
    double z[2] = {0.5, 1.0};
    assert_true(step_of(z, 2) == 0.1);
}

/* Rain: zeros among long fractions. The step is below the distance of its values, so the zeros stay zeros. */
static void repeats_get_a_step(void **state) {
    (void)state;
    double x[N];
    for (int i = 0; i < N; i++) x[i] = i % 3 ? uniform(i, 0, 30) : 0;
    double step = step_of(x, N);
    assert_true(step > 0.001 && step < 0.2 && fmod(log10(step) + 10, 1) < 1e-9);
    for (int i = 0; i < N; i++) x[i] = i % 30 ? uniform(i, 0, 30) : 0; /* 3 % of repeats are too few */
    assert_true(step_of(x, N) == 0);
}

/* n times in seconds, each a multiple of step after `from`. */
static void make_times(double *x, int64_t n, double from, double step, int spread) {
    for (int64_t i = 0; i < n; i++) x[i] = from + step * floor(uniform((int)i, 0, spread));
    qsort(x, (size_t)n, sizeof *x, by_value);
}

/* Clock times are rounded to minutes, quarters and hours; the same values without a clock have the steps of other
 * numbers. */
static void clocks_have_steps_of_their_own(void **state) {
    (void)state;
    static const double steps[] = {86400, 43200, 21600, 10800, 7200, 3600, 1800, 900, 600,
                                   300,   120,   60,    30,    15,   10,   5,    1,   0.1};
    const double from = 18700 * 86400.0;
    double x[N];
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        make_times(x, N, from, steps[k], 1000);
        const double found = acf_resolution_step(acf_resolution_find(x, N, true)), exact = acf_resolution_clock(x, N);
        if (found != steps[k]) fail_msg("step %g, found %g", steps[k], found);
        if (exact != (steps[k] >= 15 ? steps[k] : 0)) fail_msg("step %g, of all cells %g", steps[k], exact);
    }
    make_times(x, N, from, 3600, 1000);
    assert_true(step_of(x, N) == 200); /* plain numbers */
    x[N - 1] += 120; /* a single exception does not change the model's step, but it changes the exact clock step */
    assert_true(acf_resolution_step(acf_resolution_find(x, N, true)) == 3600 && acf_resolution_clock(x, N) == 120);
    /* two minutes off in half of them: no hours, although the tolerance for floats would accept them */
    for (int i = 0; i < N; i++) x[i] = from + 3600.0 * i + 100 * (i % 2);
    assert_true(acf_resolution_clock(x, N) == 0 && acf_resolution_step(acf_resolution_find(x, N, true)) == 50);
    /* with few values, only hours and minutes are accepted */
    double few[3] = {8 * 3600, 12 * 3600, 16 * 3600}, near[3] = {8 * 3600, 8 * 3600, 8 * 3600 + 120};
    assert_true(acf_resolution_clock(few, 3) == 3600 && acf_resolution_step(acf_resolution_find(few, 3, true)) == 3600);
    assert_true(acf_resolution_clock(near, 3) == 60 && acf_resolution_step(acf_resolution_find(near, 3, true)) == 60);
    assert_true(acf_resolution_clock(few, 1) == 0 && acf_resolution_clock(few, 0) == 0);
}

/* Rounding gives the double that "0.3" parses to, not 3 * 0.1. */
static void rounds_to_the_written_number(void **state) {
    (void)state;
    for (int d = 0; d <= ACF_STEP_DECIMALS_MAX; d++)
        for (int64_t k = -2000; k <= 2000; k += 37) {
            char text[64];
            snprintf(text, sizeof text, "%llde-%d", (long long)k, d);
            double want = strtod(text, NULL), got = acf_resolution_round((acf_resolution){1, d}, want * (1 + 1e-9));
            assert_true(got == want && !signbit(got) == !(k < 0));
        }
    const acf_resolution r = {5, 3};
    assert_true(acf_resolution_round(r, 0.4524999) == 0.45 && acf_resolution_round(r, 0.4525001) == 0.455);
    assert_true(acf_resolution_round(r, 1e200) == 1e200 && isnan(acf_resolution_round(r, (double)NAN)));
    assert_true(acf_resolution_round((acf_resolution){0, 0}, 1.2345) == 1.2345);
}

ACF_TESTS(resolution, cmocka_unit_test(finds_what_values_were_rounded_to), cmocka_unit_test(measurements_have_no_step),
          cmocka_unit_test(some_cells_may_be_off), cmocka_unit_test(few_values_get_common_steps),
          cmocka_unit_test(repeats_get_a_step), cmocka_unit_test(clocks_have_steps_of_their_own),
          cmocka_unit_test(rounds_to_the_written_number))
