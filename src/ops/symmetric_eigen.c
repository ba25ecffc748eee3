/* Eigenvectors of a symmetric matrix: see symmetric_eigen.h.
 *
 * Householder reflections make the matrix tridiagonal, implicit QL steps diagonal (Golub and Van Loan, Matrix
 * Computations, 8.3). Workload: 2 to 100 rows. Eigenvectors are rows, so that every loop of n runs along contiguous
 * memory. */
#include "ops/symmetric_eigen.h"

#include "base/real.h"
#include "base/vector.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS = 30 };

/* Makes v (m) the normal of the reflection I - 2 v vᵀ that maps v to (r,0,..,0), and returns r; the normal is 0 where v
 * has that form already. */
static double reflection(double *v, int64_t m) {
    double largest = 0;
    for (int64_t i = 1; i < m; i++) largest = fmax(largest, fabs(v[i]));
    const double first = v[0];
    if (largest == 0) {
        v[0] = 0;
        return first;
    }
    largest = fmax(largest, fabs(first)); /* squares of v / largest neither overflow nor underflow */
    for (int64_t i = 0; i < m; i++) v[i] /= largest;
    const double length = sqrt(acf_inner(v, v, m)), r = v[0] > 0 ? -length : length;
    v[0] -= r;
    const double by = 1 / sqrt(acf_inner(v, v, m));
    for (int64_t i = 0; i < m; i++) v[i] *= by;
    return r * largest;
}

/* a (m,m), rows n apart, = H a H for the reflection H with the normal v; p (m) is scratch. */
static void reflect_both_sides(double *a, int64_t m, int64_t n, const double *v, double *p) {
    for (int64_t i = 0; i < m; i++) p[i] = 2 * acf_inner(a + i * n, v, m);
    acf_add_scaled(p, -acf_inner(p, v, m), v, m);
    for (int64_t i = 0; i < m; i++) {
        double *row = a + i * n;
        const double vi = v[i], pi = p[i];
#pragma omp simd
        for (int64_t j = 0; j < m; j++) row[j] -= vi * p[j] + pi * v[j];
    }
}

/* a = Qᵀ T Q: T has diagonal d and off-diagonal e (e_k between k and k+1); a becomes Q. The normal of reflection k is
 * stored in row k, right of the diagonal, until the reflections are multiplied, the last one first. */
static void tridiagonal(double *a, int64_t n, double *d, double *e) {
    for (int64_t k = 0; k < n; k++) {
        const int64_t m = n - k - 1;
        double *v = a + k * n + k + 1;
        if (m == 0) break;
        const double beside = reflection(v, m);
        reflect_both_sides(v + n, m, n, v, e + k); /* e[k] and up are not set yet */
        e[k] = beside;
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        const int64_t m = n - k - 1;
        double *v = a + k * n + k + 1;
        d[k] = a[k * n + k];
        for (int64_t i = 0; i < m; i++) acf_add_scaled(v + (i + 1) * n, -2 * acf_inner(v + (i + 1) * n, v, m), v, m);
        memset(v, 0, (size_t)m * sizeof *v);
        for (int64_t i = k; i < n; i++) a[i * n + k] = i == k;
    }
}

/* Rotates rows x and y (n): y = s·x + c·y, x = c·x - s·y. */
static void rotate(double *x, double *y, double s, double c, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
        const double f = y[k];
        y[k] = s * x[k] + c * f;
        x[k] = c * x[k] - s * f;
    }
}

/* One QL step with an implicit shift on rows l .. m. */
static void ql_step(double *d, double *e, double *a, int64_t n, int64_t l, int64_t m) {
    double g = (d[l + 1] - d[l]) / (2 * e[l]), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + copysign(hypot(g, 1), g));
    for (int64_t i = m - 1; i >= l; i--) {
        const double f = s * e[i], b = c * e[i], r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { /* the matrix splits here: the next step begins anew */
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r, c = g / r;
        g = d[i + 1] - p;
        const double t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        rotate(a + i * n, a + (i + 1) * n, s, c, n);
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

bool acf_symmetric_eigen(double *a, int64_t n, double *w, double *scratch) {
    double *e = scratch;
    if (n == 0) return true;
    tridiagonal(a, n, w, e);
    e[n - 1] = 0;
    for (int64_t l = 0; l < n; l++)
        for (int steps = 0;; steps++) {
            int64_t m = l;
            while (m + 1 < n && !(fabs(e[m]) <= DBL_EPSILON * (fabs(w[m]) + fabs(w[m + 1])))) m++;
            if (m == l) break;
            if (steps == ITERATIONS) return false;
            ql_step(w, e, a, n, l, m);
        }
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(w[k])) return false;
    return true;
}
