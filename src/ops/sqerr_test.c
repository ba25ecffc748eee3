/* Squared error per row: cases for the harness, an identity, refusals. */
#include "ops/sqerr.h"

#include "harness/lab.h"
#include "ops/arith.h"
#include "ops/reduce.h"

static void build(acf_lab *l) {
    acf_tensor *a = acf_leaf_packed(l, "a", -1, 1, 0), *b = acf_leaf_packed(l, "b", -1, 1, 0);
    acf_result(l, acf_sqerr(l->t, a, b, l->u));
    acf_result(l, acf_sqerr(l->t, b, a, l->u)); /* both gradients get a second term */
}

static void naive(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->u->T; p++) {
        double d = (double)l->leaf[0].value[p] - (double)l->leaf[1].value[p];
        for (int k = 0; k < 2; k++) out[k][l->u->row_of[p]] += d * d;
    }
}

/* More rows than are summed together, with and without elements. */
static const acf_size many_rows[] = {{0, 3, ACF_MASK_RANDOM},
                                     {5, 7, ACF_MASK_RANDOM},
                                     {3, 4, ACF_MASK_NONE},
                                     {600, 2, ACF_MASK_RANDOM},
                                     {-1, 0, ACF_MASK_RANDOM}};

static const acf_case cases[] = {{"two sides", build, naive, .sizes = many_rows, .big_N = 8000}};
ACF_CASES(sqerr, cases)

/* Equals its parts, in value and in gradient; the error of a tensor with itself is 0. */
static void is_the_sum_of_squares(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 9, 6, ACF_MASK_RANDOM, 2);
    double loss[2];
    for (int fused = 0; fused < 2; fused++) {
        acf_lab_begin(&l, true);
        acf_tensor *a = acf_leaf_packed(&l, "a", -1, 1, 0), *b = acf_leaf_packed(&l, "b", -1, 1, 0);
        acf_tensor *rows =
            fused ? acf_sqerr(l.t, a, b, l.u) : acf_sum_subset(l.t, acf_square(l.t, acf_sub(l.t, a, b)), l.u);
        acf_tensor *self = acf_sqerr(l.t, a, a, l.u), *sum = acf_add(l.t, acf_mean(l.t, rows), acf_sum(l.t, self));
        assert_int_equal(acf_tape_backward(l.t, sum), ACF_OK);
        loss[fused] = (double)sum->data[0];
        for (int64_t p = 0; p < l.u->T; p++) {
            double expected = 2 * ((double)a->data[p] - (double)b->data[p]) / 9;
            acf_assert_close((double)a->grad[p], expected, 1e-6, "da");
            acf_assert_close((double)b->grad[p], -expected, 1e-6, "db");
        }
    }
    acf_assert_close(loss[1], loss[0], 1e-6, "loss");
    acf_lab_close(&l);
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *a = acf_leaf_packed(&l, "a", -1, 1, 0);
    acf_sqerr(l.t, a, acf_tensor_as_packed(l.t, a, NULL), l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "sqerr: a is (12 packed) and b is (12); expected both (T), packed over the given subset");
    acf_lab_close(&l);
}

ACF_TESTS(sqerr, cmocka_unit_test(is_the_sum_of_squares), cmocka_unit_test(refuses_wrong_shapes))
