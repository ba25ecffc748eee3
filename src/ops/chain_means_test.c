/* Tests of the head of a PixelCNN: cases for the harness. The variant is the number of channels. */
#include "ops/chain_means.h"

#include "harness/lab.h"

#include <math.h>

static int64_t components(const acf_lab *l) { return l->big ? 10 : 2; }

static void build(acf_lab *l) {
    const int64_t C = l->c->variant, K = components(l);
    acf_tensor *p = acf_leaf(l, "p", -1, 1, 4, (int64_t[]){l->N, l->D, 1, acf_chain_width(C, K)});
    acf_result(l, acf_chain_means(l->t, p, acf_leaf(l, "z", -1, 1, 4, (int64_t[]){l->N, l->D, 1, C}), K));
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t C = l->c->variant, K = components(l), A = C * 3 * K + C * (C - 1) / 2 * K;
    for (int64_t i = 0; i < l->N * l->D; i++)
        for (int64_t c = 0; c < C; c++)
            for (int64_t k = 0; k < 3 * K; k++) {
                double sum = (double)l->leaf[0].value[i * A + c * 3 * K + k];
                for (int64_t j = 0; j < c && k / K == 1; j++) {
                    const int64_t pair = c * (c - 1) / 2 + j;
                    sum += tanh((double)l->leaf[0].value[i * A + C * 3 * K + pair * K + k - K]) *
                           (double)l->leaf[1].value[i * C + j];
                }
                out[0][(i * C + c) * 3 * K + k] = sum;
            }
}

/* The value of a grey pixel is not an input of its own mixture; neither is that of the last colour. */
static const acf_case cases[] = {
    {"grey", build, naive, .variant = 1, .hides_nonfinite = true},
    {"two channels", build, naive, .variant = 2, .hides_nonfinite = true},
    {"colour", build, naive, .variant = 3, .hides_nonfinite = true},
};
ACF_CASES(chain_means, cases)

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_chain_means(l.t, acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 9}),
                    acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}), 1);
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "chain_means: p is (1, 2, 2, 9) and z is (1, 2, 2, 3); expected "
                        "(N, H, W, C·3K + C(C-1)/2·K) and (N, H, W, C), K = 1");
    acf_lab_close(&l);
}

ACF_TESTS(chain_means, cmocka_unit_test(refuses_what_does_not_fit))
