/* Maps the levels of an image's pixels to the real numbers of a flow, and back, with a map of levels (image_map.h;
 * docs/math.md, Encoding of images).
 *
 *     level k = 0 .. 2^n - 1  -->  v = k + u  -->  y
 *
 * For a modelled pixel (b = 0), u is uniform on (0,1) and depends on `draw`, so a density of v gives a probability
 * of k. For a given pixel (b = 1), u = 1/2: given pixels get no noise. u has 16 bits and stays at least 2^-17 away
 * from 0 and 1, so y maps back to exactly its level.
 *
 * The log-determinant of an image is the sum of log dy/dv over its modelled pixels and channels. -log p(y) minus
 * this sum is in nats of levels; divided by H W C log 2, it is in bits per dimension.
 *
 * All arrays are in host memory, (N,P,C) with P = H W pixels. b is (N,P): all channels of a pixel have the same
 * role. Same bits for any number of threads and any batch: the noise is keyed by (seed, image id, pixel and channel,
 * draw). */
#ifndef ACF_IMAGE_IMAGE_ENCODE_H
#define ACF_IMAGE_IMAGE_ENCODE_H

#include "base/rng.h"
#include "device/device.h"
#include "image/image_map.h"

/* The map and the shape of the images. */
typedef struct acf_image_code {
    const acf_image_map *map; /* borrowed */
    int64_t P, C;             /* pixels and channels of an image */
} acf_image_code;

/* y (N,P,C) from level (N,P,C); logdet (N), or NULL. b NULL: nothing is given. id (N), below 2^48. */
void acf_image_encode(const acf_device *dev, const acf_image_code *c, int64_t N, const uint8_t *level, const uint8_t *b,
                      uint64_t seed, const uint64_t *id, uint32_t draw, acf_real *y, double *logdet);

/* level (N,P,C): the level of y where b = 0; the value of `given` (N,P,C) where b = 1, bit for bit. b NULL:
 * everything is decoded, and given is not read. NaN gives 0. */
void acf_image_decode(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y, const uint8_t *b,
                      const uint8_t *given, uint8_t *level);

/* The same as real numbers, for a best guess scored by its squared error: v - 1/2, which is k if v is the middle of
 * its level. */
void acf_image_decode_real(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y,
                           const uint8_t *b, const uint8_t *given, double *level);

#endif
