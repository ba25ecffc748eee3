/* Typing: see typing.h. The files of the kinds recognise columns and learn from them. Runs once a column. */
#include "table/typing.h"

#include <ctype.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *tail) {
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* Typical names of keys. "paid" and "hybrid" end in id but are no keys: a separator or a capital letter must precede
 * id. */
bool acf_typing_is_id_name(const char *name) {
    static const char *const whole[] = {"id", "key", "index", "idx", "uuid", "guid", "rowid", "rownames", "unnamed: 0"};
    char lower[64] = "";
    size_t n = strlen(name);
    if (n >= sizeof lower) return false;
    for (size_t i = 0; i < n; i++) lower[i] = (char)tolower((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(lower, whole[i]) == 0) return true;
    if (n < 3) return false;
    bool camel = (ends_with(name, "Id") || ends_with(name, "ID")) && islower((unsigned char)name[n - 3]);
    return camel || (ends_with(lower, "id") && strchr("_-. ", lower[n - 3]));
}

/* ---- one column ------------------------------------------------------------------------------------------------- */

acf_status acf_typing_refuse(const acf_typing_column *t, const char *why) {
    return acf_fail(ACF_EDATA, "%s, %s: it cannot be read as %s: %s", t->file, t->where, t->user->kind->name, why);
}

/* Extends the range that the user set to include the observed values. */
static void widen(acf_field_spec *out, const acf_field_spec *wish) {
    if (!wish || !wish->has_range || wish->kind != out->kind) return;
    if (wish->min < out->min) out->min = wish->min;
    if (wish->max > out->max) out->max = wish->max;
    out->declared = wish->declared;
}

/* The user's kind applies if there is a value: an empty column stays empty. */
static acf_status type_column(acf_typing_column *t, const char *name) {
    acf_field_spec *out = t->out;
    const acf_profile_column *c = t->c;
    if (!(out->name = acf_text_keep(t->s->texts, name, strlen(name)))) return ACF_EMEMORY;
    out->observed = c->observed, out->missing = c->missing;
    out->quoted = c->observed > 0 && c->quoted == c->observed;
    const acf_text_counts *own = t->user && t->user->na_strings ? &t->user->na_strings->list : NULL;
    for (int64_t i = 0; own && i < own->n; i++)
        ACF_TRY(acf_spec_add_na_string(t->s, out, own->entry[i].text, own->entry[i].length));
    t->by_user = t->user && t->user->kind != &acf_kind_auto && c->observed > 0;
    out->kind = t->by_user ? t->user->kind : acf_kind_recognise(c, name);
    if (out->kind->learn) ACF_TRY(out->kind->learn(t));
    widen(out, t->user);
    return ACF_OK;
}

/* ---- the whole table -------------------------------------------------------------------------------------------- */

/* All cells missing is the plain case; otherwise the message lists the kinds of the columns. */
acf_status acf_typing_learnable(const char *file, const acf_schema *s) {
    int64_t constant = 0, identifier = 0, empty = 0;
    if (s->D > 0) return ACF_OK;
    for (int64_t j = 0; j < s->n; j++) {
        constant += s->column[j].kind->role == ACF_ROLE_ONE_VALUE;
        identifier += s->column[j].kind->role == ACF_ROLE_ROW_NAME;
        empty += s->column[j].kind->role == ACF_ROLE_NONE;
    }
    if (empty == s->n) return acf_fail(ACF_EDATA, "%s: all cells are missing: there is nothing to learn from", file);
    return acf_fail(ACF_EDATA,
                    "%s: there is no column to model: %lld hold one value only, %lld are identifiers, %lld are empty. "
                    "If one should be modelled after all, name its type in the option 'types', such as %s=category",
                    file, (long long)constant, (long long)identifier, (long long)empty, s->column[0].name);
}

/* The kind of a column does not depend on other columns. */
acf_status acf_typing(const char *file, const acf_profile *p, const char *const *name,
                      const acf_field_spec *const *wish, acf_warnings *warnings, acf_schema **out) {
    acf_schema *s;
    acf_status status = ACF_OK;
    ACF_TRY(acf_schema_create(p->columns, &s));
    s->rows = p->rows;
    for (int64_t i = 0; i < p->na_strings->list.n; i++)
        ACF_TRY_DONE(
            acf_na_strings_add(&s->na_strings, p->na_strings->list.entry[i].text, p->na_strings->list.entry[i].length));
    for (int64_t j = 0; j < p->columns; j++) {
        acf_typing_column t = {.file = file,
                               .c = &p->column[j],
                               .user = wish ? wish[j] : NULL,
                               .s = s,
                               .out = &s->column[j],
                               .warnings = warnings};
        acf_field_text(t.where, name[j], j);
        ACF_TRY_DONE(type_column(&t, name[j]));
    }
    acf_schema_place(s);
done:
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}
