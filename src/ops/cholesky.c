/* A Cholesky factor: see cholesky.h.
 *
 * Workload: 2 to 100 rows, one matrix for each row of a table and each component of its Gaussian mixture. LANES rows
 * are processed at a time, one in each lane of a vector, so every operation on an element is done for LANES rows.
 * There are no sums over lanes and no short row ends, which dominate dot products of ten elements. The time relative
 * to dot products is 0.14 at n = 60 and 0.4 at n = 13 (AVX-512), 0.22 and 0.57 (AVX2). */
#include "ops/cholesky.h"

#include "base/real.h"

#include <math.h>
#include <string.h>

#ifdef __AVX512F__
#define VECTOR_BYTES 64
#else
#define VECTOR_BYTES 32
#endif
enum {
    LANES = VECTOR_BYTES / sizeof(double),
    AT_ONCE = 4,
    MOST = 256
}; /* AT_ONCE: columns that are finished together; MOST: the largest n, bounded by the stack */
typedef double lanes __attribute__((vector_size(VECTOR_BYTES)));

/* Element by element. */
static int64_t by_elements(double *l, int64_t n, double least) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = l[i * n + j];
#pragma omp simd reduction(- : sum)
            for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (j == i && !(sum > least)) return i;
            l[i * n + j] = j == i ? sqrt(sum) : sum / l[j * n + j];
        }
    return -1;
}

/* Finishes columns j .. j+3 of the rows in p, whose columns before j are done, with rows j .. j+3 of l. by: 1 /
 * l_jj. */
static inline void finish_columns(lanes *p, const double *l, int64_t n, int64_t j, const double *by) {
    const double *a = l + j * n, *b = a + n, *c = b + n, *d = c + n;
    lanes of_a = p[j], of_b = p[j + 1], of_c = p[j + 2], of_d = p[j + 3];
    for (int64_t k = 0; k < j; k++) of_a -= p[k] * a[k], of_b -= p[k] * b[k], of_c -= p[k] * c[k], of_d -= p[k] * d[k];
    p[j] = of_a *= by[j];
    p[j + 1] = of_b = (of_b - of_a * b[j]) * by[j + 1];
    p[j + 2] = of_c = (of_c - of_a * c[j] - of_b * c[j + 1]) * by[j + 2];
    p[j + 3] = (of_d - of_a * d[j] - of_b * d[j + 1] - of_c * d[j + 2]) * by[j + 3];
}

/* Finishes column j, whose own row is in lane `own`; false if its pivot is too small. */
static inline bool finish_pivot(lanes *p, int64_t j, int64_t own, double least, double *by) {
    lanes even = p[j], odd = {0}; /* two sums: neither waits for the other */
    int64_t k = 0;
    for (; k + 1 < j; k += 2) even -= p[k] * p[k][own], odd -= p[k + 1] * p[k + 1][own];
    if (k < j) even -= p[k] * p[k][own];
    even += odd;
    if (!(even[own] > least)) return false;
    *by = 1 / sqrt(even[own]);
    p[j] = even * *by;
    return true;
}

int64_t acf_cholesky(double *l, int64_t n, double least) {
    lanes p[MOST]; /* p[k][r] = l_{i+r,k} */
    double by[MOST];
    if (n < LANES || n > MOST) return by_elements(l, n, least);
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t end = acf_min(i + LANES, n);
        memset(p, 0, (size_t)end * sizeof *p);
        for (int64_t row = i; row < end; row++)
            for (int64_t k = 0; k <= row; k++) p[k][row - i] = l[row * n + k];
        for (int64_t j = 0; j < i; j += AT_ONCE) finish_columns(p, l, n, j, by);
        for (int64_t j = i; j < end; j++)
            if (!finish_pivot(p, j, j - i, least, &by[j])) return j;
        for (int64_t row = i; row < end; row++)
            for (int64_t k = 0; k <= row; k++) l[row * n + k] = p[k][row - i];
    }
    return -1;
}
