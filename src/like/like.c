/* Likelihoods of z_u: see like.h. */
#include "like/like.h"

#include "ops/arith.h"
#include "ops/gaussian.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

#include <math.h>

const acf_like_kind *const acf_like_kinds[] = {&acf_like_gru, &acf_like_gaussian, &acf_like_sets, NULL};

/* Means that are the same for all components would stay the same for ever: their gradients are equal. */
#define MEANS_DEVIATION 0.3

acf_status acf_like_fill(const acf_like *k, acf_device *dev) {
    const int64_t K = k->components;
    double square = 0;
    if (!k->normal || !k->head) return ACF_OK;
    acf_real *p = acf_alloc_zero((size_t)(3 * K) * sizeof *p, "a mixture");
    if (!p) return ACF_EMEMORY;
    for (int64_t i = 0; i < K; i++) {
        const double mean = MEANS_DEVIATION * acf_normal_quantile(((double)i + 0.5) / (double)K, false);
        p[K + i] = (acf_real)mean, square += mean * mean / (double)K;
    }
    for (int64_t i = 0; i < K; i++) p[2 * K + i] = (acf_real)(0.5 * log(1 - square));
    acf_status status = acf_device_copy(dev, k->head->data, p, (size_t)(3 * K) * sizeof *p, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(dev);
    acf_release(p);
    return status;
}

/* ---- autoregressive mixture ---------------------------------------------------------------------------------------------- */

static acf_status ar_declare(acf_like *k, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &k->size;
    acf_rnn_shape shape = {2 * s->column_embedding, s->context,       s->units, s->gru_layers, s->deep,
                           3 * k->components,       k->normal ? 0 : 1};
    ACF_TRY(acf_rnn_declare(&k->rnn, ps, name, &shape));
    k->head = k->rnn.b2;
    return ACF_OK;
}

static acf_tensor *ar_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_drop drop = acf_pass_drop(c->pass, ACF_SITE_AR);
    acf_tensor *p = acf_rnn_seq(t, &k->rnn, z, acf_cond_known(t, c), c->context, c->u, &drop);
    return acf_sum_subset(t, acf_mixture_logp(t, p, z, k->components, k->lo, k->hi), c->u);
}

static acf_tensor *ar_mean(acf_tape *t, const acf_like *k, const acf_cond *c) {
    return acf_rnn_mean(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, c->u);
}

static acf_tensor *ar_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    return acf_rnn_sample(t, &k->rnn, acf_cond_known(t, c), c->context, k->components, k->lo, k->hi, d, c->u);
}

/* The middle of the i-th of n equal parts of (0, 1). */
static acf_tensor *level(acf_tape *t, int i, int n) { return acf_tensor_const(t, NULL, (i + 0.5) / n, 0, NULL); }

/* The first step of a row sees no value of it: any z will do. */
static void ar_spread(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z) {
    acf_tensor *none = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    acf_tensor *p = acf_rnn_seq(t, &k->rnn, none, acf_cond_known(t, c), c->context, c->u, NULL);
    for (int i = 0; i < n; i++) z[i] = acf_mixture_stratum(t, p, level(t, i, n), k->components, k->lo, k->hi);
}

const acf_like_kind acf_like_gru = {"gru", ar_declare, ar_logp, ar_mean, ar_sample, ar_spread};

/* ---- one Gaussian --------------------------------------------------------------------------------------------------------- */

static acf_status gaussian_declare(acf_like *k, acf_params *ps, const char *name) {
    k->linear = (acf_flow){.kind = &acf_flow_linear, .size = k->size, .site = ACF_SITE_GAUSSIAN};
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

static void gaussian_spread(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z) {
    for (int i = 0; i < n; i++)
        z[i] = acf_tensor_const(t, c->u, acf_normal_quantile((i + 0.5) / n, false), 1, &c->u->T);
    acf_flow_inverse_alone(t, &k->linear, n, z, c);
}

const acf_like_kind acf_like_gaussian = {"gaussian",    gaussian_declare, gaussian_logp,
                                         gaussian_mean, gaussian_sample,  gaussian_spread};
