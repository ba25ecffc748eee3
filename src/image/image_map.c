/* Maps of levels: see image_map.h.
 *
 * Workload: acf_image_map_at for every modelled channel of every training image in every step. */
#include "image/image_map.h"

#include "ops/gaussian.h"

#include <math.h>

#define SPIKE 0.05 /* share of all pixels from which a level has a Gaussian of its own */
#define REACH                                                                                                          \
    3.0             /* a Gaussian has 0.1 % of its mass beyond each inner edge, which is lost where a pixel is
                     * certain */
#define WIDE 1.5    /* standard deviation of a shared Gaussian, relative to a spike's */
#define UNSEEN 0.1  /* the same for a Gaussian whose levels never occurred: they need little space */
#define SMOOTH 0.01 /* share of a shared Gaussian that is spread evenly over its levels, whether they occurred or not */
#define LINE 0.1    /* share of a straight line in how guesses are decoded in training */
#define LEAST_DEVIATION                                                                                                \
    0.2 /* lower limit of the deviation before scaling: if nearly all pixels are alike, noise stays below size 5 */

/* ---- quantiles --------------------------------------------------------------------------------------------------- */

/* The normal quantile to about 1e-15: a rational function of sqrt(-2 log tail), fitted by least squares, with an
 * error of at most 1.2e-8 for tails above 1e-12. One step of Halley's method then cubes the error. ops/gaussian.h
 * has a version for all tails that takes five such steps. */
static double normal_quantile(double p) {
    const double tail = p < 0.5 ? p : 1 - p, s = sqrt(-2 * log(tail));
    double e = (-3.24361427 + s * (-8.80081129 + s * (3.10904855 + s * (4.85948431 + s * 0.709690583)))) /
               (1 + s * (5.84180616 + s * (4.90383985 + s * (0.708516555 + s * 2.10498406e-05))));
    const double off = (0.5 * erfc(e * M_SQRT1_2) - tail) * exp(0.5 * e * e + ACF_HALF_LOG_2PI);
    e += off / (1 - 0.5 * e * off);
    return p < 0.5 ? -e : e;
}

static double normal_cdf(double e) { return 0.5 * erfc(-e * M_SQRT1_2); }

double acf_image_map_at(const acf_image_map *m, int k, double u, double *slope) {
    const double p = m->lo[k] + m->width[k] * u;
    if (m->kind == ACF_IMAGE_LOGIT) {
        const double yes = log(p), no = log(1 - p);
        *slope = m->log_step[k] - yes - no;
        return yes - no;
    }
    const double e = normal_quantile(p);
    *slope = m->log_step[k] + 0.5 * e * e + ACF_HALF_LOG_2PI;
    return m->centre[k] + m->spread[k] * e;
}

int acf_image_map_level(const acf_image_map *m, double y) {
    int k = 0;
    for (int step = 1 << m->bits >> 1; step; step >>= 1) /* edge[k] <= y, and the level is among k .. k + 2 step - 1 */
        if (m->edge[k + step] <= y) k += step;
    return k;
}

double acf_image_map_back(const acf_image_map *m, double y) {
    const int k = acf_image_map_level(m, y);
    const double e = (y - m->centre[k]) / m->spread[k],
                 p = m->kind == ACF_IMAGE_LOGIT ? 1 / (1 + exp(-e)) : normal_cdf(e);
    const double u = (p - m->lo[k]) / m->width[k];
    return k + (!(u > 0) ? 0 : u > 1 ? 1 : u);
}

void acf_image_map_knots(const acf_image_map *m, bool guess, acf_knots *out) {
    const int top = (1 << m->bits) - 1;
    const double line = guess && m->kind == ACF_IMAGE_DEQUANTISER ? LINE : 0, begin = (double)m->middle[0],
                 end = (double)m->middle[top];
    out->n = top + 1;
    for (int k = 0; k <= top; k++) {
        out->x[k] = m->middle[k];
        out->y[k] = (acf_real)((1 - line) * k / top + line * ((double)m->middle[k] - begin) / (end - begin));
    }
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* The acf_real next to x in the direction of `to`. */
static acf_real beside(acf_real x, acf_real to) {
    return sizeof x == sizeof(float) ? (acf_real)nextafterf((float)x, (float)to)
                                     : (acf_real)nextafter((double)x, (double)to);
}

/* Computes the tables that follow from centre, spread, lo, width and edge. */
static acf_status finish(acf_image_map *m) {
    const int levels = 1 << m->bits;
    for (int k = 0; k < levels; k++) {
        double slope;
        m->first[k] = k == 0 ? -ACF_REAL_MAX : (acf_real)m->edge[k];
        if (k && (double)m->first[k] < m->edge[k]) m->first[k] = beside(m->first[k], ACF_REAL_MAX);
        if (k) m->last[k - 1] = beside(m->first[k], -ACF_REAL_MAX);
        m->log_step[k] = log(m->spread[k] * m->width[k]);
        m->middle[k] = (acf_real)acf_image_map_at(m, k, 0.5, &slope);
    }
    m->last[levels - 1] = ACF_REAL_MAX;
    for (int k = 0; k < levels; k++) /* also if a value is not finite */
        if (!(m->first[k] <= m->middle[k] && m->middle[k] <= m->last[k]) || !isfinite(m->log_step[k]))
            return acf_fail(ACF_EUSAGE, "a map of levels in which no number belongs to level %d", k);
    return ACF_OK;
}

static acf_status give(acf_image_map *m, acf_image_map **out) {
    acf_status status = finish(m);
    if (status)
        acf_release(m);
    else
        *out = m;
    return status;
}

acf_status acf_image_map_copy(const acf_image_map *m, acf_image_map **out) {
    acf_image_map *copy = acf_alloc_zero(sizeof *copy, "a map of levels");
    if (!copy) return ACF_EMEMORY;
    *copy = *m;
    *out = copy;
    return ACF_OK;
}

acf_status acf_image_map_uniform_logit(int bits, acf_image_map **out) {
    acf_image_map *m = acf_alloc_zero(sizeof *m, "a map of levels");
    if (!m) return ACF_EMEMORY;
    m->kind = ACF_IMAGE_LOGIT, m->bits = bits;
    for (int k = 0; k < 1 << bits; k++) {
        m->spread[k] = 1;
        m->lo[k] = ACF_IMAGE_ALPHA + (1 - 2 * ACF_IMAGE_ALPHA) * ldexp(k, -bits);
        m->width[k] = (1 - 2 * ACF_IMAGE_ALPHA) * ldexp(1, -bits);
        m->edge[k] = k == 0 ? -(double)INFINITY : log(m->lo[k]) - log(1 - m->lo[k]);
    }
    return give(m, out);
}

/* Gaussian j, whose levels begin with k: they divide the quantiles from lo to hi. */
static void place_gaussian(acf_image_map *m, int j, int k, double centre) {
    const acf_image_dequantiser *b = &m->dequantiser;
    const double lo = j == 0 ? 0 : normal_cdf(-b->reach), hi = j == b->n - 1 ? 1 : normal_cdf(b->reach);
    double sum = 0, below = 0;
    for (int i = k; i < k + b->levels[j]; i++) sum += b->weight[i];
    for (int i = k; i < k + b->levels[j]; i++) {
        m->centre[i] = centre, m->spread[i] = b->spread[j];
        m->lo[i] = lo + (hi - lo) * below / sum, m->width[i] = (hi - lo) * b->weight[i] / sum;
        m->edge[i] = i > k    ? centre + b->spread[j] * normal_quantile(m->lo[i])
                     : j == 0 ? -(double)INFINITY
                              : centre - b->reach * b->spread[j];
        below += b->weight[i];
    }
}

static void lay_bells(acf_image_map *m) {
    const acf_image_dequantiser *b = &m->dequantiser;
    double centre = b->centre;
    for (int j = 0, k = 0; j < b->n; k += b->levels[j++]) {
        if (j) centre += b->reach * (b->spread[j - 1] + b->spread[j]);
        place_gaussian(m, j, k, centre);
    }
}

acf_status acf_image_map_gaussian(int bits, const acf_image_dequantiser *dequantiser, acf_image_map **out) {
    acf_image_map *m = acf_alloc_zero(sizeof *m, "a map of levels");
    if (!m) return ACF_EMEMORY;
    m->kind = ACF_IMAGE_DEQUANTISER, m->bits = bits, m->dequantiser = *dequantiser;
    lay_bells(m);
    return give(m, out);
}

/* ---- from a histogram -------------------------------------------------------------------------------------------- */

static bool spiked(const int64_t *count, int k, double total) { return total > 0 && (double)count[k] >= SPIKE * total; }

/* The Gaussian of levels from..to-1, unscaled. */
static void add_gaussian(acf_image_dequantiser *b, const int64_t *count, double total, int from, int to) {
    double sum = 0;
    for (int k = from; k < to; k++) sum += (double)count[k];
    b->levels[b->n] = to - from;
    b->spread[b->n++] = sum == 0 && total > 0 ? UNSEEN : to - from == 1 ? 1 : WIDE;
    for (int k = from; k < to; k++) b->weight[k] = (double)count[k] + (SMOOTH * sum + 1) / (to - from);
}

/* Mean and deviation of the counted levels in y, each level at its middle. */
static void moments(int bits, const acf_image_dequantiser *b, const int64_t *count, double *mean, double *deviation) {
    acf_image_map m = {.kind = ACF_IMAGE_DEQUANTISER, .bits = bits, .dequantiser = *b};
    double n = 0, sum = 0, square = 0, slope;
    lay_bells(&m);
    for (int k = 0; k < 1 << bits; k++) {
        const double y = acf_image_map_at(&m, k, 0.5, &slope), c = (double)count[k];
        n += c, sum += c * y, square += c * y * y;
    }
    *mean = n > 0 ? sum / n : 0;
    *deviation = n > 0 ? sqrt(fmax(0, square / n - *mean * *mean)) : 1;
}

void acf_image_dequantiser_fit(int bits, const int64_t *count, acf_image_dequantiser *out) {
    const int levels = 1 << bits;
    double total = 0, mean, deviation;
    *out = (acf_image_dequantiser){.reach = REACH};
    for (int k = 0; k < levels; k++) total += (double)count[k];
    for (int k = 0, end; k < levels; k = end) {
        end = k + 1;
        if (!spiked(count, k, total))
            while (end < levels && !spiked(count, end, total)) end++;
        add_gaussian(out, count, total, k, end);
    }
    moments(bits, out, count, &mean, &deviation);
    deviation = fmax(deviation, LEAST_DEVIATION);
    out->centre = -mean / deviation;
    for (int j = 0; j < out->n; j++) out->spread[j] /= deviation;
}
