/* What a row's cells are expected to be, by one Gaussian of all columns.
 *
 * A column has one coordinate or more. With μ and the precision Λ of all of them, d = coordinates less μ, o those that are known and u those that are not,
 *
 *     Λ_uu d_u = -Λ_uo d_o,      E[x_u | x_o] = μ_u + d_u:
 *
 * what linear regressions of every column on all others agree upon, whatever is missing. In Λ, not in the covariance, because few cells of a row are unknown. Learned
 * by EM from rows with holes. Formulas: docs/math.md, 17. An archive asks for it (donor_predict.h). */
#ifndef ACF_DONORS_PREDICTOR_H
#define ACF_DONORS_PREDICTOR_H

#include "base/real.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ACF_PREDICTOR_MOST 128 /* coordinates */

/* Nothing changes after it was made: threads may share it. */
typedef struct acf_predictor {
    int64_t D, P;
    int64_t *first;    /* (D+1) where a column's coordinates begin; a column may have none. Owned */
    double *mean;      /* (P) owned */
    double *precision; /* (P,P) symmetric; all of both are reals of this build */
} acf_predictor;

/* Room for columns with so many coordinates, width (D), ACF_PREDICTOR_MOST in all: all zeros. Gives *out; free with acf_predictor_free. Fails: ACF_EMEMORY. */
acf_status acf_predictor_create(int64_t D, const int64_t *width, acf_predictor **out);
void acf_predictor_free(acf_predictor *e); /* NULL is allowed */

/* Sets mean and precision by N rows of coordinates, x (N,P), with variances of about 1, of the columns that are known (N,D). Fails: ACF_EMEMORY. */
acf_status acf_predictor_learn(acf_predictor *e, const double *x, const uint8_t *known, int64_t N);

/* False: mean and precision are those of no Gaussian, or of one that is so narrow that rounding is wider. Fails: ACF_EMEMORY. */
acf_status acf_predictor_sound(const acf_predictor *e, bool *sound);

/* ---- questions --------------------------------------------------------------------------------------------------------------- */

/* Memory for one question at a time, owned. */
typedef struct acf_predictor_scratch {
    double *d, *y; /* (P) (P) */
    double *a;     /* (P,P) */
    int32_t *u;    /* (P) */
} acf_predictor_scratch;
acf_status acf_predictor_scratch_open(const acf_predictor *e, acf_predictor_scratch *out);
void acf_predictor_scratch_close(acf_predictor_scratch *k);

/* The first coordinate of column j, which has one, expected of a row with coordinates x (P) of the columns that are known (D); known[j] is not looked at. */
double acf_predictor_cell(const acf_predictor *e, const acf_predictor_scratch *k, const double *x, const uint8_t *known,
                          int64_t j);

/* The same, and the variance that is left. */
double acf_predictor_cell_both(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                               const uint8_t *known, int64_t j, double *variance);

/* Variances of all coordinates, out (P), where nothing is known. */
void acf_predictor_variances(const acf_predictor *e, const acf_predictor_scratch *k, double *out);

#endif
