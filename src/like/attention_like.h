/* The attention likelihood: one causal transformer (nn/transformer.h) for reals and categories together. It gives the
 * distribution of every cell of a row, given all cells before it in the row's sequence.
 *
 *     sequence     given cells | modelled ones, each once: for a query in a fixed order,
 *                  in training in a new random one each step
 *     a real       a mixture of K Gaussians        w h + b, (3K)
 *     a class      softmax over its column's       class_w h + class_b
 *
 * log p(x_u | x_o) is the sum over the modelled cells, by the chain rule: exact in any order. One pass over a row
 * trains as many conditionals as the row has modelled cells. A missing cell is not in the sequence.
 *
 * After a Gaussian mixture (ops/mog.h) a real's distribution is one of z, but token inputs are x. Each z then depends
 * only on its x and the cells before it in the sequence, so the Gaussian mixture takes the reals in the sequence's
 * order too. After other transformations token inputs are z, in slots of their own. Both may depend on all categories,
 * so modelled categories come first. Without either, all modelled cells are shuffled together. */
#ifndef ACF_LIKE_ATTENTION_LIKE_H
#define ACF_LIKE_ATTENTION_LIKE_H

#include "nn/transformer.h"

typedef struct acf_attention_like {
    acf_transformer net;
    acf_token_columns columns;
    const int32_t *stage; /* (D) in device memory: the part of the sequence that holds a column's modelled cells */
    const int32_t *real_column, *category_column; /* in device memory: places of the parts' columns among the D */
    int64_t components;                           /* K */
    double lo, hi;                                /* bounds of log-scales */
    acf_dense_layer mixture;                      /* (3K,W) */
    acf_dense_layer classes;                      /* (Σ count,W) */
} acf_attention_like;

typedef struct acf_attention_like_shape {
    int64_t columns, components, width;
    int blocks;
} acf_attention_like_shape;

/* k->columns is already set. Declares "name....", and "name.mixture.w", "name.classes.w" where there are reals,
 * categories. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_attention_like_declare(acf_attention_like *k, acf_params *ps, const char *name,
                                      const acf_attention_like_shape *shape);

/* The inputs of a batch. */
typedef struct acf_attention_rows {
    const acf_subset *s;                   /* the sequences */
    const acf_subset *u_real, *u_category; /* modelled cells: over the reals, over the categories; NULL: none */
    const uint8_t *given;                  /* (N,D) in device memory */
    acf_tensor *x;                         /* (N,K) values of the reals, or NULL */
    int32_t *codes;                        /* (N,categories); a draw writes the modelled ones */
    const acf_pass *pass;                  /* NULL: inference */
} acf_attention_rows;

/* (N): log p of all modelled cells; z (T), packed over u_real, are the modelled reals after the transformations, NULL
 * without any reals. */
acf_tensor *acf_attention_like_logp(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r,
                                    acf_tensor *z);

/* The token input of a modelled real, if that is not its z: the values x (T) of all from z (T). The values of a step
 * depend only on those up to it. */
typedef struct acf_attention_value {
    acf_tensor *(*of)(acf_tape *t, const void *ctx, acf_tensor *z);
    const void *ctx;
} acf_attention_value;

/* Draws the modelled cells one by one, or with d NULL takes each cell's mean or most probable class. Writes the classes
 * to codes and returns z (T), NULL without reals. value NULL: token inputs are z. On a tape that does not record. */
acf_tensor *acf_attention_like_draw(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r,
                                    const acf_draw *d, const acf_attention_value *value);

/* For rows that model one cell each: (T,3K) the mixtures of the reals; (T,M) the probabilities of the
 * categories' classes. No derivative. */
acf_tensor *acf_attention_like_mixtures(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r);
acf_tensor *acf_attention_like_probs(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r);

#endif
