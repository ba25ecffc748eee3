/* Public models and sessions: see acflow.h. Checks at the door, then model/, train/ and infer/. */
#include "api/door.h"
#include "infer/session.h"
#include "model/config.h"
#include "train/trainer.h"

/* The CPU with as many threads as the options say; NULL options: all cores. */
static acf_status open_device(const acf_options *o, acf_device **out) {
    return acf_device_open_cpu(o ? (int)acf_options_int(o, "threads") : 0, out);
}

/* ---- fitting ------------------------------------------------------------------------------------------------------------ */

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

typedef struct listener {
    acf_fit_callback callback;
    void *ctx;
    int64_t steps;
    volatile sig_atomic_t stop;
} listener;

static void report(void *ctx, const acf_train_progress *p) {
    listener *l = ctx;
    if (!l->callback) return;
    const acf_fit_report r = {.step = p->step, .steps = l->steps, .epoch = p->epoch, .loss = p->last.loss, .valid = p->valid,
                              .best = p->best, .rows_per_second = p->rows_per_second, .skipped = p->skipped};
    if (l->callback(l->ctx, &r)) l->stop = 1;
}

/* Trains m->net; hold and the trainer live for this call only. */
static acf_status train(acf_model *m, const acf_table *t, const acf_holdout *hold, acf_fit_callback callback, void *ctx) {
    acf_trainer *tr = NULL;
    acf_status status = ACF_OK;
    listener l = {callback, ctx, acf_options_int(m->config, "steps"), 0};
    ACF_TRY_DONE(acf_trainer_create(m->net, &(acf_train_data){t, NULL, m->encoder, hold}, m->config, &tr));
    ACF_TRY_DONE(acf_trainer_run(tr, &(acf_train_hooks){.report = report, .ctx = &l, .stop = &l.stop}, NULL));
    ACF_TRY_DONE(acf_trainer_finish(tr));
done:
    acf_trainer_free(tr);
    return status;
}

acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx, acf_model **out) {
    ACF_NEED(t);
    ACF_NEED(o);
    ACF_NEED(out);
    if (!acf_opts_find(o, "steps"))
        return acf_fail(ACF_EUSAGE, "acf_model_fit: the options have nothing about training; make them with acf_options_create");
    acf_device *dev = NULL;
    acf_options *config = NULL;
    acf_encoder *encoder;
    acf_holdout *hold = NULL;
    acf_model *m = NULL;
    acf_status status = ACF_OK;
    ACF_TRY_DONE(copy_options(o, t, &config));
    ACF_TRY_DONE(open_device(o, &dev));
    ACF_TRY_DONE(acf_train_prepare(t, NULL, config, &hold, &encoder));
    acf_options *given = config;
    config = NULL; /* the model takes both over, also when it fails */
    ACF_TRY_DONE(acf_fitted_create(dev, given, encoder, (uint64_t)acf_options_int(given, "seed"), true, &m));
    ACF_TRY_DONE(train(m, t, hold, callback, ctx));
    m->owns_dev = true;
    *out = m;
done:
    acf_holdout_free(hold);
    if (status) {
        acf_opts_free(config);
        acf_fitted_free(m);
        acf_device_close(dev);
    }
    return status;
}

void acf_model_free(acf_model *m) { acf_fitted_free(m); }

int64_t acf_model_columns(const acf_model *m) { return m ? m->encoder->D : 0; }

acf_status acf_model_save(const acf_model *m, const char *path) {
    ACF_NEED(m);
    ACF_NEED(path);
    return acf_fitted_save(m, path);
}

acf_status acf_model_load(const char *path, const acf_options *o, acf_model **out) {
    ACF_NEED(path);
    ACF_NEED(out);
    acf_device *dev;
    acf_model *m;
    ACF_TRY(open_device(o, &dev));
    acf_status status = acf_fitted_load(dev, path, &m);
    if (status) {
        acf_device_close(dev);
        return status;
    }
    m->owns_dev = true;
    *out = m;
    return ACF_OK;
}

/* ---- questions ---------------------------------------------------------------------------------------------------------- */

acf_status acf_session_create(const acf_model *m, acf_session **out) {
    ACF_NEED(m);
    ACF_NEED(out);
    return acf_ask_create(m->dev, m, acf_config_rows(m->encoder->D), out);
}

void acf_session_free(acf_session *s) { acf_ask_free(s); }

acf_status acf_session_logp(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_ask_logp(s, t, (acf_question){given, asked}, out);
}

acf_status acf_session_cells(acf_session *s, const acf_table *t, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_ask_cells(s, t, out);
}

acf_status acf_session_draw(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, uint64_t seed,
                            uint32_t draw, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_ask_draw(s, t, (acf_question){given, asked}, seed, draw, out);
}

acf_status acf_session_guess(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_ask_guess(s, t, (acf_question){given, asked}, out);
}

acf_status acf_session_summary(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, uint64_t seed,
                               int32_t draws, const double *levels, int n_levels, double *mean, double *quantiles) {
    ACF_NEED(s);
    ACF_NEED(t);
    if (n_levels < 0) return acf_fail(ACF_EUSAGE, "acf_session_summary: %d quantiles", n_levels);
    if (n_levels > 0) ACF_NEED(levels);
    return acf_ask_summary(s, t, (acf_question){given, asked}, seed, draws, levels, n_levels, mean, quantiles);
}
