/* Tests of the linear layer: cases for the harness. */
#include "ops/linear.h"

#include "harness/naive.h"

/* Inner widths: odd, so that vector loops have a tail; large in the threaded run. */
static int64_t width_in(const acf_lab *l) { return l->big ? 129 : 5; }
static int64_t width_out(const acf_lab *l) { return l->big ? 201 : 3; }

static void build(acf_lab *l) {
    int64_t I = width_in(l), O = width_out(l);
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){l->N, I});
    acf_tensor *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){O, I});
    acf_tensor *b = acf_leaf(l, "b", -1, 1, 1, (int64_t[]){O});
    acf_result(l, acf_linear(l->t, x, w, b, (acf_act_kind)l->c->variant));
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t I = width_in(l), O = width_out(l);
    const acf_real *x = l->leaf[0].value, *w = l->leaf[1].value, *b = l->leaf[2].value;
    for (int64_t r = 0; r < l->N; r++)
        for (int64_t o = 0; o < O; o++) {
            double sum = (double)b[o];
            for (int64_t i = 0; i < I; i++) sum += (double)x[r * I + i] * (double)w[o * I + i];
            out[0][r * O + o] = naive_act(l->c->variant, sum);
        }
}

/* One weight used twice, without bias, packed rows: gradients add up. */
static void build_twice(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, 3);
    acf_tensor *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){3, 3});
    acf_tensor *h = acf_linear(l->t, x, w, NULL, ACF_TANH);
    acf_result(l, acf_linear(l->t, h, w, NULL, ACF_IDENTITY));
}

/* One input used by two layers: its gradients add up. */
static void build_input_twice(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){l->N, 3});
    acf_tensor *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){2, 3}), *v = acf_leaf(l, "v", -1, 1, 2, (int64_t[]){4, 3});
    acf_result(l, acf_linear(l->t, x, w, NULL, ACF_TANH));
    acf_result(l, acf_linear(l->t, x, v, NULL, ACF_IDENTITY));
}

static const acf_case cases[] = {
    {"identity", build, naive, .variant = ACF_IDENTITY},
    {"relu", build, naive, .variant = ACF_RELU},
    {"leaky relu", build, naive, .variant = ACF_LEAKY_RELU},
    {"tanh", build, naive, .variant = ACF_TANH},
    {"sigmoid", build, naive, .variant = ACF_SIGMOID},
    {"softplus", build, naive, .variant = ACF_SOFTPLUS},
    {"elu", build, naive, .variant = ACF_ELU},
    {"one weight used twice", build_twice, NULL},
    {"one input used twice", build_input_twice, NULL},
};
ACF_CASES(linear, cases)

/* Large enough for several tiles in each direction: every tile must use its own biases. */
static void several_tiles(void **state) {
    (void)state;
    enum { M = 150, I = 301, O = 1300 };
    acf_lab l;
    acf_lab_open(&l, 2, M, 1, ACF_MASK_ALL, 3);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){M, I}), *w = acf_leaf(&l, "w", -1, 1, 2, (int64_t[]){O, I});
    acf_tensor *b = acf_leaf(&l, "b", -9, 9, 1, (int64_t[]){O}), *y = acf_linear(l.t, x, w, b, ACF_RELU);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t r = 0; r < M; r++)
        for (int64_t o = 0; o < O; o++) {
            double sum = (double)b->data[o];
            for (int64_t i = 0; i < I; i++) sum += (double)x->data[r * I + i] * (double)w->data[o * I + i];
            acf_assert_close((double)y->data[r * O + o], fmax(sum, 0), 500 * (double)ACF_REAL_EPS, "element of a tile");
        }
    acf_lab_close(&l);
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_RANDOM, 1);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){4, 3}), *w = acf_leaf(&l, "w", -1, 1, 2, (int64_t[]){2, 5});
    acf_tensor *y = acf_linear(l.t, x, w, NULL, ACF_TANH);
    assert_int_equal(acf_tensor_count(y), 0);
    /* The failure is sticky: later operations do not run, and the first message is returned. */
    acf_linear(l.t, y, w, NULL, ACF_TANH);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "linear: x is (4, 3) and w is (2, 5); expected (M, I) and (O, I)");
    acf_lab_close(&l);
}

static void refuses_a_bias_of_other_length(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_RANDOM, 1);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){4, 3}), *w = acf_leaf(&l, "w", -1, 1, 2, (int64_t[]){2, 3});
    acf_linear(l.t, x, w, acf_leaf(&l, "b", -1, 1, 1, (int64_t[]){3}), ACF_TANH);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    acf_lab_close(&l);
}

ACF_TESTS(linear, cmocka_unit_test(several_tiles), cmocka_unit_test(refuses_wrong_shapes),
          cmocka_unit_test(refuses_a_bias_of_other_length))
