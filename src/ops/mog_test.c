/* The Gaussian mixture: cases for the harness against conditionals by plain elimination, identities, refusals. */
#include "ops/mog.h"

#include "harness/gmm_lab.h"

#include <math.h>
#include <string.h>

#define K_MAX 3
#define D_MAX 48

/* A mixture of c->variant components (at least 1). With more than one, the last has weight 0 and a covariance that is
 * not positive definite. */
typedef struct mixture {
    int64_t K, D;
    acf_real weight[K_MAX], *mean, *cov;
} mixture;

static mixture make_mixture(acf_lab *l, int64_t K) {
    const int64_t D = l->D + (l->c && l->c->variant & ACF_GMM_CLASSES ? ACF_GMM_INDICATORS : 0);
    mixture g = {.K = K &= ACF_GMM_CLASSES - 1, .D = D};
    static acf_real mean[K_MAX * D_MAX], cov[K_MAX * D_MAX * D_MAX];
    assert_true(D <= D_MAX && K <= K_MAX);
    g.mean = mean, g.cov = cov;
    for (int64_t k = 0; k < K; k++) {
        double a[D_MAX][D_MAX];
        g.weight[k] = ACF_R(0.3) + ACF_R(0.4) * (acf_real)k;
        for (int64_t i = 0; i < D; i++) {
            mean[k * D + i] = (acf_real)acf_lab_random(5, k * D + i, -1, 1);
            for (int64_t j = 0; j < D; j++) a[i][j] = acf_lab_random(6, (k * D + i) * D + j, -1, 1) / sqrt((double)D);
        }
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < D; j++) {
                double sum = i == j ? 0.3 : 0;
                for (int64_t r = 0; r < D; r++) sum += a[i][r] * a[j][r];
                cov[(k * D + i) * D + j] = (acf_real)sum;
            }
    }
    if (K > 1) {
        g.weight[K - 1] = 0;
        for (int64_t i = 0; i < D * D; i++) cov[(K - 1) * D * D + i] = -1;
    }
    return g;
}

static acf_mog on_tape(acf_lab *l, const mixture *g, acf_tensor *x) {
    acf_mog m = {.x = x};
    m.weight = acf_tensor_input(l->t, g->weight, 1, &g->K);
    m.mean = acf_tensor_input(l->t, g->mean, 2, (int64_t[]){g->K, g->D});
    m.cov = acf_tensor_input(l->t, g->cov, 3, (int64_t[]){g->K, g->D, g->D});
    m.b = acf_lab_copy(l, l->b, (size_t)(l->N * l->D));
    if (l->c) m.classes = acf_gmm_lab_classes(l);
    return m;
}

static void build_normal(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D}), *logdet;
    acf_gmm_lab_only_given(l);
    const mixture g = make_mixture(l, l->c->variant);
    const acf_mog m = on_tape(l, &g, x);
    acf_result(l, acf_mog_normal(l->t, &m, l->u, &logdet));
    acf_result(l, logdet);
}

static void build_value(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D}), *z = acf_leaf_packed(l, "z", -2, 2, 0);
    acf_gmm_lab_only_given(l);
    const mixture g = make_mixture(l, l->c->variant);
    const acf_mog m = on_tape(l, &g, x);
    acf_result(l, acf_mog_value(l->t, &m, z, l->u));
}

static void build_expect(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -2, 2, 2, (int64_t[]){l->N, l->D});
    acf_gmm_lab_only_given(l);
    const mixture g = make_mixture(l, l->c->variant);
    const acf_mog m = on_tape(l, &g, x);
    acf_result(l, acf_mog_expect(l->t, &m, l->u));
}

/* ---- an independent reference ------------------------------------------------------------------------------------ */

/* Density, and distribution function at v, of column j given the columns in set (values x, by column) under the
 * mixture, by eliminating the set from each component's joint covariance. Returns the mean. */
static double conditional(const mixture *g, const double *x, const int *set, int n, int64_t j, double v, double *pdf,
                          double *cdf) {
    double total = 0, all = 0, weight[K_MAX], mean[K_MAX], sd[K_MAX];
    const int64_t D = g->D;
    for (int64_t k = 0; k < g->K; k++) {
        double a[D_MAX + 1][D_MAX + 2], lp = 0;
        weight[k] = (double)g->weight[k];
        if (weight[k] == 0) continue;
        for (int p = 0; p <= n; p++) {
            const int64_t c = p < n ? set[p] : j;
            for (int q = 0; q <= n; q++) a[p][q] = (double)g->cov[(k * D + c) * D + (q < n ? set[q] : j)];
            a[p][n + 1] = (p < n ? x[c] : 0) - (double)g->mean[k * D + c];
        }
        for (int p = 0; p < n; p++) {
            lp -= 0.5 * (log(a[p][p]) + a[p][n + 1] * a[p][n + 1] / a[p][p]);
            for (int r = p + 1; r <= n; r++)
                for (int c = n + 1; c >= p; c--) a[r][c] -= a[r][p] / a[p][p] * a[p][c];
        }
        mean[k] = -a[n][n + 1], sd[k] = sqrt(a[n][n]);
        total += weight[k] *= exp(lp);
    }
    *pdf = *cdf = 0;
    for (int64_t k = 0; k < g->K; k++) {
        if (weight[k] == 0) continue;
        const double e = (v - mean[k]) / sd[k];
        *pdf += weight[k] / total * exp(-0.5 * e * e) / (sd[k] * sqrt(2 * acos(-1)));
        *cdf += weight[k] / total * 0.5 * erfc(-e / sqrt(2));
        all += weight[k] / total * mean[k];
    }
    return all;
}

static double bisect_normal(double p) {
    double a = -12, b = 12;
    for (int i = 0; i < 200; i++) *(0.5 * erfc(-(a + b) / 2 / sqrt(2)) < p ? &a : &b) = (a + b) / 2;
    return (a + b) / 2;
}

static void naive_normal(const acf_lab *l, double *const *out) {
    const mixture g = make_mixture((acf_lab *)l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], pdf, cdf;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        out[1][i] = 0;
        for (int64_t t = 0; t < l->u->size[i]; t++) {
            const int j = l->u->cols[i * l->D + t];
            conditional(&g, x, set, n, j, x[j], &pdf, &cdf);
            const double z = bisect_normal(cdf);
            out[0][acf_subset_at(l->u, i, t)] = z;
            out[1][i] += log(pdf) + 0.5 * z * z + 0.5 * log(2 * acos(-1));
            set[n++] = j;
        }
    }
}

static void naive_value(const acf_lab *l, double *const *out) {
    const mixture g = make_mixture((acf_lab *)l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], pdf, cdf;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        for (int64_t t = 0; t < l->u->size[i]; t++) {
            const int j = l->u->cols[i * l->D + t];
            const double p = 0.5 * erfc(-(double)l->leaf[1].value[acf_subset_at(l->u, i, t)] / sqrt(2));
            double a = -40, b = 40;
            for (int r = 0; r < 200; r++) {
                conditional(&g, x, set, n, j, (a + b) / 2, &pdf, &cdf);
                *(cdf < p ? &a : &b) = (a + b) / 2;
            }
            out[0][acf_subset_at(l->u, i, t)] = x[j] = (a + b) / 2;
            set[n++] = j;
        }
    }
}

static void naive_expect(const acf_lab *l, double *const *out) {
    const mixture g = make_mixture((acf_lab *)l, l->c->variant);
    for (int64_t i = 0; i < l->N; i++) {
        double x[D_MAX], pdf, cdf;
        int set[D_MAX], n = acf_gmm_lab_row(l, i, x, set);
        for (int64_t j = 0; j < g.D; j++) {
            bool given = false;
            for (int p = 0; p < n; p++) given |= set[p] == j;
            out[0][i * g.D + j] = l->u->size[i] == 0 ? 0 : given ? x[j] : conditional(&g, x, set, n, j, 0, &pdf, &cdf);
        }
    }
}

/* A NaN in a cell that is neither given nor modelled is not read. */
static const acf_case cases[] = {
    {"normal, one Gaussian", build_normal, naive_normal, .variant = 1, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"normal, a mixture", build_normal, naive_normal, .variant = 3, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"value, one Gaussian", build_value, naive_value, .variant = 1, .hides_nonfinite = true, .tol = 1e-4},
    {"value, a mixture", build_value, naive_value, .variant = 3, .hides_nonfinite = true, .tol = 1e-4},
    {"normal, given categories", build_normal, naive_normal, .variant = 3 | ACF_GMM_CLASSES, .no_grad = true,
     .hides_nonfinite = true, .tol = 1e-4},
    {"expected, one Gaussian", build_expect, naive_expect, .variant = 1, .no_grad = true, .hides_nonfinite = true,
     .tol = 1e-4},
    {"expected, given categories", build_expect, naive_expect, .variant = 3 | ACF_GMM_CLASSES, .no_grad = true,
     .hides_nonfinite = true, .tol = 1e-4},
    {"value, given categories", build_value, naive_value, .variant = 3 | ACF_GMM_CLASSES, .hides_nonfinite = true,
     .tol = 1e-4},
};
ACF_CASES(mog, cases)

/* Several sets together give the same as each set alone. */
static void several_sets_equal_each_alone(void **state) {
    (void)state;
    enum { SETS = 3 };
    acf_lab l;
    acf_lab_open(&l, 2, 40, 5, ACF_MASK_RANDOM, 3);
    acf_lab_begin(&l, false);
    acf_gmm_lab_only_given(&l);
    const mixture g = make_mixture(&l, 3);
    const acf_mog m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0.3, 2, (int64_t[]){40, 5}));
    acf_tensor *z[SETS], *alone[SETS];
    acf_gmm_lab_sets(&l, SETS, z);
    for (int i = 0; i < SETS; i++) alone[i] = acf_mog_value(l.t, &m, z[i], l.u);
    acf_mog_values(l.t, &m, SETS, z, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    for (int i = 0; i < SETS; i++) assert_memory_equal(z[i]->data, alone[i]->data, (size_t)l.u->T * sizeof(acf_real));
    acf_mog_values(l.t, &m, 1, (acf_tensor *[]){acf_tensor_const(l.t, NULL, 0, 1, (int64_t[]){2})}, l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    acf_lab_close(&l);
}

/* One modelled column with components as far apart as in real tables: values far out on either side map back to their
 * z, also beyond the range of a tail in doubles. */
static void values_far_out_map_back(void **state) {
    (void)state;
    static const double zs[] = {-60, -38.4, -36, -20, -8, -3, -1, -0.2, 0, 1e-9, 0.4, 2, 5, 12, 30, 36.5, 40};
    enum { SETS = sizeof zs / sizeof zs[0] };
    const int64_t K = 3, D = 1, N = 4;
    acf_lab l;
    acf_lab_open(&l, 1, N, D, ACF_MASK_ALL, 3);
    for (int kind = 0; kind < 4; kind++) {
        acf_lab_begin(&l, false);
        const bool faint = kind == 3;
        const acf_real third = kind == 2 ? ACF_R(0.2) : 0;
        const acf_real weight[] = {faint ? ACF_R(1e-12) : ACF_R(0.6), faint ? 1 : ACF_R(0.4), third};
        const acf_real mean[] = {0, kind ? 5 : ACF_R(0.5), -3}, cov[] = {1, kind ? ACF_R(1e-4) : 4, ACF_R(0.25)};
        acf_tensor *x = acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){N, D}), *z[SETS];
        acf_mog m = {.x = x, .b = acf_lab_copy(&l, l.b, (size_t)(N * D))};
        m.weight = acf_tensor_input(l.t, weight, 1, &K), m.mean = acf_tensor_input(l.t, mean, 2, (int64_t[]){K, D});
        m.cov = acf_tensor_input(l.t, cov, 3, (int64_t[]){K, D, D});
        for (int i = 0; i < SETS; i++) z[i] = acf_tensor_const(l.t, l.u, zs[i], 1, &l.u->T);
        acf_mog_values(l.t, &m, SETS, z, l.u);
        for (int i = 0; i < SETS; i++) {
            acf_tensor *logdet;
            acf_mog back = m;
            back.x = acf_tensor_wrap(l.t, z[i]->data, 2, (int64_t[]){N, D});
            const double again = (double)acf_mog_normal(l.t, &back, l.u, &logdet)->data[0];
            assert_int_equal(acf_tape_status(l.t), ACF_OK);
            const double eps = (double)ACF_REAL_EPS, of_x = fabs((double)z[i]->data[0]) * exp((double)logdet->data[0]);
            acf_assert_close(again, zs[i], 1e-9 + (20 * fabs(zs[i]) + 4 * of_x) * eps, "z of the value of z");
        }
    }
    acf_lab_close(&l);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void tails_are_exact_far_out(void **state) {
    (void)state;
    for (double e = 5; e > -36; e -= 0.37)
        acf_assert_close(acf_log_normal_cdf(e), log(0.5 * erfc(-e / sqrt(2))), 1e-12, "log cdf");
    /* -log Φ(-e) = e²/2 + log(e √2π) - log(1 - 1/e² + ...), to the precision of the test */
    acf_assert_close(acf_log_normal_cdf(-1e8) / -5e15, 1, 1e-12, "log cdf at -1e8");
    acf_assert_close(acf_log_normal_cdf(-30.0001), acf_log_normal_cdf(-29.9999) - 30.033259667433676 * 0.0002, 1e-9,
                     "where the series begins");
    for (double e = 0; e > -1e6; e = e * 1.5 - 0.01)
        acf_assert_close(acf_normal_from_log_tail(acf_log_normal_cdf(e)), e, 1e-9, "the way back");
}

static void a_bad_covariance_is_named(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 3);
    acf_lab_begin(&l, false);
    mixture g = make_mixture(&l, 1);
    g.cov[4] = 0;
    acf_tensor *logdet;
    const acf_mog m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){4, 3}));
    acf_mog_normal(l.t, &m, l.u, &logdet);
    assert_int_equal(acf_tape_status(l.t), ACF_ENUMERIC);
    assert_string_equal(
        acf_error(),
        "mog_normal: row 0: a covariance of the mixture is not positive definite on its columns (place 1)");
    acf_lab_close(&l);
}

static void shapes_are_refused(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 3);
    acf_lab_begin(&l, false);
    const mixture g = make_mixture(&l, 2);
    const acf_mog m = on_tape(&l, &g, acf_tensor_const(l.t, NULL, 0, 2, (int64_t[]){4, 2}));
    acf_tensor *logdet;
    acf_mog_normal(l.t, &m, l.u, &logdet);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(
        acf_error(),
        "mog_normal: weight is (2), mean is (2, 3), cov is (2, 3, 3), x is (4, 2); expected (K), (K,3), (K,3,3) and "
        "(4,3)");
    acf_lab_close(&l);
}

ACF_TESTS(mog, cmocka_unit_test(several_sets_equal_each_alone), cmocka_unit_test(values_far_out_map_back),
          cmocka_unit_test(tails_are_exact_far_out), cmocka_unit_test(a_bad_covariance_is_named),
          cmocka_unit_test(shapes_are_refused))
