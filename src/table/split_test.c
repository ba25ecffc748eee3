/* Tests of split.h: parts are disjoint and complete, cells are held out at the requested rate, and training always
 * keeps what it needs. encode_test.c and batches_test.c test that training does not see held-out cells. */
#include "table/split.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { D = 10 };

/* N rows of 10 columns; a cell is missing with this probability. */
static acf_table *table_of(int64_t N, double missing) {
    static double x[4000 * D];
    assert_in_range(N, 0, 4000);
    for (int64_t i = 0; i < N * D; i++) {
        acf_rng_counter at = {1, (uint64_t)i, ACF_STREAM_TEST, 0, 0};
        x[i] = acf_rng_uniform(at) < missing ? NAN : (double)i;
    }
    acf_table *t = NULL;
    assert_int_equal(acf_table_make(x, NULL, N, D, NULL, &t), ACF_OK);
    return t;
}

static acf_holdout *hold(const acf_table *t, const acf_rows *rows, double fraction, uint64_t seed) {
    acf_holdout *h = NULL;
    assert_int_equal(acf_holdout_create(t, rows, fraction, seed, &h), ACF_OK);
    return h;
}

static void rows_are_cut_without_overlap(void **state) {
    (void)state;
    static const struct {
        int64_t N;
        double valid, test;
        int64_t train_n, valid_n, test_n;
    } cases[] = {{1000, 0.1, 0.2, 700, 100, 200}, {10, 0.0, 0.0, 10, 0, 0}, {5, 0.1, 0.1, 3, 1, 1},
                 {4, 0.1, 0.1, 4, 0, 0},          {2, 0.4, 0.5, 1, 1, 0},   {1, 0.4, 0.5, 1, 0, 0},
                 {0, 0.1, 0.1, 0, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        acf_row_split s;
        assert_int_equal(acf_row_split_make(cases[c].N, cases[c].valid, cases[c].test, 7, &s), ACF_OK);
        assert_int_equal(s.train.n, cases[c].train_n);
        assert_int_equal(s.valid.n, cases[c].valid_n);
        assert_int_equal(s.test.n, cases[c].test_n);
        int seen[1000] = {0};
        const acf_rows *part[3] = {&s.train, &s.valid, &s.test};
        for (int p = 0; p < 3; p++)
            for (int64_t k = 0; k < part[p]->n; k++) seen[acf_rows_at(part[p], k)]++;
        for (int64_t i = 0; i < cases[c].N; i++) assert_int_equal(seen[i], 1);
    }
}

static void a_seed_is_a_row_split(void **state) {
    (void)state;
    acf_row_split a, b, c;
    acf_row_split_make(1000, 0.5, 0.0, 7, &a);
    acf_row_split_make(1000, 0.5, 0.0, 7, &b);
    acf_row_split_make(1000, 0.5, 0.0, 8, &c);
    int both = 0, in_a[1000] = {0};
    for (int64_t k = 0; k < 500; k++) {
        assert_int_equal(acf_rows_at(&a.valid, k), acf_rows_at(&b.valid, k));
        in_a[acf_rows_at(&a.valid, k)] = 1;
    }
    for (int64_t k = 0; k < 500; k++) both += in_a[acf_rows_at(&c.valid, k)];
    assert_in_range(both, 200, 300); /* 250 by chance, standard deviation 8 */
}

static void cells_are_held_out_at_the_rate(void **state) {
    (void)state;
    acf_table *t = table_of(4000, 0.3);
    acf_holdout *h = hold(t, NULL, 0.2, 5), *other = hold(t, NULL, 0.2, 6);
    int64_t held[D] = {0}, seen[D] = {0}, total = 0, both = 0;
    for (int64_t i = 0; i < t->N; i++) {
        uint8_t a[D], b[D];
        total += acf_holdout_row(h, t, i, a);
        acf_holdout_row(other, t, i, b);
        for (int j = 0; j < D; j++) {
            assert_true(!a[j] || acf_table_present(t->x[i * D + j])); /* only observed cells */
            seen[j] += acf_table_present(t->x[i * D + j]);
            held[j] += a[j];
            both += a[j] & b[j];
        }
    }
    int64_t observed = 0;
    for (int j = 0; j < D; j++) {
        double n = (double)seen[j];
        assert_true(fabs((double)held[j] - 0.2 * n) < 3.5 * sqrt(n * 0.2 * 0.8));
        observed += seen[j];
    }
    double n = (double)observed;
    assert_true(fabs((double)both - 0.04 * n) < 3.5 * sqrt(n * 0.04 * 0.96)); /* seeds are independent */
    assert_int_equal(h->held, total);
    assert_int_equal(h->visible, observed - total);
    acf_holdout_free(h), acf_holdout_free(other), acf_table_free(t);
}

/* With almost everything held out, training still sees one cell of every row of two and of every column. */
static void one_cell_always_stays(void **state) {
    (void)state;
    for (int64_t N = 1; N <= 300; N += 23) {
        acf_table *t = table_of(N, 0.5);
        acf_holdout *h = hold(t, NULL, 0.999, 5);
        int64_t seen[D] = {0}, visible[D] = {0};
        for (int64_t i = 0; i < N; i++) {
            uint8_t held[D];
            int64_t n = acf_holdout_row(h, t, i, held), observed = 0;
            for (int j = 0; j < D; j++) {
                bool present = acf_table_present(t->x[i * D + j]);
                observed += present;
                seen[j] += present;
                visible[j] += present && !held[j];
            }
            if (observed >= 2) assert_true(n < observed);
        }
        for (int j = 0; j < D; j++) assert_true(seen[j] == 0 || visible[j] > 0);
        if (N == 1) assert_int_equal(h->held, 0);
        if (N > 1) assert_true(h->held > 0);
        acf_holdout_free(h), acf_table_free(t);
    }
}

static void tiny_tables_keep_the_rules(void **state) {
    (void)state;
    /* 5 x 10: about a tenth of 50 cells, over many seeds. */
    acf_table *t = table_of(5, 0.0);
    int64_t held = 0, none = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        acf_holdout *h = hold(t, NULL, 0.1, seed);
        held += h->held;
        none += h->held == 0;
        assert_int_equal(h->held + h->visible, 50);
        acf_holdout_free(h);
    }
    assert_in_range(held, 4800, 5200);
    assert_in_range(none, 0, 20); /* 0.9^50 = 0.5 % */
    acf_table_free(t);

    /* One column: rows of a single cell are held out whole, except one. */
    double x[50];
    for (int i = 0; i < 50; i++) x[i] = i;
    assert_int_equal(acf_table_make(x, NULL, 50, 1, NULL, &t), ACF_OK);
    acf_holdout *h = hold(t, NULL, 0.3, 1), *all = hold(t, NULL, 0.9999999, 1);
    assert_in_range(h->held, 5, 27);
    assert_int_equal(all->held, 49);
    acf_holdout_free(h), acf_holdout_free(all), acf_table_free(t);

    /* Nothing observed, or no rows: nothing is held out. */
    t = table_of(3, 1.1), h = hold(t, NULL, 0.5, 1);
    assert_int_equal(h->held + h->visible, 0);
    acf_holdout_free(h), acf_table_free(t);
    t = table_of(0, 0.0), h = hold(t, NULL, 0.5, 1);
    assert_int_equal(h->held + h->visible, 0);
    acf_holdout_free(h), acf_table_free(t);
}

/* Values and the position of a row in its table do not matter, only seed, row number and the pattern of missing
 * cells. */
static void rows_are_keyed_by_their_number(void **state) {
    (void)state;
    acf_table *t = table_of(200, 0.2), *shard = NULL;
    assert_int_equal(acf_table_make(t->x + 50 * D, NULL, 150, D, NULL, &shard), ACF_OK);
    shard->first_id = 50;
    acf_holdout *h = hold(t, NULL, 0.2, 5), *s = hold(shard, NULL, 0.2, 5);
    for (int64_t i = 50; i < 200; i++) {
        uint8_t a[D], b[D];
        acf_holdout_row(h, t, i, a);
        acf_holdout_row(s, shard, i - 50, b);
        for (int j = 0; j < D; j++) assert_true(a[j] == b[j] || h->keep[j] == i || s->keep[j] == i - 50);
    }
    uint8_t none[D];
    assert_int_equal(acf_holdout_row(NULL, t, 0, none), 0);
    for (int j = 0; j < D; j++) assert_int_equal(none[j], 0);
    acf_holdout_free(h), acf_holdout_free(s), acf_table_free(t), acf_table_free(shard);
}

/* More columns than one call draws: each column has its own draw, and a narrower table gets the same ones. */
static void wide_tables_work_too(void **state) {
    (void)state;
    enum { WIDE = 131, NARROW = 66, ROWS = 1000 };
    static double x[ROWS * WIDE], y[ROWS * NARROW];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDE; j++) x[i * WIDE + j] = 1.0;
    for (int i = 0; i < ROWS * NARROW; i++) y[i] = 1.0;
    acf_table *t = NULL, *narrow = NULL;
    assert_int_equal(acf_table_make(x, NULL, ROWS, WIDE, NULL, &t), ACF_OK);
    assert_int_equal(acf_table_make(y, NULL, ROWS, NARROW, NULL, &narrow), ACF_OK);
    acf_holdout *h = hold(t, NULL, 0.5, 3), *n = hold(narrow, NULL, 0.5, 3);
    uint8_t a[WIDE], b[NARROW];
    static const int lag[3] = {1, 4, 64};
    double agree[3] = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        acf_holdout_row(h, t, i, a);
        acf_holdout_row(n, narrow, i, b);
        assert_memory_equal(a, b, NARROW);
        for (int j = 0; j + 64 < WIDE; j++)
            for (int k = 0; k < 3; k++) agree[k] += (a[j] == a[j + lag[k]]) - 0.5;
    }
    for (int k = 0; k < 3; k++) assert_true(fabs(2.0 * agree[k]) / sqrt(ROWS * (WIDE - 64)) < 3.5);
    acf_holdout_free(h), acf_holdout_free(n), acf_table_free(t), acf_table_free(narrow);
}

static void bad_fractions_are_refused(void **state) {
    (void)state;
    acf_table *t = table_of(3, 0.0);
    acf_holdout *h = NULL;
    acf_row_split s;
    assert_int_equal(acf_holdout_create(t, NULL, 1.0, 0, &h), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a fraction of 1 cells to hold out; expected 0 or more, and below 1");
    assert_int_equal(acf_holdout_create(t, NULL, (double)NAN, 0, &h), ACF_EUSAGE);
    assert_int_equal(acf_row_split_make(10, 0.5, 0.5, 0, &s), ACF_EUSAGE);
    assert_int_equal(acf_row_split_make(10, -0.1, 0.5, 0, &s), ACF_EUSAGE);
    int64_t live = acf_alloc_live();
    for (int64_t n = 1; n <= 3; n++) {
        acf_alloc_fail_at(n);
        assert_int_equal(acf_holdout_create(t, NULL, 0.5, 0, &h), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_null(h);
    acf_table_free(t);
}

ACF_TESTS(split, cmocka_unit_test(rows_are_cut_without_overlap), cmocka_unit_test(a_seed_is_a_row_split),
          cmocka_unit_test(cells_are_held_out_at_the_rate), cmocka_unit_test(one_cell_always_stays),
          cmocka_unit_test(tiny_tables_keep_the_rules), cmocka_unit_test(rows_are_keyed_by_their_number),
          cmocka_unit_test(wide_tables_work_too), cmocka_unit_test(bad_fractions_are_refused))
