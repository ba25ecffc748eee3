/* Tests of tail.h: tails of known shape, the preserved mean, either side, and values without a tail. */
#include "table/tail.h"

#include "harness/lab.h"

#include <math.h>

enum { N = 2000, TAKEN = 100 };
static double x[N];

/* Evenly spread values of a generalised Pareto distribution; shape 0 is the exponential one. */
static void fill(double shape) {
    for (int i = 0; i < N; i++) {
        const double left = 1 - (i + 0.5) / N;
        x[i] = shape == 0 ? -log(left) : (pow(left, -shape) - 1) / shape;
    }
}

static void shapes_are_found(void **state) {
    (void)state;
    for (double shape = -0.4; shape < 0.45; shape += 0.2) {
        const double true_shape = fabs(shape) < 0.01 ? 0 : shape;
        fill(true_shape);
        const acf_tail_fit f = acf_tail_find(x, N, true);
        acf_assert_close(f.share, (double)TAKEN / N, 1e-12, "share");
        acf_assert_close(f.shape, true_shape * TAKEN / (TAKEN + 10.0), 0.02, "shape, held near 0 by ten values");
        for (double p = 0.01; p > 1e-4; p /= 3) {
            const double u = x[N - 1 - TAKEN], at = true_shape == 0 ? -log(p) : (pow(p, -true_shape) - 1) / true_shape;
            if (!(fabs((u + acf_tail_beyond(&f, p)) / at - 1) < 0.15))
                fail_msg("shape %g, share %g: %g, expected %g", true_shape, p, u + acf_tail_beyond(&f, p), at);
        }
    }
}

/* For any assumed shape, the mean beyond the threshold is that of the values. */
static void the_mean_is_kept(void **state) {
    (void)state;
    double mean = 0;
    fill(0.9);
    for (int i = N - TAKEN; i < N; i++) mean += (x[i] - x[N - 1 - TAKEN]) / TAKEN;
    const acf_tail_fit f = acf_tail_find(x, N, true);
    acf_assert_close(f.shape, 0.5, 1e-12, "the heaviest shape");
    acf_assert_close(f.scale / (1 - f.shape) / mean, 1, 1e-12, "mean");
}

static void either_side_is_the_same(void **state) {
    (void)state;
    static double mirrored[N];
    fill(0.2);
    for (int i = 0; i < N; i++) mirrored[N - 1 - i] = -x[i];
    const acf_tail_fit up = acf_tail_find(x, N, true), down = acf_tail_find(mirrored, N, false);
    assert_true(up.share == down.share && up.scale == down.scale && up.shape == down.shape);
    assert_true(acf_tail_find(x, N, false).shape < 0); /* it ends at 0 */
}

/* A tenth of the values, 10 to 100 of them, and a third at most. */
static void fits_a_tenth_of_the_values(void **state) {
    (void)state;
    static const int n[] = {9, 30, 60, 500, N}, taken[] = {3, 10, 10, 50, TAKEN};
    fill(0);
    for (int k = 0; k < 5; k++)
        acf_assert_close(acf_tail_find(x, n[k], true).share, (double)taken[k] / n[k], 1e-12, "share");
}

static void some_have_no_tail(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) assert_true(acf_tail_find(x, n, true).scale == 0);
    for (int i = 0; i < N; i++) x[i] = 7;
    assert_true(acf_tail_find(x, N, true).scale == 0 && acf_tail_find(x, N, false).scale == 0);
}

ACF_TESTS(tail, cmocka_unit_test(shapes_are_found), cmocka_unit_test(the_mean_is_kept),
          cmocka_unit_test(either_side_is_the_same), cmocka_unit_test(fits_a_tenth_of_the_values),
          cmocka_unit_test(some_have_no_tail))
