/* Queries to one ensemble member, one batch of rows at a time. session.h queries all members and combines their
 * answers.
 *
 *     load      rows of a table, with b and m as the query says
 *     then      score: log p of each        answer: a draw or the best guess
 *               cell values: of single cells        classes: their probabilities
 *
 * Thread rule: used by one thread at a time. */
#ifndef ACF_INFER_MEMBER_H
#define ACF_INFER_MEMBER_H

#include "infer/query_graph.h"
#include "infer/session.h"
#include "table/query.h"

/* Its fields may be read from outside. */
typedef struct acf_member {
    acf_device *dev;
    const acf_model *m; /* one member; its `next` is ignored */
    acf_tape *t;
    acf_batch *batch;
    int64_t *row;                 /* (rows) table rows of the batch */
    acf_real *cells;              /* (rows,D) answers of the network, encoded */
    acf_real *cell_values;        /* (rows, ACF_MEAN_VALUES) values of single cells, encoded */
    acf_real *drawn;              /* the same under parameter draws; NULL: the model has none */
    acf_query_graph *query_graph; /* on a GPU; NULL: queries run without CUDA graphs */
    acf_gmm_draws *gmm;           /* parameters for draws; NULL: the fitted ones */
    /* Orders of the attention likelihood (acf_net_view_order): scores average over them, draws alternate. */
    uint32_t orders;
    uint32_t turns; /* draws per order, the number of members: every member draws in every order */
    double *sum;    /* (rows) scratch of the average over orders */
} acf_member;

/* Keeps dev, whose precision it uses, and m. rows: of a batch, at least 1. Gives *out; free with acf_member_free.
 * Fails: ACF_EMEMORY. */
acf_status acf_member_create(acf_device *dev, const acf_model *m, int64_t rows, acf_member **out);
void acf_member_free(acf_member *s); /* NULL is allowed */

/* Loads these n rows of t. */
void acf_member_load(acf_member *s, const acf_table *t, acf_query q, acf_purpose why, const int64_t *row, int64_t n);

/* Loads a row of the batch for each single target cell: of table row row[i], column[i]. Other targets of that row
 * count as missing. */
void acf_member_load_cells(acf_member *s, const acf_table *t, acf_query q, const int64_t *row, const int32_t *column,
                           int64_t n);

/* Is this cell of the batch a target? */
static inline bool acf_member_is_target(const acf_member *s, int64_t cell) {
    return s->batch->m[cell] && !s->batch->b[cell];
}

/* out (n): log p of the loaded rows in the table's units. Fails: ACF_ENUMERIC, ACF_EMEMORY, ACF_EDEVICE, like the
 * others. */
acf_status acf_member_score(acf_member *s, const acf_table *t, double *out);

/* Sets the parameter set of draws to i, modulo the number of sets; initially 0. Does nothing if the model has none. */
acf_status acf_member_use(acf_member *s, uint32_t i);

/* Sets the number of orders, at least 1 (initially 1), and turns as above, at least 1. */
void acf_member_orders(acf_member *s, uint32_t orders, uint32_t turns);

/* Into `cells`: a draw of the loaded rows, or with d NULL the best guess. */
acf_status acf_member_answer(acf_member *s, const acf_draw *d);

/* Into `cell_values`: the values of acf_net_cell_values for loaded cells. drawn not NULL: *drawn = those of
 * acf_net_cell_values_drawn with ACF_MEAN_SETS parameter sets, or `cell_values` if the model has none. */
acf_status acf_member_cell_values(acf_member *s, const acf_real **drawn);

/* out (n): those of acf_net_best_class. */
acf_status acf_member_best_class(acf_member *s, acf_real *out);

/* out (n, acf_net_classes): those of acf_net_class_probs. */
acf_status acf_member_classes(acf_member *s, acf_real *out);

#endif
