/* Categories: texts without an order. In the model each level is a class; in a column of too many levels the rare
 * ones share the last class. Imputed as the level's text. Own members: levels, pooled, any_case. */
#include "table/kind_levels.h"
#include "table/kind_number.h"
#include "table/spec_json.h"
#include "table/typing_warnings.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define TWO_VALUES_CELLS 20 /* with at least this many cells, two whole numbers are two categories */

/* Texts that are not row names (those are tested first), or exactly two whole numbers. */
static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    if (!acf_kind_holds_numbers(c)) return true;
    return c->whole == c->numeric && acf_kind_scale(c) == 2 && !c->infinite &&
           ((c->min == 0 && c->max == 1) || c->observed >= TWO_VALUES_CELLS);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* Pairs of answers that people write in either case. Other words may differ by case alone, such as a gene's A and a. */
static const char *const pairs[][2] = {{"yes", "no"},  {"y", "n"},         {"true", "false"}, {"t", "f"},
                                       {"on", "off"},  {"male", "female"}, {"ja", "nein"},    {"positive", "negative"},
                                       {"oui", "non"}, {"si", "no"}};

static bool is_spelling(const acf_text_counts_entry *e, const char *word) {
    return e->length == strlen(word) && strncasecmp(e->text, word, e->length) == 0;
}

/* Whether every text of the column is one of a pair, both occur, and one has two spellings. */
static bool is_pair(const acf_profile_column *c) {
    if (c->numbers.n || c->words.beyond || c->words.n < 3) return false;
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        int64_t first = 0, second = 0;
        for (int64_t i = 0; i < c->words.n; i++) {
            first += is_spelling(&c->words.entry[i], pairs[k][0]);
            second += is_spelling(&c->words.entry[i], pairs[k][1]);
        }
        if (first && second && first + second == c->words.n) return true;
    }
    return false;
}

/* Joins all spellings into the most frequent one, which comes first in the list. Returns the number of levels left. */
static int64_t join_spellings(acf_text_counts_entry *list, int64_t n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = 0;
        while (k < kept && !is_spelling(&list[i], list[k].text)) k++;
        if (k < kept)
            list[k].count += list[i].count;
        else
            list[kept++] = list[i];
    }
    return kept;
}

/* Each of at most ACF_CLASSES_MAX levels is a class. With more levels the rare ones share the last class. */
static acf_status levels_of(acf_typing_column *t) {
    acf_text_counts_entry *list;
    int64_t n, own;
    ACF_TRY(acf_levels_all(t->c, &list, &n));
    if ((t->out->any_case = is_pair(t->c))) n = join_spellings(list, n);
    own = n;
    if (n > ACF_CLASSES_MAX)
        for (own = 0; own < ACF_CLASSES_MAX - 1 && (own == 0 || list[own].count >= ACF_LEVEL_RARE);) own++;
    acf_levels_sort(t->c, list, own);
    acf_status status = ACF_OK;
    for (int64_t i = 0; i < n && status == ACF_OK; i++) status = acf_levels_add(&t->out->levels, &list[i]);
    acf_release(list);
    ACF_TRY(status);
    t->out->pooled = n - own;
    if (n == own) return ACF_OK;
    return acf_warnings_addf(
        t->warnings, "%s: %s%lld categories; the %lld most frequent have a class each, and the others share one",
        t->where, t->c->words.beyond + t->c->numbers.beyond ? "more than " : "", (long long)n, (long long)own);
}

static acf_status learn(acf_typing_column *t) {
    if (!t->by_user && t->c->words.n > 0)
        ACF_TRY(acf_typing_warn_na_strings(t->c, t->out->kind, t->where, t->warnings));
    if (!t->by_user && !acf_kind_holds_numbers(t->c))
        ACF_TRY(acf_typing_note(t->c, t->out->kind, t->where, t->warnings));
    if (acf_levels_distinct(t->c) == 0) return acf_typing_refuse(t, "its values are too long");
    return t->user && t->user->levels.n ? acf_levels_from_user(t) : levels_of(t);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Levels beyond those with a class of their own share the next class. */
static double class_of(const acf_field_spec *c, int64_t level) {
    int64_t own = c->levels.n - c->pooled;
    return (double)(level < own ? level : own);
}

static acf_cell_state encode(const acf_field_spec *c, const char *text, size_t n, double *value) {
    const int64_t level = acf_levels_find(c, text, n);
    if (level < 0) return ACF_CELL_KEPT;
    *value = class_of(c, level);
    return ACF_CELL_PRESENT;
}

/* A matrix has only numbers, but levels are texts. */
static acf_cell_state encode_number(const acf_field_spec *c, double x, double *value) {
    char text[ACF_NUMBER_MAX];
    return encode(c, text, strlen(acf_number_shortest(text, x)), value);
}

static double decode(const acf_field_spec *c, double v) {
    return acf_kind_clamp(floor(v + 0.5), 0, (double)(acf_spec_classes(c) - 1));
}

static void format(const acf_field_spec *c, double v, acf_text *out) { acf_levels_format(c, (int64_t)v, out); }
static double format_number(const acf_field_spec *c, double v) { return acf_levels_number(c, (int64_t)decode(c, v)); }

static void to_json(acf_spec_writer *to, const acf_field_spec *c) {
    acf_spec_put_levels(to, c);
    if (c->pooled) acf_spec_put(to, "pooled", json_integer(c->pooled));
    if (c->any_case) acf_spec_put(to, "any_case", json_true());
}

/* At least one level keeps a class of its own: a single shared class would carry no information. */
static acf_status from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    (void)s;
    ACF_TRY(acf_spec_get_levels(at, o, c));
    if (c->levels.n == 0) return ACF_OK;
    ACF_TRY(acf_spec_get_int(at, o, "pooled", false, c->levels.n - 1, &c->pooled));
    return acf_spec_get_flag(at, o, "any_case", &c->any_case);
}

const acf_kind acf_kind_category = {
    .name = "category",
    .role = ACF_ROLE_CLASS,
    .all_texts = true,
    .words = {"category"},
    .implied_by = "levels",
    .order = 60,
    .recognise = recognise,
    .learn = learn,
    .encode = encode,
    .encode_number = encode_number,
    .decode = decode,
    .format = format,
    .format_number = format_number,
    .describe = acf_levels_describe,
    .to_json = to_json,
    .from_json = from_json,
};
