/* Parameter draws of a model's Gaussian mixtures (model/gmm_draws.h) from their posterior distribution, once a model is fitted.
 *
 * Data augmentation: from the fitted parameters, missing cells are drawn given the parameters and parameters given the completed rows, in turn
 * (acf_augment_step). Each set of parameters is the end of such a chain of its own, so all are independent. Where there are several
 * components, or two columns that hardly any row shows together, nothing holds such a chain; then a set is what EM makes of the rows with Bayesian bootstrap weights, from the fitted
 * parameters on. That is some 10 % narrower at 100 rows, but what
 * is beyond the rows stays near what was fitted.
 *
 * A table is small where parameters are uncertain enough to matter, and then this costs little; a larger one gets no parameter draws, nor does one
 * with factors in place of a mixture. */
#ifndef ACF_TRAIN_GMM_POSTERIOR_H
#define ACF_TRAIN_GMM_POSTERIOR_H

#include "model/model.h"

#define ACF_GMM_POSTERIOR_SETS 32 /* of all members of a model together, or a few more */
#define ACF_GMM_POSTERIOR_STEPS                                                                                        \
    40 /* of a chain: what the fitted parameters have left of a cell's information is forgotten by then */
#define ACF_GMM_POSTERIOR_ROWS 20000
#define ACF_GMM_POSTERIOR_SHOWN                                                                                        \
    3 /* rows that show two columns together, for each column, that data augmentation needs */

/* Draws them for every member of m, which was fitted to t; m->draws stay NULL where it has none. Same bits for any number of threads.
 * Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_gmm_posterior(acf_model *m, const acf_table *t);

#endif
