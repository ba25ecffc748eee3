/* Scores the network and the donors on held-out cells, each predicted by itself. Each cell is predicted given all that
 * training saw of its row, and again given a random part of it: queries come with either, and donors that are best
 * for a row with one missing cell say little for a row with one known cell.
 *
 * A prediction F of a number is scored by its CRPS, E|X - x| - ½ E|X - X'| with X and X' of F, and of a class by the
 * same with |a - b| = [a ≠ b], which is half the Brier score. A mixture (1-h) F_net + h F_rows has
 *
 *     score(h) = (1-h) off_net + h off_rows - ½ [(1-h)² net_net + 2 h (1-h) net_rows + h² rows_rows],
 *
 * so five mean distances of a cell give the score of any h. Numbers are in standard deviations of their columns. The
 * likelihood is not used: donors have exactly the values that occur, so in a column of spikes they gain nats that say
 * nothing about where a cell lies. */
#ifndef ACF_TRAIN_DONOR_TRUST_CELLS_H
#define ACF_TRAIN_DONOR_TRUST_CELLS_H

#include "donors/donors.h"
#include "train/trainer.h"

#define ACF_DONOR_TRUST_CELLS 4000 /* held-out cells that are scored, at most, evenly spread */

/* Only the first of K ensemble members is scored; the others do not exist yet. Two values of different members are
 * farther apart than two of one by this much, so K members score better than one by (1 - 1/K) times half of it
 * (experiments/NOTES.md). It is added to net_net. */
#define ACF_DONOR_TRUST_APART 0.03

typedef struct acf_heldout_cell {
    int64_t row;
    int32_t column;
    bool of_class;             /* not a number */
    bool in_part;              /* predicted given a random part of the row; else given all that training saw of it */
    bool found;                /* it has donors; else nothing below is set */
    double peak, alike, given; /* of its donor search (donors.h) */
    double told;               /* of its column, acf_donor_trust_of_column */
    double off_net, off_rows;  /* mean distance from the true value */
    double net_net, net_rows, rows_rows; /* mean distance of two values */
    double better;                       /* q / p of the true value */
} acf_heldout_cell;

typedef struct acf_heldout {
    acf_heldout_cell *cell; /* owned, column after column */
    int64_t n;
} acf_heldout;

/* Queries the trainer's network, with the weights in `value`, and m for its held-out cells. Gives *a; free with
 * acf_heldout_free. Fails: ACF_EMEMORY and those of validation. */
acf_status acf_heldout_query(acf_trainer *tr, const acf_donors *m, acf_heldout *a);
void acf_heldout_free(acf_heldout *a);

/* known (D): the cells that cell c is predicted from. */
void acf_heldout_known(const acf_trainer *tr, const acf_heldout_cell *c, uint8_t *known);

/* Score with weight h less that of the network alone: below 0 is a gain. 0 where no donor was found. */
double acf_heldout_loss(const acf_heldout_cell *c, double h);

/* The donors' gain in column j, as a term of h. */
double acf_donor_trust_of_column(const acf_donors *m, int64_t j);

#endif
