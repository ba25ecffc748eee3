/* Densities for pictures: see density.h. Values are counted into bins first; after that the work does not depend on how many there are.
 *
 * Width of the kernel: Silverman's 0.9 · min(deviation, quartile range / 1.34) · n^(-1/5) times the one of five factors f with the largest
 *     Σ_b c_b log((Σ_b' c_b' φ_h(x_b - x_b') - φ_h(0)) / (n - 1)),     h = f · Silverman's
 * c_b: values in bin b. The sum in the middle is the density at the bin's values without one of them. */
#include "plot/density.h"

#include "base/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS 1024
#define CHOICE_BINS 256 /* for the choice of the width: coarser, because it looks at every pair of bins */
#define REACH 5.0       /* widths beyond which a kernel is 0 */

static int upwards(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

int64_t acf_values_sort(double *v, int64_t n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i])) v[kept++] = v[i];
    qsort(v, (size_t)kept, sizeof *v, upwards);
    return kept;
}

int64_t acf_values_distinct(const double *sorted, int64_t n, int64_t most) {
    int64_t distinct = n > 0;
    for (int64_t i = 1; i < n && distinct <= most; i++) distinct += sorted[i] != sorted[i - 1];
    return distinct;
}

bool acf_spike_find(const double *sorted, int64_t n, double *value, double *share) {
    int64_t best = 0, run = 0, at = 0;
    for (int64_t i = 0; i < n; i++) {
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        if (run > best) best = run, at = i;
    }
    if (best < 2 || (double)best < ACF_SPIKE_SHARE * (double)n) return false;
    *value = sorted[at];
    *share = (double)best / (double)n;
    return true;
}

int64_t acf_values_without(double *sorted, int64_t n, double value) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (sorted[i] != value) sorted[kept++] = sorted[i];
    return kept;
}

/* ---- the width ----------------------------------------------------------------------------------------------------------- */

static double quantile(const double *sorted, int64_t n, double q) {
    const double at = q * (double)(n - 1);
    const int64_t k = (int64_t)at, next = acf_min(k + 1, n - 1);
    return sorted[k] + (at - (double)k) * (sorted[next] - sorted[k]);
}

/* Halves keep the sums of the largest doubles finite. */
static double deviation(const double *sorted, int64_t n) {
    const double scale = fmax(fmax(fabs(sorted[0]), fabs(sorted[n - 1])), 1e-300);
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) sum += sorted[i] / scale;
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) square += (sorted[i] / scale - mean) * (sorted[i] / scale - mean);
    return sqrt(square / (double)n) * scale;
}

/* The spacing of rounded values; 0 where most values are their own. */
static double spacing(const double *sorted, int64_t n) {
    double least = INFINITY;
    int64_t ties = 0;
    for (int64_t i = 1; i < n; i++) {
        const double gap = sorted[i] - sorted[i - 1];
        if (gap == 0) ties++;
        else least = fmin(least, gap);
    }
    return ties > n / 2 && isfinite(least) ? least : 0;
}

static double silverman(const double *sorted, int64_t n) {
    const double sd = deviation(sorted, n), quartiles = (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / 1.34;
    return 0.9 * (quartiles > 0 ? fmin(sd, quartiles) : sd) * pow((double)n, -0.2);
}

static double kernel(double z) { return fabs(z) < REACH ? exp(-0.5 * z * z) : 0; }

/* Counts over the middle of the data, tails aside: a heavy tail would leave one bin for all the rest. */
static void choice_counts(const double *sorted, int64_t n, double lo, double step, double count[CHOICE_BINS]) {
    memset(count, 0, CHOICE_BINS * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        const double at = (sorted[i] - lo) / step;
        if (at >= 0 && at < CHOICE_BINS) count[(int)at]++;
    }
}

/* The leave-one-out log-likelihood above, h in bins. */
static double foretold(const double count[CHOICE_BINS], double h) {
    double phi[CHOICE_BINS], total = 0;
    for (int k = 0; k < CHOICE_BINS; k++) phi[k] = kernel(k / h);
    for (int b = 0; b < CHOICE_BINS; b++) {
        if (count[b] == 0) continue;
        double sum = -phi[0];
        for (int k = 0; k < CHOICE_BINS; k++) sum += count[k] * phi[abs(b - k)];
        total += count[b] * log(fmax(sum, 1e-9) / h);
    }
    return total;
}

double acf_kernel_width(const double *sorted, int64_t n) {
    if (n < 2 || sorted[0] == sorted[n - 1]) return 0;
    static const double factor[] = {1, 0.7, 0.5, 0.35, 0.25};
    const double rule = silverman(sorted, n), lo = quantile(sorted, n, 0.005), hi = quantile(sorted, n, 0.995);
    const double step = (hi - lo) * (1 + 1e-9) / CHOICE_BINS, least = 0.7 * spacing(sorted, n);
    double best = -INFINITY, width = rule, count[CHOICE_BINS];
    if (step > 0 && isfinite(step)) {
        choice_counts(sorted, n, lo, step, count);
        for (size_t k = 0; k < sizeof factor / sizeof *factor; k++) {
            const double h = fmax(factor[k] * rule, least) / step, score = foretold(count, h);
            if (score > best) best = score, width = h * step;
        }
    }
    return fmax(width, least);
}

/* ---- the curve ----------------------------------------------------------------------------------------------------------- */

/* Bins cover what can reach the drawn part; a value beyond is counted in n, so the curve is that of the whole column. */
void acf_kernel_curve(const double *sorted, int64_t n, double width, double share, const double *x, int G, double *y) {
    memset(y, 0, (size_t)G * sizeof *y);
    if (n == 0 || G == 0) return;
    const double least = sorted[0], most = sorted[n - 1];
    const double lo = fmax(x[0] - REACH * width, least), hi = fmin(x[G - 1] + REACH * width, most);
    const double step = (hi - lo) / BINS;
    if (!(hi >= lo)) return;
    double count[BINS] = {0}, scale = share / ((double)n * width * sqrt(2 * 3.14159265358979323846));
    for (int64_t i = 0; i < n; i++) {
        if (sorted[i] < lo || sorted[i] > hi) continue;
        count[step > 0 ? (int)fmin((sorted[i] - lo) / step, BINS - 1) : 0]++;
    }
    for (int g = 0; g < G; g++) {
        if (x[g] < least || x[g] > most) continue;
        for (int b = 0; b < BINS; b++) {
            if (count[b] == 0) continue;
            const double v = lo + (b + 0.5) * step; /* and its images in the two bounds */
            y[g] += count[b] * scale *
                    (kernel((x[g] - v) / width) + kernel((x[g] + v - 2 * least) / width) + kernel((x[g] + v - 2 * most) / width));
        }
    }
}
