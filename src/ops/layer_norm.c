/* Layer normalisation: see layer_norm.h; formulas in docs/math.md, 21.
 *
 * Workload: M = 1e3 to 6e4 rows of C = 32 to 512 numbers, twice in each block of a transformer: bound by memory. */
#include "ops/layer_norm.h"

#include <math.h>

static void moments(acf_real *mean, acf_real *inverse, const acf_real *x, int64_t C) {
    acf_real sum = 0, square = 0;
    ACF_PRAGMA(omp simd reduction(+ : sum))
    for (int64_t c = 0; c < C; c++) sum += x[c];
    *mean = sum / (acf_real)C;
    ACF_PRAGMA(omp simd reduction(+ : square))
    for (int64_t c = 0; c < C; c++) square += (x[c] - *mean) * (x[c] - *mean);
    *inverse = 1 / (acf_real)sqrt((double)square / (double)C + ACF_LAYER_NORM_EPS);
}

void acf_layer_norm_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *stat, const acf_real *x,
                            const acf_real *scale, const acf_real *shift, int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 4 * M * C)
    for (int64_t m = 0; m < M; m++) {
        acf_real mean, inverse;
        moments(&mean, &inverse, x + m * C, C);
        if (stat) stat[2 * m] = mean, stat[2 * m + 1] = inverse;
        ACF_SIMD
        for (int64_t c = 0; c < C; c++) y[m * C + c] = (x[m * C + c] - mean) * inverse * scale[c] + shift[c];
    }
}

/* With h = (x - mean) / deviation and g = dy scale: dx = (g - mean(g) - h mean(g h)) / deviation. */
static void back_row(acf_real *dx, const acf_real *dy, const acf_real *x, const acf_real *scale, acf_real mean,
                     acf_real inverse, int64_t C) {
    acf_real sum = 0, product = 0;
    ACF_PRAGMA(omp simd reduction(+ : sum, product))
    for (int64_t c = 0; c < C; c++) {
        const acf_real g = dy[c] * scale[c];
        sum += g, product += g * (x[c] - mean) * inverse;
    }
    sum /= (acf_real)C, product /= (acf_real)C;
    ACF_SIMD
    for (int64_t c = 0; c < C; c++) dx[c] += (dy[c] * scale[c] - sum - (x[c] - mean) * inverse * product) * inverse;
}

void acf_layer_norm_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dscale, acf_real *dshift, acf_real *scratch,
                            const acf_real *dy, const acf_real *stat, const acf_real *x, const acf_real *scale,
                            int64_t M, int64_t C) {
    ACF_PARALLEL(dev, 6 * M * C)
    for (int64_t m = 0; m < M; m++) {
        const acf_real mean = stat[2 * m], inverse = stat[2 * m + 1];
        if (dx) back_row(dx + m * C, dy + m * C, x + m * C, scale, mean, inverse, C);
        if (!dscale) continue;
        ACF_SIMD
        for (int64_t c = 0; c < C; c++) scratch[m * C + c] = dy[m * C + c] * (x[m * C + c] - mean) * inverse;
    }
    if (dscale) acf_cpu_colsum(dev, dscale, scratch, M, C, C);
    if (dshift) acf_cpu_colsum(dev, dshift, dy, M, C, C);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_layer_norm_attrs *a = n->attr;
    const acf_tensor *x = n->in[0];
    if (n->save && !(a->stat = acf_tape_reals(t, 2 * x->dim[0]))) return acf_tape_status(t);
    acf_layer_norm_fwd_cpu(t->dev, n->out[0]->data, a->stat, x->data, n->in[1]->data, n->in[2]->data, x->dim[0],
                           x->dim[1]);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_layer_norm_attrs *a = n->attr;
    const acf_tensor *x = n->in[0];
    acf_real *dx = acf_grad(t, n->in[0]), *dscale = acf_grad(t, n->in[1]), *dshift = acf_grad(t, n->in[2]);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = dscale ? acf_tape_reals(t, acf_tensor_count(x)) : NULL;
    ACF_TRY(acf_tape_status(t));
    acf_layer_norm_bwd_cpu(t->dev, dx, dscale, dshift, scratch, n->out[0]->grad, a->stat, x->data, n->in[1]->data,
                           x->dim[0], x->dim[1]);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_layer_norm = {"layer_norm", ACF_OP_layer_norm, {forward, backward}};

acf_tensor *acf_layer_norm(acf_tape *t, acf_tensor *x, acf_tensor *scale, acf_tensor *shift) {
    char sx[ACF_SHAPE_TEXT], ss[ACF_SHAPE_TEXT], st[ACF_SHAPE_TEXT];
    acf_node *n =
        acf_node_new(t, &acf_op_layer_norm, sizeof(acf_layer_norm_attrs), 3, (acf_tensor *[]){x, scale, shift});
    if (!n) return &t->empty;
    if (x->ndim != 2 || x->dim[1] < 1 || acf_tensor_count(scale) != x->dim[1] || acf_tensor_count(shift) != x->dim[1])
        return acf_reject(t, n->op, "x is %s, scale %s and shift %s; expected (M, C) and C numbers each",
                          acf_tensor_shape(x, sx), acf_tensor_shape(scale, ss), acf_tensor_shape(shift, st));
    n->out[0] = acf_tensor_new(t, 2, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
