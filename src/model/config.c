/* Options and presets of table models: see config.h. */
#include "model/config.h"

#include "base/text.h"

#define R ACF_OPTION_RECORDED

/* name, type, min, max, default, choices, flags, help */
#define MODEL_OPTIONS(X)                                                                                               \
    X("preset", CHOICE, 0, 0, "default", "default|paper|paper-2d|ar", R, "which set of model sizes to start from")     \
    X("flow", TEXT, 0, 1023, "linear leaky rnn reverse linear leaky rnn", NULL, R,                                     \
      "transformations in order: linear, packed, lowrank, leaky, rnn, rnn-shift, coupling, affine, reverse")           \
    X("likelihood", CHOICE, 0, 0, "ar", "ar|gaussian", R, "density behind the transformations")                        \
    X("mlp-width", INT, 1, 8192, "64", NULL, R, "units of a hidden layer in the networks of linear, affine, coupling") \
    X("mlp-layers", INT, 0, 7, "2", NULL, R, "their hidden layers")                                                    \
    X("coupling-units", INT, 1, 8192, "64", NULL, R, "units of the GRU in an RNN coupling")                            \
    X("coupling-layers", INT, 1, 8, "1", NULL, R, "its layers")                                                        \
    X("likelihood-units", INT, 1, 8192, "96", NULL, R, "units of the GRU of the likelihood")                           \
    X("likelihood-layers", INT, 1, 8, "2", NULL, R, "its layers")                                                      \
    X("components", INT, 1, 1024, "20", NULL, R, "Gaussians in the mixture of each column")                            \
    X("rank", INT, 0, 4096, "0", NULL, R, "rank of conditional matrices; 0 is full")                                   \
    X("scale-bound", REAL, 0.01, 20, "2", NULL, R, "largest log-scale of one transformation")                          \
    X("identity", INT, 0, 1024, "8", NULL, R, "width of the embedding that tells networks their column; 0 is none")    \
    X("embedding", INT, 1, 1024, "8", NULL, R, "width of the embedding of a category")                                 \
    X("deep-context", BOOL, 0, 0, "true", NULL, R, "every GRU layer sees the observed values, not only the first")

#define ROW(name_, type_, min_, max_, standard_, choices_, flags_, help_)                                              \
    {name_, ACF_OPTION_##type_, min_, max_, standard_, help_, choices_, NULL, flags_},
const acf_option acf_model_table[] = {MODEL_OPTIONS(ROW)};
const int acf_model_option_count = sizeof acf_model_table / sizeof acf_model_table[0];

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
    {"paper-2d", "identity", "0"},
    {"paper-2d", "deep-context", "false"},
    {"ar", "flow", ""},
    {"ar", "likelihood-units", "256"},
    {"ar", "likelihood-layers", "4"},
    {"ar", "components", "40"},
    {"ar", "identity", "0"},
    {"ar", "deep-context", "false"},
};

acf_status acf_config_create(acf_options **out) { return acf_opts_create(acf_model_table, acf_model_option_count, out); }

acf_status acf_config_finish(acf_options *o) {
    char text[32];
    acf_text name = acf_text_into(text, sizeof text);
    ACF_TRY(acf_opts_write(o, "preset", &name));
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (acf_text_same_name(presets[i].preset, text))
            ACF_TRY(acf_opts_set_from(o, presets[i].name, presets[i].value, ACF_FROM_PRESET));
    return ACF_OK;
}
