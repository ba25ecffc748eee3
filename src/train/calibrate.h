/* How sure a model should be: asked of the held-out cells once training is over.
 *
 * A network of few rows for its many columns knows what it saw, and not what else it could have seen: its intervals are too narrow and its classes too
 * certain. So two numbers are fitted to cells it has not learned from, as the temperature of a classifier is (docs/math.md, 16; docs/RESULTS.md has what
 * they are worth):
 *
 *     widen     the scales of all mixtures of reals times e^widen           each the minimum of
 *     soften    the logits of all classes times e^-soften                   Σ over held-out cells of -log p  +  ½ ((number - expected) / deviation)²
 *
 * The second term is what is expected before anything is asked. Some dozen cells, all that a small table has to hold out, hardly move it; a thousand
 * leave nothing of it. Both are changes of weights (acf_net_calibrate): who asks the model later need not know. The second pass has no cells to ask and
 * takes the numbers of the first. Every member of a model has its own. */
#ifndef ACF_TRAIN_CALIBRATE_H
#define ACF_TRAIN_CALIBRATE_H

#include "train/trainer.h"

/* Most of what a dozen small and wide tables wanted, in cells that no fit had seen, is within one deviation. */
#define ACF_CALIBRATE_SCALE 0.1 /* expected; of soften 0 */
#define ACF_CALIBRATE_DEVIATION 0.1
#define ACF_CALIBRATE_LEAST (-0.5) /* of both */
#define ACF_CALIBRATE_MOST 1.0

/* Rows for each column, fewer than that: with more of them intervals hold as many truths as they should, and the likelihood would widen them for the
 * sake of a few cells far out. */
#define ACF_CALIBRATE_ROWS 100

/* Finds both for the weights in `value`, which stay as they are, and sets tr->widen and tr->soften: to 0 where there is nothing to ask or to change, or
 * where rows are many. Uses the gradients' slab. Fails: ACF_EMEMORY and others of validation, but not ACF_ENUMERIC. */
acf_status acf_calibrate(acf_trainer *tr);

#endif
