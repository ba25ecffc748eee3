/* Tests of moving rows: cases for the harness, identities between the maps, refusals. */
#include "ops/gather.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inner widths: odd, so that vector loops have a tail; large in the threaded run. */
static int64_t width(const acf_lab *l) { return l->big ? 37 : 3; }

/* Packed index of (row i, column j), or -1: by search, so that the test relies only on row_of and col_of. */
static int64_t find(const acf_subset *u, int64_t i, int64_t j) {
    for (int64_t p = 0; p < u->T; p++)
        if (u->row_of[p] == i && u->col_of[p] == j) return p;
    return -1;
}

/* Packed index of the modelled column of row i next to column j, going by step; -1 when there is none. */
static int64_t next_to(const acf_subset *u, int64_t i, int64_t j, int64_t step) {
    for (j += step; j >= 0 && j < u->D; j += step)
        if (find(u, i, j) >= 0) return find(u, i, j);
    return -1;
}

/* ---- any index ------------------------------------------------------------------------------------------------- */

/* 11 rows (with l->big 300), indices with repeats and -1; variant 1: a list of numbers instead of rows. */
static int64_t rows_in(const acf_lab *l) { return l->big ? 300 : 11; }

static void build_any(acf_lab *l) {
    int64_t R = rows_in(l), n = 3 * l->N;
    const int32_t *index = acf_leaf_ints(l, "index", -1, (int32_t)R - 1, n);
    acf_tensor *x = acf_leaf(l, "x", -1, 1, l->c->variant ? 1 : 2, (int64_t[]){R, width(l)});
    acf_result(l, acf_gather(l->t, x, index, n, 0.25));
}

static void naive_any(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? 1 : width(l);
    for (int64_t p = 0; p < 3 * l->N; p++)
        for (int64_t c = 0; c < C; c++) {
            int32_t at = l->leaf[0].ints[p];
            out[0][p * C + c] = at < 0 ? 0.25 : (double)l->leaf[1].value[at * C + c];
        }
}

/* Indices without repeats, written by the build: p -> a stride through R; every fifth one is -1. */
static int32_t spread(int64_t p, int64_t R) { return p % 5 == 4 ? -1 : (int32_t)(p * 7 % R); }

static void build_scatter(acf_lab *l) {
    int64_t R = 2 * l->N + 3, n = l->N, C = width(l);
    R += R % 7 == 0; /* 7 must visit all of R */
    acf_tensor *v = acf_leaf(l, "v", -1, 1, l->c->variant & 1 ? 1 : 2, (int64_t[]){n, C});
    acf_tensor *base = l->c->variant & 2 ? acf_leaf(l, "base", -1, 1, v->ndim, (int64_t[]){R, C}) : NULL;
    int32_t *index = acf_lab_ints(n);
    for (int64_t p = 0; p < n; p++) index[p] = spread(p, R);
    const int32_t *there = acf_lab_give_ints(l, index, n);
    acf_result(l, there ? acf_scatter(l->t, v, there, R, base, -0.5) : &l->t->empty);
}

static void naive_scatter(const acf_lab *l, double *const *out) {
    int64_t R = 2 * l->N + 3, C = l->c->variant & 1 ? 1 : width(l);
    R += R % 7 == 0;
    for (int64_t i = 0; i < R * C; i++) out[0][i] = l->c->variant & 2 ? (double)l->leaf[1].value[i] : -0.5;
    for (int64_t p = 0; p < l->N; p++)
        for (int64_t c = 0; c < C && spread(p, R) >= 0; c++)
            out[0][spread(p, R) * C + c] = (double)l->leaf[0].value[p * C + c];
}

/* ---- the maps of a subset -------------------------------------------------------------------------------------- */

static void build_cells(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){l->N, l->D});
    acf_result(l, acf_gather_cells(l->t, x, l->u));
}

static void naive_cells(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t j = 0; j < l->D; j++)
            if (l->m[i * l->D + j] && !l->b[i * l->D + j])
                out[0][find(l->u, i, j)] = (double)l->leaf[0].value[i * l->D + j];
}

static void build_scatter_cells(acf_lab *l) {
    acf_tensor *v = acf_leaf_packed(l, "v", -1, 1, 0);
    acf_tensor *base = l->c->variant ? acf_leaf(l, "base", -1, 1, 2, (int64_t[]){l->N, l->D}) : NULL;
    acf_result(l, acf_scatter_cells(l->t, v, l->u, base));
}

static void naive_scatter_cells(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t j = 0; j < l->D; j++) {
            int64_t cell = i * l->D + j;
            bool modelled = l->m[cell] && !l->b[cell];
            out[0][cell] = modelled        ? (double)l->leaf[0].value[find(l->u, i, j)]
                           : l->c->variant ? (double)l->leaf[1].value[cell]
                                           : 0;
        }
}

/* variant: width of the elements, 0 for plain numbers */
static void build_prev(acf_lab *l) {
    acf_result(l, acf_gather_prev(l->t, acf_leaf_packed(l, "v", -1, 1, l->c->variant), l->u, -1));
}

static void naive_prev(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? l->c->variant : 1;
    for (int64_t p = 0; p < l->u->T; p++) {
        int64_t from = next_to(l->u, l->u->row_of[p], l->u->col_of[p], -1);
        for (int64_t c = 0; c < C; c++) out[0][p * C + c] = from < 0 ? -1 : (double)l->leaf[0].value[from * C + c];
    }
}

static void build_reverse(acf_lab *l) {
    acf_result(l, acf_reverse(l->t, acf_leaf_packed(l, "v", -1, 1, l->c->variant), l->u));
}

/* Two indices: one goes through the row's columns from the front, one from the back. */
static void naive_reverse(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? l->c->variant : 1;
    for (int64_t i = 0; i < l->N; i++) {
        int64_t front = next_to(l->u, i, -1, 1), back = next_to(l->u, i, l->D, -1);
        while (front >= 0) {
            for (int64_t c = 0; c < C; c++) out[0][front * C + c] = (double)l->leaf[0].value[back * C + c];
            front = next_to(l->u, i, l->u->col_of[front], 1);
            back = next_to(l->u, i, l->u->col_of[back], -1);
        }
    }
}

static void build_pick(acf_lab *l) {
    acf_tensor *v = acf_leaf_packed(l, "v", -1, 1, l->c->variant);
    for (int parity = 0; parity < 2; parity++) acf_result(l, acf_pick(l->t, v, acf_tape_half(l->t, l->u, parity)));
}

static void naive_pick(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? l->c->variant : 1;
    for (int64_t i = 0; i < l->N; i++) {
        int64_t place = 0;
        for (int64_t p = next_to(l->u, i, -1, 1); p >= 0; p = next_to(l->u, i, l->u->col_of[p], 1), place++) {
            const acf_subset *half = l->result[place % 2]->sub;
            int64_t to = find(half, i, l->u->col_of[p]);
            for (int64_t c = 0; c < C; c++) out[place % 2][to * C + c] = (double)l->leaf[0].value[p * C + c];
        }
    }
}

/* The halves get different scales first, so that exchanging them would be detected. */
static void build_merge(acf_lab *l) {
    const acf_subset *even = acf_tape_half(l->t, l->u, 0), *odd = acf_tape_half(l->t, l->u, 1);
    int ndim = l->c->variant ? 2 : 1;
    if (!even || !odd) return;
    acf_tensor *a = acf_leaf(l, "a", -1, 0, ndim, (int64_t[]){even->T, l->c->variant});
    acf_tensor *b = acf_leaf(l, "b", 0, 1, ndim, (int64_t[]){odd->T, l->c->variant});
    acf_result(l, acf_merge(l->t, acf_tensor_as_packed(l->t, a, even), acf_tensor_as_packed(l->t, b, odd), l->u));
}

static void naive_merge(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? l->c->variant : 1;
    for (int64_t i = 0; i < l->N; i++) {
        int64_t place = 0;
        for (int64_t p = next_to(l->u, i, -1, 1); p >= 0; p = next_to(l->u, i, l->u->col_of[p], 1), place++) {
            const acf_subset *half = l->t->last->before->in[place % 2]->sub; /* the last node is the harness's loss */
            int64_t from = find(half, i, l->u->col_of[p]);
            for (int64_t c = 0; c < C; c++) out[0][p * C + c] = (double)l->leaf[place % 2].value[from * C + c];
        }
    }
}

/* Split into steps, rearranged by a gather of each, and stacked again. */
static void build_steps(acf_lab *l) {
    acf_tensor *v = acf_leaf_packed(l, "v", -1, 1, l->c->variant), *step[64];
    const acf_steps at = acf_tape_steps(l->t, l->u);
    for (int64_t s = 0; s < at.n; s++) {
        int64_t n = at.active[s];
        int32_t *back = acf_lab_ints(n);
        for (int64_t k = 0; k < n; k++) back[k] = (int32_t)(n - 1 - k);
        const int32_t *there = acf_lab_give_ints(l, back, n);
        step[s] = acf_gather(l->t, acf_step_slice(l->t, v, l->u, s), there, n, 0);
    }
    acf_result(l, acf_step_stack(l->t, step, l->u));
}

static void naive_steps(const acf_lab *l, double *const *out) {
    int64_t C = l->c->variant ? l->c->variant : 1;
    for (int64_t s = 0; s < l->u->steps; s++)
        for (int64_t k = 0; k < l->u->active[s]; k++)
            for (int64_t c = 0; c < C; c++)
                out[0][(l->u->first[s] + k) * C + c] =
                    (double)l->leaf[0].value[(l->u->first[s] + l->u->active[s] - 1 - k) * C + c];
}

/* hides_nonfinite: these do not affect the output: a row that no index points to, a base row that is replaced, and
 * the last element of a row (no element follows it). */
static const acf_case cases[] = {
    {"rows", build_any, naive_any, .hides_nonfinite = true, .big_N = 2000},
    {"numbers", build_any, naive_any, .variant = 1, .hides_nonfinite = true, .big_N = 20000},
    {"scatter rows", build_scatter, naive_scatter, .hides_nonfinite = true, .big_N = 2000},
    {"scatter numbers", build_scatter, naive_scatter, .variant = 1, .hides_nonfinite = true, .big_N = 40000},
    {"scatter rows over a base", build_scatter, naive_scatter, .variant = 2, .hides_nonfinite = true, .big_N = 2000},
    {"scatter numbers over a base", build_scatter, naive_scatter, .variant = 3, .hides_nonfinite = true,
     .big_N = 40000},
    {"cells", build_cells, naive_cells, .hides_nonfinite = true, .big_N = 8000},
    {"cells back", build_scatter_cells, naive_scatter_cells, .big_N = 8000},
    {"cells back over a base", build_scatter_cells, naive_scatter_cells, .variant = 1, .hides_nonfinite = true,
     .big_N = 8000},

    {"previous", build_prev, naive_prev, .hides_nonfinite = true, .big_N = 8000},
    {"previous vectors", build_prev, naive_prev, .variant = 5, .hides_nonfinite = true, .big_N = 2000},
    {"reverse", build_reverse, naive_reverse, .big_N = 8000},
    {"reverse vectors", build_reverse, naive_reverse, .variant = 5, .big_N = 2000},
    {"pick", build_pick, naive_pick, .big_N = 16000},
    {"pick vectors", build_pick, naive_pick, .variant = 5, .big_N = 4000},
    {"merge", build_merge, naive_merge, .big_N = 16000},
    {"merge vectors", build_merge, naive_merge, .variant = 5, .big_N = 4000},
    {"step by step", build_steps, naive_steps, .big_N = 2000},
    {"step by step, vectors", build_steps, naive_steps, .variant = 5, .big_N = 2000},
};
ACF_CASES(gather, cases)

/* ---- identities ------------------------------------------------------------------------------------------------ */

static void assert_same(const acf_tensor *a, const acf_tensor *b) {
    assert_int_equal(acf_tensor_count(a), acf_tensor_count(b));
    assert_memory_equal(a->data, b->data, (size_t)acf_tensor_count(a) * sizeof(acf_real));
}

/* Every map has an inverse among the others, exactly. */
static void maps_are_inverses(void **state) {
    (void)state;
    for (acf_lab_mask mask = ACF_MASK_RANDOM; mask <= ACF_MASK_ALL; mask++) {
        acf_lab l;
        acf_lab_open(&l, 1, 9, 6, mask, 5);
        acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0), *x = acf_leaf(&l, "x", -1, 1, 2, (int64_t[]){9, 6});
        assert_same(acf_reverse(l.t, acf_reverse(l.t, v, l.u), l.u), v);
        assert_same(acf_gather_cells(l.t, acf_scatter_cells(l.t, v, l.u, NULL), l.u), v);
        assert_same(acf_scatter_cells(l.t, acf_gather_cells(l.t, x, l.u), l.u, x), x);
        const acf_subset *even = acf_tape_half(l.t, l.u, 0), *odd = acf_tape_half(l.t, l.u, 1);
        assert_same(acf_merge(l.t, acf_pick(l.t, v, even), acf_pick(l.t, v, odd), l.u), v);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        acf_lab_close(&l);
    }
}

/* A slice is a view of its tensor: nothing is copied, and the gradient is shared. */
static void a_slice_is_a_view(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_lab_begin(&l, true);
    acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 2), *s = acf_step_slice(l.t, v, l.u, 1);
    assert_ptr_equal(s->data, v->data + 4 * 2);
    assert_ptr_equal(s->grad, v->grad + 4 * 2);
    assert_int_equal(s->dim[0], 4);
    assert_null(s->sub);
    acf_lab_close(&l);
}

/* The sorted scatter-add and the one for unique indices agree where both apply. */
static void backwards_agree(void **state) {
    (void)state;
    enum { N = 9, D = 6, C = 5 };
    acf_lab l;
    acf_lab_open(&l, 1, N, D, ACF_MASK_RANDOM, 8);
    acf_tensor *dy = acf_leaf_packed(&l, "dy", -1, 1, C);
    acf_real a[N * D * C] = {0}, b[N * D * C] = {0};
    int32_t scratch[N * D + N * D];
    acf_gather_bwd_cpu(l.dev, a, dy->data, l.u->prev, scratch, l.u->T, l.u->T, C);
    acf_gather_unique_bwd_cpu(l.dev, b, dy->data, l.u->prev, l.u->T, C);
    assert_memory_equal(a, b, sizeof a);
    acf_lab_close(&l);
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

static void assert_refused(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    if (sentence) assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

static acf_tensor *zeros(acf_lab *l, int ndim, int64_t rows, int64_t C) {
    static const acf_real zero[64];
    assert_true(rows * (ndim > 1 ? C : 1) <= 64);
    return acf_tensor_input(l->t, zero, ndim, (int64_t[]){rows, C});
}

static acf_tensor *packed(acf_lab *l, const acf_subset *u, int64_t C) {
    return acf_tensor_as_packed(l->t, zeros(l, C ? 2 : 1, u->T, C), u);
}

static void refuses_bad_indices(void **state) {
    (void)state;
    static const int32_t beyond[] = {0, -1, 4, 9}, below[] = {0, -2}, twice[] = {1, -1, 3, 3, -1};
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_gather(l.t, zeros(&l, 2, 4, 3), beyond, 4, 0);
    assert_refused(&l, ACF_EDATA, "gather: the index at place 2 is 4; expected -1 to 3");
    acf_gather(l.t, zeros(&l, 1, 4, 0), below, 2, 0);
    assert_refused(&l, ACF_EDATA, "gather: the index at place 1 is -2; expected -1 to 3");
    acf_gather(l.t, zeros(&l, 1, 0, 0), beyond, 1, 0);
    assert_refused(&l, ACF_EDATA, "gather: the index at place 0 is 0; expected -1 to -1");
    acf_scatter(l.t, zeros(&l, 2, 4, 3), beyond, 4, NULL, 0);
    assert_refused(&l, ACF_EDATA, "scatter: the index at place 2 is 4; expected -1 to 3");
    acf_scatter(l.t, zeros(&l, 2, 5, 3), twice, 4, NULL, 0);
    assert_refused(&l, ACF_EDATA, "scatter: row 3 is the target of several indices");
    acf_lab_close(&l);
}

static void refuses_other_shapes(void **state) {
    (void)state;
    static const int32_t index[] = {0, 1, 2, 3};
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_gather(l.t, acf_tensor_new(l.t, 3, (int64_t[]){1, 1, 1}), index, 1, 0);
    assert_refused(&l, ACF_ESHAPE, "gather: 1 rows of x (1, 1, 1); expected (R) or (R, C), and fewer than 2^31 rows");
    acf_gather(l.t, zeros(&l, 1, 4, 0), index, -1, 0);
    assert_refused(&l, ACF_ESHAPE, NULL);
    acf_gather_cells(l.t, zeros(&l, 2, 3, 4), l.u);
    assert_refused(&l, ACF_ESHAPE, "gather: the cells of x (3, 4); the subset has (4, 3)");
    acf_scatter(l.t, zeros(&l, 2, 4, 3), index, -1, NULL, 0);
    assert_refused(&l, ACF_ESHAPE, NULL);
    acf_scatter(l.t, zeros(&l, 2, 4, 3), index, 5, zeros(&l, 2, 5, 2), 0);
    assert_refused(&l, ACF_ESHAPE, "scatter: the base is (5, 2); expected 5 rows like those of v (4, 3)");
    acf_scatter_cells(l.t, packed(&l, l.u, 0), l.u, zeros(&l, 2, 4, 2));
    assert_refused(&l, ACF_ESHAPE, "scatter: the base is (4, 2); the subset has (4, 3)");
    acf_lab_close(&l);
}

/* A tensor packed over another subset has as many elements here, and must still be refused. */
static void refuses_other_subsets(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 4, ACF_MASK_ALL, 1);
    for (int k = 0; k < 10; k++) {
        const acf_subset *other, *even = acf_tape_half(l.t, l.u, 0), *odd = acf_tape_half(l.t, l.u, 1), *far;
        assert_int_equal(acf_subset_build(l.t->mem, l.b, l.m, 4, 4, &other), ACF_OK);
        assert_int_equal(acf_subset_split(l.t->mem, other, 1, &far), ACF_OK);
        acf_tensor *v = packed(&l, other, 0), *step[4];
        for (int s = 0; s < 4; s++) step[s] = zeros(&l, 1, s == 2 ? 3 : 4, 0);
        switch (k) {
        case 0: acf_gather_prev(l.t, v, l.u, -1); break;
        case 1: acf_reverse(l.t, v, l.u); break;
        case 2: acf_pick(l.t, v, even); break;
        case 3: acf_pick(l.t, v, l.u); break;
        case 4: acf_scatter_cells(l.t, v, l.u, NULL); break;
        case 5: acf_merge(l.t, packed(&l, even, 0), packed(&l, even, 0), l.u); break;
        case 6: acf_merge(l.t, packed(&l, even, 0), packed(&l, far, 0), l.u); break;
        case 7: acf_merge(l.t, packed(&l, even, 2), packed(&l, odd, 3), l.u); break;
        case 8: acf_step_slice(l.t, packed(&l, l.u, 0), l.u, 4); break;
        case 9: acf_step_stack(l.t, step, l.u); break;
        }
        static const char *const sentence[10] = {
            [0] = "gather: v is (16 packed); expected (T) or (T, C) packed over the given subset",
            [2] = "gather: v is (16 packed); expected it packed over the subset that was split",
            [4] = "scatter: v is (16 packed); expected (T) packed over the given subset",
            [7] = "merge: the parts are (8 packed, 2) and (8 packed, 3); expected rows of the same width, packed over "
                  "the even and the odd half",
            [8] = "step_slice: step 4 of (16 packed); expected a tensor packed over the given subset, of 4 steps",
            [9] = "step_stack: step 2 is (3); expected 4 rows of width 1"};
        assert_refused(&l, ACF_ESHAPE, sentence[k]);
    }
    acf_lab_close(&l);
}

ACF_TESTS(gather, cmocka_unit_test(maps_are_inverses), cmocka_unit_test(a_slice_is_a_view),
          cmocka_unit_test(backwards_agree), cmocka_unit_test(refuses_bad_indices),
          cmocka_unit_test(refuses_other_shapes), cmocka_unit_test(refuses_other_subsets))
