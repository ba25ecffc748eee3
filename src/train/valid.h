/* What training on a table is validated on.
 *
 *     cells    held-out cells of the training rows, each given the others of its row: an imputation's query
 *     rows     whole rows, which training never sees, with masks drawn from those of training: training's own query
 *     table    the same with the rows of a second table
 *
 * Masks and noise of rows are keyed by (seed, row, ACF_NOISE_FIXED): the same at every validation, and none of a
 * training step's. Held-out rows score  Σ -log p(x_u | x_o) / Σ |u|  or, where the loss divides each row by its
 * modelled columns (`loss-per` column),  mean of -log p / |u|. At most ACF_VALID_MOST rows are asked, drawn by seed, so
 * that validation costs little beside an epoch of a large table. */
#ifndef ACF_TRAIN_VALID_H
#define ACF_TRAIN_VALID_H

#include "train/trainer.h"

/* Enough to choose among weights: on the same rows and masks their scores differ by far less than each varies with the
 * rows. */
#define ACF_VALID_MOST 10000

/* Which rows of t are trained on, and which validate; without any of the latter valid.n is 0. `table` is the second
 * one, NULL: there is none; where set says so, valid are rows of it, and training has all of t. Fails: ACF_EUSAGE (a
 * second table is asked for and missing). */
acf_status acf_valid_split(const acf_table *t, const acf_table *table, const acf_train_settings *set,
                           acf_row_split *out);

/* Sets tr->asked: how many cells masks ask of the rows that validate. Fails: ACF_EMEMORY. */
acf_status acf_valid_count(acf_trainer *tr);

/* Cells that a validation asks for; 0: nothing is validated. */
int64_t acf_valid_cells(const acf_trainer *tr);

/* acf_trainer_validate with the weights in `value`. */
acf_status acf_valid_score(acf_trainer *tr, double *nll);

/* What validation on rows is known to be before any network is asked. */
typedef struct acf_valid_facts {
    double slopes; /* Σ log |dz/dt|, added to the sum of log p */
    double weight; /* what the sum is divided by */
    int64_t most;  /* cells that a batch asks for at most */
    bool plain;    /* every batch is full of rows that ask, and all rows count alike: a device may go through them by
                      itself */
} acf_valid_facts;
acf_status acf_valid_look(acf_trainer *tr, acf_valid_facts *out);

#endif
