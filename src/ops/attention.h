/* Causal attention within the sequences of a batch: every token attends to itself and to the tokens of its row
 * before it.
 *
 *     out_t = Σ_{j ≤ t} softmax_j( q_t · k_j / sqrt(W/heads) ) v_j        for each head
 *
 * The sequences are those of an acf_subset (acf_tape_sequence): token t of the row of rank k is element first[t] +
 * k. There is no padding. */
#ifndef ACF_OPS_ATTENTION_H
#define ACF_OPS_ATTENTION_H

#include "device/cpu.h"
#include "ops/ops.h"

/* (T,W) from queries, keys and values side by side, qkv (T,3W), packed over s. W is a multiple of heads. */
acf_tensor *acf_attention(acf_tape *t, acf_tensor *qkv, int heads, const acf_subset *s);

/* Attention of n tokens, at most one of each row: (n,W). First writes their qkv (n,3W) to cache (T,3W), which holds
 * those of the tokens before them. token (n) is in device memory; negative: no token, and its output is 0. No
 * derivative. */
acf_tensor *acf_attention_step(acf_tape *t, acf_tensor *qkv, const int32_t *token, acf_tensor *cache, int heads,
                               const acf_subset *s);

/* The layout of a batch's sequences, and the widths. */
typedef struct acf_attention_shape {
    const int32_t *row, *rank, *size, *first, *row_of; /* of the subset */
    int64_t ranks;                                     /* rows with at least one token */
    int64_t steps;                                     /* of the longest row */
    int64_t T, W;
    int heads;
} acf_attention_shape;
acf_attention_shape acf_attention_shape_of(const acf_subset *s, int64_t W, int heads);

/* Reals of scratch for each thread. */
int64_t acf_attention_scratch(const acf_attention_shape *p);

/* out (T,W); lse (T,heads), the log-sum-exp of each softmax, or NULL. */
void acf_attention_fwd_cpu(const acf_device *dev, acf_real *out, acf_real *lse, const acf_real *qkv,
                           const acf_attention_shape *p, acf_real *scratch);
/* Adds to dqkv (T,3W). */
void acf_attention_bwd_cpu(const acf_device *dev, acf_real *dqkv, const acf_real *dout, const acf_real *out,
                           const acf_real *lse, const acf_real *qkv, const acf_attention_shape *p, acf_real *scratch);
/* out (n,W) of tokens (n) from the cache (T,3W), which already contains them. */
void acf_attention_step_cpu(const acf_device *dev, acf_real *out, const int32_t *token, int64_t n,
                            const acf_real *cache, const acf_attention_shape *p, acf_real *scratch);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_attention_attrs {
    const acf_subset *s;
    int heads;
    acf_real *lse; /* (T,heads); NULL when no backward follows */
} acf_attention_attrs;

typedef struct acf_attention_step_attrs {
    const acf_subset *s;
    int heads;
    const int32_t *token;
} acf_attention_step_attrs;

#endif
