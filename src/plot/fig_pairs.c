/* Columns against each other: see acf_plot_pairs in acflow.h. The lower half of a matrix:
 *
 *     age    [density]
 *     dose   [ cloud ] [density]               row and column of the matrix are columns of the table;
 *     site   [ cloud ] [ cloud ] [density]     labels at the left edge and at the bottom only
 *
 * Data is drawn as blue dots, draws as orange dots over them. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/real.h"
#include "base/text.h"
#include "plot/density.h"

#include <math.h>
#include <string.h>

#define CELL 190.0
#define GAP 12.0

typedef struct pairs {
    acf_canvas *c;
    const acf_figure_table *t;
    const double *drawn; /* (n,D) */
    int64_t n;
    const int64_t *column;
    int k;
    bool completes; /* the drawn rows are rows of the table with their missing cells imputed; else new rows */
    acf_range range[ACF_PAIRS_MAX];
    int64_t beyond[ACF_PAIRS_MAX]; /* number of values, of the table and drawn, outside the axis */
    double furthest[ACF_PAIRS_MAX];
    double *a, *b; /* scratch, (max(N,n)) each */
} pairs;

/* The middle of a column, so that one extreme value does not compress the others; each class gets a cell. */
static acf_range column_range(const pairs *p, int64_t j) {
    const int32_t classes = p->t->column[j].classes;
    if (classes > 0) return (acf_range){-0.5, classes - 0.5};
    for (int64_t i = 0; i < p->t->N; i++) p->a[i] = p->t->x[i * p->t->D + j];
    int64_t n = acf_values_sort(p->a, p->t->N);
    if (n == 0) {
        for (int64_t i = 0; i < p->n; i++) p->a[i] = p->drawn[i * p->t->D + j];
        n = acf_values_sort(p->a, p->n);
    }
    return acf_range_padded(acf_range_middle(p->a, n), 0.05);
}

/* Counts the values outside the axis of column k. */
static void count_beyond(pairs *p, int k) {
    const acf_range r = p->range[k];
    double most = 0;
    for (int drawn = 0; drawn < 2 && p->t->column[p->column[k]].classes == 0; drawn++)
        for (int64_t i = 0; i < (drawn ? p->n : p->t->N); i++) {
            const double v = (drawn ? p->drawn : p->t->x)[i * p->t->D + p->column[k]], out = fmax(r.lo - v, v - r.hi);
            if (!isfinite(v) || out <= 0) continue;
            p->beyond[k]++;
            if (out > most) most = out, p->furthest[k] = v;
        }
}

/* "Beyond the axes: 12 values of cost, as far as 35.5k." */
static void write_beyond(const pairs *p, acf_text *t) {
    char a[ACF_TICK_LABEL_MAX], name[ACF_FIGURE_NAME_MAX];
    bool first = true;
    for (int k = 0; k < p->k; k++) {
        if (!p->beyond[k]) continue;
        acf_text_addf(t, first ? " Beyond the axes: %s value%s of " : ", %s%.0s of ", acf_tick_count(a, p->beyond[k]),
                      p->beyond[k] == 1 ? "" : "s");
        acf_text_addf(t, "%.30s", acf_figure_name(&p->t->column[p->column[k]], p->column[k], name));
        if (p->t->column[p->column[k]].unit == 0)
            acf_text_addf(t, " (as far as %s)", acf_tick_number(a, p->furthest[k], 3));
        first = false;
    }
    if (!first) acf_text_add(t, ".");
}

/* Do all rows of `drawn` agree with the observed cells of the table's row of the same number? New rows would agree in a
 * column of two classes half of the time each. */
static bool completes(const acf_figure_table *t, const double *drawn, int64_t n) {
    bool same = n <= t->N;
    for (int64_t c = 0; c < n * t->D && same; c++) same = isnan(t->x[c]) || t->x[c] == drawn[c];
    return same;
}

/* Are both cells of this drawn row observed in the table? */
static bool untouched(const pairs *p, int64_t i, int64_t a, int64_t b) {
    if (!p->completes) return false;
    const double *x = p->t->x + i * p->t->D, *d = p->drawn + i * p->t->D;
    return x[a] == d[a] && x[b] == d[b];
}

/* Codes of classes are spread inside their cell, always in the same way; otherwise a thousand points would be one. */
static double spread(const pairs *p, int64_t j, double v, int64_t i, uint32_t salt) {
    if (p->t->column[j].classes == 0) return v;
    const uint32_t h = ((uint32_t)i * 2654435761u) ^ (salt * 0x9e3779b9u), mixed = (h ^ h >> 15) * 0x85ebca6bu;
    return v + 0.6 * ((double)(mixed >> 8) / 0x1p24 - 0.5);
}

/* Gathers the points of one cell, of the table or drawn. Returns their number. */
static int64_t gather(const pairs *p, bool drawn, int64_t across, int64_t up) {
    const double *x = drawn ? p->drawn : p->t->x;
    const int64_t n = drawn ? p->n : p->t->N, D = p->t->D;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i * D + across], b = x[i * D + up];
        if (!isfinite(a) || !isfinite(b) || (drawn && untouched(p, i, across, up))) continue;
        p->a[kept] = spread(p, across, a, i, 1), p->b[kept++] = spread(p, up, b, i, 2);
    }
    return kept;
}

/* Fewer points are larger and darker; in a small cell points are small. */
static acf_cloud_style style_of(int64_t n, double side, acf_ink ink) {
    const double crowd =
        fmin(fmax(log10((double)n + 1) - 2, 0), 3) / 3; /* 0 up to a hundred points, 1 from a hundred thousand */
    return (acf_cloud_style){(1.9 - 1.1 * crowd) * fmin(fmax(side / CELL, 0.5), 1.5), 0.8 - 0.65 * crowd, true, ink};
}

static acf_status draw_cloud(const pairs *p, const acf_panel *panel, int64_t across, int64_t up) {
    const double side = fmin(panel->box.w, panel->box.h);
    int64_t n = gather(p, false, across, up);
    ACF_TRY(acf_panel_cloud(panel, p->a, p->b, n, 1, style_of(n, side, ACF_INK_DATA)));
    n = gather(p, true, across, up);
    return acf_panel_cloud(panel, p->a, p->b, n, 1, style_of(n, side, ACF_INK_MODEL));
}

/* ---- the diagonal ------------------------------------------------------------------------------------------------ */

/* Values of one column: the table's or the drawn ones. */
static int64_t gather_one(const pairs *p, bool drawn, int64_t j) {
    const double *x = drawn ? p->drawn : p->t->x;
    const int64_t n = drawn ? p->n : p->t->N, D = p->t->D;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (!(drawn && untouched(p, i, j, j))) p->a[kept++] = x[i * D + j];
    return acf_values_sort(p->a, kept);
}

static void class_bars(const pairs *p, const acf_panel *panel, int64_t j, bool drawn, acf_ink ink, double *high,
                       bool draw) {
    const int32_t C = p->t->column[j].classes;
    const int64_t n = gather_one(p, drawn, j);
    for (int64_t i = 0, from = 0; i < n; i++) { /* runs of the sorted codes */
        if (i + 1 < n && p->a[i + 1] == p->a[i]) continue;
        const double share = (double)(i + 1 - from) / (double)n, code = p->a[i];
        from = i + 1;
        *high = fmax(*high, share);
        if (!draw || !(code >= 0 && code < C)) continue;
        const double x0 = acf_panel_x(panel, code - 0.4 + 0.4 * drawn), x1 = acf_panel_x(panel, code + 0.4 * drawn);
        const double y = acf_panel_y(panel, share / *high * 0.9);
        acf_canvas_fill(panel->c, (acf_box){x0, y, x1 - x0, panel->box.y + panel->box.h - y}, ink);
    }
}

static void draw_diagonal(const pairs *p, const acf_panel *panel, int64_t j) {
    double high = 0;
    if (p->t->column[j].classes == 0) {
        const int64_t n_drawn = gather_one(p, true, j);
        memcpy(p->b, p->a, (size_t)n_drawn * sizeof *p->b);
        const int64_t n = gather_one(p, false, j);
        acf_figure_spread(panel, p->a, n, p->b, n_drawn);
        return;
    }
    for (int draw = 0; draw < 2; draw++) { /* the first pass finds the longest bar */
        class_bars(p, panel, j, false, ACF_INK_DATA, &high, draw);
        class_bars(p, panel, j, true, ACF_INK_MODEL, &high, draw);
    }
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

/* Names of columns: upright at the left of their row, and below their column. */
#define NAME_ROOM (ACF_LINE(ACF_SIZE_PANEL) + 4)

static acf_axis axis_of(const pairs *p, int k, bool shown) {
    const acf_figure_column *column = &p->t->column[p->column[k]];
    return (acf_axis){p->range[k], column->unit,    NULL,          shown ? ACF_AXIS_FULL : ACF_AXIS_GRID,
                      0,           column->classes, column->labels};
}

static void write_names(const pairs *p, acf_box box, acf_box cells) {
    const acf_type type = {ACF_SIZE_PANEL, .align = 0.5, .bold = 1, .ink = ACF_INK_TEXT};
    acf_type upward = type;
    upward.upward = 1;
    for (int k = 0; k < p->k; k++) {
        char name[ACF_FIGURE_NAME_MAX];
        const char *called = acf_figure_name(&p->t->column[p->column[k]], p->column[k], name);
        const acf_box across = acf_chart_cell(cells, p->k, p->k, (p->k - 1) * p->k + k, GAP),
                      up = acf_chart_cell(cells, p->k, p->k, k * p->k, GAP);
        acf_canvas_text_in(p->c, across.x + across.w / 2, box.y + box.h - ACF_SIZE_PANEL / 2, called, type, across.w);
        acf_canvas_text_in(p->c, box.x + ACF_SIZE_PANEL / 2, up.y + up.h / 2, called, upward, up.h);
    }
}

/* The labels of all rows get the width of the widest. */
static double label_room(const pairs *p, double cell) {
    double widest = 0;
    for (int k = 1; k < p->k; k++) widest = fmax(widest, acf_axis_width(p->c, axis_of(p, k, true), cell));
    return fmin(widest, 0.6 * cell);
}

static acf_status draw(pairs *p, const acf_plot_options *o) {
    char facts[800], a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX];
    acf_text text = acf_text_into(facts, sizeof facts);
    acf_text_addf(&text, "%s rows of data, %s rows with draws.", acf_tick_count(a, p->t->N), acf_tick_count(b, p->n));
    for (int k = 0; k < p->k; k++) p->range[k] = column_range(p, p->column[k]), count_beyond(p, k);
    write_beyond(p, &text);
    acf_box box = acf_chart_head(p->c, acf_figure_title(o, "Columns against each other"), facts);
    box = acf_chart_legend(
        p->c, box,
        (acf_key[]){{"data", ACF_KEY_DOT, {ACF_INK_DATA}}, {"drawn from the model", ACF_KEY_DOT, {ACF_INK_MODEL}}}, 2);
    const double capacity = label_room(p, fmin(box.w, box.h) / p->k);
    const acf_box cells = {box.x + NAME_ROOM + capacity, box.y, box.w - NAME_ROOM - capacity,
                           box.h - NAME_ROOM - ACF_AXIS_HEIGHT};
    if (cells.h < 20 * p->k || cells.w < 20 * p->k) {
        acf_chart_note(p->c, box, "the page is too small for this figure");
        return ACF_OK;
    }
    write_names(p, box, cells);
    for (int i = 0; i < p->k; i++)
        for (int j = 0; j <= i; j++) {
            acf_axis across = axis_of(p, j, i + 1 == p->k), up = axis_of(p, i, j == 0 && i > 0);
            across.capacity = GAP / 2 - 1; /* half of the distance to the neighbour's */
            if (i == j) up = (acf_axis){{0, 1}, .show = ACF_AXIS_NONE};
            const acf_panel panel =
                acf_panel_at(p->c, acf_chart_cell(cells, p->k, p->k, i * p->k + j, GAP), across, up, capacity);
            if (i == j)
                draw_diagonal(p, &panel, p->column[i]);
            else
                ACF_TRY(draw_cloud(p, &panel, p->column[j], p->column[i]));
        }
    return ACF_OK;
}

acf_status acf_figure_pairs(const char *path, const acf_plot_options *o, const acf_figure_table *t, const double *drawn,
                            int64_t n, const int64_t *column, int k) {
    pairs p = {.t = t, .drawn = drawn, .n = n, .completes = completes(t, drawn, n), .column = column, .k = k};
    size_t bytes;
    if (!acf_bytes(acf_max(t->N, n), 2 * sizeof(double), &bytes)) return ACF_EMEMORY;
    p.a = acf_alloc(bytes, "points of a picture");
    if (!p.a) return ACF_EMEMORY;
    p.b = p.a + acf_max(t->N, n);
    const double side = k * (CELL + GAP);
    acf_status status = acf_figure_open(path, o, side + 90, side + ACF_HEAD_HEIGHT + 60, &p.c);
    if (status == ACF_OK) status = draw(&p, o);
    if (status == ACF_OK)
        status = acf_canvas_save(p.c);
    else
        acf_canvas_free(p.c);
    acf_release(p.a);
    return status;
}
