/* Evaluation: which cells are hidden, that no method sees them, and that scores equal those of answers computed
 * here. */
#include "infer/evaluate.h"

#include "harness/lab.h"
#include "infer/baseline.h"
#include "infer/metrics.h"
#include "model/config.h"
#include "table/masks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 300,
    COLS = 4,
    CELLS = ROWS * COLS,
    DRAWS = 30,
    MODEL = ACF_EVAL_MODEL,
    ROW = 5
}; /* ROW: one without missing cells */

static const acf_column columns[COLS] = {{"a", 0}, {"kind", 3}, {"flat", 0}, {"b", 0}};
static const acf_eval_settings plain = {.hide = 0.2, .masks = 3, .draws = DRAWS, .seed = 4};

typedef struct bench {
    acf_device *dev;
    acf_table *t;
    acf_model *m;
    double x[CELLS];
} bench;

/* A small network with random weights, which answers every query. */
static acf_model *make_model(acf_device *dev, const acf_table *t) {
    acf_options *o;
    acf_encoder *e;
    acf_model *m;
    static const char *const set[][2] = {
        {"mlp-width", "6"}, {"coupling-units", "5"}, {"likelihood-units", "7"}, {"components", "3"}};
    assert_int_equal(acf_config_create(&o), ACF_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(acf_options_set_text(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_model_make(dev, o, e, 3, true, &m), ACF_OK);
    acf_params *ps = acf_net_params(m->net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random(2, i, -0.2, 0.2);
    return m;
}

static int open_bench(void **state) {
    bench *b = calloc(1, sizeof *b);
    for (int i = 0; i < CELLS; i++) {
        int j = i % COLS;
        b->x[i] = j == 0   ? 50 + 10 * acf_lab_random(1, i, -1, 1)
                  : j == 1 ? (double)(i / COLS % 3)
                  : j == 2 ? 7
                           : fmax(acf_lab_random(1, i, -1, 1), 0.2); /* a spike and a tail */
        if (i % 11 == 5) b->x[i] = NAN;
    }
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_table_make(b->x, NULL, ROWS, COLS, columns, &b->t), ACF_OK);
    b->m = make_model(b->dev, b->t);
    *state = b;
    return 0;
}

static int close_bench(void **state) {
    bench *b = *state;
    acf_model_free(b->m);
    acf_table_free(b->t);
    acf_device_close(b->dev);
    free(b);
    return 0;
}

static acf_evaluation *evaluate(const acf_eval_job *job) {
    acf_evaluation *e;
    if (acf_evaluate(job, &e)) fail_msg("%s", acf_error());
    return e;
}

/* ---- hiding ------------------------------------------------------------------------------------------------------ */

static void hides_so_many_observed_cells(void **state) {
    const bench *b = *state;
    uint8_t first[CELLS], again[CELLS], other[CELLS];
    int64_t n, observed = 0, same = 0;
    for (int i = 0; i < CELLS; i++) observed += !isnan(b->x[i]);
    for (double f = 0; f < 0.9; f += 0.29) {
        assert_int_equal(acf_hide(b->t, f, 1, first, &n), ACF_OK);
        assert_int_equal(n, llround(f * (double)observed));
        assert_int_equal(acf_hide(b->t, f, 1, again, &n), ACF_OK);
        assert_memory_equal(first, again, sizeof first);
        assert_int_equal(acf_hide(b->t, f, 2, other, &n), ACF_OK);
        int64_t marked = 0;
        for (int i = 0; i < CELLS; i++) {
            marked += first[i], same += first[i] == other[i];
            if (isnan(b->x[i])) assert_int_equal(first[i], 0);
        }
        assert_int_equal(marked, n);
    }
    assert_in_range(same, 2 * CELLS, 4 * CELLS - 40); /* of four comparisons: hidden cells differ between seeds */
    assert_int_equal(acf_hide(b->t, 1.5, 1, first, &n), ACF_EUSAGE);
    assert_int_equal(acf_hide(b->t, NAN, 1, first, &n), ACF_EUSAGE);
}

/* All cells are equally likely. */
static void hides_every_cell_alike(void **state) {
    const bench *b = *state;
    enum { TIMES = 2000 };
    int count[CELLS] = {0};
    uint8_t hidden[CELLS];
    int64_t n;
    for (uint64_t seed = 0; seed < TIMES; seed++) {
        assert_int_equal(acf_hide(b->t, 0.25, seed, hidden, &n), ACF_OK);
        for (int i = 0; i < CELLS; i++) count[i] += hidden[i];
    }
    for (int i = 0; i < CELLS; i++)
        if (!isnan(b->x[i])) assert_in_range(count[i], TIMES / 4 - 100, TIMES / 4 + 100); /* five deviations */
}

static void a_column_keeps_a_cell(void **state) {
    (void)state;
    const double x[8] = {1, NAN, 2, 5, NAN, NAN, 3, NAN};
    uint8_t hidden[8];
    int64_t n;
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, 4, 2, NULL, &t), ACF_OK);
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(acf_hide(t, 1, seed, hidden, &n), ACF_OK);
        assert_int_equal(n, 2);
        assert_int_equal(hidden[0] + hidden[2] + hidden[6], 2);
        assert_int_equal(hidden[3], 0);
    }
    acf_table_free(t);
}

/* ---- hidden cells stay unseen ------------------------------------------------------------------------------------ */

typedef struct witness {
    const bench *b;
    int calls;
    double shown[CELLS];
    acf_status answer;
} witness;

static acf_status watch(void *ctx, const acf_table *shown, acf_model **out) {
    witness *w = ctx;
    w->calls++;
    memcpy(w->shown, shown->x, sizeof w->shown);
    if (w->answer) return acf_fail(w->answer, "as the test wants it");
    *out = make_model(w->b->dev, w->b->t);
    return ACF_OK;
}

/* The model is fitted once, to the table without the hidden cells; the scores are those of a given model. */
static void fits_to_what_is_shown(void **state) {
    const bench *b = *state;
    witness w = {.b = b};
    uint8_t hidden[CELLS];
    int64_t n;
    acf_evaluation *e = evaluate(&(acf_eval_job){.truth = b->t, .fit = watch, .ctx = &w, .set = plain});
    acf_evaluation *f = evaluate(&(acf_eval_job){.truth = b->t, .model = b->m, .set = plain});
    assert_int_equal(w.calls, 1);
    assert_int_equal(acf_hide(b->t, plain.hide, plain.seed, hidden, &n), ACF_OK);
    assert_int_equal(e->hidden, n);
    for (int i = 0; i < CELLS; i++) {
        if (hidden[i])
            assert_true(isnan(w.shown[i]));
        else
            assert_memory_equal(&w.shown[i], &b->t->x[i], sizeof w.shown[i]);
    }
    assert_memory_equal(e->score, f->score, (size_t)(e->methods * (COLS + 1)) * sizeof *e->score);
    assert_true(e->fitted && !f->fitted && e->chosen);
    acf_evaluation_free(e), acf_evaluation_free(f);
}

/* Hidden values affect only the scores of their own column. Here every hidden number of column b is 1000 higher. */
static void hidden_values_are_not_used(void **state) {
    bench *b = *state;
    acf_table *shown, *moved;
    uint8_t hidden[CELLS];
    int64_t n;
    double x[CELLS];
    assert_int_equal(acf_hide(b->t, 0.2, 4, hidden, &n), ACF_OK);
    for (int i = 0; i < CELLS; i++) x[i] = hidden[i] ? NAN : b->x[i];
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &shown), ACF_OK);
    for (int i = 0; i < CELLS; i++) x[i] = b->x[i] + (hidden[i] && i % COLS == 3 ? 1000 : 0);
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &moved), ACF_OK);
    acf_evaluation *e[2];
    const acf_table *truth[2] = {b->t, moved};
    for (int k = 0; k < 2; k++)
        e[k] = evaluate(&(acf_eval_job){.truth = truth[k], .shown = shown, .model = b->m, .set = plain});
    for (int method = 0; method < e[0]->methods; method++) {
        double unit[2] = {acf_metric_scale(b->t->x + 3, ROWS, COLS), acf_metric_scale(x + 3, ROWS, COLS)};
        for (int k = 0; k < 2; k++) assert_int_equal(e[k]->hidden, n);
        const acf_scores *near = acf_evaluation_scores(e[0], method, 0), *far = acf_evaluation_scores(e[1], method, 0);
        assert_true(near->nrmse == far->nrmse && (isnan(near->crps) || near->crps == far->crps));
        near = acf_evaluation_scores(e[0], method, 3), far = acf_evaluation_scores(e[1], method, 3);
        assert_true(far->nrmse * unit[1] > 990 && near->nrmse * unit[0] < 10);
        if (method < MODEL) continue;
        near = acf_evaluation_scores(e[0], method, -1), far = acf_evaluation_scores(e[1], method, -1);
        assert_true(near->pfc == far->pfc);
    }
    acf_evaluation_free(e[0]), acf_evaluation_free(e[1]);
    acf_table_free(shown), acf_table_free(moved);
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

typedef struct naive {
    double truth[ROWS], value[ROWS], drawn[DRAWS * ROWS], scratch[2 * ROWS];
    int64_t n, count[3];
} naive;

/* Column j of the hidden cells in answers for all rows: point (N,D) and draws (DRAWS,N,D). */
static void collect(naive *c, const double *x, const uint8_t *hidden, int j, const double *point, const double *drawn) {
    c->n = 0;
    for (int i = j; i < CELLS; i += COLS)
        if (hidden[i]) c->truth[c->n] = x[i], c->value[c->n++] = point[i];
    for (int k = 0; k < DRAWS; k++)
        for (int i = j, at = 0; i < CELLS; i += COLS)
            if (hidden[i]) c->drawn[k * c->n + at++] = drawn[k * CELLS + i];
}

static void close_or_both_nan(double a, double b, const char *what) {
    if (isnan(b))
        assert_true(isnan(a));
    else
        acf_assert_close(a, b, 1e-12, what);
}

/* Compares the scores of a method with those of its answers. draws: it has some. */
static void check_scores(const acf_evaluation *e, int method, const double *x, const uint8_t *hidden,
                         const double *point, const double *drawn, bool draws) {
    static naive c;
    double nrmse = 0, crps = 0, w1 = 0, cover = 0;
    for (int j = 0; j < COLS; j++) {
        const acf_scores *s = acf_evaluation_scores(e, method, j);
        double unit = acf_metric_scale(x + j, ROWS, COLS), expected = 0;
        collect(&c, x, hidden, j, point, drawn);
        if (j == 2) { /* constant: not scored */
            assert_true(s->cells == 0 && isnan(s->nrmse) && isnan(s->crps) && isnan(s->nll));
            continue;
        }
        assert_int_equal(s->cells, c.n);
        if (j == 1) {
            assert_true(isnan(s->nrmse) && isnan(s->crps) && isnan(s->w1) && isnan(s->coverage));
            acf_assert_close(s->pfc, (double)acf_metric_wrong(c.truth, c.value, c.n) / (double)c.n, 1e-15, "PFC");
            acf_assert_close(acf_evaluation_scores(e, method, -1)->pfc, s->pfc, 1e-15, "PFC over all");
            for (int k = 0; k < (draws ? DRAWS : 1); k++)
                expected += acf_metric_variation(c.truth, draws ? c.drawn + k * c.n : c.value, c.n, 3, c.count) /
                            (draws ? DRAWS : 1);
            acf_assert_close(s->tv, expected, 1e-12, "TV");
            continue;
        }
        assert_true(isnan(s->pfc) && isnan(s->tv));
        acf_assert_close(s->nrmse, acf_metric_nrmse(c.truth, c.value, c.n, unit), 1e-12, "NRMSE");
        acf_assert_close(s->crps,
                         draws ? acf_metric_crps(c.truth, c.drawn, DRAWS, c.n, unit, c.scratch)
                               : acf_metric_nmae(c.truth, c.value, c.n, unit),
                         1e-12, "CRPS");
        double seen[ROWS];
        int64_t cells = 0;
        acf_shared shared;
        for (int i = j; i < CELLS; i += COLS)
            if (!hidden[i] && !isnan(x[i])) seen[cells++] = x[i];
        acf_shared_of(&shared, seen, cells);
        for (int k = 0; k < (draws ? DRAWS : 1); k++)
            expected += acf_metric_wasserstein(c.truth, draws ? c.drawn + k * c.n : c.value, c.n, unit, c.scratch) /
                        (draws ? DRAWS : 1);
        acf_assert_close(s->w1, expected, 1e-12, "W1");
        close_or_both_nan(s->coverage,
                          draws ? acf_metric_coverage(c.truth, c.drawn, DRAWS, c.n, 0.9, unit, &shared, c.scratch)
                                : (double)NAN,
                          "coverage");
        nrmse += s->nrmse / 2, crps += s->crps / 2, w1 += s->w1 / 2, cover += s->coverage / 2;
    }
    const acf_scores *all = acf_evaluation_scores(e, method, -1);
    acf_assert_close(all->nrmse, nrmse, 1e-12, "NRMSE over all");
    acf_assert_close(all->crps, crps, 1e-12, "CRPS over all");
    acf_assert_close(all->w1, w1, 1e-12, "W1 over all");
    close_or_both_nan(all->coverage, cover, "coverage over all");
}

/* A further estimate has scores of values only. */
static void check_values(const acf_evaluation *e, int method, const double *x, const uint8_t *hidden,
                         const double *point) {
    static naive c;
    static const double none[DRAWS * CELLS];
    for (int j = 0; j < COLS; j++) {
        const acf_scores *s = acf_evaluation_scores(e, method, j);
        double unit = acf_metric_scale(x + j, ROWS, COLS), tol = 1000 * (double)ACF_REAL_EPS;
        collect(&c, x, hidden, j, point, none);
        if (j == 1)
            acf_assert_close(s->pfc, (double)acf_metric_wrong(c.truth, c.value, c.n) / (double)c.n, 1e-15,
                             "PFC of values");
        else if (j != 2)
            acf_assert_close(s->nrmse, acf_metric_nrmse(c.truth, c.value, c.n, unit), tol, "NRMSE of values");
        assert_true(isnan(s->crps) && isnan(s->w1) && isnan(s->tv) && isnan(s->coverage) && isnan(s->nll));
    }
}

/* Every row has a hidden cell here, so that the evaluation draws the table's own rows. */
static void scores_are_those_of_the_answers(void **state) {
    bench *b = *state;
    static double x[CELLS], point[CELLS], drawn[DRAWS * CELLS];
    uint8_t hidden[CELLS];
    acf_table *shown;
    acf_session *s;
    acf_baseline *line;
    for (int i = 0; i < CELLS; i++) {
        hidden[i] = !isnan(b->x[i]) && i % COLS == (i / COLS * 7) % COLS;
        if (isnan(b->x[i - i % COLS + (i / COLS * 7) % COLS]))
            hidden[i] = i % COLS == ((i / COLS * 7) % COLS + 1) % COLS;
        x[i] = hidden[i] ? NAN : b->x[i];
    }
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &shown), ACF_OK);
    acf_evaluation *e = evaluate(&(acf_eval_job){.truth = b->t, .shown = shown, .model = b->m, .set = plain});
    assert_false(e->chosen);

    assert_int_equal(acf_baseline_mean(shown, point), ACF_OK);
    check_scores(e, ACF_EVAL_MEAN, b->x, hidden, point, drawn, false);
    assert_int_equal(acf_baseline_create(shown, plain.seed, &line), ACF_OK);
    acf_baseline_point(line, point);
    for (int k = 0; k < DRAWS; k++) assert_int_equal(acf_baseline_draw(line, drawn + k * CELLS), ACF_OK);
    check_scores(e, ACF_EVAL_LINEAR, b->x, hidden, point, drawn, true);
    acf_baseline_free(line);

    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    for (int k = 0; k < DRAWS; k++)
        assert_int_equal(acf_session_query_draw(s, shown, (acf_query){0}, plain.seed, (uint32_t)k, drawn + k * CELLS),
                         ACF_OK);
    assert_int_equal(acf_session_query_mean(s, shown, (acf_query){0}, point), ACF_OK);
    check_scores(e, MODEL, b->x, hidden, point, drawn, true);
    assert_int_equal(acf_session_query_summary(s, shown, (acf_query){0}, plain.seed, DRAWS, NULL, 0, point, NULL),
                     ACF_OK);
    check_values(e, MODEL + 1, b->x, hidden, point);
    assert_int_equal(acf_session_query_guess(s, shown, (acf_query){0}, point), ACF_OK);
    check_values(e, MODEL + 2, b->x, hidden, point);
    acf_session_free(s);
    acf_evaluation_free(e);
    acf_table_free(shown);
}

/* Rows without hidden cells are not queried; the answers of the others go to the right cells. */
static void answers_belong_to_their_cells(void **state) {
    const bench *b = *state;
    static double x[CELLS], point[CELLS];
    uint8_t hidden[CELLS];
    int64_t n;
    acf_table *shown;
    acf_session *s;
    assert_int_equal(acf_hide(b->t, plain.hide, plain.seed, hidden, &n), ACF_OK);
    for (int i = 0; i < CELLS; i++) x[i] = hidden[i] ? NAN : b->x[i];
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &shown), ACF_OK);
    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    assert_int_equal(acf_session_query_guess(s, shown, (acf_query){0}, point), ACF_OK);
    acf_eval_settings few = plain;
    few.draws = 18;
    acf_evaluation *e = evaluate(&(acf_eval_job){.truth = b->t, .model = b->m, .set = few});
    check_values(e, MODEL + 2, b->x, hidden, point);
    assert_true(isnan(acf_evaluation_scores(e, MODEL, 0)->coverage)); /* 18 draws are too few for an interval of 90 % */
    acf_evaluation_free(e);
    acf_session_free(s);
    acf_table_free(shown);
}

/* ---- likelihoods ------------------------------------------------------------------------------------------------- */

/* -log p(target | the rest of the row except `missing`), bits of columns, with numbers in units of their deviation. */
static double nll_of(const bench *b, acf_session *s, int row, unsigned target, unsigned missing) {
    double x[COLS], lp;
    uint8_t ask[COLS];
    acf_table *t;
    for (int j = 0; j < COLS; j++)
        x[j] = missing >> j & 1 ? (double)NAN : b->x[row * COLS + j], ask[j] = target >> j & 1;
    assert_int_equal(acf_table_make(x, NULL, 1, COLS, columns, &t), ACF_OK);
    assert_int_equal(acf_session_query_logp(s, t, (acf_query){.target = ask}, &lp), ACF_OK);
    acf_table_free(t);
    for (int j = 0; j < COLS; j++)
        if (ask[j] && j != 1) lp += log(acf_metric_scale(b->x + j, ROWS, COLS));
    return -lp;
}

/* Evaluates with these columns of one complete row missing. */
static acf_evaluation *hide_in_row(const bench *b, int row, unsigned missing, acf_eval_settings set) {
    double x[CELLS];
    acf_table *shown;
    memcpy(x, b->x, sizeof x);
    for (int j = 0; j < COLS; j++)
        if (missing >> j & 1) x[row * COLS + j] = NAN;
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &shown), ACF_OK);
    acf_evaluation *e = evaluate(&(acf_eval_job){.truth = b->t, .shown = shown, .model = b->m, .set = set});
    acf_table_free(shown);
    return e;
}

/* A single hidden cell is a target of every mask. */
static void a_single_cell_has_its_likelihood(void **state) {
    const bench *b = *state;
    acf_session *s;
    double tol = 1000 * (double)ACF_REAL_EPS;
    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    for (int j = 0; j < COLS; j += j == 1 ? 2 : 1) { /* not the constant column */
        acf_evaluation *e = hide_in_row(b, ROW, 1u << j, plain);
        const acf_scores *all = acf_evaluation_scores(e, MODEL, -1), *one = acf_evaluation_scores(e, MODEL, j);
        acf_assert_close(all->nll, nll_of(b, s, ROW, 1u << j, 0), tol, "NLL");
        acf_assert_close(one->nll, all->nll, tol, "NLL of the column");
        acf_assert_close(all->nll_deviation, 0, tol, "deviation over equal masks");
        assert_true(isnan(acf_evaluation_scores(e, MODEL, (j + 1) % COLS)->nll) &&
                    isnan(acf_evaluation_scores(e, ACF_EVAL_LINEAR, -1)->nll));
        acf_evaluation_free(e);
    }
    acf_session_free(s);
}

/* Of three hidden cells of a row a mask targets two, given the third: jointly over all, alone by column. */
static void a_mask_targets_half(void **state) {
    const bench *b = *state;
    acf_session *s;
    const unsigned hidden = 1 | 2 | 8, pair[3] = {1 | 2, 1 | 8, 2 | 8};
    unsigned seen = 0;
    double tol = 1000 * (double)ACF_REAL_EPS;
    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    for (uint64_t seed = 0; seed < 12; seed++) {
        acf_eval_settings set = plain;
        set.masks = 1, set.seed = seed;
        acf_evaluation *e = hide_in_row(b, ROW, hidden, set);
        double nll = acf_evaluation_scores(e, MODEL, -1)->nll;
        int which = -1;
        for (int k = 0; k < 3; k++)
            if (fabs(nll - nll_of(b, s, ROW, pair[k], 0) / 2) < tol * (1 + fabs(nll))) which = k;
        assert_in_range(which, 0, 2);
        seen |= 1u << which;
        for (int j = 0; j < COLS; j++) {
            double one = acf_evaluation_scores(e, MODEL, j)->nll;
            if (pair[which] >> j & 1)
                acf_assert_close(one, nll_of(b, s, ROW, 1u << j, pair[which] & ~(1u << j)), tol, "NLL of a column");
            else
                assert_true(isnan(one));
        }
        assert_true(isnan(acf_evaluation_scores(e, MODEL, -1)->nll_deviation)); /* one mask has none */
        acf_evaluation_free(e);
    }
    assert_int_equal(seen, 7); /* every pair occurs */
    acf_session_free(s);
}

/* Many masks: mean and deviation follow from the three pairs and their frequencies; no mask is left out. */
static void masks_are_averaged(void **state) {
    const bench *b = *state;
    acf_session *s;
    acf_eval_settings set = plain;
    set.masks = 300;
    const unsigned pair[3] = {1 | 2, 1 | 8, 2 | 8};
    double v[3], mean = 0, var = 0;
    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    for (int k = 0; k < 3; k++) v[k] = nll_of(b, s, ROW, pair[k], 0) / 2, mean += v[k] / 3;
    for (int k = 0; k < 3; k++) var += (v[k] - mean) * (v[k] - mean) / 3;
    acf_evaluation *e = hide_in_row(b, ROW, 1 | 2 | 8, set);
    const acf_scores *all = acf_evaluation_scores(e, MODEL, -1);
    assert_true(fabs(all->nll - mean) < 4 * sqrt(var / 300));
    acf_assert_close(all->nll_deviation / sqrt(var), 1, 0.1, "deviation over masks");
    acf_evaluation_free(e);
    acf_session_free(s);
}

/* Nats of row i alone under mask k: *own in the table's units, *standard in deviations of the columns. */
static void score_one_row(const bench *b, acf_session *s, int64_t i, uint32_t k, double *own, double *standard) {
    acf_masks half;
    acf_table *t;
    uint8_t given[COLS], m[COLS];
    const uint64_t id = (uint64_t)i;
    double logp;
    assert_int_equal(acf_masks_parse("bernoulli:0.5", &half), ACF_OK);
    for (int j = 0; j < COLS; j++) m[j] = (uint8_t)!isnan(b->x[i * COLS + j]);
    acf_masks_draw(b->dev, &half, plain.seed, k, 1, COLS, &id, given, m);
    for (int j = 0; j < COLS; j++) m[j] = (uint8_t)(m[j] && !given[j]);
    assert_int_equal(acf_table_make(b->x + i * COLS, NULL, 1, COLS, columns, &t), ACF_OK);
    t->first_id = id;
    assert_int_equal(acf_session_query_logp(s, t, (acf_query){given, m}, &logp), ACF_OK);
    *own = *standard = -logp;
    for (int j = 0; j < COLS; j += 3) /* the non-constant numbers */
        if (m[j]) *standard -= log(acf_metric_scale(b->x + j, ROWS, COLS));
    acf_table_free(t);
}

/* With a given model, whole rows are scored too: half of a row given the other half. */
static void rows_have_a_likelihood(void **state) {
    const bench *b = *state;
    const double tol = 1e4 * (double)ACF_REAL_EPS;
    double own[3] = {0}, standard[3] = {0};
    acf_session *s;
    acf_evaluation *e = evaluate(&(acf_eval_job){.truth = b->t, .model = b->m, .set = plain});
    const acf_row_scores *r = &e->rows_alone;
    assert_int_equal(acf_session_open(b->dev, b->m, 512, &s), ACF_OK);
    for (uint32_t k = 0; k < 3; k++)
        for (int64_t i = 0; i < ROWS; i++) {
            double one, z;
            score_one_row(b, s, i, k, &one, &z);
            own[k] += one / ROWS, standard[k] += z / ROWS;
        }
    const acf_mean_deviation a = acf_metric_repeated(own, 3), z = acf_metric_repeated(standard, 3);
    assert_true(r->rows == ROWS && r->masks == 3);
    acf_assert_close(r->own, a.mean, tol, "nats a row"),
        acf_assert_close(r->own_deviation, a.deviation, tol, "deviation");
    acf_assert_close(r->standardised, z.mean, tol, "standardised");
    acf_assert_close(r->standardised_deviation, z.deviation, tol, "deviation");
    assert_true(r->own > r->standardised + 0.1); /* the units differ */
    acf_session_free(s);
    acf_evaluation_free(e);
}

/* Marginals of columns: a normal density and the shares of classes. */
static void columns_alone_have_a_likelihood_too(void **state) {
    const bench *b = *state;
    double n = 0, mean = 0, squares = 0, twos = 0, kinds = 0;
    for (int i = 0; i < ROWS; i++) {
        double v = b->x[i * COLS], kind = b->x[i * COLS + 1];
        if (i != ROW && !isnan(v)) n++, mean += v, squares += v * v;
        if (i != ROW && !isnan(kind)) kinds++, twos += kind == b->x[ROW * COLS + 1];
    }
    double deviation = sqrt(squares / n - mean / n * mean / n), z = (b->x[ROW * COLS] - mean / n) / deviation,
           unit = acf_metric_scale(b->x, ROWS, COLS);
    acf_evaluation *e = hide_in_row(b, ROW, 1, plain), *f = hide_in_row(b, ROW, 2, plain);
    acf_assert_close(acf_evaluation_scores(e, ACF_EVAL_MEAN, 0)->nll,
                     0.5 * log(2 * acos(-1)) + log(deviation / unit) + z * z / 2, 1e-9, "a number alone");
    acf_assert_close(acf_evaluation_scores(e, ACF_EVAL_MEAN, -1)->nll, acf_evaluation_scores(e, ACF_EVAL_MEAN, 0)->nll,
                     1e-12, "over all");
    acf_assert_close(acf_evaluation_scores(f, ACF_EVAL_MEAN, 1)->nll, -log((twos + 1) / (kinds + 3)), 1e-12,
                     "a class alone");
    acf_evaluation_free(e), acf_evaluation_free(f);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void wrong_jobs_get_a_sentence(void **state) {
    const bench *b = *state;
    acf_evaluation *e = NULL;
    acf_table *t;
    const double one[4] = {1, 2, 7, 3};
    witness w = {.b = b, .answer = ACF_ENUMERIC};
    acf_eval_settings none = plain;
    none.hide = 0;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_table_make(one, NULL, 1, COLS, columns, &t), ACF_OK);
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = t, .model = b->m, .set = plain}, &e), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "two observed cells"));
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = b->t, .model = b->m, .set = none}, &e), ACF_EDATA);
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = b->t, .shown = b->t, .model = b->m, .set = plain}, &e),
                     ACF_EDATA);
    assert_non_null(strstr(acf_error(), "lacks no cell"));
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = b->t, .shown = t, .model = b->m, .set = plain}, &e),
                     ACF_ESHAPE);
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = b->t, .fit = watch, .ctx = &w, .set = plain}, &e),
                     ACF_ENUMERIC);
    assert_string_equal(acf_error(), "as the test wants it");
    acf_table_free(t);
    double x[CELLS] = {0};
    for (int i = 0; i < CELLS; i++) x[i] = i % 7;
    assert_int_equal(acf_table_make(x, NULL, CELLS / 3, 3, NULL, &t), ACF_OK); /* not the model's columns */
    assert_int_equal(acf_evaluate(&(acf_eval_job){.truth = t, .model = b->m, .set = plain}, &e), ACF_ESHAPE);
    acf_table_free(t);
    assert_null(e);
    assert_int_equal(acf_alloc_live(), live);
}

static void memory_failing_in_turn(void **state) {
    const bench *b = *state;
    acf_eval_settings small = {.hide = 0.1, .masks = 1, .draws = 2, .seed = 1};
    acf_status status = ACF_EMEMORY;
    int64_t at = 1;
    for (; status != ACF_OK; at += at < 60 ? 1 : 7) {
        acf_evaluation *e = NULL;
        int64_t live = acf_alloc_live();
        acf_alloc_fail_at(at);
        status = acf_evaluate(&(acf_eval_job){.truth = b->t, .model = b->m, .set = small}, &e);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_true((status == ACF_OK) == (e != NULL));
        acf_evaluation_free(e);
        assert_int_equal(acf_alloc_live(), live);
        assert_in_range(at, 1, 3000);
    }
    assert_true(at > 60);
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, open_bench, close_bench)
ACF_TESTS(evaluate, ON_BENCH(hides_so_many_observed_cells), ON_BENCH(hides_every_cell_alike),
          cmocka_unit_test(a_column_keeps_a_cell), ON_BENCH(fits_to_what_is_shown),
          ON_BENCH(hidden_values_are_not_used), ON_BENCH(scores_are_those_of_the_answers),
          ON_BENCH(answers_belong_to_their_cells), ON_BENCH(a_single_cell_has_its_likelihood),
          ON_BENCH(a_mask_targets_half), ON_BENCH(masks_are_averaged), ON_BENCH(rows_have_a_likelihood),
          ON_BENCH(columns_alone_have_a_likelihood_too), ON_BENCH(wrong_jobs_get_a_sentence),
          ON_BENCH(memory_failing_in_turn))
