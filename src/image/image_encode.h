/* Between the levels of an image's pixels and the real numbers a flow works on, and back, by a map of levels (image_map.h; docs/math.md, Encoding
 * of images).
 *
 *     level k = 0 .. 2^n - 1  -->  v = k + u  -->  y
 *
 * u is uniform on (0,1) and drawn anew by `draw` where a pixel is modelled (b = 0), so that a density of v gives a probability of k; where it is
 * given (b = 1), u = 1/2: what is known is not made noisy. u has 16 bits and never comes nearer to 0 or 1 than 2^-17; y gives back its level exactly.
 *
 * The log-determinant of an image is the sum over its modelled pixels and channels of log dy/dv, and -log p(y) minus it is in nats of levels:
 * divided by H W C log 2, bits per dimension.
 *
 * All arrays are in host memory, (N,P,C) with P = H W pixels; b is (N,P), all channels alike. Same bits for any number of threads and any batch:
 * noise is keyed by (seed, image id, pixel and channel, draw). */
#ifndef ACF_IMAGE_IMAGE_ENCODE_H
#define ACF_IMAGE_IMAGE_ENCODE_H

#include "base/rng.h"
#include "device/device.h"
#include "image/image_map.h"

/* By what, and the shape of what is coded. */
typedef struct acf_image_code {
    const acf_image_map *map; /* keeps */
    int64_t P, C;             /* pixels and channels of an image */
} acf_image_code;

/* y (N,P,C) from level (N,P,C); logdet (N), or NULL. b NULL: nothing is given. id (N), below 2^48. */
void acf_image_encode(const acf_device *dev, const acf_image_code *c, int64_t N, const uint8_t *level, const uint8_t *b,
                      uint64_t seed, const uint64_t *id, uint32_t draw, acf_real *y, double *logdet);

/* level (N,P,C): the one that y belongs to where b = 0; what `given` (N,P,C) has where b = 1, bit for bit.
 * b NULL: everything is decoded, and given is not read. NaN gives 0. */
void acf_image_decode(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y, const uint8_t *b,
                      const uint8_t *given, uint8_t *level);

/* The same as real numbers, for a best guess that is scored by its squared error: v - 1/2, which is k where v lies in the middle of its level. */
void acf_image_decode_real(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y,
                           const uint8_t *b, const uint8_t *given, double *level);

#endif
