/* Activations along the channels, the last axis: the concatenated activation (CReLU) and the gate. */
#ifndef ACF_OPS_CRELU_H
#define ACF_OPS_CRELU_H

#include "ops/act.h"

/* (..., 2C) from x (..., C): act(x) beside act(-x), act ACF_RELU or ACF_ELU. No information of x is lost. */
acf_tensor *acf_crelu(acf_tape *t, acf_act_kind act, acf_tensor *x);

/* x (..., C) + a sigmoid(b), where [a | b] = h + c, (..., 2C) both: the end of a gated block, in one pass. */
acf_tensor *acf_gated(acf_tape *t, acf_tensor *x, acf_tensor *h, acf_tensor *c);

/* y (M,2C) from x (M,C);  dx (M,C) += from dy and y. */
void acf_crelu_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, acf_act_kind act, int64_t M, int64_t C);
void acf_crelu_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *y, acf_act_kind act,
                       int64_t M, int64_t C);

/* y (M,C) from x (M,C), h and k (M,2C);  adds to dx, dh and dk, which are NULL where they are not needed. */
void acf_gated_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *h, const acf_real *k,
                       int64_t M, int64_t C);
void acf_gated_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dh, acf_real *dk, const acf_real *dy,
                       const acf_real *h, const acf_real *k, int64_t M, int64_t C);

/* ---- for kernels on other devices; the attribute of crelu is acf_act_attrs --------------------------------------- */

#endif
