/* Scores of imputed cells against the true ones: plain functions on arrays, one column at a time.
 *
 * A column has n cells that were hidden and are known. An imputer gives a value for each, or m draws for each:
 *
 *     truth (n)        drawn (m,n)   draw after draw: drawn[k*n + i] is draw k of cell i
 *
 * Scores of numbers are divided by `scale`, the standard deviation of the column's known values, so that columns can
 * be averaged; the column's mean has an NRMSE of 1. Lower is better, except coverage, which should equal its level.
 * docs/math.md, Evaluation, has the formulas and their use. They equal those of the comparison with other imputers
 * up to rounding, which a test checks.
 *
 * Sums are in double, in the order of the arrays. The caller owns scratch; nothing is allocated, nothing can fail. n
 * = 0 gives NaN. */
#ifndef ACF_INFER_METRICS_H
#define ACF_INFER_METRICS_H

#include "table/interval.h"

#include <stdint.h>

/* Standard deviation (divided by the count) of x[0], x[stride], ... (n) without NaN; 0 if all are NaN. Squares of
 * large numbers do not overflow. */
double acf_metric_scale(const double *x, int64_t n, int64_t stride);

/* ---- one value for each cell ------------------------------------------------------------------------------------- */

/* sqrt(mean (value - truth)^2) / scale. */
double acf_metric_nrmse(const double *truth, const double *value, int64_t n, double scale);

/* mean |value - truth| / scale: the CRPS of an imputer that gives one value. */
double acf_metric_nmae(const double *truth, const double *value, int64_t n, double scale);

/* Number of cells with a wrong class. Divided by n: the proportion falsely classified, PFC. */
int64_t acf_metric_wrong(const double *truth, const double *value, int64_t n);

/* Wasserstein-1 distance between the two sets of values, whatever cell they belong to: the mean distance of the
 * sorted values, divided by scale. Imputed means score badly, because they vary too little. scratch (2n). */
double acf_metric_wasserstein(const double *truth, const double *value, int64_t n, double scale, double *scratch);

/* The same for classes 0..C-1: total variation, half the sum of |difference of shares|. scratch (C). */
double acf_metric_variation(const double *truth, const double *value, int64_t n, int64_t C, int64_t *scratch);

/* ---- several draws ----------------------------------------------------------------------------------------------- */

/* Fair continuous ranked probability score of m >= 2 draws, averaged over cells, divided by scale: mean |draw -
 * truth| minus half the mean distance of two draws. "Fair": its expectation does not depend on m. Lowest for the
 * true distribution. scratch (m). */
double acf_metric_crps(const double *truth, const double *drawn, int64_t m, int64_t n, double scale, double *scratch);

/* Share of cells whose truth lies in the interval of this level (interval.h), ends included; s: values that cells
 * share, or NULL. Draws from the true distribution cover `level` for every m of at least acf_interval_draws(level).
 * scratch (m). */
double acf_metric_coverage(const double *truth, const double *drawn, int64_t m, int64_t n, double level, double scale,
                           const acf_shared *s, double *scratch);

/* value (n): the mean of each cell's draws; or the most frequent class of the draws, the lowest of equals (scratch
 * (C) for classes 0..C-1). */
void acf_metric_mean(const double *drawn, int64_t m, int64_t n, double *value);
void acf_metric_vote(const double *drawn, int64_t m, int64_t n, int64_t C, int64_t *scratch, double *value);

/* ---- several masks ----------------------------------------------------------------------------------------------- */

typedef struct acf_mean_deviation {
    double mean, deviation; /* deviation: of a single value, divided by count - 1; NaN below two values */
} acf_mean_deviation;

/* Over those of x (n) that are not NaN. */
acf_mean_deviation acf_metric_repeated(const double *x, int64_t n);

#endif
