/* The schema as JSON: see schema.h and docs/columns.md.
 *
 *     {"rows": 699, "named": true, "missing_markers": ["", "NA", "?"],
 *      "columns": [{"name": "age", "kind": "integer", "observed": 690, "missing": 9, "min": 17, "max": 90},
 *                  {"name": "sex", "kind": "category", "observed": 699, "missing": 0, "levels": ["F", "M"],
 *                   "counts": [301, 398]},
 *                  {"name": "visit", "kind": "date", "format": "DD/MM/YYYY", "min": "01/02/2019", "max": "31/12/2020",
 *                   ...}]}
 *
 * One format for three uses: in a model file, where it must be complete; as the description of a table; and as a schema
 * file, in which a user writes what matters and leaves out the rest. */
#include "table/spec_json.h"

#include <string.h>

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Keys that a kind does not need are left out, so that a column fits a line or two. */
static json_t *column_to_json(const acf_field_spec *c) {
    acf_spec_writer to = {json_object(), true};
    acf_spec_put(&to, "name", json_string(c->name));
    acf_spec_put(&to, "kind", json_string(c->kind->name));
    acf_spec_put(&to, "observed", json_integer(c->observed));
    acf_spec_put(&to, "missing", json_integer(c->missing));
    if (c->kind->to_json) c->kind->to_json(&to, c);
    if (c->quoted) acf_spec_put(&to, "quoted", json_true());
    if (c->other.n) acf_spec_put_texts(&to, "other", &c->other);
    if (c->na_strings) acf_spec_put_texts(&to, "markers", &c->na_strings->list);
    if (!to.ok) json_decref(to.o);
    return to.ok ? to.o : NULL;
}

acf_status acf_schema_to_json(const acf_schema *s, json_t **out) {
    acf_spec_writer to = {json_object(), true};
    json_t *list = json_array();
    acf_spec_put(&to, "rows", json_integer(s->rows));
    acf_spec_put(&to, "named", json_boolean(s->named));
    acf_spec_put_texts(&to, "missing_markers", &s->na_strings.list);
    for (int64_t j = 0; j < s->n && to.ok; j++) to.ok = json_array_append_new(list, column_to_json(&s->column[j])) == 0;
    acf_spec_put(&to, "columns", list);
    if (!to.ok) {
        json_decref(to.o);
        return acf_fail(ACF_EMEMORY, "out of memory: writing a schema");
    }
    *out = to.o;
    return ACF_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* NA strings of a column, or with c NULL of the whole schema. */
static acf_status get_na_strings(const acf_spec_reader *at, const json_t *o, const char *key, acf_schema *s,
                                 acf_field_spec *c) {
    acf_text_counts list = acf_text_counts_make(ACF_LEVELS_KEPT, s->texts);
    acf_status status = acf_spec_get_texts(at, o, key, ACF_LEVELS_KEPT, &list);
    for (int64_t i = 0; i < list.n && status == ACF_OK; i++) {
        const acf_text_counts_entry *e = &list.entry[i];
        status = c ? acf_spec_add_na_string(s, c, e->text, e->length)
                   : acf_na_strings_add(&s->na_strings, e->text, e->length);
    }
    acf_text_counts_clear(&list);
    return status;
}

/* The name of a kind, or a key that implies one, such as a list of levels. */
static acf_status get_kind(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    const char *text;
    char seen[ACF_EXCERPT_MAX], names[256];
    for (int k = 0; acf_kinds[k]; k++)
        if (acf_kinds[k]->implied_by && json_object_get(o, acf_kinds[k]->implied_by)) c->kind = acf_kinds[k];
    if (!json_object_get(o, "kind") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "kind", &text));
    if (!at->whole && strcmp(text, acf_kind_auto.name) == 0) return ACF_OK;
    if ((c->kind = acf_kind_named(text))) return ACF_OK;
    acf_text t = acf_text_into(names, sizeof names);
    acf_kind_add_names(&t);
    return acf_fail(at->from.status, "%s: 'kind' is '%s', expected %s", at->from.name, acf_text_excerpt(seen, text),
                    names);
}

/* One text of a notation, which must be valid; unchanged if the key is absent. */
static acf_status get_mark(const acf_spec_reader *at, const json_t *o, const char *key, bool (*is)(const char *),
                           const char *expected, char *out, size_t cap) {
    const char *text;
    char seen[ACF_EXCERPT_MAX];
    if (!json_object_get(o, key)) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, key, &text));
    if (!is(text) || strlen(text) >= cap)
        return acf_fail(at->from.status, "%s: '%s' is '%s', expected %s", at->from.name, key,
                        acf_text_excerpt(seen, text), expected);
    memcpy(out, text, strlen(text) + 1);
    return ACF_OK;
}

static acf_status get_notation(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    static const char *const keys[] = {"comma", "thousands", "prefix", "suffix"};
    acf_notation *f = &c->notation;
    for (int k = 0; k < 4; k++) c->has_notation |= json_object_get(o, keys[k]) != NULL;
    ACF_TRY(acf_spec_get_flag(at, o, "comma", &f->comma));
    ACF_TRY(get_mark(at, o, "thousands", acf_notation_is_group, "a point, a comma, an apostrophe or a blank", f->group,
                     sizeof f->group));
    ACF_TRY(get_mark(at, o, "prefix", acf_notation_is_affix, "a currency or the like, without signs and figures",
                     f->prefix, sizeof f->prefix));
    ACF_TRY(get_mark(at, o, "suffix", acf_notation_is_affix, "a unit or the like, without signs and figures", f->suffix,
                     sizeof f->suffix));
    if (*f->group != (f->comma ? ',' : '.')) return ACF_OK;
    return acf_fail(at->from.status, "%s: 'thousands' is '%s', which is the decimal mark", at->from.name, f->group);
}

/* A misspelled key would be silently ignored, so unknown keys are refused. */
static acf_status known_keys(const acf_spec_reader *at, const json_t *o, const char *const *keys, int n) {
    json_t *object = (json_t *)(uintptr_t)o; /* jansson's iteration is not const, but changes nothing */
    const char *key;
    json_t *ignore;
    char seen[ACF_EXCERPT_MAX];
    json_object_foreach(object, key, ignore) {
        int i = 0;
        while (i < n && strcmp(keys[i], key) != 0) i++;
        if (i < n) continue;
        int near = acf_text_nearest(key, keys, n);
        return acf_fail(at->from.status, "%s: unknown key '%s'%s%s%s", at->from.name, acf_text_excerpt(seen, key),
                        near < 0 ? "" : "; did you mean '", near < 0 ? "" : keys[near], near < 0 ? "" : "'?");
    }
    return ACF_OK;
}

/* The order matters: the kind decides which keys are needed. */
static acf_status read_column(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    static const char *const keys[] = {"name",     "kind",   "observed", "missing", "min",       "max",      "declared",
                                       "decimals", "fixed",  "digits",   "comma",   "thousands", "prefix",   "suffix",
                                       "format",   "step",   "levels",   "counts",  "pooled",    "any_case", "value",
                                       "fill",     "quoted", "other",    "markers"};
    ACF_TRY(known_keys(at, o, keys, sizeof keys / sizeof keys[0]));
    ACF_TRY(get_kind(at, o, c));
    ACF_TRY(acf_spec_get_int(at, o, "observed", at->whole, ACF_TABLE_ROWS_MAX, &c->observed));
    ACF_TRY(acf_spec_get_int(at, o, "missing", at->whole, ACF_TABLE_ROWS_MAX, &c->missing));
    ACF_TRY(acf_spec_get_flag(at, o, "quoted", &c->quoted));
    ACF_TRY(get_notation(at, o, c));
    ACF_TRY(acf_spec_get_texts(at, o, "other", ACF_LEVELS_KEPT, &c->other));
    ACF_TRY(get_na_strings(at, o, "markers", s, c));
    return c->kind->from_json ? c->kind->from_json(at, o, s, c) : ACF_OK;
}

static acf_status read_name(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    const char *name;
    ACF_TRY(acf_json_text(at->from, o, "name", &name));
    if (!*name) return acf_fail(at->from.status, "%s: 'name' is empty", at->from.name);
    c->name = acf_text_keep(s->texts, name, strlen(name));
    return c->name ? ACF_OK : ACF_EMEMORY;
}

static acf_status read_columns(acf_json_source from, bool whole, const json_t *list, acf_schema *s) {
    for (int64_t j = 0; j < s->n; j++) {
        char where[ACF_FIELD_TEXT_MAX];
        acf_spec_reader at = {.from = {at.name, from.status}, .whole = whole};
        const json_t *o = json_array_get(list, (size_t)j);
        acf_text t = acf_text_into(at.name, sizeof at.name);
        acf_text_addf(&t, "%s: %s", from.name, acf_field_text(where, NULL, j));
        ACF_TRY(read_name(&at, o, s, &s->column[j]));
        t = acf_text_into(at.name, sizeof at.name);
        acf_text_addf(&t, "%s: %s", from.name, acf_field_text(where, s->column[j].name, j));
        ACF_TRY(read_column(&at, o, s, &s->column[j]));
    }
    return ACF_OK;
}

/* Two columns of the same name would be ambiguous. */
static acf_status check_names(acf_json_source from, const acf_schema *s) {
    char seen[ACF_EXCERPT_MAX];
    acf_text_counts names = acf_text_counts_make(ACF_SCHEMA_COLUMNS_MAX, s->texts);
    acf_status status = ACF_OK;
    for (int64_t j = 0; j < s->n && status == ACF_OK; j++) {
        status = acf_text_counts_add(&names, s->column[j].name, strlen(s->column[j].name), j);
        if (status == ACF_OK && names.n != j + 1)
            status = acf_fail(from.status, "%s: two columns are named '%s'", from.name,
                              acf_text_excerpt(seen, s->column[j].name));
    }
    acf_text_counts_clear(&names);
    return status;
}

static acf_status read_schema(acf_json_source from, const json_t *object, bool whole, const json_t *list,
                              acf_schema *s) {
    static const char *const keys[] = {"file", "dialect", "rows", "named", "missing_markers", "columns", "warnings"};
    const acf_spec_reader at = {.from = from, .whole = whole};
    ACF_TRY(known_keys(&at, object, keys, sizeof keys / sizeof keys[0]));
    ACF_TRY(acf_spec_get_int(&at, object, "rows", whole, ACF_TABLE_ROWS_MAX, &s->rows));
    if (whole || json_object_get(object, "named")) ACF_TRY(acf_json_bool(from, object, "named", &s->named));
    ACF_TRY(get_na_strings(&at, object, "missing_markers", s, NULL));
    ACF_TRY(read_columns(from, whole, list, s));
    ACF_TRY(check_names(from, s));
    acf_schema_place(s);
    if (whole && s->D == 0) return acf_fail(from.status, "%s: no column of it is modelled", from.name);
    return ACF_OK;
}

acf_status acf_schema_from_json(acf_json_source from, const json_t *object, bool whole, acf_schema **out) {
    json_t *list;
    acf_schema *s;
    ACF_TRY(acf_json_member(from, object, "columns", &list));
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > ACF_SCHEMA_COLUMNS_MAX)
        return acf_fail(from.status, "%s: 'columns' must be a list of 1 to %d columns", from.name,
                        ACF_SCHEMA_COLUMNS_MAX);
    ACF_TRY(acf_schema_create((int64_t)json_array_size(list), &s));
    acf_status status = read_schema(from, object, whole, list, s);
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}

/* Copies through JSON: it tests the JSON once more and needs no second list of all fields. */
acf_status acf_schema_copy(const acf_schema *s, acf_schema **out) {
    json_t *value;
    ACF_TRY(acf_schema_to_json(s, &value));
    acf_status status = acf_schema_from_json((acf_json_source){"a schema", ACF_EINTERNAL}, value, true, out);
    json_decref(value);
    return status;
}
