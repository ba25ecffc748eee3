/* A scale: few whole numbers, or ordered texts that the user declared. In the model the number, or the rank of a
 * text; imputed as the nearest level. Own members: levels, value. */
#include "table/kind_levels.h"
#include "table/kind_number.h"
#include "table/spec_json.h"

#define SCALE_CELLS 10 /* minimum average number of cells per level */

static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    if (!acf_kind_holds_numbers(c) || c->whole < c->numeric) return false;
    const int64_t values = acf_kind_scale(c);
    return values >= 3 && c->observed >= SCALE_CELLS * values;
}

/* Levels that are numbers: one text for each value, the most frequent. */
static acf_status levels_of(acf_typing_column *t) {
    acf_status status = ACF_OK;
    acf_text_counts_entry *list;
    int64_t n;
    ACF_TRY(acf_levels_all(t->c, &list, &n));
    acf_levels_sort(t->c, list, n);
    for (int64_t i = 0; i < n && status == ACF_OK;) {
        int64_t best = i, next = i + 1;
        acf_number v = {0}, w;
        acf_notation_read(&t->c->notation, list[i].text, list[i].length, &v);
        for (; next < n && acf_notation_read(&t->c->notation, list[next].text, list[next].length, &w) &&
               w.value == v.value;
             next++)
            if (list[next].count > list[best].count) best = next;
        status = acf_levels_add(&t->out->levels, &list[best]);
        i = next;
    }
    acf_release(list);
    return status;
}

static acf_status learn(acf_typing_column *t) {
    const bool listed = t->user && t->user->levels.n;
    if (t->by_user && !listed && t->c->numeric < acf_kind_finite_cells(t->c))
        return acf_typing_refuse(t, "it contains words, whose order is not known: list its levels in a schema file");
    ACF_TRY(acf_kind_number_form(t));
    ACF_TRY(listed ? acf_levels_from_user(t) : levels_of(t));
    return acf_spec_rank(t->s, t->out);
}

/* Whether the levels stand for themselves, as numbers. */
static bool levels_are_numbers(const acf_field_spec *c) {
    acf_number v;
    const acf_text_counts_entry *e = c->levels.entry;
    return acf_notation_read(&c->notation, e->text, e->length, &v) && v.value == c->value[0];
}

static acf_cell_state encode(const acf_field_spec *c, const char *text, size_t n, double *value) {
    const int64_t level = acf_levels_find(c, text, n);
    if (level < 0) return levels_are_numbers(c) ? acf_kind_encode_number(c, text, n, value) : ACF_CELL_KEPT;
    *value = c->value[level];
    return ACF_CELL_PRESENT;
}

static acf_cell_state encode_number(const acf_field_spec *c, double x, double *value) {
    *value = x;
    return levels_are_numbers(c) ? ACF_CELL_PRESENT : ACF_CELL_WRONG;
}

/* The level whose value is nearest; values ascend. */
static int64_t nearest_level(const acf_field_spec *c, double v) {
    int64_t low = 0, high = c->levels.n - 1;
    while (low < high) { /* finds the first that is not below v */
        int64_t middle = low + (high - low) / 2;
        if (c->value[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && v - c->value[low - 1] <= c->value[low] - v ? low - 1 : low;
}

static double decode(const acf_field_spec *c, double v) { return c->value[nearest_level(c, v)]; }

static void format(const acf_field_spec *c, double v, acf_text *out) { acf_levels_format(c, nearest_level(c, v), out); }

static bool bounds(const acf_field_spec *c, double *low, double *high) {
    *low = c->value[0], *high = c->value[c->levels.n - 1];
    return true;
}

static void expected(const acf_field_spec *c, acf_text *out) {
    if (levels_are_numbers(c))
        acf_kind_expect_number(c, out);
    else
        acf_text_add(out, ACF_EXPECTED_LEVEL);
}

static void to_json(acf_spec_writer *to, const acf_field_spec *c) {
    acf_kind_number_to_json(to, c);
    acf_spec_put_levels(to, c);
}

static acf_status from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    ACF_TRY(acf_spec_get_form(at, o, c));
    ACF_TRY(acf_spec_get_levels(at, o, c));
    if (c->levels.n) ACF_TRY(acf_spec_rank(s, c));
    return acf_spec_get_range(at, o, c, NULL);
}

const acf_kind acf_kind_ordinal = {
    .name = "ordinal",
    .role = ACF_ROLE_NUMBER,
    .all_texts = true,
    .words = {"ordinal"},
    .order = 70,
    .recognise = recognise,
    .learn = learn,
    .encode = encode,
    .encode_number = encode_number,
    .decode = decode,
    .format = format,
    .format_number = decode,
    .bounds = bounds,
    .describe = acf_levels_describe,
    .expected = expected,
    .to_json = to_json,
    .from_json = from_json,
};
