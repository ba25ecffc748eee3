/* What a column holds: see profile.h. */
#include "data/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COMMA_TEXT_MAX 64 /* a number with a decimal comma is not longer */

/* One arena for the texts of all columns: its fill is the budget that they share. */
acf_status acf_profile_create(int64_t columns, const acf_markers *markers, acf_profile **out) {
    size_t bytes;
    if (!acf_bytes(columns, sizeof(acf_profile_column), &bytes)) return ACF_EMEMORY;
    acf_profile *p = acf_alloc_zero(sizeof *p, "a profile");
    if (!p) return ACF_EMEMORY;
    p->markers = markers;
    p->column = acf_alloc_zero(bytes, "a profile");
    if (!p->column || acf_text_arena(&p->texts) != ACF_OK) {
        acf_profile_free(p);
        return ACF_EMEMORY;
    }
    p->columns = columns;
    for (int64_t j = 0; j < columns; j++) {
        acf_profile_column *c = &p->column[j];
        c->numbers = acf_tally_make(ACF_NUMBERS_KEPT, p->texts);
        c->words = acf_tally_make(ACF_LEVELS_KEPT, p->texts);
        c->odd = acf_tally_make(ACF_ODD_KEPT, p->texts);
        c->doubtful = acf_tally_make(ACF_ODD_KEPT, p->texts);
    }
    *out = p;
    return ACF_OK;
}

void acf_profile_free(acf_profile *p) {
    if (!p) return;
    for (int64_t j = 0; j < p->columns; j++) {
        acf_tally_clear(&p->column[j].numbers);
        acf_tally_clear(&p->column[j].words);
        acf_tally_clear(&p->column[j].odd);
        acf_tally_clear(&p->column[j].doubtful);
    }
    acf_arena_free(p->texts);
    acf_release(p->column);
    acf_release(p);
}

void acf_profile_want_levels(acf_profile *p, int64_t j) { p->column[j].numbers.cap = ACF_LEVELS_KEPT; }

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The point first: nearly every number has one or none, and then the text is read once. */
bool acf_profile_read_number(const char *text, size_t n, bool comma, acf_number *out, bool *with_comma) {
    *with_comma = false;
    if (acf_number_parse(text, n, out)) return true;
    char copy[COMMA_TEXT_MAX];
    const char *at = comma && n < sizeof copy ? memchr(text, ',', n) : NULL;
    if (!at || memchr(text, '.', n)) return false;
    memcpy(copy, text, n);
    copy[at - text] = '.'; /* a second comma is still there, and no number */
    return *with_comma = acf_number_parse(copy, n, out);
}

/* 12,345 could be twelve thousand; 0,345 and 12,34 could not. */
static bool like_thousands(const char *text, size_t n) {
    const char *comma = memchr(text, ',', n);
    size_t before = (size_t)(comma - text), sign = *text == '-' || *text == '+';
    return n - before == 4 && before - sign >= 1 && before - sign <= 3 && text[sign] != '0';
}

/* How a number is written, from one look at its letters. */
typedef struct look {
    int digits; /* significant ones: those of 0.0120 are 3 */
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

/* Spreads the bits of a whole number, so that sums of different sets of them differ (the finaliser of splitmix64). */
static uint64_t mix(int64_t v) {
    uint64_t h = (uint64_t)v + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

/* What holds for a number however it is written; a matrix comes here too. */
static void count_number(acf_profile_column *c, double v, bool whole) {
    if (c->numeric == 0 || v < c->min) c->min = v;
    if (c->numeric == 0 || v > c->max) c->max = v;
    c->numeric++;
    c->whole += whole;
    if (whole && fabs(v) <= WHOLE_MAX) c->fingerprint += mix((int64_t)v);
}

/* How it is written: so will the imputed ones be. */
static void count_form(acf_profile_column *c, const char *text, size_t n, const acf_number *v, bool with_comma) {
    look l = look_at(text, n);
    c->decimals[v->decimals < ACF_DECIMALS_COUNTED ? v->decimals : ACF_DECIMALS_COUNTED]++;
    if (l.digits > c->digits) c->digits = l.digits;
    c->exponents += l.exponent;
    c->zeros += acf_profile_is_code(text, n);
    c->commas += with_comma;
    c->commas_sure += with_comma && !like_thousands(text, n);
    c->points += l.point;
}

int acf_profile_decimals(const acf_profile_column *c, double part) {
    int64_t all = 0, covered = 0;
    for (int d = 0; d <= ACF_DECIMALS_COUNTED; d++) all += c->decimals[d];
    for (int d = 0; all > 0 && d <= ACF_DECIMALS_COUNTED; d++)
        if ((double)(covered += c->decimals[d]) >= part * (double)all) return d;
    return -1;
}

/* n whole numbers from min to max = min + n - 1 are a key when none is there twice. A list of them would take memory for every row; the sum of
 * their hashes is compared with that of the numbers that should be there. Another set of the same size agrees once in 2^64. */
bool acf_profile_is_key(const acf_profile_column *c) {
    if (c->missing > 0 || c->whole < c->observed || c->observed == 0) return false;
    if (fabs(c->min) > WHOLE_MAX || fabs(c->max) > WHOLE_MAX || c->max - c->min != (double)(c->observed - 1)) return false;
    uint64_t sum = 0;
    for (int64_t v = (int64_t)c->min; v <= (int64_t)c->max; v++) sum += mix(v);
    return sum == c->fingerprint;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

/* A tally is closed when the texts of all columns together have become too many, or when there are enough numbers to know that
 * this is no scale; as soon as words appear among them, they may be levels after all. */
static acf_status count_text(acf_profile *p, acf_profile_column *c, acf_tally *t, const char *text, size_t n, int64_t row) {
    if (acf_arena_used(p->texts) > ACF_TEXT_KEPT) t->cap = t->n;
    if (t == &c->words && t->n == 0 && c->numbers.beyond == 0) c->numbers.cap = ACF_LEVELS_KEPT;
    if (n > ACF_LEVEL_BYTES_MAX) {
        c->prose++;
        return ACF_OK;
    }
    if (t == &c->numbers && t->beyond > 0 && t->cap == ACF_NUMBERS_KEPT) { /* a measurement: which values it takes is all one */
        t->beyond++;
        return ACF_OK;
    }
    return acf_tally_add(t, text, n, row);
}

/* Kept only where they are few, beside more dates than are kept. Beyond, a column of words pays nothing for them. */
static acf_status count_odd(acf_profile_column *c, const char *text, size_t n, int64_t row) {
    if (c->odd.beyond > 0 || n > ACF_LEVEL_BYTES_MAX) {
        c->odd.beyond++;
        return ACF_OK;
    }
    return acf_tally_add(&c->odd, text, n, row);
}

/* The common path of the first pass. A cell that is no number may be a date; a number never is. */
acf_status acf_profile_text(acf_profile *p, int64_t j, int64_t row, const char *text, size_t n, bool quoted) {
    acf_profile_column *c = &p->column[j];
    acf_number v;
    bool with_comma;
    if (acf_markers_has(p->markers, text, n) || (c->extra && acf_markers_has(c->extra, text, n))) {
        c->missing++;
        return acf_markers_in_doubt(p->markers, text, n) ? acf_tally_add(&c->doubtful, text, n, row) : ACF_OK;
    }
    c->observed++;
    c->quoted += quoted;
    if (acf_profile_read_number(text, n, p->comma, &v, &with_comma)) {
        count_number(c, v.value, v.whole);
        count_form(c, text, n, &v, with_comma);
        return count_text(p, c, &c->numbers, text, n, row);
    }
    if (acf_when_look(&c->when, text, n) != 0) ACF_TRY(count_odd(c, text, n, row));
    return count_text(p, c, &c->words, text, n, row);
}

/* Only whole numbers can be levels of a matrix. Their decimals say nothing: it holds what it holds. */
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
    if (whole && fabs(value) <= WHOLE_MAX) snprintf(text, sizeof text, "%lld", (long long)value);
    else acf_number_shortest(text, value);
    return count_text(p, c, &c->numbers, text, strlen(text), row);
}
