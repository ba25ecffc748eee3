/* Tests of csv.h: records and fields for every block size, and round trips of values in every dialect. */
#include "table/csv.h"

#include "base/arena.h"
#include "base/rng.h"
#include "harness/file_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static acf_csv *open_blocks(const acf_csv_want *want, size_t block) {
    acf_csv *csv = NULL;
    if (acf_csv_open_blocks(file.path, want, block, &csv) != ACF_OK) fail_msg("%s", acf_error());
    return csv;
}

static void next_ok(acf_csv *csv, acf_record *r) {
    if (acf_csv_next(csv, r) != ACF_OK) fail_msg("%s", acf_error());
}

/* ---- tables as text ---------------------------------------------------------------------------------------------- */

/* Fields as <text>, quoted ones as "text", separated by spaces; records by their line number and their end. */
static void show_record(FILE *out, const acf_record *r) {
    fprintf(out, "%lld:", (long long)r->line);
    for (int64_t j = 0; j < r->n; j++) {
        const acf_field *f = &r->field[j];
        fprintf(out, f->quoted ? " \"%.*s\"" : " <%.*s>", (int)f->length, f->text);
    }
    fprintf(out, "%s", r->end_length == 0 ? " ." : r->end_length == 2 ? " crlf" : *r->end == '\r' ? " cr" : "");
}

static void show(acf_csv *csv, char *out, size_t cap) {
    FILE *f = fmemopen(out, cap, "w");
    acf_record r = acf_csv_header(csv);
    if (r.n) fprintf(f, "[%lld] ", (long long)r.row), show_record(f, &r), fputs(" / ", f);
    for (int64_t row = 0;; row++) {
        next_ok(csv, &r);
        if (r.n == 0) break;
        assert_int_equal(r.row, row);
        assert_int_equal(r.n, acf_csv_columns(csv));
        fputs(row ? " / " : "", f);
        show_record(f, &r);
    }
    next_ok(csv, &r); /* the end is final */
    assert_int_equal(r.n, 0);
    fclose(f);
}

/* The text must read as `expected` for all block sizes, and again after a rewind. */
static void assert_table(const char *text, size_t n, const acf_csv_want *want, const char *expected) {
    static char seen[1 << 16];
    acf_memfile_put(&file, text, n);
    for (size_t b = 0; b < BLOCKS; b++) {
        acf_csv *csv = open_blocks(want, blocks[b]);
        for (int pass = 0; pass < 2; pass++) {
            show(csv, seen, sizeof seen);
            if (strcmp(seen, expected) != 0)
                fail_msg("block %zu, pass %d: %s\nexpected: %s", blocks[b], pass, seen, expected);
            assert_int_equal(acf_csv_rewind(csv), ACF_OK);
        }
        acf_csv_close(csv);
    }
}
#define TABLE(text, want, expected) assert_table(text, sizeof(text) - 1, want, expected)
#define WANT(...)                                                                                                      \
    &(acf_csv_want) { __VA_ARGS__ }

/* ---- records and fields ------------------------------------------------------------------------------------------ */

/* Additions around the table: Excel's first line, a separator at the end of lines, R's header. */
static void additions_by_programs(void **state) {
    (void)state;
    TABLE("sep=;\na;b\n1,5;2\n", NULL, "[-1] 2: <a> <b> / 3: <1,5> <2>");
    TABLE("\xef\xbb\xbf\"sep=|\"\r\na|b\r\n1,5|2\r\n", NULL, "[-1] 2: <a> <b> crlf / 3: <1,5> <2> crlf");
    TABLE("sep=;\n1;2\n", WANT(';', '"', ACF_NO), "2: <1> <2>");
    TABLE("sep=x,y\n1,2\n", WANT(',', '"', ACF_NO), "1: <sep=x> <y> / 2: <1> <2>");
    /* line ends of two bytes, of three and of one */
    TABLE("a,b\n1,2,\n3,4, \n5,6\n7,8,", WANT(',', '"', ACF_YES),
          "[-1] 1: <a> <b> / 2: <1> <2> crlf / 3: <3> <4> / 4: <5> <6> / 5: <7> <8>");
    TABLE("\"x\" \"y\"\n\"1\" 0.5 a\n\"2\" 1.5 b\n", NULL,
          "[-1] 1: <> \"x\" \"y\" / 2: \"1\" <0.5> <a> / 3: \"2\" <1.5> <b>");
    TABLE("x,y\nr1,0.5,a\nr2,1.5,\n", NULL, "[-1] 1: <> <x> <y> / 2: <r1> <0.5> <a> / 3: <r2> <1.5> <>");
    TABLE("x,y\n1,0.5,\n2,1.5,\n", NULL,
          "[-1] 1: <x> <y> / 2: <1> <0.5> crlf / 3: <2> <1.5> crlf"); /* only separators */
}

static void records_and_their_ends(void **state) {
    (void)state;
    const acf_csv_want comma = {',', '"', ACF_NO};
    TABLE("a,b\nc,d\n", &comma, "1: <a> <b> / 2: <c> <d>");
    TABLE("a,b\nc,d", &comma, "1: <a> <b> / 2: <c> <d> .");
    TABLE("a,b\r\nc,d\r\n", &comma, "1: <a> <b> crlf / 2: <c> <d> crlf");
    TABLE("a,b\r\nc,d\r", &comma, "1: <a> <b> crlf / 2: <c> <d> cr");
    TABLE("a,b\rc,d\re,f", &comma, "1: <a> <b> cr / 2: <c> <d> cr / 3: <e> <f> .");
    TABLE("a,b\r\r\nc,d\n", &comma, "1: <a> <b> cr / 3: <c> <d>"); /* the middle one is a blank line */
    TABLE("\n\n  \t\na,b\n\r\n \r\nc,d\n\n\n", &comma, "4: <a> <b> / 7: <c> <d>");
    TABLE("\xef\xbb\xbf"
          "a,b\n\xef\xbb\xbf,d\n",
          &comma, "1: <a> <b> / 2: <\xef\xbb\xbf> <d>");
    TABLE("x", &comma, "1: <x> .");
    TABLE("x\n", &comma, "1: <x>");
    TABLE(",\n,", &comma, "1: <> <> / 2: <> <> .");
    TABLE("\"\"\n\"\"", &comma, "1: \"\" / 2: \"\" ."); /* quoted, so not blank */
}

/* Where each line is a cell, an empty line is an empty cell. */
static void blank_lines_of_one_column(void **state) {
    (void)state;
    const acf_csv_want data = {',', '"', ACF_NO}, header = {',', '"', ACF_YES}, runs = {' ', '"', ACF_YES};
    TABLE("a\n1\n\n3\n", &header, "[-1] 1: <a> / 2: <1> / 3: <> / 4: <3>");
    TABLE("\n\na\r\n\r\n \t\r\n3", &header,
          "[-1] 3: <a> crlf / 4: <> crlf / 5: <> crlf / 6: <3> .");       /* blank lines above the names are skipped */
    TABLE("a\n1\n\n\n", &header, "[-1] 1: <a> / 2: <1> / 3: <> / 4: <>"); /* every line end ends a cell */
    TABLE("a\n1\n ", &header, "[-1] 1: <a> / 2: <1> / 3: <> .");
    TABLE("\n\n1\n2\n", &data, "1: <> / 2: <> / 3: <1> / 4: <2>");
    TABLE("\xef\xbb\xbf\n1\n", &data, "1: <> / 2: <1>");
    TABLE("a\n \n\n3\n", &runs, "[-1] 1: <a> / 2: <> / 3: <> / 4: <3>");
    TABLE("x\n1\n\n3\n", WANT(0), "[-1] 1: <x> / 2: <1> / 3: <> / 4: <3>");
    TABLE("a,b\n\n1,2\n\n", &header, "[-1] 1: <a> <b> / 3: <1> <2>");
}

static void fields_and_their_quotes(void **state) {
    (void)state;
    const acf_csv_want comma = {',', '"', ACF_NO};
    TABLE("\"a\",\"b,c\"\n", &comma, "1: \"a\" \"b,c\"");
    TABLE("\"a\"\"b\",\"\"\"\"\n", &comma, "1: \"a\"b\" \"\"\"");
    TABLE("\"\"\"a\",\"b\"\"\"\n", &comma, "1: \"\"a\" \"b\"\"");
    TABLE("\"a\nb\r\nc\rd\",e\nf,g\n", &comma, "1: \"a\nb\r\nc\rd\" <e> / 5: <f> <g>");
    TABLE(" a , b b\t,\t\"c\" , \" d \"\n", &comma, "1: <a> <b b> \"c\" \" d \"");
    TABLE("5\" pipe,a\"b\"c\n", &comma, "1: <5\" pipe> <a\"b\"c>");
    TABLE("\"a\",\n\"b\",", &comma, "1: \"a\" <> / 2: \"b\" <> .");
    TABLE("\"a\"", &comma, "1: \"a\" .");
    const acf_csv_want apostrophe = {',', '\'', ACF_NO}, none = {',', '\n', ACF_NO};
    TABLE("'it''s',\"x\"\n", &apostrophe, "1: \"it's\" <\"x\">");
    TABLE("\"a,b\",'c'\n", &none, "1: <\"a> <b\"> <'c'>");
    const acf_csv_want tab = {'\t', '"', ACF_NO}, odd = {'~', '%', ACF_NO};
    TABLE("a\t\tb c \n", &tab, "1: <a> <> <b c>");
    TABLE(" \"a\" \t\"b\"\t\n", &tab, "1: \"a\" \"b\" <>");
    TABLE("a~%b~%%c%\n", &odd, "1: <a> \"b~%c\"");
}

static void white_space_columns(void **state) {
    (void)state;
    const acf_csv_want runs = {' ', '"', ACF_NO};
    TABLE("a b\tc\n", &runs, "1: <a> <b> <c>");
    TABLE("  a  \t b \n\t\nc d \t", &runs, "1: <a> <b> / 3: <c> <d> .");
    TABLE(" \"a b\"  \"\" c\"d\r\n\"x\" y z\r\n", &runs, "1: \"a b\" \"\" <c\"d> crlf / 2: \"x\" <y> <z> crlf");
}

/* The bytes of fields and between records add up to the file. */
static void raw_bytes_are_kept(void **state) {
    (void)state;
    static const struct {
        char separator;
        const char *text;
    } cases[] = {{',', " a ,\"b\"\"c\" , d\n\"x\ny\",,\"\"\n1,2,3"},
                 {' ', "  ADT1   0.58  \"a b\"  \nX 1 2\n  1  2  3"},
                 {';', "a;b\r\nc ; d\r\n;\r\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t b = 0; b < BLOCKS; b++) {
            char back[200];
            size_t n = 0;
            acf_record r;
            acf_memfile_put(&file, cases[i].text, strlen(cases[i].text));
            acf_csv *csv = open_blocks(&(acf_csv_want){cases[i].separator, '"', ACF_NO}, blocks[b]);
            for (next_ok(csv, &r); r.n; next_ok(csv, &r)) {
                for (int64_t j = 0; j < r.n; j++) {
                    if (j) back[n++] = cases[i].separator;
                    memcpy(back + n, r.field[j].raw, r.field[j].raw_length);
                    n += r.field[j].raw_length;
                }
                memcpy(back + n, r.end, r.end_length);
                n += r.end_length;
            }
            assert_int_equal(n, strlen(cases[i].text));
            assert_memory_equal(back, cases[i].text, n);
            acf_csv_close(csv);
        }
}

static void headers(void **state) {
    (void)state;
    TABLE("name,\"the \"\"age\"\"\"\nann,5\nbob,6\n", WANT(0),
          "[-1] 1: <name> \"the \"age\"\" / 2: <ann> <5> / 3: <bob> <6>");
    TABLE("\xef\xbb\xbf\n\"a\nb\",c\r\n1,2\r\n", WANT(0), "[-1] 2: \"a\nb\" <c> crlf / 4: <1> <2> crlf");
    TABLE("a,b\n1,2\n", WANT(.header = ACF_NO), "1: <a> <b> / 2: <1> <2>");
    TABLE("1,2\n3,4\n", WANT(.header = ACF_YES), "[-1] 1: <1> <2> / 2: <3> <4>");
    TABLE("a,b\n", WANT(.header = ACF_YES), "[-1] 1: <a> <b> / ");
    acf_csv *csv = open_blocks(NULL, 1); /* names stay valid while records are read */
    acf_record header = acf_csv_header(csv), r;
    next_ok(csv, &r);
    assert_int_equal(r.n, 0);
    assert_int_equal(header.n, 2);
    assert_int_equal(acf_csv_columns(csv), 2);
    assert_memory_equal(header.field[1].text, "b", 1);
    assert_memory_equal(header.field[1].raw, "b", 1);
    assert_memory_equal(header.end, "\n", 1);
    assert_string_equal(acf_csv_path(csv), file.path);
    acf_csv_close(csv);
    acf_csv_close(NULL);
}

/* The same table as a file and as gzip, read twice. */
static void gzip_reads_as_the_file_does(void **state) {
    (void)state;
    unsigned char packed[1000];
    static const char text[] = "a,b\n1,\"x\ny\"\n2,z\n";
    acf_memfile_put(&file, packed, acf_lab_gzip(text, sizeof text - 1, packed, sizeof packed));
    for (size_t b = 0; b < BLOCKS; b++) {
        char seen[200];
        acf_csv *csv = open_blocks(NULL, blocks[b]);
        for (int pass = 0; pass < 2; pass++) {
            show(csv, seen, sizeof seen);
            assert_string_equal(seen, "[-1] 1: <a> <b> / 2: <1> \"x\ny\" / 4: <2> <z>");
            assert_int_equal(acf_csv_rewind(csv), ACF_OK);
        }
        acf_csv_close(csv);
    }
}

/* A record much longer than a block, with more fields than the initial capacity. */
static void wide_records(void **state) {
    (void)state;
    enum { WIDE = 100000 };
    char *text = malloc(WIDE * 8);
    size_t n = 0;
    for (int row = 0; row < 3; row++)
        for (int j = 0; j < WIDE; j++)
            n += (size_t)sprintf(text + n, "%d%c", (row * 7 + j) % 10, j + 1 < WIDE ? ',' : '\n');
    acf_memfile_put(&file, text, n);
    for (size_t b = 0; b < BLOCKS; b++) {
        acf_csv *csv = open_blocks(NULL, blocks[b]);
        acf_record r;
        assert_int_equal(acf_csv_columns(csv), WIDE);
        for (int row = 0; row < 3; row++) {
            next_ok(csv, &r);
            for (int j = 0; j < WIDE; j++)
                assert_true(r.field[j].length == 1 && *r.field[j].text == '0' + (row * 7 + j) % 10);
        }
        acf_csv_close(csv);
    }
    free(text);
}

/* Memory does not grow with the file: nothing is allocated after the first block. */
static void memory_is_constant(void **state) {
    (void)state;
    size_t n = 0, cap = 8 << 20;
    char *text = malloc(cap);
    for (int row = 0; n + 100 < cap; row++)
        n += (size_t)sprintf(text + n, "%d,\"a \"\"%d\"\"\",%d\n", row % 1000, row % 7, row % 100);
    acf_memfile_put(&file, text, n);
    acf_csv *csv = open_blocks(NULL, 1 << 16);
    acf_record r;
    while (csv) {
        next_ok(csv, &r);
        if (r.row == 100000) break;
    }
    int64_t count = acf_alloc_count();
    while (r.n) next_ok(csv, &r);
    assert_int_equal(acf_csv_rewind(csv), ACF_OK);
    for (next_ok(csv, &r); r.n;) next_ok(csv, &r);
    assert_int_equal(acf_alloc_count(), count);
    assert_true(r.row > 300000);
    acf_csv_close(csv);
    free(text);
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

enum { ROWS = 12, COLUMNS = 5, VALUE_MAX = 24 };

static uint32_t draw(uint32_t round, uint32_t which, uint32_t below) {
    return (uint32_t)acf_rng_below((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = which}, below);
}

/* A difficult value: mostly characters that are special in some dialect. */
static size_t make_value(char *out, uint32_t round, uint32_t cell) {
    static const char *const piece[] = {",",  ";",    "\t", "|",   " ", "\"", "'",        "\n",
                                        "\r", "\r\n", "a",  "1.5", "-", "NA", "\xc3\xa9", "\xf0\x9f\x98\x80"};
    size_t n = 0, pieces = draw(round, 100 * cell, 5);
    for (uint32_t k = 0; k < pieces; k++) {
        const char *p = piece[draw(round, 100 * cell + 1 + k, sizeof piece / sizeof *piece)];
        memcpy(out + n, p, strlen(p));
        n += strlen(p);
    }
    return n;
}

static size_t write_table(char *out, const acf_dialect *d, uint32_t round) {
    size_t n = 0;
    for (uint32_t cell = 0; cell < ROWS * COLUMNS; cell++) {
        char value[VALUE_MAX];
        bool clean;
        size_t length = make_value(value, round, cell), needed = acf_csv_quote(d, value, length, NULL, 0, NULL);
        assert_int_equal(acf_csv_quote(d, value, length, out + n, needed, &clean), needed);
        assert_true(clean);
        n += needed;
        if (cell % COLUMNS < COLUMNS - 1) {
            if (d->padded && d->separator != '\t') out[n++] = ' ';
            out[n++] = d->separator;
            if (d->padded) out[n++] = ' ';
        } else {
            if (d->crlf) out[n++] = '\r';
            if (cell < ROWS * COLUMNS - 1 || round % 2) out[n++] = '\n';
        }
    }
    return n;
}

static void assert_values(acf_csv *csv, uint32_t round) {
    acf_record r;
    for (uint32_t row = 0; row < ROWS; row++) {
        next_ok(csv, &r);
        assert_int_equal(r.n, COLUMNS);
        for (uint32_t j = 0; j < COLUMNS; j++) {
            char value[VALUE_MAX];
            size_t n = make_value(value, round, row * COLUMNS + j);
            if (r.field[j].length != n || memcmp(r.field[j].text, value, n) != 0)
                fail_msg("round %u, row %u, column %u: '%.*s', expected '%.*s'", round, row, j, (int)r.field[j].length,
                         r.field[j].text, (int)n, value);
        }
    }
    next_ok(csv, &r);
    assert_int_equal(r.n, 0);
}

static void written_values_read_back(void **state) {
    (void)state;
    static char text[ROWS * COLUMNS * VALUE_MAX * 3], packed[sizeof text];
    for (uint32_t round = 0; round < 400; round++) {
        acf_dialect d = {",;\t| "[round % 5], "\"'"[round / 5 % 2], false, round / 10 % 2, false, round / 20 % 2};
        acf_csv_want want = {d.separator, d.quote, ACF_NO};
        size_t n = write_table(text, &d, round);
        for (size_t b = 0; b < BLOCKS; b++) {
            bool gzip = (round + b) % 3 == 0;
            acf_memfile_put(&file, gzip ? packed : text, gzip ? acf_lab_gzip(text, n, packed, sizeof packed) : n);
            acf_csv *csv = open_blocks(&want, blocks[b]);
            assert_values(csv, round);
            assert_int_equal(acf_csv_rewind(csv), ACF_OK);
            assert_values(csv, round);
            acf_csv_close(csv);
        }
    }
}

static void assert_quote(const acf_dialect *d, const char *value, const char *expected, bool expect_clean) {
    char out[64];
    bool clean;
    size_t n = acf_csv_quote(d, value, strlen(value), out, sizeof out, &clean);
    if (n != strlen(expected) || memcmp(out, expected, n) != 0) fail_msg("'%s' became '%.*s'", value, (int)n, out);
    assert_int_equal(clean, expect_clean);
}

static void values_are_quoted_if_necessary(void **state) {
    (void)state;
    const acf_dialect comma = {',', '"'}, runs = {' ', '\''}, bare = {',', '\n'}, bare_runs = {' ', '\n'};
    assert_quote(&comma, "plain text", "plain text", true);
    assert_quote(&comma, "a;b'c\td", "a;b'c\td", true);
    assert_quote(&comma, "a,b", "\"a,b\"", true);
    assert_quote(&comma, "say \"x\"", "\"say \"\"x\"\"\"", true);
    assert_quote(&comma, "a\nb", "\"a\nb\"", true);
    assert_quote(&comma, "a\rb", "\"a\rb\"", true);
    assert_quote(&comma, " a", "\" a\"", true);
    assert_quote(&comma, "a\t", "\"a\t\"", true);
    assert_quote(&comma, "", "\"\"", true);
    assert_quote(&comma, "\xff", "\xff", false); /* would be refused */
    assert_quote(&runs, "a b", "'a b'", true);
    assert_quote(&runs, "a\tb", "'a\tb'", true);
    assert_quote(&runs, "a,b", "a,b", true);
    assert_quote(&runs, "", "''", true);
    assert_quote(&bare, "a\"b", "a\"b", true);
    assert_quote(&bare, "a,b\nc", "a_b_c", false);
    assert_quote(&bare, " a", " a", false);
    assert_quote(&bare, "", "", false);
    assert_quote(&bare_runs, "a b", "a_b", false);
    assert_quote(&bare_runs, "", "_", false);
    bool clean;
    assert_int_equal(acf_csv_quote(&comma, "a\0b", 3, NULL, 0, &clean), 3);
    assert_false(clean);
    char four[4] = "....";
    assert_int_equal(acf_csv_quote(&comma, "a,b", 3, four, 3, NULL), 5); /* counted, not written */
    assert_memory_equal(four, "\"a,.", 4);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(csv, WITH_FILE(additions_by_programs), WITH_FILE(records_and_their_ends),
          WITH_FILE(blank_lines_of_one_column), WITH_FILE(fields_and_their_quotes), WITH_FILE(white_space_columns),
          WITH_FILE(raw_bytes_are_kept), WITH_FILE(headers), WITH_FILE(gzip_reads_as_the_file_does),
          WITH_FILE(wide_records), WITH_FILE(memory_is_constant), WITH_FILE(written_values_read_back),
          WITH_FILE(values_are_quoted_if_necessary))
