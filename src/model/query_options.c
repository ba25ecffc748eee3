/* The options of queries: see query_options.h. */
#include "model/query_options.h"

#include <math.h>

acf_status acf_model_set_query_options(acf_model *m, const acf_options *o) {
    const acf_precision precision = o ? (acf_precision)acf_options_choice(o, "query-precision") : ACF_PRECISION_FLOAT;
    if (!acf_device_multiplies(m->dev, precision))
        return acf_fail(ACF_EDEVICE, "the option 'query-precision' is %s; use query-precision float",
                        precision == ACF_PRECISION_BF16 ? "bf16, but this CPU has no AVX512-BF16"
                                                        : "tf32, which needs a GPU");
    m->query_precision = precision;
    m->orders = o ? acf_options_int(o, "orders") : 1;
    if (m->orders > 1 && (m->image || !acf_net_attends(m->net)))
        return acf_fail(
            ACF_EUSAGE,
            "the option 'orders' is %lld, but the model does not have the attention likelihood; leave it out",
            (long long)m->orders);
    m->log_temperature = o ? log(acf_options_real(o, "image-temperature")) : 0;
    m->at_once = o && acf_options_bool(o, "image-single-pass");
    return ACF_OK;
}
