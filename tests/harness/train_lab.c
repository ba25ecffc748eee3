/* A bench for training: see train_lab.h. */
#include "harness/train_lab.h"

#include "harness/net_lab.h"
#include "train/valid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const standard[] = {"flow=linear leaky rnn",
                                       "mlp-width=12",
                                       "mlp-layers=1",
                                       "coupling-units=8",
                                       "likelihood-units=10",
                                       "likelihood-layers=1",
                                       "components=3",
                                       "column-embedding=3",
                                       "batch=32",
                                       "steps=30",
                                       "warmup=5",
                                       "lr=0.01",
                                       "valid-every=10",
                                       "gmm=0",
                                       "valid-on=cells",
                                       NULL};

void acf_train_lab_open(acf_train_lab *l, int threads, const char *const *settings) {
    *l = (acf_train_lab){0};
    assert_int_equal(acf_device_open_cpu(threads, &l->dev), ACF_OK);
    assert_int_equal(acf_config_create(&l->o), ACF_OK);
    acf_lab_set(l->o, standard);
    acf_lab_set(l->o, settings);
    assert_int_equal(acf_config_finish(l->o), ACF_OK);
}

void acf_train_lab_ready(acf_train_lab *l, acf_table *table) {
    acf_train_settings set;
    l->table = table;
    if (acf_train_settings_read(l->o, &set) || acf_valid_split(table, l->valid, &set, &l->split))
        fail_msg("%s", acf_error());
    const acf_rows *valid = l->split.valid.n ? &l->split.valid : NULL;
    if (acf_train_prepare(table, NULL, l->o, &l->hold, &l->encoder) ||
        acf_net_create(l->dev, table->column, table->D, l->o, 5, true, &l->net) ||
        acf_trainer_create(l->net, &(acf_train_data){table, &l->split.train, l->encoder, l->hold, l->valid, valid},
                           l->o, &l->tr))
        fail_msg("%s", acf_error());
}

void acf_train_lab_close(acf_train_lab *l) {
    acf_trainer_free(l->tr);
    acf_net_free(l->net);
    acf_encoder_free(l->encoder);
    acf_holdout_free(l->hold);
    acf_table_free(l->table);
    acf_table_free(l->valid);
    acf_options_free(l->o);
    acf_device_close(l->dev);
}

double acf_train_lab_factor(int64_t j, int64_t k) {
    return k > j ? 0 : k == j ? 0.5 + 0.1 * (double)(j % 3) : 0.8 * cos((double)(3 * j + 5 * k));
}

void acf_train_lab_fill(double *x, int64_t N, int64_t D, uint64_t seed) {
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < D; j++) {
            x[i * D + j] = 10 * (double)j;
            for (int64_t k = 0; k <= j; k++)
                x[i * D + j] +=
                    acf_train_lab_factor(j, k) *
                    acf_rng_normal((acf_rng_counter){
                        .seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)k});
        }
}

acf_table *acf_train_lab_table(int64_t N, int64_t D, double missing, double hidden, uint64_t seed) {
    acf_table *t = NULL;
    double *x = malloc((size_t)(N * D + 1) * sizeof *x);
    uint8_t *m = malloc((size_t)(N * D + 1));
    assert_non_null(x);
    assert_non_null(m);
    acf_train_lab_fill(x, N, D, seed);
    for (int64_t i = 0; i < N * D; i++) {
        m[i] = acf_rng_uniform((acf_rng_counter){.seed = seed + 1, .row = (uint64_t)i, .stream = ACF_STREAM_TEST}) >=
               missing;
        if (!m[i]) x[i] = hidden;
    }
    assert_int_equal(acf_table_make(x, m, N, D, NULL, &t), ACF_OK);
    free(x);
    free(m);
    return t;
}

void acf_train_lab_same(const acf_train_lab *a, const acf_train_lab *b) {
    const acf_params *p = acf_net_params(a->net), *q = acf_net_params(b->net);
    assert_int_equal(p->total, q->total);
    size_t bytes = (size_t)p->total * sizeof(acf_real);
    assert_memory_equal(p->value, q->value, bytes);
    assert_memory_equal(p->m, q->m, bytes);
    assert_memory_equal(p->v, q->v, bytes);
    assert_memory_equal(p->ema, q->ema, bytes);
}
