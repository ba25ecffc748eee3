/* Tests of presets through acflow.h: every ensemble member has all of their options, and a model with a preset of the
 * paper reports what was added to it. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/fit_lab.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 60, TEXT = 1 << 15 };

static char text[TEXT];

/* One step of a small network: only the sizes differ from the preset. */
static acf_model *fit(const char *const *more) {
    static const char *const common[] = {
        "steps", "1",    "likelihood-units", "4",       "mlp-width", "4", "coupling-units", "4", "components",
        "2",     "flow", "linear",           "threads", "1",         NULL};
    acf_model *m = NULL;
    if (acf_fit_lab_fit(acf_fit_lab_table(ROWS, NULL, 0), acf_fit_lab_options(common, more), NULL, NULL, &m))
        fail_msg("%s", acf_error());
    return m;
}
#define FIT(...) fit((const char *const[]){__VA_ARGS__, NULL})

static json_t *all_options(const acf_model *m) {
    json_t *o = NULL;
    assert_int_equal(acf_options_to_json(m->config, ACF_OPTIONS_RECORDED, &o), ACF_OK);
    return o;
}

/* All options but the seed, which differs. */
static void expect_alike(const acf_model *m, const acf_model *one, const char *what) {
    json_t *a = all_options(m), *b = all_options(one);
    if (json_equal(json_object_get(a, "seed"), json_object_get(b, "seed")))
        fail_msg("%s: two members have one seed", what);
    json_object_del(a, "seed"), json_object_del(b, "seed");
    const char *name;
    json_t *value;
    json_object_foreach(a, name, value) if (!json_equal(value, json_object_get(b, name)))
        fail_msg("%s: members differ in '%s'", what, name);
    assert_true(json_equal(a, b));
    json_decref(a), json_decref(b);
}

static void presets_reach_every_member(void **state) {
    (void)state;
    static const char *const presets[] = {"default", "flow", "paper", "paper-2d", "ar"};
    for (int p = 0; p < 5; p++) {
        acf_model *m = FIT("preset", presets[p], "ensemble", "3"), *again = NULL;
        char path[64];
        snprintf(path, sizeof path, "/tmp/acflow-paper-%d.safetensors", (int)getpid());
        if (acf_model_save(m, path) || acf_model_load(path, NULL, &again)) fail_msg("%s", acf_error());
        unlink(path);
        assert_int_equal(acf_model_members(again), 3);
        expect_alike(m, m->next, presets[p]);
        expect_alike(m, m->next->next, presets[p]);
        expect_alike(again, again->next, presets[p]);
        expect_alike(again, again->next->next, presets[p]);
        assert_int_equal(acf_model_parameters(m) % 3, 0);
        acf_model_free(m), acf_model_free(again);
    }
}

/* Info has the options of the first member, and the differing options of the others. */
static void info_shows_every_member(void **state) {
    (void)state;
    acf_model *m = FIT("preset", "paper", "ensemble", "2");
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    const char *other = strstr(text, "options of member 2 that differ:\n");
    assert_non_null(other);
    assert_int_equal(strncmp(strchr(other, '\n') + 1, "  seed  ", 8), 0);
    assert_null(strchr(strchr(strchr(other, '\n') + 1, '\n') + 1, '\n')); /* the seed alone */
    assert_int_equal(acf_options_set_text(m->next->config, "dropout", "0.25"), ACF_OK);
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(strstr(text, "options of member 2 that differ:\n"), "dropout              0.25\n"));
    assert_int_equal(acf_model_info(m, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    json_t *j = json_loads(text, 0, NULL), *members = json_object_get(j, "members"),
           *second = json_object_get(json_array_get(members, 1), "options");
    assert_true(json_array_size(members) == 2 && json_real_value(json_object_get(second, "dropout")) == 0.25);
    json_decref(j);
    acf_model_free(m);
}

static void expect_lines(acf_model *m, const char *beyond, const char *other) {
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    if ((strstr(text, "beyond the paper: ") != NULL) != (beyond != NULL) || (beyond && !strstr(text, beyond)))
        fail_msg("expected %s in %s", beyond, text);
    if (other && !strstr(text, other)) fail_msg("expected %s in %s", other, text);
    if (!other) assert_null(strstr(text, "different from the paper"));
    assert_int_equal(acf_model_info(m, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    assert_true((strstr(text, "\"beyond_paper\": \"") != NULL) == (beyond != NULL));
    acf_model_free(m);
}

/* Such a preset alone adds nothing: no calibration, no refit, no moving average, one member, no donors. */
static void what_is_beyond_the_paper_is_said(void **state) {
    (void)state;
    acf_model *m = FIT("preset", "ar", "flow", "");
    assert_true(m->record.known && m->record.scale_factor == 0 && m->record.temperature == 0 &&
                m->record.refit == ACF_REFIT_NONE && !m->donors && !m->next);
    expect_lines(
        m, NULL,
        "different from the paper (the paper's value in brackets): likelihood-units 4 (256), components 2 (40), steps "
        "1 (60000)\n");
    expect_lines(FIT("preset", "paper", "guess-weight", "1"), NULL, "(the paper's value in brackets): flow linear (");
    expect_lines(FIT("preset", "default", "ensemble", "2"), NULL, NULL);
    expect_lines(FIT("preset", "paper-2d", "ensemble", "2", "dropout", "0.1", "gmm", "2", "refit", "true", "calibrate",
                     "true", "ema", "0.9"),
                 "beyond the paper: Gaussian mixture, dropout, exponential moving average of the weights, calibration "
                 "on held-out cells, 2 ensemble members\n",
                 "guess-weight");
}

/* If training did not use an addition, the model is the paper's. */
static void what_had_no_effect_is_not_said(void **state) {
    (void)state;
    expect_lines(FIT("preset", "ar", "flow", "", "factors", "4", "donors", "true", "refit", "true", "calibrate", "true",
                     "valid", "0"),
                 NULL, "steps 1 (60000)\n");
}

static void survives_without_memory(void **state) {
    (void)state;
    acf_model *m = FIT("preset", "ar", "ensemble", "2", "dropout", "0.1");
    for (int json = 0; json < 2; json++)
        for (int64_t n = 1;; n++) {
            const int64_t live = acf_alloc_live();
            acf_alloc_fail_at(n);
            acf_status status = json ? acf_model_info(m, ACF_JSON, text, sizeof text, NULL)
                                     : acf_model_info(m, ACF_TEXT, text, sizeof text, NULL);
            acf_alloc_fail_at(0);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
        }
    acf_model_free(m);
}

ACF_TESTS(paper_api, cmocka_unit_test(presets_reach_every_member), cmocka_unit_test(info_shows_every_member),
          cmocka_unit_test(what_is_beyond_the_paper_is_said), cmocka_unit_test(what_had_no_effect_is_not_said),
          cmocka_unit_test(survives_without_memory))
