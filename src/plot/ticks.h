/* Ranges of axes, and the round numbers or dates written along them. Only arithmetic, no drawing.
 *
 * All finite doubles are allowed, up to the largest: a range is widened until neighbouring labels differ, and limited
 * so that its width is finite. Labels do not depend on the locale. */
#ifndef ACF_PLOT_TICKS_H
#define ACF_PLOT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_range {
    double lo, hi; /* lo < hi, both finite, hi - lo finite */
} acf_range;

/* The range of the finite values among v[0], v[stride], ... (n of them). None: 0..1. Always usable: see
 * acf_range_usable. */
acf_range acf_range_of(const double *v, int64_t n, int64_t stride);
/* The range of most of n values in ascending order; n may be 0. Leaves out two in a thousand at each end, and of a
 * heavy tail all values farther from the median than three times the distance of the 5th or 95th percentile. */
acf_range acf_range_middle(const double *sorted, int64_t n);
/* Widens a range that is empty, or too narrow for its numbers; limits one that is too wide for a double. */
acf_range acf_range_usable(double lo, double hi);
/* Adds `part` of its width on each side. */
acf_range acf_range_padded(acf_range r, double part);

#define ACF_TICKS_MAX 16
#define ACF_TICK_LABEL_MAX 48

typedef struct acf_ticks {
    int n;
    double at[ACF_TICKS_MAX];
    char label[ACF_TICKS_MAX][ACF_TICK_LABEL_MAX];
} acf_ticks;

/* At most `most` round numbers (1, 2 or 5 times a power of ten apart) inside the range, and at least two if most >= 4.
 * unit > 0: the numbers are times, `unit` seconds each since 1970-01-01 UTC, and the ticks are round dates or times of
 * day. Labels have as many decimals as they need to differ: 0.25, 20k, 1.5M, 2e-07. */
acf_ticks acf_ticks_make(acf_range r, double unit, int most);

/* A number for display, with at most that many significant digits: 12, 0.25, 1.5M, 2e-07. Returns out. */
char *acf_tick_number(char out[ACF_TICK_LABEL_MAX], double v, int digits);
/* A count with thousands separators: 1,234,567. */
char *acf_tick_count(char out[ACF_TICK_LABEL_MAX], int64_t n);

#endif
