/* Dropout: cases for the harness, statistics, determinism, refusals. */
#include "ops/dropout.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

static const acf_place key = {.seed = 0x123456789abcdef, .row = 40, .column = 3 << 20, .draw = 9};

/* Odd widths around the 64 words drawn at a time; more than are drawn in one piece in the threaded run. */
static int64_t wide(const acf_lab *l) { return l->big ? 1100 : l->c->variant; }

/* The harness takes finite differences without recording, where dropout is the identity; so it records around the call.
 * Two masks on one input: its gradient gets two terms. */
static void build(acf_lab *l) {
    acf_place next = key;
    next.draw++;
    bool record = l->t->record;
    acf_tensor *x = acf_leaf_packed(l, "x", -1, 1, wide(l));
    l->t->record = true;
    acf_result(l, acf_dropout(l->t, x, 0.3, key));
    acf_result(l, acf_dropout(l->t, x, 0.3, next));
    l->t->record = record;
}

static void naive(const acf_lab *l, double *const *out) {
    int64_t C = wide(l) ? wide(l) : 1;
    for (int64_t j = 0; j < 2 * l->leaf[0].count; j++) {
        acf_place at = key;
        uint32_t word[4];
        int64_t i = j / 2, k = j % 2;
        at.draw += (uint32_t)k;
        at.stream = ACF_STREAM_DROPOUT;
        at.row += (uint64_t)(i / C);
        at.column += (uint32_t)(i % C / 4);
        acf_rng_bits(at, word);
        bool kept = (double)word[i % C % 4] >= 0.3 * 4294967296.0 - 1;
        out[k][i] = kept ? (double)l->leaf[0].value[i] / 0.7 : 0;
    }
}

static const acf_case cases[] = {
    {"numbers", build, naive, .variant = 0, .big_N = 100},
    {"narrow", build, naive, .variant = 3, .big_N = 100},
    {"wide", build, naive, .variant = 71, .big_N = 100},
};
ACF_CASES(dropout, cases)

/* Bulk drawing gives the bits of the single blocks, for every length around the vector width. */
static void words_are_those_of_the_blocks(void **state) {
    (void)state;
    enum { MAX = 200 };
    for (int64_t n = 0; n <= MAX; n++) {
        uint32_t bulk[MAX + 1], block[4];
        memset(bulk, 0xee, sizeof bulk);
        acf_place at = {.seed = 77, .row = 0xabcdef012345, .stream = ACF_STREAM_TEST, .column = 0xfffffff0, .draw = 5};
        acf_rng_words(at, n, bulk);
        for (int64_t i = 0; i < n; i++) {
            if (i % 4 == 0) acf_rng_bits(at, block), at.column++;
            assert_int_equal(bulk[i], block[i % 4]);
        }
        assert_int_equal(bulk[n], 0xeeeeeeee);
    }
}

/* y of ones, and how many of them were kept. */
static int64_t drop_ones(acf_lab *l, double rate, acf_place at, acf_tensor **out) {
    acf_lab_begin(l, true);
    acf_tensor *x = acf_tensor_new(l->t, 2, (int64_t[]){500, 200});
    for (int64_t i = 0; i < 100000; i++) x->data[i] = 1;
    *out = acf_dropout(l->t, x, rate, at);
    int64_t kept = 0;
    for (int64_t i = 0; i < 100000; i++) {
        acf_real y = (*out)->data[i];
        assert_true(y == 0 || y == (acf_real)(1 / (1 - rate)));
        kept += y != 0;
    }
    return kept;
}

static void keeps_the_right_share(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    for (int k = 1; k < 10; k++) {
        acf_tensor *y;
        double rate = k / 10.0, sigma = sqrt(100000 * rate * (1 - rate));
        int64_t kept = drop_ones(&l, rate, (acf_place){.seed = 3, .draw = (uint32_t)k}, &y);
        assert_true(fabs((double)kept - 100000 * (1 - rate)) < 5 * sigma);
    }
    acf_lab_close(&l);
}

/* Another step, seed, layer or first row drops other numbers: independent masks agree in half of the places. */
static void other_places_other_masks(void **state) {
    (void)state;
    static const acf_place other[] = {
        {.seed = 1, .draw = 1}, {.seed = 2}, {.seed = 1, .column = 1 << 20}, {.seed = 1, .row = 1 << 20}};
    acf_lab l;
    acf_lab_open(&l, 2, 1, 1, ACF_MASK_ALL, 1);
    for (size_t k = 0; k < sizeof other / sizeof other[0]; k++) {
        static acf_real mask[100000];
        acf_tensor *y;
        drop_ones(&l, 0.5, (acf_place){.seed = 1}, &y);
        memcpy(mask, y->data, sizeof mask);
        drop_ones(&l, 0.5, other[k], &y);
        int64_t same = 0;
        for (int64_t i = 0; i < 100000; i++) same += mask[i] == y->data[i];
        assert_true(fabs((double)same - 50000) < 5 * sqrt(25000));
    }
    acf_lab_close(&l);
}

/* A batch cut in two drops the same numbers when the second part says which row it begins with. */
static void a_split_batch_drops_the_same(void **state) {
    (void)state;
    enum { M = 10, C = 7 };
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[M * C], whole[M * C], parts[M * C];
    for (int i = 0; i < M * C; i++) x[i] = 1;
    acf_dropout_fwd_cpu(dev, whole, NULL, x, 0.5, key, M, C);
    acf_place rest = key;
    rest.row += 4;
    acf_dropout_fwd_cpu(dev, parts, NULL, x, 0.5, key, 4, C);
    acf_dropout_fwd_cpu(dev, parts + 4 * C, NULL, x, 0.5, rest, M - 4, C);
    assert_memory_equal(whole, parts, sizeof whole);
    acf_device_close(dev);
}

/* A NaN is not cured by being dropped. */
static void a_dropped_nan_shows(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_real x[100], y[100];
    for (int i = 0; i < 100; i++) x[i] = (acf_real)NAN;
    acf_dropout_fwd_cpu(dev, y, NULL, x, 0.5, key, 1, 100);
    for (int i = 0; i < 100; i++) assert_true(isnan(y[i]));
    acf_device_close(dev);
}

static void identity_where_nothing_is_trained(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_dropout(l.t, x, 0.5, key), x);
    acf_lab_begin(&l, true);
    x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_dropout(l.t, x, 0, key), x);
    assert_ptr_not_equal(acf_dropout(l.t, x, 0.5, key), x);
    acf_lab_close(&l);
}

static void refuses_rates(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    const double rates[] = {-0.1, 1, (double)NAN};
    for (int k = 0; k < 3; k++) {
        acf_lab_begin(&l, k == 0);
        acf_dropout(l.t, acf_tensor_new(l.t, 1, &l.N), rates[k], key);
        assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
        if (k == 1) assert_string_equal(acf_error(), "dropout: the rate is 1; expected 0 <= rate < 1");
    }
    acf_lab_close(&l);
}

ACF_TESTS(dropout, cmocka_unit_test(words_are_those_of_the_blocks), cmocka_unit_test(keeps_the_right_share),
          cmocka_unit_test(other_places_other_masks), cmocka_unit_test(a_split_batch_drops_the_same),
          cmocka_unit_test(a_dropped_nan_shows), cmocka_unit_test(identity_where_nothing_is_trained),
          cmocka_unit_test(refuses_rates))
