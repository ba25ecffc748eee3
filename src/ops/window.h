/* Parts of images: cuts a region out, or puts one back. For loops that process an image row by row and pixel by pixel
 * and keep their results. They run without recording, and have no derivative. */
#ifndef ACF_OPS_WINDOW_H
#define ACF_OPS_WINDOW_H

#include "device/cpu.h"
#include "ops/ops.h"

/* Rows [top, top + height) and columns [left, left + width) of an image; may reach beyond its edges. */
typedef struct acf_region {
    int64_t top, left, height, width;
} acf_region;

/* (N, height, width, C) of x (N,H,W,C); 0 outside the image. */
acf_tensor *acf_window(acf_tape *t, acf_tensor *x, acf_region r);

/* Puts y (N, height, width, C) to `top`, `left` of x (N,H,W,C), where it must lie inside. Changes x. */
void acf_paste(acf_tape *t, acf_tensor *x, acf_tensor *y, int64_t top, int64_t left);

/* ---- for kernels on other devices: acf_region is the attribute of window ----------------------------------------- */

typedef struct acf_paste_attrs {
    acf_real *x;
    int64_t H, W, top, left;
} acf_paste_attrs;

#endif
