/* Concatenated and gated activations along the channels on the GPU: see crelu.h. One pass per direction, bound by
 * memory. */
#include "ops/act.cuh"

extern "C" {
#include "ops/crelu.h"
}

/* ---- both signs ------------------------------------------------------------------------------------------------ */

/* y (M,2C) from x (M,C). */
static __global__ void crelu_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x, acf_act_kind act, int64_t M,
                                 int64_t C) {
    ACF_EACH(i, M * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int64_t plus = 2 * at.row * C + at.column;
        const acf_real v = x[i];
        y[plus] = acf_act_value(act, v), y[plus + C] = acf_act_value(act, -v);
    }
}

/* dx += dy₊ act'(x) - dy₋ act'(-x). */
static __global__ void crelu_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                 const acf_real *__restrict__ y, acf_act_kind act, int64_t M, int64_t C) {
    ACF_EACH(i, M * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int64_t plus = 2 * at.row * C + at.column, minus = plus + C;
        dx[i] += dy[plus] * acf_act_slope(act, y[plus]) - dy[minus] * acf_act_slope(act, y[minus]);
    }
}

static acf_status crelu_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    crelu_fwd<<<acf_each_blocks(acf_tensor_count(x)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, x->data, ((const acf_act_attrs *)n->attr)->kind, acf_tensor_lines(x), acf_tensor_last(x));
    return ACF_LAUNCHED("crelu");
}

static acf_status crelu_backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *y = n->out[0];
    acf_real *dx = acf_grad(t, x);
    if (!dx) return acf_tape_status(t);
    crelu_bwd<<<acf_each_blocks(acf_tensor_count(x)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, y->grad, y->data, ((const acf_act_attrs *)n->attr)->kind, acf_tensor_lines(x), acf_tensor_last(x));
    return ACF_LAUNCHED("crelu");
}

ACF_CUDA_OP(crelu, crelu_forward, crelu_backward);

/* ---- gate ------------------------------------------------------------------------------------------------------ */

/* y (M,C) = x + a sigmoid(b), [a | b] = h + k (M,2C). */
static __global__ void gated_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x,
                                 const acf_real *__restrict__ h, const acf_real *__restrict__ k, int64_t M, int64_t C) {
    ACF_EACH(i, M * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int64_t a = 2 * at.row * C + at.column, b = a + C;
        y[i] = x[i] + (h[a] + k[a]) * acf_act_value(ACF_SIGMOID, h[b] + k[b]);
    }
}

/* Adds to all three, NULL: not needed. */
static __global__ void gated_bwd(acf_real *__restrict__ dx, acf_real *__restrict__ dh, acf_real *__restrict__ dk,
                                 const acf_real *__restrict__ dy, const acf_real *__restrict__ h,
                                 const acf_real *__restrict__ k, int64_t M, int64_t C) {
    ACF_EACH(i, M * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int64_t a = 2 * at.row * C + at.column, b = a + C;
        const acf_real open = acf_act_value(ACF_SIGMOID, h[b] + k[b]), d = dy[i], da = d * open,
                       db = d * (h[a] + k[a]) * open * (1 - open);
        if (dx) dx[i] += d;
        if (dh) dh[a] += da, dh[b] += db;
        if (dk) dk[a] += da, dk[b] += db;
    }
}

static acf_status gated_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    gated_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[0]->data, n->in[1]->data, n->in[2]->data, acf_tensor_lines(y), acf_tensor_last(y));
    return ACF_LAUNCHED("gated");
}

static acf_status gated_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]), *dh = acf_grad(t, n->in[1]), *dk = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    gated_bwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, dh, dk, y->grad, n->in[1]->data, n->in[2]->data, acf_tensor_lines(y), acf_tensor_last(y));
    return ACF_LAUNCHED("gated");
}

ACF_CUDA_OP(gated, gated_forward, gated_backward);
