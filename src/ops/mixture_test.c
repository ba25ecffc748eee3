/* Gaussian mixtures: cases for the harness, identities of a distribution, and long double references far out. */
#include "ops/mixture.h"

#include "harness/lab.h"
#include "ops/gaussian.h"

#include <math.h>
#include <stdlib.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

/* Bounds of the log-scale by variant. Leaves stay away from 0, so a bound at 0 clamps half of the values, and no finite
 * difference straddles it. */
static const double bounds[][2] = {{-3, 3}, {0, 3}, {-3, 0}, {-3, 3}};
enum { INSIDE, CLAMPED_BELOW, CLAMPED_ABOVE, SINGLE };

static double lo_of(const acf_lab *l) { return bounds[l->c->variant][0]; }
static double hi_of(const acf_lab *l) { return bounds[l->c->variant][1]; }
/* Neither a multiple of the vector length nor below it; 1 and, in the threaded run, 40. */
static int64_t K_of(const acf_lab *l) { return l->c->variant == SINGLE ? 1 : l->big ? 40 : 11; }

static acf_tensor *leaf_p(acf_lab *l) { return acf_leaf_packed(l, "p", -1.5, 1.5, 3 * K_of(l)); }

/* Component k of element i: its weight, mean and scale, by the plain formula. */
static void component(const acf_lab *l, int64_t i, int64_t k, double *w, double *mean, double *sigma) {
    int64_t K = K_of(l);
    const acf_real *p = l->leaf[0].value + i * 3 * K;
    double sum = 0;
    for (int64_t j = 0; j < K; j++) sum += exp((double)p[j]);
    *w = exp((double)p[k]) / sum;
    *mean = (double)p[K + k];
    *sigma = exp(fmin(fmax((double)p[2 * K + k], lo_of(l)), hi_of(l)));
}

static double density(const acf_lab *l, int64_t i, double z) {
    double sum = 0, w, m, s;
    for (int64_t k = 0; k < K_of(l); k++) {
        component(l, i, k, &w, &m, &s);
        sum += w * exp(-(z - m) * (z - m) / (2 * s * s)) / (s * sqrt(2 * acos(-1)));
    }
    return sum;
}

static double cumulative(const acf_lab *l, int64_t i, double z) {
    double sum = 0, w, m, s;
    for (int64_t k = 0; k < K_of(l); k++) {
        component(l, i, k, &w, &m, &s);
        sum += w * (1 + erf((z - m) / s / sqrt(2))) / 2;
    }
    return sum;
}

static void build_logp(acf_lab *l) {
    acf_tensor *p = leaf_p(l), *z = acf_leaf_packed(l, "z", -3, 3, 0);
    acf_result(l, acf_mixture_logp(l->t, p, z, K_of(l), lo_of(l), hi_of(l)));
}

static void naive_logp(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->u->T; i++) out[0][i] = log(density(l, i, (double)l->leaf[1].value[i]));
}

static void build_mean(acf_lab *l) { acf_result(l, acf_mixture_mean(l->t, leaf_p(l), K_of(l))); }

static void naive_mean(const acf_lab *l, double *const *out) {
    double w, m, s;
    for (int64_t i = 0; i < l->u->T; i++)
        for (int64_t k = 0; k < K_of(l); k++) component(l, i, k, &w, &m, &s), out[0][i] += w * m;
}

/* The density is evaluated at the mean, so parameters are used twice and gradients must add up. The second density has
 * constant parameters and needs dz alone. */
static void build_chain(acf_lab *l) {
    acf_tensor *p = leaf_p(l), *mean = acf_mixture_mean(l->t, p, K_of(l));
    acf_tensor *fixed = acf_leaf_fixed(l, "fixed", -1, 1, 2, (int64_t[]){l->u ? l->u->T : 0, 3});
    acf_result(l, acf_mixture_logp(l->t, p, mean, K_of(l), -3, 3));
    acf_result(l, acf_mixture_logp(l->t, acf_tensor_as_packed(l->t, fixed, l->u), mean, 1, -3, 3));
}

static void build_sample(acf_lab *l) {
    acf_result(l, acf_mixture_sample(l->t, leaf_p(l), K_of(l), lo_of(l), hi_of(l), &(acf_draw){.seed = 9, .draw = 4}));
}

static void naive_sample(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->u->T; i++) {
        acf_rng_counter at = {.seed = 9,
                              .row = (uint64_t)l->u->row_of[i],
                              .stream = ACF_STREAM_COMPONENT,
                              .column = (uint32_t)l->u->col_of[i],
                              .draw = 4};
        double u = acf_rng_uniform(at), w, m = 0, s = 0;
        for (int64_t k = 0; k < K_of(l) && u >= 0; k++) component(l, i, k, &w, &m, &s), u -= w;
        at.stream = ACF_STREAM_NORMAL;
        out[0][i] = m + s * acf_rng_normal(at);
    }
}

static void build_cdf(acf_lab *l) {
    acf_tensor *p = leaf_p(l), *z = acf_leaf_packed(l, "z", -3, 3, 0);
    acf_result(l, acf_mixture_cdf(l->t, p, z, K_of(l), lo_of(l), hi_of(l)));
}

static void naive_cdf(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->u->T; i++) out[0][i] = cumulative(l, i, (double)l->leaf[1].value[i]);
}

static void build_quantile(acf_lab *l) {
    acf_tensor *p = leaf_p(l);
    acf_result(l, acf_mixture_quantile(l->t, p, acf_leaf_packed(l, "q", 0.01, 0.99, 0), K_of(l), lo_of(l), hi_of(l)));
    acf_result(l, acf_mixture_quantile(l->t, p, acf_leaf(l, "one q", 0.6, 0.9, 0, NULL), K_of(l), lo_of(l), hi_of(l)));
}

static void naive_quantile(const acf_lab *l, double *const *out) {
    for (int j = 0; j < 2; j++)
        for (int64_t i = 0; i < l->u->T; i++) {
            double a = -60, b = 60, q = (double)l->leaf[1 + j].value[j ? 0 : i];
            for (int n = 0; n < 100; n++) *(cumulative(l, i, (a + b) / 2) < q ? &a : &b) = (a + b) / 2;
            out[j][i] = (a + b) / 2;
        }
}

static void build_stratum(acf_lab *l) {
    acf_tensor *p = leaf_p(l);
    acf_result(l, acf_mixture_stratum(l->t, p, acf_leaf_packed(l, "q", 0.01, 0.99, 0), K_of(l), lo_of(l), hi_of(l)));
    acf_result(l, acf_mixture_stratum(l->t, p, acf_leaf(l, "one q", 0.6, 0.9, 0, NULL), K_of(l), lo_of(l), hi_of(l)));
}

/* The component that q falls into, then by bisection the point below which that component has the rest of q. */
static void naive_stratum(const acf_lab *l, double *const *out) {
    for (int j = 0; j < 2; j++)
        for (int64_t i = 0; i < l->u->T; i++) {
            double left = (double)l->leaf[1 + j].value[j ? 0 : i], w = 1, m = 0, s = 1, a = -9, b = 9;
            for (int64_t k = 0; k < K_of(l); k++) {
                component(l, i, k, &w, &m, &s);
                if (left < w) break;
                left -= w;
            }
            for (int n = 0; n < 100; n++) *(0.5 * erfc(-(a + b) / 2 / sqrt(2)) < left / w ? &a : &b) = (a + b) / 2;
            out[j][i] = m + s * a;
        }
}

static const acf_case cases[] = {
    {"logp", build_logp, naive_logp, .variant = INSIDE},
    {"logp, clamped below", build_logp, naive_logp, .variant = CLAMPED_BELOW},
    {"logp, clamped above", build_logp, naive_logp, .variant = CLAMPED_ABOVE},
    {"logp, one component", build_logp, naive_logp, .variant = SINGLE, .big_N = 2000, .big_D = 20},
    /* the mean does not read the scales, where the harness may put its NaN */
    {"mean", build_mean, naive_mean, .variant = INSIDE, .hides_nonfinite = true},
    {"mean, one component", build_mean, naive_mean, .variant = SINGLE, .hides_nonfinite = true, .big_N = 2000,
     .big_D = 20},
    {"chain", build_chain, NULL, .variant = INSIDE},
    /* a sample reads one component only, which need not be the one with the NaN */
    {"sample", build_sample, naive_sample, .variant = CLAMPED_BELOW, .no_grad = true, .hides_nonfinite = true},
    {"cdf", build_cdf, naive_cdf, .variant = CLAMPED_BELOW, .no_grad = true},
    /* a NaN probability is refused like one outside (0, 1) */
    {"stratum", build_stratum, naive_stratum, .variant = CLAMPED_ABOVE, .no_grad = true, .may_fail_nonfinite = true,
     .hides_nonfinite = true},
    {"quantile", build_quantile, naive_quantile, .variant = CLAMPED_ABOVE, .no_grad = true, .may_fail_nonfinite = true},
};
ACF_CASES(mixture, cases)

/* ---- a distribution --------------------------------------------------------------------------------------------- */

/* Four shapes: one Gaussian, overlapping, spiky (scales from 0.02 to 3), far apart. */
#define MAX_K 5
typedef struct shape {
    int64_t K;
    double logit[MAX_K], mean[MAX_K], scale[MAX_K];
} shape;

static const shape shapes[] = {
    {1, {0.3}, {-0.7}, {0.4}},
    {3, {0.5, -1, 0.2}, {-1, 0.3, 2}, {-0.5, 0.3, -0.2}},
    {5, {1, -2, 0, 3, 1}, {0, 0.5, -3, 4, -1}, {-2, -4, 1, 0.2, -3}},
    {2, {-1, 1}, {-30, 30}, {0.5, -1}},
};
#define EACH_SHAPE(s) for (const shape *s = shapes; s < shapes + sizeof shapes / sizeof shapes[0]; s++)
#define LO (-7.0)
#define HI 7.0

/* Numbers per function call of a test. */
enum { MOST = 60001 };
static acf_real params[MOST * 3 * MAX_K], point[MOST], value[MOST];

/* n copies of the shape's parameters. */
static const acf_real *copies(const shape *s, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < s->K; k++) {
            acf_real *p = params + i * 3 * s->K;
            p[k] = ACF_R(s->logit[k]), p[s->K + k] = ACF_R(s->mean[k]), p[2 * s->K + k] = ACF_R(s->scale[k]);
        }
    return params;
}

static double lowest(const shape *s, double sigmas) {
    double z = INFINITY;
    for (int64_t k = 0; k < s->K; k++) z = fmin(z, s->mean[k] - sigmas * exp(s->scale[k]));
    return z;
}

static double highest(const shape *s, double sigmas) {
    double z = -INFINITY;
    for (int64_t k = 0; k < s->K; k++) z = fmax(z, s->mean[k] + sigmas * exp(s->scale[k]));
    return z;
}

static void open_lab(acf_lab *l) { acf_lab_open(l, 2, 1, 1, ACF_MASK_ALL, 1); }

/* The trapezoid rule on a wide grid: ∫ p = 1, ∫ z p = mean, ∫ up to b of p = CDF at b. */
static void density_mean_and_cdf_agree(void **state) {
    (void)state;
    const double tol = sizeof(acf_real) == 8 ? 1e-9 : 1e-4;
    static acf_real logp[MOST];
    acf_lab l;
    open_lab(&l);
    EACH_SHAPE(s) {
        int64_t n = MOST, K = s->K;
        double a = lowest(s, 12), h = (highest(s, 12) - a) / (double)(n - 1), sum = 0, first = 0, last = 0;
        for (int64_t i = 0; i < n; i++) point[i] = ACF_R(a + (double)i * h);
        acf_mixture_logp_fwd_cpu(l.dev, logp, NULL, copies(s, n), point, n, K, LO, HI);
        acf_mixture_cdf_fwd_cpu(l.dev, value, params, point, n, K, LO, HI);
        for (int64_t i = 0; i < n; i++) {
            double density_here = exp((double)logp[i]);
            double below = sum + h * (last + density_here) / 2;
            if (i % 1000 == 0 && i) acf_assert_close((double)value[i], below, fmax(tol, 1e-6), "CDF");
            sum = i ? below : 0, first += h * (double)point[i] * density_here, last = density_here;
        }
        acf_mixture_mean_fwd_cpu(l.dev, value, params, 1, K);
        acf_assert_close(sum, 1, tol, "integral");
        acf_assert_close(first, (double)value[0], 10 * tol, "mean");
    }
    acf_lab_close(&l);
}

/* CDF' = density, by central differences of fourth order. */
static void cdf_slope_is_density(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("finite differences run in double");
    acf_lab l;
    open_lab(&l);
    EACH_SHAPE(s) {
        copies(s, 4);
        for (int i = 0; i < 60; i++) {
            double z = lowest(s, 4) + (highest(s, 4) - lowest(s, 4)) * (i + 0.5) / 60, h = 2e-4;
            acf_real at[4] = {ACF_R(z - 2 * h), ACF_R(z - h), ACF_R(z + h), ACF_R(z + 2 * h)}, f[4], zr = ACF_R(z),
                     logp;
            acf_mixture_cdf_fwd_cpu(l.dev, f, params, at, 4, s->K, LO, HI);
            acf_mixture_logp_fwd_cpu(l.dev, &logp, NULL, params, &zr, 1, s->K, LO, HI);
            double slope = (double)(f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h);
            acf_assert_close(slope, exp((double)logp), 1e-7, "slope");
        }
    }
    acf_lab_close(&l);
}

/* quantile(cdf(z)) = z up to what the rounding of the probability costs, cdf(quantile(q)) = q. */
static void quantile_inverts_cdf(void **state) {
    (void)state;
    enum { n = 199 };
    const double eps = (double)ACF_REAL_EPS;
    acf_real q[n], z[n], back[n], logp[n];
    acf_lab l;
    open_lab(&l);
    EACH_SHAPE(s) {
        int64_t K = s->K;
        for (int i = 0; i < n; i++) q[i] = ACF_R((i + 1) / (n + 1.0));
        acf_mixture_quantile_fwd_cpu(l.dev, z, copies(s, n), q, 1, n, K, LO, HI);
        acf_mixture_cdf_fwd_cpu(l.dev, back, params, z, n, K, LO, HI);
        acf_mixture_logp_fwd_cpu(l.dev, logp, NULL, params, z, n, K, LO, HI);
        for (int i = 0; i < n; i++) {
            double reach = exp((double)logp[i]) * eps * fabs((double)z[i]); /* how far one ulp of z moves the CDF */
            assert_true(fabs((double)back[i] - (double)q[i]) <= 2 * eps + 2 * reach);
            if (i) assert_true(z[i] >= z[i - 1]);
        }
        acf_mixture_quantile_fwd_cpu(l.dev, point, params, back, 1, n, K, LO, HI);
        for (int i = 0; i < n; i++)
            assert_true(fabs((double)point[i] - (double)z[i]) <=
                        4 * eps * (fabs((double)z[i]) + exp(-(double)logp[i])));
    }
    acf_lab_close(&l);
}

/* Evenly spaced levels give a sample of the mixture that is much more even than a random one: the two distribution
 * functions differ by no more than a few of n points. */
static void strata_follow_the_cdf(void **state) {
    (void)state;
    enum { n = 400 };
    acf_real q[n], z[n], cdf[n];
    acf_lab l;
    open_lab(&l);
    EACH_SHAPE(s) {
        for (int i = 0; i < n; i++) q[i] = ACF_R((i + 0.5) / n);
        acf_mixture_stratum_fwd_cpu(l.dev, z, copies(s, n), q, 1, n, s->K, LO, HI);
        acf_mixture_cdf_fwd_cpu(l.dev, cdf, params, z, n, s->K, LO, HI);
        for (int i = 0; i < n; i++) {
            double below = 0;
            for (int k = 0; k < n; k++) below += (cdf[k] < cdf[i]) + 0.5 * (cdf[k] == cdf[i]);
            assert_true(fabs(below / n - (double)cdf[i]) <= ((double)s->K + 1) / n);
        }
    }
    acf_lab_close(&l);
}

/* Far in either tail the CDF (or 1 - CDF) at the quantile is q up to the last bit of z. */
static void quantile_is_accurate_in_the_tails(void **state) {
    (void)state;
    const double eps = (double)ACF_REAL_EPS, tail[] = {1e-4, 1e-12, 1e-30};
    acf_lab l;
    open_lab(&l);
    EACH_SHAPE(s) {
        copies(s, 1);
        for (int i = 0; i < 6; i++) {
            bool upper = i % 2;
            double side = upper ? fmax(tail[i / 2], 2 * eps) : tail[i / 2];
            acf_real q = ACF_R(upper ? 1 - side : side), z;
            acf_mixture_quantile_fwd_cpu(l.dev, &z, params, &q, 0, 1, s->K, LO, HI);
            long double sum = 0, f = 0, want = upper ? 1 - (long double)q : (long double)q, steep = 0;
            for (int64_t k = 0; k < s->K; k++) sum += expl((long double)params[k]);
            for (int64_t k = 0; k < s->K; k++) {
                long double sigma = expl((long double)params[2 * s->K + k]);
                long double e = ((long double)z - (long double)params[s->K + k]) / sigma;
                f += expl((long double)params[k]) / sum * erfcl((upper ? e : -e) / sqrtl(2)) / 2;
                steep = fmaxl(steep, 1 / sigma);
            }
            /* one ulp of z changes the tail by the factor 1 + hazard·ulp, hazard < 20 σ⁻¹ this far out */
            assert_true(fabsl(f / want - 1) <= 4 * (long double)eps * (1 + 20 * steep * fabsl((long double)z)));
        }
    }
    acf_lab_close(&l);
}

static int by_value(const void *a, const void *b) {
    acf_real x = *(const acf_real *)a, y = *(const acf_real *)b;
    return (x > y) - (x < y);
}

/* Mean and variance within 4 standard errors, Kolmogorov-Smirnov at 0.1 %. */
static void samples_follow_the_cdf(void **state) {
    (void)state;
    enum { n = 20000 };
    static int32_t row[n], column[n];
    acf_lab l;
    open_lab(&l);
    for (int i = 0; i < n; i++) row[i] = i, column[i] = 3;
    EACH_SHAPE(s) {
        acf_draw d = {.seed = 2024, .at = {row, column}};
        acf_mixture_sample_fwd_cpu(l.dev, point, copies(s, n), &d, n, s->K, LO, HI);
        double w = 0, mean = 0, square = 0, seen = 0, spread = 0, ks = 0;
        for (int64_t k = 0; k < s->K; k++) {
            double weight = exp(s->logit[k]), variance = exp(2 * s->scale[k]);
            w += weight, mean += weight * s->mean[k], square += weight * (s->mean[k] * s->mean[k] + variance);
        }
        mean /= w, square = square / w - mean * mean;
        for (int i = 0; i < n; i++) seen += (double)point[i] / n;
        for (int i = 0; i < n; i++) spread += pow((double)point[i] - seen, 2) / (n - 1);
        assert_true(fabs(seen - mean) <= 4 * sqrt(square / n));
        assert_true(fabs(spread / square - 1) <= 4 * sqrt(5.0 / n)); /* kurtosis of these shapes is below 6 */
        qsort(point, n, sizeof point[0], by_value);
        acf_mixture_cdf_fwd_cpu(l.dev, value, params, point, n, s->K, LO, HI);
        for (int i = 0; i < n; i++)
            ks = fmax(ks, fmax((double)value[i] - (double)i / n, (i + 1.0) / n - (double)value[i]));
        assert_true(ks * sqrt(n) < 1.95);
    }
    acf_lab_close(&l);
}

/* With one component everything equals the Gaussian: values, gradients, CDF, quantile, and the same samples bit for
 * bit. */
static void one_component_is_the_gaussian(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 5, 4, ACF_MASK_RANDOM, 3);
    acf_lab_begin(&l, true);
    int64_t T = l.u->T;
    acf_tensor *p = acf_leaf_packed(&l, "p", -1, 1, 3), *z = acf_leaf_packed(&l, "z", -2, 2, 0);
    acf_tensor *m = acf_tensor_packed(l.t, l.u, 0), *s = acf_tensor_packed(l.t, l.u, 0),
               *q = acf_tensor_packed(l.t, l.u, 0);
    for (int64_t i = 0; i < T; i++)
        m->data[i] = p->data[3 * i + 1], s->data[i] = p->data[3 * i + 2], q->data[i] = ACF_R(0.3);
    acf_draw d = {.seed = 8, .draw = 1};
    acf_tensor *pairs[4][2] = {
        {acf_mixture_logp(l.t, p, z, 1, -7, 7), acf_gaussian_logp(l.t, z, m, s, -7, 7)},
        {acf_mixture_cdf(l.t, p, z, 1, -7, 7), acf_gaussian_cdf(l.t, z, m, s, -7, 7)},
        {acf_mixture_quantile(l.t, p, q, 1, -7, 7), acf_gaussian_quantile(l.t, q, m, s, -7, 7)},
        {acf_mixture_sample(l.t, p, 1, -7, 7, &d), acf_gaussian_sample(l.t, m, s, -7, 7, &d)},
    };
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int k = 0; k < 4; k++)
        for (int64_t i = 0; i < T; i++)
            acf_assert_close((double)pairs[k][0]->data[i], (double)pairs[k][1]->data[i], 4 * (double)ACF_REAL_EPS,
                             "pair");
    assert_memory_equal(pairs[3][0]->data, pairs[3][1]->data, (size_t)T * sizeof(acf_real));
    acf_lab_close(&l);
}

/* Adding a number to all logits changes nothing: exactly, as long as the sums are exact. */
static void logits_may_be_shifted(void **state) {
    (void)state;
    acf_lab l;
    open_lab(&l);
    const shape *s = &shapes[2];
    acf_real z[2] = {ACF_R(0.3), ACF_R(-2.1)}, a[2], b[2], mean[2], moved[2], r[2 * MAX_K], r_moved[2 * MAX_K];
    acf_mixture_logp_fwd_cpu(l.dev, a, r, copies(s, 2), z, 2, s->K, LO, HI);
    acf_mixture_mean_fwd_cpu(l.dev, mean, params, 2, s->K);
    for (int64_t k = 0; k < s->K; k++) params[k] += 1024, params[3 * s->K + k] -= 4096;
    acf_mixture_logp_fwd_cpu(l.dev, b, r_moved, params, z, 2, s->K, LO, HI);
    acf_mixture_mean_fwd_cpu(l.dev, moved, params, 2, s->K);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(r, r_moved, 2 * (size_t)s->K * sizeof r[0]);
    assert_memory_equal(mean, moved, sizeof mean);
    acf_lab_close(&l);
}

/* ---- far out ---------------------------------------------------------------------------------------------------- */

static long double clip(long double x) {
    return fminl(fmaxl(x, -(long double)ACF_REAL_MAX), (long double)ACF_REAL_MAX);
}

static void close_to(acf_real a, long double b, const char *what) {
    assert_true(isfinite(a));
    acf_assert_close((double)((long double)a / (1 + fabsl(b))), (double)(b / (1 + fabsl(b))), 16 * (double)ACF_REAL_EPS,
                     what);
}

/* Value and all gradients of one element in long double, which has a wider range of exponents. */
static void check_against_long_double(acf_lab *l, const acf_real *p, acf_real z, int64_t K, double lo, double hi) {
    acf_real y, r[MAX_K], dp[3 * MAX_K], dz = 2, g = ACF_R(-1.5), mean, dmean[3 * MAX_K];
    for (int64_t k = 0; k < 3 * K; k++) dp[k] = dmean[k] = 2;
    acf_mixture_logp_fwd_cpu(l->dev, &y, r, p, &z, 1, K, lo, hi);
    acf_mixture_logp_bwd_cpu(l->dev, dp, &dz, &g, r, p, &z, 1, K, lo, hi);
    acf_mixture_mean_fwd_cpu(l->dev, &mean, p, 1, K);
    acf_mixture_mean_bwd_cpu(l->dev, dmean, &g, p, 1, K);
    long double top = -INFINITY, best = -INFINITY, all = 0, sum = 0, slope = 0, average = 0, c[MAX_K], e[MAX_K],
                sigma[MAX_K];
    for (int64_t k = 0; k < K; k++) top = fmaxl(top, (long double)p[k]);
    for (int64_t k = 0; k < K; k++) {
        long double s = fminl(fmaxl((long double)p[2 * K + k], lo), hi);
        sigma[k] = expl(s), e[k] = ((long double)z - (long double)p[K + k]) / sigma[k];
        c[k] = (long double)p[k] - top - s - e[k] * e[k] / 2;
        all += expl((long double)p[k] - top), best = fmaxl(best, c[k]);
    }
    for (int64_t k = 0; k < K; k++) sum += expl(c[k] - best);
    for (int64_t k = 0; k < K; k++) average += expl((long double)p[k] - top) / all * (long double)p[K + k];
    close_to(y, clip(best + logl(sum) - logl(all) - 0.5L * logl(2 * acosl(-1))), "value");
    close_to(mean, average, "mean");
    for (int64_t k = 0; k < K; k++) {
        long double rk = expl(c[k] - best) / sum, w = expl((long double)p[k] - top) / all,
                    s = (long double)p[2 * K + k];
        slope += rk * e[k] / sigma[k];
        close_to(dp[k], clip(2 - 1.5L * (rk - w)), "dlogit");
        close_to(dp[K + k], clip(2 - 1.5L * rk * e[k] / sigma[k]), "dmean");
        close_to(dp[2 * K + k], s < lo || s > hi ? 2 : clip(2 - 1.5L * rk * (e[k] * e[k] - 1)), "dscale");
        close_to(dmean[k], clip(2 - 1.5L * w * ((long double)p[K + k] - average)), "mean: dlogit");
        close_to(dmean[K + k], 2 - 1.5L * w, "mean: dmean");
        assert_true(dmean[2 * K + k] == 2);
    }
    close_to(dz, clip(2 + 1.5L * slope), "dz");
}

static void stays_finite_far_out(void **state) {
    (void)state;
    static const double sets[][9] = {
        /* three logits, three means, three log-scales */
        {0, 1, -1, 0, 1, -1, -7, 0, 2},    /* the widest component dominates */
        {1e4, -1e4, 0, -3, 0, 3, 0, 0, 0}, /* one component has all the weight */
        {-1e4, -1e4, 1e4, 1e30, 0, -1e30, -30, -30, -30},
        {0, 0, 0, 0, 0, 1e-6, -30, -20, -7},   /* nested spikes */
        {1e30, -1e30, 5, 2, 2, 2, -50, 50, 1}, /* outside the bounds */
    };
    static const double zs[] = {0, 1e-13, 1e-6, -2, 7000, 1e30, -1e30};
    acf_lab l;
    open_lab(&l);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (size_t j = 0; j < sizeof zs / sizeof zs[0]; j++) {
            acf_real p[9];
            for (int k = 0; k < 9; k++) p[k] = ACF_R(sets[i][k]);
            check_against_long_double(&l, p, ACF_R(zs[j]), 3, -30, 20);
        }
    acf_lab_close(&l);
}

/* The largest logit and the nearest component may come last, after the first vector of components. */
static void looks_at_every_component(void **state) {
    (void)state;
    enum { K = 21 };
    acf_lab l;
    open_lab(&l);
    for (int last = 0; last < K; last++) {
        acf_real p[3 * K] = {0}, z = ACF_R(0.5), y, r[K], mean;
        for (int k = 0; k < K; k++) p[K + k] = ACF_R(1e6); /* the others are too far away to count */
        p[last] = 2000, p[K + last] = 0;
        acf_mixture_logp_fwd_cpu(l.dev, &y, r, p, &z, 1, K, LO, HI);
        acf_mixture_mean_fwd_cpu(l.dev, &mean, p, 1, K);
        acf_assert_close((double)y, -0.125 - 0.5 * log(2 * acos(-1)), (double)ACF_REAL_EPS, "value");
        assert_true(mean == 0 && r[last] == 1);
    }
    acf_lab_close(&l);
}

/* ---- kept arrays, refused arguments ------------------------------------------------------------------------------ */

/* Scoring does not keep responsibilities: it takes T·K numbers less than a recorded step. */
static void keeps_nothing_without_recording(void **state) {
    (void)state;
    size_t used[2];
    acf_lab l;
    acf_lab_open(&l, 1, 50, 4, ACF_MASK_ALL, 1);
    for (int record = 0; record < 2; record++) {
        acf_lab_begin(&l, record);
        acf_tensor *p = acf_leaf_packed(&l, "p", -1, 1, 120), *z = acf_leaf_packed(&l, "z", -1, 1, 0);
        size_t before = acf_arena_used(l.t->mem);
        acf_mixture_logp(l.t, p, z, 40, -7, 7);
        used[record] = acf_arena_used(l.t->mem) - before;
    }
    assert_true(used[1] - used[0] >= 50 * 4 * 40 * sizeof(acf_real));
    acf_lab_close(&l);
}

static void expect(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    if (sentence) assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_mixture_logp(l.t, acf_tensor_packed(l.t, l.u, 8), acf_tensor_packed(l.t, l.u, 0), 3, -1, 1);
    expect(&l, ACF_ESHAPE, "mixture_logp: p is (6 packed, 8); expected (T, 9), that is 3K");
    acf_mixture_logp(l.t, acf_tensor_packed(l.t, l.u, 9), acf_tensor_new(l.t, 1, (int64_t[]){6}), 3, -1, 1);
    expect(&l, ACF_ESHAPE, "mixture_logp: p is (6 packed, 9) and z is (6); expected one for each row of p");
    acf_mixture_mean(l.t, acf_tensor_packed(l.t, l.u, 0), 0);
    expect(&l, ACF_EUSAGE, "mixture_mean: K is 0; expected 1 to 1024 components");
    acf_mixture_mean(l.t, acf_tensor_packed(l.t, l.u, 3 * 1025), 1025);
    expect(&l, ACF_EUSAGE, NULL);
    acf_mixture_cdf(l.t, acf_tensor_packed(l.t, l.u, 3), acf_tensor_packed(l.t, l.u, 0), 1, -1, 301);
    expect(&l, ACF_EUSAGE, "mixture_cdf: the log-scale is bounded by [-1, 301]; expected -300 <= lo <= hi <= 300");
    acf_mixture_sample(l.t, acf_tensor_new(l.t, 2, (int64_t[]){6, 3}), 1, -1, 1, &(acf_draw){.seed = 1});
    expect(&l, ACF_ESHAPE, NULL);
    acf_real one = 1;
    acf_mixture_quantile(l.t, acf_leaf_packed(&l, "p", -1, 1, 3), acf_tensor_input(l.t, &one, 0, NULL), 1, -1, 1);
    expect(&l, ACF_EUSAGE,
           "mixture_quantile: row 0, column 0: the probability is 1; expected 0 < q < 1 (the quantiles of 0 "
           "and 1 are infinite)");
    acf_lab_close(&l);
}

/* An infinite mean with a weight stays visible; it is not rounded to the largest number. */
static void shows_infinite_means(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 2, ACF_MASK_ALL, 1);
    acf_real p[12] = {-9, 9, 0, (acf_real)INFINITY, 0, 0, -9, 9, 0, 1, 0, 0}, half[2] = {ACF_R(0.5), ACF_R(0.5)};
    acf_tensor *x = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, p, 2, (int64_t[]){2, 6}), l.u);
    acf_tensor *q = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, half, 1, (int64_t[]){2}), l.u);
    acf_tensor *y[5] = {acf_mixture_mean(l.t, x, 2), acf_mixture_sample(l.t, x, 2, -1, 1, &(acf_draw){.seed = 1}),
                        acf_mixture_cdf(l.t, x, q, 2, -1, 1), acf_mixture_quantile(l.t, x, q, 2, -1, 1),
                        acf_mixture_logp(l.t, x, q, 2, -1, 1)};
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int k = 0; k < 5; k++) assert_true(isnan(y[k]->data[0]) && isfinite(y[k]->data[1]));
    acf_lab_close(&l);
}

ACF_TESTS(mixture, cmocka_unit_test(shows_infinite_means), cmocka_unit_test(density_mean_and_cdf_agree),
          cmocka_unit_test(cdf_slope_is_density), cmocka_unit_test(quantile_inverts_cdf),
          cmocka_unit_test(strata_follow_the_cdf), cmocka_unit_test(quantile_is_accurate_in_the_tails),
          cmocka_unit_test(samples_follow_the_cdf), cmocka_unit_test(one_component_is_the_gaussian),
          cmocka_unit_test(logits_may_be_shifted), cmocka_unit_test(stays_finite_far_out),
          cmocka_unit_test(looks_at_every_component), cmocka_unit_test(keeps_nothing_without_recording),
          cmocka_unit_test(refuses_what_does_not_fit))
