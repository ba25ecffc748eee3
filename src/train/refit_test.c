/* Tests of refit.h: when there is a second pass, that it is a run over all cells, and that neither interruption nor
 * divergence loses the model of the first. Whole fits with their reports are in refit_api_test.c. */
#include "train/refit.h"

#include "harness/train_lab.h"
#include "train/checkpoint.h"
#include "train/fit.h"
#include "train/gmm_fit.h"
#include "train/valid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 150, D = 4 };
static const char *const same_seed[] = {"seed=5", "steps=30", "valid-every=10",
                                        NULL}; /* the lab's network has seed 5 */
static const char *const held_rows[] = {"seed=5", "steps=30", "valid-every=10", "valid-on=rows", "masks=uniform", NULL};

static void open_lab(acf_train_lab *l, int threads, const char *const *settings) {
    acf_train_lab_open(l, threads, settings);
    acf_train_lab_ready(l, acf_train_lab_table(N, D, 0.2, 0, 3));
}

static acf_train_end run(acf_train_lab *l) {
    acf_train_end end;
    if (acf_trainer_run(l->tr, NULL, &end)) fail_msg("%s", acf_error());
    return end;
}

static void begin(acf_train_lab *l, acf_train_end end) {
    if (acf_refit_begin(l->tr, end)) fail_msg("%s", acf_error());
}

/* ---- when ------------------------------------------------------------------------------------------------------ */

static void it_follows_what_ended_well(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, 1, same_seed);
    assert_true(acf_refit_planned(l.tr));
    assert_false(acf_refit_due(l.tr, ACF_END_STEPS)); /* there was no validation */
    acf_train_end end = run(&l);
    assert_int_equal(end, ACF_END_STEPS);
    static const bool due[ACF_END_COUNT] = {[ACF_END_STEPS] = true, [ACF_END_EPOCHS] = true, [ACF_END_PATIENCE] = true};
    for (int k = 0; k < ACF_END_COUNT; k++) assert_int_equal(acf_refit_due(l.tr, (acf_train_end)k), due[k]);
    assert_int_equal(l.tr->all_cells, l.hold->held + l.hold->visible);
    const int64_t cells = l.tr->all_cells;
    l.tr->all_cells = ACF_REFIT_CELLS;
    assert_true(acf_refit_due(l.tr, end));
    l.tr->all_cells++;
    assert_false(acf_refit_planned(l.tr) || acf_refit_due(l.tr, end));
    l.tr->all_cells = cells;
    begin(&l, end);
    assert_false(acf_refit_due(l.tr, end)); /* there is no third */
    acf_train_lab_close(&l);
    for (int k = 0; k < 2; k++) {
        open_lab(&l, 1, (const char *[]){k ? "valid=0" : "refit=false", NULL});
        end = run(&l);
        assert_false(acf_refit_planned(l.tr) || acf_refit_due(l.tr, end));
        acf_train_lab_close(&l);
    }
}

/* ---- what ------------------------------------------------------------------------------------------------------ */

/* Bit for bit the same as a trainer made for all cells and for so many steps. */
static void check_run_over_all(const char *const *settings, const char *masks) {
    acf_train_lab l, plain;
    open_lab(&l, 1, settings);
    const int64_t held = acf_valid_cells(l.tr), rows = l.tr->rows.n;
    acf_train_end end = run(&l);
    const int64_t best = l.tr->state.best_step;
    const double valid = l.tr->state.best;
    assert_true(best > 0);
    begin(&l, end);
    assert_true(l.tr->pass == 2 && l.tr->state.step == 0 && !l.tr->data.hold && l.tr->data.encoder != l.encoder &&
                l.tr->rows.n == N);
    assert_int_equal(run(&l), ACF_END_STEPS);
    char steps[32];
    snprintf(steps, sizeof steps, "steps=%d", 2 * (int)best);
    open_lab(&plain, 2, (const char *[]){"seed=5", "valid=0", steps, masks, NULL});
    assert_int_equal(run(&plain), ACF_END_STEPS);
    acf_train_lab_same(&l, &plain);
    for (int j = 0; j < D; j++)
        assert_true(l.tr->all->mean[j] == plain.encoder->mean[j] && l.tr->all->scale[j] == plain.encoder->scale[j]);
    const acf_fit_record r = acf_trainer_record(l.tr, ACF_END_STEPS);
    assert_true(r.valid == valid && r.valid_step == best && r.steps == 30 && r.held == held && r.rows == rows &&
                r.refit == ACF_REFIT_DONE);
    assert_int_equal(acf_refit_check(l.tr), ACF_OK);
    assert_int_equal(acf_trainer_finish(l.tr),
                     ACF_OK); /* averaged weights, not the best of the first pass, with its calibration */
    const acf_params *ps = acf_net_params(l.net);
    assert_true(r.scale_factor != 0 && acf_trainer_record(l.tr, ACF_END_STEPS).scale_factor == r.scale_factor);
    assert_memory_not_equal(ps->value, ps->ema, (size_t)ps->total * sizeof(acf_real));
    memcpy(plain.tr->ps->value, plain.tr->ps->ema, (size_t)ps->total * sizeof(acf_real));
    assert_int_equal(acf_net_calibrate(plain.net, r.scale_factor, r.temperature), ACF_OK);
    assert_memory_equal(ps->value, plain.tr->ps->value, (size_t)ps->total * sizeof(acf_real));
    acf_encoder *e = acf_refit_encoder(l.tr);
    assert_true(e && !l.tr->all);
    acf_encoder_free(e);
    acf_train_lab_close(&l);
    acf_train_lab_close(&plain);
}

static void it_is_a_run_over_all_cells(void **state) {
    (void)state;
    check_run_over_all(same_seed, NULL);
}

/* Also those that were held out. */
static void it_is_a_run_over_all_rows(void **state) {
    (void)state;
    check_run_over_all(held_rows, "masks=uniform");
}

/* No validation beat the initial one: the mixture of all cells, and one step of negligible size. */
static void it_may_be_the_mixture_alone(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, 1, (const char *[]){"seed=5", "steps=4", "valid-every=2", "gmm=2", "lr=0", NULL});
    acf_train_end end = run(&l);
    assert_int_equal(l.tr->state.best_step, 0);
    assert_true(acf_refit_due(l.tr, end));
    begin(&l, end);
    assert_int_equal(run(&l), ACF_END_STEPS);
    assert_int_equal(l.tr->state.step, 1);
    assert_int_equal(acf_refit_check(l.tr), ACF_OK);
    const acf_fit_record r = acf_trainer_record(l.tr, ACF_END_STEPS);
    assert_true(r.valid_step == 0 && r.refit == ACF_REFIT_DONE);
    acf_train_lab_close(&l);
    /* Not in an ensemble: members would be the same. Members that training improved have a second pass. */
    open_lab(&l, 1, (const char *[]){"seed=5", "steps=4", "valid-every=2", "gmm=2", "lr=0", "ensemble=2", NULL});
    end = run(&l);
    assert_true(acf_refit_planned(l.tr) && l.tr->state.best_step == 0 && !acf_refit_due(l.tr, end));
    const int64_t rows = l.tr->rows.n;
    for (int few = 0; few < 2; few++) {
        l.tr->rows.n = 40 - few;
        assert_int_equal(acf_refit_due(l.tr, end), few);
    }
    l.tr->rows.n = rows;
    l.tr->state.best_step = 2;
    assert_true(acf_refit_due(l.tr, end));
    acf_train_lab_close(&l);
}

/* The second pass takes the number of components that the held-out cells chose. */
static void the_mixture_keeps_its_components(void **state) {
    (void)state;
    for (int wanted = 1; wanted <= 4; wanted++) {
        acf_train_lab l;
        acf_gmm_choice as;
        open_lab(&l, 1, (const char *[]){"seed=5", "steps=4", "valid-every=2", "gmm=4", NULL});
        acf_train_end end = run(&l);
        const acf_real *weight = acf_net_gmm(l.net)[0]->t.data;
        l.tr->gmm.components = wanted;
        begin(&l, end);
        assert_int_equal(acf_gmm_chosen(l.net, &as), ACF_OK);
        assert_int_equal(as.components, wanted);
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += (double)weight[k];
        acf_assert_close(sum, 1, 1e-5, "weights");
        acf_train_lab_close(&l);
    }
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

static char path[64];

static int make_file(void **state) {
    (void)state;
    strcpy(path, "/tmp/acflow-refit-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

/* Saved before its first step, in the middle and at its end; resumed with fresh objects, on another number of
 * threads. */
static void check_resumed(const char *const *settings) {
    acf_train_lab whole, l, again;
    open_lab(&whole, 1, settings);
    begin(&whole, run(&whole));
    run(&whole);
    const int64_t at[] = {0, whole.tr->set.steps / 2, whole.tr->set.steps};
    for (int k = 0; k < 3; k++) {
        open_lab(&l, 1, settings);
        begin(&l, run(&l));
        while (l.tr->state.step < at[k]) assert_int_equal(acf_trainer_step(l.tr, NULL), ACF_OK);
        assert_int_equal(acf_checkpoint_save(l.tr, path), ACF_OK);
        open_lab(&again, 2, settings);
        if (acf_checkpoint_load(again.tr, path)) fail_msg("%s", acf_error());
        assert_true(again.tr->pass == 2 && again.tr->state.step == at[k]);
        run(&again);
        acf_train_lab_same(&whole, &again);
        const size_t bytes = (size_t)acf_net_params(l.net)->total * sizeof(acf_real);
        assert_memory_equal(again.tr->best, l.tr->best, bytes);
        assert_int_equal(acf_refit_drop(again.tr), ACF_OK); /* the first pass's model is still there */
        memcpy(acf_net_params(l.net)->value, whole.tr->best, bytes);
        assert_int_equal(acf_net_calibrate(l.net, whole.tr->scale_factor, whole.tr->temperature), ACF_OK);
        assert_memory_equal(acf_net_params(again.net)->value, acf_net_params(l.net)->value, bytes);
        const acf_fit_record a = acf_trainer_record(whole.tr, ACF_END_STEPS),
                             b = acf_trainer_record(again.tr, ACF_END_STEPS);
        assert_true(a.valid == b.valid && a.valid_step == b.valid_step && a.steps == b.steps && a.epochs == b.epochs &&
                    a.end == b.end && a.held == b.held && a.rows == b.rows && a.skipped == b.skipped &&
                    a.refit == b.refit && a.scale_factor == b.scale_factor && a.temperature == b.temperature &&
                    a.scale_factor != 0);
        acf_train_lab_close(&l);
        acf_train_lab_close(&again);
    }
    acf_train_lab_close(&whole);
}

static void a_checkpoint_records_its_pass(void **state) {
    (void)state;
    check_resumed(same_seed);
    check_resumed(held_rows);
}

static void its_length_is_fixed(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, 1, same_seed);
    begin(&l, run(&l));
    assert_int_equal(acf_checkpoint_save(l.tr, path), ACF_OK);
    acf_train_lab_close(&l);
    open_lab(&l, 1, (const char *[]){"seed=5", "steps=31", "valid-every=10", NULL});
    assert_int_equal(acf_checkpoint_load(l.tr, path), ACF_EMODEL);
    assert_non_null(
        strstr(acf_error(), "is of a second pass, which can only go on as it began: steps is 30 there and 31 here"));
    assert_true(l.tr->pass == 1 && l.tr->data.hold);
    acf_train_lab_close(&l);
}

/* ---- whole fits ------------------------------------------------------------------------------------------------ */

/* A model for acf_fit_model, and what its callback does in the second pass. */
typedef struct whole {
    acf_train_lab l; /* device, options, table and held-out cells */
    acf_model *m;
    enum { NOTHING, WEIGHTS, ALL_AT_THE_END } poison;
    bool told;
    const char *says; /* expected reason for giving it up */
    int64_t stop_at;
} whole;

static int spoil(void *ctx, const acf_fit_report *r) {
    whole *w = ctx;
    acf_params *ps = acf_net_params(w->m->net);
    if (r->pass != 2) return 0;
    if (r->trouble) {
        w->told = true;
        assert_non_null(
            strstr(r->trouble, "the second pass, over all cells, was given up and the model of the first is kept: "));
        if (!strstr(r->trouble, w->says)) fail_msg("expected '%s' in: %s", w->says, r->trouble);
        return 0; /* the model already has its weights */
    }
    const bool end = w->poison == ALL_AT_THE_END && r->step == r->steps;
    for (int64_t i = 0; (end || w->poison == WEIGHTS) && i < ps->total; i++) ps->value[i] = (acf_real)NAN;
    for (int64_t i = 0; end && i < ps->total; i++) ps->ema[i] = (acf_real)NAN;
    return r->step == w->stop_at;
}

static acf_status fit(whole *w, const char *refit, const char *steps, const char *apart) {
    acf_options *o = NULL;
    acf_encoder *e = NULL;
    acf_train_lab_open(&w->l, 1, (const char *[]){"seed=5", refit, steps, apart, NULL});
    w->l.table = acf_train_lab_table(N, D, 0.2, 0, 3);
    assert_int_equal(acf_train_prepare(w->l.table, NULL, w->l.o, &w->l.hold, &e), ACF_OK);
    o = w->l.o, w->l.o = NULL; /* the model's */
    if (acf_model_make(w->l.dev, o, e, 5, true, &w->m)) fail_msg("%s", acf_error());
    return acf_fit_model(w->m, w->l.table, w->l.hold, &(acf_fit){.callback = spoil, .ctx = w});
}

static void close_whole(whole *w) {
    acf_model_free(w->m);
    acf_train_lab_close(&w->l);
}

static void assert_same_model(const whole *a, const whole *b) {
    const acf_params *p = acf_net_params(a->m->net), *q = acf_net_params(b->m->net);
    assert_memory_equal(p->value, q->value, (size_t)p->total * sizeof(acf_real));
    for (int j = 0; j < D; j++)
        assert_true(a->m->encoder->mean[j] == b->m->encoder->mean[j] &&
                    a->m->encoder->observed[j] == b->m->encoder->observed[j]);
}

/* NaN weights: no further step is finite. A pass of 10 steps ends before the limit of skipped steps, and is rejected
 * at its end, as is one whose weights become NaN after its last step; a longer one diverges. */
static void a_diverged_second_pass_leaves_the_first(void **state) {
    (void)state;
    static const char *const says[] = {"19 of 20 steps were not finite", "training diverged: ", "singular"};
    static const int skipped[] = {19, ACF_SKIPS_IN_ROW + 1, 0};
    for (int k = 0; k < 3; k++) {
        const char *steps = k ? "steps=60" : "steps=10", *apart = k ? "valid-every=30" : "valid-every=10";
        whole first = {.stop_at = -1}, w = {.poison = k < 2 ? WEIGHTS : ALL_AT_THE_END, .stop_at = -1, .says = says[k]};
        assert_int_equal(fit(&first, "refit=false", steps, apart), ACF_OK);
        if (fit(&w, "refit=true", steps, apart)) fail_msg("%s", acf_error());
        assert_true(w.told);
        assert_same_model(&first, &w);
        assert_true(w.m->record.known && w.m->record.refit == ACF_REFIT_DIVERGED && w.m->record.end == ACF_END_STEPS);
        assert_int_equal(w.m->record.skipped, skipped[k]);
        close_whole(&first), close_whole(&w);
    }
}

static void an_interrupted_second_pass_leaves_the_first(void **state) {
    (void)state;
    whole first = {.stop_at = -1}, w = {.stop_at = 3};
    assert_int_equal(fit(&first, "refit=false", "steps=30", "valid-every=10"), ACF_OK);
    assert_int_equal(fit(&w, "refit=true", "steps=30", "valid-every=10"), ACF_EINTERRUPT);
    assert_non_null(strstr(acf_error(), "training was interrupted after step 3 of its second pass"));
    assert_same_model(&first, &w);
    assert_true(w.m->record.end == ACF_END_STOPPED && w.m->record.refit == ACF_REFIT_NONE &&
                w.m->record.valid == first.m->record.valid);
    close_whole(&first), close_whole(&w);
}

/* After a whole fit the encoder has seen every cell. */
static void the_encoder_is_of_all_cells(void **state) {
    (void)state;
    whole first = {.stop_at = -1}, w = {.stop_at = -1};
    assert_int_equal(fit(&first, "refit=false", "steps=30", "valid-every=10"), ACF_OK);
    assert_int_equal(fit(&w, "refit=true", "steps=30", "valid-every=10"), ACF_OK);
    int64_t fewer = 0, all = 0;
    for (int j = 0; j < D; j++) fewer += first.m->encoder->observed[j], all += w.m->encoder->observed[j];
    assert_true(fewer == w.l.hold->visible && all == w.l.hold->visible + w.l.hold->held);
    close_whole(&first), close_whole(&w);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)
ACF_TESTS(refit, cmocka_unit_test(it_follows_what_ended_well), cmocka_unit_test(it_is_a_run_over_all_cells),
          cmocka_unit_test(it_is_a_run_over_all_rows), cmocka_unit_test(it_may_be_the_mixture_alone),
          cmocka_unit_test(the_mixture_keeps_its_components), WITH_FILE(a_checkpoint_records_its_pass),
          WITH_FILE(its_length_is_fixed), cmocka_unit_test(a_diverged_second_pass_leaves_the_first),
          cmocka_unit_test(an_interrupted_second_pass_leaves_the_first), cmocka_unit_test(the_encoder_is_of_all_cells))
