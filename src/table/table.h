/* A table in memory: what training and queries read.
 *
 *     column      0 'age'   1 'sex' (2 classes)   2 'dose'
 *     row 0     [  41.0      0                     0.125  ]     one array of doubles, row-major;
 *     row 1     [  NaN       1                     NaN    ]     NaN = missing, a class is its code 0..C-1
 *
 * Why doubles, at 8 bytes a cell (a million rows of 20 columns: 160 MB, the size of the caller's matrix): a float has
 * 24 bits, so a time stamp in seconds would come back in steps of two minutes and the number 16777217 not at all. Held
 * exactly, observed cells pass through an imputation untouched, and scaling starts from what was measured. Why one
 * array, with missing marked inside: a row is one contiguous read, and shuffled training reads rows at random places.
 *
 * Everything a caller could get wrong is refused here, so that readers trust the cells: a present cell is finite, and
 * in a categorical column one of its codes. Internal names begin with acf_tab_; the public ones (acf_table_) are in
 * api/. */
#ifndef ACF_TABLE_TABLE_H
#define ACF_TABLE_TABLE_H

#include "base/arena.h"
#include "base/real.h"

#define ACF_TABLE_ROWS_MAX ((int64_t)1 << 47) /* row numbers key random draws, which give them 48 bits */

typedef struct acf_column {
    const char *name; /* NULL: none. Otherwise UTF-8, not empty, unlike the other names */
    int32_t classes;  /* 0: a real number; C >= 1: one of the codes 0..C-1 */
    bool clock;       /* a real number that counts seconds: it may have been read off in minutes, quarters or hours */
    bool bounded;     /* a real number that nothing is drawn beyond: */
    double low, high; /* its range, as the user declared it, or as a date or an ordinal has it */
} acf_column;

/* Rows may be read by several threads at once; nothing changes after creation. */
typedef struct acf_table {
    int64_t N, D;
    const double *x;             /* (N,D) as drawn above; owned */
    const acf_column *column;    /* (D) owned, with its names */
    uint64_t first_id;           /* global number of row 0, 0 after creation: random draws for row i are keyed by
                               * first_id + i, so its owner sets it where the table is a part of a larger one */
    struct acf_table_file *file; /* the file it was read from (table_file.h); NULL: made from memory. Owned */
    const uint64_t *id;          /* (N) keys of the rows instead of first_id + i, below 2^48; NULL: none. Owned */
} acf_table;

/* Copies x (N,D), row-major, into a new table. m (N,D), or NULL, marks cells: 0 = missing, and then x is not read
 * there, whatever lies at that address; otherwise NaN in x = missing. column (D), or NULL for nameless reals. N may be
 * 0. Borrows all three. Gives *out; free with acf_table_free.
 * Fails: ACF_ESHAPE (sizes, or a negative number of classes); ACF_EDATA (a cell that is infinite or not a code of its
 * column: the sentence names the first such row and column; or a name that is empty, repeated or not UTF-8);
 * ACF_EMEMORY. */
acf_status acf_table_make(const double *x, const uint8_t *m, int64_t N, int64_t D, const acf_column *column,
                          acf_table **out);

/* The same without a copy: takes over x, an array from acf_alloc whose cells the caller has made sure of, also on failure.
 * Fails: ACF_EDATA (a name), ACF_EMEMORY. */
acf_status acf_table_take(double *x, int64_t N, int64_t D, const acf_column *column, acf_table **out);

/* Row i, (D). */
static inline const double *acf_table_row(const acf_table *t, int64_t i) { return t->x + i * t->D; }

/* What keys the random draws of row i. */
static inline uint64_t acf_table_row_id(const acf_table *t, int64_t i) {
    return t->id ? t->id[i] : t->first_id + (uint64_t)i;
}

/* NaN is the only value that differs from itself; written so, loops over cells vectorise. */
static inline bool acf_table_present(double cell) { return cell == cell; }

/* Present cells of row i. */
static inline int64_t acf_table_row_observed(const acf_table *t, int64_t i) {
    int64_t n = 0;
    for (int64_t j = 0; j < t->D; j++) n += acf_table_present(acf_table_row(t, i)[j]);
    return n;
}

/* "column 3" or "column 3 ('age')", for sentences; an odd name is shown as an excerpt. Returns out. */
#define ACF_COLUMN_TEXT_MAX 112
char *acf_column_text(char out[ACF_COLUMN_TEXT_MAX], const acf_column *column, int64_t j);

/* A copy of D columns with their names, in one block: release with acf_release. NULL and ACF_EMEMORY when there is no
 * memory. column NULL: nameless reals. */
acf_column *acf_columns_copy(const acf_column *column, int64_t D);

/* Refuses names that are empty, not UTF-8 or used twice (ACF_EDATA). */
acf_status acf_columns_check_names(const acf_column *column, int64_t D);

#endif
