/* The predicted distribution of one column, for the figure of fig_conditional.c: which values are shown, and their
 * probabilities. For numbers, draws decide the axis, whether few values repeat, and whether one is a spike; the
 * densities come from the model. */
#include "plot/figures.h"

#include "base/arena.h"
#include "plot/density.h"

#include <math.h>
#include <string.h>

#define GRID 600
#define OVER 3         /* density points for each grid point, which has their mean */
#define DRAWS 64       /* draws of each row to find the range of its density */
#define DRAWS_MAX 1024 /* draws of each row to estimate probabilities */
#define FEW_VALUES 20  /* most values shown as bars */

_Static_assert(ACF_FIGURE_ROWS_MAX <= ACF_SERIES_MAX, "every row has a colour of its own");

typedef struct grid {
    const acf_figure_query *q;
    int64_t rows; /* n + 1 */
    int G;
    double *x;      /* (G) values of the column */
    double *p;      /* (rows, G) densities or probabilities; the last row is that with nothing given */
    bool has_spike; /* one value makes up a tenth of the draws */
    double spike, share[ACF_FIGURE_ROWS_MAX + 1]; /* that value, and its share of the draws of each row */
    bool few;                /* the draws have few values: x are these values, p their shares of the draws */
    int64_t draws;           /* draws made of each row */
    double beyond, furthest; /* share of the draws outside the axis; the furthest of them */
} grid;

/* The largest number of equal values among the n sorted ones, without the value `but`. */
static int64_t next_most(const double *sorted, int64_t n, double but) {
    int64_t most = 0, run = 0;
    for (int64_t i = 0; i < n; i++) {
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        if (sorted[i] != but && run > most) most = run;
    }
    return most;
}

/* A spike is a value that is drawn repeatedly, in a column of many other values, none nearly as frequent: in rounded
 * columns all values repeat. */
#define FEW 12
#define TOWERS 3
static void find_spike(grid *g, const double *value, int64_t n, const double *sorted, int64_t n_sorted) {
    double share;
    const int64_t rows = g->rows;
    g->has_spike = acf_values_distinct(sorted, n_sorted, FEW) > FEW &&
                   acf_spike_find(sorted, n_sorted, &g->spike, &share) &&
                   share * (double)n_sorted > TOWERS * (double)next_most(sorted, n_sorted, g->spike);
    for (int64_t i = 0; g->has_spike && i < rows; i++) {
        g->share[i] = 0;
        for (int64_t k = i; k < n; k += rows) g->share[i] += value[k] == g->spike ? (double)rows / (double)n : 0;
    }
}

/* Makes draws of each row, from number g->draws up to n, (n, rows) in value. */
static acf_status draw_more(grid *g, int64_t n, double *value) {
    for (; g->draws < n; g->draws++) ACF_TRY(g->q->draw(g->q->model, (uint32_t)g->draws, value + g->draws * g->rows));
    return ACF_OK;
}

/* Sorts all draws and true values; returns their number. */
static int64_t sort_all(const grid *g, const double *value, double *sorted) {
    int64_t n = g->draws * g->rows;
    memcpy(sorted, value, (size_t)n * sizeof *sorted);
    for (int i = 0; i < g->q->n; i++) sorted[n++] = g->q->truth[i];
    return acf_values_sort(sorted, n);
}

/* For a column of rounded values: each value, and its share of the draws. */
static void count_values(grid *g, const double *value, int64_t n, const double *sorted, int64_t n_sorted) {
    const int64_t rows = g->rows;
    g->G = 0;
    for (int64_t i = 0; i < n_sorted; i++)
        if (i == 0 || sorted[i] != sorted[i - 1]) g->x[g->G++] = sorted[i];
    for (int64_t k = 0; k < rows * g->G; k++) g->p[k] = 0;
    for (int64_t k = 0; k < n; k++)
        for (int v = 0; v < g->G; v++)
            if (value[k] == g->x[v]) g->p[k % rows * g->G + v] += (double)rows / (double)n;
}

/* The range of nearly all draws and the true values, limited to the range of the column. */
static acf_range span_of(grid *g, const double *sorted, int64_t n) {
    acf_range r = acf_range_middle(sorted, n), wide;
    for (int i = 0; i < g->q->n; i++) {
        const double seen = g->q->truth[i];
        if (isfinite(seen)) r.lo = fmin(r.lo, seen), r.hi = fmax(r.hi, seen);
    }
    wide = acf_range_padded(r, 0.06);
    r = acf_range_usable(fmin(fmax(wide.lo, g->q->least), r.lo), fmax(fmin(wide.hi, g->q->most), r.hi));
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++) out += sorted[i] < r.lo || sorted[i] > r.hi;
    g->beyond = n > 0 ? (double)out / (double)n : 0;
    if (out) g->furthest = sorted[0] < r.lo && r.lo - sorted[0] > sorted[n - 1] - r.hi ? sorted[0] : sorted[n - 1];
    return r;
}

/* Finds the range of the densities, from draws of each row and with nothing given; or the probabilities of few
 * values. */
static acf_status find_span(grid *g, acf_range *out) {
    const int64_t rows = g->rows;
    size_t bytes;
    if (!acf_bytes(rows * (2 * DRAWS_MAX + 1), sizeof(double), &bytes)) return ACF_EMEMORY;
    double *value = acf_alloc(bytes, "draws"), *sorted;
    if (!value) return ACF_EMEMORY;
    sorted = value + rows * DRAWS_MAX;
    acf_status status = draw_more(g, DRAWS, value);
    int64_t n = status ? 0 : sort_all(g, value, sorted);
    g->few = n > 0 && g->q->rounded && acf_values_distinct(sorted, n, FEW_VALUES) <= FEW_VALUES;
    find_spike(g, value, g->draws * rows, sorted, n);
    if (!status && (g->few || g->has_spike)) {
        status = draw_more(g, DRAWS_MAX, value);
        n = status ? 0 : sort_all(g, value, sorted);
        g->few = g->few && acf_values_distinct(sorted, n, FEW_VALUES) <= FEW_VALUES;
        find_spike(g, value, g->draws * rows, sorted, n);
    }
    if (!status && g->few)
        count_values(g, value, g->draws * rows, sorted, n);
    else if (n > 0)
        *out = span_of(g, sorted, n);
    else
        *out = (acf_range){0, 1};
    acf_release(value);
    return status;
}

/* Averages each OVER points, so that features narrower than a pixel are neither hit nor missed by chance. The grid
 * point at the spike gets the spike's value. */
static void average_points(grid *g, acf_range span) {
    const int G = g->G / OVER;
    for (int64_t i = 0; i < g->rows * G; i++) {
        double sum = 0;
        for (int k = 0; k < OVER; k++) sum += g->p[i * OVER + k];
        g->p[i] = sum / OVER;
    }
    for (int k = 0; k < G; k++) g->x[k] = span.lo + (span.hi - span.lo) * (k + 0.5) / G;
    if (g->has_spike) g->x[(int)fmin(fmax((g->spike - span.lo) / (span.hi - span.lo) * G, 0), G - 1)] = g->spike;
    g->G = G;
}

/* Sets x and p, and the statistics of the draws. */
static acf_status fill(grid *g) {
    const bool numbers = g->q->column.classes == 0;
    acf_range span = {0, 1};
    if (numbers) ACF_TRY(find_span(g, &span));
    if (g->few) return ACF_OK;
    for (int k = 0; k < g->G; k++) g->x[k] = numbers ? span.lo + (span.hi - span.lo) * (k + 0.5) / g->G : k;
    ACF_TRY(g->q->logp(g->q->model, g->x, g->G, g->p));
    for (int64_t i = 0; i < g->rows * g->G; i++) g->p[i] = exp(g->p[i]);
    if (numbers) average_points(g, span);
    return ACF_OK;
}

acf_status acf_figure_from_query(const char *path, const acf_plot_options *o, const acf_figure_query *q) {
    grid g = {.q = q, .rows = q->n + 1, .G = q->column.classes > 0 ? q->column.classes : GRID * OVER};
    size_t bytes;
    ACF_ASSERT(q->n <= ACF_FIGURE_ROWS_MAX);
    if (!acf_bytes((g.rows + 1) * (int64_t)g.G, sizeof(double), &bytes)) return ACF_EMEMORY;
    double *x = acf_alloc(bytes, "a density");
    if (!x) return ACF_EMEMORY;
    g.x = x, g.p = x + g.G;
    acf_status status = fill(&g);
    if (status == ACF_OK)
        status = acf_figure_conditional(path, o,
                                        &(acf_figure_curves){q->column, q->n, g.G, g.x, g.p, g.p + q->n * g.G, q->truth,
                                                             q->label, g.has_spike, g.spike, g.share, g.few, g.draws,
                                                             g.beyond, g.furthest});
    acf_release(x);
    return status;
}
