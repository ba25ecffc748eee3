/* The leaky-ReLU flow: makes a chain of linear layers nonlinear. It has one learned number a, 0 < α = sigmoid(a) <
 * 1, so that the map is always invertible.
 *
 *     forward   z = x where x >= 0, else α x,       log|dz/dx| =  (negative elements of the row) · log α
 *     inverse   x = z where z >= 0, else z / α,     log|dx/dz| = -(negative elements of the row) · log α
 */
#ifndef ACF_OPS_LEAKY_H
#define ACF_OPS_LEAKY_H

#include "device/cpu.h"
#include "ops/ops.h"

/* x (T) -> z (T), both packed over u; a is one element; logdet (N) may be NULL. */
acf_tensor *acf_leaky_forward(acf_tape *t, acf_tensor *x, acf_tensor *a, const acf_subset *u, acf_tensor **logdet);

/* The inverse, z (T) -> x (T), with its own log-determinant. */
acf_tensor *acf_leaky_inverse(acf_tape *t, acf_tensor *z, acf_tensor *a, const acf_subset *u, acf_tensor **logdet);

/* y (T) from x (T) and a (1); `inverse` chooses the direction; logdet (N) may be NULL. */
void acf_leaky_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *a,
                       const acf_subset *u, bool inverse);
/* Adds to dx (T) and da (1), NULL = not needed, from dy (T) and dlogdet (N), NULL = no gradient. partial is scratch
 * for acf_leaky_blocks(u) doubles. */
void acf_leaky_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *da, const acf_real *dy, const acf_real *dlogdet,
                       const acf_real *x, const acf_real *a, double *partial, const acf_subset *u, bool inverse);
int64_t acf_leaky_blocks(const acf_subset *u);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Of both operations. Outputs: y, and logdet, which may be NULL. */
typedef struct acf_leaky_attrs {
    const acf_subset *u;
    bool inverse;
} acf_leaky_attrs;

#endif
