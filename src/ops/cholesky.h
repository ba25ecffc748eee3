/* The Cholesky factor of one small matrix, in double. */
#ifndef ACF_OPS_CHOLESKY_H
#define ACF_OPS_CHOLESKY_H

#include <stdint.h>

/* On entry the lower half of l (n,n), row-major, holds a matrix a; on return its Cholesky factor. The upper half is
 * not touched. Returns the first index whose pivot is not above `least`, in which case l is undefined, or -1. */
int64_t acf_cholesky(double *l, int64_t n, double least);

#endif
