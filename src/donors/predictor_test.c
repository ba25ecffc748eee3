/* Tests of predictor.h: predictions and EM against the formulas in covariance form, solved by elimination. */
#include "donors/predictor.h"

#include "base/arena.h"
#include "base/rng.h"
#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 6, P = 8, MOST = 12, ROWS = 300 };
static const int64_t width[D] = {1, 0, 3, 1, 2, 1};
/* Learned numbers are rounded to reals. */
#define TIGHT (sizeof(acf_real) == 4 ? 1e-5 : 1e-8)

static double normal(int64_t row, uint32_t column) {
    return acf_rng_normal(
        (acf_rng_counter){.seed = 7, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 8, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- plain algebra --------------------------------------------------------------------------------------------- */

/* a (n,n) x = b (n,m): b becomes x. */
static void solve(double a[MOST][MOST], double b[MOST][MOST], int n, int m) {
    for (int p = 0; p < n; p++) {
        int best = p;
        for (int i = p; i < n; i++) best = fabs(a[i][p]) > fabs(a[best][p]) ? i : best;
        for (int k = 0; k < MOST; k++) {
            const double x = a[p][k], y = b[p][k];
            a[p][k] = a[best][k], a[best][k] = x, b[p][k] = b[best][k], b[best][k] = y;
        }
        for (int i = 0; i < n; i++) {
            const double by = i == p ? 0 : a[i][p] / a[p][p];
            for (int k = 0; k < n; k++) a[i][k] -= by * a[p][k];
            for (int k = 0; k < m; k++) b[i][k] -= by * b[p][k];
        }
    }
    for (int p = 0; p < n; p++)
        for (int k = 0; k < m; k++) b[p][k] /= a[p][p];
}

static void inverse(double (*of)[MOST], int n, double (*out)[MOST]) {
    double a[MOST][MOST] = {{0}};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) a[i][k] = of[i][k], out[i][k] = i == k;
    solve(a, out, n, n);
}

/* A Gaussian with its covariance. */
typedef struct gaussian {
    double mean[MOST], cov[MOST][MOST];
} gaussian;

static gaussian some_gaussian(void) {
    gaussian g = {0};
    for (int i = 0; i < P; i++) {
        g.mean[i] = normal(i, 50);
        for (int k = 0; k < P; k++) {
            g.cov[i][k] = i == k ? 0.5 : 0;
            for (int l = 0; l < P; l++) g.cov[i][k] += normal(i, (uint32_t)l) * normal(k, (uint32_t)l) / P;
        }
    }
    return g;
}

/* Coordinates that are not given become their prediction: mean_u + S_uo S_oo⁻¹ (x_o - mean_o). left (P,P): S_uu - S_uo
 * S_oo⁻¹ S_ou, 0 elsewhere. */
static void regress(const gaussian *g, int n, const bool *given, double *x, double left[MOST][MOST]) {
    double a[MOST][MOST] = {{0}}, b[MOST][MOST] = {{0}};
    int o[MOST], known = 0;
    for (int p = 0; p < n; p++)
        if (given[p]) o[known++] = p;
    for (int i = 0; i < known; i++) {
        for (int k = 0; k < known; k++) a[i][k] = g->cov[o[i]][o[k]];
        for (int p = 0; p < n; p++) b[i][p] = g->cov[o[i]][p];
    }
    solve(a, b, known, n);
    for (int p = 0; p < n; p++) {
        if (!given[p]) x[p] = g->mean[p];
        for (int i = 0; i < known && !given[p]; i++) x[p] += b[i][p] * (x[o[i]] - g->mean[o[i]]);
        for (int q = 0; q < n; q++) {
            left[p][q] = given[p] || given[q] ? 0 : g->cov[p][q];
            for (int i = 0; i < known && !given[p] && !given[q]; i++) left[p][q] -= b[i][p] * g->cov[o[i]][q];
        }
    }
}

static acf_predictor *capacity(void) {
    acf_predictor *e;
    assert_int_equal(acf_predictor_create(D, width, &e), ACF_OK);
    assert_true(e->D == D && e->P == P && e->first[0] == 0 && e->first[D] == P && e->precision == e->mean + P);
    for (int j = 0; j < D; j++) assert_int_equal(e->first[j + 1] - e->first[j], width[j]);
    for (int i = 0; i < P * (P + 1); i++) assert_true(e->mean[i] == 0);
    return e;
}

/* Which column has a coordinate. */
static int column_of(const acf_predictor *e, int p) {
    int j = 0;
    while (e->first[j + 1] <= p) j++;
    return j;
}

/* ---- queries --------------------------------------------------------------------------------------------------- */

/* Every pattern of known columns, also none and all of them. Unknown cells hold NaN, and are not read. */
static void a_cell_is_its_regression(void **state) {
    (void)state;
    const gaussian g = some_gaussian();
    gaussian copy = g;
    double lambda[MOST][MOST], left[MOST][MOST];
    acf_predictor *e = capacity();
    acf_predictor_scratch scratch;
    assert_int_equal(acf_predictor_scratch_open(e, &scratch), ACF_OK);
    inverse(copy.cov, P, lambda);
    for (int i = 0; i < P; i++) {
        e->mean[i] = g.mean[i];
        for (int k = 0; k < P; k++) e->precision[i * P + k] = lambda[i][k];
    }
    for (int mask = 0; mask < 1 << D; mask++)
        for (int j = 0; j < D; j++) {
            double x[MOST], full[MOST], variance;
            bool given[MOST];
            uint8_t known[D];
            if (!width[j]) continue;
            for (int c = 0; c < D; c++) known[c] = mask >> c & 1;
            for (int p = 0; p < P; p++) {
                const int c = column_of(e, p);
                given[p] = known[c] && c != j;
                x[p] = full[p] = given[p] ? 2 * normal(mask, (uint32_t)(100 + p)) : (double)NAN;
            }
            regress(&g, P, given, full, left);
            const double found = acf_predictor_cell(e, &scratch, x, known, j);
            near(found, full[e->first[j]], 1e-11);
            near(acf_predictor_cell_both(e, &scratch, x, known, j, &variance), found, 0),
                near(variance, left[e->first[j]][e->first[j]], 1e-11);
            known[j] = !known[j];
            assert_true(acf_predictor_cell(e, &scratch, x, known, j) == found);
        }
    double variances[MOST];
    acf_predictor_variances(e, &scratch, variances);
    for (int i = 0; i < P; i++) near(variances[i], g.cov[i][i], 1e-11);
    acf_predictor_scratch_close(&scratch);
    assert_true(!scratch.d && !scratch.u && !scratch.y && !scratch.a);
    acf_predictor_free(e), acf_predictor_free(NULL);
}

/* ---- EM -------------------------------------------------------------------------------------------------------- */

static double cells[ROWS * MOST];
static uint8_t have[ROWS * D];

/* Rows of a Gaussian; a share of the cells is unknown, and holds NaN. */
static void make_rows(double missing) {
    for (int i = 0; i < ROWS; i++)
        for (int c = 0, p = 0; c < D; c++) {
            have[i * D + c] = uniform(i, (uint32_t)c) >= missing;
            for (int w = 0; w < width[c]; w++, p++) {
                const double x =
                    0.7 * normal(i, (uint32_t)p) + 0.6 * normal(i, (uint32_t)(p / 3 + 30)) + 0.3 * normal(i, 40) + p;
                cells[i * P + p] = have[i * D + c] ? x : (double)NAN;
            }
        }
}

/* EM in covariance form, which completes all coordinates of a row. */
static gaussian slow_em(const acf_predictor *e, int N) {
    gaussian g = {0};
    double variance[MOST];
    for (int p = 0; p < P; p++) {
        double n = 0, sum = 0, square = 0;
        for (int i = 0; i < N; i++) {
            const double x = cells[i * P + p];
            if (have[i * D + column_of(e, p)]) n++, sum += x, square += x * x;
        }
        g.mean[p] = n > 0 ? sum / n : 0;
        g.cov[p][p] = variance[p] = fmax(n > 0 ? square / n - g.mean[p] * g.mean[p] : 1, 1e-3);
    }
    for (int again = 0; again < 30; again++) {
        double(*full)[MOST] = malloc((size_t)(N + 1) * sizeof *full), rest[MOST][MOST] = {{0}};
        gaussian next = {0};
        for (int i = 0; i < N; i++) {
            bool given[MOST];
            double left[MOST][MOST];
            for (int p = 0; p < P; p++) given[p] = have[i * D + column_of(e, p)], full[i][p] = cells[i * P + p];
            regress(&g, P, given, full[i], left);
            for (int p = 0; p < P; p++) {
                next.mean[p] += full[i][p] / N;
                for (int q = 0; q < P; q++) rest[p][q] += left[p][q];
            }
        }
        for (int p = 0; p < P; p++)
            for (int q = 0; q < P; q++) {
                double sum = rest[p][q] + (p == q ? 3 * variance[p] : 0);
                for (int i = 0; i < N; i++) sum += (full[i][p] - next.mean[p]) * (full[i][q] - next.mean[q]);
                next.cov[p][q] = sum / (N + 3);
            }
        g = next;
        free(full);
    }
    return g;
}

/* Symmetric, positive definite and made of reals. */
static void check_sane(const acf_predictor *e) {
    bool sound = false;
    for (int64_t i = 0; i < e->P * (e->P + 1); i++) assert_true((double)(acf_real)e->mean[i] == e->mean[i]);
    for (int64_t i = 0; i < e->P * e->P; i++) assert_true(e->precision[i] == e->precision[i % e->P * e->P + i / e->P]);
    assert_int_equal(acf_predictor_sound(e, &sound), ACF_OK);
    assert_true(sound);
}

static acf_predictor *learned(int N) {
    acf_predictor *e = capacity();
    assert_int_equal(acf_predictor_learn(e, cells, have, N), ACF_OK);
    check_sane(e);
    return e;
}

static void compare(const acf_predictor *e, gaussian *g) {
    double lambda[MOST][MOST];
    inverse(g->cov, P, lambda);
    for (int i = 0; i < P; i++) {
        near(e->mean[i], g->mean[i], TIGHT * (1 + fabs(g->mean[i])));
        for (int k = 0; k < P; k++)
            near(e->precision[i * P + k], lambda[i][k], TIGHT * sqrt(lambda[i][i] * lambda[k][k]));
    }
}

/* Complete rows: moments, with three prior rows of independent coordinates. */
static void complete_rows_give_their_moments(void **state) {
    (void)state;
    static const int size[] = {2, 20, ROWS};
    make_rows(0);
    for (int n = 0; n < 3; n++) {
        const int N = size[n];
        gaussian g = {0};
        acf_predictor *e = learned(N);
        for (int p = 0; p < P; p++)
            for (int i = 0; i < N; i++) g.mean[p] += cells[i * P + p] / N;
        for (int p = 0; p < P; p++)
            for (int q = 0; q < P; q++) {
                double sum = 0;
                for (int i = 0; i < N; i++) sum += (cells[i * P + p] - g.mean[p]) * (cells[i * P + q] - g.mean[q]);
                g.cov[p][q] = (sum + (p == q ? 3 * fmax(sum / N, 1e-3) : 0)) / (N + 3);
            }
        compare(e, &g);
        acf_predictor_free(e);
    }
}

static void missing_cells_are_filled_with_predictions(void **state) {
    (void)state;
    static const double missing[] = {0.1, 0.4, 0.8};
    for (int n = 0; n < 3; n++) {
        make_rows(missing[n]);
        acf_predictor *e = learned(ROWS);
        gaussian g = slow_em(e, ROWS);
        compare(e, &g);
        if (n == 0) { /* and is close to the distribution that made the rows */
            near(g.cov[2][3], 0.09, 0.1), near(g.cov[3][4], 0.45, 0.12), near(g.cov[0][0], 0.94, 0.2),
                near(g.mean[5], 5, 0.2);
        }
        acf_predictor_free(e);
    }
}

/* What was learned before is forgotten. */
static void learning_begins_anew(void **state) {
    (void)state;
    make_rows(0.8);
    acf_predictor *once = learned(ROWS), *twice = learned(ROWS / 2);
    assert_int_equal(acf_predictor_learn(twice, cells, have, ROWS), ACF_OK);
    assert_memory_equal(once->mean, twice->mean, P * (P + 1) * sizeof *once->mean);
    acf_predictor_free(once), acf_predictor_free(twice);
}

/* Column 3 is never known; 0 is constant. */
static void strange_columns_are_learned(void **state) {
    (void)state;
    make_rows(0.2);
    for (int i = 0; i < ROWS; i++) have[i * D + 3] = 0, cells[i * P + 0] = have[i * D] ? 2.5 : (double)NAN;
    acf_predictor *e = learned(ROWS);
    gaussian g = slow_em(e, ROWS);
    compare(e, &g);
    assert_true(e->mean[4] == 0 && e->mean[0] == 2.5);
    for (int p = 0; p < P; p++) near(e->precision[4 * P + p], p == 4, 1e-6);
    double known = 0;
    for (int i = 0; i < ROWS; i++) known += have[i * D];
    assert_true(e->precision[0] > known / 3e-3 / 1.5 && e->precision[0] < (ROWS + 3) / 3e-3);
    acf_predictor_free(e);
}

static void no_rows_and_one_are_learned_from(void **state) {
    (void)state;
    make_rows(0);
    acf_predictor *e = learned(0);
    for (int i = 0; i < P * P; i++) assert_true(e->precision[i] == (i % P == i / P) && e->mean[i % P] == 0);
    acf_predictor_free(e);
    have[2] = 0;
    e = learned(1);
    for (int p = 0; p < P; p++) {
        const bool there = column_of(e, p) != 2;
        near(e->mean[p], there ? cells[p] : 0, TIGHT);
        for (int q = 0; q < P; q++) near(e->precision[p * P + q], p != q ? 0 : there ? 4 / 3e-3 : 1, TIGHT * 2000);
    }
    acf_predictor_free(e);
}

static void no_coordinates_are_learned(void **state) {
    (void)state;
    acf_predictor *e;
    bool sound = false;
    acf_predictor_scratch scratch;
    assert_int_equal(acf_predictor_create(2, (int64_t[]){0, 0}, &e), ACF_OK);
    assert_int_equal(e->P, 0);
    assert_int_equal(acf_predictor_learn(e, cells, have, 3), ACF_OK);
    assert_int_equal(acf_predictor_scratch_open(e, &scratch), ACF_OK);
    assert_int_equal(acf_predictor_sound(e, &sound), ACF_OK);
    assert_true(sound);
    acf_predictor_scratch_close(&scratch), acf_predictor_free(e);
}

/* All columns are equal: rounded to reals it is still a Gaussian. */
static void columns_may_be_equal(void **state) {
    (void)state;
    enum { N = 2000, WIDE = 90 };
    static double x[N * WIDE];
    static uint8_t known[N * WIDE];
    int64_t one[WIDE];
    acf_predictor *e;
    acf_predictor_scratch scratch;
    for (int j = 0; j < WIDE; j++) one[j] = 1;
    for (int i = 0; i < N * WIDE; i++) x[i] = normal(i / WIDE, 0), known[i] = 1;
    assert_int_equal(acf_predictor_create(WIDE, one, &e), ACF_OK);
    assert_int_equal(acf_predictor_learn(e, x, known, N), ACF_OK);
    check_sane(e);
    assert_int_equal(acf_predictor_scratch_open(e, &scratch), ACF_OK);
    near(acf_predictor_cell(e, &scratch, x, known, 5), x[0], 1e-2);
    acf_predictor_scratch_close(&scratch), acf_predictor_free(e);
}

/* ---- unsound matrices ------------------------------------------------------------------------------------------ */

static bool is_sound(const acf_predictor *e) {
    bool sound = true;
    assert_int_equal(acf_predictor_sound(e, &sound), ACF_OK);
    return sound;
}

static void unsound_matrices_are_detected(void **state) {
    (void)state;
    static const double wrong[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    make_rows(0.2);
    acf_predictor *e = learned(ROWS);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < P * (P + 1); i++) {
            const double kept = e->mean[i];
            e->mean[i] = wrong[k];
            assert_false(is_sound(e));
            e->mean[i] = kept;
        }
    for (int i = 0; i < P; i++)
        for (int k = 0; k < P; k++) {
            const double kept = e->precision[i * P + k];
            e->precision[i * P + k] += i == k ? -2 * kept : 1e-3; /* negative, or asymmetric */
            assert_false(is_sound(e));
            e->precision[i * P + k] = kept;
        }
    e->precision[1] = e->precision[P] = 2 * sqrt(e->precision[0] * e->precision[P + 1]);
    assert_false(is_sound(e));
    e->precision[1] = e->precision[P] = 0, e->precision[0] = 0;
    assert_false(is_sound(e));
    acf_predictor_free(e);
}

/* A matrix that is positive definite as it stands, but not in another elimination order, is refused. */
static void matrices_near_singular_are_refused(void **state) {
    (void)state;
    acf_predictor *e = capacity();
    for (int n = 0; n < 200; n++) {
        double v[P];
        for (int p = 0; p < P; p++) v[p] = normal(n, (uint32_t)p), e->mean[p] = 0;
        for (int p = 0; p < P; p++)
            for (int q = 0; q <= p; q++)
                e->precision[p * P + q] = e->precision[q * P + p] = v[p] * v[q] * (p == q ? 1 + 1e-15 : 1);
        assert_false(is_sound(e));
        for (int p = 0; p < P; p++) e->precision[p * P + p] *= 1 + 1e-6;
        assert_true(is_sound(e));
    }
    memset(e->precision, 0, P * P * sizeof *e->precision);
    for (int p = 0; p < P; p++) e->precision[p * P + p] = 1e-300;
    assert_false(is_sound(e));
    acf_predictor_free(e);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void memory_may_run_out(void **state) {
    (void)state;
    const int64_t before = acf_alloc_live();
    acf_predictor *e = NULL;
    acf_predictor_scratch scratch;
    acf_status status = ACF_EMEMORY;
    bool sound;
    int64_t live = before;
    make_rows(0.3);
    for (int step = 0; step < 4; step++) {
        for (int64_t n = 1, done = 0; !done; n++) {
            acf_alloc_fail_at(n);
            status = step == 0   ? acf_predictor_create(D, width, &e)
                     : step == 1 ? acf_predictor_learn(e, cells, have, 20)
                     : step == 2 ? acf_predictor_sound(e, &sound)
                                 : acf_predictor_scratch_open(e, &scratch);
            acf_alloc_fail_at(0);
            done = status == ACF_OK;
            assert_in_range(n, done ? 2 : 1, 5);
            if (!done) assert_int_equal(status, ACF_EMEMORY);
            if (!done || step == 1 || step == 2) assert_int_equal(acf_alloc_live(), live);
            if (!done && step == 3) assert_true(!scratch.d && !scratch.u);
        }
        live = acf_alloc_live();
    }
    acf_predictor_scratch_close(&scratch), acf_predictor_free(e);
    assert_int_equal(acf_alloc_live(), before);
}

ACF_TESTS(predictor, cmocka_unit_test(a_cell_is_its_regression), cmocka_unit_test(complete_rows_give_their_moments),
          cmocka_unit_test(missing_cells_are_filled_with_predictions), cmocka_unit_test(learning_begins_anew),
          cmocka_unit_test(strange_columns_are_learned), cmocka_unit_test(no_rows_and_one_are_learned_from),
          cmocka_unit_test(no_coordinates_are_learned), cmocka_unit_test(columns_may_be_equal),
          cmocka_unit_test(unsound_matrices_are_detected), cmocka_unit_test(matrices_near_singular_are_refused),
          cmocka_unit_test(memory_may_run_out))
