/* All of a trainer in one file, so that training can go on in another process as if it had never stopped: bit for bit what an
 * uninterrupted run gives.
 *
 *     tensors    value, m, v, average, and best where there is one: slabs of params.h, gaps included
 *     metadata   format_version   2
 *                kind             acflow checkpoint
 *                state            the pass, numbers of acf_train_state, the position in the walk over the rows; in a second pass
 *                                 (refit.h) also `first`, what the first one found
 *                acflow           version of the library
 *                options          what the trainer was created with (recorded ones)
 *                network          name and shape of each parameter
 *                members          of several members (ensemble.h): which is trained, `at`, and the earlier ones that were `kept`, each with its seed and
 *                                 how it was trained; their weights are the tensors member.0, member.1, ...
 *                data             rows, columns, and a hash of every cell, scale and held-out choice; of images their number, size, and a hash
 *
 * A safetensors file beside the model's: optimiser state is four times its size and of no use to who only asks questions.
 * Replaced atomically. Loading compares everything first and refuses what does not belong together, another version of the library
 * too: the bits would differ. Only the options that say when to stop (steps, epochs, patience) and how large steps are (lr, warmup,
 * decay, decay-to, halve-every, clip, batch) may differ: a run may go on for longer, with a smaller lr after it diverged, or with a smaller batch
 * after memory ran out. A longer run then follows its own, longer decay from there on. In a second pass nothing may differ: its length is settled, and the state of the first, which
 * could be made longer, is gone. The same goes for a member behind the first. */
#ifndef ACF_TRAIN_CHECKPOINT_H
#define ACF_TRAIN_CHECKPOINT_H

#include "model/model.h"
#include "train/trainer.h"

#define ACF_CHECKPOINT_VERSION 2 /* 1 knew one pass only, and is refused */

/* Replaces `path`; on failure the old file is as it was. Borrows both. Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_checkpoint_save(const acf_trainer *tr, const char *path);

/* Puts a trainer in its first pass, made from the same network, table and options as the one that was saved, where that one was, in
 * whichever pass. On failure it is as before. Fails: ACF_EIO, ACF_EMODEL (damaged, or of something else: the sentence says of what), ACF_EMEMORY. */
acf_status acf_checkpoint_load(acf_trainer *tr, const char *path);

/* Is there something at this path, even if nobody may look at it? NULL: no. */
bool acf_checkpoint_exists(const char *path);

/* The option `batch` of the run that was saved there. Fails as loading does. */
acf_status acf_checkpoint_batch(const char *path, int64_t *out);

/* Which member was trained there, and those before it. */
typedef struct acf_checkpoint_ensemble {
    int at, kept;
    int64_t seed[ACF_ENSEMBLE_MAX]; /* (kept) */
    acf_fit_record record[ACF_ENSEMBLE_MAX];
} acf_checkpoint_ensemble;
acf_status acf_checkpoint_ensemble_read(const char *path, acf_checkpoint_ensemble *out);
/* The weights of the one that was kept as number k, into the network. Fails as loading does. */
acf_status acf_checkpoint_member_values(const char *path, int k, acf_params *ps);

/* What the data of a trainer are, as a checkpoint says it; and what images are, of which so many are learned. NULL: jansson had no memory. */
json_t *acf_checkpoint_table(const acf_trainer *tr);
json_t *acf_checkpoint_images(const acf_images *im, int64_t learned);

#endif
