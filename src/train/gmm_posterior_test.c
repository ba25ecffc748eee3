/* Tests of parameter draws: their variance, and that of completed tables, is the theoretical one; memory. */
#include "train/gmm_posterior.h"

#include "base/rng.h"
#include "harness/fit_lab.h"
#include "harness/lab.h"
#include "train/gmm_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 200, COLS = 5, CELLS = ROWS * COLS, IMPUTATIONS = 200 };

/* x, and four columns y = 0.6 x + 0.8 noise, each with 60 % missing. */
static double value(int i, int j) {
    const double x = acf_rng_normal((acf_rng_counter){.seed = 3, .row = (uint64_t)i, .stream = ACF_STREAM_TEST});
    return j ? 0.6 * x + 0.8 * acf_rng_normal((acf_rng_counter){
                                   .seed = 3, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)j})
             : x;
}
static bool missing(int i, int j) {
    return j && acf_rng_uniform((acf_rng_counter){
                    .seed = 4, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = (uint32_t)j}) < 0.6;
}

/* ---- the sets -------------------------------------------------------------------------------------------------- */

static double variance(const double *x, int n) {
    double mean = 0, sum = 0;
    for (int i = 0; i < n; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / (n - 1);
}

/* x and the first y, in chains of data augmentation. In a normal table with y missing at random, means have the
 * variances var x / n and var(y | x) / seen + slope² var x / n. A conditional variance of s² from `seen` rows has about
 * 2 s⁴ / seen. */
static void chains_vary_as_theory_says(void **state) {
    (void)state;
    enum { D = 2, CHAINS = 600, STEPS = 30 };
    double x[ROWS * D], number[2][1 + D + D * D], mean[2][CHAINS], within[CHAINS], top = 0, through = 0, var = 0;
    uint8_t seen[ROWS * D];
    int n = 0, at = 0;
    for (int pattern = 0; pattern < 2; pattern++) /* rows of one pattern are adjacent */
        for (int i = 0; i < ROWS; i++) {
            if (missing(i, 1) != pattern) continue;
            for (int j = 0; j < D; j++)
                x[at * D + j] = j && pattern ? 1e30 : value(i, j),
                           seen[at * D + j] = j && pattern ? ACF_GMM_CELL_MISSING : ACF_GMM_CELL_SEEN;
            at++, n += !pattern;
        }
    const acf_sample s = {.R = ROWS, .D = D, .x = x, .seen = seen};
    double *memory = malloc((size_t)acf_augment_doubles(1, D) * sizeof *memory);
    for (int c = 0; c < CHAINS; c++) {
        acf_mixture g[2] = {{1, D, number[0], number[0] + 1, number[0] + 1 + D},
                            {1, D, number[1], number[1] + 1, number[1] + 1 + D}};
        const double begin[1 + D + D * D] = {1, 0, 0, 1, 0.6, 0.6, 1};
        memcpy(number[0], begin, sizeof begin);
        for (uint32_t step = 0; step < STEPS; step++)
            acf_augment_step(&s, &g[step % 2], &g[1 - step % 2], (acf_augment){1, (uint32_t)c, step}, memory);
        for (int j = 0; j < D; j++) mean[j][c] = g[0].mean[j];
        within[c] = g[0].cov[3] - g[0].cov[1] * g[0].cov[1] / g[0].cov[0];
        top += within[c] / CHAINS, through += g[0].cov[1] * g[0].cov[1] / g[0].cov[0] / CHAINS,
            var += g[0].cov[0] / CHAINS;
        assert_true(g[0].weight[0] == 1 && g[0].cov[1] == g[0].cov[2]);
    }
    acf_assert_close(top, 0.64, 0.15, "conditional variance");
    assert_in_range((int)(100 * variance(mean[0], CHAINS) * ROWS / var), 80, 120);
    assert_in_range((int)(100 * variance(mean[1], CHAINS) / (top / n + through / ROWS)), 80, 125);
    assert_in_range((int)(100 * variance(within, CHAINS) / (2 * top * top / n)), 75, 140);
    free(memory);
}

/* Rows with two columns seen together: half of all have the first, and none has both of the last two. */
static void counts_what_rows_show(void **state) {
    (void)state;
    enum { R = 40, D = 3 };
    double x[R * D] = {0}, number[1 + D + D * D] = {1};
    uint8_t seen[R * D];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < D; j++)
            seen[i * D + j] = j == 0 || (j == 1) == (i < R / 4) ? ACF_GMM_CELL_SEEN : ACF_GMM_CELL_MISSING;
    for (int j = 0; j < D; j++) number[1 + D + j * D + j] = 1;
    const acf_sample s = {.R = R, .D = D, .x = x, .seen = seen};
    const acf_mixture g = {1, D, number, number + 1, number + 1 + D};
    double *memory = malloc((size_t)acf_augment_doubles(1, D) * sizeof *memory);
    acf_assert_close(acf_augment_rows(&s, &g, 1, memory), R, 1e-9, "of one column");
    acf_assert_close(acf_augment_rows(&s, &g, 2, memory), R / 4, 1e-9, "of two");
    acf_assert_close(acf_augment_rows(&s, &g, 3, memory), 0, 1e-9, "of all");
    free(memory);
}

/* EM with weights equals EM on rows repeated as many times. */
static void weights_are_repetitions(void **state) {
    (void)state;
    enum { R = 50, D = 2, SIZE = 1 + D + D * D };
    double x[2][R * D], weight[R], number[3][SIZE] = {{1, 0.3, -0.2, 1, 0.2, 0.2, 2}}, logp[2];
    uint8_t seen[2][R * D];
    acf_device *dev;
    acf_mixture g[3];
    for (int i = 0; i < R; i++) {
        const int row[2] = {i, i % (R / 2)}; /* the second sample has the first half of the rows twice */
        weight[i] = i < R / 2 ? 2 : 0;
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < D; j++)
                x[k][i * D + j] = value(row[k], j),
                             seen[k][i * D + j] = j && row[k] % 3 == 0 ? ACF_GMM_CELL_MISSING : ACF_GMM_CELL_SEEN;
    }
    for (int k = 0; k < 3; k++) g[k] = (acf_mixture){1, D, number[k], number[k] + 1, number[k] + 1 + D};
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    const acf_sample weighted = {.R = R, .D = D, .x = x[0], .seen = seen[0], .weight = weight};
    const acf_sample twice = {.R = R, .D = D, .x = x[1], .seen = seen[1]};
    assert_int_equal(acf_em_step(dev, &weighted, &g[0], &g[1], &logp[0]), ACF_OK);
    assert_int_equal(acf_em_step(dev, &twice, &g[0], &g[2], &logp[1]), ACF_OK);
    acf_assert_close(logp[0], logp[1], 1e-9, "log p");
    for (int i = 0; i < SIZE; i++) acf_assert_close(number[1][i], number[2][i], 1e-9, "parameters");
    acf_device_close(dev);
}

/* ---- whole fits ------------------------------------------------------------------------------------------------ */

static acf_table *some_table(int rows, int columns) {
    double *x = malloc((size_t)(rows * columns) * sizeof *x);
    acf_table *t;
    for (int i = 0; i < rows * columns; i++)
        x[i] = missing(i / columns, i % columns) ? (double)NAN : value(i / columns, i % columns);
    assert_int_equal(acf_table_create(x, NULL, rows, columns, NULL, NULL, &t), ACF_OK);
    free(x);
    return t;
}

static acf_options *options(const char *members) {
    static const char *const common[] = {
        "steps",      "20",    "valid-every",      "10", "refit",   "false", "donors", "false", "encode", "standard",
        "dequantise", "false", "likelihood-units", "8",  "threads", "1",     NULL};
    return acf_fit_lab_options(common, (const char *const[]){"ensemble", members, NULL});
}

/* Means of completed columns vary between imputations: by the noise of missing cells, and by the uncertainty of the
 * parameters. Theory, for columns with a share of 1-f seen: f² var(y|x)/seen + f var(y|x)/n. */
static void imputations_vary_as_theory_says(const char *members, int rows, double least) {
    acf_model *m;
    acf_session *s;
    double out[CELLS], mean[COLS][IMPUTATIONS] = {{0}}, ratio = 0;
    acf_table *t = some_table(rows, COLS);
    if (acf_fit_lab_fit(some_table(rows, COLS), options(members), NULL, NULL, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    for (int k = 0; k < IMPUTATIONS; k++) {
        assert_int_equal(acf_session_draw(s, t, NULL, NULL, 1, (uint32_t)k, out), ACF_OK);
        for (int i = 0; i < rows * COLS; i++) mean[i % COLS][k] += out[i] / rows;
    }
    for (int j = 1; j < COLS; j++) {
        double seen = 0;
        for (int i = 0; i < rows; i++) seen += !missing(i, j);
        const double f = 1 - seen / rows;
        ratio += variance(mean[j], IMPUTATIONS) / (f * f * 0.64 / seen + f * 0.64 / rows) / (COLS - 1);
    }
    if (!(ratio >= least && ratio <= 1.4))
        fail_msg("%s members, %d rows: the variance is %g of what theory says", members, rows, ratio);
    acf_session_free(s);
    acf_model_free(m);
    acf_table_free(t);
}

static void completed_tables_vary_as_theory_says(void **state) {
    (void)state;
    imputations_vary_as_theory_says("1", ROWS, 0.8);
    imputations_vary_as_theory_says("3", ROWS, 0.8);
    imputations_vary_as_theory_says("1", 80, 0.6); /* columns are rarely seen together: by bootstrap weights */
}

static void survives_without_memory(void **state) {
    (void)state;
    acf_model *m;
    acf_table *t = some_table(30, 3);
    if (acf_fit_lab_fit(some_table(30, 3), options("2"), NULL, NULL, &m)) fail_msg("%s", acf_error());
    assert_true(m->draws && m->next->draws && m->draws->n == ACF_GMM_POSTERIOR_SETS / 2);
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status; n++) {
        for (acf_model *one = m; one; one = one->next) acf_gmm_draws_free(one->draws), one->draws = NULL;
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        status = acf_gmm_posterior(m, t);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        if (status && !m->draws) assert_int_equal(acf_alloc_live(), live);
    }
    acf_model_free(m);
    acf_table_free(t);
}

ACF_TESTS(gmm_posterior, cmocka_unit_test(chains_vary_as_theory_says), cmocka_unit_test(counts_what_rows_show),
          cmocka_unit_test(weights_are_repetitions), cmocka_unit_test(completed_tables_vary_as_theory_says),
          cmocka_unit_test(survives_without_memory))
