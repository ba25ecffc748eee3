/* Tests of activations alone: cases for the harness. */
#include "ops/act.h"

#include "harness/naive.h"

static void build(acf_lab *l) {
    acf_tensor *x = acf_leaf_packed(l, "x", -3, 3, l->big ? 37 : 3);
    acf_result(l, acf_act(l->t, (acf_act_kind)l->c->variant, x));
}

static void naive(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->leaf[0].count; i++) out[0][i] = naive_act(l->c->variant, (double)l->leaf[0].value[i]);
}

static const acf_case cases[] = {
    {"identity", build, naive, .variant = ACF_IDENTITY},
    {"relu", build, naive, .variant = ACF_RELU},
    {"leaky relu", build, naive, .variant = ACF_LEAKY_RELU},
    {"tanh", build, naive, .variant = ACF_TANH},
    {"sigmoid", build, naive, .variant = ACF_SIGMOID},
    {"softplus", build, naive, .variant = ACF_SOFTPLUS},
    {"elu", build, naive, .variant = ACF_ELU},
};
ACF_CASES(act, cases)

/* Limits: saturated outputs have the exact limit value, and nothing overflows. */
static void saturates(void **state) {
    (void)state;
    acf_real x[2] = {ACF_R(-1e30), ACF_R(1e30)}, y[2];
    acf_act_fwd_cpu(ACF_TANH, y, x, 2);
    assert_true(y[0] == -1 && y[1] == 1);
    acf_act_fwd_cpu(ACF_SIGMOID, y, x, 2);
    assert_true(y[0] == 0 && y[1] == 1);
    acf_act_fwd_cpu(ACF_SOFTPLUS, y, x, 2);
    assert_true(y[0] == 0 && y[1] == ACF_R(1e30));
    acf_act_fwd_cpu(ACF_ELU, y, x, 2);
    assert_true(y[0] == -1 && y[1] == ACF_R(1e30));
}

ACF_TESTS(act, cmocka_unit_test(saturates))
