/* Tests of names.h. */
#include "cli/names.h"

#include "harness/check.h"

#include <string.h>

static void names_are_guessed(void **state) {
    (void)state;
    static const char *const names[] = {"info", "impute", "sample", "log-level", "lr"};
    assert_int_equal(cli_nearest("ifno", names, 5), 0);
    assert_int_equal(cli_nearest("imptue", names, 5), 1);
    assert_int_equal(cli_nearest("samp", names, 5), 2); /* a beginning */
    assert_int_equal(cli_nearest("loglevel", names, 5), 3);
    assert_int_equal(cli_nearest("rl", names, 5), 4);
    assert_int_equal(cli_nearest("xyzzy", names, 5), -1);
    assert_int_equal(cli_nearest("", names, 5), -1);
    assert_int_equal(cli_nearest("s", names, 5), -1);
    assert_int_equal(cli_nearest("info", names, 0), -1);
    assert_true(cli_same_name("log_level", "log-level"));
    assert_false(cli_same_name("log-level", "log-levels"));
}

static void excerpts_are_safe_to_print(void **state) {
    (void)state;
    char out[CLI_EXCERPT_MAX], word[400];
    assert_string_equal(cli_excerpt(out, "a\x1b[1mb\xc2\x9b"), "a?[1mb\xc2?");
    assert_string_equal(cli_excerpt(out, "caf\xc3\xa9"), "caf\xc3\xa9");
    memset(word, 'e', sizeof word - 1);
    word[sizeof word - 1] = 0;
    assert_int_equal(strlen(cli_excerpt(out, word)), CLI_EXCERPT_MAX - 1);
    assert_string_equal(out + CLI_EXCERPT_MAX - 4, "...");
    memcpy(word + CLI_EXCERPT_MAX - 5, "\xc3\xa9", 2);
    cli_excerpt(out, word);
    assert_string_equal(out + CLI_EXCERPT_MAX - 6, "e...");
}

ACF_TESTS(names, cmocka_unit_test(names_are_guessed), cmocka_unit_test(excerpts_are_safe_to_print))
