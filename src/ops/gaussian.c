/* The Gaussian likelihood: see gaussian.h; formulas in docs/math.md, 8.
 *
 * Workload: 1e3 to 1e6 elements a call, about 40 FLOP each, most of them one exp; vectorised in double. CDF and
 * quantile are used after training, for single cells, and stay scalar. */
#include "ops/gaussian.h"

#include "base/vmath.h"

/* Elements of one iteration of a parallel loop: two doubles each fit the first-level cache. */
#define PART 1024

/* ---- log-density ------------------------------------------------------------------------------------------------ */

static void logp_chunk(acf_real *logp, const acf_real *z, const acf_real *mean, const acf_real *log_scale, int64_t n,
                       double lo, double hi) {
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) {
        double s = acf_clamp_scale((double)log_scale[i], lo, hi);
        double e = acf_standardise((double)z[i], (double)mean[i], acf_exp_double(-s));
        logp[i] = acf_real_from(-0.5 * e * e - s - ACF_HALF_LOG_2PI);
    }
}

void acf_gaussian_logp_fwd_cpu(const acf_device *dev, acf_real *logp, const acf_real *z, const acf_real *mean,
                               const acf_real *log_scale, int64_t n, double lo, double hi) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += PART)
        logp_chunk(logp + c, z + c, mean + c, log_scale + c, acf_min(PART, n - c), lo, hi);
}

/* d logp / dz = -e/σ = -d logp / dmean,  d logp / ds = e² - 1 inside the bounds. The sum is rounded once, in double,
 * so that two gradients at the end of the range do not add up to infinity. */
static void logp_grad_chunk(acf_real *dz, acf_real *dmean, acf_real *dlog_scale, const acf_real *dlogp,
                            const acf_real *z, const acf_real *mean, const acf_real *log_scale, int64_t n, double lo,
                            double hi) {
    double dgap[PART], ds[PART]; /* gradients of z - mean and of s */
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) {
        double raw = (double)log_scale[i], inv = acf_exp_double(-acf_clamp_scale(raw, lo, hi));
        double e = acf_standardise((double)z[i], (double)mean[i], inv);
        dgap[i] = -(double)dlogp[i] * e * inv;
        ds[i] = raw < lo || raw > hi ? 0.0 : (double)dlogp[i] * (e * e - 1.0);
    }
    for (int64_t i = 0; dz && i < n; i++) dz[i] = acf_real_from((double)dz[i] + dgap[i]);
    for (int64_t i = 0; dmean && i < n; i++) dmean[i] = acf_real_from((double)dmean[i] - dgap[i]);
    for (int64_t i = 0; dlog_scale && i < n; i++) dlog_scale[i] = acf_real_from((double)dlog_scale[i] + ds[i]);
}

void acf_gaussian_logp_bwd_cpu(const acf_device *dev, acf_real *dz, acf_real *dmean, acf_real *dlog_scale,
                               const acf_real *dlogp, const acf_real *z, const acf_real *mean,
                               const acf_real *log_scale, int64_t n, double lo, double hi) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += PART)
        logp_grad_chunk(dz ? dz + c : NULL, dmean ? dmean + c : NULL, dlog_scale ? dlog_scale + c : NULL, dlogp + c,
                        z + c, mean + c, log_scale + c, acf_min(PART, n - c), lo, hi);
}

/* ---- tails and quantiles ---------------------------------------------------------------------------------------- */

double acf_normal_tail(double e, bool upper) { return 0.5 * erfc((upper ? e : -e) * 0.70710678118654752440); }

/* Halley's iteration on the tail itself, for e >= 0. It starts from the leading terms of the expansion far out, and
 * from the slope at 0 near the middle. Four or five iterations suffice. */
static double upper_quantile(double tail) {
    double s = sqrt(-2 * log(tail));
    double e = tail < 0.1 ? s - (log(s) + ACF_HALF_LOG_2PI) / s : (0.5 - tail) * 2.50662827463100050242;
    for (int i = 0; i < 12; i++) {
        double u = (acf_normal_tail(e, true) - tail) * exp(0.5 * e * e + ACF_HALF_LOG_2PI),
               step = u / (1 - 0.5 * e * u);
        e += step;
        if (!(fabs(step) > 1e-15 * (1 + e))) break;
    }
    return e;
}

double acf_normal_quantile(double tail, bool upper) {
    if (!(tail > 0 && tail < 1)) return (double)NAN;
    double e = tail <= 0.5 ? upper_quantile(tail) : -upper_quantile(1 - tail);
    return upper ? e : -e;
}

/* Maps numbers to integers of the same order, and back: successive finite numbers map to successive integers. */
#define SIGN ((acf_bits)1 << (8 * sizeof(acf_bits) - 1))

static acf_bits to_order(acf_real x) {
    union {
        acf_real f;
        acf_bits i;
    } v = {x};
    return v.i & SIGN ? (acf_bits)~v.i : v.i | SIGN;
}

static acf_real from_order(acf_bits i) {
    union {
        acf_bits i;
        acf_real f;
    } v = {i & SIGN ? i & (acf_bits)~SIGN : (acf_bits)~i};
    return v.f;
}

/* True if F(z) >= q, computed in the tail that holds q's digits. False for NaN. */
static bool reaches(acf_tail tail, const void *distribution, acf_real z, double q) {
    return q > 0.5 ? tail(distribution, (double)z, true) <= 1.0 - q : tail(distribution, (double)z, false) >= q;
}

/* Bisection over the representable numbers, not over a width. It needs no bracket, takes as many evaluations as
 * acf_real has bits whatever the scales and outliers of the components, and ends on the exact answer. */
acf_real acf_quantile_search(acf_tail tail, const void *distribution, double q) {
    acf_bits below = to_order(-ACF_REAL_MAX), at = to_order(ACF_REAL_MAX);
    if (!reaches(tail, distribution, ACF_REAL_MAX, q)) return (acf_real)NAN;
    while (at - below > 1) {
        acf_bits middle = below + (at - below) / 2;
        if (reaches(tail, distribution, from_order(middle), q))
            at = middle;
        else
            below = middle;
    }
    return from_order(at);
}

acf_status acf_check_probability(const acf_tensor *q, const acf_tensor *y) {
    const acf_tensor *places = acf_tensor_count(q) == acf_tensor_count(y) ? y : q;
    int64_t found = -1, found_row = 0, found_column = 0;
    for (int64_t i = 0; i < acf_tensor_count(q); i++) {
        if (q->data[i] > 0 && q->data[i] < 1) continue;
        int64_t row, column;
        acf_tensor_place(places, i, &row, &column);
        if (found >= 0 && (row > found_row || (row == found_row && column > found_column))) continue;
        found = i, found_row = row, found_column = column;
    }
    if (found < 0) return ACF_OK;
    return acf_fail(ACF_EUSAGE,
                    "row %lld, column %lld: the probability is %g; expected 0 < q < 1 (the quantiles of 0 and 1 are "
                    "infinite)",
                    (long long)found_row, (long long)found_column, (double)q->data[found]);
}

typedef struct normal {
    double mean, inv;
} normal;

static double tail_of(const void *distribution, double z, bool upper) {
    const normal *d = distribution;
    return acf_normal_tail((z - acf_visible(d->mean)) * d->inv, upper);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* Inputs of every node: mean, log_scale, and z or q (a sample has neither). */
static normal normal_at(const acf_node *n, int64_t i) {
    const acf_gaussian_attrs *a = n->attr;
    double s = acf_clamp_scale((double)n->in[1]->data[i], a->lo, a->hi);
    return (normal){(double)n->in[0]->data[i], exp(-s)};
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = n->attr;
    acf_gaussian_logp_fwd_cpu(t->dev, n->out[0]->data, n->in[2]->data, n->in[0]->data, n->in[1]->data,
                              acf_tensor_count(n->out[0]), a->lo, a->hi);
    return ACF_OK;
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = n->attr;
    acf_tensor *mean = n->in[0], *s = n->in[1], *z = n->in[2], *y = n->out[0];
    acf_real *dmean = acf_grad(t, mean), *ds = acf_grad(t, s), *dz = acf_grad(t, z);
    ACF_TRY(acf_tape_status(t));
    acf_gaussian_logp_bwd_cpu(t->dev, dz, dmean, ds, y->grad, z->data, mean->data, s->data, acf_tensor_count(y), a->lo,
                              a->hi);
    return ACF_OK;
}

static acf_status cdf_forward(acf_tape *t, acf_node *n) {
    int64_t count = acf_tensor_count(n->out[0]);
    ACF_PARALLEL(t->dev, count * 32)
    for (int64_t i = 0; i < count; i++) {
        normal d = normal_at(n, i);
        n->out[0]->data[i] = (acf_real)tail_of(&d, (double)n->in[2]->data[i], false);
    }
    return ACF_OK;
}

static acf_status quantile_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *q = n->in[2];
    int64_t count = acf_tensor_count(n->out[0]), step = acf_tensor_count(q) == 1 ? 0 : 1;
    ACF_TRY(acf_check_probability(q, n->out[0]));
    ACF_PARALLEL(t->dev, count * 1024)
    for (int64_t i = 0; i < count; i++) {
        normal d = normal_at(n, i);
        n->out[0]->data[i] = acf_quantile_search(tail_of, &d, (double)q->data[i * step]);
    }
    return ACF_OK;
}

static acf_status sample_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = n->attr;
    int64_t count = acf_tensor_count(n->out[0]);
    ACF_PARALLEL(t->dev, count * 64)
    for (int64_t i = 0; i < count; i++) {
        double s = acf_clamp_scale((double)n->in[1]->data[i], a->lo, a->hi);
        double noise = acf_rng_normal(acf_draw_counter(&a->draw, ACF_STREAM_NORMAL, i));
        n->out[0]->data[i] = acf_real_from(acf_visible((double)n->in[0]->data[i]) + exp(s) * noise);
    }
    return ACF_OK;
}

const acf_op acf_op_gaussian_logp = {"gaussian_logp", ACF_OP_gaussian_logp, {logp_forward, logp_backward}};
const acf_op acf_op_gaussian_cdf = {"gaussian_cdf", ACF_OP_gaussian_cdf, {cdf_forward, NULL}};
const acf_op acf_op_gaussian_quantile = {"gaussian_quantile", ACF_OP_gaussian_quantile, {quantile_forward, NULL}};
const acf_op acf_op_gaussian_sample = {"gaussian_sample", ACF_OP_gaussian_sample, {sample_forward, NULL}};

/* The node of any of them, checked; NULL after a failure. other is z, q or, for a sample, NULL. one_for_all: it may
 * have a single element. */
static acf_node *checked(acf_tape *t, const acf_op *op, acf_tensor *mean, acf_tensor *log_scale, acf_tensor *other,
                         bool one_for_all, double lo, double hi) {
    char sm[ACF_SHAPE_TEXT], ss[ACF_SHAPE_TEXT], so[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_gaussian_attrs), 3, (acf_tensor *[]){mean, log_scale, other});
    if (!n) return NULL;
    bool fits = !other || acf_tensor_same_shape(other, mean) || (one_for_all && acf_tensor_count(other) == 1);
    if (!acf_tensor_same_shape(mean, log_scale) || !fits) {
        acf_reject(t, op, "mean is %s, log_scale is %s%s%s; expected one shape", acf_tensor_shape(mean, sm),
                   acf_tensor_shape(log_scale, ss), other ? (one_for_all ? ", q is " : ", z is ") : "",
                   other ? acf_tensor_shape(other, so) : "");
        return NULL;
    }
    if (!acf_scale_bounds_ok(lo, hi)) {
        acf_reject_value(t, op, ACF_BAD_SCALE_BOUNDS, lo, hi);
        return NULL;
    }
    *(acf_gaussian_attrs *)n->attr = (acf_gaussian_attrs){.lo = lo, .hi = hi};
    n->out[0] = acf_tensor_new(t, mean->ndim, mean->dim);
    n->out[0]->sub = mean->sub;
    return n;
}

acf_tensor *acf_gaussian_logp(acf_tape *t, acf_tensor *z, acf_tensor *mean, acf_tensor *log_scale, double lo,
                              double hi) {
    acf_node *n = checked(t, &acf_op_gaussian_logp, mean, log_scale, z, false, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_gaussian_cdf(acf_tape *t, acf_tensor *z, acf_tensor *mean, acf_tensor *log_scale, double lo,
                             double hi) {
    acf_node *n = checked(t, &acf_op_gaussian_cdf, mean, log_scale, z, false, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_gaussian_quantile(acf_tape *t, acf_tensor *q, acf_tensor *mean, acf_tensor *log_scale, double lo,
                                  double hi) {
    acf_node *n = checked(t, &acf_op_gaussian_quantile, mean, log_scale, q, true, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_gaussian_sample(acf_tape *t, acf_tensor *mean, acf_tensor *log_scale, double lo, double hi,
                                const acf_draw *d) {
    acf_node *n = checked(t, &acf_op_gaussian_sample, mean, log_scale, NULL, false, lo, hi);
    if (!n) return &t->empty;
    acf_gaussian_attrs *a = n->attr;
    a->draw = *d;
    if (mean->ndim != 1 || !acf_cells_resolve(&a->draw.at, mean))
        return acf_reject(t, &acf_op_gaussian_sample, ACF_NO_CELLS);
    return acf_node_run(t, n);
}
