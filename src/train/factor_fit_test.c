/* Tests of factor analysis: an iteration against plain formulas in the full covariance, EM's monotone likelihood, known
 * factors recovered from half of their cells, and a wide table from end to end. */
#include "train/factor_fit.h"

#include "base/rng.h"
#include "harness/lab.h"
#include "harness/train_lab.h"
#include "model/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 7, R = 300, F = 2 };

typedef struct bench {
    double x[R * D];
    uint8_t seen[R * D];
    acf_sample s;
    acf_analysis g;
} bench;

static acf_rng_counter at(int64_t i, int64_t j, uint64_t seed) {
    return (acf_rng_counter){.seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)j};
}
static double noise(int64_t i, int64_t j) { return acf_rng_normal(at(i, j, 21)); }
static double coin(int64_t i, int64_t j) { return acf_rng_uniform(at(i, j, 22)); }
static double true_load(int64_t j, int64_t k) { return 1.2 * acf_rng_normal(at(j, k, 23)); }

/* Two factors; cells are missing at random, some are held out; missing ones hold values that must not be read. */
static bench *new_bench(double missing, double held) {
    bench *b = calloc(1, sizeof *b);
    b->s = (acf_sample){R, D, b->x, b->seen};
    for (int64_t i = 0; i < R; i++)
        for (int64_t j = 0; j < D; j++) {
            const double c = coin(i, j);
            b->x[i * D + j] = 0.3 + 0.5 * noise(i, j);
            for (int64_t k = 0; k < F; k++) b->x[i * D + j] += true_load(j, k) * noise(i, 50 + k);
            b->seen[i * D + j] = c < missing          ? ACF_GMM_CELL_MISSING
                                 : c < missing + held ? ACF_GMM_CELL_HELD
                                                      : ACF_GMM_CELL_SEEN;
            if (c < missing) b->x[i * D + j] = 1e30;
        }
    assert_int_equal(acf_analysis_create(D, F, &b->g), ACF_OK);
    for (int64_t j = 0; j < D; j++) {
        b->g.mean[j] = 0.1 * (double)j, b->g.var[j] = 0.5 + 0.1 * (double)j;
        for (int64_t k = 0; k < F; k++) b->g.load[j * F + k] = 0.4 * noise(1000 + j, k);
    }
    return b;
}

static void free_bench(bench *b) {
    acf_analysis_free(&b->g);
    free(b);
}

static acf_device *device(int threads) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

static double covariance(const acf_analysis *g, int64_t i, int64_t j) {
    double sum = i == j ? g->var[i] : 0;
    for (int64_t k = 0; k < g->r; k++) sum += g->load[i * g->r + k] * g->load[j * g->r + k];
    return sum;
}

/* out (n,m) = a⁻¹ out for a (n,n), both overwritten, by elimination; returns log det a. */
static double eliminate(double *a, double *out, int64_t n, int64_t m) {
    double logdet = 0;
    for (int64_t p = 0; p < n; p++) {
        const double pivot = a[p * n + p];
        logdet += log(pivot);
        for (int64_t c = 0; c < n; c++) a[p * n + c] /= pivot;
        for (int64_t c = 0; c < m; c++) out[p * m + c] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            const double by = a[i * n + p];
            if (i == p) continue;
            for (int64_t c = 0; c < n; c++) a[i * n + c] -= by * a[p * n + c];
            for (int64_t c = 0; c < m; c++) out[i * m + c] -= by * out[p * m + c];
        }
    }
    return logdet;
}

static int columns_of(const bench *b, int64_t r, bool held, int *set) {
    int n = 0;
    for (int j = 0; j < D; j++)
        if (b->seen[r * D + j] == ACF_GMM_CELL_SEEN || (held && b->seen[r * D + j] == ACF_GMM_CELL_HELD)) set[n++] = j;
    return n;
}

/* log p of the row's columns from their covariance; expected f (F) and its covariance (F,F) given them. */
static double textbook_row(const bench *b, int64_t r, bool held, double *f, double *c) {
    int set[D];
    const int n = columns_of(b, r, held, set);
    double a[D * D], solved[D * (1 + F)], lp = -0.5 * n * log(2 * acos(-1));
    for (int p = 0; p < n; p++) {
        for (int q = 0; q < n; q++) a[p * n + q] = covariance(&b->g, set[p], set[q]);
        solved[p * (1 + F)] = b->x[r * D + set[p]] - b->g.mean[set[p]];
        for (int k = 0; k < F; k++) solved[p * (1 + F) + 1 + k] = b->g.load[set[p] * F + k];
    }
    lp -= 0.5 * eliminate(a, solved, n, 1 + F);
    for (int k = 0; k < F; k++) {
        f[k] = 0;
        for (int p = 0; p < n; p++) f[k] += b->g.load[set[p] * F + k] * solved[p * (1 + F)];
        for (int i = 0; i < F; i++) {
            c[k * F + i] = k == i;
            for (int p = 0; p < n; p++) c[k * F + i] -= b->g.load[set[p] * F + k] * solved[p * (1 + F) + 1 + i];
        }
    }
    for (int p = 0; p < n; p++) lp -= 0.5 * (b->x[r * D + set[p]] - b->g.mean[set[p]]) * solved[p * (1 + F)];
    return lp;
}

/* A column's next numbers: a ridge regression on (f, 1) over the rows that have it. */
static void textbook_column(const bench *b, int64_t j, const double *f, const double *c, double *beta, double *var) {
    enum { Q = F + 1 };
    double a[Q * Q] = {0}, squares = 0, rows = 0, xy[Q] = {0};
    for (int64_t r = 0; r < R; r++) {
        if (b->seen[r * D + j] != ACF_GMM_CELL_SEEN) continue;
        double e[Q] = {f[r * F], f[r * F + 1], 1};
        const double x = b->x[r * D + j];
        for (int k = 0; k < Q; k++) {
            xy[k] += x * e[k];
            for (int i = 0; i < Q; i++) a[k * Q + i] += e[k] * e[i] + (k < F && i < F ? c[r * F * F + k * F + i] : 0);
        }
        squares += x * x, rows++;
    }
    for (int k = 0; k < F; k++) a[k * Q + k] += 3;
    a[Q * Q - 1] += 1e-3;
    memcpy(beta, xy, sizeof xy);
    eliminate(a, beta, Q, 1);
    for (int k = 0; k < Q; k++) squares -= beta[k] * xy[k];
    *var = (squares + 2 * 0.3) / (rows + 2);
}

/* The same Gaussian as the textbook's. Factors may be rotated, so covariances are compared, with the new f's spread
 * over the rows. */
static void an_iteration_is_the_textbook_s(void **state) {
    (void)state;
    bench *b = new_bench(0.4, 0.1);
    acf_device *dev = device(1);
    double f[R * F], c[R * F * F], beta[D][F + 1], var[D], mean[F] = {0}, spread[F][F] = {{0}}, logp, sum = 0;
    for (int64_t r = 0; r < R; r++) {
        sum += textbook_row(b, r, false, f + r * F, c + r * F * F) / R;
        for (int k = 0; k < F; k++) mean[k] += f[r * F + k] / R;
        for (int k = 0; k < F; k++)
            for (int i = 0; i < F; i++) spread[k][i] += (c[r * F * F + k * F + i] + f[r * F + k] * f[r * F + i]) / R;
    }
    for (int64_t j = 0; j < D; j++) textbook_column(b, j, f, c, beta[j], &var[j]);
    assert_int_equal(acf_analysis_step(dev, &b->s, &b->g, &logp), ACF_OK);
    acf_assert_close(logp, sum, 1e-10, "log p");
    for (int64_t i = 0; i < D; i++) {
        acf_assert_close(b->g.mean[i], beta[i][F] + beta[i][0] * mean[0] + beta[i][1] * mean[1], 1e-9, "mean");
        acf_assert_close(b->g.var[i], var[i], 1e-9, "variance");
        for (int64_t j = 0; j < D; j++) {
            double expected = i == j ? var[i] : 0;
            for (int k = 0; k < F; k++)
                for (int l = 0; l < F; l++) expected += beta[i][k] * (spread[k][l] - mean[k] * mean[l]) * beta[j][l];
            acf_assert_close(covariance(&b->g, i, j), expected, 1e-9, "covariance");
        }
    }
    acf_device_close(dev);
    free_bench(b);
}

static void held_out_cells_are_scored_given_the_seen(void **state) {
    (void)state;
    bench *b = new_bench(0.3, 0.3);
    acf_device *dev = device(1);
    double logp, sum = 0, f[F], c[F * F];
    int64_t cells = 0;
    int set[D];
    assert_int_equal(acf_analysis_score(dev, &b->s, &b->g, &logp), ACF_OK);
    for (int64_t r = 0; r < R; r++) {
        sum += textbook_row(b, r, true, f, c) - textbook_row(b, r, false, f, c);
        cells += columns_of(b, r, true, set) - columns_of(b, r, false, set);
    }
    acf_assert_close(logp, sum / (double)cells, 1e-10, "log p of held-out cells");
    acf_device_close(dev);
    free_bench(b);
}

/* The likelihood never falls (but for the priors), and threads change no bit. */
static void em_climbs_on_any_threads(void **state) {
    (void)state;
    bench *b[3];
    double logp[3], before = -INFINITY;
    acf_device *dev[3];
    for (int i = 0; i < 3; i++) b[i] = new_bench(0.4, 0), dev[i] = device(i + 1);
    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(acf_analysis_step(dev[i], &b[i]->s, &b[i]->g, &logp[i]), ACF_OK);
            assert_memory_equal(b[i]->g.mean, b[0]->g.mean, (size_t)(D * (2 + F)) * sizeof(double));
        }
        assert_true(logp[0] > before - 1e-3);
        before = logp[0];
    }
    for (int i = 0; i < 3; i++) free_bench(b[i]), acf_device_close(dev[i]);
}

/* Two factors are found where there are two, by held-out cells and by the criterion, with the right covariance. A given
 * number of factors is used. */
static void known_factors_are_found(void **state) {
    (void)state;
    acf_device *dev = device(1);
    for (int held = 0; held < 2; held++) {
        bench *b = new_bench(held ? 0.2 : 0.3, held ? 0.1 : 0);
        acf_analysis found;
        double score;
        assert_int_equal(acf_analysis_choose(dev, &b->s, 5, 6, 0, &found, &score), ACF_OK);
        assert_int_equal(found.r, F);
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < D; j++) {
                const double truth =
                    true_load(i, 0) * true_load(j, 0) + true_load(i, 1) * true_load(j, 1) + (i == j ? 0.25 : 0);
                acf_assert_close(covariance(&found, i, j), truth, 0.25, "covariance");
            }
        acf_analysis_free(&found);
        assert_int_equal(acf_analysis_choose(dev, &b->s, 5, 6, 5, &found, &score), ACF_OK);
        assert_int_equal(found.r, 5);
        acf_analysis_free(&found);
        free_bench(b);
    }
    acf_device_close(dev);
}

/* ---- in a network ---------------------------------------------------------------------------------------------- */

enum { WIDE = 60, ROWS = 300 };

/* Reals of three factors and, last, a category of two classes: the sign of the first factor, or independent. */
static acf_table *wide_table(bool follows) {
    static double x[ROWS * (WIDE + 1)];
    static acf_column column[WIDE + 1];
    for (int64_t i = 0; i < ROWS; i++) {
        double *row = x + i * (WIDE + 1);
        for (int64_t j = 0; j < WIDE; j++) {
            row[j] = noise(i, j) + (follows ? 2 * true_load(j, 0) * (noise(i, 200) > 0 ? 1 : -1) : 0);
            for (int64_t k = 1; k < 3; k++) row[j] += 0.5 * true_load(j, k) * noise(i, 200 + k);
        }
        row[WIDE] = follows ? noise(i, 200) > 0 : coin(i, 300) < 0.5;
    }
    column[WIDE].classes = 2;
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, ROWS, WIDE + 1, column, &t), ACF_OK);
    return t;
}

/* A wide table gets factors and indicators of categories; the choice can be read back; a given choice is followed. */
static void a_wide_table_has_factors(void **state) {
    (void)state;
    for (int follows = 0; follows < 2; follows++) {
        acf_train_lab l;
        acf_gmm_choice as;
        const int32_t *of, *value;
        acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=8", "factors=8", NULL});
        acf_train_lab_ready(&l, wide_table(follows));
        assert_int_equal(acf_net_factors(l.net), 8);
        assert_int_equal(acf_net_indicators(l.net, &of, &value), 1);
        assert_int_equal(acf_gmm_chosen(l.net, &as), ACF_OK);
        assert_in_range(as.components, 2, 4);
        assert_false(as.blind); /* the gain from ignoring one column is too small */
        for (int k = 0; k < 4; k++) {
            const acf_gmm_choice wish = {1 + 4 * (k % 2), k >= 2};
            assert_int_equal(acf_gmm_fit(l.net, l.table, &l.tr->rows, l.encoder, NULL, 5, &wish, NULL), ACF_OK);
            assert_int_equal(acf_gmm_chosen(l.net, &as), ACF_OK);
            assert_true(as.components == wish.components && as.blind == wish.blind);
        }
        acf_train_lab_close(&l);
    }
}

/* Any allocation may fail: the fit reports it and leaks nothing. Later allocations repeat in every iteration, so
 * fewer of them are tried. */
static void memory_may_run_out(void **state) {
    (void)state;
    acf_train_lab l;
    acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=8", "factors=4", NULL});
    acf_train_lab_ready(&l, wide_table(true));
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    int failures = 0;
    for (int64_t n = 1; status; n += 1 + n / 6, failures++) {
        acf_alloc_fail_at(n);
        status = acf_gmm_fit(l.net, l.table, &l.tr->rows, l.encoder, l.hold, 5, NULL, NULL);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(failures > 10);
    acf_train_lab_close(&l);
}

/* Without transformations behind it the map to z is the Gaussian: log p of a row equals that by its covariance. */
static void the_map_is_the_gaussian(void **state) {
    (void)state;
    acf_train_lab l;
    acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=8", "factors=8", "flow=", NULL});
    acf_train_lab_ready(&l, acf_train_lab_table(ROWS, WIDE, 0, 0, 3));
    acf_param *const *p = acf_net_gmm(l.net);
    const int64_t rank = acf_net_factors(l.net);
    static acf_real x[WIDE];
    double a[WIDE * WIDE], e[WIDE], truth = -0.5 * WIDE * log(2 * acos(-1));
    for (int64_t i = 0; i < WIDE; i++) x[i] = (acf_real)(0.7 * noise(7, i));
    for (int64_t i = 0; i < WIDE; i++) {
        e[i] = (double)(x[i] - p[1]->t.data[i]);
        for (int64_t j = 0; j < WIDE; j++) {
            a[i * WIDE + j] = i == j ? (double)p[3]->t.data[i] : 0;
            for (int64_t k = 0; k < rank; k++)
                if (p[0]->t.data[k] > 0)
                    a[i * WIDE + j] += (double)p[2]->t.data[i * rank + k] * (double)p[2]->t.data[j * rank + k];
        }
    }
    double solved[WIDE];
    memcpy(solved, e, sizeof e);
    truth -= 0.5 * eliminate(a, solved, WIDE, 1);
    for (int64_t i = 0; i < WIDE; i++) truth -= 0.5 * e[i] * solved[i];

    acf_tape *t = l.tr->tape;
    acf_batch *batch;
    assert_int_equal(acf_batch_create(1, WIDE, &batch), ACF_OK);
    batch->N = 1;
    memcpy(batch->x, x, sizeof x);
    memset(batch->b, 0, WIDE);
    memset(batch->m, 1, WIDE);
    acf_tape_begin(t, false);
    acf_view *v = acf_net_view(t, l.net, batch, NULL);
    acf_tensor *logdet, *z = acf_net_forward(t, v, &logdet);
    assert_int_equal(acf_tape_check(t, z), ACF_OK);
    double lp = (double)logdet->data[0] - 0.5 * WIDE * log(2 * acos(-1));
    for (int64_t i = 0; i < WIDE; i++) lp -= 0.5 * (double)z->data[i] * (double)z->data[i];
    acf_assert_close(lp, truth, sizeof(acf_real) == 8 ? 1e-9 : 1e-4, "log p of the Gaussian");
    acf_tensor *back = acf_net_inverse(t, v, z);
    assert_int_equal(acf_tape_check(t, back), ACF_OK);
    for (int64_t i = 0; i < WIDE; i++)
        acf_assert_close((double)back->data[i], (double)x[i], sizeof(acf_real) == 8 ? 1e-10 : 1e-4, "the way back");
    acf_batch_free(batch);
    acf_train_lab_close(&l);
}

/* A file of a version without factors does not record their number: its wide tables have no Gaussian, as then. */
static void old_wide_models_have_none(void **state) {
    (void)state;
    acf_device *dev = device(1);
    acf_options *o;
    acf_net *net;
    assert_int_equal(acf_config_create_old(&o), ACF_OK);
    assert_int_equal(acf_options_set_from(o, "gmm", "8", ACF_FROM_USER), ACF_OK);
    assert_int_equal(acf_net_declare(dev, NULL, WIDE, o, &net), ACF_OK);
    assert_int_equal(acf_net_gmm_size(net), 0);
    acf_net_free(net);
    assert_int_equal(acf_net_declare(dev, NULL, 56, o, &net), ACF_OK);
    assert_int_equal(acf_net_gmm_size(net), 1);
    assert_int_equal(acf_net_factors(net), 0);
    acf_net_free(net);
    acf_options_free(o);
    acf_device_close(dev);
}

ACF_TESTS(factor_fit, cmocka_unit_test(an_iteration_is_the_textbook_s),
          cmocka_unit_test(held_out_cells_are_scored_given_the_seen), cmocka_unit_test(em_climbs_on_any_threads),
          cmocka_unit_test(known_factors_are_found), cmocka_unit_test(a_wide_table_has_factors),
          cmocka_unit_test(memory_may_run_out), cmocka_unit_test(the_map_is_the_gaussian),
          cmocka_unit_test(old_wide_models_have_none))
