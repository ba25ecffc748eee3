/* A network on the set of known cells: see deep_sets.h. */
#include "nn/deep_sets.h"

#include "ops/arith.h"
#include "ops/embedding.h"

#include <stdio.h>

/* A matrix, or with cols 0 a bias of zeros; NULL after a failure, which *status keeps. */
static acf_param *declare_scaled(acf_params *ps, const char *name, const char *part, double scale, int64_t rows,
                                 int64_t cols, acf_status *status) {
    if (*status) return NULL;
    acf_param *p = acf_declare(ps, name, part, cols ? ACF_INIT_UNIFORM : ACF_INIT_CONST, cols ? scale : 0, cols ? 2 : 1,
                               (int64_t[]){rows, cols});
    if (!p) *status = acf_error_status();
    return p;
}

static acf_param *declare(acf_params *ps, const char *name, const char *part, int64_t rows, int64_t cols,
                          acf_status *status) {
    return declare_scaled(ps, name, part, 1, rows, cols, status);
}

acf_status acf_deep_sets_declare(acf_deep_sets *net, acf_params *ps, const char *name, const acf_deep_sets_shape *s,
                                 uint32_t site) {
    if (s->blocks < 1 || s->blocks > ACF_DEEP_SETS_BLOCKS)
        return acf_fail(ACF_EUSAGE, "%s: %d blocks; expected 1 to %d", name, s->blocks, ACF_DEEP_SETS_BLOCKS);
    acf_status status = ACF_OK;
    *net = (acf_deep_sets){.blocks = s->blocks, .site = site};
    net->wc = declare(ps, name, "wc", s->units, s->context, &status);
    net->wi = s->column_embedding ? declare(ps, name, "wi", s->units, s->column_embedding, &status) : NULL;
    net->b = declare(ps, name, "b", s->units, 0, &status);
    for (int l = 0; l < s->blocks; l++) {
        char block[96];
        snprintf(block, sizeof block, "%s.%d", name, l);
        net->block[l].w1 = declare(ps, block, "w1", s->units, s->units, &status);
        net->block[l].b1 = declare(ps, block, "b1", s->units, 0, &status);
        net->block[l].w2 = declare(ps, block, "w2", s->units, s->units, &status);
        net->block[l].b2 = declare(ps, block, "b2", s->units, 0, &status);
    }
    net->w = declare_scaled(ps, name, "head.w", s->out_scale, s->out, s->units, &status);
    net->bias = declare(ps, name, "head.b", s->out, 0, &status);
    return status;
}

acf_deep_sets_run acf_deep_sets_begin(acf_tape *t, const acf_deep_sets *net, acf_tensor *context, acf_tensor *columns,
                                      bool mirrored, const acf_subset *u, const acf_pass *pass) {
    acf_deep_sets_run r = {.net = net, .u = u, .pass = pass};
    r.column = acf_prefix_sum_columns(t, u, mirrored);
    r.base = acf_linear(t, context, acf_p(net->wc), acf_p(net->b), ACF_IDENTITY);
    r.here = net->wi ? acf_linear(t, columns, acf_p(net->wi), NULL, ACF_IDENTITY) : NULL;
    return r;
}

/* From the sums to the last hidden layer. */
static acf_tensor *blocks(acf_tape *t, const acf_deep_sets *net, acf_tensor *h, const acf_pass *pass) {
    for (int l = 0; l < net->blocks; l++) {
        const acf_deep_sets_block *w = &net->block[l];
        acf_tensor *x = acf_linear(t, acf_act(t, ACF_RELU, h), acf_p(w->w1), acf_p(w->b1), ACF_RELU);
        x = acf_pass_dropout(t, pass, x, net->site + (uint32_t)l);
        h = acf_add(t, h, acf_linear(t, x, acf_p(w->w2), acf_p(w->b2), ACF_IDENTITY));
    }
    return acf_act(t, ACF_RELU, h);
}

acf_tensor *acf_deep_sets_all(acf_tape *t, const acf_deep_sets_run *r, acf_tensor *v, const int32_t *slot) {
    return blocks(t, r->net, acf_prefix_sum(t, r->base, r->here, v, &r->terms, slot, r->column, r->u), r->pass);
}

void acf_deep_sets_start(acf_tape *t, acf_deep_sets_run *r) {
    r->steps = acf_tape_steps(t, r->u);
    if (!t->failure.status) r->sums = acf_gather(t, r->base, r->u->row, r->steps.active[0], 0);
}

/* Keeps the sums of the step for the next one: as they are while recording, else in a copy that no rewind releases. */
static acf_tensor *advance(acf_tape *t, acf_deep_sets_run *r, int64_t n, acf_tensor *v, const int32_t *slot) {
    acf_tensor *sums = acf_prefix_sum_step(t, r->sums, v, &r->terms, slot, n);
    if (t->failure.status) return sums;
    if (t->record) {
        r->sums = sums;
    } else {
        r->sums->dim[0] = n;
        size_t bytes = (size_t)acf_tensor_count(sums) * sizeof(acf_real);
        if (acf_device_copy(t->dev, r->sums->data, sums->data, bytes, ACF_ON_DEVICE)) acf_tape_fail(t, NULL);
    }
    return sums;
}

acf_tensor *acf_deep_sets_step(acf_tape *t, acf_deep_sets_run *r, int64_t step, acf_tensor *v, const int32_t *slot) {
    if (t->failure.status) return &t->empty;
    int64_t n = r->steps.active[step];
    acf_tensor *a = step ? advance(t, r, n, v, slot) : r->sums;
    if (r->here) a = acf_add(t, a, acf_embedding(t, r->here, r->column + r->steps.first[step], n, NULL));
    return blocks(t, r->net, a, NULL);
}

acf_tensor *acf_deep_sets_out(acf_tape *t, const acf_deep_sets *net, acf_tensor *h) {
    return acf_linear(t, h, acf_p(net->w), acf_p(net->bias), ACF_IDENTITY);
}
