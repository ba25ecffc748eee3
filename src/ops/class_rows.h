/* Categories as rows of one table that has a row for every class of every column:
 *
 *     row of class c of column j  =  first[j] + c          columns of 3, 2 and 4 classes: 9 rows, first = 0, 3, 5
 *
 * What an embedding looks up, and what the output layer of categories (class_head.h) is addressed by. Codes and results are
 * int32 in device memory; results live on the tape, NULL after a failure. Fails: ACF_EDATA (a code that is not a class of its
 * column; the sentence names the lowest row and column, code and count), ACF_ESHAPE. */
#ifndef ACF_OPS_CLASS_ROWS_H
#define ACF_OPS_CLASS_ROWS_H

#include "ops/categorical.h"

/* (T) of the modelled cells of codes (N,D); the other cells are not read. */
const int32_t *acf_class_rows_packed(acf_tape *t, const acf_classes *classes, const int32_t *codes,
                                     const acf_subset *u);

/* (n) of codes (n) that stand at `at`: one step of a loop. */
const int32_t *acf_class_rows_at(acf_tape *t, const acf_classes *classes, const int32_t *codes, acf_cells at,
                                 int64_t n);

/* (N·D) of codes (N,D) where seen (N,D; device memory) is not zero, -1 elsewhere, where the codes are not read. */
const int32_t *acf_class_rows_seen(acf_tape *t, const acf_classes *classes, const int32_t *codes, const uint8_t *seen,
                                   int64_t N);

/* Which cells: element p has the code codes[place[p]], or codes[p] without place, and stands at at.row[p], at.column[p], or
 * without those at p / D, p % D. It counts where seen[p] is not zero; without seen, always. */
typedef struct acf_class_cells {
    const int32_t *place;
    acf_cells at;
    const uint8_t *seen;
} acf_class_cells;

/* rows (n). Returns the element of the lowest cell with a code that its column does not have, -1 when there is none. */
int64_t acf_class_rows_fwd_cpu(int32_t *rows, const int32_t *codes, const acf_class_cells *cells,
                               const acf_classes *classes, int64_t n);

/* ---- for kernels on other devices ---------------------------------------------------------------------------------- */

typedef struct acf_class_rows_attrs {
    acf_classes classes; /* the caller's: nothing is left to a backward */
    acf_class_cells cells;
    const int32_t *codes;
    int32_t *rows;
    int64_t n;
} acf_class_rows_attrs;

#endif
