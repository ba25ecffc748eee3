/* Matches the columns of a file to those of a model: see match.h. */
#include "table/match.h"

#include <string.h>

/* "'age', 'sex', 'city'": the modelled columns, as many as fit. */
static void list_columns(const acf_schema *s, acf_text *out) {
    char name[ACF_EXCERPT_MAX];
    bool first = true;
    for (int64_t j = 0; j < s->n && out->len < 300; j++) {
        if (s->column[j].place < 0) continue;
        acf_text_addf(out, "%s'%s'", first ? "" : ", ", acf_text_excerpt(name, s->column[j].name));
        first = false;
    }
    if (out->len >= 300) acf_text_add(out, ", ...");
}

acf_status acf_match_unknown(const acf_schema *s, const char *name) {
    char seen[ACF_EXCERPT_MAX], columns[512];
    acf_text t = acf_text_into(columns, sizeof columns);
    list_columns(s, &t);
    return acf_fail(ACF_EUSAGE, "there is no column '%s'; the model has %s", acf_text_excerpt(seen, name), columns);
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

static acf_status missing_column(const acf_table_file *f, int64_t j) {
    const acf_field_spec *c = &f->schema->column[j];
    char name[ACF_EXCERPT_MAX];
    return acf_fail(
        ACF_EDATA,
        "%s: it has no column '%s' (%s), which the model needs; add it, with empty cells if its values are unknown",
        acf_table_file_path(f), acf_text_excerpt(name, c->name), c->kind->name);
}

/* The position in the file of each column of the schema: at (n), -1 for none. */
/* Uses a hash table: both sides may have thousands of columns. */
static acf_status find_names(acf_table_file *f, int64_t *at) {
    acf_text_counts names = acf_text_counts_make(ACF_CSV_FIELDS_MAX, f->texts);
    acf_status status = ACF_OK;
    for (int64_t c = 0; c < f->columns && status == ACF_OK; c++)
        status = acf_text_counts_add(&names, f->name[c], strlen(f->name[c]), c);
    for (int64_t j = 0; j < f->schema->n && status == ACF_OK; j++)
        at[j] = acf_text_counts_find(&names, f->schema->column[j].name, strlen(f->schema->column[j].name));
    acf_text_counts_clear(&names);
    return status;
}

/* Reports that column j of the schema precedes the one that should be before it, which is column `last` of the file. */
static acf_status moved(const acf_table_file *f, int64_t j, int64_t at, int64_t last) {
    char where[ACF_FIELD_TEXT_MAX], before[ACF_EXCERPT_MAX], columns[512];
    acf_text t = acf_text_into(columns, sizeof columns);
    list_columns(f->schema, &t);
    return acf_fail(
        ACF_EDATA,
        "%s, %s: the columns are not in the order of the model: in the model this one follows '%s'. Put them in the "
        "model's order (%s), "
        "or use the option 'any-order' to match them by name",
        acf_table_file_path(f), acf_field_text(where, f->schema->column[j].name, at),
        acf_text_excerpt(before, f->name[last]), columns);
}

/* A column that the model does not need may be absent. One that it needs may not: an empty column states the same
 * without doubt. Another order may be intended, or may be another table with the same names, so the user must
 * confirm it. */
static acf_status use_names(acf_table_file *f, const int64_t *at, bool any_order) {
    const acf_schema *s = f->schema;
    int64_t last = -1;
    bool another = false;
    for (int64_t j = 0; j < s->n; j++) {
        char name[ACF_EXCERPT_MAX];
        if (at[j] < 0 && s->column[j].place >= 0) return missing_column(f, j);
        if (at[j] < 0) {
            ACF_TRY(acf_warnings_addf(&f->warnings, "column '%s' (%s) is not in this file; the model does not need it",
                                      acf_text_excerpt(name, s->column[j].name), s->column[j].kind->name));
            continue;
        }
        f->spec[at[j]] = j;
        if (s->column[j].place < 0) continue; /* may be in any position */
        if (at[j] < last && !any_order) return moved(f, j, at[j], last);
        another |= at[j] < last;
        last = at[j];
    }
    return another ? acf_warnings_addf(&f->warnings,
                                       "the columns are not in the order of the model; they were matched by name")
                   : ACF_OK;
}

static acf_status match_names(acf_table_file *f, bool any_order) {
    int64_t *at = acf_alloc((size_t)f->schema->n * sizeof *at, "finding columns");
    if (!at) return ACF_EMEMORY;
    acf_status status = find_names(f, at);
    if (status == ACF_OK) status = use_names(f, at, any_order);
    acf_release(at);
    return status;
}

/* ---- by position ------------------------------------------------------------------------------------------------- */

/* Only the number of columns shows whether this is the right file. */
static acf_status match_places(acf_table_file *f, bool has_header) {
    const acf_schema *s = f->schema;
    if (f->columns != s->n)
        return acf_fail(
            ACF_EDATA,
            "%s: it has %lld column%s and the model was made from %lld; without names in both, the numbers must be "
            "equal",
            acf_table_file_path(f), (long long)f->columns, f->columns == 1 ? "" : "s", (long long)s->n);
    for (int64_t c = 0; c < f->columns; c++) f->spec[c] = c;
    if (!s->named && !has_header) return ACF_OK;
    return acf_warnings_addf(&f->warnings, "%s has no column names; columns were taken in the order of the %s",
                             s->named ? "this file" : "the model", s->named ? "model" : "file");
}

/* ---- read options ------------------------------------------------------------------------------------------------ */

/* The model determines the kinds of its columns, so options for them are refused. */
static acf_status check_read_options(const acf_table_file *f, const acf_read_options *w) {
    if (w->file)
        return acf_fail(ACF_EUSAGE, "a model already has the kinds of its columns; leave out the option 'schema'");
    for (int64_t k = 0; w->types && k < w->types->n; k++) {
        const acf_field_spec *wish = &w->types->column[k];
        int64_t j = acf_schema_find(f->schema, wish->name);
        char name[ACF_EXCERPT_MAX];
        if (j >= 0 && f->schema->column[j].kind != wish->kind)
            return acf_fail(ACF_EUSAGE,
                            "option 'types': the model was trained with column '%s' as %s; it cannot be "
                            "%s now",
                            acf_text_excerpt(name, wish->name), f->schema->column[j].kind->name, wish->kind->name);
    }
    return ACF_OK;
}

acf_status acf_match(acf_table_file *f, const acf_read_options *w) {
    bool has_header = f->reader->named;
    ACF_TRY(check_read_options(f, w));
    for (int64_t c = 0; c < f->columns; c++) f->spec[c] = -1;
    return has_header && f->schema->named ? match_names(f, w->any_order) : match_places(f, has_header);
}

/* ---- unseen columns ---------------------------------------------------------------------------------------------- */

/* An unknown column that could be modelled usually means a wrong file or a misspelled name, so it is not ignored
 * silently. */
acf_status acf_match_unseen_levels(acf_table_file *f, const acf_read_options *w, const acf_profile *p) {
    for (int64_t c = 0; c < f->columns; c++) {
        if (f->spec[c] >= 0 || c == f->id) continue;
        char where[ACF_FIELD_TEXT_MAX], name[ACF_EXCERPT_MAX], columns[512];
        int64_t wish = w->types ? acf_schema_find(w->types, f->name[c]) : -1;
        const acf_kind *kind = wish >= 0 ? w->types->column[wish].kind : acf_kind_recognise(&p->column[c], f->name[c]);
        acf_text t = acf_text_into(columns, sizeof columns);
        list_columns(f->schema, &t);
        if (acf_kind_is_modelled(kind))
            return acf_fail(ACF_EDATA,
                            "%s, %s: the model does not have this column (%s); it has %s. Remove it, or use the option "
                            "'types=%s=identifier' to "
                            "carry it along",
                            acf_table_file_path(f), acf_field_text(where, f->name[c], c), kind->name, columns,
                            acf_text_excerpt(name, f->name[c]));
        ACF_TRY(acf_warnings_addf(&f->warnings, "%s (%s) is not a column of the model; it is carried along",
                                  acf_field_text(where, f->name[c], c), kind->name));
    }
    return ACF_OK;
}
