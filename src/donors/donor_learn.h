/* What an archive learns from its rows: how far apart two rows are, as each column sees it.
 *
 * Rows of a column j are asked for their own cell, each given the rest of its row and looked up among all others; near_jk, other_jk, apart_j, ε_j and the scale are
 * what makes Σ log q(x_j) greatest, less a little for numbers that are far from what is expected. With w_i the weight of donor i and r_i ∝ w_i q_i(x_j) what it has
 * to do with the cell once that is seen,
 *
 *     ∂ log q / ∂C_i = w_i - r_i
 *
 * so that columns in which rows with the right value are nearer than others come to count. By Adam on batches of rows; ε and scale follow r by EM, a little at a
 * time. Columns are learned side by side, each by one thread: the same bits for any number of them. docs/math.md, 17. */
#ifndef ACF_DONORS_DONOR_LEARN_H
#define ACF_DONORS_DONOR_LEARN_H

#include "donors/donors.h"

/* near, other and apart are what was found times this: alone, donors must also say something where none is near; in a model there is a network beside them, and they may
 * keep to what is nearest (docs/RESULTS.md). */
#define ACF_DONORS_SHARPER 1.4

/* Sets near, other, apart, differ, scale and gain of m, which has all else. Cells that hold holds out (NULL: none) are not asked for. Fails: ACF_EMEMORY. */
acf_status acf_donors_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads);

#endif
