/* Batches: the rows of a table in shuffled order, encoded and ready for a step.
 *
 *     acf_batch_sampler  which rows come next; (epoch, at) is its whole state, saved and restored exactly
 *     acf_batch          the memory of one batch, allocated once and refilled
 *
 *     while ((n = acf_batch_sampler_next(&sampler, rows))) {                    one epoch
 *         acf_batch_fill(dev, batch, table, encoder, hold, ACF_BATCH_TRAIN, rows, n);
 *         acf_masks_draw(dev, masks, seed, step, n, D, batch->id, batch->b, batch->m);
 *         acf_batch_dequantise(dev, batch, table, encoder, rows, seed, step);
 *         ...
 *     }
 *
 * The order of an epoch is a permutation computed from (seed, epoch), see permute.h. It needs no memory, and a
 * resumed run continues at its position at once. Several processes can share one sampler by taking every k-th batch. */
#ifndef ACF_TABLE_BATCHES_H
#define ACF_TABLE_BATCHES_H

#include "device/device.h"
#include "table/encode.h"

/* ---- row order --------------------------------------------------------------------------------------------------- */

/* Iterates over rows, epoch after epoch. By value; nothing to free. A checkpoint stores epoch and at. */
typedef struct acf_batch_sampler {
    acf_rows rows;
    int64_t size; /* rows of a batch; the last batch of an epoch has the rest */
    uint64_t seed;
    bool shuffle; /* false: every epoch in row order */
    uint32_t epoch;
    int64_t at; /* rows of this epoch already returned */
    acf_permutation order;
} acf_batch_sampler;

/* Starts at epoch 0. Fails: ACF_EUSAGE (size < 1). */
acf_status acf_batch_sampler_start(const acf_rows *rows, int64_t size, uint64_t seed, bool shuffle,
                                   acf_batch_sampler *out);

/* Writes the table rows of the next batch to row (size; may be NULL) and returns their number. Returns 0 at the end
 * of an epoch; the call after that begins the next epoch. Always returns 0 if there are no rows. */
int64_t acf_batch_sampler_next(acf_batch_sampler *sampler, int64_t *row);

/* Moves to a saved position. Fails: ACF_EUSAGE (at outside 0..n: the checkpoint belongs to another table). */
acf_status acf_batch_sampler_seek(acf_batch_sampler *sampler, uint32_t epoch, int64_t at);

/* The number of batches in an epoch. */
int64_t acf_batch_sampler_count(const acf_batch_sampler *sampler);

/* ---- contents of a batch ----------------------------------------------------------------------------------------- */

/* How held-out cells are treated. */
typedef enum acf_batch_role {
    ACF_BATCH_TRAIN, /* missing: m = 0, and neither x nor code depends on them; b = 0, drawn later */
    ACF_BATCH_VALID, /* modelled: m = 1, b = 0; the other present cells have b = 1 */
} acf_batch_role;

/* All arrays are owned. Rows 0..N-1 are valid. */
typedef struct acf_batch {
    int64_t capacity, N, D;
    acf_device *there;  /* the device whose memory holds them, in one block (table_on_device.h); NULL: host memory */
    acf_device *staged; /* the arrays are one block of host memory that this device copies from; NULL: separate
                         * arrays */
    acf_real *x;        /* (N,D) encoded; 0 where m = 0; a class is its code as a number */
    int32_t *code;      /* (N,D) class of a categorical column; -1 where m = 0 and in real columns */
    uint8_t *m;         /* (N,D) 1: present */
    uint8_t *b;         /* (N,D) 1: given; only where m = 1 */
    uint64_t *id;       /* (N)   global row numbers, the keys of random draws */
} acf_batch;

/* Gives *out; free with acf_batch_free. Fails: ACF_ESHAPE (capacity or D below 1), ACF_EMEMORY. */
acf_status acf_batch_create(int64_t capacity, int64_t D, acf_batch **out);
void acf_batch_free(acf_batch *batch); /* NULL is allowed */

/* Fills the batch with these N <= capacity rows of t. hold NULL: nothing is held out. The table must fit the encoder
 * (acf_encoder_check). Allocates nothing; same bits for any number of threads. */
void acf_batch_fill(const acf_device *dev, acf_batch *batch, const acf_table *t, const acf_encoder *e,
                    const acf_holdout *hold, acf_batch_role role, const int64_t *row, int64_t N);

/* Dequantises x of the modelled cells (m = 1, b = 0) that are present in t, in columns with a step (encode.h). Call
 * it when b and m are final. row (N) as in acf_batch_fill. Same bits for any number of threads, any batch and order. */
void acf_batch_dequantise(const acf_device *dev, acf_batch *batch, const acf_table *t, const acf_encoder *e,
                          const int64_t *row, uint64_t seed, uint32_t draw);

#endif
