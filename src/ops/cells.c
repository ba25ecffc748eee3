/* Cells of a table in device memory: see cells.h. N·D = 1e3 to 1e6 cells, one pass; too little work for threads. */
#include "ops/cells.h"

/* ---- columns of a batch ---------------------------------------------------------------------------------------- */

static acf_status reals_forward(acf_tape *t, acf_node *n) {
    const acf_take_attrs *a = n->attr;
    const acf_grid *g = &a->from;
    const int64_t K = a->K;
    (void)t;
    for (int64_t i = 0; i < g->N; i++)
        for (int64_t k = 0; k < K; k++) {
            const int64_t from = i * g->D + a->column[k], to = i * K + k;
            acf_real *row = n->out[1]->data + i * 3 * K, x = g->m[from] ? g->x[from] : 0;
            n->out[0]->data[to] = x;
            a->b[to] = g->b[from] != 0, a->m[to] = g->m[from] != 0;
            row[k] = g->b[from] ? x : 0, row[K + k] = a->b[to], row[2 * K + k] = a->m[to];
        }
    return ACF_OK;
}

static acf_status classes_forward(acf_tape *t, acf_node *n) {
    const acf_take_attrs *a = n->attr;
    const acf_grid *g = &a->from;
    (void)t;
    for (int64_t i = 0; i < g->N; i++)
        for (int64_t k = 0; k < a->K; k++) {
            const int64_t from = i * g->D + a->column[k], to = i * a->K + k;
            a->b[to] = g->b[from] != 0, a->m[to] = g->m[from] != 0;
            a->code[to] = g->m[from] ? g->code[from] : -1;
        }
    return ACF_OK;
}

const acf_op acf_op_take_reals = {"take_reals", ACF_OP_take_reals, {reals_forward, NULL}};
const acf_op acf_op_take_classes = {"take_classes", ACF_OP_take_classes, {classes_forward, NULL}};

/* The node of either, with its masks; NULL when the tape has failed. */
static acf_node *take(acf_tape *t, const acf_op *op, const acf_grid *g, const int32_t *column, int64_t K,
                      acf_taken *out) {
    const size_t cells = (size_t)(g->N * K);
    acf_node *n = acf_node_new(t, op, sizeof(acf_take_attrs), 0, NULL);
    if (!n) return NULL;
    out->b = acf_arena_alloc(t->mem, cells), out->m = acf_arena_alloc(t->mem, cells);
    if (!out->b || !out->m) {
        acf_tape_fail(t, op);
        return NULL;
    }
    *(acf_take_attrs *)n->attr = (acf_take_attrs){.from = *g, .column = column, .K = K, .b = out->b, .m = out->m};
    return n;
}

acf_taken acf_take_reals(acf_tape *t, const acf_grid *g, const int32_t *column, int64_t K) {
    acf_taken out = {.x = &t->empty, .common = &t->empty};
    acf_node *n = take(t, &acf_op_take_reals, g, column, K, &out);
    if (!n) return out;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){g->N, K});
    n->out[1] = acf_tensor_new(t, 2, (int64_t[]){g->N, 3 * K});
    out.common = n->out[1];
    out.x = acf_node_run(t, n);
    if (out.x == &t->empty) out.common = out.x;
    return out;
}

acf_taken acf_take_classes(acf_tape *t, const acf_grid *g, const int32_t *column, int64_t K) {
    acf_taken out = {.x = &t->empty, .common = &t->empty};
    acf_node *n = take(t, &acf_op_take_classes, g, column, K, &out);
    if (!n || !(out.code = ((acf_take_attrs *)n->attr)->code = acf_tape_ints(t, g->N * K))) return out;
    acf_node_run(t, n);
    return out;
}

/* ---- masks and codes ------------------------------------------------------------------------------------------- */

static acf_status mask_forward(acf_tape *t, acf_node *n) {
    const uint8_t *mask = ((const acf_mask_numbers_attrs *)n->attr)->mask;
    (void)t;
    for (int64_t k = 0; k < acf_tensor_count(n->out[0]); k++) n->out[0]->data[k] = mask[k] != 0;
    return ACF_OK;
}

const acf_op acf_op_mask_numbers = {"mask_numbers", ACF_OP_mask_numbers, {mask_forward, NULL}};

acf_tensor *acf_mask_numbers(acf_tape *t, const uint8_t *mask, int64_t N, int64_t D) {
    acf_node *n = acf_node_new(t, &acf_op_mask_numbers, sizeof(acf_mask_numbers_attrs), 0, NULL);
    if (!n) return &t->empty;
    *(acf_mask_numbers_attrs *)n->attr = (acf_mask_numbers_attrs){mask};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){N, D});
    return acf_node_run(t, n);
}

static acf_status put_forward(acf_tape *t, acf_node *n) {
    const acf_put_codes_attrs *a = n->attr;
    (void)t;
    for (int64_t p = 0; p < a->n; p++)
        if (a->cell[p] >= 0) a->codes[a->cell[p]] = a->made[p];
    return ACF_OK;
}

const acf_op acf_op_put_codes = {"put_codes", ACF_OP_put_codes, {put_forward, NULL}};

void acf_put_codes_at(acf_tape *t, int32_t *codes, const int32_t *made, const int32_t *cell, int64_t count) {
    acf_node *n = acf_node_new(t, &acf_op_put_codes, sizeof(acf_put_codes_attrs), 0, NULL);
    if (!n) return;
    *(acf_put_codes_attrs *)n->attr = (acf_put_codes_attrs){codes, made, cell, count};
    acf_node_run(t, n);
}

void acf_put_codes(acf_tape *t, int32_t *codes, const int32_t *made, const acf_subset *u) {
    if (!t->failure.status) acf_put_codes_at(t, codes, made, u->cell, u->T);
}

static acf_status reals_put_forward(acf_tape *t, acf_node *n) {
    const acf_cells at = ((const acf_put_reals_attrs *)n->attr)->at;
    const acf_tensor *x = n->in[0], *made = n->in[1];
    (void)t;
    for (int64_t p = 0; p < made->dim[0]; p++)
        if (at.row[p] >= 0) x->data[at.row[p] * x->dim[1] + at.column[p]] = made->data[p];
    return ACF_OK;
}

const acf_op acf_op_put_reals = {"put_reals", ACF_OP_put_reals, {reals_put_forward, NULL}};

void acf_put_reals(acf_tape *t, acf_tensor *x, acf_tensor *made, acf_cells at) {
    char sx[ACF_SHAPE_TEXT], sm[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_put_reals, sizeof(acf_put_reals_attrs), 2, (acf_tensor *[]){x, made});
    if (!n) return;
    if (x->ndim != 2 || made->ndim != 1) {
        acf_reject(t, n->op, "values %s into x %s; expected (n) into (N, K)", acf_tensor_shape(made, sm),
                   acf_tensor_shape(x, sx));
        return;
    }
    *(acf_put_reals_attrs *)n->attr = (acf_put_reals_attrs){at};
    acf_node_run(t, n);
}
