/* A whole fit: runs a trainer to its end, then, where planned, a second pass over all cells (refit.h). A checkpoint
 * beside them lets another process resume.
 *
 *     begin:     resume and the file exists        -> continue from it (refused if it is of something else)
 *                the file exists, no resume        -> refused: it may be hours of work
 *                otherwise                         -> write a first checkpoint: an unwritable path is noticed now
 *     meanwhile: after a good step, every so many seconds. A failed write is reported and tried again later, so a full
 *                disk that is cleaned up in time costs nothing
 *     end:       finished or interrupted           -> the last state; diverged -> the file stays as it was before
 *                out of memory                     -> the state after the last completed step (ACF_EMEMORY); the run
 *                                                     can be resumed with a smaller batch
 *
 * With `every` below 0 the file is written only when a run is interrupted or out of memory.
 *
 * Each ensemble member (ensemble.h) is such a fit, one after the other, with one checkpoint for all. A later member
 * takes the file over; if it cannot be written, that is reported as trouble and is no failure.
 *
 * A second pass that does not finish leaves the model of the first: ACF_EINTERRUPT if interrupted, as in the first
 * pass; ACF_OK if it diverged, with a last report whose trouble says so.
 */
#ifndef ACF_TRAIN_FIT_H
#define ACF_TRAIN_FIT_H

#include "model/model.h"
#include "train/trainer.h"

typedef struct acf_fit {
    acf_fit_callback callback; /* NULL: none */
    void *ctx;
    const char *checkpoint; /* NULL: none */
    double every;           /* seconds; 0: only at the beginning and the end; < 0: only when training is interrupted */
    bool resume;
    const acf_table *valid; /* the second table, for validation; NULL: none */
    int member, members;    /* which of how many members this is, from 0 (ensemble.h); 0, 0: there is one */
    const acf_model *done;  /* the members before it, kept in its checkpoints; NULL: none */
    double before;          /* seconds that they took */
    int side;               /* members trained in parallel; 0: one */
} acf_fit;

/* Reads the options `checkpoint`, `checkpoint-every` and `resume`; borrows the path from o. Fails: ACF_EUSAGE. */
acf_status acf_fit_read(const acf_options *o, acf_fit *out);

/* Trains m->net, this member alone, with the options in m->config, and leaves the weights to keep in it. After a second
 * pass m->encoder is the one fitted to all cells. A batch of `auto` becomes a number there (batch_auto.h). hold NULL:
 * nothing is held out. m->record is known exactly when the weights are worth keeping: after ACF_OK, and after
 *     ACF_EINTERRUPT   the callback ended it, and the checkpoint, where one was asked for, is written
 *     ACF_ENUMERIC     training diverged; not known only where no weights give a finite density
 *     others           the last checkpoint could not be written
 * A later member that diverged is left out: a last report says so, and its record is not known. Fails also as
 * acf_trainer_create, acf_trainer_run and acf_checkpoint_load. */
acf_status acf_fit_model(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *how);

/* The same for m->image. There is no second pass: held-out images stay held out. */
acf_status acf_fit_images(acf_model *m, const acf_images *im, const acf_fit *how);

/* The map of levels of the option image-dequantise. For `gaussian` it is fitted to the training images, not to those
 * held out. Gives *out (acf_release). Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_fit_image_map(const acf_images *im, const acf_options *o, acf_image_map **out);

#endif
