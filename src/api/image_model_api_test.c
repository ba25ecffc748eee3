/* Tests of image models from end to end: the model beats the mean image, queries keep their contracts, files hold a
 * model, training resumes from checkpoints bit for bit, and every mistake gets its sentence. */
#include "acflow.h"

#include "base/json.h"
#include "harness/file_lab.h"
#include "harness/image_files.h"
#include "image/images.h"
#include "model/config.h"
#include "model/image_model.h"
#include "train/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, SIDE = 8, P = SIDE * SIDE };

static acf_lab_folder folder;
static acf_images *shapes;
static acf_model *learned; /* of the shapes */
static char path[200];

/* A bright bar across the image: one half determines the other. */
static void draw_shapes(uint8_t *pixel) {
    for (int k = 0; k < N * P; k++) {
        const int i = k / P, y = k % P / SIDE, bar = i % 6;
        pixel[k] = (uint8_t)(y >= bar && y < bar + 3 ? 180 + i % 7 * 5 : 30 + k * 7 % 11);
    }
}

static acf_options *options(const char *const *extra) {
    static const char *const small[][2] = {{"preset", "tiny"},
                                           {"threads", "1"},
                                           {"image-scales", "2"},
                                           {"image-blocks", "1"},
                                           {"image-width", "8"},
                                           {"image-likelihood", "gaussian"},
                                           {"image-like-width", "16"},
                                           {"guess-weight", "0"},
                                           {"batch", "32"},
                                           {"steps", "80"},
                                           {"lr", "0.01"},
                                           {"warmup", "10"},
                                           {"valid-every", "40"},
                                           {"valid", "0.1"},
                                           {"ema", "0.9"},
                                           {"image-masks", "left + right + mcar:0.5"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        assert_int_equal(acf_options_set(o, small[i][0], small[i][1]), ACF_OK);
    for (; extra && *extra; extra += 2)
        if (acf_options_set(o, extra[0], extra[1]) != ACF_OK) fail_msg("%s", acf_error());
    return o;
}

static acf_model *fit(const char *const *extra) {
    acf_options *o = options(extra);
    acf_model *m;
    if (acf_model_fit_images(shapes, o, NULL, NULL, &m) != ACF_OK) fail_msg("%s", acf_error());
    acf_options_free(o);
    return m;
}

static int set_up(void **state) {
    (void)state;
    uint8_t pixel[N * P];
    draw_shapes(pixel);
    folder = acf_lab_folder_make();
    if (acf_images_make(pixel, N, SIDE, SIDE, 1, NULL, &shapes)) return 1;
    if (!learned) learned = fit(NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_images_free(shapes);
    acf_lab_folder_free(&folder);
    return 0;
}

/* Fitted once, for all tests. */
__attribute__((destructor)) static void forget(void) { acf_model_free(learned); }

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

/* given (N,P): the left half is hidden. */
static uint8_t *left_hidden(void) {
    uint8_t *given = malloc(N * P);
    assert_non_null(given);
    assert_int_equal(acf_images_masks(shapes, "left", 1, given), ACF_OK);
    return given;
}

static acf_image_session *session(const acf_model *m) {
    acf_image_session *s;
    if (acf_image_session_create(m, &s) != ACF_OK) fail_msg("%s", acf_error());
    return s;
}

/* ---- the fitted model ------------------------------------------------------------------------------------------ */

static void best_guesses_beat_the_mean_image(void **state) {
    (void)state;
    uint8_t *given = left_hidden();
    double *guess = malloc(N * P * sizeof *guess), mean[P] = {0}, model = 0, flat = 0;
    const uint8_t *truth = acf_images_pixels(shapes);
    acf_image_session *s = session(learned);
    assert_int_equal(acf_image_session_guess(s, shapes, given, NULL, guess), ACF_OK);
    for (int k = 0; k < N * P; k++) mean[k % P] += truth[k] / (double)N;
    for (int k = 0; k < N * P; k++) {
        if (given[k]) assert_true(guess[k] == truth[k]);
        model += (guess[k] - truth[k]) * (guess[k] - truth[k]),
            flat += given[k] ? 0 : (mean[k % P] - truth[k]) * (mean[k % P] - truth[k]);
    }
    if (!(model < flat / 3)) fail_msg("squared error %g, of the mean image %g", model, flat);
    acf_image_session_free(s);
    free(guess), free(given);
}

static void given_pixels_make_the_rest_likelier(void **state) {
    (void)state;
    uint8_t *given = left_hidden(), *other = malloc(N * P);
    double half[N], marginal[N], joint[N], a = 0, b = 0;
    acf_image_session *s = session(learned);
    assert_int_equal(acf_images_masks(shapes, "right", 1, other), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, shapes, given, half), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, shapes, other, marginal), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, shapes, NULL, joint), ACF_OK);
    for (int i = 0; i < N; i++) {
        assert_true(isfinite(half[i]) && isfinite(marginal[i]) && isfinite(joint[i]));
        a += half[i] + marginal[i], b += joint[i];
    }
    assert_true(a > b); /* log p(l|r) + log p(r|l) > log p(l,r), because the halves are dependent */
    memset(given, 1, N * P);
    assert_int_equal(acf_image_session_logp(s, shapes, given, half), ACF_OK);
    for (int i = 0; i < N; i++) assert_true(half[i] == 0); /* no targets */
    acf_image_session_free(s);
    free(given), free(other);
}

static void draws_keep_what_is_given_and_their_seed(void **state) {
    (void)state;
    uint8_t *given = left_hidden(), *a = malloc(N * P), *b = malloc(N * P), *c = malloc(N * P);
    const uint8_t *truth = acf_images_pixels(shapes);
    acf_image_session *s = session(learned);
    assert_int_equal(acf_image_session_draw(s, shapes, given, 7, 3, a), ACF_OK);
    assert_int_equal(acf_image_session_draw(s, shapes, given, 7, 3, b), ACF_OK);
    assert_int_equal(acf_image_session_draw(s, shapes, given, 7, 4, c), ACF_OK);
    assert_memory_equal(a, b, N * P);
    assert_memory_not_equal(a, c, N * P);
    for (int k = 0; k < N * P; k++)
        if (given[k]) assert_int_equal(a[k], truth[k]);
    /* The answer for an image does not depend on the other images. */
    acf_images *few;
    assert_int_equal(acf_images_make(truth, 3, SIDE, SIDE, 1, NULL, &few), ACF_OK);
    assert_int_equal(acf_image_session_draw(s, few, given, 7, 3, b), ACF_OK);
    assert_memory_equal(a, b, 3 * P);
    acf_images_free(few);
    acf_image_session_free(s);
    free(given), free(a), free(b), free(c);
}

static void chains_redraw_half_after_half(void **state) {
    (void)state;
    uint8_t *chain = malloc(5 * N * P);
    const uint8_t *truth = acf_images_pixels(shapes);
    acf_image_session *s = session(learned);
    assert_int_equal(acf_image_session_gibbs(s, shapes, NULL, 1, 4, chain), ACF_OK);
    assert_int_equal(acf_image_session_gibbs(s, shapes, NULL, 1, 0, chain), ACF_EUSAGE);
    assert_memory_equal(chain, truth, N * P);
    for (int step = 0; step < 4; step++) {
        const uint8_t *from = chain + step * N * P, *to = from + N * P;
        int changed = 0;
        for (int k = 0; k < N * P; k++) {
            const int y = k % P / SIDE, x = k % SIDE, at = step % 2 ? x : y;
            const int hidden = step < 2 ? at < SIDE / 2 : at >= SIDE / 2;
            if (!hidden) assert_int_equal(from[k], to[k]);
            changed += from[k] != to[k];
        }
        assert_true(changed > 0);
    }
    acf_image_session_free(s);
    free(chain);
}

/* ---- files, threads, checkpoints --------------------------------------------------------------------------------- */

static void same_answers(const acf_model *a, const acf_model *b) {
    double x[N], y[N];
    acf_image_session *s = session(a), *t = session(b);
    assert_int_equal(acf_image_session_logp(s, shapes, NULL, x), ACF_OK);
    assert_int_equal(acf_image_session_logp(t, shapes, NULL, y), ACF_OK);
    assert_memory_equal(x, y, sizeof x);
    acf_image_session_free(s), acf_image_session_free(t);
}

static void a_file_holds_the_model(void **state) {
    (void)state;
    acf_model *m;
    static char text[32768];
    assert_int_equal(acf_model_save(learned, in_folder("m.safetensors")), ACF_OK);
    if (acf_model_load(path, NULL, &m) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(acf_model_is_images(m), 1);
    assert_int_equal(acf_model_parameters(m), acf_model_parameters(learned));
    assert_int_equal(acf_model_columns(m), 0);
    same_answers(m, learned);
    assert_int_equal(acf_model_info(m, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "\"height\": 8"));
    assert_non_null(strstr(text, "\"image-masks\": \"left + right + mcar:0.5\""));
    assert_null(strstr(text, "\"gmm\""));
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "images: 8 x 8 pixels (width, height), grey, 8 bits"));
    assert_non_null(strstr(text, "nats per held-out image"));
    acf_model_free(m);
}

static int stop_at_20(void *ctx, const acf_fit_report *r) {
    (void)ctx;
    return r->step == 20;
}

static void training_goes_on_bit_for_bit(void **state) {
    (void)state;
    char file[200];
    snprintf(file, sizeof file, "%s/t.ckpt", folder.path);
    const char *const plain[] = {"steps", "40", "valid-every", "15", "threads", "2", NULL},
                      *const kept[] = {"steps", "40", "valid-every", "15", "checkpoint", file, "resume", "true", NULL},
                      *const other[] = {"steps",  "40",   "valid-every", "15",   "checkpoint", file,
                                        "resume", "true", "image-masks", "left", NULL};
    acf_model *whole = fit(plain), *m;
    acf_options *o = options(kept), *p = options(other);
    assert_int_equal(acf_model_fit_images(shapes, o, stop_at_20, NULL, &m), ACF_EINTERRUPT);
    assert_non_null(m);
    acf_model_free(m);
    assert_int_equal(acf_model_fit_images(shapes, p, NULL, NULL, &m), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "image-masks"));
    if (acf_model_fit_images(shapes, o, NULL, NULL, &m) != ACF_OK) fail_msg("%s", acf_error());
    same_answers(whole, m);
    acf_model_free(m), acf_model_free(whole);
    acf_options_free(o), acf_options_free(p);
}

static void the_best_guess_has_a_loss(void **state) {
    (void)state;
    const char *const with[] = {"steps", "10", "guess-weight", "1", NULL}, *const without[] = {"steps", "10", NULL},
                      *const pixel[] = {
                          "steps", "3", "image-likelihood", "pixelcnn", "image-like-blocks", "1", "guess-weight",
                          "1",     NULL};
    acf_model *a = fit(with), *b = fit(without), *c = fit(pixel);
    double x[N], y[N];
    acf_image_session *s = session(a), *t = session(b), *u = session(c);
    assert_int_equal(acf_image_session_logp(s, shapes, NULL, x), ACF_OK);
    assert_int_equal(acf_image_session_logp(t, shapes, NULL, y), ACF_OK);
    assert_memory_not_equal(x, y, sizeof x);
    assert_int_equal(acf_image_session_logp(u, shapes, NULL, y), ACF_OK);
    acf_image_session_free(s), acf_image_session_free(t), acf_image_session_free(u);
    acf_model_free(a), acf_model_free(b), acf_model_free(c);
}

/* Gaussian dequantisation uses the training images, not those held out: here only the latter are bright. The file has
 * the fitted map; an old file without a map means the logit. */
static void maps_are_of_what_is_learned(void **state) {
    (void)state;
    uint8_t pixel[N * P];
    const char *const half[] = {"valid", "0.5", NULL};
    acf_options *o = options(half), *old;
    acf_row_split split;
    acf_images *im;
    acf_image_map *map;
    assert_int_equal(acf_image_split_rows(shapes, o, &split), ACF_OK);
    memset(pixel, 40, sizeof pixel);
    for (int64_t i = 0; i < split.valid.n; i++) memset(pixel + acf_rows_at(&split.valid, i) * P, 200, P);
    assert_int_equal(acf_images_make(pixel, N, SIDE, SIDE, 1, NULL, &im), ACF_OK);
    assert_int_equal(acf_fit_image_map(im, o, &map), ACF_OK);
    assert_int_equal(map->dequantiser.n, 3); /* below, the spike, above */
    assert_true(map->dequantiser.levels[0] == 40 && map->dequantiser.levels[1] == 1);
    acf_release(map);
    assert_int_equal(acf_options_set(o, "image-dequantise", "uniform-logit"), ACF_OK);
    assert_int_equal(acf_fit_image_map(im, o, &map), ACF_OK);
    assert_int_equal(map->kind, ACF_IMAGE_LOGIT);
    acf_release(map);
    assert_int_equal(acf_config_create_old(&old), ACF_OK);
    assert_int_equal(acf_options_choice(old, "image-dequantise"), ACF_IMAGE_LOGIT);
    acf_options_free(old), acf_options_free(o);
    acf_images_free(im);
}

/* New images can be drawn without the padding, as for the training images, also with a model from a file. */
static void models_know_what_was_padding(void **state) {
    (void)state;
    static const uint8_t pixel[4 * 5 * 6];
    acf_options *o = options((const char *const[]){"steps", "1", "valid", "0", NULL});
    acf_images *im, *blank;
    acf_model *m[2];
    assert_int_equal(acf_images_make(pixel, 4, 5, 6, 1, &(acf_image_plan){.pad = 8}, &im), ACF_OK);
    if (acf_model_fit_images(im, o, NULL, NULL, &m[0]) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(acf_model_save(m[0], in_folder("padded.safetensors")), ACF_OK);
    assert_int_equal(acf_model_load(path, NULL, &m[1]), ACF_OK);
    for (int k = 0; k < 2; k++) {
        int64_t box[4];
        assert_int_equal(acf_images_blank(m[k], 2, &blank), ACF_OK);
        assert_int_equal(acf_images_frame(blank, box), ACF_OK);
        assert_true(box[0] == 1 && box[1] == 1 && box[2] == 7 && box[3] == 6);
        acf_images_free(blank);
        acf_model_free(m[k]);
    }
    acf_images_free(im);
    acf_options_free(o);
}

/* ---- mistakes -------------------------------------------------------------------------------------------------- */

static void refused(acf_status status, acf_status want, const char *part) {
    if (status != want || !strstr(acf_error(), part)) fail_msg("%s: %s", acf_status_name(status), acf_error());
}

static void wrong_queries_are_refused(void **state) {
    (void)state;
    acf_session *rows;
    acf_images *large = NULL, *im = NULL;
    acf_table *t;
    acf_options *o = options(NULL);
    acf_model *m;
    uint8_t pixel[16 * 16] = {0}, out[16 * 16];
    double lp;
    refused(acf_session_create(learned, &rows), ACF_EUSAGE, "model of images");
    refused(acf_table_read("nowhere.csv", learned, NULL, &t), ACF_EUSAGE, "model of images");
    refused(acf_images_open("nowhere", learned, NULL, &im), ACF_EIO, "nowhere");
    refused(acf_images_blank(learned, 0, &im), ACF_EUSAGE, "0 images");
    assert_int_equal(acf_images_make(pixel, 1, 16, 16, 1, NULL, &large), ACF_OK);
    acf_image_session *s = session(learned);
    refused(acf_image_session_logp(s, large, NULL, &lp), ACF_EDATA, "16 x 16");
    refused(acf_image_session_draw(s, large, NULL, 1, 0, out), ACF_EDATA, "the model is of 8 x 8");
    refused(acf_images_masks(large, "midle", 1, out), ACF_EUSAGE, "midle");
    refused(acf_images_masks(large, "no.png", 1, out), ACF_EIO, "no.png");
    assert_int_equal(acf_options_set(o, "preset", "paper"), ACF_OK);
    refused(acf_model_fit_images(shapes, o, NULL, NULL, &m), ACF_EUSAGE, "table models");
    assert_int_equal(acf_options_set(o, "preset", "tiny"), ACF_OK);
    assert_int_equal(acf_options_set(o, "device", "cpu"), ACF_OK);
    assert_int_equal(acf_options_set(o, "query-precision", "tf32"), ACF_OK);
    refused(acf_model_fit_images(shapes, o, NULL, NULL, &m), ACF_EDEVICE,
            "'query-precision' is tf32, which needs a GPU");
    assert_int_equal(acf_options_set(o, "query-precision", "float"), ACF_OK);
    assert_int_equal(acf_options_set(o, "image-scales", "5"), ACF_OK);
    refused(acf_model_fit_images(shapes, o, NULL, NULL, &m), ACF_EUSAGE, "8 x 8");
    acf_options_free(o);
    acf_image_session_free(s);
    acf_images_free(large);
}

/* Descriptions of images that a file may contain. */
static void hostile_descriptions_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"[]",
                                      "{}",
                                      "{\"height\":8,\"width\":8,\"channels\":2,\"bits\":8}",
                                      "{\"height\":0,\"width\":8,\"channels\":1,\"bits\":8}",
                                      "{\"height\":8,\"width\":5000000000,\"channels\":1,\"bits\":8}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":9}",
                                      "{\"height\":8,\"width\":8,\"channels\":1}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8,\"frame\":[0,0,8]}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8,\"flipped\":1}",
                                      "{\"height\":8,\"width\":6,\"channels\":1,\"bits\":8,\"rotated\":true}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8,\"frame\":[0,0,9,8]}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8,\"frame\":[0,8,8,8]}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8,\"frame\":[0,-1,8,8]}",
                                      "{\"height\":\"8\",\"width\":8,\"channels\":1,\"bits\":8}",
                                      "{\"height\":8,\"width\":8,\"channels\":1,\"bits\":8}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *j;
        int64_t shape[3];
        acf_image_seen seen;
        acf_image_map *map;
        const acf_json_source from = {"m, image", ACF_EMODEL};
        assert_int_equal(acf_json_parse(from, bad[i], strlen(bad[i]), 1000, &j), ACF_OK);
        const bool no_map = i + 1 == sizeof bad / sizeof *bad; /* valid for the logit */
        if (acf_image_model_from_json(from, j, ACF_IMAGE_DEQUANTISER, shape, &seen, &map) != ACF_EMODEL)
            fail_msg("%s", bad[i]);
        if (!no_map && acf_image_model_from_json(from, j, ACF_IMAGE_LOGIT, shape, &seen, &map) != ACF_EMODEL)
            fail_msg("%s", bad[i]);
        json_decref(j);
    }
}

/* A file whose text has 9 rows has no network of this size; it is refused before anything is computed. */
static void damaged_files_are_refused(void **state) {
    (void)state;
    static char bytes[1 << 22]; /* in double the model takes twice as much */
    acf_model *m;
    assert_int_equal(acf_model_save(learned, in_folder("d.safetensors")), ACF_OK);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(n < sizeof bytes);
    for (size_t at = 3; at < n; at += n / 37) {
        bytes[at] ^= 1;
        acf_lab_folder_put(&folder, "d.safetensors", bytes, n);
        assert_int_equal(acf_model_load(in_folder("d.safetensors"), NULL, &m), ACF_EMODEL);
        bytes[at] ^= 1;
    }
    acf_lab_folder_put(&folder, "d.safetensors", bytes, n / 2);
    assert_int_equal(acf_model_load(in_folder("d.safetensors"), NULL, &m), ACF_EMODEL);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(image_model_api, WITH(models_know_what_was_padding), WITH(best_guesses_beat_the_mean_image),
          WITH(given_pixels_make_the_rest_likelier), WITH(draws_keep_what_is_given_and_their_seed),
          WITH(chains_redraw_half_after_half), WITH(a_file_holds_the_model), WITH(training_goes_on_bit_for_bit),
          WITH(the_best_guess_has_a_loss), WITH(maps_are_of_what_is_learned), WITH(wrong_queries_are_refused),
          cmocka_unit_test(hostile_descriptions_are_refused), WITH(damaged_files_are_refused))
