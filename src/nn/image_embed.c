/* Embedding of the observed part of an image: see image_embed.h. */
#include "nn/image_embed.h"

#include "nn/mlp.h"
#include "ops/act.h"
#include "ops/add_vector.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/crelu.h"
#include "ops/pool.h"
#include "ops/squeeze.h"

#include <stdio.h>

/* Level l, of H x W pixels: the layers to the next level and back. For an odd size, the pixels of a square beyond the
 * edge are cut. */
static acf_status declare_level(acf_image_embed *e, acf_params *ps, const char *name, int l, int64_t H, int64_t W,
                                int64_t E) {
    const acf_conv same = acf_conv_same(3, 3, ACF_RELU), back = {1, 1, 1, 1 - H % 2, 1 - W % 2, ACF_IDENTITY};
    char part[96];
    snprintf(part, sizeof part, "%s.down.%d", name, l);
    ACF_TRY(acf_conv_layer_declare(&e->down[l], ps, part, (acf_conv_size){3, 3, E, E, 1}, same));
    snprintf(part, sizeof part, "%s.spread.%d", name, l);
    ACF_TRY(acf_conv_layer_declare(&e->spread[l], ps, part, (acf_conv_size){1, 1, E, 4 * E, 1},
                                   acf_conv_same(1, 1, ACF_RELU)));
    snprintf(part, sizeof part, "%s.up.%d", name, l);
    return acf_conv_layer_declare(&e->up[l], ps, part, (acf_conv_size){3, 3, E, E, 1}, back);
}

/* Residual blocks of map l + 1. They start as the identity, so that training of a model without them can go on with
 * them. */
static acf_status declare_deep(acf_image_embed *e, acf_params *ps, const char *name, int l, int64_t E) {
    static const char *const ways[ACF_EMBED_WAYS] = {"down", "back"};
    const int64_t inner = (l ? 4 : 2) * E;
    char part[96];
    for (int way = 0; way < ACF_EMBED_WAYS; way++)
        for (int i = 0; i < e->deep; i++) {
            snprintf(part, sizeof part, "%s.deep.%s.%d.%d.wide", name, ways[way], l, i);
            ACF_TRY(acf_conv_layer_declare(&e->block[l][way][i].wide, ps, part, (acf_conv_size){3, 3, E, inner, 1},
                                           acf_conv_same(3, 3, ACF_RELU)));
            snprintf(part, sizeof part, "%s.deep.%s.%d.%d.back", name, ways[way], l, i);
            ACF_TRY(acf_conv_layer_declare(&e->block[l][way][i].back, ps, part, (acf_conv_size){3, 3, inner, E, 0},
                                           acf_conv_same(3, 3, ACF_IDENTITY)));
        }
    return ACF_OK;
}

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name,
                                   const acf_image_embed_shape *s) {
    char part[96];
    int64_t H = s->H, W = s->W;
    const int64_t E = s->width;
    if (s->deep < 0 || s->deep > ACF_EMBED_DEEP)
        return acf_fail(ACF_EUSAGE, "%s: %d residual blocks of coarse maps; expected 0 to %d", name, s->deep,
                        ACF_EMBED_DEEP);
    e->deep = s->deep;
    snprintf(part, sizeof part, "%s.map", name);
    ACF_TRY(acf_resnet_declare(&e->map, ps, part, &(acf_resnet_shape){3 * s->C, E, E, s->blocks, 1}));
    for (e->levels = 0; (H > 4 || W > 4) && e->levels < ACF_EMBED_LEVELS; e->levels++) {
        ACF_TRY(declare_level(e, ps, name, e->levels, H, W, E));
        ACF_TRY(declare_deep(e, ps, name, e->levels, E));
        H = acf_ceil_div(H, 2), W = acf_ceil_div(W, 2);
    }
    e->w = acf_declare(ps, name, "w", ACF_INIT_UNIFORM, 1, 2, (int64_t[]){E, H * W * E});
    e->b = e->w ? acf_declare(ps, name, "b", ACF_INIT_CONST, 0, 1, &E) : NULL;
    return e->b ? ACF_OK : acf_error_status();
}

static acf_tensor *whole(acf_tape *t, const acf_image_embed *e, acf_tensor *last) {
    if (t->failure.status) return &t->empty;
    acf_tensor *line = acf_tensor_view(t, last, 2, (int64_t[]){last->dim[0], acf_tensor_width(last)});
    return acf_add_vector(t, last, acf_linear(t, line, acf_p(e->w), acf_p(e->b), ACF_IDENTITY));
}

/* Map l through its blocks; the fine map has none. */
static acf_tensor *deep(acf_tape *t, const acf_image_embed *e, int l, int way, acf_tensor *x) {
    for (int i = 0; l > 0 && i < e->deep; i++) {
        acf_tensor *inner = acf_conv_layer_run(t, &e->block[l - 1][way][i].wide, acf_act(t, ACF_RELU, x));
        x = acf_add(t, x, acf_conv_layer_run(t, &e->block[l - 1][way][i].back, inner));
    }
    return x;
}

acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b) {
    acf_tensor *map[ACF_EMBED_LEVELS + 1];
    map[0] = acf_resnet_run(t, &e->map, acf_concat(t, 2, (acf_tensor *[]){acf_crelu(t, ACF_RELU, given), b}));
    for (int l = 0; l < e->levels; l++)
        map[l + 1] =
            deep(t, e, l + 1, ACF_EMBED_DOWN, acf_pool(t, ACF_POOL_MAX, acf_conv_layer_run(t, &e->down[l], map[l])));
    acf_tensor *see = deep(t, e, e->levels, ACF_EMBED_BACK, whole(t, e, map[e->levels]));
    for (int l = e->levels - 1; l >= 0; l--) {
        see = acf_add(t, map[l],
                      acf_conv_layer_run(t, &e->up[l], acf_unsqueeze(t, acf_conv_layer_run(t, &e->spread[l], see))));
        see = deep(t, e, l, ACF_EMBED_BACK, see);
    }
    return see;
}
