/* A dense, row-major array on a device, with its gradient. The tape that made it owns it (a parameter is owned by
 * its slab); model code passes pointers and frees nothing. */
#ifndef ACF_TENSOR_TENSOR_H
#define ACF_TENSOR_TENSOR_H

#include "tensor/subset.h"

#define ACF_MAX_DIM 4
#define ACF_SHAPE_TEXT 96

typedef struct acf_tensor {
    acf_real *data; /* on the tape's device; valid also without elements */
    acf_real *grad; /* same shape; NULL until a consumer adds to it */
    int64_t dim[ACF_MAX_DIM];
    int ndim;                 /* 0: a scalar, one element */
    bool needs_grad;          /* a parameter, or computed from one while recording */
    const acf_subset *sub;    /* the first axis runs over the packed elements of this subset; NULL: over plain rows */
    const acf_subset *square; /* 1-D: the |u|x|u| matrices of this subset, row by row; NULL: not such a list */
    const int32_t *row_of; /* batch row of each row of one step, which are in rank order; NULL: rows in batch order */
} acf_tensor;

/* Elements; rows (the first axis, 1 for a scalar); elements per row. */
int64_t acf_tensor_count(const acf_tensor *x);
int64_t acf_tensor_rows(const acf_tensor *x);
int64_t acf_tensor_width(const acf_tensor *x);

/* Views along the last axis: the axis' length (1 for a scalar and for (M)), and the number of such lines. Of an
 * image: channels, pixels. */
static inline int64_t acf_tensor_last(const acf_tensor *x) { return x->ndim > 1 ? x->dim[x->ndim - 1] : 1; }
static inline int64_t acf_tensor_lines(const acf_tensor *x) {
    int64_t n = 1;
    for (int i = 0; i < (x->ndim > 1 ? x->ndim - 1 : x->ndim); i++) n *= x->dim[i];
    return n;
}

bool acf_tensor_same_shape(const acf_tensor *a, const acf_tensor *b);

/* The shape as text, such as "(256, 8)" or "(1024 packed, 3)"; returns buf. */
const char *acf_tensor_shape(const acf_tensor *x, char buf[ACF_SHAPE_TEXT]);

/* Makes y's rows those of x: its subset, its order, and for the same shape the meaning of its elements. */
void acf_tensor_inherit(acf_tensor *y, const acf_tensor *x);

/* The cell of element i, for messages: the batch row, and the table column for packed elements (else the index
 * within the row). */
void acf_tensor_place(const acf_tensor *x, int64_t i, int64_t *row, int64_t *column);

#endif
