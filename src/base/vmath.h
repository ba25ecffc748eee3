/* Elementary functions that compilers turn into vector code.
 *
 * libm's exp and tanh are calls, so a loop over gates or mixture components stays scalar (20 to 40 cycles an element).
 * These are branch-free, a few FMAs each, and vectorise under `omp simd` on any instruction set: about one cycle an
 * element with AVX-512. All of them come from one series,
 *
 *     x = n ln2 + r, |r| <= ln2/2:   e^x - 1 = 2^n p + (2^n - 1),   p = e^r - 1 = r + r^2/2! + r^3/3! + ...
 *
 * whose first omitted term is below half a unit in the last place (7 terms for float, 13 for double). Using e^r - 1
 * instead of e^r makes tanh and elu accurate to relative, not only absolute, precision near zero.
 *
 * Error bounds (measured in vmath_test.c): exp, expm1, sigmoid, tanh within 4 units in the last place, softplus within
 * 2; results of exp below 1.6 times the smallest normal number become 0. NaN gives NaN, infinities their limits. */
#ifndef ACF_BASE_VMATH_H
#define ACF_BASE_VMATH_H

#include "base/real.h"

#include <math.h>

#define ACF_EXP_MAX_DOUBLE 709.782712893383973096 /* logs of the largest finite numbers */
#define ACF_EXP_MAX_FLOAT 88.72283905206835f
#define ACF_EXP_MIN_DOUBLE (-708.0) /* below, exp is 0 */
#define ACF_EXP_MIN_FLOAT (-86.9f)

/* Reduces x = n ln2 + r, for each type: the result is e^r - 1, *half is 2^(n-1) (so that n = 128 does not overflow).
 * Adding 1.5·2^52 (float: 2^23) rounds to an integer, which is then in the low bits; shifted up, these bits are the
 * exponent. */
static inline double acf_exp_reduce_double(double x, double *half) {
    union {
        double f;
        uint64_t i;
    } t, s;
    t.f = x * 1.44269504088896340736 + 0x1.8p52;
    double n = t.f - 0x1.8p52;
    double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33; /* n times the first part of ln2 is exact */
    s.i = (t.i + 1022) << 52;
    *half = s.f;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return r + r * r * p;
}

static inline float acf_exp_reduce_float(float x, float *half) {
    union {
        float f;
        uint32_t i;
    } t, s;
    t.f = x * 1.44269504088896340736f + 0x1.8p23f;
    float n = t.f - 0x1.8p23f;
    float r = (x - n * 0.693359375f) + n * 2.12194440054690581e-4f; /* 9 bits: exact without FMA too */
    s.i = (t.i + 126) << 23;
    *half = s.f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    return r + r * r * p;
}

/* In double also where acf_real is float: densities are evaluated there. */
static inline double acf_exp_double(double x) {
    const double min = ACF_EXP_MIN_DOUBLE, max = ACF_EXP_MAX_DOUBLE;
    /* Comparisons are false for NaN, so a NaN passes both clamps and comes out as NaN. */
    double c = x < min ? min : x;
    c = c > max ? max : c;
    double half, p = acf_exp_reduce_double(c, &half);
    double y = (half * p + half) * 2.0;
    y = x < min ? 0.0 : y;
    return x > max ? (double)INFINITY : y;
}

static inline float acf_exp_float(float x) {
    const float min = ACF_EXP_MIN_FLOAT, max = ACF_EXP_MAX_FLOAT;
    float c = x < min ? min : x;
    c = c > max ? max : c;
    float half, p = acf_exp_reduce_float(c, &half);
    float y = (half * p + half) * 2.0f;
    y = x < min ? 0.0f : y;
    return x > max ? (float)INFINITY : y;
}

#ifdef ACF_DOUBLE
#define acf_exp acf_exp_double
#define acf_exp_reduce acf_exp_reduce_double
#define ACF_EXP_MAX ACF_EXP_MAX_DOUBLE
#define ACF_EXP_MIN ACF_EXP_MIN_DOUBLE
#else
#define acf_exp acf_exp_float
#define acf_exp_reduce acf_exp_reduce_float
#define ACF_EXP_MAX ACF_EXP_MAX_FLOAT
#define ACF_EXP_MIN ACF_EXP_MIN_FLOAT
#endif

static inline acf_real acf_expm1(acf_real x) {
    acf_real c = x < ACF_R(-60.0) ? ACF_R(-60.0) : x;
    c = c > ACF_EXP_MAX ? ACF_EXP_MAX : c;
    acf_real half, p = acf_exp_reduce(c, &half);
    acf_real y = (half * p + (half - ACF_R(0.5))) * ACF_R(2.0);
    return x > ACF_EXP_MAX ? (acf_real)INFINITY : y;
}

static inline acf_real acf_tanh(acf_real x) {
    acf_real a = x < 0 ? -x : x;
    a = a > ACF_R(30.0) ? ACF_R(30.0) : a;
    acf_real half, p = acf_exp_reduce(a + a, &half);
    acf_real e = (half * p + (half - ACF_R(0.5))) * ACF_R(2.0);
    acf_real y = e / (e + ACF_R(2.0));
    return x < 0 ? -y : y;
}

static inline acf_real acf_sigmoid(acf_real x) { return ACF_R(1.0) / (ACF_R(1.0) + acf_exp(-x)); }

/* log(1 + e^x) without overflow. Scalar: it is not on a hot path. */
static inline acf_real acf_softplus(acf_real x) {
    acf_real a = x < 0 ? -x : x;
    acf_real m = x > 0 ? x : ACF_R(0.0);
    return isnan(x) ? x : m + (acf_real)log1p(exp(-(double)a));
}

/* log sigmoid(x) = -softplus(-x), in double: log-determinants are summed there. */
static inline double acf_log_sigmoid(double x) { return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)); }

#endif
