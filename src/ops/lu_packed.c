/* A matrix per row, read as packed L and U: see lu_packed.h; formulas in docs/math.md, 6.
 *
 * Workload: as in lu.c, without its |u|³. Everything is one pass over the matrix, along its rows, and memory-bound.
 * The backward computes y = U x again instead of storing it. */
#include "ops/lu_packed.h"

#include "ops/rowmat.h"

/* ---- one matrix: m (n,n) row-major, vectors (n) contiguous ----------------------------------------------------- */

/* y = U x; y may not be x. */
static void upper_times(acf_real *y, const acf_real *m, const acf_real *x, int64_t n) {
    for (int64_t t = 0; t < n; t++) y[t] = acf_row_dot(m + t * n + t, x + t, n - t);
}

/* y = Lᵀ y, in place: row t adds to earlier elements, which are not read again. */
static void lower_t_times(acf_real *y, const acf_real *m, int64_t n) {
    for (int64_t t = 0; t < n; t++) acf_row_axpy(y, y[t], m + t * n, t);
}

/* y = L⁻¹ y, in place. */
static void lower_solve(acf_real *y, const acf_real *m, int64_t n) {
    for (int64_t t = 0; t < n; t++) y[t] -= acf_row_dot(m + t * n, y, t);
}

/* y = U⁻¹ y, in place. */
static void upper_solve(acf_real *y, const acf_real *m, int64_t n) {
    for (int64_t t = n - 1; t >= 0; t--)
        y[t] = (y[t] - acf_row_dot(m + t * n + t + 1, y + t + 1, n - t - 1)) / m[t * n + t];
}

/* y = U⁻ᵀ y, in place. */
static void upper_t_solve(acf_real *y, const acf_real *m, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        y[t] /= m[t * n + t];
        acf_row_axpy(y + t + 1, -y[t], m + t * n + t + 1, n - t - 1);
    }
}

/* y = L⁻ᵀ y, in place. */
static void lower_t_solve(acf_real *y, const acf_real *m, int64_t n) {
    for (int64_t t = n - 1; t >= 0; t--) acf_row_axpy(y, -y[t], m + t * n, t);
}

/* dm += sign · (strictly lower part of a yᵀ, upper part of b xᵀ): the gradients of L and U share the matrix. */
static void add_outer(acf_real *dm, acf_real sign, const acf_real *a, const acf_real *y, const acf_real *b,
                      const acf_real *x, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        acf_row_axpy(dm + t * n, sign * a[t], y, t);
        acf_row_axpy(dm + t * n + t, sign * b[t], x + t, n - t);
    }
}

/* ---- apply: z = L U x ------------------------------------------------------------------------------------------ */

void acf_plu_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_real *m, const acf_real *x,
                           const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const acf_real *mi = m + u->square[i];
        acf_real *xs = acf_row_scratch(scratch, 2 * ld), *y = xs + ld;
        acf_row_get(xs, x, u, i);
        upper_times(y, mi, xs, n);
        for (int64_t t = 0; t < n; t++) z[acf_subset_at(u, i, t)] = y[t] + acf_row_dot(mi + t * n, y, t);
    }
}

void acf_plu_apply_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dx, const acf_real *dz, const acf_real *m,
                           const acf_real *x, const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 3 * u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const acf_real *mi = m + u->square[i];
        acf_real *dzs = acf_row_scratch(scratch, 5 * ld), *dy = dzs + ld, *xs = dy + ld, *y = xs + ld, *dxs = y + ld;
        acf_row_get(dzs, dz, u, i);
        acf_row_get(dy, dz, u, i);
        lower_t_times(dy, mi, n);
        if (dm) { /* dL += dz yᵀ, dU += dy xᵀ */
            acf_row_get(xs, x, u, i);
            upper_times(y, mi, xs, n);
            add_outer(dm + u->square[i], 1, dzs, y, dy, xs, n);
        }
        if (dx) { /* dx += Uᵀ dy */
            for (int64_t t = 0; t < n; t++) dxs[t] = 0;
            for (int64_t t = 0; t < n; t++) acf_row_axpy(dxs + t, dy[t], mi + t * n + t, n - t);
            acf_row_add(dx, dxs, u, i);
        }
    }
}

/* ---- log|det| -------------------------------------------------------------------------------------------------- */

void acf_plu_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_real *m, const acf_subset *u) {
    ACF_PARALLEL_UNEVEN(dev, 8 * u->T) /* frexp and the like */
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        ld[i] = acf_real_from(acf_dense_logabs(m + u->square[i], n + 1, n));
    }
}

void acf_plu_logdet_bwd_cpu(const acf_device *dev, acf_real *dm, const acf_real *dld, const acf_real *m,
                            const acf_subset *u) {
    ACF_PARALLEL_UNEVEN(dev, 4 * u->T) /* divisions, strided */
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i], at = u->square[i];
        for (int64_t t = 0; t < n; t++) dm[at + t * (n + 1)] += dld[i] / m[at + t * (n + 1)];
    }
}

/* ---- solve: L U x = z ------------------------------------------------------------------------------------------ */

void acf_plu_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_real *m, const acf_real *z,
                           const acf_subset *u, acf_real *scratch) {
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        acf_real *y = acf_row_scratch(scratch, u->steps);
        acf_row_get(y, z, u, i);
        lower_solve(y, m + u->square[i], n);
        upper_solve(y, m + u->square[i], n);
        acf_row_put(x, y, u, i);
    }
}

void acf_plu_solve_bwd_cpu(const acf_device *dev, acf_real *dm, acf_real *dz, const acf_real *dx, const acf_real *m,
                           const acf_real *x, const acf_subset *u, acf_real *scratch) {
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 3 * u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const acf_real *mi = m + u->square[i];
        acf_real *dy = acf_row_scratch(scratch, 4 * ld), *dzs = dy + ld, *xs = dzs + ld, *y = xs + ld;
        acf_row_get(dy, dx, u, i);
        upper_t_solve(dy, mi, n); /* dy = U⁻ᵀ dx */
        for (int64_t t = 0; t < n; t++) dzs[t] = dy[t];
        lower_t_solve(dzs, mi, n); /* dz = L⁻ᵀ dy */
        if (dz) acf_row_add(dz, dzs, u, i);
        if (dm) { /* dL -= dz yᵀ with y = U x, dU -= dy xᵀ */
            acf_row_get(xs, x, u, i);
            upper_times(y, mi, xs, n);
            add_outer(dm + u->square[i], -1, dzs, y, dy, xs, n);
        }
    }
}

/* ---- nodes and front ends -------------------------------------------------------------------------------------- */

/* The lowest row with a diagonal element too small to divide by. One pass over the matrices, like the operation
 * itself. */
static acf_status check_diagonals(acf_tape *t, const acf_real *m, const acf_subset *u) {
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *bad = acf_tape_ints(t, u->N);
    ACF_TRY(acf_tape_status(t));
    ACF_PARALLEL_UNEVEN(t->dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i], at = u->square[i];
        bad[i] = (int32_t)acf_dense_singular(m + at, n + 1, n, acf_dense_largest(m + at, n * n));
    }
    const int64_t i = acf_first_failure(bad, u->N), k = i < 0 ? 0 : bad[i];
    acf_arena_release(t->mem, mark);
    if (i < 0) return ACF_OK;
    const int64_t n = u->size[i];
    return acf_singular(u, i, k, m[u->square[i] + k * (n + 1)], acf_dense_largest(m + u->square[i], n * n));
}

static acf_status apply_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_plu_attrs *)n->attr)->u;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 2 * acf_pad(u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_plu_apply_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status apply_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_plu_attrs *)n->attr)->u;
    acf_real *dm = acf_grad(t, n->in[0]), *dx = acf_grad(t, n->in[1]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 5 * acf_pad(u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_plu_apply_bwd_cpu(t->dev, dm, dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status logdet_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_plu_attrs *)n->attr)->u;
    ACF_TRY(check_diagonals(t, n->in[0]->data, u));
    acf_plu_logdet_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, u);
    return ACF_OK;
}

static acf_status logdet_backward(acf_tape *t, acf_node *n) {
    acf_real *dm = acf_grad(t, n->in[0]);
    if (dm) acf_plu_logdet_bwd_cpu(t->dev, dm, n->out[0]->grad, n->in[0]->data, ((acf_plu_attrs *)n->attr)->u);
    return acf_tape_status(t);
}

static acf_status solve_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_plu_attrs *)n->attr)->u;
    ACF_TRY(check_diagonals(t, n->in[0]->data, u));
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, u->steps);
    ACF_TRY(acf_tape_status(t));
    acf_plu_solve_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status solve_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((acf_plu_attrs *)n->attr)->u;
    acf_real *dm = acf_grad(t, n->in[0]), *dz = acf_grad(t, n->in[1]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 4 * acf_pad(u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_plu_solve_bwd_cpu(t->dev, dm, dz, n->out[0]->grad, n->in[0]->data, n->out[0]->data, u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_plu_apply = {"plu_apply", ACF_OP_plu_apply, {apply_forward, apply_backward}};
const acf_op acf_op_plu_logdet = {"plu_logdet", ACF_OP_plu_logdet, {logdet_forward, logdet_backward}};
const acf_op acf_op_plu_solve = {"plu_solve", ACF_OP_plu_solve, {solve_forward, solve_backward}};

/* x (called `name` in the message) may be NULL for an operation on the matrices alone. */
static acf_tensor *run(acf_tape *t, const acf_op *op, acf_tensor *m, const char *name, acf_tensor *x,
                       const acf_subset *u) {
    char s[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_plu_attrs), x ? 2 : 1, (acf_tensor *[]){m, x});
    if (!n) return &t->empty;
    if (!acf_is_square(m, u))
        return acf_reject(t, op, "m is %s; expected (%lld), the list of the subset's matrices", acf_tensor_shape(m, s),
                          (long long)u->S);
    if (x && !acf_is_packed(x, u))
        return acf_reject(t, op, "%s is %s; expected (%lld packed) over the subset of the matrices", name,
                          acf_tensor_shape(x, s), (long long)u->T);
    ((acf_plu_attrs *)n->attr)->u = u;
    n->out[0] = x ? acf_tensor_packed(t, u, 0) : acf_tensor_new(t, 1, &u->N);
    return acf_node_run(t, n);
}

acf_tensor *acf_plu_apply(acf_tape *t, acf_tensor *m, acf_tensor *x, const acf_subset *u) {
    return run(t, &acf_op_plu_apply, m, "x", x, u);
}

acf_tensor *acf_plu_logdet(acf_tape *t, acf_tensor *m, const acf_subset *u) {
    return run(t, &acf_op_plu_logdet, m, "", NULL, u);
}

acf_tensor *acf_plu_solve(acf_tape *t, acf_tensor *m, acf_tensor *z, const acf_subset *u) {
    return run(t, &acf_op_plu_solve, m, "z", z, u);
}
