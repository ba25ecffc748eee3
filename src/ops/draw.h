/* Identifies the table cell of each element and the random draw for it.
 *
 * A cell's random numbers are a function of (seed, global row, column, draw) only. A sample therefore has the same
 * bits for any batch, row order, thread count or device, and a single row can be repeated alone. */
#ifndef ACF_OPS_DRAW_H
#define ACF_OPS_DRAW_H

#include "base/rng.h"
#include "tensor/tensor.h"

/* Batch row and table column of each element, in device memory. If NULL they come from the tensor's subset. A slice
 * of a packed tensor has no subset; for step t of u pass {u->row_of + u->first[t], u->col_of + u->first[t]}. */
typedef struct acf_cells {
    const int32_t *row, *column; /* (T); both or neither */
} acf_cells;

typedef struct acf_draw {
    uint64_t seed;
    uint32_t draw;          /* index of a cell's draw: 0, 1, 2 ... */
    const uint32_t *now;    /* the same in a GPU's memory, for draws captured in a CUDA graph; NULL: use `draw` */
    double log_temperature; /* of draws from likelihoods of images (like/image_like.h); 0: the density itself */
    const uint64_t *row_id; /* (N) global number of a batch row, below 2^48, in device memory; NULL: its index */
    acf_cells at;
} acf_draw;

/* Fills NULL rows and columns from x's subset; false if x has none, so that its elements have no cells. */
static inline bool acf_cells_resolve(acf_cells *at, const acf_tensor *x) {
    if (at->row && at->column) return true;
    if (at->row || at->column || !x->sub) return false;
    *at = (acf_cells){x->sub->row_of, x->sub->col_of};
    return true;
}
#define ACF_NO_CELLS                                                                                                   \
    "the elements have no place in the table: expected a packed tensor, or row and column of each element"

/* The random counter of element i; `at` is resolved. */
static inline acf_rng_counter acf_draw_counter(const acf_draw *d, acf_stream_id stream, int64_t i) {
    int64_t row = d->at.row[i];
    uint64_t id = d->row_id ? d->row_id[row] : (uint64_t)row;
    return (acf_rng_counter){d->seed, id, (uint32_t)stream, (uint32_t)d->at.column[i], d->draw};
}

#endif
