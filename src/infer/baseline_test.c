/* The baselines: means by hand; the linear one against known best answers, on odd tables, and against scikit-learn
 * on real tables. */
#include "infer/baseline.h"

#include "base/rng.h"
#include "base/safetensors.h"
#include "harness/lab.h"
#include "infer/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static acf_table *table_of(const double *x, int64_t rows, int64_t columns, const acf_column *column) {
    acf_table *t;
    if (acf_table_make(x, NULL, rows, columns, column, &t)) fail_msg("%s", acf_error());
    return t;
}

static acf_baseline *baseline_of(const acf_table *t, uint64_t seed) {
    acf_baseline *b;
    if (acf_baseline_create(t, seed, &b)) fail_msg("%s", acf_error());
    return b;
}

static void means_and_modes(void **state) {
    (void)state;
    const double x[15] = {1, 2, NAN, /**/ NAN, 1, NAN, /**/ 4, NAN, NAN, /**/ 7, 2, NAN, /**/ NAN, 1, NAN};
    double out[15];
    acf_table *t = table_of(x, 5, 3, (const acf_column[]){{NULL, 0}, {NULL, 4}, {NULL, 0}});
    assert_int_equal(acf_baseline_mean(t, out), ACF_OK);
    for (int i = 0; i < 15; i++) /* classes 1 and 2 occur twice: the lower wins */
        assert_true(out[i] == (!isnan(x[i]) ? x[i] : i % 3 == 0 ? 4 : i % 3 == 1 ? 1 : 0));
    acf_table_free(t);
}

/* ---- where the best answer is known ------------------------------------------------------------------------------ */

enum { ROWS = 4000, COLS = 5, CELLS = ROWS * COLS, DRAWS = 20 };

typedef struct world {
    acf_table *t;
    double x[CELLS];     /* without missing values */
    double mean[ROWS];   /* of column 2, given the others */
    double chance[ROWS]; /* of class 1 in column 3, given the others */
} world;

static double normal(int64_t i, uint32_t column) {
    return acf_rng_normal((acf_rng_counter){3, (uint64_t)i, ACF_STREAM_TEST, column, 0});
}

/* Columns: two correlated numbers; a linear function of them with noise 0.5; a class by logistic regression on them;
 * a random class. Column 2 is missing in every third row, column 3 in every fourth, never both. Then the best
 * prediction is known in closed form (the noise of column 2 says nothing about the class). */
static world *make_world(void) {
    static const acf_column column[COLS] = {{"a", 0}, {"b", 0}, {"sum", 0}, {"class", 2}, {"chance", 6}};
    world *w = calloc(1, sizeof *w);
    double *missing = malloc(CELLS * sizeof *missing);
    assert_true(w && missing);
    for (int i = 0; i < ROWS; i++) {
        double a = normal(i, 0), b = 0.6 * a + 0.8 * normal(i, 1),
               u = acf_rng_uniform((acf_rng_counter){4, (uint64_t)i, ACF_STREAM_TEST, 0, 0});
        w->mean[i] = 1000 + 3 * a - 2 * b;
        w->chance[i] = 1 / (1 + exp(-(2 * a + 1.5 * b - 0.5)));
        const double row[COLS] = {a, 1e-6 * b, w->mean[i] + 0.5 * normal(i, 2), u < w->chance[i],
                                  (double)(i * 7 % 11 % 6)};
        memcpy(w->x + i * COLS, row, sizeof row);
        memcpy(missing + i * COLS, row, sizeof row);
        if (i % 12 == 0 || i % 12 == 4 || i % 12 == 8) missing[i * COLS + 2] = NAN;
        if (i % 12 == 1 || i % 12 == 5 || i % 12 == 9) missing[i * COLS + 3] = NAN;
    }
    w->t = table_of(missing, ROWS, COLS, column);
    free(missing);
    return w;
}

static void free_world(world *w) {
    acf_table_free(w->t);
    free(w);
}

static void points_are_nearly_the_best_there_are(void **state) {
    (void)state;
    world *w = make_world();
    acf_baseline *b = baseline_of(w->t, 1);
    double *out = malloc(sizeof w->x), off = 0, n = 0, wrong = 0, least = 0, target = 0;
    assert_non_null(out);
    acf_baseline_point(b, out);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++)
            if (acf_table_present(w->t->x[i * COLS + j])) assert_true(out[i * COLS + j] == w->x[i * COLS + j]);
        if (!acf_table_present(w->t->x[i * COLS + 2])) n++, off += pow(out[i * COLS + 2] - w->mean[i], 2);
        if (acf_table_present(w->t->x[i * COLS + 3])) continue;
        target++, wrong += out[i * COLS + 3] != w->x[i * COLS + 3];
        least += (w->chance[i] > 0.5) != (w->x[i * COLS + 3] > 0.5); /* errors of the true probabilities */
    }
    assert_true(n > 900 && target > 900);
    assert_true(sqrt(off / n) < 0.05); /* a tenth of the noise */
    assert_true(wrong / target < least / target + 0.01);
    free(out);
    acf_baseline_free(b);
    free_world(w);
}

static void draws_have_the_right_spread(void **state) {
    (void)state;
    world *w = make_world();
    acf_baseline *b = baseline_of(w->t, 1);
    double *out = malloc(sizeof w->x), *drawn = malloc(DRAWS * ROWS * sizeof *drawn), truth[ROWS], scratch[2 * ROWS];
    double ones = 0, expected = 0;
    assert_true(out && drawn);
    int64_t n = 0;
    for (int64_t i = 0; i < ROWS; i++)
        if (!acf_table_present(w->t->x[i * COLS + 2])) truth[n++] = w->x[i * COLS + 2];
    for (int k = 0; k < DRAWS; k++) {
        assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
        for (int64_t i = 0, at = 0; i < ROWS; i++) {
            if (!acf_table_present(w->t->x[i * COLS + 2]))
                drawn[k * n + at++] = out[i * COLS + 2];
            else
                assert_true(out[i * COLS + 2] == w->x[i * COLS + 2]);
            if (!acf_table_present(w->t->x[i * COLS + 3])) ones += out[i * COLS + 3], expected += w->chance[i];
        }
    }
    double noise = 0.5;
    acf_assert_close(acf_metric_crps(truth, drawn, DRAWS, n, noise, scratch), 1 / sqrt(acos(-1)), 0.03,
                     "CRPS of the truth");
    acf_assert_close(acf_metric_coverage(truth, drawn, DRAWS, n, 0.9, 1, &(acf_shared){0}, scratch), 0.9, 0.03,
                     "coverage"); /* 0.870, and 0.855 if sums are in another order: five donors are few */
    acf_assert_close(acf_metric_wasserstein(truth, drawn, n, 1, scratch), 0, 0.15, "W1");
    acf_assert_close(ones / expected, 1, 0.03, "share of class 1");
    assert_true(memcmp(drawn, drawn + n, (size_t)n * sizeof *drawn) != 0);
    free(out), free(drawn);
    acf_baseline_free(b);
    free_world(w);
}

/* Every drawn number is an observed value of its column. */
static void draws_are_values_that_occur(void **state) {
    (void)state;
    world *w = make_world();
    acf_baseline *b = baseline_of(w->t, 1);
    double *out = malloc(sizeof w->x);
    assert_non_null(out);
    assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
    for (int i = 0; i < ROWS; i += 12) {
        bool occurs = false;
        for (int k = 0; k < ROWS && !occurs; k++) occurs = w->t->x[k * COLS + 2] == out[i * COLS + 2];
        assert_true(occurs);
    }
    free(out);
    acf_baseline_free(b);
    free_world(w);
}

/* If no predictor distinguishes the missing cells, draws have the distribution of the observed cells: of all, or of
 * those of the same class. A normal column is in units of its deviation, so a Wasserstein distance of 0.1 is small;
 * five donors alone are ten times as far. */
static void ties_are_broken_at_random(void **state) {
    (void)state;
    enum { M = 1000, H = M / 2 };
    for (int columns = 1; columns <= 2; columns++) {
        double x[2 * M], out[2 * M], drawn[H], seen[H], scratch[4 * M], mean[2] = {0};
        for (int i = 0; i < M; i++) {
            const int class = i / 2 % 2;
            x[i * columns] = i % 2 ? NAN : normal(i, 50) + (columns == 2 ? 3 * class : 0);
            if (columns == 2) x[i * columns + 1] = class;
        }
        acf_table *t = table_of(x, M, columns, (const acf_column[]){{.classes = 0}, {.classes = 2}});
        acf_baseline *b = baseline_of(t, 1);
        assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
        for (int k = 0; k < H; k++)
            seen[k] = x[2 * k * columns], drawn[k] = out[(2 * k + 1) * columns], mean[k % 2] += drawn[k] / (H / 2);
        const double far = acf_metric_wasserstein(seen, drawn, H, 1, scratch);
        if (!(far < 0.15)) fail_msg("%d columns: draws are %g away from what was observed", columns, far);
        if (columns == 2) acf_assert_close(mean[1] - mean[0], 3, 0.3, "the classes' distance");
        acf_baseline_free(b);
        acf_table_free(t);
    }
}

/* Closer cells come first: each of the four nearest gets one in five draws, and all others, at equal distance, share
 * one in five. */
static void closer_donors_come_first(void **state) {
    (void)state;
    enum { M = 900, NEAR = 4 };
    double x[2 * M], out[2 * M], near = 0, missing = 0;
    for (int i = 0; i < M; i++) {
        const bool hole = i >= M / 2, close = i < NEAR;
        x[2 * i] = hole ? 1 : close ? 1 : 100; /* the predictor: rows with missing cells resemble the first four */
        x[2 * i + 1] = hole ? NAN : close ? 10 + 1e-3 * i : 1000 + i % 7;
    }
    acf_table *t = table_of(x, M, 2, NULL);
    acf_baseline *b = baseline_of(t, 1);
    assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
    for (int i = M / 2; i < M; i++) missing++, near += out[2 * i + 1] < 100;
    acf_assert_close(near / missing, 0.8, 0.06, "draws from the four nearest");
    acf_baseline_free(b);
    acf_table_free(t);
}

/* On an even line the closest donors lie on both sides equally often: the mean of their signed distances is 0, not
 * 2.5. */
static void donors_come_from_both_sides(void **state) {
    (void)state;
    enum { M = 400 };
    double x[2 * M], out[2 * M], off = 0, missing = 0;
    for (int i = 0; i < M; i++) {
        const bool hole = i % 4 == 0 && i > M / 8 && i < M - M / 8;
        x[2 * i] = i, x[2 * i + 1] = hole ? NAN : i + 0.1 * normal(i, 60);
    }
    acf_table *t = table_of(x, M, 2, NULL);
    acf_baseline *b = baseline_of(t, 1);
    assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
    for (int i = 0; i < M; i++)
        if (!acf_table_present(x[2 * i + 1])) missing++, off += out[2 * i + 1] - i;
    assert_true(missing > 60 && fabs(off / missing) < 0.8);
    acf_baseline_free(b);
    acf_table_free(t);
}

static void results_depend_only_on_the_seed(void **state) {
    (void)state;
    world *w = make_world();
    double *out[3];
    for (int k = 0; k < 3; k++) {
        acf_baseline *b = baseline_of(w->t, k < 2 ? 1 : 2);
        assert_non_null(out[k] = malloc(2 * sizeof w->x));
        assert_int_equal(acf_baseline_draw(b, out[k]), ACF_OK);
        assert_int_equal(acf_baseline_draw(b, out[k] + CELLS), ACF_OK);
        acf_baseline_free(b);
    }
    assert_memory_equal(out[0], out[1], 2 * sizeof w->x);
    assert_true(memcmp(out[0], out[2], sizeof w->x) != 0);
    for (int k = 0; k < 3; k++) free(out[k]);
    free_world(w);
}

/* Missing cells in every column, not independent of each other: sweeps use the results of earlier sweeps. d = a + b
 * + c without noise. */
static void sweeps_work_together(void **state) {
    (void)state;
    enum { M = 1200 };
    static double x[M * 4], out[M * 4];
    double off = 0, n = 0;
    for (int i = 0; i < M; i++) {
        double f = normal(i, 5), row[4] = {f + 0.3 * normal(i, 6), f + 0.3 * normal(i, 7), f + 0.3 * normal(i, 8), 0};
        row[3] = row[0] + row[1] + row[2];
        memcpy(x + i * 4, row, sizeof row);
    }
    double truth[M * 4];
    memcpy(truth, x, sizeof x);
    for (int i = 0; i < M; i++) { /* one missing cell a row: the other three determine it */
        if (i % 2) x[i * 4 + i / 2 % 4] = NAN;
    }
    acf_table *t = table_of(x, M, 4, NULL);
    acf_baseline *b = baseline_of(t, 1);
    acf_baseline_point(b, out);
    for (int i = 0; i < M * 4; i++)
        if (isnan(x[i])) n++, off += pow(out[i] - truth[i], 2);
    assert_true(sqrt(off / n) < 0.15); /* the mean's error is above 1; one sweep alone leaves 0.3 */
    acf_baseline_free(b);
    acf_table_free(t);
}

/* Predictions are clamped to the range of the column's observed cells. */
static void predictions_stay_in_range(void **state) {
    (void)state;
    enum { M = 50 };
    double x[M * 2], out[M * 2];
    for (int i = 0; i < M; i++) x[i * 2] = i, x[i * 2 + 1] = 3 * i + normal(i, 50);
    x[0] = 1000, x[1] = NAN, x[2] = -1000, x[3] = NAN;
    acf_table *t = table_of(x, M, 2, NULL);
    acf_baseline *b = baseline_of(t, 1);
    acf_baseline_point(b, out);
    for (int i = 2; i < M; i++) assert_true(out[1] >= x[i * 2 + 1] - 1e-9 && out[3] <= x[i * 2 + 1] + 1e-9);
    assert_true(out[1] < 160 && out[3] > -10);
    acf_baseline_free(b);
    acf_table_free(t);
}

/* ---- odd tables -------------------------------------------------------------------------------------------------- */

static void check_complete(const acf_table *t) {
    int64_t live = acf_alloc_live();
    acf_baseline *b = baseline_of(t, 1);
    double *out = malloc((size_t)(t->N * t->D + 1) * sizeof *out);
    assert_non_null(out);
    for (int k = 0; k < 3; k++) {
        if (k == 0)
            acf_baseline_point(b, out);
        else
            assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
        for (int64_t i = 0; i < t->N * t->D; i++) {
            int32_t C = t->column[i % t->D].classes;
            assert_true(isfinite(out[i]));
            if (C) assert_true(out[i] >= 0 && out[i] < C && out[i] == floor(out[i]));
            if (acf_table_present(t->x[i])) assert_true(out[i] == t->x[i]);
        }
    }
    free(out);
    acf_baseline_free(b);
    assert_int_equal(acf_alloc_live(), live);
}

static void odd_tables_are_completed(void **state) {
    (void)state;
    const acf_column column[4] = {{NULL, 0}, {NULL, 3}, {NULL, 0}, {NULL, 1}};
    const double x[3 * 4] = {NAN, NAN, 5, NAN, /**/ NAN, 2, 5, 0, /**/ NAN, NAN, NAN, NAN};
    for (int64_t rows = 0; rows <= 3; rows++) { /* none, all missing, constant, one observed cell */
        acf_table *t = table_of(x, rows, 4, column);
        check_complete(t);
        acf_table_free(t);
    }
    double one[40];
    for (int i = 0; i < 40; i++) one[i] = i % 3 ? (double)(i % 7) : NAN;
    acf_table *t = table_of(one, 40, 1, NULL); /* no predictors */
    check_complete(t);
    acf_table_free(t);
    t = table_of(one, 40, 1, (const acf_column[]){{NULL, 7}});
    check_complete(t);
    acf_table_free(t);
    for (int i = 0; i < 40; i++) one[i] *= 1e300; /* squares overflow */
    t = table_of(one, 20, 2, NULL);
    check_complete(t);
    acf_table_free(t);
}

/* More predictors than a regression takes, and a class with thousands of values: the cost is bounded, the table is
 * completed, and the relevant predictor is used. */
static void wide_tables_and_many_classes(void **state) {
    (void)state;
    enum { M = 400, W = 140 };
    double *x = malloc(M * W * sizeof *x), *out = malloc(M * W * sizeof *out), off = 0, n = 0;
    acf_column *column = calloc(W, sizeof *column);
    assert_true(x && out && column);
    column[1].classes = 3000;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < W; j++) {
            x[i * W + j] = j == 1 ? (double)(i % 3 ? i % 40 : 40 + i) : normal(i, 1000 + (uint32_t)j);
            if (j == 0) x[i * W] = i % 5 ? normal(i, 1000 + W - 1) : NAN; /* equal to the last column */
            if (j == 1 && i % 4 == 0) x[i * W + 1] = NAN;
        }
    acf_table *t = table_of(x, M, W, column);
    check_complete(t);
    acf_baseline *b = baseline_of(t, 1);
    acf_baseline_point(b, out);
    for (int i = 0; i < M; i += 5) n++, off += pow(out[i * W] - x[i * W + W - 1], 2);
    assert_true(sqrt(off / n) < 0.2);
    acf_baseline_free(b);
    acf_table_free(t);
    free(x), free(out), free(column);
}

/* Classes without an indicator are drawn about as often as they occur. */
static void rare_classes_are_drawn(void **state) {
    (void)state;
    enum { M = 6000 };
    double *x = malloc(M * 2 * sizeof *x), *out = malloc(M * 2 * sizeof *out), rare = 0, missing = 0;
    assert_true(x && out);
    for (int i = 0; i < M; i++) {
        x[i * 2] = normal(i, 40);
        x[i * 2 + 1] = i % 2   ? NAN
                       : i % 8 ? (double)(i / 2 % 25)
                               : (double)(100 + i / 8 % 200); /* a quarter has one of 200 classes */
    }
    acf_table *t = table_of(x, M, 2, (const acf_column[]){{NULL, 0}, {NULL, 300}});
    acf_baseline *b = baseline_of(t, 1);
    assert_int_equal(acf_baseline_draw(b, out), ACF_OK);
    for (int i = 1; i < M; i += 2) missing++, rare += out[i * 2 + 1] >= 100;
    acf_assert_close(rare / missing, 0.25, 0.04, "share of rare classes");
    acf_baseline_free(b);
    acf_table_free(t);
    free(x), free(out);
}

static void memory_failing_in_turn(void **state) {
    (void)state;
    double x[60], out[60];
    for (int i = 0; i < 60; i++) x[i] = i % 7 == 0 ? NAN : i % 3 == 1 ? (double)(i % 4 % 3) : normal(i, 9);
    acf_table *t = table_of(x, 20, 3, (const acf_column[]){{NULL, 0}, {NULL, 3}, {NULL, 0}});
    acf_status status = ACF_EMEMORY;
    for (int64_t at = 1; status != ACF_OK; at++) {
        int64_t live = acf_alloc_live();
        acf_baseline *b = NULL;
        acf_alloc_fail_at(at);
        status = acf_baseline_mean(t, out);
        if (!status) status = acf_baseline_create(t, 1, &b);
        if (!status) status = acf_baseline_draw(b, out);
        acf_alloc_fail_at(0);
        acf_baseline_free(b);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
        assert_in_range(at, 1, 200);
    }
    acf_table_free(t);
}

/* ---- comparison with scikit-learn -------------------------------------------------------------------------------- */

static const double *array(const acf_safetensors *f, const char *table, const char *name, int64_t *dim) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", table, name);
    const acf_safetensors_tensor *t = acf_safetensors_find(f, key);
    if (!t) fail_msg("the script has not written '%s'", key);
    if (dim) dim[0] = t->dim[0], dim[1] = t->dim[1];
    return t->data;
}

typedef struct scores {
    double nrmse, pfc, crps, cover, w1;
} scores;

/* Scores of the cells that t lacks and truth has: a point for each, and DRAWS draws. */
static scores score(const acf_table *t, const double *truth, const double *point, const double *drawn) {
    int64_t cells = t->N * t->D;
    double *a = malloc((size_t)t->N * (DRAWS + 4) * sizeof *a), *value = a + t->N, *d = value + t->N,
           *scratch = d + DRAWS * t->N;
    double numbers = 0, wrong = 0, target = 0;
    scores f = {0};
    assert_non_null(a);
    for (int64_t j = 0; j < t->D; j++) {
        int64_t n = 0;
        for (int64_t i = j; i < cells; i += t->D)
            if (isnan(t->x[i]) && !isnan(truth[i])) a[n] = truth[i], value[n++] = point[i];
        for (int64_t k = 0, at = 0; k < DRAWS; k++)
            for (int64_t i = j; i < cells; i += t->D)
                if (isnan(t->x[i]) && !isnan(truth[i])) d[at++] = drawn[k * cells + i];
        if (t->column[j].classes) {
            target += (double)n, wrong += (double)acf_metric_wrong(a, value, n);
            continue;
        }
        double s = acf_metric_scale(truth + j, t->N, t->D);
        numbers++;
        f.nrmse += acf_metric_nrmse(a, value, n, s);
        f.crps += acf_metric_crps(a, d, DRAWS, n, s, scratch);
        f.cover += acf_metric_coverage(a, d, DRAWS, n, 0.9, s, &(acf_shared){0}, scratch);
        for (int k = 0; k < DRAWS; k++) f.w1 += acf_metric_wasserstein(a, d + k * n, n, s, scratch) / DRAWS;
    }
    free(a);
    return (scores){f.nrmse / numbers, wrong / target, f.crps / numbers, f.cover / numbers, f.w1 / numbers};
}

/* One table: points must be no worse than scikit-learn's, draws similar to those of mice. */
static void compare(const acf_safetensors *f, const char *name) {
    int64_t dim[2];
    const double *x = array(f, name, "x", dim), *truth = array(f, name, "truth", NULL),
                 *classes = array(f, name, "classes", NULL);
    const double *peer = array(f, name, "score", NULL);
    acf_column column[32] = {{0}};
    for (int64_t j = 0; j < dim[1]; j++) column[j].classes = (int32_t)classes[j];
    acf_table *t = table_of(x, dim[0], dim[1], column);
    acf_baseline *b = baseline_of(t, 1);
    int64_t cells = dim[0] * dim[1];
    double *out = malloc((size_t)(cells * (DRAWS + 1)) * sizeof *out);
    assert_non_null(out);
    acf_baseline_point(b, out);
    for (int k = 1; k <= DRAWS; k++) assert_int_equal(acf_baseline_draw(b, out + k * cells), ACF_OK);
    scores s = score(t, truth, out, out + cells);
    print_message("%-8s NRMSE %.3f (scikit-learn %.3f)  PFC %.3f (%.3f)  CRPS %.3f (mice %.3f)  "
                  "90 %% %.3f (%.3f)  W1 %.3f (%.3f)\n",
                  name, s.nrmse, peer[0], s.pfc, peer[1], s.crps, peer[2], s.cover, peer[3], s.w1, peer[4]);
    assert_true(s.nrmse < 1.02 * peer[0] && s.nrmse > 0.9 * peer[0]);
    assert_true(isnan(peer[1]) || s.pfc < 1.02 * peer[1]);
    assert_true(s.crps < 1.05 * peer[2] && s.w1 < 1.3 * peer[4] && fabs(s.cover - peer[3]) < 0.03);
    free(out);
    acf_baseline_free(b);
    acf_table_free(t);
}

static void is_as_good_as_scikit_learn(void **state) {
    (void)state;
    const char *shared = getenv("ACF_SHARED"), *const names[] = {"wine", "abalone", "breast", "yeast"};
    char path[64], command[512];
    snprintf(path, sizeof path, "/tmp/acflow-baseline-%d.safetensors", (int)getpid());
    snprintf(command, sizeof command, "/usr/bin/python3 tests/baseline_peer.py '%s' '%s' 2>/dev/null",
             shared ? shared : "../shared", path);
    int status = system(command);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        acf_skip("the comparison with scikit-learn needs python3-sklearn, python3-pandas, "
                 "../shared/peers and ../shared/data");
    acf_safetensors *f;
    if (acf_safetensors_open(path, &f)) fail_msg("%s", acf_error());
    unlink(path);
    for (int k = 0; k < 4; k++) compare(f, names[k]);
    acf_safetensors_close(f);
}

ACF_TESTS(baseline, cmocka_unit_test(means_and_modes), cmocka_unit_test(points_are_nearly_the_best_there_are),
          cmocka_unit_test(draws_have_the_right_spread), cmocka_unit_test(draws_are_values_that_occur),
          cmocka_unit_test(ties_are_broken_at_random), cmocka_unit_test(closer_donors_come_first),
          cmocka_unit_test(donors_come_from_both_sides), cmocka_unit_test(results_depend_only_on_the_seed),
          cmocka_unit_test(sweeps_work_together), cmocka_unit_test(predictions_stay_in_range),
          cmocka_unit_test(odd_tables_are_completed), cmocka_unit_test(wide_tables_and_many_classes),
          cmocka_unit_test(rare_classes_are_drawn), cmocka_unit_test(memory_failing_in_turn),
          cmocka_unit_test(is_as_good_as_scikit_learn))
