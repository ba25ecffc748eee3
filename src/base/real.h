/* The number type of the engine. The library is float; the same sources compile with -DACF_DOUBLE for the gradient
 * checks, because in float finite differences cannot tell a defect from noise. */
#ifndef ACF_BASE_REAL_H
#define ACF_BASE_REAL_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef ACF_DOUBLE
typedef double acf_real;
typedef uint64_t acf_bits; /* as wide as acf_real */
#define ACF_REAL_NAME "double"
#define ACF_REAL_EPS DBL_EPSILON
#define ACF_REAL_MAX DBL_MAX
#define ACF_REAL_MIN DBL_MIN
#else
typedef float acf_real;
typedef uint32_t acf_bits;
#define ACF_REAL_NAME "float"
#define ACF_REAL_EPS FLT_EPSILON
#define ACF_REAL_MAX FLT_MAX
#define ACF_REAL_MIN FLT_MIN
#endif

#define ACF_R(x) ((acf_real)(x))

/* A small function that the kernels of both devices call. */
#ifdef __CUDACC__
#define ACF_BOTH static __host__ __device__ inline
#else
#define ACF_BOTH static inline
#endif

ACF_BOTH int64_t acf_min(int64_t a, int64_t b) { return a < b ? a : b; }
ACF_BOTH int64_t acf_max(int64_t a, int64_t b) { return a > b ? a : b; }
ACF_BOTH int64_t acf_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Rounds a double to the nearest acf_real; beyond its range to the largest finite one, so that a log-density of -1e60
 * stays comparable and its gradient usable. NaN stays NaN. */
ACF_BOTH acf_real acf_real_from(double x) {
    if (x > (double)ACF_REAL_MAX) return ACF_REAL_MAX;
    if (x < -(double)ACF_REAL_MAX) return -ACF_REAL_MAX;
    return (acf_real)x;
}

#endif
