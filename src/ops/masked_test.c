/* Selection and sums under a mask: cases for the harness. */
#include "ops/masked.h"

#include "harness/lab.h"

#include <math.h>

static bool on(const acf_lab *l, int64_t i) { return l->leaf[0].value[i] > ACF_R(0.5); }
static int64_t channels(const acf_lab *l) { return l->big ? 16 : 2; }

static void build_choose(acf_lab *l) {
    const int64_t dim[3] = {l->N, l->D, channels(l)};
    acf_tensor *mask = acf_leaf_fixed(l, "mask", 0, 1, 3, dim), *a = acf_leaf(l, "a", -1, 1, 3, dim),
               *b = acf_leaf(l, "b", -1, 1, 3, dim);
    acf_result(l, acf_choose(l->t, mask, a, b));
}

static void naive_choose(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) out[0][i] = (double)l->leaf[on(l, i) ? 1 : 2].value[i];
}

/* x is a flat list, and a second operation uses it too. */
static void build_sum(acf_lab *l) {
    const int64_t dim[3] = {l->N, l->D, channels(l)}, all = l->N * l->D * channels(l);
    acf_tensor *mask = acf_leaf_fixed(l, "mask", 0, 1, 3, dim), *x = acf_leaf(l, "x", -1, 1, 1, &all);
    acf_result(l, acf_sum_masked(l->t, x, mask));
    acf_result(l, acf_choose(l->t, mask, x, x));
}

static void naive_sum(const acf_lab *l, double *const *out) {
    const int64_t C = l->D * channels(l);
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        if (on(l, i)) out[0][i / C] += (double)l->leaf[1].value[i];
        out[1][i] = (double)l->leaf[1].value[i];
    }
}

static const acf_case cases[] = {
    {"choose", build_choose, naive_choose, .hides_nonfinite = true},
    {"sum", build_sum, naive_sum, .hides_nonfinite = true},
};
ACF_CASES(masked, cases)

/* A NaN under the mask has no effect, forward or backward. */
static void masked_nan_has_no_effect(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    const acf_real m[4] = {1, 0, 1, 0}, x[4] = {2, (acf_real)NAN, 3, (acf_real)INFINITY};
    acf_tensor *mask = acf_tensor_input(l.t, m, 2, (int64_t[]){1, 4}),
               *v = acf_tensor_input(l.t, x, 2, (int64_t[]){1, 4});
    acf_tensor *zero = acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){1, 4});
    assert_true(acf_sum_masked(l.t, v, mask)->data[0] == 5);
    acf_tensor *y = acf_choose(l.t, mask, v, zero);
    assert_true(y->data[1] == 0 && y->data[3] == 0 && y->data[2] == 3);
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_tensor_new(l.t, 1, (int64_t[]){3}), *y = acf_tensor_new(l.t, 2, (int64_t[]){2, 2});
    acf_choose(l.t, y, x, y);
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "choose: the mask is (2, 2), a is (3) and b is (2, 2); expected as many numbers each");
    acf_lab_begin(&l, false);
    x = acf_tensor_new(l.t, 1, (int64_t[]){3}), y = acf_tensor_new(l.t, 2, (int64_t[]){2, 2});
    acf_sum_masked(l.t, x, y);
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "sum_masked: x is (3) and the mask is (2, 2); expected as many numbers, and (N, ...)");
    acf_lab_close(&l);
}

ACF_TESTS(masked, cmocka_unit_test(masked_nan_has_no_effect), cmocka_unit_test(refuses_what_does_not_fit))
