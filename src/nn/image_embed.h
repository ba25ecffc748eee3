/* What is observed of an image, as numbers for every pixel: what is near from a residual network, what is far from coarser and coarser maps, which are laid
 * back on the finer ones, down to one vector for the whole image.
 *
 *     map_0     = resnet([relu(x), relu(-x), b])                                        (N,H,W,E)
 *     map_l+1   = deep(pool2x2(relu(conv3x3(map_l))))                                   down to at most 4x4
 *     vector    = linear(the last map)                                                  (N,E)
 *     see_L     = deep(map_L + vector at every pixel)
 *     see_l     = deep(map_l + conv3x3(relu(unsqueeze(conv1x1(see_l+1)))))              the 1x1 has 4E channels, a square of pixels each; see_0 is not deep
 *     result    = see_0                                                                 (N,H,W,E)
 *     deep(x)   : x = x + conv3x3(relu(conv3x3(relu(x)))) so many times, 4E channels between the two, 2E in map_1; 0 at first
 *
 * Without deep the coarse maps cost a third of the fine one together, and every pixel knows of every other. What a picture shows as a whole is decided in them:
 * there depth is cheap, two blocks each way cost about as much as the fine map's two (docs/RESULTS.md). */
#ifndef ACF_NN_IMAGE_EMBED_H
#define ACF_NN_IMAGE_EMBED_H

#include "nn/resnet.h"

#define ACF_EMBED_LEVELS 8
#define ACF_EMBED_DEEP 8

typedef struct acf_image_embed_shape {
    int64_t H, W, C;
    int64_t width;    /* E, and the networks' */
    int blocks, deep; /* residual ones, of the fine map and of each coarse one, down and back; 0 to ACF_EMBED_DEEP */
} acf_image_embed_shape;

enum { ACF_EMBED_DOWN, ACF_EMBED_BACK, ACF_EMBED_WAYS };

typedef struct acf_image_embed {
    acf_resnet map;
    int levels, deep; /* L; blocks of a coarse map, each way */
    acf_conv_layer down[ACF_EMBED_LEVELS], spread[ACF_EMBED_LEVELS],
        up[ACF_EMBED_LEVELS]; /* from a map to the next; and back, 1x1 and 3x3 */
    struct {
        acf_conv_layer wide, back;
    } block[ACF_EMBED_LEVELS][ACF_EMBED_WAYS][ACF_EMBED_DEEP]; /* of map l + 1 */
    acf_param *w, *b;                                          /* (E, pixels left · E), (E) */
} acf_image_embed;

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name,
                                   const acf_image_embed_shape *shape);

/* (N,H,W,E) from the observed numbers (0 elsewhere) and their mask, (N,H,W,C). */
acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b);

#endif
