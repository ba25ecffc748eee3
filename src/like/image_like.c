/* Likelihoods of an image's latents: see image_like.h. */
#include "like/image_like.h"

#include "ops/arith.h"
#include "ops/chain_means.h"
#include "ops/concat.h"
#include "ops/gaussian.h"
#include "ops/image_parts.h"
#include "ops/masked.h"
#include "ops/mixture.h"

#include <math.h>
#include <stdio.h>

const acf_image_like_kind *const acf_image_like_kinds[] = {&acf_image_normal, &acf_image_gaussian, &acf_image_pixelcnn,
                                                           NULL};

static acf_tensor *filled(acf_tape *t, const acf_image_cond *c, double value) {
    return t->failure.status ? &t->empty : acf_tensor_const(t, NULL, value, 4, c->u->dim);
}

static acf_tensor *flat(acf_tape *t, acf_tensor *x) {
    const int64_t n = acf_tensor_count(x);
    return acf_tensor_view(t, x, 1, &n);
}

/* ---- Gaussians --------------------------------------------------------------------------------------------------- */

static acf_status normal_declare(acf_image_like *k, acf_params *ps, const char *name) {
    (void)k, (void)ps, (void)name;
    return ACF_OK;
}

/* `out` numbers per pixel, from the observed part of the image; 0 at first. */
static acf_status declare_output(acf_image_like *k, acf_params *ps, const char *name, int64_t out) {
    char part[96];
    snprintf(part, sizeof part, "%s.say", name);
    return acf_conv_layer_declare(&k->say, ps, part, (acf_conv_size){1, 1, k->width, out, 0},
                                  acf_conv_same(1, 1, ACF_IDENTITY));
}

static acf_tensor *say(acf_tape *t, const acf_image_like *k, acf_tensor *seen) {
    return acf_conv_layer_run(t, &k->say, acf_act(t, ACF_RELU, seen));
}

static acf_status gaussian_declare(acf_image_like *k, acf_params *ps, const char *name) {
    char part[96];
    snprintf(part, sizeof part, "%s.see", name);
    ACF_TRY(acf_image_embed_declare(&k->see, ps, part,
                                    &(acf_image_embed_shape){k->H, k->W, k->C, k->width, k->blocks, k->embed_deep}));
    return declare_output(k, ps, name, 2 * k->C);
}

/* Mean and log-scale of every number. */
static void normal_about(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, acf_tensor **mean,
                         acf_tensor **scale) {
    (void)k;
    *mean = filled(t, c, 0), *scale = filled(t, c, 0);
}

static void gaussian_about(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, acf_tensor **mean,
                           acf_tensor **scale) {
    acf_tensor *p = say(t, k, acf_image_embed_run(t, &k->see, c->given, c->b));
    *mean = acf_slice(t, p, 0, k->C), *scale = acf_slice(t, p, k->C, k->C);
}

typedef void (*about)(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, acf_tensor **mean,
                      acf_tensor **scale);

static acf_tensor *logp_of(acf_tape *t, const acf_image_like *k, acf_tensor *z, const acf_image_cond *c, about of) {
    acf_tensor *mean, *scale;
    of(t, k, c, &mean, &scale);
    return acf_sum_masked(t, acf_gaussian_logp(t, z, mean, scale, k->lo, k->hi), c->u);
}

static acf_tensor *mean_of(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, about of) {
    acf_tensor *mean, *scale;
    of(t, k, c, &mean, &scale);
    return acf_choose(t, c->u, mean, c->given);
}

static acf_tensor *sample_of(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, const acf_draw *d,
                             about of) {
    acf_tensor *mean, *scale;
    acf_draw here = *d;
    of(t, k, c, &mean, &scale);
    if (t->failure.status) return &t->empty;
    here.at = acf_image_cells(t, c->u->dim[0], k->H * k->W, k->C, true);
    const double warm = d->log_temperature;
    if (warm != 0) scale = acf_add(t, scale, filled(t, c, warm));
    acf_tensor *z = acf_gaussian_sample(t, flat(t, mean), flat(t, scale), k->lo + warm, k->hi + warm, &here);
    return t->failure.status ? &t->empty : acf_choose(t, c->u, acf_tensor_view(t, z, 4, c->u->dim), c->given);
}

#define GAUSSIAN(name)                                                                                                 \
    static acf_tensor *name##_logp(acf_tape *t, const acf_image_like *k, acf_tensor *z, const acf_image_cond *c) {     \
        return logp_of(t, k, z, c, name##_about);                                                                      \
    }                                                                                                                  \
    static acf_tensor *name##_mean(acf_tape *t, const acf_image_like *k, const acf_image_cond *c) {                    \
        return mean_of(t, k, c, name##_about);                                                                         \
    }                                                                                                                  \
    static acf_tensor *name##_sample(acf_tape *t, const acf_image_like *k, const acf_image_cond *c,                    \
                                     const acf_draw *d) {                                                              \
        return sample_of(t, k, c, d, name##_about);                                                                    \
    }
GAUSSIAN(normal)
GAUSSIAN(gaussian)

const acf_image_like_kind acf_image_normal = {"normal", normal_declare, normal_logp, normal_mean, normal_sample, true};
const acf_image_like_kind acf_image_gaussian = {"gaussian",    gaussian_declare, gaussian_logp,
                                                gaussian_mean, gaussian_sample,  true};

/* ---- PixelCNN ---------------------------------------------------------------------------------------------------- */

static acf_status pixel_declare(acf_image_like *k, acf_params *ps, const char *name) {
    if (k->components < 1 || k->components > ACF_MAX_COMPONENTS)
        return acf_fail(ACF_EUSAGE, "%lld components; expected 1 to %d", (long long)k->components, ACF_MAX_COMPONENTS);
    const acf_pixelcnn_shape shape = {
        k->H, k->W, k->C, k->width, acf_chain_width(k->C, k->components), k->blocks, k->embed_blocks, k->embed_deep};
    ACF_TRY(acf_pixelcnn_declare(&k->pixel, ps, name, &shape));
    return k->guess ? declare_output(k, ps, name, k->C) : ACF_OK;
}

static acf_tensor *pixel_logp(acf_tape *t, const acf_image_like *k, acf_tensor *z, const acf_image_cond *c) {
    acf_tensor *p = acf_pixelcnn_run(t, &k->pixel, z, c->given, c->b, c->pass);
    p = acf_chain_means(t, p, z, k->components);
    return acf_sum_masked(t, acf_mixture_logp(t, p, flat(t, z), k->components, k->lo, k->hi), c->u);
}

/* The numbers of one pixel (N,1,1,C), channel by channel, as each enters the next one's mixture. Numbers of later
 * channels are computed too, and again when they are due; those of earlier channels come out the same. */
static acf_tensor *make_pixel(acf_tape *t, const acf_image_like *k, acf_tensor *p, acf_tensor *old, acf_tensor *u,
                              const acf_draw *d) {
    acf_tensor *pixel = old;
    for (int64_t c = 0; c < k->C && !t->failure.status; c++) {
        acf_tensor *m = acf_chain_means(t, p, pixel, k->components);
        acf_tensor *v =
            d ? acf_mixture_sample(t, m, k->components, k->lo + d->log_temperature, k->hi + d->log_temperature, d)
              : acf_mixture_mean(t, m, k->components);
        pixel = t->failure.status ? &t->empty : acf_choose(t, u, acf_tensor_view(t, v, 4, old->dim), old);
    }
    return pixel;
}

/* The pixels of a row that was begun, one by one. at: the row's numbers, for draws. */
static void fill_row(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, acf_pixel_walk *walk, int64_t h,
                     const acf_draw *d, acf_cells at) {
    const int64_t NC = c->u->dim[0] * k->C;
    for (int64_t w = 0; w < k->W && !t->failure.status; w++) {
        acf_draw here = d ? *d : (acf_draw){0};
        if (d) here.at = (acf_cells){at.row + w * NC, at.column + w * NC};
        acf_tensor *p = acf_pixel_walk_at(t, walk, w), *u = acf_window(t, c->u, (acf_region){h, w, 1, 1});
        acf_tensor *old = acf_window(t, c->given, (acf_region){h, w, 1, 1});
        acf_pixel_walk_set(t, walk, w, make_pixel(t, k, p, old, u, d ? &here : NULL));
    }
}

/* The change of each channel's mixture parameters [logits | means | log-scales] by a temperature: logits / T,
 * log-scales + log T. */
static acf_pixel_change at_temperature(acf_tape *t, const acf_image_like *k, double log_temperature) {
    const int64_t K = k->components, A = acf_chain_width(k->C, K);
    acf_real *times = acf_arena_alloc(t->host, (size_t)A * sizeof *times),
             *plus = times ? acf_arena_alloc(t->host, (size_t)A * sizeof *plus) : NULL;
    if (!plus) {
        acf_tape_fail(t, NULL);
        return (acf_pixel_change){&t->empty, &t->empty};
    }
    for (int64_t i = 0; i < A; i++) {
        const int64_t part = i < 3 * K * k->C ? i / K % 3 : 1; /* after the mixtures come slopes of means */
        times[i] = part == 0 ? (acf_real)exp(-log_temperature) : 1;
        plus[i] = part == 2 ? (acf_real)log_temperature : 0;
    }
    return (acf_pixel_change){acf_tensor_input(t, times, 1, &A), acf_tensor_input(t, plus, 1, &A)};
}

/* Rows up to the last one with modelled numbers. */
static int64_t rows_to_walk(const acf_image_cond *c, int64_t H) {
    while (c->rows && H > 0 && !c->rows[H - 1]) H--;
    return H;
}

/* All modelled numbers in their order; d NULL: means. A GPU makes a row at once where it fits. A row without modelled
 * numbers needs its vertical stream, which rows below read, but no loop over pixels, which is most of the cost. */
static acf_tensor *pixel_fill(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, const acf_draw *d) {
    if (t->failure.status) return &t->empty;
    ACF_ASSERT(!t->record);
    const double warm = d ? d->log_temperature : 0;
    const acf_pixel_change change = warm != 0 ? at_temperature(t, k, warm) : (acf_pixel_change){0};
    const int64_t line = c->u->dim[0] * k->W * k->C, H = rows_to_walk(c, k->H),
                  A = acf_chain_width(k->C, k->components);
    const bool at_once =
        t->dev->kind == ACF_DEVICE_CUDA && acf_pixel_row_fits(k->width, k->C, A, k->components, k->blocks);
    const acf_pixel_row how = {
        .u = c->u, .given = c->given, .K = k->components, .lo = k->lo + warm, .hi = k->hi + warm};
    const acf_cells all = d ? acf_image_cells(t, c->u->dim[0], k->H * k->W, k->C, false) : (acf_cells){0};
    acf_pixel_walk *walk = acf_pixel_walk_new(t, &k->pixel, c->given, c->b, warm != 0 ? &change : NULL);
    for (int64_t h = 0; h < H && !t->failure.status; h++) {
        acf_draw here = d ? *d : (acf_draw){0};
        if (d) here.at = (acf_cells){all.row + h * line, all.column + h * line};
        acf_pixel_walk_row(t, walk, h);
        if (c->rows && !c->rows[h]) continue;
        if (at_once)
            acf_pixel_walk_fill(t, walk, how, d ? &here : NULL);
        else
            fill_row(t, k, c, walk, h, d, here.at);
    }
    return t->failure.status ? &t->empty : acf_pixel_walk_image(walk);
}

static acf_tensor *pixel_mean(acf_tape *t, const acf_image_like *k, const acf_image_cond *c) {
    if (!k->guess) return pixel_fill(t, k, c, NULL);
    return acf_choose(t, c->u, say(t, k, acf_image_embed_run(t, &k->pixel.embed, c->given, c->b)), c->given);
}

static acf_tensor *pixel_sample(acf_tape *t, const acf_image_like *k, const acf_image_cond *c, const acf_draw *d) {
    return pixel_fill(t, k, c, d);
}

const acf_image_like_kind acf_image_pixelcnn = {"pixelcnn", pixel_declare, pixel_logp, pixel_mean, pixel_sample, false};
