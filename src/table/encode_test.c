/* Tests of encode.h: moments against plain sums, difficult columns, exact round trips, and no use of held-out cells. */
#include "table/encode.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

static acf_table *table(const double *x, int64_t N, int64_t D, const acf_column *c) {
    acf_table *t = NULL;
    if (acf_table_make(x, NULL, N, D, c, &t) != ACF_OK) fail_msg("%s", acf_error());
    return t;
}

static acf_encoder *fitted(const acf_table *t, const acf_rows *rows, const acf_holdout *hold) {
    acf_encoder *e = NULL;
    assert_int_equal(acf_encoder_fit(t, rows, hold, &e), ACF_OK);
    return e;
}

/* With resolutions, normal scores and ranges. */
static acf_encoder *shaped(const acf_table *t, const acf_rows *rows, const acf_holdout *hold) {
    acf_encoder *e = fitted(t, rows, hold);
    assert_int_equal(acf_encoder_shape(e, t, rows, hold, &(acf_encoding){true, true}), ACF_OK);
    return e;
}

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-13 * fmax(fabs(a), fabs(b)); }

static void moments_and_counts(void **state) {
    (void)state;
    /*                   real   3 classes   constant  empty  one cell  two */
    const double x[] = {1.0, 2, 7.0, NAN, NAN, -1.0, 2.0, 0,   7.0, NAN, 5.0, NAN,
                        NAN, 2, NAN, NAN, NAN, 1.0,  6.0, NAN, 7.0, NAN, NAN, NAN};
    const acf_column c[6] = {{"a", 0}, {"k", 3}, {"const", 0}, {NULL, 0}, {"single", 0}, {"two", 0}};
    acf_table *t = table(x, 4, 6, c);
    acf_encoder *e = fitted(t, NULL, NULL);
    assert_true(close_to(e->mean[0], 3.0) && close_to(e->scale[0], sqrt(14.0 / 3.0)));
    assert_true(close_to(e->log_jacobian[0], -log(e->scale[0])));
    assert_true(e->mean[1] == 0.0 && e->scale[1] == 1.0 && e->log_jacobian[1] == 0.0);
    assert_true(e->mean[2] == 7.0 && e->scale[2] == 1.0 && e->mean[3] == 0.0 && e->scale[3] == 1.0);
    assert_true(e->mean[4] == 5.0 && e->scale[4] == 1.0 && e->mean[5] == 0.0 && e->scale[5] == 1.0);
    static const int64_t observed[6] = {3, 3, 3, 0, 1, 2};
    assert_memory_equal(e->observed, observed, sizeof observed);
    assert_int_equal(e->n_categorical, 1);
    assert_int_equal(e->categorical[0], 1);
    assert_true(e->count[0] == 1 && e->count[1] == 0 && e->count[2] == 2);
    assert_int_equal(e->column[1].classes, 3);
    assert_string_equal(e->column[4].name, "single");
    acf_encoder_free(e), acf_table_free(t);
}

/* Columns on which naive sums fail: large offset, outlier, the ends of the range of doubles. */
static void hard_columns_are_exact(void **state) {
    (void)state;
    enum { N = 1000 };
    static double x[N * 5];
    for (int i = 0; i < N; i++) {
        x[i * 5 + 0] = 1e15 + i % 2;               /* mean 1e15 + 0.5, deviation 0.5 */
        x[i * 5 + 1] = i == 0 ? 1e12 : 0.0;        /* one outlier */
        x[i * 5 + 2] = i % 2 ? 1.5e308 : -1.5e308; /* the range is wider than a double */
        x[i * 5 + 3] = i % 2 ? 3e-310 : 1e-310;    /* subnormal: the scale is held at the smallest normal number */
        x[i * 5 + 4] = 0.1;                        /* constant, though sums of 0.1 are not exact */
    }
    acf_table *t = table(x, N, 5, NULL);
    acf_encoder *e = fitted(t, NULL, NULL);
    assert_true(e->mean[0] == 1e15 + 0.5 && close_to(e->scale[0], 0.5));
    assert_true(close_to(e->mean[1], 1e9) && close_to(e->scale[1], 1e12 * sqrt(0.001 * 0.999)));
    assert_true(fabs(e->mean[2]) < 1e290 && close_to(e->scale[2], 1.5e308));
    assert_true(e->scale[3] == DBL_MIN && isfinite(e->log_jacobian[3]));
    assert_true(e->mean[4] == 0.1 && e->scale[4] == 1.0 && acf_encode(e, 4, 0.1) == 0 && acf_decode(e, 4, 0) == 0.1);
    acf_encoder_free(e), acf_table_free(t);
}

static void values_round_trip(void **state) {
    (void)state;
    const acf_column c[2] = {{NULL, 0}, {NULL, 4}};
    acf_table *t = table((const double[]){1, 0, 2, 3, 6, 1}, 3, 2, c);
    acf_encoder *e = fitted(t, NULL, NULL);
    for (double v = -100.0; v < 100.0; v += 0.37) {
        acf_real z = acf_encode(e, 0, v);
        assert_true(fabs((double)z - (v - e->mean[0]) / e->scale[0]) <= fabs((double)z) * (double)ACF_REAL_EPS);
        assert_true(fabs(acf_decode(e, 0, z) - v) <= 300.0 * (double)ACF_REAL_EPS);
    }
    for (int k = 0; k < 4; k++) assert_true(acf_decode(e, 1, acf_encode(e, 1, k)) == k);
    assert_true(acf_decode(e, 1, ACF_R(1.6)) == 2.0 && acf_decode(e, 1, ACF_R(-3.0)) == 0.0);
    assert_true(acf_decode(e, 1, ACF_R(1e9)) == 3.0 && acf_decode(e, 1, (acf_real)NAN) == 0.0);
    assert_true(isnan(acf_decode(e, 0, (acf_real)NAN)));
    assert_true(isfinite(acf_encode(e, 0, 1e300))); /* saturates if acf_real is float */
    acf_encoder_free(e), acf_table_free(t);
}

/* The density of x from log_jacobian integrates to one: a standard normal in z, on a grid in x. */
static void densities_are_in_the_users_units(void **state) {
    (void)state;
    acf_table *t = table((const double[]){100, 300, 1700}, 3, 1, NULL);
    acf_encoder *e = fitted(t, NULL, NULL);
    double sum = 0.0, step = e->scale[0] / 100.0;
    for (double x = e->mean[0] - 8.0 * e->scale[0]; x < e->mean[0] + 8.0 * e->scale[0]; x += step) {
        double z = (x - e->mean[0]) / e->scale[0];
        sum += step * exp(-0.5 * z * z - 0.5 * log(2.0 * M_PI) + e->log_jacobian[0]);
    }
    assert_true(fabs(sum - 1.0) < 1e-9);
    acf_encoder_free(e), acf_table_free(t);
}

static bool same_warp(const acf_normal_scores *a, const acf_normal_scores *b) {
    size_t n = (size_t)a->n * sizeof(double);
    return a->n == b->n && (n == 0 || (memcmp(a->t, b->t, n) == 0 && memcmp(a->z, b->z, n) == 0));
}

static bool same_repertoire(const acf_support *a, const acf_support *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->value, b->value, (size_t)a->n * sizeof *a->value) == 0);
}

static bool same_encoder(const acf_encoder *a, const acf_encoder *b) {
    size_t n = (size_t)a->D * sizeof(double);
    int64_t classes = 0;
    for (int64_t j = 0; j < a->D; j++) {
        classes += a->column[j].classes;
        if (a->resolution[j].every != b->resolution[j].every || a->resolution[j].decimals != b->resolution[j].decimals)
            return false;
        if (!same_warp(&a->normal_scores[j], &b->normal_scores[j]) || !same_repertoire(&a->support[j], &b->support[j]))
            return false;
    }
    return a->D == b->D && memcmp(a->least, b->least, n) == 0 && memcmp(a->most, b->most, n) == 0 &&
           memcmp(a->mean, b->mean, n) == 0 && memcmp(a->scale, b->scale, n) == 0 &&
           memcmp(a->log_jacobian, b->log_jacobian, n) == 0 && memcmp(a->observed, b->observed, n) == 0 &&
           memcmp(a->first, b->first, n) == 0 && memcmp(a->count, b->count, (size_t)classes * sizeof *a->count) == 0 &&
           a->n_categorical == b->n_categorical;
}

/* The encoder is the same bit for bit whatever held-out cells, and rows of another part, contain. */
static void only_training_cells_are_seen(void **state) {
    (void)state;
    enum { N = 500, D = 4 };
    static double x[N * D], y[N * D];
    const acf_column c[D] = {{NULL, 0}, {NULL, 0}, {NULL, 6}, {NULL, 0}};
    for (int i = 0; i < N * D; i++) {
        acf_rng_counter at = {3, (uint64_t)i, ACF_STREAM_TEST, 0, 0};
        x[i] = i % D == 2   ? (double)acf_rng_below(at, 6)
               : i % D == 1 ? nearbyint(20 * acf_rng_normal(at)) / 4
                            : acf_rng_normal(at);
    }
    acf_table *t = table(x, N, D, c);
    acf_row_split s;
    acf_holdout *hold = NULL;
    assert_int_equal(acf_row_split_make(N, 0.2, 0.1, 4, &s), ACF_OK);
    assert_int_equal(acf_holdout_create(t, &s.train, 0.2, 4, &hold), ACF_OK);
    acf_encoder *e = shaped(t, &s.train, hold);

    for (int i = 0; i < N * D; i++) y[i] = i % D == 2 ? 5.0 : 1e30;
    int64_t shown = 0;
    for (int64_t k = 0; k < s.train.n; k++) {
        int64_t i = acf_rows_at(&s.train, k);
        uint8_t held[D];
        acf_holdout_row(hold, t, i, held);
        for (int j = 0; j < D; j++)
            if (!held[j]) y[i * D + j] = x[i * D + j], shown++;
    }
    acf_table *other = table(y, N, D, c);
    acf_encoder *blind = shaped(other, &s.train, hold), *all = shaped(other, NULL, NULL);
    assert_true(same_encoder(e, blind));
    assert_false(same_encoder(e, all));
    assert_int_equal(e->observed[0] + e->observed[1] + e->observed[2] + e->observed[3], shown);
    assert_int_equal(hold->visible, shown);
    acf_encoder_free(e), acf_encoder_free(blind), acf_encoder_free(all);
    acf_holdout_free(hold), acf_table_free(t), acf_table_free(other);
}

static void json_is_exact(void **state) {
    (void)state;
    enum { N = 50, D = 6 };
    double x[N * D];
    const acf_column c[D] = {{"größe \"q\"\n", 0}, {NULL, 3}, {"tiny", 0}, {"huge", 0}, {"k", 1}, {"-0", 0}};
    static const double unit[D] = {1.0 / 3.0, 0, 1e-290, 1e290, 0, 0};
    for (int i = 0; i < N * D; i++) {
        acf_rng_counter at = {3, (uint64_t)i, ACF_STREAM_TEST, 0, 0};
        x[i] = i % D == 1 ? (double)(i % 3) : acf_rng_normal(at) * unit[i % D];
        if (i % D == 5) x[i] = -0.0;
        if (i % D == 0) x[i] = nearbyint(10 * x[i]) / 2;
        if (i == 2) x[i] = 1e-288; /* far out */
        if (i % D == 4) x[i] = 0.0;
    }
    acf_table *t = table(x, N, D, c);
    acf_encoder *e = shaped(t, NULL, NULL), *back = NULL;
    json_t *out = NULL, *in = NULL;
    static char text[40000];
    acf_text w = acf_text_into(text, sizeof text);
    acf_json_source from = {"test", ACF_EMODEL};
    assert_int_equal(acf_encoder_to_json(e, &out), ACF_OK);
    acf_json_write(&w, out, 0);
    assert_int_equal(acf_text_done(&w, NULL), ACF_OK);
    assert_int_equal(acf_json_parse(from, text, strlen(text), sizeof text, &in), ACF_OK);
    assert_int_equal(acf_encoder_from_json(from, in, &back), ACF_OK);
    assert_true(same_encoder(e, back));
    assert_true(back->resolution[0].every == 5 && back->resolution[0].decimals == 1 && back->normal_scores[2].n > 2 &&
                back->normal_scores[5].n == 0);
    for (int j = 0; j < D; j++) {
        assert_int_equal(back->column[j].classes, c[j].classes);
        if (c[j].name)
            assert_string_equal(back->column[j].name, c[j].name);
        else
            assert_null(back->column[j].name);
    }
    json_decref(out), json_decref(in);
    acf_encoder_free(e), acf_encoder_free(back), acf_table_free(t);
}

#define REAL "{\"columns\": [{\"kind\": \"real\", \"mean\": 0, \"scale\": 1, \"observed\": 3"
static void wrong_json_is_reported(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[]", "m: this is a list, expected an object with 'columns'"},
        {"{}", "m: 'columns' is missing"},
        {"{\"columns\": []}", "m: 'columns' must be a list of at least one column"},
        {"{\"columns\": [3]}", "m: column 0: this is a whole number, expected an object with 'kind'"},
        {"{\"columns\": [{\"kind\": \"odd\"}]}", "m: column 0: 'kind' is 'odd', expected real or categorical"},
        {"{\"columns\": [{\"kind\": \"real\", \"mean\": 0}]}", "m: column 0: 'scale' is missing"},
        {"{\"columns\": [{\"kind\": \"real\", \"mean\": 0, \"scale\": 0, \"observed\": 1}]}",
         "m: column 0: 'mean' is 0 and 'scale' 0, expected finite numbers and a scale above 0"},
        {"{\"columns\": [{\"kind\": \"real\", \"mean\": 0, \"scale\": 1, \"observed\": -1}]}",
         "m: column 0: 'observed' is -1, expected a number of cells"},
        {REAL ", \"least\": 2, \"most\": 1}]}", "m: column 0: 'least' is 2 and 'most' 1; expected a range"},
        {REAL ", \"most\": \"x\"}]}", "m: column 0: 'most' is text, expected a number"},
        {REAL ", \"step\": {\"every\": 0, \"decimals\": 1}}]}",
         "m: column 0: 'step' is 0 with 1 decimals; expected 1 or more, with 0 to 18"},
        {REAL ", \"step\": {\"every\": 1, \"decimals\": 19}}]}",
         "m: column 0: 'step' is 1 with 19 decimals; expected 1 or more, with 0 to 18"},
        {REAL ", \"step\": 3}]}", "m: column 0: this is a whole number, expected an object with 'every'"},
        {REAL ", \"values\": [1]}]}", "m: column 0: 'values' must be a list of 2 to 256 numbers"},
        {REAL ", \"values\": 3}]}", "m: column 0: 'values' must be a list of 2 to 256 numbers"},
        {REAL ", \"values\": [1, 1]}]}", "m: column 0: the numbers of 'values' must be finite and ascend"},
        {REAL ", \"values\": [1, \"x\"]}]}", "m: column 0: 'values' is text, expected a number"},
        {REAL ", \"normal_scores\": {\"t\": [0, 1]}}]}", "m: column 0: 'z' is missing"},
        {REAL ", \"normal_scores\": {\"t\": [0, 1], \"z\": [0]}}]}",
         "m: column 0: 'normal_scores' must have two lists, 't' and 'z', of 2 to 96 numbers each"},
        {REAL ", \"normal_scores\": {\"t\": 1, \"z\": [0]}}]}",
         "m: column 0: 'normal_scores' must have two lists, 't' and 'z', of 2 to 96 numbers each"},
        {REAL ", \"normal_scores\": {\"t\": [0, 1], \"z\": [0, 0]}}]}",
         "m: column 0: the numbers of 'normal_scores' must be finite and ascend"},
        {REAL ", \"normal_scores\": {\"t\": [0, 1], \"z\": [0, \"x\"]}}]}",
         "m: column 0: 'z' is text, expected a number"},
        {"{\"columns\": [{\"kind\": \"categorical\", \"counts\": []}]}",
         "m: column 0: 'counts' must be a list of at least one number"},
        {"{\"columns\": [{\"kind\": \"categorical\", \"counts\": [1, \"x\"]}]}",
         "m: column 0: 'counts' is text, expected a whole number"},
        {"{\"columns\": [{\"kind\": \"categorical\", \"counts\": [1], \"name\": \"a\"},"
         " {\"kind\": \"categorical\", \"counts\": [1], \"name\": \"a\"}]}",
         "m: columns 0 and 1 are both named 'a'"},
    };
    acf_json_source from = {"m", ACF_EMODEL};
    int64_t live = acf_alloc_live();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        json_t *in = NULL;
        acf_encoder *e = NULL;
        assert_int_equal(acf_json_parse(from, cases[c][0], strlen(cases[c][0]), 1000, &in), ACF_OK);
        assert_int_equal(acf_encoder_from_json(from, in, &e), ACF_EMODEL);
        assert_string_equal(acf_error(), cases[c][1]);
        assert_null(e);
        json_decref(in);
        assert_int_equal(acf_alloc_live(), live);
    }
}

/* A column of few values decodes to one of them, and the file lists them. Off without dequantisation. */
static void decoded_values_are_in_the_support(void **state) {
    (void)state;
    enum { N = 200 };
    double x[N];
    for (int i = 0; i < N; i++) x[i] = i % 20 ? 0 : i % 40 ? 0.83 : 0.5;
    acf_table *t = table(x, N, 1, NULL);
    acf_encoder *e = shaped(t, NULL, NULL), *back = NULL;
    json_t *out = NULL;
    for (int i = 0; i < 1000; i++) {
        const double y = acf_decode(e, 0, (acf_real)(-5 + 0.01 * i));
        assert_true(y == 0 || y == 0.5 || y == 0.83);
    }
    assert_true(acf_encoder_round(e, 0, 0.3) == 0.5 && acf_encoder_round(e, 0, 0.7) == 0.83 &&
                acf_encoder_round(e, 0, -3) == 0);
    assert_int_equal(acf_encoder_to_json(e, &out), ACF_OK);
    assert_int_equal(acf_encoder_from_json((acf_json_source){"test", ACF_EMODEL}, out, &back), ACF_OK);
    assert_true(back->support[0].n == 3 && same_encoder(e, back));
    json_decref(out), acf_encoder_free(back), acf_encoder_free(e);
    e = fitted(t, NULL, NULL);
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){.normal_scores = true}), ACF_OK);
    assert_int_equal(e->support[0].n, 0);
    acf_encoder_free(e), acf_table_free(t);
}

/* ---- resolution, normal scores and range ------------------------------------------------------------------------- */

enum { SHAPE_N = 3000, SHAPE_D = 6 };
static const acf_column shape_columns[SHAPE_D] = {{"price", 0},  {"grade", 0}, {"gain", 0},
                                                  {"weight", 0}, {"k", 3},     {"one", 0}};

/* Prices with two decimals, heavy-tailed; grades 1..10; 92 % zeros; a measurement; a category; a constant. */
static acf_table *shape_table(void) {
    static double x[SHAPE_N * SHAPE_D];
    for (int i = 0; i < SHAPE_N; i++) {
        double e = acf_rng_normal((acf_rng_counter){6, (uint64_t)i, ACF_STREAM_TEST, 0, 0});
        double u = acf_rng_uniform((acf_rng_counter){6, (uint64_t)i, ACF_STREAM_TEST, 1, 0});
        double *row = x + i * SHAPE_D;
        row[0] = nearbyint(100 * exp(2 + e)) / 100, row[1] = floor(1 + 10 * u * u),
        row[2] = u < 0.92 ? 0 : nearbyint(3000 * exp(e));
        row[3] = e, row[4] = i % 3, row[5] = 0.1;
        if (i % 7 == 0) row[i % 4] = (double)NAN;
    }
    return table(x, SHAPE_N, SHAPE_D, shape_columns);
}

/* Times recorded on the hour are drawn on the hour. */
static void clocks_are_decoded_in_their_steps(void **state) {
    (void)state;
    static double x[2 * SHAPE_N];
    for (int i = 0; i < SHAPE_N; i++)
        x[2 * i] = x[2 * i + 1] =
            3600 * floor(5000 * acf_rng_uniform((acf_rng_counter){8, (uint64_t)i, ACF_STREAM_TEST, 0, 0}));
    acf_table *t = table(x, SHAPE_N, 2, (const acf_column[]){{.name = "when", .clock = true}, {.name = "number"}});
    acf_encoder *e = shaped(t, NULL, NULL);
    assert_true(acf_resolution_step(e->resolution[0]) == 3600 && acf_resolution_step(e->resolution[1]) == 200);
    for (double z = -2; z < 2; z += 0.37) assert_true(fmod(acf_decode(e, 0, (acf_real)z), 3600) == 0);
    acf_encoder_free(e), acf_table_free(t);
}

static void column_shapes_are_found(void **state) {
    (void)state;
    acf_table *t = shape_table();
    acf_encoder *e = shaped(t, NULL, NULL);
    assert_true(acf_resolution_step(e->resolution[0]) == 0.01 && acf_resolution_step(e->resolution[1]) == 1);
    assert_true(acf_resolution_step(e->resolution[2]) == 1 && e->resolution[3].every == 0 &&
                e->resolution[5].every == 0);
    assert_true(e->least[1] == 1 && e->most[1] == 10 && e->least[2] == 0 && e->least[5] == 0.1 && e->most[5] == 0.1);
    assert_true(e->least[3] == -INFINITY && e->most[3] == INFINITY); /* the tails continue */
    for (int j = 0; j < 3; j++) assert_true(e->normal_scores[j].n > 2);
    assert_int_equal(e->normal_scores[3].n, 0); /* already normal */
    assert_true(e->normal_scores[4].n == 0 && e->normal_scores[5].n == 0);
    acf_encoder_free(e);
    e = fitted(t, NULL, NULL); /* each can be switched off */
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){false, true}), ACF_OK);
    assert_true(e->normal_scores[0].n == 0 && e->resolution[0].every == 1);
    acf_encoder_free(e);
    e = fitted(t, NULL, NULL);
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){true, false}), ACF_OK);
    assert_true(e->normal_scores[0].n > 2 && e->resolution[0].every == 0);
    acf_encoder_free(e), acf_table_free(t);
}

/* For any output of a network the decoded value is one that the column can hold. Values come back, exactly if the
 * column has a step. */
static void decoded_values_could_be_observed(void **state) {
    (void)state;
    acf_table *t = shape_table();
    acf_encoder *e = shaped(t, NULL, NULL);
    for (double z = -50; z < 50; z += 0.037)
        for (int j = 0; j < SHAPE_D; j++) {
            double x = acf_decode(e, j, (acf_real)z), step = acf_resolution_step(e->resolution[j]);
            assert_true(x >= e->least[j] && x <= e->most[j]);
            if (step > 0) assert_true(x == acf_resolution_round(e->resolution[j], x));
        }
    for (int i = 0; i < SHAPE_N; i++)
        for (int j = 0; j < SHAPE_D; j++) {
            double x = t->x[i * SHAPE_D + j], back;
            if (!acf_table_present(x)) continue;
            back = acf_decode(e, j, acf_encode(e, j, x));
            if (e->resolution[j].every)
                assert_true(back == x);
            else
                assert_true(fabs(back - x) <= 20 * (double)ACF_REAL_EPS * (1 + fabs(x)));
        }
    assert_true(isnan(acf_decode(e, 0, (acf_real)NAN)));
    assert_true(acf_encoder_round(e, 1, 4.6) == 5 && acf_encoder_round(e, 1, 99) == 10 &&
                acf_encoder_round(e, 0, 7.12345) == 7.12);
    acf_encoder_free(e), acf_table_free(t);
}

/* Noise is uniform over the step, and depends only on its counter. */
static void noise_is_uniform_and_keyed(void **state) {
    (void)state;
    acf_table *t = shape_table();
    acf_encoder *e = shaped(t, NULL, NULL);
    double sum = 0, square = 0;
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        double u = acf_dequantise(e, 1, 4, 3, (uint64_t)i, 5) - 4;
        assert_true(u > -0.5 && u < 0.5);
        sum += u / N, square += u * u / N;
        assert_true(acf_dequantise(e, 3, 1.25, 3, (uint64_t)i, 5) == 1.25); /* no step, no noise */
    }
    assert_true(fabs(sum) < 0.01 && fabs(square - 1 / 12.0) < 0.003);
    double y = acf_dequantise(e, 1, 4, 3, 7, 5);
    assert_true(y == acf_dequantise(e, 1, 4, 3, 7, 5) && y != acf_dequantise(e, 1, 4, 4, 7, 5) &&
                y != acf_dequantise(e, 1, 4, 3, 8, 5));
    assert_true(y != acf_dequantise(e, 1, 4, 3, 7, 6) && y - 4 != acf_dequantise(e, 2, 4, 3, 7, 5) - 4);
    acf_encoder_free(e), acf_table_free(t);
}

/* exp(log slope) is the derivative of encoding. */
static void slopes_are_those_of_encoding(void **state) {
    (void)state;
    acf_table *t = shape_table();
    acf_encoder *e = shaped(t, NULL, NULL);
    for (int j = 0; j < 4; j++) {
        if (j == 2) continue; /* its spike is too narrow for the grid */
        double sum = 0, to = e->mean[j] + e->scale[j],
               from = fmax(e->least[j] + 0.02 * e->scale[j], to - 4 * e->scale[j]), h = (to - from) / 4000;
        for (int k = 0; k < 4000; k++) sum += h * exp(acf_encode_log_slope(e, j, from + h * (k + 0.5)));
        double rise = (double)acf_encode(e, j, to) - (double)acf_encode(e, j, from);
        assert_true(fabs(sum / rise - 1) < 0.01);
    }
    assert_true(acf_encode_log_slope(e, 4, 2) == 0);
    acf_encoder_free(e), acf_table_free(t);
}

/* A table larger than the sample: every k-th cell is used, and the range of all of them. */
static void large_columns_are_sampled(void **state) {
    (void)state;
    int64_t N = 2 * ACF_ENCODE_CELLS + 77;
    double *x = acf_alloc((size_t)N * sizeof *x, "a test");
    assert_non_null(x);
    for (int64_t i = 0; i < N; i++) x[i] = (double)(i * 37 % 1000) / 10;
    x[1] = -500, x[4] = 700; /* neither is sampled */
    acf_table *t = table(x, N, 1, (const acf_column[]){{.bounded = true, .low = 0, .high = 100}});
    acf_encoder *e = shaped(t, NULL, NULL);
    assert_true(acf_resolution_step(e->resolution[0]) == 0.1 && e->least[0] == -500 && e->most[0] == 700);
    acf_encoder_free(e), acf_table_free(t), acf_release(x);
}

static void other_tables_are_refused(void **state) {
    (void)state;
    const acf_column c[2] = {{"a", 0}, {"k", 3}};
    const double x[2] = {0, 0};
    acf_table *t = table(x, 1, 2, c);
    acf_encoder *e = fitted(t, NULL, NULL);
    static const struct {
        int64_t D;
        acf_column c[2];
        acf_status status;
        const char *sentence;
    } cases[] = {
        {2, {{NULL, 0}, {"k", 2}}, ACF_OK, NULL},
        {1, {{"a", 0}}, ACF_ESHAPE, "the table has 1 columns; the model expects 2"},
        {2, {{"a", 2}, {"k", 3}}, ACF_ESHAPE, "column 0 ('a') is categorical; the model expects a real one"},
        {2, {{"a", 0}, {"k", 4}}, ACF_ESHAPE, "column 1 ('k') has 4 classes; the model knows 3"},
        {2, {{"b", 0}, {"k", 3}}, ACF_EDATA, "column 0 ('b'): the model expects 'a' here"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        acf_table *q = table(x, 1, cases[k].D, cases[k].c);
        assert_int_equal(acf_encoder_check(e, q), cases[k].status);
        if (cases[k].sentence) assert_string_equal(acf_error(), cases[k].sentence);
        acf_table_free(q);
    }
    acf_encoder_free(e), acf_table_free(t);
}

static void memory_may_run_out(void **state) {
    (void)state;
    const acf_column c[2] = {{"a", 0}, {"k", 3}};
    acf_table *t =
        table((const double[]){0, 0, 0, 1, 1, 2, 2, 0, 3, 1}, 5, 2, c); /* two fifths of the cells are 0: a spike */
    json_t *o = NULL;
    acf_encoder *e = fitted(t, NULL, NULL);
    assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){true, true}), ACF_OK);
    assert_true(e->normal_scores[0].n > 0);
    assert_int_equal(acf_encoder_to_json(e, &o), ACF_OK);
    acf_encoder_free(e);
    int64_t live = acf_alloc_live();
    for (int which = 0; which < 2; which++) {
        for (int64_t n = 1;; n++) {
            e = NULL;
            acf_alloc_fail_at(n);
            acf_status status = which ? acf_encoder_from_json((acf_json_source){"m", ACF_EMODEL}, o, &e)
                                      : acf_encoder_fit(t, NULL, NULL, &e);
            if (!which && status == ACF_OK) status = acf_encoder_shape(e, t, NULL, NULL, &(acf_encoding){true, true});
            acf_alloc_fail_at(0);
            acf_encoder_free(e);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
            assert_in_range(n, 1, 30);
        }
    }
    json_decref(o);
    acf_table_free(t);
}

ACF_TESTS(encode, cmocka_unit_test(decoded_values_are_in_the_support), cmocka_unit_test(column_shapes_are_found),
          cmocka_unit_test(clocks_are_decoded_in_their_steps), cmocka_unit_test(decoded_values_could_be_observed),
          cmocka_unit_test(noise_is_uniform_and_keyed), cmocka_unit_test(slopes_are_those_of_encoding),
          cmocka_unit_test(large_columns_are_sampled), cmocka_unit_test(moments_and_counts),
          cmocka_unit_test(hard_columns_are_exact), cmocka_unit_test(values_round_trip),
          cmocka_unit_test(densities_are_in_the_users_units), cmocka_unit_test(only_training_cells_are_seen),
          cmocka_unit_test(json_is_exact), cmocka_unit_test(wrong_json_is_reported),
          cmocka_unit_test(other_tables_are_refused), cmocka_unit_test(memory_may_run_out))
