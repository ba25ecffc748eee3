/* Tests of the affine flow: cases for the harness, and the mathematics of a flow. */
#include "ops/affine.h"

#include "harness/lab.h"

#include <math.h>

/* Options of a case, as bits of its variant. */
enum { INVERSE = 1, ADDITIVE = 2, LOGDET = 4, VALUE = 8, TIGHT = 16 };

static double bound_of(const acf_lab *l) { return l->c->variant & TIGHT ? 0.5 : 2.0; }

static void build(acf_lab *l) {
    int what = l->c->variant;
    acf_tensor *x = acf_leaf_packed(l, "x", -2, 2, 0);
    acf_tensor *st = acf_leaf_packed(l, "st", -3, 3, what & ADDITIVE ? 1 : 2);
    acf_tensor *logdet = NULL, **want = what & LOGDET ? &logdet : NULL;
    acf_tensor *y = what & INVERSE ? acf_affine_inverse(l->t, x, st, bound_of(l), l->u, want)
                                   : acf_affine_forward(l->t, x, st, bound_of(l), l->u, want);
    if (what & VALUE) acf_result(l, y);
    if (what & LOGDET) acf_result(l, logdet);
}

static void naive(const acf_lab *l, double *const *out) {
    int what = l->c->variant, k = 0;
    double *y = what & VALUE ? out[k++] : NULL, *logdet = what & LOGDET ? out[k] : NULL;
    double bound = bound_of(l);
    for (int64_t p = 0; p < l->u->T; p++) {
        const acf_real *st = l->leaf[1].value;
        double x = (double)l->leaf[0].value[p], s = 0, shift = (double)st[p];
        if (!(what & ADDITIVE)) s = bound * tanh((double)st[2 * p] / bound), shift = (double)st[2 * p + 1];
        if (y) y[p] = what & INVERSE ? (x - shift) * exp(-s) : x * exp(s) + shift;
        if (logdet) logdet[l->u->row_of[p]] += what & INVERSE ? -s : s;
    }
}

/* One x and one st used in both directions: their gradients add up. */
static void build_there_and_back(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -2, 2, 0), *st = acf_leaf_packed(l, "st", -3, 3, 2), *there, *back;
    acf_result(l, acf_affine_forward(l->t, x, st, 2, l->u, &there));
    acf_result(l, acf_affine_inverse(l->t, x, st, 1, l->u, &back));
    acf_result(l, there);
    acf_result(l, back);
}

/* Small sizes of every kind, and one with several blocks of rows. */
static const acf_size sizes[] = {{0, 4, ACF_MASK_RANDOM}, {1, 1, ACF_MASK_ALL},    {2, 5, ACF_MASK_NONE},
                                 {3, 4, ACF_MASK_ONE},    {5, 7, ACF_MASK_RANDOM}, {300, 4, ACF_MASK_RANDOM},
                                 {-1, 0, ACF_MASK_RANDOM}};

/* big_N: enough elements to be threaded. */
static const acf_case cases[] = {
    {"forward", build, naive, .variant = VALUE | LOGDET, .sizes = sizes, .big_N = 1500},
    {"inverse", build, naive, .variant = INVERSE | VALUE | LOGDET, .sizes = sizes, .big_N = 1500},
    {"forward, tight bound", build, naive, .variant = VALUE | LOGDET | TIGHT, .sizes = sizes, .big_N = 1500},
    {"forward without log-determinant", build, naive, .variant = VALUE, .sizes = sizes, .big_N = 1500},
    {"inverse without log-determinant", build, naive, .variant = INVERSE | VALUE, .sizes = sizes, .big_N = 1500},
    {"additive", build, naive, .variant = ADDITIVE | VALUE | LOGDET, .sizes = sizes, .big_N = 1500},
    {"additive inverse", build, naive, .variant = INVERSE | ADDITIVE | VALUE | LOGDET, .sizes = sizes, .big_N = 1500},
    /* Only the log-determinant is checked here; it does not depend on x or the shift. */
    {"log-determinant alone", build, naive, .variant = LOGDET, .sizes = sizes, .big_N = 1500, .hides_nonfinite = true},
    {"log-determinant of the inverse alone", build, naive, .variant = INVERSE | LOGDET, .sizes = sizes, .big_N = 1500,
     .hides_nonfinite = true},
    {"one head there and back", build_there_and_back, NULL, .sizes = sizes, .big_N = 1500},
};
ACF_CASES(affine, cases)

/* inverse(forward(x)) = x, and the two log-determinants cancel exactly, because both sum the same s in the same
 * order. */
static void inverts(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 300, 9, ACF_MASK_RANDOM, 5);
    acf_tensor *x = acf_leaf_packed(&l, "x", -5, 5, 0), *st = acf_leaf_packed(&l, "st", -9, 9, 2), *there, *back;
    acf_tensor *z = acf_affine_forward(l.t, x, st, 3, l.u, &there), *y = acf_affine_inverse(l.t, z, st, 3, l.u, &back);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t p = 0; p < l.u->T; p++)
        acf_assert_close((double)y->data[p], (double)x->data[p], 500 * (double)ACF_REAL_EPS, "x again");
    for (int64_t i = 0; i < l.N; i++) assert_true(there->data[i] == -back->data[i]);
    acf_lab_close(&l);
}

/* The log-determinant is that of the map, computed from differences of z in x (a diagonal matrix). */
static void logdet_is_that_of_the_map(void **state) {
    (void)state;
    const acf_real h = ACF_R(0.5); /* the map is affine in x, so any step is exact */
    acf_lab l;
    acf_lab_open(&l, 1, 20, 6, ACF_MASK_RANDOM, 8);
    acf_tensor *x = acf_leaf_packed(&l, "x", -2, 2, 0), *st = acf_leaf_packed(&l, "st", -3, 3, 2), *logdet;
    acf_tensor *z = acf_affine_forward(l.t, x, st, 1.5, l.u, &logdet);
    acf_tensor *moved = acf_tensor_packed(l.t, l.u, 0);
    for (int64_t p = 0; p < l.u->T; p++) moved->data[p] = x->data[p] + h;
    acf_tensor *z2 = acf_affine_forward(l.t, moved, st, 1.5, l.u, NULL);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < l.N; i++) {
        double sum = 0;
        for (int64_t t = 0; t < l.u->size[i]; t++) {
            int64_t p = acf_subset_at(l.u, i, t);
            sum += log((double)(z2->data[p] - z->data[p]) / (double)h);
        }
        acf_assert_close((double)logdet->data[i], sum, 500 * (double)ACF_REAL_EPS, "log-determinant");
    }
    acf_lab_close(&l);
}

/* However large the network's output, the scale stays within e^±bound; zero is the identity. */
static void scale_is_bounded(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 1);
    const acf_real st[6] = {ACF_R(1e30), 0, ACF_R(-1e30), 0, 0, 0}, one[3] = {1, 1, 1};
    acf_tensor *x = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, one, 1, (int64_t[]){3}), l.u);
    acf_tensor *head = acf_tensor_as_packed(l.t, acf_tensor_input(l.t, st, 2, (int64_t[]){3, 2}), l.u);
    acf_tensor *z = acf_affine_forward(l.t, x, head, 2, l.u, NULL);
    acf_assert_close((double)z->data[0], exp(2), 4 * (double)ACF_REAL_EPS, "largest scale");
    acf_assert_close((double)z->data[1], exp(-2), 4 * (double)ACF_REAL_EPS, "smallest scale");
    assert_true(z->data[2] == 1);
    acf_lab_close(&l);
}

static void refuses(acf_lab *l, acf_tensor *x, acf_tensor *st, double bound, acf_status status, const char *sentence) {
    acf_tensor *logdet = NULL, *y = acf_affine_forward(l->t, x, st, bound, l->u, &logdet);
    assert_int_equal(acf_tensor_count(y), 0);
    assert_int_equal(acf_tensor_count(logdet), 0);
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    int64_t six[2] = {6, 2};
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0), *st = acf_leaf(&l, "plain", -1, 1, 2, six);
    refuses(&l, x, st, 1, ACF_ESHAPE,
            "affine_forward: x is (6 packed) and st is (6, 2); both must be packed over the subset that was given");
    x = acf_leaf_packed(&l, "x", -1, 1, 0), st = acf_leaf_packed(&l, "plain", -1, 1, 2);
    refuses(&l, st, x, 1, ACF_ESHAPE,
            "affine_forward: x is (6 packed, 2) and st is (6 packed); "
            "expected (T) and (T, 2), or (T, 1) for a shift alone");
    x = acf_leaf_packed(&l, "x", -1, 1, 0), st = acf_leaf_packed(&l, "plain", -1, 1, 2);
    refuses(&l, x, st, 0, ACF_EUSAGE, "affine_forward: the bound of the scale is 0; expected a positive number");
    x = acf_leaf_packed(&l, "x", -1, 1, 0), st = acf_leaf_packed(&l, "plain", -1, 1, 2);
    refuses(&l, x, st, (double)NAN, ACF_EUSAGE,
            "affine_forward: the bound of the scale is nan; expected a positive number");
    acf_lab_close(&l);
}

ACF_TESTS(affine, cmocka_unit_test(inverts), cmocka_unit_test(logdet_is_that_of_the_map),
          cmocka_unit_test(scale_is_bounded), cmocka_unit_test(refuses_what_does_not_fit))
