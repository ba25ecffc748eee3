/* The head of a PixelCNN: for every channel of a pixel a mixture of K Gaussians, whose means depend on the channels
 * before it.
 *
 *     p (N,H,W,A) = for each channel c: [logits | means | log-scales], K each;
 *                   then for each c and each j < c: K slopes a
 *     A           = C·3K + C(C-1)/2·K
 *     mean of c   = means_c,k + Σ_{j<c} tanh(a_cj,k) z_j
 *
 * So p(z) of a pixel is the product over channels of p(z_c | z_0..z_{c-1}), exact for any of them observed. */
#ifndef ACF_OPS_CHAIN_MEANS_H
#define ACF_OPS_CHAIN_MEANS_H

#include "device/cpu.h"
#include "ops/ops.h"

/* A of C channels and K components. */
static inline int64_t acf_chain_width(int64_t C, int64_t K) { return C * 3 * K + C * (C - 1) / 2 * K; }

/* (N·H·W·C, 3K): the input of ops/mixture.h, from p and z (N,H,W,C). */
acf_tensor *acf_chain_means(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K);

/* y (P·C,3K) from p (P,A), z (P,C). */
void acf_chain_means_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *p, const acf_real *z, int64_t P,
                             int64_t C, int64_t K);
/* Adds to dp, dz; NULL = not needed. */
void acf_chain_means_bwd_cpu(const acf_device *dev, acf_real *dp, acf_real *dz, const acf_real *dy, const acf_real *p,
                             const acf_real *z, int64_t P, int64_t C, int64_t K);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_chain_means_attrs {
    int64_t K;
} acf_chain_means_attrs;

#endif
