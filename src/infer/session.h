/* Queries to a fitted model over the rows of a table, each row with its own masks.
 *
 *     log p(x_u | x_o)    acf_session_query_logp       any conditional, joint or marginal, in the table's units
 *     draws               acf_session_query_draw       one imputation of every target cell
 *     best guess          acf_session_query_guess      the inverse flow of the latent mean
 *     mean of each cell   acf_session_query_mean       of its own conditional p(x_j | x_o), or its most probable class
 *     interval of each    acf_session_query_interval   of the same conditional
 *     mean, quantiles     acf_session_query_summary    from draws
 *     each cell           acf_session_query_cells      log p of every present cell given the others of its row
 *     surprisal           acf_session_query_surprisal  how far each cell is in the tail of its conditional
 *
 * Rows are processed in batches. Results do not depend on the batch; a row's draws depend only on (seed, row id,
 * column, draw). Thread rule: one thread at a time uses a session; sessions may share a model. */
#ifndef ACF_INFER_SESSION_H
#define ACF_INFER_SESSION_H

#include "model/model.h"
#include "table/query.h"

typedef struct acf_session acf_session;

/* Keeps m, whose weights must have arrived on dev (acf_device_sync). The session has a device handle of its own, so
 * any number of sessions can run in parallel, one thread each. rows: of a batch. Gives *out; free with
 * acf_session_free. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_session_open(acf_device *dev, const acf_model *m, int64_t rows, acf_session **out);

/* Sets the precision of large matrix products; float at first. On a GPU a network with GRUs answers several times as
 * fast in tf32 (log p within about 1e-2 nats a row) or bf16. Fails: ACF_EDEVICE (not supported by the device). */
acf_status acf_session_set_precision(acf_session *s, acf_precision precision);

/* Sets the number of orders of the attention likelihood (model/net.h); 1 at first. log p is then that of their mean
 * density, and draws alternate between the orders. For models with that likelihood. Fails: ACF_EUSAGE (below 1). */
acf_status acf_session_set_orders(acf_session *s, int64_t orders);

/* out (N): log p of each row's target cells; missing target cells are left out. 0 if there is no target. */
acf_status acf_session_query_logp(acf_session *s, const acf_table *t, acf_query q, double *out);

/* out (N,D): the table with one draw in each target cell. Other present cells come back bit for bit, other missing
 * cells as NaN. */
acf_status acf_session_query_draw(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, uint32_t draw,
                                  double *out);
acf_status acf_session_query_guess(acf_session *s, const acf_table *t, acf_query q, double *out);

/* The same with the mean of p(x_j | x_o) in the table's units in each target cell, or its most probable class. Other
 * target cells of the row count as missing. It uses a stratified sample of ACF_MEAN_VALUES values, so it does not
 * depend on a seed. A cell costs about as much as three draws of a row with one target. */
#define ACF_MEAN_VALUES 128
acf_status acf_session_query_mean(acf_session *s, const acf_table *t, acf_query q, double *out);

/* The interval (interval.h) of each numeric target cell by the same conditionals: low and high (N,D). NaN for
 * categories and for other cells. mean (N,D; may be NULL): as acf_session_query_mean. If the model has parameter
 * draws, intervals use the first ACF_MEAN_SETS sets of each member; the mean uses the fitted parameters. Not random;
 * does not depend on the batch. Fails: ACF_EUSAGE (a level outside (0,1)), and as above. */
#define ACF_MEAN_SETS 8
acf_status acf_session_query_interval(acf_session *s, const acf_table *t, acf_query q, double level, double *mean,
                                      double *low, double *high);

/* From `draws` draws numbered 0, 1, ...: mean (N,D; may be NULL) and the quantiles level[0..n_levels) of each target
 * cell, quantile (n_levels,N,D; may be NULL). Other cells are NaN. A categorical column has its most frequent class
 * in place of both. Fails: ACF_EUSAGE (draws < 1, a level outside [0,1]), and as above. */
acf_status acf_session_query_summary(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws,
                                     const double *level, int n_levels, double *mean, double *quantile);

/* out (N,D): log p of each present cell given the other present cells of its row; NaN where missing. */
acf_status acf_session_query_cells(acf_session *s, const acf_table *t, double *out);

/* log p and surprisal (N,D) of each present cell; NaN where missing. The surprisal is -log of the two-sided
 * probability of a cell at least as far out in its conditional. A cell with a probability below 1 % is withheld from
 * the others of its row, the most surprising first (surprisal.c); given (N,D; may be NULL) marks the cells that are
 * not withheld. A cell of the table's file with an unseen level (table/table_file.h) counts as missing in t; its
 * probability is 1/(n+1) for n observed cells in training. Not random; does not depend on the batch. */
acf_status acf_session_query_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal,
                                       uint8_t *given);

#endif
