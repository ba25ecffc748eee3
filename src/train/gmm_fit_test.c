/* Tests of the Gaussian mixture's fit: an iteration against plain formulas, EM's monotone likelihood, and a known
 * mixture recovered from half of its cells. */
#include "train/gmm_fit.h"

#include "base/rng.h"
#include "harness/lab.h"
#include "harness/train_lab.h"
#include "ops/gaussian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 3, R = 400, K = 2 };

typedef struct bench {
    double x[R * D], number[2][K * (1 + D + D * D)];
    uint8_t seen[R * D];
    acf_sample s;
    acf_mixture g[2];
} bench;

static double noise(int64_t i, int64_t j) {
    return acf_rng_normal(
        (acf_rng_counter){.seed = 11, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)j});
}

static double coin(int64_t i, int64_t j) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 12, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)j});
}

/* Two clusters of correlated columns. Cells are missing at random and some are held out, with one pattern in `run`
 * rows. Missing ones hold values that must not be read. */
static bench *new_bench_in_runs(double missing, double held, int64_t run) {
    bench *b = calloc(1, sizeof *b);
    b->s = (acf_sample){R, D, b->x, b->seen};
    for (int64_t i = 0; i < R; i++) {
        const double side = coin(i, 99) < 0.4 ? -1.2 : 0.8, common = noise(i, 7);
        for (int64_t j = 0; j < D; j++) {
            b->x[i * D + j] = side + 0.5 * common + 0.3 * noise(i, j);
            const double c = coin(i / run, j);
            b->seen[i * D + j] = c < missing          ? ACF_GMM_CELL_MISSING
                                 : c < missing + held ? ACF_GMM_CELL_HELD
                                                      : ACF_GMM_CELL_SEEN;
            if (c < missing) b->x[i * D + j] = 1e30;
        }
    }
    for (int w = 0; w < 2; w++) {
        double *p = b->number[w];
        b->g[w] = (acf_mixture){K, D, p, p + K, p + K + K * D};
    }
    for (int64_t k = 0; k < K; k++) {
        b->g[0].weight[k] = 0.5;
        for (int64_t j = 0; j < D; j++) {
            b->g[0].mean[k * D + j] = k ? 0.5 : -0.5 + 0.1 * (double)j;
            for (int64_t i = 0; i < D; i++) b->g[0].cov[(k * D + j) * D + i] = i == j ? 1 : 0.2;
        }
    }
    return b;
}

static bench *new_bench(double missing, double held) { return new_bench_in_runs(missing, held, 1); }

static acf_device *device(int threads) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

/* a (n,n) of the columns in set, inverted by Gauss-Jordan; returns log det. */
static double invert(const double *cov, const int *set, int n, double out[D][D]) {
    double a[D][2 * D], logdet = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2 * n; j++) a[i][j] = j < n ? cov[set[i] * D + set[j]] : j - n == i;
    for (int p = 0; p < n; p++) {
        logdet += log(a[p][p]);
        for (int j = 2 * n - 1; j >= p; j--) a[p][j] /= a[p][p];
        for (int i = 0; i < n; i++)
            for (int j = 2 * n - 1; i != p && j >= p; j--) a[i][j] -= a[i][p] * a[p][j];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) out[i][j] = a[i][n + j];
    return logdet;
}

/* log N of the columns in set of row r under component k; the set's inverse covariance to inv. */
static double log_normal(const bench *b, int64_t r, int64_t k, const int *set, int n, double inv[D][D]) {
    double lp = -0.5 * (invert(b->g[0].cov + k * D * D, set, n, inv) + n * log(2 * acos(-1)));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            lp -= 0.5 * (b->x[r * D + set[i]] - b->g[0].mean[k * D + set[i]]) * inv[i][j] *
                  (b->x[r * D + set[j]] - b->g[0].mean[k * D + set[j]]);
    return lp;
}

static int columns_of(const bench *b, int64_t r, bool held, int *set) {
    int n = 0;
    for (int j = 0; j < D; j++)
        if (b->seen[r * D + j] == ACF_GMM_CELL_SEEN || (held && b->seen[r * D + j] == ACF_GMM_CELL_HELD)) set[n++] = j;
    return n;
}

/* Expected value and covariance of all columns of row r given its seen ones, under component k. */
static void expect(const bench *b, int64_t r, int64_t k, double e[D], double c[D][D]) {
    int set[D], n = columns_of(b, r, false, set);
    double inv[D][D], gain[D][D] = {{0}};
    const double *cov = b->g[0].cov + k * D * D, *mean = b->g[0].mean + k * D;
    log_normal(b, r, k, set, n, inv);
    for (int i = 0; i < D; i++) {
        e[i] = mean[i];
        for (int q = 0; q < n; q++) {
            for (int p = 0; p < n; p++) gain[i][q] += cov[i * D + set[p]] * inv[p][q];
            e[i] += gain[i][q] * (b->x[r * D + set[q]] - mean[set[q]]);
        }
    }
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
            c[i][j] = cov[i * D + j];
            for (int q = 0; q < n; q++) c[i][j] -= gain[i][q] * cov[set[q] * D + j];
        }
}

/* Against the textbook: Σ = (Σ_r w (C + (e-μ')(e-μ')ᵀ) + prior) / (Σ w + prior rows). */
static void check_an_iteration(int64_t run) {
    bench *b = new_bench_in_runs(0.4, 0.1, run);
    acf_device *dev = device(1);
    double logp, sum_logp = 0, w[R][K], n[K] = {0}, first[K][D] = {{0}};
    assert_int_equal(acf_em_step(dev, &b->s, &b->g[0], &b->g[1], &logp), ACF_OK);
    for (int64_t r = 0; r < R; r++) {
        double all = 0, inv[D][D];
        int set[D], m = columns_of(b, r, false, set);
        for (int64_t k = 0; k < K; k++) all += w[r][k] = 0.5 * exp(log_normal(b, r, k, set, m, inv));
        sum_logp += log(all) / R;
        for (int64_t k = 0; k < K; k++) {
            double e[D], c[D][D];
            n[k] += w[r][k] /= all;
            expect(b, r, k, e, c);
            for (int j = 0; j < D; j++) first[k][j] += w[r][k] * (e[j] - b->g[0].mean[k * D + j]);
        }
    }
    acf_assert_close(logp, sum_logp, 1e-10, "log p");
    for (int64_t k = 0; k < K; k++) {
        acf_assert_close(b->g[1].weight[k], (n[k] + 1) / (R + K), 1e-10, "weight");
        double second[D][D] = {{0}}, mean[D];
        for (int j = 0; j < D; j++) {
            mean[j] = b->g[0].mean[k * D + j] + first[k][j] / n[k];
            acf_assert_close(b->g[1].mean[k * D + j], mean[j], 1e-4, "mean");
        }
        for (int64_t r = 0; r < R; r++) {
            double e[D], c[D][D];
            expect(b, r, k, e, c);
            for (int i = 0; i < D; i++)
                for (int j = 0; j < D; j++) second[i][j] += w[r][k] * (c[i][j] + (e[i] - mean[i]) * (e[j] - mean[j]));
        }
        const double prior = 2 + 0.5 * D;
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++)
                acf_assert_close(b->g[1].cov[(k * D + i) * D + j],
                                 (second[i][j] + (i == j ? 0.3 * prior : 0)) / (n[k] + prior), 1e-9, "cov");
    }
    acf_device_close(dev);
    free(b);
}

static void an_iteration_is_the_textbook_s(void **state) {
    (void)state;
    for (int64_t run = 1; run < 30; run += 7) check_an_iteration(run);
}

static void held_out_cells_are_scored_given_the_seen(void **state) {
    (void)state;
    bench *b = new_bench(0.3, 0.3);
    acf_device *dev = device(1);
    double logp, sum = 0, inv[D][D];
    int64_t cells = 0;
    assert_int_equal(acf_em_score(dev, &b->s, &b->g[0], &logp), ACF_OK);
    for (int64_t r = 0; r < R; r++) {
        double p[2] = {0};
        int set[D], n[2];
        for (int held = 0; held < 2; held++) {
            n[held] = columns_of(b, r, held, set);
            for (int64_t k = 0; k < K; k++) p[held] += 0.5 * exp(log_normal(b, r, k, set, n[held], inv));
        }
        sum += log(p[1] / p[0]);
        cells += n[1] - n[0];
    }
    acf_assert_close(logp, sum / (double)cells, 1e-10, "log p of held-out cells");
    acf_device_close(dev);
    free(b);
}

/* The likelihood never falls (but for the prior), and threads change no bit. */
static void em_climbs_on_any_threads(void **state) {
    (void)state;
    bench *b[3];
    double logp[3], before = -INFINITY;
    acf_device *dev[3];
    for (int i = 0; i < 3; i++) b[i] = new_bench(0.4, 0), dev[i] = device(i + 1);
    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(acf_em_step(dev[i], &b[i]->s, &b[i]->g[step % 2], &b[i]->g[(step + 1) % 2], &logp[i]),
                             ACF_OK);
            assert_memory_equal(b[i]->number[(step + 1) % 2], b[0]->number[(step + 1) % 2], sizeof b[0]->number[0]);
        }
        assert_true(logp[0] > before - 1e-3);
        before = logp[0];
    }
    /* the two clusters, in either order */
    const acf_mixture *g = &b[0]->g[0];
    const int low = g->mean[0] < g->mean[D] ? 0 : 1;
    acf_assert_close(g->weight[low], 0.4, 0.08, "weight of the lower cluster");
    for (int j = 0; j < D; j++) acf_assert_close(g->mean[low * D + j], -1.2, 0.15, "mean of the lower cluster");
    acf_assert_close(g->cov[low * D * D + 1], 0.25, 0.1, "covariance of the lower cluster");
    for (int i = 0; i < 3; i++) free(b[i]), acf_device_close(dev[i]);
}

/* A category and two reals: either the class shifts both reals, or it is independent and their relation is curved. */
static acf_table *classes_table(bool moves) {
    enum { N = 600, COLS = 3 };
    static const acf_column column[COLS] = {{"a", 0}, {"k", 6}, {"b", 0}};
    static double x[N * COLS];
    for (int64_t i = 0; i < N; i++) {
        const double k = floor(6 * coin(i, 50)), e = noise(i, 51);
        x[i * COLS] = moves ? 3 * fmod(k, 3) + 0.3 * e : e;
        x[i * COLS + 1] = k;
        x[i * COLS + 2] = moves ? 2 * floor(k / 3) + 0.3 * noise(i, 52) : 2 * fabs(e) + 0.2 * noise(i, 52);
    }
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, column, &t), ACF_OK);
    return t;
}

/* Held-out cells decide whether the mixture uses categories; a given choice is followed; both can be read back. */
static void categories_count_where_they_help(void **state) {
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        acf_train_lab l;
        acf_gmm_choice as;
        acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=8", "gmm-indicators=32", NULL});
        acf_train_lab_ready(&l, classes_table(moves));
        assert_int_equal(acf_gmm_chosen(l.net, &as), ACF_OK);
        assert_int_equal(as.blind, !moves);
        for (int k = 0; k < 4; k++) {
            const acf_gmm_choice wish = {1 + k % 2, k >= 2};
            assert_int_equal(acf_gmm_fit(l.net, l.table, &l.tr->rows, l.encoder, NULL, 5, &wish, NULL), ACF_OK);
            assert_int_equal(acf_gmm_chosen(l.net, &as), ACF_OK);
            assert_true(as.components == wish.components && as.blind == wish.blind);
            const acf_tensor *mean = &acf_net_gmm(l.net)[1]->t, *cov = &acf_net_gmm(l.net)[2]->t;
            const int64_t W = mean->dim[1];
            for (int64_t j = 2; wish.blind && j < W; j++) /* the same for every component: classes have no influence */
                for (int c = 0; c < wish.components; c++)
                    assert_true(mean->data[c * W + j] == 0 && cov->data[(c * W + j) * W + j] == 1);
        }
        acf_train_lab_close(&l);
    }
}

/* Four columns; the last nearly follows from the first two, or is independent. */
static acf_table *following_table(bool follows) {
    enum { N = 500, COLS = 4 };
    static double x[N * COLS];
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < COLS; j++) x[i * COLS + j] = noise(i, 60 + j);
        if (follows) x[i * COLS + 3] = x[i * COLS] - x[i * COLS + 1] + 0.02 * noise(i, 70);
    }
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, NULL, &t), ACF_OK);
    return t;
}

/* Variance of the last column given the others, by the fitted mixture of one component. */
static double left_of_last(acf_train_lab *l) {
    const acf_tensor *cov = &acf_net_gmm(l->net)[2]->t;
    const int64_t W = cov->dim[1];
    double a[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) a[i][j] = (double)cov->data[i * W + j];
    for (int p = 0; p < 3; p++)
        for (int i = p + 1; i < 4; i++)
            for (int j = 3; j >= p; j--) a[i][j] -= a[i][p] / a[p][p] * a[p][j];
    return a[3][3];
}

/* Where a column nearly follows from others, held-out cells reject the usual ridge; the choice is recorded, and
 * followed when given. */
static void held_out_cells_choose_the_ridge(void **state) {
    (void)state;
    double left[2];
    for (int follows = 0; follows < 2; follows++) {
        acf_train_lab l;
        acf_gmm_choice found;
        acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=1", "valid=0.1", NULL});
        acf_train_lab_ready(&l, following_table(follows));
        assert_true(follows ? l.tr->gmm.ridge > 0 && l.tr->gmm.ridge < ACF_GMM_RIDGE : l.tr->gmm.ridge == 0);
        for (int k = 0; k < 2 && follows; k++) {
            const acf_gmm_choice wish = {1, false, k ? l.tr->gmm.ridge : 0};
            assert_int_equal(acf_gmm_fit(l.net, l.table, &l.tr->rows, l.encoder, NULL, 5, &wish, &found), ACF_OK);
            assert_true(found.components == 1 && found.ridge == wish.ridge);
            left[k] = left_of_last(&l);
        }
        json_t *text;
        acf_fit_record r, again;
        const acf_json_source from = {"a record", ACF_EMODEL};
        if (acf_trainer_run(l.tr, NULL, NULL) || acf_trainer_finish(l.tr)) fail_msg("%s", acf_error());
        r = acf_trainer_record(l.tr, ACF_END_STEPS);
        assert_true(r.ridge == l.tr->gmm.ridge);
        assert_int_equal(acf_fit_record_to_json(&r, &text), ACF_OK);
        assert_int_equal(acf_fit_record_from_json(from, text, &again), ACF_OK);
        assert_true(again.ridge == r.ridge && (json_object_get(text, "ridge") != NULL) == follows);
        json_object_set_new(text, "ridge", json_real(-1));
        assert_int_equal(acf_fit_record_from_json(from, text, &again), ACF_EMODEL);
        json_decref(text);
        acf_train_lab_close(&l);
    }
    assert_true(left[1] < 0.5 * left[0] && left[1] > 1e-5);
}

/* Before its first step a network is its mixture: here independent standard normal columns, for any given cells and
 * seed. */
static void networks_begin_as_their_mixture(void **state) {
    (void)state;
    static const char *const settings[3][2] = {
        {"likelihood=sets", "seed=5"}, {"likelihood=gru", "seed=5"}, {"likelihood=sets", "seed=6"}};
    for (int k = 0; k < 3; k++) {
        enum { ROWS = 200, COLS = 4 };
        acf_train_lab l;
        int64_t row[ROWS];
        acf_batch *b;
        acf_train_lab_open(&l, 1, (const char *[]){settings[k][0], settings[k][1], "steps=1", "gmm=1", "flow=", NULL});
        acf_train_lab_ready(&l, following_table(false));
        acf_param *const *p = acf_net_gmm(l.net);
        for (int64_t i = 0; i < COLS; i++) {
            p[1]->t.data[i] = 0;
            for (int64_t j = 0; j < COLS; j++) p[2]->t.data[i * COLS + j] = i == j;
        }
        assert_int_equal(acf_batch_create(ROWS, COLS, &b), ACF_OK);
        for (int64_t i = 0; i < ROWS; i++) row[i] = i;
        acf_batch_fill(l.dev, b, l.table, l.encoder, NULL, ACF_BATCH_TRAIN, row, ROWS);
        for (int64_t c = 0; c < ROWS * COLS; c++) b->m[c] = 1, b->b[c] = (c / COLS + c) % 3 == 0;
        acf_tape_begin(l.tr->tape, false);
        const acf_tensor *logp = acf_net_logp(l.tr->tape, acf_net_view(l.tr->tape, l.net, b, NULL));
        assert_int_equal(acf_tape_check(l.tr->tape, logp), ACF_OK);
        for (int64_t i = 0; i < ROWS; i++) {
            double expected = 0, far = 0;
            for (int64_t c = i * COLS; c < (i + 1) * COLS; c++) {
                if (b->b[c]) continue;
                expected -= 0.5 * (double)b->x[c] * (double)b->x[c] + ACF_HALF_LOG_2PI,
                    far = fmax(far, fabs((double)b->x[c]));
            }
            if (far < 2.5) acf_assert_close((double)logp->data[i], expected, 0.02, "log p");
        }
        acf_batch_free(b);
        acf_train_lab_close(&l);
    }
}

/* Four columns that follow from one, with six cells in ten missing: EM converges slowly. */
static acf_table *holed_table(void) {
    enum { N = 500, COLS = 4 };
    static double x[N * COLS];
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < COLS; j++)
            x[i * COLS + j] = coin(i, 80 + j) < 0.6 ? (double)NAN : noise(i, 80) + 0.2 * (double)j * noise(i, 81 + j);
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, NULL, &t), ACF_OK);
    return t;
}

/* Mixtures are compared before EM has converged; the chosen one has: another iteration gains next to nothing. */
static void the_chosen_mixture_is_at_its_end(void **state) {
    (void)state;
    enum { W = 4 };
    acf_train_lab l;
    acf_sample s = {.D = W, .R = 500};
    double number[2][1 + W + W * W], logp[2], cells = 0;
    acf_train_lab_open(&l, 1, (const char *[]){"seed=5", "steps=1", "gmm=1", "valid=0", NULL});
    acf_train_lab_ready(&l, holed_table());
    assert_int_equal(acf_sample_take(l.net, l.dev, l.table, &l.tr->rows, l.encoder, NULL, 5, &s), ACF_OK);
    acf_mixture g[2];
    for (int w = 0; w < 2; w++) g[w] = (acf_mixture){1, W, number[w], number[w] + 1, number[w] + 1 + W};
    acf_param *const *p = acf_net_gmm(l.net);
    number[0][0] = 1;
    for (int64_t i = 0; i < W; i++) g[0].mean[i] = (double)p[1]->t.data[i];
    for (int64_t i = 0; i < W * W; i++) g[0].cov[i] = (double)p[2]->t.data[i];
    for (int w = 0; w < 2; w++) assert_int_equal(acf_em_step(l.dev, &s, &g[w], &g[1 - w], &logp[w]), ACF_OK);
    for (int64_t i = 0; i < s.R * W; i++) cells += s.seen[i] == ACF_GMM_CELL_SEEN;
    if (!(logp[1] - logp[0] < 1.5e-5 * cells / (double)s.R))
        fail_msg("another iteration gains %g nats in a cell", (logp[1] - logp[0]) * (double)s.R / cells);
    acf_sample_free(&s);
    acf_train_lab_close(&l);
}

/* Columns without seen cells add no pseudo-rows to the prior. */
static void hidden_columns_have_no_prior(void **state) {
    (void)state;
    enum { WIDE = 9 };
    acf_device *dev = device(1);
    double var[2], logp;
    for (int wide = 0; wide < 2; wide++) {
        const int64_t W = wide ? WIDE : 2;
        static double x[R * WIDE];
        static uint8_t seen[R * WIDE];
        acf_mixture g[2];
        memset(seen, ACF_GMM_CELL_SEEN, sizeof seen);
        for (int64_t i = 0; i < 20; i++)
            for (int64_t j = 0; j < W; j++) x[i * W + j] = noise(i, j);
        acf_sample s = {20, W, x, seen};
        if (wide) acf_sample_hide(&s, 2);
        for (int k = 0; k < 2; k++) assert_int_equal(acf_mixture_create(1, W, &g[k]), ACF_OK);
        g[0].weight[0] = 1;
        for (int64_t j = 0; j < W; j++) g[0].cov[j * W + j] = 1;
        assert_int_equal(acf_em_step(dev, &s, &g[0], &g[1], &logp), ACF_OK);
        var[wide] = g[1].cov[0];
        for (int k = 0; k < 2; k++) acf_mixture_free(&g[k]);
    }
    acf_assert_close(var[1], var[0], 1e-12, "variance");
    acf_device_close(dev);
}

ACF_TESTS(gmm, cmocka_unit_test(held_out_cells_choose_the_ridge), cmocka_unit_test(hidden_columns_have_no_prior),
          cmocka_unit_test(the_chosen_mixture_is_at_its_end), cmocka_unit_test(networks_begin_as_their_mixture),
          cmocka_unit_test(an_iteration_is_the_textbook_s), cmocka_unit_test(held_out_cells_are_scored_given_the_seen),
          cmocka_unit_test(em_climbs_on_any_threads), cmocka_unit_test(categories_count_where_they_help))
