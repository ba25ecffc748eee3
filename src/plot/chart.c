/* Headings, legends, panels: see chart.h. */
#include "plot/chart.h"

#include "base/real.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- heading and legend ------------------------------------------------------------------------------------------ */

#define FACT_LINES 3

/* Bytes of the longest beginning of text that fits, cut between words. A single word that is too long is taken whole
 * (and drawn with an ellipsis). */
static size_t words_that_fit(acf_canvas *c, const char *text, acf_type type, double width) {
    char line[ACF_FIT_MAX];
    size_t good = strcspn(text, " "), n = good;
    while (text[n] && n < sizeof line - 8) {
        n += 1 + strcspn(text + n + 1, " ");
        if (n >= sizeof line - 8) break;
        memcpy(line, text, n);
        line[n] = '\0';
        if (acf_canvas_text_width(c, line, type) > width) break;
        good = n;
    }
    return good;
}

/* Writes text in lines of that width from y down; returns where it ends. The last line takes the rest and is cut. */
static double write_lines(acf_canvas *c, double x, double y, const char *text, acf_type type, double width) {
    for (int k = 0; k < FACT_LINES && *text; k++) {
        char line[ACF_FIT_MAX];
        size_t n = k + 1 < FACT_LINES ? words_that_fit(c, text, type, width) : strlen(text);
        acf_text t = acf_text_into(line, sizeof line);
        acf_text_add_bytes(&t, text, n);
        acf_canvas_text_in(c, x, y + ACF_LINE(type.size) / 2, line, type, width);
        y += ACF_LINE(type.size);
        text += n;
        while (*text == ' ') text++;
    }
    return y;
}

acf_box acf_chart_head(acf_canvas *c, const char *title, const char *facts) {
    const double width = acf_canvas_width(c) - 2 * ACF_MARGIN;
    double y = ACF_MARGIN;
    if (title && *title) {
        acf_canvas_text_in(c, ACF_MARGIN, y + ACF_SIZE_TITLE / 2, title,
                           (acf_type){ACF_SIZE_TITLE, .bold = 1, .ink = ACF_INK_TEXT}, width);
        y += ACF_LINE(ACF_SIZE_TITLE) + 2;
    }
    if (facts && *facts)
        y = write_lines(c, ACF_MARGIN, y, facts, (acf_type){ACF_SIZE_TEXT, .ink = ACF_INK_QUIET}, width);
    y += 6;
    return (acf_box){ACF_MARGIN, y, width, fmax(acf_canvas_height(c) - ACF_MARGIN - y, 1)};
}

#define KEY_WIDTH 18.0
#define KEY_GAP 16.0

static void draw_key(acf_canvas *c, double x, double y, const acf_key *key) {
    const double middle = x + KEY_WIDTH / 2;
    switch (key->shape) {
    case ACF_KEY_BOX: acf_canvas_fill(c, (acf_box){x + 4, y - 5, 10, 10}, key->pen.ink); break;
    case ACF_KEY_LINE: acf_canvas_line(c, x, y, x + KEY_WIDTH, y, key->pen); break;
    case ACF_KEY_DOT: acf_canvas_dot(c, middle, y, 3, key->pen.ink); break;
    case ACF_KEY_RING: acf_canvas_ring(c, middle, y, 4, key->pen); break;
    }
}

acf_box acf_chart_legend(acf_canvas *c, acf_box box, const acf_key *key, int n) {
    const acf_type type = {ACF_SIZE_TEXT, .ink = ACF_INK_TEXT};
    const double line = ACF_LINE(ACF_SIZE_TEXT) + 2, most = box.w - KEY_WIDTH - 6;
    double x = 0, y = 0;
    for (int k = 0; k < n; k++) {
        char text[ACF_FIT_MAX];
        const double w =
            KEY_WIDTH + 6 + acf_canvas_text_width(c, acf_canvas_fit(c, key[k].text, type, most, text), type);
        if (x > 0 && x + w > box.w) x = 0, y += line;
        if (y + line > box.h / 2) break;
        draw_key(c, box.x + x, box.y + y + line / 2, &key[k]);
        acf_canvas_text(c, box.x + x + KEY_WIDTH + 6, box.y + y + line / 2, text, type);
        x += w + KEY_GAP;
    }
    const double used = n > 0 ? fmin(y + line, box.h / 2) + 6 : 0;
    return (acf_box){box.x, box.y + used, box.w, fmax(box.h - used, 1)};
}

void acf_chart_note(acf_canvas *c, acf_box box, const char *text) {
    if (box.h < ACF_LINE(ACF_SIZE_TEXT)) return;
    acf_canvas_text_in(c, box.x + box.w / 2, box.y + box.h / 2, text,
                       (acf_type){ACF_SIZE_TEXT, .align = 0.5, .ink = ACF_INK_QUIET}, box.w);
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

static const acf_type tick_type = {.size = ACF_SIZE_TICK, .ink = ACF_HEX(0x5f6368)};

/* Copies as many whole characters of s as a label holds. */
static void copy_label(char out[ACF_TICK_LABEL_MAX], const char *s) {
    size_t n = strlen(s);
    if (n >= ACF_TICK_LABEL_MAX)
        for (n = ACF_TICK_LABEL_MAX - 1; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--) {}
    memcpy(out, s, n);
    out[n] = '\0';
}

/* At most `most` of the categories, evenly spaced. Labels are cut to `capacity`; if that is 0, to the share of each on
 * an axis of that length. */
static acf_ticks class_ticks(acf_canvas *c, acf_axis a, int most, double capacity, double length) {
    acf_ticks t = {0};
    const int32_t every = (int32_t)acf_ceil_div(a.classes, (int64_t)acf_min(acf_max(most, 1), ACF_TICKS_MAX));
    if (capacity == 0) capacity = length * every / a.classes - 9;
    for (int32_t k = 0; k < a.classes; k += every) {
        char text[ACF_FIT_MAX];
        if (a.labels && a.labels[k])
            acf_canvas_fit(c, a.labels[k], tick_type, capacity, text);
        else
            snprintf(text, sizeof text, "%d", (int)k);
        copy_label(t.label[t.n], text);
        t.at[t.n++] = k;
    }
    return t;
}

/* Reduces the ticks until their labels stay apart along an axis of that length. */
static acf_ticks ticks_across(acf_canvas *c, acf_axis a, double length) {
    acf_ticks t = {0};
    if (a.show == ACF_AXIS_NONE) return t;
    for (int most = (int)fmin(length / 16, 8); most >= 1; most--) {
        t = a.classes > 0 ? class_ticks(c, a, most, 0, length) : acf_ticks_make(a.range, a.unit, most);
        double widest = 0, gap = INFINITY;
        for (int i = 0; i < t.n; i++) {
            widest = fmax(widest, acf_canvas_text_width(c, t.label[i], tick_type));
            if (i) gap = fmin(gap, (t.at[i] - t.at[i - 1]) / (a.range.hi - a.range.lo) * length);
        }
        if (widest > 0 && widest + 8 < gap && widest < length) return t;
    }
    t.n = 0;
    return t;
}

static acf_ticks ticks_up(acf_canvas *c, acf_axis a, double length, double capacity) {
    const int most = (int)fmin(length / (1.8 * ACF_SIZE_TICK), 7);
    if (most < 1 || a.show == ACF_AXIS_NONE) return (acf_ticks){0};
    if (a.classes > 0) return class_ticks(c, a, (int)(length / (1.4 * ACF_SIZE_TICK)), capacity, length);
    acf_ticks t = acf_ticks_make(a.range, a.unit, most);
    for (int i = 0; i < t.n; i++)
        if (acf_canvas_text_width(c, t.label[i], tick_type) > capacity) t.n = 0;
    return t;
}

#define LABEL_GAP 7.0 /* between labels and axis */

double acf_axis_width(acf_canvas *c, acf_axis y, double length) {
    if (y.show != ACF_AXIS_FULL) return 0;
    const acf_ticks t = ticks_up(c, y, length, INFINITY);
    double widest = 0;
    for (int i = 0; i < t.n; i++) widest = fmax(widest, acf_canvas_text_width(c, t.label[i], tick_type));
    return t.n > 0 ? widest + LABEL_GAP : 0;
}

/* A label at the end of an axis is moved so that it stays within a few points of the panel. */
static void label_across(const acf_panel *p, const acf_ticks *t, double y, double overhang) {
    double free_from = p->box.x - overhang;
    for (int i = 0; i < t->n; i++) {
        const double w = acf_canvas_text_width(p->c, t->label[i], tick_type), x = acf_panel_x(p, t->at[i]);
        const double left = fmin(fmax(x - w / 2, free_from), p->box.x + p->box.w + overhang - w);
        if (left < free_from) continue;
        acf_canvas_text(p->c, left, y, t->label[i], tick_type);
        free_from = left + w + 4;
    }
}

/* Labels at the upper and lower end stay inside the panel's height, up to a point: panels may be stacked closely. */
static void label_up(const acf_panel *p, const acf_ticks *t) {
    const double half = ACF_SIZE_TICK / 2;
    double free_below = p->box.y + p->box.h + half; /* the lowest tick comes first */
    for (int i = 0; i < t->n; i++) {
        const double y = fmin(fmax(acf_panel_y(p, t->at[i]), p->box.y), free_below - half);
        if (y < p->box.y || y < acf_panel_y(p, t->at[i]) - half) continue;
        acf_type type = tick_type;
        type.align = 1;
        acf_canvas_text(p->c, p->box.x - 5, y, t->label[i], type);
        free_below = y - half - 1;
    }
}

static void draw_grid(const acf_panel *p, const acf_ticks *x, const acf_ticks *y) {
    const acf_pen grid = {ACF_INK_GRID, 0.8, 0}, axis = {ACF_INK_AXIS, 0.8, 0};
    const double right = p->box.x + p->box.w, bottom = p->box.y + p->box.h;
    for (int i = 0; i < x->n; i++) {
        const double at = acf_panel_x(p, x->at[i]);
        acf_canvas_line(p->c, at, p->box.y, at, bottom, grid);
        acf_canvas_line(p->c, at, bottom, at, bottom + 3, axis);
    }
    for (int i = 0; i < y->n; i++) {
        const double at = acf_panel_y(p, y->at[i]);
        acf_canvas_line(p->c, p->box.x, at, right, at, grid);
    }
    acf_canvas_line(p->c, p->box.x, bottom, right, bottom, axis);
}

#define OVERHANG 10.0

acf_panel acf_panel_at(acf_canvas *c, acf_box box, acf_axis x, acf_axis y, double capacity) {
    const acf_panel p = {c, {box.x, box.y, fmax(box.w, 1), fmax(box.h, 1)}, x.range, y.range};
    const acf_ticks across = ticks_across(c, x, p.box.w), up = ticks_up(c, y, p.box.h, capacity - LABEL_GAP + 1);
    draw_grid(&p, &across, &up);
    const double overhang = x.capacity > 0 ? x.capacity : fmin(OVERHANG, fmax(capacity, 0));
    if (x.show == ACF_AXIS_FULL) label_across(&p, &across, p.box.y + p.box.h + 5 + ACF_SIZE_TICK / 2, overhang);
    if (y.show == ACF_AXIS_FULL) label_up(&p, &up);
    return p;
}

/* Space is taken from the outside in: title, names of the axes, upright labels (their width depends on the remaining
 * height), labels across. */
acf_panel acf_panel_open(acf_canvas *c, acf_box outer, const char *title, acf_axis x, acf_axis y) {
    acf_type name = {ACF_SIZE_TEXT, .align = 0.5, .ink = ACF_INK_QUIET};
    acf_box in = outer;
    if (title && *title && outer.h > 2 * ACF_LINE(ACF_SIZE_PANEL)) {
        const double line = ACF_LINE(ACF_SIZE_PANEL);
        acf_canvas_text_in(c, in.x, in.y + line / 2, title, (acf_type){ACF_SIZE_PANEL, .bold = 1, .ink = ACF_INK_TEXT},
                           in.w);
        in.y += line + 3, in.h -= line + 3;
    }
    if (outer.h < 60 || outer.w < 60) x.show = y.show = ACF_AXIS_NONE; /* too small for text */
    const bool x_name = x.name && x.show == ACF_AXIS_FULL, y_name = y.name && y.show == ACF_AXIS_FULL;
    if (x.show == ACF_AXIS_FULL) in.h -= ACF_AXIS_HEIGHT;
    if (x_name) in.h -= ACF_LINE(ACF_SIZE_TEXT) + 2;
    const double aside = y_name ? ACF_LINE(ACF_SIZE_TEXT) : 0,
                 capacity = fmin(fmax(acf_axis_width(c, y, in.h), y.capacity), 0.4 * in.w);
    in.x += aside + capacity, in.w -= aside + capacity;
    const acf_panel p = acf_panel_at(c, in, x, y, capacity);
    if (x_name)
        acf_canvas_text_in(c, p.box.x + p.box.w / 2, outer.y + outer.h - ACF_SIZE_TEXT * 0.6, x.name, name, p.box.w);
    name.upward = 1;
    if (y_name) acf_canvas_text_in(c, outer.x + ACF_SIZE_TEXT * 0.6, p.box.y + p.box.h / 2, y.name, name, p.box.h);
    return p;
}

double acf_panel_x(const acf_panel *p, double v) {
    return p->box.x + (v / 2 - p->x.lo / 2) / (p->x.hi / 2 - p->x.lo / 2) * p->box.w;
}
double acf_panel_y(const acf_panel *p, double v) {
    return p->box.y + p->box.h - (v / 2 - p->y.lo / 2) / (p->y.hi / 2 - p->y.lo / 2) * p->box.h;
}

acf_box acf_chart_cell(acf_box box, int columns, int rows, int k, double gap) {
    const double w = (box.w - gap * (columns - 1)) / columns, h = (box.h - gap * (rows - 1)) / rows;
    return (acf_box){box.x + k % columns * (w + gap), box.y + k / columns * (h + gap), w, h};
}
