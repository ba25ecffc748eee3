/* Encoding of images: see image_encode.h. Two logarithms a modelled channel, some 15 ns with its noise; given ones come from a table of at most 256 entries. */
#include "data/image_encode.h"

#include "device/cpu.h"

#include <math.h>

#define WORDS 64

double acf_image_logit(double v, int bits, double *slope) {
    const double p = ACF_IMAGE_ALPHA + (1 - 2 * ACF_IMAGE_ALPHA) * ldexp(v, -bits);
    const double yes = log(p), no = log(1 - p);
    *slope = log(1 - 2 * ACF_IMAGE_ALPHA) - bits * M_LN2 - yes - no;
    return yes - no;
}

double acf_image_unlogit(double y, int bits) {
    const double p = 1 / (1 + exp(-y));
    return ldexp((p - ACF_IMAGE_ALPHA) / (1 - 2 * ACF_IMAGE_ALPHA), bits);
}

/* y of every level when it is given. */
static void make_table(int bits, acf_real table[256]) {
    double slope;
    for (int k = 0; k < 1 << bits; k++) table[k] = (acf_real)acf_image_logit(k + 0.5, bits, &slope);
}

/* One image; returns its log-determinant. Noise is drawn in runs of WORDS channels, whether they are modelled or not: a place is a place. */
static double encode_one(const acf_image_code *c, const acf_real table[256], const uint8_t *level, const uint8_t *b, acf_place at, acf_real *y) {
    const int64_t n = c->P * c->C;
    uint32_t word[WORDS];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % WORDS == 0) {
            at.column = (uint32_t)(i / 4);
            acf_rng_words(at, acf_min(WORDS, n - i), word);
        }
        if (b && b[i / c->C]) {
            y[i] = table[level[i]];
            continue;
        }
        double slope;
        const double u = ((double)(word[i % WORDS] >> 16) + 0.5) * 0x1p-16;
        y[i] = (acf_real)acf_image_logit(level[i] + u, c->bits, &slope);
        sum += slope;
    }
    return sum;
}

void acf_image_encode(const acf_device *dev, const acf_image_code *c, int64_t N, const uint8_t *level, const uint8_t *b, uint64_t seed,
                      const uint64_t *id, uint32_t draw, acf_real *y, double *logdet) {
    acf_real table[256];
    const int64_t n = c->P * c->C;
    make_table(c->bits, table);
    ACF_PARALLEL(dev, N * n * 16)
    for (int64_t i = 0; i < N; i++) {
        const acf_place at = {seed, id[i], ACF_STREAM_NOISE, 0, draw};
        const double sum = encode_one(c, table, level + i * n, b ? b + i * c->P : NULL, at, y + i * n);
        if (logdet) logdet[i] = sum;
    }
}

/* v within 0 .. 2^bits - 1, also where y is NaN. */
static double clipped(double v, int bits) {
    const double top = (double)((1 << bits) - 1);
    return !(v > 0) ? 0 : v > top ? top : v;
}

void acf_image_decode(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y, const uint8_t *b, const uint8_t *given,
                      uint8_t *level) {
    const int64_t n = N * c->P * c->C;
    ACF_PARALLEL(dev, n * 16)
    for (int64_t i = 0; i < n; i++)
        level[i] = b && b[i / c->C] ? given[i] : (uint8_t)clipped(acf_image_unlogit((double)y[i], c->bits), c->bits);
}

void acf_image_decode_real(const acf_device *dev, const acf_image_code *c, int64_t N, const acf_real *y, const uint8_t *b, const uint8_t *given,
                           double *level) {
    const int64_t n = N * c->P * c->C;
    ACF_PARALLEL(dev, n * 16)
    for (int64_t i = 0; i < n; i++)
        level[i] = b && b[i / c->C] ? given[i] : clipped(acf_image_unlogit((double)y[i], c->bits) - 0.5, c->bits);
}
