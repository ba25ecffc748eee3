/* An evaluation as text and as JSON: see evaluate.h. */
#include "infer/evaluate.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const acf_metric acf_metrics[] = {
    {"nrmse", "NRMSE", offsetof(acf_scores, nrmse)}, {"pfc", "PFC", offsetof(acf_scores, pfc)},
    {"crps", "CRPS", offsetof(acf_scores, crps)},    {"coverage", "90 %", offsetof(acf_scores, coverage)},
    {"w1", "W1", offsetof(acf_scores, w1)},          {"tv", "TV", offsetof(acf_scores, tv)},
    {"nll", "NLL", offsetof(acf_scores, nll)},
};
enum { NRMSE, PFC, CRPS, COVERAGE, W1, TV, NLL, METRICS };
_Static_assert(sizeof acf_metrics / sizeof acf_metrics[0] == METRICS, "a number for each score");
const int acf_metric_count = METRICS;

#define NAME_WIDTH 26 /* of the first column of a text table */
#define FIELD_WIDTH 9 /* of the others */
#define WINS_SHOWN 8  /* columns named per score, before the rest is counted */

static double score_of(const acf_evaluation *e, int method, int metric, int64_t column) {
    return *(const double *)((const char *)acf_evaluation_scores(e, method, column) + acf_metrics[metric].at);
}

/* A score as in the report: three decimals, or few digits for large numbers. */
static void write_score(acf_text *t, double v) { acf_text_addf(t, fabs(v) < 1000 ? "%.3f" : "%.3g", v); }

/* The badness of a score as printed, so that invisible differences count as ties: the score itself, or a coverage's
 * distance from its level in thousandths. Differences of coverage below RIGHT are chance. */
#define RIGHT 10
static double badness(const acf_evaluation *e, int method, int metric, int64_t column) {
    char text[32];
    acf_text t = acf_text_into(text, sizeof text);
    write_score(&t, score_of(e, method, metric, column));
    const double v = strtod(text, NULL); /* written in the same locale */
    const double apart = round(1000 * fabs(v - ACF_EVAL_LEVEL));
    return metric != COVERAGE ? v : apart < RIGHT ? 0 : apart;
}

int acf_evaluation_winner(const acf_evaluation *e, int metric, int64_t column) {
    int winner = -1;
    double best = badness(e, ACF_EVAL_MODEL, metric, column);
    for (int method = ACF_EVAL_MEAN; method <= ACF_EVAL_LINEAR; method++)
        if (badness(e, method, metric, column) < best)
            winner = method, best = badness(e, method, metric, column); /* NaN never wins */
    return winner;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* s in a field of `width` characters, left-aligned. Continuation bytes of UTF-8 have no width. */
static void add_left(acf_text *t, const char *s, int width) {
    acf_text_add(t, s);
    for (; *s; s++) width -= ((unsigned char)*s & 0xC0) != 0x80;
    acf_text_addf(t, "%*s", width > 0 ? width : 0, "");
}

static void add_score(acf_text *t, double v, int width, bool star) {
    char text[32];
    acf_text n = acf_text_into(text, sizeof text);
    if (isnan(v))
        acf_text_add(&n, "-");
    else
        acf_text_add(&n, star ? "*" : ""), write_score(&n, v);
    acf_text_addf(t, "%*s", width, text);
}

static const char *column_name(const acf_evaluation *e, int64_t j, char out[ACF_EXCERPT_MAX]) {
    if (e->column[j].name) return acf_text_excerpt(out, e->column[j].name);
    acf_text t = acf_text_into(out, ACF_EXCERPT_MAX);
    acf_text_addf(&t, "column %lld", (long long)j);
    return out;
}

static void add_overall(const acf_evaluation *e, acf_text *t) {
    add_left(t, "", NAME_WIDTH);
    for (int k = 0; k < METRICS; k++) acf_text_addf(t, "%*s", FIELD_WIDTH, acf_metrics[k].title);
    acf_text_add(t, "\n");
    for (int method = 0; method < e->methods; method++) {
        add_left(t, acf_evaluation_method(method), NAME_WIDTH);
        for (int k = 0; k < METRICS; k++) add_score(t, score_of(e, method, k, -1), FIELD_WIDTH, false);
        double deviation = acf_evaluation_scores(e, method, -1)->nll_deviation;
        if (!isnan(deviation)) acf_text_addf(t, " ± %.3f", deviation);
        acf_text_add(t, "\n");
    }
}

/* "  0.972 ± 0.011  what" */
static void add_row_score(acf_text *t, double mean, double deviation, const char *what) {
    add_score(t, mean, FIELD_WIDTH, false);
    if (!isnan(deviation)) acf_text_addf(t, " ± %.3f", deviation);
    acf_text_addf(t, "  %s\n", what);
}

/* Appends the scores of rows, if there are any. */
static void add_rows_alone(const acf_evaluation *e, acf_text *t) {
    const acf_row_scores *r = &e->rows_alone;
    if (r->rows == 0 || r->masks == 0) return;
    acf_text_addf(
        t,
        "\nRows: -log p of about half of the observed cells given the others (Bernoulli masks), nats per row.\n"
        "Mean over %lld row%s for each mask; ± is the deviation over %lld mask%s.\n",
        (long long)r->rows, r->rows == 1 ? "" : "s", (long long)r->masks, r->masks == 1 ? "" : "s");
    add_row_score(t, r->standardised, r->standardised_deviation,
                  "numbers standardised (z-scores of what the model was fitted to)");
    add_row_score(t, r->own, r->own_deviation, "numbers in the table's own units");
}

/* A column of a text table: a score of a method. */
typedef struct field {
    int metric, method;
} field;

static const field of_numbers[] = {{NRMSE, ACF_EVAL_MEAN},     {NRMSE, ACF_EVAL_LINEAR}, {NRMSE, ACF_EVAL_MODEL},
                                   {CRPS, ACF_EVAL_LINEAR},    {CRPS, ACF_EVAL_MODEL},   {COVERAGE, ACF_EVAL_LINEAR},
                                   {COVERAGE, ACF_EVAL_MODEL}, {W1, ACF_EVAL_LINEAR},    {W1, ACF_EVAL_MODEL},
                                   {NLL, ACF_EVAL_MEAN},       {NLL, ACF_EVAL_MODEL}};
static const field of_classes[] = {{PFC, ACF_EVAL_MEAN},  {PFC, ACF_EVAL_LINEAR}, {PFC, ACF_EVAL_MODEL},
                                   {TV, ACF_EVAL_LINEAR}, {TV, ACF_EVAL_MODEL},   {NLL, ACF_EVAL_MEAN},
                                   {NLL, ACF_EVAL_MODEL}};

static void add_heading(acf_text *t, const char *kind, const field *f, int n) {
    static const char *const short_name[] = {"mean", "linear", "acflow"};
    int gap = 0; /* a title is above its first field; spaces are written only before another title */
    acf_text_add(t, "\n");
    add_left(t, kind, NAME_WIDTH + 7);
    for (int k = 0; k < n; k++) {
        gap += FIELD_WIDTH;
        if (k && f[k].metric == f[k - 1].metric) continue;
        acf_text_addf(t, "%*s", gap, acf_metrics[f[k].metric].title);
        gap = 0;
    }
    acf_text_add(t, "\n");
    add_left(t, "", NAME_WIDTH);
    acf_text_addf(t, "%7s", "cells");
    for (int k = 0; k < n; k++) acf_text_addf(t, "%*s", FIELD_WIDTH, short_name[f[k].method]);
    acf_text_add(t, "\n");
}

enum {
    NUMBER_FIELDS = sizeof of_numbers / sizeof of_numbers[0],
    CLASS_FIELDS = sizeof of_classes / sizeof of_classes[0]
};

/* The baseline that wins a column; -1: none. Not for coverage, whose differences in single columns are mostly
 * chance. */
static int column_winner(const acf_evaluation *e, int metric, int64_t j) {
    return metric == COVERAGE ? -1 : acf_evaluation_winner(e, metric, j);
}

/* Does a text table show this score of this method, so that it can have a star? */
static bool has_field(int metric, int method) {
    bool found = false;
    for (int k = 0; k < NUMBER_FIELDS; k++) found |= of_numbers[k].metric == metric && of_numbers[k].method == method;
    for (int k = 0; k < CLASS_FIELDS; k++) found |= of_classes[k].metric == metric && of_classes[k].method == method;
    return found;
}

/* Appends a line for each scored column, with a star before the score of a baseline that beats acflow. */
static void add_columns(const acf_evaluation *e, acf_text *t, bool classes, const field *f, int n) {
    char name[ACF_EXCERPT_MAX];
    bool any = false;
    for (int64_t j = 0; j < e->columns; j++) {
        int64_t cells = acf_evaluation_scores(e, ACF_EVAL_MODEL, j)->cells;
        if (cells == 0 || (e->column[j].classes > 0) != classes) continue;
        if (!any) add_heading(t, classes ? "classes" : "numbers", f, n);
        any = true;
        add_left(t, column_name(e, j, name), NAME_WIDTH);
        acf_text_addf(t, "%7lld", (long long)cells);
        for (int k = 0; k < n; k++)
            add_score(t, score_of(e, f[k].method, f[k].metric, j), FIELD_WIDTH,
                      column_winner(e, f[k].metric, j) == f[k].method);
        acf_text_add(t, "\n");
    }
}

/* "0.855 against 0.870" */
static void add_against(const acf_evaluation *e, acf_text *t, int winner, int metric, int64_t column) {
    write_score(t, score_of(e, winner, metric, column));
    acf_text_add(t, " against ");
    write_score(t, score_of(e, ACF_EVAL_MODEL, metric, column));
}

/* "    NRMSE  over all: linear regressions, 0.855 against 0.870" */
static void add_win(const acf_evaluation *e, acf_text *t, int metric) {
    int winner = acf_evaluation_winner(e, metric, -1);
    acf_text_addf(t, "    %-6s over all: %s, ", acf_metrics[metric].title, acf_evaluation_method(winner));
    add_against(e, t, winner, metric, -1);
    acf_text_add(t, "\n");
}

/* "    NRMSE  in 2 of 8 columns: pH, density". A score that no table shows is included: "density (mean or most
 * frequent, 0.512 against 0.530)" */
static int64_t add_column_wins(const acf_evaluation *e, acf_text *t, int metric) {
    char words[WINS_SHOWN * (ACF_EXCERPT_MAX + 64) + 128], name[ACF_EXCERPT_MAX];
    acf_text list = acf_text_into(words, sizeof words);
    int64_t wins = 0, scored = 0;
    for (int64_t j = 0; j < e->columns; j++) {
        scored += !isnan(score_of(e, ACF_EVAL_MODEL, metric, j));
        const int winner = column_winner(e, metric, j);
        if (winner < 0 || wins++ >= WINS_SHOWN) continue;
        acf_text_addf(&list, "%s%s", wins > 1 ? ", " : "", column_name(e, j, name));
        if (has_field(metric, winner)) continue;
        acf_text_addf(&list, " (%s, ", acf_evaluation_method(winner));
        add_against(e, &list, winner, metric, j);
        acf_text_add(&list, ")");
    }
    if (wins == 0) return 0;
    if (wins > WINS_SHOWN) acf_text_addf(&list, " and %lld more", (long long)(wins - WINS_SHOWN));
    acf_text_addf(t, "    %-6s in %lld of %lld column%s: ", acf_metrics[metric].title, (long long)wins,
                  (long long)scored, scored == 1 ? "" : "s");
    acf_text_wrap(t, words, 11, 100, 36);
    acf_text_add(t, "\n");
    return wins;
}

/* Appends where baselines win. Returns how often. */
static int64_t add_wins(const acf_evaluation *e, acf_text *t) {
    int64_t wins = 0;
    for (int k = 0; k < METRICS; k++) {
        if (acf_evaluation_winner(e, k, -1) >= 0) wins++, add_win(e, t, k);
        wins += add_column_wins(e, t, k);
    }
    return wins;
}

void acf_evaluation_text(const acf_evaluation *e, acf_text *t) {
    acf_text_addf(t, "%lld of the %lld known cells of %lld row%s and %lld column%s ", (long long)e->hidden,
                  (long long)e->observed, (long long)e->rows, e->rows == 1 ? "" : "s", (long long)e->columns,
                  e->columns == 1 ? "" : "s");
    acf_text_add(t, e->chosen ? "were hidden" : "are missing from the table to complete");
    acf_text_add(t, e->fitted ? "; the model was fitted to the others"
                              : "; the model was given: its scores are too good if it was fitted to them");
    acf_text_addf(t, ".\n%lld draws, %lld mask%s, seed %llu.\n\n", (long long)e->set.draws, (long long)e->set.masks,
                  e->set.masks == 1 ? "" : "s", (unsigned long long)e->set.seed);
    add_overall(e, t);
    acf_text_add(
        t, "\nLower is better; 90 % should be 0.900. It is compared over all columns only: "
           "in a single column it varies by chance.\n"
           "NRMSE  numbers: root of the mean squared error, in standard deviations of the column; "
           "its mean scores about 1\n"
           "PFC    classes: the share that is wrong\n"
           "CRPS   numbers: distance of the draws from the truth, less half of that between draws; in the same unit\n"
           "90 %   numbers: how often the 90 % interval of the draws holds the truth\n"
           "W1     numbers: how far all imputed values together lie from the true ones; in the same unit\n"
           "TV     classes: how far the shares of imputed classes are from the true ones\n"
           "NLL    -log p of what is hidden, nats per cell; mean ± deviation over masks\n");
    add_rows_alone(e, t);
    add_columns(e, t, false, of_numbers, NUMBER_FIELDS);
    add_columns(e, t, true, of_classes, CLASS_FIELDS);
    acf_text unwritten = acf_text_into(NULL, 0);
    bool none = add_wins(e, &unwritten) == 0;
    acf_text_add(t, none ? "\nNo baseline is better than acflow, over all or in any column.\n"
                         : "\nA baseline is better than acflow (* in the tables, else with its figures):\n");
    add_wins(e, t);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* NaN becomes null: jansson has no NaN. */
static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

/* Sets a member and takes value over; false if out of memory. */
static bool put(json_t *object, const char *key, json_t *value) { return json_object_set_new(object, key, value) == 0; }

static json_t *scores_json(const acf_scores *s) {
    json_t *o = json_object();
    bool ok = o && put(o, "cells", json_integer(s->cells));
    for (int k = 0; k < METRICS && ok; k++)
        ok = put(o, acf_metrics[k].key, number(*(const double *)((const char *)s + acf_metrics[k].at)));
    if (ok && put(o, "nll_deviation", number(s->nll_deviation))) return o;
    json_decref(o);
    return NULL;
}

static json_t *method_json(const acf_evaluation *e, int method) {
    json_t *o = json_object(), *list = json_array();
    bool ok = o && list && put(o, "name", json_string(acf_evaluation_method(method))) &&
              put(o, "overall", scores_json(acf_evaluation_scores(e, method, -1)));
    for (int64_t j = 0; j < e->columns && ok; j++)
        ok = json_array_append_new(list, scores_json(acf_evaluation_scores(e, method, j))) == 0;
    if (ok && json_object_set(o, "columns", list) == 0) {
        json_decref(list);
        return o;
    }
    json_decref(list), json_decref(o);
    return NULL;
}

static json_t *column_json(const acf_evaluation *e, int64_t j) {
    char plain[ACF_EXCERPT_MAX];
    const char *name = e->column[j].name ? e->column[j].name : column_name(e, j, plain);
    return json_pack("{s:s, s:i}", "name", name, "classes", (int)e->column[j].classes);
}

/* {"score": "nrmse", "column": 3 or null for over all, "method": 1} for each win of a baseline. */
static bool add_wins_json(const acf_evaluation *e, json_t *list) {
    for (int k = 0; k < METRICS; k++)
        for (int64_t j = -1; j < e->columns; j++) {
            int winner = j < 0 ? acf_evaluation_winner(e, k, j) : column_winner(e, k, j);
            if (winner < 0) continue;
            json_t *win = json_pack("{s:s, s:o, s:i}", "score", acf_metrics[k].key, "column",
                                    j < 0 ? json_null() : json_integer(j), "method", winner);
            if (!win || json_array_append_new(list, win)) return false;
        }
    return true;
}

/* null if there are no row scores. */
static json_t *rows_json(const acf_row_scores *r) {
    json_t *o = r->rows == 0 ? json_null() : json_object();
    if (r->rows == 0) return o;
    bool ok = o && put(o, "rows", json_integer(r->rows)) && put(o, "masks", json_integer(r->masks)) &&
              put(o, "nll_standardised", number(r->standardised)) &&
              put(o, "nll_standardised_deviation", number(r->standardised_deviation)) &&
              put(o, "nll_own_units", number(r->own)) && put(o, "nll_own_units_deviation", number(r->own_deviation));
    if (ok) return o;
    json_decref(o);
    return NULL;
}

acf_status acf_evaluation_json(const acf_evaluation *e, json_t **out) {
    json_t *columns = json_array(), *methods = json_array(), *wins = json_array();
    bool ok = columns && methods && wins && add_wins_json(e, wins);
    for (int64_t j = 0; j < e->columns && ok; j++) ok = json_array_append_new(columns, column_json(e, j)) == 0;
    for (int k = 0; k < e->methods && ok; k++) ok = json_array_append_new(methods, method_json(e, k)) == 0;
    json_t *o =
        ok ? json_pack("{s:I, s:I, s:I, s:b, s:b, s:f, s:I, s:I, s:I, s:f, s:O, s:O, s:O}", "rows", (json_int_t)e->rows,
                       "known", (json_int_t)e->observed, "hidden", (json_int_t)e->hidden, "fitted", e->fitted, "chosen",
                       e->chosen, "hide", e->set.hide, "draws", (json_int_t)e->set.draws, "masks",
                       (json_int_t)e->set.masks, "seed", (json_int_t)e->set.seed, "level", ACF_EVAL_LEVEL, "columns",
                       columns, "methods", methods, "baseline_wins", wins)
           : NULL;
    json_decref(columns), json_decref(methods), json_decref(wins);
    if (o && !put(o, "rows_half_given", rows_json(&e->rows_alone))) json_decref(o), o = NULL;
    if (!o) return acf_fail(ACF_EMEMORY, "out of memory: the report of an evaluation");
    *out = o;
    return ACF_OK;
}
