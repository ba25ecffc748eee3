/* Tests of the public pictures and synthetic tables through acflow.h. The drawing itself is tested in plot/. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/lab.h"
#include "harness/picture.h"
#include "plot/figures.h"
#include "table/table.h"

enum { N = 300, D = 4 };

static const char *const names[D] = {"x1", "x2", "kind", "day"};
static const int32_t classes[D] = {0, 0, 3, 0};

/* Two correlated real columns, a class, a day; a fifth of the cells missing. */
static acf_table *make_table(double x[N * D]) {
    acf_table *t = NULL;
    for (int64_t i = 0; i < N; i++) {
        const double u = acf_lab_random(3, i, -2, 2);
        x[i * D] = u, x[i * D + 1] = u + acf_lab_random(4, i, -0.3, 0.3), x[i * D + 2] = u < -0.6 ? 0 : u < 0.6 ? 1 : 2;
        x[i * D + 3] = 18000 + (double)i;
        x[i * D + i % 5 % D] = i % 5 < D ? NAN : x[i * D];
    }
    assert_int_equal(acf_table_create(x, NULL, N, D, classes, names, &t), ACF_OK);
    return t;
}

static acf_model *fit(const acf_table *t) {
    acf_options *o;
    acf_model *m;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    static const char *const set[][2] = {
        {"steps", "40"},     {"flow", "affine"}, {"likelihood-units", "8"}, {"likelihood-layers", "1"},
        {"components", "4"}, {"mlp-width", "8"}, {"batch", "64"},           {"threads", "1"}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        assert_int_equal(acf_options_set(o, set[k][0], set[k][1]), ACF_OK);
    assert_int_equal(acf_model_fit(t, o, NULL, NULL, &m), ACF_OK);
    acf_options_free(o);
    return m;
}

static void look(acf_status status) {
    if (status != ACF_OK) fail_msg("%s", acf_error());
    picture p = picture_read(picture_path(".png"));
    int64_t inked = 0;
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++) inked += p.pixel[i] != 0xffffff;
    assert_true(inked > 500);
    picture_free(&p);
}

static void every_figure_is_drawn_from_handles(void **state) {
    (void)state;
    static double x[N * D], done[2 * N * D];
    acf_table *t = make_table(x), *few;
    acf_model *m = fit(t);
    acf_session *s;
    const char *const labels[] = {"small", "middle", "large"}, *path = picture_path(".png");
    const acf_plot_column column[D] = {{NULL, 0}, {NULL, 0}, {labels, 0}, {NULL, 86400}};
    const acf_plot_options o = {.scale = 1, .columns = column};
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    for (uint32_t d = 0; d < 2; d++)
        assert_int_equal(acf_session_draw(s, t, NULL, NULL, 1, d, done + d * N * D), ACF_OK);
    look(acf_plot_missing(path, &o, t));
    look(acf_plot_imputed(path, &o, t, done, 2));
    look(acf_plot_pairs(path, NULL, t, done, N, (int64_t[]){0, 1, 2}, 3));
    acf_fit_report r[3] = {{.step = 1, .loss = 3, .valid = NAN},
                           {.step = 2, .loss = NAN, .valid = 1},
                           {.step = 3, .loss = 2, .valid = 0.5}};
    look(acf_plot_training(path, &o, r, 3));
    const acf_plot_cloud cloud = {x, N * D / 2};
    look(acf_plot_clouds(path, &o, &cloud, 1, 1, NULL, NULL));
    assert_int_equal(acf_table_create(x, NULL, 3, D, classes, names, &few), ACF_OK);
    for (int64_t j = 0; j < D; j++) look(acf_plot_conditional(path, &o, s, few, j, NULL));
    acf_table_free(few);
    acf_session_free(s);
    acf_model_free(m);
    acf_table_free(t);
}

/* log p of class k of column 2 in row i of x, or given nothing, by single queries. */
static double probability(acf_session *s, const double *x, int64_t i, int k, bool nothing) {
    double row[D], lp;
    uint8_t given[D], target[D] = {0, 0, 1, 0};
    acf_table *t;
    for (int64_t j = 0; j < D; j++) row[j] = nothing ? NAN : x[i * D + j], given[j] = j != 2 && !isnan(row[j]);
    row[2] = k;
    assert_int_equal(acf_table_create(row, NULL, 1, D, classes, names, &t), ACF_OK);
    t->first_id = nothing ? 1000000 : (uint64_t)i; /* its own row is not a donor */
    assert_int_equal(acf_session_logp(s, t, given, target, &lp), ACF_OK);
    acf_table_free(t);
    return exp(lp);
}

/* The picture shows the answers of the same queries made one by one. */
static void conditionals_are_the_answers_of_the_model(void **state) {
    (void)state;
    static double x[N * D];
    acf_table *t = make_table(x), *few;
    acf_model *m = fit(t);
    acf_session *s;
    double p[9], truth[2], sum = 0;
    const char *const label[] = {"one", "two"};
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    assert_int_equal(acf_table_create(x, NULL, 2, D, classes, names, &few), ACF_OK);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) sum += p[i * 3 + k] = probability(s, x, i, k, i == 2);
    acf_assert_close(sum, 3, 1e-4, "probabilities");
    for (int i = 0; i < 2; i++) truth[i] = x[i * D + 2];
    const acf_figure_curves f = {{"kind", 3, NULL, 0}, 2, 3, NULL, p, p + 6, truth, label};
    assert_int_equal(acf_figure_conditional(picture_path(".png"), NULL, &f), ACF_OK);
    picture expected = picture_read(picture_path(".png"));
    assert_int_equal(acf_plot_conditional(picture_path(".png"), NULL, s, few, 2, label), ACF_OK);
    picture found = picture_read(picture_path(".png"));
    assert_int_equal(found.w, expected.w);
    int64_t differ = 0;
    for (int64_t i = 0; i < (int64_t)found.w * found.h; i++) differ += found.pixel[i] != expected.pixel[i];
    assert_true(differ < 200); /* the ends of bars differ by rounding in another batch */
    picture_free(&found), picture_free(&expected);
    acf_table_free(few), acf_session_free(s), acf_model_free(m), acf_table_free(t);
}

/* Whole numbers from 1 to 5 have bars; a number in [0, 1] has a curve, on an axis with its bounds. */
static void few_values_and_bounds_are_known(void **state) {
    (void)state;
    static double x[N * 2];
    acf_table *t = NULL, *one = NULL;
    acf_session *s;
    const acf_plot_options o = {.scale = 1};
    for (int64_t i = 0; i < N; i++)
        x[i * 2] = 1 + floor(5 * acf_lab_random(7, i, 0, 1)), x[i * 2 + 1] = acf_lab_random(8, i, 0, 1);
    assert_int_equal(acf_table_create(x, NULL, N, 2, NULL, NULL, &t), ACF_OK);
    acf_model *m = fit(t);
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    assert_int_equal(acf_table_create(x, NULL, 1, 2, NULL, NULL, &one), ACF_OK);
    assert_int_equal(acf_plot_conditional(picture_path(".png"), &o, s, one, 0, NULL), ACF_OK);
    picture p = picture_read(picture_path(".png"));
    assert_true(picture_all(&p, acf_palette_series(0)) > 3000); /* a curve has a few hundred */
    picture_free(&p);
    assert_int_equal(acf_plot_conditional(picture_path(".png"), &o, s, one, 1, NULL), ACF_OK);
    p = picture_read(picture_path(".png"));
    int left = p.w; /* the area of the distribution given nothing begins at once, at its full height */
    for (int y = p.h / 2; y < p.h; y++)
        for (int c = p.w / 20; c < left; c++)
            if (picture_near(p.pixel[(int64_t)y * p.w + c], ACF_INK_PALE)) left = c;
    int high = 0, further = 0;
    for (int y = 0; y < p.h; y++) {
        high += picture_near(p.pixel[(int64_t)y * p.w + left + 4], ACF_INK_PALE);
        further += picture_near(p.pixel[(int64_t)y * p.w + left + p.w / 8], ACF_INK_PALE);
    }
    assert_true(high > further / 2);
    picture_free(&p);
    acf_table_free(one), acf_session_free(s), acf_model_free(m), acf_table_free(t);
}

static void a_query_that_fails_draws_nothing(void **state) {
    (void)state;
    static double x[N * D], wide[N * D];
    acf_table *t = make_table(x), *other;
    acf_model *m = fit(t);
    acf_session *s;
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    assert_int_equal(acf_table_create(wide, NULL, 2, D - 1, NULL, NULL, &other), ACF_OK);
    assert_int_equal(acf_plot_conditional(picture_path(".png"), NULL, s, other, 0, NULL), ACF_ESHAPE);
    assert_int_equal(access(picture_path(".png"), F_OK), -1);
    acf_table *few;
    assert_int_equal(acf_table_create(x, NULL, 2, D, classes, names, &few), ACF_OK);
    for (int64_t at = 1;; at++) { /* each of the library's allocations in turn */
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(at);
        acf_status status =
            acf_plot_conditional(picture_path(".png"), &(acf_plot_options){.scale = 0.5}, s, few, 0, NULL);
        acf_alloc_fail_at(0);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_true(acf_alloc_live() <= live + 64); /* a session keeps its grown arenas */
        assert_int_equal(access(picture_path(".png"), F_OK), -1);
    }
    unlink(picture_path(".png"));
    acf_table_free(few);
    acf_table_free(other);
    acf_session_free(s);
    acf_model_free(m);
    acf_table_free(t);
}

static void wrong_arguments_get_a_sentence(void **state) {
    (void)state;
    static double x[N * D];
    acf_table *t = make_table(x);
    const char *path = picture_path(".png");
    const acf_plot_cloud cloud = {NULL, 5};
    assert_int_equal(acf_plot_missing(NULL, NULL, t), ACF_EUSAGE);
    assert_int_equal(acf_plot_missing(path, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_plot_missing("a.gif", NULL, t), ACF_EUSAGE);
    assert_int_equal(acf_plot_missing(path, &(acf_plot_options){.width = 1e9}, t), ACF_EUSAGE);
    assert_int_equal(acf_plot_imputed(path, NULL, t, NULL, 1), ACF_EUSAGE);
    assert_int_equal(acf_plot_imputed(path, NULL, t, x, 0), ACF_EUSAGE);
    assert_int_equal(acf_plot_pairs(path, NULL, t, x, N, (int64_t[]){0, 4}, 2), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "column 4; the table has 0 to 3"));
    assert_int_equal(acf_plot_pairs(path, NULL, t, x, N, (int64_t[]){0}, 1), ACF_EUSAGE);
    assert_int_equal(acf_plot_pairs(path, NULL, t, NULL, N, (int64_t[]){0, 1}, 2), ACF_EUSAGE);
    assert_int_equal(acf_plot_pairs(path, NULL, t, x, -1, (int64_t[]){0, 1}, 2), ACF_EUSAGE);
    assert_int_equal(acf_plot_training(path, NULL, NULL, 3), ACF_EUSAGE);
    assert_int_equal(acf_plot_training(path, NULL, NULL, -3), ACF_EUSAGE);
    assert_int_equal(acf_plot_clouds(path, NULL, &cloud, 1, 1, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_plot_clouds(path, NULL, &cloud, 0, 1, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_plot_conditional(path, NULL, NULL, t, 0, NULL), ACF_EUSAGE);
    assert_int_equal(access(path, F_OK), -1);
    acf_table_free(t);
}

/* ---- synthetic tables ------------------------------------------------------------------------------------------ */

static void synthetic_tables_are_public(void **state) {
    (void)state;
    static double x[500 * 12], y[900 * 12];
    static uint8_t m[500 * 12], k[900 * 12];
    const acf_synth_column *column = NULL;
    int64_t columns = 0;
    int n = 0;
    while (acf_synth_name(n)) {
        assert_non_null(acf_synth_about(n));
        assert_int_equal(acf_synth_columns(acf_synth_name(n++), &columns, &column), ACF_OK);
    }
    assert_int_equal(n, 9);
    assert_null(acf_synth_name(-1));
    assert_string_equal(column[7].name, "bmi"); /* clinic is the last */
    assert_int_equal(columns, 12);
    const acf_synth_options o = {.seed = 4, .missing = ACF_MISSING_MNAR, .rate = 0.3};
    assert_int_equal(acf_synth_fill("clinic", 500, &o, x, m), ACF_OK);
    assert_int_equal(acf_synth_fill("clinic", 900, &o, y, k), ACF_OK);
    assert_memory_equal(x, y, sizeof x); /* a longer table begins with the shorter one */
    assert_memory_equal(m, k, sizeof m);
    assert_int_equal(acf_synth_fill("clinic", 0, NULL, NULL, NULL), ACF_OK);
    assert_int_equal(acf_synth_fill("clinic", 1, NULL, NULL, NULL), ACF_EUSAGE);
    assert_int_equal(acf_synth_fill("clinic", -1, NULL, x, NULL), ACF_EUSAGE);
    assert_int_equal(acf_synth_fill(NULL, 1, NULL, x, NULL), ACF_EUSAGE);
    assert_int_equal(acf_synth_columns("nothing", &columns, NULL), ACF_EUSAGE);
    assert_int_equal(
        acf_synth_write("rings", 5, &(acf_synth_options){.missing = ACF_MISSING_MCAR, .rate = 1}, "/tmp/never.csv"),
        ACF_EUSAGE);
    assert_int_equal(acf_synth_write("rings", INT64_MAX, NULL, "/tmp/never.csv"), ACF_EUSAGE);
    assert_int_equal(access("/tmp/never.csv", F_OK), -1);
}

ACF_TESTS(plot_api, cmocka_unit_test(every_figure_is_drawn_from_handles),
          cmocka_unit_test(conditionals_are_the_answers_of_the_model),
          cmocka_unit_test(a_query_that_fails_draws_nothing), cmocka_unit_test(few_values_and_bounds_are_known),
          cmocka_unit_test(wrong_arguments_get_a_sentence), cmocka_unit_test(synthetic_tables_are_public))
