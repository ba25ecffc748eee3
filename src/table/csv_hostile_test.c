/* Tests of csv.h with damaged and hostile files. Each common mistake gives its message, for every block size. Random
 * damage gives at worst a refusal. Every allocation may fail. AddressSanitizer checks memory. */
#define _GNU_SOURCE /* memmem */
#include "table/csv.h"

#include "base/arena.h"
#include "base/rng.h"
#include "base/text.h"
#include "harness/file_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static acf_memfile file;

static int set_up(void **state) {
    (void)state;
    file = acf_memfile_create();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_memfile_free(&file);
    return 0;
}

static const size_t blocks[] = {1, 2, 3, 7, 64, 1 << 18};
#define BLOCKS (sizeof blocks / sizeof *blocks)

/* Reads all of the file; returns the status and the number of rows read. */
static acf_status read_all(const acf_csv_want *want, size_t block, int64_t *rows) {
    acf_csv *csv = NULL;
    acf_record r = {.n = 1};
    int64_t live = acf_alloc_live();
    *rows = 0;
    acf_status status = acf_csv_open_blocks(file.path, want, block, &csv);
    if (status != ACF_OK) assert_null(csv);
    while (status == ACF_OK && r.n) {
        status = acf_csv_next(csv, &r);
        if (status == ACF_OK && r.n) *rows = r.row + 1;
    }
    if (csv && status != ACF_OK) assert_int_equal(acf_csv_next(csv, &r), status); /* fails again in the same way */
    acf_csv_close(csv);
    assert_int_equal(acf_alloc_live(), live);
    return status;
}

/* Expects a refusal after `rows` rows, with exactly this message after the file's name, for all block sizes. */
static void assert_refused(const char *text, size_t n, const acf_csv_want *want, int64_t rows, const char *sentence) {
    acf_memfile_put(&file, text, n);
    for (size_t b = 0; b < BLOCKS; b++) {
        int64_t seen;
        acf_status status = read_all(want, blocks[b], &seen);
        if (status != ACF_EDATA) fail_msg("%s instead of: %s", acf_status_name(status), sentence);
        assert_memory_equal(acf_error(), file.path, strlen(file.path));
        if (strcmp(acf_error() + strlen(file.path), sentence) != 0)
            fail_msg("block %zu:\n%s\nexpected:\n%s", blocks[b], acf_error() + strlen(file.path), sentence);
        assert_int_equal(seen, rows);
    }
}
#define REFUSED(text, want, rows, sentence) assert_refused(text, sizeof(text) - 1, want, rows, sentence)

static void ragged_rows(void **state) {
    (void)state;
    const acf_csv_want comma = {',', '"', ACF_AUTO}, runs = {' ', '"', ACF_AUTO};
    REFUSED(
        "a,b,c\n1,2,3\n4,5\n", &comma, 1,
        ", line 3: found 2 fields, expected 3 as in line 1; it ends after '5'; the line is cut short, or separators "
        "(',') are missing");
    REFUSED("\n1,2,3\n4,5,6,7,8\n", &comma, 1,
            ", line 3: found 5 fields, expected 3 as in line 2; the first too many is '7'; a value that contains the "
            "separator (',') must be quoted");
    REFUSED("a,b,c\n1,2,3\n4;5;6\n", &comma, 1,
            ", line 3: found 1 fields, expected 3 as in line 1; it ends after '4;5;6'; with ';' as separator it has as "
            "many as expected");
    REFUSED("a,b\n1,2,,\n3,4,\n", &comma, 0,
            ", line 2: found 4 fields, expected 2 as in line 1; the first too many is ''; a value that contains the "
            "separator (',') must be quoted");
    REFUSED("a b\n1 2\nx y z\n", &runs, 1,
            ", line 3: found 3 fields, expected 2 as in line 1; the first too many is 'z'; a value that contains the "
            "separator (white space) must be quoted");
    REFUSED("x y z\n1 0.1 0.2 0.3\n2 0.4 0.5\n3 0.4 0.5 0.6\n", NULL, 0,
            ", line 2: found 4 fields, expected 3 as in line 1; the first too many is '0.3'; the first column seems to "
            "have no name: write one (in "
            "R: write.table(..., col.names = NA))");
    REFUSED(
        "a,b\n1,2\n\"x\n3,4\n5,6\",7,8\n9,10\n", &comma, 1,
        ", line 3: found 3 fields, expected 2 as in line 1; the first too many is '8'; a quoted value in it spans 3 "
        "lines: is a closing "
        "quote missing?");
    REFUSED(
        "My table\n\na,b\n1,2\n3,4\n5,6\n7,8\n", NULL, 1, /* below one name, a blank line is a cell */
        ", line 3: found 2 fields, expected 1 as in line 1; the first too many is 'b'; remove lines above the table, "
        "or set another "
        "separator");
    REFUSED("a,b\n1,2\n\x1b[31mred,\x07,\xc2\x9b\n", &comma, 1,
            ", line 3: found 3 fields, expected 2 as in line 1; the first too many is '?'; a value that contains the "
            "separator (',') must be quoted");
}

static void quotes_that_do_not_close(void **state) {
    (void)state;
    const acf_csv_want comma = {',', '"', ACF_AUTO}, bare = {',', '"', ACF_NO}, runs = {' ', '"', ACF_AUTO};
    REFUSED(
        "a,b\n1,2\n3,\"x\n5,6\n", &comma, 1,
        ", line 3: column 2 ('b'): the quote before 'x' is never closed; close it, or read the file without quotes");
    REFUSED("1,2\n\"a\nb\",\"c\"\" \nd\n", &bare, 1,
            ", line 3: column 2: the quote before 'c\"\" ' is never closed; close it, or read the file without quotes");
    REFUSED(
        "a,b\n1,2\n\"x\ny\" z,4\n5,6\n", &comma, 1,
        ", line 4: column 1 ('a'): found 'z,4' after a closing quote, expected the separator; write a quote inside a "
        "quoted value twice");
    REFUSED(
        "a b\n1 2\n\"x\"y 4\n", &runs, 1,
        ", line 3: column 1 ('a'): found 'y 4' after a closing quote, expected the separator; write a quote inside a "
        "quoted value twice");
}

#define NUL_IN(column) ": column " column " holds a NUL byte, expected text; the file is damaged, or not a text table"
#define NOT_UTF8(column, byte)                                                                                         \
    ": column " column ": byte " byte                                                                                  \
    " is not UTF-8 text; convert the file, for instance: iconv -f WINDOWS-1252 -t UTF-8"

static void bytes_that_are_not_text(void **state) {
    (void)state;
    REFUSED("a,b\n1,2\n3,x\0y\n4,5\n", NULL, 1, ", line 3" NUL_IN("2 ('b')"));
    REFUSED("a,b\n1,2\n\0", NULL, 1, ", line 3" NUL_IN("1 ('a')"));
    REFUSED("name,city\nann,K\xf6ln\n", NULL, 0, ", line 2" NOT_UTF8("2 ('city')", "0xf6"));
    REFUSED("1,2\n3,\"a\nb\n\xff\"\n", NULL, 1, ", line 4" NOT_UTF8("2", "0xff"));
    REFUSED("1,2\n\"\xc0\xaf\",5\n", NULL, 1, ", line 2" NOT_UTF8("1", "0xc0"));     /* overlong */
    REFUSED("1,2\n3,\xed\xa0\x80\n", NULL, 1, ", line 2" NOT_UTF8("2", "0xed"));     /* a surrogate */
    REFUSED("1,2\n3,\xf4\x90\x80\x80\n", NULL, 1, ", line 2" NOT_UTF8("2", "0xf4")); /* beyond Unicode */
    REFUSED("1,2\n3,\xe2\x82\n4,5\n", NULL, 1, ", line 2" NOT_UTF8("2", "0xe2"));    /* cut by a line end */
    REFUSED("1,2\n3,\xe2\x82", NULL, 1, ", line 2" NOT_UTF8("2", "0xe2"));           /* and by the end of the file */
    REFUSED("1 2\n  3 \x80\n", NULL, 1, ", line 2" NOT_UTF8("2", "0x80"));
    REFUSED("1 2\n\x80 3\n", NULL, 1, ", line 2" NOT_UTF8("1", "0x80"));
    REFUSED("n\xe4me,b\n1,2\n", NULL, 0, ", line 1" NOT_UTF8("1", "0xe4"));
    /* The first error is reported first. */
    REFUSED(
        "a,b\n1,2\n\"x\"\xff,3\n", (&(const acf_csv_want){',', '"', ACF_AUTO}), 1,
        ", line 3: column 1 ('a'): found '?,3' after a closing quote, expected the separator; write a quote inside a "
        "quoted value twice");
    char text[200] = "a,b\n"; /* the fast check looks at 64 bytes at once */
    for (size_t at = 4; at < 140; at++) {
        char sentence[200];
        memset(text + 4, 'x', 150);
        text[5] = ',', text[150] = '\n', text[at == 5 ? 6 : at] = '\x80';
        snprintf(sentence, sizeof sentence, ", line 2" NOT_UTF8("%d ('%c')", "0x80"), at == 4 ? 1 : 2,
                 at == 4 ? 'a' : 'b');
        assert_refused(text, 151, NULL, 0, sentence);
    }
}

static void files_that_are_not_tables(void **state) {
    (void)state;
    REFUSED("", NULL, 0, " is empty, expected a table");
    REFUSED("\xef\xbb\xbf", NULL, 0, " is empty, expected a table");
    REFUSED("\n \r\n\t\n", NULL, 0, " is empty, expected a table");
#define UTF16 " is UTF-16 text, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8, or save it as \"CSV UTF-8\""
    REFUSED("\xff\xfe"
            "a\0,\0b\0\n\0",
            NULL, 0, UTF16);
    REFUSED("\xfe\xff\0a\0,\0b\0\n", NULL, 0, UTF16);
    REFUSED("\xff\xfe\x2d\x4e\x87\x65", NULL, 0, UTF16); /* contains no zero byte */
    REFUSED("a\0,\0b\0\n\0001\0,\0002\0\n\0", NULL, 0, UTF16);
    REFUSED("\0a\0,\0b\0\n\0001\0,\0002\0\n", NULL, 0, UTF16);
    REFUSED("a\0\0\0,\0b\0\n\0\0\0", NULL, 0, ", line 1" NUL_IN("1"));
    int64_t rows;
    acf_csv *csv = NULL;
    assert_int_equal(acf_csv_open("/no/such/table.csv", NULL, &csv), ACF_EIO);
    assert_string_equal(acf_error(), "cannot open /no/such/table.csv: No such file or directory");
    assert_int_equal(acf_csv_open("/tmp", NULL, &csv), ACF_EIO);
    assert_string_equal(acf_error(), "cannot read /tmp: it is a folder; give a file");
    unsigned char packed[200];
    size_t n = acf_lab_gzip("a,b\n1,2\n", 8, packed, sizeof packed);
    acf_memfile_put(&file, packed, n - 1);
    assert_int_equal(read_all(NULL, 7, &rows), ACF_EDATA);
    assert_non_null(strstr(acf_error(), " is cut short: its gzip stream stops after"));
}

static void impossible_separators(void **state) {
    (void)state;
    static const struct {
        acf_csv_want want;
        const char *sentence;
    } cases[] = {{{.separator = '\n'},
                  "byte 0x0a cannot be the separator of a table, expected a printable ASCII character or a tab"},
                 {{.separator = '\x01'},
                  "byte 0x01 cannot be the separator of a table, expected a printable ASCII character or a tab"},
                 {{.separator = '\xe4'},
                  "byte 0xe4 cannot be the separator of a table, expected a printable ASCII character or a tab"},
                 {{.quote = '\r'}, "byte 0x0d cannot be the quote of a table, expected a printable ASCII character"},
                 {{.quote = '\t'}, "byte 0x09 cannot be the quote of a table, expected a printable ASCII character"},
                 {{.quote = ' '}, "byte 0x20 cannot be the quote of a table, expected a printable ASCII character"},
                 {{'|', '|', ACF_AUTO}, "'|' cannot be both the separator and the quote of a table"}};
    acf_memfile_put(&file, "a,b\n", 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows;
        assert_int_equal(read_all(&cases[i].want, 64, &rows), ACF_EUSAGE);
        assert_string_equal(acf_error(), cases[i].sentence);
    }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* A file of `n` bytes that begins and ends as given, with x in between. */
static void put_long(const char *begin, size_t n, const char *end) {
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'x', n);
    memcpy(text, begin, strlen(begin));
    memcpy(text + n - strlen(end), end, strlen(end));
    acf_memfile_put(&file, text, n);
    free(text);
}

static void assert_sentence(const acf_csv_want *want, int64_t rows, const char *sentence) {
    int64_t seen;
    assert_int_equal(read_all(want, 1 << 18, &seen), ACF_EDATA);
    assert_string_equal(acf_error() + strlen(file.path), sentence);
    assert_int_equal(seen, rows);
}

static void records_have_a_limit(void **state) {
    (void)state;
    static const char too_long[] =
        ", line 2: the record that begins here is longer than 64 MiB, which is the limit; is this a text table?";
    int64_t rows;
    put_long("a\n", 2 + ACF_CSV_RECORD_MAX, "\n"); /* the limit itself is allowed */
    assert_int_equal(read_all(&(acf_csv_want){',', '"', ACF_YES}, 1 << 18, &rows), ACF_OK);
    assert_int_equal(rows, 1);
    put_long("a\n", 3 + ACF_CSV_RECORD_MAX, "\n");
    assert_sentence(&(acf_csv_want){',', '"', ACF_YES}, 0, too_long);
    put_long("a\n", 3 + ACF_CSV_RECORD_MAX, "x");
    assert_sentence(&(acf_csv_want){',', '"', ACF_YES}, 0, too_long);
    put_long("x", 3 * ACF_CSV_RECORD_MAX, "x"); /* no line end at all: not all of it is read */
    assert_sentence(
        NULL, 0,
        ", line 1: the record that begins here is longer than 64 MiB, which is the limit; is this a text table?");
    put_long("a,b\n1,2\n\n3,\"\n\n4", 2 * ACF_CSV_RECORD_MAX, "\n");
    assert_sentence(
        &(acf_csv_want){',', '"', ACF_YES}, 1,
        ", line 4: a quote (\") opens here and is not closed within 64 MiB; close it, or read the file without quotes");
}

static void fields_have_a_limit(void **state) {
    (void)state;
    for (size_t first = 0; first < 64;
         first++) { /* memory for fields is reserved one chunk ahead, wherever chunks fill up */
        char line[2000];
        memset(line, 'x', first);
        memset(line + first, ',', sizeof line - first);
        acf_memfile_put(&file, line, sizeof line);
        acf_csv *csv = NULL;
        assert_int_equal(acf_csv_open(file.path, &(acf_csv_want){',', '"', ACF_NO}, &csv), ACF_OK);
        assert_int_equal(acf_csv_columns(csv), sizeof line - first + 1);
        acf_csv_close(csv);
    }
    size_t n = ACF_CSV_FIELDS_MAX;
    char *text = malloc(n + 2);
    int64_t rows;
    memset(text, ',', n);
    text[n - 1] = '\n';
    acf_memfile_put(&file, text, n); /* n fields */
    assert_int_equal(read_all(&(acf_csv_want){',', '"', ACF_NO}, 1 << 18, &rows), ACF_OK);
    assert_int_equal(rows, 1);
    text[n - 1] = ',';
    text[n] = '\n';
    acf_memfile_put(&file, text, n + 1);
    assert_sentence(&(acf_csv_want){',', '"', ACF_NO}, 0,
                    ", line 1: more than 1000000 fields, which is the limit; is this a text table?");
    free(text);
}

/* ---- damage at random -------------------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t round, uint32_t which, uint32_t below) {
    return (uint32_t)acf_rng_below((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = which}, below);
}

static const char *const seeds[] = {
    "a,b,c\n1,2,3\n4,\"x \"\"y\"\"\",6\n7,\"line\nbreak\",9\n",
    "\xef\xbb\xbf\"fixed acidity\";\"pH\"\r\n7,0;3,2\r\n6,3;3,1\r\n\r\n8,1;3,0",
    "  ADT1  0.58  0.61 MIT\n  ADT2  0.43  0.67 'a b'\n  ADT3  0.64  0.62 NUC\n",
    "39, State-gov, ?\n50, \xc3\x9fTR, 3\n38, \xe2\x82\xac\xf0\x9f\x98\x80, NA\n",
    "a\tb\r1\t'2'\r3\t'4'\r",
};

/* One to three edits: a byte replaced (half of the time by a special one), a bit flipped, bytes removed, copied or
 * doubled, or the end cut off. Returns the new size. */
static size_t damage(char *b, size_t n, uint32_t round) {
    static const char telling[] = ",;\t| \"'\n\r\xff\xc3\x80"
                                  "1a";
    for (uint32_t k = 0; k < 1 + round % 3 && n > 0; k++) {
        size_t at = draw(round, 8 * k, (uint32_t)n), len = 1 + draw(round, 8 * k + 1, 8),
               from = draw(round, 8 * k + 2, (uint32_t)n);
        char byte = draw(round, 8 * k + 3, 2) ? telling[draw(round, 8 * k + 4, sizeof telling)]
                                              : (char)draw(round, 8 * k + 4, 256);
        if (len > n - at) len = n - at;
        if (len > n - from) len = n - from;
        switch (draw(round, 8 * k + 5, 6)) {
        case 0: b[at] = byte; break;
        case 1: b[at] = (char)(b[at] ^ (1 << (byte & 7))); break;
        case 2: memmove(b + at, b + at + len, n - at - len), n -= len; break;
        case 3: memmove(b + at, b + from, len); break;
        case 4: memmove(b + at + len, b + at, n - at), n += len; break;
        default: n = at; break;
        }
    }
    return n;
}

/* Fields satisfy csv.h: they lie in the file and are text, and raw is the text with its surroundings. */
static void assert_consistent(const char *b, size_t n, const acf_dialect *d, const acf_record *r, int64_t row) {
    assert_true(r->row == row && r->line >= 1);
    for (int64_t j = 0; j < r->n; j++) {
        const acf_field *f = &r->field[j];
        assert_true(f->length <= f->raw_length && acf_text_is_utf8(f->text, f->length) &&
                    !memchr(f->text, 0, f->length));
        assert_true(f->raw_length == 0 || memmem(b, n, f->raw, f->raw_length));
        if (!f->quoted)
            assert_true(f->raw_length == 0 || f->length == 0 || memmem(f->raw, f->raw_length, f->text, f->length));
        if (!f->quoted)
            assert_false(memchr(f->raw, '\n', f->raw_length) ||
                         (d->separator != ' ' && memchr(f->raw, d->separator, f->raw_length)));
        if (f->quoted) assert_true(f->raw_length >= f->length + 2 && memchr(f->raw, d->quote, f->raw_length));
    }
}

/* FNV-1a over everything a caller can see, to compare block sizes. */
static void hash_bytes(uint64_t *h, const void *p, size_t n) {
    for (size_t i = 0; i < n; i++) *h = (*h ^ ((const unsigned char *)p)[i]) * 0x100000001b3u;
}

static uint64_t read_hashed(const char *b, size_t n, size_t block, acf_status *status) {
    acf_csv *csv = NULL;
    acf_record r = {.n = 1};
    uint64_t h = 0xcbf29ce484222325u;
    *status = acf_csv_open_blocks(file.path, NULL, block, &csv);
    for (int pass = 0; pass < 2 && *status == ACF_OK; pass++) {
        const acf_dialect d = *acf_csv_dialect(csv);
        hash_bytes(&h, (char[]){d.separator, d.quote, d.header, d.crlf, d.bom, d.padded}, 6);
        for (int64_t row = 0; *status == ACF_OK && (row == 0 || r.n); row++) {
            *status = acf_csv_next(csv, &r);
            if (*status != ACF_OK || r.n == 0) break;
            assert_consistent(b, n, &d, &r, row);
            hash_bytes(&h, &r.line, sizeof r.line);
            hash_bytes(&h, r.end, r.end_length);
            for (int64_t j = 0; j < r.n; j++) {
                hash_bytes(&h, r.field[j].text, r.field[j].length);
                hash_bytes(&h, r.field[j].raw, r.field[j].raw_length);
            }
        }
        if (*status == ACF_OK) *status = acf_csv_rewind(csv);
    }
    if (*status != ACF_OK) hash_bytes(&h, acf_error(), strlen(acf_error()));
    acf_csv_close(csv);
    return h;
}

static void damaged_files_are_safe(void **state) {
    (void)state;
    int taken = 0, refused = 0;
    for (uint32_t round = 0; round < 6000; round++) {
        char b[512];
        const char *seed = seeds[round % 5];
        size_t n = strlen(seed);
        memcpy(b, seed, n);
        if (round >= 5) n = damage(b, n, round);
        acf_memfile_put(&file, b, n);
        acf_status status, small_status;
        uint64_t h = read_hashed(b, n, 1 << 18, &status);
        uint64_t small = read_hashed(b, n, blocks[round % 4], &small_status);
        if (h != small || status != small_status)
            fail_msg("round %u: block %zu reads otherwise: %s", round, blocks[round % 4], acf_error());
        if (status != ACF_OK) assert_int_equal(status, ACF_EDATA);
        taken += status == ACF_OK;
        refused += status != ACF_OK;
    }
    assert_true(taken > 1000 && refused > 1000);
}

/* The same through gzip, where the checksum detects nearly all damage. */
static void damaged_gzip_is_safe(void **state) {
    (void)state;
    int refused = 0;
    for (uint32_t round = 0; round < 2000; round++) {
        unsigned char b[1024];
        const char *seed = seeds[round % 5];
        size_t n = acf_lab_gzip(seed, strlen(seed), b, 512);
        n = damage((char *)b, n, round);
        acf_memfile_put(&file, b, n);
        int64_t rows;
        acf_status status = read_all(NULL, blocks[round % 6], &rows);
        assert_true(status == ACF_OK || status == ACF_EDATA);
        refused += status != ACF_OK;
    }
    assert_true(refused > 1800);
}

/* ---- memory and files that change -------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    unsigned char packed[1000];
    static char wide[40000] = "\"a \"\"b\"\"\"";
    size_t n = strlen(wide);
    for (int j = 0; j < 600; j++) n += (size_t)sprintf(wide + n, ",c%d", j);
    for (int i = 0; i < 3; i++) {
        n += (size_t)sprintf(wide + n, "\n\"x \"\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\"\"\"");
        for (int j = 0; j < 600; j++) n += (size_t)sprintf(wide + n, ",%d", i * j);
    }
    for (int gzip = 0; gzip < 2; gzip++) {
        acf_memfile_put(&file, gzip ? (void *)packed : wide,
                        gzip ? acf_lab_gzip(seeds[0], strlen(seeds[0]), packed, sizeof packed) : n);
        int64_t live = acf_alloc_live(), failures = 0;
        for (int64_t i = 1;; i++, failures++) {
            acf_csv *csv = NULL;
            acf_record r = {.n = 1};
            acf_alloc_fail_at(i);
            acf_status status = acf_csv_open_blocks(file.path, NULL, 1000, &csv);
            while (status == ACF_OK && r.n) status = acf_csv_next(csv, &r);
            if (status == ACF_OK) status = acf_csv_rewind(csv);
            acf_alloc_fail_at(0);
            acf_csv_close(csv);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
        }
        assert_true(failures > 8);
    }
}

/* Running out of memory in the middle is not final: the same reader continues when there is memory. */
static void reading_continues_after_out_of_memory(void **state) {
    (void)state;
    static char text[1000000] = "1,2\n3,4\n5,6\n7,";
    size_t first = strlen(text);
    memset(text + first, 'x', sizeof text - first);
    acf_memfile_put(&file, text, sizeof text);
    acf_csv *csv = NULL;
    acf_record r;
    assert_int_equal(acf_csv_open(file.path, &(acf_csv_want){',', '"', ACF_NO}, &csv), ACF_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(acf_csv_next(csv, &r), ACF_OK);
    for (int i = 0; i < 2; i++) {
        acf_alloc_fail_at(1);
        assert_int_equal(acf_csv_next(csv, &r), ACF_EMEMORY);
        acf_alloc_fail_at(0);
    }
    assert_int_equal(acf_csv_next(csv, &r), ACF_OK);
    assert_int_equal(r.row, 3);
    assert_int_equal(r.field[1].length, sizeof text - first);
    acf_csv_close(csv);
}

static void a_file_that_changes_is_noticed(void **state) {
    (void)state;
    static const char text[] = "a,b\n1,2\n3,4\n5,6\n";
    for (int how = 0; how < 3; how++) {
        acf_csv *csv = NULL;
        acf_record r = {.n = 1};
        acf_memfile_put(&file, text, sizeof text - 1);
        assert_int_equal(acf_csv_open(file.path, NULL, &csv), ACF_OK);
        while (r.n) assert_int_equal(acf_csv_next(csv, &r), ACF_OK);
        if (how == 0) assert_int_equal(ftruncate(file.fd, 12), 0);
        if (how == 1) assert_int_equal(pwrite(file.fd, "7,8\n", 4, 16), 4);
        if (how == 2) assert_int_equal(pwrite(file.fd, "9", 1, 14), 1);
        acf_status status = acf_csv_rewind(csv);
        for (r.n = 1; status == ACF_OK && r.n;) status = acf_csv_next(csv, &r);
        assert_int_equal(status, ACF_EIO);
        assert_non_null(strstr(acf_error(), "while it was read; run again when nothing writes to it"));
        acf_csv_close(csv);
    }
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(csv, WITH_FILE(ragged_rows), WITH_FILE(quotes_that_do_not_close), WITH_FILE(bytes_that_are_not_text),
          WITH_FILE(files_that_are_not_tables), WITH_FILE(impossible_separators), WITH_FILE(records_have_a_limit),
          WITH_FILE(fields_have_a_limit), WITH_FILE(damaged_files_are_safe), WITH_FILE(damaged_gzip_is_safe),
          WITH_FILE(every_allocation_may_fail), WITH_FILE(reading_continues_after_out_of_memory),
          WITH_FILE(a_file_that_changes_is_noticed))
