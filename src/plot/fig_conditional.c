/* The predicted distribution of one column: see acf_plot_conditional in acflow.h. Numbers: a curve for each row, a grey
 * area for the distribution with nothing given, and a dot at the true value. Numbers with few values: bars at the
 * values. Categories: horizontal bars. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/text.h"
#include "plot/density.h"

#include <math.h>
#include <string.h>

#define WIDTH 720.0
#define HEIGHT 420.0

static acf_pen pen_of(int k) { return (acf_pen){acf_palette_series(k), 1.8, k % ACF_SERIES_MAX}; }

/* The legend: one key for each curve, and keys for the grey area and the dots. */
static acf_box draw_legend(acf_canvas *c, acf_box box, const acf_figure_curves *f, bool bars) {
    acf_key key[ACF_SERIES_MAX + 2];
    int n = 0;
    bool dots = false;
    for (int k = 0; k < f->n; k++) {
        key[n++] = (acf_key){f->label[k], bars ? ACF_KEY_BOX : ACF_KEY_LINE, pen_of(k)};
        dots |= !isnan(f->truth[k]);
    }
    if (f->base) key[n++] = (acf_key){"nothing given", ACF_KEY_BOX, {bars ? ACF_INK_AXIS : ACF_INK_PALE}};
    if (dots) key[n++] = (acf_key){"observed value", ACF_KEY_RING, {ACF_INK_TEXT, 1.4, 0}};
    return acf_chart_legend(c, box, key, n);
}

/* Linear interpolation between grid points; 0 outside. */
static double height_at(const acf_figure_curves *f, const double *p, double x) {
    for (int g = 1; g < f->G; g++)
        if (x >= f->x[g - 1] && x <= f->x[g])
            return p[g - 1] + (p[g] - p[g - 1]) * (x - f->x[g - 1]) / (f->x[g] - f->x[g - 1]);
    return 0;
}

/* ---- spikes ------------------------------------------------------------------------------------------------------ */

#define STEEP 0.8 /* relative to a neighbour's height: a steeper fall belongs to the peak */
#define REACH 16  /* a peak is at most this part of the grid on each side */

/* Replaces the curve p from left to right, around its peak at s, by a line from foot to foot, written to `line` unless
 * that is NULL. Returns the area above the line, in points. A side without a foot, at an end of the grid or at a step,
 * is as high as the other. */
static double cut_peak(const double *p, int left, int right, int s, double *line) {
    const double from = p[left == s ? right : left], to = p[right == s ? left : right];
    double over = 0;
    for (int g = left; g <= right; g++) {
        const double at = left == right ? p[g] : from + (to - from) * (g - left) / (right - left);
        over += p[g] - at;
        if (line) line[g] = at;
    }
    return over;
}

/* Removes the peak at point s from the curve p (G). A foot is where the curve stops falling. Once the spike's
 * probability, `share` in points, is removed, a foot is where the curve stops falling steeply. scratch (G). */
static void without_peak(double *p, int G, int s, double share, double *scratch) {
    int left = s, right = s;
    for (bool more = true; more;) {
        const double need = cut_peak(p, left, right, s, NULL) < share ? 1 : STEEP;
        more = false;
        if (left > 0 && (s - left) * REACH < G && p[left - 1] < need * p[left]) left--, more = true;
        if (right < G - 1 && (right - s) * REACH < G && p[right + 1] < need * p[right]) right++, more = true;
    }
    cut_peak(p, left, right, s, scratch);
    memcpy(p + left, scratch + left, (size_t)(right - left + 1) * sizeof *p);
}

/* The end of the stem of series k. Stems stand side by side at the spike, nothing given last; at the left edge of the
 * panel they start there. */
static void stem_of(const acf_panel *p, const acf_figure_curves *f, int k, double *half, double *x, double *y) {
    const int series = f->n + (f->base != NULL);
    double most = 1e-9;
    for (int i = 0; i < series; i++) most = fmax(most, f->share[i]);
    *half = fmin(fmax(p->box.w / 200, 0.8), 2);
    const double middle = fmax(acf_panel_x(p, f->spike), p->box.x + *half * series);
    *x = middle + *half * (2 * k - series + 1), *y = p->box.y + p->box.h - 0.92 * p->box.h * f->share[k] / most;
}

static void draw_stems(const acf_panel *p, const acf_figure_curves *f) {
    double half, x, y;
    for (int k = 0; k < f->n + (f->base != NULL); k++) {
        stem_of(p, f, k, &half, &x, &y);
        acf_canvas_line(p->c, x, p->box.y + p->box.h, x, y,
                        (acf_pen){k < f->n ? acf_palette_series(k) : ACF_INK_AXIS, 1.4 * half, 0});
    }
}

/* "Stems: the probability of 0 is 41 %, 20 %; with nothing given, 38 %." */
static void write_spike(acf_text *t, const acf_figure_curves *f) {
    char at[ACF_TICK_LABEL_MAX];
    acf_text_addf(t, "Stems: the probability of %s is", acf_tick_number(at, f->spike, 3));
    for (int k = 0; k < f->n; k++) acf_text_addf(t, "%s %d %%", k ? "," : "", (int)lround(100 * f->share[k]));
    if (f->base) acf_text_addf(t, "; with nothing given, %d %%", (int)lround(100 * f->share[f->n]));
    acf_text_add(t, ".");
}

static double top_of(const acf_figure_curves *f) {
    double high = 0;
    for (int64_t i = 0; i < (int64_t)f->n * f->G; i++)
        if (isfinite(f->p[i])) high = fmax(high, f->p[i]);
    for (int g = 0; f->base && g < f->G; g++)
        if (isfinite(f->base[g])) high = fmax(high, f->base[g]);
    return high > 0 && high < 1e300 ? high : 1;
}

/* The true value: on its curve, or on the stem if it is the spike. */
static void draw_seen(const acf_panel *p, const acf_figure_curves *f, int k) {
    const acf_range range = p->x;
    const double at = f->truth[k];
    double half, x = acf_panel_x(p, at), y;
    if (!(at >= range.lo && at <= range.hi)) return;
    if (f->has_spike && at == f->spike)
        stem_of(p, f, k, &half, &x, &y);
    else
        y = acf_panel_y(p, height_at(f, f->p + (int64_t)k * f->G, at));
    acf_canvas_line(p->c, x, p->box.y + p->box.h, x, y, (acf_pen){acf_palette_series(k), 1, 0});
    acf_figure_seen(p->c, x, y, acf_palette_series(k));
}

static acf_status draw_these(acf_canvas *c, acf_box box, const acf_figure_curves *f, const char *name) {
    acf_range range = acf_range_of(f->x, f->G, 1);
    const acf_axis across = {.range = range, .unit = f->column.unit, .name = name},
                   up = {.range = {0, 1.06 * top_of(f)}, .name = "density"};
    acf_panel p = acf_panel_open(c, box, NULL, across, up);
    double *x = acf_alloc((size_t)f->G * 2 * sizeof *x, "a curve"), *y = x + f->G;
    if (!x) return ACF_EMEMORY;
    acf_canvas_clip(c, p.box);
    for (int k = f->base ? -1 : 0; k < f->n; k++) {
        const double *from = k < 0 ? f->base : f->p + (int64_t)k * f->G;
        for (int g = 0; g < f->G; g++) x[g] = acf_panel_x(&p, f->x[g]), y[g] = acf_panel_y(&p, from[g]);
        if (k < 0)
            acf_canvas_area(c, x, y, f->G, p.box.y + p.box.h, ACF_INK_PALE);
        else
            acf_canvas_curve(c, x, y, f->G, pen_of(k));
    }
    if (f->has_spike) draw_stems(&p, f);
    acf_canvas_unclip(c);
    for (int k = 0; k < f->n; k++) draw_seen(&p, f, k);
    acf_release(x);
    return ACF_OK;
}

/* The curves without their spike, smoothed. */
static acf_status draw_curves(acf_canvas *c, acf_box box, const acf_figure_curves *f, const char *name) {
    const int series = f->n + (f->base != NULL);
    acf_figure_curves shown = *f;
    int s = 0;
    while (f->has_spike && s < f->G && f->x[s] != f->spike) s++;
    double *p = acf_alloc((size_t)((series + 1) * f->G) * sizeof *p, "a curve"), *one = p + (int64_t)series * f->G;
    if (!p) return ACF_EMEMORY;
    for (int k = 0; k < series; k++) {
        const double *from = k < f->n ? f->p + (int64_t)k * f->G : f->base;
        for (int g = 0; g < f->G; g++) one[g] = isfinite(from[g]) ? from[g] : 0;
        if (f->has_spike && s < f->G)
            without_peak(one, f->G, s, f->share[k] * (f->G - 1) / (f->x[f->G - 1] - f->x[0]), p + (int64_t)k * f->G);
        acf_curve_smooth(one, f->G, p + (int64_t)k * f->G);
    }
    shown.p = p, shown.base = f->base ? p + (int64_t)f->n * f->G : NULL;
    acf_status status = draw_these(c, box, &shown, name);
    acf_release(p);
    return status;
}

/* ---- bars -------------------------------------------------------------------------------------------------------- */

static double probability(const acf_figure_curves *f, int s, int g) {
    const double v = s < f->n ? f->p[(int64_t)s * f->G + g] : f->base[g];
    return isfinite(v) ? fmin(fmax(v, 0), 1) : 0;
}

/* A bar for each row at each value, nothing given last, as wide as the closest two values allow. */
static void draw_values(acf_canvas *c, acf_box box, const acf_figure_curves *f, const char *name) {
    const int series = f->n + (f->base != NULL);
    double high = 1e-9, closest = INFINITY;
    for (int g = 0; g < f->G; g++) {
        for (int s = 0; s < series; s++) high = fmax(high, probability(f, s, g));
        if (g) closest = fmin(closest, f->x[g] - f->x[g - 1]);
    }
    acf_range range = acf_range_usable(f->x[0], f->x[f->G - 1]);
    if (isfinite(closest)) range = acf_range_usable(range.lo - closest / 2, range.hi + closest / 2);
    acf_panel p = acf_panel_open(c, box, NULL, (acf_axis){.range = range, .unit = f->column.unit, .name = name},
                                 (acf_axis){.range = {0, 106 * high}, .name = "probability in %"});
    const double step = isfinite(closest) ? closest / (range.hi - range.lo) * p.box.w : p.box.w / 4,
                 thick = fmin(0.8 * step / series, 18);
    for (int g = 0; g < f->G; g++)
        for (int s = 0; s < series; s++) {
            const double y = acf_panel_y(&p, 100 * probability(f, s, g)),
                         x = acf_panel_x(&p, f->x[g]) + (s - 0.5 * series) * thick;
            acf_canvas_fill(c, (acf_box){x, y, thick, p.box.y + p.box.h - y},
                            s < f->n ? acf_palette_series(s) : ACF_INK_AXIS);
            if (s < f->n && f->truth[s] == f->x[g]) acf_figure_seen(c, x + thick / 2, y, ACF_INK_PAPER);
        }
}

/* The rows one below the other, nothing given last, in grey. */
static acf_status draw_bars(acf_canvas *c, acf_box box, const acf_figure_curves *f) {
    acf_ink ink[ACF_BARS_SERIES];
    double mark[ACF_BARS_SERIES];
    const int series = f->n + (f->base != NULL);
    double *share = acf_alloc((size_t)(series * f->G) * sizeof *share, "probabilities of classes");
    if (!share) return ACF_EMEMORY;
    for (int s = 0; s < series; s++) {
        ink[s] = s < f->n ? acf_palette_series(s) : ACF_INK_AXIS;
        mark[s] = s < f->n ? f->truth[s] : (double)NAN;
        for (int g = 0; g < f->G; g++) share[(int64_t)s * f->G + g] = probability(f, s, g);
    }
    acf_status status = acf_figure_bars(c, box, &f->column, share, series, ink, mark);
    acf_release(share);
    return status;
}

/* The height that makes the bars readable, up to twice the height of curves. */
static double bars_height(const acf_figure_curves *f) {
    return fmin(ACF_HEAD_HEIGHT + 60 + f->G * ACF_BARS_LINE(f->n + 1), 2 * HEIGHT);
}

/* Facts that the picture cannot show. */
static void write_facts(acf_text *t, const acf_figure_curves *f) {
    char a[ACF_TICK_LABEL_MAX];
    if (f->column.classes > 0)
        acf_text_add(t, "Probability of each class.");
    else if (f->few && f->draws > 0)
        acf_text_addf(t, "Probability of each value, counted in %s draws.", acf_tick_count(a, f->draws));
    else if (f->few)
        acf_text_add(t, "Probability of each value.");
    if (f->has_spike && !f->few) write_spike(t, f);
    if (f->beyond > 0 && f->column.unit > 0)
        acf_text_addf(t, "%s%.2g %% of the probability lies beyond the axis.", t->len ? " " : "", 100 * f->beyond);
    else if (f->beyond > 0)
        acf_text_addf(t, "%s%.2g %% of the probability lies beyond the axis, as far as %s.", t->len ? " " : "",
                      100 * f->beyond, acf_tick_number(a, f->furthest, 3));
}

acf_status acf_figure_conditional(const char *path, const acf_plot_options *o, const acf_figure_curves *f) {
    acf_canvas *c;
    char title[200], facts[300] = "", name[ACF_FIGURE_NAME_MAX];
    const bool bars = f->column.classes > 0;
    const char *called = acf_figure_name(&f->column, 0, name);
    acf_status status = ACF_OK;
    ACF_TRY(acf_figure_open(path, o, WIDTH, bars ? bars_height(f) : HEIGHT, &c));
    acf_text t = acf_text_into(title, sizeof title);
    acf_text_addf(&t, "Predicted distribution of %s", called);
    acf_text says = acf_text_into(facts, sizeof facts);
    write_facts(&says, f);
    acf_box box = acf_chart_head(c, acf_figure_title(o, title), facts);
    box = draw_legend(c, box, f, bars || f->few);
    if (f->few)
        draw_values(c, box, f, called);
    else
        status = bars ? draw_bars(c, box, f) : draw_curves(c, box, f, called);
    if (status == ACF_OK) return acf_canvas_save(c);
    acf_canvas_free(c);
    return status;
}
