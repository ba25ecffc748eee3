/* Tests of trainer.h: what a run depends on, what it must not read, how it ends, and failures of numbers or memory.
 * Whether it learns is tested in science_test.c. */
#include "train/trainer.h"

#include "device/cpu.h"
#include "harness/train_lab.h"
#include "ops/adam.h"

#include <math.h>
#include <string.h>

enum { D = 4 };

static void open_with(acf_train_lab *l, int threads, const char *const *settings) {
    acf_train_lab_open(l, threads, settings);
    acf_train_lab_ready(l, acf_train_lab_table(200, D, 0.2, 0, 3));
}

static void take_steps(acf_train_lab *l, int n) {
    for (int i = 0; i < n; i++)
        if (acf_trainer_step(l->tr, NULL)) fail_msg("%s", acf_error());
}

/* ---- what a run depends on ------------------------------------------------------------------------------------- */

/* Large enough that threads really start: 256 rows of 8 columns. */
static void threads_change_no_bit(void **state) {
    (void)state;
    acf_train_lab l[2];
    double nll[2];
    const char *set[] = {"batch=256",         "guess-weight=0.5", "likelihood-units=32",
                         "coupling-units=32", "mlp-width=48",     NULL};
    for (int k = 0; k < 2; k++) {
        acf_train_lab_open(&l[k], k + 1, set);
        acf_train_lab_ready(&l[k], acf_train_lab_table(600, 8, 0.2, 0, 3));
        take_steps(&l[k], 6);
        assert_int_equal(acf_trainer_validate(l[k].tr, &nll[k]), ACF_OK);
    }
    acf_train_lab_same(&l[0], &l[1]);
    assert_true(nll[0] == nll[1]);
    for (int k = 0; k < 2; k++) acf_train_lab_close(&l[k]);
}

/* Products in bf16 are used in steps only: validation is float, and the device's precision is restored. Without bf16
 * (the double build never has it) the trainer refuses it. */
static void bf16_is_for_steps_alone(void **state) {
    (void)state;
    acf_train_lab l[3];
    double nll[3];
    acf_train_step first[3];
    const char *set[] = {
        "batch=256", "guess-weight=0.5", "likelihood-units=64", "coupling-units=64", "mlp-width=64", "precision=bf16",
        NULL};
    if (!acf_cpu_has_bf16()) {
        acf_train_lab_open(&l[0], 1, NULL);
        acf_train_lab_ready(&l[0], acf_train_lab_table(60, D, 0.2, 0, 3));
        acf_trainer *tr = NULL;
        assert_int_equal(acf_options_set_text(l[0].o, "precision", "bf16"), ACF_OK);
        assert_int_equal(acf_trainer_create(l[0].net, &l[0].tr->data, l[0].o, &tr), ACF_EDEVICE);
        assert_non_null(strstr(acf_error(), "AVX512-BF16"));
        acf_train_lab_close(&l[0]);
        return;
    }
    for (int k = 0; k < 3; k++) {
        if (k == 2) set[5] = "precision=float";
        acf_train_lab_open(&l[k], k + 1, set);
        acf_train_lab_ready(&l[k], acf_train_lab_table(600, 8, 0.2, 0, 3));
        assert_int_equal(acf_trainer_step(l[k].tr, &first[k]), ACF_OK);
        take_steps(&l[k], 5);
        assert_int_equal(l[k].dev->precision, ACF_PRECISION_FLOAT);
        assert_int_equal(acf_trainer_validate(l[k].tr, &nll[k]), ACF_OK);
    }
    acf_train_lab_same(&l[0], &l[1]);
    assert_true(nll[0] == nll[1]);
    assert_true(first[0].norm != first[2].norm &&
                fabs(first[0].norm / first[2].norm - 1) < 0.01); /* a rounding difference only */
    assert_true(fabs(first[0].loss - first[2].loss) < 0.01 && fabs(nll[0] - nll[2]) < 0.1);
    for (int k = 0; k < 3; k++) acf_train_lab_close(&l[k]);
}

static void seeds_change_everything(void **state) {
    (void)state;
    acf_train_lab l[3];
    const char *seed[] = {"seed=1", "seed=1", "seed=2"};
    for (int k = 0; k < 3; k++) {
        open_with(&l[k], 1, (const char *[]){seed[k], "valid=0", NULL});
        take_steps(&l[k], 10);
    }
    acf_train_lab_same(&l[0], &l[1]);
    size_t bytes = (size_t)acf_net_params(l[0].net)->total * sizeof(acf_real);
    assert_memory_not_equal(acf_net_params(l[0].net)->value, acf_net_params(l[2].net)->value, bytes);
    for (int k = 0; k < 3; k++) acf_train_lab_close(&l[k]);
}

/* Whatever the array holds at missing cells: the same bits. */
static void missing_cells_are_never_read(void **state) {
    (void)state;
    static const double hidden[] = {0, NAN, 1e30, -INFINITY};
    acf_train_lab l[4];
    double nll[4];
    for (int k = 0; k < 4; k++) {
        acf_train_lab_open(&l[k], 2,
                           (const char *[]){"guess-weight=0.5", "masks=uniform + marginal:0.5 + joint", NULL});
        acf_train_lab_ready(&l[k], acf_train_lab_table(200, D, 0.4, hidden[k], 3));
        take_steps(&l[k], 15);
        assert_int_equal(acf_trainer_validate(l[k].tr, &nll[k]), ACF_OK);
        acf_train_lab_same(&l[0], &l[k]);
        assert_true(nll[0] == nll[k]);
    }
    for (int k = 0; k < 4; k++) acf_train_lab_close(&l[k]);
}

/* Other values in all held-out cells: training is the same, validation changes. */
static void held_out_cells_are_not_trained_on(void **state) {
    (void)state;
    acf_train_lab l[2];
    double nll[2];
    for (int k = 0; k < 2; k++) {
        acf_table *t = acf_train_lab_table(200, D, 0.2, 0, 3);
        acf_train_lab_open(&l[k], 1, NULL);
        if (k)
            for (int64_t i = 0; i < t->N; i++) {
                uint8_t held[D];
                acf_holdout_row(l[0].hold, t, i, held);
                for (int64_t j = 0; j < D; j++)
                    if (held[j]) ((double *)(uintptr_t)t->x)[i * D + j] += 3; /* tables are constant outside tests */
            }
        acf_train_lab_ready(&l[k], t);
        assert_true(l[k].hold->held > 30);
        take_steps(&l[k], 15);
        assert_int_equal(acf_trainer_validate(l[k].tr, &nll[k]), ACF_OK);
    }
    acf_train_lab_same(&l[0], &l[1]);
    assert_true(nll[1] > nll[0] + 1);
    for (int k = 0; k < 2; k++) acf_train_lab_close(&l[k]);
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* Three steps of a trainer, and the same assembled from their parts. */
static void a_step_is_its_parts(void **state) {
    (void)state;
    acf_train_lab l, twin;
    const char *set[] = {"batch=60", "masks=uniform", "guess-weight=0.3", "dropout=0.2", "clip=0.5", "ema=0.9", NULL};
    open_with(&l, 1, set);
    open_with(&twin, 1, set);
    take_steps(&l, 3);
    acf_masks masks;
    acf_batch_sampler sampler;
    acf_params *ps = acf_net_params(twin.net);
    acf_batch *b = twin.tr->batch;
    acf_tape *t = twin.tr->tape;
    assert_int_equal(acf_masks_parse("uniform", &masks), ACF_OK);
    acf_rows rows = acf_rows_all(200);
    assert_int_equal(acf_batch_sampler_start(&rows, 50, 1, true, &sampler), ACF_OK);
    for (uint32_t step = 0; step < 3; step++) {
        int64_t row[50];
        double norm, lr = 0.01 * (step + 1) / 5; /* warm-up */
        assert_int_equal(acf_batch_sampler_next(&sampler, row), 50);
        acf_batch_fill(twin.dev, b, twin.table, twin.encoder, twin.hold, ACF_BATCH_TRAIN, row, 50);
        acf_masks_draw(twin.dev, &masks, 1, step, 50, D, b->id, b->b, b->m);
        assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
        double loss;
        assert_int_equal(acf_loss_backward(t, twin.net, b, &(acf_pass){0.2, 1, step}, &(acf_loss){false, 0.3}, &loss),
                         ACF_OK);
        assert_int_equal(acf_grad_norm(ps, &norm), ACF_OK);
        acf_adam adam = {lr, 0.9, 0.999, 1e-8, 0.01};
        assert_int_equal(acf_adam_step(ps, &adam, step + 1, acf_clip_factor(norm, 0.5)), ACF_OK);
        assert_int_equal(acf_ema_step(ps, step / (step + 10.0)), ACF_OK);
    }
    acf_train_lab_same(&l, &twin);
    acf_train_lab_close(&l);
    acf_train_lab_close(&twin);
}

/* 200 rows, at most 32 at a time: six steps of 29 and one of 26 make an epoch. */
static void an_epoch_is_cut_evenly(void **state) {
    (void)state;
    acf_train_lab l;
    acf_train_step now;
    open_with(&l, 1, NULL);
    int64_t rows = 0;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(l.tr->sampler.epoch, 0);
        assert_int_equal(acf_trainer_step(l.tr, &now), ACF_OK);
        assert_int_equal(now.rows, i < 6 ? 29 : 26);
        rows += now.rows;
        assert_true(now.lr > 0 && isfinite(now.loss) && now.norm > 0 && !now.skipped);
    }
    assert_int_equal(rows, 200);
    assert_int_equal(l.tr->sampler.epoch, 1);
    assert_int_equal(l.tr->sampler.at, 0);
    acf_train_lab_close(&l);
}

/* Rows without any cell make no step of their own, at any number. */
static void empty_rows_are_skipped(void **state) {
    (void)state;
    double x[64 * 2];
    acf_table *t = NULL;
    acf_train_lab l;
    for (int i = 0; i < 64 * 2; i++) x[i] = i / 2 == 40 ? 1.0 + i : (double)NAN;
    assert_int_equal(acf_table_make(x, NULL, 64, 2, NULL, &t), ACF_OK);
    acf_train_lab_open(&l, 1, (const char *[]){"batch=4", "valid=0", NULL});
    acf_train_lab_ready(&l, t);
    for (int i = 0; i < 5; i++) {
        take_steps(&l, 1);
        assert_int_equal(acf_loss_rows(l.tr->batch), 1);
    }
    assert_in_range(l.tr->sampler.epoch, 4, 5);
    assert_int_equal(l.tr->state.updates, 5);
    acf_train_lab_close(&l);
}

static void steps_allocate_nothing(void **state) {
    (void)state;
    acf_train_lab l;
    double nll;
    open_with(&l, 2, (const char *[]){"guess-weight=0.1", NULL});
    take_steps(&l, 10);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
    int64_t before = acf_alloc_count();
    take_steps(&l, 50);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
    assert_int_equal(acf_alloc_count(), before);
    acf_train_lab_close(&l);
}

static void clipping_bounds_the_update(void **state) {
    (void)state;
    acf_train_lab l;
    acf_train_step now;
    open_with(&l, 1, (const char *[]){"clip=1e-12", "weight-decay=0", "warmup=0", "decay=constant", NULL});
    acf_params *ps = acf_net_params(l.net);
    assert_int_equal(acf_trainer_step(l.tr, &now), ACF_OK);
    double sum = 0;
    for (int64_t i = 0; i < ps->total; i++) sum += (double)ps->m[i] * (double)ps->m[i];
    assert_true(now.norm > 0.1);                                     /* reported before clipping */
    acf_assert_close(sqrt(sum) / (0.1 * 1e-12), 1, 1e-4, "clipped"); /* m = (1 - beta1) g after the first step */
    acf_train_lab_close(&l);
}

/* After the first update the average equals those weights; validation uses it, and leaves the current ones unchanged.
 * */
static void averages_are_what_is_validated(void **state) {
    (void)state;
    acf_train_lab l;
    double with, without;
    open_with(&l, 1, (const char *[]){"ema=0.9", "lr=0.05", NULL});
    acf_params *ps = acf_net_params(l.net);
    take_steps(&l, 1);
    for (int64_t i = 0; i < ps->total; i++) acf_assert_close((double)ps->ema[i], (double)ps->value[i], 1e-6, "first");
    take_steps(&l, 19);
    acf_real *live = test_malloc((size_t)ps->total * sizeof *live);
    memcpy(live, ps->value, (size_t)ps->total * sizeof *live);
    assert_int_equal(acf_trainer_validate(l.tr, &with), ACF_OK);
    assert_memory_equal(live, ps->value, (size_t)ps->total * sizeof *live);
    l.tr->set.ema = 0;
    assert_int_equal(acf_trainer_validate(l.tr, &without), ACF_OK);
    assert_true(with != without);
    memcpy(ps->value, ps->ema, (size_t)ps->total * sizeof *live);
    assert_int_equal(acf_trainer_validate(l.tr, &without), ACF_OK);
    assert_true(with == without);
    test_free(live);
    acf_train_lab_close(&l);
}

/* ---- validation, computed another way -------------------------------------------------------------------------- */

/* Row by row, in batches of one; in standardised units, whatever the encoder does, at values dequantised once. */
static void validation_is_the_mean_over_cells(void **state) {
    (void)state;
    acf_train_lab l;
    double nll, sum = 0;
    int64_t cells = 0;
    acf_batch *one = NULL;
    acf_tape *t = NULL;
    acf_train_lab_open(&l, 1, (const char *[]){"ema=0", NULL});
    acf_table *table = acf_train_lab_table(200, D, 0.2, 0, 9);
    double *x = (double *)table->x;
    for (int64_t k = 0; k < 200 * D; k++)
        if (acf_table_present(x[k]))
            x[k] = k % D == 0 ? nearbyint(x[k]) : k % D == 1 ? exp(x[k]) : x[k]; /* whole; heavy-tailed */
    acf_train_lab_ready(&l, table);
    assert_true(l.encoder->resolution[0].every == 1 && l.encoder->normal_scores[1].n > 0);
    take_steps(&l, 5);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
    assert_int_equal(acf_batch_create(1, D, &one), ACF_OK);
    assert_int_equal(acf_tape_create(l.dev, NULL, &t), ACF_OK);
    for (int64_t i = 0; i < 200; i++) {
        acf_batch_fill(l.dev, one, l.table, l.encoder, l.hold, ACF_BATCH_VALID, &i, 1);
        acf_batch_dequantise(l.dev, one, l.table, l.encoder, &i, l.tr->set.seed, ACF_NOISE_FIXED);
        for (int j = 0; j < D; j++) {
            if (!one->m[j] || one->b[j]) continue;
            double y = acf_dequantise(l.encoder, j, table->x[i * D + j], l.tr->set.seed, (uint64_t)i, ACF_NOISE_FIXED);
            sum -= acf_encode_log_slope(l.encoder, j, y) - l.encoder->log_jacobian[j];
            cells++;
        }
        acf_tape_begin(t, false);
        acf_tensor *logp = acf_net_logp(t, acf_net_view(t, l.net, one, NULL));
        assert_int_equal(acf_tape_status(t), ACF_OK);
        sum -= (double)logp->data[0];
    }
    assert_int_equal(cells, l.hold->held);
    acf_assert_close(nll, sum / (double)cells, sizeof(acf_real) == 8 ? 1e-12 : 1e-5, "validation");
    acf_batch_free(one);
    acf_tape_free(t);
    acf_train_lab_close(&l);
}

/* ---- runs and their ends --------------------------------------------------------------------------------------- */

typedef struct tally {
    int64_t steps, validations;
    double best;
    volatile sig_atomic_t stop;
    int64_t stop_at;
} tally;

static void count(void *ctx, const acf_train_progress *p) {
    tally *c = ctx;
    c->validations += p->validated;
    c->steps = p->step;
    c->best = p->state->best;
    assert_true(p->rows_per_second > 0);
    if (c->stop_at && p->step >= c->stop_at) c->stop = 1;
}

static tally run(acf_train_lab *l, int64_t stop_at, acf_train_end expected) {
    tally c = {.stop_at = stop_at};
    acf_train_end end;
    if (acf_trainer_run(l->tr, &(acf_train_hooks){count, &c, &c.stop}, &end)) fail_msg("%s", acf_error());
    assert_int_equal(end, expected);
    return c;
}

static void limits_end_a_run(void **state) {
    (void)state;
    static const struct {
        const char *set[4];
        int64_t stop_at, steps, validations;
        acf_train_end end;
    } cases[] = {
        {{"steps=25", "valid-every=10"}, 0, 25, 3, ACF_END_STEPS}, /* at 10, 20 and the end */
        {{"steps=20", "valid-every=10"}, 0, 20, 2, ACF_END_STEPS},
        {{"steps=0", "epochs=2", "valid-every=100"}, 0, 14, 1, ACF_END_EPOCHS},
        {{"steps=5", "epochs=2", "valid=0"}, 0, 5, 0, ACF_END_STEPS},
        {{"steps=0", "epochs=12", "valid-every=0"},
         0,
         84,
         2,
         ACF_END_EPOCHS}, /* at 56, the first epoch's end from 50, and 84 */
        {{"steps=0", "valid-every=4", "lr=0", "patience=3"}, 0, 16, 4, ACF_END_PATIENCE}, /* the first is the best */
        {{"steps=50", "valid-every=100"}, 7, 7, 0, ACF_END_STOPPED},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        acf_train_lab l;
        open_with(&l, 1, cases[k].set);
        tally c = run(&l, cases[k].stop_at, cases[k].end);
        assert_int_equal(c.steps, cases[k].steps);
        assert_int_equal(c.validations, cases[k].validations);
        acf_train_lab_close(&l);
    }
    acf_train_lab l;
    open_with(&l, 1, (const char *[]){"steps=0", "valid=0", NULL});
    assert_int_equal(acf_trainer_run(l.tr, NULL, NULL), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "training would have no end: set steps or epochs, or patience with something held out");
    acf_train_lab_close(&l);
}

/* With a step size of 0 nothing improves on the initial network. Without a mixture that one is no model, and is not
 * validated. */
static void a_network_with_a_mixture_is_a_model_at_once(void **state) {
    (void)state;
    for (int gmm = 0; gmm < 2; gmm++) {
        acf_train_lab l;
        double nll;
        open_with(&l, 1, (const char *[]){gmm ? "gmm=2" : "gmm=0", "steps=20", "valid-every=5", "lr=0", NULL});
        assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
        tally c = run(&l, 0, ACF_END_STEPS);
        assert_int_equal(c.validations, 4);
        assert_int_equal(l.tr->state.best_step, gmm ? 0 : 5);
        assert_int_equal(l.tr->state.stale, gmm ? 4 : 3);
        assert_true(c.best == nll);
        acf_train_lab_close(&l);
    }
}

/* A validation must gain two nats over all held-out cells to count. */
static void a_lucky_validation_does_not_count(void **state) {
    (void)state;
    for (int clear = 0; clear < 2; clear++) {
        acf_train_lab l;
        double nll;
        open_with(&l, 1, (const char *[]){"gmm=0", "steps=10", "valid-every=5", "lr=0", NULL});
        assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
        l.tr->state.best = nll + (clear ? 2.1 : 1.9) / (double)l.hold->held;
        tally c = run(&l, 0, ACF_END_STEPS);
        assert_int_equal(l.tr->state.best_step, clear ? 5 : 0);
        assert_true(clear ? c.best == nll : c.best > nll);
        acf_train_lab_close(&l);
    }
}

/* The weights before their calibration (calibrate_test.c tests that). */
static void undo_calibration(acf_train_lab *l) {
    const acf_params *ps = acf_net_params(l->net);
    assert_true(l->tr->scale_factor != 0);
    memcpy(ps->value, ps->grad, (size_t)ps->total * sizeof(acf_real));
    l->tr->set.ema = 0;
}

/* The weights after finish, without their calibration, validate exactly as the best did. Without held-out cells they
 * are the averaged ones. */
static void the_best_weights_are_kept(void **state) {
    (void)state;
    acf_train_lab l;
    double nll;
    /* A step size far too large: validation goes up and down. */
    open_with(&l, 1, (const char *[]){"steps=60", "valid-every=5", "lr=0.2", "decay=constant", "dropout=0", NULL});
    tally c = run(&l, 0, ACF_END_STEPS);
    assert_int_equal(c.validations, 12);
    assert_true(l.tr->state.best_step < 60);
    assert_int_equal(acf_trainer_finish(l.tr), ACF_OK);
    undo_calibration(&l);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
    assert_true(nll == c.best);
    acf_train_lab_close(&l);

    open_with(&l, 1, (const char *[]){"valid=0", NULL});
    run(&l, 0, ACF_END_STEPS);
    acf_params *ps = acf_net_params(l.net);
    size_t bytes = (size_t)ps->total * sizeof(acf_real);
    assert_memory_not_equal(ps->value, ps->ema, bytes);
    assert_int_equal(acf_trainer_finish(l.tr), ACF_OK);
    assert_memory_equal(ps->value, ps->ema, bytes);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_EUSAGE);
    acf_train_lab_close(&l);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

/* One NaN weight: steps are skipped and nothing else changes; when the weight is restored, training continues. */
static void steps_that_are_not_finite_are_skipped(void **state) {
    (void)state;
    acf_train_lab l, twin;
    acf_train_step now;
    open_with(&l, 1, NULL);
    open_with(&twin, 1, NULL);
    acf_params *ps = acf_net_params(l.net);
    acf_real *w = &ps->value[0];
    take_steps(&l, 3);
    take_steps(&twin, 3);
    acf_real live = *w;
    *w = ACF_R(NAN);
    for (int i = 0; i < ACF_SKIPS_IN_ROW; i++) {
        assert_int_equal(acf_trainer_step(l.tr, &now), ACF_OK);
        assert_true(now.skipped && isnan(now.loss));
    }
    *w = live;
    acf_train_lab_same(&l, &twin);
    assert_int_equal(l.tr->state.step, 3 + ACF_SKIPS_IN_ROW);
    assert_int_equal(l.tr->state.updates, 3);
    assert_int_equal(l.tr->state.skipped, ACF_SKIPS_IN_ROW);
    assert_int_equal(acf_trainer_step(l.tr, &now), ACF_OK);
    assert_true(!now.skipped && isfinite(now.loss));
    assert_int_equal(l.tr->state.in_row, 0);
    acf_train_lab_close(&l);
    acf_train_lab_close(&twin);
}

static void too_many_end_the_run(void **state) {
    (void)state;
    acf_train_lab l;
    double nll;
    open_with(&l, 1, (const char *[]){"steps=100", "valid-every=5", NULL});
    run(&l, 20, ACF_END_STOPPED);
    double best = l.tr->state.best;
    acf_params *ps = acf_net_params(l.net);
    ps->value[0] = ACF_R(INFINITY);
    ps->ema[0] = ACF_R(NAN);
    assert_int_equal(acf_trainer_run(l.tr, NULL, NULL), ACF_ENUMERIC);
    assert_int_equal(acf_status_exit(ACF_ENUMERIC), 6);
    assert_non_null(
        strstr(acf_error(), "training diverged: after step 41, 21 steps were not finite, the last 21 in a row"));
    assert_int_equal(acf_trainer_finish(l.tr), ACF_OK); /* the last good weights */
    undo_calibration(&l);
    assert_int_equal(acf_trainer_validate(l.tr, &nll), ACF_OK);
    assert_true(nll == best);
    acf_train_lab_close(&l);
}

static void too_many_in_all_end_it_too(void **state) {
    (void)state;
    acf_train_lab l;
    open_with(&l, 1, NULL);
    l.tr->state.skipped = ACF_SKIPS_TOTAL;
    take_steps(&l, 1);
    acf_net_params(l.net)->value[0] = ACF_R(NAN);
    assert_int_equal(acf_trainer_step(l.tr, NULL), ACF_ENUMERIC);
    acf_train_lab_close(&l);
}

/* Each allocation of the first steps fails once: the step has no effect, and repeated it gives the normal result. */
static void memory_may_fail_at_any_time(void **state) {
    (void)state;
    acf_train_lab l, twin;
    open_with(&twin, 1, (const char *[]){"guess-weight=0.1", NULL});
    take_steps(&twin, 2);
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        open_with(&l, 1, (const char *[]){"guess-weight=0.1", NULL});
        failed = false;
        acf_alloc_fail_at(n);
        for (int s = 0; s < 2 && !failed; s++) {
            int64_t at = l.tr->sampler.at;
            if (acf_trainer_step(l.tr, NULL) == ACF_OK) continue;
            failed = true;
            assert_int_equal(acf_error_status(), ACF_EMEMORY);
            assert_int_equal(l.tr->sampler.at, at);
            assert_int_equal(l.tr->state.step, s);
        }
        acf_alloc_fail_at(0);
        take_steps(&l, 2 - (int)l.tr->state.step);
        acf_train_lab_same(&l, &twin);
        acf_train_lab_close(&l);
        assert_true(n < 100);
    }
    acf_train_lab_close(&twin);
}

static void creation_may_fail_for_want_of_memory(void **state) {
    (void)state;
    acf_train_lab l;
    open_with(&l, 1, NULL);
    int64_t live = acf_alloc_live();
    acf_trainer *tr = NULL;
    for (int64_t n = 1; !tr; n++) {
        acf_alloc_fail_at(n);
        acf_status status = acf_trainer_create(l.net, &l.tr->data, l.o, &tr);
        acf_alloc_fail_at(0);
        assert_int_equal(status, tr ? ACF_OK : ACF_EMEMORY);
        if (!tr) assert_int_equal(acf_alloc_live(), live);
        assert_true(n < 100);
    }
    acf_trainer_free(tr);
    acf_trainer_free(NULL);
    acf_train_lab_close(&l);
}

static void mismatched_data_are_refused(void **state) {
    (void)state;
    acf_train_lab l;
    acf_trainer *tr = NULL;
    acf_net *query = NULL;
    open_with(&l, 1, NULL);
    assert_int_equal(acf_net_create(l.dev, l.table->column, D, l.o, 5, false, &query), ACF_OK);
    assert_int_equal(acf_trainer_create(query, &l.tr->data, l.o, &tr), ACF_EUSAGE);
    assert_string_equal(acf_error(), "the network was created for queries only; create it for training");
    acf_net_free(query);
    assert_int_equal(acf_net_create(l.dev, NULL, D + 1, l.o, 5, true, &query), ACF_OK);
    assert_int_equal(acf_trainer_create(query, &l.tr->data, l.o, &tr), ACF_ESHAPE);
    acf_net_free(query);
    acf_rows none = acf_rows_all(0);
    assert_int_equal(acf_trainer_create(l.net, &(acf_train_data){l.table, &none, l.encoder, NULL}, l.o, &tr),
                     ACF_EDATA);
    assert_string_equal(acf_error(), "none of the 0 rows has a cell to learn from");
    assert_null(tr);
    acf_train_lab_close(&l);
}

ACF_TESTS(trainer, cmocka_unit_test(threads_change_no_bit), cmocka_unit_test(bf16_is_for_steps_alone),
          cmocka_unit_test(seeds_change_everything), cmocka_unit_test(missing_cells_are_never_read),
          cmocka_unit_test(held_out_cells_are_not_trained_on), cmocka_unit_test(a_step_is_its_parts),
          cmocka_unit_test(an_epoch_is_cut_evenly), cmocka_unit_test(empty_rows_are_skipped),
          cmocka_unit_test(steps_allocate_nothing), cmocka_unit_test(clipping_bounds_the_update),
          cmocka_unit_test(averages_are_what_is_validated), cmocka_unit_test(validation_is_the_mean_over_cells),
          cmocka_unit_test(limits_end_a_run), cmocka_unit_test(a_network_with_a_mixture_is_a_model_at_once),
          cmocka_unit_test(a_lucky_validation_does_not_count), cmocka_unit_test(the_best_weights_are_kept),
          cmocka_unit_test(steps_that_are_not_finite_are_skipped), cmocka_unit_test(too_many_end_the_run),
          cmocka_unit_test(too_many_in_all_end_it_too), cmocka_unit_test(memory_may_fail_at_any_time),
          cmocka_unit_test(creation_may_fail_for_want_of_memory), cmocka_unit_test(mismatched_data_are_refused))
