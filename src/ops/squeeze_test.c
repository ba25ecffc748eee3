/* Squares of pixels as channels: cases for the harness, and the inverse. */
#include "ops/squeeze.h"

#include "harness/lab.h"

static int64_t channels(const acf_lab *l) { return l->big ? 8 : 3; }

/* Position of number (n,h,w,c) of images (N,2D,2,C) in (N,D,1,4C). */
static int64_t squeezed(const acf_lab *l, int64_t n, int64_t h, int64_t w, int64_t c) {
    static const int64_t quarter[2][2] = {{0, 2}, {3, 1}};
    return ((n * l->D + h / 2) * 4 + quarter[h % 2][w]) * channels(l) + c;
}

static void build(acf_lab *l) {
    const int64_t C = channels(l);
    if (l->c->variant)
        acf_result(l, acf_unsqueeze(l->t, acf_leaf(l, "y", -1, 1, 4, (int64_t[]){l->N, l->D, 1, 4 * C})));
    else
        acf_result(l, acf_squeeze(l->t, acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, 2 * l->D, 2, C})));
}

static void naive(const acf_lab *l, double *const *out) {
    const int64_t C = channels(l), H = 2 * l->D;
    for (int64_t i = 0; i < l->N * H * 2 * C; i++) {
        const int64_t at = squeezed(l, i / C / 2 / H, i / C / 2 % H, i / C % 2, i % C);
        if (l->c->variant)
            out[0][i] = (double)l->leaf[0].value[at];
        else
            out[0][at] = (double)l->leaf[0].value[i];
    }
}

static const acf_case cases[] = {{"there", build, naive, .variant = 0}, {"back", build, naive, .variant = 1}};
ACF_CASES(squeeze, cases)

/* Bit for bit, at several sizes in both directions. */
static void unsqueeze_inverts_squeeze(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 4, (int64_t[]){3, 8, 12, 5});
    acf_tensor *y = acf_unsqueeze(l.t, acf_unsqueeze(l.t, acf_squeeze(l.t, acf_squeeze(l.t, x))));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    assert_memory_equal(x->data, y->data, (size_t)acf_tensor_count(x) * sizeof(acf_real));
    acf_lab_close(&l);
}

static void refuses_odd_sizes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_squeeze(l.t, acf_tensor_new(l.t, 4, (int64_t[]){1, 4, 3, 1}));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "squeeze: x is (1, 4, 3, 1); expected (N, H, W, C) with even H and W");
    acf_lab_begin(&l, false);
    acf_unsqueeze(l.t, acf_tensor_new(l.t, 4, (int64_t[]){1, 4, 3, 6}));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "unsqueeze: y is (1, 4, 3, 6); expected (N, H, W, C) with C a multiple of 4");
    acf_lab_close(&l);
}

ACF_TESTS(squeeze, cmocka_unit_test(unsqueeze_inverts_squeeze), cmocka_unit_test(refuses_odd_sizes))
