/* Embedding of the observed part of an image, as numbers for every pixel. A residual network covers the neighbourhood.
 * Coarser and coarser maps cover the rest, down to one vector for the whole image, and are added back to the finer
 * maps.
 *
 *     map_0     = resnet([relu(x), relu(-x), b])                              (N,H,W,E)
 *     map_l+1   = deep(pool2x2(relu(conv3x3(map_l))))                         down to at most 4x4
 *     vector    = linear(the last map)                                        (N,E)
 *     see_L     = deep(map_L + vector at every pixel)
 *     see_l     = deep(map_l + conv3x3(relu(unsqueeze(conv1x1(see_l+1)))))    the 1x1 has 4E channels, a square of
 *                                                                             pixels each; see_0 has no deep
 *     result    = see_0                                                       (N,H,W,E)
 *     deep(x)   : x = x + conv3x3(relu(conv3x3(relu(x)))), `deep` times       4E channels between the two, 2E in
 *                                                                             map_1; 0 at first
 *
 * Without deep, all coarse maps together cost a third of the fine one, and every pixel still depends on every other.
 * The coarse maps decide what an image shows as a whole. Depth is cheap there: two blocks each way cost about as much
 * as the two blocks of the fine map (experiments/NOTES.md). */
#ifndef ACF_NN_IMAGE_EMBED_H
#define ACF_NN_IMAGE_EMBED_H

#include "nn/resnet.h"

#define ACF_EMBED_LEVELS 8
#define ACF_EMBED_DEEP 8

typedef struct acf_image_embed_shape {
    int64_t H, W, C;
    int64_t width;    /* E, and the networks' */
    int blocks, deep; /* residual blocks, of the fine map and of each coarse one, down and back; 0 to ACF_EMBED_DEEP */
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
    acf_param *w, *b;                                          /* (E, pixels of the last map · E), (E) */
} acf_image_embed;

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name,
                                   const acf_image_embed_shape *shape);

/* (N,H,W,E) from the observed numbers (0 elsewhere) and their mask, (N,H,W,C). */
acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b);

#endif
