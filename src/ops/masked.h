/* Selects one of two numbers by a mask, or sums the numbers under a mask. The mask is on where its number is above 1/2.
 * It has no derivative. Masked-out numbers are never read. */
#ifndef ACF_OPS_MASKED_H
#define ACF_OPS_MASKED_H

#include "device/cpu.h"
#include "ops/ops.h"

/* y = mask ? a : b. All three have the same count; y has a's shape. */
acf_tensor *acf_choose(acf_tape *t, acf_tensor *mask, acf_tensor *a, acf_tensor *b);

/* (N): the sum of each image's x where the mask is on, in double; mask (N, ...), x of any shape with the same count. */
acf_tensor *acf_sum_masked(acf_tape *t, acf_tensor *x, acf_tensor *mask);

/* y (n) = mask ? a : b;  da += dy where mask, db += dy elsewhere; NULL = not needed. */
void acf_choose_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *mask, const acf_real *a, const acf_real *b,
                        int64_t n);
void acf_choose_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *mask,
                        int64_t n);

/* y (N) from x, mask (N,C);  dx += dy of its image where mask. */
void acf_sum_masked_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *mask, int64_t N,
                            int64_t C);
void acf_sum_masked_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *mask, int64_t N,
                            int64_t C);

#endif
