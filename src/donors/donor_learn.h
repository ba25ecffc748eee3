/* Learns the donors' distance: how much each column counts when donors are searched for another column.
 *
 * For a column j, each row's own cell is predicted given the rest of its row, with all other rows as donors. near_jk,
 * other_jk, apart_j, ε_j and the scale maximise Σ log q(x_j), with a small penalty for numbers far from their prior.
 * With w_i the weight of donor i, and r_i ∝ w_i q_i(x_j) its posterior responsibility for the cell,
 *
 *     ∂ log q / ∂C_i = w_i - r_i
 *
 * so columns gain weight if rows with the right value are nearer in them than others. Adam on batches of rows; ε and
 * the scale follow r by stochastic EM. Columns are learned in parallel, each by one thread: the same bits for any
 * number of threads. docs/math.md, 17. */
#ifndef ACF_DONORS_DONOR_LEARN_H
#define ACF_DONORS_DONOR_LEARN_H

#include "donors/donors.h"

/* near, other and apart are the learned values times this. Learning fits donors alone, which must also answer where no
 * row is near; in a model the networks answer there, so the donors may be sharper (experiments/NOTES.md). */
#define ACF_DONORS_SHARPER 1.4

/* Sets near, other, apart, differ, scale and gain of m, which has all else. Cells that hold holds out (NULL: none) are
 * not used as targets. Fails: ACF_EMEMORY. */
acf_status acf_donors_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads);

#endif
