/* Two loops over doubles that fits and solves share. */
#ifndef ACF_BASE_VECTOR_H
#define ACF_BASE_VECTOR_H

#include <stdint.h>

static inline double acf_inner(const double *a, const double *b, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* y (n) += by · x (n). */
static inline void acf_add_scaled(double *y, double by, const double *x, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += by * x[i];
}

#endif
