/* Squares of 2x2 pixels as channels of one pixel, and the inverse: the step of an image model from one scale to the
 * next.
 *
 *     a b      (a, d, b, c) of all channels: a d first, b c last. The first half of the channels is one colour of the
 *     c d      checkerboard and goes on to the next scale. The second half is the other colour and is factored out.
 *              The quarters alternate between the square's upper and lower row, as channel couplings split them. */
#ifndef ACF_OPS_SQUEEZE_H
#define ACF_OPS_SQUEEZE_H

#include "device/cpu.h"
#include "ops/ops.h"

/* (N, H/2, W/2, 4C) from x (N,H,W,C), H and W even; and the inverse. Each is the other's adjoint. */
acf_tensor *acf_squeeze(acf_tape *t, acf_tensor *x);
acf_tensor *acf_unsqueeze(acf_tape *t, acf_tensor *y);

/* y (N,H/2,W/2,4C) = or += squeezed x (N,H,W,C);  x = or += y put back. */
void acf_squeeze_cpu(const acf_device *dev, acf_real *y, const acf_real *x, bool add, int64_t N, int64_t H, int64_t W,
                     int64_t C);
void acf_unsqueeze_cpu(const acf_device *dev, acf_real *x, const acf_real *y, bool add, int64_t N, int64_t H, int64_t W,
                       int64_t C);

#endif
