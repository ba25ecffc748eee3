/* Pooling: cases for the harness. */
#include "ops/pool.h"

#include "harness/lab.h"

#include <math.h>

static int64_t width(const acf_lab *l) { return (2 * l->D + 1) / 3; }
static int64_t channels(const acf_lab *l) { return l->big ? 16 : 2; }

static void build(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, width(l), channels(l)});
    acf_result(l, acf_pool(l->t, (acf_pool_kind)l->c->variant, x));
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t H = l->D, W = width(l), C = channels(l), Ho = (H + 1) / 2, Wo = (W + 1) / 2;
    for (int64_t i = 0; i < l->N * Ho * Wo * C; i++) {
        const int64_t c = i % C, q = i / C % Wo, p = i / C / Wo % Ho, n = i / C / Wo / Ho;
        double largest = -INFINITY, sum = 0, count = 0;
        for (int64_t h = 2 * p; h <= 2 * p + 1 && h < H; h++)
            for (int64_t w = 2 * q; w <= 2 * q + 1 && w < W; w++) {
                const double x = (double)l->leaf[0].value[((n * H + h) * W + w) * C + c];
                largest = fmax(largest, x), sum += x, count += 1;
            }
        out[0][i] = l->c->variant == ACF_POOL_MAX ? largest : sum / count;
    }
}

static const acf_case cases[] = {
    {"largest", build, naive, .variant = ACF_POOL_MAX, .big_N = 60, .big_D = 13},
    {"mean", build, naive, .variant = ACF_POOL_MEAN, .big_N = 60, .big_D = 13},
};
ACF_CASES(pool, cases)

static void refuses_what_is_no_image(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_pool(l.t, ACF_POOL_MAX, acf_tensor_new(l.t, 2, (int64_t[]){2, 3}));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "pool: x is (2, 3); expected (N, H, W, C)");
    acf_lab_close(&l);
}

ACF_TESTS(pool, cmocka_unit_test(refuses_what_is_no_image))
