/* Tests of donors.h: what is stored, and donor searches against the formulas, by loops over the cells of the table. */
#include "donors/donors.h"

#include "base/rng.h"
#include "donors/donor_predict.h"
#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9, COLS = 5 };
#define ABSENT ((double)NAN)
#define FIRST_ID 100
#define STRANGER 5
/* z is rounded to acf_real, and some five costs of up to 30 nats are summed: 24 bits leave 1e-5 of a nat, 53 bits
 * 1e-13. */
#define TIGHT (sizeof(acf_real) == 4 ? 3e-5 : 1e-11)

/* Halves; classes; a column without a step; a constant; an empty one. Rows 0, 4 and 8 agree where both are known. */
static const double cells[ROWS * COLS] = {
    1.5,    2,      0.31,   7,      ABSENT, /* 0 */
    2.0,    0,      4.70,   7,      ABSENT, /* 1 */
    1.5,    ABSENT, 9.10,   7,      ABSENT, /* 2 */
    -3,     2,      0.31,   7,      ABSENT, /* 3 */
    1.5,    2,      0.31,   7,      ABSENT, /* 4 */
    ABSENT, 0,      4.20,   7,      ABSENT, /* 5 */
    2.0,    2,      9.10,   7,      ABSENT, /* 6 */
    1.5,    2,      4.20,   7,      ABSENT, /* 7 */
    1.5,    2,      ABSENT, ABSENT, ABSENT, /* 8 */
};
static const acf_column columns[COLS] = {{"a", 0}, {"b", 4}, {"c", 0}, {"d", 0}, {"e", 0}};

/* A table of these columns and its donors, with fixed numbers in place of the learned ones. */
typedef struct lab {
    acf_table *t;
    acf_encoder *e;
    acf_donors *m;
    acf_donor_search *r;
} lab;

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform(
        (acf_rng_counter){.seed = 5, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

static acf_encoder *encoder_of(const acf_table *t, bool normal_scores) {
    acf_encoder *e;
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    if (normal_scores) {
        assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){.normal_scores = true}), ACF_OK);
        assert_true(e->normal_scores[0].n == 0 &&
                    e->normal_scores[2].n > 2); /* three values have none: set for the test */
        assert_int_equal(acf_normal_scores_create(3, &e->normal_scores[0]), ACF_OK);
        for (int k = 0; k < 3; k++)
            e->normal_scores[0].t[k] = 3 * k - 3, e->normal_scores[0].z[k] = (double[]){-2, 0, 5}[k];
    }
    e->resolution[0] = (acf_resolution){5, 1};
    return e;
}

static lab open_lab(const double *x, int64_t N, bool normal_scores) {
    static const double differ[COLS] = {0.1, 0.25, 0.4, 0.02, 0.3}, scale[COLS] = {0.8, 1, 0.3, 2, 1};
    lab l = {0};
    assert_int_equal(acf_table_make(x, NULL, N, COLS, columns, &l.t), ACF_OK);
    l.t->first_id = FIRST_ID;
    l.e = encoder_of(l.t, normal_scores);
    assert_int_equal(acf_donors_make(l.t, l.e, NULL, 1, &l.m), ACF_OK);
    for (int j = 0; j < COLS; j++) {
        l.m->differ[j] = differ[j], l.m->scale[j] = scale[j];
        l.m->apart[j] = acf_donors_predicts(l.m, j) ? 0.4 + 0.3 * j : 0;
        for (int k = 0; k < COLS; k++) {
            l.m->near[j * COLS + k] = k == j || columns[k].classes ? 0 : 0.3 + 0.1 * j + 0.2 * k;
            l.m->other[j * COLS + k] = k == j ? 0 : 0.9 - 0.15 * j + 0.1 * k;
        }
    }
    acf_donors_ready(l.m);
    assert_int_equal(acf_donor_search_create(l.m, &l.r), ACF_OK);
    return l;
}

static lab small_lab(void) { return open_lab(cells, ROWS, false); }

/* N random rows, a seventh of the cells missing. */
static lab large_lab(int64_t N) {
    double *x = malloc((size_t)(N * COLS) * sizeof *x);
    for (int64_t i = 0; i < N; i++) {
        x[i * COLS] = floor(12 * uniform(i, 0)) / 2, x[i * COLS + 1] = floor(4 * uniform(i, 1) * uniform(i, 2));
        x[i * COLS + 2] = 10 * pow(uniform(i, 3), 2), x[i * COLS + 3] = 7,
                     x[i * COLS + 4] = uniform(i, 4) < 0.5 ? 1 : 3;
        for (int j = 0; j < COLS; j++)
            if (uniform(i, (uint32_t)(10 + j)) < 1.0 / 7) x[i * COLS + j] = ABSENT;
    }
    lab l = open_lab(x, N, false);
    free(x);
    return l;
}

static void close_lab(lab *l) {
    acf_donor_search_free(l->r), acf_donors_free(l->m);
    acf_encoder_free(l->e), acf_table_free(l->t);
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- stored rows ----------------------------------------------------------------------------------------------- */

static void cells_are_stored_as_codes(void **state) {
    (void)state;
    lab l = small_lab();
    const acf_donors *m = l.m;
    static const double value[] = {-3, 1.5, 2, 0, 2, 0.31, 4.2, 4.7, 9.1, 7};
    static const double count[] = {1, 5, 2, 2, 6, 3, 2, 1, 2, 8};
    static const int64_t first[COLS + 1] = {0, 3, 5, 9, 10, 10};
    assert_true(m->N == ROWS && m->D == COLS && m->encoder == l.e);
    assert_memory_equal(m->first, first, sizeof first);
    for (int k = 0; k < 10; k++) assert_true(m->value[k] == value[k] && m->share[k] == count[k] / 8);
    for (int j = 0; j < COLS; j++) {
        assert_true(m->number[j] == (columns[j].classes == 0) && m->shift[j] == 0 && !m->full[j]);
        for (int i = 0; i < ROWS; i++) {
            const double x = cells[i * COLS + j];
            const int32_t c = m->code[j * ROWS + i];
            assert_true(isnan(x) ? c == -1 : c >= 0 && m->value[m->first[j] + c] == x && acf_donors_code(m, j, x) == c);
        }
    }
    assert_true(acf_donors_code(m, 0, 1.75) == -1 && acf_donors_code(m, 0, -4) == -1 &&
                acf_donors_code(m, 0, 3) == -1 && acf_donors_code(m, 4, 0) == -1);
    for (int i = 0; i < ROWS; i++) assert_int_equal(m->id[i], FIRST_ID + i);
    assert_true(m->slope == 0 && m->agree == 0);
    close_lab(&l);
    acf_donors_free(NULL), acf_donor_search_free(NULL);
}

static void z_is_the_encoders(void **state) {
    (void)state;
    lab l = small_lab();
    acf_donors *m = l.m;
    for (int j = 0; j < COLS; j++) {
        for (int i = 0; i < ROWS; i++) {
            const double x = cells[i * COLS + j];
            const acf_real place = m->place[j * ROWS + i];
            assert_true(place == (isnan(x)             ? ACF_DONORS_ABSENT
                                  : columns[j].classes ? (acf_real)x
                                                       : acf_encode(l.e, j, x)));
            if (!isnan(x)) assert_true(acf_donors_position(m, j, x) == place);
        }
        for (int64_t k = m->first[j]; k < m->first[j + 1]; k++)
            assert_true(m->spot[k] == (double)acf_donors_position(m, j, m->value[k]));
    }
    /* Values beyond 1e6 are cut there. */
    assert_true(acf_donors_position(m, 2, 1e300) == ACF_R(1e6) && acf_donors_position(m, 2, -1e300) == ACF_R(-1e6));
    near((double)acf_donors_position(m, 2, l.e->mean[2] + 9e5 * l.e->scale[2]), 9e5, 0.1);
    /* A column is full where no cell is missing, as computed from the codes. */
    m->code[3 * ROWS + 8] = 0;
    acf_donors_ready(m);
    assert_true(m->full[3] && !m->full[0] && !m->full[4] && m->place[3 * ROWS + 8] == 0);
    close_lab(&l);
}

/* Shares are counts divided once, so that a reader of codes computes the same. */
static void shares_are_exact(void **state) {
    (void)state;
    lab l = large_lab(1000);
    for (int j = 0; j < COLS; j++)
        for (int64_t k = l.m->first[j]; k < l.m->first[j + 1]; k++) {
            double count = 0, present = 0;
            for (int64_t i = 0; i < l.t->N; i++)
                count += acf_table_row(l.t, i)[j] == l.m->value[k],
                    present += acf_table_present(acf_table_row(l.t, i)[j]);
            assert_true(l.m->share[k] == count / present);
            near(acf_donors_rare(l.m, j, (int32_t)(k - l.m->first[j])), -log(count / present), 1e-14);
        }
    near(acf_donors_rare(l.m, 2, -1), log(2000), 1e-14);
    close_lab(&l);
}

/* The step; 1 of classes. Without a step the smallest distance, or a small part of the scale where that is less; the
 * scale where there is one value. */
static void a_value_has_a_width(void **state) {
    (void)state;
    lab l = small_lab();
    acf_donors *m;
    l.e->resolution[0] = (acf_resolution){25, 2}, acf_encoder_set_scale(l.e, 3, 6), acf_encoder_set_scale(l.e, 4, 11);
    assert_int_equal(acf_donors_make(l.t, l.e, NULL, 1, &m), ACF_OK);
    assert_true(m->width[0] == 0.25 && m->width[1] == 1 && m->width[3] == 6 && m->width[4] == 11);
    near(m->width[2], 0.5, 1e-12), acf_donors_free(m); /* 4.7 - 4.2 */
    acf_encoder_set_scale(l.e, 2, 1e5);
    assert_int_equal(acf_donors_make(l.t, l.e, NULL, 1, &m), ACF_OK);
    near(m->width[2], 10, 1e-9), acf_donors_free(m);
    close_lab(&l);
}

static void memory_for_a_reader_is_separate(void **state) {
    (void)state;
    lab l = small_lab();
    acf_donors *m;
    assert_int_equal(acf_donors_alloc(2, l.e, 3, &m), ACF_OK);
    assert_true(m->N == 2 && m->D == COLS && m->encoder == l.e && m->slope == 0 && m->agree == 0);
    for (int j = 0; j < COLS; j++) {
        assert_true(m->width[j] == 0 && m->differ[j] == 0 && m->scale[j] == 0 && m->shift[j] == 0 && m->gain[j] == 0 &&
                    m->first[j + 1] == 0 && m->apart[j] == 0);
        assert_true(!m->number[j] && !m->full[j] && m->near[j] == 0 && m->other[j] == 0 &&
                    m->predicted[2 * j + 1] == 0); /* no two overlap: */
        m->width[j] = 1, m->differ[j] = 2, m->scale[j] = 3, m->shift[j] = 4, m->gain[j] = 5, m->number[j] = true,
        m->near[j] = 6, m->other[j] = 7, m->apart[j] = 8;
    }
    for (int j = 0; j < COLS; j++) {
        assert_true(m->width[j] == 1 && m->differ[j] == 2 && m->scale[j] == 3 && m->shift[j] == 4 && m->gain[j] == 5 &&
                    !m->full[j]);
        assert_true(m->near[j] == 6 && m->other[j] == 7 && m->apart[j] == 8 && !m->predictor);
    }
    acf_donors_free(m);
    close_lab(&l);
}

/* ---- the formulas, from the cells ------------------------------------------------------------------------------ */

static double cell(const lab *l, int64_t i, int64_t j) { return acf_table_row(l->t, i)[j]; }

static double place(const lab *l, int64_t j, double x) {
    return columns[j].classes ? x : fmin(fmax((double)acf_encode(l->e, j, x), -1e6), 1e6);
}

/* Cost between two values of column k, for target column j; rare: -log of x's share. */
static double apart(const lab *l, int64_t j, int64_t k, double rare, double x, double y) {
    const double a = place(l, k, x), b = place(l, k, y);
    return l->m->near[j * COLS + k] * fabs(a - b) + l->m->other[j * COLS + k] * rare * (a != b);
}

/* Variance of column j given the known cells of x; NaN: unknown. */
static double left_of(const lab *l, int64_t j, const double *x) {
    acf_predictor_scratch scratch;
    double row[64], left;
    uint8_t known[COLS];
    assert_int_equal(acf_predictor_scratch_open(l->m->predictor, &scratch), ACF_OK);
    for (int64_t k = 0; k < COLS; k++) {
        known[k] = x[k] == x[k];
        acf_donors_coordinates(l->m, k, known[k] ? acf_donors_position(l->m, k, x[k]) : 0,
                               known[k] ? acf_donors_code(l->m, k, x[k]) : -1, row);
    }
    acf_predictor_cell_both(l->m->predictor, &scratch, row, known, j, &left);
    acf_predictor_scratch_close(&scratch);
    return left;
}

/* The share of column j's explainable variance that the known cells of x explain: 0 with none, 1 with all. */
static double told_of(const lab *l, int64_t j, const double *x) {
    double none[COLS], all[COLS];
    for (int k = 0; k < COLS; k++) none[k] = NAN, all[k] = 0;
    const double alone = left_of(l, j, none), least = left_of(l, j, all);
    return (alone - left_of(l, j, x)) / (alone - least);
}

/* The nats that column k adds to C of row i. */
static double nats(const lab *l, int64_t j, int64_t k, double x, int64_t i) {
    double have = 0, present = 0, sum = 0;
    for (int64_t n = 0; n < l->t->N; n++) have += cell(l, n, k) == x, present += !isnan(cell(l, n, k));
    const double rare = have > 0 ? -log(have / present) : log(2 * (double)l->t->N);
    if (!isnan(cell(l, i, k))) return apart(l, j, k, rare, x, cell(l, i, k));
    for (int64_t n = 0; n < l->t->N; n++)
        if (!isnan(cell(l, n, k))) sum += apart(l, j, k, rare, x, cell(l, n, k)) / present;
    return sum;
}

/* Solves a (n,n) x = b, which becomes x. */
enum { MOST = 8 };
static void solve(double (*a)[MOST], double *b, int n) {
    for (int p = 0; p < n; p++)
        for (int i = 0; i < n; i++) {
            const double by = i == p ? 0 : a[i][p] / a[p][p];
            for (int k = 0; k < n; k++) a[i][k] -= by * a[p][k];
            b[i] -= by * b[p];
        }
    for (int p = 0; p < n; p++) b[p] /= a[p][p];
}

/* The coordinates of a value of column k, as many as it has: returns how many. */
static int coordinates(const lab *l, int64_t k, double x, double *out) {
    const acf_donors *m = l->m;
    const int n = (int)(m->first[k + 1] - m->first[k]) - 1;
    if (n < 1) return 0;
    if (!columns[k].classes) {
        *out = fmin(fmax(place(l, k, x), -6), 6);
        return 1;
    }
    for (int v = 0; v < n; v++) {
        const double share = m->share[m->first[k] + v];
        out[v] = ((x == m->value[m->first[k] + v]) - share) / sqrt(share * (1 - share));
    }
    return n;
}

/* The predicted value of column j, a number, given x with NaN for unknown cells: solves Λ_uu d_u = -Λ_uo d_o. */
static double predicted_value(const lab *l, int64_t j, const double *x) {
    const acf_predictor *e = l->m->predictor;
    double d[MOST] = {0}, a[MOST][MOST], b[MOST] = {0}, at = NAN;
    int u[MOST], n = 0, P = 0;
    for (int64_t k = 0; k < COLS; k++) {
        const bool known = k != j && !isnan(x[k]);
        const int first = P;
        P += coordinates(l, k, isnan(x[k]) ? 0 : x[k], d + P);
        for (int p = first; p < P; p++) d[p] = known ? d[p] - e->mean[p] : 0;
        for (int p = first; p < P && !known; p++) u[n++] = p;
    }
    assert_int_equal(P, e->P);
    for (int i = 0; i < n; i++) {
        for (int p = 0; p < P; p++) b[i] -= e->precision[u[i] * P + p] * d[p];
        for (int k = 0; k < n; k++) a[i][k] = e->precision[u[i] * P + u[k]];
    }
    solve(a, b, n);
    for (int i = 0; i < n; i++)
        if (u[i] == e->first[j]) at = e->mean[u[i]] + b[i];
    return at;
}

/* The row itself: it has the id, and no other value of a known cell. */
static bool itself(const lab *l, int64_t j, const double *x, uint64_t id, int64_t i) {
    bool same = acf_table_row_id(l->t, i) == id;
    for (int64_t k = 0; k < COLS; k++)
        same = same && (k == j || isnan(x[k]) || isnan(cell(l, i, k)) || x[k] == cell(l, i, k));
    return same;
}

/* C of all rows, from x with NaN where a cell is unknown. */
static void fill_costs(const lab *l, int64_t j, const double *x, uint64_t id, double *cost) {
    const double at = l->m->apart[j] > 0 ? predicted_value(l, j, x) : 0,
                 told = l->m->apart[j] > 0 ? told_of(l, j, x) : 0;
    for (int64_t i = 0; i < l->t->N; i++) {
        cost[i] = itself(l, j, x, id, i) || isnan(cell(l, i, j)) ? (double)INFINITY : 0;
        for (int64_t k = 0; k < COLS && isfinite(cost[i]); k++)
            if (k != j && !isnan(x[k])) cost[i] += nats(l, j, k, x[k], i);
        if (l->m->apart[j] > 0) cost[i] += told * l->m->apart[j] * fabs(at - (double)l->m->predicted[j * l->t->N + i]);
    }
}

static bool search(lab *l, int64_t j, const double *x, uint64_t id) {
    uint8_t known[COLS];
    for (int k = 0; k < COLS; k++) known[k] = acf_table_present(x[k]);
    return acf_donor_search_run(l->r, j, x, known, id);
}

/* log of the ratio of the rows' spread to that of donors with these weights (0: none). */
static double likeness_of(const lab *l, int64_t j, const double *weight) {
    double mean = 0, spread = 0, same = 0;
    for (int64_t i = 0; i < l->t->N; i++)
        if (weight[i] > 0) mean += weight[i] * place(l, j, cell(l, i, j));
    for (int64_t i = 0; i < l->t->N; i++) {
        if (weight[i] == 0) continue;
        spread += weight[i] * pow(place(l, j, cell(l, i, j)) - mean, 2);
        for (int64_t n = 0; n < l->t->N; n++)
            same += weight[n] > 0 && cell(l, n, j) == cell(l, i, j) ? weight[i] * weight[n] : 0;
    }
    return columns[j].classes ? -log(1 - same + 0.03) : -0.5 * log(spread + 0.03 * 0.03);
}

/* Checks a search against all of that. */
static void check_look(lab *l, int64_t j, const double *x, uint64_t id) {
    const int64_t N = l->t->N;
    double *cost = malloc((size_t)(3 * N) * sizeof *cost), *weight = cost + N, *found = cost + 2 * N, least = INFINITY,
           mean = 0, rows = 0, sum = 0, all = 0;
    fill_costs(l, j, x, id, cost);
    for (int64_t i = 0; i < N; i++) least = fmin(least, cost[i]);
    assert_int_equal(search(l, j, x, id), isfinite(least));
    if (isfinite(least)) {
        for (int64_t i = 0; i < N; i++) {
            weight[i] = isfinite(cost[i]) ? exp(least - cost[i]) : 0, found[i] = 0;
            if (isfinite(cost[i])) mean += cost[i], rows++;
            if (weight[i] < 1e-6) weight[i] = 0;
            sum += weight[i];
        }
        for (int64_t k = 0; k < l->r->n; k++) {
            const int64_t i = l->r->donor[k];
            assert_true(i >= 0 && i < N && found[i] == 0 && l->r->weight[k] > 0 && (k == 0 || l->r->donor[k - 1] < i));
            found[i] = l->r->weight[k], all += found[i];
        }
        near(all, 1, 1e-12);
        /* A row at the very limit of weights may have none. */
        for (int64_t i = 0; i < N; i++)
            near(found[i], weight[i] / sum,
                 TIGHT * weight[i] / sum + (weight[i] < 1.01e-6 && found[i] * sum < 1.01e-6 ? 1.01e-6 / sum : 0));
        for (int64_t i = 0; i < N; i++) assert_true(!(cost[i] - least > log(1e6) + 0.01) || found[i] == 0);
        near(l->r->peak, log1p(fmax(mean / rows - least + log(sum / rows), 0)), 4 * TIGHT + 3e-6);
        near(l->r->alike, likeness_of(l, j, found), 1e-4);
    } else
        assert_true(l->r->n == 0 && acf_donor_search_trust(l->r, j) == 0);
    free(cost);
}

/* A row of the table, two others; values that no row has; nothing known; far from all rows. */
static const double target[][COLS] = {{1.5, 2, 0.31, 7, ABSENT},
                                      {2.0, ABSENT, 4.2, ABSENT, ABSENT},
                                      {1.6, 3, 0.31, -7, 1},
                                      {20, ABSENT, ABSENT, ABSENT, ABSENT},
                                      {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
                                      {-40, 1, 60, 7, 3}};
enum { ASKED = sizeof target / sizeof target[0] };

/* ---- search ---------------------------------------------------------------------------------------------------- */

static void donors_are_near_and_have_the_column(void **state) {
    (void)state;
    lab l = small_lab();
    for (int k = 0; k < ASKED; k++)
        for (int j = 0; j < COLS; j++)
            for (int own = -1; own < ROWS; own++)
                check_look(&l, j, target[k], own < 0 ? STRANGER : (uint64_t)(FIRST_ID + own));
    close_lab(&l);
}

/* More rows than one strip or block, an incomplete last block, and many distant rows; also columns without distances
 * (classes). */
static void many_rows_are_searched(void **state) {
    (void)state;
    static const int64_t size[] = {64, 65, 150, 300, 1024, 1025, 2100};
    for (int n = 0; n < 7; n++) {
        lab l = large_lab(size[n]);
        for (int k = 0; k < COLS * COLS; k++) l.m->near[k] *= 2 * ((k + n) % 3 > 0), l.m->other[k] *= 1.5;
        for (int k = 0; k < ASKED; k++)
            for (int j = 0; j < COLS; j++) check_look(&l, j, target[k], FIRST_ID + (uint64_t)(size[n] - 1));
        close_lab(&l);
    }
    lab l = large_lab(1000);
    for (int j = 0; j < COLS; j += 2) check_look(&l, j, target[0], STRANGER);
    for (int k = 0; k < COLS * COLS; k++) l.m->near[k] *= 3, l.m->other[k] *= 3;
    check_look(&l, 2, target[0], STRANGER);
    assert_in_range(l.r->n, 2, 900);
    close_lab(&l);
    double x[130 * COLS]; /* rows from the 64th on have 1e-5 of the others' weight */
    for (int i = 0; i < 130 * COLS; i++) x[i] = i % COLS ? 1 + i % 2 : i < 64 * COLS ? 1 : 2;
    l = open_lab(x, 130, false);
    l.m->apart[2] = 0, l.m->other[2 * COLS] = 0,
    l.m->near[2 * COLS] = log(1e5) / fabs(place(&l, 0, 1) - place(&l, 0, 2));
    check_look(&l, 2, (double[]){1, ABSENT, ABSENT, ABSENT, ABSENT}, STRANGER);
    assert_int_equal(l.r->n, 130);
    close_lab(&l);
}

/* Only known cells count: the content of the others is not read, nor that of the target cell. */
static void unknown_cells_are_not_read(void **state) {
    (void)state;
    lab l = small_lab();
    double weight[ROWS];
    l.m->near[2 * COLS + 2] = l.m->other[2 * COLS + 2] = 5;
    assert_true(search(&l, 2, (double[]){ABSENT, 2, ABSENT, 7, ABSENT}, STRANGER));
    const int64_t n = l.r->n;
    memcpy(weight, l.r->weight, (size_t)n * sizeof *weight);
    for (int k = 0; k < 3; k++) {
        const double poison[] = {1.5, -3, (double)NAN}, x[COLS] = {poison[k], 2, poison[k], 7, poison[k]};
        assert_true(acf_donor_search_run(l.r, 2, x, (uint8_t[]){0, 1, 1, 1, 0}, STRANGER) && l.r->n == n);
        assert_memory_equal(l.r->weight, weight, (size_t)n * sizeof *weight);
    }
    close_lab(&l);
}

/* A row with the same id from another file is another row, and gets the answer of a row without that id. */
static void a_row_is_identified_by_its_cells_too(void **state) {
    (void)state;
    lab l = small_lab();
    const double own[COLS] = {1.5, 2, ABSENT, 7, ABSENT};
    double x[COLS], weight[ROWS] = {0};
    memcpy(x, own, sizeof x);
    assert_true(search(&l, 2, x, FIRST_ID)); /* row 0 */
    for (int64_t k = 0; k < l.r->n; k++) assert_true(l.r->donor[k] != 0);
    for (int k = 0; k < COLS; k++) {
        memcpy(x, own, sizeof x);
        if (k == 2 || k == 4)
            x[k] = 3; /* the target, or missing in the stored row: neither makes it another row */
        else
            x[k] = k == 1 ? 0 : x[k] + 1;
        const bool other = k != 2 && k != 4;
        assert_true(search(&l, 2, x, STRANGER));
        const int64_t n = l.r->n;
        memcpy(weight, l.r->weight, (size_t)n * sizeof *weight);
        assert_true(search(&l, 2, x, FIRST_ID) && (l.r->n == n) == other);
        if (other) assert_memory_equal(l.r->weight, weight, (size_t)n * sizeof *weight);
    }
    close_lab(&l);
}

/* The value with most of the weight, in any order of donors; or the answer that none has more than half. */
static void a_majority_is_found(void **state) {
    (void)state;
    lab l = small_lab();
    static const int32_t donor[5] = {0, 1, 6, 3, 7}; /* 1.5, 2, 2, -3 and 1.5 */
    static const struct {
        double weight[5], value, mass;
    } cases[] = {{{0.3, 0.1, 0.1, 0.1, 0.4}, 1.5, 0.7},  {{0.2, 0.3, 0.3, 0.1, 0.1}, 2, 0.6},
                 {{0.05, 0.1, 0.1, 0.7, 0.05}, -3, 0.7}, {{0, 0.1, 0, 0.9, 0}, -3, 0.9},
                 {{0.3, 0.4, 0, 0, 0.3}, 1.5, 0.6},      {{0.2, 0.25, 0.15, 0.2, 0.2}, 0, 0}};
    for (int c = 0; c < 6; c++) {
        double x = NAN;
        l.r->n = 5;
        for (int k = 0; k < 5; k++) l.r->donor[k] = donor[k], l.r->weight[k] = cases[c].weight[k];
        const double mass = acf_donor_search_majority(l.r, 0, &x);
        if (cases[c].mass > 0)
            near(mass, cases[c].mass * (1 - l.m->differ[0]), 1e-12), assert_true(x == cases[c].value);
        else
            assert_true(mass <= 0.5);
    }
    close_lab(&l);
}

/* The share of the distance that the known columns carry: all for a complete row, hardly any for an empty one. */
static void less_is_given_where_less_is_known(void **state) {
    (void)state;
    lab l = small_lab();
    const double *x = cells, all = l.m->near[2 * COLS + 4] + l.m->other[2 * COLS + 4];
    double sum = 0;
    for (int k = 0; k < COLS; k++) sum += k == 2 ? 0 : l.m->near[2 * COLS + k] + l.m->other[2 * COLS + k];
    const uint8_t every[COLS] = {1, 1, 1, 1, 1}, none[COLS] = {0}, one[COLS] = {0, 0, 0, 0, 1};
    assert_true(acf_donor_search_run(l.r, 2, x, every, STRANGER));
    near(l.r->given, 0, 1e-15);
    assert_true(acf_donor_search_run(l.r, 2, x, none, STRANGER));
    near(l.r->given, log(0.02 / 1.02), 1e-12);
    assert_true(acf_donor_search_run(l.r, 2, x, one, STRANGER));
    near(l.r->given, log((all / sum + 0.02) / 1.02), 1e-12);
    for (int k = 0; k < COLS; k++) l.m->near[2 * COLS + k] = l.m->other[2 * COLS + k] = 0;
    assert_true(acf_donor_search_run(l.r, 2, x, none, STRANGER) && l.r->given == 0); /* no column has a weight */
    close_lab(&l);
}

/* The only row, searched with its own id, has no donor. */
static void a_row_alone_has_no_donor(void **state) {
    (void)state;
    lab l = open_lab(cells, 1, false);
    assert_false(search(&l, 0, cells, FIRST_ID));
    assert_true(l.r->n == 0 && l.r->peak == 0 && l.r->alike == 0 && acf_donor_search_trust(l.r, 0) == 0);
    assert_true(search(&l, 0, cells, STRANGER));
    assert_true(l.r->n == 1 && l.r->donor[0] == 0 && l.r->weight[0] == 1 && l.r->peak == 0);
    near(l.r->alike, -log(0.03), 1e-12);
    assert_true(!search(&l, 4, cells, STRANGER) && l.r->n == 0 &&
                acf_donor_search_trust(l.r, 4) == 0); /* no row has column 4 */
    close_lab(&l);
}

static void trust_follows_nearness_and_likeness(void **state) {
    (void)state;
    lab l = small_lab();
    assert_true(search(&l, 2, target[0], STRANGER));
    near(acf_donor_search_trust(l.r, 2), 0.5, 1e-15);
    l.m->shift[2] = -2, l.m->shift[1] = 3, l.m->slope = 0.5, l.m->agree = 0.25;
    assert_true(l.r->peak > 0.01 && fabs(l.r->alike) > 0.01);
    near(acf_donor_search_trust(l.r, 2), 1 / (1 + exp(2 - 0.5 * l.r->peak - 0.25 * l.r->alike)), 1e-15);
    l.r->peak = 3, l.r->alike = -1;
    near(acf_donor_search_trust(l.r, 2), 1 / (1 + exp(2 - 1.5 + 0.25)), 1e-15);
    near(acf_donor_search_trust(l.r, 1), 1 / (1 + exp(-3 - 1.5 + 0.25)), 1e-15);
    l.m->given = 0.8, l.r->given = -2;
    near(acf_donor_search_trust(l.r, 1), 1 / (1 + exp(-3 - 1.5 + 0.25 + 1.6)), 1e-15);
    l.r->peak = 1e9;
    assert_true(acf_donor_search_trust(l.r, 2) == ACF_DONOR_TRUST_MOST && ACF_DONOR_TRUST_MOST < 1);
    close_lab(&l);
}

static void missing_cells_have_the_mean_distance(void **state) {
    (void)state;
    lab l = large_lab(150);
    for (int64_t k = 0; k < COLS; k++)
        for (int a = 0; a < ASKED; a++) {
            double away = 0, another = 0, present = 0, x = isnan(target[a][k]) ? 3 : target[a][k], far, rest;
            for (int64_t i = 0; i < 150; i++) {
                if (isnan(cell(&l, i, k))) continue;
                const double d = fabs(place(&l, k, x) - place(&l, k, cell(&l, i, k)));
                away += d, another += d > 0, present++;
            }
            acf_donors_usual(l.m, k, acf_donors_position(l.m, k, x), &far, &rest);
            near(far, away / present, 1e-12 * (1 + away)), near(rest, another / present, 1e-12);
            l.m->full[k] = true, acf_donors_usual(l.m, k, acf_donors_position(l.m, k, x), &far, &rest),
            l.m->full[k] = false;
            assert_true(far == 0 && rest == 0);
        }
    close_lab(&l);
}

/* ---- the donors' distribution ---------------------------------------------------------------------------------- */

/* Donors of column j for a row in which the others are known. */
static void donors_of(lab *l, int j) {
    const double x[COLS] = {1.5, 2, 4.2, 7, ABSENT};
    assert_true(search(l, j, x, FIRST_ID + 7) && l->r->n > 3);
}

static double laplace_below(double z, double scale) { return z < 0 ? 0.5 * exp(z / scale) : 1 - 0.5 * exp(-z / scale); }

/* For the value x of column j: the point mass at x and the smooth part of q, times the width. */
static void told(const lab *l, int j, double x, double *very, double *smooth) {
    const acf_donors *m = l->m;
    const double half = acf_resolution_step(l->e->resolution[j]) / 2, s = m->scale[j],
                 slope = exp(acf_encode_log_slope(l->e, j, x)) * m->width[j];
    *very = *smooth = 0;
    for (int64_t k = 0; k < l->r->n; k++) {
        const double own = cell(l, l->r->donor[k], j), z = place(l, j, own), w = l->r->weight[k];
        *very += w * (1 - m->differ[j]) * (own == x);
        if (columns[j].classes) {
            double have = 0, present = 0;
            for (int64_t i = 0; i < l->t->N; i++) have += cell(l, i, j) == x, present += !isnan(cell(l, i, j));
            *smooth += w * m->differ[j] * have / present;
        } else if (half > 0) {
            *smooth += w * m->differ[j] *
                       (laplace_below(place(l, j, x + half) - z, s) - laplace_below(place(l, j, x - half) - z, s));
        } else {
            *smooth += w * m->differ[j] * slope * exp(-fabs(place(l, j, x) - z) / s) / (2 * s);
        }
    }
}

static void check_density(const lab *l, int j, double x) {
    double very, smooth;
    told(l, j, x, &very, &smooth);
    near(acf_donor_search_density(l->r, j, x) * l->m->width[j], very + smooth, TIGHT * (1e-3 + very + smooth));
}

static void probabilities_of_classes_sum_to_one(void **state) {
    (void)state;
    lab l = small_lab();
    double sum = 0;
    donors_of(&l, 1);
    for (int c = 0; c < columns[1].classes; c++) sum += acf_donor_search_density(l.r, 1, c), check_density(&l, 1, c);
    near(sum, 1, TIGHT);
    assert_true(acf_donor_search_density(l.r, 1, 0) > 0.25 * 2 / 8 && acf_donor_search_density(l.r, 1, 3) == 0);
    double all[4];
    assert_int_equal(columns[1].classes, 4);
    for (int c = 0; c < 4; c++) all[c] = c;
    acf_donor_search_add_classes(l.r, 1, 0.3, all);
    for (int c = 0; c < 4; c++) near(all[c], c + 0.3 * acf_donor_search_density(l.r, 1, c), TIGHT);
    close_lab(&l);
}

/* With a step: probabilities, divided by the width. Without: a density that integrates to ε, plus the point masses. */
static void densities_sum_to_one(void **state) {
    (void)state;
    for (int normal_scores = 0; normal_scores < 2; normal_scores++) {
        lab l = open_lab(cells, ROWS, normal_scores);
        double sum = 0, atoms = 0, total = 0;
        const double h = 2e-3;
        donors_of(&l, 0);
        for (double x = -60; x <= 60; x += 0.5)
            sum += acf_donor_search_density(l.r, 0, x) * l.m->width[0], check_density(&l, 0, x);
        near(sum, 1, 10 * TIGHT);
        donors_of(&l, 2);
        for (int64_t k = l.m->first[2]; k < l.m->first[3]; k++) {
            double very, smooth;
            told(&l, 2, l.m->value[k], &very, &smooth), check_density(&l, 2, l.m->value[k]);
            atoms += very;
            assert_true(smooth > 0);
        }
        near(atoms, 0.6, 1e-12);
        for (double x = -60; x < 70; x += h) total += acf_donor_search_density(l.r, 2, x + 0.3717 * h) * h;
        near(total, 0.4, 5e-4);
        for (double x = -3.3; x < 15; x += 0.7) check_density(&l, 2, x);
        close_lab(&l);
    }
}

static void a_donor_s_density_falls_with_distance(void **state) {
    (void)state;
    const acf_donors_kernel k = {.z = ACF_R(1.0),
                                 .from = ACF_R(0.75),
                                 .to = ACF_R(1.5),
                                 .rate = ACF_R(2.0),
                                 .low = ACF_R(0.1),
                                 .top = ACF_R(0.9)};
    assert_true(acf_donors_given(&k, ACF_R(1.0)) == ACF_R(0.9) && acf_donors_given(&k, ACF_R(0.75)) == ACF_R(0.1));
    assert_true(acf_donors_given(&k, ACF_R(1.5)) == ACF_R(0.1) && acf_donors_given(&k, ACF_R(1.25)) == ACF_R(0.1));
    near((double)acf_donors_given(&k, ACF_R(2.5)), 0.1 * exp(-2), 1e-7),
        near((double)acf_donors_given(&k, ACF_R(-0.25)), 0.1 * exp(-2), 1e-7);
}

/* ---- draws and means ------------------------------------------------------------------------------------------- */

/* The middle of donor k's part of the unit interval. */
static double turn(const lab *l, int64_t k) {
    double below = 0.5 * l->r->weight[k];
    for (int64_t i = 0; i < k; i++) below += l->r->weight[i];
    return below;
}

/* Over draws: the mean, and the share below an edge between two halves. */
enum { DRAWS = 4000 };
static void draw_many(const lab *l, int j, double edge, double *mean, double *below) {
    const double differ = l->m->differ[j];
    *mean = *below = 0;
    for (int64_t k = 0; k < l->r->n; k++) {
        const double w = l->r->weight[k],
                     same = acf_donor_search_draw(l->r, j, (double[]){turn(l, k), differ + 1e-9, 0.123});
        assert_true(same == cell(l, l->r->donor[k], j) &&
                    acf_donor_search_draw(l->r, j, (double[]){turn(l, k), 0.999, 0.9}) == same);
        *mean += w * (1 - differ) * same, *below += w * (1 - differ) * (same < edge);
        for (int n = 0; n < DRAWS; n++) {
            const double x = acf_donor_search_draw(l->r, j, (double[]){turn(l, k), differ - 1e-9, (n + 0.5) / DRAWS});
            assert_true(x >= l->e->least[j] && x <= l->e->most[j]);
            *mean += w * differ * x / DRAWS, *below += w * differ * (x < edge) / DRAWS;
        }
    }
}

/* For each donor by itself; with a scale of a fifth of the range, many draws are cut. */
static void means_are_those_of_draws(void **state) {
    (void)state;
    for (int run = 0; run < 6; run++) {
        const int j = (int[]){0, 2, 3}[run % 3];
        lab l = open_lab(cells, ROWS, run / 3);
        double mean, below;
        l.m->scale[2] = 0.5;
        acf_donors_ready(l.m);
        for (int i = 0; i < ROWS; i++) {
            if (isnan(cells[i * COLS + j])) continue;
            l.r->n = 1, l.r->donor[0] = i, l.r->weight[0] = 1;
            draw_many(&l, j, 0, &mean, &below);
            near(acf_donor_search_mean(l.r, j), mean, j == 3 ? 1e-9 : 0.02 * l.e->scale[j]);
        }
        close_lab(&l);
    }
}

static void draws_follow_the_density(void **state) {
    (void)state;
    lab l = small_lab();
    double mean, below, sum, expected, at[4] = {0};
    donors_of(&l, 0);
    for (double edge = -3.75; edge < 4; edge += 0.5) {
        draw_many(&l, 0, edge, &mean, &below);
        for (sum = 0, expected = -80.25 + 0.25; expected < edge; expected += 0.5)
            sum += acf_donor_search_density(l.r, 0, expected) * 0.5;
        near(below, sum, 1e-3);
    }
    donors_of(&l, 2);
    for (double edge = -0.7; edge < 11; edge += 1.3) {
        draw_many(&l, 2, edge, &mean, &below);
        expected = 0;
        for (int64_t k = 0; k < l.r->n; k++) {
            const double x = cell(&l, l.r->donor[k], 2);
            expected +=
                l.r->weight[k] * (0.6 * (x < edge) + 0.4 * laplace_below(place(&l, 2, edge) - place(&l, 2, x), 0.3));
        }
        near(below, expected, 1e-3);
    }
    donors_of(&l, 1);
    for (int n = 0; n < 200 * DRAWS; n++)
        at[(int)acf_donor_search_draw(
            l.r, 1, (double[]){(n % 100 + 0.5) / 100, (n / 100 % 80 + 0.5) / 80, (n / 8000 + 0.5) / 100})] +=
            1.0 / (200 * DRAWS);
    for (int c = 0; c < 4; c++) near(at[c], acf_donor_search_density(l.r, 1, c), 0.01);
    close_lab(&l);
}

/* The two parts of q: the donors' own values with their weights, ascending, and values that follow the Laplace
 * distributions of all donors. */
static void a_distribution_in_two_parts(void **state) {
    (void)state;
    enum { N = 2000 };
    static double other[N];
    lab l = small_lab();
    double value[ROWS], weight[ROWS];
    for (int j = 0; j < 3; j += 2) {
        double sum = 0;
        donors_of(&l, j);
        const int64_t n = acf_donor_search_observed(l.r, j, value, weight);
        assert_true(n > 1 && n <= acf_donor_search_capacity(l.m));
        for (int64_t v = 0; v < n; v++) {
            double very = 0;
            for (int64_t k = 0; k < l.r->n; k++) very += (cell(&l, l.r->donor[k], j) == value[v]) * l.r->weight[k];
            very *= 1 - l.m->differ[j];
            near(weight[v], very, 1e-12), sum += weight[v];
            assert_true(very > 0 && (v == 0 || value[v] > value[v - 1]));
        }
        near(sum, 1 - l.m->differ[j], 1e-12);
        for (int many = 0; many < 2; many++) {
            const int points = many ? N : 32;
            acf_donor_search_spread(l.r, j, points, other);
            for (double edge = j ? -0.7 : -3.75; edge < (j ? 11 : 4); edge += j ? 1.3 : 0.5) {
                double expected = 0, below = 0;
                for (int i = 0; i < points; i++) below += (other[i] < edge) / (double)points;
                for (int64_t k = 0; k < l.r->n; k++) {
                    const double away = place(&l, j, edge) - place(&l, j, cell(&l, l.r->donor[k], j));
                    expected += l.r->weight[k] * laplace_below(away, l.m->scale[j]);
                }
                near(below, expected, many ? 2e-3 : 0.06);
            }
        }
    }
    /* Weights that sum to less than 1 by rounding. */
    l.r->n = 2, l.r->donor[0] = 0, l.r->donor[1] = 3, l.r->weight[0] = 1 - 1e-9, l.r->weight[1] = 0;
    acf_donor_search_spread(l.r, 0, N, other);
    for (int i = 0; i < N; i++) assert_true(isfinite(other[i]));
    close_lab(&l);
}

/* At the ends of (0,1): the first and the last donor; quantiles of the Laplace distribution. */
static void draws_reach_every_donor(void **state) {
    (void)state;
    lab l = small_lab();
    const double almost = 1 - 0x1p-53, s = 0.3 * l.e->scale[2];
    donors_of(&l, 2);
    assert_true(acf_donor_search_draw(l.r, 2, (double[]){1e-300, 0.9, 0.5}) == 0.31 &&
                acf_donor_search_draw(l.r, 2, (double[]){almost, 0.9, 0.5}) ==
                    9.1); /* row 6: 7 is itself, 8 has none */
    assert_true(acf_donor_search_draw(l.r, 2, (double[]){1e-300, 0.4, 0.9}) == 0.31);
    near(acf_donor_search_draw(l.r, 2, (double[]){1e-300, 0.39, 0.75}), 0.31 + s * log(2), TIGHT);
    near(acf_donor_search_draw(l.r, 2, (double[]){1e-300, 0.39, 0.25}), 0.31 - s * log(2), TIGHT);
    assert_true(isfinite(acf_donor_search_draw(l.r, 2, (double[]){0.5, 0.1, 0x1p-53})) &&
                isfinite(acf_donor_search_draw(l.r, 2, (double[]){0.5, 0.1, almost})));
    donors_of(&l, 1);
    assert_true(acf_donor_search_draw(l.r, 1, (double[]){0.5, 0.2, 0.249}) == 0 &&
                acf_donor_search_draw(l.r, 1, (double[]){0.5, 0.2, 0.251}) == 2);
    assert_true(acf_donor_search_draw(l.r, 1, (double[]){0.5, 0.2, almost}) == 2);
    for (int64_t k = 0; k < l.r->n; k++) l.r->weight[k] *= 1 - 1e-6; /* as after rounding */
    assert_true(acf_donor_search_draw(l.r, 1, (double[]){almost, 0.9, 0.5}) == 2);
    l.m->share[l.m->first[1] + 1] -= 1e-9;
    assert_true(acf_donor_search_draw(l.r, 1, (double[]){0.5, 0.2, almost}) == 2);
    close_lab(&l);
}

/* ---- the least ------------------------------------------------------------------------------------------------- */

static void the_least_is_found_anywhere(void **state) {
    (void)state;
    enum { MOST_OF = 53 };
    acf_real x[MOST_OF];
    for (int n = 0; n <= MOST_OF; n++) {
        for (int i = 0; i < MOST_OF; i++) x[i] = i < n ? (acf_real)INFINITY : -1; /* entries beyond n are not read */
        assert_true(acf_donors_least(x, n) == (acf_real)INFINITY);
        for (int at = 0; at < n; at++) {
            for (int i = 0; i < n; i++) x[i] = i == at ? ACF_R(2.5) : (acf_real)(3 + i);
            assert_true(acf_donors_least(x, n) == ACF_R(2.5));
        }
    }
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void memory_may_run_out(void **state) {
    (void)state;
    lab l = small_lab();
    acf_donors *m = NULL;
    acf_donor_search *r = NULL;
    const int64_t live = acf_alloc_live();
    for (int64_t n = 1; !m; n++) {
        acf_alloc_fail_at(n);
        const acf_status status = acf_donors_make(l.t, l.e, NULL, 2, &m);
        acf_alloc_fail_at(0);
        assert_in_range(n, 1, 150);
        assert_int_equal(status, m ? ACF_OK : ACF_EMEMORY);
        if (!m) assert_int_equal(acf_alloc_live(), live);
    }
    const int64_t before = acf_alloc_live();
    for (int64_t n = 1; !r; n++) {
        acf_alloc_fail_at(n);
        const acf_status status = acf_donor_search_create(m, &r);
        acf_alloc_fail_at(0);
        assert_in_range(n, 1, 10);
        assert_int_equal(status, r ? ACF_OK : ACF_EMEMORY);
        if (!r) assert_int_equal(acf_alloc_live(), before);
    }
    acf_donor_search_free(r), acf_donors_free(m);
    assert_int_equal(acf_alloc_live(), live);
    close_lab(&l);
}

ACF_TESTS(donors, cmocka_unit_test(cells_are_stored_as_codes), cmocka_unit_test(z_is_the_encoders),
          cmocka_unit_test(shares_are_exact), cmocka_unit_test(a_value_has_a_width),
          cmocka_unit_test(memory_for_a_reader_is_separate), cmocka_unit_test(donors_are_near_and_have_the_column),
          cmocka_unit_test(many_rows_are_searched), cmocka_unit_test(unknown_cells_are_not_read),
          cmocka_unit_test(a_row_is_identified_by_its_cells_too), cmocka_unit_test(a_majority_is_found),
          cmocka_unit_test(a_row_alone_has_no_donor), cmocka_unit_test(trust_follows_nearness_and_likeness),
          cmocka_unit_test(less_is_given_where_less_is_known), cmocka_unit_test(missing_cells_have_the_mean_distance),
          cmocka_unit_test(probabilities_of_classes_sum_to_one), cmocka_unit_test(densities_sum_to_one),
          cmocka_unit_test(a_donor_s_density_falls_with_distance), cmocka_unit_test(means_are_those_of_draws),
          cmocka_unit_test(draws_follow_the_density), cmocka_unit_test(a_distribution_in_two_parts),
          cmocka_unit_test(draws_reach_every_donor), cmocka_unit_test(the_least_is_found_anywhere),
          cmocka_unit_test(memory_may_run_out))
