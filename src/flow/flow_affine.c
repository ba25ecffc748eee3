/* Affine transformations: scale and shift from the observed values, or of one half of the values from the other half.
 * See flow.h. */
#include "flow/flow.h"
#include "ops/affine.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/gather.h"

#include <stdio.h>

/* ---- affine: scale and shift from the observed values ------------------------------------------------------------ */

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

const acf_flow_kind acf_flow_affine = {.name = "affine",
                                       .declare = affine_declare,
                                       .forward = affine_forward,
                                       .inverse = affine_inverse,
                                       .affine_alone = true};

/* ---- affine coupling: half of the values from the other half ----------------------------------------------------- */

/* net[h] transforms the half of parity 1-h. Its inputs are the half of parity h (x at its columns, and which columns
 * those are) and the context. */
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

/* Half a coupling: transforms `moved` (packed over its half) given `kept`. */
static acf_tensor *half_step(acf_tape *t, const acf_flow *f, int h, acf_tensor *kept, acf_tensor *moved,
                             const acf_cond *c, bool inverse, acf_tensor **logdet) {
    const acf_subset *from = kept->sub, *to = moved->sub;
    acf_tensor *seen = acf_scatter_cells(t, kept, from, NULL), *one = acf_tensor_const(t, from, 1, 1, &from->T);
    acf_tensor *which = acf_scatter_cells(t, one, from, NULL); /* the columns of the kept half */
    acf_tensor *in = acf_concat(t, 3, (acf_tensor *[]){c->context, seen, which});
    acf_tensor *st = per_element(t, acf_mlp_run(t, &f->net[h], in, c->pass), f->size.D, to);
    return inverse ? acf_affine_inverse(t, moved, st, f->size.bound, to, logdet)
                   : acf_affine_forward(t, moved, st, f->size.bound, to, logdet);
}

/* Forward: the odd places from the even ones, then the even ones from the new odd ones; the inverse in reverse
 * order. */
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

const acf_flow_kind acf_flow_coupling = {.name = "coupling",
                                         .declare = coupling_declare,
                                         .forward = coupling_forward,
                                         .inverse = coupling_inverse,
                                         .affine_alone = true};
