/* Tests of causal attention: cases for the harness with a naive softmax; token by token against all at once;
 * causality. */
#include "ops/attention.h"

#include "harness/sequence_lab.h"
#include "ops/gather.h"

#include <math.h>
#include <stdlib.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

enum { ONE_HEAD, HEADS, NUMBERS, MODELLED, LONG, WIDE, HEADS_OF_32, HEADS_OF_64 }; /* variants */
static const struct {
    int heads;
    int64_t H, big_H;
} shapes[] = {[ONE_HEAD] = {1, 3, 20}, [HEADS] = {3, 2, 20},  [NUMBERS] = {4, 1, 20},      [MODELLED] = {2, 5, 20},
              [LONG] = {2, 3, 20},     [WIDE] = {1, 130, 20}, [HEADS_OF_32] = {2, 32, 32}, [HEADS_OF_64] = {3, 64, 64}};

static int heads_of(const acf_lab *l) { return shapes[l->c->variant].heads; }
static int64_t wide(const acf_lab *l) {
    return heads_of(l) * (l->big ? shapes[l->c->variant].big_H : shapes[l->c->variant].H);
}

/* Subsets of modelled cells are sequences too. */
static const acf_subset *sequence(acf_lab *l) { return l->c->variant == MODELLED ? l->u : sequence_of_lab(l); }

static acf_tensor *leaf_of(acf_lab *l, const acf_subset *s, bool fixed) {
    acf_tensor *qkv = (fixed ? acf_leaf_fixed : acf_leaf)(l, "qkv", -2, 2, 2, (int64_t[]){s->T, 3 * wide(l)});
    return acf_tensor_as_packed(l->t, qkv, s);
}

static void build(acf_lab *l) {
    const acf_subset *s = sequence(l);
    if (!s) return;
    acf_tensor *y = acf_attention(l->t, leaf_of(l, s, false), heads_of(l), s);
    assert_true(y == &l->t->empty || y->sub == s);
    acf_result(l, y);
}

/* out (H) of head h of token t of row i. */
static void naive_token(const acf_lab *l, const acf_subset *s, int64_t i, int64_t t, int64_t h, double *out) {
    const int64_t W = wide(l), H = W / heads_of(l);
    const acf_real *q = l->leaf[0].value + acf_subset_at(s, i, t) * 3 * W + h * H;
    double weight[SEQUENCE_COLUMNS], sum = 0;
    for (int64_t c = 0; c < H; c++) out[c] = 0;
    for (int64_t j = 0; j <= t; j++) {
        const acf_real *k = l->leaf[0].value + acf_subset_at(s, i, j) * 3 * W + W + h * H;
        double score = 0;
        for (int64_t c = 0; c < H; c++) score += (double)q[c] * (double)k[c];
        sum += weight[j] = exp(score / sqrt((double)H));
    }
    for (int64_t j = 0; j <= t; j++)
        for (int64_t c = 0; c < H; c++)
            out[c] += weight[j] / sum * (double)l->leaf[0].value[acf_subset_at(s, i, j) * 3 * W + 2 * W + h * H + c];
}

static void naive(const acf_lab *l, double *const *out) {
    const acf_subset *s = l->c->variant == MODELLED ? l->u : host_sequence(l);
    const int64_t W = wide(l), H = W / heads_of(l);
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t t = 0; t < s->size[i]; t++)
            for (int64_t h = 0; h < heads_of(l); h++)
                naive_token(l, s, i, t, h, out[0] + acf_subset_at(s, i, t) * W + h * H);
}

/* Token by token, rows from the last to the first. Unused entries of the cache are NaN. The second result is that of
 * the last step. */
static void build_steps(acf_lab *l) {
    const acf_subset *s = sequence(l), *host = l->mem && s ? host_sequence(l) : s;
    if (!s) return;
    acf_tensor *qkv = leaf_of(l, s, true);
    acf_tensor *cache = acf_tensor_const(l->t, NULL, (double)NAN, 2, (int64_t[]){s->T, 3 * wide(l)});
    acf_tensor *y = acf_tensor_const(l->t, NULL, 0, 2, (int64_t[]){s->T, wide(l)}), *out = &l->t->empty;
    for (int64_t step = 0; step < l->D; step++) {
        int32_t *list = acf_lab_ints(l->N);
        for (int64_t i = 0; i < l->N; i++)
            if (step < host->size[i]) list[l->N - 1 - i] = (int32_t)acf_subset_at(host, i, step);
        const int32_t *token = acf_lab_give_ints(l, list, l->N);
        out = acf_attention_step(l->t, acf_gather(l->t, qkv, token, l->N, 0), token, cache, heads_of(l), s);
        y = acf_scatter(l->t, out, token, s->T, y, 0);
    }
    acf_result(l, acf_tensor_as_packed(l->t, y, s));
    acf_result(l, out);
}

static void naive_steps(const acf_lab *l, double *const *out) {
    const acf_subset *s = host_sequence(l);
    const int64_t W = wide(l), H = W / heads_of(l);
    naive(l, out);
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t h = 0; s->size[i] == l->D && h < heads_of(l); h++)
            naive_token(l, s, i, l->D - 1, h, out[1] + (l->N - 1 - i) * W + h * H);
}

static const acf_size longer[] = {{1, 17, ACF_MASK_ALL},
                                  {3, 40, ACF_MASK_RANDOM},
                                  {2, 130, ACF_MASK_ALL},
                                  {-1, 0, ACF_MASK_RANDOM}};
static const acf_size few[] = {{4, 3, ACF_MASK_ALL}, {3, 6, ACF_MASK_RANDOM}, {-1, 0, ACF_MASK_RANDOM}};

/* A GPU's tensor cores handle 16 tokens at a time, and 64 at most. */
static const acf_size by_16[] = {{2, 1, ACF_MASK_ALL},  {3, 16, ACF_MASK_ALL},    {4, 17, ACF_MASK_RANDOM},
                                 {5, 21, ACF_MASK_ALL}, {3, 47, ACF_MASK_RANDOM}, {2, 64, ACF_MASK_ALL},
                                 {3, 65, ACF_MASK_ALL}, {-1, 0, ACF_MASK_RANDOM}};

static const acf_case cases[] = {
    {"one head", build, naive, .variant = ONE_HEAD},
    {"heads", build, naive, .variant = HEADS},
    {"heads of one number", build, naive, .variant = NUMBERS},
    {"modelled cells", build, naive, .variant = MODELLED},
    {"long rows", build, naive, .variant = LONG, .sizes = longer, .big_N = 40, .big_D = 90},
    {"wide heads", build, naive, .variant = WIDE, .sizes = few},
    {"heads of 32", build, naive, .variant = HEADS_OF_32, .sizes = by_16, .big_N = 300, .big_D = 30},
    {"heads of 64", build, naive, .variant = HEADS_OF_64, .sizes = by_16, .big_N = 50, .big_D = 63},
    {"token by token", build_steps, naive_steps, .variant = HEADS, .no_grad = true},
    {"token by token, one head", build_steps, naive_steps, .variant = ONE_HEAD, .no_grad = true},
    {"token by token, long rows", build_steps, naive_steps, .variant = LONG, .no_grad = true, .sizes = longer,
     .big_N = 90, .big_D = 40},
    {"token by token, wide heads", build_steps, naive_steps, .variant = WIDE, .no_grad = true, .sizes = few},
};
ACF_CASES(attention, cases)

/* ---- identities ------------------------------------------------------------------------------------------------- */

enum { HEADS_HERE = 2, W_HERE = 10 };

/* On the device of --device, or the CPU. */
static void open_lab(acf_lab *l, int64_t N, int64_t D, acf_lab_mask mask) {
    if (acf_test_device())
        acf_lab_open_on(l, acf_test_device(), N, D, mask, 3);
    else
        acf_lab_open(l, 1, N, D, mask, 3);
}

/* (count) random queries, keys and values, with another seed from position `from` on. */
static acf_real *random_from(int64_t count, int64_t from) {
    acf_real *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) x[i] = ACF_R(acf_lab_random(i < from ? 8 : 9, i, -3, 3));
    return x;
}

static void one_token_is_its_value(void **state) {
    (void)state;
    enum { N = 5 };
    acf_lab l;
    acf_lab_open(&l, 1, N, 1, ACF_MASK_ALL, 3);
    acf_real *x = random_from(N * 3 * W_HERE, 0);
    acf_tensor *y = acf_attention(l.t, acf_tensor_input(l.t, x, 2, (int64_t[]){N, 3 * W_HERE}), HEADS_HERE, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int i = 0; i < N; i++) assert_memory_equal(y->data + i * W_HERE, x + (i * 3 + 2) * W_HERE, W_HERE * sizeof *x);
    free(x);
    acf_lab_close(&l);
}

/* Tokens are packed step by step, so later tokens of any row come later in memory. */
static void try_seeing(int64_t N, int64_t D, int64_t W, int heads) {
    acf_lab l;
    open_lab(&l, N, D, ACF_MASK_RANDOM);
    const acf_subset *s = sequence_of_lab(&l), *host = host_sequence(&l);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    const int64_t count = s->T * 3 * W;
    for (int64_t step = 0; step <= host->steps; step++) {
        const int64_t same = host->first[step] * W, all = host->T * W;
        acf_real *found[2];
        for (int k = 0; k < 2; k++) {
            acf_real *x = random_from(count, k ? host->first[step] * 3 * W : count);
            acf_tensor *y = acf_attention(l.t, acf_tensor_input(l.t, x, 2, (int64_t[]){s->T, 3 * W}), heads, s);
            assert_int_equal(acf_tape_status(l.t), ACF_OK);
            found[k] = acf_lab_fetch(l.dev, y->data, all);
            free(x);
        }
        assert_memory_equal(found[0], found[1], (size_t)same * sizeof(acf_real));
        int64_t alike = 0; /* rounded results may be equal */
        for (int64_t i = same; i < all; i++) alike += found[0][i] == found[1][i];
        assert_true(l.dev->precision == ACF_PRECISION_FLOAT ? alike == 0 : alike * 50 <= all - same);
        free(found[0]), free(found[1]);
    }
    acf_lab_close(&l);
}

static void outputs_ignore_later_tokens(void **state) {
    (void)state;
    try_seeing(9, 7, W_HERE, HEADS_HERE);
    try_seeing(5, 40, 64, HEADS_HERE);
    try_seeing(2, 20, 64, 1);
}

/* Scores that overflow exp, -2^24, 2^24 - 1 and 2^24: only their differences count. */
static void scores_may_be_large(void **state) {
    (void)state;
    const acf_real q = 4096, x[3][3] = {{q, -q, 3}, {q, q - 1 / q, 2}, {q, q, 4}};
    acf_lab l;
    acf_lab_open(&l, 1, 1, 3, ACF_MASK_ALL, 3);
    acf_tensor *y = acf_attention(l.t, acf_tensor_input(l.t, x[0], 2, (int64_t[]){3, 3}), 1, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    assert_true(y->data[0] == 3 && y->data[1] == 2);
    acf_assert_close((double)y->data[2], (2 + 4 * exp(1)) / (1 + exp(1)), 8 * (double)ACF_REAL_EPS, "the third token");
    acf_lab_close(&l);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void refused(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static acf_tensor *matrix(acf_lab *l, int64_t rows, int64_t cols) {
    return acf_tensor_const(l->t, NULL, 1, 2, (int64_t[]){rows, cols});
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int32_t token[3] = {0, 1, -1};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_attention(l.t, matrix(&l, 6, 12), 0, l.u);
    refused(&l, ACF_EUSAGE, "attention: 0 heads; expected at least 1");
    acf_attention(l.t, matrix(&l, 6, 12), 3, l.u);
    refused(&l, ACF_ESHAPE,
            "attention: queries, keys and values are (6, 12); expected (6, 3 W) with W a multiple of 3 heads");
    acf_attention(l.t, matrix(&l, 5, 12), 2, l.u);
    refused(&l, ACF_ESHAPE,
            "attention: queries, keys and values are (5, 12); expected (6, 3 W) with W a multiple of 2 heads");
    acf_attention(l.t, matrix(&l, 6, 0), 2, l.u);
    refused(&l, ACF_ESHAPE,
            "attention: queries, keys and values are (6, 0); expected (6, 3 W) with W a multiple of 2 heads");
    acf_attention(l.t, acf_tensor_const(l.t, NULL, 1, 1, (int64_t[]){6}), 2, l.u);
    refused(&l, ACF_ESHAPE,
            "attention: queries, keys and values are (6); expected (6, 3 W) with W a multiple of 2 heads");
    acf_attention_step(l.t, matrix(&l, 3, 12), token, matrix(&l, 6, 12), -1, l.u);
    refused(&l, ACF_EUSAGE, "attention_step: -1 heads; expected at least 1");
    acf_attention_step(l.t, matrix(&l, 3, 10), token, matrix(&l, 6, 10), 1, l.u);
    refused(&l, ACF_ESHAPE,
            "attention_step: queries, keys and values are (3, 10); expected (3, 3 W) with W a multiple of 1 heads");
    acf_attention_step(l.t, matrix(&l, 3, 12), token, matrix(&l, 5, 12), 2, l.u);
    refused(&l, ACF_ESHAPE, "attention_step: the cache is (5, 12); expected (6, 12)");
    acf_attention_step(l.t, matrix(&l, 3, 12), token, matrix(&l, 6, 24), 2, l.u);
    refused(&l, ACF_ESHAPE, "attention_step: the cache is (6, 24); expected (6, 12)");
    acf_lab_close(&l);
}

/* Scoring stores no log-sum-exps: one number per token and head less than a recorded step. */
static void saves_nothing_without_recording(void **state) {
    (void)state;
    size_t used[2];
    acf_lab l;
    acf_lab_open(&l, 1, 50, 4, ACF_MASK_ALL, 1);
    for (int record = 0; record < 2; record++) {
        acf_lab_begin(&l, record);
        acf_tensor *qkv = acf_leaf_packed(&l, "qkv", -1, 1, 24);
        size_t before = acf_arena_used(l.t->mem);
        acf_attention(l.t, qkv, 8, l.u);
        used[record] = acf_arena_used(l.t->mem) - before;
    }
    assert_true(used[1] - used[0] >= 50 * 4 * 8 * sizeof(acf_real));
    acf_lab_close(&l);
}

ACF_DEVICE_TESTS(attention, cmocka_unit_test(outputs_ignore_later_tokens))

ACF_TESTS(attention, cmocka_unit_test(one_token_is_its_value), cmocka_unit_test(outputs_ignore_later_tokens),
          cmocka_unit_test(scores_may_be_large), cmocka_unit_test(refuses_what_does_not_fit),
          cmocka_unit_test(saves_nothing_without_recording))
