/* What is observed of an image, as numbers for every pixel: a residual network for what is near, and one vector for the whole image.
 *
 *     map     = resnet([relu(x), relu(-x), b])                                    (N,H,W,E)
 *     vector  = linear(3x3 convolutions and 2x2 pools of the map, down to at most 4x4) (N,E)
 *     result  = map + vector at every pixel
 */
#ifndef ACF_NN_IMAGE_EMBED_H
#define ACF_NN_IMAGE_EMBED_H

#include "nn/resnet.h"

#define ACF_EMBED_LEVELS 8

typedef struct acf_image_embed_shape {
    int64_t H, W, C;
    int64_t width; /* E, and the networks' */
    int blocks;
} acf_image_embed_shape;

typedef struct acf_image_embed {
    acf_resnet map;
    int levels;
    acf_conv_layer down[ACF_EMBED_LEVELS];
    acf_param *w, *b; /* (E, pixels left · E), (E) */
} acf_image_embed;

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name, const acf_image_embed_shape *shape);

/* (N,H,W,E) from the observed numbers (0 elsewhere) and their mask, (N,H,W,C). */
acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b);

#endif
