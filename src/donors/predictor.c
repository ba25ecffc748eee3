/* Regression prediction by one Gaussian of all columns: see predictor.h.
 *
 * Workload: up to 128 coordinates, mostly ten to thirty, a fifth of them unknown. A query is a Cholesky factorisation
 * of that fifth. EM goes through some thousand rows ITERATIONS times, P²/2 + |u|³ multiply-adds each: about 10^8 in
 * all for 12 coordinates, 10^9 for 128. */
#include "donors/predictor.h"

#include "base/arena.h"
#include "base/vector.h"
#include "ops/cholesky.h"

#include <math.h>
#include <string.h>

#define ITERATIONS 30
#define PRIOR_ROWS 3.0 /* pseudo-rows in which all coordinates are independent */
#define LEAST_VARIANCE 1e-3
#define LEAST_PIVOT 0.0
#define MARGIN 1e-9       /* share of the precision's diagonal that rounding may take away, in any elimination order */
#define LEAST_SOUND 1e-30 /* pivot: smaller ones lose digits */

/* ---- memory ---------------------------------------------------------------------------------------------------- */

acf_status acf_predictor_create(int64_t D, const int64_t *width, acf_predictor **out) {
    acf_predictor *e = acf_alloc_zero(sizeof *e, "the donor predictor");
    if (!e) return ACF_EMEMORY;
    e->D = D;
    e->first = acf_alloc_zero((size_t)(D + 1) * sizeof *e->first, "the donor predictor");
    for (int64_t j = 0; e->first && j < D; j++) e->P = e->first[j + 1] = e->first[j] + width[j];
    e->mean = acf_alloc_zero((size_t)(acf_max(e->P, 1) * (e->P + 1)) * sizeof *e->mean, "the donor predictor");
    if (!e->first || !e->mean) {
        acf_predictor_free(e);
        return ACF_EMEMORY;
    }
    e->precision = e->mean + e->P;
    *out = e;
    return ACF_OK;
}

void acf_predictor_free(acf_predictor *e) {
    if (!e) return;
    acf_release(e->first), acf_release(e->mean);
    acf_release(e);
}

acf_status acf_predictor_scratch_open(const acf_predictor *e, acf_predictor_scratch *out) {
    const size_t P = (size_t)acf_max(e->P, 1);
    *out = (acf_predictor_scratch){.d = acf_alloc((2 + P) * P * sizeof *out->d, "the donor predictor")};
    out->u = out->d ? acf_alloc(P * sizeof *out->u, "the donor predictor") : NULL;
    if (!out->u) {
        acf_predictor_scratch_close(out);
        return ACF_EMEMORY;
    }
    out->y = out->d + P, out->a = out->d + 2 * P;
    return ACF_OK;
}

void acf_predictor_scratch_close(acf_predictor_scratch *k) {
    acf_release(k->d), acf_release(k->u);
    *k = (acf_predictor_scratch){0};
}

/* ---- one row --------------------------------------------------------------------------------------------------- */

/* d = x - μ of known columns, 0 of others. u: coordinates of the others, those of column j at the end, its first one
 * last. Returns how many. */
static int64_t read_row(const acf_predictor *e, const acf_predictor_scratch *k, const double *x, const uint8_t *known,
                        int64_t j) {
    int64_t n = 0;
    for (int64_t c = 0; c < e->D; c++)
        for (int64_t p = e->first[c]; p < e->first[c + 1]; p++) {
            const bool given = known[c] && c != j;
            k->d[p] = given ? x[p] - e->mean[p] : 0;
            if (!given && c != j) k->u[n++] = (int32_t)p;
        }
    for (int64_t p = j < 0 ? 0 : e->first[j + 1]; j >= 0 && p-- > e->first[j];) k->u[n++] = (int32_t)p;
    return n;
}

/* a = the Cholesky factor L of Λ_uu, y = L⁻¹ (-Λ_uo d_o). */
static void begin(const acf_predictor *e, const acf_predictor_scratch *k, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double *row = e->precision + k->u[i] * e->P;
        for (int64_t l = 0; l <= i; l++) k->a[i * n + l] = row[k->u[l]];
        k->y[i] = -acf_inner(row, k->d, e->P);
    }
    const int64_t broken = acf_cholesky(k->a, n, LEAST_PIVOT);
    ACF_ASSERT(broken < 0);
    for (int64_t i = 0; i < n; i++) k->y[i] = (k->y[i] - acf_inner(k->a + i * n, k->y, i)) / k->a[i * n + i];
}

double acf_predictor_cell_both(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                               const uint8_t *known, int64_t j, double *variance) {
    const int64_t n = read_row(e, k, x, known, j);
    begin(e, k, n);
    const double pivot = k->a[n * n - 1];
    *variance = 1 / (pivot * pivot);
    return e->mean[k->u[n - 1]] + k->y[n - 1] / pivot;
}

double acf_predictor_cell(const acf_predictor *e, const acf_predictor_scratch *k, const double *x, const uint8_t *known,
                          int64_t j) {
    double variance;
    return acf_predictor_cell_both(e, k, x, known, j, &variance);
}

/* ---- EM -------------------------------------------------------------------------------------------------------- */

/* a (n,n), a Cholesky factor L: becomes (L Lᵀ)⁻¹, its lower half. */
static void invert(double *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) { /* L⁻¹, row by row: those above are done */
        const double by = 1 / a[i * n + i];
        for (int64_t l = 0; l < i; l++) {
            double sum = 0;
            for (int64_t k = l; k < i; k++) sum += a[i * n + k] * a[k * n + l];
            a[i * n + l] = -sum * by;
        }
        a[i * n + i] = by;
    }
    for (int64_t i = 0; i < n; i++) /* (L⁻¹)ᵀ L⁻¹: row i needs rows from i on */
        for (int64_t l = 0; l <= i; l++) {
            double sum = 0;
            for (int64_t k = i; k < n; k++) sum += a[k * n + i] * a[k * n + l];
            a[i * n + l] = sum;
        }
}

/* EM's statistics: second moments (P,P; lower half) and first (P) around the mean, and the initial variances. */
typedef struct moments {
    double *second, *first, *variance;
} moments;

static void start(acf_predictor *e, const moments *m, const double *x, const uint8_t *known, int64_t N) {
    const int64_t P = e->P;
    memset(e->precision, 0, (size_t)(P * P) * sizeof *e->precision);
    for (int64_t c = 0; c < e->D; c++)
        for (int64_t p = e->first[c]; p < e->first[c + 1]; p++) {
            double n = 0, sum = 0, square = 0;
            for (int64_t i = 0; i < N; i++)
                if (known[i * e->D + c]) n += 1, sum += x[i * P + p];
            e->mean[p] = n > 0 ? sum / n : 0;
            for (int64_t i = 0; i < N; i++)
                if (known[i * e->D + c]) square += pow(x[i * P + p] - e->mean[p], 2);
            m->variance[p] = fmax(n > 0 ? square / n : 1, LEAST_VARIANCE);
            e->precision[p * P + p] = 1 / m->variance[p];
        }
}

/* E step of a row: d_u = the predicted values; their covariance is added to the second moments. */
static void complete(const acf_predictor *e, const acf_predictor_scratch *k, const moments *m, int64_t n) {
    begin(e, k, n);
    for (int64_t i = n - 1; i >= 0; i--) {
        k->y[i] /= k->a[i * n + i];
        for (int64_t l = 0; l < i; l++) k->y[l] -= k->a[i * n + l] * k->y[i];
        k->d[k->u[i]] = k->y[i];
    }
    invert(k->a, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l <= i; l++) m->second[k->u[i] * e->P + k->u[l]] += k->a[i * n + l]; /* u ascends */
}

static void expect_rows(const acf_predictor *e, const acf_predictor_scratch *k, const moments *m, const double *x,
                        const uint8_t *known, int64_t N) {
    const int64_t P = e->P;
    memset(m->second, 0, (size_t)(P * P) * sizeof *m->second);
    memset(m->first, 0, (size_t)P * sizeof *m->first);
    for (int64_t i = 0; i < N; i++) {
        complete(e, k, m, read_row(e, k, x + i * P, known + i * e->D, -1));
        for (int64_t p = 0; p < P; p++) {
            const double d = k->d[p];
            double *restrict row = m->second + p * P;
            m->first[p] += d;
            for (int64_t l = 0; l <= p; l++) row[l] += d * k->d[l];
        }
    }
}

/* M step: mean and precision from the moments. */
static void maximise(acf_predictor *e, const moments *m, double N) {
    const int64_t P = e->P;
    for (int64_t p = 0; p < P; p++) {
        e->mean[p] += m->first[p] / N;
        for (int64_t l = 0; l <= p; l++)
            e->precision[p * P + l] =
                (m->second[p * P + l] - m->first[p] * m->first[l] / N + (p == l ? PRIOR_ROWS * m->variance[p] : 0)) /
                (N + PRIOR_ROWS);
    }
    const int64_t broken = acf_cholesky(e->precision, P, LEAST_PIVOT);
    ACF_ASSERT(broken < 0);
    invert(e->precision, P);
    for (int64_t p = 0; p < P; p++)
        for (int64_t l = 0; l < p; l++) e->precision[l * P + p] = e->precision[p * P + l];
}

void acf_predictor_variances(const acf_predictor *e, const acf_predictor_scratch *k, double *out) {
    const int64_t P = e->P;
    for (int64_t p = 0; p < P; p++) k->d[p] = 0, k->u[p] = (int32_t)p;
    begin(e, k, P);
    invert(k->a, P);
    for (int64_t p = 0; p < P; p++) out[p] = k->a[p * P + p];
}

acf_status acf_predictor_learn(acf_predictor *e, const double *x, const uint8_t *known, int64_t N) {
    const int64_t P = e->P;
    acf_predictor_scratch k = {0};
    moments m = {.second = acf_alloc((size_t)((P + 2) * acf_max(P, 1)) * sizeof *m.second, "the donor predictor")};
    if (!m.second) return ACF_EMEMORY;
    acf_status status = acf_predictor_scratch_open(e, &k);
    m.first = m.second + P * P, m.variance = m.first + P;
    if (!status) start(e, &m, x, known, N);
    for (int i = 0; !status && N > 0 && i < ITERATIONS; i++) {
        expect_rows(e, &k, &m, x, known, N);
        maximise(e, &m, (double)N);
    }
    for (int64_t i = 0; !status && i < P * (P + 1); i++)
        e->mean[i] = (double)(acf_real)e->mean[i]; /* rounded as in a file */
    acf_predictor_scratch_close(&k);
    acf_release(m.second);
    return status;
}

acf_status acf_predictor_sound(const acf_predictor *e, bool *sound) {
    const size_t size = (size_t)(e->P * e->P) * sizeof *e->precision;
    double *a = acf_alloc(size + sizeof *a, "the donor predictor");
    if (!a) return ACF_EMEMORY;
    memcpy(a, e->precision, size);
    *sound = true;
    for (int64_t i = 0; i < e->P * (e->P + 1); i++)
        *sound = *sound && isfinite(e->mean[i]); /* mean and, behind it, precision */
    for (int64_t p = 0; p < e->P; p++) {
        for (int64_t l = 0; l < p; l++) *sound = *sound && a[p * e->P + l] == a[l * e->P + p];
        a[p * e->P + p] *= 1 - MARGIN;
    }
    *sound = *sound && acf_cholesky(a, e->P, LEAST_SOUND) < 0;
    acf_release(a);
    return ACF_OK;
}
