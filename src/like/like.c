/* Likelihoods of z_u: see like.h. */
#include "like/like.h"

#include "ops/arith.h"
#include "ops/gaussian.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

const acf_like_kind *const acf_like_kinds[] = {&acf_like_ar, &acf_like_gaussian, &acf_like_set};

/* ---- autoregressive mixture ---------------------------------------------------------------------------------------------- */

static acf_status ar_declare(acf_like *k, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &k->size;
    acf_rnn_shape shape = {2 * s->identity, s->context, s->units, s->gru_layers, s->deep, 3 * k->components, 1};
    return acf_rnn_declare(&k->rnn, ps, name, &shape);
}

static acf_tensor *ar_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_tensor *p = acf_rnn_seq(t, &k->rnn, z, acf_cond_known(t, c), c->context, c->u);
    return acf_sum_subset(t, acf_mixture_logp(t, p, z, k->components, k->lo, k->hi), c->u);
}

static acf_tensor *ar_mean(acf_tape *t, const acf_like *k, const acf_cond *c) {
    return acf_rnn_mean(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, c->u);
}

static acf_tensor *ar_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    return acf_rnn_sample(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, k->lo, k->hi, d, c->u);
}

const acf_like_kind acf_like_ar = {"ar", ar_declare, ar_logp, ar_mean, ar_sample};

/* ---- one Gaussian --------------------------------------------------------------------------------------------------------- */

static acf_status gaussian_declare(acf_like *k, acf_params *ps, const char *name) {
    k->linear = (acf_flow){.kind = &acf_flow_linear, .size = k->size, .site = 32};
    return k->linear.kind->declare(&k->linear, ps, name);
}

static acf_tensor *gaussian_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_tensor *logdet, *e = k->linear.kind->forward(t, &k->linear, z, c, &logdet);
    acf_tensor *zero = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    return acf_add(t, acf_sum_subset(t, acf_gaussian_logp(t, e, zero, zero, -1, 1), c->u), logdet);
}

static acf_tensor *gaussian_mean(acf_tape *t, const acf_like *k, const acf_cond *c) {
    return k->linear.kind->inverse(t, &k->linear, acf_tensor_const(t, c->u, 0, 1, &c->u->T), c, NULL);
}

static acf_tensor *gaussian_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    acf_tensor *zero = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    return k->linear.kind->inverse(t, &k->linear, acf_gaussian_sample(t, zero, zero, -1, 1, d), c, NULL);
}

const acf_like_kind acf_like_gaussian = {"gaussian", gaussian_declare, gaussian_logp, gaussian_mean, gaussian_sample};
