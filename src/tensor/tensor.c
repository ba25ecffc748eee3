/* Shapes of tensors: see tensor.h. */
#include "tensor/tensor.h"

#include <stdio.h>

int64_t acf_tensor_count(const acf_tensor *x) {
    int64_t n = 1;
    for (int i = 0; i < x->ndim; i++) n *= x->dim[i];
    return n;
}

int64_t acf_tensor_rows(const acf_tensor *x) { return x->ndim ? x->dim[0] : 1; }

int64_t acf_tensor_width(const acf_tensor *x) {
    int64_t n = 1;
    for (int i = 1; i < x->ndim; i++) n *= x->dim[i];
    return n;
}

bool acf_tensor_same_shape(const acf_tensor *a, const acf_tensor *b) {
    if (a->ndim != b->ndim || a->sub != b->sub) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

const char *acf_tensor_shape(const acf_tensor *x, char buf[ACF_SHAPE_TEXT]) {
    int n = snprintf(buf, ACF_SHAPE_TEXT, "(");
    for (int i = 0; i < x->ndim; i++)
        n += snprintf(buf + n, (size_t)(ACF_SHAPE_TEXT - n), "%s%lld%s", i ? ", " : "", (long long)x->dim[i],
                      i == 0 && x->sub ? " packed" : "");
    snprintf(buf + n, (size_t)(ACF_SHAPE_TEXT - n), ")");
    return buf;
}

/* Element i of a list of matrices: its row by bisection, and the table column it multiplies. */
static void place_in_square(const acf_subset *u, int64_t i, int64_t *row, int64_t *column) {
    int64_t low = 0, high = u->N;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (u->square[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    *row = low;
    *column = u->cols[low * u->D + (i - u->square[low]) % u->size[low]];
}

void acf_tensor_inherit(acf_tensor *y, const acf_tensor *x) {
    y->sub = x->sub;
    y->row_of = x->row_of;
    if (acf_tensor_count(y) == acf_tensor_count(x)) y->square = x->square;
}

void acf_tensor_place(const acf_tensor *x, int64_t i, int64_t *row, int64_t *column) {
    if (x->square) {
        place_in_square(x->square, i, row, column);
        return;
    }
    int64_t width = acf_tensor_width(x), first = width ? i / width : 0;
    *row = x->sub ? x->sub->row_of[first] : x->row_of ? x->row_of[first] : first;
    *column = x->sub ? x->sub->col_of[first] : (width ? i % width : 0);
}
