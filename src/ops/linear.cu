/* The linear layer on the GPU: see linear.h. cuBLASLt adds the bias and applies relu; other activations are a
 * separate pass.
 *
 * Rows after the last element of a packed x are finite, so that products may run over the whole capacity: y is
 * finite there, and the incoming gradient is zero. */
#include "ops/act.cuh"

extern "C" {
#include "ops/linear.h"
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    const int64_t M = acf_tensor_rows(x), I = w->dim[1], O = w->dim[0];
    const acf_act_kind act = ((const acf_linear_attrs *)n->attr)->act;
    /* y (M,O) = x (M,I) · w (O,I)ᵀ */
    const acf_gemm product = {false,   true,         M, O, I, 1, x->data, acf_max(I, 1), w->data, acf_max(I, 1), 0,
                              y->data, acf_max(O, 1)};
    ACF_TRY(acf_cuda_gemm(t->dev, &product, b ? b->data : NULL, act == ACF_RELU));
    return act == ACF_RELU || act == ACF_IDENTITY ? ACF_OK : acf_cuda_act(t->dev, act, y->data, y->data, M * O);
}

/* Adds to dx (M,I), dw (O,I), db (O) from the gradient dy (M,O) before the activation; NULL = not needed. */
static acf_status products(const acf_tape *t, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy,
                           const acf_tensor *x, const acf_tensor *w) {
    const int64_t M = acf_tensor_rows(x), I = w->dim[1], O = w->dim[0], ldi = acf_max(I, 1), ldo = acf_max(O, 1);
    const acf_gemm to_x = {false, false, M, I, O, 1, dy, ldo, w->data, ldi, 1, dx, ldi};
    const acf_gemm to_w = {true, false, O, I, M, 1, dy, ldo, x->data, ldi, 1, dw, ldi};
    ACF_TRY(acf_cuda_aside(t, true));
    if (dw) ACF_TRY(acf_cuda_gemm(t->dev, &to_w, NULL, false));
    if (db) ACF_TRY(acf_cuda_colsum(t->dev, db, dy, acf_cuda_rows(x), M, O, O));
    ACF_TRY(acf_cuda_aside(t, false));
    return dx ? acf_cuda_gemm(t->dev, &to_x, NULL, false) : ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    const acf_act_kind act = ((const acf_linear_attrs *)n->attr)->act;
    acf_real *dx = acf_grad(t, x), *dw = acf_grad(t, w), *db = acf_grad(t, b);
    acf_mark mark = acf_arena_mark(t->mem); /* gradients first: later allocations end with this call */
    acf_real *dpre = act == ACF_IDENTITY ? y->grad : acf_tape_reals(t, acf_tensor_count(y));
    ACF_TRY(acf_tape_status(t));
    if (act != ACF_IDENTITY)
        ACF_TRY(acf_cuda_act_back(t->dev, act, dpre, y->grad, y->data, acf_tensor_count(y), false));
    acf_status status = products(t, dx, dw, db, dpre, x, w);
    acf_tape_done(t, mark);
    return status;
}

ACF_CUDA_OP(linear, forward, backward);
