/* What is done to pictures before they become data: cut, scaled, padded, turned, made grey or coarser. Flat functions on (H,W,C) bytes.
 *
 * They run once per picture at load time, on pictures of some hundred pixels a side, so they are plain; a 178x218 photograph cut and
 * scaled to 64x64 takes less time than its decoding. `out` never overlaps `in`. Thread rule: any number at once. */
#ifndef ACF_IMAGE_IMAGE_OPS_H
#define ACF_IMAGE_IMAGE_OPS_H

#include "base/status.h"

#include <stdint.h>

/* A rectangle of pixels: columns x0 .. x1-1, rows y0 .. y1-1. */
typedef struct acf_image_box {
    int64_t x0, y0, x1, y1;
} acf_image_box;

/* Changes from `in` (n pixels of `from` channels) to `to` channels, 1 or 3 each. Grey is 0.30 red + 0.59 green + 0.11 blue, in whole 256ths,
 * rounded; of equal channels it is their value. Colour from grey repeats it. */
void acf_image_channels(uint8_t *out, int to, const uint8_t *in, int from, int64_t n);

/* out (y1-y0, x1-x0, C) = the box of in (H,W,C), which lies inside. */
void acf_image_cut(uint8_t *out, const uint8_t *in, int64_t W, int64_t C, acf_image_box box);

/* The largest box in the middle of W x H pixels whose sides are as w to h, rounded down. */
acf_image_box acf_image_middle(int64_t W, int64_t H, int64_t w, int64_t h);

/* out (h,w,C) from in (H,W,C). In each direction by itself: fewer pixels are means over the area that each covers, more are interpolated
 * linearly between the middles of pixels (beyond the outermost ones: their value). The same size is a copy, bit for bit; a picture of one
 * colour stays one; halving is the mean of 2x2. Fails: ACF_EMEMORY. */
acf_status acf_image_resize(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C);

/* out (h,w,C) = in (H,W,C), h >= H and w >= W, in the middle (one more row below and column at the right, where the difference is odd), and 0
 * around it. */
void acf_image_pad(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C);

/* out (W,H,C) = in (H,W,C) turned by quarters times 90 degrees against the clock; for 0 and 2 out is (H,W,C). */
void acf_image_rotate(uint8_t *out, const uint8_t *in, int64_t H, int64_t W, int64_t C, int quarters);

/* x (H,W,C), mirrored in place: left becomes right. */
void acf_image_flip(uint8_t *x, int64_t H, int64_t W, int64_t C);

/* pixel (n) >> (8 - bits): 2^bits levels. And back: level k of 0..2^bits-1 as a byte, k * 255 / (2^bits - 1) rounded. */
void acf_image_coarsen(uint8_t *pixel, int64_t n, int bits);
uint8_t acf_image_byte(unsigned level, int bits);

#endif
