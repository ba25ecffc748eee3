/* How a model was trained: a few numbers for people, kept in its file as JSON. No question depends on them. */
#ifndef ACF_MODEL_FIT_RECORD_H
#define ACF_MODEL_FIT_RECORD_H

#include "base/json.h"

/* Why a run ended, in the order of the names in fit_record.c. */
typedef enum acf_train_end {
    ACF_END_STEPS,
    ACF_END_EPOCHS,
    ACF_END_PATIENCE,
    ACF_END_STOPPED,  /* on request: "interrupted" */
    ACF_END_DIVERGED, /* too many steps that were not finite */
    ACF_END_COUNT
} acf_train_end;

/* What became of the second pass over all cells, in the order of the names in fit_record.c. */
typedef enum acf_refit {
    ACF_REFIT_NONE,     /* there was none */
    ACF_REFIT_DONE,     /* the model is its */
    ACF_REFIT_DIVERGED, /* the model is the first pass's */
    ACF_REFIT_COUNT
} acf_refit;

/* Numbers that say how far rows that are looked up are believed, and the share of the network's score that is won by it, with its deviation: 0 where nothing was asked. */
#define ACF_DONOR_TRUST_COLUMNS                                                                                        \
    128 /* of a table whose rows are looked up, at most: what is learned for that grows with their square */
enum {
    ACF_DONOR_TRUST_SHIFT,
    ACF_DONOR_TRUST_SLOPE,
    ACF_DONOR_TRUST_AGREE,
    ACF_DONOR_TRUST_OF_COLUMN,
    ACF_DONOR_TRUST_WON,
    ACF_DONOR_TRUST_CHANCE,
    ACF_DONOR_TRUST_COLUMN, /* each column's own, from here on */
    ACF_DONOR_TRUST_GIVEN = ACF_DONOR_TRUST_COLUMN + ACF_DONOR_TRUST_COLUMNS,
    ACF_DONOR_TRUST_NUMBERS
};

/* Of the first pass, but for seconds, skipped and left_out: a second one is as long as valid_step says, and validates nothing. */
typedef struct acf_fit_record {
    bool known; /* false: never trained, or the file does not say; the rest is not read then */
    acf_train_end end;
    int64_t rows;          /* of the table; images */
    int64_t held;          /* cells or images held out; 0: there was no validation */
    int64_t steps, epochs; /* taken; complete passes over the rows */
    int64_t skipped;       /* steps that were not finite */
    int64_t
        left_out; /* rows that found no room on the GPU in their step (acf_tape_subset), and were not learned from there; of the last run */
    double
        valid; /* the best validation: mean -log p per held-out cell, encoded units, or per held-out image; infinite: there was none */
    int64_t valid_step; /* and its step */
    double scale_factor,
        temperature; /* logs of the factors that held-out cells asked for (train/calibrate.h): of scales, and of a temperature of classes; 0: none */
    double ridge;    /* that the Gaussian mixture was fitted with (train/gmm_fit.h); 0: the usual one */
    double donor_trust
        [ACF_DONOR_TRUST_NUMBERS]; /* how far rows that are looked up are believed (train/donor_trust.h); chance 0: it was not asked for */
    acf_refit refit;
    bool filled;    /* the second pass learned from rows whose holes were filled in (train/fill_missing.h) */
    double seconds; /* of training, over all runs and both passes */
    int64_t before; /* steps of the models that it was started from, one from the other; in none of the numbers above */
} acf_fit_record;

/* {"end", "rows", "held", "steps", "epochs", "skipped", "left_out", "refit", "seconds"} and, where there was a validation, {"valid",
 * "valid_step", "widen", "soften"}, where it was asked whether to look rows up {"recall"}, a list, where the mixture has another ridge than the usual one {"ridge"}, where it was started from another model {"before"}, and where holes were filled in for the second pass {"filled"}: true. "left_out", "widen" and "soften" are 0 and "refit" none where a
 * file does not say.
 * r is known. Gives *out (json_decref). Fails: ACF_EMEMORY. */
acf_status acf_fit_record_to_json(const acf_fit_record *r, json_t **out);

/* Trusts nothing. Fails: from.status with the key. */
acf_status acf_fit_record_from_json(acf_json_source from, const json_t *object, acf_fit_record *out);

/* One line for people, without a line end. images: rows are images, and they are what is held out. */
void acf_fit_record_text(const acf_fit_record *r, bool images, acf_text *t);

#endif
