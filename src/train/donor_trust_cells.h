/* What the network and the archive say about held-out cells, each asked for by itself, and how they score against the truth: given all that training saw of the row, and again
 * given a part of it, because a model is asked both, and donors that are the best there is for a row of which one cell is missing tell little of a row of which one is known.
 *
 * A forecast F of a number is scored by its CRPS, E|X - x| - ½ E|X - X'| with X and X' of F, and of a class by the same with |a - b| = [a ≠ b], which is half the
 * Brier score. A mixture (1-h) F_net + h F_rows has
 *
 *     score(h) = (1-h) off_net + h off_rows - ½ [(1-h)² net_net + 2 h (1-h) net_rows + h² rows_rows],
 *
 * so that five mean distances of a cell say what any h would be worth. Numbers are in standard deviations of their columns. Not by the likelihood: rows have the
 * very values that occur, so that of a column of spikes they win nats which say nothing about where a cell lies. */
#ifndef ACF_TRAIN_DONOR_TRUST_CELLS_H
#define ACF_TRAIN_DONOR_TRUST_CELLS_H

#include "donors/donors.h"
#include "train/trainer.h"

#define ACF_DONOR_TRUST_CELLS 4000 /* held-out cells that are asked at most, evenly spread */

/* Only the first of a model's K members is asked; what the others will say is not known yet. Two values of different members are by so much farther apart than two of
 * one, which makes K members score better than one by (1 - 1/K) times half of it (docs/RESULTS.md), and is added to net_net. */
#define ACF_DONOR_TRUST_APART 0.03

typedef struct acf_heldout_cell {
    int64_t row;
    int32_t column;
    bool of_class; /* not a number */
    bool in_part;  /* asked given a part of the row, drawn by chance; else given all that training saw of it */
    bool found;    /* it has donors; else nothing below is known */
    double peak, alike, given;           /* of its look-up (donors.h) */
    double told;                         /* of its column, acf_donor_trust_of_column */
    double off_net, off_rows;            /* mean distance from the truth */
    double net_net, net_rows, rows_rows; /* of two values */
    double better;                       /* q / p of the truth */
} acf_heldout_cell;

typedef struct acf_heldout {
    acf_heldout_cell *cell; /* owned, column after column */
    int64_t n;
} acf_heldout;

/* Asks the trainer's network, with the weights in `value`, and m about its held-out cells. Gives *a; free with acf_heldout_free. Fails: ACF_EMEMORY and those of
 * validation. */
acf_status acf_heldout_query(acf_trainer *tr, const acf_donors *m, acf_heldout *a);
void acf_heldout_free(acf_heldout *a);

/* What cell c is given: known (D). */
void acf_heldout_known(const acf_trainer *tr, const acf_heldout_cell *c, uint8_t *known);

/* What is lost with h in place of the network alone: less than 0 is a gain. 0 where nothing was found. */
double acf_heldout_loss(const acf_heldout_cell *c, double h);

/* How much donors know of column j, as a number that goes into h. */
double acf_donor_trust_of_column(const acf_donors *m, int64_t j);

#endif
