/* Tests of density.h on samples of known density: it integrates to its share, keeps modes and bounds, and adds no
 * modes. */
#include "plot/density.h"

#include "base/rng.h"
#include "harness/lab.h"

#include <math.h>
#include <string.h>

enum { N = 4000, G = 400 };

static double uniform(int64_t i) { return acf_rng_uniform((acf_rng_counter){3, (uint64_t)i, ACF_STREAM_TEST, 0, 0}); }
static double normal(int64_t i) { return acf_rng_normal((acf_rng_counter){3, (uint64_t)i, ACF_STREAM_TEST, 1, 0}); }

/* Sorts the values and computes their curve from lo to hi; returns its area. */
static double curve(double *v, int64_t *n, double lo, double hi, double *x, double *y, double *width) {
    *n = acf_values_sort(v, *n);
    acf_kde k = acf_kde_of(v, *n, NULL, 0);
    *width = k.width = acf_kde_width(v, *n);
    for (int g = 0; g < G; g++) x[g] = lo + (hi - lo) * g / (G - 1);
    acf_kde_curve(v, *n, k, x, G, y);
    double area = 0;
    for (int g = 1; g < G; g++) area += (y[g] + y[g - 1]) / 2 * (x[g] - x[g - 1]);
    return area;
}

static int modes(const double *y) { /* higher than a fiftieth of the highest */
    double high = 0;
    int n = 0;
    for (int g = 0; g < G; g++) high = fmax(high, y[g]);
    for (int g = 1; g + 1 < G; g++) n += y[g] > y[g - 1] && y[g] >= y[g + 1] && y[g] > high / 50;
    return n;
}

static void a_gaussian_stays_unimodal(void **state) {
    (void)state;
    double v[N], x[G], y[G], width;
    int64_t n = N;
    for (int64_t i = 0; i < N; i++) v[i] = 100 + 15 * normal(i);
    acf_assert_close(curve(v, &n, 30, 170, x, y, &width), 1, 0.01, "area");
    assert_int_equal(modes(y), 1);
    for (int g = 0; g < G; g++) {
        const double z = (x[g] - 100) / 15, truth = exp(-0.5 * z * z) / (15 * 2.506628);
        assert_true(fabs(y[g] - truth) < 0.08 * 0.0266);
    }
}

static void modes_are_kept_apart(void **state) {
    (void)state;
    double v[N], x[G], y[G], width;
    int64_t n = N;
    for (int64_t i = 0; i < N; i++) v[i] = (i % 10 < 7 ? 5.3 : i % 10 < 9 ? 7 : 9.6) + 0.25 * normal(i);
    acf_assert_close(curve(v, &n, 3, 12, x, y, &width), 1, 0.01, "area");
    assert_int_equal(modes(y), 3);
    /* Four narrow modes with a large overall deviation: the rule of thumb would make them half as high and twice as
     * wide. */
    n = N;
    for (int64_t i = 0; i < N; i++) v[i] = 3.0 * (double)(i % 4) + 0.3 * normal(i);
    acf_assert_close(curve(v, &n, -2, 11, x, y, &width), 1, 0.01, "area");
    assert_int_equal(modes(y), 4);
    double high = 0;
    for (int g = 0; g < G; g++) high = fmax(high, y[g]);
    assert_true(high > 0.28 && high < 0.4); /* the true value is 0.332 */
}

static void bounds_are_respected(void **state) {
    (void)state;
    double v[N], x[G], y[G], width;
    int64_t n = N;
    for (int64_t i = 0; i < N; i++) v[i] = -log(uniform(i)); /* density e^-x: highest at its bound */
    acf_assert_close(curve(v, &n, -1, 12, x, y, &width), 1, 0.02, "area");
    for (int g = 0; g < G; g++) {
        if (x[g] < 0) assert_true(y[g] == 0);
        if (x[g] > 0.02 && x[g] < 0.06) assert_true(y[g] > 0.85 && y[g] < 1.1); /* not half of it */
    }
}

/* Whole numbers over a wide normal distribution: one mode, no comb. */
static void rounded_values_make_no_comb(void **state) {
    (void)state;
    double v[N], x[G], y[G], width;
    int64_t n = N;
    for (int64_t i = 0; i < N; i++) v[i] = round(50 + 6 * normal(i));
    curve(v, &n, 25, 75, x, y, &width);
    assert_true(width >= 1);
    assert_int_equal(modes(y), 1);
}

static void an_extreme_value_does_not_flatten_the_rest(void **state) {
    (void)state;
    double v[N + 2], x[G], y[G], width, tame;
    int64_t n = N;
    for (int64_t i = 0; i < N; i++) v[i] = normal(i);
    curve(v, &n, -4, 4, x, y, &tame);
    v[N] = 1e9, v[N + 1] = NAN;
    n = N + 2;
    acf_assert_close(curve(v, &n, -4, 4, x, y, &width), 1, 0.01, "area");
    assert_int_equal(n, N + 1);
    acf_assert_close(width, tame, 0.02, "width");
}

static void spikes_are_found(void **state) {
    (void)state;
    double v[N], value = 0, share = 0;
    for (int64_t i = 0; i < N; i++) v[i] = i % 4 == 0 ? 0 : fabs(normal(i)) + 0.001;
    acf_values_sort(v, N);
    assert_true(acf_spike_find(v, N, &value, &share));
    assert_true(value == 0);
    acf_assert_close(share, 0.25, 1e-9, "share");
    int64_t n = acf_values_without(v, N, 0);
    assert_int_equal(n, 3 * N / 4);
    assert_true(v[0] > 0);
    assert_false(acf_spike_find(v, n, &value, &share));
    assert_false(acf_spike_find(v, 0, &value, &share));
    assert_false(acf_spike_find(v, 1, &value, &share)); /* a single value is not a spike */
    const double last[] = {1, 2, 3, 9, 9};
    assert_true(acf_spike_find(last, 5, &value, &share) && value == 9);
}

static void a_share_scales_the_curve(void **state) {
    (void)state;
    double v[N], x[G], y[G], half[G];
    for (int64_t i = 0; i < N; i++) v[i] = normal(i);
    acf_values_sort(v, N);
    for (int g = 0; g < G; g++) x[g] = -4 + 8.0 * g / G;
    acf_kde k = acf_kde_of(v, N, NULL, 0);
    k.width = acf_kde_width(v, N);
    acf_kde_curve(v, N, k, x, G, y);
    k.share = 0.5;
    acf_kde_curve(v, N, k, x, G, half);
    for (int g = 0; g < G; g++) acf_assert_close(half[g], y[g] / 2, 1e-12, "half");
}

/* A Gaussian curve with steps in it, and with a comb narrower than it, comes back as one mode; two modes stay two. The
 * area stays, also for mass at an end. */
static void steps_become_slopes(void **state) {
    (void)state;
    double p[G], s[G], area[2] = {0, 0}, least = 1;
    for (int g = 0; g < G; g++) p[g] = exp(-0.5 * pow((g - G / 2) / (G / 10.0), 2)) * (g % 8 < 4 ? 1.3 : 0.7);
    acf_curve_smooth(p, G, s);
    for (int g = 0; g < G; g++) area[0] += p[g], area[1] += s[g];
    acf_assert_close(area[1] / area[0], 1, 1e-12, "area");
    for (int g = 1; g <= G / 2; g++) assert_true(s[g] >= s[g - 1] * (1 - 0.02)); /* rises to its middle */
    for (int g = 0; g < G; g++)
        p[g] = exp(-0.5 * pow((g - G / 4) / (G / 20.0), 2)) + exp(-0.5 * pow((g - 3 * G / 4) / (G / 20.0), 2));
    acf_curve_smooth(p, G, s);
    for (int g = G / 4; g < 3 * G / 4; g++) least = fmin(least, s[g]);
    assert_true(least < 0.2 * s[G / 4]);
    for (int g = 0; g < G; g++) p[g] = exp(-g / (G / 10.0));
    acf_curve_smooth(p, G, s);
    area[0] = area[1] = 0;
    for (int g = 0; g < G; g++) area[0] += p[g], area[1] += s[g];
    acf_assert_close(area[1] / area[0], 1, 1e-12, "area at an end");
    assert_true(s[0] > 0.8 * p[0]);
    for (int g = 0; g < G; g++) p[g] = 0;
    acf_curve_smooth(p, G, s);
    for (int g = 0; g < G; g++) assert_true(s[g] == 0);
}

static void extremes_do_not_crash(void **state) {
    (void)state;
    double one[] = {5}, same[] = {2, 2, 2}, huge[] = {-1.7e308, 1e300, 1.7e308}, none[] = {NAN, INFINITY},
           tiny[] = {0, 5e-324}, x[G], y[G];
    double *lists[] = {one, same, huge, none, tiny};
    const int64_t sizes[] = {1, 3, 3, 2, 2};
    for (int k = 0; k < 5; k++) {
        const int64_t n = acf_values_sort(lists[k], sizes[k]);
        acf_kde kernel = acf_kde_of(lists[k], n, NULL, 0);
        kernel.width = acf_kde_width(lists[k], n);
        for (int g = 0; g < G; g++) x[g] = -10 + g;
        memset(y, 0xff, sizeof y);
        acf_kde_curve(lists[k], n, kernel, x, G, y);
        for (int g = 0; g < G; g++) assert_true(y[g] >= 0);
        if (k < 2) assert_true(kernel.width == 0);
    }
    assert_int_equal(acf_values_distinct(same, 3, 5), 1);
    assert_int_equal(acf_values_distinct(same, 0, 5), 0);
    const double steps[] = {1, 1, 2, 3, 4, 4};
    assert_int_equal(acf_values_distinct(steps, 6, 9), 4);
    assert_int_equal(acf_values_distinct(steps, 6, 2), 3); /* more than 2: enough */
}

ACF_TESTS(density, cmocka_unit_test(a_gaussian_stays_unimodal), cmocka_unit_test(modes_are_kept_apart),
          cmocka_unit_test(bounds_are_respected), cmocka_unit_test(rounded_values_make_no_comb),
          cmocka_unit_test(an_extreme_value_does_not_flatten_the_rest), cmocka_unit_test(spikes_are_found),
          cmocka_unit_test(a_share_scales_the_curve), cmocka_unit_test(steps_become_slopes),
          cmocka_unit_test(extremes_do_not_crash))
