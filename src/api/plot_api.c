/* Public pictures: see acflow.h. Checks at the door, then plot/; for conditional densities also the questions to the model. */
#include "api/argument_checks.h"
#include "base/arena.h"
#include "infer/session_parts.h"
#include "plot/density.h"
#include "plot/figures.h"
#include "table/table_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tables -------------------------------------------------------------------------------------------------------------- */

/* Columns as figures want them; release with acf_release. */
static acf_status view(const acf_table *t, const acf_plot_options *o, acf_figure_table *out) {
    acf_figure_column *column = acf_alloc_zero((size_t)t->D * sizeof *column, "a list of columns");
    if (!column) return ACF_EMEMORY;
    for (int64_t j = 0; j < t->D; j++) {
        column[j].name = t->column[j].name;
        column[j].classes = t->column[j].classes;
        if (o && o->columns) column[j].labels = o->columns[j].labels, column[j].unit = o->columns[j].seconds;
    }
    *out = (acf_figure_table){t->x, t->N, t->D, column};
    return ACF_OK;
}

/* All columns of the file: who looks for holes looks for an id that is missing and a column that is nearly empty, too. */
static acf_status missing_of_file(const char *path, const acf_plot_options *o, const acf_table *t) {
    const acf_table_file *f = t->file;
    size_t bytes;
    if (!acf_bytes(f->columns, sizeof(double), &bytes) || !acf_bytes(t->N, bytes, &bytes)) return ACF_EMEMORY;
    double *x = acf_alloc(bytes, "the holes of a table");
    acf_figure_column *column = x ? acf_alloc_zero((size_t)f->columns * sizeof *column, "a list of columns") : NULL;
    acf_status status = column ? acf_table_file_pattern(t, x) : ACF_EMEMORY;
    for (int64_t c = 0; column && c < f->columns; c++) column[c].name = f->name[c];
    if (!status) status = acf_figure_missing(path, o, &(acf_figure_table){x, t->N, f->columns, column});
    acf_release(x);
    acf_release(column);
    return status;
}

acf_status acf_plot_missing(const char *path, const acf_plot_options *o, const acf_table *t) {
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(t);
    if (t->file && t->file->reader) return missing_of_file(path, o, t);
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_figure_missing(path, o, &f);
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_imputed(const char *path, const acf_plot_options *o, const acf_table *t, const double *completed,
                            int32_t draws) {
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(t);
    if (t->N > 0) ACF_NEED(completed);
    if (draws < 1) return acf_fail(ACF_EUSAGE, "acf_plot_imputed: %d draws; expected at least 1", (int)draws);
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_figure_imputed(path, o, &f, completed, draws);
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_pairs(const char *path, const acf_plot_options *o, const acf_table *t, const double *drawn,
                          int64_t n, const int64_t *column, int n_columns) {
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(t);
    ACF_NEED(column);
    if (n < 0) return acf_fail(ACF_EUSAGE, "acf_plot_pairs: %lld rows of draws", (long long)n);
    if (n > 0) ACF_NEED(drawn);
    if (n_columns < 2 || n_columns > ACF_PAIRS_MAX)
        return acf_fail(ACF_EUSAGE, "%d column%s against each other; expected 2 to %d", n_columns,
                        n_columns == 1 ? "" : "s", ACF_PAIRS_MAX);
    for (int k = 0; k < n_columns; k++)
        if (column[k] < 0 || column[k] >= t->D)
            return acf_fail(ACF_EUSAGE, "acf_plot_pairs: column %lld; the table has 0 to %lld", (long long)column[k],
                            (long long)t->D - 1);
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_figure_pairs(path, o, &f, drawn, n, column, n_columns);
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                           int down, const char *const *names_across, const char *const *names_down) {
    ACF_NEED(path);
    ACF_NEED(cloud);
    if (across < 1 || down < 1 || across > ACF_CLOUDS_MAX || down > ACF_CLOUDS_MAX)
        return acf_fail(ACF_EUSAGE, "acf_plot_clouds: %d x %d panels; expected 1 to %d each", across, down,
                        ACF_CLOUDS_MAX);
    for (int k = 0; k < across * down; k++)
        if (cloud[k].n < 0 || (cloud[k].n > 0 && !cloud[k].xy))
            return acf_fail(ACF_EUSAGE, "acf_plot_clouds: panel %d has %lld points%s", k, (long long)cloud[k].n,
                            cloud[k].xy ? "" : " and no array");
    return acf_figure_clouds(path, o, cloud, across, down, names_across, names_down);
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

acf_status acf_plot_training(const char *path, const acf_plot_options *o, const acf_fit_report *reports, int64_t n) {
    ACF_NEED(path);
    if (n < 0) return acf_fail(ACF_EUSAGE, "acf_plot_training: %lld reports", (long long)n);
    if (n > 0) ACF_NEED(reports);
    size_t bytes;
    if (!acf_bytes(n, 3 * sizeof(double), &bytes)) return ACF_EMEMORY;
    double *step = acf_alloc(bytes, "reports of training"), *loss = step + n, *valid = loss + n;
    if (!step) return ACF_EMEMORY;
    int64_t k = 0, first = 0;
    for (int second = 0; second < 2;
         second++) { /* reports of before there were two passes have 0 there, and of before there were members */
        for (int64_t i = 0; i < n; i++)
            if (reports[i].member <= 1 && (reports[i].pass == 2) == second)
                step[k] = (double)reports[i].step, loss[k] = reports[i].loss, valid[k++] = reports[i].valid;
        if (!second) first = k;
    }
    acf_status status = acf_figure_training(path, o, step, loss, valid, k, first);
    acf_release(step);
    return status;
}

/* ---- conditional densities ----------------------------------------------------------------------------------------------- */

#define GRID 600
#define OVER                                                                                                           \
    3 /* points of the density for each of the grid, which has their mean: what is narrower than a pixel is not hit or missed */
#define DRAWS 64       /* of each row, to find where its density is */
#define DRAWS_MAX 1024 /* where probabilities are counted in them */
#define FEW_VALUES 20  /* that have a bar each */

/* A question: every row of t once for each of G values of column j, and G times more with nothing given. */
typedef struct grid {
    acf_session *s;
    const acf_table *t;
    int64_t j;
    int G;
    double *x; /* (G) values of the column */
    double *p; /* (N + 1, G) the answers, the last row with nothing given */
    bool has_spike;
    double spike,
        share[ACF_SERIES_MAX + 1]; /* a value that makes up a tenth of the draws, and its part of those of each row */
    bool few;                      /* the draws have few values: x are these, and p their parts of the draws */
    int64_t draws;                 /* of each row */
    double beyond, furthest;       /* part of the draws that is not on the axis; how far they go */
} grid;

/* How many of the n sorted values are equal to the most frequent one but for this. */
static int64_t next_most(const double *sorted, int64_t n, double but) {
    int64_t most = 0, run = 0;
    for (int64_t i = 0; i < n; i++) {
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        if (sorted[i] != but && run > most) most = run;
    }
    return most;
}

/* A value that is drawn again and again, in a column of many others, none of which is nearly as frequent: where values are rounded, all of them repeat. */
#define FEW 12
#define TOWERS 3
static void find_spike(grid *g, const double *value, int64_t n, const double *sorted, int64_t n_sorted) {
    double share;
    const int64_t rows = g->t->N + 1;
    g->has_spike = acf_values_distinct(sorted, n_sorted, FEW) > FEW &&
                   acf_spike_find(sorted, n_sorted, &g->spike, &share) &&
                   share * (double)n_sorted > TOWERS * (double)next_most(sorted, n_sorted, g->spike);
    for (int64_t i = 0; g->has_spike && i < rows; i++) {
        g->share[i] = 0;
        for (int64_t k = i; k < n; k += rows) g->share[i] += value[k] == g->spike ? (double)rows / (double)n : 0;
    }
}

/* Draws from g->draws on up to n of each row, (n, rows) to value. */
static acf_status draw_more(grid *g, const acf_table *all, acf_query q, int64_t n, double *memory, double *value) {
    for (; g->draws < n; g->draws++) {
        ACF_TRY(acf_session_query_draw(g->s, all, q, 1, (uint32_t)g->draws, memory));
        for (int64_t i = 0; i < all->N; i++) value[g->draws * all->N + i] = memory[i * all->D + g->j];
    }
    return ACF_OK;
}

/* All draws and what was seen, sorted; returns how many. */
static int64_t sort_all(const grid *g, const acf_table *all, const double *value, double *sorted) {
    int64_t n = g->draws * all->N;
    memcpy(sorted, value, (size_t)n * sizeof *sorted);
    for (int64_t i = 0; i < all->N; i++) sorted[n++] = all->x[i * all->D + g->j];
    return acf_values_sort(sorted, n);
}

/* Of a column whose values were rounded: each of its values, and its part of the draws. */
static void count_values(grid *g, const double *value, int64_t n, const double *sorted, int64_t n_sorted) {
    const int64_t rows = g->t->N + 1;
    g->G = 0;
    for (int64_t i = 0; i < n_sorted; i++)
        if (i == 0 || sorted[i] != sorted[i - 1]) g->x[g->G++] = sorted[i];
    for (int64_t k = 0; k < rows * g->G; k++) g->p[k] = 0;
    for (int64_t k = 0; k < n; k++)
        for (int v = 0; v < g->G; v++)
            if (value[k] == g->x[v]) g->p[k % rows * g->G + v] += (double)rows / (double)n;
}

/* Where nearly all draws are, and what was seen; not beyond what the column can hold. */
static acf_range span_of(grid *g, const acf_table *all, const double *sorted, int64_t n) {
    const acf_encoder *e = g->s->m->encoder;
    acf_range r = acf_range_middle(sorted, n), wide;
    for (int64_t i = 0; i < all->N; i++) {
        const double seen = all->x[i * all->D + g->j];
        if (isfinite(seen)) r.lo = fmin(r.lo, seen), r.hi = fmax(r.hi, seen);
    }
    wide = acf_range_padded(r, 0.06);
    r = acf_range_usable(fmin(fmax(wide.lo, e->least[g->j]), r.lo), fmax(fmin(wide.hi, e->most[g->j]), r.hi));
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++) out += sorted[i] < r.lo || sorted[i] > r.hi;
    g->beyond = n > 0 ? (double)out / (double)n : 0;
    if (out) g->furthest = sorted[0] < r.lo && r.lo - sorted[0] > sorted[n - 1] - r.hi ? sorted[0] : sorted[n - 1];
    return r;
}

/* Where the densities are, from draws for each row and for nothing given; or the probabilities of few values. */
static acf_status find_span(grid *g, const acf_table *all, const uint8_t *given, const uint8_t *target,
                            acf_range *out) {
    const int64_t N = all->N, D = all->D;
    const acf_query q = {given, target};
    size_t bytes;
    if (!acf_bytes(N * D + N * (2 * DRAWS_MAX + 1), sizeof(double), &bytes)) return ACF_EMEMORY;
    double *drawn = acf_alloc(bytes, "draws"), *value, *sorted;
    if (!drawn) return ACF_EMEMORY;
    value = drawn + N * D, sorted = value + N * DRAWS_MAX;
    acf_status status = draw_more(g, all, q, DRAWS, drawn, value);
    int64_t n = status ? 0 : sort_all(g, all, value, sorted);
    g->few = n > 0 && g->s->m->encoder->resolution[g->j].every > 0 &&
             acf_values_distinct(sorted, n, FEW_VALUES) <= FEW_VALUES;
    find_spike(g, value, g->draws * N, sorted, n);
    if (!status && (g->few || g->has_spike)) {
        status = draw_more(g, all, q, DRAWS_MAX, drawn, value);
        n = status ? 0 : sort_all(g, all, value, sorted);
        g->few = g->few && acf_values_distinct(sorted, n, FEW_VALUES) <= FEW_VALUES;
        find_spike(g, value, g->draws * N, sorted, n);
    }
    if (!status && g->few)
        count_values(g, value, g->draws * N, sorted, n);
    else if (n > 0)
        *out = span_of(g, all, sorted, n);
    else
        *out = (acf_range){0, 1};
    acf_release(drawn);
    return status;
}

/* The rows of t and below them an empty one, `times` over, with masks that ask for column j; in one block to release. */
static acf_status repeat_rows(const grid *g, int times, double **x, uint8_t **given, uint8_t **target) {
    const int64_t N = (g->t->N + 1) * times, D = g->t->D;
    size_t bytes;
    if (!acf_bytes(N * D, sizeof(double) + 2, &bytes)) return ACF_EMEMORY;
    if (!(*x = acf_alloc(bytes, "rows of a question"))) return ACF_EMEMORY;
    *given = (uint8_t *)(*x + N * D), *target = *given + N * D;
    for (int64_t i = 0; i < N; i++) {
        const int64_t row = i / times;
        for (int64_t k = 0; k < D; k++) {
            const double v = row < g->t->N ? g->t->x[row * D + k] : (double)NAN;
            (*x)[i * D + k] = k == g->j && times > 1 ? g->x[i % times] : v;
            (*given)[i * D + k] = k != g->j && !isnan(v);
            (*target)[i * D + k] = k == g->j;
        }
    }
    return ACF_OK;
}

/* Each has the id of its row, in which it is not to be looked up; the empty one is no row of any table. */
#define NO_ROW (((uint64_t)1 << 48) - 1)
static acf_status name_rows(const grid *g, int times, acf_table *all) {
    uint64_t *id = acf_alloc((size_t)all->N * sizeof *id, "rows of a question");
    for (int64_t i = 0; id && i < all->N; i++) id[i] = i / times < g->t->N ? acf_table_row_id(g->t, i / times) : NO_ROW;
    all->id = id;
    return id ? ACF_OK : ACF_EMEMORY;
}

static acf_status ask_rows(grid *g, int times, acf_range *span) {
    double *x = NULL;
    uint8_t *given, *target;
    acf_table *all = NULL;
    acf_status status = ACF_OK;
    ACF_TRY(repeat_rows(g, times, &x, &given, &target));
    ACF_TRY_DONE(acf_table_make(x, NULL, (g->t->N + 1) * times, g->t->D, g->t->column, &all));
    ACF_TRY_DONE(name_rows(g, times, all));
    if (span)
        ACF_TRY_DONE(find_span(g, all, given, target, span));
    else
        ACF_TRY_DONE(acf_session_query_logp(g->s, all, (acf_query){given, target}, g->p));
    for (int64_t i = 0; !span && i < all->N; i++) g->p[i] = exp(g->p[i]);
done:
    acf_table_free(all);
    acf_release(x);
    return status;
}

/* The mean of each OVER points; the one where the spike is, is called by it. */
static void average_points(grid *g, acf_range span) {
    const int G = g->G / OVER;
    for (int64_t i = 0; i < (g->t->N + 1) * G; i++) {
        double sum = 0;
        for (int k = 0; k < OVER; k++) sum += g->p[i * OVER + k];
        g->p[i] = sum / OVER;
    }
    for (int k = 0; k < G; k++) g->x[k] = span.lo + (span.hi - span.lo) * (k + 0.5) / G;
    if (g->has_spike) g->x[(int)fmin(fmax((g->spike - span.lo) / (span.hi - span.lo) * G, 0), G - 1)] = g->spike;
    g->G = G;
}

static acf_status draw_conditional(const char *path, const acf_plot_options *o, grid *g,
                                   const acf_figure_column *column, const char *const *labels) {
    const int64_t N = g->t->N;
    char own[ACF_SERIES_MAX][32];
    const char *label[ACF_SERIES_MAX];
    double truth[ACF_SERIES_MAX];
    acf_range span = {0, 1};
    if (column->classes == 0) ACF_TRY(ask_rows(g, 1, &span));
    for (int k = 0; k < g->G && !g->few; k++)
        g->x[k] = column->classes > 0 ? k : span.lo + (span.hi - span.lo) * (k + 0.5) / g->G;
    if (!g->few) ACF_TRY(ask_rows(g, g->G, NULL));
    if (!g->few && column->classes == 0) average_points(g, span);
    for (int64_t i = 0; i < N; i++) {
        snprintf(own[i], sizeof own[i], "row %lld", (long long)i + 1);
        label[i] = labels ? labels[i] : own[i];
        truth[i] = g->t->x[i * g->t->D + g->j];
    }
    return acf_figure_conditional(path, o,
                                  &(acf_figure_curves){*column, (int)N, g->G, g->x, g->p, g->p + N * g->G, truth, label,
                                                       g->has_spike, g->spike, g->share, g->few, g->draws, g->beyond,
                                                       g->furthest});
}

acf_status acf_plot_conditional(const char *path, const acf_plot_options *o, acf_session *s, const acf_table *t,
                                int64_t column, const char *const *labels) {
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(s);
    ACF_NEED(t);
    if (column < 0 || column >= t->D)
        return acf_fail(ACF_EUSAGE, "acf_plot_conditional: column %lld; the table has 0 to %lld", (long long)column,
                        (long long)t->D - 1);
    if (t->N < 1 || t->N > ACF_SERIES_MAX)
        return acf_fail(ACF_EUSAGE, "acf_plot_conditional: %lld rows; expected 1 to %d", (long long)t->N,
                        ACF_SERIES_MAX);
    for (int64_t i = 0; labels && i < t->N; i++)
        if (!labels[i])
            return acf_fail(ACF_EUSAGE, "acf_plot_conditional: the label of row %lld is NULL", (long long)i);
    ACF_TRY(view(t, o, &f));
    const int G = f.column[column].classes > 0 ? f.column[column].classes : GRID * OVER;
    acf_status status = ACF_EMEMORY;
    size_t bytes;
    double *x = acf_bytes((t->N + 2) * (int64_t)G, sizeof(double), &bytes) ? acf_alloc(bytes, "a density") : NULL;
    if (x)
        status = draw_conditional(path, o, &(grid){.s = s, .t = t, .j = column, .G = G, .x = x, .p = x + G},
                                  &f.column[column], labels);
    acf_release(x);
    acf_release((void *)f.column);
    return status;
}
