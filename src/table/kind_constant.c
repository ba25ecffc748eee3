/* One value in all observed cells. Not modelled; missing cells stay missing unless the user requests the value. Own
 * members: levels (one), fill. */
#include "table/kind_levels.h"
#include "table/kind_number.h"
#include "table/spec_json.h"
#include "table/typing_warnings.h"

#include <string.h>

/* One value, possibly in several texts: 7 and 7.0. */
static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    if (c->numeric > 0 && c->numeric == acf_kind_finite_cells(c) && c->zeros == 0) return c->min == c->max;
    return acf_levels_are_counted(c) && acf_levels_distinct(c) == 1;
}

static void from_word(acf_field_spec *c, const char *word) {
    (void)word;
    c->fill = true;
}

/* By the rules there is one value; if the user requests the kind, the most frequent one. */
static acf_status learn(acf_typing_column *t) {
    acf_text_counts_entry *list;
    int64_t n;
    if (!t->by_user && t->c->words.n > 0)
        ACF_TRY(acf_typing_warn_na_strings(t->c, t->out->kind, t->where, t->warnings));
    t->out->fill = t->user && t->user->kind == t->out->kind && t->user->fill;
    if (t->user && t->user->levels.n) return acf_levels_add(&t->out->levels, &t->user->levels.entry[0]);
    ACF_TRY(acf_levels_all(t->c, &list, &n));
    acf_status status = n ? acf_levels_add(&t->out->levels, &list[0]) : acf_typing_refuse(t, "its values are too long");
    acf_release(list);
    return status;
}

static void format(const acf_field_spec *c, double v, acf_text *out) {
    (void)v;
    acf_levels_format(c, 0, out);
}

static double format_number(const acf_field_spec *c, double v) {
    (void)v;
    return acf_levels_number(c, 0);
}

static void describe(const acf_field_spec *c, acf_text *out) {
    char shown[ACF_EXCERPT_MAX];
    acf_text_addf(out, "always '%s'", acf_text_excerpt(shown, c->levels.entry[0].text));
}

static void to_json(acf_spec_writer *to, const acf_field_spec *c) {
    acf_spec_put(to, "value", acf_spec_text(&c->levels.entry[0]));
    if (c->fill) acf_spec_put(to, "fill", json_true());
}

static acf_status from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    const char *text;
    (void)s;
    ACF_TRY(acf_spec_get_flag(at, o, "fill", &c->fill));
    if (!json_object_get(o, "value") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "value", &text));
    ACF_TRY(acf_spec_check_length(at, "value", text));
    return acf_text_counts_add(&c->levels, text, strlen(text), 0);
}

const acf_kind acf_kind_constant = {
    .name = "constant",
    .role = ACF_ROLE_ONE_VALUE,
    .all_texts = true,
    .words = {"constant"},
    .from_word = from_word,
    .order = 20,
    .recognise = recognise,
    .learn = learn,
    .format = format,
    .format_number = format_number,
    .describe = describe,
    .to_json = to_json,
    .from_json = from_json,
};
