/* What looks wrong: tails as draws have them, a wrong cell that is not given to the others, in any unit, for any batch;
 * levels that were never seen, and numbers far away. */
#include "harness/looked_lab.h"

#include "data/frame.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tails ------------------------------------------------------------------------------------------------------- */

enum { DRAWS = 1002, SETS = 3, AT_ONCE = DRAWS / SETS }; /* a draw is of one member: one of each of three */
#define ERROR 0.06 /* of a share of them, 4 deviations */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws of column j of the row, given the rest of it, ascending. */
static void draw_column(acf_session *s, const double *row, int j, double *to) {
    static double out[DRAWS * COLS];
    static uint8_t asked[DRAWS * COLS];
    acf_table *t = acf_looked_lab_copies(row, AT_ONCE);
    for (int c = 0; c < DRAWS * COLS; c++) asked[c] = c % COLS == j;
    for (uint32_t d = 0; d < SETS; d++)
        assert_int_equal(acf_ask_draw(s, t, (acf_question){.asked = asked}, 5, d, out + d * AT_ONCE * COLS), ACF_OK);
    for (int i = 0; i < DRAWS; i++) to[i] = out[i * COLS + j];
    qsort(to, DRAWS, sizeof *to, by_value);
    acf_tab_free(t);
}

/* The surprise of the row's cell in column j. */
static double surprise_of(acf_session *s, const double *row, int j) {
    double logp[COLS], surprise[COLS];
    acf_table *t = acf_looked_lab_table(row, 1, NEW);
    if (acf_ask_surprise(s, t, logp, surprise, NULL)) fail_msg("%s", acf_error());
    acf_tab_free(t);
    return surprise[j];
}

/* Of classes: that of all draws as many are of a class that is no more frequent. */
static void a_class_has_the_tail_of_its_draws(void **state) {
    (void)state;
    for (int members = 1; members <= 3; members += 2)
        for (int archive = 0; archive < 2; archive++) {
            acf_looked_lab b;
            acf_looked_lab_open(&b, 2, members, 64);
            acf_looked_lab_believe(&b, 0.5, 0.2);
            for (int i = 0; i < FULL; i++) {
                double row[COLS], drawn[DRAWS], share[CLASSES] = {0}, least = 0, most = 0;
                memcpy(row, b.x + i * COLS, sizeof row);
                draw_column(archive ? b.s : b.net, row, CLASS, drawn);
                for (int d = 0; d < DRAWS; d++) share[(int)drawn[d]] += 1.0 / DRAWS;
                const double own = share[(int)row[CLASS]];
                for (int c = 0; c < CLASSES; c++) {
                    least += share[c] < own - ERROR || c == row[CLASS] ? share[c] : 0;
                    most += share[c] < own + ERROR ? share[c] : 0;
                }
                const double tail = exp(-surprise_of(archive ? b.s : b.net, row, CLASS));
                if (!(tail > least - ERROR && tail < most + ERROR && tail <= 1))
                    fail_msg("%g, expected %g to %g", tail, least, most);
            }
            acf_looked_lab_close(&b);
        }
}

/* Of numbers: about 0 in the middle, at the 5 % quantiles log 10, and more the farther out. */
static void a_number_has_the_tail_of_its_draws(void **state) {
    (void)state;
    acf_looked_lab b;
    double sum = 0, drawn[DRAWS], row[COLS];
    acf_looked_lab_open(&b, 2, 3, 64);
    for (int i = 0; i < FULL; i++) {
        memcpy(row, b.x + i * COLS, sizeof row);
        draw_column(b.net, row, REAL, drawn);
        const double level[] = {0.5, 0.95, 1 - 0.5 / DRAWS};
        double at[5];
        for (int k = 0; k < 3; k++) row[REAL] = drawn[(int)(level[k] * DRAWS)], at[k] = surprise_of(b.net, row, REAL);
        for (int k = 3; k < 5; k++) row[REAL] = drawn[DRAWS - 1] + (k - 2) * 100, at[k] = surprise_of(b.net, row, REAL);
        if (!(at[0] < 0.7 && at[2] >= at[1] - 0.1 && at[3] > at[2] && at[4] > at[2]))
            fail_msg("row %d: %g %g %g %g %g", i, at[0], at[1], at[2], at[3], at[4]);
        sum += at[1] / FULL;
    }
    assert_true(fabs(sum - log(10)) < 0.5);
    acf_looked_lab_close(&b);
}

/* Beyond, tails are exponential on the scale of numbers, on either side by its own quantile: here three times as far. */
static void tails_go_on_beyond_the_draws(void **state) {
    (void)state;
    acf_looked_lab b;
    double sum[2] = {0}, drawn[DRAWS], row[COLS];
    acf_looked_lab_open(&b, 2, 3, 64);
    const double mean = b.m->encoder->mean[REAL], scale = b.m->encoder->scale[REAL];
    for (int i = 0; i < FULL; i++)
        for (int side = 0; side < 2; side++) {
            memcpy(row, b.x + i * COLS, sizeof row);
            draw_column(b.net, row, REAL, drawn);
            const double end = 3 * asinh((drawn[(side ? 19 : 1) * DRAWS / 20] - mean) / scale / 3);
            const double middle = 3 * asinh((drawn[DRAWS / 2] - mean) / scale / 3);
            row[REAL] = mean + scale * 3 * sinh((middle + 3 * (end - middle)) / 3);
            sum[side] += surprise_of(b.net, row, REAL) / FULL;
        }
    for (int side = 0; side < 2; side++)
        if (fabs(sum[side] - 3 * log(10)) > 1) fail_msg("side %d: %g, expected %g", side, sum[side], 3 * log(10));
    acf_looked_lab_close(&b);
}

/* ---- what is given ----------------------------------------------------------------------------------------------- */

/* A cell far out is not given to the others of its row: they have the surprise that they have without it. Other rows
 * are as they were. */
static void a_wrong_cell_does_not_condemn_the_others(void **state) {
    (void)state;
    acf_looked_lab b;
    double x[FULL * COLS], logp[3][FULL * COLS], surprise[3][FULL * COLS];
    uint8_t given[3][FULL * COLS];
    acf_looked_lab_open(&b, 2, 2, 5);
    const int wrong = 3 * COLS + REAL;
    for (int k = 0; k < 3; k++) {
        memcpy(x, b.x, sizeof x);
        if (k) x[wrong] = k == 1 ? 1e4 : ABSENT;
        acf_table *t = acf_looked_lab_table(x, FULL, NEW);
        assert_int_equal(acf_ask_surprise(b.s, t, logp[k], surprise[k], given[k]), ACF_OK);
        acf_tab_free(t);
    }
    assert_true(!given[1][wrong] && surprise[1][wrong] > log(100) && isnan(surprise[2][wrong]) && !given[2][wrong]);
    for (int c = 0; c < FULL * COLS; c++) {
        if (c == wrong) continue;
        const int as = c / COLS == 3 ? 2 : 0;
        assert_true(surprise[1][c] == surprise[as][c] && logp[1][c] == logp[as][c] && given[1][c] == given[as][c]);
        assert_true(given[1][c] || surprise[1][c] >= 0);
    }
    acf_looked_lab_close(&b);
}

/* With nothing doubtful in a row, log p is that of each cell given all others. */
static void scores_are_those_of_cells(void **state) {
    (void)state;
    acf_looked_lab b;
    double logp[CELLS], surprise[CELLS], cells[CELLS];
    uint8_t given[CELLS];
    int rows = 0;
    acf_looked_lab_open(&b, 2, 2, 64);
    assert_int_equal(acf_ask_surprise(b.s, b.table, logp, surprise, given), ACF_OK);
    assert_int_equal(acf_ask_cells(b.s, b.table, cells), ACF_OK);
    for (int i = 0; i < ROWS; i++) {
        bool all = true;
        for (int c = i * COLS; c < (i + 1) * COLS; c++) all = all && given[c] == !isnan(b.x[c]);
        for (int c = i * COLS; all && c < (i + 1) * COLS; c++)
            assert_true(isnan(b.x[c]) ? isnan(logp[c]) : logp[c] == cells[c]);
        rows += all;
    }
    assert_in_range(rows, ROWS / 2, ROWS);
    acf_looked_lab_close(&b);
}

/* A column in another unit: log p moves by the logarithm of the unit, the surprise does not. */
static void surprise_has_no_unit(void **state) {
    (void)state;
    const double unit = 1e5;
    acf_looked_lab b;
    double logp[2][CELLS], surprise[2][CELLS], x[CELLS];
    acf_looked_lab_open(&b, 2, 1, 64);
    assert_int_equal(acf_ask_surprise(b.net, b.table, logp[0], surprise[0], NULL), ACF_OK);
    acf_encoder *e = b.m->encoder;
    e->mean[REAL] *= unit, e->least[REAL] *= unit, e->most[REAL] *= unit;
    acf_encoder_set_scale(e, REAL, e->scale[REAL] * unit);
    for (int c = 0; c < CELLS; c++) x[c] = c % COLS == REAL ? unit * b.x[c] : b.x[c];
    acf_table *t = acf_looked_lab_table(x, ROWS, 0);
    assert_int_equal(acf_ask_surprise(b.net, t, logp[1], surprise[1], NULL), ACF_OK);
    for (int c = 0; c < CELLS; c++) {
        assert_int_equal(isnan(surprise[0][c]), isnan(b.x[c]));
        if (isnan(b.x[c])) continue;
        acf_assert_close(surprise[1][c], surprise[0][c], 2e-3, "surprise");
        acf_assert_close(logp[1][c], logp[0][c] - (c % COLS == REAL ? log(unit) : 0), 2e-3, "log p");
    }
    acf_tab_free(t);
    acf_looked_lab_close(&b);
}

static void batches_and_threads_do_not_matter(void **state) {
    (void)state;
    static double logp[3][CELLS], surprise[3][CELLS];
    static const int64_t batch[3] = {64, 5, 64};
    static const int threads[3] = {2, 2, 1};
    for (int k = 0; k < 3; k++) {
        acf_looked_lab b;
        acf_looked_lab_open(&b, threads[k], 3, batch[k]);
        assert_int_equal(acf_ask_surprise(b.s, b.table, logp[k], surprise[k], NULL), ACF_OK);
        for (int c = 0; c < CELLS; c++) {
            if (isnan(b.x[c])) assert_true(isnan(surprise[k][c]) && isnan(logp[k][c]));
            else acf_assert_close(surprise[k][c], surprise[0][c], 5000 * (double)ACF_REAL_EPS, "surprise");
        }
        acf_looked_lab_close(&b);
    }
    assert_memory_equal(surprise[0], surprise[2], sizeof surprise[0]); /* threads: to the bit */
}

/* A level that none of n cells had; what else is missing stays so. */
static void levels_never_seen_are_improbable(void **state) {
    (void)state;
    acf_looked_lab b;
    double x[2 * COLS], logp[2 * COLS], surprise[2 * COLS], plain[2 * COLS], ignore[2 * COLS];
    acf_looked_lab_open(&b, 2, 1, 64);
    memcpy(x, b.x, sizeof x);
    x[CLASS] = x[COLS + CLASS] = ABSENT;
    acf_table *t = acf_looked_lab_table(x, 2, NEW);
    assert_int_equal(acf_ask_surprise(b.s, t, ignore, plain, NULL), ACF_OK);
    t->frame = acf_alloc_zero(sizeof *t->frame, "a test");
    t->frame->strangers = (acf_strangers){acf_alloc(sizeof(int64_t), "a test"), 1, 1};
    t->frame->strangers.cell[0] = COLS + CLASS;
    assert_int_equal(acf_ask_surprise(b.s, t, logp, surprise, NULL), ACF_OK);
    acf_assert_close(logp[COLS + CLASS], -log(1 + (double)b.m->encoder->observed[CLASS]), 1e-12, "log p of a stranger");
    assert_true(surprise[COLS + CLASS] > 0 && surprise[COLS + CLASS] <= -logp[COLS + CLASS]);
    for (int c = 0; c < 2 * COLS; c++)
        if (c != COLS + CLASS) assert_true(isnan(plain[c]) ? isnan(surprise[c]) && isnan(logp[c])
            : surprise[c] == plain[c]);
    acf_tab_free(t);
    acf_looked_lab_close(&b);
}

/* One cell beyond any reason does not refuse an answer to the others, and stands out. */
static void cells_far_away_are_answered(void **state) {
    (void)state;
    static const double far[] = {1e300, -1e300, 1e30, 1e9};
    acf_looked_lab b;
    double x[CELLS], logp[CELLS], surprise[CELLS], drawn[CELLS];
    acf_looked_lab_open(&b, 2, 1, 64);
    for (int k = 0; k < 4; k++)
        for (int j = REAL; j >= WHOLE; j -= REAL - WHOLE) {
            memcpy(x, b.x, sizeof x);
            x[3 * COLS + j] = far[k];
            acf_table *t = acf_looked_lab_table(x, ROWS, NEW);
            if (acf_ask_surprise(b.s, t, logp, surprise, NULL)) fail_msg("%g: %s", far[k], acf_error());
            if (acf_ask_draw(b.s, t, (acf_question){0}, 5, 0, drawn)) fail_msg("%g: %s", far[k], acf_error());
            for (int c = 0; c < CELLS; c++) {
                assert_true(isnan(x[c]) || isfinite(surprise[c]));
                if (c / COLS != 3 && !isnan(x[c])) assert_true(surprise[c] < surprise[3 * COLS + j]);
            }
            acf_tab_free(t);
        }
    acf_looked_lab_close(&b);
}

ACF_TESTS(surprise, cmocka_unit_test(a_class_has_the_tail_of_its_draws),
    cmocka_unit_test(a_number_has_the_tail_of_its_draws), cmocka_unit_test(tails_go_on_beyond_the_draws),
          cmocka_unit_test(a_wrong_cell_does_not_condemn_the_others), cmocka_unit_test(scores_are_those_of_cells),
              cmocka_unit_test(surprise_has_no_unit),
          cmocka_unit_test(batches_and_threads_do_not_matter), cmocka_unit_test(levels_never_seen_are_improbable),
          cmocka_unit_test(cells_far_away_are_answered))
