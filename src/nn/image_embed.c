/* What is observed of an image: see image_embed.h. */
#include "nn/image_embed.h"

#include "nn/mlp.h"
#include "ops/concat.h"
#include "ops/paired.h"
#include "ops/pool.h"
#include "ops/add_vector.h"

#include <stdio.h>

acf_status acf_image_embed_declare(acf_image_embed *e, acf_params *ps, const char *name, const acf_image_embed_shape *s) {
    char part[96];
    int64_t H = s->H, W = s->W;
    const int64_t E = s->width;
    snprintf(part, sizeof part, "%s.map", name);
    ACF_TRY(acf_resnet_declare(&e->map, ps, part, &(acf_resnet_shape){3 * s->C, E, E, s->blocks, 1}));
    for (e->levels = 0; (H > 4 || W > 4) && e->levels < ACF_EMBED_LEVELS; e->levels++) {
        snprintf(part, sizeof part, "%s.down.%d", name, e->levels);
        ACF_TRY(acf_conv_layer_declare(&e->down[e->levels], ps, part, (acf_conv_size){3, 3, E, E, 1}, acf_conv_same(3, 3, ACF_RELU)));
        H = acf_ceil_div(H, 2), W = acf_ceil_div(W, 2);
    }
    e->w = acf_declare(ps, name, "w", ACF_INIT_UNIFORM, 1, 2, (int64_t[]){E, H * W * E});
    e->b = e->w ? acf_declare(ps, name, "b", ACF_INIT_CONST, 0, 1, &E) : NULL;
    return e->b ? ACF_OK : acf_error_status();
}

acf_tensor *acf_image_embed_run(acf_tape *t, const acf_image_embed *e, acf_tensor *given, acf_tensor *b) {
    acf_tensor *map = acf_resnet_run(t, &e->map, acf_concat(t, 2, (acf_tensor *[]){acf_paired(t, ACF_RELU, given), b})), *h = map;
    for (int i = 0; i < e->levels; i++) h = acf_pool(t, ACF_POOL_MAX, acf_conv_layer_run(t, &e->down[i], h));
    if (t->failure.status) return &t->empty;
    h = acf_tensor_view(t, h, 2, (int64_t[]){h->dim[0], acf_tensor_width(h)});
    return acf_add_vector(t, map, acf_linear(t, h, acf_p(e->w), acf_p(e->b), ACF_IDENTITY));
}
