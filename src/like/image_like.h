/* Likelihoods of an image's latents z behind the transformations: the last factor of p(x_u | x_o). Only modelled
 * numbers count; observed ones are conditions, and others are ignored.
 *
 *     normal      standard normal, each number by itself: the target of the transformations
 *     gaussian    a Gaussian for each number, mean and scale from the observed pixels (nn/image_embed.h)
 *     pixelcnn    number by number, by rows, pixels and channels: a mixture of K Gaussians. A gated PixelCNN computes
 *                 its parameters from the numbers before and the observed ones. Without transformations it is the
 *                 paper's baseline */
#ifndef ACF_LIKE_IMAGE_LIKE_H
#define ACF_LIKE_IMAGE_LIKE_H

#include "flow/image_flow.h"
#include "nn/pixelcnn.h"
#include "ops/draw.h"

typedef struct acf_image_like acf_image_like;

/* mean and sample are (N,H,W,C) with the observed numbers in place; the sample of a number is keyed by (seed, image id,
 * its index in the image, draw). Samples have no derivative. The pixelcnn's mean comes from a separate network on the
 * observed numbers, which is trained for it (`guess`). Without that network it is chained, each number's mean given
 * those of the numbers before, and has no derivative.
 *
 * d->log_temperature is log T: deviations are multiplied by T, weights of mixtures raised to 1/T (docs/math.md,
 * Temperature). */
typedef struct acf_image_like_kind {
    const char *name;
    acf_status (*declare)(acf_image_like *k, acf_params *ps, const char *name);
    acf_tensor *(*logp)(acf_tape *t, const acf_image_like *k, acf_tensor *z, const acf_image_cond *c); /* (N) */
    acf_tensor *(*mean)(acf_tape *t, const acf_image_like *k, const acf_image_cond *c);
    acf_tensor *(*sample)(acf_tape *t, const acf_image_like *k, const acf_image_cond *c,
                          const acf_draw *d); /* d->at is not used */
    bool mean_has_gradient;                   /* without `guess` */
} acf_image_like_kind;

struct acf_image_like {
    const acf_image_like_kind *kind;
    int64_t H, W, C;
    int64_t width;            /* of its network */
    int blocks, embed_blocks; /* of its network, and of the one for the observed numbers */
    int embed_deep;           /* blocks of the latter's coarse maps */
    int64_t components;       /* K */
    bool guess;               /* pixelcnn: a network gives the mean */
    double lo, hi;            /* bounds of log-scales */
    acf_image_embed see;      /* of gaussian: embedding of the observed numbers, */
    acf_conv_layer say;       /* and the layer after it, per pixel; also of guess */
    acf_pixelcnn pixel;
};

extern const acf_image_like_kind acf_image_normal, acf_image_gaussian, acf_image_pixelcnn;
extern const acf_image_like_kind *const acf_image_like_kinds[]; /* ended by NULL */

#endif
