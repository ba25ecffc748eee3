/* Numbers in cells: see number.h.
 *
 *     scan: sign, digits -> m (19 of them fit 64 bits), power of ten e            value = m * 10^e
 *           m < 2^53, |e| <= 22      one multiplication or division of two exact doubles: rounded once (Clinger 1990)
 *           m < 2^64, |e| <= 19      exact 128-bit integers, rounded once
 *           the rest                 the C library, on a copy in the "C" locale
 *
 * The second case covers what Python and R write: 16 or 17 digits. It is an order of magnitude faster than strtod. */
#define _GNU_SOURCE /* strtod_l */
#include "table/number.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS_EXACT 19 /* any 19 decimal digits fit 64 bits */
/* No double, and no midpoint of two doubles, has more than 768 significant digits. Those digits, and a last one that
 * says whether anything follows, round as all digits would. */
#define DIGITS_KEPT 800

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct scanned {
    const char *begin, *end; /* digits and point */
    const char *point;       /* NULL: none */
    uint64_t m;       /* value of all digits; with more than DIGITS_EXACT significant ones, only the lowest 64 bits */
    int64_t fraction; /* digits after the point */
    int64_t exponent; /* as written */
    bool negative;
} scanned;

/* Far above any exponent that matters. Beyond it, adding a number of digits could overflow. */
#define EXPONENT_MAX ((int64_t)1 << 40)

static bool scan_exponent(const char *p, const char *end, int64_t *out) {
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    int64_t v = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') return false;
        if (v < EXPONENT_MAX) v = v * 10 + (*p - '0');
    }
    *out = negative ? -v : v;
    return true;
}

/* Checks the form only: false if the text is not a number. */
static bool scan(const char *p, const char *end, scanned *s) {
    s->point = NULL;
    s->negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    s->begin = p;
    s->m = 0;
    for (; p < end; p++) {
        unsigned digit = (unsigned)(*p - '0');
        if (digit <= 9) {
            s->m = s->m * 10 + digit;
        } else {
            if (*p != '.' || s->point) break;
            s->point = p;
        }
    }
    s->end = p;
    s->exponent = 0;
    s->fraction = s->point ? p - s->point - 1 : 0;
    if (p - s->begin == (s->point != NULL)) return false; /* no digit at all */
    return p == end || ((*p == 'e' || *p == 'E') && scan_exponent(p + 1, end, &s->exponent));
}

/* Number of digits from the first that is not 0. That digit becomes the beginning. */
static int64_t significant(scanned *s) {
    while (s->begin < s->end && (*s->begin == '0' || *s->begin == '.')) s->begin++;
    return s->end - s->begin - (s->point && s->point >= s->begin);
}

static const uint64_t ten[DIGITS_EXACT + 1] = {1u,
                                               10u,
                                               100u,
                                               1000u,
                                               10000u,
                                               100000u,
                                               1000000u,
                                               10000000u,
                                               100000000u,
                                               1000000000u,
                                               10000000000u,
                                               100000000000u,
                                               1000000000000u,
                                               10000000000000u,
                                               100000000000000u,
                                               1000000000000000u,
                                               10000000000000000u,
                                               100000000000000000u,
                                               1000000000000000000u,
                                               10000000000000000000u};

/* m / 10^k, rounded once. With both shifted to their full 64 bits the quotient has 63 or 64 bits, ten more than a
 * double keeps. The remainder, or-ed into the last bit, decides ties and nothing else; the conversion then rounds. */
static double divide(uint64_t m, int64_t k) {
    int up_m = __builtin_clzll(m), up_d = __builtin_clzll(ten[k]);
    uint64_t d = ten[k] << up_d;
    unsigned __int128 n = (unsigned __int128)(m << up_m) << 63;
    uint64_t q = (uint64_t)(n / d);
    q |= (uint64_t)(n % d != 0);
    return ldexp((double)q, up_d - up_m - 63);
}

/* The C library's strtod, on at most DIGITS_KEPT digits: the text may have millions and has no NUL. */
static double slow(scanned *s) {
    char copy[DIGITS_KEPT + 48];
    int64_t digits = significant(s), n = 0, kept = digits < DIGITS_KEPT ? digits : DIGITS_KEPT;
    const char *p = s->begin;
    for (; n < kept; p++)
        if (*p != '.') copy[n++] = *p;
    bool more = false;
    for (; p < s->end && !more; p++) more = *p >= '1';
    if (more) copy[n++] = '1';
    /* The copy has no point: its last digit stands for 10^(dropped digits - fraction + exponent). */
    long long e = digits - n - s->fraction + s->exponent;
    snprintf(copy + n, sizeof copy - (size_t)n, "e%lld", e > INT_MAX ? INT_MAX : e < -INT_MAX ? -INT_MAX : e);
    /* The C library returns its built-in "C" locale here, without allocating. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return NAN;
    double v = strtod_l(copy, NULL, c);
    freelocale(c);
    return v;
}

/* Powers of ten that are exact doubles. */
static const double exact_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double magnitude(scanned *s) {
    int64_t e = s->exponent - s->fraction;
    if (s->end - s->begin > DIGITS_EXACT && significant(s) > DIGITS_EXACT) return slow(s);
    if (s->m < (uint64_t)1 << 53 && e >= -22 && e <= 22)
        return e < 0 ? (double)s->m / exact_ten[-e] : (double)s->m * exact_ten[e];
    if (s->m == 0) return 0.0;
    if (e < -DIGITS_EXACT || e > DIGITS_EXACT) return slow(s);
    return e < 0 ? divide(s->m, -e) : (double)((unsigned __int128)s->m * ten[e]);
}

bool acf_number_parse(const char *text, size_t length, acf_number *out) {
    scanned s;
    if (!scan(text, text + length, &s)) return false;
    double v = magnitude(&s);
    if (!isfinite(v)) return false;
    int64_t decimals = s.fraction - s.exponent;
    out->value = s.negative ? -v : v;
    out->decimals = decimals < 0 ? 0 : decimals > ACF_DECIMALS_MAX ? ACF_DECIMALS_MAX : (int)decimals;
    /* 1e-400 is not an integer, though its double is: it has significant digits. (m may have wrapped to 0.) */
    out->whole = v == floor(v) && (v != 0.0 || significant(&s) == 0);
    return true;
}

bool acf_number_is_infinite(const char *text, size_t length) {
    const size_t sign = length > 0 && (*text == '-' || *text == '+');
    const char *word = text + sign;
    return (length - sign == 3 && strncasecmp(word, "inf", 3) == 0) ||
           (length - sign == 8 && strncasecmp(word, "infinity", 8) == 0);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

char *acf_number_fixed(char out[ACF_NUMBER_FIXED_MAX], double v, int decimals) {
    snprintf(out, ACF_NUMBER_FIXED_MAX, "%.*f", decimals, v);
    /* printf writes the locale's decimal point, which may have several bytes. */
    char *point = out + strspn(out, "-0123456789");
    size_t n = strcspn(point, "0123456789");
    if (*point) {
        memmove(point + 1, point + n, strlen(point + n) + 1);
        *point = '.';
    }
    if (*out == '-' && out[strspn(out, "-0.")] == '\0') memmove(out, out + 1, strlen(out));
    return out;
}

/* -0.0 + 0.0 is +0.0. */
char *acf_number_shortest(char out[ACF_NUMBER_MAX], double v) { return acf_text_real(out, v + 0.0); }
