/* The Gaussian error linear unit: see gelu.h; derivative in docs/math.md, 21. Bound by memory. */
#include "ops/gelu.h"

#include "base/vmath.h"

static inline acf_real gate(acf_real x) { return acf_sigmoid(ACF_GELU_SLOPE * (x + ACF_GELU_CUBE * x * x * x)); }

/* Beyond this the gate is 0 or 1 to the last bit, and the slope must be 0 although squares overflow. A NaN stays
 * one. */
static inline acf_real bounded(acf_real x) {
    x = x < -ACF_GELU_FAR ? -ACF_GELU_FAR : x;
    return x > ACF_GELU_FAR ? ACF_GELU_FAR : x;
}

void acf_gelu_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t n) {
    ACF_PARALLEL(dev, 8 * n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) y[i] = x[i] * gate(x[i]);
    }
}

void acf_gelu_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x, int64_t n) {
    ACF_PARALLEL(dev, 8 * n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) {
            const acf_real s = gate(x[i]), a = bounded(x[i]);
            dx[i] += dy[i] * (s + a * s * (1 - s) * ACF_GELU_SLOPE * (1 + 3 * ACF_GELU_CUBE * a * a));
        }
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_gelu_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, acf_tensor_count(n->in[0]));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    acf_gelu_bwd_cpu(t->dev, dx, n->out[0]->grad, n->in[0]->data, acf_tensor_count(n->in[0]));
    return ACF_OK;
}

const acf_op acf_op_gelu = {"gelu", ACF_OP_gelu, {forward, backward}};

acf_tensor *acf_gelu(acf_tape *t, acf_tensor *x) {
    acf_node *n = acf_node_new(t, &acf_op_gelu, 0, 1, &x);
    if (!n) return &t->empty;
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
