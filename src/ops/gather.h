/* Moving rows: gather, scatter, and the maps between a table and its packed subset.
 *
 *     table (N,D)  --gather_cells-->  packed (T)  --scatter_cells-->  table (N,D)
 *     packed (T[,C])  --prev, reverse-->  packed over the same subset
 *     packed over u   --pick-->  packed over half of u   --merge-->  packed over u
 *     packed over u   --step_slice-->  (rows alive at that step)  --step_stack-->  packed over u
 *
 * A map is an int32 array in device memory that lives on the tape. The maps of a subset are valid by construction.
 * Maps from a caller are checked before anything is read. */
#ifndef ACF_OPS_GATHER_H
#define ACF_OPS_GATHER_H

#include "device/cpu.h"
#include "ops/ops.h"

/* y (n[,C]) = rows index[p] of x (R[,C]), `fill` where the index is -1. Indices may repeat. Fails: ACF_EDATA (an
 * index outside -1..R-1; the message has its position). */
acf_tensor *acf_gather(acf_tape *t, acf_tensor *x, const int32_t *index, int64_t n, double fill);

/* y (T[,C]), packed over u, = rows index[p] of x (R[,C]); 0 where the index is -1. index (T) has no repeats and
 * comes from an operation, so it is not checked. */
acf_tensor *acf_gather_packed(acf_tape *t, acf_tensor *x, const int32_t *index, const acf_subset *u);

/* y (R[,C]) = base, or `fill` without one, with rows index[p] replaced by rows p of v (n[,C]); a row with index -1
 * is skipped. base (R[,C]) may be NULL; its gradient passes where nothing was replaced. Fails: ACF_EDATA (an index
 * outside -1..R-1, or a repeated index). */
acf_tensor *acf_scatter(acf_tape *t, acf_tensor *v, const int32_t *index, int64_t R, acf_tensor *base, double fill);

/* (T) the modelled cells of x (N,D). */
acf_tensor *acf_gather_cells(acf_tape *t, acf_tensor *x, const acf_subset *u);
/* base (N,D), or zeros, with the modelled cells replaced by v (T). */
acf_tensor *acf_scatter_cells(acf_tape *t, acf_tensor *v, const acf_subset *u, acf_tensor *base);

/* For each element the element of v (T[,C]) of the row's previous modelled column, `start` at the first: the input
 * of an autoregressive step. */
acf_tensor *acf_gather_prev(acf_tape *t, acf_tensor *v, const acf_subset *u, double start);
/* v (T[,C]) with every row's elements in the opposite order. */
acf_tensor *acf_reverse(acf_tape *t, acf_tensor *v, const acf_subset *u);

/* The elements of v (T[,C]), packed over child->whole, that belong to a half (acf_tape_half). */
acf_tensor *acf_pick(acf_tape *t, acf_tensor *v, const acf_subset *child);
/* The inverse of the two picks: even and odd are packed over the two halves of u, the result over u. */
acf_tensor *acf_merge(acf_tape *t, acf_tensor *even, acf_tensor *odd, const acf_subset *u);

/* (n[,C]) the n elements of one step (acf_tape_steps), in rank order (u->row has their rows). A view: data and
 * gradient are those of v, nothing is copied. */
acf_tensor *acf_step_slice(acf_tape *t, acf_tensor *v, const acf_subset *u, int64_t step);
/* The inverse: v[s] (active[s][,C]) for all steps becomes (T[,C]). For loops over steps. With no steps the shape of
 * an element is unknown, and the result is (0). Borrows the array, not the tensors. */
acf_tensor *acf_step_stack(acf_tape *t, acf_tensor *const *v, const acf_subset *u);

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* y (n,C): row p = row index[p] of x (R,C), or fill. */
void acf_gather_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const int32_t *index, acf_real fill,
                        int64_t n, int64_t C);
/* dx (R,C): row index[p] += row p of dy (n,C). scratch: R + n integers. */
void acf_gather_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const int32_t *index, int32_t *scratch,
                        int64_t n, int64_t R, int64_t C);
/* The same for indices that do not repeat (-1 may). */
void acf_gather_unique_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const int32_t *index, int64_t n,
                               int64_t C);

/* y (R,C): row index[p] = row p of v (n,C). */
void acf_scatter_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const int32_t *index, int64_t n,
                         int64_t C);
/* dv (n,C): row p += row index[p] of dy (R,C). */
void acf_scatter_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, const int32_t *index, int64_t n,
                         int64_t C);
/* dbase (R,C) += dy where no index points. scratch: R integers. */
void acf_scatter_base_bwd_cpu(const acf_device *dev, acf_real *dbase, const acf_real *dy, const int32_t *index,
                              int32_t *scratch, int64_t n, int64_t R, int64_t C);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Of gather and scatter. */
typedef struct acf_gather_attrs {
    const int32_t *index; /* (n) into R rows of C numbers */
    int64_t n, R, C;
    acf_real fill;
    const acf_subset *u; /* subset that owns the map: valid, no repeats; NULL: the caller's map, to be checked */
} acf_gather_attrs;

/* There may be more steps than a node has inputs, so they are listed here. */
typedef struct acf_stack_attrs {
    acf_steps at;
    acf_tensor **step; /* (at.n) */
} acf_stack_attrs;

#endif
