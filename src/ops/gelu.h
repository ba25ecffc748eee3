/* The Gaussian error linear unit in its tanh form: y = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)). It is not in
 * act.h, because its derivative is not a function of the output. */
#ifndef ACF_OPS_GELU_H
#define ACF_OPS_GELU_H

#include "device/cpu.h"
#include "ops/ops.h"

#define ACF_GELU_SLOPE ACF_R(1.5957691216057308) /* 2 sqrt(2/pi) */
#define ACF_GELU_CUBE ACF_R(0.044715)
#define ACF_GELU_FAR 32 /* from here on y is x or 0 */

/* Any shape. */
acf_tensor *acf_gelu(acf_tape *t, acf_tensor *x);

/* y[i] = gelu(x[i]); dx[i] += dy[i] gelu'(x[i]). */
void acf_gelu_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, int64_t n);
void acf_gelu_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x, int64_t n);

#endif
