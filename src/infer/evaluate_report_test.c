/* Reports of an evaluation: which baseline wins, in words; JSON with everything in it. */
#include "harness/lab.h"
#include "infer/evaluate.h"

#include <math.h>
#include <string.h>

static const acf_eval_settings set = {.hide = 0.2, .masks = 3, .draws = 19, .seed = 4};
static const acf_scores empty = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

/* An evaluation with these scores and columns: a number 'a', a class 'kind', a number 'b'. */
static acf_evaluation by_hand(acf_scores *score, acf_column *column) {
    acf_evaluation e = {.rows = 10,
                        .columns = 3,
                        .observed = 30,
                        .hidden = 6,
                        .set = set,
                        .fitted = true,
                        .chosen = true,
                        .column = column,
                        .methods = 4,
                        .score = score};
    for (int i = 0; i < 16; i++) score[i] = empty, score[i].cells = 2;
    for (int m = 0; m < 3; m++) {
        acf_scores *s = score + m * 4;
        s[0].nrmse = 1 - 0.1 * m, s[2].nrmse = 0.9 - 0.1 * m, s[3].nrmse = 0.95 - 0.1 * m;
        s[1].pfc = s[3].pfc = 0.5 - 0.1 * m;
        if (m) s[0].coverage = s[2].coverage = s[3].coverage = 0.8 + 0.05 * m;
    }
    score[11].nll = -0.25, score[11].nll_deviation = 0.125;
    return e;
}

static char *text_of(const acf_evaluation *e) {
    static char out[8192];
    acf_text t = acf_text_into(out, sizeof out);
    size_t needed;
    acf_evaluation_text(e, &t);
    assert_int_equal(acf_text_done(&t, &needed), ACF_OK);
    for (const char *p = out; *p; p++)
        if (p[0] == ' ' && p[1] == '\n') fail_msg("a line of the report ends with a space");
    return out;
}

static void names_winning_baselines(void **state) {
    (void)state;
    acf_scores score[16];
    acf_column column[3] = {{"a", 0}, {"kind", 2}, {"b", 0}};
    acf_evaluation e = by_hand(score, column);
    for (int k = 0; k < acf_metric_count; k++)
        for (int j = -1; j < 3; j++) assert_int_equal(acf_evaluation_winner(&e, k, j), -1);
    assert_non_null(strstr(text_of(&e), "No baseline is better than acflow, over all or in any column."));
    assert_non_null(strstr(text_of(&e), "-0.250 ± 0.125"));
    assert_non_null(
        strstr(text_of(&e),
               "6 of the 30 known cells of 10 rows and 3 columns were hidden; the model was fitted to the others."));
    static const char *const named[] = {"\nNRMSE  ", "\nPFC    ", "\nCRPS   ", "\n90 %   ",
                                        "\nW1     ", "\nTV     ", "\nNLL    "};
    for (size_t k = 0; k < sizeof named / sizeof *named; k++)
        assert_non_null(strstr(text_of(&e), named[k])); /* each is explained */

    assert_null(strstr(text_of(&e), "\nRows: "));
    e.rows_alone = (acf_row_scores){8, 5, 1.5, 0.25, 2.75, NAN};
    assert_non_null(strstr(
        text_of(&e),
        "Mean over 8 rows for each mask; ± is the deviation over 5 masks.\n    1.500 ± 0.250  numbers standardised"));
    assert_non_null(strstr(text_of(&e), "\n    2.750  numbers in the table's own units\n"));

    score[4 + 2].nrmse = 0.65; /* linear, column b */
    assert_int_equal(acf_evaluation_winner(&e, 0, 2), ACF_EVAL_LINEAR);
    assert_int_equal(acf_evaluation_winner(&e, 0, -1), -1);
    assert_null(strstr(text_of(&e), "No baseline"));
    assert_non_null(strstr(text_of(&e), "    NRMSE  in 1 of 2 columns: b\n"));
    assert_non_null(strstr(text_of(&e), "*0.650"));
    score[3].nrmse = 0.6, score[7].nrmse = 0.7; /* both baselines over all: the better one is named */
    assert_non_null(strstr(text_of(&e), "    NRMSE  over all: mean or most frequent, 0.600 against 0.750\n"));
    score[4 + 1].pfc = score[8 + 1].pfc; /* a tie is no win */
    assert_int_equal(acf_evaluation_winner(&e, 1, 1), -1);
    score[4 + 1].pfc = score[8 + 1].pfc - 1e-7; /* nor is a difference that is not printed */
    assert_int_equal(acf_evaluation_winner(&e, 1, 1), -1);
    score[4 + 1].pfc = score[8 + 1].pfc - 1e-3;
    assert_int_equal(acf_evaluation_winner(&e, 1, 1), ACF_EVAL_LINEAR);
    score[4 + 1].pfc = score[8 + 1].pfc;
    score[8 + 3].coverage = 0.96; /* coverage too high is as bad as too low */
    assert_int_equal(acf_evaluation_winner(&e, 3, -1), ACF_EVAL_LINEAR);
    assert_non_null(strstr(text_of(&e), "    90 %   over all: linear regressions, 0.850 against 0.960\n"));
    e.fitted = e.chosen = false;
    assert_non_null(strstr(text_of(&e),
                           "6 of the 30 known cells of 10 rows and 3 columns are missing from the table to complete; "
                           "the model was given"));
}

/* Every listed win has a star or its figures, and no other score has a star. Differences that are not printed are no
 * wins. */
static void stars_match_the_text(void **state) {
    (void)state;
    acf_scores score[16];
    acf_column column[3] = {{.name = "a"}, {.name = "kind", .classes = 2}, {.name = "b"}};
    acf_evaluation e = by_hand(score, column);
    score[4 + 0].coverage = 0.9,
              score[8 + 0].coverage = 0.8; /* linear is nearer in one column, which is chance and not reported */
    assert_null(strstr(text_of(&e), " *"));
    assert_non_null(strstr(text_of(&e), "No baseline is better"));
    assert_non_null(strstr(text_of(&e), "compared over all columns only"));
    score[4 + 3].coverage = 0.907, score[8 + 3].coverage = 0.9072; /* equal as printed */
    assert_int_equal(acf_evaluation_winner(&e, 3, -1), -1);
    score[4 + 3].coverage = 0.9, score[8 + 3].coverage = 0.891; /* chance */
    assert_null(strstr(text_of(&e), "90 %   over all"));
    score[8 + 3].coverage = 0.89;
    assert_non_null(strstr(text_of(&e), "    90 %   over all: linear regressions, 0.900 against 0.890\n"));
    score[4 + 3].coverage = 0.85, score[8 + 3].coverage = 0.9;
    score[2].crps = 0.512, score[4 + 2].crps = 0.6, score[8 + 2].crps = 0.53; /* the mean's CRPS is in no table */
    assert_null(strstr(text_of(&e), " *"));
    assert_non_null(
        strstr(text_of(&e), "    CRPS   in 1 of 1 column: b (mean or most frequent, 0.512 against 0.530)\n"));
    score[4 + 2].crps = 0.5;
    assert_non_null(strstr(text_of(&e), "*0.500"));
    assert_non_null(strstr(text_of(&e), "    CRPS   in 1 of 1 column: b\n"));
    score[4 + 2].crps = score[2].crps = 0.6;
    score[4 + 2].nrmse = 0.0624, score[8 + 2].nrmse = 0.0625; /* both 0.062: printf rounds halves to even */
    assert_int_equal(acf_evaluation_winner(&e, 0, 2), -1);
    score[2].nrmse = 2e6, score[4 + 2].nrmse = 1234111, score[8 + 2].nrmse = 1234999; /* both 1.23e+06 */
    assert_int_equal(acf_evaluation_winner(&e, 0, 2), -1);
    assert_null(strstr(text_of(&e), " *"));
    score[4 + 3].nrmse = 1200000, score[8 + 3].nrmse = 1300000, score[3].nrmse = 2e6;
    assert_non_null(strstr(text_of(&e), "over all: linear regressions, 1.2e+06 against 1.3e+06\n"));
}

/* Long names, many columns: the report stays readable and inside its buffer. */
static void many_columns_are_counted(void **state) {
    (void)state;
    enum { MANY = 40 };
    static acf_scores score[4 * (MANY + 1)];
    static acf_column column[MANY];
    for (int j = 0; j < MANY; j++)
        column[j].name = "ein überaus langer Name einer Spalte, der in keine Tabelle passt und doch gezeigt wird";
    for (int i = 0; i < 4 * (MANY + 1); i++)
        score[i] = empty, score[i].cells = 1, score[i].nrmse = 0.5 + i / (MANY + 1);
    acf_evaluation e = {.rows = 1, .columns = MANY, .column = column, .methods = 4, .score = score, .set = set};
    static char out[20000];
    acf_text t = acf_text_into(out, sizeof out);
    acf_evaluation_text(&e, &t);
    assert_int_equal(acf_text_done(&t, NULL), ACF_OK);
    assert_non_null(strstr(out, "in 40 of 40 columns:"));
    assert_non_null(strstr(out, "and 32\n") ? out : strstr(out, "and 32 more"));
}

static void json_has_everything(void **state) {
    (void)state;
    acf_scores score[16];
    acf_column column[3] = {{"a", 0}, {NULL, 2}, {"b \"quoted\"", 0}};
    acf_evaluation e = by_hand(score, column);
    score[4 + 2].nrmse = 0.65;
    json_t *j;
    assert_int_equal(acf_evaluation_json(&e, &j), ACF_OK);
    assert_int_equal(json_integer_value(json_object_get(j, "hidden")), 6);
    assert_true(json_is_true(json_object_get(j, "fitted")));
    json_t *names = json_object_get(j, "columns"), *methods = json_object_get(j, "methods"),
           *wins = json_object_get(j, "baseline_wins");
    assert_string_equal(json_string_value(json_object_get(json_array_get(names, 2), "name")), "b \"quoted\"");
    assert_string_equal(json_string_value(json_object_get(json_array_get(names, 1), "name")), "column 1");
    assert_int_equal(json_array_size(methods), 4);
    json_t *model = json_array_get(methods, 2), *cells = json_array_get(json_object_get(model, "columns"), 1);
    assert_true(json_real_value(json_object_get(json_object_get(model, "overall"), "nll_deviation")) == 0.125);
    assert_true(json_is_null(json_object_get(cells, "nrmse")));
    acf_assert_close(json_real_value(json_object_get(cells, "pfc")), 0.3, 1e-15, "pfc");
    assert_int_equal(json_array_size(wins), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(wins, 0), "score")), "nrmse");
    assert_true(json_is_null(json_object_get(j, "rows_half_given")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(wins, 0), "column")), 2);
    json_decref(j);
    e.rows_alone = (acf_row_scores){8, 5, 1.5, 0.25, 2.75, NAN};
    assert_int_equal(acf_evaluation_json(&e, &j), ACF_OK);
    const json_t *rows = json_object_get(j, "rows_half_given");
    assert_true(json_real_value(json_object_get(rows, "nll_standardised")) == 1.5);
    assert_true(json_real_value(json_object_get(rows, "nll_own_units")) == 2.75);
    assert_true(json_is_null(json_object_get(rows, "nll_own_units_deviation")));
    json_decref(j);
}

static void methods_have_names(void **state) {
    (void)state;
    int n = 0;
    while (acf_evaluation_method(n)) n++;
    assert_true(n > ACF_EVAL_MODEL && acf_evaluation_method(-1) == NULL);
}

ACF_TESTS(evaluate_report, cmocka_unit_test(names_winning_baselines), cmocka_unit_test(stars_match_the_text),
          cmocka_unit_test(many_columns_are_counted), cmocka_unit_test(json_has_everything),
          cmocka_unit_test(methods_have_names))
