/* Tests of batches.h: every row once an epoch, resuming, what a batch holds, and that training never sees a held-out
 * cell. */
#include "table/batches.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { D = 5 };
static const acf_column columns[D] = {{"a", 0}, {"k", 4}, {"b", 0}, {"l", 2}, {"c", 0}};

static double cell_value(int64_t i, int j) {
    acf_rng_counter at = {2, (uint64_t)i, ACF_STREAM_TEST, (uint32_t)j, 0};
    if (columns[j].classes) return (double)acf_rng_below(at, columns[j].classes);
    return 10.0 + 3.0 * acf_rng_normal(at);
}

static bool cell_missing(int64_t i, int j) {
    acf_rng_counter at = {2, (uint64_t)i, ACF_STREAM_TEST, (uint32_t)j, 1};
    return acf_rng_uniform(at) < 0.25;
}

static acf_table *table_of(const double *x, int64_t N) {
    acf_table *t = NULL;
    if (acf_table_make(x, NULL, N, D, columns, &t) != ACF_OK) fail_msg("%s", acf_error());
    return t;
}

static acf_table *random_table(int64_t N) {
    static double x[2000 * D];
    assert_in_range(N, 0, 2000);
    for (int64_t i = 0; i < N; i++)
        for (int j = 0; j < D; j++) x[i * D + j] = cell_missing(i, j) ? NAN : cell_value(i, j);
    return table_of(x, N);
}

static acf_device *device(int threads) {
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

static acf_batch *batch_of(int64_t capacity) {
    acf_batch *b = NULL;
    assert_int_equal(acf_batch_create(capacity, D, &b), ACF_OK);
    return b;
}

static acf_batch_sampler walk_over(acf_rows rows, int64_t size, bool shuffle) {
    acf_batch_sampler w;
    assert_int_equal(acf_batch_sampler_start(&rows, size, 11, shuffle, &w), ACF_OK);
    return w;
}

static void an_epoch_has_every_row_once(void **state) {
    (void)state;
    static const int64_t cases[][2] = {{0, 4}, {1, 4}, {4, 4}, {10, 3}, {10, 20}, {1000, 64}, {1000, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t n = cases[c][0], size = cases[c][1], row[64];
        acf_batch_sampler w = walk_over(acf_rows_all(n), size, true);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            int seen[1000] = {0};
            int64_t got, batches = 0, total = 0;
            assert_int_equal(w.epoch, epoch);
            while ((got = acf_batch_sampler_next(&w, row))) {
                assert_int_equal(got, acf_min(size, n - total)); /* full batches, then the rest */
                for (int64_t i = 0; i < got; i++) seen[row[i]]++;
                total += got;
                batches++;
            }
            assert_int_equal(batches, acf_batch_sampler_count(&w));
            for (int64_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
        }
    }
}

static void epochs_differ_and_seeds_decide(void **state) {
    (void)state;
    int64_t a[100], b[100], c[100];
    acf_batch_sampler w = walk_over(acf_rows_all(100), 100, true), again = w;
    acf_batch_sampler plain = walk_over(acf_rows_all(100), 100, false);
    acf_batch_sampler_next(&w, a), acf_batch_sampler_next(&again, c);
    assert_memory_equal(a, c, sizeof a);
    acf_batch_sampler_next(&w, b); /* moves past the end of the epoch */
    acf_batch_sampler_next(&w, b);
    assert_memory_not_equal(a, b, sizeof a);
    acf_batch_sampler_next(&plain, c);
    for (int64_t i = 0; i < 100; i++) assert_int_equal(c[i], i);
    acf_row_split s;
    acf_row_split_make(100, 0.3, 0.0, 1, &s);
    acf_batch_sampler part = walk_over(s.valid, 100, true);
    assert_int_equal(acf_batch_sampler_next(&part, a), 30);
    for (int64_t k = 0; k < 30; k++) {
        int found = 0;
        for (int64_t i = 0; i < 30; i++) found += a[i] == acf_rows_at(&s.valid, k);
        assert_int_equal(found, 1);
    }
}

static void a_sampler_resumes_exactly(void **state) {
    (void)state;
    int64_t row[7], again[7];
    acf_batch_sampler w = walk_over(acf_rows_all(50), 7, true);
    for (int step = 0; step < 40; step++) {
        acf_batch_sampler other = walk_over(acf_rows_all(50), 7, true);
        assert_int_equal(acf_batch_sampler_seek(&other, w.epoch, w.at), ACF_OK);
        int64_t n = acf_batch_sampler_next(&w, row);
        assert_int_equal(acf_batch_sampler_next(&other, again), n);
        assert_memory_equal(row, again, (size_t)n * sizeof *row);
        assert_true(w.epoch == other.epoch && w.at == other.at);
    }
    assert_int_equal(acf_batch_sampler_seek(&w, 0, 51), ACF_EUSAGE);
    assert_string_equal(acf_error(), "position 51 in an epoch of 50 rows: this belongs to another table");
    assert_int_equal(acf_batch_sampler_seek(&w, 0, -1), ACF_EUSAGE);
    acf_rows rows = acf_rows_all(5);
    assert_int_equal(acf_batch_sampler_start(&rows, 0, 1, true, &w), ACF_EUSAGE);
}

/* Compares every array of a batch with its definition. */
static void assert_batch(const acf_batch *batch, const acf_table *t, const acf_encoder *e, const acf_holdout *hold,
                         acf_batch_role role, const int64_t *row) {
    for (int64_t i = 0; i < batch->N; i++) {
        uint8_t held[D];
        acf_holdout_row(hold, t, row[i], held);
        assert_int_equal(batch->id[i], t->first_id + (uint64_t)row[i]);
        for (int j = 0; j < D; j++) {
            double v = acf_table_row(t, row[i])[j];
            bool m = !isnan(v) && (role == ACF_BATCH_VALID || !held[j]);
            bool b = role == ACF_BATCH_VALID && m && !held[j];
            int64_t k = i * D + j;
            assert_int_equal(batch->m[k], m);
            assert_int_equal(batch->b[k], b);
            assert_true(batch->x[k] == (m ? acf_encode(e, j, v) : ACF_R(0.0)));
            assert_int_equal(batch->code[k], m && columns[j].classes ? (int)v : -1);
        }
    }
}

static void batches_match_their_definition(void **state) {
    (void)state;
    acf_table *t = random_table(300);
    t->first_id = 1000000;
    acf_device *dev = device(1);
    acf_holdout *hold = NULL;
    acf_encoder *e = NULL;
    assert_int_equal(acf_holdout_create(t, NULL, 0.3, 9, &hold), ACF_OK);
    assert_int_equal(acf_encoder_fit(t, NULL, hold, &e), ACF_OK);
    acf_batch *batch = batch_of(64);
    acf_batch_sampler w = walk_over(acf_rows_all(300), 64, true);
    int64_t row[64], n, modelled = 0, live = acf_alloc_count();
    for (int role = 0; role < 2; role++)
        while ((n = acf_batch_sampler_next(&w, row))) {
            acf_batch_fill(dev, batch, t, e, hold, (acf_batch_role)role, row, n);
            assert_int_equal(batch->N, n);
            assert_batch(batch, t, e, hold, (acf_batch_role)role, row);
            for (int64_t k = 0; role && k < n * D; k++) modelled += batch->m[k] & !batch->b[k];
            acf_batch_fill(dev, batch, t, e, NULL, (acf_batch_role)role, row, n);
            assert_batch(batch, t, e, NULL, (acf_batch_role)role, row);
        }
    assert_int_equal(modelled, hold->held); /* validation models exactly the held-out cells */
    assert_int_equal(acf_alloc_count(), live);
    acf_batch_free(batch), acf_encoder_free(e), acf_holdout_free(hold), acf_table_free(t), acf_device_close(dev);
}

/* Two tables that differ in every held-out cell give equal encoders and training batches, bit for bit. */
static void training_never_sees_a_held_out_cell(void **state) {
    (void)state;
    enum { N = 500 };
    acf_table *t = random_table(N);
    static double x[N * D];
    acf_holdout *hold = NULL, *hold2 = NULL;
    assert_int_equal(acf_holdout_create(t, NULL, 0.3, 9, &hold), ACF_OK);
    int64_t changed = 0;
    for (int64_t i = 0; i < N; i++) {
        uint8_t held[D];
        acf_holdout_row(hold, t, i, held);
        for (int j = 0; j < D; j++) {
            double v = t->x[i * D + j];
            x[i * D + j] = !held[j] ? v : columns[j].classes ? columns[j].classes - 1 - v : 1e30;
            changed += held[j] && x[i * D + j] != v;
        }
    }
    acf_table *other = table_of(x, N);
    assert_int_equal(acf_holdout_create(other, NULL, 0.3, 9, &hold2), ACF_OK);
    assert_int_equal(changed, hold->held);
    assert_memory_equal(hold->keep, hold2->keep, D * sizeof *hold->keep);

    acf_encoder *e = NULL, *e2 = NULL;
    assert_int_equal(acf_encoder_fit(t, NULL, hold, &e), ACF_OK);
    assert_int_equal(acf_encoder_fit(other, NULL, hold2, &e2), ACF_OK);
    acf_batch *a = batch_of(N), *b = batch_of(N);
    acf_device *dev = device(2);
    acf_batch_sampler w = walk_over(acf_rows_all(N), N, true);
    int64_t row[N], n = acf_batch_sampler_next(&w, row);
    acf_batch_fill(dev, a, t, e, hold, ACF_BATCH_TRAIN, row, n);
    acf_batch_fill(dev, b, other, e2, hold2, ACF_BATCH_TRAIN, row, n);
    assert_memory_equal(a->x, b->x, (size_t)n * D * sizeof *a->x);
    assert_memory_equal(a->code, b->code, (size_t)n * D * sizeof *a->code);
    assert_memory_equal(a->m, b->m, (size_t)n * D);
    acf_batch_fill(dev, b, other, e2, hold2, ACF_BATCH_VALID, row, n);
    assert_memory_not_equal(a->x, b->x, (size_t)n * D * sizeof *a->x); /* validation batches do */
    acf_batch_free(a), acf_batch_free(b), acf_encoder_free(e), acf_encoder_free(e2);
    acf_holdout_free(hold), acf_holdout_free(hold2), acf_table_free(t), acf_table_free(other), acf_device_close(dev);
}

/* Modelled cells of columns with a step, and no others, are encoded with noise keyed by row, column and draw, for
 * any batch. */
static void modelled_cells_are_dequantised(void **state) {
    (void)state;
    enum { N = 300 };
    acf_table *t = random_table(N);
    double *x = (double *)t->x;
    for (int64_t k = 0; k < N * D; k++)
        if (k % D == 0 && acf_table_present(x[k])) x[k] = nearbyint(4 * x[k]); /* whole numbers */
    acf_encoder *e = NULL;
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){true, true}), ACF_OK);
    assert_true(e->resolution[0].every == 1);
    acf_device *one = device(1), *two = device(2);
    acf_batch *a = batch_of(N), *b = batch_of(N);
    int64_t row[N], noisy = 0;
    for (int64_t i = 0; i < N; i++) row[i] = N - 1 - i;
    acf_batch_fill(one, a, t, e, NULL, ACF_BATCH_TRAIN, row, N);
    for (int64_t k = 0; k < N * D; k++) a->b[k] = a->m[k] && k % 3 == 0;
    acf_batch_dequantise(two, a, t, e, row, 5, 8);
    for (int64_t k = 0; k < N * D; k++) {
        int64_t i = row[k / D], j = k % D;
        double v = acf_table_row(t, i)[j];
        bool noise = j == 0 && a->m[k] && !a->b[k];
        if (noise) v = acf_dequantise(e, j, v, 5, (uint64_t)i, 8), noisy++;
        assert_true(a->x[k] == (a->m[k] ? acf_encode(e, j, v) : ACF_R(0.0)));
    }
    assert_true(noisy > 100);
    for (int64_t i = 0; i < N; i += 7) { /* one row by itself */
        acf_batch_fill(one, b, t, e, NULL, ACF_BATCH_TRAIN, &row[i], 1);
        for (int64_t j = 0; j < D; j++) b->b[j] = a->b[i * D + j];
        acf_batch_dequantise(one, b, t, e, &row[i], 5, 8);
        assert_memory_equal(b->x, a->x + i * D, D * sizeof *b->x);
    }
    acf_batch_free(a), acf_batch_free(b), acf_encoder_free(e), acf_table_free(t), acf_device_close(one),
        acf_device_close(two);
}

/* Large enough for several threads. */
static void threads_change_nothing(void **state) {
    (void)state;
    enum { N = 2000, TIMES = 4 };
    acf_table *t = random_table(N);
    acf_holdout *hold = NULL;
    acf_encoder *e = NULL;
    assert_int_equal(acf_holdout_create(t, NULL, 0.3, 9, &hold), ACF_OK);
    assert_int_equal(acf_encoder_fit(t, NULL, hold, &e), ACF_OK);
    acf_batch *a = batch_of(N * TIMES), *b = batch_of(N * TIMES);
    static int64_t row[N * TIMES];
    for (int64_t i = 0; i < N * TIMES; i++) row[i] = i % N;
    acf_device *one = device(1), *two = device(2);
    acf_batch_fill(one, a, t, e, hold, ACF_BATCH_VALID, row, N * TIMES);
    acf_batch_fill(two, b, t, e, hold, ACF_BATCH_VALID, row, N * TIMES);
    assert_memory_equal(a->x, b->x, (size_t)N * TIMES * D * sizeof *a->x);
    assert_memory_equal(a->code, b->code, (size_t)N * TIMES * D * sizeof *a->code);
    assert_memory_equal(a->m, b->m, (size_t)N * TIMES * D);
    assert_memory_equal(a->b, b->b, (size_t)N * TIMES * D);
    assert_memory_equal(a->id, b->id, (size_t)N * TIMES * sizeof *a->id);
    acf_batch_free(a), acf_batch_free(b), acf_encoder_free(e), acf_holdout_free(hold), acf_table_free(t);
    acf_device_close(one), acf_device_close(two);
}

static void memory_may_run_out(void **state) {
    (void)state;
    acf_batch *b = NULL;
    int64_t live = acf_alloc_live();
    for (int64_t n = 1; n <= 6; n++) {
        acf_alloc_fail_at(n);
        assert_int_equal(acf_batch_create(4, D, &b), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_null(b);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_int_equal(acf_batch_create(0, D, &b), ACF_ESHAPE);
    assert_int_equal(acf_batch_create(4, 0, &b), ACF_ESHAPE);
    acf_batch_free(NULL);
}

/* A batch holds what acf_encode returns, also for columns with normal scores. */
static void normal_scores_are_encoded(void **state) {
    (void)state;
    enum { ROWS = 300 };
    static double x[ROWS * D];
    for (int64_t i = 0; i < ROWS; i++)
        for (int j = 0; j < D; j++)
            x[i * D + j] = columns[j].classes ? 0 : j == 2 ? exp(cell_value(i, j)) : cell_value(i, j);
    acf_table *t = table_of(x, ROWS);
    acf_encoder *e;
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){true, true}), ACF_OK);
    assert_true(e->normal_scores[2].n > 0);
    acf_device *dev = device(1);
    acf_batch *b = batch_of(ROWS);
    int64_t row[ROWS];
    for (int64_t i = 0; i < ROWS; i++) row[i] = i;
    acf_batch_fill(dev, b, t, e, NULL, ACF_BATCH_TRAIN, row, ROWS);
    for (int64_t i = 0; i < ROWS; i++) assert_true(b->x[i * D + 2] == acf_encode(e, 2, x[i * D + 2]));
    acf_batch_free(b), acf_device_close(dev), acf_encoder_free(e), acf_table_free(t);
}

ACF_TESTS(batches, cmocka_unit_test(normal_scores_are_encoded), cmocka_unit_test(an_epoch_has_every_row_once),
          cmocka_unit_test(epochs_differ_and_seeds_decide), cmocka_unit_test(a_sampler_resumes_exactly),
          cmocka_unit_test(batches_match_their_definition), cmocka_unit_test(training_never_sees_a_held_out_cell),
          cmocka_unit_test(threads_change_nothing), cmocka_unit_test(modelled_cells_are_dequantised),
          cmocka_unit_test(memory_may_run_out))
