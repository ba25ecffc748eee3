/* Tests from a file to a completed file through acflow.h alone, as a program would do it, and of NULL arguments. */
#include "acflow.h"

#include "harness/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 150 };

static char folder[32];

static const char *path_of(const char *name) {
    static char paths[8][96];
    static int at;
    char *out = paths[at++ % 8];
    snprintf(out, sizeof paths[0], "%s/%s", folder, name);
    return out;
}

static void put(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *get(const char *name) {
    static char text[1 << 16];
    FILE *f = fopen(path_of(name), "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* An identifier, an integer, a category, a real and a date; every seventh cell is missing. */
static void make_rows(FILE *f, int rows) {
    fprintf(f, "key,age,kind,dose,seen\n");
    for (int i = 0; i < rows; i++) {
        int age = 20 + (int)(30 + 29 * sin(12.9898 * i)), month = 1 + i % 12;
        char cell[4][16];
        snprintf(cell[0], sizeof cell[0], "%d", age);
        snprintf(cell[1], sizeof cell[1], "%s", age > 50 ? "old" : "young");
        snprintf(cell[2], sizeof cell[2], "%.2f", age / 10.0 + 0.2 * sin(78.233 * i));
        snprintf(cell[3], sizeof cell[3], "2021-%02d-%02d", month, 1 + i % 28);
        fprintf(f, "k%03d", i);
        for (int j = 0; j < 4; j++) fprintf(f, ",%s", (i + 2 * j) % 7 == 0 ? "NA" : cell[j]);
        fprintf(f, "\n");
    }
}

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/acflow-api-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    FILE *f = fopen(path_of("in.csv"), "w");
    if (!f) return -1;
    make_rows(f, ROWS);
    return fclose(f);
}

static int tear_down(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static acf_options *small(void) {
    static const char *const set[][2] = {
        {"steps", "40"},     {"mlp-width", "8"}, {"coupling-units", "8"},      {"likelihood-units", "8"},
        {"components", "3"}, {"batch", "64"},    {"flow", "linear leaky rnn"}, {"threads", "1"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        assert_int_equal(acf_options_set(o, set[i][0], set[i][1]), ACF_OK);
    return o;
}

static void ok(acf_status status) {
    if (status != ACF_OK) fail_msg("%s", acf_error());
}

/* Fields of line i of a text. */
static void fields(const char *text, int line, char out[8][32]) {
    for (int i = 0; i < line; i++) text = strchr(text, '\n') + 1;
    for (int j = 0; j < 8; j++) {
        size_t n = strcspn(text, ",\n");
        snprintf(out[j], 32, "%.*s", (int)n, text);
        text += n + (text[n] == ',');
    }
}

/* Reads, fits, saves, loads, reads a new file for the model, completes it. */
static void a_file_is_completed(void **state) {
    (void)state;
    acf_options *o = small();
    acf_table *t, *fresh;
    acf_model *m, *loaded;
    acf_session *s;
    acf_writer *w;
    ok(acf_table_read(path_of("in.csv"), NULL, o, &t));
    assert_int_equal(acf_table_rows(t), ROWS);
    assert_int_equal(acf_table_columns(t), 4);
    assert_int_equal(acf_table_warnings(t), 0);
    char left[8] = "?";
    ok(acf_table_unfilled(t, left, sizeof left, NULL));
    assert_string_equal(left, ""); /* every key is there */
    ok(acf_model_fit(t, o, NULL, NULL, &m));
    ok(acf_model_save(m, path_of("m.safetensors")));
    ok(acf_model_load(path_of("m.safetensors"), o, &loaded));
    put("new.csv",
        "dose,kind,age,seen\n2.50,young,25,2021-01-02\n,,61,\n6.10,?,,2021-05-06\n3.3,middle,33,2021-07-08\n");
    assert_int_equal(acf_table_read(path_of("new.csv"), loaded, o, &fresh), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "not in the order of the model"));
    ok(acf_options_set(o, "any-order", "true"));
    ok(acf_table_read(path_of("new.csv"), loaded, o, &fresh));
    assert_int_equal(acf_table_warnings(fresh), 3); /* no key, another order, an unseen kind */
    assert_non_null(strstr(acf_table_warning(fresh, 2), "'middle', row 4"));
    assert_null(acf_table_warning(fresh, 3));
    assert_int_equal(acf_table_missing(fresh), 5); /* 'middle' is none */
    ok(acf_session_create(loaded, &s));
    double done[16];
    ok(acf_session_draw(s, fresh, NULL, NULL, 7, 0, done));
    ok(acf_writer_open(fresh, path_of("out.csv"), &(acf_write_plan){.imputations = 1}, &w));
    ok(acf_writer_put(w, done, NULL, NULL));
    ok(acf_writer_commit(w));
    const char *text = get("out.csv");
    assert_true(strncmp(text, "dose,kind,age,seen\n2.50,young,25,2021-01-02\n", 44) == 0);
    char row[8][32], back[32];
    fields(text, 2, row);
    assert_string_equal(row[2], "61");
    assert_true(strcmp(row[1], "old") == 0 || strcmp(row[1], "young") == 0);
    assert_true(strlen(row[3]) == 10 && strncmp(row[3], "2021-", 5) == 0);
    assert_true(strchr(row[0], '.') && strlen(strchr(row[0], '.')) == 3); /* two decimals */
    fields(text, 3, row);
    int age = atoi(row[2]);
    assert_in_range(age, 21, 78); /* the observed range */
    snprintf(back, sizeof back, "%d", age);
    assert_string_equal(row[2], back);
    fields(text, 4, row);
    assert_string_equal(row[1], "middle");
    acf_session_free(s);
    acf_table_free(fresh);
    acf_table_free(t);
    acf_model_free(loaded);
    acf_model_free(m);
    acf_options_free(o);
}

static void new_rows_are_drawn(void **state) {
    (void)state;
    acf_options *o = small();
    acf_table *t, *blank;
    acf_model *m;
    acf_session *s;
    acf_writer *w;
    double done[20];
    ok(acf_options_set(o, "steps", "5"));
    ok(acf_table_read(path_of("in.csv"), NULL, o, &t));
    ok(acf_model_fit(t, o, NULL, NULL, &m));
    ok(acf_table_blank(m, 5, "age=40,kind=old", &blank));
    ok(acf_session_create(m, &s));
    ok(acf_session_draw(s, blank, NULL, NULL, 7, 0, done));
    ok(acf_writer_open(blank, path_of("rows.csv"), &(acf_write_plan){.imputations = 1}, &w));
    ok(acf_writer_put(w, done, NULL, NULL));
    ok(acf_writer_commit(w));
    char row[8][32];
    fields(get("rows.csv"), 0, row);
    assert_string_equal(row[0], "age");
    fields(get("rows.csv"), 5, row);
    assert_string_equal(row[0], "40");
    assert_string_equal(row[1], "old");
    acf_session_free(s);
    acf_table_free(blank);
    acf_table_free(t);
    acf_model_free(m);
    acf_options_free(o);
}

static void tables_tell_about_themselves(void **state) {
    (void)state;
    acf_table *t;
    char text[4096], *json;
    size_t needed = 0;
    int64_t j = -1;
    ok(acf_table_read(path_of("in.csv"), NULL, NULL, &t));
    assert_string_equal(acf_table_name(t, 1), "kind");
    assert_string_equal(acf_table_kind(t, 0), "integer");
    assert_string_equal(acf_table_kind(t, 3), "date");
    assert_int_equal(acf_table_classes(t, 1), 2);
    assert_int_equal(acf_table_classes(t, 0), 0);
    assert_null(acf_table_name(t, 4));
    assert_null(acf_table_kind(t, -1));
    assert_true(isnan(acf_table_values(t)[0])); /* the first cell is missing */
    ok(acf_table_find(t, "dose", &j));
    assert_int_equal(j, 2);
    assert_int_equal(acf_table_find(t, "dsoe", &j), ACF_EUSAGE);
    assert_string_equal(acf_error(), "the table has no column 'dsoe'; did you mean 'dose'?");
    assert_int_equal(acf_table_find(t, "key", &j), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "column 'key' is not modelled (identifier); set its type in the option 'types' to model it");
    ok(acf_table_format(t, 3, 18695.2, text, sizeof text, &needed));
    assert_string_equal(text, "2021-03-09");
    assert_int_equal(needed, 11);
    assert_int_equal(acf_table_format(t, 1, 0, text, 3, &needed), ACF_ESPACE);
    assert_int_equal(acf_table_format(t, 9, 0, text, 3, &needed), ACF_EUSAGE);
    assert_int_equal(acf_table_format(t, 0, (double)NAN, text, 3, &needed), ACF_EUSAGE);
    ok(acf_table_describe(t, ACF_TEXT, text, sizeof text, &needed));
    assert_non_null(strstr(text, "in.csv: 150 rows, 5 columns, 4 modelled\n"));
    assert_int_equal(acf_table_describe(t, ACF_JSON, NULL, 0, &needed), ACF_ESPACE);
    assert_non_null(json = malloc(needed));
    ok(acf_table_describe(t, ACF_JSON, json, needed, NULL));
    json_t *v = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_array_size(json_object_get(v, "columns")), 5);
    json_decref(v);
    free(json);
    acf_table_free(t);
}

static void tables_from_memory_have_columns_too(void **state) {
    (void)state;
    const double x[4] = {1.5, 1, 2, 0};
    acf_table *t;
    char text[512];
    ok(acf_table_create(x, NULL, 2, 2, (const int32_t[]){0, 2}, (const char *const[]){"a", "b"}, &t));
    assert_string_equal(acf_table_kind(t, 0), "real");
    assert_string_equal(acf_table_kind(t, 1), "category");
    assert_int_equal(acf_table_warnings(t), 0);
    ok(acf_table_format(t, 0, 0.1, text, sizeof text, NULL));
    assert_string_equal(text, "0.1");
    ok(acf_table_describe(t, ACF_TEXT, text, sizeof text, NULL));
    assert_non_null(strstr(text, "b       category    -               2 levels: 0 (1), 1 (1)\n"));
    acf_table_free(t);
}

/* A table without modelled columns allows everything except a fit. */
static void constants_are_read_and_not_fitted_to(void **state) {
    (void)state;
    acf_options *o;
    acf_table *t;
    acf_model *m = NULL;
    acf_evaluation *e = NULL;
    char text[512];
    put("constants.csv", "a;b\nk;1\n;1\nk;\n");
    ok(acf_options_create(&o));
    ok(acf_table_read(path_of("constants.csv"), NULL, o, &t));
    assert_true(acf_table_columns(t) == 0 && acf_table_rows(t) == 3 && acf_table_missing(t) == 0);
    ok(acf_table_unfilled(t, text, sizeof text, NULL));
    assert_string_equal(text, "2 missing cells stay as they are: a (constant) 1, b (constant) 1; a column with one "
                              "value is not filled in: use the option "
                              "'fill-constants' to fill it with that value");
    acf_table_free(t);
    ok(acf_options_set(o, "fill-constants", "true"));
    ok(acf_table_read(path_of("constants.csv"), NULL, o, &t));
    assert_int_equal(acf_table_missing(t), 2);
    ok(acf_table_describe(t, ACF_TEXT, text, sizeof text, NULL));
    assert_non_null(strstr(text, ": 3 rows, 2 columns, 0 modelled\nseparator ';', decimal point, header\n\ncolumn"));
    ok(acf_table_dialect(t, text, sizeof text, NULL));
    assert_string_equal(text, "separator ';', decimal point, header");
    assert_int_equal(acf_table_dialect(t, text, 8, NULL), ACF_ESPACE);
    assert_int_equal(acf_model_fit(t, o, NULL, NULL, &m), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "there is no column to model: 2 hold one value only"));
    assert_int_equal(acf_eval_run(t, NULL, NULL, o, NULL, NULL, &e), ACF_EDATA);
    assert_true(!m && !e);
    acf_table_free(t);
    acf_options_free(o);
}

/* A model of a matrix has no column names to look for. */
static void models_of_matrices_read_no_files(void **state) {
    (void)state;
    static double x[64];
    acf_options *o = small();
    acf_table *t, *fresh;
    acf_model *m;
    for (int i = 0; i < 64; i++) x[i] = sin(i);
    ok(acf_options_set(o, "steps", "2"));
    ok(acf_table_create(x, NULL, 32, 2, NULL, NULL, &t));
    ok(acf_model_fit(t, o, NULL, NULL, &m));
    assert_int_equal(acf_table_read(path_of("in.csv"), m, o, &fresh), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "fitted to a matrix in memory"));
    assert_int_equal(acf_table_blank(m, 1, NULL, &fresh), ACF_EMODEL);
    acf_model_free(m);
    acf_table_free(t);
    acf_options_free(o);
}

static void null_is_met_with_a_sentence(void **state) {
    (void)state;
    acf_table *t;
    acf_writer *w;
    char text[8];
    int64_t j;
    const double x = 1;
    const acf_write_plan plan = {1, 0, 0};
    ok(acf_table_create(&x, NULL, 1, 1, NULL, NULL, &t));
    assert_int_equal(acf_table_read(NULL, NULL, NULL, &t), ACF_EUSAGE);
    assert_string_equal(acf_error(), "acf_table_read: 'path' is NULL");
    assert_int_equal(acf_table_read("a", NULL, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_blank(NULL, 1, NULL, &t), ACF_EUSAGE);
    assert_int_equal(acf_table_describe(NULL, ACF_TEXT, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_describe(t, ACF_TEXT, NULL, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_describe(NULL, ACF_JSON, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_dialect(NULL, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_find(NULL, "a", &j), ACF_EUSAGE);
    assert_int_equal(acf_table_find(t, NULL, &j), ACF_EUSAGE);
    assert_int_equal(acf_table_format(NULL, 0, 1, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_writer_open(NULL, "a", &plan, &w), ACF_EUSAGE);
    assert_int_equal(acf_writer_open(t, NULL, &plan, &w), ACF_EUSAGE);
    assert_int_equal(acf_writer_open(t, "a", NULL, &w), ACF_EUSAGE);
    assert_int_equal(acf_writer_open(t, "a", &plan, NULL), ACF_EUSAGE);
    assert_int_equal(acf_writer_put(NULL, &x, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_writer_commit(NULL), ACF_EUSAGE);
    acf_writer_abort(NULL);
    assert_int_equal(acf_table_unfilled(NULL, text, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_unfilled(t, NULL, 8, NULL), ACF_EUSAGE);
    assert_int_equal(acf_table_missing(NULL), 0);
    assert_int_equal(acf_table_warnings(NULL), 0);
    assert_null(acf_table_warning(NULL, 0));
    assert_null(acf_table_values(NULL));
    acf_table_free(t);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(table_file_api, WITH_FILE(a_file_is_completed), WITH_FILE(new_rows_are_drawn),
          WITH_FILE(tables_tell_about_themselves), cmocka_unit_test(tables_from_memory_have_columns_too),
          WITH_FILE(constants_are_read_and_not_fitted_to), WITH_FILE(models_of_matrices_read_no_files),
          cmocka_unit_test(null_is_met_with_a_sentence))
