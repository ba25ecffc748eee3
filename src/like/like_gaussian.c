/* One Gaussian for all of z_u: see like.h. */
#include "like/like.h"

#include "ops/arith.h"
#include "ops/gaussian.h"
#include "ops/reduce.h"

static acf_status gaussian_declare(acf_like *k, acf_params *ps, const char *name) {
    k->flow = (acf_flow){.kind = &acf_flow_linear, .size = k->size, .site = ACF_SITE_GAUSSIAN};
    return k->flow.kind->declare(&k->flow, ps, name);
}

static acf_tensor *gaussian_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_tensor *logdet, *e = k->flow.kind->forward(t, &k->flow, z, c, &logdet);
    acf_tensor *zero = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    return acf_add(t, acf_sum_subset(t, acf_gaussian_logp(t, e, zero, zero, -1, 1), c->u), logdet);
}

static acf_tensor *gaussian_mean(acf_tape *t, const acf_like *k, const acf_cond *c) {
    return k->flow.kind->inverse(t, &k->flow, acf_tensor_const(t, c->u, 0, 1, &c->u->T), c, NULL);
}

static acf_tensor *gaussian_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    acf_tensor *zero = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    return k->flow.kind->inverse(t, &k->flow, acf_gaussian_sample(t, zero, zero, -1, 1, d), c, NULL);
}

static void gaussian_cell_values(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z) {
    for (int i = 0; i < n; i++)
        z[i] = acf_tensor_const(t, c->u, acf_normal_quantile((i + 0.5) / n, false), 1, &c->u->T);
    acf_flow_inverse_alone(t, &k->flow, n, z, c);
}

const acf_like_kind acf_like_gaussian = {.name = "gaussian",
                                         .declare = gaussian_declare,
                                         .logp = gaussian_logp,
                                         .mean = gaussian_mean,
                                         .sample = gaussian_sample,
                                         .cell_values = gaussian_cell_values,
                                         .recurrent = true};
