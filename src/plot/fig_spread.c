/* Distribution of a column's observed and drawn values: see acf_figure_spread in figures.h. */
#include "plot/density.h"
#include "plot/figures.h"

#include <math.h>

#define CURVE 240 /* points of a curve */

static double share_of(const double *sorted, int64_t n, double value) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += sorted[i] == value;
    return n > 0 ? (double)count / (double)n : 0;
}

/* Draws a stem for each list, side by side at the value. */
static void draw_spike(const acf_panel *p, const acf_spread *s) {
    const acf_ink ink[2] = {ACF_INK_DATA, ACF_INK_MODEL};
    const double bottom = p->box.y + p->box.h, full = 0.92 * p->box.h / fmax(fmax(s->share[0], s->share[1]), 1e-9);
    const double half = fmin(fmax(p->box.w / 80, 0.8), 2.5);
    for (int i = 0; i < 2; i++) {
        const double x = acf_panel_x(p, s->spike) + half * (2 * i - 1);
        acf_canvas_line(p->c, x, bottom, x, bottom - s->share[i] * full, (acf_pen){ink[i], 1.2 * half, 0});
    }
}

static void draw_curves(const acf_panel *p, double *x, double y[2][CURVE], bool first, bool second) {
    double high = 0;
    for (int g = 0; g < CURVE; g++) high = fmax(high, fmax(y[0][g], y[1][g]));
    if (!(high > 0) || !isfinite(high)) return;
    for (int g = 0; g < CURVE; g++) {
        x[g] = acf_panel_x(p, x[g]);
        for (int i = 0; i < 2; i++) y[i][g] = acf_panel_y(p, 0.95 * y[i][g] / high);
    }
    if (first) acf_canvas_area(p->c, x, y[0], CURVE, p->box.y + p->box.h, acf_ink_faded(ACF_INK_DATA, 0.18));
    if (first) acf_canvas_curve(p->c, x, y[0], CURVE, (acf_pen){ACF_INK_DATA, 1.4, 0});
    if (second) acf_canvas_curve(p->c, x, y[1], CURVE, (acf_pen){ACF_INK_MODEL, 2.2, 0});
}

acf_spread acf_figure_spread(const acf_panel *p, double *seen, int64_t n_seen, double *drawn, int64_t n_drawn) {
    acf_spread s = {0};
    s.has_spike = acf_spike_find(seen, n_seen, &s.spike, &s.share[0]);
    if (s.has_spike) {
        s.share[1] = share_of(drawn, n_drawn, s.spike);
        n_seen = acf_values_without(seen, n_seen, s.spike);
        n_drawn = acf_values_without(drawn, n_drawn, s.spike);
    }
    double x[CURVE], y[2][CURVE];
    for (int g = 0; g < CURVE; g++) x[g] = p->x.lo + (p->x.hi - p->x.lo) * g / (CURVE - 1);
    acf_kde k = acf_kde_of(seen, n_seen, drawn, n_drawn);
    k.width = n_seen > 1 ? acf_kde_width(seen, n_seen) : acf_kde_width(drawn, n_drawn);
    k.share = 1 - s.share[0];
    acf_kde_curve(seen, n_seen, k, x, CURVE, y[0]);
    k.share = 1 - s.share[1];
    acf_kde_curve(drawn, n_drawn, k, x, CURVE, y[1]);
    acf_canvas_clip(p->c, p->box);
    draw_curves(p, x, y, n_seen > 1, n_drawn > 1);
    if (s.has_spike) draw_spike(p, &s);
    acf_canvas_unclip(p->c);
    return s;
}
