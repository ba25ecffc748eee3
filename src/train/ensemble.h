/* A model of several members: fits of the same table, each from a seed of its own, one after the other
 * or on a CPU side by side, a thread each.
 *
 *     member    0               1                     2              ...
 *     seed      the option's    acf_member_seed(seed, 1)             ...     cells held out, initial values,
 *                                                                            batches, masks: all by it
 *     fit       both passes (fit.h), and so does each
 *
 * They differ by what chance decided: which cells were held out, and with them when to stop and how many Gaussians
 * the anchor has; where training began. What they agree about, the table says. Their mean errs less than any of them,
 * and their mixture is less sure of itself (infer/session.h).
 *
 * The first decides: where it does not come to its end, that is the end. A later one that diverges is left out.
 * A checkpoint holds the member that is trained, and the weights of those before it; all of it goes on, or ends,
 * as fit.h says. The same bits in one go or resumed, and side by side.
 *
 * The callback is called on the caller's thread alone. Of members side by side it hears of the first,
 * then of another that this thread trains, then of those that others still train. Interrupted,
 * the first that is not complete begins anew, and those behind it. */
#ifndef ACF_TRAIN_ENSEMBLE_H
#define ACF_TRAIN_ENSEMBLE_H

#include "train/fit.h"

/* The option `seed` of member k, below 2^53; of the first it is the seed itself. */
uint64_t acf_member_seed(uint64_t seed, int k);

/* Trains m as acf_fit_model does, and as many others as the option `members` of its config asks for,
 * which must be a number; puts them behind it. m->record is known where m is worth keeping, as there;
 * it then has all members that are. Fails as acf_fit_model. */
acf_status acf_fit_ensemble(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *how);

#endif
