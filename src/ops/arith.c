/* Elementwise arithmetic: see arith.h. Bound by memory: flat loops in chunks.
 *
 * A backward makes one pass per input: x and y may be the same tensor, whose gradient then gets both terms. */
#include "ops/arith.h"

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

void acf_add_fwd_cpu(const acf_device *dev, acf_real *z, acf_real a, const acf_real *x, acf_real b, const acf_real *y,
                     int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        int64_t end = acf_min(c + ACF_CHUNK, n);
        if (y) {
            ACF_SIMD
            for (int64_t i = c; i < end; i++) z[i] = a * x[i] + b * y[i];
        } else {
            ACF_SIMD
            for (int64_t i = c; i < end; i++) z[i] = a * x[i];
        }
    }
}

/* dx += a dz */
static void add_scaled(const acf_device *dev, acf_real *dx, acf_real a, const acf_real *dz, int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) dx[i] += a * dz[i];
    }
}

void acf_add_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dy, const acf_real *dz, acf_real a, acf_real b,
                     int64_t n) {
    if (dx) add_scaled(dev, dx, a, dz, n);
    if (dy) add_scaled(dev, dy, b, dz, n);
}

void acf_mul_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *x, const acf_real *y, int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) z[i] = x[i] * y[i];
    }
}

/* dx += dz y */
static void add_product(const acf_device *dev, acf_real *dx, const acf_real *dz, const acf_real *y, int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) dx[i] += dz[i] * y[i];
    }
}

void acf_mul_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dy, const acf_real *dz, const acf_real *x,
                     const acf_real *y, int64_t n) {
    if (dx) add_product(dev, dx, dz, y, n);
    if (dy) add_product(dev, dy, dz, x, n);
}

/* ---- a x + b y ------------------------------------------------------------------------------------------------- */

static acf_status add_forward(acf_tape *t, acf_node *n) {
    const acf_add_attrs *k = n->attr;
    acf_add_fwd_cpu(t->dev, n->out[0]->data, k->a, n->in[0]->data, k->b, n->in[1] ? n->in[1]->data : NULL,
                    acf_tensor_count(n->out[0]));
    return ACF_OK;
}

static acf_status add_backward(acf_tape *t, acf_node *n) {
    const acf_add_attrs *k = n->attr;
    acf_real *dx = acf_grad(t, n->in[0]), *dy = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    acf_add_bwd_cpu(t->dev, dx, dy, n->out[0]->grad, k->a, k->b, acf_tensor_count(n->out[0]));
    return ACF_OK;
}

const acf_op acf_op_add = {"add", ACF_OP_add, {add_forward, add_backward}};

/* Runs a node on x and y (or x alone) once their shapes agree. */
static acf_tensor *run(acf_tape *t, acf_node *n, const acf_tensor *x, const acf_tensor *y) {
    char sx[ACF_SHAPE_TEXT], sy[ACF_SHAPE_TEXT];
    if (y && !acf_tensor_same_shape(x, y))
        return acf_reject(t, n->op, "x is %s and y is %s; expected the same shape over the same subset",
                          acf_tensor_shape(x, sx), acf_tensor_shape(y, sy));
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}

static acf_tensor *combine(acf_tape *t, double a, acf_tensor *x, double b, acf_tensor *y) {
    acf_node *n = acf_node_new(t, &acf_op_add, sizeof(acf_add_attrs), 2, (acf_tensor *[]){x, y});
    if (!n) return &t->empty;
    *(acf_add_attrs *)n->attr = (acf_add_attrs){(acf_real)a, (acf_real)b};
    return run(t, n, x, y);
}

acf_tensor *acf_add(acf_tape *t, acf_tensor *x, acf_tensor *y) { return combine(t, 1, x, 1, y); }
acf_tensor *acf_sub(acf_tape *t, acf_tensor *x, acf_tensor *y) { return combine(t, 1, x, -1, y); }
acf_tensor *acf_axpy(acf_tape *t, double a, acf_tensor *x, acf_tensor *y) { return combine(t, a, x, 1, y); }
acf_tensor *acf_scale(acf_tape *t, double a, acf_tensor *x) { return combine(t, a, x, 0, NULL); }

/* ---- x y ------------------------------------------------------------------------------------------------------- */

static acf_status mul_forward(acf_tape *t, acf_node *n) {
    acf_mul_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, acf_tensor_count(n->out[0]));
    return ACF_OK;
}

static acf_status mul_backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *y = n->in[1];
    acf_real *dx = acf_grad(t, x), *dy = acf_grad(t, y);
    ACF_TRY(acf_tape_status(t));
    acf_mul_bwd_cpu(t->dev, dx, dy, n->out[0]->grad, x->data, y->data, acf_tensor_count(x));
    return ACF_OK;
}

const acf_op acf_op_mul = {"mul", ACF_OP_mul, {mul_forward, mul_backward}};

acf_tensor *acf_mul(acf_tape *t, acf_tensor *x, acf_tensor *y) {
    acf_node *n = acf_node_new(t, &acf_op_mul, 0, 2, (acf_tensor *[]){x, y});
    return n ? run(t, n, x, y) : &t->empty;
}

acf_tensor *acf_square(acf_tape *t, acf_tensor *x) { return acf_mul(t, x, x); }
