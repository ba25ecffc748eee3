/* How the values of a column are spread: a kernel density for numbers, shares for values that repeat.
 *
 * Meant for pictures of real columns, so it meets what those bring. Bounds: the estimate is reflected at the smallest and the largest value,
 * so nothing leaks below zero; curves that are compared have common bounds. Several modes: the width of the kernel is chosen by how well each value is foretold by the others
 * (leave-one-out likelihood), not by the deviation alone, which smears modes into one. Rounded values: the kernel is never narrower
 * than their spacing, so no comb appears. Spikes: a value that makes up a tenth of the column is told apart (acf_spike_find), since
 * no density holds it. */
#ifndef ACF_PLOT_DENSITY_H
#define ACF_PLOT_DENSITY_H

#include "base/status.h"

#include <stdint.h>

/* Sorts upwards and drops what is not finite; returns how many remain. */
int64_t acf_values_sort(double *v, int64_t n);

/* Distinct values among n sorted ones, counted up to `most` + 1. */
int64_t acf_values_distinct(const double *sorted, int64_t n, int64_t most);

/* Standard deviation of the kernel for n sorted values; 0 when they are all equal or fewer than two. */
double acf_kde_width(const double *sorted, int64_t n);

typedef struct acf_kde {
    double width;       /* 0: there is no curve */
    double least, most; /* bounds, at which the curve is reflected; all values lie within */
    double share;       /* the part of the column these values are: the curve's area */
} acf_kde;

/* The bounds of two lists of sorted values, either of which may be empty; share 1, width 0. */
acf_kde acf_kde_of(const double *a, int64_t n_a, const double *b, int64_t n_b);

/* y[g]: density of the sorted values at x[g], G points upwards; zero everywhere when n or the width is 0. */
void acf_kde_curve(const double *sorted, int64_t n, acf_kde k, const double *x, int G, double *y);

/* A density p at G points, each as far from the next, averaged over a bell of its own width, a fifth of the deviation or less: steps that a transformation leaves in it
 * become slopes, and it is not taken for modes; what is wider stays. Reflected at both ends, so that nothing leaks and the area stays what it was. out (G) may not
 * be p. */
void acf_curve_smooth(const double *p, int G, double *out);

/* The most frequent of n sorted values where it makes up at least ACF_SPIKE_SHARE of them; *share is then its part, and true is
 * returned. */
#define ACF_SPIKE_SHARE 0.1
bool acf_spike_find(const double *sorted, int64_t n, double *value, double *share);

/* Takes the copies of a value out of n sorted ones; returns how many remain. */
int64_t acf_values_without(double *sorted, int64_t n, double value);

#endif
