/* Common parts of the figures: see figures.h. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SCALE 2.0

double acf_figure_width(const acf_plot_options *o, double width) { return o && o->width != 0 ? o->width : width; }
double acf_figure_height(const acf_plot_options *o) { return o ? o->height : 0; }

acf_status acf_figure_open(const char *path, const acf_plot_options *o, double width, double height, acf_canvas **out) {
    const double h =
        acf_figure_height(o) != 0 ? o->height : fmin(fmax(height, ACF_CANVAS_SIDE_MIN), ACF_CANVAS_SIDE_MAX);
    return acf_canvas_open(path, acf_figure_width(o, width), h, o && o->scale != 0 ? o->scale : SCALE, out);
}

const char *acf_figure_title(const acf_plot_options *o, const char *title) { return o && o->title ? o->title : title; }

const char *acf_figure_name(const acf_figure_column *column, int64_t j, char out[ACF_FIGURE_NAME_MAX]) {
    if (column->name) return column->name;
    snprintf(out, ACF_FIGURE_NAME_MAX, "column %lld", (long long)j);
    return out;
}

const char *acf_figure_label(const acf_figure_column *column, int32_t k, char out[ACF_TICK_LABEL_MAX]) {
    if (column->labels && column->labels[k]) return column->labels[k];
    snprintf(out, ACF_TICK_LABEL_MAX, "%d", (int)k);
    return out;
}

/* ---- bars -------------------------------------------------------------------------------------------------------- */

typedef struct weighed {
    double weight;
    int32_t k;
} weighed;

static int heaviest_first(const void *a, const void *b) {
    const weighed *p = a, *q = b;
    if (p->weight != q->weight) return p->weight > q->weight ? -1 : 1;
    return p->k - q->k;
}

/* Classes in drawing order: their own order. If only some fit, the most frequent ones, also in their own order. */
static int by_code(const void *a, const void *b) { return ((const weighed *)a)->k - ((const weighed *)b)->k; }

static void choose(weighed *list, int32_t classes, int32_t capacity) {
    if (classes <= capacity) return;
    qsort(list, (size_t)classes, sizeof *list, heaviest_first);
    qsort(list, (size_t)capacity, sizeof *list, by_code);
}

typedef struct bar_box {
    acf_canvas *c;
    double x, w, line; /* of the bars; height of a class */
    double most;       /* share of a bar of full width */
    int series;
    const acf_ink *ink;
} bar_box;

void acf_figure_seen(acf_canvas *c, double x, double y, acf_ink ink) {
    acf_canvas_dot(c, x, y, 4, ink);
    acf_canvas_ring(c, x, y, 4, (acf_pen){ACF_INK_TEXT, 1, 0});
}

/* marked (series): is this the true class? */
static void draw_class(const bar_box *b, double y, const char *label, double left, const double *share,
                       const bool *marked) {
    const acf_type type = {ACF_SIZE_TICK, .align = 1, .ink = ACF_INK_QUIET};
    const double thick = fmin((b->line - 3) / b->series, 11), top = y + (b->line - thick * b->series) / 2;
    acf_canvas_text_in(b->c, b->x - 5, y + b->line / 2, label, type, b->x - 5 - left);
    for (int s = 0; s < b->series; s++)
        if (share[s] > 0)
            acf_canvas_fill(b->c, (acf_box){b->x, top + s * thick, fmax(share[s] / b->most * b->w, 0.6), thick},
                            b->ink[s]);
    for (int s = 0; s < b->series; s++)
        if (marked[s]) acf_figure_seen(b->c, b->x + share[s] / b->most * b->w, top + (s + 0.5) * thick, ACF_INK_PAPER);
}

/* Percentages below the bars, three or four of them. */
static void draw_percents(const bar_box *b, double top, double bottom) {
    const acf_ticks t = acf_ticks_make((acf_range){0, 100 * b->most}, 0, (int)fmin(fmax(b->w / 45, 1), 5));
    for (int i = 0; i < t.n; i++) {
        char text[ACF_TICK_LABEL_MAX + 4];
        const double x = b->x + t.at[i] / 100 / b->most * b->w;
        snprintf(text, sizeof text, "%s %%", t.label[i]);
        acf_canvas_line(b->c, x, top, x, bottom, (acf_pen){ACF_INK_GRID, 0.8, 0});
        const acf_type type = {ACF_SIZE_TICK, .align = 0.5, .ink = ACF_INK_QUIET};
        if (x + acf_canvas_text_width(b->c, text, type) / 2 <= b->x + b->w + 12)
            acf_canvas_text(b->c, x, bottom + 8, text, type);
    }
    acf_canvas_line(b->c, b->x, top, b->x, bottom, (acf_pen){ACF_INK_AXIS, 0.8, 0});
}

static double label_room(acf_canvas *c, const acf_figure_column *column, const weighed *list, int32_t shown,
                         double most) {
    double widest = 0;
    char text[ACF_TICK_LABEL_MAX];
    for (int32_t k = 0; k < shown; k++)
        widest = fmax(widest,
                      acf_canvas_text_width(c, acf_figure_label(column, list[k].k, text), (acf_type){ACF_SIZE_TICK}));
    return fmin(widest + 1, most);
}

acf_status acf_figure_bars(acf_canvas *c, acf_box box, const acf_figure_column *column, const double *share, int series,
                           const acf_ink *ink, const double *mark) {
    const int32_t C = column->classes;
    const double foot = ACF_LINE(ACF_SIZE_TICK) + 4, line = fmin(fmax((box.h - foot) / C, 13), ACF_BARS_LINE(series));
    const int32_t lines = (int32_t)fmin((box.h - foot) / line + 1e-6, C),
                  shown = lines < C ? (int32_t)acf_max(lines - 1, 0) : C;
    if (lines < 1 || box.w < 60) return ACF_OK;
    weighed *list = acf_alloc((size_t)C * sizeof *list, "a list of classes");
    if (!list) return ACF_EMEMORY;
    bar_box b = {.c = c, .line = line, .most = 1e-9, .series = series, .ink = ink};
    double rest[ACF_BARS_SERIES] = {0}, one[ACF_BARS_SERIES];
    for (int32_t k = 0; k < C; k++) {
        list[k] = (weighed){0, k};
        for (int s = 0; s < series; s++) list[k].weight = fmax(list[k].weight, share[(int64_t)s * C + k]);
    }
    choose(list, C, shown);
    char others[40], text[ACF_TICK_LABEL_MAX];
    snprintf(others, sizeof others, "%d others", (int)(C - shown));
    for (int32_t k = 0; k < C; k++) {
        if (k < shown) b.most = fmax(b.most, list[k].weight);
        for (int s = 0; s < series && k >= shown; s++)
            b.most = fmax(b.most, rest[s] += share[(int64_t)s * C + list[k].k]);
    }
    double capacity = label_room(c, column, list, shown, 0.45 * box.w);
    if (shown < C)
        capacity = fmin(fmax(capacity, acf_canvas_text_width(c, others, (acf_type){ACF_SIZE_TICK})) + 1, 0.45 * box.w);
    b.x = box.x + capacity + 6, b.w = box.w - capacity - 6 - 12;
    draw_percents(&b, box.y, box.y + lines * line);
    for (int32_t k = 0; k < lines; k++) {
        bool marked[ACF_BARS_SERIES] = {false};
        for (int s = 0; s < series; s++) one[s] = k < shown ? share[(int64_t)s * C + list[k].k] : rest[s];
        for (int32_t i = k; mark && i < (k < shown ? k + 1 : C); i++) /* the last line may stand for several */
            for (int s = 0; s < series; s++) marked[s] |= mark[s] == list[i].k;
        draw_class(&b, box.y + k * line, k < shown ? acf_figure_label(column, list[k].k, text) : others, box.x, one,
                   marked);
    }
    acf_release(list);
    return ACF_OK;
}
