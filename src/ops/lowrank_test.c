/* Tests of a diagonal plus low rank per row: cases for the harness, and agreement with the dense method on the same
 * numbers. */
#include "ops/lowrank.h"

#include "harness/rowmat_lab.h"
#include "ops/lu.h"
#include "ops/submatrix.h"

#include <string.h>

static const double tol = sizeof(acf_real) == 8 ? 1e-10 : 2e-4;

/* ---- cases ----------------------------------------------------------------------------------------------------- */

enum { APPLY, LOGDET, SOLVE, ALL, SHARED_W = 8 };

static int64_t rank_of(const acf_lab *l) { return l->big ? 9 : 3; }

static acf_lowrank *matrices(acf_lab *l, bool shared) {
    const int64_t N = l->N, D = l->D, r = rank_of(l);
    acf_tensor *w = acf_leaf(l, "w", 0.7, 1.4, shared ? 1 : 2, shared ? (int64_t[]){D, 0} : (int64_t[]){N, D});
    double size = sqrt(gentle(l) / (double)r);
    acf_tensor *a = acf_leaf(l, "a", -size, size, 2, (int64_t[]){N, D * r});
    acf_tensor *b = acf_leaf(l, "b", -size, size, 2, (int64_t[]){N, D * r});
    return acf_lowrank_factor(l->t, w, a, b, r, l->u);
}

static void build(acf_lab *l) {
    acf_lowrank *f = matrices(l, l->c->variant & SHARED_W);
    acf_tensor *v = acf_leaf_packed(l, "v", -1, 1, 0);
    switch (l->c->variant & ~SHARED_W) {
    case APPLY: acf_result(l, acf_lowrank_apply(l->t, f, v)); break;
    case LOGDET: acf_result(l, acf_lowrank_logdet(l->t, f)); break;
    case SOLVE: acf_result(l, acf_lowrank_solve(l->t, f, v)); break;
    default: /* one object for all three, one used twice: gradients add up in w, a, b and v */
        acf_result(l, acf_lowrank_solve(l->t, f, v));
        acf_result(l, acf_lowrank_logdet(l->t, f));
        acf_result(l, acf_lowrank_apply(l->t, f, v));
        acf_result(l, acf_lowrank_solve(l->t, f, v));
    }
}

/* Forms diag(w) + A B on the modelled columns, then the plain elimination. */
static void naive(const acf_lab *l, double *const *out) {
    const acf_subset *u = l->u;
    const int kind = l->c->variant & ~SHARED_W;
    const int64_t D = l->D, r = rank_of(l), stride = l->c->variant & SHARED_W ? 0 : D;
    const acf_real *w = l->leaf[0].value, *A = l->leaf[1].value, *B = l->leaf[2].value;
    double *a = calloc((size_t)(D * D) + 1, sizeof *a);
    assert_non_null(a);
    for (int64_t i = 0; i < l->N; i++) {
        const int64_t n = u->size[i];
        for (int64_t t = 0; t < n; t++)
            for (int64_t s = 0; s < n; s++) {
                int64_t x = u->cols[i * D + t], y = u->cols[i * D + s];
                double sum = x == y ? (double)w[i * stride + x] : 0;
                for (int64_t q = 0; q < r; q++) sum += (double)A[(i * D + x) * r + q] * (double)B[(i * r + q) * D + y];
                a[t * n + s] = sum;
            }
        reference_row(u, i, a, l->leaf[3].value,
                      kind == APPLY ? out[0]
                      : kind == ALL ? out[2]
                                    : NULL,
                      kind == LOGDET ? out[0]
                      : kind == ALL  ? out[1]
                                     : NULL,
                      kind == SOLVE || kind == ALL ? out[0] : NULL);
    }
    if (kind == ALL) memcpy(out[3], out[0], (size_t)u->T * sizeof(double));
    free(a);
}

/* hides_nonfinite: numbers of columns that are not modelled are not read, and the log-determinant does not read v. */
static const acf_case cases[] = {
    {"apply", build, naive, .variant = APPLY, .big_N = 400, .big_D = 30, .hides_nonfinite = true},
    {"logdet", build, naive, .variant = LOGDET, .big_N = 400, .big_D = 30, .hides_nonfinite = true},
    {"solve", build, naive, .variant = SOLVE, .big_N = 400, .big_D = 30, .hides_nonfinite = true},
    {"shared factors", build, naive, .variant = ALL, .big_N = 400, .big_D = 30, .hides_nonfinite = true},
    {"apply, shared diagonal", build, naive, .variant = APPLY | SHARED_W, .big_N = 400, .big_D = 30,
     .hides_nonfinite = true},
    {"logdet, shared diagonal", build, naive, .variant = LOGDET | SHARED_W, .big_N = 400, .big_D = 30,
     .hides_nonfinite = true},
    {"solve, shared diagonal", build, naive, .variant = SOLVE | SHARED_W, .big_N = 400, .big_D = 30,
     .hides_nonfinite = true},
};
ACF_CASES(lowrank, cases)

/* ---- identities ------------------------------------------------------------------------------------------------ */

static void solve_inverts_apply(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 5, 33, 300};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        acf_lab l;
        acf_lab_open(&l, 2, 7, sizes[k], k % 2 ? ACF_MASK_RANDOM : ACF_MASK_ALL, 20 + k);
        acf_lowrank *f = matrices(&l, k % 2);
        acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0);
        assert_same(acf_lowrank_solve(l.t, f, acf_lowrank_apply(l.t, f, v)), v, tol, "apply, solve");
        assert_same(acf_lowrank_apply(l.t, f, acf_lowrank_solve(l.t, f, v)), v, tol, "solve, apply");
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        acf_lab_close(&l);
    }
}

/* The same numbers as a dense matrix: submatrix with the diagonal as base, then lu. */
static void agrees_with_submatrix_and_lu(void **state) {
    (void)state;
    acf_lab l;
    const int64_t N = 12, D = 40, r = 4;
    acf_lab_open(&l, 2, N, D, ACF_MASK_RANDOM, 6);
    acf_tensor *w = acf_leaf(&l, "w", -2, -0.8, 1, &D);
    acf_tensor *a = acf_leaf(&l, "a", -0.3, 0.3, 2, (int64_t[]){N, D * r}),
               *b = acf_leaf(&l, "b", -0.3, 0.3, 2, (int64_t[]){N, D * r});
    acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0), *base = identity_base(&l);
    for (int64_t j = 0; j < D; j++) base->data[j * (D + 1)] = w->data[j];
    acf_lu *dense = acf_lu_factor(l.t, acf_submatrix(l.t, base, a, b, r, l.u), l.u);
    acf_lowrank *thin = acf_lowrank_factor(l.t, w, a, b, r, l.u);
    assert_same(acf_lowrank_apply(l.t, thin, v), acf_lu_apply(l.t, dense, v), tol, "apply");
    assert_same(acf_lowrank_logdet(l.t, thin), acf_lu_logdet(l.t, dense), tol, "logdet");
    assert_same(acf_lowrank_solve(l.t, thin, v), acf_lu_solve(l.t, dense, v), tol, "solve");
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    acf_lab_close(&l);
}

/* Without A the matrix is its diagonal. */
static void diagonal_alone(void **state) {
    (void)state;
    acf_lab l;
    const int64_t D = 5;
    acf_lab_open(&l, 1, 8, D, ACF_MASK_RANDOM, 7);
    acf_tensor *w = acf_leaf(&l, "w", -2, 2, 1, &D), *zero = acf_leaf(&l, "zero", 0, 0, 2, (int64_t[]){8, D});
    acf_lowrank *f = acf_lowrank_factor(l.t, w, zero, zero, 1, l.u);
    acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0), *z = acf_lowrank_apply(l.t, f, v),
               *ld = acf_lowrank_logdet(l.t, f);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < 8; i++) {
        double sum = 0;
        for (int64_t t = 0; t < l.u->size[i]; t++) {
            int64_t c = l.u->cols[i * D + t], at = acf_subset_at(l.u, i, t);
            sum += log(fabs((double)w->data[c]));
            assert_true(z->data[at] == w->data[c] * v->data[at]);
        }
        acf_assert_close((double)ld->data[i], sum, tol, "sum of logs");
    }
    acf_lab_close(&l);
}

static void factorises_once_and_only_when_needed(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 6, 5, ACF_MASK_RANDOM, 8);
    acf_lowrank *f = matrices(&l, false);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    int64_t before = l.t->n_nodes;
    acf_lowrank_apply(l.t, f, x);
    assert_int_equal(l.t->n_nodes, before + 1);
    acf_lowrank_logdet(l.t, f);
    assert_int_equal(l.t->n_nodes, before + 3);
    acf_lowrank_solve(l.t, f, x);
    assert_int_equal(l.t->n_nodes, before + 4);
    acf_lab_close(&l);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

/* A zero on the diagonal, at column 3 of the rows from 5 on. */
static void bad_diagonal_is_named(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 9, 4, ACF_MASK_ALL, 9);
    acf_lowrank *f = matrices(&l, false);
    for (int64_t i = 5; i < 9; i++) l.leaf_tensor[0]->data[i * 4 + 3] = 0;
    acf_lowrank_logdet(l.t, f);
    assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
    const char *start = "lowrank_factor: row 5, column 3: the matrix is singular (pivot 0, largest element ";
    assert_memory_equal(acf_error(), start, strlen(start));
    acf_lab_begin(&l, false);
    acf_lowrank_logdet(l.t, matrices(&l, false));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    acf_lab_close(&l);
}

/* I - e eᵀ with e a unit vector: the diagonal is valid, the inner matrix is singular. */
static void singular_product_is_named(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 9);
    acf_tensor *w = acf_tensor_input(l.t, (acf_real[]){1, 1, 1}, 1, (int64_t[]){3});
    acf_tensor *a = acf_tensor_input(l.t, (acf_real[]){0, 0, 0, 0, 1, 0}, 2, (int64_t[]){2, 3});
    acf_tensor *b = acf_tensor_input(l.t, (acf_real[]){0, 0, 0, 0, -1, 0}, 2, (int64_t[]){2, 3});
    acf_tensor *z = acf_leaf_packed(&l, "z", -1, 1, 0);
    acf_lowrank_solve(l.t, acf_lowrank_factor(l.t, w, a, b, 1, l.u), z);
    assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
    const char *start = "lowrank_factor: row 1, column 1: the matrix is singular (pivot 0, largest element 0);";
    assert_memory_equal(acf_error(), start, strlen(start));
    acf_lab_close(&l);
}

static void nan_is_noticed(void **state) {
    (void)state;
    for (int leaf = 0; leaf < 4; leaf++)
        for (int which = 0; which < 2; which++) {
            acf_lab l;
            acf_lab_open(&l, 1, 5, 4, ACF_MASK_ALL, 2);
            acf_lowrank *f = matrices(&l, false);
            acf_tensor *x = acf_leaf_packed(&l, "x", 0.5, 1, 0), *bad = l.leaf_tensor[leaf];
            bad->data[3 * acf_tensor_width(bad)] = (acf_real)NAN;
            acf_tensor *y = which ? acf_lowrank_apply(l.t, f, x) : acf_lowrank_solve(l.t, f, x);
            acf_status status = acf_tape_check(l.t, y);
            assert_int_equal(status, ACF_ENUMERIC);
            assert_non_null(strstr(acf_error(), "row 3, column "));
            acf_lab_close(&l);
        }
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6}), *w = acf_leaf(&l, "w", 1, 2, 2, (int64_t[]){4, 3});
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    assert_null(acf_lowrank_factor(l.t, w, a, w, 2, l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "lowrank_factor: a is (4, 6) and b is (4, 3); expected (4, 6) for both: 3 columns times "
                        "rank 2, at least 1");
    assert_int_equal(acf_tensor_count(acf_lowrank_apply(l.t, NULL, x)), 0);
    assert_int_equal(acf_tensor_count(acf_lowrank_logdet(l.t, NULL)), 0);
    assert_int_equal(acf_tensor_count(acf_lowrank_solve(l.t, NULL, x)), 0);
    acf_lab_begin(&l, false);
    a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6});
    assert_null(acf_lowrank_factor(l.t, a, a, a, 2, l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "lowrank_factor: the diagonal is (4, 6); expected (3) or (4, 3)");
    acf_lab_begin(&l, false);
    a = acf_leaf(&l, "a", -1, 1, 2, (int64_t[]){4, 6}), w = acf_leaf(&l, "w", 1, 2, 2, (int64_t[]){4, 3});
    acf_lowrank_apply(l.t, acf_lowrank_factor(l.t, w, a, a, 2, l.u), w);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "lowrank_apply: x is (4, 3); expected (12 packed) over the subset of the matrices");
    acf_lab_close(&l);
}

ACF_TESTS(lowrank, cmocka_unit_test(solve_inverts_apply), cmocka_unit_test(agrees_with_submatrix_and_lu),
          cmocka_unit_test(diagonal_alone), cmocka_unit_test(factorises_once_and_only_when_needed),
          cmocka_unit_test(bad_diagonal_is_named), cmocka_unit_test(singular_product_is_named),
          cmocka_unit_test(nan_is_noticed), cmocka_unit_test(refuses_wrong_shapes))
