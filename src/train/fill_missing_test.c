/* Tests of fill_missing.h: the test for dependence, the imputed cells, a second pass that learns from them, and its
 * effect. */
#include "train/fill_missing.h"

#include "acflow.h"
#include "base/rng.h"
#include "harness/fit_lab.h"
#include "harness/train_lab.h"
#include "train/checkpoint.h"
#include "train/refit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLS = 4, A = 0, KIND = 1, B = 2, C = 3, MOST = 1000 };
static const acf_column columns[COLS] = {{"a", 0}, {"kind", 3}, {"b", 0}, {"c", 0}};

/* What missing cells of b depend on; those of c are missing completely at random. */
typedef enum why { CHANCE, BY_NUMBER, BY_CLASS, BY_ITSELF } why;

static double uniform(uint64_t seed, int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = seed, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static bool hidden(why w, const double *x, double u) {
    switch (w) {
    case BY_NUMBER: return u < (x[A] > 0.5 ? 0.45 : 0.1);
    case BY_CLASS: return u < (x[KIND] == 2 ? 0.5 : 0.1);
    case BY_ITSELF: return u < (x[B] > 0.5 ? 0.45 : 0.1);
    default: return u < 0.25;
    }
}

static acf_table *table_of(int64_t N, why w, uint64_t seed) {
    double x[MOST * COLS];
    acf_table *t;
    for (int64_t i = 0; i < N; i++) {
        double *row = x + i * COLS;
        row[A] = uniform(seed, i, 0), row[KIND] = floor(3 * uniform(seed, i, 1)),
        row[B] = floor(20 * uniform(seed, i, 2)) / 20, row[C] = row[A] + 0.1 * uniform(seed, i, 3);
        if (hidden(w, row, uniform(seed, i, 4))) row[B] = NAN;
        if (uniform(seed, i, 5) < 0.2) row[C] = NAN;
    }
    assert_int_equal(acf_table_make(x, NULL, N, COLS, columns, &t), ACF_OK);
    return t;
}

/* ---- the test -------------------------------------------------------------------------------------------------- */

static bool wanted(acf_table *t, int64_t rows) {
    acf_encoder *e;
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    const bool yes = acf_fill_wanted(t, &(acf_rows){.n = rows ? rows : t->N}, e);
    acf_encoder_free(e);
    acf_table_free(t);
    return yes;
}

static void independent_missing_cells_are_left(void **state) {
    (void)state;
    int chance = 0, itself = 0;
    for (uint64_t seed = 0; seed < 100; seed++)
        chance += wanted(table_of(400, CHANCE, seed), 0), itself += wanted(table_of(400, BY_ITSELF, seed), 0);
    assert_true(chance <= 5 && itself <= 5); /* one is expected */
    double whole[40 * COLS];
    acf_table *t;
    for (int i = 0; i < 40 * COLS; i++) whole[i] = i % COLS == KIND ? 0 : i; /* complete, with one constant column */
    assert_int_equal(acf_table_make(whole, NULL, 40, COLS, columns, &t), ACF_OK);
    assert_false(wanted(t, 0));
    for (int i = 0; i < 9; i++) whole[i * COLS + B] = NAN; /* nine missing cells, in the lowest rows */
    assert_int_equal(acf_table_make(whole, NULL, 40, COLS, columns, &t), ACF_OK);
    assert_false(wanted(t, 0));
    whole[9 * COLS + B] = NAN;
    assert_int_equal(acf_table_make(whole, NULL, 40, COLS, columns, &t), ACF_OK);
    assert_true(wanted(t, 0));
    assert_int_equal(acf_table_make(whole, NULL, 40, COLS, columns, &t), ACF_OK);
    assert_false(wanted(t, 19)); /* of these rows alone: too few without a missing cell */
}

static void dependent_missing_cells_are_found(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_true(wanted(table_of(400, BY_NUMBER, seed), 0));
        assert_true(wanted(table_of(400, BY_CLASS, seed), 0));
    }
}

/* ---- the imputed cells ----------------------------------------------------------------------------------------- */

enum { N = 150 };
static const char *const settings[] = {"seed=5", "steps=30", "valid-every=10", NULL};

static void open_lab(acf_train_lab *l, int threads, why w) {
    acf_train_lab_open(l, threads, settings);
    acf_train_lab_ready(l, table_of(N, w, 3));
}

static acf_train_end run(acf_train_lab *l) {
    acf_train_end end;
    if (acf_trainer_run(l->tr, NULL, &end)) fail_msg("%s", acf_error());
    return end;
}

static void begin(acf_train_lab *l) {
    if (acf_refit_begin(l->tr, run(l))) fail_msg("%s", acf_error());
}

static void fill(acf_train_lab *l) {
    if (acf_fill_rows(l->tr)) fail_msg("%s", acf_error());
}

static void only_missing_cells_are_filled(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, 1, BY_NUMBER);
    assert_true(!l.tr->fills && acf_fill_table(l.tr).x == l.table->x);
    begin(&l);
    assert_true(l.tr->fills && l.tr->stream && !l.tr->filled && acf_fill_table(l.tr).x == l.table->x);
    fill(&l);
    double spread[COLS] = {0};
    int64_t missing[COLS] = {0};
    for (int64_t c = 0; c < N * COLS; c++) {
        const double was = l.table->x[c], *is = l.tr->filled + c;
        double mean = 0, square = 0;
        for (int k = 0; k < ACF_FILL_TABLES; k++) {
            const double x = is[k * N * COLS];
            assert_true(isfinite(x) && (isnan(was) || x == was));
            mean += x / ACF_FILL_TABLES, square += x * x / ACF_FILL_TABLES;
        }
        if (isnan(was)) missing[c % COLS]++, spread[c % COLS] += square - mean * mean;
    }
    assert_true(missing[B] > 20 && missing[C] > 20 && missing[A] == 0 && missing[KIND] == 0);
    assert_true(sqrt(spread[B] / (double)missing[B]) > 0.1 &&
                sqrt(spread[C] / (double)missing[C]) > 0.02); /* independent draws */
    for (uint32_t epoch = 0; epoch < 2 * ACF_FILL_TABLES; epoch++) {
        l.tr->sampler.epoch = epoch;
        assert_true(acf_fill_table(l.tr).x == l.tr->filled + epoch % ACF_FILL_TABLES * N * COLS);
    }
    acf_train_lab_close(&l);
    open_lab(&l, 1, CHANCE);
    begin(&l);
    run(&l);
    assert_true(!l.tr->fills && !l.tr->stream && !l.tr->filled && !acf_trainer_record(l.tr, ACF_END_STEPS).filled);
    acf_train_lab_close(&l);
}

/* By the calibrated weights of the first pass, whatever the second pass's are, which are restored. */
static void the_first_pass_fills(void **state) {
    (void)state;
    acf_train_lab l, other;
    const size_t cells = ACF_FILL_TABLES * N * COLS * sizeof(double);
    open_lab(&l, 1, BY_NUMBER), open_lab(&other, 2, BY_NUMBER);
    begin(&l), begin(&other);
    const acf_params *ps = acf_net_params(l.net), *qs = acf_net_params(other.net);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    fill(&l);
    acf_real *value = malloc(bytes);
    for (int64_t k = 0; k < qs->total; k++) qs->value[k] = (acf_real)NAN;
    memcpy(value, qs->value, bytes);
    fill(&other);
    assert_memory_equal(qs->value, value, bytes);
    assert_memory_equal(l.tr->filled, other.tr->filled, cells);
    assert_true(l.tr->scale_factor != 0);
    for (int k = 0; k < 2; k++) { /* and by no other weights */
        acf_release(other.tr->filled), other.tr->filled = NULL;
        if (k)
            other.tr->best[0] += ACF_R(0.5);
        else
            other.tr->scale_factor += 0.5;
        fill(&other);
        assert_memory_not_equal(l.tr->filled, other.tr->filled, cells);
        if (!k) other.tr->scale_factor = l.tr->scale_factor;
    }
    free(value);
    acf_train_lab_close(&l);
    acf_train_lab_close(&other);
}

/* Bit for bit the same as a trainer made for the imputed table; all imputed tables are set to one of them here. */
static void a_second_pass_learns_from_them(void **state) {
    (void)state;
    acf_train_lab l, plain;
    open_lab(&l, 1, BY_NUMBER);
    begin(&l);
    fill(&l);
    for (int k = 1; k < ACF_FILL_TABLES; k++)
        memcpy(l.tr->filled + k * N * COLS, l.tr->filled, N * COLS * sizeof(double));
    char steps[32];
    snprintf(steps, sizeof steps, "steps=%d", (int)l.tr->set.steps);
    acf_train_lab_open(&plain, 2, (const char *[]){"seed=5", "valid=0", steps, NULL});
    acf_table *t;
    assert_int_equal(acf_table_make(l.tr->filled, NULL, N, COLS, columns, &t), ACF_OK);
    acf_train_lab_ready(&plain, t);
    plain.tr->data.encoder = l.tr->data.encoder; /* fitted to observed cells alone */
    run(&plain), run(&l);
    acf_train_lab_same(&l, &plain);
    assert_true(acf_trainer_record(l.tr, ACF_END_STEPS).filled && !acf_trainer_record(l.tr, ACF_END_STOPPED).filled);
    acf_train_lab_close(&l);
    acf_train_lab_close(&plain);
}

static void it_can_be_resumed(void **state) {
    (void)state;
    char path[] = "/tmp/acflow-fill-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    acf_train_lab whole, l, again;
    open_lab(&whole, 1, BY_NUMBER);
    begin(&whole);
    run(&whole);
    for (int k = 0; k < 2; k++) { /* before its first step, and in the middle */
        open_lab(&l, 1, BY_NUMBER);
        begin(&l);
        for (int64_t n = k * (l.tr->set.steps / 2); n > 0; n--) assert_int_equal(acf_trainer_step(l.tr, NULL), ACF_OK);
        assert_int_equal(acf_checkpoint_save(l.tr, path), ACF_OK);
        open_lab(&again, 2, BY_NUMBER);
        if (acf_checkpoint_load(again.tr, path)) fail_msg("%s", acf_error());
        assert_true(again.tr->pass == 2 && again.tr->fills);
        run(&again);
        acf_train_lab_same(&whole, &again);
        acf_train_lab_close(&l);
        acf_train_lab_close(&again);
    }
    acf_train_lab_close(&whole);
    unlink(path);
}

/* ---- the effect ------------------------------------------------------------------------------------------------ */

/* Two groups of the same size, which differ only in the missing cells of three numbers. Samples have as many of
 * either. */
static void samples_have_the_groups_that_the_table_has(void **state) {
    (void)state;
    enum { ROWS = 600, D = 4 };
    static const char *const some[] = {"steps",
                                       "300",
                                       "valid-every",
                                       "25",
                                       "likelihood-units",
                                       "32",
                                       "likelihood-layers",
                                       "1",
                                       "components",
                                       "4",
                                       "batch",
                                       "128",
                                       "lr",
                                       "0.005",
                                       "ensemble",
                                       "1",
                                       "donors",
                                       "false",
                                       "threads",
                                       "1",
                                       "seed",
                                       "1",
                                       "gmm",
                                       "0",
                                       NULL};
    double *x = malloc(2 * ROWS * D * sizeof *x), *drawn = x + ROWS * D, group = 0;
    uint8_t target[ROWS * D], given[ROWS * D] = {0};
    acf_table *t, *blank;
    acf_model *m;
    acf_session *s;
    memset(target, 1, sizeof target);
    for (int64_t i = 0; i < ROWS; i++) {
        x[i * D + 1] = (double)(i % 2);
        for (uint32_t j = 0; j < D; j++) {
            if (j == 1) continue;
            x[i * D + j] = uniform(8, i, j) < (i % 2 ? 0.55 : 0.05)
                               ? (double)NAN
                               : acf_rng_normal((acf_rng_counter){
                                     .seed = 9, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = j});
        }
    }
    assert_int_equal(acf_table_create(x, NULL, ROWS, D, (const int32_t[]){0, 2, 0, 0}, NULL, &t), ACF_OK);
    for (int64_t c = 0; c < ROWS * D; c++) x[c] = (double)NAN;
    assert_int_equal(acf_table_create(x, NULL, ROWS, D, (const int32_t[]){0, 2, 0, 0}, NULL, &blank), ACF_OK);
    if (acf_fit_lab_fit(t, acf_fit_lab_options(some, NULL), NULL, NULL, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    if (acf_session_draw(s, blank, given, target, 1, 0, drawn)) fail_msg("%s", acf_error());
    for (int64_t i = 0; i < ROWS; i++) group += drawn[i * D + 1] / ROWS;
    print_message("share of the group with holes in samples: %.3f\n", group);
    acf_assert_close(group, 0.5, 0.08, "share of a group");
    acf_session_free(s);
    acf_model_free(m);
    acf_table_free(blank);
    free(x);
}

ACF_TESTS(fill_missing, cmocka_unit_test(independent_missing_cells_are_left),
          cmocka_unit_test(dependent_missing_cells_are_found), cmocka_unit_test(only_missing_cells_are_filled),
          cmocka_unit_test(the_first_pass_fills), cmocka_unit_test(a_second_pass_learns_from_them),
          cmocka_unit_test(it_can_be_resumed), cmocka_unit_test(samples_have_the_groups_that_the_table_has))
