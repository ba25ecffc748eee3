/* Surprisal: tails agree with draws; a wrong cell is withheld from the others; any unit, any batch; unseen levels
 * and numbers far away. */
#include "harness/donor_lab.h"

#include "harness/lab.h"
#include "table/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tails ------------------------------------------------------------------------------------------------------- */

enum { DRAWS = 1002, SETS = 3, AT_ONCE = DRAWS / SETS }; /* a draw is of one member: one of each of three */
#define ERROR 0.06                                       /* of a share of draws, 4 deviations */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws of column j of the row, given the rest of it, ascending. */
static void draw_column(acf_session *s, const double *row, int j, double *to) {
    static double out[DRAWS * COLS];
    static uint8_t target[DRAWS * COLS];
    acf_table *t = acf_donor_lab_copies(row, AT_ONCE);
    for (int c = 0; c < DRAWS * COLS; c++) target[c] = c % COLS == j;
    for (uint32_t d = 0; d < SETS; d++)
        assert_int_equal(acf_session_query_draw(s, t, (acf_query){.target = target}, 5, d, out + d * AT_ONCE * COLS),
                         ACF_OK);
    for (int i = 0; i < DRAWS; i++) to[i] = out[i * COLS + j];
    qsort(to, DRAWS, sizeof *to, by_value);
    acf_table_free(t);
}

/* The surprisal of the row's cell in column j. */
static double surprisal_of(acf_session *s, const double *row, int j) {
    double logp[COLS], surprisal[COLS];
    acf_table *t = acf_donor_lab_table(row, 1, NEW);
    if (acf_session_query_surprisal(s, t, logp, surprisal, NULL)) fail_msg("%s", acf_error());
    acf_table_free(t);
    return surprisal[j];
}

/* Of classes: the share of draws of a class that is no more frequent. */
static void a_class_has_the_tail_of_its_draws(void **state) {
    (void)state;
    for (int members = 1; members <= 3; members += 2)
        for (int donors = 0; donors < 2; donors++) {
            acf_donor_lab b;
            acf_donor_lab_open(&b, 2, members, 64);
            acf_donor_lab_believe(&b, 0.5, 0.2);
            for (int i = 0; i < FULL; i++) {
                double row[COLS], drawn[DRAWS], share[CLASSES] = {0}, least = 0, most = 0;
                memcpy(row, b.x + i * COLS, sizeof row);
                draw_column(donors ? b.s : b.net, row, CLASS, drawn);
                for (int d = 0; d < DRAWS; d++) share[(int)drawn[d]] += 1.0 / DRAWS;
                const double own = share[(int)row[CLASS]];
                for (int c = 0; c < CLASSES; c++) {
                    least += share[c] < own - ERROR || c == row[CLASS] ? share[c] : 0;
                    most += share[c] < own + ERROR ? share[c] : 0;
                }
                const double tail = exp(-surprisal_of(donors ? b.s : b.net, row, CLASS));
                if (!(tail > least - ERROR && tail < most + ERROR && tail <= 1))
                    fail_msg("%g, expected %g to %g", tail, least, most);
            }
            acf_donor_lab_close(&b);
        }
}

/* Of numbers: about 0 in the middle, log 10 at the 5 % quantiles, and more farther out. */
static void a_number_has_the_tail_of_its_draws(void **state) {
    (void)state;
    acf_donor_lab b;
    double sum = 0, drawn[DRAWS], row[COLS];
    acf_donor_lab_open(&b, 2, 3, 64);
    for (int i = 0; i < FULL; i++) {
        memcpy(row, b.x + i * COLS, sizeof row);
        draw_column(b.net, row, REAL, drawn);
        const double level[] = {0.5, 0.95, 1 - 0.5 / DRAWS};
        double at[5];
        for (int k = 0; k < 3; k++) row[REAL] = drawn[(int)(level[k] * DRAWS)], at[k] = surprisal_of(b.net, row, REAL);
        for (int k = 3; k < 5; k++)
            row[REAL] = drawn[DRAWS - 1] + (k - 2) * 100, at[k] = surprisal_of(b.net, row, REAL);
        if (!(at[0] < 0.7 && at[2] >= at[1] - 0.1 && at[3] > at[2] && at[4] > at[2]))
            fail_msg("row %d: %g %g %g %g %g", i, at[0], at[1], at[2], at[3], at[4]);
        sum += at[1] / FULL;
    }
    assert_true(fabs(sum - log(10)) < 0.5);
    acf_donor_lab_close(&b);
}

/* Beyond the quantiles, tails are exponential on the scale of numbers, on either side by its own quantile: here
 * three times as far. */
static void tails_go_on_beyond_the_draws(void **state) {
    (void)state;
    acf_donor_lab b;
    double sum[2] = {0}, drawn[DRAWS], row[COLS];
    acf_donor_lab_open(&b, 2, 3, 64);
    const double mean = b.m->encoder->mean[REAL], scale = b.m->encoder->scale[REAL];
    for (int i = 0; i < FULL; i++)
        for (int side = 0; side < 2; side++) {
            memcpy(row, b.x + i * COLS, sizeof row);
            draw_column(b.net, row, REAL, drawn);
            const double end = 3 * asinh((drawn[(side ? 19 : 1) * DRAWS / 20] - mean) / scale / 3);
            const double middle = 3 * asinh((drawn[DRAWS / 2] - mean) / scale / 3);
            row[REAL] = mean + scale * 3 * sinh((middle + 3 * (end - middle)) / 3);
            sum[side] += surprisal_of(b.net, row, REAL) / FULL;
        }
    for (int side = 0; side < 2; side++)
        if (fabs(sum[side] - 3 * log(10)) > 1) fail_msg("side %d: %g, expected %g", side, sum[side], 3 * log(10));
    acf_donor_lab_close(&b);
}

/* ---- withheld cells ---------------------------------------------------------------------------------------------- */

/* A cell far out is withheld from the others of its row: they have the same surprisal as without it. Other rows do
 * not change. */
static void a_wrong_cell_is_withheld_from_the_others(void **state) {
    (void)state;
    acf_donor_lab b;
    double x[FULL * COLS], logp[3][FULL * COLS], surprisal[3][FULL * COLS];
    uint8_t given[3][FULL * COLS];
    acf_donor_lab_open(&b, 2, 2, 5);
    const int wrong = 3 * COLS + REAL;
    for (int k = 0; k < 3; k++) {
        memcpy(x, b.x, sizeof x);
        if (k) x[wrong] = k == 1 ? 1e4 : ABSENT;
        acf_table *t = acf_donor_lab_table(x, FULL, NEW);
        assert_int_equal(acf_session_query_surprisal(b.s, t, logp[k], surprisal[k], given[k]), ACF_OK);
        acf_table_free(t);
    }
    assert_true(!given[1][wrong] && surprisal[1][wrong] > log(100) && isnan(surprisal[2][wrong]) && !given[2][wrong]);
    for (int c = 0; c < FULL * COLS; c++) {
        if (c == wrong) continue;
        const int as = c / COLS == 3 ? 2 : 0;
        assert_true(surprisal[1][c] == surprisal[as][c] && logp[1][c] == logp[as][c] && given[1][c] == given[as][c]);
        assert_true(given[1][c] || surprisal[1][c] >= 0);
    }
    acf_donor_lab_close(&b);
}

/* If a row has no doubtful cell, log p is that of each cell given all others. */
static void scores_are_those_of_cells(void **state) {
    (void)state;
    acf_donor_lab b;
    double logp[CELLS], surprisal[CELLS], cells[CELLS];
    uint8_t given[CELLS];
    int rows = 0;
    acf_donor_lab_open(&b, 2, 2, 64);
    assert_int_equal(acf_session_query_surprisal(b.s, b.table, logp, surprisal, given), ACF_OK);
    assert_int_equal(acf_session_query_cells(b.s, b.table, cells), ACF_OK);
    for (int i = 0; i < ROWS; i++) {
        bool all = true;
        for (int c = i * COLS; c < (i + 1) * COLS; c++) all = all && given[c] == !isnan(b.x[c]);
        for (int c = i * COLS; all && c < (i + 1) * COLS; c++)
            assert_true(isnan(b.x[c]) ? isnan(logp[c]) : logp[c] == cells[c]);
        rows += all;
    }
    assert_in_range(rows, ROWS / 2, ROWS);
    acf_donor_lab_close(&b);
}

/* A column in another unit: log p moves by the logarithm of the unit, the surprisal does not. */
static void surprisal_has_no_unit(void **state) {
    (void)state;
    const double unit = 1e5;
    acf_donor_lab b;
    double logp[2][CELLS], surprisal[2][CELLS], x[CELLS];
    acf_donor_lab_open(&b, 2, 1, 64);
    assert_int_equal(acf_session_query_surprisal(b.net, b.table, logp[0], surprisal[0], NULL), ACF_OK);
    acf_encoder *e = b.m->encoder;
    e->mean[REAL] *= unit, e->least[REAL] *= unit, e->most[REAL] *= unit;
    acf_encoder_set_scale(e, REAL, e->scale[REAL] * unit);
    for (int c = 0; c < CELLS; c++) x[c] = c % COLS == REAL ? unit * b.x[c] : b.x[c];
    acf_table *t = acf_donor_lab_table(x, ROWS, 0);
    assert_int_equal(acf_session_query_surprisal(b.net, t, logp[1], surprisal[1], NULL), ACF_OK);
    for (int c = 0; c < CELLS; c++) {
        assert_int_equal(isnan(surprisal[0][c]), isnan(b.x[c]));
        if (isnan(b.x[c])) continue;
        acf_assert_close(surprisal[1][c], surprisal[0][c], 2e-3, "surprisal");
        acf_assert_close(logp[1][c], logp[0][c] - (c % COLS == REAL ? log(unit) : 0), 2e-3, "log p");
    }
    acf_table_free(t);
    acf_donor_lab_close(&b);
}

static void batches_and_threads_do_not_matter(void **state) {
    (void)state;
    static double logp[3][CELLS], surprisal[3][CELLS];
    static const int64_t batch[3] = {64, 5, 64};
    static const int threads[3] = {2, 2, 1};
    for (int k = 0; k < 3; k++) {
        acf_donor_lab b;
        acf_donor_lab_open(&b, threads[k], 3, batch[k]);
        assert_int_equal(acf_session_query_surprisal(b.s, b.table, logp[k], surprisal[k], NULL), ACF_OK);
        for (int c = 0; c < CELLS; c++) {
            if (isnan(b.x[c]))
                assert_true(isnan(surprisal[k][c]) && isnan(logp[k][c]));
            else
                acf_assert_close(surprisal[k][c], surprisal[0][c], 5000 * (double)ACF_REAL_EPS, "surprisal");
        }
        acf_donor_lab_close(&b);
    }
    assert_memory_equal(surprisal[0], surprisal[2], sizeof surprisal[0]); /* threads: bit for bit */
}

/* A level that none of n cells has; other missing cells stay missing. */
static void levels_never_seen_are_improbable(void **state) {
    (void)state;
    acf_donor_lab b;
    double x[2 * COLS], logp[2 * COLS], surprisal[2 * COLS], plain[2 * COLS], ignore[2 * COLS];
    acf_donor_lab_open(&b, 2, 1, 64);
    memcpy(x, b.x, sizeof x);
    x[CLASS] = x[COLS + CLASS] = ABSENT;
    acf_table *t = acf_donor_lab_table(x, 2, NEW);
    assert_int_equal(acf_session_query_surprisal(b.s, t, ignore, plain, NULL), ACF_OK);
    t->file = acf_alloc_zero(sizeof *t->file, "a test");
    t->file->unseen_levels = (acf_unseen_levels){acf_alloc(sizeof(int64_t), "a test"), 1, 1};
    t->file->unseen_levels.cell[0] = COLS + CLASS;
    assert_int_equal(acf_session_query_surprisal(b.s, t, logp, surprisal, NULL), ACF_OK);
    acf_assert_close(logp[COLS + CLASS], -log(1 + (double)b.m->encoder->observed[CLASS]), 1e-12,
                     "log p of an unseen level");
    assert_true(surprisal[COLS + CLASS] > 0 && surprisal[COLS + CLASS] <= -logp[COLS + CLASS]);
    for (int c = 0; c < 2 * COLS; c++)
        if (c != COLS + CLASS)
            assert_true(isnan(plain[c]) ? isnan(surprisal[c]) && isnan(logp[c]) : surprisal[c] == plain[c]);
    acf_table_free(t);
    acf_donor_lab_close(&b);
}

/* An absurd cell does not prevent answers for the others, and stands out. */
static void cells_far_away_are_answered(void **state) {
    (void)state;
    static const double far[] = {1e300, -1e300, 1e30, 1e9};
    acf_donor_lab b;
    double x[CELLS], logp[CELLS], surprisal[CELLS], drawn[CELLS];
    acf_donor_lab_open(&b, 2, 1, 64);
    for (int k = 0; k < 4; k++)
        for (int j = REAL; j >= WHOLE; j -= REAL - WHOLE) {
            memcpy(x, b.x, sizeof x);
            x[3 * COLS + j] = far[k];
            acf_table *t = acf_donor_lab_table(x, ROWS, NEW);
            if (acf_session_query_surprisal(b.s, t, logp, surprisal, NULL)) fail_msg("%g: %s", far[k], acf_error());
            if (acf_session_query_draw(b.s, t, (acf_query){0}, 5, 0, drawn)) fail_msg("%g: %s", far[k], acf_error());
            for (int c = 0; c < CELLS; c++) {
                assert_true(isnan(x[c]) || isfinite(surprisal[c]));
                if (c / COLS != 3 && !isnan(x[c])) assert_true(surprisal[c] < surprisal[3 * COLS + j]);
            }
            acf_table_free(t);
        }
    acf_donor_lab_close(&b);
}

ACF_TESTS(surprisal, cmocka_unit_test(a_class_has_the_tail_of_its_draws),
          cmocka_unit_test(a_number_has_the_tail_of_its_draws), cmocka_unit_test(tails_go_on_beyond_the_draws),
          cmocka_unit_test(a_wrong_cell_is_withheld_from_the_others), cmocka_unit_test(scores_are_those_of_cells),
          cmocka_unit_test(surprisal_has_no_unit), cmocka_unit_test(batches_and_threads_do_not_matter),
          cmocka_unit_test(levels_never_seen_are_improbable), cmocka_unit_test(cells_far_away_are_answered))
