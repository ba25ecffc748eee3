/* Tests of convolution: cases for the harness, and identities. */
#include "ops/conv2d.h"

#include "harness/naive.h"

#include <stdlib.h>

/* One kind of convolution; a case's variant is its index in the list. */
typedef struct kind {
    int64_t kh, kw;
    acf_conv how;
    bool bias;
} kind;

enum { POINT, SAME, STRIDED, ABOVE, CORNER, BEFORE, WIDE, CUT };
static const kind kinds[] = {
    [POINT] = {1, 1, {1, 0, 0, 0, 0, ACF_TANH}, true},
    [SAME] = {3, 3, {1, 1, 1, 1, 1, ACF_ELU}, true},
    [STRIDED] = {3, 3, {2, 1, 1, 1, 1, ACF_IDENTITY}, true},
    [ABOVE] = {2, 3, {1, 2, 1, -1, 1, ACF_IDENTITY}, true},  /* rows above only */
    [CORNER] = {2, 2, {1, 1, 1, 0, 0, ACF_SIGMOID}, false},  /* above and to the left, here included */
    [BEFORE] = {1, 2, {0, 0, 2, 0, -1, ACF_IDENTITY}, true}, /* to the left only */
    [WIDE] = {4, 2, {2, 3, 2, 2, 1, ACF_TANH}, false},       /* an even kernel, uneven paddings, stride 2 */
    [CUT] = {1, 1, {2, 0, -1, 1, 2, ACF_IDENTITY}, true},    /* a 1x1 that is not a plain product */
};

/* Sizes of a lab's images: uneven, and 1x1 for D = 1. */
static acf_conv_shape shape_of(const acf_lab *l) {
    const kind *k = &kinds[l->c->variant];
    acf_conv_shape s = {.N = l->N,
                        .H = l->D,
                        .W = (2 * l->D + 1) / 3,
                        .Ci = l->big ? 20 : 2,
                        .Co = l->big ? 24 : 3,
                        .kh = k->kh,
                        .kw = k->kw,
                        .stride = acf_max(k->how.stride, 1),
                        .top = k->how.top,
                        .left = k->how.left};
    s.Ho = (s.H + k->how.top + k->how.bottom - s.kh) / s.stride + 1;
    s.Wo = (s.W + k->how.left + k->how.right - s.kw) / s.stride + 1;
    return s;
}

static void build(acf_lab *l) {
    const kind *k = &kinds[l->c->variant];
    const acf_conv_shape s = shape_of(l);
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){s.N, s.H, s.W, s.Ci});
    acf_tensor *w = acf_leaf(l, "w", -1, 1, 4, (int64_t[]){s.Co, s.kh, s.kw, s.Ci});
    acf_tensor *b = k->bias ? acf_leaf(l, "b", -1, 1, 1, &s.Co) : NULL;
    acf_result(l, acf_conv2d(l->t, x, w, b, k->how));
}

/* One number of the result, from the definition. */
static double naive_at(const acf_lab *l, const acf_conv_shape *s, int64_t n, int64_t p, int64_t q, int64_t o) {
    const acf_real *x = l->leaf[0].value, *w = l->leaf[1].value;
    double sum = kinds[l->c->variant].bias ? (double)l->leaf[2].value[o] : 0;
    for (int64_t i = 0; i < s->kh; i++)
        for (int64_t j = 0; j < s->kw; j++) {
            const int64_t h = p * s->stride + i - s->top, v = q * s->stride + j - s->left;
            for (int64_t c = 0; c < s->Ci && h >= 0 && h < s->H && v >= 0 && v < s->W; c++)
                sum += (double)w[((o * s->kh + i) * s->kw + j) * s->Ci + c] *
                       (double)x[((n * s->H + h) * s->W + v) * s->Ci + c];
        }
    return naive_act((int)kinds[l->c->variant].how.act, sum);
}

static void naive(const acf_lab *l, double *const *out) {
    const acf_conv_shape s = shape_of(l);
    for (int64_t r = 0; r < s.N * s.Ho * s.Wo; r++)
        for (int64_t o = 0; o < s.Co; o++)
            out[0][r * s.Co + o] = naive_at(l, &s, r / (s.Ho * s.Wo), r / s.Wo % s.Ho, r % s.Wo, o);
}

/* A weight and an image used twice: gradients add up. */
static void build_twice(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, 3, 2}),
               *w = acf_leaf(l, "w", -1, 1, 4, (int64_t[]){2, 3, 3, 2});
    acf_tensor *h = acf_conv2d(l->t, x, w, NULL, acf_conv_same(3, 3, ACF_TANH));
    acf_result(l, acf_conv2d(l->t, h, w, NULL, acf_conv_same(3, 3, ACF_IDENTITY)));
    acf_result(l, acf_conv2d(l->t, x, w, NULL, acf_conv_same(3, 3, ACF_IDENTITY)));
}

/* big: several blocks of patches, and several pieces of the sum over pixels. */
#define BIG .big_N = 50, .big_D = 24
static const acf_case cases[] = {
    {"1x1", build, naive, .variant = POINT, BIG},
    {"3x3, same size", build, naive, .variant = SAME, BIG},
    {"3x3, stride 2", build, naive, .variant = STRIDED, BIG},
    {"rows above", build, naive, .variant = ABOVE, BIG},
    {"above and left", build, naive, .variant = CORNER, BIG},
    {"left", build, naive, .variant = BEFORE, BIG},
    {"4x2, stride 2, uneven paddings", build, naive, .variant = WIDE, BIG},
    {"1x1, stride 2, cut", build, naive, .variant = CUT, BIG, .hides_nonfinite = true},
    {"one weight, one image used twice", build_twice, NULL, BIG},
};
ACF_CASES(conv2d, cases)

/* Large enough for many blocks of pixels, inputs and outputs: y against the definition, dw against the sum over two
 * halves of the batch. */
static void many_blocks(void **state) {
    (void)state;
    enum { N = 8, H = 16, C = 190, O = 73, PER = H * H };
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 3);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 4, (int64_t[]){N, H, H, C}),
               *w = acf_leaf(&l, "w", -1, 1, 4, (int64_t[]){O, 3, 3, C});
    acf_tensor *b = acf_leaf(&l, "b", -1, 1, 1, (int64_t[]){O}),
               *y = acf_conv2d(l.t, x, w, b, acf_conv_same(3, 3, ACF_IDENTITY));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    static const acf_case plain = {.variant = STRIDED}; /* a bias, no activation */
    l.c = &plain;
    const acf_conv_shape s = {.N = N,
                              .H = H,
                              .W = H,
                              .Ci = C,
                              .Ho = H,
                              .Wo = H,
                              .Co = O,
                              .kh = 3,
                              .kw = 3,
                              .stride = 1,
                              .up = 1,
                              .top = 1,
                              .left = 1};
    for (int64_t r = 0; r < N * PER; r += 7) {
        const double expected = naive_at(&l, &s, r / PER, r / H % H, r % H, r % O);
        acf_assert_close((double)y->data[r * O + r % O], expected, 1e4 * (double)ACF_REAL_EPS, "pixel of a block");
    }
    acf_real *whole = calloc(2 * O * 9 * C, sizeof *whole), *halves = whole + O * 9 * C;
    acf_conv_shape half = s;
    half.N = N / 2;
    void *scratch = malloc(acf_conv2d_bwd_scratch(l.dev, &s));
    assert_true(whole && scratch);
    acf_conv2d_bwd_cpu(l.dev, NULL, whole, NULL, y->data, x->data, w->data, &s, scratch);
    for (int k = 0; k < 2; k++)
        acf_conv2d_bwd_cpu(l.dev, NULL, halves, NULL, y->data + k * N / 2 * PER * O, x->data + k * N / 2 * PER * C,
                           w->data, &half, scratch);
    for (int64_t i = 0; i < O * 9 * C; i++)
        acf_assert_close((double)whole[i], (double)halves[i], 1e4 * (double)ACF_REAL_EPS, "dw");
    free(whole), free(scratch);
    acf_lab_close(&l);
}

static void refuses(acf_lab *l, int64_t channels, int64_t biases, int64_t side, acf_conv how, acf_status status,
                    const char *sentence) {
    acf_tensor *x = acf_tensor_new(l->t, 4, (int64_t[]){1, 2, 2, 3}),
               *w = acf_tensor_new(l->t, 4, (int64_t[]){2, side, side, channels});
    acf_tensor *b = acf_tensor_new(l->t, 1, &biases);
    assert_int_equal(acf_tensor_count(acf_conv2d(l->t, x, w, b, how)), 0);
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 3);
    refuses(&l, 4, 2, 1, (acf_conv){0}, ACF_ESHAPE,
            "conv2d: x is (1, 2, 2, 3) and w is (2, 1, 1, 4); expected (N, H, W, Ci) and (Co, kh, kw, Ci)");
    refuses(&l, 3, 5, 1, (acf_conv){0}, ACF_ESHAPE,
            "conv2d: the bias has 5 elements; w is (2, 1, 1, 3), so expected 2");
    refuses(&l, 3, 2, 1, (acf_conv){.stride = 3}, ACF_EUSAGE, "conv2d: the stride is 3; expected 1 or 2");
    refuses(&l, 3, 2, 1, (acf_conv){.act = ACF_ACT_COUNT}, ACF_EUSAGE, "conv2d: there is no activation number 7");
    refuses(&l, 3, 2, 3, (acf_conv){.bottom = -1}, ACF_ESHAPE,
            "conv2d: x is (1, 2, 2, 3) and w is (2, 3, 3, 3): with paddings 0 0 -1 0 "
            "(top, left, bottom, right) the kernel is larger than the image");
    acf_lab_close(&l);
}

ACF_TESTS(conv2d, cmocka_unit_test(many_blocks), cmocka_unit_test(refuses_what_does_not_fit))
