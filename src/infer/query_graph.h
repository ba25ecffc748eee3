/* The questions of a session that a GPU answers from a captured graph: log-likelihoods, draws and best guesses, batch after batch without asking
 * the host in between. Answers are those of the network asked by hand (model/net.h).
 *
 * A batch is copied to the device, padded to the session's rows. How many of its cells are modelled decides which graph answers: there is one for
 * every sixteenth of the cells, captured when it is first needed, so that little is computed for cells that nobody asked for. */
#ifndef ACF_INFER_QUERY_GRAPH_H
#define ACF_INFER_QUERY_GRAPH_H

#include "model/net.h"

typedef struct acf_query_graph acf_query_graph;

/* For batches of at most `rows` rows. Draws are made with the parameters that gmm holds when they are asked for; NULL: with the fitted ones. Keeps net, t and gmm. Gives *out, NULL on a device that captures nothing; free with acf_query_graph_free, before t.
 * Fails: ACF_EMEMORY. */
acf_status acf_query_graph_create(const acf_net *net, acf_tape *t, int64_t rows, const acf_gmm_draws *gmm,
                                  acf_query_graph **out);
void acf_query_graph_free(acf_query_graph *r); /* NULL is allowed */

/* After the device's precision or the network's weights have moved elsewhere: what was captured is forgotten. */
void acf_query_graph_forget(acf_query_graph *r);

/* The batch is a staged one (table/table_on_device.h). out (N): its log p, in host memory. out (N,D): a draw, or with d NULL the best guess, in the modelled cells of the batch. *by_hand:
 * this network cannot be captured; nothing has been written, and the caller asks it by hand. Fails as those of net.h do. */
acf_status acf_query_graph_logp(acf_query_graph *r, acf_batch *batch, acf_real *out, bool *by_hand);
acf_status acf_query_graph_answer(acf_query_graph *r, acf_batch *batch, const acf_draw *d, acf_real *out,
                                  bool *by_hand);

#endif
