/* A piecewise linear function: cases for the harness, and its ends. */
#include "ops/polyline.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* Steep and flat pieces and a falling one; `many`: a cubic in the largest number of pieces. */
static acf_knots knots_of(int many) {
    if (!many)
        return (acf_knots){6,
                           {ACF_R(-2), ACF_R(-1.5), ACF_R(0), ACF_R(0.01), ACF_R(1), ACF_R(2)},
                           {ACF_R(1), ACF_R(3), ACF_R(2), ACF_R(5), ACF_R(5), ACF_R(5.5)}};
    acf_knots k = {.n = ACF_KNOTS_MAX};
    for (int i = 0; i < k.n; i++)
        k.x[i] = (acf_real)(i * 4.0 / 255 - 2), k.y[i] = k.x[i] * k.x[i] * k.x[i] / 4 + k.x[i];
    return k;
}

static void build(acf_lab *l) {
    const acf_knots k = knots_of(0);
    acf_result(l, acf_polyline(l->t, acf_leaf(l, "x", -3, 3, 2, (int64_t[]){l->N, l->D}), &k));
}

/* Piece by piece from the left, without a search. */
static void naive(const acf_lab *l, double *const *out) {
    const acf_knots k = knots_of(0);
    for (int64_t j = 0; j < l->leaf[0].count; j++) {
        const double x = (double)l->leaf[0].value[j];
        int i = 0;
        while (i < k.n - 2 && (double)k.x[i + 1] <= x) i++;
        const double slope = ((double)k.y[i + 1] - (double)k.y[i]) / ((double)k.x[i + 1] - (double)k.x[i]);
        out[0][j] = (double)k.y[i] + slope * (x - (double)k.x[i]);
    }
}

static const acf_case cases[] = {{"six knots", build, naive, .big_N = 3000, .big_D = 40}};
ACF_CASES(polyline, cases)

/* Every knot is reached, the slope after it is that of its piece, and both ends extend. */
static void goes_through_its_knots(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    for (int many = 0; many < 2; many++) {
        const acf_knots k = knots_of(many);
        acf_real y[ACF_KNOTS_MAX], out[2];
        acf_polyline_fwd_cpu(dev, y, k.x, &k, k.n);
        for (int i = 0; i < k.n; i++)
            acf_assert_close((double)y[i], (double)k.y[i], 4 * (double)ACF_REAL_EPS, "at a knot");
        for (int i = 0; i + 1 < k.n; i++) {
            const acf_real between = (k.x[i] + k.x[i + 1]) / 2, two = 2;
            acf_real dx = 1;
            acf_polyline_bwd_cpu(dev, &dx, &two, &between, &k, 1);
            acf_assert_close((double)dx, 1 + 2 * (double)((k.y[i + 1] - k.y[i]) / (k.x[i + 1] - k.x[i])), 1e-5,
                             "1 and twice the slope");
        }
        acf_polyline_fwd_cpu(dev, out, (const acf_real[]){k.x[0] - 1, k.x[k.n - 1] + 1}, &k, 2);
        acf_assert_close((double)out[0], (double)(k.y[0] - acf_polyline_slope(&k, 0)), 1e-5, "before the first");
        acf_assert_close((double)out[1], (double)(k.y[k.n - 1] + acf_polyline_slope(&k, k.n - 2)), 1e-5,
                         "behind the last");
    }
    acf_device_close(dev);
}

static void refuses_knots_that_do_not_ascend(void **state) {
    (void)state;
    const acf_knots bad[] = {
        {1, {0}, {0}}, {2, {1, 1}, {0, 1}}, {3, {0, 2, 1}, {0, 1, 2}}, {257, {0}, {0}}, {2, {0, ACF_R(NAN)}, {0, 1}}};
    for (int i = 0; i < 5; i++) {
        acf_lab l;
        acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
        acf_polyline(l.t, acf_tensor_new(l.t, 1, (int64_t[]){3}), &bad[i]);
        assert_int_equal(acf_tape_status(l.t), ACF_EUSAGE);
        assert_non_null(strstr(acf_error(), "expected 2 to 256, ascending"));
        acf_lab_close(&l);
    }
}

ACF_TESTS(polyline, cmocka_unit_test(goes_through_its_knots), cmocka_unit_test(refuses_knots_that_do_not_ascend))
