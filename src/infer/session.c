/* Questions to a fitted model: see session.h. */
#include "infer/session.h"

#include "data/resident.h"
#include "infer/replayed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCORE_SEED 0 /* of the noise that stands in for what rounding took away (data/encode.h): scores are reproducible */

struct acf_session {
    acf_device *dev;
    const acf_model *m;
    acf_tape *t;
    acf_batch *batch;
    int64_t *row;    /* (rows) table rows of the batch */
    acf_real *cells; /* (rows,D) what the network answers, encoded */
    int32_t *column; /* (rows) of acf_ask_mean: the one column that a row of the batch asks for */
    acf_real *spread; /* (rows, ACF_MEAN_VALUES) */
    acf_replayed *replayed; /* on a GPU; NULL: questions are asked by hand */
    acf_precision precision;
};

acf_status acf_ask_create(acf_device *dev, const acf_model *m, int64_t rows, acf_session **out) {
    acf_status status = ACF_OK;
    if (rows < 1) return acf_fail(ACF_EUSAGE, "a session with batches of %lld rows; expected at least 1", (long long)rows);
    acf_session *s = acf_alloc_zero(sizeof *s, "a session");
    if (!s) return ACF_EMEMORY;
    s->dev = dev, s->m = m;
    ACF_TRY_DONE(acf_tape_create(dev, NULL, &s->t));
    ACF_TRY_DONE(acf_batch_stage(dev, rows, m->encoder->D, &s->batch));
    ACF_TRY_DONE(acf_replayed_create(m->net, s->t, rows, &s->replayed));
    s->row = acf_alloc((size_t)rows * sizeof *s->row, "a session");
    s->cells = s->row ? acf_alloc((size_t)(rows * m->encoder->D) * sizeof *s->cells, "a session") : NULL;
    s->column = s->cells ? acf_alloc((size_t)rows * sizeof *s->column, "a session") : NULL;
    s->spread = s->column ? acf_alloc((size_t)rows * ACF_MEAN_VALUES * sizeof *s->spread, "a session") : NULL;
    if (!s->spread) status = ACF_EMEMORY;
    else *out = s;
done:
    if (status) acf_ask_free(s);
    return status;
}

void acf_ask_free(acf_session *s) {
    if (!s) return;
    acf_replayed_free(s->replayed);
    acf_tape_free(s->t);
    acf_batch_free(s->batch);
    acf_release(s->row);
    acf_release(s->cells);
    acf_release(s->column);
    acf_release(s->spread);
    acf_release(s);
}

acf_status acf_ask_precision(acf_session *s, acf_precision precision) {
    if (!acf_device_multiplies(s->dev, precision)) return acf_fail(ACF_EDEVICE, "this device does not multiply in that precision; use precision float");
    s->precision = precision;
    acf_replayed_forget(s->replayed);
    return ACF_OK;
}

/* ---- from a question to masks ---------------------------------------------------------------------------------------------- */

typedef enum purpose { SCORE, FILL } purpose;

static bool is_asked(acf_question q, purpose why, int64_t cell, bool present) {
    if (q.asked) return q.asked[cell] && (present || why == FILL);
    return why == SCORE ? present : !present;
}

/* Loads table rows [from, from+n) and sets b and m as the question says. */
static void load(acf_session *s, const acf_table *t, acf_question q, purpose why, int64_t from, int64_t n) {
    acf_batch *batch = s->batch;
    int64_t D = batch->D;
    for (int64_t i = 0; i < n; i++) s->row[i] = from + i;
    acf_batch_fill(s->dev, batch, t, s->m->encoder, NULL, ACF_BATCH_TRAIN, s->row, n);
    for (int64_t k = 0; k < n * D; k++) {
        int64_t cell = from * D + k;
        bool present = batch->m[k], asked = is_asked(q, why, cell, present);
        bool given = present && !asked && (!q.given || q.given[cell]);
        batch->b[k] = given;
        batch->m[k] = given || asked;
    }
}

static acf_status check(const acf_session *s, const acf_table *t) { return acf_encoder_check(s->m->encoder, t); }

/* A view of the loaded batch on a fresh, not recording tape. */
static acf_view *view(acf_session *s) {
    acf_tape_begin(s->t, false);
    return acf_net_view(s->t, s->m->net, s->batch, NULL);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------- */

/* log |dz/dx| of the modelled cells of row i of the batch, at the very values that score looks at. */
static double slopes(const acf_session *s, const acf_table *t, int64_t i) {
    const acf_encoder *e = s->m->encoder;
    const acf_batch *batch = s->batch;
    const double *x = acf_tab_row(t, s->row[i]);
    double sum = 0;
    for (int64_t j = 0; j < batch->D; j++)
        if (batch->m[i * batch->D + j] && !batch->b[i * batch->D + j])
            sum += acf_encode_log_slope(e, j, acf_dequantise(e, j, x[j], SCORE_SEED, batch->id[i], ACF_NOISE_FIXED));
    return sum;
}

/* s->cells (n): log p of the loaded rows, encoded. */
static acf_status ask_logp(acf_session *s) {
    bool by_hand = true;
    if (s->replayed) ACF_TRY(acf_replayed_logp(s->replayed, s->batch, s->cells, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_tensor *lp = acf_net_logp(s->t, view(s));
    ACF_TRY(acf_tape_check(s->t, lp));
    ACF_TRY(acf_device_copy(s->dev, s->cells, lp->data, (size_t)s->batch->N * sizeof *s->cells, ACF_TO_HOST));
    return acf_device_sync(s->dev);
}

/* out (n): log p of the loaded rows in the table's units: densities of encoded values, and the encoder's slopes. */
static acf_status score(acf_session *s, const acf_table *t, double *out) {
    const acf_batch *batch = s->batch;
    acf_batch_dequantise(s->dev, s->batch, t, s->m->encoder, s->row, SCORE_SEED, ACF_NOISE_FIXED);
    s->dev->precision = s->precision;
    acf_status status = ask_logp(s);
    s->dev->precision = ACF_PRECISION_FLOAT;
    ACF_TRY(status);
    for (int64_t i = 0; i < batch->N; i++) out[i] = (double)s->cells[i] + slopes(s, t, i);
    return ACF_OK;
}

acf_status acf_ask_logp(acf_session *s, const acf_table *t, acf_question q, double *out) {
    ACF_TRY(check(s, t));
    for (int64_t from = 0; from < t->N; from += s->batch->capacity) {
        load(s, t, q, SCORE, from, acf_min(s->batch->capacity, t->N - from));
        ACF_TRY(score(s, t, out + from));
    }
    return ACF_OK;
}

acf_status acf_ask_cells(acf_session *s, const acf_table *t, double *out) {
    ACF_TRY(check(s, t));
    int64_t D = t->D;
    double *one = acf_alloc((size_t)s->batch->capacity * sizeof *one, "scores of a column");
    if (!one) return ACF_EMEMORY;
    acf_status status = ACF_OK;
    for (int64_t from = 0; from < t->N; from += s->batch->capacity) {
        int64_t n = acf_min(s->batch->capacity, t->N - from);
        for (int64_t j = 0; j < D; j++) { /* one column at a time: ask for it where it is present, give the rest */
            load(s, t, (acf_question){NULL, NULL}, SCORE, from, n);
            for (int64_t k = 0; k < n * D; k++) s->batch->b[k] = s->batch->m[k] && k % D != j;
            ACF_TRY_DONE(score(s, t, one));
            for (int64_t i = 0; i < n; i++)
                out[(from + i) * D + j] = acf_tab_present(acf_tab_row(t, from + i)[j]) ? one[i] : (double)NAN;
        }
    }
done:
    acf_release(one);
    return status;
}

/* ---- draws and guesses ------------------------------------------------------------------------------------------------------- */

static acf_status ask_answer(acf_session *s, const acf_draw *d) {
    bool by_hand = true;
    if (s->replayed) ACF_TRY(acf_replayed_answer(s->replayed, s->batch, d, s->cells, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_view *v = view(s);
    return d ? acf_net_draw(s->t, v, d, s->cells) : acf_net_guess(s->t, v, s->cells);
}

/* Answers for the loaded rows into s->cells: the best guess, or a draw. */
static acf_status answer(acf_session *s, const acf_draw *d) {
    s->dev->precision = s->precision;
    acf_status status = ask_answer(s, d);
    s->dev->precision = ACF_PRECISION_FLOAT;
    return status;
}

static bool asked_here(const acf_batch *batch, int64_t k) { return batch->m[k] && !batch->b[k]; }

static acf_status fill(acf_session *s, const acf_table *t, acf_question q, const acf_draw *d, double *out) {
    ACF_TRY(check(s, t));
    int64_t D = t->D;
    for (int64_t from = 0; from < t->N; from += s->batch->capacity) {
        int64_t n = acf_min(s->batch->capacity, t->N - from);
        load(s, t, q, FILL, from, n);
        ACF_TRY(answer(s, d));
        for (int64_t k = 0; k < n * D; k++)
            out[from * D + k] = asked_here(s->batch, k) ? acf_decode(s->m->encoder, k % D, s->cells[k])
                                                        : acf_tab_row(t, from)[k];
    }
    return ACF_OK;
}

acf_status acf_ask_draw(acf_session *s, const acf_table *t, acf_question q, uint64_t seed, uint32_t draw, double *out) {
    return fill(s, t, q, &(acf_draw){.seed = seed, .draw = draw}, out);
}

acf_status acf_ask_guess(acf_session *s, const acf_table *t, acf_question q, double *out) { return fill(s, t, q, NULL, out); }

/* ---- means of single cells --------------------------------------------------------------------------------------------------- */

/* A row of the batch for one asked cell each, n of them; what else the row asks for is missing. */
static void load_cells(acf_session *s, const acf_table *t, acf_question q, int64_t n) {
    acf_batch *batch = s->batch;
    int64_t D = batch->D;
    acf_batch_fill(s->dev, batch, t, s->m->encoder, NULL, ACF_BATCH_TRAIN, s->row, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < D; j++) {
            int64_t k = i * D + j, cell = s->row[i] * D + j;
            bool present = batch->m[k], asked = is_asked(q, FILL, cell, present);
            batch->b[k] = present && !asked && (!q.given || q.given[cell]);
            batch->m[k] = batch->b[k] || j == s->column[i];
        }
}

static acf_status mean_cells(acf_session *s, const acf_table *t, acf_question q, int64_t n, double *out) {
    const acf_encoder *e = s->m->encoder;
    if (n == 0) return ACF_OK;
    load_cells(s, t, q, n);
    s->dev->precision = s->precision;
    acf_view *v = view(s);
    acf_status status = acf_net_spread(s->t, v, ACF_MEAN_VALUES, s->spread);
    s->dev->precision = ACF_PRECISION_FLOAT;
    ACF_TRY(status);
    for (int64_t i = 0; i < n; i++) {
        int32_t j = s->column[i];
        int values = e->column[j].classes > 0 ? 1 : ACF_MEAN_VALUES;
        double sum = 0;
        for (int k = 0; k < values; k++) sum += acf_decode(e, j, s->spread[i * ACF_MEAN_VALUES + k]) / values;
        out[s->row[i] * t->D + j] = sum;
    }
    return ACF_OK;
}

acf_status acf_ask_mean(acf_session *s, const acf_table *t, acf_question q, double *out) {
    ACF_TRY(check(s, t));
    int64_t n = 0;
    for (int64_t cell = 0; cell < t->N * t->D; cell++) {
        out[cell] = t->x[cell];
        if (!is_asked(q, FILL, cell, acf_tab_present(t->x[cell]))) continue;
        s->row[n] = cell / t->D, s->column[n] = (int32_t)(cell % t->D), n++;
        if (n < s->batch->capacity) continue;
        ACF_TRY(mean_cells(s, t, q, n, out));
        n = 0;
    }
    return mean_cells(s, t, q, n, out);
}

/* ---- summaries ------------------------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of n sorted values, linear between neighbours (R's type 7, which numpy also uses). */
static double quantile_of(const double *x, int64_t n, double q) {
    double at = q * (double)(n - 1);
    int64_t k = (int64_t)floor(at);
    return k + 1 < n ? x[k] + (at - (double)k) * (x[k + 1] - x[k]) : x[n - 1];
}

/* The most frequent of n sorted values, the lowest of them in a tie. */
static double mode_of(const double *x, int64_t n) {
    double best = x[0];
    int64_t most = 0;
    for (int64_t i = 0, run = 0; i < n; i++) {
        run = i && x[i] == x[i - 1] ? run + 1 : 1;
        if (run > most) most = run, best = x[i];
    }
    return best;
}

typedef struct summary {
    int32_t draws;
    const double *level;
    int n_levels;
    double *mean, *quantile; /* (N,D), (n_levels,N,D) */
    int64_t cells;           /* N·D */
} summary;

/* One cell from its draws, which are sorted in place. */
static void summarise(const summary *w, int64_t cell, double *x, bool categorical) {
    double sum = 0;
    qsort(x, (size_t)w->draws, sizeof *x, by_value);
    for (int32_t i = 0; i < w->draws; i++) sum += x[i];
    double mode = categorical ? mode_of(x, w->draws) : 0;
    if (w->mean) w->mean[cell] = categorical ? mode : sum / w->draws;
    for (int k = 0; w->quantile && k < w->n_levels; k++)
        w->quantile[k * w->cells + cell] = categorical ? mode : quantile_of(x, w->draws, w->level[k]);
}

static void nothing_asked(const summary *w, int64_t cell) {
    if (w->mean) w->mean[cell] = (double)NAN;
    for (int k = 0; w->quantile && k < w->n_levels; k++) w->quantile[k * w->cells + cell] = (double)NAN;
}

/* All draws of the loaded rows, cell-major: drawn (n·D, draws). */
static acf_status draw_all(acf_session *s, uint64_t seed, int32_t draws, double *drawn) {
    int64_t D = s->batch->D, n = s->batch->N;
    for (int32_t i = 0; i < draws; i++) {
        ACF_TRY(answer(s, &(acf_draw){.seed = seed, .draw = (uint32_t)i}));
        for (int64_t k = 0; k < n * D; k++)
            if (asked_here(s->batch, k)) drawn[k * draws + i] = acf_decode(s->m->encoder, k % D, s->cells[k]);
    }
    return ACF_OK;
}

acf_status acf_ask_summary(acf_session *s, const acf_table *t, acf_question q, uint64_t seed, int32_t draws, const double *level,
                           int n_levels, double *mean, double *quantile) {
    ACF_TRY(check(s, t));
    if (draws < 1) return acf_fail(ACF_EUSAGE, "%d draws; expected at least 1", draws);
    for (int k = 0; k < n_levels; k++)
        if (!(level[k] >= 0 && level[k] <= 1)) return acf_fail(ACF_EUSAGE, "quantile %g; expected a number from 0 to 1", level[k]);
    const summary w = {draws, level, n_levels, mean, quantile, t->N * t->D};
    acf_status status = ACF_OK;
    size_t bytes;
    int64_t D = t->D, rows = acf_min(s->batch->capacity, t->N);
    if (!acf_bytes(rows * D, (size_t)draws * sizeof(double), &bytes)) return ACF_EMEMORY;
    double *drawn = acf_alloc(bytes, "draws");
    if (!drawn) return ACF_EMEMORY;
    for (int64_t from = 0; from < t->N; from += s->batch->capacity) {
        int64_t n = acf_min(s->batch->capacity, t->N - from);
        load(s, t, q, FILL, from, n);
        ACF_TRY_DONE(draw_all(s, seed, draws, drawn));
        for (int64_t k = 0; k < n * D; k++) {
            if (asked_here(s->batch, k)) summarise(&w, from * D + k, drawn + k * draws, s->m->encoder->column[k % D].classes > 0);
            else nothing_asked(&w, from * D + k);
        }
    }
done:
    acf_release(drawn);
    return status;
}
