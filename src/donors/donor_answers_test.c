/* Tests of answers with donors: the autoregressive chain, scores against formulas applied to the networks' and the
 * donors' own answers, and that a row is not its own donor. */
#include "harness/donor_lab.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

static const double tol = 5000 * (double)ACF_REAL_EPS;
static const acf_query all = {0};

/* ---- autoregressive chain -------------------------------------------------------------------------------------- */

/* Masks of row i at step n, from the query alone; returns the column, -1: it has no more. */
static int expected_turn(acf_query q, acf_purpose why, const acf_table *t, const int32_t *order, int64_t i, int n,
                         uint8_t *given, uint8_t *target) {
    int at = -1;
    for (int k = 0, seen = 0; k < COLS; k++) {
        const int j = order[k];
        const bool one = acf_donor_lab_asks(q, why, t, i * COLS + j);
        given[j] = acf_donor_lab_gives(q, why, t, i * COLS + j) || (one && seen < n);
        target[j] = one && seen == n;
        if (target[j]) at = j;
        seen += one;
    }
    return at;
}

static int count_turns(acf_query q, acf_purpose why, const acf_table *t, const int32_t *order) {
    acf_autoregression chain;
    int n = 0, most = 0;
    assert_int_equal(acf_autoregression_begin(&chain, t, q, why, order), ACF_OK);
    for (int64_t i = 0; i < t->N; i++) {
        int k = 0;
        for (int j = 0; j < COLS; j++) k += acf_donor_lab_asks(q, why, t, i * COLS + j);
        most = k > most ? k : most;
    }
    for (; acf_autoregression_next(&chain); n++) {
        assert_true(chain.q.given == chain.given && chain.q.target == chain.target);
        for (int64_t i = 0; i < t->N; i++) {
            uint8_t given[COLS], target[COLS];
            assert_int_equal(chain.column[i], expected_turn(q, why, t, order, i, n, given, target));
            assert_memory_equal(chain.given + i * COLS, given, COLS);
            assert_memory_equal(chain.target + i * COLS, target, COLS);
        }
    }
    assert_int_equal(n, most);
    assert_false(acf_autoregression_next(&chain)); /* also when called again */
    for (int64_t i = 0; i < t->N; i++) assert_int_equal(chain.column[i], -1);
    acf_autoregression_end(&chain);
    assert_true(!chain.column && !chain.given && !chain.target);
    return n;
}

static void a_row_s_cells_follow_the_chain(void **state) {
    (void)state;
    acf_donor_lab b;
    uint8_t given[CELLS], target[CELLS], none[CELLS] = {0};
    acf_donor_lab_open(&b, 2, 1, 16);
    acf_donor_lab_masks(given, target, CELLS);
    const acf_query questions[] = {{NULL, NULL},    {given, NULL}, {NULL, target},
                                   {given, target}, {given, none}, {none, target}};
    int32_t forward[COLS], back[COLS], *const orders[2] = {forward, back};
    for (int j = 0; j < COLS; j++) forward[j] = j, back[j] = COLS - 1 - j;
    acf_table *nobody = acf_donor_lab_table(b.x, 0, 0);
    for (int k = 0; k < 6; k++)
        for (int why = ACF_TO_SCORE; why <= ACF_TO_FILL; why++) {
            const int n = count_turns(questions[k], (acf_purpose)why, b.table, orders[k % 2]);
            if (k == 4) assert_int_equal(n, 0);
            if (k == 0) assert_true(why == ACF_TO_SCORE ? n == COLS : n >= 1 && n < COLS);
            assert_int_equal(count_turns(questions[k], (acf_purpose)why, nobody, orders[k % 2]), 0);
        }
    acf_table_free(nobody);
    const int64_t live = acf_alloc_live();
    for (int64_t n = 1; n <= 4; n++) {
        acf_autoregression chain;
        acf_alloc_fail_at(n);
        assert_int_equal(acf_autoregression_begin(&chain, b.table, all, ACF_TO_FILL, forward), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
    }
    acf_donor_lab_close(&b);
}

/* Columns by decreasing number of observed cells; of equals the earlier one comes first. */
static void frequently_observed_columns_come_first(void **state) {
    (void)state;
    acf_donor_lab b;
    int32_t *order;
    acf_donor_lab_open(&b, 1, 1, 16);
    assert_int_equal(acf_autoregression_order(b.m->encoder, &order), ACF_OK);
    int64_t seen[COLS] = {0};
    bool once[COLS] = {false};
    for (int64_t c = 0; c < b.table->N * COLS; c++) seen[c % COLS] += acf_table_present(b.table->x[c]);
    for (int k = 0; k < COLS; k++) {
        assert_false(once[order[k]]);
        once[order[k]] = true;
        if (k == 0) continue;
        assert_true(seen[order[k - 1]] > seen[order[k]] ||
                    (seen[order[k - 1]] == seen[order[k]] && order[k - 1] < order[k]));
    }
    acf_release(order);
    acf_donor_lab_close(&b);
}

/* ---- scores ---------------------------------------------------------------------------------------------------- */

/* log p of cell j of row i given these cells, of networks and donors together; the networks' by a session. */
static double both_at(acf_donor_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *given) {
    double lp;
    uint8_t target[COLS] = {0};
    const acf_table one = acf_donor_lab_row(t, i);
    target[j] = 1;
    assert_int_equal(acf_session_query_logp(b->net, &one, (acf_query){given, target}, &lp), ACF_OK);
    const double h = acf_donor_lab_trust(b, t, i, j, given);
    return log((1 - h) * exp(lp) + h * acf_donor_search_density(b->r, j, t->x[i * COLS + j]));
}

/* log p of the target cells of row i by the chain rule. */
static double chain(acf_donor_lab *b, const acf_table *t, acf_query q, int64_t i) {
    uint8_t given[COLS], target[COLS];
    int32_t *order;
    double sum = 0;
    assert_int_equal(acf_autoregression_order(b->m->encoder, &order), ACF_OK);
    for (int n = 0, j; (j = expected_turn(q, ACF_TO_SCORE, t, order, i, n, given, target)) >= 0; n++)
        sum += both_at(b, t, i, j, given);
    acf_release(order);
    return sum;
}

static void scores_are_a_chain(void **state) {
    (void)state;
    uint8_t given[CELLS], target[CELLS];
    acf_donor_lab_masks(given, target, CELLS);
    const acf_query questions[] = {{NULL, NULL}, {NULL, target}, {given, target}};
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double lp[ROWS], alone[ROWS];
        int differ = 0;
        acf_donor_lab_open(&b, 2, members, 7);
        for (int k = 0; k < 6; k++) {
            acf_table *t =
                acf_donor_lab_table(b.x, ROWS, k < 3 ? 0 : NEW); /* the stored rows themselves, and others like them */
            assert_int_equal(acf_session_query_logp(b.s, t, questions[k % 3], lp), ACF_OK);
            assert_int_equal(acf_session_query_logp(b.net, t, questions[k % 3], alone), ACF_OK);
            for (int i = 0; i < ROWS; i++) {
                acf_assert_close(lp[i], chain(&b, t, questions[k % 3], i), tol, "log p of a chain");
                differ += fabs(lp[i] - alone[i]) > 0.1;
            }
            acf_table_free(t);
        }
        assert_true(differ > 20);
        acf_donor_lab_close(&b);
    }
}

static void a_cell_is_a_conditional(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double cells[CELLS], lp[ROWS];
        uint8_t target[CELLS], given[COLS];
        acf_donor_lab_open(&b, 2, members, 7);
        assert_int_equal(acf_session_query_cells(b.s, b.table, cells), ACF_OK);
        for (int j = 0; j < COLS; j++) {
            for (int c = 0; c < CELLS; c++) target[c] = c % COLS == j;
            assert_int_equal(acf_session_query_logp(b.s, b.table, (acf_query){.target = target}, lp), ACF_OK);
            for (int i = 0; i < ROWS; i++) {
                const int c = i * COLS + j;
                if (isnan(b.x[c])) {
                    assert_true(isnan(cells[c]) && lp[i] == 0);
                    continue;
                }
                for (int k = 0; k < COLS; k++) given[k] = k != j && !isnan(b.x[i * COLS + k]);
                acf_assert_close(cells[c], lp[i], tol, "log p of a cell");
                acf_assert_close(cells[c], both_at(&b, b.table, i, j, given), tol, "log p of a cell by hand");
            }
        }
        acf_donor_lab_close(&b);
    }
}

/* Donors with weight 0: the answers are the networks', for one cell in each row. */
static void donors_without_weight_change_nothing(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double one[CELLS], two[CELLS];
        uint8_t target[CELLS];
        acf_donor_lab_open(&b, 2, members, 7);
        acf_donor_lab_believe(&b, -60, 0.1);
        for (int c = 0; c < CELLS; c++) target[c] = c % COLS == c / COLS % COLS;
        const acf_query q = {.target = target};
        assert_int_equal(acf_session_query_logp(b.s, b.table, q, one), ACF_OK);
        assert_int_equal(acf_session_query_logp(b.net, b.table, q, two), ACF_OK);
        for (int i = 0; i < ROWS; i++) acf_assert_close(one[i], two[i], tol, "log p");
        assert_int_equal(acf_session_query_cells(b.s, b.table, one), ACF_OK);
        assert_int_equal(acf_session_query_cells(b.net, b.table, two), ACF_OK);
        for (int c = 0; c < CELLS; c++)
            if (!isnan(b.x[c])) acf_assert_close(one[c], two[c], tol, "log p of a cell");
        assert_int_equal(acf_session_query_mean(b.s, b.table, all, one), ACF_OK);
        assert_int_equal(acf_session_query_mean(b.net, b.table, all, two), ACF_OK);
        for (int c = 0; c < CELLS; c++) acf_assert_close(one[c], two[c], tol, "mean");
        for (uint32_t d = 0; d < 4 && members == 1; d++) { /* in an ensemble the drawing member may differ */
            assert_int_equal(acf_session_query_draw(b.s, b.table, q, 5, d, one), ACF_OK);
            assert_int_equal(acf_session_query_draw(b.net, b.table, q, 5, d, two), ACF_OK);
            for (int c = 0; c < CELLS; c++)
                if (!isnan(two[c]))
                    acf_assert_close(one[c], two[c], tol, "draw");
                else
                    assert_true(isnan(one[c]));
        }
        acf_donor_lab_close(&b);
    }
}

static void probabilities_of_classes_sum_to_one(void **state) {
    (void)state;
    enum { BOTH = CLASSES * 2 };
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        acf_donor_lab_open(&b, 2, members, 5);
        for (int row = 0; row < ROWS; row++) {
            double x[BOTH * COLS], lp[BOTH], sum = 0;
            uint8_t one[BOTH * COLS], two[BOTH * COLS];
            for (int c = 0; c < BOTH * COLS; c++) {
                const int j = c % COLS, i = c / COLS;
                x[c] = j == CLASS ? i % CLASSES : j == COIN ? i / CLASSES : b.x[row * COLS + j];
                one[c] = j == CLASS, two[c] = j == CLASS || j == COIN;
            }
            acf_table *t = acf_donor_lab_table(x, BOTH, NEW);
            assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){.target = two}, lp), ACF_OK);
            for (int i = 0; i < BOTH; i++) sum += exp(lp[i]);
            acf_assert_close(sum, 1, tol, "sum over pairs");
            assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){.target = one}, lp), ACF_OK);
            acf_assert_close(exp(lp[0]) + exp(lp[1]) + exp(lp[2]) + exp(lp[3]), 1, tol, "sum over classes");
            acf_table_free(t);
        }
        acf_donor_lab_close(&b);
    }
}

/* With the largest weight of the donors, a class that no donor has is still possible, and so is a distant value. */
static void nothing_is_impossible(void **state) {
    (void)state;
    acf_donor_lab b;
    acf_donor_lab_open(&b, 2, 1, 5);
    acf_donor_lab_believe(&b, 1000, 1e-3);
    for (int k = 0; k < 2; k++) {
        const int j = k ? LAST : CLASS;
        double x[COLS], lp, net, cells[COLS];
        uint8_t target[COLS] = {0};
        memcpy(x, b.x, sizeof x);
        x[j] = k ? 1e4 : CLASSES - 1, target[j] = 1;
        acf_table *t = acf_donor_lab_table(x, 1, NEW);
        assert_int_equal(acf_session_query_logp(b.net, t, (acf_query){.target = target}, &net), ACF_OK);
        assert_int_equal(acf_session_query_logp(b.s, t, (acf_query){.target = target}, &lp), ACF_OK);
        assert_int_equal(acf_session_query_cells(b.s, t, cells), ACF_OK);
        assert_true(isfinite(net) && isfinite(lp) && lp >= net - 40);
        acf_assert_close(cells[j], lp, tol, "log p of a cell");
        acf_table_free(t);
    }
    acf_donor_lab_close(&b);
}

/* ---- a row is not its own donor -------------------------------------------------------------------------------- */

/* A stored row gets nothing from itself, at any position in a table; an equal row with another id gets everything. */
static void a_row_is_not_its_own_donor(void **state) {
    (void)state;
    acf_donor_lab b;
    double own[FULL * COLS], other[FULL * COLS], x[FULL * COLS], lp[2][FULL], mean[2][FULL * COLS],
        cells[2][FULL * COLS];
    uint8_t target[FULL * COLS];
    acf_donor_lab_open(&b, 2, 1, 3);
    acf_donor_lab_believe(&b, 60, 1e-9);
    acf_donor_lab_only_equal(&b);
    for (int c = 0; c < FULL * COLS; c++) target[c] = c % COLS == LAST, x[c] = target[c] ? ABSENT : b.x[c];
    acf_table *mine = acf_donor_lab_table(x + COLS, 7, 1), *theirs = acf_donor_lab_table(x + COLS, 7, NEW);
    acf_table *full = acf_donor_lab_table(b.x + COLS, 7, 1), *theirs_full = acf_donor_lab_table(b.x + COLS, 7, NEW);
    assert_int_equal(acf_session_query_draw(b.s, mine, all, 5, 0, own), ACF_OK);
    assert_int_equal(acf_session_query_draw(b.s, theirs, all, 5, 0, other), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, mine, all, mean[0]), ACF_OK);
    assert_int_equal(acf_session_query_mean(b.s, theirs, all, mean[1]), ACF_OK);
    assert_int_equal(acf_session_query_logp(b.s, full, (acf_query){.target = target}, lp[0]), ACF_OK);
    assert_int_equal(acf_session_query_logp(b.s, theirs_full, (acf_query){.target = target}, lp[1]), ACF_OK);
    assert_int_equal(acf_session_query_cells(b.s, full, cells[0]), ACF_OK);
    assert_int_equal(acf_session_query_cells(b.s, theirs_full, cells[1]), ACF_OK);
    for (int i = 0; i < 7; i++) {
        const int c = i * COLS + LAST;
        const double value = b.x[c + COLS];
        assert_true(own[c] != value && other[c] == acf_encoder_round(b.m->encoder, LAST, value));
        assert_true(fabs(mean[0][c] - value) > 1e-3);
        acf_assert_close(mean[1][c], value, 1e-6, "mean");
        assert_true(lp[1][i] > lp[0][i] + 10 && cells[1][c] > cells[0][c] + 10);
    }
    acf_table_free(mine), acf_table_free(theirs), acf_table_free(full), acf_table_free(theirs_full);
    acf_donor_lab_close(&b);
}

/* Each allocation fails once, from the session to its answers. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_donor_lab b;
    double out[CELLS], high[CELLS];
    acf_donor_lab_open(&b, 2, 2, 16);
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    int64_t n = 1;
    for (; status; n++) {
        acf_session *s = NULL;
        acf_alloc_fail_at(n);
        status = acf_session_open(b.dev, b.m, 16, &s);
        if (!status) status = acf_session_query_logp(s, b.table, all, out);
        if (!status) status = acf_session_query_draw(s, b.table, all, 1, 1, out);
        if (!status) status = acf_session_query_summary(s, b.table, all, 1, 2, NULL, 0, out, NULL);
        if (!status) status = acf_session_query_mean(s, b.table, all, out);
        if (!status) status = acf_session_query_interval(s, b.table, all, 0.9, NULL, out, high);
        acf_alloc_fail_at(0);
        acf_session_free(s);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 20);
    acf_donor_answers_free(NULL);
    acf_donor_lab_close(&b);
}

ACF_TESTS(donor_answers, cmocka_unit_test(a_row_s_cells_follow_the_chain),
          cmocka_unit_test(frequently_observed_columns_come_first), cmocka_unit_test(scores_are_a_chain),
          cmocka_unit_test(a_cell_is_a_conditional), cmocka_unit_test(donors_without_weight_change_nothing),
          cmocka_unit_test(probabilities_of_classes_sum_to_one), cmocka_unit_test(nothing_is_impossible),
          cmocka_unit_test(a_row_is_not_its_own_donor), cmocka_unit_test(survives_without_memory))
