/* Elementary functions that compilers turn into vector code.
 *
 * libm's exp and tanh are calls, so a loop over gates or mixture components stays scalar (20 to 40 cycles an element).
 * These are branch-free, a few FMAs each, and vectorise under `omp simd` on any instruction set: about one cycle an
 * element with AVX-512. All of them come from one series,
 *
 *     x = n ln2 + r, |r| <= ln2/2:   e^x - 1 = 2^n p + (2^n - 1),   p = e^r - 1 = r + r^2/2! + r^3/3! + ...
 *
 * whose first omitted term is below half a unit in the last place (7 terms for float, 13 for double). Keeping e^r - 1
 * instead of e^r is what makes tanh and elu accurate to relative, not only absolute, precision near zero.
 *
 * Error bounds (measured in vmath_test.c): exp, expm1, sigmoid, tanh within 4 units in the last place, softplus within 2;
 * results of exp below 1.6 times the smallest normal number become 0. NaN gives NaN, infinities their limits. */
#ifndef ACF_BASE_VMATH_H
#define ACF_BASE_VMATH_H

#include "base/real.h"

#include <math.h>

#ifdef ACF_DOUBLE
typedef uint64_t acf_bits;
#define ACF_MANTISSA 52
#define ACF_BIAS 1023
#define ACF_ROUND 0x1.8p52       /* adding it rounds to an integer, which then sits in the low bits */
#define ACF_LN2_HI 0x1.62e42fee00000p-1
#define ACF_LN2_LO 0x1.a39ef35793c76p-33
#define ACF_EXP_MIN (-708.0)
#define ACF_EXP_MAX 709.782712893383973096
#else
typedef uint32_t acf_bits;
#define ACF_MANTISSA 23
#define ACF_BIAS 127
#define ACF_ROUND 0x1.8p23f
#define ACF_LN2_HI 0x1.62e400p-1f
#define ACF_LN2_LO 0x1.7f7d1cp-20f
#define ACF_EXP_MIN (-86.9f)
#define ACF_EXP_MAX 88.72283905206835f
#endif

/* x = n ln2 + r.  *half is 2^(n-1) (so that n = 128 does not overflow), the result is e^r - 1. */
static inline acf_real acf_exp_reduce(acf_real x, acf_real *half) {
    union {
        acf_real f;
        acf_bits i;
    } t, s;
    t.f = x * ACF_R(1.44269504088896340736) + ACF_ROUND;
    acf_real n = t.f - ACF_ROUND;
    acf_real r = (x - n * ACF_LN2_HI) - n * ACF_LN2_LO;
    s.i = (acf_bits)((t.i + (ACF_BIAS - 1)) << ACF_MANTISSA);
    *half = s.f;
#ifdef ACF_DOUBLE
    acf_real p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#else
    acf_real p = ACF_R(1.0 / 5040.0);
#endif
    p = p * r + ACF_R(1.0 / 720.0);
    p = p * r + ACF_R(1.0 / 120.0);
    p = p * r + ACF_R(1.0 / 24.0);
    p = p * r + ACF_R(1.0 / 6.0);
    p = p * r + ACF_R(0.5);
    return r + r * r * p;
}

static inline acf_real acf_exp(acf_real x) {
    /* Comparisons are false for NaN, so a NaN passes both clamps and comes out as NaN. */
    acf_real c = x < ACF_EXP_MIN ? ACF_EXP_MIN : x;
    c = c > ACF_EXP_MAX ? ACF_EXP_MAX : c;
    acf_real half, p = acf_exp_reduce(c, &half);
    acf_real y = (half * p + half) * ACF_R(2.0);
    y = x < ACF_EXP_MIN ? ACF_R(0.0) : y;
    return x > ACF_EXP_MAX ? (acf_real)INFINITY : y;
}

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
