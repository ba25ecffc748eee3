/* Computes the interval of a number from draws or from a distribution.
 *
 * Central: a 90 % interval leaves equal shares below and above. Draws use Weibull's plotting positions: the k-th of
 * m sorted draws is at k/(m+1). One more draw from the same distribution is then inside with probability `level` for
 * every m from acf_interval_draws(level) on. The values of a distribution are at the middle of their weight.
 *
 * This holds if all values differ. An interval that ends on a value shared by many cells covers all of them, so
 * central intervals of whole numbers and spikes cover more than the level. With ties, end values are therefore left
 * out while that brings coverage closer to `level` and not much below it (docs/math.md, 11). Equal draws alone are
 * not evidence of ties: draws from a donor repeat its cell, but the true value need not equal it. */
#ifndef ACF_TABLE_INTERVAL_H
#define ACF_TABLE_INTERVAL_H

#include <stdint.h>

/* Values that several cells of a column share, ascending: at least ACF_SHARED_CELLS cells, and one cell in
 * ACF_SHARED_MOST. */
enum { ACF_SHARED_CELLS = 3, ACF_SHARED_MOST = 50 };
typedef struct acf_shared {
    int n;
    double value[ACF_SHARED_MOST];
} acf_shared;

/* Adds a value greater than those before, found in `cells` of `all` cells. It is kept if it counts as shared. */
void acf_shared_count(acf_shared *s, double value, int64_t cells, int64_t all);
/* The shared values of n cells x, which are sorted in place. */
void acf_shared_of(acf_shared *s, double *x, int64_t n);

typedef struct acf_interval {
    double low, high; /* both inclusive */
} acf_interval;

/* A distribution: n values, ascending, with weights above 0. The caller owns the memory. */
typedef struct acf_weighted {
    int64_t n;
    double *value, *weight;
} acf_weighted;

/* Appends n ascending values of this weight each; the caller has reserved memory for them. */
void acf_weighted_add(acf_weighted *d, const double *value, int64_t n, double each);

/* The interval that holds `level` of a distribution. Here a shared value at an end is fully inside, as its presence
 * does not depend on draws. */
acf_interval acf_interval_of_weighted(const acf_weighted *d, double level, const acf_shared *s);

/* The interval of m >= 1 draws, ascending. 0 < level < 1. s: values that cells share; NULL: values that several
 * draws have. */
acf_interval acf_interval_central(const double *x, int64_t m, double level);
acf_interval acf_interval_of(const double *x, int64_t m, double level, const acf_shared *s);

/* The fewest draws for an interval of this level: (m+1)(1-level)/2 >= 1. With fewer, it ends at the smallest and the
 * largest draw, and covers less. */
int64_t acf_interval_draws(double level);

#endif
