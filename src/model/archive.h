/* An archive of rows: for tables whose rows repeat others, in whole or in part.
 *
 * A network learns what is true of many rows. Of a row that stands twice in the table, or of the next year's model of a car that is there already, the
 * best that can be said is what the other one has. So a row's unknown cells are also looked up in the rows that agree with it where it is known:
 *
 *     a row repeats row i      column k has the value of row i with probability 1 - ε_k, else any value
 *     how well i fits          A_i = Σ over known cells of log of that, against the share p_k of cells that have the value anyway
 *     donors of column j       rows that have it, in proportion w_i ∝ e^{A_i}
 *     what they say            q(x_j) = Σ w_i [(1-ε_j) at x_ij  +  ε_j Laplace around x_ij, or any class]
 *     whom to believe          h_j = σ(shift_j + slope · log mean e^{A_i}):     p(x_j | x_o) = (1-h_j) p_net(x_j | x_o) + h_j q(x_j)
 *
 * ε by EM on the table, each row looked up among the others; shift and slope by held-out cells (train/recall.h), which decide whether there is a memory at
 * all. Formulas: docs/math.md, 17. The model's file then holds the rows. A row is never looked up in itself: that is the one with its id. */
#ifndef ACF_MODEL_ARCHIVE_H
#define ACF_MODEL_ARCHIVE_H

#include "data/encode.h"

#define ACF_ARCHIVE_ROWS 20000 /* of a table that is remembered, at most: a look-up goes through all of them */

/* Nothing changes after it was made: threads may share it. All arrays are owned. */
typedef struct acf_archive {
    int64_t N, D;
    uint64_t *id;     /* (N) */
    int32_t *code;    /* (D,N), column after column: which of the column's values; -1: missing */
    int64_t *first;   /* (D+1) where a column's values begin */
    double *value;    /* (first[D]) each column's different values, ascending */
    double *share;    /* (first[D]) of its cells that have the value */
    bool *number;     /* (D) false: classes */
    double *width;    /* (D) what the probability of a value is divided by for a density; 1 of classes */
    double *differ;   /* (D) ε */
    double *scale;    /* (D) of the Laplace distribution */
    double *shift;    /* (D) */
    double *closer;   /* (D) log of how many times closer a donor's value is than that of any row, or less often another; EM's, not in files */
    double slope;
} acf_archive;

/* Remembers all rows of t, of at most ACF_ARCHIVE_ROWS, with ε of all columns from EM. shift and slope are 0. Gives *out; free with acf_archive_free.
 * Fails: ACF_EMEMORY. */
acf_status acf_archive_make(const acf_table *t, const acf_encoder *e, acf_archive **out);
void acf_archive_free(acf_archive *m); /* NULL is allowed */

/* Room for N rows of D columns with so many values, for a reader to fill in: all zeros. */
acf_status acf_archive_room(int64_t N, int64_t D, int64_t values, acf_archive **out);

/* ---- look-ups ------------------------------------------------------------------------------------------------------------- */

/* One row's. Used by one thread at a time. */
typedef struct acf_recall {
    const acf_archive *m;
    double *fit;    /* (N) A of the row looked up; -INFINITY of itself */
    double *weight; /* (N) of the donors of a column; 0 of others, and of those that fit worst */
    int32_t *donor; /* (n) rows with a weight */
    int64_t n;
} acf_recall;

acf_status acf_recall_create(const acf_archive *m, acf_recall **out);
void acf_recall_free(acf_recall *r); /* NULL is allowed */

/* Looks up the row with these values, x and known (D), of this id. */
void acf_recall_row(acf_recall *r, const double *x, const uint8_t *known, uint64_t id);

/* Its donors of column j, for the questions below. Returns log mean e^A of them; -INFINITY: there is none, and nothing to ask. */
double acf_recall_column(acf_recall *r, int64_t j);

/* h_j, from what acf_recall_column returned. Never quite 1: what no donor has stays as possible as the networks say, and some 37 nats less. */
#define ACF_RECALL_MOST (1 - 0x1p-53)
double acf_recall_trust(const acf_archive *m, int64_t j, double evidence);

double acf_recall_density(const acf_recall *r, int64_t j, double x);  /* q(x), or the probability of a class */
double acf_recall_mean(const acf_recall *r, int64_t j);               /* of a number */
double acf_recall_draw(const acf_recall *r, int64_t j, const double u[3]); /* by three numbers uniform on (0,1); not rounded */

#endif
