/* Warnings about columns of text: see typing_warnings.h. Each function tests one reason; the first that applies gives
 * the warning. Runs once a column, over its different texts. */
#include "table/typing_warnings.h"

#include <math.h>
#include <string.h>

#define NEARLY_ALL 0.9

/* A column to explain. */
typedef struct text_column {
    const acf_profile_column *c;
    const acf_kind *kind;
    const char *where;
    acf_warnings *warnings;
    acf_status status; /* of adding the warning */
} text_column;

/* ---- dates ------------------------------------------------------------------------------------------------------ */

/* The first text, in row order, that is in this format, or with is = false not; NULL: none is kept. */
static const acf_text_counts_entry *first_when(const acf_profile_column *c, acf_calendar when, bool is) {
    const acf_text_counts_entry *first = NULL;
    for (int k = 0; k < 2; k++) {
        const acf_text_counts *list = k ? &c->words : &c->numbers;
        for (int64_t i = 0; i < list->n; i++) {
            double ignore;
            const acf_text_counts_entry *e = &list->entry[i];
            if (acf_calendar_read(when, e->text, e->length, &ignore) != is || (first && first->first < e->first))
                continue;
            first = e;
            break; /* the others came later */
        }
    }
    return first;
}

/* A column of dates with an ambiguous format. */
static bool warn_ambiguous_dates(text_column *p) {
    acf_calendar when;
    int64_t fit;
    char seen[ACF_EXCERPT_MAX];
    if (acf_calendar_most(&p->c->when, &when, &fit) != ACF_CALENDAR_EITHER || 2 * fit < p->c->observed) return false;
    const acf_text_counts_entry *first = first_when(p->c, when, true);
    p->status =
        acf_warnings_addf(p->warnings,
                          "%s: dates like '%s' may have the day or the month first, so they are read as text (%s); "
                          "say dmy or mdy in the option 'types' to have dates",
                          p->where, first ? acf_text_excerpt(seen, first->text) : "", p->kind->name);
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The first text, in row order, that is a number in some notation but not a plain one; NULL: none is kept. */
static const acf_text_counts_entry *first_odd_number(const acf_profile_column *c) {
    for (int64_t i = 0; i < c->words.n; i++) {
        acf_notation_survey ignore = {0};
        if (acf_notation_look(&ignore, c->words.entry[i].text, c->words.entry[i].length)) return &c->words.entry[i];
    }
    return NULL;
}

/* Prices, shares and weights that are text because some have a sign or a unit and others have none, or a different
 * one. */
static bool warn_signs(text_column *p) {
    const acf_profile_column *c = p->c;
    const acf_text_counts_entry *first = first_odd_number(c);
    char seen[ACF_EXCERPT_MAX];
    if (!first || (double)c->survey.cells < NEARLY_ALL * (double)c->observed || c->numeric == c->observed ||
        acf_profile_is_in_doubt(c))
        return false;
    p->status =
        acf_warnings_addf(p->warnings,
                          "%s: numbers like '%s' have a sign or a unit that others do not have, so they are read "
                          "as text (%s); write all alike to "
                          "have them read as numbers",
                          p->where, acf_text_excerpt(seen, first->text), p->kind->name);
    return true;
}

/* The first number whose text contains this mark; with mark 0, the first with leading zeros. */
static const acf_text_counts_entry *first_number(const acf_profile_column *c, char mark) {
    for (int k = 0; k < 2; k++) {
        const acf_text_counts *list = k ? &c->words : &c->numbers;
        for (int64_t i = 0; i < list->n && (mark || !k); i++) {
            const acf_text_counts_entry *e = &list->entry[i];
            acf_notation_survey ignore = {0};
            if (!mark && acf_profile_is_code(e->text, e->length)) return e;
            if (mark && memchr(e->text, mark, e->length) && acf_notation_look(&ignore, e->text, e->length)) return e;
        }
    }
    return NULL;
}

/* Every mark may be a thousands separator or a decimal mark: the warning shows both readings. */
static void warn_ambiguous_numbers(text_column *p, const acf_text_counts_entry *e) {
    const acf_mark_counts *marks = p->c->survey.mark;
    const bool comma = marks[1].either > 0;
    char seen[ACF_EXCERPT_MAX], decimal[ACF_PLAIN_MAX], grouped[ACF_PLAIN_MAX];
    acf_notation as;
    acf_notation_most(&p->c->survey, p->c->observed, comma ? ',' : '.', &as);
    if (!acf_notation_strip(&as, e->text, e->length, decimal)) *decimal = '\0';
    as = acf_notation_grouped(&as, comma);
    if (!acf_notation_strip(&as, e->text, e->length, grouped)) *grouped = '\0';
    p->status = acf_warnings_addf(p->warnings,
                                  "%s: '%s' may be %s, with a decimal %s, or %s, with a %s between thousands, and no "
                                  "other column decides, so such numbers are read as "
                                  "text (%s); the option 'decimal' (point or comma) settles it for the file, real or "
                                  "integer in the option 'types' for the column",
                                  p->where, acf_text_excerpt(seen, e->text), decimal, comma ? "comma" : "point",
                                  grouped, comma ? "comma" : "point", p->kind->name);
}

/* Ambiguous marks, or points beside commas. */
static bool warn_marks(text_column *p) {
    const acf_profile_column *c = p->c;
    const acf_text_counts_entry *comma = first_number(c, ','), *point = first_number(c, '.'),
                                *first = comma ? comma : point;
    char a[ACF_EXCERPT_MAX], b[ACF_EXCERPT_MAX];
    if (!acf_profile_is_in_doubt(c) || !first) return false;
    if (c->verdict == ACF_NOTATION_EITHER || !comma || !point) {
        warn_ambiguous_numbers(p, first);
        return true;
    }
    p->status =
        acf_warnings_addf(p->warnings,
                          "%s: '%s' has a decimal comma and '%s' a decimal point, so they are read as text (%s); "
                          "write all numbers alike to have "
                          "them read as numbers",
                          p->where, acf_text_excerpt(a, comma->text), acf_text_excerpt(b, point->text), p->kind->name);
    return true;
}

/* In a column of codes many have leading zeros; a single 007 among numbers may be a typing error. */
static bool warn_zeros(text_column *p) {
    const acf_profile_column *c = p->c;
    const acf_text_counts_entry *code = first_number(c, 0);
    char seen[ACF_EXCERPT_MAX];
    if (!code || c->numeric < c->observed || 2 * c->zeros >= c->numeric) return false;
    p->status = acf_warnings_addf(
        p->warnings,
        "%s: %lld of %lld numbers begin with a zero, as codes do (the first: '%s', row %lld), so all are read as text "
        "(%s); say integer or real in the option 'types' if they are numbers, else %s",
        p->where, (long long)c->zeros, (long long)c->numeric, acf_text_excerpt(seen, code->text),
        (long long)code->first + 1, p->kind->name, p->kind->name);
    return true;
}

/* ---- most cells ------------------------------------------------------------------------------------------------- */

/* `fit` cells are `what`, and `first` is the first that is not. If the column is meant to be text, the user can say
 * so. */
static bool warn_other_cells(text_column *p, int64_t fit, const char *what, const acf_text_counts_entry *first) {
    char seen[ACF_EXCERPT_MAX], where[ACF_EXCERPT_MAX + 64];
    acf_text t = acf_text_into(where, sizeof where);
    if (first)
        acf_text_addf(&t, " (the first: '%s', row %lld)", acf_text_excerpt(seen, first->text),
                      (long long)first->first + 1);
    p->status = acf_warnings_addf(
        p->warnings,
        "%s: %lld of %lld cells are %s, the others are not%s, so all are read as text (%s). Name the others in the "
        "option 'missing' if they stand for missing cells; if the column is meant to be text, say %s in the option "
        "'types'",
        p->where, (long long)fit, (long long)p->c->observed, what, first ? where : "", p->kind->name, p->kind->name);
    return true;
}

static bool warn_most_cells(text_column *p) {
    const acf_profile_column *c = p->c;
    acf_calendar when;
    int64_t fit, all = 0;
    char pattern[ACF_CALENDAR_PATTERN_MAX], what[ACF_CALENDAR_PATTERN_MAX + 32];
    if (c->numeric < c->observed && 2 * c->numeric >= c->observed)
        return warn_other_cells(p, c->numeric, "numbers", c->words.n ? c->words.entry : NULL);
    for (int k = 0; k < ACF_CALENDAR_FORMS; k++) all += c->when.form[k].fit;
    if (all == 0 || 2 * all < c->observed) return false;
    acf_calendar_most(&c->when, &when, &fit);
    acf_text t = acf_text_into(what, sizeof what);
    acf_text_addf(&t, "%s written %s", acf_calendar_is_date(when) ? "dates" : "times",
                  acf_calendar_pattern(when, pattern));
    return warn_other_cells(p, fit, what, first_when(c, when, false));
}

acf_status acf_typing_note(const acf_profile_column *c, const acf_kind *kind, const char *where,
                           acf_warnings *warnings) {
    static bool (*const reason[])(text_column *) = {warn_ambiguous_dates, warn_marks, warn_signs, warn_zeros,
                                                    warn_most_cells};
    text_column p = {.c = c, .kind = kind, .where = where, .warnings = warnings};
    for (size_t i = 0; i < sizeof reason / sizeof reason[0]; i++)
        if (reason[i](&p)) return p.status;
    return ACF_OK;
}

/* ---- missing cells ---------------------------------------------------------------------------------------------- */

/* None/Mild/Severe: the user should know before the cells are imputed. */
acf_status acf_typing_warn_na_strings(const acf_profile_column *c, const acf_kind *kind, const char *where,
                                      acf_warnings *warnings) {
    for (int64_t i = 0; i < c->doubtful.n; i++) {
        const acf_text_counts_entry *e = &c->doubtful.entry[i];
        ACF_TRY(
            acf_warnings_addf(warnings,
                              "%s: %lld cell%s '%s', which counts as missing%s; if it is a value here, say what marks "
                              "a missing cell in the option "
                              "'missing' with = first, such as =NA,?",
                              where, (long long)e->count, e->count == 1 ? " holds" : "s hold", e->text,
                              acf_kind_is_modelled(kind) ? " and is filled in" : ""));
    }
    return ACF_OK;
}

/* ---- codes of missing cells ------------------------------------------------------------------------------------- */

#define SENTINEL_FAR 3   /* times as large as all others */
#define SENTINEL_CELLS 5 /* with fewer numbers a column shows too little */

/* 9, 99, 999, ..., 88, 77; and 98, 97, 96 below 99. */
static bool is_code(double v, double outer) {
    char text[ACF_NUMBER_MAX];
    const size_t n = strlen(acf_number_shortest(text, v)), same = strspn(text, (const char[]){text[0], 0});
    if (n > 9 || strspn(text, "0123456789") != n) return false;
    if (same == n) return n == 1 ? *text == '9' : *text >= '7';
    return outer - v < 4 && n > 1 && same == n - 1 && *text == '9' && text[n - 1] >= '6';
}

/* How many values at this end (sign -1: the upper one) are codes: far out, and no other value is of their size. */
static int count_codes(const acf_end *end, double other, double sign) {
    int k = 0;
    while (k < ACF_ENDS - 1 && end[k].cells && (sign < 0) == (end[k].value > 0) &&
           is_code(-sign * end[k].value, k ? -sign * end[k - 1].value : INFINITY))
        k++;
    if (k == 0 || !end[k].cells) return 0;
    const double code = -sign * end[k - 1].value, next = end[k].value;
    const double largest = sign < 0 ? fmax(next, -other) : fmax(-next, other);
    if (sign > 0 && next >= 0) return k; /* there is no other value below 0 */
    return code > 9 && code >= SENTINEL_FAR * largest ? k : 0;
}

/* Adds the code as the file writes it, for the option. */
static void add_code(const acf_profile_column *c, double v, acf_text *out) {
    char text[ACF_NUMBER_MAX];
    for (int64_t i = 0; i < c->numbers.n; i++) {
        acf_number is;
        const acf_text_counts_entry *e = &c->numbers.entry[i];
        if (!acf_notation_read(&c->notation, e->text, e->length, &is) || is.value != v) continue;
        acf_text_add_bytes(out, e->text, e->length);
        return;
    }
    acf_text_add(out, acf_number_shortest(text, v));
}

static acf_status warn_codes(const acf_profile_column *c, const acf_end *end, int n, const acf_end *other,
                             const char *where, acf_warnings *warnings) {
    char list[4 * ACF_EXCERPT_MAX] = "", ends[2][ACF_NUMBER_MAX];
    acf_text t = acf_text_into(list, sizeof list);
    const double next = end[n].value, far = other->value;
    int64_t cells = 0;
    for (int k = 0; k < n; k++) {
        if (k) acf_text_add(&t, ",");
        add_code(c, end[k].value, &t);
        cells += end[k].cells;
    }
    return acf_warnings_addf(warnings,
                             "%s: %lld cell%s %s, and the others lie between %s and %s; if that stands for a missing "
                             "cell, name it in the option 'missing': %s",
                             where, (long long)cells, cells == 1 ? " holds" : "s hold", list,
                             acf_number_shortest(ends[0], next < far ? next : far),
                             acf_number_shortest(ends[1], next < far ? far : next), list);
}

acf_status acf_typing_warn_sentinels(const acf_profile_column *c, const char *where, acf_warnings *warnings) {
    if (c->numeric < SENTINEL_CELLS) return ACF_OK;
    const int high = count_codes(c->high, c->low[0].value, -1), low = count_codes(c->low, c->high[high].value, 1);
    if (high) ACF_TRY(warn_codes(c, c->high, high, &c->low[low], where, warnings));
    return low ? warn_codes(c, c->low, low, &c->high[high], where, warnings) : ACF_OK;
}
