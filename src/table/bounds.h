/* The bounds of a real column: what no value of it can be beyond.
 *
 * A tail goes on beyond the last observed value, unless the column says plainly that it does not, or the user has declared it:
 *
 *     values pile up at an end          a rating of 1 to 10, a reading that is cut off at 0.1      that end is a bound, and is filled
 *     no value below 0, and some near   lengths, amounts, counts, shares                           0 is the lower bound
 *     the same, and some just below 1   shares; 100: percentages                                   1 or 100 is the upper bound
 *
 * A bound at 0 that is not needed does no harm: hardly any mass lies near it. */
#ifndef ACF_TABLE_BOUNDS_H
#define ACF_TABLE_BOUNDS_H

#include "table/table.h"

/* -INFINITY and INFINITY: there is none. Filled: values pile up there. */
typedef struct acf_bounds {
    double low, high;
    bool low_filled, high_filled;
} acf_bounds;

/* Of n >= 1 ascending values of this column; of a declared range, widened to the values, only whether its ends are filled. */
acf_bounds acf_bounds_find(const double *sorted, int64_t n, const acf_column *column);

/* How many values there are equal to the one at `at`, counted from there in steps of by, 1 or -1; 0 where `at` is no place in the list. */
int64_t acf_bounds_equal(const double *sorted, int64_t n, int64_t at, int by);

/* The declared range alone, widened to the values. */
acf_bounds acf_bounds_declared(const double *sorted, int64_t n, const acf_column *column);

#endif
