/* How a model was trained: a few numbers for people, stored in its file as JSON. No query depends on them. */
#ifndef ACF_MODEL_FIT_RECORD_H
#define ACF_MODEL_FIT_RECORD_H

#include "base/json.h"

/* Why a run ended, in the order of the names in fit_record.c. */
typedef enum acf_train_end {
    ACF_END_STEPS,
    ACF_END_EPOCHS,
    ACF_END_PATIENCE,
    ACF_END_STOPPED,  /* on request: "interrupted" */
    ACF_END_DIVERGED, /* too many non-finite steps */
    ACF_END_COUNT
} acf_train_end;

/* Result of the second pass over all cells, in the order of the names in fit_record.c. */
typedef enum acf_refit {
    ACF_REFIT_NONE,     /* no second pass */
    ACF_REFIT_DONE,     /* the model is from the second pass */
    ACF_REFIT_DIVERGED, /* the model is from the first pass */
    ACF_REFIT_COUNT
} acf_refit;

#define ACF_DONOR_TRUST_COLUMNS 128 /* most columns of a table with donors: what is learned grows with their square */
/* Indices of the donor trust numbers: the weight of donors, and WON, the relative gain in the network's score, with its
 * deviation CHANCE. All 0 if donors were not tried. */
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

/* How training went. Numbers are of the first pass, except seconds, skipped and left_out: the length of the second
 * pass follows from valid_step, and it has no validation. */
typedef struct acf_fit_record {
    bool known; /* false: untrained or not recorded; the other fields are then not read */
    acf_train_end end;
    int64_t rows;          /* of the table; images */
    int64_t held;          /* cells or images held out; 0: no validation */
    int64_t steps, epochs; /* steps taken; complete passes over the rows */
    int64_t skipped;       /* non-finite steps */
    /* Rows of the last run that exceeded the planned capacity on the GPU and were skipped in that step
     * (acf_tape_subset). */
    int64_t left_out;
    /* Best validation: mean -log p per held-out cell in encoded units, or per held-out image; infinite: none. */
    double valid;
    int64_t valid_step; /* step of the best validation */
    /* Logs of the calibration factors from held-out cells (train/calibrate.h), of scales and of the temperature of
     * classes; 0: none. */
    double scale_factor, temperature;
    double ridge; /* ridge of the Gaussian mixture's fit (train/gmm_fit.h); 0: the default */
    /* Weight of donors (train/donor_trust.h); ACF_DONOR_TRUST_CHANCE is 0 if it was not learned. */
    double donor_trust[ACF_DONOR_TRUST_NUMBERS];
    acf_refit refit;
    bool filled;    /* the second pass learned from rows with missing cells filled in (train/fill_missing.h) */
    double seconds; /* training time over all runs and both passes */
    int64_t before; /* steps of the chain of models that it was started from; not counted in the numbers above */
} acf_fit_record;

/* {"end", "rows", "held", "steps", "epochs", "skipped", "left_out", "refit", "seconds"}, and
 *
 *     {"valid", "valid_step", "widen", "soften"}    after a validation
 *     {"donor_trust", "donor_trust_given"}          if donors were tried; the first is a list
 *     {"ridge"}                                     if the mixture's ridge is not the default
 *     {"before"}                                    if it was started from another model
 *     {"filled"}: true                              if missing cells were filled in for the second pass
 *
 * When reading, missing "left_out", "widen" and "soften" are 0 and a missing "refit" is none.
 * r->known is set. Gives *out (json_decref). Fails: ACF_EMEMORY. */
acf_status acf_fit_record_to_json(const acf_fit_record *r, json_t **out);

/* Validates every value. Fails: from.status with the key. */
acf_status acf_fit_record_from_json(acf_json_source from, const json_t *object, acf_fit_record *out);

/* One line for people, without a line end. images: rows and held-out items are images. */
void acf_fit_record_text(const acf_fit_record *r, bool images, acf_text *t);

#endif
