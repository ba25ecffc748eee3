/* Public models of images: see acflow.h. Checks at the door, then train/, infer/ and data/. */
#include "api/argument_checks.h"
#include "device/cpu.h"
#include "image/image_masks.h"
#include "image/image_write.h"
#include "infer/image_session.h"
#include "model/config.h"
#include "model/image_model.h"
#include "ops/devices.h"
#include "train/fit.h"

int acf_model_is_images(const acf_model *m) { return m && m->image; }

#define NEED_IMAGES(m)                                                                                                 \
    do {                                                                                                               \
        if (!(m)->image) return acf_fail(ACF_EUSAGE, "the model is one of a table, not of images: ask it about rows"); \
    } while (0)

/* ---- fitting -------------------------------------------------------------------------------------------------------------- */

/* The model that the option `init-from` names, on the CPU (acf_model_free); NULL: none. */
static acf_status open_start(const acf_options *o, acf_model **out) {
    acf_device *dev;
    *out = NULL;
    const char *path = acf_options_text(o, "init-from");
    if (!*path) return ACF_OK;
    ACF_TRY(acf_device_open_cpu(1, &dev));
    acf_status status = acf_model_read(dev, path, out);
    if (status)
        acf_device_close(dev);
    else
        (*out)->owns_dev = true;
    if (!status && !(*out)->image) {
        status = acf_fail(ACF_EUSAGE,
                          "'%s', which training is to start from, is a model of a table; expected one of images", path);
        acf_model_free(*out);
        *out = NULL;
    }
    return status;
}

/* What nobody has set becomes what it was when `from` was made; but not what depends on the machine, nor the seed, which would hide the same pixels again. */
static acf_status continue_options(acf_options *o, const acf_model *from) {
    const acf_json_source source = {acf_options_text(o, "init-from"), ACF_EMODEL};
    json_t *there;
    ACF_TRY(acf_options_to_json(from->config, ACF_OPTIONS_IMAGE, &there));
    json_object_del(there, "precision");
    json_object_del(there, "seed");
    acf_status status = acf_options_from_json(o, source, there, ACF_FROM_PRESET);
    json_decref(there);
    ACF_TRY(status);
    ACF_TRY(acf_options_set_from(o, "image-rotate", from->seen.rotated ? "true" : "false", ACF_FROM_PRESET));
    ACF_TRY(acf_options_set_from(o, "image-flip", from->seen.flipped ? "true" : "false", ACF_FROM_PRESET));
    return acf_image_model_can_init_from(o, from, source.name);
}

/* What o says, then the model to start from, which may be NULL, then the preset. */
static acf_status complete_options(const acf_options *o, const acf_model *from, acf_options **out) {
    acf_options *copy;
    ACF_TRY(acf_config_copy(o, &copy));
    acf_status status = acf_config_finish_images(copy);
    if (!status && from) status = continue_options(copy, from);
    if (status)
        acf_options_free(copy);
    else
        *out = copy;
    return status;
}

acf_status acf_options_for_images(const acf_options *o, acf_options **out) {
    ACF_NEED(o);
    ACF_NEED(out);
    acf_model *from;
    ACF_TRY(open_start(o, &from));
    acf_status status = complete_options(o, from, out);
    acf_model_free(from);
    return status;
}

/* A network for the images, with weights to start from. Takes config. */
static acf_status prepare(const acf_images *im, acf_options *config, const acf_model *from, acf_device *dev,
                          acf_model **out) {
    const int64_t shape[3] = {im->H, im->W, im->C};
    acf_image_map *map = NULL;
    acf_status status = from ? acf_image_model_check(from, "the images", shape, im->bits) : ACF_OK;
    if (!status) status = from ? acf_image_map_copy(from->map, &map) : acf_fit_image_map(im, config, &map);
    if (status) {
        acf_options_free(config);
        return status;
    }
    /* The model takes both over, also when it fails. */
    ACF_TRY(acf_model_make_images(dev, config, shape, map, (uint64_t)acf_options_int(config, "seed"), true, out));
    (*out)->seen = (acf_image_seen){im->inner, im->plan.rotate, im->plan.flip};
    return from ? acf_image_model_init_from(*out, from) : ACF_OK;
}

acf_status acf_model_fit_images(const acf_images *im, const acf_options *o, acf_fit_callback callback, void *ctx,
                                acf_model **out) {
    ACF_NEED(out);
    *out = NULL;
    ACF_NEED(im);
    ACF_NEED(o);
    acf_device *dev = NULL;
    acf_options *config = NULL;
    acf_model *m = NULL, *from = NULL;
    acf_fit how;
    acf_status status = ACF_OK;
    ACF_TRY(open_start(o, &from));
    ACF_TRY_DONE(acf_fit_read(o, &how));
    how.callback = callback, how.ctx = ctx;
    ACF_TRY_DONE(acf_device_open(acf_options_text(o, "device"), false, (int)acf_options_int(o, "threads"), &dev));
    ACF_TRY_DONE(complete_options(o, from, &config));
    ACF_TRY_DONE(prepare(im, config, from, dev, &m));
    ACF_TRY_DONE(acf_api_set_query_options(m, o));
    ACF_TRY_DONE(acf_fit_images(m, im, &how));
done:
    if (m && from) m->record.before = from->record.steps + from->record.before;
    acf_model_free(from);
    acf_api_hand_out(m, dev, out);
    return status;
}

/* ---- images for a model --------------------------------------------------------------------------------------------------- */

/* The options of reading that a model records, under what the user has said in o. */
static acf_status reading_options(const acf_model *m, const acf_options *o, acf_options **out) {
    static const char *const names[] = {"image-channels", "image-crop", "image-centre",
                                        "image-size",     "image-pad",  "image-bits"};
    acf_options *copy;
    acf_status status = ACF_OK;
    ACF_TRY(o ? acf_config_copy(o, &copy) : acf_config_create(&copy));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char value[128];
        acf_text t = acf_text_into(value, sizeof value);
        ACF_TRY_DONE(acf_options_write(m->config, names[i], &t));
        ACF_TRY_DONE(acf_options_set_from(copy, names[i], value, ACF_FROM_PRESET));
    }
    *out = copy;
done:
    if (status) acf_options_free(copy);
    return status;
}

static acf_status open_images(const char *path, const acf_options *o, acf_images **out) {
    acf_image_plan plan = {0};
    acf_device *dev;
    if (o) ACF_TRY(acf_image_plan_read(o, &plan));
    ACF_TRY(acf_device_open_cpu(o ? (int)acf_options_int(o, "threads") : 0, &dev));
    acf_status status = acf_images_read(dev, path, &plan, out);
    acf_device_close(dev);
    return status;
}

acf_status acf_images_open(const char *path, const acf_model *m, const acf_options *o, acf_images **out) {
    ACF_NEED(path);
    ACF_NEED(out);
    if (!m) return open_images(path, o, out);
    NEED_IMAGES(m);
    acf_options *all;
    acf_images *im = NULL;
    ACF_TRY(reading_options(m, o, &all));
    acf_status status = open_images(path, all, &im);
    acf_options_free(all);
    if (!status) status = acf_image_model_check(m, path, (const int64_t[]){im->H, im->W, im->C}, im->bits);
    if (status)
        acf_images_free(im);
    else
        *out = im;
    return status;
}

acf_status acf_images_blank(const acf_model *m, int64_t images, acf_images **out) {
    ACF_NEED(m);
    ACF_NEED(out);
    NEED_IMAGES(m);
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    const acf_image_plan plan = {.bits = m->map->bits};
    int64_t n;
    if (images < 1 || __builtin_mul_overflow(images, s->H * s->W * s->C, &n) || n > ACF_IMAGES_BYTES_MAX)
        return acf_fail(ACF_EUSAGE, "%lld images; expected at least 1, and at most what fits in memory",
                        (long long)images);
    uint8_t *black = acf_alloc_zero((size_t)n, "images");
    acf_status status = black ? acf_images_make(black, images, s->H, s->W, s->C, &plan, out) : ACF_EMEMORY;
    acf_release(black);
    if (!status) (*out)->inner = m->seen.frame;
    return status;
}

acf_status acf_images_masks(const acf_images *im, const char *masks, uint64_t seed, uint8_t *given) {
    ACF_NEED(im);
    ACF_NEED(masks);
    ACF_NEED(given);
    acf_image_masks *m;
    acf_device *dev;
    ACF_TRY(acf_device_open_cpu(1, &dev));
    acf_status status = acf_image_masks_open(masks, im, &m);
    for (int64_t i = 0; i < im->N && !status; i++)
        acf_image_masks_draw(dev, m, seed, 0, 1, &(uint64_t){(uint64_t)i}, given + i * im->H * im->W);
    if (!status) acf_image_masks_free(m);
    acf_device_close(dev);
    return status;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

acf_status acf_image_session_create(const acf_model *m, acf_image_session **out) {
    ACF_NEED(m);
    ACF_NEED(out);
    NEED_IMAGES(m);
    return acf_image_session_open(m, out);
}

acf_status acf_image_session_logp(acf_image_session *s, const acf_images *im, const uint8_t *given, double *out) {
    ACF_NEED(s);
    ACF_NEED(im);
    ACF_NEED(out);
    return acf_image_session_query_logp(s, im, given, 1, out);
}

acf_status acf_image_session_draw(acf_image_session *s, const acf_images *im, const uint8_t *given, uint64_t seed,
                                  uint32_t draw, uint8_t *out) {
    ACF_NEED(s);
    ACF_NEED(im);
    ACF_NEED(out);
    return acf_image_session_query_draw(s, im, given, seed, draw, out);
}

acf_status acf_image_session_guess(acf_image_session *s, const acf_images *im, const uint8_t *given, uint8_t *out,
                                   double *real) {
    ACF_NEED(s);
    ACF_NEED(im);
    if (!real) ACF_NEED(out);
    return acf_image_session_query_guess(s, im, given, out, real);
}

acf_status acf_image_session_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first, uint64_t seed,
                                   int64_t steps, uint8_t *out) {
    ACF_NEED(s);
    ACF_NEED(im);
    ACF_NEED(out);
    if (steps < 1 || steps > UINT32_MAX)
        return acf_fail(ACF_EUSAGE, "acf_image_session_gibbs: %lld steps; expected at least 1", (long long)steps);
    return acf_image_session_query_gibbs(s, im, first, seed, steps, out);
}

/* ---- pictures ------------------------------------------------------------------------------------------------------------- */

/* Levels as bytes of 0..255. Gives *out (acf_release). */
static acf_status as_bytes(const uint8_t *level, const int64_t *shape, int bits, uint8_t **out) {
    int64_t n = 1;
    for (int k = 0; k < 4; k++)
        if (shape[k] < 1 || __builtin_mul_overflow(n, shape[k], &n))
            return acf_fail(ACF_EUSAGE, "a picture with %lld in dimension %d", (long long)shape[k], k);
    if (bits < 1 || bits > 8) return acf_fail(ACF_EUSAGE, "levels of %d bits; expected 1 to 8", bits);
    uint8_t *byte = acf_alloc((size_t)n, "a picture");
    if (!byte) return ACF_EMEMORY;
    for (int64_t i = 0; i < n; i++) byte[i] = acf_image_byte(level[i], bits);
    *out = byte;
    return ACF_OK;
}

/* A sheet in memory. Gives *out (acf_release) and its size. */
static acf_status lay_out(const uint8_t *byte, const int64_t *shape, const acf_sheet *s, uint8_t **out, int64_t *H,
                          int64_t *W) {
    acf_image_sheet_size(s, shape[1], shape[2], H, W);
    if (!(*out = acf_alloc((size_t)(*H * *W * shape[3]), "a sheet"))) return ACF_EMEMORY;
    acf_image_sheet(*out, s, byte, shape[0], shape[1], shape[2], shape[3]);
    return ACF_OK;
}

acf_status acf_picture_sheet(const char *path, const uint8_t *level, const int64_t *shape, int bits, int64_t across,
                             int64_t zoom, int64_t gap) {
    ACF_NEED(path);
    ACF_NEED(level);
    ACF_NEED(shape);
    if (across < 1 || zoom < 1 || zoom > 64 || gap < 0 || gap > 1024)
        return acf_fail(ACF_EUSAGE, "acf_picture_sheet: %lld across, zoom %lld, gap %lld", (long long)across,
                        (long long)zoom, (long long)gap);
    uint8_t *byte, *sheet = NULL;
    int64_t H, W;
    ACF_TRY(as_bytes(level, shape, bits, &byte));
    const acf_sheet s = {
        .across = across, .down = acf_ceil_div(shape[0], across), .gap = gap, .zoom = zoom, .ground = 255};
    acf_status status = lay_out(byte, shape, &s, &sheet, &H, &W);
    if (!status) status = acf_image_write_png(path, sheet, H, W, shape[3]);
    acf_release(byte);
    acf_release(sheet);
    return status;
}

/* Frames are sheets of one image each, which zooms them. */
acf_status acf_picture_animate(const char *path, const uint8_t *level, const int64_t *shape, int bits, int64_t zoom,
                               int ms) {
    ACF_NEED(path);
    ACF_NEED(level);
    ACF_NEED(shape);
    if (zoom < 1 || zoom > 64 || ms < 1 || ms > 65535)
        return acf_fail(ACF_EUSAGE, "acf_picture_animate: zoom %lld, %d ms", (long long)zoom, ms);
    uint8_t *byte, *frames = NULL;
    int64_t H, W;
    ACF_TRY(as_bytes(level, shape, bits, &byte));
    const acf_sheet s = {.across = 1, .down = shape[0], .zoom = zoom};
    acf_status status = lay_out(byte, shape, &s, &frames, &H, &W);
    if (!status) status = acf_image_write_apng(path, frames, shape[0], H / shape[0], W, shape[3], ms, 0);
    acf_release(byte);
    acf_release(frames);
    return status;
}
