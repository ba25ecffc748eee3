/* Joining and slicing along the last axis on the GPU: see concat.h. One launch for each input. A block's threads run
 * along the wider rows in order, so that their writes are contiguous. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/concat.h"
}

/* Element m of (M,width) and its counterpart in columns [from, from + width) of (M,C). */
static __global__ void put_columns(acf_real *__restrict__ wide, const acf_real *__restrict__ narrow, int64_t from,
                                   int64_t width, int64_t M, int64_t C) {
    ACF_EACH(i, M * width) {
        acf_cell at = acf_cell_of(i, width);
        wide[at.row * C + from + at.column] = narrow[i];
    }
}

static __global__ void add_columns(acf_real *__restrict__ wide, const acf_real *__restrict__ narrow, int64_t from,
                                   int64_t width, int64_t M, int64_t C) {
    ACF_EACH(i, M * width) {
        acf_cell at = acf_cell_of(i, width);
        wide[at.row * C + from + at.column] += narrow[i];
    }
}

static __global__ void take_columns(acf_real *__restrict__ narrow, const acf_real *__restrict__ wide, int64_t from,
                                    int64_t width, int64_t M, int64_t C, bool add) {
    ACF_EACH(i, M * width) {
        acf_cell at = acf_cell_of(i, width);
        narrow[i] = (add ? narrow[i] : 0) + wide[at.row * C + from + at.column];
    }
}

static acf_status concat_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    cudaStream_t stream = acf_cuda_stream(t->dev);
    for (int64_t k = 0, from = 0; k < n->n_in; k++) {
        const int64_t width = acf_tensor_last(n->in[k]);
        put_columns<<<acf_each_blocks(acf_tensor_lines(y) * width), ACF_THREADS, 0, stream>>>(
            y->data, n->in[k]->data, from, width, acf_tensor_lines(y), acf_tensor_last(y));
        from += width;
    }
    return ACF_LAUNCHED("concat");
}

static acf_status concat_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    cudaStream_t stream = acf_cuda_stream(t->dev);
    for (int64_t k = 0, from = 0; k < n->n_in; k++) {
        const int64_t width = acf_tensor_last(n->in[k]);
        acf_real *dx = acf_grad(t, n->in[k]);
        if (dx)
            take_columns<<<acf_each_blocks(acf_tensor_lines(y) * width), ACF_THREADS, 0, stream>>>(
                dx, y->grad, from, width, acf_tensor_lines(y), acf_tensor_last(y), true);
        from += width;
    }
    ACF_TRY(acf_tape_status(t));
    return ACF_LAUNCHED("concat");
}

ACF_CUDA_OP(concat, concat_forward, concat_backward);

static acf_status slice_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    take_columns<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[0]->data, ((const acf_slice_attrs *)n->attr)->from, acf_tensor_last(y), acf_tensor_lines(y),
        acf_tensor_last(n->in[0]), false);
    return ACF_LAUNCHED("slice");
}

static acf_status slice_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    add_columns<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, y->grad, ((const acf_slice_attrs *)n->attr)->from, acf_tensor_last(y), acf_tensor_lines(y),
        acf_tensor_last(n->in[0]));
    return ACF_LAUNCHED("slice");
}

ACF_CUDA_OP(slice, slice_forward, slice_backward);
