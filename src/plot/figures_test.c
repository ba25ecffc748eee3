/* Tests of figures.h. Pixels show what a figure contains: marks where cells are missing, bars as long as shares, dots
 * where points are. Every figure is also drawn from unusual tables, on very small and very large pages. In debug builds
 * the page itself refuses text that overlaps or is cut (canvas.h), so a saved figure has a valid layout. */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/rng.h"
#include "harness/lab.h"
#include "harness/picture.h"

enum { ROWS = 400 };

static double normal(int64_t i, uint32_t j) {
    return acf_rng_normal((acf_rng_counter){9, (uint64_t)i, ACF_STREAM_TEST, j, 0});
}

/* Pages with one pixel to the point. */
static acf_plot_options page(double w, double h) { return (acf_plot_options){.width = w, .height = h, .scale = 1}; }

static picture drawn(acf_status status) {
    if (status != ACF_OK) fail_msg("%s", acf_error());
    return picture_read(picture_path(".png"));
}

/* ---- what they show ---------------------------------------------------------------------------------------------- */

/* Four columns: complete, half missing (the later rows), all missing, every second row missing. */
static void missing_cells_are_marked(void **state) {
    (void)state;
    static double x[ROWS * 4];
    for (int64_t i = 0; i < ROWS; i++) {
        x[i * 4] = (double)i;
        x[i * 4 + 1] = i < ROWS / 2 ? 1 : NAN;
        x[i * 4 + 2] = NAN;
        x[i * 4 + 3] = i % 2 ? NAN : 1;
    }
    const acf_figure_column column[4] = {{"complete"}, {"half"}, {"empty"}, {"every second"}};
    const acf_figure_table t = {x, ROWS, 4, column};
    const acf_plot_options o = page(900, 0);
    picture p = drawn(acf_figure_missing(picture_path(".png"), &o, &t));
    /* Lines are 20 points high, and those of column 1 begin 20 points above its first missing cell; find them by their
     * colours at the left of the matrix. */
    int first = -1, x0 = -1;
    for (int y = 60; y < p.h && first < 0; y++) /* the first pale pixel below the legend */
        for (int px = 0; px < p.w / 2 && first < 0; px++)
            if (picture_near(p.pixel[(int64_t)y * p.w + px], ACF_INK_PALE) && y > 90) first = y, x0 = px;
    assert_true(first > 0);
    int64_t missing[4] = {0}, pale[4] = {0};
    for (int j = 0; j < 4; j++)
        for (int px = x0; px < p.w; px++) {
            const uint32_t at = p.pixel[(int64_t)(first + 8 + 20 * j) * p.w + px];
            missing[j] += picture_near(at, ACF_INK_MISSING), pale[j] += picture_near(at, ACF_INK_PALE);
        }
    assert_int_equal(missing[0], 0);
    assert_true(missing[1] > 100 && pale[1] > 100);
    assert_true(missing[2] > missing[1] * 3 / 2);
    /* In column 1 the left half is present, the right half missing. */
    const uint32_t *line = p.pixel + (int64_t)(first + 8 + 20) * p.w;
    assert_true(picture_near(line[x0 + 20], ACF_INK_PALE));
    int last = x0;
    while (picture_near(line[last], ACF_INK_PALE)) last++;
    assert_true(picture_near(line[last + 5], ACF_INK_MISSING));
    picture_free(&p);
}

/* Two columns, where every row has one of two patterns, three to one. */
static void patterns_are_counted(void **state) {
    (void)state;
    static double x[ROWS * 2];
    for (int64_t i = 0; i < ROWS; i++) x[i * 2] = i % 4 ? 1 : NAN, x[i * 2 + 1] = i % 4 ? NAN : 1;
    const acf_figure_column column[2] = {{"a"}, {"b"}};
    const acf_plot_options o = page(900, 0);
    picture p = drawn(acf_figure_missing(picture_path(".png"), &o, &(acf_figure_table){x, ROWS, 2, column}));
    /* The patterns are the rightmost boxes: two columns of two. In the first (three quarters) b is missing, in the
     * second a. */
    int right = p.w - 1, y = -1;
    for (int k = 0; k < p.h && y < 0; k++)
        for (int px = p.w * 3 / 4; px < p.w; px++)
            if (picture_near(p.pixel[(int64_t)k * p.w + px], ACF_INK_MISSING)) y = k;
    assert_true(y > 0);
    const uint32_t *upper = p.pixel + (int64_t)(y + 6) * p.w, *lower = p.pixel + (int64_t)(y + 26) * p.w;
    while (right > 0 && !picture_near(upper[right], ACF_INK_MISSING)) right--;
    assert_true(picture_near(lower[right - 3], ACF_INK_PALE));
    assert_true(picture_near(upper[right - 30], ACF_INK_PALE));
    assert_true(picture_near(lower[right - 30], ACF_INK_MISSING));
    assert_int_equal(upper[right - 60], 0xffffff); /* and no others */
    picture_free(&p);
}

/* A category: nine tenths of the observed and one tenth of the imputed values are class 0, and the bars have these
 * lengths. */
static void bars_are_as_long_as_shares(void **state) {
    (void)state;
    static double x[ROWS], filled[ROWS];
    const char *const labels[] = {"yes", "no"};
    const acf_figure_column column = {"answer", 2, labels, 0};
    for (int64_t i = 0; i < ROWS; i++) x[i] = i % 2 ? NAN : i % 20 == 0, filled[i] = i % 20 != 1;
    const acf_plot_options o = page(400, 0);
    picture p =
        drawn(acf_figure_imputed(picture_path(".png"), &o, &(acf_figure_table){x, ROWS, 1, &column}, filled, 1));
    int longest[2][2] = {{0}}, n = 0, row = -1;  /* [bar from above][0: where, 1: length] */
    for (int y = p.h * 36 / 100; y < p.h; y++) { /* below the legend */
        int blue = 0, orange = 0;
        for (int px = 0; px < p.w; px++) {
            blue += picture_near(p.pixel[(int64_t)y * p.w + px], ACF_INK_DATA);
            orange += picture_near(p.pixel[(int64_t)y * p.w + px], ACF_INK_MODEL);
        }
        if (blue > 5 && row != 0 && n < 2) longest[0][n] = blue, row = 0;
        if (orange > 5 && row != 1 && n < 2) longest[1][n++] = orange, row = 1;
    }
    assert_int_equal(n, 2);
    acf_assert_close((double)longest[0][0] / longest[0][1], 9, 0.2, "seen: yes to no");
    acf_assert_close((double)longest[1][1] / longest[1][0], 9, 0.2, "imputed: no to yes");
    acf_assert_close((double)longest[1][1] / longest[0][0], 1, 0.05, "both nine tenths");
    picture_free(&p);
}

/* Observed values around 0, imputed ones around 10: blue at the left, orange at the right. */
static void densities_are_where_values_are(void **state) {
    (void)state;
    static double x[ROWS], filled[ROWS];
    const acf_figure_column column = {"v"};
    for (int64_t i = 0; i < ROWS; i++)
        x[i] = i % 4 == 0 ? NAN : (i % 8 < 2 ? 10 : 0) + normal(i, 0), filled[i] = 10 + normal(i, 1);
    const acf_plot_options o = page(400, 300);
    picture p =
        drawn(acf_figure_imputed(picture_path(".png"), &o, &(acf_figure_table){x, ROWS, 1, &column}, filled, 1));
    assert_true(picture_count(&p, ACF_INK_DATA, 0, 0.4, 0.5, 1) > 100);
    assert_true(picture_count(&p, ACF_INK_MODEL, 0.5, 0.4, 1, 1) >
                5 * picture_count(&p, ACF_INK_MODEL, 0.1, 0.4, 0.45, 0.8));
    picture_free(&p);
}

static void the_best_step_is_marked(void **state) {
    (void)state;
    static double step[ROWS], loss[ROWS], valid[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        step[i] = (double)i + 1, loss[i] = 3 + 2 * exp(-(double)i / 40) + 0.1 * normal(i, 0);
        valid[i] =
            i < 20 ? NAN : 1 + pow((double)(i - 300) / 300, 2); /* best at step 301, three quarters to the right */
    }
    const acf_plot_options o = page(600, 400);
    picture p = drawn(acf_figure_training(picture_path(".png"), &o, step, loss, valid, ROWS, ROWS));
    assert_true(picture_count(&p, ACF_INK_MODEL_LINE, 0.7, 0.5, 0.82, 1) > 60);
    assert_int_equal(picture_count(&p, ACF_INK_MODEL_LINE, 0.84, 0, 1, 1), 0);
    assert_int_equal(picture_count(&p, ACF_INK_MODEL_LINE, 0, 0, 1, 0.5), 0);
    assert_true(picture_count(&p, ACF_INK_DATA, 0.1, 0.1, 1, 0.5) > 100);
    picture_free(&p);
}

/* Steps count from 1 again in the second pass: its orange median is in the left half of the upper panel, and it has no
 * validation below. */
static void a_second_pass_is_a_line_of_its_own(void **state) {
    (void)state;
    static double step[ROWS], loss[ROWS], valid[ROWS];
    const int64_t first = 300;
    for (int64_t i = 0; i < ROWS; i++) {
        const bool second = i >= first;
        step[i] = (double)(second ? i - first : i) + 1, loss[i] = (second ? 1 : 3) + 0.1 * normal(i, 0);
        valid[i] = second ? 0.5 : i < 20 ? NAN : 1 + pow((double)(i - 100) / 300, 2);
    }
    const acf_plot_options o = page(600, 400);
    picture p = drawn(acf_figure_training(picture_path(".png"), &o, step, loss, valid, ROWS, first));
    assert_true(picture_count(&p, ACF_INK_MODEL_LINE, 0.1, 0.3, 0.5, 0.5) > 60);
    assert_int_equal(picture_count(&p, ACF_INK_MODEL_LINE, 0.5, 0.2, 1, 0.5), 0);
    assert_true(picture_count(&p, ACF_INK_DATA, 0.6, 0.1, 1, 0.5) > 60);
    assert_true(picture_count(&p, ACF_INK_MODEL_LINE, 0.3, 0.55, 0.5, 1) >
                60); /* the best, at step 101 of the first pass */
    picture_free(&p);
}

/* x2 rises with x1 in the data and falls in the draws: blue from lower left to upper right, orange the other way. */
static void pairs_show_both_clouds(void **state) {
    (void)state;
    static double x[ROWS * 2], d[ROWS * 2];
    for (int64_t i = 0; i < ROWS; i++) {
        const double u = normal(i, 0);
        x[2 * i] = u, x[2 * i + 1] = i < ROWS / 2 ? u : (double)NAN;
        d[2 * i] = u, d[2 * i + 1] = i < ROWS / 2 ? u : -u; /* the first half equals the table: not drawn */
    }
    const acf_figure_column column[2] = {{"x1"}, {"x2"}};
    const acf_plot_options o = page(500, 500);
    picture p = drawn(acf_figure_pairs(picture_path(".png"), &o, &(acf_figure_table){x, ROWS, 2, column}, d, ROWS,
                                       (int64_t[]){0, 1}, 2));
    /* The cloud is the lower left panel; its quarters: */
    const double x0 = 0.12, x1 = 0.52, y0 = 0.54, y1 = 0.9, xm = (x0 + x1) / 2, ym = (y0 + y1) / 2;
    assert_true(picture_count(&p, ACF_INK_DATA, xm + 0.03, y0, x1, ym - 0.03) > 10);
    assert_int_equal(picture_count(&p, ACF_INK_DATA, xm + 0.03, ym + 0.03, x1, y1), 0);
    assert_true(picture_count(&p, ACF_INK_MODEL, xm + 0.03, ym + 0.03, x1, y1) > 10);
    assert_int_equal(picture_count(&p, ACF_INK_MODEL, xm + 0.03, y0, x1, ym - 0.03), 0);
    picture_free(&p);
}

/* New rows, three quarters of one class as in the table: their bars are as high as the table's, although many rows
 * agree by chance with the table's row of the same number. */
static void new_rows_are_all_shown(void **state) {
    (void)state;
    static double x[ROWS * 2], d[ROWS * 2];
    for (int64_t i = 0; i < ROWS; i++)
        x[2 * i] = i % 4 == 0, d[2 * i] = i % 8 < 2, x[2 * i + 1] = normal(i, 0), d[2 * i + 1] = normal(i, 1);
    const acf_figure_column column[2] = {{"kind", .classes = 2}, {"x"}};
    const acf_plot_options o = page(500, 500);
    picture p = drawn(acf_figure_pairs(picture_path(".png"), &o, &(acf_figure_table){x, ROWS, 2, column}, d, ROWS,
                                       (int64_t[]){0, 1}, 2));
    const double x0 = 0.12, x1 = 0.5, y0 = 0.2, y1 = 0.52, xm = 0.315; /* the upper left panel, and between its bars */
    const double a = (double)picture_count(&p, ACF_INK_MODEL, x0, y0, xm, y1),
                 b = (double)picture_count(&p, ACF_INK_MODEL, xm, y0, x1, y1);
    const double of_a = (double)picture_count(&p, ACF_INK_DATA, x0, y0, xm, y1),
                 of_b = (double)picture_count(&p, ACF_INK_DATA, xm, y0, x1, y1);
    assert_true(of_a > 2.6 * of_b && of_a < 3.4 * of_b && fabs(a - of_a) < 0.1 * of_a && fabs(b - of_b) < 0.15 * of_b);
    picture_free(&p);
}

static void clouds_are_drawn_in_their_cells(void **state) {
    (void)state;
    static double left[2 * ROWS], right[2 * ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        left[2 * i] = (double)(i % 20), left[2 * i + 1] = (double)(i / 20); /* all at different places */
        right[2 * i] = i % 2 ? 5 : -5, right[2 * i + 1] = i % 2 ? 5 : -5;
    }
    const acf_plot_cloud cloud[2] = {{left, ROWS}, {right, ROWS}};
    const char *const names[] = {"a", "b"};
    const acf_plot_options o = page(400, 260);
    picture p = drawn(acf_figure_clouds(picture_path(".png"), &o, cloud, 2, 1, names, NULL));
    const acf_ink dark = acf_palette_scale(1);
    assert_true(picture_count(&p, dark, 0.5, 0.2, 1, 1) > 4); /* two hundred points at one place */
    assert_int_equal(picture_count(&p, dark, 0, 0.2, 0.5, 1), 0);
    int64_t inked = 0;
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++)
        if (i % p.w < p.w / 2) inked += p.pixel[i] != 0xffffff;
    assert_true(inked > 1000);
    picture_free(&p);
}

/* ---- unusual tables ---------------------------------------------------------------------------------------------- */

typedef struct odd {
    const char *what;
    int64_t N, D;
    double (*cell)(int64_t i, int64_t j);
} odd;

static double constant(int64_t i, int64_t j) { return (void)i, j == 0 ? 0 : 7; }
static double nothing(int64_t i, int64_t j) { return (void)i, (void)j, NAN; }
static double huge(int64_t i, int64_t j) { return (i + j) % 3 == 0 ? NAN : i % 2 ? 1e300 : -1e300 * (double)j; }
static double largest(int64_t i, int64_t j) { return (i + j) % 4 == 0 ? NAN : i % 2 ? 1.7e308 : -1.7e308; }
static double tiny(int64_t i, int64_t j) { return (i + j) % 5 == 0 ? NAN : 5e-324 * (double)(i % 3); }
static double plain(int64_t i, int64_t j) { return (i * 7 + j * 3) % 5 == 0 ? NAN : normal(i, (uint32_t)j); }
static double whole(int64_t i, int64_t j) { return (i * 7 + j * 3) % 5 == 0 ? NAN : (double)((i * i + j) % 9); }
static double spiked(int64_t i, int64_t j) {
    return (i + j) % 6 == 0 ? NAN : i % 3 == 0 ? 0 : exp(3 * normal(i, (uint32_t)j));
}
static double narrow(int64_t i, int64_t j) { return (i + j) % 6 == 0 ? NAN : 1e15 + (double)(i % 30); }

static const odd odds[] = {
    {"no rows", 0, 3, plain},         {"one row", 1, 3, plain},      {"two rows", 2, 2, plain},
    {"constant", 50, 3, constant},    {"nothing", 40, 3, nothing},   {"1e300", 60, 3, huge},
    {"the largest", 60, 3, largest},  {"the smallest", 60, 3, tiny}, {"300 columns", 30, 300, plain},
    {"whole numbers", 200, 4, whole}, {"spikes", 200, 3, spiked},    {"far from zero", 100, 3, narrow},
    {"3000 columns", 3, 3000, plain}};

/* Names that are long, or not text; classes in every third column, with labels of the same kind. */
static const char *odd_name(int64_t j) {
    static const char *const names[] = {
        "a",
        "Größe der gemessenen Person in Zentimetern, auf eine Nachkommastelle gerundet (Pflichtfeld)",
        "\xff\xfe not text",
        "line\nbreak\ttab",
        "温度温度温度温度温度温度温度温度温度温度温度温度温度温度",
        "mm",
        NULL,
        " ",
        "Ω"};
    return names[j % 9];
}

typedef struct scene {
    double *x, *filled;
    acf_figure_column *column;
    acf_figure_table t;
} scene;

static scene make_scene(const odd *o, bool classes) {
    static const char *const labels[] = {
        "yes", "Größe der gemessenen Person in Zentimetern, gerundet", "\xff", "", NULL, "f", "g", "h", "i"};
    scene s = {calloc((size_t)(o->N * o->D) + 1, sizeof(double)),
               calloc((size_t)(2 * o->N * o->D) + 1, sizeof(double)),
               calloc((size_t)o->D, sizeof(acf_figure_column)),
               {0}};
    for (int64_t j = 0; j < o->D; j++) {
        s.column[j].name = odd_name(j);
        if (j % 3 == 2 && !classes) s.column[j].unit = 86400;
        if (j % 3 == 1 && classes) s.column[j].classes = 9, s.column[j].labels = j % 2 ? labels : NULL;
    }
    for (int64_t i = 0; i < o->N; i++)
        for (int64_t j = 0; j < o->D; j++) {
            double v = o->cell(i, j);
            if (s.column[j].classes > 0 && !isnan(v)) v = (double)(i % 9);
            s.x[i * o->D + j] = v;
            for (int d = 0; d < 2; d++) /* NaN and infinities among the draws */
                s.filled[(d * o->N + i) * o->D + j] = isnan(v) ? (i % 7 == 0    ? NAN
                                                                  : i % 11 == 0 ? INFINITY
                                                                                : o->cell(i + 1, j))
                                                               : v;
        }
    s.t = (acf_figure_table){s.x, o->N, o->D, s.column};
    return s;
}

static void free_scene(scene *s) { free(s->x), free(s->filled), free(s->column); }

static const double sizes[][2] = {{0, 0}, {160, 160}, {200, 1200}, {1600, 170}, {333, 444}};

/* Draws a PNG or an SVG, and checks that the page has the requested width and is not blank. */
static void look(const char *what, const char *figure, acf_status status, const acf_plot_options *o, bool svg) {
    if (status != ACF_OK)
        fail_msg("%s of '%s' on a page of %g x %g: %s", figure, what, o->width, o->height, acf_error());
    if (svg) {
        assert_true(picture_svg(picture_path(".svg")) > 10);
        return;
    }
    picture p = picture_read(picture_path(".png"));
    if (o->width != 0) assert_int_equal(p.w, ceil(o->width * o->scale));
    if (o->height != 0) assert_int_equal(p.h, ceil(o->height * o->scale));
    int64_t inked = 0;
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++) inked += p.pixel[i] != 0xffffff;
    if (inked < 50) fail_msg("%s of '%s' on a page of %g x %g is blank", figure, what, o->width, o->height);
    picture_free(&p);
}

static void draw_all(const odd *what, const scene *s, const acf_plot_options *o, bool svg) {
    const char *path = picture_path(svg ? ".svg" : ".png");
    const int64_t columns[] = {0, s->t.D - 1, s->t.D / 2};
    look(what->what, "missing", acf_figure_missing(path, o, &s->t), o, svg);
    look(what->what, "imputed", acf_figure_imputed(path, o, &s->t, s->filled, 2), o, svg);
    look(what->what, "pairs", acf_figure_pairs(path, o, &s->t, s->filled, s->t.N, columns, 3), o, svg);
    look(what->what, "training", acf_figure_training(path, o, s->x, s->x + s->t.N, s->filled, s->t.N, s->t.N / 2), o,
         svg);
    const acf_plot_cloud cloud[4] = {{s->x, s->t.N}, {s->filled, s->t.N}, {NULL, 0}, {s->x, s->t.N / 2}};
    const char *const across[] = {odd_name(1), odd_name(2)}, *const down[] = {odd_name(4), NULL};
    look(what->what, "clouds", acf_figure_clouds(path, o, cloud, 2, 2, across, down), o, svg);
}

static void any_table_on_any_page(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof odds / sizeof *odds; k++)
        for (int classes = 0; classes < 2; classes++) {
            scene s = make_scene(&odds[k], classes);
            for (size_t p = 0; p < sizeof sizes / sizeof *sizes; p++) {
                if (p > 0 && classes && odds[k].D > 100) continue; /* seen without classes */
                acf_plot_options o = page(sizes[p][0], sizes[p][1]);
                o.scale = 0.5;
                if (p == 4) o.title = odd_name(1);
                draw_all(&odds[k], &s, &o, p == 0 && classes == 0);
            }
            free_scene(&s);
        }
}

/* Curves and bars of p(x | given): peaks, zeros, NaN, infinities, one point, many classes. */
static void any_density_can_be_shown(void **state) {
    (void)state;
    enum { G = 50, CLASSES = 400 };
    static double x[G], p[8 * CLASSES], base[CLASSES], truth[8];
    const char *label[8];
    for (int k = 0; k < 8; k++) label[k] = odd_name(k) ? odd_name(k) : "", truth[k] = k == 3 ? NAN : k * 1e300;
    for (int g = 0; g < G; g++) x[g] = g;
    for (int i = 0; i < 8 * CLASSES; i++) p[i] = i % 17 == 0 ? INFINITY : i % 13 == 0 ? NAN : i % 5 == 0 ? 1e30 : i;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int classes = 0; classes < 2; classes++)
            for (int n = 1; n <= 8; n += 7)
                for (int svg = 0; svg < 2; svg++) {
                    const acf_plot_options o = page(sizes[k][0], sizes[k][1]);
                    const acf_figure_column column = {odd_name(1), classes ? CLASSES : 0, NULL, 0};
                    const acf_figure_curves f = {column, n,    classes ? CLASSES : G, x, p, n > 1 ? base : NULL,
                                                 truth,  label};
                    look("densities", "conditional",
                         acf_figure_conditional(picture_path(svg ? ".svg" : ".png"), &o, &f), &o, svg);
                }
}

static void curves_and_their_truth_are_drawn(void **state) {
    (void)state;
    enum { G = 101 };
    double x[G], p[2 * G], base[G], truth[] = {2, NAN};
    const char *const label[] = {"row 1", "row 2"};
    for (int g = 0; g < G; g++) {
        x[g] = g / 10.0;
        p[g] = exp(-pow(x[g] - 2, 2)), p[G + g] = exp(-pow(x[g] - 8, 2)), base[g] = 0.1;
    }
    const acf_plot_options o = {.width = 600, .height = 400, .scale = 3};
    const acf_figure_curves f = {{"dose"}, 2, G, x, p, base, truth, label};
    picture q = drawn(acf_figure_conditional(picture_path(".png"), &o, &f));
    assert_true(picture_count(&q, acf_palette_series(0), 0.1, 0.2, 0.45, 1) > 100);
    assert_int_equal(picture_count(&q, acf_palette_series(0), 0.5, 0.2, 1, 0.85), 0);
    assert_true(picture_count(&q, acf_palette_series(1), 0.6, 0.2, 1, 1) > 50);
    assert_true(picture_count(&q, ACF_INK_PALE, 0.1, 0.8, 1, 1) > 500);
    assert_true(picture_count(&q, ACF_INK_TEXT, 0.15, 0.2, 0.45, 0.5) > 4);  /* a ring around the true value of row 1 */
    assert_int_equal(picture_count(&q, ACF_INK_TEXT, 0.5, 0.2, 1, 0.85), 0); /* row 2 has none */
    picture_free(&q);
}

/* A peak at x = 5, a hundred times as high as the rest, does not flatten the rest: the curve fills the panel, and the
 * peak is a stem as long as its share. */
static void spikes_do_not_flatten_curves(void **state) {
    (void)state;
    enum { G = 101 };
    double x[G], p[2 * G], truth[2] = {NAN, NAN};
    const char *const label[2] = {"row 1", "row 2"};
    for (int g = 0; g < G; g++) {
        x[g] = g / 10.0;
        p[g] = p[G + g] = exp(-pow(x[g] - 2, 2)) + 0.01;
        if (g == 50) p[g] = p[G + g] = 100;
    }
    const acf_plot_options o = {.width = 600, .height = 400, .scale = 3};
    acf_figure_curves f = {.column = {"dose"}, .n = 2, .G = G, .x = x, .p = p, .truth = truth, .label = label};
    for (int spike = 0; spike < 2; spike++) {
        const double share[2] = {0.8, 0.2};
        f.has_spike = spike, f.spike = 5, f.share = share;
        picture q = drawn(acf_figure_conditional(picture_path(".png"), &o, &f));
        const int64_t hill =
            picture_count(&q, acf_palette_series(1), 0.1, 0.3, 0.45, 0.75); /* the second curve lies on the first */
        assert_true(spike ? hill > 100 : hill == 0);
        if (spike) {
            assert_true(picture_count(&q, acf_palette_series(0), 0.48, 0.3, 0.6, 0.7) > 100);   /* the long stem */
            assert_int_equal(picture_count(&q, acf_palette_series(1), 0.48, 0.3, 0.6, 0.6), 0); /* a fourth of it */
            assert_true(picture_count(&q, acf_palette_series(1), 0.48, 0.75, 0.6, 0.85) > 20);
        }
        picture_free(&q);
    }
}

/* A true value at the spike, at the left end of the axis, is marked at the end of its stem. */
static void true_values_at_a_spike_are_on_its_stem(void **state) {
    (void)state;
    enum { G = 101 };
    double x[G], p[G], truth[1] = {0};
    const double share[1] = {0.5};
    const char *const label[1] = {"row 1"};
    for (int g = 0; g < G; g++) x[g] = g / 10.0, p[g] = g < 4 ? 100.0 / (1 + 20 * g) : exp(-pow(x[g] - 5, 2)) + 0.01;
    const acf_plot_options o = {.width = 600, .height = 400, .scale = 3};
    const acf_figure_curves f = {.column = {"dose"},
                                 .n = 1,
                                 .G = G,
                                 .x = x,
                                 .p = p,
                                 .truth = truth,
                                 .label = label,
                                 .has_spike = true,
                                 .share = share};
    picture q = drawn(acf_figure_conditional(picture_path(".png"), &o, &f));
    assert_true(picture_count(&q, ACF_INK_TEXT, 0.09, 0.235, 0.14, 0.5) > 10);         /* the ring */
    assert_int_equal(picture_count(&q, ACF_INK_TEXT, 0.09, 0.5, 0.14, 0.9), 0);        /* not at the foot */
    assert_true(picture_count(&q, acf_palette_series(0), 0.4, 0.25, 0.65, 0.6) > 100); /* the hill fills the panel */
    assert_true(picture_count(&q, acf_palette_series(0), 0.15, 0.2, 0.25, 0.6) ==
                0); /* no trace of the peak beside it */
    picture_free(&q);
}

/* The picture reports what it does not show: the text is longer if a value lies beyond an axis, and if not all rows
 * fit. */
static void omissions_are_reported(void **state) {
    (void)state;
    enum { MANY = 4000 };
    static double x[2 * MANY], filled[2 * MANY];
    int64_t ink[2][3];
    const acf_figure_column column[2] = {{"a"}, {"b"}};
    for (int far = 0; far < 2; far++) {
        for (int64_t i = 0; i < 2 * MANY; i++)
            x[i] = acf_lab_random(5, i, 0, 1), filled[i] = acf_lab_random(6, i, 0, 1);
        for (int64_t i = 0; i < 10; i++) x[2 * i] = NAN;
        if (far) x[2 * 50] = 1000;
        const acf_plot_options o = {.width = 700, .height = 500, .scale = 2};
        const acf_figure_table t = {x, MANY, 2, column}, less = {x, far ? MANY : 100, 2, column};
        picture p = drawn(acf_figure_pairs(picture_path(".png"), &o, &t, filled, 1000, (const int64_t[]){0, 1}, 2));
        ink[far][0] = picture_count(&p, ACF_INK_QUIET, 0, 0.05, 1, 0.12);
        picture_free(&p);
        p = drawn(acf_figure_imputed(picture_path(".png"), &o, &t, filled, 1));
        ink[far][1] = picture_count(&p, ACF_INK_QUIET, 0, 0.15, 1, 0.35);
        picture_free(&p);
        p = drawn(acf_figure_missing(picture_path(".png"), &o, &less));
        ink[far][2] = picture_count(&p, ACF_INK_QUIET, 0, 0.17, 0.6, 0.25);
        picture_free(&p);
    }
    for (int k = 0; k < 3; k++)
        if (!(ink[1][k] > ink[0][k] * 5 / 4)) fail_msg("picture %d: %d and %d", k, (int)ink[0][k], (int)ink[1][k]);
}

/* Number of runs of an ink along a line of the picture, at a fraction of its height. */
static int runs(const picture *p, acf_ink ink, double at) {
    const uint32_t *line = p->pixel + (int64_t)(at * p->h) * p->w;
    int n = 0;
    for (int i = 1; i < p->w; i++) n += picture_near(line[i], ink) && !picture_near(line[i - 1], ink);
    return n;
}

/* Five values: a bar for each row at each, and the true value on its own bar. */
static void few_values_are_bars(void **state) {
    (void)state;
    double x[5] = {1, 2, 3, 4, 5}, p[10] = {0.1, 0.2, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.6},
           base[5] = {0.2, 0.2, 0.2, 0.2, 0.2}, truth[2] = {NAN, 5};
    const char *const label[2] = {"row 1", "row 2"};
    const acf_plot_options o = {.width = 600, .height = 400, .scale = 3};
    const acf_figure_curves f = {.column = {"health"},
                                 .n = 2,
                                 .G = 5,
                                 .x = x,
                                 .p = p,
                                 .base = base,
                                 .truth = truth,
                                 .label = label,
                                 .few = true,
                                 .draws = 1000};
    picture q = drawn(acf_figure_conditional(picture_path(".png"), &o, &f));
    for (int k = 0; k < 2; k++) assert_int_equal(runs(&q, acf_palette_series(k), 0.8), 5);
    assert_int_equal(runs(&q, ACF_INK_AXIS, 0.8), 5);
    assert_int_equal(runs(&q, acf_palette_series(0), 0.6), 1);                    /* three: the highest of row 1 */
    assert_true(picture_count(&q, ACF_INK_TEXT, 0.8, 0.15, 1, 0.4) > 20);         /* the ring on the highest bar */
    assert_int_equal(picture_count(&q, ACF_INK_TEXT, 0.12, 0.25, 0.75, 0.85), 0); /* and no other */
    picture_free(&q);
}

/* The true class has a ring at the end of the row's bar, also if it is among the others. */
static void the_true_class_is_marked(void **state) {
    (void)state;
    enum { MANY = 40 };
    static double p[2 * MANY];
    double truth[2] = {1, NAN};
    const char *const label[2] = {"row 1", "row 2"}, *const three[3] = {"a", "b", "c"};
    const acf_plot_options o = {.width = 600, .height = 300, .scale = 3};
    for (int k = 0; k < 3; k++) p[k] = k == 1 ? 0.6 : 0.2, p[3 + k] = 1.0 / 3;
    acf_figure_curves f = {.column = {"kind", 3, three, 0}, .n = 2, .G = 3, .p = p, .truth = truth, .label = label};
    picture q = drawn(acf_figure_conditional(picture_path(".png"), &o, &f));
    assert_true(picture_count(&q, ACF_INK_TEXT, 0.85, 0.3, 1, 0.9) > 20);
    assert_int_equal(picture_count(&q, ACF_INK_TEXT, 0.1, 0.3, 0.8, 0.9), 0);
    picture_free(&q);
    for (int k = 0; k < MANY; k++) p[k] = p[MANY + k] = k < 2 ? 0.3 : 0.4 / (MANY - 2);
    f.G = f.column.classes = MANY, f.column.labels = NULL;
    for (int seen = 0; seen < 2; seen++) {
        truth[0] = seen ? MANY - 1 : NAN;
        q = drawn(acf_figure_conditional(picture_path(".png"),
                                         &(acf_plot_options){.width = 600, .height = 300, .scale = 3}, &f));
        const int64_t ring = picture_count(&q, ACF_INK_TEXT, 0.2, 0.75, 1, 0.92);
        assert_true(seen ? ring > 20 : ring == 0);
        picture_free(&q);
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Every allocation fails once: a status, no leak, no file. */
static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    const odd what = {"plain", 60, 4, plain};
    scene s = make_scene(&what, true);
    const char *path = picture_path(".png");
    const acf_plot_options o = {.width = 300, .height = 300, .scale = 0.5};
    double x[4] = {0, 1, 2, 3}, p[36] = {0.5}, truth[2] = {1, NAN};
    const char *const label[] = {"a", "b"};
    const acf_plot_cloud cloud = {s.x, 60};
    for (int figure = 0; figure < 7; figure++)
        for (int64_t at = 1;; at++) {
            const int64_t live = acf_alloc_live();
            const acf_figure_curves f = {s.column[figure == 4], 2, figure == 4 ? 9 : 4, x, p, p, truth, label};
            acf_alloc_fail_at(at);
            acf_status status = ACF_OK;
            switch (figure) {
            case 0: status = acf_figure_missing(path, &o, &s.t); break;
            case 1: status = acf_figure_imputed(path, &o, &s.t, s.filled, 2); break;
            case 2: status = acf_figure_pairs(path, &o, &s.t, s.filled, 60, (int64_t[]){0, 1}, 2); break;
            case 3:
            case 4: status = acf_figure_conditional(path, &o, &f); break;
            case 5: status = acf_figure_training(path, &o, s.x, s.x, s.x, 60, 40); break;
            default: status = acf_figure_clouds(path, &o, &cloud, 1, 1, NULL, NULL);
            }
            acf_alloc_fail_at(0);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) {
                unlink(path);
                break;
            }
            assert_int_equal(status, ACF_EMEMORY);
            assert_int_equal(access(path, F_OK), -1);
            assert_true(at < 500);
        }
    free_scene(&s);
}

ACF_TESTS(figures, cmocka_unit_test(missing_cells_are_marked), cmocka_unit_test(spikes_do_not_flatten_curves),
          cmocka_unit_test(patterns_are_counted), cmocka_unit_test(bars_are_as_long_as_shares),
          cmocka_unit_test(densities_are_where_values_are), cmocka_unit_test(the_best_step_is_marked),
          cmocka_unit_test(true_values_at_a_spike_are_on_its_stem), cmocka_unit_test(few_values_are_bars),
          cmocka_unit_test(omissions_are_reported), cmocka_unit_test(the_true_class_is_marked),
          cmocka_unit_test(a_second_pass_is_a_line_of_its_own), cmocka_unit_test(pairs_show_both_clouds),
          cmocka_unit_test(new_rows_are_all_shown), cmocka_unit_test(clouds_are_drawn_in_their_cells),
          cmocka_unit_test(any_table_on_any_page), cmocka_unit_test(any_density_can_be_shown),
          cmocka_unit_test(curves_and_their_truth_are_drawn), cmocka_unit_test(memory_may_run_out_anywhere))
