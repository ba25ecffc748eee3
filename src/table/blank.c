/* Tables without a file: rows with some given cells, in which a model can draw (table_file.h, acf_table_file_blank).
 * The input is small: what a user types on a command line, times the number of rows requested. */
#include "table/match.h"
#include "table/number.h"
#include "table/table_file.h"

#include <math.h>
#include <string.h>

#define LISTED 10 /* levels listed in a message */

/* Warns of a given number outside the training range. It is accepted, but the answer is an extrapolation. */
static acf_status warn_outside_range(acf_table_file *f, const acf_field_spec *c, const char *item, double v) {
    char seen[ACF_EXCERPT_MAX], ends[2][ACF_NUMBER_FIXED_MAX];
    if (!acf_kind_is_numeric(c->kind) || (v >= c->min && v <= c->max)) return ACF_OK;
    for (int k = 0; k < 2; k++) {
        acf_text t = acf_text_into(ends[k], sizeof ends[k]);
        acf_cell_write(c, k ? c->max : c->min, &t);
    }
    return acf_warnings_addf(
        &f->warnings, "'%s' is outside the training range, %s to %s; it is used, but the answer is an extrapolation",
        acf_text_excerpt(seen, item), ends[0], ends[1]);
}

/* ---- given values ------------------------------------------------------------------------------------------------ */

/* Trims white space on both sides of the n bytes of *s. */
static void trim(const char **s, size_t *n) {
    while (*n > 0 && (**s == ' ' || **s == '\t')) ++*s, --*n;
    while (*n > 0 && ((*s)[*n - 1] == ' ' || (*s)[*n - 1] == '\t')) --*n;
}

/* Returns the number of bytes up to the next unquoted byte of `ends`. A quote opens only at the start of a name or
 * value. It closes at a quote that is not doubled. */
static size_t until(const char *s, const char *ends) {
    size_t n = 0;
    bool begins = true, quoted = false;
    for (; s[n] && (quoted || !strchr(ends, s[n])); n++) {
        if (s[n] == '"' && (begins || quoted)) quoted = !quoted || s[n + 1] == '"', n += quoted && !begins;
        begins = s[n] == '=' || (begins && (s[n] == ' ' || s[n] == '\t'));
    }
    return n;
}

/* Returns a name or value without surrounding white space and quotes, owned by the table file's memory. Returns NULL
 * with an error if there is no memory or if the quotes do not close at its end. */
static char *plain(acf_table_file *f, const char *s, size_t n) {
    char seen[ACF_EXCERPT_MAX];
    size_t kept = 0;
    trim(&s, &n);
    const bool quoted = n > 0 && s[0] == '"';
    if (quoted && (n < 2 || s[n - 1] != '"')) {
        acf_fail(ACF_EUSAGE, "a quote is not closed: %s", acf_text_excerpt(seen, s));
        return NULL;
    }
    char *out = acf_text_keep(f->texts, s + quoted, n - 2 * quoted);
    for (size_t i = 0; out && quoted && out[i]; i++) {
        out[kept++] = out[i];
        if (out[i] == '"' && out[i + 1] == '"') i++;
    }
    if (out && quoted) out[kept] = 0;
    return out;
}

/* Returns where the value of an item of n bytes begins: after the last unquoted =, as a name may contain one. 0: no
 * value. */
static size_t value_at(const char *item, size_t n) {
    size_t at = 0, k = until(item, "=,");
    for (; k < n && item[k] == '='; k += until(item + k, "=,")) at = ++k;
    return at;
}

/* Reads a number given in plain notation, such as 3.5, although its column uses another one. Sets its value, and its
 * text as the column writes it. */
static acf_status read_plain(acf_table_file *f, const acf_field_spec *c, char **text, double *value, bool *is) {
    char written[ACF_NUMBER_MAX + 4 * ACF_AFFIX_MAX];
    acf_number v;
    *is = c->kind->numbers != ACF_NO_NUMBERS && strlen(*text) < ACF_NUMBER_MAX &&
          acf_number_parse(*text, strlen(*text), &v);
    if (!*is) return ACF_OK;
    acf_text t = acf_text_into(written, sizeof written);
    acf_notation_write(&c->notation, *text, &t);
    *value = v.value;
    *text = acf_text_keep(f->texts, written, t.len);
    return *text ? ACF_OK : ACF_EMEMORY;
}

/* Writes " (Harbour, Hillside, ...)", the first levels of the column; nothing if it has none. */
static const char *list_levels(const acf_field_spec *c, char *out, size_t size) {
    acf_text t = acf_text_into(out, size);
    acf_text_add(&t, "");
    if (c->levels.n == 0) return out;
    for (int64_t k = 0; k < acf_min(c->levels.n, LISTED); k++) {
        char level[ACF_EXCERPT_MAX];
        acf_text_addf(&t, "%s%s", k ? ", " : " (", acf_text_excerpt(level, c->levels.entry[k].text));
    }
    acf_text_add(&t, c->levels.n > LISTED ? ", ...)" : ")");
    return out;
}

/* Reads one item of "age=40,sex=F" into row (D) and keeps its text, to write it unchanged. Values are read like the
 * cells of a file. Only an unseen level is refused, because the model cannot condition on it. */
static acf_status give(acf_table_file *f, const char *item, size_t n, double *row) {
    const acf_schema *s = f->schema;
    char said[2 * ACF_EXCERPT_MAX], seen[ACF_EXCERPT_MAX], expected[ACF_PREDICTED_MAX],
        levels[(LISTED + 1) * (ACF_EXCERPT_MAX + 2)];
    trim(&item, &n);
    const size_t at = value_at(item, n);
    acf_text t = acf_text_into(said, sizeof said);
    acf_text_add_bytes(&t, item, n);
    if (at == 0)
        return acf_fail(ACF_EUSAGE, "'%s' has no value; expected items like age=40, separated by commas%s",
                        acf_text_excerpt(seen, said),
                        *item >= '0' && *item <= '9' ? "; quote a value that contains a comma, price=\"3,5\"" : "");
    char *name = plain(f, item, at - 1), *value = name ? plain(f, item + at, n - at) : NULL;
    if (!value) return acf_error_status();
    int64_t j = acf_schema_find(s, name);
    if (j < 0) return acf_match_unknown(s, name);
    const acf_field_spec *c = &s->column[j];
    if (c->place < 0)
        return acf_fail(ACF_EUSAGE, "column '%s' is %s %s and not modelled: it cannot be given",
                        acf_text_excerpt(seen, name), strchr("aeiou", *c->kind->name) ? "an" : "a", c->kind->name);
    if (f->given[j]) return acf_fail(ACF_EUSAGE, "column '%s' is given twice", acf_text_excerpt(seen, name));
    bool is = acf_cell_read(s, c, value, strlen(value), &row[c->place]) == ACF_CELL_PRESENT;
    if (!is) ACF_TRY(read_plain(f, c, &value, &row[c->place], &is));
    if (!is)
        return acf_fail(ACF_EUSAGE, "'%s': expected %s%s", acf_text_excerpt(seen, said), acf_cell_expected(c, expected),
                        list_levels(c, levels, sizeof levels));
    f->given[j] = value;
    return warn_outside_range(f, c, said, row[c->place]);
}

/* The first row is filled and copied to the others; draws differ by row number. */
static acf_status blank_cells(acf_table_file *f, int64_t rows, const char *given, double *x) {
    const acf_schema *s = f->schema;
    double *row = x; /* x always has space for one row */
    for (int64_t j = 0; j < s->D; j++) row[j] = (double)NAN;
    for (const char *p = given ? given : ""; *p;) {
        const size_t n = until(p, ",");
        ACF_TRY(give(f, p, n, row));
        p += n + (p[n] == ',');
    }
    for (int64_t i = 1; i < rows; i++) memcpy(x + i * s->D, row, (size_t)s->D * sizeof *x);
    return ACF_OK;
}

acf_status acf_table_file_blank(const acf_schema *known, int64_t rows, const char *given, acf_table **out) {
    size_t bytes;
    if (rows < 0 || rows > ACF_TABLE_ROWS_MAX)
        return acf_fail(ACF_ESHAPE, "a table of %lld rows; expected 0 to 2^47", (long long)rows);
    if (!acf_bytes(known->D, sizeof(double), &bytes) || !acf_bytes(rows ? rows : 1, bytes, &bytes)) return ACF_EMEMORY;
    acf_status status = ACF_EMEMORY;
    acf_table *t;
    acf_table_file *f = acf_alloc_zero(sizeof *f, "a table");
    double *x = f ? acf_alloc(bytes, "the cells of a table") : NULL;
    acf_column *column = x ? acf_alloc_zero((size_t)known->D * sizeof *column, "the columns of a table") : NULL;
    if (!column) goto done;
    f->id = -1;
    ACF_TRY_DONE(acf_schema_copy(known, &f->schema));
    ACF_TRY_DONE(acf_text_arena(&f->texts));
    if (!(f->given = acf_alloc_zero((size_t)known->n * sizeof *f->given, "what is given"))) goto done;
    ACF_TRY_DONE(blank_cells(f, rows, given, x));
    acf_schema_columns(f->schema, column);
    status = acf_table_take(x, rows, known->D, column, &t);
    x = NULL;
    if (status) goto done;
    t->file = f;
    f = NULL;
    *out = t;
done:
    acf_release(column);
    acf_release(x);
    acf_table_file_free(f);
    return status;
}
