/* A fully connected network: see mlp.h. */
#include "nn/mlp.h"

#include <stdio.h>

#define NAME_MAX_BYTES 128

acf_param *acf_declare(acf_params *ps, const char *prefix, const char *name, acf_init init, double scale, int ndim,
                       const int64_t *dim) {
    char full[NAME_MAX_BYTES];
    int n = snprintf(full, sizeof full, "%s.%s", prefix, name);
    if (n < 0 || (size_t)n >= sizeof full) {
        acf_fail(ACF_EUSAGE, "the parameter name '%s.%s' is longer than %d bytes", prefix, name, NAME_MAX_BYTES - 1);
        return NULL;
    }
    return acf_param_add(ps, full, init, scale, ndim, dim);
}

acf_status acf_mlp_declare(acf_mlp *m, acf_params *ps, const char *name, const acf_mlp_shape *s, uint32_t site) {
    if (s->hidden < 0 || s->hidden >= ACF_MLP_LAYERS)
        return acf_fail(ACF_EUSAGE, "%s: %d hidden layers; expected 0 to %d", name, s->hidden, ACF_MLP_LAYERS - 1);
    *m = (acf_mlp){.layers = s->hidden + 1, .act = s->act, .site = site};
    for (int l = 0; l < m->layers; l++) {
        bool last = l == s->hidden;
        int64_t in = l ? s->width : s->in, out = last ? s->out : s->width;
        char part[16];
        snprintf(part, sizeof part, "w%d", l);
        m->w[l] = acf_declare(ps, name, part, ACF_INIT_UNIFORM, last ? s->out_scale : 1, 2, (int64_t[]){out, in});
        snprintf(part, sizeof part, "b%d", l);
        m->b[l] = m->w[l] ? acf_declare(ps, name, part, ACF_INIT_CONST, 0, 1, (int64_t[]){out}) : NULL;
        if (!m->b[l]) return acf_error_status();
    }
    return ACF_OK;
}

acf_tensor *acf_mlp_run(acf_tape *t, const acf_mlp *m, acf_tensor *x, const acf_pass *pass) {
    for (int l = 0; l < m->layers - 1; l++) {
        x = acf_linear(t, x, acf_p(m->w[l]), acf_p(m->b[l]), m->act);
        x = acf_pass_dropout(t, pass, x, m->site + (uint32_t)l);
    }
    return acf_linear(t, x, acf_p(m->w[m->layers - 1]), acf_p(m->b[m->layers - 1]), ACF_IDENTITY);
}
