/* Describes a schema in words: see describe.h. */
#include "table/describe.h"

#include <string.h>

#define NAME_WIDTH 24 /* maximum width of the column of names */

/* Approximate width in a terminal: bytes that begin a character. */
static size_t width_of(const char *s) {
    size_t n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Appends a text and pads it with spaces to its column, at least one. */
static void padded(acf_text *out, const char *s, size_t width) {
    size_t n = width_of(s);
    acf_text_add(out, s);
    acf_text_addf(out, "%*s", n < width ? (int)(width - n) : 1, "");
}

/* The length in bytes of the first n characters of s. */
static size_t bytes_of(const char *s, size_t n) {
    size_t at = 0;
    for (; s[at]; at++)
        if (((unsigned char)s[at] & 0xc0) != 0x80 && n-- == 0) break;
    return at;
}

/* A name. A long one is cut in the middle, as names often differ at the end. */
static char *name_of(const char *s, char out[ACF_EXCERPT_MAX]) {
    char cut[4 * NAME_WIDTH + 8];
    const size_t n = width_of(s), tail = NAME_WIDTH / 3;
    if (n <= NAME_WIDTH) return acf_text_excerpt(out, s);
    acf_text t = acf_text_into(cut, sizeof cut);
    acf_text_add_bytes(&t, s, bytes_of(s, NAME_WIDTH - 3 - tail));
    acf_text_add(&t, "...");
    acf_text_add(&t, s + bytes_of(s, n - tail));
    return acf_text_excerpt(out, cut);
}

/* "3 (1.7 %)". Integer tenths of a percent, so the locale has no effect. */
static void missing_of(const acf_field_spec *c, char *out, size_t cap) {
    int64_t all = c->observed + c->missing;
    int64_t tenths = all ? (1000 * c->missing + all / 2) / all : 0;
    acf_text t = acf_text_into(out, cap);
    if (c->missing == 0)
        acf_text_add(&t, "-");
    else
        acf_text_addf(&t, "%lld (%lld.%lld %%)", (long long)c->missing, (long long)(tenths / 10),
                      (long long)(tenths % 10));
}

/* A list like `ls -l`: one line per column; only long names and levels are cut. */
void acf_describe(const acf_schema *s, const char *file, const char *how, const acf_warnings *warnings, acf_text *out) {
    char name[ACF_EXCERPT_MAX], missing[64];
    size_t wide = 6;
    for (int64_t j = 0; j < s->n; j++) {
        size_t n = width_of(name_of(s->column[j].name, name));
        if (n > wide) wide = n;
    }
    acf_text_addf(out, "%s%s%lld row%s, %lld column%s, %lld modelled\n%s%s\n", file, *file ? ": " : "",
                  (long long)s->rows, s->rows == 1 ? "" : "s", (long long)s->n, s->n == 1 ? "" : "s", (long long)s->D,
                  how, *how ? "\n" : "");
    padded(out, "column", wide + 2);
    acf_text_add(out, "kind        missing         holds\n");
    for (int64_t j = 0; j < s->n; j++) {
        const acf_field_spec *c = &s->column[j];
        padded(out, name_of(c->name, name), wide + 2);
        padded(out, c->kind->name, 12);
        missing_of(c, missing, sizeof missing);
        padded(out, missing, 16);
        c->kind->describe(c, out); /* what a person checks to see whether the kind is right */
        acf_text_add(out, "\n");
    }
    for (int i = 0; warnings && i < warnings->n; i++) {
        acf_text_add(out, i ? "  " : "\n  ");
        acf_text_wrap(out, warnings->text[i], 4, 110, 2);
        acf_text_add(out, "\n");
    }
}

/* The schema itself, and two members that are ignored when it is read: its source and the warnings. */
acf_status acf_describe_json(const acf_schema *s, const char *file, const char *how, const acf_warnings *warnings,
                             acf_text *out) {
    json_t *value;
    ACF_TRY(acf_schema_to_json(s, &value));
    json_t *list = json_array();
    bool ok = !*file || json_object_set_new(value, "file", json_string(file)) == 0;
    ok = (!*how || json_object_set_new(value, "dialect", json_string(how)) == 0) && ok;
    for (int i = 0; warnings && i < warnings->n; i++)
        ok = json_array_append_new(list, json_string(warnings->text[i])) == 0 && ok;
    ok = json_object_set_new(value, "warnings", list) == 0 && ok; /* takes ownership of list, also on failure */
    if (ok) acf_json_write(out, value, 2);
    json_decref(value);
    return ok ? ACF_OK : acf_fail(ACF_EMEMORY, "out of memory: describing a table");
}
