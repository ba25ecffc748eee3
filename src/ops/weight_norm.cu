/* Weight normalisation on the GPU: see weight_norm.h. One block per output; its weights are read twice, the second time
 * from cache. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/weight_norm.h"
}

#define BLOCK 128

/* Σ a b over K, in every thread of the block. */
static __device__ double dot(const acf_real *__restrict__ a, const acf_real *__restrict__ b, int64_t K) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < K; i += BLOCK) sum += (double)a[i] * (double)b[i];
    return acf_block_sum(sum);
}

/* w (O,K) from v (O,K), g (O). */
static __global__ void norm_fwd(acf_real *__restrict__ w, const acf_real *__restrict__ v,
                                const acf_real *__restrict__ g, int64_t K) {
    const int64_t o = blockIdx.x;
    const acf_real k = (acf_real)((double)g[o] / sqrt(dot(v + o * K, v + o * K, K) + ACF_NORM_FLOOR));
    for (int64_t i = threadIdx.x; i < K; i += BLOCK) w[o * K + i] = k * v[o * K + i];
}

/* dg = dw·v / |v|;  dv = g/|v| (dw - v (dw·v) / |v|²). */
static __global__ void norm_bwd(acf_real *__restrict__ dv, acf_real *__restrict__ dg, const acf_real *__restrict__ dw,
                                const acf_real *__restrict__ v, const acf_real *__restrict__ g, int64_t K) {
    const int64_t o = blockIdx.x;
    const acf_real *row = v + o * K, *d = dw + o * K;
    const double square = dot(row, row, K) + ACF_NORM_FLOOR, along = dot(d, row, K), inv = 1 / sqrt(square);
    if (dg && threadIdx.x == 0) dg[o] += (acf_real)(along * inv);
    if (!dv) return;
    const acf_real k = (acf_real)((double)g[o] * inv), back = (acf_real)(along / square);
    for (int64_t i = threadIdx.x; i < K; i += BLOCK) dv[o * K + i] += k * (d[i] - back * row[i]);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *v = n->in[0];
    if (v->dim[0] == 0) return ACF_OK;
    norm_fwd<<<(unsigned)v->dim[0], BLOCK, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, v->data, n->in[1]->data,
                                                                         acf_tensor_width(v));
    return ACF_LAUNCHED("weight_norm");
}

/* If dw was computed on the second stream (conv2d.cu), this runs there too, or waits for it. */
static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *v = n->in[0], *g = n->in[1];
    acf_real *dv = acf_grad(t, v), *dg = acf_grad(t, g);
    const bool aside = !acf_made_by(n, v) && !acf_made_by(n, g);
    ACF_TRY(acf_tape_status(t));
    if (v->dim[0] == 0) return ACF_OK;
    ACF_TRY(aside ? acf_cuda_aside(t, true) : acf_cuda_join(t->dev));
    norm_bwd<<<(unsigned)v->dim[0], BLOCK, 0, acf_cuda_stream(t->dev)>>>(dv, dg, n->out[0]->grad, v->data, g->data,
                                                                         acf_tensor_width(v));
    ACF_TRY(ACF_LAUNCHED("weight_norm"));
    return aside ? acf_cuda_aside(t, false) : ACF_OK;
}

ACF_CUDA_OP(weight_norm, forward, backward);
