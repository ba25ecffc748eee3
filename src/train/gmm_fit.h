/* Fits the Gaussian mixture in front of the network (ops/mog.h): full covariances, by EM, from incomplete rows.
 *
 * Missing cells are integrated out, not filled in: a row contributes its expected values and their covariance given its
 * observed cells (the classical algorithm for mixtures with missing data). Covariances are shrunk a little towards a
 * multiple of the identity, as by a few more rows (the ridge), so that a component of a few rows stays regular. The
 * number of components, 1, 2, 4, ... up to the network's maximum, is chosen on the held-out cells, or without them by
 * the Bayesian information criterion: the best, where it is clearly better than fewer. Held-out cells also choose
 * between two ridges. The usual one suits most tables. It hides a column that nearly follows from others; a tenth of
 * it does not. A choice that was found before can be given.
 *
 * Known categories are columns too, as indicators of their classes (model/net.h). Components that follow the categories
 * may model the reals worse than components that ignore them. So held-out cells also decide between a mixture with the
 * indicators and a blind one, the same for every class, which must be clearly better.
 *
 * A table too wide for such a mixture has one Gaussian of low rank instead (train/factor_fit.h), chosen in the same
 * way.
 *
 * Same bits for any number of threads. A table with many rows is represented by a sample, sized for a few seconds of
 * work. */
#ifndef ACF_TRAIN_GMM_FIT_H
#define ACF_TRAIN_GMM_FIT_H

#include "train/gmm_em.h"

/* What is chosen on held-out cells. */
typedef struct acf_gmm_choice {
    int64_t components; /* or factors, of a wide table; 0 in a network without mixture */
    bool blind;         /* ignores categories */
    double ridge;       /* prior variance of covariances; 0: ACF_GMM_RIDGE */
} acf_gmm_choice;

/* Fits the mixture of net, where it has one, to these rows of t (not the cells that hold holds out; NULL: none).
 * Encoder as in training. as: what to choose; NULL: find out. *found, which may be NULL: what was chosen. Fails:
 * ACF_EMEMORY. */
acf_status acf_gmm_fit(acf_net *net, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                       const acf_holdout *hold, uint64_t seed, const acf_gmm_choice *as, acf_gmm_choice *found);

/* The same read from the mixture's parameters, which do not record the ridge: 0. Fails: ACF_EMEMORY. */
acf_status acf_gmm_chosen(acf_net *net, acf_gmm_choice *out);

/* Columns from `from` on become uninformative: the same for all components, and independent of the others. */
void acf_mixture_detach(acf_mixture *g, int64_t from);

#endif
