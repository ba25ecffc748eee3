/* Tests of kind.h: every kind of the list is complete, has unique names, and is found by them. This covers what the
 * kinds' own tests (typing, cell, schema) do not. */
#include "table/kind.h"

#include "harness/table_file_lab.h"
#include "table/memory_schema.h"

#include <math.h>
#include <string.h>

/* A modelled kind reads, rounds and writes; every kind can be described; no two kinds have the same order. */
static void kinds_are_complete(void **state) {
    (void)state;
    for (int i = 0; acf_kinds[i]; i++) {
        const acf_kind *k = acf_kinds[i];
        const bool reads = k->encode && k->encode_number && k->decode && k->format, kept = k->to_json && k->from_json;
        if (!k->name || !k->describe || !k->recognise) fail_msg("kind %d lacks a name or a function", i);
        if (acf_kind_is_modelled(k) && !(reads && kept && k->learn)) fail_msg("%s lacks a function", k->name);
        if (acf_kind_is_modelled(k) != (k->encode != NULL)) fail_msg("%s reads what no model sees", k->name);
        for (int j = 0; j < i; j++)
            if (k->order == acf_kinds[j]->order) fail_msg("%s and %s have one order", k->name, acf_kinds[j]->name);
    }
}

static void kinds_have_names(void **state) {
    (void)state;
    char text[512];
    for (int i = 0; acf_kinds[i]; i++) {
        const acf_kind *k = acf_kinds[i];
        assert_ptr_equal(acf_kind_named(k->name), k);
        for (int w = 0; w < ACF_KIND_WORDS; w++)
            if (k->words[w]) assert_ptr_equal(acf_kind_from_word(k->words[w], strlen(k->words[w])), k);
    }
    assert_null(acf_kind_named("auto"));
    assert_null(acf_kind_named("reel"));
    assert_string_equal(acf_kind_from_word("id,x", 2)->name, "identifier"); /* only this many bytes */
    assert_null(acf_kind_from_word("identifier", 5));
    assert_null(acf_kind_from_word("identifiers", 11));
    assert_null(acf_kind_from_word("empty", 5)); /* users cannot request it */
    acf_text t = acf_text_into(text, sizeof text);
    acf_kind_add_words(&t);
    assert_string_equal(text, "real, integer, ordinal, category, date, dmy, mdy, time, identifier or constant");
}

/* The help of the option lists the words of all kinds. */
static void help_has_all_words(void **state) {
    (void)state;
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    const char *help = acf_options_find(o, "types")->help;
    for (int i = 0; acf_kinds[i]; i++)
        for (int w = 0; w < ACF_KIND_WORDS; w++)
            if (acf_kinds[i]->words[w] && !strstr(help, acf_kinds[i]->words[w]))
                fail_msg("the help of 'types' does not have %s", acf_kinds[i]->words[w]);
    acf_options_free(o);
}

/* A scale and a date have bounds. A number has those that the user declares; a schema that describes a table
 * declares none. */
static void columns_have_bounds(void **state) {
    (void)state;
    static const char text[] =
        "{\"rows\": 9, \"named\": true, \"missing_markers\": [\"NA\"], \"columns\": ["
        "{\"name\": \"a\", \"kind\": \"ordinal\", \"observed\": 9, \"missing\": 0, \"min\": 0, \"max\": 9, \"levels\": "
        "[\"1\", \"2\", \"5\"], "
        "\"counts\": [1, 1, 1]},"
        "{\"name\": \"b\", \"kind\": \"date\", \"observed\": 9, \"missing\": 0, \"format\": \"YYYY-MM-DD\", \"min\": "
        "\"1970-01-02\", \"max\": \"1970-01-09\"},"
        "{\"name\": \"c\", \"kind\": \"real\", \"observed\": 9, \"missing\": 0, \"min\": 0, \"max\": 1},"
        "{\"name\": \"d\", \"kind\": \"integer\", \"observed\": 9, \"missing\": 0, \"min\": 0, \"max\": 3, "
        "\"declared\": true},"
        "{\"name\": \"e\", \"kind\": \"time\", \"observed\": 9, \"missing\": 0, \"format\": \"HH:MM\", \"min\": "
        "\"00:01\", \"max\": \"00:02\"},"
        "{\"name\": \"f\", \"kind\": \"category\", \"observed\": 9, \"missing\": 0, \"levels\": [\"x\", \"y\"], "
        "\"counts\": [5, 4]}]}";
    static const struct {
        bool bounded, clock;
        double low, high;
        int classes;
    } is[] = {{true, false, 1, 5, 0}, {true, false, 1, 8, 0},   {false, false, 0, 1, 0},
              {true, false, 0, 3, 0}, {true, true, 60, 120, 0}, {false, false, 0, 0, 2}};
    const acf_json_source from = {"test", ACF_EMODEL};
    acf_column column[6];
    acf_schema *s;
    json_t *v;
    assert_int_equal(acf_json_parse(from, text, strlen(text), sizeof text, &v), ACF_OK);
    assert_int_equal(acf_schema_from_json(from, v, true, &s), ACF_OK);
    json_decref(v);
    acf_schema_columns(s, column);
    for (int j = 0; j < 6; j++) {
        assert_int_equal(column[j].bounded, is[j].bounded);
        assert_int_equal(column[j].clock, is[j].clock);
        assert_int_equal(column[j].classes, is[j].classes);
        assert_true(column[j].low == is[j].low && column[j].high == is[j].high);
    }
    acf_schema_free(s);
}

static void kinds_of_tables_in_memory(void **state) {
    (void)state;
    const double x[] = {1, 0.5, 1, 2, (double)NAN, 0};
    const acf_column column[] = {{.name = "whole"}, {.name = "half"}, {.name = "code", .classes = 2}};
    acf_table *t;
    acf_schema *s;
    assert_int_equal(acf_table_make(x, NULL, 2, 3, column, &t), ACF_OK);
    assert_int_equal(acf_memory_schema(t, &s), ACF_OK);
    assert_string_equal(s->column[0].kind->name, "integer");
    assert_string_equal(s->column[1].kind->name, "real");
    assert_string_equal(s->column[2].kind->name, "category");
    acf_schema_free(s);
    acf_table_free(t);
}

ACF_TESTS(kind, cmocka_unit_test(kinds_are_complete), cmocka_unit_test(kinds_have_names),
          cmocka_unit_test(help_has_all_words), cmocka_unit_test(columns_have_bounds),
          cmocka_unit_test(kinds_of_tables_in_memory))
