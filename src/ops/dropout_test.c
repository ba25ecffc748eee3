/* Tests of dropout: cases for the harness, statistics, determinism, refusals. */
#include "ops/dropout.h"

#include "harness/naive.h"

#include <math.h>
#include <string.h>

/* Rows with ids beyond 32 bits. */
static uint64_t id[128];
static acf_drop drop_of(double rate) {
    for (int i = 0; i < 128; i++) id[i] = 0x100000000007u + 3 * (uint64_t)i;
    return (acf_drop){.rate = rate, .seed = 0x123456789abcdef, .step = 9, .site = 77, .row_id = id};
}

/* Odd widths around the 64 words drawn at a time; in the threaded run, more than are drawn in one piece. Negative:
 * not packed. */
static int64_t wide(const acf_lab *l) { return l->big ? 1100 : l->c->variant < 0 ? -l->c->variant : l->c->variant; }

/* The harness takes finite differences without recording, where dropout is the identity, so this function sets
 * `record` around the call. Two masks on one input: its gradient gets two terms. */
static void build(acf_lab *l) {
    acf_drop now = drop_of(0.3), next;
    now.row_id = acf_lab_copy(l, id, sizeof id);
    next = now;
    next.step++;
    bool record = l->t->record;
    acf_tensor *x = l->c->variant < 0 ? acf_leaf(l, "x", -1, 1, 2, (int64_t[]){l->N, wide(l)})
                                      : acf_leaf_packed(l, "x", -1, 1, wide(l));
    l->t->record = true;
    acf_result(l, acf_dropout(l->t, x, &now));
    acf_result(l, acf_dropout(l->t, x, &next));
    l->t->record = record;
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t C = wide(l) ? wide(l) : 1;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < l->leaf[0].count; i++) {
            acf_drop d = drop_of(0.3);
            d.step += (uint32_t)k;
            int64_t p = i / C, row = l->c->variant < 0 ? p : l->u->row_of[p],
                    column = l->c->variant < 0 ? 0 : l->u->col_of[p];
            out[k][i] = (double)l->leaf[0].value[i] * naive_drop(&d, row, column, i % C, C);
        }
}

static const acf_case cases[] = {
    {"numbers", build, naive, .variant = 0, .big_N = 100},
    {"narrow", build, naive, .variant = 3, .big_N = 100},
    {"wide", build, naive, .variant = 71, .big_N = 100},
    {"rows of a batch", build, naive, .variant = -37, .big_N = 100},
};
ACF_CASES(dropout, cases)

/* Bulk drawing gives the bits of single blocks, for every length around the vector width. */
static void bulk_draws_equal_single_blocks(void **state) {
    (void)state;
    enum { MAX = 200 };
    for (int64_t n = 0; n <= MAX; n++) {
        uint32_t bulk[MAX + 1], block[4];
        memset(bulk, 0xee, sizeof bulk);
        acf_rng_counter at = {
            .seed = 77, .row = 0xabcdef012345, .stream = ACF_STREAM_TEST, .column = 0xfffffff0, .draw = 5};
        acf_rng_words(at, n, bulk);
        for (int64_t i = 0; i < n; i++) {
            if (i % 4 == 0) acf_rng_bits(at, block), at.column++;
            assert_int_equal(bulk[i], block[i % 4]);
        }
        assert_int_equal(bulk[n], 0xeeeeeeee);
    }
}

/* y of ones, and how many of them were kept. */
static int64_t drop_ones(acf_lab *l, acf_drop d, acf_tensor **out) {
    acf_lab_begin(l, true);
    acf_tensor *x = acf_tensor_new(l->t, 2, (int64_t[]){500, 200});
    for (int64_t i = 0; i < 100000; i++) x->data[i] = 1;
    *out = acf_dropout(l->t, x, &d);
    int64_t kept = 0;
    for (int64_t i = 0; i < 100000; i++) {
        acf_real y = (*out)->data[i];
        assert_true(y == 0 || y == (acf_real)(1 / (1 - d.rate)));
        kept += y != 0;
    }
    return kept;
}

static void the_drop_rate_is_right(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    for (int k = 1; k < 10; k++) {
        acf_tensor *y;
        double rate = k / 10.0, sigma = sqrt(100000 * rate * (1 - rate));
        int64_t kept = drop_ones(&l, (acf_drop){.rate = rate, .seed = 3, .step = (uint32_t)k}, &y);
        assert_true(fabs((double)kept - 100000 * (1 - rate)) < 5 * sigma);
    }
    acf_lab_close(&l);
}

/* Another step, seed, site or row id drops other numbers: independent masks agree in half of the positions. */
static void other_keys_give_other_masks(void **state) {
    (void)state;
    static uint64_t far[500];
    for (int i = 0; i < 500; i++) far[i] = 500 + (uint64_t)i;
    const acf_drop other[] = {{.rate = .5, .seed = 1, .step = 1},
                              {.rate = .5, .seed = 2},
                              {.rate = .5, .seed = 1, .site = 1},
                              {.rate = .5, .seed = 1, .row_id = far}};
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    for (size_t k = 0; k < sizeof other / sizeof other[0]; k++) {
        static acf_real mask[100000];
        acf_tensor *y;
        drop_ones(&l, (acf_drop){.rate = .5, .seed = 1}, &y);
        memcpy(mask, y->data, sizeof mask);
        drop_ones(&l, other[k], &y);
        int64_t same = 0;
        for (int64_t i = 0; i < 100000; i++) same += mask[i] == y->data[i];
        assert_true(fabs((double)same - 50000) < 5 * sqrt(25000));
    }
    acf_lab_close(&l);
}

/* No cell shares a block of random words with another: column j ends where j + 1 begins, also for widths that 4 does
 * not divide. */
static void columns_drop_other_numbers(void **state) {
    (void)state;
    enum { D = 40, C = 50 };
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[D * C], y[D * C];
    int32_t row[D] = {0}, column[D];
    for (int j = 0; j < D; j++) column[j] = j;
    for (int i = 0; i < D * C; i++) x[i] = 1;
    acf_drop d = drop_of(0.5);
    acf_dropout_fwd_cpu(dev, y, NULL, x, &d, (acf_cells){row, column}, D, C);
    for (int a = 0; a < D; a++)
        for (int b = 0; b < a; b++)
            for (int shift = 0; shift < 4;
                 shift++) { /* nor are the words those of the next block: 8 equal words happen by chance once in 2^42 */
                int same = 0;
                for (int c = 0; c + 4 * shift < C; c++) same += y[a * C + c] == y[b * C + c + 4 * shift];
                assert_true(same < C - 4 * shift);
            }
    acf_device_close(dev);
}

/* Wider than one piece of drawing. */
static void a_row_may_be_wider_than_a_piece(void **state) {
    (void)state;
    enum { C = 2500 };
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[C], y[C];
    for (int c = 0; c < C; c++) x[c] = 1;
    acf_drop d = drop_of(0.5);
    acf_dropout_fwd_cpu(dev, y, NULL, x, &d, (acf_cells){NULL, NULL}, 1, C);
    for (int c = 0; c < C; c++) assert_true((double)y[c] == naive_drop(&d, 0, 0, c, C));
    acf_device_close(dev);
}

/* A batch that is divided or reordered drops the same numbers: rows are identified by their ids. */
static void a_split_batch_drops_the_same(void **state) {
    (void)state;
    enum { M = 10, C = 7 };
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[M * C], whole[M * C], parts[M * C];
    int32_t turned[M];
    for (int i = 0; i < M * C; i++) x[i] = 1;
    for (int i = 0; i < M; i++) turned[i] = M - 1 - i;
    acf_drop d = drop_of(0.5), rest = d;
    rest.row_id += 4;
    acf_dropout_fwd_cpu(dev, whole, NULL, x, &d, (acf_cells){NULL, NULL}, M, C);
    acf_dropout_fwd_cpu(dev, parts, NULL, x, &d, (acf_cells){NULL, NULL}, 4, C);
    acf_dropout_fwd_cpu(dev, parts + 4 * C, NULL, x, &rest, (acf_cells){NULL, NULL}, M - 4, C);
    assert_memory_equal(whole, parts, sizeof whole);
    acf_dropout_fwd_cpu(dev, parts, NULL, x, &d, (acf_cells){turned, NULL}, M, C);
    for (int i = 0; i < M; i++) assert_memory_equal(whole + i * C, parts + (M - 1 - i) * C, C * sizeof *whole);
    acf_device_close(dev);
}

/* A dropped NaN stays NaN. */
static void a_dropped_nan_stays_nan(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[100], y[100];
    for (int i = 0; i < 100; i++) x[i] = (acf_real)NAN;
    acf_drop d = drop_of(0.5);
    acf_dropout_fwd_cpu(dev, y, NULL, x, &d, (acf_cells){NULL, NULL}, 1, 100);
    for (int i = 0; i < 100; i++) assert_true(isnan(y[i]));
    acf_device_close(dev);
}

static void identity_without_recording(void **state) {
    (void)state;
    acf_lab l;
    acf_drop half = drop_of(0.5), none = drop_of(0);
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_dropout(l.t, x, &half), x);
    acf_lab_begin(&l, true);
    x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_dropout(l.t, x, &none), x);
    assert_ptr_not_equal(acf_dropout(l.t, x, &half), x);
    acf_lab_close(&l);
}

static void refuses(acf_lab *l, acf_tensor *x, acf_drop d, acf_status status, const char *sentence) {
    assert_int_equal(acf_tensor_count(acf_dropout(l->t, x, &d)), 0);
    assert_int_equal(acf_tape_status(l->t), status);
    assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, true);
}

static void refuses_sites_and_sizes_without_a_key(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_NONE, 1);
    refuses(&l, acf_tensor_new(l.t, 1, &l.N), (acf_drop){.rate = -0.1}, ACF_EUSAGE,
            "dropout: the rate is -0.1; expected 0 <= rate < 1");
    refuses(&l, acf_tensor_new(l.t, 1, &l.N), (acf_drop){.rate = 1}, ACF_EUSAGE,
            "dropout: the rate is 1; expected 0 <= rate < 1");
    refuses(&l, acf_tensor_new(l.t, 1, &l.N), (acf_drop){.rate = (double)NAN}, ACF_EUSAGE,
            "dropout: the rate is nan; expected 0 <= rate < 1");
    refuses(&l, acf_tensor_new(l.t, 1, &l.N), (acf_drop){.site = 4096}, ACF_EUSAGE,
            "dropout: site 4096; expected below 4096");
    refuses(&l, acf_tensor_new(l.t, 2, (int64_t[]){0, (int64_t)1 << 35}), (acf_drop){.rate = .5}, ACF_ESHAPE,
            "dropout: 1 columns of 34359738368 numbers each exceed the range of random counters");
    acf_lab_close(&l);
}

ACF_TESTS(dropout, cmocka_unit_test(bulk_draws_equal_single_blocks), cmocka_unit_test(the_drop_rate_is_right),
          cmocka_unit_test(other_keys_give_other_masks), cmocka_unit_test(columns_drop_other_numbers),
          cmocka_unit_test(a_row_may_be_wider_than_a_piece), cmocka_unit_test(a_split_batch_drops_the_same),
          cmocka_unit_test(a_dropped_nan_stays_nan), cmocka_unit_test(identity_without_recording),
          cmocka_unit_test(refuses_sites_and_sizes_without_a_key))
