/* Transformations of values: leaky ReLU, RNN coupling, affine coupling, affine, reverse. See flow.h. */
#include "flow/flow.h"
#include "ops/affine.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/leaky.h"

#include <stdio.h>

/* ---- leaky ReLU: one learned slope ------------------------------------------------------------------------------------- */

#define LEAKY_START 2.0 /* slope sigmoid(2) = 0.88 */

static acf_status leaky_declare(acf_flow *f, acf_params *ps, const char *name) {
    f->base = acf_declare(ps, name, "a", ACF_INIT_CONST, LEAKY_START, 0, NULL);
    return f->base ? ACF_OK : acf_error_status();
}

static acf_tensor *leaky_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                 acf_tensor **logdet) {
    return acf_leaky_forward(t, x, acf_p(f->base), c->u, logdet);
}

static acf_tensor *leaky_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                 acf_tensor **logdet) {
    return acf_leaky_inverse(t, z, acf_p(f->base), c->u, logdet);
}

const acf_flow_kind acf_flow_leaky = {"leaky", leaky_declare, leaky_forward, leaky_inverse, false};

/* ---- RNN coupling ------------------------------------------------------------------------------------------------------ */

static acf_status rnn_declare_with(acf_flow *f, acf_params *ps, const char *name, int64_t out) {
    const acf_flow_sizes *s = &f->size;
    acf_rnn_shape shape = {2 * s->column_embedding, s->context, s->units, s->gru_layers, s->deep, out, 0.01};
    return acf_rnn_declare(&f->rnn, ps, name, &shape);
}

static acf_status rnn_declare(acf_flow *f, acf_params *ps, const char *name) {
    return rnn_declare_with(f, ps, name, 2);
}
static acf_status shift_declare(acf_flow *f, acf_params *ps, const char *name) {
    return rnn_declare_with(f, ps, name, 1);
}

static acf_tensor *rnn_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet) {
    acf_drop drop = acf_pass_drop(c->pass, f->site);
    acf_tensor *st = acf_rnn_seq(t, &f->rnn, x, acf_cond_known(t, c), c->context, c->u, &drop);
    return acf_affine_forward(t, x, st, f->size.bound, c->u, logdet);
}

/* The loop gives x; the log-determinant is that of the way there, run over the x just found. Neither has dropout. */
static acf_tensor *rnn_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c, acf_tensor **logdet) {
    acf_tensor *known = acf_cond_known(t, c);
    acf_tensor *x = acf_rnn_inverse(t, &f->rnn, z, known, c->context, f->size.bound, c->u), *there;
    if (logdet) {
        acf_affine_forward(t, x, acf_rnn_seq(t, &f->rnn, x, known, c->context, c->u, NULL), f->size.bound, c->u,
                           &there);
        *logdet = acf_scale(t, -1, there);
    }
    return x;
}

const acf_flow_kind acf_flow_rnn = {"rnn", rnn_declare, rnn_forward, rnn_inverse, true};
const acf_flow_kind acf_flow_rnn_shift = {"rnn-shift", shift_declare, rnn_forward, rnn_inverse, true};

/* ---- affine: scale and shift from what is observed ------------------------------------------------------------------------ */

static acf_status affine_declare(acf_flow *f, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &f->size;
    acf_mlp_shape shape = {s->context, s->width, 2 * s->D, s->hidden, ACF_RELU, 0};
    return acf_mlp_declare(&f->net[0], ps, name, &shape, f->site);
}

/* (T,2): scale and shift of each element from a network's (N,2D), the scales of all columns before their shifts. */
static acf_tensor *per_element(acf_tape *t, acf_tensor *both, int64_t D, const acf_subset *u) {
    acf_tensor *raw = acf_gather_cells(t, acf_slice(t, both, 0, D), u),
               *shift = acf_gather_cells(t, acf_slice(t, both, D, D), u);
    return acf_concat(t, 2, (acf_tensor *[]){raw, shift});
}

static acf_tensor *affine_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *st = per_element(t, acf_mlp_run(t, &f->net[0], c->context, c->pass), f->size.D, c->u);
    return acf_affine_forward(t, x, st, f->size.bound, c->u, logdet);
}

static acf_tensor *affine_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *st = per_element(t, acf_mlp_run(t, &f->net[0], c->context, c->pass), f->size.D, c->u);
    return acf_affine_inverse(t, z, st, f->size.bound, c->u, logdet);
}

const acf_flow_kind acf_flow_affine = {"affine", affine_declare, affine_forward, affine_inverse, true};

/* ---- affine coupling: half of the values from the other half ------------------------------------------------------------- */

/* net[h] transforms the half of parity 1-h, seeing that of parity h: x at their columns, which columns those are, context. */
static acf_status coupling_declare(acf_flow *f, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &f->size;
    acf_mlp_shape shape = {s->context + 2 * s->D, s->width, 2 * s->D, s->hidden, ACF_RELU, 0};
    for (int h = 0; h < 2; h++) {
        char half[112];
        snprintf(half, sizeof half, "%s.%s", name, h ? "even" : "odd"); /* named by the half that is transformed */
        ACF_TRY(acf_mlp_declare(&f->net[h], ps, half, &shape, f->site + (uint32_t)(h * ACF_MLP_LAYERS)));
    }
    return ACF_OK;
}

/* One half step: changes `moved` (packed over its half) as seen from `kept`. */
static acf_tensor *half_step(acf_tape *t, const acf_flow *f, int h, acf_tensor *kept, acf_tensor *moved,
                             const acf_cond *c, bool inverse, acf_tensor **logdet) {
    const acf_subset *from = kept->sub, *to = moved->sub;
    acf_tensor *seen = acf_scatter_cells(t, kept, from, NULL), *one = acf_tensor_const(t, from, 1, 1, &from->T);
    acf_tensor *which = acf_scatter_cells(t, one, from, NULL); /* the columns that are seen */
    acf_tensor *in = acf_concat(t, 3, (acf_tensor *[]){c->context, seen, which});
    acf_tensor *st = per_element(t, acf_mlp_run(t, &f->net[h], in, c->pass), f->size.D, to);
    return inverse ? acf_affine_inverse(t, moved, st, f->size.bound, to, logdet)
                   : acf_affine_forward(t, moved, st, f->size.bound, to, logdet);
}

/* Forward: the odd places from the even ones, then the even ones from the new odd ones; back: the other way round. */
static acf_tensor *coupling(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, bool inverse,
                            acf_tensor **logdet) {
    const acf_subset *half[2] = {acf_tape_half(t, c->u, 0), acf_tape_half(t, c->u, 1)};
    if (!half[0] || !half[1]) return &t->empty;
    acf_tensor *v[2] = {acf_pick(t, x, half[0]), acf_pick(t, x, half[1])}, *ld[2] = {NULL, NULL};
    for (int k = 0; k < 2 && t->failure.status == ACF_OK; k++) {
        int h = inverse ? 1 - k : k;
        v[1 - h] = half_step(t, f, h, v[h], v[1 - h], c, inverse, logdet ? &ld[k] : NULL);
    }
    if (logdet) *logdet = t->failure.status ? &t->empty : acf_add(t, ld[0], ld[1]);
    return acf_merge(t, v[0], v[1], c->u);
}

static acf_tensor *coupling_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                    acf_tensor **logdet) {
    return coupling(t, f, x, c, false, logdet);
}

static acf_tensor *coupling_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                    acf_tensor **logdet) {
    return coupling(t, f, z, c, true, logdet);
}

const acf_flow_kind acf_flow_coupling = {"coupling", coupling_declare, coupling_forward, coupling_inverse, true};

/* ---- reverse: a permutation, log-determinant 0 ----------------------------------------------------------------------------- */

static acf_status reverse_declare(acf_flow *f, acf_params *ps, const char *name) {
    (void)f, (void)ps, (void)name;
    return ACF_OK;
}

static acf_tensor *reverse(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet) {
    (void)f, (void)logdet; /* left NULL: nothing to add */
    return acf_reverse(t, x, c->u);
}

const acf_flow_kind acf_flow_reverse = {"reverse", reverse_declare, reverse, reverse, false};
