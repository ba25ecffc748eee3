/* What an image is like, in some numbers: features for prd.h where nobody has better ones. Made from the images themselves, without labels:
 *
 *     image, turned or mirrored ── 3 convolutions, each halving it ── 64 numbers ── which of 8 ways it was turned and mirrored
 *                                                                        └── features: these numbers of the image as it is, and a thumbnail of it
 *
 * The network knows how things fit together, the thumbnail what there is; docs/images.md has the reasons and figures. Small, and always on the CPU:
 * so that the same images and seed give the same features on every machine of a kind, for any number of threads. Seconds for digits of 28x28, below
 * a minute for faces of 64x64. Figures over these features can be compared with each other, where images and seed are the same; not with figures
 * over other features. */
#ifndef ACF_INFER_FEATURES_H
#define ACF_INFER_FEATURES_H

#include "image/images.h"

#define ACF_FEATURES_MAX (64 + 8 * 8 * 3) /* of an image */
#define ACF_FEATURE_STEPS 500             /* of training */

typedef struct acf_features acf_features;

/* Learns from the images, in so many steps. Keeps the CPU device, borrows im. Gives *out; free with acf_features_free. Fails: ACF_EMEMORY, ACF_ENUMERIC. */
acf_status acf_features_learn(acf_device *cpu, const acf_images *im, int64_t steps, uint64_t seed, acf_features **out);
void acf_features_free(acf_features *f); /* NULL is allowed */

/* How many numbers the features of an image are; at most ACF_FEATURES_MAX. */
int64_t acf_features_count(const acf_features *f);

/* out (N, count) of levels (N,H,W,C), as in the images it was made from. Fails: ACF_EMEMORY. */
acf_status acf_features_of(acf_features *f, const uint8_t *level, int64_t N, acf_real *out);

/* How often it tells rightly how these images were turned and mirrored, each in all ways: what has been learned. */
acf_status acf_features_right(acf_features *f, const uint8_t *level, int64_t N, double *out);

#endif
