/* Hidden pixels one round after the other, coarse ones first.
 *
 *     p(x_u | x_o) = prod_k p(x_{u_k} | x_o, x_{u_1}, .., x_{u_k-1})        u_k: the hidden pixels of round k
 *
 * Every factor is a question to the same model: what earlier rounds found is given, what later ones will find is left out. Every round doubles the pixels that
 * are known: of a grid first come the middles of its squares, then the middles of their sides, and that is the grid twice as fine.
 *
 *     5 rounds   1 4 2 4 1 4 2 4        The few pixels of early rounds decide what a picture shows, before any texture is made, and each is asked for
 *                4 3 4 3 4 3 4 3        between four that are known. Asked for half a face at once, a model decides it from one end to the other, by what
 *                2 4 0 4 2 4 0 4        is near; with grids alone, neighbours at the distance of a grid are decided without knowing of each other.
 *                4 3 4 3 4 3 4 3
 *                1 4 2 4 1 4 2 4        The pixels (y,x) with both a multiple of 2^l are of lattice 2l; those of them with y/2^l + x/2^l even are of
 *                4 3 4 3 4 3 4 3        lattice 2l + 1. Of R rounds the first has lattice R - 1, moved so that it lies in the middle, each later one
 *                                       what the next finer lattice adds.
 *
 * In a round a pixel has one of three roles; where all is asked at once, one of the first two. */
#ifndef ACF_IMAGE_IMAGE_PASSES_H
#define ACF_IMAGE_IMAGE_PASSES_H

#include "base/pixel.h"
#include "base/rng.h"

#define ACF_IMAGE_PASSES_MAX 17 /* of which the first is every 256th pixel of every 256th row */

/* The round of row y, column x: 0 .. rounds - 1. */
int acf_image_pass_of(int passes, int64_t y, int64_t x);

/* role (H,W) of the pixels in round k, where b (H,W) is not 0 for those given in all; role may be b. Returns how many are asked for. */
int64_t acf_image_pass(int passes, int k, int64_t H, int64_t W, const uint8_t *b, uint8_t *role);

/* For training: turns the mask b (H,W) of an image into one of its rounds, drawn by `at` from those that ask for something, or with probability 1/4 leaves
 * it as it is, all at once. Returns the weight of the image's loss, (hidden / asked)^(3/4): a round of ten pixels must not be lost in the loss of thousands. */
double acf_image_pass_draw(int passes, acf_rng_counter at, int64_t H, int64_t W, uint8_t *b);

#endif
