/* Tests of describe.h: the text shown to people. */
#include "table/describe.h"

#include "harness/table_file_lab.h"

#include <string.h>

/* Names with a common beginning stay different, and a name too wide for its column is still separated from the next. */
static void long_names_are_cut_in_the_middle(void **state) {
    (void)state;
    char out[4096];
    acf_table *t = acf_table_file_lab_read(
        "blood_pressure_in_the_morning_systolic;blood_pressure_in_the_morning_diastolic;gr\xc3\xb6\xc3\x9f"
        "e_gemessen_am_n\xc3\xa4"
        "chsten_Tag\n"
        "1;2;3\n4;5;6\n7;8;2\n",
        NULL, NULL);
    acf_text text = acf_text_into(out, sizeof out);
    t->file->schema->column[0].missing = 1234567, t->file->schema->column[0].observed = 0;
    acf_describe(t->file->schema, "", "", NULL, &text);
    assert_string_equal(strstr(out, "column  "), "column                    kind        missing         holds\n"
                                                 "blood_pressur...systolic  integer     1234567 (100.0 %) 1 to 7\n"
                                                 "blood_pressur...iastolic  integer     -               2 to 8\n"
                                                 "gr\xc3\xb6\xc3\x9f"
                                                 "e_gemesse...sten_Tag  integer     -               2 to 6\n");
    acf_table_free(t);
}

static void tables_are_described(void **state) {
    (void)state;
    char out[4096];
    acf_table *t = acf_table_file_lab_read("id;age;sex;visit;unit;note;score;gr\xc3\xb6\xc3\x9f"
                                           "e\n"
                                           "1;41; M;25/12/2020;kg;;1,50;2\n"
                                           "2; ? ;F;03/01/2021;kg;;2,25;3\n"
                                           "3;39;NA;;?;NA;;4\n"
                                           "4;33;F;01/01/2021;kg;-;3,75;9\n",
                                           NULL, NULL);
    acf_text text = acf_text_into(out, sizeof out);
    assert_int_equal(
        acf_warnings_addf(
            &t->file->warnings,
            "a remark that is long enough to be broken, because it goes on and on until there is no room for it "
            "on one line"),
        ACF_OK);
    acf_describe(t->file->schema, "t.csv", "", &t->file->warnings, &text);
    assert_string_equal(
        out,
        "t.csv: 4 rows, 8 columns, 5 modelled\n\n"
        "column  kind        missing         holds\n"
        "id      identifier  -               not modelled\n"
        "age     integer     1 (25.0 %)      33 to 41\n"
        "sex     category    1 (25.0 %)      2 levels: F (2), M (1)\n"
        "visit   date        1 (25.0 %)      25/12/2020 to 03/01/2021 (DD/MM/YYYY)\n"
        "unit    constant    1 (25.0 %)      always 'kg'\n"
        "note    empty       4 (100.0 %)     no value at all\n"
        "score   real        1 (25.0 %)      1.5 to 3.75, 2 decimals\n"
        "gr\xc3\xb6\xc3\x9f"
        "e   integer     -               2 to 9\n"
        "\n  a remark that is long enough to be broken, because it goes on and on until there is no room for it on "
        "one\n    line\n");
    text = acf_text_into(out, sizeof out);
    assert_int_equal(acf_describe_json(t->file->schema, "t.csv", "", &t->file->warnings, &text), ACF_OK);
    assert_non_null(strstr(
        out,
        "\"kind\": \"date\",\n      \"observed\": 3,\n      \"missing\": 1,\n      \"format\": \"DD/MM/YYYY\",\n      "
        "\"min\": \"25/12/2020\",\n      \"max\": \"03/01/2021\"\n"));
    assert_non_null(strstr(out, "\"file\": \"t.csv\""));
    assert_non_null(strstr(out, "\"warnings\": [\n    \"a remark"));
    acf_table_free(t);
}

static void many_levels_are_cut(void **state) {
    (void)state;
    char file[8192], out[4096];
    acf_text text = acf_text_into(file, sizeof file);
    acf_text_add(&text, "x,y\n");
    for (int i = 0; i < 300; i++) acf_text_addf(&text, "level%02d,%d.5\n", i % 30, i);
    acf_table *t = acf_table_file_lab_read(file, NULL, NULL);
    text = acf_text_into(out, sizeof out);
    acf_describe(t->file->schema, "", "", NULL, &text);
    assert_non_null(strstr(out, "30 levels: level00 (10), level01 (10), level02 (10), level03 (10), ...\n"));
    assert_true(strncmp(out, "300 rows, 2 columns, 2 modelled\n", 32) == 0);
    acf_table_free(t);
}

static void the_number_of_warnings_is_limited(void **state) {
    (void)state;
    acf_warnings warnings = {0};
    for (int i = 0; i < ACF_WARNINGS_MAX + 7; i++)
        assert_int_equal(acf_warnings_addf(&warnings, "remark %d", i), ACF_OK);
    assert_int_equal(warnings.n, ACF_WARNINGS_MAX);
    assert_string_equal(warnings.text[0], "remark 0");
    assert_string_equal(warnings.text[ACF_WARNINGS_MAX - 2], "remark 98");
    assert_string_equal(warnings.text[ACF_WARNINGS_MAX - 1], "and 8 more warnings");
    acf_warnings_clear(&warnings);
}

ACF_TESTS(describe, cmocka_unit_test(tables_are_described), cmocka_unit_test(long_names_are_cut_in_the_middle),
          cmocka_unit_test(many_levels_are_cut), cmocka_unit_test(the_number_of_warnings_is_limited))
