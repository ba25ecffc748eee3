/* Tests of a vector added to all pixels: a case for the harness. */
#include "ops/add_vector.h"

#include "harness/lab.h"

static int64_t channels(const acf_lab *l) { return l->big ? 16 : 3; }

static void build(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, 2, channels(l)});
    acf_result(l, acf_add_vector(l->t, x, acf_leaf(l, "v", -1, 1, 2, (int64_t[]){l->N, channels(l)})));
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t C = channels(l), P = l->D * 2;
    for (int64_t i = 0; i < l->leaf[0].count; i++)
        out[0][i] = (double)l->leaf[0].value[i] + (double)l->leaf[1].value[i / C / P * C + i % C];
}

static const acf_case cases[] = {{"all pixels", build, naive}};
ACF_CASES(add_vector, cases)

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_add_vector(l.t, acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}), acf_tensor_new(l.t, 2, (int64_t[]){1, 2}));
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "add_vector: x is (1, 2, 2, 3) and v is (1, 2); expected (N, H, W, C) and (N, C)");
    acf_lab_close(&l);
}

ACF_TESTS(add_vector, cmocka_unit_test(refuses_what_does_not_fit))
