/* The values of a column that has few: what is drawn for it is one of them.
 *
 * A model of a column describes a density, and a density leaves some of its mass between the values that occur: a score that is 0 or 0.83 and
 * nothing else is drawn as 0.01 or 0.4, too. Where nearly every cell repeats a value of another, a new cell will do so as well, and the nearest
 * value that was seen stands for what was drawn. */
#ifndef ACF_TABLE_SUPPORT_H
#define ACF_TABLE_SUPPORT_H

#include "base/status.h"
#include "table/resolution.h"

#define ACF_SUPPORT_MAX 256  /* different values */
#define ACF_SUPPORT_NEW 0.01 /* chance that a new cell has another value, at most */

/* Ascending strictly; n = 0: anything goes, else n >= 2. Owned by who holds it. */
typedef struct acf_support {
    int32_t n;
    double *value; /* (n) */
} acf_support;

/* Of n values in ascending order with this resolution. The chance of a value not yet seen is estimated by the share of cells whose value no other
 * cell has (Good and Turing). None where the values are all multiples of the step between the first and the last: rounding to the step gives
 * nothing else. Gives *out; free with acf_support_free. Fails: ACF_EMEMORY. */
acf_status acf_support_find(const double *sorted, int64_t n, acf_resolution r, acf_support *out);

/* Room for n values, to be filled in. Fails: ACF_EMEMORY. */
acf_status acf_support_create(int32_t n, acf_support *out);
void acf_support_free(acf_support *p); /* one of zeros is allowed */

/* Are they finite and ascending? What a file holds is asked before it is used. */
bool acf_support_valid(const acf_support *p);

/* The value nearest to x, the lower of two; x itself where there is none. NaN stays NaN. */
double acf_support_nearest(const acf_support *p, double x);

#endif
