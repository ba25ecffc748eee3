/* Imputed values beside observed ones: see acf_plot_imputed in acflow.h. A grid of small panels, one for each column:
 *
 *     numbers               a filled curve (observed) and a line (imputed) with one kernel width, for
 *                           comparison; a spike is named in the facts and drawn as two stems
 *     few values            bars at the values
 *     categories            horizontal bars, because their names are words */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/real.h"
#include "base/text.h"
#include "plot/density.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 900.0
#define PANEL_WIDTH 195.0
#define PANEL_HEIGHT 150.0
#define PANEL_GAP 22.0
#define PANELS_MAX 60
#define FEW 20 /* columns with at most this many different values are drawn as bars */

/* Sorted values of one column: the observed and the imputed ones. */
typedef struct sample {
    double *seen, *filled;
    int64_t n_seen, n_filled;
} sample;

/* The memory for both is allocated once: at most N observed and draws * N imputed values. */
static void gather(const acf_figure_table *t, const double *completed, int32_t draws, int64_t j, sample *s) {
    s->n_seen = s->n_filled = 0;
    for (int64_t i = 0; i < t->N; i++) {
        const double v = t->x[i * t->D + j];
        if (!isnan(v))
            s->seen[s->n_seen++] = v;
        else
            for (int64_t d = 0; d < draws; d++) s->filled[s->n_filled++] = completed[(d * t->N + i) * t->D + j];
    }
    s->n_seen = acf_values_sort(s->seen, s->n_seen);
    s->n_filled = acf_values_sort(s->filled, s->n_filled);
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

static const acf_ink inks[2] = {ACF_HEX(0x0072b2), ACF_HEX(0xe69f00)}; /* ACF_INK_DATA, ACF_INK_MODEL */

static acf_status draw_classes(acf_canvas *c, acf_box box, const acf_figure_column *column, const sample *s) {
    const int32_t C = column->classes;
    double *share = acf_alloc_zero((size_t)C * 2 * sizeof *share, "shares of classes");
    if (!share) return ACF_EMEMORY;
    for (int64_t i = 0; i < s->n_seen; i++)
        if (s->seen[i] >= 0 && s->seen[i] < C) share[(int64_t)s->seen[i]] += 1 / (double)s->n_seen;
    for (int64_t i = 0; i < s->n_filled; i++)
        if (s->filled[i] >= 0 && s->filled[i] < C) share[C + (int64_t)s->filled[i]] += 1 / (double)s->n_filled;
    acf_status status = acf_figure_bars(c, box, column, share, 2, inks, NULL);
    acf_release(share);
    return status;
}

/* Share of one value among n sorted ones. */
static double share_of(const double *sorted, int64_t n, double value) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += sorted[i] == value;
    return n > 0 ? (double)count / (double)n : 0;
}

/* The different values of both lists, ascending; at most cap. */
static int64_t union_of(const sample *s, double *out, int64_t cap) {
    int64_t n = 0, a = 0, b = 0;
    while ((a < s->n_seen || b < s->n_filled) && n < cap) {
        const double v = fmin(a < s->n_seen ? s->seen[a] : INFINITY, b < s->n_filled ? s->filled[b] : INFINITY);
        out[n++] = v;
        while (a < s->n_seen && s->seen[a] == v) a++;
        while (b < s->n_filled && s->filled[b] == v) b++;
    }
    return n;
}

/* Two bars at each value, as wide as the closest two values allow. */
static void draw_values(acf_canvas *c, acf_box box, const acf_figure_column *column, const sample *s,
                        const double *value, int64_t n) {
    double high = 1e-9, share[2][2 * FEW + 2], closest = INFINITY;
    for (int64_t k = 0; k < n; k++) {
        share[0][k] = share_of(s->seen, s->n_seen, value[k]), share[1][k] = share_of(s->filled, s->n_filled, value[k]);
        high = fmax(high, fmax(share[0][k], share[1][k]));
        if (k) closest = fmin(closest, value[k] - value[k - 1]);
    }
    acf_range range = acf_range_usable(value[0], value[n - 1]);
    if (isfinite(closest)) range = acf_range_usable(range.lo - closest / 2, range.hi + closest / 2);
    acf_panel p = acf_panel_open(c, box, NULL, (acf_axis){range, column->unit},
                                 (acf_axis){{0, 1.05 * high}, .show = ACF_AXIS_NONE});
    const double step = isfinite(closest) ? closest / (range.hi - range.lo) * p.box.w : p.box.w / 4,
                 half = fmin(fmax(0.4 * step, 0.5), 14);
    acf_canvas_clip(c, p.box);
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < 2; i++) {
            const double y = acf_panel_y(&p, share[i][k]), x = acf_panel_x(&p, value[k]) + (i - 1) * half;
            acf_canvas_fill(c, (acf_box){x, y, half, p.box.y + p.box.h - y}, inks[i]);
        }
    acf_canvas_unclip(c);
}

/* Number of n sorted values outside the range. */
static int64_t beyond(const double *sorted, int64_t n, acf_range r) {
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++) out += sorted[i] < r.lo || sorted[i] > r.hi;
    return out;
}

/* Adds to the facts how many values, observed and imputed, are outside the axis. */
static void add_beyond(char note[96], int64_t n) {
    char a[ACF_TICK_LABEL_MAX];
    const size_t at = strlen(note);
    if (n > 0) snprintf(note + at, 96 - at, "; %s off axis", acf_tick_count(a, n));
}

static void draw_curves(acf_canvas *c, acf_box box, const acf_figure_column *column, sample *s, char note[96]) {
    acf_range range = s->n_seen > 1 ? acf_range_middle(s->seen, s->n_seen) : acf_range_middle(s->filled, s->n_filled);
    acf_panel p = acf_panel_open(c, box, NULL, (acf_axis){acf_range_padded(range, 0.04), column->unit},
                                 (acf_axis){{0, 1}, .show = ACF_AXIS_NONE});
    const int64_t out = beyond(s->seen, s->n_seen, p.x) + beyond(s->filled, s->n_filled, p.x);
    const acf_spread spread = acf_figure_spread(&p, s->seen, s->n_seen, s->filled, s->n_filled);
    char at[ACF_TICK_LABEL_MAX];
    if (spread.has_spike)
        snprintf(note, 96, "%s: %d %% observed, %d %% imputed", acf_tick_number(at, spread.spike, 3),
                 (int)lround(100 * spread.share[0]), (int)lround(100 * spread.share[1]));
    add_beyond(note, out);
}

static void draw_numbers(acf_canvas *c, acf_box box, const acf_figure_column *column, sample *s, char note[96]) {
    double value[2 * FEW + 2];
    const int64_t n = union_of(s, value, 2 * FEW + 2);
    if (n == 0) return acf_chart_note(c, box, "nothing to show");
    if (acf_values_distinct(s->seen, s->n_seen, FEW) <= FEW && n <= 2 * FEW && s->n_seen > 0)
        draw_values(c, box, column, s, value, n);
    else
        draw_curves(c, box, column, s, note);
}

/* Title, a line of facts, the panel below. Some facts are only known after the panel is drawn. */
static acf_status draw_column(acf_canvas *c, acf_box box, const acf_figure_table *t, int64_t j, int32_t draws,
                              sample *s) {
    char name[ACF_FIGURE_NAME_MAX], note[96], a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX];
    const acf_figure_column *column = &t->column[j];
    const double title = ACF_LINE(ACF_SIZE_PANEL), line = ACF_LINE(ACF_SIZE_TICK);
    const acf_box in = {box.x, box.y + title + line + 4, box.w, box.h - title - line - 4};
    if (in.h < 30) return ACF_OK;
    snprintf(note, sizeof note, "%s observed, %s imputed", acf_tick_count(a, s->n_seen),
             acf_tick_count(b, s->n_filled / draws));
    acf_canvas_text_in(c, box.x, box.y + title / 2, acf_figure_name(column, j, name),
                       (acf_type){ACF_SIZE_PANEL, .bold = 1, .ink = ACF_INK_TEXT}, box.w);
    acf_status status = ACF_OK;
    if (column->classes > 0)
        status = draw_classes(c, in, column, s);
    else
        draw_numbers(c, in, column, s, note);
    acf_canvas_text_in(c, box.x, box.y + title + line / 2, note, (acf_type){ACF_SIZE_TICK, .ink = ACF_INK_QUIET},
                       box.w);
    return status;
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

typedef struct missing {
    int64_t j, missing;
} missing;

static int most_first(const void *a, const void *b) {
    const missing *p = a, *q = b;
    if (p->missing != q->missing) return p->missing > q->missing ? -1 : 1;
    return (p->j > q->j) - (p->j < q->j);
}

static int by_column(const void *a, const void *b) {
    const missing *p = a, *q = b;
    return (p->j > q->j) - (p->j < q->j);
}

/* list (D): columns with missing cells, in table order; returns their number. */
static int64_t find_columns(const acf_figure_table *t, missing *list) {
    int64_t n = 0;
    for (int64_t j = 0; j < t->D; j++) list[j] = (missing){j, 0};
    for (int64_t i = 0; i < t->N; i++)
        for (int64_t j = 0; j < t->D; j++) list[j].missing += isnan(t->x[i * t->D + j]);
    for (int64_t j = 0; j < t->D; j++)
        if (list[j].missing) list[n++] = list[j];
    return n;
}

typedef struct grid {
    int across, down;
    int64_t panels;
} grid;

/* One panel for each column with missing cells, as many across as the width allows. A given height may show fewer. */
static grid make_grid(double width, double height, int64_t columns) {
    grid g = {.across = (int)fmax((width - 2 * ACF_MARGIN + PANEL_GAP) / (PANEL_WIDTH + PANEL_GAP), 1)};
    int64_t most = PANELS_MAX;
    if (height != 0)
        most = g.across *
               (int64_t)fmax(floor((height - ACF_HEAD_HEIGHT - 30 + PANEL_GAP) / (0.7 * PANEL_HEIGHT + PANEL_GAP)), 1);
    g.panels = acf_min(columns, most);
    g.across = (int)acf_max(acf_min(g.across, g.panels), 1);
    g.down = (int)acf_max((g.panels + g.across - 1) / g.across, 1);
    return g;
}

static double own_height(grid g) { return ACF_HEAD_HEIGHT + 30 + ACF_MARGIN + g.down * (PANEL_HEIGHT + PANEL_GAP); }

static acf_status draw(acf_canvas *c, const acf_plot_options *o, const acf_figure_table *t, const double *completed,
                       int32_t draws, missing *list, int64_t n, grid g, sample *s) {
    char facts[300], a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX];
    acf_text text = acf_text_into(facts, sizeof facts);
    if (g.panels < n) {
        qsort(list, (size_t)n, sizeof *list, most_first);
        qsort(list, (size_t)g.panels, sizeof *list, by_column);
        acf_text_addf(&text, "The %s of %s columns with the most missing cells.", acf_tick_count(a, g.panels),
                      acf_tick_count(b, n));
    } else {
        acf_text_addf(&text, "%s of %s columns %s missing cells.", acf_tick_count(a, n), acf_tick_count(b, t->D),
                      n == 1 ? "has" : "have");
    }
    if (draws > 1) acf_text_addf(&text, " %s draws for each missing cell.", acf_tick_count(a, draws));
    acf_box box = acf_chart_head(c, acf_figure_title(o, "Observed and imputed values"), facts);
    box = acf_chart_legend(
        c, box, (acf_key[]){{"observed", ACF_KEY_BOX, {ACF_INK_DATA}}, {"imputed", ACF_KEY_BOX, {ACF_INK_MODEL}}}, 2);
    if (n == 0) acf_chart_note(c, box, "no cell is missing");
    for (int64_t k = 0; k < g.panels; k++) {
        gather(t, completed, draws, list[k].j, s);
        ACF_TRY(draw_column(c, acf_chart_cell(box, g.across, g.down, (int)k, PANEL_GAP), t, list[k].j, draws, s));
    }
    return ACF_OK;
}

acf_status acf_figure_imputed(const char *path, const acf_plot_options *o, const acf_figure_table *t,
                              const double *completed, int32_t draws) {
    acf_canvas *c = NULL;
    sample s = {0};
    acf_status status = ACF_EMEMORY;
    size_t seen, columns, filled;
    if (!acf_bytes(t->N, sizeof(double), &seen) || !acf_bytes(t->D, sizeof(missing), &columns)) return status;
    missing *list = acf_alloc(columns, "a list of columns");
    if (!list) return status;
    const int64_t n = find_columns(t, list);
    int64_t most = 0;
    for (int64_t k = 0; k < n; k++) most = acf_max(most, list[k].missing);
    const grid g = make_grid(acf_figure_width(o, WIDTH), acf_figure_height(o), n);
    if (most > INT64_MAX / draws || !acf_bytes(most * draws, sizeof(double), &filled)) goto done;
    s.seen = acf_alloc(seen, "values of a column"), s.filled = acf_alloc(filled, "imputed values of a column");
    if (!s.seen || !s.filled) goto done;
    ACF_TRY_DONE(acf_figure_open(path, o, WIDTH, own_height(g), &c));
    ACF_TRY_DONE(draw(c, o, t, completed, draws, list, n, g, &s));
    status = acf_canvas_save(c);
    c = NULL;
done:
    acf_canvas_free(c);
    acf_release(list);
    acf_release(s.seen);
    acf_release(s.filled);
    return status;
}
