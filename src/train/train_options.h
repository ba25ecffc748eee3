/* The options of training (base/option_table.h) as a struct. Every one is recorded, so a checkpoint and a model file
 * document the training. */
#ifndef ACF_TRAIN_TRAIN_OPTIONS_H
#define ACF_TRAIN_TRAIN_OPTIONS_H

#include "base/options.h"
#include "ops/adam.h"
#include "table/encode.h"
#include "table/masks.h"
#include "train/loss.h"
#include "train/schedule.h"

/* What training is validated on (valid.h): the choices of the option `valid-on` after `auto`. */
typedef enum acf_valid_on { ACF_VALID_CELLS = 1, ACF_VALID_ROWS, ACF_VALID_TABLE } acf_valid_on;

typedef struct acf_train_settings {
    int64_t batch; /* most rows of a step; an epoch is cut into equal steps. An `auto` still unset (batch_auto.h) is the
                    * default */
    int64_t steps, epochs; /* the first limit reached ends the run; 0: no such limit */
    acf_schedule schedule; /* its total is filled in by the trainer, which knows the number of rows */
    double clip;           /* largest norm of the gradient; 0: none */
    double weight_decay, dropout;
    double ema; /* beta of the averaged weights; 0: off */
    acf_masks masks;
    acf_encoding encoding;
    acf_loss loss;
    double valid;            /* fraction of the observed cells, or of the rows, held out */
    double valid_rows;       /* fraction of the rows held out; 0: use valid */
    acf_valid_on valid_on;   /* `auto` is resolved: cells where masks and preset are at their defaults, else rows */
    int64_t valid_every;     /* steps; 0: once an epoch */
    int64_t patience;        /* validations without a better one; 0: no limit */
    bool donor_trust;        /* held-out cells decide about donors (donor_trust.h) */
    bool calibrate;          /* held-out cells correct scales and temperature (calibrate.h) */
    bool refit;              /* a second pass over all cells (refit.h) */
    int64_t members;         /* of the ensemble; an `auto` still unset is 1 */
    acf_precision precision; /* of a step's large products; validation and queries stay float */
    uint64_t seed;
} acf_train_settings;

/* Adam as training uses it; lr, which changes from step to step, is 0. */
acf_adam acf_train_adam(const acf_train_settings *s);

/* Borrows o. Fails: ACF_EUSAGE (the text of `masks`; a fraction of rows where no rows of the table are held out). */
acf_status acf_train_settings_read(const acf_options *o, acf_train_settings *out);

#endif
