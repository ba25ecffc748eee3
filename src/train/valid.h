/* Validation of training on a table, on one of:
 *
 *     cells    held-out cells of the training rows, each given the others of its row: an imputation's query
 *     rows     whole rows, which training never sees, with masks drawn from those of training: training's own query
 *     table    the same with the rows of a second table
 *
 * Masks and noise of rows are keyed by (seed, row, ACF_NOISE_FIXED): the same at every validation, and different from
 * every training step's. Held-out rows score  Σ -log p(x_u | x_o) / Σ |u|  or, where the loss divides each row by its
 * modelled columns (`loss-per` column),  mean of -log p / |u|. At most ACF_VALID_MOST rows are used, drawn by seed, so
 * that validation costs little beside an epoch of a large table. */
#ifndef ACF_TRAIN_VALID_H
#define ACF_TRAIN_VALID_H

#include "train/trainer.h"

/* Enough to compare weights: on the same rows and masks their scores differ by far less than each varies with the
 * rows. */
#define ACF_VALID_MOST 10000

/* Splits t into training and validation rows; without any of the latter valid.n is 0. `table` is the second table, or
 * NULL: where set says so, valid are rows of it, and training has all of t. Fails: ACF_EUSAGE (a second table is needed
 * and missing). */
acf_status acf_valid_split(const acf_table *t, const acf_table *table, const acf_train_settings *set,
                           acf_row_split *out);

/* Sets tr->target: the number of target cells of the validation rows under their masks. Fails: ACF_EMEMORY. */
acf_status acf_valid_count(acf_trainer *tr);

/* Target cells of a validation; 0: there is no validation. */
int64_t acf_valid_cells(const acf_trainer *tr);

/* acf_trainer_validate with the weights in `value`. */
acf_status acf_valid_score(acf_trainer *tr, double *nll);

/* Properties of the validation on rows that do not depend on the network. */
typedef struct acf_valid_facts {
    double slopes; /* Σ log |dz/dt|, added to the sum of log p */
    double weight; /* divisor of the sum */
    int64_t most;  /* most target cells of a batch */
    bool plain;    /* every batch is full of rows with target cells, and all rows count alike: a device may go through
                    * them on its own */
} acf_valid_facts;
acf_status acf_valid_look(acf_trainer *tr, acf_valid_facts *out);

#endif
