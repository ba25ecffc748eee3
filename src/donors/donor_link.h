/* Record linkage: is the searched row one of the stored rows, under another id or after an edit?
 *
 * A row of the training table may return with other ids, a corrected cell, or a column that moved by a little. It must
 * not be its own donor: scores would then be those of a known row. The agreement of two rows is
 *
 *     A = Σ over known cells k of log 1/F_k,   F_k the share of the cells of column k that are at most as far from x_k
 *     as the stored cell is,
 *
 * the agreement weight of Fellegi and Sunter (1969): distant cells add nothing, so a few edited cells do not matter. A
 * stored row is the row itself where
 *
 *     A >= log N + log 100          by chance, in independent columns, one row in a hundred has such a row among N, and
 *     fewer than 1 % of the stored rows have another stored row with at least the same relative agreement: A divided by
 *     the A of equal cells, over the same cells, or over all but the one that agrees least, which may be an error.
 *
 * The second condition measures how close different rows of this table come: in a table of repeated rows, a repeated
 * row is no edit. A row with the same id is one candidate, not the best of N: there A >= log 100 is enough, if fewer
 * than half of the stored rows have another one as close. docs/math.md, 17. */
#ifndef ACF_DONORS_DONOR_LINK_H
#define ACF_DONORS_DONOR_LINK_H

#include "donors/donors.h"

/* Closest pairs of different stored rows. Constant once made. */
struct acf_linkage {
    int64_t rows;        /* stored rows that were compared with all others */
    acf_real *agreement; /* (D, rows, 5) log 1/F_k of the row with its equal, and with the four other rows closest to
                          * it */
    int32_t *below;      /* (first[D] + D) cells of column k with a smaller code, from first[k] + k on: one entry more
                          * than the column has values */
    acf_real *log_count; /* (N+1) log 1, log 1, log 2, ..., log N */
};

/* m->linkage of the stored rows. Fails: ACF_EMEMORY. */
acf_status acf_linkage_make(acf_donors *m);
void acf_linkage_free(acf_linkage *l); /* NULL is allowed */

/* Which stored row is the one with these values, x and known (D; known[j] is ignored), and this id; -1: none. Only
 * rows i with cost[i] (N) near the least are compared: others do not count as donors. span (D) is overwritten. */
int64_t acf_linkage_find(const acf_donors *m, const acf_real *cost, acf_real least, int64_t j, const double *x,
                         const uint8_t *known, uint64_t id, acf_column_span *span);

#endif
