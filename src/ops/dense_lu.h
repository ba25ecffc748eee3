/* Pivoted LU of one small dense matrix, on the calling thread. lu.c uses it for every row of a batch, lowrank.c for
 * its inner matrices.
 *
 * Row k picks the largest of its remaining elements as pivot, and its COLUMN is swapped to column k. This is the
 * textbook's row pivoting applied to the transpose and equally stable. In row-major storage the search, the division
 * and the updates then all run along contiguous rows:
 *
 *     M P = L U      L lower with the pivots on its diagonal, U upper with ones on its diagonal,
 *                    both packed in f (n,n); column k of the factors is column order[k] of M
 *
 * Sizes: typically 1 to 64, sometimes hundreds. */
#ifndef ACF_OPS_DENSE_LU_H
#define ACF_OPS_DENSE_LU_H

#include "base/real.h"

/* One vector of the widest kind expected, as a type; compilers split it for narrower registers. Kernels whose speed
 * depends on accumulators in registers use it; all others use ACF_SIMD loops. */
typedef acf_real acf_lanes __attribute__((vector_size(64), may_alias));
#define ACF_LANES ((int64_t)(sizeof(acf_lanes) / sizeof(acf_real)))

/* n rounded up to whole vectors. */
static inline int64_t acf_pad(int64_t n) { return acf_ceil_div(n, ACF_LANES) * ACF_LANES; }

/* Factors m (n,n) into f (n,n) and order (n); f may be m. Never fails: a singular matrix leaves a pivot that
 * acf_dense_singular detects, and the remaining factors are then undefined. */
void acf_dense_lu(acf_real *f, int32_t *order, const acf_real *m, int64_t n);

/* Largest magnitude of n elements, ignoring NaN. */
acf_real acf_dense_largest(const acf_real *m, int64_t n);

/* The first of n pivots, with the given stride, that is not finite or not above n · epsilon · largest; -1 if all are
 * valid. */
int64_t acf_dense_singular(const acf_real *pivot, int64_t stride, int64_t n, acf_real largest);

/* Sum of log|pivot| over n pivots, with the given stride. */
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
