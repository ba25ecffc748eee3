/* Tests of factor analysis for wide tables: cases for the harness against conditionals by plain elimination in the
 * full covariance, identities, refusals. */
#include "ops/factors.h"

#include "harness/gmm_lab.h"

#include <math.h>
#include <string.h>

#define R_MAX 6
#define D_MAX 48

/* A Gaussian of c->variant factors. If there are more than two, the second and the last are unused (weight <= 0). */
typedef struct gaussian {
    int64_t R, D;
    acf_real weight[R_MAX], mean[D_MAX], load[D_MAX * R_MAX], var[D_MAX];
} gaussian;

static gaussian make_gaussian(const acf_lab *l, int64_t R) {
    gaussian g = {.R = R & (ACF_GMM_CLASSES - 1),
                  .D = l->D + (l->c && l->c->variant & ACF_GMM_CLASSES ? ACF_GMM_INDICATORS : 0)};
    assert_true(g.D <= D_MAX && g.R <= R_MAX);
    for (int64_t k = 0; k < g.R; k++) g.weight[k] = ACF_R(0.5) + ACF_R(0.3) * (acf_real)k;
    if (g.R > 2) g.weight[1] = 0, g.weight[g.R - 1] = -1;
    for (int64_t j = 0; j < g.D; j++) {
        g.mean[j] = (acf_real)acf_lab_random(5, j, -1, 1), g.var[j] = (acf_real)acf_lab_random(7, j, 0.1, 0.6);
        for (int64_t k = 0; k < g.R; k++) g.load[j * g.R + k] = (acf_real)acf_lab_random(6, j * g.R + k, -1, 1);
    }
    return g;
}

static acf_factors on_tape(acf_lab *l, const gaussian *g, acf_tensor *x) {
    acf_factors m = {.x = x};
    m.weight = acf_tensor_input(l->t, g->weight, 1, &g->R);
    m.mean = acf_tensor_input(l->t, g->mean, 1, &g->D);
    m.load = acf_tensor_input(l->t, g->load, 2, (int64_t[]){g->D, g->R});
    m.var = acf_tensor_input(l->t, g->var, 1, &g->D);
    m.b = acf_lab_copy(l, l->b, (size_t)(l->N * l->D));
    if (l->c) m.classes = acf_gmm_lab_classes(l);
    return m;
}

static void build_normal(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D}), *logdet;
    acf_gmm_lab_only_given(l);
    const gaussian g = make_gaussian(l, l->c->variant);
    const acf_factors m = on_tape(l, &g, x);
    acf_result(l, acf_factors_normal(l->t, &m, l->u, &logdet));
    acf_result(l, logdet);
}

static void build_value(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D}), *z = acf_leaf_packed(l, "z", -2, 2, 0);
    acf_gmm_lab_only_given(l);
    const gaussian g = make_gaussian(l, l->c->variant);
    const acf_factors m = on_tape(l, &g, x);
    acf_result(l, acf_factors_value(l->t, &m, z, l->u));
}

static void build_expect(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D});
    acf_gmm_lab_only_given(l);
    const gaussian g = make_gaussian(l, l->c->variant);
    const acf_factors m = on_tape(l, &g, x);
    acf_result(l, acf_factors_expect(l->t, &m, l->u));
}

/* ---- an independent reference ---------------------------------------------------------------------------------- */

static double covariance(const gaussian *g, int64_t i, int64_t j) {
    double sum = i == j ? (double)g->var[i] : 0;
    for (int64_t k = 0; k < g->R; k++)
        if (g->weight[k] > 0)
            sum += (double)g->load[i * g->R + k] * (double)g->weight[k] * (double)g->load[j * g->R + k];
    return sum;
}

/* Mean of column j given the n columns in set (values x, by column), and its standard deviation: by eliminating the
 * set from the joint covariance. */
static double conditional(const gaussian *g, const double *x, const int *set, int n, int64_t j, double *sd) {
    double a[D_MAX + 1][D_MAX + 2];
    int64_t all[D_MAX + 1];
    for (int p = 0; p < n; p++) all[p] = set[p];
    all[n] = j;
    for (int p = 0; p <= n; p++) {
        for (int q = 0; q <= n; q++) a[p][q] = covariance(g, all[p], all[q]);
        a[p][n + 1] = (p < n ? x[all[p]] : 0) - (double)g->mean[all[p]];
    }
    for (int p = 0; p < n; p++)
        for (int r = p + 1; r <= n; r++) {
            const double by = a[r][p] / a[p][p];
            for (int c = p; c <= n + 1; c++) a[r][c] -= by * a[p][c];
        }
    *sd = sqrt(a[n][n]);
    return -a[n][n + 1];
}

static void naive_normal(const acf_lab *l, double *const *out) {
    const gaussian g = make_gaussian(l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], sd;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        out[1][i] = 0;
        for (int64_t t = 0; t < l->u->size[i]; t++) {
            const int j = l->u->cols[i * l->D + t];
            const double mean = conditional(&g, x, set, n, j, &sd);
            out[0][acf_subset_at(l->u, i, t)] = (x[j] - mean) / sd;
            out[1][i] -= log(sd);
            set[n++] = j;
        }
    }
}

static void naive_value(const acf_lab *l, double *const *out) {
    const gaussian g = make_gaussian(l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], sd;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        for (int64_t t = 0; t < l->u->size[i]; t++) {
            const int j = l->u->cols[i * l->D + t];
            const int64_t at = acf_subset_at(l->u, i, t);
            const double mean = conditional(&g, x, set, n, j, &sd);
            out[0][at] = x[j] = mean + sd * (double)l->leaf[1].value[at];
            set[n++] = j;
        }
    }
}

static void naive_expect(const acf_lab *l, double *const *out) {
    const gaussian g = make_gaussian(l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], sd;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        for (int64_t j = 0; j < g.D; j++) {
            bool given = false;
            for (int p = 0; p < n; p++) given |= set[p] == j;
            out[0][i * g.D + j] = l->u->size[i] == 0 ? 0 : given ? x[j] : conditional(&g, x, set, n, j, &sd);
        }
    }
}

/* A NaN in a cell that is neither given nor modelled is not read. */
static const acf_case cases[] = {
    {"normal, one factor", build_normal, naive_normal, .variant = 1, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"normal, some factors", build_normal, naive_normal, .variant = 6, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"normal, given categories", build_normal, naive_normal, .variant = 6 | ACF_GMM_CLASSES, .no_grad = true,
     .hides_nonfinite = true, .tol = 1e-4},
    {"value, one factor", build_value, naive_value, .variant = 1, .hides_nonfinite = true, .tol = 1e-4},
    {"value, some factors", build_value, naive_value, .variant = 6, .hides_nonfinite = true, .tol = 1e-4},
    {"value, given categories", build_value, naive_value, .variant = 6 | ACF_GMM_CLASSES, .hides_nonfinite = true,
     .tol = 1e-4},
    {"expected, some factors", build_expect, naive_expect, .variant = 6, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"expected, given categories", build_expect, naive_expect, .variant = 6 | ACF_GMM_CLASSES, .no_grad = true,
     .hides_nonfinite = true, .tol = 1e-4},
};
ACF_CASES(factors, cases)

/* Several sets at once give the same as each alone. */
static void sets_are_independent(void **state) {
    (void)state;
    enum { SETS = 3 };
    acf_lab l;
    acf_lab_open(&l, 2, 40, 5, ACF_MASK_RANDOM, 3);
    acf_lab_begin(&l, false);
    acf_gmm_lab_only_given(&l);
    const gaussian g = make_gaussian(&l, 6);
    const acf_factors m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0.3, 2, (int64_t[]){40, 5}));
    acf_tensor *z[SETS], *alone[SETS];
    acf_gmm_lab_sets(&l, SETS, z);
    for (int i = 0; i < SETS; i++) alone[i] = acf_factors_value(l.t, &m, z[i], l.u);
    acf_factors_values(l.t, &m, SETS, z, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int i = 0; i < SETS; i++) assert_memory_equal(z[i]->data, alone[i]->data, (size_t)l.u->T * sizeof(acf_real));
    acf_factors_values(l.t, &m, 1, (acf_tensor *[]){acf_tensor_const(l.t, NULL, 0, 1, (int64_t[]){2})}, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    acf_lab_close(&l);
}

static void a_bad_variance_is_named(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 3);
    acf_lab_begin(&l, false);
    gaussian g = make_gaussian(&l, 1);
    g.var[1] = -4;
    acf_tensor *logdet;
    const acf_factors m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){4, 3}));
    acf_factors_normal(l.t, &m, l.u, &logdet);
    assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
    assert_string_equal(
        acf_error(), "factors_normal: row 0: the variance of a column given those before it is not positive (place 1)");
    acf_lab_close(&l);
}

static void shapes_are_refused(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 3);
    acf_lab_begin(&l, false);
    const gaussian g = make_gaussian(&l, 2);
    const acf_factors m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){4, 2}));
    acf_tensor *logdet;
    acf_factors_normal(l.t, &m, l.u, &logdet);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(),
                        "factors_normal: weight is (2), mean is (3), load is (3, 2), var is (3), x is (4, 2); "
                        "expected (R), (3), (3,R), (3) and (4,3), R <= 64");
    acf_lab_close(&l);
}

ACF_TESTS(factors, cmocka_unit_test(sets_are_independent), cmocka_unit_test(a_bad_variance_is_named),
          cmocka_unit_test(shapes_are_refused))
