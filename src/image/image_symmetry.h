/* Turned and mirrored images. A model that learned from images with their copies (images.h: turn, mirror) knows no up from down, or no left from right; a
 * mean over the copies of a question is then nearer to the truth than one answer. */
#ifndef ACF_IMAGE_IMAGE_SYMMETRY_H
#define ACF_IMAGE_IMAGE_SYMMETRY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct acf_image_symmetry {
    int quarters; /* turned by so many times 90 degrees against the clock, */
    bool flip;    /* then left and right exchanged */
} acf_image_symmetry;

#define ACF_IMAGE_SYMMETRIES 8

/* Those that copies of these kinds make, the first of them none; returns how many: 1, 2, 4 or 8. */
int acf_image_symmetries(bool rotate, bool flip, acf_image_symmetry out[ACF_IMAGE_SYMMETRIES]);

/* Where pixel number p of H x W goes; turned by an odd number of quarters, H and W are equal. */
int64_t acf_image_moved(acf_image_symmetry s, int64_t H, int64_t W, int64_t p);

/* out (H,W,C) = in, moved. */
void acf_image_move(acf_image_symmetry s, int64_t H, int64_t W, int64_t C, const uint8_t *in, uint8_t *out);

/* Does it leave a mask (H,W) as it is? */
bool acf_image_symmetric(acf_image_symmetry s, int64_t H, int64_t W, const uint8_t *b);

#endif
