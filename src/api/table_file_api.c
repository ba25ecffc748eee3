/* Public tables from files, and completed files: see acflow.h. Argument checks, then table/table_file.h and
 * table/writer.h. */
#include "api/argument_checks.h"
#include "model/model.h"
#include "table/describe.h"
#include "table/memory_schema.h"
#include "table/number.h"
#include "table/table_file.h"
#include "table/writer.h"

#include <math.h>
#include <string.h>

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static acf_status need_schema(const acf_model *m) {
    ACF_NEED_TABLE(m);
    if (m->schema) return ACF_OK;
    return acf_fail(ACF_EMODEL,
                    "this model was fitted to a matrix in memory, so it has no columns of a file; fit one to a file");
}

acf_status acf_table_read(const char *path, const acf_model *m, const acf_options *o, acf_table **out) {
    ACF_NEED(path);
    ACF_NEED(out);
    acf_read_options *w;
    if (m) ACF_TRY(need_schema(m));
    ACF_TRY(acf_read_options_read(o, &w));
    acf_status status = m ? acf_table_file_read_for(path, w, m->schema, out) : acf_table_file_read(path, w, out);
    acf_read_options_free(w);
    return status;
}

acf_status acf_table_read_like(const char *path, const acf_table *t, const acf_options *o, acf_table **out) {
    ACF_NEED(path);
    ACF_NEED(t);
    ACF_NEED(out);
    acf_read_options *w;
    if (!t->file)
        return acf_fail(ACF_EUSAGE,
                        "the table is a matrix in memory, so it has no columns of a file; read it from a file");
    ACF_TRY(acf_read_options_read(o, &w));
    acf_schema_free(w->types); /* the columns of t have already been described */
    acf_schema_free(w->file);
    w->types = w->file = NULL;
    acf_status status = acf_table_file_read_for(path, w, t->file->schema, out);
    acf_read_options_free(w);
    return status;
}

acf_status acf_table_blank(const acf_model *m, int64_t rows, const char *given, acf_table **out) {
    ACF_NEED(m);
    ACF_NEED(out);
    ACF_TRY(need_schema(m));
    return acf_table_file_blank(m->schema, rows, given, out);
}

/* ---- descriptions ---------------------------------------------------------------------------------------------- */

int acf_table_warnings(const acf_table *t) { return t && t->file ? t->file->warnings.n : 0; }

const char *acf_table_warning(const acf_table *t, int i) {
    return i >= 0 && i < acf_table_warnings(t) ? t->file->warnings.text[i] : NULL;
}

int64_t acf_table_missing(const acf_table *t) {
    int64_t n = 0;
    if (!t) return 0;
    if (t->file && t->file->path) return acf_table_file_missing(t->file);
    for (int64_t i = 0; i < t->N * t->D; i++) n += !acf_table_present(t->x[i]);
    return n;
}

acf_status acf_table_unfilled(const acf_table *t, char *out, size_t cap, size_t *needed) {
    ACF_NEED(t);
    ACF_NEED_BUFFER(out, cap);
    acf_text text = acf_text_into(out, cap);
    if (t->file && t->file->path) acf_table_file_unfilled(t->file, &text);
    return acf_text_done(&text, needed);
}

#define DIALECT_MAX 256 /* more than the dialect line takes */

static acf_status describe(const acf_table *t, bool json, acf_text *out) {
    const acf_table_file *f = t->file;
    acf_schema *own = NULL;
    if (!f) ACF_TRY(acf_memory_schema(t, &own));
    const acf_schema *s = f ? f->schema : own;
    const char *file = f && f->path ? acf_table_file_path(f) : "";
    acf_status status = ACF_OK;
    char how[DIALECT_MAX];
    acf_text line = acf_text_into(how, sizeof how);
    if (f) acf_table_file_dialect(f, !json, &line);
    if (json)
        status = acf_describe_json(s, file, how, f ? &f->warnings : NULL, out);
    else
        acf_describe(s, file, how, f ? &f->warnings : NULL, out);
    acf_schema_free(own);
    return status;
}

acf_status acf_table_describe(const acf_table *t, acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED(t);
    ACF_NEED_BUFFER(out, cap);
    acf_text text = acf_text_into(out, cap);
    ACF_TRY(describe(t, format == ACF_JSON, &text));
    return acf_text_done(&text, needed);
}

acf_status acf_table_dialect(const acf_table *t, char *out, size_t cap, size_t *needed) {
    ACF_NEED(t);
    ACF_NEED_BUFFER(out, cap);
    acf_text text = acf_text_into(out, cap);
    if (t->file) acf_table_file_dialect(t->file, false, &text);
    return acf_text_done(&text, needed);
}

/* ---- columns ---------------------------------------------------------------------------------------------------- */

static bool has_column(const acf_table *t, int64_t j) { return t && j >= 0 && j < t->D; }

const char *acf_table_name(const acf_table *t, int64_t j) { return has_column(t, j) ? t->column[j].name : NULL; }

int32_t acf_table_classes(const acf_table *t, int64_t j) { return has_column(t, j) ? t->column[j].classes : 0; }

const char *acf_table_kind(const acf_table *t, int64_t j) {
    if (!has_column(t, j)) return NULL;
    if (t->file) return acf_schema_at(t->file->schema, j)->kind->name;
    return acf_kind_in_memory(t->column[j].classes, false)->name;
}

const double *acf_table_values(const acf_table *t) { return t ? t->x : NULL; }

/* A column of the file that is not modelled gets another sentence than an unknown one. */
static acf_status not_found(const acf_table *t, const char *name) {
    const acf_schema *s = t->file ? t->file->schema : NULL;
    int64_t c = s ? acf_schema_find(s, name) : -1, near = -1;
    char seen[ACF_EXCERPT_MAX], other[ACF_EXCERPT_MAX];
    acf_text_excerpt(seen, name);
    if (c >= 0)
        return acf_fail(ACF_EUSAGE, "column '%s' is not modelled (%s); set its type in the option 'types' to model it",
                        seen, s->column[c].kind->name);
    for (int64_t j = 0, best = 0; j < t->D; j++) {
        const char *const one[] = {t->column[j].name};
        if (!one[0] || acf_text_nearest(name, one, 1) < 0) continue;
        int distance = acf_text_distance(name, one[0]);
        if (near < 0 || distance < best) near = j, best = distance;
    }
    if (near < 0) return acf_fail(ACF_EUSAGE, "the table has no column '%s'", seen);
    return acf_fail(ACF_EUSAGE, "the table has no column '%s'; did you mean '%s'?", seen,
                    acf_text_excerpt(other, t->column[near].name));
}

acf_status acf_table_find(const acf_table *t, const char *name, int64_t *out) {
    ACF_NEED(t);
    ACF_NEED(name);
    ACF_NEED(out);
    for (int64_t j = 0; j < t->D; j++)
        if (t->column[j].name && strcmp(t->column[j].name, name) == 0) {
            *out = j;
            return ACF_OK;
        }
    return not_found(t, name);
}

acf_status acf_table_format(const acf_table *t, int64_t j, double value, char *out, size_t cap, size_t *needed) {
    ACF_NEED(t);
    ACF_NEED_BUFFER(out, cap);
    char number[ACF_NUMBER_MAX];
    if (!has_column(t, j)) return acf_fail(ACF_EUSAGE, "acf_table_format: there is no column %lld", (long long)j);
    if (!isfinite(value)) return acf_fail(ACF_EUSAGE, "acf_table_format: the value is not finite");
    acf_text text = acf_text_into(out, cap);
    if (t->file)
        acf_cell_write(acf_schema_at(t->file->schema, j), value, &text);
    else
        acf_text_add(&text, acf_number_shortest(number, value));
    return acf_text_done(&text, needed);
}

/* The public callback returns yes or no; inside, a status ends the pass. */
typedef struct telling {
    acf_cell_callback visit;
    void *ctx;
} telling;

static acf_status tell(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes) {
    const telling *w = ctx;
    return w->visit(w->ctx, row, column, text, bytes) ? ACF_EINTERRUPT : ACF_OK;
}

acf_status acf_table_texts(const acf_table *t, acf_cell_callback visit, void *ctx) {
    ACF_NEED(t);
    ACF_NEED(visit);
    acf_status status = acf_table_file_texts(t, tell, &(telling){visit, ctx});
    return status == ACF_EINTERRUPT ? ACF_OK : status;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

acf_status acf_writer_open(const acf_table *t, const char *path, const acf_write_plan *plan, acf_writer **out) {
    ACF_NEED(t);
    ACF_NEED(path);
    ACF_NEED(plan);
    ACF_NEED(out);
    return acf_writer_begin(t, path, *plan, out);
}

acf_status acf_writer_check(const acf_table *t, const char *path, const acf_write_plan *plan) {
    ACF_NEED(t);
    ACF_NEED(path);
    ACF_NEED(plan);
    return acf_writer_check_plan(t, path, *plan);
}

acf_status acf_writer_put(acf_writer *w, const double *values, const double *low, const double *high) {
    ACF_NEED(w);
    ACF_NEED(values);
    return acf_writer_add(w, values, low, high);
}

acf_status acf_writer_commit(acf_writer *w) {
    ACF_NEED(w);
    return acf_writer_finish(w);
}
