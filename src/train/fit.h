/* A whole fit: a trainer run to its end, then where it is due a second pass over all cells (refit.h), with a checkpoint beside them from
 * which another process can go on.
 *
 *     begin:     resume and the file is there      -> go on from it (refused when it is of something else)
 *                the file is there, no resume      -> refused: it may be hours of work
 *                otherwise                         -> a first checkpoint: a path that can't be written is noticed now
 *     meanwhile: every so many seconds, after a good step. One that can't be written is reported and tried again later: a full
 *                disk that is cleaned up in time costs nothing
 *     end:       finished or interrupted           -> the last state; diverged -> the file stays as it was, before the trouble
 *                out of memory                     -> the state after the last step that was taken (ACF_EMEMORY); the run can be
 *                                                     resumed with a smaller batch
 *
 * With `every` below 0 the file is written only at the end of a run that was interrupted or had no more memory.
 *
 * Of several members (ensemble.h) each is such a fit, one after the other, with one checkpoint for all of them: a member behind the first takes the file
 * over, and where it can't be written that is trouble and no failure.
 *
 * A second pass that does not come to its end leaves the model of the first: interrupted with ACF_EINTERRUPT as the first; diverged with
 * ACF_OK, and a last report whose trouble says so.
 */
#ifndef ACF_TRAIN_FIT_H
#define ACF_TRAIN_FIT_H

#include "model/model.h"
#include "train/trainer.h"

typedef struct acf_fit {
    acf_fit_callback callback; /* NULL: none */
    void *ctx;
    const char *checkpoint; /* NULL: none */
    double every;           /* seconds; 0: only at the beginning and the end; < 0: only where training is interrupted */
    bool resume;
    const acf_table *valid; /* the second table, on which it is validated; NULL: none */
    int member, members;    /* which of how many members this is, from 0 (ensemble.h); 0, 0: there is one */
    const acf_model *done;  /* those before it, which its checkpoints keep; NULL: none */
    double before;          /* seconds that they took */
    int side;               /* so many are trained side by side; 0: one */
} acf_fit;

/* What the options `checkpoint`, `checkpoint-every` and `resume` say; borrows the path from o. Fails: ACF_EUSAGE. */
acf_status acf_fit_read(const acf_options *o, acf_fit *out);

/* Trains m->net, this member alone, with the options in m->config, and leaves in it the weights to keep; m->encoder becomes the one of all cells after a
 * second pass. A batch of `auto` becomes a number there (batch_auto.h). hold NULL: nothing is held out. m->record is known exactly when these are worth keeping: after ACF_OK, and after
 *     ACF_EINTERRUPT   the callback ended it, and the checkpoint, where one was asked for, is written
 *     ACF_ENUMERIC     training diverged; not known only where no weights give a finite density
 *     others           the last checkpoint could not be written
 * A member behind the first that diverged is said to be left out in a last report, and not known. Fails also as acf_trainer_create, acf_trainer_run
 * and acf_checkpoint_load. */
acf_status acf_fit_model(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *how);

/* The same for m->image. There is no second pass: images that are held out stay so. */
acf_status acf_fit_images(acf_model *m, const acf_images *im, const acf_fit *how);

/* The map of levels that option image-map asks for: bells are fitted to the images that are learned, not to those held out. Gives *out
 * (acf_release). Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_fit_image_map(const acf_images *im, const acf_options *o, acf_image_map **out);

#endif
