/* Options: see options.h.
 *
 * Every value, from any origin (default, environment, file, flag, C call), becomes text and passes read_value: one
 * parser and one set of checks for all. This work happens at start-up on some tens of rows, so clarity matters more
 * than speed. */
#include "base/options.h"

#include "base/arena.h"
#include "base/option_table.h"
#include "base/renamed.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(name_, type_, min_, max_, standard_, choices_, env_, section_, flags_, help_)                              \
    {name_, ACF_OPTION_##type_, min_, max_, standard_, help_, choices_, env_, flags_, ACF_SECTION_##section_},
const acf_option acf_option_table[] = {ACF_GENERAL_OPTIONS(ROW) ACF_FILE_OPTIONS(ROW) ACF_IMAGE_OPTIONS(
    ROW) ACF_MODEL_OPTIONS(ROW) ACF_IMAGE_MODEL_OPTIONS(ROW) ACF_TRAIN_OPTIONS(ROW) ACF_EVAL_OPTIONS(ROW)};
const int acf_option_count = sizeof acf_option_table / sizeof acf_option_table[0];

const char *acf_option_section_name(acf_option_section section) {
    static const char *const name[] = {
        [ACF_SECTION_NONE] = "",
        [ACF_SECTION_INPUT] = "input",
        [ACF_SECTION_MODEL] = "model",
        [ACF_SECTION_DONORS] = "donors",
        [ACF_SECTION_TRAINING] = "training",
        [ACF_SECTION_QUERIES] = "queries",
        [ACF_SECTION_EVALUATION] = "evaluation",
        [ACF_SECTION_IMAGES] = "images",
        [ACF_SECTION_IMAGE_MODEL] = "image model",
        [ACF_SECTION_IMAGE_QUERIES] = "image queries",
        [ACF_SECTION_MACHINE] = "machine",
    };
    return name[section];
}

/* One value; the type decides which member is used. */
typedef struct value {
    int64_t whole; /* INT; BOOL as 0 or 1; CHOICE as index */
    double real;   /* REAL */
    char *text;    /* TEXT; owned */
    acf_origin origin;
} value;

struct acf_options {
    const acf_option *table;
    int n;
    value value[]; /* n of them, in the order of the table */
};

/* ---- search ---------------------------------------------------------------------------------------------------- */

/* Row of a name, -1 when there is none. */
static int find(const acf_options *o, const char *name) {
    for (int i = 0; i < o->n; i++)
        if (acf_text_same_name(o->table[i].name, name)) return i;
    return -1;
}

const acf_option *acf_options_find(const acf_options *o, const char *name) {
    int i = find(o, name);
    return i < 0 ? NULL : &o->table[i];
}

const acf_option *acf_options_row(const acf_options *o, int i) { return &o->table[i]; }

int acf_options_count(const acf_options *o) { return o ? o->n : 0; }

#define NAMES_MAX 256 /* limit on the names of a table that are searched for a similar one */

/* Fails with the nearest known name. `where` begins the sentence ("" or "file: "). */
static acf_status unknown(const acf_options *o, acf_status status, const char *where, const char *name) {
    const char *names[NAMES_MAX];
    int n = o->n < NAMES_MAX ? o->n : NAMES_MAX;
    for (int i = 0; i < n; i++) names[i] = o->table[i].name;
    int near = acf_text_nearest(name, names, n);
    char seen[ACF_EXCERPT_MAX];
    const char *now = acf_renamed_option(name);
    acf_text_excerpt(seen, name);
    if (now) return acf_fail(status, "%sthe option '%s' is called '%s' since acflow 0.2", where, seen, now);
    if (near < 0) return acf_fail(status, "%sunknown option '%s'", where, seen);
    return acf_fail(status, "%sunknown option '%s'; did you mean '%s'?", where, seen, names[near]);
}

/* Name k of "a|b|c", with its length; NULL and 0 after the last. Choices are one string in the table, so that a row
 * stays one line; they are few and short enough for a linear search. */
static const char *choice_name(const acf_option *d, int64_t k, size_t *len) {
    const char *p = d->choices;
    for (; k > 0 && p; k--)
        if ((p = strchr(p, '|'))) p++;
    *len = p ? strcspn(p, "|") : 0;
    return p;
}

/* ---- the allowed values, in words ------------------------------------------------------------------------------ */

/* A bound at the end of the double range is no bound and is not mentioned. */
static void write_bounds(acf_text *t, const acf_option *d) {
    char lo[ACF_NUMBER_MAX], hi[ACF_NUMBER_MAX];
    bool low = d->min > -DBL_MAX, high = d->max < DBL_MAX;
    if (low && high)
        acf_text_addf(t, " from %s to %s", acf_text_real(lo, d->min), acf_text_real(hi, d->max));
    else if (low)
        acf_text_addf(t, " of at least %s", acf_text_real(lo, d->min));
    else if (high)
        acf_text_addf(t, " of at most %s", acf_text_real(hi, d->max));
}

/* "a, b or c". */
static void write_choices(acf_text *t, const acf_option *d) {
    size_t len;
    const char *name = choice_name(d, 0, &len);
    for (int64_t k = 0; name; name = choice_name(d, ++k, &len)) {
        size_t ignore;
        bool last = !choice_name(d, k + 1, &ignore);
        acf_text_add(t, k == 0 ? "" : last ? " or " : ", ");
        acf_text_add_bytes(t, name, len);
    }
}

/* "a whole number from 0 to 1024", "auto, bar or none". */
static void write_expected(acf_text *t, const acf_option *d) {
    switch (d->type) {
    case ACF_OPTION_INT:
        acf_text_add(t, d->flags & ACF_OPTION_AUTO ? "auto or a whole number" : "a whole number");
        write_bounds(t, d);
        break;
    case ACF_OPTION_REAL:
        acf_text_add(t, "a number");
        write_bounds(t, d);
        break;
    case ACF_OPTION_BOOL: acf_text_add(t, "true or false"); break;
    case ACF_OPTION_TEXT:
        if (d->min > 0.0)
            acf_text_addf(t, "UTF-8 text of %.0f to %.0f bytes", d->min, d->max);
        else
            acf_text_addf(t, "UTF-8 text of at most %.0f bytes", d->max);
        break;
    case ACF_OPTION_CHOICE: write_choices(t, d); break;
    }
}

/* The message for a value that is not allowed: name, found, expected. */
static acf_status refuse(const acf_option *d, acf_status status, const char *where, const char *seen) {
    char expected[256], shown[ACF_EXCERPT_MAX];
    acf_text t = acf_text_into(expected, sizeof expected);
    const char *now = acf_renamed_choice(d->name, seen);
    if (now) return acf_fail(status, "%soption '%s': '%s' is called '%s' since acflow 0.2", where, d->name, seen, now);
    write_expected(&t, d);
    return acf_fail(status, "%soption '%s' can't be '%s', expected %s", where, d->name, acf_text_excerpt(shown, seen),
                    expected);
}

/* ---- one value -------------------------------------------------------------------------------------------------- */

/* Also right for whole numbers: bounds are within 2^53, and a value beyond that converts to one out of range. */
static bool in_range(const acf_option *d, double v) { return v >= d->min && v <= d->max; }

static const char auto_word[] = "auto";

/* Sets an option to `auto`, which is not one of its numbers. */
static bool is_auto(const acf_option *d, const value *v) {
    return (d->flags & ACF_OPTION_AUTO) && v->whole == ACF_INT_AUTO;
}

static bool parse_int(const acf_option *d, const char *text, value *v) {
    if ((d->flags & ACF_OPTION_AUTO) && strcmp(text, auto_word) == 0) {
        v->whole = ACF_INT_AUTO;
        return true;
    }
    return acf_text_to_int(text, &v->whole) && in_range(d, (double)v->whole);
}

/* Parses text by the type of d. False if it is not a value of it; *v then holds nothing. A TEXT value is checked here
 * and copied by the caller, so this function cannot run out of memory. */
static bool parse(const acf_option *d, const char *text, value *v) {
    bool flag;
    size_t len;
    switch (d->type) {
    case ACF_OPTION_INT: return parse_int(d, text, v);
    case ACF_OPTION_REAL: return acf_text_to_real(text, &v->real) && in_range(d, v->real);
    case ACF_OPTION_BOOL:
        if (!acf_text_to_bool(text, &flag)) return false;
        v->whole = flag;
        return true;
    case ACF_OPTION_TEXT: return acf_text_is_utf8(text, strlen(text)) && in_range(d, (double)strlen(text));
    case ACF_OPTION_CHOICE:
        for (const char *name; (name = choice_name(d, v->whole, &len)); v->whole++)
            if (strlen(text) == len && memcmp(name, text, len) == 0) return true;
        return false;
    }
    return false;
}

/* A value from text, or a sentence. Gives *out (its text). */
static acf_status read_value(const acf_option *d, acf_status status, const char *where, const char *text, value *out) {
    value v = {0};
    if (!parse(d, text, &v)) return refuse(d, status, where, text);
    if (d->type == ACF_OPTION_TEXT && !(v.text = acf_alloc_text(text, "an option"))) return ACF_EMEMORY;
    *out = v;
    return ACF_OK;
}

/* The inverse of parse: its output is read back as the same value. */
static void write_one(const acf_option *d, const value *v, acf_text *t) {
    char number[ACF_NUMBER_MAX];
    size_t len;
    switch (d->type) {
    case ACF_OPTION_INT:
        if (is_auto(d, v))
            acf_text_add(t, auto_word);
        else
            acf_text_addf(t, "%lld", (long long)v->whole);
        break;
    case ACF_OPTION_REAL: acf_text_add(t, acf_text_real(number, v->real)); break;
    case ACF_OPTION_BOOL: acf_text_add(t, v->whole ? "true" : "false"); break;
    case ACF_OPTION_TEXT: acf_text_add(t, v->text); break;
    case ACF_OPTION_CHOICE: {
        const char *name = choice_name(d, v->whole, &len);
        acf_text_add_bytes(t, name, len);
        break;
    }
    }
}

/* Stores v unless a nearer origin has set the option. Takes over the text of v. */
static void put(value *place, value v, acf_origin origin) {
    v.origin = origin;
    value old = *place;
    if (origin < old.origin) {
        acf_release(v.text);
        return;
    }
    *place = v;
    acf_release(old.text);
}

/* ---- the set ---------------------------------------------------------------------------------------------------- */

/* Sets row i to its default, or to the value in the environment. */
static acf_status start_value(acf_options *o, int i) {
    const acf_option *d = &o->table[i];
    value v;
    acf_status status = read_value(d, ACF_EINTERNAL, "default of ", d->standard, &v);
    if (status != ACF_OK) return status;
    put(&o->value[i], v, ACF_FROM_DEFAULT);
    const char *set = d->env ? getenv(d->env) : NULL;
    if (!set || !*set) return ACF_OK;
    char where[ACF_EXCERPT_MAX];
    snprintf(where, sizeof where, "environment variable %s: ", d->env);
    ACF_TRY(read_value(d, ACF_EUSAGE, where, set, &v));
    put(&o->value[i], v, ACF_FROM_ENV);
    return ACF_OK;
}

acf_status acf_options_make(const acf_option *table, int n, acf_options **out) {
    acf_options *o = acf_alloc_zero(sizeof *o + (size_t)n * sizeof o->value[0], "options");
    if (!o) return ACF_EMEMORY;
    o->table = table;
    o->n = n;
    for (int i = 0; i < n; i++) {
        acf_status status = start_value(o, i);
        if (status == ACF_OK) continue;
        acf_options_free(o);
        return status;
    }
    *out = o;
    return ACF_OK;
}

void acf_options_free(acf_options *o) {
    if (!o) return;
    for (int i = 0; i < o->n; i++) acf_release(o->value[i].text);
    acf_release(o);
}

/* The environment is not read again: the values are those of o. */
acf_status acf_options_copy(const acf_options *o, acf_options **out) {
    acf_options *copy = acf_alloc_zero(sizeof *copy + (size_t)o->n * sizeof copy->value[0], "options");
    if (!copy) return ACF_EMEMORY;
    copy->table = o->table;
    copy->n = o->n;
    for (int i = 0; i < o->n; i++) {
        copy->value[i] = o->value[i];
        copy->value[i].text = o->value[i].text ? acf_alloc_text(o->value[i].text, "an option") : NULL;
        if (!o->value[i].text || copy->value[i].text) continue;
        acf_options_free(copy);
        return ACF_EMEMORY;
    }
    *out = copy;
    return ACF_OK;
}

acf_status acf_options_set_from(acf_options *o, const char *name, const char *text, acf_origin origin) {
    int i = find(o, name);
    if (i < 0) return unknown(o, ACF_EUSAGE, "", name);
    value v;
    ACF_TRY(read_value(&o->table[i], ACF_EUSAGE, "", text, &v));
    put(&o->value[i], v, origin);
    return ACF_OK;
}

acf_status acf_options_set_text(acf_options *o, const char *name, const char *text) {
    return acf_options_set_from(o, name, text, ACF_FROM_USER);
}

acf_status acf_options_set_int(acf_options *o, const char *name, int64_t number, acf_origin origin) {
    char text[ACF_NUMBER_MAX];
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t, "%lld", (long long)number);
    return acf_options_set_from(o, name, text, origin);
}

acf_status acf_options_write(const acf_options *o, const char *name, acf_text *out) {
    int i = find(o, name);
    if (i < 0) return unknown(o, ACF_EUSAGE, "", name);
    write_one(&o->table[i], &o->value[i], out);
    return ACF_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* The type must be right in JSON too: "8" is not a whole number there. The range is checked on the exact value, which
 * is then read like a user's text. */
static acf_status value_from_json(const acf_option *d, acf_json_source from, const json_t *j, value *out) {
    int64_t whole;
    double real;
    bool flag;
    const char *text;
    char number[ACF_NUMBER_MAX], where[2 * ACF_EXCERPT_MAX], source[ACF_EXCERPT_MAX];
    switch (d->type) {
    case ACF_OPTION_INT:
        if ((d->flags & ACF_OPTION_AUTO) && json_is_string(j)) {
            text = json_string_value(j);
            break;
        }
        ACF_TRY(acf_json_to_int(from, d->name, j, &whole));
        snprintf(number, sizeof number, "%lld", (long long)whole);
        text = number;
        break;
    case ACF_OPTION_REAL:
        ACF_TRY(acf_json_to_real(from, d->name, j, &real));
        text = acf_text_real(number, real);
        break;
    case ACF_OPTION_BOOL:
        ACF_TRY(acf_json_to_bool(from, d->name, j, &flag));
        text = flag ? "true" : "false";
        break;
    default: ACF_TRY(acf_json_to_text(from, d->name, j, &text)); break;
    }
    snprintf(where, sizeof where, "%s: ", acf_text_excerpt(source, from.name));
    return read_value(d, from.status, where, text, out);
}

/* Fills staged[i] for each member; marks these rows in `given`. */
static acf_status stage(const acf_options *o, acf_json_source from, json_t *object, value *staged, bool *given) {
    const char *key;
    json_t *member;
    char where[2 * ACF_EXCERPT_MAX], source[ACF_EXCERPT_MAX];
    snprintf(where, sizeof where, "%s: ", acf_text_excerpt(source, from.name));
    json_object_foreach(object, key, member) {
        int i = find(o, key);
        if (i < 0) return unknown(o, from.status, where, key);
        /* jansson refuses equal keys; this finds "a-b" beside "a_b" */
        if (given[i]) return acf_fail(from.status, "%soption '%s' is given twice", where, o->table[i].name);
        ACF_TRY(value_from_json(&o->table[i], from, member, &staged[i]));
        given[i] = true;
    }
    return ACF_OK;
}

/* All or nothing in two steps: values are staged, and stored only if all of them are valid. Storing cannot fail. */
acf_status acf_options_from_json(acf_options *o, acf_json_source from, const json_t *object, acf_origin origin) {
    if (!json_is_object(object))
        return acf_fail(from.status, "%s: options are an object, like {\"name\": value}", from.name);
    size_t n = (size_t)o->n;
    value *staged = acf_alloc_zero(n * (sizeof *staged + sizeof(bool)), "options");
    if (!staged) return ACF_EMEMORY;
    bool *given = (bool *)(staged + n);
    acf_status status = stage(o, from, (json_t *)(uintptr_t)object, staged, given);
    for (size_t i = 0; i < n; i++) {
        if (given[i] && status == ACF_OK)
            put(&o->value[i], staged[i], origin);
        else
            acf_release(staged[i].text);
    }
    acf_release(staged);
    return status;
}

/* Typed, so that a reader in another language gets numbers as numbers. NULL without memory. */
static json_t *value_to_json(const acf_option *d, const value *v) {
    size_t len;
    const char *name;
    switch (d->type) {
    case ACF_OPTION_INT: return is_auto(d, v) ? json_string(auto_word) : json_integer(v->whole);
    case ACF_OPTION_REAL: return json_real(v->real);
    case ACF_OPTION_BOOL: return json_boolean(v->whole);
    case ACF_OPTION_TEXT: return json_string(v->text);
    case ACF_OPTION_CHOICE: name = choice_name(d, v->whole, &len); return json_stringn(name, len);
    }
    return NULL;
}

/* The environment counts as a default: it describes the machine, not the run. */
static bool wanted(const acf_option *d, const value *v, acf_options_which which) {
    if (which == ACF_OPTIONS_CHANGED) return v->origin >= ACF_FROM_FILE;
    return which == ACF_OPTIONS_ALL ||
           (d->flags & (which == ACF_OPTIONS_IMAGE ? ACF_OPTION_IMAGE : ACF_OPTION_RECORDED));
}

acf_status acf_options_to_json(const acf_options *o, acf_options_which which, json_t **out) {
    json_t *object = json_object();
    for (int i = 0; object && i < o->n; i++) {
        const acf_option *d = &o->table[i];
        if (!wanted(d, &o->value[i], which)) continue;
        /* json_object_set_new releases the member, also when it fails. */
        if (json_object_set_new(object, d->name, value_to_json(d, &o->value[i])) == 0) continue;
        json_decref(object);
        object = NULL;
    }
    if (!object) return acf_fail(ACF_EMEMORY, "out of memory: options as JSON");
    *out = object;
    return ACF_OK;
}

/* ---- typed reading ---------------------------------------------------------------------------------------------- */

/* Library code uses literal names. A wrong one is our defect and shows in the first test that reaches it. */
static const value *expect(const acf_options *o, const char *name, acf_option_type type) {
    int i = find(o, name);
    ACF_ASSERT(i >= 0 && o->table[i].type == type);
    return &o->value[i];
}

int64_t acf_options_int(const acf_options *o, const char *name) { return expect(o, name, ACF_OPTION_INT)->whole; }

double acf_options_real(const acf_options *o, const char *name) { return expect(o, name, ACF_OPTION_REAL)->real; }

bool acf_options_bool(const acf_options *o, const char *name) { return expect(o, name, ACF_OPTION_BOOL)->whole != 0; }

int acf_options_choice(const acf_options *o, const char *name) {
    return (int)expect(o, name, ACF_OPTION_CHOICE)->whole;
}

const char *acf_options_text(const acf_options *o, const char *name) { return expect(o, name, ACF_OPTION_TEXT)->text; }

acf_origin acf_options_origin(const acf_options *o, const char *name) {
    int i = find(o, name);
    ACF_ASSERT(i >= 0);
    return o->value[i].origin;
}
