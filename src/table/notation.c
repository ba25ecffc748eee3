/* Notation of a column's numbers: see notation.h. */
#include "table/notation.h"

#include <ctype.h>
#include <string.h>

#define SHARE 0.9 /* least share of the observed cells with the prefix and suffix that count as the column's */
#define SLIPS 0.1 /* largest share of the cells with a decimal mark that may have the other mark */

/* Separators of thousands besides point and comma. The first four are blanks, the others apostrophes. */
static const char *const gaps[ACF_NOTATION_GAPS] = {" ", "\302\240",    "\342\200\257", "\342\200\211",
                                                    "'", "\342\200\231"};
enum { BLANKS = 4 };

/* Written before a number, or after it without a blank. Longer ones stand before those that they begin with. */
static const char *const currencies[] = {"US$", "A$",  "C$",  "R$",  "$",   "€",   "£",   "¥",   "₹",   "₽",
                                         "₩",   "₺",   "₪",   "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR",
                                         "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "BRL",
                                         "MXN", "ZAR", "RUB", "TRY", "Rs.", "Rs",  "Fr."};
static const char *const units[] = {
    "%",   "‰",   "°C",   "°F", "°",   "kg",  "g",   "mg",  "µg",  "μg",    "t",      "lb",     "lbs",   "oz",   "st",
    "km",  "m",   "cm",   "mm", "µm",  "nm",  "mi",  "ft",  "in",  "yd",    "l",      "L",      "ml",    "mL",   "dl",
    "cl",  "gal", "h",    "hr", "hrs", "min", "s",   "ms",  "sec", "d",     "y",      "yr",     "yrs",   "W",    "kW",
    "kWh", "MW",  "V",    "mV", "Hz",  "kHz", "MHz", "GHz", "bpm", "cal",   "kcal",   "J",      "kJ",    "Pa",   "hPa",
    "kPa", "bar", "mmHg", "m2", "m²",  "m3",  "m³",  "km2", "km²", "kg/m2", "kg/m²",  "km/h",   "mph",   "m/s",  "ha",
    "B",   "kB",  "MB",   "GB", "TB",  "px",  "pt",  "dB",  "mol", "mmol",  "mmol/l", "mmol/L", "mg/dl", "mg/dL"};
static const char *const clock_words[] = {"am", "pm", "AM", "PM", "Am", "Pm", "a.m.", "p.m."};
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- letters ---------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool is_digit(const cursor *c, size_t ahead) {
    return ahead < (size_t)(c->end - c->at) && c->at[ahead] >= '0' && c->at[ahead] <= '9';
}

static bool begins(const cursor *c, const char *text, size_t n) {
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, text, n) == 0;
}

/* Bytes of the listed text at the cursor, 0: none matches. *which: its number. */
static size_t one_of(const cursor *c, const char *const *list, size_t count, int *which) {
    for (size_t i = 0; i < count; i++)
        if (begins(c, list[i], strlen(list[i]))) {
            *which = (int)i;
            return strlen(list[i]);
        }
    return 0;
}

static size_t gap_at(const cursor *c, int *which) {
    const unsigned char here = c->at < c->end ? (unsigned char)*c->at : 0;
    return here == ' ' || here == '\'' || here == 0xc2 || here == 0xe2 ? one_of(c, gaps, ACF_NOTATION_GAPS, which) : 0;
}

static void skip_blanks(cursor *c) {
    int which;
    for (size_t n; (n = gap_at(c, &which)) != 0 && which < BLANKS; c->at += n) {}
}

static bool take_sign(cursor *c, char *sign) {
    if (*sign || c->at == c->end || (*c->at != '-' && *c->at != '+')) return false;
    *sign = *c->at++;
    return true;
}

/* The mark at the cursor: 0 a point, 1 a comma, 2, 3, ... a gap; -1: none that is followed by a digit. *n: its
 * bytes. */
static int mark_at(const cursor *c, size_t *n) {
    int which = -1;
    *n = c->at < c->end && (*c->at == '.' || *c->at == ',');
    if (*n)
        which = *c->at == ',';
    else if ((*n = gap_at(c, &which)) != 0)
        which += 2;
    return *n && is_digit(c, *n) ? which : -1;
}

/* Bytes of an exponent after the digits: e5, E-12. */
static size_t exponent_at(const cursor *c) {
    size_t n = 1;
    if (c->at == c->end || (*c->at != 'e' && *c->at != 'E')) return 0;
    n += c->at + 1 < c->end && (c->at[1] == '-' || c->at[1] == '+');
    if (!is_digit(c, n)) return 0;
    while (is_digit(c, n)) n++;
    return n;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* A prefix or suffix without the blanks at its ends. */
static cursor core_of(const char *affix) {
    cursor core = {affix, affix + strlen(affix)};
    skip_blanks(&core);
    for (int k = 0; k < BLANKS; k++) {
        const size_t n = strlen(gaps[k]);
        if ((size_t)(core.end - core.at) < n || memcmp(core.end - n, gaps[k], n) != 0) continue;
        core.end -= n;
        k = -1;
    }
    return core;
}

/* Steps over a prefix or suffix; blanks in it may differ. */
static bool take_affix(cursor *c, const char *affix) {
    const cursor core = core_of(affix);
    const size_t n = (size_t)(core.end - core.at);
    skip_blanks(c);
    if (!begins(c, core.at, n)) return false;
    c->at += n;
    skip_blanks(c);
    return true;
}

/* Does this mark separate thousands in this notation? All blanks count as equal. */
static bool is_separator(const acf_notation *f, int mark) {
    if (mark < 0 || !*f->group) return false;
    if (mark < 2) return *f->group == (mark ? ',' : '.');
    const bool blank = mark - 2 < BLANKS,
               apostrophe = *f->group == '\'' || strcmp(f->group, gaps[ACF_NOTATION_GAPS - 1]) == 0;
    return *f->group != '.' && *f->group != ',' && blank != apostrophe;
}

typedef struct copying {
    char *out;
    size_t n;
    bool grouped, point;
    int digits; /* since the last mark */
} copying;

/* Copies one mark if it is allowed here. */
static bool copy_mark(const acf_notation *f, copying *w, int mark) {
    if (!w->point && is_separator(f, mark)) {
        const bool first = !w->grouped;
        w->grouped = true;
        return first ? w->digits >= 1 && w->digits <= 3 && w->out[w->n - (size_t)w->digits] != '0' : w->digits == 3;
    }
    if (w->point || mark != (int)f->comma || (w->grouped && w->digits != 3)) return false;
    w->out[w->n++] = '.';
    return w->point = true;
}

/* Copies digits and marks, and an exponent. False if they do not follow the notation; the caller checks what
 * follows. */
static bool copy_number(const acf_notation *f, cursor *c, copying *w) {
    size_t n;
    while (c->at < c->end && w->n + 2 < ACF_PLAIN_MAX) {
        if (is_digit(c, 0)) {
            w->out[w->n++] = *c->at++, w->digits++;
            continue;
        }
        const int mark = mark_at(c, &n);
        if (mark < 0) break;
        if (!copy_mark(f, w, mark)) return false;
        w->digits = 0, c->at += n;
    }
    n = exponent_at(c);
    if (n + w->n + 1 >= ACF_PLAIN_MAX || (w->grouped && !w->point && w->digits != 3)) return false;
    memcpy(w->out + w->n, c->at, n);
    c->at += n, w->n += n;
    return true;
}

size_t acf_notation_strip(const acf_notation *f, const char *text, size_t n, char out[ACF_PLAIN_MAX]) {
    cursor c = {text, text + n};
    copying w = {.out = out};
    char sign = 0;
    take_sign(&c, &sign);
    if (*f->prefix && !take_affix(&c, f->prefix)) return 0;
    take_sign(&c, &sign);
    if (sign) out[w.n++] = sign;
    if (!copy_number(f, &c, &w) || !take_affix(&c, f->suffix) || c.at < c.end) return 0;
    out[w.n] = '\0';
    return w.n;
}

bool acf_notation_read(const acf_notation *f, const char *text, size_t n, acf_number *out) {
    char plain[ACF_PLAIN_MAX];
    if (acf_notation_is_plain(f)) return acf_number_parse(text, n, out);
    const size_t m = acf_notation_strip(f, text, n, plain);
    return m > 0 && acf_number_parse(plain, m, out);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* "$" comes after the sign, "EUR " before it. */
void acf_notation_write(const acf_notation *f, const char *plain, acf_text *out) {
    const size_t before = strlen(f->prefix), sign = *plain == '-' || *plain == '+';
    const bool inside = before && f->prefix[before - 1] != ' ';
    const char *p = plain + sign;
    const size_t whole = strspn(p, "0123456789");
    if (inside) acf_text_add_bytes(out, plain, sign);
    acf_text_add(out, f->prefix);
    if (!inside) acf_text_add_bytes(out, plain, sign);
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % 3 == 0) acf_text_add(out, f->group);
        acf_text_add_bytes(out, p + i, 1);
    }
    for (p += whole; *p; p++) acf_text_add_bytes(out, *p == '.' && f->comma ? "," : p, 1);
    acf_text_add(out, f->suffix);
}

/* ---- survey of a column ------------------------------------------------------------ */

static bool is_in(const char *const *list, size_t count, const char *text, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == n && memcmp(list[i], text, n) == 0) return true;
    return false;
}

/* 12 kg, 12 stars, 5 mg/dl: after a blank, any single word is a unit. */
static bool is_word(const char *text, size_t n) {
    if (n == 0 || isdigit((unsigned char)*text) || is_in(clock_words, COUNT(clock_words), text, n)) return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && (unsigned char)text[i] < 0x80 && !strchr("/%^.*$", text[i]))
            return false;
    return true;
}

/* Without a blank only known units count: 3A and 2nd are something else. */
static bool is_unit(const char *text, size_t n) {
    return is_in(units, COUNT(units), text, n) || is_in(currencies, COUNT(currencies), text, n);
}

/* Is the rest of the cell, after the number, a suffix? */
static bool is_suffix(const cursor *rest) {
    cursor word = *rest;
    skip_blanks(&word);
    if (rest->at == rest->end) return true;
    if (word.at == word.end || rest->end - rest->at >= ACF_AFFIX_MAX) return false;
    const size_t n = (size_t)(word.end - word.at);
    return word.at > rest->at ? is_word(word.at, n) : is_unit(word.at, n);
}

/* The digits of a number and the marks between them. */
typedef struct body {
    int marks, first, last, kinds; /* first and last: which mark; kinds 2: one kind, and another at the end */
    int64_t digits[2];             /* before the first mark, after the last */
    bool zero, threes, exponent;   /* begins with 0; three digits between marks */
} body;

static bool scan_body(cursor *c, body *b) {
    int64_t run = 0;
    size_t n = 0;
    *b = (body){.first = -1, .last = -1, .zero = c->at < c->end && *c->at == '0', .threes = true};
    for (int mark; c->at < c->end;) {
        if (is_digit(c, 0)) {
            c->at++, run++;
            continue;
        }
        if ((mark = mark_at(c, &n)) < 0) break;
        if (b->kinds == 2) return false; /* nothing may follow a decimal mark */
        if (b->marks == 0)
            b->first = mark, b->digits[0] = run, b->kinds = 1;
        else
            b->threes &= run == 3;
        if (mark != b->first) b->kinds = 2;
        b->last = mark, b->marks++, run = 0, c->at += n;
    }
    b->digits[b->marks > 0] = run;
    n = exponent_at(c);
    b->exponent = n > 0;
    c->at += n;
    return run > 0;
}

static void count_group(acf_notation_survey *s, int mark) {
    if (mark < 2)
        s->mark[mark].group++;
    else
        s->gap[mark - 2]++;
}

/* Counts what the marks of this number can be; false: it is no number. */
static bool count_marks(acf_notation_survey *s, const body *b) {
    const bool grouping = b->digits[0] >= 1 && b->digits[0] <= 3 && !b->zero && b->threes && !b->exponent;
    if (b->marks == 0) return true;
    if (b->kinds == 2) {
        if (!grouping || b->last > 1) return false;
        count_group(s, b->first);
        s->mark[b->last].decimal++;
    } else if (b->marks > 1 || b->first > 1) {
        if (!grouping || b->digits[1] != 3) return false;
        count_group(s, b->first);
    } else if (grouping && b->digits[1] == 3) {
        s->mark[b->first].either++;
    } else {
        s->mark[b->first].decimal++;
    }
    return true;
}

static void keep_affix(char out[ACF_AFFIX_MAX], const char *text, size_t n) {
    memcpy(out, text, n);
    out[n] = '\0';
}

/* Forms beyond the capacity are not counted; none of them can be in most of the cells. */
static void count_form(acf_notation_survey *s, const char *prefix, size_t before, const char *suffix, size_t after) {
    for (int k = 0; k < ACF_NOTATION_FORMS; k++) {
        acf_affixes *f = &s->form[k];
        if (f->cells == 0) {
            keep_affix(f->prefix, prefix, before);
            keep_affix(f->suffix, suffix, after);
        }
        if (strlen(f->prefix) != before || strlen(f->suffix) != after || memcmp(f->prefix, prefix, before) != 0 ||
            memcmp(f->suffix, suffix, after) != 0)
            continue;
        f->cells++;
        return;
    }
}

bool acf_notation_look(acf_notation_survey *s, const char *text, size_t n) {
    cursor c = {text, text + n};
    char sign = 0;
    int which;
    body b;
    take_sign(&c, &sign);
    const char *prefix = c.at;
    c.at += one_of(&c, currencies, is_digit(&c, 0) ? 0 : COUNT(currencies), &which);
    if (c.at > prefix) skip_blanks(&c);
    const size_t before = (size_t)(c.at - prefix);
    take_sign(&c, &sign);
    if (before >= ACF_AFFIX_MAX || !scan_body(&c, &b) || !is_suffix(&c) || !count_marks(s, &b)) return false;
    s->cells++;
    s->ungrouped += b.digits[0] >= 4;
    if (before || c.at < c.end) count_form(s, prefix, before, c.at, (size_t)(c.end - c.at));
    return true;
}

/* 192,4 and 1.698.000 both show that the comma is the decimal mark. If cells disagree, the majority counts. */
static void evidence(const acf_notation_survey *s, int64_t out[2]) {
    for (int k = 0; k < 2; k++) {
        const acf_mark_counts *own = &s->mark[k], *other = &s->mark[!k];
        out[k] = (own->decimal >= own->group ? own->decimal : 0) + (other->group > other->decimal ? other->group : 0);
    }
}

static bool is_mixed(const int64_t says[2]) {
    const int64_t few = says[0] < says[1] ? says[0] : says[1];
    return (double)few > SLIPS * (double)(says[0] + says[1]);
}

/* 1.698 beside 1234 is not thousands, or 1234 would have a mark. A comma is less certain. */
static char own_point(const acf_notation_survey *s, const int64_t says[2]) {
    if (is_mixed(says)) return 0;
    if (says[0] + says[1] > 0) return says[1] > says[0] ? ',' : '.';
    return s->mark[0].either && !s->mark[1].either && s->ungrouped ? '.' : 0;
}

char acf_notation_point(const acf_notation_survey *s) {
    int64_t says[2];
    evidence(s, says);
    return own_point(s, says);
}

static bool is_alike(const char *affix, const char *other) {
    const cursor a = core_of(affix), b = core_of(other);
    return a.end - a.at == b.end - b.at && memcmp(a.at, b.at, (size_t)(a.end - a.at)) == 0;
}

/* Number of cells with the affixes of this form, with or without a blank. */
static int64_t count_alike(const acf_notation_survey *s, const acf_affixes *f) {
    int64_t cells = 0;
    for (int k = 0; k < ACF_NOTATION_FORMS; k++)
        if (is_alike(s->form[k].prefix, f->prefix) && is_alike(s->form[k].suffix, f->suffix)) cells += s->form[k].cells;
    return cells;
}

/* The most frequent prefix and suffix, and the most frequent gap between thousands. */
static void most_frequent(const acf_notation_survey *s, int64_t observed, acf_notation *out) {
    const acf_affixes *best = &s->form[0];
    int gap = 0;
    *out = (acf_notation){0};
    for (int k = 1; k < ACF_NOTATION_FORMS; k++)
        if (s->form[k].cells > best->cells) best = &s->form[k];
    if (best->cells && (double)count_alike(s, best) >= SHARE * (double)observed) {
        memcpy(out->prefix, best->prefix, sizeof best->prefix);
        memcpy(out->suffix, best->suffix, sizeof best->suffix);
    }
    for (int k = 1; k < ACF_NOTATION_GAPS; k++)
        if (s->gap[k] > s->gap[gap]) gap = k;
    if (s->gap[gap]) strcpy(out->group, gaps[gap]);
}

acf_notation acf_notation_grouped(const acf_notation *f, bool comma_groups) {
    acf_notation out = *f;
    out.comma = !comma_groups;
    strcpy(out.group, comma_groups ? "," : ".");
    return out;
}

acf_notation_verdict acf_notation_most(const acf_notation_survey *s, int64_t observed, char point, acf_notation *out) {
    int64_t says[2];
    evidence(s, says);
    const char own = own_point(s, says);
    const acf_mark_counts *marks = s->mark;
    const bool comma = own ? own == ',' : point ? point == ',' : marks[1].either > 0;
    most_frequent(s, observed, out);
    out->comma = comma;
    if (is_mixed(says) || (!own && marks[0].either && marks[1].either)) return ACF_NOTATION_MIXED;
    if ((own || point) && marks[!comma].either + marks[!comma].group > marks[!comma].decimal)
        *out = acf_notation_grouped(out, !comma);
    if (own || marks[0].either + marks[1].either == 0) {
        out->comma &= own != 0; /* unknown without a mark */
        return ACF_NOTATION_IS;
    }
    return point ? ACF_NOTATION_ASSUMED : ACF_NOTATION_EITHER;
}

bool acf_notation_is_group(const char *text) {
    return strcmp(text, ".") == 0 || strcmp(text, ",") == 0 || is_in(gaps, ACF_NOTATION_GAPS, text, strlen(text));
}

/* Signs, marks or digits in an affix could not be told from those of the number. */
bool acf_notation_is_affix(const char *text) {
    const cursor core = core_of(text);
    if (core.at == core.end || strlen(text) >= ACF_AFFIX_MAX || strpbrk(text, "+-,")) return false;
    return !isdigit((unsigned char)*core.at) && *core.at != '.';
}
