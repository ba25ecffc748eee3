/* Tests of initialising from an image model: its weights, its map of levels and its options are used; a model that does
 * not fit is refused. */
#include "acflow.h"

#include "harness/file_lab.h"
#include "harness/fit_lab.h"
#include "image/images.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 24, SIDE = 8, P = SIDE * SIDE };

/* One of two sets of images that differ in the frequencies of their levels. */
static acf_images *images(int which, bool flip) {
    acf_images *im;
    uint8_t pixel[N * P];
    for (int k = 0; k < N * P; k++) pixel[k] = (uint8_t)(which ? k * 11 % 64 : k * 37 % 251 / 2 + k % SIDE * 8);
    assert_int_equal(acf_images_make(pixel, N, SIDE, SIDE, 1, &(acf_image_plan){.flip = flip}, &im), ACF_OK);
    return im;
}

typedef const char *const setting[2];

static acf_options *options(setting *more) {
    static setting all[] = {
        {"threads", "1"}, {"batch", "8"}, {"valid", "0"}, {"image-like-width", "6"}, {"steps", "3"}};
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < (more ? 3 : 5); i++) assert_int_equal(acf_options_set(o, all[i][0], all[i][1]), ACF_OK);
    if (!more) assert_int_equal(acf_options_set(o, "preset", "tiny"), ACF_OK);
    for (; more && (*more)[0]; more++)
        if (acf_options_set(o, (*more)[0], (*more)[1]) != ACF_OK) fail_msg("%s", acf_error());
    return o;
}

typedef struct scene {
    acf_lab_folder folder;
    char path[200];
    acf_model *m; /* in the file */
} scene;

static void open_scene(scene *s) {
    acf_images *im = images(0, true);
    acf_options *o = options(NULL);
    s->folder = acf_lab_folder_make();
    snprintf(s->path, sizeof s->path, "%s/m.safetensors", s->folder.path);
    if (acf_model_fit_images(im, o, NULL, NULL, &s->m) || acf_model_save(s->m, s->path)) fail_msg("%s", acf_error());
    acf_options_free(o);
    acf_images_free(im);
}

static void close_scene(scene *s) {
    acf_model_free(s->m);
    acf_lab_folder_free(&s->folder);
}

static void score(const acf_model *m, const acf_images *im, double *out) {
    acf_image_session *s;
    if (acf_image_session_create(m, &s) || acf_image_session_logp(s, im, NULL, out)) fail_msg("%s", acf_error());
    acf_image_session_free(s);
}

/* Steps of size 0 leave the model unchanged: on other images, which would have another map, and with more blocks, which
 * do nothing yet. */
static void starts_where_the_model_ended(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    acf_images *im = images(1, true);
    acf_options *o = options((setting[]){
        {"init-from", s.path}, {"lr", "0"}, {"ema", "0"}, {"steps", "2"}, {"image-embed-deep", "2"}, {NULL, NULL}});
    acf_model *m;
    double before[2 * N], after[2 * N];
    if (acf_model_fit_images(im, o, NULL, NULL, &m)) fail_msg("%s", acf_error());
    score(s.m, im, before), score(m, im, after);
    for (int i = 0; i < N; i++)
        if (!(fabs(before[i] - after[i]) <= 1e-5 * fabs(before[i])))
            fail_msg("image %d: log p %.6f became %.6f", i, before[i], after[i]);
    assert_true(acf_model_params(m)->n > acf_model_params(s.m)->n);
    assert_true(m->record.steps == 2 && m->record.before == 3 && m->seen.flipped);
    acf_model_free(m);
    acf_options_free(o);
    acf_images_free(im);
    close_scene(&s);
}

/* Two runs initialised one from the other, through a file: the steps add up. */
static void steps_before_are_remembered(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    acf_images *im = images(0, true);
    acf_model *m[2], *back;
    for (int k = 0; k < 2; k++) {
        acf_options *o = options((setting[]){{"init-from", s.path}, {"steps", "4"}, {NULL, NULL}});
        char text[2000];
        if (acf_model_fit_images(im, o, NULL, NULL, &m[k]) || acf_model_save(m[k], s.path)) fail_msg("%s", acf_error());
        assert_int_equal(m[k]->record.before, 3 + 4 * k);
        assert_int_equal(acf_model_load(s.path, o, &back), ACF_OK);
        assert_int_equal(back->record.before, 3 + 4 * k);
        assert_int_equal(acf_model_info(back, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
        assert_non_null(strstr(text, k ? "started from a model after 7 steps" : "started from a model after 3 steps"));
        acf_model_free(back);
        acf_options_free(o);
    }
    double a[2 * N], b[2 * N];
    score(m[0], im, a), score(m[1], im, b);
    assert_true(a[0] != b[0]); /* it has learned */
    acf_model_free(m[0]), acf_model_free(m[1]);
    acf_images_free(im);
    close_scene(&s);
}

/* Options that are not set keep the model's values, except seed and precision. */
static void options_are_taken_over(void **state) {
    (void)state;
    scene s;
    char text[64];
    open_scene(&s);
    acf_options *o = options((setting[]){{"init-from", s.path}, {"lr", "0.5"}, {NULL, NULL}}), *all;
    setting expected[] = {
        {"image-like-width", "6"}, {"steps", "3"}, {"image-flip", "true"}, {"image-rotate", "false"}, {"lr", "0.5"},
        {"preset", "tiny"},        {"seed", "1"}};
    assert_int_equal(acf_options_set_text(s.m->config, "seed", "9"), ACF_OK);
    assert_int_equal(acf_options_set_text(s.m->config, "precision", "bf16"), ACF_OK);
    assert_int_equal(acf_model_save(s.m, s.path), ACF_OK);
    if (acf_options_for_images(o, &all)) fail_msg("%s", acf_error());
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(acf_options_get(all, expected[i][0], text, sizeof text, NULL), ACF_OK);
        if (strcmp(text, expected[i][1]) != 0)
            fail_msg("'%s' is %s, expected %s", expected[i][0], text, expected[i][1]);
    }
    assert_int_equal(acf_options_get(all, "precision", text, sizeof text, NULL), ACF_OK);
    assert_string_equal(text, "float");
    acf_options_free(all);
    acf_options_free(o);
    close_scene(&s);
}

static void refuse(const char *path, setting more, acf_status expected, const char *says) {
    acf_images *im = images(0, false);
    acf_options *o = options((setting[]){{"init-from", path}, {more[0], more[1]}, {NULL, NULL}});
    acf_model *m;
    assert_int_equal(acf_model_fit_images(im, o, NULL, NULL, &m), expected);
    if (!strstr(acf_error(), says)) fail_msg("the sentence is '%s'", acf_error());
    assert_null(m);
    acf_options_free(o);
    acf_images_free(im);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    scene s;
    acf_images *im;
    acf_model *m;
    acf_table *t;
    open_scene(&s);
    refuse(s.path, (setting){"image-like-width", "7"}, ACF_EUSAGE, "'image-like-width' is 7");
    refuse(s.path, (setting){"image-dequantise", "uniform-logit"}, ACF_EUSAGE, "'image-dequantise' is uniform-logit");
    refuse("/nowhere/m", (setting){"steps", "1"}, ACF_EIO, "/nowhere/m");
    const uint8_t wide[3 * 10 * 8] = {0};
    assert_int_equal(acf_images_make(wide, 3, 10, 8, 1, NULL, &im), ACF_OK);
    acf_options *o = options((setting[]){{"init-from", s.path}, {NULL, NULL}});
    assert_int_equal(acf_model_fit_images(im, o, NULL, NULL, &m), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "the model is of 8 x 8 pixels"));
    acf_images_free(im);
    const double cell[8] = {1, 2, 3, 4, 2, 1, 4, 3};
    assert_int_equal(acf_table_create(cell, NULL, 4, 2, NULL, NULL, &t), ACF_OK);
    assert_int_equal(acf_model_fit(t, o, NULL, NULL, &m), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "'init-from' is only for images"));
    assert_int_equal(acf_options_set(o, "init-from", ""), ACF_OK);
    if (acf_model_fit(t, o, NULL, NULL, &m) || acf_model_save(m, s.path)) fail_msg("%s", acf_error());
    refuse(s.path, (setting){"steps", "1"}, ACF_EUSAGE, "a model of a table");
    acf_model_free(m);
    acf_table_free(t);
    acf_options_free(o);
    close_scene(&s);
}

/* Blocks that have learned something are not dropped. */
static void deep_blocks_do_not_go(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    acf_images *im = images(0, false);
    acf_options *o = options((setting[]){{"init-from", s.path}, {"image-embed-deep", "1"}, {NULL, NULL}});
    acf_model *m;
    if (acf_model_fit_images(im, o, NULL, NULL, &m) || acf_model_save(m, s.path)) fail_msg("%s", acf_error());
    refuse(s.path, (setting){"image-embed-deep", "0"}, ACF_EUSAGE, "expected at least as many");
    acf_model_free(m);
    acf_options_free(o);
    acf_images_free(im);
    close_scene(&s);
}

static void survives_without_memory(void **state) {
    (void)state;
    scene s;
    open_scene(&s);
    acf_images *im = images(1, true);
    acf_options *o = options((setting[]){{"init-from", s.path}, {"steps", "1"}, {NULL, NULL}});
    acf_fit_lab_without_memory(NULL, im, o, 5000);
    acf_options_free(o);
    acf_images_free(im);
    close_scene(&s);
}

ACF_TESTS(image_init_from, cmocka_unit_test(starts_where_the_model_ended),
          cmocka_unit_test(steps_before_are_remembered), cmocka_unit_test(options_are_taken_over),
          cmocka_unit_test(what_cannot_be_is_refused), cmocka_unit_test(deep_blocks_do_not_go),
          cmocka_unit_test(survives_without_memory))
