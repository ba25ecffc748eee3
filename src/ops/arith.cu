/* Elementwise arithmetic on the GPU: see arith.h. One launch per input's gradient, because x and y may be one
 * tensor. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/arith.h"
}

/* ---- a x + b y ------------------------------------------------------------------------------------------------- */

static __global__ void add_fwd(acf_real *__restrict__ z, acf_real a, const acf_real *__restrict__ x, acf_real b,
                               const acf_real *__restrict__ y, int64_t n) {
    ACF_EACH(i, n) z[i] = a * x[i] + (y ? b * y[i] : 0);
}

/* dx += a dz */
static __global__ void add_scaled(acf_real *__restrict__ dx, acf_real a, const acf_real *__restrict__ dz, int64_t n) {
    ACF_EACH(i, n) dx[i] += a * dz[i];
}

static acf_status add_forward(acf_tape *t, acf_node *n) {
    const acf_add_attrs *k = (const acf_add_attrs *)n->attr;
    const int64_t count = acf_tensor_count(n->out[0]);
    add_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, k->a, n->in[0]->data, k->b, n->in[1] ? n->in[1]->data : NULL, count);
    return ACF_LAUNCHED("add");
}

static acf_status add_backward(acf_tape *t, acf_node *n) {
    const acf_add_attrs *k = (const acf_add_attrs *)n->attr;
    const int64_t count = acf_tensor_count(n->out[0]);
    acf_real *dx = acf_grad(t, n->in[0]), *dy = acf_grad(t, n->in[1]);
    const acf_real *dz = n->out[0]->grad;
    ACF_TRY(acf_tape_status(t));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (dx) add_scaled<<<acf_each_blocks(count), ACF_THREADS, 0, stream>>>(dx, k->a, dz, count);
    if (dy) add_scaled<<<acf_each_blocks(count), ACF_THREADS, 0, stream>>>(dy, k->b, dz, count);
    return ACF_LAUNCHED("add");
}

ACF_CUDA_OP(add, add_forward, add_backward);

/* ---- x y ------------------------------------------------------------------------------------------------------- */

static __global__ void mul_fwd(acf_real *__restrict__ z, const acf_real *__restrict__ x, const acf_real *__restrict__ y,
                               int64_t n) {
    ACF_EACH(i, n) z[i] = x[i] * y[i];
}

/* dx += dz y */
static __global__ void add_product(acf_real *__restrict__ dx, const acf_real *__restrict__ dz,
                                   const acf_real *__restrict__ y, int64_t n) {
    ACF_EACH(i, n) dx[i] += dz[i] * y[i];
}

static acf_status mul_forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    mul_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, n->in[0]->data,
                                                                                 n->in[1]->data, count);
    return ACF_LAUNCHED("mul");
}

static acf_status mul_backward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    acf_real *dx = acf_grad(t, n->in[0]), *dy = acf_grad(t, n->in[1]);
    const acf_real *dz = n->out[0]->grad;
    ACF_TRY(acf_tape_status(t));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (dx) add_product<<<acf_each_blocks(count), ACF_THREADS, 0, stream>>>(dx, dz, n->in[1]->data, count);
    if (dy) add_product<<<acf_each_blocks(count), ACF_THREADS, 0, stream>>>(dy, dz, n->in[0]->data, count);
    return ACF_LAUNCHED("mul");
}

ACF_CUDA_OP(mul, mul_forward, mul_backward);
