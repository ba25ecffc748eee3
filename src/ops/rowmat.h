/* Shared by the families with one small matrix per batch row: submatrix, lu, lu_packed, lowrank.
 *
 * Row i's matrix is |u_i| x |u_i|. Packed vectors are step-major, so a row's elements are strided and every kernel
 * first gathers them into scratch of its thread. Loops run over RANKS: neighbours in rank are neighbours in packed
 * memory, and the largest matrices come first, which balances the threads.
 *
 *     ACF_PARALLEL_UNEVEN(dev, work)
 *     for (int64_t k = 0; k < u->N; k++) {
 *         int64_t i = u->row[k], n = u->size[i];
 *         acf_real *xs = acf_row_scratch(scratch, per);       of this thread
 *         acf_row_get(xs, x, u, i); */
#ifndef ACF_OPS_ROWMAT_H
#define ACF_OPS_ROWMAT_H

#include "device/cpu.h"
#include "ops/dense_lu.h"
#include "ops/ops.h"

#include <omp.h>

/* Scratch of `per` elements for each thread, released by the caller's mark; NULL when memory ran out. */
static inline acf_real *acf_rows_scratch(acf_tape *t, int64_t per) {
    return acf_tape_reals(t, t->dev->threads * acf_pad(per));
}
static inline acf_real *acf_row_scratch(acf_real *scratch, int64_t per) {
    return scratch + omp_get_thread_num() * acf_pad(per);
}

/* Row i of a packed vector (T): to and from n contiguous elements. */
static inline void acf_row_get(acf_real *to, const acf_real *x, const acf_subset *u, int64_t i) {
    const acf_real *from = x + u->rank[i];
    for (int64_t t = 0; t < u->size[i]; t++) to[t] = from[u->first[t]];
}
static inline void acf_row_put(acf_real *x, const acf_real *from, const acf_subset *u, int64_t i) {
    acf_real *to = x + u->rank[i];
    for (int64_t t = 0; t < u->size[i]; t++) to[u->first[t]] = from[t];
}
static inline void acf_row_add(acf_real *x, const acf_real *from, const acf_subset *u, int64_t i) {
    acf_real *to = x + u->rank[i];
    for (int64_t t = 0; t < u->size[i]; t++) to[u->first[t]] += from[t];
}

static inline acf_real acf_row_dot(const acf_real *a, const acf_real *b, int64_t n) {
    acf_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum += a[j] * b[j];
    return sum;
}
/* y += a x */
static inline void acf_row_axpy(acf_real *y, acf_real a, const acf_real *x, int64_t n) {
    ACF_SIMD
    for (int64_t j = 0; j < n; j++) y[j] += a * x[j];
}

/* The list of matrices of a subset: its shape, and an unfilled one. */
static inline bool acf_is_square(const acf_tensor *m, const acf_subset *u) {
    return m->ndim == 1 && m->dim[0] == u->S && (!m->square || m->square == u);
}
static inline acf_tensor *acf_square_new(acf_tape *t, const acf_subset *u) {
    acf_tensor *m = acf_tensor_new(t, 1, &u->S);
    if (m != &t->empty) m->square = u;
    return m;
}
/* A vector packed over exactly this subset. */
static inline bool acf_is_packed(const acf_tensor *x, const acf_subset *u) { return x->ndim == 1 && x->sub == u; }

/* The message of every family for a singular matrix; the step is a place in the row's compact order. */
static inline acf_status acf_singular(const acf_subset *u, int64_t row, int64_t step, acf_real pivot,
                                      acf_real largest) {
    return acf_fail(
        ACF_ENUMERIC,
        "row %lld, column %d: the matrix is singular (pivot %g, largest element %g); look at that row's input, "
        "or lower the step size",
        (long long)row, u->cols[row * u->D + step], (double)pivot, (double)largest);
}

/* The lowest row whose entry is not -1, for kernels that record failures row by row; -1 if there is none. */
static inline int64_t acf_first_failure(const int32_t *bad, int64_t N) {
    for (int64_t i = 0; i < N; i++)
        if (bad[i] >= 0) return i;
    return -1;
}

#endif
