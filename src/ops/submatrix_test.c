/* Per-row matrices from a base and the network's part: cases for the harness, and properties of the packed layout. */
#include "ops/submatrix.h"

#include "harness/rowmat_lab.h"

#include <stdio.h>
#include <string.h>

static int64_t rank_of(const acf_lab *l) { return l->big ? 7 : 3; }

/* variant: 1 with a base, 0 without. */
static void build(acf_lab *l) {
    int64_t r = rank_of(l);
    acf_tensor *a = acf_leaf(l, "a", -1, 1, 2, (int64_t[]){l->N, l->D * r});
    acf_tensor *b = acf_leaf(l, "b", -1, 1, 2, (int64_t[]){l->N, l->D * r});
    acf_tensor *base = l->c->variant ? acf_leaf(l, "base", -1, 1, 2, (int64_t[]){l->D, l->D}) : NULL;
    acf_result(l, acf_submatrix(l->t, base, a, b, r, l->u));
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t r = rank_of(l), D = l->D;
    const acf_real *a = l->leaf[0].value, *b = l->leaf[1].value, *base = l->c->variant ? l->leaf[2].value : NULL;
    for (int64_t i = 0, at = 0; i < l->N; i++)
        for (int64_t x = 0; x < D; x++)
            for (int64_t y = 0; y < D; y++) {
                /* In the order of the table without unmodelled columns: the same order without the index lists. */
                bool in_x = l->m[i * D + x] && !l->b[i * D + x], in_y = l->m[i * D + y] && !l->b[i * D + y];
                if (!in_x || !in_y) continue;
                double sum = base ? (double)base[x * D + y] : 0;
                for (int64_t q = 0; q < r; q++) sum += (double)a[(i * D + x) * r + q] * (double)b[(i * r + q) * D + y];
                out[0][at++] = sum;
            }
}

static void build_full(acf_lab *l) {
    acf_tensor *c = acf_leaf(l, "c", -1, 1, 2, (int64_t[]){l->N, l->D * l->D});
    acf_tensor *base = l->c->variant ? acf_leaf(l, "base", -1, 1, 2, (int64_t[]){l->D, l->D}) : NULL;
    acf_result(l, acf_submatrix_full(l->t, base, c, l->u));
}

static void naive_full(const acf_lab *l, double *const *out) {
    int64_t D = l->D;
    const acf_real *c = l->leaf[0].value, *base = l->c->variant ? l->leaf[1].value : NULL;
    for (int64_t i = 0, at = 0; i < l->N; i++)
        for (int64_t x = 0; x < D; x++)
            for (int64_t y = 0; y < D; y++) {
                bool in_x = l->m[i * D + x] && !l->b[i * D + x], in_y = l->m[i * D + y] && !l->b[i * D + y];
                if (in_x && in_y) out[0][at++] = (base ? (double)base[x * D + y] : 0) + (double)c[(i * D + x) * D + y];
            }
}

/* hides_nonfinite: the network's output for unmodelled columns is not read. */
static const acf_case cases[] = {
    {"low rank and base", build, naive, .variant = 1, .big_N = 300, .big_D = 40, .hides_nonfinite = true},
    {"low rank alone", build, naive, .variant = 0, .big_N = 300, .big_D = 40, .hides_nonfinite = true},
    {"full and base", build_full, naive_full, .variant = 1, .big_N = 300, .big_D = 40, .hides_nonfinite = true},
    {"full alone", build_full, naive_full, .variant = 0, .big_N = 300, .big_D = 40, .hides_nonfinite = true},
};
ACF_CASES(submatrix, cases)

/* One row alone gives the same bits as in a batch: rows are independent. */
static void rows_are_independent(void **state) {
    (void)state;
    acf_lab l, one;
    acf_lab_open(&l, 2, 9, 20, ACF_MASK_RANDOM, 3);
    acf_tensor *a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){9, 60}),
               *b = acf_leaf(&l, "b", -1, 1, 2, (int64_t[]){9, 60});
    acf_tensor *all = acf_submatrix(l.t, NULL, a, b, 3, l.u);
    for (int64_t i = 0; i < 9; i++) {
        acf_lab_open(&one, 1, 1, 20, ACF_MASK_ALL, 3);
        memcpy(one.b, l.b + i * 20, 20), memcpy(one.m, l.m + i * 20, 20);
        acf_lab_begin(&one, false);
        acf_tensor *ai = acf_tensor_input(one.t, a->data + i * 60, 2, (int64_t[]){1, 60});
        acf_tensor *bi = acf_tensor_input(one.t, b->data + i * 60, 2, (int64_t[]){1, 60});
        acf_tensor *alone = acf_submatrix(one.t, NULL, ai, bi, 3, one.u);
        assert_memory_equal(alone->data, all->data + l.u->square[i],
                            (size_t)acf_tensor_count(alone) * sizeof(acf_real));
        acf_lab_close(&one);
    }
    acf_lab_close(&l);
}

/* A NaN among the modelled columns, in the base or in the row's own part, is reported with its row and table column. */
static void names_the_place_of_a_nan(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        acf_lab l;
        acf_lab_open(&l, 1, 5, 7, ACF_MASK_RANDOM, 11);
        const int64_t i = 3;
        const int64_t c = l.u->cols[i * 7 + 1]; /* its second modelled column */
        acf_tensor *a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){5, 14}),
                   *b = acf_leaf(&l, "b", -1, 1, 2, (int64_t[]){5, 14});
        acf_tensor *base = acf_leaf(&l, "base", -1, 1, 2, (int64_t[]){7, 7});
        acf_tensor *full = acf_leaf(&l, "full", -1, 1, 2, (int64_t[]){5, 49});
        acf_real *at[] = {&a->data[(i * 7 + c) * 2], &b->data[i * 14 + c], &base->data[c * 7 + c],
                          &full->data[i * 49 + c * 7 + c]};
        *at[which] = (acf_real)NAN;
        acf_tensor *m = which < 3 ? acf_submatrix(l.t, base, a, b, 2, l.u) : acf_submatrix_full(l.t, base, full, l.u);
        assert_int_equal(acf_tape_check(l.t, m), ACF_ENUMERIC);
        char expected[160];
        int64_t first = which == 0 ? l.u->cols[i * 7] : c; /* a NaN in A spoils its whole row of the matrix */
        snprintf(expected, sizeof expected, "at row %d, column %d;", (int)i, (int)first);
        if (which == 2)
            assert_non_null(strstr(acf_error(), "column ")); /* other rows may model that column before row 3 */
        else
            assert_non_null(strstr(acf_error(), expected));
        acf_lab_close(&l);
    }
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_RANDOM, 1);
    acf_tensor *a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6}), *b = acf_leaf(&l, "b", -1, 1, 2, (int64_t[]){4, 9});
    acf_submatrix(l.t, NULL, a, b, 2, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "submatrix: a is (4, 6) and b is (4, 9); expected (4, 6) for both: 3 columns times rank 2");
    acf_lab_begin(&l, false);
    a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6}), b = acf_leaf(&l, "b", -1, 1, 2, (int64_t[]){4, 9});
    acf_submatrix(l.t, b, a, a, 2, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "submatrix: the base is (4, 9); expected (3, 3)");
    acf_lab_begin(&l, false);
    a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6}), b = acf_leaf(&l, "b", -1, 1, 2, (int64_t[]){4, 9});
    acf_submatrix_full(l.t, NULL, a, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    acf_lab_begin(&l, false);
    a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6});
    acf_submatrix(l.t, NULL, a, a, 0, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_EUSAGE);
    assert_string_equal(acf_error(), "submatrix: the rank is 0; expected 1 or more");
    acf_lab_close(&l);
}

ACF_TESTS(submatrix, cmocka_unit_test(rows_are_independent), cmocka_unit_test(names_the_place_of_a_nan),
          cmocka_unit_test(refuses_wrong_shapes))
