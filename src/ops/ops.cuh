/* What the CUDA twin of an operation includes: the tape, what a packed tensor's counts are, and the line that registers it. How to write
 * one is in docs/cuda.md. */
#ifndef ACF_OPS_OPS_CUH
#define ACF_OPS_OPS_CUH

#include "device/cuda.cuh"

extern "C" {
#include "ops/ops.h"
}

/* At the end of a .cu file: the kernels of the operation `name` of ops_list.h. backward NULL: it has no derivative. ops.cu finds it by this
 * name; there is no other list to edit. */
#define ACF_CUDA_OP(name, forward, backward)                                                                           \
    extern "C" const acf_kernel acf_cuda_op_##name;                                                                    \
    const acf_kernel acf_cuda_op_##name = {forward, backward}

/* How many rows of x there are, in device memory: NULL where acf_tensor_rows says it, else the true number of packed elements, of which
 * acf_tensor_rows is the capacity. */
static inline const int32_t *acf_cuda_rows(const acf_tensor *x) { return x->sub ? x->sub->first + x->sub->D : NULL; }

/* The same on the device. */
static __device__ inline int64_t acf_true_rows(const int32_t *rows, int64_t capacity) {
    return rows ? *rows : capacity;
}

/* In a captured step, work that nothing of this backward waits for (gradients of weights) may go its own way: what is enqueued between
 * acf_cuda_aside(t, true) and (t, false) runs on a second stream, behind all that was enqueued before and beside what comes after. The end of the
 * backward waits for it. Only where the step's memory lasts (acf_tape.lasting); elsewhere this does nothing. */
static inline acf_status acf_cuda_aside(const acf_tape *t, bool on) {
    return t->lasting ? acf_cuda_turn(t->dev, on) : ACF_OK;
}

/* The operation before n that made x; NULL: none did, so that nothing of this backward waits for x's gradient. */
static inline const acf_op *acf_made_by(const acf_node *n, const acf_tensor *x) {
    for (const acf_node *p = n->before; p; p = p->before)
        for (int k = 0; k < p->n_out; k++)
            if (p->out[k]->data == x->data) return p->op; /* a view has the same numbers */
    return NULL;
}

#endif
