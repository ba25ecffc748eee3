/* Layer normalisation: scales every row to mean 0 and variance 1, then applies a learned scale and shift per number. */
#ifndef ACF_OPS_LAYER_NORM_H
#define ACF_OPS_LAYER_NORM_H

#include "device/cpu.h"
#include "ops/ops.h"

#define ACF_LAYER_NORM_EPS 1e-5 /* added to the variance */

/* y (M,C) = (x - mean) / sqrt(variance + eps) * scale (C) + shift (C), row by row; packed when x is. */
acf_tensor *acf_layer_norm(acf_tape *t, acf_tensor *x, acf_tensor *scale, acf_tensor *shift);

/* y (M,C); stat (M,2) gets each row's mean and 1 / sqrt(variance + eps), or is NULL. */
void acf_layer_norm_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *stat, const acf_real *x,
                            const acf_real *scale, const acf_real *shift, int64_t M, int64_t C);
/* Adds to dx (M,C), dscale (C), dshift (C); NULL = not needed. scratch (M,C) for dscale. */
void acf_layer_norm_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dscale, acf_real *dshift, acf_real *scratch,
                            const acf_real *dy, const acf_real *stat, const acf_real *x, const acf_real *scale,
                            int64_t M, int64_t C);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_layer_norm_attrs {
    acf_real *stat; /* (M,2) mean and 1 / deviation of each row; NULL when no backward follows */
} acf_layer_norm_attrs;

#endif
