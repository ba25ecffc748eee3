/* Tests of GELU: cases for the harness, its approximation error, its limits. */
#include "ops/gelu.h"

#include "harness/lab.h"

#include <math.h>

enum { PACKED, ROWS, SCALAR };

static void build(acf_lab *l) {
    acf_tensor *x = l->c->variant == PACKED
                        ? acf_leaf_packed(l, "x", -4, 4, l->big ? 40 : 0)
                        : acf_leaf(l, "x", -4, 4, l->c->variant == ROWS ? 2 : 0, (int64_t[]){l->N, l->big ? 130 : 5});
    acf_tensor *y = acf_gelu(l->t, x);
    assert_true(y == &l->t->empty || y->sub == x->sub);
    acf_result(l, y);
}

static void naive(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        const double x = (double)l->leaf[0].value[i];
        out[0][i] = 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
}

static const acf_case cases[] = {
    {"packed", build, naive, .variant = PACKED},
    {"rows of a batch", build, naive, .variant = ROWS},
    {"a number", build, naive, .variant = SCALAR},
};
ACF_CASES(gelu, cases)

/* Close to x Φ(x), which it approximates; and gelu(x) - gelu(-x) = x. */
static void approximates_the_form_with_erf(void **state) {
    (void)state;
    enum { n = 1001 };
    acf_real x[n], minus[n], y[n], z[n];
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    for (int i = 0; i < n; i++) x[i] = ACF_R((i - 500) / 50.0), minus[i] = -x[i];
    acf_gelu_fwd_cpu(l.dev, y, x, n);
    acf_gelu_fwd_cpu(l.dev, z, minus, n);
    for (int i = 0; i < n; i++) {
        const double at = (double)x[i];
        assert_true(fabs((double)y[i] - at * erfc(-at / sqrt(2)) / 2) < 5e-4);
        acf_assert_close((double)y[i] - (double)z[i], at, 8 * (double)ACF_REAL_EPS, "odd part");
    }
    acf_lab_close(&l);
}

/* Where squares overflow the result is still x or 0, with slope 1 or 0. */
static void stays_finite_far_out(void **state) {
    (void)state;
    const acf_real most = ACF_REAL_MAX;
    const acf_real x[] = {70, -70, 1000, -1000, ACF_R(1e30), ACF_R(-1e30), most / 2, -most / 2, most, -most};
    enum { n = sizeof x / sizeof x[0] };
    acf_real y[n], dx[n], dy[n];
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    for (int i = 0; i < n; i++) dx[i] = 2, dy[i] = 3;
    acf_gelu_fwd_cpu(l.dev, y, x, n);
    acf_gelu_bwd_cpu(l.dev, dx, dy, x, n);
    for (int i = 0; i < n; i++) assert_true(y[i] == (x[i] > 0 ? x[i] : 0) && dx[i] == (x[i] > 0 ? 5 : 2));
    acf_lab_close(&l);
}

ACF_TESTS(gelu, cmocka_unit_test(approximates_the_form_with_erf), cmocka_unit_test(stays_finite_far_out))
