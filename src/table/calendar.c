/* Dates and times in text: see calendar.h.
 *
 * Every text is first split into parts without deciding what its numbers mean. Recognising, reading and checking all
 * start from the parts. This runs for every cell of a text column; a text that is not a date is rejected at its
 * first letters. */
#include "table/calendar.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define DAY 86400.0
#define FIRST_DAY (-719162) /* 0001-01-01 */
#define LAST_DAY 2932896    /* 9999-12-31 */

static const int64_t ten_to[10] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* ---- splitting --------------------------------------------------------------------------------------------------- */

/* 3/9/2021 14:05:07.25: a b c are the numbers of the date in the order written, digits[] their digit counts. */
typedef struct parts {
    acf_calendar f; /* order is 'y', or 'd' for any date that does not begin with the year */
    int a, b, c, hour, minute, second;
    int64_t nano;
    int digits[3], hour_digits;
} parts;

typedef struct cursor {
    const char *at, *end;
} cursor;

/* Reads a number of at most `most` digits. Returns the digit count, 0 if there is none. It stops before a further
 * digit; the caller then misses the separator. */
static int number(cursor *c, int most, int *out) {
    int n = 0, v = 0;
    for (; n < most && c->at < c->end && *c->at >= '0' && *c->at <= '9'; n++) v = 10 * v + (*c->at++ - '0');
    *out = v;
    return n;
}

/* Steps over this letter if it is next. */
static bool take(cursor *c, char what) {
    if (c->at == c->end || *c->at != what) return false;
    c->at++;
    return true;
}

static const char *const months[12] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The name of a month, or its first three letters. */
static bool month_name(cursor *c, parts *p, int *out) {
    size_t n = 0;
    while (c->at + n < c->end && is_letter(c->at[n])) n++;
    for (int m = 0; m < 12; m++) {
        if ((n != 3 && n != strlen(months[m])) || strncasecmp(c->at, months[m], n) != 0) continue;
        p->f.month = n == 3 ? 'b' : 'B';
        p->f.letters = c->at[0] >= 'a' ? 'l' : c->at[1] >= 'a' ? 't' : 'u';
        *out = m + 1;
        c->at += n;
        return true;
    }
    return false;
}

/* Mar 9, 2021 */
static bool split_named(cursor *c, parts *p) {
    if (!month_name(c, p, &p->a) || !take(c, ' ')) return false;
    p->digits[1] = number(c, 2, &p->b);
    p->f.padded = p->digits[1] == 2;
    p->f.order = 'm', p->f.mark = ' ';
    return p->digits[1] && take(c, ',') && take(c, ' ') && number(c, 4, &p->c) == 4;
}

/* Three numbers with the same separator between them; the middle one may be the name of a month. Exactly one of the
 * outer two has four digits and is the year. */
static bool split_date(cursor *c, parts *p) {
    if (is_letter(*c->at)) return split_named(c, p);
    p->digits[0] = number(c, 4, &p->a);
    if (c->at == c->end || !strchr("-/. ", *c->at)) return false;
    p->f.mark = *c->at++;
    p->digits[1] = number(c, 2, &p->b);
    if (!p->digits[1] && month_name(c, p, &p->b)) p->digits[1] = 2;
    if ((p->f.mark == ' ' && !p->f.month) || !take(c, p->f.mark)) return false;
    p->digits[2] = number(c, 4, &p->c);
    bool year_first = p->digits[0] == 4, year_last = p->digits[2] == 4;
    if (year_first == year_last || !p->digits[1]) return false;
    int short_one = year_first ? p->digits[2] : p->digits[0];
    p->f.order = year_first ? 'y' : 'd';
    p->f.padded = short_one == 2 && p->digits[1] == 2;
    return short_one >= 1 && short_one <= 2;
}

/* AM is the first half of the day, which begins at 12:00 AM; PM is the second. */
static bool split_half(cursor *c, parts *p) {
    const char *begin = c->at;
    p->f.half_gap = take(c, ' ');
    if (c->end - c->at < 2 || strchr("AaPp", *c->at) == NULL || (c->at[1] | 32) != 'm') {
        c->at = begin;
        p->f.half_gap = false;
        return true;
    }
    if (p->hour < 1 || p->hour > 12) return false;
    p->f.half = *c->at >= 'a' ? 'p' : 'P';
    p->hour = p->hour % 12 + ((*c->at | 32) == 'p' ? 12 : 0);
    c->at += 2;
    return true;
}

/* Hours have one or two digits, minutes and seconds have two: 9:05, not 9:5. 24:00 and leap seconds are not
 * accepted. */
static bool split_clock(cursor *c, parts *p) {
    p->hour_digits = number(c, 2, &p->hour);
    if (!p->hour_digits || !take(c, ':') || number(c, 2, &p->minute) != 2) return false;
    p->f.hour2 = p->hour_digits == 2;
    if ((p->f.seconds = take(c, ':'))) {
        if (number(c, 2, &p->second) != 2) return false;
        if (take(c, '.')) {
            int fraction;
            int n = number(c, 9, &fraction);
            if (!n) return false;
            p->f.decimals = (int8_t)n;
            p->nano = fraction * ten_to[9 - n];
        }
    }
    p->f.zulu = take(c, 'Z');
    if (!p->f.zulu && !split_half(c, p)) return false;
    return p->hour <= 23 && p->minute <= 59 && p->second <= 59;
}

/* False if this is not a date or time in any format. The day may still be invalid for its month. */
static bool split(const char *text, size_t n, parts *p) {
    cursor c = {text, text + n};
    *p = (parts){.f = {.padded = true, .hour2 = true}};
    if (n < 4 || n > 40 || (!is_letter(*text) && (*text < '0' || *text > '9'))) return false;
    bool clock_only = text[1] == ':' || text[2] == ':';
    if (!clock_only) {
        if (!split_date(&c, p)) return false;
        if (c.at == c.end) return true;
        if (*c.at != 'T' && *c.at != ' ') return false;
        p->f.join = *c.at++;
    }
    return split_clock(&c, p) && c.at == c.end;
}

/* ---- days -------------------------------------------------------------------------------------------------------- */

static bool is_leap(int y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

/* Year 0 is not accepted: it usually means something else. */
static bool is_day(int y, int m, int d) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return y >= 1 && m >= 1 && m <= 12 && d >= 1 && d <= days[m - 1] + (m == 2 && is_leap(y));
}

/* Years begin in March here: the leap day is the last of its year, and months follow a regular pattern (153 days in
 * five). */
static int64_t days_of(int y, int m, int d) {
    int64_t year = m <= 2 ? y - 1 : y;
    int64_t month = m <= 2 ? m + 9 : m - 3;
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + d - 1 - 719468;
}

/* The inverse, for days from FIRST_DAY on. 146097 days are 400 years, the period of the calendar. */
static void day_of(int64_t days, int *y, int *m, int *d) {
    int64_t n = days + 719468, era = n / 146097, in_era = n % 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100), month = (5 * in_year + 2) / 153;
    *d = (int)(in_year - (153 * month + 2) / 5) + 1;
    *m = (int)(month < 10 ? month + 3 : month - 9);
    *y = (int)(year + 400 * era) + (*m <= 2);
}

/* The date of these parts, read in this order; false if it is not a valid date. */
static bool date_of(const parts *p, char order, int64_t *days) {
    int y = order == 'y' ? p->a : p->c, m = order == 'm' ? p->a : p->b;
    int d = order == 'y' ? p->c : order == 'm' ? p->b : p->a;
    if (!is_day(y, m, d)) return false;
    *days = days_of(y, m, d);
    return true;
}

/* ---- recognising a column ---------------------------------------------------------------------------------------- */

/* Whether two texts have the same form; the remaining properties may differ from cell to cell. */
static bool alike(acf_calendar a, acf_calendar b) {
    return (a.order == 'y') == (b.order == 'y') && !a.order == !b.order && a.mark == b.mark && a.join == b.join &&
           a.zulu == b.zulu && !a.month == !b.month && !a.half == !b.half && (!a.month || a.order == b.order);
}

/* The form that matches this cell, or a new one; NULL: the list is full. */
static acf_calendar_form *form_of(acf_calendar_survey *s, acf_calendar f) {
    for (int k = 0; k < ACF_CALENDAR_FORMS; k++)
        if (!s->form[k].fit || alike(s->form[k].format, f)) return &s->form[k];
    return NULL;
}

/* Every cell narrows down the order of day and month. */
int acf_calendar_look(acf_calendar_survey *s, const char *text, size_t n) {
    parts p;
    int64_t days;
    s->cells++;
    if (!split(text, n, &p)) return -1;
    bool dmy = date_of(&p, 'd', &days),
         mdy = p.f.mark != '.' && date_of(&p, 'm', &days); /* dotted dates have the day first */
    if (p.f.month && !date_of(&p, p.f.order, &days)) return -1;
    if (p.f.order == 'y' && !date_of(&p, 'y', &days)) return -1;
    if (p.f.order == 'd' && !p.f.month && !dmy && !mdy) return -1;
    acf_calendar_form *f = form_of(s, p.f);
    if (!f) return -1;
    if (!f->fit++) f->format = p.f;
    f->dmy += dmy, f->mdy += mdy;
    f->format.padded &= p.f.padded;
    f->format.hour2 &= p.f.hour2;
    f->format.seconds |= p.f.seconds;
    if (p.f.month == 'B') f->format.month = 'B'; /* May is both a short and a full name */
    if (p.f.decimals > f->format.decimals) f->format.decimals = p.f.decimals;
    return (int)(f - s->form);
}

acf_calendar_verdict acf_calendar_most(const acf_calendar_survey *s, acf_calendar *out, int64_t *fit) {
    const acf_calendar_form *f = s->form;
    for (int k = 1; k < ACF_CALENDAR_FORMS; k++)
        if (s->form[k].fit > f->fit) f = &s->form[k];
    *fit = f->fit;
    *out = f->format;
    if (f->fit == 0) return ACF_CALENDAR_NOT;
    if (f->format.order != 'd' || f->format.month) return ACF_CALENDAR_IS;
    const int64_t day = f->fit - f->mdy, month = f->fit - f->dmy; /* cells that require this order */
    out->order = day >= month ? 'd' : 'm';
    *fit = day >= month ? f->dmy : f->mdy;
    if (day > 0 && month > 0) return day >= 10 * month || month >= 10 * day ? ACF_CALENDAR_IS : ACF_CALENDAR_NOT;
    return day + month == 0 ? ACF_CALENDAR_EITHER : ACF_CALENDAR_IS;
}

/* ---- one cell ---------------------------------------------------------------------------------------------------- */

bool acf_calendar_read(acf_calendar f, const char *text, size_t n, double *out) {
    parts p;
    int64_t days = 0;
    if (!split(text, n, &p) || !alike(f, p.f)) return false;
    if (f.order && !date_of(&p, f.order, &days)) return false;
    int64_t whole = p.hour * 3600 + p.minute * 60 + p.second;
    double clock = (double)whole + (double)p.nano / 1e9;
    *out = acf_calendar_is_date(f) ? (double)days : (double)days * DAY + clock;
    return true;
}

/* The step of rounding; the range of a column is in the same steps. */
double acf_calendar_step(acf_calendar f) {
    if (acf_calendar_is_date(f)) return 1;
    return f.seconds ? 1 / (double)ten_to[f.decimals] : 60;
}

static void write_named(acf_calendar f, int y, int m, int d, acf_text *out) {
    char name[16] = "";
    const int wide = f.padded ? 2 : 1;
    memcpy(name, months[m - 1], f.month == 'b' ? 3 : strlen(months[m - 1]));
    for (char *p = name; *p; p++) *p = (char)(f.letters == 'u' ? *p & ~32 : f.letters == 'l' ? *p | 32 : *p);
    if (f.order == 'y')
        acf_text_addf(out, "%04d%c%s%c%0*d", y, f.mark, name, f.mark, wide, d);
    else if (f.order == 'm')
        acf_text_addf(out, "%s %0*d, %04d", name, wide, d, y);
    else
        acf_text_addf(out, "%0*d%c%s%c%04d", wide, d, f.mark, name, f.mark, y);
}

static void write_date(acf_calendar f, int64_t days, acf_text *out) {
    int y, m, d;
    day_of(days, &y, &m, &d);
    int a = f.order == 'm' ? m : d, b = f.order == 'm' ? d : m, wide = f.padded ? 2 : 1;
    if (f.month)
        write_named(f, y, m, d, out);
    else if (f.order == 'y')
        acf_text_addf(out, "%04d%c%0*d%c%0*d", y, f.mark, wide, m, f.mark, wide, d);
    else
        acf_text_addf(out, "%0*d%c%0*d%c%04d", wide, a, f.mark, wide, b, f.mark, y);
}

/* second: of the day; ticks: its fraction, in units of the last decimal shown. */
static void write_clock(acf_calendar f, int64_t second, int64_t ticks, acf_text *out) {
    const int hour = (int)(second / 3600), shown = !f.half ? hour : hour % 12 ? hour % 12 : 12;
    acf_text_addf(out, "%0*d:%02d", f.hour2 ? 2 : 1, shown, (int)(second / 60 % 60));
    if (f.seconds) acf_text_addf(out, ":%02d", (int)(second % 60));
    if (f.seconds && f.decimals) acf_text_addf(out, ".%0*lld", f.decimals, (long long)ticks);
    if (f.zulu) acf_text_add(out, "Z");
    if (!f.half) return;
    const char *const names[2][2] = {{"AM", "PM"}, {"am", "pm"}};
    acf_text_addf(out, "%s%s", f.half_gap ? " " : "", names[f.half == 'p'][hour >= 12]);
}

/* Whole seconds and ticks are rounded separately: their product in ticks may exceed 64 bits. */
static void round_clock(acf_calendar f, double value, int64_t *seconds, int64_t *ticks) {
    double whole = floor(value);
    *ticks = 0;
    if (!f.seconds) {
        *seconds = 60 * (int64_t)floor(value / 60 + 0.5);
        return;
    }
    *ticks = (int64_t)floor((value - whole) * (double)ten_to[f.decimals] + 0.5);
    *seconds = (int64_t)whole;
    if (*ticks < ten_to[f.decimals]) return;
    *ticks = 0;
    ++*seconds;
}

/* Clamps before rounding, so that rounding stays inside the calendar and does not pass midnight. */
void acf_calendar_write(acf_calendar f, double value, acf_text *out) {
    double first = f.order ? FIRST_DAY : 0, last = f.order ? LAST_DAY : 0, unit = acf_calendar_is_date(f) ? 1 : DAY;
    double top = acf_calendar_is_date(f) ? last : (last + 1) * DAY - acf_calendar_step(f);
    if (!(value > first * unit)) value = first * unit; /* also true for NaN */
    if (value > top) value = top;
    if (acf_calendar_is_date(f)) {
        write_date(f, (int64_t)floor(value + 0.5), out);
        return;
    }
    int64_t seconds, ticks;
    round_clock(f, value, &seconds, &ticks);
    int64_t days = (int64_t)floor((double)seconds / DAY);
    if (f.order) write_date(f, days, out);
    if (f.join) acf_text_add_bytes(out, &f.join, 1);
    write_clock(f, seconds - days * 86400, ticks, out);
}

/* ---- the format as text ------------------------------------------------------------------------------------------ */

/* The month in a pattern. */
static const char *month_pattern(acf_calendar f) {
    static const char *const names[2][3] = {{"Mon", "MON", "mon"}, {"Month", "MONTH", "month"}};
    if (!f.month) return f.padded ? "MM" : "M";
    return names[f.month == 'B'][f.letters == 'u' ? 1 : f.letters == 'l' ? 2 : 0];
}

/* MM is a month or a minute, depending on its position. */
char *acf_calendar_pattern(acf_calendar f, char out[ACF_CALENDAR_PATTERN_MAX]) {
    acf_text t = acf_text_into(out, ACF_CALENDAR_PATTERN_MAX);
    const char *day = f.padded ? "DD" : "D", *month = month_pattern(f);
    if (f.order == 'y') acf_text_addf(&t, "YYYY%c%s%c%s", f.mark, month, f.mark, day);
    if (f.order == 'd') acf_text_addf(&t, "%s%c%s%cYYYY", day, f.mark, month, f.mark);
    if (f.order == 'm' && f.month)
        acf_text_addf(&t, "%s %s, YYYY", month, day);
    else if (f.order == 'm')
        acf_text_addf(&t, "%s%c%s%cYYYY", month, f.mark, day, f.mark);
    if (f.join) acf_text_add_bytes(&t, &f.join, 1);
    if (!f.order || f.join) {
        acf_text_addf(&t, "%s:MM%s%s%.*s%s", f.hour2 ? "HH" : "H", f.seconds ? ":SS" : "", f.decimals ? "." : "",
                      f.decimals, "fffffffff", f.zulu ? "Z" : "");
        if (f.half) acf_text_addf(&t, "%s%s", f.half_gap ? " " : "", f.half == 'P' ? "AM" : "am");
    }
    return out;
}

/* Number k of the list of date formats (clock formats below); false after the last. A date with a month name has
 * other separators or another order than one with a month number. */
static bool date_at(int k, acf_calendar *f) {
    static const char orders[] = {'y', 'd', 'm'}, marks[] = {'-', '/', '.', ' '}, months_as[] = {0, 'b', 'B'},
                      letters[] = {'t', 'u', 'l'};
    *f = (acf_calendar){.order = orders[k % 3],
                        .mark = marks[k / 3 % 4],
                        .month = months_as[k / 12 % 3],
                        .letters = letters[k / 36 % 3],
                        .padded = k / 108 % 2};
    if (!f->month) f->letters = 0;
    return k < 216;
}

static bool is_date(acf_calendar f) { return f.month ? f.order != 'm' || f.mark == ' ' : f.mark != ' '; }

static bool clock_at(int k, acf_calendar *f) {
    static const char halves[] = {0, 'P', 'p'};
    f->hour2 = k % 2, f->seconds = k / 2 % 2, f->zulu = k / 4 % 2, f->half = halves[k / 8 % 3],
    f->half_gap = k / 24 % 2;
    f->decimals = (int8_t)(k / 48);
    if (f->decimals > 9) return false;
    return true;
}

static bool is_clock(acf_calendar f) {
    return (f.seconds || !f.decimals) && !(f.zulu && f.half) && (f.half || !f.half_gap);
}

static bool is_pattern(acf_calendar f, const char *pattern) {
    char text[ACF_CALENDAR_PATTERN_MAX];
    return strcmp(acf_calendar_pattern(f, text), pattern) == 0;
}

/* Finds the clock of a pattern that begins with the date of f, or with no date. */
static bool find_clock(acf_calendar f, const char *pattern, acf_calendar *out) {
    static const char joins[] = {'T', ' '};
    for (int k = 0; k < (f.order ? 2 : 1); k++) {
        if (f.order) f.join = joins[k];
        for (int c = 0; clock_at(c, &f); c++) {
            if (!is_clock(f) || !is_pattern(f, pattern)) continue;
            *out = f;
            return true;
        }
    }
    return false;
}

/* There are few formats: each one is written out and compared. This avoids a second grammar. */
bool acf_calendar_from_pattern(const char *pattern, acf_calendar *out) {
    acf_calendar f = {.padded = true};
    char text[ACF_CALENDAR_PATTERN_MAX];
    if (*pattern == 'H') return find_clock(f, pattern, out);
    for (int k = 0; date_at(k, &f); k++) {
        const size_t n = strlen(acf_calendar_pattern(f, text));
        if (!is_date(f) || strncmp(text, pattern, n) != 0) continue;
        const char behind = pattern[n];
        f.hour2 = true;
        if (!behind) *out = f;
        if (!behind || find_clock(f, pattern, out)) return true;
    }
    return false;
}
