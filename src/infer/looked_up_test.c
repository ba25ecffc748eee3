/* Answers with an archive: cells in turn, and each answer against what the networks alone and the rows alone say, put together here by the formulas. */
#include "infer/looked_up.h"

#include "harness/lab.h"
#include "model/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, COLS = 5, CELLS = ROWS * COLS, WHOLE = 0, CLASS = 1, REAL = 2, COIN = 3, LAST = 4, CLASSES = 4, NEW = 1000 };
#define ABSENT ((double)NAN)
static const double tol = 5000 * (double)ACF_REAL_EPS;
static const acf_column columns[COLS] = {{NULL, 0}, {NULL, CLASSES}, {NULL, 0}, {NULL, 2}, {NULL, 0}};
static const acf_question all = {0};

typedef struct bench {
    acf_device *dev;
    acf_table *table; /* what is remembered */
    acf_model *m;
    acf_archive *a;   /* the model's */
    acf_recall *r;    /* look-ups by the tests */
    acf_session *s, *net; /* with the archive; of the networks alone */
    double x[CELLS];
} bench;

static acf_model *some_model(bench *b, int k) {
    static const char *const set[][2] = {{"mlp-width", "6"}, {"coupling-units", "5"}, {"likelihood-units", "7"}, {"components", "3"}};
    acf_options *o;
    acf_encoder *e;
    acf_model *m;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(acf_opts_set(o, set[i][0], set[i][1]), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(b->table, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_encoder_shape(e, b->table, NULL, NULL, &(acf_encoding){true, true}), ACF_OK);
    for (int j = REAL; j <= LAST; j += LAST - REAL) { /* draws of the networks are no values of the table, and not at its ends */
        e->resolution[j] = (acf_resolution){0, 0};
        e->least[j] = -1e9, e->most[j] = 1e9;
    }
    assert_int_equal(acf_fitted_create(b->dev, o, e, (uint64_t)k + 3, true, &m), ACF_OK);
    acf_params *ps = acf_net_params(m->net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] += (acf_real)acf_lab_random((uint32_t)k + 2, i, -0.3, 0.3);
    return m;
}

/* A session of b's model as it is with the archive, or without. */
static acf_session *ask(const bench *b, bool archive, int64_t batch) {
    acf_session *s;
    b->m->archive = archive ? b->a : NULL;
    assert_int_equal(acf_ask_create(b->dev, b->m, batch, &s), ACF_OK);
    b->m->archive = b->a;
    return s;
}

/* Whole numbers, a category, measurements, a category, measurements. Rows 0 to 7 are complete and no two have the same measurements; of the others, all
 * repeat one of them in part. No row has the last class. */
static void open_bench(bench *b, int members, int64_t batch) {
    for (int i = 0; i < CELLS; i++) {
        const int j = i % COLS, of = i / COLS % 8 * COLS + j;
        const double u = acf_lab_random(1, i, 0, 1);
        b->x[i] = j == WHOLE ? floor(6 * u) : j == CLASS ? floor(3 * u) : j == COIN ? floor(2 * u) : 10 * u;
        if (i / COLS >= 8 && u < 0.7) b->x[i] = b->x[of];
        if (i / COLS >= 8 && i % 7 == 3) b->x[i] = ABSENT;
    }
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_tab_create(b->x, NULL, ROWS, COLS, columns, &b->table), ACF_OK);
    b->m = some_model(b, 0);
    for (int k = 1; k < members; k++) acf_fitted_append(b->m, some_model(b, k));
    assert_int_equal(acf_archive_make(b->table, b->m->encoder, &b->a), ACF_OK);
    for (int j = 0; j < COLS; j++) b->a->shift[j] = 0.4 * j - 1;
    b->a->slope = 0.3;
    assert_int_equal(acf_recall_create(b->a, &b->r), ACF_OK);
    b->s = ask(b, true, batch), b->net = ask(b, false, batch);
}

static void close_bench(bench *b) {
    acf_ask_free(b->s);
    acf_ask_free(b->net);
    acf_recall_free(b->r);
    acf_fitted_free(b->m);
    acf_tab_free(b->table);
    acf_device_close(b->dev);
}

/* How far rows are believed, of all columns alike whatever they say; and how often a cell of a repeated row differs. */
static void believe(bench *b, double shift, double differ) {
    for (int j = 0; j < COLS; j++) b->a->shift[j] = shift, b->a->differ[j] = differ;
    b->a->slope = 0;
}

/* Rows 0 to 7 alone are remembered. */
static void forget_others(bench *b) {
    for (int c = 8 * COLS; c < CELLS; c++) b->a->code[c % COLS * ROWS + c / COLS] = -1;
}

/* Is x what a draw of column j has from a row that is remembered? */
static bool is_remembered(const bench *b, int j, double x) {
    for (int k = 0; k < 8; k++)
        if (x == acf_encoder_round(b->m->encoder, j, b->x[k * COLS + j])) return true;
    return false;
}

static acf_table *table_of(const double *x, int64_t N, uint64_t first_id) {
    acf_table *t;
    assert_int_equal(acf_tab_create(x, NULL, N, COLS, columns, &t), ACF_OK);
    t->first_id = first_id;
    return t;
}

/* N times a row, as rows that are not remembered. */
static acf_table *copies_of(const double *row, int64_t N) {
    double *x = malloc((size_t)(N * COLS) * sizeof *x);
    assert_non_null(x);
    for (int64_t c = 0; c < N * COLS; c++) x[c] = row[c % COLS];
    acf_table *t = table_of(x, N, NEW);
    free(x);
    return t;
}

/* Row i of t, alone: a view. */
static acf_table row_of(const acf_table *t, int64_t i) {
    acf_table one = *t;
    one.first_id = acf_tab_id(t, i), one.id = NULL, one.N = 1, one.x = t->x + i * t->D;
    return one;
}

/* Masks for tests: a pattern of given and asked cells, of rows with none, one, some and all columns asked. */
static bool asks_at(int64_t c) { return c / COLS % 4 == 0 ? false : c / COLS % 4 == 1 ? c % COLS == c / COLS % COLS : c / COLS % 4 == 2 || c * 7 % 3 != 0; }
static void some_masks(uint8_t *given, uint8_t *asked, int64_t cells) {
    for (int64_t c = 0; c < cells; c++) given[c] = c * 5 % 7 < 4, asked[c] = asks_at(c) ? 1 : 0;
}

/* What q asks for and gives, as the header of session.h says it. */
static bool is_asked(acf_question q, acf_purpose why, const acf_table *t, int64_t c) {
    const bool present = !isnan(t->x[c]);
    if (why == ACF_TO_SCORE) return present && (!q.asked || q.asked[c]);
    return q.asked ? q.asked[c] != 0 : !present;
}
static bool is_given(acf_question q, acf_purpose why, const acf_table *t, int64_t c) {
    return !isnan(t->x[c]) && !is_asked(q, why, t, c) && (!q.given || q.given[c]);
}

/* ---- cells in turn -------------------------------------------------------------------------------------------------------------- */

/* Masks of row i at turn n, from nothing but the question; returns the column, -1: it has no more. */
static int expected_turn(acf_question q, acf_purpose why, const acf_table *t, int64_t i, int n, uint8_t *given, uint8_t *asked) {
    int at = -1;
    for (int j = 0, seen = 0; j < COLS; j++) {
        const bool one = is_asked(q, why, t, i * COLS + j);
        given[j] = is_given(q, why, t, i * COLS + j) || (one && seen < n);
        asked[j] = one && seen == n;
        if (asked[j]) at = j;
        seen += one;
    }
    return at;
}

static int count_turns(acf_question q, acf_purpose why, const acf_table *t) {
    acf_in_turn turn;
    int n = 0, most = 0;
    assert_int_equal(acf_in_turn_begin(&turn, t, q, why), ACF_OK);
    for (int64_t i = 0; i < t->N; i++) {
        int k = 0;
        for (int j = 0; j < COLS; j++) k += is_asked(q, why, t, i * COLS + j);
        most = k > most ? k : most;
    }
    for (; acf_in_turn_next(&turn); n++) {
        assert_true(turn.q.given == turn.given && turn.q.asked == turn.asked);
        for (int64_t i = 0; i < t->N; i++) {
            uint8_t given[COLS], asked[COLS];
            assert_int_equal(turn.column[i], expected_turn(q, why, t, i, n, given, asked));
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
    bench b;
    uint8_t given[CELLS], asked[CELLS], none[CELLS] = {0};
    open_bench(&b, 1, 16);
    some_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {given, NULL}, {NULL, asked}, {given, asked}, {given, none}, {none, asked}};
    acf_table *nobody = table_of(b.x, 0, 0);
    for (int k = 0; k < 6; k++)
        for (int why = ACF_TO_SCORE; why <= ACF_TO_FILL; why++) {
            const int n = count_turns(questions[k], (acf_purpose)why, b.table);
            if (k == 4) assert_int_equal(n, 0);
            if (k == 0) assert_true(why == ACF_TO_SCORE ? n == COLS : n >= 1 && n < COLS);
            assert_int_equal(count_turns(questions[k], (acf_purpose)why, nobody), 0);
        }
    acf_tab_free(nobody);
    const int64_t live = acf_alloc_live();
    for (int64_t n = 1; n <= 3; n++) {
        acf_in_turn turn;
        acf_alloc_fail_at(n);
        assert_int_equal(acf_in_turn_begin(&turn, b.table, all, ACF_TO_FILL), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
    }
    close_bench(&b);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------------- */

/* h of column j of row i of t, looked up by these known cells; what the rows say can then be asked of b->r. */
static double trust_at(bench *b, const acf_table *t, int64_t i, int j, const uint8_t *known) {
    acf_recall_row(b->r, t->x + i * COLS, known, acf_tab_id(t, i));
    return acf_recall_trust(b->a, j, acf_recall_column(b->r, j));
}

/* log p of cell j of row i given these cells, of both: by a session of the networks. */
static double both_at(bench *b, const acf_table *t, int64_t i, int j, const uint8_t *given) {
    double lp;
    uint8_t asked[COLS] = {0};
    const acf_table one = row_of(t, i);
    asked[j] = 1;
    assert_int_equal(acf_ask_logp(b->net, &one, (acf_question){given, asked}, &lp), ACF_OK);
    const double h = trust_at(b, t, i, j, given);
    return log((1 - h) * exp(lp) + h * acf_recall_density(b->r, j, t->x[i * COLS + j]));
}

/* The chain over the asked cells of row i. */
static double chain(bench *b, const acf_table *t, acf_question q, int64_t i) {
    uint8_t given[COLS], asked[COLS];
    double sum = 0;
    for (int n = 0;; n++) {
        const int j = expected_turn(q, ACF_TO_SCORE, t, i, n, given, asked);
        if (j < 0) return sum;
        sum += both_at(b, t, i, j, given);
    }
}

static void scores_are_a_chain(void **state) {
    (void)state;
    uint8_t given[CELLS], asked[CELLS];
    some_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {NULL, asked}, {given, asked}};
    for (int members = 1; members <= 2; members++) {
        bench b;
        double lp[ROWS], alone[ROWS];
        int differ = 0;
        open_bench(&b, members, 7);
        for (int k = 0; k < 6; k++) {
            acf_table *t = table_of(b.x, ROWS, k < 3 ? 0 : NEW); /* the remembered rows themselves, and others like them */
            assert_int_equal(acf_ask_logp(b.s, t, questions[k % 3], lp), ACF_OK);
            assert_int_equal(acf_ask_logp(b.net, t, questions[k % 3], alone), ACF_OK);
            for (int i = 0; i < ROWS; i++) {
                acf_assert_close(lp[i], chain(&b, t, questions[k % 3], i), tol, "log p of a chain");
                differ += fabs(lp[i] - alone[i]) > 0.1;
            }
            acf_tab_free(t);
        }
        assert_true(differ > 20);
        close_bench(&b);
    }
}

static void a_cell_is_a_conditional(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        bench b;
        double cells[CELLS], lp[ROWS];
        uint8_t asked[CELLS], given[COLS];
        open_bench(&b, members, 7);
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
        close_bench(&b);
    }
}

/* Rows that are never believed: the answers of the networks, of one cell in each row. */
static void rows_that_are_not_believed_change_nothing(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        bench b;
        double one[CELLS], two[CELLS];
        uint8_t asked[CELLS];
        open_bench(&b, members, 7);
        believe(&b, -60, 0.1);
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
        close_bench(&b);
    }
}

static void probabilities_of_classes_sum_to_one(void **state) {
    (void)state;
    enum { BOTH = CLASSES * 2 };
    for (int members = 1; members <= 2; members++) {
        bench b;
        open_bench(&b, members, 5);
        for (int row = 0; row < ROWS; row++) {
            double x[BOTH * COLS], lp[BOTH], sum = 0;
            uint8_t one[BOTH * COLS], two[BOTH * COLS];
            for (int c = 0; c < BOTH * COLS; c++) {
                const int j = c % COLS, i = c / COLS;
                x[c] = j == CLASS ? i % CLASSES : j == COIN ? i / CLASSES : b.x[row * COLS + j];
                one[c] = j == CLASS, two[c] = j == CLASS || j == COIN;
            }
            acf_table *t = table_of(x, BOTH, NEW);
            assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = two}, lp), ACF_OK);
            for (int i = 0; i < BOTH; i++) sum += exp(lp[i]);
            acf_assert_close(sum, 1, tol, "sum over pairs");
            assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = one}, lp), ACF_OK);
            acf_assert_close(exp(lp[0]) + exp(lp[1]) + exp(lp[2]) + exp(lp[3]), 1, tol, "sum over classes");
            acf_tab_free(t);
        }
        close_bench(&b);
    }
}

/* Where rows are believed as far as a number can say, a class that none of them has is still possible, and so is a value far from theirs. */
static void nothing_is_impossible(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 1, 5);
    believe(&b, 1000, 1e-3);
    for (int k = 0; k < 2; k++) {
        const int j = k ? LAST : CLASS;
        double x[COLS], lp, net, cells[COLS];
        uint8_t asked[COLS] = {0};
        memcpy(x, b.x, sizeof x);
        x[j] = k ? 1e4 : CLASSES - 1, asked[j] = 1;
        acf_table *t = table_of(x, 1, NEW);
        assert_int_equal(acf_ask_logp(b.net, t, (acf_question){.asked = asked}, &net), ACF_OK);
        assert_int_equal(acf_ask_logp(b.s, t, (acf_question){.asked = asked}, &lp), ACF_OK);
        assert_int_equal(acf_ask_cells(b.s, t, cells), ACF_OK);
        assert_true(isfinite(net) && isfinite(lp) && lp >= net - 40);
        acf_assert_close(cells[j], lp, tol, "log p of a cell");
        acf_tab_free(t);
    }
    close_bench(&b);
}

/* ---- draws ------------------------------------------------------------------------------------------------------------------------ */

/* Of a row that agrees with one remembered row, all that is asked for is that row's; what is not asked for stays. */
static void rows_that_are_believed_are_copied(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        bench b;
        double x[8 * COLS], out[8 * COLS];
        uint8_t asked[8 * COLS];
        open_bench(&b, members, 3);
        believe(&b, 60, 1e-9);
        forget_others(&b);
        for (int c = 0; c < 8 * COLS; c++) x[c] = c % COLS == REAL || c % COLS == c / COLS % COLS ? b.x[c] : ABSENT;
        acf_table *t = table_of(x, 8, NEW);
        for (uint32_t d = 0; d < 3; d++) {
            assert_int_equal(acf_ask_draw(b.s, t, all, 5, d, out), ACF_OK);
            for (int c = 0; c < 8 * COLS; c++) {
                assert_true(isnan(x[c]) ? out[c] == acf_encoder_round(b.m->encoder, c % COLS, b.x[c]) : out[c] == x[c]);
                if (c % COLS != REAL && c % COLS != LAST) assert_true(out[c] == b.x[c]);
            }
            for (int c = 0; c < 8 * COLS; c++) asked[c] = c % COLS == CLASS || c % COLS == LAST;
            assert_int_equal(acf_ask_draw(b.s, t, (acf_question){.asked = asked}, 5, d, out), ACF_OK);
            for (int c = 0; c < 8 * COLS; c++) {
                if (asked[c]) assert_true(out[c] == acf_encoder_round(b.m->encoder, c % COLS, b.x[c]));
                else assert_true(isnan(x[c]) ? isnan(out[c]) : out[c] == x[c]);
            }
        }
        acf_tab_free(t);
        close_bench(&b);
    }
}

/* What was drawn for a cell is given to those after it: where two remembered rows fit alike, cells of one row come together. */
static void cells_follow_those_before(void **state) {
    (void)state;
    enum { N = 200 };
    bench b;
    static double out[N * COLS];
    int rows[8] = {0};
    open_bench(&b, 1, 64);
    believe(&b, 60, 1e-9);
    forget_others(&b);
    acf_table *t = copies_of((double[COLS]){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}, N);
    uint8_t asked[N * COLS];
    for (int c = 0; c < N * COLS; c++) asked[c] = c % COLS == REAL || c % COLS == LAST;
    assert_int_equal(acf_ask_draw(b.s, t, (acf_question){.asked = asked}, 5, 0, out), ACF_OK);
    for (int i = 0; i < N; i++) {
        int of = -1;
        for (int k = 0; k < 8; k++)
            if (out[i * COLS + REAL] == b.x[k * COLS + REAL]) of = k;
        assert_true(of >= 0 && out[i * COLS + LAST] == b.x[of * COLS + LAST]);
        rows[of]++;
    }
    for (int k = 0; k < 8; k++) assert_true(rows[k] > 5);
    acf_tab_free(t);
    close_bench(&b);
}

static void batches_and_order_do_not_matter(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 3, 100};
    for (int members = 1; members <= 2; members++) {
        bench b;
        double drawn[4][CELLS], lp[4][ROWS], mean[4][CELLS], x[CELLS];
        open_bench(&b, members, 16);
        for (int k = 0; k < 3; k++) {
            acf_session *s = ask(&b, true, sizes[k]);
            assert_int_equal(acf_ask_draw(s, b.table, all, 5, 1, drawn[k]), ACF_OK);
            assert_int_equal(acf_ask_logp(s, b.table, all, lp[k]), ACF_OK);
            assert_int_equal(acf_ask_mean(s, b.table, all, mean[k]), ACF_OK);
            acf_ask_free(s);
        }
        uint64_t *id = acf_alloc(ROWS * sizeof *id, "ids");
        for (int i = 0; i < ROWS; i++) {
            id[i] = (uint64_t)(i * 7 % ROWS);
            memcpy(x + i * COLS, b.x + i * 7 % ROWS * COLS, COLS * sizeof *x);
        }
        acf_table *t = table_of(x, ROWS, 0);
        t->id = id;
        double other[CELLS], other_lp[ROWS], other_mean[CELLS];
        assert_int_equal(acf_ask_draw(b.s, t, all, 5, 1, other), ACF_OK);
        assert_int_equal(acf_ask_logp(b.s, t, all, other_lp), ACF_OK);
        assert_int_equal(acf_ask_mean(b.s, t, all, other_mean), ACF_OK);
        for (int i = 0; i < ROWS; i++) {
            const int from = i * 7 % ROWS;
            memcpy(drawn[3] + from * COLS, other + i * COLS, COLS * sizeof *x), memcpy(mean[3] + from * COLS, other_mean + i * COLS, COLS * sizeof *x);
            lp[3][from] = other_lp[i];
        }
        for (int k = 1; k < 4; k++) {
            for (int c = 0; c < CELLS; c++) acf_assert_close(drawn[k][c], drawn[0][c], tol, "draw"), acf_assert_close(mean[k][c], mean[0][c], tol, "mean");
            for (int i = 0; i < ROWS; i++) acf_assert_close(lp[k][i], lp[0][i], tol, "log p");
        }
        acf_tab_free(t);
        close_bench(&b);
    }
}

/* Of many rows, and of many draws of one, a share of h is taken from the archive: each cell for itself. */
static void rows_are_taken_as_often_as_believed(void **state) {
    (void)state;
    enum { N = 1500 };
    bench b;
    static double out[N * COLS];
    double one[COLS], real = 0, last = 0, both = 0, draws = 0, seeds = 0;
    open_bench(&b, 1, 256);
    believe(&b, log(0.3 / 0.7), 1e-9);
    forget_others(&b);
    uint8_t known[COLS] = {1, 1, 0, 1, 0};
    acf_table *t = copies_of((double[COLS]){b.x[WHOLE], b.x[CLASS], ABSENT, b.x[COIN], ABSENT}, N);
    assert_int_equal(acf_ask_draw(b.s, t, all, 5, 0, out), ACF_OK);
    for (int i = 0; i < N; i++) {
        const bool from[2] = {is_remembered(&b, REAL, out[i * COLS + REAL]), is_remembered(&b, LAST, out[i * COLS + LAST])};
        real += from[0], last += from[1], both += from[0] && from[1];
    }
    acf_assert_close(trust_at(&b, t, 0, REAL, known), 0.3, 1e-9, "h");
    acf_assert_close(real / N, 0.3, 0.03, "share of rows");
    acf_assert_close(last / N, 0.3, 0.03, "share of rows");
    acf_assert_close(both / N, 0.09, 0.025, "share of both");
    const acf_table first = row_of(t, 0);
    for (uint32_t d = 0; d < 400; d++) {
        assert_int_equal(acf_ask_draw(b.s, &first, all, 5, d, one), ACF_OK);
        draws += is_remembered(&b, REAL, one[REAL]);
        assert_int_equal(acf_ask_draw(b.s, &first, all, d, 7, one), ACF_OK);
        seeds += is_remembered(&b, REAL, one[REAL]);
    }
    acf_assert_close(draws / 400, 0.3, 0.07, "share of draws");
    acf_assert_close(seeds / 400, 0.3, 0.07, "share of seeds");
    acf_tab_free(t);
    close_bench(&b);
}

/* Pairs of classes are drawn as often as their log p says. */
static void draws_follow_the_scores(void **state) {
    (void)state;
    enum { N = 6000, PAIRS = CLASSES * 2 };
    static double out[N * COLS];
    for (int members = 1; members <= 2; members++) {
        bench b;
        double x[PAIRS * COLS], lp[PAIRS], share[PAIRS] = {0};
        uint8_t asked[PAIRS * COLS];
        open_bench(&b, members, 512);
        believe(&b, -1.5, 0.2);
        for (int c = 0; c < PAIRS * COLS; c++) {
            const int j = c % COLS;
            x[c] = j == CLASS ? c / COLS % CLASSES : j == COIN ? c / COLS / CLASSES : b.x[j];
            asked[c] = j == CLASS || j == COIN;
        }
        acf_table *pairs = table_of(x, PAIRS, NEW), *t = copies_of((double[COLS]){b.x[0], ABSENT, b.x[2], ABSENT, b.x[4]}, N);
        assert_int_equal(acf_ask_logp(b.s, pairs, (acf_question){.asked = asked}, lp), ACF_OK);
        assert_int_equal(acf_ask_draw(b.s, t, all, 5, 0, out), ACF_OK);
        for (int i = 0; i < N; i++) share[(int)(out[i * COLS + CLASS] + CLASSES * out[i * COLS + COIN])] += 1.0 / N;
        for (int k = 0; k < PAIRS; k++) {
            const double p = exp(lp[k]);
            if (!(fabs(share[k] - p) <= 4 * sqrt(p * (1 - p) / N))) fail_msg("%d members, pair %d: %g, expected %g", members, k, share[k], p);
        }
        acf_tab_free(pairs);
        acf_tab_free(t);
        close_bench(&b);
    }
}

/* ---- means ------------------------------------------------------------------------------------------------------------------------ */

/* The most probable class of column j of row i, given these cells, of both. *net: of the networks. */
static int best_class(bench *b, const acf_table *t, int64_t i, int j, const uint8_t *given, int *net) {
    const double h = trust_at(b, t, i, j, given);
    double x[COLS], best = -1, best_net = -1;
    uint8_t asked[COLS] = {0};
    int at = -1;
    asked[j] = 1;
    for (int c = 0; c < columns[j].classes; c++) {
        double lp;
        memcpy(x, t->x + i * COLS, sizeof x);
        x[j] = c;
        acf_table *one = table_of(x, 1, acf_tab_id(t, i));
        assert_int_equal(acf_ask_logp(b->net, one, (acf_question){given, asked}, &lp), ACF_OK);
        const double p = (1 - h) * exp(lp) + h * acf_recall_density(b->r, j, c);
        if (p > best) best = p, at = c;
        if (exp(lp) > best_net) best_net = exp(lp), *net = c;
        acf_tab_free(one);
    }
    return at;
}

static void means_are_those_of_both(void **state) {
    (void)state;
    uint8_t given[CELLS], asked[CELLS], known[COLS];
    some_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {NULL, asked}, {given, asked}};
    for (int members = 1; members <= 2; members++) {
        bench b;
        double mean[CELLS], net[CELLS];
        int flipped = 0, kept = 0;
        open_bench(&b, members, 7);
        for (int k = 0; k < 12; k++) {
            const acf_question q = questions[k % 3];
            for (int j = 0; j < COLS; j++) b.a->shift[j] = 0.5 * (k / 3) - 1.5;
            assert_int_equal(acf_ask_mean(b.s, b.table, q, mean), ACF_OK);
            assert_int_equal(acf_ask_mean(b.net, b.table, q, net), ACF_OK);
            for (int c = 0; c < CELLS; c++) {
                const int i = c / COLS, j = c % COLS;
                if (!is_asked(q, ACF_TO_FILL, b.table, c)) {
                    assert_true(isnan(b.x[c]) ? isnan(mean[c]) : mean[c] == b.x[c]);
                    continue;
                }
                for (int l = 0; l < COLS; l++) known[l] = is_given(q, ACF_TO_FILL, b.table, i * COLS + l);
                if (columns[j].classes) {
                    int alone;
                    assert_int_equal((int)mean[c], best_class(&b, b.table, i, j, known, &alone));
                    assert_int_equal((int)net[c], alone);
                    *(mean[c] != net[c] ? &flipped : &kept) += 1;
                } else {
                    const double h = trust_at(&b, b.table, i, j, known);
                    acf_assert_close(mean[c], (1 - h) * net[c] + h * acf_recall_mean(b.r, j), tol, "mean");
                }
            }
        }
        assert_true(flipped > 5 && kept > 5);
        close_bench(&b);
    }
}

/* ---- summaries -------------------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summaries_are_of_the_draws(void **state) {
    (void)state;
    enum { DRAWS = 9 };
    uint8_t given[CELLS], asked[CELLS];
    some_masks(given, asked, CELLS);
    const acf_question questions[] = {{NULL, NULL}, {given, asked}};
    for (int k = 0; k < 4; k++) {
        bench b;
        double one[CELLS], drawn[CELLS][DRAWS], mean[CELLS], quantile[3 * CELLS];
        const acf_question q = questions[k % 2];
        open_bench(&b, 1 + k / 2, 5);
        for (uint32_t d = 0; d < DRAWS; d++) {
            assert_int_equal(acf_ask_draw(b.s, b.table, q, 8, d, one), ACF_OK);
            for (int c = 0; c < CELLS; c++) drawn[c][d] = one[c];
        }
        assert_int_equal(acf_ask_summary(b.s, b.table, q, 8, DRAWS, (double[]){0, 0.5, 0.8}, 3, mean, quantile), ACF_OK);
        for (int c = 0; c < CELLS; c++) {
            double sum = 0;
            assert_int_equal(isnan(mean[c]), !is_asked(q, ACF_TO_FILL, b.table, c));
            if (isnan(mean[c]) || columns[c % COLS].classes) continue;
            qsort(drawn[c], DRAWS, sizeof(double), by_value);
            for (int d = 0; d < DRAWS; d++) sum += drawn[c][d] / DRAWS;
            acf_assert_close(mean[c], sum, tol, "mean of draws");
            acf_assert_close(quantile[c], drawn[c][0], tol, "least");
            acf_assert_close(quantile[CELLS + c], drawn[c][4], tol, "median");
            acf_assert_close(quantile[2 * CELLS + c], drawn[c][6] + 0.4 * (drawn[c][7] - drawn[c][6]), tol, "quantile 0.8");
        }
        close_bench(&b);
    }
}

/* ---- whose row it is ------------------------------------------------------------------------------------------------------------- */

/* A remembered row has nothing from itself, wherever it stands in a table; one like it with another id has all. */
static void a_row_is_not_looked_up_in_itself(void **state) {
    (void)state;
    bench b;
    double own[8 * COLS], other[8 * COLS], x[8 * COLS], lp[2][8], mean[2][8 * COLS], cells[2][8 * COLS];
    uint8_t asked[8 * COLS];
    open_bench(&b, 1, 3);
    believe(&b, 60, 1e-9);
    forget_others(&b);
    for (int c = 0; c < 8 * COLS; c++) asked[c] = c % COLS == LAST, x[c] = asked[c] ? ABSENT : b.x[c];
    acf_table *mine = table_of(x + COLS, 7, 1), *theirs = table_of(x + COLS, 7, NEW);
    acf_table *full = table_of(b.x + COLS, 7, 1), *theirs_full = table_of(b.x + COLS, 7, NEW);
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
    close_bench(&b);
}

/* Every allocation failing in turn, from the session to its answers. */
static void survives_without_memory(void **state) {
    (void)state;
    bench b;
    double out[CELLS];
    open_bench(&b, 2, 16);
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
        acf_alloc_fail_at(0);
        acf_ask_free(s);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 20);
    acf_looked_up_free(NULL);
    close_bench(&b);
}

ACF_TESTS(looked_up, cmocka_unit_test(cells_take_turns), cmocka_unit_test(scores_are_a_chain), cmocka_unit_test(a_cell_is_a_conditional),
          cmocka_unit_test(rows_that_are_not_believed_change_nothing), cmocka_unit_test(probabilities_of_classes_sum_to_one),
          cmocka_unit_test(nothing_is_impossible), cmocka_unit_test(rows_that_are_believed_are_copied), cmocka_unit_test(cells_follow_those_before),
          cmocka_unit_test(batches_and_order_do_not_matter), cmocka_unit_test(rows_are_taken_as_often_as_believed),
          cmocka_unit_test(draws_follow_the_scores), cmocka_unit_test(means_are_those_of_both), cmocka_unit_test(summaries_are_of_the_draws),
          cmocka_unit_test(a_row_is_not_looked_up_in_itself), cmocka_unit_test(survives_without_memory))
