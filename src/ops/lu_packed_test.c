/* Tests of a matrix per row read as packed L and U: cases for the harness, and agreement with lu.h on the product. */
#include "ops/lu_packed.h"

#include "harness/rowmat_lab.h"
#include "ops/lu.h"

#include <string.h>

static const double tol = sizeof(acf_real) == 8 ? 1e-10 : 2e-4;

enum { APPLY, LOGDET, SOLVE, SHARED };

static void build(acf_lab *l) {
    acf_tensor *m = leaf_square(l), *v = l->c->variant == LOGDET ? NULL : acf_leaf_packed(l, "v", -1, 1, 0);
    switch (l->c->variant) {
    case APPLY: acf_result(l, acf_plu_apply(l->t, m, v, l->u)); break;
    case LOGDET: acf_result(l, acf_plu_logdet(l->t, m, l->u)); break;
    case SOLVE: acf_result(l, acf_plu_solve(l->t, m, v, l->u)); break;
    default: /* the same matrices for all three, one used twice: gradients add up in them and in v */
        acf_result(l, acf_plu_solve(l->t, m, v, l->u));
        acf_result(l, acf_plu_logdet(l->t, m, l->u));
        acf_result(l, acf_plu_apply(l->t, m, v, l->u));
        acf_result(l, acf_plu_solve(l->t, m, v, l->u));
    }
}

/* The product L U is formed, then eliminated plainly. */
static void naive(const acf_lab *l, double *const *out) {
    const acf_subset *u = l->u;
    const int kind = l->c->variant;
    double *a = calloc((size_t)(l->D * l->D) + 1, sizeof *a);
    assert_non_null(a);
    for (int64_t i = 0; i < l->N; i++) {
        const int64_t n = u->size[i];
        const acf_real *m = l->leaf[0].value + u->square[i];
        for (int64_t t = 0; t < n; t++)
            for (int64_t s = 0; s < n; s++) {
                a[t * n + s] = 0;
                for (int64_t k = 0; k <= t && k <= s; k++)
                    a[t * n + s] += (k == t ? 1 : (double)m[t * n + k]) * (double)m[k * n + s];
            }
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
    {"logdet", build, naive, .variant = LOGDET, .big_N = 600, .big_D = 40},
    {"solve", build, naive, .variant = SOLVE, .big_N = 300, .big_D = 40},
    {"all of the same matrices", build, naive, .variant = SHARED, .big_N = 300, .big_D = 40},
};
ACF_CASES(lu_packed, cases)

static void solve_inverts_apply(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 5, 16, 33, 70};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        acf_lab l;
        acf_lab_open(&l, 2, 7, sizes[k], k % 2 ? ACF_MASK_RANDOM : ACF_MASK_ALL, 20 + k);
        acf_tensor *m = leaf_square(&l), *v = acf_leaf_packed(&l, "v", -1, 1, 0);
        assert_same(acf_plu_solve(l.t, m, acf_plu_apply(l.t, m, v, l.u), l.u), v, tol, "apply, solve");
        assert_same(acf_plu_apply(l.t, m, acf_plu_solve(l.t, m, v, l.u), l.u), v, tol, "solve, apply");
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        acf_lab_close(&l);
    }
}

static double packed(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return (t == s) * (t % 2 ? -1.3 : 0.8) + acf_lab_random(1, (i * u->D + t) * u->D + s, -0.2, 0.2);
}
static double multiplied(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    double sum = 0;
    for (int64_t k = 0; k <= t && k <= s; k++)
        sum += (k == t ? 1 : (double)(acf_real)packed(u, i, t, k)) * (double)(acf_real)packed(u, i, k, s);
    return sum;
}

static void agrees_with_lu_on_the_product(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 20, 14, ACF_MASK_RANDOM, 4);
    acf_tensor *m = list_of(&l, packed), *v = acf_leaf_packed(&l, "v", -1, 1, 0);
    acf_lu *lu = acf_lu_factor(l.t, list_of(&l, multiplied), l.u);
    assert_same(acf_plu_apply(l.t, m, v, l.u), acf_lu_apply(l.t, lu, v), tol, "apply");
    assert_same(acf_plu_logdet(l.t, m, l.u), acf_lu_logdet(l.t, lu), tol, "logdet");
    assert_same(acf_plu_solve(l.t, m, v, l.u), acf_lu_solve(l.t, lu, v), tol, "solve");
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    acf_lab_close(&l);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

static double spoil_value;

static double spoiled(const acf_subset *u, int64_t i, int64_t t, int64_t s) {
    return i >= u->N / 2 && t == 2 && s == 2 ? spoil_value : packed(u, i, t, s);
}

static void singular_is_named(void **state) {
    (void)state;
    const double bad[] = {0, 1e-3 * (double)ACF_REAL_EPS, (double)NAN, (double)INFINITY};
    for (int k = 0; k < 8; k++) {
        acf_lab l;
        acf_lab_open(&l, 1 + k % 3, 200, 6, ACF_MASK_ALL, 9);
        for (int64_t i = 0; i < 200; i++) l.b[i * 6 + 1] = 1; /* column 1 is observed: position 2 is column 3 */
        acf_lab_begin(&l, false);
        spoil_value = bad[k / 2];
        acf_tensor *m = list_of(&l, spoiled), *v = acf_leaf_packed(&l, "v", -1, 1, 0);
        if (k % 2)
            acf_plu_logdet(l.t, m, l.u);
        else
            acf_plu_solve(l.t, m, v, l.u);
        assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
        const char *start = k % 2 ? "plu_logdet: row 100, column " : "plu_solve: row 100, column ";
        assert_memory_equal(acf_error(), start, strlen(start));
        /* An infinite element makes all others relatively small; the remaining cases report the element itself. */
        if (k / 2 < 3) assert_int_equal(acf_error()[strlen(start)], '3');
        acf_lab_begin(&l, false);
        acf_plu_logdet(l.t, list_of(&l, packed), l.u);
        assert_int_equal(acf_tape_status(l.t), ACF_OK);
        acf_lab_close(&l);
    }
}

static void refuses_wrong_shapes(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 0);
    acf_plu_logdet(l.t, x, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "plu_logdet: m is (12 packed); expected (36), the list of the subset's matrices");
    for (int which = 0; which < 2; which++) {
        acf_lab_begin(&l, false);
        acf_tensor *m = list_of(&l, packed);
        acf_tensor *flat = acf_tensor_as_packed(l.t, acf_leaf_packed(&l, "x", -1, 1, 0), NULL);
        if (which)
            acf_plu_apply(l.t, m, flat, l.u);
        else
            acf_plu_solve(l.t, m, flat, l.u);
        assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
        assert_string_equal(acf_error(),
                            which ? "plu_apply: x is (12); expected (12 packed) over the subset of the matrices"
                                  : "plu_solve: z is (12); expected (12 packed) over the subset of the matrices");
    }
    acf_lab_close(&l);
}

ACF_TESTS(lu_packed, cmocka_unit_test(solve_inverts_apply), cmocka_unit_test(agrees_with_lu_on_the_product),
          cmocka_unit_test(singular_is_named), cmocka_unit_test(refuses_wrong_shapes))
