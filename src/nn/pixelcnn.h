/* A gated PixelCNN: numbers about every pixel of an image, from the pixels before it (rows above, and in its row those
 * to the left) and from the observed pixels anywhere.
 *
 *     vertical stream v      at row r sees the rows above r                  kernels 2x3, which never reach below
 *     horizontal stream h    at (r,c) also sees its row left of c            kernels 1x3, never to the right; input v
 *     observed               embedded once, without any order, an input of every block of both (nn/image_embed.h)
 *
 *     block    y = x + a sigmoid(g),  [a | g] = conv(drop(elu±(conv(elu±(x)) + 1x1(elu±(v))))) + 1x1(embedding)
 *              elu±(x) = [elu(x) | elu(-x)]
 *
 * All at one resolution, so nothing is computed twice when pixels are drawn one after the other. The vertical stream of
 * a row runs once for the whole row, when the rows above are complete. Then each pixel costs the horizontal stream at
 * one position. So a whole image of draws costs the arithmetic of about one pass of the network. Results of the streams
 * are kept in canvases of the image's size. The code of both ways is the same (`at` below is the whole image, a row, or
 * a pixel). */
#ifndef ACF_NN_PIXELCNN_H
#define ACF_NN_PIXELCNN_H

#include "nn/image_embed.h"
#include "nn/pass.h"
#include "ops/pixel_row.h"
#include "ops/window.h"

#define ACF_PIXEL_BLOCKS 16

typedef struct acf_pixelcnn_shape {
    int64_t H, W, C;
    int64_t width, out; /* channels of the streams; numbers per pixel */
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

/* (N,H,W,out) for all pixels of z (N,H,W,C), whose observed numbers and mask are `given` and b. Number (r,c) does not
 * depend on z at (r,c) or behind it. */
acf_tensor *acf_pixelcnn_run(acf_tape *t, const acf_pixelcnn *n, acf_tensor *z, acf_tensor *given, acf_tensor *b,
                             const acf_pass *pass);

/* The same one pixel after another, by rows; the tape does not record. On the tape. */
typedef struct acf_pixel_walk acf_pixel_walk;
typedef struct acf_pixel_change {
    acf_tensor *times,
        *plus; /* (out): the network's output for a pixel is multiplied by `times`, then `plus` is added */
} acf_pixel_change;
/* change NULL: none. NULL after a failure. */
acf_pixel_walk *acf_pixel_walk_new(acf_tape *t, const acf_pixelcnn *n, acf_tensor *given, acf_tensor *b,
                                   const acf_pixel_change *change);
/* Begins row r, whose pixels must all follow. Memory made from here on is released when the next row begins. */
void acf_pixel_walk_row(acf_tape *t, acf_pixel_walk *k, int64_t r);
/* (N,1,1,out) for the pixel at column c. */
acf_tensor *acf_pixel_walk_at(acf_tape *t, acf_pixel_walk *k, int64_t c);
/* Sets that pixel, (N,1,1,C). Memory made since acf_pixel_walk_at is released. */
void acf_pixel_walk_set(acf_tape *t, acf_pixel_walk *k, int64_t c, acf_tensor *pixel);
/* Fills the whole row at once, instead of the two calls above. Every pixel is drawn from the mixtures of the network,
 * or with d NULL is their mean (ops/pixel_row.h). Of `how`, u, given, K, lo and hi are read; d->at has the row's
 * numbers. */
void acf_pixel_walk_fill(acf_tape *t, acf_pixel_walk *k, acf_pixel_row how, const acf_draw *d);
/* The image as it is now, (N,H,W,C). */
acf_tensor *acf_pixel_walk_image(acf_pixel_walk *k);

#endif
