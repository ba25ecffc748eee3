/* Scores against naive references, known values, and the Python function used to compare other imputers. */
#include "infer/metrics.h"

#include "base/rng.h"
#include "base/safetensors.h"
#include "harness/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static double normal(int64_t i, uint32_t draw) {
    return acf_rng_normal((acf_rng_counter){11, (uint64_t)i, ACF_STREAM_TEST, 0, draw});
}

static void scale_is_the_deviation_of_what_is_known(void **state) {
    (void)state;
    const double x[8] = {1, 100, NAN, 200, 3, NAN, 5, 400}; /* every second one: 1, -, 3, 5 */
    acf_assert_close(acf_metric_scale(x, 4, 2), sqrt(8.0 / 3), 1e-15, "deviation of 1, 3, 5");
    acf_assert_close(acf_metric_scale((const double[]){-1e200, 1e200}, 2, 1) / 1e200, 1, 1e-15, "large values");
    assert_true(acf_metric_scale((const double[]){7, 7, 7}, 3, 1) == 0);
    assert_true(acf_metric_scale((const double[]){NAN, NAN}, 2, 1) == 0);
}

static void points(void **state) {
    (void)state;
    const double truth[4] = {1, 2, 3, 10}, value[4] = {1, 4, 2, 6};
    acf_assert_close(acf_metric_nrmse(truth, value, 4, 2), sqrt(21.0 / 4) / 2, 1e-15, "NRMSE");
    acf_assert_close(acf_metric_nmae(truth, value, 4, 2), 7.0 / 4 / 2, 1e-15, "absolute error");
    assert_int_equal(acf_metric_wrong(truth, value, 4), 3);
    assert_true(isnan(acf_metric_nrmse(truth, value, 0, 1)));
}

/* Wasserstein-1 by its definition: the cheapest way to move one set of values onto the other. */
static double cheapest(const double *a, double *b, int n, int fixed) {
    double best = INFINITY, sum = 0;
    if (fixed == n) {
        for (int i = 0; i < n; i++) sum += fabs(a[i] - b[i]);
        return sum / n;
    }
    for (int i = fixed; i < n; i++) {
        double swap = b[fixed];
        b[fixed] = b[i], b[i] = swap;
        best = fmin(best, cheapest(a, b, n, fixed + 1));
        b[i] = b[fixed], b[fixed] = swap;
    }
    return best;
}

static void wasserstein_is_the_cheapest_move(void **state) {
    (void)state;
    enum { N = 6 };
    double a[N], b[N], scratch[2 * N];
    for (uint32_t k = 0; k < 5; k++) {
        for (int i = 0; i < N; i++) a[i] = round(3 * normal(i, k)), b[i] = 2 * normal(10 + i, k);
        acf_assert_close(acf_metric_wasserstein(a, b, N, 0.5, scratch), 2 * cheapest(a, b, N, 0), 1e-13, "W1");
        acf_assert_close(acf_metric_wasserstein(b, a, N, 0.5, scratch), 2 * cheapest(a, b, N, 0), 1e-13,
                         "W1, the other way");
    }
}

static void variation_is_half_the_difference_of_shares(void **state) {
    (void)state;
    const double truth[5] = {0, 0, 1, 3, 3}, value[5] = {3, 1, 1, 1, 0};
    int64_t scratch[4];
    acf_assert_close(acf_metric_variation(truth, value, 5, 4, scratch), 0.5 * (1 + 2 + 0 + 1) / 5, 1e-15,
                     "total variation");
    assert_true(acf_metric_variation(truth, truth, 5, 4, scratch) == 0);
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

static double naive_crps(const double *truth, const double *drawn, int m, int n, double scale) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double off = 0, apart = 0;
        for (int k = 0; k < m; k++) off += fabs(drawn[k * n + i] - truth[i]) / m;
        for (int k = 0; k < m; k++)
            for (int l = 0; l < m; l++) apart += fabs(drawn[k * n + i] - drawn[l * n + i]) / (m * (m - 1));
        sum += off - apart / 2;
    }
    return sum / n / scale;
}

static void crps_by_its_definition(void **state) {
    (void)state;
    enum { N = 7, M = 6 };
    double truth[N], drawn[M * N], scratch[M];
    for (int i = 0; i < N; i++) {
        truth[i] = normal(i, 0);
        for (int k = 0; k < M; k++) drawn[k * N + i] = round(2 * normal(i, 1 + (uint32_t)k)) / 2;
    }
    for (int m = 2; m <= M; m++)
        acf_assert_close(acf_metric_crps(truth, drawn, m, N, 0.25, scratch), naive_crps(truth, drawn, m, N, 0.25),
                         1e-13, "CRPS");
}

/* Draws from the truth's own distribution: the fair score is 1/sqrt(pi) for a standard normal, for any number of
 * draws; an interval of 90 % covers 90 %, from 19 draws on. */
static void draws_from_the_truth(void **state) {
    (void)state;
    enum { N = 40000, M = 25 };
    double *truth = malloc(N * sizeof *truth), *drawn = malloc(M * N * sizeof *drawn), scratch[M];
    assert_true(truth && drawn);
    for (int i = 0; i < N; i++) truth[i] = normal(i, 0);
    for (int k = 0; k < M; k++)
        for (int i = 0; i < N; i++) drawn[k * N + i] = normal(i, 1 + (uint32_t)k);
    const int64_t few[3] = {2, 5, M}, enough[3] = {19, 20, M};
    for (int k = 0; k < 3; k++) {
        acf_assert_close(acf_metric_crps(truth, drawn, few[k], N, 1, scratch), 0.5641896, 0.008, "CRPS of the truth");
        acf_assert_close(acf_metric_coverage(truth, drawn, enough[k], N, 0.9, 1, NULL, scratch), 0.9, 0.003,
                         "coverage of 90 %");
    }
    acf_assert_close(acf_metric_coverage(truth, drawn, 20, N, 0.5, 1, NULL, scratch), 0.5, 0.005, "coverage of 50 %");
    acf_assert_close(acf_metric_coverage(truth, drawn, 9, N, 0.9, 1, NULL, scratch), 0.8, 0.005,
                     "nine draws cover 8/10 at most");
    free(truth);
    free(drawn);
}

static void coverage_by_hand(void **state) {
    (void)state;
    enum { M = 20 };
    double drawn[M], scratch[M], truth;
    for (int k = 0; k < M; k++) drawn[(k * 7) % M] = 10 * k; /* 0, 10, ... 190 in some order */
    const double inside[] = {0.5, 100, 189.5}, outside[] = {0.49, 189.51, -3};
    for (int i = 0; i < 3; i++) {
        truth = inside[i];
        assert_true(acf_metric_coverage(&truth, drawn, M, 1, 0.9, 1, NULL, scratch) == 1);
        truth = outside[i];
        assert_true(acf_metric_coverage(&truth, drawn, M, 1, 0.9, 1, NULL, scratch) == 0);
    }
    for (int k = 0; k < M; k++) drawn[k] = truth = 0.1; /* certain and right */
    assert_true(acf_metric_coverage(&truth, drawn, M, 1, 0.9, 1, NULL, scratch) == 1);
    for (int k = 0; k < M; k++) drawn[k] = k < 19 ? 1 : 2; /* 19 of 20 are 1, which is enough */
    truth = 1.5;
    assert_true(acf_metric_coverage(&truth, drawn, M, 1, 0.9, 1, NULL, scratch) == 0);
}

static void means_and_votes(void **state) {
    (void)state;
    const double drawn[12] = {0, 2, 1, 3, /**/ 3, 2, 1, 1, /**/ 3, 0, 3, 2}; /* three draws of four cells */
    double value[4];
    int64_t scratch[4];
    acf_metric_mean(drawn, 3, 4, value);
    const double mean[4] = {2, 4.0 / 3, 5.0 / 3, 2};
    for (int i = 0; i < 4; i++) acf_assert_close(value[i], mean[i], 1e-15, "mean of draws");
    acf_metric_vote(drawn, 3, 4, 4, scratch, value);
    const double vote[4] = {3, 2, 1, 1}; /* 3 1 2 is a tie: the lowest */
    for (int i = 0; i < 4; i++) assert_true(value[i] == vote[i]);
}

static void repeated_masks(void **state) {
    (void)state;
    acf_mean_deviation r = acf_metric_repeated((const double[]){1, NAN, 2, 6}, 4);
    acf_assert_close(r.mean, 3, 1e-15, "mean over masks");
    acf_assert_close(r.deviation, sqrt(7), 1e-15, "deviation over masks");
    r = acf_metric_repeated((const double[]){4}, 1);
    assert_true(r.mean == 4 && isnan(r.deviation));
    r = acf_metric_repeated((const double[]){NAN, NAN}, 2);
    assert_true(isnan(r.mean) && isnan(r.deviation));
}

/* ---- the comparison with other imputers -------------------------------------------------------------------------- */

typedef struct peer {
    acf_safetensors *f;
    int64_t N, D;
    const double *x, *gone, *cat, *tables; /* (N,D), (N,D), (D), (20,N,D) */
} peer;

static const double *array(const acf_safetensors *f, const char *name) {
    const acf_safetensors_tensor *t = acf_safetensors_find(f, name);
    if (!t) fail_msg("the script has not written '%s'", name);
    assert_int_equal(t->dtype, ACF_SAFETENSORS_F64);
    return t->data;
}

static peer open_peer(char path[64]) {
    const char *shared = getenv("ACF_SHARED");
    char command[512];
    snprintf(path, 64, "/tmp/acflow-score-%d.safetensors", (int)getpid());
    snprintf(command, sizeof command, "/usr/bin/python3 tests/score_peer.py '%s/peers' '%s' 2>/dev/null",
             shared ? shared : "../shared", path);
    int status = system(command);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        acf_skip(
            "agreement with the scores of other imputers needs python3-sklearn, python3-pandas and ../shared/peers");
    peer p = {0};
    if (acf_safetensors_open(path, &p.f)) fail_msg("%s", acf_error());
    p.x = array(p.f, "x"), p.gone = array(p.f, "gone"), p.cat = array(p.f, "cat"), p.tables = array(p.f, "tables");
    p.N = acf_safetensors_find(p.f, "x")->dim[0], p.D = acf_safetensors_find(p.f, "x")->dim[1];
    return p;
}

enum { FIRST = 5, DRAWS = 20, ROOM = 256 }; /* the Python point scores are those of the first five tables */

typedef struct cells {
    int64_t n, classes;
    double truth[ROOM], drawn[DRAWS * ROOM];
} cells;

static void column_of(const peer *p, int64_t j, cells *c) {
    int64_t rows[ROOM];
    *c = (cells){0};
    for (int64_t i = 0; i < p->N; i++) {
        if (p->cat[j] > 0 && p->x[i * p->D + j] >= (double)c->classes) c->classes = 1 + (int64_t)p->x[i * p->D + j];
        if (p->gone[i * p->D + j] > 0) rows[c->n] = i, c->truth[c->n++] = p->x[i * p->D + j];
    }
    for (int64_t k = 0; k < DRAWS; k++)
        for (int64_t i = 0; i < c->n; i++) c->drawn[k * c->n + i] = p->tables[(k * p->N + rows[i]) * p->D + j];
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Coverage of central intervals, with which other imputers are scored. */
static double covered_centrally(const cells *c, double s) {
    double x[DRAWS], inside = 0;
    for (int64_t i = 0; i < c->n; i++) {
        for (int64_t k = 0; k < DRAWS; k++) x[k] = c->drawn[k * c->n + i];
        qsort(x, DRAWS, sizeof *x, ascending);
        const acf_interval in = acf_interval_central(x, DRAWS, 0.9);
        inside += c->truth[i] >= in.low - 1e-9 * s && c->truth[i] <= in.high + 1e-9 * s;
    }
    return inside / (double)c->n;
}

static void agrees_with_the_scores_of_other_imputers(void **state) {
    (void)state;
    static cells c;
    char path[64];
    peer p = open_peer(path);
    double nrmse = 0, nrmse1 = 0, w1 = 0, w1_point = 0, crps = 0, cover = 0, wrong = 0, wrong1 = 0, tv = 0, target = 0,
           numbers = 0, classes = 0;
    double value[ROOM], scratch[2 * ROOM];
    int64_t count[ROOM];
    for (int64_t j = 0; j < p.D; j++) {
        column_of(&p, j, &c);
        double s = acf_metric_scale(p.x + j, p.N, p.D);
        if (p.cat[j] > 0) {
            acf_metric_vote(c.drawn, FIRST, c.n, c.classes, count, value);
            wrong += (double)acf_metric_wrong(c.truth, value, c.n), target += (double)c.n, classes++;
            for (int k = 0; k < FIRST; k++) {
                tv += acf_metric_variation(c.truth, c.drawn + k * c.n, c.n, c.classes, count) / FIRST;
                wrong1 += (double)acf_metric_wrong(c.truth, c.drawn + k * c.n, c.n) / FIRST;
            }
            continue;
        }
        numbers++;
        acf_metric_mean(c.drawn, FIRST, c.n, value);
        nrmse += acf_metric_nrmse(c.truth, value, c.n, s);
        crps += acf_metric_crps(c.truth, c.drawn, DRAWS, c.n, s, scratch);
        cover += covered_centrally(&c, s);
        w1_point += acf_metric_wasserstein(c.truth, c.drawn, c.n, s, scratch);
        for (int k = 0; k < FIRST; k++) {
            w1 += acf_metric_wasserstein(c.truth, c.drawn + k * c.n, c.n, s, scratch) / FIRST;
            nrmse1 += acf_metric_nrmse(c.truth, c.drawn + k * c.n, c.n, s) / FIRST;
        }
    }
    acf_assert_close(nrmse / numbers, *array(p.f, "score.nrmse"), 1e-12, "NRMSE");
    acf_assert_close(nrmse1 / numbers, *array(p.f, "score.nrmse_single"), 1e-12, "NRMSE of single draws");
    acf_assert_close(crps / numbers, *array(p.f, "score.crps"), 1e-12, "CRPS");
    acf_assert_close(cover / numbers, *array(p.f, "score.cov90"), 1e-12, "coverage");
    acf_assert_close(w1 / numbers, *array(p.f, "score.w1"), 1e-12, "W1");
    acf_assert_close(w1_point / numbers, *array(p.f, "point.w1"), 1e-12, "W1 of one table");
    acf_assert_close(wrong / target, *array(p.f, "score.pfc"), 1e-12, "PFC");
    acf_assert_close(wrong1 / target, *array(p.f, "score.pfc_single"), 1e-12, "PFC of single draws");
    acf_assert_close(tv / classes, *array(p.f, "score.tv"), 1e-12, "total variation");
    acf_safetensors_close(p.f);
    unlink(path);
}

ACF_TESTS(metrics, cmocka_unit_test(scale_is_the_deviation_of_what_is_known), cmocka_unit_test(points),
          cmocka_unit_test(wasserstein_is_the_cheapest_move),
          cmocka_unit_test(variation_is_half_the_difference_of_shares), cmocka_unit_test(crps_by_its_definition),
          cmocka_unit_test(draws_from_the_truth), cmocka_unit_test(coverage_by_hand), cmocka_unit_test(means_and_votes),
          cmocka_unit_test(repeated_masks), cmocka_unit_test(agrees_with_the_scores_of_other_imputers))
