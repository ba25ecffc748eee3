/* Answers of models with donors: draws, means and summaries against networks and donors combined here by the
 * formulas. Batches and order of rows must not matter. */
#include "harness/donor_lab.h"

#include "harness/lab.h"
#include "table/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double tol = 5000 * (double)ACF_REAL_EPS;
static const acf_query all = {0};

/* ---- draws ------------------------------------------------------------------------------------------------------- */

/* Is x a value that a draw of column j can take from a donor? */
static bool is_a_donor_value(const acf_donor_lab *b, int j, double x) {
    for (int k = 0; k < FULL; k++)
        if (x == acf_encoder_round(b->m->encoder, j, b->x[k * COLS + j])) return true;
    return false;
}

/* A row that matches one donor takes all its target cells from it; other cells stay. */
static void trusted_donors_are_copied(void **state) {
    (void)state;
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double x[FULL * COLS], out[FULL * COLS];
        uint8_t target[FULL * COLS];
        acf_donor_lab_open(&b, 2, members, 3);
        acf_donor_lab_believe(&b, 60, 1e-9);
        acf_donor_lab_only_equal(&b);
        for (int c = 0; c < FULL * COLS; c++) x[c] = c % COLS == REAL || c % COLS == c / COLS % COLS ? b.x[c] : ABSENT;
        acf_table *t = acf_donor_lab_table(x, 8, NEW);
        for (uint32_t d = 0; d < 3; d++) {
            assert_int_equal(acf_session_query_draw(b.s, t, all, 5, d, out), ACF_OK);
            for (int c = 0; c < FULL * COLS; c++) {
                assert_true(isnan(x[c]) ? out[c] == acf_encoder_round(b.m->encoder, c % COLS, b.x[c]) : out[c] == x[c]);
                if (c % COLS != REAL && c % COLS != LAST) assert_true(out[c] == b.x[c]);
            }
            for (int c = 0; c < FULL * COLS; c++) target[c] = c % COLS == CLASS || c % COLS == LAST;
            assert_int_equal(acf_session_query_draw(b.s, t, (acf_query){.target = target}, 5, d, out), ACF_OK);
            for (int c = 0; c < FULL * COLS; c++) {
                if (target[c])
                    assert_true(out[c] == acf_encoder_round(b.m->encoder, c % COLS, b.x[c]));
                else
                    assert_true(isnan(x[c]) ? isnan(out[c]) : out[c] == x[c]);
            }
        }
        acf_table_free(t);
        acf_donor_lab_close(&b);
    }
}

/* Later cells are given earlier draws: if two donors fit equally well, cells of a row come from the same one. */
static void cells_depend_on_earlier_draws(void **state) {
    (void)state;
    enum { N = 200 };
    acf_donor_lab b;
    static double out[N * COLS];
    int rows[FULL] = {0};
    acf_donor_lab_open(&b, 2, 1, 64);
    acf_donor_lab_believe(&b, 60, 1e-9);
    acf_donor_lab_only_equal(&b);
    acf_table *t = acf_donor_lab_copies((double[COLS]){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}, N);
    uint8_t target[N * COLS];
    for (int c = 0; c < N * COLS; c++) target[c] = c % COLS == REAL || c % COLS == LAST;
    assert_int_equal(acf_session_query_draw(b.s, t, (acf_query){.target = target}, 5, 0, out), ACF_OK);
    for (int i = 0; i < N; i++) {
        int of = -1;
        for (int k = 0; k < FULL; k++)
            if (out[i * COLS + REAL] == b.x[k * COLS + REAL]) of = k;
        assert_true(of >= 0 && out[i * COLS + LAST] == b.x[of * COLS + LAST]);
        rows[of]++;
    }
    for (int k = 0; k < FULL; k++) assert_true(rows[k] > 5);
    acf_table_free(t);
    acf_donor_lab_close(&b);
}

/* Over many rows, and many draws of one row, a share h of the cells comes from donors, independently for each cell. */
static void donors_are_drawn_by_their_weight(void **state) {
    (void)state;
    enum { N = 1500 };
    acf_donor_lab b;
    static double out[N * COLS];
    double one[COLS], real = 0, last = 0, both = 0, draws = 0, seeds = 0;
    acf_donor_lab_open(&b, 2, 1, 256);
    acf_donor_lab_believe(&b, log(0.3 / 0.7), 1e-9);
    acf_donor_lab_only_equal(&b);
    uint8_t known[COLS] = {1, 1, 0, 1, 0};
    acf_table *t = acf_donor_lab_copies((double[COLS]){b.x[WHOLE], b.x[CLASS], ABSENT, b.x[COIN], ABSENT}, N);
    assert_int_equal(acf_session_query_draw(b.s, t, all, 5, 0, out), ACF_OK);
    for (int i = 0; i < N; i++) {
        const bool from[2] = {is_a_donor_value(&b, REAL, out[i * COLS + REAL]),
                              is_a_donor_value(&b, LAST, out[i * COLS + LAST])};
        real += from[0], last += from[1], both += from[0] && from[1];
    }
    acf_assert_close(acf_donor_lab_trust(&b, t, 0, REAL, known), 0.3, 1e-9, "h");
    acf_assert_close(real / N, 0.3, 0.03, "share of rows");
    acf_assert_close(last / N, 0.3, 0.03, "share of rows");
    acf_assert_close(both / N, 0.09, 0.025, "share of both");
    const acf_table first = acf_donor_lab_row(t, 0);
    for (uint32_t d = 0; d < 400; d++) {
        assert_int_equal(acf_session_query_draw(b.s, &first, all, 5, d, one), ACF_OK);
        draws += is_a_donor_value(&b, REAL, one[REAL]);
        assert_int_equal(acf_session_query_draw(b.s, &first, all, d, 7, one), ACF_OK);
        seeds += is_a_donor_value(&b, REAL, one[REAL]);
    }
    acf_assert_close(draws / 400, 0.3, 0.07, "share of draws");
    acf_assert_close(seeds / 400, 0.3, 0.07, "share of seeds");
    acf_table_free(t);
    acf_donor_lab_close(&b);
}

/* If all donors are equally good, each gives the same number of cells, however few those are. */
static void equal_donors_are_drawn_equally_often(void **state) {
    (void)state;
    enum { N = 1500 };
    acf_donor_lab b;
    static double out[N * COLS];
    int rows[FULL] = {0};
    acf_donor_lab_open(&b, 2, 1, 256);
    acf_donor_lab_believe(&b, log(0.3 / 0.7), 1e-9);
    acf_donor_lab_only_equal(&b);
    acf_table *t = acf_donor_lab_copies((double[COLS]){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}, N);
    uint8_t target[N * COLS];
    for (int c = 0; c < N * COLS; c++) target[c] = c % COLS == LAST;
    assert_int_equal(acf_session_query_draw(b.s, t, (acf_query){.target = target}, 5, 0, out), ACF_OK);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < FULL; k++) rows[k] += out[i * COLS + LAST] == b.x[k * COLS + LAST];
    for (int k = 0; k < FULL; k++) assert_true(rows[k] > 25 && rows[k] < 90); /* 56 of each expected */
    acf_table_free(t);
    acf_donor_lab_close(&b);
}

/* Frequencies of drawn pairs of classes follow their log p. */
static void draws_follow_the_scores(void **state) {
    (void)state;
    enum { N = 6000, DRAWS = 60, PAIRS = CLASSES * 2 };
    static double out[N * COLS];
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double x[PAIRS * COLS], lp[PAIRS], share[PAIRS] = {0};
        uint8_t target[PAIRS * COLS];
        acf_donor_lab_open(&b, 2, members, 512);
        acf_donor_lab_believe(&b, -1.5, 0.2);
        for (int c = 0; c < PAIRS * COLS; c++) {
            const int j = c % COLS;
            x[c] = j == CLASS ? c / COLS % CLASSES : j == COIN ? c / COLS / CLASSES : b.x[j];
            target[c] = j == CLASS || j == COIN;
        }
        acf_table *pairs = acf_donor_lab_table(x, PAIRS, NEW),
                  *t = acf_donor_lab_copies((double[COLS]){b.x[0], ABSENT, b.x[2], ABSENT, b.x[4]}, N / DRAWS);
        assert_int_equal(acf_session_query_logp(b.s, pairs, (acf_query){.target = target}, lp), ACF_OK);
        for (int d = 0; d < DRAWS; d++) /* of an ensemble: a draw of a table is of one member */
            assert_int_equal(acf_session_query_draw(b.s, t, all, (uint64_t)d + 1, 0, out + d * (N / DRAWS) * COLS),
                             ACF_OK);
        for (int i = 0; i < N; i++) share[(int)(out[i * COLS + CLASS] + CLASSES * out[i * COLS + COIN])] += 1.0 / N;
        for (int k = 0; k < PAIRS; k++) {
            const double p = exp(lp[k]);
            if (!(fabs(share[k] - p) <= 4 * sqrt(p * (1 - p) / (members > 1 ? DRAWS : N))))
                fail_msg("%d members, pair %d: %g, expected %g", members, k, share[k], p);
        }
        acf_table_free(pairs);
        acf_table_free(t);
        acf_donor_lab_close(&b);
    }
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

/* The most probable class of column j of row i, given these cells, by networks and donors. *net: by networks alone. */
static int best_class(acf_donor_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *given, int *net) {
    const double h = acf_donor_lab_trust(b, t, i, j, given);
    double x[COLS], best = -1, best_net = -1;
    uint8_t target[COLS] = {0};
    int at = -1;
    target[j] = 1;
    for (int c = 0; c < acf_donor_lab_columns[j].classes; c++) {
        double lp;
        memcpy(x, t->x + i * COLS, sizeof x);
        x[j] = c;
        acf_table *one = acf_donor_lab_table(x, 1, acf_table_row_id(t, i));
        assert_int_equal(acf_session_query_logp(b->net, one, (acf_query){given, target}, &lp), ACF_OK);
        const double p = (1 - h) * exp(lp) + h * acf_donor_search_density(b->r, j, c);
        if (p > best) best = p, at = c;
        if (exp(lp) > best_net) best_net = exp(lp), *net = c;
        acf_table_free(one);
    }
    return at;
}

/* The value with more than 0.9 of the probability, where the donors of r have weight h; NaN: none. */
static double nearly_sure(const acf_donor_search *r, int j, double h) {
    const acf_donors *m = r->m;
    for (int64_t v = m->first[j]; v < m->first[j + 1]; v++) {
        double sum = 0;
        for (int64_t k = 0; k < r->n; k++) sum += m->first[j] + m->code[j * m->N + r->donor[k]] == v ? r->weight[k] : 0;
        if (h * sum * (1 - m->differ[j]) > 0.9) return m->value[v];
    }
    return (double)NAN;
}

static void means_are_those_of_both(void **state) {
    (void)state;
    uint8_t given[CELLS], target[CELLS], known[COLS];
    acf_donor_lab_masks(given, target, CELLS);
    const acf_query questions[] = {{NULL, NULL}, {NULL, target}, {given, target}};
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double mean[CELLS], net[CELLS];
        int flipped = 0, kept = 0, sure = 0, mixed = 0;
        acf_donor_lab_open(&b, 2, members, 7);
        for (int k = 0; k < 15; k++) {
            const acf_query q = questions[k % 3];
            for (int j = 0; j < COLS; j++) b.a->shift[j] = k < 12 ? 0.5 * (k / 3) - 1.5 : 12;
            for (int j = 0; k == 12 && j < COLS * COLS; j++)
                b.a->near[j] *= 20, b.a->other[j] *= 20,
                    b.a->differ[j % COLS] = 0.01; /* one donor has all the weight */
            assert_int_equal(acf_session_query_mean(b.s, b.table, q, mean), ACF_OK);
            assert_int_equal(acf_session_query_mean(b.net, b.table, q, net), ACF_OK);
            for (int c = 0; c < CELLS; c++) {
                const int i = c / COLS, j = c % COLS;
                if (!acf_donor_lab_asks(q, ACF_TO_FILL, b.table, c)) {
                    assert_true(isnan(b.x[c]) ? isnan(mean[c]) : mean[c] == b.x[c]);
                    continue;
                }
                for (int l = 0; l < COLS; l++) known[l] = acf_donor_lab_gives(q, ACF_TO_FILL, b.table, i * COLS + l);
                if (acf_donor_lab_columns[j].classes) {
                    int alone;
                    assert_int_equal((int)mean[c], best_class(&b, b.table, i, j, known, &alone));
                    assert_int_equal((int)net[c], alone);
                    *(mean[c] != net[c] ? &flipped : &kept) += 1;
                } else {
                    const double h = acf_donor_lab_trust(&b, b.table, i, j, known);
                    const double value = nearly_sure(b.r, j, h);
                    *(isnan(value) ? &mixed : &sure) += 1;
                    acf_assert_close(mean[c],
                                     isnan(value) ? (1 - h) * net[c] + h * acf_donor_search_mean(b.r, j) : value, tol,
                                     "mean");
                }
            }
        }
        assert_true(flipped > 5 && kept > 5 && sure > 5 && mixed > 5);
        acf_donor_lab_close(&b);
    }
}

/* ---- summaries --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summaries_are_of_the_draws(void **state) {
    (void)state;
    enum { DRAWS = 9 };
    uint8_t given[CELLS], target[CELLS];
    acf_donor_lab_masks(given, target, CELLS);
    const acf_query questions[] = {{NULL, NULL}, {given, target}};
    for (int k = 0; k < 4; k++) {
        acf_donor_lab b;
        double one[CELLS], drawn[CELLS][DRAWS], mean[CELLS], quantile[3 * CELLS];
        const acf_query q = questions[k % 2];
        acf_donor_lab_open(&b, 2, 1 + k / 2, 5);
        for (uint32_t d = 0; d < DRAWS; d++) {
            assert_int_equal(acf_session_query_draw(b.s, b.table, q, 8, d, one), ACF_OK);
            for (int c = 0; c < CELLS; c++) drawn[c][d] = one[c];
        }
        assert_int_equal(
            acf_session_query_summary(b.s, b.table, q, 8, DRAWS, (double[]){0, 0.5, 0.8}, 3, mean, quantile), ACF_OK);
        for (int c = 0; c < CELLS; c++) {
            double sum = 0;
            assert_int_equal(isnan(mean[c]), !acf_donor_lab_asks(q, ACF_TO_FILL, b.table, c));
            if (isnan(mean[c]) || acf_donor_lab_columns[c % COLS].classes) continue;
            qsort(drawn[c], DRAWS, sizeof(double), by_value);
            for (int d = 0; d < DRAWS; d++) sum += drawn[c][d] / DRAWS;
            acf_assert_close(mean[c], sum, tol, "mean of draws");
            acf_assert_close(quantile[c], drawn[c][0], tol, "least");
            acf_assert_close(quantile[CELLS + c], drawn[c][4], tol, "median");
            acf_assert_close(quantile[2 * CELLS + c], drawn[c][6] + 0.4 * (drawn[c][7] - drawn[c][6]), tol,
                             "quantile 0.8");
        }
        acf_donor_lab_close(&b);
    }
}

/* ---- batches, order and threads ---------------------------------------------------------------------------------- */

/* All answers of a session about a table of N rows. */
typedef struct answers {
    double *logp;                              /* (N) */
    double *drawn, *mean, *cells, *low, *high; /* (N,COLS) */
} answers;

static answers ask_all(acf_session *s, const acf_table *t) {
    double *x = malloc((size_t)(t->N * (1 + 5 * COLS)) * sizeof *x);
    assert_non_null(x);
    const int64_t cells = t->N * COLS;
    double *cell = x + t->N;
    const answers a = {x, cell, cell + cells, cell + 2 * cells, cell + 3 * cells, cell + 4 * cells};
    assert_int_equal(acf_session_query_logp(s, t, all, a.logp), ACF_OK);
    assert_int_equal(acf_session_query_draw(s, t, all, 5, 1, a.drawn), ACF_OK);
    assert_int_equal(acf_session_query_interval(s, t, all, 0.9, a.mean, a.low, a.high), ACF_OK);
    assert_int_equal(acf_session_query_cells(s, t, a.cells), ACF_OK);
    return a;
}

/* Row i of a equals row of[i] (NULL: i) of b, bit for bit. */
static void same_answers(answers a, answers b, int64_t N, const int64_t *of) {
    for (int64_t i = 0; i < N; i++) {
        const int64_t k = of ? of[i] : i;
        assert_true(a.logp[i] == b.logp[k]);
        assert_memory_equal(a.drawn + i * COLS, b.drawn + k * COLS, COLS * sizeof *a.drawn);
        assert_memory_equal(a.mean + i * COLS, b.mean + k * COLS, COLS * sizeof *a.mean);
        assert_memory_equal(a.low + i * COLS, b.low + k * COLS, COLS * sizeof *a.low);
        assert_memory_equal(a.high + i * COLS, b.high + k * COLS, COLS * sizeof *a.high);
        assert_memory_equal(a.cells + i * COLS, b.cells + k * COLS, COLS * sizeof *a.cells);
    }
}

/* The probability of a cell below x, and at x: of networks with the draws `net` and one donor with the value v, by
 * their weights. */
enum { DRAWN = 1500 };
static void mass_at(const acf_donor_lab *b, const double *net, double h, double v, double x, double *below,
                    double *at) {
    const acf_encoder *encoder = b->m->encoder;
    const double differ = b->a->differ[REAL], very = h * (1 - differ);
    const double e = (double)(acf_encode(encoder, REAL, x) - acf_encode(encoder, REAL, v)) / b->a->scale[REAL];
    *below = h * differ * (e < 0 ? 0.5 * exp(e) : 1 - 0.5 * exp(-e)) + very * (v < x), *at = very * (v == x);
    for (int d = 0; d < DRAWN; d++) *below += (1 - h) / DRAWN * (net[d] < x);
}

/* Donors count by their weight: their exact values, and values close to them. */
static void intervals_are_those_of_both(void **state) {
    (void)state;
    static const struct {
        double h, differ, level;
    } cases[] = {{0.6, 1e-9, 0.8}, {0.6, 1e-9, 0.3}, {0.9, 0.5, 0.8}, {0.9, 0.98, 0.5}, {0.3, 0.5, 0.9}};
    for (int k = 0; k < 5; k++) {
        acf_donor_lab b;
        enum { PART = FULL * COLS };
        double mean[PART], plain[PART], low[PART], high[PART], x[PART], one[PART], below, at;
        static double net[FULL][DRAWN];
        const uint8_t known[COLS] = {1, 1, 0, 1, 1};
        acf_donor_lab_open(&b, 2, 1 + k % 2, 5);
        acf_donor_lab_believe(&b, log(cases[k].h / (1 - cases[k].h)), cases[k].differ);
        acf_donor_lab_only_equal(&b);
        for (int c = 0; c < FULL * COLS; c++) x[c] = c % COLS == REAL ? ABSENT : b.x[c];
        acf_table *t = acf_donor_lab_table(x, FULL, NEW);
        for (uint32_t d = 0; d < DRAWN; d++) {
            assert_int_equal(acf_session_query_draw(b.net, t, all, 8, d, one), ACF_OK);
            for (int i = 0; i < FULL; i++) net[i][d] = one[i * COLS + REAL];
        }
        assert_int_equal(acf_session_query_interval(b.s, t, all, cases[k].level, mean, low, high), ACF_OK);
        assert_int_equal(acf_session_query_mean(b.s, t, all, plain), ACF_OK);
        assert_memory_equal(mean, plain, sizeof mean);
        for (int i = 0; i < FULL; i++) {
            const double h = acf_donor_lab_trust(&b, t, i, REAL, known), v = b.x[i * COLS + REAL];
            const double tail = (1 - cases[k].level) / 2;
            acf_assert_close(h, cases[k].h, 1e-9, "h");
            assert_int_equal(b.r->n, 1);
            mass_at(&b, net[i], h, v, low[i * COLS + REAL], &below, &at);
            assert_true(below < tail + 0.03 && below + at > tail - 0.03);
            mass_at(&b, net[i], h, v, high[i * COLS + REAL], &below, &at);
            assert_true(below < 1 - tail + 0.03 && below + at > 1 - tail - 0.03);
        }
        acf_table_free(t);
        acf_donor_lab_close(&b);
    }
}

/* Adds to d the n sorted cells with their counts. If networks have any density between two of them, adds a tiny
 * weight there. */
static void count_cells(const double *cells, int n, bool between, acf_weighted *d) {
    for (int i = 0; i < n; i++) {
        if (i && cells[i] == cells[i - 1]) {
            d->weight[d->n - 1] += 1.0 / n;
            continue;
        }
        if (i && between) d->value[d->n] = 0.5 * (cells[i] + cells[i - 1]), d->weight[d->n++] = 1e-12;
        d->value[d->n] = cells[i], d->weight[d->n++] = 1.0 / n;
    }
}

static int count_inside(const double *cells, int n, double low, double high) {
    int inside = 0;
    for (int i = 0; i < n; i++) inside += cells[i] >= low && cells[i] <= high;
    return inside;
}

/* If donors have the full weight and all rows are alike, an interval holds as many of the column's cells as an
 * interval of their distribution. Endpoints are trimmed only if cells of this column share values inside, not if a
 * single donor has a value. */
static void intervals_trim_shared_values(void **state) {
    (void)state;
    double low[CELLS], high[CELLS], cells[ROWS], value[2 * ROWS], weight[2 * ROWS];
    int moved = 0, off = 0;
    acf_donor_lab b;
    acf_donor_lab_open(&b, 2, 2, 5);
    acf_donor_lab_believe(&b, 60, 1e-9);
    for (int k = 0; k < COLS * COLS; k++) b.a->near[k] = b.a->other[k] = 0;
    for (int j = 0; j < COLS; j++) b.a->apart[j] = 0;
    for (int percent = 31; percent < 100; percent += 4) {
        const double level = percent / 100.0;
        assert_int_equal(acf_session_query_interval(b.s, b.table, all, level, NULL, low, high), ACF_OK);
        for (int j = 0; j < COLS; j += REAL) { /* the numbers */
            acf_shared shared, nothing = {0};
            acf_weighted d = {0, value, weight};
            int n = 0;
            for (int i = 0; i < ROWS; i++)
                if (!isnan(b.x[i * COLS + j])) cells[n++] = acf_encoder_round(b.m->encoder, j, b.x[i * COLS + j]);
            acf_shared_of(&shared, cells, n), count_cells(cells, n, j != WHOLE, &d);
            const acf_interval in = acf_interval_of_weighted(&d, level, &shared);
            const acf_interval none = acf_interval_of_weighted(&d, level, &nothing);
            const int inside = count_inside(cells, n, in.low, in.high);
            moved += inside != count_inside(cells, n, none.low, none.high);
            for (int c = j; c < CELLS; c += COLS) {
                if (!isnan(b.x[c])) continue;
                if (j != WHOLE)
                    off += count_inside(cells, n, low[c], high[c]) != inside;
                else
                    acf_assert_close(low[c], in.low, 1e-9, "low"), acf_assert_close(high[c], in.high, 1e-9, "high");
            }
        }
    }
    assert_true(moved > 10 &&
                off <= 2); /* if either of two values could go, the small weight of the networks decides */
    acf_donor_lab_close(&b);
}

static void batches_and_order_do_not_matter(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 3, 16, 100};
    for (int members = 1; members <= 2; members++) {
        acf_donor_lab b;
        double x[CELLS];
        int64_t of[ROWS];
        acf_donor_lab_open(&b, 2, members, 7);
        const answers whole = ask_all(b.s, b.table);
        for (int k = 0; k < 4; k++) {
            acf_session *s = acf_donor_lab_ask(&b, true, sizes[k]);
            const answers a = ask_all(s, b.table);
            same_answers(a, whole, ROWS, NULL);
            free(a.logp), acf_session_free(s);
        }
        uint64_t *id = acf_alloc(ROWS * sizeof *id, "ids");
        for (int i = 0; i < ROWS; i++) {
            of[i] = i * 7 % ROWS, id[i] = (uint64_t)of[i];
            memcpy(x + i * COLS, b.x + of[i] * COLS, COLS * sizeof *x);
        }
        acf_table *t = acf_donor_lab_table(x, ROWS, 0);
        t->id = id;
        const answers turned = ask_all(b.s, t);
        same_answers(turned, whole, ROWS, of);
        free(turned.logp), free(whole.logp);
        acf_table_free(t);
        acf_donor_lab_close(&b);
    }
}

/* With enough rows for several threads. */
static void threads_do_not_matter(void **state) {
    (void)state;
    enum { N = 1500 };
    static const int threads[] = {1, 2, 4};
    static double x[N * COLS];
    answers a[3];
    for (int k = 0; k < 3; k++) {
        acf_donor_lab b;
        acf_donor_lab_open(&b, threads[k], 1, N);
        for (int64_t c = 0; c < N * COLS; c++) x[c] = c * 11 % 13 < 3 ? ABSENT : b.x[c * 7 % ROWS * COLS + c % COLS];
        acf_table *t = acf_donor_lab_table(x, N, NEW);
        a[k] = ask_all(b.s, t);
        same_answers(a[k], a[0], N, NULL);
        acf_table_free(t);
        acf_donor_lab_close(&b);
    }
    for (int k = 0; k < 3; k++) free(a[k].logp);
}

ACF_TESTS(donor_answers_session, cmocka_unit_test(trusted_donors_are_copied),
          cmocka_unit_test(cells_depend_on_earlier_draws), cmocka_unit_test(donors_are_drawn_by_their_weight),
          cmocka_unit_test(equal_donors_are_drawn_equally_often), cmocka_unit_test(draws_follow_the_scores),
          cmocka_unit_test(means_are_those_of_both), cmocka_unit_test(summaries_are_of_the_draws),
          cmocka_unit_test(intervals_are_those_of_both), cmocka_unit_test(intervals_trim_shared_values),
          cmocka_unit_test(batches_and_order_do_not_matter), cmocka_unit_test(threads_do_not_matter))
