/* Setup for tests of table models: see net_lab.h. */
#include "harness/net_lab.h"

#include "model/config.h"

#include <string.h>

static const char *const standard[] = {"mlp-width=9",
                                       "coupling-units=8",
                                       "likelihood-units=8",
                                       "components=4",
                                       "column-embedding=3",
                                       "context-width=5",
                                       "gmm=2",
                                       NULL};

void acf_lab_set(acf_options *o, const char *const *list) {
    for (; list && *list; list++) {
        char name[64];
        const char *value = strchr(*list, '=');
        assert_non_null(value);
        assert_in_range(value - *list, 1, 63);
        memcpy(name, *list, (size_t)(value - *list));
        name[value - *list] = 0;
        if (acf_options_set_text(o, name, value + 1)) fail_msg("%s", acf_error());
    }
}

static void fill_batch(acf_batch *b, int64_t N, int64_t D) {
    b->N = N;
    for (int64_t i = 0; i < N * D; i++) {
        b->x[i] = (acf_real)acf_lab_random(3, i, -1.5, 1.5);
        b->m[i] = acf_lab_random(4, i, 0, 1) < 0.8;
        b->b[i] = b->m[i] && acf_lab_random(5, i, 0, 1) < 0.5;
    }
    for (int64_t i = 0; i < N; i++) b->id[i] = 1000 + (uint64_t)i;
}

void acf_net_lab_open(acf_net_lab *b, const char *const *settings, int64_t N, int64_t D, const acf_column *column) {
    acf_options *o;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    acf_lab_set(o, standard);
    acf_lab_set(o, settings);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_tape_create(b->dev, NULL, &b->t), ACF_OK);
    if (acf_net_create(b->dev, column, D, o, 5, false, &b->net)) fail_msg("%s", acf_error());
    assert_int_equal(acf_batch_create(N, D, &b->batch), ACF_OK);
    fill_batch(b->batch, N, D);
    acf_params *ps = acf_net_params(b->net);
    for (int k = 0; k < ps->n; k++)
        for (int64_t i = 0; i < acf_tensor_count(&ps->list[k]->t); i++)
            ps->list[k]->t.data[i] += (acf_real)acf_lab_random(60 + (uint64_t)k, i, -0.25, 0.25);
    acf_options_free(o);
}

void acf_net_lab_close(acf_net_lab *b) {
    acf_batch_free(b->batch);
    acf_net_free(b->net);
    acf_tape_free(b->t);
    acf_device_close(b->dev);
}

const acf_real *acf_net_lab_logp(acf_net_lab *b, const acf_pass *pass, bool record) {
    acf_tape_begin(b->t, record);
    acf_tensor *lp = acf_net_logp(b->t, acf_net_view(b->t, b->net, b->batch, pass));
    if (acf_tape_check(b->t, lp)) fail_msg("%s", acf_error());
    return lp->data;
}
