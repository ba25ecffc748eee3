/* A vector added to all pixels: see add_vector.h. Bound by memory. One iteration sums over one image. */
#include "ops/add_vector.h"

#include "ops/arith.h"

void acf_add_vector_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *v, int64_t N,
                            int64_t P, int64_t C) {
    ACF_PARALLEL(dev, N * P * C)
    for (int64_t i = 0; i < N * P; i++) {
        ACF_SIMD
        for (int64_t c = 0; c < C; c++) y[i * C + c] = x[i * C + c] + v[i / P * C + c];
    }
}

void acf_add_vector_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, int64_t N, int64_t P, int64_t C) {
    ACF_PARALLEL(dev, N * P * C)
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = n * P; i < (n + 1) * P; i++) {
            ACF_SIMD
            for (int64_t c = 0; c < C; c++) dv[n * C + c] += dy[i * C + c];
        }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    acf_add_vector_fwd_cpu(t->dev, n->out[0]->data, x->data, n->in[1]->data, x->dim[0], x->dim[1] * x->dim[2],
                           x->dim[3]);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    const acf_real *dy = n->out[0]->grad;
    acf_real *dx = acf_grad(t, x), *dv = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    acf_add_bwd_cpu(t->dev, dx, NULL, dy, 1, 0, acf_tensor_count(x));
    if (dv) acf_add_vector_bwd_cpu(t->dev, dv, dy, x->dim[0], x->dim[1] * x->dim[2], x->dim[3]);
    return ACF_OK;
}

const acf_op acf_op_add_vector = {"add_vector", ACF_OP_add_vector, {forward, backward}};

acf_tensor *acf_add_vector(acf_tape *t, acf_tensor *x, acf_tensor *v) {
    char sx[ACF_SHAPE_TEXT], sv[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_add_vector, 0, 2, (acf_tensor *[]){x, v});
    if (!n) return &t->empty;
    if (x->ndim != 4 || v->ndim != 2 || v->dim[0] != x->dim[0] || v->dim[1] != x->dim[3])
        return acf_reject(t, n->op, "x is %s and v is %s; expected (N, H, W, C) and (N, C)", acf_tensor_shape(x, sx),
                          acf_tensor_shape(v, sv));
    n->out[0] = acf_tensor_new(t, 4, x->dim);
    return acf_node_run(t, n);
}
