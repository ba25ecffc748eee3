/* Sums: cases for the harness, precision, refusals. */
#include "ops/reduce.h"

#include "harness/lab.h"

static int64_t wide(const acf_lab *l) { return l->big ? 37 : 3; }

enum { SUM, MEAN, DOT };

/* The input is used twice, here and below, so that a gradient that overwrites instead of adding shows. */
static void build(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, wide(l));
    acf_tensor *w = l->c->variant == DOT ? acf_leaf_fixed(l, "w", -1, 1, 1, (int64_t[]){acf_tensor_count(x)}) : NULL;
    acf_result(l, l->c->variant == SUM    ? acf_sum(l->t, x)
                  : l->c->variant == MEAN ? acf_mean(l->t, x)
                                          : acf_dot(l->t, x, w->data));
    acf_result(l, acf_sum(l->t, x));
}

static void naive(const acf_lab *l, double *const *out) {
    double sum = 0, dot = 0;
    int64_t n = l->leaf[0].count;
    for (int64_t i = 0; i < n; i++) sum += (double)l->leaf[0].value[i];
    for (int64_t i = 0; i < n && l->c->variant == DOT; i++)
        dot += (double)l->leaf[0].value[i] * (double)l->leaf[1].value[i];
    out[0][0] = l->c->variant == DOT ? dot : l->c->variant == MEAN && n ? sum / (double)n : sum;
    out[1][0] = sum;
}

static void build_subset(acf_lab *l) {
    acf_tensor *v = acf_leaf_packed(l, "v", -1, 1, 0);
    for (int k = 0; k < 2; k++) acf_result(l, acf_sum_subset(l->t, v, l->u));
}

static void naive_subset(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->u->T; p++)
        for (int k = 0; k < 2; k++) out[k][l->u->row_of[p]] += (double)l->leaf[0].value[p];
}

/* Alone, and with a second subset of the places that the first leaves out: a row counts by both. */
static void build_shares(acf_lab *l) {
    const acf_subset *half = l->u ? acf_tape_half(l->t, l->u, 1) : NULL;
    acf_result(l, acf_row_shares(l->t, l->u, NULL, false));
    acf_result(l, acf_row_shares(l->t, l->u, half, true));
}

static void naive_shares(const acf_lab *l, double *const *out) {
    int64_t rows = 0;
    for (int64_t i = 0; i < l->N; i++) rows += l->host->size[i] > 0;
    for (int64_t i = 0; i < l->N; i++) {
        const int64_t size = l->host->size[i];
        out[0][i] = size ? 1 / (double)rows : 0;
        out[1][i] = size ? 1 / ((double)rows * (double)(size + size / 2)) : 0;
    }
}

/* More rows than are summed together, with and without elements. */
static const acf_size many_rows[] = {{0, 3, ACF_MASK_RANDOM},
                                     {5, 7, ACF_MASK_RANDOM},
                                     {3, 4, ACF_MASK_NONE},
                                     {600, 2, ACF_MASK_RANDOM},
                                     {-1, 0, ACF_MASK_RANDOM}};

static const acf_case cases[] = {
    {"shares of rows", build_shares, naive_shares, .no_grad = true, .sizes = many_rows},
    {"sum", build, naive, .variant = SUM},
    {"mean", build, naive, .variant = MEAN},
    {"dot", build, naive, .variant = DOT},
    {"over a subset", build_subset, naive_subset, .sizes = many_rows, .big_N = 8000},
};
ACF_CASES(reduce, cases)

/* 1e6 copies of 0.1: a float accumulator would be wrong in the third digit. */
static void accumulates_in_double(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_tensor_new(l.t, 1, (int64_t[]){1000000});
    for (int64_t i = 0; i < 1000000; i++) x->data[i] = ACF_R(0.1);
    double tol = sizeof(acf_real) == 4 ? (double)ACF_REAL_EPS : 1e-12;
    acf_assert_close((double)acf_sum(l.t, x)->data[0], 1e6 * (double)ACF_R(0.1), tol, "sum");
    acf_assert_close((double)acf_mean(l.t, x)->data[0], (double)ACF_R(0.1), tol, "mean");
    acf_lab_close(&l);
}

/* A sum of finite numbers is finite, however large; an infinite sum stays infinite. */
static void overflow_saturates(void **state) {
    (void)state;
    assert_true(acf_real_sum((double)INFINITY) > ACF_REAL_MAX && acf_real_sum(-(double)INFINITY) < -ACF_REAL_MAX);
    assert_true(isnan(acf_real_sum((double)NAN)));
    if (sizeof(acf_real) == 4) assert_true(acf_real_sum(1e60) == ACF_REAL_MAX && acf_real_sum(-1e60) == -ACF_REAL_MAX);
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_sum_subset(l.t, acf_tensor_as_packed(l.t, acf_leaf_packed(&l, "v", -1, 1, 0), NULL), l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "sum_subset: v is (12); expected (T) packed over the given subset");
    acf_lab_close(&l);
}

ACF_TESTS(reduce, cmocka_unit_test(accumulates_in_double), cmocka_unit_test(overflow_saturates),
          cmocka_unit_test(refuses_wrong_shapes))
