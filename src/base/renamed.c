/* Options that were renamed: see renamed.h. */
#include "base/renamed.h"

#include <string.h>

static const char *const options[][2] = {
    {"recall", "donors"},
    {"members", "ensemble"},
    {"anchor", "gmm"},
    {"anchor-rank", "factors"},
    {"anchor-width", "gmm-indicators"},
    {"identity", "column-embedding"},
    {"average", "ema"},
    {"answers", "query-precision"},
    {"start", "init-from"},
    {"eval-hide", "eval-rate"},
    {"image-map", "image-dequantise"},
    {"image-rounds", "image-passes"},
    {"image-at-once", "image-single-pass"},
    {"image-turn", "image-rotate"},
    {"image-mirror", "image-flip"},
};

/* option, old choice, new choice */
static const char *const choices[][3] = {
    {"encode", "warp", "normal-scores"},
    {"likelihood", "set", "sets"},
    {"likelihood", "ar", "gru"},
    {"image-dequantise", "bells", "gaussian"},
    {"image-dequantise", "logit", "uniform-logit"},
};

const char *acf_renamed_option(const char *old) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(options[i][0], old) == 0) return options[i][1];
    return NULL;
}

const char *acf_renamed_choice(const char *name, const char *old) {
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strcmp(choices[i][0], name) == 0 && strcmp(choices[i][1], old) == 0) return choices[i][2];
    return NULL;
}
