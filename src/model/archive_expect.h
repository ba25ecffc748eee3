/* What the rows of an archive are expected to have (expect.h), so that rows can be near which expect the same.
 *
 * Coordinates of a number: its place z, cut at ±6. Of a class column with V values: V - 1 of them, ([x = v] - π_v) / √(π_v (1 - π_v)), π_v the share of cells that have
 * the value. Columns of one value, and those of more classes than there is room for, have none. Only numbers are expected. */
#ifndef ACF_MODEL_ARCHIVE_EXPECT_H
#define ACF_MODEL_ARCHIVE_EXPECT_H

#include "model/archive.h"

#define ACF_EXPECT_FARTHEST 1e6 /* that is expected: a file may have any Gaussian, and costs are to be numbers */

/* m->expect for m's columns, nothing learned yet; NULL where there is no number to expect. m has its values. Fails: ACF_EMEMORY. */
acf_status acf_archive_expect_room(acf_archive *m);

/* Is a number of column j expected? */
static inline bool acf_archive_expects(const acf_archive *m, int64_t j) {
    return m->number[j] && m->expect && m->expect->first[j + 1] > m->expect->first[j];
}

/* Learns m->expect from the rows, which are those of t, and sets m->expected of every row, by its other cells. Cells that hold holds out are not looked at; hold and t may
 * be NULL. With few rows, these are cut into five parts, and each is expected by a Gaussian of the other four: a row that a Gaussian knows is nearer to what it expects
 * than a new one will be, and donors would seem better than they are. Fails: ACF_EMEMORY. */
acf_status acf_archive_expect_learn(acf_archive *m, const acf_table *t, const acf_holdout *hold, int threads);

/* Coordinates of a value of column k that lies at z and has this code: to x (P), where the column's begin. Nothing where it has none. */
void acf_archive_coordinates(const acf_archive *m, int64_t k, acf_real z, int32_t code, double *x);

/* What column j is expected to be of a row with these coordinates, cut at ±ACF_EXPECT_FARTHEST, and the variance that is left (acf_expect_cell_both). */
acf_real acf_archive_expected(const acf_expect *e, const acf_expect_desk *k, const double *x, const uint8_t *known, int64_t j, double *variance);

#endif
