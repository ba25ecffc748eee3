/* Read options: see read_options.h. */
#include "table/read_options.h"

#include "base/file.h"

#include <string.h>

#define SCHEMA_BYTES_MAX ((size_t)64 << 20)

/* ---- how the file is written ------------------------------------------------------------------------------------ */

/* A character, given as itself or by name. False if it is neither. */
static bool character(const char *text, char *out) {
    static const struct {
        const char *name;
        char is;
    } named[] = {{"auto", 0},    {"tab", '\t'},      {"\\t", '\t'}, {"space", ' '},
                 {"comma", ','}, {"semicolon", ';'}, {"pipe", '|'}, {"none", '\n'}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strcmp(text, named[i].name) == 0) {
            *out = named[i].is;
            return true;
        }
    if (strlen(text) != 1) return false;
    *out = *text;
    return true;
}

/* A line end as separator would leave one column; "none" is valid only for quotes. */
static acf_status read_want(const acf_options *o, acf_csv_want *want) {
    char seen[ACF_EXCERPT_MAX];
    const char *separator = acf_options_text(o, "separator"), *quote = acf_options_text(o, "quote");
    if (!character(separator, &want->separator) || want->separator == '\n')
        return acf_fail(ACF_EUSAGE, "option 'separator' can't be '%s', expected auto, tab, space or one character",
                        acf_text_excerpt(seen, separator));
    if (!character(quote, &want->quote))
        return acf_fail(ACF_EUSAGE, "option 'quote' can't be '%s', expected auto, none or one character",
                        acf_text_excerpt(seen, quote));
    want->header = (acf_choice3)acf_options_choice(o, "header");
    return ACF_OK;
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* The word may say more than the kind: the order of day and month in a date. */
static acf_status kind_named(const char *text, size_t n, acf_field_spec *c) {
    char word[ACF_EXCERPT_MAX], name[ACF_EXCERPT_MAX], words[256];
    const acf_kind *kind = acf_kind_from_word(text, n);
    acf_text t = acf_text_into(word, sizeof word);
    acf_text_add_bytes(&t, text, n);
    if (kind) {
        c->kind = kind;
        if (kind->from_word) kind->from_word(c, word);
        return ACF_OK;
    }
    t = acf_text_into(words, sizeof words);
    acf_kind_add_words(&t);
    return acf_fail(ACF_EUSAGE, "option 'types': '%s' can't be '%s', expected %s", acf_text_excerpt(name, c->name),
                    word, words);
}

static void trim(const char **text, size_t *n) {
    while (*n > 0 && **text == ' ') ++*text, --*n;
    while (*n > 0 && (*text)[*n - 1] == ' ') --*n;
}

/* One item, "name=kind". The last = separates, because a name may contain one. */
static acf_status read_type(const char *item, size_t n, acf_schema *s, acf_field_spec *c) {
    char seen[ACF_EXCERPT_MAX];
    size_t at = n;
    while (at > 0 && item[at - 1] != '=') at--;
    const char *name = item, *kind = item + at;
    size_t name_n = at ? at - 1 : 0, kind_n = n - at;
    trim(&name, &name_n);
    trim(&kind, &kind_n);
    if (name_n == 0 || kind_n == 0) {
        acf_text t = acf_text_into(seen, sizeof seen);
        acf_text_add_bytes(&t, item, n);
        return acf_fail(ACF_EUSAGE, "option 'types' has '%s', expected items like age=integer with commas between them",
                        seen);
    }
    if (!(c->name = acf_text_keep(s->texts, name, name_n))) return ACF_EMEMORY;
    return kind_named(kind, kind_n, c);
}

/* A schema of what the user says: one column for each item. */
static acf_status read_types(const char *text, acf_schema **out) {
    int64_t n = 1;
    if (!*text) return ACF_OK;
    for (const char *p = text; *p; p++) n += *p == ',';
    acf_schema *s;
    ACF_TRY(acf_schema_create(n, &s));
    acf_status status = ACF_OK;
    for (int64_t j = 0; j < n && status == ACF_OK; j++) {
        size_t length = strcspn(text, ",");
        status = read_type(text, length, s, &s->column[j]);
        text += length + 1;
    }
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}

/* ---- the schema file -------------------------------------------------------------------------------------------- */

/* An invalid schema file is ACF_EUSAGE, as an invalid config is; an unreadable one is ACF_EIO. */
static acf_status read_file(const char *path, acf_schema **out) {
    char *text;
    size_t n;
    json_t *value;
    const acf_json_source from = {path, ACF_EUSAGE};
    if (!*path) return ACF_OK;
    ACF_TRY(acf_file_read(path, SCHEMA_BYTES_MAX, &text, &n));
    acf_status status = acf_json_parse(from, text, n, SCHEMA_BYTES_MAX, &value);
    acf_release(text);
    ACF_TRY(status);
    status = acf_schema_from_json(from, value, false, out);
    json_decref(value);
    return status;
}

/* ---- together --------------------------------------------------------------------------------------------------- */

/* The option `missing` adds to the NA strings of the schema file, or to the usual ones if the file has none. With = it
 * replaces them. */
static acf_status read_na_strings(const char *option, acf_read_options *w) {
    const acf_text_counts *list = w->file ? &w->file->na_strings.list : NULL;
    bool only = *option == '=';
    ACF_TRY(acf_na_strings_add_list(&w->added, option + only));
    if (list && list->n > 0 && !only) {
        for (int64_t i = 0; i < list->n; i++)
            ACF_TRY(acf_na_strings_add(&w->na_strings, list->entry[i].text, list->entry[i].length));
    } else {
        ACF_TRY(only ? acf_na_strings_add(&w->na_strings, "", 0) : acf_na_strings_add_usual(&w->na_strings));
    }
    return acf_na_strings_add_list(&w->na_strings, option + only);
}

static acf_status read_all(const acf_options *o, acf_read_options *w) {
    ACF_TRY(acf_text_arena(&w->texts));
    w->na_strings = acf_na_strings_make(w->texts);
    w->added = acf_na_strings_make(w->texts);
    if (!o || !acf_options_find(o, "separator")) return acf_na_strings_add_usual(&w->na_strings);
    ACF_TRY(read_want(o, &w->want));
    const char *id = acf_options_text(o, "id");
    w->any_order = acf_options_bool(o, "any-order");
    w->fill_constants = acf_options_bool(o, "fill-constants");
    w->point = "\0.,"[acf_options_choice(o, "decimal")];
    if (*id && !(w->id = acf_text_keep(w->texts, id, strlen(id)))) return ACF_EMEMORY;
    ACF_TRY(read_types(acf_options_text(o, "types"), &w->types));
    ACF_TRY(read_file(acf_options_text(o, "schema"), &w->file));
    return read_na_strings(acf_options_text(o, "missing"), w);
}

acf_status acf_read_options_read(const acf_options *o, acf_read_options **out) {
    acf_read_options *w = acf_alloc_zero(sizeof *w, "read options");
    if (!w) return ACF_EMEMORY;
    acf_status status = read_all(o, w);
    if (status)
        acf_read_options_free(w);
    else
        *out = w;
    return status;
}

void acf_read_options_free(acf_read_options *w) {
    if (!w) return;
    acf_na_strings_clear(&w->na_strings);
    acf_na_strings_clear(&w->added);
    acf_schema_free(w->types);
    acf_schema_free(w->file);
    acf_arena_free(w->texts);
    acf_release(w);
}

/* ---- matching columns by name ------------------------------------------------------------------------------------ */

/* A read option for a column that does not exist is a typing mistake, or belongs to another file. Silence would be the
 * worst answer. */
static acf_status unknown(const char *source, const char *file, const char *wanted, const char *const *name,
                          int64_t n) {
    char seen[ACF_EXCERPT_MAX], other[ACF_EXCERPT_MAX];
    int near = acf_text_nearest(wanted, name, n > INT32_MAX ? INT32_MAX : (int)n);
    acf_text_excerpt(seen, wanted);
    if (near < 0) return acf_fail(ACF_EUSAGE, "%s names column '%s', which %s does not have", source, seen, file);
    return acf_fail(ACF_EUSAGE, "%s names column '%s', which %s does not have; did you mean '%s'?", source, seen, file,
                    acf_text_excerpt(other, name[near]));
}

/* If two lists name the same column, the later list decides the kind. The earlier one adds levels and format if the
 * kinds agree. */
static acf_status match(const acf_schema *wish, const char *source, const char *file, const char *const *name,
                        int64_t n, const acf_field_spec **out) {
    int64_t at = 0;
    for (int64_t k = 0; wish && k < wish->n; k++) {
        const acf_field_spec *c = &wish->column[k];
        int64_t j = at, tried = 0; /* lists mostly follow the order of the table: try the next name first */
        while (tried < n && strcmp(name[j], c->name) != 0) j = (j + 1) % n, tried++;
        if (tried == n) return unknown(source, file, c->name, name, n);
        if (!out[j] || out[j]->kind != c->kind || c->fill) out[j] = c;
        at = (j + 1) % n;
    }
    return ACF_OK;
}

acf_status acf_read_options_match(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                                  const acf_field_spec **out) {
    for (int64_t j = 0; j < n; j++) out[j] = NULL;
    ACF_TRY(match(w->file, "the schema file", file, name, n, out));
    return match(w->types, "option 'types'", file, name, n, out);
}

acf_status acf_read_options_id(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                               int64_t *out) {
    *out = -1;
    for (int64_t j = 0; w->id && j < n && *out < 0; j++)
        if (strcmp(name[j], w->id) == 0) *out = j;
    return w->id && *out < 0 ? unknown("option 'id'", file, w->id, name, n) : ACF_OK;
}
