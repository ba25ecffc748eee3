/* Queries: scores in the table's units, imputations that leave observed cells alone, summaries of draws, single
 * cells. */
#include "infer/session.h"

#include "harness/lab.h"
#include "model/config.h"

#include <math.h>
#include <string.h>

enum { ROWS = 37, COLS = 4, CELLS = ROWS * COLS };

typedef struct bench {
    acf_device *dev;
    acf_table *table;
    acf_model *m;
    acf_session *s;
    double x[CELLS];
} bench;

static void open_bench(bench *b, int64_t batch) {
    acf_options *o;
    acf_encoder *e;
    for (int i = 0; i < CELLS; i++)
        b->x[i] = i % 5 == 2 ? (double)NAN : 100 * (i % COLS) + acf_lab_random(1, i, -1, 1) * (1 + 10 * (i % COLS));
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_table_make(b->x, NULL, ROWS, COLS, NULL, &b->table), ACF_OK);
    assert_int_equal(acf_config_create(&o), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "mlp-width", "6"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "likelihood", "gru"),
                     ACF_OK); /* random weights vary less than those of `sets` */
    assert_int_equal(acf_options_set_text(o, "coupling-units", "5"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "likelihood-units", "7"), ACF_OK);
    assert_int_equal(acf_options_set_text(o, "components", "3"), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(b->table, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_model_make(b->dev, o, e, 3, true, &b->m), ACF_OK);
    acf_params *ps = acf_net_params(b->m->net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random(2, i, -0.2, 0.2);
    assert_int_equal(acf_session_open(b->dev, b->m, batch, &b->s), ACF_OK);
}

static void close_bench(bench *b) {
    acf_session_free(b->s);
    acf_model_free(b->m);
    acf_table_free(b->table);
    acf_device_close(b->dev);
}

/* The density of one column in the table's units integrates to 1, given the others. */
static void scores_are_in_the_tables_units(void **state) {
    (void)state;
    enum { N = 4001 };
    bench b;
    open_bench(&b, 512);
    static double x[N * COLS], lp[N];
    static uint8_t target[N * COLS];
    double mean = b.m->encoder->mean[3], scale = b.m->encoder->scale[3], step = 24 * scale / (N - 1), sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLS; j++) {
            x[i * COLS + j] = j == 3 ? mean - 12 * scale + step * i : 100.0 * j;
            target[i * COLS + j] = j == 3;
        }
    acf_table *grid;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, NULL, &grid), ACF_OK);
    if (acf_session_query_logp(b.s, grid, (acf_query){.target = target}, lp)) fail_msg("%s", acf_error());
    for (int i = 0; i < N; i++) sum += exp(lp[i]) * step;
    acf_assert_close(sum, 1, 1e-3, "integral over one column");
    acf_table_free(grid);
    close_bench(&b);
}

/* Results do not depend on the batches of rows. */
static void batches_do_not_matter(void **state) {
    (void)state;
    double lp[2][ROWS], drawn[2][CELLS], cells[2][CELLS];
    const int64_t sizes[2] = {64, 5};
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b, sizes[k]);
        assert_int_equal(acf_session_query_logp(b.s, b.table, (acf_query){0}, lp[k]), ACF_OK);
        assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){0}, 5, 1, drawn[k]), ACF_OK);
        assert_int_equal(acf_session_query_cells(b.s, b.table, cells[k]), ACF_OK);
        close_bench(&b);
    }
    double tol = 5000 * (double)ACF_REAL_EPS;
    for (int i = 0; i < ROWS; i++) acf_assert_close(lp[1][i], lp[0][i], tol, "log p");
    for (int i = 0; i < CELLS; i++) {
        acf_assert_close(drawn[1][i], drawn[0][i], tol, "draw");
        assert_int_equal(isnan(cells[0][i]), isnan(cells[1][i]));
        if (!isnan(cells[0][i])) acf_assert_close(cells[1][i], cells[0][i], tol, "cell");
    }
}

static void observed_cells_come_back_to_the_bit(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 16);
    double out[CELLS], again[CELLS], guess[CELLS];
    assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){0}, 5, 0, out), ACF_OK);
    assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){0}, 5, 1, again), ACF_OK);
    assert_int_equal(acf_session_query_guess(b.s, b.table, (acf_query){0}, guess), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (isnan(b.x[i])) {
            assert_true(isfinite(out[i]) && isfinite(guess[i]) && out[i] != again[i]);
            continue;
        }
        assert_true(out[i] == b.x[i] && again[i] == b.x[i] && guess[i] == b.x[i]);
    }
    close_bench(&b);
}

/* Marginals: a cell that is neither given nor a target changes nothing. */
static void marginalised_cells_change_nothing(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 16);
    uint8_t given[CELLS], target[CELLS];
    double lp[2][ROWS];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < CELLS; i++) {
            given[i] = i % COLS == 0, target[i] = i % COLS == 1;
            if (k && i % COLS > 1 && !isnan(b.x[i])) b.x[i] += 1000;
        }
        acf_table *t;
        assert_int_equal(acf_table_make(b.x, NULL, ROWS, COLS, NULL, &t), ACF_OK);
        assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){given, target}, lp[k]), ACF_OK);
        acf_table_free(t);
    }
    assert_memory_equal(lp[0], lp[1], sizeof lp[0]);
    close_bench(&b);
}

/* A given cell a thousand deviations away counts as one at twenty; closer cells keep their value. */
static void distant_given_cells_are_clamped(void **state) {
    (void)state;
    static const double at[4] = {2, 3, 20, 1000};
    bench b;
    open_bench(&b, 16);
    uint8_t given[CELLS], target[CELLS];
    double lp[4][ROWS], mean = 0, square = 0, n = 0;
    for (int i = 0; i < CELLS; i += COLS)
        if (!isnan(b.x[i])) mean += b.x[i], square += b.x[i] * b.x[i], n++;
    mean /= n;
    const double deviation = sqrt(square / n - mean * mean);
    for (int i = 0; i < CELLS; i++) given[i] = i % COLS == 0, target[i] = i % COLS == 1;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < CELLS; i += COLS) b.x[i] = mean + at[k] * deviation;
        acf_table *t;
        assert_int_equal(acf_table_make(b.x, NULL, ROWS, COLS, NULL, &t), ACF_OK);
        assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){given, target}, lp[k]), ACF_OK);
        acf_table_free(t);
    }
    assert_memory_equal(lp[2], lp[3], sizeof lp[0]);
    assert_memory_not_equal(lp[0], lp[1], sizeof lp[0]);
    close_bench(&b);
}

/* Mean and quantiles are those of the draws. */
static void summaries_are_of_the_draws(void **state) {
    (void)state;
    enum { DRAWS = 9 };
    bench b;
    open_bench(&b, 10);
    double one[CELLS], sum[CELLS] = {0}, least[CELLS], mean[CELLS], quantile[3 * CELLS];
    for (int i = 0; i < CELLS; i++) least[i] = INFINITY;
    for (uint32_t d = 0; d < DRAWS; d++) {
        assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){0}, 8, d, one), ACF_OK);
        for (int i = 0; i < CELLS; i++) sum[i] += one[i] / DRAWS, least[i] = fmin(least[i], one[i]);
    }
    const double level[3] = {0, 0.5, 1};
    assert_int_equal(acf_session_query_summary(b.s, b.table, (acf_query){0}, 8, DRAWS, level, 3, mean, quantile),
                     ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (!isnan(b.x[i])) {
            assert_true(isnan(mean[i]) && isnan(quantile[i]));
            continue;
        }
        acf_assert_close(mean[i], sum[i], 1e-9, "mean of draws");
        assert_true(quantile[i] == least[i]);
        assert_true(quantile[i] <= quantile[CELLS + i] && quantile[CELLS + i] <= quantile[2 * CELLS + i]);
    }
    assert_int_equal(acf_session_query_summary(b.s, b.table, (acf_query){0}, 8, 0, level, 3, mean, quantile),
                     ACF_EUSAGE);
    assert_int_equal(acf_session_query_summary(b.s, b.table, (acf_query){0}, 8, 2, (double[]){1.5}, 1, mean, quantile),
                     ACF_EUSAGE);
    close_bench(&b);
}

/* Scores of single cells equal the corresponding conditional query. */
static void a_cell_is_a_conditional(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 20);
    double cells[CELLS], lp[ROWS];
    uint8_t target[CELLS];
    assert_int_equal(acf_session_query_cells(b.s, b.table, cells), ACF_OK);
    for (int i = 0; i < CELLS; i++) target[i] = i % COLS == 2;
    assert_int_equal(acf_session_query_logp(b.s, b.table, (acf_query){.target = target}, lp), ACF_OK);
    for (int i = 0; i < ROWS; i++) {
        if (isnan(b.x[i * COLS + 2]))
            assert_true(isnan(cells[i * COLS + 2]) && lp[i] == 0);
        else
            assert_true(cells[i * COLS + 2] == lp[i]);
    }
    close_bench(&b);
}

/* ---- columns with steps, spikes, tails and classes --------------------------------------------------------------- */

/* Heavy-tailed measurements; whole numbers 1..10, half of them 1; a category; the same numbers in tenths. */
static void open_shaped(bench *b, int64_t batch) {
    static const acf_column column[COLS] = {{NULL, 0}, {NULL, 0}, {NULL, 3}, {NULL, 0}};
    static const char *const set[][2] = {
        {"mlp-width", "6"}, {"coupling-units", "5"}, {"likelihood-units", "7"}, {"components", "3"}};
    acf_options *o;
    acf_encoder *e;
    for (int i = 0; i < CELLS; i++) {
        double u = acf_lab_random(1, i, 0, 1);
        b->x[i] = i % COLS == 0 ? exp(8 * u * u) : i % COLS == 2 ? floor(3 * u) : u < 0.5 ? 1 : floor(20 * u - 8);
        if (i % COLS == 3) b->x[i] /= 10;
        if (i % 5 == 2 || i % 7 == 3) b->x[i] = (double)NAN; /* two in some rows */
    }
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_table_make(b->x, NULL, ROWS, COLS, column, &b->table), ACF_OK);
    assert_int_equal(acf_config_create(&o), ACF_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(acf_options_set_text(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(b->table, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_encoder_shape(e, b->table, NULL, NULL, &(acf_encoding){true, true}), ACF_OK);
    assert_true(e->resolution[0].every == 0 && e->resolution[1].every == 1 && e->normal_scores[1].n > 0);
    assert_int_equal(acf_model_make(b->dev, o, e, 3, true, &b->m), ACF_OK);
    acf_params *ps = acf_net_params(b->m->net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random(2, i, -0.2, 0.2);
    assert_int_equal(acf_session_open(b->dev, b->m, batch, &b->s), ACF_OK);
}

/* log p (n) of the values v (n) of column j in a row, given the rest of it. */
static void scores_of_row(bench *b, int row, int j, const double *v, int n, double *lp) {
    double *x = acf_alloc((size_t)(n * COLS) * sizeof *x, "a test");
    uint8_t *target = acf_alloc_zero((size_t)(n * COLS), "a test");
    acf_table *t;
    assert_true(x && target);
    for (int i = 0; i < n * COLS; i++) x[i] = b->x[row * COLS + i % COLS], target[i] = i % COLS == j;
    for (int i = 0; i < n; i++) x[i * COLS + j] = v[i];
    assert_int_equal(acf_table_make(x, NULL, n, COLS, b->table->column, &t), ACF_OK);
    if (acf_session_query_logp(b->s, t, (acf_query){.target = target}, lp)) fail_msg("%s", acf_error());
    acf_table_free(t), acf_release(x), acf_release(target);
}

static void scores_of(bench *b, int j, const double *v, int n, double *lp) { scores_of_row(b, 0, j, v, n, lp); }

/* For a column with normal scores the density integrates to 1. For a rounded column the mean density of each value's
 * rows, times the step, sums to 1: scores are densities of dequantised values. */
static void scores_are_densities(void **state) {
    (void)state;
    enum { N = 20000 };
    bench b;
    static double v[N], lp[N];
    open_shaped(&b, 512);
    const acf_normal_scores *w = &b.m->encoder->normal_scores[0];
    double sum = 0;
    for (int i = 0; i < N; i++) /* even steps in z, so that spikes and tails get enough points */
        v[i] =
            b.m->encoder->mean[0] + b.m->encoder->scale[0] * acf_normal_scores_inverse(w, -12 + 24.0 * (i + 0.5) / N);
    scores_of(&b, 0, v, N, lp);
    for (int i = 0; i < N; i++) sum += exp(lp[i] - acf_encode_log_slope(b.m->encoder, 0, v[i])) * 24.0 / N;
    acf_assert_close(sum, 1, 1e-3, "integral of a column with normal scores");
    enum { VALUES = 200 }; /* whole numbers from -95 to 104, a hundred rows each */
    for (int i = 0; i < N; i++) v[i] = i % VALUES - 95;
    scores_of(&b, 1, v, N, lp);
    sum = 0;
    for (int i = 0; i < N; i++) sum += exp(lp[i]) / (N / VALUES);
    acf_assert_close(sum, 1, 0.03, "sum over a rounded column");
    close_bench(&b);
}

/* The same query gives the same score, and the noise depends on the row's number. */
static void scores_are_reproducible(void **state) {
    (void)state;
    bench b;
    double first[ROWS], second[ROWS];
    open_shaped(&b, 16);
    for (int k = 0; k < 2; k++)
        assert_int_equal(acf_session_query_logp(b.s, b.table, (acf_query){0}, k ? second : first), ACF_OK);
    assert_memory_equal(first, second, sizeof first);
    b.table->first_id = 100;
    assert_int_equal(acf_session_query_logp(b.s, b.table, (acf_query){0}, second), ACF_OK);
    assert_memory_not_equal(first, second, sizeof first);
    close_bench(&b);
}

static void draws_could_be_observed(void **state) {
    (void)state;
    bench b;
    double out[CELLS], guess[CELLS];
    open_shaped(&b, 16);
    for (uint32_t d = 0; d < 20; d++) {
        assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){0}, 5, d, out), ACF_OK);
        assert_int_equal(acf_session_query_guess(b.s, b.table, (acf_query){0}, guess), ACF_OK);
        for (int i = 0; i < CELLS; i++) {
            if (!isnan(b.x[i])) continue;
            double tenth = out[i] * 10;
            /* Half of the values are the least: no draw is below. Above the largest, steps continue. */
            const acf_encoder *e = b.m->encoder;
            assert_true(i % 2 == 0 || (e->least[i % COLS] == (i % COLS == 1 ? 1 : 0.1) && e->most[i % COLS] > 11));
            if (i % COLS == 1) assert_true(out[i] == floor(out[i]) && out[i] >= 1 && guess[i] == floor(guess[i]));
            if (i % COLS == 3) assert_true(fabs(tenth - nearbyint(tenth)) < 1e-9 * fmax(tenth, 1) && out[i] >= 0.1);
        }
    }
    close_bench(&b);
}

/* The mean of a cell against its integrated density; the class against the probabilities of all; other cells
 * unchanged. */
static void means_are_those_of_the_density(void **state) {
    (void)state;
    enum { N = 4000 };
    bench b;
    static double v[N], lp[N];
    double out[CELLS], again[CELLS];
    open_bench(&b, 16); /* standardised: values have no limits */
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, out), ACF_OK);
    for (int j = 0; j < COLS; j++) {
        if (!isnan(b.x[j])) {
            assert_true(out[j] == b.x[j]);
            continue;
        }
        double mean = b.m->encoder->mean[j], scale = b.m->encoder->scale[j], step = 24 * scale / N, sum = 0;
        for (int i = 0; i < N; i++) v[i] = mean - 12 * scale + step * (i + 0.5);
        scores_of(&b, j, v, N, lp);
        for (int i = 0; i < N; i++) sum += v[i] * exp(lp[i]) * step;
        assert_true(fabs(out[j] - sum) < 0.03 * scale);
    }
    close_bench(&b);
    open_shaped(&b, 64);
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, out), ACF_OK);
    scores_of(&b, 2, (double[]){0, 1, 2}, 3, lp);
    assert_true(isnan(b.x[2]) && out[2] == (lp[0] >= lp[1] && lp[0] >= lp[2] ? 0 : lp[1] >= lp[2] ? 1 : 2));
    acf_session_free(b.s); /* any batch gives the same */
    assert_int_equal(acf_session_open(b.dev, b.m, 3, &b.s), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, again), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        assert_true(!isnan(out[i]) && (isnan(b.x[i]) || out[i] == b.x[i]));
        acf_assert_close(again[i], out[i], 5000 * (double)ACF_REAL_EPS, "mean in another batch");
    }
    close_bench(&b);
}

/* Integral of a cell's density below v, given the rest of row 0. For tables of open_bench. */
static double below(bench *b, int j, double v) {
    enum { N = 3000 };
    static double x[N], lp[N];
    const double scale = b->m->encoder->scale[j], from = b->m->encoder->mean[j] - 12 * scale, step = (v - from) / N;
    double sum = 0;
    for (int i = 0; i < N; i++) x[i] = from + step * (i + 0.5);
    scores_of(b, j, x, N, lp);
    for (int i = 0; i < N; i++) sum += exp(lp[i]) * step;
    return sum;
}

/* Both ends have the probability beyond them that the density gives; the mean equals that of acf_session_query_mean
 * bit for bit. */
static void intervals_are_those_of_the_density(void **state) {
    (void)state;
    static const double level[] = {0.5, 0.9, 0.98};
    bench b;
    double mean[CELLS], plain[CELLS], low[CELLS], high[CELLS], again[2][CELLS];
    open_bench(&b, 16);
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, plain), ACF_OK);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(acf_session_query_interval(b.s, b.table, (acf_query){0}, level[k], mean, low, high), ACF_OK);
        assert_memory_equal(mean, plain, sizeof mean);
        for (int i = 0; i < CELLS; i++) assert_true(isnan(b.x[i]) ? low[i] < high[i] : isnan(low[i]) && isnan(high[i]));
        for (int j = 0; j < COLS; j++) {
            if (!isnan(b.x[j])) continue;
            acf_assert_close(below(&b, j, low[j]), (1 - level[k]) / 2, 0.012, "below");
            acf_assert_close(1 - below(&b, j, high[j]), (1 - level[k]) / 2, 0.012, "above");
        }
    }
    /* Without the means, and in other batches. */
    assert_int_equal(acf_session_query_interval(b.s, b.table, (acf_query){0}, 0.98, NULL, again[0], again[1]), ACF_OK);
    assert_memory_equal(again[0], low, sizeof low);
    acf_session_free(b.s);
    assert_int_equal(acf_session_open(b.dev, b.m, 3, &b.s), ACF_OK);
    assert_int_equal(acf_session_query_interval(b.s, b.table, (acf_query){0}, 0.98, mean, again[0], again[1]), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (!isnan(b.x[i])) continue;
        acf_assert_close(again[0][i], low[i], 1e5 * (double)ACF_REAL_EPS, "low");
        acf_assert_close(again[1][i], high[i], 1e5 * (double)ACF_REAL_EPS, "high");
    }
    static const double none[] = {0, 1, (double)NAN};
    for (int k = 0; k < 3; k++)
        assert_int_equal(acf_session_query_interval(b.s, b.table, (acf_query){0}, none[k], mean, low, high),
                         ACF_EUSAGE);
    close_bench(&b);
}

/* Only numeric target cells have intervals. Other targets of the row do not matter. */
static void intervals_are_of_numbers_that_are_asked_for(void **state) {
    (void)state;
    bench b;
    uint8_t target[CELLS];
    double mean[CELLS], low[2][CELLS], high[2][CELLS];
    open_shaped(&b, 64);
    for (int i = 0; i < CELLS; i++) target[i] = isnan(b.x[i]) && i % COLS == 1;
    assert_int_equal(acf_session_query_interval(b.s, b.table, (acf_query){0}, 0.9, mean, low[0], high[0]), ACF_OK);
    const acf_query some = {.target = target};
    assert_int_equal(acf_session_query_interval(b.s, b.table, some, 0.9, NULL, low[1], high[1]), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        const bool number = isnan(b.x[i]) && i % COLS != 2;
        assert_true(number ? low[0][i] <= high[0][i] : isnan(low[0][i]) && isnan(high[0][i]));
        const double least = i % COLS == 1 ? 1 : 0.1; /* half of the cells have it, and none less */
        if (number && i % 2) assert_true(low[0][i] >= least);
        if (target[i])
            assert_true(low[1][i] == low[0][i] && high[1][i] == high[0][i]);
        else
            assert_true(isnan(low[1][i]) && isnan(high[1][i]));
    }
    close_bench(&b);
}

/* A class that many levels share is written as its most frequent level. It is imputed only if that level is the most
 * probable. */
static void a_shared_class_counts_as_its_first_level(void **state) {
    (void)state;
    static const char *const counts[] = {"1, 0, 0", "2, 1, 1", "1, 1, 1", "0, 0, 0"};
    static const double part[] = {1, 0.5, 1.0 / 3, 1.0 / 3};
    double out[CELLS], lp[3];
    int changed = 0, last = 0;
    for (int k = 0; k < 4; k++) {
        bench b;
        char text[1024];
        json_t *v;
        const acf_json_source from = {"test", ACF_EMODEL};
        open_shaped(&b, 64);
        acf_params *ps = acf_net_params(b.m->net);
        ps->value[acf_params_find(ps, "categories.net.head.b")->offset + 2] +=
            ACF_R(1.0); /* the last class is the most probable in some rows */
        snprintf(text, sizeof text,
                 "{\"rows\": 9, \"named\": true, \"missing_markers\": [\"\"], \"columns\": ["
                 "{\"name\": \"a\", \"observed\": 9, \"missing\": 0, \"kind\": \"real\", \"min\": 0, \"max\": 9},"
                 "{\"name\": \"b\", \"observed\": 9, \"missing\": 0, \"kind\": \"real\", \"min\": 0, \"max\": 9}, "
                 "{\"name\": \"c\", \"observed\": 9, \"missing\": 0, \"kind\": \"category\","
                 "\"levels\": [\"u\", \"v\", \"w\", \"x\", \"y\"], \"counts\": [3, 3, %s], \"pooled\": 3}, "
                 "{\"name\": \"d\", \"observed\": 9, \"missing\": 0, \"kind\": \"real\", \"min\": 0, \"max\": 9}]}",
                 counts[k]);
        assert_int_equal(acf_json_parse(from, text, strlen(text), sizeof text, &v), ACF_OK);
        if (acf_schema_from_json(from, v, true, &b.m->schema) != ACF_OK) fail_msg("%s", acf_error());
        json_decref(v);
        acf_session_free(b.s);
        assert_int_equal(acf_session_open(b.dev, b.m, 16, &b.s), ACF_OK);
        assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, out), ACF_OK);
        for (int i = 0; i < ROWS; i++) {
            if (!isnan(b.x[i * COLS + 2])) continue;
            scores_of_row(&b, i, 2, (double[]){0, 1, 2}, 3, lp);
            const double plain = lp[0] >= lp[1] && lp[0] >= lp[2] ? 0 : lp[1] >= lp[2] ? 1 : 2;
            lp[2] += log(part[k]);
            const double right = lp[0] >= lp[1] && lp[0] >= lp[2] ? 0 : lp[1] >= lp[2] ? 1 : 2;
            assert_true(out[i * COLS + 2] == right);
            changed += right != plain, last += right == 2;
        }
        close_bench(&b);
    }
    assert_true(changed > 0 && last > 0);
}

/* A mean is close to that of many draws of the same one-column query; other targets do not matter. */
static void means_are_those_of_draws(void **state) {
    (void)state;
    enum { DRAWS = 400 };
    bench b;
    uint8_t target[CELLS];
    double mean[CELLS], all[CELLS], one[CELLS], sum[CELLS] = {0}, square[CELLS] = {0};
    open_shaped(&b, 64);
    for (int i = 0; i < CELLS; i++) target[i] = isnan(b.x[i]) && i % COLS == 1;
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){.target = target}, mean), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, b.table, (acf_query){0}, all), ACF_OK);
    for (uint32_t d = 0; d < DRAWS; d++) {
        assert_int_equal(acf_session_query_draw(b.s, b.table, (acf_query){.target = target}, 5, d, one), ACF_OK);
        for (int i = 0; i < CELLS; i++) sum[i] += one[i] / DRAWS, square[i] += one[i] * one[i] / DRAWS;
    }
    int compared = 0;
    for (int i = 0; i < CELLS; i++) {
        if (!target[i]) continue;
        acf_assert_close(all[i], mean[i], 5000 * (double)ACF_REAL_EPS, "alone and beside others");
        assert_true(fabs(mean[i] - sum[i]) < 5 * sqrt((square[i] - sum[i] * sum[i]) / DRAWS) + 0.02);
        compared++;
    }
    assert_true(compared > 5);
    close_bench(&b);
}

static void refuses_a_table_of_other_columns(void **state) {
    (void)state;
    bench b;
    double out[9], x[9] = {0};
    acf_table *t;
    open_bench(&b, 20);
    assert_int_equal(acf_table_make(x, NULL, 3, 3, NULL, &t), ACF_OK);
    assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){0}, out), ACF_ESHAPE);
    acf_table_free(t);
    close_bench(&b);
}

ACF_TESTS(session, cmocka_unit_test(distant_given_cells_are_clamped), cmocka_unit_test(scores_are_in_the_tables_units),
          cmocka_unit_test(batches_do_not_matter), cmocka_unit_test(observed_cells_come_back_to_the_bit),
          cmocka_unit_test(marginalised_cells_change_nothing), cmocka_unit_test(summaries_are_of_the_draws),
          cmocka_unit_test(a_cell_is_a_conditional), cmocka_unit_test(scores_are_densities),
          cmocka_unit_test(scores_are_reproducible), cmocka_unit_test(draws_could_be_observed),
          cmocka_unit_test(means_are_those_of_the_density), cmocka_unit_test(a_shared_class_counts_as_its_first_level),
          cmocka_unit_test(means_are_those_of_draws), cmocka_unit_test(intervals_are_those_of_the_density),
          cmocka_unit_test(intervals_are_of_numbers_that_are_asked_for),
          cmocka_unit_test(refuses_a_table_of_other_columns))
