/* Factor analysis for wide tables: transforms a row's modelled values to standard normal by the conditionals of one
 * low-rank Gaussian.
 *
 *     x = μ + Λ f + e,      f ~ N(0, diag(weight)),  e ~ N(0, diag(var))          R factors f, W columns
 *
 * is a Gaussian with covariance Λ diag(weight) Λᵀ + diag(var), fitted by EM (train/factor_fit.h), not by gradient. A
 * row's columns are processed one after the other, given ones first, then the modelled ones in their order. Each
 * updates the posterior of f (Kalman filter). This gives every conditional along the order at a cost of 2 R²
 * multiply-adds a column; the factors of a full covariance (ops/mog.h) take W²/6 a column. For the modelled ones
 *
 *     z_p = (x_p - m_p) / s_p,      log|det| = -Σ log s_p        x_p | x_o, x_before ~ N(m_p, s_p²)
 *
 * Formulas: docs/math.md. Known categories have columns too, as indicators of their classes. Everything is in
 * double. */
#ifndef ACF_OPS_FACTORS_H
#define ACF_OPS_FACTORS_H

#include "ops/mog.h"

/* Largest R: a row's R² doubles stay in a core's cache, or in a multiprocessor's shared memory. */
#define ACF_FACTORS_MOST 64

/* The Gaussian and the rows to condition on; x, b and classes as in acf_mog, W = D + classes.n. */
typedef struct acf_factors {
    acf_tensor *weight; /* (R) variances of the factors; <= 0: an unused factor */
    acf_tensor *mean;   /* (W) */
    acf_tensor *load;   /* (W,R) */
    acf_tensor *var;    /* (W) residual variances, > 0 */
    acf_tensor *x;      /* (N,D) */
    const uint8_t *b;
    acf_mog_classes classes;
} acf_factors;

/* z (T), and *logdet (N). No derivative: x is data, and the Gaussian is not learned by gradient. ACF_ENUMERIC, with
 * the lowest such row: a column's variance given those before it is not positive. */
acf_tensor *acf_factors_normal(acf_tape *t, const acf_factors *g, const acf_subset *u, acf_tensor **logdet);

/* x (T) from z (T): the inverse, differentiable in z. Fails as above. */
acf_tensor *acf_factors_value(acf_tape *t, const acf_factors *g, acf_tensor *z, const acf_subset *u);

/* The same for n sets z[i] (T) of the same rows, in place: given columns are processed once for all. No derivative. */
void acf_factors_values(acf_tape *t, const acf_factors *g, int n, acf_tensor **z, const acf_subset *u);

/* (N,W): the conditional mean of every column, and the values of the given ones: the reals, then the indicators. 0
 * in rows without columns in u. No derivative. Fails as above. */
acf_tensor *acf_factors_expect(acf_tape *t, const acf_factors *g, const acf_subset *u);

/* The arguments of the kernels; the arrays of acf_factors. */
typedef struct acf_factors_in {
    int64_t R, D, W;
    const acf_real *weight, *mean, *load, *var, *x;
    const uint8_t *b;
    acf_mog_classes classes;
} acf_factors_in;

/* Doubles of scratch a thread. */
#define ACF_FACTORS_SCRATCH(R) (2 * (R) * (R) + 5 * (R))

/* bad (N) = the position among the row's given and modelled columns whose variance is not positive, or -1. */
void acf_factors_normal_fwd_cpu(const acf_device *dev, acf_real *z, acf_real *logdet, int32_t *bad,
                                const acf_factors_in *in, const acf_subset *u, double *scratch);
/* x (sets,T) from z (sets,T). */
void acf_factors_value_fwd_cpu(const acf_device *dev, acf_real *x, int32_t *bad, const acf_factors_in *in,
                               const acf_real *z, int64_t sets, const acf_subset *u, double *scratch);
void acf_factors_expect_cpu(const acf_device *dev, acf_real *out, int32_t *bad, const acf_factors_in *in,
                            const acf_subset *u, double *scratch);
/* dz += Jᵀ dx, J = dx/dz. */
void acf_factors_value_bwd_cpu(const acf_device *dev, acf_real *dz, const acf_real *dx, const acf_factors_in *in,
                               const acf_subset *u, double *scratch);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Inputs of all nodes: weight, mean, load, var, x, and z for the inverse. Attributes: acf_mog_attrs. */
enum { ACF_FACTORS_WEIGHT, ACF_FACTORS_MEAN, ACF_FACTORS_LOAD, ACF_FACTORS_VAR, ACF_FACTORS_X, ACF_FACTORS_Z };

#endif
