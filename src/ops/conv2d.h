/* Convolution of images, channels last: x (N,H,W,Ci), weights (Co,kh,kw,Ci), result (N,Ho,Wo,Co).
 *
 *     y[n,p,q,o] = act( b[o] + Σ_ijc w[o,i,j,c] x[n, p·stride + i - top, q·stride + j - left, c] )
 *     x = 0 outside the image;  Ho = ⌊(H + top + bottom - kh) / stride⌋ + 1, Wo likewise
 *
 * Each side has its own padding; a negative one cuts. All convolutions of image models are therefore one operation.
 *
 *     same, 3x3                       {.top = 1, .left = 1, .bottom = 1, .right = 1}
 *     PixelCNN, rows above only       kernel 2x3, {.top = 2, .bottom = -1, .left = 1, .right = 1}
 *     PixelCNN, above and to the left kernel 1x2, {.left = 2, .right = -1}
 */
#ifndef ACF_OPS_CONV2D_H
#define ACF_OPS_CONV2D_H

#include "ops/act.h"

typedef struct acf_conv {
    int stride;                       /* 1 or 2, both ways; 0 stands for 1 */
    int64_t top, left, bottom, right; /* rows and columns of zeros around x; negative: x is cut */
    acf_act_kind act;
} acf_conv;

/* Padding that keeps the size, for odd kernels. */
static inline acf_conv acf_conv_same(int64_t kh, int64_t kw, acf_act_kind act) {
    return (acf_conv){1, kh / 2, kw / 2, kh / 2, kw / 2, act};
}

/* y as above; b (Co) may be NULL. */
acf_tensor *acf_conv2d(acf_tape *t, acf_tensor *x, acf_tensor *w, acf_tensor *b, acf_conv how);

/* ---- kernels --------------------------------------------------------------------------------------------------- */

/* All sizes of one convolution. `up` dilates the image with up - 1 zeros between its pixels: the derivative of a
 * stride. */
typedef struct acf_conv_shape {
    int64_t N, H, W, Ci, Ho, Wo, Co, kh, kw;
    int64_t stride, up, top, left;
} acf_conv_shape;

/* Bytes of scratch for the forward, and for the backward; aligned as an arena is. */
size_t acf_conv2d_fwd_scratch(const acf_device *dev, const acf_conv_shape *s);
size_t acf_conv2d_bwd_scratch(const acf_device *dev, const acf_conv_shape *s);

void acf_conv2d_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                        acf_act_kind act, const acf_conv_shape *s, void *scratch);
/* Adds to dx, dw, db; NULL = not needed. dy is the gradient before the activation (from acf_act_bwd_cpu on y's
 * gradient). */
void acf_conv2d_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy,
                        const acf_real *x, const acf_real *w, const acf_conv_shape *s, void *scratch);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_conv2d_attrs {
    acf_conv_shape shape;
    acf_act_kind act;
} acf_conv2d_attrs;

#endif
