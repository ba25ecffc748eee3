/* Cells of a table in device memory, for models whose host code never reads them: columns selected from a batch,
 * masks as numbers, and codes written to their cells. */
#ifndef ACF_OPS_CELLS_H
#define ACF_OPS_CELLS_H

#include "ops/draw.h"
#include "ops/ops.h"

/* All cells of a batch (table/batches.h), in device memory. */
typedef struct acf_grid {
    int64_t N, D;
    const acf_real *x;    /* (N,D) */
    const int32_t *code;  /* (N,D); not read by acf_take_reals */
    const uint8_t *b, *m; /* (N,D) observed; present */
} acf_grid;

/* K of its columns, in the form that networks take. They live on the tape. */
typedef struct acf_taken {
    acf_tensor *x;      /* (N,K) of reals: 0 where m = 0, whatever the batch holds there */
    acf_tensor *common; /* (N,3K) of reals: x·b, b, m */
    uint8_t *b, *m;     /* (N,K) 0 or 1 */
    int32_t *code;      /* (N,K) of categories; -1 where m = 0 */
} acf_taken;

/* column (K) in device memory. After a failure all fields are NULL or empty; the fields of the other kind always
 * are. No derivative. */
acf_taken acf_take_reals(acf_tape *t, const acf_grid *g, const int32_t *column, int64_t K);
acf_taken acf_take_classes(acf_tape *t, const acf_grid *g, const int32_t *column, int64_t K);

/* (N,D): 1 where mask (N,D; device memory) is not zero, else 0. No derivative. */
acf_tensor *acf_mask_numbers(acf_tape *t, const uint8_t *mask, int64_t N, int64_t D);

/* codes (N,D), in device memory: sets the modelled cells to made (T), packed over u. Fails: ACF_EDEVICE. */
void acf_put_codes(acf_tape *t, int32_t *codes, const int32_t *made, const acf_subset *u);
/* codes[cell[p]] = made[p] for p < n; -1: skipped. cell (n) in device memory. */
void acf_put_codes_at(acf_tape *t, int32_t *codes, const int32_t *made, const int32_t *cell, int64_t n);

/* The same for reals: sets x (N,K) at at.row·K + at.column to made (n), in place. `at` (n) is in device memory; a
 * negative row is skipped. */
void acf_put_reals(acf_tape *t, acf_tensor *x, acf_tensor *made, acf_cells at);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_take_attrs {
    acf_grid from;
    const int32_t *column;
    int64_t K;
    uint8_t *b, *m;
    int32_t *code;
} acf_take_attrs;

typedef struct acf_mask_numbers_attrs {
    const uint8_t *mask;
} acf_mask_numbers_attrs;

typedef struct acf_put_codes_attrs {
    int32_t *codes;
    const int32_t *made, *cell; /* (n) */
    int64_t n;
} acf_put_codes_attrs;

typedef struct acf_put_reals_attrs {
    acf_cells at;
} acf_put_reals_attrs;

#endif
