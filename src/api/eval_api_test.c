/* Tests of evaluation through the public header alone: a table in, scores and reports out. */
#include "acflow.h"

#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, COLS = 3, CELLS = ROWS * COLS };

static acf_table *make_table(void) {
    static double x[CELLS];
    static const int32_t classes[COLS] = {0, 3, 0};
    static const char *const names[COLS] = {"height", "kind", "weight"};
    acf_table *t;
    for (int i = 0; i < ROWS; i++) {
        int c = i % 3;
        x[i * 3] = 5 * c + sin(12.9898 * i), x[i * 3 + 1] = c, x[i * 3 + 2] = -c + 0.2 * sin(78.233 * i);
        if (i % 9 == 0) x[i * 3 + i % 2] = NAN;
    }
    assert_int_equal(acf_table_create(x, NULL, ROWS, COLS, classes, names, &t), ACF_OK);
    return t;
}

static acf_options *small(const char *threads) {
    static const char *const set[][2] = {
        {"steps", "30"},     {"mlp-width", "8"},   {"coupling-units", "8"}, {"likelihood-units", "8"},
        {"components", "3"}, {"batch", "64"},      {"valid-every", "15"},   {"flow", "linear leaky rnn"},
        {"eval-masks", "2"}, {"eval-draws", "19"}, {"ensemble", "1"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        assert_int_equal(acf_options_set(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_options_set(o, "threads", threads), ACF_OK);
    return o;
}

static int count_steps(void *ctx, const acf_fit_report *r) {
    *(int *)ctx += r->pass == 1;
    return 0;
}

static char *report_of(const acf_evaluation *e, acf_format format) {
    size_t needed = 0, again = 0;
    assert_int_equal(acf_eval_report(e, format, NULL, 0, &needed), ACF_ESPACE);
    char *out = malloc(needed);
    assert_non_null(out);
    assert_int_equal(acf_eval_report(e, format, out, needed - 1, &again), ACF_ESPACE);
    assert_int_equal(again, needed);
    assert_int_equal(acf_eval_report(e, format, out, needed, &again), ACF_OK);
    assert_int_equal(strlen(out) + 1, needed);
    return out;
}

/* The same scores, to the bit, for any number of threads. */
static void evaluates_a_table(void **state) {
    (void)state;
    acf_table *t = make_table();
    char *text[2];
    for (int k = 0; k < 2; k++) {
        acf_options *o = small(k ? "2" : "1");
        acf_evaluation *e;
        acf_scores s;
        int steps = 0;
        if (acf_eval_run(t, NULL, NULL, o, count_steps, &steps, &e)) fail_msg("%s", acf_error());
        assert_int_equal(steps, 30);
        assert_true(acf_eval_methods(e) >= 3 && acf_eval_method(e, 2) && !acf_eval_method(e, acf_eval_methods(e)));
        assert_int_equal(acf_eval_scores(e, 2, -1, &s), ACF_OK);
        assert_true(s.cells == 87 && isfinite(s.nrmse) && isfinite(s.pfc) && isfinite(s.crps) && isfinite(s.w1) &&
                    isfinite(s.tv));
        assert_true(s.coverage >= 0 && s.coverage <= 1 && isfinite(s.nll) && s.nll_deviation >= 0);
        assert_int_equal(acf_eval_scores(e, 1, 0, &s), ACF_OK);
        assert_true(s.nrmse < 0.5 && isnan(s.pfc)); /* a straight line predicts the height */
        assert_int_equal(acf_eval_scores(e, 9, 0, &s), ACF_EUSAGE);
        assert_int_equal(acf_eval_scores(e, 0, COLS, &s), ACF_EUSAGE);
        text[k] = report_of(e, ACF_TEXT);
        assert_non_null(strstr(text[k], "height"));
        char *json = report_of(e, ACF_JSON);
        assert_non_null(strstr(json, "\"baseline_wins\""));
        free(json);
        acf_eval_free(e);
        acf_options_free(o);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]), free(text[1]);
    acf_table_free(t);
}

/* A model that is given is not fitted again. */
static void scores_a_model_as_it_is(void **state) {
    (void)state;
    acf_table *t = make_table();
    acf_options *o = small("1");
    acf_model *m;
    acf_evaluation *e;
    int steps = 0;
    if (acf_model_fit(t, o, NULL, NULL, &m)) fail_msg("%s", acf_error());
    if (acf_eval_run(t, NULL, m, o, count_steps, &steps, &e)) fail_msg("%s", acf_error());
    assert_int_equal(steps, 0);
    acf_row_scores r;
    assert_int_equal(acf_eval_row_scores(e, &r), ACF_OK);
    assert_true(r.rows == ROWS && r.masks == 2 && isfinite(r.standardised) && isfinite(r.own) && r.own_deviation >= 0);
    assert_int_equal(acf_eval_row_scores(NULL, &r), ACF_EUSAGE);
    acf_eval_free(e);
    acf_model_free(m);
    acf_options_free(o);
    acf_table_free(t);
}

static void wrong_calls_get_a_sentence(void **state) {
    (void)state;
    acf_table *t = make_table();
    acf_options *o = small("1");
    acf_evaluation *e = NULL;
    assert_int_equal(acf_eval_run(NULL, NULL, NULL, o, NULL, NULL, &e), ACF_EUSAGE);
    assert_int_equal(acf_eval_run(t, NULL, NULL, NULL, NULL, NULL, &e), ACF_EUSAGE);
    assert_int_equal(acf_options_set(o, "eval-rate", "1.5"), ACF_EUSAGE);
    assert_int_equal(acf_options_set(o, "eval-draws", "1"), ACF_OK); /* for images even 0 */
    assert_int_equal(acf_eval_run(t, NULL, NULL, o, NULL, NULL, &e), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "eval-draws is 1"));
    assert_null(e);
    acf_eval_free(NULL);
    assert_int_equal(acf_eval_methods(NULL), 0);
    acf_options_free(o);
    acf_table_free(t);
}

ACF_TESTS(eval_api, cmocka_unit_test(evaluates_a_table), cmocka_unit_test(scores_a_model_as_it_is),
          cmocka_unit_test(wrong_calls_get_a_sentence))
