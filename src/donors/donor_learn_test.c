/* Tests of donor_learn.h on synthetic tables with known relations. */
#include "donors/donor_learn.h"

#include "base/rng.h"
#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { MOST = 6000 * 4 };
#define ABSENT ((double)NAN)

/* A synthetic random table of up to MOST cells, and what is learned from it. */
typedef struct lab {
    acf_table *t;
    acf_encoder *e;
    acf_donors *m;
} lab;

static double cells[MOST];

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 11, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static double normal(int64_t row, uint32_t column) {
    return acf_rng_normal(
        (acf_rng_counter){.seed = 12, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static acf_donors *learned(const lab *l, const acf_holdout *hold, int threads) {
    acf_donors *m;
    assert_int_equal(acf_donors_make(l->t, l->e, hold, threads, &m), ACF_OK);
    return m;
}

/* Of the first N rows of cells. */
static lab open_lab(int64_t N, int64_t D, const acf_column *column) {
    lab l;
    assert_int_equal(acf_table_make(cells, NULL, N, D, column, &l.t), ACF_OK);
    assert_int_equal(acf_encoder_fit(l.t, NULL, NULL, &l.e), ACF_OK);
    l.m = learned(&l, NULL, 2);
    return l;
}

static void close_lab(lab *l) {
    acf_donors_free(l->m);
    acf_encoder_free(l->e);
    acf_table_free(l->t);
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g, expected %.17g", a, b);
}

/* All learned numbers are finite, within their limits, and 0 for a column's weight on itself. */
static void check_sane(const acf_donors *m) {
    for (int64_t j = 0; j < m->D; j++) {
        assert_true(isfinite(m->apart[j]) && m->apart[j] >= 0);
        if (!m->number[j]) assert_true(m->apart[j] == 0);
        assert_true(m->differ[j] >= 0.001 && m->differ[j] <= 0.999 && m->scale[j] >= 0.01 && m->scale[j] < 1e6 &&
                    isfinite(m->gain[j]));
        for (int64_t k = 0; k < m->D; k++) {
            const double near_k = m->near[j * m->D + k], other_k = m->other[j * m->D + k];
            assert_true(isfinite(near_k) && near_k >= 0 && isfinite(other_k) && other_k >= 0);
            if (k == j || !m->number[k]) assert_true(near_k == 0);
            if (k == j) assert_true(other_k == 0);
        }
    }
}

static bool same_bits(const acf_donors *a, const acf_donors *b) {
    const size_t D = (size_t)a->D, square = D * D * sizeof(double), line = D * sizeof(double);
    return !memcmp(a->near, b->near, square) && !memcmp(a->other, b->other, square) &&
           !memcmp(a->differ, b->differ, line) && !memcmp(a->scale, b->scale, line) &&
           !memcmp(a->apart, b->apart, line) && !memcmp(a->gain, b->gain, line);
}

/* ---- distances ------------------------------------------------------------------------------------------------- */

/* c follows a along a curve; b is noise. */
static void make_curve(int64_t N) {
    for (int64_t i = 0; i < N; i++) {
        const double a = 6 * uniform(i, 0) - 3;
        cells[i * 3] = a, cells[i * 3 + 1] = normal(i, 1), cells[i * 3 + 2] = sin(2 * a) + 0.05 * normal(i, 2);
    }
}

static void predictive_columns_gain_weight(void **state) {
    (void)state;
    for (int64_t N = 400; N <= 4500; N += 4100) { /* the second has more rows than the candidate donors */
        make_curve(N);
        lab l = open_lab(N, 3, NULL);
        const double *seen = l.m->near + 2 * 3;
        check_sane(l.m);
        assert_true(seen[0] > 10 && seen[1] < 1 && seen[0] > 30 * seen[1]);
        assert_true(l.m->near[1 * 3] < 2 && l.m->near[1 * 3 + 2] < 2); /* b depends on no column */
        assert_true(l.m->gain[2] > 0.8 && fabs(l.m->gain[1]) < 0.04);
        assert_true(l.m->differ[2] > 0.9 && l.m->scale[2] < 0.1 && l.m->scale[1] > 0.15);
        close_lab(&l);
    }
}

/* b depends on the class k alone; the class l is noise, and a third of the cells of k and l are missing. */
static void predictive_classes_gain_weight(void **state) {
    (void)state;
    enum { N = 400, D = 4 };
    const acf_column column[D] = {{"k", 5}, {"l", 5}, {"b", 0}, {"n", 0}};
    for (int i = 0; i < N; i++) {
        const double k = floor(5 * uniform(i, 0));
        cells[i * D] = uniform(i, 5) < 1.0 / 3 ? ABSENT : k,
                  cells[i * D + 1] = uniform(i, 6) < 1.0 / 3 ? ABSENT : floor(5 * uniform(i, 1));
        cells[i * D + 2] = 3 * fmod(2 * k, 5) + 0.3 * normal(i, 2), cells[i * D + 3] = normal(i, 3);
    }
    lab l = open_lab(N, D, column);
    const double *other = l.m->other;
    check_sane(l.m);
    assert_true(other[2 * D] > 1.5 && other[2 * D + 1] < 0.5 && other[2 * D] > 5 * other[2 * D + 1]);
    assert_true(l.m->near[0 * D + 2] > 2 &&
                l.m->near[0 * D + 3] < 0.8 * ACF_DONORS_SHARPER); /* and the number predicts the class */
    assert_true(l.m->gain[0] > 1 && fabs(l.m->gain[1]) < 0.04 && l.m->differ[0] < 0.2);
    close_lab(&l);
}

/* ---- a maximum ------------------------------------------------------------------------------------------------- */

/* The objective: Σ log q of the cells of column j, each row with the others as donors, less the prior's penalty. */
static double worth(const lab *l, int64_t j) {
    const int64_t D = l->t->D;
    double sum = 0, cells_of_j = 0;
    uint8_t known[8];
    acf_donor_search *r;
    assert_int_equal(acf_donor_search_create(l->m, &r), ACF_OK);
    for (int64_t i = 0; i < l->t->N; i++) cells_of_j += acf_table_present(acf_table_row(l->t, i)[j]);
    const double deviation = 1.2 / sqrt(1 + 200 / cells_of_j);
    for (int64_t i = 0; i < l->t->N; i++) {
        const double *x = acf_table_row(l->t, i);
        for (int64_t k = 0; k < D; k++) known[k] = acf_table_present(x[k]);
        if (acf_table_present(x[j]) && acf_donor_search_run(r, j, x, known, acf_table_row_id(l->t, i)))
            sum += log(acf_donor_search_density(r, j, x[j]));
    }
    for (int64_t k = 0; k < D; k++) {
        const double root = sqrt((double)(D - 1));
        if (k != j && l->m->number[k]) sum -= 0.5 * pow(log(l->m->near[j * D + k] * root / 1.3) / deviation, 2);
        if (k != j) sum -= 0.5 * pow(log(l->m->other[j * D + k] * root / 0.5) / deviation, 2);
    }
    if (l->m->apart[j] > 0) sum -= 0.5 * pow(log(l->m->apart[j] / 2) / deviation, 2);
    acf_donor_search_free(r);
    return sum;
}

/* Gain of the objective when *number is multiplied by e^change. */
static double better(const lab *l, int64_t j, double *number, double change) {
    const double kept = *number, before = worth(l, j);
    *number = kept * exp(change);
    const double after = worth(l, j);
    *number = kept;
    return after - before;
}

/* b follows a with noise, and a class that is often missing and wrong; in z and in the step of half a unit. */
static void what_is_learned_is_a_maximum(void **state) {
    (void)state;
    enum { N = 300, D = 4 };
    const acf_column column[D] = {{"a", 0}, {"k", 6}, {"b", 0}, {"n", 0}};
    for (int i = 0; i < N; i++) {
        const double a = 6 * uniform(i, 0), k = floor(6 * uniform(i, 1) * uniform(i, 4)),
                     wrong = floor(6 * uniform(i, 7));
        cells[i * D] = uniform(i, 5) < 0.1 ? ABSENT : a, cells[i * D + 1] = uniform(i, 6) < 0.3    ? ABSENT
                                                                            : uniform(i, 8) < 0.15 ? wrong
                                                                                                   : k;
        cells[i * D + 2] = floor(2 * (3 * sin(1.5 * a) + 2 * fmod(3 * k, 6) + 0.5 * normal(i, 2))) / 2,
                      cells[i * D + 3] = normal(i, 3);
    }
    lab l = open_lab(N, D, column);
    for (int again = 0; again < 2; again++) {
        for (int64_t k = 0; k < D * D; k++) l.m->near[k] /= ACF_DONORS_SHARPER, l.m->other[k] /= ACF_DONORS_SHARPER;
        for (int64_t j = 0; j < D; j++) l.m->apart[j] /= ACF_DONORS_SHARPER;
        for (int64_t j = 0; j < D; j++)
            for (double change = -1.5; change <= 2; change += 3)
                if (l.m->number[j]) assert_true(l.m->apart[j] > 0 && better(&l, j, &l.m->apart[j], change) < 1);
        for (int64_t j = 0; j < D; j++)
            for (int64_t k = 0; k < D; k++)
                for (double change = -1.5; change <= 2; change += 3) {
                    if (k == j) continue;
                    if (l.m->number[k]) assert_true(better(&l, j, &l.m->near[j * D + k], change) < 1);
                    assert_true(better(&l, j, &l.m->other[j * D + k], change) < 1);
                }
        /* For the column that follows others it is far below. */
        for (double change = -1.5; change <= 2; change += 3)
            assert_true(better(&l, 2, &l.m->near[2 * D], change) < -3 &&
                        better(&l, 2, &l.m->other[2 * D + 1], change) < -0.5);
        acf_donors_free(l.m);
        l.e->resolution[2] = (acf_resolution){5, 1};
        l.m = learned(&l, NULL, 1);
    }
    close_lab(&l);
}

/* Root mean square distance of the logarithms of all numbers from their prior means, in a random table of N rows. */
static double away_by_chance(int64_t N) {
    enum { D = 6 };
    const acf_column column[D] = {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"e", 0}, {"f", 0}};
    double square = 0, n = 0;
    for (int64_t i = 0; i < N * D; i++) cells[i] = normal(i, 0);
    lab l = open_lab(N, D, column);
    for (int64_t j = 0; j < D; j++)
        for (int64_t k = 0; k < D; k++)
            if (k != j) square += pow(log(l.m->near[j * D + k] / ACF_DONORS_SHARPER * sqrt(D - 1) / 1.3), 2), n++;
    close_lab(&l);
    return sqrt(square / n);
}

static void few_rows_stay_near_the_prior(void **state) {
    (void)state;
    assert_true(away_by_chance(30) < 0.3 && away_by_chance(2000) > 0.5);
}

/* ---- predicted values ------------------------------------------------------------------------------------------ */

enum { SUM, PRODUCT, SIZE };

/* y is a sum that no single column predicts, a product, or an absolute value; a class follows it. */
static lab open_sum(int kind) {
    enum { N = 500, D = 5 };
    static const acf_column column[D] = {{"a", 0}, {"b", 0}, {"c", 0}, {"y", 0}, {"k", 2}};
    for (int i = 0; i < N; i++) {
        double *x = cells + i * D;
        for (int k = 0; k < 3; k++) x[k] = normal(i, (uint32_t)k);
        x[3] = (kind == SUM ? x[0] + x[1] - x[2] : kind == PRODUCT ? x[0] * x[1] : fabs(x[0])) + 0.05 * normal(i, 3);
        x[4] = x[3] > 0.3;
        for (int k = 0; k < D; k++)
            if (uniform(i, (uint32_t)(20 + k)) < 0.05) x[k] = ABSENT;
    }
    return open_lab(N, D, column);
}

static void rows_with_equal_predictions_are_near(void **state) {
    (void)state;
    lab l = open_sum(SUM);
    check_sane(l.m);
    for (int j = 0; j < 4; j++) {
        const double kept = l.m->apart[j], with = worth(&l, j);
        assert_true(kept > 5 && l.m->gain[j] > 0.7);
        for (int k = 0; k < 3; k++) assert_true(l.m->near[j * 5 + k] < 0.3 * kept);
        l.m->apart[j] = 0;
        assert_true(with > worth(&l, j) + 100);
        l.m->apart[j] = kept;
        for (double change = -1; change <= 1; change += 2) { /* it is a maximum here, too: a small share of 500 cells */
            l.m->apart[j] = kept / ACF_DONORS_SHARPER;
            for (int k = 0; k < 5; k++)
                l.m->near[j * 5 + k] /= ACF_DONORS_SHARPER, l.m->other[j * 5 + k] /= ACF_DONORS_SHARPER;
            assert_true(better(&l, j, &l.m->apart[j], change) < -5);
            for (int k = 0; k < 5; k++)
                l.m->near[j * 5 + k] *= ACF_DONORS_SHARPER, l.m->other[j * 5 + k] *= ACF_DONORS_SHARPER;
            l.m->apart[j] = kept;
        }
    }
    assert_true(l.m->apart[4] == 0 && l.m->gain[4] > 0.1);
    close_lab(&l);
}

static void nonlinear_columns_are_learned_too(void **state) {
    (void)state;
    for (int kind = PRODUCT; kind <= SIZE; kind++) {
        lab l = open_sum(kind);
        check_sane(l.m);
        assert_true(l.m->apart[3] > 0 && l.m->apart[3] < 20 && l.m->gain[3] > 0.2);
        assert_true(fabs(l.m->gain[2]) < 0.05 && l.m->apart[2] < 5);
        close_lab(&l);
    }
}

/* ---- copies ---------------------------------------------------------------------------------------------------- */

/* Rows in pairs that share a unique name. In the second column 70 % of the pairs are equal, and the others differ by
 * Laplace noise. In the third nine in ten classes are equal, the others random. The last is noise. */
static void copies_are_told_from_near_rows(void **state) {
    (void)state;
    enum { N = 1200, D = 4 };
    const acf_column column[D] = {{NULL, 0}, {NULL, 8}, {NULL, 0}, {NULL, 0}};
    for (int i = 0; i < N; i++) {
        const int twin = i / 2;
        const double u = uniform(i, 3), noise = u < 0.5 ? log(2 * u) : -log(2 * (1 - u));
        cells[i * D] = floor(90000 * uniform(twin, 0));
        cells[i * D + 1] = floor(8 * (i % 2 && uniform(i, 6) < 0.1 ? uniform(i, 7) : uniform(twin, 1)));
        cells[i * D + 2] = 10 * normal(twin, 2) + (i % 2 && uniform(i, 4) < 0.3 ? noise : 0);
        cells[i * D + 3] = normal(i, 5);
    }
    for (int i = 0; i < N; i += 11) cells[i * D + i / 11 % D] = ABSENT;
    lab l = open_lab(N, D, column);
    check_sane(l.m);
    near(l.m->differ[2], 0.33, 0.06); /* more than a tenth of a tenth have lost their twin */
    near(l.m->differ[1], 0.1, 0.05);
    assert_true(l.m->differ[3] > 0.97);
    assert_true(l.m->scale[2] > 0.05 && l.m->scale[2] < 0.25); /* 1 of 10, and 1 of those without a twin */
    assert_true(l.m->scale[3] > 0.15 && l.m->scale[3] < 1);
    assert_true(l.m->gain[2] > 3 && l.m->gain[1] > 1.3 && l.m->gain[1] < log(8) && fabs(l.m->gain[3]) < 0.04);
    assert_true(l.m->other[2 * D] > 3 * l.m->other[2 * D + 3]);
    assert_true(l.m->scale[1] == 0.3); /* classes have no distance */
    close_lab(&l);
}

/* Pairs of rows that share a name. A fourth of the copies have a random one of two classes, and half of these still
 * agree. Half have a number with noise, which is often rounded to none. */
static void a_copy_may_agree_by_chance(void **state) {
    (void)state;
    enum { N = 1200, D = 3 };
    const acf_column column[D] = {{NULL, 0}, {NULL, 2}, {NULL, 0}};
    for (int i = 0; i < N; i++) {
        const int twin = i / 2;
        const double u = uniform(i, 3), noise = u < 0.5 ? log(2 * u) : -log(2 * (1 - u));
        cells[i * D] = floor(90000 * uniform(twin, 0));
        cells[i * D + 1] = floor(2 * (i % 2 && uniform(i, 6) < 0.25 ? uniform(i, 7) : uniform(twin, 1)));
        cells[i * D + 2] = floor(10 * normal(twin, 2)) + (i % 2 && uniform(i, 8) < 0.5 ? floor(1.5 * noise + 0.5) : 0);
    }
    lab l = open_lab(N, D, column);
    near(l.m->differ[1], 0.25, 0.05); /* an eighth differ */
    acf_donors_free(l.m);
    l.e->resolution[2] = (acf_resolution){1, 0};
    l.m = learned(&l, NULL, 2);
    check_sane(l.m);
    near(l.m->differ[2], 0.5, 0.06); /* less than four in ten differ */
    near(l.m->scale[2], 0.15, 0.03);
    close_lab(&l);
}

/* ---- cells held out -------------------------------------------------------------------------------------------- */

/* Every row of two cells has one of them held out: the other has no given cells, and all numbers stay at their prior.
 * */
static void held_out_cells_are_neither_target_nor_given(void **state) {
    (void)state;
    enum { N = 300, D = 2 };
    acf_holdout *hold;
    for (int i = 0; i < N; i++)
        cells[i * D] = normal(i, 0), cells[i * D + 1] = sin(3 * cells[i * D]) + 0.02 * normal(i, 1);
    lab l = open_lab(N, D, NULL);
    assert_int_equal(acf_holdout_create(l.t, NULL, 0.999999, 3, &hold), ACF_OK);
    assert_int_equal(hold->held, N);
    acf_donors *m = learned(&l, hold, 1);
    check_sane(m);
    near(m->near[0 * D + 1], 1.3 * ACF_DONORS_SHARPER, 1e-9), near(m->near[1 * D], 1.3 * ACF_DONORS_SHARPER, 1e-9);
    near(m->other[0 * D + 1], 0.5 * ACF_DONORS_SHARPER, 1e-9), near(m->other[1 * D], 0.5 * ACF_DONORS_SHARPER, 1e-9);
    near(m->apart[0], 2 * ACF_DONORS_SHARPER, 1e-9), near(m->apart[1], 2 * ACF_DONORS_SHARPER, 1e-9);
    near(m->gain[1], 0, 1e-6);
    assert_true(l.m->near[1 * D] > 5 && l.m->gain[1] > 0.5);
    acf_donors_free(m);
    acf_holdout_free(hold);
    close_lab(&l);
}

/* The last column is the only observed one in its rows, and held out: nothing is learned about it. */
static void a_column_without_targets_learns_nothing(void **state) {
    (void)state;
    enum { N = 100, D = 3 };
    acf_holdout *hold;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) cells[i * D + j] = (j == 2) == (i % 4 == 0) ? normal(i, (uint32_t)j) : ABSENT;
    lab l = open_lab(N, D, NULL);
    assert_int_equal(acf_holdout_create(l.t, NULL, 0.999999, 3, &hold), ACF_OK);
    hold->keep[2] = -1;
    acf_donors *m = learned(&l, hold, 1);
    for (int k = 0; k < D; k++) assert_true(m->near[2 * D + k] == 0 && m->other[2 * D + k] == 0);
    assert_true(m->apart[2] == 0 && m->apart[0] > 0 && l.m->apart[2] > 0);
    assert_true(m->gain[2] == 0 && m->differ[2] == 0.3 && m->scale[2] == 0.3 && m->near[0 * D + 1] > 0 &&
                l.m->near[2 * D] > 0);
    acf_donors_free(m);
    acf_holdout_free(hold);
    close_lab(&l);
}

/* ---- threads, sizes, memory ------------------------------------------------------------------------------------ */

static void any_number_of_threads_learns_the_same_bits(void **state) {
    (void)state;
    enum { N = 90, D = 6 };
    const acf_column column[D] = {{NULL, 0}, {NULL, 3}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 4}};
    static const int threads[] = {1, 2, 5, 64, 0};
    for (int i = 0; i < N * D; i++)
        cells[i] = uniform(i, 9) < 0.2 ? ABSENT : column[i % D].classes ? floor(3 * uniform(i, 0)) : normal(i / 2, 1);
    lab l = open_lab(N, D, column);
    for (int k = 0; k < 5; k++) {
        acf_donors *m = learned(&l, NULL, threads[k]);
        assert_true(same_bits(m, l.m));
        acf_donors_free(m);
    }
    close_lab(&l);
}

/* Columns: a number, classes, a constant, an empty one, one with a single cell, and one with two that are equal. */
static void small_tables_are_learned_from(void **state) {
    (void)state;
    enum { D = 6 };
    const acf_column column[D] = {{NULL, 0}, {NULL, 2}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    for (int N = 0; N <= 12; N++) {
        for (int i = 0; i < N; i++) {
            const double row[D] = {N == 2 ? 5 : normal(i, 0), i % 2, 7, ABSENT, i ? ABSENT : 3, i < 2 ? 4 : ABSENT};
            memcpy(cells + i * D, row, sizeof row);
        }
        lab l = open_lab(N, D, column);
        check_sane(l.m);
        assert_true(l.m->gain[3] == 0 && l.m->gain[4] == 0 && l.m->differ[4] == 0.3 && l.m->other[4 * D] == 0);
        if (N <= 1)
            for (int k = 0; k < D * D; k++) assert_true(l.m->near[k] == 0 && l.m->other[k] == 0);
        else
            assert_true(l.m->near[2 * D] > 0 && l.m->other[5 * D + 1] > 0);
        close_lab(&l);
    }
    for (int64_t D1 = 1; D1 <= 2; D1++) { /* one column, and two equal rows */
        for (int i = 0; i < 4; i++) cells[i] = D1 == 1 ? i : 1 + i % 2;
        lab l = open_lab(4 / D1, D1, NULL);
        check_sane(l.m);
        close_lab(&l);
    }
}

/* Numbers far beyond all others, and the largest finite ones. */
static void extreme_numbers_are_learned_from(void **state) {
    (void)state;
    enum { N = 40, D = 3 };
    for (int i = 0; i < N; i++)
        cells[i * D] = i ? normal(i, 0) : 1e300, cells[i * D + 1] = i % 2 ? 1e308 : -1e308,
                  cells[i * D + 2] = 1e-300 * i;
    lab l = open_lab(N, D, NULL);
    check_sane(l.m);
    for (int j = 0; j < D; j++) assert_true(l.m->near[j * D + (j + 1) % D] > 0);
    close_lab(&l);
}

static void wide_tables_are_learned_from(void **state) {
    (void)state;
    enum { N = 60, D = 60 };
    for (int i = 0; i < N * D; i++) cells[i] = i % 7 ? normal(i / 3, 0) : ABSENT;
    lab l = open_lab(N, D, NULL);
    check_sane(l.m);
    close_lab(&l);
}

static void memory_may_run_out(void **state) {
    (void)state;
    enum { N = 20 };
    make_curve(N);
    lab l = open_lab(N, 3, NULL);
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status; n++) {
        acf_alloc_fail_at(n);
        status = acf_donors_learn(l.m, l.t, NULL, 2);
        acf_alloc_fail_at(0);
        assert_in_range(n, 1, 10);
        if (status) assert_int_equal(status, ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    close_lab(&l);
}

ACF_TESTS(donor_learn, cmocka_unit_test(predictive_columns_gain_weight),
          cmocka_unit_test(predictive_classes_gain_weight), cmocka_unit_test(what_is_learned_is_a_maximum),
          cmocka_unit_test(few_rows_stay_near_the_prior), cmocka_unit_test(rows_with_equal_predictions_are_near),
          cmocka_unit_test(nonlinear_columns_are_learned_too), cmocka_unit_test(a_copy_may_agree_by_chance),
          cmocka_unit_test(copies_are_told_from_near_rows),
          cmocka_unit_test(held_out_cells_are_neither_target_nor_given),
          cmocka_unit_test(a_column_without_targets_learns_nothing),
          cmocka_unit_test(any_number_of_threads_learns_the_same_bits), cmocka_unit_test(small_tables_are_learned_from),
          cmocka_unit_test(extreme_numbers_are_learned_from), cmocka_unit_test(wide_tables_are_learned_from),
          cmocka_unit_test(memory_may_run_out))
