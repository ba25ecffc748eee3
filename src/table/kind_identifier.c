/* Row names: keys, and texts that differ in (nearly) every row. Not modelled, as they carry no information, and
 * never imputed. */
#include "table/kind_levels.h"
#include "table/kind_number.h"
#include "table/typing_warnings.h"

#define CELLS 10       /* with fewer cells a column is an identifier only if it counts the rows */
#define NEARLY_ALL 0.9 /* at least this share of the cells are different */

static bool numbers_name_rows(const acf_profile_column *c, const char *name) {
    if (c->whole < c->numeric) return false;
    bool starts_low = c->min == 0 || c->min == 1;
    if (acf_profile_is_key(c) && (starts_low || acf_typing_is_id_name(name))) return true;
    bool many = c->numbers.beyond > 0 || (double)c->numbers.n >= NEARLY_ALL * (double)c->observed;
    return acf_typing_is_id_name(name) && many && c->observed >= CELLS;
}

static bool texts_name_rows(const acf_profile_column *c) {
    double share = (double)acf_levels_distinct(c) / (double)c->observed;
    if (c->prose > 0) return true;
    if (c->observed >= CELLS && share >= NEARLY_ALL) return true;
    if (acf_levels_are_counted(c) && acf_levels_distinct(c) <= ACF_CLASSES_MAX) return false;
    /* Beyond the texts kept, nearly all later texts were new. */
    return share > 0.5 || c->words.beyond + c->numbers.beyond > c->observed / 2;
}

static bool recognise(const acf_profile_column *c, const char *name) {
    return acf_kind_holds_numbers(c) ? numbers_name_rows(c, name) : c->observed > 0 && texts_name_rows(c);
}

static acf_status learn(acf_typing_column *t) {
    if (t->by_user || acf_kind_holds_numbers(t->c)) return ACF_OK;
    return acf_typing_note(t->c, t->out->kind, t->where, t->warnings);
}

static void describe(const acf_field_spec *c, acf_text *out) {
    (void)c;
    acf_text_add(out, "not modelled");
}

const acf_kind acf_kind_identifier = {
    .name = "identifier",
    .role = ACF_ROLE_ROW_NAME,
    .words = {"identifier"},
    .alias = "id",
    .order = 50,
    .recognise = recognise,
    .learn = learn,
    .describe = describe,
};
