/* Tests of profile.h and na_strings.h: what is counted, what is kept, and that memory is bounded. */
#include "table/profile.h"

#include "harness/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct lab {
    acf_arena *texts;
    acf_na_strings na_strings;
    acf_profile *p;
} lab;

static void lab_open(lab *l) {
    assert_int_equal(acf_text_arena(&l->texts), ACF_OK);
    l->na_strings = acf_na_strings_make(l->texts);
    assert_int_equal(acf_na_strings_add_usual(&l->na_strings), ACF_OK);
    assert_int_equal(acf_profile_create(1, &l->na_strings, &l->p), ACF_OK);
}

static void lab_close(lab *l) {
    acf_profile_free(l->p);
    acf_na_strings_clear(&l->na_strings);
    acf_arena_free(l->texts);
}

/* Cells are separated by |: "a|b|c". */
static const acf_profile_column *cells(lab *l, const char *text) {
    for (int64_t row = 0;; row++, text++) {
        size_t n = strcspn(text, "|");
        assert_int_equal(acf_profile_text(l->p, 0, row, text, n, false), ACF_OK);
        if (!*(text += n)) break;
    }
    return &l->p->column[0];
}

static void na_strings_are_missing(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const acf_profile_column *c =
        cells(&l, "|NA|N/A|#N/A|?|NaN|nan|null|NULL|None|.|-|na|--|0|?x|None of these|-12.75");
    assert_int_equal(c->missing, 14);
    assert_int_equal(c->observed, 4);
    assert_int_equal(c->numeric, 2);
    lab_close(&l);
    lab_open(&l); /* pandas' list, and other spellings */
    c = cells(&l, "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|"
                  "N/A|NA|NULL|NaN|None|n/a|nan|null|na|Na|N/a|Null|NAN|Nan|\\N");
    assert_int_equal(c->missing, 26);
    assert_int_equal(c->observed, 0);
    lab_close(&l);
    lab_open(&l); /* similar texts, and words that are often values */
    c = cells(&l, "none|nil|NONE|missing|unknown|---|..|??|nA|n.a.|N|\\n|NA |#N/A N/A N/A|-1.#INF|Nancy|NULLs|1.#IND0");
    assert_int_equal(c->missing, 0);
    lab_close(&l);
}

/* Which NA strings may be values; those that the user names are certain, before or after the usual ones. */
static void doubtful_na_strings_are_counted(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const acf_profile_column *c = cells(&l, "None|NA|-|None|--|Na|?|.|na|Mild");
    assert_int_equal(c->doubtful.n, 4);
    assert_true(c->doubtful.entry[0].count == 2 && strcmp(c->doubtful.entry[0].text, "None") == 0);
    assert_int_equal(acf_na_strings_add_list(&l.na_strings, "None,x"), ACF_OK);
    assert_false(acf_na_strings_in_doubt(&l.na_strings, "None", 4));
    assert_true(acf_na_strings_in_doubt(&l.na_strings, "-", 1));
    assert_int_equal(acf_na_strings_add_usual(&l.na_strings), ACF_OK);
    assert_false(acf_na_strings_in_doubt(&l.na_strings, "None", 4));
    lab_close(&l);
}

/* Reading a table and finding its header use the same list. */
static void usual_na_strings_are_one_list(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    for (int64_t i = 0; i < l.na_strings.list.n; i++)
        assert_true(acf_na_strings_is_usual(l.na_strings.list.entry[i].text, l.na_strings.list.entry[i].length));
    assert_int_equal(l.na_strings.list.n, 30);
    assert_false(acf_na_strings_is_usual("none", 4) || acf_na_strings_is_usual("N", 1) ||
                 acf_na_strings_is_usual("?x", 2));
    lab_close(&l);
}

/* An NA string longer than the lengths that the first-byte table tells apart. */
static void long_na_strings_are_found(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const char *mark = "this answer was not given by anybody", *near = "this answer was not given by anyone!";
    assert_int_equal(acf_na_strings_add_list(&l.na_strings, mark), ACF_OK);
    assert_true(acf_na_strings_has(&l.na_strings, mark, strlen(mark)));
    assert_false(acf_na_strings_has(&l.na_strings, near, strlen(near)) || acf_na_strings_has(&l.na_strings, mark, 31));
    lab_close(&l);
}

static void named_na_strings_are_missing_too(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    assert_int_equal(acf_na_strings_add_list(&l.na_strings, "-999,not known"), ACF_OK);
    acf_na_strings extra = acf_na_strings_make(l.texts);
    assert_int_equal(acf_na_strings_add(&extra, "x", 1), ACF_OK);
    l.p->column[0].extra = &extra;
    const acf_profile_column *c = cells(&l, "-999|not known|-999.0|NA|x");
    assert_int_equal(c->missing, 4);
    assert_int_equal(c->observed, 1);
    acf_na_strings_clear(&extra);
    lab_close(&l);
}

static void numbers_are_measured(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const acf_profile_column *c = cells(&l, "1.50|-2|3.0|1e3|abc|?|007");
    assert_int_equal(c->numeric, 5);
    assert_int_equal(c->whole, 4);
    assert_true(c->min == -2 && c->max == 1000);
    assert_int_equal(c->decimals[0], 3);
    assert_int_equal(c->decimals[1], 1);
    assert_int_equal(c->decimals[2], 1);
    assert_int_equal(acf_profile_decimals(c, 1), 2);
    assert_int_equal(acf_profile_decimals(c, 0.6), 0);
    assert_int_equal(acf_profile_decimals(c, 0.61), 1);
    assert_int_equal(c->digits, 3);
    assert_int_equal(c->exponents, 1);
    assert_int_equal(c->zeros, 1);
    assert_int_equal(c->numbers.n, 5);
    assert_int_equal(c->words.n, 1);
    assert_int_equal(c->words.entry[0].first, 4);
    lab_close(&l);
}

/* The first pass finds the notation of numbers; the second pass reads them with it. */
static void columns_are_profiled_again(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const acf_notation comma = {.comma = true, .group = "."};
    const char *text = "1,5|12,345|0,345|-7|1,2,3|1,5.0|,5|1.234,5|?|None";
    const acf_profile_column *c = cells(&l, text);
    assert_true(c->numeric == 1 && c->words.n == 7);
    assert_int_equal(c->survey.cells, 6);
    assert_int_equal(acf_notation_point(&c->survey), ',');
    acf_profile_again(l.p, 0, &comma);
    assert_int_equal(cells(&l, text)->numeric, 6);
    assert_true(c->min == -7 && c->max == 1234.5 && c->words.n == 2 && c->missing == 2 && c->doubtful.n == 1);
    assert_int_equal(c->survey.cells, 6); /* the survey stays */
    lab_close(&l);
}

/* Any order of consecutive numbers is a key; one of them twice, another missing, is not. */
static void keys_are_distinguished_from_other_numbers(void **state) {
    (void)state;
    enum { N = 20000 }; /* far more than distinct numbers are kept */
    for (int wrong = 0; wrong < 4; wrong++) {
        lab l;
        char text[32];
        lab_open(&l);
        for (int64_t i = 0; i < N; i++) {
            int64_t v = i * 7919 % N + 5;
            if (wrong == 1 && v == 100) v = 101;
            if (wrong == 2 && v == 5) v = 4;
            int n = snprintf(text, sizeof text, wrong == 3 && i == 9 ? "?" : "%lld", (long long)v);
            assert_int_equal(acf_profile_text(l.p, 0, i, text, (size_t)n, false), ACF_OK);
        }
        assert_int_equal(acf_profile_is_key(&l.p->column[0]), wrong == 0);
        lab_close(&l);
    }
}

static void memory_is_bounded(void **state) {
    (void)state;
    lab l;
    char text[ACF_LEVEL_BYTES_MAX + 2];
    lab_open(&l);
    for (int64_t i = 0; i < 3 * ACF_NUMBERS_KEPT; i++) {
        int n = snprintf(text, sizeof text, "%lld.5", (long long)i);
        assert_int_equal(acf_profile_text(l.p, 0, i, text, (size_t)n, false), ACF_OK);
    }
    const acf_profile_column *c = &l.p->column[0];
    assert_int_equal(c->numbers.n, ACF_NUMBERS_KEPT);
    assert_int_equal(c->numbers.beyond, 2 * ACF_NUMBERS_KEPT);
    memset(text, 'x', sizeof text);
    assert_int_equal(acf_profile_text(l.p, 0, 0, text, ACF_LEVEL_BYTES_MAX, false), ACF_OK);
    assert_int_equal(acf_profile_text(l.p, 0, 0, text, ACF_LEVEL_BYTES_MAX + 1, false), ACF_OK);
    assert_int_equal(c->words.n, 1);
    assert_int_equal(c->prose, 1);
    lab_close(&l);
}

/* If words come first, or the user wants levels, numbers are kept as words are. */
static void numbers_that_may_be_levels_are_kept(void **state) {
    (void)state;
    for (int wish = 0; wish < 2; wish++) {
        lab l;
        char text[32];
        lab_open(&l);
        if (wish)
            acf_profile_want_levels(l.p, 0);
        else
            assert_int_equal(acf_profile_text(l.p, 0, 0, "A7", 2, false), ACF_OK);
        for (int64_t i = 0; i < 3 * ACF_NUMBERS_KEPT; i++) {
            int n = snprintf(text, sizeof text, "%lld", (long long)i);
            assert_int_equal(acf_profile_text(l.p, 0, i, text, (size_t)n, false), ACF_OK);
        }
        assert_int_equal(l.p->column[0].numbers.n, 3 * ACF_NUMBERS_KEPT);
        lab_close(&l);
    }
}

static void matrices_are_profiled(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    const double x[] = {3, NAN, -1, 3, 7};
    for (int i = 0; i < 5; i++) assert_int_equal(acf_profile_number(l.p, 0, i, x[i]), ACF_OK);
    const acf_profile_column *c = &l.p->column[0];
    assert_int_equal(c->missing, 1);
    assert_int_equal(c->whole, 4);
    assert_int_equal(c->numbers.n, 3);
    assert_true(c->min == -1 && c->max == 7);
    assert_int_equal(acf_profile_decimals(c, 1), -1);
    assert_int_equal(acf_profile_number(l.p, 0, 5, 0.5), ACF_OK);
    assert_int_equal(c->whole, 4);
    lab_close(&l);
}

static void memory_may_run_out(void **state) {
    (void)state;
    lab l;
    lab_open(&l);
    int64_t live = acf_alloc_live();
    for (int64_t n = 1;; n++) {
        acf_profile *p = NULL;
        char text[16];
        acf_alloc_fail_at(n);
        acf_status status = acf_profile_create(3, &l.na_strings, &p);
        for (int64_t i = 0; i < 40 && status == ACF_OK; i++) {
            int length = snprintf(text, sizeof text, i % 2 ? "%lld" : "w%lld", (long long)i);
            status = acf_profile_text(p, i % 3, i, text, (size_t)length, false);
        }
        acf_alloc_fail_at(0);
        acf_profile_free(p);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(n, 1, 60);
    }
    lab_close(&l);
}

ACF_TESTS(profile, cmocka_unit_test(na_strings_are_missing), cmocka_unit_test(doubtful_na_strings_are_counted),
          cmocka_unit_test(usual_na_strings_are_one_list), cmocka_unit_test(long_na_strings_are_found),
          cmocka_unit_test(named_na_strings_are_missing_too), cmocka_unit_test(numbers_are_measured),
          cmocka_unit_test(columns_are_profiled_again), cmocka_unit_test(keys_are_distinguished_from_other_numbers),
          cmocka_unit_test(memory_is_bounded), cmocka_unit_test(numbers_that_may_be_levels_are_kept),
          cmocka_unit_test(matrices_are_profiled), cmocka_unit_test(memory_may_run_out))
