/* Tests of a column's bounds. */
#include "harness/check.h"
#include "table/bounds.h"

#include <math.h>
#include <stdlib.h>

enum { N = 400 };

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* N values f(u), u evenly spaced on (0,1), in order. */
static acf_bounds of(double (*f)(double), const acf_column *column) {
    double x[N];
    for (int i = 0; i < N; i++) x[i] = f((i + 0.5) / N);
    qsort(x, N, sizeof *x, by_value);
    return acf_bounds_find(x, N, column);
}

static double even(double u) { return u; }
static double percent(double u) { return 100 * u; }
static double logistic(double u) { return log(u / (1 - u)); }
static double far_from_0(double u) { return 180 + 10 * logistic(u); }
static double log_logistic(double u) { return exp(logistic(u)); }
static double rating(double u) { return floor(1 + 10 * u); }
static double rounded(double u) { return nearbyint(3 * logistic(u)); }
static double cut_off(double u) { return fmax(logistic(u), -2); }
static double often_0(double u) { return u < 0.5 ? 0 : exp(logistic(2 * u - 1)); }
static double always_7(double u) { return (void)u, 7; }
static double below_0(double u) { return -exp(logistic(u)); }

static void check(double (*f)(double), double low, double high, bool low_filled, bool high_filled) {
    const acf_column none = {0};
    const acf_bounds b = of(f, &none);
    assert_true(b.low == low && b.high == high);
    assert_true(b.low_filled == low_filled && b.high_filled == high_filled);
}

static void bounds_are_found_in_the_values(void **state) {
    (void)state;
    check(even, 0, 1, false, false);
    check(percent, 0, 100, false, false);
    check(logistic, -INFINITY, INFINITY, false, false);
    check(far_from_0, -INFINITY, INFINITY, false, false);
    check(log_logistic, 0, INFINITY, false, false);
    check(rating, 1, 10, true, true);
    check(rounded, -INFINITY, INFINITY, false, false);
    check(cut_off, -2, INFINITY, true, false);
    check(often_0, 0, INFINITY, true, false);
    check(always_7, 7, 7, true, true);
    check(below_0, -INFINITY, INFINITY, false, false);
}

/* Only the declared range counts; observed values beyond it widen it. */
static void declared_bounds_are_taken(void **state) {
    (void)state;
    const acf_column wide = {.bounded = true, .low = -50, .high = 50}, narrow = {.bounded = true, .low = 3, .high = 8};
    acf_bounds b = of(even, &wide);
    assert_true(b.low == -50 && b.high == 50 && !b.low_filled && !b.high_filled);
    b = of(rating, &narrow);
    assert_true(b.low == 1 && b.high == 10 && b.low_filled && b.high_filled);
    const double one = 4;
    b = acf_bounds_declared(&one, 1, &narrow);
    assert_true(b.low == 3 && b.high == 8);
    b = acf_bounds_declared(&one, 1, &(acf_column){0});
    assert_true(b.low == -INFINITY && b.high == INFINITY);
}

ACF_TESTS(bounds, cmocka_unit_test(bounds_are_found_in_the_values), cmocka_unit_test(declared_bounds_are_taken))
