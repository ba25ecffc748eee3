/* Tests of archive.h: what is remembered, what EM finds, and look-ups against the formulas. */
#include "model/archive.h"

#include "base/rng.h"
#include "harness/check.h"

#include <math.h>

enum { ROWS = 9, COLS = 5 };
#define ABSENT ((double)NAN)

/* Halves; classes; a column without a step; a constant; one that is empty. Rows 0, 4 and 8 agree where both are known. */
static const double cells[ROWS * COLS] = {
    1.5,    2,      0.31, 7, ABSENT, /* 0 */
    2.0,    0,      4.70, 7, ABSENT, /* 1 */
    1.5,    ABSENT, 9.10, 7, ABSENT, /* 2 */
    -3,     2,      0.31, 7, ABSENT, /* 3 */
    1.5,    2,      0.31, 7, ABSENT, /* 4 */
    ABSENT, 0,      4.20, 7, ABSENT, /* 5 */
    2.0,    2,      9.10, 7, ABSENT, /* 6 */
    1.5,    2,      4.20, 7, ABSENT, /* 7 */
    1.5,    2, ABSENT, ABSENT, ABSENT, /* 8 */
};
static const acf_column columns[COLS] = {{"a", 0}, {"b", 4}, {"c", 0}, {"d", 0}, {"e", 0}};

static acf_table *some_table(void) {
    acf_table *t;
    assert_int_equal(acf_tab_create(cells, NULL, ROWS, COLS, columns, &t), ACF_OK);
    t->first_id = 100;
    return t;
}

static acf_encoder *some_encoder(const acf_table *t) {
    acf_encoder *e;
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    return e;
}

/* Of the table above, with numbers of our own in place of EM's. */
static acf_archive *some_archive(void) {
    static const double differ[COLS] = {0.1, 0.25, 0.4, 0.02, 0.3}, scale[COLS] = {0.8, 1, 0.3, 2, 1};
    acf_table *t = some_table();
    acf_encoder *e = some_encoder(t);
    acf_archive *m;
    e->resolution[0] = (acf_resolution){5, 1};
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    for (int j = 0; j < COLS; j++) m->differ[j] = differ[j], m->scale[j] = scale[j];
    acf_encoder_free(e);
    acf_tab_free(t);
    return m;
}

static acf_recall *some_recall(const acf_archive *m) {
    acf_recall *r;
    assert_int_equal(acf_recall_create(m, &r), ACF_OK);
    return r;
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- what is remembered ---------------------------------------------------------------------------------------------------- */

static void cells_are_remembered_as_codes(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    static const double value[] = {-3, 1.5, 2, 0, 2, 0.31, 4.2, 4.7, 9.1, 7};
    static const double count[] = {1, 5, 2, 2, 6, 3, 2, 1, 2, 8}, of[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    static const int64_t first[COLS + 1] = {0, 3, 5, 9, 10, 10};
    assert_int_equal(m->N, ROWS);
    assert_int_equal(m->D, COLS);
    assert_memory_equal(m->first, first, sizeof first);
    for (int k = 0; k < 10; k++) assert_true(m->value[k] == value[k] && m->share[k] == count[k] / of[k]);
    for (int j = 0; j < COLS; j++) {
        assert_true(m->number[j] == (columns[j].classes == 0) && m->shift[j] == 0);
        for (int i = 0; i < ROWS; i++) {
            const double x = cells[i * COLS + j];
            const int32_t c = m->code[j * ROWS + i];
            assert_true(isnan(x) ? c == -1 : c >= 0 && m->value[m->first[j] + c] == x);
        }
    }
    for (int i = 0; i < ROWS; i++) assert_int_equal(m->id[i], 100 + i);
    assert_true(m->slope == 0);
    acf_archive_free(m);
    acf_archive_free(NULL);
}

/* Shares are counts divided once, so that a reader of codes finds the same. */
static void shares_are_exact(void **state) {
    (void)state;
    enum { N = 1000 };
    double x[N];
    acf_table *t;
    acf_archive *m;
    for (int i = 0; i < N; i++) x[i] = i % 3 ? 4 : i % 7;
    assert_int_equal(acf_tab_create(x, NULL, N, 1, NULL, &t), ACF_OK);
    acf_encoder *e = some_encoder(t);
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    for (int64_t k = 0; k < m->first[1]; k++) {
        int count = 0;
        for (int i = 0; i < N; i++) count += x[i] == m->value[k];
        assert_true(m->share[k] == (double)count / N);
    }
    acf_archive_free(m);
    acf_encoder_free(e);
    acf_tab_free(t);
}

/* The step; 1 of classes; the smallest distance without a step, or a small part of the scale where that is less; the scale where there is one value. */
static void a_value_has_a_width(void **state) {
    (void)state;
    acf_table *t = some_table();
    acf_encoder *e = some_encoder(t);
    acf_archive *m;
    e->resolution[0] = (acf_resolution){5, 1};
    acf_encoder_set_scale(e, 3, 6);
    acf_encoder_set_scale(e, 4, 11);
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    assert_true(m->width[0] == 0.5 && m->width[1] == 1 && m->width[3] == 6 && m->width[4] == 11);
    near(m->width[2], 0.5, 1e-12); /* 4.7 - 4.2 */
    acf_archive_free(m);
    acf_encoder_set_scale(e, 2, 1e5);
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    near(m->width[2], 10, 1e-9);
    acf_archive_free(m);
    acf_encoder_free(e);
    acf_tab_free(t);
}

/* ---- EM ----------------------------------------------------------------------------------------------------------------------- */

static double uniform(int64_t row, uint32_t column) {
    return acf_rng_uniform((acf_place){.seed = 5, .row = (uint64_t)row, .stream = ACF_STREAM_TEST, .column = column});
}

/* Rows in pairs: three columns are the same in both but for one cell in ten of the third, which is then 2 more; the last is noise. */
static void columns_that_repeat_are_told_from_noise(void **state) {
    (void)state;
    enum { N = 1200, D = 4 };
    static double x[N * D];
    const acf_column column[D] = {{NULL, 0}, {NULL, 6}, {NULL, 0}, {NULL, 0}};
    acf_table *t;
    acf_archive *m;
    for (int i = 0; i < N; i++) {
        const int twin = i / 2;
        x[i * D] = floor(9000 * uniform(twin, 0)), x[i * D + 1] = floor(6 * uniform(twin, 1));
        x[i * D + 2] = 5 * floor(100 * uniform(twin, 2)) + (i % 2 && uniform(i, 3) < 0.1 ? 2 : 0);
        x[i * D + 3] = floor(50 * uniform(i, 4));
    }
    for (int i = 0; i < N; i += 11) x[i * D + i % D] = ABSENT;
    assert_int_equal(acf_tab_create(x, NULL, N, D, column, &t), ACF_OK);
    acf_encoder *e = some_encoder(t);
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    assert_true(m->differ[0] < 0.02 && m->differ[1] < 0.02);
    near(m->differ[2], 0.1, 0.03);
    assert_true(m->differ[3] > 0.9 && m->differ[3] <= 0.999 && m->differ[0] >= 0.001);
    /* Values that differ are 2 apart in the third column, but for rows that take another for their twin (167 then); some 17 in the last; classes have
     * no distance. */
    assert_true(m->scale[2] > 2 && m->scale[2] < 25);
    near(m->scale[3], 50.0 / 3, 3);
    assert_true(m->scale[1] == e->scale[1]);
    acf_archive_free(m);
    acf_encoder_free(e);
    acf_tab_free(t);
}

/* The scale is a width at least: values that differ are not nearer than that. */
static void a_scale_is_no_less_than_a_width(void **state) {
    (void)state;
    acf_table *t = some_table();
    acf_encoder *e = some_encoder(t);
    acf_archive *m;
    e->resolution[0] = (acf_resolution){50, 0};
    assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
    assert_true(m->width[0] == 50 && m->scale[0] == 50);
    for (int j = 0; j < COLS; j++) assert_true(m->differ[j] >= 0.001 && m->differ[j] <= 0.999);
    acf_archive_free(m);
    acf_encoder_free(e);
    acf_tab_free(t);
}

/* Nothing is learned where no row has another: what was assumed at first stays. */
static void a_row_alone_learns_nothing(void **state) {
    (void)state;
    acf_table *t;
    acf_archive *m;
    for (int64_t N = 0; N <= 1; N++) {
        assert_int_equal(acf_tab_create(cells, NULL, N, COLS, columns, &t), ACF_OK);
        acf_encoder *e = some_encoder(t);
        assert_int_equal(acf_archive_make(t, e, &m), ACF_OK);
        for (int j = 0; j < COLS; j++) assert_true(m->differ[j] == 0.3 && m->scale[j] == e->scale[j]);
        acf_archive_free(m);
        acf_encoder_free(e);
        acf_tab_free(t);
    }
}

/* ---- look-ups ------------------------------------------------------------------------------------------------------------- */

/* A of row i for a row with these cells, NaN: unknown. From the table itself. */
static double fit_of(const acf_archive *m, const double *x, int i) {
    double sum = 0;
    for (int j = 0; j < COLS; j++) {
        const double own = cells[i * COLS + j], differ = m->differ[j];
        double have = 0, present = 0;
        if (isnan(x[j]) || isnan(own)) continue;
        for (int k = 0; k < ROWS; k++) have += cells[k * COLS + j] == x[j], present += !isnan(cells[k * COLS + j]);
        sum += own == x[j] ? log((1 - differ) / (have / present) + differ) : log(differ);
    }
    return sum;
}

static void look_up(acf_recall *r, const double *x, uint64_t id) {
    uint8_t known[COLS];
    for (int j = 0; j < COLS; j++) known[j] = acf_tab_present(x[j]);
    acf_recall_row(r, x, known, id);
}

/* A row of the table, of others; one of values that no row has; one of which nothing is known. */
static const double asked[][COLS] = {{1.5, 2, 0.31, 7, ABSENT},
                                     {2.0, ABSENT, 4.2, ABSENT, ABSENT},
                                     {1.6, 3, 0.31, -7, 1},
                                     {100, ABSENT, ABSENT, ABSENT, ABSENT},
                                     {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}};
enum { ASKED = sizeof asked / sizeof asked[0] };

static void rows_that_agree_fit(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = some_recall(m);
    for (int k = 0; k < ASKED; k++)
        for (int own = -1; own < ROWS; own++) {
            look_up(r, asked[k], own < 0 ? 5 : (uint64_t)(100 + own));
            for (int i = 0; i < ROWS; i++)
                if (i == own) assert_true(r->fit[i] == -INFINITY);
                else near(r->fit[i], fit_of(m, asked[k], i), 1e-12);
        }
    acf_recall_free(r);
    acf_recall_free(NULL);
    acf_archive_free(m);
}

/* Known cells alone count: what stands in the others is not read. */
static void unknown_cells_are_not_read(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = some_recall(m);
    const double x[COLS] = {1.5, 2, 0.31, 7, 3};
    const uint8_t known[COLS] = {0, 1, 0, 0, 0};
    acf_recall_row(r, x, known, 5);
    near(r->fit[3], log(0.75 / (6.0 / 8) + 0.25), 1e-12);
    near(r->fit[1], log(0.25), 1e-12);
    assert_true(r->fit[2] == 0);
    acf_recall_free(r);
    acf_archive_free(m);
}

static void donors_have_the_column(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = some_recall(m);
    for (int k = 0; k < ASKED; k++)
        for (int j = 0; j < COLS; j++) {
            double sum = 0, weights = 0;
            int donors = 0;
            look_up(r, asked[k], 104);
            const double evidence = acf_recall_column(r, j);
            for (int i = 0; i < ROWS; i++)
                if (i != 4 && !isnan(cells[i * COLS + j])) sum += exp(fit_of(m, asked[k], i)), donors++;
            if (!donors) {
                assert_true(j == 4 && evidence == -INFINITY);
                continue;
            }
            near(evidence, log(sum / donors), 1e-12);
            for (int i = 0; i < ROWS; i++) {
                const bool gives = i != 4 && !isnan(cells[i * COLS + j]);
                near(r->weight[i], gives ? exp(fit_of(m, asked[k], i)) / sum : 0, 1e-12);
                weights += r->weight[i];
            }
            near(weights, 1, 1e-12);
        }
    acf_recall_free(r);
    acf_archive_free(m);
}

/* Fits far below what an exponential holds still have weights. */
static void far_fits_are_weighed(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = some_recall(m);
    for (int i = 0; i < ROWS; i++) r->fit[i] = -5000 - i * log(2);
    near(acf_recall_column(r, 3), -5000 + log((2 - pow(0.5, 7)) / 8), 1e-9);
    near(r->weight[0] / r->weight[1], 2, 1e-12);
    acf_recall_free(r);
    acf_archive_free(m);
}

/* One row, looked up by itself: it has no donor. */
static void a_row_alone_has_no_donor(void **state) {
    (void)state;
    acf_archive *m;
    assert_int_equal(acf_archive_room(1, 1, 1, &m), ACF_OK);
    assert_true(m->N == 1 && m->D == 1 && m->first[1] == 0 && m->share[0] == 0 && m->shift[0] == 0 && m->scale[0] == 0 && m->differ[0] == 0);
    m->first[1] = 1, m->share[0] = 1, m->differ[0] = 0.5, m->width[0] = 1, m->id[0] = 9;
    acf_recall *r = some_recall(m);
    acf_recall_row(r, (double[]){0}, (uint8_t[]){1}, 9);
    assert_true(acf_recall_column(r, 0) == -INFINITY);
    acf_recall_row(r, (double[]){0}, (uint8_t[]){1}, 8);
    near(acf_recall_column(r, 0), 0, 1e-12); /* log(0.5 / 1 + 0.5) */
    acf_recall_free(r);
    acf_archive_free(m);
}

/* Donors of column j for a row of which the others are known; some have weights of their own. */
static acf_recall *donors_of(const acf_archive *m, int j) {
    double x[COLS] = {1.5, 2, 4.2, 7, ABSENT};
    acf_recall *r = some_recall(m);
    x[j] = ABSENT;
    look_up(r, x, 107);
    assert_true(isfinite(acf_recall_column(r, j)));
    return r;
}

/* What the donors' weights say of a value of column j. */
static double weight_at(const acf_recall *r, int j, double x) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        if (cells[i * COLS + j] == x) sum += r->weight[i];
    return sum;
}

static void probabilities_of_classes_sum_to_one(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = donors_of(m, 1);
    double sum = 0;
    for (int c = 0; c < columns[1].classes; c++) sum += acf_recall_density(r, 1, c);
    near(sum, 1, 1e-12);
    near(acf_recall_density(r, 1, 2), 0.75 * weight_at(r, 1, 2) + 0.25 * 6 / 8, 1e-12);
    near(acf_recall_density(r, 1, 0), 0.75 * weight_at(r, 1, 0) + 0.25 * 2 / 8, 1e-12);
    assert_true(acf_recall_density(r, 1, 3) == 0);
    acf_recall_free(r);
    acf_archive_free(m);
}

/* Atoms times width is 1 - ε; the rest is a density that integrates to ε. */
static void a_density_integrates_to_one(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    for (int j = 0; j < 4; j += 2) {
        acf_recall *r = donors_of(m, j);
        double atoms = 0, smooth = 0, total = 0;
        const double h = 1e-3;
        for (int64_t k = m->first[j]; k < m->first[j + 1]; k++) {
            const double x = m->value[k], beside = acf_recall_density(r, j, x + 1e-9);
            atoms += (acf_recall_density(r, j, x) - beside) * m->width[j];
            near((acf_recall_density(r, j, x) - beside) * m->width[j], (1 - m->differ[j]) * weight_at(r, j, x), 1e-7);
        }
        for (double x = -30; x < 40; x += h) total += acf_recall_density(r, j, x + 0.3717 * h) * h;
        near(atoms, 1 - m->differ[j], 1e-6);
        near(total, m->differ[j], 1e-4);
        /* Away from all values it is the Laplace distributions around them. */
        for (int i = 0; i < ROWS; i++)
            if (r->weight[i] > 0) smooth += r->weight[i] * exp(-fabs(3.3 - cells[i * COLS + j]) / m->scale[j]) / (2 * m->scale[j]);
        near(acf_recall_density(r, j, 3.3), m->differ[j] * smooth, 1e-12);
        acf_recall_free(r);
    }
    acf_archive_free(m);
}

static void a_mean_is_that_of_the_density(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = donors_of(m, 2);
    double mean = 0;
    for (int64_t k = m->first[2]; k < m->first[3]; k++) mean += weight_at(r, 2, m->value[k]) * m->value[k];
    near(acf_recall_mean(r, 2), mean, 1e-12);
    assert_true(mean > 0.4 && mean < 9);
    acf_recall_free(r);
    acf_archive_free(m);
}

/* Draws by a grid of u: shares of the values, and of the space between them, are what the density says. */
static void draws_follow_the_density(void **state) {
    (void)state;
    enum { GRID = 80 };
    acf_archive *m = some_archive();
    for (int j = 0; j < 3; j++) {
        acf_recall *r = donors_of(m, j);
        double at[8] = {0}, below = 0, sum = 0, expected = 0;
        const double edge = 3.3;
        const int64_t n = m->first[j + 1] - m->first[j];
        for (int a = 0; a < GRID * GRID * GRID; a++) {
            const double u[3] = {(a % GRID + 0.5) / GRID, (a / GRID % GRID + 0.5) / GRID, (a / GRID / GRID + 0.5) / GRID};
            const double x = acf_recall_draw(r, j, u);
            for (int64_t k = 0; k < n; k++) at[k] += x == m->value[m->first[j] + k];
            below += x < edge, sum += x;
        }
        const double all = (double)GRID * GRID * GRID;
        for (int64_t k = 0; k < n; k++) {
            const double p = acf_recall_density(r, j, m->value[m->first[j] + k]);
            near(at[k] / all, m->number[j] ? (1 - m->differ[j]) * weight_at(r, j, m->value[m->first[j] + k]) : p, 0.02);
        }
        if (m->number[j]) {
            near(sum / all, acf_recall_mean(r, j), 0.1);
            for (int i = 0; i < ROWS; i++) {
                const double x = cells[i * COLS + j], tail = 0.5 * exp(-fabs(edge - x) / m->scale[j]);
                if (r->weight[i] > 0) expected += r->weight[i] * ((1 - m->differ[j]) * (x < edge) + m->differ[j] * (x < edge ? 1 - tail : tail));
            }
            near(below / all, expected, 0.02);
        }
        acf_recall_free(r);
    }
    acf_archive_free(m);
}

/* At the ends of (0,1): the first and the last donor, and never one without weight; quantiles of the Laplace distribution. */
static void draws_reach_every_donor(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    acf_recall *r = donors_of(m, 2);
    const double almost = 1 - 0x1p-53;
    assert_true(acf_recall_draw(r, 2, (double[]){1e-300, 0.9, 0.5}) == 0.31);
    assert_true(acf_recall_draw(r, 2, (double[]){almost, 0.9, 0.5}) == 9.1); /* row 6: 7 is itself, 8 has none */
    assert_true(acf_recall_draw(r, 2, (double[]){1e-300, 0.4, 0.9}) == 0.31);
    near(acf_recall_draw(r, 2, (double[]){1e-300, 0.39, 0.75}), 0.31 + 0.3 * log(2), 1e-12);
    near(acf_recall_draw(r, 2, (double[]){1e-300, 0.39, 0.25}), 0.31 - 0.3 * log(2), 1e-12);
    acf_recall_free(r);
    r = donors_of(m, 1);
    assert_true(acf_recall_draw(r, 1, (double[]){0.5, 0.2, 0.249}) == 0 && acf_recall_draw(r, 1, (double[]){0.5, 0.2, 0.251}) == 2);
    assert_true(acf_recall_draw(r, 1, (double[]){0.5, 0.2, almost}) == 2);
    for (int i = 0; i < ROWS; i++) r->weight[i] *= 1 - 1e-6; /* as rounding may leave it */
    assert_true(acf_recall_draw(r, 1, (double[]){almost, 0.9, 0.5}) == 2);
    acf_recall_free(r);
    acf_archive_free(m);
}

static void trust_grows_with_evidence(void **state) {
    (void)state;
    acf_archive *m = some_archive();
    near(acf_recall_trust(m, 0, 3), 0.5, 1e-15);
    m->shift[1] = -2, m->slope = 0.5;
    near(acf_recall_trust(m, 1, 3), 1 / (1 + exp(2 - 1.5)), 1e-15);
    near(acf_recall_trust(m, 0, 3), 1 / (1 + exp(-1.5)), 1e-15);
    near(acf_recall_trust(m, 1, 4), 0.5, 1e-15);
    assert_true(acf_recall_trust(m, 1, -INFINITY) == 0 && acf_recall_trust(m, 1, -1e9) == 0 && acf_recall_trust(m, 1, 1e9) == ACF_RECALL_MOST && ACF_RECALL_MOST < 1);
    m->slope = -0.5;
    assert_true(acf_recall_trust(m, 1, -INFINITY) == 0);
    acf_archive_free(m);
}

static void memory_may_run_out(void **state) {
    (void)state;
    acf_table *t = some_table();
    acf_encoder *e = some_encoder(t);
    acf_archive *m = NULL;
    acf_recall *r;
    const int64_t live = acf_alloc_live();
    for (int64_t n = 1; !m; n++) {
        acf_alloc_fail_at(n);
        acf_status status = acf_archive_make(t, e, &m);
        acf_alloc_fail_at(0);
        assert_in_range(n, 1, 30);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_null(m);
        assert_int_equal(acf_alloc_live(), live);
    }
    for (int64_t n = 1; n <= 2; n++) {
        const int64_t before = acf_alloc_live();
        acf_alloc_fail_at(n);
        assert_int_equal(acf_recall_create(m, &r), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), before);
    }
    acf_archive_free(m);
    assert_int_equal(acf_alloc_live(), live);
    acf_encoder_free(e);
    acf_tab_free(t);
}

ACF_TESTS(archive, cmocka_unit_test(cells_are_remembered_as_codes), cmocka_unit_test(shares_are_exact), cmocka_unit_test(a_value_has_a_width),
          cmocka_unit_test(columns_that_repeat_are_told_from_noise), cmocka_unit_test(a_scale_is_no_less_than_a_width),
          cmocka_unit_test(a_row_alone_learns_nothing), cmocka_unit_test(rows_that_agree_fit), cmocka_unit_test(unknown_cells_are_not_read),
          cmocka_unit_test(donors_have_the_column), cmocka_unit_test(far_fits_are_weighed), cmocka_unit_test(a_row_alone_has_no_donor),
          cmocka_unit_test(probabilities_of_classes_sum_to_one), cmocka_unit_test(a_density_integrates_to_one),
          cmocka_unit_test(a_mean_is_that_of_the_density), cmocka_unit_test(draws_follow_the_density), cmocka_unit_test(draws_reach_every_donor),
          cmocka_unit_test(trust_grows_with_evidence), cmocka_unit_test(memory_may_run_out))
