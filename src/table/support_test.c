/* Tests of support.h: which columns have a support, and which value is nearest. */
#include "table/support.h"

#include "harness/check.h"

#include <math.h>
#include <stdlib.h>

enum { N = 1000 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The support of N cells, with their own resolution. */
static acf_support found(double *x) {
    acf_support p;
    qsort(x, N, sizeof *x, by_value);
    assert_int_equal(acf_support_find(x, N, acf_resolution_find(x, N, false), &p), ACF_OK);
    return p;
}

/* A column that is 0 nearly always, else 0.5 or 0.83. */
static void repeated_values_are_the_support(void **state) {
    (void)state;
    double x[N] = {0};
    for (int i = 0; i < 10; i++) x[7 * i] = i % 5 ? 0.83 : 0.5;
    acf_support p = found(x);
    assert_int_equal(p.n, 3);
    assert_true(p.value[0] == 0 && p.value[1] == 0.5 && p.value[2] == 0.83 && acf_support_valid(&p));
    acf_support_free(&p);
    assert_true(p.n == 0 && !p.value);
}

/* Ten of a thousand cells have a value that occurs once: accepted. Eleven: too many. */
static void new_values_are_expected_where_many_are_seen_once(void **state) {
    (void)state;
    for (int alone = 10; alone <= 11; alone++) {
        double x[N];
        for (int i = 0; i < N; i++) x[i] = i < alone ? 1000 + 7 * i : i % 4 * 3;
        acf_support p = found(x);
        assert_int_equal(p.n, alone == 10 ? 14 : 0);
        acf_support_free(&p);
    }
}

static void too_many_values_are_none(void **state) {
    (void)state;
    for (int values = ACF_SUPPORT_MAX; values <= ACF_SUPPORT_MAX + 1; values++) {
        double x[N];
        for (int i = 0; i < N; i++) x[i] = pow(1.01, i % values);
        acf_support p = found(x);
        assert_int_equal(p.n, values == ACF_SUPPORT_MAX ? values : 0);
        acf_support_free(&p);
    }
}

/* Rounding suffices if every step of the range occurs. A step that never occurs, or a value between the steps, needs
 * the list. */
static void gapless_columns_have_no_support(void **state) {
    (void)state;
    double x[N];
    for (int i = 0; i < N; i++) x[i] = 1 + i % 10;
    assert_int_equal(found(x).n, 0);
    for (int i = 0; i < N; i++) x[i] = x[i] == 9 ? 8 : x[i];
    acf_support p = found(x);
    assert_int_equal(p.n, 9);
    acf_support_free(&p);
    for (int i = 0; i < N; i++) x[i] = i < 3 ? 2.5 : 1 + i % 10;
    p = found(x);
    assert_int_equal(p.n, 11);
    acf_support_free(&p);
}

static void numbers_become_the_nearest_value(void **state) {
    (void)state;
    double value[] = {-2, 0, 0.5, 10};
    const acf_support p = {4, value}, none = {0, NULL};
    static const double cases[][2] = {{-1e300, -2}, {-2, -2},   {-1.1, -2}, {-1, -2}, {-0.9, 0},      {0.24, 0},
                                      {0.26, 0.5},  {5.2, 0.5}, {5.3, 10},  {10, 10}, {INFINITY, 10}, {-INFINITY, -2}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        if (acf_support_nearest(&p, cases[k][0]) != cases[k][1]) fail_msg("nearest to %g", cases[k][0]);
    assert_true(isnan(acf_support_nearest(&p, NAN)) && acf_support_nearest(&none, 0.3) == 0.3);
}

static void hostile_lists_are_not_valid(void **state) {
    (void)state;
    double twice[] = {1, 1}, falls[] = {2, 1}, nan[] = {0, NAN}, infinite[] = {0, INFINITY}, fine[] = {1, 2};
    double *bad[] = {twice, falls, nan, infinite};
    for (size_t k = 0; k < 4; k++) assert_false(acf_support_valid(&(acf_support){2, bad[k]}));
    assert_true(acf_support_valid(&(acf_support){2, fine}));
}

ACF_TESTS(support, cmocka_unit_test(repeated_values_are_the_support),
          cmocka_unit_test(new_values_are_expected_where_many_are_seen_once),
          cmocka_unit_test(too_many_values_are_none), cmocka_unit_test(gapless_columns_have_no_support),
          cmocka_unit_test(numbers_become_the_nearest_value), cmocka_unit_test(hostile_lists_are_not_valid))
