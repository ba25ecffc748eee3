/* Answers of a model with donors (donors/donors.h): combines the networks' answer for a cell with that of its donors.
 *
 * One cell: p(x_j | x_o) = (1-h) p_net(x_j | x_o) + h q(x_j). Several target cells of a row follow the chain rule: each
 * is answered given those before it, so log p = Σ log p(x_j | x_o, x_before) is exact, and draws follow it. Columns
 * that were observed in more rows come first: cells of a rarely observed column are uncertain, and every cell behind
 * would be conditioned on them. */
#ifndef ACF_DONORS_DONOR_ANSWERS_H
#define ACF_DONORS_DONOR_ANSWERS_H

#include "donors/donors.h"
#include "table/interval.h"
#include "table/query.h"

/* ---- autoregressive chain -------------------------------------------------------------------------------------- */

/* The t-th target cell of every row, for t = 1, 2, ... */
typedef struct acf_autoregression {
    const acf_table *t;
    acf_query all; /* the caller's query */
    acf_purpose why;
    acf_query q;             /* the current step's query: given are the row's given cells and those of earlier steps */
    const int32_t *order;    /* (D) of the columns */
    int32_t *at;             /* (N) position in order: columns finished or current */
    int32_t *column;         /* (N) the current cell's column; -1: the row has no more */
    uint8_t *given, *target; /* (N,D) of q; owned, like column and at */
} acf_autoregression;

/* order (D): columns by decreasing number of observed cells. Fails: ACF_EMEMORY. */
acf_status acf_autoregression_order(const acf_encoder *e, int32_t **order);

/* Borrows t, q's masks and order. Fails: ACF_EMEMORY. Free with acf_autoregression_end. */
acf_status acf_autoregression_begin(acf_autoregression *chain, const acf_table *t, acf_query q, acf_purpose why,
                                    const int32_t *order);
bool acf_autoregression_next(acf_autoregression *chain); /* next step; false: no row has another target cell */
void acf_autoregression_end(acf_autoregression *chain);

/* ---- answers --------------------------------------------------------------------------------------------------- */

typedef struct acf_donor_answers acf_donor_answers;

/* For one parallel region of `threads` threads; a row is answered by one thread. Keeps d. Gives *out; free with
 * acf_donor_answers_free. Fails: ACF_EMEMORY. */
acf_status acf_donor_answers_create(const acf_donors *d, int threads, acf_donor_answers **out);
void acf_donor_answers_free(acf_donor_answers *l); /* NULL is allowed */

/* _logp: log p of the current cell of row i. _cell: log p of a cell given all others of its row. logp: the networks'
 * value. */
double acf_donor_answers_logp(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                              double logp);
double acf_donor_answers_cell(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j, double logp);

/* The same in steps, for many values of one cell. _look searches the donors and gives h. Then, by the same thread
 * before its next search and where h > 0, _value draws from q by three numbers uniform on (0,1). */
double acf_donor_answers_look(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j);
double acf_donor_answers_value(acf_donor_answers *l, int64_t j, const double u[3]);

/* *x, a draw of the networks for the current cell of row i, becomes a draw of the mixture; by (seed, row, column,
 * draw). */
void acf_donor_answers_draw(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                            uint64_t seed, uint32_t draw, double *x);

/* The networks' *mean of a number, or the probs of a category's classes, which sum to `members`, become those of the
 * mixture. The other target cells of q are not used as given. Returns h. */
double acf_donor_answers_mean(acf_donor_answers *l, const acf_table *t, acf_query q, int64_t i, int64_t j, int members,
                              double *mean, double *probs);

/* Writes q for a number of column j into d, which has memory for acf_donor_answers_capacity(l) values; the weights sum
 * to h > 0. Call by the thread that made the last search. */
void acf_donor_answers_distribution(acf_donor_answers *l, int64_t j, double h, acf_weighted *d);
int64_t acf_donor_answers_capacity(const acf_donor_answers *l);

#endif
