/* The table model: one network for every conditional question about a table.
 *
 *     log p(x_u | x_o) = log p(x_u^c | x_o)                 categories, autoregressive           (like/categories.h)
 *                      + log p(z_u | x_o, x_u^c) + log|det|  reals, through the flow             (flow/flow.h, like/like.h)
 *
 * It works on batches in encoded units (table/batches.h): b marks what is given, m what is not missing, u = m·(1-b) is modelled.
 * Cells outside b and u are never read. A query changes only b and m, so one network answers them all:
 *
 *     conditional   b, m as given          joint      b = 0, m = 1
 *     marginal      b = 0, m = u           missing    m = 0 there, in training and in queries alike
 */
#ifndef ACF_MODEL_NET_H
#define ACF_MODEL_NET_H

#include "base/options.h"
#include "like/like.h"
#include "model/gmm_draws.h"
#include "table/batches.h"

typedef struct acf_net acf_net;

/* A network for these columns, sized by the options (model part of the option table), with initial values by seed. With train,
 * the twin slabs exist. Keeps dev; borrows the rest. Gives *out; free with acf_net_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_net_create(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, uint64_t seed,
                          bool train, acf_net **out);
/* The same in two steps: first its parameters by name and shape, without memory for their values, so that a file can be compared
 * with them; then the values. */
acf_status acf_net_declare(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, acf_net **out);
acf_status acf_net_build(acf_net *net, uint64_t seed, bool train);
/* The same for inference and without initial values: all are 0, until a file's take their place. */
acf_status acf_net_allocate(acf_net *net);
/* As acf_net_build left it with this seed, in the memory that is there. Fails: ACF_EMEMORY; then values are undefined. */
acf_status acf_net_restart(acf_net *net, uint64_t seed);
void acf_net_free(acf_net *net);
/* Would a network with these options have GRUs? Known before there is one, so that a device can be chosen for it (ops/devices.h). */
bool acf_net_recurrent(const acf_options *o);
bool acf_net_attends(const acf_net *net); /* its likelihood is attention */
acf_params *acf_net_params(acf_net *net);
int64_t acf_net_columns(const acf_net *net);

/* The real columns, and the anchor of their values (ops/mog.h): its room for components, 0 where the network has none, and its parameters
 * weight, mean and cov; or, where acf_net_factors is not 0, one Gaussian (ops/factors.h) with room for so many factors: weight, mean, load and
 * var. A new network has standard normal ones, which change nothing; train/gmm_fit.h fits them. */
const int32_t *acf_net_reals(const acf_net *net, int64_t *n);
int64_t acf_net_gmm_size(const acf_net *net);
int64_t acf_net_factors(const acf_net *net);
acf_param *const *acf_net_gmm(const acf_net *net);
/* The indicators that the anchor has besides the reals: n of them, each of a class `value` of a column of the table. */
int64_t acf_net_indicators(const acf_net *net, const int32_t **column, const int32_t **value);

/* After training, where held-out cells say that it is too sure (train/calibrate.h): the scales of all mixtures of reals times e^widen, logits of
 * classes times e^-soften. Only weights in `value` change, so densities stay normalised and all answers agree; 0 changes no bit. Is there something to widen,
 * to soften? Reals of the likelihood `gaussian` have no mixtures, and are left alone. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_net_calibrate(acf_net *net, double scale_factor, double temperature);
bool acf_net_widen_scale(const acf_net *net);
bool acf_net_soften_classes(const acf_net *net);

/* What a batch looks like to the network: made once per step, before any of the calls below. Lives on the tape. */
typedef struct acf_view acf_view;
/* Borrows the batch until the next begin; answers that come back to the host (draw, guess, spread) want one in host memory. pass NULL: inference. NULL after a failure, which the calls below accept. */
acf_view *acf_net_view(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass);

/* The attention likelihood goes through a row's cells in another order than that of its columns; order 0 is that one, and changes nothing. Each
 * order is a density of its own. Not while training. */
void acf_net_view_order(acf_tape *t, acf_view *v, uint32_t order);

/* The view answers with this set of parameters, the only one of g, in the place of its fitted mixture. Keeps g. v or g NULL: nothing changes. */
void acf_net_view_gmm(acf_view *v, const acf_gmm_draws *g);

/* (N): log p(x_u | x_o) in encoded units; 0 for a row with nothing to model. */
acf_tensor *acf_net_logp(acf_tape *t, acf_view *v);

/* (N): what each row's number counts in a mean over rows that have something to model (ops/reduce.h: acf_row_shares). */
acf_tensor *acf_net_shares(acf_tape *t, const acf_view *v, bool per_column);

/* What lies behind the transformations: z (T), packed over the modelled reals in rows and columns, and its log|det| (N; may be
 * NULL); and the way back to x (T). NULL and &t->empty stand for a table without reals and for a failure. Nothing here is
 * asked by users: it is where truths about the transformations can be seen. */
acf_tensor *acf_net_forward(acf_tape *t, acf_view *v, acf_tensor **logdet);
acf_tensor *acf_net_inverse(acf_tape *t, acf_view *v, acf_tensor *z);
const acf_subset *acf_net_modelled(const acf_view *v);

/* (N): squared error of the best guess over the row's modelled reals, differentiable; NULL when the table has no reals. */
acf_tensor *acf_net_guess_error(acf_tape *t, acf_view *v);

/* Fills the modelled cells of out (N,D; encoded, categories as codes) with one draw each, or with the best guess; other cells are
 * left alone. Tape not recording. d->at is not used; row ids are the batch's. */
acf_status acf_net_draw(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out);
acf_status acf_net_guess(acf_tape *t, acf_view *v, acf_real *out);

/* The same in two parts: the answer in device memory, all cells of the part's columns (d NULL: the best guess; members NULL where the table
 * has no such columns, and after a failure), and its modelled cells on the host, as the masks of this batch in host memory say. So the first can be
 * captured and replayed (tensor/tape_graph.h); d->now then says which draw it is. The first lives on the tape. */
typedef struct acf_answer {
    const acf_real *reals; /* (N, reals) */
    const int32_t *codes;  /* (N, categories) */
} acf_answer;
acf_answer acf_net_answer(acf_tape *t, acf_view *v, const acf_draw *d);
acf_status acf_net_fetch(acf_tape *t, const acf_net *net, acf_answer a, const acf_batch *batch, acf_real *out);

/* For rows that model one column each, p(x_j | x_o): row i of out (N,n; encoded) gets a stratified sample of n values
 * where it is a real; other rows are left alone. The reals' network is asked once, and only where some row asks for
 * one, whatever n; a transformation twice. Tape not recording. */
acf_status acf_net_cell_values(acf_tape *t, acf_view *v, int n, acf_real *out);

/* And into drawn (N,n) the same by other parameters in the place of the fitted mixture: value i by set i modulo
 * `use`, from 1 to sets->n. The network itself is asked once for both. sets NULL: nothing is drawn. */
acf_status acf_net_cell_values_drawn(acf_tape *t, acf_view *v, int n, acf_real *out, const acf_gmm_draws *sets, int use,
                                     acf_real *drawn);

/* For rows that model one column each: out[i] gets the code of the most probable class where that column is a
 * category; other rows are left alone. Tape not recording. */
acf_status acf_net_best_class(acf_tape *t, acf_view *v, acf_real *out);

/* For rows that model one column each: row i of out (N, acf_net_classes) gets p(class | x_o) of all classes where that column is a category, zeros
 * behind them; other rows are left alone. Tape not recording. */
acf_status acf_net_class_probs(acf_tape *t, acf_view *v, acf_real *out);
int64_t acf_net_classes(const acf_net *net); /* the most of a category; 0: there is none */

#endif
