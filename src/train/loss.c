/* The loss of one training step: see loss.h. */
#include "train/loss.h"

#include "ops/arith.h"
#include "ops/reduce.h"

int64_t acf_loss_modelled(const acf_batch *batch, int64_t i) {
    const uint8_t *b = batch->b + i * batch->D, *m = batch->m + i * batch->D;
    int64_t n = 0;
    for (int64_t j = 0; j < batch->D; j++) n += m[j] && !b[j];
    return n;
}

int64_t acf_loss_rows(const acf_batch *batch) {
    int64_t rows = 0;
    for (int64_t i = 0; i < batch->N; i++) rows += acf_loss_modelled(batch, i) > 0;
    return rows;
}

typedef enum term { NLL, GUESS, TERMS } term;

/* One term; NULL where there is none: a guess without weight, or without real columns. */
static acf_tensor *term_of(acf_tape *t, acf_view *v, const acf_tensor *w, const acf_loss *cfg, term which) {
    if (which == NLL) return acf_scale(t, -1, acf_dot(t, acf_net_logp(t, v), w->data));
    acf_tensor *error = cfg->guess_weight > 0 ? acf_net_guess_error(t, v) : NULL;
    return error ? acf_scale(t, cfg->guess_weight, acf_dot(t, error, w->data)) : NULL;
}

acf_tensor *acf_loss_make(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                          const acf_loss *cfg) {
    if (t->failure.status) return &t->empty;
    if (acf_loss_rows(batch) == 0) return acf_tensor_const(t, NULL, 0, 0, NULL);
    acf_view *v = acf_net_view(t, net, batch, pass);
    acf_tensor *w = acf_net_shares(t, v, cfg->per_column);
    if (t->failure.status) return &t->empty;
    acf_tensor *nll = term_of(t, v, w, cfg, NLL), *guess = term_of(t, v, w, cfg, GUESS);
    return guess ? acf_add(t, nll, guess) : nll;
}

/* One term and its gradients; *out is its value, in device memory until the next begin, or NULL where there is no such
 * term. */
static acf_status term_backward(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                                const acf_loss *cfg, term which, const acf_real **out) {
    acf_tape_begin(t, true);
    acf_view *v = acf_net_view(t, net, batch, pass);
    acf_tensor *w = acf_net_shares(t, v, cfg->per_column);
    ACF_TRY(acf_tape_status(t));
    acf_tensor *x = term_of(t, v, w, cfg, which);
    *out = NULL;
    if (!x) return ACF_OK;
    ACF_TRY(acf_tape_backward(t, x));
    *out = x->data;
    return ACF_OK;
}

static int terms_of(const acf_loss *cfg) { return cfg->guess_weight > 0 ? TERMS : GUESS; }

acf_status acf_loss_backward(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                             const acf_loss *cfg, double *loss) {
    double sum = 0;
    const int terms = acf_loss_rows(batch) == 0 ? 0 : terms_of(cfg);
    for (int k = 0; k < terms; k++) {
        const acf_real *there;
        acf_real value;
        ACF_TRY(term_backward(t, net, batch, pass, cfg, (term)k, &there));
        if (!there) continue;
        ACF_TRY(acf_device_copy(t->dev, &value, there, sizeof value, ACF_TO_HOST));
        ACF_TRY(acf_device_sync(t->dev));
        sum += (double)value;
    }
    *loss = sum;
    return ACF_OK;
}

acf_status acf_loss_enqueue(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                            const acf_loss *cfg, acf_real *terms) {
    ACF_TRY(acf_device_zero(t->dev, terms, TERMS * sizeof *terms));
    for (int k = 0; k < terms_of(cfg); k++) {
        const acf_real *there;
        ACF_TRY(term_backward(t, net, batch, pass, cfg, (term)k, &there));
        if (there) ACF_TRY(acf_device_copy(t->dev, terms + k, there, sizeof *terms, ACF_ON_DEVICE));
    }
    return ACF_OK;
}
