/* Tests of json.h: limits, sentences, exact round trips, and hostile input. */
#include "base/json.h"

#include "base/rng.h"
#include "harness/check.h"

#include <stdlib.h>
#include <string.h>

static const acf_json_source from = {"options.json", ACF_EUSAGE};

static json_t *parsed(const char *text) {
    json_t *v = NULL;
    assert_int_equal(acf_json_parse(from, text, strlen(text), 1 << 20, &v), ACF_OK);
    return v;
}

static void assert_refused(const char *text, const char *sentence) {
    json_t *v = NULL;
    assert_int_equal(acf_json_parse(from, text, strlen(text), 1 << 20, &v), ACF_EUSAGE);
    assert_null(v);
    if (!strstr(acf_error(), sentence)) fail_msg("'%s' does not say '%s'", acf_error(), sentence);
}

static void wrong_text_is_refused_with_its_place(void **state) {
    (void)state;
    assert_refused("{\"a\": 1,\n \"b\": }", "options.json:2:");
    assert_refused("{\"a\": 1, \"a\": 2}", "duplicate");
    assert_refused("", "options.json:1:0");
    assert_refused("{} x", "end of file expected");
    assert_refused("{\"a\": NaN}", "not valid JSON");
    assert_refused("[1e999]", "not valid JSON");
    assert_refused("[99999999999999999999]", "not valid JSON");
    assert_refused("[\"\xff\"]", "not valid JSON");
    assert_refused("[\"\\u0000\"]", "not valid JSON");
    assert_refused("\x1b[31m", "not valid JSON");
    assert_null(strchr(acf_error(), '\x1b')); /* the quoted text cannot control a terminal */
}

static void size_and_depth_are_bounded(void **state) {
    (void)state;
    json_t *v;
    assert_int_equal(acf_json_parse(from, "[1, 2]", 6, 6, &v), ACF_OK);
    json_decref(v);
    assert_int_equal(acf_json_parse(from, "[1, 2]", 6, 5, &v), ACF_EUSAGE);
    char deep[2 * ACF_JSON_DEPTH_MAX + 3];
    memset(deep, '[', ACF_JSON_DEPTH_MAX);
    memset(deep + ACF_JSON_DEPTH_MAX, ']', ACF_JSON_DEPTH_MAX);
    deep[2 * ACF_JSON_DEPTH_MAX] = '\0';
    json_decref(parsed(deep));
    memset(deep, '[', ACF_JSON_DEPTH_MAX + 1);
    memset(deep + ACF_JSON_DEPTH_MAX + 1, ']', ACF_JSON_DEPTH_MAX + 1);
    deep[2 * ACF_JSON_DEPTH_MAX + 2] = '\0';
    assert_refused(deep, "nested deeper than 64");
    /* Brackets inside strings are not nesting; an escaped quote does not end a string. */
    char *text = test_malloc(500);
    strcpy(text, "[\"\\\"");
    for (int i = 0; i < 100; i++) strcat(text, "[");
    strcat(text, "\"]");
    json_decref(parsed(text));
    test_free(text);
}

static void types_are_named_in_sentences(void **state) {
    (void)state;
    json_t *o = parsed("{\"lr\": \"fast\", \"n\": 2.5, \"k\": 3, \"on\": true, \"none\": null, \"list\": [1]}");
    int64_t i = 0;
    double r = 0;
    bool b = false;
    const char *s = NULL;
    assert_int_equal(acf_json_real(from, o, "lr", &r), ACF_EUSAGE);
    assert_string_equal(acf_error(), "options.json: 'lr' is text, expected a number");
    assert_int_equal(acf_json_int(from, o, "n", &i), ACF_EUSAGE);
    assert_string_equal(acf_error(), "options.json: 'n' is a number with a fraction, expected a whole number");
    assert_int_equal(acf_json_text(from, o, "none", &s), ACF_EUSAGE);
    assert_string_equal(acf_error(), "options.json: 'none' is null, expected text");
    assert_int_equal(acf_json_bool(from, o, "list", &b), ACF_EUSAGE);
    assert_string_equal(acf_error(), "options.json: 'list' is a list, expected true or false");
    assert_int_equal(acf_json_bool(from, o, "absent", &b), ACF_EUSAGE);
    assert_string_equal(acf_error(), "options.json: 'absent' is missing");
    assert_int_equal(acf_json_int(from, json_object_get(o, "k"), "x", &i), ACF_EUSAGE); /* not an object */
    assert_int_equal(acf_json_int(from, o, "k", &i), ACF_OK);
    assert_int_equal(acf_json_real(from, o, "k", &r), ACF_OK);
    assert_int_equal(acf_json_bool(from, o, "on", &b), ACF_OK);
    assert_int_equal(acf_json_text(from, o, "lr", &s), ACF_OK);
    assert_true(i == 3 && r == 3.0 && b);
    assert_string_equal(s, "fast");
    json_decref(o);
}

static void written_text_reads_back_equal(void **state) {
    (void)state;
    char out[512];
    json_t *v = parsed(
        "{\"b\": [1, -2.5, 1e300, 0.1, 5.0, 0.30000000000000004], \"a\": {\"q\": \"x\\\"\\\\\\n\\u0001\xc3\xbc\"}, "
        "\"e\": [], \"o\": {}, \"t\": true, \"f\": false, \"n\": null}");
    for (int indent = 0; indent <= 2; indent += 2) {
        acf_text t = acf_text_into(out, sizeof out);
        acf_json_write(&t, v, indent);
        assert_int_equal(acf_text_done(&t, NULL), ACF_OK);
        assert_int_equal(strchr(out, '\n') != NULL, indent > 0);
        json_t *back = parsed(out);
        assert_true(json_equal(v, back));
        json_decref(back);
    }
    acf_text t = acf_text_into(out, sizeof out);
    acf_json_write(&t, json_object_get(v, "b"), 0);
    assert_string_equal(out, "[1, -2.5, 1e+300, 0.1, 5.0, 0.30000000000000004]"); /* 5.0 stays a real */
    json_decref(v);
}

/* Cuts of a valid text, and random replacements of single bytes: they must be parsed or refused. Run under ASan. */
static void damaged_text_never_crashes(void **state) {
    (void)state;
    static const char good[] = "{\"threads\": 4, \"list\": [1.5e3, \"a\\u00fc\\n\", {\"x\": null}], \"on\": true}";
    char text[sizeof good];
    int refused = 0, taken = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        acf_rng_counter at = {1, i, ACF_STREAM_TEST, 0, 0};
        memcpy(text, good, sizeof good);
        size_t n = sizeof good - 1;
        if (i < n) n = i; /* each prefix first */
        for (uint32_t k = 0; i >= sizeof good && k < 1 + i % 3; k++) {
            at.column = k;
            at.draw = 0;
            size_t where = (size_t)acf_rng_below(at, (int64_t)n);
            at.draw = 1;
            text[where] = (char)acf_rng_below(at, 256);
        }
        json_t *v;
        acf_status status = acf_json_parse(from, text, n, 1000, &v);
        if (status == ACF_OK) json_decref(v);
        refused += status == ACF_EUSAGE;
        taken += status == ACF_OK;
    }
    assert_int_equal(refused + taken, 4000);
    assert_true(refused > 1000 && taken > 100);
}

/* jansson's memory fails at the n-th request, for every n. */
static int64_t calls_left;
static void *failing_malloc(size_t n) { return --calls_left < 0 ? NULL : malloc(n); }

static void memory_may_run_out(void **state) {
    (void)state;
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    int failures = 0, refused = 0;
    for (int64_t n = 0;; n++) {
        json_t *v = NULL;
        calls_left = n;
        json_set_alloc_funcs(failing_malloc, free);
        acf_status status = acf_json_parse(from, "{\"a\": [1, \"b\"]}", 15, 100, &v);
        if (v) json_decref(v);
        json_set_alloc_funcs(old_malloc, old_free);
        if (status == ACF_OK) break;
        assert_null(v);
        refused += status != ACF_EMEMORY; /* jansson reports two of these failures as a wrong token */
        failures++;
    }
    assert_true(failures > 3 && refused <= 2);
}

ACF_TESTS(json, cmocka_unit_test(wrong_text_is_refused_with_its_place), cmocka_unit_test(size_and_depth_are_bounded),
          cmocka_unit_test(types_are_named_in_sentences), cmocka_unit_test(written_text_reads_back_equal),
          cmocka_unit_test(damaged_text_never_crashes), cmocka_unit_test(memory_may_run_out))
