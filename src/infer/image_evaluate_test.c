/* Evaluation of images: fillings with closed forms, scores by hand, winning baselines, completed images found by
 * name, and features that detect errors. */
#include "infer/image_evaluate.h"

#include "base/rng.h"
#include "harness/image_files.h"
#include "harness/lab.h"
#include "infer/features.h"
#include "infer/image_match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static acf_device *cpu(int threads) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

static acf_images *images(const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C) {
    acf_images *im;
    if (acf_images_make(pixel, N, H, W, C, NULL, &im) != ACF_OK) fail_msg("%s", acf_error());
    return im;
}

/* ---- fillings ---------------------------------------------------------------------------------------------------- */

static void the_mean_image_is_that_of_the_others(void **state) {
    (void)state;
    const uint8_t pixel[6] = {10, 20, 30, 40, 80, 90}, b[6] = {0, 1, 0, 0, 1, 0}, other[4] = {1, 3, 5, 7};
    acf_images *im = images(pixel, 3, 1, 2, 1), *seen = images(other, 2, 1, 2, 1), *one = images(pixel, 1, 1, 2, 1);
    double out[6];
    acf_fill_mean(im, b, NULL, out);
    assert_true(out[0] == (30 + 80) / 2. && out[1] == 20 && out[2] == (10 + 80) / 2. && out[3] == (20 + 90) / 2. &&
                out[4] == 80 && out[5] == 30);
    acf_fill_mean(im, b, seen, out);
    assert_true(out[0] == 3 && out[1] == 20 && out[2] == 3 && out[3] == 5 && out[5] == 5);
    acf_fill_mean(one, NULL, NULL, out);
    assert_true(isnan(out[0]) && isnan(out[1]));
    acf_images_free(im), acf_images_free(seen), acf_images_free(one);
}

/* Between two given columns a plane is the smoothest filling, in each channel and on any number of threads. */
static void smooth_fillings_are_planes_between_edges(void **state) {
    (void)state;
    enum { N = 40, H = 9, W = 12, C = 3, SIZE = N * H * W * C };
    static uint8_t pixel[SIZE], b[N * H * W];
    static double out[SIZE], again[SIZE];
    for (int k = 0; k < SIZE; k++) pixel[k] = (uint8_t)(k / C % W * 5 * (1 + k % C) + 20);
    for (int k = 0; k < N * H * W; k++) b[k] = k % W == 0 || k % W == W - 1;
    acf_images *im = images(pixel, N, H, W, C);
    for (int k = 0; k < SIZE; k++) out[k] = again[k] = b[k / C] ? pixel[k] : 0;
    acf_device *one = cpu(1), *three = cpu(3);
    acf_fill_smooth(one, im, b, out);
    acf_fill_smooth(three, im, b, again);
    for (int k = 0; k < SIZE; k++)
        if (fabs(out[k] - pixel[k]) > 0.5) fail_msg("number %d is %g, expected %d", k, out[k], pixel[k]);
    assert_memory_equal(out, again, sizeof out);
    for (int k = 0; k < N * H * W; k++) b[k] = k % W == 0; /* edges are free: a constant continues up to them */
    for (int k = 0; k < SIZE; k++) again[k] = b[k / C] ? 200 : 0;
    acf_fill_smooth(one, im, b, again);
    for (int k = 0; k < SIZE; k++) acf_assert_close(again[k], 200, 1e-12, "a constant");
    memset(b, 0, sizeof b); /* nothing is given: unchanged */
    memcpy(again, out, sizeof out);
    acf_fill_smooth(one, im, b, again);
    assert_memory_equal(out, again, sizeof out);
    acf_images_free(im);
    acf_device_close(one), acf_device_close(three);
}

/* ---- scores by hand ---------------------------------------------------------------------------------------------- */

enum { SIDE = 4, P = SIDE * SIDE };

static acf_image_evaluation *score(const acf_images *im, const char *masks, const acf_fill_set *set, int64_t sets) {
    acf_device *dev = cpu(1);
    acf_image_evaluation *e;
    if (acf_image_evaluate(
            &(acf_image_job){.im = im, .set = set, .sets = sets, .masks = masks, .cpu = dev, .how = {.seed = 1}}, &e) !=
        ACF_OK)
        fail_msg("%s", acf_error());
    acf_device_close(dev);
    return e;
}

/* The left half of the first of two images is wrong by a fifth of the range; the second has no error. */
static void scores_of_completed_images(void **state) {
    (void)state;
    uint8_t truth[2 * P], more[2 * P], less[2 * P];
    for (int k = 0; k < 2 * P; k++) {
        const int wrong = k < P && k % SIDE < SIDE / 2;
        truth[k] = 100, more[k] = (uint8_t)(100 + 51 * wrong), less[k] = (uint8_t)(100 - 51 * wrong);
    }
    acf_images *im = images(truth, 2, SIDE, SIDE, 1);
    const acf_fill_set set[2] = {{more, ACF_FILL_DRAW}, {less, ACF_FILL_DRAW}}, one = {more, ACF_FILL_OTHER};
    acf_image_evaluation *e = score(im, "left", set, 2);
    const acf_fill_scores *f = &e->fill[ACF_FILL_DRAW];
    const double decibel = -10 * log10(0.04);
    assert_true(f->sets == 2 && e->fill[ACF_FILL_GUESS].sets == 0 && e->share == 0.5);
    assert_true(e->changed == 0);
    acf_assert_close(f->hidden, decibel, 1e-12, "PSNR of hidden pixels");
    acf_assert_close(f->psnr, decibel + 10 * log10(2), 1e-12, "PSNR of all: the right image has none");
    acf_assert_close(f->mse, 2601 / 2., 1e-9, "MSE of hidden pixels, over both images");
    assert_true(isnan(f->recall) && isnan(e->nll.mean)); /* too few images; no model */
    f = &e->fill[ACF_FILL_MEAN_DRAW];
    assert_true(f->sets == 1 && isnan(f->psnr) && f->mse == 0); /* the two errors cancel */
    acf_release(e);
    e = score(im, "right", &one, 1); /* another mask: all wrong pixels were given */
    assert_true(e->changed == 0.5);
    acf_release(e);
    e = score(im, NULL, &one, 1); /* unknown mask */
    assert_true(e->changed == 0);
    f = &e->fill[ACF_FILL_OTHER];
    acf_assert_close(f->psnr, decibel + 10 * log10(2), 1e-12, "PSNR");
    acf_assert_close(f->mse, 2601 / 4., 1e-9, "MSE of all pixels");
    assert_true(e->fill[ACF_FILL_MEAN].sets == 0 && e->fill[ACF_FILL_MEAN_DRAW].sets == 0);
    acf_release(e);
    acf_images_free(im);
}

static void levels_of_few_bits_have_the_same_scale(void **state) {
    (void)state;
    uint8_t truth[P] = {0}, done[P];
    acf_images *im = images(truth, 1, SIDE, SIDE, 1);
    im->bits = 2;
    memset(done, 3, sizeof done);
    acf_image_evaluation *e = score(im, NULL, &(acf_fill_set){done, ACF_FILL_OTHER}, 1);
    acf_assert_close(e->fill[ACF_FILL_OTHER].psnr, 0, 1e-12, "PSNR of white for black");
    acf_assert_close(e->fill[ACF_FILL_OTHER].mse, 65025, 1e-9, "its MSE");
    acf_release(e);
    acf_images_free(im);
}

static void baselines_that_win_are_named(void **state) {
    (void)state;
    acf_image_evaluation e = {.N = 5, .H = 2, .W = 2, .C = 1, .masks = "left", .model = true};
    int best;
    e.fill[ACF_FILL_MEAN] = (acf_fill_scores){1, 12, 10, 900, 0.5, 0.5};
    e.fill[ACF_FILL_SMOOTH] = (acf_fill_scores){1, 14, 9, 800, NAN, 0.6};
    e.fill[ACF_FILL_GUESS] = (acf_fill_scores){1, 13, 11, 850, NAN, NAN};
    e.fill[ACF_FILL_DRAW] = (acf_fill_scores){3, 11, 8, 790, 0.6, 0.4};
    e.fill[ACF_FILL_OTHER] = (acf_fill_scores){0, 99, 99, 0, 1, 1}; /* absent */
    assert_int_equal(acf_fill_winner(&e, 0, &best), ACF_FILL_SMOOTH);
    assert_int_equal(best, ACF_FILL_GUESS);
    assert_int_equal(acf_fill_winner(&e, 1, &best), -1);
    assert_int_equal(acf_fill_winner(&e, 2, &best), -1); /* lower is better: draws win */
    assert_int_equal(best, ACF_FILL_DRAW);
    assert_int_equal(acf_fill_winner(&e, 3, &best), -1);
    assert_int_equal(acf_fill_winner(&e, 4, &best), ACF_FILL_SMOOTH);
    char text[4096];
    acf_text t = acf_text_into(text, sizeof text);
    acf_image_evaluation_text(&e, &t);
    if (!strstr(text, "A baseline is better than acflow:") ||
        !strstr(text, "PSNR       smooth filling, 14.000 against 13.000 of acflow, best guess"))
        fail_msg("%s", text);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A file of SIDE x SIDE pixels of one level. */
static void put_flat(acf_lab_folder *folder, const char *name, uint8_t level, int side) {
    static acf_lab_bytes bytes;
    static uint8_t pixel[100 * 100];
    memset(pixel, level, sizeof pixel);
    acf_lab_put_png(&bytes, (acf_lab_png){.type = 0, .bits = 8, .transparent = -1}, side, side, pixel);
    acf_lab_folder_put(folder, name, bytes.b, bytes.n);
}

static void completed_images_are_found_by_name(void **state) {
    (void)state;
    acf_lab_folder folder = acf_lab_folder_make(), truth = acf_lab_folder_make();
    acf_device *dev = cpu(1);
    acf_images *im;
    acf_image_matches m;
    put_flat(&truth, "a.png", 10, SIDE), put_flat(&truth, "a-b.png", 20, SIDE),
        put_flat(&truth, "c 1.jpg.png", 30, SIDE);
    assert_int_equal(acf_images_read(dev, truth.path, NULL, &im), ACF_OK);
    static const char *const name[] = {"a.png",          "a-b.png",           "c 1.jpg.png", "a.guess.png",
                                       "a-b.guess.png",  "c 1.jpg.guess.png", "a.10.png",    "a-b.10.png",
                                       "c 1.jpg.10.png", "a.2.png",           "a-b.2.png",   "c 1.jpg.2.png"};
    for (int k = 0; k < 12; k++) put_flat(&folder, name[k], (uint8_t)(100 + k), SIDE);
    put_flat(&folder, "sheet.png", 0, 90), put_flat(&folder, "a.0.png", 0, 90), put_flat(&folder, "a.2x.png", 0, 90),
        put_flat(&folder, "d.1.png", 0, 90);
    if (acf_image_match(dev, folder.path, im, false, &m) != ACF_OK) fail_msg("%s", acf_error());
    static const int fill[4] = {ACF_FILL_DRAW, ACF_FILL_DRAW, ACF_FILL_GUESS, ACF_FILL_OTHER},
                     first[4] = {109, 106, 103, 100};
    assert_int_equal(m.sets, 4);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(m.set[k].fill, fill[k]);
        for (int i = 0; i < 3; i++) /* the true ones, in their order: a-b, a, c */
            assert_int_equal(m.set[k].level[i * P], first[k] + (i == 2 ? 2 : 1 - i));
    }
    acf_image_matches_free(&m);
    put_flat(&folder, "a.02.png", 0, SIDE);
    assert_int_equal(acf_image_match(dev, folder.path, im, false, &m), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "two files for draw 2 of 'a.png'"));
    char path[300], gone[320];
    snprintf(path, sizeof path, "%s/a.02.png", folder.path), snprintf(gone, sizeof gone, "%s/gone.txt", folder.path);
    assert_int_equal(rename(path, gone), 0);
    put_flat(&folder, "a.3.png", 0, SIDE);
    assert_int_equal(acf_image_match(dev, folder.path, im, false, &m), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "no file for draw 3 of 'a-b.png'"));
    assert_true(m.sets == 0 && !m.level && !m.done);
    acf_images_free(im);
    put_flat(&truth, "a.jpg", 40, SIDE); /* with different endings, names keep them */
    acf_lab_folder twins = acf_lab_folder_make();
    static const char *const kept[] = {"a-b.png.1.png", "a.jpg.1.png", "a.png.1.png", "c 1.jpg.png.1.png"};
    for (int k = 0; k < 4; k++) put_flat(&twins, kept[k], (uint8_t)(50 + k), SIDE);
    assert_int_equal(acf_images_read(dev, truth.path, NULL, &im), ACF_OK);
    if (acf_image_match(dev, twins.path, im, false, &m) != ACF_OK) fail_msg("%s", acf_error());
    assert_true(m.sets == 1 && m.set[0].level[0] == 50 && m.set[0].level[P] == 51 && m.set[0].level[2 * P] == 52 &&
                m.set[0].level[3 * P] == 53);
    acf_image_matches_free(&m);
    acf_images_free(im);
    acf_device_close(dev);
    acf_lab_folder_free(&folder), acf_lab_folder_free(&truth), acf_lab_folder_free(&twins);
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

enum { MANY = 160, WIDE = 12, AREA = WIDE * WIDE };

/* A bright corner and a line below it, of varying brightness, so that every orientation can be recognised. */
static void draw_corners(uint8_t *pixel, uint64_t seed) {
    for (int k = 0; k < MANY * AREA; k++) {
        const int i = k / AREA, y = k % AREA / WIDE, x = k % WIDE;
        const int light = (int)acf_rng_below((acf_rng_counter){seed, (uint64_t)i, ACF_STREAM_TEST, 0, 0}, 60),
                  low = (int)acf_rng_below((acf_rng_counter){seed, (uint64_t)i, ACF_STREAM_TEST, 1, 0}, 3);
        pixel[k] = (uint8_t)((y < 5 && x < 4) || (y == 8 + low && x > 2) ? 150 + light : 20 + k * 13 % 7);
    }
}

static void features_detect_rotations_and_errors(void **state) {
    (void)state;
    static uint8_t pixel[MANY * AREA], other[MANY * AREA], wrong[MANY * AREA];
    static acf_real a[MANY * ACF_FEATURES_MAX], again[MANY * ACF_FEATURES_MAX];
    draw_corners(pixel, 1), draw_corners(other, 2);
    for (int k = 0; k < MANY * AREA; k++)
        wrong[k] =
            k % WIDE < WIDE / 2 ? other[k] : other[k / AREA * AREA + AREA - 1 - k % AREA]; /* half of it upside down */
    acf_images *im = images(pixel, MANY, WIDE, WIDE, 1);
    acf_device *one = cpu(1), *two = cpu(2);
    acf_features *f, *g;
    double right;
    assert_int_equal(acf_features_learn(one, im, 200, 1, &f), ACF_OK);
    assert_int_equal(acf_features_right(f, other, MANY, &right), ACF_OK);
    if (!(right > 0.9)) fail_msg("recognises %g of the orientations", right);
    acf_features_free(f);
    assert_int_equal(acf_features_learn(one, im, 20, 1, &f), ACF_OK);
    assert_int_equal(acf_features_learn(two, im, 20, 1, &g), ACF_OK);
    assert_int_equal(acf_features_of(f, other, MANY, a), ACF_OK);
    assert_int_equal(acf_features_of(g, other, MANY, again), ACF_OK);
    assert_int_equal(acf_features_count(f), 64 + 8 * 8);
    assert_memory_equal(a, again, MANY * (64 + 8 * 8) * sizeof *a);
    acf_features_free(f), acf_features_free(g);
    const acf_fill_set good = {other, ACF_FILL_OTHER}, bad = {wrong, ACF_FILL_OTHER};
    acf_image_evaluation *x = score(im, NULL, &good, 1), *y = score(im, NULL, &bad, 1);
    const acf_fill_scores *p = &x->fill[ACF_FILL_OTHER], *q = &y->fill[ACF_FILL_OTHER];
    if (!(p->precision > 0.8 && p->recall > 0.8 && q->precision < 0.3))
        fail_msg("precision %g and %g, recall %g and %g", p->precision, q->precision, p->recall, q->recall);
    assert_true(x->features == 64 + 8 * 8 && x->own_features && x->prd.curves == 1);
    acf_release(x), acf_release(y);
    acf_images_free(im);
    acf_device_close(one), acf_device_close(two);
}

/* Features of network and thumbnail have equal variance over the images; the thumbnail holds means of cells. */
static void features_are_balanced(void **state) {
    (void)state;
    static uint8_t pixel[MANY * AREA];
    static acf_real x[MANY * ACF_FEATURES_MAX];
    enum { F = 64 + 8 * 8 };
    draw_corners(pixel, 1);
    acf_images *im = images(pixel, MANY, WIDE, WIDE, 1);
    acf_device *dev = cpu(1);
    acf_features *f;
    assert_int_equal(acf_features_learn(dev, im, 3, 1, &f), ACF_OK);
    assert_int_equal(acf_features_of(f, pixel, MANY, x), ACF_OK);
    double variance[2] = {0, 0};
    for (int k = 0; k < F; k++) {
        double mean = 0;
        for (int i = 0; i < MANY; i++) mean += (double)x[i * F + k] / MANY;
        for (int i = 0; i < MANY; i++) variance[k >= 64] += pow((double)x[i * F + k] - mean, 2) / MANY;
    }
    acf_assert_close(variance[0], 1, 1e-4, "variance of the network's");
    acf_assert_close(variance[1], 1, 1e-4, "variance of the thumbnail's");
    const double bright = (double)x[64],
                 dark = (double)x[64 + 8 * 4 + 1]; /* cells of one and of two by two pixels: 12 = 8 cells of 1 or 2 */
    const double unit = bright - dark, expected = pixel[0] - (pixel[6 * WIDE + 1] + pixel[6 * WIDE + 2]) / 2.0;
    acf_assert_close(((double)x[64] - (double)x[64 + 7]) / unit, (pixel[0] - (pixel[10] + pixel[11]) / 2.0) / expected,
                     1e-3, "thumbnail");
    memset(pixel, 200, AREA);
    assert_int_equal(acf_features_of(f, pixel, 1, x), ACF_OK);
    for (int k = 64; k < F; k++)
        acf_assert_close((double)x[k] / (double)x[64], 1, 1e-5, "a flat image's thumbnail, whatever the cells' areas");
    acf_features_free(f);
    acf_images_free(im);
    acf_device_close(dev);
}

/* Images that are not square, in colour: four orientations. */
static void features_of_oblongs(void **state) {
    (void)state;
    enum { H = 6, W = 11, N = 120 };
    static uint8_t pixel[N * H * W * 3];
    for (int k = 0; k < N * H * W * 3; k++)
        pixel[k] = (uint8_t)(k / 3 % W < 3 && k / 3 / W % H < 2 ? 200 : k % 3 * 20 + k / (H * W * 3) % 9);
    acf_images *im = images(pixel, N, H, W, 3);
    acf_device *dev = cpu(1);
    acf_features *f;
    double right;
    assert_int_equal(acf_features_learn(dev, im, 200, 1, &f), ACF_OK);
    assert_int_equal(acf_features_right(f, pixel, N, &right), ACF_OK);
    assert_true(right > 0.99);
    assert_int_equal(acf_features_count(f), 64 + 6 * 8 * 3);
    acf_features_free(f);
    acf_images_free(im);
    acf_device_close(dev);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void memory_that_fails(void **state) {
    (void)state;
    uint8_t truth[2 * P] = {1, 2, 3};
    acf_images *im = images(truth, 2, SIDE, SIDE, 1);
    acf_device *dev = cpu(1);
    const acf_fill_set set = {truth, ACF_FILL_OTHER};
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    int n = 0;
    while (status == ACF_EMEMORY && n < 1000) {
        acf_image_evaluation *e = NULL;
        acf_alloc_fail_at(++n);
        status = acf_image_evaluate(
            &(acf_image_job){.im = im, .set = &set, .sets = 1, .masks = "left", .cpu = dev, .how = {.seed = 1}}, &e);
        acf_alloc_fail_at(0);
        acf_release(e);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(status == ACF_OK && n > 4);
    acf_images_free(im);
    acf_device_close(dev);
}

ACF_TESTS(image_evaluate, cmocka_unit_test(the_mean_image_is_that_of_the_others),
          cmocka_unit_test(smooth_fillings_are_planes_between_edges), cmocka_unit_test(scores_of_completed_images),
          cmocka_unit_test(levels_of_few_bits_have_the_same_scale), cmocka_unit_test(baselines_that_win_are_named),
          cmocka_unit_test(completed_images_are_found_by_name), cmocka_unit_test(features_detect_rotations_and_errors),
          cmocka_unit_test(features_are_balanced), cmocka_unit_test(features_of_oblongs),
          cmocka_unit_test(memory_that_fails))
