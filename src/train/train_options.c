/* Options of training: see train_options.h. */
#include "train/train_options.h"

#include "model/config.h"

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
        .average = acf_options_real(o, "average"),
        .loss = {.per_column = acf_options_choice(o, "loss-per") == 1, .guess_weight = acf_options_real(o, "guess-weight")},
        .encoding = {.warp = acf_options_choice(o, "encode") == 1, .dequantise = acf_options_bool(o, "dequantise")},
        .valid = acf_options_real(o, "valid"),
        .valid_every = acf_options_int(o, "valid-every"),
        .patience = acf_options_int(o, "patience"),
        .recall = acf_options_bool(o, "recall"),
        .calibrate = acf_options_bool(o, "calibrate"),
        .refit = acf_options_bool(o, "refit"),
        .members = acf_max(1, acf_options_int(o, "members")),
        .precision = (acf_precision)acf_options_choice(o, "precision"),
        .seed = (uint64_t)acf_options_int(o, "seed"),
    };
    ACF_TRY(acf_masks_parse(acf_options_text(o, "masks"), &s.masks));
    *out = s;
    return ACF_OK;
}

acf_adam acf_train_adam(const acf_train_settings *s) {
    return (acf_adam){.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = s->weight_decay};
}
