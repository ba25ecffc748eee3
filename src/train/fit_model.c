/* A fit from beginning to end: see fit_model.h. */
#include "train/fit_model.h"

#include "device/cpu.h"
#include "model/config.h"
#include "model/image_model.h"
#include "model/query_options.h"
#include "ops/ops.h"
#include "table/table_file.h"
#include "train/donor_trust.h"
#include "train/ensemble.h"
#include "train/fit.h"
#include "train/gmm_posterior.h"
#include "train/valid.h"

/* Gives the model, which then owns dev, if training came far enough for one, also after some failures (acflow.h lists
 * them). Otherwise frees both. m may be NULL. */
static void hand_out(acf_model *m, acf_device *dev, acf_model **out) {
    if (m && m->record.known) {
        m->owns_dev = true;
        *out = m;
    } else {
        acf_model_free(m);
        acf_device_close(dev);
    }
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

acf_status acf_fit_options(const acf_options *o, acf_options **out) {
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
static acf_status prepare_table(const acf_table *t, acf_options *config, acf_device *dev, acf_holdout **hold,
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

acf_status acf_fit_table(const acf_table *t, const acf_table *valid, const acf_options *o, acf_fit_callback callback,
                         void *ctx, acf_model **out) {
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
    ACF_TRY(acf_fit_options(o, &config));
    status = take_valid(t, valid, config);
    if (!status)
        status = acf_device_open(acf_options_text(o, "device"), acf_ops_needed(acf_net_recurrent(config)),
                                 (int)acf_options_int(o, "threads"), &dev);
    if (status) {
        acf_options_free(config);
        return status;
    }
    ACF_TRY_DONE(prepare_table(t, config, dev, &hold, &m));
    ACF_TRY_DONE(acf_model_set_query_options(m, o));
    status = acf_fit_ensemble(m, t, hold, &how);
    if (status == ACF_OK || status == ACF_EINTERRUPT) { /* an interrupted model has donors too */
        acf_status attached = acf_donors_attach(m, t);
        if (!attached) attached = acf_gmm_posterior(m, t);
        status = attached ? attached : status;
    }
done:
    acf_holdout_free(hold);
    hand_out(m, dev, out);
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* The model that the option `init-from` names, on the CPU (acf_model_free); NULL: none. */
static acf_status open_init_from(const acf_options *o, acf_model **out) {
    acf_device *dev;
    *out = NULL;
    const char *path = acf_options_text(o, "init-from");
    if (!*path) return ACF_OK;
    ACF_TRY(acf_device_open_cpu(1, &dev));
    acf_status status = acf_model_read(dev, path, out);
    if (status)
        acf_device_close(dev);
    else
        (*out)->owns_dev = true;
    if (!status && !(*out)->image) {
        status = acf_fail(ACF_EUSAGE, "the option 'init-from' is '%s', a model of a table; expected a model of images",
                          path);
        acf_model_free(*out);
        *out = NULL;
    }
    return status;
}

/* Options that are not set get the values of `from`, except the precision, which depends on the machine, and the seed,
 * which would hide the same pixels again. */
static acf_status continue_options(acf_options *o, const acf_model *from) {
    const acf_json_source source = {acf_options_text(o, "init-from"), ACF_EMODEL};
    json_t *there;
    ACF_TRY(acf_options_to_json(from->config, ACF_OPTIONS_IMAGE, &there));
    json_object_del(there, "precision");
    json_object_del(there, "seed");
    acf_status status = acf_options_from_json(o, source, there, ACF_FROM_PRESET);
    json_decref(there);
    ACF_TRY(status);
    ACF_TRY(acf_options_set_from(o, "image-rotate", from->seen.rotated ? "true" : "false", ACF_FROM_PRESET));
    ACF_TRY(acf_options_set_from(o, "image-flip", from->seen.flipped ? "true" : "false", ACF_FROM_PRESET));
    return acf_image_model_can_init_from(o, from, source.name);
}

/* Completes o with the options of `from` (may be NULL), then with those of the preset. */
static acf_status complete_options(const acf_options *o, const acf_model *from, acf_options **out) {
    acf_options *copy;
    ACF_TRY(acf_config_copy(o, &copy));
    acf_status status = acf_config_finish_images(copy);
    if (!status && from) status = continue_options(copy, from);
    if (status)
        acf_options_free(copy);
    else
        *out = copy;
    return status;
}

acf_status acf_fit_image_options(const acf_options *o, acf_options **out) {
    acf_model *from;
    ACF_TRY(open_init_from(o, &from));
    acf_status status = complete_options(o, from, out);
    acf_model_free(from);
    return status;
}

/* A network for the images with initial weights. Takes config. */
static acf_status prepare_images(const acf_images *im, acf_options *config, const acf_model *from, acf_device *dev,
                                 acf_model **out) {
    const int64_t shape[3] = {im->H, im->W, im->C};
    acf_image_map *map = NULL;
    acf_status status = from ? acf_image_model_check(from, "the images", shape, im->bits) : ACF_OK;
    if (!status) status = from ? acf_image_map_copy(from->map, &map) : acf_fit_image_map(im, config, &map);
    if (status) {
        acf_options_free(config);
        return status;
    }
    /* The model takes both over, also if it fails. */
    ACF_TRY(acf_model_make_images(dev, config, shape, map, (uint64_t)acf_options_int(config, "seed"), true, out));
    (*out)->seen = (acf_image_seen){im->inner, im->plan.rotate, im->plan.flip};
    return from ? acf_image_model_init_from(*out, from) : ACF_OK;
}

acf_status acf_fit_image_model(const acf_images *im, const acf_options *o, acf_fit_callback callback, void *ctx,
                               acf_model **out) {
    acf_device *dev = NULL;
    acf_options *config = NULL;
    acf_model *m = NULL, *from = NULL;
    acf_fit how;
    acf_status status = ACF_OK;
    ACF_TRY(open_init_from(o, &from));
    ACF_TRY_DONE(acf_fit_read(o, &how));
    how.callback = callback, how.ctx = ctx;
    ACF_TRY_DONE(acf_device_open(acf_options_text(o, "device"), acf_ops_needed(false),
                                 (int)acf_options_int(o, "threads"), &dev));
    ACF_TRY_DONE(complete_options(o, from, &config));
    ACF_TRY_DONE(prepare_images(im, config, from, dev, &m));
    ACF_TRY_DONE(acf_model_set_query_options(m, o));
    ACF_TRY_DONE(acf_fit_images(m, im, &how));
done:
    if (m && from) m->record.before = from->record.steps + from->record.before;
    acf_model_free(from);
    hand_out(m, dev, out);
    return status;
}
