/* Tests of options.h, on a table of their own that has every type. */
#include "base/options.h"

#include "base/arena.h"
#include "harness/check.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const acf_option table[] = {
    {"epochs", ACF_OPTION_INT, 1, 1000, "10", "passes over the data", NULL, NULL, ACF_OPTION_RECORDED},
    {"lr", ACF_OPTION_REAL, 0.0, 1.0, "0.0001", "step size", NULL, NULL, ACF_OPTION_RECORDED},
    {"shift", ACF_OPTION_REAL, -DBL_MAX, DBL_MAX, "0", "any number", NULL, NULL, 0},
    {"long-format", ACF_OPTION_BOOL, 0, 0, "false", "one row a draw", NULL, NULL, 0},
    {"note", ACF_OPTION_TEXT, 0, 20, "", "kept with the model", NULL, NULL, ACF_OPTION_RECORDED},
    {"device", ACF_OPTION_CHOICE, 0, 0, "auto", "where to compute", "auto|cpu|cuda", NULL, 0},
    {"workers", ACF_OPTION_INT, 0, 64, "3", "a machine fact", NULL, "ACF_TEST_WORKERS", 0},
    {"rows", ACF_OPTION_INT, 1, 64, "8", "of a step", NULL, NULL, ACF_OPTION_AUTO},
};
enum { N = sizeof table / sizeof table[0] };
static const acf_json_source from = {"config.json", ACF_EUSAGE};

static int set_up(void **state) {
    unsetenv("ACF_TEST_WORKERS");
    return acf_options_make(table, N, (acf_options **)state) == ACF_OK ? 0 : -1;
}

static int tear_down(void **state) {
    acf_options_free(*state);
    return 0;
}

static void assert_value(const acf_options *o, const char *name, const char *expected) {
    char out[64];
    acf_text t = acf_text_into(out, sizeof out);
    assert_int_equal(acf_options_write(o, name, &t), ACF_OK);
    assert_string_equal(out, expected);
}

static void assert_refused(acf_options *o, const char *name, const char *value, const char *sentence) {
    assert_int_equal(acf_options_set_text(o, name, value), ACF_EUSAGE);
    assert_string_equal(acf_error(), sentence);
}

static acf_status load(acf_options *o, const char *text) {
    json_t *j;
    assert_int_equal(acf_json_parse(from, text, strlen(text), 10000, &j), ACF_OK);
    acf_status status = acf_options_from_json(o, from, j, ACF_FROM_FILE);
    json_decref(j);
    return status;
}

/* A number or the word `auto`, from every origin and back. */
static void a_number_may_be_auto(void **state) {
    acf_options *o = *state;
    json_t *all;
    assert_int_equal(acf_options_int(o, "rows"), 8);
    assert_int_equal(acf_options_set_text(o, "rows", "auto"), ACF_OK);
    assert_int_equal(acf_options_int(o, "rows"), ACF_INT_AUTO);
    assert_value(o, "rows", "auto");
    assert_int_equal(acf_options_to_json(o, ACF_OPTIONS_CHANGED, &all), ACF_OK);
    assert_string_equal(json_string_value(json_object_get(all, "rows")), "auto");
    assert_int_equal(acf_options_set_text(o, "rows", "9"), ACF_OK);
    assert_int_equal(acf_options_from_json(o, from, all, ACF_FROM_USER), ACF_OK);
    json_decref(all);
    assert_value(o, "rows", "auto");
    assert_int_equal(load(o, "{\"rows\": 5}"), ACF_OK); /* a farther origin than the user */
    assert_value(o, "rows", "auto");
    assert_refused(o, "rows", "0", "option 'rows' can't be '0', expected auto or a whole number from 1 to 64");
    assert_refused(o, "epochs", "auto", "option 'epochs' can't be 'auto', expected a whole number from 1 to 1000");
    assert_int_equal(load(o, "{\"rows\": \"Auto\"}"), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "config.json: option 'rows' can't be 'Auto', expected auto or a whole number from 1 to 64");
}

/* Values and origins, in memory of its own; every allocation may fail. */
static void copies_are_like_it(void **state) {
    acf_options *o = *state, *copy = NULL;
    assert_int_equal(acf_options_set_from(o, "note", "a preset's", ACF_FROM_PRESET), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "rows", "auto"), ACF_OK);
    for (int64_t n = 1;; n++) {
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        acf_status status = acf_options_copy(o, &copy);
        acf_alloc_fail_at(0);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    for (int i = 0; i < N; i++) {
        char value[256];
        acf_text t = acf_text_into(value, sizeof value);
        assert_int_equal(acf_options_write(o, table[i].name, &t), ACF_OK);
        assert_value(copy, table[i].name, value);
        assert_int_equal(acf_options_origin(copy, table[i].name), acf_options_origin(o, table[i].name));
    }
    assert_int_equal(acf_options_set_text(copy, "note", "another"), ACF_OK);
    assert_value(o, "note", "a preset's");
    acf_options_free(copy);
}

static void defaults_come_from_the_table(void **state) {
    acf_options *o = *state;
    assert_int_equal(acf_options_int(o, "epochs"), 10);
    assert_true(acf_options_real(o, "lr") == 1e-4);
    assert_false(acf_options_bool(o, "long-format"));
    assert_string_equal(acf_options_text(o, "note"), "");
    assert_int_equal(acf_options_choice(o, "device"), 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(acf_options_origin(o, table[i].name), ACF_FROM_DEFAULT);
        assert_value(o, table[i].name, table[i].standard);
    }
}

static void set_reads_every_type(void **state) {
    acf_options *o = *state;
    assert_int_equal(acf_options_set_text(o, "epochs", "1000"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "lr", "3e-4"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "long_format", "yes"), ACF_OK); /* an underscore is a dash */
    assert_int_equal(acf_options_set_text(o, "note", "first"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "note", "gr\xc3\xbc\xc3\x9f"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "device", "cuda"), ACF_OK);
    assert_int_equal(acf_options_int(o, "epochs"), 1000);
    assert_true(acf_options_real(o, "lr") == 3e-4);
    assert_true(acf_options_bool(o, "long-format"));
    assert_string_equal(acf_options_text(o, "note"), "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(acf_options_choice(o, "device"), 2);
    assert_value(o, "device", "cuda");
    assert_int_equal(acf_options_origin(o, "lr"), ACF_FROM_USER);
    assert_int_equal(acf_options_origin(o, "shift"), ACF_FROM_DEFAULT);
}

static void refusals_name_value_range_and_name(void **state) {
    acf_options *o = *state;
    assert_refused(o, "epochs", "0", "option 'epochs' can't be '0', expected a whole number from 1 to 1000");
    assert_refused(o, "epochs", "1001", "option 'epochs' can't be '1001', expected a whole number from 1 to 1000");
    assert_refused(o, "epochs", "ten", "option 'epochs' can't be 'ten', expected a whole number from 1 to 1000");
    assert_refused(o, "lr", "1.0001", "option 'lr' can't be '1.0001', expected a number from 0 to 1");
    assert_refused(o, "shift", "inf", "option 'shift' can't be 'inf', expected a number");
    assert_refused(o, "long-format", "maybe", "option 'long-format' can't be 'maybe', expected true or false");
    assert_refused(o, "note", "123456789012345678901",
                   "option 'note' can't be '123456789012345678901', expected UTF-8 text of at most 20 bytes");
    assert_refused(o, "note", "\xff", "option 'note' can't be '?', expected UTF-8 text of at most 20 bytes");
    assert_refused(o, "device", "gpu", "option 'device' can't be 'gpu', expected auto, cpu or cuda");
    assert_refused(o, "device", "cud", "option 'device' can't be 'cud', expected auto, cpu or cuda");
    assert_refused(o, "device", "", "option 'device' can't be '', expected auto, cpu or cuda");
    assert_refused(o, "epoch", "3", "unknown option 'epoch'; did you mean 'epochs'?");
    assert_refused(o, "zebra", "3", "unknown option 'zebra'");
    for (int i = 0; i < N; i++) assert_value(o, table[i].name, table[i].standard); /* nothing changed */
}

/* What acflow 0.1 called otherwise is refused with the name of today. */
static void old_names_are_refused_with_the_new(void **state) {
    (void)state;
    acf_options *o;
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    assert_refused(o, "members", "3", "the option 'members' is called 'ensemble' since acflow 0.2");
    assert_refused(o, "likelihood", "set", "option 'likelihood': 'set' is called 'sets' since acflow 0.2");
    acf_options_free(o);
}

static void the_environment_supplies_a_default(void **state) {
    (void)state;
    acf_options *o = NULL;
    setenv("ACF_TEST_WORKERS", "12", 1);
    assert_int_equal(acf_options_make(table, N, &o), ACF_OK);
    assert_int_equal(acf_options_int(o, "workers"), 12);
    assert_int_equal(acf_options_origin(o, "workers"), ACF_FROM_ENV);
    assert_int_equal(load(o, "{\"workers\": 5}"), ACF_OK); /* a file is a nearer origin */
    assert_int_equal(acf_options_int(o, "workers"), 5);
    acf_options_free(o);
    o = NULL;
    setenv("ACF_TEST_WORKERS", "many", 1);
    acf_status status = acf_options_make(table, N, &o);
    unsetenv("ACF_TEST_WORKERS");
    assert_int_equal(status, ACF_EUSAGE);
    assert_null(o);
    assert_string_equal(acf_error(), "environment variable ACF_TEST_WORKERS: option 'workers' can't be 'many', "
                                     "expected a whole number from 0 to 64");
}

static void a_file_is_taken_whole_or_not_at_all(void **state) {
    acf_options *o = *state;
    static const struct {
        const char *text, *sentence;
    } bad[] = {
        {"{\"epochs\": 7, \"lr\": \"fast\"}", "config.json: 'lr' is text, expected a number"},
        {"{\"epochs\": 7, \"note\": \"x\", \"devise\": \"cpu\"}",
         "config.json: unknown option 'devise'; did you mean 'device'?"},
        {"{\"note\": \"x\", \"epochs\": 5000}",
         "config.json: option 'epochs' can't be '5000', expected a whole number from 1 to 1000"},
        {"{\"epochs\": 7.5}", "config.json: 'epochs' is a number with a fraction, expected a whole number"},
        {"{\"epochs\": \"7\"}", "config.json: 'epochs' is text, expected a whole number"},
        {"{\"long-format\": 1}", "config.json: 'long-format' is a whole number, expected true or false"},
        {"{\"device\": null}", "config.json: 'device' is null, expected text"},
        {"{\"long-format\": true, \"long_format\": false}", "config.json: option 'long-format' is given twice"},
        {"[1]", "config.json: options are an object, like {\"name\": value}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(load(o, bad[i].text), ACF_EUSAGE);
        assert_string_equal(acf_error(), bad[i].sentence);
        for (int k = 0; k < N; k++) assert_value(o, table[k].name, table[k].standard);
    }
    assert_int_equal(load(o, "{\"epochs\": 7, \"note\": \"hello\", \"lr\": 1, \"device\": \"cpu\"}"), ACF_OK);
    assert_int_equal(acf_options_int(o, "epochs"), 7);
    assert_string_equal(acf_options_text(o, "note"), "hello");
    assert_true(acf_options_real(o, "lr") == 1.0); /* a whole number is a number */
    assert_int_equal(acf_options_origin(o, "lr"), ACF_FROM_FILE);
}

static void the_user_wins_over_a_file_in_any_order(void **state) {
    acf_options *o = *state;
    assert_int_equal(acf_options_set_text(o, "note", "mine"), ACF_OK);
    assert_int_equal(load(o, "{\"note\": \"file\", \"epochs\": 7}"), ACF_OK);
    assert_string_equal(acf_options_text(o, "note"), "mine");
    assert_int_equal(acf_options_set_text(o, "epochs", "8"), ACF_OK);
    assert_int_equal(acf_options_int(o, "epochs"), 8);
    assert_int_equal(acf_options_set_text(o, "epochs", "9"), ACF_OK); /* the later value of the same origin wins */
    assert_int_equal(acf_options_int(o, "epochs"), 9);
}

static void json_round_trip_is_exact(void **state) {
    acf_options *o = *state, *copy;
    char number[ACF_NUMBER_MAX];
    static const double reals[] = {0.1, 1.0 / 3.0, 0.30000000000000004, 5e-324, 1.0 - DBL_EPSILON / 2.0, 0.0};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        assert_int_equal(acf_options_set_text(o, "lr", acf_text_real(number, reals[i])), ACF_OK);
        assert_int_equal(acf_options_set_text(o, "shift", "-1.7976931348623157e308"), ACF_OK);
        assert_int_equal(acf_options_set_text(o, "note", "\"\\\n\t\xc3\xbc"), ACF_OK);
        assert_int_equal(acf_options_set_text(o, "device", "cpu"), ACF_OK);
        json_t *j, *back;
        char text[1024];
        size_t needed;
        assert_int_equal(acf_options_to_json(o, ACF_OPTIONS_ALL, &j), ACF_OK);
        acf_text t = acf_text_into(text, sizeof text);
        acf_json_write(&t, j, 2);
        assert_int_equal(acf_text_done(&t, &needed), ACF_OK);
        assert_int_equal(acf_json_parse(from, text, needed - 1, sizeof text, &back), ACF_OK);
        assert_int_equal(acf_options_make(table, N, &copy), ACF_OK);
        assert_int_equal(acf_options_from_json(copy, from, back, ACF_FROM_FILE), ACF_OK);
        assert_true(acf_options_real(copy, "lr") == reals[i]);
        assert_true(acf_options_real(copy, "shift") == -DBL_MAX);
        assert_string_equal(acf_options_text(copy, "note"), "\"\\\n\t\xc3\xbc");
        assert_int_equal(acf_options_choice(copy, "device"), 1);
        acf_options_free(copy);
        json_decref(j);
        json_decref(back);
    }
}

static void json_of_some_options(void **state) {
    acf_options *o = *state;
    char text[256];
    json_t *j;
    assert_int_equal(acf_options_set_text(o, "device", "cpu"), ACF_OK);
    assert_int_equal(load(o, "{\"lr\": 0.5}"), ACF_OK);
    assert_int_equal(acf_options_to_json(o, ACF_OPTIONS_CHANGED, &j), ACF_OK);
    acf_text t = acf_text_into(text, sizeof text);
    acf_json_write(&t, j, 0);
    assert_string_equal(text, "{\"lr\": 0.5, \"device\": \"cpu\"}");
    json_decref(j);
    assert_int_equal(acf_options_to_json(o, ACF_OPTIONS_RECORDED, &j), ACF_OK);
    t = acf_text_into(text, sizeof text);
    acf_json_write(&t, j, 0);
    assert_string_equal(text, "{\"epochs\": 10, \"lr\": 0.5, \"note\": \"\"}");
    json_decref(j);
}

static void bounds_can_be_asked_for(void **state) {
    acf_options *o = *state;
    const acf_option *d = acf_options_find(o, "epochs");
    assert_non_null(d);
    assert_true(d->min == 1.0 && d->max == 1000.0);
    assert_null(acf_options_find(o, "nothing"));
    assert_int_equal(acf_options_count(o), N);
    assert_ptr_equal(acf_options_row(o, N - 1), &table[N - 1]);
}

/* Each allocation of each call fails in turn: a clean status, no leak, no partial change. */
static void memory_may_run_out(void **state) {
    acf_options *o = *state, *made = NULL;
    int64_t live = acf_alloc_live();
    for (int64_t n = 1; !made; n++) {
        acf_alloc_fail_at(n);
        acf_status status = acf_options_make(table, N, &made);
        acf_alloc_fail_at(0);
        if (status != ACF_OK) assert_int_equal(status, ACF_EMEMORY);
        if (status != ACF_OK) assert_int_equal(acf_alloc_live(), live);
    }
    acf_options_free(made);
    acf_alloc_fail_at(1);
    assert_int_equal(acf_options_set_text(o, "note", "x"), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_value(o, "note", "");
    for (int64_t n = 1; n <= 2; n++) {
        acf_alloc_fail_at(n);
        assert_int_equal(load(o, "{\"epochs\": 7, \"note\": \"x\"}"), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        assert_int_equal(acf_options_int(o, "epochs"), 10);
    }
}

/* Finds defaults that do not pass their own checks, equal names, and help that ends in a full stop. */
static void the_real_table_is_sound(void **state) {
    (void)state;
    acf_options *o;
    unsetenv("ACF_NUM_THREADS");
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    for (int i = 0; i < acf_option_count; i++) {
        const acf_option *d = &acf_option_table[i];
        assert_ptr_equal(acf_options_find(o, d->name), d); /* the first of that name */
        assert_null(strchr(d->name, '_'));
        assert_true(strlen(d->name) < 40 && strlen(d->help) > 0);
        assert_int_not_equal(d->help[strlen(d->help) - 1], '.');
        assert_true(d->help[0] >= 'A' && d->help[0] <= 'Z');
        assert_int_not_equal(d->section, ACF_SECTION_NONE);
        assert_true(*acf_option_section_name(d->section));
        assert_int_equal(d->type == ACF_OPTION_CHOICE, d->choices != NULL);
    }
    assert_int_equal(acf_options_choice(o, "log-level"), 2); /* warn */
    acf_options_free(o);
}

#define WITH_SET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(options, cmocka_unit_test(old_names_are_refused_with_the_new), WITH_SET(a_number_may_be_auto),
          WITH_SET(defaults_come_from_the_table), WITH_SET(copies_are_like_it), WITH_SET(set_reads_every_type),
          WITH_SET(refusals_name_value_range_and_name), cmocka_unit_test(the_environment_supplies_a_default),
          WITH_SET(a_file_is_taken_whole_or_not_at_all), WITH_SET(the_user_wins_over_a_file_in_any_order),
          WITH_SET(json_round_trip_is_exact), WITH_SET(json_of_some_options), WITH_SET(bounds_can_be_asked_for),
          WITH_SET(memory_may_run_out), cmocka_unit_test(the_real_table_is_sound))
