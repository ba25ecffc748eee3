/* Shared by the tests of per-row matrices: well-conditioned matrices, and an independent elimination in double. */
#ifndef ACF_HARNESS_ROWMAT_LAB_H
#define ACF_HARNESS_ROWMAT_LAB_H

#include "harness/lab.h"
#include "ops/rowmat.h"

#include <math.h>
#include <stdlib.h>

/* A constant (D,D) identity. */
static inline acf_tensor *identity_base(acf_lab *l) {
    acf_real *eye = calloc((size_t)(l->D * l->D) + 1, sizeof *eye);
    assert_non_null(eye);
    for (int64_t j = 0; j < l->D; j++) eye[j * (l->D + 1)] = 1;
    acf_tensor *base = acf_tensor_input(l->t, eye, 2, (int64_t[]){l->D, l->D});
    free(eye);
    return base;
}

/* Bound of random elements for which I + C stays well conditioned at any |u| <= D. */
static inline double gentle(const acf_lab *l) { return 0.5 / sqrt((double)l->D); }

/* The list of matrices I + C as a leaf, the first of its case. */
static inline acf_tensor *leaf_square(acf_lab *l) { return acf_leaf_square(l, "m", -gentle(l), gentle(l), 1); }

/* A list of matrices from a function of (row, t, s). */
static inline acf_tensor *list_of(acf_lab *l, double (*element)(const acf_subset *u, int64_t i, int64_t t, int64_t s)) {
    const acf_subset *u = l->u;
    acf_real *m = calloc((size_t)u->square[u->N] + 1, sizeof *m);
    assert_non_null(m);
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t t = 0, n = u->size[i]; t < n; t++)
            for (int64_t s = 0; s < n; s++) m[u->square[i] + t * n + s] = (acf_real)element(u, i, t, s);
    acf_tensor *list = acf_tensor_input(l->t, m, 1, &u->square[u->N]);
    free(m);
    return list;
}

/* Gauss with row pivoting on a (n,n), destroyed; b (n) becomes the solution. Returns log|det a|. */
static inline double gauss(double *a, double *b, int64_t n) {
    double logdet = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = k;
        for (int64_t i = k; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        for (int64_t j = 0; j < n; j++) {
            double x = a[k * n + j];
            a[k * n + j] = a[p * n + j], a[p * n + j] = x;
        }
        double x = b[k];
        b[k] = b[p], b[p] = x;
        logdet += log(fabs(a[k * n + k]));
        for (int64_t i = 0; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            if (i == k) continue;
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            b[i] -= factor * b[k];
        }
    }
    for (int64_t k = 0; k < n; k++) b[k] /= a[k * n + k];
    return logdet;
}

/* applied = A v, log|det A| and solved = A⁻¹ v in double, for row i, whose matrix is a (n,n), destroyed. v and the two
 * vectors are packed; each may be NULL. */
static inline void reference_row(const acf_subset *u, int64_t i, double *a, const acf_real *v, double *applied,
                                 double *logdet, double *solved) {
    const int64_t n = u->size[i];
    double b[512];
    assert_true(n <= 512);
    for (int64_t t = 0; t < n; t++) b[t] = v ? (double)v[acf_subset_at(u, i, t)] : 0;
    for (int64_t t = 0; applied && t < n; t++) {
        double sum = 0;
        for (int64_t s = 0; s < n; s++) sum += a[t * n + s] * b[s];
        applied[acf_subset_at(u, i, t)] = sum;
    }
    double ld = gauss(a, b, n);
    if (logdet) logdet[i] = ld;
    for (int64_t t = 0; solved && t < n; t++) solved[acf_subset_at(u, i, t)] = b[t];
}

/* |a - b| of two packed vectors, element by element. */
static inline void assert_same(const acf_tensor *a, const acf_tensor *b, double tol, const char *what) {
    assert_int_equal(acf_tensor_count(a), acf_tensor_count(b));
    for (int64_t i = 0; i < acf_tensor_count(a); i++)
        acf_assert_close((double)a->data[i], (double)b->data[i], tol, what);
}

#endif
