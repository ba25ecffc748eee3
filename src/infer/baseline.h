/* What an imputer has to beat: column means, and linear regression in turn.
 *
 * The linear baseline is what people know as chained equations (mice, scikit-learn's IterativeImputer). Holes begin with the mean
 * of their column; then every column with holes is predicted from all others, its holes take the prediction, and so on, column
 * after column, for some sweeps:
 *
 *     numbers   Bayesian ridge regression                         classes   multinomial logistic regression, a ridge on it
 *
 * (regress.h). Predictors are standardised numbers and one indicator a class. Draws go on from there: the same sweeps, but a number
 * takes the value of an observed cell whose prediction is close (predictive mean matching, as mice does: a draw is always a value
 * that occurs; of cells that are equally close one is taken by lot), a class is drawn by its probability. Nothing has to be chosen, and nothing is random but by seed.
 *
 * Bounded work: a regression sees at most 20,000 rows, evenly spaced, and 100 predictors, those that go along with the column most;
 * a class column has at most 30 indicators, for its most frequent classes; the others are drawn as often as they occur and never
 * guessed. Memory: the table three times, and once more for every indicator a class column has. On one thread. */
#ifndef ACF_INFER_BASELINE_H
#define ACF_INFER_BASELINE_H

#include "table/table.h"

/* out (N,D): the table with each hole at its column's mean, or its most frequent class, the lowest of equals. A column without
 * observed cells has 0. Fails: ACF_EMEMORY. */
acf_status acf_baseline_mean(const acf_table *t, double *out);

/* A fitted linear baseline: one thread at a time. */
typedef struct acf_baseline acf_baseline;

/* Fits to the table and completes it. Keeps t. Gives *out; free with acf_baseline_free. Fails: ACF_EMEMORY, ACF_ENUMERIC. */
acf_status acf_baseline_create(const acf_table *t, uint64_t seed, acf_baseline **out);
void acf_baseline_free(acf_baseline *b); /* NULL is allowed */

/* out (N,D): the table with each hole at its prediction, or its most probable class; the same at any time. Observed cells come back
 * to the bit. */
void acf_baseline_point(const acf_baseline *b, double *out);

/* out (N,D): the table completed by the next draw. The first call settles the chain and takes longer. Fails: ACF_EMEMORY,
 * ACF_ENUMERIC. */
acf_status acf_baseline_draw(acf_baseline *b, double *out);

#endif
