/* Is it worth looking rows up (model/archive.h)? Asked of the held-out cells once training is over.
 *
 * How far the rows are to be believed about a cell,
 *
 *     h = σ(shift + slope · how much nearer donors are than rows + agree · how much more alike + told · how much donors know of the column + the column's own),
 *
 * is what makes forecasts of the held-out cells score best (recall_cells.h), less a little for numbers that are far from what is expected. Where too little is
 * won, rows are not looked up and the model has no archive. Only the first of several members asks: the archive is one for all. */
#ifndef ACF_TRAIN_RECALL_H
#define ACF_TRAIN_RECALL_H

#include "model/model.h"
#include "train/recall_cells.h"
#include "train/trainer.h"

#define ACF_RECALL_WON 0.005      /* of the scores of the network, at least, */
#define ACF_RECALL_SURE 1.0       /* and so many deviations: below, it is not worth the time that look-ups take */

/* Finds out for the weights in `value`, and sets tr->recall: slope 0 where rows are not to be looked up. Fails: ACF_EMEMORY and others of validation. */
acf_status acf_recall_fit(acf_trainer *tr);

/* The numbers that are best for these cells of D columns; slope 0: too little is won. */
void acf_recall_choose(const acf_asked *a, int64_t D, double v[ACF_RECALL_NUMBERS]);

/* The archive of t, as a record of training says; m->archive stays NULL where it says there is none. */
acf_status acf_recall_attach(acf_model *m, const acf_table *t);

#endif
