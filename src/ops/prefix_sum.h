/* Prefix sums over the cells of a row: the first layer of a network that sees, at every element, the set of all cells
 * known before it. Formulas in docs/math.md, 5.
 *
 *     y_p = base[row of p] + here[column of p] + Σ_{q before p in its row} ( v_q wv[q's slot] + wk[q's slot] )
 *
 * A layer on the vector of all known values and their mask would need that vector for each of T elements, (T,C)
 * numbers. But the layer is linear, and from one element to the next one cell is added. So the whole layer costs O(T
 * F), without a product. Sums are exclusive: an element does not see itself. Slots are rows of wv and wk: one per
 * column; for classes instead of numbers, one per class, without a value. */
#ifndef ACF_OPS_PREFIX_SUM_H
#define ACF_OPS_PREFIX_SUM_H

#include "ops/categorical.h"

/* The terms of a known cell: wk[slot], and its value times wv[slot]. */
typedef struct acf_terms {
    acf_tensor *wv, *wk; /* (R,F); wv NULL: cells without a value */
} acf_terms;

/* (T,F) for all elements at once. base (N,F); here (D,F) or NULL; v (T), NULL with wv; slot (T) and column (T) are in
 * device memory and on the tape. Fails: ACF_ESHAPE, ACF_EDATA (a slot out of range). */
acf_tensor *acf_prefix_sum(acf_tape *t, acf_tensor *base, acf_tensor *here, acf_tensor *v, const acf_terms *w,
                           const int32_t *slot, const int32_t *column, const acf_subset *u);

/* (n,F): the sums of a step from those of the step before: the first n rows of sums (m,F), each plus the cell that has
 * become known since; v (m), slot (m), m >= n. These sums do not include `here`. For loops that make their values.
 * Fails: as above. */
acf_tensor *acf_prefix_sum_step(acf_tape *t, acf_tensor *sums, acf_tensor *v, const acf_terms *w, const int32_t *slot,
                                int64_t n);

/* (T): the column of each packed element; after an odd number of reverses that of the mirrored place. Device memory;
 * NULL after a failure. */
const int32_t *acf_prefix_sum_columns(acf_tape *t, const acf_subset *u, bool mirrored);

/* (n,F): columns [from, from + n) of the weights w (F,C) of a linear layer, each as a row: the terms of its inputs
 * from, from + 1, ... */
acf_tensor *acf_prefix_sum_slots(acf_tape *t, acf_tensor *w, int64_t from, int64_t n);

/* (W,F): the term of each class where classes enter the layer as their embeddings, table (W,E). Class r of column j has
 * w's input mask_at + j, and its embedding times the E inputs from class_at + j E on. Keeps the arrays of classes until
 * the backward has run. */
acf_tensor *acf_prefix_sum_classes(acf_tape *t, acf_tensor *w, acf_tensor *table, const acf_classes *classes,
                                   int64_t mask_at, int64_t class_at);

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* One call of the kernels: the positions of each element's numbers. */
typedef struct acf_prefix_sum_plan {
    const acf_subset *u;
    int64_t F;
    const int32_t *slot, *column; /* (T) */
} acf_prefix_sum_plan;

/* y (T,F); sums (active[0],F) is scratch. here, v and wv may be NULL. */
void acf_prefix_sum_fwd_cpu(const acf_device *dev, const acf_prefix_sum_plan *r, acf_real *y, acf_real *sums,
                            const acf_real *base, const acf_real *here, const acf_real *v, const acf_real *wv,
                            const acf_real *wk);
/* Adds to dbase (N,F), dhere (D,F), dv (T), dwv, dwk (R,F); NULL = not needed. later (active[0],F) and part
 * (acf_prefix_sum_parts(F),T; only with dv) are scratch. */
void acf_prefix_sum_bwd_cpu(const acf_device *dev, const acf_prefix_sum_plan *r, acf_real *dbase, acf_real *dhere,
                            acf_real *dv, acf_real *dwv, acf_real *dwk, acf_real *later, acf_real *part,
                            const acf_real *dy, const acf_real *v, const acf_real *wv);
int64_t acf_prefix_sum_parts(int64_t F);

/* y (n,F) = sums + v wv[slot] + wk[slot]. */
void acf_prefix_sum_step_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *sums, const acf_real *v,
                                 const acf_real *wv, const acf_real *wk, const int32_t *slot, int64_t n, int64_t F);
/* Adds to dsums, dv, dwv, dwk; NULL = not needed. */
void acf_prefix_sum_step_bwd_cpu(const acf_device *dev, acf_real *dsums, acf_real *dv, acf_real *dwv, acf_real *dwk,
                                 const acf_real *dy, const acf_real *v, const acf_real *wv, const int32_t *slot,
                                 int64_t n, int64_t F);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* Inputs of prefix_sum (attributes: its plan) and prefix_sum_step. */
enum {
    ACF_PREFIX_SUM_BASE,
    ACF_PREFIX_SUM_HERE,
    ACF_PREFIX_SUM_V,
    ACF_PREFIX_SUM_WV,
    ACF_PREFIX_SUM_WK,
    ACF_PREFIX_SUM_INPUTS
};

typedef struct acf_prefix_sum_step_attrs {
    const int32_t *slot;
} acf_prefix_sum_step_attrs;

typedef struct acf_prefix_sum_columns_attrs {
    const acf_subset *u;
    int32_t *column;
} acf_prefix_sum_columns_attrs;

typedef struct acf_prefix_sum_slots_attrs {
    int64_t from;
} acf_prefix_sum_slots_attrs;

typedef struct acf_prefix_sum_classes_attrs {
    acf_classes classes; /* the caller's; `there` is in device memory */
    int64_t mask_at, class_at;
} acf_prefix_sum_classes_attrs;

#endif
