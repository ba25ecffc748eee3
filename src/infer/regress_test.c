/* The two regressions: optimality conditions, known coefficients, and odd data. */
#include "infer/regress.h"

#include "base/rng.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double normal(int64_t i, uint32_t column) {
    return acf_rng_normal((acf_rng_counter){5, (uint64_t)i, ACF_STREAM_TEST, column, 0});
}

static acf_arena *open_arena(void) {
    acf_arena *a;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &a), ACF_OK);
    return a;
}

/* ---- a number ---------------------------------------------------------------------------------------------------- */

enum { N = 300, P = 4 };

/* Correlated predictors and y = 3 + 2 x0 - x2 + noise. */
static void make_numbers(double *x, double *y, int64_t n, int64_t width, double noise) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++)
            x[i * width + j] = (double)j + normal(i, (uint32_t)j) + 0.5 * normal(i, 100);
        y[i] = 3 + 2 * x[i * width] - (width > 2 ? x[i * width + 2] : 0) + noise * normal(i, 99);
    }
}

static acf_ridge fit_numbers(acf_arena *a, double *x, double *y, int64_t n, int64_t width) {
    acf_ridge r;
    assert_int_equal(acf_ridge_create(a, width, &r), ACF_OK);
    if (acf_ridge_fit(a, &r, x, y, n)) fail_msg("%s", acf_error());
    return r;
}

/* log p(y | alpha, lambda) of centred data with P predictors, from the definition: y ~ N(0, I/alpha + x xᵀ/lambda),
 * by elimination of A = alpha xᵀx + lambda I. */
static double log_evidence(const double *x, const double *y, double alpha, double lambda) {
    double A[P][P + 1], yy = 0, det = 0, fit = 0;
    for (int p = 0; p < P; p++) {
        for (int q = 0; q <= P; q++) {
            A[p][q] = p == q ? lambda : 0;
            for (int i = 0; i < N; i++) A[p][q] += alpha * x[i * P + p] * (q < P ? x[i * P + q] : y[i]);
        }
    }
    for (int i = 0; i < N; i++) yy += y[i] * y[i];
    for (int p = 0; p < P; p++) { /* after elimination, the last column holds bᵀA⁻¹b */
        det += log(A[p][p]), fit += A[p][P] * A[p][P] / A[p][p];
        for (int r = p + 1; r < P; r++)
            for (int q = P; q >= p; q--) A[r][q] -= A[r][p] / A[p][p] * A[p][q];
    }
    return 0.5 * (P * log(lambda) + N * log(alpha) - det - alpha * yy + fit);
}

/* Shrinkage and noise maximise the evidence: other values explain the data less well. */
static void ridge_maximises_the_evidence(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * P], y[N];
    for (int k = 0; k < 2; k++) {
        make_numbers(x, y, N, P, k ? 8 : 0.7);
        acf_ridge r = fit_numbers(a, x, y, N, P); /* x and y are centred now */
        double alpha = 1 / (r.noise * r.noise), lambda = INFINITY, trace = 0, cc = 0, left = 0;
        for (int i = 0; i < N; i++) {
            double rest = y[i];
            for (int j = 0; j < P; j++) rest -= x[i * P + j] * r.coef[j];
            left += rest * rest;
        }
        for (int j = 0; j < P; j++) {
            double s = 0; /* the axis's squared length in the data; spread^2 = 1/(alpha s + lambda) */
            for (int i = 0; i < N; i++) {
                double along = 0;
                for (int q = 0; q < P; q++) along += x[i * P + q] * r.axis[j * P + q];
                s += along * along;
            }
            lambda = fmin(lambda, 1 / (r.spread[j] * r.spread[j]) - alpha * s);
            trace += r.spread[j] * r.spread[j];
            cc += r.coef[j] * r.coef[j];
        }
        acf_assert_close(lambda * cc, P - lambda * trace, 0.01, "determined parameters");
        assert_true(fabs(alpha * left - (N - (P - lambda * trace))) <
                    0.2); /* noise is the residual of the other parameters */
        double best = log_evidence(x, y, alpha, lambda);
        for (double f = 0.7; f < 1.5; f *= 2)
            assert_true(best >= log_evidence(x, y, alpha * f, lambda) && best >= log_evidence(x, y, alpha, lambda * f));
    }
    acf_arena_free(a);
}

/* The coefficients solve the ridge equations: alpha xᵀ(y - x c) = lambda c, so the left side is along c. */
static void ridge_solves_its_equations(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * P], y[N];
    make_numbers(x, y, N, P, 8);
    acf_ridge r = fit_numbers(a, x, y, N, P);
    double left[P] = {0}, ratio = 0;
    for (int i = 0; i < N; i++) {
        double rest = y[i];
        for (int j = 0; j < P; j++) rest -= x[i * P + j] * r.coef[j];
        for (int j = 0; j < P; j++) left[j] += x[i * P + j] * rest;
    }
    for (int j = 0; j < P; j++) ratio += left[j] * r.coef[j];
    for (int j = 0, k = 0; j < P; j++) {
        double cc = 0;
        for (k = 0; k < P; k++) cc += r.coef[k] * r.coef[k];
        acf_assert_close(left[j], ratio / cc * r.coef[j], 1e-9, "ridge equation");
    }
    assert_true(ratio > 0);
    acf_arena_free(a);
}

static void ridge_finds_known_coefficients(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * P], y[N], fresh[N * P], truth[N], out[N];
    make_numbers(x, y, N, P, 0.01);
    make_numbers(fresh, truth, N, P, 0);
    acf_ridge r = fit_numbers(a, x, y, N, P);
    const double known[P] = {2, 0, -1, 0};
    for (int j = 0; j < P; j++) acf_assert_close(r.coef[j], known[j], 0.003, "coefficient");
    acf_assert_close(r.noise, 0.01, 0.001, "noise");
    acf_ridge_predict(r.coef, r.bias, fresh, N, P, out);
    for (int i = 0; i < N; i++) acf_assert_close(out[i], truth[i], 0.01, "prediction");
    acf_arena_free(a);
}

/* Draws from the posterior have its covariance: cov = axisᵀ spread² axis. */
static void posterior_draws_have_its_spread(void **state) {
    (void)state;
    enum { DRAWS = 20000 };
    acf_arena *a = open_arena();
    static double x[N * P], y[N];
    make_numbers(x, y, N, P, 3);
    acf_ridge r = fit_numbers(a, x, y, N, P);
    double z[P] = {0}, coef[P], bias, mean[P] = {0}, cov[P][P] = {{0}};
    acf_ridge_posterior(&r, z, coef, &bias);
    assert_memory_equal(coef, r.coef, sizeof coef);
    assert_true(bias == r.bias);
    for (int d = 0; d < DRAWS; d++) {
        for (int j = 0; j < P; j++) z[j] = normal(d, 200 + (uint32_t)j);
        acf_ridge_posterior(&r, z, coef, &bias);
        double level = bias; /* at the mean of the predictors every draw predicts the mean of y */
        for (int j = 0; j < P; j++) level += coef[j] * r.mean[j];
        acf_assert_close(level, r.center, 1e-12, "level");
        for (int j = 0; j < P; j++) mean[j] += coef[j] / DRAWS;
        for (int j = 0; j < P; j++)
            for (int k = 0; k < P; k++) cov[j][k] += (coef[j] - r.coef[j]) * (coef[k] - r.coef[k]) / DRAWS;
    }
    for (int j = 0; j < P; j++) {
        acf_assert_close(mean[j], r.coef[j], 0.01, "mean of draws");
        for (int k = 0; k < P; k++) {
            double expected = 0;
            for (int q = 0; q < P; q++) expected += r.axis[q * P + j] * r.axis[q * P + k] * r.spread[q] * r.spread[q];
            acf_assert_close(cov[j][k] * 100, expected * 100, 0.15, "covariance of draws");
        }
    }
    acf_arena_free(a);
}

/* Fewer rows than predictors, a duplicate predictor, a constant one, a constant y, no predictors: all results are
 * finite. */
static void ridge_of_odd_data(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * P], y[N];
    for (int kind = 0; kind < 5; kind++) {
        int64_t n = kind == 0 ? 3 : kind == 4 ? 1 : N, width = kind == 3 ? 0 : P;
        make_numbers(x, y, n, P, 0.1);
        for (int i = 0; i < n; i++) x[i * P + 1] = x[i * P], x[i * P + 3] = 5;
        for (int i = 0; kind == 2 && i < n; i++) y[i] = 4;
        acf_ridge r = fit_numbers(a, x, y, n, width);
        for (int64_t j = 0; j < width; j++)
            assert_true(isfinite(r.coef[j]) && isfinite(r.spread[j]) && r.spread[j] > 0);
        assert_true(isfinite(r.bias) && isfinite(r.noise));
        if (kind == 1)
            acf_assert_close(r.coef[0], r.coef[1], 1e-6,
                             "a predictor twice"); /* the ridge gives both the same coefficient */
        if (kind == 2) acf_assert_close(r.bias, 4, 1e-6, "a constant");
        if (kind == 3) acf_assert_close(r.bias, r.center, 1e-12, "no predictors");
    }
    acf_arena_free(a);
}

/* ---- a class ----------------------------------------------------------------------------------------------------- */

enum { K = 3, W = 4 }; /* three predictors and ones */

static const double true_coef[K][W] = {{0, 0, 0, 0}, {2, -1, 0, 0.5}, {-1, 0, 1.5, -0.5}};

static void make_classes(double *x, int32_t *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double p[K];
        for (int j = 0; j < W; j++) x[i * W + j] = j + 1 < W ? normal(i, 300 + (uint32_t)j) : 1;
        for (int k = 0; k < K; k++) {
            p[k] = 0;
            for (int j = 0; j < W; j++) p[k] += true_coef[k][j] * x[i * W + j];
            p[k] = exp(p[k]);
        }
        y[i] = (int32_t)acf_rng_categorical((acf_rng_counter){6, (uint64_t)i, ACF_STREAM_TEST, 0, 0}, p, K);
    }
}

static double naive_probability(const double *coef, int classes, const double *x, int k) {
    double sum = 0, mine = 0;
    for (int c = 0; c < classes; c++) {
        double s = 0;
        for (int j = 0; j < W; j++) s += coef[c * W + j] * x[j];
        sum += exp(s);
        if (c == k) mine = exp(s);
    }
    return mine / sum;
}

/* At the end the derivative of the log-posterior is zero, for every coefficient but those of the base class. */
static void logit_ends_where_the_slope_is_zero(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * W], p[N * K];
    static int32_t y[N];
    make_classes(x, y, N);
    for (int64_t base = 0; base < K; base++) {
        double coef[K * W] = {0};
        acf_logit l = {W, K, base, coef};
        assert_int_equal(acf_logit_fit(a, &l, x, y, N, 200), ACF_OK);
        acf_logit_predict(&l, x, N, p);
        for (int k = 0; k < K; k++)
            for (int j = 0; j < W; j++) {
                double slope = j + 1 < W ? -coef[k * W + j] : 0;
                for (int i = 0; i < N; i++)
                    slope += x[i * W + j] * ((y[i] == k) - naive_probability(coef, K, x + i * W, k));
                if (k == base)
                    assert_true(coef[k * W + j] == 0);
                else
                    acf_assert_close(slope, 0, 0.05, "slope");
            }
        for (int i = 0; i < N; i++)
            for (int k = 0; k < K; k++)
                acf_assert_close(p[i * K + k], naive_probability(coef, K, x + i * W, k), 1e-12, "probability");
    }
    acf_arena_free(a);
}

static void logit_finds_known_coefficients(void **state) {
    (void)state;
    enum { MANY = 20000 };
    acf_arena *a = open_arena();
    double *x = malloc(MANY * W * sizeof *x), coef[K * W] = {0};
    int32_t *y = malloc(MANY * sizeof *y);
    assert_true(x && y);
    make_classes(x, y, MANY);
    acf_logit l = {W, K, 0, coef};
    assert_int_equal(acf_logit_fit(a, &l, x, y, MANY, 20), ACF_OK);
    for (int k = 0; k < K; k++)
        for (int j = 0; j < W; j++) acf_assert_close(coef[k * W + j], true_coef[k][j], 0.05, "coefficient");
    free(x), free(y);
    acf_arena_free(a);
}

/* A few passes give nearly all of the gain: the baseline makes six. */
static void six_passes_are_enough(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * W];
    static int32_t y[N];
    double coef[2][K * W] = {{0}};
    make_classes(x, y, N);
    const int passes[2] = {6, 200};
    for (int k = 0; k < 2; k++) {
        acf_logit l = {W, K, 0, coef[k]};
        assert_int_equal(acf_logit_fit(a, &l, x, y, N, passes[k]), ACF_OK);
    }
    for (int i = 0; i < K * W; i++) acf_assert_close(coef[0][i], coef[1][i], 0.02, "after six passes");
    acf_arena_free(a);
}

/* Perfectly separable classes, a class without rows, a bad start: results are finite and right. */
static void logit_of_odd_data(void **state) {
    (void)state;
    acf_arena *a = open_arena();
    static double x[N * W], p[N * K];
    static int32_t y[N];
    make_classes(x, y, N);
    for (int i = 0; i < N; i++) y[i] = x[i * W] > 0, x[i * W] *= 50;
    for (int start = 0; start < 3; start++) {
        double coef[K * W];
        for (int i = 0; i < K * W; i++) coef[i] = i < W ? 0 : start * 0.2 * (i % 2 ? 1 : -1);
        acf_logit l = {W, K, 0, coef};
        assert_int_equal(acf_logit_fit(a, &l, x, y, N, 60), ACF_OK);
        acf_logit_predict(&l, x, N, p);
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            assert_true(p[i * K + 2] >= 0 && p[i * K + 2] < 0.2);
            wrong += !(p[i * K + y[i]] > 0.5);
        }
        assert_in_range(wrong, 0, 6);
        for (int i = 0; i < K * W; i++) assert_true(fabs(coef[i]) < 100);
    }
    acf_arena_free(a);
}

static void memory_failing_in_turn(void **state) {
    (void)state;
    static double x[N * W], y[N];
    static int32_t class[N];
    make_classes(x, class, N);
    for (int64_t at = 1; at < 20; at++) {
        int64_t live = acf_alloc_live();
        acf_arena *a;
        acf_ridge r;
        double coef[K * W] = {0};
        acf_logit l = {W, K, 0, coef};
        acf_alloc_fail_at(at);
        acf_status status = acf_arena_create(&acf_heap, 64, &a); /* small blocks: many allocations */
        if (!status) {
            status = acf_ridge_create(a, W, &r);
            if (!status) status = acf_ridge_fit(a, &r, x, y, N);
            if (!status) status = acf_logit_fit(a, &l, x, class, N, 1);
            acf_arena_free(a);
        }
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
        if (at < 3) assert_int_equal(status, ACF_EMEMORY);
    }
}

ACF_TESTS(regress, cmocka_unit_test(ridge_maximises_the_evidence), cmocka_unit_test(ridge_solves_its_equations),
          cmocka_unit_test(ridge_finds_known_coefficients), cmocka_unit_test(posterior_draws_have_its_spread),
          cmocka_unit_test(ridge_of_odd_data), cmocka_unit_test(logit_ends_where_the_slope_is_zero),
          cmocka_unit_test(logit_finds_known_coefficients), cmocka_unit_test(six_passes_are_enough),
          cmocka_unit_test(logit_of_odd_data), cmocka_unit_test(memory_failing_in_turn))
