/* Tests of record linkage: an edited copy of a row is that row; a new row of the same kind is not, nor is a row that
 * repeats another in a table of repeated rows. */
#include "donors/donor_link.h"

#include "base/rng.h"
#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 400, COLS = 6, AGE = 0, HEIGHT = 1, WEIGHT = 2, INDEX = 3, PLACE = 4, HEAD = 5, OTHERS = 100000 };
static const acf_column columns[COLS] = {{"age", 0},   {"height", 0}, {"weight", 0},
                                         {"index", 0}, {"place", 5},  {"head", 0}};

typedef struct lab {
    acf_table *t;
    acf_encoder *e;
    acf_donors *m;
    acf_donor_search *r;
} lab;

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 8, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static double normal(int64_t row, uint32_t column) {
    return (uniform(row, column) + uniform(row, column + 50) + uniform(row, column + 100) - 1.5) * 2;
}

static double rounded(double x, double step) { return step * floor(x / step + 0.5); }

/* Growing children: columns that nearly follow from each other, as in real tables. */
static void child(int64_t i, double *x) {
    const double age = 20 * uniform(i, 0), height = 50 + 125 * pow(age / 20, 0.8) + 3 * normal(i, 1),
                 weight = 3 + 15 * pow(height / 100, 2.5) * exp(0.12 * normal(i, 2));
    x[AGE] = rounded(age, 0.001), x[HEIGHT] = rounded(height, 0.1), x[WEIGHT] = rounded(weight, 0.05),
    x[INDEX] = rounded(1e4 * weight / (height * height), 0.01);
    x[PLACE] = floor(5 * uniform(i, 3)), x[HEAD] = rounded(34 + 20 * sqrt(age / 20) + normal(i, 4), 0.1);
}

/* Every `repeated`th row repeats the one before it; 0: none does. */
static lab open_lab(int repeated) {
    double *x = malloc(ROWS * COLS * sizeof *x);
    lab l = {0};
    for (int i = 0; i < ROWS; i++) child(repeated && i % repeated == 1 ? i - 1 : i, x + i * COLS);
    for (int c = 0; c < ROWS * COLS; c++)
        if (!repeated && uniform(c, 9) < 0.05) x[c] = (double)NAN;
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &l.t), ACF_OK);
    assert_int_equal(acf_encoder_fit(l.t, NULL, NULL, &l.e), ACF_OK);
    assert_int_equal(acf_encoder_shape(l.e, l.t, NULL, NULL, &(acf_encoding){.dequantise = true}), ACF_OK);
    assert_true(acf_resolution_step(l.e->resolution[HEIGHT]) == 0.1);
    assert_int_equal(acf_donors_make(l.t, l.e, NULL, 1, &l.m), ACF_OK);
    assert_int_equal(acf_donor_search_create(l.m, &l.r), ACF_OK);
    free(x);
    return l;
}

static void close_lab(lab *l) {
    acf_donor_search_free(l->r), acf_donors_free(l->m);
    acf_encoder_free(l->e), acf_table_free(l->t);
}

/* Is stored row i a donor of column j for this row? */
static bool gives(lab *l, int64_t i, int64_t j, const double *x, uint64_t id) {
    uint8_t known[COLS];
    bool is = false;
    for (int k = 0; k < COLS; k++) known[k] = acf_table_present(x[k]);
    if (!acf_donor_search_run(l->r, j, x, known, id)) return false;
    for (int64_t k = 0; k < l->r->n; k++) is |= l->r->donor[k] == i && l->r->weight[k] > 0.05;
    return is;
}

/* ---- edited copies ----------------------------------------------------------------------------------------------- */

typedef enum edit { RENUMBERED, ONE_MOVED, ALL_MOVED, ONE_WRONG, EDITS } edit;

static void edit_row(edit how, int64_t i, double *x) {
    if (how == ONE_MOVED) x[WEIGHT] += 0.011;
    if (how == ONE_WRONG) x[i % 2 ? HEAD : WEIGHT] *= 0.5;
    for (int k = 0; how == ALL_MOVED && k < COLS; k++)
        if (k != PLACE) x[k] += 0.004 * (uniform(i, (uint32_t)(20 + k)) - 0.5);
}

/* How often rows with an edit, or with an id of their own after it, are their own donors: the share of all rows with a
 * donor by this column. */
static double own_donors(lab *l, edit how, bool own_id, int64_t j) {
    int own = 0, target = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        double x[COLS];
        memcpy(x, acf_table_row(l->t, i), sizeof x);
        if (!acf_table_present(x[j])) continue;
        edit_row(how, i, x);
        own += gives(l, i, j, x, own_id ? acf_table_row_id(l->t, i) : OTHERS), target++;
    }
    return (double)own / target;
}

static void an_edited_copy_is_not_its_own_donor(void **state) {
    (void)state;
    lab l = open_lab(0);
    for (int how = RENUMBERED; how < EDITS; how++)
        for (int own_id = 0; own_id < 2; own_id++)
            for (int64_t j = 0; j < COLS; j++) {
                const double share = own_donors(&l, (edit)how, own_id, j);
                if (share > (how == ONE_WRONG ? 0.15 : 0.03))
                    fail_msg("edit %d, id %d, column %d: %g are their own donors", how, own_id, (int)j, share);
            }
    close_lab(&l);
}

/* The donors of an edited copy are those of the row identified by its id. */
static void other_donors_are_kept(void **state) {
    (void)state;
    lab l = open_lab(0);
    for (int64_t i = 0; i < ROWS; i += 7) {
        const double *x = acf_table_row(l.t, i);
        for (int64_t j = 0; j < COLS; j++) {
            if (!acf_table_present(x[j]) || gives(&l, i, j, x, OTHERS)) continue;
            const double peak = l.r->peak, alike = l.r->alike, density = acf_donor_search_density(l.r, j, x[j]);
            const int64_t n = l.r->n;
            gives(&l, i, j, x, acf_table_row_id(l.t, i));
            assert_int_equal(n, l.r->n);
            assert_true(fabs(peak - l.r->peak) < 1e-4 && alike == l.r->alike);
            assert_true(density == acf_donor_search_density(l.r, j, x[j]));
        }
    }
    close_lab(&l);
}

/* ---- other rows -------------------------------------------------------------------------------------------------- */

/* Index of this row among all stored rows; -1: none. */
static int64_t found(const lab *l, const double *x, const uint8_t *known, uint64_t id) {
    static acf_real cost[ROWS];
    acf_column_span span[COLS];
    for (int i = 0; i < ROWS; i++) cost[i] = i < 256 ? 0 : 100;
    return acf_linkage_find(l->m, cost, 0, HEAD, x, known, id, span);
}

static void a_new_row_is_none_of_the_stored(void **state) {
    (void)state;
    static const uint8_t all[COLS] = {1, 1, 1, 1, 1, 1};
    lab l = open_lab(0);
    int taken = 0, taken_by_id = 0;
    for (int64_t i = 0; i < 1000; i++) {
        double x[COLS];
        child(ROWS + i, x);
        taken += found(&l, x, all, OTHERS) >= 0, taken_by_id += found(&l, x, all, (uint64_t)(i % 256)) >= 0;
    }
    assert_in_range(taken, 0, 20);
    assert_in_range(taken_by_id, 0, 30);
    close_lab(&l);
}

static void a_repeated_row_is_a_donor_where_rows_repeat(void **state) {
    (void)state;
    for (int repeated = 0; repeated <= 20; repeated += 20) {
        lab l = open_lab(repeated);
        int donors = 0;
        for (int64_t i = 0; i < ROWS; i += 4) donors += gives(&l, i, HEAD, acf_table_row(l.t, i), OTHERS);
        if (repeated)
            assert_in_range(donors, ROWS / 4 - 5, ROWS / 4);
        else
            assert_in_range(donors, 0, 5);
        close_lab(&l);
    }
}

/* Two cells are not enough to identify a row; with its id, they are. */
static void few_cells_identify_a_row_with_its_id(void **state) {
    (void)state;
    static const uint8_t age[COLS] = {1}, none[COLS] = {0}, two[COLS] = {1, 0, 0, 0, 1, 1};
    lab l = open_lab(0);
    int by_id = 0;
    for (int64_t i = 0; i < 200; i++) {
        const double *x = acf_table_row(l.t, i);
        if (!acf_table_present(x[AGE]) || !acf_table_present(x[PLACE])) continue;
        assert_int_equal(found(&l, x, age, OTHERS), -1);
        assert_int_equal(found(&l, x, none, acf_table_row_id(l.t, i)), -1);
        by_id += found(&l, x, two, acf_table_row_id(l.t, i)) == i;
    }
    assert_in_range(by_id, 150, 200);
    close_lab(&l);
}

/* Rows that cost much more than the nearest are not compared, nor is any row where too many cost as little. */
static void only_near_rows_are_compared(void **state) {
    (void)state;
    static const uint8_t all[COLS] = {1, 1, 1, 1, 1, 1};
    lab l = open_lab(20);
    lab k = open_lab(0);
    acf_real cost[ROWS];
    acf_column_span span[COLS];
    double x[COLS];
    memcpy(x, acf_table_row(k.t, 5), sizeof x);
    for (int i = 0; i < ROWS; i++) cost[i] = i < 256 ? 1 : 9;
    assert_int_equal(acf_linkage_find(k.m, cost, 1, HEAD, x, all, OTHERS, span), 5);
    cost[5] = 5;
    assert_int_equal(acf_linkage_find(k.m, cost, 1, HEAD, x, all, OTHERS, span), -1);
    for (int i = 0; i < ROWS; i++) cost[i] = 1;
    assert_int_equal(acf_linkage_find(k.m, cost, 1, HEAD, x, all, OTHERS, span), -1);
    close_lab(&l), close_lab(&k);
}

ACF_TESTS(donor_link, cmocka_unit_test(an_edited_copy_is_not_its_own_donor), cmocka_unit_test(other_donors_are_kept),
          cmocka_unit_test(a_new_row_is_none_of_the_stored),
          cmocka_unit_test(a_repeated_row_is_a_donor_where_rows_repeat),
          cmocka_unit_test(few_cells_identify_a_row_with_its_id), cmocka_unit_test(only_near_rows_are_compared))
