/* Choosing the notation of the columns of a file: see settle.h. Runs once a column. */
#include "table/settle.h"

#include <string.h>

/* A column of words may hold a version number or two. The survey counts only if most cells are numbers. */
static bool has_numbers(const acf_profile_column *c) {
    return c->survey.cells > 0 && 2 * c->survey.cells >= c->observed;
}

/* The source of the decimal mark, for messages. */
typedef struct witness {
    char point;      /* '.', ','; 0: none */
    const char *why; /* NULL: the user set it */
} witness;

static witness find_witness(const acf_table_file *f, const acf_profile *p, const acf_read_options *w) {
    const char separator = f->reader->dialect ? f->reader->dialect->separator : 0;
    bool says[2] = {false, false};
    if (w->point) return (witness){w->point, NULL};
    for (int64_t j = 0; j < p->columns; j++) {
        const char own = has_numbers(&p->column[j]) ? acf_notation_point(&p->column[j].survey) : 0;
        says[0] |= own == '.', says[1] |= own == ',';
    }
    for (int64_t j = 0; f->known && j < f->schema->n; j++) says[f->schema->column[j].notation.comma] = true;
    if (says[0] != says[1])
        return (witness){says[1] ? ',' : '.', says[1] ? "numbers of other columns have a decimal comma"
                                                      : "numbers of other columns have a decimal point"};
    if (separator == ',') return (witness){'.', "the columns are separated by commas"};
    if (separator == ' ') return (witness){'.', "the columns are separated by white space"};
    return (witness){0, NULL};
}

/* The first number of the column that can be read in two ways. */
static const acf_text_counts_entry *first_either(const acf_profile_column *c) {
    const acf_text_counts_entry *first = NULL;
    for (int k = 0; k < 2; k++) {
        const acf_text_counts *list = k ? &c->words : &c->numbers;
        for (int64_t i = 0; i < list->n; i++) {
            const acf_text_counts_entry *e = &list->entry[i];
            acf_notation_survey s = {0};
            if (!acf_notation_look(&s, e->text, e->length) || s.mark[0].either + s.mark[1].either == 0) continue;
            if (!first || e->first < first->first) first = e;
            break; /* the others came later */
        }
    }
    return first;
}

/* The choice changes values by a factor of a thousand. A decimal point is the usual case, and the user's own choice
 * needs no warning. */
static acf_status say_assumed(acf_table_file *f, const acf_profile_column *c, int64_t j, const acf_notation *is,
                              const char *why) {
    char where[ACF_FIELD_TEXT_MAX], seen[ACF_EXCERPT_MAX], plain[ACF_PLAIN_MAX] = "";
    const acf_text_counts_entry *e = first_either(c);
    const char *mark = is->comma == !*is->group ? "comma" : "point";
    if (!e || !why || (!is->comma && !*is->group)) return ACF_OK;
    acf_notation_strip(is, e->text, e->length, plain);
    return acf_warnings_addf(
        &f->warnings, "%s: '%s' is read as %s, because %s: the %s %s. If that is wrong, say %s in the option 'decimal'",
        acf_field_text(where, f->name[j], j), acf_text_excerpt(seen, e->text), plain, why, mark,
        *is->group ? "separates thousands" : "is a decimal one", is->comma ? "point" : "comma");
}

/* Real: the mark is a decimal one; integer: it separates thousands. */
static bool is_set_by_user(const acf_field_spec *wish, acf_notation_verdict v, acf_notation *is) {
    if (!wish || v != ACF_NOTATION_EITHER || wish->kind->numbers == ACF_NO_NUMBERS) return false;
    if (wish->kind->numbers == ACF_WHOLE_NUMBERS) *is = acf_notation_grouped(is, is->comma);
    return true;
}

static acf_status settle_column(acf_table_file *f, acf_profile *p, int64_t j, const acf_field_spec *wish, witness point,
                                bool *skip) {
    acf_profile_column *c = &p->column[j];
    acf_notation is = {0};
    *skip = true;
    if (wish && wish->has_notation) {
        is = wish->notation;
    } else if (has_numbers(c)) {
        c->verdict = acf_notation_most(&c->survey, c->observed, point.point, &is);
        if (c->verdict == ACF_NOTATION_ASSUMED) ACF_TRY(say_assumed(f, c, j, &is, point.why));
        if (is_set_by_user(wish, c->verdict, &is)) c->verdict = ACF_NOTATION_IS;
    }
    if (acf_notation_is_plain(&is) || acf_profile_is_in_doubt(c)) return ACF_OK;
    acf_profile_again(p, j, &is);
    *skip = false;
    return ACF_OK;
}

acf_status acf_settle(acf_table_file *f, acf_profile *p, const acf_read_options *w, const acf_field_spec *const *wish,
                      bool *skip) {
    const witness point = find_witness(f, p, w);
    for (int64_t j = 0; j < p->columns; j++)
        if (!skip[j]) ACF_TRY(settle_column(f, p, j, wish ? wish[j] : NULL, point, &skip[j]));
    return ACF_OK;
}
