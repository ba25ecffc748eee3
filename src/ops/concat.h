/* Joining and slicing along the last axis. */
#ifndef ACF_OPS_CONCAT_H
#define ACF_OPS_CONCAT_H

#include "device/cpu.h"
#include "ops/ops.h"

/* (M, C1 + C2 + ...) the rows of x[0], x[1], ... side by side: any number of tensors (M,C), or (M) for (M,1), plain
 * or all packed over the same subset; or images (N,H,W,C), joined along their channels. */
acf_tensor *acf_concat(acf_tape *t, int n, acf_tensor *const *x);

/* (M,width) columns [from, from + width) of x (M,C); of images likewise, channels. */
acf_tensor *acf_slice(acf_tape *t, acf_tensor *x, int64_t from, int64_t width);

/* y (M,C) has x (M,width) in its columns [from, from + width); the other columns are not touched. */
void acf_concat_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t from, int64_t width, int64_t M,
                        int64_t C);
/* dx (M,width) += columns [from, from + width) of dy (M,C). */
void acf_concat_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, int64_t from, int64_t width, int64_t M,
                        int64_t C);

/* y (M,width) = columns [from, from + width) of x (M,C). */
void acf_slice_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t from, int64_t width, int64_t M,
                       int64_t C);
/* Columns [from, from + width) of dx (M,C) += dy (M,width). */
void acf_slice_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, int64_t from, int64_t width, int64_t M,
                       int64_t C);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_slice_attrs {
    int64_t from;
} acf_slice_attrs;

#endif
