/* Messages about a file besides the kinds of its columns: missing cells that stay, lines that count as rows. See
 * table_file.h. Runs once a table. */
#include "table/table_file.h"
#include "table/typing.h"

#define LEFT_SHOWN 8 /* columns with missing cells that are named; the others are counted */

/* An editor may have added these lines, and the user should see that they are imputed. */
acf_status acf_table_file_say_blank(acf_table_file *f, int64_t lines) {
    if (!lines) return ACF_OK;
    if (lines == 1)
        return acf_warnings_addf(&f->warnings,
                                 "the last line is blank; in a table of one column that is a missing cell");
    return acf_warnings_addf(&f->warnings,
                             "the last %lld lines are blank; in a table of one column each is a missing cell",
                             (long long)lines);
}

/* Reports what was not found or is unusual: a header mistaken for data adds a row and loses the names. */
void acf_table_file_dialect(const acf_table_file *f, bool odd, acf_text *out) {
    const acf_dialect *d = f->reader ? f->reader->dialect : NULL;
    if (!d) return;
    char name[ACF_SEPARATOR_NAME_MAX];
    bool comma = false;
    for (int64_t j = 0; j < f->schema->n; j++) comma |= f->schema->column[j].notation.comma;
    if (odd && d->separator == ',' && d->quote == '"' && d->header && !comma) return;
    acf_text_addf(out, "separator %s, ", acf_separator_name(d->separator, name));
    if (d->quote == '\n')
        acf_text_add(out, "no quotes, ");
    else if (d->quote != '"')
        acf_text_addf(out, "quote %c, ", d->quote);
    acf_text_addf(out, "decimal %s, ", comma ? "comma" : "point");
    acf_text_add(
        out,
        d->header ? "header"
        : d->guessed
            ? "no header found: columns are called V1, V2, ...; use the option 'header=yes' if the first line has the "
              "names"
            : "no header");
}

acf_status acf_table_file_learnable(const acf_table *t) {
    return t->file ? acf_typing_learnable(acf_table_file_path(t->file), t->file->schema) : ACF_OK;
}

/* ---- missing cells ----------------------------------------------------------------------------------------------- */

/* The schema entry of column c of the file; NULL: the model does not have it. */
static const acf_field_spec *spec_at(const acf_table_file *f, int64_t c) {
    return f->spec[c] < 0 ? NULL : &f->schema->column[f->spec[c]];
}

static bool is_filled(const acf_field_spec *spec) { return spec && acf_spec_is_filled(spec); }

int64_t acf_table_file_missing(const acf_table_file *f) {
    int64_t n = 0;
    for (int64_t c = 0; c < f->columns; c++)
        if (is_filled(spec_at(f, c))) n += f->missing[c];
    return n;
}

/* An identifier can be imputed if the user gives it another kind, and a constant on request; an empty column gives no
 * data to learn from. */
void acf_table_file_unfilled(const acf_table_file *f, acf_text *out) {
    char words[LEFT_SHOWN * (ACF_EXCERPT_MAX + 48) + 64], name[ACF_EXCERPT_MAX];
    acf_text list = acf_text_into(words, sizeof words);
    int64_t cells = 0, columns = 0;
    bool identifier = false, constant = false;
    for (int64_t c = 0; c < f->columns; c++) {
        const acf_field_spec *spec = spec_at(f, c);
        if (!f->missing[c] || is_filled(spec)) continue;
        cells += f->missing[c];
        identifier |= spec && spec->kind->role == ACF_ROLE_ROW_NAME;
        constant |= spec && spec->kind->role == ACF_ROLE_ONE_VALUE;
        if (columns++ < LEFT_SHOWN)
            acf_text_addf(&list, "%s%s (%s) %lld", columns > 1 ? ", " : "", acf_text_excerpt(name, f->name[c]),
                          spec ? spec->kind->name : "not in the model", (long long)f->missing[c]);
    }
    if (!cells) return;
    if (columns > LEFT_SHOWN) acf_text_addf(&list, " and %lld more columns", (long long)(columns - LEFT_SHOWN));
    acf_text_addf(out, "%lld missing cell%s: %s", (long long)cells,
                  cells == 1 ? " stays as it is" : "s stay as they are", words);
    if (constant)
        acf_text_add(out, "; a column with one value is not filled in: use the option 'fill-constants' to fill it with "
                          "that value");
    if (identifier && !f->known)
        acf_text_add(
            out, "; nothing is made up for an identifier: if such a column is something else, say what in the option "
                 "'types' to have it filled in");
}
