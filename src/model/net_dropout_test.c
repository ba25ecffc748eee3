/* Dropout in a whole model: the mask depends on the row, and which networks it affects. */
#include "harness/net_lab.h"

#include <string.h>

/* log p of the batch as in training. */
static void trained_logp(acf_net_lab *b, const acf_pass *pass, bool record, acf_real *out) {
    memcpy(out, acf_net_lab_logp(b, pass, record), (size_t)b->batch->N * sizeof *out);
}

static void swap_rows(acf_batch *b, int64_t i, int64_t k) {
    for (int64_t j = 0; j < b->D; j++) {
        int64_t p = i * b->D + j, q = k * b->D + j;
        acf_real x = b->x[p];
        uint8_t m = b->m[p], given = b->b[p];
        b->x[p] = b->x[q], b->m[p] = b->m[q], b->b[p] = b->b[q];
        b->x[q] = x, b->m[q] = m, b->b[q] = given;
    }
    uint64_t id = b->id[i];
    b->id[i] = b->id[k], b->id[k] = id;
}

/* The dropout mask belongs to the row: the batch in another order has the same log p (to rounding), in MLPs and GRUs
 * alike. */
static void dropout_belongs_to_its_row(void **state) {
    (void)state;
    enum { N = 40 };
    acf_net_lab b;
    const acf_pass pass = {.dropout = 0.4, .seed = 3, .step = 11};
    acf_real there[N], turned[N], whole[N];
    acf_net_lab_open(&b, (const char *[]){"flow=linear rnn coupling rnn-shift", NULL}, N, 5, NULL);
    trained_logp(&b, &pass, true, there);
    trained_logp(&b, NULL, true, whole);
    for (int64_t i = 0; i < N / 2; i++) swap_rows(b.batch, i, N - 1 - i);
    trained_logp(&b, &pass, true, turned);
    int64_t same = 0;
    for (int64_t i = 0; i < N; i++) {
        acf_assert_close((double)turned[N - 1 - i], (double)there[i], 2000 * (double)ACF_REAL_EPS,
                         "a row at another place");
        same += there[i] == whole[i];
    }
    assert_true(same < N / 8); /* rows with nothing to model */
    acf_net_lab_close(&b);
}

/* Models whose only networks are recurrent, in the likelihood and in a coupling. They have dropout in training, with
 * another mask each step, but not in queries and not in the chained means of the best guess. */
static void recurrent_networks_have_dropout(void **state) {
    (void)state;
    enum { N = 60 };
    static const char *const settings[2][6] = {
        {"flow=", "likelihood=gru", "context-width=0", NULL},
        {"flow=rnn", "likelihood=gaussian", "mlp-layers=0", "context-width=0", NULL}};
    for (int k = 0; k < 2; k++) {
        acf_net_lab b;
        acf_real whole[N], step[2][N], target[N];
        acf_net_lab_open(&b, settings[k], N, 5, NULL);
        trained_logp(&b, NULL, true, whole);
        for (uint32_t s = 0; s < 2; s++)
            trained_logp(&b, &(acf_pass){.dropout = 0.5, .seed = 3, .step = s}, true, step[s]);
        trained_logp(&b, &(acf_pass){.dropout = 0.5, .seed = 3}, false, target);
        assert_memory_equal(target, whole, sizeof whole);
        int64_t same = 0;
        for (int64_t i = 0; i < N; i++) same += step[0][i] == whole[i] || step[0][i] == step[1][i];
        assert_true(same < N / 8);
        acf_real error[2][N];
        for (int on = 0; on < 2; on++) {
            acf_tape_begin(b.t, true);
            acf_view *v = acf_net_view(b.t, b.net, b.batch, on ? &(acf_pass){.dropout = 0.5, .seed = 3} : NULL);
            acf_tensor *e = acf_net_guess_error(b.t, v);
            assert_int_equal(acf_tape_status(b.t), ACF_OK);
            memcpy(error[on], e->data, sizeof error[on]);
        }
        assert_memory_equal(error[0], error[1], sizeof error[0]);
        acf_net_lab_close(&b);
    }
}

ACF_TESTS(net_dropout, cmocka_unit_test(dropout_belongs_to_its_row), cmocka_unit_test(recurrent_networks_have_dropout))
