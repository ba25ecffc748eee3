/* Categories of columns with different numbers of classes: log-probability, most probable class, sample. Formulas in
 * docs/math.md, 8.
 *
 * One row of logits serves every column of the table; the classes of column j are count[j] logits from first[j] on:
 *
 *     logits (T,W)   [ column 0: 3 classes | column 2: 2 classes | column 5: 4 classes ]     W = 9
 *                                            ^ an element of column 2 reads and trains only these two
 *
 * Slices may overlap (columns may share a head). Codes and results are int32 in device memory. A code outside
 * 0..count-1, or an element of a column without classes, is ACF_EDATA; the message has row, column, code and count. */
#ifndef ACF_OPS_CATEGORICAL_H
#define ACF_OPS_CATEGORICAL_H

#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

/* The position of each column's classes; host memory, borrowed for the call. */
typedef struct acf_classes {
    int64_t D;
    const int32_t *first, *count; /* (D) */
    const int32_t *there;         /* (2,D) the same in device memory, first then count; NULL: copied in every call */
} acf_classes;

/* (T): logit[code] - log Σ_slice e^logit. logits (T,W) are packed over u; codes (T) are borrowed for the call. */
acf_tensor *acf_categorical_logp(acf_tape *t, acf_tensor *logits, const int32_t *codes, const acf_classes *classes,
                                 const acf_subset *u);

/* (T) the most probable class of each element, the lowest of equals; on the tape, NULL after a failure. `at` gives
 * the cells of the rows of logits, {NULL, NULL} if they are packed. A NaN among the logits of a slice is
 * ACF_ENUMERIC. */
const int32_t *acf_categorical_argmax(acf_tape *t, acf_tensor *logits, const acf_classes *classes, acf_cells at);

/* (T) one draw per cell from stream CATEGORY; otherwise as argmax. Borrows d and its arrays. */
const int32_t *acf_categorical_sample(acf_tape *t, acf_tensor *logits, const acf_classes *classes, const acf_draw *d);

/* column (T); first and count (D); every code within its slice. */
void acf_categorical_logp_fwd_cpu(const acf_device *dev, acf_real *logp, const acf_real *logits, const int32_t *codes,
                                  const int32_t *column, const int32_t *first, const int32_t *count, int64_t T,
                                  int64_t W);
/* Adds to dlogits (T,W), inside the slices. */
void acf_categorical_logp_bwd_cpu(const acf_device *dev, acf_real *dlogits, const acf_real *dlogp,
                                  const acf_real *logits, const int32_t *codes, const int32_t *column,
                                  const int32_t *first, const int32_t *count, int64_t T, int64_t W);

/* codes (T); -1 where a logit is NaN (argmax) or the weights are not finite (sample). */
void acf_categorical_argmax_fwd_cpu(const acf_device *dev, int32_t *codes, const acf_real *logits,
                                    const int32_t *column, const int32_t *first, const int32_t *count, int64_t T,
                                    int64_t W);
void acf_categorical_sample_fwd_cpu(const acf_device *dev, int32_t *codes, const acf_real *logits, const acf_draw *d,
                                    const int32_t *first, const int32_t *count, int64_t T, int64_t W);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_categorical_attrs {
    acf_classes classes;  /* first and count in device memory */
    const int32_t *given; /* (T) codes of the caller, or their copy if a backward may follow */
    int32_t *found;       /* (T) codes that argmax and sample return */
    acf_draw draw;        /* its cells give the row and column of every element; a sample also draws by it */
} acf_categorical_attrs;

#endif
