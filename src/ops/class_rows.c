/* Categories as rows of a table: see class_rows.h. Integers only, n = 1e3 to 1e5, one pass; too little work for
 * threads. */
#include "ops/class_rows.h"

static int64_t row_of(const acf_class_cells *c, int64_t D, int64_t p) { return c->at.row ? c->at.row[p] : p / D; }
static int64_t column_of(const acf_class_cells *c, int64_t D, int64_t p) {
    return c->at.column ? c->at.column[p] : p % D;
}

/* Packed elements are step-major, so the first bad one need not be the lowest cell: all are checked. */
int64_t acf_class_rows_fwd_cpu(int32_t *rows, const int32_t *codes, const acf_class_cells *cells,
                               const acf_classes *classes, int64_t n) {
    int64_t D = classes->D, bad = -1, lowest = 0;
    for (int64_t p = 0; p < n; p++) {
        rows[p] = -1;
        if (cells->seen && !cells->seen[p]) continue;
        int64_t j = column_of(cells, D, p), cell = row_of(cells, D, p) * D + j;
        int32_t code = codes[cells->place ? cells->place[p] : p];
        if (code >= 0 && code < classes->count[j])
            rows[p] = classes->first[j] + code;
        else if (bad < 0 || cell < lowest)
            bad = p, lowest = cell;
    }
    return bad;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    (void)t;
    const acf_class_rows_attrs *a = n->attr;
    int64_t D = a->classes.D, p = acf_class_rows_fwd_cpu(a->rows, a->codes, &a->cells, &a->classes, a->n);
    if (p < 0) return ACF_OK;
    int64_t row = row_of(&a->cells, D, p), j = column_of(&a->cells, D, p);
    int code = a->codes[a->cells.place ? a->cells.place[p] : p], count = a->classes.count[j];
    if (count == 0)
        return acf_fail(ACF_EDATA, "row %lld, column %lld: the column has no classes", (long long)row, (long long)j);
    return acf_fail(ACF_EDATA, "row %lld, column %lld: the code is %d, but the column has %d classes (0 to %d)",
                    (long long)row, (long long)j, code, count, count - 1);
}

const acf_op acf_op_class_rows = {"class_rows", ACF_OP_class_rows, {forward, NULL}};

static const int32_t *run(acf_tape *t, const acf_classes *classes, const int32_t *codes, acf_class_cells cells,
                          int64_t n) {
    acf_node *node = acf_node_new(t, &acf_op_class_rows, sizeof(acf_class_rows_attrs), 0, NULL);
    int32_t *rows = node ? acf_tape_ints(t, n) : NULL;
    if (!rows) return NULL;
    *(acf_class_rows_attrs *)node->attr = (acf_class_rows_attrs){*classes, cells, codes, rows, n};
    acf_node_run(t, node);
    return t->failure.status ? NULL : rows;
}

const int32_t *acf_class_rows_packed(acf_tape *t, const acf_classes *classes, const int32_t *codes,
                                     const acf_subset *u) {
    if (t->failure.status) return NULL;
    if (classes->D != u->D) {
        acf_reject(t, &acf_op_class_rows, "there are classes for %lld columns; the table has %lld",
                   (long long)classes->D, (long long)u->D);
        return NULL;
    }
    return run(t, classes, codes, (acf_class_cells){u->cell, {u->row_of, u->col_of}, NULL}, u->T);
}

const int32_t *acf_class_rows_at(acf_tape *t, const acf_classes *classes, const int32_t *codes, acf_cells at,
                                 int64_t n) {
    return run(t, classes, codes, (acf_class_cells){NULL, at, NULL}, n);
}

const int32_t *acf_class_rows_seen(acf_tape *t, const acf_classes *classes, const int32_t *codes, const uint8_t *seen,
                                   int64_t N) {
    return run(t, classes, codes, (acf_class_cells){NULL, {NULL, NULL}, seen}, N * classes->D);
}
