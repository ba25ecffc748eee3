/* Tests of Cholesky factors, on both sides of every size at which the method changes. */
#include "ops/cholesky.h"

#include "base/real.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 60, 100, 255, 256, 257, 264};
enum { SIZES = sizeof sizes / sizeof sizes[0] };
#define UPPER 12345.0 /* marks memory that must not be read or written */

/* B Bᵀ of a random B, plus something on its diagonal. */
static double *positive(int64_t n, double extra) {
    double *b = malloc((size_t)(n * n) * sizeof *b), *a = malloc((size_t)(n * n) * sizeof *a);
    assert_true(a && b);
    for (int64_t i = 0; i < n * n; i++) b[i] = acf_lab_random(3 + (uint64_t)n, i, -1, 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = i == j ? extra : 0;
            for (int64_t k = 0; k < n; k++) sum += b[i * n + k] * b[j * n + k];
            a[i * n + j] = j <= i ? sum : UPPER;
        }
    free(b);
    return a;
}

static void factors_give_the_matrix_back(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        double *a = positive(n, 0.5), *l = malloc((size_t)(n * n) * sizeof *l);
        memcpy(l, a, (size_t)(n * n) * sizeof *l);
        assert_int_equal(acf_cholesky(l, n, 0), -1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                if (j > i) assert_true(l[i * n + j] == UPPER);
                for (int64_t k = 0; k <= j && j <= i; k++) sum += l[i * n + k] * l[j * n + k];
                if (j <= i)
                    assert_true(fabs(sum - a[i * n + j]) < 1e-15 * (double)n * (a[i * n + i] + a[j * n + j]) &&
                                (j < i || l[i * n + i] > 0));
            }
        free(a), free(l);
    }
}

/* The pivot p is the Schur complement there. If it is not above the threshold, the factorisation stops at p;
 * slightly more suffices. */
static void small_pivots_are_located(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        double *a = positive(n, 0.5), *l = malloc((size_t)(n * n) * sizeof *l),
               *whole = malloc((size_t)(n * n) * sizeof *l);
        memcpy(whole, a, (size_t)(n * n) * sizeof *l);
        assert_int_equal(acf_cholesky(whole, n, 0), -1);
        for (int64_t p = 0; p < n; p += acf_max(1, n / 19)) {
            const double pivot = whole[p * n + p] * whole[p * n + p];
            memcpy(l, a, (size_t)(n * n) * sizeof *l);
            l[p * n + p] -= pivot - 0.0999;
            assert_int_equal(acf_cholesky(l, n, 0.1), p);
            memcpy(l, a, (size_t)(n * n) * sizeof *l);
            l[p * n + p] -= pivot - 0.1001;
            const int64_t later = acf_cholesky(l, n, 0.1);
            assert_true(later == -1 || later > p); /* its Schur complement is smaller */
            memcpy(l, a, (size_t)(n * n) * sizeof *l);
            l[p * n + p] = NAN;
            assert_int_equal(acf_cholesky(l, n, 0), p);
        }
        free(a), free(l), free(whole);
    }
}

ACF_TESTS(cholesky, cmocka_unit_test(factors_give_the_matrix_back), cmocka_unit_test(small_pivots_are_located))
