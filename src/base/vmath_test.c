/* Tests of the elementary functions against libm in long double: dense ranges, limits, and the error bounds of the
 * header. */
#include "base/vmath.h"

#include "harness/check.h"

#include <stdlib.h>

/* Distance of y from the exact value, in units in the last place of acf_real there. Below the smallest normal number
 * the unit is constant. */
static double ulps(acf_real y, long double exact) {
    long double size = fabsl(exact) < (long double)ACF_REAL_MIN ? (long double)ACF_REAL_MIN : fabsl(exact);
    int exponent;
    frexpl(size, &exponent);
    return (double)(fabsl((long double)y - exact) / ldexpl((long double)ACF_REAL_EPS, exponent - 1));
}

/* Each function over an array, in the vector form in which kernels use it. */
#define OVER_ARRAY(f)                                                                                                  \
    static void f##_all(acf_real *y, const acf_real *x, int n) {                                                       \
        _Pragma("omp simd")                                                                                            \
        for (int i = 0; i < n; i++) y[i] = f(x[i]);                                                                    \
    }
OVER_ARRAY(acf_exp)
OVER_ARRAY(acf_expm1)
OVER_ARRAY(acf_tanh)
OVER_ARRAY(acf_sigmoid)

static void acf_softplus_all(acf_real *y, const acf_real *x, int n) { /* a call inside: stays scalar */
    for (int i = 0; i < n; i++) y[i] = acf_softplus(x[i]);
}

static long double sigmoid_exact(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus_exact(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }

typedef struct function {
    const char *name;
    void (*all)(acf_real *y, const acf_real *x, int n);
    long double (*exact)(long double x);
    double worst; /* ulps promised */
} function;

static const function functions[] = {
    {"exp", acf_exp_all, expl, 4},
    {"expm1", acf_expm1_all, expm1l, 4},
    {"tanh", acf_tanh_all, tanhl, 4},
    {"sigmoid", acf_sigmoid_all, sigmoid_exact, 4},
    {"softplus", acf_softplus_all, softplus_exact, 2},
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0], BATCH = 1000 };

/* exp gives 0 a little above the smallest normal number, and sigmoid divides by it. */
static bool flushed(acf_real y, long double exact) { return y == 0 && fabsl(exact) < 2 * (long double)ACF_REAL_MIN; }

static double check_batch(const function *f, const acf_real *x, int n) {
    acf_real y[BATCH];
    double worst = 0;
    f->all(y, x, n);
    for (int i = 0; i < n; i++) {
        long double exact = f->exact((long double)x[i]);
        if (fabsl(exact) > (long double)ACF_REAL_MAX || flushed(y[i], exact)) continue;
        double u = ulps(y[i], exact);
        if (!(u <= f->worst)) fail_msg("%s(%.17g) is %.17g, off by %.2f ulp", f->name, (double)x[i], (double)y[i], u);
        worst = fmax(worst, u);
    }
    return worst;
}

/* Evenly over [lo,hi]: the ordinary range, and each end of the exponent. */
static void dense_ranges(void **state) {
    (void)state;
    const double range[][2] = {{-1, 1},        {-12, 12},    {-90, 90},     {-720, 720},
                               {-87.4, -86.8}, {88.6, 88.8}, {709.5, 709.9}};
    for (int k = 0; k < N_FUNCTIONS; k++) {
        double worst = 0;
        for (size_t r = 0; r < sizeof range / sizeof range[0]; r++)
            for (int b = 0; b < 60; b++) {
                acf_real x[BATCH];
                for (int i = 0; i < BATCH; i++)
                    x[i] = (acf_real)(range[r][0] + (range[r][1] - range[r][0]) * (b * BATCH + i) / (60.0 * BATCH));
                worst = fmax(worst, check_batch(&functions[k], x, BATCH));
            }
        print_message("%-8s within %.2f ulp\n", functions[k].name, worst);
    }
}

/* Evenly over the exponents, both signs: relative precision must hold down to the denormals. */
static void every_magnitude(void **state) {
    (void)state;
    int lo = sizeof(acf_real) == 8 ? -1074 : -149, hi = sizeof(acf_real) == 8 ? 1023 : 127;
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int e = lo; e <= hi; e++) {
            acf_real x[64];
            for (int i = 0; i < 64; i++) x[i] = (acf_real)ldexp((i % 2 ? -1 : 1) * (1 + i / 64.0), e);
            check_batch(&functions[k], x, 64);
        }
}

/* Small results keep their relative precision, because the functions use e^r - 1. */
static void near_zero_is_the_identity(void **state) {
    (void)state;
    for (int e = -40; e >= -100; e--) {
        acf_real x = (acf_real)ldexp(1.25, e);
        if (sizeof(acf_real) == 4) assert_true(acf_tanh(x) == x && acf_expm1(x) == x && acf_tanh(-x) == -x);
        assert_true(ulps(acf_expm1(-x), expm1l(-(long double)x)) <= 1);
    }
    assert_true(acf_tanh(0) == 0 && acf_expm1(0) == 0 && acf_exp(0) == 1 && acf_sigmoid(0) == ACF_R(0.5));
}

static void limits_and_nan(void **state) {
    (void)state;
    const acf_real inf = (acf_real)INFINITY, nan = (acf_real)NAN, huge = ACF_REAL_MAX;
    assert_true(acf_exp(inf) == inf && acf_exp(-inf) == 0 && acf_exp(huge) == inf && acf_exp(-huge) == 0);
    assert_true(acf_expm1(inf) == inf && acf_expm1(-inf) == -1 && acf_expm1(-huge) == -1);
    assert_true(acf_tanh(inf) == 1 && acf_tanh(-inf) == -1 && acf_tanh(huge) == 1 && acf_tanh(-huge) == -1);
    assert_true(acf_sigmoid(inf) == 1 && acf_sigmoid(-inf) == 0 && acf_sigmoid(huge) == 1 && acf_sigmoid(-huge) == 0);
    assert_true(acf_softplus(inf) == inf && acf_softplus(-inf) == 0 && acf_softplus(huge) == huge &&
                acf_softplus(-huge) == 0);
    assert_true(isnan(acf_exp(nan)) && isnan(acf_expm1(nan)) && isnan(acf_tanh(nan)) && isnan(acf_sigmoid(nan)) &&
                isnan(acf_softplus(nan)));
    assert_true(isnan(acf_exp(-nan)) && isnan(acf_tanh(-nan)));
    assert_true(isinf(acf_log_sigmoid(-(double)INFINITY)) && acf_log_sigmoid((double)INFINITY) == 0);
    assert_true(isnan(acf_log_sigmoid((double)NAN)));
}

/* The largest argument has a finite result, the next one overflows; where exp becomes 0 it was below 1.6 times the
 * smallest normal number. */
static void the_ends_of_exp(void **state) {
    (void)state;
    acf_real top = (acf_real)logl((long double)ACF_REAL_MAX);
    while (expl((long double)top) > (long double)ACF_REAL_MAX) top *= 1 - ACF_REAL_EPS;
    assert_true(isfinite(acf_exp(top)) && ulps(acf_exp(top), expl((long double)top)) <= 4);
    assert_true(isinf(acf_exp(top * (1 + 4 * ACF_REAL_EPS))));
    assert_true(acf_exp(ACF_EXP_MIN) > 0 && acf_exp(ACF_EXP_MIN) < ACF_R(1.6) * ACF_REAL_MIN);
    assert_true(acf_exp(ACF_EXP_MIN * (1 + 4 * ACF_REAL_EPS)) == 0);
}

/* The logarithm of a leaky slope: relative precision at both ends. */
static void log_sigmoid_everywhere(void **state) {
    (void)state;
    for (int i = -80000; i <= 80000; i++) {
        double x = i / 100.0;
        long double exact = x < 0 ? (long double)x - log1pl(expl((long double)x)) : -log1pl(expl(-(long double)x));
        assert_true(fabsl((long double)acf_log_sigmoid(x) - exact) <=
                    4 * (long double)DBL_EPSILON * fabsl(exact) + 1e-310L);
    }
    assert_true(acf_log_sigmoid(-1e300) == -1e300);
}

ACF_TESTS(vmath, cmocka_unit_test(dense_ranges), cmocka_unit_test(every_magnitude),
          cmocka_unit_test(near_zero_is_the_identity), cmocka_unit_test(limits_and_nan),
          cmocka_unit_test(the_ends_of_exp), cmocka_unit_test(log_sigmoid_everywhere))
