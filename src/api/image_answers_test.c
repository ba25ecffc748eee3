/* Tests of queries to image models: a density with a closed form, masks of every batch, validation without copies of
 * training images, and memory failures. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/file_lab.h"
#include "harness/image_files.h"
#include "image/images.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 130, SIDE = 8, P = SIDE * SIDE }; /* more than two batches of a session */

static acf_options *options(const char *const *extra) {
    static const char *const small[][2] = {
        {"preset", "tiny"},   {"threads", "1"},          {"image-scales", "1"},
        {"image-width", "4"}, {"image-like-width", "4"}, {"image-like-blocks", "1"},
        {"steps", "1"},       {"batch", "16"},           {"image-masks", "left + mcar:0.5"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        assert_int_equal(acf_options_set(o, small[i][0], small[i][1]), ACF_OK);
    for (; extra && *extra; extra += 2)
        if (acf_options_set(o, extra[0], extra[1]) != ACF_OK) fail_msg("%s", acf_error());
    return o;
}

static acf_images *images(int64_t n, int level) {
    acf_images *im;
    uint8_t *pixel = malloc((size_t)(n * P));
    assert_non_null(pixel);
    for (int64_t k = 0; k < n * P; k++) pixel[k] = (uint8_t)(level >= 0 ? level : k * 37 % 251);
    assert_int_equal(acf_images_make(pixel, n, SIDE, SIDE, 1, NULL, &im), ACF_OK);
    free(pixel);
    return im;
}

static acf_model *fit(const acf_images *im, const char *const *extra) {
    acf_options *o = options(extra);
    acf_model *m;
    if (acf_model_fit_images(im, o, NULL, NULL, &m) != ACF_OK) fail_msg("%s", acf_error());
    acf_options_free(o);
    return m;
}

static acf_image_session *session(const acf_model *m) {
    acf_image_session *s;
    if (acf_image_session_create(m, &s) != ACF_OK) fail_msg("%s", acf_error());
    return s;
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

/* The largest distance of a drawn level from the middle, the mean of a standard normal, in approximate standard
 * deviations of y there. */
static double farthest(const char *temperature) {
    const char *const plain[] = {
        "image-scales", "0", "image-likelihood", "normal", "image-dequantise", "uniform-logit", "image-temperature",
        temperature,    NULL};
    static uint8_t drawn[N * P];
    acf_images *im = images(N, 0);
    acf_model *m = fit(im, plain);
    acf_image_session *s = session(m);
    double most = 0;
    assert_int_equal(acf_image_session_draw(s, im, NULL, 5, 0, drawn), ACF_OK);
    for (int i = 0; i < N * P; i++) most = fmax(most, fabs(drawn[i] - 127.5));
    acf_image_session_free(s);
    acf_model_free(m);
    acf_images_free(im);
    return most / 71;
}

static void sessions_draw_at_the_temperature_of_the_options(void **state) {
    (void)state;
    assert_true(farthest("0.05") < 0.3);
    assert_true(farthest("0.5") > 1 && farthest("0.5") < 1.7);
    assert_true(farthest("1") > 1.7);
}

/* ---- densities --------------------------------------------------------------------------------------------------- */

/* log of the density of v = level + u when its logit is standard normal. Most of it is the log-determinant of the
 * encoding. */
static double logit_density(double v) {
    const double slope = 0.9 / 256, t = 0.05 + slope * v, y = log(t / (1 - t));
    return -0.5 * y * y - 0.5 * log(2 * acos(-1)) + log(slope) - log(t * (1 - t));
}

/* Without transformations and with a standard normal likelihood, log p is the mean of the above over the noise u. */
static void the_encoding_is_part_of_log_p(void **state) {
    (void)state;
    static const char *const plain[] = {"image-scales",  "0", "image-likelihood", "normal", "image-dequantise",
                                        "uniform-logit", NULL};
    static const int level[] = {0, 7, 128, 255};
    for (int c = 0; c < 4; c++) {
        acf_images *im = images(N, level[c]);
        acf_model *m = fit(im, plain);
        acf_image_session *s = session(m);
        uint8_t given[N * P];
        double joint[N], half[N], sum = 0, part = 0, expected = 0;
        assert_int_equal(acf_images_masks(im, "left", 1, given), ACF_OK);
        assert_int_equal(acf_image_session_logp(s, im, NULL, joint), ACF_OK);
        assert_int_equal(acf_image_session_logp(s, im, given, half), ACF_OK);
        for (int i = 0; i < N; i++) sum += joint[i] / (N * P), part += half[i] / (N * P / 2);
        for (int i = 0; i < 1000; i++) expected += logit_density(level[c] + (i + 0.5) / 1000) / 1000;
        if (fabs(sum - expected) > 0.002 || fabs(part - expected) > 0.002)
            fail_msg("level %d: %.5f and %.5f a pixel, expected %.5f", level[c], sum, part, expected);
        acf_image_session_free(s);
        acf_model_free(m);
        acf_images_free(im);
    }
}

/* Each image has its own mask, in every batch. The answer equals that of a set in which all images have this mask. */
static void masks_belong_to_their_images(void **state) {
    (void)state;
    static const int target[] = {0, 63, 64, 71, 129};
    acf_images *im = images(N, -1);
    acf_model *m = fit(im, NULL);
    acf_image_session *s = session(m);
    uint8_t given[N * P], same[N * P], drawn[N * P], once[N * P], guess[N * P], alone[N * P];
    double all[N], one[N];
    assert_int_equal(acf_images_masks(im, "rect:0.1-0.9 + mcar:0.5", 3, given), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, im, given, all), ACF_OK);
    assert_int_equal(acf_image_session_draw(s, im, given, 5, 2, drawn), ACF_OK);
    assert_int_equal(acf_image_session_guess(s, im, given, guess, NULL), ACF_OK);
    for (size_t k = 0; k < sizeof target / sizeof *target; k++) {
        const int i = target[k];
        for (int j = 0; j < N; j++) memcpy(same + j * P, given + i * P, P);
        assert_int_equal(acf_image_session_logp(s, im, same, one), ACF_OK);
        assert_int_equal(acf_image_session_draw(s, im, same, 5, 2, once), ACF_OK);
        assert_int_equal(acf_image_session_guess(s, im, same, alone, NULL), ACF_OK);
        if (all[i] != one[i]) fail_msg("image %d: %.17g, and %.17g where all have its mask", i, all[i], one[i]);
        assert_memory_equal(drawn + i * P, once + i * P, P);
        assert_memory_equal(guess + i * P, alone + i * P, P);
        for (int p = 0; p < P; p++)
            if (given[i * P + p]) assert_int_equal(drawn[i * P + p], acf_images_pixels(im)[i * P + p]);
    }
    acf_image_session_free(s);
    acf_model_free(m);
    acf_images_free(im);
}

/* ---- rotated copies -------------------------------------------------------------------------------------------- */

/* An image is held out with all its rotations, so validation uses no image that training has seen. */
static void rotated_copies_are_held_out_together(void **state) {
    (void)state;
    acf_images *im;
    acf_options *o = options((const char *const[]){"preset", "omniglot", NULL}), *all;
    acf_row_split split;
    uint8_t pixel[10 * P] = {0}, seen[40] = {0};
    char value[16];
    const acf_image_plan rotate = {.rotate = true};
    assert_int_equal(acf_options_for_images(o, &all), ACF_OK);
    assert_int_equal(acf_options_get(all, "image-rotate", value, sizeof value, NULL), ACF_OK);
    assert_string_equal(value, "true"); /* as the paper does for Omniglot */
    assert_int_equal(acf_options_set(all, "valid", "0.3"), ACF_OK);
    assert_int_equal(acf_images_make(pixel, 10, SIDE, SIDE, 1, &rotate, &im), ACF_OK);
    assert_int_equal(acf_image_split_rows(im, all, &split), ACF_OK);
    assert_true(split.train.n == 28 && split.valid.n == 12);
    for (int64_t k = 0; k < 28; k++) seen[acf_rows_at(&split.train, k)] += 1;
    for (int64_t k = 0; k < 12; k++) seen[acf_rows_at(&split.valid, k)] += 2;
    for (int k = 0; k < 40; k++) assert_true((seen[k] == 1 || seen[k] == 2) && seen[k] == seen[k % 10]);
    acf_images_free(im);
    acf_options_free(o), acf_options_free(all);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* From options to a model, with a step and a validation. */
static void fitting_survives_lack_of_memory(void **state) {
    (void)state;
    acf_images *im = images(12, -1);
    acf_options *o = options((const char *const[]){"image-likelihood", "pixelcnn", "valid", "0.2", NULL});
    int64_t n = 1;
    for (bool done = false; !done; n++) {
        acf_model *m = NULL;
        acf_alloc_fail_at(n);
        const acf_status status = acf_model_fit_images(im, o, NULL, NULL, &m);
        acf_alloc_fail_at(0);
        if (!(done = status == ACF_OK) && (status != ACF_EMEMORY || m))
            fail_msg("allocation %d: %s", (int)n, acf_error());
        acf_model_free(m);
    }
    assert_true(n > 30);
    acf_options_free(o);
    acf_images_free(im);
}

/* Every query, from a session to its answer; the session stays usable. */
static void queries_survive_lack_of_memory(void **state) {
    (void)state;
    acf_images *im = images(3, -1);
    acf_model *m = fit(im, NULL);
    uint8_t given[3 * P], level[3 * 3 * P];
    double lp[3], again[3];
    acf_image_session *s = session(m);
    assert_int_equal(acf_images_masks(im, "left", 1, given), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, im, given, lp), ACF_OK);
    acf_image_session_free(s);
    for (int what = 0; what < 6; what++)
        for (int64_t n = 1, done = 0; !done; n++) {
            acf_images *blank = NULL;
            acf_status status;
            s = NULL;
            acf_alloc_fail_at(n);
            status = acf_image_session_create(m, &s);
            if (!status && what == 0) status = acf_image_session_logp(s, im, given, again);
            if (!status && what == 1) status = acf_image_session_draw(s, im, given, 1, 0, level);
            if (!status && what == 2) status = acf_image_session_guess(s, im, given, level, NULL);
            if (!status && what == 3) status = acf_image_session_gibbs(s, im, NULL, 1, 2, level);
            if (!status && what == 4) status = acf_images_blank(m, 2, &blank);
            if (!status && what == 5) status = acf_images_masks(im, "left + rect", 1, given);
            acf_alloc_fail_at(0);
            if (!(done = status == ACF_OK) && status != ACF_EMEMORY)
                fail_msg("query %d, allocation %d: %s", what, (int)n, acf_error());
            if (s && what < 4) {
                assert_int_equal(acf_image_session_logp(s, im, given, again), ACF_OK);
                assert_memory_equal(lp, again, sizeof lp);
            }
            acf_images_free(blank);
            acf_image_session_free(s);
        }
    acf_model_free(m);
    acf_images_free(im);
}

static void files_survive_lack_of_memory(void **state) {
    (void)state;
    acf_lab_folder folder = acf_lab_folder_make();
    acf_images *im = images(3, -1);
    acf_model *m = fit(im, NULL);
    char path[200];
    snprintf(path, sizeof path, "%s/m.safetensors", folder.path);
    for (int64_t n = 1, done = 0; !done; n++) {
        acf_alloc_fail_at(n);
        const acf_status status = acf_model_save(m, path);
        acf_alloc_fail_at(0);
        if (!(done = status == ACF_OK)) assert_int_equal(status, ACF_EMEMORY);
    }
    for (int64_t n = 1, done = 0; !done; n++) {
        acf_model *back = NULL;
        acf_alloc_fail_at(n);
        const acf_status status = acf_model_load(path, NULL, &back);
        acf_alloc_fail_at(0);
        if (!(done = status == ACF_OK) && (status != ACF_EMEMORY || back))
            fail_msg("allocation %d: %s", (int)n, acf_error());
        acf_model_free(back);
    }
    acf_model_free(m);
    acf_images_free(im);
    acf_lab_folder_free(&folder);
}

ACF_TESTS(image_answers, cmocka_unit_test(sessions_draw_at_the_temperature_of_the_options),
          cmocka_unit_test(the_encoding_is_part_of_log_p), cmocka_unit_test(masks_belong_to_their_images),
          cmocka_unit_test(rotated_copies_are_held_out_together), cmocka_unit_test(fitting_survives_lack_of_memory),
          cmocka_unit_test(queries_survive_lack_of_memory), cmocka_unit_test(files_survive_lack_of_memory))
