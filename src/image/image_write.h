/* Writes images: PNG files, sheets of many images, and animated PNG for sequences.
 *
 *     acf_image_write_png     one picture
 *     acf_image_sheet         many of one size, in a grid, as one picture
 *     acf_image_write_apng    many of one size, one after the other; browsers play it, and a program that reads only
 *                             PNG shows the first
 *
 * Bytes of 8 bits: images with fewer bits are scaled to 0..255 first (acf_image_byte). A file is replaced when it is
 * complete (base/file.h). The same pixels give the same bytes. Thread rule: any number at once. */
#ifndef ACF_IMAGE_IMAGE_WRITE_H
#define ACF_IMAGE_IMAGE_WRITE_H

#include "base/status.h"

#include <stdint.h>

/* Replaces path by a PNG file of pixel (H,W,C), C = 1 or 3. Borrows pixel. Fails: ACF_EUSAGE (sizes), ACF_EIO,
 * ACF_EMEMORY. */
acf_status acf_image_write_png(const char *path, const uint8_t *pixel, int64_t H, int64_t W, int64_t C);

/* Replaces path by an animation of N frames pixel (N,H,W,C), each shown for ms milliseconds (1..65535). It plays
 * `loops` times; 0: endlessly. Fails as above. */
acf_status acf_image_write_apng(const char *path, const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C,
                                int ms, int loops);

/* The layout of a sheet of images. */
typedef struct acf_sheet {
    int64_t across, down; /* images */
    int64_t gap;          /* pixels between images and around all of them */
    int64_t zoom;         /* each pixel becomes zoom x zoom: 28 pixels are small on a screen */
    uint8_t ground;       /* the value of gaps and of positions without an image */
} acf_sheet;

/* The size in pixels of a sheet of images of H x W. */
void acf_image_sheet_size(const acf_sheet *s, int64_t H, int64_t W, int64_t *sheet_H, int64_t *sheet_W);

/* out (sheet_H,sheet_W,C) = the first across * down of N images pixel (N,H,W,C), row by row. */
void acf_image_sheet(uint8_t *out, const acf_sheet *s, const uint8_t *pixel, int64_t N, int64_t H, int64_t W,
                     int64_t C);

#endif
