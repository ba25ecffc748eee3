/* Repeated work on a tape: a GPU captures it once in a CUDA graph and then launches the graph without the host.
 *
 *     acf_tape_graph_run(&r, t, enqueue, ctx, n)
 *
 *     run 1       enqueued directly: memory is allocated, products are planned. On a CPU, and on a GPU without capture,
 *                 all runs are like this
 *     run 2       enqueued directly; if memory allows, without reusing memory (acf_tape_last): then gradients of
 *                 weights are computed on the second stream, and gradients are cleared at once
 *     run 3...    captured once, then launched as a graph
 *
 * enqueue begins the tape and runs operations on it; its memory has the same addresses in every run. All that
 * changes from one run to the next is in device memory. The graph holds what enqueue did at capture: numbers,
 * addresses and sizes from ctx are those of that time. */
#ifndef ACF_TENSOR_TAPE_GRAPH_H
#define ACF_TENSOR_TAPE_GRAPH_H

#include "tensor/tape.h"

/* All zero: nothing has run. */
typedef struct acf_tape_graph {
    struct acf_graph *graph; /* NULL: not captured */
    int ran;                 /* runs without a graph */
    bool lasting;            /* the tape's steps do not reuse memory while it runs */
} acf_tape_graph;

/* Runs the work n times, in the device's order; does not wait. Fails: as enqueue does; ACF_EDEVICE if it reads
 * numbers of the device, which a captured run cannot do. In that case nothing of this call has run if n was 1 or a
 * graph existed. */
acf_status acf_tape_graph_run(acf_tape_graph *r, acf_tape *t, acf_status (*enqueue)(void *ctx), void *ctx, int64_t n);

/* True if the next run launches a graph. */
static inline bool acf_tape_graph_ready(const acf_tape_graph *r) { return r->graph; }

/* Discards the graph: before memory that it uses is released, or before the work changes. */
void acf_tape_graph_free(acf_tape_graph *r, acf_device *dev);

#endif
