/* Products around a recurrence on the GPU, for the operations that have one: gru.cu and rnn_loop.cu.
 *
 * Gates (T,4H) are in the order | n | r | z | b_n | of gru_kernels.h, weights in the order r, z, n of gru.h. With
 * `half`, gates, states and inputs are bf16 and are multiplied by bf16 weights. Otherwise all are float, and the
 * device's precision applies to products. */
#ifndef ACF_OPS_GRU_CUH
#define ACF_OPS_GRU_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/gru.h"
}
#include "ops/gru_kernels.h"

/* Sizes of one layer's products. */
typedef struct acf_gru_sizes {
    bool half;
    int64_t T, H, I;
} acf_gru_sizes;

static inline int64_t acf_number_bytes(bool half) { return half ? 2 : 4; }
/* Element n of an array of these numbers. */
static inline acf_real *acf_number(const void *p, int64_t n, bool half) {
    return (acf_real *)((char *)p + n * acf_number_bytes(half));
}

/* n numbers from the tape's arena, as acf_tape_reals. */
static inline void *acf_tape_numbers(acf_tape *t, int64_t n, bool half) {
    return acf_tape_reals(t, half ? acf_ceil_div(n, 2) : n);
}

/* Leading dimension of rows of C numbers: bf16 rows are padded to multiples of 16 bytes, so that products can read
 * them fast. */
static inline int64_t acf_number_ld(int64_t C, bool half) { return half ? acf_ceil_div(C, 8) * 8 : C; }

/* y (M,ld) bf16 = x (M,C), zero padding and zeros after the true rows, ld = acf_number_ld(C, true). */
acf_status acf_cuda_halve(acf_device *dev, void *y, const acf_real *x, const int32_t *rows, int64_t M, int64_t C);
/* y (3H,ld) bf16 = w (3H,C), leading dimension ldw, with rows n, r, z instead of r, z, n. */
acf_status acf_cuda_halve_weights(acf_device *dev, void *y, const acf_real *w, int64_t ldw, int64_t H, int64_t C);

/* gates' columns n, r, z = x (T,I) wxᵀ. wx (3H,I) as float, or as the output of acf_cuda_halve_weights. */
acf_status acf_cuda_gru_project(acf_device *dev, const acf_gru_sizes *s, void *gates, const void *x, const void *wx);
/* dx (T,I) += the gates' gradients through wx; ldw: of a float wx. */
acf_status acf_cuda_gru_dinputs(acf_device *dev, const acf_gru_sizes *s, acf_real *dx, const void *gates,
                                const void *wx, int64_t ldw);
/* dwx (3H,I) += and dwh (3H,H) += from the gates' gradients, x (T,I) and past (T,H); either may be NULL. */
acf_status acf_cuda_gru_weights(acf_device *dev, const acf_gru_sizes *s, acf_real *dwx, acf_real *dwh,
                                const void *gates, const void *x, const void *past);
/* c (M,N) += aᵀ b, a (T,M), b (T,N): any other weight's gradient. */
acf_status acf_cuda_gru_gradient(acf_device *dev, bool half, acf_real *c, int64_t M, int64_t N, int64_t T,
                                 const void *a, int64_t lda, const void *b, int64_t ldb);

#endif
