/* Tests of training on images through the trainer, on a GPU by captured steps and on the CPU one by one: the same
 * batches, losses and validation. Run by acflow-test --device cuda; --device cpu compares the CPU with itself. */
#include "train/train_graph.h"

#include "harness/lab.h"
#include "model/config.h"

#include <math.h>

enum { N = 70, SIDE = 8, STEPS = 12 };

typedef struct side {
    acf_device *dev;
    acf_image_net *net;
    acf_image_map *map;
    acf_trainer *tr;
} side;

static void must(acf_status status) {
    if (status) fail_msg("%s", acf_error());
}

/* Straight edges between dark and light. */
static acf_images *make_images(void) {
    static uint8_t pixel[N * SIDE * SIDE];
    acf_images *im;
    for (int64_t i = 0; i < N * SIDE * SIDE; i++) {
        const int64_t n = i / (SIDE * SIDE), h = i / SIDE % SIDE, w = i % SIDE;
        const double slope = acf_lab_random(1, n, -1, 1), at = acf_lab_random(2, n, 2, 6);
        pixel[i] =
            (uint8_t)((((double)w - at > slope * ((double)h - 3.5)) ? 200 : 30) + (int)acf_lab_random(3, i, 0, 25));
    }
    must(acf_images_make(pixel, N, SIDE, SIDE, 1, &(acf_image_plan){.bits = 8}, &im));
    return im;
}

/* 70 images, 7 of them held out: steps of 16, 16, 16 and 15; the last is padded in captured steps. */
static void open_side(side *s, acf_device *dev, const acf_images *im, const acf_image_sizes *size, const char *guess,
                      const char *passes) {
    static const char *const set[] = {"batch",   "16",  "valid",     "0.1",   "image-masks", "mcar:0.3 + left + joint",
                                      "steps",   "100", "lr",        "0.002", "warmup",      "4",
                                      "dropout", "0.1", "precision", "float", NULL};
    acf_options *o;
    *s = (side){.dev = dev};
    must(acf_config_create(&o));
    for (const char *const *k = set; *k; k += 2) must(acf_options_set_text(o, k[0], k[1]));
    must(acf_options_set_text(o, "guess-weight", guess));
    must(acf_options_set_text(o, "image-passes", passes));
    must(acf_config_finish_images(o));
    must(acf_image_net_declare(dev, size, &s->net));
    must(acf_image_net_build(s->net, 3, true));
    must(acf_image_map_uniform_logit(8, &s->map));
    must(acf_trainer_create_images(s->net, s->map, im, o, &s->tr));
    acf_options_free(o);
}

static void close_side(side *s) {
    acf_trainer_free(s->tr);
    acf_image_net_free(s->net);
    acf_release(s->map);
}

static void compare(const acf_image_sizes *size, const char *guess, const char *passes) {
    acf_images *im = make_images();
    acf_device *cpu;
    side here, there;
    double x, y;
    acf_test_device()->precision = ACF_PRECISION_FLOAT;
    must(acf_device_open_cpu(2, &cpu));
    open_side(&here, cpu, im, size, guess, passes);
    open_side(&there, acf_test_device(), im, size, guess, passes);
    for (int k = 0; k < STEPS; k++) {
        acf_train_step a, b;
        must(acf_trainer_step(here.tr, &a));
        must(acf_trainer_step(there.tr, &b));
        assert_false(a.skipped || b.skipped);
        assert_int_equal(a.rows, b.rows);
        assert_int_equal(a.rows, k % 4 == 3 ? 15 : 16);
        if (!(fabs(a.loss - b.loss) <= 2e-3 * fabs(a.loss)))
            fail_msg("step %d: the loss is %.5f here and %.5f there", k + 1, a.loss, b.loss);
        if (!(fabs(a.norm - b.norm) <= 2e-2 * a.norm))
            fail_msg("step %d: the gradient's norm is %.5f here and %.5f there", k + 1, a.norm, b.norm);
    }
    must(acf_trainer_validate(here.tr, &x));
    must(acf_trainer_validate(there.tr, &y));
    if (!(fabs(x - y) <= 2e-3 * fabs(x))) fail_msg("validation is %.5f here and %.5f there", x, y);
    if (there.dev->plugin && !there.tr->graph) fail_msg("steps were not captured");
    close_side(&there);
    close_side(&here);
    acf_device_close(cpu);
    acf_images_free(im);
}

static void gaussian_with_best_guess(void **state) {
    (void)state;
    compare(&(acf_image_sizes){.H = SIDE,
                               .W = SIDE,
                               .C = 1,
                               .scales = 2,
                               .blocks = 1,
                               .width = 12,
                               .like = &acf_image_gaussian,
                               .like_width = 8,
                               .like_blocks = 1},
            "0.5", "1");
}

static void pixelcnn(void **state) {
    (void)state;
    compare(&(acf_image_sizes){.H = SIDE,
                               .W = SIDE,
                               .C = 1,
                               .scales = 1,
                               .blocks = 1,
                               .width = 12,
                               .like = &acf_image_pixelcnn,
                               .like_width = 12,
                               .like_blocks = 2,
                               .embed_blocks = 1,
                               .components = 3},
            "0", "1");
}

/* Shares that differ between images, and pixels that are left out. */
static void pixelcnn_in_passes(void **state) {
    (void)state;
    compare(&(acf_image_sizes){.H = SIDE,
                               .W = SIDE,
                               .C = 1,
                               .scales = 2,
                               .blocks = 1,
                               .width = 12,
                               .like = &acf_image_pixelcnn,
                               .like_width = 12,
                               .like_blocks = 2,
                               .embed_blocks = 1,
                               .components = 3,
                               .guess = true},
            "0.5", "3");
}

ACF_DEVICE_TESTS(gpu_image_train, cmocka_unit_test(gaussian_with_best_guess), cmocka_unit_test(pixelcnn),
                 cmocka_unit_test(pixelcnn_in_passes))
