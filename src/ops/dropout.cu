/* Dropout on the GPU: see dropout.h. A thread draws one block, 128 bits, for four neighbouring numbers. The mask is
 * stored as bytes, so that the backward only reads it. */
#include "ops/ops.cuh"

#include "base/rng.cuh"

extern "C" {
#include "ops/dropout.h"
}

static __global__ void dropout_fwd(acf_real *__restrict__ y, uint8_t *__restrict__ keep, const acf_real *__restrict__ x,
                                   acf_drop d, acf_cells at, int64_t M, int64_t C) {
    const int64_t blocks = (C + 3) / 4, i = acf_thread();
    if (i >= M * blocks) return;
    const acf_cell g = acf_cell_of(i, blocks); /* row, and index of the block within it */
    const int64_t row = at.row ? at.row[g.row] : g.row, column = at.column ? at.column[g.row] : 0;
    const uint32_t dropped = (uint32_t)(d.rate * 0x1p32);
    const acf_real scale = (acf_real)(1 / (1 - d.rate));
    const acf_rng_counter place = {d.seed,
                                   row < 0    ? 0
                                   : d.row_id ? d.row_id[row]
                                              : (uint64_t)row,
                                   ACF_STREAM_DROPOUT + d.site, (uint32_t)(column * blocks + g.column),
                                   d.now ? *d.now : d.step};
    const philox4x32_ctr_t word = acf_rng_bits_cuda(place);
    for (int k = 0; k < 4 && 4 * g.column + k < C; k++) {
        const int64_t to = g.row * C + 4 * g.column + k;
        const bool kept = row >= 0 && word.v[k] >= dropped; /* zero after the last element of a subset */
        y[to] = x[to] * (kept ? scale : 0);
        if (keep) keep[to] = kept;
    }
}

static __global__ void dropout_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                   const uint8_t *__restrict__ keep, acf_real scale, int64_t n) {
    ACF_EACH(i, n) dx[i] += dy[i] * (keep[i] ? scale : 0);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_dropout_attrs *a = (acf_dropout_attrs *)n->attr;
    const acf_tensor *x = n->in[0];
    const int64_t M = acf_tensor_rows(x), C = acf_tensor_width(x);
    if (n->save && !(a->keep = (uint8_t *)acf_arena_alloc(t->mem, (size_t)(M * C)))) return ACF_EMEMORY;
    const acf_cells at = x->sub ? acf_cells{x->sub->row_of, x->sub->col_of} : acf_cells{x->row_of, NULL};
    dropout_fwd<<<acf_blocks(M * acf_ceil_div(C, 4), ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, a->keep, x->data, a->drop, at, M, C);
    return ACF_LAUNCHED("dropout");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_dropout_attrs *a = (const acf_dropout_attrs *)n->attr;
    const int64_t count = acf_tensor_count(n->in[0]);
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    dropout_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, n->out[0]->grad, a->keep, (acf_real)(1 / (1 - a->drop.rate)), count);
    return ACF_LAUNCHED("dropout");
}

ACF_CUDA_OP(dropout, forward, backward);
