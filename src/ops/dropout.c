/* Dropout: see dropout.h.
 *
 * Workload: 1e5 to 1e6 numbers a call. Drawing is what costs (ten times the multiplication), so the mask is kept as bytes,
 * a quarter of a float activation's memory, and the backward only streams. */
#include "ops/dropout.h"

#define COLUMNS 1024 /* drawn at a time: a multiple of 4 whose words fit on the stack */

void acf_dropout_fwd_cpu(const acf_device *dev, acf_real *y, uint8_t *keep, const acf_real *x, double rate, acf_place key,
                         int64_t M, int64_t C) {
    const acf_real scale = (acf_real)(1 / (1 - rate));
    const uint32_t dropped = (uint32_t)(rate * 0x1p32); /* words below it */
    ACF_PARALLEL(dev, 8 * M * C)
    for (int64_t m = 0; m < M; m++)
        for (int64_t c = 0; c < C; c += COLUMNS) {
            uint32_t word[COLUMNS];
            int64_t n = acf_min(COLUMNS, C - c), at = m * C + c;
            acf_rng_words((acf_place){.seed = key.seed, .row = key.row + (uint64_t)m, .stream = ACF_STREAM_DROPOUT,
                                      .column = key.column + (uint32_t)(c / 4), .draw = key.draw},
                          n, word);
            ACF_SIMD /* a product, not a choice: a NaN that is dropped stays visible */
            for (int64_t i = 0; i < n; i++) y[at + i] = x[at + i] * (word[i] < dropped ? 0 : scale);
            if (!keep) continue;
            ACF_SIMD
            for (int64_t i = 0; i < n; i++) keep[at + i] = word[i] >= dropped;
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

typedef struct attrs {
    double rate;
    acf_place key;
    uint8_t *keep; /* as many as x has numbers; NULL when no backward comes */
} attrs;

static acf_status forward(acf_tape *t, acf_node *n) {
    attrs *a = n->attr;
    const acf_tensor *x = n->in[0];
    if (n->save && !(a->keep = acf_arena_alloc(t->mem, (size_t)acf_tensor_count(x)))) return ACF_EMEMORY;
    acf_dropout_fwd_cpu(t->dev, n->out[0]->data, a->keep, x->data, a->rate, a->key, acf_tensor_rows(x),
                        acf_tensor_width(x));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const attrs *a = n->attr;
    acf_real *dx = acf_grad(t, n->in[0]);
    if (dx) acf_dropout_bwd_cpu(t->dev, dx, n->out[0]->grad, a->keep, a->rate, acf_tensor_count(n->in[0]));
    return acf_tape_status(t);
}

const acf_op acf_op_dropout = {"dropout", ACF_OP_dropout, {forward, backward}};

acf_tensor *acf_dropout(acf_tape *t, acf_tensor *x, double rate, acf_place key) {
    if (t->failure.status) return &t->empty;
    if (!(rate >= 0 && rate < 1)) return acf_reject(t, &acf_op_dropout, "the rate is %g; expected 0 <= rate < 1", rate);
    if (rate == 0 || !t->record) return x;
    acf_node *n = acf_node_new(t, &acf_op_dropout, sizeof(attrs), 1, &x);
    if (!n) return &t->empty;
    *(attrs *)n->attr = (attrs){rate, key, NULL};
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
