/* Tests of vectors for codes: cases for the harness, refusals. */
#include "ops/embedding.h"

#include "harness/lab.h"

enum { V = 5 };

static int64_t wide(const acf_lab *l) { return l->big ? 37 : 3; }

/* Few codes, so that they repeat; variant 1: codes of packed elements. */
static void build(acf_lab *l) {
    int64_t n = l->c->variant ? (l->u ? l->u->T : 0) : 3 * l->N;
    const int32_t *code = acf_leaf_ints(l, "code", -1, V - 1, n);
    acf_tensor *table = acf_leaf(l, "table", -1, 1, 2, (int64_t[]){V, wide(l)});
    acf_result(l, acf_embedding(l->t, table, code, n, l->c->variant ? l->u : NULL));
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t E = wide(l);
    for (int64_t p = 0; p < l->leaf[0].count; p++)
        for (int64_t e = 0; e < E; e++)
            out[0][p * E + e] = l->leaf[0].ints[p] < 0 ? 0 : (double)l->leaf[1].value[l->leaf[0].ints[p] * E + e];
}

static void build_columns(acf_lab *l) {
    acf_tensor *table = acf_leaf(l, "table", -1, 1, 2, (int64_t[]){l->D, wide(l)});
    acf_result(l, acf_embedding_columns(l->t, table, l->u));
}

static void naive_columns(const acf_lab *l, double *const *out) {
    int64_t E = wide(l);
    for (int64_t p = 0; p < l->u->T; p++)
        for (int64_t e = 0; e < E; e++) out[0][p * E + e] = (double)l->leaf[0].value[l->u->col_of[p] * E + e];
}

/* hides_nonfinite: the vector of a code that does not occur does not affect the output. */
static const acf_case cases[] = {
    {"rows", build, naive, .hides_nonfinite = true},
    {"packed", build, naive, .variant = 1, .hides_nonfinite = true},
    {"columns", build_columns, naive_columns, .hides_nonfinite = true},
};
ACF_CASES(embedding, cases)

/* Cells (2,1) and (0,2) are bad; (0,2) comes later in the packed order, and is still the one that is named. */
static void names_the_lowest_bad_cell(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 3, 3, ACF_MASK_ALL, 1);
    acf_tensor *table = acf_leaf(&l, "table", -1, 1, 2, (int64_t[]){V, 2});
    int32_t code[9] = {0};
    code[acf_subset_at(l.u, 2, 1)] = -2;
    code[acf_subset_at(l.u, 0, 2)] = V;
    acf_embedding(l.t, table, code, 9, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_EDATA);
    assert_string_equal(acf_error(), "embedding: row 0, column 2: the code is 5; expected 0 to 4, or -1 for missing");
    acf_lab_begin(&l, false);
    table = acf_leaf(&l, "table", -1, 1, 2, (int64_t[]){V, 2});
    acf_embedding(l.t, table, (int32_t[]){4, -1, -2}, 3, NULL);
    assert_int_equal(acf_tape_status(l.t), ACF_EDATA);
    assert_string_equal(acf_error(), "embedding: row 2: the code is -2; expected 0 to 4, or -1 for missing");
    acf_lab_close(&l);
}

static void refused(acf_lab *l, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), ACF_ESHAPE);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 3, 3, ACF_MASK_ALL, 1);
    acf_embedding(l.t, acf_leaf(&l, "table", -1, 1, 1, (int64_t[]){V}), NULL, 0, NULL);
    refused(&l, "embedding: the table is (5); expected (V, E)");
    acf_tensor *table = acf_tensor_new(l.t, 2, (int64_t[]){V, 2});
    acf_embedding(l.t, table, l.u->col_of, 8, l.u);
    refused(&l, "embedding: 8 codes; the subset has 9 elements");
    acf_embedding(l.t, acf_tensor_new(l.t, 2, (int64_t[]){V, 2}), l.u->col_of, -1, NULL);
    refused(&l, "embedding: -1 codes; expected 0 to 2^31-1");
    acf_embedding_columns(l.t, acf_tensor_new(l.t, 2, (int64_t[]){V, 2}), l.u);
    refused(&l, "embedding: the table is (5, 2); the subset has 3 columns, so expected (3, E)");
    acf_lab_close(&l);
}

ACF_TESTS(embedding, cmocka_unit_test(names_the_lowest_bad_cell), cmocka_unit_test(refuses_wrong_shapes))
