/* Work on a tape that is done again and again: a GPU captures it once and then replays it without the host.
 *
 *     acf_tape_graph_run(&r, t, enqueue, ctx, n)
 *
 *     run 1       by hand: memory is found, products are planned                     a CPU, and a GPU that captures nothing, does them all so
 *     run 2       by hand, where memory allows it with nothing used twice (acf_tape_last): then gradients of weights are worked out beside
 *                 the others, and gradients are cleared in one go
 *     run 3...    captured once, then replayed
 *
 * enqueue begins the tape and runs operations on it; what it makes lies at the same addresses in every run. All that changes from one run to the
 * next is in device memory. What is captured is what enqueue did: numbers, addresses and sizes that it took from ctx are those of then. */
#ifndef ACF_TENSOR_TAPE_GRAPH_H
#define ACF_TENSOR_TAPE_GRAPH_H

#include "tensor/tape.h"

/* All zero: nothing has run. */
typedef struct acf_tape_graph {
    struct acf_graph *graph; /* NULL: not captured */
    int ran;                 /* by hand */
    bool lasting;            /* the tape's steps last while it runs */
} acf_tape_graph;

/* Runs the work n times, in the order of the device; waits for nothing. Fails: as enqueue does; ACF_EDEVICE where it asks for numbers of the
 * device, which a captured run cannot: then nothing of this call has run if n was 1 or a graph was there. */
acf_status acf_tape_graph_run(acf_tape_graph *r, acf_tape *t, acf_status (*enqueue)(void *ctx), void *ctx, int64_t n);

/* Is the next run a replay? */
static inline bool acf_tape_graph_ready(const acf_tape_graph *r) { return r->graph; }

/* Forgets the work: before memory that it uses goes, or when it is to be another. */
void acf_tape_graph_free(acf_tape_graph *r, acf_device *dev);

#endif
