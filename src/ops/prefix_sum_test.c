/* Prefix sums: cases for the harness, where every sum is computed anew from all elements before; steps against all at
 * once; refusals. */
#include "ops/prefix_sum.h"

#include "harness/lab.h"
#include "ops/gather.h"

enum { CLASSES = 5 };
enum { VALUES, MIRRORED, CLASS, STEPS, CLASS_STEPS, BLOCKS }; /* variants */

/* Large runs, and BLOCKS always: more than one block of units, the last not full. */
static int64_t wide(const acf_lab *l) { return l->big ? 150 : l->c->variant == BLOCKS ? 67 : 3; }
static bool has_values(const acf_lab *l) { return l->c->variant != CLASS && l->c->variant != CLASS_STEPS; }
static bool has_here(const acf_lab *l) {
    return l->c->variant == VALUES || l->c->variant == MIRRORED || l->c->variant == BLOCKS;
}
static int64_t count_of(const acf_lab *l) { return l->u ? l->u->T : 0; }

typedef struct inputs {
    acf_tensor *base, *here, *v;
    acf_terms w;
    const int32_t *slot, *column;
} inputs;

static inputs make(acf_lab *l) {
    inputs in = {0};
    int64_t F = wide(l), R = has_values(l) ? l->D : CLASSES;
    const int32_t *class = acf_leaf_ints(l, "class", 0, CLASSES - 1, count_of(l));
    in.base = acf_leaf(l, "base", -1, 1, 2, (int64_t[]){l->N, F});
    in.w.wk = acf_leaf(l, "wk", -1, 1, 2, (int64_t[]){R, F});
    if (has_values(l)) {
        in.w.wv = acf_leaf(l, "wv", -1, 1, 2, (int64_t[]){R, F});
        in.v = acf_leaf_packed(l, "v", -1, 1, 0);
    }
    if (has_here(l)) in.here = acf_leaf(l, "here", -1, 1, 2, (int64_t[]){l->D, F});
    in.column = acf_prefix_sum_columns(l->t, l->u, l->c->variant == MIRRORED);
    in.slot = has_values(l) ? in.column : class;
    return in;
}

static void build(acf_lab *l) {
    inputs in = make(l);
    acf_result(l, acf_prefix_sum(l->t, in.base, in.here, in.v, &in.w, in.slot, in.column, l->u));
}

/* The same sums step by step; a slice of v shares its gradient, so v's gradient is the sum over the steps. */
static void build_steps(acf_lab *l) {
    inputs in = make(l);
    acf_tensor *sums[16] = {NULL};
    const acf_subset *u = l->u;
    const acf_steps at = acf_tape_steps(l->t, u);
    for (int64_t s = 0; !l->t->failure.status && s < at.n; s++) {
        acf_tensor *before = s && in.v ? acf_step_slice(l->t, in.v, u, s - 1) : NULL;
        sums[s] = s ? acf_prefix_sum_step(l->t, sums[s - 1], before, &in.w, in.slot + at.first[s - 1], at.active[s])
                    : acf_gather(l->t, in.base, u->row, at.active[0], 0);
    }
    acf_result(l, l->t->failure.status ? &l->t->empty : acf_step_stack(l->t, sums, u));
}

/* Leaves by place: class, base, wk, then wv and v, then here. */
static void naive(const acf_lab *l, double *const *out) {
    int64_t F = wide(l);
    const acf_subset *u = l->u;
    bool mirrored = l->c->variant == MIRRORED;
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t s = 0; s < u->size[i]; s++)
            for (int64_t f = 0; f < F; f++) {
                int64_t n = u->size[i], col = u->cols[i * u->D + (mirrored ? n - 1 - s : s)];
                double y =
                    (double)l->leaf[1].value[i * F + f] + (has_here(l) ? (double)l->leaf[5].value[col * F + f] : 0);
                for (int64_t q = 0; q < s; q++) {
                    int64_t p = acf_subset_at(u, i, q), c = u->cols[i * u->D + (mirrored ? n - 1 - q : q)];
                    int64_t slot = has_values(l) ? c : l->leaf[0].ints[p];
                    y += (double)l->leaf[2].value[slot * F + f];
                    if (has_values(l)) y += (double)l->leaf[4].value[p] * (double)l->leaf[3].value[slot * F + f];
                }
                out[0][acf_subset_at(u, i, s) * F + f] = y;
            }
}

/* Inputs 2 .. 2 + D of a layer with D + 3 of them. */
static void build_slots(acf_lab *l) {
    acf_result(l, acf_prefix_sum_slots(l->t, acf_leaf(l, "w", -1, 1, 2, (int64_t[]){wide(l), l->D + 3}), 2, l->D));
}

static void naive_slots(const acf_lab *l, double *const *out) {
    for (int64_t j = 0; j < l->D; j++)
        for (int64_t f = 0; f < wide(l); f++)
            out[0][j * wide(l) + f] = (double)l->leaf[0].value[f * (l->D + 3) + 2 + j];
}

/* Three columns of 2, 1 and 3 classes; masks in inputs 1 to 3, embeddings of two numbers in 5 to 10 of 12. */
static const int32_t first3[3] = {0, 2, 3}, count3[3] = {2, 1, 3};
static const acf_classes classes = {3, first3, count3};

static void build_classes(acf_lab *l) {
    acf_tensor *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){wide(l), 12}),
               *table = acf_leaf(l, "table", -1, 1, 2, (int64_t[]){6, 2});
    acf_result(l, acf_prefix_sum_classes(l->t, w, table, &classes, 1, 5));
}

static void naive_classes(const acf_lab *l, double *const *out) {
    static const int column[6] = {0, 0, 1, 2, 2, 2};
    for (int64_t r = 0; r < 6; r++)
        for (int64_t f = 0; f < wide(l); f++) {
            const acf_real *w = l->leaf[0].value + f * 12, *e = l->leaf[1].value + r * 2;
            int j = column[r];
            out[0][r * wide(l) + f] =
                (double)w[1 + j] + (double)w[5 + 2 * j] * (double)e[0] + (double)w[6 + 2 * j] * (double)e[1];
        }
}

static const acf_size small[] = {{4, 3, ACF_MASK_RANDOM}, {2, 3, ACF_MASK_ALL}, {-1, 0, ACF_MASK_RANDOM}};

/* hides_nonfinite: a row's last element and an unused slot do not enter any sum. */
static const acf_case cases[] = {
    {"values", build, naive, .variant = VALUES, .hides_nonfinite = true},
    {"blocks of units", build, naive, .variant = BLOCKS, .hides_nonfinite = true, .sizes = small},
    {"mirrored", build, naive, .variant = MIRRORED, .hides_nonfinite = true},
    {"classes", build, naive, .variant = CLASS, .hides_nonfinite = true},
    {"steps", build_steps, naive, .variant = STEPS, .hides_nonfinite = true},
    {"steps of classes", build_steps, naive, .variant = CLASS_STEPS, .hides_nonfinite = true},
    {"slots", build_slots, naive_slots, .hides_nonfinite = true, .big_D = 300},
    {"slots of classes", build_classes, naive_classes, .hides_nonfinite = true},
};
ACF_CASES(prefix_sum, cases)

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
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    const int32_t *col = l.u->col_of;
    acf_terms w = {NULL, matrix(&l, 3, 4)};
    acf_prefix_sum(l.t, matrix(&l, 3, 4), NULL, NULL, &w, col, col, l.u);
    refused(&l, ACF_ESHAPE, "prefix_sum: the base is (3, 4); the subset has 2 rows, so expected (2, F)");
    w.wk = matrix(&l, 3, 4), col = l.u->col_of;
    acf_prefix_sum(l.t, matrix(&l, 2, 4), matrix(&l, 2, 4), NULL, &w, col, col, l.u);
    refused(&l, ACF_ESHAPE, "prefix_sum: the columns' rows are (2, 4); expected (3, 4)");
    w.wk = matrix(&l, 3, 5), col = l.u->col_of;
    acf_prefix_sum(l.t, matrix(&l, 2, 4), NULL, NULL, &w, col, col, l.u);
    refused(&l, ACF_ESHAPE, "prefix_sum: wk is (3, 5) and wv absent; expected (R, 4) both, or no wv");
    w = (acf_terms){matrix(&l, 3, 4), matrix(&l, 3, 4)}, col = l.u->col_of;
    acf_prefix_sum(l.t, matrix(&l, 2, 4), NULL, NULL, &w, col, col, l.u);
    refused(&l, ACF_ESHAPE, "prefix_sum: v is absent; expected 6 values with wv, none without");
    w = (acf_terms){matrix(&l, 3, 4), matrix(&l, 3, 4)}, col = l.u->col_of;
    acf_prefix_sum(l.t, matrix(&l, 2, 4), NULL, acf_tensor_const(l.t, NULL, 1, 1, (int64_t[]){6}), &w, col, col, l.u);
    refused(&l, ACF_ESHAPE, "prefix_sum: v is (6); expected it packed over the given subset");
    w = (acf_terms){NULL, matrix(&l, 2, 4)}, col = l.u->col_of;
    acf_prefix_sum(l.t, matrix(&l, 2, 4), NULL, NULL, &w, col, col, l.u); /* column 2 has no slot */
    refused(&l, ACF_EDATA, "prefix_sum: the slot at place 4 is 2; expected 0 to 1");
    w.wk = matrix(&l, 3, 4);
    acf_prefix_sum_step(l.t, matrix(&l, 2, 4), NULL, &w, l.u->col_of, 3);
    refused(&l, ACF_ESHAPE, "prefix_sum_step: 3 rows of sums (2, 4); expected (m, F) and no more than m");
    w.wk = matrix(&l, 3, 4);
    acf_prefix_sum_step(l.t, matrix(&l, 2, 4), NULL, &w, (int32_t[]){0, -1}, 2);
    refused(&l, ACF_EDATA, "prefix_sum_step: the slot at place 1 is -1; expected 0 to 2");
    acf_prefix_sum_slots(l.t, matrix(&l, 4, 6), 4, 3);
    refused(&l, ACF_ESHAPE, "prefix_sum_slots: inputs 4 to 7 of weights (4, 6); expected (F, C) and inputs below C");
    acf_prefix_sum_classes(l.t, matrix(&l, 4, 12), matrix(&l, 5, 2), &classes, 1, 5);
    refused(&l, ACF_ESHAPE, "prefix_sum_classes: weights (4, 12) and embeddings (5, 2); expected (F, C) and (6, E)");
    acf_prefix_sum_classes(l.t, matrix(&l, 4, 12), matrix(&l, 6, 2), &classes, 1, 7);
    refused(&l, ACF_ESHAPE,
            "prefix_sum_classes: masks from input 1 and embeddings from input 7 on do not fit weights (4, 12)");
    acf_lab_close(&l);
}

ACF_TESTS(prefix_sum, cmocka_unit_test(refuses_what_does_not_fit))
