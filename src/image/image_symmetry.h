/* Rotates and flips images. A model trained on such copies (images.h: rotate, flip) treats them alike. The mean over
 * the copies of a query is then more accurate than a single answer. */
#ifndef ACF_IMAGE_IMAGE_SYMMETRY_H
#define ACF_IMAGE_IMAGE_SYMMETRY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_image_symmetry {
    int quarters; /* rotated counter-clockwise by this many times 90 degrees, */
    bool flip;    /* then left and right exchanged */
} acf_image_symmetry;

#define ACF_IMAGE_SYMMETRIES 8

/* The symmetries of copies of these kinds, the first being the identity. Returns their number: 1, 2, 4 or 8. */
int acf_image_symmetries(bool rotate, bool flip, acf_image_symmetry out[ACF_IMAGE_SYMMETRIES]);

/* Where pixel number p of H x W moves; if rotated by an odd number of quarters, H and W must be equal. */
int64_t acf_image_moved(acf_image_symmetry s, int64_t H, int64_t W, int64_t p);

/* out (H,W,C) = in, moved. */
void acf_image_move(acf_image_symmetry s, int64_t H, int64_t W, int64_t C, const uint8_t *in, uint8_t *out);

/* Whether it leaves a mask (H,W) unchanged. */
bool acf_image_symmetric(acf_image_symmetry s, int64_t H, int64_t W, const uint8_t *b);

#endif
