/* Two small regressions for the linear baseline (baseline.h): of a number, and of a class, on other columns.
 *
 * Sizes: thousands of rows n, tens of predictors P (at most about a hundred), a few classes K; some hundred fits per
 * evaluation. So closed forms replace iterations where possible. Everything is in double, on one thread, and
 * deterministic. */
#ifndef ACF_INFER_REGRESS_H
#define ACF_INFER_REGRESS_H

#include "base/arena.h"

/* ---- a number ---------------------------------------------------------------------------------------------------- */

/* y = bias + coef·x + noise with coef ~ N(0, 1/lambda), noise ~ N(0, 1/alpha). lambda and alpha maximise the
 * evidence, so the amount of shrinkage is learned (MacKay's Bayesian ridge regression). */
typedef struct acf_ridge {
    int64_t P;
    double *coef; /* (P) */
    double bias;
    double *mean; /* (P) of the predictors, and of y: the centre of coefficients drawn from the posterior */
    double center;
    double *axis;   /* (P,P) principal axes of the posterior, one a row */
    double *spread; /* (P) its standard deviation along each axis */
    double noise;   /* standard deviation of the residual */
} acf_ridge;

/* Allocates the arrays of a ridge of P predictors from this arena. Fails: ACF_EMEMORY. */
acf_status acf_ridge_create(acf_arena *memory, int64_t P, acf_ridge *out);

/* Fits to x (n,P) and y (n), n >= 1; both are centred in place. Memory of scratch is given back. Fails: ACF_EMEMORY. */
acf_status acf_ridge_fit(acf_arena *scratch, acf_ridge *r, double *x, double *y, int64_t n);

/* coef (P) and *bias drawn from the posterior, from P standard normal numbers z. */
void acf_ridge_posterior(const acf_ridge *r, const double *z, double *coef, double *bias);

/* out (n) = bias + x (n,P)·coef (P). */
void acf_ridge_predict(const double *coef, double bias, const double *x, int64_t n, int64_t P, double *out);

/* ---- a class ----------------------------------------------------------------------------------------------------- */

/* p(class k) proportional to exp(coef_k·x), x (n,P) with a last column of ones; the coefficients of class `base` are
 * 0. */
typedef struct acf_logit {
    int64_t P, K, base;
    double *coef; /* (K,P) */
} acf_logit;

/* Improves coef by Newton steps, one class after the other, in at most `passes` passes over all classes; stops when
 * a pass gains almost nothing. No step lowers the likelihood. All coefficients but the last have a N(0,1) prior, so
 * perfectly separable classes keep finite ones. Starts from the given coef: zeros, or those of a similar fit. y (n):
 * classes 0..K-1. Memory of scratch is given back. Fails: ACF_EMEMORY. */
acf_status acf_logit_fit(acf_arena *scratch, acf_logit *l, const double *x, const int32_t *y, int64_t n, int passes);

/* out (n,K): probabilities of each row of x (n,P). */
void acf_logit_predict(const acf_logit *l, const double *x, int64_t n, double *out);

#endif
