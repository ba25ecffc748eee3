/* Matrix products in bf16 with float sums, for CPUs with AVX512-BF16. An instruction does twice the arithmetic of
 * float.
 *
 * bf16 is a float with 8 bits of mantissa instead of 24 and the same range. Both factors are rounded to bf16 (to
 * nearest even); products, sums and c are float. The error of an element is about 2^-9 times the root of the sum of
 * squared products, as if the inputs had noise in their third digit. Training tolerates that. Reported likelihoods
 * are not computed in bf16 (train/trainer.h). */
#ifndef ACF_DEVICE_BF16_H
#define ACF_DEVICE_BF16_H

#include "base/real.h"

/* True if this CPU has the instructions. */
bool acf_bf16_available(void);

/* c (M,N) = op(a) (M,K) · op(b) (K,N) + beta · c, with the meaning of acf_gemm (device.h) and alpha 1; in float also
 * where acf_real is double. */
typedef struct acf_bf16_product {
    bool ta, tb;
    int64_t M, N, K;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float beta;
    float *c;
    int64_t ldc;
} acf_bf16_product;

/* One product on the calling thread. Needs acf_bf16_available and M, N, K > 0. The bits of an element depend only on
 * its row of a and its column of b, not on how the matrices are divided. Uses 190 KB of stack. */
void acf_bf16_gemm(const acf_bf16_product *g);

#endif
