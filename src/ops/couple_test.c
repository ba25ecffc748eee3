/* Tests of the affine coupling of images: cases for the harness, and the mathematics of a flow. */
#include "ops/couple.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* Options of a case, as bits of its variant. */
enum { QUARTERS = 1, OTHER = 2, INVERSE = 4, LOGDET = 8, VALUE = 16 };

static acf_pattern pattern_of(int what) {
    return (acf_pattern){what & QUARTERS ? ACF_QUARTER : ACF_CHECKER, what & OTHER};
}
static int64_t width(const acf_lab *l) { return (2 * l->D + 1) / 3; }
static int64_t channels(const acf_lab *l) { return l->c->variant & QUARTERS ? 4 : 3; }

static acf_tensor *image(acf_lab *l, const char *name, double lo, double hi, int64_t times, bool fixed) {
    const int64_t dim[4] = {l->N, l->D, width(l), times * channels(l)};
    return fixed ? acf_leaf_fixed(l, name, lo, hi, 4, dim) : acf_leaf(l, name, lo, hi, 4, dim);
}

/* True if number i is kept by the pattern; written from the definition. */
static bool keeps(const acf_lab *l, int64_t i) {
    const int64_t C = channels(l), W = width(l), c = i % C, w = i / C % W, h = i / C / W % l->D;
    const bool even = l->c->variant & QUARTERS ? c == 0 || c == 2 : (h + w) % 2 == 0;
    return even != !!(l->c->variant & OTHER);
}

static void build_input(acf_lab *l) {
    acf_tensor *x = image(l, "x", -1, 1, 1, false), *b = image(l, "b", 0, 1, 1, true),
               *u = image(l, "u", 0, 1, 1, true);
    acf_result(l, acf_couple_input(l->t, x, b, u, pattern_of(l->c->variant)));
}

static void naive_input(const acf_lab *l, double *const *out) {
    const int64_t C = channels(l);
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        const bool b = l->leaf[1].value[i] > ACF_R(0.5), u = l->leaf[2].value[i] > ACF_R(0.5),
                   k = b || (u && keeps(l, i));
        const double x = k ? (double)l->leaf[0].value[i] : 0;
        double *to = out[0] + i / C * 3 * C + i % C;
        to[0] = fmax(x, 0), to[C] = fmax(-x, 0), to[2 * C] = k;
    }
}

static void build(acf_lab *l) {
    const int what = l->c->variant;
    acf_tensor *x = image(l, "x", -2, 2, 1, false), *st = image(l, "st", -2, 2, 2, false),
               *g = acf_leaf(l, "g", 0.5, 1.5, 0, NULL);
    acf_tensor *g0 = acf_leaf(l, "g0", -1, 1, 0, NULL), *u = image(l, "u", 0, 1, 1, true), *logdet = NULL;
    acf_tensor **want = what & LOGDET ? &logdet : NULL;
    acf_tensor *y = what & INVERSE ? acf_couple_inverse(l->t, x, st, g, g0, u, pattern_of(what), want)
                                   : acf_couple_forward(l->t, x, st, g, g0, u, pattern_of(what), want);
    if (what & VALUE) acf_result(l, y);
    if (what & LOGDET) acf_result(l, logdet);
}

static void naive(const acf_lab *l, double *const *out) {
    const int what = l->c->variant;
    const int64_t C = channels(l), size = l->D * width(l) * C;
    double *y = what & VALUE ? out[0] : NULL, *logdet = what & LOGDET ? out[y ? 1 : 0] : NULL;
    for (int64_t i = 0; i < l->leaf[0].count; i++) {
        const acf_real *st = l->leaf[1].value + i / C * 2 * C + i % C;
        const double x = (double)l->leaf[0].value[i], t = (double)st[C];
        const double s = (double)l->leaf[2].value[0] * tanh((double)st[0]) + (double)l->leaf[3].value[0];
        const bool moving = l->leaf[4].value[i] > ACF_R(0.5) && !keeps(l, i);
        if (y) y[i] = !moving ? x : what & INVERSE ? x * exp(-s) - t : (x + t) * exp(s);
        if (logdet && moving) logdet[i / size] += what & INVERSE ? -s : s;
    }
}

/* Both directions on one x and one st: gradients add up. */
static void build_both(acf_lab *l) {
    acf_tensor *x = image(l, "x", -2, 2, 1, false), *st = image(l, "st", -2, 2, 2, false),
               *g = acf_leaf(l, "g", 0.5, 1.5, 0, NULL);
    acf_tensor *g0 = acf_leaf(l, "g0", -1, 1, 0, NULL), *u = image(l, "u", 0, 1, 1, true), *there, *back;
    acf_result(l, acf_couple_forward(l->t, x, st, g, g0, u, pattern_of(0), &there));
    acf_result(l, acf_couple_inverse(l->t, x, st, g, g0, u, pattern_of(OTHER), &back));
    acf_result(l, there);
    acf_result(l, back);
}

/* Numbers hidden by a mask, and masks themselves, may be anything. */
#define MORE .hides_nonfinite = true, .big_N = 60, .big_D = 17
static const acf_case cases[] = {
    {"input, checkerboard", build_input, naive_input, .variant = 0, MORE},
    {"input, the other colour", build_input, naive_input, .variant = OTHER, MORE},
    {"input, quarters", build_input, naive_input, .variant = QUARTERS, MORE},
    {"forward", build, naive, .variant = VALUE | LOGDET, MORE},
    {"forward, the other colour", build, naive, .variant = VALUE | LOGDET | OTHER, MORE},
    {"forward, quarters", build, naive, .variant = VALUE | LOGDET | QUARTERS, MORE},
    {"forward, the other quarters", build, naive, .variant = VALUE | LOGDET | QUARTERS | OTHER, MORE},
    {"inverse", build, naive, .variant = INVERSE | VALUE | LOGDET, MORE},
    {"inverse, quarters", build, naive, .variant = INVERSE | VALUE | LOGDET | QUARTERS, MORE},
    {"without log-determinant", build, naive, .variant = VALUE, MORE},
    {"log-determinant alone", build, naive, .variant = LOGDET, MORE},
    {"both ways", build_both, NULL, MORE},
};
ACF_CASES(couple, cases)

/* inverse(forward(x)) = x; numbers that do not move are equal bit for bit; log-determinants cancel. */
static void inverts(void **state) {
    (void)state;
    static const acf_case plain = {.variant = QUARTERS};
    acf_lab l;
    acf_lab_open(&l, 2, 7, 6, ACF_MASK_ALL, 5);
    l.c = &plain;
    acf_tensor *x = image(&l, "x", -5, 5, 1, false), *st = image(&l, "st", -4, 4, 2, false),
               *u = image(&l, "u", 0, 1, 1, true);
    acf_tensor *g = acf_leaf(&l, "g", 2, 2, 0, NULL), *g0 = acf_leaf(&l, "g0", 0.5, 0.5, 0, NULL), *there, *back;
    acf_tensor *y = acf_couple_forward(l.t, x, st, g, g0, u, pattern_of(QUARTERS), &there);
    acf_tensor *z = acf_couple_inverse(l.t, y, st, g, g0, u, pattern_of(QUARTERS), &back);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    int64_t still = 0;
    for (int64_t i = 0; i < acf_tensor_count(x); i++) {
        acf_assert_close((double)z->data[i], (double)x->data[i], 100 * (double)ACF_REAL_EPS, "x again");
        if (acf_mask_on(u->data[i]) && !keeps(&l, i)) continue;
        assert_memory_equal(&y->data[i], &x->data[i], sizeof(acf_real));
        still++;
    }
    assert_true(still > 0 && still < acf_tensor_count(x));
    for (int64_t n = 0; n < l.N; n++) assert_true(there->data[n] == -back->data[n]);
    acf_lab_close(&l);
}

/* Numbers that are neither observed nor kept never reach the network. */
static void the_network_does_not_see_moving_numbers(void **state) {
    (void)state;
    static const acf_case plain = {.variant = 0};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 4, ACF_MASK_ALL, 5);
    l.c = &plain;
    acf_tensor *x = image(&l, "x", -5, 5, 1, false), *b = image(&l, "b", 0, 1, 1, true),
               *u = image(&l, "u", 0, 1, 1, true);
    acf_tensor *y = acf_couple_input(l.t, x, b, u, pattern_of(0));
    for (int64_t i = 0; i < acf_tensor_count(x); i++)
        if (!acf_mask_on(b->data[i]) && !(acf_mask_on(u->data[i]) && keeps(&l, i))) x->data[i] = (acf_real)NAN;
    acf_tensor *z = acf_couple_input(l.t, x, b, u, pattern_of(0));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    assert_memory_equal(y->data, z->data, (size_t)acf_tensor_count(y) * sizeof(acf_real));
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 5);
    acf_tensor *x = acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}), *one = acf_tensor_const(l.t, NULL, 1, 0, NULL);
    acf_couple_input(l.t, x, x, x, pattern_of(QUARTERS));
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "couple_input: x is (1, 2, 2, 3); expected (N, H, W, C), and for quarters C a multiple of 4");
    acf_lab_begin(&l, false);
    x = acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}), one = acf_tensor_const(l.t, NULL, 1, 0, NULL);
    acf_couple_input(l.t, x, one, x, pattern_of(0));
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "couple_input: x is (1, 2, 2, 3), b is () and u is (1, 2, 2, 3); expected one shape");
    acf_lab_begin(&l, false);
    x = acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}), one = acf_tensor_const(l.t, NULL, 1, 0, NULL);
    acf_couple_forward(l.t, x, x, one, one, x, pattern_of(0), NULL);
    assert_string_equal(
        (acf_tape_status(l.t), acf_error()),
        "couple_forward: x is (1, 2, 2, 3), st is (1, 2, 2, 3) and u is (1, 2, 2, 3); expected (N, H, W, C), twice its "
        "channels, and its shape; g and g0 one number each");
    acf_lab_close(&l);
}

ACF_TESTS(couple, cmocka_unit_test(inverts), cmocka_unit_test(the_network_does_not_see_moving_numbers),
          cmocka_unit_test(refuses_what_does_not_fit))
