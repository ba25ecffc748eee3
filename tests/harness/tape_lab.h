/* Setup for tests of the tape: two small operations, so that its tests do not depend on src/ops, and a tape with two
 * parameters. */
#ifndef ACF_HARNESS_TAPE_LAB_H
#define ACF_HARNESS_TAPE_LAB_H

#include "tensor/params.h"
#include "tensor/tape.h"

#include "harness/lab.h"

/* ---- two operations -------------------------------------------------------------------------------------------- */

/* z = x * y, elementwise. */
static acf_status mul_forward(acf_tape *t, acf_node *n) {
    (void)t;
    for (int64_t i = 0; i < acf_tensor_count(n->in[0]); i++) n->out[0]->data[i] = n->in[0]->data[i] * n->in[1]->data[i];
    return ACF_OK;
}

static acf_status mul_backward(acf_tape *t, acf_node *n) {
    for (int k = 0; k < 2; k++) {
        acf_real *g = acf_grad(t, n->in[k]);
        for (int64_t i = 0; g && i < acf_tensor_count(n->in[k]); i++)
            g[i] += n->out[0]->grad[i] * n->in[1 - k]->data[i];
    }
    return acf_tape_status(t);
}

static const acf_op op_mul = {"mul", -1, {mul_forward, mul_backward}};

static acf_tensor *mul(acf_tape *t, acf_tensor *x, acf_tensor *y) {
    acf_node *n = acf_node_new(t, &op_mul, 0, 2, (acf_tensor *[]){x, y});
    if (!n) return &t->empty;
    if (acf_tensor_count(x) != acf_tensor_count(y))
        return acf_reject(t, &op_mul, "%d and %d elements", (int)acf_tensor_count(x), (int)acf_tensor_count(y));
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    n->out[0]->sub = x->sub;
    return acf_node_run(t, n);
}

/* A scalar: the sum. */
static acf_status sum_forward(acf_tape *t, acf_node *n) {
    (void)t;
    double sum = 0;
    for (int64_t i = 0; i < acf_tensor_count(n->in[0]); i++) sum += (double)n->in[0]->data[i];
    n->out[0]->data[0] = (acf_real)sum;
    return ACF_OK;
}

static acf_status sum_backward(acf_tape *t, acf_node *n) {
    acf_real *g = acf_grad(t, n->in[0]);
    for (int64_t i = 0; g && i < acf_tensor_count(n->in[0]); i++) g[i] += n->out[0]->grad[0];
    return acf_tape_status(t);
}

static const acf_op op_sum = {"sum", -1, {sum_forward, sum_backward}};

static acf_tensor *sum(acf_tape *t, acf_tensor *x) {
    acf_node *n = acf_node_new(t, &op_sum, 0, 1, &x);
    if (!n) return &t->empty;
    n->out[0] = acf_tensor_new(t, 0, NULL);
    return acf_node_run(t, n);
}

/* ---- a tape with two parameters -------------------------------------------------------------------------------- */

typedef struct bench {
    acf_device *dev;
    acf_params *ps;
    acf_tape *t;
    acf_tensor *w, *v; /* (2,3) each: w = 1 2 3 4 5 6, v = 2 */
} bench;

static void open_bench(bench *b) {
    assert_int_equal(acf_device_open_cpu(1, &b->dev), ACF_OK);
    assert_int_equal(acf_params_create(b->dev, &b->ps), ACF_OK);
    int64_t dim[2] = {2, 3};
    b->w = acf_p(acf_param_add(b->ps, "w", ACF_INIT_CONST, 0, 2, dim));
    b->v = acf_p(acf_param_add(b->ps, "v", ACF_INIT_CONST, 2, 2, dim));
    assert_int_equal(acf_params_build(b->ps, 1, true), ACF_OK);
    for (int i = 0; i < 6; i++) b->w->data[i] = (acf_real)(i + 1);
    assert_int_equal(acf_tape_create(b->dev, NULL, &b->t), ACF_OK);
    acf_tape_begin(b->t, true);
}

static void close_bench(bench *b) {
    acf_tape_free(b->t);
    acf_params_free(b->ps);
    acf_device_close(b->dev);
}

static void expect(const acf_real *g, double a0, double a1, double a2, double a3, double a4, double a5) {
    const double a[6] = {a0, a1, a2, a3, a4, a5};
    for (int i = 0; i < 6; i++) acf_assert_close((double)g[i], a[i], 0, "gradient");
}

#endif
