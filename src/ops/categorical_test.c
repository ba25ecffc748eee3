/* Tests of categories: cases for the harness, the identities of a probability, data errors. */
#include "ops/categorical.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

/* 3, 1, 5, 2, 3, 1 ... classes, one after another, after two unused logits. */
#define MAX_D 64
static int32_t firsts[MAX_D], counts[MAX_D];

static acf_classes classes_of(int64_t D, int64_t *W) {
    static const int32_t pattern[4] = {3, 1, 5, 2};
    *W = 2;
    for (int64_t j = 0; j < D; j++) {
        firsts[j] = (int32_t)*W, counts[j] = pattern[j % 4];
        *W += counts[j];
    }
    return (acf_classes){D, firsts, counts};
}

/* Codes that fit their columns, on the tape; NULL after a failure. */
static const int32_t *codes_of(acf_lab *l, const acf_classes *c) {
    if (!l->u || !acf_leaf_ints(l, "codes", 0, 59, l->u->T)) return NULL;
    const int32_t *raw = l->leaf[l->leaf_at - 1].ints;
    int32_t *codes = acf_lab_ints(l->u->T);
    for (int64_t i = 0; i < l->host->T; i++) codes[i] = raw[i] % c->count[l->host->col_of[i]];
    return acf_lab_give_ints(l, codes, l->u->T);
}

/* Integers as a result of the harness. */
static void int_result(acf_lab *l, const int32_t *codes) { acf_result_ints(l, codes, l->u ? l->u->T : 0, l->u); }

static void build_logp(acf_lab *l) {
    int64_t W;
    acf_classes c = classes_of(l->D, &W);
    acf_tensor *logits = acf_leaf_packed(l, "logits", -2, 2, W);
    acf_result(l, acf_categorical_logp(l->t, logits, codes_of(l, &c), &c, l->u));
}

static void naive_logp(const acf_lab *l, double *const *out) {
    int64_t W;
    classes_of(l->D, &W);
    for (int64_t i = 0; i < l->u->T; i++) {
        int32_t j = l->u->col_of[i], code = l->leaf[1].ints[i] % counts[j];
        const acf_real *logit = l->leaf[0].value + i * W + firsts[j];
        double sum = 0;
        for (int32_t k = 0; k < counts[j]; k++) sum += exp((double)logit[k]);
        out[0][i] = log(exp((double)logit[code]) / sum);
    }
}

/* The same logits scored twice, with different codes: gradients add up. */
static void build_twice(acf_lab *l) {
    int64_t W;
    acf_classes c = classes_of(l->D, &W);
    acf_tensor *logits = acf_leaf_packed(l, "logits", -2, 2, W);
    acf_result(l, acf_categorical_logp(l->t, logits, codes_of(l, &c), &c, l->u));
    acf_result(l, acf_categorical_logp(l->t, logits, codes_of(l, &c), &c, l->u));
}

static void build_argmax(acf_lab *l) {
    int64_t W;
    acf_classes c = classes_of(l->D, &W);
    int_result(l, acf_categorical_argmax(l->t, acf_leaf_packed(l, "logits", -2, 2, W), &c, (acf_cells){NULL, NULL}));
}

static void naive_argmax(const acf_lab *l, double *const *out) {
    int64_t W;
    classes_of(l->D, &W);
    for (int64_t i = 0; i < l->u->T; i++) {
        int32_t j = l->u->col_of[i];
        const acf_real *logit = l->leaf[0].value + i * W + firsts[j];
        for (int32_t k = counts[j] - 1; k >= 0; k--)
            if (logit[k] >= logit[(int32_t)out[0][i]]) out[0][i] = k;
    }
}

static void build_sample(acf_lab *l) {
    int64_t W;
    acf_classes c = classes_of(l->D, &W);
    acf_tensor *logits = acf_leaf_packed(l, "logits", -2, 2, W);
    int_result(l, acf_categorical_sample(l->t, logits, &c, &(acf_draw){.seed = 3, .draw = 2}));
}

static void naive_sample(const acf_lab *l, double *const *out) {
    int64_t W;
    classes_of(l->D, &W);
    for (int64_t i = 0; i < l->u->T; i++) {
        int32_t j = l->u->col_of[i];
        const acf_real *logit = l->leaf[0].value + i * W + firsts[j];
        double w[5];
        for (int32_t k = 0; k < counts[j]; k++) w[k] = exp((double)logit[k]);
        acf_rng_counter at = {.seed = 3,
                              .row = (uint64_t)l->u->row_of[i],
                              .stream = ACF_STREAM_CATEGORY,
                              .column = (uint32_t)j,
                              .draw = 2};
        out[0][i] = (double)acf_rng_categorical(at, w, counts[j]);
    }
}

/* A NaN may be in the slice of another column, which the element does not read; NaNs in its own slice are tested
 * below. */
static const acf_case cases[] = {
    {"logp", build_logp, naive_logp, .hides_nonfinite = true},
    {"logp, used twice", build_twice, NULL, .hides_nonfinite = true},
    {"argmax", build_argmax, naive_argmax, .no_grad = true, .hides_nonfinite = true},
    {"sample", build_sample, naive_sample, .no_grad = true, .hides_nonfinite = true},
};
ACF_CASES(categorical, cases)

/* ---- identities ------------------------------------------------------------------------------------------------- */

/* One row of logits for columns of 4, 0 and 3 classes; n elements of one column. */
#define W9 9
static const int32_t first3[3] = {1, 5, 6}, count3[3] = {4, 0, 3};
static const acf_real row9[W9] = {100, ACF_R(0.5), -1, 2, ACF_R(-0.25), 50, 1, ACF_R(1.5), -3};

static acf_real logp_of(acf_lab *l, const acf_real *logits, int32_t column, int32_t code) {
    acf_real y;
    acf_categorical_logp_fwd_cpu(l->dev, &y, logits, &code, &column, first3, count3, 1, W9);
    return y;
}

static void probabilities_sum_to_one(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    for (int32_t column = 0; column < 3; column += 2) {
        double sum = 0;
        for (int32_t k = 0; k < count3[column]; k++) sum += exp((double)logp_of(&l, row9, column, k));
        acf_assert_close(sum, 1, 8 * (double)ACF_REAL_EPS, "sum of probabilities");
    }
    acf_lab_close(&l);
}

/* Adding a number to every logit of the slice changes nothing: exactly, as long as the sums are exact. */
static void logits_may_be_shifted(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    acf_real moved[W9];
    for (int k = 0; k < W9; k++) moved[k] = row9[k] + 4096;
    for (int32_t k = 0; k < 4; k++) assert_true(logp_of(&l, row9, 0, k) == logp_of(&l, moved, 0, k));
    acf_lab_close(&l);
}

/* Only the slice gets a gradient, and it sums to zero. */
static void gradient_stays_in_the_slice(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    acf_real d[W9], g = ACF_R(1.5);
    int32_t column = 2, code = 1;
    for (int k = 0; k < W9; k++) d[k] = 7;
    acf_categorical_logp_bwd_cpu(l.dev, d, &g, row9, &code, &column, first3, count3, 1, W9);
    for (int k = 0; k < 6; k++) assert_true(d[k] == 7);
    acf_assert_close((double)(d[6] + d[7] + d[8]), 21, 8 * (double)ACF_REAL_EPS, "sum");
    acf_lab_close(&l);
}

/* The caller may free the codes before the backward. */
static void keeps_the_codes(void **state) {
    (void)state;
    static const int32_t one_first[1] = {0}, one_count[1] = {3};
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_lab_begin(&l, true);
    acf_tensor *logits = acf_leaf_packed(&l, "logits", -1, 1, 3);
    int32_t code = 2;
    acf_tensor *y = acf_categorical_logp(l.t, logits, &code, &(acf_classes){1, one_first, one_count}, l.u);
    code = 0;
    assert_int_equal(acf_tape_backward(l.t, y), ACF_OK);
    assert_true(logits->grad[0] < 0 && logits->grad[1] < 0 && logits->grad[2] > 0);
    acf_lab_close(&l);
}

static void stays_finite_far_out(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    acf_real logits[W9] = {0, ACF_R(1e30), ACF_R(-1e30), ACF_R(1e4), ACF_R(1e30)}, d[W9] = {0}, g = 1;
    acf_assert_close((double)logp_of(&l, logits, 0, 0), -log(2), (double)ACF_REAL_EPS, "one of two");
    acf_assert_close((double)logp_of(&l, logits, 0, 1) / 2e30, -1, (double)ACF_REAL_EPS, "out of reach");
    int32_t column = 0, code = 1;
    acf_categorical_logp_bwd_cpu(l.dev, d, &g, logits, &code, &column, first3, count3, 1, W9);
    assert_true(d[1] == ACF_R(-0.5) && d[2] == 1 && d[3] == 0 && d[4] == ACF_R(-0.5));
    acf_lab_close(&l);
}

/* Frequencies of 20000 draws, chi-square with 3 degrees of freedom at 0.1 %. */
static void samples_follow_the_probabilities(void **state) {
    (void)state;
    enum { n = 20000 };
    static acf_real logits[n * W9];
    static int32_t row[n], column[n], codes[n];
    acf_lab l;
    acf_lab_open(&l, 2, 1, 3, ACF_MASK_ALL, 1);
    for (int i = 0; i < n; i++) {
        memcpy(logits + i * W9, row9, sizeof row9);
        row[i] = i, column[i] = 0;
    }
    acf_draw d = {.seed = 77, .at = {row, column}};
    acf_categorical_sample_fwd_cpu(l.dev, codes, logits, &d, first3, count3, n, W9);
    double seen[4] = {0}, chi = 0;
    for (int i = 0; i < n; i++) seen[codes[i]]++;
    for (int32_t k = 0; k < 4; k++) {
        double expected = n * exp((double)logp_of(&l, row9, 0, k));
        chi += pow(seen[k] - expected, 2) / expected;
    }
    assert_true(chi < 16.27);
    acf_lab_close(&l);
}

/* ---- choices and errors ----------------------------------------------------------------------------------------- */

/* A lab of 2 rows and 3 columns, all modelled: packed order is column 0 of rows 0 and 1, column 1 of both, column 2. */
static acf_tensor *logits6(acf_lab *l, const acf_real *row) {
    acf_real all[6 * W9];
    for (int i = 0; i < 6; i++) memcpy(all + i * W9, row, W9 * sizeof(acf_real));
    acf_tensor *x = acf_tensor_input(l->t, all, 2, (int64_t[]){6, W9});
    return x == &l->t->empty ? x : acf_tensor_as_packed(l->t, x, l->u);
}

static void expect(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    if (sentence) assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void argmax_takes_the_first_of_equals(void **state) {
    (void)state;
    static const int32_t count[3] = {4, 1, 3};
    static const acf_real row[W9] = {9, 1, 2, 2, 1, 0, -1, -1, -5};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    const acf_classes c = {3, first3, count};
    const int32_t *codes = acf_categorical_argmax(l.t, logits6(&l, row), &c, (acf_cells){NULL, NULL});
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    static const int32_t expected[6] = {1, 1, 0, 0, 0, 0};
    assert_memory_equal(codes, expected, sizeof expected);
    acf_lab_close(&l);
}

/* The message names the lowest cell, not the first in memory. */
static void names_bad_codes(void **state) {
    (void)state;
    static const int32_t count[3] = {4, 1, 3};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    const acf_classes c = {3, first3, count}, empty = {3, first3, count3};
    const int32_t high[6] = {0, 4, 0, 0, 3, 0}, low[6] = {0, 0, 0, 0, 0, -1}, fine[6] = {0};
    acf_categorical_logp(l.t, logits6(&l, row9), high, &c, l.u);
    expect(&l, ACF_EDATA, "categorical_logp: row 0, column 2: the code is 3, but the column has 3 classes (0 to 2)");
    acf_categorical_logp(l.t, logits6(&l, row9), low, &c, l.u);
    expect(&l, ACF_EDATA, "categorical_logp: row 1, column 2: the code is -1, but the column has 3 classes (0 to 2)");
    acf_categorical_logp(l.t, logits6(&l, row9), fine, &empty, l.u);
    expect(&l, ACF_EDATA, "categorical_logp: row 0, column 1: the column has no classes");
    assert_null(acf_categorical_argmax(l.t, logits6(&l, row9), &empty, (acf_cells){NULL, NULL}));
    expect(&l, ACF_EDATA, "categorical_argmax: row 0, column 1: the column has no classes");
    assert_null(acf_categorical_sample(l.t, logits6(&l, row9), &empty, &(acf_draw){.seed = 1}));
    expect(&l, ACF_EDATA, "categorical_sample: row 0, column 1: the column has no classes");
    /* Cells from the caller may name a column that does not exist. */
    const int32_t rows[6] = {0}, beyond[6] = {0, 1, 2, 3, 0, 0}, below[6] = {0, 1, 2, 0, -1, 0};
    assert_null(acf_categorical_argmax(l.t, logits6(&l, row9), &c, (acf_cells){rows, beyond}));
    expect(&l, ACF_EDATA, "categorical_argmax: row 0, column 3: the column has no classes");
    assert_null(acf_categorical_sample(l.t, logits6(&l, row9), &c, &(acf_draw){.at = {rows, below}}));
    expect(&l, ACF_EDATA, "categorical_sample: row 0, column -1: the column has no classes");
    acf_lab_close(&l);
}

/* All three detect a NaN inside the slice. Integers cannot represent it, so a choice fails. */
static void shows_nan_in_the_slice(void **state) {
    (void)state;
    static const int32_t count[3] = {4, 1, 3}, fine[6] = {0};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    const acf_classes c = {3, first3, count};
    acf_real bad[W9];
    memcpy(bad, row9, sizeof bad);
    bad[7] = (acf_real)NAN; /* of column 2 */
    acf_tape_check(l.t, acf_categorical_logp(l.t, logits6(&l, bad), fine, &c, l.u));
    expect(&l, ACF_ENUMERIC, NULL);
    assert_null(acf_categorical_argmax(l.t, logits6(&l, bad), &c, (acf_cells){NULL, NULL}));
    expect(&l, ACF_ENUMERIC, "categorical_argmax: row 0, column 2: the logits are not finite, no class can be chosen");
    assert_null(acf_categorical_sample(l.t, logits6(&l, bad), &c, &(acf_draw){.seed = 1}));
    expect(&l, ACF_ENUMERIC, "categorical_sample: row 0, column 2: the logits are not finite, no class can be chosen");
    /* A logit of -inf is a class with probability 0, as long as another class is possible. */
    bad[7] = -(acf_real)INFINITY;
    const int32_t *codes = acf_categorical_sample(l.t, logits6(&l, bad), &c, &(acf_draw){.seed = 1});
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int i = 4; i < 6; i++) assert_int_not_equal(codes[i], 1);
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int32_t far[3] = {1, 5, 7};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    const int32_t fine[6] = {0};
    acf_categorical_logp(l.t, logits6(&l, row9), fine, &(acf_classes){3, far, count3}, l.u);
    expect(&l, ACF_ESHAPE, "categorical_logp: column 2: 3 classes from logit 7 on; there are 9 logits");
    acf_categorical_logp(l.t, logits6(&l, row9), fine, &(acf_classes){2, first3, count3}, l.u);
    expect(&l, ACF_ESHAPE, "categorical_logp: there are classes for 2 columns; the table has 3");
    acf_categorical_logp(l.t, acf_tensor_new(l.t, 2, (int64_t[]){6, W9}), fine, &(acf_classes){3, first3, count3}, l.u);
    expect(&l, ACF_ESHAPE, "categorical_logp: the logits are not packed over this subset");
    acf_categorical_logp(l.t, acf_tensor_packed(l.t, l.u, 0), fine, &(acf_classes){3, first3, count3}, l.u);
    expect(&l, ACF_ESHAPE, "categorical_logp: logits are (6 packed); expected (T, W)");
    acf_tensor *plain = acf_tensor_new(l.t, 2, (int64_t[]){6, W9});
    assert_null(acf_categorical_argmax(l.t, plain, &(acf_classes){3, first3, count3}, (acf_cells){NULL, NULL}));
    expect(&l, ACF_ESHAPE, NULL);
    acf_lab_close(&l);
}

ACF_TESTS(categorical, cmocka_unit_test(probabilities_sum_to_one), cmocka_unit_test(logits_may_be_shifted),
          cmocka_unit_test(gradient_stays_in_the_slice), cmocka_unit_test(keeps_the_codes),
          cmocka_unit_test(stays_finite_far_out), cmocka_unit_test(samples_follow_the_probabilities),
          cmocka_unit_test(argmax_takes_the_first_of_equals), cmocka_unit_test(names_bad_codes),
          cmocka_unit_test(shows_nan_in_the_slice), cmocka_unit_test(refuses_what_does_not_fit))
