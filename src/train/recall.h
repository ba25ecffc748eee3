/* Is it worth looking rows up (model/archive.h)? Asked of the held-out cells once training is over.
 *
 * Each held-out cell is asked for by itself: the network's p(x_j | x_o), and what the other rows say, q(x_j). How far q is to be believed,
 *
 *     h = σ(shift + slope · evidence + closer · log(how many times closer donors are than any row, in column j)),
 *
 * is what makes Σ log((1-h) p + h q) greatest, less a little for numbers that are far from what is expected. Where that gains too little, rows are not looked
 * up and the model has no archive. Only the first of several members asks: the archive is one for all. */
#ifndef ACF_TRAIN_RECALL_H
#define ACF_TRAIN_RECALL_H

#include "model/model.h"
#include "train/trainer.h"

#define ACF_RECALL_CELLS 4000     /* held-out cells that are asked at most, evenly spread */
#define ACF_RECALL_GAIN 10.0      /* nats in all, at least, */
#define ACF_RECALL_EACH 0.03      /* and a cell: below, it is not worth the time that look-ups take */

/* Finds out for the weights in `value`, and sets tr->recall: slope 0 where rows are not to be looked up. Fails: ACF_EMEMORY and others of validation. */
acf_status acf_recall_fit(acf_trainer *tr);

/* The archive of t, as a record of training says; m->archive stays NULL where it says there is none. */
acf_status acf_recall_attach(acf_model *m, const acf_table *t);

#endif
