/* A residual network on images: see resnet.h. */
#include "nn/resnet.h"

#include "ops/arith.h"

#include <stdio.h>

static acf_status layer(acf_conv_layer *l, acf_params *ps, const char *name, const char *part, int64_t side, int64_t in,
                        int64_t out, acf_act_kind act, double scale) {
    char full[112];
    snprintf(full, sizeof full, "%s.%s", name, part);
    return acf_conv_layer_declare(l, ps, full, (acf_conv_size){side, side, in, out, scale},
                                  acf_conv_same(side, side, act));
}

acf_status acf_resnet_declare(acf_resnet *r, acf_params *ps, const char *name, const acf_resnet_shape *s) {
    if (s->blocks < 0 || s->blocks > ACF_RESNET_BLOCKS)
        return acf_fail(ACF_EUSAGE, "%s: %d residual blocks; expected 0 to %d", name, s->blocks, ACF_RESNET_BLOCKS);
    r->blocks = s->blocks;
    ACF_TRY(layer(&r->first, ps, name, "first", 3, s->in, s->width, ACF_IDENTITY, 1));
    ACF_TRY(layer(&r->skip, ps, name, "skip", 1, s->width, s->width, ACF_IDENTITY, 1));
    for (int i = 0; i < s->blocks; i++) {
        char block[96];
        snprintf(block, sizeof block, "%s.%d", name, i);
        ACF_TRY(layer(&r->block[i].narrow, ps, block, "narrow", 1, s->width, s->width, ACF_RELU, 1));
        ACF_TRY(layer(&r->block[i].wide, ps, block, "wide", 3, s->width, s->width, ACF_RELU, 1));
        ACF_TRY(layer(&r->block[i].back, ps, block, "back", 1, s->width, s->width, ACF_IDENTITY, 1));
        ACF_TRY(layer(&r->block[i].skip, ps, block, "skip", 1, s->width, s->width, ACF_IDENTITY, 1));
    }
    return layer(&r->last, ps, name, "last", 1, s->width, s->out, ACF_IDENTITY, s->out_scale);
}

acf_tensor *acf_resnet_run(acf_tape *t, const acf_resnet *r, acf_tensor *x) {
    acf_tensor *h = acf_conv_layer_run(t, &r->first, x), *sum = acf_conv_layer_run(t, &r->skip, h);
    for (int i = 0; i < r->blocks; i++) {
        acf_tensor *inner = acf_conv_layer_run(t, &r->block[i].narrow, acf_act(t, ACF_RELU, h));
        inner = acf_conv_layer_run(t, &r->block[i].wide, inner);
        h = acf_add(t, h, acf_conv_layer_run(t, &r->block[i].back, inner));
        sum = acf_add(t, sum, acf_conv_layer_run(t, &r->block[i].skip, h));
    }
    return acf_conv_layer_run(t, &r->last, acf_act(t, ACF_RELU, sum));
}
