/* Sentences about columns of text: see typing_notes.h. Each function knows one reason, and says whether it is the column's; the first that does is
 * said. Runs once a column, over its different texts. */
#include "data/typing_notes.h"

#include <string.h>

#define NEARLY_ALL 0.9

/* A column to explain. */
typedef struct puzzle {
    const acf_profile_column *c;
    acf_kind kind;
    const char *where;
    acf_notes *notes;
    acf_status status; /* of the note that was written */
} puzzle;

/* ---- dates ------------------------------------------------------------------------------------------------------ */

/* The first text, in the order of rows, that is in this format, or is not; NULL: none that is kept. */
static const acf_tally_entry *first_when(const acf_profile_column *c, acf_when when, bool is) {
    const acf_tally_entry *first = NULL;
    for (int k = 0; k < 2; k++) {
        const acf_tally *list = k ? &c->words : &c->numbers;
        for (int64_t i = 0; i < list->n; i++) {
            double ignore;
            const acf_tally_entry *e = &list->entry[i];
            if (acf_when_read(when, e->text, e->length, &ignore) != is || (first && first->first < e->first)) continue;
            first = e;
            break; /* further ones came later */
        }
    }
    return first;
}

/* A column of dates that nobody can read for sure. */
static bool note_doubt(puzzle *p) {
    acf_when when;
    int64_t fit;
    char seen[ACF_EXCERPT_MAX];
    if (acf_when_most(&p->c->when, &when, &fit) != ACF_WHEN_EITHER || 2 * fit < p->c->observed) return false;
    const acf_tally_entry *first = first_when(p->c, when, true);
    p->status = acf_notes_addf(p->notes,
                               "%s: dates like '%s' may have the day or the month first, so they are read as text (%s); "
                               "say dmy or mdy in the option 'types' to have dates",
                               p->where, first ? acf_text_excerpt(seen, first->text) : "", acf_kind_names[p->kind]);
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The first text, in the order of rows, that is a number in some notation but not a plain one; NULL: none that is kept. */
static const acf_tally_entry *first_odd_number(const acf_profile_column *c) {
    for (int64_t i = 0; i < c->words.n; i++) {
        acf_notation_survey ignore = {0};
        if (acf_notation_look(&ignore, c->words.entry[i].text, c->words.entry[i].length)) return &c->words.entry[i];
    }
    return NULL;
}

/* Prices, shares and weights that are text because some have a sign or a unit and others none, or another. */
static bool note_signs(puzzle *p) {
    const acf_profile_column *c = p->c;
    const acf_tally_entry *first = first_odd_number(c);
    char seen[ACF_EXCERPT_MAX];
    if (!first || (double)c->survey.cells < NEARLY_ALL * (double)c->observed || c->numeric == c->observed || acf_profile_is_in_doubt(c)) return false;
    p->status = acf_notes_addf(p->notes, "%s: numbers like '%s' have a sign or a unit that others do not have, so they are read as text (%s); write all alike to "
                               "have them read as numbers", p->where, acf_text_excerpt(seen, first->text), acf_kind_names[p->kind]);
    return true;
}

/* The first number whose text has this mark in it; that begins with a zero that says nothing (mark 0). */
static const acf_tally_entry *first_number(const acf_profile_column *c, char mark) {
    for (int k = 0; k < 2; k++) {
        const acf_tally *list = k ? &c->words : &c->numbers;
        for (int64_t i = 0; i < list->n && (mark || !k); i++) {
            const acf_tally_entry *e = &list->entry[i];
            acf_notation_survey ignore = {0};
            if (!mark && acf_profile_is_code(e->text, e->length)) return e;
            if (mark && memchr(e->text, mark, e->length) && acf_notation_look(&ignore, e->text, e->length)) return e;
        }
    }
    return NULL;
}

/* Every mark may separate thousands, or be a decimal one: both readings are shown. */
static void note_either(puzzle *p, const acf_tally_entry *e) {
    const acf_mark_counts *marks = p->c->survey.mark;
    const bool comma = marks[1].either > 0;
    char seen[ACF_EXCERPT_MAX], decimal[ACF_PLAIN_MAX], grouped[ACF_PLAIN_MAX];
    acf_notation as;
    acf_notation_most(&p->c->survey, p->c->observed, comma ? ',' : '.', &as);
    if (!acf_notation_strip(&as, e->text, e->length, decimal)) *decimal = '\0';
    as = acf_notation_grouped(&as, comma);
    if (!acf_notation_strip(&as, e->text, e->length, grouped)) *grouped = '\0';
    p->status = acf_notes_addf(p->notes,
                               "%s: '%s' may be %s, with a decimal %s, or %s, with a %s between thousands, and no other column tells, so such numbers are read as "
                               "text (%s); the option 'decimal' (point or comma) settles it for the file, real or integer in the option 'types' for the column",
                               p->where, acf_text_excerpt(seen, e->text), decimal, comma ? "comma" : "point", grouped, comma ? "comma" : "point",
                               acf_kind_names[p->kind]);
}

/* Marks that may mean two things, or points beside commas. */
static bool note_marks(puzzle *p) {
    const acf_profile_column *c = p->c;
    const acf_tally_entry *comma = first_number(c, ','), *point = first_number(c, '.'), *first = comma ? comma : point;
    char a[ACF_EXCERPT_MAX], b[ACF_EXCERPT_MAX];
    if (!acf_profile_is_in_doubt(c) || !first) return false;
    if (c->verdict == ACF_NOTATION_EITHER || !comma || !point) {
        note_either(p, first);
        return true;
    }
    p->status = acf_notes_addf(p->notes,
                               "%s: '%s' has a decimal comma and '%s' a decimal point, so they are read as text (%s); write all numbers alike to have "
                               "them read as numbers",
                               p->where, acf_text_excerpt(a, comma->text), acf_text_excerpt(b, point->text), acf_kind_names[p->kind]);
    return true;
}

/* A column of codes has zeros in front of many; one 007 among numbers may be a slip. */
static bool note_zeros(puzzle *p) {
    const acf_profile_column *c = p->c;
    const acf_tally_entry *code = first_number(c, 0);
    char seen[ACF_EXCERPT_MAX];
    if (!code || c->numeric < c->observed || 2 * c->zeros >= c->numeric) return false;
    p->status = acf_notes_addf(p->notes,
                               "%s: %lld of %lld numbers begin with a zero, as codes do (the first: '%s', row %lld), so all are read as text (%s); say integer or real "
                               "in the option 'types' if they are numbers, else %s",
                               p->where, (long long)c->zeros, (long long)c->numeric, acf_text_excerpt(seen, code->text), (long long)code->first + 1,
                               acf_kind_names[p->kind], acf_kind_names[p->kind]);
    return true;
}

/* ---- most cells ------------------------------------------------------------------------------------------------- */

/* So many cells are what, and `first` is the first that is not. Where the text is meant to be text, saying so ends the matter. */
static bool note_others(puzzle *p, int64_t fit, const char *what, const acf_tally_entry *first) {
    char seen[ACF_EXCERPT_MAX], where[ACF_EXCERPT_MAX + 64];
    acf_text t = acf_text_into(where, sizeof where);
    if (first) acf_text_addf(&t, " (the first: '%s', row %lld)", acf_text_excerpt(seen, first->text), (long long)first->first + 1);
    p->status = acf_notes_addf(p->notes,
                               "%s: %lld of %lld cells are %s, the others are not%s, so all are read as text (%s). Name the others in the option 'missing' if they stand "
                               "for missing cells; if the column is meant to be text, say %s in the option 'types'",
                               p->where, (long long)fit, (long long)p->c->observed, what, first ? where : "", acf_kind_names[p->kind],
                               acf_kind_names[p->kind]);
    return true;
}

static bool note_most(puzzle *p) {
    const acf_profile_column *c = p->c;
    acf_when when;
    int64_t fit, all = 0;
    char pattern[ACF_WHEN_PATTERN_MAX], what[ACF_WHEN_PATTERN_MAX + 32];
    if (c->numeric < c->observed && 2 * c->numeric >= c->observed) return note_others(p, c->numeric, "numbers", c->words.n ? c->words.entry : NULL);
    for (int k = 0; k < ACF_WHEN_FORMS; k++) all += c->when.form[k].fit;
    if (all == 0 || 2 * all < c->observed) return false;
    acf_when_most(&c->when, &when, &fit);
    acf_text t = acf_text_into(what, sizeof what);
    acf_text_addf(&t, "%s written %s", acf_when_is_date(when) ? "dates" : "times", acf_when_pattern(when, pattern));
    return note_others(p, fit, what, first_when(c, when, false));
}

acf_status acf_typing_note(const acf_profile_column *c, acf_kind kind, const char *where, acf_notes *notes) {
    static bool (*const reason[])(puzzle *) = {note_doubt, note_marks, note_signs, note_zeros, note_most};
    puzzle p = {.c = c, .kind = kind, .where = where, .notes = notes};
    for (size_t i = 0; i < sizeof reason / sizeof reason[0]; i++)
        if (reason[i](&p)) return p.status;
    return ACF_OK;
}

/* ---- missing cells ---------------------------------------------------------------------------------------------- */

/* None/Mild/Severe: to be told before it is filled in. */
acf_status acf_typing_note_markers(const acf_profile_column *c, acf_kind kind, const char *where, acf_notes *notes) {
    for (int64_t i = 0; i < c->doubtful.n; i++) {
        const acf_tally_entry *e = &c->doubtful.entry[i];
        ACF_TRY(acf_notes_addf(notes,
                               "%s: %lld cell%s '%s', which counts as missing%s; if it is a value here, say what marks a missing cell in the option "
                               "'missing' with = first, such as =NA,?",
                               where, (long long)e->count, e->count == 1 ? " holds" : "s hold", e->text,
                               kind == ACF_KIND_CATEGORY ? " and is filled in" : ""));
    }
    return ACF_OK;
}
