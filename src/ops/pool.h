/* Pooling of 2x2 pixels: the largest or the mean of each channel. */
#ifndef ACF_OPS_POOL_H
#define ACF_OPS_POOL_H

#include "device/cpu.h"
#include "ops/ops.h"

typedef enum acf_pool_kind { ACF_POOL_MAX, ACF_POOL_MEAN } acf_pool_kind;

/* (N, ⌈H/2⌉, ⌈W/2⌉, C) from x (N,H,W,C). At an odd edge a window has 2 pixels or 1, and the result is over those. */
acf_tensor *acf_pool(acf_tape *t, acf_pool_kind kind, acf_tensor *x);

void acf_pool_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, acf_pool_kind kind, int64_t N, int64_t H,
                      int64_t W, int64_t C);
/* Adds to dx. Among equal numbers the first, by rows, gets the gradient of a maximum. */
void acf_pool_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x, acf_pool_kind kind,
                      int64_t N, int64_t H, int64_t W, int64_t C);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_pool_attrs {
    acf_pool_kind kind;
} acf_pool_attrs;

#endif
