/* Which cell of the table an element stands for, and which random draw is wanted for it.
 *
 * What is drawn for a cell is a function of (seed, global row, column, draw) only, so a sample has the same bits for
 * any batch, row order, thread count or device, and one row can be redone alone. */
#ifndef ACF_OPS_DRAW_H
#define ACF_OPS_DRAW_H

#include "base/rng.h"
#include "tensor/tensor.h"

/* Batch row and table column of each element, in device memory. Left NULL they come from the tensor's subset; a slice
 * of a packed tensor has none and is told: step t of u is {u->row_of + u->first[t], u->col_of + u->first[t]}. */
typedef struct acf_cells {
    const int32_t *row, *column; /* (T); both or neither */
} acf_cells;

typedef struct acf_draw {
    uint64_t seed;
    uint32_t draw; /* which of a cell's draws: 0, 1, 2 ... */
    const uint32_t
        *now; /* the same in a GPU's memory, for draws that are captured once and replayed; NULL: `draw` says it */
    double log_temperature; /* of draws from likelihoods of images (like/image_like.h); 0: from the density as it is */
    const uint64_t *row_id; /* (N) global number of a batch row, below 2^48, in device memory; NULL: its index */
    acf_cells at;
} acf_draw;

/* Fills the places left open from x's subset; false when x has none, so that its elements have no place. */
static inline bool acf_cells_resolve(acf_cells *at, const acf_tensor *x) {
    if (at->row && at->column) return true;
    if (at->row || at->column || !x->sub) return false;
    *at = (acf_cells){x->sub->row_of, x->sub->col_of};
    return true;
}
#define ACF_NO_CELLS                                                                                                   \
    "the elements have no place in the table: expected a packed tensor, or row and column of each element"

/* Where element i draws; at is resolved. */
static inline acf_rng_counter acf_draw_counter(const acf_draw *d, acf_stream_id stream, int64_t i) {
    int64_t row = d->at.row[i];
    uint64_t id = d->row_id ? d->row_id[row] : (uint64_t)row;
    return (acf_rng_counter){d->seed, id, (uint32_t)stream, (uint32_t)d->at.column[i], d->draw};
}

#endif
