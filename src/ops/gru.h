/* The gated recurrent unit over ragged sequences, and its single step for loops whose outputs are the next inputs.
 *
 * Reset-after convention, gate order r, z, n, as in cuDNN and PyTorch:
 *
 *     r = sigmoid(a_r + b_r)     a = x wxᵀ + c wcᵀ + bx    from the input, and from the row's conditioning vector
 *     z = sigmoid(a_z + b_z)     b = h whᵀ + bh            from the state
 *     n = tanh(a_n + r·b_n)      h' = (1-z)·n + z·h
 *
 * The terms that depend only on the row (c: the observed values and masks) are projected once per row and layer by
 * an ordinary linear layer, acf_gru_condition. The known inputs of all steps go through one product. Each step then
 * multiplies only the rows that still have a column. h starts at zero. */
#ifndef ACF_OPS_GRU_H
#define ACF_OPS_GRU_H

#include "ops/dropout.h"
#include "ops/linear.h"

#define ACF_GRU_GATES 3

/* The weights of one layer: H units, I inputs a step, C conditioning values a row. */
typedef struct acf_gru {
    acf_tensor *wx; /* (3H,I) */
    acf_tensor *wc; /* (3H,C), or NULL: the layer does not use the conditioning vector */
    acf_tensor *bx; /* (3H) */
    acf_tensor *wh; /* (3H,H) */
    acf_tensor *bh; /* (3H) */
} acf_gru;

/* A layer's conditioning term from c (N,C), computed before any step: (N,3H) = c wcᵀ + bx. NULL if c or the layer's
 * wc is NULL. */
acf_tensor *acf_gru_condition(acf_tape *t, acf_tensor *c, const acf_gru *w);

/* One layer over the packed sequences of u: x (T,I) -> (T,H). cond (N,3H) from acf_gru_condition, or NULL. */
acf_tensor *acf_gru_seq(acf_tape *t, acf_tensor *x, acf_tensor *cond, const acf_gru *w, const acf_subset *u);

/* Several layers, each on the outputs of the one before and, if it has wc, on c (N,C; may be NULL). drop, unless
 * NULL, applies to the outputs of layer l (at site drop->site + l), never to the state passed to its own next step. */
acf_tensor *acf_gru_stack(acf_tape *t, acf_tensor *x, acf_tensor *c, int layers, const acf_gru *w, const acf_subset *u,
                          const acf_drop *drop);

/* One step: x (n,I), h (at least n rows, H) -> (n,H), rows in rank order. h NULL is the zero state. With a subset, n
 * is the number of rows active at the step; row k of x and h belongs to batch row u->row[k], and so does its row of
 * cond (N,3H). h of the step before has as many rows or more, and the first n are used. u NULL: row k is batch row
 * k. */
acf_tensor *acf_gru_step(acf_tape *t, acf_tensor *x, acf_tensor *h, acf_tensor *cond, const acf_gru *w,
                         const acf_subset *u);

/* The sequences a kernel works on: a whole batch, or a single step (steps = 1, active = {n}, first = {0, n}). */
typedef struct acf_gru_plan {
    int64_t steps, I, H;
    const int32_t *active, *first; /* (steps), (steps+1): rows of a step, and where they begin */
    const int32_t *row;            /* rank -> batch row, for cond; NULL: the same */
} acf_gru_plan;

/* The weights of a layer as the right factors of its steps, packed once for all of them (cpu.h): forward wxᵀ and
 * whᵀ, backward wx and wh. wx is in two parts, because the gates it feeds are not contiguous (gru.c). */
typedef struct acf_gru_rights {
    int64_t I, H;
    acf_right rz, n, h;
} acf_gru_rights;

/* Reals of memory for either direction. Then wx (3H,I) with leading dimension ldw and wh (3H,H). Borrows the memory
 * and the weights. */
int64_t acf_gru_rights_capacity(int64_t I, int64_t H);
acf_gru_rights acf_gru_rights_fwd(const acf_device *dev, acf_real *memory, const acf_real *wx, int64_t ldw,
                                  const acf_real *wh, int64_t I, int64_t H);
acf_gru_rights acf_gru_rights_bwd(const acf_device *dev, acf_real *memory, const acf_real *wx, int64_t ldw,
                                  const acf_real *wh, int64_t I, int64_t H);

/* Ranks are divided among threads in multiples of this, the rows of one kernel. */
#define ACF_GRU_SHARE 6
/* The first rank of part k of `parts` (k = parts: the end): parts have about equal numbers of elements. Results
 * never depend on it. */
int64_t acf_gru_share(const int32_t *active, int64_t steps, int k, int parts);

/* h (T,H) from x (T,I). gates (T,4H) is filled with [r | z | b_n | n] for the backward. cond (which includes the
 * bias) or bx may be NULL, and h0 (active[0],H; in rank order). */
void acf_gru_fwd_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_rights *w, acf_real *h,
                     acf_real *gates, const acf_real *x, const acf_real *cond, const acf_real *h0, const acf_real *bx,
                     const acf_real *bh);

/* Gradients of the above; every pointer may be NULL. */
typedef struct acf_gru_grads {
    acf_real *x, *cond, *h0, *wx, *bx, *wh, *bh;
} acf_gru_grads;

/* Adds to g from dh (T,H). Overwrites gates with the gradients of [a_r | a_z | b_n | a_n]. Scratch: carry
 * (active[0],H) and past (T,H). */
void acf_gru_bwd_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_rights *w, const acf_gru_grads *g,
                     const acf_real *dh, acf_real *gates, acf_real *carry, acf_real *past, const acf_real *h,
                     const acf_real *x, const acf_real *h0);

/* True if the biases fit H units and cond (NULL allowed) fits N rows; otherwise the tape has failed with a message. */
bool acf_gru_sides_fit(acf_tape *t, const acf_op *op, const acf_tensor *cond, const acf_gru *w, int64_t H, int64_t N);

/* ---- the pieces of the two above, for loops over steps through all layers: n rows on the calling thread ---------- */

/* A step forward, in this order. The state's side: gates (n,4H) columns r, z and b_n = past (n,H) whᵀ; no operation
 * for the zero state, NULL. */
void acf_gru_states_cpu(const acf_gru_rights *w, acf_real *gates, const acf_real *past, int64_t n);
/* The input's side: x (n,I) wxᵀ, added to columns r and z or (add false) replacing them, and in column n. */
void acf_gru_inputs_cpu(const acf_gru_rights *w, acf_real *gates, const acf_real *x, bool add, int64_t n);
/* gates become [r | z | b_n | n]; h (n,H) from past. Row k adds cond at row[k], or k if row is NULL; without cond it
 * adds bx. */
void acf_gru_gates_cpu(acf_real *h, acf_real *gates, const acf_real *past, const acf_real *cond, const int32_t *row,
                       const acf_real *bx, const acf_real *bh, int64_t n, int64_t H);
/* A step back: gates (n,4H) become gradients, from dh (n,H) and, for the first `later` rows, from the next step's
 * carry (n,H); carry becomes the gradient of past. */
void acf_gru_retreat_cpu(const acf_gru_rights *w, acf_real *gates, acf_real *carry, const acf_real *dh,
                         const acf_real *past, int64_t n, int64_t later);
/* dx (n,I): the input's side through wx, added or (add false) replacing what was there. */
void acf_gru_dinputs_cpu(const acf_gru_rights *w, acf_real *dx, const acf_real *gates, bool add, int64_t n);
/* Gradients that do not depend on the order of steps: adds to g->wx, wh, bx, bh and cond from the gates' gradients
 * of all steps. */
void acf_gru_weights_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_grads *g, const acf_real *gates,
                         acf_real *past, const acf_real *h, const acf_real *x, const acf_real *h0);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

/* Inputs of gru_seq and gru_step; COND, H0 and BX may be NULL. */
enum { ACF_GRU_X, ACF_GRU_COND, ACF_GRU_H0, ACF_GRU_WX, ACF_GRU_BX, ACF_GRU_WH, ACF_GRU_BH, ACF_GRU_INPUTS };

typedef struct acf_gru_attrs {
    acf_gru_plan plan; /* of a sequence: arrays of the subset, in its memory; of a step: the two below, on the host */
    int32_t active[1], first[2]; /* of a single step */
    acf_real *gates;             /* (T,4H); kept if a backward may follow */
    void *x16, *wx16, *image;    /* a GPU's: see gru.cu */
    int32_t *counts;             /* a GPU's: active and first of a single step */
} acf_gru_attrs;

#endif
