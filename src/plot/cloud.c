/* Clouds of points: see chart.h. A cairo path for each of a million dots would take minutes and an SVG of gigabytes. So
 * dots are added to a grid of coverage, at PER_POINT pixels to the point (fewer on a very large page), and painted as
 * one image. */
#include "plot/chart.h"

#include "base/arena.h"

#include <math.h>

#define PER_POINT 3
#define SIDE_MAX 8000.0 /* pixels: cairo's largest picture has 32767 on a side */
#define STAMP_MAX 33

/* The part of each pixel that a dot (radius in pixels) covers, centred on the middle pixel; edges fade over one
 * pixel. */
static int make_stamp(double radius, float stamp[STAMP_MAX][STAMP_MAX]) {
    const double r = fmin(fmax(radius, 0.5), STAMP_MAX / 2 - 1);
    const int half = (int)ceil(r);
    for (int dy = -half; dy <= half; dy++)
        for (int dx = -half; dx <= half; dx++)
            stamp[dy + half][dx + half] = (float)fmin(fmax(r + 0.5 - sqrt(dx * dx + dy * dy), 0), 1);
    return half;
}

static void stamp_at(float *cover, int w, int h, int cx, int cy, float stamp[STAMP_MAX][STAMP_MAX], int half) {
    for (int dy = -half; dy <= half; dy++)
        for (int dx = -half; dx <= half; dx++) {
            const int x = cx + dx, y = cy + dy;
            if (x >= 0 && x < w && y >= 0 && y < h) cover[(int64_t)y * w + x] += stamp[dy + half][dx + half];
        }
}

/* Premultiplied, as canvas.h requires. */
static uint32_t pixel_of(acf_ink ink, double alpha) {
    const double k = 255 * alpha;
    return (uint32_t)lround(k) << 24 | (uint32_t)lround(k * ink.red) << 16 | (uint32_t)lround(k * ink.green) << 8 |
           (uint32_t)lround(k * ink.blue);
}

/* n overlapping dots leave (1 - weight)^n of the colour below. */
static uint32_t shade(float cover, acf_cloud_style s) {
    if (cover <= 0) return 0;
    const double opaque = 1 - pow(1 - fmin(s.weight, 0.999), (double)cover);
    if (s.flat) return pixel_of(s.ink, opaque * s.ink.alpha);
    return pixel_of(acf_palette_scale(opaque), fmin((double)cover, 1));
}

acf_status acf_panel_cloud(const acf_panel *p, const double *x, const double *y, int64_t n, int64_t stride,
                           acf_cloud_style style) {
    float stamp[STAMP_MAX][STAMP_MAX];
    const double fine = fmin(PER_POINT, SIDE_MAX / fmax(p->box.w, p->box.h));
    const int w = (int)ceil(p->box.w * fine), h = (int)ceil(p->box.h * fine),
              half = make_stamp(style.radius * fine, stamp);
    if (w < 1 || h < 1) return ACF_OK;
    size_t bytes;
    if (!acf_bytes((int64_t)w * h, sizeof(float), &bytes)) return ACF_EMEMORY;
    float *cover = acf_alloc_zero(bytes, "a cloud of points");
    if (!cover) return ACF_EMEMORY;
    for (int64_t i = 0; i < n; i++) {
        const double px = (acf_panel_x(p, x[i * stride]) - p->box.x) * fine,
                     py = (acf_panel_y(p, y[i * stride]) - p->box.y) * fine;
        if (px >= 0 && px <= w && py >= 0 && py <= h) stamp_at(cover, w, h, (int)px, (int)py, stamp, half);
    }
    uint32_t *pixel = (uint32_t *)(void *)cover; /* as many bytes, one at a time */
    for (int64_t k = 0; k < (int64_t)w * h; k++) pixel[k] = shade(cover[k], style);
    acf_canvas_pixels(p->c, p->box, pixel, w, h);
    acf_release(cover);
    return ACF_OK;
}
