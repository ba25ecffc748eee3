/* The schema as JSON: see schema.h and docs/columns.md.
 *
 *     {"rows": 699, "named": true, "missing_markers": ["", "NA", "?"],
 *      "columns": [{"name": "age", "kind": "integer", "observed": 690, "missing": 9, "min": 17, "max": 90},
 *                  {"name": "sex", "kind": "category", "observed": 699, "missing": 0, "levels": ["F", "M"], "counts": [301, 398]},
 *                  {"name": "visit", "kind": "date", "format": "DD/MM/YYYY", "min": "01/02/2019", "max": "31/12/2020", ...}]}
 *
 * One form for three uses: in a model file, where it must be whole; as the description of a table; and as a schema file, in which a user
 * writes what matters and leaves out the rest. */
#include "table/profile.h"
#include "table/schema.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define DIGITS_MAX 40

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* A text of n bytes as JSON; a cell is UTF-8, so jansson takes it. */
static json_t *text_of(const acf_text_counts_entry *e) { return json_stringn(e->text, e->length); }

/* Setters of jansson take the value also when they fail, and fail on a NULL value: one flag collects it all. */
typedef struct making {
    json_t *o;
    bool ok;
} making;

static void put(making *to, const char *key, json_t *value) {
    to->ok = json_object_set_new(to->o, key, value) == 0 && to->ok;
}

static void put_texts(making *to, const char *key, const acf_text_counts *list) {
    json_t *array = json_array();
    for (int64_t i = 0; i < list->n; i++)
        to->ok = json_array_append_new(array, text_of(&list->entry[i])) == 0 && to->ok;
    put(to, key, array);
}

static void put_counts(making *to, const acf_text_counts *list) {
    json_t *array = json_array();
    for (int64_t i = 0; i < list->n; i++)
        to->ok = json_array_append_new(array, json_integer(list->entry[i].count)) == 0 && to->ok;
    put(to, "counts", array);
}

/* Whole numbers without a point, for people. */
static json_t *number_of(double v) {
    return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

/* Dates as dates: the file is for people too. They are whole steps of their format, so nothing is lost. */
static void put_range(making *to, const acf_field_spec *c) {
    bool when = c->kind == ACF_KIND_DATE || c->kind == ACF_KIND_TIME;
    for (int k = 0; k < 2; k++) {
        char text[64];
        acf_text t = acf_text_into(text, sizeof text);
        if (when) acf_calendar_write(c->when, k ? c->max : c->min, &t);
        put(to, k ? "max" : "min", when ? json_string(text) : number_of(k ? c->max : c->min));
    }
    if (c->declared) put(to, "declared", json_true());
}

static void put_notation(making *to, const acf_notation *f) {
    if (f->comma) put(to, "comma", json_true());
    if (*f->group) put(to, "thousands", json_string(f->group));
    if (*f->prefix) put(to, "prefix", json_string(f->prefix));
    if (*f->suffix) put(to, "suffix", json_string(f->suffix));
}

static void put_form(making *to, const acf_field_spec *c) {
    if (c->decimals >= 0) put(to, "decimals", json_integer(c->decimals));
    if (c->fixed) put(to, "fixed", json_true());
    if (c->digits) put(to, "digits", json_integer(c->digits));
    put_notation(to, &c->notation);
}

/* What a kind does not need is left out, so that a column fits a line or two. */
static json_t *column_to_json(const acf_field_spec *c) {
    making to = {json_object(), true};
    char pattern[ACF_CALENDAR_PATTERN_MAX];
    put(&to, "name", json_string(c->name));
    put(&to, "kind", json_string(acf_kind_names[c->kind]));
    put(&to, "observed", json_integer(c->observed));
    put(&to, "missing", json_integer(c->missing));
    if (c->kind == ACF_KIND_DATE || c->kind == ACF_KIND_TIME)
        put(&to, "format", json_string(acf_calendar_pattern(c->when, pattern)));
    if (c->step > 0) put(&to, "step", number_of(c->step));
    if (acf_kind_is_numeric(c->kind)) put_range(&to, c);
    if (c->kind == ACF_KIND_REAL || c->kind == ACF_KIND_INTEGER || c->kind == ACF_KIND_ORDINAL) put_form(&to, c);
    if (c->kind == ACF_KIND_ORDINAL || c->kind == ACF_KIND_CATEGORY) {
        put_texts(&to, "levels", &c->levels);
        put_counts(&to, &c->levels);
    }
    if (c->pooled) put(&to, "pooled", json_integer(c->pooled));
    if (c->any_case) put(&to, "any_case", json_true());
    if (c->kind == ACF_KIND_CONSTANT) put(&to, "value", text_of(&c->levels.entry[0]));
    if (c->fill) put(&to, "fill", json_true());
    if (c->quoted) put(&to, "quoted", json_true());
    if (c->other.n) put_texts(&to, "other", &c->other);
    if (c->na_strings) put_texts(&to, "markers", &c->na_strings->list);
    if (!to.ok) json_decref(to.o);
    return to.ok ? to.o : NULL;
}

acf_status acf_schema_to_json(const acf_schema *s, json_t **out) {
    making to = {json_object(), true};
    json_t *list = json_array();
    put(&to, "rows", json_integer(s->rows));
    put(&to, "named", json_boolean(s->named));
    put_texts(&to, "missing_markers", &s->na_strings.list);
    for (int64_t j = 0; j < s->n && to.ok; j++) to.ok = json_array_append_new(list, column_to_json(&s->column[j])) == 0;
    put(&to, "columns", list);
    if (!to.ok) {
        json_decref(to.o);
        return acf_fail(ACF_EMEMORY, "out of memory: writing a schema");
    }
    *out = to.o;
    return ACF_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* What sentences begin with, "model.safetensors, schema: column 3 ('age')", and how strict to be. */
typedef struct place {
    char name[256 + ACF_FIELD_TEXT_MAX];
    acf_json_source from;
    bool whole;
} place;

/* A whole number in a range; left alone where the key may be absent and is. */
static acf_status get_int(const place *at, const json_t *o, const char *key, bool needed, int64_t most, int64_t *out) {
    const json_t *v = json_object_get(o, key);
    if (!v && !needed) return ACF_OK;
    int64_t n;
    ACF_TRY(acf_json_int(at->from, o, key, &n));
    if (n < 0 || n > most)
        return acf_fail(at->from.status, "%s: '%s' is %lld, expected 0 to %lld", at->from.name, key, (long long)n,
                        (long long)most);
    *out = n;
    return ACF_OK;
}

static acf_status get_flag(const place *at, const json_t *o, const char *key, bool *out) {
    return json_object_get(o, key) ? acf_json_bool(at->from, o, key, out) : ACF_OK;
}

static acf_status check_length(const place *at, const char *key, const char *text) {
    if (strlen(text) <= ACF_LEVEL_BYTES_MAX) return ACF_OK;
    return acf_fail(at->from.status, "%s: '%s' has a text of %zu bytes; at most %d are allowed", at->from.name, key,
                    strlen(text), ACF_LEVEL_BYTES_MAX);
}

/* A list of different texts into an empty tally, counts 0. The first one that is there twice is named. */
static acf_status get_texts(const place *at, const json_t *o, const char *key, int64_t most, acf_text_counts *out) {
    const json_t *list = json_object_get(o, key);
    if (!list) return ACF_OK;
    if (!json_is_array(list) || json_array_size(list) > (size_t)most)
        return acf_fail(at->from.status, "%s: '%s' must be a list of at most %lld texts", at->from.name, key,
                        (long long)most);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text;
        char seen[ACF_EXCERPT_MAX];
        ACF_TRY(acf_json_to_text(at->from, key, json_array_get(list, i), &text));
        ACF_TRY(check_length(at, key, text));
        ACF_TRY(acf_text_counts_add(out, text, strlen(text), 0));
        out->entry[out->n - 1].count = 0;
        if ((size_t)out->n != i + 1)
            return acf_fail(at->from.status, "%s: '%s' has '%s' twice", at->from.name, key,
                            acf_text_excerpt(seen, text));
    }
    return ACF_OK;
}

/* Markers of a column, or with c NULL of the whole schema. */
static acf_status get_markers(const place *at, const json_t *o, const char *key, acf_schema *s, acf_field_spec *c) {
    acf_text_counts list = acf_text_counts_make(ACF_LEVELS_KEPT, s->texts);
    acf_status status = get_texts(at, o, key, ACF_LEVELS_KEPT, &list);
    for (int64_t i = 0; i < list.n && status == ACF_OK; i++) {
        const acf_text_counts_entry *e = &list.entry[i];
        status = c ? acf_spec_add_na_string(s, c, e->text, e->length)
                   : acf_na_strings_add(&s->na_strings, e->text, e->length);
    }
    acf_text_counts_clear(&list);
    return status;
}

/* In a schema file the levels may have been edited, and the counts not: then they are only as good as they are long. */
static acf_status get_counts(const place *at, const json_t *o, acf_text_counts *levels) {
    json_t *list = json_object_get(o, "counts");
    if (!list && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_member(at->from, o, "counts", &list));
    if (!json_is_array(list) || (json_array_size(list) != (size_t)levels->n && at->whole))
        return acf_fail(at->from.status, "%s: 'counts' must be a list of %lld numbers, one for each level",
                        at->from.name, (long long)levels->n);
    for (size_t i = 0; i < json_array_size(list) && i < (size_t)levels->n; i++) {
        int64_t *count = &levels->entry[i].count;
        ACF_TRY(acf_json_to_int(at->from, "counts", json_array_get(list, i), count));
        if (*count < 0 || *count > ACF_TABLE_ROWS_MAX)
            return acf_fail(at->from.status, "%s: 'counts' has %lld, expected a number of cells", at->from.name,
                            (long long)*count);
    }
    return ACF_OK;
}

/* An end of the range: a number, or a date in the column's format. */
static acf_status get_end(const place *at, const json_t *o, const char *key, const acf_field_spec *c, double *out) {
    const char *text;
    char seen[ACF_EXCERPT_MAX], pattern[ACF_CALENDAR_PATTERN_MAX];
    if (c->kind != ACF_KIND_DATE && c->kind != ACF_KIND_TIME) return acf_json_real(at->from, o, key, out);
    ACF_TRY(acf_json_text(at->from, o, key, &text));
    if (acf_calendar_read(c->when, text, strlen(text), out)) return ACF_OK;
    return acf_fail(at->from.status, "%s: '%s' is '%s', expected a date like %s", at->from.name, key,
                    acf_text_excerpt(seen, text), acf_calendar_pattern(c->when, pattern));
}

static acf_status get_range(const place *at, const json_t *o, acf_field_spec *c) {
    bool min = json_object_get(o, "min"), max = json_object_get(o, "max");
    if (!min && !max && !at->whole) return ACF_OK;
    bool dates = c->kind == ACF_KIND_DATE || c->kind == ACF_KIND_TIME;
    if (dates && !c->has_format && !at->whole) return ACF_OK; /* nothing to read them with; the data will tell */
    ACF_TRY(get_end(at, o, "min", c, &c->min));
    ACF_TRY(get_end(at, o, "max", c, &c->max));
    if (!isfinite(c->min) || !isfinite(c->max) || c->min > c->max)
        return acf_fail(at->from.status, "%s: 'min' is %g and 'max' is %g, expected finite numbers in this order",
                        at->from.name, c->min, c->max);
    c->has_range = true;
    c->declared = json_is_true(json_object_get(o, "declared")) ||
                  !json_object_get(o, "observed"); /* what describes a table has what was observed */
    c->declared = c->declared && (c->kind == ACF_KIND_REAL || c->kind == ACF_KIND_INTEGER);
    return ACF_OK;
}

static acf_status get_format(const place *at, const json_t *o, acf_field_spec *c) {
    const char *text;
    char seen[ACF_EXCERPT_MAX];
    if (!json_object_get(o, "format") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "format", &text));
    if (!acf_calendar_from_pattern(text, &c->when) || acf_calendar_is_date(c->when) != (c->kind == ACF_KIND_DATE))
        return acf_fail(at->from.status, "%s: 'format' is '%s', expected a pattern of a %s such as %s", at->from.name,
                        acf_text_excerpt(seen, text), acf_kind_names[c->kind],
                        c->kind == ACF_KIND_DATE ? "YYYY-MM-DD or D/M/YYYY" : "YYYY-MM-DD HH:MM:SS or HH:MM");
    c->has_format = true;
    return ACF_OK;
}

/* Found in the data: a schema file that says another is not followed. */
static acf_status get_step(const place *at, const json_t *o, acf_field_spec *c) {
    double step;
    if (c->kind != ACF_KIND_TIME || !json_object_get(o, "step")) return ACF_OK;
    ACF_TRY(acf_json_real(at->from, o, "step", &step));
    if (!(step > 0 && step <= 86400))
        return acf_fail(at->from.status, "%s: 'step' is %g, expected seconds above 0, at most 86400", at->from.name,
                        step);
    c->step = step;
    return ACF_OK;
}

static acf_status get_kind(const place *at, const json_t *o, acf_kind *out) {
    const char *text;
    char seen[ACF_EXCERPT_MAX];
    if (!json_object_get(o, "kind") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "kind", &text));
    for (int k = at->whole ? ACF_KIND_REAL : ACF_KIND_AUTO; k < ACF_KIND_COUNT; k++)
        if (strcmp(acf_kind_names[k], text) == 0) {
            *out = (acf_kind)k;
            return ACF_OK;
        }
    return acf_fail(
        at->from.status,
        "%s: 'kind' is '%s', expected real, integer, ordinal, category, date, time, constant, identifier or empty",
        at->from.name, acf_text_excerpt(seen, text));
}

/* At least one level keeps a class of its own: the shared class of nothing but rare levels would say nothing. */
static acf_status get_levels(const place *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    bool category = c->kind == ACF_KIND_CATEGORY;
    ACF_TRY(get_texts(at, o, "levels", ACF_LEVELS_KEPT, &c->levels));
    if (c->levels.n == 0) {
        if (!at->whole && !json_object_get(o, "levels")) return ACF_OK;
        return acf_fail(at->from.status, "%s: 'levels' must be a list of at least one text", at->from.name);
    }
    ACF_TRY(get_counts(at, o, &c->levels));
    if (category) ACF_TRY(get_int(at, o, "pooled", false, c->levels.n - 1, &c->pooled));
    if (category) ACF_TRY(get_flag(at, o, "any_case", &c->any_case));
    return category ? ACF_OK : acf_spec_rank(s, c);
}

static acf_status get_constant(const place *at, const json_t *o, acf_field_spec *c) {
    const char *text;
    ACF_TRY(get_flag(at, o, "fill", &c->fill));
    if (!json_object_get(o, "value") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "value", &text));
    ACF_TRY(check_length(at, "value", text));
    return acf_text_counts_add(&c->levels, text, strlen(text), 0);
}

static acf_status get_form(const place *at, const json_t *o, acf_field_spec *c) {
    int64_t decimals = -1, digits = 0;
    ACF_TRY(get_int(at, o, "decimals", false, ACF_DECIMALS_MAX, &decimals));
    ACF_TRY(get_int(at, o, "digits", false, DIGITS_MAX, &digits));
    ACF_TRY(get_flag(at, o, "fixed", &c->fixed));
    c->decimals = (int)decimals, c->digits = (int)digits;
    return ACF_OK;
}

/* One text of a notation, which must fit; left alone where the key is absent. */
static acf_status get_mark(const place *at, const json_t *o, const char *key, bool (*is)(const char *),
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

static acf_status get_notation(const place *at, const json_t *o, acf_field_spec *c) {
    static const char *const keys[] = {"comma", "thousands", "prefix", "suffix"};
    acf_notation *f = &c->notation;
    for (int k = 0; k < 4; k++) c->has_notation |= json_object_get(o, keys[k]) != NULL;
    ACF_TRY(get_flag(at, o, "comma", &f->comma));
    ACF_TRY(get_mark(at, o, "thousands", acf_notation_is_group, "a point, a comma, an apostrophe or a blank", f->group,
                     sizeof f->group));
    ACF_TRY(get_mark(at, o, "prefix", acf_notation_is_affix, "a currency or the like, without signs and figures",
                     f->prefix, sizeof f->prefix));
    ACF_TRY(get_mark(at, o, "suffix", acf_notation_is_affix, "a unit or the like, without signs and figures", f->suffix,
                     sizeof f->suffix));
    if (*f->group != (f->comma ? ',' : '.')) return ACF_OK;
    return acf_fail(at->from.status, "%s: 'thousands' is '%s', which is the decimal mark", at->from.name, f->group);
}

/* A misspelled key would be a wish that is silently not granted. */
static acf_status known_keys(const place *at, const json_t *o, const char *const *keys, int n) {
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

/* The order matters: the kind says what is needed, a format is needed to read a range. */
static acf_status read_column(const place *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    static const char *const keys[] = {"name",     "kind",   "observed", "missing", "min",       "max",      "declared",
                                       "decimals", "fixed",  "digits",   "comma",   "thousands", "prefix",   "suffix",
                                       "format",   "step",   "levels",   "counts",  "pooled",    "any_case", "value",
                                       "fill",     "quoted", "other",    "markers"};
    ACF_TRY(known_keys(at, o, keys, sizeof keys / sizeof keys[0]));
    ACF_TRY(get_kind(at, o, &c->kind));
    if (c->kind == ACF_KIND_AUTO && json_object_get(o, "levels")) c->kind = ACF_KIND_CATEGORY;
    ACF_TRY(get_int(at, o, "observed", at->whole, ACF_TABLE_ROWS_MAX, &c->observed));
    ACF_TRY(get_int(at, o, "missing", at->whole, ACF_TABLE_ROWS_MAX, &c->missing));
    ACF_TRY(get_flag(at, o, "quoted", &c->quoted));
    ACF_TRY(get_notation(at, o, c));
    ACF_TRY(get_texts(at, o, "other", ACF_LEVELS_KEPT, &c->other));
    ACF_TRY(get_markers(at, o, "markers", s, c));
    if (c->kind == ACF_KIND_REAL || c->kind == ACF_KIND_INTEGER || c->kind == ACF_KIND_ORDINAL)
        ACF_TRY(get_form(at, o, c));
    if (c->kind == ACF_KIND_DATE || c->kind == ACF_KIND_TIME) ACF_TRY(get_format(at, o, c));
    ACF_TRY(get_step(at, o, c));
    if (c->kind == ACF_KIND_ORDINAL || c->kind == ACF_KIND_CATEGORY) ACF_TRY(get_levels(at, o, s, c));
    if (c->kind == ACF_KIND_CONSTANT) ACF_TRY(get_constant(at, o, c));
    return acf_kind_is_numeric(c->kind) ? get_range(at, o, c) : ACF_OK;
}

static acf_status read_name(const place *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    const char *name;
    ACF_TRY(acf_json_text(at->from, o, "name", &name));
    if (!*name) return acf_fail(at->from.status, "%s: 'name' is empty", at->from.name);
    c->name = acf_text_keep(s->texts, name, strlen(name));
    return c->name ? ACF_OK : ACF_EMEMORY;
}

static acf_status read_columns(acf_json_source from, bool whole, const json_t *list, acf_schema *s) {
    for (int64_t j = 0; j < s->n; j++) {
        char where[ACF_FIELD_TEXT_MAX];
        place at = {.from = {at.name, from.status}, .whole = whole};
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

/* Of two columns with one name, which is meant? */
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
    const place at = {.from = from, .whole = whole};
    ACF_TRY(known_keys(&at, object, keys, sizeof keys / sizeof keys[0]));
    ACF_TRY(get_int(&at, object, "rows", whole, ACF_TABLE_ROWS_MAX, &s->rows));
    if (whole || json_object_get(object, "named")) ACF_TRY(acf_json_bool(from, object, "named", &s->named));
    ACF_TRY(get_markers(&at, object, "missing_markers", s, NULL));
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

/* By way of JSON: one more test of it, and no second list of all members to forget one in. */
acf_status acf_schema_copy(const acf_schema *s, acf_schema **out) {
    json_t *value;
    ACF_TRY(acf_schema_to_json(s, &value));
    acf_status status = acf_schema_from_json((acf_json_source){"a schema", ACF_EINTERNAL}, value, true, out);
    json_decref(value);
    return status;
}
