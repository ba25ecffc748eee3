/* A mixture of K Gaussians per element: log-density, mean, sample, CDF and quantile; formulas in docs/math.md, 8.
 *
 *     p (T,3K) = [ logits | means | log-scales ]     w = softmax(logits),  σ_k = e^(s_k),  s clamped to [lo, hi]
 *
 * 1 <= K <= ACF_MAX_COMPONENTS, -300 <= lo <= hi <= 300; a log-scale outside its bounds has gradient 0. Everything is
 * evaluated in double and rounded once, to the nearest finite number (see gaussian.h), so z = 1e30, logits of ±1e4 and
 * scales of e^-30 give finite values and gradients. A NaN, or an infinite z or mean, gives NaN. */
#ifndef ACF_OPS_MIXTURE_H
#define ACF_OPS_MIXTURE_H

#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

#define ACF_MAX_COMPONENTS 1024

/* (T): log Σ_k w_k N(z; μ_k, σ_k), z (T). */
acf_tensor *acf_mixture_logp(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K, double lo, double hi);

/* (T): Σ_k w_k μ_k. */
acf_tensor *acf_mixture_mean(acf_tape *t, acf_tensor *p, int64_t K);

/* (T): one draw per cell, the component from stream COMPONENT, the noise from stream NORMAL. p is packed, or placed by
 * d->at. Borrows d and its arrays. No derivative. */
acf_tensor *acf_mixture_sample(acf_tape *t, acf_tensor *p, int64_t K, double lo, double hi, const acf_draw *d);

/* (T): P(Z <= z), z (T), infinite z allowed. No derivative. */
acf_tensor *acf_mixture_cdf(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K, double lo, double hi);

/* (T): the smallest number whose CDF reaches q; q (T), or one element for all. Exact to the last bit of acf_real in
 * both tails; about 32 (double: 64) evaluations of the CDF each. q outside (0, 1) makes the tape fail with ACF_EUSAGE,
 * and the message names row and column: the quantiles of 0 and 1 are infinite. No derivative. */
acf_tensor *acf_mixture_quantile(acf_tape *t, acf_tensor *p, acf_tensor *q, int64_t K, double lo, double hi);

/* (T): a number distributed as the mixture when q is uniform on (0, 1). q among the cumulated weights chooses a
 * component; its position within that weight is the level of the component's quantile. Like the quantile it turns
 * evenly spaced q into a stratified sample, but not an ascending one. It costs far less: one softmax and one normal
 * quantile. Conditions on q and failures as for the quantile. */
acf_tensor *acf_mixture_stratum(acf_tape *t, acf_tensor *p, acf_tensor *q, int64_t K, double lo, double hi);

/* logp (T); r (T,K) receives the responsibilities w_k N_k / Σ_j w_j N_j, NULL = not kept. */
void acf_mixture_logp_fwd_cpu(const acf_device *dev, acf_real *logp, acf_real *r, const acf_real *p, const acf_real *z,
                              int64_t T, int64_t K, double lo, double hi);
/* Adds to dp (T,3K) and dz (T); NULL = not needed. */
void acf_mixture_logp_bwd_cpu(const acf_device *dev, acf_real *dp, acf_real *dz, const acf_real *dlogp,
                              const acf_real *r, const acf_real *p, const acf_real *z, int64_t T, int64_t K, double lo,
                              double hi);

void acf_mixture_mean_fwd_cpu(const acf_device *dev, acf_real *mean, const acf_real *p, int64_t T, int64_t K);
/* Adds to dp (T,3K). */
void acf_mixture_mean_bwd_cpu(const acf_device *dev, acf_real *dp, const acf_real *dmean, const acf_real *p, int64_t T,
                              int64_t K);

void acf_mixture_sample_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_draw *d, int64_t T,
                                int64_t K, double lo, double hi);
void acf_mixture_cdf_fwd_cpu(const acf_device *dev, acf_real *cdf, const acf_real *p, const acf_real *z, int64_t T,
                             int64_t K, double lo, double hi);
/* q[i * q_step]: 1 for q (T), 0 for one q; all in (0, 1). */
void acf_mixture_quantile_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_real *q,
                                  int64_t q_step, int64_t T, int64_t K, double lo, double hi);
void acf_mixture_stratum_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_real *q,
                                 int64_t q_step, int64_t T, int64_t K, double lo, double hi);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* Of all these operations. Inputs: p, and z or q (mean and sample have neither). */
typedef struct acf_mixture_attrs {
    int64_t K;
    double lo, hi;
    acf_real *r;   /* (T,K) responsibilities, when a backward may follow; a GPU recomputes them */
    acf_draw draw; /* of a sample: arrays are borrowed; the node runs at once and has no backward */
} acf_mixture_attrs;

#endif
