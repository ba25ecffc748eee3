/* Gaussian mixtures: see mixture.h; formulas in docs/math.md, 8.
 *
 * Workload: T = 1e3 to 3e4 elements of K = 40 components, three exp each forward and two backward. All in double: in
 * float, the gaps between the components of a far-out value, differences of numbers like 5e7, would be lost, and the
 * responsibilities with them. Loops run over the components of one element. Elements are independent, so the bits do
 * not depend on the number of threads. */
#include "ops/mixture.h"

#include "base/vmath.h"
#include "ops/gaussian.h"

#define SIMD_SUM(x) ACF_PRAGMA(omp simd reduction(+ : x))

/* One element's components in double, padded with components of weight 0 to whole vectors: a scalar remainder loop
 * costs as much per component as a vector of eight. */
#define LANES 8
typedef struct mixture {
    _Alignas(64) double logit[ACF_MAX_COMPONENTS]; /* minus the largest: e^logit is a weight up to a factor */
    double mean[ACF_MAX_COMPONENTS];
    double scale[ACF_MAX_COMPONENTS]; /* log-scales as given, not clamped */
    int64_t K;                        /* components, padding included */
} mixture;

/* The largest of n = LANES, 2 LANES ... numbers. NaN are skipped; they show in the sums. Written by hand: a compiler
 * that must respect NaN does not vectorise a maximum. */
static double largest(const double *x, int64_t n) {
    double m[LANES], top = -(double)INFINITY;
    for (int j = 0; j < LANES; j++) m[j] = x[j];
    for (int64_t i = LANES; i < n; i += LANES) {
        ACF_SIMD
        for (int j = 0; j < LANES; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    }
    for (int j = 0; j < LANES; j++) top = m[j] > top ? m[j] : top;
    return top;
}

/* Reads p (3K) of one element. */
static void read_mixture(mixture *m, const acf_real *p, int64_t K) {
    m->K = acf_ceil_div(K, LANES) * LANES;
    for (int64_t k = 0; k < K; k++) m->logit[k] = (double)p[k];
    for (int64_t k = 0; k < K; k++) m->mean[k] = (double)p[K + k];
    for (int64_t k = 0; k < K; k++) m->scale[k] = (double)p[2 * K + k];
    for (int64_t k = K; k < m->K; k++) m->logit[k] = -(double)INFINITY, m->mean[k] = m->scale[k] = 0.0;
    double top = largest(m->logit, m->K);
    ACF_SIMD
    for (int64_t k = 0; k < m->K; k++) m->logit[k] -= top;
}

/* y (n) = e^(x - shift); returns the sum. y may be x. */
static double exponentials(double *y, const double *x, double shift, int64_t n) {
    double sum = 0.0;
    SIMD_SUM(sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = acf_exp_double(x[i] - shift);
        sum += y[i];
    }
    return sum;
}

/* w (m->K) = softmax of the logits. */
static void weights(double *w, const mixture *m) {
    double inv = 1.0 / exponentials(w, m->logit, 0.0, m->K);
    ACF_SIMD
    for (int64_t k = 0; k < m->K; k++) w[k] *= inv;
}

/* ---- log-density ------------------------------------------------------------------------------------------------ */

/* One element: log p = LSE_k(l_k - s_k - e_k²/2) - LSE_k(l_k) - log(2π)/2, l the logits; r (K) or NULL. */
static acf_real logp_one(acf_real *r, const mixture *m, double z, int64_t K, double lo, double hi) {
    double v[ACF_MAX_COMPONENTS], weight = 0.0;
    SIMD_SUM(weight)
    for (int64_t k = 0; k < m->K; k++) {
        double s = acf_clamp_scale(m->scale[k], lo, hi), e = acf_standardise(z, m->mean[k], acf_exp_double(-s));
        weight += acf_exp_double(m->logit[k]);
        v[k] = m->logit[k] - s - 0.5 * e * e;
    }
    double max = largest(v, m->K), sum = exponentials(v, v, max, m->K), inv = 1.0 / sum;
    for (int64_t k = 0; r && k < K; k++) r[k] = (acf_real)(v[k] * inv);
    return acf_real_from(max + log(sum / weight) - ACF_HALF_LOG_2PI);
}

void acf_mixture_logp_fwd_cpu(const acf_device *dev, acf_real *logp, acf_real *r, const acf_real *p, const acf_real *z,
                              int64_t T, int64_t K, double lo, double hi) {
    ACF_PARALLEL(dev, T * K * 8)
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        read_mixture(&m, p + i * 3 * K, K);
        logp[i] = logp_one(r ? r + i * K : NULL, &m, (double)z[i], K, lo, hi);
    }
}

/* d += g·x. The sum is rounded once, so that two gradients at the end of the range do not add up to infinity. */
static void add_scaled(acf_real *d, double g, const double *x, int64_t n) {
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) d[i] = acf_real_from((double)d[i] + g * x[i]);
}

/* One element: adds g·∂log p to dp (3K), unless NULL; returns ∂log p / ∂z. */
static double logp_grad_one(acf_real *dp, double g, const acf_real *r, const mixture *m, double z, int64_t K, double lo,
                            double hi) {
    double dlogit[ACF_MAX_COMPONENTS], dmean[ACF_MAX_COMPONENTS], dscale[ACF_MAX_COMPONENTS], rk[ACF_MAX_COMPONENTS];
    double pull = 0.0;
    for (int64_t k = 0; k < m->K; k++) rk[k] = k < K ? (double)r[k] : 0.0;
    SIMD_SUM(pull)
    for (int64_t k = 0; k < m->K; k++) {
        double raw = m->scale[k], inv = acf_exp_double(-acf_clamp_scale(raw, lo, hi));
        double e = acf_standardise(z, m->mean[k], inv);
        dmean[k] = rk[k] * e * inv;
        dscale[k] = raw < lo || raw > hi ? 0.0 : rk[k] * (e * e - 1.0);
        pull += dmean[k];
    }
    if (!dp) return -pull;
    weights(dlogit, m);
    ACF_SIMD
    for (int64_t k = 0; k < m->K; k++) dlogit[k] = rk[k] - dlogit[k];
    add_scaled(dp, g, dlogit, K);
    add_scaled(dp + K, g, dmean, K);
    add_scaled(dp + 2 * K, g, dscale, K);
    return -pull;
}

void acf_mixture_logp_bwd_cpu(const acf_device *dev, acf_real *dp, acf_real *dz, const acf_real *dlogp,
                              const acf_real *r, const acf_real *p, const acf_real *z, int64_t T, int64_t K, double lo,
                              double hi) {
    ACF_PARALLEL(dev, T * K * 8)
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        double g = (double)dlogp[i];
        read_mixture(&m, p + i * 3 * K, K);
        double slope = logp_grad_one(dp ? dp + i * 3 * K : NULL, g, r + i * K, &m, (double)z[i], K, lo, hi);
        if (dz) dz[i] = acf_real_from((double)dz[i] + g * slope);
    }
}

/* ---- mean ------------------------------------------------------------------------------------------------------- */

/* Fills w with the weights. */
static double mean_one(double *w, const mixture *m) {
    double sum = 0.0;
    weights(w, m);
    SIMD_SUM(sum)
    for (int64_t k = 0; k < m->K; k++) sum += w[k] * m->mean[k];
    return sum;
}

void acf_mixture_mean_fwd_cpu(const acf_device *dev, acf_real *mean, const acf_real *p, int64_t T, int64_t K) {
    ACF_PARALLEL(dev, T * K * 4)
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        double w[ACF_MAX_COMPONENTS];
        read_mixture(&m, p + i * 3 * K, K);
        mean[i] = acf_real_from(acf_visible(mean_one(w, &m)));
    }
}

void acf_mixture_mean_bwd_cpu(const acf_device *dev, acf_real *dp, const acf_real *dmean, const acf_real *p, int64_t T,
                              int64_t K) {
    ACF_PARALLEL(dev, T * K * 4)
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        double w[ACF_MAX_COMPONENTS], dlogit[ACF_MAX_COMPONENTS], g = (double)dmean[i];
        read_mixture(&m, p + i * 3 * K, K);
        double mean = mean_one(w, &m);
        ACF_SIMD
        for (int64_t k = 0; k < m.K; k++) dlogit[k] = w[k] * (m.mean[k] - mean);
        add_scaled(dp + i * 3 * K, g, dlogit, K);
        add_scaled(dp + i * 3 * K + K, g, w, K);
    }
}

/* ---- sample, CDF, quantile -------------------------------------------------------------------------------------- */

void acf_mixture_sample_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_draw *d, int64_t T,
                                int64_t K, double lo, double hi) {
    ACF_PARALLEL(dev, T * K * 4)
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        double w[ACF_MAX_COMPONENTS];
        read_mixture(&m, p + i * 3 * K, K);
        exponentials(w, m.logit, 0.0, m.K);
        int64_t k = acf_rng_categorical(acf_draw_counter(d, ACF_STREAM_COMPONENT, i), w, K);
        z[i] = (acf_real)NAN; /* with logits that are not finite no component can be chosen */
        if (k < 0) continue;
        double noise = acf_rng_normal(acf_draw_counter(d, ACF_STREAM_NORMAL, i));
        z[i] = acf_real_from(acf_visible(m.mean[k]) + exp(acf_clamp_scale(m.scale[k], lo, hi)) * noise);
    }
}

/* The constants for one element's tail probabilities. */
typedef struct tails {
    double w[ACF_MAX_COMPONENTS], inv[ACF_MAX_COMPONENTS]; /* weights, 1 / σ */
    const acf_real *mean;
    int64_t K;
} tails;

static void read_tails(tails *d, const acf_real *p, int64_t K, double lo, double hi) {
    mixture m;
    read_mixture(&m, p, K);
    weights(d->w, &m);
    for (int64_t k = 0; k < m.K; k++) d->inv[k] = acf_exp_double(-acf_clamp_scale(m.scale[k], lo, hi));
    d->mean = p + K;
    d->K = K;
}

static double tail_of(const void *distribution, double z, bool upper) {
    const tails *d = distribution;
    double sum = 0.0;
    for (int64_t k = 0; k < d->K; k++)
        sum += d->w[k] * acf_normal_tail((z - acf_visible((double)d->mean[k])) * d->inv[k], upper);
    return sum > 1.0 ? 1.0 : sum; /* the weights sum to 1 up to rounding */
}

void acf_mixture_cdf_fwd_cpu(const acf_device *dev, acf_real *cdf, const acf_real *p, const acf_real *z, int64_t T,
                             int64_t K, double lo, double hi) {
    ACF_PARALLEL(dev, T * K * 32)
    for (int64_t i = 0; i < T; i++) {
        tails d;
        read_tails(&d, p + i * 3 * K, K, lo, hi);
        cdf[i] = (acf_real)tail_of(&d, (double)z[i], false);
    }
}

void acf_mixture_quantile_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_real *q,
                                  int64_t q_step, int64_t T, int64_t K, double lo, double hi) {
    ACF_PARALLEL(dev, T * K * 1024)
    for (int64_t i = 0; i < T; i++) {
        tails d;
        read_tails(&d, p + i * 3 * K, K, lo, hi);
        z[i] = acf_quantile_search(tail_of, &d, (double)q[i * q_step]);
    }
}

/* The last component with a weight takes the rounding remainder of q. */
static double stratum_one(const mixture *m, double q, double lo, double hi) {
    double w[ACF_MAX_COMPONENTS], left = q;
    int64_t k = 0, last = 0;
    weights(w, m);
    for (int64_t i = 0; i < m->K; i++)
        if (w[i] > 0) last = i;
    for (; k < last && left >= w[k]; k++) left -= w[k];
    double within = fmin(fmax(left / w[k], 1e-12), 1 - 1e-12); /* keeps the quantile of a component finite */
    return acf_visible(m->mean[k]) + exp(acf_clamp_scale(m->scale[k], lo, hi)) * acf_normal_quantile(within, false);
}

void acf_mixture_stratum_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *p, const acf_real *q,
                                 int64_t q_step, int64_t T, int64_t K, double lo, double hi) {
    ACF_PARALLEL(dev, T * (K * 4 + 256))
    for (int64_t i = 0; i < T; i++) {
        mixture m;
        read_mixture(&m, p + i * 3 * K, K);
        z[i] = acf_real_from(stratum_one(&m, (double)q[i * q_step], lo, hi));
    }
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    acf_mixture_attrs *a = n->attr;
    int64_t T = n->out[0]->dim[0];
    if (n->save) a->r = acf_tape_reals(t, T * a->K);
    ACF_TRY(acf_tape_status(t));
    acf_mixture_logp_fwd_cpu(t->dev, n->out[0]->data, a->r, n->in[0]->data, n->in[1]->data, T, a->K, a->lo, a->hi);
    return ACF_OK;
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    acf_tensor *p = n->in[0], *z = n->in[1], *y = n->out[0];
    acf_real *dp = acf_grad(t, p), *dz = acf_grad(t, z);
    ACF_TRY(acf_tape_status(t));
    acf_mixture_logp_bwd_cpu(t->dev, dp, dz, y->grad, a->r, p->data, z->data, y->dim[0], a->K, a->lo, a->hi);
    return ACF_OK;
}

static acf_status mean_forward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    acf_mixture_mean_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->out[0]->dim[0], a->K);
    return ACF_OK;
}

static acf_status mean_backward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    acf_real *dp = acf_grad(t, n->in[0]);
    if (!dp) return acf_tape_status(t);
    acf_mixture_mean_bwd_cpu(t->dev, dp, n->out[0]->grad, n->in[0]->data, n->out[0]->dim[0], a->K);
    return ACF_OK;
}

static acf_status sample_forward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    acf_mixture_sample_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, &a->draw, n->out[0]->dim[0], a->K, a->lo,
                               a->hi);
    return ACF_OK;
}

static acf_status cdf_forward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    acf_mixture_cdf_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, n->out[0]->dim[0], a->K, a->lo,
                            a->hi);
    return ACF_OK;
}

static acf_status quantile_forward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    const acf_tensor *q = n->in[1];
    ACF_TRY(acf_check_probability(q, n->out[0]));
    acf_mixture_quantile_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, q->data, acf_tensor_count(q) == 1 ? 0 : 1,
                                 n->out[0]->dim[0], a->K, a->lo, a->hi);
    return ACF_OK;
}

static acf_status stratum_forward(acf_tape *t, acf_node *n) {
    const acf_mixture_attrs *a = n->attr;
    const acf_tensor *q = n->in[1];
    ACF_TRY(acf_check_probability(q, n->out[0]));
    acf_mixture_stratum_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, q->data, acf_tensor_count(q) == 1 ? 0 : 1,
                                n->out[0]->dim[0], a->K, a->lo, a->hi);
    return ACF_OK;
}

const acf_op acf_op_mixture_logp = {"mixture_logp", ACF_OP_mixture_logp, {logp_forward, logp_backward}};
const acf_op acf_op_mixture_mean = {"mixture_mean", ACF_OP_mixture_mean, {mean_forward, mean_backward}};
const acf_op acf_op_mixture_sample = {"mixture_sample", ACF_OP_mixture_sample, {sample_forward, NULL}};
const acf_op acf_op_mixture_cdf = {"mixture_cdf", ACF_OP_mixture_cdf, {cdf_forward, NULL}};
const acf_op acf_op_mixture_quantile = {"mixture_quantile", ACF_OP_mixture_quantile, {quantile_forward, NULL}};
const acf_op acf_op_mixture_stratum = {"mixture_stratum", ACF_OP_mixture_stratum, {stratum_forward, NULL}};

/* True if x has one value for each row of p and the same layout. */
static bool one_each(const acf_tensor *x, const acf_tensor *p) {
    return x->ndim == 1 && x->dim[0] == p->dim[0] && x->sub == p->sub;
}

/* The node of any of these operations, after checks; NULL after a failure. other is z, q or NULL; one_for_all allows it
 * a single element. */
static acf_node *checked(acf_tape *t, const acf_op *op, acf_tensor *p, acf_tensor *other, bool one_for_all, int64_t K,
                         double lo, double hi) {
    char sp[ACF_SHAPE_TEXT], so[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_mixture_attrs), 2, (acf_tensor *[]){p, other});
    if (!n) return NULL;
    if (K < 1 || K > ACF_MAX_COMPONENTS) {
        acf_reject_value(t, op, "K is %lld; expected 1 to %d components", (long long)K, ACF_MAX_COMPONENTS);
    } else if (p->ndim != 2 || p->dim[1] != 3 * K) {
        acf_reject(t, op, "p is %s; expected (T, %lld), that is 3K", acf_tensor_shape(p, sp), (long long)(3 * K));
    } else if (other && !one_each(other, p) && !(one_for_all && acf_tensor_count(other) == 1)) {
        acf_reject(t, op, "p is %s and %c is %s; expected one for each row of p", acf_tensor_shape(p, sp),
                   one_for_all ? 'q' : 'z', acf_tensor_shape(other, so));
    } else if (!acf_scale_bounds_ok(lo, hi)) {
        acf_reject_value(t, op, ACF_BAD_SCALE_BOUNDS, lo, hi);
    } else {
        *(acf_mixture_attrs *)n->attr = (acf_mixture_attrs){.K = K, .lo = lo, .hi = hi};
        n->out[0] = acf_tensor_new(t, 1, p->dim);
        n->out[0]->sub = p->sub;
        return n;
    }
    return NULL;
}

acf_tensor *acf_mixture_logp(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K, double lo, double hi) {
    acf_node *n = checked(t, &acf_op_mixture_logp, p, z, false, K, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_mixture_mean(acf_tape *t, acf_tensor *p, int64_t K) {
    acf_node *n = checked(t, &acf_op_mixture_mean, p, NULL, false, K, 0.0, 0.0);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_mixture_cdf(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K, double lo, double hi) {
    acf_node *n = checked(t, &acf_op_mixture_cdf, p, z, false, K, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_mixture_quantile(acf_tape *t, acf_tensor *p, acf_tensor *q, int64_t K, double lo, double hi) {
    acf_node *n = checked(t, &acf_op_mixture_quantile, p, q, true, K, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_mixture_stratum(acf_tape *t, acf_tensor *p, acf_tensor *q, int64_t K, double lo, double hi) {
    acf_node *n = checked(t, &acf_op_mixture_stratum, p, q, true, K, lo, hi);
    return n ? acf_node_run(t, n) : &t->empty;
}

acf_tensor *acf_mixture_sample(acf_tape *t, acf_tensor *p, int64_t K, double lo, double hi, const acf_draw *d) {
    acf_node *n = checked(t, &acf_op_mixture_sample, p, NULL, false, K, lo, hi);
    if (!n) return &t->empty;
    acf_mixture_attrs *a = n->attr;
    a->draw = *d;
    if (!acf_cells_resolve(&a->draw.at, p)) return acf_reject(t, &acf_op_mixture_sample, ACF_NO_CELLS);
    return acf_node_run(t, n);
}
