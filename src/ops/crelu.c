/* Concatenated and gated activations along the channels: see crelu.h. Workload: 1e5 to 1e7 numbers a call, 16 to 512
 * channels; vector loops over the channels of a pixel. */
#include "ops/crelu.h"

#include "base/vmath.h"

/* ---- both signs ------------------------------------------------------------------------------------------------ */

void acf_crelu_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, acf_act_kind act, int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 2 * M * C)
    for (int64_t m = 0; m < M; m++) {
        acf_real *plus = y + 2 * m * C, *minus = plus + C;
        ACF_SIMD
        for (int64_t c = 0; c < C; c++) minus[c] = -x[m * C + c];
        acf_act_fwd_cpu(act, plus, x + m * C, C);
        acf_act_fwd_cpu(act, minus, minus, C);
    }
}

/* dx += dy₊ act'(x) - dy₋ act'(-x), slopes from the outputs: of relu 1 or 0, of elu 1 or y + 1. */
void acf_crelu_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *y, acf_act_kind act,
                       int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 2 * M * C)
    for (int64_t m = 0; m < M; m++) {
        const acf_real *plus = y + 2 * m * C, *minus = plus + C, *d = dy + 2 * m * C;
        acf_real *to = dx + m * C;
        if (act == ACF_RELU) {
            ACF_SIMD
            for (int64_t c = 0; c < C; c++) to[c] += (plus[c] > 0 ? d[c] : 0) - (minus[c] > 0 ? d[C + c] : 0);
        } else {
            ACF_SIMD
            for (int64_t c = 0; c < C; c++)
                to[c] += d[c] * (plus[c] < 0 ? plus[c] + 1 : 1) - d[C + c] * (minus[c] < 0 ? minus[c] + 1 : 1);
        }
    }
}

static acf_status crelu_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    acf_crelu_fwd_cpu(t->dev, n->out[0]->data, x->data, ((acf_act_attrs *)n->attr)->kind, acf_tensor_lines(x),
                      acf_tensor_last(x));
    return ACF_OK;
}

static acf_status crelu_backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *y = n->out[0];
    acf_real *dx = acf_grad(t, x);
    ACF_TRY(acf_tape_status(t));
    acf_crelu_bwd_cpu(t->dev, dx, y->grad, y->data, ((acf_act_attrs *)n->attr)->kind, acf_tensor_lines(x),
                      acf_tensor_last(x));
    return ACF_OK;
}

const acf_op acf_op_crelu = {"crelu", ACF_OP_crelu, {crelu_forward, crelu_backward}};

/* y with x's shape, except for `last` channels. */
static acf_tensor *like(acf_tape *t, const acf_tensor *x, int64_t last) {
    int64_t dim[ACF_MAX_DIM];
    for (int i = 0; i < x->ndim; i++) dim[i] = x->dim[i];
    dim[x->ndim - 1] = last;
    acf_tensor *y = acf_tensor_new(t, x->ndim, dim);
    acf_tensor_inherit(y, x);
    return y;
}

acf_tensor *acf_crelu(acf_tape *t, acf_act_kind act, acf_tensor *x) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_crelu, sizeof(acf_act_attrs), 1, &x);
    if (!n) return &t->empty;
    if (x->ndim < 2)
        return acf_reject(t, n->op, "x is %s; expected channels as its last axis", acf_tensor_shape(x, sx));
    if (act != ACF_RELU && act != ACF_ELU)
        return acf_reject_value(t, n->op, "the activation is %s; expected relu or elu", acf_act_name(act));
    ((acf_act_attrs *)n->attr)->kind = act;
    n->out[0] = like(t, x, 2 * acf_tensor_last(x));
    return acf_node_run(t, n);
}

/* ---- gate ------------------------------------------------------------------------------------------------------ */

void acf_gated_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *h, const acf_real *k,
                       int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 8 * M * C)
    for (int64_t m = 0; m < M; m++) {
        const acf_real *a = h + 2 * m * C, *b = a + C, *ka = k + 2 * m * C, *kb = ka + C;
        ACF_SIMD
        for (int64_t c = 0; c < C; c++) y[m * C + c] = x[m * C + c] + (a[c] + ka[c]) * acf_sigmoid(b[c] + kb[c]);
    }
}

/* One pixel's [da | db], added. */
static void add_gate(acf_real *restrict to, const acf_real *restrict d, const acf_real *restrict h,
                     const acf_real *restrict k, int64_t C) {
    ACF_SIMD
    for (int64_t c = 0; c < C; c++) {
        const acf_real open = acf_sigmoid(h[C + c] + k[C + c]);
        to[c] += d[c] * open;
        to[C + c] += d[c] * (h[c] + k[c]) * open * (1 - open);
    }
}

void acf_gated_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dh, acf_real *dk, const acf_real *dy,
                       const acf_real *h, const acf_real *k, int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 16 * M * C)
    for (int64_t m = 0; m < M; m++) {
        const int64_t at = 2 * m * C;
        if (dx) {
            ACF_SIMD
            for (int64_t c = 0; c < C; c++) dx[m * C + c] += dy[m * C + c];
        }
        if (dh) add_gate(dh + at, dy + m * C, h + at, k + at, C);
        if (dk) add_gate(dk + at, dy + m * C, h + at, k + at, C);
    }
}

static acf_status gated_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_gated_fwd_cpu(t->dev, y->data, n->in[0]->data, n->in[1]->data, n->in[2]->data, acf_tensor_lines(y),
                      acf_tensor_last(y));
    return ACF_OK;
}

static acf_status gated_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]), *dh = acf_grad(t, n->in[1]), *dk = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    acf_gated_bwd_cpu(t->dev, dx, dh, dk, y->grad, n->in[1]->data, n->in[2]->data, acf_tensor_lines(y),
                      acf_tensor_last(y));
    return ACF_OK;
}

const acf_op acf_op_gated = {"gated", ACF_OP_gated, {gated_forward, gated_backward}};

acf_tensor *acf_gated(acf_tape *t, acf_tensor *x, acf_tensor *h, acf_tensor *c) {
    char sx[ACF_SHAPE_TEXT], sh[ACF_SHAPE_TEXT], sc[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_gated, 0, 3, (acf_tensor *[]){x, h, c});
    if (!n) return &t->empty;
    if (x->ndim < 2 || h->ndim < 2 || acf_tensor_last(h) != 2 * acf_tensor_last(x) ||
        acf_tensor_lines(h) != acf_tensor_lines(x) || !acf_tensor_same_shape(h, c))
        return acf_reject(t, n->op, "x is %s, h %s and c %s; expected twice the channels of x in h and c",
                          acf_tensor_shape(x, sx), acf_tensor_shape(h, sh), acf_tensor_shape(c, sc));
    n->out[0] = like(t, x, acf_tensor_last(x));
    return acf_node_run(t, n);
}
