/* Tests of the public interface from fit to queries, through acflow.h alone. */
#include "acflow.h"

#include "harness/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 120, COLS = 3, CELLS = ROWS * COLS };

static double x[CELLS];
static const int32_t classes[COLS] = {0, 3, 0};

/* Reals around their class, a sixth of the cells missing. */
static int make_table(void **state) {
    for (int i = 0; i < ROWS; i++) {
        int c = i % 3;
        x[i * 3] = 5 * c + sin(12.9898 * i), x[i * 3 + 1] = c, x[i * 3 + 2] = -c + 0.2 * sin(78.233 * i);
        for (int j = 0; j < COLS; j++)
            if ((i * 7 + j * 3) % 6 == 0) x[i * 3 + j] = NAN;
    }
    return acf_table_create(x, NULL, ROWS, COLS, classes, NULL, (acf_table **)state) == ACF_OK ? 0 : -1;
}

static int free_table(void **state) {
    acf_table_free(*state);
    return 0;
}

static acf_options *small(const char *threads) {
    static const char *const set[][2] = {
        {"steps", "40"},     {"mlp-width", "8"}, {"coupling-units", "8"}, {"likelihood-units", "8"},
        {"components", "3"}, {"batch", "64"},    {"valid-every", "20"},   {"flow", "linear leaky rnn"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        assert_int_equal(acf_options_set(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_options_set(o, "threads", threads), ACF_OK);
    return o;
}

static acf_model *fit(const acf_table *t, const char *threads) {
    acf_options *o = small(threads);
    acf_model *m;
    if (acf_model_fit(t, o, NULL, NULL, &m)) fail_msg("%s", acf_error());
    acf_options_free(o);
    return m;
}

static void scores(const acf_model *m, const acf_table *t, double *out) {
    acf_session *s;
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    if (acf_session_logp(s, t, NULL, NULL, out)) fail_msg("%s", acf_error());
    acf_session_free(s);
}

static void fits_saves_loads_and_answers(void **state) {
    const acf_table *t = *state;
    acf_model *m = fit(t, "2"), *again;
    char path[64];
    double first[ROWS], second[ROWS], out[CELLS], mean[CELLS], quantile[2 * CELLS];
    snprintf(path, sizeof path, "/tmp/acflow-api-%d.safetensors", (int)getpid());
    assert_int_equal(acf_model_columns(m), COLS);
    scores(m, t, first);
    if (acf_model_save(m, path)) fail_msg("%s", acf_error());
    if (acf_model_load(path, NULL, &again)) fail_msg("%s", acf_error());
    unlink(path);
    scores(again, t, second);
    assert_memory_equal(first, second, sizeof first);
    acf_session *s;
    assert_int_equal(acf_session_create(again, &s), ACF_OK);
    assert_int_equal(acf_session_draw(s, t, NULL, NULL, 1, 0, out), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (!isnan(x[i]))
            assert_true(out[i] == x[i]);
        else
            assert_true(isfinite(out[i]) && (i % 3 != 1 || out[i] == 0 || out[i] == 1 || out[i] == 2));
    }
    assert_int_equal(acf_session_guess(s, t, NULL, NULL, out), ACF_OK);
    assert_int_equal(acf_session_mean(s, t, NULL, NULL, out), ACF_OK);
    for (int i = 0; i < CELLS; i++) assert_true(isfinite(out[i]) && (isnan(x[i]) || out[i] == x[i]));
    assert_int_equal(acf_session_cells(s, t, out), ACF_OK);
    assert_int_equal(acf_session_summary(s, t, NULL, NULL, 1, 5, (double[]){0.05, 0.95}, 2, mean, quantile), ACF_OK);
    for (int i = 0; i < CELLS; i++)
        if (isnan(x[i])) assert_true(quantile[i] <= mean[i] && mean[i] <= quantile[CELLS + i]);
    double low[CELLS], high[CELLS];
    assert_int_equal(acf_session_mean(s, t, NULL, NULL, out), ACF_OK);
    assert_int_equal(acf_session_interval(s, t, NULL, NULL, 0.9, mean, low, high), ACF_OK);
    assert_memory_equal(mean, out, sizeof mean);
    for (int i = 0; i < CELLS; i++) {
        if (isnan(x[i]) && i % 3 != 1)
            assert_true(low[i] <= mean[i] && mean[i] <= high[i]);
        else
            assert_true(isnan(low[i]) && isnan(high[i]));
    }
    static const double none[] = {0, 1, NAN};
    for (int k = 0; k < 3; k++)
        assert_int_equal(acf_session_interval(s, t, NULL, NULL, none[k], NULL, low, high), ACF_EUSAGE);
    assert_string_equal(acf_error(), "an interval of level nan; expected a number between 0 and 1");
    assert_int_equal(acf_session_interval(s, t, NULL, NULL, 0.9, NULL, NULL, high), ACF_EUSAGE);
    acf_session_free(s);
    acf_model_free(again);
    acf_model_free(m);
}

/* The precision of queries is set when the model is loaded; a CPU has no tf32. */
static void answers_in_a_precision_that_is_there(void **state) {
    acf_model *m = fit(*state, "2"), *again = NULL;
    acf_options *o;
    char path[64];
    double first[ROWS], second[ROWS];
    snprintf(path, sizeof path, "/tmp/acflow-answers-%d.safetensors", (int)getpid());
    scores(m, *state, first);
    assert_int_equal(acf_model_save(m, path), ACF_OK);
    assert_int_equal(acf_options_create(&o), ACF_OK);
    assert_int_equal(acf_options_set(o, "device", "cpu"), ACF_OK);
    assert_int_equal(acf_options_set(o, "query-precision", "float"), ACF_OK);
    assert_int_equal(acf_model_load(path, o, &again), ACF_OK);
    scores(again, *state, second);
    assert_memory_equal(first, second, sizeof first);
    acf_model_free(again);
    assert_int_equal(acf_options_set(o, "query-precision", "tf32"), ACF_OK);
    assert_int_equal(acf_model_load(path, o, &again), ACF_EDEVICE);
    assert_string_equal(acf_error(),
                        "the option 'query-precision' is tf32, which needs a GPU; use query-precision float");
    unlink(path);
    acf_options_free(o);
    acf_model_free(m);
}

static void threads_do_not_change_the_model(void **state) {
    double first[ROWS], second[ROWS];
    acf_model *one = fit(*state, "1"), *two = fit(*state, "2");
    scores(one, *state, first);
    scores(two, *state, second);
    assert_memory_equal(first, second, sizeof first);
    acf_model_free(one);
    acf_model_free(two);
}

static void wrong_calls_get_a_sentence(void **state) {
    acf_model *m = NULL;
    acf_options *o, *general;
    acf_table *t = NULL, *narrow;
    acf_session *s;
    double out[ROWS], bad[2] = {1, 7}, inf[1] = {INFINITY};
    assert_int_equal(acf_options_create(&general), ACF_OK);
    assert_int_equal(acf_model_fit(NULL, general, NULL, NULL, &m), ACF_EUSAGE);
    assert_string_equal(acf_error(), "acf_model_fit: 't' is NULL");
    assert_int_equal(acf_table_create(bad, NULL, 2, 1, (int32_t[]){3}, NULL, &t), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "row 1"));
    assert_int_equal(acf_table_create(inf, NULL, 1, 1, NULL, NULL, &t), ACF_EDATA);
    assert_int_equal(acf_table_create(NULL, NULL, 1, 1, NULL, NULL, &t), ACF_EUSAGE);
    assert_int_equal(acf_model_load("/tmp/no-such-model", NULL, &m), ACF_EIO);
    o = small("1");
    assert_int_equal(acf_options_set(o, "flow", "linear spline"), ACF_OK);
    assert_int_equal(acf_model_fit(*state, o, NULL, NULL, &m), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "spline"));
    assert_null(m);
    m = fit(*state, "1");
    assert_int_equal(acf_table_create(out, NULL, 0, 2, NULL, NULL, &narrow), ACF_OK);
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    assert_int_equal(acf_session_logp(s, narrow, NULL, NULL, out), ACF_ESHAPE);
    assert_int_equal(acf_session_logp(s, *state, NULL, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_session_mean(s, narrow, NULL, NULL, out), ACF_ESHAPE);
    assert_int_equal(acf_session_mean(s, *state, NULL, NULL, NULL), ACF_EUSAGE);
    acf_session_free(s);
    acf_table_free(narrow);
    acf_model_free(m);
    acf_options_free(o);
    acf_options_free(general);
    acf_model_free(NULL), acf_session_free(NULL), acf_table_free(NULL);
}

/* A table without an observed cell gives a sentence, not a model. */
static void an_empty_table_is_refused(void **state) {
    (void)state;
    acf_options *o = small("1");
    acf_table *t;
    acf_model *m = NULL;
    double none[4] = {NAN, NAN, NAN, NAN};
    assert_int_equal(acf_table_create(none, NULL, 2, 2, NULL, NULL, &t), ACF_OK);
    assert_int_equal(acf_model_fit(t, o, NULL, NULL, &m), ACF_EDATA);
    acf_table_free(t);
    acf_options_free(o);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, make_table, free_table)
ACF_TESTS(model_api, WITH_TABLE(fits_saves_loads_and_answers), WITH_TABLE(answers_in_a_precision_that_is_there),
          WITH_TABLE(threads_do_not_change_the_model), WITH_TABLE(wrong_calls_get_a_sentence),
          cmocka_unit_test(an_empty_table_is_refused))
