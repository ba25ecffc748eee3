/* Tests of donor_trust.h: when a model gets donors, with what weight, and that records and donors agree. */
#include "train/donor_trust.h"

#include "harness/train_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 4, N = 240, MADE = 400 };

/* ---- numbers for synthetic cells ------------------------------------------------------------------------------- */

static double score_of(const acf_heldout_cell *c, double h) {
    return (1 - h) * c->off_net + h * c->off_rows -
           0.5 * ((1 - h) * (1 - h) * c->net_net + 2 * h * (1 - h) * c->net_rows + h * h * c->rows_rows);
}

static double trust_of(const acf_heldout_cell *c, const double *v) {
    return 1 / (1 + exp(-(v[ACF_DONOR_TRUST_SHIFT] + v[ACF_DONOR_TRUST_SLOPE] * c->peak +
                          v[ACF_DONOR_TRUST_AGREE] * c->alike + v[ACF_DONOR_TRUST_OF_COLUMN] * c->told +
                          v[ACF_DONOR_TRUST_COLUMN + c->column])));
}

/* MADE cells, a third in each of columns 0 to 2. The network's predictions score 0.5; donors are better by `nearer`. */
typedef struct made {
    acf_heldout_cell cell[MADE];
    acf_heldout all;
} made;

static acf_heldout_cell cell_that(int column, double nearer) {
    return (acf_heldout_cell){.column = column,
                              .found = true,
                              .peak = 2,
                              .alike = 1,
                              .told = -1,
                              .off_net = 1,
                              .net_net = 1,
                              .off_rows = 1 - nearer,
                              .net_rows = 1,
                              .rows_rows = 1,
                              .better = 2};
}

static void make_up(made *a, double nearer) {
    for (int i = 0; i < MADE; i++) a->cell[i] = cell_that(i * 3 / MADE, nearer);
    a->all = (acf_heldout){a->cell, MADE};
}

/* Are donors worth it for these cells? */
static bool choose(const made *a, double *v) {
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) v[k] = 99; /* overwritten */
    acf_donor_trust_choose(&a->all, D, v);
    return acf_donor_trust_worth(v);
}

static void better_donors_get_weight(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0.8);
    for (int i = 0; i < MADE; i++)
        a.cell[i].peak = acf_lab_random(1, i, 0, 4), a.cell[i].rows_rows = 0.3, a.cell[i].net_rows = 0.8;
    assert_true(choose(&a, v));
    for (int i = 0; i < MADE; i++) assert_true(trust_of(&a.cell[i], v) > 0.9);
    for (int k = D; k < ACF_DONOR_TRUST_COLUMNS; k++) assert_true(v[ACF_DONOR_TRUST_COLUMN + k] == 0);
}

static void donors_that_are_no_better_are_not_used(void **state) {
    (void)state;
    static const double nearer[] = {-0.5, -0.01, 0};
    for (int k = 0; k < 3; k++) {
        made a;
        double v[ACF_DONOR_TRUST_NUMBERS];
        make_up(&a, nearer[k]);
        assert_false(choose(&a, v));
    }
    double v[ACF_DONOR_TRUST_NUMBERS];
    acf_donor_trust_choose(&(acf_heldout){0}, D, v);
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) assert_true(v[k] == 0);
}

/* The least gain is half a percent of the network's scores. */
static void a_small_gain_is_not_enough(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0.0024); /* 0.48 % of 0.5, with weight 1 */
    assert_false(choose(&a, v));
    make_up(&a, 0.02);
    assert_true(choose(&a, v));
}

/* Donors are far better in one cell and worse in the next. */
static void a_gain_by_chance_is_not_enough(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    for (int k = 0; k < 2; k++) {
        make_up(&a, 0);
        for (int i = 0; i < MADE; i++)
            a.cell[i].off_rows = 1 - (i % 2 ? 0.5 : -0.5) - (k ? 0.05 : 0.02); /* 2 and 0.8 deviations, 10 % and 4 % */
        assert_int_equal(choose(&a, v), k);
    }
}

static void true_values_are_no_less_likely(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    for (int k = 0; k < 4; k++) {
        make_up(&a, 0.5);
        for (int i = 0; i < MADE; i++)
            a.cell[i].better = k == 0   ? 0.5
                               : k == 1 ? 2
                               : i % 2  ? 1e-12
                               : k == 2 ? 5
                                        : 1e300; /* the mean is that of logarithms */
        assert_int_equal(choose(&a, v), k == 1 || k == 3);
    }
}

static void a_column_may_be_left_to_the_network(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0.5);
    for (int i = 0; i < MADE; i++)
        if (a.cell[i].column == 1) a.cell[i].off_rows = 2;
    assert_true(choose(&a, v));
    assert_true(v[ACF_DONOR_TRUST_COLUMN + 1] < -2 && v[ACF_DONOR_TRUST_COLUMN] > -0.5 &&
                v[ACF_DONOR_TRUST_COLUMN + 2] > -0.5 && v[ACF_DONOR_TRUST_COLUMN + 3] == 0);
    for (int i = 0; i < MADE; i++)
        assert_true(a.cell[i].column == 1 ? trust_of(&a.cell[i], v) < 0.1 : trust_of(&a.cell[i], v) > 0.8);
}

/* Where cells are uninformative, numbers stay at their prior, which gives donors less weight for classes. */
static void classes_are_left_to_the_network(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0.5);
    for (int i = 0; i < MADE; i++) {
        if (a.cell[i].column > 0) a.cell[i].off_rows = 1;
        a.cell[i].of_class = a.cell[i].column == 1;
    }
    assert_true(choose(&a, v));
    acf_assert_close(v[ACF_DONOR_TRUST_COLUMN + 1], -2, 1e-3, "of classes");
    acf_assert_close(v[ACF_DONOR_TRUST_COLUMN + 2], 0, 1e-3, "of numbers");
}

/* A cell without donors is ignored, whatever its other fields. */
static void cells_without_donors_do_not_count(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0.5);
    for (int i = 0; i < MADE; i += 2)
        a.cell[i] = (acf_heldout_cell){.column = a.cell[i].column, .off_net = 1e9, .off_rows = -1e9, .better = -1e9};
    assert_true(choose(&a, v));
    make_up(&a, -0.5);
    for (int i = 0; i < MADE; i += 2)
        a.cell[i] = (acf_heldout_cell){.column = a.cell[i].column, .off_net = 1e9, .off_rows = -1e9, .better = 1e9};
    assert_false(choose(&a, v));
}

/* Cells that the network predicts well have the same weight against the prior as others. */
static void units_do_not_matter(void **state) {
    (void)state;
    made a;
    double v[2][ACF_DONOR_TRUST_NUMBERS];
    for (int k = 0; k < 2; k++) {
        const double unit = k ? 0.01 : 1;
        make_up(&a, 0.1);
        for (int i = 0; i < MADE; i++) {
            acf_heldout_cell *c = &a.cell[i];
            c->off_net *= unit, c->off_rows *= unit, c->net_net *= unit, c->net_rows *= unit, c->rows_rows *= unit;
        }
        assert_true(choose(&a, v[k]));
    }
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) acf_assert_close(v[0][k], v[1][k], 1e-3, "a number");
}

/* The objective, from donor_trust.h and each number's prior. */
static double objective(const acf_heldout *a, const double *v) {
    static const double expected[ACF_DONOR_TRUST_WON] = {0, 0.3, 0.3, 0.7},
                        deviation[ACF_DONOR_TRUST_WON] = {3, 0.5, 0.5, 0.5};
    double sum = 0, network = 0;
    for (int64_t i = 0; i < a->n; i++)
        sum += score_of(&a->cell[i], trust_of(&a->cell[i], v)), network += score_of(&a->cell[i], 0);
    sum *= (double)a->n / network;
    for (int k = 0; k < ACF_DONOR_TRUST_WON; k++) sum += 0.5 * pow((v[k] - expected[k]) / deviation[k], 2);
    for (int j = 0; j < D; j++)
        sum += 0.5 * pow((v[ACF_DONOR_TRUST_COLUMN + j] + 2 * (j == 2)) / 0.6, 2); /* column 2 is of classes */
    return sum;
}

/* Cells of all kinds: donors are better the nearer and the more alike they are, and the larger their column's gain. */
static void the_numbers_minimise_the_objective(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    make_up(&a, 0);
    for (int i = 0; i < MADE; i++) {
        acf_heldout_cell *c = &a.cell[i];
        c->of_class = c->column == 2;
        c->peak = acf_lab_random(1, i, 0, 5), c->alike = acf_lab_random(2, i, -1, 3), c->told = -1.5 * c->column;
        c->off_rows = 1.3 - 0.1 * c->peak - 0.1 * c->alike - 0.1 * c->told + acf_lab_random(3, i, -0.5, 0.5);
        c->net_net = acf_lab_random(4, i, 0.6, 1), c->rows_rows = acf_lab_random(5, i, 0.1, 0.5),
        c->net_rows = acf_lab_random(6, i, 0.7, 1);
    }
    assert_true(choose(&a, v));
    const double least = objective(&a.all, v);
    for (int k = 0; k < ACF_DONOR_TRUST_COLUMN + D; k++)
        for (int i = -3; i <= 3; i++) {
            double other[ACF_DONOR_TRUST_NUMBERS];
            memcpy(other, v, sizeof other);
            other[k] += 0.15 * i;
            if (k > ACF_DONOR_TRUST_SHIFT && k < ACF_DONOR_TRUST_COLUMN) other[k] = fmax(other[k], 0);
            if (objective(&a.all, other) < least - 0.05) /* coordinate descent with few rounds */
                fail_msg("number %d: %g is better than %g by %g", k, other[k], v[k], least - objective(&a.all, other));
        }
    assert_true(v[ACF_DONOR_TRUST_SLOPE] > 0.05 && v[ACF_DONOR_TRUST_AGREE] > 0.05 &&
                v[ACF_DONOR_TRUST_OF_COLUMN] > 0.05);
}

/* ---- trained networks ------------------------------------------------------------------------------------------ */

/* A class and whole numbers; every row is `copies` times in the table. Columns after the fourth are empty. */
static acf_table *table_with(int64_t rows, int copies, int64_t columns) {
    acf_column *column = calloc((size_t)columns, sizeof *column);
    double *x = malloc(sizeof(double) * (size_t)(rows * columns));
    acf_table *t = NULL;
    assert_true(column && x);
    column[0].classes = columns > 1 ? 3 : 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t kind = i * 7 % rows / copies;
        for (int64_t j = 0; j < columns; j++) {
            const double u = acf_lab_random((uint64_t)j + 1, kind, 0, 0.999);
            x[i * columns + j] = j >= D ? (double)NAN : floor(u * (column[j].classes ? 3 : 60));
        }
    }
    assert_int_equal(acf_table_make(x, NULL, rows, columns, column, &t), ACF_OK);
    free(x), free(column);
    return t;
}

static acf_table *table_of(int64_t rows, int copies) { return table_with(rows, copies, D); }

static void open_lab(acf_train_lab *l, const char *setting, acf_table *t) {
    acf_train_lab_open(l, 1, (const char *[]){"steps=4", "valid-every=2", "donors=true", "gmm=1", setting, NULL});
    acf_train_lab_ready(l, t);
    if (acf_trainer_run(l->tr, NULL, NULL)) fail_msg("%s", acf_error());
}

/* Was it fitted, and are donors worth it? Where it was not fitted, all numbers are 0. */
static bool asks(acf_train_lab *l) {
    l->tr->donor_trust[ACF_DONOR_TRUST_CHANCE] = 7, l->tr->donor_trust[ACF_DONOR_TRUST_NUMBERS - 1] = 8;
    if (acf_donor_trust_fit(l->tr)) fail_msg("%s", acf_error());
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++)
        assert_true(l->tr->donor_trust[ACF_DONOR_TRUST_CHANCE] > 0 || l->tr->donor_trust[k] == 0);
    return l->tr->donor_trust[ACF_DONOR_TRUST_CHANCE] > 0;
}
static bool worth(acf_train_lab *l) { return asks(l) && acf_donor_trust_worth(l->tr->donor_trust); }

static void held_out_cells_decide(void **state) {
    (void)state;
    static const struct {
        int copies; /* 0: correlated normals, which the network's mixture predicts as well as donors do */
        const char *setting;
        bool donor_answers;
    } some[] = {{2, "valid=0.2", true},
                {4, "valid=0.2", true},
                {0, "valid=0.2", false},
                {2, "donors=false", false},
                {2, "valid=0", false}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        acf_train_lab l;
        open_lab(&l, some[k].setting,
                 some[k].copies ? table_of(N, some[k].copies) : acf_train_lab_table(N, D, 0, 0, 3));
        assert_int_equal(worth(&l), some[k].donor_answers);
        acf_train_lab_close(&l);
    }
}

static void open_rows(acf_train_lab *l, acf_table *t) {
    acf_train_lab_open(
        l, 1, (const char *[]){"steps=4", "valid-every=2", "donors=true", "gmm=1", "valid-on=rows", "valid=0.4", NULL});
    acf_train_lab_ready(l, t);
    if (acf_trainer_run(l->tr, NULL, NULL)) fail_msg("%s", acf_error());
}

/* Held-out rows find their donors among the others. They are donors only after a second pass. */
static void held_out_rows_decide_and_are_no_donors(void **state) {
    (void)state;
    acf_train_lab l;
    open_rows(&l, table_of(N, 4));
    const acf_rows *rows = l.tr->data.rows;
    assert_true(worth(&l));
    assert_true(l.tr->data.rows == rows && rows->n == l.split.train.n && l.tr->data.table == l.table &&
                !l.tr->data.hold);
    acf_model m = {
        .config = l.o, .encoder = l.encoder, .net = l.net, .record = acf_trainer_record(l.tr, ACF_END_STEPS)};
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_int_equal(m.donors->N, l.split.train.n);
    for (int64_t i = 0; i < m.donors->N; i++) assert_true(m.donors->id[i] == (uint64_t)acf_rows_at(&l.split.train, i));
    acf_donors_free(m.donors);
    m.record.refit = ACF_REFIT_DONE;
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_int_equal(m.donors->N, N);
    acf_donors_free(m.donors);
    acf_train_lab_close(&l);
    open_rows(&l, acf_train_lab_table(N, D, 0, 0, 3));
    assert_false(worth(&l));
    acf_train_lab_close(&l);
}

static void every_member_is_fitted(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, "valid=0.2", table_of(N, 2));
    for (l.tr->member = 0; l.tr->member < 3; l.tr->member++) assert_true(worth(&l));
    acf_train_lab_close(&l);
}

/* Donors with weight 1 gain the difference of the scores, as a share of the network's; the deviation is that of
 * independent cells. */
static void the_gain_is_counted(void **state) {
    (void)state;
    made a;
    double v[ACF_DONOR_TRUST_NUMBERS], won = 0, square = 0;
    make_up(&a, 0.5);
    for (int i = 0; i < MADE; i++) a.cell[i].off_rows += acf_lab_random(1, i, -0.3, 0.3);
    assert_true(choose(&a, v));
    for (int i = 0; i < MADE; i++) won += score_of(&a.cell[i], 0) - score_of(&a.cell[i], trust_of(&a.cell[i], v));
    for (int i = 0; i < MADE; i++)
        square += pow(score_of(&a.cell[i], 0) - score_of(&a.cell[i], trust_of(&a.cell[i], v)) - won / MADE, 2);
    acf_assert_close(v[ACF_DONOR_TRUST_WON], won / (0.5 * MADE), 1e-9, "won");
    acf_assert_close(v[ACF_DONOR_TRUST_CHANCE], sqrt(square) / (0.5 * MADE), 1e-9, "chance");
    make_up(&a, 0.5); /* all alike: not 0, which means not fitted */
    assert_true(choose(&a, v) && v[ACF_DONOR_TRUST_CHANCE] > 0 && v[ACF_DONOR_TRUST_CHANCE] < 1e-6);
    a.all.n = 1;
    acf_donor_trust_choose(&a.all, D, v);
    assert_true(v[ACF_DONOR_TRUST_CHANCE] > 0);
}

static void members_are_pooled(void **state) {
    (void)state;
    double found[4][ACF_DONOR_TRUST_NUMBERS] = {{0}}, v[ACF_DONOR_TRUST_NUMBERS];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++)
            found[i][k] = i == 2 ? 0 : acf_lab_random((uint64_t)i, k, -1, 1);
    found[0][ACF_DONOR_TRUST_CHANCE] = 0.03, found[1][ACF_DONOR_TRUST_CHANCE] = 0.04,
    found[3][ACF_DONOR_TRUST_CHANCE] = 0.12;
    acf_donor_trust_pool(found, 4, v);
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++)
        if (k != ACF_DONOR_TRUST_CHANCE)
            acf_assert_close(v[k], (found[0][k] + found[1][k] + found[3][k]) / 3, 1e-12, "mean");
    acf_assert_close(v[ACF_DONOR_TRUST_CHANCE], 0.13 / 3, 1e-12, "chance");
    acf_donor_trust_pool(found, 1, v);
    assert_memory_equal(v, found[0], sizeof v);
    acf_donor_trust_pool(found + 2, 1, v);
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) assert_true(v[k] == 0);
    acf_donor_trust_pool(found, 0, v);
    for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) assert_true(v[k] == 0);
}

static void worth_needs_gain_and_significance(void **state) {
    (void)state;
    static const struct {
        double won, chance;
        bool worth;
    } some[] = {{0.0051, 0.001, true}, {0.0049, 0.001, false}, {0.05, 0.0249, true}, {0.05, 0.0251, false},
                {-0.05, 0.01, false},  {0.5, 0, false},        {0, 0, false}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        double v[ACF_DONOR_TRUST_NUMBERS] = {0};
        v[ACF_DONOR_TRUST_WON] = some[k].won, v[ACF_DONOR_TRUST_CHANCE] = some[k].chance;
        assert_int_equal(acf_donor_trust_worth(v), some[k].worth);
    }
}

/* The fit uses the queried cells, with donors that did not learn from them. */
static void queried_cells_are_those_of_the_choice(void **state) {
    (void)state;
    acf_train_lab l;
    acf_donors *m;
    acf_heldout a;
    double v[ACF_DONOR_TRUST_NUMBERS];
    open_lab(&l, "valid=0.3", table_of(N, 2));
    assert_true(worth(&l));
    assert_int_equal(acf_donors_make(l.table, l.encoder, l.hold, 1, &m), ACF_OK);
    assert_int_equal(acf_heldout_query(l.tr, m, &a), ACF_OK);
    acf_donor_trust_choose(&a, D, v);
    assert_memory_equal(v, l.tr->donor_trust, sizeof v);
    acf_heldout_free(&a);
    acf_donors_free(m);
    acf_train_lab_close(&l);
}

static void some_tables_get_no_donors(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns;
        const char *valid;
        bool remembered;
    } some[] = {{ACF_DONORS_ROWS, D, "valid=0.002", true},
                {ACF_DONORS_ROWS + 1, D, "valid=0.002", false},
                {ACF_DONORS_ROWS, 101, "valid=0.002", false},
                {N, ACF_DONOR_TRUST_COLUMNS, "valid=0.2", true},
                {N, ACF_DONOR_TRUST_COLUMNS + 1, "valid=0.2", false},
                {N, 2, "valid=0.2", true},
                {N, 1, "valid=0.2", false}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        acf_train_lab l;
        acf_train_lab_open(
            &l, 1, (const char *[]){some[k].valid, "donors=true", NULL}); /* not trained: that would take long */
        acf_train_lab_ready(&l, table_with(some[k].rows, some[k].columns > 2 ? 2 : 8, some[k].columns));
        if (worth(&l) != some[k].remembered) fail_msg("%d rows, %d columns", (int)some[k].rows, (int)some[k].columns);
        acf_train_lab_close(&l);
    }
}

/* A network whose predictions are not finite is not compared with donors. */
static void a_broken_network_is_not_compared(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, "valid=0.2", table_of(60, 2));
    acf_params *ps = acf_net_params(l.net);
    for (int64_t i = 0; i < ps->total; i++) ps->value[i] = (acf_real)NAN;
    assert_false(asks(&l));
    assert_string_equal(acf_error(), "");
    acf_train_lab_close(&l);
}

/* ---- records and donors ---------------------------------------------------------------------------------------- */

static void check_round_trip(const acf_fit_record *r, size_t length) {
    acf_fit_record back;
    json_t *text;
    assert_int_equal(acf_fit_record_to_json(r, &text), ACF_OK);
    assert_int_equal(json_array_size(json_object_get(text, "donor_trust")), length);
    assert_int_equal(acf_fit_record_from_json((acf_json_source){"m", ACF_EMODEL}, text, &back), ACF_OK);
    if (length)
        assert_memory_equal(r->donor_trust, back.donor_trust, sizeof r->donor_trust);
    else
        for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) assert_true(back.donor_trust[k] == 0);
    json_decref(text);
}

static void records_have_the_numbers(void **state) {
    (void)state;
    acf_fit_record r = {.known = true, .valid = INFINITY}, back = {0};
    json_t *text;
    check_round_trip(&r, 0);
    r.donor_trust[ACF_DONOR_TRUST_SHIFT] = -1 / 3.0, r.donor_trust[ACF_DONOR_TRUST_OF_COLUMN] = 0.7,
    r.donor_trust[ACF_DONOR_TRUST_COLUMN + 1] = 5;
    check_round_trip(&r, 0); /* not fitted: nothing is written */
    r.donor_trust[ACF_DONOR_TRUST_CHANCE] = 1e-9, r.donor_trust[ACF_DONOR_TRUST_COLUMN + 1] = 0;
    check_round_trip(&r, 6);
    r.donor_trust[ACF_DONOR_TRUST_OF_COLUMN] = 0, r.donor_trust[ACF_DONOR_TRUST_WON] = -1 / 9.0;
    check_round_trip(&r, 6);
    r.donor_trust[ACF_DONOR_TRUST_COLUMN + 2] = -1 / 7.0; /* those before it are 0 */
    check_round_trip(&r, 9);
    for (int k = 0; k < ACF_DONOR_TRUST_COLUMNS; k++) r.donor_trust[ACF_DONOR_TRUST_COLUMN + k] = 0.1 * k - 3;
    check_round_trip(&r, 134);
    assert_int_equal(acf_fit_record_to_json(&r, &text), ACF_OK);
    for (int k = 0; k < 4; k++) {
        json_t *list = json_array();
        for (int i = 0; i < (k == 0 ? 5 : 135); i++) json_array_append_new(list, json_real(1));
        json_object_set_new(text, "donor_trust", k < 2 ? list : k == 2 ? json_real(4) : json_array());
        if (k >= 2) json_decref(list);
        assert_int_equal(acf_fit_record_from_json((acf_json_source){"m", ACF_EMODEL}, text, &back), ACF_EMODEL);
        assert_string_equal(acf_error(), "m: 'donor_trust' must be a list of 6 to 134 numbers");
    }
    json_object_set_new(text, "donor_trust", json_pack("[i,i,i,i,i,s]", 1, 2, 3, 4, 5, "6"));
    assert_int_equal(acf_fit_record_from_json((acf_json_source){"m", ACF_EMODEL}, text, &back), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "m: 'donor_trust' is "));
    assert_false(back.known);
    json_decref(text);
}

/* A model gets the donors that its record describes, learned from all cells. */
static void records_and_donors_agree(void **state) {
    (void)state;
    acf_train_lab l;
    acf_donors *all;
    open_lab(&l, "valid=0.2", table_of(N, 2));
    if (acf_trainer_finish(l.tr)) fail_msg("%s", acf_error());
    const acf_fit_record r = acf_trainer_record(l.tr, ACF_END_STEPS);
    assert_true(acf_donor_trust_worth(r.donor_trust));
    check_round_trip(&r, ACF_DONOR_TRUST_COLUMN + D);
    acf_model m = {.config = l.o, .encoder = l.encoder, .net = l.net, .record = r};
    for (int j = 0; j < D; j++) m.record.donor_trust[ACF_DONOR_TRUST_COLUMN + j] = 0.5 * j - 1;
    m.record.donor_trust[ACF_DONOR_TRUST_SHIFT] = -2, m.record.donor_trust[ACF_DONOR_TRUST_OF_COLUMN] = 0.75,
    m.record.donor_trust[ACF_DONOR_TRUST_AGREE] = 0.4;
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_non_null(m.donors);
    assert_true(m.donors->slope == r.donor_trust[ACF_DONOR_TRUST_SLOPE] && m.donors->agree == 0.4 && m.donors->N == N &&
                m.donors->encoder == l.encoder);
    assert_int_equal(acf_donors_make(l.table, l.encoder, NULL, 1, &all), ACF_OK);
    assert_memory_equal(m.donors->near, all->near, D * D * sizeof *all->near);
    assert_memory_equal(m.donors->other, all->other, D * D * sizeof *all->other);
    for (int j = 0; j < D; j++)
        acf_assert_close(m.donors->shift[j], -2 + (0.5 * j - 1) + 0.75 * log(fmax(all->gain[j], 0) + 0.01), 1e-12,
                         "shift");
    acf_donors_free(all);
    acf_donors_free(m.donors);
    m.donors = NULL;
    acf_model unsure = {.record = r},
              unfitted = {.record = {.known = true}, .next = &unsure}; /* three members, one of which did not fit it */
    unsure.record.donor_trust[ACF_DONOR_TRUST_WON] = 0, unsure.record.donor_trust[ACF_DONOR_TRUST_SLOPE] += 1,
    m.next = &unfitted;
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    acf_assert_close(m.donors->slope, r.donor_trust[ACF_DONOR_TRUST_SLOPE] + 0.5, 1e-12, "slope");
    acf_donors_free(m.donors);
    m.donors = NULL, unsure.record.donor_trust[ACF_DONOR_TRUST_WON] = -r.donor_trust[ACF_DONOR_TRUST_WON];
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_null(m.donors);
    m.next = NULL, m.record.donor_trust[ACF_DONOR_TRUST_WON] = 0;
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_null(m.donors);
    m.record.donor_trust[ACF_DONOR_TRUST_WON] = 1, m.record.known = false;
    assert_int_equal(acf_donors_attach(&m, l.table), ACF_OK);
    assert_null(m.donors);
    acf_train_lab_close(&l);
}

static void check_memory(acf_train_lab *l) {
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status == ACF_EMEMORY; n++) {
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        status = acf_donor_trust_fit(l->tr);
        acf_alloc_fail_at(0);
        acf_tape_begin(l->tr->tape, false);
        if (status) assert_true(acf_alloc_live() <= live + 64); /* a tape keeps what it has grown to */
        if (status) assert_true(l->tr->donor_trust[ACF_DONOR_TRUST_CHANCE] == 0);
    }
    assert_int_equal(status, ACF_OK);
    acf_train_lab_close(l);
}

static void survives_without_memory(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, "valid=0.2", table_of(40, 2));
    check_memory(&l);
    open_rows(&l, table_of(40, 2));
    check_memory(&l);
}

ACF_TESTS(donor_trust, cmocka_unit_test(better_donors_get_weight),
          cmocka_unit_test(donors_that_are_no_better_are_not_used), cmocka_unit_test(a_small_gain_is_not_enough),
          cmocka_unit_test(a_gain_by_chance_is_not_enough), cmocka_unit_test(true_values_are_no_less_likely),
          cmocka_unit_test(a_column_may_be_left_to_the_network), cmocka_unit_test(classes_are_left_to_the_network),
          cmocka_unit_test(cells_without_donors_do_not_count), cmocka_unit_test(units_do_not_matter),
          cmocka_unit_test(the_numbers_minimise_the_objective), cmocka_unit_test(held_out_cells_decide),
          cmocka_unit_test(held_out_rows_decide_and_are_no_donors), cmocka_unit_test(every_member_is_fitted),
          cmocka_unit_test(the_gain_is_counted), cmocka_unit_test(members_are_pooled),
          cmocka_unit_test(worth_needs_gain_and_significance), cmocka_unit_test(queried_cells_are_those_of_the_choice),
          cmocka_unit_test(some_tables_get_no_donors), cmocka_unit_test(a_broken_network_is_not_compared),
          cmocka_unit_test(records_have_the_numbers), cmocka_unit_test(records_and_donors_agree),
          cmocka_unit_test(survives_without_memory))
