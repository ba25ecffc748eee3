/* The table model: one network for every conditional query about a table.
 *
 *     log p(x_u | x_o) = log p(x_u^c | x_o)                  categories, autoregressive  (like/categories.h)
 *                      + log p(z_u | x_o, x_u^c) + log|det|  reals, through the flow     (flow/flow.h, like/like.h)
 *
 * It works on batches in encoded units (table/batches.h): b marks given cells, m cells that are not missing, u =
 * m·(1-b) is modelled. Cells outside b and u are never read. Queries differ only in b and m, so one network answers
 * them all:
 *
 *     conditional   b, m as given          joint      b = 0, m = 1
 *     marginal      b = 0, m = u           missing    m = 0 there, in training and in queries alike */
#ifndef ACF_MODEL_NET_H
#define ACF_MODEL_NET_H

#include "base/options.h"
#include "like/like.h"
#include "model/gmm_draws.h"
#include "table/batches.h"

typedef struct acf_net acf_net;

/* A network for these columns, sized by the options (model part of the option table), with initial values by seed.
 * With train, it has the twin slabs. Keeps dev; borrows the rest. Gives *out; free with acf_net_free. Fails:
 * ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_net_create(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, uint64_t seed,
                          bool train, acf_net **out);
/* The same in two steps. declare: names and shapes of the parameters, without memory for values, so that they can be
 * compared with a file. build: the values. */
acf_status acf_net_declare(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, acf_net **out);
acf_status acf_net_build(acf_net *net, uint64_t seed, bool train);
/* For inference, without initial values: all are 0 until they are read from a file. */
acf_status acf_net_allocate(acf_net *net);
/* Restores the values of acf_net_build with this seed, in the existing memory. Fails: ACF_EMEMORY; then values are
 * undefined. */
acf_status acf_net_restart(acf_net *net, uint64_t seed);
void acf_net_free(acf_net *net);
/* Would a network with these options have GRUs? Answered before the network exists, to choose a device for it
 * (device/choice.h). */
bool acf_net_recurrent(const acf_options *o);
bool acf_net_attends(const acf_net *net); /* the likelihood is attention */
acf_params *acf_net_params(acf_net *net);
int64_t acf_net_columns(const acf_net *net);

/* The real columns, and the Gaussian mixture in front of the network (ops/mog.h): its capacity in components, 0 if
 * there is none, and its parameters weight, mean and cov. If acf_net_factors is not 0, it is instead one Gaussian of
 * that many factors at most (ops/factors.h): weight, mean, load and var. A new network has standard normal ones,
 * which change nothing; train/gmm_fit.h fits them. */
const int32_t *acf_net_reals(const acf_net *net, int64_t *n);
int64_t acf_net_gmm_size(const acf_net *net);
int64_t acf_net_factors(const acf_net *net);
acf_param *const *acf_net_gmm(const acf_net *net);
/* The indicators of the Gaussian mixture beside the reals: n of them, each for class `value` of a column of the
 * table. */
int64_t acf_net_indicators(const acf_net *net, const int32_t **column, const int32_t **value);

/* Calibrates a trained network with factors from held-out cells (train/calibrate.h): multiplies the scales of all
 * mixtures of reals by e^scale_factor and the logits of classes by e^-temperature. Only weights in `value` change,
 * so densities stay normalised and all answers agree; 0 changes no bit. The two predicates tell whether there are
 * scales or classes to calibrate. Reals of the likelihood `gaussian` have no mixtures and stay. Fails: ACF_EMEMORY,
 * ACF_EDEVICE. */
acf_status acf_net_calibrate(acf_net *net, double scale_factor, double temperature);
bool acf_net_widen_scale(const acf_net *net);
bool acf_net_soften_classes(const acf_net *net);

/* A batch as the network sees it: made once per step, before any of the calls below. Lives on the tape. */
typedef struct acf_view acf_view;
/* Borrows the batch until the next begin. Answers that return to the host (draw, guess, cell values) need a batch in
 * host memory. pass NULL: inference. NULL after a failure; the calls below accept that. */
acf_view *acf_net_view(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass);

/* Chooses the order in which the attention likelihood goes through a row's cells. Order 0 is that of the columns and
 * changes nothing. Each order gives a density of its own. Not while training. */
void acf_net_view_order(acf_tape *t, acf_view *v, uint32_t order);

/* Answers use the parameters of g, which holds one set, instead of the fitted mixture. Keeps g. v or g NULL: nothing
 * changes. */
void acf_net_view_gmm(acf_view *v, const acf_gmm_draws *g);

/* (N): log p(x_u | x_o) in encoded units; 0 for a row with nothing to model. */
acf_tensor *acf_net_logp(acf_tape *t, acf_view *v);

/* (N): weight of each row in a mean over rows that have something to model (ops/reduce.h: acf_row_shares). */
acf_tensor *acf_net_shares(acf_tape *t, const acf_view *v, bool per_column);

/* The latent values z (T), packed over the modelled reals in rows and columns, and log|det| (N; may be NULL); and
 * the inverse, x (T). NULL and &t->empty stand for a table without reals and for a failure. For tests of the flow,
 * not for queries. */
acf_tensor *acf_net_forward(acf_tape *t, acf_view *v, acf_tensor **logdet);
acf_tensor *acf_net_inverse(acf_tape *t, acf_view *v, acf_tensor *z);
const acf_subset *acf_net_modelled(const acf_view *v);

/* (N): squared error of the best guess over the row's modelled reals, differentiable; NULL if the table has no
 * reals. */
acf_tensor *acf_net_guess_error(acf_tape *t, acf_view *v);

/* Fills the modelled cells of out (N,D; encoded, categories as codes) with one draw each, or with the best guess.
 * Other cells stay. The tape must not record. d->at is not used; row ids are the batch's. */
acf_status acf_net_draw(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out);
acf_status acf_net_guess(acf_tape *t, acf_view *v, acf_real *out);

/* The same in two steps. answer: all cells of the part's columns in device memory (d NULL: the best guess). Its
 * fields are NULL if the table has no such columns, and after a failure. fetch: the modelled cells to the host, by
 * the masks of this batch in host memory. The first step can be captured in a CUDA graph (tensor/tape_graph.h);
 * d->now then holds the number of the draw. The answer lives on the tape. */
typedef struct acf_answer {
    const acf_real *reals; /* (N, reals) */
    const int32_t *codes;  /* (N, categories) */
} acf_answer;
acf_answer acf_net_answer(acf_tape *t, acf_view *v, const acf_draw *d);
acf_status acf_net_fetch(acf_tape *t, const acf_net *net, acf_answer a, const acf_batch *batch, acf_real *out);

/* For rows that model one column each, p(x_j | x_o): row i of out (N,n; encoded) gets a stratified sample of n
 * values if that column is a real. Other rows stay. Whatever n, the reals' network runs once, and only if some row
 * needs it; a transformation runs twice. The tape must not record. */
acf_status acf_net_cell_values(acf_tape *t, acf_view *v, int n, acf_real *out);

/* Also fills drawn (N,n) with values under parameter draws instead of the fitted mixture: value i uses set i modulo
 * `use`, which is 1 to sets->n. The network runs once for both. sets NULL: drawn is not written. */
acf_status acf_net_cell_values_drawn(acf_tape *t, acf_view *v, int n, acf_real *out, const acf_gmm_draws *sets, int use,
                                     acf_real *drawn);

/* For rows that model one column each: out[i] gets the code of the most probable class if that column is a category.
 * Other rows stay. The tape must not record. */
acf_status acf_net_best_class(acf_tape *t, acf_view *v, acf_real *out);

/* For rows that model one column each: row i of out (N, acf_net_classes) gets p(class | x_o) of all classes,
 * followed by zeros, if that column is a category. Other rows stay. The tape must not record. */
acf_status acf_net_class_probs(acf_tape *t, acf_view *v, acf_real *out);
int64_t acf_net_classes(const acf_net *net); /* largest number of classes of a category; 0: there is none */

#endif
