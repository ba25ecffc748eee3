/* A small image model with random weights, unlike its initial values, and queries for it. */
#ifndef ACF_HARNESS_IMAGE_LAB_H
#define ACF_HARNESS_IMAGE_LAB_H

#include "base/pixel.h"
#include "harness/lab.h"
#include "model/image_net.h"

/* Which pixels are given. */
typedef enum acf_image_mask {
    ACF_IMAGE_NONE,   /* nothing: the joint */
    ACF_IMAGE_SOME,   /* at random, half of them */
    ACF_IMAGE_UPPER,  /* the upper half */
    ACF_IMAGE_LEFT,   /* the left half */
    ACF_IMAGE_HOLE,   /* all but a rectangle */
    ACF_IMAGE_PADDED, /* random, without the last row and column */
    ACF_IMAGE_ONE,    /* all but one pixel */
    ACF_IMAGE_ALL,    /* everything: nothing is modelled */
    ACF_IMAGE_MASKS
} acf_image_mask;

typedef struct acf_image_lab {
    acf_device *dev, *owned; /* owned: the same, or NULL if another part owns it */
    acf_image_net *net;
    acf_tape *t;
    int64_t N, H, W, C;
    acf_real *x;
    uint8_t *role;
    acf_image_query q; /* x, role; ids 0, 1, 2 ... */
} acf_image_lab;

/* N images of normal numbers, all with one kind of mask (different for each image if it is random). away: how far
 * weights are moved from their initial values. Free with acf_image_lab_close. */
void acf_image_lab_open(acf_image_lab *l, int threads, const acf_image_sizes *s, int64_t N, acf_image_mask mask,
                        double away);
/* The same on an open device, which stays open. */
void acf_image_lab_open_on(acf_image_lab *l, acf_device *dev, const acf_image_sizes *s, int64_t N, acf_image_mask mask,
                           double away);
void acf_image_lab_close(acf_image_lab *l);

/* Other masks on the same images. */
void acf_image_lab_mask(acf_image_lab *l, acf_image_mask mask);
bool acf_image_lab_modelled(const acf_image_lab *l, int64_t number);

/* Sizes of a small model; scales 0: none. */
acf_image_sizes acf_image_lab_sizes(int64_t side, int64_t C, int scales, const acf_image_like_kind *like);

#endif
