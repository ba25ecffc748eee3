/* Small models for tests: see model_file_lab.h. */
#include "harness/model_file_lab.h"

#include "harness/lab.h"
#include "harness/net_lab.h"
#include "model/config.h"

acf_model *acf_lab_fitted(acf_device *dev, const acf_table *t, const char *likelihood, const acf_encoding *shape,
                          uint64_t seed, double spread) {
    acf_options *o;
    acf_encoder *e;
    acf_model *m = NULL;
    assert_int_equal(acf_config_create(&o), ACF_OK);
    acf_lab_set(o, (const char *[]){"mlp-width=6", "coupling-units=5", "likelihood-units=7", "components=3", NULL});
    if (likelihood) assert_int_equal(acf_options_set_text(o, "likelihood", likelihood), ACF_OK);
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    if (shape) assert_int_equal(acf_encoder_shape(e, t, NULL, NULL, shape), ACF_OK);
    if (acf_model_make(dev, o, e, seed, true, &m)) fail_msg("%s", acf_error());
    acf_params *ps = acf_net_params(m->net);
    for (int64_t i = 0; spread > 0 && i < ps->total; i++)
        ps->value[i] += (acf_real)acf_lab_random(seed - 1, i, -spread, spread);
    return m;
}
