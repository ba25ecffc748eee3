/* Rows as sequences of tokens: cases for the harness, where a token's input is found by searching the order of its row;
 * refusals. */
#include "ops/tokens.h"

#include "harness/sequence_lab.h"

#include <stdlib.h>
#include <string.h>

/* ---- columns ---------------------------------------------------------------------------------------------------- */

enum { MIXED, APART, REALS, CLASSES, LISTED, LISTED_CLASSES }; /* variants */

/* Every third column is a category, or all are, or none. Reals are numbered from the last column on, and the slots of
 * the last category come first, so that no two numbers are equal by accident. */
static int32_t kinds[SEQUENCE_COLUMNS], firsts[SEQUENCE_COLUMNS], counts[SEQUENCE_COLUMNS];
static int64_t K, C;

static bool is_real(int variant, int64_t j) {
    return variant != CLASSES && variant != LISTED_CLASSES && (variant == REALS || j % 3 != 1);
}

static void set_columns(const acf_lab *l) {
    const int variant = l->c->variant;
    int32_t slot = 0;
    K = C = 0;
    for (int64_t j = l->D - 1; j >= 0; j--)
        if (is_real(variant, j)) kinds[j] = (int32_t)K++;
    for (int64_t j = 0; j < l->D; j++)
        if (!is_real(variant, j)) kinds[j] = (int32_t)(-1 - C++);
    for (int64_t c = C - 1; c >= 0; slot += counts[c--]) counts[c] = 2 + (int32_t)(c % 3), firsts[c] = slot;
}

/* With its integers on the lab's device. */
static acf_token_columns columns_of(acf_lab *l) {
    int32_t both[2 * SEQUENCE_COLUMNS];
    set_columns(l);
    memcpy(both, firsts, (size_t)C * sizeof *both);
    memcpy(both + C, counts, (size_t)C * sizeof *both);
    return (acf_token_columns){acf_lab_copy(l, kinds, (size_t)l->D * sizeof *kinds),
                               K,
                               l->c->variant != MIXED && l->c->variant != REALS,
                               {C, firsts, counts, acf_lab_copy(l, both, (size_t)(2 * C) * sizeof *both)}};
}

/* ---- inputs of tokens -------------------------------------------------------------------------------------------- */

static bool listed(const acf_lab *l) { return l->c->variant >= LISTED; }
static int64_t list_length(const acf_lab *l) { return l->N * l->D / 2 + 2; }

/* The k-th of a list: every second token from the last on, with gaps. */
static int32_t in_list(const acf_subset *host, int64_t k) {
    return k % 4 == 3 || host->T - 1 - 2 * k < 0 ? -1 : (int32_t)(host->T - 1 - 2 * k);
}

typedef struct asked {
    const acf_subset *s;
    acf_token_columns columns;
    acf_told told;
    int64_t n;
} asked;

/* s is NULL after a failure. Codes are classes, not known, and beyond the classes of their column. */
static asked ask(acf_lab *l) {
    asked a = {.s = sequence_of_lab(l), .columns = columns_of(l)};
    const int32_t *codes = acf_leaf_ints(l, "codes", -1, 5, l->N * C), *token = NULL;
    const uint8_t *given = acf_lab_copy(l, l->b, (size_t)(l->N * l->D));
    if (!a.s) return a;
    a.n = listed(l) ? list_length(l) : a.s->T;
    if (listed(l)) {
        const acf_subset *host = l->mem ? host_sequence(l) : a.s;
        int32_t *list = acf_lab_ints(a.n);
        for (int64_t k = 0; k < a.n; k++) list[k] = in_list(host, k);
        token = acf_lab_give_ints(l, list, a.n);
    }
    a.told = acf_token_inputs(l->t, a.s, &a.columns, given, codes, token, a.n);
    return a;
}

static void build_inputs(acf_lab *l) {
    const asked a = ask(l);
    acf_result_ints(l, a.told.slot, a.n, listed(l) ? NULL : a.s);
    acf_result_ints(l, a.told.cell, a.n, listed(l) ? NULL : a.s);
}

/* The place of element p in its row. */
static int64_t step_of(const acf_subset *s, int64_t p) {
    int64_t t = 0;
    while (acf_subset_at(s, s->row_of[p], t) != p) t++;
    return t;
}

/* The input of element p; p below 0: no token. codes (N,C). */
static void naive_told(const acf_lab *l, const acf_subset *s, int64_t p, const int32_t *codes, int64_t *slot,
                       int64_t *cell) {
    *slot = p < 0 ? -1 : 0, *cell = -1;
    const int64_t t = p < 0 ? 0 : step_of(s, p), row = p < 0 ? 0 : s->row_of[p];
    if (t == 0) return;
    const int64_t before = s->cols[row * l->D + t - 1], kind = kinds[before];
    if (kind >= 0) {
        const bool apart = l->c->variant != MIXED && l->c->variant != REALS;
        *slot = 1 + kind + (apart && !l->b[row * l->D + before] ? K : 0), *cell = row * K + kind;
        return;
    }
    const int64_t c = -1 - kind, code = codes[row * C + c];
    const int64_t reals = l->c->variant == MIXED || l->c->variant == REALS ? 1 + K : 1 + 2 * K;
    if (code >= 0 && code < counts[c]) *slot = reals + firsts[c] + code;
}

static void naive_inputs(const acf_lab *l, double *const *out) {
    const acf_subset *s = host_sequence(l);
    set_columns(l);
    for (int64_t k = 0; k < (listed(l) ? list_length(l) : s->T); k++) {
        int64_t slot, cell;
        naive_told(l, s, listed(l) ? in_list(s, k) : k, l->leaf[0].ints, &slot, &cell);
        out[0][k] = (double)slot, out[1][k] = (double)cell;
    }
}

/* ---- embeddings ------------------------------------------------------------------------------------------------- */

static int64_t wide(const acf_lab *l) { return l->big ? 37 : 5; }

static void build_embed(acf_lab *l) {
    const asked a = ask(l);
    const int64_t R = acf_token_reals(&a.columns), S = acf_token_slots(&a.columns), W = wide(l);
    acf_tensor *slopes = acf_leaf(l, "slopes", -1, 1, 2, (int64_t[]){R, W});
    acf_tensor *offsets = acf_leaf(l, "offsets", -1, 1, 2, (int64_t[]){S, W});
    acf_tensor *values = K ? acf_leaf(l, "values", -2, 2, 2, (int64_t[]){l->N, K}) : NULL;
    acf_tensor *y = acf_token_embed(l->t, values, slopes, offsets, a.told, a.n, listed(l) ? NULL : a.s);
    assert_true(y == &l->t->empty || y->sub == (listed(l) ? NULL : a.s));
    acf_result(l, y);
}

static void naive_embed(const acf_lab *l, double *const *out) {
    const acf_subset *s = host_sequence(l);
    const int64_t W = wide(l);
    set_columns(l);
    for (int64_t k = 0; k < (listed(l) ? list_length(l) : s->T); k++) {
        int64_t slot, cell;
        naive_told(l, s, listed(l) ? in_list(s, k) : k, l->leaf[0].ints, &slot, &cell);
        for (int64_t c = 0; slot >= 0 && c < W; c++) {
            out[0][k * W + c] = (double)l->leaf[2].value[slot * W + c];
            if (cell >= 0) out[0][k * W + c] += (double)l->leaf[3].value[cell] * (double)l->leaf[1].value[slot * W + c];
        }
    }
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

/* A table with two columns more than the lab's; the lab's columns are its last ones, in reverse order. */
static int64_t all_columns(const acf_lab *l) { return l->D + 2; }
static int32_t column_of(const acf_lab *l, int64_t j) { return (int32_t)(l->D + 1 - j); }

/* Its masks: b, then m, (N, D + 2) each; to be freed. */
static uint8_t *all_masks(const acf_lab *l) {
    const int64_t D = all_columns(l);
    uint8_t *b = malloc((size_t)(2 * l->N * D + 1)), *m = b + l->N * D;
    assert_non_null(b);
    for (int64_t k = 0; k < l->N * D; k++)
        m[k] = acf_lab_random(17, k, 0, 1) < 0.7, b[k] = m[k] && acf_lab_random(18, k, 0, 1) < 0.5;
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t j = 0; j < l->D; j++) {
            b[i * D + column_of(l, j)] = l->b[i * l->D + j];
            m[i * D + column_of(l, j)] = l->m[i * l->D + j];
        }
    return b;
}

static const int32_t *places_of(acf_lab *l) {
    uint8_t *b = all_masks(l);
    int32_t *list = acf_lab_ints(l->D);
    for (int64_t j = 0; j < l->D; j++) list[j] = column_of(l, j);
    const acf_subset *s = sequence_of(l, b, b + l->N * all_columns(l), all_columns(l));
    const int32_t *column = acf_lab_give_ints(l, list, l->D);
    free(b);
    return l->u ? acf_token_places(l->t, s, l->u, column) : NULL;
}

static void build_places(acf_lab *l) { acf_result_ints(l, places_of(l), l->u ? l->u->T : 0, l->u); }

static void naive_places(const acf_lab *l, double *const *out) {
    uint8_t *b = all_masks(l);
    const acf_subset *s = host_sequence_of(l, b, b + l->N * all_columns(l), all_columns(l));
    for (int64_t e = 0; e < l->u->T; e++) {
        int64_t p = 0;
        while (s->cell[p] != l->u->row_of[e] * s->D + column_of(l, l->u->col_of[e])) p++;
        out[0][e] = (double)p;
    }
    free(b);
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

/* hides_nonfinite: the value of a row's last token, and a slot that does not occur, are no token's input. */
static const acf_case cases[] = {
    {"inputs", build_inputs, naive_inputs, .variant = MIXED, .no_grad = true},
    {"inputs, two spaces", build_inputs, naive_inputs, .variant = APART, .no_grad = true},
    {"inputs of reals", build_inputs, naive_inputs, .variant = REALS, .no_grad = true},
    {"inputs of classes", build_inputs, naive_inputs, .variant = CLASSES, .no_grad = true},
    {"inputs of some tokens", build_inputs, naive_inputs, .variant = LISTED, .no_grad = true},
    {"places", build_places, naive_places, .no_grad = true},
    {"embedded", build_embed, naive_embed, .variant = MIXED, .hides_nonfinite = true},
    {"embedded, two spaces", build_embed, naive_embed, .variant = APART, .hides_nonfinite = true},
    {"embedded reals", build_embed, naive_embed, .variant = REALS, .hides_nonfinite = true},
    {"embedded classes", build_embed, naive_embed, .variant = CLASSES, .hides_nonfinite = true},
    {"some embedded", build_embed, naive_embed, .variant = LISTED, .hides_nonfinite = true},
    {"some classes embedded", build_embed, naive_embed, .variant = LISTED_CLASSES, .hides_nonfinite = true},
};
ACF_CASES(tokens, cases)

/* ---- places behind the last element ----------------------------------------------------------------------------- */

static void no_place_behind_the_last(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open_on(&l, acf_test_device(), 33, 9, ACF_MASK_RANDOM, 3);
    const int64_t n = l.u->T;
    int32_t *found = acf_lab_ints(n);
    const int32_t *there = places_of(&l);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    assert_int_equal(acf_device_copy(l.dev, found, there, (size_t)n * sizeof *found, ACF_TO_HOST), ACF_OK);
    assert_int_equal(acf_device_sync(l.dev), ACF_OK);
    assert_true(l.host->T < n);
    for (int64_t e = l.host->T; e < n; e++) assert_int_equal(found[e], -1);
    free(found);
    acf_lab_close(&l);
}

/* ---- sizes and refusals ----------------------------------------------------------------------------------------- */

static void counts_slots(void **state) {
    (void)state;
    static const int32_t first[] = {0, 3}, count[] = {3, 4};
    acf_token_columns c = {.reals = 5, .classes = {2, first, count}};
    assert_int_equal(acf_token_reals(&c), 6);
    assert_int_equal(acf_token_slots(&c), 13);
    c.apart = true;
    assert_int_equal(acf_token_reals(&c), 11);
    assert_int_equal(acf_token_slots(&c), 18);
    c = (acf_token_columns){0};
    assert_int_equal(acf_token_reals(&c), 1);
    assert_int_equal(acf_token_slots(&c), 1);
}

static void refused(acf_lab *l, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), ACF_ESHAPE);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static acf_tensor *matrix(acf_lab *l, int64_t rows, int64_t cols) {
    return acf_tensor_const(l->t, NULL, 1, 2, (int64_t[]){rows, cols});
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int32_t none[6] = {-1, -1, -1, -1, -1, -1};
    const acf_told told = {none, none};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    acf_token_embed(l.t, NULL, matrix(&l, 4, 2), matrix(&l, 3, 2), told, 6, NULL);
    refused(&l, "token_embed: tables (4, 2) and (3, 2) for 6 tokens; expected (R, W) and (S, W) with S at least R, "
                "and as many tokens as the subset has");
    acf_token_embed(l.t, NULL, matrix(&l, 3, 3), matrix(&l, 4, 2), told, 6, NULL);
    refused(&l, "token_embed: tables (3, 3) and (4, 2) for 6 tokens; expected (R, W) and (S, W) with S at least R, "
                "and as many tokens as the subset has");
    acf_token_embed(l.t, NULL, matrix(&l, 3, 2), matrix(&l, 4, 2), told, 5, l.u);
    refused(&l, "token_embed: tables (3, 2) and (4, 2) for 5 tokens; expected (R, W) and (S, W) with S at least R, "
                "and as many tokens as the subset has");
    acf_token_embed(l.t, NULL, acf_tensor_const(l.t, NULL, 1, 1, (int64_t[]){3}), matrix(&l, 4, 2), told, 6, l.u);
    refused(&l, "token_embed: tables (3) and (4, 2) for 6 tokens; expected (R, W) and (S, W) with S at least R, "
                "and as many tokens as the subset has");
    acf_lab_close(&l);
}

ACF_DEVICE_TESTS(tokens, cmocka_unit_test(no_place_behind_the_last))

ACF_TESTS(tokens, cmocka_unit_test(counts_slots), cmocka_unit_test(refuses_what_does_not_fit))
