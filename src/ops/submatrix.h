/* The matrix of each row on its modelled columns, W = W_f[u,u]: a base shared by all rows plus the network's output for
 * the row, of low rank or full. In the low-rank case no D x D matrix exists per row. */
#ifndef ACF_OPS_SUBMATRIX_H
#define ACF_OPS_SUBMATRIX_H

#include "ops/ops.h"

/* M_i = base[u,u] + A_i[u,:] B_i[:,u] for every row, as a list of matrices. base (D,D) or NULL; a (N, D·r), row i is
 * A_i (D,r); b (N, r·D), row i is B_i (r,D). */
acf_tensor *acf_submatrix(acf_tape *t, acf_tensor *base, acf_tensor *a, acf_tensor *b, int64_t r, const acf_subset *u);

/* M_i = base[u,u] + C_i[u,u]; c (N, D·D). */
acf_tensor *acf_submatrix_full(acf_tape *t, acf_tensor *base, acf_tensor *c, const acf_subset *u);

/* scratch: r · acf_pad(steps) elements per thread. */
void acf_submatrix_fwd_cpu(const acf_device *dev, acf_real *m, const acf_real *base, const acf_real *a,
                           const acf_real *b, int64_t r, const acf_subset *u, acf_real *scratch);

/* Adds to da (N, D·r) and db (N, r·D); NULL = not needed. scratch: 2 · r · acf_pad(steps) elements per thread. */
void acf_submatrix_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dm, const acf_real *a,
                           const acf_real *b, int64_t r, const acf_subset *u, acf_real *scratch);

void acf_submatrix_full_fwd_cpu(const acf_device *dev, acf_real *m, const acf_real *base, const acf_real *c,
                                const acf_subset *u);

/* Adds to dc (N, D·D). */
void acf_submatrix_full_bwd_cpu(const acf_device *dev, acf_real *dc, const acf_real *dm, const acf_subset *u);

/* dbase (D,D) += the sum over rows, in order, of each dM_i put back at [u,u]. place (N,D) is scratch. */
void acf_submatrix_base_bwd_cpu(const acf_device *dev, acf_real *dbase, const acf_real *dm, const acf_subset *u,
                                int32_t *place);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* Of both; r is 0 for a full one. Inputs: base, which may be NULL; a and b, or c. */
typedef struct acf_submatrix_attrs {
    const acf_subset *u;
    int64_t r;
} acf_submatrix_attrs;

#endif
