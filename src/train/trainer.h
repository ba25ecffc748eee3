/* Trains a model: one optimiser step at a time, or a whole run with validation, patience and the best weights kept.
 *
 *     ACF_TRY(acf_train_prepare(table, NULL, o, &hold, &encoder));          cells held out; scales of the others
 *     ACF_TRY(acf_net_create(dev, table->column, table->D, o, seed, true, &net));
 *     ACF_TRY(acf_trainer_create(net, &(acf_train_data){table, NULL, encoder, hold}, o, &tr));
 *     status = acf_trainer_run(tr, &hooks, &end);                           also after loading a checkpoint
 *     acf_checkpoint_save(tr, path);                                        if the run is to be continued later
 *     ACF_TRY(acf_trainer_finish(tr));                                      the network now has its best weights
 *
 * A step:   next rows -> masks -> loss -> gradients -> norm, clip -> Adam -> averaged weights
 * keyed by  (seed, epoch)  (seed, step, row)              dropout (seed, step)
 *
 * so a run is a function of network, table and options: the same bits for any number of threads, in one go or resumed.
 * Missing and held-out cells are never read. A step that is not finite (ACF_ENUMERIC from the tape or the norm) changes
 * no weight; it is counted, and too many end the run. From about the tenth step on nothing is allocated, unless masks
 * model more cells than in any step before. */
#ifndef ACF_TRAIN_TRAINER_H
#define ACF_TRAIN_TRAINER_H

#include "image/image_map.h"
#include "image/images.h"
#include "model/fit_record.h"
#include "model/image_net.h"
#include "train/gmm_fit.h"
#include "train/train_options.h"

#include <signal.h>

/* More steps than these that were not finite, in a row or in all, end a run with ACF_ENUMERIC. */
#define ACF_SKIPS_IN_ROW 20
#define ACF_SKIPS_TOTAL 1000

/* What is trained on. */
typedef struct acf_train_data {
    const acf_table *table;
    const acf_rows *rows; /* NULL: all */
    const acf_encoder *encoder;
    const acf_holdout *hold;      /* NULL: nothing is held out */
    const acf_table *valid_table; /* of the validation rows; NULL: table */
    const acf_rows *valid_rows;   /* validation rows, none of rows (valid.h); NULL: validate on held-out cells */
} acf_train_data;

/* The state of a run; with the slabs, all that its future depends on. */
typedef struct acf_train_state {
    int64_t step;      /* steps taken, skipped ones too: keys masks and dropout, and the step size */
    int64_t updates;   /* steps that changed the weights: the count for Adam and the average */
    int64_t validated; /* the step of the last validation, 0 before */
    double best;       /* the best validation, INFINITY before; its weights are the trainer's `best`. A later one must
                        * gain clearly */
    int64_t best_step; /* 0: the initial network, or before any validation */
    int64_t stale;     /* validations since the best */
    int64_t skipped, in_row; /* steps that were not finite: in all, and up to now without a good one */
} acf_train_state;

typedef struct acf_trainer acf_trainer;
typedef struct acf_train_step acf_train_step;
typedef struct acf_loader acf_loader; /* loader.h */

/* Batches and loss of one kind of data: all that training must know about the kind. */
typedef struct acf_task {
    const char *other;                      /* names a checkpoint of other data in messages: "another table" */
    acf_options_which recorded;             /* options that must match a checkpoint's */
    int64_t (*held)(const acf_trainer *tr); /* cells or images held out; 0: no validation */
    /* Takes the next batch of the sampler and adds the gradients of its loss to those of the parameters; sets rows and
     * loss. */
    acf_status (*gradients)(acf_trainer *tr, acf_train_step *now);
    acf_status (*score)(acf_trainer *tr, double *nll);  /* validation with the weights in `value` */
    acf_status (*finite)(acf_trainer *tr, int64_t row); /* ACF_ENUMERIC: this row has no finite joint density */
    json_t *(*describe)(const acf_trainer *tr);         /* the data, for a checkpoint; NULL: out of memory */
    void (*free)(acf_trainer *tr);
    /* On a GPU: the loader of captured steps; and a function that puts the sampler's next batch into a stage of it. *n:
     * its rows; *shift: the part of its loss that the device does not compute. */
    const struct acf_loader_kind *loader;
    void (*fill)(acf_trainer *tr, acf_loader *loader, int stage, int64_t *n, double *shift);
} acf_task;

/* Used by one thread at a time. Others may read it; checkpoint.h restores it, and refit.h starts its second pass. */
struct acf_trainer {
    const acf_task *task;
    acf_params *ps; /* of the network; its slabs value, grad, m, v, ema are in use */
    acf_net *net;   /* keeps; NULL: images are learned */
    /* The images' data (image_task.c), owned; NULL: a table is learned, in the fields from `given` to `held`. */
    struct acf_image_task *image;
    acf_train_data given; /* to create: what a checkpoint belongs to; keeps what it points to, but copies the rows */
    acf_train_data data;  /* what this pass trains on: the same in the first */
    acf_rows rows, given_rows, valid_rows;
    int64_t target;    /* target cells of valid_rows under the validation masks */
    int64_t all_cells; /* cells that a second pass would learn from (refit.h); 0: there can be none */
    acf_train_settings set;
    json_t *options; /* the recorded ones of the set given to create; owned */
    acf_tape *tape;
    acf_batch *batch;
    acf_batch_sampler sampler; /* epoch: complete ones; at: rows taken of this one */
    int64_t *row;              /* (batch) rows of the table in the batch */
    uint8_t *held;             /* (D) */
    acf_real *best;            /* a slab; NULL when nothing is held out; in the second pass that of the first */
    acf_train_state state;
    int pass;             /* 1 or 2 */
    int64_t limit;        /* most steps of the first pass; 0: there is no limit */
    int64_t left_out;     /* rows of this run that exceeded the planned capacity on the GPU in their step */
    acf_fit_record first; /* in the second pass, the result of the first; all 0 before */
    acf_encoder *all;     /* fitted to all cells, for the second; owned */
    bool fills;           /* the second learns from rows with imputed cells (fill_missing.h) */
    double *filled; /* (ACF_FILL_TABLES, rows and columns of the table) those rows; owned; NULL: none, or not yet */
    struct acf_train_graph *graph; /* steps captured for a GPU (train_graph.h); NULL: none */
    bool by_hand;                  /* steps of these data cannot be captured: they are taken one by one */
    bool stream;                  /* captured steps stream their batches, even if the table would fit; false at first */
    int member;                   /* index of this ensemble member, from 0 */
    const struct acf_model *done; /* the members before it that were kept, for checkpoints. NULL: none */
    acf_gmm_choice gmm;           /* chosen on the first pass's held-out cells */
    double scale_factor, temperature; /* calibration of the kept weights (calibrate.h); 0: none, or not yet */
    double donor_trust[ACF_DONOR_TRUST_NUMBERS]; /* the donors' weight and gain (donor_trust.h); chance 0: not fitted */
    double seconds;                              /* spent in acf_trainer_run, over all runs; informative only */
};

/* Discards captured steps; call before the data or the network change. */
void acf_trainer_forget(acf_trainer *tr);

/* Holds out what the options say (train_options.h, valid_on) and fits the encoder to the rest, as `encode` and
 * `dequantise` say: cells (*hold = NULL when that leaves none), or, with rows NULL, rows, which are those of
 * acf_valid_split. Borrows all. Gives both. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_train_prepare(const acf_table *table, const acf_rows *rows, const acf_options *o, acf_holdout **hold,
                             acf_encoder **encoder);

/* A trainer at its first step. net must be created for training. Keeps net and what data points to; borrows o, which
 * has the options of train_options.h and may have others. Gives *out; free with acf_trainer_free.
 * Fails: ACF_EUSAGE, ACF_ESHAPE (columns of net, table and encoder), ACF_EDATA (no cell to learn from), ACF_EDEVICE
 * (bf16 on a CPU without it), ACF_EMEMORY. */
acf_status acf_trainer_create(acf_net *net, const acf_train_data *data, const acf_options *o, acf_trainer **out);

/* The same for images. The fraction `valid` of them is held out whole; the others get masks of `image-masks` and new
 * noise in every step, and
 *     loss = mean over images of  -log p(x_u | x_o)  +  guess_weight · |guess - x_u|²
 * the first in nats of levels, the second of levels as parts of the full range. Validation is the first term with fixed
 * masks and noise. Keeps net, map and im. Fails: ACF_EUSAGE (masks), ACF_ESHAPE, ACF_EMEMORY. */
/* Which images are held out, with all their copies: options valid and seed. */
acf_status acf_image_split_rows(const acf_images *im, const acf_options *o, acf_row_split *out);
acf_status acf_trainer_create_images(acf_image_net *net, const acf_image_map *map, const acf_images *im,
                                     const acf_options *o, acf_trainer **out);

/* For functions that create trainers, once task, ps and rows are set: options, the batch sampler, memory. */
acf_status acf_trainer_settle(acf_trainer *tr, const acf_options *o);
/* Restarts the batch sampler, over other rows than before. */
acf_status acf_trainer_restart(acf_trainer *tr);
void acf_trainer_free(acf_trainer *tr); /* NULL is allowed */

/* The result of a step. */
struct acf_train_step {
    int64_t rows;      /* of its batch */
    double lr;         /* step size */
    double loss, norm; /* norm of the gradient before clipping; both NaN when skipped */
    bool skipped;
};

/* One step; ACF_OK also for one that was skipped. out may be NULL. Fails: ACF_ENUMERIC (too many skipped; the message
 * has the last cause), ACF_EMEMORY and others of the tape; then weights and position are as before the step. */
acf_status acf_trainer_step(acf_trainer *tr, acf_train_step *out);

/* Of images: mean -log p in nats per image. Of tables: mean -log p per target cell of the validation (valid.h), in
 * units where real columns have deviation 1: all held-out cells given the other observed ones of their rows, or the
 * modelled cells of masked rows. With averaged weights where averaging is on. Changes nothing. Fails: ACF_EUSAGE
 * (nothing is held out), ACF_ENUMERIC, ACF_EMEMORY. */
acf_status acf_trainer_validate(acf_trainer *tr, double *nll);

typedef struct acf_train_progress {
    const acf_train_state *state; /* after this step: step, best, best_step, stale, skipped */
    acf_train_step last;
    int64_t step, epoch;    /* taken; complete */
    bool validated;         /* a validation followed this step: valid is new */
    double loss;            /* mean of the last 50 that were finite, of this run; NaN before the first */
    double valid;           /* the run's last validation, INFINITY when it was not finite, NaN before the first */
    double rows_per_second; /* of this run's steps, without validation */
    double each;            /* seconds of a step of this run, validation included */
    double left;            /* seconds to the last step of this pass that the limits allow; NaN: there is no limit */
    double left_early;      /* seconds to the end of the pass if no validation improves; NaN: no early end */
} acf_train_progress;

typedef struct acf_train_hooks {
    /* After every step, on a GPU after some; may save a checkpoint. NULL: none. */
    void (*report)(void *ctx, const acf_train_progress *p);
    void *ctx;
    const volatile sig_atomic_t *stop; /* not 0: end after this step. NULL: none */
} acf_train_hooks;

/* Steps until a limit of the options is reached, patience is exhausted or the stop flag is set; *end says which (NULL
 * allowed). At the end of steps or epochs the last weights are validated too. hooks may be NULL. The network is left
 * with the weights of the last step: see acf_trainer_finish.
 * Fails as acf_trainer_step; ACF_EUSAGE (the run would have no end). The trainer is valid after any failure. */
acf_status acf_trainer_run(acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *end);

/* Puts the weights to keep into the network: the best validated ones, else the averaged, else the last; recalibrated on
 * held-out cells (calibrate.h). A run can't be continued after it. */
acf_status acf_trainer_finish(acf_trainer *tr);

/* Are the best weights so far the initial ones, the Gaussian mixture alone? */
bool acf_trainer_kept_mixture(const acf_trainer *tr);

/* The same after a run that failed with ACF_ENUMERIC: the first of these weights that give some row of the table a
 * finite density.
 * Fails: ACF_ENUMERIC (none of them does), ACF_EMEMORY. */
acf_status acf_trainer_rescue(acf_trainer *tr);

/* The record of the run so far, for a model; in a second pass the result of the first, and how the second ended. */
acf_fit_record acf_trainer_record(const acf_trainer *tr, acf_train_end end);

#endif
