/* Tests of layer normalisation: cases for the harness, invariances, refusals. */
#include "ops/layer_norm.h"

#include "harness/lab.h"

#include <math.h>

/* variant: the width; negative: rows of a batch, not packed. */
static int64_t wide(const acf_lab *l) { return l->big ? 75 : l->c->variant < 0 ? -l->c->variant : l->c->variant; }

static void build(acf_lab *l) {
    const int64_t C = wide(l);
    acf_tensor *x =
        l->c->variant < 0 ? acf_leaf(l, "x", -2, 2, 2, (int64_t[]){l->N, C}) : acf_leaf_packed(l, "x", -2, 2, C);
    acf_tensor *scale = acf_leaf(l, "scale", 0.5, 1.5, 1, &C), *shift = acf_leaf(l, "shift", -1, 1, 1, &C);
    acf_tensor *y = acf_layer_norm(l->t, x, scale, shift);
    assert_true(y == &l->t->empty || y->sub == x->sub);
    acf_result(l, y);
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t C = wide(l);
    for (int64_t m = 0; m < l->leaf[0].count / C; m++) {
        const acf_real *x = l->leaf[0].value + m * C;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < C; c++) mean += (double)x[c] / (double)C;
        for (int64_t c = 0; c < C; c++) variance += pow((double)x[c] - mean, 2) / (double)C;
        for (int64_t c = 0; c < C; c++)
            out[0][m * C + c] = ((double)x[c] - mean) / sqrt(variance + 1e-5) * (double)l->leaf[1].value[c] +
                                (double)l->leaf[2].value[c];
    }
}

static const acf_case cases[] = {
    {"packed", build, naive, .variant = 5},
    {"rows of a batch", build, naive, .variant = -7},
    {"single numbers", build, naive, .variant = 1,
     .no_device = "what its gradient is made of is rounding, which differs"},
    {"wide", build, naive, .variant = 37},
    {"wider", build, naive, .variant = -300},
};
ACF_CASES(layer_norm, cases)

/* Location and scale of a row do not matter, apart from rounding and eps. */
static void ignores_location_and_scale(void **state) {
    (void)state;
    enum { M = 6, C = 40 };
    acf_real x[M * C], moved[M * C], one[C], zero[C] = {0}, y[M * C], z[M * C];
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    for (int c = 0; c < C; c++) one[c] = 1;
    for (int k = 0; k < M * C; k++) x[k] = ACF_R(acf_lab_random(3, k, -3, 3)), moved[k] = 4 * x[k] + 16;
    acf_layer_norm_fwd_cpu(l.dev, y, NULL, x, one, zero, M, C);
    acf_layer_norm_fwd_cpu(l.dev, z, NULL, moved, one, zero, M, C);
    for (int m = 0; m < M; m++) {
        double mean = 0, square = 0;
        for (int c = 0; c < C; c++) mean += (double)y[m * C + c] / C, square += pow((double)y[m * C + c], 2) / C;
        acf_assert_close(mean, 0, 1e-6, "mean");
        acf_assert_close(square, 1, 1e-5, "variance");
    }
    for (int k = 0; k < M * C; k++) acf_assert_close((double)z[k], (double)y[k], 2e-5, "moved");
    acf_lab_close(&l);
}

/* A row of equal numbers becomes the shift, and its slope is at most 1 / sqrt(eps). */
static void constant_rows_become_the_shift(void **state) {
    (void)state;
    enum { C = 4 };
    acf_real x[C] = {3, 3, 3, 3}, scale[C] = {1, 2, 3, 4}, shift[C] = {5, 6, 7, 8}, y[C], stat[2];
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_layer_norm_fwd_cpu(l.dev, y, stat, x, scale, shift, 1, C);
    assert_memory_equal(y, shift, sizeof y);
    assert_true(stat[0] == 3);
    acf_assert_close((double)stat[1], 1 / sqrt(1e-5), 1e-5, "1 / deviation");
    acf_lab_close(&l);
}

static void refused(acf_lab *l, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), ACF_ESHAPE);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static acf_tensor *ones(acf_lab *l, int64_t rows, int64_t cols) {
    return acf_tensor_const(l->t, NULL, 1, cols ? 2 : 1, (int64_t[]){rows, cols});
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_layer_norm(l.t, ones(&l, 4, 3), ones(&l, 4, 0), ones(&l, 3, 0));
    refused(&l, "layer_norm: x is (4, 3), scale (4) and shift (3); expected (M, C) and C numbers each");
    acf_layer_norm(l.t, ones(&l, 4, 3), ones(&l, 3, 0), ones(&l, 2, 0));
    refused(&l, "layer_norm: x is (4, 3), scale (3) and shift (2); expected (M, C) and C numbers each");
    acf_layer_norm(l.t, ones(&l, 3, 0), ones(&l, 3, 0), ones(&l, 3, 0));
    refused(&l, "layer_norm: x is (3), scale (3) and shift (3); expected (M, C) and C numbers each");
    acf_tensor *none = acf_tensor_new(l.t, 1, (int64_t[]){0});
    acf_layer_norm(l.t, acf_tensor_new(l.t, 2, (int64_t[]){4, 0}), none, none);
    refused(&l, "layer_norm: x is (4, 0), scale (0) and shift (0); expected (M, C) and C numbers each");
    acf_lab_close(&l);
}

ACF_TESTS(layer_norm, cmocka_unit_test(ignores_location_and_scale), cmocka_unit_test(constant_rows_become_the_shift),
          cmocka_unit_test(refuses_what_does_not_fit))
