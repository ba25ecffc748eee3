/* A gated PixelCNN: numbers about every pixel of an image, from the pixels before it (rows above, and in its row those to the left) and from
 * what is observed anywhere.
 *
 *     vertical stream v      at row r knows the rows above r                 kernels 2x3, which never look below
 *     horizontal stream h    at (r,c) also knows its row left of c           kernels 1x3, which never look to the right; gets v
 *     observed               embedded once, without any order, and given to every block of both (nn/image_embed.h)
 *
 *     block    y = x + a sigmoid(g),  [a | g] = conv(drop(elu±(conv(elu±(x)) + 1x1(elu±(v))))) + 1x1(embedding)       elu±(x) = [elu(x) | elu(-x)]
 *
 * All at one resolution: nothing is ever computed twice when pixels are drawn one after the other. The vertical stream of a row is
 * done once for the whole row, when the rows above are there; then each pixel costs the horizontal stream at one place. So a whole image of draws
 * costs the arithmetic of about one pass of the network. What streams have computed is kept in canvases of the image's size; the code of the
 * two ways is the same (`at` below is the whole image, a row, or a pixel). */
#ifndef ACF_NN_PIXELCNN_H
#define ACF_NN_PIXELCNN_H

#include "nn/image_embed.h"
#include "nn/pass.h"
#include "ops/pixel_row.h"
#include "ops/window.h"

#define ACF_PIXEL_BLOCKS 16

typedef struct acf_pixelcnn_shape {
    int64_t H, W, C;
    int64_t width, out; /* channels of the streams; numbers about a pixel */
    int blocks, embed_blocks, embed_deep;
} acf_pixelcnn_shape;

/* Layers besides the blocks', and those of a block. */
enum { ACF_PIXEL_ABOVE, ACF_PIXEL_LEFT, ACF_PIXEL_JOIN, ACF_PIXEL_HEAD, ACF_PIXEL_FIRST };
enum {
    ACF_PIXEL_VIN,
    ACF_PIXEL_VOUT,
    ACF_PIXEL_VCOND,
    ACF_PIXEL_HIN,
    ACF_PIXEL_HAUX,
    ACF_PIXEL_HOUT,
    ACF_PIXEL_HCOND,
    ACF_PIXEL_EACH
};
#define ACF_PIXEL_LAYERS (ACF_PIXEL_FIRST + ACF_PIXEL_BLOCKS * ACF_PIXEL_EACH)

typedef struct acf_pixelcnn {
    acf_pixelcnn_shape shape;
    acf_image_embed embed;
    acf_conv_layer layer[ACF_PIXEL_LAYERS];
} acf_pixelcnn;

/* Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_pixelcnn_declare(acf_pixelcnn *n, acf_params *ps, const char *name, const acf_pixelcnn_shape *shape);

/* (N,H,W,out) about all pixels of z (N,H,W,C), whose observed numbers and mask are `given` and b. Number (r,c) does not depend on z at (r,c) or
 * behind it. */
acf_tensor *acf_pixelcnn_run(acf_tape *t, const acf_pixelcnn *n, acf_tensor *z, acf_tensor *given, acf_tensor *b,
                             const acf_pass *pass);

/* The same one pixel after the other, by rows; the tape does not record. Lives on the tape. */
typedef struct acf_pixel_walk acf_pixel_walk;
typedef struct acf_pixel_change {
    acf_tensor *times,
        *plus; /* (out): what it says about a pixel is multiplied by the first, and the second is added */
} acf_pixel_change;
/* change NULL: none. NULL after a failure. */
acf_pixel_walk *acf_pixel_walk_new(acf_tape *t, const acf_pixelcnn *n, acf_tensor *given, acf_tensor *b,
                                   const acf_pixel_change *change);
/* Begins row r: its pixels are asked for next, all of them. What is made from here on dies when the next row begins. */
void acf_pixel_walk_row(acf_tape *t, acf_pixel_walk *k, int64_t r);
/* (N,1,1,out) about the pixel at column c; */
acf_tensor *acf_pixel_walk_at(acf_tape *t, acf_pixel_walk *k, int64_t c);
/* and what it is, (N,1,1,C). What was made since acf_pixel_walk_at dies. */
void acf_pixel_walk_set(acf_tape *t, acf_pixel_walk *k, int64_t c, acf_tensor *pixel);
/* The whole row that was begun, at once, instead of the two above: every pixel is drawn from the mixtures that the network says, or with d NULL is
 * their mean (ops/pixel_row.h). Of `how` u, given, K, lo and hi are read; d->at has the row's numbers. */
void acf_pixel_walk_fill(acf_tape *t, acf_pixel_walk *k, acf_pixel_row how, const acf_draw *d);
/* The image as it is now, (N,H,W,C). */
acf_tensor *acf_pixel_walk_image(acf_pixel_walk *k);

#endif
