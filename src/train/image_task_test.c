/* Tests of training on images in coarse-to-fine passes: a step's batch has the roles and shares of
 * image/image_passes.h, its loss is the mean weighted by these shares, and validation uses all passes. */
#include "train/image_task.h"

#include "harness/lab.h"
#include "model/config.h"

#include <math.h>
#include <string.h>

enum { N = 48, SIDE = 8, P = SIDE * SIDE, BATCH = 16, ROUNDS = 3 };

typedef struct bench {
    acf_device *dev;
    acf_images *im;
    acf_image_net *net;
    acf_image_map *map;
    acf_trainer *tr;
} bench;

static void must(acf_status status) {
    if (status) fail_msg("%s", acf_error());
}

static void open_bench(bench *k, const char *passes) {
    static const acf_image_sizes size = {.H = SIDE,
                                         .W = SIDE,
                                         .C = 1,
                                         .scales = 1,
                                         .blocks = 1,
                                         .width = 4,
                                         .like = &acf_image_pixelcnn,
                                         .like_width = 6,
                                         .like_blocks = 1,
                                         .embed_blocks = 1,
                                         .components = 2};
    const char *const set[] = {"batch", "16",  "valid",        "0.25", "image-masks",  "mcar:0.3 + left + joint",
                               "steps", "100", "guess-weight", "0",    "image-passes", passes,
                               NULL};
    static uint8_t pixel[N * P];
    acf_options *o;
    for (int i = 0; i < N * P; i++) pixel[i] = (uint8_t)(i * 41 + i / 13);
    must(acf_device_open_cpu(2, &k->dev));
    must(acf_images_make(pixel, N, SIDE, SIDE, 1, NULL, &k->im));
    must(acf_config_create(&o));
    for (const char *const *s = set; *s; s += 2) must(acf_options_set_text(o, s[0], s[1]));
    must(acf_config_finish_images(o));
    must(acf_image_net_declare(k->dev, &size, &k->net));
    must(acf_image_net_build(k->net, 3, true));
    must(acf_image_map_uniform_logit(8, &k->map));
    must(acf_trainer_create_images(k->net, k->map, k->im, o, &k->tr));
    acf_options_free(o);
}

static void close_bench(bench *k) {
    acf_trainer_free(k->tr);
    acf_image_net_free(k->net);
    acf_release(k->map);
    acf_images_free(k->im);
    acf_device_close(k->dev);
}

/* log p of the batch, in nats of levels. */
static void score(const bench *k, const acf_image_batch *b, double *out) {
    const acf_image_query q = {.N = b->N, .x = b->x, .role = b->b, .id = b->id};
    acf_tape *t;
    must(acf_tape_create(k->dev, NULL, &t));
    acf_tape_begin(t, false);
    acf_tensor *logp = acf_image_net_logp(t, acf_image_net_view(t, k->net, &q, NULL));
    must(acf_tape_check(t, logp));
    for (int64_t i = 0; i < b->N; i++) out[i] = (double)logp->data[i] + b->logdet[i];
    acf_tape_free(t);
}

static void a_step_learns_passes_by_their_weights(void **state) {
    (void)state;
    bench used, fresh; /* fresh keeps its initial network */
    acf_train_step now;
    double logp[BATCH], loss = 0;
    open_bench(&used, "3"), open_bench(&fresh, "3");
    must(acf_trainer_step(used.tr, &now));
    const acf_image_batch *b = used.tr->image->batch;
    int in_rounds = 0;
    score(&fresh, b, logp);
    for (int i = 0; i < b->N; i++) {
        uint8_t role[P];
        const acf_rng_counter at = {used.tr->set.seed, b->id[i], ACF_STREAM_MASK, 0, 0};
        acf_image_masks_draw(used.dev, used.tr->image->masks, used.tr->set.seed, 0, 1, b->id + i, role);
        const double weight = acf_image_pass_draw(ROUNDS, at, SIDE, SIDE, role);
        assert_memory_equal(b->b + i * P, role, P);
        assert_true(fabs((double)b->share[i] * (double)b->N - weight) < 1e-5 * weight);
        in_rounds += memchr(role, ACF_PIXEL_ABSENT, P) != NULL || weight > 1;
        loss -= (double)b->share[i] * logp[i];
    }
    assert_true(in_rounds > b->N * 2 / 5 && in_rounds < b->N);
    if (fabs(now.loss - loss) > 1e-4 * fabs(loss)) fail_msg("the loss is %.6f, by hand %.6f", now.loss, loss);
    close_bench(&used), close_bench(&fresh);
}

/* The result is the mean over held-out images of the chain's log p. */
static void validation_uses_all_passes(void **state) {
    (void)state;
    bench k;
    double nll, logp[BATCH], sum = 0;
    acf_image_batch *b;
    open_bench(&k, "3");
    must(acf_trainer_validate(k.tr, &nll));
    const acf_rows *valid = &k.tr->image->valid;
    must(acf_image_batch_create(1, k.im, k.map, &b));
    for (int64_t i = 0; i < valid->n; i++)
        for (int r = 0; r < ROUNDS; r++) {
            const acf_image_query_lab how = {k.tr->image->masks, ROUNDS, r, k.tr->set.seed, UINT32_MAX};
            acf_image_batch_fill_pass(k.dev, b, k.im, &how, &(int64_t){acf_rows_at(valid, i)}, 1);
            score(&k, b, logp);
            sum -= logp[0] / (double)valid->n;
        }
    acf_image_batch_free(b);
    if (fabs(nll - sum) > 1e-4 * fabs(sum)) fail_msg("validation says %.6f, by hand it is %.6f", nll, sum);
    close_bench(&k);
}

ACF_TESTS(image_task, cmocka_unit_test(a_step_learns_passes_by_their_weights),
          cmocka_unit_test(validation_uses_all_passes))
