/* Categories as rows of one table that has a row for every class of every column:
 *
 *     row of class c of column j  =  first[j] + c          columns of 3, 2 and 4 classes: 9 rows, first = 0, 3, 5
 *
 * The rows are the index of an embedding and of the output layer of categories (class_head.h). Codes and results are
 * int32 in device memory; results live on the tape, NULL after a failure. Fails: ACF_EDATA (a code that is not a
 * class of its column; the message has the lowest row and column, code and count), ACF_ESHAPE. */
#ifndef ACF_OPS_CLASS_ROWS_H
#define ACF_OPS_CLASS_ROWS_H

#include "ops/categorical.h"

/* (T) of the modelled cells of codes (N,D); the other cells are not read. */
const int32_t *acf_class_rows_packed(acf_tape *t, const acf_classes *classes, const int32_t *codes,
                                     const acf_subset *u);

/* (n) of codes (n) of the cells `at`: one step of a loop. */
const int32_t *acf_class_rows_at(acf_tape *t, const acf_classes *classes, const int32_t *codes, acf_cells at,
                                 int64_t n);

/* (N·D) of codes (N,D) where seen (N,D; device memory) is not zero, -1 elsewhere, where the codes are not read. */
const int32_t *acf_class_rows_seen(acf_tape *t, const acf_classes *classes, const int32_t *codes, const uint8_t *seen,
                                   int64_t N);

/* Selects cells: element p has the code codes[place[p]], or codes[p] if place is NULL. Its cell is at.row[p],
 * at.column[p], or p / D, p % D if those are NULL. It is used if seen[p] is not zero or seen is NULL. */
typedef struct acf_class_cells {
    const int32_t *place;
    acf_cells at;
    const uint8_t *seen;
} acf_class_cells;

/* Fills rows (n). Returns the element of the lowest cell with a code that its column does not have, or -1. */
int64_t acf_class_rows_fwd_cpu(int32_t *rows, const int32_t *codes, const acf_class_cells *cells,
                               const acf_classes *classes, int64_t n);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_class_rows_attrs {
    acf_classes classes; /* borrowed from the caller: the backward needs none */
    acf_class_cells cells;
    const int32_t *codes;
    int32_t *rows;
    int64_t n;
} acf_class_rows_attrs;

#endif
