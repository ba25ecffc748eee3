/* Vectors for codes: see embedding.h. A gather whose indices come from data: they are checked, and the message
 * speaks of codes. The kernels are those of gather.h.
 *
 * Workload: n = 1e3 to 1e5 codes, V from 2 to some thousands, E = 4 to 64. */
#include "ops/embedding.h"

/* Packed elements are step-major, so the first bad element need not be of the lowest row: on failure all are
 * checked. */
static acf_status check_codes(const int32_t *code, int64_t n, int64_t V, const acf_subset *sub) {
    int64_t bad = -1;
    for (int64_t p = 0; p < n; p++) {
        if (code[p] >= -1 && code[p] < V) continue;
        if (bad < 0 || (sub && sub->cell[p] < sub->cell[bad])) bad = p;
    }
    if (bad < 0) return ACF_OK;
    if (!sub)
        return acf_fail(ACF_EDATA, "row %lld: the code is %d; expected 0 to %lld, or -1 for missing", (long long)bad,
                        code[bad], (long long)V - 1);
    return acf_fail(ACF_EDATA, "row %d, column %d: the code is %d; expected 0 to %lld, or -1 for missing",
                    sub->row_of[bad], sub->col_of[bad], code[bad], (long long)V - 1);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_embedding_attrs *a = n->attr;
    const acf_tensor *table = n->in[0], *y = n->out[0];
    ACF_TRY(check_codes(a->code, a->n, table->dim[0], y->sub));
    acf_gather_fwd_cpu(t->dev, y->data, table->data, a->code, 0, a->n, table->dim[1]);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_embedding_attrs *a = n->attr;
    acf_tensor *table = n->in[0];
    acf_real *dtable = acf_grad(t, table);
    if (!dtable) return acf_tape_status(t);
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *scratch = acf_tape_ints(t, table->dim[0] + a->n);
    if (scratch)
        acf_gather_bwd_cpu(t->dev, dtable, n->out[0]->grad, a->code, scratch, a->n, table->dim[0], table->dim[1]);
    acf_arena_release(t->mem, mark);
    return acf_tape_status(t);
}

const acf_op acf_op_embedding = {"embedding", ACF_OP_embedding, {forward, backward}};

acf_tensor *acf_embedding(acf_tape *t, acf_tensor *table, const int32_t *code, int64_t n, const acf_subset *sub) {
    char st[ACF_SHAPE_TEXT];
    acf_node *node = acf_node_new(t, &acf_op_embedding, sizeof(acf_embedding_attrs), 1, &table);
    if (!node) return &t->empty;
    if (table->ndim != 2 || table->dim[0] > INT32_MAX)
        return acf_reject(t, &acf_op_embedding, "the table is %s; expected (V, E)", acf_tensor_shape(table, st));
    if (n < 0 || n > INT32_MAX)
        return acf_reject(t, &acf_op_embedding, "%lld codes; expected 0 to 2^31-1", (long long)n);
    if (sub && n != sub->T)
        return acf_reject(t, &acf_op_embedding, "%lld codes; the subset has %lld elements", (long long)n,
                          (long long)sub->T);
    *(acf_embedding_attrs *)node->attr = (acf_embedding_attrs){code, n};
    node->out[0] = acf_tensor_new(t, 2, (int64_t[]){n, table->dim[1]});
    node->out[0]->sub = sub;
    return acf_node_run(t, node);
}

acf_tensor *acf_embedding_columns(acf_tape *t, acf_tensor *table, const acf_subset *u) {
    char st[ACF_SHAPE_TEXT];
    if (t->failure.status) return &t->empty;
    if (table->ndim != 2 || table->dim[0] != u->D)
        return acf_reject(t, &acf_op_embedding, "the table is %s; the subset has %lld columns, so expected (%lld, E)",
                          acf_tensor_shape(table, st), (long long)u->D, (long long)u->D);
    return acf_embedding(t, table, u->col_of, u->T, u);
}
