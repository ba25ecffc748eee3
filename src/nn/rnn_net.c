/* Parameters of a recurrent network: see rnn_net.h. */
#include "nn/rnn_net.h"

#include <stdio.h>

/* One parameter as a tensor; NULL, kept in *status, if the declaration failed. */
static acf_tensor *tensor(acf_params *ps, const char *prefix, const char *name, acf_init init, double scale,
                          int64_t rows, int64_t cols, acf_status *status) {
    if (*status) return NULL;
    acf_param *p = acf_declare(ps, prefix, name, init, scale, cols ? 2 : 1, (int64_t[]){rows, cols});
    if (!p) *status = acf_error_status();
    return acf_p(p);
}

/* The usual range of a GRU is ±1/sqrt(H) for all weights. Recurrent weights start orthogonal, so that states neither
 * explode nor vanish. */
static acf_status declare_layer(acf_gru *g, acf_params *ps, const char *name, int l, const acf_rnn_shape *s) {
    char prefix[96];
    acf_status status = ACF_OK;
    int64_t H3 = 3 * s->units, I = l ? s->units : 1 + s->known;
    snprintf(prefix, sizeof prefix, "%s.%d", name, l);
    g->wx = tensor(ps, prefix, "wx", ACF_INIT_UNIFORM, 1, H3, I, &status);
    g->wc = s->context && (l == 0 || s->deep) ? tensor(ps, prefix, "wc", ACF_INIT_UNIFORM, 1, H3, s->context, &status)
                                              : NULL;
    g->bx = tensor(ps, prefix, "bx", ACF_INIT_CONST, 0, H3, 0, &status);
    g->wh = tensor(ps, prefix, "wh", ACF_INIT_ORTHO, 1, H3, s->units, &status);
    g->bh = tensor(ps, prefix, "bh", ACF_INIT_CONST, 0, H3, 0, &status);
    return status;
}

acf_status acf_rnn_declare(acf_rnn *w, acf_params *ps, const char *name, const acf_rnn_shape *s) {
    if (s->layers < 1 || s->layers > ACF_RNN_LAYERS)
        return acf_fail(ACF_EUSAGE, "%s: %d recurrent layers; expected 1 to %d", name, s->layers, ACF_RNN_LAYERS);
    *w = (acf_rnn){.layers = s->layers, .act = ACF_RELU};
    for (int l = 0; l < s->layers; l++) ACF_TRY(declare_layer(&w->gru[l], ps, name, l, s));
    char prefix[96];
    acf_status status = ACF_OK;
    snprintf(prefix, sizeof prefix, "%s.head", name);
    w->w1 = tensor(ps, prefix, "w1", ACF_INIT_UNIFORM, 1, s->units, s->units, &status);
    w->b1 = tensor(ps, prefix, "b1", ACF_INIT_CONST, 0, s->units, 0, &status);
    w->w2 = tensor(ps, prefix, "w2", ACF_INIT_UNIFORM, s->out_scale, s->out, s->units, &status);
    w->b2 = tensor(ps, prefix, "b2", ACF_INIT_CONST, 0, s->out, 0, &status);
    return status;
}
