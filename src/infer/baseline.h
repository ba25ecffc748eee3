/* The baselines that an imputer has to beat: column means, and chained linear regressions.
 *
 * The linear baseline is known as chained equations (mice, scikit-learn's IterativeImputer). Missing cells start at
 * the mean of their column. Each column with missing cells is then predicted from all others and its missing cells
 * take the prediction, column after column, for several sweeps:
 *
 *     numbers   Bayesian ridge regression       classes   multinomial logistic regression with a ridge
 *
 * (regress.h). Predictors are standardised numbers and one indicator per class. Draws continue with the same sweeps.
 * A number takes the value of an observed cell with a close prediction (predictive mean matching, as in mice): draws
 * are always observed values, and ties are broken at random. A class is drawn by its probability. There are no
 * tuning parameters; everything is determined by the seed.
 *
 * Limits: a regression sees at most 20,000 rows, evenly spaced, and 100 predictors, those with the strongest
 * correlation. A class column has at most 30 indicators, for its most frequent classes; other classes are drawn by
 * their frequency and never predicted. Memory: three times the table, plus once for every indicator of a class
 * column. One thread. */
#ifndef ACF_INFER_BASELINE_H
#define ACF_INFER_BASELINE_H

#include "table/table.h"

/* out (N,D): the table with each missing cell at its column's mean or most frequent class, the lowest of equals. A
 * column without observed cells has 0. Fails: ACF_EMEMORY. */
acf_status acf_baseline_mean(const acf_table *t, double *out);

/* A fitted linear baseline: one thread at a time. */
typedef struct acf_baseline acf_baseline;

/* Fits to the table and completes it. Keeps t. Gives *out; free with acf_baseline_free. Fails: ACF_EMEMORY,
 * ACF_ENUMERIC. */
acf_status acf_baseline_create(const acf_table *t, uint64_t seed, acf_baseline **out);
void acf_baseline_free(acf_baseline *b); /* NULL is allowed */

/* out (N,D): the table with each missing cell at its prediction or most probable class, at any time the same.
 * Observed cells come back bit for bit. */
void acf_baseline_point(const acf_baseline *b, double *out);

/* out (N,D): the table completed by the next draw. The first call runs the burn-in and takes longer. Fails:
 * ACF_EMEMORY, ACF_ENUMERIC. */
acf_status acf_baseline_draw(acf_baseline *b, double *out);

#endif
