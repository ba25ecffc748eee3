/* Shared by the GPU code of the Gaussian mixture and of the factor analysis (mog.cu, factors.cu): the arrays of a
 * subset by which a warp reads and writes a row. */
#ifndef ACF_OPS_PACKING_CUH
#define ACF_OPS_PACKING_CUH

#include "ops/classes.cuh"

#define WARP 32

/* Element t of the row of rank k is at first[t] + k. */
typedef struct packing {
    const int32_t *row, *size, *first, *cols;
    int64_t N, D, T;
} packing;

static inline packing packing_of(const acf_subset *u) { return {u->row, u->size, u->first, u->cols, u->N, u->D, u->T}; }

/* x (sets,T) behind the last element = 0. */
static __device__ inline void zero_tail(acf_real *x, const packing &u, int64_t sets) {
    const int64_t from = u.first[u.D], n = u.T - from;
    for (int64_t i = acf_thread(); i < n * sets; i += (int64_t)gridDim.x * WARP) x[i / n * u.T + from + i % n] = 0;
}

#endif
