/* Training a model: one optimiser step at a time, or a whole run with validation, patience and the best weights kept.
 *
 *     ACF_TRY(acf_train_prepare(table, NULL, o, &hold, &encoder));          cells held out; scales of the others
 *     ACF_TRY(acf_net_create(dev, table->column, table->D, o, seed, true, &net));
 *     ACF_TRY(acf_trainer_create(net, &(acf_train_data){table, NULL, encoder, hold}, o, &tr));
 *     status = acf_trainer_run(tr, &hooks, &end);                           may be called again, or after a checkpoint's load
 *     acf_checkpoint_save(tr, path);                                        where the run is to be continued one day
 *     ACF_TRY(acf_trainer_finish(tr));                                      the network now has its best weights
 *
 * A step:   next rows -> masks -> loss -> gradients -> norm, clip -> Adam -> averaged weights
 * keyed by  (seed, epoch)  (seed, step, row)              dropout (seed, step)
 *
 * so a run is a function of network, table and options: the same bits for any number of threads, and in one go or resumed.
 * Missing and held-out cells are never read. A step that is not finite (ACF_ENUMERIC from the tape or the norm) changes no
 * weight; it is counted, and too many end the run. From about the tenth step on nothing is allocated, except where masks
 * happen to model more cells than in any step before. */
#ifndef ACF_TRAIN_TRAINER_H
#define ACF_TRAIN_TRAINER_H

#include "image/image_map.h"
#include "image/images.h"
#include "model/fit_record.h"
#include "model/image_net.h"
#include "train/gmm_fit.h"
#include "train/train_options.h"

#include <signal.h>

/* More steps than these that were not finite, one after the other or in all, end a run with ACF_ENUMERIC. */
#define ACF_SKIPS_IN_ROW 20
#define ACF_SKIPS_TOTAL 1000

/* What is trained on. */
typedef struct acf_train_data {
    const acf_table *table;
    const acf_rows *rows; /* NULL: all */
    const acf_encoder *encoder;
    const acf_holdout *hold;      /* NULL: nothing is held out */
    const acf_table *valid_table; /* of the rows that validate; NULL: table */
    const acf_rows *valid_rows;   /* which these are, none of rows (valid.h); NULL: held-out cells validate */
} acf_train_data;

/* Where a run is; with the slabs, all that its future depends on. */
typedef struct acf_train_state {
    int64_t step;      /* steps taken, skipped ones too: keys masks and dropout, and the step size */
    int64_t updates;   /* steps that changed the weights: counts for Adam and the average */
    int64_t validated; /* the step of the last validation, 0 before */
    double
        best; /* the best validation, INFINITY before; its weights are in `best` of the trainer. A later one counts where it clearly gains */
    int64_t best_step;       /* 0: as it began, or before any validation */
    int64_t stale;           /* validations since the best */
    int64_t skipped, in_row; /* steps that were not finite: in all, and up to now without a good one */
} acf_train_state;

typedef struct acf_trainer acf_trainer;
typedef struct acf_train_step acf_train_step;
typedef struct acf_loader acf_loader; /* loader.h */

/* What a batch and a loss are: all that training has to know about the kind of its data. */
typedef struct acf_task {
    const char *other;                      /* what a checkpoint of other data is said to be of: "another table" */
    acf_options_which recorded;             /* options that a checkpoint belongs to */
    int64_t (*held)(const acf_trainer *tr); /* cells or images held out; 0: nothing is validated */
    /* Takes the next batch of the walk and adds the gradients of its loss to those of the parameters; sets rows and loss. */
    acf_status (*gradients)(acf_trainer *tr, acf_train_step *now);
    acf_status (*score)(acf_trainer *tr, double *nll);  /* validation with the weights in `value` */
    acf_status (*finite)(acf_trainer *tr, int64_t row); /* ACF_ENUMERIC: this row has no finite joint density */
    json_t *(*describe)(const acf_trainer *tr);         /* what the data are, for a checkpoint; NULL: no memory */
    void (*free)(acf_trainer *tr);
    /* On a GPU: what captured steps work on; and the next batch of the walk into a stage of it. *n are its rows, *shift is what its loss has
     * besides the terms of the device. */
    const struct acf_loader_kind *loader;
    void (*fill)(acf_trainer *tr, acf_loader *loader, int stage, int64_t *n, double *shift);
} acf_task;

/* Used by one thread at a time. To be read by others, restored by checkpoint.h, and sent into a second pass by refit.h. */
struct acf_trainer {
    const acf_task *task;
    acf_params *ps; /* of the network; its slabs value, grad, m, v, average are in use */
    acf_net *net;   /* keeps; NULL: images are learned */
    struct acf_image_task
        *image; /* their data (image_task.c), owned; NULL: a table is learned, in the members from `given` to `held` */
    acf_train_data given; /* to create: what a checkpoint belongs to; keeps what it points to, but copies the rows */
    acf_train_data data;  /* what this pass trains on: the same in the first */
    acf_rows rows, given_rows, valid_rows;
    int64_t target;    /* cells that masks ask of valid_rows, */
    int64_t all_cells; /* and that a second pass would learn from (refit.h); 0: there can be none */
    acf_train_settings set;
    json_t *options; /* the recorded ones of the set given to create; owned */
    acf_tape *tape;
    acf_batch *batch;
    acf_batch_sampler sampler; /* epoch: complete ones; at: rows of this one taken */
    int64_t *row;              /* (batch) rows of the table in the batch */
    uint8_t *held;             /* (D) */
    acf_real *best;            /* a slab; NULL when nothing is held out; in the second pass the first one's */
    acf_train_state state;
    int pass;             /* 1 or 2 */
    int64_t limit;        /* steps of the first pass at most; 0: there is no limit */
    int64_t left_out;     /* rows that found no room on the GPU in their step, of this run */
    acf_fit_record first; /* what the first pass found, in the second; all 0 before */
    acf_encoder *all;     /* fitted to all cells, for the second; owned */
    bool fills;           /* the second learns from rows whose holes are filled in (fill_missing.h), */
    double *filled;       /* (ACF_FILL_TABLES, rows and columns of the table) these; owned; NULL: not yet, or no */
    struct acf_train_graph *graph; /* steps that a GPU takes without the host (train_graph.h); NULL: none */
    bool by_hand;                  /* there can be none for these data: steps are taken one by one */
    bool stream; /* they do without the table in the GPU's memory, even if it has room; false at first */
    int member;  /* which of a model's members this is, from 0, */
    const struct acf_model *done; /* and those before it that were kept: a checkpoint has them, too. NULL: none */
    acf_gmm_choice gmm;           /* what the first pass's cells chose */
    double scale_factor,
        temperature; /* by which the kept weights are made less sure (calibrate.h); 0 before, and where they are not */
    double donor_trust
        [ACF_DONOR_TRUST_NUMBERS]; /* how far rows that are looked up are believed (donor_trust.h); chance 0 before, and where it is not asked for */
    double seconds; /* spent in acf_trainer_run, over all runs: it decides nothing */
};

/* Before the data or the network change: what was captured of them is forgotten. */
void acf_trainer_forget(acf_trainer *tr);

/* Holds out what the options say (train_options.h, valid_on) and fits the encoder to the rest, as `encode` and
 * `dequantise` say: cells (*hold = NULL when that leaves none), or, with rows NULL, rows, which are those of
 * acf_valid_split. Borrows all. Gives both. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_train_prepare(const acf_table *table, const acf_rows *rows, const acf_options *o, acf_holdout **hold,
                             acf_encoder **encoder);

/* A trainer at its first step. net must have been created with train. Keeps net and what data points to; borrows o, which has
 * the options of train_options.h and may have others. Gives *out; free with acf_trainer_free.
 * Fails: ACF_EUSAGE, ACF_ESHAPE (columns of net, table and encoder), ACF_EDATA (no cell to learn from), ACF_EDEVICE (bf16 on a CPU
 * without it), ACF_EMEMORY. */
acf_status acf_trainer_create(acf_net *net, const acf_train_data *data, const acf_options *o, acf_trainer **out);

/* The same for images: the fraction `valid` of them is held out whole, the others get masks of `image-masks` and noise anew in every step, and
 *     loss = mean over images of  -log p(x_u | x_o)  +  guess_weight · |guess - x_u|²       the first in nats of levels, the second of levels
 * as parts of the full range
 * Validation is the first term with masks and noise that stay. Keeps net, map and im. Fails: ACF_EUSAGE (masks), ACF_ESHAPE, ACF_EMEMORY. */
acf_status
acf_image_split_rows(const acf_images *im, const acf_options *o,
                     acf_row_split *out); /* which are held out, with all their copies: options valid and seed */
acf_status acf_trainer_create_images(acf_image_net *net, const acf_image_map *map, const acf_images *im,
                                     const acf_options *o, acf_trainer **out);

/* For those who create trainers, once task, ps and rows are set: options, the walk over rows, memory. */
acf_status acf_trainer_settle(acf_trainer *tr, const acf_options *o);
/* The walk from its beginning, over other rows than before. */
acf_status acf_trainer_walk(acf_trainer *tr);
void acf_trainer_free(acf_trainer *tr); /* NULL is allowed */

/* What a step was like. */
struct acf_train_step {
    int64_t rows;      /* of its batch */
    double lr;         /* step size */
    double loss, norm; /* norm of the gradient before clipping; both NaN when skipped */
    bool skipped;
};

/* One step; ACF_OK also for one that was skipped. out may be NULL. Fails: ACF_ENUMERIC (too many skipped; the sentence has the
 * last cause), ACF_EMEMORY and others of the tape; then the step has not happened, and weights and position are as before. */
acf_status acf_trainer_step(acf_trainer *tr, acf_train_step *out);

/* Of images the mean -log p in nats per image; of tables: mean -log p, in units where real columns have deviation 1,
 * per cell that validation asks for (valid.h): of all held-out cells given the other observed ones of their rows, or
 * of rows that masks ask for; with averaged weights where averaging is on. Changes nothing. Fails: ACF_EUSAGE
 * (nothing is held out), ACF_ENUMERIC, ACF_EMEMORY. */
acf_status acf_trainer_validate(acf_trainer *tr, double *nll);

typedef struct acf_train_progress {
    const acf_train_state *state; /* after this step: step, best, best_step, stale, skipped */
    acf_train_step last;
    int64_t step, epoch;    /* taken; complete */
    bool validated;         /* a validation follows this step: valid is new */
    double loss;            /* mean of the last 50 that were finite, of this run; NaN before the first */
    double valid;           /* the run's last validation, INFINITY when it was not finite, NaN before the first */
    double rows_per_second; /* of this run's steps, validation not counted */
    double each;            /* seconds of a step of this run, validation included */
    double left;            /* seconds to the last step of this pass that the limits allow; NaN: there is no limit */
    double
        left_early; /* seconds to the end of the pass if no validation gets better from now on; NaN: that ends nothing */
} acf_train_progress;

typedef struct acf_train_hooks {
    void (*report)(
        void *ctx,
        const acf_train_progress *p); /* after every step, on a GPU after some; may save a checkpoint. NULL: none */
    void *ctx;
    const volatile sig_atomic_t *stop; /* not 0: end after this step. NULL: none */
} acf_train_hooks;

/* Steps until a limit of the options is reached, patience is at its end or the stop flag is set, and says in *end which
 * (NULL allowed). At the end of steps or epochs the last weights are validated too. hooks may be NULL. The network is left
 * with the weights of the last step: see acf_trainer_finish.
 * Fails as acf_trainer_step; ACF_EUSAGE (nothing could end the run). The trainer is valid after any failure. */
acf_status acf_trainer_run(acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *end);

/* Puts the weights to keep into the network: the best validated ones, else the averaged, else the last; as sure of themselves as held-out cells want
 * them (calibrate.h). A run can't be continued after it. */
acf_status acf_trainer_finish(acf_trainer *tr);

/* Is the best so far the Gaussian mixture in front of the network, as it was before the first step? */
bool acf_trainer_kept_mixture(const acf_trainer *tr);

/* The same after a run that failed with ACF_ENUMERIC: the first of these that gives some row of the table a finite density.
 * Fails: ACF_ENUMERIC (none of them does), ACF_EMEMORY. */
acf_status acf_trainer_rescue(acf_trainer *tr);

/* What a model should record of the run so far; in a second pass what the first one found, and what became of the second. */
acf_fit_record acf_trainer_record(const acf_trainer *tr, acf_train_end end);

#endif
