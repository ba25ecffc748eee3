/* Tests of donor_trust_cells.h: which cells are queried, and the predictions of network and donors for each, against
 * single queries and formulas. */
#include "train/donor_trust_cells.h"

#include "harness/train_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 4, N = 120, POINTS = 32, CLASSES = 3, FIRST = 500 };

/* A class, whole numbers, measurements and a mostly constant number; a ninth is missing, and rows partly repeat. */
static acf_table *table_of(int64_t rows) {
    static const acf_column columns[D] = {{"class", CLASSES}, {"whole", 0}, {"real", 0}, {"rare", 0}};
    double *x = malloc(sizeof(double) * (size_t)(rows * D));
    acf_table *t = NULL;
    assert_non_null(x);
    for (int64_t c = 0; c < rows * D; c++) {
        const int64_t j = c % D, kind = c / D % 40;
        const double u = acf_lab_random((uint64_t)j + 1, c / D % 5 ? kind : c, 0, 0.999);
        x[c] = c % 9 == 4 ? (double)NAN
               : j == 0   ? floor(CLASSES * u)
               : j == 1   ? floor(30 * u)
               : j == 2   ? exp(5 * u)
               : u < 0.8  ? 2
                          : 100 * u;
    }
    assert_int_equal(acf_table_make(x, NULL, rows, D, columns, &t), ACF_OK);
    t->first_id = FIRST;
    free(x);
    return t;
}

typedef struct bench {
    acf_train_lab l;
    acf_donors *m;
    acf_heldout a;
} bench;

static void open_bench(bench *b, const char *setting) {
    acf_train_lab_open(&b->l, 1, (const char *[]){"steps=6", "valid-every=3", "gmm=1", "valid=0.25", setting, NULL});
    acf_train_lab_ready(&b->l, table_of(N));
    if (acf_trainer_run(b->l.tr, NULL, NULL)) fail_msg("%s", acf_error());
    assert_int_equal(acf_donors_make(b->l.table, b->l.encoder, b->l.hold, 1, &b->m), ACF_OK);
    if (acf_heldout_query(b->l.tr, b->m, &b->a)) fail_msg("%s", acf_error());
}

static void close_bench(bench *b) {
    acf_heldout_free(&b->a);
    assert_true(!b->a.cell && !b->a.n);
    acf_donors_free(b->m);
    acf_train_lab_close(&b->l);
}

/* ---- which cells ----------------------------------------------------------------------------------------------- */

/* Held-out cells of the table, row by row; every k-th goes to `cell`. Returns how many those are. */
static int64_t every(const acf_train_lab *l, int64_t apart, int64_t *cell) {
    uint8_t held[D];
    int64_t seen = 0, n = 0;
    for (int64_t i = 0; i < l->table->N; i++) {
        acf_holdout_row(l->hold, l->table, i, held);
        for (int j = 0; j < D; j++)
            if (held[j] && seen++ % apart == 0) /* key of their order: */
                for (int part = 0; part < 2; part++) cell[n++] = 2 * (j * l->table->N + i) + part;
    }
    return n;
}

static int by_place(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_which(const acf_train_lab *l, const acf_heldout *a, int64_t apart) {
    int64_t *cell = malloc((size_t)(2 * l->table->N * D) * sizeof *cell);
    assert_non_null(cell);
    const int64_t n = every(l, apart, cell);
    qsort(cell, (size_t)n, sizeof *cell, by_place);
    assert_int_equal(a->n, n);
    for (int64_t i = 0; i < n; i++)
        assert_true(a->cell[i].column == cell[i] / 2 / l->table->N && a->cell[i].row == cell[i] / 2 % l->table->N &&
                    a->cell[i].in_part == cell[i] % 2);
    free(cell);
}

static void held_out_cells_are_queried_by_column(void **state) {
    (void)state;
    bench b;
    open_bench(&b, NULL);
    assert_int_equal(b.a.n, 2 * b.l.hold->held);
    assert_true(b.a.n > 80);
    check_which(&b.l, &b.a, 1);
    close_bench(&b);
}

/* With few stored rows, to save time: the search is not tested here. */
static void many_cells_are_thinned(void **state) {
    (void)state;
    static const struct {
        int64_t rows, apart;
        const char *valid;
    } some[] = {{750, 1, "valid=0.9"}, {850, 2, "valid=0.9"}, {2250, 3, "valid=0.9"}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        acf_train_lab l;
        acf_table *few = table_of(20);
        acf_donors *m;
        acf_heldout a;
        acf_train_lab_open(&l, 1, (const char *[]){some[k].valid, NULL});
        acf_train_lab_ready(&l, table_of(some[k].rows));
        assert_int_equal(acf_donors_make(few, l.encoder, NULL, 1, &m), ACF_OK);
        if (acf_heldout_query(l.tr, m, &a)) fail_msg("%s", acf_error());
        assert_true(2 * l.hold->held > (some[k].apart - 1) * ACF_DONOR_TRUST_CELLS &&
                    2 * l.hold->held <= some[k].apart * ACF_DONOR_TRUST_CELLS);
        assert_true(a.n <= ACF_DONOR_TRUST_CELLS);
        check_which(&l, &a, some[k].apart);
        acf_heldout_free(&a);
        acf_donors_free(m);
        acf_table_free(few);
        acf_train_lab_close(&l);
    }
}

/* ---- predictions ----------------------------------------------------------------------------------------------- */

/* The given cells of a row, for network and donors. */
static void given_to(const bench *b, int64_t row, uint8_t *known) {
    acf_holdout_row(b->l.hold, b->l.table, row, known);
    for (int k = 0; k < D; k++) known[k] = !known[k] && acf_table_present(acf_table_row(b->l.table, row)[k]);
}

/* A query of the network for one cell: returns log p of the true value in the table's units; forecast gets POINTS
 * values, or probabilities. */
static double ask_one(bench *b, const acf_heldout_cell *c, acf_batch *one, double *forecast) {
    acf_train_lab *l = &b->l;
    const int j = c->column;
    uint8_t known[D];
    acf_real said[POINTS];
    acf_heldout_known(b->l.tr, c, known);
    acf_batch_fill(l->dev, one, l->table, l->encoder, NULL, ACF_BATCH_TRAIN, &c->row, 1);
    for (int k = 0; k < D; k++) one->m[k] = k == j || known[k], one->b[k] = k != j && known[k];
    acf_batch_dequantise(l->dev, one, l->table, l->encoder, &c->row, l->tr->set.seed, ACF_NOISE_FIXED);
    acf_tape_begin(l->tr->tape, false);
    const double lp = (double)acf_net_logp(l->tr->tape, acf_net_view(l->tr->tape, l->net, one, NULL))->data[0];
    acf_tape_begin(l->tr->tape, false);
    if (j == 0)
        assert_int_equal(acf_net_class_probs(l->tr->tape, acf_net_view(l->tr->tape, l->net, one, NULL), said), ACF_OK);
    else
        assert_int_equal(acf_net_cell_values(l->tr->tape, acf_net_view(l->tr->tape, l->net, one, NULL), POINTS, said),
                         ACF_OK);
    for (int k = 0; k < (j == 0 ? CLASSES : POINTS); k++)
        forecast[k] = j == 0 ? (double)said[k] : acf_decode(l->encoder, j, said[k]);
    const double y = acf_dequantise(l->encoder, j, acf_table_row(l->table, c->row)[j], l->tr->set.seed,
                                    acf_table_row_id(l->table, c->row), ACF_NOISE_FIXED);
    return lp + acf_encode_log_slope(l->encoder, j, y);
}

static double apart(const double *a, int n, const double *b, int m) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++) sum += fabs(a[i] - b[k]) / n / m;
    return sum;
}

/* Half the Brier score of (1-h) p + h q. */
static double half_brier(const double *p, const double *q, double h, int truth) {
    double sum = 0;
    for (int k = 0; k < CLASSES; k++) sum += 0.5 * pow((1 - h) * p[k] + h * q[k] - (k == truth), 2);
    return sum;
}

/* CRPS of a mixture of two samples with n and m values, from the squares between its steps: ∫ (F - [t <= y])² dy. */
static double crps(const double *a, int n, const double *b, int m, double h, double truth) {
    double at[2 * POINTS + 1], sum = 0;
    memcpy(at, a, (size_t)n * sizeof *a), memcpy(at + n, b, (size_t)m * sizeof *b), at[n + m] = truth;
    for (int i = 1; i <= n + m; i++) /* in order */
        for (int k = i; k > 0 && at[k] < at[k - 1]; k--) {
            const double y = at[k];
            at[k] = at[k - 1], at[k - 1] = y;
        }
    for (int i = 0; i < n + m; i++) {
        double F = 0;
        for (int k = 0; k < n; k++) F += (a[k] <= at[i]) * (1 - h) / n;
        for (int k = 0; k < m; k++) F += (b[k] <= at[i]) * h / m;
        sum += pow(F - (truth <= at[i]), 2) * (at[i + 1] - at[i]);
    }
    return sum;
}

static void check_class(const bench *b, const acf_donor_search *r, const acf_heldout_cell *c, const double *p,
                        double tol) {
    const int truth = (int)acf_table_row(b->l.table, c->row)[0];
    double q[CLASSES], same[3] = {0};
    for (int k = 0; k < CLASSES; k++)
        q[k] = acf_donor_search_density(r, 0, k), same[0] += p[k] * p[k], same[1] += p[k] * q[k],
        same[2] += q[k] * q[k];
    assert_true(c->of_class);
    acf_assert_close(c->off_net, 1 - p[truth], tol, "network to true value");
    acf_assert_close(c->off_rows, 1 - q[truth], tol, "donors to true value");
    acf_assert_close(c->net_net, 1 - same[0], tol, "network to network");
    acf_assert_close(c->net_rows, 1 - same[1], tol, "network to donors");
    acf_assert_close(c->rows_rows, 1 - same[2], tol, "donors to donors");
    for (double h = 0; h <= 1; h += 0.25)
        acf_assert_close(acf_heldout_loss(c, h), half_brier(p, q, h, truth) - half_brier(p, q, 0, truth), tol,
                         "loss of a class");
}

/* In standard deviations of the column. The donors' draws lie on a lattice, which stands for many draws: *many gets
 * off_rows of random ones. */
static void check_number(const bench *b, const acf_donor_search *r, const acf_heldout_cell *c, const double *net,
                         double tol, double *many) {
    enum { MANY = 200 };
    const int j = c->column;
    const double truth = acf_table_row(b->l.table, c->row)[j], unit = 1 / b->l.encoder->scale[j];
    double rows[POINTS];
    for (int k = 0; k < POINTS; k++) {
        const double u[3] = {(k + 0.5) / 32, fmod(7 * (k + 0.5) / 32, 1), fmod(11 * (k + 0.5) / 32, 1)};
        rows[k] = acf_donor_search_draw(r, j, u);
    }
    assert_false(c->of_class);
    acf_assert_close(c->off_net, unit * apart(net, POINTS, &truth, 1), tol, "network to true value");
    acf_assert_close(c->off_rows, unit * apart(rows, POINTS, &truth, 1), tol, "donors to true value");
    acf_assert_close(c->net_net, unit * apart(net, POINTS, net, POINTS), tol, "network to network");
    acf_assert_close(c->net_rows, unit * apart(net, POINTS, rows, POINTS), tol, "network to donors");
    acf_assert_close(c->rows_rows, unit * apart(rows, POINTS, rows, POINTS), tol, "donors to donors");
    for (double h = 0; h <= 1; h += 0.25)
        acf_assert_close(acf_heldout_loss(c, h),
                         unit * (crps(net, POINTS, rows, POINTS, h, truth) - crps(net, POINTS, rows, POINTS, 0, truth)),
                         tol, "loss of a number");
    for (int k = 0; k < MANY; k++) {
        const int64_t at = (c->row * D + j) * MANY + k;
        *many += unit *
                 fabs(acf_donor_search_draw(r, j,
                                            (double[]){acf_lab_random(7, at, 0, 1), acf_lab_random(8, at, 0, 1),
                                                       acf_lab_random(9, at, 0, 1)}) -
                      truth) /
                 MANY;
    }
}

/* All that training saw of the row; or any number of these cells, each number equally often. */
static void cells_are_given_all_or_a_part(void **state) {
    (void)state;
    bench b;
    double share = 0, none = 0, full = 0, parts = 0;
    open_bench(&b, NULL);
    for (int64_t i = 0; i < b.a.n; i++) {
        uint8_t all[D], known[D];
        int n = 0, of = 0;
        given_to(&b, b.a.cell[i].row, all);
        acf_heldout_known(b.l.tr, &b.a.cell[i], known);
        for (int k = 0; k < D; k++) {
            assert_true(known[k] <= all[k]);
            n += known[k], of += all[k];
        }
        if (!b.a.cell[i].in_part)
            assert_int_equal(n, of);
        else if (of > 0)
            parts++, share += (double)n / of, none += n == 0, full += n == of;
    }
    assert_true(parts > 50 && fabs(share / parts - 0.5) < 0.1);
    assert_true(none / parts > 0.1 && full / parts > 0.1 && (none + full) / parts < 0.8);
    close_bench(&b);
}

static void cells_are_scored_as_by_hand(void **state) {
    (void)state;
    bench b;
    acf_batch *one;
    acf_donor_search *r;
    double forecast[POINTS], lattice = 0, many = 0, numbers = 0;
    const double tol = 1000 * (double)ACF_REAL_EPS;
    open_bench(&b, NULL);
    assert_int_equal(acf_batch_create(1, D, &one), ACF_OK);
    assert_int_equal(acf_donor_search_create(b.m, &r), ACF_OK);
    for (int64_t i = 0; i < b.a.n; i++) {
        const acf_heldout_cell *c = &b.a.cell[i];
        uint8_t known[D];
        const double *x = acf_table_row(b.l.table, c->row), lp = ask_one(&b, c, one, forecast);
        acf_heldout_known(b.l.tr, c, known);
        assert_true(c->found && acf_donor_search_run(r, c->column, x, known, acf_table_row_id(b.l.table, c->row)));
        assert_true(c->peak == r->peak && c->alike == r->alike && c->given == r->given);
        acf_assert_close(c->told, log(fmax(b.m->gain[c->column], 0) + 0.01), 1e-12, "told");
        acf_assert_close(log(c->better), log(acf_donor_search_density(r, c->column, x[c->column])) - lp, 20 * tol,
                         "log of how much better");
        if (c->column == 0)
            check_class(&b, r, c, forecast, tol);
        else
            check_number(&b, r, c, forecast, tol, &many), lattice += c->off_rows, numbers++;
        assert_true(acf_heldout_loss(c, 0) == 0);
    }
    acf_assert_close(lattice / numbers, many / numbers, 0.02, "off_rows of many draws");
    acf_batch_free(one);
    acf_donor_search_free(r);
    close_bench(&b);
}

/* In an ensemble the network's values lie a little farther apart; nothing else changes. */
static void ensemble_members_are_farther_apart(void **state) {
    (void)state;
    bench b;
    open_bench(&b, NULL);
    for (int members = 0; members <= 6; members += 3) {
        acf_heldout a;
        b.l.tr->set.members = members;
        assert_int_equal(acf_heldout_query(b.l.tr, b.m, &a), ACF_OK);
        assert_int_equal(a.n, b.a.n);
        for (int64_t i = 0; i < a.n; i++) {
            acf_heldout_cell c = a.cell[i];
            const double more = members ? 1 + 0.03 * (1 - 1.0 / members) : 1;
            acf_assert_close(c.net_net, more * b.a.cell[i].net_net, 1e-12, "network from itself");
            assert_true(c.off_net == b.a.cell[i].off_net && c.net_rows == b.a.cell[i].net_rows &&
                        c.rows_rows == b.a.cell[i].rows_rows && c.better == b.a.cell[i].better);
        }
        acf_heldout_free(&a);
    }
    close_bench(&b);
}

static void cells_without_donors_lose_nothing(void **state) {
    (void)state;
    bench b;
    acf_heldout a;
    open_bench(&b, NULL);
    for (int i = 0; i < N; i++) b.m->code[2 * N + i] = -1; /* no row has column 2 */
    acf_donors_ready(b.m);
    assert_int_equal(acf_heldout_query(b.l.tr, b.m, &a), ACF_OK);
    for (int64_t i = 0; i < a.n; i++) {
        const acf_heldout_cell *c = &a.cell[i];
        assert_int_equal(c->found, c->column != 2);
        for (double h = 0; h <= 1; h += 0.5) assert_true(c->found || acf_heldout_loss(c, h) == 0);
    }
    acf_heldout_free(&a);
    close_bench(&b);
    const acf_heldout_cell none = {.off_net = 1, .off_rows = 7, .net_net = 3, .net_rows = 4, .rows_rows = 5};
    assert_true(acf_heldout_loss(&none, 0.5) == 0);
}

/* The loss of any two samples, with the five distances computed here. */
static void the_loss_is_that_of_the_mixture(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        double a[POINTS], b[POINTS];
        const int n = 1 + i * 7 % POINTS, m = 1 + i * 5 % POINTS;
        const double truth = acf_lab_random(1, i, -2, 2);
        for (int k = 0; k < POINTS; k++)
            a[k] = acf_lab_random(2, i * POINTS + k, -2, 1), b[k] = floor(acf_lab_random(3, i * POINTS + k, -1, 4));
        const acf_heldout_cell c = {.found = true,
                                    .off_net = apart(a, n, &truth, 1),
                                    .off_rows = apart(b, m, &truth, 1),
                                    .net_net = apart(a, n, a, n),
                                    .net_rows = apart(a, n, b, m),
                                    .rows_rows = apart(b, m, b, m)};
        for (double h = 0; h <= 1; h += 0.125)
            acf_assert_close(acf_heldout_loss(&c, h), crps(a, n, b, m, h, truth) - crps(a, n, b, m, 0, truth), 1e-12,
                             "loss");
    }
}

static void a_column_s_gain_becomes_a_logarithm(void **state) {
    (void)state;
    double gain[] = {-3, 0, 0.99, 9.99};
    const acf_donors m = {.gain = gain};
    acf_assert_close(acf_donor_trust_of_column(&m, 0), log(0.01), 1e-12, "less than nothing");
    acf_assert_close(acf_donor_trust_of_column(&m, 1), log(0.01), 1e-12, "nothing");
    acf_assert_close(acf_donor_trust_of_column(&m, 2), 0, 1e-12, "a nat");
    acf_assert_close(acf_donor_trust_of_column(&m, 3), log(10), 1e-12, "ten");
}

static void survives_without_memory(void **state) {
    (void)state;
    bench b;
    acf_status status = ACF_EMEMORY;
    open_bench(&b, NULL);
    int64_t n = 1;
    for (; status; n++) {
        acf_heldout a;
        acf_tape_begin(b.l.tr->tape, false);
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        status = acf_heldout_query(b.l.tr, b.m, &a);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || (status == ACF_EMEMORY && !a.cell && !a.n));
        acf_heldout_free(&a);
        acf_tape_begin(b.l.tr->tape, false);
        assert_true(acf_alloc_live() <= live + 64); /* a tape keeps what it has grown to */
    }
    assert_true(n > 5);
    close_bench(&b);
}

ACF_TESTS(donor_trust_cells, cmocka_unit_test(held_out_cells_are_queried_by_column),
          cmocka_unit_test(many_cells_are_thinned), cmocka_unit_test(cells_are_given_all_or_a_part),
          cmocka_unit_test(cells_are_scored_as_by_hand), cmocka_unit_test(ensemble_members_are_farther_apart),
          cmocka_unit_test(cells_without_donors_lose_nothing), cmocka_unit_test(the_loss_is_that_of_the_mixture),
          cmocka_unit_test(a_column_s_gain_becomes_a_logarithm), cmocka_unit_test(survives_without_memory))
