/* One record in memory: see csv_scan.h.
 *
 * This is hot: every byte of every table passes through it, and most bytes are digits. The relevant bytes
 * (separator, quote, line ends) are found 64 at a time. The comparisons compile to vector code and are packed into
 * one word, and only these bytes are inspected. A record is scanned from its beginning each time, without state;
 * this reads at most one chunk more than its length. */
#include "table/csv_scan.h"

#include "base/arena.h"
#include "base/text.h"

#include <string.h>

#define CHUNK 64

static bool is_white(char c) { return c == ' ' || c == '\t'; }
static bool is_line_end(char c) { return c == '\n' || c == '\r'; }

void acf_scan_free(acf_scan *s) {
    acf_release(s->field);
    s->field = NULL;
    s->cap = 0;
}

bool acf_scan_blank(const acf_scan *s) {
    return s->n == 0 || (s->n == 1 && s->field[0].length == 0 && !s->field[0].quoted);
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Reserves memory for all fields that can end in a chunk, so that the loop over it needs no check. */
static acf_scan_end reserve(acf_scan *s) {
    if (s->cap - s->n > CHUNK) return ACF_SCAN_RECORD;
    if (s->n > ACF_CSV_FIELDS_MAX) return ACF_SCAN_FIELDS;
    int64_t cap = s->cap ? 2 * s->cap : 256;
    acf_field *more = acf_alloc((size_t)cap * sizeof *more, "the fields of a record");
    if (!more) return ACF_SCAN_MEMORY;
    if (s->n) memcpy(more, s->field, (size_t)s->n * sizeof *more);
    acf_release(s->field);
    s->field = more;
    s->cap = cap;
    return ACF_SCAN_RECORD;
}

/* An unquoted field: [begin, end) between two separators. */
static inline void put_plain(acf_scan *s, const char *begin, const char *end) {
    acf_field *f = &s->field[s->n++];
    f->raw = begin;
    f->raw_length = (size_t)(end - begin);
    while (begin < end && is_white(*begin)) begin++;
    while (begin < end && is_white(end[-1])) end--;
    f->text = begin;
    f->length = (size_t)(end - begin);
    f->quoted = false;
}

/* Counts lines as an editor does: CR LF is one line end. */
static int64_t count_lines(const char *p, const char *end) {
    int64_t n = 0;
    for (char before = 0; p < end; before = *p++) n += *p == '\r' || (*p == '\n' && before != '\r');
    return n;
}

/* Adds a quoted field that begins at raw and whose quote opens at `open`. On ACF_SCAN_RECORD *next is what ends it:
 * a separator, a line end, or the end of the input. */
static acf_scan_end put_quoted(acf_scan *s, const char *raw, const char *open, const char *end, bool eof,
                               const char **next) {
    const char *close = open + 1;
    int64_t doubled = 0;
    s->wrong = open;
    s->open = true;
    for (;; close += 2, doubled++) {
        close = memchr(close, s->quote, (size_t)(end - close));
        if (!close) return eof ? ACF_SCAN_OPEN : ACF_SCAN_MORE;
        if (close + 1 == end || close[1] != s->quote)
            break; /* at the end of the block: perhaps the first of two quotes; MORE below */
    }
    s->open = false;
    const char *p = close + 1;
    bool runs = s->separator == ' ';
    if (!runs) /* with white space as separator, the white space after the quote separates */
        while (p < end && is_white(*p) && *p != s->separator) p++;
    if (p == end && !eof) return ACF_SCAN_MORE;
    if (p < end && !is_line_end(*p) && *p != s->separator && !(runs && is_white(*p))) {
        s->wrong = p;
        return ACF_SCAN_BEHIND;
    }
    s->lines += count_lines(open + 1, close);
    s->escaped += doubled > 0;
    s->field[s->n++] = (acf_field){open + 1, (size_t)(close - open - 1), raw, (size_t)(p - raw), true};
    *next = p;
    return ACF_SCAN_RECORD;
}

void acf_scan_unescape(acf_scan *s, char *out) {
    for (int64_t j = 0; j < s->n; j++) {
        acf_field *f = &s->field[j];
        if (!f->quoted || !memchr(f->text, s->quote, f->length)) continue;
        char *to = out;
        for (size_t i = 0; i < f->length; i++) {
            *to++ = f->text[i];
            i += f->text[i] == s->quote;
        }
        f->text = out;
        f->length = (size_t)(to - out);
        out = to;
    }
}

/* The record ends at p, with a line end or with the input. A lone CR ends one too; the next byte shows whether it is
 * alone. */
static acf_scan_end finish(acf_scan *s, const char *begin, const char *p, const char *end, bool eof) {
    if (p < end && *p == '\r' && p + 1 == end && !eof) return ACF_SCAN_MORE;
    s->end_length = p == end ? 0 : *p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1;
    s->lines += p < end;
    s->bytes = (size_t)(p - begin) + s->end_length;
    return s->n > ACF_CSV_FIELDS_MAX ? ACF_SCAN_FIELDS : ACF_SCAN_RECORD;
}

/* ---- records with a separator ------------------------------------------------------------------------------------ */

/* Bit i: byte i is one of the four. First one byte each, which vectorises. Then eight of those bytes (0 or 1) become
 * eight bits: a multiplication puts byte k at bit 56 + k, where none overlap. */
static inline uint64_t marks(const char *p, char separator, char quote) {
    uint8_t flag[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        flag[i] = (uint8_t)((p[i] == separator) | (p[i] == quote) | (p[i] == '\n') | (p[i] == '\r'));
    uint64_t bits = 0;
    for (int k = 0; k < CHUNK / 8; k++) {
        uint64_t eight;
        memcpy(&eight, flag + 8 * k, 8);
        bits |= (eight * 0x0102040810204080u >> 56) << 8 * k;
    }
    return bits;
}

/* Only white space precedes: a quote here opens the field. */
static bool white_between(const char *p, const char *end) {
    while (p < end && is_white(*p)) p++;
    return p == end;
}

/* Fields end at separators, the record at a line end. put_quoted handles a quote that opens a field; chunks continue
 * after it. */
static acf_scan_end scan_separated(acf_scan *s, const char *begin, const char *end, bool eof) {
    const char *field = begin, *p = begin; /* start of the current field; start of the chunk */
    while (p < end) {
        acf_scan_end capacity = reserve(s);
        if (capacity != ACF_SCAN_RECORD) return capacity;
        uint64_t bits = marks(p, s->separator, s->quote);
        if (end - p < CHUNK) bits &= ((uint64_t)1 << (end - p)) - 1;
        const char *chunk = p;
        p += CHUNK;
        for (; bits; bits &= bits - 1) {
            const char *at = chunk + __builtin_ctzll(bits);
            if (*at == s->separator) {
                put_plain(s, field, at);
                field = at + 1;
            } else if (is_line_end(*at)) {
                put_plain(s, field, at);
                return finish(s, begin, at, end, eof);
            } else if (white_between(field, at)) { /* a quote that opens a field; chunks continue after it */
                acf_scan_end r = put_quoted(s, field, at, end, eof, &p);
                if (r != ACF_SCAN_RECORD) return r;
                if (p == end || is_line_end(*p)) return finish(s, begin, p, end, eof);
                field = ++p;
                break;
            }
        }
    }
    if (!eof) return ACF_SCAN_MORE;
    put_plain(s, field, end);
    return finish(s, begin, end, end, eof);
}

/* ---- records of white-space columns ------------------------------------------------------------------------------ */

/* Byte by byte: tables with white space as separator are rare and small, and half the speed is enough. */
static acf_scan_end scan_runs(acf_scan *s, const char *begin, const char *end, bool eof) {
    const char *raw = begin;
    for (;;) {
        const char *p = raw;
        while (p < end && is_white(*p)) p++;
        if (p == end && !eof) return ACF_SCAN_MORE;
        if (p == end || is_line_end(*p)) { /* white space after the last field belongs to it */
            if (s->n) s->field[s->n - 1].raw_length = (size_t)(p - s->field[s->n - 1].raw);
            return finish(s, begin, p, end, eof);
        }
        acf_scan_end r = reserve(s);
        if (r == ACF_SCAN_RECORD && *p == s->quote) {
            r = put_quoted(s, raw, p, end, eof, &p);
        } else if (r == ACF_SCAN_RECORD) {
            while (p < end && !is_white(*p) && !is_line_end(*p)) p++;
            if (p == end && !eof) return ACF_SCAN_MORE;
            put_plain(s, raw, p);
        }
        if (r != ACF_SCAN_RECORD) return r;
        raw = p + (p < end && is_white(*p));
    }
}

acf_scan_end acf_scan_record(acf_scan *s, const char *begin, const char *end, bool eof) {
    s->n = s->lines = s->escaped = 0;
    s->open = false;
    return s->separator == ' ' ? scan_runs(s, begin, end, eof) : scan_separated(s, begin, end, eof);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Whether this byte would end the field outside of quotes. */
static bool breaks(const acf_dialect *d, char c) {
    return c == d->separator || is_line_end(c) || (d->separator == ' ' && is_white(c));
}

static bool must_quote(const acf_dialect *d, const char *text, size_t n) {
    if (n == 0 || is_white(text[0]) || is_white(text[n - 1])) return true;
    for (size_t i = 0; i < n; i++)
        if (breaks(d, text[i]) || text[i] == d->quote) return true;
    return false;
}

/* Counts beyond cap, so that one call returns the length needed. */
static void put_byte(char *out, size_t cap, size_t *n, char c) {
    if (*n < cap) out[*n] = c;
    (*n)++;
}

size_t acf_csv_quote(const acf_dialect *d, const char *text, size_t length, char *out, size_t cap, bool *clean) {
    bool must = must_quote(d, text, length), able = d->quote != '\n';
    size_t n = 0;
    if (clean) *clean = (!must || able) && acf_text_is_utf8(text, length) && (length == 0 || !memchr(text, 0, length));
    if (must && able) put_byte(out, cap, &n, d->quote);
    for (size_t i = 0; i < length; i++) {
        put_byte(out, cap, &n, !able && breaks(d, text[i]) ? '_' : text[i]);
        if (able && text[i] == d->quote) put_byte(out, cap, &n, d->quote);
    }
    if (must && able) put_byte(out, cap, &n, d->quote);
    if (n == 0 && d->separator == ' ') put_byte(out, cap, &n, '_');
    return n;
}
