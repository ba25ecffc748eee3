/* Tests of valid.h: validation uses training's queries on rows that training never sees, and is the same for any number
 * of threads and in a resumed run. Held-out cells are tested in trainer_test.c, a second pass over all rows in
 * refit_test.c. */
#include "train/valid.h"

#include "harness/train_lab.h"
#include "train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { D = 4, N = 200 };

static void take_steps(acf_train_lab *l, int n) {
    for (int i = 0; i < n; i++)
        if (acf_trainer_step(l->tr, NULL)) fail_msg("%s", acf_error());
}

static double validate(acf_train_lab *l) {
    double nll;
    if (acf_trainer_validate(l->tr, &nll)) fail_msg("%s", acf_error());
    return nll;
}

/* ---- which rows ------------------------------------------------------------------------------------------------ */

static void no_more_rows_are_held_out_than_are_used(void **state) {
    (void)state;
    static const struct {
        int64_t rows;
        double valid, valid_rows;
        int64_t train, target;
    } cases[] = {{1000, 0.1, 0, 900, 100},
                 {1000, 0.1, 0.05, 950, 50},
                 {1000000, 0.1, 0, 990000, 10000},
                 {1000000, 0.1, 0.05, 950000, 10000},
                 {1000, 0, 0, 1000, 0},
                 {4, 0.1, 0, 4, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const acf_table t = {.N = cases[k].rows, .D = 1};
        const acf_train_settings set = {
            .valid = cases[k].valid, .valid_rows = cases[k].valid_rows, .valid_on = ACF_VALID_ROWS, .seed = 3};
        acf_row_split split;
        assert_int_equal(acf_valid_split(&t, NULL, &set, &split), ACF_OK);
        assert_int_equal(split.train.n, cases[k].train);
        assert_int_equal(split.valid.n, cases[k].target);
    }
}

static void a_second_table_leaves_the_first_whole(void **state) {
    (void)state;
    const acf_table t = {.N = 50, .D = 1}, other = {.N = 20000, .D = 1};
    const acf_train_settings set = {.valid = 0.1, .valid_on = ACF_VALID_TABLE, .seed = 3};
    acf_row_split split;
    assert_int_equal(acf_valid_split(&t, &other, &set, &split), ACF_OK);
    assert_true(split.train.n == 50 && split.valid.n == ACF_VALID_MOST);
    int64_t last = 0;
    for (int64_t k = 0; k < split.valid.n; k++) last = acf_max(last, acf_rows_at(&split.valid, k));
    assert_in_range(last, 19000, 19999); /* drawn from all of it */
    assert_int_equal(acf_valid_split(&t, NULL, &set, &split), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "there is no second table to validate on"));
}

/* ---- target cells ---------------------------------------------------------------------------------------------- */

/* Adds 3 to the cells of these rows that the first lab holds out. */
static void change_rows(acf_table *t, const acf_rows *rows) {
    for (int64_t k = 0; k < rows->n; k++)
        for (int j = 0; j < D; j++)
            ((double *)(uintptr_t)t->x)[acf_rows_at(rows, k) * D + j] += 3; /* tables are constant outside tests */
}

/* Other values in all held-out rows: scales, mixture and steps are the same, validation changes. */
static void held_out_rows_are_not_trained_on(void **state) {
    (void)state;
    acf_train_lab l[2];
    double nll[2];
    for (int k = 0; k < 2; k++) {
        acf_table *t = acf_train_lab_table(N, D, 0.2, 0, 3);
        acf_train_lab_open(&l[k], k + 1, (const char *[]){"valid-on=rows", "valid-rows=0.2", "gmm=2", NULL});
        if (k) change_rows(t, &l[0].split.valid);
        acf_train_lab_ready(&l[k], t);
        assert_true(!l[k].hold && l[k].split.valid.n == N / 5 && l[k].tr->rows.n == N - N / 5);
        take_steps(&l[k], 15);
        nll[k] = validate(&l[k]);
    }
    acf_train_lab_same(&l[0], &l[1]);
    for (int j = 0; j < D; j++)
        assert_true(l[0].encoder->mean[j] == l[1].encoder->mean[j] && l[0].encoder->scale[j] == l[1].encoder->scale[j]);
    assert_true(nll[1] > nll[0] + 1);
    for (int k = 0; k < 2; k++) acf_train_lab_close(&l[k]);
}

/* A second table leaves the first whole: the same steps as without validation. */
static void a_second_table_is_not_trained_on(void **state) {
    (void)state;
    acf_train_lab l, plain;
    acf_train_lab_open(&l, 1, (const char *[]){"valid-on=table", NULL});
    l.valid = acf_train_lab_table(50, D, 0.2, 0, 8);
    acf_train_lab_ready(&l, acf_train_lab_table(N, D, 0.2, 0, 3));
    acf_train_lab_open(&plain, 2, (const char *[]){"valid=0", NULL});
    acf_train_lab_ready(&plain, acf_train_lab_table(N, D, 0.2, 0, 3));
    take_steps(&l, 15);
    take_steps(&plain, 15);
    acf_train_lab_same(&l, &plain);
    assert_true(l.tr->target > 0 && l.tr->all_cells == 0);
    assert_true(isfinite(validate(&l)));
    acf_train_lab_close(&l);
    acf_train_lab_close(&plain);
}

/* A table whose columns are rounded, heavy-tailed, and neither; some rows have no cell. */
static acf_table *odd_table(int64_t rows, uint64_t seed) {
    acf_table *t = acf_train_lab_table(rows, D, 0.3, 0, seed);
    double *x = (double *)(uintptr_t)t->x;
    for (int64_t k = 0; k < rows * D; k++)
        if (acf_table_present(x[k]))
            x[k] = k / D % 7 == 0 ? (double)NAN : k % D == 0 ? nearbyint(x[k]) : k % D == 1 ? exp(x[k]) : x[k];
    return t;
}

/* -log p of one row of the lab's validation, in a batch of its own and in standardised units; *cells: its target
 * cells. */
static double score_row(acf_train_lab *l, const acf_table *t, int64_t row, acf_batch *one, int64_t *cells) {
    const uint64_t seed = l->tr->set.seed;
    double sum = 0;
    *cells = 0;
    acf_batch_fill(l->dev, one, t, l->encoder, NULL, ACF_BATCH_TRAIN, &row, 1);
    acf_masks_draw(l->dev, &l->tr->set.masks, seed, ACF_NOISE_FIXED, 1, D, one->id, one->b, one->m);
    acf_batch_dequantise(l->dev, one, t, l->encoder, &row, seed, ACF_NOISE_FIXED);
    for (int j = 0; j < D; j++) {
        if (!one->m[j] || one->b[j]) continue;
        const double y =
            acf_dequantise(l->encoder, j, t->x[row * D + j], seed, acf_table_row_id(t, row), ACF_NOISE_FIXED);
        sum -= acf_encode_log_slope(l->encoder, j, y) - l->encoder->log_jacobian[j];
        ++*cells;
    }
    if (*cells == 0) return 0;
    acf_tape_begin(l->tr->tape, false);
    acf_tensor *logp = acf_net_logp(l->tr->tape, acf_net_view(l->tr->tape, l->net, one, NULL));
    assert_int_equal(acf_tape_status(l->tr->tape), ACF_OK);
    return sum - (double)logp->data[0];
}

/* Row by row: per cell, or as the mean over rows of each row's loss per cell. */
static void validation_follows_the_masks(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        const bool second = k & 1, per_column = k & 2;
        acf_train_lab l;
        acf_batch *one = NULL;
        double sum = 0, weight = 0;
        int64_t all = 0;
        acf_train_lab_open(&l, 1,
                           (const char *[]){"ema=0", "masks=uniform + joint",
                                            second ? "valid-on=table" : "valid-on=auto",
                                            per_column ? "loss-per=column" : "loss-per=row", "valid=0.3", NULL});
        if (second) l.valid = odd_table(70, 11);
        acf_train_lab_ready(&l, odd_table(N, 9));
        assert_true(l.encoder->resolution[0].every == 1 && l.encoder->normal_scores[1].n > 0);
        take_steps(&l, 5);
        const double nll = validate(&l);
        assert_int_equal(acf_batch_create(1, D, &one), ACF_OK);
        for (int64_t i = 0; i < l.split.valid.n; i++) {
            int64_t cells;
            const double row = score_row(&l, second ? l.valid : l.table, acf_rows_at(&l.split.valid, i), one, &cells);
            if (cells) sum += per_column ? row / (double)cells : row, weight += per_column ? 1 : (double)cells;
            all += cells;
        }
        assert_int_equal(all, l.tr->target);
        acf_assert_close(nll, sum / weight, sizeof(acf_real) == 8 ? 1e-12 : 1e-5, "validation");
        acf_batch_free(one);
        acf_train_lab_close(&l);
    }
}

static void threads_change_no_bit(void **state) {
    (void)state;
    acf_train_lab l[2];
    double nll[2];
    for (int k = 0; k < 2; k++) {
        acf_train_lab_open(&l[k], k + 1,
                           (const char *[]){"batch=256", "valid-on=rows", "valid=0.4", "masks=uniform", NULL});
        acf_train_lab_ready(&l[k], acf_train_lab_table(600, 8, 0.2, 0, 3));
        take_steps(&l[k], 4);
        nll[k] = validate(&l[k]);
    }
    acf_train_lab_same(&l[0], &l[1]);
    assert_true(nll[0] == nll[1] && nll[0] == validate(&l[0])); /* and at every validation */
    for (int k = 0; k < 2; k++) acf_train_lab_close(&l[k]);
}

/* ---- which weights are kept ------------------------------------------------------------------------------------ */

enum { ROWS = 3000, TEST = 2000, WIDE = 6 };

typedef struct trial {
    acf_train_lab l;
    acf_table *test;
    acf_batch *b;
    double best, kept; /* nats per row of test rows with training's masks: the least over all validated weights; those
                        * of the kept weights */
} trial;

/* -log p a row with the averaged weights. */
static double score_test(trial *w) {
    acf_params *ps = acf_net_params(w->l.net);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *live = test_malloc(bytes);
    memcpy(live, ps->value, bytes);
    memcpy(ps->value, ps->ema, bytes);
    acf_tape_begin(w->l.tr->tape, false);
    acf_tensor *logp = acf_net_logp(w->l.tr->tape, acf_net_view(w->l.tr->tape, w->l.net, w->b, NULL));
    assert_int_equal(acf_tape_status(w->l.tr->tape), ACF_OK);
    double sum = 0;
    for (int i = 0; i < TEST; i++) sum -= (double)logp->data[i] / TEST;
    memcpy(ps->value, live, bytes);
    test_free(live);
    return sum;
}

static void compare(void *ctx, const acf_train_progress *p) {
    trial *w = ctx;
    if (!p->validated) return;
    const double now = score_test(w);
    if (p->state->best_step == p->step) w->kept = now;
    w->best = fmin(w->best, now);
}

/* Loss of the kept weights against the best of the same run. */
static double lost(const char *masks, const char *on) {
    trial w = {.best = INFINITY};
    int64_t row[TEST];
    char text[64];
    snprintf(text, sizeof text, "masks=%s", masks);
    acf_train_lab_open(&w.l, 1,
                       (const char *[]){text, on, "steps=400", "valid-every=20", "valid=0.3", "patience=0", "lr=0.02",
                                        "dropout=0", "ema=0.9", "flow=", "likelihood-units=24", "encode=standard",
                                        NULL});
    acf_train_lab_ready(&w.l, acf_train_lab_table(ROWS, WIDE, 0, 0, 3));
    w.test = acf_train_lab_table(TEST, WIDE, 0, 0, 77);
    assert_int_equal(acf_batch_create(TEST, WIDE, &w.b), ACF_OK);
    for (int i = 0; i < TEST; i++) row[i] = i;
    acf_batch_fill(w.l.dev, w.b, w.test, w.l.encoder, NULL, ACF_BATCH_TRAIN, row, TEST);
    acf_masks_draw(w.l.dev, &w.l.tr->set.masks, 99, 0, TEST, WIDE, w.b->id, w.b->b, w.b->m);
    if (acf_trainer_run(w.l.tr, &(acf_train_hooks){compare, &w, NULL}, NULL)) fail_msg("%s", acf_error());
    print_message("%s, %s: kept %.4f nats a row, of step %d; best %.4f\n", masks, on, w.kept,
                  (int)w.l.tr->state.best_step, w.best);
    acf_batch_free(w.b);
    acf_table_free(w.test);
    acf_train_lab_close(&w.l);
    return w.kept - w.best;
}

/* Such a model does not learn single cells given all others: validated on those, other weights look best. */
static void kept_weights_are_the_best_for_training_s_queries(void **state) {
    (void)state;
    static const char *const masks[] = {"marginal:0.5", "joint"};
    for (int k = 0; k < 2; k++) {
        assert_true(lost(masks[k], "valid-on=cells") > 0.05);
        assert_true(lost(masks[k], "valid-on=auto") < 0.02);
    }
}

/* ---- resuming -------------------------------------------------------------------------------------------------- */

static void stop_at(void *ctx, const acf_train_progress *p) {
    volatile sig_atomic_t *stop = ctx;
    if (p->step == 20) *stop = 1;
}

static void run(acf_train_lab *l, bool halfway) {
    volatile sig_atomic_t stop = 0;
    if (acf_trainer_run(l->tr, halfway ? &(acf_train_hooks){stop_at, (void *)(uintptr_t)&stop, &stop} : NULL, NULL))
        fail_msg("%s", acf_error());
}

static void open_run(acf_train_lab *l, int threads, bool second, double changed) {
    acf_train_lab_open(l, threads,
                       (const char *[]){second ? "valid-on=table" : "valid-on=rows", "masks=joint", "steps=40",
                                        "valid-every=7", NULL});
    if (second) {
        l->valid = acf_train_lab_table(50, D, 0, 0, 8);
        ((double *)(uintptr_t)l->valid->x)[7] += changed;
    }
    acf_train_lab_ready(l, acf_train_lab_table(N, D, 0.2, 0, 3));
}

/* Forty steps in one go; or twenty, a file, fresh objects, twenty more. Another second table is refused. */
static void resumed_is_uninterrupted(void **state) {
    (void)state;
    char path[] = "/tmp/acflow-valid-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    for (int second = 0; second < 2; second++) {
        acf_train_lab whole, first, then, other;
        open_run(&whole, 1, second, 0);
        run(&whole, false);
        open_run(&first, 1, second, 0);
        run(&first, true);
        if (acf_checkpoint_save(first.tr, path)) fail_msg("%s", acf_error());
        acf_train_lab_close(&first);
        open_run(&then, 2, second, 0);
        if (acf_checkpoint_load(then.tr, path)) fail_msg("%s", acf_error());
        run(&then, false);
        acf_train_lab_same(&whole, &then);
        assert_memory_equal(&whole.tr->state, &then.tr->state, sizeof whole.tr->state);
        open_run(&other, 1, second, 1);
        assert_int_equal(acf_checkpoint_load(other.tr, path), second ? ACF_EMODEL : ACF_OK);
        acf_train_lab_close(&whole);
        acf_train_lab_close(&then);
        acf_train_lab_close(&other);
    }
    unlink(path);
}

ACF_TESTS(valid, cmocka_unit_test(no_more_rows_are_held_out_than_are_used),
          cmocka_unit_test(a_second_table_leaves_the_first_whole), cmocka_unit_test(held_out_rows_are_not_trained_on),
          cmocka_unit_test(a_second_table_is_not_trained_on), cmocka_unit_test(validation_follows_the_masks),
          cmocka_unit_test(threads_change_no_bit), cmocka_unit_test(kept_weights_are_the_best_for_training_s_queries),
          cmocka_unit_test(resumed_is_uninterrupted))
