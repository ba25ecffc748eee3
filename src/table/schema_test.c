/* Tests of schema.h: a schema survives JSON unchanged, and every error in one is refused. */
#include "table/schema.h"

#include "harness/table_file_lab.h"

#include <stdio.h>
#include <string.h>

static const char table[] = "id,age,score,sex,grade,visit,at,unit,note,\"city, state\",odd\n"
                            "1,41,1.50,F,3,2021-03-09,12:30,kg,,A\"B,7\n"
                            "2,?,2.25,M,1,2021-04-01,01:00,kg,,\xc3\xa4,8\n"
                            "3,39,-7.00,F,2,2020-12-31,23:59:59.5,?,,x\ty,9\n"
                            "4,17,0.10,F,1,2021-03-10,08:15,kg,,z,NA\n";

static const char *text_of(const acf_schema *s) {
    static char out[1 << 16];
    json_t *v;
    acf_text t = acf_text_into(out, sizeof out);
    assert_int_equal(acf_schema_to_json(s, &v), ACF_OK);
    acf_json_write(&t, v, 0);
    json_decref(v);
    return out;
}

static void schemas_come_back(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(table, (const char *const[]){"types=grade=ordinal", NULL}, NULL);
    acf_schema *copy = NULL, *s = t->file->schema;
    char first[1 << 14];
    assert_int_equal(s->D, 8);
    assert_int_equal(acf_schema_copy(s, &copy), ACF_OK);
    snprintf(first, sizeof first, "%s", text_of(s));
    assert_string_equal(text_of(copy), first);
    assert_non_null(strstr(
        first, "{\"name\": \"at\", \"kind\": \"time\", \"observed\": 4, \"missing\": 0, \"format\": \"HH:MM:SS.f\", "
               "\"min\": \"01:00:00.0\", \"max\": \"23:59:59.5\"}"));
    for (int64_t j = 0; j < s->n; j++) {
        const acf_field_spec *a = &s->column[j], *b = &copy->column[j];
        assert_string_equal(a->name, b->name);
        assert_true(a->kind == b->kind && a->place == b->place && a->pooled == b->pooled && a->decimals == b->decimals);
        assert_true(!acf_kind_is_numeric(a->kind) || (a->min == b->min && a->max == b->max));
        for (int64_t i = 0; i < a->levels.n; i++) assert_string_equal(a->levels.entry[i].text, b->levels.entry[i].text);
        for (int64_t i = 0; a->value && i < a->levels.n; i++) assert_true(a->value[i] == b->value[i]);
    }
    acf_schema_free(copy);
    acf_table_free(t);
}

static acf_status parse(const char *text, bool whole, acf_schema **out) {
    const acf_json_source from = {"m", ACF_EMODEL};
    json_t *v;
    ACF_TRY(acf_json_parse(from, text, strlen(text), 1 << 20, &v));
    acf_status status = acf_schema_from_json(from, v, whole, out);
    json_decref(v);
    return status;
}

static void refused(const char *column, const char *sentence) {
    char text[4096];
    acf_schema *s = NULL;
    int64_t live = acf_alloc_live();
    snprintf(text, sizeof text,
             "{\"rows\": 9, \"named\": true, \"columns\": [{\"name\": \"a\", \"observed\": 9, \"missing\": 0, %s}]}",
             column);
    assert_int_equal(parse(text, true, &s), ACF_EMODEL);
    assert_string_equal(acf_error(), sentence);
    assert_int_equal(acf_alloc_live(), live);
}

static void wrong_columns_are_refused(void **state) {
    (void)state;
    refused("\"kind\": \"auto\"",
            "m: column 1 ('a'): 'kind' is 'auto', expected real, integer, ordinal, category, date, time, identifier, "
            "constant or empty");
    refused("\"kind\": 3", "m: column 1 ('a'): 'kind' is a whole number, expected text");
    refused("\"kind\": \"real\"", "m: column 1 ('a'): 'min' is missing");
    refused("\"kind\": \"real\", \"min\": 2, \"max\": 1",
            "m: column 1 ('a'): 'min' is 2 and 'max' is 1, expected finite numbers in this order");
    refused("\"kind\": \"real\", \"min\": 2, \"max\": 3, \"decimals\": 100",
            "m: column 1 ('a'): 'decimals' is 100, expected 0 to 99");
    refused("\"kind\": \"real\", \"min\": 2, \"max\": 3, \"digits\": -1",
            "m: column 1 ('a'): 'digits' is -1, expected 0 to 40");
    refused("\"kind\": \"real\", \"min\": 2, \"max\": 3, \"levles\": []",
            "m: column 1 ('a'): unknown key 'levles'; did you mean 'levels'?");
    refused("\"kind\": \"category\"", "m: column 1 ('a'): 'levels' must be a list of at least one text");
    refused("\"kind\": \"category\", \"levels\": []",
            "m: column 1 ('a'): 'levels' must be a list of at least one text");
    refused("\"kind\": \"category\", \"levels\": [\"x\", 3]",
            "m: column 1 ('a'): 'levels' is a whole number, expected text");
    refused("\"kind\": \"category\", \"levels\": [\"x\", \"x\"]", "m: column 1 ('a'): 'levels' has 'x' twice");
    refused("\"kind\": \"category\", \"levels\": [\"x\", \"y\"], \"counts\": [1]",
            "m: column 1 ('a'): 'counts' must be a list of 2 numbers, one for each level");
    refused("\"kind\": \"category\", \"levels\": [\"x\"], \"counts\": [-1]",
            "m: column 1 ('a'): 'counts' has -1, expected a number of cells");
    refused("\"kind\": \"category\", \"levels\": [\"x\", \"y\"], \"counts\": [1, 1], \"pooled\": 2",
            "m: column 1 ('a'): 'pooled' is 2, expected 0 to 1");
    refused("\"kind\": \"date\", \"min\": \"2020-01-01\", \"max\": \"2020-01-02\"",
            "m: column 1 ('a'): 'format' is missing");
    refused("\"kind\": \"date\", \"format\": \"HH:MM\"",
            "m: column 1 ('a'): 'format' is 'HH:MM', expected a pattern of a date such as YYYY-MM-DD or D/M/YYYY");
    refused("\"kind\": \"date\", \"format\": \"YYYY-MM-DD\", \"min\": \"2020-01-32\", \"max\": \"2020-01-02\"",
            "m: column 1 ('a'): 'min' is '2020-01-32', expected a date like YYYY-MM-DD");
    refused("\"kind\": \"time\", \"format\": \"HH:MM\", \"step\": 0",
            "m: column 1 ('a'): 'step' is 0, expected seconds above 0, at most 86400");
    refused("\"kind\": \"time\", \"format\": \"HH:MM\", \"step\": \"hour\"",
            "m: column 1 ('a'): 'step' is text, expected a number");
    refused("\"kind\": \"constant\"", "m: column 1 ('a'): 'value' is missing");
    refused("\"kind\": \"identifier\"", "m: no column of it is modelled");
    refused("\"kind\": \"category\", \"levels\": [\"x\"], \"counts\": [1]}, {\"name\": \"a\", \"kind\": \"empty\", "
            "\"observed\": 0, \"missing\": 9",
            "m: two columns are named 'a'");
    refused("\"kind\": \"category\", \"levels\": [\"x\"], \"counts\": [1]}, 7, {\"name\": \"b\"",
            "m: column 2: this is a whole number, expected an object with 'name'");
}

static void wrong_schemas_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"[]", "m: this is a list, expected an object with 'columns'"},
        {"{}", "m: 'columns' is missing"},
        {"{\"columns\": []}", "m: 'columns' must be a list of 1 to 1000000 columns"},
        {"{\"columns\": {\"a\": 1}}", "m: 'columns' must be a list of 1 to 1000000 columns"},
        {"{\"columns\": [{\"name\": \"\"}], \"rows\": 1, \"named\": true}", "m: column 1: 'name' is empty"},
        {"{\"columns\": [{\"name\": \"x\"}], \"named\": true}", "m: 'rows' is missing"},
        {"{\"columns\": [{\"name\": \"x\"}], \"rows\": -1, \"named\": true}",
         "m: 'rows' is -1, expected 0 to 140737488355328"},
        {"{\"columns\": [{\"name\": \"x\"}], \"rows\": 1}", "m: 'named' is missing"},
        {"{\"columns\": [{\"name\": \"x\"}], \"rows\": 1, \"named\": true, \"missing_markers\": \"NA\"}",
         "m: 'missing_markers' must be a list of at most 65536 texts"},
        {"{\"columns\": [{\"name\": \"x\"}], \"colums\": 1}", "m: unknown key 'colums'; did you mean 'columns'?"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        acf_schema *s = NULL;
        assert_int_equal(parse(wrong[i][0], true, &s), ACF_EMODEL);
        assert_string_equal(acf_error(), wrong[i][1]);
    }
}

/* Every prefix of a whole schema, and every changed byte of it, gives a message or a schema, never a crash. */
static void damaged_schemas_do_no_harm(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(table, NULL, NULL);
    char text[1 << 14], damaged[1 << 14];
    snprintf(text, sizeof text, "%s", text_of(t->file->schema));
    acf_table_free(t);
    int64_t live = acf_alloc_live();
    for (size_t i = 0; text[i]; i++)
        for (int k = 0; k < 3; k++) {
            acf_schema *s = NULL;
            memcpy(damaged, text, sizeof text);
            damaged[i] = k == 0 ? '\0' : k == 1 ? '9' : (char)(text[i] ^ 1);
            parse(damaged, true, &s);
            acf_schema_free(s);
        }
    assert_int_equal(acf_alloc_live(), live);
}

static void users_may_leave_out_keys(void **state) {
    (void)state;
    acf_schema *s = NULL;
    assert_int_equal(
        parse("{\"columns\": [{\"name\": \"a\"}, {\"name\": \"b\", \"kind\": \"date\"}, {\"name\": \"c\", \"levels\": "
              "[\"x\"]}, {\"name\": \"d\", \"markers\": [\"-9\"]}]}",
              false, &s),
        ACF_OK);
    assert_string_equal(s->column[0].kind->name, "auto");
    assert_false(s->column[1].has_format);
    assert_string_equal(s->column[2].kind->name, "category");
    assert_true(acf_na_strings_has(s->column[3].na_strings, "-9", 2));
    acf_schema_free(s);
}

static void memory_may_run_out(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read(table, NULL, NULL);
    int64_t live = acf_alloc_live();
    for (int64_t n = 1;; n++) {
        acf_schema *s = NULL;
        acf_alloc_fail_at(n);
        acf_status status = acf_schema_copy(t->file->schema, &s);
        acf_alloc_fail_at(0);
        acf_schema_free(s);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(n, 1, 100);
    }
    acf_table_free(t);
}

ACF_TESTS(schema, cmocka_unit_test(schemas_come_back), cmocka_unit_test(wrong_columns_are_refused),
          cmocka_unit_test(wrong_schemas_are_refused), cmocka_unit_test(damaged_schemas_do_no_harm),
          cmocka_unit_test(users_may_leave_out_keys), cmocka_unit_test(memory_may_run_out))
