/* Sums on the GPU that several operations share: see reduce.h. */
#ifndef ACF_OPS_REDUCE_CUH
#define ACF_OPS_REDUCE_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/reduce.h"
}

/* y (N) = the sum over each row's elements of a (T), or with b of (a - b)^2; 0 for a row without elements. In
 * double. */
acf_status acf_cuda_sum_subset(acf_device *dev, acf_real *y, const acf_real *a, const acf_real *b, const acf_subset *u);

#endif
