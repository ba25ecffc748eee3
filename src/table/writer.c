/* Completed files: see writer.h.
 *
 *     open    header                                         stacked: and the original, .imp 0
 *     put     one pass over the source: a row read, a row written
 *     commit  the file appears
 *
 * Rows of all sources are written alike: `row` gives the cells of a record of the source or of a table in memory, and
 * one function writes them. */
#include "table/writer.h"

#include "base/rng.h"
#include "table/memory_schema.h"
#include "table/profile.h"
#include "table/sink.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define CELL_MAX (2 * ACF_LEVEL_BYTES_MAX + 2) /* a level, every byte of it a quote */

struct acf_writer {
    const acf_table *t;
    acf_table_file *f;  /* of the table; NULL: made from memory */
    acf_reader *reader; /* a separate reader of the table's file; NULL: there is no file */
    acf_schema *schema; /* of f, or `own` */
    acf_schema *own;
    acf_sink *sink;
    acf_write_plan plan;
    acf_dialect dialect;
    int done; /* number of imputations written */
};

/* ---- small pieces ----------------------------------------------------------------------------------------------- */

static acf_status bytes(acf_writer *w, const char *text, size_t n) { return acf_sink_write(w->sink, text, n); }
static acf_status separator(acf_writer *w) { return bytes(w, &w->dialect.separator, 1); }
static acf_status line_end(acf_writer *w) { return w->dialect.crlf ? bytes(w, "\r\n", 2) : bytes(w, "\n", 1); }

/* Writes a value as a field of the file's dialect; quoted: with quotes even if it needs none, as its column has
 * them. */
static acf_status field(acf_writer *w, const char *text, size_t n, bool quoted) {
    char out[CELL_MAX], seen[ACF_EXCERPT_MAX];
    bool clean;
    size_t length = acf_csv_quote(&w->dialect, text, n, out, sizeof out, &clean);
    if (length > sizeof out || !clean)
        return acf_fail(ACF_EDATA, "'%s' cannot be written to this file, which has no quotes to put around it",
                        acf_text_excerpt(seen, text));
    char quote = w->dialect.quote;
    bool bare = length == n && memcmp(out, text, n) == 0;
    if (!quoted || quote == '\n' || !bare) return bytes(w, out, length);
    ACF_TRY(bytes(w, &quote, 1));
    ACF_TRY(bytes(w, text, n));
    return bytes(w, &quote, 1);
}

static acf_status value_field(acf_writer *w, const acf_field_spec *c, double value) {
    char text[CELL_MAX];
    acf_text t = acf_text_into(text, sizeof text);
    acf_cell_write(c, value, &t);
    return field(w, text, t.len, c->quoted);
}

static acf_status level_field(acf_writer *w, const acf_field_spec *c, int64_t level) {
    return field(w, c->levels.entry[level].text, c->levels.entry[level].length, c->quoted);
}

static acf_status number_field(acf_writer *w, int64_t v) {
    char text[24];
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t, "%lld", (long long)v);
    ACF_TRY(separator(w));
    return bytes(w, text, t.len);
}

/* ---- one row ---------------------------------------------------------------------------------------------------- */

/* The source of a row. value NULL: the original, with NA in its missing cells. */
typedef struct row {
    int64_t i, imputation;
    const double *value, *low, *high; /* (D) of this row */
} row;

/* Writes the value of a missing cell. In a draw, the level of a shared class is drawn here, because the model has only
 * the class. */
static acf_status filled_field(acf_writer *w, const acf_field_spec *c, const row *r) {
    const double value = c->place >= 0 ? r->value[c->place] : 0;
    if (!w->plan.drawn || c->pooled == 0) return value_field(w, c, value);
    const acf_rng_counter at = {.seed = w->plan.seed,
                                .row = acf_table_row_id(w->t, r->i),
                                .stream = ACF_STREAM_LEVEL,
                                .column = (uint32_t)c->place,
                                .draw = (uint32_t)(r->imputation - 1)};
    return level_field(w, c, acf_cell_level(c, value, acf_rng_uniform(at)));
}

/* Numbers have interval ends; categories have none. */
static bool has_interval(const acf_writer *w, const acf_field_spec *c) {
    return w->plan.intervals && c && c->place >= 0 && acf_kind_is_numeric(c->kind);
}

/* A new row of a constant gets its value if every row had it. */
static bool is_always(const acf_writer *w, const acf_field_spec *c) {
    return w->f && !w->f->path && c->kind->role == ACF_ROLE_ONE_VALUE && c->missing == 0;
}

/* Is there a value for a missing cell of this column? */
static bool can_fill(const acf_writer *w, const acf_field_spec *c, const row *r) {
    if (!c || !r->value) return false;
    if (c->place < 0) return acf_spec_is_filled(c) || is_always(w, c);
    return !isnan(r->value[c->place]);
}

/* NA for an observed cell, which has no uncertainty; so the columns also show which cells were imputed. */
static acf_status interval(acf_writer *w, const acf_field_spec *c, const row *r, bool observed) {
    for (int k = 0; k < 2; k++) {
        const double *end = k ? r->high : r->low;
        ACF_TRY(separator(w));
        if (observed || !end || isnan(end[c->place]))
            ACF_TRY(bytes(w, "NA", 2));
        else
            ACF_TRY(value_field(w, c, end[c->place]));
    }
    return ACF_OK;
}

static acf_status row_tail(acf_writer *w, const row *r) {
    if (!w->plan.stacked) return ACF_OK;
    ACF_TRY(number_field(w, r->imputation));
    return number_field(w, r->i + 1);
}

/* ---- rows of the source ----------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The white space around a cell stays: a missing cell written " ?" becomes " 12". */
static acf_status fill_missing(acf_writer *w, const acf_field_spec *c, const acf_field *f, const row *r) {
    size_t lead = 0, tail = 0;
    while (lead < f->raw_length && is_blank(f->raw[lead])) lead++;
    while (tail < f->raw_length - lead && is_blank(f->raw[f->raw_length - 1 - tail])) tail++;
    ACF_TRY(bytes(w, f->raw, lead));
    ACF_TRY(filled_field(w, c, r));
    return bytes(w, f->raw + f->raw_length - tail, tail);
}

/* c NULL: the model does not have the column. */
static bool is_missing(const acf_writer *w, const acf_field_spec *c, const acf_field *f) {
    double ignore;
    if (!f->text) return isnan(f->number);
    return c ? acf_cell_read(w->schema, c, f->text, f->length, &ignore) == ACF_CELL_MISSING
             : acf_na_strings_has(&w->schema->na_strings, f->text, f->length);
}

/* Copies every cell that is not missing, byte for byte. */
static acf_status source_cell(acf_writer *w, const acf_field_spec *c, const acf_field *f, const row *r) {
    const bool missing = is_missing(w, c, f);
    if (!missing)
        ACF_TRY(bytes(w, f->raw, f->raw_length));
    else if (can_fill(w, c, r))
        ACF_TRY(fill_missing(w, c, f, r));
    else if (w->plan.stacked)
        ACF_TRY(bytes(w, "NA", 2));
    else
        ACF_TRY(bytes(w, f->raw, f->raw_length));
    return has_interval(w, c) ? interval(w, c, r, !missing) : ACF_OK;
}

static const acf_field_spec *spec_of(const acf_writer *w, int64_t c) {
    return w->f->spec[c] < 0 ? NULL : &w->schema->column[w->f->spec[c]];
}

/* Fields are adjacent in the record, so the byte before a field is the separator as written. */
static acf_status source_row(acf_writer *w, const acf_record *record, const row *r) {
    for (int64_t c = 0; c < record->n; c++) {
        if (c > 0) ACF_TRY(bytes(w, record->field[c].raw - 1, 1));
        ACF_TRY(source_cell(w, spec_of(w, c), &record->field[c], r));
    }
    ACF_TRY(row_tail(w, r));
    const bool bare =
        record->end_length == 0 || *record->end == w->dialect.separator; /* more columns, or more rows, follow */
    if (w->plan.stacked && bare) return line_end(w);
    return bytes(w, record->end, record->end_length);
}

/* ---- rows of a file that cannot be copied ------------------------------------------------------------------------ */

/* A cell of a file that is not separated text, as a CSV field: its text, or the shortest text of its number. */
static acf_status own_field(acf_writer *w, const acf_field *f) {
    char text[ACF_NUMBER_MAX];
    if (f->text) return field(w, f->text, f->length, false);
    if (isnan(f->number)) return bytes(w, "NA", 2);
    acf_number_shortest(text, f->number);
    return field(w, text, strlen(text), false);
}

static acf_status fresh_row(acf_writer *w, const acf_record *record, const row *r) {
    for (int64_t c = 0; c < record->n; c++) {
        const acf_field_spec *spec = spec_of(w, c);
        const acf_field *f = &record->field[c];
        const bool missing = is_missing(w, spec, f);
        if (c > 0) ACF_TRY(separator(w));
        if (missing && can_fill(w, spec, r))
            ACF_TRY(filled_field(w, spec, r));
        else if (missing)
            ACF_TRY(bytes(w, "NA", 2));
        else
            ACF_TRY(own_field(w, f));
        if (has_interval(w, spec)) ACF_TRY(interval(w, spec, r, !missing));
    }
    ACF_TRY(row_tail(w, r));
    return line_end(w);
}

/* ---- rows from memory ------------------------------------------------------------------------------------------- */

/* Without a source an identifier has no value to write. */
static bool is_shown(const acf_field_spec *c) { return c->place >= 0 || c->kind->role == ACF_ROLE_ONE_VALUE; }

/* An observed value takes precedence over an imputed one. A value that the user gave is written as given, without
 * rounding. */
static acf_status memory_cell(acf_writer *w, const acf_field_spec *c, const row *r) {
    double own = c->place >= 0 ? acf_table_row(w->t, r->i)[c->place] : (double)NAN;
    bool observed = !isnan(own);
    const char *given = w->f && w->f->given ? w->f->given[c - w->schema->column] : NULL;
    if (given)
        ACF_TRY(field(w, given, strlen(given), c->quoted));
    else if (observed)
        ACF_TRY(value_field(w, c, own));
    else if (can_fill(w, c, r))
        ACF_TRY(filled_field(w, c, r));
    else
        ACF_TRY(bytes(w, "NA", 2));
    return has_interval(w, c) ? interval(w, c, r, observed) : ACF_OK;
}

static acf_status memory_rows(acf_writer *w, row r, const double *value, const double *low, const double *high) {
    int64_t D = w->t->D;
    for (r.i = 0; r.i < w->t->N; r.i++) {
        bool first = true;
        r.value = value ? value + r.i * D : NULL;
        r.low = low ? low + r.i * D : NULL;
        r.high = high ? high + r.i * D : NULL;
        for (int64_t j = 0; j < w->schema->n; j++) {
            if (!is_shown(&w->schema->column[j])) continue;
            if (!first) ACF_TRY(separator(w));
            first = false;
            ACF_TRY(memory_cell(w, &w->schema->column[j], &r));
        }
        ACF_TRY(row_tail(w, &r));
        ACF_TRY(line_end(w));
    }
    return ACF_OK;
}

/* ---- rows of a matrix ------------------------------------------------------------------------------------------- */

/* A matrix stays a matrix: doubles, little-endian, row after row, NaN for missing values. */
static acf_status matrix_number(acf_writer *w, double v) { return bytes(w, (const char *)&v, sizeof v); }

static acf_status matrix_row(acf_writer *w, const acf_record *record, const row *r) {
    for (int64_t c = 0; c < record->n; c++) {
        const acf_field_spec *spec = spec_of(w, c);
        const double x = record->field[c].number;
        bool fill = isnan(x) && can_fill(w, spec, r);
        ACF_TRY(matrix_number(w, fill ? acf_cell_write_number(spec, spec->place >= 0 ? r->value[spec->place] : 0) : x));
        if (!has_interval(w, spec)) continue;
        bool ends = fill && r->low && r->high;
        ACF_TRY(matrix_number(w, ends ? acf_cell_write_number(spec, r->low[spec->place]) : (double)NAN));
        ACF_TRY(matrix_number(w, ends ? acf_cell_write_number(spec, r->high[spec->place]) : (double)NAN));
    }
    if (!w->plan.stacked) return ACF_OK;
    ACF_TRY(matrix_number(w, (double)r->imputation));
    return matrix_number(w, (double)(r->i + 1));
}

#define MATRIX_HEADER 128 /* bytes; aligns the numbers after it */

/* NumPy's format, version 1.0. The shape is known before the first number, from the plan. */
static acf_status matrix_header(acf_writer *w) {
    char text[MATRIX_HEADER];
    int64_t columns = w->f->columns + (w->plan.stacked ? 2 : 0);
    for (int64_t c = 0; c < w->f->columns; c++) columns += has_interval(w, spec_of(w, c)) ? 2 : 0;
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_add_bytes(&t, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes follow */
    acf_text_addf(&t, "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }",
                  (long long)(w->t->N * (w->plan.stacked ? w->plan.imputations + 1 : 1)), (long long)columns);
    memset(text + t.len, ' ', sizeof text - t.len);
    text[sizeof text - 1] = '\n';
    return bytes(w, text, sizeof text);
}

/* ---- either ----------------------------------------------------------------------------------------------------- */

static acf_status file_row(acf_writer *w, const acf_record *record, const row *r) {
    switch (w->reader->format->completed) {
    case ACF_COMPLETED_COPY: return source_row(w, record, r);
    case ACF_COMPLETED_MATRIX: return matrix_row(w, record, r);
    default: return fresh_row(w, record, r);
    }
}

/* One pass. The reader verifies that the file is the one that was typed, so rows and values match. */
static acf_status file_rows(acf_writer *w, row r, const double *value, const double *low, const double *high) {
    acf_record record;
    int64_t D = w->t->D;
    ACF_TRY(acf_reader_rewind(w->reader));
    for (;;) {
        ACF_TRY(acf_reader_next(w->reader, &record));
        if (record.n == 0) return ACF_OK;
        ACF_ASSERT(record.row < w->t->N);
        r.i = record.row;
        r.value = value ? value + r.i * D : NULL;
        r.low = low ? low + r.i * D : NULL;
        r.high = high ? high + r.i * D : NULL;
        ACF_TRY(file_row(w, &record, &r));
    }
}

static acf_status rows(acf_writer *w, int64_t imputation, const double *value, const double *low, const double *high) {
    const row r = {.imputation = imputation};
    return w->reader ? file_rows(w, r, value, low, high) : memory_rows(w, r, value, low, high);
}

/* ---- the header ------------------------------------------------------------------------------------------------- */

/* NAME.low and NAME.high; refused if a column already has that name. */
static acf_status interval_names(acf_writer *w, const char *name, bool quoted) {
    char text[CELL_MAX];
    for (int k = 0; k < 2; k++) {
        acf_text t = acf_text_into(text, sizeof text);
        acf_text_addf(&t, "%.*s.%s", ACF_LEVEL_BYTES_MAX - 5, name, k ? "high" : "low");
        ACF_TRY(separator(w));
        ACF_TRY(field(w, text, t.len, quoted));
    }
    return ACF_OK;
}

static acf_status tail_names(acf_writer *w) {
    if (!w->plan.stacked) return ACF_OK;
    ACF_TRY(separator(w));
    ACF_TRY(field(w, ".imp", 4, false));
    ACF_TRY(separator(w));
    return field(w, ".id", 3, false);
}

static acf_status name_cell(acf_writer *w, const char *name, const acf_field *raw) {
    if (raw) return bytes(w, raw->raw, raw->raw_length);
    return field(w, name, strlen(name), false);
}

/* Copied if there is one. A file without a header gets one if columns are added, because these have names. */
static acf_status source_header(acf_writer *w) {
    const acf_record h = w->f->reader->header;
    bool adds = w->plan.stacked || w->plan.intervals;
    if (w->dialect.bom) ACF_TRY(bytes(w, "\xef\xbb\xbf", 3));
    ACF_TRY(bytes(w, w->dialect.preamble, strlen(w->dialect.preamble)));
    if (h.n == 0 && !adds) return ACF_OK;
    for (int64_t c = 0; c < w->f->columns; c++) {
        const acf_field *raw = h.n > 0 ? &h.field[c] : NULL;
        bool nameless = raw && raw->length == 0 && adds;       /* R would call it X */
        const bool first_name = c == 1 && w->dialect.rownames; /* no separator before it */
        if (c > 0 && (!first_name || adds)) ACF_TRY(raw && !first_name ? bytes(w, raw->raw - 1, 1) : separator(w));
        ACF_TRY(name_cell(w, w->f->name[c], nameless ? NULL : raw));
        if (has_interval(w, spec_of(w, c))) ACF_TRY(interval_names(w, w->f->name[c], raw && raw->quoted));
    }
    ACF_TRY(tail_names(w));
    return h.n > 0 && h.end_length > 0 ? bytes(w, h.end, h.end_length) : line_end(w);
}

/* All columns, with the names that the file has or that were generated. */
static acf_status fresh_header(acf_writer *w) {
    for (int64_t c = 0; c < w->f->columns; c++) {
        if (c > 0) ACF_TRY(separator(w));
        ACF_TRY(name_cell(w, w->f->name[c], NULL));
        if (has_interval(w, spec_of(w, c))) ACF_TRY(interval_names(w, w->f->name[c], false));
    }
    ACF_TRY(tail_names(w));
    return line_end(w);
}

static acf_status memory_header(acf_writer *w) {
    bool first = true;
    for (int64_t j = 0; j < w->schema->n; j++) {
        const acf_field_spec *c = &w->schema->column[j];
        if (!is_shown(c)) continue;
        if (!first) ACF_TRY(separator(w));
        first = false;
        ACF_TRY(name_cell(w, c->name, NULL));
        if (has_interval(w, c)) ACF_TRY(interval_names(w, c->name, false));
    }
    ACF_TRY(tail_names(w));
    return line_end(w);
}

static acf_status header(acf_writer *w) {
    if (!w->reader) return memory_header(w);
    switch (w->reader->format->completed) {
    case ACF_COMPLETED_COPY: return source_header(w);
    case ACF_COMPLETED_MATRIX: return matrix_header(w);
    default: return fresh_header(w);
    }
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static acf_status check_plan(acf_write_plan plan) {
    if (plan.imputations < 1)
        return acf_fail(ACF_EUSAGE, "a plan to write %d imputations; expected at least 1", plan.imputations);
    if (plan.imputations > 1 && !plan.stacked)
        return acf_fail(ACF_EUSAGE, "a plan to write %d imputations, which takes the stacked format", plan.imputations);
    return ACF_OK;
}

/* Reading and replacing one file at the same time would destroy it. */
static acf_status check_target(const acf_writer *w, const char *path) {
    struct stat source, target;
    if (!w->f || !w->f->path || strcmp(w->f->path, "-") == 0 || strcmp(path, "-") == 0) return ACF_OK;
    if (stat(w->f->path, &source) != 0 || stat(path, &target) != 0) return ACF_OK;
    if (source.st_dev != target.st_dev || source.st_ino != target.st_ino) return ACF_OK;
    return acf_fail(ACF_EUSAGE, "the output '%s' is the input; choose another name", path);
}

static acf_completed completed_as(const acf_writer *w) {
    return w->f && w->f->reader ? w->f->reader->format->completed : ACF_COMPLETED_CSV;
}

/* The output is a matrix or text. A file name that promises another format would mislead programs. */
static acf_status refuse_ending(const acf_writer *w, const char *path, const acf_file_format *promised) {
    char seen[ACF_EXCERPT_MAX];
    if (completed_as(w) == ACF_COMPLETED_MATRIX)
        return acf_fail(ACF_EUSAGE,
                        "the output would be a matrix, as '%s' is, and '%s' is the name of %s; let it end in .npy",
                        acf_table_file_path(w->f), acf_text_excerpt(seen, path), promised->what);
    const bool afresh = w->f && w->f->reader && completed_as(w) == ACF_COMPLETED_CSV;
    return acf_fail(ACF_EUSAGE, "the output would be text%s, and '%s' is the name of %s; let it end in .csv",
                    afresh ? "" : ", as the table is", acf_text_excerpt(seen, path), promised->what);
}

static acf_status check_ending(const acf_writer *w, const char *path) {
    const bool matrix = completed_as(w) == ACF_COMPLETED_MATRIX;
    const acf_file_format *f;
    for (int k = 0; (f = acf_reader_format(k)); k++) {
        if (f->completed == (matrix ? ACF_COMPLETED_MATRIX : ACF_COMPLETED_COPY)) continue;
        for (int e = 0; e < ACF_ENDINGS_MAX && f->ending[e]; e++)
            if (acf_reader_ends_in(path, f->ending[e])) return refuse_ending(w, path, f);
    }
    return ACF_OK;
}

/* A new column must not have the name of an existing one. */
static acf_status check_new_names(const acf_writer *w) {
    static const char *const tails[] = {".low", ".high"};
    char name[CELL_MAX];
    for (int64_t j = 0; j < w->schema->n; j++)
        for (int k = 0; k < 2 && has_interval(w, &w->schema->column[j]); k++) {
            acf_text t = acf_text_into(name, sizeof name);
            acf_text_addf(&t, "%s%s", w->schema->column[j].name, tails[k]);
            char seen[ACF_EXCERPT_MAX];
            if (acf_schema_find(w->schema, name) >= 0)
                return acf_fail(ACF_EDATA, "intervals need a column '%s', and the table has one already; rename it",
                                acf_text_excerpt(seen, name));
        }
    for (int k = 0; k < 2 && w->plan.stacked; k++)
        if (acf_schema_find(w->schema, k ? ".id" : ".imp") >= 0)
            return acf_fail(ACF_EDATA,
                            "the stacked format needs a column '%s', and the table has one already; rename it",
                            k ? ".id" : ".imp");
    return ACF_OK;
}

/* All refusals come before the target is touched. */
static acf_status prepare(acf_writer *w, const char *path) {
    ACF_TRY(check_target(w, path));
    ACF_TRY(check_ending(w, path));
    if (!w->f) ACF_TRY(acf_memory_schema(w->t, &w->own));
    w->schema = w->f ? w->f->schema : w->own;
    return check_new_names(w);
}

static acf_status begin(acf_writer *w, const char *path) {
    const acf_dialect plain = {.separator = ',', .quote = '"', .header = true};
    ACF_TRY(prepare(w, path));
    if (w->f && w->f->reader) ACF_TRY(acf_reader_again(w->f->reader, &w->reader));
    w->dialect = w->reader && completed_as(w) == ACF_COMPLETED_COPY ? *w->reader->dialect : plain;
    ACF_TRY(acf_sink_open(path, &w->sink));
    ACF_TRY(header(w));
    return w->plan.stacked ? rows(w, 0, NULL, NULL, NULL) : ACF_OK;
}

acf_status acf_writer_check_plan(const acf_table *t, const char *path, acf_write_plan plan) {
    acf_writer w = {.t = t, .f = t->file, .plan = plan};
    ACF_TRY(check_plan(plan));
    acf_status status = prepare(&w, path);
    acf_schema_free(w.own);
    return status;
}

acf_status acf_writer_begin(const acf_table *t, const char *path, acf_write_plan plan, acf_writer **out) {
    ACF_TRY(check_plan(plan));
    acf_writer *w = acf_alloc_zero(sizeof *w, "a writer");
    if (!w) return ACF_EMEMORY;
    w->t = t, w->f = t->file, w->plan = plan;
    acf_status status = begin(w, path);
    if (status)
        acf_writer_abort(w);
    else
        *out = w;
    return status;
}

acf_status acf_writer_add(acf_writer *w, const double *value, const double *low, const double *high) {
    if (w->done == w->plan.imputations)
        return acf_fail(ACF_EUSAGE, "all %d imputations that were planned have been written", w->plan.imputations);
    if (w->plan.intervals && (!low || !high))
        return acf_fail(ACF_EUSAGE, "the plan has intervals, but their ends were not given");
    w->done++;
    return rows(w, w->done, value, low, high);
}

acf_status acf_writer_finish(acf_writer *w) {
    acf_status status = ACF_OK;
    if (w->done < w->plan.imputations)
        status = acf_fail(ACF_EUSAGE, "%d of %d imputations that were planned have been written", w->done,
                          w->plan.imputations);
    if (status == ACF_OK) {
        status = acf_sink_commit(w->sink);
        w->sink = NULL;
    }
    acf_writer_abort(w);
    return status;
}

void acf_writer_abort(acf_writer *w) {
    if (!w) return;
    acf_sink_abort(w->sink);
    acf_reader_close(w->reader);
    acf_schema_free(w->own);
    acf_release(w);
}
