/* Validation of training on a table: see valid.h.
 *
 * Workload: a forward pass of some thousand rows, or of all rows with a held-out cell, once an epoch. */
#include "train/valid.h"

#include "device/cpu.h"
#include "train/train_graph.h"

#include <math.h>

static acf_device *device(const acf_trainer *tr) { return tr->ps->dev; }

/* ---- which rows ------------------------------------------------------------------------------------------------ */

/* The fraction of rows to hold out: `valid` unless `valid-rows` is set, with ACF_VALID_MOST rows at most. */
static double fraction_of(const acf_table *t, const acf_train_settings *set) {
    if (set->valid_rows > 0) return set->valid_rows;
    return fmin(set->valid, (double)ACF_VALID_MOST / (double)acf_max(t->N, 1));
}

acf_status acf_valid_split(const acf_table *t, const acf_table *table, const acf_train_settings *set,
                           acf_row_split *out) {
    *out = (acf_row_split){.train = acf_rows_all(t->N)};
    if (set->valid_on == ACF_VALID_ROWS) ACF_TRY(acf_row_split_make(t->N, fraction_of(t, set), 0, set->seed, out));
    if (set->valid_on == ACF_VALID_TABLE) {
        if (!table)
            return acf_fail(ACF_EUSAGE, "the option 'valid-on' is table, but there is no second table to validate on; "
                                        "give one (--valid-table FILE), or use valid-on rows");
        out->valid = (acf_rows){.order = acf_permutation_make(table->N, set->seed, ACF_STREAM_SPLIT, 1), .n = table->N};
    }
    out->valid.n = acf_min(out->valid.n, ACF_VALID_MOST);
    return ACF_OK;
}

static bool by_masks(const acf_trainer *tr) { return tr->data.valid_rows != NULL; }
static const acf_table *table_of(const acf_trainer *tr) { return by_masks(tr) ? tr->data.valid_table : tr->data.table; }
static const acf_rows *rows_of(const acf_trainer *tr) { return by_masks(tr) ? tr->data.valid_rows : &tr->rows; }

/* Has this row a target cell in validation? Under masks it has one if any cell is present. */
static bool has_target(const acf_trainer *tr, int64_t row) {
    const acf_table *t = table_of(tr);
    if (!by_masks(tr)) return acf_holdout_row(tr->data.hold, t, row, tr->held) > 0;
    return acf_table_row_observed(t, row) > 0;
}

/* ---- how many cells -------------------------------------------------------------------------------------------- */

/* b and m are scratch for a row each. */
static void count_cells(acf_trainer *tr, uint8_t *b, uint8_t *m) {
    const acf_table *t = tr->data.valid_table;
    tr->target = 0;
    for (int64_t k = 0; k < tr->data.valid_rows->n; k++) {
        const int64_t row = acf_rows_at(tr->data.valid_rows, k);
        const uint64_t id = acf_table_row_id(t, row);
        for (int64_t j = 0; j < t->D; j++) m[j] = acf_table_present(acf_table_row(t, row)[j]);
        acf_masks_draw(device(tr), &tr->set.masks, tr->set.seed, ACF_NOISE_FIXED, 1, t->D, &id, b, m);
        for (int64_t j = 0; j < t->D; j++) tr->target += m[j] && !b[j];
    }
}

acf_status acf_valid_count(acf_trainer *tr) {
    if (!by_masks(tr)) return ACF_OK;
    uint8_t *b = acf_alloc(2 * (size_t)tr->data.valid_table->D, "masks of a row");
    if (!b) return ACF_EMEMORY;
    count_cells(tr, b, b + tr->data.valid_table->D);
    acf_release(b);
    return ACF_OK;
}

int64_t acf_valid_cells(const acf_trainer *tr) {
    if (by_masks(tr)) return tr->target;
    return tr->data.hold ? tr->data.hold->held : 0;
}

/* ---- batches of a validation ----------------------------------------------------------------------------------- */

/* The first n rows in tr->row: held-out cells given the others, or target cells by masks. */
static void fill(acf_trainer *tr, acf_batch *b, int64_t n) {
    const acf_table *t = table_of(tr);
    const acf_encoder *e = tr->data.encoder;
    if (by_masks(tr)) {
        acf_batch_fill(device(tr), b, t, e, NULL, ACF_BATCH_TRAIN, tr->row, n);
        acf_masks_draw(device(tr), &tr->set.masks, tr->set.seed, ACF_NOISE_FIXED, n, b->D, b->id, b->b, b->m);
    } else
        acf_batch_fill(device(tr), b, t, e, tr->data.hold, ACF_BATCH_VALID, tr->row, n);
    acf_batch_dequantise(device(tr), b, t, e, tr->row, tr->set.seed, ACF_NOISE_FIXED);
}

/* Do rows count alike, whatever their number of target cells? */
static bool per_column(const acf_trainer *tr) { return by_masks(tr) && tr->set.loss.per_column; }

/* Weight of log p of row i of the batch. */
static double share(const acf_trainer *tr, const acf_batch *b, int64_t i) {
    return per_column(tr) ? 1 / (double)acf_max(acf_loss_modelled(b, i), 1) : 1;
}

/* Sum over the modelled cells in the batch of log |dz/dt|: from a density of encoded values to one of standardised
 * values. */
static double normal_score_slopes(const acf_trainer *tr, const acf_batch *b) {
    const acf_encoder *e = tr->data.encoder;
    double sum = 0;
    for (int64_t k = 0; k < b->N * b->D; k++) {
        int64_t i = k / b->D, j = k % b->D;
        if (!b->m[k] || b->b[k] || !e->normal_scores[j].n) continue;
        double x = acf_table_row(table_of(tr), tr->row[i])[j];
        sum += share(tr, b, i) *
               (acf_encode_log_slope(e, j, acf_dequantise(e, j, x, tr->set.seed, b->id[i], ACF_NOISE_FIXED)) -
                e->log_jacobian[j]);
    }
    return sum;
}

/* Σ share · |u| over the rows of the batch: their part of the divisor. */
static double weight_of(const acf_trainer *tr, const acf_batch *b) {
    double sum = 0;
    for (int64_t i = 0; i < b->N; i++) sum += share(tr, b, i) * (double)acf_loss_modelled(b, i);
    return sum;
}

/* Calls visit for each batch: the first n of tr->row, in their own order, without rows that have no target cell. */
typedef acf_status (*visit_rows)(acf_trainer *tr, int64_t n, void *ctx);
static acf_status each_batch(acf_trainer *tr, visit_rows visit, void *ctx) {
    const acf_rows *rows = rows_of(tr);
    int64_t n = 0;
    for (int64_t k = 0; k < rows->n; k++) {
        const int64_t row = acf_rows_at(rows, k);
        if (!has_target(tr, row)) continue;
        tr->row[n++] = row;
        if (n < tr->sampler.size) continue;
        ACF_TRY(visit(tr, n, ctx));
        n = 0;
    }
    return n ? visit(tr, n, ctx) : ACF_OK;
}

static acf_status look(acf_trainer *tr, int64_t n, void *ctx) {
    acf_valid_facts *f = ctx;
    int64_t cells = 0;
    fill(tr, tr->batch, n);
    for (int64_t i = 0; i < n; i++) cells += acf_loss_modelled(tr->batch, i);
    f->slopes += normal_score_slopes(tr, tr->batch), f->weight += weight_of(tr, tr->batch),
        f->most = acf_max(f->most, cells);
    return ACF_OK;
}

acf_status acf_valid_look(acf_trainer *tr, acf_valid_facts *out) {
    const acf_rows *rows = rows_of(tr);
    *out = (acf_valid_facts){.plain = !per_column(tr)};
    for (int64_t k = 0; k < rows->n; k++) out->plain &= has_target(tr, acf_rows_at(rows, k));
    return each_batch(tr, look, out);
}

/* ---- the score ------------------------------------------------------------------------------------------------- */

typedef struct sum {
    double logp, weight; /* Σ share · log p, or the host's part of it when the device keeps the rest; the divisor */
    bool there;          /* the device keeps the sum (acf_train_graph_total) */
} sum;

static acf_status add_there(acf_trainer *tr, int64_t n, sum *s) {
    int stage;
    ACF_TRY(acf_train_graph_feed(tr->graph, &stage));
    acf_batch *b = acf_table_stage(acf_train_graph_loader(tr->graph), stage);
    fill(tr, b, n);
    s->logp += normal_score_slopes(tr, b), s->weight += weight_of(tr, b);
    return acf_train_graph_check(tr->graph);
}

static acf_status add_logp(acf_trainer *tr, int64_t n, void *ctx) {
    sum *s = ctx;
    acf_tape *t = tr->tape;
    if (s->there) return add_there(tr, n, s);
    fill(tr, tr->batch, n);
    acf_tape_begin(t, false);
    acf_tensor *logp = acf_net_logp(t, acf_net_view(t, tr->net, tr->batch, NULL));
    ACF_TRY(acf_tape_check(t, logp));
    acf_real *host = acf_arena_alloc(t->host, (size_t)n * sizeof *host);
    if (!host) return ACF_EMEMORY;
    ACF_TRY(acf_device_copy(device(tr), host, logp->data, (size_t)n * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(tr)));
    for (int64_t i = 0; i < n; i++) s->logp += share(tr, tr->batch, i) * (double)host[i];
    s->logp += normal_score_slopes(tr, tr->batch), s->weight += weight_of(tr, tr->batch);
    return ACF_OK;
}

acf_status acf_valid_score(acf_trainer *tr, double *nll) {
    if (acf_train_graph_validates(tr->graph)) return acf_train_graph_nll(tr->graph, nll);
    double there = 0;
    sum s = {.there = tr->graph && acf_train_graph_streams(tr->graph) && !per_column(tr)};
    if (s.there) ACF_TRY(acf_train_graph_start(tr->graph));
    ACF_TRY(each_batch(tr, add_logp, &s));
    if (s.there) ACF_TRY(acf_train_graph_total(tr->graph, &there));
    *nll = -(s.logp + there) / fmax(s.weight, 1);
    return ACF_OK;
}
