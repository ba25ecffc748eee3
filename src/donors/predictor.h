/* Regression prediction of a row's cells by one Gaussian of all columns.
 *
 * A column has one coordinate or more. With μ and the precision Λ of all coordinates, d = coordinates - μ, o the known
 * ones and u the others,
 *
 *     Λ_uu d_u = -Λ_uo d_o,      E[x_u | x_o] = μ_u + d_u:
 *
 * the linear regression of each column on the known ones, for any pattern of missing cells. The precision is used, not
 * the covariance, because few cells of a row are unknown. Learned by EM from rows with missing cells. Formulas:
 * docs/math.md, 17. Used by the donors (donor_predict.h). */
#ifndef ACF_DONORS_PREDICTOR_H
#define ACF_DONORS_PREDICTOR_H

#include "base/real.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ACF_PREDICTOR_MOST 128 /* coordinates */

/* Constant once learned: threads may share it. */
typedef struct acf_predictor {
    int64_t D, P;
    int64_t *first;    /* (D+1) where a column's coordinates begin; a column may have none. Owned */
    double *mean;      /* (P) owned */
    double *precision; /* (P,P) symmetric; mean and precision are rounded to reals of this build */
} acf_predictor;

/* For columns with so many coordinates, width (D), ACF_PREDICTOR_MOST in all: all zeros. Gives *out; free with
 * acf_predictor_free. Fails: ACF_EMEMORY. */
acf_status acf_predictor_create(int64_t D, const int64_t *width, acf_predictor **out);
void acf_predictor_free(acf_predictor *e); /* NULL is allowed */

/* Sets mean and precision from N rows of coordinates, x (N,P), with variances of about 1; known (N,D): which columns.
 * Fails: ACF_EMEMORY. */
acf_status acf_predictor_learn(acf_predictor *e, const double *x, const uint8_t *known, int64_t N);

/* False: mean and precision are no Gaussian, or one so narrow that rounding errors exceed it. Fails: ACF_EMEMORY. */
acf_status acf_predictor_sound(const acf_predictor *e, bool *sound);

/* ---- queries --------------------------------------------------------------------------------------------------- */

/* Scratch for one query at a time, owned. */
typedef struct acf_predictor_scratch {
    double *d, *y; /* (P) (P) */
    double *a;     /* (P,P) */
    int32_t *u;    /* (P) */
} acf_predictor_scratch;
acf_status acf_predictor_scratch_open(const acf_predictor *e, acf_predictor_scratch *out);
void acf_predictor_scratch_close(acf_predictor_scratch *k);

/* The predicted first coordinate of column j, which has one, for a row with coordinates x (P) of the columns known (D);
 * known[j] is ignored. */
double acf_predictor_cell(const acf_predictor *e, const acf_predictor_scratch *k, const double *x, const uint8_t *known,
                          int64_t j);

/* The same, and its residual variance. */
double acf_predictor_cell_both(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                               const uint8_t *known, int64_t j, double *variance);

/* Variances of all coordinates given nothing, out (P). */
void acf_predictor_variances(const acf_predictor *e, const acf_predictor_scratch *k, double *out);

#endif
