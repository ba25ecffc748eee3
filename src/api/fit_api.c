/* Fitting: see acflow.h. Prepares options, device, held-out cells, encoder and network, then calls train/ensemble.h. */
#include "api/argument_checks.h"
#include "model/config.h"
#include "ops/devices.h"
#include "table/table_file.h"
#include "train/donor_trust.h"
#include "train/ensemble.h"
#include "train/gmm_posterior.h"
#include "train/valid.h"

/* The options that a model records: the values of o, and those of the preset for options that o does not set. */
static acf_status copy_options(const acf_options *o, acf_options **out) {
    acf_options *copy;
    ACF_TRY(acf_config_copy(o, &copy));
    acf_status status = acf_config_finish(copy);
    if (status)
        acf_options_free(copy);
    else
        *out = copy;
    return status;
}

/* Prepares what depends on the table: held-out cells, scales, a network. Takes config, and completes it with the
 * options that depend on the size of the table. Gives *hold and *out. */
static acf_status prepare(const acf_table *t, acf_options *config, acf_device *dev, acf_holdout **hold,
                          acf_model **out) {
    acf_encoder *encoder;
    acf_status status = acf_config_height(config, t->column, t->D, t->N, dev->kind == ACF_DEVICE_CUDA);
    if (!status) status = acf_config_width(config, t->column, t->D);
    if (!status) status = acf_config_ensemble(config, t->N, t->D);
    if (!status) status = acf_train_prepare(t, NULL, config, hold, &encoder);
    if (status) {
        acf_options_free(config);
        return status;
    }
    /* The model takes both over, also if it fails. */
    ACF_TRY(acf_model_make(dev, config, encoder, (uint64_t)acf_options_int(config, "seed"), true, out));
    return t->file ? acf_schema_copy(t->file->schema, &(*out)->schema) : ACF_OK;
}

acf_status acf_device_used(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_BUFFER(out, cap);
    acf_options *config;
    acf_choice c = {.kind = ACF_DEVICE_CPU};
    acf_device_facts f;
    ACF_TRY(copy_options(o, &config));
    acf_status status = acf_device_choose(acf_options_text(o, "device"), acf_net_recurrent(config), &c);
    acf_options_free(config);
    ACF_TRY(status);
    acf_text t = acf_text_into(out, cap);
    if (c.kind == ACF_DEVICE_CPU)
        acf_text_add(&t, "cpu");
    else {
        ACF_TRY(c.plugin->facts(c.n, &f));
        acf_text_addf(&t, "cuda:%d (%s)", c.n, f.name);
    }
    return acf_text_done(&t, needed);
}

/* Checks the second table and sets valid-on to it. */
static acf_status take_valid(const acf_table *t, const acf_table *valid, acf_options *config) {
    if (!valid) return ACF_OK;
    if (valid->D != t->D)
        return acf_fail(ACF_ESHAPE,
                        "the validation table has %lld columns, the training table %lld; expected the same columns",
                        (long long)valid->D, (long long)t->D);
    for (int64_t i = 0, cells = 0; cells == 0; i++) {
        if (i == valid->N)
            return acf_fail(ACF_EDATA, "the validation table has no observed cell; expected at least one");
        cells = acf_table_row_observed(valid, i);
    }
    const int on = acf_options_choice(config, "valid-on");
    if (on == ACF_VALID_CELLS || on == ACF_VALID_ROWS)
        return acf_fail(ACF_EUSAGE,
                        "there is a validation table, but the option 'valid-on' is %s; leave out one of them",
                        on == ACF_VALID_CELLS ? "cells" : "rows");
    return acf_options_set_text(config, "valid-on", "table");
}

acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx,
                         acf_model **out) {
    ACF_NEED(out);
    *out = NULL;
    ACF_NEED(t);
    ACF_NEED(o);
    return acf_model_fit_validated(t, NULL, o, callback, ctx, out);
}

acf_status acf_model_fit_validated(const acf_table *t, const acf_table *valid, const acf_options *o,
                                   acf_fit_callback callback, void *ctx, acf_model **out) {
    ACF_NEED(out);
    *out = NULL;
    ACF_NEED(t);
    ACF_NEED(o);
    acf_device *dev = NULL;
    acf_options *config = NULL;
    acf_holdout *hold = NULL;
    acf_model *m = NULL;
    acf_fit how;
    acf_status status = ACF_OK;
    if (*acf_options_text(o, "init-from"))
        return acf_fail(ACF_EUSAGE, "the option 'init-from' is only for images; leave it out for a table");
    ACF_TRY(acf_table_file_learnable(t));
    ACF_TRY(acf_fit_read(o, &how));
    how.callback = callback, how.ctx = ctx, how.valid = valid;
    ACF_TRY(copy_options(o, &config));
    status = take_valid(t, valid, config);
    if (!status)
        status = acf_device_open(acf_options_text(o, "device"), acf_net_recurrent(config),
                                 (int)acf_options_int(o, "threads"), &dev);
    if (status) {
        acf_options_free(config);
        return status;
    }
    ACF_TRY_DONE(prepare(t, config, dev, &hold, &m));
    ACF_TRY_DONE(acf_api_set_query_options(m, o));
    status = acf_fit_ensemble(m, t, hold, &how);
    if (status == ACF_OK || status == ACF_EINTERRUPT) { /* an interrupted model has donors too */
        acf_status attached = acf_donors_attach(m, t);
        if (!attached) attached = acf_gmm_posterior(m, t);
        status = attached ? attached : status;
    }
done:
    acf_holdout_free(hold);
    acf_api_hand_out(m, dev, out);
    return status;
}
