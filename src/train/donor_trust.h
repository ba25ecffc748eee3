/* Is it worth looking rows up (donors/donors.h)? Asked of the held-out cells once training is over.
 *
 * How far the rows are to be believed about a cell,
 *
 *     h = σ(shift + slope · how much nearer donors are than rows + agree · how much more alike + told · how much donors know of the column + the column's own),
 *
 * is what makes forecasts of the held-out cells score best (donor_trust_cells.h), less a little for numbers that are far from what is expected. Every member asks, of its
 * own held-out cells or rows, and puts down what it found; a model has the means of its members', and one archive for all. Where too little is won, it has none. */
#ifndef ACF_TRAIN_DONOR_TRUST_H
#define ACF_TRAIN_DONOR_TRUST_H

#include "model/model.h"
#include "train/donor_trust_cells.h"
#include "train/trainer.h"

#define ACF_DONOR_TRUST_LEAST 0.005 /* of the scores of the network, at least, */
#define ACF_DONOR_TRUST_HELD 0.2    /* of the cells of rows that validate are asked, where no cells are held out */
#define ACF_DONOR_TRUST_SURE                                                                                           \
    2.0 /* and so many deviations. The numbers were chosen on the cells that count it: one is won by chance alone */

/* Finds out for the weights in `value`, and sets tr->recall: all 0 where there is nothing to ask. Fails: ACF_EMEMORY and others of validation. */
acf_status acf_donor_trust_fit(acf_trainer *tr);

/* The numbers that are best for these cells of D columns, and what they win: nothing where truths get less likely. All 0 where no cell has donors. */
void acf_donor_trust_choose(const acf_heldout *a, int64_t D, double v[ACF_DONOR_TRUST_NUMBERS]);

/* Means of what n members found; members that did not ask do not count. The chance is that of the mean. */
void acf_donor_trust_pool(const double (*found)[ACF_DONOR_TRUST_NUMBERS], int n, double v[ACF_DONOR_TRUST_NUMBERS]);

/* Is that enough, and more than chance? */
bool acf_donor_trust_worth(const double *v);

/* The archive of t, as records of m's members say, without rows that the first member held out and never learned
 * from; m->archive stays NULL where it is not worth it. */
acf_status acf_donors_attach(acf_model *m, const acf_table *t);

#endif
