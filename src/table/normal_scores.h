/* A monotone map of one column that makes its distribution nearly normal: heavy tails are drawn in, spikes spread out.
 *
 *     z = Φ⁻¹(F(t))       F = (n F_n + a Φ) / (n + a)       t: standardised value; F_n: share of the n observed ones below it
 *
 * F is what n observations make of the prior belief that the column is normal, worth a = 10 of them: with few observations the map
 * is near the identity, and gaps and tails where nothing was observed keep some of the prior's mass, so that the slope is never
 * zero. Values of a column with a step are spread over the step's width (resolution.h), as training spreads them.
 *
 * What is stored is a line through at most ACF_NORMAL_SCORES_CURVE points of that curve. A knot is put where the line misses most, until it
 * misses nowhere by more than 0.02 and half the curve's own standard error. So forward, inverse and slope are exact, each
 * other's inverse to rounding, and cost a binary search; beyond the observed
 * values it follows their tail by six knots (tail.h), and then its last piece goes on for ever. On the observed values of a tail a
 * line and a smooth curve give the same density within 1 %. */
#ifndef ACF_TABLE_NORMAL_SCORES_H
#define ACF_TABLE_NORMAL_SCORES_H

#include "base/real.h"
#include "base/status.h"

#include <stdint.h>

#define ACF_NORMAL_SCORES_CURVE 64 /* knots of a fitted line, between its tails */
#define ACF_NORMAL_SCORES_TAIL 6   /* of it, on either side, for what is beyond the observed values */
#define ACF_NORMAL_SCORES_KNOTS 96 /* of any: with those that lead to its ends */

/* Both ascending strictly, with finite slopes between; n = 0: the identity, else n >= 2. Owned by who holds the warp. */
typedef struct acf_normal_scores {
    int32_t n;
    double *t, *z; /* (n) each, in one block that begins at t */
} acf_normal_scores;

/* Of the n standardised values t in ascending order, spread over `step` (0: not). Gives the knots; free with acf_normal_scores_free. The
 * identity where nothing calls for more: no value is farther than 5 from the mean, none has more than a tenth of the cells, or there
 * are no more than three different ones. A warp bends straight relations between columns, so a column that is only skewed or has two humps is better left alone.
 * Fails: ACF_EMEMORY. */
acf_status acf_normal_scores_fit(const double *t, int64_t n, double step, acf_normal_scores *out);

/* Ends of a column that no value is beyond, standardised; infinite: there is none. */
typedef struct acf_normal_scores_ends {
    double low, high;
    double from, to; /* most values lie between: where a map that would be the identity begins to bend */
} acf_normal_scores_ends;

/* Bends w, which acf_normal_scores_fit gave, towards these ends: from its outermost knot on, the distance to the end shrinks by the same factor for the same step
 * in z, so that no z is beyond the end and no mass piles up on it. Fails: ACF_EMEMORY, and then w is as it was. */
acf_status acf_normal_scores_bend(acf_normal_scores *w, const acf_normal_scores_ends *ends);

/* Room for n knots, to be filled in. Fails: ACF_EMEMORY. */
acf_status acf_normal_scores_create(int32_t n, acf_normal_scores *out);
void acf_normal_scores_free(acf_normal_scores *w); /* one of zeros is allowed */

/* Are these knots a warp? What a file holds is asked before it is used. */
bool acf_normal_scores_valid(const acf_normal_scores *w);

/* The line through n >= 2 knots at v, from one coordinate to the other: by the piece v is in, or the outermost one on its side, and from the
 * nearer end of it, so that both ends come out exactly. acf_knots_piece is the number of that piece. */
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
