/* Tests of typing.h: every rule, on both sides of its limit; kinds set by the user; warnings. Columns are read from
 * files of one column, as users have them. */
#include "table/typing.h"

#include "harness/table_file_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 20];

/* A file of one column named `name`: n rows of format, which gets the row number modulo m. */
static const char *column(const char *name, const char *format, int n, int m) {
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t, "%s,keep\n", name);
    for (int i = 0; i < n; i++) {
        char cell[64];
        snprintf(cell, sizeof cell, format, i % m);
        acf_text_addf(&t, "%s,%d.5\n", cell, i * i % 97);
    }
    assert_true(t.len < sizeof text);
    return text;
}

#define AUTO                                                                                                           \
    (const char *const[]) { "header=yes", NULL }

static void is(const char *file, const char *kind) {
    char both[64];
    snprintf(both, sizeof both, "%s real", kind);
    acf_table_file_lab_kinds(file, AUTO, both);
}

static void numbers_are_real_or_whole(void **state) {
    (void)state;
    is(column("x", "%d.25", 300, 100), "real");
    is(column("x", "%d", 300, 100), "integer");
    is(column("x", "%d.0", 300, 100), "integer"); /* pandas writes integers with missing cells this way */
    is(column("x", "-%d", 300, 100), "integer");
}

/* Whole by accident: 4.8e+30. A round number with an exponent among others is no evidence. */
static void exponents_are_of_measurements(void **state) {
    (void)state;
    is(column("x", "%de2", 300, 100), "real");
    is(column("x", "4.8%de+30", 300, 100), "real");
    is(column("x", "%de2", 200, 20), "ordinal"); /* a scale stays a scale, in any notation */
    char few[4096], huge[4096];
    acf_text a = acf_text_into(few, sizeof few), b = acf_text_into(huge, sizeof huge);
    acf_text_add(&a, "x,keep\n"), acf_text_add(&b, "x,keep\n");
    for (int i = 0; i < 100; i++) {
        acf_text_addf(&a, i < 50 ? "%de+05,%d.5\n" : "1234%d,%d.5\n", i + 1,
                      i * i % 97); /* half of them, as R writes 100000 */
        acf_text_addf(&b, i < 1 ? "%de+25,%d.5\n" : "1234%d,%d.5\n", i + 1,
                      i * i % 97); /* the nearest whole number is not a power of ten */
    }
    is(few, "integer");
    is(huge, "real");
    acf_table *t = acf_table_file_lab_read(column("x", "4.8%de+30", 300, 10), AUTO, NULL);
    assert_int_equal(t->file->schema->column[0].digits, 3);
    acf_table_free(t);
}

/* The warning about the first column; "" if there is none. */
static void warns(const char *file, const char *note) {
    acf_table *t = acf_table_file_lab_read(file, AUTO, NULL);
    if (*note && !t->file->warnings.n) fail_msg("no note; expected '%s'", note);
    assert_string_equal(t->file->warnings.n ? t->file->warnings.text[0] : "", note);
    acf_table_free(t);
}

/* The first column's notation: "comma group prefix suffix". */
static void written(const char *file, const char *kind, const char *notation) {
    char is[128];
    acf_table *t = acf_table_file_lab_read(file, AUTO, NULL);
    const acf_field_spec *c = &t->file->schema->column[0];
    acf_text s = acf_text_into(is, sizeof is);
    acf_text_addf(&s, "%c[%s][%s][%s]", c->notation.comma ? ',' : '.', c->notation.group, c->notation.prefix,
                  c->notation.suffix);
    assert_string_equal(c->kind->name, kind);
    if (strcmp(kind, "real") == 0 || strcmp(kind, "integer") == 0 || strcmp(kind, "ordinal") == 0)
        assert_string_equal(is, notation);
    acf_table_free(t);
}

static void signs_and_units_are_read(void **state) {
    (void)state;
    written(column("x", "$%d.50", 300, 30), "real", ".[][$][]");
    written(column("x", "%d%%", 300, 30), "integer", ".[][][%]");
    written(column("x", "%d %%", 100, 10), "ordinal", ".[][][ %]");
    written(column("x", "-%d €", 300, 30), "integer", ".[][][ €]");
    written(column("x", "EUR %d", 300, 30), "integer", ".[][EUR ][]");
    written(column("x", "%d kg", 300, 30), "integer", ".[][][ kg]");
    written(column("x", "%d.5kg", 300, 30), "real", ".[][][kg]");
    written(column("x", "%d kg/m2", 300, 30), "integer", ".[][][ kg/m2]");
    written(column("x", "1.1%02d.234", 300, 30), "integer", ",[.][][]");
    written(column("x", "\"1,1%02d.5\"", 300, 30), "real", ".[,][][]");
    written(column("x", "\"1.1%02d,5\"", 300, 30), "real", ",[.][][]");
    written(column("x", "1 1%02d", 300, 30), "integer", ".[ ][][]");
    written(column("x", "1\302\2401%02d", 300, 30), "integer", ".[\302\240][][]");
    written(column("x", "1'1%02d.5", 300, 30), "real", ".['][][]");
    written(column("x", "192.168.0.%d", 300, 30), "category", ""); /* not thousands */
    written(column("x", "1.%d.3", 300, 30), "category", "");
    written(column("x", "a%d%%", 300, 30), "category", "");
    written(column("x", "0%d", 300, 30), "category", ""); /* a code */
    written(column("x", "P0000%02d", 300, 30), "category", "");
    written(column("x", "%d-%%", 300, 30), "category", "");
    written(column("x", "%dA", 300, 30), "category", ""); /* without a blank, only a known unit */
    written(column("x", "%d AM", 300, 30), "category", "");
    written(column("x", "%d Elm Street", 300, 30), "category", "");
}

static void signs_that_some_lack_give_warnings(void **state) {
    (void)state;
    warns("x,keep\n12 kg,1.5\n13,2.5\n14 kg,3.5\n", "column 1 ('x'): numbers like '12 kg' have a sign or a unit that "
                                                    "others do not have, so they are read as text "
                                                    "(category); write all alike to have them read as numbers");
    warns("x,keep\n12 kg,1.5\n13 lb,2.5\n14 kg,3.5\n", "column 1 ('x'): numbers like '12 kg' have a sign or a unit "
                                                       "that others do not have, so they are read as text "
                                                       "(category); write all alike to have them read as numbers");
}

/* None/Mild/Severe: in a column of words an NA string may be a value, and the user should know before imputing. */
static void na_strings_among_words_give_warnings(void **state) {
    (void)state;
#define VALUE(cells, what)                                                                                             \
    "column 1 ('x'): " cells " '" what                                                                                 \
    "', which counts as missing and is filled in; if it is a value here, say what marks a missing cell in the "        \
    "option 'missing' with = first, such as =NA,?"
    warns("x,keep\nNone,1.5\nMild,2.5\nNone,3.5\nSevere,4.5\n", VALUE("2 cells hold", "None"));
    warns("x,keep\n-,1.5\nMild,2.5\nMild,4.5\n",
          "column 1 ('x'): 1 cell holds '-', which counts as missing; if it is a value here, say what marks a "
          "missing cell in the option 'missing' with = first, such as =NA,?"); /* a constant is not imputed */
    warns("x,keep\nNone,1.5\n5,2.5\n7,3.5\n", "");
    warns("x,keep\nNone,1.5\n0,2.5\n1,3.5\n", ""); /* categories, but numbers */
    warns("x,keep\nNA,1.5\nMild,2.5\n?,3.5\nSevere,4.5\n", "");
    acf_table *t = acf_table_file_lab_read("x,keep\nNone,1.5\nMild,2.5\nSevere,4.5\n",
                                           (const char *const[]){"missing=None", NULL}, NULL);
    assert_int_equal(t->file->warnings.n, 0); /* the user named it */
    acf_table_free(t);
    t = acf_table_file_lab_read("x,keep\nNone,1.5\nMild,2.5\nSevere,4.5\n",
                                (const char *const[]){"missing==NA,?", NULL}, NULL);
    assert_true(t->file->warnings.n == 0 && t->column[0].classes == 3);
    acf_table_free(t);
}

static void infinity_is_a_missing_number(void **state) {
    (void)state;
    const char *file = "x,keep\n1.5,1.5\ninf,2.5\n2.5,3.5\n-Infinity,4.5\n";
    warns(file, "column 'x': 2 cells hold infinity (the first: 'inf', row 2), which counts as missing and is filled "
                "in");
    is(file, "real");
    is("x,keep\ninf,1.5\nsup,2.5\ninf,3.5\n", "category"); /* a word among words */
    acf_table *t = acf_table_file_lab_read(file, AUTO, NULL);
    assert_true(t->file->schema->column[0].observed == 2 && t->file->schema->column[0].missing == 2 &&
                t->file->schema->column[0].other.n == 0);
    acf_table_free(t);
    t = acf_table_file_lab_read(file, (const char *const[]){"missing=inf,-Infinity", NULL}, NULL);
    assert_int_equal(t->file->warnings.n, 0); /* the user named it */
    acf_table_free(t);
}

static void codes_of_missing_cells_give_warnings(void **state) {
    (void)state;
#define CODE(cells, list, others)                                                                                      \
    "column 1 ('x'): " cells " " list ", and the others lie between " others                                           \
    "; if that stands for a missing cell, name it in the option 'missing': " list
    warns("x,keep\n1,1.5\n8,2.5\n99,3.5\n3,4.5\n5,4.5\n99,4.5\n", CODE("2 cells hold", "99", "1 and 8"));
    warns("x,keep\n18.5,1.5\n40.25,2.5\n-999,3.5\n3,4.5\n-999.0,4.5\n", CODE("2 cells hold", "-999", "3 and 40.25"));
    warns("x,keep\n10,1.5\n20,2.5\n9999,3.5\n998,4.5\n12,4.5\n", CODE("1 cell holds", "9999", "10 and 998"));
    warns("x,keep\n10,1.5\n20,2.5\n999,3.5\n998,4.5\n12,4.5\n", CODE("2 cells hold", "999,998", "10 and 20"));
    warns("x,keep\n10,1.5\n90,2.5\n99,3.5\n30,4.5\n12,4.5\n", ""); /* an age */
    warns("x,keep\n10,1.5\n1200,2.5\n-9,3.5\n30,4.5\n12,4.5\n", CODE("1 cell holds", "-9", "10 and 1200"));
    warns("x,keep\n10,1.5\n-12,2.5\n-99,3.5\n30,4.5\n12,4.5\n", CODE("1 cell holds", "-99", "-12 and 30"));
    warns("x,keep\n10,1.5\n-12,2.5\n-9,3.5\n30,4.5\n12,4.5\n", "");
    warns("x,keep\n1,1.5\n8,2.5\n99,3.5\n3,4.5\n", ""); /* too few cells */
}

/* The most frequent spelling is written. */
static void yes_and_no_are_one_pair(void **state) {
    (void)state;
    const char *file = "x,keep\nYes,1.5\nno,2.5\nYES,3.5\nNo,4.5\nyes,5.5\nYes,1.5\nNo,2.5\n,2.5\n";
    acf_table *t = acf_table_file_lab_read(file, AUTO, NULL), *fresh;
    const acf_field_spec *c = &t->file->schema->column[0];
    assert_true(c->any_case && c->levels.n == 2 && t->column[0].classes == 2);
    assert_true(strcmp(c->levels.entry[0].text, "No") == 0 && c->levels.entry[0].count == 3);
    assert_true(strcmp(c->levels.entry[1].text, "Yes") == 0 && c->levels.entry[1].count == 4);
    assert_true(acf_table_row(t, 1)[0] == 0 && acf_table_row(t, 2)[0] == 1);
    fresh = acf_table_file_lab_read("x,keep\nyES,1.5\nperhaps,2.5\n", NULL, t->file->schema);
    assert_true(acf_table_row(fresh, 0)[0] == 1 && fresh->file->warnings.n == 1);
    acf_table_free(fresh);
    acf_table_free(t);
    t = acf_table_file_lab_read("x,keep\nA,1.5\na,2.5\nA,3.5\nB,4.5\n", AUTO, NULL); /* alleles */
    assert_int_equal(t->column[0].classes, 3);
    acf_table_free(t);
}

static void few_whole_numbers_are_a_scale(void **state) {
    (void)state;
    is(column("x", "%d", 200, 20), "ordinal");
    is(column("x", "%d", 210, 21), "integer"); /* too many levels */
    is(column("x", "%d", 199, 20), "integer"); /* too few cells for each */
    is(column("x", "%d", 30, 3), "ordinal");
    is(column("x", "%d.5", 200, 20), "real"); /* only whole numbers are levels */
}

static void two_whole_numbers_are_categories(void **state) {
    (void)state;
    is(column("x", "1%d", 20, 2), "category");
    is(column("x", "1%d", 19, 2), "integer"); /* 10 and 11, too few cells */
    is(column("x", "%d", 4, 2), "category");  /* 0 and 1 */
    is(column("x", "%d.5", 40, 2), "real");
}

static void keys_are_identifiers(void **state) {
    (void)state;
    is(column("x", "%d", 300, 300), "identifier");             /* 0, 1, 2, ... */
    is(column("year", "2%03d", 300, 300), "integer");          /* consecutive, but the values have a meaning */
    is(column("patient_id", "2%03d", 300, 300), "identifier"); /* but the name says that it is a key */
    is(column("customerId", "1%03d7", 300, 300), "identifier");
    is(column("customerId", "1%03d7", 300, 200), "integer"); /* repeated: a group rather than a key */
    is(column("paid", "1%03d7", 300, 300), "integer");       /* only the ending of the name matches */
    assert_true(acf_typing_is_id_name("ID") && acf_typing_is_id_name("Unnamed: 0") && acf_typing_is_id_name("row.id"));
    assert_false(acf_typing_is_id_name("hybrid") || acf_typing_is_id_name("PAID") || acf_typing_is_id_name("i"));
}

static void codes_are_not_numbers(void **state) {
    (void)state;
    is(column("zip", "0%d", 300, 30), "category");
    is(column("zip", "%d", 300, 30), "integer");
    is(column("share", "%d %%", 300, 30), "integer"); /* a number with a unit is a measurement */
    is(column("price", "$00%d", 300, 30), "category");
}

static void texts_are_categories_or_identifiers(void **state) {
    (void)state;
    is(column("x", "w%d", 100, 89), "category");
    is(column("x", "w%d", 100, 90), "identifier"); /* nine in ten differ */
    is(column("x", "w%d", 9, 9), "category");      /* too few cells: missing cells can at least be imputed */
    is(column("x", "w%d", 10, 10), "identifier");
    is(column("x", "w%d", 500, 256), "category");
    is(column("x", "w%d", 500, 257), "identifier"); /* more than half of the cells, and too many for classes */
    is(column("x", "w%d", 600, 257), "category");
}

static void long_texts_are_prose(void **state) {
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        acf_text f = acf_text_into(text, sizeof text);
        acf_text_add(&f, "x,keep\n");
        for (int i = 0; i < 8; i++) acf_text_addf(&f, "%0*d!,%d.5\n", 1023 + (i == 3 && extra), i % 2, i);
        is(text, extra ? "identifier" : "category");
    }
}

/* Values that are not kept are at least not mistaken for another kind. */
static void beyond_the_levels_that_are_kept(void **state) {
    (void)state;
    enum { LEVELS = ACF_LEVELS_KEPT + 100, BYTES = 1 << 23 };
    char *file = malloc(BYTES);
    assert_non_null(file);
    acf_text f = acf_text_into(file, BYTES);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 3 * LEVELS; i++) acf_text_addf(&f, "w%d,%d.5\n", i % LEVELS, i % 90);
    assert_true(f.len < BYTES);
    acf_table *t = acf_table_file_lab_read(file, NULL, NULL);
    free(file);
    const acf_field_spec *c = &t->file->schema->column[0];
    assert_string_equal(c->kind->name, "category");
    assert_int_equal(c->levels.n, ACF_LEVELS_KEPT);
    assert_true(strstr(t->file->warnings.text[0], "more than 65536 categories") != NULL);
    assert_true(acf_table_present(acf_table_row(t, ACF_LEVELS_KEPT - 1)[0]) &&
                !acf_table_present(acf_table_row(t, ACF_LEVELS_KEPT)[0]));
    acf_table_free(t);
}

static void commas_may_be_decimal(void **state) {
    (void)state;
    acf_table_file_lab_kinds("x;y\n1,5;a\n2,25;b\n7;b\n", NULL, "real category");
    acf_table_file_lab_kinds("x;y\n12,345;a\n2,250;b\n7;b\n", NULL, "category category"); /* thousands, or not? */
    acf_table_file_lab_kinds("x;y\n12,345;a\n0,250;b\n7;b\n", NULL, "real category");     /* not thousands */
    acf_table_file_lab_kinds("x;y\n1,5;a\n2.25;b\n7;b\n", NULL, "category category");     /* one kind of mark */
}

static void one_value_or_none(void **state) {
    (void)state;
    is(column("x", "kg%.0d", 20, 1), "constant");
    is(column("x", "%d", 20, 1), "constant");
    is(column("x", "?%.0d", 20, 1), "empty");
    is("x,keep\n?,1.5\n7,2.5\n?,3.5\n", "constant");   /* one observed cell */
    is("x,keep\n7,1.5\n7.0,2.5\n?,3.5\n", "constant"); /* one value in two notations */
}

static void dates_are_found(void **state) {
    (void)state;
    is("x,keep\n2021-03-09,1.5\n2021-03-10,2.5\n", "date");
    is("x,keep\n2021-03-09 12:30,1.5\n2021-03-10 01:00,2.5\n", "time");
    is("x,keep\n12:30,1.5\n01:00,2.5\n", "time");
    is("x,keep\n25/03/2021,1.5\n01/02/2021,2.5\n", "date");
    is("x,keep\n05/03/2021,1.5\n01/02/2021,2.5\n", "category");
    is("x,keep\n2021-03-09,1.5\nsoon,2.5\n", "category");
}

static void ambiguous_dates_give_warnings(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("x,y\n05/03/2021,1.5\n01/02/2021,2.5\n", NULL, NULL);
    assert_int_equal(t->file->warnings.n, 1);
    assert_string_equal(
        t->file->warnings.text[0],
        "column 1 ('x'): dates like '05/03/2021' may have the day or the month first, so they are read as "
        "text (category); say dmy or mdy in the option 'types' to have dates");
    acf_table_free(t);
    t = acf_table_file_lab_read("x,y\n05/03/2021,1.5\n01/02/2021,2.5\n", (const char *const[]){"types=x=mdy", NULL},
                                NULL);
    assert_int_equal(t->file->warnings.n, 0);
    assert_string_equal(t->file->schema->column[0].kind->name, "date");
    assert_true(acf_table_row(t, 0)[0] == 18750); /* the third of May */
    acf_table_free(t);
    acf_table_file_lab_refused(
        "x,y\n05/03/2021,1.5\n01/02/2021,2.5\n", (const char *const[]){"types=x=date", NULL}, NULL, ACF_EDATA,
        "FILE, column 1 ('x'): it cannot be read as date: the order of day and month is ambiguous; specify dmy or mdy");
}

/* 95 numbers with words between them: few words are kept, many make the column text. */
static void words_among_numbers_are_kept(void **state) {
    (void)state;
    acf_text f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 100; i++) acf_text_addf(&f, i % 20 == 7 ? "over,%d.5\n" : "%d,1.5\n", i);
    acf_table *t = acf_table_file_lab_read(text, NULL, NULL);
    const acf_field_spec *c = &t->file->schema->column[0];
    assert_string_equal(c->kind->name, "integer");
    assert_int_equal(c->other.n, 1);
    assert_int_equal(t->file->warnings.n, 1);
    assert_string_equal(
        t->file->warnings.text[0],
        "column 1 ('x'): 5 of 100 cells are not numbers (the first: 'over', row 8); they are kept as they are and count as missing "
        "for the model. Name them in the option 'missing' to have them filled in, or say category in the option 'types'");
    assert_true(acf_table_row(t, 6)[0] == 6 && !acf_table_present(acf_table_row(t, 7)[0]));
    acf_table_free(t);
    f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 100; i++)
        acf_text_addf(&f, i % 9 == 7 ? "over,%d.5\n" : "%d,1.5\n", i); /* eleven in a hundred */
    acf_table_file_lab_kinds(text, NULL, "identifier real");
    f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 100; i++)
        acf_text_addf(&f, i % 20 == 7 ? "10+,%d.5\n" : "%d,1.5\n", i % 5); /* a scale with an open end */
    acf_table_file_lab_kinds(text, NULL, "category real");
}

/* A file of n rows: days of 2021, and the word in every m-th row, from row m on. */
static const char *days(int n, int m, const char *word) {
    acf_text f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 1; i <= n; i++) {
        char cell[64];
        snprintf(cell, sizeof cell, word, i);
        if (i % m) snprintf(cell, sizeof cell, "2021-%02d-%02d", i % 12 + 1, i % 28 + 1);
        acf_text_addf(&f, "%s,%d.5\n", cell, i * i % 97);
    }
    return text;
}

/* As among numbers: few words are kept, many make the column text. */
static void words_among_dates_are_kept(void **state) {
    (void)state;
#define AMONG(cells, of, what, first)                                                                                  \
    "column 1 ('x'): " cells " of " of " cells are not " what " (the first: " first                                    \
    "); they are kept as they are and count as missing for the model. Name "                                           \
    "them in the option 'missing' to have them filled in"
    acf_table *t = acf_table_file_lab_read(days(500, 300, "2021-02-30"), AUTO, NULL);
    const acf_field_spec *c = &t->file->schema->column[0];
    assert_string_equal(c->kind->name, "date");
    assert_int_equal(c->other.n, 1);
    assert_string_equal(t->file->warnings.text[0],
                        AMONG("1", "500", "dates written YYYY-MM-DD", "'2021-02-30', row 300"));
    assert_true(acf_table_present(acf_table_row(t, 298)[0]) && !acf_table_present(acf_table_row(t, 299)[0]));
    assert_true(strstr(acf_table_file_lab_write(t, (acf_write_plan){.imputations = 1}, acf_table_file_lab_constant),
                       "\n2021-02-30,"));
    acf_table_free(t);
    warns(days(100, 10, "soon"), AMONG("10", "100", "dates written YYYY-MM-DD", "'soon', row 10"));
    warns(days(100, 10, "99"),
          AMONG("10", "100", "dates written YYYY-MM-DD", "'99', row 10")); /* a number is not a date */
    is(days(100, 9, "soon"), "category");                                  /* eleven in a hundred */
    is(days(300, 15, "soon%d"), "date");                                   /* twenty different ones */
    is(days(315, 15, "soon%d"), "category");                               /* twenty-one */
    is("x,keep\n?,1.5\n12:30,2.5\n12:45,2.5\n12:30,2.5\n12:35,2.5\n12:30,2.5\n12:30,2.5\n12:30,2.5\n12:30,2.5\n12:30,2.5\n"
       "9.30,2.5\n",
       "time");
    /* A model keeps the same words in a new file; anything else is an error. */
    t = acf_table_file_lab_read(days(500, 300, "2021-02-30"), AUTO, NULL);
    acf_table *new = acf_table_file_lab_read("x,keep\n2021-02-30,1.5\n2021-02-28,1.5\n", AUTO, t->file->schema);
    assert_false(acf_table_present(acf_table_row(new, 0)[0]));
    acf_table_free(new);
    acf_table_file_lab_refused(
        "x,keep\n2021-02-31,1.5\n", AUTO, t->file->schema, ACF_EDATA,
        "FILE, line 2, column 1 ('x'): '2021-02-31' is not a date written YYYY-MM-DD, which this column (date) holds; "
        "correct it, or add it to the option 'missing' if it stands for a missing value");
    acf_table_free(t);
}

/* More different times than a profile keeps: other texts are still counted. */
static void words_among_many_times_are_kept(void **state) {
    (void)state;
    enum { TIMES = ACF_LEVELS_KEPT + 1000, BYTES = 1 << 22 };
    char *file = malloc(BYTES);
    assert_non_null(file);
    /* late: a time in another format comes first, so it is unknown which texts are odd */
    for (int late = 0; late < 2; late++) {
        acf_text f = acf_text_into(file, BYTES);
        acf_text_addf(&f, "x,keep\n%s,1.5\n", late ? "2021-03-09" : "00:00:00");
        for (int i = 0; i < TIMES; i++)
            acf_text_addf(&f, i % 9000 == 8999 ? "off,%d.5\n" : "%02d:%02d:%02d,1.5\n", i / 3600, i / 60 % 60, i % 60);
        assert_true(f.len < BYTES);
        acf_table_file_lab_kinds(file, AUTO, late ? "identifier real" : "time real");
        if (!late) warns(file, AMONG("7", "66537", "times written HH:MM:SS", "'off', row 9001"));
    }
    free(file);
}

/* A column that is text because of some of its cells gives a warning. */
static void columns_that_are_text_by_a_few_cells_give_warnings(void **state) {
    (void)state;
#define MOSTLY(fit, of, what, first, kind)                                                                             \
    "column 1 ('x'): " fit " of " of " cells are " what ", the others are not (the first: " first                      \
    "), so all are read as text (" kind "). Name the others in the option "                                            \
    "'missing' if they stand for missing cells; if the column is meant to be text, say " kind " in the option 'types'"
    warns(days(100, 9, "soon"), MOSTLY("89", "100", "dates written YYYY-MM-DD", "'soon', row 9", "category"));
    warns(days(100, 2, "%d.3.2021"),
          MOSTLY("50", "100", "dates written YYYY-MM-DD", "'2.3.2021', row 2", "identifier"));
    warns("x,keep\n12:30,1.5\nnoon,2.5\n12:45,2.5\n",
          MOSTLY("2", "3", "times written HH:MM", "'noon', row 2", "category"));
    warns("x,keep\n12:30,1.5\nnoon,2.5\nafternoon,2.5\n", "");
    acf_text f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 100; i++) acf_text_addf(&f, i % 2 ? "w%d,1.5\n" : "%d,2.5\n", i);
    warns(text, MOSTLY("50", "100", "numbers", "'w1', row 2", "identifier"));
    f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 100; i++)
        acf_text_addf(&f, i % 5 > 1 ? "w%d,1.5\n" : "%d,2.5\n", i); /* words with numbers among them */
    warns(text, "");
    f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,keep\n");
    for (int i = 0; i < 50; i++) acf_text_addf(&f, i % 25 == 24 ? "0%d,1.5\n" : "1%02d,2.5\n", i);
    warns(text,
          "column 1 ('x'): 2 of 50 numbers begin with a zero, as codes do (the first: '024', row 25), so all are read "
          "as text (identifier); say integer or real in the option 'types' if they are numbers, else identifier");
    acf_table *t = acf_table_file_lab_read(text, (const char *const[]){"types=x=integer", NULL}, NULL);
    assert_true(t->file->warnings.n == 0 && acf_table_row(t, 24)[0] == 24);
    acf_table_free(t);
    warns(
        "x;keep\n12,345;1\n2,250;2\n7;2\n",
        "column 1 ('x'): '12,345' may be 12.345, with a decimal comma, or 12345, with a comma between thousands, and "
        "no other "
        "column decides, so such numbers are read as text (category); the option 'decimal' (point or comma) settles it "
        "for the file, real or integer in the option "
        "'types' for the column");
    warns("x;keep\n1,5;1\n2.25;2\n7;2\n",
          "column 1 ('x'): '1,5' has a decimal comma and '2.25' a decimal point, so they are read as text (category); "
          "write all numbers alike to have them read as numbers");
}

static void thousands_of_categories_are_pooled(void **state) {
    (void)state;
    acf_text f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "city,keep\n");
    /* city k of 2000 occurs about 1 + (40000 / (k + 1)^1.2) times: a few hundred occur three times or more */
    int64_t rows = 0, frequent = 0;
    for (int k = 0; k < 2000; k++) {
        int n = 1 + 3000 / (k + 1);
        frequent += n >= 3;
        for (int i = 0; i < n; i++, rows++) acf_text_addf(&f, "city %d,%d.5\n", k, i);
    }
    assert_true(f.len < sizeof text && frequent > 300);
    acf_table *t = acf_table_file_lab_read(text, NULL, NULL);
    const acf_field_spec *c = &t->file->schema->column[0];
    assert_string_equal(c->kind->name, "category");
    assert_int_equal(c->levels.n, 2000);
    assert_int_equal(acf_spec_classes(c), ACF_CLASSES_MAX);
    assert_int_equal(t->column[0].classes, ACF_CLASSES_MAX);
    assert_int_equal(c->pooled, 2000 - 255);
    assert_string_equal(c->levels.entry[255].text, "city 255"); /* the most frequent of the pooled */
    assert_true(acf_table_row(t, rows - 1)[0] == 255 && acf_table_row(t, 0)[0] < 255);
    assert_string_equal(
        t->file->warnings.text[0],
        "column 1 ('city'): 2000 categories; the 255 most frequent have a class each, and the others share one");
    acf_table_free(t);
}

/* If all levels are rare, only one has its own class. */
static void rare_levels_share_a_class(void **state) {
    (void)state;
    column("x", "w%d", 600, 300); /* twice each */
    acf_table *t = acf_table_file_lab_read(text, NULL, NULL);
    assert_int_equal(t->column[0].classes, 2);
    acf_table_free(t);
    column("x", "w%d", 900, 300); /* three times */
    t = acf_table_file_lab_read(text, NULL, NULL);
    assert_int_equal(t->column[0].classes, 256);
    acf_table_free(t);
    column("x", "w%d", 512, 256); /* as many as allowed: all have a class, however rare */
    t = acf_table_file_lab_read(text, NULL, NULL);
    assert_int_equal(t->column[0].classes, 256);
    assert_int_equal(t->file->schema->column[0].pooled, 0);
    acf_table_free(t);
}

/* Codes do not depend on the order of rows. */
static void levels_have_their_own_order(void **state) {
    (void)state;
    acf_table *a = acf_table_file_lab_read("x,y\nb,1.5\n10,2\n9,3\na,4\n", NULL, NULL);
    acf_table *b = acf_table_file_lab_read("x,y\na,1.5\n9,2\nb,3\n10,4\n", NULL, NULL);
    for (int64_t i = 0; i < 4; i++)
        assert_string_equal(a->file->schema->column[0].levels.entry[i].text,
                            b->file->schema->column[0].levels.entry[i].text);
    assert_true(acf_table_row(a, 0)[0] == 3 && acf_table_row(a, 1)[0] == 1 && acf_table_row(a, 2)[0] == 0 &&
                acf_table_row(b, 0)[0] == 2);
    acf_table_free(a);
    acf_table_free(b);
}

static void decimals_are_those_of_nearly_all(void **state) {
    (void)state;
    acf_text f = acf_text_into(text, sizeof text);
    acf_text_add(&f, "x,y,z\n");
    for (int i = 0; i < 100; i++)
        acf_text_addf(&f, i == 50 ? "9.53333333333333,1.50,1e-5\n" : "%d.5,2.50,0.%d\n", i, i + 1);
    acf_table *t = acf_table_file_lab_read(text, NULL, NULL);
    const acf_field_spec *c = t->file->schema->column;
    assert_int_equal(c[0].decimals, 1);
    assert_false(c[0].fixed);
    assert_int_equal(c[1].decimals, 2);
    assert_true(c[1].fixed);
    assert_int_equal(c[2].decimals, -1);
    assert_int_equal(c[2].digits, 3); /* of 0.100 */
    acf_table_free(t);
}

static void users_set_kinds(void **state) {
    (void)state;
    const char *file = "a,b,c,d,e\n1,x,5,u,1\n2,y,5,v,2\n3,x,5,u,3\n4,?,5,w,4\n5,x,5,u,6\n";
    acf_table_file_lab_kinds(file, NULL, "identifier category constant category integer");
    acf_table_file_lab_kinds(file, (const char *const[]){"types=a=real, c=integer ,e=category,d=id,b=constant", NULL},
                             "real constant integer identifier category");
    acf_table_file_lab_kinds(file, (const char *const[]){"types=a=ordinal", NULL},
                             "ordinal category constant category integer");
    acf_table_file_lab_refused(
        file, (const char *const[]){"types=b=ordinal", NULL}, NULL, ACF_EDATA,
        "FILE, column 2 ('b'): it cannot be read as ordinal: it contains words, whose order is not known: list its levels in a "
        "schema file");
    acf_table_file_lab_refused(
        file, (const char *const[]){"types=b=time", NULL}, NULL, ACF_EDATA,
        "FILE, column 2 ('b'): it cannot be read as time: no cell has a known format; a schema file can set the format");
    acf_table_file_lab_refused(
        file, (const char *const[]){"types=b=real", NULL}, NULL, ACF_EDATA,
        "FILE, line 2, column 2 ('b'): 'x' is not a number, which this column (real) holds; correct it, or add it to "
        "the option 'missing' if it stands for a missing value");
    acf_table_file_lab_refused(file, (const char *const[]){"types=nowhere=real", NULL}, NULL, ACF_EUSAGE,
                               "option 'types' names column 'nowhere', which FILE does not have");
    acf_table_file_lab_refused("alpha,beta\n1.5,2\n", (const char *const[]){"types=alhpa=real", NULL}, NULL, ACF_EUSAGE,
                               "option 'types' names column 'alhpa', which FILE does not have; did you mean 'alpha'?");
}

static void tables_without_a_column_to_model_are_refused(void **state) {
    (void)state;
    acf_table_file_lab_unlearnable("a,b\n?,\nNA,-\n", "FILE: all cells are missing: there is nothing to learn from");
    acf_table_file_lab_unlearnable(
        "id,unit,x\n1,kg,?\n2,kg,?\n3,?,?\n",
        "FILE: there is no column to model: 1 hold one value only, 1 are identifiers, 1 are empty. If one should be "
        "modelled after all, name its type in the option 'types', such as id=category");
    acf_table_file_lab_unlearnable(
        "id,unit,x\n1,kg,5\n",
        "FILE: there is no column to model: 3 hold one value only, 0 are identifiers, 0 are empty. If one should be "
        "modelled after all, name its type in the option 'types', such as id=category");
}

ACF_TESTS(typing, cmocka_unit_test(numbers_are_real_or_whole), cmocka_unit_test(exponents_are_of_measurements),
          cmocka_unit_test(signs_and_units_are_read), cmocka_unit_test(signs_that_some_lack_give_warnings),
          cmocka_unit_test(infinity_is_a_missing_number), cmocka_unit_test(codes_of_missing_cells_give_warnings),
          cmocka_unit_test(yes_and_no_are_one_pair), cmocka_unit_test(na_strings_among_words_give_warnings),
          cmocka_unit_test(few_whole_numbers_are_a_scale), cmocka_unit_test(two_whole_numbers_are_categories),
          cmocka_unit_test(keys_are_identifiers), cmocka_unit_test(codes_are_not_numbers),
          cmocka_unit_test(texts_are_categories_or_identifiers), cmocka_unit_test(long_texts_are_prose),
          cmocka_unit_test(beyond_the_levels_that_are_kept), cmocka_unit_test(commas_may_be_decimal),
          cmocka_unit_test(one_value_or_none), cmocka_unit_test(dates_are_found),
          cmocka_unit_test(ambiguous_dates_give_warnings), cmocka_unit_test(words_among_numbers_are_kept),
          cmocka_unit_test(words_among_dates_are_kept), cmocka_unit_test(words_among_many_times_are_kept),
          cmocka_unit_test(columns_that_are_text_by_a_few_cells_give_warnings),
          cmocka_unit_test(thousands_of_categories_are_pooled), cmocka_unit_test(rare_levels_share_a_class),
          cmocka_unit_test(levels_have_their_own_order), cmocka_unit_test(decimals_are_those_of_nearly_all),
          cmocka_unit_test(users_set_kinds), cmocka_unit_test(tables_without_a_column_to_model_are_refused))
