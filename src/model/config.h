/* Presets: one word for several options of a model. What a model is made of and how it was trained is recorded in its file. */
#ifndef ACF_MODEL_CONFIG_H
#define ACF_MODEL_CONFIG_H

#include "base/options.h"

/* A set with every option of base/option_table.h at its default, which is preset `default`. Gives *out; free with acf_opts_free. */
acf_status acf_config_create(acf_options **out);

/* Fills in what the option `preset` stands for, wherever the user or a file has not said otherwise. To be called once all
 * options are set. Fails: ACF_EMEMORY. */
acf_status acf_config_finish(acf_options *o);

#endif
