/* Two small regressions, the parts of the linear baseline (baseline.h): a number from other columns, and a class from other
 * columns.
 *
 * Sizes: n rows of thousands, P predictors of tens (at most about a hundred), K classes of a few; fitted some hundred times in one
 * evaluation. So nothing is iterated that can be had in closed form. Everything is in double, on one thread, and the same for the same
 * input. */
#ifndef ACF_INFER_REGRESS_H
#define ACF_INFER_REGRESS_H

#include "base/arena.h"

/* ---- a number ---------------------------------------------------------------------------------------------------- */

/* y = bias + coef·x + noise with coef ~ N(0, 1/lambda), noise ~ N(0, 1/alpha); lambda and alpha maximise the evidence, so the
 * amount of shrinkage is learned and nothing has to be chosen (MacKay's Bayesian ridge regression). */
typedef struct acf_ridge {
    int64_t P;
    double *coef; /* (P) */
    double bias;
    double *mean; /* (P) of the predictors, and of y: what coefficients drawn from the posterior are hung on */
    double center;
    double *axis;   /* (P,P) what the posterior varies along, one direction a row */
    double *spread; /* (P) its standard deviation along each */
    double noise;   /* standard deviation of what is left */
} acf_ridge;

/* The arrays of a ridge of P predictors, from memory of this arena. Fails: ACF_EMEMORY. */
acf_status acf_ridge_create(acf_arena *memory, int64_t P, acf_ridge *out);

/* Fits to x (n,P) and y (n), n >= 1; both are centred in place. scratch is given back. Fails: ACF_EMEMORY. */
acf_status acf_ridge_fit(acf_arena *scratch, acf_ridge *r, double *x, double *y, int64_t n);

/* coef (P) and *bias drawn from the posterior, by P standard normal numbers z. */
void acf_ridge_posterior(const acf_ridge *r, const double *z, double *coef, double *bias);

/* out (n) = bias + x (n,P)·coef (P). */
void acf_ridge_predict(const double *coef, double bias, const double *x, int64_t n, int64_t P, double *out);

/* ---- a class ----------------------------------------------------------------------------------------------------- */

/* p(class k) proportional to exp(coef_k·x), x (n,P) with a last column of ones; the coefficients of class `base` are 0. */
typedef struct acf_logit {
    int64_t P, K, base;
    double *coef; /* (K,P) */
} acf_logit;

/* Improves coef by Newton steps, a class after the other, at most `passes` times over all classes; ends when a pass gains next to
 * nothing. No step is taken that lowers the likelihood. Coefficients but the last have a N(0,1) prior: classes that can be told
 * apart perfectly keep finite ones. Begins with the coef it finds: zeros, or those of a similar fit. y (n): classes 0..K-1. scratch
 * is given back. Fails: ACF_EMEMORY. */
acf_status acf_logit_fit(acf_arena *scratch, acf_logit *l, const double *x, const int32_t *y, int64_t n, int passes);

/* out (n,K): probabilities of each row of x (n,P). */
void acf_logit_predict(const acf_logit *l, const double *x, int64_t n, double *out);

#endif
