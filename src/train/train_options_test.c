/* Tests of train_options.h: defaults are valid, every option reaches the struct, wrong masks are refused. */
#include "train/train_options.h"

#include "harness/lab.h"

#include <string.h>

/* Index of the first training option; before it are those of a model, which are all recorded. */
static int first_of_training(void) {
    int i = 0;
    while (strcmp(acf_option_table[i].name, "batch") != 0) i++;
    return i;
}

static void defaults_make_settings(void **state) {
    (void)state;
    acf_options *o = NULL;
    acf_train_settings s;
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    assert_int_equal(acf_train_settings_read(o, &s), ACF_OK);
    assert_int_equal(s.batch, 256);
    assert_true(s.steps > 0 && s.patience > 0 && s.valid > 0 && s.ema > 0);
    assert_int_equal(s.schedule.decay, ACF_DECAY_COSINE);
    assert_int_equal(s.masks.n, 3); /* conditionals, joint and marginals: one model for every query */
    for (int i = 0, of_model = 0; i < first_of_training(); i++) {
        const acf_option_section section = acf_option_table[i].section;
        of_model |= section == ACF_SECTION_MODEL || section == ACF_SECTION_DONORS || section == ACF_SECTION_IMAGE_MODEL;
        if (of_model) assert_true(acf_option_table[i].flags & ACF_OPTION_BOTH);
    }
    acf_options_free(o);
}

static void every_option_arrives(void **state) {
    (void)state;
    static const char *const set[][2] = {
        {"batch", "7"},         {"steps", "11"},           {"epochs", "13"},       {"lr", "0.5"},
        {"warmup", "17"},       {"decay", "linear"},       {"decay-to", "0.25"},   {"halve-every", "31"},
        {"clip", "0.75"},       {"weight-decay", "0.125"}, {"dropout", "0.375"},   {"ema", "0.625"},
        {"masks", "joint"},     {"guess-weight", "19"},    {"loss-per", "column"}, {"valid", "0.0625"},
        {"valid-on", "rows"},   {"valid-rows", "0.03125"}, {"valid-every", "23"},  {"patience", "29"},
        {"calibrate", "false"}, {"refit", "false"},        {"precision", "bf16"},  {"seed", "9007199254740991"}};
    enum { SET = sizeof set / sizeof *set };
    acf_options *o = NULL;
    acf_train_settings s;
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    for (int i = first_of_training(), k = 0; i < acf_option_count; i++) { /* all recorded options, in order */
        if (!(acf_option_table[i].flags & ACF_OPTION_RECORDED)) continue;
        assert_in_range(k, 0, SET - 1);
        assert_string_equal(acf_option_table[i].name, set[k++][0]);
    }
    for (int i = 0; i < SET; i++) assert_int_equal(acf_options_set_text(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_train_settings_read(o, &s), ACF_OK);
    assert_true(s.batch == 7 && s.steps == 11 && s.epochs == 13 && s.schedule.lr == 0.5 && s.schedule.warmup == 17);
    assert_true(s.schedule.decay == ACF_DECAY_LINEAR && s.schedule.to == 0.25 && s.schedule.halve_every == 31 &&
                s.clip == 0.75 && s.weight_decay == 0.125);
    assert_true(s.dropout == 0.375 && s.ema == 0.625 && s.masks.n == 1 && s.masks.part[0].kind == ACF_MASK_JOINT);
    assert_true(s.loss.guess_weight == 19 && s.loss.per_column && s.valid == 0.0625 && s.valid_every == 23);
    assert_true(s.valid_on == ACF_VALID_ROWS && s.valid_rows == 0.03125);
    assert_true(s.patience == 29 && !s.calibrate && !s.refit && s.precision == ACF_PRECISION_BF16 &&
                s.seed == 9007199254740991u);
    acf_options_free(o);
}

static void wrong_masks_are_refused(void **state) {
    (void)state;
    acf_options *o = NULL;
    acf_train_settings s;
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "masks", "bernouli:0.5"), ACF_OK);
    assert_int_equal(acf_train_settings_read(o, &s), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "bernouli"));
    acf_options_free(o);
}

/* What `auto` becomes, and settings that contradict each other. */
static void validation_has_training_s_queries(void **state) {
    (void)state;
    static const struct {
        const char *name[2], *value[2];
        acf_valid_on expected; /* 0: refused */
    } cases[] = {
        {{"seed"}, {"3"}, ACF_VALID_CELLS},
        {{"masks"}, {"partial:1*2 + partial:0.5 + uniform"}, ACF_VALID_CELLS},
        {{"masks"}, {"joint"}, ACF_VALID_ROWS},
        {{"preset"}, {"paper"}, ACF_VALID_ROWS},
        {{"valid-rows"}, {"0.1"}, ACF_VALID_ROWS},
        {{"masks", "valid-on"}, {"joint", "cells"}, ACF_VALID_CELLS},
        {{"masks", "valid-on"}, {"joint", "table"}, ACF_VALID_TABLE},
        {{"valid-rows", "valid-on"}, {"0.1", "cells"}, 0},
        {{"valid-rows", "valid-on"}, {"0.1", "table"}, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        acf_options *o = NULL;
        acf_train_settings s;
        assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
        for (int i = 0; i < 2 && cases[k].name[i]; i++)
            assert_int_equal(acf_options_set_text(o, cases[k].name[i], cases[k].value[i]), ACF_OK);
        assert_int_equal(acf_train_settings_read(o, &s), cases[k].expected ? ACF_OK : ACF_EUSAGE);
        if (cases[k].expected)
            assert_int_equal(s.valid_on, cases[k].expected);
        else
            assert_non_null(strstr(acf_error(), "leave out valid-rows, or use valid-on rows"));
        acf_options_free(o);
    }
}

ACF_TESTS(train_options, cmocka_unit_test(defaults_make_settings), cmocka_unit_test(validation_has_training_s_queries),
          cmocka_unit_test(every_option_arrives), cmocka_unit_test(wrong_masks_are_refused))
