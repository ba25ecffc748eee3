/* Eigenvalues and eigenvectors of one small symmetric matrix, in double. */
#ifndef ACF_OPS_SYMMETRIC_EIGEN_H
#define ACF_OPS_SYMMETRIC_EIGEN_H

#include <stdbool.h>
#include <stdint.h>

/* a (n,n) = Vᵀ diag(w) V. On entry a holds both halves of the matrix; on return its rows are V, the eigenvectors, in no
 * particular order or sign. w, scratch (n). False: an eigenvalue did not converge in 30 iterations, for example because
 * a holds NaN; then a and w are undefined. */
bool acf_symmetric_eigen(double *a, int64_t n, double *w, double *scratch);

#endif
