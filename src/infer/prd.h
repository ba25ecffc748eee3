/* Precision and recall of a set of completions (PRD; Sajjadi et al. 2018): do they look real, and are they as
 * diverse as real images?
 *
 *     features of real images (N,F) ──┐                         ┌── p, shares of real ones in each cluster ──┐
 *                                     ├── 20 clusters of both ──┤                                            ├── curve
 *     features of completions (M,F) ──┘                         └── q, shares of completions ────────────────┘
 *
 * The curve gives F8 and F1/8. Features are compared, not pixels: those of a network trained on something else
 * (Inception's in the paper), or those of features.h. The curve is averaged over several starts of the clusters, and
 * over sets of completions. Formulas in docs/math.md, Evaluation. */
#ifndef ACF_INFER_PRD_H
#define ACF_INFER_PRD_H

#include "device/device.h"

#define ACF_PRD_ANGLES 1001
#define ACF_PRD_CLUSTERS 20
#define ACF_PRD_RUNS 10

/* A curve, or the sum of several: precision and recall at each angle. */
typedef struct acf_prd {
    double precision[ACF_PRD_ANGLES], recall[ACF_PRD_ANGLES];
    int64_t curves; /* number of curves added */
} acf_prd;

/* Adds the curve of two histograms, p (K) of real and q (K) of completed images, each with sum 1. */
void acf_prd_add(acf_prd *prd, const double *p, const double *q, int K);

/* F with this weight of recall, at the best point of the mean curve: 8 favours recall, 1/8 precision. NaN without a
 * curve. */
double acf_prd_f(const acf_prd *prd, double beta);

/* Clusters both sets ACF_PRD_RUNS times and adds the mean of the curves. real (N,F), done (M,F), finite; N, M, F >=
 * 1. Same bits for any number of threads. Fails: ACF_EMEMORY. */
acf_status acf_prd_compare(acf_device *dev, const acf_real *real, int64_t N, const acf_real *done, int64_t M, int64_t F,
                           uint64_t seed, acf_prd *prd);

/* Reads a file of features, .npy (N,F) of numbers. Gives *x (N,F); free with acf_release. Fails: ACF_EIO, ACF_EDATA
 * (not such a matrix, no rows, a non-finite number: names file, row and column), ACF_EMEMORY. */
acf_status acf_prd_read(const char *path, acf_real **x, int64_t *N, int64_t *F);

#endif
