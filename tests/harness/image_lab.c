/* A small image model: see image_lab.h. */
#include "harness/image_lab.h"

#include "base/rng.h"

#include <stdlib.h>

acf_image_sizes acf_image_lab_sizes(int64_t side, int64_t C, int scales, const acf_image_like_kind *like) {
    return (acf_image_sizes){.H = side,
                             .W = side,
                             .C = C,
                             .scales = scales,
                             .blocks = 1,
                             .width = 4,
                             .like = like,
                             .like_width = 5,
                             .like_blocks = 2,
                             .embed_blocks = 1,
                             .embed_deep = 1,
                             .components = 2};
}

static bool given(const acf_image_lab *l, acf_image_mask mask, int64_t n, int64_t h, int64_t w) {
    const bool chosen = acf_lab_random(77, (n * l->H + h) * l->W + w, 0, 1) < 0.5;
    switch (mask) {
    case ACF_IMAGE_SOME:
    case ACF_IMAGE_PADDED: return chosen;
    case ACF_IMAGE_UPPER: return h < l->H / 2;
    case ACF_IMAGE_LEFT: return w < l->W / 2;
    case ACF_IMAGE_HOLE: return !(h >= 1 && h < l->H - 1 && w >= l->W / 2);
    case ACF_IMAGE_ONE: return (h * l->W + w) != (n * 5 + 3) % (l->H * l->W);
    case ACF_IMAGE_ALL: return true;
    default: return false;
    }
}

void acf_image_lab_mask(acf_image_lab *l, acf_image_mask mask) {
    for (int64_t i = 0; i < l->N * l->H * l->W; i++) {
        const int64_t n = i / (l->H * l->W), h = i / l->W % l->H, w = i % l->W;
        const bool there = mask != ACF_IMAGE_PADDED || (h < l->H - 1 && w < l->W - 1);
        l->role[i] = !there ? ACF_PIXEL_ABSENT : given(l, mask, n, h, w) ? ACF_PIXEL_GIVEN : ACF_PIXEL_ASKED;
    }
}

bool acf_image_lab_modelled(const acf_image_lab *l, int64_t i) { return l->role[i / l->C] == ACF_PIXEL_ASKED; }

/* Weights unlike their initial values, the same on every device. */
static void move_weights(acf_image_lab *l, double away) {
    acf_params *ps = acf_image_net_params(l->net);
    acf_real *value = acf_lab_fetch(l->dev, ps->value, ps->total);
    for (int64_t i = 0; i < ps->total; i++) value[i] += (acf_real)acf_lab_random(4, i, -away, away);
    if (acf_device_copy(l->dev, ps->value, value, (size_t)ps->total * sizeof *value, ACF_TO_DEVICE) ||
        acf_device_sync(l->dev))
        fail_msg("%s", acf_error());
    free(value);
}

void acf_image_lab_open_on(acf_image_lab *l, acf_device *dev, const acf_image_sizes *s, int64_t N, acf_image_mask mask,
                           double away) {
    *l = (acf_image_lab){.dev = dev, .N = N, .H = s->H, .W = s->W, .C = s->C};
    const int64_t pixels = N * s->H * s->W;
    assert_int_equal(acf_tape_create(l->dev, NULL, &l->t), ACF_OK);
    if (acf_image_net_declare(l->dev, s, &l->net) || acf_image_net_build(l->net, 5, true)) fail_msg("%s", acf_error());
    move_weights(l, away);
    l->x = malloc((size_t)(pixels * s->C) * sizeof *l->x), l->role = malloc((size_t)pixels);
    assert_true(l->x && l->role);
    for (int64_t i = 0; i < pixels * s->C; i++)
        l->x[i] = (acf_real)acf_rng_normal((acf_rng_counter){.seed = 9, .row = (uint64_t)i, .stream = ACF_STREAM_TEST});
    acf_image_lab_mask(l, mask);
    l->q = (acf_image_query){.N = N, .x = l->x, .role = l->role};
}

void acf_image_lab_open(acf_image_lab *l, int threads, const acf_image_sizes *s, int64_t N, acf_image_mask mask,
                        double away) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    acf_image_lab_open_on(l, dev, s, N, mask, away);
    l->owned = dev;
}

void acf_image_lab_close(acf_image_lab *l) {
    acf_image_net_free(l->net);
    acf_tape_free(l->t);
    acf_device_close(l->owned);
    free(l->x), free(l->role);
}
