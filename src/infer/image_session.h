/* Questions to a fitted model of images: log p of hidden pixels given the others, draws of them, one best guess, chains.
 *
 * What is hidden is a mask b (N,H,W), not 0: given; NULL: nothing is, which asks for the joint. Answers are levels as in the images; given pixels come
 * back bit for bit. A model that learned rounds (image/image_passes.h) is asked for log p and for draws in rounds, unless it is told not to (at_once): the
 * density is always that of the draws. Draws are keyed by (seed, the image's number, pixel, draw): the same for any batch and number of threads. Levels are
 * dequantised by noise of their own keys, so an answer is a function of image, mask, seed and draw.
 *
 * A session is a model and the memory to ask it with: one per thread. */
#ifndef ACF_INFER_IMAGE_SESSION_H
#define ACF_INFER_IMAGE_SESSION_H

#include "image/images.h"
#include "model/model.h"

typedef struct acf_image_session acf_image_session;

/* Keeps m, which is a model of images. Gives *out; free with acf_image_session_free. Fails: ACF_EMEMORY. */
acf_status acf_image_session_open(const acf_model *m, acf_image_session **out);
/* The rounds that it asks in. */
int acf_image_session_passes(const acf_image_session *s);

/* All fail with: ACF_EDATA (images of another size), ACF_ENUMERIC, ACF_EMEMORY. */

/* out (N): log p(hidden | given) of each image, a density in units of levels, in nats; 0 where nothing is hidden. The noise in levels is a mean over
 * `draws` draws of it, 1 or more. */
acf_status acf_image_session_query_logp(acf_image_session *s, const acf_images *im, const uint8_t *b, int32_t draws,
                                        double *out);

/* out (N,H,W,C): draw number `draw`. */
acf_status acf_image_session_query_draw(acf_image_session *s, const acf_images *im, const uint8_t *b, uint64_t seed,
                                        uint32_t draw, uint8_t *out);

/* The best guess, as levels and, where level is NULL, as real numbers between them, which are nearer to the truth by some hundredths. Of a model that learned
 * images with copies, turned or mirrored, the mean over these of a question, where the model knows their masks: all that it learned have their like, or this one is
 * its own. */
acf_status acf_image_session_query_guess(acf_image_session *s, const acf_images *im, const uint8_t *b, uint8_t *level,
                                         double *real);

/* A chain: out (steps + 1, N,H,W,C) begins with `first`, or the images where it is NULL; in each step one half is drawn anew given the other: top, left, bottom, right, and
 * again. */
acf_status acf_image_session_query_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first,
                                         uint64_t seed, int64_t steps, uint8_t *out);

#endif
