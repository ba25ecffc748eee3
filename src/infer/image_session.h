/* Queries to a fitted model of images: log p of hidden pixels given the others, draws of them, a best guess, Gibbs
 * chains.
 *
 * In the mask b (N,H,W) nonzero pixels are given; NULL: none is, for the joint. Answers are levels as in the images;
 * given pixels come back bit for bit. A model that learned several passes (image/image_passes.h) uses them for log p
 * and draws, unless at_once is set; log p is always that of the draws. Draws are keyed by (seed, image number,
 * pixel, draw), so they do not depend on batch or threads. Noise for dequantisation has its own keys, so an answer
 * is a function of image, mask, seed and draw.
 *
 * A session is a model and the memory for queries: one per thread. */
#ifndef ACF_INFER_IMAGE_SESSION_H
#define ACF_INFER_IMAGE_SESSION_H

#include "image/images.h"
#include "model/model.h"

typedef struct acf_image_session acf_image_session;

/* Keeps m, a model of images. Gives *out; free with acf_image_session_free. Fails: ACF_EMEMORY. */
acf_status acf_image_session_open(const acf_model *m, acf_image_session **out);
/* The number of passes that it uses. */
int acf_image_session_passes(const acf_image_session *s);

/* All fail with: ACF_EDATA (images of another size), ACF_ENUMERIC, ACF_EMEMORY. */

/* out (N): log p(hidden | given) of each image in nats, a density in units of levels; 0 if nothing is hidden. It is
 * averaged over `draws` draws of the dequantisation noise, at least 1. */
acf_status acf_image_session_query_logp(acf_image_session *s, const acf_images *im, const uint8_t *b, int32_t draws,
                                        double *out);

/* out (N,H,W,C): draw number `draw`. */
acf_status acf_image_session_query_draw(acf_image_session *s, const acf_images *im, const uint8_t *b, uint64_t seed,
                                        uint32_t draw, uint8_t *out);

/* The best guess: levels, or, if level is NULL, real numbers, which avoid rounding and score slightly better. If
 * training added rotated or flipped copies, the guess is the mean over these copies of the query. A copy is used
 * only if the model also knows its mask: all training masks have such copies, or this mask is symmetric. */
acf_status acf_image_session_query_guess(acf_image_session *s, const acf_images *im, const uint8_t *b, uint8_t *level,
                                         double *real);

/* A Gibbs chain: out (steps + 1, N,H,W,C) begins with `first`, or with the images if it is NULL. Each step redraws
 * one half given the other: top, left, bottom, right, and again. */
acf_status acf_image_session_query_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first,
                                         uint64_t seed, int64_t steps, uint8_t *out);

#endif
