/* Questions to a fitted model, over the rows of a table, each row with its own masks.
 *
 *     log p(x_u | x_o)    acf_session_query_logp      any conditional, joint or marginal, in the table's units
 *     draws               acf_session_query_draw      one imputation of every asked cell
 *     one best guess      acf_session_query_guess     the inverse flow of the latent mean
 *     mean of each cell   acf_session_query_mean      of its own conditional p(x_j | x_o), or its most probable class
 *     interval of each    acf_session_query_interval  of the same conditional
 *     mean, quantiles     acf_session_query_summary   from draws
 *     each cell           acf_session_query_cells     log p of every present cell given the others of its row
 *     what looks wrong    acf_session_query_surprisal  how far out of its conditional each cell is
 *
 * Rows go through in batches; results do not depend on the batch, and a row's draws only on (seed, row id, column, draw). Thread
 * rule: a session is used by one thread at a time; sessions may share a model. */
#ifndef ACF_INFER_SESSION_H
#define ACF_INFER_SESSION_H

#include "model/model.h"
#include "table/query.h"

typedef struct acf_session acf_session;

/* Keeps m, whose weights must be on dev by now (acf_device_sync). It works on a handle of its own, so that any number
 * of sessions may be asked at once, each by one thread. rows: of a batch. Gives *out; free with acf_session_free. Fails:
 * ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_session_open(acf_device *dev, const acf_model *m, int64_t rows, acf_session **out);

/* What large products are multiplied in from now on; float at first. On a GPU a network with GRUs answers several times as fast in tf32 (log p within
 * about 1e-2 nats a row) or bf16. Fails: ACF_EDEVICE (the device cannot). */
acf_status acf_session_set_precision(acf_session *s, acf_precision precision);

/* From now on log p is that of the mean density of so many orders of the attention likelihood (model/net.h), and draws take the orders in turn; 1 at
 * first. For models with that likelihood. Fails: ACF_EUSAGE (below 1). */
acf_status acf_session_set_orders(acf_session *s, int64_t orders);

/* out (N): log p of each row's asked cells; asked cells that are missing take no part. 0 where nothing is asked. */
acf_status acf_session_query_logp(acf_session *s, const acf_table *t, acf_query q, double *out);

/* out (N,D): the table with one draw in each asked cell. Present cells that are not asked for come back as they were, to the bit;
 * missing ones that are not asked for as NaN. */
acf_status acf_session_query_draw(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, uint32_t draw,
                                  double *out);
acf_status acf_session_query_guess(acf_session *s, const acf_table *t, acf_query q, double *out);

/* The same with the mean of p(x_j | x_o) in the table's units in each asked cell, or its most probable class: every other asked cell
 * of the row counts as missing. Of a stratified sample of ACF_MEAN_VALUES values, so the same for any seed. A cell costs about as
 * much as three draws of a row that asks for one column. */
#define ACF_MEAN_VALUES 128
acf_status acf_session_query_mean(acf_session *s, const acf_table *t, acf_query q, double *out);

/* By the same conditionals, the interval of each asked number (interval.h): low and high (N,D). NaN for categories,
 * and for cells that are not asked for. mean (N,D), which may be NULL: what acf_session_query_mean gives. Where the model has
 * parameter draws, an interval is of the first ACF_MEAN_SETS sets of each member; the mean is of the fitted
 * parameters. Not random; does not depend on the batch. Fails: ACF_EUSAGE (a level outside (0,1)), and as above. */
#define ACF_MEAN_SETS 8
acf_status acf_session_query_interval(acf_session *s, const acf_table *t, acf_query q, double level, double *mean,
                                      double *low, double *high);

/* From `draws` draws numbered 0, 1, ...: mean and the quantiles q[0..n_q) of each asked cell. mean (N,D) may be NULL; quantile
 * (n_q,N,D) likewise. Cells that are not asked for are NaN. A categorical column has no mean or quantiles: its most frequent
 * class stands for both. Fails: ACF_EUSAGE (draws < 1, a q outside [0,1]), and as above. */
acf_status acf_session_query_summary(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws,
                                     const double *level, int n_levels, double *mean, double *quantile);

/* out (N,D): log p of each present cell given the other present cells of its row; NaN where missing. */
acf_status acf_session_query_cells(acf_session *s, const acf_table *t, double *out);

/* Of each present cell log p and surprise (N,D): -log of the probability that a cell is as far out of its conditional as this one, either way. A cell that fewer than
 * 1 % are as far out as is not given to the others of its row, the most surprising first (surprisal.c); given (N,D; may be NULL) says which are. A cell of the table's
 * file with a level that was never seen (table/table_file.h: strangers), though missing in t, has the probability 1/(n+1) with the n cells that the model was made from.
 * NaN where missing. Not random; does not depend on the batch. */
acf_status acf_session_query_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal,
                                       uint8_t *given);

#endif
