/* Training steps that run on a GPU as a CUDA graph, without the host.
 *
 *     host     batches of the next steps --copy-->                                         <--copy-- results
 *     device        [ draw a batch, loss, gradients, norm, clip, Adam, average ] n times
 *
 * The step is captured once as a graph (tensor/tape_graph.h): the host starts it n times and waits once. Its data
 * (loader.h) are
 *
 *     resident   the table is in device memory (table/table_on_device.h), and batches are drawn there
 *     streamed   tables that do not fit, and images: the host fills one of two batches in pinned memory while
 *                the device works on the other
 *
 * Validation works the same way, one graph per batch of held-out cells.
 *
 * Training is the same as on the host: rows, masks and noise are equal, and weights agree within float rounding. Where
 * capture is impossible (the device has no graphs, or a likelihood's best guess needs counts on the host), trainers
 * take their steps one by one. */
#ifndef ACF_TRAIN_TRAIN_GRAPH_H
#define ACF_TRAIN_TRAIN_GRAPH_H

#include "train/loader.h"

#define ACF_STEPS_AT_ONCE 64

typedef struct acf_train_graph acf_train_graph;

/* For the trainer's current data; streamed where the table does not fit, where a batch may have no cell to model, and
 * where tr->stream is set. Keeps tr. Gives *out, NULL where steps cannot be captured; free with acf_train_graph_free
 * before the trainer's data or its network change. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_train_graph_create(acf_trainer *tr, acf_train_graph **out);
void acf_train_graph_free(acf_train_graph *c); /* NULL is allowed */
bool acf_train_graph_streams(const acf_train_graph *c);
acf_loader *acf_train_graph_loader(acf_train_graph *c);

/* Steps to run in one go, at most ACF_STEPS_AT_ONCE: a tenth of a second's worth, or one before the graph is
 * captured, so that a failed capture has no effect. */
int64_t acf_train_graph_room(const acf_train_graph *c);

/* Some steps: begin; then run with all their batch steps or, streamed, feed a batch and push its batch step for each;
 * then collect the results. Adam's count continues from tr->state.updates, which the caller updates afterwards. run
 * and push fail with ACF_EDEVICE and *by_hand set when this network's step cannot be captured: then nothing has
 * happened. */
acf_status acf_train_graph_begin(acf_train_graph *c);
acf_status acf_train_graph_run(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n, bool *by_hand);
/* The stage to fill next (acf_train_graph_loader has it); waits until the device has read its last content. */
acf_status acf_train_graph_feed(acf_train_graph *c, int *stage);
/* shift: a constant that the host adds to the reported loss. */
acf_status acf_train_graph_push(acf_train_graph *c, const acf_batch_step *batch_step, double shift, bool *by_hand);
acf_status acf_train_graph_collect(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n,
                                   acf_train_step *out);

/* Validation with the weights in `value`: the sum of log p of the held-out cells. Training in tf32 or bf16 is
 * validated in tf32, which costs some 1e-4 nats of accuracy and saves most of the time. Resident: nll does all of it;
 * validates is false where the caller must validate, as cells other than the trainer's are held out. Streamed: start,
 * then feed and check each batch, then total. */
bool acf_train_graph_validates(const acf_train_graph *c);
acf_status acf_train_graph_nll(acf_train_graph *c, double *nll);
acf_status acf_train_graph_start(acf_train_graph *c);
acf_status acf_train_graph_check(acf_train_graph *c);
acf_status acf_train_graph_total(acf_train_graph *c, double *sum);

#endif
