/* Models of several ensemble members: every answer is that of the mixture of the members' own answers. */
#include "infer/member.h"

#include "harness/lab.h"
#include "harness/model_file_lab.h"

#include <math.h>
#include <string.h>

enum { ROWS = 41, COLS = 4, CELLS = ROWS * COLS, K = 3, CLASS = 2, WHOLE = 1 };

typedef struct bench {
    acf_device *dev;
    acf_table *table;
    acf_model *m;        /* of K members */
    acf_session *s;      /* of all of them */
    acf_session *one[K]; /* of each alone */
    double x[CELLS];
} bench;

/* Measurements, whole numbers, a category, measurements. */
static void open_bench(bench *b, int64_t batch) {
    static const acf_column column[COLS] = {{NULL, 0}, {NULL, 0}, {NULL, 3}, {NULL, 0}};
    for (int i = 0; i < CELLS; i++) {
        double u = acf_lab_random(1, i, 0, 1);
        b->x[i] = i % COLS == CLASS ? floor(3 * u) : i % COLS == WHOLE ? floor(20 * u) : 10 * u;
        if (i % 5 == 2 || i % 7 == 3) b->x[i] = (double)NAN; /* two in some rows */
    }
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_table_make(b->x, NULL, ROWS, COLS, column, &b->table), ACF_OK);
    b->m = NULL;
    for (int k = 0; k < K; k++) {
        acf_model *m = acf_lab_fitted(b->dev, b->table, NULL, &(acf_encoding){k != 1, true}, (uint64_t)k + 3,
                                      0.3);                                       /* one has an encoding of its own */
        assert_int_equal(acf_session_open(b->dev, m, batch, &b->one[k]), ACF_OK); /* before others are appended */
        if (k)
            acf_model_append(b->m, m);
        else
            b->m = m;
    }
    assert_int_equal(acf_session_open(b->dev, b->m, batch, &b->s), ACF_OK);
}

static void close_bench(bench *b) {
    for (int k = 0; k < K; k++) acf_session_free(b->one[k]);
    acf_session_free(b->s);
    acf_model_free(b->m);
    acf_table_free(b->table);
    acf_device_close(b->dev);
}

static const acf_query all = {0};

/* ---- densities --------------------------------------------------------------------------------------------------- */

static void densities_are_averaged(void **state) {
    (void)state;
    bench b;
    double lp[ROWS], cells[CELLS], one[K][CELLS];
    open_bench(&b, 16);
    assert_int_equal(acf_session_query_logp(b.s, b.table, all, lp), ACF_OK);
    for (int k = 0; k < K; k++) assert_int_equal(acf_session_query_logp(b.one[k], b.table, all, one[k]), ACF_OK);
    for (int i = 0; i < ROWS; i++)
        acf_assert_close(lp[i], log((exp(one[0][i]) + exp(one[1][i]) + exp(one[2][i])) / 3), 1e-9, "log p");
    assert_int_equal(acf_session_query_cells(b.s, b.table, cells), ACF_OK);
    for (int k = 0; k < K; k++) assert_int_equal(acf_session_query_cells(b.one[k], b.table, one[k]), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        assert_int_equal(isnan(cells[i]), isnan(b.x[i]));
        if (!isnan(cells[i]))
            acf_assert_close(cells[i], log((exp(one[0][i]) + exp(one[1][i]) + exp(one[2][i])) / 3), 1e-9,
                             "log p of a cell");
    }
    close_bench(&b);
}

/* Far away, where every exp underflows, the largest log-density still counts. */
static void densities_far_away_are_numbers(void **state) {
    (void)state;
    bench b;
    double x[COLS] = {1e9, 1e9, 1, -1e9}, lp, one[K];
    acf_table *t;
    open_bench(&b, 16);
    assert_int_equal(acf_table_make(x, NULL, 1, COLS, b.table->column, &t), ACF_OK);
    assert_int_equal(acf_session_query_logp(b.s, t, all, &lp), ACF_OK);
    for (int k = 0; k < K; k++) assert_int_equal(acf_session_query_logp(b.one[k], t, all, &one[k]), ACF_OK);
    const double most = fmax(one[0], fmax(one[1], one[2]));
    assert_true(most < -800 && lp <= most && lp >= most - log(3) - 1e-9);
    acf_table_free(t);
    close_bench(&b);
}

static void the_mixture_integrates_to_one(void **state) {
    (void)state;
    enum { N = 16001 }; /* near a bound the density has narrow pieces */
    bench b;
    static double x[N * COLS], lp[N];
    static uint8_t target[N * COLS];
    open_bench(&b, 512);
    double mean = b.m->encoder->mean[3], scale = b.m->encoder->scale[3], step = 40 * scale / (N - 1), sum = 0;
    for (int i = 0; i < N * COLS; i++) {
        x[i] = i % COLS == 3 ? mean - 20 * scale + step * (i / COLS) : 1;
        target[i] = i % COLS == 3;
    }
    acf_table *grid;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, b.table->column, &grid), ACF_OK);
    if (acf_session_query_logp(b.s, grid, (acf_query){.target = target}, lp)) fail_msg("%s", acf_error());
    for (int i = 0; i < N; i++) sum += exp(lp[i]) * step;
    acf_assert_close(sum, 1, 3e-3, "integral over one column");
    acf_table_free(grid);
    close_bench(&b);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* Sum over the classes and integral over the last column of a row's joint density; the other columns are missing. */
static double joint_integral(acf_session *s, const bench *b, const acf_encoder *e) {
    enum { GRID = 4001, N = 3 * GRID };
    static double x[N * COLS], lp[N];
    const double step = 40 * e->scale[3] / (GRID - 1);
    double sum = 0;
    acf_table *grid;
    for (int i = 0; i < N; i++) {
        x[i * COLS] = x[i * COLS + WHOLE] = (double)NAN;
        x[i * COLS + CLASS] = i % 3, x[i * COLS + 3] = e->mean[3] - 20 * e->scale[3] + step * (i / 3);
    }
    assert_int_equal(acf_table_make(x, NULL, N, COLS, b->table->column, &grid), ACF_OK);
    if (acf_session_query_logp(s, grid, all, lp)) fail_msg("%s", acf_error());
    for (int i = 0; i < N; i++) sum += exp(lp[i]) * step;
    acf_table_free(grid);
    return sum;
}

/* log p is that of the mean of several densities; draws alternate between them. */
static void orders_are_averaged(void **state) {
    (void)state;
    bench b;
    double lp[4][ROWS], out[2][CELLS], plain[2][CELLS];
    int other = 0;
    open_bench(&b, 16);
    acf_model *m = acf_lab_fitted(b.dev, b.table, "attention", NULL, 3, 0.3);
    acf_session *s;
    assert_int_equal(acf_session_open(b.dev, m, 512, &s), ACF_OK);
    for (uint32_t d = 0; d < 2; d++) assert_int_equal(acf_session_query_draw(s, b.table, all, 1, d, plain[d]), ACF_OK);
    for (int k = 1; k <= 3; k++) {
        assert_int_equal(acf_session_set_orders(s, k), ACF_OK);
        assert_int_equal(acf_session_query_logp(s, b.table, all, lp[k]), ACF_OK);
        acf_assert_close(joint_integral(s, &b, m->encoder), 1, 3e-3, "integral over an average of orders");
    }
    for (int i = 0; i < ROWS; i++) { /* log p of the row in the second and third order */
        const double one = exp(lp[1][i]), two = 2 * exp(lp[2][i]) - one, three = 3 * exp(lp[3][i]) - one - two;
        assert_true(two > 0 && three > 0);
        other += fabs(log(two / one)) > 1e-3 && fabs(log(three / two)) > 1e-3;
    }
    assert_true(other > ROWS / 4);
    assert_int_equal(acf_session_set_orders(s, 2), ACF_OK);
    for (uint32_t d = 0; d < 2; d++) assert_int_equal(acf_session_query_draw(s, b.table, all, 1, d, out[d]), ACF_OK);
    assert_memory_equal(out[0], plain[0], sizeof out[0]);
    assert_memory_not_equal(out[1], plain[1], sizeof out[1]);
    assert_int_equal(acf_session_set_orders(s, 0), ACF_EUSAGE);
    assert_string_equal(acf_error(), "0 orders; expected at least 1");
    acf_session_free(s);
    acf_model_free(m);
    close_bench(&b);
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

/* The member that drew a row; -1: none. */
static int drawn_by(const bench *b, const double *row, const double one[K][CELLS], int i) {
    int who = -1, n = 0;
    for (int k = 0; k < K; k++)
        if (memcmp(row, one[k] + i * COLS, COLS * sizeof *row) == 0) who = k, n++;
    (void)b;
    return n == 1 ? who : -1;
}

/* All rows of a draw are of one member. Three consecutive draws are of all three members, and the first is random. */
static void draws_alternate_between_members(void **state) {
    (void)state;
    enum { DRAWS = 4, SEEDS = 16 };
    bench b;
    double out[CELLS], one[K][CELLS];
    int who[DRAWS], first[K] = {0}, known = 0;
    open_bench(&b, 16);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (uint32_t d = 0; d < DRAWS; d++) {
            assert_int_equal(acf_session_query_draw(b.s, b.table, all, seed, d, out), ACF_OK);
            for (int k = 0; k < K; k++)
                assert_int_equal(acf_session_query_draw(b.one[k], b.table, all, seed, d, one[k]), ACF_OK);
            who[d] = -1;
            for (int i = 0; i < ROWS; i++) {
                const int it = drawn_by(&b, out + i * COLS, (const double(*)[CELLS])one, i);
                if (it < 0) continue; /* complete, or two members agree, as whole numbers do */
                if (who[d] >= 0) assert_int_equal(it, who[d]);
                who[d] = it, known++;
            }
            if (d)
                assert_int_equal(who[d], (who[d - 1] + 1) % K);
            else
                first[who[0]]++;
        }
    assert_true(known > 10 * SEEDS * DRAWS);
    for (int k = 0; k < K; k++) assert_true(first[k] >= 2);
    close_bench(&b);
}

/* The same member draws a row with the same numbers: alone, in another batch, or with another number of threads. */
static void draws_of_a_row_ignore_other_rows(void **state) {
    (void)state;
    bench b;
    double whole[CELLS], one[COLS], lp[ROWS], alone, again[CELLS], mean[2][CELLS];
    const double tol = 5000 * (double)ACF_REAL_EPS;
    open_bench(&b, 64);
    assert_int_equal(acf_session_query_draw(b.s, b.table, all, 5, 1, whole), ACF_OK);
    assert_int_equal(acf_session_query_logp(b.s, b.table, all, lp), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, b.table, all, mean[0]), ACF_OK);
    for (int i = 0; i < ROWS; i++) {
        acf_table *t;
        assert_int_equal(acf_table_make(b.x + i * COLS, NULL, 1, COLS, b.table->column, &t), ACF_OK);
        t->first_id = (uint64_t)i;
        assert_int_equal(acf_session_query_draw(b.s, t, all, 5, 1, one), ACF_OK);
        assert_int_equal(acf_session_query_logp(b.s, t, all, &alone), ACF_OK);
        for (int j = 0; j < COLS; j++) acf_assert_close(one[j], whole[i * COLS + j], tol, "a draw alone");
        acf_assert_close(alone, lp[i], tol, "log p alone");
        acf_table_free(t);
    }
    acf_session_free(b.s);
    assert_int_equal(acf_session_open(b.dev, b.m, 5, &b.s), ACF_OK);
    assert_int_equal(acf_session_query_draw(b.s, b.table, all, 5, 1, again), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, b.table, all, mean[1]), ACF_OK);
    for (int i = 0; i < CELLS; i++)
        acf_assert_close(again[i], whole[i], tol, "a draw in small batches"),
            acf_assert_close(mean[1][i], mean[0][i], tol, "a mean");
    close_bench(&b);
}

static void check_summary(uint64_t seed) {
    enum { DRAWS = 8 };
    bench b;
    double one[CELLS], sum[CELLS] = {0}, least[CELLS], mean[CELLS], quantile[CELLS];
    open_bench(&b, 10);
    for (int i = 0; i < CELLS; i++) least[i] = INFINITY;
    for (uint32_t d = 0; d < DRAWS; d++) {
        assert_int_equal(acf_session_query_draw(b.s, b.table, all, seed, d, one), ACF_OK);
        for (int i = 0; i < CELLS; i++) sum[i] += one[i] / DRAWS, least[i] = fmin(least[i], one[i]);
    }
    assert_int_equal(acf_session_query_summary(b.s, b.table, all, seed, DRAWS, (double[]){0}, 1, mean, quantile),
                     ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        assert_int_equal(isnan(mean[i]), !isnan(b.x[i]));
        if (isnan(mean[i]) || i % COLS == CLASS) continue;
        acf_assert_close(mean[i], sum[i], 5000 * (double)ACF_REAL_EPS, "mean of draws");
        acf_assert_close(quantile[i], least[i], 5000 * (double)ACF_REAL_EPS, "least of draws");
    }
    close_bench(&b);
}

static void summaries_are_of_the_draws(void **state) {
    (void)state;
    for (uint64_t seed = 8; seed < 12; seed++) check_summary(seed); /* the first member is random */
}

/* ---- single values ----------------------------------------------------------------------------------------------- */

/* log p of the three classes of row i; other missing cells are left out. */
static int best_class(const bench *b, int i) {
    double x[3 * COLS], lp[3];
    uint8_t target[3 * COLS];
    acf_table *t;
    for (int c = 0; c < 3 * COLS; c++)
        x[c] = c % COLS == CLASS ? c / COLS : b->x[i * COLS + c % COLS], target[c] = c % COLS == CLASS;
    assert_int_equal(acf_table_make(x, NULL, 3, COLS, b->table->column, &t), ACF_OK);
    assert_int_equal(acf_session_query_logp(b->s, t, (acf_query){.target = target}, lp), ACF_OK);
    acf_table_free(t);
    return lp[0] >= lp[1] && lp[0] >= lp[2] ? 0 : lp[1] >= lp[2] ? 1 : 2;
}

/* Numbers: the mean of the members' means. Classes: the most probable one of the mixture, which differs from that of
 * some members. */
static void means_are_those_of_the_mixture(void **state) {
    (void)state;
    bench b;
    double mean[CELLS], one[K][CELLS];
    int disputed = 0;
    open_bench(&b, 16);
    assert_int_equal(acf_session_query_mean(b.s, b.table, all, mean), ACF_OK);
    for (int k = 0; k < K; k++) assert_int_equal(acf_session_query_mean(b.one[k], b.table, all, one[k]), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (!isnan(b.x[i]))
            assert_true(mean[i] == b.x[i]);
        else if (i % COLS != CLASS)
            acf_assert_close(mean[i], (one[0][i] + one[1][i] + one[2][i]) / 3, 1e-9, "mean");
        else {
            assert_true(mean[i] == best_class(&b, i / COLS));
            disputed += one[0][i] != mean[i];
        }
    }
    assert_true(disputed > 0); /* otherwise the first member alone would pass */
    close_bench(&b);
}

/* Intervals contain the requested share of many draws of the mixture, with equal tails; not of the draws of a single
 * member. */
static void intervals_are_those_of_the_mixture(void **state) {
    (void)state;
    enum { DRAWS = 300 * K, REAL = 3 };
    bench b;
    uint8_t target[CELLS];
    double low[CELLS], high[CELLS], one[CELLS], other[K][CELLS], below = 0, above = 0, alone = 0;
    int cells = 0;
    open_bench(&b, 64);
    for (int i = 0; i < CELLS; i++) target[i] = isnan(b.x[i]) && i % COLS == REAL, cells += target[i];
    const acf_query q = {.target = target};
    assert_int_equal(acf_session_query_interval(b.s, b.table, q, 0.8, NULL, low, high), ACF_OK);
    for (int k = 0; k < K; k++)
        assert_int_equal(acf_session_query_interval(b.one[k], b.table, q, 0.8, NULL, other[k], one), ACF_OK);
    for (uint32_t d = 0; d < DRAWS; d++) {
        assert_int_equal(acf_session_query_draw(b.s, b.table, q, 5, d, one), ACF_OK);
        for (int i = 0; i < CELLS; i++)
            if (target[i]) below += one[i]<low[i], above += one[i]> high[i], alone += one[i] < other[1][i];
    }
    acf_assert_close(below / (DRAWS * cells), 0.1, 0.012, "below");
    acf_assert_close(above / (DRAWS * cells), 0.1, 0.012, "above");
    assert_true(fabs(alone / (DRAWS * cells) - 0.1) > 0.03);
    close_bench(&b);
}

/* Numbers: the mean of the members' best guesses, as a value of the column. Classes: the most frequent guess. */
static void guesses_are_combined(void **state) {
    (void)state;
    bench b;
    double guess[CELLS], one[K][CELLS];
    int outvoted = 0;
    open_bench(&b, 16);
    assert_int_equal(acf_session_query_guess(b.s, b.table, all, guess), ACF_OK);
    for (int k = 0; k < K; k++) assert_int_equal(acf_session_query_guess(b.one[k], b.table, all, one[k]), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        const double mean = (one[0][i] + one[1][i] + one[2][i]) / 3;
        if (!isnan(b.x[i]))
            assert_true(guess[i] == b.x[i]);
        else if (i % COLS == WHOLE)
            assert_true(guess[i] == floor(guess[i]) && fabs(guess[i] - mean) <= 0.5 + 1e-9);
        else if (i % COLS != CLASS)
            acf_assert_close(guess[i], mean, 1e-9, "guess");
        else if (one[1][i] == one[2][i])
            assert_true(guess[i] == one[1][i]), outvoted += one[0][i] != guess[i];
        else
            assert_true(guess[i] == one[0][i]);
    }
    assert_true(outvoted > 0);
    close_bench(&b);
}

/* Every allocation fails in turn, from the session to its answers. */
static void survives_without_memory(void **state) {
    (void)state;
    bench b;
    double out[CELLS], high[CELLS];
    open_bench(&b, 16);
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status; n++) {
        acf_session *s = NULL;
        acf_alloc_fail_at(n);
        status = acf_session_open(b.dev, b.m, 16, &s);
        if (!status) status = acf_session_query_mean(s, b.table, all, out);
        if (!status) status = acf_session_query_interval(s, b.table, all, 0.9, NULL, out, high);
        if (!status) status = acf_session_query_draw(s, b.table, all, 1, 1, out);
        acf_alloc_fail_at(0);
        acf_session_free(s);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    close_bench(&b);
}

ACF_TESTS(member, cmocka_unit_test(densities_are_averaged), cmocka_unit_test(densities_far_away_are_numbers),
          cmocka_unit_test(the_mixture_integrates_to_one), cmocka_unit_test(orders_are_averaged),
          cmocka_unit_test(draws_alternate_between_members), cmocka_unit_test(draws_of_a_row_ignore_other_rows),
          cmocka_unit_test(summaries_are_of_the_draws), cmocka_unit_test(means_are_those_of_the_mixture),
          cmocka_unit_test(intervals_are_those_of_the_mixture), cmocka_unit_test(guesses_are_combined),
          cmocka_unit_test(survives_without_memory))
