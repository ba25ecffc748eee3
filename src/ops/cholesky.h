/* The Cholesky factor of one small matrix, in double. */
#ifndef ACF_OPS_CHOLESKY_H
#define ACF_OPS_CHOLESKY_H

#include <stdint.h>

/* l (n,n) row-major, lower: the Cholesky factor of a, whose lower half it holds on entry; the upper half is not touched. Returns the first place whose pivot is not
 * above `least`, where l is of no use, or -1 when there is none. */
int64_t acf_cholesky(double *l, int64_t n, double least);

#endif
