/* Elementwise arithmetic of tensors of one shape. There are two operations: a x + b y with constants, and x y. */
#ifndef ACF_OPS_ARITH_H
#define ACF_OPS_ARITH_H

#include "device/cpu.h"
#include "ops/ops.h"

/* x + y, x - y, a x + y, a x; x and y have the same shape and are packed over the same subset, or both are plain. */
acf_tensor *acf_add(acf_tape *t, acf_tensor *x, acf_tensor *y);
acf_tensor *acf_sub(acf_tape *t, acf_tensor *x, acf_tensor *y);
acf_tensor *acf_axpy(acf_tape *t, double a, acf_tensor *x, acf_tensor *y);
acf_tensor *acf_scale(acf_tape *t, double a, acf_tensor *x);

/* x y and x^2, element by element. */
acf_tensor *acf_mul(acf_tape *t, acf_tensor *x, acf_tensor *y);
acf_tensor *acf_square(acf_tape *t, acf_tensor *x);

/* z = a x + b y over n elements; y NULL: z = a x. */
void acf_add_fwd_cpu(const acf_device *dev, acf_real *z, acf_real a, const acf_real *x, acf_real b, const acf_real *y,
                     int64_t n);
/* dx += a dz, dy += b dz; NULL = not needed. dx may be dy. */
void acf_add_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dy, const acf_real *dz, acf_real a, acf_real b,
                     int64_t n);

/* z = x y;  dx += y dz, dy += x dz. */
void acf_mul_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *x, const acf_real *y, int64_t n);
void acf_mul_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dy, const acf_real *dz, const acf_real *x,
                     const acf_real *y, int64_t n);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_add_attrs {
    acf_real a, b;
} acf_add_attrs;

#endif
