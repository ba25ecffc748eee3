/* Options of training: see train_options.h. */
#include "train/train_options.h"

#define R ACF_OPTION_RECORDED

/* name, type, min, max, default, choices, flags, help. Steps are counted in 32 bits where they key random numbers. */
#define TRAIN_OPTIONS(X)                                                                                               \
    X("batch", INT, 1, 1048576, "256", NULL, R, "rows of a training step at most; an epoch is cut into equal steps")   \
    X("steps", INT, 0, 4294967295, "5000", NULL, R, "training steps at most; 0 is no limit")                           \
    X("epochs", INT, 0, 4294967295, "0", NULL, R, "passes over the table at most; 0 is no limit")                      \
    X("lr", REAL, 0, 10, "0.002", NULL, R, "step size of Adam after warm-up")                                          \
    X("warmup", INT, 0, 1000000000, "100", NULL, R, "steps over which the step size rises from 0 to lr")               \
    X("decay", CHOICE, 0, 0, "cosine", ACF_DECAYS, R, "how the step size falls from warm-up to the last step")         \
    X("decay-to", REAL, 0, 1, "0.02", NULL, R, "fraction of lr that decay ends with")                                  \
    X("clip", REAL, 0, 1e30, "5", NULL, R, "largest norm of a step's gradient; 0 is no limit")                         \
    X("weight-decay", REAL, 0, 10, "0.01", NULL, R, "weight matrices shrink by lr times this a step")                  \
    X("dropout", REAL, 0, 0.95, "0.05", NULL, R, "fraction of hidden numbers set to zero in training")                 \
    X("average", REAL, 0, 0.999999, "0.998", NULL, R, "memory of the averaged weights, which the model keeps; 0 is off") \
    X("masks", TEXT, 1, 1023, "uniform + bernoulli:0.5", NULL, R,                                                      \
      "which columns are given: a sum of bernoulli:P, uniform, marginal:P, joint, each with an optional *WEIGHT")      \
    X("guess-weight", REAL, 0, 1e6, "0", NULL, R, "weight of the best guess's squared error in the loss")              \
    X("loss-per", CHOICE, 0, 0, "row", "row|column", R, "the loss counts rows, or each row divided by its modelled columns") \
    X("valid", REAL, 0, 0.9, "0.1", NULL, R, "fraction of the observed cells held out for validation")                 \
    X("valid-every", INT, 0, 1000000000, "0", NULL, R, "steps between validations; 0 is an epoch, and at least 50 steps") \
    X("patience", INT, 0, 1000000000, "20", NULL, R, "validations without a better one that end training; 0 is no limit") \
    X("seed", INT, 0, 9007199254740992, "1", NULL, R, "what all random numbers come from")

#define ROW(name_, type_, min_, max_, standard_, choices_, flags_, help_)                                              \
    {name_, ACF_OPTION_##type_, min_, max_, standard_, help_, choices_, NULL, flags_},
const acf_option acf_train_table[] = {TRAIN_OPTIONS(ROW)};
const int acf_train_option_count = sizeof acf_train_table / sizeof acf_train_table[0];

acf_status acf_train_options_create(acf_options **out) { return acf_opts_create(acf_train_table, acf_train_option_count, out); }

acf_status acf_train_settings_read(const acf_options *o, acf_train_settings *out) {
    acf_train_settings s = {
        .batch = acf_options_int(o, "batch"),
        .steps = acf_options_int(o, "steps"),
        .epochs = acf_options_int(o, "epochs"),
        .schedule = {.lr = acf_options_real(o, "lr"),
                     .warmup = acf_options_int(o, "warmup"),
                     .decay = (acf_decay)acf_options_choice(o, "decay"),
                     .to = acf_options_real(o, "decay-to")},
        .clip = acf_options_real(o, "clip"),
        .weight_decay = acf_options_real(o, "weight-decay"),
        .dropout = acf_options_real(o, "dropout"),
        .average = acf_options_real(o, "average"),
        .loss = {.per_column = acf_options_choice(o, "loss-per") == 1, .guess_weight = acf_options_real(o, "guess-weight")},
        .valid = acf_options_real(o, "valid"),
        .valid_every = acf_options_int(o, "valid-every"),
        .patience = acf_options_int(o, "patience"),
        .seed = (uint64_t)acf_options_int(o, "seed"),
    };
    ACF_TRY(acf_masks_parse(acf_options_text(o, "masks"), &s.masks));
    *out = s;
    return ACF_OK;
}
