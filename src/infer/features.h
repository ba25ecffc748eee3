/* Feature vectors of images for prd.h, for when no better features are available. They are learned from the images
 * themselves, without labels:
 *
 *     image, rotated or flipped ── 3 convolutions, each halving it ── 64 numbers ── which of 8 orientations it had
 *                                                                        └── features: these numbers of the image
 *                                                                            as it is, and a thumbnail of it
 *
 * The network captures structure, the thumbnail overall content; docs/images.md has the reasons and figures. It is
 * small and always runs on the CPU, so that the same images and seed give the same features on every machine of a
 * kind, for any number of threads. It takes seconds for digits of 28x28, below a minute for faces of 64x64. Figures
 * over these features are comparable if images and seed are the same, but not with figures over other features. */
#ifndef ACF_INFER_FEATURES_H
#define ACF_INFER_FEATURES_H

#include "image/images.h"

#define ACF_FEATURES_MAX (64 + 8 * 8 * 3) /* of an image */
#define ACF_FEATURE_STEPS 500             /* of training */

typedef struct acf_features acf_features;

/* Learns from the images in so many steps. Keeps the CPU device, borrows im. Gives *out; free with
 * acf_features_free. Fails: ACF_EMEMORY, ACF_ENUMERIC. */
acf_status acf_features_learn(acf_device *cpu, const acf_images *im, int64_t steps, uint64_t seed, acf_features **out);
void acf_features_free(acf_features *f); /* NULL is allowed */

/* Number of features of an image; at most ACF_FEATURES_MAX. */
int64_t acf_features_count(const acf_features *f);

/* out (N, count): features of levels (N,H,W,C), of the same shape as the training images. Fails: ACF_EMEMORY. */
acf_status acf_features_of(acf_features *f, const uint8_t *level, int64_t N, acf_real *out);

/* Accuracy of the predicted orientation over all orientations of these images: a check of what was learned. */
acf_status acf_features_right(acf_features *f, const uint8_t *level, int64_t N, double *out);

#endif
