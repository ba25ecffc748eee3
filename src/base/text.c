/* Text: see text.h.
 *
 * Order: the writer, quoting, names, reading, numbers for people. Nothing here allocates and nothing is kept between
 * calls. printf and strtod follow the locale of the host program (a decimal comma in Germany), which a library must
 * not change; where that matters the text is made or read by other means. */
#define _GNU_SOURCE /* strtod_l */
#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing into a caller's buffer ----------------------------------------------------------------------------- */

acf_text acf_text_into(char *out, size_t cap) {
    if (cap > 0) out[0] = '\0';
    return (acf_text){out, cap, 0};
}

/* Always counts, copies what fits. The NUL follows the last copied byte, so a truncated text is still a string. */
void acf_text_add_bytes(acf_text *t, const char *s, size_t n) {
    if (t->len + 1 < t->cap) {
        size_t capacity = t->cap - 1 - t->len;
        size_t fits = n < capacity ? n : capacity;
        memcpy(t->out + t->len, s, fits);
        t->out[t->len + fits] = '\0';
    }
    t->len += n;
}

void acf_text_add(acf_text *t, const char *s) { acf_text_add_bytes(t, s, strlen(s)); }

/* vsnprintf has the same contract as the writer: it returns the full length and truncates the text. */
void acf_text_addf(acf_text *t, const char *fmt, ...) {
    size_t capacity = t->len < t->cap ? t->cap - t->len : 0;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(capacity ? t->out + t->len : NULL, capacity, fmt, ap);
    va_end(ap);
    if (n > 0) t->len += (size_t)n;
}

/* Columns are counted in bytes: help texts are ASCII. */
void acf_text_wrap(acf_text *t, const char *s, size_t indent, size_t width, size_t column) {
    bool fresh = true; /* at the start of a line: no space before the word */
    while (*(s += strspn(s, " \n"))) {
        size_t n = strcspn(s, " \n");
        if (!fresh && column + 1 + n > width) {
            acf_text_addf(t, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        if (!fresh) acf_text_add(t, " ");
        acf_text_add_bytes(t, s, n);
        column += n + (fresh ? 0 : 1);
        fresh = false;
        s += n;
    }
}

/* One comparison tells whether the text fitted: len also counts what did not. */
acf_status acf_text_done(const acf_text *t, size_t *needed) {
    if (needed) *needed = t->len + 1;
    if (t->len < t->cap) return ACF_OK;
    return acf_fail(ACF_ESPACE, "the text takes %zu bytes, the buffer has %zu", t->len + 1, t->cap);
}

/* ---- quoting ---------------------------------------------------------------------------------------------------- */

size_t acf_text_utf8_char(const char *text, size_t n) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    /* The second byte is narrower after these leads: overlong forms, surrogates, beyond U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return len;
}

/* Option values and keys end up in JSON, which must be UTF-8: jansson refuses anything else. */
bool acf_text_is_utf8(const char *s, size_t n) {
    while (n > 0) {
        size_t len = acf_text_utf8_char(s, n);
        if (len == 0) return false;
        s += len;
        n -= len;
    }
    return true;
}

/* A quoted value may come from a foreign file; an escape sequence in it could repaint the reader's terminal. */
char *acf_text_excerpt(char out[ACF_EXCERPT_MAX], const char *s) {
    const size_t capacity = ACF_EXCERPT_MAX - sizeof "...";
    size_t left = strlen(s), len = 0;
    while (left > 0) {
        size_t n = acf_text_utf8_char(s, left);
        unsigned char first = (unsigned char)*s;
        /* U+0080..U+009F are control characters too: some terminals obey them. */
        bool show = n > 1 ? !(first == 0xc2 && (unsigned char)s[1] < 0xa0) : n == 1 && first >= 0x20 && first != 0x7f;
        if (n == 0) n = 1;
        size_t add = show ? n : 1;
        if (len + add > capacity) break;
        memcpy(out + len, show ? s : "?", add);
        len += add;
        s += n;
        left -= n;
    }
    memcpy(out + len, left ? "..." : "", left ? 4 : 1);
    return out;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

#define NAME_MAX_BYTES 63

/* Config files and Python write log_level, command lines --log-level: one name. */
static char letter(char c) { return c == '_' ? '-' : c; }

bool acf_text_same_name(const char *a, const char *b) {
    while (*a && letter(*a) == letter(*b)) a++, b++;
    return *a == *b;
}

static int least(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment. Three rows of the usual table are enough: a swap looks two rows back. */
int acf_text_distance(const char *a, const char *b) {
    int rows[3][NAME_MAX_BYTES + 1];
    int *two = rows[0], *one = rows[1], *now = rows[2];
    int na = (int)strnlen(a, NAME_MAX_BYTES), nb = (int)strnlen(b, NAME_MAX_BYTES);
    for (int j = 0; j <= nb; j++) now[j] = j;
    for (int i = 1; i <= na; i++) {
        int *spare = two;
        two = one, one = now, now = spare;
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int replace = one[j - 1] + (letter(a[i - 1]) != letter(b[j - 1]));
            now[j] = least(replace, least(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]))
                now[j] = least(now[j], two[j - 2] + 1);
        }
    }
    return now[nb];
}

static bool begins(const char *word, const char *name) {
    size_t n = 0;
    for (; word[n]; n++)
        if (letter(word[n]) != letter(name[n])) return false;
    return n >= 2; /* too many names begin with the same letter for a hint */
}

/* A third of the letters: "thread" finds "threads", and "lr" does not find "json". Among equals the first wins, so
 * tables should list common names first. */
int acf_text_nearest(const char *word, const char *const *names, int n) {
    int best = -1, best_distance = 0;
    for (int i = 0; i < n; i++) {
        int distance = acf_text_distance(word, names[i]);
        size_t longer = strlen(word) > strlen(names[i]) ? strlen(word) : strlen(names[i]);
        if ((distance > (int)(longer + 2) / 3 || longer < 2) && !begins(word, names[i]))
            continue; /* one letter gives no hint */
        if (best >= 0 && distance >= best_distance) continue;
        best = i;
        best_distance = distance;
    }
    return best;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static size_t digits(const char *s) { return strspn(s, "0123456789"); }

/* The form is checked here, so that strtoll's leniency (leading blanks, trailing text) has no effect; it only converts
 * and detects overflow. */
bool acf_text_to_int(const char *s, int64_t *out) {
    size_t sign = *s == '-' || *s == '+';
    size_t n = digits(s + sign);
    if (n == 0 || s[sign + n]) return false;
    errno = 0;
    long long v = strtoll(s, NULL, 10);
    if (errno == ERANGE) return false;
    *out = v;
    return true;
}

/* The same for reals. "inf" and "nan" are refused: no option and no cell of a table may hold them, and a typing mistake
 * should not become one. A number too small to hold becomes 0, as by rounding. */
bool acf_text_to_real(const char *s, double *out) {
    const char *p = s + (*s == '-' || *s == '+');
    size_t whole = digits(p), part = 0;
    p += whole;
    if (*p == '.') p += 1 + (part = digits(p + 1));
    if (whole + part == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        if (digits(p) == 0) return false;
        p += digits(p);
    }
    if (*p) return false;
    /* The C library hands out its built-in "C" locale here, without allocating. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return false;
    double v = strtod_l(s, NULL, c);
    freelocale(c);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}

/* Pairs of words, false first: the parity of the index is the value. */
bool acf_text_to_bool(const char *s, bool *out) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(s, words[i]) == 0) {
            *out = i % 2 == 1;
            return true;
        }
    return false;
}

/* ---- numbers for people and files -------------------------------------------------------------------------------- */

/* 15 digits hold what people type, 17 hold any double: the first of them that reads back unchanged is used. */
char *acf_text_real(char out[ACF_NUMBER_MAX], double v) {
    for (int digits_shown = 15; digits_shown <= 17; digits_shown++) {
        snprintf(out, ACF_NUMBER_MAX, "%.*g", digits_shown, v);
        /* printf writes the locale's decimal point, which may have several bytes. */
        char *point = out + strspn(out, "+-0123456789e");
        size_t n = strcspn(point, "+-0123456789e");
        if (n > 0) {
            memmove(point + 1, point + n, strlen(point + n) + 1);
            *point = '.';
        }
        double back;
        if (acf_text_to_real(out, &back) && back == v) break;
    }
    return out;
}

char *acf_text_bytes(char out[ACF_NUMBER_MAX], uint64_t bytes) {
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, ACF_NUMBER_MAX, "%d B", (int)bytes);
        return out;
    }
    size_t u = 0;
    while (u + 1 < sizeof unit / sizeof unit[0] && bytes >> 10 * (u + 2)) u++;
    /* Whole arithmetic: "%.1f" would follow the locale. One decimal, rounded down: 1023.9 never shows as 1024.0. */
    uint64_t whole = bytes >> 10 * (u + 1), rest = (bytes >> 10 * u) & 1023;
    snprintf(out, ACF_NUMBER_MAX, "%u.%u %s", (unsigned)whole, (unsigned)(rest * 10 / 1024), unit[u]);
    return out;
}

/* Two units at most: an estimate is no more exact than "2h07m". */
char *acf_text_duration(char out[ACF_NUMBER_MAX], double seconds) {
    if (!(seconds >= 0.0)) seconds = 0.0; /* the clock stepped back, or 0/0 */
    if (seconds > 86400e4) seconds = 86400e4;
    long long tenths = llround(seconds * 10.0), s = llround(seconds);
    if (tenths < 100)
        snprintf(out, ACF_NUMBER_MAX, "%lld.%lld s", tenths / 10, tenths % 10);
    else if (s < 60)
        snprintf(out, ACF_NUMBER_MAX, "%lld s", s);
    else if (s < 3600)
        snprintf(out, ACF_NUMBER_MAX, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, ACF_NUMBER_MAX, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, ACF_NUMBER_MAX, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return out;
}
