/* The options of a table model and of its training, and the presets that set several at once.
 *
 * A table of its own, in the mechanism of base/options.h: what a model is made of is recorded in its file. */
#ifndef ACF_MODEL_CONFIG_H
#define ACF_MODEL_CONFIG_H

#include "base/options.h"

extern const acf_option acf_model_table[];
extern const int acf_model_option_count;

/* A set with every option at its default, which is preset `default`. Gives *out; free with acf_opts_free. */
acf_status acf_config_create(acf_options **out);

/* Fills in what the option `preset` stands for, wherever the user or a file has not said otherwise. To be called once all
 * options are set. Fails: ACF_EMEMORY. */
acf_status acf_config_finish(acf_options *o);

#endif
