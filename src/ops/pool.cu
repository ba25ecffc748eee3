/* Pooling of 2x2 pixels on the GPU: see pool.h. One thread per result. Windows do not overlap, so neither do their
 * gradients. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/pool.h"
}

/* The numbers of one window and channel: their positions and their count. */
typedef struct window {
    int64_t at[4];
    int n;
} window;

/* The window of number i of y (N,⌈H/2⌉,⌈W/2⌉,C), in x (N,H,W,C). */
static __device__ inline window window_of(int64_t i, int64_t H, int64_t W, int64_t C) {
    const int64_t Ho = (H + 1) / 2, Wo = (W + 1) / 2;
    const acf_cell pixel = acf_cell_of(i, C), line = acf_cell_of(pixel.row, Wo), image = acf_cell_of(line.row, Ho);
    window w = {{0, 0, 0, 0}, 0};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int64_t h = 2 * image.column + k / 2, v = 2 * line.column + k % 2;
        if (h < H && v < W) w.at[w.n++] = ((image.row * H + h) * W + v) * C + pixel.column;
    }
    return w;
}

static __global__ void pool_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x, acf_pool_kind kind, int64_t n,
                                int64_t H, int64_t W, int64_t C) {
    ACF_EACH(i, n) {
        const window w = window_of(i, H, W, C);
        acf_real best = x[w.at[0]];
        for (int k = 1; k < w.n; k++) {
            const acf_real next = x[w.at[k]];
            best = kind == ACF_POOL_MEAN ? best + next
                   : !(best >= next)     ? (best != best ? best : next)
                                         : best; /* a NaN stays one */
        }
        y[i] = kind == ACF_POOL_MEAN ? best * (1 / (acf_real)w.n) : best;
    }
}

static __global__ void pool_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                const acf_real *__restrict__ x, acf_pool_kind kind, int64_t n, int64_t H, int64_t W,
                                int64_t C) {
    ACF_EACH(i, n) {
        const window w = window_of(i, H, W, C);
        int64_t best = w.at[0];
        for (int k = 0; k < w.n; k++) {
            if (kind == ACF_POOL_MEAN)
                dx[w.at[k]] += dy[i] * (1 / (acf_real)w.n);
            else if (x[w.at[k]] > x[best])
                best = w.at[k];
        }
        if (kind == ACF_POOL_MAX) dx[best] += dy[i];
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0], *y = n->out[0];
    const int64_t count = acf_tensor_count(y);
    pool_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, x->data, ((const acf_pool_attrs *)n->attr)->kind, count, x->dim[1], x->dim[2], x->dim[3]);
    return ACF_LAUNCHED("pool");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *y = n->out[0];
    const int64_t count = acf_tensor_count(y);
    acf_real *dx = acf_grad(t, x);
    if (!dx) return acf_tape_status(t);
    pool_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, y->grad, x->data, ((const acf_pool_attrs *)n->attr)->kind, count, x->dim[1], x->dim[2], x->dim[3]);
    return ACF_LAUNCHED("pool");
}

ACF_CUDA_OP(pool, forward, backward);
