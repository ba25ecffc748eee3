/* Options of training: see train_options.h. */
#include "train/train_options.h"

#include "model/config.h"

#include <string.h>

/* Resolves `auto`. Imputation queries single cells, so with default masks validation uses held-out cells; else it uses
 * training's own queries. */
static acf_valid_on settle_valid(const acf_options *o) {
    const int choice = acf_options_choice(o, "valid-on");
    const bool usual = strcmp(acf_options_text(o, "masks"), acf_options_find(o, "masks")->standard) == 0 &&
                       acf_options_choice(o, "preset") == 0;
    if (choice > 0) return (acf_valid_on)choice;
    return usual && acf_options_real(o, "valid-rows") == 0 ? ACF_VALID_CELLS : ACF_VALID_ROWS;
}

static acf_status check_valid(const acf_train_settings *s) {
    if (!(s->valid_rows > 0) || s->valid_on == ACF_VALID_ROWS) return ACF_OK;
    return acf_fail(
        ACF_EUSAGE,
        "the option 'valid-rows' is %g, but validation is on %s; leave out valid-rows, or use valid-on rows",
        s->valid_rows, s->valid_on == ACF_VALID_CELLS ? "held-out cells (valid-on cells)" : "a second table");
}

acf_status acf_train_settings_read(const acf_options *o, acf_train_settings *out) {
    acf_train_settings s = {
        .batch = acf_options_int(o, "batch") == ACF_INT_AUTO ? ACF_BATCH_ROWS : acf_options_int(o, "batch"),
        .steps = acf_options_int(o, "steps"),
        .epochs = acf_options_int(o, "epochs"),
        .schedule = {.lr = acf_options_real(o, "lr"),
                     .warmup = acf_options_int(o, "warmup"),
                     .decay = (acf_decay)acf_options_choice(o, "decay"),
                     .to = acf_options_real(o, "decay-to"),
                     .halve_every = acf_options_int(o, "halve-every")},
        .clip = acf_options_real(o, "clip"),
        .weight_decay = acf_options_real(o, "weight-decay"),
        .dropout = acf_options_real(o, "dropout"),
        .ema = acf_options_real(o, "ema"),
        .loss = {.per_column = acf_options_choice(o, "loss-per") == 1,
                 .guess_weight = acf_options_real(o, "guess-weight")},
        .encoding = {.normal_scores = acf_options_choice(o, "encode") == 1,
                     .dequantise = acf_options_bool(o, "dequantise")},
        .valid = acf_options_real(o, "valid"),
        .valid_rows = acf_options_real(o, "valid-rows"),
        .valid_on = settle_valid(o),
        .valid_every = acf_options_int(o, "valid-every"),
        .patience = acf_options_int(o, "patience"),
        .donor_trust = acf_options_bool(o, "donors"),
        .calibrate = acf_options_bool(o, "calibrate"),
        .refit = acf_options_bool(o, "refit"),
        .members = acf_max(1, acf_options_int(o, "ensemble")),
        .precision = (acf_precision)acf_options_choice(o, "precision"),
        .seed = (uint64_t)acf_options_int(o, "seed"),
    };
    ACF_TRY(acf_masks_parse(acf_options_text(o, "masks"), &s.masks));
    ACF_TRY(check_valid(&s));
    *out = s;
    return ACF_OK;
}

acf_adam acf_train_adam(const acf_train_settings *s) {
    return (acf_adam){.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = s->weight_decay};
}
