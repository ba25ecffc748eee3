/* Weight normalisation: the length of each output's weights is a parameter of its own, separate from their
 * direction. */
#ifndef ACF_OPS_WEIGHT_NORM_H
#define ACF_OPS_WEIGHT_NORM_H

#include "device/cpu.h"
#include "ops/ops.h"

/* w (O,...) = g[o] v[o] / |v[o]|, v (O,...), g (O); |v|² = Σ v² + ACF_NORM_FLOOR, so that v = 0 gives 0. */
acf_tensor *acf_weight_norm(acf_tape *t, acf_tensor *v, acf_tensor *g);
#define ACF_NORM_FLOOR 1e-24

/* w (O,K) from v (O,K), g (O). */
void acf_weight_norm_fwd_cpu(const acf_device *dev, acf_real *w, const acf_real *v, const acf_real *g, int64_t O,
                             int64_t K);
/* Adds to dv (O,K), dg (O); NULL = not needed. */
void acf_weight_norm_bwd_cpu(const acf_device *dev, acf_real *dv, acf_real *dg, const acf_real *dw, const acf_real *v,
                             const acf_real *g, int64_t O, int64_t K);

#endif
