/* Parts of images on the GPU: see window.h. Small copies; one thread per number. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/window.h"
}

/* y (N,height,width,C) of x (N,H,W,C). */
static __global__ void cut(acf_real *__restrict__ y, const acf_real *__restrict__ x, acf_region r, int64_t n, int64_t H,
                           int64_t W, int64_t C) {
    ACF_EACH(i, n) {
        const acf_cell pixel = acf_cell_of(i, C), line = acf_cell_of(pixel.row, r.width),
                       image = acf_cell_of(line.row, r.height);
        const int64_t h = r.top + image.column, w = r.left + line.column;
        y[i] = h >= 0 && h < H && w >= 0 && w < W ? x[((image.row * H + h) * W + w) * C + pixel.column] : 0;
    }
}

static acf_status window_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0], *y = n->out[0];
    const int64_t count = acf_tensor_count(y);
    cut<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, x->data, *(const acf_region *)n->attr, count, x->dim[1], x->dim[2], x->dim[3]);
    return ACF_LAUNCHED("window");
}

ACF_CUDA_OP(window, window_forward, NULL);

/* y (N,h,w,C) to its position in a.x (N,H,W,C). */
static __global__ void put(const acf_real *__restrict__ y, acf_paste_attrs a, int64_t n, int64_t h, int64_t w,
                           int64_t C) {
    ACF_EACH(i, n) {
        const acf_cell pixel = acf_cell_of(i, C), line = acf_cell_of(pixel.row, w), image = acf_cell_of(line.row, h);
        a.x[((image.row * a.H + a.top + image.column) * a.W + a.left + line.column) * C + pixel.column] = y[i];
    }
}

static acf_status paste_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->in[0];
    const int64_t count = acf_tensor_count(y);
    put<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(y->data, *(const acf_paste_attrs *)n->attr,
                                                                             count, y->dim[1], y->dim[2], y->dim[3]);
    return ACF_LAUNCHED("paste");
}

ACF_CUDA_OP(paste, paste_forward, NULL);
