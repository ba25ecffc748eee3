/* Options and presets of table models: see config.h. */
#include "model/config.h"

#include "base/text.h"
#include "like/like.h"

#include <string.h>

#define PAPER_LAYER "linear leaky rnn"

/* Options that `paper`, `paper-2d` and `ar` share, then the sizes of each (the paper's appendix). `ar` is the
 * paper's autoregressive baseline: no transformations. The paper does not describe training, so these options follow
 * its first author's code for tables. */
static const struct {
    const char *preset, *name, *value;
} presets[] = {
    {"protocol", "encode", "standard"},
    {"protocol", "dequantise", "false"},
    {"protocol", "gmm", "0"},
    {"protocol", "factors", "0"},
    {"protocol", "likelihood", "gru"},
    {"protocol", "column-embedding", "0"},
    {"protocol", "context-width", "0"},
    {"protocol", "deep-context", "false"},
    {"protocol", "donors", "false"},
    {"protocol", "ensemble", "1"},
    {"protocol", "components", "40"},
    {"protocol", "batch", "1024"},
    {"protocol", "steps", "60000"},
    {"protocol", "epochs", "0"},
    {"protocol", "lr", "0.005"},
    {"protocol", "warmup", "0"},
    {"protocol", "decay", "constant"},
    {"protocol", "halve-every", "10000"},
    {"protocol", "clip", "1"},
    {"protocol", "weight-decay", "0"},
    {"protocol", "dropout", "0"},
    {"protocol", "ema", "0"},
    {"protocol", "masks", "bernoulli:0.5"},
    {"protocol", "guess-weight", "0"},
    {"protocol", "loss-per", "column"},
    {"protocol", "valid-every", "2500"},
    {"protocol", "patience", "0"},
    {"protocol", "calibrate", "false"},
    {"protocol", "refit", "false"},
    {"protocol", "precision", "float"},
    {"paper", "flow",
     PAPER_LAYER " reverse " PAPER_LAYER " reverse " PAPER_LAYER " reverse " PAPER_LAYER " reverse " PAPER_LAYER
                 " reverse " PAPER_LAYER},
    {"paper", "rank", "0"},
    {"paper", "mlp-width", "256"},
    {"paper", "mlp-layers", "2"},
    {"paper", "coupling-units", "256"},
    {"paper", "coupling-layers", "2"},
    {"paper", "scale-bound", "1"},
    {"paper", "likelihood-units", "256"},
    {"paper", "likelihood-layers", "4"},
    {"paper-2d", "flow", PAPER_LAYER " reverse " PAPER_LAYER " reverse " PAPER_LAYER " reverse " PAPER_LAYER},
    {"paper-2d", "rank", "0"},
    {"paper-2d", "mlp-width", "256"},
    {"paper-2d", "mlp-layers", "2"},
    {"paper-2d", "coupling-units", "256"},
    {"paper-2d", "coupling-layers", "2"},
    {"paper-2d", "scale-bound", "1"},
    {"paper-2d", "likelihood-units", "256"},
    {"paper-2d", "likelihood-layers", "2"},
    {"ar", "flow", ""},
    {"ar", "likelihood-units", "256"},
    {"ar", "likelihood-layers", "4"},
    {"flow", "flow", "linear leaky rnn reverse linear leaky rnn"},
    {"flow", "donors", "false"},
    /* Effort, for the presets default and flow. In a quick model the Gaussian mixture does most of the work; the
     * network mainly serves classes. */
    {"quick", "ensemble", "1"},
    {"quick", "likelihood-units", "32"},
    {"quick", "likelihood-layers", "1"},
    {"quick", "steps", "150"},
    {"quick", "lr", "0.004"},
    {"quick", "warmup", "20"},
    {"quick", "ema", "0.98"},
    {"quick", "valid-every", "50"},
    {"quick", "refit", "false"},
    {"best", "likelihood-units", "128"},
    {"best", "likelihood-layers", "3"},
    {"best", "steps", "10000"},
    {"best", "patience", "20"},
    /* A table of ACF_LARGE_ROWS on a GPU. */
    {"large", "likelihood", "attention"},
    {"large", "likelihood-units", "256"},
    {"large", "likelihood-layers", "4"},
    {"large", "components", "32"},
    {"large", "batch", "512"},
    {"large", "steps", "9000"},
    {"large", "valid-every", "1000"},
    {"large", "lr", "0.001"},
    {"large", "warmup", "300"},
    {"large", "dropout", "0.05"},
    {"large", "precision", "bf16"},
    {"large", "valid", "0.05"},
    {"large", "refit", "false"},
    {"large-best", "likelihood-units", "384"},
    {"large-best", "likelihood-layers", "6"},
    {"large-best", "steps", "18000"},
    /* Images: first the options that all image models share, then each preset. The sizes are measured
     * (docs/RESULTS.md); cifar uses those of celeba64. The masks are the paper's. */
    {"images", "batch", "64"},
    {"images", "patience", "20"},
    {"images", "lr", "0.001"},
    {"images", "dropout", "0"},
    {"images", "weight-decay", "0"},
    {"images", "clip", "100"},
    {"images", "ema", "0.999"},
    {"tiny", "image-scales", "0"},
    {"tiny", "image-likelihood", "pixelcnn"},
    {"tiny", "image-like-width", "16"},
    {"tiny", "image-like-blocks", "2"},
    {"tiny", "guess-weight", "10"},
    {"tiny", "batch", "32"},
    {"tiny", "steps", "1000"},
    {"tiny", "lr", "0.003"},
    {"tiny", "warmup", "50"},
    {"tiny", "ema", "0.99"},
    {"tiny", "valid", "0.05"},
    {"tiny", "valid-every", "200"},
    {"mnist", "image-scales", "2"},
    {"mnist", "image-blocks", "1"},
    {"mnist", "image-width", "32"},
    {"mnist", "image-likelihood", "pixelcnn"},
    {"mnist", "image-like-width", "64"},
    {"mnist", "image-like-blocks", "4"},
    {"mnist", "image-embed-blocks", "2"},
    {"mnist", "image-pad", "32"},
    {"mnist", "guess-weight", "10"},
    {"mnist", "lr", "0.0015"},
    {"mnist", "steps", "30000"},
    {"omniglot", "image-scales", "2"},
    {"omniglot", "image-blocks", "1"},
    {"omniglot", "image-width", "32"},
    {"omniglot", "image-likelihood", "pixelcnn"},
    {"omniglot", "image-like-width", "64"},
    {"omniglot", "image-like-blocks", "4"},
    {"omniglot", "image-embed-blocks", "2"},
    {"omniglot", "image-pad", "32"},
    {"omniglot", "image-rotate", "true"},
    {"omniglot", "image-masks", "paper-omniglot"},
    {"omniglot", "guess-weight", "10"},
    {"omniglot", "lr", "0.0015"},
    {"omniglot", "steps", "30000"},
    {"celeba64", "image-scales", "3"},
    {"celeba64", "image-blocks", "1"},
    {"celeba64", "image-dequantise", "uniform-logit"},
    {"celeba64", "image-width", "32"},
    {"celeba64", "image-likelihood", "pixelcnn"},
    {"celeba64", "image-like-width", "64"},
    {"celeba64", "image-like-blocks", "5"},
    {"celeba64", "image-embed-blocks", "2"},
    {"celeba64", "image-embed-deep", "2"},
    {"celeba64", "image-size", "64"},
    {"celeba64", "image-flip", "true"},
    {"celeba64", "image-centre", "true"},
    {"celeba64", "image-masks", "paper-celeba"},
    {"celeba64", "guess-weight", "100"},
    {"celeba64", "image-passes", "11"},
    {"celeba64", "batch", "32"},
    {"celeba64", "steps", "50000"},
    {"celeba64", "valid", "0.02"}, /* validation makes one query per pass */
    {"celeba64", "valid-every", "2000"},
    {"olivetti", "image-scales", "2"},
    {"olivetti", "image-blocks", "1"},
    {"olivetti", "image-dequantise", "uniform-logit"},
    {"olivetti", "image-width", "32"},
    {"olivetti", "image-likelihood", "gaussian"},
    {"olivetti", "image-like-width", "48"},
    {"olivetti", "image-size", "64"},
    {"olivetti", "image-flip", "true"},
    {"olivetti", "image-masks", "left + bottom"},
    {"olivetti", "guess-weight", "3000"},
    {"olivetti", "batch", "16"},
    {"olivetti", "steps", "2500"},
    {"cifar", "image-scales", "3"},
    {"cifar", "image-blocks", "1"},
    {"cifar", "image-dequantise", "uniform-logit"},
    {"cifar", "image-width", "32"},
    {"cifar", "image-likelihood", "pixelcnn"},
    {"cifar", "image-like-width", "64"},
    {"cifar", "image-like-blocks", "5"},
    {"cifar", "image-embed-blocks", "2"},
    {"cifar", "image-flip", "true"},
    {"cifar", "image-masks", "paper-cifar"},
    {"cifar", "guess-weight", "100"},
    {"cifar", "image-passes", "9"},
    {"cifar", "batch", "32"},
    {"cifar", "steps", "30000"},
    {"cifar", "valid", "0.02"}, /* validation makes one query per pass */
    {"cifar", "valid-every", "2000"},
};

#define FIRST_PAPER_PRESET 2 /* in the choices of the option `preset` */
#define FIRST_IMAGE_PRESET 5

/* Options that older model files lack, with the value that leaves such a model unchanged. */
static const char *const later[][2] = {
    {"gmm", "0"},          {"factors", "0"},           {"gmm-indicators", "0"}, {"context-width", "0"},
    {"likelihood", "gru"}, {"likelihood-units", "96"}, {"encode", "standard"},  {"dequantise", "false"},
    {"donors", "false"},   {"refit", "false"},         {"ensemble", "1"},       {"image-dequantise", "uniform-logit"},
    {"valid-on", "cells"}};

acf_status acf_config_create(acf_options **out) { return acf_options_make(acf_option_table, acf_option_count, out); }

acf_status acf_config_copy(const acf_options *o, acf_options **out) {
    acf_options *copy;
    json_t *values = NULL;
    acf_status status = ACF_OK;
    ACF_TRY(acf_config_create(&copy));
    ACF_TRY_DONE(acf_options_to_json(o, ACF_OPTIONS_CHANGED, &values));
    ACF_TRY_DONE(acf_options_from_json(copy, (acf_json_source){"options", ACF_EUSAGE}, values, ACF_FROM_USER));
    *out = copy;
done:
    json_decref(values);
    if (status) acf_options_free(copy);
    return status;
}

acf_status acf_config_create_old(acf_options **out) {
    acf_options *o;
    acf_status status = ACF_OK;
    ACF_TRY(acf_config_create(&o));
    for (size_t i = 0; i < sizeof later / sizeof later[0] && !status; i++)
        status = acf_options_set_from(o, later[i][0], later[i][1], ACF_FROM_PRESET);
    if (status)
        acf_options_free(o);
    else
        *out = o;
    return status;
}

bool acf_config_follows_paper(const acf_options *o) {
    const int preset = acf_options_choice(o, "preset");
    return preset >= FIRST_PAPER_PRESET && preset < FIRST_IMAGE_PRESET;
}

static acf_status apply(acf_options *o, const char *preset) {
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (acf_text_same_name(presets[i].preset, preset))
            ACF_TRY(acf_options_set_from(o, presets[i].name, presets[i].value, ACF_FROM_PRESET));
    return ACF_OK;
}

enum { ACF_EFFORT_QUICK, ACF_EFFORT_NORMAL, ACF_EFFORT_BEST };
static const char *const effort_name[] = {"quick", "normal", "best"};

acf_status acf_config_finish(acf_options *o) {
    char text[32];
    acf_text name = acf_text_into(text, sizeof text);
    ACF_TRY(acf_options_write(o, "preset", &name));
    if (acf_config_follows_paper(o)) ACF_TRY(apply(o, "protocol"));
    if (acf_options_choice(o, "preset") >= FIRST_IMAGE_PRESET)
        return acf_fail(ACF_EUSAGE,
                        "the preset '%s' is one of image models, but this is a table; "
                        "expected default, flow, paper, paper-2d or ar",
                        text);
    ACF_TRY(apply(o, text));
    if (!acf_config_follows_paper(o)) return apply(o, effort_name[acf_options_choice(o, "effort")]);
    if (acf_options_choice(o, "effort") == ACF_EFFORT_NORMAL) return ACF_OK;
    return acf_fail(ACF_EUSAGE,
                    "the preset '%s' is the paper's model and training; the option 'effort' is for the presets "
                    "default and flow",
                    text);
}

acf_status acf_config_finish_images(acf_options *o) {
    char text[32];
    acf_text name = acf_text_into(text, sizeof text);
    const int preset = acf_options_choice(o, "preset");
    ACF_TRY(acf_options_write(o, "preset", &name));
    if (preset > 0 && preset < FIRST_IMAGE_PRESET)
        return acf_fail(ACF_EUSAGE,
                        "the preset '%s' is one of table models, but these are images; "
                        "expected default, tiny, mnist, omniglot, celeba64, olivetti or cifar",
                        text);
    if (acf_options_choice(o, "effort") != ACF_EFFORT_NORMAL)
        return acf_fail(
            ACF_EUSAGE,
            "the option 'effort' is for tables, but these are images; leave it out: their presets set the size "
            "of a model");
    if (acf_options_origin(o, "batch") != ACF_FROM_DEFAULT && acf_options_int(o, "batch") == ACF_INT_AUTO)
        return acf_fail(ACF_EUSAGE,
                        "the option 'batch' is auto, which works for tables only; use a number for images, such as 64");
    ACF_TRY(apply(o, "images"));
    return apply(o, text);
}

/* ---- by width ---------------------------------------------------------------------------------------------------- */

#define FLOW_MAX 1024

int64_t acf_config_rows(int64_t D) { return acf_max(4, acf_min(ACF_BATCH_ROWS, ACF_BATCH_CELLS / acf_max(D, 1))); }

/* Sets an option that nobody has set yet. */
static acf_status suggest(acf_options *o, const char *name, int64_t value) {
    return acf_options_origin(o, name) == ACF_FROM_DEFAULT ? acf_options_set_int(o, name, value, ACF_FROM_PRESET)
                                                           : ACF_OK;
}

/* Replaces every `linear` in the flow of preset `flow`. The paper's presets keep their own flow. */
static acf_status suggest_lowrank(acf_options *o) {
    static const char full[] = "linear", low[] = "lowrank";
    char flow[FLOW_MAX], preset[32];
    acf_text name = acf_text_into(preset, sizeof preset);
    ACF_TRY(acf_options_write(o, "preset", &name));
    if (!acf_text_same_name(preset, "flow")) return ACF_OK;
    acf_text out = acf_text_into(flow, sizeof flow);
    for (const char *at = acf_options_text(o, "flow"); *at;) {
        size_t word = strcspn(at, " "), between = strspn(at + word, " ");
        bool is_full = word == sizeof full - 1 && memcmp(at, full, word) == 0;
        acf_text_add_bytes(&out, is_full ? low : at, is_full ? sizeof low - 1 : word);
        acf_text_add_bytes(&out, at + word, between);
        at += word + between;
    }
    return acf_options_set_from(o, "flow", flow, ACF_FROM_PRESET);
}

acf_status acf_config_ensemble(acf_options *o, int64_t rows, int64_t columns) {
    if (acf_options_int(o, "ensemble") != ACF_INT_AUTO) return ACF_OK;
    const int64_t several = acf_options_choice(o, "effort") == ACF_EFFORT_BEST ? ACF_ENSEMBLE_BEST : ACF_ENSEMBLE_AUTO;
    return acf_options_set_int(o, "ensemble", rows < ACF_ENSEMBLE_ROWS && columns <= ACF_ENSEMBLE_COLUMNS ? several : 1,
                               ACF_FROM_USER);
}

static acf_status suggest_large(acf_options *o, const acf_column *column, int64_t D) {
    bool numbers = true;
    for (int64_t j = 0; j < D; j++) numbers &= column[j].classes == 0;
    ACF_TRY(apply(o, "large"));
    if (acf_options_choice(o, "effort") == ACF_EFFORT_BEST) ACF_TRY(apply(o, "large-best"));
    return numbers && D <= ACF_ENSEMBLE_COLUMNS ? ACF_OK : suggest(o, "gmm", 0);
}

acf_status acf_config_height(acf_options *o, const acf_column *column, int64_t D, int64_t rows, bool gpu) {
    const bool free = acf_options_choice(o, "preset") == 0 && !*acf_options_text(o, "flow") &&
                      acf_options_origin(o, "likelihood") == ACF_FROM_DEFAULT;
    if (acf_options_choice(o, "effort") == ACF_EFFORT_QUICK)
        return rows > ACF_QUICK_ROWS ? acf_options_set_from(o, "donors", "false", ACF_FROM_PRESET) : ACF_OK;
    return free && gpu && rows >= ACF_LARGE_ROWS && D <= ACF_LARGE_COLUMNS ? suggest_large(o, column, D) : ACF_OK;
}

/* Sets masks=joint for the attention likelihood if the modelled cells of a row may come in any order. It then learns
 * all conditionals of a row at once. A flow, or a mixture of a mixed table, fixes the order. */
static acf_status suggest_masks(acf_options *o, int64_t reals, int64_t D) {
    const bool ordered = *acf_options_text(o, "flow") || (reals < D && acf_options_int(o, "gmm") > 0);
    if (!acf_like_chosen(o)->whole_row || ordered || acf_options_origin(o, "masks") != ACF_FROM_DEFAULT) return ACF_OK;
    return acf_options_set_from(o, "masks", "joint", ACF_FROM_PRESET);
}

acf_status acf_config_width(acf_options *o, const acf_column *column, int64_t D) {
    int64_t reals = 0;
    for (int64_t j = 0; j < D; j++) reals += column[j].classes == 0;
    ACF_TRY(suggest(o, "batch", acf_config_rows(D)));
    ACF_TRY(suggest_masks(o, reals, D));
    if (reals <= ACF_WIDTH_FULL) return ACF_OK;
    if (reals > ACF_WIDTH_BASE) ACF_TRY(suggest_lowrank(o));
    return suggest(o, "rank", ACF_WIDTH_RANK);
}
