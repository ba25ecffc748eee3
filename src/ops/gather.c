/* Moving rows: see gather.h; adjoints in docs/math.md, 4.
 *
 * Workload: T = 1e3 to 1e5 packed elements a call, several times per flow layer with C = 1. Everything is bound by
 * memory, so the order of reads matters most.
 *
 * A scatter-add with repeated indices is the one hard case: no two threads may write one row, and a row's terms must
 * be added in one order. Positions are sorted by index (a counting sort, stable, so terms come in order of
 * position), and destination rows are divided among threads. Maps without repeats need no sort. */
#include "ops/gather.h"

#include <string.h>

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* Most maps move single numbers: without the branch the vector loop's start and end would dominate. */
static inline void copy_row(acf_real *y, const acf_real *x, int64_t C) {
    if (C == 1) {
        y[0] = x[0];
        return;
    }
    ACF_SIMD
    for (int64_t c = 0; c < C; c++) y[c] = x[c];
}

static inline void fill_row(acf_real *y, acf_real value, int64_t C) {
    ACF_SIMD
    for (int64_t c = 0; c < C; c++) y[c] = value;
}

static inline void add_row(acf_real *y, const acf_real *x, int64_t C) {
    if (C == 1) {
        y[0] += x[0];
        return;
    }
    ACF_SIMD
    for (int64_t c = 0; c < C; c++) y[c] += x[c];
}

void acf_gather_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const int32_t *index, acf_real fill,
                        int64_t n, int64_t C) {
    ACF_PARALLEL(dev, n * C)
    for (int64_t p = 0; p < n; p++) {
        if (index[p] < 0)
            fill_row(y + p * C, fill, C);
        else
            copy_row(y + p * C, x + index[p] * C, C);
    }
}

void acf_gather_unique_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const int32_t *index, int64_t n,
                               int64_t C) {
    ACF_PARALLEL(dev, n * C)
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) add_row(dx + index[p] * C, dy + p * C, C);
}

void acf_gather_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const int32_t *index, int32_t *scratch,
                        int64_t n, int64_t R, int64_t C) {
    int32_t *end = scratch, *order = scratch + R, sum = 0; /* positions of row r: order[end[r-1] .. end[r]) */
    memset(end, 0, (size_t)R * sizeof *end);
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) end[index[p]]++;
    for (int64_t r = 0; r < R; r++) { /* turns counts into starts; filling moves the starts to the ends */
        int32_t count = end[r];
        end[r] = sum;
        sum += count;
    }
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) order[end[index[p]]++] = (int32_t)p;
    ACF_PARALLEL_UNEVEN(dev, n * C)
    for (int64_t r = 0; r < R; r++)
        for (int64_t k = r ? end[r - 1] : 0; k < end[r]; k++) add_row(dx + r * C, dy + order[k] * C, C);
}

void acf_scatter_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const int32_t *index, int64_t n,
                         int64_t C) {
    ACF_PARALLEL(dev, n * C)
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) copy_row(y + index[p] * C, v + p * C, C);
}

void acf_scatter_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, const int32_t *index, int64_t n,
                         int64_t C) {
    ACF_PARALLEL(dev, n * C)
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) add_row(dv + p * C, dy + index[p] * C, C);
}

/* taken[r] = how many indices point to row r. */
static void count_uses(int32_t *taken, const int32_t *index, int64_t n, int64_t R) {
    memset(taken, 0, (size_t)R * sizeof *taken);
    for (int64_t p = 0; p < n; p++)
        if (index[p] >= 0) taken[index[p]]++;
}

void acf_scatter_base_bwd_cpu(const acf_device *dev, acf_real *dbase, const acf_real *dy, const int32_t *index,
                              int32_t *scratch, int64_t n, int64_t R, int64_t C) {
    count_uses(scratch, index, n, R);
    ACF_PARALLEL(dev, R * C)
    for (int64_t r = 0; r < R; r++)
        if (!scratch[r]) add_row(dbase + r * C, dy + r * C, C);
}

/* ---- gather ----------------------------------------------------------------------------------------------------- */

static acf_status check_range(const acf_gather_attrs *a) {
    for (int64_t p = 0; p < a->n; p++)
        if (a->index[p] < -1 || a->index[p] >= a->R)
            return acf_fail(ACF_EDATA, "the index at place %lld is %d; expected -1 to %lld", (long long)p, a->index[p],
                            (long long)a->R - 1);
    return ACF_OK;
}

static acf_status gather_forward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = n->attr;
    if (!a->u) ACF_TRY(check_range(a));
    acf_gather_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, a->index, a->fill, a->n, a->C);
    return ACF_OK;
}

static acf_status gather_backward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = n->attr;
    acf_real *dx = acf_grad(t, n->in[0]);
    const acf_real *dy = n->out[0]->grad;
    if (!dx) return acf_tape_status(t);
    if (a->u) {
        acf_gather_unique_bwd_cpu(t->dev, dx, dy, a->index, a->n, a->C);
        return ACF_OK;
    }
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *scratch = acf_tape_ints(t, a->R + a->n);
    if (scratch) acf_gather_bwd_cpu(t->dev, dx, dy, a->index, scratch, a->n, a->R, a->C);
    acf_arena_release(t->mem, mark);
    return acf_tape_status(t);
}

const acf_op acf_op_gather = {"gather", ACF_OP_gather, {gather_forward, gather_backward}};

/* Runs a gather or scatter node whose output has `rows` rows of the shape of `like`'s rows. */
static acf_tensor *run(acf_tape *t, acf_node *n, acf_gather_attrs a, const acf_tensor *like, int64_t rows,
                       const acf_subset *sub) {
    *(acf_gather_attrs *)n->attr = a;
    n->out[0] = acf_tensor_new(t, like->ndim, (int64_t[]){rows, like->dim[1]});
    n->out[0]->sub = sub;
    return acf_node_run(t, n);
}

/* The shape of a list of numbers or of rows. */
static bool is_list(const acf_tensor *x) { return x->ndim == 1 || x->ndim == 2; }

/* A map with one position per element of u, into x. */
static acf_gather_attrs map_of_subset(const acf_subset *u, const int32_t *index, const acf_tensor *x, double fill) {
    return (acf_gather_attrs){index, u->T, acf_tensor_rows(x), acf_tensor_width(x), (acf_real)fill, u};
}

acf_tensor *acf_gather(acf_tape *t, acf_tensor *x, const int32_t *index, int64_t n, double fill) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *node = acf_node_new(t, &acf_op_gather, sizeof(acf_gather_attrs), 1, &x);
    if (!node) return &t->empty;
    if (!is_list(x) || n < 0 || n > INT32_MAX || acf_tensor_rows(x) > INT32_MAX)
        return acf_reject(t, &acf_op_gather, "%lld rows of x %s; expected (R) or (R, C), and fewer than 2^31 rows",
                          (long long)n, acf_tensor_shape(x, sx));
    acf_gather_attrs a = {index, n, acf_tensor_rows(x), acf_tensor_width(x), (acf_real)fill, NULL};
    return run(t, node, a, x, n, NULL);
}

acf_tensor *acf_gather_packed(acf_tape *t, acf_tensor *x, const int32_t *index, const acf_subset *u) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_gather, sizeof(acf_gather_attrs), 1, &x);
    if (!n) return &t->empty;
    if (!is_list(x)) return acf_reject(t, n->op, "rows of x %s; expected (R) or (R, C)", acf_tensor_shape(x, sx));
    return run(t, n, map_of_subset(u, index, x, 0), x, u->T, u);
}

acf_tensor *acf_gather_cells(acf_tape *t, acf_tensor *x, const acf_subset *u) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_gather, sizeof(acf_gather_attrs), 1, &x);
    if (!n) return &t->empty;
    if (x->ndim != 2 || x->sub || x->dim[0] != u->N || x->dim[1] != u->D)
        return acf_reject(t, &acf_op_gather, "the cells of x %s; the subset has (%lld, %lld)", acf_tensor_shape(x, sx),
                          (long long)u->N, (long long)u->D);
    *(acf_gather_attrs *)n->attr = (acf_gather_attrs){u->cell, u->T, u->N * u->D, 1, 0, u};
    n->out[0] = acf_tensor_packed(t, u, 0);
    return acf_node_run(t, n);
}

/* v (T[,C]) rearranged by a map of the subset it is packed over. */
static acf_tensor *within(acf_tape *t, acf_tensor *v, const acf_subset *u, bool back, double fill) {
    char sv[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_gather, sizeof(acf_gather_attrs), 1, &v);
    if (!n) return &t->empty;
    if (!is_list(v) || v->sub != u)
        return acf_reject(t, &acf_op_gather, "v is %s; expected (T) or (T, C) packed over the given subset",
                          acf_tensor_shape(v, sv));
    return run(t, n, map_of_subset(u, back ? u->mirror : u->prev, v, fill), v, u->T, u);
}

acf_tensor *acf_gather_prev(acf_tape *t, acf_tensor *v, const acf_subset *u, double start) {
    return within(t, v, u, false, start);
}

acf_tensor *acf_reverse(acf_tape *t, acf_tensor *v, const acf_subset *u) { return within(t, v, u, true, 0); }

/* ---- halves of a subset ---------------------------------------------------------------------------------------- */

acf_tensor *acf_pick(acf_tape *t, acf_tensor *v, const acf_subset *child) {
    char sv[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_gather, sizeof(acf_gather_attrs), 1, &v);
    if (!n) return &t->empty;
    if (!is_list(v) || !child->whole || v->sub != child->whole)
        return acf_reject(t, &acf_op_gather, "v is %s; expected it packed over the subset that was split",
                          acf_tensor_shape(v, sv));
    return run(t, n, map_of_subset(child, child->parent, v, 0), v, child->T, child);
}

static acf_status merge_forward(acf_tape *t, acf_node *n) {
    for (int k = 0; k < 2; k++)
        acf_scatter_fwd_cpu(t->dev, n->out[0]->data, n->in[k]->data, n->in[k]->sub->parent, n->in[k]->sub->T,
                            acf_tensor_width(n->in[k]));
    return ACF_OK;
}

static acf_status merge_backward(acf_tape *t, acf_node *n) {
    for (int k = 0; k < 2; k++) {
        acf_real *dv = acf_grad(t, n->in[k]);
        if (dv)
            acf_scatter_bwd_cpu(t->dev, dv, n->out[0]->grad, n->in[k]->sub->parent, n->in[k]->sub->T,
                                acf_tensor_width(n->in[k]));
    }
    return acf_tape_status(t);
}

const acf_op acf_op_merge = {"merge", ACF_OP_merge, {merge_forward, merge_backward}};

static bool is_half(const acf_tensor *v, const acf_subset *u, int parity) {
    return is_list(v) && v->sub && v->sub->whole == u && v->sub->parity == parity;
}

acf_tensor *acf_merge(acf_tape *t, acf_tensor *even, acf_tensor *odd, const acf_subset *u) {
    char se[ACF_SHAPE_TEXT], so[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_merge, 0, 2, (acf_tensor *[]){even, odd});
    if (!n) return &t->empty;
    if (!is_half(even, u, 0) || !is_half(odd, u, 1) || even->ndim != odd->ndim ||
        acf_tensor_width(even) != acf_tensor_width(odd))
        return acf_reject(
            t, &acf_op_merge,
            "the parts are %s and %s; expected rows of the same width, packed over the even and the odd half",
            acf_tensor_shape(even, se), acf_tensor_shape(odd, so));
    n->out[0] = acf_tensor_new(t, even->ndim, (int64_t[]){u->T, even->dim[1]});
    n->out[0]->sub = u;
    return acf_node_run(t, n);
}

/* ---- scatter --------------------------------------------------------------------------------------------------- */

static acf_status check_repeats(acf_tape *t, const acf_gather_attrs *a) {
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *taken = acf_tape_ints(t, a->R);
    if (!taken) return acf_tape_status(t);
    count_uses(taken, a->index, a->n, a->R);
    int64_t row = 0;
    while (row < a->R && taken[row] < 2) row++;
    acf_arena_release(t->mem, mark);
    return row == a->R ? ACF_OK : acf_fail(ACF_EDATA, "row %lld is the target of several indices", (long long)row);
}

static acf_status scatter_forward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = n->attr;
    const acf_real *base = n->in[1] ? n->in[1]->data : NULL;
    acf_real *y = n->out[0]->data;
    if (!a->u) {
        ACF_TRY(check_range(a));
        ACF_TRY(check_repeats(t, a));
    }
    ACF_PARALLEL(t->dev, a->R * a->C)
    for (int64_t c = 0; c < a->R * a->C; c += ACF_CHUNK) {
        int64_t k = acf_min(ACF_CHUNK, a->R * a->C - c);
        if (base)
            copy_row(y + c, base + c, k);
        else
            fill_row(y + c, a->fill, k);
    }
    acf_scatter_fwd_cpu(t->dev, y, n->in[0]->data, a->index, a->n, a->C);
    return ACF_OK;
}

static acf_status scatter_backward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = n->attr;
    acf_real *dv = acf_grad(t, n->in[0]), *dbase = acf_grad(t, n->in[1]);
    const acf_real *dy = n->out[0]->grad;
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *taken = dbase ? acf_tape_ints(t, a->R) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (dv) acf_scatter_bwd_cpu(t->dev, dv, dy, a->index, a->n, a->C);
    if (dbase) acf_scatter_base_bwd_cpu(t->dev, dbase, dy, a->index, taken, a->n, a->R, a->C);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_scatter = {"scatter", ACF_OP_scatter, {scatter_forward, scatter_backward}};

acf_tensor *acf_scatter(acf_tape *t, acf_tensor *v, const int32_t *index, int64_t R, acf_tensor *base, double fill) {
    char sv[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_scatter, sizeof(acf_gather_attrs), 2, (acf_tensor *[]){v, base});
    if (!n) return &t->empty;
    if (!is_list(v) || R < 0 || R > INT32_MAX)
        return acf_reject(t, &acf_op_scatter,
                          "v is %s, with %lld rows to write to; expected (n) or (n, C), and fewer than 2^31 rows",
                          acf_tensor_shape(v, sv), (long long)R);
    if (base && (base->ndim != v->ndim || base->dim[0] != R || acf_tensor_width(base) != acf_tensor_width(v)))
        return acf_reject(t, &acf_op_scatter, "the base is %s; expected %lld rows like those of v %s",
                          acf_tensor_shape(base, sb), (long long)R, acf_tensor_shape(v, sv));
    acf_gather_attrs a = {index, acf_tensor_rows(v), R, acf_tensor_width(v), (acf_real)fill, NULL};
    return run(t, n, a, v, R, base ? base->sub : NULL);
}

acf_tensor *acf_scatter_cells(acf_tape *t, acf_tensor *v, const acf_subset *u, acf_tensor *base) {
    char sv[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_scatter, sizeof(acf_gather_attrs), 2, (acf_tensor *[]){v, base});
    if (!n) return &t->empty;
    if (v->ndim != 1 || v->sub != u)
        return acf_reject(t, &acf_op_scatter, "v is %s; expected (T) packed over the given subset",
                          acf_tensor_shape(v, sv));
    if (base && (base->ndim != 2 || base->sub || base->dim[0] != u->N || base->dim[1] != u->D))
        return acf_reject(t, &acf_op_scatter, "the base is %s; the subset has (%lld, %lld)", acf_tensor_shape(base, sb),
                          (long long)u->N, (long long)u->D);
    *(acf_gather_attrs *)n->attr = (acf_gather_attrs){u->cell, u->T, u->N * u->D, 1, 0, u};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){u->N, u->D});
    return acf_node_run(t, n);
}

/* ---- one step at a time ---------------------------------------------------------------------------------------- */

acf_tensor *acf_step_slice(acf_tape *t, acf_tensor *v, const acf_subset *u, int64_t step) {
    char sv[ACF_SHAPE_TEXT];
    if (t->failure.status) return &t->empty;
    const acf_steps at = acf_tape_steps(t, u);
    if (t->failure.status) return &t->empty;
    if (!is_list(v) || v->sub != u || step < 0 || step >= at.n) {
        acf_fail(ACF_ESHAPE,
                 "step_slice: step %lld of %s; expected a tensor packed over the given subset, of %lld steps",
                 (long long)step, acf_tensor_shape(v, sv), (long long)at.n);
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    int64_t from = at.first[step] * acf_tensor_width(v);
    acf_tensor *slice = acf_tensor_wrap(t, v->data + from, v->ndim, (int64_t[]){at.active[step], v->dim[1]});
    slice->row_of = u->row;
    if (slice == &t->empty || !v->needs_grad) return slice;
    acf_real *grad = acf_grad(t, v);
    if (!grad) return &t->empty;
    slice->needs_grad = true;
    slice->grad = grad + from;
    return slice;
}

static acf_status stack_forward(acf_tape *t, acf_node *n) {
    const acf_stack_attrs *a = n->attr;
    (void)t;
    int64_t C = acf_tensor_width(n->out[0]);
    for (int64_t s = 0; s < a->at.n; s++)
        copy_row(n->out[0]->data + a->at.first[s] * C, a->step[s]->data, a->at.active[s] * C);
    return ACF_OK;
}

static acf_status stack_backward(acf_tape *t, acf_node *n) {
    const acf_stack_attrs *a = n->attr;
    int64_t C = acf_tensor_width(n->out[0]);
    for (int64_t s = 0; s < a->at.n; s++) {
        acf_real *dv = acf_grad(t, a->step[s]);
        if (dv) add_row(dv, n->out[0]->grad + a->at.first[s] * C, a->at.active[s] * C);
    }
    return acf_tape_status(t);
}

const acf_op acf_op_step_stack = {"step_stack", ACF_OP_step_stack, {stack_forward, stack_backward}};

acf_tensor *acf_step_stack(acf_tape *t, acf_tensor *const *v, const acf_subset *u) {
    char sv[ACF_SHAPE_TEXT];
    const acf_steps at = acf_tape_steps(t, u);
    acf_node *n = acf_node_new(t, &acf_op_step_stack, sizeof(acf_stack_attrs), 0, NULL);
    if (!n) return &t->empty;
    int ndim = at.n ? v[0]->ndim : 1;
    int64_t C = at.n ? acf_tensor_width(v[0]) : 1;
    acf_stack_attrs *a = n->attr;
    a->at = at;
    a->step = acf_arena_alloc(t->host, (size_t)at.n * sizeof *a->step);
    if (!a->step) {
        acf_tape_fail(t, &acf_op_step_stack);
        return &t->empty;
    }
    for (int64_t s = 0; s < at.n; s++) {
        if (!is_list(v[s]) || v[s]->ndim != ndim || v[s]->dim[0] != at.active[s] || acf_tensor_width(v[s]) != C)
            return acf_reject(t, &acf_op_step_stack, "step %lld is %s; expected %lld rows of width %lld", (long long)s,
                              acf_tensor_shape(v[s], sv), (long long)at.active[s], (long long)C);
        a->step[s] = v[s];
        if (v[s]->needs_grad) n->save = t->record;
    }
    n->out[0] = acf_tensor_new(t, ndim, (int64_t[]){u->T, C});
    n->out[0]->sub = u;
    return acf_node_run(t, n);
}
