/* Weight normalisation: a case for the harness, and its properties. */
#include "ops/weight_norm.h"

#include "harness/lab.h"

#include <math.h>

static int64_t width(const acf_lab *l) { return l->big ? 12 : 3; }

static void build(acf_lab *l) {
    acf_tensor *v = acf_leaf(l, "v", -1, 1, 3, (int64_t[]){l->N, l->D, width(l)}),
               *g = acf_leaf(l, "g", -2, 2, 1, &l->N);
    acf_result(l, acf_weight_norm(l->t, v, g));
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t K = l->D * width(l);
    for (int64_t o = 0; o < l->N; o++) {
        double square = 0;
        for (int64_t i = 0; i < K; i++) square += pow((double)l->leaf[0].value[o * K + i], 2);
        for (int64_t i = 0; i < K; i++)
            out[0][o * K + i] = (double)l->leaf[1].value[o] * (double)l->leaf[0].value[o * K + i] / sqrt(square);
    }
}

static const acf_case cases[] = {{"weights", build, naive}};
ACF_CASES(weight_norm, cases)

/* A row of zeros has no direction: its weights and its gradient are 0, not NaN. */
static void zeros_stay_zeros(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    const acf_real v[4] = {0}, g[2] = {3, 1}, d[4] = {1, 2, 3, 4};
    acf_real w[4], dv[4] = {0}, dg[2] = {0};
    acf_weight_norm_fwd_cpu(l.dev, w, v, g, 2, 2);
    acf_weight_norm_bwd_cpu(l.dev, dv, dg, d, v, g, 2, 2);
    for (int i = 0; i < 4; i++) assert_true(w[i] == 0 && isfinite(dv[i]));
    assert_true(dg[0] == 0 && dg[1] == 0);
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_weight_norm(l.t, acf_tensor_new(l.t, 2, (int64_t[]){2, 3}), acf_tensor_new(l.t, 1, (int64_t[]){3}));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "weight_norm: v is (2, 3) and g is (3); expected (O, ...) and (O)");
    acf_lab_close(&l);
}

ACF_TESTS(weight_norm, cmocka_unit_test(zeros_stay_zeros), cmocka_unit_test(refuses_what_does_not_fit))
