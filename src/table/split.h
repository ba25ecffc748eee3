/* What training may not see: rows set aside, and cells held out.
 *
 * Two ways, which can be combined. A row split cuts the rows into training, validation and test. Held-out cells leave
 * every row in training but hide some of its observed cells: training treats them as missing, and validation models
 * exactly these, given the others. Imputation is asked this very question, and no row is lost to a small table.
 *
 *     observed   1 1 1 . 1      training     1 . 1 . 1      validation   b = 1 . 1 . 1     u = . 1 . . .
 *     held out   . x . . .      (m)                         (m = observed)
 *
 * Both are functions of (seed, row, column): no mask is stored, and training, validation and the encoder, asking
 * separately, cannot disagree. */
#ifndef ACF_TABLE_SPLIT_H
#define ACF_TABLE_SPLIT_H

#include "table/permute.h"
#include "table/table.h"

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* Some rows of a table, in some order: row number k is order(first + k). By value; nothing to free. Where a set is stored several times over,
 * as images and then the same ones turned, n counts the copies, too: all rows first, then the second copy of each, and so on. */
typedef struct acf_rows {
    acf_permutation order;
    int64_t first, n;
    int copies; /* 0 is 1 */
} acf_rows;

typedef struct acf_row_split {
    acf_rows train, valid, test; /* disjoint; together all N rows */
} acf_row_split;

/* All N rows as they come. */
acf_rows acf_rows_all(int64_t N);

/* Cuts N rows at random by seed. valid and test get their fraction of N, rounded to the nearest, training the rest;
 * training keeps at least one row (test gives way first), so a table of one row is all training.
 * Fails: ACF_EUSAGE (a fraction below 0 or not a number, or a sum of 1 or more). */
acf_status acf_row_split_make(int64_t N, double valid, double test, uint64_t seed, acf_row_split *out);

/* The same rows in each of `copies` copies of the whole set, which lie behind each other. */
acf_rows acf_rows_copied(acf_rows rows, int copies);

/* The table row of number k, 0 <= k < n. */
int64_t acf_rows_at(const acf_rows *rows, int64_t k);

/* ---- cells ------------------------------------------------------------------------------------------------------ */

/* Which observed cells are held out. A cell is held out when its draw, uniform and its own, is below `fraction`,
 * except:
 *
 *   - the observed cell of a column with the largest draw stays: else training would never see that column, and what it
 *     said about it would be noise. So a column with one observed cell, and every cell of a one-row table, stays;
 *   - the observed cell of a row with the largest draw stays, where the row has two or more: validation then always has
 *     something to go by. A row with a single observed cell may be held out whole: training passes it by, and
 *     validation asks for its marginal density. A table of one column is validated so.
 *
 * In a large table the exceptions touch next to nothing (the largest of many draws is near 1); in a tiny one they may
 * leave fewer held-out cells than asked for, or none. `held` says how many there are; with none there is nothing to
 * validate on. */
typedef struct acf_holdout {
    uint64_t seed;
    double fraction;
    int64_t D;
    int64_t held, visible; /* observed cells of the rows it was made for: hidden from training, and shown to it */
    int64_t *keep;         /* (D) the row whose cell of this column stays, -1 for an empty column; owned */
} acf_holdout;

/* Holds out cells of these rows of t (NULL: all). Borrows both; only the pattern of missing cells is looked at. Reads
 * the rows twice. Gives *out; free with acf_holdout_free.
 * Fails: ACF_EUSAGE (fraction outside 0 <= f < 1), ACF_EMEMORY. */
acf_status acf_holdout_create(const acf_table *t, const acf_rows *rows, double fraction, uint64_t seed,
                              acf_holdout **out);
void acf_holdout_free(acf_holdout *h); /* NULL is allowed */

/* held (D) = 1 where the cell of this table row is held out, else 0; returns how many are. With h NULL: none. */
int64_t acf_holdout_row(const acf_holdout *h, const acf_table *t, int64_t row, uint8_t *held);

#endif
