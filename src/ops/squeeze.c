/* Squares of pixels as channels: see squeeze.h. Moves numbers in runs of C; bound by memory. */
#include "ops/squeeze.h"

/* The square's pixels in the order of the quarters: a, d, b, c. */
static const int64_t down[4] = {0, 1, 0, 1}, across[4] = {0, 1, 1, 0};

static void move(acf_real *to, const acf_real *from, bool add, int64_t n) {
    if (add) {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) to[i] += from[i];
    } else {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
    }
}

/* Position of quarter k of the squeezed pixel r in the image. */
static int64_t place(int64_t r, int k, int64_t H, int64_t W, int64_t C) {
    const int64_t Ho = H / 2, Wo = W / 2, n = r / (Ho * Wo), p = r / Wo % Ho, q = r % Wo;
    return ((n * H + 2 * p + down[k]) * W + 2 * q + across[k]) * C;
}

void acf_squeeze_cpu(const acf_device *dev, acf_real *y, const acf_real *x, bool add, int64_t N, int64_t H, int64_t W,
                     int64_t C) {
    ACF_PARALLEL(dev, N * H * W * C)
    for (int64_t r = 0; r < N * (H / 2) * (W / 2); r++)
        for (int k = 0; k < 4; k++) move(y + (4 * r + k) * C, x + place(r, k, H, W, C), add, C);
}

void acf_unsqueeze_cpu(const acf_device *dev, acf_real *x, const acf_real *y, bool add, int64_t N, int64_t H, int64_t W,
                       int64_t C) {
    ACF_PARALLEL(dev, N * H * W * C)
    for (int64_t r = 0; r < N * (H / 2) * (W / 2); r++)
        for (int k = 0; k < 4; k++) move(x + place(r, k, H, W, C), y + (4 * r + k) * C, add, C);
}

static acf_status squeeze_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    acf_squeeze_cpu(t->dev, n->out[0]->data, x->data, false, x->dim[0], x->dim[1], x->dim[2], x->dim[3]);
    return ACF_OK;
}

static acf_status squeeze_backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    acf_real *dx = acf_grad(t, x);
    ACF_TRY(acf_tape_status(t));
    acf_unsqueeze_cpu(t->dev, dx, n->out[0]->grad, true, x->dim[0], x->dim[1], x->dim[2], x->dim[3]);
    return ACF_OK;
}

static acf_status unsqueeze_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->out[0];
    acf_unsqueeze_cpu(t->dev, x->data, n->in[0]->data, false, x->dim[0], x->dim[1], x->dim[2], x->dim[3]);
    return ACF_OK;
}

static acf_status unsqueeze_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->out[0];
    acf_real *dy = acf_grad(t, n->in[0]);
    ACF_TRY(acf_tape_status(t));
    acf_squeeze_cpu(t->dev, dy, x->grad, true, x->dim[0], x->dim[1], x->dim[2], x->dim[3]);
    return ACF_OK;
}

const acf_op acf_op_squeeze = {"squeeze", ACF_OP_squeeze, {squeeze_forward, squeeze_backward}};
const acf_op acf_op_unsqueeze = {"unsqueeze", ACF_OP_unsqueeze, {unsqueeze_forward, unsqueeze_backward}};

acf_tensor *acf_squeeze(acf_tape *t, acf_tensor *x) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_squeeze, 0, 1, &x);
    if (!n) return &t->empty;
    if (x->ndim != 4 || x->dim[1] % 2 || x->dim[2] % 2)
        return acf_reject(t, n->op, "x is %s; expected (N, H, W, C) with even H and W", acf_tensor_shape(x, sx));
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){x->dim[0], x->dim[1] / 2, x->dim[2] / 2, 4 * x->dim[3]});
    return acf_node_run(t, n);
}

acf_tensor *acf_unsqueeze(acf_tape *t, acf_tensor *y) {
    char sy[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_unsqueeze, 0, 1, &y);
    if (!n) return &t->empty;
    if (y->ndim != 4 || y->dim[3] % 4)
        return acf_reject(t, n->op, "y is %s; expected (N, H, W, C) with C a multiple of 4", acf_tensor_shape(y, sy));
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){y->dim[0], 2 * y->dim[1], 2 * y->dim[2], y->dim[3] / 4});
    return acf_node_run(t, n);
}
