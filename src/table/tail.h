/* The tail of a column beyond its observed values: a generalised Pareto distribution, fitted to the outer tenth, 10 to
 * 100 values.
 *
 *     excess over u  ~  GPD(shape, scale)       P(X > u) = share
 *     a share p of all is beyond u + scale/shape ((share/p)^shape - 1)
 *
 * It is fitted by L-moments of the excesses, which one outlier moves little. A prior worth 10 values holds the shape
 * near 0, an exponential tail. The shape is 0.5 at most: heavier tails have no variance, and a few rows cannot tell.
 * The mean excess is that of the observed values. */
#ifndef ACF_TABLE_TAIL_H
#define ACF_TABLE_TAIL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_tail_fit {
    double share, scale, shape; /* scale 0: nothing is known of the tail */
} acf_tail_fit;

/* Of n ascending values: the upper tail, or the lower one as that of the negative values. */
acf_tail_fit acf_tail_find(const double *sorted, int64_t n, bool upper);

/* How far beyond u the value is that a share p > 0 of all is beyond. */
double acf_tail_beyond(const acf_tail_fit *tail, double p);

#endif
