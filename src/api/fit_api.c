/* Fitting: see acflow.h. Argument checks, then train/fit_model.h. */
#include "api/argument_checks.h"
#include "model/net.h"
#include "ops/ops.h"
#include "train/fit_model.h"

acf_status acf_device_used(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_BUFFER(out, cap);
    acf_options *config;
    acf_choice c = {.kind = ACF_DEVICE_CPU};
    acf_device_facts f;
    ACF_TRY(acf_fit_options(o, &config));
    acf_status status = acf_device_choose(acf_options_text(o, "device"), acf_ops_needed(acf_net_recurrent(config)), &c);
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
    return acf_fit_table(t, valid, o, callback, ctx, out);
}
