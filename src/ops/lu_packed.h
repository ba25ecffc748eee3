/* A cheaper form of lu.h: the selected matrix is not factorised but READ as its own factors,
 *
 *     W = L U,   L = I + strictly lower part of M,   U = upper part of M with the diagonal,
 *
 * so that log|det W| is a sum over the diagonal and the inverse is two triangular solves: |u|² a row for everything. */
#ifndef ACF_OPS_LU_PACKED_H
#define ACF_OPS_LU_PACKED_H

#include "ops/ops.h"

/* m: the list of the |u|x|u| matrices of u (submatrix.h). logdet and solve fail with ACF_ENUMERIC where a diagonal
 * element is not finite or not above |u| · epsilon · max|M|, with the lowest such row and that element's column. */
acf_tensor *acf_plu_apply(acf_tape *t, acf_tensor *m, acf_tensor *x, const acf_subset *u); /* z (T) = L U x (T) */
acf_tensor *acf_plu_logdet(acf_tape *t, acf_tensor *m, const acf_subset *u);               /* (N), 0 for |u| = 0 */
acf_tensor *acf_plu_solve(acf_tape *t, acf_tensor *m, acf_tensor *z,
                          const acf_subset *u); /* x (T) with L U x = z (T) */

/* scratch: 2 · acf_pad(steps) elements a thread. */
void acf_plu_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *m, const acf_real *x,
                           const acf_subset *u, acf_real *scratch);
/* Adds to dm (list) and dx (T); NULL = not needed. scratch: 5 · acf_pad(steps) elements a thread. */
void acf_plu_apply_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dx, const acf_real *dz, const acf_real *m,
                           const acf_real *x, const acf_subset *u, acf_real *scratch);

void acf_plu_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_real *m, const acf_subset *u);
void acf_plu_logdet_bwd_cpu(const acf_device *dev, acf_real *dm, const acf_real *dld, const acf_real *m,
                            const acf_subset *u);

/* scratch: acf_pad(steps) elements a thread. */
void acf_plu_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_real *m, const acf_real *z,
                           const acf_subset *u, acf_real *scratch);
/* Adds to dm and dz. scratch: 4 · acf_pad(steps) elements a thread. */
void acf_plu_solve_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dz, const acf_real *dx, const acf_real *m,
                           const acf_real *x, const acf_subset *u, acf_real *scratch);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Of all three. */
typedef struct acf_plu_attrs {
    const acf_subset *u;
} acf_plu_attrs;

#endif
