/* The Gaussian mixture: see mog.h; formulas in docs/math.md, 10.
 *
 * Workload: 1e2 to 1e4 rows of 2 to 60 columns, 1 to 16 components. Each row and component costs one Cholesky factor,
 * n³/6 multiply-adds; each modelled value costs some erfc and exp for each component. */
#include "ops/mog.h"

#include "base/vector.h"
#include "base/vmath.h"
#include "ops/cholesky.h"
#include "ops/rowmat.h"

#include <math.h>
#include <string.h>

#define HALF_LOG_2PI 0.91893853320467274178
#define SQRT_HALF 0.70710678118654752440
#define ONE_BY_SQRT_2PI 0.39894228040143267794
#define LEAST_TAIL 1e-280 /* smallest tail of a normal deviate that is kept as a double; below, logarithms */
#define NEGLIGIBLE 1e-18  /* part of a tail that may be dropped */
#define CLOSE 1e-5        /* deviations */

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Below -30 erfc is near the end of its range. The first terms of its asymptotic series replace it; they are exact to
 * 1e-8 there and better further out. */
double acf_log_normal_cdf(double e) {
    if (e > -30) return log(0.5 * erfc(-e * SQRT_HALF));
    double r = 1 / (e * e);
    return -0.5 * e * e - log(-e) - HALF_LOG_2PI + log1p(-r * (1 - r * (3 - 15 * r)));
}

/* Newton on the logarithm, which is concave. From a start of three digits (Hastings' approximation) three steps reach
 * full precision. The slope of log Φ is φ/Φ, taken in logarithms, so that both may be arbitrarily small. */
double acf_normal_from_log_tail(double p) {
    double t = sqrt(-2 * p), e = (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t)) - t;
    for (int i = 0; i < 4; i++) {
        double f = acf_log_normal_cdf(e), slope = exp(-0.5 * e * e - HALF_LOG_2PI - f);
        e -= (f - p) / slope;
    }
    return e;
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

/* A row under the mixture: its given columns first, then the modelled ones; n columns in all, the first o given. Of
 * component k, with L its factor in that order,
 *
 *     y = L⁻¹(x - μ)      x_p | before ~ N(m, s²),  m = μ_p + Σ_{q<p} L_pq y_q,  s = L_pp
 *     lw = log w + Σ_{q<p} log N(y_q) - log L_qq            its weight at p, up to what all components share
 *
 * All arrays are in a thread's scratch. */
typedef struct row_state {
    const acf_mog_in *in;
    int64_t n, o;
    int32_t *column;     /* (n) */
    double *l, *inverse; /* (K,n,n) L, and L⁻¹ on the modelled places, used by the backward only */
    double *y, *mu;      /* (K,n) */
    double *grown;       /* (K,n), backward only: Σ_r y_r (L⁻¹)_rq */
    double *lw, *m, *s;  /* (K) at the current place */
    double *w, *term;    /* (K) normalised weights; scratch */
    double *start;       /* (K) lw after the given places */
    double *jacobian;    /* (n,n) dz/dx of the modelled places */
    double *dz;          /* (n) */
} row_state;

static row_state row_state_of(const acf_mog_in *in, double *scratch) {
    const int64_t K = in->K, W = in->W;
    row_state s = {.in = in, .l = scratch + omp_get_thread_num() * ACF_MOG_SCRATCH(K, W)};
    s.inverse = s.l + K * W * W, s.y = s.inverse + K * W * W, s.mu = s.y + K * W, s.grown = s.mu + K * W;
    s.lw = s.grown + K * W, s.m = s.lw + K, s.s = s.m + K, s.w = s.s + K, s.term = s.w + K;
    s.start = s.term + K, s.jacobian = s.start + K, s.dz = s.jacobian + W * W;
    s.column = (int32_t *)(void *)(s.dz + W);
    return s;
}

/* The value of a given column of the mixture in row i. */
static double given_value(const acf_mog_in *in, int64_t i, int64_t column) {
    const acf_mog_classes *c = &in->classes;
    if (column < in->D) return (double)in->x[i * in->D + column];
    return c->code[i * c->D + c->column[column - in->D]] == c->value[column - in->D];
}

static void list_given(row_state *s, int64_t i) {
    const acf_mog_in *in = s->in;
    s->o = 0;
    for (int64_t j = 0; j < in->D; j++)
        if (in->b[i * in->D + j]) s->column[s->o++] = (int32_t)j;
    for (int64_t p = 0; p < in->classes.n; p++)
        if (in->classes.known[i * in->classes.D + in->classes.column[p]]) s->column[s->o++] = (int32_t)(in->D + p);
    s->n = s->o;
}

static void list_columns(row_state *s, const acf_subset *u, int64_t i) {
    list_given(s, i);
    for (int64_t t = 0; t < u->size[i]; t++) s->column[s->n++] = u->cols[i * u->D + t];
}

/* Returns the place where a factor failed, or -1. */
static int64_t factorise(row_state *s) {
    const acf_mog_in *in = s->in;
    const int64_t n = s->n, W = in->W;
    for (int64_t k = 0; k < in->K; k++) {
        if (!(in->weight[k] > 0)) continue;
        double *l = s->l + k * n * n;
        const acf_real *cov = in->cov + k * W * W;
        for (int64_t p = 0; p < n; p++) {
            const int64_t a = s->column[p];
            s->mu[k * n + p] = (double)in->mean[k * W + a];
            for (int64_t q = 0; q <= p; q++) {
                const int64_t c = s->column[q];
                l[p * n + q] = (double)(a > c ? cov[a * W + c] : cov[c * W + a]);
            }
        }
        const int64_t broken = acf_cholesky(l, n, ACF_MOG_LEAST_PIVOT);
        if (broken >= 0) return broken;
    }
    return -1;
}

/* The conditional mean and deviation of component k at place p, given the places before. */
static void conditional_moments(const row_state *s, int64_t k, int64_t p) {
    const int64_t n = s->n;
    const double *l = s->l + k * n * n + p * n;
    s->m[k] = s->mu[k * n + p] + acf_inner(l, s->y + k * n, p);
    s->s[k] = l[p];
}

/* Sets place p to x and updates component k for the next place. */
static void take(const row_state *s, int64_t k, int64_t p, double x) {
    const double y = (x - s->m[k]) / s->s[k];
    s->y[k * s->n + p] = y;
    s->lw[k] -= 0.5 * y * y + log(s->s[k]);
}

static bool used(const row_state *s, int64_t k) { return s->in->weight[k] > 0; }

/* Sets all given places at once. One logarithm serves four pivots: their product is far from the ends of the range. */
static void take_places(const row_state *s, int64_t k, int64_t i) {
    double pivots = 1;
    s->lw[k] = log((double)s->in->weight[k]);
    for (int64_t p = 0; p < s->o; p++) {
        conditional_moments(s, k, p);
        const double y = (given_value(s->in, i, s->column[p]) - s->m[k]) / s->s[k];
        s->y[k * s->n + p] = y;
        s->lw[k] -= 0.5 * y * y;
        pivots *= s->s[k];
        if (p % 4 == 3) s->lw[k] -= log(pivots), pivots = 1;
    }
    s->lw[k] -= log(pivots);
}

/* Begins row i, whose columns are listed; returns the same as factorise. */
static int64_t take_given(row_state *s, int64_t i) {
    const int64_t broken = factorise(s);
    for (int64_t k = 0; broken < 0 && k < s->in->K; k++)
        if (used(s, k)) take_places(s, k, i);
    return broken;
}

static int64_t begin_row(row_state *s, const acf_subset *u, int64_t i) {
    list_columns(s, u, i);
    return take_given(s, i);
}

/* The components' weights, normalised. */
static void normalise(const row_state *s) {
    double *w = s->w;
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < s->in->K; k++)
        if (used(s, k)) largest = fmax(largest, s->lw[k]);
    for (int64_t k = 0; k < s->in->K; k++) sum += w[k] = used(s, k) ? exp(s->lw[k] - largest) : 0;
    for (int64_t k = 0; k < s->in->K; k++) w[k] /= sum;
}

/* Conditional moments of all components at place p, and their weights there. */
static void weigh(const row_state *s, int64_t p) {
    for (int64_t k = 0; k < s->in->K; k++)
        if (used(s, k)) conditional_moments(s, k, p);
    normalise(s);
}

static double log_sum(const double *term, int64_t n) {
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) largest = fmax(largest, term[k]);
    if (!(largest > -INFINITY) || isinf(largest)) return largest;
    for (int64_t k = 0; k < n; k++) sum += exp(term[k] - largest);
    return largest + log(sum);
}

/* log F(x) of the lower tail, or of the upper one. */
static double log_tail(const row_state *s, double x, bool upper) {
    for (int64_t k = 0; k < s->in->K; k++) {
        const double e = (x - s->m[k]) / s->s[k];
        s->term[k] = s->w[k] > 0 ? log(s->w[k]) + acf_log_normal_cdf(upper ? -e : e) : -INFINITY;
    }
    return log_sum(s->term, s->in->K);
}

static double log_density(const row_state *s, double x) {
    for (int64_t k = 0; k < s->in->K; k++) {
        const double e = (x - s->m[k]) / s->s[k];
        s->term[k] = s->w[k] > 0 ? log(s->w[k]) - 0.5 * e * e - log(s->s[k]) - HALF_LOG_2PI : -INFINITY;
    }
    return log_sum(s->term, s->in->K);
}

/* z of x, computed from the smaller tail, which has more digits. */
static double to_normal(const row_state *s, double x) {
    const double low = log_tail(s, x, false);
    if (low <= -0.69314718055994530942) return acf_normal_from_log_tail(low);
    return -acf_normal_from_log_tail(log_tail(s, x, true));
}

/* x of z where a tail is too small for a double. The quantiles of the components enclose that of the mixture. Newton on
 * the logarithm of the tail runs inside that bracket, and halves it where a step would leave it. */
static double from_normal_far(const row_state *s, double z) {
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t k = 0; k < s->in->K; k++)
        if (s->w[k] > 0) lo = fmin(lo, s->m[k] + s->s[k] * z), hi = fmax(hi, s->m[k] + s->s[k] * z);
    const bool upper = z > 0;
    const double target = acf_log_normal_cdf(upper ? -z : z);
    double x = 0.5 * (lo + hi);
    for (int i = 0; i < 100 && hi - lo > 1e-13 * (fabs(lo) + fabs(hi)); i++) {
        const double f = log_tail(s, x, upper), slope = exp(log_density(s, x) - f);
        if (fabs(f - target) < 1e-14 * (1 + fabs(target))) break;
        if ((f < target) != upper)
            lo = x;
        else
            hi = x;
        const double next = x + (upper ? f - target : target - f) / slope;
        x = next > lo && next < hi ? next : 0.5 * (lo + hi);
    }
    return x;
}

/* The equation that from_normal solves: the components that count, and the bracket from their quantiles. */
typedef struct bracket {
    double none;          /* weights up to this are dropped: together they are below the precision of the tail */
    double lo, hi, least; /* least: the smallest deviation of the components */
    double mean, sd;
} bracket;

static bracket enclose(const row_state *s, double z, double tail) {
    bracket b = {.none = NEGLIGIBLE * tail, .lo = INFINITY, .hi = -INFINITY, .least = INFINITY};
    double square = 0;
    for (int64_t k = 0; k < s->in->K; k++) {
        if (!(s->w[k] > b.none)) continue;
        const double x = s->m[k] + s->s[k] * z;
        b.lo = fmin(b.lo, x), b.hi = fmax(b.hi, x), b.least = fmin(b.least, s->s[k]);
        b.mean += s->w[k] * s->m[k], square += s->w[k] * (s->m[k] * s->m[k] + s->s[k] * s->s[k]);
    }
    b.sd = sqrt(fmax(square - b.mean * b.mean, 0));
    return b;
}

/* The tail of the mixture at x, and its first two derivatives by x. */
static void tail_at(const row_state *s, double x, double side, double none, double f[3]) {
    f[0] = f[1] = f[2] = 0;
    for (int64_t k = 0; k < s->in->K; k++) {
        if (!(s->w[k] > none)) continue;
        const double part = 1 / s->s[k], e = (x - s->m[k]) * part;
        const double bell = side * s->w[k] * ONE_BY_SQRT_2PI * part * acf_exp_double(-0.5 * e * e);
        f[0] += s->w[k] * 0.5 * erfc(-side * SQRT_HALF * e), f[1] += bell, f[2] -= bell * e * part;
    }
}

/* x of z, from the smaller tail: Halley's steps on its logarithm, which is nearly a parabola. The start is the quantile
 * of a Gaussian with the same mean and variance. A step that would leave the bracket halves it. A step shorter than
 * CLOSE leaves an error of its cube. */
static double from_normal(const row_state *s, double z) {
    const double side = z > 0 ? -1 : 1, target = 0.5 * erfc(fabs(z) * SQRT_HALF);
    if (!(target > LEAST_TAIL)) return from_normal_far(s, z);
    bracket b = enclose(s, z, target);
    double x = fmin(fmax(b.mean + b.sd * z, b.lo), b.hi);
    for (int i = 0; i < 100 && b.hi - b.lo > 1e-13 * (fabs(b.lo) + fabs(b.hi)); i++) {
        double f[3];
        tail_at(s, x, side, b.none, f);
        if ((f[0] < target) == (side > 0))
            b.lo = x;
        else
            b.hi = x;
        const double slope = f[1] / f[0], newton = -log(f[0] / target) / slope;
        const double bend = 0.5 * newton * (f[2] / f[1] - slope);
        const double step = newton / fmin(fmax(1 + bend, 0.5), 2), next = x + step;
        const bool inside = next >= b.lo && next <= b.hi;
        if (inside && fabs(step) < CLOSE * b.least) return next;
        x = inside ? next : 0.5 * (b.lo + b.hi);
    }
    return x;
}

static void take_all(const row_state *s, int64_t p, double x) {
    for (int64_t k = 0; k < s->in->K; k++)
        if (used(s, k)) take(s, k, p, x);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static int64_t work(const acf_mog_in *in, const acf_subset *u) { return u->N * in->K * in->W * in->W * (in->W + 60); }

void acf_mog_normal_fwd_cpu(const acf_device *dev, acf_real *z, acf_real *logdet, int32_t *bad, const acf_mog_in *in,
                            const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, work(in, u))
    for (int64_t r = 0; r < u->N; r++) {
        const int64_t i = u->row[r];
        row_state s = row_state_of(in, scratch);
        double sum = 0;
        bad[i] = -1, logdet[i] = 0;
        if (u->size[i] == 0) continue;
        bad[i] = (int32_t)begin_row(&s, u, i);
        for (int64_t t = 0; bad[i] < 0 && t < u->size[i]; t++) {
            const double x = (double)in->x[i * in->D + u->cols[i * u->D + t]];
            weigh(&s, s.o + t);
            const double e = to_normal(&s, x);
            sum += log_density(&s, x) + 0.5 * e * e + HALF_LOG_2PI;
            z[acf_subset_at(u, i, t)] = acf_real_from(e);
            take_all(&s, s.o + t, x);
        }
        logdet[i] = acf_real_from(sum);
    }
}

/* The values of row i, of one set of z. */
static void value_row(const row_state *s, acf_real *x, const acf_real *z, const acf_subset *u, int64_t i) {
    memcpy(s->lw, s->start, (size_t)s->in->K * sizeof *s->lw);
    for (int64_t t = 0; t < u->size[i]; t++) {
        const int64_t at = acf_subset_at(u, i, t);
        weigh(s, s->o + t);
        const double value = from_normal(s, (double)z[at]);
        x[at] = acf_real_from(value);
        take_all(s, s->o + t, value);
    }
}

/* The values of all sets in a row that models one value: every set has the same conditional. */
static void values_of_one(const row_state *s, acf_real *x, const acf_real *z, int64_t sets, const acf_subset *u,
                          int64_t i) {
    const int64_t at = acf_subset_at(u, i, 0);
    weigh(s, s->o);
    for (int64_t c = 0; c < sets; c++) x[c * u->T + at] = acf_real_from(from_normal(s, (double)z[c * u->T + at]));
}

void acf_mog_value_fwd_cpu(const acf_device *dev, acf_real *x, int32_t *bad, const acf_mog_in *in, const acf_real *z,
                           int64_t sets, const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, work(in, u))
    for (int64_t r = 0; r < u->N; r++) {
        const int64_t i = u->row[r];
        row_state s = row_state_of(in, scratch);
        bad[i] = -1;
        if (u->size[i] == 0) continue;
        bad[i] = (int32_t)begin_row(&s, u, i);
        if (bad[i] >= 0) continue;
        if (u->size[i] == 1) {
            values_of_one(&s, x, z, sets, u, i);
            continue;
        }
        memcpy(s.start, s.lw, (size_t)in->K * sizeof *s.lw);
        for (int64_t c = 0; c < sets; c++) value_row(&s, x + c * u->T, z + c * u->T, u, i);
    }
}

/* y = L⁻ᵀ y on the given places; then Σ_j· y is the shift of column j's conditional mean. */
static void solve_back(const row_state *s, int64_t k) {
    const int64_t n = s->n;
    const double *l = s->l + k * n * n;
    double *y = s->y + k * n;
    for (int64_t p = s->o - 1; p >= 0; p--) {
        y[p] /= l[p * n + p];
        for (int64_t q = 0; q < p; q++) y[q] -= l[p * n + q] * y[p];
    }
}

/* The conditional mean of column j in component k. */
static double expected(const row_state *s, int64_t k, int64_t j) {
    const int64_t W = s->in->W;
    const acf_real *cov = s->in->cov + k * W * W;
    double sum = (double)s->in->mean[k * W + j];
    for (int64_t p = 0; p < s->o; p++) {
        const int64_t c = s->column[p];
        sum += (double)(j > c ? cov[j * W + c] : cov[c * W + j]) * s->y[k * s->n + p];
    }
    return sum;
}

/* Whether column j of the mixture is given in row i. */
static bool is_given(const acf_mog_in *in, int64_t i, int64_t j) {
    const acf_mog_classes *c = &in->classes;
    return j < in->D ? in->b[i * in->D + j] : c->known[i * c->D + c->column[j - in->D]];
}

static double expected_of_all(const row_state *s, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < s->in->K; k++)
        if (s->w[k] > 0) sum += s->w[k] * expected(s, k, j);
    return sum;
}

void acf_mog_expect_cpu(const acf_device *dev, acf_real *out, int32_t *bad, const acf_mog_in *in, const acf_subset *u,
                        double *scratch) {
    const int64_t W = in->W;
    ACF_PARALLEL_UNEVEN(dev, work(in, u))
    for (int64_t i = 0; i < u->N; i++) {
        row_state s = row_state_of(in, scratch);
        bad[i] = -1;
        memset(out + i * W, 0, (size_t)W * sizeof *out);
        if (u->size[i] == 0) continue;
        list_given(&s, i);
        bad[i] = (int32_t)take_given(&s, i);
        if (bad[i] >= 0) continue;
        normalise(&s);
        for (int64_t k = 0; k < in->K; k++)
            if (used(&s, k)) solve_back(&s, k);
        for (int64_t j = 0; j < W; j++)
            out[i * W + j] = acf_real_from(is_given(in, i, j) ? given_value(in, i, j) : expected_of_all(&s, j));
    }
}

/* Row p of L⁻¹ on the modelled places: the inverse of the last block of a lower triangle is the last block of the
 * inverse. */
static void invert_row(const row_state *s, int64_t k, int64_t p) {
    const int64_t n = s->n;
    const double *l = s->l + k * n * n;
    double *b = s->inverse + k * n * n;
    for (int64_t q = s->o; q < p; q++) {
        double sum = 0;
        for (int64_t r = q; r < p; r++) sum += l[p * n + r] * b[r * n + q];
        b[p * n + q] = -sum / l[p * n + p];
    }
    b[p * n + p] = 1 / l[p * n + p];
}

/* dz_p/dx_q for the modelled q <= p, where place p has the values x and z. With T the tail on z's side,
 *
 *     dz_p/dx_q = 1/φ(z) Σ_k w_k [ ±(g_k - ḡ) T_k + φ(e_k) (L_k⁻¹)_pq ],     g_k = -Σ_{q<=r<p} y_r (L_k⁻¹)_rq
 *
 * and f(x)/φ(z) for q = p. Everything is scaled by 1/φ(z) in logarithms: far out neither factor fits in a double. */
static void jacobian_row(const row_state *s, int64_t p, double x, double z) {
    const int64_t n = s->n;
    const double scale = 0.5 * z * z + HALF_LOG_2PI;
    double *row = s->jacobian + p * n;
    for (int64_t q = s->o; q < p; q++) row[q] = 0;
    row[p] = exp(log_density(s, x) + scale);
    for (int64_t q = s->o; q < p; q++) {
        double mean = 0;
        for (int64_t k = 0; k < s->in->K; k++)
            if (s->w[k] > 0) mean -= s->w[k] * s->grown[k * n + q];
        for (int64_t k = 0; k < s->in->K; k++) {
            if (!(s->w[k] > 0)) continue;
            const double e = (x - s->m[k]) / s->s[k], side = z > 0 ? -1 : 1;
            const double tail = exp(acf_log_normal_cdf(side * e) + scale),
                         bell = exp(scale - 0.5 * e * e - HALF_LOG_2PI);
            row[q] +=
                s->w[k] * (side * (-s->grown[k * n + q] - mean) * tail + bell * s->inverse[k * n * n + p * n + q]);
        }
    }
}

/* Adds place p to `grown`, for the backward. */
static void add_to_grown(const row_state *s, int64_t k, int64_t p) {
    const int64_t n = s->n;
    const double *b = s->inverse + k * n * n + p * n;
    for (int64_t q = s->o; q <= p; q++) s->grown[k * n + q] += s->y[k * n + p] * b[q];
}

void acf_mog_value_bwd_cpu(const acf_device *dev, acf_real *dz, const acf_real *dx, const acf_mog_in *in,
                           const acf_real *x, const acf_real *z, const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, 3 * work(in, u))
    for (int64_t r = 0; r < u->N; r++) {
        const int64_t i = u->row[r];
        row_state s = row_state_of(in, scratch);
        if (u->size[i] == 0 || begin_row(&s, u, i) >= 0) continue; /* forward has failed for such a row */
        memset(s.grown, 0, (size_t)(in->K * s.n) * sizeof *s.grown);
        for (int64_t p = s.o; p < s.n; p++) {
            const int64_t at = acf_subset_at(u, i, p - s.o);
            weigh(&s, p);
            for (int64_t k = 0; k < in->K; k++)
                if (used(&s, k)) invert_row(&s, k, p);
            jacobian_row(&s, p, (double)x[at], (double)z[at]);
            take_all(&s, p, (double)x[at]);
            for (int64_t k = 0; k < in->K; k++)
                if (used(&s, k)) add_to_grown(&s, k, p);
        }
        for (int64_t p = s.n - 1; p >= s.o; p--) { /* (dz/dx)ᵀ dz = dx, from the last place to the first */
            double sum = (double)dx[acf_subset_at(u, i, p - s.o)];
            for (int64_t q = p + 1; q < s.n; q++) sum -= s.jacobian[q * s.n + p] * s.dz[q];
            s.dz[p] = sum / s.jacobian[p * s.n + p];
            acf_real *to = dz + acf_subset_at(u, i, p - s.o);
            *to = acf_real_from((double)*to + s.dz[p]);
        }
    }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static acf_mog_in reads(const acf_node *n) {
    const acf_mog_attrs *a = n->attr;
    return (acf_mog_in){n->in[1]->dim[0], n->in[3]->dim[1], n->in[1]->dim[1], n->in[0]->data,
                        n->in[1]->data,   n->in[2]->data,   n->in[3]->data,   a->b,
                        a->classes};
}

static double *doubles(acf_tape *t, const acf_mog_in *in) {
    const size_t bytes = (size_t)(t->dev->threads * ACF_MOG_SCRATCH(in->K, in->W)) * sizeof(double);
    double *p = acf_arena_alloc(t->mem, bytes);
    if (!p) acf_tape_fail(t, NULL);
    return p;
}

static acf_status broken(int64_t N, const int32_t *bad) {
    const int64_t i = acf_first_failure(bad, N);
    if (i < 0) return ACF_OK;
    return acf_fail(ACF_ENUMERIC,
                    "row %lld: a covariance of the mixture is not positive definite on its columns (place %d)",
                    (long long)i, bad[i]);
}

static acf_status run_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_mog_in in = reads(n);
    const int64_t N = n->in[3]->dim[0];
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *bad = acf_tape_ints(t, N);
    double *scratch = doubles(t, &in);
    ACF_TRY(acf_tape_status(t));
    if (n->op == &acf_op_mog_expect)
        acf_mog_expect_cpu(t->dev, n->out[0]->data, bad, &in, u, scratch);
    else if (n->op == &acf_op_mog_normal)
        acf_mog_normal_fwd_cpu(t->dev, n->out[0]->data, n->out[1]->data, bad, &in, u, scratch);
    else
        acf_mog_value_fwd_cpu(t->dev, n->out[0]->data, bad, &in, n->in[4]->data,
                              n->in[4]->ndim == 2 ? n->in[4]->dim[0] : 1, u, scratch);
    acf_status status = broken(N, bad);
    acf_arena_release(t->mem, mark);
    return status;
}

static acf_status value_backward(acf_tape *t, acf_node *n) {
    const acf_mog_in in = reads(n);
    acf_real *dz = acf_grad(t, n->in[4]);
    ACF_TRY(acf_tape_status(t));
    if (!dz) return ACF_OK;
    acf_mark mark = acf_arena_mark(t->mem);
    double *scratch = doubles(t, &in);
    ACF_TRY(acf_tape_status(t));
    acf_mog_value_bwd_cpu(t->dev, dz, n->out[0]->grad, &in, n->out[0]->data, n->in[4]->data,
                          ((const acf_mog_attrs *)n->attr)->u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_mog_normal = {"mog_normal", ACF_OP_mog_normal, {run_forward, NULL}};
const acf_op acf_op_mog_expect = {"mog_expect", ACF_OP_mog_expect, {run_forward, NULL}};
const acf_op acf_op_mog_values = {"mog_values", ACF_OP_mog_values, {run_forward, NULL}};
const acf_op acf_op_mog_value = {"mog_value", ACF_OP_mog_value, {run_forward, value_backward}};

/* A node on N rows of D reals, without its outputs; NULL after a failure. */
static acf_node *checked(acf_tape *t, const acf_op *op, const acf_mog *g, acf_tensor *z, int64_t N, int64_t D) {
    char sw[ACF_SHAPE_TEXT], sm[ACF_SHAPE_TEXT], sc[ACF_SHAPE_TEXT], sx[ACF_SHAPE_TEXT];
    acf_node *n =
        acf_node_new(t, op, sizeof(acf_mog_attrs), z ? 5 : 4, (acf_tensor *[]){g->weight, g->mean, g->cov, g->x, z});
    if (!n) return NULL;
    const int64_t K = g->weight->ndim == 1 ? g->weight->dim[0] : -1, W = D + g->classes.n;
    const bool fits = g->mean->ndim == 2 && g->mean->dim[0] == K && g->mean->dim[1] == W && g->cov->ndim == 3 &&
                      g->cov->dim[0] == K && g->cov->dim[1] == W && g->cov->dim[2] == W && g->x->ndim == 2 &&
                      g->x->dim[0] == N && g->x->dim[1] == D;
    if (!fits) {
        acf_reject(
            t, op,
            "weight is %s, mean is %s, cov is %s, x is %s; expected (K), (K,%lld), (K,%lld,%lld) and (%lld,%lld)",
            acf_tensor_shape(g->weight, sw), acf_tensor_shape(g->mean, sm), acf_tensor_shape(g->cov, sc),
            acf_tensor_shape(g->x, sx), (long long)W, (long long)W, (long long)W, (long long)N, (long long)D);
        return NULL;
    }
    *(acf_mog_attrs *)n->attr = (acf_mog_attrs){NULL, g->b, g->classes};
    return n;
}

/* The node of a map between x and z, with its first output. */
static acf_node *map(acf_tape *t, const acf_op *op, const acf_mog *g, acf_tensor *z, const acf_subset *u) {
    char sz[ACF_SHAPE_TEXT];
    acf_node *n = checked(t, op, g, z, u->N, u->D);
    if (!n) return NULL;
    if (z && !acf_is_packed(z, u)) {
        acf_reject(t, op, "z is %s; expected (%lld packed) over the subset", acf_tensor_shape(z, sz), (long long)u->T);
        return NULL;
    }
    ((acf_mog_attrs *)n->attr)->u = u;
    n->out[0] = acf_tensor_packed(t, u, 0);
    return n;
}

acf_tensor *acf_mog_expect(acf_tape *t, const acf_mog *g, const acf_subset *u) {
    if (t->failure.status) return &t->empty;
    acf_node *n = checked(t, &acf_op_mog_expect, g, NULL, u->N, g->x->dim[1]);
    if (!n) return &t->empty;
    ((acf_mog_attrs *)n->attr)->u = u;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){u->N, g->mean->dim[1]});
    return acf_node_run(t, n);
}

acf_tensor *acf_mog_normal(acf_tape *t, const acf_mog *g, const acf_subset *u, acf_tensor **logdet) {
    *logdet = &t->empty;
    if (t->failure.status) return &t->empty;
    acf_node *n = map(t, &acf_op_mog_normal, g, NULL, u);
    if (!n) return &t->empty;
    n->out[1] = acf_tensor_new(t, 1, &u->N);
    acf_tensor *z = acf_node_run(t, n);
    if (!t->failure.status) *logdet = n->out[1];
    return z;
}

acf_tensor *acf_mog_value(acf_tape *t, const acf_mog *g, acf_tensor *z, const acf_subset *u) {
    if (t->failure.status) return &t->empty;
    acf_node *n = map(t, &acf_op_mog_value, g, z, u);
    return n ? acf_node_run(t, n) : &t->empty;
}

void acf_mog_values(acf_tape *t, const acf_mog *g, int n, acf_tensor **z, const acf_subset *u) {
    char sz[ACF_SHAPE_TEXT];
    acf_tensor *all = acf_tensor_new(t, 2, (int64_t[]){n, u->T});
    for (int i = 0; i < n && !t->failure.status; i++) {
        if (!acf_is_packed(z[i], u))
            acf_reject(t, &acf_op_mog_values, "z is %s; expected (%lld packed) over the subset",
                       acf_tensor_shape(z[i], sz), (long long)u->T);
        else if (acf_device_copy(t->dev, all->data + i * u->T, z[i]->data, (size_t)u->T * sizeof(acf_real),
                                 ACF_ON_DEVICE))
            acf_tape_fail(t, NULL);
    }
    acf_node *node = t->failure.status ? NULL : checked(t, &acf_op_mog_values, g, all, u->N, u->D);
    if (node) {
        ((acf_mog_attrs *)node->attr)->u = u;
        node->out[0] = acf_tensor_new(t, 2, all->dim);
        all = acf_node_run(t, node);
    }
    for (int i = 0; i < n; i++)
        z[i] = t->failure.status ? &t->empty
                                 : acf_tensor_as_packed(t, acf_tensor_wrap(t, all->data + i * u->T, 1, &u->T), u);
}
