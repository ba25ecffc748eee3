/* Tests of status.h: sentences are kept per thread, truncated to the buffer, and survive other failures. */
#include "base/status.h"

#include "harness/check.h"

#include <pthread.h>
#include <string.h>

static void every_status_has_name_and_exit_code(void **state) {
    (void)state;
    static const int codes[ACF_STATUS_COUNT] = {0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 130}; /* the order of the enum */
    for (int i = 0; i < ACF_STATUS_COUNT; i++) {
        assert_non_null(acf_status_name((acf_status)i));
        assert_int_equal(strncmp(acf_status_name((acf_status)i), "ACF_", 4), 0);
        assert_int_equal(acf_status_exit((acf_status)i), codes[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(acf_status_name((acf_status)i), acf_status_name((acf_status)k));
    }
    assert_string_equal(acf_status_name((acf_status)9999), "ACF_UNKNOWN");
    assert_string_equal(acf_status_name((acf_status)-1), "ACF_UNKNOWN");
    assert_int_equal(acf_status_exit((acf_status)9999), 1);
}

static void the_last_sentence_is_kept(void **state) {
    (void)state;
    assert_int_equal(acf_fail(ACF_EDATA, "row %d", 7), ACF_EDATA);
    assert_string_equal(acf_error(), "row 7");
    assert_int_equal(acf_error_status(), ACF_EDATA);
    assert_int_equal(acf_fail(ACF_EIO, "while saving: %s", acf_error()), ACF_EIO); /* may quote the last one */
    assert_string_equal(acf_error(), "while saving: row 7");
    acf_error_clear();
    assert_string_equal(acf_error(), "");
    assert_int_equal(acf_error_status(), ACF_OK);
}

static void long_sentences_are_cut(void **state) {
    (void)state;
    acf_fail(ACF_EDATA, "%*d", 3 * ACF_SENTENCE_MAX, 1);
    assert_int_equal(strlen(acf_error()), ACF_SENTENCE_MAX - 1);
    acf_fail(ACF_EDATA, "short");
    assert_string_equal(acf_error(), "short");
}

static void a_failure_can_be_put_aside(void **state) {
    (void)state;
    acf_failure first;
    acf_fail(ACF_ENUMERIC, "first");
    acf_failure_save(&first);
    acf_fail(ACF_EIO, "second");
    acf_trace("file.c", 1, "expr");
    assert_int_equal(acf_failure_restore(&first), ACF_ENUMERIC);
    assert_string_equal(acf_error(), "first");
    assert_int_equal(acf_error_status(), ACF_ENUMERIC);
    assert_string_equal(acf_error_trace(), ""); /* the trace of another failure is not shown */
}

static acf_status innermost(void) { return acf_fail(ACF_EDATA, "deep down"); }
static acf_status middle(void) {
    ACF_TRY(innermost());
    return ACF_OK;
}
static acf_status outer(bool *released) {
    acf_status status = ACF_OK;
    ACF_TRY_DONE(middle());
    status = ACF_EINTERNAL; /* not reached */
done:
    *released = true;
    return status;
}

static void the_way_up_is_traced(void **state) {
    (void)state;
    bool released = false;
    assert_int_equal(outer(&released), ACF_EDATA);
    assert_true(released);
    assert_string_equal(acf_error(), "deep down");
#ifdef ACF_DEBUG
    const char *inner = strstr(acf_error_trace(), "innermost()"), *mid = strstr(acf_error_trace(), "middle()");
    assert_non_null(inner);
    assert_non_null(mid);
    assert_true(inner < mid);
#endif
    acf_fail(ACF_EIO, "anew");
    assert_string_equal(acf_error_trace(), ""); /* a new failure starts a new trace */
}

static void a_long_trace_is_cut(void **state) {
    (void)state;
    acf_fail(ACF_EIO, "x");
    for (int i = 0; i < 1000; i++) acf_trace("a/rather/long/file/name.c", i, "some_expression(with, arguments)");
    assert_int_equal(strlen(acf_error_trace()), ACF_TRACE_MAX - 1);
}

static void *fail_elsewhere(void *seen) {
    strcpy(seen, acf_error()); /* the state of this thread before it fails */
    acf_fail(ACF_EMODEL, "another thread's");
    return NULL;
}

static void threads_do_not_share(void **state) {
    (void)state;
    char seen[ACF_SENTENCE_MAX] = "unset";
    pthread_t thread;
    acf_fail(ACF_EDATA, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(seen, "");
    assert_string_equal(acf_error(), "mine");
    assert_int_equal(acf_error_status(), ACF_EDATA);
}

ACF_TESTS(status, cmocka_unit_test(every_status_has_name_and_exit_code), cmocka_unit_test(the_last_sentence_is_kept),
          cmocka_unit_test(long_sentences_are_cut), cmocka_unit_test(a_failure_can_be_put_aside),
          cmocka_unit_test(the_way_up_is_traced), cmocka_unit_test(a_long_trace_is_cut),
          cmocka_unit_test(threads_do_not_share))
