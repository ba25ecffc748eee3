/* Precision and recall of distributions: curves with known values, clusters against a naive search, sets with known
 * answers, invalid files. */
#include "infer/prd.h"

#include "base/rng.h"
#include "harness/lab.h"
#include "infer/clusters.h"
#include "table/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double normal(int64_t i, uint32_t column) {
    return acf_rng_normal((acf_rng_counter){3, (uint64_t)i, ACF_STREAM_TEST, column, 0});
}

static acf_device *cpu(int threads) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

static void expect_f(const double *p, const double *q, int K, double recall, double precision) {
    acf_prd prd = {0};
    acf_prd_add(&prd, p, q, K);
    acf_assert_close(acf_prd_f(&prd, 8), recall, 4e-4, "F8");
    acf_assert_close(acf_prd_f(&prd, 1.0 / 8), precision, 4e-4, "F1/8");
}

/* F up to the resolution of 1001 angles near a corner's slope. The best point of a curve with the corner (precision,
 * recall) is that corner. */
static double f_of(double beta, double p, double r) { return (1 + beta * beta) * p * r / (beta * beta * p + r); }

static void histograms_with_known_curves(void **state) {
    (void)state;
    const double four[4] = {.25, .25, .25, .25}, one[4] = {1, 0, 0, 0}, other[4] = {0, 0, .5, .5},
                 two[4] = {0, .5, .5, 0};
    expect_f(four, four, 4, 1, 1);
    expect_f(one, other, 4, 0, 0);
    expect_f(four, one, 4, f_of(8, 1, .25),
             f_of(1.0 / 8, 1, .25)); /* one mode of four: all of it is real, three quarters are not found */
    expect_f(one, four, 4, f_of(8, .25, 1), f_of(1.0 / 8, .25, 1)); /* and the other way round */
    expect_f(other, two, 4, f_of(8, .5, .5), f_of(1.0 / 8, .5, .5));
}

/* By the definition: the largest precision at each recall, over all distributions that both sets share. */
static void the_curve_is_its_definition(void **state) {
    (void)state;
    const double p[3] = {.6, .3, .1}, q[3] = {.2, .3, .5};
    acf_prd prd = {0};
    acf_prd_add(&prd, p, q, 3);
    acf_prd_add(&prd, p, p, 3); /* sums, until a mean is needed */
    for (int a = 100; a < ACF_PRD_ANGLES - 100; a += 100) {
        const double slope = tan(M_PI / 2 * a / (ACF_PRD_ANGLES - 1));
        double precision = fmin(slope, 1), recall = fmin(1, 1 / slope);
        for (int k = 0; k < 3; k++) precision += fmin(slope * p[k], q[k]), recall += fmin(p[k], q[k] / slope);
        acf_assert_close(prd.precision[a], precision, 1e-7, "precision");
        acf_assert_close(prd.recall[a], recall, 1e-7, "recall");
    }
    assert_int_equal(prd.curves, 2);
    assert_true(isnan(acf_prd_f(&(acf_prd){0}, 8)));
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

enum { POINTS = 900, WIDTH = 70 }; /* more than one block of sums */

/* Blobs around corners of a cube, one mode each, starting at mode number `from`. */
static acf_real *blobs(int64_t n, int from, int modes, double spread) {
    acf_real *x = acf_alloc((size_t)(n * WIDTH) * sizeof *x, "points");
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        for (uint32_t f = 0; f < WIDTH; f++) {
            const int mode = from + (int)(i % modes);
            x[i * WIDTH + f] = (acf_real)(100 + 7 * (f % 8 == (uint32_t)mode) + spread * normal(i + 5000 * mode, f));
        }
    return x;
}

static void clusters_are_the_nearest_centres(void **state) {
    (void)state;
    acf_device *dev = cpu(2);
    acf_real *x = blobs(POINTS, 0, 6, 0.4);
    static int32_t of[POINTS];
    double inertia, each[10], own = 0, best = INFINITY;
    int found = 0;
    for (int64_t k = 0; k < POINTS * WIDTH; k++) x[k] -= 100;
    for (uint32_t run = 0; run < 10; run++) {
        assert_int_equal(acf_clusters_find(dev, x, POINTS, WIDTH, 6, 1, run, of, &each[run]), ACF_OK);
        best = fmin(best, each[run]);
    }
    for (int run = 0; run < 10; run++) found += each[run] < best * 1.001;
    assert_true(
        found >=
        6); /* all six blobs: k-means++ starts in each; random starting points would fail in 15 of a thousand runs */
    for (int64_t i = 0; i < POINTS; i++) /* inertia of the blobs around their own means */
        for (uint32_t f = 0; f < WIDTH; f++) {
            double mean = 0;
            for (int64_t j = i % 6; j < POINTS; j += 6) mean += (double)x[j * WIDTH + f] / (POINTS / 6);
            own += pow((double)x[i * WIDTH + f] - mean, 2);
        }
    acf_assert_close(best / own, 1, 1e-4, "the least inertia");
    /* Fewer distinct points than clusters. */
    for (int64_t i = 0; i < POINTS; i++) memcpy(x + i * WIDTH, x + i % 3 * WIDTH, WIDTH * sizeof *x);
    assert_int_equal(acf_clusters_find(dev, x, POINTS, WIDTH, 6, 1, 0, of, &inertia), ACF_OK);
    assert_true(inertia < 1e-4 && of[0] != of[1] && of[1] != of[2] && of[0] == of[3]);
    acf_release(x);
    acf_device_close(dev);
}

/* Lloyd's steps end when no point is nearer to another centre and centres are means. */
static void lloyd_ends_where_nothing_moves(void **state) {
    (void)state;
    enum { N = 300, F = 3, K = 5 };
    acf_device *dev = cpu(1);
    acf_real x[N * F];
    int32_t of[N];
    double centre[K][F] = {{0}}, count[K] = {0};
    for (int64_t i = 0; i < N * F; i++) x[i] = (acf_real)normal(i, 9);
    assert_int_equal(acf_clusters_find(dev, x, N, F, K, 1, 0, of, NULL), ACF_OK);
    for (int i = 0; i < N; i++) count[of[i]]++;
    for (int i = 0; i < N * F; i++) centre[of[i / F]][i % F] += (double)x[i] / count[of[i / F]];
    for (int i = 0; i < N; i++) {
        double d[K] = {0};
        for (int k = 0; k < K; k++)
            for (int f = 0; f < F; f++) d[k] += pow((double)x[i * F + f] - centre[k][f], 2);
        for (int k = 0; k < K; k++) assert_true(d[of[i]] <= d[k] + 1e-5);
    }
    acf_device_close(dev);
}

/* ---- two sets ---------------------------------------------------------------------------------------------------- */

static void compare(const acf_real *real, int64_t N, const acf_real *done, int64_t M, int threads, double *recall,
                    double *precision) {
    acf_device *dev = cpu(threads);
    acf_prd prd = {0};
    assert_int_equal(acf_prd_compare(dev, real, N, done, M, WIDTH, 1, &prd), ACF_OK);
    assert_int_equal(prd.curves, 1);
    *recall = acf_prd_f(&prd, 8), *precision = acf_prd_f(&prd, 1.0 / 8);
    acf_device_close(dev);
}

static void sets_with_known_answers(void **state) {
    (void)state;
    acf_real *all = blobs(POINTS, 0, 6, 0.1), *few = blobs(POINTS, 0, 2, 0.1), *else_where = blobs(POINTS, 6, 2, 0.1);
    double recall, precision, again[2];
    compare(all, POINTS, all, POINTS, 1, &recall, &precision);
    acf_assert_close(recall, 1, 1e-9, "the same set: recall");
    acf_assert_close(precision, 1, 1e-9, "the same set: precision");
    compare(all, POINTS, else_where, POINTS, 1, &recall, &precision);
    assert_true(recall < 1e-9 && precision < 1e-9);
    compare(all, POINTS, few, POINTS, 1, &recall, &precision);
    assert_true(precision > 0.9 && recall < 0.4);
    compare(few, POINTS, all, POINTS, 1, &recall, &precision);
    assert_true(precision < 0.4 && recall > 0.9);
    compare(all, POINTS, few, POINTS / 3, 1, &recall, &precision); /* shares count, not numbers of images */
    assert_true(precision > 0.9 && recall < 0.4);
    compare(all, POINTS, few, POINTS / 3, 3, &again[0], &again[1]);
    assert_true(again[0] == recall && again[1] == precision); /* for any number of threads */
    acf_release(all), acf_release(few), acf_release(else_where);
}

/* Neither units nor an offset matter. */
static void scale_and_offset_do_not_matter(void **state) {
    (void)state;
    const acf_real far = sizeof far == 8 ? 1 << 30 : 0; /* floats that far out could not distinguish a from b */
    acf_real *a = blobs(POINTS, 0, 6, 0.5), *b = blobs(POINTS, 2, 6, 0.5);
    double one[2], other[2];
    compare(a, POINTS, b, POINTS, 1, &one[0], &one[1]);
    for (int64_t k = 0; k < POINTS * WIDTH; k++) a[k] = a[k] * 4096 + far, b[k] = b[k] * 4096 + far;
    compare(a, POINTS, b, POINTS, 1, &other[0], &other[1]);
    acf_assert_close(one[0], other[0], 1e-9, "recall");
    acf_assert_close(one[1], other[1], 1e-9, "precision");
    for (int64_t k = 0; k < POINTS * WIDTH; k++) a[k] = 5, b[k] = 5; /* no deviation at all */
    compare(a, POINTS, b, POINTS, 1, &one[0], &one[1]);
    assert_true(one[0] > 1 - 1e-9 && one[1] > 1 - 1e-9);
    acf_release(a), acf_release(b);
}

static void memory_that_fails(void **state) {
    (void)state;
    acf_device *dev = cpu(1);
    acf_real *a = blobs(60, 0, 3, 0.5);
    acf_prd *prd = acf_alloc_zero(sizeof *prd, "a curve");
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    int n = 0;
    while (status == ACF_EMEMORY && n < 1000) {
        acf_alloc_fail_at(++n);
        status = acf_prd_compare(dev, a, 40, a + 40 * WIDTH, 20, WIDTH, 1, prd);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        assert_int_equal(prd->curves, status == ACF_OK);
    }
    assert_true(status == ACF_OK && n > 4);
    acf_release(prd), acf_release(a);
    acf_device_close(dev);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void refuse(const char *path, acf_status expected, const char *words) {
    acf_real *x = NULL;
    int64_t N, F;
    assert_int_equal(acf_prd_read(path, &x, &N, &F), expected);
    assert_null(x);
    if (!strstr(acf_error(), words)) fail_msg("'%s' is not in: %s", words, acf_error());
}

static void features_from_files(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/acf-features-%d.npy", (int)getpid());
    double m[600 * 2];
    for (int i = 0; i < 1200; i++) m[i] = i / 8.0;
    acf_real *x;
    int64_t N, F;
    assert_int_equal(acf_npy_write(path, m, 600, 2), ACF_OK);
    assert_int_equal(acf_prd_read(path, &x, &N, &F), ACF_OK);
    assert_true(N == 600 && F == 2 && x[0] == 0 && (double)x[1199] == 1199 / 8.0 && (double)x[601] == 601 / 8.0);
    acf_release(x);
    m[2 * 300 + 1] = NAN;
    assert_int_equal(acf_npy_write(path, m, 600, 2), ACF_OK);
    refuse(path, ACF_EDATA, "row 300, column 1");
    m[2 * 300 + 1] = INFINITY;
    assert_int_equal(acf_npy_write(path, m, 600, 2), ACF_OK);
    refuse(path, ACF_EDATA, "must be finite");
    FILE *f = fopen(path, "wb");
    fwrite("\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }", 1, 69, f);
    fprintf(f, "%*s\n", 59, "");
    fclose(f);
    refuse(path, ACF_EDATA, "");
    unlink(path);
    refuse(path, ACF_EIO, "No such file");
}

ACF_TESTS(prd, cmocka_unit_test(histograms_with_known_curves), cmocka_unit_test(the_curve_is_its_definition),
          cmocka_unit_test(clusters_are_the_nearest_centres), cmocka_unit_test(lloyd_ends_where_nothing_moves),
          cmocka_unit_test(sets_with_known_answers), cmocka_unit_test(scale_and_offset_do_not_matter),
          cmocka_unit_test(memory_that_fails), cmocka_unit_test(features_from_files))
