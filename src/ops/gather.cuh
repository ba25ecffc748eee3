/* Moving rows on the GPU, for the operations that share the kernels: see gather.h. */
#ifndef ACF_OPS_GATHER_CUH
#define ACF_OPS_GATHER_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/gather.h"
}

/* y (n,C): row p = row index[p] of x (R,C), or fill where it is -1. With op, its name, index[p] is checked; NULL:
 * indices are valid. */
acf_status acf_cuda_gather(acf_device *dev, acf_real *y, const acf_real *x, const int32_t *index, acf_real fill,
                           int64_t n, int64_t R, int64_t C, const char *op);
/* dx (R,C): row index[p] += row p of dy (n,C). Indices may repeat: each row's terms are added in a fixed order. */
acf_status acf_cuda_gather_back(acf_tape *t, acf_real *dx, const acf_real *dy, const int32_t *index, int64_t n,
                                int64_t R, int64_t C);

/* out (R,C): row r += the sum of the rows of x (.,C) in list r, in a fixed order. With first (R+1), list r is
 * list[first[r]..first[r+1]) of list (n). With first NULL, it is list[r], list[R + r], ... (n/R of them), where -1
 * is skipped. */
acf_status acf_cuda_list_sums(acf_device *dev, acf_real *out, const acf_real *x, const int32_t *list,
                              const int32_t *first, int64_t n, int64_t R, int64_t C);

#endif
