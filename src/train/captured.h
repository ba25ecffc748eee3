/* Training steps that run on a GPU without the host.
 *
 *     host     tickets for the next steps --copy-->                                        <--copy-- what became of them
 *     device        [ draw a batch, loss, gradients, norm, clip, Adam, average ] n times
 *
 * The table is in device memory (data/resident.h), and the step is one graph that was captured once: the host starts it n times and
 * waits once. The first step runs as the others will, but launch by launch, so that memory and plans of products are there when the second
 * is captured. Validation is captured in the same way, a batch of held-out cells a graph.
 *
 * It is the same training: a ticket says what acf_trainer_step would do, rows, masks and noise are the same, and weights follow within float
 * rounding. Where it cannot be (a device that captures nothing, a table beyond its memory, batches without any cell to model, a
 * likelihood whose best guess asks the host for counts), trainers take their steps one by one. */
#ifndef ACF_TRAIN_CAPTURED_H
#define ACF_TRAIN_CAPTURED_H

#include "data/resident.h"
#include "train/trainer.h"

#define ACF_STEPS_AT_ONCE 64

typedef struct acf_captured acf_captured;

/* For the data that the trainer is at. Keeps tr. Gives *out, NULL where steps cannot be captured; free with acf_captured_free, before the trainer's
 * data change or its network goes. Fails: ACF_EMEMORY (of the host), ACF_EDEVICE. */
acf_status acf_captured_create(acf_trainer *tr, acf_captured **out);
void acf_captured_free(acf_captured *c); /* NULL is allowed */

/* Steps that should be asked for in one go, at most ACF_STEPS_AT_ONCE: as many as take a tenth of a second. */
int64_t acf_captured_room(const acf_captured *c);

/* Takes n steps with these tickets; out (n) says what each was like. Adam's count goes on from tr->state.updates, which the caller brings up to
 * date. Fails: ACF_EDEVICE with *by_hand set when this network's step can only be taken by hand: nothing has happened then; and others. */
acf_status acf_captured_steps(acf_captured *c, const acf_ticket *ticket, int64_t n, acf_train_step *out, bool *by_hand);

/* acf_trainer_validate, with the weights in `value`; training in tf32 or bf16 is validated in tf32, which costs some 1e-4 nats of accuracy and saves most
 * of the time. False where it is for others to do: cells other than the trainer's are held out. */
bool acf_captured_validates(const acf_captured *c);
acf_status acf_captured_nll(acf_captured *c, double *nll);

#endif
