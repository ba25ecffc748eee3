/* Recurrent loops: cases against plain loops over rows, and identities between the loops and the sequence. */
#include "ops/rnn_loop.h"

#include "harness/naive.h"
#include "ops/affine.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

#include <stdlib.h>
#include <string.h>

/* A variant is a kind of loop with a number of layers, and whether there are known numbers of the steps and
 * conditioning of the rows. */
enum { INVERSE, SHIFT, MEAN };
#define VARIANT(kind, layers, told) ((kind) | (layers) << 4 | (told) << 8)
static int kind_of(int variant) { return variant & 15; }
static int layers_of(int variant) { return variant >> 4 & 15; }
static bool told(int variant) { return variant >> 8 & 1; }
/* Large runs use the size for which a GPU has its own kernels. */
#define WITH_256 (1 << 9)
static bool of_256(const acf_lab *l) { return l->big && (l->c->variant & WITH_256); }

enum { COMPONENTS = 3, KNOWN = 2, CONTEXT = 3, BOUND = 2, MOST = 64 };

static int64_t units(const acf_lab *l) { return of_256(l) ? 256 : l->big ? 21 : 3; }
static int64_t hidden(const acf_lab *l) { return of_256(l) ? 256 : l->big ? 19 : 4; }
static int64_t outputs(int variant) {
    return kind_of(variant) == MEAN ? 3 * COMPONENTS : kind_of(variant) == INVERSE ? 2 : 1;
}

/* Leaves: z (T), known (T,KNOWN), c (N,CONTEXT), then wx, wc, bx, wh, bh of each layer, then w1, b1, w2, b2. */
static acf_rnn network(acf_lab *l, int variant, acf_tensor **known, acf_tensor **c) {
    int64_t H = units(l), F = hidden(l), O = outputs(variant);
    double top = of_256(l) ? 0.1 : 1; /* larger weights of so many units give a chaotic loop */
    acf_rnn w = {.layers = layers_of(variant), .act = ACF_TANH};
    *known = told(variant) ? acf_leaf_packed(l, "known", -1, 1, KNOWN) : NULL;
    *c = told(variant) ? acf_leaf(l, "c", -1, 1, 2, (int64_t[]){l->N, CONTEXT}) : NULL;
    for (int k = 0; k < w.layers; k++) {
        int64_t I = k ? H : 1 + (told(variant) ? KNOWN : 0);
        w.gru[k].wx = acf_leaf(l, "wx", k ? -top : -1, k ? top : 1, 2, (int64_t[]){3 * H, I});
        if (told(variant)) w.gru[k].wc = acf_leaf(l, "wc", -1, 1, 2, (int64_t[]){3 * H, CONTEXT});
        w.gru[k].bx = acf_leaf(l, "bx", -1, 1, 1, (int64_t[]){3 * H});
        w.gru[k].wh = acf_leaf(l, "wh", -top, top, 2, (int64_t[]){3 * H, H});
        w.gru[k].bh = acf_leaf(l, "bh", -1, 1, 1, (int64_t[]){3 * H});
    }
    w.w1 = acf_leaf(l, "w1", -top, top, 2, (int64_t[]){F, H}), w.b1 = acf_leaf(l, "b1", -1, 1, 1, (int64_t[]){F});
    w.w2 = acf_leaf(l, "w2", -top, top, 2, (int64_t[]){O, F}), w.b2 = acf_leaf(l, "b2", -1, 1, 1, (int64_t[]){O});
    return w;
}

static void build(acf_lab *l) {
    int v = l->c->variant;
    acf_tensor *known, *c, *z = acf_leaf_packed(l, "z", -1, 1, 0);
    acf_rnn w = network(l, v, &known, &c);
    acf_result(l, kind_of(v) == MEAN ? acf_rnn_mean(l->t, &w, known, c, COMPONENTS, l->u)
                                     : acf_rnn_inverse(l->t, &w, z, known, c, BOUND, l->u));
}

static double naive_value(int kind, const double *out, double z) {
    if (kind == SHIFT) return z - out[0];
    if (kind == INVERSE) return (z - out[1]) * exp(-BOUND * tanh(out[0] / BOUND));
    double sum = 0, weights = 0;
    for (int k = 0; k < COMPONENTS; k++) weights += exp(out[k]), sum += exp(out[k]) * out[COMPONENTS + k];
    return sum / weights;
}

static void naive(const acf_lab *l, double *const *result) {
    int v = l->c->variant, layers = layers_of(v), conditioned = told(v);
    int64_t H = units(l), F = hidden(l), O = outputs(v);
    const acf_lab_leaf *known = &l->leaf[1], *c = &l->leaf[2], *first = &l->leaf[1 + 2 * conditioned];
    const acf_lab_leaf *head = first + layers * (4 + conditioned);
    for (int64_t i = 0; i < l->N; i++) {
        double state[4][MOST] = {{0}}, next[MOST], x[MOST], before = -1;
        for (int64_t s = 0; s < l->u->size[i]; s++) {
            int64_t p = acf_subset_at(l->u, i, s);
            x[0] = before;
            for (int e = 0; conditioned && e < KNOWN; e++) x[1 + e] = (double)known->value[p * KNOWN + e];
            for (int k = 0; k < layers; k++) {
                const acf_lab_leaf *f = first + k * (4 + conditioned);
                naive_gru w = {f[0].value, conditioned ? f[1].value : NULL, f[1 + conditioned].value,
                               f[2 + conditioned].value, f[3 + conditioned].value};
                naive_gru_step(w, k ? H : 1 + KNOWN * conditioned, H, CONTEXT, x,
                               conditioned ? c->value + i * CONTEXT : NULL, state[k], next);
                memcpy(state[k], next, sizeof next);
                memcpy(x, next, sizeof next);
            }
            double mid[MOST], out[MOST];
            naive_linear(mid, x, head[0].value, head[1].value, ACF_TANH, H, F);
            naive_linear(out, mid, head[2].value, head[3].value, ACF_IDENTITY, F, O);
            before = result[0][p] = naive_value(kind_of(v), out, (double)l->leaf[0].value[p]);
        }
    }
}

/* A step has one product per layer, and the head two. The mean's cases do not use z, so its NaN cannot show; they share
 * the leaves of the others. */
static const acf_case cases[] = {
    {"inverse, one layer", build, naive, .variant = VARIANT(INVERSE, 1, 0), .recurrent = 3},
    {"inverse, two layers, conditioned", build, naive, .variant = VARIANT(INVERSE, 2, 1), .recurrent = 4, .big_N = 200},
    {"shift, one layer, conditioned", build, naive, .variant = VARIANT(SHIFT, 1, 1), .recurrent = 3, .big_N = 200},
    {"mean, one layer", build, naive, .variant = VARIANT(MEAN, 1, 0), .recurrent = 3, .hides_nonfinite = true},
    {"mean, three layers, conditioned", build, naive, .variant = VARIANT(MEAN, 3, 1), .recurrent = 5,
     .hides_nonfinite = true, .big_N = 200},
    {"inverse, two layers, large of 256 units", build, naive, .variant = VARIANT(INVERSE, 2, 1) | WITH_256,
     .recurrent = 4, .big_N = 200},
    {"mean, three layers, large of 256 units", build, naive, .variant = VARIANT(MEAN, 3, 0) | WITH_256, .recurrent = 5,
     .hides_nonfinite = true, .big_N = 530},
};
ACF_CASES(rnn_loop, cases)

static const acf_case conditioned_case = {"conditioned", NULL, NULL};

static void open_conditioned(acf_lab *l, int64_t N, int64_t D) {
    acf_lab_open(l, 2, N, D, ACF_MASK_RANDOM, 11);
    l->c = &conditioned_case;
}

/* The coupling forward, all steps at once, then the loop: it returns the values. The same with and without
 * recording. */
static void inverse_undoes_the_coupling(void **state) {
    (void)state;
    for (int record = 0; record < 2; record++) {
        acf_lab l;
        open_conditioned(&l, 31, 9);
        acf_lab_begin(&l, record);
        acf_tensor *known, *c, *x = acf_leaf_packed(&l, "x", -2, 2, 0);
        acf_rnn w = network(&l, VARIANT(INVERSE, 2, 1), &known, &c);
        acf_tensor *z = acf_affine_forward(l.t, x, acf_rnn_seq(l.t, &w, x, known, c, l.u, NULL), BOUND, l.u, NULL);
        acf_tensor *back = acf_rnn_inverse(l.t, &w, z, known, c, BOUND, l.u);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        for (int64_t p = 0; p < l.u->T; p++)
            acf_assert_close((double)back->data[p], (double)x->data[p], 500 * (double)ACF_REAL_EPS,
                             "inverse of the coupling");
        acf_lab_close(&l);
    }
}

/* The mean at a step is the mixture mean of the network given the means before: one sequence run over the result checks
 * it. */
static void mean_equals_the_sequence_on_itself(void **state) {
    (void)state;
    acf_lab l;
    open_conditioned(&l, 17, 6);
    acf_tensor *known, *c;
    acf_rnn w = network(&l, VARIANT(MEAN, 2, 1), &known, &c);
    acf_tensor *mean = acf_rnn_mean(l.t, &w, known, c, COMPONENTS, l.u);
    acf_tensor *again = acf_mixture_mean(l.t, acf_rnn_seq(l.t, &w, mean, known, c, l.u, NULL), COMPONENTS);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t p = 0; p < l.u->T; p++)
        acf_assert_close((double)again->data[p], (double)mean->data[p], 100 * (double)ACF_REAL_EPS, "chained mean");
    acf_lab_close(&l);
}

/* The sample likewise: drawing from the sequence run over the sample, with the same key, returns it. */
static void sample_equals_the_sequence_on_itself(void **state) {
    (void)state;
    acf_lab l;
    open_conditioned(&l, 17, 6);
    acf_tensor *known, *c;
    acf_rnn w = network(&l, VARIANT(MEAN, 2, 1), &known, &c);
    const acf_draw d = {.seed = 9, .draw = 2};
    acf_tensor *z = acf_rnn_sample(l.t, &w, known, c, COMPONENTS, -5, 2, &d, l.u);
    acf_tensor *again = acf_mixture_sample(l.t, acf_rnn_seq(l.t, &w, z, known, c, l.u, NULL), COMPONENTS, -5, 2, &d);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t p = 0; p < l.u->T; p++)
        acf_assert_close((double)again->data[p], (double)z->data[p], 1000 * (double)ACF_REAL_EPS, "chained sample");
    acf_tensor *other = acf_rnn_sample(l.t, &w, known, c, COMPONENTS, -5, 2, &(acf_draw){.seed = 9, .draw = 3}, l.u);
    int64_t same = 0;
    for (int64_t p = 0; p < l.u->T; p++) same += other->data[p] == z->data[p];
    assert_true(l.u->T > 10 && same == 0);
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    open_conditioned(&l, 4, 3);
    acf_tensor *known, *c, *z = acf_leaf_packed(&l, "z", -1, 1, 0);
    acf_rnn w = network(&l, VARIANT(INVERSE, 1, 1), &known, &c);
    acf_rnn_mean(l.t, &w, known, c, COMPONENTS, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "rnn_mean: the head is (4, 3) then (2, 4); expected (F, 3) then (9, F)");

    acf_lab_begin(&l, false);
    z = acf_leaf_packed(&l, "z", -1, 1, 0);
    w = network(&l, VARIANT(INVERSE, 1, 1), &known, &c);
    acf_rnn_inverse(l.t, &w, z, NULL, c, BOUND, l.u); /* wx expects known numbers */
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "rnn_inverse: layer 0: wx is (9, 3) and wh is (9, 3); expected (9, 1) and (9, 3)");

    acf_lab_begin(&l, false);
    z = acf_leaf_packed(&l, "z", -1, 1, 0);
    w = network(&l, VARIANT(INVERSE, 1, 1), &known, &c);
    acf_rnn_inverse(l.t, &w, z, known, c, 0, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_EUSAGE);
    acf_lab_close(&l);
}

/* One mistake at a time. Without the checks, each reads past an end or follows NULL. */
enum {
    SHORT_BX,
    SHORT_BH,
    SHORT_B1,
    SHORT_B2,
    FEW_ROWS_OF_C,
    NARROW_WC,
    NO_ACTIVATION,
    TOO_MANY_LAYERS,
    NO_UNITS,
    WRONGS
};
static const char *const wrong_sentence[WRONGS] = {
    [SHORT_BX] = "the biases have 1 and 9 elements; expected 3H = 9",
    [SHORT_BH] = "the biases have 9 and 1 elements; expected 3H = 9",
    [SHORT_B1] = "the head's biases have 1 and 9 elements; expected 4 and 9",
    [SHORT_B2] = "the head's biases have 4 and 1 elements; expected 4 and 9",
    [FEW_ROWS_OF_C] = "the conditioning is (3, 9); expected (4, 9)",
    [NARROW_WC] = "", /* the linear layer reports it first */
    [NO_ACTIVATION] = "there is no activation number 99",
    [TOO_MANY_LAYERS] = "9 layers; expected 1 to 8",
    [NO_UNITS] = "wh is (0, 0); expected (3H, H), H at least 1",
};

static void break_network(acf_lab *l, int wrong, acf_rnn *w, acf_tensor **c) {
    acf_tensor *one = acf_leaf(l, "one", -1, 1, 1, (int64_t[]){1});
    if (wrong == SHORT_BX) w->gru[0].bx = one, *c = NULL;
    if (wrong == SHORT_BH) w->gru[0].bh = one;
    if (wrong == SHORT_B1) w->b1 = one;
    if (wrong == SHORT_B2) w->b2 = one;
    if (wrong == FEW_ROWS_OF_C) *c = acf_leaf(l, "few", -1, 1, 2, (int64_t[]){3, CONTEXT});
    if (wrong == NARROW_WC) w->gru[0].wc = acf_leaf(l, "narrow", -1, 1, 2, (int64_t[]){3, CONTEXT});
    if (wrong == NO_ACTIVATION) w->act = (acf_act_kind)99;
    if (wrong == TOO_MANY_LAYERS) w->layers = 9;
    if (wrong == NO_UNITS) {
        w->gru[0].wx = acf_leaf(l, "wx0", -1, 1, 2, (int64_t[]){0, 1 + KNOWN});
        w->gru[0].wh = acf_leaf(l, "wh0", -1, 1, 2, (int64_t[]){0, 0});
    }
}

static void refuses_a_broken_network(void **state) {
    (void)state;
    for (int wrong = 0; wrong < WRONGS; wrong++)
        for (int seq = 0; seq < 2; seq++) {
            acf_lab l;
            open_conditioned(&l, 4, 3);
            acf_tensor *known, *c, *v = acf_leaf_packed(&l, "v", -1, 1, 0);
            acf_rnn w = network(&l, VARIANT(MEAN, 1, 1), &known, &c);
            break_network(&l, wrong, &w, &c);
            if (seq)
                acf_rnn_seq(l.t, &w, v, known, c, l.u, NULL);
            else
                acf_rnn_mean(l.t, &w, known, c, COMPONENTS, l.u);
            assert_int_equal(acf_tape_status(l.t),
                             wrong == NO_ACTIVATION || wrong == TOO_MANY_LAYERS ? ACF_EUSAGE : ACF_ESHAPE);
            if (!strstr(acf_error(), wrong_sentence[wrong])) fail_msg("mistake %d: %s", wrong, acf_error());
            acf_lab_close(&l);
        }
}

static void refuses_other_mixtures(void **state) {
    (void)state;
    const int64_t K[] = {0, -1, 1025, INT64_MAX, COMPONENTS, COMPONENTS};
    const double lo[] = {-5, -5, -5, -5, 3, -301}, hi[] = {2, 2, 2, 2, 2, 2};
    for (int k = 0; k < 6; k++)
        for (int sample = 0; sample < 2; sample++) {
            acf_lab l;
            open_conditioned(&l, 4, 3);
            acf_tensor *known, *c;
            acf_rnn w = network(&l, VARIANT(MEAN, 1, 1), &known, &c);
            if (K[k] == 1025) {
                w.w2 = acf_leaf(&l, "wide", -1, 1, 2, (int64_t[]){3 * K[k], hidden(&l)});
                w.b2 = NULL;
            }
            if (sample)
                acf_rnn_sample(l.t, &w, known, c, K[k], lo[k], hi[k], &(acf_draw){.seed = 1}, l.u);
            else
                acf_rnn_mean(l.t, &w, known, c, K[k], l.u);
            assert_int_equal(acf_tape_status(l.t), sample || k < 4 ? ACF_EUSAGE : ACF_OK);
            acf_lab_close(&l);
        }
}

/* A head without biases equals one with biases of zero, in the loop and in the sequence. */
static void biases_of_the_head_are_optional(void **state) {
    (void)state;
    acf_lab l;
    open_conditioned(&l, 17, 6);
    acf_lab_begin(&l, true);
    acf_tensor *known, *c;
    acf_rnn w = network(&l, VARIANT(MEAN, 2, 1), &known, &c);
    w.b1 = w.b2 = NULL;
    acf_tensor *mean = acf_rnn_mean(l.t, &w, known, c, COMPONENTS, l.u);
    acf_tensor *again = acf_mixture_mean(l.t, acf_rnn_seq(l.t, &w, mean, known, c, l.u, NULL), COMPONENTS);
    assert_int_equal(acf_tape_backward(l.t, acf_mean(l.t, mean)), ACF_OK);
    for (int64_t p = 0; p < l.u->T; p++)
        acf_assert_close((double)again->data[p], (double)mean->data[p], 100 * (double)ACF_REAL_EPS, "no biases");
    acf_lab_close(&l);
}

/* Dropout applies behind every layer of the sequence, also between the last one and the head; the loops have none. */
static void the_sequence_alone_has_dropout(void **state) {
    (void)state;
    acf_lab l;
    const acf_drop half = {.rate = 0.5, .seed = 4, .step = 1, .site = 50};
    open_conditioned(&l, 17, 6);
    acf_lab_begin(&l, true);
    acf_tensor *known, *c, *v = acf_leaf_packed(&l, "v", -1, 1, 0);
    acf_rnn w = network(&l, VARIANT(MEAN, 2, 1), &known, &c);
    acf_tensor *out = acf_rnn_seq(l.t, &w, v, known, c, l.u, &half),
               *whole = acf_rnn_seq(l.t, &w, v, known, c, l.u, NULL);
    acf_tensor *x = acf_concat(l.t, 2, (acf_tensor *[]){acf_gather_prev(l.t, v, l.u, ACF_RNN_START), known});
    acf_tensor *h = acf_gru_stack(l.t, x, c, 2, w.gru, l.u, &half);
    acf_tensor *again = acf_linear(l.t, acf_linear(l.t, h, w.w1, w.b1, w.act), w.w2, w.b2, ACF_IDENTITY);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    int64_t n = acf_tensor_count(out), same = 0;
    assert_memory_equal(out->data, again->data, (size_t)n * sizeof *out->data);
    for (int64_t i = 0; i < n; i++) same += out->data[i] == whole->data[i];
    assert_true(same < n / 4); /* rows of a cell whose six numbers were all kept */
    acf_lab_close(&l);
}

static const acf_case large_case = {"large", NULL, NULL, .variant = VARIANT(MEAN, 2, 1) | WITH_256};

/* The draws of a lab, to be freed. */
static acf_real *draws_of(acf_lab *l, bool large, int64_t *count) {
    uint64_t id[40];
    for (uint64_t i = 0; i < 40; i++) id[i] = 1000 + 7 * i;
    l->c = large ? &large_case : &conditioned_case;
    l->big = large;
    acf_tensor *known, *c;
    acf_rnn w = network(l, VARIANT(MEAN, 2, 1), &known, &c);
    const acf_draw d = {.seed = 9, .draw = 2, .row_id = acf_lab_copy(l, id, sizeof id)};
    acf_tensor *z = acf_rnn_sample(l->t, &w, known, c, COMPONENTS, -5, 2, &d, l->u);
    assert_int_equal(acf_tape_status(l->t), ACF_OK);
    *count = acf_tensor_count(z);
    return acf_lab_fetch(l->dev, z->data, *count);
}

/* A device draws the same numbers. Where its products are rounded, a draw near the border of two components may fall
 * into the other one, and all that follow in the row differ. */
static void a_device_draws_the_same(void **state) {
    (void)state;
    const bool exact = acf_test_device()->precision == ACF_PRECISION_FLOAT;
    for (int large = 0; large < 2; large++) {
        acf_lab cpu, dev;
        int64_t n, capacity, other = 0;
        acf_lab_open(&cpu, 2, 40, 9, ACF_MASK_RANDOM, 11);
        acf_lab_open_on(&dev, acf_test_device(), 40, 9, ACF_MASK_RANDOM, 11);
        acf_real *a = draws_of(&cpu, large, &n), *b = draws_of(&dev, large, &capacity);
        assert_true(n > 50 && capacity >= n);
        for (int64_t p = 0; p < n; p++)
            other += !(fabs((double)(a[p] - b[p])) <= (exact ? 1e-4 : 5e-2) * (1 + fabs((double)a[p])));
        if (other > (exact ? 0 : n / 5))
            fail_msg("%d of %d draws are others%s", (int)other, (int)n, large ? ", 256 units" : "");
        for (int64_t p = n; p < capacity; p++) assert_true(b[p] == 0);
        free(a), free(b);
        acf_lab_close(&dev);
        acf_lab_close(&cpu);
    }
}
ACF_DEVICE_TESTS(rnn_loop, cmocka_unit_test(a_device_draws_the_same))

ACF_TESTS(rnn_loop, cmocka_unit_test(the_sequence_alone_has_dropout), cmocka_unit_test(inverse_undoes_the_coupling),
          cmocka_unit_test(mean_equals_the_sequence_on_itself), cmocka_unit_test(sample_equals_the_sequence_on_itself),
          cmocka_unit_test(refuses_what_does_not_fit), cmocka_unit_test(refuses_a_broken_network),
          cmocka_unit_test(refuses_other_mixtures), cmocka_unit_test(biases_of_the_head_are_optional))
