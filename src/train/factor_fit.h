/* Fits the factor analysis of wide tables (ops/factors.h) by EM, from incomplete rows.
 *
 *     x_j = μ_j + λ_j·f + e_j,      f ~ N(0, I),  e_j ~ N(0, ψ_j)
 *
 * Given f the columns are independent, so missing cells drop out: a row's observed cells give the distribution of its
 * f, and a column's μ, λ, ψ are a regression on f over the rows that have it. Loadings have a prior towards 0 worth a
 * few rows, so that a fit with as many factors as rows stays regular. The number of factors, 1, 2, 4, ..., is chosen
 * on the held-out cells: the first number that the next does not beat clearly. Without held-out cells the Bayesian
 * information criterion decides; a number that was found before can be given.
 *
 * Cost: an iteration does N W r² multiply-adds for N rows, W columns, r factors. The rows of a sample and the maximum
 * of factors are chosen (gmm_fit.c, model/net.c) so that this is 1e9 at most, and there are at most 40 iterations for
 * each r: some 10 s of one core for 1,000 rows of 100 to 1,000 columns (experiments/NOTES.md, Wide tables). Same bits
 * for any number of threads. */
#ifndef ACF_TRAIN_FACTOR_FIT_H
#define ACF_TRAIN_FACTOR_FIT_H

#include "train/gmm_fit.h"

typedef struct acf_analysis {
    int64_t D, r;              /* columns, factors */
    double *mean, *load, *var; /* (D) (D,r) (D) */
} acf_analysis;

/* Gives zeros. Free with acf_analysis_free. Fails: ACF_EMEMORY. */
acf_status acf_analysis_create(int64_t D, int64_t r, acf_analysis *out);
void acf_analysis_free(acf_analysis *g);

/* The best of 1, 2, 4, ... up to `most` factors, or `wanted` of them where that is not 0 (at most `most`). Gives *best.
 * *score: mean log p of the held-out cells, or by the criterion without them. Fails: ACF_EMEMORY. */
acf_status acf_analysis_choose(const acf_device *dev, const acf_sample *s, uint64_t seed, int64_t most, int64_t wanted,
                               acf_analysis *best, double *score);

/* ---- its parts, for tests -------------------------------------------------------------------------------------- */

/* One iteration on the seen cells, in place. *logp: the mean log-likelihood of a row's seen cells before. Fails:
 * ACF_EMEMORY. */
acf_status acf_analysis_step(const acf_device *dev, const acf_sample *s, acf_analysis *g, double *logp);

/* Mean log p of the held-out cells of a row given its seen ones, per held-out cell; 0 when there are none. Fails:
 * ACF_EMEMORY. */
acf_status acf_analysis_score(const acf_device *dev, const acf_sample *s, const acf_analysis *g, double *logp);

#endif
