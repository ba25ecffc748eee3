/* Models of images: see image_model.h. */
#include "model/image_model.h"

#include <stdio.h>
#include <string.h>

#define SIDE_MAX 4096 /* as image_net.c */

acf_image_sizes acf_image_sizes_read(const acf_options *o, const int64_t shape[3]) {
    return (acf_image_sizes){
        .H = shape[0],
        .W = shape[1],
        .C = shape[2],
        .scales = (int)acf_options_int(o, "image-scales"),
        .blocks = (int)acf_options_int(o, "image-blocks"),
        .width = acf_options_int(o, "image-width"),
        .like = acf_image_like_kinds[acf_options_choice(o, "image-likelihood")],
        .like_width = acf_options_int(o, "image-like-width"),
        .like_blocks = (int)acf_options_int(o, "image-like-blocks"),
        .embed_blocks = (int)acf_options_int(o, "image-embed-blocks"),
        .embed_deep = (int)acf_options_int(o, "image-embed-deep"),
        .components = acf_options_int(o, "image-components"),
        .guess = acf_options_real(o, "guess-weight") > 0,
    };
}

static void decode_by(acf_image_net *net, const acf_image_map *map) {
    acf_knots guess, truth;
    acf_image_map_knots(map, true, &guess);
    acf_image_map_knots(map, false, &truth);
    acf_image_net_decode(net, &guess, &truth);
}

acf_status acf_image_model_assemble(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                    acf_model **out) {
    acf_status status = ACF_OK;
    const acf_image_sizes sizes = acf_image_sizes_read(config, shape);
    acf_model *m = acf_alloc_zero(sizeof *m, "a model");
    if (!m) {
        acf_options_free(config);
        acf_release(map);
        return ACF_EMEMORY;
    }
    m->dev = dev, m->config = config, m->map = map, m->seen.frame = (acf_image_box){0, 0, shape[1], shape[0]};
    ACF_TRY_DONE(acf_image_net_declare(dev, &sizes, &m->image));
    decode_by(m->image, map);
    *out = m;
done:
    if (status) acf_model_free(m);
    return status;
}

/* ---- initialise from another model ------------------------------------------------------------------------------- */

acf_status acf_image_model_can_init_from(const acf_options *o, const acf_model *from, const char *path) {
    static const char *const same[] = {"image-scales",       "image-blocks",     "image-width",
                                       "image-likelihood",   "image-like-width", "image-like-blocks",
                                       "image-embed-blocks", "image-components", "image-dequantise"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char here[64], there[64];
        acf_text a = acf_text_into(here, sizeof here), b = acf_text_into(there, sizeof there);
        ACF_TRY(acf_options_write(o, same[i], &a));
        ACF_TRY(acf_options_write(from->config, same[i], &b));
        if (strcmp(here, there) != 0)
            return acf_fail(
                ACF_EUSAGE,
                "the option '%s' is %s, but the model '%s' of init-from has %s; leave out this option or init-from",
                same[i], here, path, there);
    }
    const int64_t deep = acf_options_int(o, "image-embed-deep"),
                  before = acf_options_int(from->config, "image-embed-deep");
    if (deep >= before) return ACF_OK;
    return acf_fail(
        ACF_EUSAGE,
        "the option 'image-embed-deep' is %lld, but the model '%s' of init-from has %lld; expected at least as many",
        (long long)deep, path, (long long)before);
}

acf_status acf_image_model_init_from(acf_model *m, const acf_model *from) {
    const acf_params *to = acf_model_params(m), *there = acf_model_params(from);
    for (int i = 0; i < to->n; i++) {
        const acf_param *p = to->list[i], *q = acf_params_find(there, p->name);
        const int64_t n = acf_tensor_count(&p->t);
        if (!q) continue;
        ACF_ASSERT(acf_tensor_count(&q->t) == n && !there->dev->plugin);
        ACF_TRY(acf_device_copy(to->dev, p->t.data, q->t.data, (size_t)n * sizeof(acf_real), ACF_TO_DEVICE));
    }
    return acf_device_sync(to->dev);
}

/* ---- its file ---------------------------------------------------------------------------------------------------- */

bool acf_image_model_padded(const acf_model *m) {
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    return m->seen.frame.x1 - m->seen.frame.x0 < s->W || m->seen.frame.y1 - m->seen.frame.y0 < s->H;
}

/* Writes only what differs from most models. */
static int put_seen(const acf_model *m, json_t *o) {
    const acf_image_box f = m->seen.frame;
    int bad = 0;
    if (acf_image_model_padded(m))
        bad = json_object_set_new(
            o, "frame",
            json_pack("[I, I, I, I]", (json_int_t)f.x0, (json_int_t)f.y0, (json_int_t)f.x1, (json_int_t)f.y1));
    if (!bad && m->seen.rotated) bad = json_object_set_new(o, "rotated", json_true());
    if (!bad && m->seen.flipped) bad = json_object_set_new(o, "flipped", json_true());
    return bad;
}

acf_status acf_image_model_to_json(const acf_model *m, json_t **out) {
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    json_t *map = NULL;
    if (m->map->kind == ACF_IMAGE_DEQUANTISER)
        ACF_TRY(acf_image_dequantiser_to_json(&m->map->dequantiser, m->map->bits, &map));
    *out = json_pack("{s:I, s:I, s:I, s:i, s:o*}", "height", (json_int_t)s->H, "width", (json_int_t)s->W, "channels",
                     (json_int_t)s->C, "bits", m->map->bits, "map", map);
    if (*out && put_seen(m, *out) != 0) {
        json_decref(*out);
        *out = NULL;
    }
    return *out ? ACF_OK : acf_fail(ACF_EMEMORY, "out of memory: the description of a model's images");
}

static acf_status number(acf_json_source from, const json_t *o, const char *key, int64_t most, int64_t *out) {
    ACF_TRY(acf_json_int(from, o, key, out));
    if (*out >= 1 && *out <= most) return ACF_OK;
    return acf_fail(from.status, "%s: '%s' is %lld, expected 1 to %lld", from.name, key, (long long)*out,
                    (long long)most);
}

static acf_status read_map(acf_json_source from, const json_t *o, acf_image_map_kind kind, int bits,
                           acf_image_map **out) {
    acf_image_dequantiser dequantiser;
    json_t *map;
    if (kind == ACF_IMAGE_LOGIT) return acf_image_map_uniform_logit(bits, out);
    ACF_TRY(acf_json_member(from, o, "map", &map));
    ACF_TRY(acf_image_dequantiser_from_json(from, map, bits, &dequantiser));
    return acf_image_map_gaussian(bits, &dequantiser, out);
}

/* Older files and those of images without padding have no frame. */
static acf_status read_frame(acf_json_source from, const json_t *o, const int64_t shape[3], acf_image_box *out) {
    const json_t *list = json_object_get(o, "frame");
    int64_t b[4] = {0, 0, shape[1], shape[0]};
    if (list && json_array_size(list) != 4)
        return acf_fail(from.status, "%s: 'frame' is not a list of four numbers", from.name);
    for (size_t k = 0; list && k < 4; k++) ACF_TRY(acf_json_to_int(from, "frame", json_array_get(list, k), &b[k]));
    if (!(0 <= b[0] && b[0] < b[2] && b[2] <= shape[1] && 0 <= b[1] && b[1] < b[3] && b[3] <= shape[0]))
        return acf_fail(
            from.status,
            "%s: 'frame' is %lld,%lld,%lld,%lld; expected left, top, right and bottom inside of %lld x %lld pixels",
            from.name, (long long)b[0], (long long)b[1], (long long)b[2], (long long)b[3], (long long)shape[1],
            (long long)shape[0]);
    *out = (acf_image_box){b[0], b[1], b[2], b[3]};
    return ACF_OK;
}

static acf_status read_truth(acf_json_source from, const json_t *o, const char *key, bool *out) {
    const json_t *value = json_object_get(o, key);
    if (value && !json_is_boolean(value))
        return acf_fail(from.status, "%s: '%s' is neither true nor false", from.name, key);
    *out = json_is_true(value);
    return ACF_OK;
}

acf_status acf_image_model_from_json(acf_json_source from, const json_t *o, acf_image_map_kind kind, int64_t shape[3],
                                     acf_image_seen *seen, acf_image_map **map) {
    int64_t bits;
    if (!json_is_object(o)) return acf_fail(from.status, "%s: it is not an object", from.name);
    ACF_TRY(number(from, o, "height", SIDE_MAX, &shape[0]));
    ACF_TRY(number(from, o, "width", SIDE_MAX, &shape[1]));
    ACF_TRY(number(from, o, "channels", 3, &shape[2]));
    if (shape[2] == 2) return acf_fail(from.status, "%s: 'channels' is 2, expected 1 or 3", from.name);
    ACF_TRY(number(from, o, "bits", 8, &bits));
    ACF_TRY(read_frame(from, o, shape, &seen->frame));
    ACF_TRY(read_truth(from, o, "rotated", &seen->rotated));
    ACF_TRY(read_truth(from, o, "flipped", &seen->flipped));
    if (seen->rotated && shape[0] != shape[1])
        return acf_fail(from.status,
                        "%s: 'rotated' is true, but images of %lld x %lld pixels cannot be rotated by 90 degrees",
                        from.name, (long long)shape[1], (long long)shape[0]);
    return read_map(from, o, kind, (int)bits, map);
}

static const char *colour(int64_t C) { return C == 1 ? "grey" : "colour"; }

acf_status acf_image_model_check(const acf_model *m, const char *what, const int64_t shape[3], int bits) {
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    char todo[120] = "";
    if (shape[0] != s->H || shape[1] != s->W)
        snprintf(todo, sizeof todo, "image-size %lldx%lld", (long long)s->W, (long long)s->H);
    if (shape[2] != s->C)
        snprintf(todo + strlen(todo), sizeof todo - strlen(todo), "%simage-channels %s", *todo ? ", " : "",
                 colour(s->C));
    if (bits != m->map->bits)
        snprintf(todo + strlen(todo), sizeof todo - strlen(todo), "%simage-bits %d", *todo ? ", " : "", m->map->bits);
    if (!*todo) return ACF_OK;
    return acf_fail(ACF_EDATA,
                    "%s: %lld x %lld pixels, %s, %d bits; the model is of %lld x %lld pixels, %s, %d bits; "
                    "%s would make them agree",
                    what, (long long)shape[1], (long long)shape[0], colour(shape[2]), bits, (long long)s->W,
                    (long long)s->H, colour(s->C), m->map->bits, todo);
}
