/* Operations on pictures when they are loaded: cut, scale, pad, rotate, convert to grey, reduce levels. Flat
 * functions on (H,W,C) bytes.
 *
 * They run once per picture at load time, on pictures of some hundred pixels per side, so they are simple. Cutting a
 * 178x218 photograph and scaling it to 64x64 takes less time than decoding it. `out` never overlaps `in`. Thread
 * rule: any number at once. */
#ifndef ACF_IMAGE_IMAGE_OPS_H
#define ACF_IMAGE_IMAGE_OPS_H

#include "base/status.h"

#include <stdint.h>

/* A rectangle of pixels: columns x0 .. x1-1, rows y0 .. y1-1. */
typedef struct acf_image_box {
    int64_t x0, y0, x1, y1;
} acf_image_box;

/* Converts `in` (n pixels of `from` channels) to `to` channels, 1 or 3 each. Grey is 0.30 red + 0.59 green + 0.11
 * blue, in whole 256ths, rounded; equal channels keep their value. Grey becomes colour by repeating it. */
void acf_image_channels(uint8_t *out, int to, const uint8_t *in, int from, int64_t n);

/* out (y1-y0, x1-x0, C) = the box of in (H,W,C), which lies inside. */
void acf_image_cut(uint8_t *out, const uint8_t *in, int64_t W, int64_t C, acf_image_box box);

/* The largest box in the middle of W x H pixels with sides in the ratio w to h, rounded down. */
acf_image_box acf_image_middle(int64_t W, int64_t H, int64_t w, int64_t h);

/* out (h,w,C) from in (H,W,C). Each direction is scaled separately. Fewer pixels are means over the area that each
 * covers. More pixels are interpolated linearly between the middles of pixels (beyond the outermost ones: their
 * value). The same size is a copy, bit for bit. A picture of one colour stays one; halving is the mean of 2x2.
 * Fails: ACF_EMEMORY. */
acf_status acf_image_resize(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C);

/* out (h,w,C) = in (H,W,C), h >= H and w >= W, centred and surrounded by 0. An odd difference adds one more row
 * below and one more column at the right. */
void acf_image_pad(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C);

/* out (W,H,C) = in (H,W,C) rotated counter-clockwise by quarters times 90 degrees; for 0 and 2 out is (H,W,C). */
void acf_image_rotate(uint8_t *out, const uint8_t *in, int64_t H, int64_t W, int64_t C, int quarters);

/* Flips x (H,W,C) in place: left becomes right. */
void acf_image_flip(uint8_t *x, int64_t H, int64_t W, int64_t C);

/* pixel (n) >> (8 - bits): 2^bits levels. The inverse: level k of 0..2^bits-1 as a byte, k * 255 / (2^bits - 1)
 * rounded. */
void acf_image_coarsen(uint8_t *pixel, int64_t n, int bits);
uint8_t acf_image_byte(unsigned level, int bits);

#endif
