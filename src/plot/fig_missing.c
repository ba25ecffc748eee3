/* A map of the missing cells: see acf_plot_missing in acflow.h.
 *
 *                 rows of the table                       missing     patterns
 *     age        |▒▒▒▒█▒▒▒▒▒▒▒▒▒█▒▒▒▒▒▒▒|  ▇▇   8 %     ▒ █ ▒ ▒ █
 *     dose       |▒▒█▒▒▒▒▒▒▒▒█▒▒▒▒▒▒▒▒▒▒|  ▇    6 %     ▒ ▒ █ ▒ ▒
 *                 1        500       1000               71  8  6  5 %
 *
 * Each column is a line, so names are readable. Each row is a narrow strip; if there is no space for all, every k-th is
 * shown. Patterns are counted over all rows, by a sorted 64-bit hash of the row's missing columns. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/real.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 900.0
#define STRIP_WIDTH 1.5    /* least width of a row, in points */
#define LINE_LEAST 2.0     /* least height of a column, in points */
#define PATTERN_WIDTH 30.0 /* fits "100 %" */
#define PATTERNS_MAX 12

/* ---- counting ---------------------------------------------------------------------------------------------------- */

typedef struct pattern {
    uint64_t hash;
    int64_t row, count; /* a row with the pattern; number of such rows */
} pattern;

typedef struct counts {
    int64_t *missing; /* (D) */
    int64_t holes, complete;
    pattern *pattern; /* the most frequent first */
    int64_t n_patterns;
} counts;

/* FNV-1a over the numbers of the missing columns; without missing cells, the offset basis. */
static uint64_t row_hash(const double *x, int64_t D, int64_t *missing, int64_t *holes) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t j = 0; j < D; j++) {
        if (!isnan(x[j])) continue;
        h = (h ^ (uint64_t)j) * 0x100000001b3u;
        h ^= h >> 29;
        missing[j]++, ++*holes;
    }
    return h;
}

static int by_hash(const void *a, const void *b) {
    const pattern *p = a, *q = b;
    if (p->hash != q->hash) return p->hash < q->hash ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

static int by_count(const void *a, const void *b) {
    const pattern *p = a, *q = b;
    if (p->count != q->count) return p->count > q->count ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

/* all (N): one entry a row on input, the distinct patterns on output. */
static int64_t merge(pattern *all, int64_t N) {
    int64_t n = 0;
    qsort(all, (size_t)N, sizeof *all, by_hash);
    for (int64_t i = 0; i < N; i++) {
        if (n > 0 && all[n - 1].hash == all[i].hash)
            all[n - 1].count++;
        else
            all[n++] = all[i];
    }
    qsort(all, (size_t)n, sizeof *all, by_count);
    return n;
}

static acf_status count(const acf_figure_table *t, counts *out) {
    size_t rows, columns;
    if (!acf_bytes(t->N, sizeof(pattern), &rows) || !acf_bytes(t->D, sizeof(int64_t), &columns)) return ACF_EMEMORY;
    out->missing = acf_alloc_zero(columns, "the missing cells of columns");
    out->pattern = acf_alloc(rows, "the patterns of missing cells");
    if (!out->missing || !out->pattern) return ACF_EMEMORY;
    for (int64_t i = 0; i < t->N; i++) {
        const int64_t before = out->holes;
        const uint64_t hash = row_hash(t->x + i * t->D, t->D, out->missing, &out->holes);
        out->pattern[i] = (pattern){hash, i, 1};
        out->complete += out->holes == before;
    }
    out->n_patterns = merge(out->pattern, t->N);
    return ACF_OK;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

/* The layout. */
typedef struct plan {
    acf_canvas *c;
    const acf_figure_table *t;
    const counts *n;
    acf_box body;  /* the area of the lines */
    int64_t lines; /* number of columns shown */
    double line;   /* height of a line */
    double name_w, matrix_x, matrix_w, share_x, bar_w, pattern_x;
    int64_t strips; /* number of rows shown */
    int patterns;
} plan;

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/* The column of line k: all columns, or evenly spaced ones. */
static int64_t line_column(const plan *p, int64_t k) { return p->lines == p->t->D ? k : k * p->t->D / p->lines; }
static int64_t strip_row(const plan *p, int64_t k) { return p->strips == p->t->N ? k : k * p->t->N / p->strips; }

static void percent_text(char out[16], double part) {
    acf_text t = acf_text_into(out, 16);
    const int tenths = (int)lround(1000 * part);
    if (part > 0 && part < 0.0005)
        acf_text_add(&t, "<0.1 %");
    else if (part < 1 && part > 0.9995)
        acf_text_add(&t, ">99.9 %");
    else if (tenths == 0 || tenths >= 100)
        acf_text_addf(&t, "%d %%", (int)lround(100 * part));
    else
        acf_text_addf(&t, "%d.%d %%", tenths / 10, tenths % 10);
}

/* Draws each run of missing rows as one box. */
static void draw_strips(const plan *p, int64_t j, acf_box line) {
    const double w = line.w / (double)p->strips;
    acf_canvas_fill(p->c, line, ACF_INK_PALE);
    for (int64_t k = 0, from = -1; k <= p->strips; k++) {
        const bool hole = k < p->strips && isnan(p->t->x[strip_row(p, k) * p->t->D + j]);
        if (hole && from < 0) from = k;
        if (hole || from < 0) continue;
        acf_canvas_fill(p->c, (acf_box){line.x + (double)from * w, line.y, (double)(k - from) * w, line.h},
                        ACF_INK_MISSING);
        from = -1;
    }
}

static void draw_line(const plan *p, int64_t k, bool named) {
    char name[ACF_FIGURE_NAME_MAX], text[16];
    const int64_t j = line_column(p, k);
    const double y = p->body.y + (double)k * p->line,
                 gap = p->line > 6   ? 2
                       : p->line > 3 ? 0.5
                                     : 0,
                 middle = y + p->line / 2;
    const double part = share((double)p->n->missing[j], (double)p->t->N);
    draw_strips(p, j, (acf_box){p->matrix_x, y + gap / 2, p->matrix_w, p->line - gap});
    if (p->bar_w > 0) acf_canvas_fill(p->c, (acf_box){p->share_x, y + gap / 2, p->bar_w, p->line - gap}, ACF_INK_PALE);
    if (p->bar_w > 0 && part > 0)
        acf_canvas_fill(p->c, (acf_box){p->share_x, y + gap / 2, fmax(part * p->bar_w, 0.5), p->line - gap},
                        ACF_INK_MISSING);
    for (int i = 0; i < p->patterns; i++) {
        const bool hole = isnan(p->t->x[p->n->pattern[i].row * p->t->D + j]);
        acf_canvas_fill(p->c,
                        (acf_box){p->pattern_x + i * PATTERN_WIDTH + 3, y + gap / 2, PATTERN_WIDTH - 6, p->line - gap},
                        hole ? ACF_INK_MISSING : ACF_INK_PALE);
    }
    if (!named) return;
    const double size = fmin(ACF_SIZE_TEXT, fmax(p->line, ACF_SIZE_TICK) / 1.1);
    acf_canvas_text_in(p->c, p->matrix_x - 8, middle, acf_figure_name(&p->t->column[j], j, name),
                       (acf_type){size, .align = 1, .ink = ACF_INK_TEXT}, p->name_w);
    percent_text(text, part);
    acf_canvas_text(p->c, p->share_x + p->bar_w + 44, middle, text,
                    (acf_type){ACF_SIZE_TICK, .align = 1, .ink = ACF_INK_TEXT});
}

/* Every k-th line has its name, so that names do not overlap. */
static int64_t name_every(const plan *p) { return (int64_t)ceil((ACF_SIZE_TICK + 1.5) / p->line); }

/* Writes the first of three texts, from long to short, that fits. */
static void write_one(const plan *p, double x, double y, double width, const char *const text[3]) {
    const acf_type type = {ACF_SIZE_TICK, .ink = ACF_INK_QUIET};
    int k = 0;
    while (k < 2 && acf_canvas_text_width(p->c, text[k], type) > width) k++;
    acf_canvas_text_in(p->c, x, y, text[k], type, width);
}

/* The heading says so if not all rows are shown. */
static void draw_headings(const plan *p) {
    const double y = p->body.y - 11, right = p->body.x + p->body.w;
    char few[96], fewer[96], a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX];
    acf_text one = acf_text_into(few, sizeof few), two = acf_text_into(fewer, sizeof fewer);
    acf_text_addf(&one, "%s of the %s rows, evenly spaced, in order", acf_tick_count(a, p->strips),
                  acf_tick_count(b, p->t->N));
    acf_text_addf(&two, "%s of %s rows", a, b);
    if (p->strips < p->t->N)
        write_one(p, p->matrix_x, y, p->matrix_w, (const char *const[3]){few, fewer, "some rows"});
    else
        write_one(p, p->matrix_x, y, p->matrix_w,
                  (const char *const[3]){"rows of the table, in order", "rows, in order", "rows"});
    acf_canvas_text_in(p->c, p->share_x, y, "missing", (acf_type){ACF_SIZE_TICK, .ink = ACF_INK_QUIET}, p->bar_w + 46);
    if (p->patterns)
        write_one(p, p->pattern_x + 3, y, right - p->pattern_x - 3,
                  (const char *const[3]){"most frequent patterns, and their share of the rows",
                                         "patterns, share of rows", "patterns"});
}

/* Row numbers below the strips, shares of rows below the patterns. */
static void draw_foot(const plan *p) {
    const double y = p->body.y + (double)p->lines * p->line + 4 + ACF_SIZE_TICK / 2;
    acf_type type = {ACF_SIZE_TICK, .align = 0.5, .ink = ACF_INK_QUIET};
    char text[ACF_TICK_LABEL_MAX];
    for (int i = 0; i < p->patterns; i++) {
        percent_text(text, share((double)p->n->pattern[i].count, (double)p->t->N));
        acf_canvas_text_in(p->c, p->pattern_x + (i + 0.5) * PATTERN_WIDTH, y, text, type, PATTERN_WIDTH);
    }
    double free_from = p->matrix_x - 4;
    const acf_ticks t = acf_ticks_make((acf_range){0, (double)p->t->N}, 0, 5);
    for (int i = 0; i < t.n; i++) { /* row 0 is shown as 1; the last row has its number only if that is a tick */
        const double row = fmax(t.at[i], 1),
                     x = p->matrix_x + fmin(row - 0.5, (double)p->t->N) / (double)p->t->N * p->matrix_w;
        if (row != floor(row)) continue;
        acf_tick_count(text, (int64_t)row);
        const double w = acf_canvas_text_width(p->c, text, type),
                     left = fmin(fmax(x - w / 2, p->matrix_x - 4), p->matrix_x + p->matrix_w + 8 - w);
        if (left < free_from) continue;
        acf_canvas_text(p->c, left, y, text, (acf_type){ACF_SIZE_TICK, .ink = ACF_INK_QUIET});
        free_from = left + w + 6;
    }
}

/* Places names, rows, shares and patterns from left to right. A narrow page has no patterns, then no bars. */
static void place(plan *p, acf_box box) {
    char name[ACF_FIGURE_NAME_MAX];
    const acf_type type = {ACF_SIZE_TEXT};
    for (int64_t k = 0; k < p->lines; k += name_every(p)) {
        const int64_t j = line_column(p, k);
        p->name_w = fmax(p->name_w, acf_canvas_text_width(p->c, acf_figure_name(&p->t->column[j], j, name), type) + 1);
    }
    p->name_w = fmin(p->name_w, 0.25 * box.w);
    const double shares = 46, rest = box.w - p->name_w - 8 - shares - 14;
    p->bar_w = rest > 240 ? 60 : 0;
    p->patterns = (int)fmin(fmin((rest - p->bar_w - 200) / PATTERN_WIDTH, PATTERNS_MAX), (double)p->n->n_patterns);
    if (p->patterns < 2) p->patterns = 0;
    const double right = p->patterns * PATTERN_WIDTH + (p->patterns ? 16 : 0);
    p->matrix_x = box.x + p->name_w + 8;
    p->matrix_w = fmax(rest - p->bar_w - right, 10);
    p->share_x = p->matrix_x + p->matrix_w + 14;
    p->pattern_x = p->share_x + p->bar_w + shares + 16;
    p->strips = acf_min(p->t->N, (int64_t)(p->matrix_w / STRIP_WIDTH));
}

static void write_facts(acf_text *out, const acf_figure_table *t, const counts *n, int64_t lines) {
    char a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX], d[ACF_TICK_LABEL_MAX], missing[16], complete[16];
    percent_text(missing, share((double)n->holes, (double)t->N * (double)t->D));
    percent_text(complete, share((double)n->complete, (double)t->N));
    acf_text_addf(out, "%s row%s, %s column%s; %s of the cells are missing, %s of the rows are complete; %s",
                  acf_tick_count(a, t->N), t->N == 1 ? "" : "s", acf_tick_count(b, t->D), t->D == 1 ? "" : "s", missing,
                  complete, n->n_patterns == 1 ? "all have one pattern." : acf_tick_count(d, n->n_patterns));
    if (n->n_patterns != 1) acf_text_add(out, " different patterns.");
    if (lines < t->D) acf_text_addf(out, " %s of the columns are shown, evenly spaced.", acf_tick_count(a, lines));
}

#define FOOT (ACF_LINE(ACF_SIZE_TICK) + 8)
#define TOP 22.0 /* height of the headings above the lines */

/* 20 points a column, fewer for many columns. */
static double own_height(int64_t D) {
    const double lines = fmin(fmax(20 * fmin((double)D, 40), 12 * fmin((double)D, 350)), 4200);
    return ACF_HEAD_HEIGHT + 24 + TOP + FOOT + ACF_MARGIN + lines;
}

static void draw(acf_canvas *c, const acf_plot_options *o, const acf_figure_table *t, const counts *n) {
    char facts[400];
    plan p = {.c = c, .t = t, .n = n};
    /* before the height of the heading is known */
    const double rough = acf_canvas_height(c) - ACF_HEAD_HEIGHT - 24 - TOP - FOOT - ACF_MARGIN;
    p.lines = acf_min(t->D, (int64_t)fmax(rough / LINE_LEAST, 1));
    acf_text text = acf_text_into(facts, sizeof facts);
    write_facts(&text, t, n, p.lines);
    acf_box box = acf_chart_head(c, acf_figure_title(o, "Missing cells"), facts);
    box = acf_chart_legend(
        c, box, (acf_key[]){{"missing", ACF_KEY_BOX, {ACF_INK_MISSING}}, {"present", ACF_KEY_BOX, {ACF_INK_PALE}}}, 2);
    if (t->N == 0) return acf_chart_note(c, box, "the table has no rows");
    if (box.h < TOP + FOOT + 10) return acf_chart_note(c, box, "the page is too low for this figure");
    p.body = (acf_box){box.x, box.y + TOP, box.w, box.h - TOP - FOOT};
    p.line = fmin(p.body.h / (double)p.lines, 24);
    place(&p, p.body);
    draw_headings(&p);
    for (int64_t k = 0; k < p.lines; k++) draw_line(&p, k, k % name_every(&p) == 0);
    draw_foot(&p);
}

acf_status acf_figure_missing(const char *path, const acf_plot_options *o, const acf_figure_table *t) {
    acf_canvas *c = NULL;
    counts n = {0};
    acf_status status = acf_figure_open(path, o, WIDTH, own_height(t->D), &c);
    if (status == ACF_OK) status = count(t, &n);
    if (status == ACF_OK) {
        draw(c, o, t, &n);
        status = acf_canvas_save(c);
    } else {
        acf_canvas_free(c);
    }
    acf_release(n.missing);
    acf_release(n.pattern);
    return status;
}
