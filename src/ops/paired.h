/* Units along the channels, the last axis: both signs of a number, and a number with its gate. */
#ifndef ACF_OPS_PAIRED_H
#define ACF_OPS_PAIRED_H

#include "ops/act.h"

/* (..., 2C) from x (..., C): act(x) beside act(-x), act ACF_RELU or ACF_ELU: nothing of x is lost. */
acf_tensor *acf_paired(acf_tape *t, acf_act_kind act, acf_tensor *x);

/* (..., C) from x (..., 2C) = [a | b]: a sigmoid(b). */
acf_tensor *acf_gated(acf_tape *t, acf_tensor *x);

/* y (M,2C) from x (M,C);  dx (M,C) += from dy and y. */
void acf_paired_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, acf_act_kind act, int64_t M, int64_t C);
void acf_paired_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *y, acf_act_kind act, int64_t M, int64_t C);

/* y (M,C) from x (M,2C);  dx (M,2C) += from dy and x. */
void acf_gated_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t M, int64_t C);
void acf_gated_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x, int64_t M, int64_t C);

/* ---- for kernels on other devices: acf_act_attrs of paired ------------------------------------------------------------ */

#endif
