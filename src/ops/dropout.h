/* Dropout: in training, zeroes numbers at random and scales the others, so that the mean is unchanged. */
#ifndef ACF_OPS_DROPOUT_H
#define ACF_OPS_DROPOUT_H

#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

#define ACF_SITES 4096 /* number of distinct dropout sites of a model */

/* Which numbers are dropped. */
typedef struct acf_drop {
    double rate; /* in [0,1) */
    uint64_t seed;
    uint32_t step;          /* of training: each step has its own masks */
    const uint32_t *now;    /* the same in device memory, for a step captured in a CUDA graph; NULL: use `step` */
    uint32_t site;          /* the site in the model, below ACF_SITES: each site has its own masks */
    const uint64_t *row_id; /* (N) as in acf_draw; NULL: the index of the batch row */
} acf_drop;

/* y = x k / (1 - rate), k = 0 with probability rate and else 1. On a tape that does not record, and for rate 0, it
 * is the identity and returns x itself.
 *
 * k is a function of the number's position, so it is the same for any thread count, batch split and row order. A
 * packed x (T,C) has a row for each modelled cell of the table; any other x (N, ...) has one for each row of the
 * batch, with column 0. Number c of the row that belongs to table row r and column j uses word c mod 4 of this block:
 *
 *     (seed, stream DROPOUT + site, row id of r, column j·⌈C/4⌉ + ⌊c/4⌋, draw = step)
 *
 * Fails: ACF_EUSAGE (rate, site), ACF_ESHAPE (columns times width beyond 2^32 blocks). */
acf_tensor *acf_dropout(acf_tape *t, acf_tensor *x, const acf_drop *d);

/* True if every number of x has its own counter; otherwise the tape has failed, with a message of op's. */
bool acf_dropout_fits(acf_tape *t, const acf_op *op, const acf_tensor *x, const acf_drop *d);

/* y (M,C) from x (M,C), which may be y; keep (M,C), if not NULL, receives k for the backward. `at` gives the cell of
 * each row; if empty, row m is batch row m. */
void acf_dropout_fwd_cpu(const acf_device *dev, acf_real *y, uint8_t *keep, const acf_real *x, const acf_drop *d,
                         acf_cells at, int64_t M, int64_t C);
/* dx += dy keep / (1 - rate) over n elements. */
void acf_dropout_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const uint8_t *keep, double rate,
                         int64_t n);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_dropout_attrs {
    acf_drop drop;
    uint8_t *keep; /* as many as x has numbers; NULL when no backward follows */
} acf_dropout_attrs;

#endif
