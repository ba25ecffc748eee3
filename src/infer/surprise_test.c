/* What looks wrong: log p against its mean over draws, in any unit, for any batch; levels that were never seen, and numbers far away. */
#include "harness/looked_lab.h"

#include "data/frame.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Mean of log p over draws of column j of the row, given the rest of it; *error is its standard error. */
static double mean_over_draws(acf_session *s, const double *row, int j, double *error) {
    enum { N = 510, DRAWS = 3 }; /* one of each of three members */
    static double out[N * COLS], lp[N];
    static uint8_t asked[N * COLS];
    double sum = 0, square = 0;
    acf_table *t = acf_looked_lab_copies(row, N / DRAWS), *drawn;
    for (int c = 0; c < N * COLS; c++) asked[c] = c % COLS == j;
    for (uint32_t d = 0; d < DRAWS; d++)
        assert_int_equal(acf_ask_draw(s, t, (acf_question){.asked = asked}, 5, d, out + d * (N / DRAWS) * COLS), ACF_OK);
    drawn = acf_looked_lab_table(out, N, NEW);
    assert_int_equal(acf_ask_logp(s, drawn, (acf_question){.asked = asked}, lp), ACF_OK);
    for (int i = 0; i < N; i++) sum += lp[i] / N, square += lp[i] * lp[i] / N;
    *error = sqrt(fmax(square - sum * sum, 0) / N);
    acf_tab_free(t), acf_tab_free(drawn);
    return sum;
}

/* With one member and with three, by the networks alone and with rows that are looked up. Of classes exactly; of numbers, which the bench gives densities with
 * a peak at every row, on average over rows. */
static void what_is_expected_is_the_mean_over_draws(void **state) {
    (void)state;
    for (int members = 1; members <= 3; members += 2)
        for (int archive = 0; archive < 2; archive++) {
            acf_looked_lab b;
            double logp[FULL * COLS], surprise[FULL * COLS], cells[FULL * COLS], error, off[COLS] = {0};
            acf_looked_lab_open(&b, 2, members, 64);
            acf_looked_lab_believe(&b, 0.5, 0.2);
            acf_session *s = archive ? b.s : b.net;
            acf_table *t = acf_looked_lab_table(b.x, FULL, NEW);
            if (acf_ask_surprise(s, t, logp, surprise)) fail_msg("%s", acf_error());
            assert_int_equal(acf_ask_cells(s, t, cells), ACF_OK);
            assert_memory_equal(logp, cells, sizeof cells);
            for (int c = 0; c < FULL * COLS; c++) {
                const double d = surprise[c] + logp[c] - mean_over_draws(s, b.x + c / COLS * COLS, c % COLS, &error);
                off[c % COLS] += d / FULL;
                if (fabs(d) > 5 * error + (acf_looked_lab_columns[c % COLS].classes ? 0.002 : archive ? 4 : 1.8))
                    fail_msg("members %d, archive %d, row %d, column %d: off by %g", members, archive, c / COLS, c % COLS, d);
            }
            for (int j = 0; j < COLS; j++)
                if (fabs(off[j]) > (archive ? 0.8 : 0.6)) fail_msg("members %d, archive %d, column %d: off by %g", members, archive, j, off[j]);
            acf_tab_free(t);
            acf_looked_lab_close(&b);
        }
}

/* A column in another unit: log p moves by the logarithm of the unit, the surprise does not. */
static void surprise_has_no_unit(void **state) {
    (void)state;
    const double unit = 1e5;
    acf_looked_lab b;
    double logp[2][CELLS], surprise[2][CELLS], x[CELLS];
    acf_looked_lab_open(&b, 2, 1, 64);
    assert_int_equal(acf_ask_surprise(b.net, b.table, logp[0], surprise[0]), ACF_OK);
    acf_encoder *e = b.m->encoder;
    e->mean[REAL] *= unit, e->least[REAL] *= unit, e->most[REAL] *= unit;
    acf_encoder_set_scale(e, REAL, e->scale[REAL] * unit);
    for (int c = 0; c < CELLS; c++) x[c] = c % COLS == REAL ? unit * b.x[c] : b.x[c];
    acf_table *t = acf_looked_lab_table(x, ROWS, 0);
    assert_int_equal(acf_ask_surprise(b.net, t, logp[1], surprise[1]), ACF_OK);
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
        assert_int_equal(acf_ask_surprise(b.s, b.table, logp[k], surprise[k]), ACF_OK);
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
    assert_int_equal(acf_ask_surprise(b.s, t, ignore, plain), ACF_OK);
    t->frame = acf_alloc_zero(sizeof *t->frame, "a test");
    t->frame->strangers = (acf_strangers){acf_alloc(sizeof(int64_t), "a test"), 1, 1};
    t->frame->strangers.cell[0] = COLS + CLASS;
    assert_int_equal(acf_ask_surprise(b.s, t, logp, surprise), ACF_OK);
    acf_assert_close(logp[COLS + CLASS], -log(1 + (double)b.m->encoder->observed[CLASS]), 1e-12, "log p of a stranger");
    assert_true(surprise[COLS + CLASS] > 0 && surprise[COLS + CLASS] <= -logp[COLS + CLASS]);
    for (int c = 0; c < 2 * COLS; c++)
        if (c != COLS + CLASS) assert_true(isnan(plain[c]) ? isnan(surprise[c]) && isnan(logp[c]) : surprise[c] == plain[c]);
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
            if (acf_ask_surprise(b.s, t, logp, surprise)) fail_msg("%g: %s", far[k], acf_error());
            if (acf_ask_draw(b.s, t, (acf_question){0}, 5, 0, drawn)) fail_msg("%g: %s", far[k], acf_error());
            for (int c = 0; c < CELLS; c++) {
                assert_true(isnan(x[c]) || isfinite(surprise[c]));
                if (c / COLS != 3 && !isnan(x[c])) assert_true(surprise[c] < surprise[3 * COLS + j]);
            }
            acf_tab_free(t);
        }
    acf_looked_lab_close(&b);
}

ACF_TESTS(surprise, cmocka_unit_test(what_is_expected_is_the_mean_over_draws), cmocka_unit_test(surprise_has_no_unit),
          cmocka_unit_test(batches_and_threads_do_not_matter), cmocka_unit_test(levels_never_seen_are_improbable),
          cmocka_unit_test(cells_far_away_are_answered))
