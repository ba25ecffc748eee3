/* Column profiles: see profile.h. */
#include "table/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void make_tallies(acf_profile *p, acf_profile_column *c) {
    c->numbers = acf_text_counts_make(c->levels ? ACF_LEVELS_KEPT : ACF_NUMBERS_KEPT, p->texts);
    c->words = acf_text_counts_make(ACF_LEVELS_KEPT, p->texts);
    c->odd = acf_text_counts_make(ACF_ODD_KEPT, p->texts);
    c->doubtful = acf_text_counts_make(ACF_ODD_KEPT, p->texts);
}

static void clear_tallies(acf_profile_column *c) {
    acf_text_counts_clear(&c->numbers);
    acf_text_counts_clear(&c->words);
    acf_text_counts_clear(&c->odd);
    acf_text_counts_clear(&c->doubtful);
}

/* One arena holds the texts of all columns; its size is the budget that they share. */
acf_status acf_profile_create(int64_t columns, const acf_na_strings *na_strings, acf_profile **out) {
    size_t bytes;
    if (!acf_bytes(columns, sizeof(acf_profile_column), &bytes)) return ACF_EMEMORY;
    acf_profile *p = acf_alloc_zero(sizeof *p, "a profile");
    if (!p) return ACF_EMEMORY;
    p->na_strings = na_strings;
    p->column = acf_alloc_zero(bytes, "a profile");
    if (!p->column || acf_text_arena(&p->texts) != ACF_OK) {
        acf_profile_free(p);
        return ACF_EMEMORY;
    }
    p->columns = columns;
    for (int64_t j = 0; j < columns; j++) make_tallies(p, &p->column[j]);
    *out = p;
    return ACF_OK;
}

void acf_profile_free(acf_profile *p) {
    if (!p) return;
    for (int64_t j = 0; j < p->columns; j++) clear_tallies(&p->column[j]);
    acf_arena_free(p->texts);
    acf_release(p->column);
    acf_release(p);
}

void acf_profile_want_levels(acf_profile *p, int64_t j) {
    p->column[j].levels = true;
    p->column[j].numbers.cap = ACF_LEVELS_KEPT;
}

void acf_profile_again(acf_profile *p, int64_t j, const acf_notation *notation) {
    acf_profile_column *c = &p->column[j], kept = *c;
    clear_tallies(c);
    *c = (acf_profile_column){.notation = *notation,
                              .survey = kept.survey,
                              .verdict = kept.verdict,
                              .levels = kept.levels,
                              .extra = kept.extra};
    make_tallies(p, c);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The letters of a number, seen in one scan. */
typedef struct look {
    int digits; /* significant digits: 0.0120 has 3 */
    bool exponent, point;
} look;

static look look_at(const char *text, size_t n) {
    look l = {0};
    for (size_t i = 0; i < n && !l.exponent; i++) {
        char c = text[i];
        l.digits += c >= '1' ? c <= '9' : c == '0' && l.digits > 0;
        l.point |= c == '.';
        l.exponent = c == 'e' || c == 'E';
    }
    return l;
}

/* 007 and -01, but not 0, 0.7 or -0. */
bool acf_profile_is_code(const char *text, size_t n) {
    size_t sign = *text == '-' || *text == '+';
    return n > sign + 1 && text[sign] == '0' && text[sign + 1] >= '0' && text[sign + 1] <= '9';
}

/* Spreads the bits of a whole number, so that sums of different sets differ (the finaliser of splitmix64). */
static uint64_t mix(int64_t v) {
    uint64_t h = (uint64_t)v + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

/* Keeps the outermost values of one end, the outermost first; sign -1: the largest. A value that leaves the list never
 * returns. */
static void count_end(acf_end *end, double v, double sign) {
    int k = 0;
    if (end[ACF_ENDS - 1].cells && sign * v > sign * end[ACF_ENDS - 1].value) return;
    while (k < ACF_ENDS && end[k].cells && sign * end[k].value < sign * v) k++;
    if (k == ACF_ENDS) return;
    if (end[k].cells && end[k].value == v) {
        end[k].cells++;
        return;
    }
    memmove(end + k + 1, end + k, (size_t)(ACF_ENDS - 1 - k) * sizeof *end);
    end[k] = (acf_end){v, 1};
}

/* Counts a number independent of its notation; numbers of a matrix are counted here too. */
static void count_number(acf_profile_column *c, double v, bool whole) {
    if (c->numeric == 0 || v < c->min) c->min = v;
    if (c->numeric == 0 || v > c->max) c->max = v;
    count_end(c->low, v, 1);
    count_end(c->high, v, -1);
    c->numeric++;
    c->whole += whole;
    if (whole && fabs(v) <= WHOLE_MAX) c->fingerprint += mix((int64_t)v);
}

/* Counts how the number is written; imputed values are written alike. */
static void count_form(acf_profile_column *c, const char *text, size_t n, const acf_number *v, const look *l) {
    c->decimals[v->decimals < ACF_DECIMALS_COUNTED ? v->decimals : ACF_DECIMALS_COUNTED]++;
    if (l->digits > c->digits) c->digits = l->digits;
    c->exponents += l->exponent;
    c->zeros += acf_profile_is_code(text, n);
}

int acf_profile_decimals(const acf_profile_column *c, double part) {
    int64_t all = 0, covered = 0;
    for (int d = 0; d <= ACF_DECIMALS_COUNTED; d++) all += c->decimals[d];
    for (int d = 0; all > 0 && d <= ACF_DECIMALS_COUNTED; d++)
        if ((double)(covered += c->decimals[d]) >= part * (double)all) return d;
    return -1;
}

/* n whole numbers from min to max = min + n - 1 are a key if none occurs twice. A list of them would take memory for
 * every row, so the sum of their hashes is compared with that of the expected numbers. Another set of the same size
 * agrees once in 2^64. */
bool acf_profile_is_key(const acf_profile_column *c) {
    if (c->missing > 0 || c->whole < c->observed || c->observed == 0) return false;
    if (fabs(c->min) > WHOLE_MAX || fabs(c->max) > WHOLE_MAX || c->max - c->min != (double)(c->observed - 1))
        return false;
    uint64_t sum = 0;
    for (int64_t v = (int64_t)c->min; v <= (int64_t)c->max; v++) sum += mix(v);
    return sum == c->fingerprint;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

/* Counts of texts are closed once the texts of all columns take too much memory, or once there are enough numbers to
 * rule out a scale. If words appear among the numbers, they may be levels after all. */
static acf_status count_text(acf_profile *p, acf_profile_column *c, acf_text_counts *t, const char *text, size_t n,
                             int64_t row) {
    if (acf_arena_used(p->texts) > ACF_TEXT_KEPT) t->cap = t->n;
    if (t == &c->words && t->n == 0 && c->numbers.beyond == 0) c->numbers.cap = ACF_LEVELS_KEPT;
    if (n > ACF_LEVEL_BYTES_MAX) {
        c->prose++;
        return ACF_OK;
    }
    if (t == &c->numbers && t->beyond > 0 &&
        t->cap == ACF_NUMBERS_KEPT) { /* a measurement: its distinct values do not matter */
        t->beyond++;
        return ACF_OK;
    }
    return acf_text_counts_add(t, text, n, row);
}

/* Kept only if there are few, beside more dates than are kept. Beyond that, a column of words costs nothing more. */
static acf_status count_odd(acf_profile_column *c, const char *text, size_t n, int64_t row) {
    if (c->odd.beyond > 0 || n > ACF_LEVEL_BYTES_MAX) {
        c->odd.beyond++;
        return ACF_OK;
    }
    return acf_text_counts_add(&c->odd, text, n, row);
}

/* Reads a number in the column's notation. If it is written as programs do, also counts what the survey needs, while
 * the survey runs. */
static bool read_number(acf_profile_column *c, const char *text, size_t n) {
    char plain[ACF_PLAIN_MAX];
    acf_number v;
    const bool surveyed = !acf_notation_is_plain(&c->notation);
    if (surveyed && (n = acf_notation_strip(&c->notation, text, n, plain)) > 0) text = plain;
    if (n == 0 || !acf_number_parse(text, n, &v)) return false;
    const look l = look_at(text, n);
    if (!surveyed && (l.point || l.exponent))
        acf_notation_look(&c->survey, text, n);
    else if (!surveyed)
        acf_notation_look_digits(&c->survey, l.digits);
    count_number(c, v.value, v.whole);
    count_form(c, text, n, &v, &l);
    return true;
}

/* The common path of the first pass. A text that is not a number may be a date; a number never is. */
acf_status acf_profile_text(acf_profile *p, int64_t j, int64_t row, const char *text, size_t n, bool quoted) {
    acf_profile_column *c = &p->column[j];
    if (acf_na_strings_has(p->na_strings, text, n) || (c->extra && acf_na_strings_has(c->extra, text, n))) {
        c->missing++;
        return acf_na_strings_in_doubt(p->na_strings, text, n) ? acf_text_counts_add(&c->doubtful, text, n, row)
                                                               : ACF_OK;
    }
    c->observed++;
    c->quoted += quoted;
    if (read_number(c, text, n)) return count_text(p, c, &c->numbers, text, n, row);
    if (acf_notation_is_plain(&c->notation)) acf_notation_look(&c->survey, text, n);
    c->infinite += acf_number_is_infinite(text, n);
    if (acf_calendar_look(&c->when, text, n) != 0) ACF_TRY(count_odd(c, text, n, row));
    return count_text(p, c, &c->words, text, n, row);
}

/* Only whole numbers can be levels of a matrix. A matrix stores no decimals. */
acf_status acf_profile_number(acf_profile *p, int64_t j, int64_t row, double value) {
    acf_profile_column *c = &p->column[j];
    if (isnan(value)) {
        c->missing++;
        return ACF_OK;
    }
    bool whole = value == floor(value);
    c->observed++;
    count_number(c, value, whole);
    char text[ACF_NUMBER_MAX];
    bool all_whole = c->whole == c->numeric;
    if (!all_whole && c->numbers.cap == ACF_NUMBERS_KEPT) return ACF_OK;
    if (whole && fabs(value) <= WHOLE_MAX)
        snprintf(text, sizeof text, "%lld", (long long)value);
    else
        acf_number_shortest(text, value);
    return count_text(p, c, &c->numbers, text, strlen(text), row);
}
