/* The output layer of categories: hidden units to the classes of the element's own column, with log-probability,
 * logits and probabilities. Formulas in docs/math.md, 8.
 *
 *     logits of element p  =  h_p wᵀ + b,   rows first[j] .. first[j] + count[j] of w (W,F) and b (W),   j its column
 *
 * A linear layer and categorical.h compute the same with all W logits for every element. In tables with many
 * columns, or columns with thousands of classes, nearly all of those belong to other columns. Here elements are
 * grouped by column, and a group is multiplied only with its own rows of w: Σ_p count[j_p] logits instead of T·W.
 * The log-probability stores no logits: they are computed tile by tile, in about 2 MB (some rows of the widest
 * column where that is more), and again in the backward. */
#ifndef ACF_OPS_CLASS_HEAD_H
#define ACF_OPS_CLASS_HEAD_H

#include "ops/categorical.h"

/* (T): log-probability of the class of each element, given by its row of w (class_rows.h; device memory, lives on
 * the tape). h (T,F) is packed over u. Fails: ACF_EDATA (a row that is not of the element's column), ACF_ESHAPE. */
acf_tensor *acf_class_logp(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const int32_t *rows,
                           const acf_classes *classes, const acf_subset *u);

/* (n,M), M the largest count: the logits, or the probabilities, of an element's count classes, then zeros. No
 * derivative. `at` gives the cells of the n rows of h, {NULL, NULL} if h is packed. For acf_categorical_argmax and
 * _sample every first is 0 here. */
acf_tensor *acf_class_logits(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const acf_classes *classes,
                             acf_cells at);
acf_tensor *acf_class_probs(acf_tape *t, acf_tensor *h, acf_tensor *w, acf_tensor *b, const acf_classes *classes,
                            acf_cells at);

/* Elements grouped by column: those of column j are order[end[j-1] .. end[j]), in their order. Classes as above. */
typedef struct acf_class_plan {
    int64_t D, F;
    const int32_t *first, *count; /* (D) */
    const int32_t *end, *order;   /* (D), (n) */
    int64_t rows, logits;         /* largest number of rows and of logits of a tile: the sizes of the scratch */
} acf_class_plan;

/* Fills end (D), order (n) and the sizes; column (n). F, D, first and count must be set. */
void acf_class_plan_fill(acf_class_plan *p, int32_t *end, int32_t *order, const int32_t *column, int64_t n);

/* Scratch of a tile. The backward also needs dh and dlogits. */
typedef struct acf_class_scratch {
    acf_real *h, *dh;           /* (rows,F) */
    acf_real *logits, *dlogits; /* (logits) */
    acf_real *value;            /* (rows) */
    int32_t *code;              /* (rows) */
} acf_class_scratch;

/* logp (T) from h (T,F), w (W,F), b (W), rows (T). */
void acf_class_logp_fwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *logp,
                            const acf_real *h, const acf_real *w, const acf_real *b, const int32_t *rows);
/* Adds to dh (T,F), dw (W,F), db (W); NULL = not needed. */
void acf_class_logp_bwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *dh,
                            acf_real *dw, acf_real *db, const acf_real *dlogp, const acf_real *h, const acf_real *w,
                            const acf_real *b, const int32_t *rows);

/* y (n,M): logits or probabilities. */
void acf_class_scores_fwd_cpu(const acf_device *dev, const acf_class_plan *p, const acf_class_scratch *s, acf_real *y,
                              const acf_real *h, const acf_real *w, const acf_real *b, bool probs, int64_t M);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_class_head_attrs {
    acf_class_plan plan;
    acf_classes classes; /* the caller's, borrowed for the forward */
    acf_cells at;
    const int32_t *rows; /* (T) of logp */
    bool probs;
    void *saved; /* private to a device: saved by its forward for its backward */
} acf_class_head_attrs;

#endif
