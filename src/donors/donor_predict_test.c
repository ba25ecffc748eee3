/* Tests of donor_predict.h: coordinates of cells, and the rows' predicted values. */
#include "donors/donor_predict.h"

#include "base/rng.h"
#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 120, COLS = 6 };
#define ABSENT ((double)NAN)

/* Three numbers, a constant, three classes of which one is absent, two classes. */
static const acf_column columns[COLS] = {{"a", 0}, {"b", 4}, {"c", 0}, {"d", 0}, {"e", 2}, {"f", 0}};

typedef struct lab {
    acf_table *t;
    acf_encoder *e;
    acf_donors *m;
} lab;

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 21, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static double normal(int64_t row, uint32_t column) {
    return acf_rng_normal(
        (acf_rng_counter){.seed = 22, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static acf_donors *made(const lab *l, const acf_holdout *hold, int threads) {
    acf_donors *m;
    assert_int_equal(acf_donors_make(l->t, l->e, hold, threads, &m), ACF_OK);
    return m;
}

static lab open_lab(void) {
    static double x[ROWS * COLS];
    lab l;
    for (int i = 0; i < ROWS; i++) {
        const double common = normal(i, 0), row[COLS] = {common + 0.5 * normal(i, 1),
                                                         (int[]){0, 1, 3}[(int)(3 * uniform(i, 1))],
                                                         exp(common),
                                                         7,
                                                         common > 0,
                                                         normal(i, 2) - common};
        for (int j = 0; j < COLS; j++) x[i * COLS + j] = uniform(i, (uint32_t)(10 + j)) < 0.25 ? ABSENT : row[j];
    }
    x[5 * COLS + 2] = 500; /* eleven deviations away */
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, columns, &l.t), ACF_OK);
    assert_int_equal(acf_encoder_fit(l.t, NULL, NULL, &l.e), ACF_OK);
    l.m = made(&l, NULL, 1);
    return l;
}

static void close_lab(lab *l) {
    acf_donors_free(l->m);
    acf_encoder_free(l->e), acf_table_free(l->t);
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g, expected %.17g", a, b);
}

static bool same_gaussian(const acf_predictor *a, const acf_predictor *b) {
    return a->P == b->P && !memcmp(a->mean, b->mean, (size_t)(a->P * (a->P + 1)) * sizeof *a->mean);
}

static bool same_expected(const acf_donors *a, const acf_donors *b) {
    return a->N == b->N && a->D == b->D &&
           !memcmp(a->predicted, b->predicted, (size_t)(a->N * a->D) * sizeof *a->predicted);
}

/* ---- coordinates ----------------------------------------------------------------------------------------------- */

/* Donors whose columns have so many values, with nothing else set; below 0: classes. */
static acf_donors *of_values(int64_t D, const int *values, acf_encoder **e) {
    acf_donors *m;
    acf_column *column = calloc((size_t)D, sizeof *column);
    for (int64_t j = 0; j < D; j++) column[j].classes = values[j] < 0 ? -values[j] : 0;
    assert_int_equal(acf_encoder_create(column, D, e), ACF_OK);
    assert_int_equal(acf_donors_alloc(1, *e, 1, &m), ACF_OK);
    for (int64_t j = 0; j < D; j++) m->number[j] = values[j] >= 0, m->first[j + 1] = m->first[j] + abs(values[j]);
    assert_int_equal(acf_donors_predict_alloc(m), ACF_OK);
    free(column);
    return m;
}

static void check_widths(int64_t D, const int *values, const int *width) {
    acf_encoder *e;
    acf_donors *m = of_values(D, values, &e);
    assert_int_equal(m->predictor == NULL, width == NULL);
    for (int64_t j = 0; j < D; j++) {
        if (width && m->predictor->first[j + 1] - m->predictor->first[j] != width[j]) fail_msg("column %d", (int)j);
        assert_int_equal(acf_donors_predicts(m, j), width && width[j] && values[j] > 0);
    }
    acf_donors_free(m), acf_encoder_free(e);
}

static void columns_have_coordinates(void **state) {
    (void)state;
    check_widths(6, (int[]){2, -3, 1, -1, 0, 50}, (int[]){1, 2, 0, 0, 0, 1});
    check_widths(4, (int[]){-24, -25, 9, -2}, (int[]){23, 0, 1, 1});
    /* One column must be predictable from another. */
    check_widths(2, (int[]){-2, -3}, NULL);
    check_widths(3, (int[]){5, 1, -1}, NULL);
    check_widths(2, (int[]){1, -3}, NULL);
    check_widths(2, (int[]){5, -30}, NULL);
    check_widths(2, (int[]){5, -2}, (int[]){1, 1});
    check_widths(1, (int[]){5}, NULL);
}

/* 128 in all: numbers before classes, then the classes that fit. */
static void numbers_come_first_at_the_limit(void **state) {
    (void)state;
    enum { D = 140 };
    int values[D], width[D] = {0};
    for (int j = 0; j < D; j++) values[j] = 3, width[j] = j < 128;
    check_widths(D, values, width);
    values[0] = -2, width[0] = 0, width[128] = 1; /* a class column first */
    check_widths(D, values, width);
    int few[10] = {-24, -24, -24, 5,   -24,
                   -24, -24, 5,   -14, -12}; /* 2 + 5 · 23 = 117: 11 are left, for the last alone */
    check_widths(10, few, (int[]){23, 23, 23, 1, 23, 23, 0, 1, 0, 11});
}

static void coordinates_are_encoded_values_and_indicators(void **state) {
    (void)state;
    lab l = open_lab();
    const acf_donors *m = l.m;
    static const int64_t first[COLS + 1] = {0, 1, 3, 4, 4, 5, 6};
    assert_memory_equal(m->predictor->first, first, sizeof first);
    for (int64_t k = 0; k < COLS; k++)
        for (int i = 0; i < ROWS; i++) {
            const double x = acf_table_row(l.t, i)[k];
            double at[8];
            if (isnan(x)) continue;
            for (int p = 0; p < 8; p++) at[p] = -99;
            acf_donors_coordinates(m, k, acf_donors_position(m, k, x), acf_donors_code(m, k, x), at);
            for (int64_t p = 0; p < 8; p++) {
                if (p < first[k] || p >= first[k + 1]) {
                    assert_true(at[p] == -99);
                } else if (columns[k].classes) {
                    double have = 0, present = 0;
                    const double value = (double[]){0, 1}[p - first[k]]; /* the last, 3 and 1, has no coordinate */
                    for (int n = 0; n < ROWS; n++)
                        have += acf_table_row(l.t, n)[k] == value, present += !isnan(acf_table_row(l.t, n)[k]);
                    const double share = have / present;
                    near(at[p], ((x == value) - share) / sqrt(share * (1 - share)), 1e-12);
                } else {
                    assert_true(at[p] == fmin(fmax((double)acf_encode(l.e, k, x), -6), 6));
                }
            }
        }
    double at[8];
    acf_donors_coordinates(m, 2, ACF_R(-1e6), -1, at), assert_true(at[3] == -6);
    acf_donors_coordinates(m, 2, ACF_R(6.5), -1, at), assert_true(at[3] == 6);
    acf_donors_coordinates(m, 2, ACF_R(5.5), -1, at), assert_true(at[3] == 5.5);
    assert_true(m->place[2 * ROWS + 5] > 6);
    close_lab(&l);
}

/* ---- predicted values ------------------------------------------------------------------------------------------ */

/* Coordinates of a row, and which columns are known: cells that are observed and not held out. */
static void read_row(const lab *l, const acf_holdout *hold, int64_t i, double *x, uint8_t *known) {
    acf_holdout_row(hold, l->t, i, known);
    for (int64_t k = 0; k < l->t->D; k++) {
        const double v = acf_table_row(l->t, i)[k];
        known[k] = !isnan(v) && !known[k];
        if (known[k]) acf_donors_coordinates(l->m, k, acf_donors_position(l->m, k, v), acf_donors_code(l->m, k, v), x);
    }
}

/* e is learned from all N rows but those of this fold of five. */
static void learn_others(acf_predictor *e, const double *x, const uint8_t *known, int64_t N, int64_t part) {
    double *some = malloc((size_t)(N * e->P) * sizeof *some);
    uint8_t *of = malloc((size_t)(N * e->D));
    int64_t n = 0;
    for (int64_t i = 0; i < N; i++) {
        if (i % 5 == part) continue;
        memcpy(some + n * e->P, x + i * e->P, (size_t)e->P * sizeof *x);
        memcpy(of + n++ * e->D, known + i * e->D, (size_t)e->D);
    }
    assert_int_equal(acf_predictor_learn(e, some, of, n), ACF_OK);
    free(some), free(of);
}

/* Mean and precision are those of EM on the rows. m->predicted is from each row's other cells, by a Gaussian of the
 * other four folds. */
static void check_rows(const lab *l, const acf_holdout *hold, const acf_donors *m) {
    const int64_t N = l->t->N, D = l->t->D, P = m->predictor->P;
    double *x = calloc((size_t)(N * P), sizeof *x);
    uint8_t *known = calloc((size_t)(N * D), 1);
    int64_t width[COLS];
    acf_predictor *e;
    acf_predictor_scratch scratch;
    for (int64_t k = 0; k < D; k++) width[k] = m->predictor->first[k + 1] - m->predictor->first[k];
    assert_int_equal(acf_predictor_create(D, width, &e), ACF_OK);
    assert_int_equal(acf_predictor_scratch_open(e, &scratch), ACF_OK);
    for (int64_t i = 0; i < N; i++) read_row(l, hold, i, x + i * P, known + i * D);
    assert_int_equal(acf_predictor_learn(e, x, known, N), ACF_OK);
    assert_true(same_gaussian(e, m->predictor));
    for (int64_t part = 0; part < 5; part++) {
        learn_others(e, x, known, N, part);
        for (int64_t i = part; i < N; i += 5)
            for (int64_t j = 0; j < D; j++) {
                const bool number = !columns[j].classes && width[j];
                assert_int_equal(acf_donors_predicts(m, j), number);
                assert_true(m->predicted[j * N + i] ==
                            (number ? (acf_real)acf_predictor_cell(e, &scratch, x + i * P, known + i * D, j) : 0));
            }
    }
    acf_predictor_scratch_close(&scratch), acf_predictor_free(e);
    free(x), free(known);
}

static void rows_are_predicted_from_their_other_cells(void **state) {
    (void)state;
    lab l = open_lab();
    acf_holdout *hold;
    check_rows(&l, NULL, l.m);
    assert_int_equal(acf_holdout_create(l.t, NULL, 0.3, 4, &hold), ACF_OK);
    acf_donors *m = made(&l, hold, 2);
    check_rows(&l, hold, m);
    assert_true(!same_gaussian(m->predictor, l.m->predictor) && !same_expected(m, l.m));
    /* The same as for rows without those cells. */
    for (int i = 0; i < ROWS; i++) {
        uint8_t held[COLS];
        acf_holdout_row(hold, l.t, i, held);
        for (int j = 0; j < COLS; j++)
            if (held[j]) l.m->code[j * ROWS + i] = -1;
    }
    assert_int_equal(acf_donors_predict_learn(l.m, NULL, NULL, 1), ACF_OK);
    assert_true(same_gaussian(m->predictor, l.m->predictor) && same_expected(m, l.m));
    acf_donors_free(m);
    acf_holdout_free(hold);
    close_lab(&l);
}

/* Any Gaussian in a file gives finite predictions. */
static void predictions_are_bounded(void **state) {
    (void)state;
    lab l = open_lab();
    acf_predictor *e = l.m->predictor;
    acf_predictor_scratch scratch;
    double x[8] = {1, 2, 3, 4, 5, 6}, left;
    assert_int_equal(acf_predictor_scratch_open(e, &scratch), ACF_OK);
    for (int sign = -1; sign <= 1; sign += 2)
        for (int known = 0; known < 64; known++) {
            uint8_t of[COLS];
            for (int j = 0; j < COLS; j++) of[j] = known >> j & 1;
            for (int64_t p = 0; p < e->P; p++) e->mean[p] = sign * 1e30;
            for (int64_t j = 0; j < COLS; j++)
                if (acf_donors_predicts(l.m, j))
                    assert_true(fabs((double)acf_donors_predicted(e, &scratch, x, of, j, &left)) <= 1e6);
            for (int64_t p = 0; p < e->P; p++)
                e->mean[p] = sign * 9e5, e->precision[p * e->P] = e->precision[p] = p == 0;
            assert_true(acf_donors_predicted(e, &scratch, x, of, 0, &left) == ACF_R(9e5) * (acf_real)sign);
            e->mean[0] = sign * 2e6;
            assert_true(acf_donors_predicted(e, &scratch, x, of, 0, &left) == ACF_R(1e6) * (acf_real)sign);
        }
    acf_predictor_scratch_close(&scratch);
    close_lab(&l);
}

static void any_number_of_threads_predicts_the_same_bits(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 5, 200, 0};
    lab l = open_lab();
    for (int k = 0; k < 5; k++) {
        acf_donors *m = made(&l, NULL, threads[k]);
        assert_true(same_gaussian(m->predictor, l.m->predictor) && same_expected(m, l.m));
        acf_donors_free(m);
    }
    close_lab(&l);
}

static void classes_are_not_predicted(void **state) {
    (void)state;
    static const double x[] = {0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0};
    static const acf_column two[2] = {{"k", 2}, {"l", 2}};
    lab l;
    assert_int_equal(acf_table_make(x, NULL, 6, 2, two, &l.t), ACF_OK);
    assert_int_equal(acf_encoder_fit(l.t, NULL, NULL, &l.e), ACF_OK);
    l.m = made(&l, NULL, 2);
    assert_true(!l.m->predictor && l.m->apart[0] == 0 && l.m->apart[1] == 0);
    assert_int_equal(acf_donors_predict_learn(l.m, l.t, NULL, 2), ACF_OK);
    close_lab(&l);
}

/* ---- many rows ------------------------------------------------------------------------------------------------- */

/* With enough rows every row is predicted by the Gaussian of all, else none is. */
static void check_by_all(const acf_donors *m, bool enough) {
    acf_predictor_scratch scratch;
    double x[ACF_PREDICTOR_MOST];
    uint8_t known[ACF_PREDICTOR_MOST];
    int64_t same = 0;
    assert_int_equal(acf_predictor_scratch_open(m->predictor, &scratch), ACF_OK);
    for (int64_t i = 0; i < 20; i++) {
        for (int64_t k = 0; k < m->D; k++) x[k] = (double)m->place[k * m->N + i], known[k] = m->code[k * m->N + i] >= 0;
        same += m->predicted[i] == (acf_real)acf_predictor_cell(m->predictor, &scratch, x, known, 0);
    }
    assert_int_equal(same, enough ? 20 : 0);
    acf_predictor_scratch_close(&scratch);
}

/* Of N rows of D numbers EM uses `used`, evenly spaced. */
static void check_thinned(int64_t N, int64_t D, int64_t used) {
    int *values = malloc((size_t)D * sizeof *values);
    double *x = malloc((size_t)(used * D) * sizeof *x);
    uint8_t *known = malloc((size_t)(used * D));
    int64_t *width = malloc((size_t)D * sizeof *width);
    acf_encoder *e;
    acf_donors *m;
    acf_predictor *own;
    acf_column *column = calloc((size_t)D, sizeof *column);
    assert_int_equal(acf_encoder_create(column, D, &e), ACF_OK);
    assert_int_equal(acf_donors_alloc(N, e, 1, &m), ACF_OK);
    for (int64_t j = 0; j < D; j++) {
        m->number[j] = true, m->first[j + 1] = m->first[j] + 2, width[j] = 1;
        for (int64_t i = 0; i < N; i++)
            m->place[j * N + i] = (acf_real)normal(i * D + j, 0), m->code[j * N + i] = (i + j) % 501 == 0 ? -1 : 0;
    }
    assert_int_equal(acf_donors_predict_alloc(m), ACF_OK);
    assert_int_equal(acf_donors_predict_learn(m, NULL, NULL, 2), ACF_OK);
    assert_int_equal(acf_predictor_create(D, width, &own), ACF_OK);
    for (int64_t i = 0; i < used; i++)
        for (int64_t j = 0; j < D; j++) {
            const int64_t row = i * N / used;
            x[i * D + j] = (double)m->place[j * N + row], known[i * D + j] = m->code[j * N + row] >= 0;
        }
    assert_int_equal(acf_predictor_learn(own, x, known, used), ACF_OK);
    assert_true(same_gaussian(own, m->predictor));
    check_by_all(m, N >= 50 * D);
    acf_predictor_free(own), acf_donors_free(m), acf_encoder_free(e);
    free(values), free(x), free(known), free(width), free(column);
}

static void many_rows_are_thinned(void **state) {
    (void)state;
    check_thinned(4096, 2, 4096);
    check_thinned(4097, 2, 4096);
    check_thinned(9000, 3, 4096);
    check_thinned(2100, 128, 2048);
    check_thinned(100, 2, 100); /* just enough */
    check_thinned(99, 2, 99);
}

static void memory_may_run_out(void **state) {
    (void)state;
    lab l = open_lab();
    const int64_t live = acf_alloc_live();
    for (int step = 0; step < 2; step++)
        for (int64_t n = 1, done = 0; !done; n++) {
            acf_predictor *kept = l.m->predictor;
            if (step == 1) l.m->predictor = NULL;
            acf_alloc_fail_at(n);
            const acf_status status =
                step == 0 ? acf_donors_predict_learn(l.m, l.t, NULL, 2) : acf_donors_predict_alloc(l.m);
            acf_alloc_fail_at(0);
            done = status == ACF_OK;
            if (!done) assert_int_equal(status, ACF_EMEMORY);
            if (step == 1)
                assert_int_equal(l.m->predictor != NULL, done), acf_predictor_free(l.m->predictor),
                    l.m->predictor = kept;
            assert_in_range(n, done ? 2 : 1, 120);
            assert_int_equal(acf_alloc_live(), live);
        }
    close_lab(&l);
}

ACF_TESTS(donor_predict, cmocka_unit_test(columns_have_coordinates), cmocka_unit_test(numbers_come_first_at_the_limit),
          cmocka_unit_test(coordinates_are_encoded_values_and_indicators),
          cmocka_unit_test(rows_are_predicted_from_their_other_cells), cmocka_unit_test(predictions_are_bounded),
          cmocka_unit_test(any_number_of_threads_predicts_the_same_bits), cmocka_unit_test(classes_are_not_predicted),
          cmocka_unit_test(many_rows_are_thinned), cmocka_unit_test(memory_may_run_out))
