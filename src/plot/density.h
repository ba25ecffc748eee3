/* Distribution of a column's values for pictures: a kernel density for numbers, shares for repeated values.
 *
 * It handles real columns. Bounds: the estimate is reflected at the smallest and the largest value, so nothing leaks
 * below zero; curves that are compared have common bounds. Several modes: the kernel width maximises the leave-one-out
 * likelihood of the values. The deviation alone would merge modes into one. Rounded values: the kernel is never
 * narrower than their spacing, so no comb appears. Spikes: a value that makes up a tenth of the column is handled apart
 * (acf_spike_find), since it has no density. */
#ifndef ACF_PLOT_DENSITY_H
#define ACF_PLOT_DENSITY_H

#include "base/status.h"

#include <stdint.h>

/* Sorts in ascending order and drops values that are not finite; returns how many remain. */
int64_t acf_values_sort(double *v, int64_t n);

/* Number of distinct values among n sorted ones, counted up to `most` + 1. */
int64_t acf_values_distinct(const double *sorted, int64_t n, int64_t most);

/* Standard deviation of the kernel for n sorted values; 0 if they are all equal or fewer than two. */
double acf_kde_width(const double *sorted, int64_t n);

typedef struct acf_kde {
    double width;       /* 0: no curve */
    double least, most; /* bounds, at which the curve is reflected; all values lie within */
    double share;       /* share of the column that these values make up: the curve's area */
} acf_kde;

/* The bounds of two lists of sorted values, either of which may be empty; share 1, width 0. */
acf_kde acf_kde_of(const double *a, int64_t n_a, const double *b, int64_t n_b);

/* y[g]: density of the sorted values at x[g], G ascending points; zero everywhere if n or the width is 0. */
void acf_kde_curve(const double *sorted, int64_t n, acf_kde k, const double *x, int G, double *y);

/* Smooths a density p at G equally spaced points with a Gaussian kernel. The kernel's width is computed from p, a fifth
 * of the deviation or less. Steps left by a transformation become slopes and do not look like modes; wider features
 * stay. Reflected at both ends, so nothing leaks and the area stays the same. out (G) may not be p. */
void acf_curve_smooth(const double *p, int G, double *out);

/* Finds the most frequent of n sorted values. Returns true if it makes up at least ACF_SPIKE_SHARE of them; *share is
 * then its share. */
#define ACF_SPIKE_SHARE 0.1
bool acf_spike_find(const double *sorted, int64_t n, double *value, double *share);

/* Removes the copies of a value from n sorted ones; returns how many remain. */
int64_t acf_values_without(double *sorted, int64_t n, double value);

#endif
