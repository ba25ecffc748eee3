/* A table in device memory, and batches drawn there: a training step gets its data without waiting for the host.
 *
 *     host     batch steps: which rows of which epoch, the step's number, its step size
 *     device   step k: batch step k -> rows -> masks -> noise -> an encoded batch (batches.h), in device memory too
 *
 * The batch equals the one that acf_batch_sampler_next, acf_batch_fill, acf_masks_draw and acf_batch_dequantise make on
 * the host, for every given or target cell. It is padded to its capacity with rows without cells. Training sees the
 * cells that are not held out; validation models the held-out cells. */
#ifndef ACF_TABLE_TABLE_ON_DEVICE_H
#define ACF_TABLE_TABLE_ON_DEVICE_H

#include "ops/ops.h"
#include "table/batches.h"
#include "table/masks.h"

/* What one step draws. */
typedef struct acf_batch_step {
    acf_permutation order; /* of the epoch; unused if validation reads its list of rows with held-out cells */
    int64_t at;            /* first position in that order */
    int32_t n;             /* rows, at most the batch's capacity */
    uint32_t step;         /* keys masks and noise */
    double lr;             /* the step size of the step */
} acf_batch_step;

/* Passed by value to kernels. All arrays are in device memory, owned by acf_table_on_device. */
typedef struct acf_cells_there {
    int64_t N, D;
    const double *x;                   /* (N,D) as in acf_table: NaN is missing */
    const uint8_t *held;               /* (N,D) 1: held out; NULL: none is */
    const uint64_t *id;                /* (N) */
    const int64_t *list;               /* rows with a held-out cell */
    const double *mean, *scale, *step; /* (D) of the encoder; step 0: none */
    const int32_t *classes, *first;    /* (D), (D+1): knots of column j are first[j] .. first[j+1] */
    const double *t, *z;               /* knots of the normal scores */
} acf_cells_there;

typedef struct acf_table_on_device {
    acf_device *dev;
    void *memory;   /* owned: all arrays */
    int64_t listed; /* rows in the list */
    int64_t cells;  /* held-out cells */
    int64_t most;   /* most held-out cells in one batch of `size` rows of the list */
    /* Σ log |dz/dt| of the held-out cells: converts a density of encoded values to one of standardised values */
    double slopes;
    bool every_batch; /* every training batch has a cell to model */
    acf_cells_there there;
} acf_table_on_device;

/* The size of a device table in bytes. */
size_t acf_table_on_device_bytes(const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                 const acf_holdout *hold);

/* Copies these rows to the memory of dev. Keeps dev; borrows the rest. seed keys the noise of validation, size is the
 * size of training batches. Gives *out; free with acf_table_on_device_free. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_table_on_device_create(acf_device *dev, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                      const acf_holdout *hold, uint64_t seed, int64_t size, acf_table_on_device **out);
void acf_table_on_device_free(acf_table_on_device *r); /* NULL is allowed */

/* A batch whose arrays are in the memory of dev; free with acf_batch_free. Fails: ACF_ESHAPE, ACF_EMEMORY. */
acf_status acf_batch_place(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out);

/* A batch in host memory for a single asynchronous copy to a device batch; free with acf_batch_free. If a device has no
 * pinned memory, it is on the heap. */
acf_status acf_batch_stage(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out);

/* Copies a staged batch to a device batch of the same size, and empties the rows after its last. The staged batch must
 * stay unchanged until the device has copied it. */
acf_status acf_batch_send(acf_batch *staged, acf_batch *placed);

/* How batches are drawn. */
typedef struct acf_drawing {
    acf_batch_role role;
    acf_masks masks; /* of training */
    uint64_t seed;
    const acf_batch_step *batch_steps; /* in device memory, as all pointers below */
    const int64_t *turn;               /* index of the current step */
    double *lr;                        /* receives the step size unless NULL */
    uint32_t *now;                     /* receives the step's number unless NULL: dropout reads it */
} acf_drawing;

/* Copies lr and now from the batch step, for batches made on the host. */
void acf_batch_step_take(acf_tape *t, const acf_drawing *how);

/* Fills batch (acf_batch_place) up to its capacity; r NULL: its rows are already there (acf_batch_send). Recorded on
 * the tape to use its kernels; not differentiable. */
void acf_table_on_device_draw(acf_tape *t, const acf_table_on_device *r, const acf_drawing *how, acf_batch *batch);

/* A sum over several batches, in device memory. */
typedef struct acf_total {
    int64_t turn;
    double sum;
} acf_total;

/* sum += Σ x, and moves on to the next step. */
void acf_total_add(acf_tape *t, acf_tensor *x, acf_total *total);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_draw_batch_attrs {
    acf_cells_there from;
    acf_drawing how;
    int64_t N; /* capacity */
    acf_real *x;
    int32_t *code;
    uint8_t *m, *b;
    uint64_t *id;
    int64_t *source; /* (N) scratch: the table row of each */
} acf_draw_batch_attrs;

typedef struct acf_total_attrs {
    acf_total *total;
} acf_total_attrs;

#endif
