/* Fitting: see acflow.h. Puts the pieces together (options, device, held-out cells, encoder, network), then train/fit.h. */
#include "api/door.h"
#include "data/frame.h"
#include "model/config.h"
#include "ops/devices.h"
#include "train/fit.h"

/* What a model records: every option that is recorded, at its value in o; what the preset and the table's width say of the others. */
static acf_status copy_options(const acf_options *o, const acf_table *t, acf_options **out) {
    acf_options *copy;
    json_t *values = NULL;
    acf_status status = ACF_OK;
    const acf_json_source from = {"options", ACF_EUSAGE};
    ACF_TRY(acf_config_create(&copy));
    ACF_TRY_DONE(acf_opts_to_json(o, ACF_OPTS_CHANGED, &values));
    ACF_TRY_DONE(acf_opts_from_json(copy, from, values, ACF_FROM_USER));
    ACF_TRY_DONE(acf_config_finish(copy));
    ACF_TRY_DONE(acf_config_width(copy, t->column, t->D));
    *out = copy;
done:
    json_decref(values);
    if (status) acf_opts_free(copy);
    return status;
}

/* Everything that stands on the table: what is held out, the scales, a network. Gives *hold and *out. */
static acf_status prepare(const acf_table *t, const acf_options *o, acf_device *dev, acf_holdout **hold, acf_model **out) {
    acf_options *config = NULL;
    acf_encoder *encoder;
    ACF_TRY(copy_options(o, t, &config));
    acf_status status = acf_train_prepare(t, NULL, config, hold, &encoder);
    if (status) {
        acf_opts_free(config);
        return status;
    }
    /* The model takes both over, also when it fails. */
    ACF_TRY(acf_fitted_create(dev, config, encoder, (uint64_t)acf_options_int(config, "seed"), true, out));
    return t->frame ? acf_schema_copy(t->frame->schema, &(*out)->schema) : ACF_OK;
}

acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx, acf_model **out) {
    ACF_NEED(out);
    *out = NULL;
    ACF_NEED(t);
    ACF_NEED(o);
    if (!acf_opts_find(o, "steps"))
        return acf_fail(ACF_EUSAGE, "acf_model_fit: the options have nothing about training; make them with acf_options_create");
    acf_device *dev = NULL;
    acf_holdout *hold = NULL;
    acf_model *m = NULL;
    acf_fit how;
    acf_status status = ACF_OK;
    ACF_TRY(acf_fit_read(o, &how));
    how.callback = callback, how.ctx = ctx;
    ACF_TRY(acf_device_open(acf_options_text(o, "device"), (int)acf_options_int(o, "threads"), &dev));
    ACF_TRY_DONE(prepare(t, o, dev, &hold, &m));
    ACF_TRY_DONE(acf_fit_model(m, t, hold, &how));
done:
    acf_holdout_free(hold);
    if (m && m->record.known) { /* also after some failures: acflow.h says which */
        m->owns_dev = true;
        *out = m;
    } else {
        acf_fitted_free(m);
        acf_device_close(dev);
    }
    return status;
}
