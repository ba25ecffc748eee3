/* Parameter draws of a fitted model's Gaussian mixtures (model/gmm_draws.h) from their posterior distribution.
 *
 * Data augmentation, from the fitted parameters: alternately draw the missing cells given the parameters and the
 * parameters given the completed rows (acf_augment_step). Each set of parameters is the end of a chain of its own, so
 * all are independent. With several components, or with two columns that hardly any row shows together, such a chain is
 * not stable. Then a set is the result of EM on rows with Bayesian bootstrap weights, started at the fitted parameters.
 * That is some 10 % narrower at 100 rows, but extrapolation stays near the fit.
 *
 * Small tables have enough parameter uncertainty to matter, and there this costs little. A larger table gets no
 * parameter draws, nor does one with factors instead of a mixture. */
#ifndef ACF_TRAIN_GMM_POSTERIOR_H
#define ACF_TRAIN_GMM_POSTERIOR_H

#include "model/model.h"

#define ACF_GMM_POSTERIOR_SETS 32  /* of all members of a model together, or a few more */
#define ACF_GMM_POSTERIOR_STEPS 40 /* of a chain: by then a cell's fitted information has decayed */
#define ACF_GMM_POSTERIOR_ROWS 20000
#define ACF_GMM_POSTERIOR_SHOWN 3 /* data augmentation needs so many rows with both columns of a pair, per column */

/* Draws them for every member of m, which was fitted to t; m->draws stays NULL where it has none. Same bits for any
 * number of threads. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_gmm_posterior(acf_model *m, const acf_table *t);

#endif
