/* Keys of a column in JSON: see spec_json.h. */
#include "table/spec_json.h"

#include "table/profile.h"

#include <math.h>
#include <string.h>

#define DIGITS_MAX 40

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* A text of n bytes as JSON; cells are UTF-8, which jansson requires. */
json_t *acf_spec_text(const acf_text_counts_entry *e) { return json_stringn(e->text, e->length); }

void acf_spec_put(acf_spec_writer *to, const char *key, json_t *value) {
    to->ok = json_object_set_new(to->o, key, value) == 0 && to->ok;
}

void acf_spec_put_texts(acf_spec_writer *to, const char *key, const acf_text_counts *list) {
    json_t *array = json_array();
    for (int64_t i = 0; i < list->n; i++)
        to->ok = json_array_append_new(array, acf_spec_text(&list->entry[i])) == 0 && to->ok;
    acf_spec_put(to, key, array);
}

static void put_counts(acf_spec_writer *to, const acf_text_counts *list) {
    json_t *array = json_array();
    for (int64_t i = 0; i < list->n; i++)
        to->ok = json_array_append_new(array, json_integer(list->entry[i].count)) == 0 && to->ok;
    acf_spec_put(to, "counts", array);
}

/* Whole numbers are written without a point, for readability. */
json_t *acf_spec_number(double v) {
    return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

void acf_spec_put_range(acf_spec_writer *to, const acf_field_spec *c) {
    acf_spec_put(to, "min", acf_spec_number(c->min));
    acf_spec_put(to, "max", acf_spec_number(c->max));
    if (c->declared) acf_spec_put(to, "declared", json_true());
}

static void put_notation(acf_spec_writer *to, const acf_notation *f) {
    if (f->comma) acf_spec_put(to, "comma", json_true());
    if (*f->group) acf_spec_put(to, "thousands", json_string(f->group));
    if (*f->prefix) acf_spec_put(to, "prefix", json_string(f->prefix));
    if (*f->suffix) acf_spec_put(to, "suffix", json_string(f->suffix));
}

void acf_spec_put_form(acf_spec_writer *to, const acf_field_spec *c) {
    if (c->decimals >= 0) acf_spec_put(to, "decimals", json_integer(c->decimals));
    if (c->fixed) acf_spec_put(to, "fixed", json_true());
    if (c->digits) acf_spec_put(to, "digits", json_integer(c->digits));
    put_notation(to, &c->notation);
}

void acf_spec_put_levels(acf_spec_writer *to, const acf_field_spec *c) {
    acf_spec_put_texts(to, "levels", &c->levels);
    put_counts(to, &c->levels);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

acf_status acf_spec_get_int(const acf_spec_reader *at, const json_t *o, const char *key, bool needed, int64_t most,
                            int64_t *out) {
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

acf_status acf_spec_get_flag(const acf_spec_reader *at, const json_t *o, const char *key, bool *out) {
    return json_object_get(o, key) ? acf_json_bool(at->from, o, key, out) : ACF_OK;
}

acf_status acf_spec_check_length(const acf_spec_reader *at, const char *key, const char *text) {
    if (strlen(text) <= ACF_LEVEL_BYTES_MAX) return ACF_OK;
    return acf_fail(at->from.status, "%s: '%s' has a text of %zu bytes; at most %d are allowed", at->from.name, key,
                    strlen(text), ACF_LEVEL_BYTES_MAX);
}

/* The message names the first text that occurs twice. */
acf_status acf_spec_get_texts(const acf_spec_reader *at, const json_t *o, const char *key, int64_t most,
                              acf_text_counts *out) {
    const json_t *list = json_object_get(o, key);
    if (!list) return ACF_OK;
    if (!json_is_array(list) || json_array_size(list) > (size_t)most)
        return acf_fail(at->from.status, "%s: '%s' must be a list of at most %lld texts", at->from.name, key,
                        (long long)most);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text;
        char seen[ACF_EXCERPT_MAX];
        ACF_TRY(acf_json_to_text(at->from, key, json_array_get(list, i), &text));
        ACF_TRY(acf_spec_check_length(at, key, text));
        ACF_TRY(acf_text_counts_add(out, text, strlen(text), 0));
        out->entry[out->n - 1].count = 0;
        if ((size_t)out->n != i + 1)
            return acf_fail(at->from.status, "%s: '%s' has '%s' twice", at->from.name, key,
                            acf_text_excerpt(seen, text));
    }
    return ACF_OK;
}

static acf_status get_number(const acf_spec_reader *at, const json_t *o, const char *key, const acf_field_spec *c,
                             double *out) {
    (void)c;
    return acf_json_real(at->from, o, key, out);
}

acf_status acf_spec_get_range(const acf_spec_reader *at, const json_t *o, acf_field_spec *c, acf_spec_end end) {
    if (!json_object_get(o, "min") && !json_object_get(o, "max") && !at->whole) return ACF_OK;
    if (!end) end = get_number;
    ACF_TRY(end(at, o, "min", c, &c->min));
    ACF_TRY(end(at, o, "max", c, &c->max));
    if (!isfinite(c->min) || !isfinite(c->max) || c->min > c->max)
        return acf_fail(at->from.status, "%s: 'min' is %g and 'max' is %g, expected finite numbers in this order",
                        at->from.name, c->min, c->max);
    c->has_range = true;
    return ACF_OK;
}

acf_status acf_spec_get_form(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    int64_t decimals = -1, digits = 0;
    ACF_TRY(acf_spec_get_int(at, o, "decimals", false, ACF_DECIMALS_MAX, &decimals));
    ACF_TRY(acf_spec_get_int(at, o, "digits", false, DIGITS_MAX, &digits));
    ACF_TRY(acf_spec_get_flag(at, o, "fixed", &c->fixed));
    c->decimals = (int)decimals, c->digits = (int)digits;
    return ACF_OK;
}

/* In a schema file a user may have edited the levels but not the counts. Counts are used only if there is one for each
 * level. */
static acf_status get_counts(const acf_spec_reader *at, const json_t *o, acf_text_counts *levels) {
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

acf_status acf_spec_get_levels(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    ACF_TRY(acf_spec_get_texts(at, o, "levels", ACF_LEVELS_KEPT, &c->levels));
    if (c->levels.n == 0) {
        if (!at->whole && !json_object_get(o, "levels")) return ACF_OK;
        return acf_fail(at->from.status, "%s: 'levels' must be a list of at least one text", at->from.name);
    }
    return get_counts(at, o, &c->levels);
}
