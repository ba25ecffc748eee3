/* The Gaussian error linear unit on the GPU: see gelu.h. One pass each way, bound by memory. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/gelu.h"
}

/* Uses the fast exponential and division; their relative error is 1e-6 where it matters. */
static __device__ acf_real gate(acf_real x) {
    return __fdividef(1, 1 + __expf(-ACF_GELU_SLOPE * (x + ACF_GELU_CUBE * x * x * x)));
}

/* Beyond this the gate is 0 or 1, and the slope must be 0 although squares overflow. A NaN stays one. */
static __device__ acf_real bounded(acf_real x) {
    x = x < -ACF_GELU_FAR ? -ACF_GELU_FAR : x;
    return x > ACF_GELU_FAR ? ACF_GELU_FAR : x;
}

static __global__ void gelu_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x, int64_t n) {
    ACF_EACH(i, n) y[i] = x[i] * gate(x[i]);
}

static __global__ void gelu_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                const acf_real *__restrict__ x, int64_t n) {
    ACF_EACH(i, n) {
        const acf_real s = gate(x[i]), a = bounded(x[i]);
        dx[i] += dy[i] * (s + a * s * (1 - s) * ACF_GELU_SLOPE * (1 + 3 * ACF_GELU_CUBE * a * a));
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->in[0]);
    gelu_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, n->in[0]->data,
                                                                                  count);
    return ACF_LAUNCHED("gelu");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->in[0]);
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    gelu_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(dx, n->out[0]->grad, n->in[0]->data,
                                                                                  count);
    return ACF_LAUNCHED("gelu");
}

ACF_CUDA_OP(gelu, forward, backward);
