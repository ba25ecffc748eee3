/* Tests of cell.h: what each kind reads, keeps and refuses, and how it writes values from a model. */
#include "table/cell.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* A schema of one column from JSON, as a model file has it. */
static acf_schema *schema(const char *column) {
    char text[1024];
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t,
                  "{\"rows\": 9, \"named\": true, \"missing_markers\": [\"\", \"NA\"], \"columns\": [{\"name\": \"x\", "
                  "\"observed\": 9, \"missing\": 0, %s}]}",
                  column);
    json_t *v;
    acf_schema *s = NULL;
    const acf_json_source from = {"test", ACF_EMODEL};
    assert_int_equal(acf_json_parse(from, text, t.len, sizeof text, &v), ACF_OK);
    if (acf_schema_from_json(from, v, true, &s) != ACF_OK) fail_msg("%s", acf_error());
    json_decref(v);
    return s;
}

static void reads(const acf_schema *s, const char *text, acf_cell_state state, double value) {
    double v = 77;
    assert_int_equal(acf_cell_read(s, &s->column[0], text, strlen(text), &v), state);
    if (state == ACF_CELL_PRESENT)
        assert_true(v == value);
    else
        assert_true(isnan(v));
}

static void writes(const acf_schema *s, double value, const char *text) {
    char out[128];
    acf_text t = acf_text_into(out, sizeof out);
    acf_cell_write(&s->column[0], value, &t);
    assert_string_equal(out, text);
}

static void reals(void **state) {
    (void)state;
    acf_schema *s = schema(
        "\"kind\": \"real\", \"min\": 0, \"max\": 100, \"decimals\": 2, \"other\": [\"over\"], \"markers\": [\"-9\"]");
    reads(s, "12.50", ACF_CELL_PRESENT, 12.5);
    reads(s, "-3e2", ACF_CELL_PRESENT, -300);
    reads(s, "NA", ACF_CELL_MISSING, 0);
    reads(s, "", ACF_CELL_MISSING, 0);
    reads(s, "-9", ACF_CELL_MISSING, 0);
    reads(s, "over", ACF_CELL_KEPT, 0);
    reads(s, "under", ACF_CELL_WRONG, 0);
    reads(s, "1,5", ACF_CELL_WRONG, 0);
    reads(s, "-Inf", ACF_CELL_MISSING, 0); /* the result of a failed computation */
    reads(s, "info", ACF_CELL_WRONG, 0);
    writes(s, 12.4987, "12.5");
    writes(s, 12.0001, "12");
    writes(s, -0.001, "0");
    writes(s, 130.555, "130.56"); /* a real may leave the observed range */
    assert_true(acf_cell_round(&s->column[0], 12.4987) == 12.5);
    acf_schema_free(s);
    s = schema("\"kind\": \"real\", \"min\": 0, \"max\": 100, \"decimals\": 2, \"fixed\": true, \"comma\": true");
    reads(s, "1,50", ACF_CELL_PRESENT, 1.5);
    writes(s, 12.4987, "12,50");
    acf_schema_free(s);
    s = schema("\"kind\": \"real\", \"min\": 0, \"max\": 100, \"digits\": 3");
    writes(s, 0.0000123456, "1.23e-05");
    writes(s, 123456, "123000");
    acf_schema_free(s);
    s = schema("\"kind\": \"real\", \"min\": 0, \"max\": 100");
    writes(s, 0.1, "0.1"); /* whatever the schema says */
    assert_true(acf_cell_round(&s->column[0], 1.0 / 3) == 1.0 / 3);
    acf_schema_free(s);
}

static void integers(void **state) {
    (void)state;
    acf_schema *s = schema("\"kind\": \"integer\", \"min\": 17, \"max\": 90, \"decimals\": 0");
    reads(s, "41", ACF_CELL_PRESENT, 41);
    reads(s, "41.5", ACF_CELL_PRESENT, 41.5); /* an observed value is read as it is */
    writes(s, 41.49, "41");
    writes(s, 41.5, "42");
    writes(s, 3, "3"); /* an integer may leave the observed range, */
    writes(s, 120.2, "120");
    writes(s, (double)NAN, "17");
    acf_schema_free(s);
    s = schema("\"kind\": \"integer\", \"min\": 17, \"max\": 90, \"decimals\": 0, \"declared\": true"); /* but not the
                                                                                                  * declared one */
    writes(s, 3, "17");
    writes(s, 1e30, "90");
    writes(s, 41.5, "42");
    acf_schema_free(s);
    s = schema("\"kind\": \"real\", \"min\": 0, \"max\": 100, \"decimals\": 2, \"declared\": true");
    writes(s, 130.555, "100");
    writes(s, -0.02, "0");
    acf_schema_free(s);
    s = schema("\"kind\": \"integer\", \"min\": -5, \"max\": 90, \"decimals\": 1, \"fixed\": true");
    writes(s, 41.4, "41.0");
    writes(s, -0.4, "0.0");
    acf_schema_free(s);
    s = schema("\"kind\": \"integer\", \"min\": 1000, \"max\": 9.87e30, \"decimals\": 0, \"digits\": 3");
    writes(s, 2.9928980893730784e25, "2.99e+25"); /* as many digits as the column has */
    writes(s, 123456, "123000");
    writes(s, 1e31, "1e+31");
    acf_schema_free(s);
}

/* If every time is on the hour, so are imputed times. */
static void times_have_steps(void **state) {
    (void)state;
    acf_schema *s =
        schema("\"kind\": \"time\", \"format\": \"YYYY-MM-DD HH:MM:SS\", \"min\": \"2021-01-01 03:00:00\", \"max\": "
               "\"2021-02-01 05:00:00\", "
               "\"step\": 3600");
    double noon;
    const char text[] = "2021-01-15 12:00:00";
    assert_true(acf_calendar_read(s->column[0].when, text, sizeof text - 1, &noon));
    writes(s, noon + 1700, "2021-01-15 12:00:00");
    writes(s, noon - 1900, "2021-01-15 11:00:00");
    writes(s, 0, "2021-01-01 03:00:00");
    reads(s, "2021-01-15 12:00:07", ACF_CELL_PRESENT, noon + 7); /* an observed value is read as it is */
    acf_schema_free(s);
    s = schema("\"kind\": \"time\", \"format\": \"HH:MM\", \"min\": \"00:00\", \"max\": \"23:59\"");
    writes(s, 8 * 3600 + 42 * 60 + 7, "08:42");
    acf_schema_free(s);
}

static void ordinals(void **state) {
    (void)state;
    acf_schema *s = schema(
        "\"kind\": \"ordinal\", \"min\": 1, \"max\": 10, \"levels\": [\"1\", \"2\", \"5\", \"10\"], \"counts\": [1, "
        "1, 1, 1]");
    reads(s, "5", ACF_CELL_PRESENT, 5);
    reads(s, "5.0", ACF_CELL_PRESENT, 5);
    reads(s, "7", ACF_CELL_PRESENT, 7); /* a number between levels is a number */
    reads(s, "low", ACF_CELL_WRONG, 0);
    writes(s, -4, "1");
    writes(s, 1.5, "1"); /* in the middle, the lower level */
    writes(s, 1.6, "2");
    writes(s, 4, "5");
    writes(s, 8, "10");
    writes(s, 99, "10");
    acf_schema_free(s);
    s = schema(
        "\"kind\": \"ordinal\", \"min\": 0, \"max\": 2, \"levels\": [\"low\", \"middle\", \"high\"], \"counts\": [1, "
        "1, 1]");
    reads(s, "middle", ACF_CELL_PRESENT, 1);
    reads(s, "huge", ACF_CELL_KEPT, 0);
    reads(s, "1", ACF_CELL_KEPT, 0);
    writes(s, 1.7, "high");
    writes(s, 0.4, "low");
    acf_schema_free(s);
}

static void categories(void **state) {
    (void)state;
    acf_schema *s =
        schema("\"kind\": \"category\", \"levels\": [\"F\", \"M\", \"rare\", \"rarer\"], \"counts\": [4, 3, 1, 1], "
               "\"pooled\": 2");
    assert_int_equal(acf_spec_classes(&s->column[0]), 3);
    reads(s, "F", ACF_CELL_PRESENT, 0);
    reads(s, "rare", ACF_CELL_PRESENT, 2);
    reads(s, "rarer", ACF_CELL_PRESENT, 2);
    reads(s, "Q", ACF_CELL_KEPT, 0);
    writes(s, 1, "M");
    writes(s, 2, "rare"); /* the most frequent level of the shared class */
    writes(s, 7, "rare");
    writes(s, -1, "F");
    acf_schema_free(s);
}

/* A shared class is written as one of its levels, by their frequencies. */
static void shared_classes(void **state) {
    (void)state;
    acf_schema *s =
        schema("\"kind\": \"category\", \"levels\": [\"F\", \"M\", \"a\", \"b\", \"c\"], \"counts\": [4, 3, 5, 2, 1], "
               "\"pooled\": 3");
    const acf_field_spec *c = &s->column[0];
    acf_assert_close(acf_spec_leading(c), 5.0 / 8, 1e-15, "the part of the most frequent");
    for (int k = 0; k < 80; k++) {
        const double u = (k + 0.5) / 80;
        assert_int_equal(acf_cell_level(c, 0, u), 0);
        assert_int_equal(acf_cell_level(c, 1, u), 1);
        assert_int_equal(acf_cell_level(c, 2, u), k < 50 ? 2 : k < 70 ? 3 : 4);
    }
    assert_int_equal(acf_cell_level(c, 2, 0), 2);
    assert_int_equal(acf_cell_level(c, 2, 1), 4);
    for (int k = 2; k < 5; k++) c->levels.entry[k].count = 0; /* no counts */
    acf_assert_close(acf_spec_leading(c), 1.0 / 3, 1e-15, "each as likely");
    for (int k = 0; k < 30; k++) assert_int_equal(acf_cell_level(c, 2, (k + 0.5) / 30), 2 + k / 10);
    assert_int_equal(acf_cell_level(c, 2, 1), 4);
    acf_schema_free(s);
    s = schema("\"kind\": \"category\", \"levels\": [\"F\", \"M\"], \"counts\": [4, 3]");
    assert_true(acf_spec_leading(&s->column[0]) == 1 && acf_cell_level(&s->column[0], 1, 0.01) == 1);
    acf_schema_free(s);
}

static void dates(void **state) {
    (void)state;
    acf_schema *s =
        schema("\"kind\": \"date\", \"format\": \"DD/MM/YYYY\", \"min\": \"01/02/1970\", \"max\": \"03/02/1970\"");
    reads(s, "02/02/1970", ACF_CELL_PRESENT, 32);
    reads(s, "1970-02-02", ACF_CELL_WRONG, 0);
    reads(s, "30/02/1970", ACF_CELL_WRONG, 0);
    writes(s, 31.6, "02/02/1970");
    writes(s, 3, "01/02/1970");
    writes(s, 1e9, "03/02/1970");
    acf_schema_free(s);
    s = schema("\"kind\": \"time\", \"format\": \"HH:MM\", \"min\": \"08:00\", \"max\": \"17:30\"");
    reads(s, "12:15", ACF_CELL_PRESENT, 44100);
    writes(s, 44131, "12:16");
    writes(s, -10, "08:00");
    acf_schema_free(s);
}

static void what_is_not_modelled_is_kept(void **state) {
    (void)state;
    acf_schema *s = schema(
        "\"kind\": \"category\", \"levels\": [\"a\"], \"counts\": [9]}, {\"name\": \"y\", \"observed\": 1, "
        "\"missing\": 8, "
        "\"kind\": \"constant\", \"value\": \"kg\"}, {\"name\": \"id\", \"observed\": 9, \"missing\": 0, \"kind\": "
        "\"identifier\"");
    char out[16];
    double v;
    acf_text t = acf_text_into(out, sizeof out);
    assert_int_equal(acf_cell_read(s, &s->column[1], "kg", 2, &v), ACF_CELL_KEPT);
    assert_int_equal(acf_cell_read(s, &s->column[1], "NA", 2, &v), ACF_CELL_MISSING);
    assert_int_equal(acf_cell_read(s, &s->column[2], "a7", 2, &v), ACF_CELL_KEPT);
    acf_cell_write(&s->column[1], 0, &t);
    acf_cell_write(&s->column[2], 0, &t);
    assert_string_equal(out, "kg");
    acf_schema_free(s);
}

static void numbers_of_matrices(void **state) {
    (void)state;
    double v;
    acf_schema *s = schema("\"kind\": \"category\", \"levels\": [\"-1\", \"1\"], \"counts\": [4, 3]");
    assert_int_equal(acf_cell_read_number(&s->column[0], 1, &v), ACF_CELL_PRESENT);
    assert_true(v == 1);
    assert_int_equal(acf_cell_read_number(&s->column[0], 0, &v), ACF_CELL_KEPT);
    assert_int_equal(acf_cell_read_number(&s->column[0], (double)NAN, &v), ACF_CELL_MISSING);
    acf_schema_free(s);
    s = schema("\"kind\": \"date\", \"format\": \"YYYY-MM-DD\", \"min\": \"2020-01-01\", \"max\": \"2021-01-01\"");
    assert_int_equal(acf_cell_read_number(&s->column[0], 5, &v), ACF_CELL_WRONG);
    acf_schema_free(s);
    s = schema("\"kind\": \"real\", \"min\": 0, \"max\": 1");
    assert_int_equal(acf_cell_read_number(&s->column[0], 0.1, &v), ACF_CELL_PRESENT);
    assert_true(v == 0.1);
    acf_schema_free(s);
}

ACF_TESTS(cell, cmocka_unit_test(reals), cmocka_unit_test(integers), cmocka_unit_test(times_have_steps),
          cmocka_unit_test(ordinals), cmocka_unit_test(categories), cmocka_unit_test(shared_classes),
          cmocka_unit_test(dates), cmocka_unit_test(what_is_not_modelled_is_kept),
          cmocka_unit_test(numbers_of_matrices))
