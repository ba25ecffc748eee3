/* A table in memory: what training and queries read.
 *
 *     column      0 'age'   1 'sex' (2 classes)   2 'dose'
 *     row 0     [  41.0      0                     0.125  ]     one array of doubles, row-major;
 *     row 1     [  NaN       1                     NaN    ]     NaN = missing, a class is its code 0..C-1
 *
 * Why doubles, at 8 bytes a cell (a million rows of 20 columns: 160 MB, the size of the caller's matrix): a float has
 * 24 bits, so a time stamp in seconds would be rounded to two minutes, and 16777217 would be lost. With exact values,
 * observed cells pass through an imputation unchanged, and scaling starts from the measured values. Why one array, with
 * missing cells marked inside: a row is one contiguous read, and shuffled training reads rows in random order.
 *
 * All caller errors are refused here, so readers need no checks: a present cell is finite, and in a categorical column
 * one of its codes. Internal names begin with acf_table_, as the public ones in api/ do. */
#ifndef ACF_TABLE_TABLE_H
#define ACF_TABLE_TABLE_H

#include "base/arena.h"
#include "base/real.h"

#define ACF_TABLE_ROWS_MAX ((int64_t)1 << 47) /* row numbers key random draws, which reserve 48 bits for them */

typedef struct acf_column {
    const char *name; /* NULL: none. Otherwise UTF-8, not empty, unique */
    int32_t classes;  /* 0: a real number; C >= 1: one of the codes 0..C-1 */
    bool clock;       /* a real number that counts seconds: its step may be a minute, a quarter or an hour */
    bool bounded;     /* a real number with a range that no draw exceeds: */
    double low, high; /* the range, as declared by the user, or that of a date or an ordinal */
} acf_column;

/* Several threads may read rows at once; the table does not change after creation. */
typedef struct acf_table {
    int64_t N, D;
    const double *x;          /* (N,D) as drawn above; owned */
    const acf_column *column; /* (D) owned, with its names */
    /* global number of row 0, 0 after creation. Random draws of row i are keyed by first_id + i, so its owner sets it
     * for a part of a larger table */
    uint64_t first_id;
    struct acf_table_file *file; /* the file it was read from (table_file.h); NULL: made from memory. Owned */
    const uint64_t *id;          /* (N) keys of the rows instead of first_id + i, below 2^48; NULL: none. Owned */
} acf_table;

/* Copies x (N,D), row-major, into a new table. m (N,D), or NULL, marks cells: 0 = missing, and x is then not read
 * there; otherwise NaN in x = missing. column (D), or NULL for nameless reals. N may be 0. Borrows all three. Gives
 * *out; free with acf_table_free. Fails: ACF_ESHAPE (sizes, or a negative number of classes); ACF_EDATA (a cell that is
 * infinite or not a code of its column: the message names the first such row and column; or a name that is empty,
 * repeated or not UTF-8); ACF_EMEMORY. */
acf_status acf_table_make(const double *x, const uint8_t *m, int64_t N, int64_t D, const acf_column *column,
                          acf_table **out);

/* The same without a copy: takes ownership of x, an array from acf_alloc with valid cells, also on failure. Fails:
 * ACF_EDATA (a name), ACF_EMEMORY. */
acf_status acf_table_take(double *x, int64_t N, int64_t D, const acf_column *column, acf_table **out);

/* Row i, (D). */
static inline const double *acf_table_row(const acf_table *t, int64_t i) { return t->x + i * t->D; }

/* The key of the random draws of row i. */
static inline uint64_t acf_table_row_id(const acf_table *t, int64_t i) {
    return t->id ? t->id[i] : t->first_id + (uint64_t)i;
}

/* NaN is the only value that differs from itself; with this test, loops over cells vectorise. */
static inline bool acf_table_present(double cell) { return cell == cell; }

/* Number of present cells of row i. */
static inline int64_t acf_table_row_observed(const acf_table *t, int64_t i) {
    int64_t n = 0;
    for (int64_t j = 0; j < t->D; j++) n += acf_table_present(acf_table_row(t, i)[j]);
    return n;
}

/* "column 3" or "column 3 ('age')", for messages; an unusual name is shown as an excerpt. Returns out. */
#define ACF_COLUMN_TEXT_MAX 112
char *acf_column_text(char out[ACF_COLUMN_TEXT_MAX], const acf_column *column, int64_t j);

/* A copy of D columns with their names, in one block: release with acf_release. NULL and ACF_EMEMORY without memory.
 * column NULL: nameless reals. */
acf_column *acf_columns_copy(const acf_column *column, int64_t D);

/* Refuses names that are empty, not UTF-8 or used twice (ACF_EDATA). */
acf_status acf_columns_check_names(const acf_column *column, int64_t D);

#endif
