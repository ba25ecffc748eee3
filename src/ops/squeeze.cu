/* Squares of pixels as channels, on the GPU: see squeeze.h. Moves numbers, bound by memory; one thread per number of
 * the squeezed image. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/squeeze.h"
}

/* Position of number i of the squeezed (N,H/2,W/2,4C) in the image (N,H,W,C); quarters are the square's pixels a, d, b,
 * c. */
static __device__ inline int64_t place_of(int64_t i, int64_t H, int64_t W, int64_t C) {
    const acf_cell quarter = acf_cell_of(i, C), line = acf_cell_of(quarter.row / 4, W / 2),
                   image = acf_cell_of(line.row, H / 2);
    const int k = (int)(quarter.row % 4), down = k % 2, across = k == 1 || k == 2;
    return ((image.row * H + 2 * image.column + down) * W + 2 * line.column + across) * C + quarter.column;
}

/* y = or += squeezed x. */
static __global__ void squeeze(acf_real *__restrict__ y, const acf_real *__restrict__ x, bool add, int64_t n, int64_t H,
                               int64_t W, int64_t C) {
    ACF_EACH(i, n) {
        const acf_real v = x[place_of(i, H, W, C)];
        y[i] = add ? y[i] + v : v;
    }
}

/* x = or += y put back. */
static __global__ void unsqueeze(acf_real *__restrict__ x, const acf_real *__restrict__ y, bool add, int64_t n,
                                 int64_t H, int64_t W, int64_t C) {
    ACF_EACH(i, n) {
        const int64_t at = place_of(i, H, W, C);
        x[at] = add ? x[at] + y[i] : y[i];
    }
}

/* Both, for an image of x's sizes; back: y goes to x. */
static acf_status move(acf_device *dev, acf_real *to, const acf_real *from, bool back, bool add, const acf_tensor *x) {
    const int64_t n = acf_tensor_count(x);
    (back ? unsqueeze : squeeze)<<<acf_each_blocks(n), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(
        to, from, add, n, x->dim[1], x->dim[2], x->dim[3]);
    return ACF_LAUNCHED("squeeze");
}

static acf_status squeeze_forward(acf_tape *t, acf_node *n) {
    return move(t->dev, n->out[0]->data, n->in[0]->data, false, false, n->in[0]);
}

static acf_status squeeze_backward(acf_tape *t, acf_node *n) {
    acf_real *dx = acf_grad(t, n->in[0]);
    return dx ? move(t->dev, dx, n->out[0]->grad, true, true, n->in[0]) : acf_tape_status(t);
}

static acf_status unsqueeze_forward(acf_tape *t, acf_node *n) {
    return move(t->dev, n->out[0]->data, n->in[0]->data, true, false, n->out[0]);
}

static acf_status unsqueeze_backward(acf_tape *t, acf_node *n) {
    acf_real *dy = acf_grad(t, n->in[0]);
    return dy ? move(t->dev, dy, n->out[0]->grad, false, true, n->out[0]) : acf_tape_status(t);
}

ACF_CUDA_OP(squeeze, squeeze_forward, squeeze_backward);
ACF_CUDA_OP(unsqueeze, unsqueeze_forward, unsqueeze_backward);
