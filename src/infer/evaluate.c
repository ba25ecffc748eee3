/* Evaluation: see evaluate.h. Workload: thousands of rows, tens of columns, a fifth of the cells hidden. Nearly all
 * the time goes to fitting, then to draws. Only rows with hidden cells are queried.
 *
 * Hidden cells are numbered column after column, so that a column's values and draws are contiguous, as metrics.h
 * needs them:
 *
 *     first[j] .. first[j+1]    the cells of column j
 *     truth (n), value (n)      true values; values of a method
 *     drawn (n·m)               column j: (m, its cells), at first[j]·m */
#include "infer/evaluate.h"

#include "infer/baseline.h"
#include "infer/metrics.h"
#include "infer/row_score.h"
#include "table/permute.h"

#include <math.h>
#include <string.h>

#define ASK_ROWS 512   /* of a session's batch */
#define CELL_ROWS 2048 /* single-cell queries per batch */

/* Estimates of one value for each target cell, (N,D). NULL: the mean of the draws, or their most frequent class. The
 * first is compared with the baselines; each further one is another line of the report. */
static const struct {
    const char *name;
    acf_status (*run)(acf_session *s, const acf_table *t, acf_query q, double *out);
} estimates[] = {
    {"acflow, mean of each cell", acf_session_query_mean},
    {"acflow, mean of draws", NULL},
    {"acflow, best guess", acf_session_query_guess},
};
enum { ESTIMATES = sizeof estimates / sizeof estimates[0], METHODS = ACF_EVAL_MODEL + ESTIMATES };

const char *acf_evaluation_method(int method) {
    if (method < 0 || method >= METHODS) return NULL;
    if (method == ACF_EVAL_MEAN) return "mean or most frequent";
    if (method == ACF_EVAL_LINEAR) return "linear regressions";
    return estimates[method - ACF_EVAL_MODEL].name;
}

acf_eval_settings acf_eval_settings_read(const acf_options *o) {
    return (acf_eval_settings){.hide = acf_options_real(o, "eval-rate"),
                               .masks = acf_options_int(o, "eval-masks"),
                               .draws = acf_options_int(o, "eval-draws"),
                               .seed = (uint64_t)acf_options_int(o, "seed")};
}

/* ---- which cells ------------------------------------------------------------------------------------------------- */

/* Marks `want` of the cells that `from` marks, out (cells), in a random order by (seed, draw). left (D; may be
 * NULL): remaining cells of each column; the last one stays. Returns how many were marked. */
static int64_t pick(const uint8_t *from, int64_t cells, int64_t D, int64_t want, int64_t *left, uint64_t seed,
                    uint32_t draw, uint8_t *out) {
    acf_permutation order = acf_permutation_make(cells, seed, ACF_STREAM_HIDE, draw);
    int64_t n = 0;
    for (int64_t c = 0; c < cells; c++) out[c] = 0;
    for (int64_t i = 0; i < cells && n < want; i++) {
        int64_t c = acf_permutation_at(&order, i);
        if (!from[c] || (left && left[c % D] < 2)) continue;
        if (left) left[c % D]--;
        out[c] = 1, n++;
    }
    return n;
}

acf_status acf_hide(const acf_table *t, double fraction, uint64_t seed, uint8_t *hidden, int64_t *n) {
    if (!(fraction >= 0 && fraction <= 1))
        return acf_fail(ACF_EUSAGE, "a fraction of %g cells to hide; expected 0 to 1", fraction);
    int64_t cells = t->N * t->D, observed = 0;
    uint8_t *present = acf_alloc((size_t)cells, "a mask of a table");
    int64_t *left = acf_alloc_zero((size_t)t->D * sizeof *left, "counts of cells");
    if (present && left) {
        for (int64_t c = 0; c < cells; c++) {
            present[c] = acf_table_present(t->x[c]);
            left[c % t->D] += present[c], observed += present[c];
        }
        *n = pick(present, cells, t->D, llround(fraction * (double)observed), left, seed, 0, hidden);
    }
    acf_status status = present && left ? ACF_OK : ACF_EMEMORY;
    acf_release(present);
    acf_release(left);
    return status;
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

typedef struct work {
    const acf_eval_job *job;
    acf_evaluation *e;
    acf_table *made; /* the table with hidden cells, if they were hidden here */
    const acf_table *shown;
    acf_table *part, *whole; /* the rows with hidden cells: as shown, and true */
    acf_model *fitted;       /* NULL: a model was given */
    acf_session *s;
    uint8_t *hidden, *target; /* (N,D); target cells of a mask, of `whole` */
    int64_t n, *first;        /* hidden cells; (D+1) */
    int64_t *place, *cell;    /* (n) index of each hidden cell in truth, and in part */
    double *truth, *value;    /* (n) */
    double *drawn;            /* (n·m) */
    double *table;            /* (N,D) answers of a method */
    double *scale;          /* (D) standard deviation of a number's known values; 0: constant, not scored. Classes: 1 */
    double *scratch;        /* (2·most cells of a column + m) */
    acf_shared *shared;     /* (D) values that shown cells of a number share */
    int64_t *count;         /* (most classes) */
    double *chance;         /* (n) -log p of each cell by its column's marginal */
    double *nll, *nll_mean; /* (D+1, masks) of the model; of the columns' marginals */
} work;

/* An array of n elements, or NULL. */
static void *array(int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_alloc_zero(bytes, "an evaluation") : NULL;
}

static int32_t classes_of(const work *w, int64_t j) { return w->job->truth->column[j].classes; }
static int64_t cells_of(const work *w, int64_t j) { return w->first[j + 1] - w->first[j]; }

/* Marks the cells that are missing in `shown` but not in truth. */
static acf_status compare_tables(work *w) {
    const acf_table *a = w->job->truth, *b = w->job->shown;
    bool same = a->N == b->N && a->D == b->D;
    for (int64_t j = 0; same && j < a->D; j++) same = a->column[j].classes == b->column[j].classes;
    if (!same)
        return acf_fail(
            ACF_ESHAPE,
            "the table to complete has %lld rows and %lld columns, the true one %lld and %lld, or their kinds differ; "
            "expected the same table with cells missing",
            (long long)b->N, (long long)b->D, (long long)a->N, (long long)a->D);
    for (int64_t c = 0; c < a->N * a->D; c++)
        w->n += w->hidden[c] = acf_table_present(a->x[c]) && !acf_table_present(b->x[c]);
    w->shown = b;
    return ACF_OK;
}

static bool has_hidden(const work *w, int64_t i, int64_t D) {
    for (int64_t j = 0; j < D; j++)
        if (w->hidden[i * D + j]) return true;
    return false;
}

/* Copies the ids of the same rows, if t has any. */
static acf_status cut_ids(const work *w, const acf_table *t, bool rows, acf_table *out) {
    if (!t->id) return ACF_OK;
    uint64_t *id = acf_alloc((size_t)(out->N + !out->N) * sizeof *id, "the ids of a table");
    if (!id) return ACF_EMEMORY;
    for (int64_t i = 0, n = 0; i < t->N; i++)
        if (!rows || has_hidden(w, i, t->D)) id[n++] = t->id[i];
    out->id = id;
    return ACF_OK;
}

/* A table of those rows of t that have hidden cells; or of all rows, without the hidden cells. */
static acf_status cut(const work *w, const acf_table *t, bool rows, acf_table **out) {
    int64_t N = 0, D = t->D;
    double *x = w->table;
    for (int64_t i = 0; i < t->N; i++) {
        if (rows && !has_hidden(w, i, D)) continue;
        for (int64_t j = 0; j < D; j++) x[N * D + j] = !rows && w->hidden[i * D + j] ? (double)NAN : t->x[i * D + j];
        N++;
    }
    ACF_TRY(acf_table_make(x, NULL, N, D, t->column, out));
    (*out)->first_id = t->first_id;
    return cut_ids(w, t, rows, *out);
}

/* Chooses the hidden cells, and makes the tables that follow from them. */
static acf_status hide(work *w) {
    const acf_table *t = w->job->truth;
    w->hidden = array(t->N * t->D, 1);
    w->table = array(t->N * t->D, sizeof *w->table);
    if (!w->hidden || !w->table) return ACF_EMEMORY;
    if (w->job->shown)
        ACF_TRY(compare_tables(w));
    else
        ACF_TRY(acf_hide(t, w->job->set.hide, w->job->set.seed, w->hidden, &w->n));
    if (w->n == 0 && w->job->shown)
        return acf_fail(ACF_EDATA,
                        "the table to complete lacks no cell that the true one has, so nothing can be scored");
    if (w->n == 0)
        return acf_fail(ACF_EDATA,
                        "no cell of the table's %lld rows and %lld columns can be hidden, so nothing can be scored; "
                        "expected columns with two observed cells or more, and eval-hide above 0",
                        (long long)t->N, (long long)t->D);
    if (!w->job->shown) {
        ACF_TRY(cut(w, t, false, &w->made));
        w->shown = w->made;
    }
    ACF_TRY(cut(w, w->shown, true, &w->part));
    return cut(w, t, true, &w->whole);
}

/* Numbers the hidden cells: counts them by column, then goes through the rows. first[j+1] is the next index of
 * column j. */
static void index_cells(work *w) {
    const acf_table *t = w->job->truth;
    int64_t D = t->D, row = 0, before = 0;
    for (int64_t c = 0; c < t->N * D; c++) w->first[c % D + 1] += w->hidden[c];
    for (int64_t j = 1; j <= D; j++) {
        int64_t cells = w->first[j];
        w->first[j] = before, before += cells;
    }
    for (int64_t i = 0; i < t->N; i++) {
        bool any = false;
        for (int64_t j = 0; j < D; j++) {
            if (!w->hidden[i * D + j]) continue;
            int64_t k = w->first[j + 1]++;
            w->place[k] = i * D + j, w->cell[k] = row * D + j, w->truth[k] = t->x[i * D + j];
            any = true;
        }
        row += any;
    }
}

static acf_status find_shared(work *w) {
    const acf_table *t = w->shown;
    double *x = array(t->N, sizeof *x);
    if (!x) return ACF_EMEMORY;
    for (int64_t j = 0; j < t->D; j++) {
        int64_t n = 0;
        for (int64_t i = 0; i < t->N; i++)
            if (acf_table_present(t->x[i * t->D + j])) x[n++] = t->x[i * t->D + j];
        acf_shared_of(&w->shared[j], x, n);
    }
    acf_release(x);
    return ACF_OK;
}

static acf_status prepare(work *w) {
    const acf_table *t = w->job->truth;
    int64_t D = t->D, m = w->job->set.draws, masks = w->job->set.masks, most = 0, classes = 1;
    w->first = array(D + 1, sizeof *w->first);
    w->place = array(w->n, sizeof *w->place), w->cell = array(w->n, sizeof *w->cell);
    w->truth = array(w->n, sizeof *w->truth), w->value = array(w->n, sizeof *w->value),
    w->chance = array(w->n, sizeof *w->chance);
    w->drawn = array(w->n, (size_t)m * sizeof *w->drawn);
    w->scale = array(D, sizeof *w->scale), w->shared = array(D, sizeof *w->shared);
    w->nll = array((D + 1) * masks, sizeof *w->nll), w->nll_mean = array((D + 1) * masks, sizeof *w->nll);
    w->target = array(w->whole->N * D, 1);
    if (!w->first || !w->place || !w->cell || !w->truth || !w->value || !w->chance || !w->drawn || !w->scale ||
        !w->shared || !w->nll || !w->nll_mean || !w->target)
        return ACF_EMEMORY;
    index_cells(w);
    for (int64_t j = 0; j < D; j++) {
        double s = classes_of(w, j) ? 1 : acf_metric_scale(t->x + j, t->N, D);
        w->scale[j] = isfinite(s) ? s : 0;
        most = acf_max(most, cells_of(w, j)), classes = acf_max(classes, classes_of(w, j));
    }
    ACF_TRY(find_shared(w));
    w->scratch = array(2 * most + m, sizeof *w->scratch);
    w->count = array(classes, sizeof *w->count);
    return w->scratch && w->count ? ACF_OK : ACF_EMEMORY;
}

static void work_free(work *w) {
    acf_session_free(w->s);
    acf_model_free(w->fitted);
    acf_table_free(w->made), acf_table_free(w->part), acf_table_free(w->whole);
    void *const arrays[] = {w->hidden, w->target, w->first,   w->place, w->cell,   w->truth, w->value,    w->drawn,
                            w->table,  w->scale,  w->scratch, w->count, w->chance, w->nll,   w->nll_mean, w->shared};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) acf_release(arrays[i]);
}

/* ---- scores of imputations --------------------------------------------------------------------------------------- */

static acf_scores *scores_at(const work *w, int method, int64_t j) {
    return w->e->score + method * (w->job->truth->D + 1) + j;
}

/* What a method provides: values without uncertainty; values and draws; or values only, with another method's draws. */
typedef enum claim { CERTAIN, DRAWS, VALUES } claim;

static void score_number(const work *w, int64_t j, claim how, acf_scores *out) {
    int64_t n = cells_of(w, j), m = w->job->set.draws;
    const double *truth = w->truth + w->first[j], *value = w->value + w->first[j], *drawn = w->drawn + w->first[j] * m,
                 s = w->scale[j];
    out->nrmse = acf_metric_nrmse(truth, value, n, s);
    if (how == CERTAIN) {
        out->crps = acf_metric_nmae(truth, value, n, s);
        out->w1 = acf_metric_wasserstein(truth, value, n, s, w->scratch);
    }
    if (how != DRAWS) return;
    out->crps = acf_metric_crps(truth, drawn, m, n, s, w->scratch);
    if (m >= acf_interval_draws(ACF_EVAL_LEVEL))
        out->coverage = acf_metric_coverage(truth, drawn, m, n, ACF_EVAL_LEVEL, s, &w->shared[j], w->scratch);
    out->w1 = 0;
    for (int64_t k = 0; k < m; k++)
        out->w1 += acf_metric_wasserstein(truth, drawn + k * n, n, s, w->scratch) / (double)m;
}

static void score_class(const work *w, int64_t j, claim how, acf_scores *out) {
    int64_t n = cells_of(w, j), m = w->job->set.draws, C = classes_of(w, j);
    const double *truth = w->truth + w->first[j], *value = w->value + w->first[j], *drawn = w->drawn + w->first[j] * m;
    out->pfc = (double)acf_metric_wrong(truth, value, n) / (double)n;
    if (how == CERTAIN) out->tv = acf_metric_variation(truth, value, n, C, w->count);
    if (how != DRAWS) return;
    out->tv = 0;
    for (int64_t k = 0; k < m; k++) out->tv += acf_metric_variation(truth, drawn + k * n, n, C, w->count) / (double)m;
}

/* Adds `value` to a mean over columns; ignores NaN. */
static void average(double *mean, double *count, double value) {
    if (isnan(value)) return;
    *mean = *count > 0 ? *mean + (value - *mean) / (*count + 1) : value;
    ++*count;
}

/* Scores over all columns: means, except PFC, which is over cells. */
static void score_all(const work *w, int method) {
    int64_t D = w->job->truth->D;
    acf_scores *all = scores_at(w, method, D);
    double n[5] = {0}, wrong = 0, target = 0;
    for (int64_t j = 0; j < D; j++) {
        const acf_scores *one = scores_at(w, method, j);
        average(&all->nrmse, &n[0], one->nrmse), average(&all->crps, &n[1], one->crps),
            average(&all->coverage, &n[2], one->coverage);
        average(&all->w1, &n[3], one->w1), average(&all->tv, &n[4], one->tv);
        if (!isnan(one->pfc)) wrong += one->pfc * (double)one->cells, target += (double)one->cells;
        all->cells += one->cells;
    }
    if (target > 0) all->pfc = wrong / target;
}

static void score_method(const work *w, int method, claim how) {
    for (int64_t j = 0; j < w->job->truth->D; j++) {
        if (cells_of(w, j) == 0 || w->scale[j] == 0) continue;
        acf_scores *s = scores_at(w, method, j);
        s->cells = cells_of(w, j);
        if (classes_of(w, j))
            score_class(w, j, how, s);
        else
            score_number(w, j, how, s);
    }
    score_all(w, method);
}

/* Copies the hidden cells of w->table to value, or to drawn as draw number k. at: index of each cell. */
static void keep_values(const work *w, const int64_t *at) {
    for (int64_t i = 0; i < w->n; i++) w->value[i] = w->table[at[i]];
}

static void keep_draw(const work *w, const int64_t *at, int64_t k) {
    for (int64_t j = 0; j < w->job->truth->D; j++) {
        double *out = w->drawn + w->first[j] * w->job->set.draws + k * cells_of(w, j);
        for (int64_t i = w->first[j]; i < w->first[j + 1]; i++) *out++ = w->table[at[i]];
    }
}

static acf_status score_baselines(work *w) {
    acf_baseline *b = NULL;
    acf_status status = ACF_OK;
    ACF_TRY(acf_baseline_mean(w->shown, w->table));
    keep_values(w, w->place);
    score_method(w, ACF_EVAL_MEAN, CERTAIN);
    ACF_TRY(acf_baseline_create(w->shown, w->job->set.seed, &b));
    acf_baseline_point(b, w->table);
    keep_values(w, w->place);
    for (int64_t k = 0; k < w->job->set.draws; k++) {
        ACF_TRY_DONE(acf_baseline_draw(b, w->table));
        keep_draw(w, w->place, k);
    }
    score_method(w, ACF_EVAL_LINEAR, DRAWS);
done:
    acf_baseline_free(b);
    return status;
}

/* Summarises the draws as one value per cell. */
static void values_of_draws(const work *w) {
    int64_t m = w->job->set.draws;
    for (int64_t j = 0; j < w->job->truth->D; j++) {
        const double *drawn = w->drawn + w->first[j] * m;
        double *value = w->value + w->first[j];
        if (classes_of(w, j))
            acf_metric_vote(drawn, m, cells_of(w, j), classes_of(w, j), w->count, value);
        else
            acf_metric_mean(drawn, m, cells_of(w, j), value);
    }
}

static acf_status score_model(work *w) {
    const acf_query every_hole = {NULL, NULL};
    for (int64_t k = 0; k < w->job->set.draws; k++) {
        ACF_TRY(acf_session_query_draw(w->s, w->part, every_hole, w->job->set.seed, (uint32_t)k, w->table));
        keep_draw(w, w->cell, k);
    }
    for (int k = 0; k < ESTIMATES; k++) {
        if (estimates[k].run) {
            ACF_TRY(estimates[k].run(w->s, w->part, every_hole, w->table));
            keep_values(w, w->cell);
        } else {
            values_of_draws(w);
        }
        score_method(w, ACF_EVAL_MODEL + k, k == 0 ? DRAWS : VALUES);
    }
    return ACF_OK;
}

/* ---- likelihoods ------------------------------------------------------------------------------------------------- */

/* Added to log p of a number in the table's units, this gives log p in standard deviations of its column, which can
 * be averaged over columns. */
static double log_unit(const work *w, int64_t j) { return log(w->scale[j]); }

/* Log-likelihood of hidden cells under their column's marginal: a normal distribution with the mean and deviation of
 * the shown cells (of all, if only a single value is shown); for classes their shares, with one added to each count. */
static void score_columns_alone(work *w) {
    const acf_table *t = w->shown;
    for (int64_t j = 0; j < t->D; j++) {
        double C = classes_of(w, j), n = 0, mean = 0, deviation = C > 0 ? 0 : acf_metric_scale(t->x + j, t->N, t->D);
        if (deviation == 0) deviation = w->scale[j];
        memset(w->count, 0, (size_t)classes_of(w, j) * sizeof *w->count);
        for (int64_t i = 0; i < t->N; i++) {
            double v = t->x[i * t->D + j];
            if (!acf_table_present(v)) continue;
            n++, mean += (v - mean) / n;
            if (C > 0) w->count[(int64_t)v]++;
        }
        for (int64_t i = w->first[j]; i < w->first[j + 1]; i++) {
            double z = (w->truth[i] - mean) / deviation;
            w->chance[i] = C > 0 ? -log(((double)w->count[(int64_t)w->truth[i]] + 1) / (n + C))
                                 : 0.5 * log(2 * acos(-1.0)) + log(deviation) + 0.5 * z * z - log_unit(w, j);
        }
    }
}

/* Chooses the cells of mask k: half of the hidden ones of non-constant columns. Returns how many. */
static int64_t choose_mask(work *w, int64_t k, uint8_t *from) {
    int64_t D = w->whole->D, cells = w->whole->N * D, n = 0;
    memset(from, 0, (size_t)cells);
    for (int64_t j = 0; j < D; j++)
        for (int64_t i = w->first[j]; w->scale[j] > 0 && i < w->first[j + 1]; i++) from[w->cell[i]] = 1, n++;
    return pick(from, cells, D, (n + 1) / 2, NULL, w->job->set.seed, 1 + (uint32_t)k, w->target);
}

/* -log p per cell of the whole mask, jointly for each row; and by the columns' marginals. */
static acf_status score_mask(work *w, int64_t k, int64_t n, double *row) {
    int64_t D = w->whole->D, masks = w->job->set.masks;
    double sum = 0, alone = 0;
    ACF_TRY(acf_session_query_logp(w->s, w->whole, (acf_query){.target = w->target}, row));
    for (int64_t i = 0; i < w->whole->N; i++) sum -= row[i];
    for (int64_t j = 0; j < D; j++) {
        double column = 0, cells = 0;
        for (int64_t i = w->first[j]; i < w->first[j + 1]; i++)
            if (w->target[w->cell[i]]) cells++, column += w->chance[i], sum -= log_unit(w, j);
        w->nll_mean[j * masks + k] = column / cells; /* NaN without cells: not counted */
        alone += column;
    }
    w->nll[D * masks + k] = sum / (double)n, w->nll_mean[D * masks + k] = alone / (double)n;
    return ACF_OK;
}

/* Cells i[0..n) of the mask, each alone: the other targets of its row count as missing. Adds -log p to sum (D). */
static acf_status ask_cells(work *w, const int64_t *i, int64_t n, double *x, uint8_t *target, double *row,
                            double *sum) {
    int64_t D = w->whole->D;
    memset(target, 0, (size_t)(n * D));
    for (int64_t r = 0; r < n; r++) {
        int64_t cell = w->cell[i[r]], from = cell / D * D;
        for (int64_t j = 0; j < D; j++)
            x[r * D + j] = w->target[from + j] && from + j != cell ? (double)NAN : w->whole->x[from + j];
        target[r * D + cell % D] = 1;
    }
    acf_table *t;
    ACF_TRY(acf_table_make(x, NULL, n, D, w->whole->column, &t));
    acf_status status = acf_session_query_logp(w->s, t, (acf_query){.target = target}, row);
    acf_table_free(t);
    for (int64_t r = 0; r < n && !status; r++) {
        int64_t j = w->cell[i[r]] % D;
        sum[j] -= row[r] + log_unit(w, j);
    }
    return status;
}

/* -log p of each cell of the mask alone, as the mean of each column. */
static acf_status score_mask_columns(work *w, int64_t k) {
    int64_t D = w->whole->D, masks = w->job->set.masks, n = 0, list[CELL_ROWS];
    double *x = array(CELL_ROWS * D, sizeof *x), *row = array(CELL_ROWS, sizeof *row), *sum = array(D, sizeof *sum);
    uint8_t *target = array(CELL_ROWS * D, 1);
    acf_status status = x && row && sum && target ? ACF_OK : ACF_EMEMORY;
    for (int64_t i = 0; i <= w->n && !status; i++) {
        if (i < w->n && w->target[w->cell[i]]) list[n++] = i;
        if (n < CELL_ROWS && i < w->n) continue;
        status = ask_cells(w, list, n, x, target, row, sum);
        n = 0;
    }
    for (int64_t j = 0; j < D && !status; j++) {
        double cells = 0;
        for (int64_t i = w->first[j]; i < w->first[j + 1]; i++) cells += w->target[w->cell[i]];
        w->nll[j * masks + k] = sum[j] / cells;
    }
    acf_release(x), acf_release(row), acf_release(sum), acf_release(target);
    return status;
}

static acf_status score_likelihoods(work *w) {
    int64_t D = w->whole->D, masks = w->job->set.masks;
    acf_status status = ACF_OK;
    uint8_t *from = array(w->whole->N * D, 1);
    double *row = array(w->whole->N, sizeof *row);
    if (!from || !row) status = ACF_EMEMORY;
    if (!status) score_columns_alone(w);
    for (int64_t k = 0; k < masks && !status; k++) {
        int64_t n = choose_mask(w, k, from);
        status = score_mask(w, k, n, row);
        if (!status) status = score_mask_columns(w, k);
    }
    for (int64_t j = 0; j <= D && !status; j++) {
        acf_mean_deviation model = acf_metric_repeated(w->nll + j * masks, masks),
                           mean = acf_metric_repeated(w->nll_mean + j * masks, masks);
        acf_scores *a = scores_at(w, ACF_EVAL_MODEL, j), *b = scores_at(w, ACF_EVAL_MEAN, j);
        a->nll = model.mean, a->nll_deviation = model.deviation, b->nll = mean.mean, b->nll_deviation = mean.deviation;
    }
    acf_release(from), acf_release(row);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static acf_status open_evaluation(work *w, acf_evaluation **out) {
    const acf_table *t = w->job->truth;
    const acf_scores none = {0,           (double)NAN, (double)NAN, (double)NAN, (double)NAN,
                             (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    acf_evaluation *e = w->e = *out = acf_alloc_zero(sizeof *e, "an evaluation");
    if (!e) return ACF_EMEMORY;
    e->rows = t->N, e->columns = t->D, e->methods = METHODS;
    e->set = w->job->set, e->fitted = !w->job->model, e->chosen = !w->job->shown;
    e->column = acf_columns_copy(t->column, t->D);
    e->score = array((t->D + 1) * METHODS, sizeof *e->score);
    if (!e->column || !e->score) return ACF_EMEMORY;
    for (int64_t i = 0; i < (t->D + 1) * METHODS; i++) e->score[i] = none;
    for (int64_t c = 0; c < t->N * t->D; c++) e->observed += acf_table_present(t->x[c]);
    e->hidden = w->n;
    e->rows_alone = (acf_row_scores){0, 0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    return ACF_OK;
}

acf_status acf_evaluate(const acf_eval_job *job, acf_evaluation **out) {
    work w = {.job = job};
    acf_evaluation *e = NULL;
    const acf_model *model = job->model;
    acf_status status = ACF_OK;
    ACF_TRY_DONE(hide(&w));
    ACF_TRY_DONE(open_evaluation(&w, &e));
    ACF_TRY_DONE(prepare(&w));
    if (!model) {
        ACF_TRY_DONE(job->fit(job->ctx, w.shown, &w.fitted));
        model = w.fitted;
    }
    ACF_TRY_DONE(acf_session_open(model->dev, model, ASK_ROWS, &w.s));
    ACF_TRY_DONE(score_model(&w));
    ACF_TRY_DONE(score_likelihoods(&w));
    if (job->model && !job->shown)
        ACF_TRY_DONE(acf_row_score(w.s, model, job->truth, job->set.masks, job->set.seed, &e->rows_alone));
    ACF_TRY_DONE(score_baselines(&w));
    *out = e;
done:
    if (status) acf_evaluation_free(e);
    work_free(&w);
    return status;
}

void acf_evaluation_free(acf_evaluation *e) {
    if (!e) return;
    acf_release(e->column);
    acf_release(e->score);
    acf_release(e);
}

const acf_scores *acf_evaluation_scores(const acf_evaluation *e, int method, int64_t column) {
    return e->score + method * (e->columns + 1) + (column < 0 ? e->columns : column);
}
