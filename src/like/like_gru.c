/* The autoregressive mixture on a GRU: see like.h. */
#include "like/like.h"

#include "ops/mixture.h"
#include "ops/reduce.h"

static acf_status gru_declare(acf_like *k, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &k->size;
    acf_rnn_shape shape = {2 * s->column_embedding, s->context,       s->units, s->gru_layers, s->deep,
                           3 * k->components,       k->normal ? 0 : 1};
    ACF_TRY(acf_rnn_declare(&k->rnn, ps, name, &shape));
    k->head = k->rnn.b2;
    return ACF_OK;
}

static acf_tensor *gru_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_drop drop = acf_pass_drop(c->pass, ACF_SITE_AR);
    acf_tensor *p = acf_rnn_seq(t, &k->rnn, z, acf_cond_known(t, c), c->context, c->u, &drop);
    return acf_sum_subset(t, acf_mixture_logp(t, p, z, k->components, k->lo, k->hi), c->u);
}

static acf_tensor *gru_mean(acf_tape *t, const acf_like *k, const acf_cond *c) {
    return acf_rnn_mean(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, c->u);
}

static acf_tensor *gru_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    return acf_rnn_sample(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, k->lo, k->hi, d, c->u);
}

/* The middle of the i-th of n equal parts of (0, 1). */
static acf_tensor *level(acf_tape *t, int i, int n) { return acf_tensor_const(t, NULL, (i + 0.5) / n, 0, NULL); }

/* The first step of a row does not depend on z: any z will do. */
static void gru_cell_values(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z) {
    acf_tensor *none = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    acf_tensor *p = acf_rnn_seq(t, &k->rnn, none, acf_cond_known(t, c), c->context, c->u, NULL);
    for (int i = 0; i < n; i++) z[i] = acf_mixture_stratum(t, p, level(t, i, n), k->components, k->lo, k->hi);
}

const acf_like_kind acf_like_gru = {.name = "gru",
                                    .declare = gru_declare,
                                    .logp = gru_logp,
                                    .mean = gru_mean,
                                    .sample = gru_sample,
                                    .cell_values = gru_cell_values,
                                    .recurrent = true};
