/* Operations on pictures: see image_ops.h. */
#include "image/image_ops.h"

#include "base/arena.h"
#include "base/real.h"

#include <math.h>
#include <string.h>

void acf_image_channels(uint8_t *out, int to, const uint8_t *in, int from, int64_t n) {
    if (to == from) {
        memcpy(out, in, (size_t)(n * to));
    } else if (to == 1) { /* the weights sum to 256 */
        for (int64_t i = 0; i < n; i++)
            out[i] = (uint8_t)((77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2] + 128) >> 8);
    } else {
        for (int64_t i = 0; i < n; i++) memset(out + 3 * i, in[i], 3);
    }
}

void acf_image_cut(uint8_t *out, const uint8_t *in, int64_t W, int64_t C, acf_image_box box) {
    const int64_t row = (box.x1 - box.x0) * C;
    for (int64_t y = box.y0; y < box.y1; y++) memcpy(out + (y - box.y0) * row, in + (y * W + box.x0) * C, (size_t)row);
}

acf_image_box acf_image_middle(int64_t W, int64_t H, int64_t w, int64_t h) {
    int64_t x = W, y = H; /* sides of the box; the products are below 2^31 */
    if (W * h > H * w)
        x = acf_max(1, H * w / h);
    else
        y = acf_max(1, W * h / w);
    const int64_t x0 = (W - x) / 2, y0 = (H - y) / 2;
    return (acf_image_box){x0, y0, x0 + x, y0 + y};
}

/* ---- scaling ----------------------------------------------------------------------------------------------------- */

/* How one side is scaled: pixel i of the new side is the sum over k of weight[i * most + k] times pixel first[i] + k
 * of the old side. */
typedef struct axis {
    int64_t n, most;
    int64_t *first; /* (n) */
    double *weight; /* (n,most) */
} axis;

static void axis_free(axis *a) {
    acf_release(a->first);
    acf_release(a->weight);
}

/* New pixel i covers [i s, (i+1) s) of the old side, s = from / to. */
static void mean_of(axis *a, int64_t i, int64_t from, double s) {
    const double begin = (double)i * s, end = (double)(i + 1) * s;
    a->first[i] = acf_min((int64_t)begin, from - 1);
    for (int64_t k = 0; k < a->most; k++) {
        const double left = (double)(a->first[i] + k), covered = fmin(end, left + 1) - fmax(begin, left);
        a->weight[i * a->most + k] = a->first[i] + k < from && covered > 0 ? covered / s : 0;
    }
}

/* The middle of new pixel i is at (i + 1/2) s - 1/2, counted from the middle of the first old one. */
static void between(axis *a, int64_t i, int64_t from, double s) {
    const double at = fmin(fmax(((double)i + 0.5) * s - 0.5, 0), (double)(from - 1));
    a->first[i] = acf_min((int64_t)at, acf_max(from - 2, 0));
    const double part = at - (double)a->first[i];
    a->weight[i * a->most] = 1 - part;
    if (a->most > 1) a->weight[i * a->most + 1] = part;
}

static acf_status axis_make(axis *a, int64_t from, int64_t to) {
    const double s = (double)from / (double)to;
    const bool down = to < from;
    a->n = to;
    a->most = down ? acf_min((int64_t)ceil(s) + 1, from) : acf_min(2, from);
    a->first = acf_alloc((size_t)to * sizeof *a->first, "scaling a picture");
    a->weight = acf_alloc((size_t)(to * a->most) * sizeof *a->weight, "scaling a picture");
    if (!a->first || !a->weight) return ACF_EMEMORY;
    for (int64_t i = 0; i < to; i++) (down ? mean_of : between)(a, i, from, s);
    return ACF_OK;
}

/* sum (n) += weight * row (n) */
static void add_row(double *restrict sum, const uint8_t *restrict row, double weight, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += weight * row[i];
}

/* Computes a new row: adds up the old rows that it covers, then the columns of that sum. */
static void scale_row(uint8_t *out, double *sum, const uint8_t *in, int64_t y, const axis *down, const axis *across,
                      int64_t H, int64_t W, int64_t C) {
    memset(sum, 0, (size_t)(W * C) * sizeof *sum);
    for (int64_t k = 0; k < down->most && down->first[y] + k < H; k++)
        if (down->weight[y * down->most + k] > 0)
            add_row(sum, in + (down->first[y] + k) * W * C, down->weight[y * down->most + k], W * C);
    for (int64_t x = 0; x < across->n; x++)
        for (int64_t c = 0; c < C; c++) {
            double v = 0;
            for (int64_t k = 0; k < across->most && across->first[x] + k < W; k++)
                v += across->weight[x * across->most + k] * sum[(across->first[x] + k) * C + c];
            out[x * C + c] = (uint8_t)fmin(v + 0.5, 255);
        }
}

acf_status acf_image_resize(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C) {
    if (h == H && w == W) {
        memcpy(out, in, (size_t)(H * W * C));
        return ACF_OK;
    }
    axis down = {0}, across = {0};
    double *sum = acf_alloc((size_t)(W * C) * sizeof *sum, "scaling a picture");
    acf_status status = sum ? axis_make(&down, H, h) : ACF_EMEMORY;
    if (status == ACF_OK) status = axis_make(&across, W, w);
    for (int64_t y = 0; status == ACF_OK && y < h; y++) scale_row(out + y * w * C, sum, in, y, &down, &across, H, W, C);
    acf_release(sum);
    axis_free(&down), axis_free(&across);
    return status;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

void acf_image_pad(uint8_t *out, int64_t h, int64_t w, const uint8_t *in, int64_t H, int64_t W, int64_t C) {
    const int64_t top = (h - H) / 2, left = (w - W) / 2;
    memset(out, 0, (size_t)(h * w * C));
    for (int64_t y = 0; y < H; y++) memcpy(out + ((top + y) * w + left) * C, in + y * W * C, (size_t)(W * C));
}

void acf_image_rotate(uint8_t *out, const uint8_t *in, int64_t H, int64_t W, int64_t C, int quarters) {
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++) {
            int64_t to = 0;
            switch (quarters & 3) {
            case 0: to = y * W + x; break;
            case 1: to = (W - 1 - x) * H + y; break; /* the right column becomes the top row */
            case 2: to = (H - 1 - y) * W + W - 1 - x; break;
            case 3: to = x * H + H - 1 - y; break;
            }
            memcpy(out + to * C, in + (y * W + x) * C, (size_t)C);
        }
}

void acf_image_flip(uint8_t *x, int64_t H, int64_t W, int64_t C) {
    for (int64_t y = 0; y < H; y++)
        for (int64_t k = 0; k < W / 2 * C; k++) {
            uint8_t *a = x + y * W * C + k, *b = x + (y * W + W - 1 - k / C) * C + k % C, old = *a;
            *a = *b, *b = old;
        }
}

void acf_image_coarsen(uint8_t *pixel, int64_t n, int bits) {
    for (int64_t i = 0; i < n; i++) pixel[i] = (uint8_t)(pixel[i] >> (8 - bits));
}

uint8_t acf_image_byte(unsigned level, int bits) {
    const unsigned top = (1u << bits) - 1;
    return (uint8_t)((level * 255u + top / 2) / top);
}
