/* Two small regressions: see regress.h; formulas in docs/math.md, Evaluation. */
#include "infer/regress.h"

#include "base/real.h"
#include "base/vector.h"
#include "ops/cholesky.h"
#include "ops/symmetric_eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* y (P) += xᵀ·v for x (n,P). */
static void add_transposed(double *y, const double *x, const double *v, int64_t n, int64_t P) {
    for (int64_t i = 0; i < n; i++) acf_add_scaled(y, v[i], x + i * P, P);
}

/* The lower half of out (P,P) += xᵀ·x for x (n,P), in blocks of eight rows of x: out is read and written once per
 * block. */
static void add_gram(double *out, const double *x, int64_t n, int64_t P) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const double *a = x + i * P, *b = a + P, *c = b + P, *d = c + P, *e = d + P, *f = e + P, *g = f + P, *h = g + P;
        for (int64_t j = 0; j < P; j++) {
            double *row = out + j * P;
#pragma omp simd
            for (int64_t k = 0; k <= j; k++)
                row[k] += (a[j] * a[k] + b[j] * b[k]) + (c[j] * c[k] + d[j] * d[k]) + (e[j] * e[k] + f[j] * f[k]) +
                          (g[j] * g[k] + h[j] * h[k]);
        }
    }
    for (; i < n; i++)
        for (int64_t j = 0; j < P; j++) acf_add_scaled(out + j * P, x[i * P + j], x + i * P, j + 1);
}

static double *reals(acf_arena *a, int64_t n) { return acf_arena_alloc(a, (size_t)n * sizeof(double)); }

/* ---- a number: ridge regression by evidence ---------------------------------------------------------------------- */

#define EVIDENCE_STEPS 300
#define EVIDENCE_TOL 1e-4
#define GAMMA 1e-6 /* shape and rate of the priors of both precisions: nearly uninformative */

acf_status acf_ridge_create(acf_arena *memory, int64_t P, acf_ridge *out) {
    *out = (acf_ridge){.P = P,
                       .coef = reals(memory, P),
                       .mean = reals(memory, P),
                       .axis = reals(memory, P * P),
                       .spread = reals(memory, P)};
    return out->coef && out->mean && out->axis && out->spread ? ACF_OK : ACF_EMEMORY;
}

static void centre(const acf_ridge *r, double *x, int64_t n) {
    for (int64_t j = 0; j < r->P; j++) r->mean[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < r->P; j++) r->mean[j] += x[i * r->P + j] / (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < r->P; j++) x[i * r->P + j] -= r->mean[j];
}

/* Along the principal axes of x the problem separates into P scalar ones, so a step costs O(P):
 *     c_a = t_a / (s_a + lambda/alpha)                    s: squared lengths, t = axis·xᵀy
 *     g = sum_a alpha s_a / (lambda + alpha s_a)          effective number of parameters
 *     lambda = g / |c|^2,  alpha = (n - g) / |y - x c|^2 */
typedef struct evidence {
    double *s, *t, *c; /* (P) */
    double yy, n, alpha, lambda;
} evidence;

static bool evidence_step(evidence *e, int64_t P) {
    double determined = 0, cc = 0, left = e->yy, moved = 0;
    for (int64_t a = 0; a < P; a++) {
        double c = e->t[a] / (e->s[a] + e->lambda / e->alpha);
        moved += (c - e->c[a]) * (c - e->c[a]);
        e->c[a] = c;
        cc += c * c;
        left += c * (e->s[a] * c - 2 * e->t[a]);
        determined += e->alpha * e->s[a] / (e->lambda + e->alpha * e->s[a]);
    }
    e->lambda = (determined + 2 * GAMMA) / (cc + 2 * GAMMA);
    e->alpha = (e->n - determined + 2 * GAMMA) / (fmax(left, 0) + 2 * GAMMA);
    return moved > EVIDENCE_TOL * EVIDENCE_TOL;
}

/* Principal axes of x'x into r->axis, squared lengths into s (P). Rounding can make some negative. */
static acf_status principal_axes(acf_arena *scratch, acf_ridge *r, const double *x, int64_t n, double *s) {
    const int64_t P = r->P;
    double *capacity = reals(scratch, P);
    if (!capacity) return ACF_EMEMORY;
    memset(r->axis, 0, (size_t)(P * P) * sizeof *r->axis);
    add_gram(r->axis, x, n, P);
    for (int64_t i = 0; i < P; i++)
        for (int64_t j = 0; j < i; j++) r->axis[j * P + i] = r->axis[i * P + j];
    if (!acf_symmetric_eigen(r->axis, P, s, capacity))
        return acf_fail(ACF_ENUMERIC, "linear baseline: the axes of %lld predictors were not found", (long long)P);
    for (int64_t a = 0; a < P; a++) s[a] = fmax(s[a], 0);
    return ACF_OK;
}

static acf_status fit_centred(acf_arena *scratch, acf_ridge *r, const double *x, const double *y, int64_t n) {
    int64_t P = r->P;
    evidence e = {.s = reals(scratch, P),
                  .t = reals(scratch, P),
                  .c = reals(scratch, P),
                  .yy = acf_inner(y, y, n),
                  .n = (double)n,
                  .lambda = 1};
    double *xy = reals(scratch, P);
    if (!e.s || !e.t || !e.c || !xy) return ACF_EMEMORY;
    ACF_TRY(principal_axes(scratch, r, x, n, e.s));
    memset(xy, 0, (size_t)P * sizeof *xy);
    add_transposed(xy, x, y, n, P);
    for (int64_t a = 0; a < P; a++) e.t[a] = acf_inner(r->axis + a * P, xy, P);
    memset(e.c, 0, (size_t)P * sizeof *e.c);
    e.alpha = 1 / (e.yy / e.n + DBL_EPSILON);
    for (int i = 0; i < EVIDENCE_STEPS && evidence_step(&e, P); i++) {}
    memset(r->coef, 0, (size_t)P * sizeof *r->coef);
    add_transposed(r->coef, r->axis, e.c, P, P);
    for (int64_t a = 0; a < P; a++) r->spread[a] = 1 / sqrt(e.alpha * e.s[a] + e.lambda);
    r->noise = 1 / sqrt(e.alpha);
    return ACF_OK;
}

acf_status acf_ridge_fit(acf_arena *scratch, acf_ridge *r, double *x, double *y, int64_t n) {
    acf_mark mark = acf_arena_mark(scratch);
    r->center = r->noise = 0;
    for (int64_t i = 0; i < n; i++) r->center += y[i] / (double)n;
    for (int64_t i = 0; i < n; i++) y[i] -= r->center;
    centre(r, x, n);
    acf_status status = ACF_OK;
    if (r->P > 0)
        status = fit_centred(scratch, r, x, y, n);
    else
        r->noise = sqrt(acf_inner(y, y, n) / (double)n);
    r->bias = r->center - acf_inner(r->coef, r->mean, r->P);
    acf_arena_release(scratch, mark);
    return status;
}

void acf_ridge_posterior(const acf_ridge *r, const double *z, double *coef, double *bias) {
    memcpy(coef, r->coef, (size_t)r->P * sizeof *coef);
    for (int64_t a = 0; a < r->P; a++) acf_add_scaled(coef, z[a] * r->spread[a], r->axis + a * r->P, r->P);
    *bias = r->center - acf_inner(coef, r->mean, r->P);
}

void acf_ridge_predict(const double *coef, double bias, const double *x, int64_t n, int64_t P, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = bias + acf_inner(x + i * P, coef, P);
}

/* ---- a class: multinomial regression by Newton steps ------------------------------------------------------------- */

#define PRIOR 1.0       /* precision of a coefficient */
#define PRIOR_LAST 1e-6 /* of the constant: none in effect, but the matrix stays definite */
#define HALVINGS 10
#define ENOUGH 1e-6     /* gain of a pass, per row, below which passes stop */
#define ROWS 256        /* weighted at a time: they stay in cache for the product */
#define SCORE_MAX 300.0 /* of a class against the best at the start: the exponential stays finite */

/* A fit in progress. mass_k = exp(score_k - shift), total = their sum over classes; p = mass / total. */
typedef struct newton {
    const acf_logit *l;
    const double *x;
    const int32_t *y;
    int64_t n;
    double *mass;        /* (n,K) */
    double *total, *p;   /* (n) */
    double *rest, *move; /* (n) y - p; change of the class's score */
    double *weighted;    /* (ROWS,P) */
    double *hessian;     /* (P,P) */
    double *step;        /* (P) */
} newton;

static bool newton_alloc(newton *w, acf_arena *a) {
    int64_t n = w->n, P = w->l->P, K = w->l->K;
    w->mass = reals(a, n * K), w->total = reals(a, n), w->p = reals(a, n), w->rest = reals(a, n), w->move = reals(a, n);
    w->weighted = reals(a, ROWS * P), w->hessian = reals(a, P * P), w->step = reals(a, P);
    return w->mass && w->total && w->p && w->rest && w->move && w->weighted && w->hessian && w->step;
}

static void scores(const acf_logit *l, const double *x, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < l->K; k++) out[i * l->K + k] = acf_inner(x + i * l->P, l->coef + k * l->P, l->P);
}

/* exp(score - the row's largest) in place; returns their sum. */
static double exponentiate(double *score, int64_t K) {
    double top = score[0], sum = 0;
    for (int64_t k = 1; k < K; k++) top = fmax(top, score[k]);
    for (int64_t k = 0; k < K; k++) sum += score[k] = exp(score[k] - top);
    return sum;
}

static double prior_of(const newton *w, int64_t j) { return j + 1 < w->l->P ? PRIOR : PRIOR_LAST; }

/* Curvature of the log-posterior along class k: hessian = xᵀ diag(p(1-p)) x + prior. */
static void curvature(newton *w) {
    int64_t P = w->l->P;
    memset(w->hessian, 0, (size_t)(P * P) * sizeof *w->hessian);
    for (int64_t from = 0; from < w->n; from += ROWS) {
        int64_t rows = acf_min(ROWS, w->n - from);
        for (int64_t i = 0; i < rows; i++) {
            double p = w->p[from + i], root = sqrt(p * (1 - p));
            for (int64_t j = 0; j < P; j++) w->weighted[i * P + j] = root * w->x[(from + i) * P + j];
        }
        add_gram(w->hessian, w->weighted, rows, P);
    }
    for (int64_t j = 0; j < P; j++) w->hessian[j * P + j] += prior_of(w, j);
}

/* x (n) = (l lᵀ)⁻¹ x for a Cholesky factor l (n,n). */
static void solve(const double *l, double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = (x[i] - acf_inner(l + i * n, x, i)) / l[i * n + i];
    for (int64_t i = n - 1; i >= 0; i--) {
        x[i] /= l[i * n + i];
        acf_add_scaled(x, -x[i], l + i * n, i);
    }
}

/* The Newton step of class k, into step; and the change of each row's score, into move. False: the matrix is not
 * definite. */
static bool direction(newton *w, int64_t k) {
    const int64_t P = w->l->P;
    const double *coef = w->l->coef + k * P;
    for (int64_t i = 0; i < w->n; i++) {
        w->p[i] = w->mass[i * w->l->K + k] / w->total[i];
        w->rest[i] = (w->y[i] == k ? 1 : 0) - w->p[i];
    }
    curvature(w);
    for (int64_t j = 0; j < P; j++) w->step[j] = -prior_of(w, j) * coef[j];
    add_transposed(w->step, w->x, w->rest, w->n, P);
    if (acf_cholesky(w->hessian, P, 0) >= 0) return false;
    solve(w->hessian, w->step, P);
    for (int64_t i = 0; i < w->n; i++) w->move[i] = acf_inner(w->x + i * P, w->step, P);
    return true;
}

/* Gain of the log-posterior if class k moves by `part` of the step. */
static double gain_of(const newton *w, int64_t k, double part) {
    const double *coef = w->l->coef + k * w->l->P;
    double gain = 0;
    for (int64_t i = 0; i < w->n; i++) {
        double move = part * w->move[i];
        if (w->y[i] == k) gain += move;
        gain -= log1p(w->p[i] * expm1(fmin(move, SCORE_MAX)));
    }
    for (int64_t j = 0; j < w->l->P; j++)
        gain -= prior_of(w, j) * part * w->step[j] * (coef[j] + 0.5 * part * w->step[j]);
    return gain;
}

static void take(newton *w, int64_t k, double part) {
    double *coef = w->l->coef + k * w->l->P;
    for (int64_t j = 0; j < w->l->P; j++) coef[j] += part * w->step[j];
    for (int64_t i = 0; i < w->n; i++) {
        double *mass = w->mass + i * w->l->K, sum = 0;
        mass[k] *= exp(fmin(part * w->move[i], SCORE_MAX));
        for (int64_t c = 0; c < w->l->K; c++)
            sum += mass[c]; /* not old sum + change: the result may be much smaller than either */
        w->total[i] = sum;
    }
}

/* One step of class k, shortened until it gains. Returns the gain. */
static double improve(newton *w, int64_t k) {
    if (!direction(w, k)) return 0;
    double part = 1;
    for (int h = 0; h < HALVINGS; h++, part *= 0.5) {
        double gain = gain_of(w, k, part);
        if (!(gain > 0)) continue;
        take(w, k, part);
        return gain;
    }
    return 0;
}

/* Recomputes the masses before each pass, in units of each row's largest. */
static void refresh(newton *w) {
    scores(w->l, w->x, w->n, w->mass);
    for (int64_t i = 0; i < w->n; i++) w->total[i] = exponentiate(w->mass + i * w->l->K, w->l->K);
}

acf_status acf_logit_fit(acf_arena *scratch, acf_logit *l, const double *x, const int32_t *y, int64_t n, int passes) {
    acf_mark mark = acf_arena_mark(scratch);
    newton w = {.l = l, .x = x, .y = y, .n = n};
    bool capacity = newton_alloc(&w, scratch);
    double gain = INFINITY;
    for (int pass = 0; capacity && pass < passes && gain > ENOUGH * (double)n; pass++) {
        refresh(&w);
        gain = 0;
        for (int64_t k = 0; k < l->K; k++)
            if (k != l->base) gain += improve(&w, k);
    }
    acf_arena_release(scratch, mark);
    return capacity ? ACF_OK : ACF_EMEMORY;
}

void acf_logit_predict(const acf_logit *l, const double *x, int64_t n, double *out) {
    scores(l, x, n, out);
    for (int64_t i = 0; i < n; i++) {
        double total = exponentiate(out + i * l->K, l->K);
        for (int64_t k = 0; k < l->K; k++) out[i * l->K + k] /= total;
    }
}
