/* Tests of table_file.h and match.h: difficult files, new files for a model, tables without a file. */
#include "table/table_file.h"

#include "harness/table_file_lab.h"
#include "table/describe.h"
#include "table/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_cell(const acf_table *t, int64_t i, int64_t j, double v) {
    double x = acf_table_row(t, i)[j];
    if (isnan(v) ? !isnan(x) : x != v) fail_msg("row %d, column %d: %g, expected %g", (int)i, (int)j, x, v);
}

static void assert_note(const acf_table *t, int i, const char *sentence) {
    assert_true(t->file->warnings.n > i);
    assert_string_equal(t->file->warnings.text[i], sentence);
}

/* ---- what is read ----------------------------------------------------------------------------------------------- */

static const char mixed[] = "id;age;sex;visit;unit;note;score\n"
                            "1;41; M;2021-03-09;kg;;1,50\n"
                            "2; ? ;F;2020-12-31;kg;;2,25\n"
                            "3;39;NA;;?;NA;\n"
                            "4;33;F;2021-01-01;kg;-;3,75\n";

static void modelled_columns_become_numbers(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(mixed, NULL, NULL);
    acf_table_file_lab_kinds(mixed, NULL, "identifier integer category date constant empty real");
    assert_int_equal(t->N, 4);
    assert_int_equal(t->D, 4);
    static const char *const names[] = {"age", "sex", "visit", "score"};
    for (int j = 0; j < 4; j++) assert_string_equal(t->column[j].name, names[j]);
    assert_int_equal(t->column[1].classes, 2);
    const double nan = (double)NAN,
                 expected[4][4] = {
                     {41, 1, 18695, 1.5}, {nan, 0, 18627, 2.25}, {39, nan, nan, nan}, {33, 0, 18628, 3.75}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) assert_cell(t, i, j, expected[i][j]);
    assert_int_equal(t->file->warnings.n, 0);
    assert_true(t->file->schema->column[3].min == 18627 && t->file->schema->column[3].max == 18695);
    acf_table_free(t);
}

static void names_are_made_up_where_there_are_none(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("1.5,a\n2.5,b\n2.75,a\n", NULL, NULL);
    assert_string_equal(t->column[0].name, "V1");
    assert_false(t->file->schema->named);
    acf_table_free(t);
    t = acf_table_file_lab_read(",V1,x\nr1,1.5,a\nr2,2.5,b\n", NULL, NULL); /* as R writes row names */
    assert_string_equal(t->file->schema->column[0].name, "V1_");
    assert_true(t->file->schema->named);
    acf_table_free(t);
}

static void users_add_na_strings(void **state) {
    (void)state;
    const char *file = "x,y\n1.5,a\n-99,none\n2.5,None\n-,b\n3.5,b\n";
    acf_table *t = acf_table_file_lab_read(file, OPTIONS("missing=-99,none"), NULL);
    const double nan = (double)NAN, x[5] = {1.5, nan, 2.5, nan, 3.5}, y[5] = {0, nan, nan, 1, 1};
    for (int i = 0; i < 5; i++) assert_cell(t, i, 0, x[i]), assert_cell(t, i, 1, y[i]);
    acf_table_free(t);
    t = acf_table_file_lab_read(file, OPTIONS("missing==-99,-"), NULL); /* these and no others: None is a level now */
    assert_int_equal(t->column[1].classes, 4);
    acf_table_free(t);
}

static void dialects_can_be_given(void **state) {
    (void)state;
    acf_table *t =
        acf_table_file_lab_read("a b|c\n1 2|3\n4 5|6\n", OPTIONS("separator=pipe", "header=no", "quote=none"), NULL);
    assert_int_equal(t->file->columns, 2);
    assert_int_equal(t->N, 3);
    acf_table_free(t);
    t = acf_table_file_lab_read("5,6\n1.5,2\n3,4\n", OPTIONS("header=yes"), NULL);
    assert_string_equal(t->file->name[0], "5");
    acf_table_free(t);
}

/* ---- difficult files --------------------------------------------------------------------------------------------- */

/* The dialect in a line; usual parts are reported only on request. */
static void dialects_are_reported(void **state) {
    (void)state;
#define FOUND_NONE                                                                                                     \
    "no header found: columns are called V1, V2, ...; use the option 'header=yes' if the first line has the names"
    static const struct {
        const char *text, *option, *line;
        bool odd;
    } cases[] = {{"a,b\n1.5,2\n2.5,3\n", "header=auto", "separator ',', decimal point, header", false},
                 {"a;b\n1,5;2\n2,25;3\n", "header=auto", "separator ';', decimal comma, header", true},
                 {"1.5,2\n2.5,3\n", "header=auto", "separator ',', decimal point, " FOUND_NONE, true},
                 {"1.5,2\n2.5,3\n", "header=no", "separator ',', decimal point, no header", true},
                 {"a b\n1.5 2\n2.5 3\n", "header=yes", "separator white space, decimal point, header", true},
                 {"a\tb\n1.5\t2\n2.5\t3\n", "header=yes", "separator tab, decimal point, header", true},
                 {"a,b\n'x, y',2\n'z',3\n", "header=yes", "separator ',', quote ', decimal point, header", true},
                 {"a,b\n1.5,2\n2.5,3\n", "quote=none", "separator ',', no quotes, decimal point, header", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        acf_table *t = acf_table_file_lab_read(cases[i].text, OPTIONS(cases[i].option), NULL);
        acf_text all = acf_text_into(line, sizeof line);
        acf_table_file_dialect(t->file, false, &all);
        assert_string_equal(line, cases[i].line);
        acf_text odd = acf_text_into(line, sizeof line);
        acf_table_file_dialect(t->file, true, &odd);
        assert_string_equal(line, cases[i].odd ? cases[i].line : "");
        acf_table_free(t);
    }
}

static void difficult_files_are_refused(void **state) {
    (void)state;
    acf_table_file_lab_refused("a,b\n", OPTIONS("header=yes"), NULL, ACF_EDATA,
                               "FILE: it has 2 columns and no rows; expected at least one");
    acf_table_file_lab_refused(
        "a,b,a\n1,2,3\n", OPTIONS("header=yes"), NULL, ACF_EDATA,
        "FILE: columns 1 and 3 are both named 'a'; rename one, or use the option 'header=no' if the first line is "
        "data");
    acf_table_file_lab_unlearnable("a,b\nNA,?\n,\n", "FILE: all cells are missing: there is nothing to learn from");
    acf_table_file_lab_refused("", NULL, NULL, ACF_EDATA, "FILE is empty, expected a table");
}

/* Constants are filled on request, even if there is no other column. */
static void tables_of_constants_are_completed(void **state) {
    (void)state;
    acf_table *t =
        acf_table_file_lab_read("a,b,c,d\nk,1,,u\n,1,?,v\nk,,,u\n", OPTIONS("types=d=id", "fill-constants=true"), NULL);
    assert_int_equal(t->D, 0);
    assert_int_equal(t->N, 3);
    assert_int_equal(acf_table_file_missing(t->file), 2);
    assert_string_equal(acf_table_file_lab_write(t, (acf_write_plan){.imputations = 1}, acf_table_file_lab_constant),
                        "a,b,c,d\nk,1,,u\nk,1,?,v\nk,1,,u\n");
    acf_table_free(t);
    t = acf_table_file_lab_read("a,b\n1,x\n", OPTIONS("header=yes"), NULL); /* one row */
    assert_true(t->D == 0 && t->N == 1);
    assert_string_equal(acf_table_file_lab_write(t, (acf_write_plan){.imputations = 1}, acf_table_file_lab_constant),
                        "a,b\n1,x\n");
    acf_table_free(t);
    t = acf_table_file_lab_read("a,b\n1.5,x\n2.5,y\n", NULL, NULL);
    assert_int_equal(acf_table_file_learnable(t), ACF_OK);
    acf_table_free(t);
}

static void small_tables_are_read(void **state) {
    (void)state;
    acf_table_file_lab_kinds("a,b\n1,x\n2,y\n", NULL, "identifier category");
    acf_table_file_lab_kinds("a,b\n1.5,x\n?,y\n", NULL, "constant category"); /* one observed cell */
    acf_table_file_lab_kinds("a,b\n1.5,x\n", OPTIONS("types=a=real"), "real constant");
    char text[1024];
    acf_text t = acf_text_into(text, sizeof text); /* 10 columns, 5 rows */
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 10; j++) acf_text_addf(&t, "%d.%d%s", i * j % 7, j, j == 9 ? "\n" : ",");
    acf_table *table = acf_table_file_lab_read(text, NULL, NULL);
    assert_int_equal(table->N, 5);
    assert_int_equal(table->D, 8); /* the first column is 0.0 throughout, the eighth 0.7 */
    acf_table_free(table);
}

/* Rows of one column are lines, including empty ones. Empty lines at the end of the file give a warning, because an
 * editor may have added them. */
static void blank_lines_are_missing_cells(void **state) {
    (void)state;
    static const struct {
        const char *text, *written, *note;
    } cases[] = {{"a\n1.5\n\n2.5\n", "a\n1.5\n0.3\n2.5\n", ""},
                 {"\r\n1.5\r\n\r\n2.5", "0.3\r\n1.5\r\n0.3\r\n2.5", ""},
                 {"a\n1.5\n\n2.5\n\n", "a\n1.5\n0.3\n2.5\n0.3\n",
                  "the last line is blank; in a table of one column that is a missing cell"},
                 {"a\n1.5\n2.5\n\n \n", "a\n1.5\n2.5\n0.3\n 0.3\n",
                  "the last 2 lines are blank; in a table of one column each is a missing cell"},
                 {"a\n1.5\n2.5\n\"\"\n", "a\n1.5\n2.5\n0.3\n", ""},
                 {"a,b\n1.5,2.5\n\n2.5,\n,1.5\n\n", "a,b\n1.5,2.5\n2.5,0.3\n0.3,1.5\n", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        acf_table *t = acf_table_file_lab_read(cases[i].text, NULL, NULL);
        assert_string_equal(t->file->warnings.n ? t->file->warnings.text[0] : "", cases[i].note);
        assert_string_equal(
            acf_table_file_lab_write(t, (acf_write_plan){.imputations = 1}, acf_table_file_lab_constant),
            cases[i].written);
        acf_table_free(t);
    }
}

static void gzip_is_read(void **state) {
    (void)state;
    char packed[1024];
    acf_table_file_lab l;
    acf_table *t;
    acf_table_file_lab_open(&l, "", NULL);
    acf_memfile_put(&l.file, packed, acf_lab_gzip(mixed, strlen(mixed), packed, sizeof packed));
    assert_int_equal(acf_table_file_read(l.file.path, l.read_options, &t), ACF_OK);
    assert_int_equal(t->N, 4);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
}

/* As in `impute <(zcat table.csv.gz)`: bytes read from a pipe cannot be read again. */
static void pipes_are_read(void **state) {
    (void)state;
    int ends[2];
    char path[40];
    acf_table_file_lab l;
    acf_table *t = NULL;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], mixed, strlen(mixed)), strlen(mixed));
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    acf_table_file_lab_open(&l, "", NULL);
    if (acf_table_file_read(path, l.read_options, &t) != ACF_OK) fail_msg("%s", acf_error());
    assert_string_equal(t->file->schema->column[0].name, "id");
    assert_int_equal(t->N, 4);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    close(ends[0]);
}

/* ---- schema files ----------------------------------------------------------------------------------------------- */

static acf_status read_with_schema(const char *text, const char *schema, const char *types, acf_table **out) {
    char path[] = "/tmp/acflow-schema-XXXXXX", option[64], kinds[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, schema, strlen(schema)) == (ssize_t)strlen(schema));
    close(fd);
    snprintf(option, sizeof option, "schema=%s", path);
    snprintf(kinds, sizeof kinds, "types=%s", types);
    acf_table_file_lab l;
    acf_table_file_lab_open(&l, text, OPTIONS(option, kinds));
    unlink(path);
    acf_status status = acf_table_file_read(l.file.path, l.read_options, out);
    acf_table_file_lab_close(&l);
    return status;
}

static void schema_files_set_kinds(void **state) {
    (void)state;
    const char *file = "size,day,age,code\nlow,5/3/2021,17,7\nhigh,6/3/2021,99,8\nmiddle,1/2/2021,-1,9\nhuge,?,44,7\n";
    const char *schema =
        "{\"columns\": [{\"name\": \"size\", \"kind\": \"ordinal\", \"levels\": [\"low\", \"middle\", \"high\"]}, "
        "{\"name\": \"day\", \"kind\": \"date\", \"format\": \"D/M/YYYY\", \"min\": \"1/1/2021\", \"max\": "
        "\"2/2/2021\"}, {\"name\": \"age\", \"kind\": \"integer\", \"min\": 0, \"max\": 120, \"markers\": [\"-1\"]}, "
        "{\"name\": \"code\", \"kind\": \"category\"}]}";
    acf_table *t;
    if (read_with_schema(file, schema, "", &t) != ACF_OK) fail_msg("%s", acf_error());
    const acf_field_spec *c = t->file->schema->column;
    const double nan = (double)NAN,
                 expected[4][4] = {{0, 18691, 17, 0}, {2, 18692, 99, 1}, {1, 18659, nan, 2}, {nan, nan, 44, 0}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) assert_cell(t, i, j, expected[i][j]);
    assert_true(c[2].min == 0 && c[2].max == 120);
    /* the file's range where it sets one, else the range of the dates */
    assert_true(c[1].min == 18628 && c[1].max == 18692);
    assert_int_equal(c[2].missing, 1);
    assert_note(
        t, 0, "column 1 ('size'): 1 of 4 cells are not levels of the schema file; they are kept and count as missing");
    acf_table_free(t);
    assert_int_equal(read_with_schema(file, schema, "size=category", &t), ACF_OK); /* the option takes precedence */
    assert_string_equal(t->file->schema->column[0].kind->name, "category");
    assert_int_equal(t->column[0].classes, 4);
    acf_table_free(t);
    assert_int_equal(read_with_schema(file, "{\"columns\": [{\"name\": \"siez\", \"kind\": \"real\"}]}", "", &t),
                     ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "the schema file names column 'siez', which "));
    assert_non_null(strstr(acf_error(), "did you mean 'size'?"));
}

/* Words kept among dates, listed in a schema file. */
static void schema_files_name_words_among_dates(void **state) {
    (void)state;
    const char *file = "day,x\n2021-03-05,1.5\nsoon,2.5\n2021-02-30,3.5\n";
    acf_table *t;
    const char *schema =
        "{\"columns\": [{\"name\": \"day\", \"kind\": \"date\", \"other\": [\"soon\", \"2021-02-30\"]}]}";
    if (read_with_schema(file, schema, "", &t) != ACF_OK) fail_msg("%s", acf_error());
    assert_cell(t, 0, 0, 18691);
    assert_cell(t, 1, 0, (double)NAN);
    assert_true(t->file->missing[0] == 0 && t->file->warnings.n == 0);
    acf_table_free(t);
}

/* A table's description, used as a schema file, gives the same table. */
static void descriptions_can_be_given_back(void **state) {
    (void)state;
    char json[1 << 14];
    acf_table *t = acf_table_file_lab_read(mixed, OPTIONS("missing=never"), NULL), *again;
    acf_text text = acf_text_into(json, sizeof json);
    assert_int_equal(acf_describe_json(t->file->schema, "a file", "how it is written", &t->file->warnings, &text),
                     ACF_OK);
    if (read_with_schema(mixed, json, "", &again) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(again->D, t->D);
    assert_memory_equal(again->x, t->x, (size_t)(t->N * t->D) * sizeof *t->x);
    assert_int_equal(again->file->schema->na_strings.list.n, t->file->schema->na_strings.list.n);
    acf_table_free(again);
    acf_table_free(t);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][3] = {
        {"separator", "ab", "option 'separator' can't be 'ab', expected auto, tab, space or one character"},
        {"separator", "none", "option 'separator' can't be 'none', expected auto, tab, space or one character"},
        {"quote", "''", "option 'quote' can't be '''', expected auto, none or one character"},
        {"types", "age", "option 'types' has 'age', expected items like age=integer with commas between them"},
        {"types", "a=real,", "option 'types' has '', expected items like age=integer with commas between them"},
        {"types", "=real", "option 'types' has '=real', expected items like age=integer with commas between them"},
        {"types", "a=reel",
         "option 'types': 'a' can't be 'reel', expected real, integer, ordinal, category, date, dmy, mdy, time, "
         "identifier or constant"},
        {"schema", "/nonexistent/schema.json", "cannot open '/nonexistent/schema.json': No such file or directory"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        acf_options *o;
        acf_read_options *w = NULL;
        assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
        assert_int_equal(acf_options_set_text(o, wrong[i][0], wrong[i][1]), ACF_OK);
        assert_true(acf_read_options_read(o, &w) != ACF_OK);
        assert_string_equal(acf_error(), wrong[i][2]);
        acf_options_free(o);
    }
}

/* ---- new files against a model ---------------------------------------------------------------------------------- */

static const char training[] = "id,age,sex,unit\n10,41,F,kg\n12,33,M,kg\n13,39,F,kg\n17,25,M,?\n";
static acf_table *trained;

static int train(void **state) {
    (void)state;
    trained = acf_table_file_lab_read(training, OPTIONS("types=id=identifier"), NULL);
    return 0;
}

static int forget(void **state) {
    (void)state;
    acf_table_free(trained);
    return 0;
}

static const acf_schema *known(void) { return trained->file->schema; }

static void new_rows_mean_what_the_model_learned(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("id,age,sex,unit\n99,1000,M,kg\n98,?,?,?\n", NULL, known());
    assert_int_equal(t->D, 2);
    assert_cell(t, 0, 0, 1000);
    assert_cell(t, 0, 1, 1);
    assert_cell(t, 1, 1, (double)NAN);
    assert_int_equal(t->file->warnings.n, 0);
    acf_table_free(t);
    t = acf_table_file_lab_read("id,age,sex,unit\n99,?,?,?\n", NULL, known()); /* one row, all missing */
    assert_int_equal(t->N, 1);
    acf_table_free(t);
}

static void columns_are_found_by_name(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("sex,id,age\nM,5,44\nF,6,45\n", OPTIONS("any-order=true"), known());
    assert_cell(t, 0, 0, 44);
    assert_cell(t, 0, 1, 1);
    assert_note(t, 0, "column 'unit' (constant) is not in this file; the model does not need it");
    assert_note(t, 1, "the columns are not in the order of the model; they were matched by name");
    acf_table_free(t);
    t = acf_table_file_lab_read("age,unit,sex,id\n44,kg,M,5\n", NULL,
                                known()); /* columns that are not modelled may be at any position */
    assert_cell(t, 0, 0, 44);
    assert_int_equal(t->file->warnings.n, 0);
    acf_table_free(t);
    acf_table_file_lab_refused(
        "sex,id,age\nM,5,44\nF,6,45\n", NULL, known(), ACF_EDATA,
        "FILE, column 1 ('sex'): the columns are not in the order of the model: in the model this one follows 'age'. Put them in the model's order "
        "('age', 'sex'), or use the option 'any-order' to match them by name");
    acf_table_file_lab_refused(
        "id,sex,unit\n5,M,kg\n6,F,kg\n", NULL, known(), ACF_EDATA,
        "FILE: it has no column 'age' (integer), which the model needs; add it, with empty cells if its values are unknown");
}

static void extra_columns_are_kept_or_refused(void **state) {
    (void)state;
    const char *file =
        "age,sex,name,source,weight\n44,M,n1,here,1.5\n45,F,n2,here,2.5\n46,F,n3,here,7\n47,F,n4,here,8\n"
        "48,F,n5,here,8\n49,F,n6,here,8\n50,F,n7,here,8\n51,F,n8,here,8\n52,F,n9,here,8\n53,M,n10,here,4\n";
    acf_table_file_lab_refused(
        file, NULL, known(), ACF_EDATA,
        "FILE, column 5 ('weight'): the model does not have this column (real); it has 'age', 'sex'. Remove it, or use "
        "the option 'types=weight=identifier' to carry it along");
    acf_table *t = acf_table_file_lab_read(file, OPTIONS("types=weight=identifier"), known());
    assert_int_equal(t->file->warnings.n, 5);
    assert_note(t, 2, "column 3 ('name') (identifier) is not a column of the model; it is carried along");
    assert_note(t, 3, "column 4 ('source') (constant) is not a column of the model; it is carried along");
    acf_table_free(t);
}

#define STAYS "; a column with one value is not filled in: use the option 'fill-constants' to fill it with that value"

/* Which missing cells stay, and how to have them imputed. */
static void assert_left(const acf_table *t, int64_t missing, const char *sentence) {
    char text[2048];
    acf_text out = acf_text_into(text, sizeof text);
    acf_table_file_unfilled(t->file, &out);
    assert_string_equal(text, sentence);
    assert_int_equal(acf_table_file_missing(t->file), missing);
}

static void missing_cells_are_counted(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(mixed, NULL, NULL);
    assert_left(t, 4, "5 missing cells stay as they are: unit (constant) 1, note (empty) 4" STAYS);
    acf_table_free(t);
    const char *ids =
        "uid,zip,age,unit,note\nu1,z1,41,kg,\nNA,z2,?,kg,\n,z3,39,,\nu4,z4,1.5,kg,\nu5,,41,kg,\nu6,z6,41,kg,\n"
        "u7,z7,41,kg,\nu8,z8,41,kg,\nu9,z9,41,kg,\nu10,z10,41,kg,\nu11,z11,41,kg,\nu12,z12,41,kg,\n";
    t = acf_table_file_lab_read(ids, NULL, NULL);
    assert_left(t, 1,
                "16 missing cells stay as they are: uid (identifier) 2, zip (identifier) 1, unit (constant) 1, note "
                "(empty) 12" STAYS "; nothing is made up for an identifier: if such a column is something else, say "
                "what in the option 'types' to have it filled in");
    acf_table_free(t);
    /* a kept word is not a missing cell; with a model, the kinds of columns are fixed */
    t = acf_table_file_lab_read("id,age,sex,unit,name,gone\n7,?,M,?,n1,\n?,44,Q,kg,?,\n",
                                OPTIONS("types=name=identifier"), known());
    assert_left(t, 1,
                "5 missing cells stay as they are: id (identifier) 1, unit (constant) 1, name (not in the model) 1, "
                "gone (not in the model) 2" STAYS);
    acf_table_free(t);
    t = acf_table_file_lab_read("id,age,sex,unit\n7,44,M,kg\n8,45,F,kg\n", NULL, known());
    assert_left(t, 0, "");
    acf_table_free(t);
    t = acf_table_file_lab_read("id,age,sex,unit\n7,44,M,kg\nNA,45,F,kg\n", NULL, known());
    assert_left(t, 0, "1 missing cell stays as it is: id (identifier) 1");
    acf_table_free(t);
    char many[4096];
    acf_text wide = acf_text_into(many, sizeof many);
    for (int j = 0; j < 11; j++) acf_text_addf(&wide, "e%d,", j);
    for (int i = 0; i < 3; i++) acf_text_addf(&wide, "%s,,,,,,,,,,,%d.5", i ? "\n" : "x\n", i);
    t = acf_table_file_lab_read(many, OPTIONS("header=yes"), NULL);
    assert_left(
        t, 0,
        "33 missing cells stay as they are: e0 (empty) 3, e1 (empty) 3, e2 (empty) 3, e3 (empty) 3, e4 (empty) 3, e5 "
        "(empty) 3, e6 (empty) 3, e7 (empty) 3 and 3 more columns");
    acf_table_free(t);
}

/* The common step of times is in the schema and is used for writing. */
static void times_have_the_step_of_all_cells(void **state) {
    (void)state;
    char text[1024];
    acf_text out = acf_text_into(text, sizeof text);
    acf_text_add(&out, "when,quarter,odd,day\n");
    for (int i = 0; i < 20; i++)
        acf_text_addf(&out, "2021-03-%02d %02d:00:00,%02d:%02d,%02d:%02d,2021-03-%02d\n", 1 + i, i * 7 % 24, i * 5 % 24,
                      i % 4 * 15, i, i * 7 % 60, 1 + i);
    acf_table *t = acf_table_file_lab_read(text, NULL, NULL);
    const acf_field_spec *c = t->file->schema->column;
    assert_true(c[0].step == 3600 && c[1].step == 900 && c[2].step == 0 && c[3].step == 0);
    assert_true(t->column[0].clock && t->column[1].clock && t->column[2].clock && !t->column[3].clock);
    acf_schema *copy;
    assert_int_equal(acf_schema_copy(t->file->schema, &copy), ACF_OK);
    assert_true(copy->column[0].step == 3600 && copy->column[2].step == 0);
    acf_schema_free(copy);
    acf_table_free(t);
}

static void without_names_places_count(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("5,44,M,kg\n6,45,F,kg\n", NULL, known());
    assert_cell(t, 0, 0, 44);
    assert_note(t, 0, "this file has no column names; columns were taken in the order of the model");
    acf_table_file_lab_refused(
        "5,44,M\n6,45,F\n", NULL, known(), ACF_EDATA,
        "FILE: it has 3 columns and the model was made from 4; without names in both, the numbers must be equal");
    acf_table_free(t);
    acf_table *nameless = acf_table_file_lab_read("1.5,a\n2.5,b\n2.75,a\n", NULL, NULL);
    t = acf_table_file_lab_read("p,q\n7.5,b\n8.5,a\n", NULL, nameless->file->schema);
    assert_cell(t, 0, 1, 1);
    assert_note(t, 0, "the model has no column names; columns were taken in the order of the file");
    acf_table_free(t);
    acf_table_free(nameless);
}

/* Names that look like numbers are not taken for a header, unless the model has them. */
static void headers_of_numbers_are_recognised(void **state) {
    (void)state;
    acf_table *model = acf_table_file_lab_read("2019,2020\n1.5,2.5\n2.5,1.5\n1.25,7\n", OPTIONS("header=yes"), NULL);
    acf_table *t = acf_table_file_lab_read("2020,2019\n7,8.5\n", OPTIONS("any-order=true"), model->file->schema);
    assert_int_equal(t->N, 1);
    assert_cell(t, 0, 0, 8.5);
    acf_table_free(t);
    t = acf_table_file_lab_read("2020,2018\n7,8.5\n", NULL, model->file->schema); /* not the model's names */
    assert_int_equal(t->N, 2);
    acf_table_free(t);
    acf_table_free(model);
}

static void wrong_cells_are_named(void **state) {
    (void)state;
    acf_table_file_lab_refused(
        "id,age,sex,unit\n99,41,M,kg\n98,\"forty\n one\",F,kg\n", NULL, known(), ACF_EDATA,
        "FILE, line 3, column 2 ('age'): 'forty? one' is not a number, which this column (integer) holds; correct it, "
        "or add it to the option 'missing' if it stands for a missing value");
    acf_table *t =
        acf_table_file_lab_read("id,age,sex,unit\n99,41,M,kg\n98,never,F,kg\n", OPTIONS("missing=never"), known());
    assert_cell(t, 1, 0, (double)NAN);
    acf_table_free(t);
}

static void unseen_values_are_kept_and_reported(void **state) {
    (void)state;
    acf_table *t =
        acf_table_file_lab_read("id,age,sex,unit\n99,41,M,kg\n98,40,X,lb\n97,39,Y,kg\n96,38,X,lb\n", NULL, known());
    assert_cell(t, 1, 1, (double)NAN);
    assert_cell(t, 1, 0, 40);
    assert_int_equal(t->file->warnings.n, 2);
    assert_note(
        t, 0,
        "column 'sex': 3 cells hold values that the model never saw (the first: 'X', row 2); they are kept as they "
        "are and count as missing");
    assert_note(
        t, 1,
        "column 'unit' was constant when the model was made; now 2 cells hold something else (the first: 'lb', row "
        "2), which is kept and not used");
    acf_table_free(t);
}

static void a_model_has_fixed_its_types(void **state) {
    (void)state;
    acf_table_file_lab_refused(
        training, OPTIONS("types=age=category"), known(), ACF_EUSAGE,
        "option 'types': the model was trained with column 'age' as integer; it cannot be category now");
    acf_table *t = acf_table_file_lab_read(training, OPTIONS("types=age=integer"), known());
    acf_table_free(t);
    acf_table_file_lab_refused("id,age,sex,unit\n", OPTIONS("header=yes"), known(), ACF_EDATA,
                               "FILE: it has 4 columns and no rows; expected at least one");
}

/* ---- matrices --------------------------------------------------------------------------------------------------- */

static acf_status read_matrix(const double *x, int64_t rows, int64_t columns, const char *const *options,
                              acf_table **out) {
    char path[] = "/tmp/acflow-matrix-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    acf_table_file_lab l;
    acf_table_file_lab_open(&l, "", options);
    assert_int_equal(acf_npy_write(path, x, rows, columns), ACF_OK);
    acf_status status = acf_table_file_read(path, l.read_options, out);
    acf_table_file_lab_close(&l);
    unlink(path);
    return status;
}

static void matrices_are_tables(void **state) {
    (void)state;
    enum { N = 600, C = 4 }; /* more than one read takes */
    static double x[N * C];
    for (int i = 0; i < N; i++) x[i * C] = i / 7.0, x[i * C + 1] = i % 2, x[i * C + 2] = 5, x[i * C + 3] = i % 50;
    x[17 * C] = x[18 * C + 1] = x[19 * C + 2] = x[20 * C + 3] = (double)NAN;
    acf_table *t;
    assert_int_equal(read_matrix(x, N, C, NULL, &t), ACF_OK);
    assert_int_equal(t->D, 3);
    assert_string_equal(t->column[2].name, "V4");
    const acf_field_spec *c = t->file->schema->column;
    assert_string_equal(c[0].kind->name, "real");
    assert_string_equal(c[1].kind->name, "category");
    assert_string_equal(c[2].kind->name, "constant");
    assert_string_equal(c[3].kind->name, "integer");
    for (int i = 0; i < N; i++)
        assert_cell(t, i, 0, x[i * C]), assert_cell(t, i, 1, x[i * C + 1]), assert_cell(t, i, 2, x[i * C + 3]);
    acf_table_free(t);
    x[30 * C + 1] = (double)INFINITY;
    assert_int_equal(read_matrix(x, N, C, NULL, &t), ACF_EDATA);
    assert_non_null(
        strstr(acf_error(), "row 31, column 2: the value is infinity; expected a finite number, or NaN for missing"));
}

/* ---- tables without a file -------------------------------------------------------------------------------------- */

static void blank_tables_have_what_is_given(void **state) {
    (void)state;
    acf_table *t;
    assert_int_equal(acf_table_file_blank(known(), 3, "sex=M", &t), ACF_OK);
    assert_int_equal(t->N, 3);
    for (int i = 0; i < 3; i++) assert_cell(t, i, 0, (double)NAN), assert_cell(t, i, 1, 1);
    acf_table_free(t);
    assert_int_equal(acf_table_file_blank(known(), 0, NULL, &t), ACF_OK);
    assert_int_equal(t->N, 0);
    acf_table_free(t);
    static const char *const wrong[][2] = {
        {"sex", "'sex' has no value; expected items like age=40, separated by commas"},
        {"sexx=M", "there is no column 'sexx'; the model has 'age', 'sex'"},
        {"age=old", "'age=old': expected a number"},
        {"sex=Q", "'sex=Q': expected a level that the model has seen (F, M)"},
        {"age=40,sex=F,age=50", "column 'age' is given twice"},
        {"sex=F,sex=F", "column 'sex' is given twice"},
        {"age=40,id=7", "column 'id' is an identifier and not modelled: it cannot be given"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(acf_table_file_blank(known(), 1, wrong[i][0], &t), ACF_EUSAGE);
        assert_string_equal(acf_error(), wrong[i][1]);
    }
    assert_int_equal(acf_table_file_blank(known(), -1, NULL, &t), ACF_ESHAPE);
}

/* Quotes around names and values, doubled within them, blanks around either; a decimal comma, and a point although the
 * column has commas. */
static void given_values_may_be_quoted(void **state) {
    (void)state;
    acf_table *like = acf_table_file_lab_read(
                  "Preis;\"a, b=c\"\n3,50;\"x, y\"\n2,25;\"say \"\"no\"\"\"\n3,75;z\n4,25;z\n2,25;\"x, y\"\n1,50;\"say "
                  "\"\"no\"\"\"\n",
                  NULL, NULL),
              *t;
    const acf_schema *s = like->file->schema;
    static const struct {
        const char *given, *text;
        double price, level;
    } cases[] = {{"Preis=3.5", "3,5", 3.5, NAN},
                 {"Preis=\"3,5\"", "3,5", 3.5, NAN},
                 {" Preis = \"3,5\" ,  \"a, b=c\" = z ", "3,5", 3.5, 2},
                 {"\"a, b=c\"=\"x, y\"", NULL, NAN, 1},
                 {"\"a, b=c\"=\"say \"\"no\"\"\",Preis=2", "2", 2, 0},
                 {"\"a, b=c\"=\" z\"", NULL, NAN, -1}};
    assert_int_equal(like->D, 2);
    assert_string_equal(s->column[1].kind->name, "category");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const acf_status status = acf_table_file_blank(s, 1, cases[i].given, &t);
        assert_int_equal(status, cases[i].level == -1 ? ACF_EUSAGE : ACF_OK);
        if (status) continue;
        assert_cell(t, 0, 0, cases[i].price), assert_cell(t, 0, 1, cases[i].level);
        if (cases[i].text) assert_string_equal(t->file->given[0], cases[i].text);
        acf_table_free(t);
    }
    assert_int_equal(acf_table_file_blank(s, 1, "Preis=\"3,5", &t), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a quote is not closed: \"3,5");
    assert_int_equal(acf_table_file_blank(s, 1, "Preis=3,5", &t), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "quote a value that contains a comma"));
    acf_table_free(like);
}

/* Given values are used as they are, and a number far from the observed ones gives a warning. */
static void numbers_out_of_range_give_warnings(void **state) {
    (void)state;
    static const struct {
        const char *given, *note;
        double value;
    } cases[] = {
        {"age=25", NULL, 25},
        {"age=41", NULL, 41},
        {"age=37.5", NULL, 37.5},
        {"age=1000",
         "'age=1000' is outside the training range, 25 to 41; it is used, but the answer is an extrapolation", 1000},
        {"sex=M,age=-3",
         "'age=-3' is outside the training range, 25 to 41; it is used, but the answer is an extrapolation", -3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        acf_table *t;
        assert_int_equal(acf_table_file_blank(known(), 2, cases[i].given, &t), ACF_OK);
        assert_cell(t, 1, 0, cases[i].value);
        assert_int_equal(t->file->warnings.n, cases[i].note ? 1 : 0);
        if (cases[i].note) assert_note(t, 0, cases[i].note);
        acf_table_free(t);
    }
}

/* ---- cells as the file has them ---------------------------------------------------------------------------------- */

/* "row,column:text " for each cell, in the order of the calls. */
static acf_status write_down(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes) {
    acf_text *t = ctx;
    acf_text_addf(t, "%d,%d:", (int)row, (int)column);
    acf_text_add_bytes(t, text, bytes);
    acf_text_add(t, " ");
    return ACF_OK;
}

static void texts_are_those_of_the_file(void **state) {
    (void)state;
    char out[512];
    acf_table *t =
        acf_table_file_lab_read("sex,age,id,unit\n\"M\",041,9,kg\nQ,?,8,kg\n", OPTIONS("any-order=true"), known());
    for (int k = 0; k < 2; k++) { /* repeatable */
        acf_text text = acf_text_into(out, sizeof out);
        assert_int_equal(acf_table_file_texts(t, write_down, &text), ACF_OK);
        assert_string_equal(out, "0,1:M 0,0:041 1,1:Q 1,0:? ");
    }
    assert_int_equal(t->file->unseen_levels.n, 1); /* Q of row 1 */
    assert_int_equal(t->file->unseen_levels.cell[0], 3);
    acf_table_free(t);
    const double x[4] = {1.5, 7, (double)NAN, 0.1};
    assert_int_equal(acf_table_make(x, NULL, 2, 2, NULL, &t), ACF_OK);
    acf_text text = acf_text_into(out, sizeof out);
    assert_int_equal(acf_table_file_texts(t, write_down, &text), ACF_OK);
    assert_string_equal(out, "0,0:1.5 0,1:7 1,0: 1,1:0.1 ");
    acf_table_free(t);
}

/* For all columns, including the identifier and the empty one; a kept word is not a missing cell. */
static void missing_cells_are_those_of_the_file(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(mixed, NULL, NULL);
    static const char *const missing[] = {".....x.", ".x...x.", "..xxxxx",
                                          ".....x."}; /* id age sex visit unit note score */
    double x[4 * 7];
    assert_int_equal(acf_table_file_pattern(t, x), ACF_OK);
    for (int c = 0; c < 4 * 7; c++)
        if (isnan(x[c]) != (missing[c / 7][c % 7] == 'x')) fail_msg("row %d, column %d", c / 7, c % 7);
    acf_table_free(t);
    t = acf_table_file_lab_read("id,age,sex,unit,extra\n99,41,Q,kg,n1\n98,?,F,kg,?\n",
                                OPTIONS("types=extra=identifier"), known()); /* one that the model does not have */
    assert_int_equal(acf_table_file_pattern(t, x), ACF_OK);
    for (int c = 0; c < 2 * 5; c++) assert_int_equal(isnan(x[c]) != 0, c == 6 || c == 9);
    acf_table_free(t);
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

static void rows_are_keyed_by_their_id(void **state) {
    (void)state;
    acf_table *a = acf_table_file_lab_read("id,age,sex,unit\nx,41,F,kg\ny,33,M,kg\n", OPTIONS("id=id"), known());
    acf_table *b = acf_table_file_lab_read("unit,sex,age,id\nkg,M,33,\"y\"\nkg,F,50, x\nkg,F,51,z\n",
                                           OPTIONS("id=id", "any-order=true"), known());
    assert_int_equal(acf_table_row_id(a, 0), acf_table_row_id(b, 1));
    assert_int_equal(acf_table_row_id(a, 1), acf_table_row_id(b, 0));
    assert_true(acf_table_row_id(a, 0) != acf_table_row_id(a, 1) && acf_table_row_id(b, 2) != acf_table_row_id(b, 0));
    assert_true(acf_table_row_id(a, 0) >> 48 == 0 && acf_table_row_id(b, 2) >> 48 == 0);
    for (int i = 0; i < b->file->warnings.n; i++) assert_null(strstr(b->file->warnings.text[i], "another row"));
    acf_table_free(a);
    acf_table_free(b);
    a = acf_table_file_lab_read(training, NULL, NULL); /* without the option, the row number is the key */
    assert_null(a->id);
    assert_int_equal(acf_table_row_id(a, 3), 3);
    acf_table_free(a);
    a = acf_table_file_lab_read(training, OPTIONS("id=sex"), NULL); /* F and M occur twice: two ids are repeated */
    assert_non_null(
        strstr(a->file->warnings.text[a->file->warnings.n - 1], "'sex': 2 rows have the id of another row"));
    acf_table_free(a);
    acf_table_file_lab_refused(
        "id,age\n1,2\nNA,3\n", OPTIONS("id=id"), NULL, ACF_EDATA,
        "FILE, line 3, column 1 ('id'): the id is missing; the option 'id' needs one in every row");
    acf_table_file_lab_refused("id,age\n1,2\n", OPTIONS("id=ids"), NULL, ACF_EUSAGE,
                               "option 'id' names column 'ids', which FILE does not have; did you mean 'id'?");
}

/* ---- without memory --------------------------------------------------------------------------------------------- */

static void memory_may_run_out(void **state) {
    (void)state;
    acf_table_file_lab l;
    acf_table_file_lab_open(&l, "sex,id,age,name\nM,5,44,a\nX,6,45,a\n",
                            OPTIONS("types=name=identifier", "id=name", "any-order=true"));
    int64_t live = acf_alloc_live();
    for (int round = 0; round < 3; round++)
        for (int64_t n = 1;; n++) {
            acf_table *t = NULL;
            acf_alloc_fail_at(n);
            acf_status status = round == 0   ? acf_table_file_read(l.file.path, l.read_options, &t)
                                : round == 1 ? acf_table_file_read_for(l.file.path, l.read_options, known(), &t)
                                             : acf_table_file_blank(known(), 2, "age=4", &t);
            acf_alloc_fail_at(0);
            acf_table_free(t);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
            assert_in_range(n, 1, 500);
        }
    acf_table_file_lab_close(&l);
}

/* ---- real tables ------------------------------------------------------------------------------------------------ */

static void real_tables_are_typed(void **state) {
    (void)state;
    static const struct {
        const char *file, *kinds;
    } tables[] = {
        {"abalone.csv", "category real real real real real real real integer"},
        {"yeast.data", "identifier real real real real real real real real category"},
        {"mammography.csv", "real real real real real real category"},
        {"winequality-white.csv", "real real real real real real real real real real real ordinal"},
        {"breast-cancer-wisconsin.data",
         "integer ordinal ordinal ordinal ordinal ordinal ordinal ordinal ordinal ordinal category"},
        {"adult-train.csv",
         "integer category integer category ordinal category category category category category integer integer "
         "integer category category"},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char seen[512];
        acf_table_file_lab l;
        acf_table *t = NULL;
        acf_table_file_lab_open(&l, "", NULL);
        if (acf_table_file_read(acf_lab_real_table(tables[i].file), l.read_options, &t) != ACF_OK)
            fail_msg("%s", acf_error());
        acf_text out = acf_text_into(seen, sizeof seen);
        for (int64_t j = 0; j < t->file->schema->n; j++)
            acf_text_addf(&out, "%s%s", j ? " " : "", t->file->schema->column[j].kind->name);
        assert_string_equal(seen, tables[i].kinds);
        acf_table_free(t);
        acf_table_file_lab_close(&l);
    }
}

#define WITH_MODEL(test) cmocka_unit_test_setup_teardown(test, train, forget)
ACF_TESTS(table_file, cmocka_unit_test(modelled_columns_become_numbers),
          cmocka_unit_test(names_are_made_up_where_there_are_none), cmocka_unit_test(users_add_na_strings),
          cmocka_unit_test(dialects_can_be_given), cmocka_unit_test(dialects_are_reported),
          cmocka_unit_test(difficult_files_are_refused), cmocka_unit_test(tables_of_constants_are_completed),
          cmocka_unit_test(small_tables_are_read), cmocka_unit_test(blank_lines_are_missing_cells),
          cmocka_unit_test(gzip_is_read), cmocka_unit_test(pipes_are_read), cmocka_unit_test(schema_files_set_kinds),
          cmocka_unit_test(schema_files_name_words_among_dates), cmocka_unit_test(descriptions_can_be_given_back),
          cmocka_unit_test(wrong_options_are_refused), WITH_MODEL(new_rows_mean_what_the_model_learned),
          WITH_MODEL(columns_are_found_by_name), WITH_MODEL(extra_columns_are_kept_or_refused),
          WITH_MODEL(missing_cells_are_counted), cmocka_unit_test(times_have_the_step_of_all_cells),
          WITH_MODEL(without_names_places_count), cmocka_unit_test(headers_of_numbers_are_recognised),
          WITH_MODEL(wrong_cells_are_named), WITH_MODEL(unseen_values_are_kept_and_reported),
          WITH_MODEL(a_model_has_fixed_its_types), cmocka_unit_test(matrices_are_tables),
          WITH_MODEL(blank_tables_have_what_is_given), cmocka_unit_test(given_values_may_be_quoted),
          WITH_MODEL(texts_are_those_of_the_file), WITH_MODEL(missing_cells_are_those_of_the_file),
          WITH_MODEL(numbers_out_of_range_give_warnings), WITH_MODEL(rows_are_keyed_by_their_id),
          WITH_MODEL(memory_may_run_out), cmocka_unit_test(real_tables_are_typed))
