/* Imputes hidden pixels in coarse-to-fine passes.
 *
 *     p(x_u | x_o) = prod_k p(x_{u_k} | x_o, x_{u_1}, .., x_{u_k-1})        u_k: the hidden pixels of pass k
 *
 * Every factor is a query to the same model: pixels of earlier passes are given, pixels of later passes are left
 * out. Each pass doubles the number of known pixels: first the middles of a grid's squares, then the middles of
 * their sides, which makes the grid twice as fine.
 *
 *     5 passes   1 4 2 4 1 4 2 4        The few pixels of early passes decide what a picture shows before any texture
 *                4 3 4 3 4 3 4 3        is made, and each is queried between four known pixels. In a single pass over
 *                2 4 0 4 2 4 0 4        half a face, a model decides it from one end to the other, from nearby pixels.
 *                4 3 4 3 4 3 4 3        With grids alone, neighbours at grid distance are decided independently.
 *                1 4 2 4 1 4 2 4
 *                4 3 4 3 4 3 4 3
 *
 * The pixels (y,x) with both a multiple of 2^l form lattice 2l; those of them with y/2^l + x/2^l even form lattice
 * 2l + 1. Of R passes the first is lattice R - 1, shifted to the middle. Each later pass is what the next finer
 * lattice adds.
 *
 * A pixel has one of three roles in a pass, and one of the first two in a single pass. */
#ifndef ACF_IMAGE_IMAGE_PASSES_H
#define ACF_IMAGE_IMAGE_PASSES_H

#include "base/pixel.h"
#include "base/rng.h"

#define ACF_IMAGE_PASSES_MAX 17 /* the first pass then has every 256th pixel of every 256th row */

/* The pass of row y, column x: 0 .. passes - 1. */
int acf_image_pass_of(int passes, int64_t y, int64_t x);

/* role (H,W) of the pixels in pass k. b (H,W) is not 0 for pixels given in all passes; role may be b. Returns the
 * number of pixels to be modelled. */
int64_t acf_image_pass(int passes, int k, int64_t H, int64_t W, const uint8_t *b, uint8_t *role);

/* For training: replaces the mask b (H,W) of an image by one of its passes, drawn by `at` from those with modelled
 * pixels. With probability 1/4 the mask stays as it is, a single pass. Returns the weight of the image's loss,
 * (hidden / modelled)^(3/4), so that a pass of ten pixels still counts beside one of thousands. */
double acf_image_pass_draw(int passes, acf_rng_counter at, int64_t H, int64_t W, uint8_t *b);

#endif
