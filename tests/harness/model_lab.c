/* Setup for tests of flows, likelihoods and models: see model_lab.h. */
#include "harness/model_lab.h"

#include <math.h>
#include <stdlib.h>

acf_flow_sizes acf_model_lab_sizes(int64_t D, int64_t column_embedding) {
    return (acf_flow_sizes){.D = D,
                            .context = 5,
                            .column_embedding = column_embedding,
                            .width = 7,
                            .hidden = 2,
                            .units = 6,
                            .gru_layers = 2,
                            .bound = 1.5};
}

void acf_model_lab_open(acf_model_lab *m, int64_t N, acf_lab_mask mask, const acf_flow_sizes *s, uint64_t seed) {
    *m = (acf_model_lab){0};
    acf_lab_open(&m->l, 2, N, s->D, mask, seed);
    assert_int_equal(acf_params_create(m->l.dev, &m->ps), ACF_OK);
    if (s->column_embedding) {
        m->columns = acf_param_add(m->ps, "columns", ACF_INIT_NORMAL, 1, 2, (int64_t[]){s->D, s->column_embedding});
        assert_non_null(m->columns);
    }
    m->context = calloc((size_t)(N * s->context + 1), sizeof *m->context);
    assert_non_null(m->context);
    for (int64_t i = 0; i < N * s->context; i++) m->context[i] = (acf_real)acf_lab_random(seed + 5, i, -1, 1);
}

void acf_model_lab_ready(acf_model_lab *m, double spread) {
    assert_int_equal(acf_params_build(m->ps, 3, true), ACF_OK);
    for (int k = 0; k < m->ps->n; k++) {
        acf_param *p = m->ps->list[k];
        for (int64_t i = 0; i < acf_tensor_count(&p->t); i++)
            p->t.data[i] += (acf_real)acf_lab_random(m->l.seed + 90 + (uint64_t)k, i, -spread, spread);
    }
}

void acf_model_lab_close(acf_model_lab *m) {
    free(m->context);
    acf_params_free(m->ps);
    acf_lab_close(&m->l);
}

acf_cond acf_model_lab_begin(acf_model_lab *m, bool record, const acf_flow_sizes *s) {
    acf_lab_begin(&m->l, record);
    acf_tensor *context = acf_tensor_input(m->l.t, m->context, 2, (int64_t[]){m->l.N, s->context});
    return (acf_cond){.context = context, .u = m->l.u, .columns = acf_p(m->columns)};
}

static double direction(int64_t i) { return acf_lab_random(424242, i, -1, 1); }

static double loss_at(acf_model_lab *m, acf_tensor *(*loss)(acf_model_lab *, void *), void *ctx, const acf_real *from,
                      double step) {
    for (int64_t i = 0; i < m->ps->total; i++) m->ps->value[i] = from[i] + (acf_real)(step * direction(i));
    acf_tensor *y = loss(m, ctx);
    assert_int_equal(acf_tape_status(m->l.t), ACF_OK);
    return (double)y->data[0];
}

void acf_model_lab_check_gradient(acf_model_lab *m, acf_tensor *(*loss)(acf_model_lab *, void *), void *ctx) {
    if (sizeof(acf_real) != 8) return;
    const double h = 1e-6; /* small: a relu with its kink in between would spoil the difference */
    size_t bytes = (size_t)m->ps->total * sizeof(acf_real);
    acf_real *from = malloc(bytes);
    assert_non_null(from);
    for (int64_t i = 0; i < m->ps->total; i++) from[i] = m->ps->value[i];
    assert_int_equal(acf_params_zero_grad(m->ps), ACF_OK);
    if (acf_tape_backward(m->l.t, loss(m, ctx))) fail_msg("%s", acf_error());
    double exact = 0;
    for (int64_t i = 0; i < m->ps->total; i++) exact += (double)m->ps->grad[i] * direction(i);
    double numeric = (loss_at(m, loss, ctx, from, -2 * h) - 8 * loss_at(m, loss, ctx, from, -h) +
                      8 * loss_at(m, loss, ctx, from, h) - loss_at(m, loss, ctx, from, 2 * h)) /
                     (12 * h);
    for (int64_t i = 0; i < m->ps->total; i++) m->ps->value[i] = from[i];
    free(from);
    if (fabs(exact - numeric) > 1e-6 * fmax(fabs(exact), 1))
        fail_msg("along a random direction the loss changes by %.12g, its gradients say %.12g", numeric, exact);
}
