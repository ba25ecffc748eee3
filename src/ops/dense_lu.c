/* Pivoted LU of one dense matrix: see dense_lu.h; formulas in docs/math.md, 6. */
#include "ops/dense_lu.h"

#include "device/cpu.h"
#include "device/panels.h"

#include <math.h>
#include <string.h>

/* Up to this size the matrix is eliminated in a padded copy on the stack (72 KB in double) with whole vectors and no
 * loop tails. Above it, blocks of rows are eliminated and the rows below them are updated by one product. */
#define SMALL 96
#define BLOCK 32 /* rows of a block */

/* ---- factorisation --------------------------------------------------------------------------------------------- */

static inline acf_real magnitude(acf_real x) { return x < 0 ? -x : x; }

/* The index of the largest |row[j]|, k <= j < n. NaN never wins a comparison; if nothing does, k. */
static int64_t find_pivot(const acf_real *row, int64_t k, int64_t n) {
    acf_real best = -1;
    int64_t at = k;
    for (int64_t j = k; j < n; j++)
        if (magnitude(row[j]) > best) {
            best = magnitude(row[j]);
            at = j;
        }
    return at;
}

/* Swaps row k's pivot to column k in rows [from,to) of w (leading dimension ld), and divides the elements right of
 * it in row k. Returns the pivot's former column. */
static inline int64_t pivot_row(acf_real *w, int64_t ld, int32_t *order, int64_t k, int64_t n, int64_t from,
                                int64_t to) {
    acf_real *row = w + k * ld;
    int64_t at = find_pivot(row, k, n);
    if (at != k) {
        for (int64_t i = from; i < to; i++) {
            acf_real x = w[i * ld + k];
            w[i * ld + k] = w[i * ld + at];
            w[i * ld + at] = x;
        }
        int32_t column = order[k];
        order[k] = order[at];
        order[at] = column;
    }
    const acf_real pivot = row[k];
    ACF_SIMD
    for (int64_t j = k + 1; j < n; j++) row[j] /= pivot;
    return at;
}

static void factor_small(acf_real *f, int32_t *order, const acf_real *m, int64_t n) {
    acf_lanes w[SMALL * SMALL * sizeof(acf_real) / sizeof(acf_lanes)], u[SMALL * sizeof(acf_real) / sizeof(acf_lanes)];
    acf_real *ws = (acf_real *)w, *us = (acf_real *)u;
    const int64_t V = ACF_LANES, blocks = acf_ceil_div(n, V), ld = blocks * V;
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        w[i * blocks + blocks - 1] = (acf_lanes){0};
        memcpy(ws + i * ld, m + i * n, (size_t)n * sizeof *ws);
    }
    for (int64_t k = 0; k < n; k++) {
        pivot_row(ws, ld, order, k, n, 0, n);
        /* u: row k of U as whole vectors. It is zero up to the pivot, so that the multipliers of L, which
         * share the first vector, keep their values. */
        const int64_t first = k / V;
        for (int64_t b = first; b < blocks; b++) u[b] = w[k * blocks + b];
        for (int64_t j = first * V; j <= k; j++) us[j] = 0;
        for (int64_t i = k + 1; i < n; i++) {
            const acf_real l = ws[i * ld + k];
            for (int64_t b = first; b < blocks; b++) w[i * blocks + b] -= l * u[b];
        }
    }
    for (int64_t i = 0; i < n; i++) memcpy(f + i * n, ws + i * ld, (size_t)n * sizeof *ws);
}

/* Eliminates rows [k0,k1) of f (n,n), whose earlier blocks are done. from: the former column of each row's pivot. */
static void factor_block(acf_real *f, int32_t *order, int64_t k0, int64_t k1, int64_t n, int64_t *from) {
    for (int64_t k = k0; k < k1; k++) {
        from[k - k0] = pivot_row(f, n, order, k, n, k0, k1);
        const acf_real *u = f + k * n;
        for (int64_t i = k + 1; i < k1; i++) {
            acf_real *row = f + i * n;
            const acf_real l = row[k];
            ACF_SIMD
            for (int64_t j = k + 1; j < n; j++) row[j] -= l * u[j];
        }
    }
}

/* The swaps of a block's columns [k0,k1) in other rows: each row does them all while it is in cache. */
static void swap_columns(acf_real *f, int64_t n, int64_t rows, const int64_t *from, int64_t k0, int64_t k1) {
    for (int64_t i = 0; i < rows; i++) {
        acf_real *row = f + i * n;
        for (int64_t k = k0; k < k1; k++) {
            const acf_real x = row[k];
            row[k] = row[from[k - k0]];
            row[from[k - k0]] = x;
        }
    }
}

/* a (rows,width) = a · U⁻¹ for the block's own u (width,width), as many rows at a time as a vector has lanes. */
static void solve_rows(acf_real *a, const acf_real *u, int64_t ld, int64_t rows, int64_t width) {
    acf_lanes x[BLOCK] = {{0}};
    for (int64_t i = 0; i < rows; i += ACF_LANES) {
        const int64_t some = acf_min(ACF_LANES, rows - i);
        for (int64_t r = 0; r < some; r++)
            for (int64_t k = 0; k < width; k++) ((acf_real *)(x + k))[r] = a[(i + r) * ld + k];
        for (int64_t k = 0; k < width; k++)
            for (int64_t j = k + 1; j < width; j++) x[j] -= u[k * ld + j] * x[k];
        for (int64_t r = 0; r < some; r++)
            for (int64_t k = 0; k < width; k++) a[(i + r) * ld + k] = ((acf_real *)(x + k))[r];
    }
}

/* In place, block after block. A: the rows below a block; C: the part of A to the right of it:
 *
 *     L = A U11⁻¹     C -= L U12
 */
static void factor_blocks(acf_real *f, int32_t *order, int64_t n) {
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    for (int64_t k0 = 0; k0 < n; k0 += BLOCK) {
        const int64_t k1 = acf_min(k0 + BLOCK, n), below = n - k1;
        acf_real *left = f + k1 * n + k0, *above = f + k0 * n + k1;
        int64_t from[BLOCK];
        factor_block(f, order, k0, k1, n, from);
        swap_columns(f, n, k0, from, k0, k1);
        swap_columns(f + k1 * n, n, below, from, k0, k1);
        if (below == 0) break;
        solve_rows(left, f + k0 * n + k0, n, below, k1 - k0);
        acf_panels_gemm(&(acf_gemm){.M = below,
                                    .N = below,
                                    .K = k1 - k0,
                                    .alpha = -1,
                                    .a = left,
                                    .lda = n,
                                    .b = above,
                                    .ldb = n,
                                    .beta = 1,
                                    .c = left + (k1 - k0),
                                    .ldc = n});
    }
}

void acf_dense_lu(acf_real *f, int32_t *order, const acf_real *m, int64_t n) {
    if (n == 0) return;
    if (n <= SMALL) {
        factor_small(f, order, m, n);
    } else {
        if (f != m) memcpy(f, m, (size_t)(n * n) * sizeof *f);
        factor_blocks(f, order, n);
    }
}

acf_real acf_dense_largest(const acf_real *m, int64_t n) {
    acf_real top[64 / sizeof(acf_real)] = {0}, largest = 0; /* one maximum a lane: no chain of comparisons */
    int64_t i = 0;
    for (; i + ACF_LANES <= n; i += ACF_LANES)
        for (int64_t v = 0; v < ACF_LANES; v++) top[v] = magnitude(m[i + v]) > top[v] ? magnitude(m[i + v]) : top[v];
    for (int64_t v = 0; i + v < n; v++) top[v] = magnitude(m[i + v]) > top[v] ? magnitude(m[i + v]) : top[v];
    for (int64_t v = 0; v < ACF_LANES; v++) largest = top[v] > largest ? top[v] : largest;
    return largest;
}

int64_t acf_dense_singular(const acf_real *pivot, int64_t stride, int64_t n, acf_real largest) {
    const acf_real least = ACF_R(n) * ACF_REAL_EPS * largest;
    for (int64_t k = 0; k < n; k++) {
        double p = (double)pivot[k * stride];
        if (!isfinite(p) || fabs(p) <= (double)least) return k;
    }
    return -1;
}

/* A product of mantissas in [1,2) and a sum of exponents: one log per matrix instead of n, an error of n units in
 * the last place of a double, and exactly 0 for the identity, the initial value in training. */
double acf_dense_logabs(const acf_real *pivot, int64_t stride, int64_t n) {
    double product = 1;
    int64_t exponent = 0;
    for (int64_t k = 0; k < n; k++) {
        int e;
        product *= 2 * frexp(fabs((double)pivot[k * stride]), &e);
        exponent += e - 1;
        if (product > 0x1p900) product *= 0x1p-900, exponent += 900;
    }
    return log(product) + (double)exponent * 0.693147180559945309417;
}

/* ---- solves ---------------------------------------------------------------------------------------------------- */

/* M = L U Pᵀ, so L U w = z and x[order] = w: rows of L and U are read as dot products. */
void acf_dense_solve(acf_real *x, acf_real *z, const acf_real *f, const int32_t *order, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        acf_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < k; j++) sum += f[k * n + j] * z[j];
        z[k] = (z[k] - sum) / f[k * n + k];
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        acf_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = k + 1; j < n; j++) sum += f[k * n + j] * z[j];
        z[k] -= sum;
    }
    for (int64_t k = 0; k < n; k++) x[order[k]] = z[k];
}

/* Mᵀ = P Uᵀ Lᵀ: the same rows, now as updates of what remains. */
void acf_dense_solve_t(acf_real *v, const acf_real *g, const acf_real *f, const int32_t *order, int64_t n) {
    for (int64_t k = 0; k < n; k++) v[k] = g[order[k]];
    for (int64_t k = 0; k < n; k++) {
        const acf_real a = v[k];
        ACF_SIMD
        for (int64_t j = k + 1; j < n; j++) v[j] -= f[k * n + j] * a;
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        const acf_real a = v[k] /= f[k * n + k];
        ACF_SIMD
        for (int64_t j = 0; j < k; j++) v[j] -= f[k * n + j] * a;
    }
}

/* The transposed solve against unit vectors c0, c0+1, ... at once, one in each lane. x (n, two vectors) receives those
 * columns of (M P)⁻ᵀ. U⁻ᵀ is lower triangular, so the first substitution starts at row c0. */
static void solve_units(acf_lanes *x, const acf_real *f, int64_t c0, int64_t n) {
    memset(x, 0, (size_t)(2 * n) * sizeof *x);
    for (int64_t k = c0; k < acf_min(c0 + ACF_DENSE_BLOCK, n); k++) ((acf_real *)(x + 2 * k))[k - c0] = 1;
    for (int64_t k = c0; k < n; k++) {
        const acf_lanes a = x[2 * k], b = x[2 * k + 1];
        for (int64_t j = k + 1; j < n; j++) {
            x[2 * j] -= f[k * n + j] * a;
            x[2 * j + 1] -= f[k * n + j] * b;
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        const acf_lanes a = x[2 * k] /= f[k * n + k], b = x[2 * k + 1] /= f[k * n + k];
        for (int64_t j = 0; j < k; j++) {
            x[2 * j] -= f[k * n + j] * a;
            x[2 * j + 1] -= f[k * n + j] * b;
        }
    }
}

void acf_dense_inverse_t(acf_real *d, acf_real g, const acf_real *f, const int32_t *order, int64_t n,
                         acf_real *scratch) {
    for (int64_t c0 = 0; c0 < n; c0 += ACF_DENSE_BLOCK) {
        const int64_t width = acf_min(ACF_DENSE_BLOCK, n - c0);
        solve_units((acf_lanes *)scratch, f, c0, n);
        for (int64_t k = 0; k < n; k++)
            for (int64_t c = 0; c < width; c++) d[k * n + order[c0 + c]] += g * scratch[k * ACF_DENSE_BLOCK + c];
    }
}
