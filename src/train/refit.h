/* The second pass of a fit: the network anew, from all observed cells.
 *
 * Held-out cells say when to stop, and nothing else: the weights that are kept have never seen them. To a small table they are worth
 * more than the time of a second pass, which takes from the first one what it found out:
 *
 *     first     the cells that are not held out      to patience or a limit      the best validation was at step s
 *     second    all cells                            2 s steps, the same seed    the step size decays to its end in these 2 s
 *
 * Where nothing was better than the network as it began, with its anchor alone, s is 0 and the second pass a single step, whose size is next to
 * nothing: the anchor of all cells is what is kept. But not by a model of several members and ACF_REFIT_APART rows: these would all have nearly the same anchor, where those of
 * the first pass, each of other cells, differ, and their mean is worth more than a tenth more cells (docs/RESULTS.md).
 *
 * Encoder and anchor are fitted to all cells too, the anchor with as many components as the held-out cells chose: they are the better
 * judge of that than a criterion without them. Nothing is validated any more, so the averaged weights of the last step are kept, and the
 * validation a model records is the first pass's. Its best weights wait in the trainer's `best`: an interrupted or diverged second pass
 * leaves the model with them.
 *
 * All of it is a function of table and options: the same bits for any number of threads, and in one go or resumed (checkpoint.h). */
#ifndef ACF_TRAIN_REFIT_H
#define ACF_TRAIN_REFIT_H

#include "train/trainer.h"

/* Observed cells of a table that gets a second pass, at most. It costs up to as much as the first, whatever the size of the table; what
 * a tenth more cells is worth falls with their number (docs/RESULTS.md has figures for some 10,000). */
#define ACF_REFIT_CELLS 200000

/* Steps of the second pass for each that the first took to its best. A step size that goes down to its end overfits later than the full one
 * did: on small tables one to three times as many give the same likelihood, and errors are lowest from two on. */
#define ACF_REFIT_STEPS 2

/* Rows from which on members that are their anchors alone keep those of the first pass. With some 30 rows a tenth more cells is worth more than that they
 * differ. */
#define ACF_REFIT_APART 40

/* Will there be a second pass, if the first ends well? By the option `refit`, held-out cells and the size of the table. */
bool acf_refit_planned(const acf_trainer *tr);

/* The first pass ended so: is it time for the second? Not after an interruption, nor without any finite validation, nor for a member of several whose
 * anchor alone was best, where rows are not very few. */
bool acf_refit_due(const acf_trainer *tr, acf_train_end end);

/* The encoder of a second pass: of all cells of these rows. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_refit_encode(const acf_table *t, const acf_rows *rows, const acf_encoding *how, acf_encoder **out);

/* Begins the second pass. Fails: ACF_EMEMORY; then the trainer is good for nothing but acf_trainer_free. */
acf_status acf_refit_begin(acf_trainer *tr, acf_train_end end);

/* The same but for the network's slabs, which the caller fills: where a checkpoint of a second pass is loaded. On failure the trainer
 * is as before. */
acf_status acf_refit_enter(acf_trainer *tr, const acf_fit_record *first);

/* At the end of the second pass, which nobody validates: was it one? Half of its steps must have been finite, and the cells that were held
 * out before, and now belong to those it learned from, must have a finite density. Fails: ACF_ENUMERIC, ACF_EMEMORY. */
acf_status acf_refit_check(acf_trainer *tr);

/* Puts the best weights of the first pass into the network, to which its encoder belongs, as sure as acf_trainer_finish would have made them. The run can't be continued after it. */
acf_status acf_refit_drop(acf_trainer *tr);

/* Gives the encoder of the second pass, to which its weights belong; free with acf_encoder_free. The trainer can only be freed then. */
acf_encoder *acf_refit_encoder(acf_trainer *tr);

#endif
