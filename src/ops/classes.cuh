/* What the CUDA kernels of the operations on categories share: see categorical.h. */
#ifndef ACF_OPS_CLASSES_CUH
#define ACF_OPS_CLASSES_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/categorical.h"
}

/* (2,D) in device memory: first, then count. The caller's array if it has one there, else a copy on the tape, which
 * a captured step cannot make. NULL after a failure. */
static inline const int32_t *acf_cuda_classes(acf_tape *t, const acf_classes *c) {
    if (c->there) return c->there;
    int32_t *copy = acf_tape_ints(t, 2 * c->D);
    const size_t bytes = (size_t)c->D * sizeof *copy;
    if (!copy) return NULL;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    cudaError_t error = cudaMemcpyAsync(copy, c->first, bytes, cudaMemcpyHostToDevice, stream);
    if (!error) error = cudaMemcpyAsync(copy + c->D, c->count, bytes, cudaMemcpyHostToDevice, stream);
    if (!error) return copy;
    acf_cuda_status(error, "classes");
    acf_tape_fail(t, NULL);
    return NULL;
}

/* acf_real_from (base/real.h) on the device. */
static __device__ inline acf_real acf_real_from_cuda(double x) {
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (acf_real)x;
}

#endif
