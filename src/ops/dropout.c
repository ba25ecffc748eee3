/* Dropout: see dropout.h.
 *
 * Workload: 1e5 to 1e6 numbers a call. Random numbers dominate the cost (ten times the multiplication). The mask is
 * therefore stored as bytes, a quarter of a float activation's memory, and the backward only reads it. */
#include "ops/dropout.h"

#define COLUMNS 1024 /* drawn at a time: a multiple of 4 whose words fit on the stack */

/* The counter at which the masks of row m begin. */
static acf_rng_counter place_of(const acf_drop *d, acf_cells at, int64_t m, int64_t blocks) {
    int64_t row = at.row ? at.row[m] : m, column = at.column ? at.column[m] : 0;
    return (acf_rng_counter){.seed = d->seed,
                             .row = d->row_id ? d->row_id[row] : (uint64_t)row,
                             .stream = ACF_STREAM_DROPOUT + d->site,
                             .column = (uint32_t)(column * blocks),
                             .draw = d->now ? *d->now : d->step};
}

void acf_dropout_fwd_cpu(const acf_device *dev, acf_real *y, uint8_t *keep, const acf_real *x, const acf_drop *d,
                         acf_cells at, int64_t M, int64_t C) {
    const acf_real scale = (acf_real)(1 / (1 - d->rate));
    const uint32_t dropped = (uint32_t)(d->rate * 0x1p32); /* numbers whose word is below this are dropped */
    ACF_PARALLEL(dev, 8 * M * C)
    for (int64_t m = 0; m < M; m++) {
        acf_rng_counter place = place_of(d, at, m, acf_ceil_div(C, 4));
        for (int64_t c = 0; c < C; c += COLUMNS, place.column += COLUMNS / 4) {
            uint32_t word[COLUMNS];
            int64_t n = acf_min(COLUMNS, C - c), to = m * C + c;
            acf_rng_words(place, n, word);
            ACF_SIMD /* a product, not a selection: a dropped NaN stays visible */
            for (int64_t i = 0; i < n; i++) y[to + i] = x[to + i] * (word[i] < dropped ? 0 : scale);
            if (!keep) continue;
            ACF_SIMD
            for (int64_t i = 0; i < n; i++) keep[to + i] = word[i] >= dropped;
        }
    }
}

void acf_dropout_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const uint8_t *keep, double rate,
                         int64_t n) {
    const acf_real scale = (acf_real)(1 / (1 - rate));
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) dx[i] += dy[i] * (keep[i] ? scale : 0);
    }
}

/* One row for each element of a subset, or for each row of the batch. */
static acf_cells cells_of(const acf_tensor *x) {
    return x->sub ? (acf_cells){x->sub->row_of, x->sub->col_of} : (acf_cells){x->row_of, NULL};
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_dropout_attrs *a = n->attr;
    const acf_tensor *x = n->in[0];
    if (n->save && !(a->keep = acf_arena_alloc(t->mem, (size_t)acf_tensor_count(x)))) return ACF_EMEMORY;
    acf_dropout_fwd_cpu(t->dev, n->out[0]->data, a->keep, x->data, &a->drop, cells_of(x), acf_tensor_rows(x),
                        acf_tensor_width(x));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_dropout_attrs *a = n->attr;
    acf_real *dx = acf_grad(t, n->in[0]);
    if (dx) acf_dropout_bwd_cpu(t->dev, dx, n->out[0]->grad, a->keep, a->drop.rate, acf_tensor_count(n->in[0]));
    return acf_tape_status(t);
}

const acf_op acf_op_dropout = {"dropout", ACF_OP_dropout, {forward, backward}};

bool acf_dropout_fits(acf_tape *t, const acf_op *op, const acf_tensor *x, const acf_drop *d) {
    int64_t columns = x->sub ? x->sub->D : 1, blocks = acf_ceil_div(acf_tensor_width(x), 4);
    if (!(d->rate >= 0 && d->rate < 1))
        acf_reject_value(t, op, "the rate is %g; expected 0 <= rate < 1", d->rate);
    else if (d->site >= ACF_SITES)
        acf_reject_value(t, op, "site %u; expected below %d", d->site, ACF_SITES);
    else if (blocks > UINT32_MAX / acf_max(columns, 1))
        acf_reject(t, op, "%lld columns of %lld numbers each exceed the range of random counters", (long long)columns,
                   (long long)acf_tensor_width(x));
    return t->failure.status == ACF_OK;
}

acf_tensor *acf_dropout(acf_tape *t, acf_tensor *x, const acf_drop *d) {
    if (t->failure.status || !acf_dropout_fits(t, &acf_op_dropout, x, d)) return &t->empty;
    if (d->rate == 0 || !t->record) return x;
    acf_node *n = acf_node_new(t, &acf_op_dropout, sizeof(acf_dropout_attrs), 1, &x);
    if (!n) return &t->empty;
    *(acf_dropout_attrs *)n->attr = (acf_dropout_attrs){*d, NULL};
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
