/* Tests of the public functions through acflow.h alone: options, config files, texts and NULL arguments. */
#include "acflow.h"

#include "harness/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state) {
    unsetenv("ACF_NUM_THREADS");
    return acf_options_create((acf_options **)state) == ACF_OK ? 0 : -1;
}

static int tear_down(void **state) {
    acf_options_free(*state);
    return 0;
}

static void assert_value(const acf_options *o, const char *name, const char *expected) {
    char out[64];
    size_t needed = 0;
    assert_int_equal(acf_options_get(o, name, out, sizeof out, &needed), ACF_OK);
    assert_string_equal(out, expected);
    assert_int_equal(needed, strlen(expected) + 1);
}

static void versions_agree(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ACF_VERSION_MAJOR, ACF_VERSION_MINOR, ACF_VERSION_PATCH);
    assert_string_equal(acf_version(), text);
    assert_string_equal(acf_version(), ACF_VERSION);
}

static void options_are_set_and_read(void **state) {
    acf_options *o = *state;
    assert_value(o, "threads", "0");
    assert_int_equal(acf_options_set(o, "threads", "1024"), ACF_OK);
    assert_value(o, "threads", "1024");
    assert_int_equal(acf_options_set(o, "threads", "1025"), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "from 0 to 1024"));
    assert_int_equal(acf_options_set(o, "thread", "2"), ACF_EUSAGE);
    assert_string_equal(acf_error(), "unknown option 'thread'; did you mean 'threads'?");
    assert_value(o, "threads", "1024");
    char tiny[2];
    size_t needed = 0;
    assert_int_equal(acf_options_get(o, "threads", tiny, sizeof tiny, &needed), ACF_ESPACE);
    assert_int_equal(needed, 5);
    assert_string_equal(tiny, "1"); /* cut, with its NUL */
    assert_int_equal(acf_options_get(o, "threads", NULL, 0, &needed), ACF_ESPACE);
    assert_int_equal(needed, 5);
    needed = 99;
    assert_int_equal(acf_options_get(o, "nothing", tiny, sizeof tiny, &needed), ACF_EUSAGE);
    assert_int_equal(needed, 99);
}

/* Every option can be listed, and set to its default and to each of its choices. */
static void options_are_listed(void **state) {
    acf_options *o = *state;
    acf_option_info d;
    char word[64];
    const int n = acf_options_count(o);
    assert_true(n > 8);
    assert_int_equal(acf_options_count(NULL), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(acf_options_at(o, i, &d), ACF_OK);
        assert_true(d.help && *d.help && *d.section);
        assert_true(!d.automatic || acf_options_set(o, d.name, "auto") == ACF_OK);
        assert_int_equal(d.choices != NULL, strcmp(d.type, "choice") == 0);
        assert_int_equal(acf_options_set(o, d.name, d.standard), ACF_OK);
        for (const char *s = d.choices; s && *s; s += strcspn(s, "|"), s += *s == '|') {
            snprintf(word, sizeof word, "%.*s", (int)strcspn(s, "|"), s);
            assert_int_equal(acf_options_set(o, d.name, word), ACF_OK);
        }
    }
    assert_int_equal(acf_options_at(o, 0, &d), ACF_OK);
    assert_string_equal(d.name, "threads");
    assert_string_equal(d.type, "int");
    assert_true(d.min == 0 && d.max == 1024 && d.given);
    assert_string_equal(d.section, "machine");
    assert_string_equal(d.environment, "ACF_NUM_THREADS");
    assert_true(d.essential && !d.automatic);
    acf_options *fresh;
    assert_int_equal(acf_options_create(&fresh), ACF_OK);
    assert_int_equal(acf_options_at(fresh, 0, &d), ACF_OK);
    assert_false(d.given);
    assert_int_equal(acf_options_load(fresh, "text", "{\"threads\": 2}"), ACF_OK);
    assert_int_equal(acf_options_at(fresh, 0, &d), ACF_OK);
    assert_false(d.given); /* by a file */
    acf_options_free(fresh);
    assert_int_equal(acf_options_at(o, n, &d), ACF_EUSAGE);
    assert_int_equal(acf_options_at(o, -1, &d), ACF_EUSAGE);
    assert_int_equal(acf_options_at(NULL, 0, &d), ACF_EUSAGE);
    assert_int_equal(acf_options_at(o, 0, NULL), ACF_EUSAGE);
}

static void the_environment_sets_threads(void **state) {
    (void)state;
    acf_options *o = NULL;
    setenv("ACF_NUM_THREADS", "3", 1);
    assert_int_equal(acf_options_create(&o), ACF_OK);
    assert_value(o, "threads", "3");
    acf_options_free(o);
    setenv("ACF_NUM_THREADS", "-1", 1);
    acf_status status = acf_options_create(&o);
    unsetenv("ACF_NUM_THREADS");
    assert_int_equal(status, ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "ACF_NUM_THREADS"));
}

static acf_status load_text(acf_options *o, const char *text) {
    char path[] = "/tmp/acflow-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    acf_status status = acf_options_load(o, path, NULL);
    unlink(path);
    return status;
}

static void config_files_are_loaded(void **state) {
    acf_options *o = *state;
    assert_int_equal(load_text(o, "{\"threads\": 2, \"log_level\": \"debug\"}"), ACF_OK);
    assert_value(o, "threads", "2");
    assert_value(o, "log-level", "debug");
    assert_int_equal(load_text(o, "{\"threads\": 5, \"log-level\": \"loud\"}"), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "acflow-config-"));
    assert_value(o, "threads", "2"); /* a wrong file changes nothing */
    assert_int_equal(load_text(o, "{\"threads\": 5"), ACF_EUSAGE);
    assert_int_equal(acf_options_load(o, "/nonexistent/config.json", NULL), ACF_EIO);
    assert_int_equal(acf_options_set(o, "threads", "7"), ACF_OK);
    assert_int_equal(load_text(o, "{\"threads\": 5}"), ACF_OK);
    assert_value(o, "threads", "7");
}

static void options_are_loaded_from_a_text(void **state) {
    acf_options *o = *state;
    assert_int_equal(acf_options_load(o, "here", "{\"threads\": 2, \"epochs\": 3}"), ACF_OK);
    assert_value(o, "threads", "2");
    assert_value(o, "epochs", "3");
    assert_int_equal(acf_options_load(o, "here", "{\"threads\": 4, \"epoch\": 3}"), ACF_EUSAGE);
    assert_string_equal(acf_error(), "here: unknown option 'epoch'; did you mean 'epochs'?");
    assert_value(o, "threads", "2");
    assert_int_equal(acf_options_load(o, "here", ""), ACF_EUSAGE);
}

static void info_is_json(void **state) {
    acf_options *o = *state;
    char text[8192], exact[8192], lines[4096];
    size_t needed = 0;
    assert_int_equal(acf_options_set(o, "threads", "5"), ACF_OK);
    assert_int_equal(acf_info(o, ACF_JSON, text, sizeof text, &needed), ACF_OK);
    assert_int_equal(needed, strlen(text) + 1);
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *build = json_object_get(j, "build");
    assert_string_equal(json_string_value(json_object_get(j, "version")), ACF_VERSION);
    assert_int_equal(json_integer_value(json_object_get(j, "threads")), 5);
    assert_in_range(json_integer_value(json_object_get(json_object_get(j, "cpu"), "cores")), 1, 8192);
    assert_true(json_string_length(json_object_get(json_object_get(j, "cpu"), "model")) > 0);
    char kernels[64] = "";
    snprintf(kernels, sizeof kernels, "\nkernels:     %s\n", json_string_value(json_object_get(j, "kernels")));
    assert_non_null(strstr("\nkernels:     plain\n\nkernels:     avx2\n\nkernels:     avx512\n", kernels));
    /* A running process has touched more than a megabyte, and this one less than a hundred gigabytes. */
    assert_in_range(json_integer_value(json_object_get(j, "peak_memory_bytes")), 1 << 20, 100ll << 30);
#ifdef ACF_DOUBLE
    assert_string_equal(json_string_value(json_object_get(build, "precision")), "double");
#else
    assert_string_equal(json_string_value(json_object_get(build, "precision")), "float");
#endif
    json_decref(j);
    assert_int_equal(acf_info(o, ACF_JSON, NULL, 0, &needed), ACF_ESPACE); /* asks for the size */
    assert_in_range(needed, 200, sizeof exact);
    assert_int_equal(acf_info(o, ACF_JSON, exact, 100, &needed), ACF_ESPACE);
    assert_int_equal(strlen(exact), 99);
    assert_int_equal(acf_info(o, ACF_TEXT, lines, sizeof lines, NULL), ACF_OK);
    assert_non_null(strstr(lines, "\nthreads:     5\n"));
    assert_non_null(strstr(lines, kernels));
    assert_int_equal(lines[strlen(lines) - 1], '\n');
}

static void threads_zero_means_every_core(void **state) {
    acf_options *o = *state;
    char text[8192];
    assert_int_equal(acf_info(o, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    json_t *j = json_loads(text, 0, NULL);
    int64_t threads = json_integer_value(json_object_get(j, "threads"));
    assert_int_equal(threads, json_integer_value(json_object_get(json_object_get(j, "cpu"), "cores")));
    assert_true(threads >= 1);
    json_decref(j);
}

static void null_is_met_with_a_sentence(void **state) {
    acf_options *o = *state;
    char text[8];
    acf_options_free(NULL);
    assert_int_equal(acf_options_create(NULL), ACF_EUSAGE);
    assert_string_equal(acf_error(), "acf_options_create: 'out' is NULL");
    assert_int_equal(acf_options_set(NULL, "a", "b"), ACF_EUSAGE);
    assert_int_equal(acf_options_set(o, NULL, "b"), ACF_EUSAGE);
    assert_int_equal(acf_options_set(o, "threads", NULL), ACF_EUSAGE);
    assert_int_equal(acf_options_load(NULL, "a", NULL), ACF_EUSAGE);
    assert_int_equal(acf_options_load(o, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_options_get(NULL, "a", text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_options_get(o, NULL, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_options_get(o, "threads", NULL, 8, NULL), ACF_EUSAGE);
    assert_string_equal(acf_error(), "acf_options_get: 'out' is NULL with a capacity of 8");
    assert_int_equal(acf_info(NULL, ACF_JSON, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_info(o, ACF_JSON, NULL, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_info(NULL, ACF_TEXT, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_info(o, ACF_TEXT, NULL, 8, NULL), ACF_EUSAGE);
}

#define WITH_SET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(api, cmocka_unit_test(versions_agree), WITH_SET(options_are_set_and_read), WITH_SET(options_are_listed),
          cmocka_unit_test(the_environment_sets_threads), WITH_SET(config_files_are_loaded),
          WITH_SET(options_are_loaded_from_a_text), WITH_SET(info_is_json), WITH_SET(threads_zero_means_every_core),
          WITH_SET(null_is_met_with_a_sentence))
