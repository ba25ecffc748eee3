/* The linear layer with a fused activation: y = act(x wᵀ + b). */
#ifndef ACF_OPS_LINEAR_H
#define ACF_OPS_LINEAR_H

#include "ops/act.h"

/* y (M,O) = act(x (M,I) · w (O,I)ᵀ + b (O)); b may be NULL. x may be packed; y is packed over the same subset. */
acf_tensor *acf_linear(acf_tape *t, acf_tensor *x, acf_tensor *w, acf_tensor *b, acf_act_kind act);

void acf_linear_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                        acf_act_kind act, int64_t M, int64_t I, int64_t O);

/* The steps after the product, on the calling thread: y (M,O), leading dimension ldy, becomes act(y + b); b may be
 * NULL. */
void acf_linear_finish_cpu(acf_real *y, int64_t ldy, const acf_real *b, acf_act_kind act, int64_t M, int64_t O);

/* Adds to dx (M,I), dw (O,I), db (O); NULL = not needed. y is the forward's output; dpre (M,O) is scratch that receives
 * the gradient before the activation (for the identity it is not used and may be NULL). */
void acf_linear_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy,
                        const acf_real *y, const acf_real *x, const acf_real *w, acf_real *dpre, acf_act_kind act,
                        int64_t M, int64_t I, int64_t O);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_linear_attrs {
    acf_act_kind act;
} acf_linear_attrs;

#endif
