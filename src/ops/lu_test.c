/* Tests of a general matrix per row: cases for the harness, and the identities of determinant and inverse. */
#include "ops/lu.h"

#include "harness/rowmat_lab.h"

#include <string.h>

static const double tol = sizeof(acf_real) == 8 ? 1e-10 : 2e-4;

/* ---- cases ----------------------------------------------------------------------------------------------------- */

enum { APPLY, LOGDET, SOLVE, SHARED };

static void build(acf_lab *l) {
    acf_lu *lu = acf_lu_factor(l->t, leaf_square(l), l->u);
    acf_tensor *v = l->c->variant == LOGDET ? NULL : acf_leaf_packed(l, "v", -1, 1, 0);
    switch (l->c->variant) {
    case APPLY: acf_result(l, acf_lu_apply(l->t, lu, v)); break;
    case LOGDET: acf_result(l, acf_lu_logdet(l->t, lu)); break;
    case SOLVE: acf_result(l, acf_lu_solve(l->t, lu, v)); break;
    default: /* one object for all three, one used twice: gradients add up in the matrices and in v */
        acf_result(l, acf_lu_solve(l->t, lu, v));
        acf_result(l, acf_lu_logdet(l->t, lu));
        acf_result(l, acf_lu_apply(l->t, lu, v));
        acf_result(l, acf_lu_solve(l->t, lu, v));
    }
}

static void naive(const acf_lab *l, double *const *out) {
    const acf_subset *u = l->u;
    const int kind = l->c->variant;
    double *a = calloc((size_t)(l->D * l->D) + 1, sizeof *a);
    assert_non_null(a);
    for (int64_t i = 0; i < l->N; i++) {
        const acf_real *m = l->leaf[0].value + u->square[i];
        for (int64_t k = 0; k < (int64_t)u->size[i] * u->size[i]; k++) a[k] = (double)m[k];
        const acf_real *v = kind == LOGDET ? NULL : l->leaf[1].value;
        reference_row(u, i, a, v,
                      kind == APPLY    ? out[0]
                      : kind == SHARED ? out[2]
                                       : NULL,
                      kind == LOGDET   ? out[0]
                      : kind == SHARED ? out[1]
                                       : NULL,
                      kind == SOLVE || kind == SHARED ? out[0] : NULL);
    }
    if (kind == SHARED) memcpy(out[3], out[0], (size_t)u->T * sizeof(double));
    free(a);
}

static const acf_case cases[] = {
    {"apply", build, naive, .variant = APPLY, .big_N = 300, .big_D = 40},
    {"logdet", build, naive, .variant = LOGDET, .big_N = 300, .big_D = 40},
    {"solve", build, naive, .variant = SOLVE, .big_N = 300, .big_D = 40},
    {"shared factors", build, naive, .variant = SHARED, .big_N = 300, .big_D = 40},
};
ACF_CASES(lu, cases)

/* ---- identities ------------------------------------------------------------------------------------------------ */

static void inverse_of(void **state, bool solve_first) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 5, 16, 33, 70, 97, 120};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        acf_lab l;
        acf_lab_open(&l, 2, 7, sizes[k], k % 2 ? ACF_MASK_RANDOM : ACF_MASK_ALL, 20 + k);
        acf_lu *lu = acf_lu_factor(l.t, leaf_square(&l), l.u);
        acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 0);
        acf_tensor *back = solve_first ? acf_lu_apply(l.t, lu, acf_lu_solve(l.t, lu, v))
                                       : acf_lu_solve(l.t, lu, acf_lu_apply(l.t, lu, v));
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        assert_same(back, v, tol, "there and back");
        acf_lab_close(&l);
    }
}
static void solve_undoes_apply(void **state) { inverse_of(state, false); }
static void apply_undoes_solve(void **state) { inverse_of(state, true); }

static double first(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return (t == s) * 1.5 + acf_lab_random(1, (i * u->D + t) * u->D + s, -0.4, 0.4);
}
static double second(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return (t == s) * -0.7 + acf_lab_random(2, (i * u->D + t) * u->D + s, -0.4, 0.4);
}
static double product(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    double sum = 0;
    for (int64_t k = 0; k < u->size[i]; k++)
        sum += (double)(acf_real)first(u, i, t, k) * (double)(acf_real)second(u, i, k, s);
    return sum;
}

static void logdet_of_a_product(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 20, 12, ACF_MASK_RANDOM, 4);
    acf_tensor *a = acf_lu_logdet(l.t, acf_lu_factor(l.t, list_of(&l, first), l.u));
    acf_tensor *b = acf_lu_logdet(l.t, acf_lu_factor(l.t, list_of(&l, second), l.u));
    acf_tensor *ab = acf_lu_logdet(l.t, acf_lu_factor(l.t, list_of(&l, product), l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < 20; i++)
        acf_assert_close((double)ab->data[i], (double)a->data[i] + (double)b->data[i], tol,
                         "log|AB| = log|A| + log|B|");
    acf_lab_close(&l);
}

/* det by cofactors of the first row: the definition, for n <= 4. */
static double cofactors(const double *a, int64_t n, int64_t ld) {
    if (n == 0) return 1;
    double sum = 0, minor[9];
    for (int64_t j = 0; j < n; j++) {
        for (int64_t r = 1; r < n; r++)
            for (int64_t c = 0, to = 0; c < n; c++)
                if (c != j) minor[(r - 1) * 3 + to++] = a[r * ld + c];
        sum += (j % 2 ? -1 : 1) * a[j] * cofactors(minor, n - 1, 3);
    }
    return sum;
}

static void logdet_by_definition(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 60, 4, ACF_MASK_RANDOM, 5);
    acf_tensor *m = list_of(&l, first), *ld = acf_lu_logdet(l.t, acf_lu_factor(l.t, m, l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < 60; i++) {
        double a[16];
        for (int64_t k = l.u->square[i]; k < l.u->square[i + 1]; k++) a[k - l.u->square[i]] = (double)m->data[k];
        acf_assert_close((double)ld->data[i], log(fabs(cofactors(a, l.u->size[i], l.u->size[i]))), tol, "log|det|");
    }
    acf_lab_close(&l);
}

/* A cyclic shift: every pivot is off the diagonal. */
static double shift(const acf_subset *u, int64_t i, int64_t t, int64_t s) { return s == (t + 1) % u->size[i]; }
static double diagonal(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return (void)u, (void)i, t == s ? -1.0 - (double)t : 0;
}

static void logdet_of_permutation_and_diagonal(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 12, 9, ACF_MASK_RANDOM, 6);
    acf_lu *p = acf_lu_factor(l.t, list_of(&l, shift), l.u);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0), *z = acf_lu_apply(l.t, p, x);
    acf_tensor *ld = acf_lu_logdet(l.t, p), *d = acf_lu_logdet(l.t, acf_lu_factor(l.t, list_of(&l, diagonal), l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < 12; i++) {
        const int64_t n = l.u->size[i];
        assert_true(ld->data[i] == 0);
        acf_assert_close((double)d->data[i], lgamma((double)n + 1), tol, "log n!");
        for (int64_t t = 0; t < n; t++)
            assert_true(z->data[acf_subset_at(l.u, i, t)] == x->data[acf_subset_at(l.u, i, (t + 1) % n)]);
    }
    assert_same(acf_lu_solve(l.t, p, z), x, 0, "permutation undone");
    acf_lab_close(&l);
}

/* Scale does not make a matrix singular: matrices of 1e-25 and 1e25 in one batch, and rows of one matrix that differ
 * a thousandfold. */
static double scaled(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return first(u, i, t, s) * (i % 3 == 0 ? 1e-25 : i % 3 == 1 ? 1e25 : t % 2 ? 1e-3 : 1);
}

static void scale_does_not_matter(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 18, 10, ACF_MASK_RANDOM, 7);
    acf_lu *lu = acf_lu_factor(l.t, list_of(&l, scaled), l.u);
    acf_tensor *ld = acf_lu_logdet(l.t, lu), *plain = acf_lu_logdet(l.t, acf_lu_factor(l.t, list_of(&l, first), l.u));
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    acf_tensor *back = acf_lu_solve(l.t, lu, acf_lu_apply(l.t, lu, x));
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int64_t i = 0; i < 18; i++) {
        const double n = l.u->size[i], scale = i % 3 == 0   ? n * log(1e-25)
                                               : i % 3 == 1 ? n * log(1e25)
                                                            : floor(n / 2) * log(1e-3);
        acf_assert_close((double)ld->data[i], (double)plain->data[i] + scale, tol, "log|det| of a scaled matrix");
    }
    assert_same(back, x, tol, "scaled there and back");
    acf_lab_close(&l);
}

/* Apply needs no factors; logdet and solve share one factorisation. */
static void factorises_once_and_only_when_needed(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 6, 5, ACF_MASK_RANDOM, 8);
    acf_lu *lu = acf_lu_factor(l.t, list_of(&l, first), l.u);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    int64_t before = l.t->n_nodes;
    acf_lu_apply(l.t, lu, x);
    assert_int_equal(l.t->n_nodes, before + 1);
    acf_lu_logdet(l.t, lu);
    assert_int_equal(l.t->n_nodes, before + 3);
    acf_lu_solve(l.t, lu, x);
    assert_int_equal(l.t->n_nodes, before + 4);
    acf_lab_close(&l);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

static double spoil_value;
static int64_t spoil_rows;

/* In the last spoil_rows rows, the third row of the matrix is nearly twice the first. */
static double spoiled(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    if (i < u->N - spoil_rows || t != 2) return first(u, i, t, s);
    return 2 * (double)(acf_real)first(u, i, 0, s) + (s == 2 ? spoil_value : 0);
}

static acf_status factor_spoiled(acf_lab *l, double value, int64_t rows) {
    acf_lab_begin(l, false);
    spoil_value = value, spoil_rows = rows;
    acf_lu_logdet(l->t, acf_lu_factor(l->t, list_of(l, spoiled), l->u));
    return acf_tape_status(l->t);
}

static void singular_is_named(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        acf_lab l;
        acf_lab_open(&l, threads, 400, 6, ACF_MASK_ALL, 9);
        for (int64_t i = 0; i < 400; i++) l.b[i * 6 + 1] = 1; /* column 1 is observed: position 2 is column 3 */
        assert_int_equal(factor_spoiled(&l, 0, 100), ACF_ENUMERIC);
        const char *start = "lu_factor: row 300, column 3: the matrix is singular (pivot ";
        const char *end = "); look at that row's input, or lower the step size";
        assert_memory_equal(acf_error(), start, strlen(start));
        assert_non_null(strstr(acf_error(), ", largest element "));
        assert_string_equal(acf_error() + strlen(acf_error()) - strlen(end), end);
        /* The tape remains usable, and the same matrices without the defect succeed. */
        assert_int_equal(factor_spoiled(&l, 0, 0), ACF_OK);
        acf_lab_close(&l);
    }
}

/* On either side of the threshold: a nearly singular matrix is solved, one beyond it is refused. */
static void nearly_singular(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 3, 5, ACF_MASK_ALL, 10);
    assert_int_equal(factor_spoiled(&l, 1e3 * (double)ACF_REAL_EPS, 3), ACF_OK);
    assert_int_equal(factor_spoiled(&l, -1e3 * (double)ACF_REAL_EPS, 3), ACF_OK);
    assert_int_equal(factor_spoiled(&l, 0.4 * (double)ACF_REAL_EPS, 3), ACF_ENUMERIC);
    acf_lab_close(&l);
}

static void singular_of_solve_and_zero(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 1, ACF_MASK_ALL, 1);
    acf_tensor *m = acf_tensor_input(l.t, (acf_real[]){2, 0}, 1, (int64_t[]){2});
    acf_tensor *z = acf_leaf_packed(&l, "z", -1, 1, 0);
    assert_int_equal(acf_tensor_count(acf_lu_solve(l.t, acf_lu_factor(l.t, m, l.u), z)), 0);
    assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
    assert_string_equal(acf_error(),
                        "lu_factor: row 1, column 0: the matrix is singular (pivot 0, largest element 0); look at "
                        "that row's input, or lower the step size");
    acf_lab_close(&l);
}

static double with_nan(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return i == 1 && t == 0 && s == u->size[i] - 1 ? (double)NAN : first(u, i, t, s);
}

static void nan_is_noticed(void **state) {
    (void)state;
    for (int which = 0; which < 2; which++) {
        acf_lab l;
        acf_lab_open(&l, 2, 4, 5, ACF_MASK_ALL, 2);
        acf_lu *lu = acf_lu_factor(l.t, list_of(&l, with_nan), l.u);
        acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
        acf_status status =
            which ? acf_tape_check(l.t, acf_lu_apply(l.t, lu, x)) : (acf_lu_logdet(l.t, lu), acf_tape_status(l.t));
        assert_int_equal(status, ACF_ENUMERIC);
        assert_non_null(strstr(acf_error(), "row 1, column "));
        acf_lab_close(&l);
    }
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    assert_null(acf_lu_factor(l.t, x, l.u));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "lu_factor: m is (12 packed); expected (36), the list of the subset's matrices");
    /* Later operations do not run and do not crash. */
    assert_int_equal(acf_tensor_count(acf_lu_apply(l.t, NULL, x)), 0);
    assert_int_equal(acf_tensor_count(acf_lu_logdet(l.t, NULL)), 0);
    assert_int_equal(acf_tensor_count(acf_lu_solve(l.t, NULL, x)), 0);
    for (int which = 0; which < 2; which++) {
        acf_lab_begin(&l, false);
        acf_lu *lu = acf_lu_factor(l.t, list_of(&l, first), l.u);
        acf_tensor *flat = acf_tensor_as_packed(l.t, acf_leaf_packed(&l, "x", -1, 1, 0), NULL);
        if (which)
            acf_lu_apply(l.t, lu, flat);
        else
            acf_lu_solve(l.t, lu, flat);
        assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
        assert_string_equal(acf_error(),
                            which ? "lu_apply: x is (12); expected (12 packed) over the subset of the matrices"
                                  : "lu_solve: z is (12); expected (12 packed) over the subset of the matrices");
    }
    acf_lab_close(&l);
}

ACF_TESTS(lu, cmocka_unit_test(solve_undoes_apply), cmocka_unit_test(apply_undoes_solve),
          cmocka_unit_test(logdet_of_a_product), cmocka_unit_test(logdet_by_definition),
          cmocka_unit_test(logdet_of_permutation_and_diagonal), cmocka_unit_test(scale_does_not_matter),
          cmocka_unit_test(factorises_once_and_only_when_needed), cmocka_unit_test(singular_is_named),
          cmocka_unit_test(nearly_singular), cmocka_unit_test(singular_of_solve_and_zero),
          cmocka_unit_test(nan_is_noticed), cmocka_unit_test(refuses_wrong_shapes))
