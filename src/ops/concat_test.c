/* Tests of joining and slicing along the last axis: cases for the harness, refusals. */
#include "ops/concat.h"

#include "harness/lab.h"

static int64_t wide(const acf_lab *l) { return l->big ? 129 : 5; }

/* A number, a vector, and the vector again: its gradient gets two terms. variant 1: plain rows instead of packed. */
static void build(acf_lab *l) {
    int64_t C = wide(l);
    acf_tensor *a = l->c->variant ? acf_leaf(l, "a", -1, 1, 1, &l->N) : acf_leaf_packed(l, "a", -1, 1, 0);
    acf_tensor *b =
        l->c->variant ? acf_leaf(l, "b", -1, 1, 2, (int64_t[]){l->N, C}) : acf_leaf_packed(l, "b", -1, 1, C);
    acf_result(l, acf_concat(l->t, 3, (acf_tensor *[]){b, a, b}));
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t C = wide(l), W = 2 * C + 1;
    for (int64_t r = 0; r < l->leaf[0].count; r++) {
        out[0][r * W + C] = (double)l->leaf[0].value[r];
        for (int64_t c = 0; c < C; c++)
            out[0][r * W + c] = out[0][r * W + C + 1 + c] = (double)l->leaf[1].value[r * C + c];
    }
}

/* Overlapping slices, an empty one, and between them every column. */
static void build_slice(acf_lab *l) {
    int64_t C = wide(l);
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, C);
    acf_result(l, acf_slice(l->t, x, 0, 3));
    acf_result(l, acf_slice(l->t, x, 2, C - 2));
    acf_result(l, acf_slice(l->t, x, C, 0));
}

static void naive_slice(const acf_lab *l, double *const *out) {
    int64_t C = wide(l);
    for (int64_t r = 0; r < l->u->T; r++)
        for (int64_t c = 0; c < C; c++) {
            if (c < 3) out[0][r * 3 + c] = (double)l->leaf[0].value[r * C + c];
            if (c >= 2) out[1][r * (C - 2) + c - 2] = (double)l->leaf[0].value[r * C + c];
        }
}

/* Images are joined and sliced along their channels. */
static void build_images(acf_lab *l) {
    acf_tensor *a = acf_leaf(l, "a", -1, 1, 4, (int64_t[]){l->N, l->D, 2, 2}),
               *b = acf_leaf(l, "b", -1, 1, 4, (int64_t[]){l->N, l->D, 2, 3});
    acf_tensor *y = acf_concat(l->t, 2, (acf_tensor *[]){a, b});
    acf_result(l, y);
    acf_result(l, acf_slice(l->t, y, 1, 2));
}

static void naive_images(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->N * l->D * 2; p++) {
        for (int64_t c = 0; c < 5; c++)
            out[0][p * 5 + c] = (double)(c < 2 ? l->leaf[0].value[p * 2 + c] : l->leaf[1].value[p * 3 + c - 2]);
        for (int64_t c = 0; c < 2; c++) out[1][p * 2 + c] = out[0][p * 5 + 1 + c];
    }
}

static const acf_case cases[] = {
    {"packed", build, naive},
    {"rows", build, naive, .variant = 1},
    {"slices", build_slice, naive_slice},
    {"images", build_images, naive_images},
};
ACF_CASES(concat, cases)

/* A number per row counts as a column: it can be sliced, and the result is a matrix. */
static void numbers_are_columns(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0), *y = acf_slice(l.t, v, 0, 1), *z = acf_concat(l.t, 1, &v);
    assert_int_equal(y->ndim, 2);
    assert_true(acf_tensor_same_shape(y, z) && y->sub == l.u);
    assert_memory_equal(y->data, v->data, (size_t)l.u->T * sizeof(acf_real));
    assert_memory_equal(z->data, v->data, (size_t)l.u->T * sizeof(acf_real));
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
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){12, 2}), *nine[9] = {x, x, x, x, x, x, x, x, x};
    assert_int_equal(acf_concat(l.t, 9, nine)->dim[1], 18);
    acf_concat(l.t, 0, NULL);
    refused(&l, "concat: 0 tensors; expected at least one");
    x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){12, 2});
    acf_concat(l.t, 2, (acf_tensor *[]){x, acf_leaf(&l, "y", -1, 1, 2, (int64_t[]){11, 2})});
    refused(&l, "concat: tensor 0 is (12, 2) and tensor 1 is (11, 2); expected (M, C) or (M) with the same rows");
    x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){12, 2});
    acf_concat(l.t, 2, (acf_tensor *[]){x, acf_tensor_as_packed(l.t, x, l.u)});
    refused(&l,
            "concat: tensor 0 is (12, 2) and tensor 1 is (12 packed, 2); expected (M, C) or (M) with the same rows");
    acf_concat(l.t, 2,
               (acf_tensor *[]){acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 1}),
                                acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 3, 1})});
    refused(&l,
            "concat: tensor 0 is (1, 2, 2, 1) and tensor 1 is (1, 2, 3, 1); expected (M, C) or (M) with the same rows");
    acf_slice(l.t, acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){12, 2}), 1, 2);
    refused(&l, "slice: columns 1 to 2 of x (12, 2); expected columns that x has");
    acf_slice(l.t, acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){12, 2}), -1, 1);
    refused(&l, "slice: columns -1 to -1 of x (12, 2); expected columns that x has");
    acf_lab_close(&l);
}

ACF_TESTS(concat, cmocka_unit_test(numbers_are_columns), cmocka_unit_test(refuses_wrong_shapes))
