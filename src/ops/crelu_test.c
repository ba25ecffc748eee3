/* Tests of the concatenated activation and the gate: cases for the harness. */
#include "ops/crelu.h"

#include "harness/naive.h"

static int64_t channels(const acf_lab *l) { return l->big ? 40 : 3; }

static void build_crelu(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -2, 2, 3, (int64_t[]){l->N, l->D, channels(l)});
    acf_result(l, acf_crelu(l->t, (acf_act_kind)l->c->variant, x));
}

static void naive_crelu(const acf_lab *l, double *const *out) {
    const int64_t C = channels(l);
    for (int64_t m = 0; m < l->N * l->D; m++)
        for (int64_t c = 0; c < C; c++) {
            const double x = (double)l->leaf[0].value[m * C + c];
            out[0][2 * m * C + c] = naive_act(l->c->variant, x);
            out[0][2 * m * C + C + c] = naive_act(l->c->variant, -x);
        }
}

static void build_gated(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -2, 2, 4, (int64_t[]){l->N, l->D, 2, channels(l)});
    acf_tensor *h = acf_leaf(l, "h", -2, 2, 4, (int64_t[]){l->N, l->D, 2, 2 * channels(l)});
    acf_tensor *c = acf_leaf(l, "c", -2, 2, 4, (int64_t[]){l->N, l->D, 2, 2 * channels(l)});
    acf_result(l, acf_gated(l->t, x, h, c));
}

static void naive_gated(const acf_lab *l, double *const *out) {
    const int64_t C = channels(l);
    for (int64_t i = 0; i < l->N * l->D * 2 * C; i++) {
        const int64_t a = i / C * 2 * C + i % C, b = a + C;
        const acf_real *x = l->leaf[0].value, *h = l->leaf[1].value, *c = l->leaf[2].value;
        out[0][i] = (double)x[i] + (double)(h[a] + c[a]) / (1 + exp(-(double)(h[b] + c[b])));
    }
}

static const acf_case cases[] = {
    {"relu", build_crelu, naive_crelu, .variant = ACF_RELU},
    {"elu", build_crelu, naive_crelu, .variant = ACF_ELU},
    {"gate", build_gated, naive_gated},
};
ACF_CASES(crelu, cases)

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    const struct {
        bool gate;
        int ndim;
        acf_act_kind act;
        const char *sentence;
    } wrong[] = {
        {false, 1, ACF_ELU, "crelu: x is (3); expected channels as its last axis"},
        {false, 2, ACF_TANH, "crelu: the activation is tanh; expected relu or elu"},
        {true, 2, ACF_ELU, "gated: x is (3, 5), h (3, 5) and c (3, 5); expected twice the channels of x in h and c"}};
    for (int i = 0; i < 3; i++) {
        acf_tensor *x = acf_tensor_new(l.t, wrong[i].ndim, (int64_t[]){3, 5});
        wrong[i].gate ? acf_gated(l.t, x, x, x) : acf_crelu(l.t, wrong[i].act, x);
        assert_int_not_equal(acf_tape_status(l.t), ACF_OK);
        assert_string_equal(acf_error(), wrong[i].sentence);
        acf_lab_begin(&l, false);
    }
    acf_lab_close(&l);
}

ACF_TESTS(crelu, cmocka_unit_test(refuses_what_does_not_fit))
