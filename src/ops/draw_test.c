/* Tests that a draw depends only on its cell: the same bits for any batch, row order, slicing and thread count, for
 * every sampler. */
#include "ops/draw.h"

#include "harness/lab.h"
#include "ops/categorical.h"
#include "ops/gaussian.h"
#include "ops/mixture.h"

#include <string.h>

enum { N = 400, D = 6, K = 9, W = 13 };
static const int32_t first[D] = {0, 2, 4, 7, 9, 11}, count[D] = {2, 2, 3, 2, 2, 2};

typedef enum sampler { GAUSSIAN, MIXTURE, CATEGORICAL, SAMPLERS } sampler;

/* The draw of each cell of the table, by global row; 0 for cells without one. */
typedef struct table {
    double cell[N * D];
} table;

/* Parameters of a global cell, width numbers. */
static acf_tensor *params(acf_tape *t, int64_t width, const int32_t *row, const int32_t *column, const uint64_t *id,
                          int64_t n) {
    acf_tensor *x = acf_tensor_new(t, 2, (int64_t[]){n, width});
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            x->data[i * width + k] = ACF_R(
                acf_lab_random(width == 1 ? 50 : 51, (int64_t)(id[row[i]] * D + (uint64_t)column[i]) * 100 + k, -1, 1));
    return x;
}

static acf_tensor *as_vector(acf_tape *t, acf_tensor *x) { return acf_tensor_view(t, x, 1, x->dim); }

/* Draws the elements [a, b) of u and stores them by global row. whole: the tensors are packed, and the cells come
 * from the subset. */
static void draw_part(acf_tape *t, sampler s, const acf_subset *u, int64_t a, int64_t b, bool whole, acf_draw d,
                      const uint64_t *id, table *out) {
    const int32_t *row = u->row_of + a, *column = u->col_of + a;
    const acf_subset *sub = whole ? u : NULL;
    const acf_classes classes = {D, first, count};
    d.row_id = id;
    if (!whole) d.at = (acf_cells){row, column};
    acf_tensor *p = params(t, s == GAUSSIAN ? 1 : s == MIXTURE ? 3 * K : W, row, column, id, b - a), *y = NULL;
    const int32_t *codes = NULL;
    p = acf_tensor_as_packed(t, s == GAUSSIAN ? as_vector(t, p) : p, sub);
    if (s == GAUSSIAN) y = acf_gaussian_sample(t, p, p, -2, 2, &d);
    if (s == MIXTURE) y = acf_mixture_sample(t, p, K, -2, 2, &d);
    if (s == CATEGORICAL) codes = acf_categorical_sample(t, p, &classes, &d);
    assert_int_equal(acf_tape_status(t), ACF_OK);
    for (int64_t i = 0; i < b - a; i++)
        out->cell[id[row[i]] * D + (uint64_t)column[i]] = codes ? (double)codes[i] + 1 : (double)y->data[i];
}

/* Marks the modelled cells, by global row. */
static uint8_t observed(uint64_t row, int64_t column) {
    return acf_lab_random(60, (int64_t)row * D + column, 0, 1) < 0.4;
}

typedef struct plan {
    int threads;
    bool reversed; /* rows in reverse order */
    int64_t batch; /* rows at a time */
    bool by_step;  /* each step of the packed layout separately */
    uint32_t draw;
} plan;

static table draw_all(sampler s, plan how) {
    table out;
    memset(&out, 0, sizeof out);
    acf_device *dev;
    acf_tape *t;
    assert_int_equal(acf_device_open_cpu(how.threads, &dev), ACF_OK);
    assert_int_equal(acf_tape_create(dev, NULL, &t), ACF_OK);
    for (int64_t from = 0; from < N; from += how.batch) {
        uint64_t id[N];
        uint8_t b[N * D];
        int64_t n = acf_min(how.batch, N - from);
        for (int64_t i = 0; i < n; i++) {
            id[i] = (uint64_t)(how.reversed ? N - 1 - from - i : from + i);
            for (int64_t j = 0; j < D; j++) b[i * D + j] = observed(id[i], j);
        }
        acf_tape_begin(t, false);
        const acf_subset *u;
        assert_int_equal(acf_subset_build(t->mem, b, NULL, n, D, &u), ACF_OK);
        acf_draw d = {.seed = 11, .draw = how.draw};
        if (!how.by_step) draw_part(t, s, u, 0, u->T, true, d, id, &out);
        for (int64_t step = 0; how.by_step && step < u->steps; step++)
            draw_part(t, s, u, u->first[step], u->first[step + 1], false, d, id, &out);
    }
    acf_tape_free(t);
    acf_device_close(dev);
    return out;
}

static void draws_belong_to_their_cells(void **state) {
    (void)state;
    static const plan others[] = {{2, false, N, false, 0}, {3, true, N, false, 0}, {2, false, 7, false, 0},
                                  {1, true, 1, false, 0},  {1, false, N, true, 0}, {2, true, 13, true, 0}};
    for (int s = 0; s < SAMPLERS; s++) {
        table one = draw_all((sampler)s, (plan){1, false, N, false, 0});
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            table other = draw_all((sampler)s, others[i]);
            assert_memory_equal(&one, &other, sizeof one);
        }
    }
}

/* Another draw gives other numbers; categories may coincide by chance. */
static void draws_differ(void **state) {
    (void)state;
    for (int s = 0; s < SAMPLERS; s++) {
        table one = draw_all((sampler)s, (plan){1, false, N, false, 0}),
              two = draw_all((sampler)s, (plan){1, false, N, false, 1});
        int cells = 0, same = 0;
        for (int i = 0; i < N * D; i++)
            if (one.cell[i] != 0) cells++, same += one.cell[i] == two.cell[i];
        assert_true(cells > 100);
        assert_true(s == CATEGORICAL ? same > 0 && same < cells * 3 / 4 : same == 0);
    }
}

/* Every part of the key changes the counter. */
static void every_part_of_the_key_counts(void **state) {
    (void)state;
    const int32_t row[2] = {0, 1}, column[2] = {5, 7};
    const uint64_t id[2] = {(uint64_t)1 << 40, 3};
    acf_draw d = {.seed = 0x123456789abcdefu, .draw = 9, .row_id = id, .at = {row, column}};
    acf_rng_counter at = acf_draw_counter(&d, ACF_STREAM_NORMAL, 0);
    assert_true(at.seed == d.seed && at.draw == 9 && at.row == id[0] && at.column == 5 &&
                at.stream == ACF_STREAM_NORMAL);
    at = acf_draw_counter(&d, ACF_STREAM_CATEGORY, 1);
    assert_true(at.row == 3 && at.column == 7 && at.stream == ACF_STREAM_CATEGORY);
    d.row_id = NULL;
    assert_true(acf_draw_counter(&d, ACF_STREAM_NORMAL, 1).row == 1);
}

/* Row without column, or column without row, is refused. */
static void cells_come_from_one_source(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 2, 2, ACF_MASK_ALL, 1);
    const int32_t row[4] = {0};
    acf_tensor packed = {.sub = l.u}, plain = {.sub = NULL};
    acf_cells at = {row, NULL};
    assert_false(acf_cells_resolve(&at, &packed));
    at = (acf_cells){NULL, NULL};
    assert_false(acf_cells_resolve(&at, &plain));
    assert_true(acf_cells_resolve(&at, &packed) && at.row == l.u->row_of && at.column == l.u->col_of);
    at = (acf_cells){row, row};
    assert_true(acf_cells_resolve(&at, &packed) && at.row == row && at.column == row);
    acf_lab_close(&l);
}

ACF_TESTS(draw, cmocka_unit_test(draws_belong_to_their_cells), cmocka_unit_test(draws_differ),
          cmocka_unit_test(every_part_of_the_key_counts), cmocka_unit_test(cells_come_from_one_source))
