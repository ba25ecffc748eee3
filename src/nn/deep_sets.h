/* A network on the set of known cells. For every modelled cell, in the row's order, its inputs are the row's
 * conditioning vector, the embedding of the cell's column, and all cells modelled before it, each in its own slot.
 *
 *     h = wc context + b + wi embedding(i) + Σ_{q before i} ( v_q wv[q] + wk[q] )    one row of sums, ops/prefix_sum.h
 *     h = h + w2 relu(w1 relu(h) + b1) + b2                                          for each block
 *     out = w relu(h) + bias
 *
 * Without recurrence all elements of all rows are one batch for the blocks. A column has the same effect however it
 * became known: where slots are columns of wc (acf_prefix_sum_slots), a modelled value enters exactly as a given
 * one. */
#ifndef ACF_NN_DEEP_SETS_H
#define ACF_NN_DEEP_SETS_H

#include "nn/mlp.h"
#include "ops/prefix_sum.h"

#define ACF_DEEP_SETS_BLOCKS 8

typedef struct acf_deep_sets_block {
    acf_param *w1, *b1, *w2, *b2; /* (F,F), (F), (F,F), (F) */
} acf_deep_sets_block;

typedef struct acf_deep_sets {
    acf_param *wc, *b; /* (F,C), (F) */
    acf_param *wi;     /* (F,E), or NULL: no column embedding */
    int blocks;
    acf_deep_sets_block block[ACF_DEEP_SETS_BLOCKS];
    acf_param *w, *bias; /* (O,F), (O) */
    uint32_t site;       /* of its dropout, one per block */
} acf_deep_sets;

typedef struct acf_deep_sets_shape {
    int64_t context;          /* C */
    int64_t column_embedding; /* E, 0: the network has no column embedding as input */
    int64_t units;            /* F */
    int blocks;               /* 1 to ACF_DEEP_SETS_BLOCKS */
    int64_t out;              /* O */
    double out_scale;         /* as in acf_mlp_shape */
} acf_deep_sets_shape;

/* Declares "name.wc", "name.wi", "name.b", "name.0.w1", "name.0.b1", ... "name.head.w", "name.head.b". Fails:
 * ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_deep_sets_declare(acf_deep_sets *net, acf_params *ps, const char *name, const acf_deep_sets_shape *shape,
                                 uint32_t site);

/* One use of the network on the rows of a batch. */
typedef struct acf_deep_sets_run {
    const acf_deep_sets *net;
    const acf_subset *u;
    const acf_pass *pass;
    const int32_t *column;   /* (T) column of each element */
    acf_terms terms;         /* the terms of known cells; filled in by the caller */
    acf_tensor *base, *here; /* (N,F), (D,F) or NULL */
    acf_tensor *sums;        /* of the last step, in rank order */
    acf_steps steps;         /* from acf_deep_sets_start on */
} acf_deep_sets_run;

/* columns (D,E) is used where the network has wi; mirrored as in acf_cond. */
acf_deep_sets_run acf_deep_sets_begin(acf_tape *t, const acf_deep_sets *net, acf_tensor *context, acf_tensor *columns,
                                      bool mirrored, const acf_subset *u, const acf_pass *pass);

/* (T,F): the last hidden layer for all elements, from all values v (T; NULL with terms.wv) and slots (T). */
acf_tensor *acf_deep_sets_all(acf_tape *t, const acf_deep_sets_run *r, acf_tensor *v, const int32_t *slot);

/* Step by step, for loops that make their values: acf_deep_sets_start once, then for each step the last hidden layer
 * (n,F) of its n elements. v and slot are those of the elements of the step before, not read at the first. No dropout.
 * On a tape that does not record the caller may rewind to where it was before acf_deep_sets_step: the state for the
 * next step is kept. */
void acf_deep_sets_start(acf_tape *t, acf_deep_sets_run *r);
acf_tensor *acf_deep_sets_step(acf_tape *t, acf_deep_sets_run *r, int64_t step, acf_tensor *v, const int32_t *slot);

/* (M,O) from the last hidden layer (M,F). */
acf_tensor *acf_deep_sets_out(acf_tape *t, const acf_deep_sets *net, acf_tensor *h);

#endif
