/* One row of pixels of a PixelCNN, made one pixel after another, given the row of the vertical stream. Each pixel takes
 * the horizontal stream, the mixture it gives, and a draw from that mixture or its mean; the next pixel sees the
 * result.
 *
 *     h_c   = left · [image_{c-3} | image_{c-2} | image_{c-1}] + first_c
 *     each block:   a_c = elu±(h_c)     t_c = in · [a_{c-2} | a_{c-1} | a_c] + aux_c
 *                   p_c = elu±(t_c)     y_c = out · [p_{c-2} | p_{c-1} | p_c] + cond_c
 *                   h_c += y_c[:F] sigmoid(y_c[F:])
 *     mixture_c = head · elu(h_c), its channels chained (chain_means.h)
 *
 * Pixels left of the image are 0. The result is that of the operations that nn/pixelcnn.c composes. As one operation a
 * GPU makes a row in one launch instead of dozens per pixel. No derivative. */
#ifndef ACF_OPS_PIXEL_ROW_H
#define ACF_OPS_PIXEL_ROW_H

#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

#define ACF_ROW_BLOCKS 16

typedef struct acf_row_block {
    acf_tensor *in, *in_bias, *out, *out_bias; /* (F,1,3,2F), (F), (2F,1,3,2F), (2F) */
    acf_tensor *aux, *cond;                    /* (N,1,W,F), (N,1,W,2F) */
} acf_row_block;

typedef struct acf_pixel_row {
    int64_t row;
    acf_tensor *left, *left_bias, *head, *head_bias; /* (F,1,3,2C+1), (F), (A,1,1,F), (A): A = acf_chain_width(C, K) */
    acf_tensor *first;                               /* (N,1,W,F) */
    int blocks;
    acf_row_block block[ACF_ROW_BLOCKS];
    acf_tensor *u, *given; /* (N,H,W,C): the numbers to make; the values elsewhere */
    acf_tensor *image;     /* (N,H,W,2C+1): the row's first C channels are written */
    acf_tensor *z;         /* (N,H,W,C): the row is written */
    int64_t K;
    double lo, hi; /* bounds of log-scales */
} acf_pixel_row;

/* d NULL: means. d->at has the row's numbers, (W,N,C). Borrows all. */
void acf_pixel_row_run(acf_tape *t, const acf_pixel_row *r, const acf_draw *d);

/* True if a GPU can run it: the kept inputs of a row must fit into shared memory. */
bool acf_pixel_row_fits(int64_t F, int64_t C, int64_t A, int64_t K, int blocks);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_pixel_row_attrs {
    int64_t N, H, W, C, F, A, K, row;
    int blocks;
    bool draws;
    double lo, hi;
    acf_draw draw;
    const acf_real *left, *left_bias, *head, *head_bias, *first, *u, *given;
    acf_real *image, *z;
    struct acf_row_pointers {
        const acf_real *in, *in_bias, *out, *out_bias, *aux, *cond;
    } block[ACF_ROW_BLOCKS];
} acf_pixel_row_attrs;

/* Numbers of shared memory per image: for each layer the inputs of three pixels, the image's own three pixels, the
 * stream and results of products, the mixture of a number, and its weights as doubles. */
static inline int64_t acf_pixel_row_numbers(int64_t F, int64_t C, int64_t A, int64_t K, int blocks) {
    const int64_t results = A > 2 * F ? A : 2 * F;
    return 2 * blocks * 3 * 2 * F + 3 * (2 * C + 1) + 2 * F + results + 2 * K + 3 * K + C + 16;
}
#define ACF_ROW_ROOM 40000 /* numbers: 160 KB of shared memory */

#endif
