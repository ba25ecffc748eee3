/* Joining and slicing along the last axis: see concat.h. Each is the adjoint of the other.
 *
 * Workload: M = 1e3 to 1e5 packed elements; a network's input such as (previous value, context, mask) with widths 1,
 * 256, 60. One input at a time: it is read once in order, and y is written in runs of that input's width. */
#include "ops/concat.h"

void acf_concat_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t from, int64_t width, int64_t M,
                        int64_t C) {
    ACF_PARALLEL(dev, M * width)
    for (int64_t m = 0; m < M; m++) {
        ACF_SIMD
        for (int64_t c = 0; c < width; c++) y[m * C + from + c] = x[m * width + c];
    }
}

void acf_concat_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, int64_t from, int64_t width, int64_t M,
                        int64_t C) {
    ACF_PARALLEL(dev, M * width)
    for (int64_t m = 0; m < M; m++) {
        ACF_SIMD
        for (int64_t c = 0; c < width; c++) dx[m * width + c] += dy[m * C + from + c];
    }
}

void acf_slice_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t from, int64_t width, int64_t M,
                       int64_t C) {
    ACF_PARALLEL(dev, M * width)
    for (int64_t m = 0; m < M; m++) {
        ACF_SIMD
        for (int64_t c = 0; c < width; c++) y[m * width + c] = x[m * C + from + c];
    }
}

void acf_slice_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, int64_t from, int64_t width, int64_t M,
                       int64_t C) {
    ACF_PARALLEL(dev, M * width)
    for (int64_t m = 0; m < M; m++) {
        ACF_SIMD
        for (int64_t c = 0; c < width; c++) dx[m * C + from + c] += dy[m * width + c];
    }
}

/* ---- concat ----------------------------------------------------------------------------------------------------- */

static acf_status concat_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    for (int64_t k = 0, from = 0; k < n->n_in; k++) {
        int64_t width = acf_tensor_last(n->in[k]);
        acf_concat_fwd_cpu(t->dev, y->data, n->in[k]->data, from, width, acf_tensor_lines(y), acf_tensor_last(y));
        from += width;
    }
    return ACF_OK;
}

static acf_status concat_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    for (int64_t k = 0, from = 0; k < n->n_in; k++) {
        int64_t width = acf_tensor_last(n->in[k]);
        acf_real *dx = acf_grad(t, n->in[k]);
        if (dx) acf_concat_bwd_cpu(t->dev, dx, y->grad, from, width, acf_tensor_lines(y), acf_tensor_last(y));
        from += width;
    }
    return acf_tape_status(t);
}

const acf_op acf_op_concat = {"concat", ACF_OP_concat, {concat_forward, concat_backward}};

/* Shape of the result: x's, with another last axis; (M) stands for (M,1). */
static acf_tensor *with_last(acf_tape *t, const acf_tensor *x, int64_t last) {
    int64_t dim[ACF_MAX_DIM] = {0};
    const int ndim = x->ndim > 1 ? x->ndim : 2;
    for (int i = 0; i < x->ndim; i++) dim[i] = x->dim[i];
    dim[ndim - 1] = last;
    acf_tensor *y = acf_tensor_new(t, ndim, dim);
    acf_tensor_inherit(y, x);
    return y;
}

/* True if x and y agree in all axes but the last: (M,C) or (M), or images (N,H,W,C). */
static bool same_lines(const acf_tensor *a, const acf_tensor *b) {
    if (a->ndim < 1 || b->ndim < 1 || a->sub != b->sub) return false;
    if (a->ndim <= 2 && b->ndim <= 2) return a->dim[0] == b->dim[0];
    for (int i = 0; i < a->ndim - 1; i++)
        if (a->ndim != b->ndim || a->dim[i] != b->dim[i]) return false;
    return a->ndim == b->ndim;
}

acf_tensor *acf_concat(acf_tape *t, int n, acf_tensor *const *x) {
    char a[ACF_SHAPE_TEXT], b[ACF_SHAPE_TEXT];
    if (n < 1) return acf_reject(t, &acf_op_concat, "%d tensors; expected at least one", n);
    acf_node *node = acf_node_new(t, &acf_op_concat, 0, n, x);
    if (!node) return &t->empty;
    int64_t C = 0;
    for (int k = 0; k < n; k++) {
        if (!same_lines(x[0], x[k]))
            return acf_reject(t, &acf_op_concat,
                              "tensor 0 is %s and tensor %d is %s; expected (M, C) or (M) with the same rows",
                              acf_tensor_shape(x[0], a), k, acf_tensor_shape(x[k], b));
        C += acf_tensor_last(x[k]);
    }
    node->out[0] = with_last(t, x[0], C);
    return acf_node_run(t, node);
}

/* ---- slice ------------------------------------------------------------------------------------------------------ */

static acf_status slice_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_slice_fwd_cpu(t->dev, y->data, n->in[0]->data, ((acf_slice_attrs *)n->attr)->from, acf_tensor_last(y),
                      acf_tensor_lines(y), acf_tensor_last(n->in[0]));
    return ACF_OK;
}

static acf_status slice_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]);
    if (dx)
        acf_slice_bwd_cpu(t->dev, dx, y->grad, ((acf_slice_attrs *)n->attr)->from, acf_tensor_last(y),
                          acf_tensor_lines(y), acf_tensor_last(n->in[0]));
    return acf_tape_status(t);
}

const acf_op acf_op_slice = {"slice", ACF_OP_slice, {slice_forward, slice_backward}};

acf_tensor *acf_slice(acf_tape *t, acf_tensor *x, int64_t from, int64_t width) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_slice, sizeof(acf_slice_attrs), 1, &x);
    if (!n) return &t->empty;
    if (x->ndim < 1 || from < 0 || width < 0 || from > acf_tensor_last(x) - width)
        return acf_reject(t, &acf_op_slice, "columns %lld to %lld of x %s; expected columns that x has",
                          (long long)from, (long long)from + width - 1, acf_tensor_shape(x, sx));
    ((acf_slice_attrs *)n->attr)->from = from;
    n->out[0] = with_last(t, x, width);
    return acf_node_run(t, n);
}
