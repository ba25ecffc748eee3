/* The bounds of a real column: no value lies beyond them.
 *
 * Tails extend beyond the last observed value, unless the data show a bound or the user has declared a range:
 *
 *     values pile up at an end          a rating of 1 to 10, readings cut off at 0.1 that end is a bound and filled
 *     no value below 0, and some near   lengths, amounts, counts, shares             0 is the lower bound
 *     the same, and some just below 1   shares; 100: percentages                     1 or 100 is the upper bound
 *
 * An unnecessary bound at 0 does no harm: hardly any mass lies near it. */
#ifndef ACF_TABLE_BOUNDS_H
#define ACF_TABLE_BOUNDS_H

#include "table/table.h"

/* -INFINITY and INFINITY: no bound. Filled: values pile up there. */
typedef struct acf_bounds {
    double low, high;
    bool low_filled, high_filled;
} acf_bounds;

/* Finds the bounds of n >= 1 ascending values of this column. A declared range is only widened to the values, and
 * its ends are tested for being filled. */
acf_bounds acf_bounds_find(const double *sorted, int64_t n, const acf_column *column);

/* Counts the values equal to the one at `at`, starting there in steps of by, 1 or -1. 0 if `at` is outside the list. */
int64_t acf_bounds_equal(const double *sorted, int64_t n, int64_t at, int by);

/* The declared range alone, widened to the values. */
acf_bounds acf_bounds_declared(const double *sorted, int64_t n, const acf_column *column);

#endif
