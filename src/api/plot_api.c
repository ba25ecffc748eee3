/* Public pictures: see acflow.h. Argument checks, then the plot library; conditional densities also query the model. */
#include "api/argument_checks.h"
#include "api/plot_load.h"
#include "base/arena.h"
#include "infer/session_parts.h"
#include "table/table_file.h"

#include <math.h>
#include <stdio.h>

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Column descriptions as the figures take them; release with acf_release. */
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

/* All columns of the file, including ids and nearly empty columns, whose missing cells matter too. */
static acf_status missing_of_file(const char *path, const acf_plot_options *o, const acf_table *t) {
    const acf_table_file *f = t->file;
    const acf_plot_library *plot;
    size_t bytes;
    ACF_TRY(acf_plot_load(&plot));
    if (!acf_bytes(f->columns, sizeof(double), &bytes) || !acf_bytes(t->N, bytes, &bytes)) return ACF_EMEMORY;
    double *x = acf_alloc(bytes, "the missing cells of a table");
    acf_figure_column *column = x ? acf_alloc_zero((size_t)f->columns * sizeof *column, "a list of columns") : NULL;
    acf_status status = column ? acf_table_file_pattern(t, x) : ACF_EMEMORY;
    for (int64_t c = 0; column && c < f->columns; c++) column[c].name = f->name[c];
    if (!status)
        status = acf_plot_outcome(plot, plot->missing(path, o, &(acf_figure_table){x, t->N, f->columns, column}));
    acf_release(x);
    acf_release(column);
    return status;
}

acf_status acf_plot_missing(const char *path, const acf_plot_options *o, const acf_table *t) {
    const acf_plot_library *plot;
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(t);
    if (t->file && t->file->reader) return missing_of_file(path, o, t);
    ACF_TRY(acf_plot_load(&plot));
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_plot_outcome(plot, plot->missing(path, o, &f));
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_imputed(const char *path, const acf_plot_options *o, const acf_table *t, const double *completed,
                            int32_t draws) {
    const acf_plot_library *plot;
    acf_figure_table f;
    ACF_NEED(path);
    ACF_NEED(t);
    if (t->N > 0) ACF_NEED(completed);
    if (draws < 1) return acf_fail(ACF_EUSAGE, "acf_plot_imputed: %d draws; expected at least 1", (int)draws);
    ACF_TRY(acf_plot_load(&plot));
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_plot_outcome(plot, plot->imputed(path, o, &f, completed, draws));
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_pairs(const char *path, const acf_plot_options *o, const acf_table *t, const double *drawn,
                          int64_t n, const int64_t *column, int n_columns) {
    const acf_plot_library *plot;
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
    ACF_TRY(acf_plot_load(&plot));
    ACF_TRY(view(t, o, &f));
    acf_status status = acf_plot_outcome(plot, plot->pairs(path, o, &f, drawn, n, column, n_columns));
    acf_release((void *)f.column);
    return status;
}

acf_status acf_plot_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                           int down, const char *const *names_across, const char *const *names_down) {
    const acf_plot_library *plot;
    ACF_NEED(path);
    ACF_NEED(cloud);
    if (across < 1 || down < 1 || across > ACF_CLOUDS_MAX || down > ACF_CLOUDS_MAX)
        return acf_fail(ACF_EUSAGE, "acf_plot_clouds: %d x %d panels; expected 1 to %d each", across, down,
                        ACF_CLOUDS_MAX);
    for (int k = 0; k < across * down; k++)
        if (cloud[k].n < 0 || (cloud[k].n > 0 && !cloud[k].xy))
            return acf_fail(ACF_EUSAGE, "acf_plot_clouds: panel %d has %lld points%s", k, (long long)cloud[k].n,
                            cloud[k].xy ? "" : " and no array");
    ACF_TRY(acf_plot_load(&plot));
    return acf_plot_outcome(plot, plot->clouds(path, o, cloud, across, down, names_across, names_down));
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

acf_status acf_plot_training(const char *path, const acf_plot_options *o, const acf_fit_report *reports, int64_t n) {
    const acf_plot_library *plot;
    ACF_NEED(path);
    if (n < 0) return acf_fail(ACF_EUSAGE, "acf_plot_training: %lld reports", (long long)n);
    if (n > 0) ACF_NEED(reports);
    ACF_TRY(acf_plot_load(&plot));
    size_t bytes;
    if (!acf_bytes(n, 3 * sizeof(double), &bytes)) return ACF_EMEMORY;
    double *step = acf_alloc(bytes, "reports of training"), *loss = step + n, *valid = loss + n;
    if (!step) return ACF_EMEMORY;
    int64_t k = 0, first = 0;
    for (int second = 0; second < 2;
         second++) { /* reports from before there were two passes, or members, have 0 there */
        for (int64_t i = 0; i < n; i++)
            if (reports[i].member <= 1 && (reports[i].pass == 2) == second)
                step[k] = (double)reports[i].step, loss[k] = reports[i].loss, valid[k++] = reports[i].valid;
        if (!second) first = k;
    }
    acf_status status = acf_plot_outcome(plot, plot->training(path, o, step, loss, valid, k, first));
    acf_release(step);
    return status;
}

/* ---- conditional densities --------------------------------------------------------------------------------------- */

/* The rows of a table and below them an empty one, each repeated, with masks whose target is one column. */
typedef struct query_rows {
    double *cells; /* in one block with the masks */
    uint8_t *given, *target;
    acf_table *t;
} query_rows;

/* The session and the rows of t that answer for column j. */
typedef struct query_model {
    acf_session *s;
    const acf_table *t;
    int64_t j;
    query_rows once; /* for draws; made with the first one */
    double *drawn;   /* the cells of once.t */
    bool failed;     /* the status of the answers; the sentence is this thread's last */
} query_model;

/* Column j has the values x (times) in each row, or its own values if x is NULL. */
static acf_status repeat_rows(const query_model *a, const double *x, int64_t times, query_rows *out) {
    const int64_t N = (a->t->N + 1) * times, D = a->t->D;
    size_t bytes;
    if (!acf_bytes(N * D, sizeof(double) + 2, &bytes)) return ACF_EMEMORY;
    if (!(out->cells = acf_alloc(bytes, "rows of a query"))) return ACF_EMEMORY;
    out->given = (uint8_t *)(out->cells + N * D), out->target = out->given + N * D;
    for (int64_t i = 0; i < N; i++) {
        const int64_t row = i / times;
        for (int64_t k = 0; k < D; k++) {
            const double v = row < a->t->N ? a->t->x[row * D + k] : (double)NAN;
            out->cells[i * D + k] = k == a->j && x ? x[i % times] : v;
            out->given[i * D + k] = k != a->j && !isnan(v);
            out->target[i * D + k] = k == a->j;
        }
    }
    return ACF_OK;
}

/* Each row keeps its id, so that it is not its own donor; the empty row has an id that no table has. */
#define NO_ROW (((uint64_t)1 << 48) - 1)
static acf_status name_rows(const query_model *a, int64_t times, acf_table *all) {
    uint64_t *id = acf_alloc((size_t)all->N * sizeof *id, "rows of a query");
    for (int64_t i = 0; id && i < all->N; i++) id[i] = i / times < a->t->N ? acf_table_row_id(a->t, i / times) : NO_ROW;
    all->id = id;
    return id ? ACF_OK : ACF_EMEMORY;
}

static acf_status make_rows(const query_model *a, const double *x, int64_t times, query_rows *out) {
    ACF_TRY(repeat_rows(a, x, times, out));
    ACF_TRY(acf_table_make(out->cells, NULL, (a->t->N + 1) * times, a->t->D, a->t->column, &out->t));
    return name_rows(a, times, out->t);
}

/* Also after a make_rows that failed. */
static void free_rows(query_rows *r) {
    acf_table_free(r->t);
    acf_release(r->cells);
}

static acf_status prepare_draws(query_model *a) {
    if (a->drawn) return ACF_OK;
    ACF_TRY(make_rows(a, NULL, 1, &a->once));
    a->drawn = acf_alloc((size_t)(a->once.t->N * a->t->D) * sizeof *a->drawn, "draws");
    return a->drawn ? ACF_OK : ACF_EMEMORY;
}

static acf_status draw_rows(query_model *a, uint32_t k, double *value) {
    ACF_TRY(prepare_draws(a));
    ACF_TRY(acf_session_query_draw(a->s, a->once.t, (acf_query){a->once.given, a->once.target}, 1, k, a->drawn));
    for (int64_t i = 0; i < a->once.t->N; i++) value[i] = a->drawn[i * a->t->D + a->j];
    return ACF_OK;
}

static acf_status score_rows(const query_model *a, const double *x, int64_t G, double *logp) {
    query_rows r = {0};
    acf_status status = make_rows(a, x, G, &r);
    if (status == ACF_OK) status = acf_session_query_logp(a->s, r.t, (acf_query){r.given, r.target}, logp);
    free_rows(&r);
    return status;
}

static acf_status answer_draw(void *model, uint32_t k, double *value) {
    query_model *a = model;
    const acf_status status = draw_rows(a, k, value);
    a->failed = status != ACF_OK;
    return status;
}

static acf_status answer_logp(void *model, const double *x, int64_t G, double *logp) {
    query_model *a = model;
    const acf_status status = score_rows(a, x, G, logp);
    a->failed = status != ACF_OK;
    return status;
}

static acf_status draw_conditional(const char *path, const acf_plot_options *o, query_model *a,
                                   const acf_figure_column *column, const char *const *labels) {
    const acf_encoder *e = a->s->m->encoder;
    const bool fits = a->t->D == e->D; /* otherwise the model refuses the rows */
    char own[ACF_FIGURE_ROWS_MAX][32];
    const char *label[ACF_FIGURE_ROWS_MAX];
    double truth[ACF_FIGURE_ROWS_MAX];
    const acf_plot_library *plot;
    ACF_TRY(acf_plot_load(&plot));
    for (int64_t i = 0; i < a->t->N; i++) {
        snprintf(own[i], sizeof own[i], "row %lld", (long long)i + 1);
        label[i] = labels ? labels[i] : own[i];
        truth[i] = a->t->x[i * a->t->D + a->j];
    }
    const acf_figure_query q = {.column = *column,
                                .n = (int)a->t->N,
                                .truth = truth,
                                .label = label,
                                .least = fits ? e->least[a->j] : 0,
                                .most = fits ? e->most[a->j] : 0,
                                .rounded = fits && e->resolution[a->j].every > 0,
                                .model = a,
                                .draw = answer_draw,
                                .logp = answer_logp};
    const acf_status status = plot->query(path, o, &q);
    free_rows(&a->once);
    acf_release(a->drawn);
    return a->failed ? status : acf_plot_outcome(plot, status);
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
    if (t->N < 1 || t->N > ACF_FIGURE_ROWS_MAX)
        return acf_fail(ACF_EUSAGE, "acf_plot_conditional: %lld rows; expected 1 to %d", (long long)t->N,
                        ACF_FIGURE_ROWS_MAX);
    for (int64_t i = 0; labels && i < t->N; i++)
        if (!labels[i])
            return acf_fail(ACF_EUSAGE, "acf_plot_conditional: the label of row %lld is NULL", (long long)i);
    ACF_TRY(view(t, o, &f));
    acf_status status =
        draw_conditional(path, o, &(query_model){.s = s, .t = t, .j = column}, &f.column[column], labels);
    acf_release((void *)f.column);
    return status;
}
