/* Pivoted LU of one small dense matrix, on the calling thread: what lu.c does for every row of a batch and lowrank.c for
 * its inner matrices.
 *
 * Row k picks the largest of its remaining elements as pivot and its COLUMN is swapped to place k. Compared with the
 * textbook's row pivoting this is LU of the transpose, equally stable, but row-major the search, the division
 * and the updates all run along contiguous rows:
 *
 *     M P = L U      L lower with the pivots on its diagonal, U upper with ones on its diagonal,
 *                    both packed in f (n,n); place k of the factors is column order[k] of M
 *
 * Sizes: 1 to 64 typically, sometimes hundreds. */
#ifndef ACF_OPS_DENSE_LU_H
#define ACF_OPS_DENSE_LU_H

#include "base/real.h"

/* One vector of the widest kind we expect, as a type: compilers split it where registers are narrower. Kernels whose
 * speed depends on accumulators staying in registers use it; everything else is left to ACF_SIMD loops. */
typedef acf_real acf_lanes __attribute__((vector_size(64), may_alias));
#define ACF_LANES ((int64_t)(sizeof(acf_lanes) / sizeof(acf_real)))

/* n rounded up to whole vectors. */
static inline int64_t acf_pad(int64_t n) { return acf_ceil_div(n, ACF_LANES) * ACF_LANES; }

/* Factors m (n,n) into f (n,n) and order (n); f may be m. Never fails: a singular matrix leaves a pivot that
 * acf_dense_singular finds, and what follows it is meaningless. */
void acf_dense_lu(acf_real *f, int32_t *order, const acf_real *m, int64_t n);

/* Largest magnitude of n elements; NaN is passed over. */
acf_real acf_dense_largest(const acf_real *m, int64_t n);

/* The first of n pivots, `stride` apart, that is not finite or not above n · epsilon · largest; -1 when all are sound. */
int64_t acf_dense_singular(const acf_real *pivot, int64_t stride, int64_t n, acf_real largest);

/* Sum of log|pivot| over n pivots, `stride` apart. */
double acf_dense_logabs(const acf_real *pivot, int64_t stride, int64_t n);

/* x (n) = M⁻¹ z; z (n) is overwritten. */
void acf_dense_solve(acf_real *x, acf_real *z, const acf_real *f, const int32_t *order, int64_t n);

/* v (n) = M⁻ᵀ g (n). */
void acf_dense_solve_t(acf_real *v, const acf_real *g, const acf_real *f, const int32_t *order, int64_t n);

/* d (n,n) += g · M⁻ᵀ. scratch: n · ACF_DENSE_BLOCK elements, aligned to 64 bytes. */
#define ACF_DENSE_BLOCK (2 * ACF_LANES)
void acf_dense_inverse_t(acf_real *d, acf_real g, const acf_real *f, const int32_t *order, int64_t n,
                         acf_real *scratch);

#endif
