/* The resolution of a column: the step its values were rounded to when they were written down.
 *
 *     9.4 9.8 10.1 10.53333         0.1         whole numbers   1         0.455 0.365 0.53        0.005
 *
 * Rounded values are repeated, and a density that is fitted to repeated values rises without limit there: all that it gains by
 * that is lost everywhere else. So noise of one step's width is added to such values while a model learns them, and what it
 * answers is rounded back (encode.h).
 *
 * A step is 1, 2, 2.5 or 5 times a power of ten, and of seconds on a clock also 15 or 30 s, 1, 2, 5, 10, 15 or 30 min, 1, 2, 3, 6 or 12 h or a day. The coarsest is taken that 95 % of the cells are multiples of, no value counting
 * for more than 1 % of the cells: the rest may be typing errors or thirds, and a spike at 0 is a multiple of everything. Steps
 * other than 1, 0.1, 0.01, ..., a minute, an hour and a day are found in columns of 8 distinct values or more: fewer are multiples of 5 by chance. A column that
 * has no such step but repeats 5 % of its cells (rain: many exact zeros among long fractions) gets a power of ten below the mean
 * distance of its values. */
#ifndef ACF_TABLE_RESOLUTION_H
#define ACF_TABLE_RESOLUTION_H

#include <stdbool.h>
#include <stdint.h>

#define ACF_STEP_DECIMALS_MAX 18

/* Step every · 10^-decimals; every = 0: the column has none. */
typedef struct acf_resolution {
    int64_t every;
    int32_t decimals; /* 0..ACF_STEP_DECIMALS_MAX */
} acf_resolution;

/* Of n finite values in ascending order; clock: they count seconds. Looks at each some ten to a hundred times. */
acf_resolution acf_resolution_find(const double *sorted, int64_t n, bool clock);

/* The largest of the steps of a clock that every one of n ascending values is a multiple of; 0: there is none. */
double acf_resolution_clock(const double *sorted, int64_t n);

/* 0 when there is none. */
double acf_resolution_step(acf_resolution r);

/* x at the nearest multiple of the step: the very double that reading its decimal text gives. x itself when there is no step, or
 * when it is so far out that doubles are farther apart than steps. */
double acf_resolution_round(acf_resolution r, double x);

#endif
