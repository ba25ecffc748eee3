/* Session queries that a GPU answers from CUDA graphs: log-likelihoods, draws and best guesses, batch after batch
 * without involving the host. The answers equal those of the network without graphs (model/net.h).
 *
 * A batch is copied to the device, padded to the session's rows. The graph is chosen by the number of modelled
 * cells. There is one graph for every sixteenth of the cells, captured on first use, so that little is computed for
 * cells that are not targets. */
#ifndef ACF_INFER_QUERY_GRAPH_H
#define ACF_INFER_QUERY_GRAPH_H

#include "model/net.h"

typedef struct acf_query_graph acf_query_graph;

/* For batches of at most `rows` rows. Draws use the parameters that gmm holds at that time; NULL: the fitted ones.
 * Keeps net, t and gmm. Gives *out, NULL on a device that captures no graphs; free with acf_query_graph_free, before
 * t. Fails: ACF_EMEMORY. */
acf_status acf_query_graph_create(const acf_net *net, acf_tape *t, int64_t rows, const acf_gmm_draws *gmm,
                                  acf_query_graph **out);
void acf_query_graph_free(acf_query_graph *r); /* NULL is allowed */

/* Discards the graphs: after a change of precision, or when the network's weights have moved. */
void acf_query_graph_forget(acf_query_graph *r);

/* The batch is a staged one (table/table_on_device.h). logp: out (N) on the host. answer: out (N,D) gets a draw, or
 * with d NULL the best guess, in the modelled cells. *by_hand: this network cannot be captured; nothing was written,
 * and the caller runs the query without a graph. Fails as the functions of net.h do. */
acf_status acf_query_graph_logp(acf_query_graph *r, acf_batch *batch, acf_real *out, bool *by_hand);
acf_status acf_query_graph_answer(acf_query_graph *r, acf_batch *batch, const acf_draw *d, acf_real *out,
                                  bool *by_hand);

#endif
