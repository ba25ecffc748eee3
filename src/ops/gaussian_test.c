/* Tests of the Gaussian likelihood: cases for the harness, long double references far from the mean, and refusals. */
#include "ops/gaussian.h"

#include "base/vmath.h"
#include "harness/lab.h"

#include <math.h>

/* Bounds of the log-scale by variant. Leaves avoid 0, so a bound at 0 clamps half of the values and no finite
 * difference straddles it. */
static const double bounds[][2] = {{-3, 3}, {0, 3}, {-3, 0}};
enum { INSIDE, CLAMPED_BELOW, CLAMPED_ABOVE };

static double lo_of(const acf_lab *l) { return bounds[l->c->variant][0]; }
static double hi_of(const acf_lab *l) { return bounds[l->c->variant][1]; }

static double scale_of(const acf_lab *l, int64_t i) {
    return exp(fmin(fmax((double)l->leaf[1].value[i], lo_of(l)), hi_of(l)));
}

static void build_logp(acf_lab *l) {
    int64_t C = l->big ? 37 : 3;
    acf_tensor *mean = acf_leaf_packed(l, "mean", -2, 2, C), *s = acf_leaf_packed(l, "log_scale", -1.5, 1, C);
    acf_result(l, acf_gaussian_logp(l->t, acf_leaf_packed(l, "z", -3, 3, C), mean, s, lo_of(l), hi_of(l)));
}

static void naive_logp(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        double sigma = scale_of(l, i), gap = (double)l->leaf[2].value[i] - (double)l->leaf[0].value[i];
        out[0][i] = -gap * gap / (2 * sigma * sigma) - log(sigma) - 0.5 * log(2 * acos(-1));
    }
}

/* One tensor as two inputs: its gradients add up. */
static void build_shared(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -1.5, 1.5, 0), *z = acf_leaf_packed(l, "z", -3, 3, 0);
    acf_result(l, acf_gaussian_logp(l->t, z, x, x, -3, 3));
    acf_result(l, acf_gaussian_logp(l->t, x, z, x, -3, 3));
}

static void build_cdf(acf_lab *l) {
    acf_tensor *mean = acf_leaf_packed(l, "mean", -2, 2, 3), *s = acf_leaf_packed(l, "log_scale", -1.5, 1, 3);
    acf_result(l, acf_gaussian_cdf(l->t, acf_leaf_packed(l, "z", -3, 3, 3), mean, s, lo_of(l), hi_of(l)));
}

static void naive_cdf(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        double e = ((double)l->leaf[2].value[i] - (double)l->leaf[0].value[i]) / scale_of(l, i);
        out[0][i] = (1 + erf(e / sqrt(2))) / 2;
    }
}

/* Both kinds of q: one each, and one for all. */
static void build_quantile(acf_lab *l) {
    acf_tensor *mean = acf_leaf_packed(l, "mean", -2, 2, 0), *s = acf_leaf_packed(l, "log_scale", -1.5, 1, 0);
    acf_result(l, acf_gaussian_quantile(l->t, acf_leaf_packed(l, "q", 0.01, 0.99, 0), mean, s, lo_of(l), hi_of(l)));
    acf_result(l, acf_gaussian_quantile(l->t, acf_leaf(l, "one q", 0.6, 0.9, 0, NULL), mean, s, lo_of(l), hi_of(l)));
}

/* The standard normal quantile by bisection on a plain width. */
static double probit(double q) {
    double a = -10, b = 10;
    for (int i = 0; i < 200; i++) *((1 + erf((a + b) / 2 / sqrt(2))) / 2 < q ? &a : &b) = (a + b) / 2;
    return (a + b) / 2;
}

static void naive_quantile(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++)
        for (int k = 0; k < 2; k++)
            out[k][i] = (double)l->leaf[0].value[i] + scale_of(l, i) * probit((double)l->leaf[2 + k].value[k ? 0 : i]);
}

static void build_sample(acf_lab *l) {
    acf_tensor *mean = acf_leaf_packed(l, "mean", -2, 2, 0), *s = acf_leaf_packed(l, "log_scale", -1.5, 1, 0);
    acf_result(l, acf_gaussian_sample(l->t, mean, s, lo_of(l), hi_of(l), &(acf_draw){.seed = 9, .draw = 4}));
}

static void naive_sample(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->u->T; i++) {
        acf_rng_counter at = {.seed = 9,
                              .row = (uint64_t)l->u->row_of[i],
                              .stream = ACF_STREAM_NORMAL,
                              .column = (uint32_t)l->u->col_of[i],
                              .draw = 4};
        out[0][i] = (double)l->leaf[0].value[i] + scale_of(l, i) * acf_rng_normal(at);
    }
}

static const acf_case cases[] = {
    {"logp", build_logp, naive_logp, .variant = INSIDE},
    {"logp, clamped below", build_logp, naive_logp, .variant = CLAMPED_BELOW},
    {"logp, clamped above", build_logp, naive_logp, .variant = CLAMPED_ABOVE},
    {"logp, shared inputs", build_shared, NULL, .big_N = 4000, .big_D = 40},
    {"cdf", build_cdf, naive_cdf, .variant = CLAMPED_BELOW, .no_grad = true},
    /* a NaN as probability is refused as one outside (0, 1) */
    {"quantile", build_quantile, naive_quantile, .variant = CLAMPED_ABOVE, .no_grad = true, .may_fail_nonfinite = true},
    {"sample", build_sample, naive_sample, .variant = CLAMPED_BELOW, .no_grad = true},
};
ACF_CASES(gaussian, cases)

/* ---- far out ---------------------------------------------------------------------------------------------------- */

static long double clip(long double x) {
    return fminl(fmaxl(x, -(long double)ACF_REAL_MAX), (long double)ACF_REAL_MAX);
}

static void close_to(acf_real a, long double b, const char *what) {
    assert_true(isfinite(a));
    acf_assert_close((double)((long double)a / (1 + fabsl(b))), (double)(b / (1 + fabsl(b))), 8 * (double)ACF_REAL_EPS,
                     what);
}

/* Values, and gradients of every input, against long double; the initial gradient of 2 distinguishes += from =. */
static void stays_finite_far_out(void **state) {
    (void)state;
    static const double points[][3] = {{1e30, 0, -7}, {-1e30, 5, -30},  {3e-5, 0, -30}, {1, 1, -30}, {1e5, -1e5, 0},
                                       {-4, 2, 9},    {1e30, -1e30, 0}, {0, 1e-3, -7},  {7, 0, -40}, {7, 0, 40}};
    const double lo = -30, hi = 20;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        acf_real z = ACF_R(points[i][0]), m = ACF_R(points[i][1]), s = ACF_R(points[i][2]), y, g = ACF_R(-1.5);
        acf_real dz = 2, dm = 2, ds = 2;
        acf_gaussian_logp_fwd_cpu(l.dev, &y, &z, &m, &s, 1, lo, hi);
        acf_gaussian_logp_bwd_cpu(l.dev, &dz, &dm, &ds, &g, &z, &m, &s, 1, lo, hi);
        long double used = fminl(fmaxl((long double)s, lo), hi), sigma = expl(used);
        long double e = ((long double)z - (long double)m) / sigma;
        close_to(y, clip(-e * e / 2 - used - 0.5L * logl(2 * acosl(-1))), "value");
        close_to(dz, clip(2 + 1.5L * e / sigma), "dz");
        close_to(dm, clip(2 - 1.5L * e / sigma), "dmean");
        close_to(ds, used == (long double)s ? clip(2 - 1.5L * (e * e - 1)) : 2, "dlog_scale");
    }
    /* The end of the range at the smallest scale: still finite, and a gradient of 0 stays 0. */
    acf_real z = ACF_REAL_MAX, m = 0, s = -300, y, g[2] = {0, 1}, d[3] = {0};
    acf_gaussian_logp_fwd_cpu(l.dev, &y, &z, &m, &s, 1, -300, 300);
    assert_true(y < -ACF_REAL_MAX / 1e10 && isfinite(y));
    for (int k = 0; k < 2; k++) {
        acf_gaussian_logp_bwd_cpu(l.dev, &d[0], &d[1], &d[2], &g[k], &z, &m, &s, 1, -300, 300);
        for (int i = 0; i < 3; i++) assert_true(isfinite(d[i]) && (d[i] != 0) == (k == 1));
    }
    acf_lab_close(&l);
}

/* An infinite z or mean is an error upstream: it must not give a very low but finite log-density. */
static void infinite_inputs_give_nan(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_real inf = (acf_real)INFINITY, one = 1, y;
    acf_gaussian_logp_fwd_cpu(l.dev, &y, &inf, &one, &one, 1, -3, 3);
    assert_true(isnan(y));
    acf_gaussian_logp_fwd_cpu(l.dev, &y, &one, &inf, &one, 1, -3, 3);
    assert_true(isnan(y));
    acf_lab_close(&l);
}

/* ∫ exp(logp) = 1 and ∫ (z - mean)² exp(logp) = σ², by the trapezoid rule (exponentially accurate for a Gaussian). */
static void density_integrates_to_one(void **state) {
    (void)state;
    enum { n = 4001 };
    static acf_real z[n], m[n], s[n], y[n];
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    for (double scale = -6; scale <= 6; scale += 2) {
        double sigma = exp(scale), sum = 0, square = 0, h = 20 * sigma / (n - 1);
        for (int i = 0; i < n; i++) z[i] = ACF_R(0.5 + (i - n / 2) * h), m[i] = ACF_R(0.5), s[i] = ACF_R(scale);
        acf_gaussian_logp_fwd_cpu(l.dev, y, z, m, s, n, -7, 7);
        for (int i = 0; i < n; i++) {
            double gap = (double)z[i] - 0.5;
            sum += h * exp((double)y[i]), square += h * gap * gap * exp((double)y[i]);
        }
        double tol = sizeof(acf_real) == 8 ? 1e-12 : 1e-5;
        acf_assert_close(sum, 1, tol, "integral");
        acf_assert_close(square / (sigma * sigma), 1, tol, "variance");
    }
    acf_lab_close(&l);
}

/* ---- quantiles -------------------------------------------------------------------------------------------------- */

typedef struct point {
    double at; /* all the mass in one point */
} point;

static double point_tail(const void *distribution, double z, bool upper) {
    bool below = z >= ((const point *)distribution)->at;
    return upper ? !below : below;
}

/* The search ends on the exact number, wherever it is, and on NaN if the CDF never reaches q. */
static void search_is_exact(void **state) {
    (void)state;
    static const double at[] = {0, 1, -1, 3.14159, -1e-30, 1e30, -1e37, 1e-38, 0.1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        for (double q = 0.1; q < 1; q += 0.2) {
            point p = {(double)ACF_R(at[i])};
            assert_true(acf_quantile_search(point_tail, &p, q) == ACF_R(at[i]));
        }
    point never = {INFINITY};
    assert_true(isnan(acf_quantile_search(point_tail, &never, 0.5)));
}

/* Both tails keep their digits: the tail beyond the quantile is q (or 1 - q) up to the last bit of z. */
static void tails_are_accurate(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    const double tiny = sizeof(acf_real) == 8 ? 1e-300 : 1e-37, most = 1 - (double)ACF_REAL_EPS;
    const double qs[] = {tiny, 1e-20, 1e-6, 0.5, 0.75, 1 - 0x1p-20, most};
    for (size_t i = 0; i < sizeof qs / sizeof qs[0]; i++) {
        acf_real q = ACF_R(qs[i]), zero = 0;
        acf_tensor *x = acf_tensor_input(l.t, &zero, 0, NULL);
        acf_tensor *y = acf_gaussian_quantile(l.t, acf_tensor_input(l.t, &q, 0, NULL), x, x, -1, 1);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        long double z = (long double)y->data[0], upper = 1 - (long double)q;
        long double tail = q > ACF_R(0.5) ? erfcl(z / sqrtl(2)) / 2 : erfcl(-z / sqrtl(2)) / 2;
        long double error = tail / (q > ACF_R(0.5) ? upper : (long double)q) - 1;
        /* one ulp of z moves the tail by about z² ulps */
        assert_true(fabsl(error) <= (4 + 2 * z * z) * (long double)ACF_REAL_EPS);
    }
    acf_lab_close(&l);
}

/* ---- the exponential function it uses -------------------------------------------------------------------------- */

static void exp_double_is_accurate(void **state) {
    (void)state;
    for (int64_t i = 0; i < 20000; i++) {
        double x = acf_lab_random(5, i, i % 2 ? -707 : -2, i % 2 ? 709 : 2);
        long double exact = expl((long double)x);
        assert_true(fabsl((long double)acf_exp_double(x) / exact - 1) <= 4 * (long double)DBL_EPSILON);
    }
    assert_true(acf_exp_double(0) == 1 && acf_exp_double(-INFINITY) == 0 && acf_exp_double(-1e300) == 0);
    assert_true(isinf(acf_exp_double(710)) && isinf(acf_exp_double(INFINITY)) && isnan(acf_exp_double(NAN)));
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static acf_tensor *packed(acf_lab *l) { return acf_tensor_packed(l->t, l->u, 0); }

static void expect(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    if (sentence) assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_tensor *other = acf_tensor_new(l.t, 1, (int64_t[]){6}); /* as many, but not packed */
    acf_gaussian_logp(l.t, other, packed(&l), packed(&l), -1, 1);
    expect(&l, ACF_ESHAPE, "gaussian_logp: mean is (6 packed), log_scale is (6 packed), z is (6); expected one shape");
    acf_gaussian_logp(l.t, packed(&l), packed(&l), acf_tensor_packed(l.t, l.u, 2), -1, 1);
    expect(&l, ACF_ESHAPE, NULL);
    acf_gaussian_cdf(l.t, packed(&l), packed(&l), packed(&l), 1, -1);
    expect(&l, ACF_EUSAGE, "gaussian_cdf: the log-scale is bounded by [1, -1]; expected -300 <= lo <= hi <= 300");
    acf_gaussian_logp(l.t, packed(&l), packed(&l), packed(&l), (double)NAN, 1);
    expect(&l, ACF_EUSAGE, NULL);
    acf_gaussian_quantile(l.t, acf_tensor_new(l.t, 1, (int64_t[]){2}), packed(&l), packed(&l), -1, 1);
    expect(&l, ACF_ESHAPE, NULL);
    other = acf_tensor_new(l.t, 1, (int64_t[]){6});
    acf_gaussian_sample(l.t, other, other, -1, 1, &(acf_draw){.seed = 1});
    expect(&l, ACF_ESHAPE,
           "gaussian_sample: the elements have no place in the table: expected a packed tensor, or row and column of "
           "each element");
    acf_lab_close(&l);
}

/* The message names the lowest cell, not the first in memory: packed elements are step-major. */
static void refuses_probabilities_of_zero_and_one(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_real q[6] = {ACF_R(0.5), 1, ACF_R(0.5), 0, 0, ACF_R(0.5)}, zero[6] = {0};
    acf_tensor *x = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, zero, 1, (int64_t[]){6}), l.u);
    acf_gaussian_quantile(l.t, acf_tensor_as_packed(l.t, acf_tensor_input(l.t, q, 1, (int64_t[]){6}), l.u), x, x, -1,
                          1);
    expect(&l, ACF_EUSAGE,
           "gaussian_quantile: row 0, column 2: the probability is 0; expected 0 < q < 1 (the quantiles of 0 and 1 are "
           "infinite)");
    x = acf_tensor_input(l.t, zero, 0, NULL);
    acf_gaussian_quantile(l.t, acf_tensor_input(l.t, &q[1], 0, NULL), x, x, -1, 1);
    expect(&l, ACF_EUSAGE, NULL);
    acf_lab_close(&l);
}

/* Infinite parameters do not give a finite sample, quantile or probability. */
static void infinite_means_give_nan(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    acf_real mean[3] = {(acf_real)INFINITY, 0, -(acf_real)INFINITY}, zero[3] = {0}, half = ACF_R(0.5);
    acf_tensor *m = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, mean, 1, (int64_t[]){3}), l.u);
    acf_tensor *s = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, zero, 1, (int64_t[]){3}), l.u);
    acf_tensor *y[3] = {acf_gaussian_sample(l.t, m, s, -1, 1, &(acf_draw){.seed = 1}),
                        acf_gaussian_quantile(l.t, acf_tensor_input(l.t, &half, 0, NULL), m, s, -1, 1),
                        acf_gaussian_cdf(l.t, s, m, s, -1, 1)};
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int k = 0; k < 3; k++) assert_true(isnan(y[k]->data[0]) && isfinite(y[k]->data[1]) && isnan(y[k]->data[2]));
    acf_lab_close(&l);
}

/* Both tails, over the range of doubles. */
static void normal_quantiles_invert_tails(void **state) {
    (void)state;
    for (int upper = 0; upper < 2; upper++)
        for (double e = -8; e < 37; e += 0.0713) {
            double tail = acf_normal_tail(e, upper), far = upper ? e : -e;
            if (tail > 1 - 1e-9) continue; /* so close to 1 that its digits do not determine e */
            double error = 1e-15 * tail / exp(-0.5 * e * e - ACF_HALF_LOG_2PI); /* the effect of rounding the tail */
            assert_true(fabs(acf_normal_quantile(tail, upper) - e) <= 10 * error + 1e-14 * (1 + fabs(far)));
        }
    assert_true(acf_normal_quantile(0.5, false) == 0);
    assert_true(isnan(acf_normal_quantile(0, false)) && isnan(acf_normal_quantile(1, true)) &&
                isnan(acf_normal_quantile((double)NAN, true)));
}

ACF_TESTS(gaussian, cmocka_unit_test(normal_quantiles_invert_tails), cmocka_unit_test(infinite_means_give_nan),
          cmocka_unit_test(stays_finite_far_out), cmocka_unit_test(infinite_inputs_give_nan),
          cmocka_unit_test(density_integrates_to_one), cmocka_unit_test(search_is_exact),
          cmocka_unit_test(tails_are_accurate), cmocka_unit_test(exp_double_is_accurate),
          cmocka_unit_test(refuses_what_does_not_fit), cmocka_unit_test(refuses_probabilities_of_zero_and_one))
