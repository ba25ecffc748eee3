/* Batches drawn from a device table against those that the host makes: the same rows, masks, codes and values. Bit for
 * bit on the CPU; with --device cuda up to rounding. */
#include "table/table_on_device.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 203, COLS = 7, CELLS = ROWS * COLS, SIZE = 51, TICKETS = 9, SEED = 5 };

/* Input of both sides. Column 1 is a category, 2 whole numbers, 3 heavy-tailed (it has normal scores), 5 a category
 * with a rare class. */
typedef struct bench {
    acf_device *dev;
    acf_table *table;
    acf_holdout *hold;
    acf_encoder *encoder;
    acf_rows rows;
    acf_table_on_device *on_device;
    acf_batch *host, *there, *back; /* back: a copy of `there` on the host */
    acf_tape *t;
} bench;

static void must(acf_status status) {
    if (status) fail_msg("%s", acf_error());
}

static acf_table *make_table(void) {
    static const acf_column columns[COLS] = {{"a", 0}, {"b", 3}, {"c", 0}, {"d", 0}, {"e", 0}, {"f", 5}, {"g", 0}};
    static double x[CELLS];
    acf_table *t;
    for (int i = 0; i < ROWS; i++) {
        double *row = x + i * COLS, z = acf_lab_random(1, i, -2, 2);
        row[0] = z, row[1] = floor(acf_lab_random(2, i, 0, 2.999)), row[2] = floor(acf_lab_random(3, i, 0, 40));
        row[3] = i % 40 ? exp(z) : 900 + i, row[4] = 1e6 + z * z,
        row[5] = i == 17 ? 4 : floor(acf_lab_random(4, i, 0, 3.999)), row[6] = -z;
        for (int j = 0; j < COLS; j++)
            if (acf_lab_random(5, i * COLS + j, 0, 1) < 0.3) row[j] = (double)NAN;
    }
    must(acf_table_make(x, NULL, ROWS, COLS, columns, &t));
    return t;
}

static void open_bench(bench *b, acf_device *dev) {
    acf_row_split split;
    *b = (bench){.dev = dev, .table = make_table()};
    must(acf_row_split_make(ROWS, 0.1, 0, 3, &split)); /* rows in a random order */
    b->rows = split.train;
    must(acf_holdout_create(b->table, &b->rows, 0.2, SEED, &b->hold));
    must(acf_encoder_fit(b->table, &b->rows, b->hold, &b->encoder));
    must(acf_encoder_shape(b->encoder, b->table, &b->rows, b->hold, &(acf_encoding){true, true}));
    assert_true(b->encoder->normal_scores[3].n > 0 && b->encoder->resolution[2].every == 1);
    must(acf_table_on_device_create(dev, b->table, &b->rows, b->encoder, b->hold, SEED, SIZE, &b->on_device));
    must(acf_batch_create(SIZE, COLS, &b->host));
    must(acf_batch_create(SIZE, COLS, &b->back));
    must(acf_batch_place(dev, SIZE, COLS, &b->there));
    must(acf_tape_create(dev, NULL, &b->t));
}

static void close_bench(bench *b) {
    acf_tape_free(b->t);
    acf_batch_free(b->host), acf_batch_free(b->back), acf_batch_free(b->there);
    acf_table_on_device_free(b->on_device);
    acf_encoder_free(b->encoder);
    acf_holdout_free(b->hold);
    acf_table_free(b->table);
}

/* Draws the batch of batch_steps[turn] on the device and fetches it. */
static void draw(bench *b, acf_batch_role role, const char *masks, const acf_batch_step *batch_steps, int n,
                 int64_t turn) {
    acf_tape_begin(b->t, false);
    acf_batch_step *there = acf_arena_alloc(b->t->mem, (size_t)n * sizeof *there);
    int64_t *at = acf_arena_alloc(b->t->mem, sizeof *at);
    double *lr = acf_arena_alloc(b->t->mem, sizeof *lr), found;
    uint32_t *now = acf_arena_alloc(b->t->mem, sizeof *now), step;
    must(acf_device_copy(b->dev, there, batch_steps, (size_t)n * sizeof *there, ACF_TO_DEVICE));
    must(acf_device_copy(b->dev, at, &turn, sizeof turn, ACF_TO_DEVICE));
    acf_drawing how = {.role = role, .seed = SEED, .batch_steps = there, .turn = at, .lr = lr, .now = now};
    must(acf_masks_parse(masks, &how.masks));
    acf_table_on_device_draw(b->t, b->on_device, &how, b->there);
    must(acf_tape_status(b->t));
    must(acf_device_copy(b->dev, b->back->x, b->there->x, SIZE * COLS * sizeof(acf_real), ACF_TO_HOST));
    must(acf_device_copy(b->dev, b->back->code, b->there->code, SIZE * COLS * sizeof(int32_t), ACF_TO_HOST));
    must(acf_device_copy(b->dev, b->back->m, b->there->m, SIZE * COLS, ACF_TO_HOST));
    must(acf_device_copy(b->dev, b->back->b, b->there->b, SIZE * COLS, ACF_TO_HOST));
    must(acf_device_copy(b->dev, b->back->id, b->there->id, SIZE * sizeof(uint64_t), ACF_TO_HOST));
    must(acf_device_copy(b->dev, &found, lr, sizeof found, ACF_TO_HOST));
    must(acf_device_copy(b->dev, &step, now, sizeof step, ACF_TO_HOST));
    must(acf_device_sync(b->dev));
    assert_true(found == batch_steps[turn].lr && step == batch_steps[turn].step);
}

/* `back` equals `host`, and is empty after its last row. */
static void assert_same(const bench *b) {
    const acf_batch *x = b->host, *y = b->back;
    const double tol = b->dev->kind == ACF_DEVICE_CPU ? 0 : 1e-6;
    for (int64_t i = 0; i < SIZE; i++) {
        if (i < x->N) assert_int_equal(y->id[i], x->id[i]);
        for (int64_t k = i * COLS; k < (i + 1) * COLS; k++) {
            const bool in = i < x->N;
            if (y->m[k] != (in && x->m[k]) || y->b[k] != (in && x->b[k]))
                fail_msg("row %lld: m, b of cell %lld", (long long)i, (long long)(k % COLS));
            if (!y->m[k]) continue;
            assert_int_equal(y->code[k], x->code[k]);
            acf_assert_close((double)y->x[k], (double)x->x[k], tol, "an encoded value");
        }
    }
}

static void training_batches(bench *b, const char *text) {
    acf_batch_sampler sampler;
    acf_masks masks;
    acf_batch_step batch_steps[TICKETS];
    int64_t row[SIZE];
    must(acf_masks_parse(text, &masks));
    must(acf_batch_sampler_start(&b->rows, SIZE, SEED, true, &sampler));
    for (int k = 0; k < TICKETS; k++) {
        if (sampler.at == sampler.rows.n) acf_batch_sampler_next(&sampler, row);
        batch_steps[k] = (acf_batch_step){
            sampler.order, sampler.at, (int32_t)acf_min(SIZE, sampler.rows.n - sampler.at), (uint32_t)(7 * k), 0.5 * k};
        acf_batch_sampler_next(&sampler, row);
    }
    must(acf_batch_sampler_seek(&sampler, 0, 0));
    for (int k = 0; k < TICKETS; k++) {
        int64_t n;
        while ((n = acf_batch_sampler_next(&sampler, row)) == 0) {}
        acf_batch_fill(b->dev, b->host, b->table, b->encoder, b->hold, ACF_BATCH_TRAIN, row, n);
        acf_masks_draw(b->dev, &masks, SEED, batch_steps[k].step, n, COLS, b->host->id, b->host->b, b->host->m);
        acf_batch_dequantise(b->dev, b->host, b->table, b->encoder, row, SEED, batch_steps[k].step);
        draw(b, ACF_BATCH_TRAIN, text, batch_steps, TICKETS, k);
        assert_same(b);
    }
}

static void training_on(acf_device *dev) {
    bench b;
    open_bench(&b, dev);
    assert_true(b.on_device->every_batch);
    training_batches(&b, "bernoulli:0.5");
    training_batches(&b, "uniform + marginal:0.4 + joint*0.5 + partial:0.5*2");
    close_bench(&b);
}

/* Rows with a held-out cell, in order, and the sums over them. */
static void validation_on(acf_device *dev) {
    bench b;
    uint8_t held[COLS];
    int64_t row[SIZE], n = 0, at = 0, cells = 0;
    open_bench(&b, dev);
    for (int64_t k = 0; k < b.rows.n; k++) {
        const int64_t found = acf_holdout_row(b.hold, b.table, acf_rows_at(&b.rows, k), held);
        cells += found;
        if (found) row[n++] = acf_rows_at(&b.rows, k);
        if (n < SIZE && k < b.rows.n - 1) continue;
        const acf_batch_step batch_step = {.at = at, .n = (int32_t)n};
        acf_batch_fill(dev, b.host, b.table, b.encoder, b.hold, ACF_BATCH_VALID, row, n);
        acf_batch_dequantise(dev, b.host, b.table, b.encoder, row, SEED, ACF_NOISE_FIXED);
        draw(&b, ACF_BATCH_VALID, "joint", &batch_step, 1, 0);
        assert_same(&b);
        at += n, n = 0;
    }
    assert_int_equal(at, b.on_device->listed);
    assert_int_equal(cells, b.on_device->cells);
    assert_int_equal(cells, b.hold->held);
    assert_true(isfinite(b.on_device->slopes) && b.on_device->slopes != 0);
    close_bench(&b);
}

/* Validation rows with training masks: in order, with constant masks and noise. */
static void validation_rows_on(acf_device *dev) {
    bench b;
    acf_masks masks;
    int64_t row[SIZE];
    open_bench(&b, dev);
    acf_table_on_device_free(b.on_device);
    must(acf_table_on_device_create(dev, b.table, &b.rows, b.encoder, NULL, SEED, SIZE, &b.on_device));
    must(acf_masks_parse("uniform + joint", &masks));
    for (int64_t at = 0; at < b.rows.n; at += SIZE) {
        const acf_batch_step batch_step = {.order = acf_permutation_identity(b.rows.n),
                                           .at = at,
                                           .step = ACF_NOISE_FIXED,
                                           .n = (int32_t)acf_min(SIZE, b.rows.n - at)};
        for (int64_t i = 0; i < batch_step.n; i++) row[i] = acf_rows_at(&b.rows, at + i);
        acf_batch_fill(dev, b.host, b.table, b.encoder, NULL, ACF_BATCH_TRAIN, row, batch_step.n);
        acf_masks_draw(dev, &masks, SEED, ACF_NOISE_FIXED, batch_step.n, COLS, b.host->id, b.host->b, b.host->m);
        acf_batch_dequantise(dev, b.host, b.table, b.encoder, row, SEED, ACF_NOISE_FIXED);
        draw(&b, ACF_BATCH_TRAIN, "uniform + joint", &batch_step, 1, 0);
        assert_same(&b);
    }
    close_bench(&b);
}

static void total_on(acf_device *dev) {
    acf_tape *t;
    acf_total total = {3, 0.25}, *there;
    acf_real x[1500];
    double sum = 0.25;
    for (int i = 0; i < 1500; i++) x[i] = (acf_real)acf_lab_random(9, i, -1, 1), sum += (double)x[i];
    must(acf_tape_create(dev, NULL, &t));
    there = acf_arena_alloc(t->mem, sizeof *there);
    must(acf_device_copy(dev, there, &total, sizeof total, ACF_TO_DEVICE));
    acf_total_add(t, acf_tensor_input(t, x, 1, (int64_t[]){1500}), there);
    must(acf_tape_status(t));
    must(acf_device_copy(dev, &total, there, sizeof total, ACF_TO_HOST));
    must(acf_device_sync(dev));
    assert_int_equal(total.turn, 4);
    acf_assert_close(total.sum, sum, 1e-12, "a sum of batches");
    acf_tape_free(t);
}

static void with_cpu(void (*test)(acf_device *), int threads) {
    acf_device *dev;
    must(acf_device_open_cpu(threads, &dev));
    test(dev);
    acf_device_close(dev);
}

static void draws_training_batches(void **state) {
    (void)state;
    with_cpu(training_on, 1);
    with_cpu(training_on, 3);
}

static void draws_validation_batches(void **state) {
    (void)state;
    with_cpu(validation_on, 2);
}

static void draws_validation_rows(void **state) {
    (void)state;
    with_cpu(validation_rows_on, 2);
}

static void totals(void **state) {
    (void)state;
    with_cpu(total_on, 1);
}

/* If many rows have no cells, a batch may have none; the trainer must be told. */
static void detects_empty_batches(void **state) {
    (void)state;
    const double x[] = {1, (double)NAN, 2, (double)NAN, (double)NAN, 3};
    acf_device *dev;
    acf_table *t;
    acf_encoder *e;
    must(acf_device_open_cpu(1, &dev));
    must(acf_table_make(x, NULL, 6, 1, NULL, &t));
    const acf_rows rows = acf_rows_all(6);
    must(acf_encoder_fit(t, &rows, NULL, &e));
    const int64_t sizes[] = {6, 4, 3};
    for (int k = 0; k < 3; k++) { /* the smallest batches have 6, 2 and 3 rows; 3 rows are empty */
        acf_table_on_device *r;
        must(acf_table_on_device_create(dev, t, &rows, e, NULL, 1, sizes[k], &r));
        assert_int_equal(r->every_batch, k == 0);
        assert_true(!r->there.held && r->listed == 0);
        acf_table_on_device_free(r);
    }
    acf_encoder_free(e);
    acf_table_free(t);
    acf_device_close(dev);
}

static void a_failing_allocation(void **state) {
    (void)state;
    acf_device *dev;
    bench b;
    must(acf_device_open_cpu(1, &dev));
    open_bench(&b, dev);
    for (int64_t n = 1;; n++) {
        acf_table_on_device *r = NULL;
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        const acf_status status = acf_table_on_device_create(dev, b.table, &b.rows, b.encoder, b.hold, SEED, SIZE, &r);
        acf_alloc_fail_at(0);
        if (!status) {
            acf_table_on_device_free(r);
            assert_true(n > 2);
            break;
        }
        assert_int_equal(status, ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    close_bench(&b);
    acf_device_close(dev);
}

ACF_TESTS(on_device, cmocka_unit_test(draws_training_batches), cmocka_unit_test(draws_validation_batches),
          cmocka_unit_test(draws_validation_rows), cmocka_unit_test(totals), cmocka_unit_test(detects_empty_batches),
          cmocka_unit_test(a_failing_allocation))

static void device_training(void **state) {
    (void)state;
    training_on(acf_test_device());
}

static void device_validation(void **state) {
    (void)state;
    validation_on(acf_test_device());
}

static void device_validation_rows(void **state) {
    (void)state;
    validation_rows_on(acf_test_device());
}

static void device_total(void **state) {
    (void)state;
    total_on(acf_test_device());
}

ACF_DEVICE_TESTS(table_on_device, cmocka_unit_test(device_training), cmocka_unit_test(device_validation),
                 cmocka_unit_test(device_validation_rows), cmocka_unit_test(device_total))
