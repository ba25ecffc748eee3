/* The tail of a column beyond its observed values: a generalised Pareto distribution, fitted to the outer tenth, 10 to
 * 100 values.
 *
 *     excess over u  ~  GPD(shape, scale)       P(X > u) = share
 *     a share p of all is beyond u + scale/shape ((share/p)^shape - 1)
 *
 * It is fitted by L-moments of the excesses, which one outlier changes little. A prior worth 10 values pulls the shape
 * towards 0, an exponential tail. The shape is at most 0.5: heavier tails have no variance, and a few rows cannot show
 * them. The mean excess equals that of the observed values. */
#ifndef ACF_TABLE_TAIL_H
#define ACF_TABLE_TAIL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_tail_fit {
    double share, scale, shape; /* scale 0: no fit */
} acf_tail_fit;

/* Fits the upper tail of n ascending values, or the lower one as the upper tail of the negative values. */
acf_tail_fit acf_tail_find(const double *sorted, int64_t n, bool upper);

/* Distance from u of the value that a share p > 0 of all is beyond. */
double acf_tail_beyond(const acf_tail_fit *tail, double p);

#endif
