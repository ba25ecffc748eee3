/* Prefix sums: see prefix_sum.h; formulas in docs/math.md, 5.
 *
 * Workload: T = 1e3 to 1e5 elements, F = 64 to 512 units. Memory traffic dominates; products of 2·T·F² FLOP follow. The
 * sums of all rows advance from step to step in the packed order, so y is written once from front to back and dy read
 * once from back to front. Threads share the units in blocks of a fixed width. One thread computes a block's part of
 * every gradient, so every sum has one order. Rows cannot be shared this way: two of them may use the same slot. */
#include "ops/prefix_sum.h"

#include <string.h>

#define BLOCK 64 /* units per block: four cache lines of float; the sums of 256 rows are 64 kB */

int64_t acf_prefix_sum_parts(int64_t F) { return acf_ceil_div(F, BLOCK); }

/* ---- kernels: rows of w numbers ---------------------------------------------------------------------------------- */

static inline void add(acf_real *y, const acf_real *x, int64_t w) {
    ACF_SIMD
    for (int64_t f = 0; f < w; f++) y[f] += x[f];
}

static inline void add_scaled(acf_real *y, acf_real a, const acf_real *x, int64_t w) {
    ACF_SIMD
    for (int64_t f = 0; f < w; f++) y[f] += a * x[f];
}

static inline acf_real dot(const acf_real *x, const acf_real *y, int64_t w) {
    acf_real sum = 0;
    ACF_PRAGMA(omp simd reduction(+ : sum))
    for (int64_t f = 0; f < w; f++) sum += x[f] * y[f];
    return sum;
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

/* Rows that have a step after s. */
static int64_t going_on(const acf_subset *u, int64_t s) { return s + 1 < u->steps ? u->active[s + 1] : 0; }

void acf_prefix_sum_fwd_cpu(const acf_device *dev, const acf_prefix_sum_plan *r, acf_real *y, acf_real *sums,
                            const acf_real *base, const acf_real *here, const acf_real *v, const acf_real *wv,
                            const acf_real *wk) {
    const acf_subset *u = r->u;
    int64_t F = r->F, parts = acf_prefix_sum_parts(F), most = u->steps ? u->active[0] : 0;
    ACF_PARALLEL(dev, u->T * F)
    for (int64_t b = 0; b < parts; b++) {
        int64_t f = b * BLOCK, w = acf_min(BLOCK, F - f);
        for (int64_t k = 0; k < most; k++) memcpy(sums + k * F + f, base + u->row[k] * F + f, (size_t)w * sizeof *sums);
        for (int64_t s = 0; s < u->steps; s++)
            for (int64_t k = 0; k < u->active[s]; k++) {
                int64_t p = u->first[s] + k, slot = r->slot[p] * F + f;
                acf_real *sum = sums + k * F + f, *out = y + p * F + f;
                memcpy(out, sum, (size_t)w * sizeof *out);
                if (here) add(out, here + r->column[p] * F + f, w);
                if (k >= going_on(u, s)) continue; /* no step of this row follows */
                if (wv) add_scaled(sum, v[p], wv + slot, w);
                add(sum, wk + slot, w);
            }
    }
}

/* `later` holds, for each row, the gradient of all its elements after the current one: the gradient of the cell's
 * terms. */
static void backward_block(const acf_prefix_sum_plan *r, acf_real *dbase, acf_real *dhere, acf_real *part,
                           acf_real *dwv, acf_real *dwk, acf_real *later, const acf_real *dy, const acf_real *v,
                           const acf_real *wv, int64_t f, int64_t w) {
    const acf_subset *u = r->u;
    int64_t F = r->F, most = u->steps ? u->active[0] : 0;
    for (int64_t k = 0; k < most; k++) memset(later + k * F + f, 0, (size_t)w * sizeof *later);
    for (int64_t s = u->steps - 1; s >= 0; s--)
        for (int64_t k = 0; k < u->active[s]; k++) {
            int64_t p = u->first[s] + k, slot = r->slot[p] * F + f;
            acf_real *g = later + k * F + f;
            bool entered = k < going_on(u, s);
            if (part) part[p] = entered ? dot(g, wv + slot, w) : 0;
            if (entered && dwv) add_scaled(dwv + slot, v[p], g, w);
            if (entered && dwk) add(dwk + slot, g, w);
            if (dhere) add(dhere + r->column[p] * F + f, dy + p * F + f, w);
            add(g, dy + p * F + f, w);
        }
    for (int64_t k = 0; dbase && k < most; k++) add(dbase + u->row[k] * F + f, later + k * F + f, w);
}

void acf_prefix_sum_bwd_cpu(const acf_device *dev, const acf_prefix_sum_plan *r, acf_real *dbase, acf_real *dhere,
                            acf_real *dv, acf_real *dwv, acf_real *dwk, acf_real *later, acf_real *part,
                            const acf_real *dy, const acf_real *v, const acf_real *wv) {
    int64_t F = r->F, T = r->u->T, parts = acf_prefix_sum_parts(F);
    ACF_PARALLEL(dev, T * F)
    for (int64_t b = 0; b < parts; b++)
        backward_block(r, dbase, dhere, dv ? part + b * T : NULL, dwv, dwk, later, dy, v, wv, b * BLOCK,
                       acf_min(BLOCK, F - b * BLOCK));
    for (int64_t b = 0; dv && b < parts; b++) add(dv, part + b * T, T);
}

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

static acf_status check_slots(const int32_t *slot, int64_t n, int64_t R) {
    for (int64_t p = 0; p < n; p++)
        if (slot[p] < 0 || slot[p] >= R)
            return acf_fail(ACF_EDATA, "the slot at place %lld is %d; expected 0 to %lld", (long long)p, slot[p],
                            (long long)R - 1);
    return ACF_OK;
}

static int64_t most_rows(const acf_subset *u) { return u->steps ? u->active[0] : 0; }

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_plan *r = (const acf_prefix_sum_plan *)n->attr;
    ACF_TRY(check_slots(r->slot, r->u->T, n->in[ACF_PREFIX_SUM_WK]->dim[0]));
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *sums = acf_tape_reals(t, most_rows(r->u) * r->F);
    if (sums)
        acf_prefix_sum_fwd_cpu(t->dev, r, n->out[0]->data, sums, n->in[ACF_PREFIX_SUM_BASE]->data,
                               data_of(n->in[ACF_PREFIX_SUM_HERE]), data_of(n->in[ACF_PREFIX_SUM_V]),
                               data_of(n->in[ACF_PREFIX_SUM_WV]), n->in[ACF_PREFIX_SUM_WK]->data);
    acf_arena_release(t->mem, mark);
    return acf_tape_status(t);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_plan *r = (const acf_prefix_sum_plan *)n->attr;
    acf_real *d[ACF_PREFIX_SUM_INPUTS];
    for (int i = 0; i < ACF_PREFIX_SUM_INPUTS; i++) d[i] = acf_grad(t, n->in[i]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *later = acf_tape_reals(t, most_rows(r->u) * r->F);
    acf_real *part = d[ACF_PREFIX_SUM_V] ? acf_tape_reals(t, acf_prefix_sum_parts(r->F) * r->u->T) : NULL;
    ACF_TRY(acf_tape_status(t));
    acf_prefix_sum_bwd_cpu(t->dev, r, d[ACF_PREFIX_SUM_BASE], d[ACF_PREFIX_SUM_HERE], d[ACF_PREFIX_SUM_V],
                           d[ACF_PREFIX_SUM_WV], d[ACF_PREFIX_SUM_WK], later, part, n->out[0]->grad,
                           data_of(n->in[ACF_PREFIX_SUM_V]), data_of(n->in[ACF_PREFIX_SUM_WV]));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_prefix_sum = {"prefix_sum", ACF_OP_prefix_sum, {forward, backward}};

/* ---- one step ---------------------------------------------------------------------------------------------------- */

void acf_prefix_sum_step_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *sums, const acf_real *v,
                                 const acf_real *wv, const acf_real *wk, const int32_t *slot, int64_t n, int64_t F) {
    ACF_PARALLEL(dev, n * F)
    for (int64_t k = 0; k < n; k++) {
        memcpy(y + k * F, sums + k * F, (size_t)F * sizeof *y);
        if (wv) add_scaled(y + k * F, v[k], wv + slot[k] * F, F);
        add(y + k * F, wk + slot[k] * F, F);
    }
}

void acf_prefix_sum_step_bwd_cpu(const acf_device *dev, acf_real *dsums, acf_real *dv, acf_real *dwv, acf_real *dwk,
                                 const acf_real *dy, const acf_real *v, const acf_real *wv, const int32_t *slot,
                                 int64_t n, int64_t F) {
    ACF_PARALLEL(dev, n * F)
    for (int64_t k = 0; k < n; k++) {
        if (dsums) add(dsums + k * F, dy + k * F, F);
        if (dv) dv[k] += dot(dy + k * F, wv + slot[k] * F, F);
    }
    int64_t parts = acf_prefix_sum_parts(F);
    ACF_PARALLEL(dev, n * F) /* rows may use the same slot: here threads share the units */
    for (int64_t b = 0; b < parts; b++)
        for (int64_t k = 0, f = b * BLOCK, w = acf_min(BLOCK, F - f); k < n; k++) {
            if (dwv) add_scaled(dwv + slot[k] * F + f, v[k], dy + k * F + f, w);
            if (dwk) add(dwk + slot[k] * F + f, dy + k * F + f, w);
        }
}

static acf_status step_forward(acf_tape *t, acf_node *n) {
    const int32_t *slot = ((const acf_prefix_sum_step_attrs *)n->attr)->slot;
    const acf_tensor *y = n->out[0];
    ACF_TRY(check_slots(slot, y->dim[0], n->in[ACF_PREFIX_SUM_WK]->dim[0]));
    acf_prefix_sum_step_fwd_cpu(t->dev, y->data, n->in[ACF_PREFIX_SUM_BASE]->data, data_of(n->in[ACF_PREFIX_SUM_V]),
                                data_of(n->in[ACF_PREFIX_SUM_WV]), n->in[ACF_PREFIX_SUM_WK]->data, slot, y->dim[0],
                                y->dim[1]);
    return ACF_OK;
}

static acf_status step_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *d[ACF_PREFIX_SUM_INPUTS];
    for (int i = 0; i < ACF_PREFIX_SUM_INPUTS; i++) d[i] = acf_grad(t, n->in[i]);
    ACF_TRY(acf_tape_status(t));
    acf_prefix_sum_step_bwd_cpu(t->dev, d[ACF_PREFIX_SUM_BASE], d[ACF_PREFIX_SUM_V], d[ACF_PREFIX_SUM_WV],
                                d[ACF_PREFIX_SUM_WK], y->grad, data_of(n->in[ACF_PREFIX_SUM_V]),
                                data_of(n->in[ACF_PREFIX_SUM_WV]), ((const acf_prefix_sum_step_attrs *)n->attr)->slot,
                                y->dim[0], y->dim[1]);
    return ACF_OK;
}

const acf_op acf_op_prefix_sum_step = {"prefix_sum_step", ACF_OP_prefix_sum_step, {step_forward, step_backward}};

/* ---- columns of packed elements ---------------------------------------------------------------------------------- */

static acf_status columns_forward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_columns_attrs *a = n->attr;
    (void)t;
    for (int64_t p = 0; p < a->u->T; p++) a->column[p] = a->u->col_of[a->u->mirror[p]];
    return ACF_OK;
}

const acf_op acf_op_prefix_sum_columns = {"prefix_sum_columns", ACF_OP_prefix_sum_columns, {columns_forward, NULL}};

const int32_t *acf_prefix_sum_columns(acf_tape *t, const acf_subset *u, bool mirrored) {
    if (t->failure.status) return NULL;
    if (!mirrored) return u->col_of;
    acf_node *n = acf_node_new(t, &acf_op_prefix_sum_columns, sizeof(acf_prefix_sum_columns_attrs), 0, NULL);
    int32_t *column = n ? acf_tape_ints(t, u->T) : NULL;
    if (!column) return NULL;
    *(acf_prefix_sum_columns_attrs *)n->attr = (acf_prefix_sum_columns_attrs){u, column};
    acf_node_run(t, n);
    return t->failure.status ? NULL : column;
}

/* ---- slots of a layer's weights ---------------------------------------------------------------------------------- */

static acf_status slots_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *w = n->in[0], *y = n->out[0];
    int64_t R = y->dim[0], F = y->dim[1], C = w->dim[1], from = ((const acf_prefix_sum_slots_attrs *)n->attr)->from;
    ACF_PARALLEL(t->dev, R * F)
    for (int64_t r = 0; r < R; r++)
        for (int64_t f = 0; f < F; f++) y->data[r * F + f] = w->data[f * C + from + r];
    return ACF_OK;
}

static acf_status slots_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    int64_t R = y->dim[0], F = y->dim[1], C = n->in[0]->dim[1],
            from = ((const acf_prefix_sum_slots_attrs *)n->attr)->from;
    acf_real *dw = acf_grad(t, n->in[0]);
    if (!dw) return acf_tape_status(t);
    ACF_PARALLEL(t->dev, R * F)
    for (int64_t f = 0; f < F; f++)
        for (int64_t r = 0; r < R; r++) dw[f * C + from + r] += y->grad[r * F + f];
    return ACF_OK;
}

const acf_op acf_op_prefix_sum_slots = {"prefix_sum_slots", ACF_OP_prefix_sum_slots, {slots_forward, slots_backward}};

acf_tensor *acf_prefix_sum_slots(acf_tape *t, acf_tensor *w, int64_t from, int64_t n) {
    char sw[ACF_SHAPE_TEXT];
    acf_node *node = acf_node_new(t, &acf_op_prefix_sum_slots, sizeof(acf_prefix_sum_slots_attrs), 1, &w);
    if (!node) return &t->empty;
    if (w->ndim != 2 || from < 0 || n < 0 || from > w->dim[1] || n > w->dim[1] - from)
        return acf_reject(t, node->op, "inputs %lld to %lld of weights %s; expected (F, C) and inputs below C",
                          (long long)from, (long long)(from + n), acf_tensor_shape(w, sw));
    *(acf_prefix_sum_slots_attrs *)node->attr = (acf_prefix_sum_slots_attrs){from};
    node->out[0] = acf_tensor_new(t, 2, (int64_t[]){n, w->dim[0]});
    return acf_node_run(t, node);
}

/* ---- slots of classes -------------------------------------------------------------------------------------------- */

/* One product per column: its classes' embeddings with their columns of w. */
static acf_status classes_forward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_classes_attrs *a = n->attr;
    const acf_tensor *w = n->in[0], *table = n->in[1];
    int64_t E = table->dim[1], F = w->dim[0], C = w->dim[1];
    for (int64_t j = 0; j < a->classes.D; j++) {
        int64_t first = a->classes.first[j], count = a->classes.count[j];
        acf_real *y = n->out[0]->data + first * F;
        acf_cpu_gemm(t->dev,
                     &(acf_gemm){.tb = true,
                                 .M = count,
                                 .N = F,
                                 .K = E,
                                 .alpha = 1,
                                 .a = table->data + first * E,
                                 .lda = E,
                                 .b = w->data + a->class_at + j * E,
                                 .ldb = C,
                                 .c = y,
                                 .ldc = F},
                     NULL, NULL);
        ACF_PARALLEL(t->dev, count * F)
        for (int64_t r = 0; r < count; r++)
            for (int64_t f = 0; f < F; f++) y[r * F + f] += w->data[f * C + a->mask_at + j];
    }
    return ACF_OK;
}

/* dw and dtable, NULL = not needed; sum (F) is scratch. */
static void classes_backward_column(const acf_device *dev, const acf_node *n, acf_real *dw, acf_real *dtable,
                                    acf_real *sum, int64_t j) {
    const acf_prefix_sum_classes_attrs *a = n->attr;
    const acf_tensor *w = n->in[0], *table = n->in[1];
    int64_t E = table->dim[1], F = w->dim[0], C = w->dim[1], first = a->classes.first[j], count = a->classes.count[j];
    const acf_real *dy = n->out[0]->grad + first * F;
    int64_t at = a->class_at + j * E;
    if (dtable)
        acf_cpu_gemm(dev,
                     &(acf_gemm){.M = count,
                                 .N = E,
                                 .K = F,
                                 .alpha = 1,
                                 .a = dy,
                                 .lda = F,
                                 .b = w->data + at,
                                 .ldb = C,
                                 .beta = 1,
                                 .c = dtable + first * E,
                                 .ldc = E},
                     NULL, NULL);
    if (!dw) return;
    acf_cpu_gemm(dev,
                 &(acf_gemm){.ta = true,
                             .M = F,
                             .N = E,
                             .K = count,
                             .alpha = 1,
                             .a = dy,
                             .lda = F,
                             .b = table->data + first * E,
                             .ldb = E,
                             .beta = 1,
                             .c = dw + at,
                             .ldc = C},
                 NULL, NULL);
    memset(sum, 0, (size_t)F * sizeof *sum);
    acf_cpu_colsum(dev, sum, dy, count, F, F);
    for (int64_t f = 0; f < F; f++) dw[f * C + a->mask_at + j] += sum[f];
}

static acf_status classes_backward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_classes_attrs *a = n->attr;
    acf_real *dw = acf_grad(t, n->in[0]), *dtable = acf_grad(t, n->in[1]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *sum = acf_tape_reals(t, n->in[0]->dim[0]);
    ACF_TRY(acf_tape_status(t));
    for (int64_t j = 0; j < a->classes.D; j++) classes_backward_column(t->dev, n, dw, dtable, sum, j);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_prefix_sum_classes = {"prefix_sum_classes",
                                          ACF_OP_prefix_sum_classes,
                                          {classes_forward, classes_backward}};

acf_tensor *acf_prefix_sum_classes(acf_tape *t, acf_tensor *w, acf_tensor *table, const acf_classes *classes,
                                   int64_t mask_at, int64_t class_at) {
    char sw[ACF_SHAPE_TEXT], st[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_prefix_sum_classes, sizeof(acf_prefix_sum_classes_attrs), 2,
                               (acf_tensor *[]){w, table});
    if (!n) return &t->empty;
    int64_t D = classes->D, W = 0;
    for (int64_t j = 0; j < D; j++) W += classes->count[j];
    if (w->ndim != 2 || table->ndim != 2 || table->dim[0] != W || table->dim[1] < 1)
        return acf_reject(t, n->op, "weights %s and embeddings %s; expected (F, C) and (%lld, E)",
                          acf_tensor_shape(w, sw), acf_tensor_shape(table, st), (long long)W);
    if (mask_at < 0 || class_at < 0 || mask_at + D > w->dim[1] || class_at + D * table->dim[1] > w->dim[1])
        return acf_reject(t, n->op, "masks from input %lld and embeddings from input %lld on do not fit weights %s",
                          (long long)mask_at, (long long)class_at, acf_tensor_shape(w, sw));
    *(acf_prefix_sum_classes_attrs *)n->attr = (acf_prefix_sum_classes_attrs){*classes, mask_at, class_at};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){W, w->dim[0]});
    return acf_node_run(t, n);
}

/* ---- front ends of the sums -------------------------------------------------------------------------------------- */

static bool has_width(const acf_tensor *x, int64_t F) { return x->ndim == 2 && x->dim[1] == F; }

/* False, with a failed tape, where values and weights do not fit together; m is the number of values. */
static bool terms_fit(acf_tape *t, const acf_op *op, const acf_tensor *v, const acf_terms *w, int64_t m, int64_t F) {
    char sv[ACF_SHAPE_TEXT], sk[ACF_SHAPE_TEXT];
    if (!has_width(w->wk, F) || (w->wv && !acf_tensor_same_shape(w->wv, w->wk)))
        acf_reject(t, op, "wk is %s and wv %s; expected (R, %lld) both, or no wv", acf_tensor_shape(w->wk, sk),
                   w->wv ? acf_tensor_shape(w->wv, sv) : "absent", (long long)F);
    else if (!v != !w->wv || (v && (v->ndim != 1 || v->dim[0] != m)))
        acf_reject(t, op, "v is %s; expected %lld values with wv, none without", v ? acf_tensor_shape(v, sv) : "absent",
                   (long long)m);
    return t->failure.status == ACF_OK;
}

acf_tensor *acf_prefix_sum(acf_tape *t, acf_tensor *base, acf_tensor *here, acf_tensor *v, const acf_terms *w,
                           const int32_t *slot, const int32_t *column, const acf_subset *u) {
    char sb[ACF_SHAPE_TEXT], sh[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_prefix_sum, sizeof(acf_prefix_sum_plan), ACF_PREFIX_SUM_INPUTS,
                               (acf_tensor *[]){[ACF_PREFIX_SUM_BASE] = base,
                                                [ACF_PREFIX_SUM_HERE] = here,
                                                [ACF_PREFIX_SUM_V] = v,
                                                [ACF_PREFIX_SUM_WV] = w->wv,
                                                [ACF_PREFIX_SUM_WK] = w->wk});
    if (!n) return &t->empty;
    if (base->ndim != 2 || base->sub || base->dim[0] != u->N)
        return acf_reject(t, n->op, "the base is %s; the subset has %lld rows, so expected (%lld, F)",
                          acf_tensor_shape(base, sb), (long long)u->N, (long long)u->N);
    if (here && (!has_width(here, base->dim[1]) || here->dim[0] != u->D))
        return acf_reject(t, n->op, "the columns' rows are %s; expected (%lld, %lld)", acf_tensor_shape(here, sh),
                          (long long)u->D, (long long)base->dim[1]);
    if (v && v->sub != u)
        return acf_reject(t, n->op, "v is %s; expected it packed over the given subset", acf_tensor_shape(v, sb));
    if (!terms_fit(t, n->op, v, w, u->T, base->dim[1])) return &t->empty;
    *(acf_prefix_sum_plan *)n->attr = (acf_prefix_sum_plan){u, base->dim[1], slot, column};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){u->T, base->dim[1]});
    n->out[0]->sub = u;
    return acf_node_run(t, n);
}

acf_tensor *acf_prefix_sum_step(acf_tape *t, acf_tensor *sums, acf_tensor *v, const acf_terms *w, const int32_t *slot,
                                int64_t n) {
    char ss[ACF_SHAPE_TEXT];
    acf_node *node = acf_node_new(t, &acf_op_prefix_sum_step, sizeof(acf_prefix_sum_step_attrs), ACF_PREFIX_SUM_INPUTS,
                                  (acf_tensor *[]){[ACF_PREFIX_SUM_BASE] = sums,
                                                   [ACF_PREFIX_SUM_HERE] = NULL,
                                                   [ACF_PREFIX_SUM_V] = v,
                                                   [ACF_PREFIX_SUM_WV] = w->wv,
                                                   [ACF_PREFIX_SUM_WK] = w->wk});
    if (!node) return &t->empty;
    if (sums->ndim != 2 || n < 0 || n > sums->dim[0])
        return acf_reject(t, node->op, "%lld rows of sums %s; expected (m, F) and no more than m", (long long)n,
                          acf_tensor_shape(sums, ss));
    if (!terms_fit(t, node->op, v, w, sums->dim[0], sums->dim[1])) return &t->empty;
    *(acf_prefix_sum_step_attrs *)node->attr = (acf_prefix_sum_step_attrs){slot};
    node->out[0] = acf_tensor_new(t, 2, (int64_t[]){n, sums->dim[1]});
    node->out[0]->row_of = sums->row_of;
    return acf_node_run(t, node);
}
