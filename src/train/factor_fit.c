/* Factor analysis: see factor_fit.h; formulas in docs/math.md.
 *
 * Workload: 1e2 to 2e4 rows, 57 to some thousand columns, 1 to 64 factors. First the posterior of f for every row, then
 * the regression on f for every column, with rows in order. So nothing is summed across threads. Between the two halves
 * only a row's second moments are stored, r²/2 doubles. */
#include "train/factor_fit.h"

#include "base/vector.h"
#include "device/cpu.h"
#include "ops/cholesky.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define ITERATIONS 40
#define ENOUGH 3e-5    /* gain of an iteration, in nats per seen cell, that ends EM */
#define WORTH 0.003    /* gain of more factors, in nats per cell, that justifies them */
#define PRIOR_LOAD 3.0 /* pseudo-rows in which a column does not follow a factor */
#define PRIOR_ROWS 2.0 /* pseudo-rows of a column's variance */
#define PRIOR_VARIANCE 0.3
#define START 0.3 /* deviation of the initial loadings */
#define LOG_2PI 1.83787706640934548356

acf_status acf_analysis_create(int64_t D, int64_t r, acf_analysis *out) {
    double *p = acf_alloc_zero((size_t)(D * (2 + r)) * sizeof *p, "the factor analysis");
    if (!p) return ACF_EMEMORY;
    *out = (acf_analysis){D, r, p, p + 2 * D, p + D};
    return ACF_OK;
}

void acf_analysis_free(acf_analysis *g) { acf_release(g->mean); }

/* ---- posterior of a row's factors ------------------------------------------------------------------------------ */

/* A thread's scratch, for rows and then for columns; q = r + 1: the factors and, last, the constant 1. */
typedef struct scratch {
    double *a, *b, *y; /* (q,q) (q,q) (q) */
} scratch;

static int64_t scratch_doubles(int64_t r) { return 2 * (r + 1) * (r + 1) + r + 1 + 8; }
static scratch desk_at(double *memory, int64_t r) {
    double *p = memory + omp_get_thread_num() * scratch_doubles(r);
    const int64_t q = r + 1;
    return (scratch){p, p + q * q, p + 2 * q * q};
}

static int64_t tri(int64_t n) { return n * (n + 1) / 2; }

/* y = G⁻¹ y, and G⁻ᵀ y, for a Cholesky factor G (n,n). */
static void solve_lower(const double *g, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = (y[i] - acf_inner(g + i * n, y, i)) / g[i * n + i];
    }
}
static void solve_upper(const double *g, double *y, int64_t n) {
    for (int64_t i = n - 1; i >= 0; i--) {
        y[i] /= g[i * n + i];
        ACF_SIMD
        for (int64_t j = 0; j < i; j++) y[j] -= g[i * n + j] * y[i];
    }
}

/* From the row's seen cells, or also its held-out ones: G (d->a) with G Gᵀ = I + Σ λλᵀ/ψ, the precision of f, and
 * d->y = G⁻¹ Σ λ(x - μ)/ψ. Returns the cells' log p. A precision is at least I, so factorisation cannot fail. */
static double read_row(const scratch *d, const acf_sample *s, const acf_analysis *g, int64_t row, bool held) {
    const int64_t D = g->D, r = g->r;
    double sum = 0;
    memset(d->a, 0, (size_t)(r * r) * sizeof *d->a);
    memset(d->y, 0, (size_t)r * sizeof *d->y);
    for (int64_t k = 0; k < r; k++) d->a[k * r + k] = 1;
    for (int64_t j = 0; j < D; j++) {
        const uint8_t seen = s->seen[row * D + j];
        if (seen != ACF_GMM_CELL_SEEN && !(held && seen == ACF_GMM_CELL_HELD)) continue;
        const double *l = g->load + j * r, by = 1 / g->var[j], e = s->x[row * D + j] - g->mean[j];
        sum -= 0.5 * (LOG_2PI + log(g->var[j]) + e * e * by);
        for (int64_t k = 0; k < r; k++) {
            const double lk = l[k] * by;
            double *a = d->a + k * r;
            d->y[k] += lk * e;
            ACF_SIMD
            for (int64_t i = 0; i <= k; i++) a[i] += lk * l[i];
        }
    }
    acf_cholesky(d->a, r, 0);
    solve_lower(d->a, d->y, r);
    for (int64_t k = 0; k < r; k++) sum += 0.5 * d->y[k] * d->y[k] - log(d->a[k * r + k]);
    return sum;
}

/* Second moments of (f, 1) of the row that d has read, to e (tri(r+1)), row by row of the lower half. */
static void moments(const scratch *d, int64_t r, double *e) {
    double *inverse = d->b;     /* row k: column k of G⁻¹, which begins at k */
    solve_upper(d->a, d->y, r); /* y = expected f */
    for (int64_t k = 0; k < r; k++) {
        double *c = inverse + k * r;
        for (int64_t i = k; i < r; i++) {
            c[i] = ((i == k) - acf_inner(d->a + i * r + k, c + k, i - k)) / d->a[i * r + i];
        }
    }
    for (int64_t k = 0; k < r; k++)
        for (int64_t i = 0; i <= k; i++) { /* (G Gᵀ)⁻¹ = G⁻ᵀ G⁻¹ */
            e[tri(k) + i] = d->y[k] * d->y[i] + acf_inner(inverse + k * r + k, inverse + i * r + k, r - k);
        }
    for (int64_t k = 0; k < r; k++) e[tri(r) + k] = d->y[k];
    e[tri(r) + r] = 1;
}

/* ---- regression of a column ------------------------------------------------------------------------------------ */

/* Column j regressed on the rows' factors, e (R,tri(r+1)). */
static void regress(const scratch *d, const acf_sample *s, const double *e, acf_analysis *g, int64_t j) {
    const int64_t D = g->D, r = g->r, q = r + 1, size = tri(q);
    double *sum = d->b, *b = d->y, squares = 0, rows = 0;
    memset(sum, 0, (size_t)size * sizeof *sum);
    memset(b, 0, (size_t)q * sizeof *b);
    for (int64_t row = 0; row < s->R; row++) {
        if (s->seen[row * D + j] != ACF_GMM_CELL_SEEN) continue;
        const double x = s->x[row * D + j], *of = e + row * size;
        ACF_SIMD
        for (int64_t i = 0; i < size; i++) sum[i] += of[i];
        ACF_SIMD
        for (int64_t k = 0; k < q; k++) b[k] += x * of[tri(r) + k];
        squares += x * x, rows += 1;
    }
    for (int64_t k = 0; k < q; k++) {
        memcpy(d->a + k * q, sum + tri(k), (size_t)(k + 1) * sizeof *sum);
        d->a[k * q + k] += k < r ? PRIOR_LOAD : 1e-3;
    }
    acf_cholesky(d->a, q, 0);
    solve_lower(d->a, b, q);
    for (int64_t k = 0; k < q; k++) squares -= b[k] * b[k]; /* the residual: Σx² - λᵀ A λ */
    solve_upper(d->a, b, q);
    memcpy(g->load + j * r, b, (size_t)r * sizeof *b);
    g->mean[j] = b[r];
    g->var[j] = (fmax(squares, 0) + PRIOR_ROWS * PRIOR_VARIANCE) / (rows + PRIOR_ROWS);
}

/* Rescales the factors to variance 1 and mean 0 over all rows: the same Gaussian, and far fewer iterations. */
static void standardise(const scratch *d, const acf_sample *s, const double *e, acf_analysis *g) {
    const int64_t r = g->r, size = tri(r + 1);
    double *m = d->a, *mean = d->y, *row = d->b;
    memset(row, 0, (size_t)size * sizeof *row);
    for (int64_t i = 0; i < s->R; i++)
        for (int64_t k = 0; k < size; k++) row[k] += e[i * size + k] / (double)s->R;
    memcpy(mean, row + tri(r), (size_t)r * sizeof *mean);
    for (int64_t k = 0; k < r; k++)
        for (int64_t i = 0; i <= k; i++) m[k * r + i] = row[tri(k) + i] - mean[k] * mean[i];
    if (acf_cholesky(m, r, 1e-12) >= 0) return;
    for (int64_t j = 0; j < g->D; j++) {
        double *l = g->load + j * r;
        for (int64_t k = 0; k < r; k++) g->mean[j] += l[k] * mean[k];
        for (int64_t k = 0; k < r; k++) { /* l Gᵐ; entries below k are no longer needed */
            double sum = 0;
            for (int64_t i = k; i < r; i++) sum += l[i] * m[i * r + k];
            l[k] = sum;
        }
    }
}

acf_status acf_analysis_step(const acf_device *dev, const acf_sample *s, acf_analysis *g, double *logp) {
    const int64_t r = g->r, size = tri(r + 1);
    double *e = acf_alloc((size_t)(s->R * (size + 1)) * sizeof *e, "moments of the factors"),
           *lp = e ? e + s->R * size : NULL;
    double *memory = acf_alloc((size_t)(dev->threads * scratch_doubles(r)) * sizeof *memory, "scratch of factors");
    const bool ok = e && memory;
    if (ok) {
        ACF_PARALLEL_UNEVEN(dev, s->R * g->D * r * r)
        for (int64_t row = 0; row < s->R; row++) {
            const scratch d = desk_at(memory, r);
            lp[row] = read_row(&d, s, g, row, false);
            moments(&d, r, e + row * size);
        }
        ACF_PARALLEL_UNEVEN(dev, s->R * g->D * r * r)
        for (int64_t j = 0; j < g->D; j++) {
            const scratch d = desk_at(memory, r);
            regress(&d, s, e, g, j);
        }
        const scratch d = desk_at(memory, r);
        standardise(&d, s, e, g);
        *logp = 0;
        for (int64_t row = 0; row < s->R; row++) *logp += lp[row] / (double)s->R;
    }
    acf_release(e);
    acf_release(memory);
    return ok ? ACF_OK : ACF_EMEMORY;
}

acf_status acf_analysis_score(const acf_device *dev, const acf_sample *s, const acf_analysis *g, double *logp) {
    double *lp = acf_alloc((size_t)s->R * sizeof *lp, "log p of rows"), sum = 0;
    double *memory = acf_alloc((size_t)(dev->threads * scratch_doubles(g->r)) * sizeof *memory, "scratch of factors");
    const bool ok = lp && memory;
    int64_t cells = 0;
    if (ok) {
        ACF_PARALLEL_UNEVEN(dev, s->R * g->D * g->r * g->r)
        for (int64_t row = 0; row < s->R; row++) {
            const scratch d = desk_at(memory, g->r);
            lp[row] = read_row(&d, s, g, row, true);
            lp[row] -= read_row(&d, s, g, row, false);
        }
        for (int64_t row = 0; row < s->R; row++) sum += lp[row];
        for (int64_t i = 0; i < s->R * s->D; i++) cells += s->seen[i] == ACF_GMM_CELL_HELD;
        *logp = cells ? sum / (double)cells : 0;
    }
    acf_release(lp);
    acf_release(memory);
    return ok ? ACF_OK : ACF_EMEMORY;
}

/* ---- the whole fit --------------------------------------------------------------------------------------------- */

/* Initialises g with the result of `fewer` and some more factors of small random loadings; without it, with independent
 * columns of variance 1. */
static void begin(acf_analysis *g, const acf_analysis *fewer, uint64_t seed) {
    for (int64_t j = 0; j < g->D; j++) {
        g->mean[j] = fewer->r ? fewer->mean[j] : 0, g->var[j] = fewer->r ? fewer->var[j] : 1;
        for (int64_t k = 0; k < g->r; k++) {
            const acf_rng_counter at = {
                .seed = seed, .row = (uint64_t)j, .stream = ACF_STREAM_INIT, .column = (uint32_t)k};
            g->load[j * g->r + k] =
                k < fewer->r ? fewer->load[j * fewer->r + k] : START * sqrt(g->var[j]) * acf_rng_normal(at);
        }
    }
}

/* EM until the gain is small. *logp: mean log-likelihood of a row at the end. */
static acf_status iterate(const acf_device *dev, const acf_sample *s, acf_analysis *g, double cells, double *logp) {
    double before = -INFINITY;
    for (int i = 0; i < ITERATIONS; i++) {
        ACF_TRY(acf_analysis_step(dev, s, g, logp));
        if (i > 5 && *logp - before < ENOUGH * cells) break;
        before = *logp;
    }
    return ACF_OK;
}

/* The score of g per cell: of the held-out cells, or the likelihood less the criterion's penalty. */
static acf_status judge(const acf_device *dev, const acf_sample *s, const acf_analysis *g, double logp, double cells,
                        double *score) {
    if (acf_sample_held(s)) return acf_analysis_score(dev, s, g, score);
    const double numbers = (double)(g->D * (2 + g->r) - g->r * (g->r - 1) / 2);
    *score = (logp - 0.5 * numbers * log((double)s->R) / (double)s->R) / cells;
    return ACF_OK;
}

acf_status acf_analysis_choose(const acf_device *dev, const acf_sample *s, uint64_t seed, int64_t most, int64_t wanted,
                               acf_analysis *best, double *score) {
    acf_analysis found = {0};
    acf_status status = ACF_OK;
    double top = -INFINITY, cells = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) cells += s->seen[i] == ACF_GMM_CELL_SEEN;
    cells = fmax(cells / (double)s->R, 1e-9);
    if (wanted) most = acf_min(most, wanted);
    for (int64_t r = 1; r > found.r; r = acf_min(2 * r, most)) {
        acf_analysis g;
        double logp, its = 0;
        ACF_TRY_DONE(acf_analysis_create(s->D, r, &g));
        begin(&g, &found, seed);
        status = iterate(dev, s, &g, cells, &logp);
        if (!status && !wanted) status = judge(dev, s, &g, logp, cells, &its);
        const bool better = !status && (wanted || r == 1 || its > top + WORTH);
        acf_analysis_free(better ? &found : &g);
        if (!better) break;
        found = g, top = its;
    }
done:
    if (status)
        acf_analysis_free(&found);
    else
        *best = found, *score = top;
    return status;
}
