/* Ensembles: several fits of the same table, each with its own seed, one after the other or on a CPU in parallel, a
 * thread each.
 *
 *     member    0               1                     2              ...
 *     seed      the option's    acf_member_seed(seed, 1)             ...     decides held-out cells, initial values,
 *                                                                            batches, masks
 *     fit       both passes (fit.h), for every member
 *
 * Members differ in what is random: which cells are held out, and so when to stop and how many Gaussians the mixture
 * has; and where training begins. What they agree on comes from the table. Their mean errs less than any of them, and
 * their mixture is less overconfident (infer/session.h).
 *
 * If the first member fails, the fit fails. A later one that diverges is left out. A checkpoint holds the member in
 * training and the weights of those before it. Resuming and ending follow fit.h. The bits are the same in one go,
 * resumed, or in parallel.
 *
 * The callback is called only on the caller's thread. In parallel, it gets the reports of the first member, then of
 * other members trained on this thread, then of those still in training. After an interruption, training resumes at the
 * first incomplete member, from its beginning. */
#ifndef ACF_TRAIN_ENSEMBLE_H
#define ACF_TRAIN_ENSEMBLE_H

#include "train/fit.h"

/* The option `seed` of member k, below 2^53; of the first it is the seed itself. */
uint64_t acf_member_seed(uint64_t seed, int k);

/* Trains m as acf_fit_model does, then as many others as the option `ensemble` of its config, which must be a number,
 * and appends them to m. m->record is known where m is worth keeping, as there; m then has all members that are. Fails
 * as acf_fit_model. */
acf_status acf_fit_ensemble(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *how);

#endif
