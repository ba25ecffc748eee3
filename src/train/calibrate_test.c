/* Tests of calibrate.h: the numbers minimise the objective, cases without calibration, and that kept weights are
 * calibrated. */
#include "train/calibrate.h"

#include "harness/train_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 4, N = 300 };

/* Correlated reals and, as the first column, a class that depends on the second. */
static acf_table *mixed_table(void) {
    static const acf_column columns[D] = {{"class", 3}, {"a", 0}, {"b", 0}, {"c", 0}};
    double *x = malloc(sizeof(double) * N * D);
    acf_table *t = NULL;
    assert_non_null(x);
    acf_train_lab_fill(x, N, D, 3);
    for (int i = 0; i < N; i++) x[i * D] = (x[i * D + 1] > 0) + (acf_lab_random(8, i, 0, 1) < 0.3);
    assert_int_equal(acf_table_make(x, NULL, N, D, columns, &t), ACF_OK);
    free(x);
    return t;
}

static void open_lab(acf_train_lab *l, const char *const *settings, acf_table *t) {
    acf_train_lab_open(l, 1, settings);
    acf_train_lab_ready(l, t);
    if (acf_trainer_run(l->tr, NULL, NULL)) fail_msg("%s", acf_error());
    l->tr->set.ema = 0; /* validate the weights in `value` */
}

static const char *const many_held[] = {"valid=0.3", "steps=40", "valid-every=20", "lr=0.01", NULL};

/* The objective, computed another way. */
static double objective(acf_train_lab *l, double scale_factor, double temperature) {
    const acf_params *ps = acf_net_params(l->net);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *copy = acf_alloc(bytes, "weights");
    double nll = NAN;
    assert_non_null(copy);
    memcpy(copy, ps->value, bytes);
    if (acf_net_calibrate(l->net, scale_factor, temperature) || acf_trainer_validate(l->tr, &nll))
        fail_msg("%s", acf_error());
    memcpy(ps->value, copy, bytes);
    acf_release(copy);
    return nll * (double)l->hold->held + 0.5 * (pow((scale_factor - 0.1) / 0.1, 2) + pow(temperature / 0.1, 2));
}

static void calibrate(acf_train_lab *l) {
    if (acf_calibrate(l->tr)) fail_msg("%s", acf_error());
}

static void both_minimise_the_objective(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, many_held, mixed_table());
    const double before = objective(&l, 0, 0);
    calibrate(&l);
    const double w = l.tr->scale_factor, s = l.tr->temperature;
    assert_true(w != 0 && s != 0 && objective(&l, 0, 0) == before); /* the weights are unchanged */
    const double least = objective(&l, w, s);
    for (double other = -0.5; other <= 1; other += 0.05) {
        assert_true(least <= objective(&l, other, s) + 0.05);
        assert_true(least <= objective(&l, w, other) + 0.05);
    }
    /* Weights that are overconfident by a known factor: calibration undoes it, but for the prior's pull. */
    if (acf_net_calibrate(l.net, -0.4, -0.4)) fail_msg("%s", acf_error());
    calibrate(&l);
    assert_true(l.tr->scale_factor > w + 0.2 && l.tr->scale_factor < w + 0.42);
    assert_true(l.tr->temperature > s + 0.02 && l.tr->temperature < s + 0.42);
    acf_train_lab_close(&l);
}

/* With next to nothing held out the numbers stay at their prior. */
static void few_cells_stay_near_the_prior(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, (const char *[]){"valid=0.01", "steps=4", "valid-every=2", NULL}, mixed_table());
    assert_in_range(l.hold->held, 1, 25);
    l.hold->held = 1; /* counts as one cell */
    calibrate(&l);
    acf_assert_close(l.tr->scale_factor, 0.1, 0.03, "the prior's scale_factor");
    acf_assert_close(l.tr->temperature, 0, 0.03, "the prior's temperature");
    acf_train_lab_close(&l);
}

/* The prior for a kept Gaussian mixture assumes no overconfidence, unlike that for a network. */
static void a_kept_mixture_has_another_prior(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, (const char *[]){"valid=0.01", "steps=1", "valid-every=1", "gmm=2", "lr=1e-9", NULL},
             acf_train_lab_table(199, 2, 0, 0, 3));
    assert_true(acf_trainer_kept_mixture(l.tr));
    l.hold->held = 1;
    calibrate(&l);
    acf_assert_close(l.tr->scale_factor, 0, 0.03, "the prior's scale_factor");
    acf_train_lab_close(&l);
    open_lab(&l, (const char *[]){"valid=0.01", "steps=1", "valid-every=1", "gmm=0", "lr=1e-9", NULL},
             acf_train_lab_table(199, 2, 0, 0, 3));
    assert_false(acf_trainer_kept_mixture(l.tr));
    acf_train_lab_close(&l);
}

static void sometimes_nothing_is_calibrated(void **state) {
    (void)state;
    static const struct {
        int64_t rows;
        const char *setting;
        bool target;
    } some[] = {{199, "valid=0.1", true},
                {200, "valid=0.1", false},
                {199, "valid=0", false},
                {199, "likelihood=gaussian", false},
                {199, "calibrate=false", false}};
    for (int k = 0; k < 5; k++) {
        acf_train_lab l;
        open_lab(&l, (const char *[]){"steps=4", "valid-every=2", some[k].setting, NULL},
                 acf_train_lab_table(some[k].rows, 2, 0, 0, 3));
        l.tr->scale_factor = l.tr->temperature = 7;
        calibrate(&l);
        assert_true((l.tr->scale_factor != 0) == some[k].target && l.tr->temperature == 0);
        acf_train_lab_close(&l);
    }
}

/* The best weights, with both numbers applied; the record has them. */
static void kept_weights_are_calibrated(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, many_held, mixed_table());
    const acf_params *ps = acf_net_params(l.net);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    if (acf_trainer_finish(l.tr)) fail_msg("%s", acf_error());
    const acf_fit_record r = acf_trainer_record(l.tr, ACF_END_STEPS);
    assert_true(r.scale_factor == l.tr->scale_factor && r.temperature == l.tr->temperature && r.scale_factor != 0 &&
                r.temperature != 0);
    acf_real *kept = acf_alloc(bytes, "weights");
    assert_non_null(kept);
    memcpy(kept, ps->value, bytes);
    memcpy(ps->value, l.tr->best, bytes);
    assert_int_equal(acf_net_calibrate(l.net, r.scale_factor, r.temperature), ACF_OK);
    assert_memory_equal(kept, ps->value, bytes);
    acf_release(kept);
    acf_train_lab_close(&l);
}

ACF_TESTS(calibrate, cmocka_unit_test(both_minimise_the_objective), cmocka_unit_test(few_cells_stay_near_the_prior),
          cmocka_unit_test(a_kept_mixture_has_another_prior), cmocka_unit_test(sometimes_nothing_is_calibrated),
          cmocka_unit_test(kept_weights_are_calibrated))
