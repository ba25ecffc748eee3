/* Tests of acf_figure_from_query with a fake model: the queries it gets, and what is drawn from its results. */
#include "plot/figures.h"

#include "harness/check.h"
#include "harness/picture.h"

/* Results for one row and the row with nothing given. Draws are k/64 for k = 0, 1, ... or that rounded; every density
 * is 1. */
typedef struct made_up {
    bool whole;            /* draws are 0 or 1 */
    int64_t draws, target; /* number of draws so far; number of values with a requested density */
    double first, last;    /* of these values */
    acf_status fail;       /* status that the density returns */
} made_up;

static acf_status draw(void *model, uint32_t k, double *value) {
    made_up *m = model;
    const double v = (double)(k % 64) / 63;
    value[0] = value[1] = m->whole ? floor(v + 0.5) : v;
    m->draws++;
    return ACF_OK;
}

static acf_status logp(void *model, const double *x, int64_t G, double *out) {
    made_up *m = model;
    m->target = G, m->first = x[0], m->last = x[G - 1];
    for (int64_t i = 0; i < 2 * G; i++) out[i] = 0;
    return m->fail;
}

static acf_status show(made_up *m, acf_figure_column column, double least, double most) {
    static const double truth[] = {0.5};
    static const char *const label[] = {"row 1"};
    const acf_figure_query q = {.column = column,
                                .n = 1,
                                .truth = truth,
                                .label = label,
                                .least = least,
                                .most = most,
                                .rounded = m->whole,
                                .model = m,
                                .draw = draw,
                                .logp = logp};
    return acf_figure_from_query(picture_path(".png"), NULL, &q);
}

/* Draws from 0 to 1: the axis is padded on both sides, but not beyond the range of the column. */
static void the_axis_ends_where_the_column_does(void **state) {
    (void)state;
    made_up m = {0};
    assert_int_equal(show(&m, (acf_figure_column){"free"}, -10, 10), ACF_OK);
    assert_true(m.draws == 64 && m.target > 1000);
    assert_true(m.first < -0.04 && m.first > -0.1 && m.last > 1.04 && m.last < 1.1);
    assert_int_equal(show(&m, (acf_figure_column){"held"}, 0, 1), ACF_OK);
    assert_true(m.first > 0 && m.first < 0.001 && m.last > 0.999 && m.last < 1);
    unlink(picture_path(".png"));
}

/* Probabilities are estimated from more draws, and no density is requested. */
static void few_rounded_values_need_no_density(void **state) {
    (void)state;
    made_up m = {.whole = true};
    assert_int_equal(show(&m, (acf_figure_column){"score"}, 0, 1), ACF_OK);
    assert_true(m.draws == 1024 && m.target == 0);
    picture p = picture_read(picture_path(".png"));
    assert_true(picture_all(&p, acf_palette_series(0)) > 1000); /* bars */
    picture_free(&p);
}

static void classes_are_queried_by_their_codes(void **state) {
    (void)state;
    made_up m = {0};
    assert_int_equal(show(&m, (acf_figure_column){"kind", 3}, 0, 0), ACF_OK);
    assert_true(m.draws == 0 && m.target == 3 && m.first == 0 && m.last == 2);
    unlink(picture_path(".png"));
}

static void a_model_that_fails_draws_nothing(void **state) {
    (void)state;
    made_up m = {.fail = ACF_EMODEL};
    assert_int_equal(show(&m, (acf_figure_column){"free"}, -10, 10), ACF_EMODEL);
    assert_int_equal(access(picture_path(".png"), F_OK), -1);
}

ACF_TESTS(fig_query, cmocka_unit_test(the_axis_ends_where_the_column_does),
          cmocka_unit_test(few_rounded_values_need_no_density), cmocka_unit_test(classes_are_queried_by_their_codes),
          cmocka_unit_test(a_model_that_fails_draws_nothing))
