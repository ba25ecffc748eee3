/* Does training reach the truth? A Gaussian with known conditionals: the likelihood of new rows under a small trained
 * network is close to the true one, for random masks, for the joint and for marginals, from complete and incomplete
 * rows. Small and short: figures of larger networks are in docs/RESULTS.md. Float only, as training is. */
#include "train/trainer.h"

#include "harness/train_lab.h"

#include <math.h>
#include <string.h>

enum { D = 4, TRAIN = 20000, TEST = 2000 };

/* log p of the marked columns of a row, by the Cholesky factor of their covariance. */
static double log_normal(const double *x, const uint8_t *in) {
    double s[D][D] = {{0}}, r[D], sum = 0;
    int col[D], n = 0;
    for (int j = 0; j < D; j++)
        if (in[j]) col[n++] = j;
    for (int a = 0; a < n; a++) {
        r[a] = x[col[a]] - 10 * col[a];
        for (int b = 0; b <= a; b++)
            for (int k = 0; k < D; k++) s[a][b] += acf_train_lab_factor(col[a], k) * acf_train_lab_factor(col[b], k);
    }
    for (int a = 0; a < n; a++) { /* s = L, r = L^-1 r in place, row by row */
        for (int b = 0; b <= a; b++) {
            for (int k = 0; k < b; k++) s[a][b] -= s[a][k] * s[b][k];
            s[a][b] = b < a ? s[a][b] / s[b][b] : sqrt(s[a][a]);
        }
        for (int b = 0; b < a; b++) r[a] -= s[a][b] * r[b];
        r[a] /= s[a][a];
        sum -= 0.5 * r[a] * r[a] + log(s[a][a]) + 0.5 * log(2 * 3.14159265358979323846);
    }
    return sum;
}

/* Nats per modelled column that the network loses to the truth, log p(x_u, x_o) - log p(x_o), on new rows with these
 * masks. */
static double gap(acf_train_lab *l, const char *masks) {
    static double x[TEST * D];
    acf_masks kind;
    acf_table *t = NULL;
    acf_batch *b = NULL;
    acf_tape *tape = l->tr->tape;
    int64_t row[TEST];
    acf_train_lab_fill(x, TEST, D, 77);
    assert_int_equal(acf_masks_parse(masks, &kind), ACF_OK);
    assert_int_equal(acf_table_make(x, NULL, TEST, D, NULL, &t), ACF_OK);
    assert_int_equal(acf_batch_create(TEST, D, &b), ACF_OK);
    for (int64_t i = 0; i < TEST; i++) row[i] = i;
    acf_batch_fill(l->dev, b, t, l->encoder, NULL, ACF_BATCH_TRAIN, row, TEST);
    acf_masks_draw(l->dev, &kind, 99, 0, TEST, D, b->id, b->b, b->m);
    acf_tape_begin(tape, false);
    acf_tensor *logp = acf_net_logp(tape, acf_net_view(tape, l->net, b, NULL));
    assert_int_equal(acf_tape_check(tape, logp), ACF_OK);
    double sum = 0, columns = 0;
    for (int64_t i = 0; i < TEST; i++) {
        const uint8_t *m = b->m + i * D, *given = b->b + i * D;
        sum += log_normal(x + i * D, m) - log_normal(x + i * D, given) - (double)logp->data[i];
        for (int j = 0; j < D; j++)
            if (m[j] && !given[j]) columns++, sum -= l->encoder->log_jacobian[j];
    }
    acf_batch_free(b);
    acf_table_free(t);
    return sum / columns;
}

static void learn(double missing, double at_first, double most, const char *const *settings) {
    acf_train_lab l;
    if (sizeof(acf_real) == 8) acf_skip("float only");
    acf_train_lab_open(&l, 1, settings);
    acf_train_lab_ready(&l, acf_train_lab_table(TRAIN, D, missing, 0, 3));
    double before = gap(&l, "joint");
    if (acf_trainer_run(l.tr, NULL, NULL) || acf_trainer_finish(l.tr)) fail_msg("%s", acf_error());
    static const char *const masks[] = {"bernoulli:0.5", "uniform", "joint", "marginal:0.5"};
    assert_true(at_first < 0 ? before < most : before > at_first); /* below 0: it is good before training */
    for (int k = 0; k < 4; k++) {
        double g = gap(&l, masks[k]);
        print_message("%s: %.4f nats per column above the truth (%.2f before training)\n", masks[k], g, before);
        assert_true(g < most && g > -0.01);
    }
    acf_train_lab_close(&l);
}

#define COMMON                                                                                                         \
    "batch=128", "steps=3000", "warmup=50", "lr=0.01", "valid=0.02", "valid-every=250", "dropout=0", "weight-decay=0", \
        "ema=0.99", "masks=uniform + joint*0.3 + marginal:0.5*0.3"

static void complete_rows_teach_the_conditionals(void **state) {
    (void)state;
    learn(0, 0.2, 0.01,
          (const char *[]){COMMON, "flow=linear leaky rnn", "likelihood=gru", "mlp-width=24", "likelihood-units=24",
                           NULL});
}

/* Rows with three observed cells and a fourth to predict are rare here: masks that leave one out use them best. Eight
 * thousand steps of 256 rows with twice the widths reach 0.013, too slow for a test. */
static void half_of_the_cells_do_too(void **state) {
    (void)state;
    learn(0.5, 0.2, 0.04,
          (const char *[]){COMMON, "masks=uniform + bernoulli:0.9 + joint*0.3 + marginal:0.5*0.3", "likelihood=gru",
                           "mlp-width=24", "likelihood-units=24", NULL});
}

/* The Gaussian mixture fits a Gaussian from the start, as well as the rows allow; the networks must not spoil it. */
static void the_mixture_fits_a_gaussian(void **state) {
    (void)state;
    learn(0.5, -1, 0.012, (const char *[]){COMMON, "steps=300", "gmm=2", "mlp-width=24", "likelihood-units=24", NULL});
}

static void so_does_a_network_of_deep_sets(void **state) {
    (void)state;
    learn(0.5, 0.2, 0.03,
          (const char *[]){COMMON, "likelihood=sets", "flow=", "likelihood-units=32", "likelihood-layers=1", NULL});
}

ACF_TESTS(science, cmocka_unit_test(the_mixture_fits_a_gaussian),
          cmocka_unit_test(complete_rows_teach_the_conditionals), cmocka_unit_test(half_of_the_cells_do_too),
          cmocka_unit_test(so_does_a_network_of_deep_sets))
