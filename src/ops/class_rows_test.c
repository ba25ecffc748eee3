/* Tests of rows of classes: every way to select cells, cells that must not be read, codes that must be refused. */
#include "ops/class_rows.h"

#include "harness/lab.h"

/* ---- cases ------------------------------------------------------------------------------------------------------ */

#define MAX_D 64
static int32_t firsts[MAX_D], counts[MAX_D];

/* 2, 3, 4, 2 ... classes. */
static acf_classes classes_of(int64_t D) {
    for (int64_t j = 0; j < D; j++) {
        counts[j] = 2 + (int32_t)(j % 3);
        firsts[j] = j ? firsts[j - 1] + counts[j - 1] : 0;
    }
    return (acf_classes){D, firsts, counts};
}

/* Codes (N,D) that are valid where l->b and l->m say modelled or observed. Elsewhere no column has such a code. */
static const int32_t *table_of(acf_lab *l, bool modelled) {
    if (!acf_leaf_ints(l, "codes", 0, 59, l->N * l->D)) return NULL;
    const int32_t *raw = l->leaf[l->leaf_at - 1].ints;
    int32_t *codes = acf_lab_ints(l->N * l->D);
    for (int64_t p = 0; p < l->N * l->D; p++) {
        bool used = modelled ? l->m[p] && !l->b[p] : l->b[p] != 0;
        codes[p] = used ? raw[p] % counts[p % l->D] : -77;
    }
    return acf_lab_give_ints(l, codes, l->N * l->D);
}

static void build_packed(acf_lab *l) {
    acf_classes c = classes_of(l->D);
    const int32_t *codes = table_of(l, true);
    acf_result_ints(l, codes ? acf_class_rows_packed(l->t, &c, codes, l->u) : NULL, l->u ? l->u->T : 0, l->u);
}

static void naive_packed(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->u->T; p++) {
        int32_t j = l->u->col_of[p], cell = l->u->row_of[p] * (int32_t)l->D + j;
        out[0][p] = firsts[j] + l->leaf[0].ints[cell] % counts[j];
    }
}

static void build_seen(acf_lab *l) {
    acf_classes c = classes_of(l->D);
    const int32_t *codes = table_of(l, false);
    const uint8_t *b = acf_lab_copy(l, l->b, (size_t)(l->N * l->D));
    acf_result_ints(l, codes && b ? acf_class_rows_seen(l->t, &c, codes, b, l->N) : NULL, l->N * l->D, NULL);
}

static void naive_seen(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t j = 0; j < l->D; j++) {
            int64_t p = i * l->D + j;
            out[0][p] = l->b[p] ? firsts[j] + l->leaf[0].ints[p] % counts[j] : -1;
        }
}

static const acf_case cases[] = {
    {"packed", build_packed, naive_packed, .no_grad = true},
    {"seen", build_seen, naive_seen, .no_grad = true},
};
ACF_CASES(class_rows, cases)

/* ---- choices and errors ----------------------------------------------------------------------------------------- */

static void expect(acf_lab *l, const int32_t *rows, acf_status status, const char *sentence) {
    assert_null(rows);
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void takes_the_columns_given(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_classes c = classes_of(3);
    const int32_t row[3] = {1, 0, 1}, column[3] = {2, 0, 1}, codes[3] = {3, 1, 0}, expected[3] = {8, 1, 2};
    assert_memory_equal(acf_class_rows_at(l.t, &c, codes, (acf_cells){row, column}, 3), expected, sizeof expected);
    acf_lab_close(&l);
}

/* The message names the lowest cell, not the first in memory. */
static void names_bad_codes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_classes c = classes_of(3);
    const int32_t two[6] = {0, 0, 4, 2, 0, 0}, low[6] = {0, 0, 0, 0, -1, 0}, none[3] = {2, 0, 4};
    const uint8_t seen[6] = {1, 1, 0, 1, 1, 1};
    expect(&l, acf_class_rows_packed(l.t, &c, two, l.u), ACF_EDATA,
           "class_rows: row 0, column 2: the code is 4, but the column has 4 classes (0 to 3)");
    expect(&l, acf_class_rows_seen(l.t, &c, two, seen, 2), ACF_EDATA,
           "class_rows: row 1, column 0: the code is 2, but the column has 2 classes (0 to 1)");
    expect(&l, acf_class_rows_packed(l.t, &c, low, l.u), ACF_EDATA,
           "class_rows: row 1, column 1: the code is -1, but the column has 3 classes (0 to 2)");
    expect(&l, acf_class_rows_packed(l.t, &(acf_classes){3, firsts, none}, low, l.u), ACF_EDATA,
           "class_rows: row 0, column 1: the column has no classes");
    expect(&l, acf_class_rows_packed(l.t, &(acf_classes){2, firsts, counts}, low, l.u), ACF_ESHAPE,
           "class_rows: there are classes for 2 columns; the table has 3");
    acf_lab_close(&l);
}

ACF_TESTS(class_rows, cmocka_unit_test(takes_the_columns_given), cmocka_unit_test(names_bad_codes))
