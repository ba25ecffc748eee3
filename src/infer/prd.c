/* Precision and recall of distributions: see prd.h. */
#include "infer/prd.h"

#include "infer/clusters.h"
#include "table/npy.h"

#include <math.h>
#include <string.h>

#define EDGE 1e-10 /* of the angles: 0 and a right angle have no slope */
#define ROWS 256   /* read at a time */

/* ---- curves ------------------------------------------------------------------------------------------------------ */

/* Precision at slope s is the sum of min(s p, q), recall that of min(p, q/s). */
void acf_prd_add(acf_prd *prd, const double *p, const double *q, int K) {
    for (int a = 0; a < ACF_PRD_ANGLES; a++) {
        const double angle = EDGE + (M_PI / 2 - 2 * EDGE) * a / (ACF_PRD_ANGLES - 1), slope = tan(angle);
        double precision = 0;
        for (int k = 0; k < K; k++) precision += fmin(slope * p[k], q[k]);
        prd->precision[a] += precision, prd->recall[a] += precision / slope;
    }
    prd->curves++;
}

double acf_prd_f(const acf_prd *prd, double beta) {
    double best = 0;
    if (!prd->curves) return NAN;
    for (int a = 0; a < ACF_PRD_ANGLES; a++) {
        const double p = prd->precision[a] / (double)prd->curves, r = prd->recall[a] / (double)prd->curves;
        if (p + r > 0) best = fmax(best, (1 + beta * beta) * p * r / (beta * beta * p + r));
    }
    return fmin(best, 1); /* sums of shares have rounding errors */
}

/* ---- two sets ---------------------------------------------------------------------------------------------------- */

/* x (N + M, F): both sets around their common mean, in units of their deviation over all numbers, so that distances
 * are about 1 in any unit. Columns keep their proportions. */
static void centre(acf_real *x, const acf_real *real, int64_t N, const acf_real *done, int64_t M, int64_t F,
                   double *mean) {
    double square = 0;
    memset(mean, 0, (size_t)F * sizeof *mean);
    for (int64_t i = 0; i < N + M; i++)
        for (int64_t f = 0; f < F; f++)
            mean[f] += (double)(i < N ? real[i * F + f] : done[(i - N) * F + f]) / (double)(N + M);
    for (int pass = 0; pass < 2; pass++) { /* the second with the scale of the first */
        const double scale = square > 0 ? 1 / sqrt(square) : 1;
        for (int64_t i = 0; i < N + M; i++)
            for (int64_t f = 0; f < F; f++) {
                const double v = ((double)(i < N ? real[i * F + f] : done[(i - N) * F + f]) - mean[f]) * scale;
                if (pass)
                    x[i * F + f] = (acf_real)v;
                else
                    square += v * v / (double)((N + M) * F);
            }
    }
}

/* Shares of the n points in each cluster. */
static void shares(const int32_t *of, int64_t n, double *out) {
    for (int k = 0; k < ACF_PRD_CLUSTERS; k++) out[k] = 0;
    for (int64_t i = 0; i < n; i++) out[of[i]] += 1 / (double)n;
}

acf_status acf_prd_compare(acf_device *dev, const acf_real *real, int64_t N, const acf_real *done, int64_t M, int64_t F,
                           uint64_t seed, acf_prd *prd) {
    acf_prd *curve = acf_alloc_zero(sizeof *curve, "a curve of precision and recall");
    acf_real *x = acf_alloc((size_t)((N + M) * F) * sizeof *x, "features");
    double *mean = acf_alloc((size_t)F * sizeof *mean, "features");
    int32_t *of = acf_alloc((size_t)(N + M) * sizeof *of, "clusters");
    acf_status status = curve && x && mean && of ? ACF_OK : ACF_EMEMORY;
    if (!status) centre(x, real, N, done, M, F, mean);
    for (uint32_t run = 0; run < ACF_PRD_RUNS && !status; run++) {
        double p[ACF_PRD_CLUSTERS], q[ACF_PRD_CLUSTERS];
        status = acf_clusters_find(dev, x, N + M, F, ACF_PRD_CLUSTERS, seed, run, of, NULL);
        if (status) break;
        shares(of, N, p), shares(of + N, M, q);
        acf_prd_add(curve, p, q, ACF_PRD_CLUSTERS);
    }
    for (int a = 0; a < ACF_PRD_ANGLES && !status; a++)
        prd->precision[a] += curve->precision[a] / ACF_PRD_RUNS, prd->recall[a] += curve->recall[a] / ACF_PRD_RUNS;
    if (!status) prd->curves++;
    acf_release(curve), acf_release(x), acf_release(mean), acf_release(of);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static acf_status read_rows(acf_npy *f, const char *path, acf_real *x, double *rows) {
    const int64_t N = acf_npy_rows(f), F = acf_npy_columns(f);
    for (int64_t at = 0; at < N; at += ROWS) {
        const int64_t n = acf_min(ROWS, N - at);
        ACF_TRY(acf_npy_read(f, at, n, rows));
        for (int64_t k = 0; k < n * F; k++) {
            x[at * F + k] = (acf_real)rows[k];
            if (!isfinite(x[at * F + k]))
                return acf_fail(ACF_EDATA,
                                "%s: row %lld, column %lld (both from 0) is %g; features must be finite numbers", path,
                                (long long)(at + k / F), (long long)(k % F), rows[k]);
        }
    }
    return ACF_OK;
}

acf_status acf_prd_read(const char *path, acf_real **x, int64_t *N, int64_t *F) {
    acf_npy *f;
    acf_real *all = NULL;
    double *rows = NULL;
    int64_t count;
    size_t bytes;
    acf_status status = ACF_OK;
    ACF_TRY(acf_npy_open(path, &f));
    *N = acf_npy_rows(f), *F = acf_npy_columns(f);
    if (acf_npy_dimensions(f) != 2)
        status = acf_fail(ACF_EDATA, "%s: an array of %d dimension%s; expected features, (images, features)", path,
                          acf_npy_dimensions(f), acf_npy_dimensions(f) == 1 ? "" : "s");
    else if (*N < 1)
        status = acf_fail(ACF_EDATA, "%s: it holds no row; expected one for each image", path);
    else if (__builtin_mul_overflow(*N, *F, &count) || !acf_bytes(count, sizeof *all, &bytes))
        status = ACF_EMEMORY;
    else if (!(all = acf_alloc(bytes, "features")) ||
             !(rows = acf_alloc((size_t)(ROWS * *F) * sizeof *rows, "features")))
        status = ACF_EMEMORY;
    else
        status = read_rows(f, path, all, rows);
    acf_release(rows);
    acf_npy_close(f);
    if (status)
        acf_release(all);
    else
        *x = all;
    return status;
}
