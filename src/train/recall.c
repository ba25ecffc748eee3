/* Is it worth looking rows up: see recall.h.
 *
 * Workload: one question of one cell to the network, and one look-up, for each of some thousand held-out cells: less than an epoch. */
#include "train/recall.h"

#include "model/archive_file.h"

#include <math.h>

#define GOLDEN 0.6180339887498949
#define NARROW 24 /* a bracket after so many rounds is 1e-5 of what it was */
#define ROUNDS 8
enum { SIZE = 256 }; /* cells that the network is asked at once */

/* One held-out cell. */
typedef struct cell {
    int64_t row;
    int32_t column;
    double evidence, closer;
    double better; /* q / p */
} cell;

typedef struct asked {
    cell *cell;
    int64_t n;
} asked;

/* ---- the cells -------------------------------------------------------------------------------------------------------------- */

/* All of them, or every so many. */
static acf_status list_cells(const acf_trainer *tr, asked *a) {
    const acf_table *t = tr->data.table;
    const acf_holdout *hold = tr->data.hold;
    const int64_t apart = acf_ceil_div(hold->held, ACF_RECALL_CELLS), room = hold->held / apart + 1;
    uint8_t *held = acf_alloc((size_t)t->D, "held-out cells");
    a->cell = held ? acf_alloc((size_t)room * sizeof *a->cell, "held-out cells") : NULL;
    int64_t seen = 0;
    for (int64_t k = 0; a->cell && k < tr->rows.n; k++) {
        const int64_t row = acf_rows_at(&tr->rows, k);
        if (!acf_holdout_row(hold, t, row, held)) continue;
        for (int64_t j = 0; j < t->D; j++)
            if (held[j] && acf_tab_present(acf_tab_row(t, row)[j]) && seen++ % apart == 0 && a->n < room) a->cell[a->n++] = (cell){.row = row, .column = (int32_t)j};
    }
    acf_release(held);
    return a->cell ? ACF_OK : ACF_EMEMORY;
}

/* log p of n cells, each given what training saw of its row, in the table's units; to `better`, of which ask_rows makes q / p. */
static acf_status ask_network(acf_trainer *tr, acf_batch *b, cell *c, int64_t n) {
    const acf_encoder *e = tr->data.encoder;
    const acf_table *t = tr->data.table;
    acf_device *dev = acf_net_params(tr->net)->dev;
    int64_t row[SIZE];
    for (int64_t i = 0; i < n; i++) row[i] = c[i].row;
    acf_batch_fill(dev, b, t, e, tr->data.hold, ACF_BATCH_VALID, row, n);
    for (int64_t k = 0; k < n * t->D; k++)
        if (!b->b[k] && k % t->D != c[k / t->D].column) b->m[k] = 0;
    acf_batch_dequantise(dev, b, t, e, row, tr->set.seed, ACF_NOISE_FIXED);
    acf_tape_begin(tr->tape, false);
    acf_tensor *logp = acf_net_logp(tr->tape, acf_net_view(tr->tape, tr->net, b, NULL));
    ACF_TRY(acf_tape_check(tr->tape, logp));
    acf_real *host = acf_arena_alloc(tr->tape->host, (size_t)n * sizeof *host);
    if (!host) return ACF_EMEMORY;
    ACF_TRY(acf_device_copy(dev, host, logp->data, (size_t)n * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(dev));
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = c[i].column;
        const double x = acf_tab_row(t, c[i].row)[j];
        c[i].better = (double)host[i] + acf_encode_log_slope(e, j, acf_dequantise(e, j, x, tr->set.seed, b->id[i], ACF_NOISE_FIXED));
    }
    return ACF_OK;
}

/* What the other rows say, against that. */
static void ask_rows(const acf_trainer *tr, acf_recall *r, uint8_t *known, cell *c) {
    const acf_table *t = tr->data.table;
    const double *x = acf_tab_row(t, c->row);
    acf_holdout_row(tr->data.hold, t, c->row, known);
    for (int64_t j = 0; j < t->D; j++) known[j] = acf_tab_present(x[j]) && !known[j];
    acf_recall_row(r, x, known, acf_tab_id(t, c->row));
    c->evidence = acf_recall_column(r, c->column), c->closer = r->m->closer[c->column];
    c->better = isfinite(c->evidence) ? exp(fmin(log(acf_recall_density(r, c->column, x[c->column])) - c->better, 600)) : 1;
}

static acf_status ask_cells(acf_trainer *tr, const acf_archive *m, asked *a) {
    acf_batch *b = NULL;
    acf_recall *r = NULL;
    acf_status status = ACF_OK;
    uint8_t *known = acf_alloc((size_t)m->D, "held-out cells");
    if (!known) return ACF_EMEMORY;
    ACF_TRY_DONE(acf_recall_create(m, &r));
    ACF_TRY_DONE(acf_batch_create(SIZE, m->D, &b));
    for (int64_t from = 0; from < a->n; from += SIZE) ACF_TRY_DONE(ask_network(tr, b, a->cell + from, acf_min(SIZE, a->n - from)));
    for (int64_t i = 0; i < a->n; i++) ask_rows(tr, r, known, &a->cell[i]);
done:
    acf_batch_free(b);
    acf_recall_free(r);
    acf_release(known);
    return status;
}

/* ---- how far to believe them ---------------------------------------------------------------------------------------------------- */

/* Where each number is looked for, what is expected of it, and how surely. */
static const struct {
    double least, most, expected, deviation;
} number[ACF_RECALL_NUMBERS] = {[ACF_RECALL_SHIFT] = {-15, 5, -2, 3}, [ACF_RECALL_SLOPE] = {0, 1.5, 0.3, 0.5}, [ACF_RECALL_CLOSER] = {0, 3, 0.5, 0.5}};

/* Nats that are gained over the network alone. */
static double gain(const asked *a, const double *v) {
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        const cell *c = &a->cell[i];
        if (!isfinite(c->evidence)) continue;
        const double h = 1 / (1 + exp(-(v[ACF_RECALL_SHIFT] + v[ACF_RECALL_SLOPE] * c->evidence + v[ACF_RECALL_CLOSER] * c->closer)));
        sum += log1p(fmin(h, ACF_RECALL_MOST) * (c->better - 1));
    }
    return sum;
}

static double worth(const asked *a, const double *v) {
    double sum = gain(a, v);
    for (int k = 0; k < ACF_RECALL_NUMBERS; k++) sum -= 0.5 * pow((v[k] - number[k].expected) / number[k].deviation, 2);
    return sum;
}

/* The best of one number, the others as they are: golden section. */
static void improve(const asked *a, double *v, int k) {
    double low = number[k].least, high = number[k].most;
    for (int i = 0; i < NARROW; i++) {
        const double c = high - GOLDEN * (high - low), d = low + GOLDEN * (high - low);
        v[k] = c;
        const double at_c = worth(a, v);
        v[k] = d;
        if (at_c > worth(a, v)) high = d;
        else low = c;
    }
    v[k] = 0.5 * (low + high);
}

static void choose(const asked *a, double *v) {
    for (int k = 0; k < ACF_RECALL_NUMBERS; k++) v[k] = number[k].expected;
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < ACF_RECALL_NUMBERS; k++) improve(a, v, k);
    if (gain(a, v) < fmax(ACF_RECALL_GAIN, ACF_RECALL_EACH * (double)a->n)) v[ACF_RECALL_SLOPE] = 0;
}

acf_status acf_recall_fit(acf_trainer *tr) {
    const acf_table *t = tr->data.table;
    acf_archive *m = NULL;
    asked a = {0};
    tr->recall[ACF_RECALL_SLOPE] = 0;
    if (!tr->net || !tr->set.recall || tr->member || !tr->data.hold || !tr->data.hold->held || t->N > ACF_ARCHIVE_ROWS || t->D < 2 ||
        t->N * t->D > ACF_ARCHIVE_VALUES)
        return ACF_OK;
    acf_status status = acf_archive_make(t, tr->data.encoder, &m);
    if (!status) status = list_cells(tr, &a);
    if (!status) status = ask_cells(tr, m, &a);
    if (!status) choose(&a, tr->recall);
    if (status == ACF_ENUMERIC) {
        acf_error_clear();
        status = ACF_OK;
    }
    acf_release(a.cell);
    acf_archive_free(m);
    return status;
}

acf_status acf_recall_attach(acf_model *m, const acf_table *t) {
    const double *v = m->record.recall;
    if (!m->record.known || v[ACF_RECALL_SLOPE] <= 0) return ACF_OK;
    ACF_TRY(acf_archive_make(t, m->encoder, &m->archive));
    m->archive->slope = v[ACF_RECALL_SLOPE];
    for (int64_t j = 0; j < t->D; j++) m->archive->shift[j] = v[ACF_RECALL_SHIFT] + v[ACF_RECALL_CLOSER] * m->archive->closer[j];
    return ACF_OK;
}
