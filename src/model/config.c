/* Options and presets of table models: see config.h. */
#include "model/config.h"

#include "base/text.h"

#define PAPER_LAYER "linear leaky rnn "

/* The paper's sizes (its appendix); `ar` is its autoregressive baseline: no transformations. */
static const struct {
    const char *preset, *name, *value;
} presets[] = {
    {"paper", "flow",
     PAPER_LAYER "reverse " PAPER_LAYER "reverse " PAPER_LAYER "reverse " PAPER_LAYER "reverse " PAPER_LAYER
                 "reverse " PAPER_LAYER},
    {"paper", "mlp-width", "256"},
    {"paper", "coupling-units", "256"},
    {"paper", "coupling-layers", "2"},
    {"paper", "likelihood-units", "256"},
    {"paper", "likelihood-layers", "4"},
    {"paper", "components", "40"},
    {"paper", "scale-bound", "1"},
    {"paper", "anchor", "0"},
    {"paper", "identity", "0"},
    {"paper", "deep-context", "false"},
    {"paper-2d", "flow",
     PAPER_LAYER "reverse " PAPER_LAYER "reverse " PAPER_LAYER "reverse " PAPER_LAYER},
    {"paper-2d", "mlp-width", "256"},
    {"paper-2d", "coupling-units", "256"},
    {"paper-2d", "coupling-layers", "2"},
    {"paper-2d", "likelihood-units", "256"},
    {"paper-2d", "likelihood-layers", "2"},
    {"paper-2d", "components", "40"},
    {"paper-2d", "scale-bound", "1"},
    {"paper-2d", "anchor", "0"},
    {"paper-2d", "identity", "0"},
    {"paper-2d", "deep-context", "false"},
    {"ar", "flow", ""},
    {"ar", "likelihood-units", "256"},
    {"ar", "likelihood-layers", "4"},
    {"ar", "components", "40"},
    {"ar", "anchor", "0"},
    {"ar", "identity", "0"},
    {"ar", "deep-context", "false"},
};

acf_status acf_config_create(acf_options **out) { return acf_opts_create(acf_option_table, acf_option_count, out); }

acf_status acf_config_finish(acf_options *o) {
    char text[32];
    acf_text name = acf_text_into(text, sizeof text);
    ACF_TRY(acf_opts_write(o, "preset", &name));
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (acf_text_same_name(presets[i].preset, text))
            ACF_TRY(acf_opts_set_from(o, presets[i].name, presets[i].value, ACF_FROM_PRESET));
    return ACF_OK;
}
