/* What is observed of an image, as numbers for every pixel: what is near from a residual network, what is far from coarser and coarser maps, which are laid
 * back on the finer ones, down to one vector for the whole image.
 *
 *     map_0     = resnet([relu(x), relu(-x), b])                                        (N,H,W,E)
 *     map_l+1   = pool2x2(relu(conv3x3(map_l)))                                         down to at most 4x4
 *     vector    = linear(the last map)                                                  (N,E)
 *     see_L     = map_L + vector at every pixel
 *     see_l     = map_l + conv3x3(relu(unsqueeze(conv1x1(see_l+1))))                    the 1x1 has 4E channels, a square of pixels each
 *     result    = see_0                                                                 (N,H,W,E)
 *
 * The coarse maps cost a third of the fine one together, and every pixel knows of every other. */
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
    int levels; /* L */
    acf_conv_layer down[ACF_EMBED_LEVELS], spread[ACF_EMBED_LEVELS], up[ACF_EMBED_LEVELS]; /* from a map to the next; and back, 1x1 and 3x3 */
    acf_param *w, *b; /* (E, pixels left · E), (E) */
} acf_image_embed;

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name, const acf_image_embed_shape *shape);

/* (N,H,W,E) from the observed numbers (0 elsewhere) and their mask, (N,H,W,C). */
acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b);

#endif
