/* Densities for pictures: see density.h. Values are first counted into bins; the remaining work does not depend on
 * their number.
 *
 * Width of the kernel: Silverman's 0.9 · min(deviation, quartile range / 1.34) · n^(-1/5) times the one of five
 * factors f with the largest
 *     Σ_b c_b log((Σ_b' c_b' φ_h(x_b - x_b') - φ_h(0)) / (n - 1)),     h = f · Silverman's
 * c_b: values in bin b. The inner sum is the density at the bin's values without one of them. */
#include "plot/density.h"

#include "base/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS 1024
#define CHOICE_BINS 256 /* for the choice of the width: coarser, because all pairs of bins are visited */
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

/* ---- the width --------------------------------------------------------------------------------------------------- */

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

/* The spacing of rounded values; 0 if most values are unique. */
static double spacing(const double *sorted, int64_t n) {
    double least = INFINITY;
    int64_t ties = 0;
    for (int64_t i = 1; i < n; i++) {
        const double gap = sorted[i] - sorted[i - 1];
        if (gap == 0)
            ties++;
        else
            least = fmin(least, gap);
    }
    return ties > n / 2 && isfinite(least) ? least : 0;
}

static double silverman(const double *sorted, int64_t n) {
    const double sd = deviation(sorted, n), quartiles = (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / 1.34;
    return 0.9 * (quartiles > 0 ? fmin(sd, quartiles) : sd) * pow((double)n, -0.2);
}

static double kernel(double z) { return fabs(z) < REACH ? exp(-0.5 * z * z) : 0; }

/* Bins for the choice of the width. They cover the middle of the data, since a heavy tail would leave one bin for the
 * rest. Their number is the number of rounded values or a multiple of it, because bins that hold one rounded value more
 * than their neighbours look like modes. */
typedef struct choice {
    double lo, step, count[CHOICE_BINS];
    int n;
} choice;

static bool choice_make(const double *sorted, int64_t n, double unit, choice *out) {
    const double lo = quantile(sorted, n, 0.005), hi = quantile(sorted, n, 0.995);
    double step = (hi - lo) / (CHOICE_BINS - 2);
    if (unit > 0) step = unit * ceil(step / unit);
    if (!(step > 0) || !isfinite(step)) return false;
    *out = (choice){
        .lo = lo - (unit > 0 ? unit / 2 : 0), .step = step, .n = (int)fmin(ceil((hi - lo) / step) + 1, CHOICE_BINS)};
    for (int64_t i = 0; i < n; i++) {
        const double at = (sorted[i] - out->lo) / step;
        if (at >= 0 && at < out->n) out->count[(int)at]++;
    }
    return true;
}

/* The leave-one-out log-likelihood above, reflected at both ends, so that the truncation affects all widths alike. */
static double leave_one_out_likelihood(const choice *c, double width) {
    const double h = width / c->step;
    double phi[2 * CHOICE_BINS], total = 0;
    for (int k = 0; k < 2 * c->n; k++) phi[k] = kernel(k / h);
    for (int b = 0; b < c->n; b++) {
        if (c->count[b] == 0) continue;
        double sum = -phi[0];
        for (int k = 0; k < c->n; k++)
            sum += c->count[k] * (phi[abs(b - k)] + phi[b + k + 1] + phi[2 * c->n - 1 - b - k]);
        total += c->count[b] * log(fmax(sum, 1e-9) / h);
    }
    return total;
}

#define LEAST_GAIN 3.0 /* least gain of a narrower kernel in nats: less is chance */

double acf_kde_width(const double *sorted, int64_t n) {
    if (n < 2 || sorted[0] == sorted[n - 1]) return 0;
    static const double factor[] = {1, 0.7, 0.5, 0.35, 0.25};
    const double rule = silverman(sorted, n), unit = spacing(sorted, n);
    choice c;
    if (!choice_make(sorted, n, unit, &c)) return fmax(rule, unit);
    const double least = c.step;
    double width = fmax(rule, least), best = leave_one_out_likelihood(&c, width);
    for (size_t k = 1; k < sizeof factor / sizeof *factor; k++) {
        const double narrower = fmax(factor[k] * rule, least), score = leave_one_out_likelihood(&c, narrower);
        if (score > best + LEAST_GAIN) best = score, width = narrower;
    }
    return width;
}

/* ---- densities given on a grid ----------------------------------------------------------------------------------- */

#define SAMPLE 1000 /* sample size for Silverman's rule: 0.23 deviations */

/* Standard deviation of the smoothing kernel, in points: Silverman's for the density. */
static double smoothing_width(const double *p, int G) {
    double all = 0, mean = 0, square = 0, sum = 0, quarter[2] = {0, 0};
    for (int g = 0; g < G; g++) all += p[g], mean += p[g] * g;
    if (!(all > 0) || !isfinite(all)) return 0;
    mean /= all;
    for (int g = 0; g < G; g++) {
        square += p[g] * (g - mean) * (g - mean);
        if (sum < 0.25 * all) quarter[0] = g;
        if (sum < 0.75 * all) quarter[1] = g;
        sum += p[g];
    }
    const double deviation = sqrt(square / all), middle = (quarter[1] - quarter[0]) / 1.34;
    return 0.9 * (middle > 0 ? fmin(deviation, middle) : deviation) * pow(SAMPLE, -0.2);
}

void acf_curve_smooth(const double *p, int G, double *out) {
    const double width = smoothing_width(p, G);
    const int reach = (int)fmin(REACH * width, G - 1);
    memset(out, 0, (size_t)G * sizeof *out);
    for (int g = 0; g < G; g++) { /* each point is spread with its full weight, so the area stays */
        double whole = 0;
        for (int k = -reach; k <= reach; k++) whole += width > 0 ? kernel(k / width) : 1;
        for (int k = -reach; k <= reach; k++) {
            const int to = g + k < 0 ? -1 - g - k : g + k >= G ? 2 * G - 1 - g - k : g + k;
            out[to] += p[g] * (width > 0 ? kernel(k / width) : 1) / whole;
        }
    }
}

/* ---- the curve --------------------------------------------------------------------------------------------------- */

acf_kde acf_kde_of(const double *a, int64_t n_a, const double *b, int64_t n_b) {
    acf_kde k = {.least = INFINITY, .most = -INFINITY, .share = 1};
    if (n_a > 0) k.least = a[0], k.most = a[n_a - 1];
    if (n_b > 0) k.least = fmin(k.least, b[0]), k.most = fmax(k.most, b[n_b - 1]);
    return k;
}

/* Bins cover all values that reach the drawn part. Values beyond are counted in n, so the curve is that of the whole
 * column. */
void acf_kde_curve(const double *sorted, int64_t n, acf_kde k, const double *x, int G, double *y) {
    memset(y, 0, (size_t)G * sizeof *y);
    if (n == 0 || G == 0 || !(k.width > 0)) return;
    const double width = k.width, least = k.least, most = k.most;
    const double lo = fmax(x[0] - REACH * width, least), hi = fmin(x[G - 1] + REACH * width, most);
    const double step = (hi - lo) / BINS;
    if (!(hi >= lo)) return;
    double count[BINS] = {0}, scale = k.share / ((double)n * width * sqrt(2 * 3.14159265358979323846));
    for (int64_t i = 0; i < n; i++) {
        if (sorted[i] < lo || sorted[i] > hi) continue;
        count[step > 0 ? (int)fmin((sorted[i] - lo) / step, BINS - 1) : 0]++;
    }
    for (int g = 0; g < G; g++) {
        if (x[g] < least || x[g] > most) continue;
        for (int b = 0; b < BINS; b++) {
            if (count[b] == 0) continue;
            const double v = lo + (b + 0.5) * step; /* and its reflections at the two bounds */
            y[g] += count[b] * scale *
                    (kernel((x[g] - v) / width) + kernel((x[g] + v - 2 * least) / width) +
                     kernel((x[g] + v - 2 * most) / width));
        }
    }
}
