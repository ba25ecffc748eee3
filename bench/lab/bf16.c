/* Kernel lab for products in bf16: the shapes of the networks against the float panels on one thread. Checks, then
 * times.
 *
 *     make build/lab-bf16 && build/lab-bf16 */
#include "device/bf16.h"
#include "../bench.h"
#include "device/cpu.h"
#include "device/panels.h"

#include "base/rng.h"

#include <math.h>

#define ROUNDS 25
#define MIN_FLOPS 2e8 /* of one measurement */

typedef struct shape {
    bool ta, tb;
    int64_t M, N, K;
    const char *what;
} shape;

static float *random_floats(int64_t n, uint64_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) exit(1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(acf_rng_uniform((acf_rng_counter){.seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST}) -
                       0.5);
    return x;
}

/* Processor seconds of one call. */
static double time_of(const acf_gemm *g, bool bf16, int64_t calls) {
    double t0 = bench_watch(1);
    for (int64_t i = 0; i < calls; i++) {
        if (!bf16)
            acf_panels_gemm(g);
        else
            acf_bf16_gemm(
                &(acf_bf16_product){g->ta, g->tb, g->M, g->N, g->K, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc});
    }
    return (bench_watch(1) - t0) / (double)calls;
}

/* Root of the mean squared difference between the two, divided by that of the product. */
static double error_of(const float *x, const float *y, int64_t n) {
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) d += pow((double)(x[i] - y[i]), 2), s += pow((double)x[i], 2);
    return sqrt(d / s);
}

static double try_shape(const shape *s) {
    float *a = random_floats(s->M * s->K, 1), *b = random_floats(s->N * s->K, 2), *c[2];
    double best[2] = {1e30, 1e30}, flops = 2.0 * (double)s->M * (double)s->N * (double)s->K;
    for (int k = 0; k < 2; k++) c[k] = random_floats(s->M * s->N, 3);
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < 2; k++) { /* alternately, so that a slow moment of the machine affects both */
            acf_gemm g = {s->ta, s->tb, s->M, s->N, s->K, 1, a, s->ta ? s->M : s->K, b, s->tb ? s->K : s->N,
                          0,     c[k],  s->N};
            double t = time_of(&g, k, (int64_t)(MIN_FLOPS / flops) + 1);
            if (t < best[k]) best[k] = t;
        }
    double error = error_of(c[0], c[1], s->M * s->N);
    printf("%5lld %5lld %5lld  %-34s %8.0f %8.0f %7.2f %9.4f\n", (long long)s->M, (long long)s->N, (long long)s->K,
           s->what, 1e-9 * flops / best[0], 1e-9 * flops / best[1], best[0] / best[1], error);
    free(a), free(b), free(c[0]), free(c[1]);
    return error;
}

int main(void) {
    static const shape shapes[] = {{0, 1, 256, 768, 256, "a step of a GRU"},
                                   {0, 0, 256, 256, 768, "a step back"},
                                   {0, 1, 20, 768, 256, "a step of few rows"},
                                   {0, 1, 1024, 512, 256, "inputs of all steps"},
                                   {1, 0, 768, 256, 1024, "gradients of a GRU's weights"},
                                   {0, 1, 256, 256, 256, "a dense layer"},
                                   {0, 1, 1024, 120, 256, "a mixture's head"},
                                   {0, 1, 256, 192, 64, "a step of the default's GRU"},
                                   {1, 0, 192, 64, 2000, "gradients of its weights"},
                                   {0, 0, 1536, 1536, 1536, "one large product"}};
    if (!acf_cpu_has_bf16()) {
        printf("this CPU has no AVX512-BF16\n");
        return 0;
    }
    acf_device *dev;
    double worst = 0;
    need(acf_device_open_cpu(1, &dev));
    printf("    M     N     K  %-34s %8s %8s %7s %9s\n", "GFLOP/s on one thread", "sgemm", "bf16", "ratio", "error");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) worst = fmax(worst, try_shape(&shapes[i]));
    acf_device_close(dev);
    return worst > 0.01;
}
