/* Checkpoints: the whole state of a trainer in one file, so that training can continue in another process with the same
 * bits as an uninterrupted run.
 *
 *     tensors    value, m, v, ema, and best where there is one: slabs of params.h, gaps included
 *     metadata   format_version   2
 *                kind             acflow checkpoint
 *                state            the pass, numbers of acf_train_state, the position of the batch sampler; in a second
 *                                 pass (refit.h) also `first`, the result of the first one
 *                acflow           version of the library
 *                options          what the trainer was created with (recorded ones)
 *                network          name and shape of each parameter
 *                ensemble         of an ensemble (ensemble.h): the member in training, `at`, and the earlier ones that
 *                                 were `kept`, each with its seed and how it was trained; their weights are the tensors
 *                                 member.0, member.1, ...
 *                data             rows, columns, and a hash of every cell, scale and held-out choice; of images their
 *                                 number, size, and a hash
 *
 * A safetensors file beside the model's: optimiser state is four times its size and useless for queries. Replaced
 * atomically. Loading compares everything first and refuses a checkpoint of other data, network or options. It also
 * refuses one of another version of the library: the bits would differ. Only the options for when to stop (steps,
 * epochs, patience) and for the step (lr, warmup, decay, decay-to, halve-every, clip, batch) may differ: a run may be
 * extended, continue with a smaller lr after it diverged, or with a smaller batch after memory ran out. An extended run
 * follows its own, longer decay from there on. In a second pass nothing may differ: its length is fixed, and the
 * state of the first pass, which could be extended, is gone. The same holds for every ensemble member but the first. */
#ifndef ACF_TRAIN_CHECKPOINT_H
#define ACF_TRAIN_CHECKPOINT_H

#include "model/model.h"
#include "train/trainer.h"

#define ACF_CHECKPOINT_VERSION 2 /* version 1 had one pass only, and is refused */

/* Replaces `path`; on failure the old file is as it was. Borrows both. Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_checkpoint_save(const acf_trainer *tr, const char *path);

/* Restores a trainer that is in its first pass and was made from the same network, table and options as the saved one,
 * whose pass may be either. On failure the trainer is as before. Fails: ACF_EIO, ACF_EMODEL (damaged, or of something
 * else: the message says what), ACF_EMEMORY. */
acf_status acf_checkpoint_load(acf_trainer *tr, const char *path);

/* Is there a file at this path, readable or not? NULL: no. */
bool acf_checkpoint_exists(const char *path);

/* The option `batch` of the run that was saved there. Fails as loading does. */
acf_status acf_checkpoint_batch(const char *path, int64_t *out);

/* The member in training there, and those before it. */
typedef struct acf_checkpoint_ensemble {
    int at, kept;
    int64_t seed[ACF_ENSEMBLE_MAX]; /* (kept) */
    acf_fit_record record[ACF_ENSEMBLE_MAX];
} acf_checkpoint_ensemble;
acf_status acf_checkpoint_ensemble_read(const char *path, acf_checkpoint_ensemble *out);
/* Copies the weights of kept member k into the network. Fails as loading does. */
acf_status acf_checkpoint_member_values(const char *path, int k, acf_params *ps);

/* Description of a trainer's data for a checkpoint; and of images, of which `learned` are trained on. NULL: out of
 * memory in jansson. */
json_t *acf_checkpoint_table(const acf_trainer *tr);
json_t *acf_checkpoint_images(const acf_images *im, int64_t learned);

#endif
