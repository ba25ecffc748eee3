/* Tests of the GRU: cases for the harness against plain loops, and the identities between sequence, stack and step. */
#include "ops/gru.h"

#include "harness/naive.h"

#include <stdio.h>
#include <string.h>

enum { SEQ, SEQ_COND, STACK, DROPPED, STEP, STEP_COND, STEP_FIRST, WIDE, STACK_256, STEP_256 };
static bool stacked(int kind) { return kind == STACK || kind == DROPPED || kind == STACK_256; }
/* The size with specialised GPU kernels; with --device cuda it runs large. */
static bool of_256(const acf_lab *l) { return l->big && l->c->variant >= STACK_256; }
static const acf_drop half = {.rate = 0.5, .seed = 8, .step = 3, .site = 20};

static int64_t units(const acf_lab *l) { return of_256(l) ? 256 : l->big ? 33 : 3; }
static int64_t inputs(const acf_lab *l) { return l->c->variant == WIDE ? 5 : l->big ? 17 : 2; }
#define CONDITIONS 2

static acf_gru layer(acf_lab *l, int64_t I, bool cond) {
    int64_t H3 = 3 * units(l), H = units(l);
    double top =
        of_256(l) ? 0.1 : 1; /* larger weights of so many units make a chaotic sequence, which amplifies rounding */
    acf_gru w = {0};
    w.wx = acf_leaf(l, "wx", -top, top, 2, (int64_t[]){H3, I});
    if (cond) w.wc = acf_leaf(l, "wc", -1, 1, 2, (int64_t[]){H3, CONDITIONS});
    w.bx = acf_leaf(l, "bx", -1, 1, 1, (int64_t[]){H3});
    w.wh = acf_leaf(l, "wh", -top, top, 2, (int64_t[]){H3, H});
    w.bh = acf_leaf(l, "bh", -1, 1, 1, (int64_t[]){H3});
    return w;
}

/* Leaves of the sequence cases: x, [c], then wx, [wc], bx, wh, bh for each layer. */
static void build_seq(acf_lab *l) {
    int kind = l->c->variant;
    bool cond = kind == SEQ_COND || stacked(kind), record = l->t->record;
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, inputs(l)), *c = NULL;
    if (cond) c = acf_leaf(l, "c", -1, 1, 2, (int64_t[]){l->N, CONDITIONS});
    acf_gru w[2];
    w[0] = layer(l, inputs(l), cond);
    if (stacked(kind)) w[1] = layer(l, units(l), cond);
    if (kind == DROPPED) l->t->record = true; /* also for finite differences: otherwise nothing is dropped */
    acf_result(l, acf_gru_stack(l->t, x, c, stacked(kind) ? 2 : 1, w, l->u, kind == DROPPED ? &half : NULL));
    l->t->record = record;
}

static naive_gru naive_layer_at(const acf_lab *l, int first, bool cond) {
    const acf_lab_leaf *f = l->leaf + first;
    return (naive_gru){f[0].value, cond ? f[1].value : NULL, f[1 + cond].value, f[2 + cond].value, f[3 + cond].value};
}

/* Row by row, step by step, layer by layer. */
static void naive_seq(const acf_lab *l, double *const *out) {
    int kind = l->c->variant, layers = stacked(kind) ? 2 : 1;
    bool cond = kind == SEQ_COND || stacked(kind);
    int64_t H = units(l), I = inputs(l);
    naive_gru w[2] = {naive_layer_at(l, 1 + cond, cond)};
    if (stacked(kind)) w[1] = naive_layer_at(l, 7, cond);
    for (int64_t i = 0; i < l->N; i++) {
        double state[2][64] = {{0}}, next[64], x[64];
        for (int64_t s = 0; s < l->u->size[i]; s++) {
            int64_t p = acf_subset_at(l->u, i, s);
            for (int64_t k = 0; k < I; k++) x[k] = (double)l->leaf[0].value[p * I + k];
            for (int k = 0; k < layers; k++) {
                naive_gru_step(w[k], k ? H : I, H, CONDITIONS, x, cond ? l->leaf[1].value + i * CONDITIONS : NULL,
                               state[k], next);
                memcpy(state[k], next, sizeof next);
                memcpy(x, next, sizeof next);
                acf_drop d = half;
                d.site += (uint32_t)k;
                for (int64_t j = 0; kind == DROPPED && j < H; j++) x[j] *= naive_drop(&d, i, l->u->col_of[p], j, H);
            }
            memcpy(out[0] + p * H, x, (size_t)H * sizeof(double));
        }
    }
}

static bool step_cond(int kind) { return kind == STEP_COND || kind == STEP_256; }

/* Leaves: x (n,I), [h (N,H)], [c], wx, [wc], bx, wh, bh; n = rows active at the first step. */
static void build_step(acf_lab *l) {
    int kind = l->c->variant;
    int64_t n = l->u ? l->host->active[0] : 0;
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){n, inputs(l)}), *h = NULL, *c = NULL;
    if (kind != STEP_FIRST) h = acf_leaf(l, "h", -1, 1, 2, (int64_t[]){l->N, units(l)});
    if (step_cond(kind)) c = acf_leaf(l, "c", -1, 1, 2, (int64_t[]){l->N, CONDITIONS});
    acf_gru w = layer(l, inputs(l), step_cond(kind));
    acf_result(l, acf_gru_step(l->t, x, h, acf_gru_condition(l->t, c, &w), &w, l->u));
}

static void naive_one_step(const acf_lab *l, double *const *out) {
    int kind = l->c->variant;
    bool cond = step_cond(kind);
    int64_t H = units(l), I = inputs(l);
    int first = 1 + (kind != STEP_FIRST) + cond;
    naive_gru w = naive_layer_at(l, first, cond);
    for (int64_t k = 0; k < l->u->active[0]; k++) {
        double x[64], old[64] = {0};
        for (int64_t i = 0; i < I; i++) x[i] = (double)l->leaf[0].value[k * I + i];
        for (int64_t j = 0; j < H && kind != STEP_FIRST; j++) old[j] = (double)l->leaf[1].value[k * H + j];
        naive_gru_step(w, I, H, CONDITIONS, x, cond ? l->leaf[2].value + l->u->row[k] * CONDITIONS : NULL, old,
                       out[0] + k * H);
    }
}

static const acf_case cases[] = {
    {"one layer", build_seq, naive_seq, .variant = SEQ, .recurrent = 1},
    {"one layer with conditioning", build_seq, naive_seq, .variant = SEQ_COND, .recurrent = 1},
    {"two layers with conditioning", build_seq, naive_seq, .variant = STACK, .recurrent = 1, .big_N = 300},
    {"two layers with dropout", build_seq, naive_seq, .variant = DROPPED, .recurrent = 1, .big_N = 300},
    {"more inputs than units", build_seq, naive_seq, .variant = WIDE, .recurrent = 1},
    {"step", build_step, naive_one_step, .variant = STEP},
    {"step with conditioning", build_step, naive_one_step, .variant = STEP_COND},
    {"two layers, large of 256 units", build_seq, naive_seq, .variant = STACK_256, .recurrent = 1, .big_N = 300},
    {"step, large of 256 units", build_step, naive_one_step, .variant = STEP_256, .big_N = 300},
    /* From the zero state wh is never multiplied, so a NaN in it does not show. */
    {"first step, from zero", build_step, naive_one_step, .variant = STEP_FIRST, .hides_nonfinite = true},
};
ACF_CASES(gru, cases)

/* A loop of steps over the decreasing prefix of rows gives the sequence's result (same products, row by row the same
 * sums; a tolerance allows for rounding where a product is divided differently). */
static void steps_make_the_sequence(void **state) {
    (void)state;
    acf_lab l;
    const acf_case c = {"steps", NULL, NULL, .variant = SEQ_COND};
    acf_lab_open(&l, 2, 23, 6, ACF_MASK_RANDOM, 5);
    l.c = &c;
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 2), *cv = acf_leaf(&l, "c", -1, 1, 2, (int64_t[]){23, CONDITIONS});
    acf_gru w = layer(&l, 2, true);
    acf_tensor *cond = acf_gru_condition(l.t, cv, &w), *all = acf_gru_seq(l.t, x, cond, &w, l.u), *h = NULL;
    for (int64_t s = 0; s < l.u->steps; s++) {
        int64_t n = l.u->active[s], at = l.u->first[s];
        acf_tensor *xs = acf_tensor_wrap(l.t, x->data + at * 2, 2, (int64_t[]){n, 2});
        h = acf_gru_step(l.t, xs, h, cond, &w, l.u);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        for (int64_t i = 0; i < n * 3; i++)
            acf_assert_close((double)h->data[i], (double)all->data[at * 3 + i], 32 * (double)ACF_REAL_EPS,
                             "step against sequence");
    }
    acf_lab_close(&l);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    const acf_case c = {"refuses", NULL, NULL, .variant = SEQ};
    acf_lab_open(&l, 1, 4, 5, ACF_MASK_ALL, 5);
    l.c = &c;
    acf_gru w = layer(&l, 2, false);
    acf_tensor *plain = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){20, 2});
    acf_gru_seq(l.t, plain, NULL, &w, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "gru_seq: x is (20, 2), which is not packed over the subset given (20 elements)");
    acf_lab_close(&l);

    acf_lab_open(&l, 1, 4, 5, ACF_MASK_ALL, 5);
    l.c = &c;
    w = layer(&l, 2, false);
    acf_gru_seq(l.t, acf_leaf_packed(&l, "x", -1, 1, 3), NULL, &w, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    acf_lab_close(&l);

    acf_lab_open(&l, 1, 4, 5, ACF_MASK_ALL, 5);
    l.c = &c;
    w = layer(&l, 2, false);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){4, 2}), *h = acf_leaf(&l, "h", -1, 1, 2, (int64_t[]){3, 3});
    acf_gru_step(l.t, x, h, NULL, &w, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "gru_step: the state is (3, 3); expected at least (4, 3)");
    acf_lab_close(&l);
}

/* The rows of a step are in rank order; a message names the batch row, also after a layer on top. */
static void a_step_names_the_batch_row(void **state) {
    (void)state;
    acf_lab l;
    const acf_case c = {"names", NULL, NULL, .variant = SEQ};
    acf_lab_open(&l, 1, 6, 5, ACF_MASK_RANDOM, 5);
    l.c = &c;
    acf_gru w = layer(&l, 2, false);
    int64_t n = l.u->active[0], rank = 0;
    while (rank < n && l.u->row[rank] == rank) rank++; /* a row whose rank is another number */
    assert_true(rank < n);
    acf_tensor *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){n, 2});
    x->data[rank * 2] = (acf_real)NAN;
    acf_tensor *h = acf_gru_step(l.t, x, NULL, NULL, &w, l.u);
    assert_int_equal(acf_tape_check(l.t, acf_linear(l.t, h, w.wh, NULL, ACF_TANH)), ACF_ENUMERIC);
    char says[64];
    snprintf(says, sizeof says, "gru_step: the output is nan at row %d,", (int)l.u->row[rank]);
    if (!strstr(acf_error(), says)) fail_msg("expected '%s' in: %s", says, acf_error());
    acf_lab_close(&l);
}

/* Large weights saturate the gates; nothing overflows. */
static void saturates(void **state) {
    (void)state;
    acf_lab l;
    const acf_case c = {"saturates", NULL, NULL, .variant = SEQ};
    acf_lab_open(&l, 1, 4, 5, ACF_MASK_ALL, 5);
    l.c = &c;
    acf_gru w = layer(&l, 2, false);
    for (int64_t i = 0; i < acf_tensor_count(w.wx); i++) w.wx->data[i] *= ACF_R(1e30);
    acf_tensor *h = acf_gru_seq(l.t, acf_leaf_packed(&l, "x", -1, 1, 2), NULL, &w, l.u);
    assert_int_equal(acf_tape_check(l.t, h), ACF_OK);
    for (int64_t i = 0; i < acf_tensor_count(h); i++) assert_true(h->data[i] >= -1 && h->data[i] <= 1);
    acf_lab_close(&l);
}

/* Parts are disjoint, cover every rank, end on whole kernels, and have about equal numbers of elements. */
static void shares_are_even(void **state) {
    (void)state;
    static const int32_t active[] = {256, 247, 219, 163, 93, 37, 9, 1};
    enum { STEPS = 8 };
    for (int parts = 1; parts <= 70; parts++) { /* also more than there are kernels' rows */
        int64_t end = 0;
        for (int k = 0; k < parts; k++) {
            int64_t r0 = acf_gru_share(active, STEPS, k, parts), r1 = acf_gru_share(active, STEPS, k + 1, parts),
                    elements = 0;
            assert_true(r0 == end && r1 >= r0 && (r0 % ACF_GRU_SHARE == 0 || r0 == active[0]));
            end = r1;
            for (int s = 0; s < STEPS; s++) elements += acf_max(0, acf_min(active[s], r1) - r0);
            assert_true(elements <= 1025 / parts + ACF_GRU_SHARE * STEPS); /* 1025 in all */
        }
        assert_int_equal(end, active[0]);
    }
    assert_int_equal(acf_gru_share(NULL, 0, 0, 2), 0); /* nothing modelled */
    assert_int_equal(acf_gru_share(NULL, 0, 2, 2), 0);
}

ACF_TESTS(gru, cmocka_unit_test(shares_are_even), cmocka_unit_test(steps_make_the_sequence),
          cmocka_unit_test(refuses_what_does_not_fit), cmocka_unit_test(saturates),
          cmocka_unit_test(a_step_names_the_batch_row))
