/* Predictions of held-out cells by network and donors: see donor_trust_cells.h.
 *
 * Workload: for each of some thousand cells one query of the network, with a sample of POINTS values, and one donor
 * search: less than an epoch. */
#include "train/donor_trust_cells.h"

#include <math.h>
#include <stdlib.h>

enum {
    SIZE = 256,
    POINTS = 32
}; /* cells of a query to the network; values that represent the prediction of a number */

/* ---- which cells ----------------------------------------------------------------------------------------------- */

/* All of them, or every k-th. */
static acf_status list_cells(const acf_trainer *tr, acf_heldout *a) {
    const acf_table *t = tr->data.table;
    const acf_holdout *hold = tr->data.hold;
    const int64_t apart = acf_ceil_div(hold->held, ACF_DONOR_TRUST_CELLS / 2), capacity = 2 * (hold->held / apart + 1);
    uint8_t *held = acf_alloc((size_t)t->D, "held-out cells");
    a->cell = held ? acf_alloc_zero((size_t)capacity * sizeof *a->cell, "held-out cells") : NULL;
    int64_t seen = 0;
    for (int64_t k = 0; a->cell && k < tr->rows.n; k++) {
        const int64_t row = acf_rows_at(&tr->rows, k);
        if (!acf_holdout_row(hold, t, row, held)) continue;
        for (int64_t j = 0; j < t->D; j++) {
            if (!held[j] || !acf_table_present(acf_table_row(t, row)[j]) || seen++ % apart != 0) continue;
            for (int part = 0; part < 2 && a->n < capacity; part++)
                a->cell[a->n++] = (acf_heldout_cell){.row = row, .column = (int32_t)j, .in_part = part};
        }
    }
    acf_release(held);
    return a->cell ? ACF_OK : ACF_EMEMORY;
}

/* A random number of columns, each number with the same probability. */
void acf_heldout_known(const acf_trainer *tr, const acf_heldout_cell *c, uint8_t *known) {
    const acf_table *t = tr->data.table;
    const double *x = acf_table_row(t, c->row);
    acf_rng_counter at = {.seed = tr->set.seed,
                          .row = acf_table_row_id(t, c->row),
                          .stream = ACF_STREAM_DONOR_DRAW,
                          .draw = (uint32_t)c->column,
                          .column = (uint32_t)t->D};
    int64_t left = 0;
    acf_holdout_row(tr->data.hold, t, c->row, known);
    for (int64_t k = 0; k < t->D; k++) left += known[k] = acf_table_present(x[k]) && !known[k];
    int64_t wanted = c->in_part ? acf_rng_below(at, left + 1) : left;
    for (int64_t k = 0; k < t->D; k++) {
        if (!known[k]) continue;
        at.column = (uint32_t)k;
        known[k] = acf_rng_uniform(at) * (double)left < (double)wanted;
        left--, wanted -= known[k];
    }
}

/* ---- the network ----------------------------------------------------------------------------------------------- */

/* A batch of queries, and the network's answers. */
typedef struct query_batch {
    acf_trainer *tr;
    acf_batch *batch;
    acf_donor_search *r;
    int64_t capacity;   /* values per prediction: sampled values of a number, or probabilities of classes */
    acf_real *said;     /* (SIZE, capacity) as networks give it */
    double *net, *rows; /* (SIZE, capacity) predictions of the network; (capacity) of the donors, for one cell */
    uint8_t *known;     /* (D) */
} query_batch;

static int32_t classes_of(const query_batch *d, const acf_heldout_cell *c) {
    return d->tr->data.encoder->column[c->column].classes;
}

/* Loads n cells, each given what acf_heldout_known says. */
static void load(query_batch *d, const acf_heldout_cell *c, int64_t n) {
    acf_trainer *tr = d->tr;
    const acf_table *t = tr->data.table;
    acf_device *dev = acf_net_params(tr->net)->dev;
    int64_t row[SIZE];
    for (int64_t i = 0; i < n; i++) row[i] = c[i].row;
    acf_batch_fill(dev, d->batch, t, tr->data.encoder, tr->data.hold, ACF_BATCH_VALID, row, n);
    for (int64_t i = 0; i < n; i++) {
        acf_heldout_known(d->tr, &c[i], d->known);
        for (int64_t j = 0; j < t->D; j++) {
            const int64_t k = i * t->D + j;
            d->batch->b[k] = d->known[j], d->batch->m[k] = d->known[j] || j == c[i].column;
        }
    }
    acf_batch_dequantise(dev, d->batch, t, tr->data.encoder, row, tr->set.seed, ACF_NOISE_FIXED);
}

static acf_view *view(const query_batch *d) {
    acf_tape_begin(d->tr->tape, false);
    return acf_net_view(d->tr->tape, d->tr->net, d->batch, NULL);
}

/* log p of the true values in the table's units, into `better`; query_donors turns it into q / p. */
static acf_status query_density(query_batch *d, acf_heldout_cell *c, int64_t n) {
    acf_trainer *tr = d->tr;
    const acf_encoder *e = tr->data.encoder;
    acf_device *dev = acf_net_params(tr->net)->dev;
    acf_tensor *logp = acf_net_logp(tr->tape, view(d));
    ACF_TRY(acf_tape_check(tr->tape, logp));
    ACF_TRY(acf_device_copy(dev, d->said, logp->data, (size_t)n * sizeof *d->said, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(dev));
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = c[i].column;
        const double x = acf_table_row(tr->data.table, c[i].row)[j];
        c[i].better =
            (double)d->said[i] +
            acf_encode_log_slope(e, j, acf_dequantise(e, j, x, tr->set.seed, d->batch->id[i], ACF_NOISE_FIXED));
    }
    return ACF_OK;
}

static acf_status query_network(query_batch *d, acf_heldout_cell *c, int64_t n) {
    acf_trainer *tr = d->tr;
    const int64_t classes = acf_net_classes(tr->net);
    load(d, c, n);
    ACF_TRY(query_density(d, c, n));
    if (classes > 0) ACF_TRY(acf_net_class_probs(tr->tape, view(d), d->said));
    for (int64_t i = 0; i < n; i++)
        for (int32_t k = 0; k < classes_of(d, &c[i]); k++)
            d->net[i * d->capacity + k] = (double)d->said[i * classes + k];
    ACF_TRY(acf_net_cell_values(tr->tape, view(d), POINTS, d->said));
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; classes_of(d, &c[i]) == 0 && k < POINTS; k++)
            d->net[i * d->capacity + k] = acf_decode(tr->data.encoder, c[i].column, d->said[i * POINTS + k]);
    return ACF_OK;
}

/* ---- the donors ------------------------------------------------------------------------------------------------ */

static double mean_distance(const double *a, const double *b, int64_t of_b) {
    double sum = 0;
    for (int i = 0; i < POINTS; i++)
        for (int64_t k = 0; k < of_b; k++) sum += fabs(a[i] - b[k]);
    return sum / (double)(POINTS * of_b);
}

/* POINTS draws of the donors' distribution, evenly spread: their u form a lattice of three dimensions. */
static void draw_evenly(const acf_donor_search *r, int64_t j, double *out) {
    for (int k = 0; k < POINTS; k++) {
        const double at = k + 0.5;
        out[k] = acf_donor_search_draw(
            r, j, (double[]){at / POINTS, fmod(at * 7, POINTS) / POINTS, fmod(at * 11, POINTS) / POINTS});
    }
}

static void score_number(const query_batch *d, acf_heldout_cell *c, const double *net, double truth) {
    const double unit = 1 / d->tr->data.encoder->scale[c->column];
    draw_evenly(d->r, c->column, d->rows);
    c->off_net = unit * mean_distance(net, &truth, 1), c->off_rows = unit * mean_distance(d->rows, &truth, 1);
    c->net_net = unit * mean_distance(net, net, POINTS), c->net_rows = unit * mean_distance(net, d->rows, POINTS);
    c->rows_rows = unit * mean_distance(d->rows, d->rows, POINTS);
}

static void score_class(const query_batch *d, acf_heldout_cell *c, const double *net, double truth) {
    c->net_net = c->net_rows = c->rows_rows = 1;
    for (int32_t k = 0; k < classes_of(d, c); k++) d->rows[k] = 0;
    acf_donor_search_add_classes(d->r, c->column, 1, d->rows);
    for (int32_t k = 0; k < classes_of(d, c); k++) {
        const double p = net[k], q = d->rows[k];
        if (k == (int32_t)truth) c->off_net = 1 - p, c->off_rows = 1 - q;
        c->net_net -= p * p, c->net_rows -= p * q, c->rows_rows -= q * q;
    }
}

static void query_donors(query_batch *d, acf_heldout_cell *c, const double *net) {
    const acf_table *t = d->tr->data.table;
    const int64_t j = c->column;
    const double *x = acf_table_row(t, c->row);
    acf_heldout_known(d->tr, c, d->known);
    c->of_class = classes_of(d, c) > 0;
    c->found = acf_donor_search_run(d->r, j, x, d->known, acf_table_row_id(t, c->row));
    if (!c->found) return;
    c->peak = d->r->peak, c->alike = d->r->alike, c->given = d->r->given,
    c->told = acf_donor_trust_of_column(d->r->m, j);
    c->better = exp(fmin(log(acf_donor_search_density(d->r, j, x[j])) - c->better, 600));
    if (c->of_class)
        score_class(d, c, net, x[j]);
    else
        score_number(d, c, net, x[j]);
    c->net_net *= 1 + ACF_DONOR_TRUST_APART * (1 - 1 / (double)acf_max(d->tr->set.members, 1));
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void close_desk(query_batch *d) {
    acf_batch_free(d->batch);
    acf_donor_search_free(d->r);
    acf_release(d->said), acf_release(d->net), acf_release(d->known);
}

static acf_status open_desk(query_batch *d, acf_trainer *tr, const acf_donors *m) {
    *d = (query_batch){.tr = tr, .capacity = acf_max(acf_net_classes(tr->net), POINTS)};
    d->said = acf_alloc((size_t)(SIZE * d->capacity) * sizeof *d->said, "held-out cells");
    d->net = acf_alloc((size_t)((SIZE + 1) * d->capacity) * sizeof *d->net, "held-out cells");
    d->known = acf_alloc((size_t)m->D, "held-out cells");
    if (!d->said || !d->net || !d->known) return ACF_EMEMORY;
    d->rows = d->net + SIZE * d->capacity;
    ACF_TRY(acf_donor_search_create(m, &d->r));
    return acf_batch_create(SIZE, m->D, &d->batch);
}

static int by_column(const void *a, const void *b) {
    const acf_heldout_cell *x = a, *y = b;
    return x->column != y->column ? (x->column > y->column) - (x->column < y->column)
           : x->row != y->row     ? (x->row > y->row) - (x->row < y->row)
                                  : x->in_part - y->in_part;
}

acf_status acf_heldout_query(acf_trainer *tr, const acf_donors *m, acf_heldout *a) {
    query_batch d = {0};
    *a = (acf_heldout){0};
    acf_status status = list_cells(tr, a);
    if (!status) status = open_desk(&d, tr, m);
    for (int64_t from = 0; !status && from < a->n; from += SIZE) {
        const int64_t n = acf_min(SIZE, a->n - from);
        status = query_network(&d, a->cell + from, n);
        for (int64_t i = 0; !status && i < n; i++) query_donors(&d, &a->cell[from + i], d.net + i * d.capacity);
    }
    close_desk(&d);
    if (status)
        acf_heldout_free(a);
    else
        qsort(a->cell, (size_t)a->n, sizeof *a->cell, by_column);
    return status;
}

void acf_heldout_free(acf_heldout *a) {
    acf_release(a->cell);
    *a = (acf_heldout){0};
}

double acf_heldout_loss(const acf_heldout_cell *c, double h) {
    if (!c->found) return 0;
    const double g = 1 - h, with = g * c->off_net + h * c->off_rows -
                                   0.5 * (g * g * c->net_net + 2 * g * h * c->net_rows + h * h * c->rows_rows);
    return with - (c->off_net - 0.5 * c->net_net);
}

double acf_donor_trust_of_column(const acf_donors *m, int64_t j) { return log(fmax(m->gain[j], 0) + 0.01); }
