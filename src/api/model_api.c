/* Public models and sessions: see acflow.h. Argument checks, then model/ and infer/. */
#include "api/argument_checks.h"
#include "infer/session.h"
#include "model/config.h"
#include "model/query_options.h"
#include "ops/ops.h"

#include <string.h>

/* The device of the options, or the CPU with their number of threads; NULL options: the defaults. */
static acf_status open_device(const acf_options *o, bool recurrent, acf_device **out) {
    if (!o) return acf_device_open("auto", acf_ops_needed(recurrent), 0, out);
    return acf_device_open(acf_options_text(o, "device"), acf_ops_needed(recurrent), (int)acf_options_int(o, "threads"),
                           out);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

acf_status acf_model_save(const acf_model *m, const char *path) {
    ACF_NEED(m);
    ACF_NEED(path);
    return acf_model_write(m, path);
}

static acf_status load(const char *path, const acf_options *o, bool recurrent, acf_model **out) {
    acf_device *dev;
    acf_model *m;
    ACF_TRY(open_device(o, recurrent, &dev));
    acf_status status = acf_model_read(dev, path, &m);
    if (status) {
        acf_device_close(dev);
        return status;
    }
    m->owns_dev = true;
    *out = m;
    return ACF_OK;
}

acf_status acf_model_load(const char *path, const acf_options *o, acf_model **out) {
    ACF_NEED(path);
    ACF_NEED(out);
    acf_model *m;
    ACF_TRY(load(path, o, false, &m));
    /* `auto` chose without knowing whether the model has GRUs; now it does. */
    if (m->dev->plugin && (!o || strcmp(acf_options_text(o, "device"), "auto") == 0) && !m->image &&
        acf_net_recurrent(m->config)) {
        acf_model_free(m);
        ACF_TRY(load(path, o, true, &m));
    }
    acf_status status = acf_model_set_query_options(m, o);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

/* ---- queries --------------------------------------------------------------------------------------------------- */

acf_status acf_session_create(const acf_model *m, acf_session **out) {
    ACF_NEED(m);
    ACF_NEED(out);
    acf_session *s;
    ACF_NEED_TABLE(m);
    ACF_TRY(acf_session_open(m->dev, m, acf_config_rows(m->encoder->D), &s));
    acf_status status = acf_session_set_precision(s, m->query_precision);
    if (status)
        acf_session_free(s);
    else
        *out = s;
    return status;
}

acf_status acf_session_logp(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                            double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_session_query_logp(s, t, (acf_query){given, target}, out);
}

acf_status acf_session_cells(acf_session *s, const acf_table *t, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_session_query_cells(s, t, out);
}

acf_status acf_session_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal, uint8_t *given) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(logp);
    ACF_NEED(surprisal);
    return acf_session_query_surprisal(s, t, logp, surprisal, given);
}

acf_status acf_session_draw(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                            uint64_t seed, uint32_t draw, double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_session_query_draw(s, t, (acf_query){given, target}, seed, draw, out);
}

acf_status acf_session_guess(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                             double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_session_query_guess(s, t, (acf_query){given, target}, out);
}

acf_status acf_session_mean(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                            double *out) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(out);
    return acf_session_query_mean(s, t, (acf_query){given, target}, out);
}

acf_status acf_session_summary(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                               uint64_t seed, int32_t draws, const double *levels, int n_levels, double *mean,
                               double *quantiles) {
    ACF_NEED(s);
    ACF_NEED(t);
    if (n_levels < 0) return acf_fail(ACF_EUSAGE, "acf_session_summary: %d quantiles", n_levels);
    if (n_levels > 0) ACF_NEED(levels);
    return acf_session_query_summary(s, t, (acf_query){given, target}, seed, draws, levels, n_levels, mean, quantiles);
}

acf_status acf_session_interval(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                double level, double *mean, double *low, double *high) {
    ACF_NEED(s);
    ACF_NEED(t);
    ACF_NEED(low);
    ACF_NEED(high);
    return acf_session_query_interval(s, t, (acf_query){given, target}, level, mean, low, high);
}
