/* Scores of imputed cells: see metrics.h; formulas in docs/math.md, Evaluation. */
#include "infer/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A truth that equals the end of its interval counts as inside, even if interpolation of the end had a rounding
 * error. In units of the column's scale. */
#define TIE 1e-9

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *x, int64_t n) { qsort(x, (size_t)n, sizeof *x, ascending); }

/* Two passes, the second in units of the largest distance from the mean. */
double acf_metric_scale(const double *x, int64_t n, int64_t stride) {
    double mean = 0, most = 0, sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i * stride])) count++, mean += (x[i * stride] - mean) / count;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i * stride])) most = fmax(most, fabs(x[i * stride] - mean));
    if (most == 0) return 0;
    for (int64_t i = 0; i < n; i++) {
        double z = (x[i * stride] - mean) / most;
        if (!isnan(z)) sum += z * z;
    }
    return most * sqrt(sum / count);
}

/* ---- one value for each cell ------------------------------------------------------------------------------------- */

double acf_metric_nrmse(const double *truth, const double *value, int64_t n, double scale) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = (value[i] - truth[i]) / scale;
        sum += e * e;
    }
    return sqrt(sum / (double)n);
}

double acf_metric_nmae(const double *truth, const double *value, int64_t n, double scale) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs(value[i] - truth[i]) / scale;
    return sum / (double)n;
}

int64_t acf_metric_wrong(const double *truth, const double *value, int64_t n) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += value[i] != truth[i];
    return wrong;
}

/* Of all pairings of two sets of numbers, the sorted one has the least total distance. */
double acf_metric_wasserstein(const double *truth, const double *value, int64_t n, double scale, double *scratch) {
    double *a = scratch, *b = scratch + n;
    memcpy(a, truth, (size_t)n * sizeof *a);
    memcpy(b, value, (size_t)n * sizeof *b);
    sort(a, n);
    sort(b, n);
    return acf_metric_nmae(a, b, n, scale);
}

double acf_metric_variation(const double *truth, const double *value, int64_t n, int64_t C, int64_t *scratch) {
    int64_t apart = 0;
    memset(scratch, 0, (size_t)C * sizeof *scratch);
    for (int64_t i = 0; i < n; i++) scratch[(int64_t)truth[i]]++, scratch[(int64_t)value[i]]--;
    for (int64_t c = 0; c < C; c++) apart += llabs(scratch[c]);
    return 0.5 * (double)apart / (double)n;
}

/* ---- several draws ----------------------------------------------------------------------------------------------- */

/* The draws of cell i in ascending order, out (m). */
static void sorted_draws(const double *drawn, int64_t m, int64_t n, int64_t i, double *out) {
    for (int64_t k = 0; k < m; k++) out[k] = drawn[k * n + i];
    sort(out, m);
}

/* Half the mean distance of two of m sorted draws. In the sum over pairs, the k-th smallest (from 0) is k times the
 * greater one and m-1-k times the smaller. */
static double half_distance(const double *x, int64_t m, double scale) {
    double sum = 0;
    for (int64_t k = 0; k < m; k++) sum += (double)(2 * k + 1 - m) * (x[k] / scale);
    return sum / ((double)m * (double)(m - 1));
}

double acf_metric_crps(const double *truth, const double *drawn, int64_t m, int64_t n, double scale, double *scratch) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = 0;
        sorted_draws(drawn, m, n, i, scratch);
        for (int64_t k = 0; k < m; k++) off += fabs(scratch[k] - truth[i]) / scale;
        sum += off / (double)m - half_distance(scratch, m, scale);
    }
    return sum / (double)n;
}

double acf_metric_coverage(const double *truth, const double *drawn, int64_t m, int64_t n, double level, double scale,
                           const acf_shared *s, double *scratch) {
    int64_t inside = 0;
    for (int64_t i = 0; i < n; i++) {
        sorted_draws(drawn, m, n, i, scratch);
        const acf_interval in = acf_interval_of(scratch, m, level, s);
        inside += truth[i] >= in.low - TIE * scale && truth[i] <= in.high + TIE * scale;
    }
    return (double)inside / (double)n;
}

void acf_metric_mean(const double *drawn, int64_t m, int64_t n, double *value) {
    for (int64_t i = 0; i < n; i++) value[i] = 0;
    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < n; i++) value[i] += drawn[k * n + i] / (double)m;
}

void acf_metric_vote(const double *drawn, int64_t m, int64_t n, int64_t C, int64_t *scratch, double *value) {
    memset(scratch, 0, (size_t)C * sizeof *scratch);
    for (int64_t i = 0; i < n; i++) {
        int64_t best = (int64_t)drawn[i];
        for (int64_t k = 0; k < m; k++) {
            int64_t c = (int64_t)drawn[k * n + i], votes = ++scratch[c];
            if (votes > scratch[best] || (votes == scratch[best] && c < best)) best = c;
        }
        for (int64_t k = 0; k < m; k++) scratch[(int64_t)drawn[k * n + i]] = 0; /* C may be thousands, m is tens */
        value[i] = (double)best;
    }
}

/* ---- several masks ----------------------------------------------------------------------------------------------- */

acf_mean_deviation acf_metric_repeated(const double *x, int64_t n) {
    double mean = 0, sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i])) count++, mean += x[i];
    mean /= count;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i])) sum += (x[i] - mean) * (x[i] - mean);
    return (acf_mean_deviation){mean, count < 2 ? (double)NAN : sqrt(sum / (count - 1))};
}
