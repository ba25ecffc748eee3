/* How a test file joins the test program: a list of cmocka tests, registered by the file itself.
 *
 *     static void arena_marks(void **state) { (void)state; assert_int_equal(1, 1); }
 *     ACF_TESTS(arena, cmocka_unit_test(arena_marks), ...)
 *
 * The runner finds every suite without a list to edit. It runs those named on its command line, or all, and ends with
 * the line "N passed, N failed, N skipped" and a non-zero status if a test failed. With --device cuda it runs the tests
 * for another device instead: the cases of lab.h, and those added by ACF_DEVICE_TESTS. */
#ifndef ACF_HARNESS_CHECK_H
#define ACF_HARNESS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Adds tests to a suite; a suite may be added to several times (an operation has cases and its own tests). */
void acf_suite_add(const char *suite, const struct CMUnitTest *tests, size_t n);

#define ACF_TESTS(suite, ...)                                                                                          \
    static const struct CMUnitTest suite##_unit_tests[] = {__VA_ARGS__};                                               \
    __attribute__((constructor)) static void suite##_register_tests(void) {                                            \
        acf_suite_add(#suite, suite##_unit_tests, sizeof suite##_unit_tests / sizeof suite##_unit_tests[0]);           \
    }

/* The same for tests that --device runs; they get the device from acf_test_device (lab.h). */
void acf_device_suite_add(const char *suite, const struct CMUnitTest *tests, size_t n);
#define ACF_DEVICE_TESTS(suite, ...)                                                                                   \
    static const struct CMUnitTest suite##_device_tests[] = {__VA_ARGS__};                                             \
    __attribute__((constructor)) static void suite##_register_device_tests(void) {                                     \
        acf_device_suite_add(#suite, suite##_device_tests,                                                             \
                             sizeof suite##_device_tests / sizeof suite##_device_tests[0]);                            \
    }

/* Ends the running test as skipped, with a line that says why. */
_Noreturn void acf_skip(const char *why);

#endif
