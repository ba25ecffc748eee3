/* Tests of the leaky-ReLU flow: cases for the harness, and the mathematics of a flow. */
#include "ops/leaky.h"

#include "base/vmath.h"
#include "harness/lab.h"

/* Options of a case, as bits of its variant. */
enum { INVERSE = 1, LOGDET = 2, VALUE = 4 };

static void build(acf_lab *l) {
    int what = l->c->variant;
    acf_tensor *x = acf_leaf_packed(l, "x", -2, 2, 0), *a = acf_leaf(l, "a", -1, 1, 1, (int64_t[]){1});
    acf_tensor *logdet = NULL, **want = what & LOGDET ? &logdet : NULL;
    acf_tensor *y =
        what & INVERSE ? acf_leaky_inverse(l->t, x, a, l->u, want) : acf_leaky_forward(l->t, x, a, l->u, want);
    if (what & VALUE) acf_result(l, y);
    if (what & LOGDET) acf_result(l, logdet);
}

static void naive(const acf_lab *l, double *const *out) {
    int what = l->c->variant, k = 0;
    double *y = what & VALUE ? out[k++] : NULL, *logdet = what & LOGDET ? out[k] : NULL;
    double alpha = 1 / (1 + exp(-(double)l->leaf[1].value[0])), slope = what & INVERSE ? 1 / alpha : alpha;
    for (int64_t p = 0; p < l->u->T; p++) {
        double x = (double)l->leaf[0].value[p];
        if (y) y[p] = x < 0 ? slope * x : x;
        if (logdet && x < 0) logdet[l->u->row_of[p]] += log(slope);
    }
}

/* One a used in both directions: its gradients add up. */
static void build_there_and_back(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -2, 2, 0), *a = acf_leaf(l, "a", -1, 1, 0, NULL), *there, *back;
    acf_result(l, acf_leaky_forward(l->t, x, a, l->u, &there));
    acf_result(l, acf_leaky_inverse(l->t, x, a, l->u, &back));
    acf_result(l, there);
    acf_result(l, back);
}

/* Small sizes of every kind, and one with several blocks of rows. */
static const acf_size sizes[] = {{0, 4, ACF_MASK_RANDOM}, {1, 1, ACF_MASK_ALL},    {2, 5, ACF_MASK_NONE},
                                 {3, 4, ACF_MASK_ONE},    {5, 7, ACF_MASK_RANDOM}, {300, 4, ACF_MASK_RANDOM},
                                 {-1, 0, ACF_MASK_RANDOM}};

/* big: more than 32768 elements, so that several threads run. */
static const acf_case cases[] = {
    {"forward", build, naive, .variant = VALUE | LOGDET, .sizes = sizes, .big_N = 3000, .big_D = 40},
    {"inverse", build, naive, .variant = INVERSE | VALUE | LOGDET, .sizes = sizes, .big_N = 3000, .big_D = 40},
    {"forward without log-determinant", build, naive, .variant = VALUE, .sizes = sizes, .big_N = 3000, .big_D = 40},
    {"inverse without log-determinant", build, naive, .variant = INVERSE | VALUE, .sizes = sizes, .big_N = 3000,
     .big_D = 40},
    /* Only the log-determinant is checked here; a NaN in x counts as an element that is not negative. */
    {"log-determinant alone", build, naive, .variant = LOGDET, .sizes = sizes, .big_N = 3000, .big_D = 40,
     .hides_nonfinite = true},
    {"log-determinant of the inverse alone", build, naive, .variant = INVERSE | LOGDET, .sizes = sizes, .big_N = 3000,
     .big_D = 40, .hides_nonfinite = true},
    {"one slope there and back", build_there_and_back, NULL, .sizes = sizes, .big_N = 3000, .big_D = 40},
};
ACF_CASES(leaky, cases)

/* A tape with a scalar a; x packed. */
static acf_tensor *scalar(acf_lab *l, double a) {
    acf_real value = (acf_real)a;
    return acf_tensor_input(l->t, &value, 0, NULL);
}

/* inverse(forward(x)) = x and the log-determinants cancel, for slopes near 1 and near 0. */
static void inverts(void **state) {
    (void)state;
    const double slopes[] = {-20, -5, -1, 0, 2, 20};
    for (size_t k = 0; k < sizeof slopes / sizeof slopes[0]; k++) {
        acf_lab l;
        acf_lab_open(&l, 2, 200, 9, ACF_MASK_RANDOM, 5);
        acf_tensor *x = acf_leaf_packed(&l, "x", -5, 5, 0), *a = scalar(&l, slopes[k]), *there, *back;
        acf_tensor *z = acf_leaky_forward(l.t, x, a, l.u, &there), *y = acf_leaky_inverse(l.t, z, a, l.u, &back);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        for (int64_t p = 0; p < l.u->T; p++) {
            acf_assert_close((double)y->data[p], (double)x->data[p], 4 * (double)ACF_REAL_EPS, "x again");
            assert_true((z->data[p] < 0) == (x->data[p] < 0));
        }
        for (int64_t i = 0; i < l.N; i++) assert_true(there->data[i] == -back->data[i]);
        acf_lab_close(&l);
    }
}

/* a = -1000 makes α = 0 in any precision, but log α is -1000: the log-determinant must not overflow. Zero is not
 * negative. */
static void log_of_the_slope_is_stable(void **state) {
    (void)state;
    const acf_real values[3] = {-1, 0, -1};
    for (int k = 0; k < 2; k++) {
        double a = k ? 1000 : -1000;
        acf_lab l;
        acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
        acf_tensor *x = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, values, 1, (int64_t[]){3}), l.u), *logdet;
        acf_leaky_forward(l.t, x, scalar(&l, a), l.u, &logdet);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        acf_assert_close((double)logdet->data[0], 2 * acf_log_sigmoid(a), 0, "log-determinant");
        assert_true(k ? logdet->data[0] == 0 : logdet->data[0] == -2000);
        acf_lab_close(&l);
    }
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_tensor *logdet = NULL, *y = acf_leaky_inverse(l.t, acf_leaf(&l, "plain", -1, 1, 1, (int64_t[]){6}),
                                                      scalar(&l, 0), l.u, &logdet);
    assert_int_equal(acf_tensor_count(y), 0);
    assert_int_equal(acf_tensor_count(logdet), 0);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "leaky_inverse: x is (6); expected (T), packed over the subset that was given");
    acf_lab_close(&l);
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    acf_leaky_forward(l.t, x, x, l.u, NULL);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "leaky_forward: a is (6 packed); expected one element");
    acf_lab_close(&l);
}

ACF_TESTS(leaky, cmocka_unit_test(inverts), cmocka_unit_test(log_of_the_slope_is_stable),
          cmocka_unit_test(refuses_what_does_not_fit))
