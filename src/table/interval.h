/* The interval of a number, from draws or from its whole distribution.
 *
 * Central: of a 90 % interval as much lies below as above. Draws stand at Weibull's plotting positions, the k-th of m
 * sorted ones at k/(m+1), so that one more draw from the same distribution lies inside with probability `level`
 * whatever m is, from acf_interval_draws(level) on. The values of a distribution stand at the middle of their weight.
 *
 * That is so where all values differ. An interval that ends on a value which many cells share covers all of them: of
 * whole numbers and spikes, central intervals hold more than they promise. So values at the ends are left out as long
 * as what stays inside comes nearer to `level`, and is not much less (docs/math.md, 11). That draws have the same
 * value is no sign of it: those of a donor repeat its cell, which the truth will not. */
#ifndef ACF_TABLE_INTERVAL_H
#define ACF_TABLE_INTERVAL_H

#include <stdint.h>

/* Values that cells of a column share, ascending: those that at least ACF_SHARED_CELLS cells have, and one cell in ACF_SHARED_MOST. */
enum { ACF_SHARED_CELLS = 3, ACF_SHARED_MOST = 50 };
typedef struct acf_shared {
    int n;
    double value[ACF_SHARED_MOST];
} acf_shared;

/* One more value, greater than those before, which so many of all cells have. Is it shared, it is kept. */
void acf_shared_count(acf_shared *s, double value, int64_t cells, int64_t all);
/* Those of n cells x, which are sorted in place. */
void acf_shared_of(acf_shared *s, double *x, int64_t n);

typedef struct acf_interval {
    double low, high; /* both inside */
} acf_interval;

/* A distribution: n values, ascending, and their weights, each above 0; memory is the caller's. */
typedef struct acf_weighted {
    int64_t n;
    double *value, *weight;
} acf_weighted;

/* n ascending values of this weight each join it, for which it has room. */
void acf_weighted_add(acf_weighted *d, const double *value, int64_t n, double each);

/* The interval that holds `level` of a distribution. No draw decides which values it has, so a shared value at an end
 * is inside whole. */
acf_interval acf_interval_of_weighted(const acf_weighted *d, double level, const acf_shared *s);

/* Of m >= 1 draws, ascending. 0 < level < 1. s: values that are shared; NULL: whatever several draws have. */
acf_interval acf_interval_central(const double *x, int64_t m, double level);
acf_interval acf_interval_of(const double *x, int64_t m, double level, const acf_shared *s);

/* The fewest draws that an interval of this level is meant for: (m+1)(1-level)/2 >= 1. With fewer it ends at the least and the greatest, and holds less. */
int64_t acf_interval_draws(double level);

#endif
