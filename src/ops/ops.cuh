/* The include of every CUDA implementation of an operation: the tape, the counts of a packed tensor, and the macro that
 * registers the kernels. docs/cuda.md shows how to write one. */
#ifndef ACF_OPS_OPS_CUH
#define ACF_OPS_OPS_CUH

#include "device/cuda.cuh"

extern "C" {
#include "ops/ops.h"
}

/* At the end of a .cu file: the kernels of the operation `name` of ops_list.h. backward NULL: it has no derivative.
 * ops.cu finds it by this name; there is no other list to edit. */
#define ACF_CUDA_OP(name, forward, backward)                                                                           \
    extern "C" const acf_kernel acf_cuda_op_##name;                                                                    \
    const acf_kernel acf_cuda_op_##name = {forward, backward}

/* The number of rows of x, in device memory. NULL where acf_tensor_rows gives it; else the true number of packed
 * elements, of which acf_tensor_rows is the capacity. */
static inline const int32_t *acf_cuda_rows(const acf_tensor *x) { return x->sub ? x->sub->first + x->sub->D : NULL; }

/* The same on the device. */
static __device__ inline int64_t acf_true_rows(const int32_t *rows, int64_t capacity) {
    return rows ? *rows : capacity;
}

/* Runs work beside the main stream in a CUDA graph. For work whose results this backward does not need, such as
 * gradients of weights. Work enqueued between acf_cuda_aside(t, true) and (t, false) runs on a second stream, after all
 * work enqueued before it and parallel to later work. The end of the backward waits for it. Only where the step's
 * memory is permanent (acf_tape.lasting); elsewhere this does nothing. */
static inline acf_status acf_cuda_aside(const acf_tape *t, bool on) {
    return t->lasting ? acf_cuda_turn(t->dev, on) : ACF_OK;
}

/* The operation before n that made x. NULL: none, so this backward does not need x's gradient. */
static inline const acf_op *acf_made_by(const acf_node *n, const acf_tensor *x) {
    for (const acf_node *p = n->before; p; p = p->before)
        for (int k = 0; k < p->n_out; k++)
            if (p->out[k]->data == x->data) return p->op; /* a view has the same numbers */
    return NULL;
}

#endif
