/* The loss of one training step: see loss.h. */
#include "train/loss.h"

#include "ops/arith.h"
#include "ops/reduce.h"

/* |u| of row i. */
static int64_t modelled(const acf_batch *batch, int64_t i) {
    const uint8_t *b = batch->b + i * batch->D, *m = batch->m + i * batch->D;
    int64_t n = 0;
    for (int64_t j = 0; j < batch->D; j++) n += m[j] && !b[j];
    return n;
}

int64_t acf_loss_rows(const acf_batch *batch) {
    int64_t rows = 0;
    for (int64_t i = 0; i < batch->N; i++) rows += modelled(batch, i) > 0;
    return rows;
}

/* (N) what each row's number is multiplied with in the mean; 0 for rows that do not count. Empty after a failure. */
static acf_tensor *row_weights(acf_tape *t, const acf_batch *batch, bool per_column) {
    acf_real *w = acf_arena_alloc(t->host, (size_t)batch->N * sizeof *w);
    if (!w) {
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    double rows = (double)acf_loss_rows(batch);
    for (int64_t i = 0; i < batch->N; i++) {
        int64_t u = modelled(batch, i);
        w[i] = u ? (acf_real)(1 / (rows * (per_column ? (double)u : 1))) : 0;
    }
    return acf_tensor_input(t, w, 1, &batch->N);
}

typedef enum term { NLL, GUESS, TERMS } term;

/* One term; NULL where there is none: the guess's without weight, or without real columns. */
static acf_tensor *term_of(acf_tape *t, acf_view *v, const acf_tensor *w, const acf_loss *cfg, term which) {
    if (which == NLL) return acf_scale(t, -1, acf_dot(t, acf_net_logp(t, v), w->data));
    acf_tensor *error = cfg->guess_weight > 0 ? acf_net_guess_error(t, v) : NULL;
    return error ? acf_scale(t, cfg->guess_weight, acf_dot(t, error, w->data)) : NULL;
}

acf_tensor *acf_loss_make(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass, const acf_loss *cfg) {
    if (t->failure.status) return &t->empty;
    if (acf_loss_rows(batch) == 0) return acf_tensor_const(t, NULL, 0, 0, NULL);
    acf_view *v = acf_net_view(t, net, batch, pass);
    acf_tensor *w = row_weights(t, batch, cfg->per_column);
    if (t->failure.status) return &t->empty;
    acf_tensor *nll = term_of(t, v, w, cfg, NLL), *guess = term_of(t, v, w, cfg, GUESS);
    return guess ? acf_add(t, nll, guess) : nll;
}

static acf_status term_backward(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass, const acf_loss *cfg,
                                term which, double *loss) {
    acf_tape_begin(t, true);
    acf_view *v = acf_net_view(t, net, batch, pass);
    acf_tensor *w = row_weights(t, batch, cfg->per_column);
    ACF_TRY(acf_tape_status(t));
    acf_tensor *x = term_of(t, v, w, cfg, which);
    if (!x) return ACF_OK;
    acf_real value;
    ACF_TRY(acf_tape_backward(t, x));
    ACF_TRY(acf_device_copy(t->dev, &value, x->data, sizeof value, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    *loss += (double)value;
    return ACF_OK;
}

acf_status acf_loss_backward(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass, const acf_loss *cfg,
                             double *loss) {
    double sum = 0;
    int terms = acf_loss_rows(batch) == 0 ? 0 : cfg->guess_weight > 0 ? TERMS : GUESS;
    for (int k = 0; k < terms; k++) ACF_TRY(term_backward(t, net, batch, pass, cfg, (term)k, &sum));
    *loss = sum;
    return ACF_OK;
}
