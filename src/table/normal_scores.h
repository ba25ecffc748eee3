/* Normal scores: a monotone map of one column that makes its distribution nearly normal. It draws in heavy tails and
 * spreads out spikes.
 *
 *     z = Φ⁻¹(F(t))       F = (n F_n + a Φ) / (n + a)       t: standardised value; F_n: share of n observed ones below
 *
 * F is the posterior distribution function under the prior belief that the column is normal. The prior counts for a =
 * 10 observations. With few observations the map is near the identity. Gaps and unobserved tails keep some of the
 * prior's mass, so the slope is never zero. Values of a column with a step are spread over the step's width
 * (resolution.h), as in training.
 *
 * The stored map is piecewise linear, with at most ACF_NORMAL_SCORES_CURVE knots on that curve. Knots are added where
 * the line is farthest from the curve, until the distance is nowhere above 0.02 plus half the curve's own standard
 * error. Forward map, inverse and slope are therefore exact: the maps are each other's inverse to rounding and cost a
 * binary search. Beyond the observed values six knots follow their tail (tail.h), and then the last piece continues
 * without end. On the observed values of a tail, a line and a smooth curve give the same density within 1 %. */
#ifndef ACF_TABLE_NORMAL_SCORES_H
#define ACF_TABLE_NORMAL_SCORES_H

#include "base/real.h"
#include "base/status.h"

#include <stdint.h>

#define ACF_NORMAL_SCORES_CURVE 64 /* knots of a fitted line, without its tails */
#define ACF_NORMAL_SCORES_TAIL 6   /* knots of each tail, beyond the observed values */
#define ACF_NORMAL_SCORES_KNOTS 96 /* largest number of knots of a map, with those that lead to its ends */

/* t and z ascend strictly, with finite slopes between. n = 0: the identity, else n >= 2. The holder of the map owns
 * them. */
typedef struct acf_normal_scores {
    int32_t n;
    double *t, *z; /* (n) each, in one block that begins at t */
} acf_normal_scores;

/* Fits the map to n standardised values t in ascending order, spread over `step` (0: not spread). Gives the knots; free
 * with acf_normal_scores_free. The map is the identity if no value is farther than 5 from the mean and none has more
 * than a tenth of the cells, or if there are at most three different values. Normal scores bend straight relations
 * between columns, so a column that is only skewed or bimodal is left alone. Fails: ACF_EMEMORY. */
acf_status acf_normal_scores_fit(const double *t, int64_t n, double step, acf_normal_scores *out);

/* Ends of a bounded column, standardised: no value lies beyond them. Infinite: no end. */
typedef struct acf_normal_scores_ends {
    double low, high;
    double from, to; /* most values lie between; a map that is the identity begins to bend there */
} acf_normal_scores_ends;

/* Bends w, given by acf_normal_scores_fit, towards these ends. Beyond its outermost knot the distance to the end
 * shrinks by the same factor for every step in z, so no z maps beyond the end and no mass piles up on it. Fails:
 * ACF_EMEMORY; w is then unchanged. */
acf_status acf_normal_scores_bend(acf_normal_scores *w, const acf_normal_scores_ends *ends);

/* Memory for n knots, which the caller sets. Fails: ACF_EMEMORY. */
acf_status acf_normal_scores_create(int32_t n, acf_normal_scores *out);
void acf_normal_scores_free(acf_normal_scores *w); /* all zeros is allowed */

/* Are these knots a valid map? Check what a file holds before use. */
bool acf_normal_scores_valid(const acf_normal_scores *w);

/* The line through n >= 2 knots at v, from one coordinate to the other. It uses the piece that holds v, or the
 * outermost piece on its side, and starts from the nearer end of the piece, so both ends come out exactly.
 * acf_knots_piece is the number of that piece. */
ACF_BOTH int32_t acf_knots_piece(const double *knot, int32_t n, double v) {
    int32_t lo = 0, hi = n - 1;
    while (hi - lo > 1) {
        int32_t middle = (lo + hi) / 2;
        if (v < knot[middle])
            hi = middle;
        else
            lo = middle;
    }
    return lo;
}
ACF_BOTH double acf_knots_at(const double *from, const double *to, int32_t n, double v) {
    const int32_t k = acf_knots_piece(from, n, v);
    const double slope = (to[k + 1] - to[k]) / (from[k + 1] - from[k]);
    return v - from[k] < from[k + 1] - v ? to[k] + (v - from[k]) * slope : to[k + 1] - (from[k + 1] - v) * slope;
}

double acf_normal_scores_forward(const acf_normal_scores *w, double t);
double acf_normal_scores_inverse(const acf_normal_scores *w, double z);
double acf_normal_scores_log_slope(const acf_normal_scores *w,
                                   double t); /* log dz/dt; at a knot that of the piece above */

#endif
