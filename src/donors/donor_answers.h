/* Answers with an archive (donors/donors.h): what the networks say of a cell, and what the rows say that agree with its row, as one.
 *
 * A single cell is p(x_j | x_o) = (1-h) p_net(x_j | x_o) + h q(x_j). Several cells of a row are asked one by one, each given those before
 * it: an exact chain, log p = Σ log p(x_j | x_o, x_before), and draws follow it. Columns that were observed in more rows come first: what is known of a column that
 * few rows have is far from certain, and those that come behind it would take it for given. */
#ifndef ACF_DONORS_DONOR_ANSWERS_H
#define ACF_DONORS_DONOR_ANSWERS_H

#include "donors/donors.h"
#include "table/interval.h"
#include "table/query.h"

/* ---- cells in turn -------------------------------------------------------------------------------------------------------------- */

/* The t-th asked cell of every row, for t = 1, 2, ... */
typedef struct acf_autoregression {
    const acf_table *t;
    acf_query all; /* as it was asked */
    acf_purpose why;
    acf_query q;             /* for the cells whose turn it is: their row's given cells, and those before them */
    const int32_t *order;    /* (D) of the columns */
    int32_t *at;             /* (N) how many columns of it are done, or at hand */
    int32_t *column;         /* (N) the cell whose turn it is; -1: the row has no more */
    uint8_t *given, *target; /* (N,D) of q; owned, like column and at */
} acf_autoregression;

/* order (D): columns that were observed more often first. Fails: ACF_EMEMORY. */
acf_status acf_autoregression_order(const acf_encoder *e, int32_t **order);

/* Borrows t, q's masks and order. Fails: ACF_EMEMORY. Free with acf_autoregression_end. */
acf_status acf_autoregression_begin(acf_autoregression *chain, const acf_table *t, acf_query q, acf_purpose why,
                                    const int32_t *order);
bool acf_autoregression_next(acf_autoregression *chain); /* false: no row has another */
void acf_autoregression_end(acf_autoregression *chain);

/* ---- answers -------------------------------------------------------------------------------------------------------------------- */

typedef struct acf_donor_answers acf_donor_answers;

/* For rows that as many threads of one parallel region ask about, each row by one of them. Keeps d. Gives *out; free with acf_donor_answers_free. Fails: ACF_EMEMORY. */
acf_status acf_donor_answers_create(const acf_donors *d, int threads, acf_donor_answers **out);
void acf_donor_answers_free(acf_donor_answers *l); /* NULL is allowed */

/* log p of the cell of row i whose turn it is, of a cell given all others of its row; logp: the networks'. */
double acf_donor_answers_logp(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                              double logp);
double acf_donor_answers_cell(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j, double logp);

/* The same in steps, for many values of one cell: the look-up, which gives h; then, by the same thread before its next look-up and where h > 0, a value that
 * the rows give for three numbers uniform on (0,1). */
double acf_donor_answers_look(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j);
double acf_donor_answers_value(acf_donor_answers *l, int64_t j, const double u[3]);

/* *x, a draw of the networks for the cell of row i whose turn it is, becomes one of both; by (seed, row, column, draw). */
void acf_donor_answers_draw(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                            uint64_t seed, uint32_t draw, double *x);

/* *mean of a number, or probs of a category's classes, which sum to `members`, of the networks: becomes those of both.
 * What q asks for besides the cell is not known. Returns h. */
double acf_donor_answers_mean(acf_donor_answers *l, const acf_table *t, acf_query q, int64_t i, int64_t j, int members,
                              double *mean, double *probs);

/* Into d, which has room for acf_donor_answers_capacity(l) values: what donors give for a number of column j, with weights that
 * sum to h, which is above 0. By the thread whose look-up was the last. */
void acf_donor_answers_distribution(acf_donor_answers *l, int64_t j, double h, acf_weighted *d);
int64_t acf_donor_answers_capacity(const acf_donor_answers *l);

#endif
