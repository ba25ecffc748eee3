/* A vector added to all pixels, on the GPU: see add_vector.h. Bound by memory. A block sums 32 channels of an image,
 * in order. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/add_vector.h"
}

/* y (N,P,C) = x + v (N,C); width P·C. */
static __global__ void vector_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x,
                                  const acf_real *__restrict__ v, int64_t n, int64_t width, int64_t C) {
    ACF_EACH(i, n) {
        const acf_cell image = acf_cell_of(i, width);
        y[i] = x[i] + v[image.row * C + acf_cell_of(image.column, C).column];
    }
}

static __global__ void vector_bwd_x(acf_real *__restrict__ dx, const acf_real *__restrict__ dy, int64_t n) {
    ACF_EACH(i, n) dx[i] += dy[i];
}

#define LANES 8 /* pixels of a block at a time */

/* dv (N,C) += the sum of dy (N,P,C) over P. Block (n,k) has channels [32 k, 32 k + 32) of image n. */
static __global__ void vector_bwd_v(acf_real *__restrict__ dv, const acf_real *__restrict__ dy, int64_t P, int64_t C) {
    __shared__ acf_real lane[LANES][32];
    const int64_t n = blockIdx.x, c = (int64_t)blockIdx.y * 32 + threadIdx.x % 32;
    const int k = threadIdx.x / 32;
    acf_real sum = 0;
    if (c < C)
#pragma unroll 4
        for (int64_t p = k; p < P; p += LANES) sum += dy[(n * P + p) * C + c];
    lane[k][threadIdx.x % 32] = sum;
    __syncthreads();
    if (k > 0 || c >= C) return;
    for (int j = 1; j < LANES; j++) sum += lane[j][threadIdx.x];
    dv[n * C + c] += sum;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    const int64_t count = acf_tensor_count(x);
    vector_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, x->data, n->in[1]->data, count, acf_tensor_width(x), x->dim[3]);
    return ACF_LAUNCHED("add_vector");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    const acf_real *dy = n->out[0]->grad;
    const int64_t count = acf_tensor_count(x);
    acf_real *dx = acf_grad(t, x), *dv = acf_grad(t, n->in[1]);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    ACF_TRY(acf_tape_status(t));
    if (count == 0) return ACF_OK;
    if (dx) vector_bwd_x<<<acf_each_blocks(count), ACF_THREADS, 0, stream>>>(dx, dy, count);
    if (dv)
        vector_bwd_v<<<dim3((unsigned)x->dim[0], acf_blocks(x->dim[3], 32)), 32 * LANES, 0, stream>>>(
            dv, dy, x->dim[1] * x->dim[2], x->dim[3]);
    return ACF_LAUNCHED("add_vector");
}

ACF_CUDA_OP(add_vector, forward, backward);
