/* Decides on held-out cells, after training, whether the model gets donors (donors/donors.h), and with what weight.
 *
 * The weight of the donors for a cell,
 *
 *     h = σ(shift + slope · peak + agree · alike + given · log share that is known
 *           + of_column · gain of the donors in the column + the column's own number),
 *
 * is fitted so that predictions of the held-out cells score best (donor_trust_cells.h), less a small penalty for
 * numbers far from their prior. Every ensemble member fits it on its own held-out cells or rows and records what it
 * found. The model takes the means over its members, and has one set of donors for all. It has none where the gain is
 * too small. */
#ifndef ACF_TRAIN_DONOR_TRUST_H
#define ACF_TRAIN_DONOR_TRUST_H

#include "model/model.h"
#include "train/donor_trust_cells.h"
#include "train/trainer.h"

#define ACF_DONOR_TRUST_LEAST 0.005 /* least gain, as a share of the network's score */
#define ACF_DONOR_TRUST_HELD 0.2    /* share of the validation rows' cells that are used, where no cells are held out */
#define ACF_DONOR_TRUST_SURE 2.0    /* least gain in standard deviations: h is fitted on the cells that count it */

/* Fits tr->donor_trust for the weights in `value`: all 0 where nothing is held out. Fails: ACF_EMEMORY and others of
 * validation. */
acf_status acf_donor_trust_fit(acf_trainer *tr);

/* The best numbers for these cells of D columns, and their gain, which is 0 where the true values get less likely.
 * All 0 where no cell has donors. */
void acf_donor_trust_choose(const acf_heldout *a, int64_t D, double v[ACF_DONOR_TRUST_NUMBERS]);

/* Means of what n members found; members without held-out cells do not count. The chance is that of the mean. */
void acf_donor_trust_pool(const double (*found)[ACF_DONOR_TRUST_NUMBERS], int n, double v[ACF_DONOR_TRUST_NUMBERS]);

/* Is the gain large enough, and more than chance? */
bool acf_donor_trust_worth(const double *v);

/* Attaches the donors of t to m, with the numbers recorded by m's members, without rows that the first member held out
 * and never learned from. m->donors stays NULL where the gain is too small. */
acf_status acf_donors_attach(acf_model *m, const acf_table *t);

#endif
