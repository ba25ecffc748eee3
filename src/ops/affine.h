/* The elementwise affine flow: scales and shifts each modelled value by numbers that a network computed for it.
 *
 *     forward   z = x e^s + t,       log|dz/dx| =  Σ s        s = bound tanh(raw / bound)
 *     inverse   x = (z - t) e^-s,    log|dx/dz| = -Σ s
 *
 * The scale is bounded, |s| < bound, so that one step of the optimiser cannot make the flow explode; near raw = 0, s
 * is raw itself. Both numbers come from one head: st (T,2) holds (raw, t) side by side, as a linear layer of width 2
 * writes them. A head of width 1 makes the flow additive: st is t, s = 0 and the log-determinant is 0. */
#ifndef ACF_OPS_AFFINE_H
#define ACF_OPS_AFFINE_H

#include "device/cpu.h"
#include "ops/ops.h"

/* x (T) -> z (T), both packed over u, st (T,2) or (T,1). logdet (N) receives the sum of s over each row's elements
 * and may be NULL. bound > 0 (unused by an additive flow). */
acf_tensor *acf_affine_forward(acf_tape *t, acf_tensor *x, acf_tensor *st, double bound, const acf_subset *u,
                               acf_tensor **logdet);

/* The inverse, z (T) -> x (T), with its own log-determinant (minus that of forward). */
acf_tensor *acf_affine_inverse(acf_tape *t, acf_tensor *z, acf_tensor *st, double bound, const acf_subset *u,
                               acf_tensor **logdet);

/* y (T) from x (T), st (T,C), C = 1 or 2; `inverse` chooses the direction; logdet (N) may be NULL. */
void acf_affine_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *st,
                        double bound, int64_t C, const acf_subset *u, bool inverse);
/* Adds to dx (T) and dst (T,C), NULL = not needed, from dy (T) and dlogdet (N), NULL = no gradient. */
void acf_affine_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dst, const acf_real *dy, const acf_real *dlogdet,
                        const acf_real *x, const acf_real *st, double bound, int64_t C, const acf_subset *u,
                        bool inverse);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Of both operations. Outputs: y, and logdet, which may be NULL. */
typedef struct acf_affine_attrs {
    double bound;
    const acf_subset *u;
    bool inverse;
} acf_affine_attrs;

#endif
