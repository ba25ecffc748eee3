/* Tests of number.h: every way of reading agrees with strtod bit for bit, and written numbers read back. */
#define _GNU_SOURCE /* strtod_l */
#include "table/number.h"

#include "base/rng.h"
#include "harness/file_lab.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits(double v) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

/* The text lies in memory of exactly its length, so ASan reports a read beyond the end. */
static bool parse(const char *text, size_t n, acf_number *out) {
    char *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, text, n);
    bool ok = acf_number_parse(exact, n, out);
    free(exact);
    return ok;
}

static void assert_number(const char *text, double value, int decimals, bool whole) {
    acf_number v;
    if (!parse(text, strlen(text), &v)) fail_msg("'%.40s' was not read", text);
    if (bits(v.value) != bits(value)) fail_msg("'%.40s' is %.17g, expected %.17g", text, v.value, value);
    if (v.decimals != decimals) fail_msg("'%.40s' has %d decimals, expected %d", text, v.decimals, decimals);
    if (v.whole != whole) fail_msg("'%.40s' is %s", text, v.whole ? "whole" : "not whole");
}

static void forms_that_are_numbers(void **state) {
    (void)state;
    assert_number("0", 0.0, 0, true);
    assert_number("-0", -0.0, 0, true);
    assert_number("7", 7.0, 0, true);
    assert_number("+7", 7.0, 0, true);
    assert_number("007", 7.0, 0, true);
    assert_number("-12.50", -12.5, 2, false);
    assert_number("9.00", 9.0, 2, true);
    assert_number("5.", 5.0, 0, true);
    assert_number(".5", 0.5, 1, false);
    assert_number("-.25", -0.25, 2, false);
    assert_number("0.000", 0.0, 3, true);
    assert_number("1e3", 1000.0, 0, true);
    assert_number("1.5E3", 1500.0, 0, true);
    assert_number("1.5e+1", 15.0, 0, true);
    assert_number("1.25e1", 12.5, 1, false);
    assert_number("1.5e-3", 0.0015, 4, false);
    assert_number("1e-3", 0.001, 3, false);
    assert_number("1e0000000000000000000000000000001", 10.0, 0, true);
    assert_number("0e999999999999999999999", 0.0, 0, true);
    assert_number("0e-999999999999999999999", 0.0, ACF_DECIMALS_MAX, true);
    assert_number("1e-400", 0.0, ACF_DECIMALS_MAX, false);
    assert_number("1e-99999999999999999999999", 0.0, ACF_DECIMALS_MAX, false);
    assert_number("4.9e-324", 4.9e-324, ACF_DECIMALS_MAX, false);
    assert_number("1.7976931348623157e308", 1.7976931348623157e308, 0, true);
    assert_number("9007199254740993", 9007199254740992.0, 0, true); /* 2^53 + 1: a tie, to even */
    assert_number("9007199254740995", 9007199254740996.0, 0, true);
    assert_number("9007199254740993.0", 9007199254740992.0, 1, true);
    assert_number("9007199254740993.000000000000000001", 9007199254740994.0, 18, true);
    assert_number("18446744073709551616", 18446744073709551616.0, 0, true); /* 2^64: m wraps to 0 */
    assert_number("0.30000000000000004", 0.30000000000000004, 17, false);
}

static void forms_that_are_not(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "+",
                                        "-",
                                        ".",
                                        "-.",
                                        "e5",
                                        ".e5",
                                        "1e",
                                        "1e+",
                                        "1e-",
                                        "1e5.0",
                                        "1.2.3",
                                        "1,5",
                                        "1 ",
                                        " 1",
                                        "1 000",
                                        "1,000",
                                        "0x10",
                                        "1f",
                                        "inf",
                                        "-inf",
                                        "INFINITY",
                                        "nan",
                                        "NaN",
                                        "--1",
                                        "+-1",
                                        "1-",
                                        "1e5x",
                                        "1d5",
                                        "1_000",
                                        "12abc",
                                        "\xc2\xbd",
                                        "1e1e1",
                                        "1e999",
                                        "-1e999",
                                        "1.8e308",
                                        "1e99999999999999999999",
                                        "1..",
                                        "..1",
                                        "0x",
                                        "1e 5"};
    acf_number v = {1.0, 2, true};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (parse(wrong[i], strlen(wrong[i]), &v)) fail_msg("'%s' was read as %g", wrong[i], v.value);
    assert_false(parse("1\0", 2, &v)); /* a NUL is no end */
    assert_true(v.value == 1.0 && v.decimals == 2 && v.whole);
}

static void assert_as_strtod(const char *text) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double expected = strtod_l(text, NULL, c);
    freelocale(c);
    acf_number v;
    bool ok = parse(text, strlen(text), &v);
    if (ok != (bool)isfinite(expected)) fail_msg("'%s': read %d, strtod says %g", text, ok, expected);
    if (ok && bits(v.value) != bits(expected)) fail_msg("'%s' is %.17g, strtod says %.17g", text, v.value, expected);
}

static uint32_t draw(uint32_t round, uint32_t which, uint32_t below) {
    return (uint32_t)acf_rng_below((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = which}, below);
}

/* Random digits with a random point and exponent, sized so that each of the three ways of reading is taken often. */
static void random_numbers_are_rounded_correctly(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 200000; round++) {
        char text[64];
        int n = 0, digits = 1 + (int)draw(round, 0, 25), point = (int)draw(round, 1, (uint32_t)digits + 3);
        if (draw(round, 2, 4) == 0) text[n++] = '-';
        for (int i = 0; i < digits; i++) {
            if (i == point) text[n++] = '.';
            text[n++] = (char)('0' + (draw(round, 3, 3) ? draw(round, 8 + (uint32_t)i, 10)
                                                        : 9 * draw(round, 8 + (uint32_t)i, 2)));
        }
        text[n] = '\0';
        uint32_t size = draw(round, 4, 4) == 3 ? 700 : 50;
        if (draw(round, 5, 2)) sprintf(text + n, "e%d", (int)draw(round, 6, size) - (int)size / 2);
        assert_as_strtod(text);
    }
}

/* The decimal expansion of midpoints of two doubles, and their neighbours in the last digit. */
static void ties_go_to_even(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 20000; round++) {
        char text[1200];
        uint64_t m = ((uint64_t)1 << 52 | (uint64_t)draw(round, 0, 1u << 31) << 21 | draw(round, 1, 1u << 21));
        int shift = (int)draw(round, 2, 130) - 70;
        /* (2m+1) * 2^(shift-1) in full: long double holds the 54 bits, printf writes it exactly */
        snprintf(text, sizeof text, "%.80Lf", ldexpl((long double)(2 * m + 1), shift - 1));
        char *end = text + strlen(text);
        assert_as_strtod(text);
        end[-1] = '1';
        assert_as_strtod(text);
        if (end[-2] != '0') end[-2]--;
        assert_as_strtod(text);
    }
    char *digits = malloc(3000000); /* one digit far to the right decides */
    assert_non_null(digits);
    acf_number v;
    size_t n = (size_t)sprintf(digits, "9007199254740993.");
    memset(digits + n, '0', 2900000);
    assert_true(acf_number_parse(digits, n + 2900000, &v) && v.value == 9007199254740992.0 &&
                v.decimals == ACF_DECIMALS_MAX);
    digits[n + 2899999] = '1';
    assert_true(acf_number_parse(digits, n + 2900000, &v) && v.value == 9007199254740994.0);
    memset(digits, '0', 2900000); /* leading zeros do not count */
    strcpy(digits + 2900000, "12.5");
    assert_true(acf_number_parse(digits, 2900004, &v) && v.value == 12.5 && v.decimals == 1);
    strcpy(digits + 2900000, "123456789012345678901.5e-10");
    assert_true(acf_number_parse(digits, 2900027, &v) && v.value == 12345678901.23456789015);
    free(digits);
}

static void doubles_come_back(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 50000; round++) {
        uint32_t word[4];
        char text[ACF_NUMBER_MAX], digits[64];
        acf_number v;
        double x;
        acf_rng_bits((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = 77}, word);
        memcpy(&x, word, sizeof x);
        if (!isfinite(x)) continue;
        acf_number_shortest(text, x);
        assert_true(parse(text, strlen(text), &v) && bits(v.value) == bits(x));
        snprintf(digits, sizeof digits, "%.17g", x);
        assert_true(parse(digits, strlen(digits), &v) && bits(v.value) == bits(x));
    }
}

static void assert_fixed(double v, int decimals, const char *expected) {
    char text[ACF_NUMBER_FIXED_MAX];
    assert_string_equal(acf_number_fixed(text, v, decimals), expected);
}

static void a_number_of_decimals(void **state) {
    (void)state;
    assert_fixed(12.5, 2, "12.50");
    assert_fixed(12.5, 0, "12");    /* half to even, because the value is exact */
    assert_fixed(1.005, 2, "1.00"); /* the double lies below */
    assert_fixed(-3.14159, 3, "-3.142");
    assert_fixed(0.0, 0, "0");
    assert_fixed(-0.0, 0, "0");
    assert_fixed(-0.0, 3, "0.000");
    assert_fixed(-0.004, 2, "0.00");
    assert_fixed(-0.4, 0, "0");
    assert_fixed(-0.006, 2, "-0.01");
    assert_fixed(-10.0, 1, "-10.0");
    assert_fixed(1e21, 1, "1000000000000000000000.0");
    char text[ACF_NUMBER_FIXED_MAX];
    acf_number v;
    acf_number_fixed(text, -1.7976931348623157e308, ACF_DECIMALS_MAX); /* the longest result */
    assert_int_equal(strlen(text), 1 + 309 + 1 + ACF_DECIMALS_MAX);
    assert_true(parse(text, strlen(text), &v) && v.value == -1.7976931348623157e308 && v.decimals == ACF_DECIMALS_MAX &&
                v.whole);
    char short_text[ACF_NUMBER_MAX];
    assert_string_equal(acf_number_shortest(short_text, -0.0), "0");
    assert_string_equal(acf_number_shortest(short_text, 0.1), "0.1");
    assert_string_equal(acf_number_shortest(short_text, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(acf_number_shortest(short_text, 1.0 / 3.0), "0.3333333333333333");
}

static void the_locale_does_not_matter(void **state) {
    (void)state;
    bool set = acf_lab_comma_locale();
    char text[ACF_NUMBER_FIXED_MAX], shortest[ACF_NUMBER_MAX], as_is[32];
    acf_number v = {0.0, 0, false};
    snprintf(as_is, sizeof as_is, "%.1f", 1.5);
    acf_number_fixed(text, -1234.5, 2);
    acf_number_shortest(shortest, 0.25);
    bool ok = parse("12345678901234567890123.5", 25, &v) && !parse("1,5", 3, &v);
    setlocale(LC_NUMERIC, "C");
    if (!set) acf_skip("no locale with a decimal comma, and no localedef to make one");
    assert_string_equal(as_is, "1,5"); /* the locale was in force */
    assert_string_equal(text, "-1234.50");
    assert_string_equal(shortest, "0.25");
    assert_true(ok && v.value == 12345678901234567890123.5);
}

ACF_TESTS(number, cmocka_unit_test(forms_that_are_numbers), cmocka_unit_test(forms_that_are_not),
          cmocka_unit_test(random_numbers_are_rounded_correctly), cmocka_unit_test(ties_go_to_even),
          cmocka_unit_test(doubles_come_back), cmocka_unit_test(a_number_of_decimals),
          cmocka_unit_test(the_locale_does_not_matter))
