/* The output layer of categories: see class_head.h; formulas in docs/math.md, 8.
 *
 * Workload: T = 1e3 to 6e4 elements, F = 64 to 512, 2 to some thousands of classes a column, 1 to some hundreds of
 * columns. A tile is up to 1024 elements of one column, few enough that their logits stay in cache between the
 * product and the softmax. The kernels of linear.h and categorical.h process it. Tiles depend only on the shapes and
 * run one after another, so sums have one order. The threads are inside the kernels. */
#include "ops/class_head.h"

#include "base/vmath.h"
#include "ops/gather.h"
#include "ops/linear.h"

#include <math.h>
#include <string.h>

#define TILE_ROWS 1024
#define TILE_LEAST 32 /* rows of a tile even if their logits are more than ... */
#define TILE_LOGITS ((int64_t)1 << 19)

/* ---- tiles ----------------------------------------------------------------------------------------------------- */

typedef struct tile {
    int64_t column, from, n; /* order[from .. from+n), all of one column */
} tile;

/* The tile after x, the first after {0}; false at the end. */
static bool next_tile(const acf_class_plan *p, tile *x) {
    int64_t from = x->from + x->n;
    while (x->column < p->D && p->end[x->column] == from) x->column++;
    if (x->column == p->D) return false;
    int64_t most = acf_min(TILE_ROWS, acf_max(TILE_LEAST, TILE_LOGITS / acf_max(p->count[x->column], 1)));
    x->from = from;
    x->n = acf_min(most, p->end[x->column] - from);
    return true;
}

void acf_class_plan_fill(acf_class_plan *p, int32_t *end, int32_t *order, const int32_t *column, int64_t n) {
    int32_t sum = 0;
    memset(end, 0, (size_t)p->D * sizeof *end);
    for (int64_t i = 0; i < n; i++) end[column[i]]++;
    for (int64_t j = 0; j < p->D; j++) { /* turns counts into starts; filling moves the starts to the ends */
        int32_t count = end[j];
        end[j] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++) order[end[column[i]]++] = (int32_t)i;
    p->end = end, p->order = order, p->rows = p->logits = 0;
    for (tile x = {0}; next_tile(p, &x);) {
        p->rows = acf_max(p->rows, x.n);
        p->logits = acf_max(p->logits, x.n * p->count[x.column]);
    }
}

/* s->h and s->logits of a tile. */
static void tile_logits(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, const tile *x,
                        const acf_real *h, const acf_real *w, const acf_real *b) {
    int64_t first = p->first[x->column];
    acf_gather_fwd_cpu(dev, s->h, h, p->order + x->from, 0, x->n, p->F);
    acf_linear_fwd_cpu(dev, s->logits, s->h, w + first * p->F, b + first, ACF_IDENTITY, x->n, p->F,
                       p->count[x->column]);
}

/* s->code of a tile: class indices within its column. */
static void tile_codes(const acf_class_plan *p, const acf_class_scratch *s, const tile *x, const int32_t *rows) {
    for (int64_t i = 0; i < x->n; i++) s->code[i] = rows[p->order[x->from + i]] - p->first[x->column];
}

/* ---- log-probability ------------------------------------------------------------------------------------------- */

/* For the kernels of categorical.h a tile is a table of one column, whose logits begin at 0. */
static const int32_t column_0[TILE_ROWS], first_0[1];

void acf_class_logp_fwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *logp,
                            const acf_real *h, const acf_real *w, const acf_real *b, const int32_t *rows) {
    for (tile x = {0}; next_tile(p, &x);) {
        const int32_t *count = &p->count[x.column];
        tile_logits(dev, p, s, &x, h, w, b);
        tile_codes(p, s, &x, rows);
        acf_categorical_logp_fwd_cpu(dev, s->value, s->logits, s->code, column_0, first_0, count, x.n, *count);
        acf_scatter_fwd_cpu(dev, logp, s->value, p->order + x.from, x.n, 1);
    }
}

void acf_class_logp_bwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *dh,
                            acf_real *dw, acf_real *db, const acf_real *dlogp, const acf_real *h, const acf_real *w,
                            const acf_real *b, const int32_t *rows) {
    for (tile x = {0}; next_tile(p, &x);) {
        const int32_t *count = &p->count[x.column], *at = p->order + x.from;
        int64_t first = p->first[x.column];
        tile_logits(dev, p, s, &x, h, w, b);
        tile_codes(p, s, &x, rows);
        acf_gather_fwd_cpu(dev, s->value, dlogp, at, 0, x.n, 1);
        memset(s->dlogits, 0, (size_t)(x.n * *count) * sizeof *s->dlogits);
        acf_categorical_logp_bwd_cpu(dev, s->dlogits, s->value, s->logits, s->code, column_0, first_0, count, x.n,
                                     *count);
        memset(s->dh, 0, (size_t)(x.n * p->F) * sizeof *s->dh);
        acf_linear_bwd_cpu(dev, dh ? s->dh : NULL, dw ? dw + first * p->F : NULL, db ? db + first : NULL, s->dlogits,
                           NULL, s->h, w + first * p->F, NULL, ACF_IDENTITY, x.n, p->F, *count);
        if (dh) acf_gather_unique_bwd_cpu(dev, dh, s->dh, at, x.n, p->F);
    }
}

/* ---- logits and probabilities ---------------------------------------------------------------------------------- */

/* Softmax in place; a NaN makes all of them NaN. */
static void softmax(acf_real *y, int64_t n) {
    double top = -(double)INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) top = (double)y[k] > top ? (double)y[k] : top;
    ACF_PRAGMA(omp simd reduction(+ : sum))
    for (int64_t k = 0; k < n; k++) sum += acf_exp_double((double)y[k] - top);
    ACF_SIMD
    for (int64_t k = 0; k < n; k++) y[k] = (acf_real)(acf_exp_double((double)y[k] - top) / sum);
}

void acf_class_scores_fwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *y,
                              const acf_real *h, const acf_real *w, const acf_real *b, bool probs, int64_t M) {
    for (tile x = {0}; next_tile(p, &x);) {
        int64_t count = p->count[x.column];
        tile_logits(dev, p, s, &x, h, w, b);
        ACF_PARALLEL(dev, x.n * M)
        for (int64_t i = 0; i < x.n; i++) {
            acf_real *to = y + p->order[x.from + i] * M;
            memcpy(to, s->logits + i * count, (size_t)count * sizeof *to);
            memset(to + count, 0, (size_t)(M - count) * sizeof *to);
            if (probs) softmax(to, count);
        }
    }
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

/* Scratch for the tiles, released by the caller; NULL pointers when the tape has failed. */
static acf_class_scratch scratch_of(acf_tape *t, const acf_class_plan *p, bool back) {
    return (acf_class_scratch){.h = acf_tape_reals(t, p->rows * p->F),
                               .dh = back ? acf_tape_reals(t, p->rows * p->F) : NULL,
                               .logits = acf_tape_reals(t, p->logits),
                               .dlogits = back ? acf_tape_reals(t, p->logits) : NULL,
                               .value = acf_tape_reals(t, p->rows),
                               .code = acf_tape_ints(t, p->rows)};
}

/* The plan, on the tape: copies of the classes, and the elements grouped by column. */
static acf_status make_plan(acf_tape *t, acf_class_head_attrs *a, int64_t n) {
    acf_class_plan *p = &a->plan;
    size_t bytes = (size_t)p->D * sizeof(int32_t);
    int32_t *first = acf_tape_ints(t, p->D), *count = acf_tape_ints(t, p->D), *end = acf_tape_ints(t, p->D);
    int32_t *order = acf_tape_ints(t, n);
    ACF_TRY(acf_tape_status(t));
    memcpy(first, p->first, bytes);
    memcpy(count, p->count, bytes);
    p->first = first, p->count = count;
    acf_class_plan_fill(p, end, order, a->at.column, n);
    return ACF_OK;
}

/* The lowest cell whose row of w does not belong to its column. */
static acf_status check_rows(const acf_class_head_attrs *a, int64_t n) {
    int64_t bad = -1;
    const int32_t *row = a->at.row, *column = a->at.column;
    for (int64_t i = 0; i < n; i++) {
        int64_t code = (int64_t)a->rows[i] - a->plan.first[column[i]];
        if (code >= 0 && code < a->plan.count[column[i]]) continue;
        if (bad < 0 || row[i] < row[bad] || (row[i] == row[bad] && column[i] < column[bad])) bad = i;
    }
    if (bad < 0) return ACF_OK;
    int32_t j = column[bad], first = a->plan.first[j];
    return acf_fail(ACF_EDATA, "row %d, column %d: the class is row %d of w; expected one of %d rows from row %d on",
                    row[bad], j, a->rows[bad], a->plan.count[j], first);
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    acf_class_head_attrs *a = n->attr;
    const acf_tensor *h = n->in[0], *w = n->in[1], *b = n->in[2];
    ACF_TRY(check_rows(a, h->dim[0]));
    ACF_TRY(make_plan(t, a, h->dim[0]));
    acf_mark mark = acf_arena_mark(t->mem);
    acf_class_scratch s = scratch_of(t, &a->plan, false);
    ACF_TRY(acf_tape_status(t));
    acf_class_logp_fwd_cpu(t->dev, &a->plan, &s, n->out[0]->data, h->data, w->data, b->data, a->rows);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_class_head_attrs *a = n->attr;
    const acf_tensor *h = n->in[0], *w = n->in[1], *b = n->in[2];
    acf_real *dh = acf_grad(t, n->in[0]), *dw = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_class_scratch s = scratch_of(t, &a->plan, true);
    ACF_TRY(acf_tape_status(t));
    acf_class_logp_bwd_cpu(t->dev, &a->plan, &s, dh, dw, db, n->out[0]->grad, h->data, w->data, b->data, a->rows);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status scores_forward(acf_tape *t, acf_node *n) {
    acf_class_head_attrs *a = n->attr;
    const acf_tensor *h = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(make_plan(t, a, h->dim[0]));
    acf_class_scratch s = scratch_of(t, &a->plan, false);
    ACF_TRY(acf_tape_status(t));
    acf_class_scores_fwd_cpu(t->dev, &a->plan, &s, y->data, h->data, w->data, b->data, a->probs, y->dim[1]);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_class_logp = {"class_logp", ACF_OP_class_logp, {logp_forward, logp_backward}};
const acf_op acf_op_class_scores = {"class_scores", ACF_OP_class_scores, {scores_forward, NULL}};

/* Checks that the slices lie inside w and, where h is packed, that there is one per table column. */
static bool classes_fit(acf_tape *t, const acf_op *op, const acf_tensor *h, const acf_tensor *w, const acf_classes *c) {
    if (h->sub && h->sub->D != c->D)
        acf_reject(t, op, "there are classes for %lld columns; the table has %lld", (long long)c->D,
                   (long long)h->sub->D);
    for (int64_t j = 0; j < c->D && !t->failure.status; j++)
        if (c->first[j] < 0 || c->count[j] < 0 || (int64_t)c->first[j] + c->count[j] > w->dim[0])
            acf_reject(t, op, "column %lld: %d classes from row %d of w on; w has %lld rows", (long long)j,
                       (int)c->count[j], (int)c->first[j], (long long)w->dim[0]);
    return !t->failure.status;
}

/* The node of either, checked; NULL after a failure. */
static acf_node *checked(acf_tape *t, const acf_op *op, acf_tensor *h, acf_tensor *w, acf_tensor *b,
                         const acf_classes *c, acf_cells at) {
    char sh[ACF_SHAPE_TEXT], sw[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_class_head_attrs), 3, (acf_tensor *[]){h, w, b});
    if (!n) return NULL;
    if (h->ndim != 2 || w->ndim != 2 || h->dim[1] != w->dim[1] || acf_tensor_count(b) != w->dim[0]) {
        acf_reject(t, op, "h is %s, w is %s and b is %s; expected (T, F), (W, F) and (W)", acf_tensor_shape(h, sh),
                   acf_tensor_shape(w, sw), acf_tensor_shape(b, sb));
        return NULL;
    }
    if (!classes_fit(t, op, h, w, c)) return NULL;
    if (!acf_cells_resolve(&at, h)) {
        acf_reject(t, op, ACF_NO_CELLS);
        return NULL;
    }
    *(acf_class_head_attrs *)n->attr = (acf_class_head_attrs){
        .plan = {.D = c->D, .F = h->dim[1], .first = c->first, .count = c->count}, .classes = *c, .at = at};
    return n;
}

acf_tensor *acf_class_logp(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const int32_t *rows,
                           const acf_classes *classes, const acf_subset *u) {
    if (h != &t->empty && h->sub != u)
        return acf_reject(t, &acf_op_class_logp, "the hidden units are not packed over this subset");
    acf_node *n = checked(t, &acf_op_class_logp, h, w, b, classes, (acf_cells){NULL, NULL});
    if (!n) return &t->empty;
    ((acf_class_head_attrs *)n->attr)->rows = rows;
    n->out[0] = acf_tensor_packed(t, u, 0);
    return acf_node_run(t, n);
}

static acf_tensor *scores(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const acf_classes *c, acf_cells at,
                          bool probs) {
    acf_node *n = checked(t, &acf_op_class_scores, h, w, b, c, at);
    if (!n) return &t->empty;
    int64_t M = 0;
    for (int64_t j = 0; j < c->D; j++) M = acf_max(M, c->count[j]);
    ((acf_class_head_attrs *)n->attr)->probs = probs;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){h->dim[0], M});
    n->out[0]->sub = h->sub;
    return acf_node_run(t, n);
}

acf_tensor *acf_class_logits(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const acf_classes *classes,
                             acf_cells at) {
    return scores(t, h, w, b, classes, at, false);
}

acf_tensor *acf_class_probs(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const acf_classes *classes,
                            acf_cells at) {
    return scores(t, h, w, b, classes, at, true);
}
