/* Tests of text.h: buffers that are too small, strict numbers, similar names. */
#include "base/text.h"

#include "harness/comma_locale.h"
#include "harness/file_lab.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void writer_counts_what_does_not_fit(void **state) {
    (void)state;
    char out[8];
    size_t needed = 0;
    acf_text t = acf_text_into(out, sizeof out);
    acf_text_add(&t, "abc");
    acf_text_addf(&t, "%d", 4567);
    assert_int_equal(acf_text_done(&t, &needed), ACF_OK); /* 7 bytes and the NUL: a perfect fit */
    assert_int_equal(needed, 8);
    assert_string_equal(out, "abc4567");
    acf_text_add(&t, "x");
    acf_text_addf(&t, "%s", "yz");
    acf_text_add_bytes(&t, "12345", 2);
    assert_int_equal(acf_text_done(&t, &needed), ACF_ESPACE);
    assert_int_equal(needed, 13);
    assert_string_equal(out, "abc4567");
}

static void writer_at_every_capacity(void **state) {
    (void)state;
    char whole[64];
    for (size_t cap = 0; cap < 24; cap++) {
        memset(whole, '#', sizeof whole);
        acf_text t = acf_text_into(cap ? whole : NULL, cap);
        acf_text_add(&t, "one ");
        acf_text_addf(&t, "%s-%d", "two", 3);
        acf_text_wrap(&t, "four five", 0, 80, 0);
        size_t needed;
        assert_int_equal(acf_text_done(&t, &needed), cap > 18 ? ACF_OK : ACF_ESPACE);
        assert_int_equal(needed, 19);
        if (cap > 0) assert_memory_equal(whole, "one two-3four five", strlen(whole));
        if (cap > 0) assert_int_equal(strlen(whole), cap > 18 ? 18 : cap - 1);
        assert_int_equal(whole[cap], '#');
    }
}

static void wrap_breaks_between_words(void **state) {
    (void)state;
    char out[128];
    acf_text t = acf_text_into(out, sizeof out);
    acf_text_wrap(&t, "aaa bbb  ccc incomprehensibly d", 2, 10, 2);
    assert_string_equal(out, "aaa bbb\n  ccc\n  incomprehensibly\n  d");
    t = acf_text_into(out, sizeof out);
    acf_text_wrap(&t, "aaa bbb", 0, 7, 0); /* fits exactly */
    assert_string_equal(out, "aaa bbb");
    t = acf_text_into(out, sizeof out);
    acf_text_wrap(&t, "aaa bbb", 0, 6, 0);
    assert_string_equal(out, "aaa\nbbb");
}

static void excerpt_is_safe_to_print(void **state) {
    (void)state;
    char out[ACF_EXCERPT_MAX];
    assert_string_equal(acf_text_excerpt(out, "plain"), "plain");
    assert_string_equal(acf_text_excerpt(out, "a\x1b[2Jb\n"), "a?[2Jb?");
    assert_string_equal(acf_text_excerpt(out, "gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(acf_text_excerpt(out, "\xff\xc3)"), "?"
                                                            "?)");
    assert_string_equal(acf_text_excerpt(out, "\xc2\x9b"
                                              "31m"),
                        "?31m"); /* a control character above 127 */
    char all[300];
    memset(all, 'x', sizeof all - 1);
    all[sizeof all - 1] = '\0';
    acf_text_excerpt(out, all);
    assert_int_equal(strlen(out), ACF_EXCERPT_MAX - 1);
    assert_string_equal(out + strlen(out) - 3, "...");
    /* A character of two bytes at the edge is dropped whole. */
    for (size_t i = 1; i + 2 < sizeof all; i += 2) memcpy(all + i, "\xc3\xbc", 2);
    acf_text_excerpt(out, all);
    assert_true(acf_text_is_utf8(out, strlen(out)));
}

static void utf8_is_checked(void **state) {
    (void)state;
    static const char *const good[] = {"",
                                       "a",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xe0\x9f\xbf",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "a\xff",
                                      "\xc3)"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(acf_text_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(acf_text_is_utf8(bad[i], strlen(bad[i])));
}

static void distance_is_known(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int d;
    } cases[] = {
        {"", "", 0},         {"", "abc", 3},  {"abc", "", 3},   {"kitten", "sitting", 3},      {"thread", "threads", 1},
        {"inof", "info", 1}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"log_level", "log-level", 0}, {"flaw", "lawn", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(acf_text_distance(cases[i].a, cases[i].b), cases[i].d);
        assert_int_equal(acf_text_distance(cases[i].b, cases[i].a), cases[i].d);
    }
    char longer[500]; /* only a bounded part is read: no overrun */
    memset(longer, 'q', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(acf_text_distance(longer, ""), 63);
}

static void nearest_name_is_found(void **state) {
    (void)state;
    static const char *const names[] = {"threads", "log-level", "lr", "components"};
    assert_int_equal(acf_text_nearest("thread", names, 4), 0);
    assert_int_equal(acf_text_nearest("htreads", names, 4), 0);
    assert_int_equal(acf_text_nearest("loglevel", names, 4), 1);
    assert_int_equal(acf_text_nearest("rl", names, 4), 2);
    assert_int_equal(acf_text_nearest("comp", names, 4), 3); /* a beginning */
    assert_int_equal(acf_text_nearest("zebra", names, 4), -1);
    assert_int_equal(acf_text_nearest("", names, 4), -1);
    assert_int_equal(acf_text_nearest("c", names, 4), -1);
    assert_int_equal(acf_text_nearest("thread", names, 0), -1);
    assert_int_equal(acf_text_nearest("x", (const char *const[]){"d", "e"}, 2), -1); /* one letter gives no hint */
}

static void same_name_ignores_the_dash(void **state) {
    (void)state;
    assert_true(acf_text_same_name("log-level", "log_level"));
    assert_true(acf_text_same_name("", ""));
    assert_false(acf_text_same_name("log", "log-level"));
    assert_false(acf_text_same_name("log-level", "log"));
    assert_false(acf_text_same_name("Log", "log"));
}

static void integers_are_strict(void **state) {
    (void)state;
    int64_t v = 0;
    assert_true(acf_text_to_int("-9223372036854775808", &v) && v == INT64_MIN);
    assert_true(acf_text_to_int("9223372036854775807", &v) && v == INT64_MAX);
    assert_true(acf_text_to_int("+007", &v) && v == 7);
    v = 42;
    static const char *const bad[] = {"",    "-",  "+", " 1", "1 ", "1.0", "1e3", "0x10", "--1", "9223372036854775808",
                                      "1\n", "one"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(acf_text_to_int(bad[i], &v));
    assert_int_equal(v, 42); /* written only on success */
}

static void reals_are_strict(void **state) {
    (void)state;
    double v = 0;
    assert_true(acf_text_to_real("1.5", &v) && v == 1.5);
    assert_true(acf_text_to_real("-.5e1", &v) && v == -5.0);
    assert_true(acf_text_to_real("3.", &v) && v == 3.0);
    assert_true(acf_text_to_real("1E-3", &v) && v == 1e-3);
    assert_true(acf_text_to_real("1e-999", &v) && v == 0.0);
    static const char *const bad[] = {"",   ".",  "-",   "e5",    "1e",    "1e+",    "inf", "nan", "0x1p3",
                                      " 1", "1 ", "1,5", "1.5.2", "1e999", "-1e999", "1d3", "1.5f"};
    v = 42.0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(acf_text_to_real(bad[i], &v));
    assert_true(v == 42.0);
}

static void reals_ignore_the_locale(void **state) {
    (void)state;
    char text[ACF_NUMBER_MAX], as_is[16];
    bool set = acf_lab_comma_locale();
    double v = 0.0;
    bool read = acf_text_to_real("2.5", &v);
    acf_text_real(text, 2.5);
    snprintf(as_is, sizeof as_is, "%.1f", 2.5);
    setlocale(LC_NUMERIC, "C");
    if (!set) acf_skip("no locale with a decimal comma, and no localedef to make one");
    assert_string_equal(as_is, "2,5"); /* the locale was in force */
    assert_true(read && v == 2.5);
    assert_string_equal(text, "2.5");
}

static void booleans_and_sizes(void **state) {
    (void)state;
    bool b = false;
    assert_true(acf_text_to_bool("yes", &b) && b);
    assert_true(acf_text_to_bool("off", &b) && !b);
    assert_true(acf_text_to_bool("1", &b) && b);
    assert_true(acf_text_to_bool("false", &b) && !b);
    assert_false(acf_text_to_bool("", &b) || acf_text_to_bool("True", &b) || acf_text_to_bool("2", &b));
}

static void reals_come_back_exactly(void **state) {
    (void)state;
    char text[ACF_NUMBER_MAX];
    assert_string_equal(acf_text_real(text, 0.1), "0.1");
    assert_string_equal(acf_text_real(text, 1e-4), "0.0001");
    assert_string_equal(acf_text_real(text, 1024.0), "1024");
    double values[] = {
        0.1 + 0.2, 1.0 / 3.0, DBL_MAX, DBL_MIN, 5e-324, -0.0, 123456789012345678.0, 2.2250738585072011e-308};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double back = 1.0;
        assert_true(acf_text_to_real(acf_text_real(text, values[i]), &back));
        assert_memory_equal(&back, &values[i], sizeof back);
    }
}

static void sizes_and_times_for_people(void **state) {
    (void)state;
    char t[ACF_NUMBER_MAX];
    assert_string_equal(acf_text_bytes(t, 0), "0 B");
    assert_string_equal(acf_text_bytes(t, 1023), "1023 B");
    assert_string_equal(acf_text_bytes(t, 1024), "1.0 KiB");
    assert_string_equal(acf_text_bytes(t, 1536), "1.5 KiB");
    assert_string_equal(acf_text_bytes(t, (1u << 20) - 1), "1023.9 KiB");
    assert_string_equal(acf_text_bytes(t, 5ull << 30), "5.0 GiB");
    assert_string_equal(acf_text_bytes(t, UINT64_MAX), "15.9 EiB");
    assert_string_equal(acf_text_duration(t, 0.26), "0.3 s");
    assert_string_equal(acf_text_duration(t, 9.94), "9.9 s");
    assert_string_equal(acf_text_duration(t, 9.96), "10 s");
    assert_string_equal(acf_text_duration(t, 59.6), "1m00s");
    assert_string_equal(acf_text_duration(t, 185.0), "3m05s");
    assert_string_equal(acf_text_duration(t, 7620.0), "2h07m");
    assert_string_equal(acf_text_duration(t, 5 * 86400.0 + 3 * 3600.0), "5d03h");
    assert_string_equal(acf_text_duration(t, -1.0), "0.0 s");
    assert_string_equal(acf_text_duration(t, 1e300), "10000d00h");
}

ACF_TESTS(text, cmocka_unit_test(writer_counts_what_does_not_fit), cmocka_unit_test(writer_at_every_capacity),
          cmocka_unit_test(wrap_breaks_between_words), cmocka_unit_test(excerpt_is_safe_to_print),
          cmocka_unit_test(utf8_is_checked), cmocka_unit_test(distance_is_known),
          cmocka_unit_test(nearest_name_is_found), cmocka_unit_test(same_name_ignores_the_dash),
          cmocka_unit_test(integers_are_strict), cmocka_unit_test(reals_are_strict),
          cmocka_unit_test(reals_ignore_the_locale), cmocka_unit_test(booleans_and_sizes),
          cmocka_unit_test(reals_come_back_exactly), cmocka_unit_test(sizes_and_times_for_people))
