/* Normal scores: see normal_scores.h. Fitting a column of 1e5 values takes about 20 ms, mostly normal quantiles.
 * Mapping a value forward or back takes about 20 ns. */
#include "table/normal_scores.h"

#include "base/arena.h"
#include "base/real.h"
#include "ops/gaussian.h"
#include "table/bounds.h"
#include "table/tail.h"

#include <math.h>
#include <string.h>

/* distance from the mean, in deviations, and share of one value: a column that exceeds neither keeps the identity */
#define OUTLIER 5.0
#define SPIKE 0.1
#define FEW 3      /* a column with at most this many different values is a choice between them, not a distribution */
#define PRIOR 10.0 /* number of observations that the prior counts for */
#define MISS 0.02  /* largest distance of line and curve in z, besides half a standard error of the curve */
#define FAR 4.0    /* largest |z| of the curve: one observation in 30,000 lies beyond */
#define GRID 0.2 /* largest distance in z between the points where line and curve are compared, inside a spread value */
#define LEADING 14           /* knots that lead to an end */
#define LEAD_RATIO (2.0 / 3) /* distance of a knot to the end, relative to that of the knot before */
#define NEAR 0.25            /* where the tail is the identity, the map bends at most this far from its end */
#define PILE_LEAST 4.0       /* least number of cells, and least share, that make a pile at an end */
#define PILE_SHARE 0.01
#define STEEP 1e-12 /* least distance of two knots, in t relative to its size and in z: slopes stay within 1e±13 */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

acf_status acf_normal_scores_create(int32_t n, acf_normal_scores *out) {
    double *both = acf_alloc((size_t)acf_max(n, 1) * 2 * sizeof *both, "an encoder");
    if (!both) return ACF_EMEMORY;
    *out = (acf_normal_scores){n, both, both + n};
    return ACF_OK;
}

void acf_normal_scores_free(acf_normal_scores *w) {
    acf_release(w->t);
    *w = (acf_normal_scores){0};
}

bool acf_normal_scores_valid(const acf_normal_scores *w) {
    for (int32_t k = 0; k < w->n; k++) {
        if (!isfinite(w->t[k]) || !isfinite(w->z[k])) return false;
        if (k == 0) continue;
        double slope = (w->z[k] - w->z[k - 1]) / (w->t[k] - w->t[k - 1]);
        if (!(w->t[k] > w->t[k - 1] && w->z[k] > w->z[k - 1] && slope > 0 && isfinite(slope))) return false;
    }
    return w->n != 1;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

double acf_normal_scores_forward(const acf_normal_scores *w, double t) {
    return w->n ? acf_knots_at(w->t, w->z, w->n, t) : t;
}
double acf_normal_scores_inverse(const acf_normal_scores *w, double z) {
    return w->n ? acf_knots_at(w->z, w->t, w->n, z) : z;
}

double acf_normal_scores_log_slope(const acf_normal_scores *w, double t) {
    if (!w->n) return 0;
    int32_t k = acf_knots_piece(w->t, w->n, t);
    return log((w->z[k + 1] - w->z[k]) / (w->t[k + 1] - w->t[k]));
}

/* ---- the curve: points (t, z) on it, and their standard error ---------------------------------------------------- */

typedef struct curve {
    int64_t n; /* observations */
    int64_t points;
    double *t, *z, *miss; /* (points) miss: largest allowed distance of the line from z here */
} curve;

/* z of a point with `below` of the observations below t and `above` above it; both may be fractions. */
static double normal_score(double t, double below, double above) {
    double all = below + above + PRIOR;
    bool upper = above < below;
    double tail = ((upper ? above : below) + PRIOR * acf_normal_tail(t, upper)) / all;
    double e = acf_normal_quantile(fmax(tail, 1e-30), upper);
    return fmin(fmax(e, -FAR), FAR);
}

/* Beyond its limits the curve is flat. Points there are left out, except the first and the last. */
static void add_point(curve *c, double t, double below) {
    double n = (double)c->n, z = normal_score(t, below, n - below), share = acf_normal_tail(z, false);
    double density = exp(-0.5 * z * z - ACF_HALF_LOG_2PI), error = sqrt(share * (1 - share) / n) / density;
    int64_t k = c->points;
    if (k > 0 && !(t > c->t[k - 1])) return;
    c->t[k] = t, c->z[k] = z, c->miss[k] = MISS + 0.5 * error;
    c->points++;
}

/* Adds points between two points of a spread value. The number of observations below grows evenly from `from` to `to`,
 * so the curve bends; it is compared with its line at steps of GRID in z. At most 2 FAR / GRID points in all. */
static void add_between(curve *c, double t0, double from, double t1, double to) {
    double z0 = normal_score(t0, from, (double)c->n - from), z1 = normal_score(t1, to, (double)c->n - to);
    int parts = (int)((z1 - z0) / GRID) + 1;
    double lo = acf_normal_tail(z0, false), hi = acf_normal_tail(z1, false);
    for (int i = 1; i < parts; i++) {
        double share = (acf_normal_tail(z0 + (z1 - z0) * i / parts, false) - lo) / (hi - lo);
        add_point(c, t0 + share * (t1 - t0), from + share * (to - from));
    }
    add_point(c, t1, to);
}

/* Number of observations below v when each is spread evenly over the step around it. *first is the first observation
 * that is not wholly below v; keep it for the next call with a larger v. */
static double count_below(const double *t, int64_t n, double step, double v, int64_t *first) {
    while (*first < n && t[*first] + step / 2 <= v) ++*first;
    double below = (double)*first;
    for (int64_t i = *first; i < n && t[i] - step / 2 < v; i++) below += (v - (t[i] - step / 2)) / step;
    return below;
}

/* Spread values: points at both ends of every value. The outermost value gives only its middle unless values pile up
 * there. Otherwise everything farther out would be spread over its own step, and the fitted tail would end there. */
static void trace_steps(curve *c, const double *t, double step) {
    const int64_t n = c->n, low = acf_bounds_equal(t, n, 0, 1), high = acf_bounds_equal(t, n, n - 1, -1);
    const double pile = fmax(PILE_LEAST, PILE_SHARE * (double)n),
                 close = step * 1e-6; /* the ends of neighbours meet, up to rounding */
    const bool whole = low == n, from_middle = !whole && (double)low < pile, to_middle = !whole && (double)high < pile;
    int64_t first = 0;
    double last = from_middle ? t[0] : t[0] - step / 2, before = from_middle ? 0.5 * (double)low : 0;
    add_point(c, last, before);
    for (int64_t i = from_middle ? low : 0; i < n - (to_middle ? high : 0); i++) {
        if (i && t[i] == t[i - 1]) continue;
        const double end[2] = {t[i] - step / 2, t[i] + step / 2};
        for (int k = 0; k < 2; k++) {
            if (end[k] <= last + close) continue;
            double below = count_below(t, n, step, end[k], &first);
            add_between(c, last, before, end[k], below);
            last = end[k], before = below;
        }
    }
    if (to_middle && t[n - 1] > last + close) add_between(c, last, before, t[n - 1], (double)n - 0.5 * (double)high);
}

/* Values that are not spread: a point at each, with half of its observations below. */
static void trace_values(curve *c, const double *t) {
    for (int64_t i = 0, end; i < c->n; i = end) {
        for (end = i + 1; end < c->n && t[end] == t[i]; end++) {}
        add_point(c, t[i], 0.5 * (double)(i + end));
    }
}

/* ---- piecewise linear approximation by few of its points --------------------------------------------------------- */

typedef struct span {
    int64_t from, to, worst; /* point numbers; where the line exceeds its allowed distance most */
    double excess;           /* by how much; below 0: it does not */
} span;

static span span_between(const curve *c, int64_t from, int64_t to) {
    span s = {from, to, from, -1};
    double slope = (c->z[to] - c->z[from]) / (c->t[to] - c->t[from]);
    for (int64_t i = from + 1; i < to; i++) {
        double excess = fabs(c->z[from] + (c->t[i] - c->t[from]) * slope - c->z[i]) - c->miss[i];
        if (excess > s.excess) s.excess = excess, s.worst = i;
    }
    return s;
}

/* Spans in ascending order. Cuts the worst span at its worst point while one exceeds its allowed distance and capacity
 * is left. Returns their number. */
static int cut(const curve *c, span *list, int capacity) {
    int n = 1;
    list[0] = span_between(c, 0, c->points - 1);
    while (n < capacity) {
        int at = 0;
        for (int k = 1; k < n; k++)
            if (list[k].excess > list[at].excess) at = k;
        if (!(list[at].excess > 0)) break;
        for (int k = n++; k > at + 1; k--) list[k] = list[k - 1];
        span whole = list[at];
        list[at] = span_between(c, whole.from, whole.worst);
        list[at + 1] = span_between(c, whole.worst, whole.to);
    }
    return n;
}

/* Knots beyond the outermost one, at t and z, along the fitted tail, nearest first. The slope is at most that of
 * standardising; otherwise a value just outside a bound would seem impossible rather than rare. The knots end where a
 * value is about 70 times as rare as the largest. Values beyond are network extrapolations, which a still growing tail
 * would stretch to thousands of ranges. */
static void extend_tail(double t, double z, const acf_tail_fit *tail, bool upper, double *to_t, double *to_z) {
    static const double at[ACF_NORMAL_SCORES_TAIL] = {0.125, 0.25, 0.375, 0.5, 0.75, 1};
    const double sign = upper ? 1 : -1, here = tail->scale > 0 ? acf_tail_beyond(tail, acf_normal_tail(z, upper)) : 0;
    double away = 0;
    for (int k = 0; k < ACF_NORMAL_SCORES_TAIL; k++) {
        const double step = at[k] - (k ? at[k - 1] : 0), p = acf_normal_tail(z + sign * at[k], upper);
        const double beyond = tail->scale > 0 && p > 0 ? acf_tail_beyond(tail, p) - here : 0;
        away = fmax(away + step, beyond);
        to_t[k] = t + sign * away, to_z[k] = z + sign * at[k];
    }
}

/* Sets the knots of the line and ACF_NORMAL_SCORES_TAIL more on either side; tail: the lower one and the upper one. */
static void place_knots(const curve *c, const span *list, int n, const acf_tail_fit tail[2], acf_normal_scores *w) {
    double low_t[ACF_NORMAL_SCORES_TAIL], low_z[ACF_NORMAL_SCORES_TAIL];
    int32_t k = ACF_NORMAL_SCORES_TAIL;
    w->t[k] = c->t[0], w->z[k] = c->z[0];
    for (int i = 0; i < n; i++) {
        double t = c->t[list[i].to], z = c->z[list[i].to];
        if (!(t - w->t[k] > STEEP * (1 + fabs(t)) && z - w->z[k] > STEEP))
            continue; /* flat at the curve's limits, or no wider than rounding */
        k++, w->t[k] = t, w->z[k] = z;
    }
    if (k == ACF_NORMAL_SCORES_TAIL) {
        w->n = 0;
        return;
    }
    extend_tail(w->t[ACF_NORMAL_SCORES_TAIL], w->z[ACF_NORMAL_SCORES_TAIL], &tail[0], false, low_t, low_z);
    for (int i = 0; i < ACF_NORMAL_SCORES_TAIL; i++)
        w->t[i] = low_t[ACF_NORMAL_SCORES_TAIL - 1 - i], w->z[i] = low_z[ACF_NORMAL_SCORES_TAIL - 1 - i];
    extend_tail(w->t[k], w->z[k], &tail[1], true, w->t + k + 1, w->z + k + 1);
    w->n = k + ACF_NORMAL_SCORES_TAIL + 1;
}

/* ---- bending towards the ends of a bounded column ---------------------------------------------------------------- */

/* Knots between the line's outermost one, at t and z with this slope, and an end; nearest to the end first. Returns
 * their number; 0 if that knot is at the end. */
static int32_t lead_to_end(double t, double z, double slope, double end, double *to_t, double *to_z) {
    const double away = end - t;
    if (!(fabs(away) > STEEP * (1 + fabs(t)))) return 0;
    for (int k = 0; k < LEADING; k++) {
        const double share = pow(LEAD_RATIO, LEADING - k);
        to_t[k] = end - away * share, to_z[k] = z - slope * away * log(share);
    }
    return LEADING;
}

/* Knots beyond the outermost knot of the body, at t and z with this slope, farthest first. They lead towards the end.
 * Without an end they are those of w, or a straight line if w is the identity. Returns their number. */
static int32_t outer_knots(const acf_normal_scores *w, bool upper, double t, double z, double slope, double end,
                           double *to_t, double *to_z) {
    static const acf_tail_fit none = {0};
    double near_t[ACF_NORMAL_SCORES_TAIL], near_z[ACF_NORMAL_SCORES_TAIL];
    const int32_t led = isfinite(end) ? lead_to_end(t, z, slope, end, to_t, to_z) : 0;
    if (led) return led;
    if (!w->n) extend_tail(t, z, &none, upper, near_t, near_z);
    for (int32_t k = 0; k < ACF_NORMAL_SCORES_TAIL; k++) {
        const int32_t at = upper ? w->n - 1 - k : k, nearest = ACF_NORMAL_SCORES_TAIL - 1 - k;
        to_t[k] = w->n ? w->t[at] : near_t[nearest], to_z[k] = w->n ? w->z[at] : near_z[nearest];
    }
    return ACF_NORMAL_SCORES_TAIL;
}

acf_status acf_normal_scores_bend(acf_normal_scores *w, const acf_normal_scores_ends *ends) {
    const bool low = isfinite(ends->low), high = isfinite(ends->high);
    double t[ACF_NORMAL_SCORES_KNOTS], z[ACF_NORMAL_SCORES_KNOTS], top_t[LEADING], top_z[LEADING];
    const double begin[2] = {low ? fmin(ends->from, ends->low + NEAR) : ends->from,
                             high ? fmax(ends->to, ends->high - NEAR) : ends->to};
    const double *body_t = w->n ? w->t + ACF_NORMAL_SCORES_TAIL : begin,
                 *body_z = w->n ? w->z + ACF_NORMAL_SCORES_TAIL : begin; /* without the knots of the tails */
    const int32_t body = w->n ? w->n - 2 * ACF_NORMAL_SCORES_TAIL : 2, last = body - 1;
    acf_normal_scores out;
    if ((!low && !high) || !(body_t[0] < body_t[last])) return ACF_OK;
    const double first_slope = (body_z[1] - body_z[0]) / (body_t[1] - body_t[0]);
    const double last_slope = (body_z[last] - body_z[last - 1]) / (body_t[last] - body_t[last - 1]);
    int32_t n = outer_knots(w, false, body_t[0], body_z[0], first_slope, ends->low, t, z);
    for (int32_t k = 0; k < body; k++, n++) t[n] = body_t[k], z[n] = body_z[k];
    int32_t top = outer_knots(w, true, body_t[last], body_z[last], last_slope, ends->high, top_t, top_z);
    while (top > 0) top--, t[n] = top_t[top], z[n] = top_z[top], n++;
    ACF_TRY(acf_normal_scores_create(n, &out));
    memcpy(out.t, t, (size_t)n * sizeof *t), memcpy(out.z, z, (size_t)n * sizeof *z);
    if (acf_normal_scores_valid(&out)) {
        acf_normal_scores_free(w);
        *w = out;
    } else
        acf_normal_scores_free(&out);
    return ACF_OK;
}

static bool needed(const double *t, int64_t n) {
    bool spike = false;
    int64_t different = 0;
    if (n < 2) return false;
    for (int64_t i = 0, end; i < n; i = end, different++) {
        for (end = i + 1; end < n && t[end] == t[i]; end++) {}
        spike |= (double)(end - i) > SPIKE * (double)n;
    }
    return different > FEW && (spike || fmax(-t[0], t[n - 1]) > OUTLIER);
}

acf_status acf_normal_scores_fit(const double *t, int64_t n, double step, acf_normal_scores *out) {
    acf_status status = ACF_OK;
    acf_normal_scores w = {0};
    if (!needed(t, n)) {
        *out = w;
        return ACF_OK;
    }
    size_t bytes;
    int64_t capacity =
        2 * n + (int64_t)(2 * FAR / GRID) + 2; /* upper limit of points: both ends of every value, and those between */
    if (!acf_bytes(capacity, 3 * sizeof(double), &bytes)) return ACF_EMEMORY;
    double *memory = acf_alloc(bytes, "the curve of a column");
    if (!memory) return ACF_EMEMORY;
    curve c = {.n = n, .t = memory, .z = memory + capacity, .miss = memory + 2 * capacity};
    if (step > 0)
        trace_steps(&c, t, step);
    else
        trace_values(&c, t);
    ACF_TRY_DONE(acf_normal_scores_create(ACF_NORMAL_SCORES_CURVE + 2 * ACF_NORMAL_SCORES_TAIL, &w));
    span list[ACF_NORMAL_SCORES_CURVE];
    const acf_tail_fit tail[2] = {acf_tail_find(t, n, false), acf_tail_find(t, n, true)};
    place_knots(&c, list, cut(&c, list, ACF_NORMAL_SCORES_CURVE - 1), tail, &w);
    if (w.n == 0 || !acf_normal_scores_valid(&w)) acf_normal_scores_free(&w);
    *out = w;
done:
    acf_release(memory);
    return status;
}
