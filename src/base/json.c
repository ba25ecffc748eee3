/* JSON: see json.h.
 *
 * Three parts: parsing (jansson, within limits), typed reading (sentences instead of NULLs), and writing (our own).
 * Texts are small: a config of some hundred bytes, the metadata of a model of some hundred kilobytes. */
#include "base/json.h"

#include <string.h>

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

/* Deepest nesting of brackets outside strings. jansson recurses, so depth is bounded before it sees the text. */
static int depth_of(const char *text, size_t n) {
    int depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) deepest = depth;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

/* JSON_DECODE_ANY: a bare number is valid JSON, and the caller's "expected an object" is a better sentence than a
 * parser's. JSON_REJECT_DUPLICATES: two values for one key are a mistake of the author. */
acf_status acf_json_parse(acf_json_source from, const char *text, size_t n, size_t max, json_t **out) {
    if (n > max) return acf_fail(from.status, "%s: %zu bytes of JSON, at most %zu are allowed", from.name, n, max);
    if (depth_of(text, n) > ACF_JSON_DEPTH_MAX)
        return acf_fail(from.status, "%s: JSON nested deeper than %d levels", from.name, ACF_JSON_DEPTH_MAX);
    json_error_t e;
    json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (v) {
        *out = v;
        return ACF_OK;
    }
    /* Without memory, jansson leaves its error unchanged: no line, no text. */
    if (json_error_code(&e) == json_error_out_of_memory || e.line < 0)
        return acf_fail(ACF_EMEMORY, "out of memory: parsing %s", from.name);
    char seen[ACF_EXCERPT_MAX]; /* jansson quotes the input here */
    return acf_fail(from.status, "%s:%d:%d: not valid JSON: %s", from.name, e.line, e.column,
                    acf_text_excerpt(seen, e.text));
}

/* ---- typed values ----------------------------------------------------------------------------------------------- */

/* Types in words for people who edit a file by hand. */
static const char *type_name(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "text";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number with a fraction";
    case JSON_NULL: return "null";
    default: return "true or false";
    }
}

static acf_status wrong_type(acf_json_source from, const char *key, const json_t *v, const char *expected) {
    char name[ACF_EXCERPT_MAX];
    return acf_fail(from.status, "%s: '%s' is %s, expected %s", from.name, acf_text_excerpt(name, key), type_name(v),
                    expected);
}

/* 3.0 is not accepted as 3: a fraction in place of a count is a mistake. */
acf_status acf_json_to_int(acf_json_source from, const char *key, const json_t *value, int64_t *out) {
    if (!json_is_integer(value)) return wrong_type(from, key, value, "a whole number");
    *out = json_integer_value(value);
    return ACF_OK;
}

acf_status acf_json_to_real(acf_json_source from, const char *key, const json_t *value, double *out) {
    if (!json_is_number(value)) return wrong_type(from, key, value, "a number");
    *out = json_number_value(value);
    return ACF_OK;
}

acf_status acf_json_to_bool(acf_json_source from, const char *key, const json_t *value, bool *out) {
    if (!json_is_boolean(value)) return wrong_type(from, key, value, "true or false");
    *out = json_is_true(value);
    return ACF_OK;
}

acf_status acf_json_to_text(acf_json_source from, const char *key, const json_t *value, const char **out) {
    if (!json_is_string(value)) return wrong_type(from, key, value, "text");
    *out = json_string_value(value);
    return ACF_OK;
}

/* For required members. Optional ones are read with json_object_get, whose NULL is then an answer. */
acf_status acf_json_member(acf_json_source from, const json_t *object, const char *key, json_t **out) {
    if (!json_is_object(object))
        return acf_fail(from.status, "%s: this is %s, expected an object with '%s'", from.name, type_name(object), key);
    json_t *v = json_object_get(object, key);
    if (!v) return acf_fail(from.status, "%s: '%s' is missing", from.name, key);
    *out = v;
    return ACF_OK;
}

acf_status acf_json_int(acf_json_source from, const json_t *object, const char *key, int64_t *out) {
    json_t *v = NULL;
    ACF_TRY(acf_json_member(from, object, key, &v));
    return acf_json_to_int(from, key, v, out);
}

acf_status acf_json_real(acf_json_source from, const json_t *object, const char *key, double *out) {
    json_t *v = NULL;
    ACF_TRY(acf_json_member(from, object, key, &v));
    return acf_json_to_real(from, key, v, out);
}

acf_status acf_json_bool(acf_json_source from, const json_t *object, const char *key, bool *out) {
    json_t *v = NULL;
    ACF_TRY(acf_json_member(from, object, key, &v));
    return acf_json_to_bool(from, key, v, out);
}

acf_status acf_json_text(acf_json_source from, const json_t *object, const char *key, const char **out) {
    json_t *v = NULL;
    ACF_TRY(acf_json_member(from, object, key, &v));
    return acf_json_to_text(from, key, v, out);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* jansson's own writer prints every real with 17 digits (0.1 as 0.10000000000000001) and allocates. Ours does neither,
 * so files stay readable and writing cannot run out of memory. */

/* Control characters are escaped; everything else is UTF-8 and is written unchanged. */
static void write_bytes(acf_text *t, const char *s, size_t n) {
    acf_text_add(t, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            acf_text_addf(t, "\\%c", c);
        else if (c == '\n')
            acf_text_add(t, "\\n");
        else if (c < 0x20 || c == 0x7f)
            acf_text_addf(t, "\\u%04x", c);
        else
            acf_text_add_bytes(t, s + i, 1);
    }
    acf_text_add(t, "\"");
}

void acf_json_write_text(acf_text *t, const char *s) { write_bytes(t, s, strlen(s)); }

/* A json_t never holds inf or nan, so every real has a text. */
static void write_real(acf_text *t, double v) {
    char number[ACF_NUMBER_MAX];
    acf_text_add(t, acf_text_real(number, v));
    if (!strpbrk(number, ".e")) acf_text_add(t, ".0"); /* a real stays a real when it is read back */
}

/* The break before a member, or before the closing bracket. */
static void new_line(acf_text *t, int indent, int level) {
    if (indent > 0) acf_text_addf(t, "\n%*s", indent * level, "");
}

static void write_value(acf_text *t, const json_t *v, int indent, int level);

/* Depth of recursion: what was parsed has at most ACF_JSON_DEPTH_MAX levels, what we build has fewer. */
static void write_list(acf_text *t, const json_t *v, int indent, int level) {
    acf_text_add(t, "[");
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (i > 0) acf_text_add(t, indent > 0 ? "," : ", ");
        new_line(t, indent, level + 1);
        write_value(t, json_array_get(v, i), indent, level + 1);
    }
    if (json_array_size(v) > 0) new_line(t, indent, level);
    acf_text_add(t, "]");
}

static void write_object(acf_text *t, const json_t *v, int indent, int level) {
    /* The iteration changes nothing; jansson's signatures just lack the const. */
    json_t *object = (json_t *)(uintptr_t)v;
    const char *key;
    json_t *member;
    bool first = true;
    acf_text_add(t, "{");
    json_object_foreach(object, key, member) {
        if (!first) acf_text_add(t, indent > 0 ? "," : ", ");
        first = false;
        new_line(t, indent, level + 1);
        acf_json_write_text(t, key);
        acf_text_add(t, ": ");
        write_value(t, member, indent, level + 1);
    }
    if (!first) new_line(t, indent, level);
    acf_text_add(t, "}");
}

static void write_value(acf_text *t, const json_t *v, int indent, int level) {
    switch (json_typeof(v)) {
    case JSON_OBJECT: write_object(t, v, indent, level); break;
    case JSON_ARRAY: write_list(t, v, indent, level); break;
    case JSON_STRING: write_bytes(t, json_string_value(v), json_string_length(v)); break;
    case JSON_INTEGER: acf_text_addf(t, "%lld", (long long)json_integer_value(v)); break;
    case JSON_REAL: write_real(t, json_real_value(v)); break;
    case JSON_NULL: acf_text_add(t, "null"); break;
    default: acf_text_add(t, json_is_true(v) ? "true" : "false"); break;
    }
}

void acf_json_write(acf_text *t, const json_t *value, int indent) { write_value(t, value, indent, 0); }

acf_status acf_json_deliver(json_t *value, char *out, size_t cap, size_t *needed) {
    acf_text t = acf_text_into(out, cap);
    acf_json_write(&t, value, 2);
    json_decref(value);
    return acf_text_done(&t, needed);
}

void acf_json_place_column(acf_json_place *p, acf_json_source from, int64_t column) {
    acf_text t = acf_text_into(p->name, sizeof p->name);
    acf_text_addf(&t, "%s: column %lld", from.name, (long long)column);
    p->from = (acf_json_source){p->name, from.status};
}

json_t *acf_json_numbers(const double *x, int64_t n) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int64_t k = 0; ok && k < n; k++) ok = json_array_append_new(list, json_real(x[k])) == 0;
    if (!ok) json_decref(list);
    return ok ? list : NULL;
}
