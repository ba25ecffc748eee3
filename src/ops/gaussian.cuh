/* Tails, quantiles, scales and draws on the GPU, for the Gaussian and the mixture: see gaussian.h and draw.h. In
 * double, as on the CPU. */
#ifndef ACF_OPS_GAUSSIAN_CUH
#define ACF_OPS_GAUSSIAN_CUH

#include <math_constants.h>

#include "base/rng.cuh"
#include "ops/ops.cuh"

extern "C" {
#include "ops/gaussian.h"
}

/* acf_real_from: the nearest finite float; NaN stays NaN. */
static __device__ inline acf_real acf_nearest(double x) {
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (acf_real)x;
}

static __device__ inline double acf_clamped(double s, double lo, double hi) {
    s = s < lo ? lo : s;
    return s > hi ? hi : s;
}

/* acf_standardise and acf_visible. */
static __device__ inline double acf_standard(double z, double mean, double inv) {
    const double gap = z - mean;
    double e = gap * inv;
    e = e > 1e150 ? 1e150 : e;
    e = e < -1e150 ? -1e150 : e;
    return e + 0.0 * gap;
}
static __device__ inline double acf_seen(double mean) { return mean + 0.0 * mean; }

/* acf_normal_tail, acf_normal_quantile. */
static __device__ inline double acf_tail_of_normal(double e, bool upper) {
    return 0.5 * erfc((upper ? e : -e) * 0.70710678118654752440);
}

static __device__ inline double acf_upper_quantile(double tail) {
    const double s = sqrt(-2 * log(tail));
    double e = tail < 0.1 ? s - (log(s) + ACF_HALF_LOG_2PI) / s : (0.5 - tail) * 2.50662827463100050242;
    for (int i = 0; i < 12; i++) {
        const double u = (acf_tail_of_normal(e, true) - tail) * exp(0.5 * e * e + ACF_HALF_LOG_2PI),
                     step = u / (1 - 0.5 * e * u);
        e += step;
        if (!(fabs(step) > 1e-15 * (1 + e))) break;
    }
    return e;
}
static __device__ inline double acf_quantile_of_normal(double tail, bool upper) {
    if (!(tail > 0 && tail < 1)) return CUDART_NAN;
    const double e = tail <= 0.5 ? acf_upper_quantile(tail) : -acf_upper_quantile(1 - tail);
    return upper ? e : -e;
}

/* Floats as integers in the same order, and back (gaussian.c). */
static __device__ inline uint32_t acf_to_order(float x) {
    const uint32_t i = __float_as_uint(x);
    return i >> 31 ? ~i : i | 0x80000000u;
}
static __device__ inline float acf_from_order(uint32_t i) { return __uint_as_float(i >> 31 ? i & 0x7fffffffu : ~i); }

/* acf_quantile_search: the smallest float whose CDF reaches q, by bisection over the floats. All threads of a group
 * call tail(distribution, z, upper) together. NaN if no float does. */
template <typename D>
static __device__ inline float acf_search_quantile(double (*tail)(const D &, double, bool), const D &d, double q) {
    uint32_t below = acf_to_order(-FLT_MAX), at = acf_to_order(FLT_MAX);
    const bool upper = q > 0.5;
    const double end = tail(d, FLT_MAX, upper);
    if (!(upper ? end <= 1.0 - q : end >= q)) return CUDART_NAN_F;
    while (at - below > 1) {
        const uint32_t middle = below + (at - below) / 2;
        const double p = tail(d, (double)acf_from_order(middle), upper);
        if (upper ? p <= 1.0 - q : p >= q)
            at = middle;
        else
            below = middle;
    }
    return acf_from_order(at);
}

/* acf_draw_counter; `at` is resolved. */
static __device__ inline acf_rng_counter acf_rng_counter_of(const acf_draw &d, acf_stream_id stream, int64_t i) {
    const int64_t row = d.at.row[i];
    return {d.seed, d.row_id ? d.row_id[row] : (uint64_t)row, (uint32_t)stream, (uint32_t)d.at.column[i],
            d.now ? *d.now : d.draw};
}

/* Records a fault for the lowest cell of y whose q is outside (0, 1); q (n) or one for all (q_step 0). Launched
 * before the quantiles, which are NaN there. */
acf_status acf_cuda_check_probability(acf_device *dev, const acf_tensor *q, const acf_tensor *y, const char *op);

#endif
