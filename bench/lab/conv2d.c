/* Kernel lab for convolutions: register tiles (ops/conv2d.c) against gathered patches and one product, on one thread.
 * Checks, then times.
 *
 *     make build/lab-conv2d && build/lab-conv2d */
#include "ops/conv2d.h"
#include "../bench.h"
#include "device/panels.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#define ROUNDS 8
#define BLOCK 65536 /* numbers in a block of patches: stays in cache beside the weights */

static float *random_floats(int64_t n, uint64_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) exit(1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(acf_rng_uniform((acf_rng_counter){.seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST}) -
                       0.5);
    return x;
}

/* ---- the alternative: patches of a block of pixels as a matrix --------------------------------------------------- */

static void gather(float *patch, const float *x, const acf_conv_shape *s, int64_t r0, int64_t r1) {
    for (int64_t r = r0; r < r1; r++)
        for (int64_t k = 0; k < s->kh * s->kw; k++, patch += s->Ci) {
            const int64_t h = r / s->Wo % s->Ho - s->top + k / s->kw, w = r % s->Wo - s->left + k % s->kw;
            const float *from = x + ((r / (s->Ho * s->Wo) * s->H + h) * s->W + w) * s->Ci;
            if (h >= 0 && h < s->H && w >= 0 && w < s->W)
                memcpy(patch, from, (size_t)s->Ci * sizeof *patch);
            else
                memset(patch, 0, (size_t)s->Ci * sizeof *patch);
        }
}

/* y (pixels,Co) = patches · wᵀ; or, with dw, dw (Co,K) = yᵀ · patches. */
static void by_patches(float *y, const float *x, const float *w, float *dw, const acf_conv_shape *s, float *patch) {
    const int64_t K = s->kh * s->kw * s->Ci, all = s->N * s->Ho * s->Wo, rows = BLOCK / K > 64 ? BLOCK / K : 64;
    for (int64_t r0 = 0; r0 < all; r0 += rows) {
        const int64_t n = acf_min(rows, all - r0);
        gather(patch, x, s, r0, r0 + n);
        if (dw)
            acf_panels_gemm(&(acf_gemm){true, false, s->Co, K, n, 1, y + r0 * s->Co, s->Co, patch, K, r0 > 0, dw, K});
        else
            acf_panels_gemm(&(acf_gemm){false, true, n, s->Co, K, 1, patch, K, w, K, 0, y + r0 * s->Co, s->Co});
    }
}

/* ---- check, then time -------------------------------------------------------------------------------------------- */

static double error_of(const float *x, const float *y, int64_t n) {
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) d += pow((double)(x[i] - y[i]), 2), s += pow((double)x[i], 2);
    return sqrt(d / s);
}

static double try_shape(const acf_device *dev, int64_t N, int64_t side, int64_t Ci, int64_t Co, int64_t k) {
    const acf_conv_shape s = {N, side, side, Ci, side, side, Co, k, k, 1, 1, k / 2, k / 2};
    const int64_t in = N * side * side * Ci, out = N * side * side * Co, weights = Co * k * k * Ci;
    float *x = random_floats(in, 1), *w = random_floats(weights, 2), *dy = random_floats(out, 3),
          *y[2] = {random_floats(out, 4), random_floats(out, 4)};
    float *dw[2] = {calloc((size_t)weights, sizeof(float)), calloc((size_t)weights, sizeof(float))},
          *dx = calloc((size_t)in, sizeof *dx);
    float *patch = malloc((size_t)(BLOCK + 64 * k * k * Ci) * sizeof *patch);
    void *scratch = malloc(acf_conv2d_fwd_scratch(dev, &s) + acf_conv2d_bwd_scratch(dev, &s));
    double best[5] = {1e30, 1e30, 1e30, 1e30, 1e30}, error = 0, flops = 2.0 * (double)out * (double)(k * k * Ci);
    if (!dw[0] || !dw[1] || !dx || !patch || !scratch) exit(1);
    for (int r = 0; r < ROUNDS; r++)
        for (int v = 0; v < 5; v++) { /* alternately, so that a slow moment of the machine affects all */
            const double t0 = bench_watch(1);
            if (v == 0) acf_conv2d_fwd_cpu(dev, y[0], x, w, NULL, ACF_IDENTITY, &s, scratch);
            if (v == 1) by_patches(y[1], x, w, NULL, &s, patch);
            if (v == 2) acf_conv2d_bwd_cpu(dev, NULL, dw[0], NULL, dy, x, w, &s, scratch);
            if (v == 3) by_patches(dy, x, w, dw[1], &s, patch);
            if (v == 4) acf_conv2d_bwd_cpu(dev, dx, NULL, NULL, dy, x, w, &s, scratch);
            best[v] = fmin(best[v], bench_watch(1) - t0);
            if (r == 0 && v == 3)
                error = fmax(error_of(y[1], y[0], out), error_of(dw[1], dw[0], weights)); /* dw adds up later */
        }
    printf("%3lldx%-3lld %4lld %4lld  %lldx%lld %8.0f %8.0f %7.2f %8.0f %8.0f %7.2f %8.0f %9.1e\n", (long long)side,
           (long long)side, (long long)Ci, (long long)Co, (long long)k, (long long)k, 1e-9 * flops / best[0],
           1e-9 * flops / best[1], best[1] / best[0], 1e-9 * flops / best[2], 1e-9 * flops / best[3], best[3] / best[2],
           1e-9 * flops / best[4], error);
    free(x), free(w), free(dy), free(y[0]), free(y[1]), free(dw[0]), free(dw[1]), free(dx), free(patch), free(scratch);
    return error;
}

int main(void) {
    static const int64_t shapes[][5] = {
        {64, 32, 3, 32, 3},    {64, 32, 32, 32, 3},  {64, 32, 32, 32, 1},  {64, 16, 64, 64, 3},  {64, 16, 64, 64, 1},
        {64, 16, 128, 128, 3}, {64, 8, 128, 128, 3}, {64, 4, 256, 256, 3}, {64, 4, 512, 512, 3}, {16, 32, 80, 160, 3}};
    acf_device *dev;
    double worst = 0;
    need(acf_device_open_cpu(1, &dev));
    printf("GFLOP/s on one thread\n  pixels   in  out kernel %6s %8s %7s %8s %8s %7s %8s %9s\n", "y", "patches",
           "ratio", "dw", "patches", "ratio", "dx", "error");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        worst = fmax(worst, try_shape(dev, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], shapes[i][4]));
    acf_device_close(dev);
    return worst > 1e-5;
}
