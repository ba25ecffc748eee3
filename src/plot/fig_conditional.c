/* What the model expects of one column: see acf_plot_conditional in acflow.h. Numbers: a curve each, over the grey area of what is
 * expected when nothing is given, and a dot where the truth lies. Categories: bars. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define WIDTH 720.0
#define HEIGHT 420.0

static acf_pen pen_of(int k) { return (acf_pen){acf_palette_series(k), 1.8, k % ACF_SERIES_MAX}; }

/* The legend: a curve each, and what the grey area and the dots are. */
static acf_box draw_legend(acf_canvas *c, acf_box box, const acf_figure_curves *f, bool bars) {
    acf_key key[ACF_SERIES_MAX + 2];
    int n = 0;
    bool dots = false;
    for (int k = 0; k < f->n; k++) {
        key[n++] = (acf_key){f->label[k], bars ? ACF_KEY_BOX : ACF_KEY_LINE, pen_of(k)};
        dots |= !isnan(f->truth[k]);
    }
    if (f->base) key[n++] = (acf_key){"nothing given", ACF_KEY_BOX, {bars ? ACF_INK_AXIS : ACF_INK_PALE}};
    if (dots && !bars) key[n++] = (acf_key){"what was seen", ACF_KEY_RING, {ACF_INK_TEXT, 1.4, 0}};
    return acf_chart_legend(c, box, key, n);
}

/* Linear between grid points; 0 outside. */
static double height_at(const acf_figure_curves *f, const double *p, double x) {
    for (int g = 1; g < f->G; g++)
        if (x >= f->x[g - 1] && x <= f->x[g]) return p[g - 1] + (p[g] - p[g - 1]) * (x - f->x[g - 1]) / (f->x[g] - f->x[g - 1]);
    return 0;
}

/* ---- spikes -------------------------------------------------------------------------------------------------------------- */

#define STEEP 0.8 /* of a neighbour's height: what falls faster belongs to the peak */
#define REACH 10  /* points of the grid on either side, at most */

/* Takes the peak at point s out of the curve p (G): a line from foot to foot. */
static void without_peak(double *p, int G, int s) {
    int left = s, right = s;
    while (left > 0 && s - left < REACH && p[left - 1] < STEEP * p[left]) left--;
    while (right < G - 1 && right - s < REACH && p[right + 1] < STEEP * p[right]) right++;
    const double from = p[left], to = p[right];
    if (left == s) p[s] = to; /* at an end of the grid, or a step: the height of the other side */
    if (right == s) p[s] = from;
    for (int g = left + 1; g < right; g++) p[g] = from + (to - from) * (g - left) / (right - left);
}

/* Stems side by side at the spike, nothing given last. */
static void draw_stems(const acf_panel *p, const acf_figure_curves *f) {
    const int series = f->n + (f->base != NULL);
    const double bottom = p->box.y + p->box.h, half = fmin(fmax(p->box.w / 200, 0.8), 2);
    double most = 1e-9;
    for (int k = 0; k < series; k++) most = fmax(most, f->share[k]);
    for (int k = 0; k < series; k++) {
        const double x = acf_panel_x(p, f->spike) + half * (2 * k - series + 1);
        acf_canvas_line(p->c, x, bottom, x, bottom - 0.92 * p->box.h * f->share[k] / most, (acf_pen){k < f->n ? acf_palette_series(k) : ACF_INK_AXIS, 1.4 * half, 0});
    }
}

/* "0 is expected with 41 %, 20 %; with nothing given, 38 %." */
static void write_spike(acf_text *t, const acf_figure_curves *f) {
    char at[ACF_TICK_LABEL_MAX];
    acf_text_addf(t, "The stems: %s is expected with", acf_tick_number(at, f->spike, 3));
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

static acf_status draw_these(acf_canvas *c, acf_box box, const acf_figure_curves *f, const char *name) {
    acf_range range = acf_range_of(f->x, f->G, 1);
    const acf_axis across = {.range = range, .unit = f->column.unit, .name = name}, up = {.range = {0, 1.06 * top_of(f)}, .name = "density"};
    acf_panel p = acf_panel_open(c, box, NULL, across, up);
    double *x = acf_alloc((size_t)f->G * 2 * sizeof *x, "a curve"), *y = x + f->G;
    if (!x) return ACF_EMEMORY;
    acf_canvas_clip(c, p.box);
    for (int k = f->base ? -1 : 0; k < f->n; k++) {
        const double *from = k < 0 ? f->base : f->p + (int64_t)k * f->G;
        for (int g = 0; g < f->G; g++) x[g] = acf_panel_x(&p, f->x[g]), y[g] = acf_panel_y(&p, from[g]);
        if (k < 0) acf_canvas_area(c, x, y, f->G, p.box.y + p.box.h, ACF_INK_PALE);
        else acf_canvas_curve(c, x, y, f->G, pen_of(k));
    }
    if (f->has_spike) draw_stems(&p, f);
    acf_canvas_unclip(c);
    for (int k = 0; k < f->n; k++) {
        const double at = f->truth[k];
        if (!(at >= range.lo && at <= range.hi)) continue;
        const double px = acf_panel_x(&p, at), py = acf_panel_y(&p, height_at(f, f->p + (int64_t)k * f->G, at));
        acf_canvas_line(c, px, p.box.y + p.box.h, px, py, (acf_pen){acf_palette_series(k), 1, 0});
        acf_canvas_dot(c, px, py, 4, acf_palette_series(k));
        acf_canvas_ring(c, px, py, 4, (acf_pen){ACF_INK_TEXT, 1, 0});
    }
    acf_release(x);
    return ACF_OK;
}

static acf_status draw_curves(acf_canvas *c, acf_box box, const acf_figure_curves *f, const char *name) {
    const int series = f->n + (f->base != NULL);
    acf_figure_curves flat = *f;
    int s = 0;
    while (f->has_spike && s < f->G && f->x[s] != f->spike) s++;
    if (!f->has_spike || s == f->G) return draw_these(c, box, f, name);
    double *p = acf_alloc((size_t)(series * f->G) * sizeof *p, "a curve");
    if (!p) return ACF_EMEMORY;
    for (int k = 0; k < series; k++) {
        memcpy(p + (int64_t)k * f->G, k < f->n ? f->p + (int64_t)k * f->G : f->base, (size_t)f->G * sizeof *p);
        without_peak(p + (int64_t)k * f->G, f->G, s);
    }
    flat.p = p, flat.base = f->base ? p + (int64_t)f->n * f->G : NULL;
    acf_status status = draw_these(c, box, &flat, name);
    acf_release(p);
    return status;
}

/* The rows one under the other, nothing given last, in grey. */
static acf_status draw_bars(acf_canvas *c, acf_box box, const acf_figure_curves *f) {
    acf_ink ink[ACF_BARS_SERIES];
    const int series = f->n + (f->base != NULL);
    double *share = acf_alloc((size_t)(series * f->G) * sizeof *share, "probabilities of classes");
    if (!share) return ACF_EMEMORY;
    for (int s = 0; s < series; s++) {
        ink[s] = s < f->n ? acf_palette_series(s) : ACF_INK_AXIS;
        for (int g = 0; g < f->G; g++) {
            const double v = s < f->n ? f->p[(int64_t)s * f->G + g] : f->base[g];
            share[(int64_t)s * f->G + g] = isfinite(v) ? fmin(fmax(v, 0), 1) : 0;
        }
    }
    acf_status status = acf_figure_bars(c, box, &f->column, share, series, ink);
    acf_release(share);
    return status;
}

/* As high as the bars need to be told apart, up to twice the height of curves. */
static double bars_height(const acf_figure_curves *f) {
    return fmin(ACF_HEAD_HEIGHT + 60 + f->G * ACF_BARS_LINE(f->n + 1), 2 * HEIGHT);
}

acf_status acf_figure_conditional(const char *path, const acf_plot_options *o, const acf_figure_curves *f) {
    acf_canvas *c;
    char title[200], facts[300] = "", name[ACF_FIGURE_NAME_MAX];
    const bool bars = f->column.classes > 0;
    const char *called = acf_figure_name(&f->column, 0, name);
    ACF_TRY(acf_figure_open(path, o, WIDTH, bars ? bars_height(f) : HEIGHT, &c));
    acf_text t = acf_text_into(title, sizeof title);
    acf_text_addf(&t, "What the model expects of %s", called);
    acf_text says = acf_text_into(facts, sizeof facts);
    if (bars) acf_text_add(&says, "Probability of each class.");
    else if (f->has_spike) write_spike(&says, f);
    acf_box box = acf_chart_head(c, acf_figure_title(o, title), facts);
    box = draw_legend(c, box, f, bars);
    acf_status status = bars ? draw_bars(c, box, f) : draw_curves(c, box, f, called);
    if (status == ACF_OK) return acf_canvas_save(c);
    acf_canvas_free(c);
    return status;
}
