/* Data hidden from training: rows set aside, and cells held out.
 *
 * The two can be combined. A row split cuts the rows into training, validation and test. With held-out cells every row
 * stays in training, but some of its observed cells are hidden: training treats them as missing, and validation models
 * exactly these, given the others. This is the task of imputation, and a small table loses no row.
 *
 *     observed   1 1 1 . 1      training     1 . 1 . 1      validation   b = 1 . 1 . 1     u = . 1 . . .
 *     held out   . x . . .      (m)                         (m = observed)
 *
 * Both are functions of (seed, row, column). No mask is stored, so training, validation and the encoder always
 * agree. */
#ifndef ACF_TABLE_SPLIT_H
#define ACF_TABLE_SPLIT_H

#include "table/permute.h"
#include "table/table.h"

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* Some rows of a table, in some order: row number k is order(first + k). Passed by value; nothing to free. If a set of
 * images is stored several times, such as original and rotated, n counts the copies too: all rows first, then the
 * second copy of each, and so on. */
typedef struct acf_rows {
    acf_permutation order;
    int64_t first, n;
    int copies; /* 0 means 1 */
} acf_rows;

typedef struct acf_row_split {
    acf_rows train, valid, test; /* disjoint; together all N rows */
} acf_row_split;

/* All N rows in table order. */
acf_rows acf_rows_all(int64_t N);

/* Splits N rows at random by seed. valid and test get their fraction of N, rounded to the nearest; training gets the
 * rest. Training keeps at least one row (taken from test first), so a table of one row is all training. Fails:
 * ACF_EUSAGE (a fraction below 0 or not a number, or a sum of 1 or more). */
acf_status acf_row_split_make(int64_t N, double valid, double test, uint64_t seed, acf_row_split *out);

/* The same rows in each of `copies` copies of the whole set, stored one after the other. */
acf_rows acf_rows_copied(acf_rows rows, int copies);

/* The table row of number k, 0 <= k < n. */
int64_t acf_rows_at(const acf_rows *rows, int64_t k);

/* ---- cells ------------------------------------------------------------------------------------------------------ */

/* Which observed cells are held out. Each cell has its own uniform draw and is held out if the draw is below
 * `fraction`, except:
 *
 *   - the observed cell of a column with the largest draw stays. Otherwise training would never see that column, and
 *     its predictions would be noise. So a column with one observed cell, and every cell of a one-row table, stays;
 *   - the observed cell of a row with the largest draw stays, if the row has two or more. Validation then always has a
 *     given cell. A row with a single observed cell may be held out whole: training skips it, and validation
 *     computes its marginal density. A table of one column is validated this way.
 *
 * In a large table the exceptions hardly matter (the largest of many draws is near 1). In a tiny one they may leave
 * fewer held-out cells than requested, or none. `held` counts the held-out cells; with none there is no validation. */
typedef struct acf_holdout {
    uint64_t seed;
    double fraction;
    int64_t D;
    int64_t held, visible; /* observed cells of the given rows: hidden from training, and visible to it */
    int64_t *keep;         /* (D) the row whose cell of this column stays, -1 for an empty column; owned */
} acf_holdout;

/* Holds out cells of these rows of t (NULL: all). Borrows both; reads only the pattern of missing cells. Reads the rows
 * twice. Gives *out; free with acf_holdout_free. Fails: ACF_EUSAGE (fraction outside 0 <= f < 1), ACF_EMEMORY. */
acf_status acf_holdout_create(const acf_table *t, const acf_rows *rows, double fraction, uint64_t seed,
                              acf_holdout **out);
void acf_holdout_free(acf_holdout *h); /* NULL is allowed */

/* held (D) = 1 if the cell of this table row is held out, else 0; returns their number. With h NULL: none. */
int64_t acf_holdout_row(const acf_holdout *h, const acf_table *t, int64_t row, uint8_t *held);

#endif
