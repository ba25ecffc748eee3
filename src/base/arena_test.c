/* Tests of arena.h: the counted heap, and arenas that reuse their blocks. */
#include "base/arena.h"

#include "harness/check.h"

#include <string.h>

/* gcc defines the first pair, clang answers the second. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ASAN 1
#include <sanitizer/asan_interface.h>
#endif
#if defined(ASAN) || defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif

static acf_arena *made(size_t first_block) {
    acf_arena *a = NULL;
    assert_int_equal(acf_arena_create(NULL, first_block, &a), ACF_OK);
    return a;
}

static bool aligned(const void *p) { return (uintptr_t)p % ACF_HOST_ALIGN == 0; }

static void the_heap_is_counted(void **state) {
    (void)state;
    int64_t count = acf_alloc_count(), live = acf_alloc_live();
    char *a = acf_alloc(100, "a"), *b = acf_alloc_zero(100, "b"), *c = acf_alloc_text("text", "c"),
         *z = acf_alloc(0, "z");
    assert_true(aligned(a) && aligned(b) && aligned(c) && z);
    for (int i = 0; i < 100; i++) assert_int_equal(b[i], 0);
    assert_string_equal(c, "text");
    assert_int_equal(acf_alloc_count() - count, 4);
    assert_int_equal(acf_alloc_live() - live, 4);
    acf_release(a), acf_release(b), acf_release(c), acf_release(z);
    acf_release(NULL);
    assert_int_equal(acf_alloc_live(), live);
}

static void the_nth_allocation_fails(void **state) {
    (void)state;
    acf_alloc_fail_at(2);
    void *a = acf_alloc(1, "the first");
    void *b = acf_alloc(1, "the second"), *c = acf_alloc(1, "the third");
    acf_alloc_fail_at(0);
    assert_non_null(a);
    assert_null(b);
    assert_null(c); /* and every later one */
    assert_int_equal(acf_error_status(), ACF_EMEMORY);
    assert_non_null(strstr(acf_error(), "the third"));
    void *d = acf_alloc(1, "d");
    assert_non_null(d);
    acf_release(a), acf_release(d);
}

static void absurd_sizes_are_refused(void **state) {
    (void)state;
    size_t bytes = 7;
    assert_null(acf_alloc(SIZE_MAX, "everything"));
#ifndef SANITIZED /* which ends the program at a request that can never be met */
    assert_null(acf_alloc(SIZE_MAX / 2, "half of everything"));
#endif
    assert_true(acf_bytes(3, 8, &bytes) && bytes == 24);
    assert_true(acf_bytes(0, 8, &bytes) && bytes == 0);
    assert_false(acf_bytes(INT64_MAX, 8, &bytes));
    assert_false(acf_bytes(-1, 8, &bytes));
    assert_int_equal(acf_error_status(), ACF_EMEMORY);
    acf_arena *a = made(0);
    assert_null(acf_arena_alloc(a, SIZE_MAX));
#ifndef SANITIZED
    assert_null(acf_arena_alloc(a, SIZE_MAX / 2)); /* passes the first check, and finds no memory */
#endif
    assert_int_equal(acf_error_status(), ACF_EMEMORY);
    void *p = acf_arena_alloc(a, 8); /* still usable */
    assert_non_null(p);
    acf_arena_free(a);
}

static void allocations_are_aligned_and_apart(void **state) {
    (void)state;
    acf_arena *a = made(256);
    char *p[40];
    for (int i = 0; i < 40; i++) { /* over several blocks, sizes 0 to 1521 */
        p[i] = acf_arena_alloc(a, (size_t)(i * i));
        assert_non_null(p[i]);
        assert_true(aligned(p[i]));
        memset(p[i], i, (size_t)(i * i));
    }
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < i * i; k++) assert_int_equal(p[i][k], i);
    assert_true(acf_arena_used(a) <= acf_arena_reserved(a));
    acf_arena_free(a);
}

static void release_goes_back_to_a_mark(void **state) {
    (void)state;
    acf_arena *a = made(1024);
    acf_mark start = acf_arena_mark(a); /* before there is any block */
    char *first = acf_arena_alloc(a, 100);
    memset(first, 1, 100);
    size_t used = acf_arena_used(a);
    acf_mark mark = acf_arena_mark(a);
    char *second = acf_arena_alloc(a, 64);
    for (int i = 0; i < 20; i++) assert_non_null(acf_arena_alloc(a, 1000)); /* into later blocks */
    size_t most = acf_arena_used(a);
    acf_arena_release(a, mark);
    assert_int_equal(acf_arena_used(a), used);
    assert_int_equal(acf_arena_high_water(a), most);
    assert_ptr_equal(acf_arena_alloc(a, 64), second); /* the same address again */
    for (int i = 0; i < 100; i++) assert_int_equal(first[i], 1);
    acf_arena_release(a, start);
    assert_int_equal(acf_arena_used(a), 0);
    assert_ptr_equal(acf_arena_alloc(a, 100), first);
    acf_arena_free(a);
}

static void the_second_round_allocates_nothing(void **state) {
    (void)state;
    acf_arena *a = made(128);
    int64_t count = 0;
    size_t used = 0, reserved = 0;
    void *first[60], *again[60];
    for (int round = 0; round < 3; round++) {
        acf_arena_reset(a);
        assert_int_equal(acf_arena_used(a), 0);
        for (int i = 0; i < 60; i++) (round ? again : first)[i] = acf_arena_alloc(a, (size_t)(1 + i * 37 % 900));
        if (round == 0) {
            count = acf_alloc_count();
            used = acf_arena_used(a);
            reserved = acf_arena_reserved(a);
            continue;
        }
        assert_memory_equal(first, again, sizeof first); /* even at the same addresses */
        assert_int_equal(acf_alloc_count(), count);
        assert_int_equal(acf_arena_used(a), used);
        assert_int_equal(acf_arena_reserved(a), reserved);
    }
    assert_int_equal(acf_arena_high_water(a), used);
    acf_arena_free(a);
}

static void a_large_request_skips_small_blocks(void **state) {
    (void)state;
    acf_arena *a = made(64);
    acf_mark start = acf_arena_mark(a);
    for (int i = 0; i < 6; i++) assert_non_null(acf_arena_alloc(a, 64));
    acf_arena_release(a, start);
    size_t before = acf_arena_reserved(a);
    char *large = acf_arena_alloc(a, 100000); /* larger than any block, so all of them are skipped */
    assert_non_null(large);
    memset(large, 1, 100000);
    assert_true(acf_arena_reserved(a) >= before + 100000);
    assert_true(acf_arena_used(a) >= 100000 && acf_arena_used(a) < 100000 + 256);
    acf_arena_reset(a);
    assert_int_equal(acf_arena_used(a), 0);
    acf_arena_free(a);
}

static void high_water_is_the_most_at_once(void **state) {
    (void)state;
    acf_arena *a = made(0);
    for (int i = 0; i < 10; i++) { /* ten times the same kilobyte */
        acf_mark mark = acf_arena_mark(a);
        acf_arena_alloc(a, 1024);
        acf_arena_release(a, mark);
    }
    assert_in_range(acf_arena_high_water(a), 1024, 1024 + 64); /* a closed gap of 64 bytes under ASan */
    acf_arena_free(a);
}

static void memory_may_run_out(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    acf_arena *a = NULL;
    acf_alloc_fail_at(1);
    assert_int_equal(acf_arena_create(NULL, 64, &a), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_null(a);
    a = made(64);
    void *p = acf_arena_alloc(a, 64);
    size_t used = acf_arena_used(a);
    acf_alloc_fail_at(1);
    assert_null(acf_arena_alloc(a, 5000));
    acf_alloc_fail_at(0);
    assert_int_equal(acf_error_status(), ACF_EMEMORY);
    assert_int_equal(acf_arena_used(a), used); /* unchanged and usable */
    assert_non_null(p);
    assert_non_null(acf_arena_alloc(a, 5000));
    acf_arena_free(a);
    acf_arena_free(NULL);
    assert_int_equal(acf_alloc_live(), live);
}

/* A memory with capacity for one exact block only: doubling fails, then the exact size is tried. */
static size_t largest_allowed;
static void *small_alloc(void *ctx, size_t bytes) {
    return bytes <= largest_allowed ? acf_heap.alloc(ctx, bytes) : NULL;
}
static void small_free(void *ctx, void *p) { acf_heap.free(ctx, p); }

static void a_tight_memory_gets_the_exact_size(void **state) {
    (void)state;
    const acf_memory tight = {NULL, small_alloc, small_free, 256, true};
    acf_arena *a;
    largest_allowed = 4096;
    assert_int_equal(acf_arena_create(&tight, 3072, &a), ACF_OK);
    assert_non_null(acf_arena_alloc(a, 2000));
    assert_non_null(acf_arena_alloc(a, 2000)); /* 6144 is refused, 2048 is there */
    assert_true(acf_arena_reserved(a) < 3072 + 4096);
    assert_null(acf_arena_alloc(a, 5000));
    assert_int_equal(acf_arena_used(a) % 256, 0); /* the alignment of this memory */
    acf_arena_free(a);
}

static void released_memory_is_poisoned(void **state) {
    (void)state;
#ifdef ACF_DEBUG
    acf_arena *a = made(0);
    acf_mark mark = acf_arena_mark(a);
    unsigned char *p = acf_arena_alloc(a, 64);
    for (int i = 0; i < 64; i++) assert_int_equal(p[i], 0xFF); /* a NaN in both float types: never a plausible 0 */
    memset(p, 0, 64);
    acf_arena_release(a, mark);
#ifdef ASAN
    assert_true(__asan_address_is_poisoned(p) && __asan_address_is_poisoned(p + 63));
#else
    for (int i = 0; i < 64; i++) assert_int_equal(p[i], 0xFF);
#endif
    p = acf_arena_alloc(a, 40);
    for (int i = 0; i < 40; i++) assert_int_equal(p[i], 0xFF);
#ifdef ASAN
    assert_false(__asan_address_is_poisoned(p + 39));
    assert_true(__asan_address_is_poisoned(p + 40)); /* one byte too far is caught */
#endif
    acf_arena_free(a);
#else
    acf_skip("release builds do not poison");
#endif
}

ACF_TESTS(arena, cmocka_unit_test(the_heap_is_counted), cmocka_unit_test(the_nth_allocation_fails),
          cmocka_unit_test(absurd_sizes_are_refused), cmocka_unit_test(allocations_are_aligned_and_apart),
          cmocka_unit_test(release_goes_back_to_a_mark), cmocka_unit_test(the_second_round_allocates_nothing),
          cmocka_unit_test(a_large_request_skips_small_blocks), cmocka_unit_test(high_water_is_the_most_at_once),
          cmocka_unit_test(memory_may_run_out), cmocka_unit_test(a_tight_memory_gets_the_exact_size),
          cmocka_unit_test(released_memory_is_poisoned))
