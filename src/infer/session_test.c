/* Questions: scores in the table's units, imputations that leave observed cells alone, summaries of draws, single cells. */
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
    assert_int_equal(acf_tab_create(b->x, NULL, ROWS, COLS, NULL, &b->table), ACF_OK);
    assert_int_equal(acf_config_create(&o), ACF_OK);
    assert_int_equal(acf_opts_set(o, "mlp-width", "6"), ACF_OK);
    assert_int_equal(acf_opts_set(o, "coupling-units", "5"), ACF_OK);
    assert_int_equal(acf_opts_set(o, "likelihood-units", "7"), ACF_OK);
    assert_int_equal(acf_opts_set(o, "components", "3"), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(b->table, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_fitted_create(b->dev, o, e, 3, true, &b->m), ACF_OK);
    acf_params *ps = acf_net_params(b->m->net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random(2, i, -0.2, 0.2);
    assert_int_equal(acf_ask_create(b->dev, b->m, batch, &b->s), ACF_OK);
}

static void close_bench(bench *b) {
    acf_ask_free(b->s);
    acf_fitted_free(b->m);
    acf_tab_free(b->table);
    acf_device_close(b->dev);
}

/* The density of one column in the table's units integrates to 1, given the others. */
static void scores_are_in_the_tables_units(void **state) {
    (void)state;
    enum { N = 4001 };
    bench b;
    open_bench(&b, 512);
    static double x[N * COLS], lp[N];
    static uint8_t asked[N * COLS];
    double mean = b.m->encoder->mean[3], scale = b.m->encoder->scale[3], step = 24 * scale / (N - 1), sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLS; j++) {
            x[i * COLS + j] = j == 3 ? mean - 12 * scale + step * i : 100.0 * j;
            asked[i * COLS + j] = j == 3;
        }
    acf_table *grid;
    assert_int_equal(acf_tab_create(x, NULL, N, COLS, NULL, &grid), ACF_OK);
    if (acf_ask_logp(b.s, grid, (acf_question){.asked = asked}, lp)) fail_msg("%s", acf_error());
    for (int i = 0; i < N; i++) sum += exp(lp[i]) * step;
    acf_assert_close(sum, 1, 1e-3, "integral over one column");
    acf_tab_free(grid);
    close_bench(&b);
}

/* Results do not depend on how rows are batched. */
static void batches_do_not_matter(void **state) {
    (void)state;
    double lp[2][ROWS], drawn[2][CELLS], cells[2][CELLS];
    const int64_t sizes[2] = {64, 5};
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b, sizes[k]);
        assert_int_equal(acf_ask_logp(b.s, b.table, (acf_question){0}, lp[k]), ACF_OK);
        assert_int_equal(acf_ask_draw(b.s, b.table, (acf_question){0}, 5, 1, drawn[k]), ACF_OK);
        assert_int_equal(acf_ask_cells(b.s, b.table, cells[k]), ACF_OK);
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
    assert_int_equal(acf_ask_draw(b.s, b.table, (acf_question){0}, 5, 0, out), ACF_OK);
    assert_int_equal(acf_ask_draw(b.s, b.table, (acf_question){0}, 5, 1, again), ACF_OK);
    assert_int_equal(acf_ask_guess(b.s, b.table, (acf_question){0}, guess), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (isnan(b.x[i])) {
            assert_true(isfinite(out[i]) && isfinite(guess[i]) && out[i] != again[i]);
            continue;
        }
        assert_true(out[i] == b.x[i] && again[i] == b.x[i] && guess[i] == b.x[i]);
    }
    close_bench(&b);
}

/* Marginals: a cell that is neither given nor asked for changes nothing. */
static void what_takes_no_part_changes_nothing(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 16);
    uint8_t given[CELLS], asked[CELLS];
    double lp[2][ROWS];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < CELLS; i++) {
            given[i] = i % COLS == 0, asked[i] = i % COLS == 1;
            if (k && i % COLS > 1 && !isnan(b.x[i])) b.x[i] += 1000;
        }
        acf_table *t;
        assert_int_equal(acf_tab_create(b.x, NULL, ROWS, COLS, NULL, &t), ACF_OK);
        assert_int_equal(acf_ask_logp(b.s, t, (acf_question){given, asked}, lp[k]), ACF_OK);
        acf_tab_free(t);
    }
    assert_memory_equal(lp[0], lp[1], sizeof lp[0]);
    close_bench(&b);
}

/* Mean and quantiles are those of the draws they are made from. */
static void summaries_are_of_the_draws(void **state) {
    (void)state;
    enum { DRAWS = 9 };
    bench b;
    open_bench(&b, 10);
    double one[CELLS], sum[CELLS] = {0}, least[CELLS], mean[CELLS], quantile[3 * CELLS];
    for (int i = 0; i < CELLS; i++) least[i] = INFINITY;
    for (uint32_t d = 0; d < DRAWS; d++) {
        assert_int_equal(acf_ask_draw(b.s, b.table, (acf_question){0}, 8, d, one), ACF_OK);
        for (int i = 0; i < CELLS; i++) sum[i] += one[i] / DRAWS, least[i] = fmin(least[i], one[i]);
    }
    const double level[3] = {0, 0.5, 1};
    assert_int_equal(acf_ask_summary(b.s, b.table, (acf_question){0}, 8, DRAWS, level, 3, mean, quantile), ACF_OK);
    for (int i = 0; i < CELLS; i++) {
        if (!isnan(b.x[i])) {
            assert_true(isnan(mean[i]) && isnan(quantile[i]));
            continue;
        }
        acf_assert_close(mean[i], sum[i], 1e-9, "mean of draws");
        assert_true(quantile[i] == least[i]);
        assert_true(quantile[i] <= quantile[CELLS + i] && quantile[CELLS + i] <= quantile[2 * CELLS + i]);
    }
    assert_int_equal(acf_ask_summary(b.s, b.table, (acf_question){0}, 8, 0, level, 3, mean, quantile), ACF_EUSAGE);
    assert_int_equal(acf_ask_summary(b.s, b.table, (acf_question){0}, 8, 2, (double[]){1.5}, 1, mean, quantile), ACF_EUSAGE);
    close_bench(&b);
}

/* A single cell is the conditional one would ask for by hand. */
static void a_cell_is_a_conditional(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 20);
    double cells[CELLS], lp[ROWS];
    uint8_t asked[CELLS];
    assert_int_equal(acf_ask_cells(b.s, b.table, cells), ACF_OK);
    for (int i = 0; i < CELLS; i++) asked[i] = i % COLS == 2;
    assert_int_equal(acf_ask_logp(b.s, b.table, (acf_question){.asked = asked}, lp), ACF_OK);
    for (int i = 0; i < ROWS; i++) {
        if (isnan(b.x[i * COLS + 2])) assert_true(isnan(cells[i * COLS + 2]) && lp[i] == 0);
        else assert_true(cells[i * COLS + 2] == lp[i]);
    }
    close_bench(&b);
}

static void refuses_a_table_of_other_columns(void **state) {
    (void)state;
    bench b;
    double out[9], x[9] = {0};
    acf_table *t;
    open_bench(&b, 20);
    assert_int_equal(acf_tab_create(x, NULL, 3, 3, NULL, &t), ACF_OK);
    assert_int_equal(acf_ask_logp(b.s, t, (acf_question){0}, out), ACF_ESHAPE);
    acf_tab_free(t);
    close_bench(&b);
}

ACF_TESTS(session, cmocka_unit_test(scores_are_in_the_tables_units), cmocka_unit_test(batches_do_not_matter),
          cmocka_unit_test(observed_cells_come_back_to_the_bit), cmocka_unit_test(what_takes_no_part_changes_nothing),
          cmocka_unit_test(summaries_are_of_the_draws), cmocka_unit_test(a_cell_is_a_conditional),
          cmocka_unit_test(refuses_a_table_of_other_columns))
