/* A transformer's block: cases for the harness; one operation against the operations it combines; its outputs and the
 * arrays it keeps. */
#include "ops/transformer_block.h"

#include "harness/sequence_lab.h"
#include "ops/arith.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

enum { ONE_HEAD, HEADS, DROPPED, DROPPED_NOW, HEADS_OF_32, HEADS_OF_64, WIDE }; /* variants */
static const struct {
    int heads;
    int64_t H, big_H;
    double rate[2];
} shapes[] = {[ONE_HEAD] = {1, 3, 24, {0, 0}},        [HEADS] = {3, 2, 8, {0, 0}},
              [DROPPED] = {2, 3, 12, {0.3, 0}},       [DROPPED_NOW] = {1, 32, 32, {0.2, 0.4}},
              [HEADS_OF_32] = {1, 32, 32, {0, 0.25}}, [HEADS_OF_64] = {1, 64, 64, {0, 0}},
              [WIDE] = {3, 64, 64, {0.1, 0.1}}};

static const int64_t outs[ACF_BLOCK_PARAMS] = {1, 1, 3, 3, 1, 1, 1, 1, 4, 4, 1, 1};
static const int64_t ins[ACF_BLOCK_PARAMS] = {0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 0};
static const char *const names[ACF_BLOCK_PARAMS] = {"scale",   "shift",   "qkv", "qkv bias", "out",  "out bias",
                                                    "scale 2", "shift 2", "up",  "up bias",  "down", "down bias"};

/* Values about as large as those of a trained network. */
static void parameters(acf_lab *l, acf_tensor *param[ACF_BLOCK_PARAMS], int64_t W) {
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) {
        const bool scale = p == ACF_BLOCK_SCALE || p == ACF_BLOCK_SCALE2;
        const double most = ins[p] ? 1.7 / sqrt((double)(ins[p] * W)) : 0.5;
        param[p] = acf_leaf(l, names[p], scale ? 0.5 : -most, scale ? 1.5 : most, ins[p] ? 2 : 1,
                            (int64_t[]){outs[p] * W, ins[p] * W});
    }
}

/* With `now` set, dropout reads its step in device memory. */
static acf_block_told told_of(acf_lab *l, const acf_subset *s, int heads, const double rate[2], bool now) {
    static const uint32_t step = 9;
    acf_block_told told = {.s = s, .heads = heads};
    const uint64_t *id = acf_lab_copy(l, order_on_host().row_id, (size_t)l->N * sizeof *id);
    const uint32_t *at = now ? acf_lab_copy(l, &step, sizeof step) : NULL;
    for (uint32_t i = 0; i < 2; i++)
        told.drop[i] = (acf_drop){.rate = rate[i], .seed = 77, .step = 5, .now = at, .site = 40 + i, .row_id = id};
    return told;
}

static void build(acf_lab *l) {
    const int v = l->c->variant;
    const int64_t W = shapes[v].heads * (l->big ? shapes[v].big_H : shapes[v].H);
    acf_tensor *param[ACF_BLOCK_PARAMS];
    const acf_subset *s = sequence_of_lab(l);
    if (!s) return;
    acf_tensor *h = acf_tensor_as_packed(l->t, acf_leaf(l, "h", -1, 1, 2, (int64_t[]){s->T, W}), s);
    parameters(l, param, W);
    const acf_block_told told = told_of(l, s, shapes[v].heads, shapes[v].rate, v == DROPPED_NOW);
    const bool record = l->t->record;
    l->t->record |= v != ONE_HEAD && v != HEADS; /* otherwise finite differences would have no dropout */
    acf_tensor *y = acf_transformer_block(l->t, h, param, &told);
    l->t->record = record;
    assert_true(y == &l->t->empty || y->sub == s);
    acf_result(l, y);
}

/* A GPU's tensor cores process 16 tokens at a time, and 64 at most. */
static const acf_size by_16[] = {{2, 1, ACF_MASK_ALL},  {3, 16, ACF_MASK_ALL},    {4, 17, ACF_MASK_RANDOM},
                                 {1, 5, ACF_MASK_NONE}, {2, 47, ACF_MASK_RANDOM}, {-1, 0, ACF_MASK_RANDOM}};
static const acf_size to_64[] = {{2, 33, ACF_MASK_RANDOM}, {1, 65, ACF_MASK_ALL}, {-1, 0, ACF_MASK_RANDOM}};
static const acf_size few[] = {{2, 5, ACF_MASK_RANDOM}, {-1, 0, ACF_MASK_RANDOM}};

static const acf_case cases[] = {
    {"one head", build, NULL, .variant = ONE_HEAD},
    {"heads", build, NULL, .variant = HEADS},
    {"dropped", build, NULL, .variant = DROPPED},
    {"dropped, step on the device", build, NULL, .variant = DROPPED_NOW, .sizes = few, .big_N = 60, .big_D = 21},
    {"heads of 32", build, NULL, .variant = HEADS_OF_32, .sizes = by_16, .big_N = 60, .big_D = 40},
    {"heads of 64", build, NULL, .variant = HEADS_OF_64, .sizes = to_64, .big_N = 30, .big_D = 63},
    {"wide", build, NULL, .variant = WIDE, .sizes = few, .big_N = 40, .big_D = 30},
};
ACF_CASES(transformer_block, cases)

/* ---- against the operations it combines -------------------------------------------------------------------------- */

static acf_tensor *composed(acf_tape *t, acf_tensor *h, acf_tensor *const *p, const acf_block_told *k) {
    acf_tensor *x = acf_linear(t, acf_layer_norm(t, h, p[0], p[1]), p[2], p[3], ACF_IDENTITY);
    x = acf_linear(t, acf_attention(t, x, k->heads, k->s), p[4], p[5], ACF_IDENTITY);
    acf_tensor *a = acf_add(t, h, acf_dropout(t, x, &k->drop[0]));
    x = acf_gelu(t, acf_linear(t, acf_layer_norm(t, a, p[6], p[7]), p[8], p[9], ACF_IDENTITY));
    return acf_add(t, a, acf_dropout(t, acf_linear(t, x, p[10], p[11], ACF_IDENTITY), &k->drop[1]));
}

enum { ROWS = 6, COLUMNS = 9, HERE = 12, ALL = ROWS * COLUMNS * HERE };

/* Values and all gradients, concatenated, in memory to be freed. */
static acf_real *run(acf_lab *l, bool whole, const double rate[2], int64_t *count) {
    acf_tensor *leaf[1 + ACF_BLOCK_PARAMS];
    l->n_leaves = 0, l->leaf_at = 0;
    acf_lab_begin(l, true);
    const acf_subset *s = sequence_of_lab(l);
    assert_non_null(s);
    acf_real *memory = calloc((size_t)(ALL * 40), sizeof *memory), *at = memory, value[4 * HERE * HERE], numbers[ALL];
    for (int k = 0; k <= ACF_BLOCK_PARAMS; k++) {
        const int p = k - 1, square = k && ins[p];
        const int64_t dim[2] = {k ? outs[p] * HERE : s->T, k ? square * ins[p] * HERE : HERE};
        const int64_t n = dim[0] * acf_max(dim[1], 1);
        acf_real *from = k ? value : numbers;
        for (int64_t i = 0; i < n; i++) from[i] = (acf_real)acf_lab_random(100 + (uint64_t)k, i, -1, 1);
        leaf[k] = acf_tensor_input(l->t, from, k && !square ? 1 : 2, dim);
        leaf[k]->needs_grad = true;
    }
    leaf[0]->sub = s;
    const acf_block_told told = told_of(l, s, 3, rate, false);
    acf_tensor *y = (whole ? acf_transformer_block : composed)(l->t, leaf[0], leaf + 1, &told);
    acf_tensor *loss = acf_sum(l->t, acf_mul(l->t, y, acf_mul(l->t, y, y)));
    assert_int_equal(acf_tape_backward(l->t, loss), ACF_OK);
    const int64_t n = acf_tensor_count(y);
    memcpy(at, y->data, (size_t)n * sizeof *at), at += n;
    for (int k = 0; k <= ACF_BLOCK_PARAMS; k++) {
        const int64_t c = acf_tensor_count(leaf[k]);
        assert_non_null(leaf[k]->grad);
        memcpy(at, leaf[k]->grad, (size_t)c * sizeof *at), at += c;
    }
    *count = at - memory;
    return memory;
}

static void agrees_with_its_parts(void **state) {
    (void)state;
    static const double rates[3][2] = {{0, 0}, {0.4, 0}, {0.1, 0.6}};
    const double tol = sizeof(acf_real) == 8 ? 1e-10 : 2e-4;
    for (int k = 0; k < 3; k++) {
        acf_lab l;
        int64_t n[2];
        acf_lab_open(&l, 2, ROWS, COLUMNS, ACF_MASK_RANDOM, 11);
        acf_real *found = run(&l, true, rates[k], &n[0]), *expected = run(&l, false, rates[k], &n[1]);
        double most = 0;
        assert_int_equal(n[0], n[1]);
        for (int64_t i = 0; i < n[0]; i++) most = fmax(most, fabs((double)expected[i]));
        for (int64_t i = 0; i < n[0]; i++)
            if (!(fabs((double)(found[i] - expected[i])) <=
                  tol * (1 + fabs((double)expected[i]) + (sizeof(acf_real) == 4) * most)))
                fail_msg("rates %g %g: number %d is %.17g, of its parts %.17g", rates[k][0], rates[k][1], (int)i,
                         (double)found[i], (double)expected[i]);
        free(found), free(expected);
        acf_lab_close(&l);
    }
}

/* ---- outputs and kept arrays ------------------------------------------------------------------------------------- */

static acf_tensor *matrix(acf_lab *l, int64_t rows, int64_t cols) {
    return acf_tensor_const(l->t, NULL, 0.25, cols ? 2 : 1, (int64_t[]){rows, cols});
}

static void constants(acf_lab *l, acf_tensor *param[ACF_BLOCK_PARAMS], int64_t W) {
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) param[p] = matrix(l, outs[p] * W, ins[p] * W);
}

/* On the device of --device, or the CPU. */
static void open_lab(acf_lab *l, int64_t N, int64_t D) {
    if (acf_test_device())
        acf_lab_open_on(l, acf_test_device(), N, D, ACF_MASK_RANDOM, 3);
    else
        acf_lab_open(l, 1, N, D, ACF_MASK_RANDOM, 3);
}

/* Queries, keys and values equal those of a separate layer; the block is the same with and without storing them. */
static void leaves_queries_keys_and_values(void **state) {
    (void)state;
    enum { W = 64 };
    acf_tensor *param[ACF_BLOCK_PARAMS];
    acf_lab l;
    open_lab(&l, 5, 11);
    acf_lab_begin(&l, false);
    const acf_subset *s = sequence_of_lab(&l);
    acf_tensor *h = acf_tensor_as_packed(l.t, acf_leaf(&l, "h", -1, 1, 2, (int64_t[]){s->T, W}), s);
    parameters(&l, param, W);
    acf_block_told told = told_of(&l, s, 2, (double[]){0.5, 0.5}, false);
    acf_tensor *without = acf_transformer_block(l.t, h, param, &told);
    told.qkv = acf_tensor_const(l.t, NULL, (double)NAN, 2, (int64_t[]){s->T, 3 * W});
    acf_tensor *with = acf_transformer_block(l.t, h, param, &told);
    acf_tensor *expected =
        acf_linear(l.t, acf_layer_norm(l.t, h, param[0], param[1]), param[2], param[3], ACF_IDENTITY);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    const int64_t n = acf_tensor_count(h), rows = l.mem ? host_sequence(&l)->T : s->T;
    acf_real *x = acf_lab_fetch(l.dev, without->data, n), *y = acf_lab_fetch(l.dev, with->data, n);
    acf_real *found = acf_lab_fetch(l.dev, told.qkv->data, 3 * n);
    acf_real *wanted = acf_lab_fetch(l.dev, expected->data, 3 * n);
    assert_memory_equal(x, y, (size_t)(rows * W) * sizeof *x);
    const acf_precision precision = l.dev->precision;
    const double tol = precision == ACF_PRECISION_FLOAT ? 1e-5 : precision == ACF_PRECISION_TF32 ? 1e-3 : 2e-2;
    for (int64_t i = 0; i < rows * 3 * W; i++)
        acf_assert_close((double)found[i], (double)wanted[i], tol, "queries, keys and values");
    free(x), free(y), free(found), free(wanted);
    acf_lab_close(&l);
}

/* Scoring keeps only its result and draws no dropout. */
static void keeps_nothing_without_recording(void **state) {
    (void)state;
    enum { W = 16 };
    acf_tensor *param[ACF_BLOCK_PARAMS];
    acf_real *values[2];
    acf_lab l;
    acf_lab_open(&l, 1, 20, 6, ACF_MASK_ALL, 3);
    acf_lab_begin(&l, false);
    const acf_subset *s = sequence_of_lab(&l);
    constants(&l, param, W);
    acf_tensor *h = acf_tensor_as_packed(l.t, acf_leaf(&l, "h", -1, 1, 2, (int64_t[]){s->T, W}), s);
    for (int k = 0; k < 2; k++) {
        const acf_block_told told = told_of(&l, s, 2, k ? (double[]){0.5, 0.5} : (double[]){0, 0}, false);
        const size_t before = acf_arena_used(l.t->mem);
        acf_tensor *y = acf_transformer_block(l.t, h, param, &told);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        assert_true(acf_arena_used(l.t->mem) - before <= (size_t)(20 * 6 * W) * sizeof(acf_real) + 256);
        values[k] = y->data;
    }
    assert_memory_equal(values[0], values[1], (20 * 6 * W) * sizeof(acf_real));
    acf_lab_close(&l);
}

static void refused(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, true);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_tensor *p[ACF_BLOCK_PARAMS];
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_lab_begin(&l, true);
    constants(&l, p, 4);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p, &(acf_block_told){.s = l.u});
    refused(&l, ACF_EUSAGE, "transformer_block: 0 heads; expected at least 1");
    constants(&l, p, 4);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p, &(acf_block_told){.s = l.u, .heads = 3});
    refused(&l, ACF_ESHAPE, "transformer_block: h is (6, 4); expected (6, W) with W a multiple of 3 heads");
    constants(&l, p, 4);
    acf_transformer_block(l.t, matrix(&l, 5, 4), p, &(acf_block_told){.s = l.u, .heads = 2});
    refused(&l, ACF_ESHAPE, "transformer_block: h is (5, 4); expected (6, W) with W a multiple of 2 heads");
    constants(&l, p, 4);
    p[ACF_BLOCK_UP] = matrix(&l, 8, 4);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p, &(acf_block_told){.s = l.u, .heads = 2});
    refused(&l, ACF_ESHAPE, "transformer_block: up is (8, 4); expected (16, 4)");
    constants(&l, p, 4);
    p[ACF_BLOCK_QKV_BIAS] = matrix(&l, 4, 0);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p, &(acf_block_told){.s = l.u, .heads = 2});
    refused(&l, ACF_ESHAPE, "transformer_block: the bias of qkv is (4); expected (12)");
    constants(&l, p, 4);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p, &(acf_block_told){.s = l.u, .heads = 2, .qkv = matrix(&l, 6, 8)});
    refused(&l, ACF_ESHAPE, "transformer_block: queries, keys and values go to (6, 8); expected (6, 12)");
    constants(&l, p, 4);
    acf_transformer_block(l.t, matrix(&l, 6, 4), p,
                          &(acf_block_told){.s = l.u, .heads = 2, .drop = {{0}, {.rate = 1}}});
    refused(&l, ACF_EUSAGE, "transformer_block: the rate is 1; expected 0 <= rate < 1");
    acf_lab_close(&l);
}

ACF_DEVICE_TESTS(transformer_block, cmocka_unit_test(leaves_queries_keys_and_values))

ACF_TESTS(transformer_block, cmocka_unit_test(agrees_with_its_parts), cmocka_unit_test(leaves_queries_keys_and_values),
          cmocka_unit_test(keeps_nothing_without_recording), cmocka_unit_test(refuses_what_does_not_fit))
