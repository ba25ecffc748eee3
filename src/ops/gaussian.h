/* The Gaussian as a likelihood, one per element: log-density, sample, CDF and quantile. Formulas in docs/math.md, 8.
 *
 * The log-scale s is clamped to [lo, hi] (-300 <= lo <= hi <= 300); its gradient is 0 outside. Everything is
 * computed in double and rounded once, to the nearest finite number. A log-density of -1e60 therefore becomes the
 * lowest float, its gradients likewise, and neither stops a training step. A NaN, or an infinite z or mean, gives
 * NaN.
 *
 * z, mean, log_scale and the result have one shape, any. */
#ifndef ACF_OPS_GAUSSIAN_H
#define ACF_OPS_GAUSSIAN_H

#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

/* log N(z; mean, e^s). */
acf_tensor *acf_gaussian_logp(acf_tape *t, acf_tensor *z, acf_tensor *mean, acf_tensor *log_scale, double lo,
                              double hi);

/* mean + e^s · noise, noise from stream NORMAL at the cell's counter. mean and log_scale (T), packed or with cells
 * d->at. Borrows d and its arrays. No derivative. */
acf_tensor *acf_gaussian_sample(acf_tape *t, acf_tensor *mean, acf_tensor *log_scale, double lo, double hi,
                                const acf_draw *d);

/* P(Z <= z); an infinite z gives 0 or 1. No derivative. */
acf_tensor *acf_gaussian_cdf(acf_tape *t, acf_tensor *z, acf_tensor *mean, acf_tensor *log_scale, double lo, double hi);

/* The smallest number whose CDF reaches q; q has the shape of mean, or one element for all. q outside (0, 1) makes
 * the tape fail with ACF_EUSAGE and names the cell: the quantiles of 0 and 1 are infinite. No derivative. */
acf_tensor *acf_gaussian_quantile(acf_tape *t, acf_tensor *q, acf_tensor *mean, acf_tensor *log_scale, double lo,
                                  double hi);

/* n elements each. */
void acf_gaussian_logp_fwd_cpu(const acf_device *dev, acf_real *logp, const acf_real *z, const acf_real *mean,
                               const acf_real *log_scale, int64_t n, double lo, double hi);
/* Adds to dz, dmean, dlog_scale; NULL = not needed. */
void acf_gaussian_logp_bwd_cpu(const acf_device *dev, acf_real *dz, acf_real *dmean, acf_real *dlog_scale,
                               const acf_real *dlogp, const acf_real *z, const acf_real *mean,
                               const acf_real *log_scale, int64_t n, double lo, double hi);

/* ---- shared with the mixture ------------------------------------------------------------------------------------ */

#define ACF_HALF_LOG_2PI 0.91893853320467274178
#define ACF_SCALE_BOUND 300.0

/* The message for invalid lo and hi, as a format for both; see acf_scale_bounds_ok. */
#define ACF_BAD_SCALE_BOUNDS "the log-scale is bounded by [%g, %g]; expected -300 <= lo <= hi <= 300"
static inline bool acf_scale_bounds_ok(double lo, double hi) {
    return -ACF_SCALE_BOUND <= lo && lo <= hi && hi <= ACF_SCALE_BOUND;
}

/* s within [lo, hi]; NaN stays NaN. */
static inline double acf_clamp_scale(double s, double lo, double hi) {
    s = s < lo ? lo : s;
    return s > hi ? hi : s;
}

/* (z - mean) / sigma, inv = 1 / sigma, capped at 1e150: its square and every gradient built from it stay finite in
 * double. The added zero turns an infinite z or mean, which the cap would hide, into NaN. */
static inline double acf_standardise(double z, double mean, double inv) {
    double gap = z - mean, e = gap * inv;
    e = e > 1e150 ? 1e150 : e;
    e = e < -1e150 ? -1e150 : e;
    return e + 0.0 * gap;
}

/* A mean, or NaN if it is infinite: rounding alone would give the largest finite number. */
static inline double acf_visible(double mean) { return mean + 0.0 * mean; }

/* P(E <= e) of the standard normal, or with upper P(E > e); accurate in both tails. */
double acf_normal_tail(double e, bool upper);

/* The e whose acf_normal_tail(e, upper) is `tail`, in (0, 1), to a few units in the last place, also for tails as
 * small as doubles go. NaN outside (0, 1). */
double acf_normal_quantile(double tail, bool upper);

/* P(Z <= z) or, with upper, P(Z > z) of a distribution. */
typedef double (*acf_tail)(const void *distribution, double z, bool upper);

/* The smallest acf_real whose CDF reaches q in (0, 1); NaN if none does (parameters that are not finite). */
acf_real acf_quantile_search(acf_tail tail, const void *distribution, double q);

/* ACF_EUSAGE naming the lowest cell whose q is outside (0, 1); q has one element or as many as the result y. */
acf_status acf_check_probability(const acf_tensor *q, const acf_tensor *y);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Of all of them. Inputs: mean, log_scale, and z or q (a sample has neither). */
typedef struct acf_gaussian_attrs {
    double lo, hi;
    acf_draw draw; /* of a sample: arrays are borrowed; the node runs at once and has no backward */
} acf_gaussian_attrs;

#endif
