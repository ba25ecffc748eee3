/* Tests of canvas.h and palette.h: drawings are at their place in the file, at every scale; hostile names, sizes and
 * paths get a message; failures leave nothing behind; the layout check finds overlaps and cut text. */
#include "plot/canvas.h"

#include "base/arena.h"
#include "base/text.h"
#include "harness/lab.h"
#include "harness/picture.h"

static acf_canvas *open_page(const char *path, double w, double h, double scale) {
    acf_canvas *c = NULL;
    assert_int_equal(acf_canvas_open(path, w, h, scale, &c), ACF_OK);
    return c;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void drawings_are_at_their_place(void **state) {
    (void)state;
    static const double scales[] = {0.5, 1, 2, 3};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        acf_canvas *c = open_page(picture_path(".png"), 200, 160, scales[k]);
        acf_canvas_fill(c, (acf_box){20, 40, 60, 20}, ACF_INK_DATA);
        acf_canvas_line(c, 100, 0, 100, 160, (acf_pen){ACF_INK_MISSING, 8, 0});
        acf_canvas_dot(c, 150, 120, 10, ACF_INK_MODEL);
        assert_int_equal(acf_canvas_save(c), ACF_OK);
        picture p = picture_read(picture_path(".png"));
        assert_int_equal(p.w, ceil(200 * scales[k]));
        assert_int_equal(p.h, ceil(160 * scales[k]));
        const double unit = scales[k] * scales[k];
        acf_assert_close((double)picture_all(&p, ACF_INK_DATA), 60 * 20 * unit, 0.02, "a box");
        acf_assert_close((double)picture_all(&p, ACF_INK_MISSING), 160 * 8 * unit, 0.02, "a line");
        acf_assert_close((double)picture_all(&p, ACF_INK_MODEL), 314 * unit, 0.3, "a dot");
        assert_int_equal(picture_all(&p, ACF_INK_DATA), picture_count(&p, ACF_INK_DATA, 0.09, 0.24, 0.41, 0.39));
        assert_int_equal(picture_all(&p, ACF_INK_MODEL), picture_count(&p, ACF_INK_MODEL, 0.69, 0.67, 0.81, 0.83));
        picture_free(&p);
    }
}

static void a_clip_hides_what_lies_outside(void **state) {
    (void)state;
    acf_canvas *c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_clip(c, (acf_box){50, 50, 100, 100});
    acf_canvas_fill(c, (acf_box){0, 0, 200, 200}, ACF_INK_DATA);
    acf_canvas_unclip(c);
    acf_canvas_fill(c, (acf_box){0, 0, 10, 10}, ACF_INK_MISSING);
    assert_int_equal(acf_canvas_save(c), ACF_OK);
    picture p = picture_read(picture_path(".png"));
    assert_int_equal(picture_all(&p, ACF_INK_DATA), 100 * 100);
    assert_int_equal(picture_all(&p, ACF_INK_MISSING), 10 * 10);
    picture_free(&p);
}

static void curves_are_interrupted_and_tamed(void **state) {
    (void)state;
    const double x[] = {20, 80, NAN, 120, 180}, y[] = {100, 100, 100, 100, 100};
    const double far[] = {-1e300, 1e300, INFINITY, -INFINITY}, wild[] = {1e308, -1e308, NAN, 5};
    acf_canvas *c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_curve(c, x, y, 5, (acf_pen){ACF_INK_DATA, 4, 0});
    acf_canvas_curve(c, far, wild, 4, (acf_pen){ACF_INK_GRID, 1, 0});
    acf_canvas_area(c, far, wild, 0, 3, ACF_INK_GRID);
    assert_int_equal(acf_canvas_save(c), ACF_OK);
    picture p = picture_read(picture_path(".png"));
    assert_in_range(picture_count(&p, ACF_INK_DATA, 0.1, 0.45, 0.4, 0.55), 200, 260);
    assert_int_equal(picture_count(&p, ACF_INK_DATA, 0.45, 0, 0.55, 1), 0);
    assert_in_range(picture_count(&p, ACF_INK_DATA, 0.6, 0.45, 0.9, 0.55), 200, 260);
    picture_free(&p);
}

static char *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    assert_non_null(f);
    *n = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

/* Two pictures of each format, with an image inside: the second has the same bytes although the process has drawn more
 * by then. */
static void the_same_drawing_is_the_same_file(void **state) {
    (void)state;
    static const char *const endings[] = {".png", ".svg"};
    uint32_t pixel[4] = {0xff0072b2, 0, 0, 0xff0072b2};
    for (int e = 0; e < 2; e++) {
        char *before = NULL;
        size_t n_before = 0, n;
        for (int k = 0; k < 2; k++) {
            acf_canvas *c = open_page(picture_path(endings[e]), 200, 200, 1);
            acf_canvas_pixels(c, (acf_box){10, 10, 50, 50}, pixel, 2, 2);
            acf_canvas_pixels(c, (acf_box){70, 10, 50, 50}, pixel, 2, 2);
            acf_canvas_text(c, 20, 100, "surface12 \"image7\" #surface3", (acf_type){10, .ink = ACF_INK_TEXT});
            assert_int_equal(acf_canvas_save(c), ACF_OK);
            char *text = slurp(picture_path(endings[e]), &n);
            if (k == 1) assert_int_equal(n, n_before), assert_memory_equal(text, before, n);
            free(before);
            before = text, n_before = n;
        }
        free(before);
    }
    assert_true(picture_svg(picture_path(".svg")) > 10);
    picture p = picture_read(picture_path(".png"));
    assert_int_equal(picture_all(&p, ACF_INK_DATA), 2 * 2 * 25 * 25);
    picture_free(&p);
}

/* ---- hostile ----------------------------------------------------------------------------------------------------- */

static void wrong_sizes_and_names_get_a_message(void **state) {
    (void)state;
    acf_canvas *c = NULL;
    static const struct {
        double w, h, scale;
    } sizes[] = {{0, 300, 1},       {-5, 300, 1},       {300, 1e9, 1},    {300, NAN, 1},   {300, 300, 0},
                 {300, 300, -1},    {INFINITY, 300, 1}, {300, 300, 9},    {300, 300, NAN}, {12000, 300, 2},
                 {20000, 20000, 1}, {159, 300, 1},      {300, 20001, 0.1}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        assert_int_equal(acf_canvas_open(picture_path(".png"), sizes[k].w, sizes[k].h, sizes[k].scale, &c), ACF_EUSAGE);
        assert_non_null(strstr(acf_error(), "expected"));
    }
    static const char *const names[] = {"a.jpg", "png", ".png", "", "a.png.gz", "a\x01\xff"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        assert_int_equal(acf_canvas_open(names[k], 300, 300, 1, &c), ACF_EUSAGE);
        assert_non_null(strstr(acf_error(), "must end in .png or .svg"));
    }
    assert_int_equal(acf_canvas_open("/nonexistent/a.png", 300, 300, 1, &c), ACF_EIO);
    assert_int_equal(access(picture_path(".png"), F_OK), -1); /* no file was made */
    c = open_page(picture_path(".svg"), 20000, 20000, 1);     /* an SVG has no pixels */
    acf_canvas_free(c);
    acf_canvas_free(NULL);
    assert_int_equal(access(picture_path(".svg"), F_OK), -1); /* dropped */
}

/* Bytes that are not text, control characters, a name of a megabyte: the page is drawn. */
static void any_text_can_be_drawn(void **state) {
    (void)state;
    char *huge = malloc(1 << 20);
    assert_non_null(huge);
    memset(huge, 'W', (1 << 20) - 1);
    huge[(1 << 20) - 1] = '\0';
    const char *const texts[] = {
        "plain", "\xff\xfe", "a\nb\tc\x7f", "naïve Größe 温度 \xf0\x9f\x98\x80", "\xe6\xb8", "\xc0\xaf", huge, "", "…"};
    static const char *const endings[] = {".png", ".svg"};
    for (int e = 0; e < 2; e++) {
        acf_canvas *c = open_page(picture_path(endings[e]), 300, 300, 3);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            acf_canvas_text_in(c, 10, 20 + 20 * (double)k, texts[k], (acf_type){10, .ink = ACF_INK_TEXT}, 280);
        assert_int_equal(acf_canvas_save(c), ACF_OK);
    }
    free(huge);
    picture p = picture_read(picture_path(".png"));
    assert_true(picture_count(&p, ACF_INK_TEXT, 0, 0, 1, 0.1) > 10);
    picture_free(&p);
    assert_true(picture_svg(picture_path(".svg")) > 10);
}

static void text_is_cut_to_fit(void **state) {
    (void)state;
    char out[ACF_FIT_MAX], small[ACF_FIT_MAX];
    const acf_type type = {10};
    acf_canvas *c = open_page(picture_path(".png"), 300, 300, 1);
    assert_string_equal(acf_canvas_fit(c, "age", type, 100, out), "age");
    for (double w = 300; w > 0; w -= 3.1) {
        acf_canvas_fit(c, "Größe über alles, in Metern", type, w, out);
        assert_true(acf_canvas_text_width(c, out, type) <= w);
        assert_true(acf_text_is_utf8(out, strlen(out)));
        if (out[0] && strcmp(out, "Größe über alles, in Metern") != 0) assert_non_null(strstr(out, "…"));
        if (out[0]) assert_true(out[0] == 'G' && (strlen(out) < 8 || out[strlen(out) - 1] == 'n')); /* both ends stay */
    }
    assert_string_equal(acf_canvas_fit(c, "age", type, 2, small), "");
    const double most =
        acf_canvas_text_width(c, "measured_in_the_morning_at", type); /* names that differ at their end */
    acf_canvas_fit(c, "measured_in_the_morning_at_home", type, most, out),
        acf_canvas_fit(c, "measured_in_the_morning_at_work", type, most, small);
    assert_string_not_equal(out, small);
    const double once = acf_canvas_text_width(c, "mmm", type), twice = acf_canvas_text_width(c, "mmm", (acf_type){20});
    acf_assert_close(twice, 2 * once, 0.001, "no hinting: widths grow with the size");
    acf_canvas_free(c);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void the_layout_is_checked(void **state) {
    (void)state;
    const acf_type type = {10, .ink = ACF_INK_TEXT};
    acf_canvas *c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_text(c, 50, 50, "one", type);
    acf_canvas_text(c, 60, 55, "two", type);
    assert_int_equal(acf_canvas_save(c), ACF_EINTERNAL);
    assert_non_null(strstr(acf_error(), "'two'"));
    c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_text(c, 190, 50, "at the edge", type);
    assert_int_equal(acf_canvas_save(c), ACF_EINTERNAL);
    c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_text(c, 10, 50, "at the other", (acf_type){10, .align = 1, .ink = ACF_INK_TEXT});
    assert_int_equal(acf_canvas_save(c), ACF_EINTERNAL);
    c = open_page(picture_path(".png"), 200, 200, 1);
    acf_canvas_text(c, 50, 50, "one", type);
    acf_canvas_text(c, 50, 90, "upright, through it", (acf_type){10, .upward = 1, .ink = ACF_INK_TEXT});
    assert_int_equal(acf_canvas_save(c), ACF_EINTERNAL);
    assert_int_equal(access(picture_path(".png"), F_OK), -1);
}

/* If the page is dropped, or memory runs out, an existing file is unchanged. */
static void failures_leave_the_old_file(void **state) {
    (void)state;
    const char *path = picture_path(".png");
    FILE *f = fopen(path, "wb");
    fputs("old", f);
    fclose(f);
    acf_canvas *c = open_page(path, 200, 200, 1);
    acf_canvas_free(c);
    size_t n;
    char *text = slurp(path, &n);
    assert_int_equal(n, 3);
    free(text);
    for (int64_t at = 1;; at++) { /* every allocation of acflow fails once */
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(at);
        acf_status status = acf_canvas_open(path, 200, 200, 1, &c);
        if (status == ACF_OK) {
            acf_canvas_text(c, 20, 20, "text", (acf_type){10, .ink = ACF_INK_TEXT});
            status = acf_canvas_save(c);
        }
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        text = slurp(path, &n);
        assert_int_equal(n, 3);
        free(text);
    }
    picture p = picture_read(path);
    picture_free(&p);
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

static void colours_can_be_told_apart_in_grey(void **state) {
    (void)state;
    assert_true(fabs(acf_ink_brightness(ACF_INK_DATA) - acf_ink_brightness(ACF_INK_MODEL)) > 0.25);
    assert_true(fabs(acf_ink_brightness(ACF_INK_MISSING) - acf_ink_brightness(ACF_INK_PALE)) > 0.4);
    for (int k = 0; k + 1 < 4; k++)
        assert_true(fabs(acf_ink_brightness(acf_palette_series(k)) - acf_ink_brightness(acf_palette_series(k + 1))) >
                    0.2);
    for (int k = 0; k < ACF_SERIES_MAX; k++)
        assert_true(acf_ink_brightness(acf_palette_series(k)) < 0.72); /* seen on white */
    double before = 1;
    for (int k = 0; k <= 100; k++) {
        const double now = acf_ink_brightness(acf_palette_scale(k / 100.0));
        assert_true(now < before);
        if (k) assert_true(before - now < 0.02); /* evenly */
        before = now;
    }
    assert_true(acf_palette_scale(NAN).red == acf_palette_scale(0).red);
    assert_true(acf_palette_scale(7).red == acf_palette_scale(1).red);
    assert_true(fabs(acf_ink_brightness(acf_ink_faded(ACF_INK_DATA, 0)) - 1) < 1e-12);
}

ACF_TESTS(canvas, cmocka_unit_test(drawings_are_at_their_place), cmocka_unit_test(a_clip_hides_what_lies_outside),
          cmocka_unit_test(curves_are_interrupted_and_tamed), cmocka_unit_test(the_same_drawing_is_the_same_file),
          cmocka_unit_test(wrong_sizes_and_names_get_a_message), cmocka_unit_test(any_text_can_be_drawn),
          cmocka_unit_test(text_is_cut_to_fit), cmocka_unit_test(the_layout_is_checked),
          cmocka_unit_test(failures_leave_the_old_file), cmocka_unit_test(colours_can_be_told_apart_in_grey))
