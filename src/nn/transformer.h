/* A causal transformer over the tokens of a row (ops/tokens.h). For every cell of a sequence its inputs are all cells
 * before it and the embedding of the cell's column.
 *
 *     h = value(gelu(token_embed(cell before))) + next[column to predict]
 *     h = h + out(attention(norm(h)))           h = h + down(gelu(up(norm(h))))                for each block
 *     result = norm(h)
 *
 * All tokens of all rows are one batch. A token's result does not depend on its own or later cells. */
#ifndef ACF_NN_TRANSFORMER_H
#define ACF_NN_TRANSFORMER_H

#include "nn/mlp.h"
#include "ops/tokens.h"

#define ACF_TRANSFORMER_BLOCKS 24

typedef struct acf_norm_layer {
    acf_param *scale, *shift; /* (W) */
} acf_norm_layer;

typedef struct acf_dense_layer {
    acf_param *w, *b; /* (out,in), (out) */
} acf_dense_layer;

typedef struct acf_block_layers {
    acf_norm_layer before_attention, before_mlp;
    acf_dense_layer qkv, out; /* (3W,W), (W,W) */
    acf_dense_layer up, down; /* (4W,W), (W,4W) */
} acf_block_layers;

typedef struct acf_transformer_shape {
    int64_t columns;      /* D */
    int64_t reals, slots; /* rows of the two tables: acf_token_reals, acf_token_slots */
    int64_t width;        /* W */
    int blocks;           /* 1 to ACF_TRANSFORMER_BLOCKS */
} acf_transformer_shape;

typedef struct acf_transformer {
    int64_t width;
    int blocks, heads;
    acf_param *times, *plus; /* (reals,W), (slots,W): a token's input */
    acf_dense_layer value;   /* (W,W) */
    acf_param *next;         /* (D,W) */
    acf_block_layers block[ACF_TRANSFORMER_BLOCKS];
    acf_norm_layer norm;
    uint32_t site; /* of its dropout, two per block */
} acf_transformer;

/* Heads of 64 numbers where the width is a multiple and at least 256, else of 32, else of 16, else one. */
int acf_transformer_heads(int64_t width);

/* Declares "name.times", "name.plus", "name.value.w", ..., "name.0.qkv.w", ..., "name.norm.scale".
 * Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_transformer_declare(acf_transformer *net, acf_params *ps, const char *name,
                                   const acf_transformer_shape *shape, uint32_t site);

/* (T,W) for all tokens of s; v (N,K) as in acf_token_embed. Takes the memory of one block on a tape that does not
 * record. */
acf_tensor *acf_transformer_run(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told,
                                const acf_subset *s, const acf_pass *pass);

/* Queries, keys and values of all tokens in every block, (T,3W) each. On the tape, which does not record. */
typedef struct acf_transformer_cache {
    acf_tensor *qkv[ACF_TRANSFORMER_BLOCKS];
} acf_transformer_cache;

/* The same run, to fill the cache. */
void acf_transformer_fill(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told, const acf_subset *s,
                          acf_transformer_cache *cache);

/* (n,W) for n tokens, at most one per row, from the cached tokens before them; adds the new ones to the cache. token
 * (n) in device memory. */
acf_tensor *acf_transformer_step(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told,
                                 const int32_t *token, int64_t n, const acf_subset *s,
                                 const acf_transformer_cache *cache);

#endif
