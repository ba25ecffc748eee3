/* Training steps that run on a GPU without the host.
 *
 *     host     tickets for the next steps --copy-->                                        <--copy-- what became of them
 *     device        [ draw a batch, loss, gradients, norm, clip, Adam, average ] n times
 *
 * The step is one graph that was captured once (tensor/tape_graph.h): the host starts it n times and waits once. Its data (loader.h) are
 *
 *     resident   the table is in device memory (table/table_on_device.h), and batches are drawn there
 *     streamed   a table beyond its memory, and images: the host fills one of two batches in pinned memory while the device works on the other
 *
 * and so it is in validation, a batch of held-out cells a graph.
 *
 * It is the same training: a ticket says what the host would do, rows, masks and noise are the same, and weights follow within float
 * rounding. Where it cannot be (a device that captures nothing, a likelihood whose best guess asks the host for counts), trainers take their steps
 * one by one. */
#ifndef ACF_TRAIN_TRAIN_GRAPH_H
#define ACF_TRAIN_TRAIN_GRAPH_H

#include "train/loader.h"

#define ACF_STEPS_AT_ONCE 64

typedef struct acf_train_graph acf_train_graph;

/* For the data that the trainer is at; streamed where the table does not fit, where a batch may be without any cell to model, and where tr->stream wants
 * it. Keeps tr. Gives *out, NULL where steps cannot be captured; free with acf_train_graph_free, before the trainer's data change or its network goes.
 * Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_train_graph_create(acf_trainer *tr, acf_train_graph **out);
void acf_train_graph_free(acf_train_graph *c); /* NULL is allowed */
bool acf_train_graph_streams(const acf_train_graph *c);
acf_loader *acf_train_graph_supply(acf_train_graph *c);

/* Steps that should be asked for in one go, at most ACF_STEPS_AT_ONCE: as many as take a tenth of a second, or one while nothing is captured yet, so that
 * one that cannot be leaves nothing behind. */
int64_t acf_train_graph_room(const acf_train_graph *c);

/* Some steps: begin, then run with all their tickets or, streamed, feed a batch and push its ticket for each; and collect what became of them. Adam's
 * count goes on from tr->state.updates, which the caller brings up to date afterwards. run and push fail with ACF_EDEVICE and *by_hand set when this
 * network's step can only be taken by hand: then nothing has happened. */
acf_status acf_train_graph_begin(acf_train_graph *c);
acf_status acf_train_graph_run(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n, bool *by_hand);
/* The stage to fill next (acf_train_graph_supply has it); waits until the device has read what was in it. */
acf_status acf_train_graph_feed(acf_train_graph *c, int *stage);
/* shift: what the host adds to the loss that the step reports. */
acf_status acf_train_graph_push(acf_train_graph *c, const acf_batch_step *batch_step, double shift, bool *by_hand);
acf_status acf_train_graph_collect(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n,
                                   acf_train_step *out);

/* Validation with the weights in `value`: log p of the held-out cells, summed. Training in tf32 or bf16 is validated in tf32, which costs some 1e-4 nats
 * of accuracy and saves most of the time. Resident, nll is all of it; validates is false where it is for others to do, as cells other than
 * the trainer's are held out. Streamed, start, then feed and check each batch, and total. */
bool acf_train_graph_validates(const acf_train_graph *c);
acf_status acf_train_graph_nll(acf_train_graph *c, double *nll);
acf_status acf_train_graph_start(acf_train_graph *c);
acf_status acf_train_graph_check(acf_train_graph *c);
acf_status acf_train_graph_total(acf_train_graph *c, double *sum);

#endif
