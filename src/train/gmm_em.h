/* EM for a mixture of Gaussians with full covariances, from incomplete rows: one iteration, the score of held-out
 * cells, and one step of data augmentation, which draws parameters from their posterior distribution (gmm_posterior.h).
 *
 * Missing cells are integrated out: a row contributes its expected values and their covariance given its observed
 * cells. Same bits for any number of threads. */
#ifndef ACF_TRAIN_GMM_EM_H
#define ACF_TRAIN_GMM_EM_H

#include "train/gmm_sample.h"

#define ACF_GMM_RIDGE 0.3

typedef struct acf_mixture {
    int64_t K, D;
    double *weight, *mean, *cov; /* (K) (K,D) (K,D,D) */
} acf_mixture;

/* All zeros. Fails: ACF_EMEMORY. */
acf_status acf_mixture_create(int64_t K, int64_t D, acf_mixture *out);
void acf_mixture_free(acf_mixture *g);

/* One iteration of EM on the seen cells: g becomes next (same sizes). *logp: the mean log-likelihood of a row's seen
 * cells before. Fails: ACF_EMEMORY. */
acf_status acf_em_step(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next,
                       double *logp);

/* The same with the caller's memory: acf_em_doubles doubles. */
int64_t acf_em_doubles(const acf_device *dev, int64_t K, int64_t D);
void acf_em_step_in(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next, double *logp,
                    double *memory);

/* Mean log p of the held-out cells of a row given its seen ones, per held-out cell; 0 when there are none. Fails:
 * ACF_EMEMORY. */
acf_status acf_em_score(const acf_device *dev, const acf_sample *s, const acf_mixture *g, double *logp);

/* One step of data augmentation. For every row, draws a component and the missing cells given g; then draws the
 * parameters given these complete rows: next (same sizes). Repeated, it draws the parameters from their posterior
 * distribution. Random numbers are keyed by seed, chain and step (below 2^16 each) and the ids of the rows. memory:
 * acf_augment_doubles doubles. */
typedef struct acf_augment {
    uint64_t seed;
    uint32_t chain, step;
} acf_augment;
int64_t acf_augment_doubles(int64_t K, int64_t D);
void acf_augment_step(const acf_sample *s, const acf_mixture *g, acf_mixture *next, acf_augment at, double *memory);

/* The least number of rows of a component, over pairs of the first `columns` columns, in which both are seen: the data
 * for their covariance. */
double acf_augment_rows(const acf_sample *s, const acf_mixture *g, int64_t columns, double *memory);

#endif
