/* RealNVP with arbitrary conditioning: an invertible map of an image's modelled numbers, given the observed ones.
 *
 *     a scale      3 couplings on a checkerboard, squeeze, 3 couplings between quarters of the channels (ops/couple.h);
 *                  half of the channels are done, the other half goes to the next scale
 *     the last     4 couplings on a checkerboard
 *
 * Images, masks: (N,H,W,C); b = 1 observed, u = 1 modelled; where neither is set, the number must be 0. A coupling's
 * network sees the kept half and all observed numbers with their mask, in checkerboard and channel couplings alike.
 * From the second scale on, observed numbers have left with the halves that are done. The networks there see them
 * through a 1x1 convolution of the whole image, squeezed to their size.
 *
 * z has the image's shape: everything is unsqueezed to its origin. So b and u hold for z as well, and observed numbers
 * are at the same positions in z as in x, bit for bit. */
#ifndef ACF_FLOW_IMAGE_FLOW_H
#define ACF_FLOW_IMAGE_FLOW_H

#include "nn/pass.h"
#include "nn/resnet.h"
#include "ops/couple.h"

/* Inputs of every transformation and likelihood of images. All (N,H,W,C). */
typedef struct acf_image_cond {
    acf_tensor *given;    /* observed numbers, 0 elsewhere */
    acf_tensor *b, *u;    /* 1: observed; 1: modelled */
    const acf_pass *pass; /* NULL: inference */
    const uint8_t *rows;  /* (H) on the host: whether any image models a number of this row; NULL: unknown */
} acf_image_cond;

#define ACF_IMAGE_SCALES 8
#define ACF_CHECKERS 4
#define ACF_QUARTERS 3

typedef struct acf_image_flow_size {
    int64_t H, W, C;
    int scales;    /* 0: the identity. H and W are multiples of 2^(scales-1) */
    int blocks;    /* of each network */
    int64_t width; /* of the first scale's networks; it doubles with every scale, and again for quarters */
} acf_image_flow_size;

typedef struct acf_coupling {
    acf_resnet net;
    acf_param *g, *g0; /* one number each: the bound of its scale, and the scale's centre */
    acf_pattern pattern;
} acf_coupling;

typedef struct acf_image_scale {
    int checkers, quarters;
    acf_coupling checker[ACF_CHECKERS], quarter[ACF_QUARTERS];
    acf_conv_layer side[2]; /* features of the whole image for checkerboards and quarters; not at the first scale */
} acf_image_scale;

typedef struct acf_image_flow {
    acf_image_flow_size size;
    acf_image_scale scale[ACF_IMAGE_SCALES];
} acf_image_flow;

/* Declares "name.0.checker.0.first.v" and so on. Fails: ACF_EMEMORY, ACF_EUSAGE (sizes that cannot be squeezed). */
acf_status acf_image_flow_declare(acf_image_flow *f, acf_params *ps, const char *name, const acf_image_flow_size *size);

/* z from x, and its log-determinant (N), which may be NULL; and the inverse with its own. x and z hold the observed
 * numbers too. */
acf_tensor *acf_image_flow_forward(acf_tape *t, const acf_image_flow *f, acf_tensor *x, const acf_image_cond *c,
                                   acf_tensor **logdet);
acf_tensor *acf_image_flow_inverse(acf_tape *t, const acf_image_flow *f, acf_tensor *z, const acf_image_cond *c,
                                   acf_tensor **logdet);

#endif
