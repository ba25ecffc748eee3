/* Per-row matrices on the modelled columns: see submatrix.h; formulas in docs/math.md, 6.
 *
 * Workload: N = 256 to 4096 rows, |u| = 1 to 64, r = 1 to 32. Cost N·|u|²·r multiply-adds; the columns u of B are
 * gathered once per row, so the inner loops are contiguous. */
#include "ops/submatrix.h"

#include "ops/rowmat.h"

/* Columns u of B_i (r,D), as r rows of ld. */
static void gather_columns(acf_real *bu, int64_t ld, const acf_real *b, int64_t r, const acf_subset *u, int64_t i) {
    const int32_t *cols = u->cols + i * u->D;
    for (int64_t q = 0; q < r; q++)
        for (int64_t s = 0; s < u->size[i]; s++) bu[q * ld + s] = b[q * u->D + cols[s]];
}

/* m (n) = base row at the modelled columns, or zero. */
static void base_row(acf_real *m, const acf_real *base, const int32_t *cols, int64_t row, int64_t D, int64_t n) {
    if (base)
        for (int64_t s = 0; s < n; s++) m[s] = base[row * D + cols[s]];
    else
        for (int64_t s = 0; s < n; s++) m[s] = 0;
}

/* m (n) += the product of one row of A (r) and B_u (r,ld), a vector of columns at a time: the sum stays in a register.
 * The last vector reads the padding of B_u and drops it. */
static void add_product(acf_real *m, const acf_real *a, const acf_real *bu, int64_t ld, int64_t r, int64_t n) {
    for (int64_t s = 0; s < n; s += ACF_LANES) {
        acf_lanes sum = {0};
        for (int64_t q = 0; q < r; q++) sum += a[q] * *(const acf_lanes *)(bu + q * ld + s);
        const int64_t width = acf_min(ACF_LANES, n - s);
        for (int64_t v = 0; v < width; v++) m[s + v] += sum[v];
    }
}

void acf_submatrix_fwd_cpu(const acf_device *dev, acf_real *m, const acf_real *base, const acf_real *a,
                           const acf_real *b, int64_t r, const acf_subset *u, acf_real *scratch) {
    const int64_t D = u->D, ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N] * r)
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const int32_t *cols = u->cols + i * D;
        acf_real *bu = acf_row_scratch(scratch, r * ld), *mi = m + u->square[i];
        gather_columns(bu, ld, b + i * r * D, r, u, i);
        for (int64_t t = 0; t < n; t++) {
            base_row(mi + t * n, base, cols, cols[t], D, n);
            add_product(mi + t * n, a + (i * D + cols[t]) * r, bu, ld, r, n);
        }
    }
}

void acf_submatrix_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dm, const acf_real *a,
                           const acf_real *b, int64_t r, const acf_subset *u, acf_real *scratch) {
    const int64_t D = u->D, ld = acf_pad(u->steps);
    ACF_PARALLEL_UNEVEN(dev, 2 * u->square[u->N] * r)
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const int32_t *cols = u->cols + i * D;
        const acf_real *dmi = dm + u->square[i];
        acf_real *bu = acf_row_scratch(scratch, 2 * r * ld), *dbu = bu + r * ld;
        if (da) { /* dA[u,:] += dM · B_uᵀ */
            gather_columns(bu, ld, b + i * r * D, r, u, i);
            for (int64_t t = 0; t < n; t++)
                for (int64_t q = 0; q < r; q++)
                    da[(i * D + cols[t]) * r + q] += acf_row_dot(dmi + t * n, bu + q * ld, n);
        }
        if (db) { /* dB[:,u] += A_uᵀ · dM */
            for (int64_t s = 0; s < r * ld; s++) dbu[s] = 0;
            for (int64_t t = 0; t < n; t++)
                for (int64_t q = 0; q < r; q++)
                    acf_row_axpy(dbu + q * ld, a[(i * D + cols[t]) * r + q], dmi + t * n, n);
            for (int64_t q = 0; q < r; q++)
                for (int64_t s = 0; s < n; s++) db[(i * r + q) * D + cols[s]] += dbu[q * ld + s];
        }
    }
}

void acf_submatrix_full_fwd_cpu(const acf_device *dev, acf_real *m, const acf_real *base, const acf_real *c,
                                const acf_subset *u) {
    const int64_t D = u->D;
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const int32_t *cols = u->cols + i * D;
        for (int64_t t = 0; t < n; t++) {
            acf_real *row = m + u->square[i] + t * n;
            base_row(row, base, cols, cols[t], D, n);
            for (int64_t s = 0; s < n; s++) row[s] += c[(i * D + cols[t]) * D + cols[s]];
        }
    }
}

void acf_submatrix_full_bwd_cpu(const acf_device *dev, acf_real *dc, const acf_real *dm, const acf_subset *u) {
    const int64_t D = u->D;
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k], n = u->size[i];
        const int32_t *cols = u->cols + i * D;
        for (int64_t t = 0; t < n; t++)
            for (int64_t s = 0; s < n; s++) dc[(i * D + cols[t]) * D + cols[s]] += dm[u->square[i] + t * n + s];
    }
}

/* One base row is one iteration: it writes memory of its own and takes the batch rows in order, so the sum does not
 * depend on threads. place is the position of column c in row i's compact order. */
void acf_submatrix_base_bwd_cpu(const acf_device *dev, acf_real *dbase, const acf_real *dm, const acf_subset *u,
                                int32_t *place) {
    const int64_t D = u->D;
    ACF_PARALLEL(dev, u->N * D)
    for (int64_t i = 0; i < u->N; i++) {
        for (int64_t c = 0; c < D; c++) place[i * D + c] = -1;
        for (int64_t t = 0; t < u->size[i]; t++) place[i * D + u->cols[i * D + t]] = (int32_t)t;
    }
    ACF_PARALLEL_UNEVEN(dev, u->square[u->N])
    for (int64_t c = 0; c < D; c++)
        for (int64_t i = 0; i < u->N; i++) {
            const int64_t t = place[i * D + c], n = u->size[i];
            if (t < 0) continue;
            const acf_real *row = dm + u->square[i] + t * n;
            for (int64_t s = 0; s < n; s++) dbase[c * D + u->cols[i * D + s]] += row[s];
        }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

static acf_status base_backward(acf_tape *t, acf_real *dbase, const acf_real *dm, const acf_subset *u) {
    int32_t *place = dbase ? acf_tape_ints(t, u->N * u->D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (dbase) acf_submatrix_base_bwd_cpu(t->dev, dbase, dm, u, place);
    return ACF_OK;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_submatrix_attrs *at = n->attr;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, at->r * acf_pad(at->u->steps));
    ACF_TRY(acf_tape_status(t));
    acf_submatrix_fwd_cpu(t->dev, n->out[0]->data, data_of(n->in[0]), n->in[1]->data, n->in[2]->data, at->r, at->u,
                          scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_submatrix_attrs *at = n->attr;
    acf_real *dbase = acf_grad(t, n->in[0]), *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_rows_scratch(t, 2 * at->r * acf_pad(at->u->steps));
    ACF_TRY(acf_tape_status(t));
    if (da || db)
        acf_submatrix_bwd_cpu(t->dev, da, db, n->out[0]->grad, n->in[1]->data, n->in[2]->data, at->r, at->u, scratch);
    ACF_TRY(base_backward(t, dbase, n->out[0]->grad, at->u));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_submatrix = {"submatrix", ACF_OP_submatrix, {forward, backward}};

static acf_status full_forward(acf_tape *t, acf_node *n) {
    acf_submatrix_full_fwd_cpu(t->dev, n->out[0]->data, data_of(n->in[0]), n->in[1]->data,
                               ((acf_submatrix_attrs *)n->attr)->u);
    return ACF_OK;
}

static acf_status full_backward(acf_tape *t, acf_node *n) {
    const acf_submatrix_attrs *at = n->attr;
    acf_real *dbase = acf_grad(t, n->in[0]), *dc = acf_grad(t, n->in[1]);
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(acf_tape_status(t));
    if (dc) acf_submatrix_full_bwd_cpu(t->dev, dc, n->out[0]->grad, at->u);
    ACF_TRY(base_backward(t, dbase, n->out[0]->grad, at->u));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_submatrix_full = {"submatrix_full", ACF_OP_submatrix_full, {full_forward, full_backward}};

/* ---- front ends -------------------------------------------------------------------------------------------------- */

static bool is_matrix(const acf_tensor *x, int64_t rows, int64_t cols) {
    return x->ndim == 2 && x->dim[0] == rows && x->dim[1] == cols;
}

/* The last steps of both: base, attributes, output. */
static acf_tensor *finish(acf_tape *t, acf_node *n, acf_tensor *base, int64_t r, const acf_subset *u) {
    char s[ACF_SHAPE_TEXT];
    if (base && !is_matrix(base, u->D, u->D))
        return acf_reject(t, n->op, "the base is %s; expected (%lld, %lld)", acf_tensor_shape(base, s), (long long)u->D,
                          (long long)u->D);
    *(acf_submatrix_attrs *)n->attr = (acf_submatrix_attrs){u, r};
    n->out[0] = acf_square_new(t, u);
    return acf_node_run(t, n);
}

acf_tensor *acf_submatrix(acf_tape *t, acf_tensor *base, acf_tensor *a, acf_tensor *b, int64_t r, const acf_subset *u) {
    char sa[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_submatrix, sizeof(acf_submatrix_attrs), 3, (acf_tensor *[]){base, a, b});
    if (!n) return &t->empty;
    if (r < 1) return acf_reject_value(t, n->op, "the rank is %lld; expected 1 or more", (long long)r);
    if (!is_matrix(a, u->N, u->D * r) || !is_matrix(b, u->N, u->D * r))
        return acf_reject(t, n->op, "a is %s and b is %s; expected (%lld, %lld) for both: %lld columns times rank %lld",
                          acf_tensor_shape(a, sa), acf_tensor_shape(b, sb), (long long)u->N, (long long)(u->D * r),
                          (long long)u->D, (long long)r);
    return finish(t, n, base, r, u);
}

acf_tensor *acf_submatrix_full(acf_tape *t, acf_tensor *base, acf_tensor *c, const acf_subset *u) {
    char s[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_submatrix_full, sizeof(acf_submatrix_attrs), 2, (acf_tensor *[]){base, c});
    if (!n) return &t->empty;
    if (!is_matrix(c, u->N, u->D * u->D))
        return acf_reject(t, n->op, "c is %s; expected (%lld, %lld)", acf_tensor_shape(c, s), (long long)u->N,
                          (long long)(u->D * u->D));
    return finish(t, n, base, 0, u);
}
