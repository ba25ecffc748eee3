/* An archive of rows: what rows like this one have.
 *
 * A network learns what is true of many rows. Of a row that stands twice in the table, of the next year's model of a car, or where a column follows others along
 * a path that few rows mark, the best that can be said is what the nearest rows have. So a row's unknown cells are also looked up:
 *
 *     how far row i is         C_i = Σ over known cells k of near_jk |z_k - z_ik| + other_jk rare(x_k) [z_k ≠ z_ik]  +  apart_j |f - f_i|, z the encoder's, rare(x)
 *                              the -log of the share of cells that have the value, f what column j is expected to be, given the row's other cells
 *                              (donor_predict.h); for each asked column j by itself
 *     donors of column j       rows that have it, in proportion w_i ∝ e^{-C_i}
 *     what they say            q(x_j) = Σ w_i [(1-ε_j) at x_ij  +  ε_j Laplace around z_ij, or any class]
 *     whom to believe          h = σ(shift_j + slope · how near they are + agree · how much alike + given · how much of the row is given):   p(x_j | x_o) = (1-h) p_net(x_j | x_o) + h q(x_j)
 *
 * near, other, apart, ε and the scales are learned from the table, each row looked up among the others (donor_learn.h); shift, slope and agree by held-out cells
 * (train/donor_trust.h), which decide whether there is an archive at all. Formulas: docs/math.md, 17. The model's file then holds the rows. A row is never its own
 * donor: that is the stored row with its id and no other value, or one that agrees with it as different rows do not (donor_link.h). */
#ifndef ACF_DONORS_DONORS_H
#define ACF_DONORS_DONORS_H

#include "base/vmath.h"
#include "donors/predictor.h"
#include "table/encode.h"

#define ACF_DONORS_ROWS 20000 /* of a table that is remembered, at most: a look-up goes through all of them */
#define ACF_DONORS_ABSENT ACF_R(1e30)

typedef struct acf_linkage acf_linkage;

/* Nothing changes after it was made: threads may share it. All arrays are owned, the encoder is borrowed. */
typedef struct acf_donors {
    const acf_encoder *encoder;
    int64_t N, D;
    uint64_t *id;    /* (N) */
    int32_t *code;   /* (D,N), column after column: which of the column's values; -1: missing */
    acf_real *place; /* (D,N) z; ACF_DONORS_ABSENT: missing */
    int64_t *first;  /* (D+1) where a column's values begin */
    double *value;   /* (first[D]) each column's different values, ascending */
    double *share;   /* (first[D]) of its cells that have the value */
    double *spot;    /* (first[D]) z of the value */
    double *mean;    /* (first[D]) of what a donor with this number gives */
    bool *number;    /* (D) false: classes */
    bool *full;      /* (D) no cell is missing */
    double *width;   /* (D) what the probability of a value is divided by for a density; 1 of classes */
    double *differ;  /* (D) ε */
    double *scale;   /* (D) of the Laplace distribution, of z */
    double *shift;   /* (D) */
    double *gain;    /* (D) nats that donors know of a cell beyond its column; learning's, not in files */
    double *
        apart; /* (D) nats that a donor loses for each unit that it is expected to be elsewhere; 0 where nothing is expected */
    acf_real *predicted;      /* (D,N) of numbers */
    acf_predictor *predictor; /* NULL: nothing is expected of any column */
    double *near,
        *other; /* (D,D) nats that a donor of column j loses for column k: for each unit of distance, and for another value; 0 at j = k */
    double slope, agree, given;
    acf_linkage *linkage; /* how close different rows come (donor_link.h); NULL: rows are known by their ids alone */
} acf_donors;

/* Remembers all rows of t, of at most ACF_DONORS_ROWS, and learns. Cells that hold holds out (NULL: none) are not asked for in learning. shift, slope and agree are
 * 0. Keeps e. Gives *out; free with acf_donors_free. Fails: ACF_EMEMORY. */
acf_status acf_donors_make(const acf_table *t, const acf_encoder *e, const acf_holdout *hold, int threads,
                           acf_donors **out);
void acf_donors_free(acf_donors *m); /* NULL is allowed */

/* Room for N rows with so many values, for a reader to fill in: all zeros. */
acf_status acf_donors_alloc(int64_t N, const acf_encoder *e, int64_t values, acf_donors **out);
/* place and mean from what was filled in. */
void acf_donors_ready(acf_donors *m);

/* ---- look-ups ------------------------------------------------------------------------------------------------------------- */

/* What rows lose for their distance in one column, or in what is expected of them: see acf_donors_add. */
typedef struct acf_donor_search_term {
    const acf_real *place; /* (N) */
    acf_real z, near, other, absent;
} acf_donor_search_term;

/* Cells of a column with less than a value, and those and the cells that have it. */
typedef struct acf_column_span {
    int32_t from, to;
} acf_column_span;

/* One cell's. Used by one thread at a time. */
typedef struct acf_donor_search {
    const acf_donors *m;
    acf_donor_search_term *term; /* (D+1) of C */
    acf_real *cost;              /* (N) C; then room */
    int32_t *donor;              /* (n) rows with a weight; those that are far have none */
    double *weight;              /* (n) their weights, which sum to 1 */
    double *part;                /* room for sums of a column's classes */
    acf_column_span *span;       /* (D) room for acf_linkage_find */
    double *row;                 /* (coordinates) of the row that is looked up */
    double *variance;            /* (coordinates) of what is expected where nothing is known; the end of row */
    acf_predictor_scratch desk;
    int64_t n;
    double
        peak; /* log(1 + log mean e^{mean C - C}): how much nearer donors are than rows are. C is scaled for rows of which all is known; of a row of which
                       * little is, it would say that donors tell all */
    double alike; /* log of how many times less donors differ in the column than rows do */
    double
        given; /* log of the share of the distance that the known columns can tell; near 0 where all of the row is known */
} acf_donor_search;

acf_status acf_donor_search_create(const acf_donors *m, acf_donor_search **out);
void acf_donor_search_free(acf_donor_search *r); /* NULL is allowed */

/* Donors of column j for the row with these values, x and known (D), of this id; known[j] is not looked at. False: there is none, and nothing to ask. */
bool acf_donor_search_run(acf_donor_search *r, int64_t j, const double *x, const uint8_t *known, uint64_t id);

/* h. Never quite 1: what no donor has stays as possible as the networks say, and some 37 nats less. */
#define ACF_DONOR_TRUST_MOST (1 - 0x1p-53)
double acf_donor_search_trust(const acf_donor_search *r, int64_t j);

double acf_donor_search_density(const acf_donor_search *r, int64_t j,
                                double x); /* q(x), or the probability of a class */
/* probs (classes) += part · q of every class of column j, in one pass over the donors. */
void acf_donor_search_add_classes(const acf_donor_search *r, int64_t j, double part, double *probs);
double acf_donor_search_mean(const acf_donor_search *r, int64_t j); /* of a number */
/* *x = the value that more than half of q is for, and what is for it; without one, any value and no more than half. */
double acf_donor_search_majority(const acf_donor_search *r, int64_t j, double *x);
double
acf_donor_search_draw(const acf_donor_search *r, int64_t j,
                      const double u[3]); /* by three numbers uniform on (0,1); a value that the encoder can give */

/* q of a number in two parts. The very values of donors, ascending, with weights that sum to 1 - ε, into memory for
 * acf_donor_search_capacity of them: returns how many. And n values of the rest, each as likely as another. */
int64_t acf_donor_search_observed(const acf_donor_search *r, int64_t j, double *value, double *weight);
void acf_donor_search_spread(const acf_donor_search *r, int64_t j, int n, double *value);
static inline int64_t acf_donor_search_capacity(const acf_donors *m) {
    return m->N;
} /* no column has more values than rows */

/* ---- what learning shares with it ------------------------------------------------------------------------------------------ */

/* What a donor gives to the value x of column j, times the column's width: top if it has that very place, else low · e^{-distance·rate}, from [from, to]. */
typedef struct acf_donors_kernel {
    acf_real z, from, to, rate, low, top;
    acf_real smooth; /* the part of top that is not for having the very value */
} acf_donors_kernel;
acf_donors_kernel acf_donors_kernel_at(const acf_donors *m, int64_t j, double x);

static inline acf_real acf_donors_given(const acf_donors_kernel *k, acf_real z) {
    const acf_real below = k->from - z, above = z - k->to, away = below > above ? below : above;
    const acf_real smooth = k->low * acf_exp(-k->rate * (away > 0 ? away : 0));
    return z == k->z ? k->top : smooth;
}

/* cost (n) += near |z - place| + other [z ≠ place], `absent` where there is no place. */
void acf_donors_add(acf_real *restrict cost, const acf_real *restrict place, int64_t n, acf_real z, acf_real near,
                    acf_real other, acf_real absent);

/* The least of n numbers; infinity where there is none. Lane by lane: compilers make vectors of that, also those that do not of a reduction. */
acf_real acf_donors_least(const acf_real *x, int64_t n);

/* Of a place z in column k, the mean distance to its cells, and the share of those with another value: for rows that have none. 0 where all have one. */
void acf_donors_usual(const acf_donors *m, int64_t k, acf_real z, double *away, double *another);

/* The place of value x of column j; which of its values it is, -1: none; and how much it tells to have that one, -log of its share. */
acf_real acf_donors_position(const acf_donors *m, int64_t j, double x);
int32_t acf_donors_code(const acf_donors *m, int64_t j, double x);
double acf_donors_rare(const acf_donors *m, int64_t j, int32_t code);

#endif
