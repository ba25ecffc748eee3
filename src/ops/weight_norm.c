/* Weight normalisation: see weight_norm.h. Workload: once per convolution and step, 1e3 to 1e6 weights: bound by
 * memory. */
#include "ops/weight_norm.h"

#include <math.h>

static double dot(const acf_real *a, const acf_real *b, int64_t n) {
    double sum = 0;
    ACF_PRAGMA(omp simd reduction(+ : sum))
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

void acf_weight_norm_fwd_cpu(const acf_device *dev, acf_real *w, const acf_real *v, const acf_real *g, int64_t O,
                             int64_t K) {
    ACF_PARALLEL(dev, O * K)
    for (int64_t o = 0; o < O; o++) {
        const acf_real *row = v + o * K, k = (acf_real)((double)g[o] / sqrt(dot(row, row, K) + ACF_NORM_FLOOR));
        ACF_SIMD
        for (int64_t i = 0; i < K; i++) w[o * K + i] = k * row[i];
    }
}

/* dg = dw·v / |v|;  dv = g/|v| (dw - v (dw·v) / |v|²): a change along v alters only the length of v, which w does not
 * depend on. */
void acf_weight_norm_bwd_cpu(const acf_device *dev, acf_real *dv, acf_real *dg, const acf_real *dw, const acf_real *v,
                             const acf_real *g, int64_t O, int64_t K) {
    ACF_PARALLEL(dev, O * K)
    for (int64_t o = 0; o < O; o++) {
        const acf_real *row = v + o * K, *d = dw + o * K;
        const double square = dot(row, row, K) + ACF_NORM_FLOOR, along = dot(d, row, K), inv = 1 / sqrt(square);
        if (dg) dg[o] += (acf_real)(along * inv);
        if (!dv) continue;
        const acf_real k = (acf_real)((double)g[o] * inv), back = (acf_real)(along / square);
        ACF_SIMD
        for (int64_t i = 0; i < K; i++) dv[o * K + i] += k * (d[i] - back * row[i]);
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *v = n->in[0], *g = n->in[1];
    acf_weight_norm_fwd_cpu(t->dev, n->out[0]->data, v->data, g->data, v->dim[0], acf_tensor_width(v));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *v = n->in[0], *g = n->in[1];
    acf_real *dv = acf_grad(t, v), *dg = acf_grad(t, g);
    ACF_TRY(acf_tape_status(t));
    acf_weight_norm_bwd_cpu(t->dev, dv, dg, n->out[0]->grad, v->data, g->data, v->dim[0], acf_tensor_width(v));
    return ACF_OK;
}

const acf_op acf_op_weight_norm = {"weight_norm", ACF_OP_weight_norm, {forward, backward}};

acf_tensor *acf_weight_norm(acf_tape *t, acf_tensor *v, acf_tensor *g) {
    char sv[ACF_SHAPE_TEXT], sg[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_weight_norm, 0, 2, (acf_tensor *[]){v, g});
    if (!n) return &t->empty;
    if (v->ndim < 1 || acf_tensor_count(g) != v->dim[0])
        return acf_reject(t, n->op, "v is %s and g is %s; expected (O, ...) and (O)", acf_tensor_shape(v, sv),
                          acf_tensor_shape(g, sg));
    n->out[0] = acf_tensor_new(t, v->ndim, v->dim);
    return acf_node_run(t, n);
}
