/* What the rows of an archive are expected to have (predictor.h), so that rows can be near which expect the same.
 *
 * Coordinates of a number: its place z, cut at ±6. Of a class column with V values: V - 1 of them, ([x = v] - π_v) / √(π_v (1 - π_v)), π_v the share of cells that have
 * the value. Columns of one value, and those of more classes than there is room for, have none. Only numbers are expected. */
#ifndef ACF_DONORS_DONOR_PREDICT_H
#define ACF_DONORS_DONOR_PREDICT_H

#include "donors/donors.h"

#define ACF_PREDICTED_FARTHEST 1e6 /* that is expected: a file may have any Gaussian, and costs are to be numbers */

/* m->expect for m's columns, nothing learned yet; NULL where there is no number to expect. m has its values. Fails: ACF_EMEMORY. */
acf_status acf_donors_predict_alloc(acf_donors *m);

/* Is a number of column j expected? */
static inline bool acf_donors_predicts(const acf_donors *m, int64_t j) {
    return m->number[j] && m->predictor && m->predictor->first[j + 1] > m->predictor->first[j];
}

/* Learns m->expect from the rows, which are those of t, and sets m->expected of every row, by its other cells. Cells that hold holds out are not looked at; hold and t may
 * be NULL. With few rows, these are cut into five parts, and each is expected by a Gaussian of the other four: a row that a Gaussian knows is nearer to what it expects
 * than a new one will be, and donors would seem better than they are. Fails: ACF_EMEMORY. */
acf_status acf_donors_predict_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads);

/* Coordinates of a value of column k that lies at z and has this code: to x (P), where the column's begin. Nothing where it has none. */
void acf_donors_coordinates(const acf_donors *m, int64_t k, acf_real z, int32_t code, double *x);

/* What column j is expected to be of a row with these coordinates, cut at ±ACF_PREDICTED_FARTHEST, and the variance that is left (acf_predictor_cell_both). */
acf_real acf_donors_predicted(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                              const uint8_t *known, int64_t j, double *variance);

#endif
