/* Nearest-neighbour donors (hot deck): imputes a row's missing cells from the stored training rows nearest to it.
 *
 * A network learns what is common to many rows. Donors serve where a few rows decide: a row that is in the table twice,
 * next year's model of a car, a relation between columns that few rows show. For each target column j by itself:
 *
 *     cost of row i            C_i = Σ over known cells k of near_jk |z_k - z_ik| + other_jk rare(x_k) [z_k ≠ z_ik]
 *                                    + apart_j |f - f_i|, z the encoded value, rare(x) the -log of the share of cells
 *                                    with that value, f the predicted value of column j given the row's other cells
 *                                    (donor_predict.h)
 *     donors of column j       rows in which it is observed, with weights w_i ∝ e^{-C_i}
 *     their distribution       q(x_j) = Σ w_i [(1-ε_j) at x_ij  +  ε_j Laplace around z_ij, or any class]
 *     their weight             h = σ(shift_j + slope · peak + agree · alike + given · log share of the row that is
 *                                    known):   p(x_j | x_o) = (1-h) p_net(x_j | x_o) + h q(x_j)
 *
 * near, other, apart, ε and the scales are learned from the table, with each row's donors among the others
 * (donor_learn.h). shift, slope, agree and given are learned on held-out cells (train/donor_trust.h), which also decide
 * whether the model has donors at all. The model file then holds the rows. Formulas: docs/math.md, 17. A row is never
 * its own donor: excluded are the stored row with its id and no other value, and a row that agrees with it more than
 * different rows do (donor_link.h). */
#ifndef ACF_DONORS_DONORS_H
#define ACF_DONORS_DONORS_H

#include "base/vmath.h"
#include "donors/predictor.h"
#include "table/encode.h"

#define ACF_DONORS_ROWS 20000 /* stored rows, at most: a search goes through all of them */
#define ACF_DONORS_ABSENT ACF_R(1e30)

typedef struct acf_linkage acf_linkage;

/* Constant once made: threads may share it. All arrays are owned, the encoder is borrowed. */
typedef struct acf_donors {
    const acf_encoder *encoder;
    int64_t N, D;
    uint64_t *id;             /* (N) */
    int32_t *code;            /* (D,N), column-major: index of the cell's value in its column; -1: missing */
    acf_real *place;          /* (D,N) z; ACF_DONORS_ABSENT: missing */
    int64_t *first;           /* (D+1) where a column's values begin */
    double *value;            /* (first[D]) each column's different values, ascending */
    double *share;            /* (first[D]) share of its cells that have the value */
    double *spot;             /* (first[D]) z of the value */
    double *mean;             /* (first[D]) mean of the distribution around a donor with this number */
    bool *number;             /* (D) false: classes */
    bool *full;               /* (D) no cell is missing */
    double *width;            /* (D) a value's probability is divided by it to give a density; 1 of classes */
    double *differ;           /* (D) ε */
    double *scale;            /* (D) of the Laplace distribution, in z */
    double *shift;            /* (D) */
    double *gain;             /* (D) nats per cell gained over the column's marginal; of learning, not in files */
    double *apart;            /* (D) cost in nats per unit between the predicted values; 0 where nothing is predicted */
    acf_real *predicted;      /* (D,N) of numbers */
    acf_predictor *predictor; /* NULL: no column is predicted */
    double *near, *other; /* (D,D) cost in nats, as donor of column j, per unit of distance in column k, and for another
                           * value there; 0 at j = k */
    double slope, agree, given;
    acf_linkage *linkage; /* closest pairs of different rows (donor_link.h); NULL: rows are identified by id alone */
} acf_donors;

/* Stores all rows of t, at most ACF_DONORS_ROWS, and learns. Cells that hold holds out (NULL: none) are not used as
 * targets. shift, slope, agree and given are 0. Keeps e. Gives *out; free with acf_donors_free. Fails: ACF_EMEMORY. */
acf_status acf_donors_make(const acf_table *t, const acf_encoder *e, const acf_holdout *hold, int threads,
                           acf_donors **out);
void acf_donors_free(acf_donors *m); /* NULL is allowed */

/* Memory for N rows with so many values, all zeros, for a reader to fill in. */
acf_status acf_donors_alloc(int64_t N, const acf_encoder *e, int64_t values, acf_donors **out);
/* Sets place, spot and mean from what was filled in. */
void acf_donors_ready(acf_donors *m);

/* ---- search ---------------------------------------------------------------------------------------------------- */

/* One term of the rows' cost: the distance in one column, or between predicted values; see acf_donors_add. */
typedef struct acf_donor_search_term {
    const acf_real *place; /* (N) */
    acf_real z, near, other, absent;
} acf_donor_search_term;

/* from: cells of a column below a value; to: those plus the cells equal to it. */
typedef struct acf_column_span {
    int32_t from, to;
} acf_column_span;

/* The donors of one cell. Used by one thread at a time. */
typedef struct acf_donor_search {
    const acf_donors *m;
    acf_donor_search_term *term; /* (D+1) of C */
    acf_real *cost;              /* (N) C; scratch after the search */
    int32_t *donor;              /* (n) rows with a weight; distant rows have none */
    double *weight;              /* (n) their weights, which sum to 1 */
    double *part;                /* scratch for sums over a column's classes */
    acf_column_span *span;       /* (D) scratch for acf_linkage_find */
    double *row;                 /* (coordinates) of the searched row */
    double *variance;            /* (coordinates) predictive variance where nothing is known; the end of row */
    acf_predictor_scratch scratch;
    int64_t n;
    double peak;  /* log(1 + log mean e^{mean C - C}): how much nearer donors are than the average row. C is scaled for
                   * rows in which all is known; where little is known, peak alone would trust donors too much */
    double alike; /* log of the ratio of the rows' spread in the column to the donors' */
    double given; /* log of the share of the distance that the known columns carry; near 0 for a complete row */
} acf_donor_search;

acf_status acf_donor_search_create(const acf_donors *m, acf_donor_search **out);
void acf_donor_search_free(acf_donor_search *r); /* NULL is allowed */

/* Donors of column j for the row with these values, x and known (D; known[j] is ignored), and this id. False: there are
 * none, and the results below are not defined. */
bool acf_donor_search_run(acf_donor_search *r, int64_t j, const double *x, const uint8_t *known, uint64_t id);

/* h. Below 1: a value that no donor has keeps the networks' probability, less some 37 nats. */
#define ACF_DONOR_TRUST_MOST (1 - 0x1p-53)
double acf_donor_search_trust(const acf_donor_search *r, int64_t j);

/* q(x), or the probability of a class. */
double acf_donor_search_density(const acf_donor_search *r, int64_t j, double x);
/* probs (classes) += part · q of every class of column j, in one pass over the donors. */
void acf_donor_search_add_classes(const acf_donor_search *r, int64_t j, double part, double *probs);
double acf_donor_search_mean(const acf_donor_search *r, int64_t j); /* of a number */
/* *x = the value with more than half of q; returns its probability. If there is none: any value, and at most half. */
double acf_donor_search_majority(const acf_donor_search *r, int64_t j, double *x);
/* A draw of q by three numbers uniform on (0,1); a value that the encoder can give. */
double acf_donor_search_draw(const acf_donor_search *r, int64_t j, const double u[3]);

/* q of a number in two parts. _observed: the donors' own values, ascending, with weights that sum to 1 - ε, into memory
 * for acf_donor_search_capacity of them; returns how many. _spread: n equally likely values of the rest. */
int64_t acf_donor_search_observed(const acf_donor_search *r, int64_t j, double *value, double *weight);
void acf_donor_search_spread(const acf_donor_search *r, int64_t j, int n, double *value);
static inline int64_t acf_donor_search_capacity(const acf_donors *m) {
    return m->N;
} /* no column has more values than rows */

/* ---- shared with learning -------------------------------------------------------------------------------------- */

/* The density around value x of column j at a donor's z, times the column's width: top at the same z, else
 * low · e^{-distance·rate}, the distance from [from, to]. */
typedef struct acf_donors_kernel {
    acf_real z, from, to, rate, low, top;
    acf_real smooth; /* the part of top that is not the point mass at the value */
} acf_donors_kernel;
acf_donors_kernel acf_donors_kernel_at(const acf_donors *m, int64_t j, double x);

static inline acf_real acf_donors_given(const acf_donors_kernel *k, acf_real z) {
    const acf_real below = k->from - z, above = z - k->to, away = below > above ? below : above;
    const acf_real smooth = k->low * acf_exp(-k->rate * (away > 0 ? away : 0));
    return z == k->z ? k->top : smooth;
}

/* cost (n) += near |z - place| + other [z ≠ place]; `absent` where place is missing. */
void acf_donors_add(acf_real *restrict cost, const acf_real *restrict place, int64_t n, acf_real z, acf_real near,
                    acf_real other, acf_real absent);

/* The least of n numbers; infinity where n is 0. By lanes: compilers vectorise that, and not every one a reduction. */
acf_real acf_donors_least(const acf_real *x, int64_t n);

/* For z in column k: the mean distance to its cells, and the share of cells with another value; used for rows in which
 * k is missing. 0 where all have one value. */
void acf_donors_usual(const acf_donors *m, int64_t k, acf_real z, double *away, double *another);

/* z of value x of column j; the value's code, -1: none; -log of the share of cells with that code. */
acf_real acf_donors_position(const acf_donors *m, int64_t j, double x);
int32_t acf_donors_code(const acf_donors *m, int64_t j, double x);
double acf_donors_rare(const acf_donors *m, int64_t j, int32_t code);

#endif
