/* Options that concern queries to a model, and not what it is: precision, orders, image draws. */
#ifndef ACF_MODEL_QUERY_OPTIONS_H
#define ACF_MODEL_QUERY_OPTIONS_H

#include "base/options.h"
#include "model/model.h"

/* Sets the query options of m from o (NULL: the defaults). Fails: ACF_EDEVICE (the device cannot multiply so),
 * ACF_EUSAGE (orders of a model without the attention likelihood). */
acf_status acf_model_set_query_options(acf_model *m, const acf_options *o);

#endif
