/* Tests of loss.h: the value is the documented mean, its gradient is right, and cells outside the loss are not read. */
#include "train/loss.h"

#include "harness/train_lab.h"

#include <math.h>
#include <string.h>

enum { N = 9, D = 4 };

typedef struct bench {
    acf_train_lab l;
    acf_tape *t;
    acf_batch *batch;
} bench;

/* Rows of all kinds: |u| from 0 to 3, missing cells. */
static void open_bench(bench *b) {
    acf_train_lab_open(&b->l, 1, (const char *[]){"valid=0", NULL});
    acf_train_lab_ready(&b->l, acf_train_lab_table(N, D, 0.2, 0, 3));
    acf_params *ps = acf_net_params(b->l.net); /* away from the initial values, where the flow is the identity */
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random(4, i, -0.2, 0.2);
    assert_int_equal(acf_tape_create(b->l.dev, NULL, &b->t), ACF_OK);
    assert_int_equal(acf_batch_create(N, D, &b->batch), ACF_OK);
    int64_t row[N];
    for (int64_t i = 0; i < N; i++) row[i] = i;
    acf_batch_fill(b->l.dev, b->batch, b->l.table, b->l.encoder, NULL, ACF_BATCH_TRAIN, row, N);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < D; j++) b->batch->b[i * D + j] = b->batch->m[i * D + j] && (i + j) % (i % 4 + 1) == 0;
}

static void close_bench(bench *b) {
    acf_batch_free(b->batch);
    acf_tape_free(b->t);
    acf_train_lab_close(&b->l);
}

static double loss_of(bench *b, acf_loss cfg) {
    acf_tape_begin(b->t, true);
    acf_tensor *loss = acf_loss_make(b->t, b->l.net, b->batch, NULL, &cfg);
    if (acf_tape_status(b->t)) fail_msg("%s", acf_error());
    assert_int_equal(acf_tensor_count(loss), 1);
    return (double)loss->data[0];
}

static void it_is_the_mean_over_rows(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tape_begin(b.t, false);
    acf_view *v = acf_net_view(b.t, b.l.net, b.batch, NULL);
    acf_tensor *logp = acf_net_logp(b.t, v), *error = acf_net_guess_error(b.t, v);
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    double nll[2] = {0}, guess[2] = {0}, rows = 0;
    bool none = false;
    for (int64_t i = 0; i < N; i++) {
        int u = 0;
        for (int64_t j = 0; j < D; j++) u += b.batch->m[i * D + j] && !b.batch->b[i * D + j];
        none |= u == 0;
        if (u == 0) continue;
        rows++;
        nll[0] -= (double)logp->data[i], nll[1] -= (double)logp->data[i] / u;
        guess[0] += (double)error->data[i], guess[1] += (double)error->data[i] / u;
    }
    assert_true(none && rows > 3);
    assert_int_equal(acf_loss_rows(b.batch), (int64_t)rows);
    for (int per = 0; per < 2; per++) {
        double tol = sizeof(acf_real) == 8 ? 1e-12 : 1e-5;
        acf_assert_close(loss_of(&b, (acf_loss){per, 0}), nll[per] / rows, tol, "likelihood");
        acf_assert_close(loss_of(&b, (acf_loss){per, 0.7}), (nll[per] + 0.7 * guess[per]) / rows, tol,
                         "with best guess");
    }
    close_bench(&b);
}

static void gradients_are_right(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) return;
    bench b;
    open_bench(&b);
    acf_params *ps = acf_net_params(b.l.net);
    const acf_loss cfg = {true, 0.7};
    const double h = 1e-6;
    assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
    acf_tape_begin(b.t, true);
    assert_int_equal(acf_tape_backward(b.t, acf_loss_make(b.t, b.l.net, b.batch, NULL, &cfg)), ACF_OK);
    double exact = 0, at[2];
    for (int64_t i = 0; i < ps->total; i++) exact += (double)ps->grad[i] * acf_lab_random(9, i, -1, 1);
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < ps->total; i++)
            ps->value[i] += (acf_real)((s ? -2 * h : h) * acf_lab_random(9, i, -1, 1));
        at[s] = loss_of(&b, cfg);
    }
    acf_assert_close(exact, (at[0] - at[1]) / (2 * h), 1e-6, "along a direction");
    close_bench(&b);
}

/* Term by term, each on the tape alone: the same loss, the same gradients, less memory. */
static void term_by_term_is_the_same(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_params *ps = acf_net_params(b.l.net);
    const double tol = sizeof(acf_real) == 8 ? 1e-12 : 1e-4;
    for (int k = 0; k < 2; k++) {
        const acf_loss cfg = {true, k ? 0.7 : 0};
        double loss = NAN;
        assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
        acf_tape_begin(b.t, true);
        acf_tensor *whole = acf_loss_make(b.t, b.l.net, b.batch, NULL, &cfg);
        assert_int_equal(acf_tape_backward(b.t, whole), ACF_OK);
        double expected = (double)whole->data[0];
        size_t both = acf_arena_used(b.t->mem);
        memcpy(ps->m, ps->grad, (size_t)ps->total * sizeof *ps->m); /* free memory to keep them */
        assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
        assert_int_equal(acf_loss_backward(b.t, b.l.net, b.batch, NULL, &cfg, &loss), ACF_OK);
        acf_assert_close(loss, expected, tol, "loss");
        for (int64_t i = 0; i < ps->total; i++)
            acf_assert_close((double)ps->grad[i], (double)ps->m[i], tol, "gradient");
        assert_true(k == 0 || acf_arena_used(b.t->mem) < both);
    }
    close_bench(&b);
}

/* Neither missing cells nor those left out by a marginal mask are read. */
static void what_is_missing_is_not_read(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    double loss = loss_of(&b, (acf_loss){false, 0.5});
    static const double poison[] = {NAN, 1e30};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < N * D; i++)
            if (!b.batch->m[i]) b.batch->x[i] = (acf_real)poison[k];
        assert_true(loss_of(&b, (acf_loss){false, 0.5}) == loss);
    }
    close_bench(&b);
}

static void nothing_modelled_is_zero(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    memset(b.batch->m, 0, N * D);
    memset(b.batch->b, 0, N * D);
    assert_true(loss_of(&b, (acf_loss){false, 1}) == 0);
    assert_int_equal(acf_loss_rows(b.batch), 0);
    double loss = NAN;
    assert_int_equal(acf_loss_backward(b.t, b.l.net, b.batch, NULL, &(acf_loss){false, 1}, &loss), ACF_OK);
    assert_true(loss == 0);
    b.batch->N = 0;
    assert_true(loss_of(&b, (acf_loss){true, 1}) == 0);
    close_bench(&b);
}

ACF_TESTS(loss, cmocka_unit_test(it_is_the_mean_over_rows), cmocka_unit_test(gradients_are_right),
          cmocka_unit_test(term_by_term_is_the_same), cmocka_unit_test(what_is_missing_is_not_read),
          cmocka_unit_test(nothing_modelled_is_zero))
