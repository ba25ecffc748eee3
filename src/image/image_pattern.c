/* Masks of blobs of arbitrary shape, after Pathak et al. (Context Encoders, 2016). Uniform noise on a coarse grid is
 * interpolated bicubically to pixels and is a hole where it is below 1/4. A window is accepted if its holes cover
 * between 20 and 30 %, otherwise another one is drawn.
 *
 * In that paper the windows lie in one large picture, kept in memory and renewed now and then. Here each window has
 * its own grid, which has the same distribution. A window depends only on (seed, image, draw), so there is no
 * picture of 10,000 x 10,000 and no order of draws. A mask of 64x64 pixels takes some 33 us, all tries together. */
#include "image/image_masks.h"

#include <math.h>

#define DENSITY 0.25
#define TOLERANCE 0.05
#define TRIES 64                /* then the nearest is taken: tiny images allow few coverages */
#define GRID_COLUMN 0x40000000u /* blocks of the generator that no pixel uses; 2^20 of them for every try */
#define SIDE                                                                                                           \
    (ACF_IMAGE_PATTERN_MAX + 8) /* maximum number of points in a grid row: one per pixel, and those beyond the edges */

/* One try. Rows of the grid are made and interpolated along x as they are needed, four at a time. */
typedef struct window {
    acf_rng_counter at;           /* of its first point */
    double resolution, left, top; /* position of pixel (0,0) between the points, 0..1 */
    int64_t H, W;
    int64_t number[4]; /* the row of the grid in slot r & 3; -1: none */
    double row[4][ACF_IMAGE_PATTERN_MAX];
} window;

/* Keys' cubic convolution, a = -1/2: the weights of the points at -1, 0, 1, 2 for position f in [0,1). They sum to
 * 1. */
static void cubic(double f, double w[4]) {
    w[0] = ((-0.5 * f + 1) * f - 0.5) * f;
    w[1] = (1.5 * f - 2.5) * f * f + 1;
    w[2] = ((-1.5 * f + 2) * f + 0.5) * f;
    w[3] = (0.5 * f - 0.5) * f * f;
}

/* Row r of the grid, interpolated to the columns of the image. The points before the first pixel have numbers 0, 1,
 * ... */
static const double *grid_row(window *v, int64_t r) {
    double *out = v->row[r & 3];
    if (v->number[r & 3] == r) return out;
    uint32_t point[SIDE];
    const int64_t n = (int64_t)((double)(v->W - 1) * v->resolution + v->left) + 4;
    acf_rng_counter at = v->at;
    at.column += (uint32_t)(r * (SIDE / 4));
    acf_rng_words(at, n, point);
    for (int64_t x = 0; x < v->W; x++) {
        const double place = (double)x * v->resolution + v->left;
        const int64_t first = (int64_t)place;
        double w[4], sum = 0;
        cubic(place - (double)first, w);
        for (int k = 0; k < 4; k++) sum += w[k] * ((double)point[first + k] + 0.5) * 0x1p-32;
        out[x] = sum;
    }
    v->number[r & 3] = r;
    return out;
}

/* Draws try number t; returns how many pixels are holes. */
static int64_t draw(window *v, acf_rng_counter at, uint32_t t, uint8_t *b) {
    uint32_t word[4];
    int64_t missing = 0;
    at.column = GRID_COLUMN + (t << 20);
    acf_rng_bits(at, word);
    v->left = word[0] * 0x1p-32, v->top = word[1] * 0x1p-32;
    v->at = at, v->at.column += 1;
    for (int k = 0; k < 4; k++) v->number[k] = -1;
    for (int64_t y = 0; y < v->H; y++) {
        const double place = (double)y * v->resolution + v->top;
        const int64_t first = (int64_t)place;
        const double *row[4];
        double w[4];
        cubic(place - (double)first, w);
        for (int k = 0; k < 4; k++) row[k] = grid_row(v, first + k);
        for (int64_t x = 0; x < v->W; x++) {
            const double value = w[0] * row[0][x] + w[1] * row[1][x] + w[2] * row[2][x] + w[3] * row[3][x];
            b[y * v->W + x] = value >= DENSITY;
            missing += value < DENSITY;
        }
    }
    return missing;
}

void acf_image_pattern(acf_rng_counter at, double resolution, int64_t H, int64_t W, uint8_t *b) {
    window v = {.resolution = resolution, .H = H, .W = W};
    double least = INFINITY;
    uint32_t nearest = 0;
    for (uint32_t t = 0; t < TRIES; t++) {
        const double off = fabs((double)draw(&v, at, t, b) / (double)(H * W) - DENSITY);
        if (off < TOLERANCE) return;
        if (off < least) least = off, nearest = t;
    }
    draw(&v, at, nearest, b);
}
