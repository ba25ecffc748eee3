/* The anchor of wide tables: a row's modelled values made normal by the conditionals of one Gaussian of low rank.
 *
 *     x = μ + Λ f + e,      f ~ N(0, diag(weight)),  e ~ N(0, diag(var))          R factors f, W columns
 *
 * is a Gaussian with covariance Λ diag(weight) Λᵀ + diag(var), fitted by EM (train/factor_fit.h; not learned by gradient). A row's columns
 * are looked at one after the other, given ones first, then the modelled ones in their order, and what is known of f is brought up to date
 * at each (Kalman's filter): every conditional along the order comes out of it, at a cost of 2 R² multiply-adds a column where the
 * factors of a full covariance (ops/mog.h) take W²/6 a column. For the modelled ones
 *
 *     z_p = (x_p - m_p) / s_p,      log|det| = -Σ log s_p        x_p | x_o, x_before ~ N(m_p, s_p²)
 *
 * Formulas: docs/math.md. Known categories are given columns too, as indicators of their classes. Everything is in double. */
#ifndef ACF_OPS_FACTORS_H
#define ACF_OPS_FACTORS_H

#include "ops/mog.h"

#define ACF_FACTORS_MOST                                                                                               \
    64 /* R at most: a row's R² doubles stay in a core's cache, or in a multiprocessor's shared memory */

/* What conditionals are taken of; x, b and classes as in acf_mog, W = D + classes.n. */
typedef struct acf_factors {
    acf_tensor *weight; /* (R) variances of the factors; <= 0: a factor that is not used */
    acf_tensor *mean;   /* (W) */
    acf_tensor *load;   /* (W,R) */
    acf_tensor *var;    /* (W) of what the factors leave, > 0 */
    acf_tensor *x;      /* (N,D) */
    const uint8_t *b;
    acf_mog_classes classes;
} acf_factors;

/* z (T), and *logdet (N). No derivative: x is data, and the Gaussian is not learned so.
 * ACF_ENUMERIC, with the lowest such row: a column's variance given those before it is not positive. */
acf_tensor *acf_factors_normal(acf_tape *t, const acf_factors *g, const acf_subset *u, acf_tensor **logdet);

/* x (T) from z (T): the way back, differentiable in z. Fails as above. */
acf_tensor *acf_factors_value(acf_tape *t, const acf_factors *g, acf_tensor *z, const acf_subset *u);

/* The same for n sets z[i] (T) of the same rows, in their place: given columns are looked at once for all. No derivative. */
void acf_factors_values(acf_tape *t, const acf_factors *g, int n, acf_tensor **z, const acf_subset *u);

/* (N,W): what is expected of every column, the values of the given ones among them: the reals, then the indicators. 0 in rows
 * of which u has no column. No derivative. Fails as above. */
acf_tensor *acf_factors_expect(acf_tape *t, const acf_factors *g, const acf_subset *u);

/* What the kernels read; the arrays of acf_factors. */
typedef struct acf_factors_in {
    int64_t R, D, W;
    const acf_real *weight, *mean, *load, *var, *x;
    const uint8_t *b;
    acf_mog_classes classes;
} acf_factors_in;

/* Doubles of scratch a thread. */
#define ACF_FACTORS_SCRATCH(R) (2 * (R) * (R) + 5 * (R))

/* bad (N) = the place among the row's given and modelled columns whose variance is not positive, -1 where there is none. */
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

/* ---- for kernels on other devices ---------------------------------------------------------------------------------------- */

/* Inputs of all nodes: weight, mean, load, var, x, and z for the way back. Attributes: acf_mog_attrs. */
enum { ACF_FACTORS_WEIGHT, ACF_FACTORS_MEAN, ACF_FACTORS_LOAD, ACF_FACTORS_VAR, ACF_FACTORS_X, ACF_FACTORS_Z };

#endif
