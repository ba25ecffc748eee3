/* The conditional linear transformation with a general matrix per row: z_u = M x_u, its log-determinant, its
 * inverse.
 *
 *     acf_lu *lu = acf_lu_factor(t, m, u);              m: list of matrices (submatrix.h)
 *     z = acf_lu_apply(t, lu, x), ld = acf_lu_logdet(t, lu);      forward
 *     x = acf_lu_solve(t, lu, z);                                 inverse, with the same factors
 *
 * Gradients go to m. Nothing is differentiated through the pivoting: d log|det M| = tr(M⁻¹ dM), and the adjoint of a
 * solve is a transposed solve and an outer product. */
#ifndef ACF_OPS_LU_H
#define ACF_OPS_LU_H

#include "ops/ops.h"

/* A list of matrices and, after logdet or solve has needed them, their factors; lives on the tape. Must not be used
 * across an acf_tape_rewind to before its first use. */
typedef struct acf_lu acf_lu;

/* m: 1-D list of the |u|x|u| matrices of u. The factorisation runs on first use. NULL after a failure; the
 * operations below accept NULL. A matrix with a pivot that is not finite or not above |u| · epsilon · max|M| is
 * ACF_ENUMERIC, with the lowest such row and the column of that pivot. */
acf_lu *acf_lu_factor(acf_tape *t, acf_tensor *m, const acf_subset *u);

acf_tensor *acf_lu_apply(acf_tape *t, acf_lu *lu, acf_tensor *x); /* z (T) = M x (T); needs no factors */
acf_tensor *acf_lu_logdet(acf_tape *t, acf_lu *lu);               /* (N) log|det M|, 0 for |u| = 0 */
acf_tensor *acf_lu_solve(acf_tape *t, acf_lu *lu, acf_tensor *z); /* x (T) with M x = z (T) */

/* f and m: lists of matrices; order (N, steps): dense_lu.h. bad (N): the failing position of each row, or -1. */
void acf_lu_factor_fwd_cpu(const acf_device *dev, acf_real *f, int32_t *order, int32_t *bad, const acf_real *m,
                           const acf_subset *u);

/* scratch: acf_pad(steps) elements a thread. */
void acf_lu_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *m, const acf_real *x, const acf_subset *u,
                          acf_real *scratch);
/* Adds to dm (list) and dx (T); NULL = not needed. scratch: 3 · acf_pad(steps) elements a thread. */
void acf_lu_apply_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dx, const acf_real *dz, const acf_real *m,
                          const acf_real *x, const acf_subset *u, acf_real *scratch);

void acf_lu_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_real *f, const acf_subset *u);
/* Adds to dm. scratch: steps · ACF_DENSE_BLOCK elements a thread. */
void acf_lu_logdet_bwd_cpu(const acf_device *dev, acf_real *dm, const acf_real *dld, const acf_real *f,
                           const int32_t *order, const acf_subset *u, acf_real *scratch);

/* scratch: 2 · acf_pad(steps) elements a thread. */
void acf_lu_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_real *f, const int32_t *order,
                          const acf_real *z, const acf_subset *u, acf_real *scratch);
/* Adds to dm and dz. scratch: 3 · acf_pad(steps) elements a thread. */
void acf_lu_solve_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dz, const acf_real *dx, const acf_real *f,
                          const int32_t *order, const acf_real *x, const acf_subset *u, acf_real *scratch);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

struct acf_lu {
    const acf_subset *u;
    acf_tensor *m;  /* the matrices */
    acf_tensor *f;  /* their factors; NULL until needed */
    int32_t *order; /* (N, steps) */
};

/* Of all four. Inputs: factor m; apply m, x; logdet m, f; solve m, f, z. */
typedef struct acf_lu_attrs {
    acf_lu *lu;
} acf_lu_attrs;

#endif
