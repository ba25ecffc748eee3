/* Categories: p(x_u^c | x_o), the first factor of a mixed table's p(x_u | x_o) = p(x_u^c | x_o) · p(x_u^r | x_o,
 * x_u^c).
 *
 * An autoregressive model without transformations over a row's modelled categorical columns, in the order of the
 * columns:
 *
 *     class at i   ~   softmax(w_j h_i + b_j)       j the column at i;  h: a GRU and a hidden layer behind it, or a
 *                                                   network on the set of known cells (nn/deep_sets.h)
 *     inputs of h_i    the row's conditioning vector, and where c->columns is given the column at i
 *       GRU            the embedding of the class before (zeros at the first) and the column before
 *       deep sets      the embeddings of all classes before, each where that of a given one enters
 *
 * All counts here are of categorical columns only: D of them, c->u a subset over these D, codes (N,D) int32 in device
 * memory with the class of each cell. A code is never read where the cell is not modelled (or, for the context, not
 * seen). Every (column, class) has a row in two matrices, one for embeddings and one for logits (ops/class_rows.h); W =
 * Σ count of them.
 *
 * Memory: an element is compared with the classes of its own column only, and training keeps no logits
 * (ops/class_head.h). A training step over 4100 elements of 20 columns of 1000 classes, 64 units, float, takes 11 MB
 * and 50 ms on one core. With all W logits of every element it would take 667 MB and 520 ms. A draw holds the logits of
 * one step, active rows times the largest count. */
#ifndef ACF_LIKE_CATEGORIES_H
#define ACF_LIKE_CATEGORIES_H

#include "flow/flow.h"
#include "nn/deep_sets.h"

typedef struct acf_categories_shape {
    acf_classes classes;      /* kept: must outlive the model. first[j] = Σ count before j; every count at least 1 */
    int64_t embedding;        /* E, width of a class's embedding, at least 1 */
    int64_t column_embedding; /* width of c->columns; 0: no column embedding */
    int64_t context;          /* width of c->context */
    int64_t units;
    int layers;       /* of the GRU, or blocks of the deep sets network */
    bool deep;        /* every layer of the GRU sees the context */
    bool set;         /* a deep sets network instead of the GRU. It shares its embeddings with the context: */
    int64_t mask_at;  /* position in it of the mask of given categories (D), */
    int64_t class_at; /* and of acf_category_context of `table` (D·E) */
} acf_categories_shape;

typedef struct acf_categories {
    acf_classes classes;
    acf_param *table; /* (W,E): embeddings of classes; may serve acf_category_context too */
    bool by_set;
    acf_rnn net;       /* its input is the class before instead of a value; net.w2 (W,F), net.b2 (W) */
    acf_deep_sets set; /* set.w (W,F), set.bias (W) */
    int64_t mask_at, class_at;
} acf_categories;

/* Declares "name.classes" and "name.net.0.wx", ..., or for deep sets "name.net.wc", ... Fails: ACF_EMEMORY,
 * ACF_EUSAGE. */
acf_status acf_categories_declare(acf_categories *k, acf_params *ps, const char *name,
                                  const acf_categories_shape *shape);

/* Its last layer, from the last hidden units to the logits of all classes: (W,F) and (W). */
acf_tensor *acf_categories_weights(const acf_categories *k);
acf_tensor *acf_categories_bias(const acf_categories *k);

/* (N): log p(x_u^c | x_o); 0 for a row without modelled categories. Fails: ACF_EDATA (a code that is not a class of its
 * column: the message names row and column). */
acf_tensor *acf_categories_logp(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c);
/* (T): its terms, each modelled class given those before it. */
acf_tensor *acf_categories_cells(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c);
/* (T,M): probabilities of all classes of each modelled cell given the classes before it in the row, which are read from
 * codes. M is the largest count; entries without a class are 0. With one modelled column: p(class | x_o). No
 * derivative. */
acf_tensor *acf_categories_probs(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c);

/* (T) classes drawn one after another, or, d NULL, the most probable class at each step given those before. On a tape
 * that does not record (ACF_EUSAGE); takes the memory of one step. d->at is not used; the column of a draw is its index
 * among the D. NULL after a failure. */
const int32_t *acf_categories_draw(acf_tape *t, const acf_categories *k, const acf_cond *c, const acf_draw *d);

/* ---- known categories as inputs of networks ---------------------------------------------------------------------- */

/* A (W,E) matrix "name" of embeddings, one row per (column, class); NULL on failure. */
acf_param *acf_category_table(acf_params *ps, const char *name, const acf_classes *classes, int64_t E);

/* (N,D·E): the embeddings of a row's known classes side by side, zeros where seen (N,D; device memory) is 0. For
 * p(x_u^c | x_o) the observed ones are seen; for p(x_u^r | x_o, x_u^c) also the modelled ones. Fails: ACF_EDATA. */
acf_tensor *acf_category_context(acf_tape *t, acf_tensor *table, const acf_classes *classes, const int32_t *codes,
                                 const uint8_t *seen, int64_t N);

#endif
