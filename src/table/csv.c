/* The reader of text tables: see csv.h.
 *
 *     source --block--> [ done | record | held ......... | slack ]     one buffer; a record is scanned in place,
 *                       0      start                     end           and its fields point into it
 *
 * When the buffered bytes end inside a record, the record moves to the front, more bytes are read after it (as many
 * as are held, or a block), and it is scanned again. Doubling keeps this linear in the size of the longest record.
 * Bytes are checked for UTF-8 as they arrive, and the position of the first invalid byte is kept. It is reported
 * with the record that contains it, so the result does not depend on block boundaries. */
#include "table/csv.h"

#include "base/arena.h"
#include "base/text.h"
#include "table/csv_dialect.h"
#include "table/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BLOCK ((size_t)1 << 18)  /* stays in a core's cache from reading to scanning */
#define SAMPLE ((size_t)1 << 18) /* size of the sample for dialect detection; more if it has fewer than SAMPLE_LINES */
#define SAMPLE_LINES 3
#define NONE SIZE_MAX

struct acf_csv {
    acf_source *source;
    acf_dialect dialect;
    acf_scan scan;
    size_t block;
    char *buffer; /* (cap + ACF_SCAN_SLACK) */
    size_t cap, start, end;
    size_t checked; /* bytes before this are valid text */
    size_t bad;     /* the first invalid byte, or NONE */
    bool eof;
    char *plain; /* fields with doubled quotes undone */
    size_t plain_cap;
    int64_t line, row;             /* of the record at start */
    int64_t columns, columns_line; /* the expected number of fields, and the line that sets it */
    acf_record header;
    void *header_memory;
};

const acf_dialect *acf_csv_dialect(const acf_csv *csv) { return &csv->dialect; }
const char *acf_csv_path(const acf_csv *csv) { return acf_source_name(csv->source); }
acf_record acf_csv_header(const acf_csv *csv) { return csv->header; }
int64_t acf_csv_columns(const acf_csv *csv) { return csv->columns; }

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Bytes of the file, safe to print. */
static const char *excerpt(char out[ACF_EXCERPT_MAX], const char *text, size_t n) {
    char copy[2 * ACF_EXCERPT_MAX]; /* longer than what is shown, so that the cut stays outside of it */
    if (n >= sizeof copy) n = sizeof copy - 1;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return acf_text_excerpt(out, copy);
}

const char *acf_separator_name(char c, char out[ACF_SEPARATOR_NAME_MAX]) {
    if (c == ' ') return "white space";
    if (c == '\t') return "tab";
    snprintf(out, ACF_SEPARATOR_NAME_MAX, "'%c'", c);
    return out;
}

/* "FILE, line 7: ..." */
static acf_status __attribute__((format(printf, 3, 4))) refuse(const acf_csv *csv, int64_t line, const char *fmt, ...) {
    char what[ACF_SENTENCE_MAX / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return acf_fail(ACF_EDATA, "%s, line %lld: %s", acf_csv_path(csv), (long long)line, what);
}

/* The number of lines that end before p, from the beginning of the current record. */
static int64_t line_of(const acf_csv *csv, const char *p) {
    int64_t line = csv->line;
    char before = 0;
    for (const char *q = csv->buffer + csv->start; q < p; before = *q++)
        line += *q == '\r' || (*q == '\n' && before != '\r');
    return line;
}

/* " ('age')" for column j if columns have names. */
static const char *column_name(const acf_csv *csv, int64_t j, char out[ACF_EXCERPT_MAX + 8]) {
    char name[ACF_EXCERPT_MAX];
    *out = '\0';
    if (j < csv->header.n)
        snprintf(out, ACF_EXCERPT_MAX + 8, " ('%s')",
                 excerpt(name, csv->header.field[j].text, csv->header.field[j].length));
    return out;
}

/* Refuses a byte that is not text. Scanning up to that byte gives its column. */
static acf_status refuse_byte(acf_csv *csv) {
    const char *begin = csv->buffer + csv->start, *bad = csv->buffer + csv->bad;
    unsigned char c = (unsigned char)*bad;
    char name[ACF_EXCERPT_MAX + 8];
    int64_t column = 1, line = line_of(csv, bad);
    if (bad > begin) {
        acf_scan_end r = acf_scan_record(&csv->scan, begin, bad, true);
        if (r == ACF_SCAN_MEMORY) return ACF_EMEMORY;
        column = r == ACF_SCAN_RECORD ? csv->scan.n : csv->scan.n + 1;
        if (csv->dialect.separator == ' ' && (bad[-1] == ' ' || bad[-1] == '\t')) column++;
    }
    column_name(csv, column - 1, name);
    if (c == 0)
        return refuse(csv, line,
                      "column %lld%s holds a NUL byte, expected text; the file is damaged, or not a text "
                      "table",
                      (long long)column, name);
    return refuse(
        csv, line,
        "column %lld%s: byte 0x%02x is not UTF-8 text; convert the file, for instance: iconv -f WINDOWS-1252 -t UTF-8",
        (long long)column, name, c);
}

/* An overlong record is most often an unclosed quote: the message shows where it opens. */
static acf_status refuse_long(const acf_csv *csv) {
    if (csv->scan.open)
        return refuse(
            csv, line_of(csv, csv->scan.wrong),
            "a quote (%c) opens here and is not closed within %zu MiB; close it, or read the file without quotes",
            csv->dialect.quote, ACF_CSV_RECORD_MAX >> 20);
    return refuse(csv, csv->line,
                  "the record that begins here is longer than %zu MiB, which is the limit; is this a text table?",
                  ACF_CSV_RECORD_MAX >> 20);
}

/* Refuses an error in quoting at scan.wrong. */
static acf_status refuse_quotes(const acf_csv *csv, acf_scan_end r) {
    const char *p = csv->scan.wrong, *end = csv->buffer + csv->end;
    char seen[ACF_EXCERPT_MAX], name[ACF_EXCERPT_MAX + 8];
    int64_t column = csv->scan.n + 1, line = line_of(csv, p);
    column_name(csv, column - 1, name);
    const char *stop = p;
    while (stop < end && *stop != '\n' && *stop != '\r') stop++;
    excerpt(seen, p, (size_t)(stop - p));
    if (r == ACF_SCAN_OPEN)
        return refuse(csv, line,
                      "column %lld%s: the quote before '%s' is never closed; close it, or read the file without quotes",
                      (long long)column, name, excerpt(seen, p + 1, (size_t)(stop - p - 1)));
    return refuse(
        csv, line,
        "column %lld%s: found '%s' after a closing quote, expected the separator; write a quote inside a quoted value "
        "twice",
        (long long)column, name, seen);
}

/* The likely cause of a wrong number of fields, most likely first. */
static void ragged_hint(const acf_csv *csv, char *out, size_t cap) {
    const acf_scan *s = &csv->scan;
    const char *begin = s->field[0].raw, *end = begin + s->bytes;
    char name[ACF_SEPARATOR_NAME_MAX];
    if (csv->row == 0 && csv->header.n + 1 == s->n && csv->header.n > 1) {
        snprintf(out, cap,
                 "the first column seems to have no name: write one (in R: write.table(..., col.names = NA))");
        return;
    }
    if (s->lines > 1) {
        snprintf(out, cap, "a quoted value in it spans %lld lines: is a closing quote missing?", (long long)s->lines);
        return;
    }
    for (const char *other = ",;\t|"; *other; other++) {
        int64_t n = 1;
        for (const char *p = begin; p < end; p++) n += *p == *other;
        if (*other == csv->dialect.separator || n != csv->columns || n == 1) continue;
        snprintf(out, cap, "with %s as separator it has as many as expected", acf_separator_name(*other, name));
        return;
    }
    if (csv->columns == 1)
        snprintf(out, cap, "remove lines above the table, or set another separator");
    else if (s->n > csv->columns)
        snprintf(out, cap, "a value that contains the separator (%s) must be quoted",
                 acf_separator_name(csv->dialect.separator, name));
    else
        snprintf(out, cap, "the line is cut short, or separators (%s) are missing",
                 acf_separator_name(csv->dialect.separator, name));
}

/* Refuses a row of the wrong length and shows where the fields diverge. */
static acf_status refuse_ragged(const acf_csv *csv) {
    const acf_scan *s = &csv->scan;
    char hint[160], seen[ACF_EXCERPT_MAX];
    bool more = s->n > csv->columns;
    const acf_field *f = &s->field[more ? csv->columns : s->n - 1];
    ragged_hint(csv, hint, sizeof hint);
    return refuse(csv, csv->line, "found %lld fields, expected %lld as in line %lld; %s '%s'; %s", (long long)s->n,
                  (long long)csv->columns, (long long)csv->columns_line,
                  more ? "the first too many is" : "it ends after", excerpt(seen, f->text, f->length), hint);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Whether these bytes are all ASCII without NUL. Written so that it vectorises. */
static bool plain_chunk(const char *p) {
    unsigned char high = 0, zero = 0;
    for (int i = 0; i < ACF_SCAN_SLACK; i++) {
        high |= (unsigned char)p[i];
        zero |= p[i] == 0;
    }
    return high < 0x80 && !zero;
}

/* Whether the character at p is incomplete but valid so far. */
static bool is_cut(const char *p, size_t n) {
    unsigned char c = (unsigned char)*p;
    size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80) return false;
    return n < whole;
}

/* Checks the bytes that have arrived. Stops at the first invalid byte, and before an incomplete character. */
static void check_text(acf_csv *csv) {
    const char *p = csv->buffer + csv->checked, *end = csv->buffer + csv->end;
    while (p < end && csv->bad == NONE) {
        if (end - p >= ACF_SCAN_SLACK && plain_chunk(p)) {
            p += ACF_SCAN_SLACK;
            continue;
        }
        /* Byte by byte through one chunk, then the fast path again. */
        for (const char *stop = end - p > ACF_SCAN_SLACK ? p + ACF_SCAN_SLACK : end; p < stop;) {
            size_t n = *p ? acf_text_utf8_char(p, (size_t)(end - p)) : 0;
            if (n == 0 && !csv->eof && is_cut(p, (size_t)(end - p))) goto done;
            if (n == 0) {
                csv->bad = (size_t)(p - csv->buffer);
                goto done;
            }
            p += n;
        }
    }
done:
    csv->checked = (size_t)(p - csv->buffer);
}

/* Makes space for `need` bytes from the start of the record, which moves to the front. */
static acf_status make_room(acf_csv *csv, size_t need) {
    size_t held = csv->end - csv->start;
    char *to = csv->buffer;
    if (need > csv->cap) {
        need += need / 4; /* the next record may be a little longer */
        to = acf_alloc(need + ACF_SCAN_SLACK, "a block of a table");
        if (!to) return ACF_EMEMORY;
    }
    if (held) memmove(to, csv->buffer + csv->start, held);
    if (to != csv->buffer) {
        acf_release(csv->buffer);
        csv->buffer = to;
        csv->cap = need;
    }
    csv->checked -= csv->start; /* bad is NONE, or start is 0: an invalid byte is reported before more bytes are read */
    csv->start = 0;
    csv->end = held;
    return ACF_OK;
}

/* Reads more bytes after those held: a block, or as many as are held. */
static acf_status fill(acf_csv *csv) {
    size_t held = csv->end - csv->start, more = held > csv->block ? held : csv->block, got;
    ACF_TRY(make_room(csv, held + more));
    ACF_TRY(acf_source_read(csv->source, csv->buffer + held, more, &got));
    csv->end += got;
    csv->eof = got < more;
    memset(csv->buffer + csv->end, 0, ACF_SCAN_SLACK);
    check_text(csv);
    return ACF_OK;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* A blank line as the one cell of a one-column table. With white space as separator it has no field, so one is
 * added. */
static void make_cell(acf_csv *csv) {
    acf_scan *s = &csv->scan;
    const char *begin = csv->buffer + csv->start;
    if (s->n) return;
    s->field[0] = (acf_field){begin, 0, begin, s->bytes - s->end_length, false};
    s->n = 1;
}

/* Scans the record at start, all of it in the buffer; scan.bytes = 0 at the end of the file. Blank lines are skipped
 * unless they are cells. */
static acf_status scan_next(acf_csv *csv, bool cells) {
    for (;;) {
        size_t held = csv->end - csv->start;
        if (held == 0 && csv->eof) {
            csv->scan.bytes = csv->scan.end_length = 0;
            return ACF_OK;
        }
        const char *begin = csv->buffer + csv->start;
        acf_scan_end r =
            held == 0 ? ACF_SCAN_MORE : acf_scan_record(&csv->scan, begin, csv->buffer + csv->end, csv->eof);
        size_t reach = r == ACF_SCAN_RECORD   ? csv->scan.bytes
                       : r == ACF_SCAN_BEHIND ? (size_t)(csv->scan.wrong - begin)
                                              : held;
        if (r == ACF_SCAN_MEMORY) return ACF_EMEMORY;
        if (r == ACF_SCAN_FIELDS)
            return refuse(csv, csv->line, "more than %d fields, which is the limit; is this a text table?",
                          ACF_CSV_FIELDS_MAX);
        if (csv->bad < csv->start + reach) return refuse_byte(csv);
        if (reach > ACF_CSV_RECORD_MAX) return refuse_long(csv);
        if (r == ACF_SCAN_OPEN || r == ACF_SCAN_BEHIND) return refuse_quotes(csv, r);
        if (r == ACF_SCAN_RECORD && cells) make_cell(csv);
        if (r == ACF_SCAN_RECORD && (cells || !acf_scan_blank(&csv->scan))) return ACF_OK;
        if (r == ACF_SCAN_MORE) {
            ACF_TRY(fill(csv));
        } else {
            csv->line += csv->scan.lines;
            csv->start += csv->scan.bytes;
        }
    }
}

/* Undoes doubled quotes in separate memory: raw must not change. */
static acf_status unescape(acf_csv *csv) {
    if (csv->scan.escaped == 0) return ACF_OK;
    if (csv->scan.bytes > csv->plain_cap) {
        acf_release(csv->plain);
        csv->plain_cap = 0;
        csv->plain = acf_alloc(2 * csv->scan.bytes, "a record");
        if (!csv->plain) return ACF_EMEMORY;
        csv->plain_cap = 2 * csv->scan.bytes;
    }
    acf_scan_unescape(&csv->scan, csv->plain);
    return ACF_OK;
}

/* Returns the scanned record and moves past it. */
static void take(acf_csv *csv, acf_record *out) {
    const acf_scan *s = &csv->scan;
    const char *end = csv->buffer + csv->start + s->bytes - s->end_length;
    *out = (acf_record){s->n, csv->row, csv->line, s->field, end, s->end_length};
    csv->line += s->lines;
    csv->start += s->bytes;
    csv->row++;
}

/* Some programs end every line but the header with a separator. The empty cell after it is dropped; the separator
 * becomes part of the line end. */
static void drop_last(acf_csv *csv) {
    acf_scan *s = &csv->scan;
    const acf_field *last = &s->field[s->n - 1];
    if (s->n != csv->columns + 1 || last->length > 0 || last->quoted || s->separator == ' ') return;
    s->end_length += last->raw_length + 1;
    s->n--;
}

/* A record that fails is not consumed: the next call fails in the same way. */
acf_status acf_csv_next(acf_csv *csv, acf_record *out) {
    ACF_TRY(scan_next(csv, csv->columns == 1));
    if (csv->scan.bytes == 0) {
        *out = (acf_record){.row = csv->row, .line = csv->line};
        return ACF_OK;
    }
    drop_last(csv);
    if (csv->scan.n != csv->columns) return refuse_ragged(csv);
    ACF_TRY(unescape(csv));
    take(csv, out);
    return ACF_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* UTF-16 is what spreadsheets call "Unicode text". Every other byte of a Western table is then NUL, and an error
 * about NUL bytes would not help. */
static acf_status check_encoding(const acf_csv *csv, size_t n) {
    const unsigned char *b = (const unsigned char *)csv->buffer;
    size_t zeros[2] = {0, 0};
    if (n > 1000) n = 1000;
    for (size_t i = 0; i < n; i++) zeros[i % 2] += b[i] == 0;
    bool mark = n >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff));
    bool every_other = n >= 8 && ((zeros[0] > n / 4 && zeros[1] == 0) || (zeros[1] > n / 4 && zeros[0] == 0));
    if (mark || every_other)
        return acf_fail(
            ACF_EDATA,
            "%s is UTF-16 text, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8, or save it as \"CSV UTF-8\"",
            acf_csv_path(csv));
    return ACF_OK;
}

static bool has_lines(const char *p, size_t n, int lines) {
    for (size_t i = 0; i < n && lines > 0; i++) lines -= p[i] == '\n' || p[i] == '\r';
    return lines == 0;
}

/* Reads the sample for dialect detection: SAMPLE bytes, twice as many, ... until it holds some lines. Its size
 * depends on the file alone. */
static acf_status read_sample(acf_csv *csv, size_t *n) {
    for (size_t size = SAMPLE;; size *= 2) {
        while (csv->end < size && !csv->eof) ACF_TRY(fill(csv));
        *n = csv->end < size ? csv->end : size;
        if (*n < size || has_lines(csv->buffer, *n, SAMPLE_LINES)) return ACF_OK;
        if (size > ACF_CSV_RECORD_MAX) return has_lines(csv->buffer, *n, 1) ? ACF_OK : refuse_long(csv);
    }
}

/* The offset of the first record: after a byte order mark and Excel's "sep=" line. */
static size_t marks_length(const acf_csv *csv) { return (csv->dialect.bom ? 3 : 0) + strlen(csv->dialect.preamble); }

static void skip_mark(acf_csv *csv) {
    csv->line = *csv->dialect.preamble ? 2 : 1;
    csv->row = 0;
    csv->start += marks_length(csv);
}

/* "sep=;" in the first line, with or without quotes, names the separator for Excel. Returns its length with the line
 * end; 0: no such line. */
static size_t preamble_at(const char *p, size_t n, char *separator) {
    const size_t quoted = n > 0 && *p == '"';
    size_t at = quoted + 4;
    if (n < at + 2 + quoted || strncasecmp(p + quoted, "sep=", 4) != 0) return 0;
    *separator = p[at++];
    if (quoted && p[at++] != '"') return 0;
    if (*separator != '\t' &&
        (*separator <= ' ' || *separator == '"' || *separator > '~' || (*separator >= '0' && *separator <= '9')))
        return 0;
    if (p[at] == '\n') return at + 1;
    if (p[at] != '\r') return 0;
    return at + 1 + (at + 1 < n && p[at + 1] == '\n');
}

/* Sets the separator and quote of the scanner. The sample stays in the buffer and is read as the first records. */
static acf_status find_dialect(acf_csv *csv, const acf_csv_want *want) {
    size_t n;
    ACF_TRY(read_sample(csv, &n));
    ACF_TRY(check_encoding(csv, n));
    bool bom = n >= 3 && memcmp(csv->buffer, "\xef\xbb\xbf", 3) == 0;
    const size_t mark = bom ? 3 : 0;
    acf_csv_want known = *want;
    char separator = 0;
    const size_t first = preamble_at(csv->buffer + mark, n - mark, &separator);
    if (first && !known.separator) known.separator = separator;
    if (n > mark + first)
        ACF_TRY(acf_dialect_detect(csv->buffer + mark + first, n - mark - first, csv->eof && n == csv->end, &known,
                                   &csv->dialect));
    csv->dialect.bom = bom;
    memcpy(csv->dialect.preamble, csv->buffer + mark, first);
    csv->scan.separator = csv->dialect.separator;
    csv->scan.quote = csv->dialect.quote;
    return ACF_OK;
}

/* Moves a pointer into the buffer to the same place in its copy. Text without doubled quotes is in the buffer, other
 * text in csv->plain. */
static const char *moved(const acf_csv *csv, const char *p, const char *copy) {
    const char *begin = csv->buffer + csv->start;
    bool inside = (uintptr_t)p >= (uintptr_t)begin && (uintptr_t)p <= (uintptr_t)begin + csv->scan.bytes;
    return inside ? copy + (p - begin) : copy + csv->scan.bytes + (p - csv->plain);
}

/* Copies the names, because the buffer is overwritten. One block: fields, the record's bytes, fields with doubled
 * quotes undone. */
static acf_status keep_header(acf_csv *csv) {
    const acf_scan *s = &csv->scan;
    const int64_t nameless = csv->dialect.rownames; /* columns before the first name */
    size_t fields = (size_t)(s->n + nameless) * sizeof *s->field, plain = s->escaped ? s->bytes : 0;
    char *memory = acf_alloc(fields + s->bytes + plain, "a header"), *copy = memory + fields;
    if (!memory) return ACF_EMEMORY;
    memcpy(copy, csv->buffer + csv->start, s->bytes);
    if (plain) memcpy(copy + s->bytes, csv->plain, plain);
    acf_field *field = (acf_field *)(void *)memory;
    if (nameless) *field = (acf_field){copy, 0, copy, 0, false};
    for (int64_t j = 0; j < s->n; j++) {
        acf_field *to = &field[j + nameless];
        *to = s->field[j];
        to->raw = moved(csv, s->field[j].raw, copy);
        to->text = moved(csv, s->field[j].text, copy);
    }
    csv->header = (acf_record){s->n + nameless, -1, csv->line, field, copy + s->bytes - s->end_length, s->end_length};
    csv->header_memory = memory;
    return ACF_OK;
}

/* The first record that is not blank sets the number of columns. If it is the header, data begin after it. In a
 * one-column table without a header, the blank lines above it are the first cells. */
static acf_status read_first(acf_csv *csv) {
    skip_mark(csv);
    ACF_TRY(scan_next(csv, false));
    if (csv->scan.bytes == 0) return acf_fail(ACF_EDATA, "%s is empty, expected a table", acf_csv_path(csv));
    csv->columns = csv->scan.n + csv->dialect.rownames;
    csv->columns_line = csv->line;
    csv->dialect.crlf = csv->scan.end_length == 2;
    if (!csv->dialect.header) return csv->columns == 1 && csv->line > 1 ? acf_csv_rewind(csv) : ACF_OK;
    ACF_TRY(unescape(csv));
    ACF_TRY(keep_header(csv));
    acf_record header;
    take(csv, &header);
    csv->row = 0;
    return ACF_OK;
}

/* Bytes that end lines, or that are parts of other characters, cannot be separators. */
static acf_status check_want(const acf_csv_want *w) {
    const char both[] = {w->separator, w->quote};
    for (int i = 0; i < 2; i++) {
        unsigned char c = (unsigned char)both[i];
        bool none = i == 1 && c == '\n';
        if (c == 0 || none || (c >= ' ' && c < 0x7f && !(i == 1 && c == ' ')) || (i == 0 && c == '\t')) continue;
        return acf_fail(ACF_EUSAGE, "byte 0x%02x cannot be the %s of a table, expected a printable ASCII character%s",
                        c, i ? "quote" : "separator", i ? "" : " or a tab");
    }
    if (w->separator && w->separator == w->quote)
        return acf_fail(ACF_EUSAGE, "'%c' cannot be both the separator and the quote of a table", w->separator);
    return ACF_OK;
}

acf_status acf_csv_open_blocks(const char *path, const acf_csv_want *want, size_t block, acf_csv **out) {
    static const acf_csv_want nothing;
    if (!want) want = &nothing;
    ACF_TRY(check_want(want));
    acf_csv *csv = acf_alloc_zero(sizeof *csv, "a table reader");
    if (!csv) return ACF_EMEMORY;
    csv->block = block;
    csv->bad = NONE;
    csv->line = 1;
    acf_status status = acf_source_open(path, &csv->source);
    if (status == ACF_OK) status = find_dialect(csv, want);
    if (status == ACF_OK) status = read_first(csv);
    if (status != ACF_OK) {
        acf_csv_close(csv);
        return status;
    }
    *out = csv;
    return ACF_OK;
}

acf_status acf_csv_open(const char *path, const acf_csv_want *want, acf_csv **out) {
    return acf_csv_open_blocks(path, want, BLOCK, out);
}

/* The header's fields still belong to csv. */
acf_status acf_csv_again(const acf_csv *csv, acf_csv **out) {
    acf_csv *again = acf_alloc_zero(sizeof *again, "a table reader");
    if (!again) return ACF_EMEMORY;
    again->dialect = csv->dialect;
    again->scan.separator = csv->scan.separator;
    again->scan.quote = csv->scan.quote;
    again->block = csv->block;
    again->columns = csv->columns;
    again->columns_line = csv->columns_line;
    again->header = csv->header;
    acf_status status = acf_source_again(csv->source, &again->source);
    if (status == ACF_OK) status = acf_csv_rewind(again);
    if (status)
        acf_csv_close(again);
    else
        *out = again;
    return status;
}

void acf_csv_close(acf_csv *csv) {
    if (!csv) return;
    acf_source_close(csv->source);
    acf_scan_free(&csv->scan);
    acf_release(csv->buffer);
    acf_release(csv->plain);
    acf_release(csv->header_memory);
    acf_release(csv);
}

/* Keeps the dialect. The header is skipped, as it was kept. */
acf_status acf_csv_rewind(acf_csv *csv) {
    ACF_TRY(acf_source_rewind(csv->source));
    csv->start = csv->end = csv->checked = 0;
    csv->bad = NONE;
    csv->eof = false;
    while (csv->end < marks_length(csv) && !csv->eof) ACF_TRY(fill(csv));
    skip_mark(csv);
    if (!csv->dialect.header) return ACF_OK;
    ACF_TRY(scan_next(csv, false));
    acf_record header;
    take(csv, &header);
    csv->row = 0;
    return ACF_OK;
}
