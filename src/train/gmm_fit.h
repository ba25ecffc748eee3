/* Fitting the anchor (ops/mog.h): a mixture of Gaussians with full covariances, by EM, from incomplete rows.
 *
 * Missing cells are integrated out, not filled in: a row contributes its expected values and their covariance given what it has (the
 * classical algorithm for mixtures with missing data). Covariances are drawn a little towards a multiple of the identity, as by a few more
 * rows (the ridge), so that a component of a few rows stays regular. How many components there are, 1, 2, 4, ... up to what the network has room for, is
 * decided by the held-out cells, without such cells by the Bayesian information criterion: the best, where it is clearly better than fewer. Held-out
 * cells also choose between two ridges. The usual one suits most tables; where one column all but follows from others it hides that, and a tenth of it
 * does not. What was found before can be asked for.
 *
 * Known categories are columns too, as indicators of their classes (model/net.h). Components that follow the categories may serve the reals less
 * than ones that are free of them, so where cells are held out these also decide between a mixture with the indicators and one that is
 * blind to them, the same for every class, which must be clearly better.
 *
 * A table too wide for such a mixture has one Gaussian of low rank in its place (train/factor_fit.h), chosen in the same way.
 *
 * Same bits for any number of threads. A table with many rows is represented by some of them, as many as a few seconds of work allow. */
#ifndef ACF_TRAIN_GMM_FIT_H
#define ACF_TRAIN_GMM_FIT_H

#include "train/gmm_em.h"

/* What held-out cells decide. */
typedef struct acf_gmm_choice {
    int64_t components; /* or factors, of a wide table; 0 in a network without anchor */
    bool blind;         /* to categories */
    double ridge;       /* variance that covariances begin with; 0: ACF_GMM_RIDGE */
} acf_gmm_choice;

/* Fits the anchor of net, where it has one, to these rows of t (not the cells that hold holds out; NULL: none). Encoder as in training.
 * as: what to choose; NULL: to be found out. *found, which may be NULL: what was chosen. Fails: ACF_EMEMORY. */
acf_status acf_gmm_fit(acf_net *net, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                       const acf_holdout *hold, uint64_t seed, const acf_gmm_choice *as, acf_gmm_choice *found);

/* The same read from the anchor itself, which does not tell the ridge: 0. Fails: ACF_EMEMORY. */
acf_status acf_gmm_chosen(acf_net *net, acf_gmm_choice *out);

/* Columns from `from` on say nothing: the same for all components, and independent of the others. */
void acf_mixture_detach(acf_mixture *g, int64_t from);

#endif
