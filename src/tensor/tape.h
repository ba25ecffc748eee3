/* The tape: runs operations as they are called and records them, so that their derivatives can be run backwards.
 *
 * Operations are coarse (a whole GRU sequence, a batch of LU factorisations). A training step is therefore some
 * dozens to hundreds of nodes, and the tape's own cost does not matter (below a microsecond each). Everything a step
 * makes lives in two arenas, one in host memory for nodes and attributes, one in device memory for numbers, and is
 * released at the next begin. From the second step on nothing is allocated.
 *
 *     acf_tape_begin(t, true);
 *     acf_tensor *h = acf_linear(t, x, w1, b1, ACF_TANH);       a failure inside makes the tape fail;
 *     acf_tensor *y = acf_linear(t, h, w2, b2, ACF_IDENTITY);   later calls return an empty tensor
 *     ACF_TRY(acf_tape_backward(t, acf_mean(t, y)));            and this returns the first failure
 *
 * Threads: a tape is used by one thread at a time. */
#ifndef ACF_TENSOR_TAPE_H
#define ACF_TENSOR_TAPE_H

#include "device/device.h"
#include "tensor/tensor.h"

#define ACF_MAX_OUT 4

typedef struct acf_tape acf_tape;
typedef struct acf_node acf_node;

/* A device's kernels for an operation. `forward` fills n->out from n->in; `backward` adds to acf_grad(t, n->in[i])
 * from n->out[i]->grad (NULL: no gradient). NULL backward: the operation has no derivative (sampling). */
typedef struct acf_kernel {
    acf_status (*forward)(acf_tape *t, acf_node *n);
    acf_status (*backward)(acf_tape *t, acf_node *n);
} acf_kernel;

/* One const instance per operation, in its own file. */
typedef struct acf_op {
    const char *name;
    int id;         /* its index in ops/ops_list.h, and in another device's table of kernels */
    acf_kernel cpu; /* the reference, always present */
} acf_op;

struct acf_node {
    const acf_op *op;
    acf_node *before; /* the node recorded before this one */
    acf_tensor **in, *out[ACF_MAX_OUT];
    int n_in, n_out;
    bool save;  /* a backward may follow: save what it needs */
    void *attr; /* op-private struct in host memory: sizes, attributes, pointers to saved numbers */
};

struct acf_tape {
    acf_device *dev;
    const acf_kernel *kernels; /* of the device, by op id; NULL: each op's cpu kernels */
    acf_arena *host, *mem;     /* nodes and attributes; numbers */
    acf_node *last;
    struct acf_spare *spare; /* gradients that were read for the last time, to be reused */
    const acf_op *op;        /* being called, or run backwards: its name prefixes failures; NULL between operations */
    int64_t n_nodes;
    bool record;     /* false: for scoring and sampling; nothing is saved for a backward */
    bool ran_back;   /* backward has run: saved data may be overwritten */
    double capacity; /* fraction of all cells that a GPU's subsets can hold, 1 at first: less saves memory and work */
    bool captured;   /* the step is being captured in a CUDA graph: nothing can be read back, so no number is checked */
    bool lasting;    /* a step reuses none of its memory before the next begin, so that a GPU may defer work */
    struct acf_slab {                  /* of such a step, all its gradients: cleared at once */
        acf_real *data;                /* device memory, owned */
        int64_t capacity, used, asked; /* numbers; asked: the most that any step so far needed */
    } slab;
    acf_failure failure; /* the first failure since begin; status ACF_OK while there is none */
    acf_tensor empty;    /* what operations return after a failure */
};

/* Makes a tape on a device; kernels NULL: the device's own. Keeps dev and kernels. Gives *out; free with
 * acf_tape_free. Fails: ACF_EMEMORY. */
acf_status acf_tape_create(acf_device *dev, const acf_kernel *kernels, acf_tape **out);
void acf_tape_free(acf_tape *t);

/* Releases every node and tensor of the previous step, and its failure. */
void acf_tape_begin(acf_tape *t, bool record);

/* Runs the derivatives of `loss` (one element, made by an operation) back to the parameters, adding to their
 * gradients. The output of an operation keeps its numbers but not its gradient: the operation's backward reads it
 * once, and its memory is then reused. Only parameters and inputs keep theirs. Returns the step's first failure. A
 * loss that is not finite is ACF_ENUMERIC and names the first operation with such an output, its row and column.
 * Call it once per begin: operations reuse what they saved as scratch (a second call is ACF_EUSAGE). */
acf_status acf_tape_backward(acf_tape *t, acf_tensor *loss);

/* First failure since begin, or ACF_OK; also makes it the thread's last error. */
acf_status acf_tape_status(acf_tape *t);

/* Same as the non-finite check of backward, for a result that is not differentiated. */
acf_status acf_tape_check(acf_tape *t, const acf_tensor *x);

/* Sets whether steps reuse memory before the next begin (false, the default) or not (true). If true, allocates a
 * slab for the gradients of the largest step so far. Takes effect at the next begin. Fails: ACF_EMEMORY. */
acf_status acf_tape_last(acf_tape *t, bool lasting);

/* While not recording: releases everything made after a mark, so that a loop of steps does not grow. */
typedef struct acf_tape_mark {
    acf_mark host, mem;
    acf_node *last;
    int64_t n_nodes;
} acf_tape_mark;
acf_tape_mark acf_tape_position(const acf_tape *t);
void acf_tape_rewind(acf_tape *t, acf_tape_mark mark);

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

/* A tensor with uncleared data; never NULL: the empty tensor after a failure. Fails: ACF_EMEMORY, ACF_ESHAPE (a
 * negative size, or more elements than can be counted). */
acf_tensor *acf_tensor_new(acf_tape *t, int ndim, const int64_t *dim);
/* (T) when C = 0, else (T,C): packed over u (which may be NULL after a failure). */
acf_tensor *acf_tensor_packed(acf_tape *t, const acf_subset *u, int64_t C);
/* A copy of host data on the device; borrows data. */
acf_tensor *acf_tensor_input(acf_tape *t, const acf_real *data, int ndim, const int64_t *dim);
/* Every element = value; not differentiable. Packed over u where u is given: then dim[0] must be u->T. */
acf_tensor *acf_tensor_const(acf_tape *t, const acf_subset *u, double value, int ndim, const int64_t *dim);
/* A tensor over existing device memory; keeps data until the next begin. */
acf_tensor *acf_tensor_wrap(acf_tape *t, acf_real *data, int ndim, const int64_t *dim);
/* The subset of masks b and m (N,D; see subset.h), which are in device memory; and one of its halves: the elements
 * at even (parity 0) or odd (1) positions of each row's compact order. They live on the tape. NULL when the tape has
 * failed. On a GPU with capacity below 1, rows that do not fit model nothing, and are counted
 * (acf_plugin.take_left_out). */
const acf_subset *acf_tape_subset(acf_tape *t, const uint8_t *b, const uint8_t *m, int64_t N, int64_t D);
const acf_subset *acf_tape_half(acf_tape *t, const acf_subset *u, int parity);
/* All present cells as a sequence for each row (acf_subset_order), with `place` on every device. Without given cells
 * (o->modelled) the capacity is that of acf_tape_subset, else all cells. NULL when the tape has failed. */
const acf_subset *acf_tape_sequence(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, int64_t N,
                                    int64_t D);
/* The steps of u, for loops on the host. On a GPU the first call copies the counts and waits for it: once per batch,
 * and not in a captured step (ACF_EDEVICE). */
acf_steps acf_tape_steps(acf_tape *t, const acf_subset *u);

/* x with another shape of as many elements: data and gradient are shared. */
acf_tensor *acf_tensor_view(acf_tape *t, acf_tensor *x, int ndim, const int64_t *dim);
/* x (T,...) as packed over u, or with NULL as plain rows. */
acf_tensor *acf_tensor_as_packed(acf_tape *t, acf_tensor *x, const acf_subset *u);

/* ---- for the authors of operations ----------------------------------------------------------------------------- */

/* A node with its inputs (some may be NULL) and attr_bytes of cleared attributes; NULL when the tape has failed.
 * From here to acf_node_run the op counts as being called: a node is always run, or the call refused. */
acf_node *acf_node_new(acf_tape *t, const acf_op *op, size_t attr_bytes, int n_in, acf_tensor *const *in);
/* Runs the node's forward and records it; returns out[0], or the empty tensor after a failure. */
acf_tensor *acf_node_run(acf_tape *t, acf_node *n);
/* Refuses a call with the op's name and a message: ACF_ESHAPE if tensors do not fit together, ACF_EUSAGE for a
 * number out of its range (a rate, a bound, a rank). Both return the empty tensor. */
acf_tensor *acf_reject(acf_tape *t, const acf_op *op, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
acf_tensor *acf_reject_value(acf_tape *t, const acf_op *op, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Makes the tape fail with the thread's last error, prefixed by the op's name; NULL: that of the op being called, if
 * any. */
acf_status acf_tape_fail(acf_tape *t, const acf_op *op);

/* The gradient of x to add to, cleared on first use; NULL if x is NULL or needs none, or when memory ran out (the
 * tape has failed then). */
acf_real *acf_grad(acf_tape *t, acf_tensor *x);
/* Releases what a backward has made since the mark; no effect in a step that does not reuse memory. */
void acf_tape_done(acf_tape *t, acf_mark mark);
/* n numbers of device memory for this step; NULL when memory ran out (the tape has failed then). */
acf_real *acf_tape_reals(acf_tape *t, int64_t n);
int32_t *acf_tape_ints(acf_tape *t, int64_t n);

#endif
