/* Tests of ticks.h: ticks are round, inside the range and few; their labels differ and give their value, for any range
 * of doubles. */
#include "plot/ticks.h"

#include "harness/check.h"
#include "harness/comma_locale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_labels(acf_range r, double unit, int most, const char *expected) {
    char all[512] = "";
    acf_ticks t = acf_ticks_make(r, unit, most);
    for (int i = 0; i < t.n; i++) {
        if (i) strcat(all, " ");
        strcat(all, t.label[i]);
    }
    assert_string_equal(all, expected);
}

static void labels_are_readable(void **state) {
    (void)state;
    assert_labels((acf_range){0, 1}, 0, 6, "0.0 0.2 0.4 0.6 0.8 1.0");
    assert_labels((acf_range){0, 10}, 0, 6, "0 2 4 6 8 10");
    assert_labels((acf_range){-7.3, 12}, 0, 5, "-5 0 5 10");
    assert_labels((acf_range){0, 9000}, 0, 5, "0 2000 4000 6000 8000");
    assert_labels((acf_range){0, 48000}, 0, 5, "0 10k 20k 30k 40k");
    assert_labels((acf_range){0, 2.2e6}, 0, 5, "0 0.5M 1.0M 1.5M 2.0M");
    assert_labels((acf_range){0, 22e6}, 0, 5, "0 5M 10M 15M 20M");
    assert_labels((acf_range){1e9, 1e9 + 4}, 0, 5, "1000000000 1000000001 1000000002 1000000003 1000000004");
    assert_labels((acf_range){0, 3e-7}, 0, 4, "0 1e-07 2e-07 3e-07");
    assert_labels((acf_range){0, 2.2e300}, 0, 4, "0 1e+300 2e+300");
    assert_labels((acf_range){0.101, 0.104}, 0, 4, "0.101 0.102 0.103 0.104");
}

static void numbers_are_short(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"},         {12, "12"},        {0.25, "0.25"},          {1234, "1230"}, {-3.14159, "-3.14"},
                 {0.933, "0.933"}, {100, "100"},      {2e-7, "2e-07"},         {1.5e7, "15M"}, {0.1, "0.1"},
                 {99.96, "100"},   {1e300, "1e+300"}, {5e-324, "4.94066e-324"}};
    for (size_t k = 0; k + 1 < sizeof cases / sizeof *cases; k++) {
        char out[ACF_TICK_LABEL_MAX];
        assert_string_equal(acf_tick_number(out, cases[k].v, 3), cases[k].text);
    }
    char out[ACF_TICK_LABEL_MAX];
    assert_non_null(acf_tick_number(out, 5e-324, 3)); /* no loop, no crash */
    assert_string_equal(acf_tick_number(out, NAN, 3), "NaN");
    assert_string_equal(acf_tick_number(out, 1.00149, 4), "1.001");
    assert_string_equal(acf_tick_number(out, -1234.56, 5), "-1234.6");
    assert_string_equal(acf_tick_count(out, 1234567), "1,234,567");
    assert_string_equal(acf_tick_count(out, 999), "999");
    assert_string_equal(acf_tick_count(out, 1000), "1,000");
    assert_string_equal(acf_tick_count(out, -123456), "-123,456");
    assert_string_equal(acf_tick_count(out, INT64_MAX), "9,223,372,036,854,775,807");
}

/* Whole numbers above 2^53 that differ in their last digits: the range covers them, and labels differ. */
static void large_numbers_may_differ_little(void **state) {
    (void)state;
    const acf_range r = acf_range_usable(9007199254740993.0, 9007199254800993.0);
    assert_true(r.lo == 9007199254740993.0 && r.hi == 9007199254800993.0);
    const acf_ticks t = acf_ticks_make(r, 0, 5);
    assert_true(t.n >= 2);
    for (int i = 1; i < t.n; i++) assert_string_not_equal(t.label[i], t.label[i - 1]);
}

static void times_fall_on_round_dates(void **state) {
    (void)state;
    const double day = 86400, y2019 = 17897;
    assert_labels((acf_range){y2019, y2019 + 5 * 365}, day, 6, "2019 2020 2021 2022 2023");
    assert_labels((acf_range){y2019, y2019 + 400}, day, 4, "2019-01 2019-07 2020-01");
    assert_labels((acf_range){y2019, y2019 + 5}, day, 6,
                  "2019-01-01 2019-01-02 2019-01-03 2019-01-04 2019-01-05 2019-01-06");
    assert_labels((acf_range){0, 3600 * 4}, 1, 5, "00:00 01:00 02:00 03:00 04:00"); /* times of day */
    assert_labels((acf_range){-4000, 90000}, 1, 5, "00:00 06:00 12:00 18:00 24:00");
    assert_labels((acf_range){day * y2019, day * y2019 + 3600 * 4}, 1, 5,
                  "01-01 00:00 01-01 01:00 01-01 02:00 01-01 03:00 01-01 04:00");
    assert_labels((acf_range){0, 40}, 1, 5, "00:00:00 00:00:10 00:00:20 00:00:30 00:00:40");
    assert_labels((acf_range){-800 * 365.2425 - 1, -1}, day, 5, "1200 1400 1600 1800");
    acf_ticks t = acf_ticks_make((acf_range){-1e300, 1e300}, day, 5); /* beyond any calendar */
    assert_true(t.n >= 2);
}

/* Every range from tiny to the largest, of either sign: ticks ascend, lie inside, are few, and no two labels are
 * equal. */
static void ticks_suit_any_range(void **state) {
    (void)state;
    for (int e = -290; e <= 307; e += 3)
        for (int shift = -3; shift <= 3; shift++)
            for (int most = 1; most <= 12; most++) {
                double width = pow(10, e) * 1.37, lo = shift * width * 7.77;
                acf_range r = acf_range_usable(lo, lo + width);
                assert_true(r.hi > r.lo && isfinite(r.hi - r.lo));
                acf_ticks t = acf_ticks_make(r, 0, most);
                assert_true(t.n <= most);
                if (most >= 4) assert_true(t.n >= 2);
                for (int i = 0; i < t.n; i++) {
                    const double capacity = 1e-6 * (r.hi - r.lo);
                    assert_true(t.at[i] >= r.lo - capacity && t.at[i] <= r.hi + capacity);
                    if (i == 0) continue;
                    assert_true(t.at[i] > t.at[i - 1]);
                    assert_string_not_equal(t.label[i], t.label[i - 1]);
                }
            }
}

/* The label gives the number: parsed with its suffix, it is the tick within a hundredth of a step. */
static void labels_give_their_value(void **state) {
    (void)state;
    for (int e = -12; e <= 14; e++)
        for (int k = 1; k < 40; k++) {
            const double width = pow(10, e) * k / 7.0, lo = -width / 3;
            acf_ticks t = acf_ticks_make((acf_range){lo, lo + width}, 0, 6);
            for (int i = 0; i < t.n; i++) {
                char *end;
                double v = strtod(t.label[i], &end);
                if (*end == 'k') v *= 1e3;
                if (*end == 'M') v *= 1e6;
                if (*end == 'G') v *= 1e9;
                assert_true(fabs(v - t.at[i]) <= 0.01 * (t.at[1] - t.at[0]));
            }
        }
}

static void ranges_are_usable(void **state) {
    (void)state;
    const double values[] = {NAN, 3, -2, INFINITY, 8, -INFINITY};
    acf_range r = acf_range_of(values, 6, 1);
    assert_true(r.lo == -2 && r.hi == 8);
    r = acf_range_of(values, 3, 2); /* NaN, -2, 8 */
    assert_true(r.lo == -2 && r.hi == 8);
    r = acf_range_of(NULL, 0, 1);
    assert_true(r.lo == 0 && r.hi == 1);
    r = acf_range_of(values, 1, 1); /* only NaN */
    assert_true(r.lo == 0 && r.hi == 1);
    r = acf_range_usable(5, 5);
    assert_true(r.lo < 5 && r.hi > 5);
    r = acf_range_usable(0, 0);
    assert_true(r.lo < 0 && r.hi > 0);
    r = acf_range_usable(-1.7e308, 1.7e308);
    assert_true(isfinite(r.hi - r.lo));
    r = acf_range_usable(1e15, 1e15 + 0.125); /* closer than labels can show */
    assert_true(r.hi - r.lo > 1e12);
    r = acf_range_padded((acf_range){0, 10}, 0.1);
    assert_true(fabs(r.lo + 1) < 1e-12 && fabs(r.hi - 11) < 1e-12);
}

static void extreme_values_do_not_widen_the_middle(void **state) {
    (void)state;
    double v[1001];
    for (int i = 0; i < 1000; i++) v[i] = i / 100.0;
    v[1000] = 1e9;
    acf_range r = acf_range_middle(v, 1001);
    assert_true(r.lo >= 0 && r.lo < 0.1 && r.hi > 9.8 && r.hi < 10.1);
    for (int i = 0; i < 1000; i++) v[i] = i < 980 ? i / 98.0 : 1e6; /* a heavy tail */
    r = acf_range_middle(v, 1000);
    assert_true(r.lo >= 0 && r.hi > 10 && r.hi < 20);
    r = acf_range_middle(v, 0);
    assert_true(r.lo == 0 && r.hi == 1);
    r = acf_range_middle(v, 1); /* 0 alone */
    assert_true(r.lo < 0 && r.hi > 0);
}

static void the_locale_does_not_matter(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-locale-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    bool set = use_comma_locale(folder);
    acf_ticks t = acf_ticks_make((acf_range){0, 1}, 0, 6);
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    if (!set) acf_skip("no locale with a decimal comma, and no localedef to make one");
    assert_string_equal(t.label[1], "0.2");
}

ACF_TESTS(ticks, cmocka_unit_test(labels_are_readable), cmocka_unit_test(numbers_are_short),
          cmocka_unit_test(times_fall_on_round_dates), cmocka_unit_test(large_numbers_may_differ_little),
          cmocka_unit_test(ticks_suit_any_range), cmocka_unit_test(labels_give_their_value),
          cmocka_unit_test(ranges_are_usable), cmocka_unit_test(extreme_values_do_not_widen_the_middle),
          cmocka_unit_test(the_locale_does_not_matter))
