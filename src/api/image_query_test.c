/* Tests of queries to image models: hidden pixels in coarse-to-fine passes, each given the earlier ones, and best
 * guesses averaged over known copies. The expected values are computed here from the network alone. */
#include "acflow.h"

#include "harness/file_lab.h"
#include "image/image_batches.h"
#include "image/image_symmetry.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 70, SIDE = 8, P = SIDE * SIDE }; /* more than one batch of a session */

static acf_images *images(bool rotate, bool flip) {
    acf_images *im;
    uint8_t pixel[N * P];
    for (int k = 0; k < N * P; k++) pixel[k] = (uint8_t)(k * 37 % 251 / 2 + k % SIDE * 8);
    assert_int_equal(acf_images_make(pixel, N, SIDE, SIDE, 1, &(acf_image_plan){.rotate = rotate, .flip = flip}, &im),
                     ACF_OK);
    return im;
}

/* A few steps of training, so that pixels depend on the given ones. */
static acf_model *fit(const acf_images *im, const char *masks, const char *passes, const char *at_once) {
    const char *const set[][2] = {{"preset", "tiny"},
                                  {"threads", "1"},
                                  {"image-scales", "1"},
                                  {"image-width", "4"},
                                  {"image-like-width", "6"},
                                  {"image-like-blocks", "1"},
                                  {"steps", "12"},
                                  {"batch", "16"},
                                  {"valid", "0"},
                                  {"image-masks", masks},
                                  {"image-passes", passes},
                                  {"image-single-pass", at_once},
                                  {"image-temperature", "0.8"}};
    acf_options *o;
    acf_model *m;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (acf_options_set(o, set[i][0], set[i][1]) != ACF_OK) fail_msg("%s", acf_error());
    if (acf_model_fit_images(im, o, NULL, NULL, &m) != ACF_OK) fail_msg("%s", acf_error());
    acf_options_free(o);
    return m;
}

static acf_image_session *session(const acf_model *m) {
    acf_image_session *s;
    if (acf_image_session_create(m, &s) != ACF_OK) fail_msg("%s", acf_error());
    return s;
}

/* ---- passes ---------------------------------------------------------------------------------------------------- */

/* Draw, log p and roles of one image, pass by pass, from the network. level: the image; its hidden pixels become the
 * draw. */
static void by_hand(const acf_model *m, uint64_t id, int passes, const uint8_t *b, uint64_t seed, uint32_t draw,
                    const uint8_t *level, uint8_t *drawn, double *logp) {
    const acf_image_code code = {m->map, P, 1};
    acf_tape *t;
    uint8_t role[P], truth[P];
    acf_real x[P], y[P] = {0}, lp;
    double logdet;
    memcpy(truth, level, P), memcpy(drawn, level, P);
    assert_int_equal(acf_tape_create(m->dev, NULL, &t), ACF_OK);
    *logp = 0;
    for (int k = 0; k < passes; k++) {
        const acf_draw how = {.seed = seed, .draw = draw, .log_temperature = log(0.8) * (passes - k + 1) / 2};
        acf_image_pass(passes, k, SIDE, SIDE, b, role);
        const acf_image_query q = {.N = 1, .x = x, .role = role, .id = &id};
        acf_image_encode(m->dev, &code, 1, truth, role, 0, &id, 0, x, &logdet);
        for (int p = 0; p < P; p++) x[p] = role[p] == ACF_PIXEL_ABSENT ? (acf_real)NAN : x[p];
        acf_tape_begin(t, false);
        acf_tensor *l = acf_image_net_logp(t, acf_image_net_view(t, m->image, &q, NULL));
        assert_int_equal(acf_tape_check(t, l), ACF_OK);
        lp = l->data[0];
        *logp += (double)lp + logdet;
        acf_image_encode(m->dev, &code, 1, drawn, role, seed, &id, draw, x, NULL);
        acf_tape_begin(t, false);
        assert_int_equal(acf_image_net_draw(t, acf_image_net_view(t, m->image, &q, NULL), &how, y), ACF_OK);
        for (int p = 0; p < P; p++)
            if (role[p] == ACF_PIXEL_ASKED) drawn[p] = (uint8_t)acf_image_map_level(m->map, (double)y[p]);
    }
    acf_tape_free(t);
}

static void passes_are_successive_queries(void **state) {
    (void)state;
    acf_images *im = images(false, false);
    for (int once = 0; once < 2; once++) {
        acf_model *m = fit(im, "left + rect", "3", once ? "true" : "false");
        acf_image_session *s = session(m);
        uint8_t given[N * P], drawn[N * P], expected[P];
        double logp[N], own;
        assert_int_equal(acf_images_masks(im, "rect:0.2-1 + mcar:0.3", 3, given), ACF_OK);
        for (int i = 0; i < N * P; i++) given[i] = (uint8_t)(given[i] * 255); /* any number but 0 */
        assert_int_equal(acf_image_session_logp(s, im, given, logp), ACF_OK);
        assert_int_equal(acf_image_session_draw(s, im, given, 5, 2, drawn), ACF_OK);
        for (int i = 0; i < N; i += 23) {
            by_hand(m, (uint64_t)i, once ? 1 : 3, given + i * P, 5, 2, acf_images_pixels(im) + i * P, expected, &own);
            assert_memory_equal(drawn + i * P, expected, P);
            if (fabs(logp[i] - own) > 1e-3 * fabs(own)) fail_msg("image %d: %.6f, by hand %.6f", i, logp[i], own);
        }
        acf_image_session_free(s);
        acf_model_free(m);
    }
    acf_images_free(im);
}

/* One image with one hidden pixel, or none: all passes but one, or all, have no targets. */
static void passes_without_targets_change_nothing(void **state) {
    (void)state;
    acf_images *all = images(false, false), *im;
    acf_model *m = fit(all, "left + rect", "5", "false");
    acf_image_session *s = session(m);
    uint8_t given[P], drawn[P], expected[P];
    double logp, own;
    assert_int_equal(acf_images_make(acf_images_pixels(all), 1, SIDE, SIDE, 1, NULL, &im), ACF_OK);
    for (int hole = -1; hole < P; hole += 9) {
        memset(given, 1, sizeof given), memset(drawn, 77, sizeof drawn);
        if (hole >= 0) given[hole] = 0;
        assert_int_equal(acf_image_session_logp(s, im, given, &logp), ACF_OK);
        assert_int_equal(acf_image_session_draw(s, im, given, 5, 2, drawn), ACF_OK);
        by_hand(m, 0, 5, given, 5, 2, acf_images_pixels(im), expected, &own);
        assert_memory_equal(drawn, expected, P);
        if (fabs(logp - own) > 1e-3 * fabs(own)) fail_msg("a hole at %d: %.6f, by hand %.6f", hole, logp, own);
    }
    acf_image_session_free(s);
    acf_model_free(m);
    acf_images_free(im), acf_images_free(all);
}

/* The passes of a model are in its file, and a Gibbs chain uses them. */
static void passes_are_kept_with_the_model(void **state) {
    (void)state;
    acf_images *im = images(false, false);
    acf_model *m = fit(im, "left + rect", "3", "false"), *back;
    uint8_t a[3 * N * P], b[3 * N * P], given[N * P], half[N * P];
    acf_lab_folder folder = acf_lab_folder_make();
    acf_options *ask;
    char path[200];
    snprintf(path, sizeof path, "%s/m.safetensors", folder.path);
    assert_int_equal(acf_model_save(m, path), ACF_OK);
    assert_int_equal(acf_options_create(&ask), ACF_OK);
    assert_int_equal(acf_options_set(ask, "image-temperature", "0.8"), ACF_OK); /* as in fit */
    assert_int_equal(acf_model_load(path, ask, &back), ACF_OK);
    acf_options_free(ask);
    acf_image_session *s = session(m), *t = session(back);
    assert_int_equal(acf_image_session_gibbs(s, im, NULL, 4, 2, a), ACF_OK);
    assert_int_equal(acf_image_session_gibbs(t, im, NULL, 4, 2, b), ACF_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(acf_images_masks(im, "top", 1, given), ACF_OK);
    assert_int_equal(acf_image_session_draw(s, im, given, 4, 0, half), ACF_OK);
    assert_memory_equal(half, a + N * P, N * P); /* the first step of the chain */
    acf_image_session_free(s), acf_image_session_free(t);
    acf_model_free(m), acf_model_free(back);
    acf_images_free(im);
    acf_lab_folder_free(&folder);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* The best guess of the image and its mask, transformed by one symmetry and transformed back, from a session without
 * known copies. */
static void moved_guess(acf_model *m, const uint8_t *level, const uint8_t *b, acf_image_symmetry by, double *out) {
    uint8_t pixel[P], mask[P];
    double real[P];
    const acf_image_seen seen = m->seen;
    acf_images *one;
    acf_image_move(by, SIDE, SIDE, 1, level, pixel), acf_image_move(by, SIDE, SIDE, 1, b, mask);
    assert_int_equal(acf_images_make(pixel, 1, SIDE, SIDE, 1, NULL, &one), ACF_OK);
    m->seen.rotated = m->seen.flipped = false;
    acf_image_session *s = session(m);
    assert_int_equal(acf_image_session_guess(s, one, mask, NULL, real), ACF_OK);
    for (int p = 0; p < P; p++) out[p] = real[acf_image_moved(by, SIDE, SIDE, p)];
    acf_image_session_free(s);
    acf_images_free(one);
    m->seen = seen;
}

static void check_guess(acf_model *m, const acf_images *im, const uint8_t *given, int i, const acf_image_symmetry *by,
                        int n) {
    uint8_t level[N * P];
    double real[N * P], expected[P] = {0}, one[P];
    acf_image_session *s = session(m);
    for (int k = 0; k < n; k++) {
        moved_guess(m, acf_images_pixels(im) + i * P, given + i * P, by[k], one);
        for (int p = 0; p < P; p++) expected[p] += one[p] / n;
    }
    assert_int_equal(acf_image_session_guess(s, im, given, NULL, real), ACF_OK);
    assert_int_equal(acf_image_session_guess(s, im, given, level, NULL), ACF_OK);
    for (int p = 0; p < P; p++) {
        if (fabs(real[i * P + p] - expected[p]) > 1e-3)
            fail_msg("image %d, pixel %d: %.5f, expected %.5f", i, p, real[i * P + p], expected[p]);
        assert_true(fabs(level[i * P + p] - real[i * P + p]) <= (n > 1 ? 0.5 : 1));
        if (given[i * P + p]) assert_int_equal(level[i * P + p], acf_images_pixels(im)[i * P + p]);
    }
    acf_image_session_free(s);
}

static void guesses_are_means_over_known_copies(void **state) {
    (void)state;
    static const struct {
        bool rotate, flip;
        const char *learned, *target;
        int n;
        acf_image_symmetry by[8];
    } cases[] = {
        {false, false, "left + bottom", "bottom", 1, {{0, false}}},
        {false, true, "left + bottom", "left", 1, {{0, false}}},              /* right halves were not trained */
        {false, true, "left + bottom", "bottom", 2, {{0, false}, {0, true}}}, /* its own flipped image */
        {false, true, "left + right", "left", 2, {{0, false}, {0, true}}},    /* both were trained */
        {false, true, "left + right*2", "left", 1, {{0, false}}},
        {true, false, "left + right + top + bottom", "left", 4, {{0, false}, {1, false}, {2, false}, {3, false}}},
        {true, false, "left + right", "left", 1, {{0, false}}},
        {true,
         true,
         "rect",
         "rect",
         8,
         {{0, false}, {1, false}, {2, false}, {3, false}, {0, true}, {1, true}, {2, true}, {3, true}}},
        {true, true, "left", "left", 2, {{0, false}, {2, true}}}, /* top and bottom exchanged */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        acf_images *im = images(cases[c].rotate, cases[c].flip), *plain = images(false, false);
        acf_model *m = fit(im, cases[c].learned, "1", "false");
        uint8_t given[N * P];
        assert_int_equal(acf_images_masks(plain, cases[c].target, 3, given), ACF_OK);
        check_guess(m, plain, given, 0, cases[c].by, cases[c].n);
        check_guess(m, plain, given, N - 1, cases[c].by, cases[c].n);
        acf_model_free(m);
        acf_images_free(im), acf_images_free(plain);
    }
}

static void copies_survive_lack_of_memory(void **state) {
    (void)state;
    acf_images *im = images(false, true);
    acf_model *m = fit(im, "rect", "1", "false");
    for (int64_t n = 1, done = 0; !done; n++) {
        acf_image_session *s = NULL;
        acf_alloc_fail_at(n);
        const acf_status status = acf_image_session_create(m, &s);
        acf_alloc_fail_at(0);
        if (!(done = status == ACF_OK) && (status != ACF_EMEMORY || s))
            fail_msg("allocation %d: %s", (int)n, acf_error());
        acf_image_session_free(s);
    }
    acf_model_free(m);
    acf_images_free(im);
}

ACF_TESTS(image_query, cmocka_unit_test(passes_are_successive_queries),
          cmocka_unit_test(passes_without_targets_change_nothing), cmocka_unit_test(passes_are_kept_with_the_model),
          cmocka_unit_test(guesses_are_means_over_known_copies), cmocka_unit_test(copies_survive_lack_of_memory))
