/* Tests of image_masks.h: the text form, the guarantees for every image, and the distributions. Draws depend on
 * fixed counters; thresholds correspond to events of probability one in a million or less. */
#include "image/image_masks.h"

#include "harness/image_files.h"
#include "image/image_ops.h"
#include "image/image_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4000 };
static uint8_t b[N * 32 * 32];
static uint64_t id[N];

static acf_image_masks *fitted(const char *text, int64_t H, int64_t W) {
    acf_image_masks *m = NULL;
    if (acf_image_masks_create(text, &m) != ACF_OK || acf_image_masks_fit(m, H, W) != ACF_OK)
        fail_msg("%s", acf_error());
    return m;
}

static acf_device *device(int threads) {
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

/* n masks of ids 0, 1, ... in b. */
static void drawn(const char *text, int64_t H, int64_t W, int64_t n, uint32_t draw) {
    acf_image_masks *m = fitted(text, H, W);
    acf_device *dev = device(2);
    for (int i = 0; i < n; i++) id[i] = (uint64_t)i;
    memset(b, 7, (size_t)(n * H * W));
    acf_image_masks_draw(dev, m, 20240607, draw, n, id, b);
    for (int64_t i = 0; i < n; i++) { /* the guarantee */
        int64_t modelled = 0;
        for (int64_t k = 0; k < H * W; k++) {
            assert_true(b[i * H * W + k] <= 1);
            modelled += !b[i * H * W + k];
        }
        assert_true(modelled > 0);
    }
    acf_device_close(dev);
    acf_image_masks_free(m);
}

/* The box that image i hides; fails if it is not a box. */
static acf_image_box box_of(const uint8_t *mask, int64_t H, int64_t W) {
    acf_image_box box = {W, H, 0, 0};
    int64_t missing = 0;
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++)
            if (!mask[y * W + x]) {
                box = (acf_image_box){acf_min(box.x0, x), acf_min(box.y0, y), acf_max(box.x1, x + 1),
                                      acf_max(box.y1, y + 1)};
                missing++;
            }
    assert_int_equal(missing, (box.x1 - box.x0) * (box.y1 - box.y0));
    return box;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static void boxes_are_where_they_should_be(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t H, W;
        acf_image_box box;
    } cases[] = {{"left", 32, 32, {0, 0, 16, 32}},     {"right", 32, 32, {16, 0, 32, 32}},
                 {"top", 32, 32, {0, 0, 32, 16}},      {"bottom", 32, 32, {0, 16, 32, 32}},
                 {"left", 5, 7, {0, 0, 3, 5}},         {"right", 5, 7, {4, 0, 7, 5}},
                 {"top", 5, 7, {0, 0, 7, 2}},          {"bottom", 5, 7, {0, 3, 7, 5}},
                 {"centre", 32, 32, {8, 8, 24, 24}},   {"centre", 64, 64, {16, 16, 48, 48}},
                 {"joint", 5, 7, {0, 0, 7, 5}},        {"face:1", 64, 64, {17, 26, 36, 58}},
                 {"face:2", 64, 64, {29, 26, 48, 58}}, {"face:3", 64, 64, {15, 26, 50, 37}},
                 {"face:4", 64, 64, {15, 26, 34, 37}}, {"face:5", 64, 64, {31, 26, 50, 37}},
                 {"face:6", 64, 64, {20, 43, 44, 62}}, {"face:6", 32, 128, {40, 22, 88, 31}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drawn(cases[i].text, cases[i].H, cases[i].W, 3, 0);
        for (int k = 0; k < 3; k++) {
            acf_image_box box = box_of(b + k * cases[i].H * cases[i].W, cases[i].H, cases[i].W);
            if (memcmp(&box, &cases[i].box, sizeof box) != 0)
                fail_msg("%s hides %d,%d,%d,%d", cases[i].text, (int)box.x0, (int)box.y0, (int)box.x1, (int)box.y1);
        }
    }
    int seen[6] = {0};
    drawn("face", 64, 64, 600, 1);
    for (int i = 0; i < 600; i++) {
        acf_image_box box = box_of(b + i * 4096, 64, 64);
        for (int k = 0; k < 6; k++) seen[k] += memcmp(&box, &cases[11 + k].box, sizeof box) == 0;
    }
    for (int k = 0; k < 6; k++) assert_true(fabs(seen[k] - 100.0) < 3.5 * sqrt(600.0 * 5 / 36));
}

/* The given share is P; pixels are independent of their neighbours and of the next image. */
static void mcar_keeps_its_share(void **state) {
    (void)state;
    for (int p = 0; p <= 10; p++) {
        char text[20];
        snprintf(text, sizeof text, "mcar:%g", p / 10.0);
        drawn(text, 32, 32, 500, (uint32_t)p);
        double given = 0, same[3] = {0};
        const int n = 500 * 1024, lag[3] = {1, 32, 1024};
        for (int i = 0; i < n; i++) given += b[i];
        for (int l = 0; l < 3; l++)
            for (int i = 0; i + lag[l] < n; i++) same[l] += (b[i] - p / 10.0) * (b[i + lag[l]] - p / 10.0);
        const double sd = sqrt(n * p / 10.0 * (1 - p / 10.0));
        assert_true(fabs(given - n * p / 10.0) <=
                    3.5 * sd + (p == 10 ? 500 : 0)); /* all given: one pixel of each image is modelled */
        for (int l = 0; l < 3 && p > 0 && p < 10; l++)
            assert_true(fabs(same[l]) < 3.5 * sqrt(n) * p / 10.0 * (1 - p / 10.0));
    }
}

/* Against the definition: all pairs of rows and of columns, those that fit equally likely. */
static void rectangles_have_their_distribution(void **state) {
    (void)state;
    enum { H = 5, W = 4, CELLS = H * H * W * W };
    static const struct {
        const char *text;
        int least, most; /* pixels */
    } cases[] = {{"rect:0-1", 1, 20},
                 {"rect", 2, 20},
                 {"rect:0.3-0.6", 6, 12},
                 {"rect:0.95-1", 19, 20},
                 {"rect:0.05-0.05", 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int weight[CELLS] = {0}, count[CELLS] = {0}, all = 0, cells = 0;
        double chi2 = 0;
        for (int k = 0; k < H * H * W * W; k++) {
            const int y[2] = {k % H, k / H % H}, x[2] = {k / H / H % W, k / H / H / W};
            const int y0 = y[0] < y[1] ? y[0] : y[1], y1 = y[0] + y[1] - y0, x0 = x[0] < x[1] ? x[0] : x[1],
                      x1 = x[0] + x[1] - x0;
            const int area = (y1 - y0 + 1) * (x1 - x0 + 1);
            if (area < cases[c].least || area > cases[c].most) continue;
            weight[((y0 * H + y1) * W + x0) * W + x1]++, all++;
        }
        drawn(cases[c].text, H, W, N, (uint32_t)c);
        for (int i = 0; i < N; i++) {
            acf_image_box box = box_of(b + i * H * W, H, W);
            count[((box.y0 * H + box.y1 - 1) * W + box.x0) * W + box.x1 - 1]++;
        }
        for (int k = 0; k < CELLS; k++) {
            const double expected = (double)N * weight[k] / all;
            if (weight[k] == 0)
                assert_int_equal(count[k], 0);
            else
                chi2 += (count[k] - expected) * (count[k] - expected) / expected, cells++;
        }
        if (cells > 1 && fabs(chi2 - (cells - 1)) > 3.5 * sqrt(2.0 * (cells - 1)))
            fail_msg("%s: chi-square %g in %d cells", cases[c].text, chi2, cells);
    }
    drawn("rect:0.3-1", 32, 30, 1000, 0);
    for (int i = 0; i < 1000; i++) {
        acf_image_box box = box_of(b + i * 960, 32, 30);
        assert_true((box.x1 - box.x0) * (box.y1 - box.y0) >= 288);
    }
}

static void cutouts_lie_anywhere(void **state) {
    (void)state;
    int seen[5][3] = {{0}};
    drawn("cutout:3", 7, 5, N, 0);
    for (int i = 0; i < N; i++) {
        acf_image_box box = box_of(b + i * 35, 7, 5);
        assert_true(box.x1 - box.x0 == 3 && box.y1 - box.y0 == 3);
        seen[box.y0][box.x0]++;
    }
    for (int k = 0; k < 15; k++) assert_true(fabs(seen[k / 3][k % 3] - N / 15.0) < 3.5 * sqrt(N / 15.0));
}

/* The coverage is as specified, in blobs of about the grid's size: most neighbours of a hole are holes. */
static void patterns_are_blobs(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int side, within; /* number of images, of 200, whose coverage must be in the band */
        double alike;
    } cases[] = {{"pattern", 64, 200, 0.85},
                 {"pattern:0.03", 64, 195, 0.9},
                 {"pattern:0.25", 32, 200, 0.6},
                 {"pattern:1", 32, 200, 0.2},
                 {"pattern", 1, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int S = cases[c].side;
        int good = 0, pairs = 0, alike = 0, stripes = 0;
        drawn(cases[c].text, S, S, 200, 0);
        for (int i = 0; i < 200; i++) {
            const uint8_t *m = b + i * S * S;
            int missing = 0;
            for (int k = 0; k < S * S; k++) {
                missing += !m[k];
                if (k % S + 1 < S && !m[k]) pairs++, alike += !m[k + 1];
            }
            good += missing > 0.2 * S * S && missing < 0.3 * S * S;
            stripes += memcmp(m, m + S, (size_t)(S * (S - 1))) == 0; /* every row is the one above it */
        }
        if (S > 1 && stripes > 0) fail_msg("%s: %d of 200 are stripes", cases[c].text, stripes);
        if (good < cases[c].within) fail_msg("%s: %d of 200 cover 20 to 30 %%", cases[c].text, good);
        if (pairs && alike < cases[c].alike * pairs)
            fail_msg("%s: %d of %d neighbours of holes are holes", cases[c].text, alike, pairs);
    }
}

static void mixtures_choose_by_weight(void **state) {
    (void)state;
    int count[3] = {0};
    drawn("left*3 + top + joint*2", 6, 6, N, 5);
    for (int i = 0; i < N; i++) {
        acf_image_box box = box_of(b + i * 36, 6, 6);
        count[box.x1 == 3 ? 0 : box.y1 == 3 ? 1 : 2]++;
    }
    const double p[3] = {3 / 6.0, 1 / 6.0, 2 / 6.0};
    for (int k = 0; k < 3; k++) assert_true(fabs(count[k] - N * p[k]) < 3.5 * sqrt(N * p[k] * (1 - p[k])));
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void a_file_is_a_mask(void **state) {
    (void)state;
    acf_lab_folder folder = acf_lab_folder_make();
    char path[80], text[120], written[120], expected[200];
    uint8_t pixel[3 * 4] = {255, 0, 128, 127, 0, 0, 200, 3, 255, 255, 0, 1}, none[12] = {0};
    snprintf(path, sizeof path, "%s/a+b.png", folder.path);
    assert_int_equal(acf_image_write_png(path, pixel, 3, 4, 1), ACF_OK);
    snprintf(text, sizeof text, "file:\"%s\" * 2", path);
    drawn(text, 3, 4, 4, 0);
    for (int i = 0; i < 48; i++) assert_int_equal(b[i], pixel[i % 12] < 128);
    acf_image_masks *m = fitted(text, 3, 4);
    acf_text t = acf_text_into(written, sizeof written);
    acf_image_masks_write(m, &t);
    snprintf(expected, sizeof expected, "file:\"%s\"*2", path);
    assert_string_equal(written, expected);
    assert_int_equal(acf_image_masks_fit(m, 4, 4), ACF_EDATA);
    snprintf(expected, sizeof expected,
             "%s: the mask has 4 x 3 pixels, but the images have 4 x 4; make a mask of that size", path);
    assert_string_equal(acf_error(), expected);
    assert_true(m->H == 3 && m->part[0].given);
    acf_image_masks_free(m);
    snprintf(path, sizeof path, "%s/none.png", folder.path);
    assert_int_equal(acf_image_write_png(path, none, 3, 4, 1), ACF_OK);
    snprintf(text, sizeof text, "left + file:%s", path);
    assert_int_equal(acf_image_masks_create(text, &m), ACF_OK);
    assert_int_equal(acf_image_masks_fit(m, 3, 4), ACF_EDATA);
    snprintf(expected, sizeof expected,
             "%s: the mask has no white, so nothing is missing; paint white what should be filled in", path);
    assert_string_equal(acf_error(), expected);
    acf_image_masks_free(m);
    acf_lab_folder_free(&folder);
}

/* A mask of the files' size is transformed like the images: here the middle 4 x 4 of 4 x 8, halved, in the middle of
 * 4 x 4. */
static void a_mask_of_the_files_size_is_cut_and_scaled(void **state) {
    (void)state;
    acf_lab_folder folder = acf_lab_folder_make();
    const acf_image_plan plan = {.middle = true, .width = 2, .height = 2, .pad = 4, .bits = 1};
    uint8_t image[4 * 8] = {0}, white[4 * 8] = {0}, outside[4 * 8] = {255};
    char path[80], text[120], expected[300];
    acf_images *im;
    acf_image_masks *m;
    white[1 * 8 + 3] = 255; /* in the upper left 2 x 2 of the middle */
    assert_int_equal(acf_images_make(image, 1, 4, 8, 1, &plan, &im), ACF_OK);
    assert_true(im->H == 4 && im->W == 4 && im->inner.x0 == 1 && im->inner.y0 == 1 && im->inner.x1 == 3 &&
                im->inner.y1 == 3);
    snprintf(path, sizeof path, "%s/m.png", folder.path);
    snprintf(text, sizeof text, "file:%s", path);
    assert_int_equal(acf_image_write_png(path, white, 4, 8, 1), ACF_OK);
    assert_int_equal(acf_image_masks_create(text, &m), ACF_OK);
    for (int64_t i = 1, done = 0; !done; i++) { /* every allocation fails in turn */
        acf_alloc_fail_at(i);
        const acf_status status = acf_image_masks_fit_to(m, im);
        acf_alloc_fail_at(0);
        if (!(done = status == ACF_OK)) assert_int_equal(status, ACF_EMEMORY);
        assert_true((m->part[0].given != NULL) == done);
    }
    for (int k = 0; k < 16; k++) assert_int_equal(m->part[0].given[k], k != 1 * 4 + 1);
    assert_int_equal(acf_image_write_png(path, outside, 4, 8, 1), ACF_OK);
    assert_int_equal(acf_image_masks_fit_to(m, im), ACF_EDATA);
    snprintf(
        expected, sizeof expected,
        "%s: the mask has no white in the part of the images that is used, so nothing is missing; paint white what "
        "should be filled in",
        path);
    assert_string_equal(acf_error(), expected);
    assert_int_equal(acf_image_write_png(path, outside, 8, 4, 1), ACF_OK);
    assert_int_equal(acf_image_masks_fit_to(m, im), ACF_EDATA);
    snprintf(expected, sizeof expected,
             "%s: the mask has 4 x 8 pixels, but the images have 4 x 4; make a mask of that size, or of 8 x 4 as their "
             "files have",
             path);
    assert_string_equal(acf_error(), expected);
    acf_image_masks_free(m);
    acf_images_free(im);
    acf_lab_folder_free(&folder);
}

/* ---- independence of batches ------------------------------------------------------------------------------------- */

/* An image gets the same mask alone, elsewhere in a batch, and with any number of threads; the next draw gives
 * another. */
static void masks_do_not_depend_on_the_batch(void **state) {
    (void)state;
    enum { n = 300, S = 24 * 20 };
    static uint8_t b1[n * S], b2[n * S], one_b[S];
    uint64_t rotated[n];
    acf_image_masks *m = fitted("mcar:0.5 + rect + left + cutout:5 + pattern:0.2 + face + joint*0.1", 24, 20);
    acf_device *one = device(1), *two = device(2);
    for (uint64_t i = 0; i < n; i++) id[i] = 7 * i + 3, rotated[n - 1 - i] = id[i];
    acf_image_masks_draw(one, m, 5, 1, n, id, b1);
    acf_image_masks_draw(two, m, 5, 1, n, rotated, b2);
    for (int i = 0; i < n; i++) {
        assert_memory_equal(b1 + i * S, b2 + (n - 1 - i) * S, S);
        acf_image_masks_draw(one, m, 5, 1, 1, id + i, one_b);
        assert_memory_equal(b1 + i * S, one_b, S);
    }
    acf_image_masks_draw(one, m, 5, 2, n, id, b2);
    assert_memory_not_equal(b1, b2, sizeof b1);
    acf_image_masks_draw(one, m, 6, 1, n, id, b2);
    assert_memory_not_equal(b1, b2, sizeof b1);
    for (int k = 0; k < m->n; k++) { /* a part alone gives the same as a mixture of it */
        acf_image_mask_part_draw(m, k, 5, 99, 1, b1);
        acf_image_masks single = *m;
        single.part[0] = m->part[k], single.n = 1;
        acf_image_masks_draw(one, &single, 5, 1, 1, (uint64_t[]){99}, b2);
        assert_memory_equal(b1, b2, S);
    }
    acf_device_close(one), acf_device_close(two);
    acf_image_masks_free(m);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void text_round_trips(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"mcar:0.2*2 + rect:0.1-1*2 + left", "mcar:0.2*2 + rect:0.1-1*2 + left"},
        {"  rect+cutout:16 * 2", "rect:0.1-1 + cutout:16*2"},
        {"pattern + face + face:3 + joint+ centre", "pattern:0.06 + face + face:3 + joint + centre"},
        {"file:a b.png + left", "file:a b.png + left"},
        {"file:\"a*b\"*3", "file:\"a*b\"*3"},
        {" paper-mnist ", "mcar:0.2*2 + rect:0.1-1*2 + left + right + top + bottom"},
        {"released-cifar", "mcar:0.7*2 + left + right + top + bottom + cutout:16*2 + rect:0.1-0.5*2"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char out[200], again[200];
        acf_image_masks *m, *back;
        acf_text t = acf_text_into(out, sizeof out), u = acf_text_into(again, sizeof again);
        assert_int_equal(acf_image_masks_create(cases[c][0], &m), ACF_OK);
        acf_image_masks_write(m, &t);
        assert_string_equal(out, cases[c][1]);
        assert_int_equal(acf_image_masks_create(out, &back), ACF_OK);
        acf_image_masks_write(back, &u);
        assert_string_equal(again, out);
        acf_image_masks_free(m), acf_image_masks_free(back);
    }
    const char *name = NULL;
    int k = 0;
    for (; acf_image_masks_named(k, &name); k++) acf_image_masks_free(fitted(name, 64, 64));
    assert_int_equal(k, 8);
    assert_string_equal(name, "released-celeba");
    acf_image_masks_free(NULL);
}

/* The released CelebA mixture nests three generators 1 : 1 : 2; in flat form each has its share. */
static void the_released_weights_add_up(void **state) {
    (void)state;
    acf_image_masks *m = fitted("released-celeba", 64, 64);
    double sum = 0, rect = 0, boxes = 0;
    for (int k = 0; k < m->n; k++) {
        sum += m->part[k].weight;
        rect += m->part[k].kind == ACF_HIDE_RECT ? m->part[k].weight : 0;
        boxes += m->part[k].kind == ACF_HIDE_FACE ? m->part[k].weight : 0;
    }
    assert_true(rect == sum / 2 && boxes == sum / 4);
    acf_image_masks_free(m);
}

static void wrong_text_is_reported(void **state) {
    (void)state;
#define NAMES                                                                                                          \
    "expected mcar:P, rect:A-B, left, right, top, bottom, centre, cutout:S, pattern:R, face:K, joint, file:PATH, or "  \
    "alone paper-mnist, released-mnist, ..."
    static const char *const cases[][2] = {
        {"", "masks '': at the end: " NAMES},
        {"middle", "masks 'middle': at 'middle': " NAMES},
        {"left + paper-mnist", "masks 'left + paper-mnist': at 'paper-mnist': " NAMES},
        {"mcar", "masks 'mcar': at the end: expected ':' and the share of pixels that are given, as in mcar:0.2"},
        {"mcar:2", "masks 'mcar:2': at ':2': expected ':' and the share of pixels that are given, as in mcar:0.2"},
        {"rect:0.5", "masks 'rect:0.5': at '0.5': expected the least and the largest area, as in rect:0.1-1"},
        {"rect:0.5-0.2",
         "masks 'rect:0.5-0.2': at '0.5-0.2': expected the least and the largest area, as in rect:0.1-1"},
        {"cutout:1.5", "masks 'cutout:1.5': at ':1.5': expected ':' and a number of pixels, as in cutout:16"},
        {"pattern:0",
         "masks 'pattern:0': at ':0': expected ':' and points per pixel from 0.001 to 1, as in pattern:0.06"},
        {"face:7", "masks 'face:7': at ':7': expected ':' and the number of a box, 1 to 6"},
        {"file", "masks 'file': at the end: expected ':' and the name of a file"},
        {"file: + left", "masks 'file: + left': at ' + left': expected the name of a file"},
        {"file:\"x", "masks 'file:\"x': at '\"x': expected a closing '\"'"},
        {"left*0", "masks 'left*0': at '0': expected a weight above 0, at most 1e100"},
        {"left right", "masks 'left right': at 'right': expected '*' and a weight, '+' and another part, or the end"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        acf_image_masks *m = NULL;
        assert_int_equal(acf_image_masks_create(cases[c][0], &m), ACF_EUSAGE);
        assert_string_equal(acf_error(), cases[c][1]);
        assert_null(m);
    }
    static const struct {
        const char *text, *sentence;
        int64_t H, W;
    } sizes[] = {{"rect:0.31-0.32",
                  "masks: no rectangle in 3 x 3 pixels has an area from 0.31 to 0.32 of them; allow a wider range", 3,
                  3},
                 {"cutout:4", "masks: a square of 4 pixels does not fit in 3 x 9; make it smaller", 9, 3},
                 {"pattern", "masks: 'pattern' for 9 x 2000 pixels; expected at most 1024 a side", 2000, 9}};
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        acf_image_masks *m = NULL;
        assert_int_equal(acf_image_masks_create(sizes[c].text, &m), ACF_OK);
        assert_int_equal(acf_image_masks_fit(m, sizes[c].H, sizes[c].W), ACF_EUSAGE);
        assert_string_equal(acf_error(), sizes[c].sentence);
        acf_image_masks_free(m);
    }
}

ACF_TESTS(image_masks, cmocka_unit_test(boxes_are_where_they_should_be), cmocka_unit_test(mcar_keeps_its_share),
          cmocka_unit_test(rectangles_have_their_distribution), cmocka_unit_test(cutouts_lie_anywhere),
          cmocka_unit_test(patterns_are_blobs), cmocka_unit_test(mixtures_choose_by_weight),
          cmocka_unit_test(a_file_is_a_mask), cmocka_unit_test(a_mask_of_the_files_size_is_cut_and_scaled),
          cmocka_unit_test(masks_do_not_depend_on_the_batch), cmocka_unit_test(text_round_trips),
          cmocka_unit_test(the_released_weights_add_up), cmocka_unit_test(wrong_text_is_reported))
