/* Pivoted LU of one dense matrix by a group of threads. See dense_lu.h for the factors, rowmat.cuh for groups. */
#ifndef ACF_OPS_DENSE_LU_CUH
#define ACF_OPS_DENSE_LU_CUH

#include "ops/rowmat.cuh"

/* Factors w (n,ld) in place; order (n) is filled. As on the CPU: row k picks the largest of its remaining elements,
 * whose column is swapped to column k. The caller must sync after the group's writes to w; the function ends with a
 * sync. */
template <int G> static __device__ inline void acf_group_lu(acf_real *w, int ld, int32_t *order, int n) {
    const int lane = acf_lane<G>(), warp = lane / 32, W = G / 32;
    for (int j = lane; j < n; j += G) order[j] = j;
    acf_group_sync<G>();
    for (int k = 0; k < n; k++) {
        unsigned best = 0, at = (unsigned)k; /* of |x| + 1 as bits, which sort like the numbers; NaN never wins */
        for (int j = k + lane; j < n; j += G) {
            const acf_real x = fabsf(w[k * ld + j]);
            const unsigned bits = isnan(x) ? 0 : __float_as_uint(x) + 1;
            if (bits > best) best = bits, at = (unsigned)j;
        }
        const unsigned top = acf_group_max<G>(best);
        const int pivot = (int)acf_group_min<G>(best == top ? at : ~0u);
        if (pivot != k) {
            for (int i = lane; i < n; i += G) {
                const acf_real x = w[i * ld + k];
                w[i * ld + k] = w[i * ld + pivot];
                w[i * ld + pivot] = x;
            }
            if (lane == 0) {
                const int32_t column = order[k];
                order[k] = order[pivot];
                order[pivot] = column;
            }
            acf_group_sync<G>();
        }
        const acf_real p = w[k * ld + k];
        for (int j = k + 1 + lane; j < n; j += G) w[k * ld + j] /= p;
        acf_group_sync<G>();
        for (int j = k + 1 + lane % 32; j < n; j += 32) {
            const acf_real u = w[k * ld + j];
            for (int i0 = k + 1 + warp; i0 < n; i0 += ACF_ROWS_AT_ONCE * W) {
                acf_real v[ACF_ROWS_AT_ONCE];
#pragma unroll
                for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                    if (i0 + q * W < n) v[q] = w[(i0 + q * W) * ld + j] - w[(i0 + q * W) * ld + k] * u;
#pragma unroll
                for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                    if (i0 + q * W < n) w[(i0 + q * W) * ld + j] = v[q];
            }
        }
        acf_group_sync<G>();
    }
}

/* Largest magnitude of m (n,ld), ignoring NaN; in every thread. */
template <int G> static __device__ inline acf_real acf_group_largest(const acf_real *m, int ld, int n) {
    acf_real top = 0;
    for (int i = acf_lane<G>() / 32; i < n; i += G / 32)
        for (int j = acf_lane<G>() % 32; j < n; j += 32) top = fmaxf(top, fabsf(m[i * ld + j]));
    return __uint_as_float(acf_group_max<G>(__float_as_uint(top)));
}

/* True if the pivot is too small to divide by, relative to the largest of n. */
static __device__ inline bool acf_is_singular(acf_real pivot, int n, acf_real largest) {
    return !isfinite(pivot) || fabsf(pivot) <= (acf_real)n * FLT_EPSILON * largest;
}

/* The first of n pivots, with the given stride, that is singular; -1 if all are valid. In every thread. */
template <int G>
static __device__ inline int acf_group_singular(const acf_real *pivot, int stride, int n, acf_real largest) {
    unsigned first = ~0u;
    for (int k = acf_lane<G>(); k < n; k += G)
        if (acf_is_singular(pivot[k * stride], n, largest)) first = min(first, (unsigned)k);
    return (int)acf_group_min<G>(first);
}

/* Sum of log|pivot| over n pivots, with the given stride, in double; for a warp, in every thread. Exactly 0 for the
 * identity, the initial value in training. */
static __device__ inline double acf_normal_scores_logabs(const acf_real *pivot, int stride, int n) {
    double sum = 0;
    for (int k = acf_lane<32>(); k < n; k += 32) sum += log(fabs((double)pivot[k * stride]));
    return acf_warp_sum(sum);
}

/* Solves a triangular system in place: y (n), shared by the group. Element (j,t) of the triangle is w[j·row +
 * t·column]; exchanged strides (1 and ld) read the transpose. FORWARD: lower triangle, forward substitution; else
 * upper, backward. UNIT: ones on the diagonal. Syncs first and last. */
template <int G, bool FORWARD, bool UNIT>
static __device__ inline void acf_triangle_solve(acf_real *y, const acf_real *w, int row, int column, int n) {
    acf_group_sync<G>();
    for (int step = 0; step < n; step++) {
        const int t = FORWARD ? step : n - 1 - step;
        acf_real a = y[t];
        if (!UNIT) a /= w[t * (row + column)];
        for (int j = (FORWARD ? t + 1 : 0) + acf_lane<G>(); j < (FORWARD ? n : t); j += G)
            y[j] -= w[j * row + t * column] * a;
        acf_group_sync<G>(); /* all have read y[t], and no later step does */
        if (!UNIT && acf_lane<G>() == 0) y[t] = a;
    }
    acf_group_sync<G>();
}

/* x (n,lx): column c of (M P)⁻ᵀ, that is Uᵀ Lᵀ x = unit vector c, by the thread that owns the column: lane c, c + G
 * ... No syncs. U⁻ᵀ is lower triangular, so the first substitution starts with the first column of the warp. */
template <int G>
static __device__ inline void acf_group_inverse_t(acf_real *x, int lx, const acf_real *f, int ld, int n) {
    for (int c = acf_lane<G>(); c < n; c += G) {
        const int c0 = c & ~31;
        for (int j = c0; j < n; j++) x[j * lx + c] = (j == c) - acf_strided_dot(f + j, ld, x + c, lx, c0, j);
        for (int k = n - 1; k >= 0; k--) {
            const acf_real y = k < c0 ? 0 : x[k * lx + c];
            x[k * lx + c] = (y - acf_strided_dot(f + k, ld, x + c, lx, k + 1, n)) / f[k * (ld + 1)];
        }
    }
}

#endif
