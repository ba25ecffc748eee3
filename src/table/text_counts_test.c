/* Tests of text_counts.h: against a plain list, beyond the cap, without memory. */
#include "table/text_counts.h"

#include "harness/check.h"

#include <stdio.h>
#include <string.h>

static void texts_are_counted_in_order(void **state) {
    (void)state;
    static const char *const text[] = {"M", "F", "M", "", "I", "F", "M", "M\nN", "\xc3\xa4"};
    acf_arena *texts;
    assert_int_equal(acf_text_arena(&texts), ACF_OK);
    acf_text_counts t = acf_text_counts_make(100, texts);
    assert_int_equal(acf_text_counts_find(&t, "M", 1), -1);
    for (int i = 0; i < 9; i++) assert_int_equal(acf_text_counts_add(&t, text[i], strlen(text[i]), i), ACF_OK);
    assert_int_equal(t.n, 6);
    assert_string_equal(t.entry[0].text, "M");
    assert_int_equal(t.entry[0].count, 3);
    assert_int_equal(t.entry[0].first, 0);
    assert_int_equal(t.entry[2].length, 0);
    assert_int_equal(t.entry[3].first, 4);
    assert_int_equal(acf_text_counts_find(&t, "M\nN", 3), 4);
    assert_int_equal(acf_text_counts_find(&t, "M\nN", 2), -1);
    assert_int_equal(acf_text_counts_find(&t, "\xc3\xa4", 2), 5);
    acf_text_counts_clear(&t);
    acf_arena_free(texts);
}

/* 5000 different texts, each seen as often as its number says modulo 4 plus one, in a scrambled order. */
static void thousands_of_texts_keep_their_counts(void **state) {
    (void)state;
    enum { N = 5000 };
    char text[32];
    acf_arena *texts;
    assert_int_equal(acf_text_arena(&texts), ACF_OK);
    acf_text_counts t = acf_text_counts_make(N, texts);
    for (int64_t i = 0; i < 4 * N; i++) {
        int64_t k = i * 7919 % N;
        if (i / N > k % 4) continue;
        int n = snprintf(text, sizeof text, "level %lld of many", (long long)k);
        assert_int_equal(acf_text_counts_add(&t, text, (size_t)n, i), ACF_OK);
    }
    assert_int_equal(t.n, N);
    assert_int_equal(t.beyond, 0);
    for (int64_t k = 0; k < N; k++) {
        int n = snprintf(text, sizeof text, "level %lld of many", (long long)k);
        int64_t at = acf_text_counts_find(&t, text, (size_t)n);
        assert_in_range(at, 0, N - 1);
        assert_int_equal(t.entry[at].count, k % 4 + 1);
        assert_int_equal(t.entry[at].first * 7919 % N, k);
    }
    acf_text_counts_clear(&t);
    acf_arena_free(texts);
}

static void full_counts_count_what_is_beyond(void **state) {
    (void)state;
    acf_arena *texts;
    assert_int_equal(acf_text_arena(&texts), ACF_OK);
    acf_text_counts t = acf_text_counts_make(2, texts);
    static const char *const text[] = {"a", "b", "c", "a", "d", "c"};
    for (int i = 0; i < 6; i++) assert_int_equal(acf_text_counts_add(&t, text[i], 1, i), ACF_OK);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.beyond, 3);
    assert_int_equal(t.entry[0].count, 2);
    acf_text_counts_clear(&t);
    acf_arena_free(texts);
}

static acf_status add_many(acf_arena **texts, acf_text_counts *t) {
    ACF_TRY(acf_text_arena(texts));
    *t = acf_text_counts_make(100, *texts);
    for (int i = 0; i < 40; i++)
        ACF_TRY(acf_text_counts_add(t, &"0123456789012345678901234567890123456789"[i], 1 + (size_t)i % 3, i));
    return ACF_OK;
}

static void memory_may_run_out(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    for (int64_t n = 1;; n++) {
        acf_arena *texts = NULL;
        acf_text_counts t = {0};
        acf_alloc_fail_at(n);
        acf_status status = add_many(&texts, &t);
        acf_alloc_fail_at(0);
        acf_text_counts_clear(&t);
        acf_arena_free(texts);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(n, 1, 20);
    }
}

ACF_TESTS(counts, cmocka_unit_test(texts_are_counted_in_order), cmocka_unit_test(thousands_of_texts_keep_their_counts),
          cmocka_unit_test(full_counts_count_what_is_beyond), cmocka_unit_test(memory_may_run_out))
