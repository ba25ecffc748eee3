/* Encoding of images: see image_encode.h. One quantile for each modelled channel; given ones come from the map's
 * table. */
#include "image/image_encode.h"

#include "device/cpu.h"

#define WORDS 64

/* Encodes one image; returns its log-determinant. Noise is drawn in runs of WORDS channels, modelled or not: the
 * counter depends only on the position. */
static double encode_one(const acf_image_code *c, const uint8_t *level, const uint8_t *b, acf_rng_counter at,
                         acf_real *y) {
    const int64_t n = c->P * c->C;
    uint32_t word[WORDS];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % WORDS == 0) {
            at.column = (uint32_t)(i / 4);
            acf_rng_words(at, acf_min(WORDS, n - i), word);
        }
        if (b && b[i / c->C]) {
            y[i] = c->map->middle[level[i]];
            continue;
        }
        double slope;
        const double u = ((double)(word[i % WORDS] >> 16) + 0.5) * 0x1p-16;
        y[i] = acf_image_map_real(c->map, level[i], acf_image_map_at(c->map, level[i], u, &slope));
        sum += slope;
    }
    return sum;
}

void acf_image_encode(const acf_device *dev, const acf_image_code *c, int64_t N, const uint8_t *level, const uint8_t *b,
                      uint64_t seed, const uint64_t *id, uint32_t draw, acf_real *y, double *logdet) {
    const int64_t n = c->P * c->C;
    ACF_PARALLEL(dev, N * n * 16)
    for (int64_t i = 0; i < N; i++) {
        const acf_rng_counter at = {seed, id[i], ACF_STREAM_NOISE, 0, draw};
        const double sum = encode_one(c, level + i * n, b ? b + i * c->P : NULL, at, y + i * n);
        if (logdet) logdet[i] = sum;
    }
}

void acf_image_decode(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y, const uint8_t *b,
                      const uint8_t *given, uint8_t *level) {
    const int64_t n = N * c->P * c->C;
    ACF_PARALLEL(dev, n * 16)
    for (int64_t i = 0; i < n; i++)
        level[i] = b && b[i / c->C] ? given[i] : (uint8_t)acf_image_map_level(c->map, (double)y[i]);
}

/* v - 1/2, clamped to 0 .. 2^bits - 1. */
static double middled(double v, int bits) {
    const double top = (double)((1 << bits) - 1);
    return v < 0.5 ? 0 : v - 0.5 > top ? top : v - 0.5;
}

void acf_image_decode_real(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y,
                           const uint8_t *b, const uint8_t *given, double *level) {
    const int64_t n = N * c->P * c->C;
    ACF_PARALLEL(dev, n * 16)
    for (int64_t i = 0; i < n; i++)
        level[i] = b && b[i / c->C] ? given[i] : middled(acf_image_map_back(c->map, (double)y[i]), c->map->bits);
}
