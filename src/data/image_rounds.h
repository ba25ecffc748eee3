/* Hidden pixels one round after the other, coarse ones first.
 *
 *     p(x_u | x_o) = prod_k p(x_{u_k} | x_o, x_{u_1}, .., x_{u_k-1})        u_k: the hidden pixels of round k
 *
 * Every factor is a question to the same model: what earlier rounds found is given, what later ones will find is left out. Of S rounds the first has every
 * 2^(S-1)-th pixel of every 2^(S-1)-th row, and each later one the pixels that halve that distance:
 *
 *     S = 3      1 2 1 2 1 2 1 2        The few pixels of early rounds decide what a picture shows, each seen from everywhere, before any texture is
 *                2 2 2 2 2 2 2 2        made. Asked for half a face at once, a model decides it from one end to the other, by what is near.
 *                1 2 0 2 1 2 0 2
 *                2 2 2 2 2 2 2 2
 *
 * In a round a pixel has one of three roles; where all is asked at once, one of the first two. */
#ifndef ACF_DATA_IMAGE_ROUNDS_H
#define ACF_DATA_IMAGE_ROUNDS_H

#include "base/pixel.h"
#include "base/rng.h"

#define ACF_IMAGE_ROUNDS_MAX 9

/* The round of row y, column x: 0 .. rounds - 1. */
int acf_image_round_of(int rounds, int64_t y, int64_t x);

/* role (H,W) of the pixels in round k, where b (H,W) is not 0 for those given in all; role may be b. Returns how many are asked for. */
int64_t acf_image_round(int rounds, int k, int64_t H, int64_t W, const uint8_t *b, uint8_t *role);

/* For training: turns the mask b (H,W) of an image into one of its rounds, drawn by `at` from those that ask for something, or with probability 1/2 leaves
 * it as it is, all at once. Returns the weight of the image's loss, sqrt(hidden / asked): a round of ten pixels must not be lost in the loss of thousands. */
double acf_image_round_draw(int rounds, acf_place at, int64_t H, int64_t W, uint8_t *b);

#endif
