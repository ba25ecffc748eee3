/* Tests of config.h: which options presets and the width of a table set, and which values they leave alone. */
#include "model/config.h"

#include "base/text.h"
#include "harness/lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options for a table of this many real and categorical columns, after these settings ("name", "value", ..., NULL). */
static acf_options *options_for(int64_t reals, int64_t categories, const char *const *set) {
    acf_options *o;
    acf_column *column = calloc((size_t)(reals + categories), sizeof *column);
    assert_non_null(column);
    for (int64_t j = 0; j < categories; j++) column[j].classes = 3;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    for (; set && *set; set += 2) assert_int_equal(acf_options_set_text(o, set[0], set[1]), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_config_width(o, column, reals + categories), ACF_OK);
    free(column);
    return o;
}

static void expect(acf_options *o, const char *flow, int64_t rank, int64_t batch) {
    assert_string_equal(acf_options_text(o, "flow"), flow);
    assert_int_equal(acf_options_int(o, "rank"), rank);
    assert_int_equal(acf_options_int(o, "batch"), batch);
    acf_options_free(o);
}

/* The flow of preset `flow`: as it is, or with every `linear` replaced. */
static const char *preset_flow(bool wide) {
    static char flow[2][1024];
    acf_options *o;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "preset", "flow"), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    snprintf(flow[0], sizeof flow[0], "%s", acf_options_text(o, "flow"));
    acf_text out = acf_text_into(flow[1], sizeof flow[1]);
    const char *at = flow[0];
    for (const char *next; (next = strstr(at, "linear")); at = next + strlen("linear")) {
        acf_text_add_bytes(&out, at, (size_t)(next - at));
        acf_text_add(&out, "lowrank");
    }
    acf_text_add(&out, at);
    acf_options_free(o);
    return flow[wide];
}

static void width_chooses_the_matrices(void **state) {
    (void)state;
    assert_non_null(strstr(preset_flow(false), "linear")); /* otherwise this test checks nothing */
    assert_null(strstr(preset_flow(true), "linear"));
    expect(options_for(1, 0, (const char *[]){"preset", "flow", NULL}), preset_flow(false), 0, 256);
    expect(options_for(ACF_WIDTH_FULL, 0, (const char *[]){"preset", "flow", NULL}), preset_flow(false), 0, 256);
    expect(options_for(ACF_WIDTH_FULL + 1, 0, (const char *[]){"preset", "flow", NULL}), preset_flow(false),
           ACF_WIDTH_RANK, 256);
    expect(options_for(ACF_WIDTH_BASE, 0, (const char *[]){"preset", "flow", NULL}), preset_flow(false), ACF_WIDTH_RANK,
           128);
    expect(options_for(ACF_WIDTH_BASE + 1, 0, (const char *[]){"preset", "flow", NULL}), preset_flow(true),
           ACF_WIDTH_RANK, 127);
    expect(options_for(ACF_WIDTH_FULL, 40, (const char *[]){"preset", "flow", NULL}), preset_flow(false), 0,
           256); /* categories have no matrix */
    expect(options_for(2, 1022, (const char *[]){"preset", "flow", NULL}), preset_flow(false), 0, 64); /* but cells */
}

static void rows_are_bounded_by_cells(void **state) {
    (void)state;
    assert_int_equal(acf_config_rows(1), ACF_BATCH_ROWS);
    assert_int_equal(acf_config_rows(256), ACF_BATCH_ROWS);
    assert_int_equal(acf_config_rows(257), 255);
    assert_int_equal(acf_config_rows(1000000), 4);
}

/* Values set by the user or a preset stay. */
static void user_and_preset_values_stay(void **state) {
    (void)state;
    expect(options_for(1000, 0, (const char *[]){"preset", "flow", "rank", "3", "batch", "200", NULL}),
           preset_flow(true), 3, 200);
    expect(options_for(1000, 0, (const char *[]){"flow", "linear rnn", "rank", "0", NULL}), "linear rnn", 0, 65);
    expect(options_for(1000, 0, (const char *[]){"preset", "ar", NULL}), "", ACF_WIDTH_RANK, 1024);
    acf_options *o = options_for(1000, 0, (const char *[]){"preset", "paper", NULL});
    assert_null(strstr(acf_options_text(o, "flow"), "lowrank"));
    assert_int_equal(acf_options_set_from(o, "batch", "99", ACF_FROM_PRESET), ACF_OK); /* as a preset would */
    assert_int_equal(acf_config_width(o, &(acf_column){0}, 1), ACF_OK);
    assert_int_equal(acf_options_int(o, "batch"), 99);
    acf_options_free(o);
}

/* A preset sets what the user has not set. */
static void presets_fill_in(void **state) {
    (void)state;
    acf_options *o = options_for(8, 0, (const char *[]){"preset", "paper", "mlp-width", "77", NULL});
    assert_int_equal(acf_options_int(o, "mlp-width"), 77);
    assert_int_equal(acf_options_int(o, "coupling-units"), 256);
    assert_int_equal(acf_options_int(o, "components"), 40);
    acf_options_free(o);
}

static void expect_option(const acf_options *o, const char *name, const char *value);

/* The attention likelihood learns all conditionals of a row at once if cells may come in any order. */
static void attention_learns_whole_rows(void **state) {
    (void)state;
    static const struct {
        int64_t reals, categories;
        const char *set[7], *masks;
    } tables[] = {
        {5, 0, {"likelihood", "attention", NULL}, "joint"},
        {5, 1, {"likelihood", "attention", NULL}, NULL},
        {5, 1, {"likelihood", "attention", "gmm", "0", NULL}, "joint"},
        {5, 0, {"likelihood", "attention", "flow", "affine", NULL}, NULL},
        {5, 0, {"likelihood", "attention", "masks", "uniform", NULL}, "uniform"},
        {5, 0, {"likelihood", "sets", NULL}, NULL},
    };
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        acf_options *o = options_for(tables[k].reals, tables[k].categories, tables[k].set);
        expect_option(o, "masks", tables[k].masks ? tables[k].masks : acf_options_find(o, "masks")->standard);
        acf_options_free(o);
    }
}

static void expect_option(const acf_options *o, const char *name, const char *value) {
    char text[1152];
    acf_text t = acf_text_into(text, sizeof text);
    assert_int_equal(acf_options_write(o, name, &t), ACF_OK);
    if (strcmp(text, value) != 0) fail_msg("%s is %s, expected %s", name, text, value);
}

/* The paper's presets train as the paper's authors do, for every width and length of the table. */
static void paper_presets_train_as_published(void **state) {
    (void)state;
    static const char *const presets[] = {"paper", "paper-2d", "ar"};
    static const char *const protocol[][2] = {
        {"encode", "standard"},     {"dequantise", "false"},   {"gmm", "0"},
        {"factors", "0"},           {"likelihood", "gru"},     {"column-embedding", "0"},
        {"context-width", "0"},     {"deep-context", "false"}, {"donors", "false"},
        {"ensemble", "1"},          {"components", "40"},      {"batch", "1024"},
        {"steps", "60000"},         {"lr", "0.005"},           {"warmup", "0"},
        {"decay", "constant"},      {"halve-every", "10000"},  {"clip", "1"},
        {"weight-decay", "0"},      {"dropout", "0"},          {"ema", "0"},
        {"masks", "bernoulli:0.5"}, {"guess-weight", "0"},     {"loss-per", "column"},
        {"valid-every", "2500"},    {"patience", "0"},         {"calibrate", "false"},
        {"refit", "false"},         {"precision", "float"}};
    for (int p = 0; p < 3; p++) {
        acf_options *o = options_for(600, 0, (const char *[]){"preset", presets[p], NULL});
        assert_int_equal(acf_config_ensemble(o, 100, 6), ACF_OK);
        assert_true(acf_config_follows_paper(o));
        for (size_t k = 0; k < sizeof protocol / sizeof *protocol; k++)
            expect_option(o, protocol[k][0], protocol[k][1]);
        if (p < 2) expect_option(o, "rank", "0");
        acf_options_free(o);
    }
    for (int p = 0; p < 2; p++) {
        acf_options *o = options_for(8, 0, (const char *[]){"preset", p ? "flow" : "default", NULL});
        assert_false(acf_config_follows_paper(o));
        acf_options_free(o);
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static acf_column column[600];
    for (int64_t n = 1;; n++) {
        acf_options *o;
        int64_t live = acf_alloc_live();
        assert_int_equal(acf_config_create(&o), ACF_OK);
        acf_alloc_fail_at(n);
        acf_status status = acf_config_width(o, column, 600);
        acf_alloc_fail_at(0);
        acf_options_free(o);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
    }
}

static void small_tables_get_an_ensemble(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns;
        const char *target;
        int64_t members;
    } cases[] = {{1, 1, "auto", 3},    {1999, 56, "auto", 3}, {2000, 5, "auto", 1},
                 {100, 57, "auto", 1}, {100000, 300, "5", 5}, {10, 3, "1", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        acf_options *o = options_for(4, 0, (const char *const[]){"ensemble", cases[k].target, NULL});
        assert_int_equal(acf_config_ensemble(o, cases[k].rows, cases[k].columns), ACF_OK);
        assert_int_equal(acf_options_int(o, "ensemble"), cases[k].members);
        acf_options_free(o);
    }
}

/* Options for a table of so many rows, of numbers and optionally one category. */
static acf_options *tall(int64_t rows, int64_t columns, bool category, bool gpu, const char *const *set) {
    acf_options *o;
    acf_column *column = calloc((size_t)columns, sizeof *column);
    assert_non_null(column);
    column[0].classes = category ? 2 : 0;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    for (; *set; set += 2) assert_int_equal(acf_options_set_text(o, set[0], set[1]), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_config_height(o, column, columns, rows, gpu), ACF_OK);
    assert_int_equal(acf_config_width(o, column, columns), ACF_OK);
    assert_int_equal(acf_config_ensemble(o, rows, columns), ACF_OK);
    free(column);
    return o;
}

/* Only a large table on a GPU gets the attention likelihood. The mixture precedes it only for tables without
 * categories. */
static void large_tables_on_a_gpu_get_attention(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns;
        bool category, gpu;
        const char *set[3];
        const char *likelihood, *masks;
        int64_t units, gmm;
    } cases[] = {
        {5000, 8, false, true, {NULL}, "attention", "joint", 256, 8},
        {5000, 8, true, true, {NULL}, "attention", "joint", 256, 0},
        {5000, 57, false, true, {NULL}, "attention", "joint", 256, 0},
        {5000, 8, true, true, {"gmm", "2"}, "attention", "partial:1*2 + partial:0.5 + uniform", 256, 2},
        {5000, 8, true, true, {"likelihood-units", "32"}, "attention", "joint", 32, 0},
        {5000, 8, true, true, {"effort", "best"}, "attention", "joint", 384, 0},
        {5000, 8, true, true, {"effort", "quick"}, "sets", "partial:1*2 + partial:0.5 + uniform", 32, 8},
        {4999, 8, true, true, {NULL}, "sets", "partial:1*2 + partial:0.5 + uniform", 96, 8},
        {5000, 8, true, false, {NULL}, "sets", "partial:1*2 + partial:0.5 + uniform", 96, 8},
        {5000, 129, true, true, {NULL}, "sets", "partial:1*2 + partial:0.5 + uniform", 96, 8},
        {5000, 8, true, true, {"likelihood", "sets"}, "sets", "partial:1*2 + partial:0.5 + uniform", 96, 8},
        {5000, 8, false, true, {"flow", "linear"}, "sets", "partial:1*2 + partial:0.5 + uniform", 96, 8},
        {5000, 8, false, true, {"preset", "ar"}, "gru", "bernoulli:0.5", 256, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char likelihood[32];
        acf_text name = acf_text_into(likelihood, sizeof likelihood);
        acf_options *o = tall(cases[k].rows, cases[k].columns, cases[k].category, cases[k].gpu, cases[k].set);
        assert_int_equal(acf_options_write(o, "likelihood", &name), ACF_OK);
        if (strcmp(likelihood, cases[k].likelihood) != 0 || strcmp(acf_options_text(o, "masks"), cases[k].masks) != 0 ||
            acf_options_int(o, "likelihood-units") != cases[k].units || acf_options_int(o, "gmm") != cases[k].gmm)
            fail_msg("case %d: likelihood %s of %lld units, masks %s, a mixture of %lld", (int)k, likelihood,
                     (long long)acf_options_int(o, "likelihood-units"), acf_options_text(o, "masks"),
                     (long long)acf_options_int(o, "gmm"));
        acf_options_free(o);
    }
}

/* effort sets ensemble, steps and donors; options set by the user stay. The paper's presets and images refuse it. */
static void effort_sets_unset_options(void **state) {
    (void)state;
    static const struct {
        int64_t rows;
        const char *set[5];
        int64_t members, steps;
        bool donor_trust, refit;
    } cases[] = {
        {300, {"effort", "quick"}, 1, 150, true, false},
        {2000, {"effort", "quick"}, 1, 150, true, false},
        {2001, {"effort", "quick"}, 1, 150, false, false},
        {2001, {"effort", "quick", "donors", "true"}, 1, 150, true, false},
        {300, {"effort", "normal"}, 3, 5000, true, true},
        {300, {"effort", "best"}, 5, 10000, true, true},
        {3000, {"effort", "best"}, 1, 10000, true, true},
        {300, {"effort", "best", "steps", "7"}, 5, 7, true, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        acf_options *o = tall(cases[k].rows, 6, true, false, cases[k].set);
        assert_int_equal(acf_options_int(o, "ensemble"), cases[k].members);
        assert_int_equal(acf_options_int(o, "steps"), cases[k].steps);
        assert_int_equal(acf_options_bool(o, "donors"), cases[k].donor_trust);
        assert_int_equal(acf_options_bool(o, "refit"), cases[k].refit);
        acf_options_free(o);
    }
    acf_options *o;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "preset", "paper-2d"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "effort", "quick"), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "the preset 'paper-2d' is the paper's model and training; the option 'effort' is for the "
                        "presets default and flow");
    acf_options_free(o);
    assert_int_equal(acf_config_create(&o), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "effort", "best"), ACF_OK);
    assert_int_equal(acf_config_finish_images(o), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "the option 'effort' is for tables, but these are images"));
    acf_options_free(o);
}

ACF_TESTS(config, cmocka_unit_test(large_tables_on_a_gpu_get_attention), cmocka_unit_test(effort_sets_unset_options),
          cmocka_unit_test(width_chooses_the_matrices), cmocka_unit_test(rows_are_bounded_by_cells),
          cmocka_unit_test(user_and_preset_values_stay), cmocka_unit_test(attention_learns_whole_rows),
          cmocka_unit_test(small_tables_get_an_ensemble), cmocka_unit_test(presets_fill_in),
          cmocka_unit_test(paper_presets_train_as_published), cmocka_unit_test(every_allocation_may_fail))
