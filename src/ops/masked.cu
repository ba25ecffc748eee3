/* Selection and sums under a mask on the GPU: see masked.h. Bound by memory. One block computes each sum, in double. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/masked.h"
}

static __device__ inline bool is_on(acf_real m) { return m > 0.5f; }

/* ---- selection --------------------------------------------------------------------------------------------------- */

static __global__ void choose_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ mask,
                                  const acf_real *__restrict__ a, const acf_real *__restrict__ b, int64_t n) {
    ACF_EACH(i, n) y[i] = is_on(mask[i]) ? a[i] : b[i];
}

/* da += dy where mask, db += dy elsewhere; NULL = not needed. Not restrict: a and b may be one tensor. */
static __global__ void choose_bwd(acf_real *da, acf_real *db, const acf_real *__restrict__ dy,
                                  const acf_real *__restrict__ mask, int64_t n) {
    ACF_EACH(i, n) {
        acf_real *to = is_on(mask[i]) ? da : db;
        if (to) to[i] += dy[i];
    }
}

static acf_status choose_forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    choose_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[2]->data, count);
    return ACF_LAUNCHED("choose");
}

static acf_status choose_backward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    acf_real *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    choose_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(da, db, n->out[0]->grad,
                                                                                    n->in[0]->data, count);
    return ACF_LAUNCHED("choose");
}

ACF_CUDA_OP(choose, choose_forward, choose_backward);

/* ---- masked sum -------------------------------------------------------------------------------------------------- */

/* y (N) from x, mask (N,C): one block per image. */
static __global__ void sum_fwd(acf_real *y, const acf_real *__restrict__ x, const acf_real *__restrict__ mask,
                               int64_t C) {
    const int64_t base = (int64_t)blockIdx.x * C;
    double sum = 0;
    for (int64_t c = threadIdx.x; c < C; c += blockDim.x) sum += is_on(mask[base + c]) ? (double)x[base + c] : 0;
    sum = acf_block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = acf_float_from(sum);
}

static __global__ void sum_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                               const acf_real *__restrict__ mask, int64_t N, int64_t C) {
    ACF_EACH(i, N * C) {
        if (is_on(mask[i])) dx[i] += dy[acf_cell_of(i, C).row];
    }
}

static acf_status sum_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *mask = n->in[1];
    if (mask->dim[0] == 0) return ACF_OK;
    sum_fwd<<<(unsigned)mask->dim[0], 512, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, n->in[0]->data, mask->data,
                                                                         acf_tensor_width(mask));
    return ACF_LAUNCHED("sum_masked");
}

static acf_status sum_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *mask = n->in[1];
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    sum_bwd<<<acf_each_blocks(acf_tensor_count(mask)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, n->out[0]->grad, mask->data, mask->dim[0], acf_tensor_width(mask));
    return ACF_LAUNCHED("sum_masked");
}

ACF_CUDA_OP(sum_masked, sum_forward, sum_backward);
