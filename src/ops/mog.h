/* The Gaussian mixture: transforms a row's modelled values to standard normal noise by the conditionals of a mixture of
 * Gaussians.
 *
 * A mixture of K Gaussians over all columns (fitted by EM, train/gmm_fit.h; not by gradient) has every conditional in
 * closed form. For the modelled columns of a row in their order, given the observed ones and the modelled ones before,
 *
 *     z_i = Φ⁻¹( F(x_i | x_o, x_before) ),      log|det| = Σ log f(x_i | ...) - log φ(z_i)
 *
 * If the mixture is the true distribution, z is independent standard noise and the networks after it have nothing to
 * learn. Otherwise they learn the difference. One Gaussian gives the linear map x_u = μ_{u|o} + L z. Formulas:
 * docs/math.md, 10.
 *
 * Known categories are given columns too, as indicators of their classes. The mixture covers the reals and these
 * indicators; only reals are modelled.
 *
 * Cost per row: K Cholesky factors of size |o| + |u|. Everything is in double: in float the factors of a nearly
 * singular covariance would fail. */
#ifndef ACF_OPS_MOG_H
#define ACF_OPS_MOG_H

#include "ops/ops.h"

/* Indicators: column D + p of the mixture is 1 where category column[p] has the class value[p], else 0. It is given
 * where `known` is set. All arrays are in device memory. */
typedef struct acf_mog_classes {
    int64_t n, D;                  /* indicators (0: none); categories */
    const int32_t *column, *value; /* (n) */
    const int32_t *code;           /* (N,D), read only where known */
    const uint8_t *known;          /* (N,D) */
} acf_mog_classes;

/* The mixture and the rows it is conditioned on. b (N,D), in device memory, marks the given columns. x (N,D) is read
 * there; acf_mog_normal also reads it at the modelled columns. W = D + classes.n. */
typedef struct acf_mog {
    acf_tensor *weight; /* (K) of the components, >= 0; components of weight 0 are skipped */
    acf_tensor *mean;   /* (K,W) */
    acf_tensor *cov;    /* (K,W,W) symmetric; the lower half is read */
    acf_tensor *x;      /* (N,D) */
    const uint8_t *b;
    acf_mog_classes classes;
} acf_mog;

/* z (T), and *logdet (N). No derivative: x is data, and the mixture has no gradient. Fails: ACF_ENUMERIC, with the
 * lowest such row: a covariance that is not positive definite on that row's columns. */
acf_tensor *acf_mog_normal(acf_tape *t, const acf_mog *g, const acf_subset *u, acf_tensor **logdet);

/* x (T) from z (T): the inverse, differentiable in z. Fails as above. */
acf_tensor *acf_mog_value(acf_tape *t, const acf_mog *g, acf_tensor *z, const acf_subset *u);

/* The inverse of n sets z[i] (T) of the same rows, in place. The factors, which are nearly all of the work, are
 * computed once for all sets. No derivative. */
void acf_mog_values(acf_tape *t, const acf_mog *g, int n, acf_tensor **z, const acf_subset *u);

/* (N,W): the conditional mean of every column; for given columns their value. The reals come first, then the
 * indicators. Rows where u has no column give 0, because a row costs K factors and nobody needs its result. No
 * derivative. Fails as above. */
acf_tensor *acf_mog_expect(acf_tape *t, const acf_mog *g, const acf_subset *u);

/* What the kernels read; the arrays of acf_mog. */
typedef struct acf_mog_in {
    int64_t K, D, W;
    const acf_real *weight, *mean, *cov, *x;
    const uint8_t *b;
    acf_mog_classes classes;
} acf_mog_in;

/* Doubles of scratch per thread. */
#define ACF_MOG_SCRATCH(K, W) ((K) * (2 * (W) * (W) + 3 * (W) + 6) + (W) * (W) + 2 * (W) + 8)

/* bad (N) = the place among the row's given and modelled columns where a factor failed, or -1. */
void acf_mog_normal_fwd_cpu(const acf_device *dev, acf_real *z, acf_real *logdet, int32_t *bad, const acf_mog_in *in,
                            const acf_subset *u, double *scratch);
/* x (sets,T) from z (sets,T). */
void acf_mog_value_fwd_cpu(const acf_device *dev, acf_real *x, int32_t *bad, const acf_mog_in *in, const acf_real *z,
                           int64_t sets, const acf_subset *u, double *scratch);
void acf_mog_expect_cpu(const acf_device *dev, acf_real *out, int32_t *bad, const acf_mog_in *in, const acf_subset *u,
                        double *scratch);
/* dz += Jᵀ dx, J = dx/dz; x (T) is the output of forward. */
void acf_mog_value_bwd_cpu(const acf_device *dev, acf_real *dz, const acf_real *dx, const acf_mog_in *in,
                           const acf_real *x, const acf_real *z, const acf_subset *u, double *scratch);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* Inputs of all nodes: weight, mean, cov, x, and for the inverse z. */
enum { ACF_MOG_WEIGHT, ACF_MOG_MEAN, ACF_MOG_COV, ACF_MOG_X, ACF_MOG_Z };

typedef struct acf_mog_attrs {
    const acf_subset *u;
    const uint8_t *b;
    acf_mog_classes classes;
} acf_mog_attrs;

#define ACF_MOG_LEAST_PIVOT 1e-10 /* of a factor, in encoded units, where columns have variance 1 */

/* ---- for fitting ------------------------------------------------------------------------------------------------- */

/* log Φ(e), of the lower tail, for any e. */
double acf_log_normal_cdf(double e);

/* The e with log Φ(e) = p; p <= log ½ (so e <= 0). */
double acf_normal_from_log_tail(double p);

#endif
