/* The resolution of a column: the step that its values were rounded to when they were recorded.
 *
 *     9.4 9.8 10.1 10.53333         0.1         whole numbers   1         0.455 0.365 0.53        0.005
 *
 * Rounded values repeat, and a density fitted to repeated values rises there without limit, at the cost of all other
 * values. So training adds noise of one step's width to such values, and predictions are rounded back (encode.h).
 *
 * A step is 1, 2, 2.5 or 5 times a power of ten. For seconds on a clock it may also be 15 or 30 s, 1, 2, 5, 10, 15 or
 * 30 min, 1, 2, 3, 6 or 12 h or a day. The coarsest step is taken that divides 95 % of the cells, where no value counts
 * for more than 1 % of the cells: the rest may be typing errors or thirds, and a spike at 0 is a multiple of
 * everything. Steps other than 1, 0.1, 0.01, ..., a minute, an hour and a day need 8 distinct values or more, because
 * fewer are multiples of 5 by chance. If a column has no such step but 5 % of its cells repeat values (rain: many exact
 * zeros among long fractions), the step is a power of ten below the mean distance of its values. */
#ifndef ACF_TABLE_RESOLUTION_H
#define ACF_TABLE_RESOLUTION_H

#include <stdbool.h>
#include <stdint.h>

#define ACF_STEP_DECIMALS_MAX 18

/* The step every · 10^-decimals; every = 0: no step. */
typedef struct acf_resolution {
    int64_t every;
    int32_t decimals; /* 0..ACF_STEP_DECIMALS_MAX */
} acf_resolution;

/* Finds the resolution of n finite values in ascending order; clock: they are seconds. Visits each value about ten to a
 * hundred times. */
acf_resolution acf_resolution_find(const double *sorted, int64_t n, bool clock);

/* The largest clock step that divides every one of n ascending values; 0: none. */
double acf_resolution_clock(const double *sorted, int64_t n);

/* 0 if there is no step. */
double acf_resolution_step(acf_resolution r);

/* x at the nearest multiple of the step, exactly the double that its decimal text parses to. Returns x itself if there
 * is no step, or if doubles of that size are farther apart than steps. */
double acf_resolution_round(acf_resolution r, double x);

#endif
