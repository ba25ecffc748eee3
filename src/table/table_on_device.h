/* A table in device memory, and batches that are drawn there: what a training step needs of its data without asking the host.
 *
 *     host     tickets for some steps: which rows of which epoch, the step's number, its step size
 *     device   step k: ticket k -> rows -> masks -> noise -> an encoded batch (batches.h), whose arrays are in device memory too
 *
 * The batch is the one that acf_batch_sampler_next, acf_batch_fill, acf_masks_draw and acf_batch_dequantise make on the host, cell by cell where a
 * cell is given or modelled; it is padded to its capacity with rows that have no cells. Training sees the cells that are not held
 * out, validation models those that are. */
#ifndef ACF_TABLE_TABLE_ON_DEVICE_H
#define ACF_TABLE_TABLE_ON_DEVICE_H

#include "ops/ops.h"
#include "table/batches.h"
#include "table/masks.h"

/* What one step draws. */
typedef struct acf_batch_step {
    acf_permutation order; /* of the epoch; not read where validation goes through its list of held-out cells */
    int64_t at;            /* its first position there */
    int32_t n;             /* rows, at most the batch's capacity */
    uint32_t step;         /* keys masks and noise */
    double lr;             /* the step size that goes with it */
} acf_batch_step;

/* By value to kernels: all arrays are in device memory, owned by acf_table_on_device. */
typedef struct acf_cells_there {
    int64_t N, D;
    const double *x;                   /* (N,D) as in acf_table: NaN is missing */
    const uint8_t *held;               /* (N,D) 1: held out; NULL: nothing is */
    const uint64_t *id;                /* (N) */
    const int64_t *list;               /* rows with a held-out cell */
    const double *mean, *scale, *step; /* (D) of the encoder; step 0: none */
    const int32_t *classes, *first;    /* (D), (D+1): knots of column j are first[j] .. first[j+1] */
    const double *t, *z;               /* knots of the warps */
} acf_cells_there;

typedef struct acf_table_on_device {
    acf_device *dev;
    void *memory;   /* owned: all of it */
    int64_t listed; /* rows in the list */
    int64_t cells;  /* held-out cells */
    int64_t most;   /* of them in one batch of `size` rows of the list */
    double
        slopes; /* Σ log |dz/dt| of the held-out cells: from a density of encoded values to one of standardised values */
    bool every_batch; /* no batch of training can be without a cell to model */
    acf_cells_there there;
} acf_table_on_device;

/* What it takes in bytes. */
size_t acf_table_on_device_bytes(const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                 const acf_holdout *hold);

/* These rows in the memory of dev, which is kept; borrows the rest. seed keys the noise of validation, size is that of training's batches.
 * Gives *out; free with acf_table_on_device_free. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_table_on_device_create(acf_device *dev, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                      const acf_holdout *hold, uint64_t seed, int64_t size, acf_table_on_device **out);
void acf_table_on_device_free(acf_table_on_device *r); /* NULL is allowed */

/* A batch whose arrays are in the memory of dev; free with acf_batch_free. Fails: ACF_ESHAPE, ACF_EMEMORY. */
acf_status acf_batch_place(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out);

/* A batch in host memory that goes to such a one in a single copy, which nobody waits for; free with acf_batch_free. Where a device has no such
 * memory it is the heap's. */
acf_status acf_batch_stage(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out);

/* Copies a staged batch, of the same sizes, to one that is placed; rows behind its last are emptied first. The staged one must stay as it is until the
 * device has come so far. */
acf_status acf_batch_send(acf_batch *staged, acf_batch *placed);

/* How batches are drawn. */
typedef struct acf_drawing {
    acf_batch_role role;
    acf_masks masks; /* of training */
    uint64_t seed;
    const acf_batch_step *batch_steps; /* in device memory, as all below */
    const int64_t *turn;               /* whose turn it is */
    double *lr;                        /* gets the ticket's, where not NULL */
    uint32_t *now;                     /* gets the step's number, where not NULL: dropout asks for it */
} acf_drawing;

/* Takes lr and now from the ticket, for batches that the host makes. */
void acf_batch_step_take(acf_tape *t, const acf_drawing *how);

/* Fills batch (acf_batch_place), to its capacity; r NULL: it is there already (acf_batch_send). Runs on the tape, for its kernels; nothing of it is
 * differentiable. */
void acf_table_on_device_draw(acf_tape *t, const acf_table_on_device *r, const acf_drawing *how, acf_batch *batch);

/* A sum over several batches, in device memory. */
typedef struct acf_total {
    int64_t turn;
    double sum;
} acf_total;

/* sum += Σ x, and the next turn. */
void acf_total_add(acf_tape *t, acf_tensor *x, acf_total *total);

/* ---- for kernels on other devices ---------------------------------------------------------------------------------- */

typedef struct acf_draw_batch_attrs {
    acf_cells_there from;
    acf_drawing how;
    int64_t N; /* capacity */
    acf_real *x;
    int32_t *code;
    uint8_t *m, *b;
    uint64_t *id;
    int64_t *source; /* (N) scratch: the row of each */
} acf_draw_batch_attrs;

typedef struct acf_total_attrs {
    acf_total *total;
} acf_total_attrs;

#endif
