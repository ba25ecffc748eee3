/* Bounds of a column: see bounds.h. */
#include "table/bounds.h"

#include <math.h>

#define PILE_LEAST 4    /* values pile up at an end if it has at least this many cells and */
#define PILE_SHARE 0.01 /* this share of all cells, */
#define PILE_STEEP 2    /* or this many times the cells of the next value */
#define NEAR_ONE                                                                                                       \
    0.25 /* maximum distance of the largest value from 1 or 100, relative to the length of the upper
                         * tenth */

int64_t acf_bounds_equal(const double *sorted, int64_t n, int64_t at, int by) {
    int64_t count = 0;
    for (int64_t i = at; i >= 0 && i < n && sorted[i] == sorted[at]; i += by) count++;
    return count;
}

/* Whether values pile up at this end. */
static bool piled(const double *sorted, int64_t n, bool upper) {
    const int by = upper ? -1 : 1;
    const int64_t end = upper ? n - 1 : 0, last = acf_bounds_equal(sorted, n, end, by), next = end + by * last;
    if (last < PILE_LEAST || last == n) return false;
    return (double)last >= PILE_SHARE * (double)n || last >= PILE_STEEP * acf_bounds_equal(sorted, n, next, by);
}

static double quantile(const double *sorted, int64_t n, double share) {
    return sorted[(int64_t)(share * (double)(n - 1))];
}

acf_bounds acf_bounds_declared(const double *sorted, int64_t n, const acf_column *column) {
    acf_bounds b = {.low = -INFINITY, .high = INFINITY};
    if (!column->bounded) return b;
    b.low = fmin(column->low, sorted[0]), b.high = fmax(column->high, sorted[n - 1]);
    b.low_filled = b.low == sorted[0] && piled(sorted, n, false);
    b.high_filled = b.high == sorted[n - 1] && piled(sorted, n, true);
    return b;
}

acf_bounds acf_bounds_find(const double *sorted, int64_t n, const acf_column *column) {
    const double least = sorted[0], most = sorted[n - 1];
    acf_bounds b = acf_bounds_declared(sorted, n, column);
    if (column->bounded) return b;
    if (least == most) return (acf_bounds){least, most, true, true};
    b.low_filled = piled(sorted, n, false), b.high_filled = piled(sorted, n, true);
    if (b.low_filled)
        b.low = least;
    else if (least >= 0 && least <= quantile(sorted, n, 0.1) - least)
        b.low = 0;
    if (b.high_filled)
        b.high = most;
    else if (b.low >= 0 && most <= 100) {
        const double end = most <= 1 ? 1 : 100;
        if (end - most <= NEAR_ONE * (most - quantile(sorted, n, 0.9))) b.high = end;
    }
    return b;
}
