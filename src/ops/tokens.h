/* A row as a sequence of tokens (acf_tape_sequence), one for each of its cells. A token predicts one cell, and its
 * input is the cell before it in the sequence. The input enters as a row of two tables:
 *
 *     embed_p = v · a[slot] + b[slot]        v: the value before, where that is a real; 0 else
 *
 *     slot  0                                nothing: the row's first token, or the class before is not known
 *                                            (-1, or none of its column)
 *           1 .. K                           a given real, by its place among the K reals
 *           K+1 .. 2K                        a modelled real, where such values are in another space (apart)
 *           above 2K (or K)                  a class, by its row (class_rows.h)
 *
 * Integers and places are in device memory. Results are on the tape; NULL after a failure. */
#ifndef ACF_OPS_TOKENS_H
#define ACF_OPS_TOKENS_H

#include "ops/categorical.h"
#include "ops/cells.h"
#include "ops/gather.h"

/* The columns of a table as tokens see them. */
typedef struct acf_token_columns {
    const int32_t *kind; /* (D) in device memory: k of the k-th real, -1-c of the c-th category */
    int64_t reals;       /* K */
    bool apart;          /* modelled reals have their own slots */
    acf_classes classes; /* with `there` on a GPU */
} acf_token_columns;

/* Rows of the tables a and b that these columns need. */
int64_t acf_token_reals(const acf_token_columns *c);
int64_t acf_token_slots(const acf_token_columns *c);

/* The inputs of tokens; cell is the place of a real in a table (N,K), -1 where the cell before is not a real. */
typedef struct acf_told {
    const int32_t *slot, *cell; /* (n) */
} acf_told;

/* Of the n tokens listed (below 0: slot -1), or with token NULL of all s->T. given (N,D) marks the given cells; codes
 * (N, categories). */
acf_told acf_token_inputs(acf_tape *t, const acf_subset *s, const acf_token_columns *c, const uint8_t *given,
                          const int32_t *codes, const int32_t *token, int64_t n);

/* (T of u) the tokens of u's elements; u is over a part of the columns of s, and column (u->D) gives their places in s.
 * -1 behind the last element. */
const int32_t *acf_token_places(acf_tape *t, const acf_subset *s, const acf_subset *u, const int32_t *column);

/* (n,W): the embeddings of n tokens from v (N,K), or NULL where there are no reals, a (acf_token_reals, W) and b
 * (acf_token_slots, W). A slot of -1 gives zeros. sub: n = T and the tokens are those of s; NULL: some of them. */
acf_tensor *acf_token_embed(acf_tape *t, acf_tensor *v, acf_tensor *a, acf_tensor *b, acf_told told, int64_t n,
                            const acf_subset *sub);

/* y (n,W). */
void acf_token_embed_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const acf_real *a,
                             const acf_real *b, acf_told told, int64_t n, int64_t W);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_token_inputs_attrs {
    const acf_subset *s;
    acf_token_columns columns;
    const uint8_t *given;
    const int32_t *codes, *token;
    int64_t n;
    int32_t *slot, *cell; /* (n) */
} acf_token_inputs_attrs;

typedef struct acf_token_places_attrs {
    const acf_subset *s, *u;
    const int32_t *column;
    int32_t *place; /* (T) */
} acf_token_places_attrs;

typedef struct acf_token_embed_attrs {
    acf_told told;
    int64_t n;
} acf_token_embed_attrs;

#endif
