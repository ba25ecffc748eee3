/* Recalibrates predictions on held-out cells after training.
 *
 * A network trained on few rows for its columns is overconfident: its intervals are too narrow and its class
 * probabilities too extreme. Two numbers are fitted to cells that it has not learned from, as in temperature scaling of
 * classifiers (docs/math.md, 16; gains in experiments/NOTES.md):
 *
 *     scale_factor  the scales of all mixtures of reals times e^scale_factor   each minimises Σ over held-out cells of
 *     temperature   the logits of all classes times e^-temperature             -log p + ½ ((number - prior)/deviation)²
 *
 * The second term is a prior: some dozen cells, all that a small table can hold out, hardly move the number, and a
 * thousand override it. Both are changes of weights (acf_net_calibrate), so later queries need no extra step. The
 * second pass has no held-out cells and takes the numbers of the first. Every ensemble member has its own. */
#ifndef ACF_TRAIN_CALIBRATE_H
#define ACF_TRAIN_CALIBRATE_H

#include "train/trainer.h"

/* On a dozen small and wide tables, most optima for cells that no fit had seen lie within one deviation of the prior.
 * */
#define ACF_CALIBRATE_SCALE 0.1 /* prior mean of scale_factor; that of temperature is 0 */
#define ACF_CALIBRATE_DEVIATION 0.1
#define ACF_CALIBRATE_LEAST (-0.5) /* bounds of both */
#define ACF_CALIBRATE_MOST 1.0

/* Only with fewer rows than this for each column. With more, intervals have their nominal coverage, and the likelihood
 * would widen them for a few outlying cells. */
#define ACF_CALIBRATE_ROWS 100

/* Sets tr->scale_factor and tr->temperature for the weights in `value`, which stay as they are: 0 where nothing is held
 * out, nothing can change, or rows are many. Uses the gradients' slab. Fails: ACF_EMEMORY and others of validation, but
 * not ACF_ENUMERIC. */
acf_status acf_calibrate(acf_trainer *tr);

#endif
