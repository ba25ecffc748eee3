/* Detection of the dialect: see csv_dialect.h for the rules. Runs once per table, on some hundred kilobytes: a few
 * milliseconds. */
#include "table/csv_dialect.h"

#include "base/arena.h"
#include "table/calendar.h"
#include "table/na_strings.h"
#include "table/notation.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 1000             /* records of a block that are used */
#define CELLS_MAX ((int64_t)1 << 18) /* fewer records of wide tables */

/* ---- the records of the block ------------------------------------------------------------------------------------ */

typedef struct sample {
    const char *at, *begin, *end;
    bool eof;
    acf_scan scan;
} sample;

typedef enum next { RECORD, BROKEN, END, NO_MEMORY } next;

static bool is_line_end(char c) { return c == '\n' || c == '\r'; }
static bool is_white(char c) { return c == ' ' || c == '\t'; }

/* Reads the next record that is not blank. A line that cannot be split is BROKEN, and the line after it is next. A
 * record cut off by the end of the block is the END. If it fills half of the block, a quote was opened by mistake
 * and it is BROKEN. */
static next sample_next(sample *s) {
    while (s->at < s->end) {
        acf_scan_end r = acf_scan_record(&s->scan, s->at, s->end, s->eof);
        if (r == ACF_SCAN_MEMORY) return NO_MEMORY;
        if (r == ACF_SCAN_MORE && (!s->scan.open || s->at - s->begin > (s->end - s->begin) / 2)) return END;
        if (r == ACF_SCAN_RECORD) {
            s->at += s->scan.bytes;
            if (acf_scan_blank(&s->scan)) continue;
            return RECORD;
        }
        while (s->at < s->end && !is_line_end(*s->at)) s->at++;
        while (s->at < s->end && is_line_end(*s->at)) s->at++;
        return BROKEN;
    }
    return END;
}

/* ---- separator and quote ----------------------------------------------------------------------------------------- */

static const char separators[] = ",;\t| ";

/* A number, possibly with thousands separators or a unit. */
static bool is_number(const char *p, size_t n) {
    acf_notation_survey ignore = {0};
    return acf_notation_look(&ignore, p, n);
}

/* 1 2, but not 2020-01-01 10:00 or 1 234 */
static bool is_several_numbers(const char *p, size_t n) {
    bool gap = false;
    if (is_number(p, n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!strchr("0123456789+-.,eE \t", p[i]) || (p[i] == '-' && i > 0 && isdigit((unsigned char)p[i - 1])))
            return false;
        gap |= p[i] == ' ' || p[i] == '\t';
    }
    return gap;
}

/* 1,5 or 1,234: a comma between digits that a cell may contain if the table has another separator. */
static bool is_comma_number(const char *p, size_t n) {
    bool digit = false;
    for (size_t i = 0; i < n; i++) {
        if (!strchr("0123456789+-.,eE%", p[i])) return false;
        digit |= isdigit((unsigned char)p[i]) != 0;
    }
    return digit && isdigit((unsigned char)p[n - 1]);
}

/* Whether a cell shows no sign of a wrong split. Inside text, a separator followed by a space is punctuation. */
static bool looks_whole(const acf_field *f, char separator) {
    const char *p = f->text;
    size_t n = f->length;
    if (f->quoted) return true;
    if (p[0] == '"' || (p[0] == '\'' && n > 1 && p[n - 1] == '\'')) return false;
    if (is_several_numbers(p, n)) return false;
    if (separator != ',' && is_comma_number(p, n)) return true;
    for (size_t i = 0; i < n; i++)
        if (p[i] && p[i] != ' ' && p[i] != separator && strchr(separators, p[i]) && (i + 1 == n || p[i + 1] != ' '))
            return false;
    return true;
}

/* How often each number of fields was seen. A block with more different numbers is not a table under this candidate. */
typedef struct counts {
    int64_t n[32], count[32];
    int kinds;
} counts;

/* Numbers are stored in order of appearance: entry 0 is that of the first record. */
static void counts_add(counts *t, int64_t n) {
    int k = 0;
    while (k < t->kinds && t->n[k] != n) k++;
    if (k == t->kinds && k < 32) t->n[t->kinds++] = n;
    if (k < 32) t->count[k]++;
}

typedef struct judgement {
    double score;
    bool padded;
} judgement;

/* Judges how well this separator and this quote make a table of the block; false: no memory. */
static bool judge(const char *text, size_t n, bool eof, char separator, char quote, judgement *out) {
    sample s = {text, text, text + n, eof, {separator, quote}};
    counts t = {.kinds = 0};
    int64_t records = 0, cells = 0, seen = 0, whole = 0, padded = 0;
    next r = END;
    while (records < RECORDS_MAX && cells < CELLS_MAX && (r = sample_next(&s)) != END && r != NO_MEMORY) {
        records++;
        if (r == BROKEN) continue;
        counts_add(&t, s.scan.n);
        bool spaces = false;
        for (int64_t j = 0; j < s.scan.n; j++) {
            const acf_field *f = &s.scan.field[j];
            if (f->quoted || f->length > 0) seen++, whole += looks_whole(f, separator);
            spaces |=
                separator != ' ' && f->raw_length > 0 && (is_white(f->raw[0]) || is_white(f->raw[f->raw_length - 1]));
        }
        cells += s.scan.n;
        padded += spaces;
    }
    acf_scan_free(&s.scan);
    if (r == NO_MEMORY) return false;
    int most = 0;
    for (int k = 1; k < t.kinds; k++)
        if (t.count[k] > t.count[most]) most = k;
    *out = (judgement){0};
    if (seen == 0) return true; /* lines of tabs alone are not a table */
    out->score = (double)t.count[most] / (double)records * (double)whole / (double)seen;
    bool one = t.n[0] == 1 && separator == ' ';
    out->score *= t.n[most] == 1 ? 0.5 : most == 0 ? 1.0 : one ? 0.4 : 0.9;
    out->padded = padded * 2 > records;
    return true;
}

/* Tries every candidate, or the specified one. If the block has no quotes, all quotes are equivalent. */
static acf_status detect_cut(const char *text, size_t n, bool eof, const acf_csv_want *want, acf_dialect *out) {
    const char *s = want->separator ? (char[]){want->separator, 0} : separators;
    const char *quotes = want->quote ? (char[]){want->quote, 0} : "\"'\n";
    double best = -1.0;
    for (; *s; s++)
        for (const char *q = quotes; *q; q++) {
            judgement j;
            if (q > quotes && !memchr(text, *q == '\n' ? '"' : *q, n)) continue; /* same result as the first quote */
            if (!judge(text, n, eof, *s, *q, &j)) return ACF_EMEMORY;
            if (j.score <= best) continue;
            best = j.score;
            out->separator = *s;
            out->quote = *q;
            out->padded = j.padded;
        }
    return ACF_OK;
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

typedef struct cell {
    const char *text;
    size_t length;
} cell;

/* The first records, rectangular. */
typedef struct grid {
    cell *cell; /* (rows, columns) owned */
    int64_t rows, columns;
} grid;

static bool same(const cell *a, const cell *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* The usual NA strings. Those of the table are found later; an error here costs one vote. */
static bool is_missing(const cell *c) { return acf_na_strings_is_usual(c->text, c->length); }

/* A number, date, time or percentage: digits and the characters between them. Letters: the exponent, and the T and Z
 * of a time stamp. */
static bool is_figure(const cell *c) {
    bool digit = false;
    for (size_t i = 0; i < c->length; i++) {
        char ch = c->text[i];
        if (isdigit((unsigned char)ch))
            digit = true;
        else if (!(strchr("+-.,:/%$ ", ch) && ch) && !(digit && strchr("eETZ", ch) && ch))
            return false;
    }
    return digit;
}

/* Whether the words of a column repeat: at most half of the first 64 are new. */
static bool repeats(const grid *g, int64_t j) {
    const cell *seen[64];
    int64_t n = 0, fresh = 0;
    for (int64_t i = 1; i < g->rows && n < 64; i++) {
        const cell *c = &g->cell[i * g->columns + j];
        if (is_missing(c)) continue;
        int64_t k = 0;
        while (k < n && !same(seen[k], c)) k++;
        fresh += k == n;
        seen[n++] = c;
    }
    return n >= 2 && fresh * 2 <= n;
}

/* 25-Jan-2022, 06:24 AM */
static bool is_when(const cell *c) {
    acf_calendar_survey ignore = {0};
    return acf_calendar_look(&ignore, c->text, c->length) >= 0;
}

/* 12 kg above 14 kg is a cell like the others; 100 m above 12.3 s is a name. */
static bool has_unit_of(const cell *a, const cell *b) {
    acf_notation_survey s[2] = {{0}, {0}};
    return acf_notation_look(&s[0], a->text, a->length) && acf_notation_look(&s[1], b->text, b->length) &&
           s[0].form[0].cells && s[1].form[0].cells && strcmp(s[0].form[0].prefix, s[1].form[0].prefix) == 0 &&
           strcmp(s[0].form[0].suffix, s[1].form[0].suffix) == 0;
}

/* The vote of column j on the first record: see csv_dialect.h. */
static int vote(const grid *g, int64_t j) {
    const cell *above = &g->cell[j];
    int64_t figures = 0, words = 0, again = 0;
    for (int64_t i = 1; i < g->rows; i++) {
        const cell *c = &g->cell[i * g->columns + j];
        if (is_missing(c)) continue;
        *(is_figure(c) || is_number(c->text, c->length) || is_when(c) ? &figures : &words) += 1;
        again += same(above, c) || has_unit_of(above, c);
    }
    if (figures + words == 0 || above->length == 0) return 0;
    if (is_figure(above) || is_when(above) || is_missing(above) || again > 0) return -1;
    return figures > 9 * words || repeats(g, j);
}

/* 0, 1, 2, ...; the first may be empty, above pandas' row numbers. */
static bool is_numbered(const grid *g) {
    int64_t first = g->cell[0].length == 0;
    for (int64_t j = first; j < g->columns; j++) {
        char number[24];
        int n = snprintf(number, sizeof number, "%lld", (long long)(j - first));
        if (!same(&g->cell[j], &(cell){number, (size_t)n})) return false;
    }
    return g->columns - first >= 5;
}

/* Whether two names are equal. Quadratic, so only among the first few thousand pairs. */
static bool has_duplicates(const grid *g) {
    int64_t n = g->columns < 256 ? g->columns : 256;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < a; b++)
            if (g->cell[a].length && same(&g->cell[a], &g->cell[b])) return true;
    return false;
}

/* ---- names that are numbers -------------------------------------------------------------------------------------- */

#define FIRST_YEAR 1500
#define LAST_YEAR 2199

/* The whole number of row i in column j, written in digits alone as a name would be. -1: something else. */
static int64_t whole_at(const grid *g, int64_t i, int64_t j) {
    const cell *c = &g->cell[i * g->columns + j];
    int64_t v = 0;
    if (c->length == 0 || c->length > 9 || (c->text[0] == '0' && c->length > 1)) return -1;
    for (size_t k = 0; k < c->length; k++) {
        if (!isdigit((unsigned char)c->text[k])) return -1;
        v = 10 * v + (c->text[k] - '0');
    }
    return v;
}

static bool is_year(int64_t v) { return v >= FIRST_YEAR && v <= LAST_YEAR; }

/* Whether columns [from, to) of row i hold years in equal steps: 1990, 1995, 2000. */
static bool are_years(const grid *g, int64_t i, int64_t from, int64_t to) {
    const int64_t step = whole_at(g, i, from + 1) - whole_at(g, i, from);
    for (int64_t j = from; j < to; j++)
        if (!is_year(whole_at(g, i, j)) || (j > from && whole_at(g, i, j) - whole_at(g, i, j - 1) != step))
            return false;
    return step != 0;
}

static bool are_rising(const grid *g, int64_t from, int64_t to) {
    for (int64_t j = from + 1; j < to; j++)
        if (whole_at(g, 0, j) <= whole_at(g, 0, j - 1)) return false;
    return true;
}

/* Whether at most a tenth of the figures under column j look like its name: years, or numbers without a decimal
 * point. */
static bool is_unlike(const grid *g, int64_t j, bool years) {
    int64_t figures = 0, like = 0;
    for (int64_t i = 1; i < g->rows; i++) {
        const cell *c = &g->cell[i * g->columns + j];
        if (is_missing(c) || !is_figure(c)) continue;
        figures++;
        like += years ? is_year(whole_at(g, i, j)) : !memchr(c->text, '.', c->length);
    }
    return figures > 0 && 10 * like <= figures;
}

/* The joint vote of the whole numbers of the first record in columns [from, to): see csv_dialect.h. False: none;
 * each counts as a single figure. */
static bool series_vote(const grid *g, int64_t from, int64_t to, int *out) {
    const bool years = to - from >= 2 && are_years(g, 0, from, to);
    bool unlike = years || (to - from >= 3 && are_rising(g, from, to));
    if (years && to - from >= 3) {
        for (int64_t i = 1; i < g->rows && unlike; i++) unlike = !are_years(g, i, from, to);
    } else {
        if (years) unlike = llabs(whole_at(g, 0, from + 1) - whole_at(g, 0, from)) == 1;
        for (int64_t j = from; j < to && unlike; j++) unlike = is_unlike(g, j, years);
    }
    *out = years;
    return unlike;
}

/* Counts the votes. */
static bool is_header(const grid *g) {
    if (is_numbered(g)) return true;
    bool twins = has_duplicates(g), words = !twins;
    int64_t votes = -(int64_t)twins;
    for (int64_t j = 0; j < g->columns;) {
        const cell *c = &g->cell[j];
        int64_t end = j;
        int together;
        while (end < g->columns && whole_at(g, 0, end) >= 0) end++;
        if (end > j && series_vote(g, j, end, &together)) {
            votes += together;
            words = false;
            j = end;
            continue;
        }
        do { /* a run that is not a series: every column votes alone */
            votes += vote(g, j);
            words &= (c->length > 0 || j == 0) && !is_figure(c) && (c->length == 0 || !is_missing(c));
            c = &g->cell[++j];
        } while (j < end);
    }
    return votes > 0 || (votes == 0 && words);
}

/* Fills the grid with the first records of the block that are as long as the first. Text of quoted fields keeps its
 * doubled quotes, which makes no difference when cells are compared. */
static acf_status read_grid(const char *text, size_t n, bool eof, const acf_dialect *d, grid *g) {
    sample s = {text, text, text + n, eof, {d->separator, d->quote}};
    next r = sample_next(&s);
    acf_status status = r == NO_MEMORY ? ACF_EMEMORY : ACF_OK;
    *g = (grid){.columns = r == RECORD ? s.scan.n : 0};
    int64_t rows = g->columns ? 2 + CELLS_MAX / g->columns : 0;
    if (rows > RECORDS_MAX) rows = RECORDS_MAX;
    if (g->columns && !(g->cell = acf_alloc((size_t)(rows * g->columns) * sizeof *g->cell, "the look at a table")))
        status = ACF_EMEMORY;
    for (; status == ACF_OK && g->rows < rows && r != END && r != NO_MEMORY; r = sample_next(&s)) {
        if (r != RECORD || s.scan.n != g->columns) continue;
        for (int64_t j = 0; j < g->columns; j++)
            g->cell[g->rows * g->columns + j] = (cell){s.scan.field[j].text, s.scan.field[j].length};
        g->rows++;
    }
    if (r == NO_MEMORY) status = ACF_EMEMORY;
    acf_scan_free(&s.scan);
    return status;
}

static acf_status detect_header(const char *text, size_t n, bool eof, acf_dialect *out) {
    grid g;
    acf_status status = read_grid(text, n, eof, out, &g);
    out->header = status == ACF_OK && g.rows > 0 && is_header(&g);
    acf_release(g.cell);
    return status;
}

/* R's write.table gives row names no name. If the last cell of every row is empty, rows only end in an extra
 * separator. */
static bool has_rownames(const char *text, size_t n, bool eof, const acf_dialect *d, bool *memory) {
    sample s = {text, text, text + n, eof, {d->separator, d->quote}};
    next r = sample_next(&s);
    bool words = r == RECORD && s.scan.n >= 2;
    const int64_t names = s.scan.n;
    int64_t rows = 0, full = 0;
    for (int64_t j = 0; words && j < names; j++) {
        const cell c = {s.scan.field[j].text, s.scan.field[j].length};
        words = c.length > 0 && !is_figure(&c);
    }
    while (words && rows < RECORDS_MAX && (r = sample_next(&s)) != END && r != NO_MEMORY) {
        words = r == RECORD && s.scan.n == names + 1;
        full += words && (s.scan.field[names].length > 0 || s.scan.field[names].quoted);
        rows++;
    }
    acf_scan_free(&s.scan);
    *memory = r != NO_MEMORY;
    return words && full > 0;
}

acf_status acf_dialect_detect(const char *text, size_t n, bool eof, const acf_csv_want *want, acf_dialect *out) {
    *out = (acf_dialect){.header = want->header == ACF_YES, .guessed = want->header == ACF_AUTO};
    ACF_TRY(detect_cut(text, n, eof, want, out));
    bool memory = true;
    out->rownames = want->header != ACF_NO && has_rownames(text, n, eof, out, &memory);
    if (!memory) return ACF_EMEMORY;
    if (out->rownames)
        out->header = true;
    else if (want->header == ACF_AUTO)
        ACF_TRY(detect_header(text, n, eof, out));
    return ACF_OK;
}
