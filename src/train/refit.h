/* The second pass of a fit: trains the network anew, on all observed cells.
 *
 * Held-out cells only say when to stop: the weights that are kept have never seen them. In a small table these cells
 * are worth the time of a second pass, which takes its length from the first:
 *
 *     first     the cells that are not held out      to patience or a limit      the best validation was at step s
 *     second    all cells                            2 s steps, the same seed    the step size decays to its end
 *
 * Where nothing beat the initial network, which is its Gaussian mixture alone, s is 0. The second pass is then one
 * step of negligible size, and keeps the mixture of all cells. An ensemble does not do this from ACF_REFIT_APART rows
 * on: all members would have nearly the same mixture. Those of the first pass differ, each fitted to other cells, and
 * their mean is worth more than a tenth more cells (experiments/NOTES.md).
 *
 * The encoder and the mixture are fitted to all cells too, the mixture with the number of components that the held-out
 * cells chose: they choose better than a criterion without them. Nothing is validated in this pass, so the averaged
 * weights of the last step are kept, and the model records the first pass's validation. The first pass's best weights
 * stay in the trainer's `best`: an interrupted or diverged second pass leaves the model with them.
 *
 * All of it is a function of table and options: the same bits for any number of threads, in one go or resumed
 * (checkpoint.h). */
#ifndef ACF_TRAIN_REFIT_H
#define ACF_TRAIN_REFIT_H

#include "train/trainer.h"

/* Most observed cells of a table that gets a second pass. The pass costs up to as much as the first, whatever the
 * size of the table; the gain from a tenth more cells falls with their number (experiments/NOTES.md has figures for
 * some 10,000). */
#define ACF_REFIT_CELLS 200000

/* Steps of the second pass for each that the first took to its best. A decaying step size overfits later than the full
 * one: on small tables one to three times as many steps give the same likelihood, and errors are lowest from two on. */
#define ACF_REFIT_STEPS 2

/* Rows from which on ensemble members that are their mixtures alone keep those of the first pass. With some 30 rows a
 * tenth more cells is worth more than the differences between members. */
#define ACF_REFIT_APART 40

/* Will there be a second pass if the first ends well? By the option `refit`, held-out cells and the size of the
 * table. */
bool acf_refit_planned(const acf_trainer *tr);

/* The first pass ended with `end`: does the second follow? Not after an interruption, nor without any finite
 * validation, nor for an ensemble member whose mixture alone was best, unless rows are very few. */
bool acf_refit_due(const acf_trainer *tr, acf_train_end end);

/* The encoder of a second pass: of all cells of these rows. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_refit_encode(const acf_table *t, const acf_rows *rows, const acf_encoding *how, acf_encoder **out);

/* Begins the second pass. Fails: ACF_EMEMORY; then the trainer can only be freed. */
acf_status acf_refit_begin(acf_trainer *tr, acf_train_end end);

/* The same without the network's slabs, which the caller fills: for a checkpoint of a second pass. On failure the
 * trainer is as before. */
acf_status acf_refit_enter(acf_trainer *tr, const acf_fit_record *first);

/* Checks a finished second pass, which has no validation. At least half of its steps must have been finite, and the
 * cells that were held out before, which it has learned from, must have a finite density. Fails: ACF_ENUMERIC,
 * ACF_EMEMORY. */
acf_status acf_refit_check(acf_trainer *tr);

/* Puts the best weights of the first pass, to which its encoder belongs, into the network, calibrated as by
 * acf_trainer_finish. The run can't be continued after it. */
acf_status acf_refit_drop(acf_trainer *tr);

/* Gives the encoder of the second pass, to which its weights belong; free with acf_encoder_free. After it the trainer
 * can only be freed. */
acf_encoder *acf_refit_encoder(acf_trainer *tr);

#endif
