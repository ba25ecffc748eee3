/* Predicts the numbers of the stored rows (predictor.h), so that rows with similar predictions count as near.
 *
 * Coordinates of a number: its encoded value z, cut at ±6. Coordinates of a class column with V values: V - 1 of
 * ([x = v] - π_v) / √(π_v (1 - π_v)), π_v the share of cells that have the value. Columns of one value have none, nor
 * do columns with more classes than the limits allow. Only numbers are predicted. */
#ifndef ACF_DONORS_DONOR_PREDICT_H
#define ACF_DONORS_DONOR_PREDICT_H

#include "donors/donors.h"

#define ACF_PREDICTED_FARTHEST 1e6 /* bound of predicted values: a file may hold any Gaussian; costs must stay finite */

/* Allocates m->predictor for m's columns, not learned yet; NULL where there is no number to predict. m has its values.
 * Fails: ACF_EMEMORY. */
acf_status acf_donors_predict_alloc(acf_donors *m);

/* Is column j a number that is predicted? */
static inline bool acf_donors_predicts(const acf_donors *m, int64_t j) {
    return m->number[j] && m->predictor && m->predictor->first[j + 1] > m->predictor->first[j];
}

/* Learns m->predictor from the rows, which are those of t, and sets m->predicted of every row from its other cells.
 * Cells that hold holds out are not used; hold and t may be NULL. With few rows, five-fold cross-fitting: each part is
 * predicted by a Gaussian of the other four. A row is closer to a prediction that it was fitted to than a new row would
 * be, and donors would look better than they are. Fails: ACF_EMEMORY. */
acf_status acf_donors_predict_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads);

/* Writes the coordinates of a value of column k, z with this code, to x (P) where the column's begin; nothing if it has
 * none. */
void acf_donors_coordinates(const acf_donors *m, int64_t k, acf_real z, int32_t code, double *x);

/* The predicted value of column j for a row with these coordinates, cut at ±ACF_PREDICTED_FARTHEST, and its residual
 * variance (acf_predictor_cell_both). */
acf_real acf_donors_predicted(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                              const uint8_t *known, int64_t j, double *variance);

#endif
