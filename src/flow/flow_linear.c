/* Conditional linear transformations z_u = W x_u + t: see flow.h.
 *
 * W = (W0 + W_c)[u,u]: W0 is learned and starts at the identity; W_c and t come from the network and start at zero. W_c
 * is a full (D,D) matrix, or a product A B of rank r. Both factors of a product must not start at zero, or neither
 * would ever get a gradient. So A, with t, comes from a network whose output starts at zero, and B from another one
 * that does not. */
#include "flow/flow.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/lowrank.h"
#include "ops/lu.h"
#include "ops/lu_packed.h"
#include "ops/submatrix.h"

#include <stdio.h>

/* net[0] gives [W_c or A | t], net[1] gives B. */
static acf_status declare_nets(acf_flow *f, acf_params *ps, const char *name, int64_t rank) {
    const acf_flow_sizes *s = &f->size;
    acf_mlp_shape shape = {s->context, s->width, rank ? s->D * (rank + 1) : s->D * (s->D + 1), s->hidden, ACF_RELU, 0};
    ACF_TRY(acf_mlp_declare(&f->net[0], ps, name, &shape, f->site));
    if (!rank) return ACF_OK;
    char second[112];
    snprintf(second, sizeof second, "%s.b", name);
    shape.out = s->D * rank, shape.out_scale = 1;
    return acf_mlp_declare(&f->net[1], ps, second, &shape, f->site + ACF_MLP_LAYERS);
}

static acf_status declare_base(acf_flow *f, acf_params *ps, const char *name, bool diagonal) {
    int64_t D = f->size.D;
    f->base = diagonal ? acf_declare(ps, name, "base", ACF_INIT_CONST, 1, 1, &D)
                       : acf_declare(ps, name, "base", ACF_INIT_IDENTITY, 1, 2, (int64_t[]){D, D});
    if (!f->base) return acf_error_status();
    f->base->decay = false; /* decay would pull W0 from the identity to a singular matrix */
    return ACF_OK;
}

static acf_status linear_declare(acf_flow *f, acf_params *ps, const char *name) {
    ACF_TRY(declare_nets(f, ps, name, f->size.rank));
    return declare_base(f, ps, name, false);
}

/* The network's output for the row: its matrix (or the factor A) and the shift t (T). */
static acf_tensor *matrix_and_shift(acf_tape *t, const acf_flow *f, const acf_cond *c, acf_tensor **shift) {
    acf_tensor *out = acf_mlp_run(t, &f->net[0], c->context, c->pass);
    int64_t D = f->size.D, matrix = f->net[0].b[f->net[0].layers - 1]->t.dim[0] - D;
    *shift = acf_gather_cells(t, acf_slice(t, out, matrix, D), c->u);
    return acf_slice(t, out, 0, matrix);
}

/* Row i's |u|x|u| matrix. */
static acf_tensor *matrices(acf_tape *t, const acf_flow *f, const acf_cond *c, acf_tensor **shift) {
    acf_tensor *m = matrix_and_shift(t, f, c, shift);
    if (f->size.rank == 0) return acf_submatrix_full(t, acf_p(f->base), m, c->u);
    return acf_submatrix(t, acf_p(f->base), m, acf_mlp_run(t, &f->net[1], c->context, c->pass), f->size.rank, c->u);
}

static acf_tensor *linear_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *shift;
    acf_lu *lu = acf_lu_factor(t, matrices(t, f, c, &shift), c->u);
    if (logdet) *logdet = acf_lu_logdet(t, lu);
    return acf_add(t, acf_lu_apply(t, lu, x), shift);
}

static acf_tensor *linear_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *shift;
    acf_lu *lu = acf_lu_factor(t, matrices(t, f, c, &shift), c->u);
    if (logdet) *logdet = acf_scale(t, -1, acf_lu_logdet(t, lu));
    return acf_lu_solve(t, lu, acf_sub(t, z, shift));
}

const acf_flow_kind acf_flow_linear = {.name = "linear",
                                       .declare = linear_declare,
                                       .forward = linear_forward,
                                       .inverse = linear_inverse,
                                       .affine_alone = true};

static acf_tensor *packed_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *shift, *m = matrices(t, f, c, &shift);
    if (logdet) *logdet = acf_plu_logdet(t, m, c->u);
    return acf_add(t, acf_plu_apply(t, m, x, c->u), shift);
}

static acf_tensor *packed_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                  acf_tensor **logdet) {
    acf_tensor *shift, *m = matrices(t, f, c, &shift);
    if (logdet) *logdet = acf_scale(t, -1, acf_plu_logdet(t, m, c->u));
    return acf_plu_solve(t, m, acf_sub(t, z, shift), c->u);
}

const acf_flow_kind acf_flow_packed = {.name = "packed",
                                       .declare = linear_declare,
                                       .forward = packed_forward,
                                       .inverse = packed_inverse,
                                       .affine_alone = true};

/* A full matrix (rank 0) is not available here: rank 0 stands for 8, or D if that is less. */
static int64_t rank_of(const acf_flow *f) { return f->size.rank ? f->size.rank : acf_min(f->size.D, 8); }

static acf_status lowrank_declare(acf_flow *f, acf_params *ps, const char *name) {
    ACF_TRY(declare_nets(f, ps, name, rank_of(f)));
    return declare_base(f, ps, name, true);
}

static acf_lowrank *lowrank_of(acf_tape *t, const acf_flow *f, const acf_cond *c, acf_tensor **shift) {
    acf_tensor *a = matrix_and_shift(t, f, c, shift), *b = acf_mlp_run(t, &f->net[1], c->context, c->pass);
    return acf_lowrank_factor(t, acf_p(f->base), a, b, rank_of(f), c->u);
}

static acf_tensor *lowrank_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                   acf_tensor **logdet) {
    acf_tensor *shift;
    acf_lowrank *w = lowrank_of(t, f, c, &shift);
    if (logdet) *logdet = acf_lowrank_logdet(t, w);
    return acf_add(t, acf_lowrank_apply(t, w, x), shift);
}

static acf_tensor *lowrank_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                   acf_tensor **logdet) {
    acf_tensor *shift;
    acf_lowrank *w = lowrank_of(t, f, c, &shift);
    if (logdet) *logdet = acf_scale(t, -1, acf_lowrank_logdet(t, w));
    return acf_lowrank_solve(t, w, acf_sub(t, z, shift));
}

const acf_flow_kind acf_flow_lowrank = {.name = "lowrank",
                                        .declare = lowrank_declare,
                                        .forward = lowrank_forward,
                                        .inverse = lowrank_inverse,
                                        .affine_alone = true};
