/* Tests of cells of a table: cases for the harness, refusals. */
#include "ops/cells.h"

#include "harness/lab.h"

static void build_mask(acf_lab *l) {
    acf_result(l, acf_mask_numbers(l->t, acf_lab_copy(l, l->b, (size_t)(l->N * l->D)), l->N, l->D));
}

static void naive_mask(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->N * l->D; p++) out[0][p] = l->b[p] != 0;
}

/* Cells that are not modelled do not change. */
static void build_put(acf_lab *l) {
    const int32_t *made = acf_leaf_ints(l, "made", 0, 59, l->u ? l->u->T : 0);
    const int32_t *before = acf_leaf_ints(l, "before", 60, 99, l->N * l->D);
    int32_t *codes = before ? acf_tape_ints(l->t, l->N * l->D) : NULL;
    if (codes && acf_device_copy(l->dev, codes, before, (size_t)(l->N * l->D) * sizeof *codes, ACF_ON_DEVICE))
        acf_tape_fail(l->t, NULL);
    acf_put_codes(l->t, codes, made, l->u);
    acf_result_ints(l, codes, l->N * l->D, NULL);
}

static void naive_put(const acf_lab *l, double *const *out) {
    for (int64_t k = 0; k < l->N * l->D; k++) out[0][k] = l->leaf[1].ints[k];
    for (int64_t p = 0; p < l->u->T; p++) out[0][l->u->row_of[p] * l->D + l->u->col_of[p]] = l->leaf[0].ints[p];
}

enum { PUT_COLUMNS = 3 };
static int32_t put_row(const acf_lab *l, int64_t p) { return p % 3 == 1 ? -1 : (int32_t)(l->N - 1 - p); }
static int32_t put_column(int64_t p) { return (int32_t)((2 * p + 1) % PUT_COLUMNS); }

/* Two rows of three get one number each; the others do not change. */
static void build_put_reals(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -1, 1, 2, (int64_t[]){l->N, PUT_COLUMNS}),
               *made = acf_leaf_fixed(l, "made", 2, 3, 1, &l->N);
    int32_t *row = acf_lab_ints(l->N), *column = acf_lab_ints(l->N);
    for (int64_t p = 0; p < l->N; p++) row[p] = put_row(l, p), column[p] = put_column(p);
    const int32_t *rows = acf_lab_give_ints(l, row, l->N), *columns = acf_lab_give_ints(l, column, l->N);
    acf_put_reals(l->t, x, made, (acf_cells){rows, columns});
    acf_result(l, x);
}

static void naive_put_reals(const acf_lab *l, double *const *out) {
    for (int64_t k = 0; k < l->N * PUT_COLUMNS; k++) out[0][k] = (double)l->leaf[0].value[k];
    for (int64_t p = 0; p < l->N; p++)
        if (put_row(l, p) >= 0) out[0][put_row(l, p) * PUT_COLUMNS + put_column(p)] = (double)l->leaf[1].value[p];
}

/* Every second column, from the last one on. */
static int64_t taken(const acf_lab *l) { return (l->D + 1) / 2; }

static acf_grid grid(acf_lab *l, const int32_t **column) {
    int32_t *list = acf_lab_ints(taken(l));
    for (int64_t k = 0; k < taken(l); k++) list[k] = (int32_t)(l->D - 1 - 2 * k);
    *column = acf_lab_give_ints(l, list, taken(l));
    const acf_tensor *x = acf_leaf_fixed(l, "x", -1, 1, 2, (int64_t[]){l->N, l->D});
    return (acf_grid){l->N,
                      l->D,
                      x->data,
                      acf_leaf_ints(l, "code", 0, 99, l->N * l->D),
                      acf_lab_copy(l, l->b, (size_t)(l->N * l->D)),
                      acf_lab_copy(l, l->m, (size_t)(l->N * l->D))};
}

static void build_reals(acf_lab *l) {
    const int32_t *column;
    const acf_grid g = grid(l, &column);
    acf_taken r = acf_take_reals(l->t, &g, column, taken(l));
    acf_result(l, r.x);
    acf_result(l, r.common);
    if (r.b) acf_result(l, acf_mask_numbers(l->t, r.b, l->N, taken(l)));
    if (r.m) acf_result(l, acf_mask_numbers(l->t, r.m, l->N, taken(l)));
}

static void naive_reals(const acf_lab *l, double *const *out) {
    const int64_t K = taken(l);
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t k = 0; k < K; k++) {
            const int64_t from = i * l->D + l->D - 1 - 2 * k;
            const double b = l->b[from] != 0, m = l->m[from] != 0, x = m != 0 ? (double)l->leaf[0].value[from] : 0;
            out[0][i * K + k] = x, out[2][i * K + k] = b, out[3][i * K + k] = m;
            out[1][i * 3 * K + k] = b != 0 ? x : 0, out[1][i * 3 * K + K + k] = b, out[1][i * 3 * K + 2 * K + k] = m;
        }
}

static void build_classes(acf_lab *l) {
    const int32_t *column;
    const acf_grid g = grid(l, &column);
    acf_taken r = acf_take_classes(l->t, &g, column, taken(l));
    acf_result_ints(l, r.code, l->N * taken(l), NULL);
    if (r.b) acf_result(l, acf_mask_numbers(l->t, r.b, l->N, taken(l)));
    if (r.m) acf_result(l, acf_mask_numbers(l->t, r.m, l->N, taken(l)));
}

static void naive_classes(const acf_lab *l, double *const *out) {
    const int64_t K = taken(l);
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t k = 0; k < K; k++) {
            const int64_t from = i * l->D + l->D - 1 - 2 * k;
            out[0][i * K + k] = l->m[from] ? l->leaf[1].ints[from] : -1;
            out[1][i * K + k] = l->b[from] != 0, out[2][i * K + k] = l->m[from] != 0;
        }
}

static const acf_case cases[] = {
    {"columns of reals", build_reals, naive_reals, .no_grad = true, .hides_nonfinite = true},
    {"columns of categories", build_classes, naive_classes, .no_grad = true, .hides_nonfinite = true},
    {"masks as numbers", build_mask, naive_mask, .no_grad = true},
    {"codes put back", build_put, naive_put, .no_grad = true, .hides_nonfinite = true},
    {"reals put back", build_put_reals, naive_put_reals, .no_grad = true, .hides_nonfinite = true, .big_N = 5000},
};
ACF_CASES(cells, cases)

static void refused(acf_lab *l, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), ACF_ESHAPE);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_values_of_other_shapes(void **state) {
    (void)state;
    static const int32_t zero[6] = {0};
    const acf_cells at = {zero, zero};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_tensor *list = acf_tensor_const(l.t, NULL, 1, 1, (int64_t[]){6});
    acf_put_reals(l.t, list, list, at);
    refused(&l, "put_reals: values (6) into x (6); expected (n) into (N, K)");
    acf_tensor *table = acf_tensor_const(l.t, NULL, 1, 2, (int64_t[]){2, 3});
    acf_put_reals(l.t, table, table, at);
    refused(&l, "put_reals: values (2, 3) into x (2, 3); expected (n) into (N, K)");
    acf_lab_close(&l);
}

ACF_TESTS(cells, cmocka_unit_test(refuses_values_of_other_shapes))
