/* A diagonal plus low rank per row: see lowrank.h; formulas in docs/math.md, 6.
 *
 * Workload: N = 256 to 4096 rows, |u| in the hundreds, r = 1 to 32. One pass over the row's A and B for each call; A
 * is read along its rows (r contiguous), B along its rows at the modelled columns. */
#include "ops/lowrank.h"

#include "ops/rowmat.h"

#include <string.h>

/* ---- one row --------------------------------------------------------------------------------------------------- */

/* Row i of the inputs. A (D,r), B (r,D), w (D) are indexed by table column, everything else by position in the row's
 * subset. */
typedef struct row {
    const acf_real *w, *a, *b, *k;
    const int32_t *cols, *order;
    int64_t n, r, D;
} row;

static row row_of(const acf_lowrank_in *in, int64_t i) {
    const int64_t D = in->u->D, r = in->r;
    return (row){.w = in->w + i * in->w_stride,
                 .a = in->a + i * D * r,
                 .b = in->b + i * r * D,
                 .k = in->k ? in->k + i * r * r : NULL,
                 .order = in->order ? in->order + i * r : NULL,
                 .cols = in->u->cols + i * D,
                 .n = in->u->size[i],
                 .r = r,
                 .D = D};
}

/* s (r) = B_u x */
static void b_times(acf_real *s, const row *p, const acf_real *x) {
    for (int64_t q = 0; q < p->r; q++) {
        const acf_real *b = p->b + q * p->D;
        acf_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t t = 0; t < p->n; t++) sum += b[p->cols[t]] * x[t];
        s[q] = sum;
    }
}

/* y (n) += alpha · B_uᵀ e */
static void b_t_times(acf_real *y, acf_real alpha, const row *p, const acf_real *e) {
    for (int64_t q = 0; q < p->r; q++) {
        const acf_real *b = p->b + q * p->D, scale = alpha * e[q];
        ACF_SIMD
        for (int64_t t = 0; t < p->n; t++) y[t] += scale * b[p->cols[t]];
    }
}

/* e (r) = A_uᵀ v */
static void a_t_times(acf_real *e, const row *p, const acf_real *v) {
    for (int64_t q = 0; q < p->r; q++) e[q] = 0;
    for (int64_t t = 0; t < p->n; t++) acf_row_axpy(e, v[t], p->a + p->cols[t] * p->r, p->r);
}

/* y (n) += alpha · A_u s */
static void a_times(acf_real *y, acf_real alpha, const row *p, const acf_real *s) {
    for (int64_t t = 0; t < p->n; t++) y[t] += alpha * acf_row_dot(p->a + p->cols[t] * p->r, s, p->r);
}

/* The gradient of W is sign · v xᵀ. With s = B_u x and e = A_uᵀ v it is added to the three parts without being
 * formed. */
static void add_outer(const acf_lowrank_grad *g, int64_t i, const row *p, acf_real sign, const acf_real *v,
                      const acf_real *x, const acf_real *s, const acf_real *e) {
    const int64_t D = p->D, r = p->r;
    if (g->dw)
        for (int64_t t = 0; t < p->n; t++) g->dw[i * D + p->cols[t]] += sign * v[t] * x[t];
    if (g->da)
        for (int64_t t = 0; t < p->n; t++) acf_row_axpy(g->da + (i * D + p->cols[t]) * r, sign * v[t], s, r);
    if (g->db)
        for (int64_t q = 0; q < r; q++)
            for (int64_t t = 0; t < p->n; t++) g->db[(i * r + q) * D + p->cols[t]] += sign * e[q] * x[t];
}

/* ---- factors --------------------------------------------------------------------------------------------------- */

static acf_real magnitude(acf_real x) { return x < 0 ? -x : x; }

/* The first position whose w is too small to divide by, or -1; *largest is the largest |w| at the modelled columns. */
static int64_t bad_diagonal(const row *p, acf_real *largest) {
    *largest = 0;
    for (int64_t t = 0; t < p->n; t++)
        *largest = magnitude(p->w[p->cols[t]]) > *largest ? magnitude(p->w[p->cols[t]]) : *largest;
    for (int64_t t = 0; t < p->n; t++)
        if (acf_dense_singular(p->w + p->cols[t], 1, 1, ACF_R(p->n) * *largest) >= 0) return t;
    return -1;
}

/* k (r,r) = I + B_u diag(1/w_u) A_u */
static void inner_matrix(acf_real *k, const row *p) {
    const int64_t r = p->r;
    for (int64_t q = 0; q < r * r; q++) k[q] = q % (r + 1) == 0;
    for (int64_t t = 0; t < p->n; t++) {
        const int64_t c = p->cols[t];
        for (int64_t q = 0; q < r; q++) acf_row_axpy(k + q * r, p->b[q * p->D + c] / p->w[c], p->a + c * r, r);
    }
}

void acf_lowrank_factor_fwd_cpu(const acf_device *dev, acf_real *k, int32_t *order, int32_t *bad, acf_real *largest,
                                const acf_lowrank_in *in) {
    const int64_t r = in->r;
    ACF_PARALLEL_UNEVEN(dev, in->u->T * r * r)
    for (int64_t rank = 0; rank < in->u->N; rank++) {
        const int64_t i = in->u->row[rank];
        const row p = row_of(in, i);
        acf_real *ki = k + i * r * r;
        bad[i] = (int32_t)bad_diagonal(&p, &largest[i]);
        if (bad[i] >= 0) continue;
        inner_matrix(ki, &p);
        largest[i] = acf_dense_largest(ki, r * r);
        acf_dense_lu(ki, order + i * r, ki, r);
        const int64_t q = acf_dense_singular(ki, r + 1, r, largest[i]);
        if (q >= 0) bad[i] = (int32_t)(p.n + q);
    }
}

/* ---- apply: z = w x + A (B x) ---------------------------------------------------------------------------------- */

void acf_lowrank_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_lowrank_in *in, const acf_real *x,
                               acf_real *scratch) {
    const acf_subset *u = in->u;
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 2 * u->T * in->r)
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *xs = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(in->r, u->steps)), *s = xs + ld;
        acf_row_get(xs, x, u, i);
        b_times(s, &p, xs);
        for (int64_t t = 0; t < p.n; t++) xs[t] *= p.w[p.cols[t]];
        a_times(xs, 1, &p, s);
        acf_row_put(z, xs, u, i);
    }
}

void acf_lowrank_apply_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, acf_real *dx, const acf_real *dz,
                               const acf_lowrank_in *in, const acf_real *x, acf_real *scratch) {
    const acf_subset *u = in->u;
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 6 * u->T * in->r)
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *xs = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(in->r, u->steps)), *dzs = xs + ld;
        acf_real *s = dzs + ld, *e = s + acf_pad(in->r);
        acf_row_get(xs, x, u, i);
        acf_row_get(dzs, dz, u, i);
        b_times(s, &p, xs);
        a_t_times(e, &p, dzs);
        add_outer(g, i, &p, 1, dzs, xs, s, e);
        if (!dx) continue;
        for (int64_t t = 0; t < p.n; t++) dzs[t] *= p.w[p.cols[t]]; /* dx = w dz + Bᵀ (Aᵀ dz) */
        b_t_times(dzs, 1, &p, e);
        acf_row_add(dx, dzs, u, i);
    }
}

/* ---- log|det W| = Σ log|w| + log|det K| ------------------------------------------------------------------------ */

void acf_lowrank_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_lowrank_in *in, acf_real *scratch) {
    const acf_subset *u = in->u;
    ACF_PARALLEL_UNEVEN(dev, 8 * u->T) /* frexp and the like */
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *ws = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(in->r, u->steps));
        for (int64_t t = 0; t < p.n; t++) ws[t] = p.w[p.cols[t]];
        ld[i] = acf_real_from(acf_dense_logabs(ws, 1, p.n) + acf_dense_logabs(p.k, p.r + 1, p.r));
    }
}

/* With R = K⁻¹ B_u and S = A_u K⁻¹:  dA = Rᵀ / w,  dB = Sᵀ / w,  dw = (1 - A·R / w) / w, each times the incoming
 * gradient, which ki carries: it holds g · K⁻ᵀ. */
static void logdet_row(const acf_lowrank_grad *g, acf_real dld, int64_t i, const row *p, const acf_real *ki,
                       acf_real *rs, acf_real *bs) {
    const int64_t r = p->r, D = p->D;
    for (int64_t t = 0; t < p->n; t++) {
        const int64_t c = p->cols[t];
        const acf_real *a = p->a + c * r, w = p->w[c];
        for (int64_t q = 0; q < r; q++) bs[q] = p->b[q * D + c] / w, rs[q] = 0;
        for (int64_t q = 0; q < r; q++) acf_row_axpy(rs, bs[q], ki + q * r, r);
        if (g->dw) g->dw[i * D + c] += (dld - acf_row_dot(a, rs, r)) / w;
        if (g->da) acf_row_axpy(g->da + (i * D + c) * r, 1, rs, r);
        if (g->db)
            for (int64_t q = 0; q < r; q++) g->db[(i * r + q) * D + c] += acf_row_dot(a, ki + q * r, r) / w;
    }
}

void acf_lowrank_logdet_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, const acf_real *dld,
                                const acf_lowrank_in *in, acf_real *scratch) {
    const acf_subset *u = in->u;
    const int64_t r = in->r;
    ACF_PARALLEL_UNEVEN(dev, 2 * u->T * r * r)
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *work = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(r, u->steps));
        acf_real *ki = work + r * ACF_DENSE_BLOCK, *rs = ki + acf_pad(r * r), *bs = rs + acf_pad(r);
        memset(ki, 0, (size_t)(r * r) * sizeof *ki);
        acf_dense_inverse_t(ki, dld[i], p.k, p.order, r, work);
        logdet_row(g, dld[i], i, &p, ki, rs, bs);
    }
}

/* ---- solve: x = (z - A c) / w,  K c = B (z / w) ---------------------------------------------------------------- */

void acf_lowrank_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_lowrank_in *in, const acf_real *z,
                               acf_real *scratch) {
    const acf_subset *u = in->u;
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 2 * u->T * in->r)
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *zs = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(in->r, u->steps)), *y = zs + ld;
        acf_real *s = y + ld, *c = s + acf_pad(in->r);
        acf_row_get(zs, z, u, i);
        for (int64_t t = 0; t < p.n; t++) y[t] = zs[t] / p.w[p.cols[t]];
        b_times(s, &p, y);
        acf_dense_solve(c, s, p.k, p.order, p.r);
        a_times(zs, -1, &p, c);
        for (int64_t t = 0; t < p.n; t++) zs[t] /= p.w[p.cols[t]];
        acf_row_put(x, zs, u, i);
    }
}

/* v = W⁻ᵀ dx = (dx - Bᵀ e) / w with Kᵀ e = Aᵀ (dx / w). That e equals Aᵀ v, the argument of add_outer. */
void acf_lowrank_solve_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, acf_real *dz, const acf_real *dx,
                               const acf_lowrank_in *in, const acf_real *x, acf_real *scratch) {
    const acf_subset *u = in->u;
    const int64_t ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 6 * u->T * in->r)
    for (int64_t rank = 0; rank < u->N; rank++) {
        const int64_t i = u->row[rank];
        const row p = row_of(in, i);
        acf_real *v = acf_row_scratch(scratch, ACF_LOWRANK_SCRATCH(in->r, u->steps)), *y = v + ld, *xs = y + ld;
        acf_real *s = xs + ld, *e = s + acf_pad(in->r);
        acf_row_get(v, dx, u, i);
        for (int64_t t = 0; t < p.n; t++) y[t] = v[t] / p.w[p.cols[t]];
        a_t_times(s, &p, y);
        acf_dense_solve_t(e, s, p.k, p.order, p.r);
        b_t_times(v, -1, &p, e);
        for (int64_t t = 0; t < p.n; t++) v[t] /= p.w[p.cols[t]];
        if (dz) acf_row_add(dz, v, u, i);
        acf_row_get(xs, x, u, i);
        b_times(s, &p, xs);
        add_outer(g, i, &p, -1, v, xs, s, e);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static acf_lowrank *object_of(const acf_node *n) { return ((acf_lowrank_attrs *)n->attr)->f; }

static acf_real *scratch_for(acf_tape *t, const acf_lowrank_in *in) {
    return acf_rows_scratch(t, ACF_LOWRANK_SCRATCH(in->r, in->u->steps));
}

/* The failure of row i. A pivot of K belongs to no single column; then the column with the largest effect on that
 * term of the product is named. */
static acf_status failure(const acf_lowrank_in *in, int64_t i, int64_t place, acf_real largest, const acf_real *k) {
    const row p = row_of(in, i);
    if (place < p.n) return acf_singular(in->u, i, place, p.w[p.cols[place]], largest);
    const int64_t q = place - p.n;
    int64_t at = 0;
    for (int64_t t = 1; t < p.n; t++)
        if (magnitude(p.a[p.cols[t] * p.r + q]) > magnitude(p.a[p.cols[at] * p.r + q])) at = t;
    return acf_singular(in->u, i, at, k[(i * p.r + q) * p.r + q], largest);
}

static acf_status factor_forward(acf_tape *t, acf_node *n) {
    acf_lowrank *f = object_of(n);
    const int64_t N = f->in.u->N;
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *bad = acf_tape_ints(t, N);
    acf_real *largest = acf_tape_reals(t, N);
    ACF_TRY(acf_tape_status(t));
    acf_lowrank_factor_fwd_cpu(t->dev, n->out[0]->data, f->order, bad, largest, &f->in);
    const int64_t i = acf_first_failure(bad, N);
    acf_status status = i < 0 ? ACF_OK : failure(&f->in, i, bad[i], largest[i], n->out[0]->data);
    acf_arena_release(t->mem, mark);
    return status;
}

static acf_status apply_forward(acf_tape *t, acf_node *n) {
    const acf_lowrank_in *in = &object_of(n)->in;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, in);
    ACF_TRY(acf_tape_status(t));
    acf_lowrank_apply_fwd_cpu(t->dev, n->out[0]->data, in, n->in[3]->data, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status logdet_forward(acf_tape *t, acf_node *n) {
    const acf_lowrank_in *in = &object_of(n)->in;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, in);
    ACF_TRY(acf_tape_status(t));
    acf_lowrank_logdet_fwd_cpu(t->dev, n->out[0]->data, in, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status solve_forward(acf_tape *t, acf_node *n) {
    const acf_lowrank_in *in = &object_of(n)->in;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, in);
    ACF_TRY(acf_tape_status(t));
    acf_lowrank_solve_fwd_cpu(t->dev, n->out[0]->data, in, n->in[3]->data, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

typedef enum part { APPLY, LOGDET, SOLVE } part;

/* The three backwards differ in one call. For a diagonal shared by all rows, (N,D) contributions are computed first
 * and then summed over the rows in order. */
static acf_status backward(acf_tape *t, acf_node *n, part which) {
    const acf_lowrank_in *in = &object_of(n)->in;
    const int64_t N = in->u->N, D = in->u->D;
    const acf_real *dy = n->out[0]->grad;
    acf_real *dw = acf_grad(t, n->in[0]), *dv = acf_grad(t, n->in[3]);
    acf_lowrank_grad g = {dw, acf_grad(t, n->in[1]), acf_grad(t, n->in[2])};
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, in);
    if (dw && !in->w_stride) g.dw = acf_tape_reals(t, N * D);
    ACF_TRY(acf_tape_status(t));
    if (g.dw != dw) memset(g.dw, 0, (size_t)(N * D) * sizeof *g.dw);
    if (which == APPLY) acf_lowrank_apply_bwd_cpu(t->dev, &g, dv, dy, in, n->in[3]->data, scratch);
    if (which == LOGDET) acf_lowrank_logdet_bwd_cpu(t->dev, &g, dy, in, scratch);
    if (which == SOLVE) acf_lowrank_solve_bwd_cpu(t->dev, &g, dv, dy, in, n->out[0]->data, scratch);
    if (g.dw != dw) acf_cpu_colsum(t->dev, dw, g.dw, N, D, D);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status apply_backward(acf_tape *t, acf_node *n) { return backward(t, n, APPLY); }
static acf_status logdet_backward(acf_tape *t, acf_node *n) { return backward(t, n, LOGDET); }
static acf_status solve_backward(acf_tape *t, acf_node *n) { return backward(t, n, SOLVE); }

/* The factors have no backward: the operations that use them send their gradients to w, a and b. */
const acf_op acf_op_lowrank_factor = {"lowrank_factor", ACF_OP_lowrank_factor, {factor_forward, NULL}};
const acf_op acf_op_lowrank_apply = {"lowrank_apply", ACF_OP_lowrank_apply, {apply_forward, apply_backward}};
const acf_op acf_op_lowrank_logdet = {"lowrank_logdet", ACF_OP_lowrank_logdet, {logdet_forward, logdet_backward}};
const acf_op acf_op_lowrank_solve = {"lowrank_solve", ACF_OP_lowrank_solve, {solve_forward, solve_backward}};

/* ---- front ends ------------------------------------------------------------------------------------------------ */

acf_lowrank *acf_lowrank_factor(acf_tape *t, acf_tensor *w, acf_tensor *a, acf_tensor *b, int64_t r,
                                const acf_subset *u) {
    char sw[ACF_SHAPE_TEXT], sa[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    const acf_op *op = &acf_op_lowrank_factor;
    if (t->failure.status) return NULL;
    const int64_t N = u->N, D = u->D;
    const bool shared = w->ndim == 1 && w->dim[0] == D, own = w->ndim == 2 && w->dim[0] == N && w->dim[1] == D;
    if (r < 1 || a->ndim != 2 || b->ndim != 2 || a->dim[0] != N || b->dim[0] != N || a->dim[1] != D * r ||
        b->dim[1] != D * r)
        acf_reject(t, op,
                   "a is %s and b is %s; expected (%lld, %lld) for both: %lld columns times rank %lld, at least 1",
                   acf_tensor_shape(a, sa), acf_tensor_shape(b, sb), (long long)N, (long long)(D * r), (long long)D,
                   (long long)r);
    else if (!shared && !own)
        acf_reject(t, op, "the diagonal is %s; expected (%lld) or (%lld, %lld)", acf_tensor_shape(w, sw), (long long)D,
                   (long long)N, (long long)D);
    if (t->failure.status) return NULL;
    acf_lowrank *f = acf_arena_alloc(t->host, sizeof *f);
    if (!f) {
        acf_tape_fail(t, op);
        return NULL;
    }
    *f = (acf_lowrank){.in = {.u = u, .r = r, .w_stride = own ? D : 0, .w = w->data, .a = a->data, .b = b->data},
                       .w = w,
                       .a = a,
                       .b = b};
    return f;
}

/* Runs one operation; v (named `name` in the sentence) may be NULL for one on the matrices alone. */
static acf_tensor *run(acf_tape *t, const acf_op *op, acf_lowrank *f, const char *name, acf_tensor *v) {
    char s[ACF_SHAPE_TEXT];
    if (t->failure.status) return &t->empty;
    const acf_subset *u = f->in.u;
    acf_node *n = acf_node_new(t, op, sizeof(acf_lowrank_attrs), 5, (acf_tensor *[]){f->w, f->a, f->b, v, f->k});
    if (!n) return &t->empty;
    if (v && !acf_is_packed(v, u))
        return acf_reject(t, op, "%s is %s; expected (%lld packed) over the subset of the matrices", name,
                          acf_tensor_shape(v, s), (long long)u->T);
    ((acf_lowrank_attrs *)n->attr)->f = f;
    n->out[0] = v ? acf_tensor_packed(t, u, 0) : acf_tensor_new(t, 1, &u->N);
    return acf_node_run(t, n);
}

/* Factorises K on first use; false after a failure. */
static bool factored(acf_tape *t, acf_lowrank *f) {
    if (t->failure.status) return false;
    if (f->k) return true;
    const int64_t N = f->in.u->N, r = f->in.r;
    acf_node *n =
        acf_node_new(t, &acf_op_lowrank_factor, sizeof(acf_lowrank_attrs), 3, (acf_tensor *[]){f->w, f->a, f->b});
    if (!n) return false;
    ((acf_lowrank_attrs *)n->attr)->f = f;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){N, r * r});
    f->order = acf_tape_ints(t, N * r);
    acf_tensor *k = acf_node_run(t, n);
    if (t->failure.status) return false;
    f->k = k;
    f->in.k = k->data, f->in.order = f->order;
    return true;
}

acf_tensor *acf_lowrank_apply(acf_tape *t, acf_lowrank *f, acf_tensor *x) {
    return run(t, &acf_op_lowrank_apply, f, "x", x);
}

acf_tensor *acf_lowrank_logdet(acf_tape *t, acf_lowrank *f) {
    return factored(t, f) ? run(t, &acf_op_lowrank_logdet, f, "", NULL) : &t->empty;
}

acf_tensor *acf_lowrank_solve(acf_tape *t, acf_lowrank *f, acf_tensor *z) {
    return factored(t, f) ? run(t, &acf_op_lowrank_solve, f, "z", z) : &t->empty;
}
