/* Reading a file as a table: see table_file.h. This file has the loops over cells. cell.c parses a cell, typing.c finds
 * the kind of a column, match.c finds a file's columns in a model. */
#include "table/table_file.h"

#include "base/rng.h"
#include "table/match.h"
#include "table/settle.h"
#include "table/typing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ----------------------------------------------------------------------------------------------------- */

void acf_table_file_free(acf_table_file *f) {
    if (!f) return;
    acf_reader_close(f->reader);
    acf_schema_free(f->schema);
    acf_release(f->spec);
    acf_release(f->name);
    acf_release(f->missing);
    acf_release(f->given);
    acf_arena_free(f->texts);
    acf_warnings_clear(&f->warnings);
    acf_release(f->unseen_levels.cell);
    acf_release(f->path);
    acf_release(f);
}

const char *acf_table_file_path(const acf_table_file *f) {
    return f->reader ? acf_reader_name(f->reader) : f->path ? f->path : "the table";
}

/* Arrays for what is stored of each column of the file. A header may have a million. */
static acf_status make_lists(acf_table_file *f, int64_t columns) {
    size_t specs, names;
    if (!acf_bytes(columns, sizeof *f->spec, &specs) || !acf_bytes(columns, sizeof *f->name, &names))
        return ACF_EMEMORY;
    f->columns = columns;
    f->spec = acf_alloc(specs, "the columns of a file");
    f->name = f->spec ? acf_alloc_zero(names, "the columns of a file") : NULL;
    f->missing = f->name ? acf_alloc_zero(specs, "the columns of a file") : NULL;
    return f->missing ? acf_text_arena(&f->texts) : ACF_EMEMORY;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* V3 for the third column, as in R; with underscores if another column has that name. */
static acf_status make_up_name(acf_table_file *f, int64_t j, const acf_text_counts *taken, char **out) {
    char text[32];
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t, "V%lld", (long long)j + 1);
    while (acf_text_counts_find(taken, text, t.len) >= 0 && t.len + 1 < sizeof text) acf_text_add(&t, "_");
    *out = acf_text_keep(f->texts, text, t.len);
    return *out ? ACF_OK : ACF_EMEMORY;
}

/* Names of the file are taken first and others are generated afterwards, so a generated name never conflicts with one
 * of the file. Two equal names are refused: a schema, a model and a user all identify a column by its name. */
static acf_status take_names(acf_table_file *f, acf_text_counts *taken) {
    char seen[ACF_EXCERPT_MAX];
    for (int64_t j = 0; j < f->columns; j++) {
        const acf_reader_column h = acf_reader_describe(f->reader, j);
        if (h.name_length == 0) continue; /* the row names that R and pandas write have no column name */
        int64_t other = acf_text_counts_find(taken, h.name, h.name_length);
        if (!(f->name[j] = acf_text_keep(f->texts, h.name, h.name_length))) return ACF_EMEMORY;
        if (other >= 0)
            return acf_fail(ACF_EDATA, "%s: columns %lld and %lld are both named '%s'; rename one%s",
                            acf_table_file_path(f), (long long)taken->entry[other].first + 1, (long long)j + 1,
                            acf_text_excerpt(seen, f->name[j]),
                            f->reader->dialect ? ", or use the option 'header=no' if the first line is data" : "");
        ACF_TRY(acf_text_counts_add(taken, h.name, h.name_length, j));
    }
    for (int64_t j = 0; j < f->columns; j++)
        if (!f->name[j]) ACF_TRY(make_up_name(f, j, taken, &f->name[j]));
    return ACF_OK;
}

static acf_status name_columns(acf_table_file *f) {
    acf_text_counts taken = acf_text_counts_make(ACF_CSV_FIELDS_MAX, f->texts);
    acf_status status = take_names(f, &taken);
    acf_text_counts_clear(&taken);
    return status;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

/* format NULL: the one that recognises the file. */
static acf_status open_source(acf_table_file *f, const acf_file_format *format, const acf_read_options *w) {
    ACF_TRY(format ? acf_reader_open_as(format, f->path, w, &f->reader) : acf_reader_open(f->path, w, &f->reader));
    ACF_TRY(make_lists(f, f->reader->columns));
    return name_columns(f);
}

static acf_status open_frame(const char *path, const acf_file_format *format, const acf_read_options *w,
                             acf_table_file **out) {
    acf_table_file *f = acf_alloc_zero(sizeof *f, "a file");
    if (!f) return ACF_EMEMORY;
    f->path = acf_alloc_text(path, "a path");
    acf_status status = f->path ? open_source(f, format, w) : ACF_EMEMORY;
    if (status)
        acf_table_file_free(f);
    else
        *out = f;
    return status;
}

/* ---- the first pass --------------------------------------------------------------------------------------------- */

/* Infinity is refused here, before typing: no column can hold it. */
static acf_status profile_number(const acf_table_file *f, acf_profile *p, const acf_record *r, int64_t c, bool skip) {
    const double v = r->field[c].number;
    char where[ACF_FIELD_TEXT_MAX];
    if (isinf(v))
        return acf_fail(ACF_EDATA,
                        "%s, %s %lld, %s: the value is infinity; expected a finite number, or NaN for missing",
                        acf_table_file_path(f), r->line ? "line" : "row", (long long)(r->line ? r->line : r->row + 1),
                        acf_field_text(where, f->reader->named ? f->name[c] : NULL, c));
    return skip ? ACF_OK : acf_profile_number(p, c, r->row, v);
}

/* Counts rows only if the profile has no count yet. */
static acf_status profile_rows(acf_table_file *f, acf_profile *p, const bool *skip) {
    acf_record r;
    int64_t blank = 0, rows = 0; /* blank lines up to this one */
    for (;; rows++) {
        ACF_TRY(acf_reader_next(f->reader, &r));
        if (r.n == 0) break;
        ACF_ASSERT(r.n == f->columns);
        blank = r.n == 1 && r.field[0].length == 0 && !r.field[0].quoted ? blank + 1 : 0;
        for (int64_t c = 0; c < r.n; c++) {
            const acf_field *cell = &r.field[c];
            if (!cell->text)
                ACF_TRY(profile_number(f, p, &r, c, skip[c]));
            else if (!skip[c])
                ACF_TRY(acf_profile_text(p, c, r.row, cell->text, cell->length, cell->quoted));
        }
    }
    if (!p->rows && f->reader->dialect) ACF_TRY(acf_table_file_say_blank(f, blank));
    p->rows = rows;
    return acf_reader_rewind(f->reader);
}

/* Numbers are not always written as programs do. The first pass decides the notation, and columns with another notation
 * are counted once more with it. */
static acf_status profile_again(acf_table_file *f, acf_profile *p, const acf_read_options *w,
                                const acf_field_spec *const *wish, const bool *skip) {
    bool *pass = acf_alloc((size_t)f->columns * sizeof *pass, "reading a table"), any = false;
    if (!pass) return ACF_EMEMORY;
    for (int64_t c = 0; c < f->columns; c++)
        pass[c] = skip[c] || acf_reader_describe(f->reader, c).storage == ACF_STORAGE_NUMBER;
    acf_status status = acf_settle(f, p, w, wish, pass);
    for (int64_t c = 0; c < f->columns; c++) any |= !pass[c];
    if (status == ACF_OK && any) status = profile_rows(f, p, pass);
    acf_release(pass);
    return status;
}

/* Profiles the columns that skip (columns) does not name, and counts the rows. wish (columns): what the user says of
 * each, NULL for nothing. */
static acf_status profile_columns(acf_table_file *f, acf_profile *p, const acf_read_options *w,
                                  const acf_field_spec *const *wish, const bool *skip) {
    ACF_TRY(profile_rows(f, p, skip));
    if (p->rows > 0) return profile_again(f, p, w, wish, skip);
    return acf_fail(ACF_EDATA, "%s: it has %lld column%s and no rows; expected at least one", acf_table_file_path(f),
                    (long long)f->columns, f->columns == 1 ? "" : "s");
}

/* ---- the second pass -------------------------------------------------------------------------------------------- */

/* What the second pass finds in a column besides its values. */
typedef struct counted_cells {
    int64_t cells, first; /* row of the first one */
    char shown[ACF_EXCERPT_MAX];
} counted_cells;

typedef struct column_findings {
    counted_cells kept;     /* cells with a text that counts as missing for the model */
    counted_cells infinite; /* cells of infinity, which count as missing numbers */
} column_findings;

typedef struct filling {
    acf_table_file *f;
    double *x; /* (rows,D) */
    int64_t rows;
    uint64_t *id;           /* (rows) NULL: the file has no column of ids */
    column_findings *found; /* (columns of the schema) */
} filling;

/* A cell that is being read. */
typedef struct incoming {
    int64_t row, line, c;
    const acf_field *field;
} incoming;

static const char *shown(const incoming *in, char out[ACF_EXCERPT_MAX]) {
    char text[2 * ACF_EXCERPT_MAX];
    acf_text t = acf_text_into(text, sizeof text);
    if (in->field->text)
        acf_text_add_bytes(&t, in->field->text, in->field->length);
    else
        acf_number_shortest(text, in->field->number);
    return acf_text_excerpt(out, text);
}

/* The most frequent error message: where the cell is, what was found, what was expected, and what to do. */
static acf_status wrong_cell(const acf_table_file *f, const incoming *in, const acf_field_spec *spec) {
    char where[ACF_FIELD_TEXT_MAX], seen[ACF_EXCERPT_MAX], expected[ACF_PREDICTED_MAX];
    return acf_fail(
        ACF_EDATA,
        "%s, %s %lld, %s: '%s' is not %s, which this column (%s) holds; correct it, or add it to the option 'missing' "
        "if it stands for a missing value",
        acf_table_file_path(f), in->line ? "line" : "row", (long long)(in->line ? in->line : in->row + 1),
        acf_field_text(where, f->name[in->c], in->c), shown(in, seen), acf_cell_expected(spec, expected),
        spec->kind->name);
}

/* Stores the first one and counts the others: a column may have thousands. */
static void count_finding(counted_cells *found, const incoming *in) {
    if (found->cells++) return;
    shown(in, found->shown);
    found->first = in->row;
}

/* Usually few, but a column of another file may have no other levels. */
static acf_status add_unseen_level(acf_unseen_levels *s, int64_t cell) {
    if (s->n == s->capacity) {
        const int64_t capacity = s->capacity ? 2 * s->capacity : 64;
        int64_t *more = acf_alloc((size_t)capacity * sizeof *more, "unseen levels");
        if (!more) return ACF_EMEMORY;
        if (s->n) memcpy(more, s->cell, (size_t)s->n * sizeof *more);
        acf_release(s->cell);
        s->cell = more, s->capacity = capacity;
    }
    s->cell[s->n++] = cell;
    return ACF_OK;
}

/* Is the cell not one of its column's levels, or not the one value of a constant? */
static bool is_unseen(const acf_field_spec *c, const incoming *in) {
    char text[ACF_NUMBER_MAX];
    if (c->levels.n == 0) return false;
    const char *is = in->field->text ? in->field->text : acf_number_shortest(text, in->field->number);
    return acf_text_counts_find(&c->levels, is, in->field->text ? in->field->length : strlen(is)) < 0;
}

/* The key of a row is a hash of its id's text; a number is written first. A row without an id would share its draws
 * with all other such rows, so it is refused. */
static acf_status fill_id(filling *w, const incoming *in) {
    char text[ACF_NUMBER_MAX] = "", where[ACF_FIELD_TEXT_MAX];
    if (!in->field->text && !isnan(in->field->number)) acf_number_shortest(text, in->field->number);
    const char *is = in->field->text ? in->field->text : text;
    const size_t n = in->field->text ? in->field->length : strlen(text);
    if (n == 0 || acf_na_strings_has(&w->f->schema->na_strings, is, n))
        return acf_fail(ACF_EDATA, "%s, %s %lld, %s: the id is missing; the option 'id' needs one in every row",
                        acf_table_file_path(w->f), in->line ? "line" : "row",
                        (long long)(in->line ? in->line : in->row + 1),
                        acf_field_text(where, w->f->name[in->c], in->c));
    w->id[in->row] = acf_rng_bytes(is, n);
    return ACF_OK;
}

/* Is the cell of a column that the model does not have a missing cell? */
static bool is_missing_unmodelled(const filling *w, const incoming *in) {
    if (!in->field->text) return isnan(in->field->number);
    return acf_na_strings_has(&w->f->schema->na_strings, in->field->text, in->field->length);
}

/* Is the missing cell one of infinity that the user has not named? */
static bool is_infinity(const filling *w, const acf_field_spec *c, const incoming *in) {
    if (!in->field->text || c->place < 0 || !acf_number_is_infinite(in->field->text, in->field->length)) return false;
    return !acf_na_strings_has(&w->f->schema->na_strings, in->field->text, in->field->length) &&
           !(c->na_strings && acf_na_strings_has(c->na_strings, in->field->text, in->field->length));
}

/* Stores one cell. Columns that are not modelled are read too: their missing cells are counted, and a constant with a
 * new value gives a warning. */
static acf_status fill_cell(filling *w, const incoming *in) {
    int64_t place = w->f->spec[in->c];
    if (in->c == w->f->id) ACF_TRY(fill_id(w, in));
    if (place < 0) {
        w->f->missing[in->c] += is_missing_unmodelled(w, in);
        return ACF_OK;
    }
    const acf_field_spec *spec = &w->f->schema->column[place];
    double v;
    acf_cell_state is = in->field->text ? acf_cell_read(w->f->schema, spec, in->field->text, in->field->length, &v)
                                        : acf_cell_read_number(spec, in->field->number, &v);
    if (is == ACF_CELL_WRONG) return wrong_cell(w->f, in, spec);
    w->f->missing[in->c] += is == ACF_CELL_MISSING;
    const bool odd = is == ACF_CELL_KEPT && is_unseen(spec, in);
    if (odd) count_finding(&w->found[place].kept, in);
    if (is == ACF_CELL_MISSING && is_infinity(w, spec, in)) count_finding(&w->found[place].infinite, in);
    if (odd && spec->place >= 0)
        ACF_TRY(add_unseen_level(&w->f->unseen_levels, in->row * w->f->schema->D + spec->place));
    if (spec->place >= 0) w->x[in->row * w->f->schema->D + spec->place] = v;
    return ACF_OK;
}

static acf_status fill_rows(filling *w) {
    acf_record r;
    for (;;) {
        ACF_TRY(acf_reader_next(w->f->reader, &r));
        if (r.n == 0) return ACF_OK;
        ACF_ASSERT(r.row < w->rows && r.n == w->f->columns); /* the reader has verified that the file is unchanged */
        for (int64_t c = 0; c < r.n; c++) ACF_TRY(fill_cell(w, &(incoming){r.row, r.line, c, &r.field[c]}));
    }
}

/* Completes the schema with what only the values of a column show, such as the range of its dates. */
static acf_status learn_values(const filling *w) {
    const acf_schema *s = w->f->schema;
    for (int64_t j = 0; j < s->n; j++) {
        acf_field_spec *c = &s->column[j];
        if (c->place >= 0 && c->kind->learn_values) ACF_TRY(c->kind->learn_values(c, w->x + c->place, w->rows, s->D));
    }
    return ACF_OK;
}

/* Warns about each column with kept cells. Only for a model's schema: for a new schema, typing.c has warned. */
static acf_status warn_kept(const filling *w) {
    for (int64_t j = 0; j < w->f->schema->n; j++) {
        const acf_field_spec *c = &w->f->schema->column[j];
        const counted_cells *found = &w->found[j].kept;
        static const char *const words[2][2] = {{"cells hold values", "cell holds a value"},
                                                {"cells hold something else", "cell holds something else"}},
                                 *const they[2] = {"they are kept as they are and count",
                                                   "it is kept as it is and counts"};
        char name[ACF_EXCERPT_MAX];
        if (!found->cells) continue;
        ACF_TRY(acf_warnings_addf(&w->f->warnings,
                                  c->place < 0 ? "column '%s' was constant when the model was made; now "
                                                 "%lld %s (the first: '%s', "
                                                 "row %lld), which is kept and not used"
                                               : "column '%s': %lld %s that the model never saw (the "
                                                 "first: '%s', row %lld); %s as missing",
                                  acf_text_excerpt(name, c->name), (long long)found->cells,
                                  words[c->place < 0][found->cells == 1], found->shown, (long long)found->first + 1,
                                  they[found->cells == 1]));
    }
    return ACF_OK;
}

static acf_status warn_infinite(const filling *w) {
    for (int64_t j = 0; j < w->f->schema->n; j++) {
        const counted_cells *found = &w->found[j].infinite;
        char name[ACF_EXCERPT_MAX];
        if (!found->cells) continue;
        ACF_TRY(
            acf_warnings_addf(&w->f->warnings,
                              "column '%s': %lld cell%s infinity (the first: '%s', row %lld), which counts as missing "
                              "and is filled in",
                              acf_text_excerpt(name, w->f->schema->column[j].name), (long long)found->cells,
                              found->cells == 1 ? " holds" : "s hold", found->shown, (long long)found->first + 1));
    }
    return ACF_OK;
}

static int by_key(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Repeated ids are not an error in themselves (the visits of a patient), but their rows share random draws. */
static acf_status warn_repeated_ids(const filling *w) {
    if (!w->id) return ACF_OK;
    const size_t bytes = (size_t)w->rows * sizeof *w->id;
    uint64_t *sorted = acf_alloc(bytes, "the ids of a table");
    int64_t repeated = 0;
    char name[ACF_EXCERPT_MAX];
    if (!sorted) return ACF_EMEMORY;
    memcpy(sorted, w->id, bytes);
    qsort(sorted, (size_t)w->rows, sizeof *sorted, by_key);
    for (int64_t i = 1; i < w->rows; i++) repeated += sorted[i] == sorted[i - 1];
    acf_release(sorted);
    if (!repeated) return ACF_OK;
    return acf_warnings_addf(
        &w->f->warnings, "column '%s': %lld row%s the id of another row, and get the same random numbers as that one",
        acf_text_excerpt(name, w->f->name[w->f->id]), (long long)repeated, repeated == 1 ? " has" : "s have");
}

/* Fills x and makes the table around it. Takes ownership of f on success. fresh: the schema was made from this file. */
static acf_status fill(acf_table_file *f, int64_t rows, bool fresh, acf_table **out) {
    acf_schema *s = f->schema;
    acf_status status = ACF_EMEMORY;
    filling w = {.f = f, .rows = rows};
    acf_column *column = NULL;
    acf_table *t;
    size_t bytes;
    if (!acf_bytes(s->D, sizeof(double), &bytes) || !acf_bytes(rows, bytes, &bytes)) return ACF_EMEMORY;
    w.x = acf_alloc(bytes, "the cells of a table");
    w.found = w.x ? acf_alloc_zero((size_t)s->n * sizeof *w.found, "reading a table") : NULL;
    column = w.found ? acf_alloc_zero((size_t)s->D * sizeof *column, "the columns of a table") : NULL;
    if (column && f->id >= 0) w.id = acf_alloc((size_t)rows * sizeof *w.id, "the ids of a table");
    if (!column || (f->id >= 0 && !w.id)) goto done;
    ACF_TRY_DONE(fill_rows(&w));
    ACF_TRY_DONE(warn_repeated_ids(&w));
    ACF_TRY_DONE(warn_infinite(&w));
    if (fresh)
        ACF_TRY_DONE(learn_values(&w));
    else
        ACF_TRY_DONE(warn_kept(&w));
    acf_schema_columns(s, column);
    status = acf_table_take(w.x, rows, s->D, column, &t);
    w.x = NULL;
    if (status) goto done;
    t->file = f;
    t->id = w.id;
    w.id = NULL;
    *out = t;
done:
    acf_release(w.x);
    acf_release(w.id);
    acf_release(w.found);
    acf_release(column);
    return status;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Columns of numbers whose levels are needed: because the user wants levels, or to check whether an id is unique. */
static void prepare(acf_profile *p, const acf_table_file *f, const acf_field_spec *const *wish) {
    for (int64_t c = 0; c < f->columns; c++) {
        bool levels = acf_reader_describe(f->reader, c).storage == ACF_STORAGE_DICTIONARY;
        levels |= wish[c] && wish[c]->kind->all_texts;
        if (levels || acf_typing_is_id_name(f->name[c])) acf_profile_want_levels(p, c);
        if (wish[c]) p->column[c].extra = wish[c]->na_strings;
    }
}

/* The codes of a dictionary are texts even if they look like numbers. Such columns are read as categories, unless the
 * user says otherwise. */
static void wish_dictionaries(const acf_profile *p, const acf_table_file *f, const acf_field_spec **wish) {
    static const acf_field_spec category = {.kind = &acf_kind_category};
    for (int64_t c = 0; c < f->columns; c++) {
        const acf_profile_column *of = &p->column[c];
        if (wish[c] || acf_reader_describe(f->reader, c).storage != ACF_STORAGE_DICTIONARY) continue;
        if (of->numeric == of->observed && of->min < of->max) wish[c] = &category;
    }
}

/* Two passes, with typing in between. The texts of the first pass are freed before the cells are allocated, so their
 * memory does not add up. */
static acf_status read_fresh(acf_table_file *f, const acf_read_options *w, acf_table **out) {
    acf_status status = ACF_EMEMORY;
    acf_profile *p = NULL;
    const acf_field_spec **wish = acf_alloc_zero((size_t)f->columns * sizeof *wish, "reading a table");
    bool *skip = wish ? acf_alloc_zero((size_t)f->columns * sizeof *skip, "reading a table") : NULL;
    if (!skip) goto done;
    const char *const *name = (const char *const *)f->name;
    ACF_TRY_DONE(acf_read_options_id(w, acf_table_file_path(f), name, f->columns, &f->id));
    ACF_TRY_DONE(acf_read_options_match(w, acf_table_file_path(f), name, f->columns, wish));
    ACF_TRY_DONE(acf_profile_create(f->columns, &w->na_strings, &p));
    prepare(p, f, wish);
    ACF_TRY_DONE(profile_columns(f, p, w, wish, skip));
    wish_dictionaries(p, f, wish);
    ACF_TRY_DONE(acf_typing(acf_table_file_path(f), p, name, wish, &f->warnings, &f->schema));
    f->schema->named = f->reader->named;
    if (w->fill_constants) acf_schema_fill_constants(f->schema);
    for (int64_t c = 0; c < f->columns; c++) f->spec[c] = c;
    int64_t rows = p->rows;
    acf_profile_free(p);
    p = NULL;
    ACF_TRY_DONE(fill(f, rows, true, out));
done:
    acf_profile_free(p);
    acf_release(wish);
    acf_release(skip);
    return status;
}

acf_status acf_table_file_read_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                                  acf_table **out) {
    acf_table_file *f;
    ACF_TRY(open_frame(path, format, w, &f));
    acf_status status = read_fresh(f, w, out);
    if (status) acf_table_file_free(f);
    return status;
}

acf_status acf_table_file_read(const char *path, const acf_read_options *w, acf_table **out) {
    return acf_table_file_read_as(NULL, path, w, out);
}

/* ---- reading for a model ---------------------------------------------------------------------------------------- */

/* The schema is copied, so that the table does not depend on the model's lifetime. NA strings named now are added to
 * the copy. */
static acf_status read_known(acf_table_file *f, const acf_read_options *w, const acf_schema *known, acf_table **out) {
    acf_status status = ACF_EMEMORY;
    acf_profile *p = NULL;
    bool *skip = acf_alloc_zero((size_t)f->columns * sizeof *skip, "reading a table");
    if (!skip) goto done;
    ACF_TRY_DONE(acf_schema_copy(known, &f->schema));
    f->known = true;
    if (w->fill_constants) acf_schema_fill_constants(f->schema);
    for (int64_t i = 0; i < w->added.list.n; i++)
        ACF_TRY_DONE(
            acf_na_strings_add(&f->schema->na_strings, w->added.list.entry[i].text, w->added.list.entry[i].length));
    ACF_TRY_DONE(acf_match(f, w));
    ACF_TRY_DONE(acf_read_options_id(w, acf_table_file_path(f), (const char *const *)f->name, f->columns, &f->id));
    for (int64_t c = 0; c < f->columns; c++) skip[c] = f->spec[c] >= 0;
    ACF_TRY_DONE(acf_profile_create(f->columns, &f->schema->na_strings, &p));
    ACF_TRY_DONE(profile_columns(f, p, w, NULL, skip));
    ACF_TRY_DONE(acf_match_unseen_levels(f, w, p));
    ACF_TRY_DONE(fill(f, p->rows, false, out));
done:
    acf_profile_free(p);
    acf_release(skip);
    return status;
}

/* Does the first record have exactly the model's names, although it was not taken for a header? Then it is a header:
 * 2019,2020,2021. */
static acf_status begins_with_names(acf_table_file *f, const acf_schema *known, bool *out) {
    acf_record r;
    *out = false;
    if (!f->reader->dialect || f->reader->named || !known->named) return ACF_OK;
    ACF_TRY(acf_reader_next(f->reader, &r));
    int64_t found = 0;
    for (int64_t c = 0; c < r.n; c++)
        for (int64_t j = 0; j < known->n; j++)
            found += known->column[j].place >= 0 && strlen(known->column[j].name) == r.field[c].length &&
                     memcmp(known->column[j].name, r.field[c].text, r.field[c].length) == 0;
    *out = found == known->D;
    return acf_reader_rewind(f->reader);
}

static acf_status open_known(const char *path, const acf_read_options *w, const acf_schema *known,
                             acf_table_file **out) {
    acf_table_file *f;
    bool again = false;
    ACF_TRY(open_frame(path, NULL, w, &f));
    acf_status status =
        w->want.header == ACF_AUTO && strcmp(path, "-") != 0 ? begins_with_names(f, known, &again) : ACF_OK;
    if (status == ACF_OK && again) {
        acf_read_options with = *w;
        with.want.header = ACF_YES;
        acf_table_file_free(f);
        return open_frame(path, NULL, &with, out);
    }
    if (status)
        acf_table_file_free(f);
    else
        *out = f;
    return status;
}

acf_status acf_table_file_read_for(const char *path, const acf_read_options *w, const acf_schema *known,
                                   acf_table **out) {
    acf_table_file *f;
    ACF_TRY(open_known(path, w, known, &f));
    acf_status status = read_known(f, w, known, out);
    if (status) acf_table_file_free(f);
    return status;
}
