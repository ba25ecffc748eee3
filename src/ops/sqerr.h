/* Squared error of the modelled cells of each row: the best-guess term of the loss. */
#ifndef ACF_OPS_SQERR_H
#define ACF_OPS_SQERR_H

#include "device/cpu.h"
#include "ops/ops.h"

/* (N) the sum of (a - b)^2 over each batch row's modelled columns; a and b (T) are packed over u. 0 for a row without
 * modelled columns. */
acf_tensor *acf_sqerr(acf_tape *t, acf_tensor *a, acf_tensor *b, const acf_subset *u);

void acf_sqerr_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *a, const acf_real *b, const acf_subset *u);
/* da (T) += 2 (a - b) dy of its row, db (T) -= the same; NULL = not needed. da may be db. */
void acf_sqerr_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *a,
                       const acf_real *b, const acf_subset *u);

#endif
