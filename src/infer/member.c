/* Queries to one ensemble member: see member.h. */
#include "infer/member.h"

#include "table/table_on_device.h"

#include <math.h>

#define SCORE_SEED 0 /* of the noise that dequantises rounded values (table/encode.h): scores are reproducible */

acf_status acf_member_create(acf_device *dev, const acf_model *m, int64_t rows, acf_member **out) {
    acf_status status = ACF_OK;
    const int64_t D = m->encoder->D;
    acf_member *s = acf_alloc_zero(sizeof *s, "a session");
    if (!s) return ACF_EMEMORY;
    s->dev = dev, s->m = m, s->orders = s->turns = 1;
    ACF_TRY_DONE(acf_tape_create(dev, NULL, &s->t));
    ACF_TRY_DONE(acf_batch_stage(dev, rows, D, &s->batch));
    if (m->draws) {
        ACF_TRY_DONE(acf_gmm_draws_create(dev, 1, m->draws->K, m->draws->W, &s->gmm));
        ACF_TRY_DONE(acf_member_use(s, 0));
    }
    ACF_TRY_DONE(acf_query_graph_create(m->net, s->t, rows, s->gmm, &s->query_graph));
    s->row = acf_alloc((size_t)rows * sizeof *s->row, "a session");
    s->cells = s->row ? acf_alloc((size_t)(rows * D) * sizeof *s->cells, "a session") : NULL;
    s->cell_values = s->cells ? acf_alloc((size_t)rows * ACF_MEAN_VALUES * sizeof *s->cell_values, "a session") : NULL;
    if (s->cell_values && m->draws)
        s->drawn = acf_alloc((size_t)rows * ACF_MEAN_VALUES * sizeof *s->drawn, "a session");
    s->sum = s->cell_values && (!m->draws || s->drawn) ? acf_alloc((size_t)rows * sizeof *s->sum, "a session") : NULL;
    if (!s->sum)
        status = ACF_EMEMORY;
    else
        *out = s;
done:
    if (status) acf_member_free(s);
    return status;
}

void acf_member_free(acf_member *s) {
    if (!s) return;
    acf_query_graph_free(s->query_graph);
    acf_gmm_draws_free(s->gmm);
    acf_tape_free(s->t);
    acf_batch_free(s->batch);
    acf_release(s->row);
    acf_release(s->cells);
    acf_release(s->cell_values);
    acf_release(s->drawn);
    acf_release(s->sum);
    acf_release(s);
}

/* ---- masks of a query -------------------------------------------------------------------------------------------- */

bool acf_query_asks(acf_query q, acf_purpose why, int64_t cell, bool present) {
    if (q.target) return q.target[cell] && (present || why == ACF_TO_FILL);
    return why == ACF_TO_SCORE ? present : !present;
}

bool acf_query_gives(acf_query q, acf_purpose why, int64_t cell, bool present) {
    return present && !acf_query_asks(q, why, cell, present) && (!q.given || q.given[cell]);
}

/* Values are clamped at a million deviations, which a typing error or a wrong unit can reach. Larger squares would
 * leave the range of floats, and one such cell would fail the query for the whole table. */
#define VALUE_MAX ACF_R(1e6)
static void clamp_values(acf_batch *batch) {
    for (int64_t c = 0; c < batch->N * batch->D; c++) {
        if (batch->x[c] > VALUE_MAX) batch->x[c] = VALUE_MAX;
        if (batch->x[c] < -VALUE_MAX) batch->x[c] = -VALUE_MAX;
    }
}

static void fill(acf_member *s, const acf_table *t, const int64_t *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) s->row[i] = row[i];
    acf_batch_fill(s->dev, s->batch, t, s->m->encoder, NULL, ACF_BATCH_TRAIN, s->row, n);
    clamp_values(s->batch);
}

/* Given cells are clamped at ten deviations, because training had none farther away. Farther ones are usually typing
 * errors; a linear prediction from them would make the rest of the row look wrong instead. */
#define GIVEN_MAX ACF_R(10.0)
static acf_real clamp_given(acf_real x) {
    if (x > GIVEN_MAX) return GIVEN_MAX;
    return x < -GIVEN_MAX ? -GIVEN_MAX : x;
}

/* Sets the masks of the batch's rows. column (n): only that cell of each row is modelled; NULL: all targets of q. */
static void load(acf_member *s, const acf_table *t, acf_query q, acf_purpose why, const int64_t *row,
                 const int32_t *column, int64_t n) {
    acf_batch *batch = s->batch;
    const int64_t D = batch->D;
    fill(s, t, row, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < D; j++) {
            const int64_t k = i * D + j, cell = row[i] * D + j;
            const bool present = batch->m[k], target = acf_query_asks(q, why, cell, present);
            const bool given = acf_query_gives(q, why, cell, present);
            batch->b[k] = given;
            if (given) batch->x[k] = clamp_given(batch->x[k]);
            batch->m[k] = given || (column ? j == column[i] : target);
        }
}

void acf_member_load(acf_member *s, const acf_table *t, acf_query q, acf_purpose why, const int64_t *row, int64_t n) {
    load(s, t, q, why, row, NULL, n);
}

void acf_member_load_cells(acf_member *s, const acf_table *t, acf_query q, const int64_t *row, const int32_t *column,
                           int64_t n) {
    load(s, t, q, ACF_TO_FILL, row, column, n);
}

/* A view of the loaded batch on a fresh tape that does not record. */
static acf_view *view(acf_member *s, uint32_t order) {
    acf_tape_begin(s->t, false);
    acf_view *v = acf_net_view(s->t, s->m->net, s->batch, NULL);
    acf_net_view_order(s->t, v, order);
    return v;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* log |dz/dx| of the modelled cells of row i of the batch, at the values that are scored. */
static double slopes(const acf_member *s, const acf_table *t, int64_t i) {
    const acf_encoder *e = s->m->encoder;
    const acf_batch *batch = s->batch;
    const double *x = acf_table_row(t, s->row[i]);
    double sum = 0;
    for (int64_t j = 0; j < batch->D; j++)
        if (acf_member_is_target(s, i * batch->D + j))
            sum += acf_encode_log_slope(e, j, acf_dequantise(e, j, x[j], SCORE_SEED, batch->id[i], ACF_NOISE_FIXED));
    return sum;
}

/* s->cells (n): log p of the loaded rows, encoded, in one order. */
static acf_status ask_order(acf_member *s, uint32_t order) {
    bool by_hand = true;
    if (s->query_graph && !order) ACF_TRY(acf_query_graph_logp(s->query_graph, s->batch, s->cells, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_tensor *lp = acf_net_logp(s->t, view(s, order));
    ACF_TRY(acf_tape_check(s->t, lp));
    ACF_TRY(acf_device_copy(s->dev, s->cells, lp->data, (size_t)s->batch->N * sizeof *s->cells, ACF_TO_HOST));
    return acf_device_sync(s->dev);
}

/* s->sum (n): the log of the mean of the orders' densities. */
static acf_status ask_logp(acf_member *s) {
    const int64_t n = s->batch->N;
    for (uint32_t k = 0; k < s->orders; k++) {
        ACF_TRY(ask_order(s, k));
        for (int64_t i = 0; i < n; i++) {
            const double p = (double)s->cells[i], most = k ? fmax(s->sum[i], p) : p;
            s->sum[i] = k ? most + log(exp(s->sum[i] - most) + exp(p - most)) : p;
        }
    }
    for (int64_t i = 0; i < n; i++) s->sum[i] -= log((double)s->orders);
    return ACF_OK;
}

acf_status acf_member_score(acf_member *s, const acf_table *t, double *out) {
    const acf_batch *batch = s->batch;
    acf_batch_dequantise(s->dev, s->batch, t, s->m->encoder, s->row, SCORE_SEED, ACF_NOISE_FIXED);
    clamp_values(s->batch);
    ACF_TRY(ask_logp(s));
    for (int64_t i = 0; i < batch->N; i++)
        out[i] = s->sum[i] + slopes(s, t, i); /* encoded log p, plus the encoder's slopes */
    return ACF_OK;
}

void acf_member_orders(acf_member *s, uint32_t orders, uint32_t turns) { s->orders = orders, s->turns = turns; }

/* ---- answers ----------------------------------------------------------------------------------------------------- */

acf_status acf_member_use(acf_member *s, uint32_t i) {
    return s->gmm ? acf_gmm_draws_pick(s->gmm, s->m->draws, i % (uint32_t)s->m->draws->n) : ACF_OK;
}

acf_status acf_member_answer(acf_member *s, const acf_draw *d) {
    const uint32_t order = d ? d->draw / s->turns % s->orders : 0;
    bool by_hand = true;
    if (s->query_graph && !order) ACF_TRY(acf_query_graph_answer(s->query_graph, s->batch, d, s->cells, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_view *v = view(s, order);
    if (d) acf_net_view_gmm(v, s->gmm);
    return d ? acf_net_draw(s->t, v, d, s->cells) : acf_net_guess(s->t, v, s->cells);
}

acf_status acf_member_cell_values(acf_member *s, const acf_real **drawn) {
    const acf_gmm_draws *sets = drawn ? s->m->draws : NULL;
    const int use = sets ? (int)acf_min(sets->n, ACF_MEAN_SETS) : 0;
    if (drawn) *drawn = sets ? s->drawn : s->cell_values;
    return acf_net_cell_values_drawn(s->t, view(s, 0), ACF_MEAN_VALUES, s->cell_values, sets, use, s->drawn);
}

acf_status acf_member_classes(acf_member *s, acf_real *out) { return acf_net_class_probs(s->t, view(s, 0), out); }

acf_status acf_member_best_class(acf_member *s, acf_real *out) { return acf_net_best_class(s->t, view(s, 0), out); }
