/* Answers with an archive: cells in turn, scores against what the networks alone and the rows alone say, put together here by the formulas, and whose row it is. */
#include "harness/looked_lab.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

static const double tol = 5000 * (double)ACF_REAL_EPS;
static const acf_question all = {0};

/* ---- cells in turn -------------------------------------------------------------------------------------------------------------- */

/* Masks of row i at turn n, from nothing but the question; returns the column, -1: it has no more. */
static int expected_turn(acf_question q, acf_purpose why, const acf_table *t, const int32_t *order, int64_t i, int n, uint8_t *given, uint8_t *asked) {
    int at = -1;
    for (int k = 0, seen = 0; k < COLS; k++) {
        const int j = order[k];
        const bool one = acf_looked_lab_asks(q, why, t, i * COLS + j);
        given[j] = acf_looked_lab_gives(q, why, t, i * COLS + j) || (one && seen < n);
        asked[j] = one && seen == n;
        if (asked[j]) at = j;
        seen += one;
    }
    return at;
}

static int count_turns(acf_question q, acf_purpose why, const acf_table *t, const int32_t *order) {
    acf_in_turn turn;
    int n = 0, most = 0;
    assert_int_equal(acf_in_turn_begin(&turn, t, q, why, order), ACF_OK);
    for (int64_t i = 0; i < t->N; i++) {
        int k = 0;
        for (int j = 0; j < COLS; j++) k += acf_looked_lab_asks(q, why, t, i * COLS + j);
        most = k > most ? k : most;
    }
    for (; acf_in_turn_next(&turn); n++) {
        assert_true(turn.q.given == turn.given && turn.q.asked == turn.asked);
        for (int64_t i = 0; i < t->N; i++) {
            uint8_t given[COLS], asked[COLS];
            assert_int_equal(turn.column[i], expected_turn(q, why, t, order, i, n, given, asked));
            assert_memory_equal(turn.given + i * COLS, given, COLS);
            assert_memory_equal(turn.asked + i * COLS, asked, COLS);
        }
    }
    assert_int_equal(n, most);
    assert_false(acf_in_turn_next(&turn)); /* and stays so */
    for (int64_t i = 0; i < t->N; i++) assert_int_equal(turn.column[i], -1);
    acf_in_turn_end(&turn);
    assert_true(!turn.column && !turn.given && !turn.asked);
    return n;
}

static void cells_take_turns(void **state) {
    (void)state;
    acf_looked_lab b;
    uint8_t given[CELLS], asked[CELLS], none[CELLS] = {0};
    acf_looked_lab_open(&b, 2, 1, 16);
    acf_looked_lab_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {given, NULL}, {NULL, asked}, {given, asked}, {given, none}, {none, asked}};
    int32_t forward[COLS], back[COLS], *const orders[2] = {forward, back};
    for (int j = 0; j < COLS; j++) forward[j] = j, back[j] = COLS - 1 - j;
    acf_table *nobody = acf_looked_lab_table(b.x, 0, 0);
    for (int k = 0; k < 6; k++)
        for (int why = ACF_TO_SCORE; why <= ACF_TO_FILL; why++) {
            const int n = count_turns(questions[k], (acf_purpose)why, b.table, orders[k % 2]);
            if (k == 4) assert_int_equal(n, 0);
            if (k == 0) assert_true(why == ACF_TO_SCORE ? n == COLS : n >= 1 && n < COLS);
            assert_int_equal(count_turns(questions[k], (acf_purpose)why, nobody, orders[k % 2]), 0);
        }
    acf_tab_free(nobody);
    const int64_t live = acf_alloc_live();
    for (int64_t n = 1; n <= 4; n++) {
        acf_in_turn turn;
        acf_alloc_fail_at(n);
        assert_int_equal(acf_in_turn_begin(&turn, b.table, all, ACF_TO_FILL, forward), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
    }
    acf_looked_lab_close(&b);
}

/* Columns that were observed more often come first, of equals the earlier one. */
static void often_seen_columns_come_first(void **state) {
    (void)state;
    acf_looked_lab b;
    int32_t *order;
    acf_looked_lab_open(&b, 1, 1, 16);
    assert_int_equal(acf_in_turn_order(b.m->encoder, &order), ACF_OK);
    int64_t seen[COLS] = {0};
    bool once[COLS] = {false};
    for (int64_t c = 0; c < b.table->N * COLS; c++) seen[c % COLS] += acf_tab_present(b.table->x[c]);
    for (int k = 0; k < COLS; k++) {
        assert_false(once[order[k]]);
        once[order[k]] = true;
        if (k == 0) continue;
        assert_true(seen[order[k - 1]] > seen[order[k]] || (seen[order[k - 1]] == seen[order[k]] && order[k - 1] < order[k]));
    }
    acf_release(order);
    acf_looked_lab_close(&b);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------------- */

/* log p of cell j of row i given these cells, of both: by a session of the networks. */
static double both_at(acf_looked_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *given) {
    double lp;
    uint8_t asked[COLS] = {0};
    const acf_table one = acf_looked_lab_row(t, i);
    asked[j] = 1;
    assert_int_equal(acf_ask_logp(b->net, &one, (acf_question){given, asked}, &lp), ACF_OK);
    const double h = acf_looked_lab_trust(b, t, i, j, given);
    return log((1 - h) * exp(lp) + h * acf_recall_density(b->r, j, t->x[i * COLS + j]));
}

/* The chain over the asked cells of row i. */
static double chain(acf_looked_lab *b, const acf_table *t, acf_question q, int64_t i) {
    uint8_t given[COLS], asked[COLS];
    int32_t *order;
    double sum = 0;
    assert_int_equal(acf_in_turn_order(b->m->encoder, &order), ACF_OK);
    for (int n = 0, j; (j = expected_turn(q, ACF_TO_SCORE, t, order, i, n, given, asked)) >= 0; n++) sum += both_at(b, t, i, j, given);
    acf_release(order);
    return sum;
}

static void scores_are_a_chain(void **state) {
    (void)state;
    uint8_t given[CELLS], asked[CELLS];
    acf_looked_lab_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {NULL, asked}, {given, asked}};
    for (int members = 1; members <= 2; members++) {
        acf_looked_lab b;
        double lp[ROWS], alone[ROWS];
        int differ = 0;
        acf_looked_lab_open(&b, 2, members, 7);
        for (int k = 0; k < 6; k++) {
            acf_table *t = acf_looked_lab_table(b.x, ROWS, k < 3 ? 0 : NEW); /* the remembered rows themselves, and others like them */
            assert_int_equal(acf_ask_logp(b.s, t, questions[k % 3], lp), ACF_OK);
            assert_int_equal(acf_ask_logp(b.net, t, questions[k % 3], alone), ACF_OK);
            for (int i = 0; i < ROWS; i++) {
                acf_assert_close(lp[i], chain(&b, t, questions[k % 3], i), tol, "log p of a chain");
                differ += fabs(lp[i] - alone[i]) > 0.1;
            }
            acf_tab_free(t);
        }
        assert_true(differ > 20);
        acf_looked_lab_close(&b);
    }
}

static void a_cell_is_a_conditional(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        acf_looked_lab b;
        double cells[CELLS], lp[ROWS];
        uint8_t asked[CELLS], given[COLS];
        acf_looked_lab_open(&b, 2, members, 7);
        assert_int_equal(acf_ask_cells(b.s, b.table, cells), ACF_OK);
        for (int j = 0; j < COLS; j++) {
            for (int c = 0; c < CELLS; c++) asked[c] = c % COLS == j;
            assert_int_equal(acf_ask_logp(b.s, b.table, (acf_question){.asked = asked}, lp), ACF_OK);
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
        acf_looked_lab_close(&b);
    }
}

/* Rows that are never believed: the answers of the networks, of one cell in each row. */
static void rows_that_are_not_believed_change_nothing(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        acf_looked_lab b;
        double one[CELLS], two[CELLS];
        uint8_t asked[CELLS];
        acf_looked_lab_open(&b, 2, members, 7);
        acf_looked_lab_believe(&b, -60, 0.1);
        for (int c = 0; c < CELLS; c++) asked[c] = c % COLS == c / COLS % COLS;
        const acf_question q = {.asked = asked};
        assert_int_equal(acf_ask_logp(b.s, b.table, q, one), ACF_OK);
        assert_int_equal(acf_ask_logp(b.net, b.table, q, two), ACF_OK);
        for (int i = 0; i < ROWS; i++) acf_assert_close(one[i], two[i], tol, "log p");
        assert_int_equal(acf_ask_cells(b.s, b.table, one), ACF_OK);
        assert_int_equal(acf_ask_cells(b.net, b.table, two), ACF_OK);
        for (int c = 0; c < CELLS; c++)
            if (!isnan(b.x[c])) acf_assert_close(one[c], two[c], tol, "log p of a cell");
        assert_int_equal(acf_ask_mean(b.s, b.table, all, one), ACF_OK);
        assert_int_equal(acf_ask_mean(b.net, b.table, all, two), ACF_OK);
        for (int c = 0; c < CELLS; c++) acf_assert_close(one[c], two[c], tol, "mean");
        for (uint32_t d = 0; d < 4 && members == 1; d++) { /* of several, another may draw */
            assert_int_equal(acf_ask_draw(b.s, b.table, q, 5, d, one), ACF_OK);
            assert_int_equal(acf_ask_draw(b.net, b.table, q, 5, d, two), ACF_OK);
            for (int c = 0; c < CELLS; c++)
                if (!isnan(two[c])) acf_assert_close(one[c], two[c], tol, "draw");
                else assert_true(isnan(one[c]));
        }
        acf_looked_lab_close(&b);
    }
}

static void probabilities_of_classes_sum_to_one(void **state) {
    (void)state;
    enum { BOTH = CLASSES * 2 };
    for (int members = 1; members <= 2; members++) {
        acf_looked_lab b;
        acf_looked_lab_open(&b, 2, members, 5);
        for (int row = 0; row < ROWS; row++) {
            double x[BOTH * COLS], lp[BOTH], sum = 0;
            uint8_t one[BOTH * COLS], two[BOTH * COLS];
            for (int c = 0; c < BOTH * COLS; c++) {
                const int j = c % COLS, i = c / COLS;
                x[c] = j == CLASS ? i % CLASSES : j == COIN ? i / CLASSES : b.x[row * COLS + j];
                one[c] = j == CLASS, two[c] = j == CLASS || j == COIN;
            }
            acf_table *t = acf_looked_lab_table(x, BOTH, NEW);
            assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = two}, lp), ACF_OK);
            for (int i = 0; i < BOTH; i++) sum += exp(lp[i]);
            acf_assert_close(sum, 1, tol, "sum over pairs");
            assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = one}, lp), ACF_OK);
            acf_assert_close(exp(lp[0]) + exp(lp[1]) + exp(lp[2]) + exp(lp[3]), 1, tol, "sum over classes");
            acf_tab_free(t);
        }
        acf_looked_lab_close(&b);
    }
}

/* Where rows are believed as far as a number can say, a class that none of them has is still possible, and so is a value far from theirs. */
static void nothing_is_impossible(void **state) {
    (void)state;
    acf_looked_lab b;
    acf_looked_lab_open(&b, 2, 1, 5);
    acf_looked_lab_believe(&b, 1000, 1e-3);
    for (int k = 0; k < 2; k++) {
        const int j = k ? LAST : CLASS;
        double x[COLS], lp, net, cells[COLS];
        uint8_t asked[COLS] = {0};
        memcpy(x, b.x, sizeof x);
        x[j] = k ? 1e4 : CLASSES - 1, asked[j] = 1;
        acf_table *t = acf_looked_lab_table(x, 1, NEW);
        assert_int_equal(acf_ask_logp(b.net, t, (acf_question){.asked = asked}, &net), ACF_OK);
        assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = asked}, &lp), ACF_OK);
        assert_int_equal(acf_ask_cells(b.s, t, cells), ACF_OK);
        assert_true(isfinite(net) && isfinite(lp) && lp >= net - 40);
        acf_assert_close(cells[j], lp, tol, "log p of a cell");
        acf_tab_free(t);
    }
    acf_looked_lab_close(&b);
}

/* ---- whose row it is ------------------------------------------------------------------------------------------------------------- */

/* A remembered row has nothing from itself, wherever it stands in a table; one like it with another id has all. */
static void a_row_is_not_looked_up_in_itself(void **state) {
    (void)state;
    acf_looked_lab b;
    double own[FULL * COLS], other[FULL * COLS], x[FULL * COLS], lp[2][FULL], mean[2][FULL * COLS], cells[2][FULL * COLS];
    uint8_t asked[FULL * COLS];
    acf_looked_lab_open(&b, 2, 1, 3);
    acf_looked_lab_believe(&b, 60, 1e-9);
    acf_looked_lab_only_equal(&b);
    for (int c = 0; c < FULL * COLS; c++) asked[c] = c % COLS == LAST, x[c] = asked[c] ? ABSENT : b.x[c];
    acf_table *mine = acf_looked_lab_table(x + COLS, 7, 1), *theirs = acf_looked_lab_table(x + COLS, 7, NEW);
    acf_table *full = acf_looked_lab_table(b.x + COLS, 7, 1), *theirs_full = acf_looked_lab_table(b.x + COLS, 7, NEW);
    assert_int_equal(acf_ask_draw(b.s, mine, all, 5, 0, own), ACF_OK);
    assert_int_equal(acf_ask_draw(b.s, theirs, all, 5, 0, other), ACF_OK);
    assert_int_equal(acf_ask_mean(b.s, mine, all, mean[0]), ACF_OK);
    assert_int_equal(acf_ask_mean(b.s, theirs, all, mean[1]), ACF_OK);
    assert_int_equal(acf_ask_logp(b.s, full, (acf_question){.asked = asked}, lp[0]), ACF_OK);
    assert_int_equal(acf_ask_logp(b.s, theirs_full, (acf_question){.asked = asked}, lp[1]), ACF_OK);
    assert_int_equal(acf_ask_cells(b.s, full, cells[0]), ACF_OK);
    assert_int_equal(acf_ask_cells(b.s, theirs_full, cells[1]), ACF_OK);
    for (int i = 0; i < 7; i++) {
        const int c = i * COLS + LAST;
        const double value = b.x[c + COLS];
        assert_true(own[c] != value && other[c] == acf_encoder_round(b.m->encoder, LAST, value));
        assert_true(fabs(mean[0][c] - value) > 1e-3);
        acf_assert_close(mean[1][c], value, 1e-6, "mean");
        assert_true(lp[1][i] > lp[0][i] + 10 && cells[1][c] > cells[0][c] + 10);
    }
    acf_tab_free(mine), acf_tab_free(theirs), acf_tab_free(full), acf_tab_free(theirs_full);
    acf_looked_lab_close(&b);
}

/* Every allocation failing in turn, from the session to its answers. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_looked_lab b;
    double out[CELLS], high[CELLS];
    acf_looked_lab_open(&b, 2, 2, 16);
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    int64_t n = 1;
    for (; status; n++) {
        acf_session *s = NULL;
        acf_alloc_fail_at(n);
        status = acf_ask_create(b.dev, b.m, 16, &s);
        if (!status) status = acf_ask_logp(s, b.table, all, out);
        if (!status) status = acf_ask_draw(s, b.table, all, 1, 1, out);
        if (!status) status = acf_ask_summary(s, b.table, all, 1, 2, NULL, 0, out, NULL);
        if (!status) status = acf_ask_mean(s, b.table, all, out);
        if (!status) status = acf_ask_interval(s, b.table, all, 0.9, NULL, out, high);
        acf_alloc_fail_at(0);
        acf_ask_free(s);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 20);
    acf_looked_up_free(NULL);
    acf_looked_lab_close(&b);
}

ACF_TESTS(looked_up, cmocka_unit_test(cells_take_turns), cmocka_unit_test(often_seen_columns_come_first), cmocka_unit_test(scores_are_a_chain), cmocka_unit_test(a_cell_is_a_conditional),
          cmocka_unit_test(rows_that_are_not_believed_change_nothing), cmocka_unit_test(probabilities_of_classes_sum_to_one),
          cmocka_unit_test(nothing_is_impossible), cmocka_unit_test(a_row_is_not_looked_up_in_itself), cmocka_unit_test(survives_without_memory))
