/* Tests of the public evaluation of image models: scores equal those of single queries; parts, masks and draws add up;
 * every mistake gets its sentence. */
#include "acflow.h"

#include "base/json.h"
#include "harness/image_files.h"
#include "harness/lab.h"
#include "image/images.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 110, SIDE = 8, P = SIDE * SIDE };

static acf_images *shapes;
static acf_model *learned;
static acf_options *o;

static void set(const char *name, const char *value) {
    if (acf_options_set(o, name, value) != ACF_OK) fail_msg("%s", acf_error());
}

/* Bars of various height and brightness. */
static int set_up(void **state) {
    (void)state;
    static const char *const small[][2] = {{"preset", "tiny"},    {"threads", "1"},
                                           {"image-width", "8"},  {"image-like-width", "8"},
                                           {"image-scales", "1"}, {"batch", "32"},
                                           {"steps", "40"},       {"lr", "0.01"},
                                           {"valid", "0.1"},      {"image-masks", "left + mcar:0.5*2"}};
    static uint8_t pixel[N * P];
    for (int k = 0; k < N * P; k++) {
        const int i = k / P, y = k % P / SIDE, bar = i % 5;
        pixel[k] = (uint8_t)(y >= bar && y < bar + 3 ? 180 + i % 7 * 5 : 30 + k * 7 % 11);
    }
    if (acf_options_create(&o)) return 1;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) set(small[i][0], small[i][1]);
    if (acf_images_make(pixel, N, SIDE, SIDE, 1, NULL, &shapes)) return 1;
    if (!learned && acf_model_fit_images(shapes, o, NULL, NULL, &learned)) return 1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_images_free(shapes);
    acf_options_free(o);
    return 0;
}

__attribute__((destructor)) static void forget(void) { acf_model_free(learned); }

static void refused(acf_status status, acf_status expected, const char *word) {
    if (status != expected || !strstr(acf_error(), word))
        fail_msg("%s, '%s' expected in: %s", acf_status_name(status), word, acf_error());
}

static json_t *report(const acf_image_evaluation *e) {
    static char text[1 << 17];
    json_t *j;
    assert_int_equal(acf_image_eval_report(e, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    assert_int_equal(acf_json_parse((acf_json_source){"a report", ACF_EINTERNAL}, text, strlen(text), 100000, &j),
                     ACF_OK);
    return j;
}

static json_t *evaluate(const acf_images *im, const char *masks) {
    acf_image_evaluation *e;
    if (acf_image_eval_run(im, learned, masks, NULL, o, &e) != ACF_OK) fail_msg("%s", acf_error());
    json_t *j = report(e);
    acf_image_eval_free(e);
    return j;
}

static double real(const json_t *j, const char *key) {
    const json_t *v = json_object_get(j, key);
    if (!json_is_number(v)) fail_msg("no number '%s'", key);
    return json_number_value(v);
}

static const json_t *method(const json_t *j, const char *name) {
    size_t i;
    const json_t *m;
    json_array_foreach(json_object_get(j, "methods"), i,
                       m) if (strcmp(json_string_value(json_object_get(m, "name")), name) == 0) return m;
    fail_msg("no method '%s'", name);
    return NULL;
}

/* ---- scores ---------------------------------------------------------------------------------------------------- */

/* The scores of single queries, for masks that are the same in every draw. */
static void scores_are_those_of_single_queries(void **state) {
    (void)state;
    static uint8_t given[N * P], level[N * P];
    static double lp[N], whole[N], guess[N * P], mean[N * P];
    double nll = 0, joint = 0, psnr = 0, hidden = 0, mse = 0, drawn = 0, averaged = 0;
    const uint8_t *truth = acf_images_pixels(shapes);
    acf_image_session *s;
    set("eval-draws", "2");
    json_t *j = evaluate(shapes, "left");
    assert_int_equal(acf_image_session_create(learned, &s), ACF_OK);
    assert_int_equal(acf_images_masks(shapes, "left", 1, given), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, shapes, given, lp), ACF_OK);
    assert_int_equal(acf_image_session_logp(s, shapes, NULL, whole), ACF_OK);
    assert_int_equal(acf_image_session_guess(s, shapes, given, NULL, guess), ACF_OK);
    for (uint32_t d = 0; d < 2; d++) {
        assert_int_equal(acf_image_session_draw(s, shapes, given, 1, d, level), ACF_OK);
        for (int k = 0; k < N * P; k++)
            drawn += pow(level[k] - truth[k], 2) / (2 * N * P / 2), mean[k] += level[k] / 2.0;
    }
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = i * P; k < (i + 1) * P; k++)
            sum += pow((guess[k] - truth[k]) / 255, 2), averaged += pow(mean[k] - truth[k], 2) / (N * P / 2);
        nll -= lp[i] / N, joint -= whole[i] / N, psnr -= 10 * log10(sum / P) / N,
            hidden -= 10 * log10(sum / (P / 2)) / N, mse += 65025 * sum / (N * P / 2);
    }
    acf_assert_close(real(j, "nll"), nll, 1e-9, "NLL");
    acf_assert_close(real(j, "bits_per_dimension"), nll / (P / 2 * log(2)), 1e-9, "bits");
    acf_assert_close(real(j, "nll_deviation"), 0, 1e-9, "deviation: all masks are the same");
    acf_assert_close(real(j, "joint_nll"), joint, 1e-9, "NLL of whole images");
    acf_assert_close(real(j, "joint_bits_per_dimension"), joint / (P * log(2)), 1e-9, "its bits");
    acf_assert_close(real(method(j, "best guess"), "psnr"), psnr, 1e-9, "PSNR");
    acf_assert_close(real(method(j, "best guess"), "psnr_hidden"), hidden, 1e-9, "PSNR of hidden pixels");
    acf_assert_close(real(method(j, "best guess"), "mse"), mse, 1e-9, "MSE");
    acf_assert_close(real(method(j, "single draws"), "mse"), drawn, 1e-9, "MSE of draws");
    acf_assert_close(real(method(j, "mean of draws"), "mse"), averaged, 1e-9, "MSE of their mean");
    const double recall = real(method(j, "single draws"), "recall"),
                 precision = real(method(j, "single draws"), "precision");
    assert_true(recall >= 0 && recall <= 1 && precision >= 0 && precision <= 1);
    assert_int_equal(json_array_size(json_object_get(j, "prd_curve")), 101);
    json_decref(j);
    acf_image_session_free(s);
}

/* Without masks, those of training are used. Every image belongs to one part, and the mean of the parts is the mean. */
static void parts_add_up(void **state) {
    (void)state;
    set("eval-draws", "0"), set("eval-masks", "1");
    json_t *j = evaluate(shapes, NULL);
    const json_t *part, *parts = json_object_get(j, "by_mask");
    double images = 0, nll = 0, hidden = 0;
    size_t i;
    assert_string_equal(json_string_value(json_object_get(j, "mask")), "left + mcar:0.5*2");
    assert_int_equal(json_array_size(parts), 2);
    json_array_foreach(parts, i, part) images += real(part, "images"),
        nll += real(part, "images") * real(part, "nll") / N, hidden += real(part, "images") * real(part, "hidden") / N;
    assert_true(images == N);
    acf_assert_close(nll, real(j, "nll"), 1e-9, "NLL of parts");
    acf_assert_close(hidden, real(j, "hidden"), 1e-9, "hidden by parts");
    assert_true(json_is_null(json_object_get(j, "nll_deviation"))); /* of one mask */
    json_t *again = evaluate(shapes, NULL);
    set("eval-masks", "3");
    json_t *more = evaluate(shapes, NULL);
    assert_true(json_equal(j, again));
    assert_true(real(more, "nll") != nll && real(more, "nll_deviation") > 0);
    json_decref(j), json_decref(again), json_decref(more);
}

static void splits_are_disjoint(void **state) {
    (void)state;
    acf_images *learn, *rest;
    int64_t a[4], b[4];
    uint8_t pixel[10 * 4];
    for (int k = 0; k < 40; k++) pixel[k] = (uint8_t)(k / 4);
    acf_images *ten;
    assert_int_equal(acf_images_make(pixel, 10, 2, 2, 1, &(acf_image_plan){.rotate = true}, &ten), ACF_OK);
    assert_int_equal(acf_images_split(ten, 0.3, 1, &learn, &rest), ACF_OK);
    assert_int_equal(acf_images_shape(learn, a), ACF_OK);
    assert_int_equal(acf_images_shape(rest, b), ACF_OK);
    assert_true(a[0] == 28 && b[0] == 12 && a[1] == 2 && b[3] == 1);
    int seen[10] = {0};
    for (int i = 0; i < 28; i++) seen[acf_images_pixels(learn)[i * 4]]++;
    for (int i = 0; i < 12; i++) seen[acf_images_pixels(rest)[i * 4]] += 100;
    for (int i = 0; i < 10; i++) assert_true(seen[i] == 4 || seen[i] == 400); /* all four rotations on one side */
    acf_images_free(learn), acf_images_free(rest), acf_images_free(ten);
    refused(acf_images_split(shapes, 0, 1, &learn, &rest), ACF_EUSAGE, "share of images to evaluate is 0");
    refused(acf_images_split(shapes, 1, 1, &learn, &rest), ACF_EUSAGE, "share of images to evaluate is 1");
    refused(acf_images_split(shapes, NAN, 1, &learn, &rest), ACF_EUSAGE, "share of");
    refused(acf_images_split(shapes, 1e-6, 1, &learn, &rest), ACF_EDATA, "cannot be split with a share of");
}

/* ---- mistakes -------------------------------------------------------------------------------------------------- */

static void wrong_queries_are_refused(void **state) {
    (void)state;
    acf_image_evaluation *e = NULL;
    acf_images *small;
    assert_int_equal(acf_images_make(acf_images_pixels(shapes), 2, 4, 4, 1, NULL, &small), ACF_OK);
    refused(acf_image_eval_run(NULL, learned, NULL, NULL, o, &e), ACF_EUSAGE, "'im' is NULL");
    refused(acf_image_eval_run(shapes, NULL, NULL, NULL, o, &e), ACF_EUSAGE, "'m' is NULL");
    refused(acf_image_eval_run(shapes, learned, NULL, small, o, &e), ACF_ESHAPE, "another size");
    refused(acf_image_eval_run(shapes, learned, "midle", NULL, o, &e), ACF_EUSAGE, "midle");
    refused(acf_image_eval_run(small, learned, "left", NULL, o, &e), ACF_EDATA, "4 x 4 pixels");
    refused(acf_image_eval_completed(shapes, "no-such-folder", NULL, o, &e), ACF_EIO, "no-such-folder");
    refused(acf_image_eval_completed(shapes, NULL, NULL, o, &e), ACF_EUSAGE, "NULL");
    refused(acf_image_eval_features("no.npy", (const char *const[]){"no.npy"}, 0, o, &e), ACF_EUSAGE, "0 sets");
    refused(acf_image_eval_features("no.npy", (const char *const[]){NULL}, 1, o, &e), ACF_EUSAGE, "NULL");
    refused(acf_image_eval_features("no.npy", (const char *const[]){"no.npy"}, 1, o, &e), ACF_EIO, "no.npy");
    refused(acf_image_eval_report(NULL, ACF_TEXT, NULL, 0, NULL), ACF_EUSAGE, "NULL");
    refused(acf_image_eval_report(NULL, ACF_JSON, NULL, 0, NULL), ACF_EUSAGE, "NULL");
    assert_null(e);
    acf_image_eval_free(NULL);
    acf_images_free(small);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(image_eval_api, WITH(scores_are_those_of_single_queries), WITH(parts_add_up), WITH(splits_are_disjoint),
          WITH(wrong_queries_are_refused))
