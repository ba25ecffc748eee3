/* Tests of elementwise arithmetic: cases for the harness, refusals. */
#include "ops/arith.h"

#include "harness/lab.h"

enum { ADD, SUB, AXPY, SCALE, MUL, SQUARE, ADD_SELF };

static void build(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, l->big ? 37 : 3),
               *y = acf_leaf_packed(l, "y", -1, 1, l->big ? 37 : 3);
    switch (l->c->variant) {
    case ADD: acf_result(l, acf_add(l->t, x, y)); break;
    case SUB: acf_result(l, acf_sub(l->t, x, y)); break;
    case AXPY: acf_result(l, acf_axpy(l->t, -0.7, x, y)); break;
    case SCALE: acf_result(l, acf_add(l->t, acf_scale(l->t, 3, x), acf_scale(l->t, -0.5, y))); break;
    case MUL: acf_result(l, acf_mul(l->t, x, y)); break;
    case SQUARE: acf_result(l, acf_mul(l->t, acf_square(l->t, x), y)); break;
    case ADD_SELF: acf_result(l, acf_mul(l->t, acf_axpy(l->t, 2, x, x), y)); break;
    }
}

static void naive(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        double x = (double)l->leaf[0].value[i], y = (double)l->leaf[1].value[i];
        switch (l->c->variant) {
        case ADD: out[0][i] = x + y; break;
        case SUB: out[0][i] = x - y; break;
        case AXPY: out[0][i] = y - 0.7 * x; break;
        case SCALE: out[0][i] = 3 * x - y / 2; break;
        case MUL: out[0][i] = x * y; break;
        case SQUARE: out[0][i] = x * x * y; break;
        case ADD_SELF: out[0][i] = 3 * x * y; break;
        }
    }
}

static const acf_case cases[] = {
    {"add", build, naive, .variant = ADD},
    {"sub", build, naive, .variant = SUB},
    {"axpy", build, naive, .variant = AXPY},
    {"scale", build, naive, .variant = SCALE},
    {"mul", build, naive, .variant = MUL},
    {"square", build, naive, .variant = SQUARE},
    {"a tensor with itself", build, naive, .variant = ADD_SELF},
};
ACF_CASES(arith, cases)

/* Losses are scalars: no axis at all. */
static void scalars(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf(&l, "x", 0.5, 1, 0, NULL), *y = acf_axpy(l.t, 2, x, acf_square(l.t, x));
    assert_int_equal(y->ndim, 0);
    double v = (double)x->data[0];
    acf_assert_close((double)y->data[0], 2 * v + v * v, 8 * (double)ACF_REAL_EPS, "2x + x^2");
    acf_lab_close(&l);
}

static void refuses_other_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){4, 3}), *y = acf_leaf(&l, "y", -1, 1, 2, (int64_t[]){4, 2});
    acf_sub(l.t, x, y);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "add: x is (4, 3) and y is (4, 2); expected the same shape over the same subset");
    acf_lab_begin(&l, false);
    x = acf_tensor_new(l.t, 1, &l.u->T);
    acf_mul(l.t, x, acf_tensor_as_packed(l.t, x, l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "mul: x is (12) and y is (12 packed); expected the same shape over the same subset");
    acf_lab_close(&l);
}

ACF_TESTS(arith, cmocka_unit_test(scalars), cmocka_unit_test(refuses_other_shapes))
