/* Tests of ragged masks: every field of a subset against its definition, for random masks and extreme shapes; the
 * order of sequences. */
#include "tensor/subset.h"

#include "base/rng.h"
#include "device/plugin.h"

#include "harness/check.h"
#include "harness/lab.h"

#include <stdlib.h>
#include <string.h>

/* A mask with cells set with this probability; 0 and 1 give the empty and the full mask. */
static void draw(uint8_t *mask, int64_t n, uint64_t seed, double chance) {
    for (int64_t i = 0; i < n; i++) mask[i] = acf_lab_random(seed, i, 0, 1) < chance ? 255 : 0;
}

/* u (N,D) from its definition: modelled where present and not observed. */
static bool modelled(const uint8_t *b, const uint8_t *m, int64_t cell) { return (!m || m[cell]) && !(b && b[cell]); }

/* Checks sizes and ranks of a subset whose modelled cells are `want` (N,D), in any order. */
static void check_ranks(const acf_subset *u, const uint8_t *want) {
    int64_t total = 0, largest = 0;
    for (int64_t i = 0; i < u->N; i++) {
        int64_t n = 0, rank = 0;
        for (int64_t j = 0; j < u->D; j++) n += want[i * u->D + j] != 0;
        assert_int_equal(u->size[i], n);
        total += n;
        largest = n > largest ? n : largest;
        /* The rank is the number of rows that come before: the larger ones, and earlier rows of equal size. */
        for (int64_t k = 0; k < u->N; k++) rank += u->size[k] > n || (u->size[k] == n && k < i);
        assert_int_equal(u->rank[i], rank);
        assert_int_equal(u->row[rank], i);
        assert_int_equal(u->square[i + 1] - u->square[i], n * n);
    }
    assert_int_equal(u->T, total);
    assert_int_equal(u->steps, largest);
    assert_int_equal(u->square[0], 0);
}

/* Its columns, in order. */
static void check_rows(const acf_subset *u, const uint8_t *want) {
    check_ranks(u, want);
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t j = 0, n = 0; j < u->D; j++)
            if (want[i * u->D + j]) assert_int_equal(u->cols[i * u->D + n++], j);
}

/* Checks the arrays of steps and packed elements, given sizes, columns and ranks. */
static void check_packed(const acf_subset *u) {
    int64_t at = 0;
    for (int64_t t = 0; t <= u->D; t++) {
        int64_t alive = 0;
        for (int64_t i = 0; i < u->N; i++) alive += u->size[i] > t;
        assert_int_equal(u->active[t], alive);
        assert_int_equal(u->first[t], at);
        at += alive;
    }
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t t = 0; t < u->size[i]; t++) {
            int64_t p = u->first[t] + u->rank[i], column = u->cols[i * u->D + t], last = u->size[i] - 1;
            assert_int_equal(acf_subset_at(u, i, t), p);
            assert_int_equal(u->row_of[p], i);
            assert_int_equal(u->col_of[p], column);
            assert_int_equal(u->cell[p], i * u->D + column);
            assert_int_equal(u->prev[p], t ? u->first[t - 1] + u->rank[i] : -1);
            assert_int_equal(u->mirror[p], u->first[last - t] + u->rank[i]);
        }
}

static void check_split(acf_arena *mem, const acf_subset *u) {
    uint8_t *want = calloc((size_t)(u->N * u->D) + 1, 1);
    assert_non_null(want);
    for (int parity = 0; parity < 2; parity++) {
        const acf_subset *half;
        assert_int_equal(acf_subset_split(mem, u, parity, &half), ACF_OK);
        memset(want, 0, (size_t)(u->N * u->D));
        for (int64_t i = 0; i < u->N; i++)
            for (int64_t t = parity; t < u->size[i]; t += 2) want[i * u->D + u->cols[i * u->D + t]] = 1;
        check_rows(half, want);
        check_packed(half);
        assert_ptr_equal(half->whole, u);
        assert_int_equal(half->parity, parity);
        for (int64_t p = 0; p < half->T; p++) {
            assert_in_range(half->parent[p], 0, u->T - 1);
            assert_int_equal(u->cell[half->parent[p]], half->cell[p]);
        }
        for (int64_t i = 0; i < u->N; i++) assert_int_equal(half->size[i], (u->size[i] + 1 - parity) / 2);
    }
    free(want);
}

/* Builds from masks (NULL allowed) and checks everything, halves and quarters included. */
static void check(const uint8_t *b, const uint8_t *m, int64_t N, int64_t D) {
    acf_arena *mem;
    const acf_subset *u, *half;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_build(mem, b, m, N, D, &u), ACF_OK);
    uint8_t *want = calloc((size_t)(N * D) + 1, 1);
    assert_non_null(want);
    for (int64_t i = 0; i < N * D; i++) want[i] = modelled(b, m, i);
    assert_int_equal(u->N, N);
    assert_int_equal(u->D, D);
    check_rows(u, want);
    check_packed(u);
    assert_null(u->parent);
    assert_null(u->whole);
    check_split(mem, u);
    assert_int_equal(acf_subset_split(mem, u, 0, &half), ACF_OK);
    check_split(mem, half);
    free(want);
    acf_arena_free(mem);
}

static void fields_follow_the_definition(void **state) {
    (void)state;
    static const int64_t shape[][2] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {13, 5}, {40, 9}, {3, 64}};
    uint8_t b[512], m[512];
    for (uint64_t k = 0; k < sizeof shape / sizeof shape[0]; k++)
        for (int p = 0; p <= 4; p++)
            for (int q = 0; q <= 4; q++) {
                int64_t N = shape[k][0], D = shape[k][1];
                draw(b, N * D, 100 * k + (uint64_t)p, p / 4.0);
                draw(m, N * D, 9000 + 100 * k + (uint64_t)q, q / 4.0);
                check(b, m, N, D);
            }
}

/* The example of subset.h. */
static void the_example_of_the_header(void **state) {
    (void)state;
    static const uint8_t b[] = {1, 0, 1, 1, /* */ 0, 1, 0, 0, /* */ 1, 0, 1, 0};
    static const int32_t row[] = {1, 2, 0, 1, 2, 1}, col[] = {0, 1, 1, 2, 3, 3}, first[] = {0, 3, 5, 6, 6};
    acf_arena *mem;
    const acf_subset *u;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_build(mem, b, NULL, 3, 4, &u), ACF_OK);
    assert_int_equal(u->T, 6);
    assert_memory_equal(u->row_of, row, sizeof row);
    assert_memory_equal(u->col_of, col, sizeof col);
    assert_memory_equal(u->first, first, sizeof first);
    acf_arena_free(mem);
}

static void nothing_observed_nothing_missing(void **state) {
    (void)state;
    uint8_t mask[35];
    draw(mask, 35, 1, 0.5);
    check(NULL, NULL, 5, 7);
    check(mask, NULL, 5, 7);
    check(NULL, mask, 5, 7);
}

static void no_rows_no_columns(void **state) {
    (void)state;
    check(NULL, NULL, 0, 4);
    check(NULL, NULL, 4, 0);
    check(NULL, NULL, 0, 0);
}

/* 2^31 cells do not fit the int32 of the maps; nothing may be read or allocated for them. */
static void refuses_too_many_cells(void **state) {
    (void)state;
    static const int64_t shape[][2] = {{1 << 16, 1 << 15}, {INT64_MAX, 2}, {2, INT64_MAX}, {INT64_MAX, INT64_MAX},
                                       {INT64_MAX, 0},     {0, INT64_MAX}, {-1, 4},        {4, -1}};
    acf_arena *mem;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
        const acf_subset *u = NULL;
        assert_int_equal(acf_subset_build(mem, NULL, NULL, shape[k][0], shape[k][1], &u), ACF_ESHAPE);
        assert_null(u);
        if (k == 0)
            assert_string_equal(acf_error(), "subset: 65536 rows of 32768 columns are more cells than a batch may have "
                                             "(2^31-1); use a smaller batch");
    }
    assert_int_equal(acf_arena_used(mem), 0);
    acf_arena_free(mem);
}

/* Each allocation fails once: a clean error, nothing written, nothing leaked. */
static void survives_failing_allocations(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    int n = 0;
    for (bool done = false; !done;) {
        acf_arena *mem;
        const acf_subset *u = NULL, *half = NULL;
        assert_int_equal(acf_arena_create(&acf_heap, 64, &mem), ACF_OK); /* a small first block, so that many follow */
        acf_alloc_fail_at(++n);
        acf_status status = acf_subset_build(mem, NULL, NULL, 200, 50, &u);
        if (!status) status = acf_subset_split(mem, u, 1, &half);
        acf_alloc_fail_at(0);
        done = status == ACF_OK;
        assert_true(done || status == ACF_EMEMORY);
        assert_true((half != NULL) == done);
        acf_arena_free(mem);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 2);
}

/* ---- sequences ------------------------------------------------------------------------------------------------- */

/* The low half of the sort key of column j of row i, from the definition. */
static uint32_t low_key(const acf_order *o, int64_t i, int64_t j) {
    uint32_t word[4];
    if (!o->shuffle) return (uint32_t)j;
    if (o->column) j = o->column[j];
    acf_rng_bits((acf_rng_counter){.seed = o->seed,
                                   .row = o->row_id ? o->row_id[i] : 0,
                                   .stream = ACF_STREAM_ORDER,
                                   .column = (uint32_t)(j / 4),
                                   .draw = o->now ? *o->now : o->draw},
                 word);
    return word[j % 4];
}

/* Whether column j of row i comes before column k. */
static bool comes_before(const acf_order *o, const uint8_t *b, int64_t D, int64_t i, int64_t j, int64_t k) {
    const int64_t at_j = o->column ? o->column[j] : j, at_k = o->column ? o->column[k] : k;
    const int64_t stage_j = b && b[i * D + j] ? -1 : o->stage[at_j], stage_k = b && b[i * D + k] ? -1 : o->stage[at_k];
    return stage_j != stage_k ? stage_j < stage_k : low_key(o, i, j) < low_key(o, i, k);
}

/* Builds an order from masks (NULL allowed) and checks everything. */
static void check_order(const uint8_t *b, const uint8_t *m, const acf_order *o, int64_t N, int64_t D) {
    acf_arena *mem;
    const acf_subset *u;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_order(mem, b, m, o, N, D, &u), ACF_OK);
    uint8_t *want = calloc((size_t)(N * D) + 1, 1);
    assert_non_null(want);
    for (int64_t k = 0; k < N * D; k++) want[k] = (!m || m[k]) && !(o->modelled && b && b[k]);
    check_ranks(u, want);
    check_packed(u);
    for (int64_t i = 0; i < N; i++)
        for (int64_t t = 0; t < u->size[i]; t++) {
            const int64_t col = u->cols[i * D + t];
            assert_true(want[i * D + col]);
            if (t) assert_true(comes_before(o, b, D, i, u->cols[i * D + t - 1], col)); /* so no column is there twice */
            assert_int_equal(u->place[i * D + col], acf_subset_at(u, i, t));
        }
    for (int64_t k = 0; k < N * D; k++)
        if (!want[k]) assert_int_equal(u->place[k], -1);
    assert_null(u->parent);
    assert_null(u->whole);
    free(want);
    acf_arena_free(mem);
}

/* The stages of 130 columns, 64 of them as a part, and ids of 64 rows beyond 32 bits. */
static int32_t stages[130], part[64];
static uint64_t ids[64];

static acf_order order_of(bool shuffle, bool by_row) {
    for (int j = 0; j < 130; j++) stages[j] = (7 * j + 2) % 3;
    for (int j = 0; j < 64; j++) part[j] = 2 * j + 1, ids[j] = 0x100000000007u + 5 * (uint64_t)j;
    return (acf_order){.stage = stages, .shuffle = shuffle, .seed = 99, .draw = 3, .row_id = by_row ? ids : NULL};
}

static void orders_follow_the_definition(void **state) {
    (void)state;
    static const int64_t shape[][2] = {{1, 1}, {1, 7}, {7, 1}, {13, 5}, {40, 9}, {3, 64}, {0, 4}, {4, 0}};
    static const uint32_t now = 11;
    uint8_t b[512], m[512];
    for (uint64_t k = 0; k < sizeof shape / sizeof shape[0]; k++)
        for (int p = 0; p < 64; p++) {
            const int64_t N = shape[k][0], D = shape[k][1];
            acf_order o = order_of(p & 1, p & 2);
            if (p & 4) o.now = &now;
            if (p & 16) o.column = part, o.columns = 130;
            o.modelled = p & 32;
            draw(b, N * D, 100 * k + (uint64_t)p, 0.4);
            draw(m, N * D, 9000 + 100 * k + (uint64_t)p, 0.8);
            check_order(p & 8 ? NULL : b, m, &o, N, D);
            check_order(b, p & 8 ? NULL : m, &o, N, D);
        }
}

/* cols (D) of row i in such an order, with all cells present and none given. */
static void columns_of_row(int32_t *cols, const acf_order *o, int64_t i, int64_t N, int64_t D) {
    acf_arena *mem;
    const acf_subset *u;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_order(mem, NULL, NULL, o, N, D, &u), ACF_OK);
    memcpy(cols, u->cols + i * D, (size_t)D * sizeof *cols);
    acf_arena_free(mem);
}

/* The example: column 2 is given, 3 is missing, 1 is of a later stage. */
static void given_cells_come_first_then_stages(void **state) {
    (void)state;
    static const uint8_t b[] = {0, 0, 1, 0, 0}, m[] = {1, 1, 1, 0, 1};
    static const int32_t stage[] = {0, 1, 5, 0, 0}, cols[] = {2, 0, 4, 1}, place[] = {1, 3, 0, -1, 2};
    acf_arena *mem;
    const acf_subset *u;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_order(mem, b, m, &(acf_order){.stage = stage}, 1, 5, &u), ACF_OK);
    assert_int_equal(u->size[0], 4);
    assert_memory_equal(u->cols, cols, sizeof cols);
    assert_memory_equal(u->place, place, sizeof place);
    acf_arena_free(mem);
}

static void a_shuffle_depends_on_seed_draw_and_row(void **state) {
    (void)state;
    enum { N = 4, D = 40 };
    static const int32_t one[D] = {0};
    static const uint64_t id[N] = {5, 6, 7, 5}, other[N] = {7, 5, 5, 5};
    static const uint32_t four = 4;
    int32_t first[D], cols[D];
    acf_order o = {.stage = one, .shuffle = true, .seed = 99, .draw = 3};
    columns_of_row(first, &o, 0, N, D);
    columns_of_row(cols, &o, 0, N, D);
    assert_memory_equal(cols, first, sizeof cols); /* again */
    columns_of_row(cols, &o, 2, N, D);
    assert_memory_equal(cols, first, sizeof cols); /* rows are alike */
    o.draw = 4;
    columns_of_row(cols, &o, 0, N, D);
    assert_memory_not_equal(cols, first, sizeof cols);
    memcpy(first, cols, sizeof first);
    o.draw = 3, o.now = &four;
    columns_of_row(cols, &o, 0, N, D);
    assert_memory_equal(cols, first, sizeof cols);
    o.seed = 100;
    columns_of_row(cols, &o, 0, N, D);
    assert_memory_not_equal(cols, first, sizeof cols);
    o.row_id = id;
    columns_of_row(first, &o, 0, N, D);
    for (int64_t i = 1; i < N; i++) {
        columns_of_row(cols, &o, i, N, D);
        assert_true((memcmp(cols, first, sizeof cols) == 0) == (id[i] == id[0]));
    }
    o.row_id = other; /* the same row in a batch of other rows */
    columns_of_row(cols, &o, 1, 2, D);
    assert_memory_equal(cols, first, sizeof cols);
}

/* All orders of three columns are equally frequent: chi-square with 5 degrees of freedom at 0.1 %. */
static void shuffles_are_even(void **state) {
    (void)state;
    enum { n = 6000, D = 3 };
    static const int32_t one[D] = {0};
    static uint64_t id[n];
    int count[27] = {0}, orders = 0;
    double square = 0;
    acf_arena *mem;
    const acf_subset *u;
    for (int i = 0; i < n; i++) id[i] = (uint64_t)i;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_order(mem, NULL, NULL,
                                      &(acf_order){.stage = one, .shuffle = true, .seed = 1, .row_id = id}, n, D, &u),
                     ACF_OK);
    for (int i = 0; i < n; i++) count[u->cols[i * D] * 9 + u->cols[i * D + 1] * 3 + u->cols[i * D + 2]]++;
    for (int k = 0; k < 27; k++)
        if (count[k]) orders++, square += (count[k] - n / 6.0) * (count[k] - n / 6.0) / (n / 6.0);
    assert_int_equal(orders, 6);
    assert_true(square < 20.5);
    acf_arena_free(mem);
}

static void orders_refuse_too_many_cells(void **state) {
    (void)state;
    const acf_order o = order_of(true, false);
    acf_arena *mem;
    const acf_subset *u = NULL;
    assert_int_equal(acf_arena_create(&acf_heap, 0, &mem), ACF_OK);
    assert_int_equal(acf_subset_order(mem, NULL, NULL, &o, 1 << 16, 1 << 15, &u), ACF_ESHAPE);
    assert_string_equal(
        acf_error(),
        "subset: 65536 rows of 32768 columns are more cells than a batch may have (2^31-1); use a smaller batch");
    assert_null(u);
    assert_int_equal(acf_arena_used(mem), 0);
    acf_arena_free(mem);
}

static void orders_survive_failing_allocations(void **state) {
    (void)state;
    const acf_order o = order_of(true, true);
    int64_t live = acf_alloc_live();
    int n = 0;
    for (bool done = false; !done;) {
        acf_arena *mem;
        const acf_subset *u = NULL;
        assert_int_equal(acf_arena_create(&acf_heap, 64, &mem), ACF_OK);
        acf_alloc_fail_at(++n);
        acf_status status = acf_subset_order(mem, NULL, NULL, &o, 64, 50, &u);
        acf_alloc_fail_at(0);
        done = status == ACF_OK;
        assert_true(done || status == ACF_EMEMORY);
        assert_true((u != NULL) == done);
        acf_arena_free(mem);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 2);
}

/* The tape's sequences, and its failures. */
static void a_tape_makes_the_same_orders(void **state) {
    (void)state;
    enum { N = 9, D = 7 };
    const acf_order o = order_of(true, true);
    acf_lab l;
    const acf_subset *u;
    acf_lab_open(&l, 1, N, D, ACF_MASK_RANDOM, 5);
    const acf_subset *s = acf_tape_sequence(l.t, l.b, l.m, &o, N, D);
    assert_int_equal(acf_subset_order(l.t->mem, l.b, l.m, &o, N, D, &u), ACF_OK);
    assert_true(s && s->T == u->T);
    assert_memory_equal(s->cell, u->cell, (size_t)u->T * sizeof *u->cell);
    assert_null(acf_tape_sequence(l.t, NULL, NULL, &o, 1 << 16, 1 << 15));
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_null(acf_tape_sequence(l.t, l.b, l.m, &o, N, D)); /* the failure is sticky */
    acf_lab_close(&l);
}

/* ---- on another device ----------------------------------------------------------------------------------------- */

/* Compares n integers of device memory with the expected ones; NULL: -1 throughout. */
static void same_ints(acf_lab *l, const int32_t *there, const int32_t *want, int64_t n, const char *what) {
    int32_t *found = acf_lab_ints(n);
    assert_int_equal(acf_device_copy(l->dev, found, there, (size_t)n * sizeof *found, ACF_TO_HOST), ACF_OK);
    assert_int_equal(acf_device_sync(l->dev), ACF_OK);
    for (int64_t i = 0; i < n; i++)
        if (found[i] != (want ? want[i] : -1))
            fail_msg("%s (N %d, D %d): element %d is %d, expected %d", what, (int)l->N, (int)l->D, (int)i, found[i],
                     want ? want[i] : -1);
    free(found);
}

/* Every array of u, on the device, against v, which the CPU made. */
static void same_subset(acf_lab *l, const acf_subset *u, const acf_subset *v) {
    const int64_t N = v->N, D = v->D, T = v->T;
    assert_true(u->N == N && u->D == D && u->T >= T && u->steps == D && u->S == N * D * D);
    const struct {
        const char *name;
        const int32_t *there, *want;
        int64_t n, capacity;
    } all[] = {{"size", u->size, v->size, N, N},
               {"row", u->row, v->row, N, N},
               {"rank", u->rank, v->rank, N, N},
               {"active", u->active, v->active, D + 1, D + 1},
               {"first", u->first, v->first, D + 1, D + 1},
               {"row_of", u->row_of, v->row_of, T, u->T},
               {"col_of", u->col_of, v->col_of, T, u->T},
               {"cell", u->cell, v->cell, T, u->T},
               {"prev", u->prev, v->prev, T, u->T},
               {"mirror", u->mirror, v->mirror, T, u->T},
               {"parent", u->parent, v->parent, v->parent ? T : 0, v->parent ? u->T : 0}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        same_ints(l, all[k].there, all[k].want, all[k].n, all[k].name);
        same_ints(l, all[k].there + all[k].n, NULL, all[k].capacity - all[k].n,
                  all[k].name); /* after the last element */
    }
    int32_t *place = acf_lab_ints(N * D);
    for (int64_t p = 0; p < T; p++) place[v->cell[p]] = (int32_t)p;
    same_ints(l, u->place, place, N * D, "place");
    free(place);
    for (int64_t i = 0; i < N; i++) same_ints(l, u->cols + i * D, v->cols + i * D, v->size[i], "cols");
}

static void a_device_makes_the_same_subsets(void **state) {
    (void)state;
    static const acf_size sizes[] = {{0, 3, 0},
                                     {1, 1, ACF_MASK_ALL},
                                     {5, 4, ACF_MASK_NONE},
                                     {7, 1, ACF_MASK_RANDOM},
                                     {40, 33, ACF_MASK_RANDOM},
                                     {1500, 65, ACF_MASK_RANDOM},
                                     {33, 1200, ACF_MASK_RANDOM},
                                     {9000, 6, ACF_MASK_ONE}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        acf_lab l;
        acf_lab_open_on(&l, acf_test_device(), sizes[k].N, sizes[k].D, sizes[k].mask, 5 + k);
        same_subset(&l, l.u, l.host);
        for (int parity = 0; parity < 2; parity++) {
            const acf_subset *half;
            assert_int_equal(acf_subset_split(l.mem, l.host, parity, &half), ACF_OK);
            same_subset(&l, acf_tape_half(l.t, l.u, parity), half);
        }
        acf_lab_close(&l);
    }
}

static void a_device_makes_the_same_orders(void **state) {
    (void)state;
    static const acf_size sizes[] = {{0, 3, 0},
                                     {1, 1, ACF_MASK_ALL},
                                     {5, 4, ACF_MASK_NONE},
                                     {7, 1, ACF_MASK_RANDOM},
                                     {40, 33, ACF_MASK_RANDOM},
                                     {1500, 65, ACF_MASK_RANDOM},
                                     {33, 1200, ACF_MASK_RANDOM},
                                     {9000, 6, ACF_MASK_ONE}};
    static int32_t stage[2400], odd[1200];
    static uint64_t id[9000];
    static const uint32_t now = 8;
    for (int j = 0; j < 2400; j++) stage[j] = (7 * j + 2) % 3;
    for (int j = 0; j < 1200; j++) odd[j] = 2 * j + 1;
    for (int i = 0; i < 9000; i++) id[i] = 0x100000000007u + 5 * (uint64_t)i;
    for (size_t k = 0; k < 8 * sizeof sizes / sizeof sizes[0]; k++) {
        const acf_size z = sizes[k / 8];
        acf_lab l;
        acf_lab_open_on(&l, acf_test_device(), z.N, z.D, z.mask, 5 + k);
        acf_order here = {.stage = stage, .shuffle = k % 4 > 0, .seed = 99, .draw = 3}, there;
        if (k % 4 > 1) here.row_id = id;
        if (k % 4 > 2) here.now = &now;
        if (k % 8 > 3) here.column = odd, here.columns = 2 * z.D, here.modelled = true;
        there = here;
        there.stage = acf_lab_copy(&l, stage, (size_t)(2 * z.D) * sizeof *stage);
        if (here.column) there.column = acf_lab_copy(&l, odd, (size_t)z.D * sizeof *odd);
        if (here.row_id) there.row_id = acf_lab_copy(&l, id, (size_t)z.N * sizeof *id);
        if (here.now) there.now = acf_lab_copy(&l, &now, sizeof now);
        const uint8_t *b = acf_lab_copy(&l, l.b, (size_t)(z.N * z.D)), *m = acf_lab_copy(&l, l.m, (size_t)(z.N * z.D));
        const acf_subset *u = acf_tape_sequence(l.t, b, m, &there, z.N, z.D), *v;
        assert_non_null(u);
        assert_int_equal(acf_subset_order(l.mem, l.b, l.m, &here, z.N, z.D, &v), ACF_OK);
        same_subset(&l, u, v);
        acf_lab_close(&l);
    }
}

/* With capacity for part of the cells, rows are accepted in order as long as they fit; the others model nothing, and
 * are counted. */
static void rows_beyond_the_capacity_are_left_out(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open_on(&l, acf_test_device(), 700, 12, ACF_MASK_RANDOM, 3);
    int64_t left_out, taken = 0, expected = 0;
    assert_int_equal(l.dev->plugin->take_left_out(l.dev, &left_out), ACF_OK);
    l.t->capacity = 0.25;
    acf_lab_begin(&l, false);
    assert_int_equal(l.u->T, 2112); /* 2,100, rounded up to a multiple of 64 */
    for (int64_t i = 0, fits = true; i < l.N; i++) {
        fits = fits && taken + l.host->size[i] <= l.u->T;
        if (fits)
            taken += l.host->size[i];
        else
            expected += l.host->size[i] > 0, memset(l.b + i * l.D, 1, (size_t)l.D);
    }
    assert_int_equal(l.dev->plugin->take_left_out(l.dev, &left_out), ACF_OK);
    assert_int_equal(left_out, expected);
    assert_true(expected > 0);
    const acf_subset *small;
    assert_int_equal(acf_subset_build(l.mem, l.b, l.m, l.N, l.D, &small), ACF_OK);
    same_subset(&l, l.u, small);
    acf_lab_close(&l);
}

ACF_DEVICE_TESTS(subset, cmocka_unit_test(a_device_makes_the_same_subsets),
                 cmocka_unit_test(a_device_makes_the_same_orders),
                 cmocka_unit_test(rows_beyond_the_capacity_are_left_out))

ACF_TESTS(subset, cmocka_unit_test(fields_follow_the_definition), cmocka_unit_test(the_example_of_the_header),
          cmocka_unit_test(nothing_observed_nothing_missing), cmocka_unit_test(no_rows_no_columns),
          cmocka_unit_test(refuses_too_many_cells), cmocka_unit_test(survives_failing_allocations),
          cmocka_unit_test(orders_follow_the_definition), cmocka_unit_test(given_cells_come_first_then_stages),
          cmocka_unit_test(a_shuffle_depends_on_seed_draw_and_row), cmocka_unit_test(shuffles_are_even),
          cmocka_unit_test(orders_refuse_too_many_cells), cmocka_unit_test(orders_survive_failing_allocations),
          cmocka_unit_test(a_tape_makes_the_same_orders))
