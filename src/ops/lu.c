/* A general matrix per row: see lu.h; formulas in docs/math.md, 6.
 *
 * Workload: N = 256 to 4096 rows, |u| = 1 to 64, sometimes hundreds. Factorising costs |u|³/3 multiply-adds a row, the
 * backward of the log-determinant twice that, everything else |u|². */
#include "ops/lu.h"

#include "ops/rowmat.h"

/* ---- factors --------------------------------------------------------------------------------------------------- */

void acf_lu_factor_fwd_cpu(const acf_device *dev, acf_real *f, int32_t *order, int32_t *bad, const acf_real *m,
                           const acf_subset *u) {
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N] * u->steps)
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i], at = u->square[i];
        acf_dense_lu(f + at, order + i * u->steps, m + at, n);
        bad[i] = (int32_t)acf_dense_singular(f + at, n + 1, n, acf_dense_largest(m + at, n * n));
    }
}

static acf_status factor_forward(acf_tape *t, acf_node *node) {
    const acf_lu *lu = ((acf_lu_attrs *)node->attr)->lu;
    const acf_subset *u = lu->u;
    const acf_real *m = node->in[0]->data, *f = node->out[0]->data;
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *bad = acf_tape_ints(t, u->N);
    ACF_TRY(acf_tape_status(t));
    acf_lu_factor_fwd_cpu(t->dev, node->out[0]->data, lu->order, bad, m, u);
    const int64_t i = acf_first_failure(bad, u->N), k = i < 0 ? 0 : bad[i];
    acf_arena_release(t->mem, mark);
    if (i < 0) return ACF_OK;
    const int64_t n = u->size[i];
    return acf_singular(u, i, k, f[u->square[i] + k * (n + 1)], acf_dense_largest(m + u->square[i], n * n));
}

/* No backward: the operations that use the factors add their gradients to the matrices. */
const acf_op acf_op_lu_factor = {"lu_factor", ACF_OP_lu_factor, {factor_forward, NULL}};

acf_lu *acf_lu_factor(acf_tape *t, acf_tensor *m, const acf_subset *u) {
    char s[ACF_SHAPE_TEXT];
    if (t->failure.status) return NULL;
    if (!acf_is_square(m, u)) {
        acf_reject(t, &acf_op_lu_factor, "m is %s; expected (%lld), the list of the subset's matrices",
                   acf_tensor_shape(m, s), (long long)u->S);
        return NULL;
    }
    acf_lu *lu = acf_arena_alloc(t->host, sizeof *lu);
    if (lu)
        *lu = (acf_lu){.u = u, .m = m};
    else
        acf_tape_fail(t, &acf_op_lu_factor);
    return lu;
}

/* Factorises on first use; false after a failure. */
static bool factored(acf_tape *t, acf_lu *lu) {
    if (t->failure.status) return false;
    if (lu->f) return true;
    acf_node *n = acf_node_new(t, &acf_op_lu_factor, sizeof(acf_lu_attrs), 1, &lu->m);
    if (!n) return false;
    ((acf_lu_attrs *)n->attr)->lu = lu;
    n->out[0] = acf_square_new(t, lu->u);
    lu->order = acf_tape_ints(t, lu->u->N * lu->u->steps);
    acf_tensor *f = acf_node_run(t, n);
    if (t->failure.status) return false;
    lu->f = f;
    return true;
}

/* ---- apply: z = M x -------------------------------------------------------------------------------------------- */

void acf_lu_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *m, const acf_real *x, const acf_subset *u,
                          acf_real *scratch) {
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        acf_real *xs = acf_row_scratch(scratch, u->steps);
        acf_row_get(xs, x, u, i);
        for (int64_t t = 0; t < n; t++) z[acf_subset_at(u, i, t)] = acf_row_dot(m + u->square[i] + t * n, xs, n);
    }
}

void acf_lu_apply_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dx, const acf_real *dz, const acf_real *m,
                          const acf_real *x, const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 2 * u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i], at = u->square[i];
        acf_real *xs = acf_row_scratch(scratch, 3 * ld), *dzs = xs + ld, *dxs = dzs + ld;
        acf_row_get(xs, x, u, i);
        acf_row_get(dzs, dz, u, i);
        if (dm) /* dM += dz xᵀ */
            for (int64_t t = 0; t < n; t++) acf_row_axpy(dm + at + t * n, dzs[t], xs, n);
        if (dx) { /* dx += Mᵀ dz */
            for (int64_t t = 0; t < n; t++) dxs[t] = 0;
            for (int64_t t = 0; t < n; t++) acf_row_axpy(dxs, dzs[t], m + at + t * n, n);
            acf_row_add(dx, dxs, u, i);
        }
    }
}

static acf_status apply_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_lu_attrs *)n->attr)->lu->u;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, u->steps);
    ACF_TRY(acf_tape_status(t));
    acf_lu_apply_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status apply_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_lu_attrs *)n->attr)->lu->u;
    acf_real *dm = acf_grad(t, n->in[0]), *dx = acf_grad(t, n->in[1]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 3 * acf_pad(u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_lu_apply_bwd_cpu(t->dev, dm, dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_lu_apply = {"lu_apply", ACF_OP_lu_apply, {apply_forward, apply_backward}};

acf_tensor *acf_lu_apply(acf_tape *t, acf_lu *lu, acf_tensor *x) {
    char s[ACF_SHAPE_TEXT];
    if (t->failure.status) return &t->empty;
    acf_node *n = acf_node_new(t, &acf_op_lu_apply, sizeof(acf_lu_attrs), 2, (acf_tensor *[]){lu->m, x});
    if (!n) return &t->empty;
    if (!acf_is_packed(x, lu->u))
        return acf_reject(t, n->op, "x is %s; expected (%lld packed) over the subset of the matrices",
                          acf_tensor_shape(x, s), (long long)lu->u->T);
    ((acf_lu_attrs *)n->attr)->lu = lu;
    n->out[0] = acf_tensor_packed(t, lu->u, 0);
    return acf_node_run(t, n);
}

/* ---- log|det M| ------------------------------------------------------------------------------------------------ */

void acf_lu_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_real *f, const acf_subset *u) {
    ACF_PARALLEL_UNEVEN(dev, 8 * u->T) /* frexp and the like */
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        ld[i] = acf_real_from(acf_dense_logabs(f + u->square[i], n + 1, n));
    }
}

void acf_lu_logdet_bwd_cpu(const acf_device *dev, acf_real *dm, const acf_real *dld, const acf_real *f,
                           const int32_t *order, const acf_subset *u, acf_real *scratch) {
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N] * u->steps)
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], at = u->square[i];
        acf_dense_inverse_t(dm + at, dld[i], f + at, order + i * u->steps, u->size[i],
                            acf_row_scratch(scratch, u->steps * ACF_DENSE_BLOCK));
    }
}

static acf_status logdet_forward(acf_tape *t, acf_node *n) {
    acf_lu_logdet_fwd_cpu(t->dev, n->out[0]->data, n->in[1]->data, ((acf_lu_attrs *)n->attr)->lu->u);
    return ACF_OK;
}

static acf_status logdet_backward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = ((acf_lu_attrs *)n->attr)->lu;
    acf_real *dm = acf_grad(t, n->in[0]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, lu->u->steps * ACF_DENSE_BLOCK);
    ACF_TRY(acf_tape_status(t));
    if (dm) acf_lu_logdet_bwd_cpu(t->dev, dm, n->out[0]->grad, lu->f->data, lu->order, lu->u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_lu_logdet = {"lu_logdet", ACF_OP_lu_logdet, {logdet_forward, logdet_backward}};

acf_tensor *acf_lu_logdet(acf_tape *t, acf_lu *lu) {
    if (!factored(t, lu)) return &t->empty;
    acf_node *n = acf_node_new(t, &acf_op_lu_logdet, sizeof(acf_lu_attrs), 2, (acf_tensor *[]){lu->m, lu->f});
    if (!n) return &t->empty;
    ((acf_lu_attrs *)n->attr)->lu = lu;
    n->out[0] = acf_tensor_new(t, 1, &lu->u->N);
    return acf_node_run(t, n);
}

/* ---- solve: M x = z -------------------------------------------------------------------------------------------- */

void acf_lu_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_real *f, const int32_t *order,
                          const acf_real *z, const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k];
        acf_real *xs = acf_row_scratch(scratch, 2 * ld), *zs = xs + ld;
        acf_row_get(zs, z, u, i);
        acf_dense_solve(xs, zs, f + u->square[i], order + i * u->steps, u->size[i]);
        acf_row_put(x, xs, u, i);
    }
}

void acf_lu_solve_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dz, const acf_real *dx, const acf_real *f,
                          const int32_t *order, const acf_real *x, const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 2 * u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i], at = u->square[i];
        acf_real *v = acf_row_scratch(scratch, 3 * ld), *dxs = v + ld, *xs = dxs + ld;
        acf_row_get(dxs, dx, u, i);
        acf_dense_solve_t(v, dxs, f + at, order + i * u->steps, n); /* v = M⁻ᵀ dx */
        if (dz) acf_row_add(dz, v, u, i);
        if (dm) { /* dM -= v xᵀ */
            acf_row_get(xs, x, u, i);
            for (int64_t t = 0; t < n; t++) acf_row_axpy(dm + at + t * n, -v[t], xs, n);
        }
    }
}

static acf_status solve_forward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = ((acf_lu_attrs *)n->attr)->lu;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 2 * acf_pad(lu->u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_lu_solve_fwd_cpu(t->dev, n->out[0]->data, lu->f->data, lu->order, n->in[2]->data, lu->u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status solve_backward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = ((acf_lu_attrs *)n->attr)->lu;
    acf_real *dm = acf_grad(t, n->in[0]), *dz = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 3 * acf_pad(lu->u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_lu_solve_bwd_cpu(t->dev, dm, dz, n->out[0]->grad, lu->f->data, lu->order, n->out[0]->data, lu->u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_lu_solve = {"lu_solve", ACF_OP_lu_solve, {solve_forward, solve_backward}};

acf_tensor *acf_lu_solve(acf_tape *t, acf_lu *lu, acf_tensor *z) {
    char s[ACF_SHAPE_TEXT];
    if (!factored(t, lu)) return &t->empty;
    acf_node *n = acf_node_new(t, &acf_op_lu_solve, sizeof(acf_lu_attrs), 3, (acf_tensor *[]){lu->m, lu->f, z});
    if (!n) return &t->empty;
    if (!acf_is_packed(z, lu->u))
        return acf_reject(t, n->op, "z is %s; expected (%lld packed) over the subset of the matrices",
                          acf_tensor_shape(z, s), (long long)lu->u->T);
    ((acf_lu_attrs *)n->attr)->lu = lu;
    n->out[0] = acf_tensor_packed(t, lu->u, 0);
    return acf_node_run(t, n);
}
