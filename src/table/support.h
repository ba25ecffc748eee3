/* The support of a column with few values: draws for the column are one of them.
 *
 * A model describes a column by a density, and a density puts some mass between the values that occur: a score that is
 * 0 or 0.83 and nothing else is also drawn as 0.01 or 0.4. If nearly every cell repeats a value of another cell, a new
 * cell will too, so a draw is replaced by the nearest observed value. */
#ifndef ACF_TABLE_SUPPORT_H
#define ACF_TABLE_SUPPORT_H

#include "base/status.h"
#include "table/resolution.h"

#define ACF_SUPPORT_MAX 256  /* largest number of different values */
#define ACF_SUPPORT_NEW 0.01 /* largest chance that a new cell has another value */

/* Strictly ascending; n = 0: any value, else n >= 2. Owned by the struct that holds it. */
typedef struct acf_support {
    int32_t n;
    double *value; /* (n) */
} acf_support;

/* Finds the support of n values in ascending order with this resolution. The chance of a new value is estimated by the
 * share of cells whose value no other cell has (Good and Turing). The support is empty if the values are all multiples
 * of the step between the first and the last: rounding to the step gives the same. Gives *out; free with
 * acf_support_free. Fails: ACF_EMEMORY. */
acf_status acf_support_find(const double *sorted, int64_t n, acf_resolution r, acf_support *out);

/* Memory for n values, which the caller sets. Fails: ACF_EMEMORY. */
acf_status acf_support_create(int32_t n, acf_support *out);
void acf_support_free(acf_support *p); /* all zeros is allowed */

/* Are the values finite and ascending? Check what a file holds before use. */
bool acf_support_valid(const acf_support *p);

/* The value nearest to x, the lower of two; x itself for an empty support. NaN stays NaN. */
double acf_support_nearest(const acf_support *p, double x);

#endif
