/* Eigenvectors against their definition: the rows are orthonormal and reproduce the matrix, also for special
 * matrices. */
#include "ops/symmetric_eigen.h"

#include "base/real.h"
#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *reals(int64_t n) {
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    return x;
}

/* a (n,n) = Vᵀ diag(w) V with V Vᵀ = 1, both to rounding. */
static void check(const double *a, int64_t n) {
    double *v = reals(n * n), *w = reals(n), *scratch = reals(n), size = 0;
    for (int64_t i = 0; i < n * n; i++) size = fmax(size, fabs(a[i]));
    memcpy(v, a, (size_t)(n * n) * sizeof *v);
    assert_true(acf_symmetric_eigen(v, n, w, scratch));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, product = 0;
            for (int64_t k = 0; k < n; k++)
                sum += v[k * n + i] * w[k] * v[k * n + j], product += v[i * n + k] * v[j * n + k];
            assert_true(fabs(sum - a[i * n + j]) <= 1e-14 * (double)n * size);
            assert_true(fabs(product - (i == j)) <= 1e-14 * (double)n);
        }
    free(v), free(w), free(scratch);
}

static double *random_symmetric(int64_t n) {
    double *a = reals(n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            a[i * n + j] = a[j * n + i] = acf_lab_random(11 + (uint64_t)n, i * n + j, -1, 1);
    return a;
}

static void vectors_give_the_matrix_back(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 30, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double *a = random_symmetric(sizes[s]);
        check(a, sizes[s]);
        free(a);
    }
    assert_true(acf_symmetric_eigen(NULL, 0, NULL, NULL));
}

/* Empty; the identity, with equal eigenvalues; one vector, all but one 0; blocks; a wide range; squares that overflow
 * or underflow. */
static void special_matrices(void **state) {
    (void)state;
    enum { N = 20, KINDS = 7 };
    for (int kind = 0; kind < KINDS; kind++) {
        double *a = random_symmetric(N);
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++) {
                const double kinds[KINDS] = {0,
                                             i == j,
                                             (double)((i + 1) * (j + 1)),
                                             i / 5 == j / 5 ? a[i * N + j] : 0,
                                             a[i * N + j] * exp(-(double)(i + j)),
                                             a[i * N + j] * 1e200,
                                             a[i * N + j] * 1e-200};
                a[i * N + j] = kinds[kind];
            }
        check(a, N);
        free(a);
    }
}

static void known_eigenvalues(void **state) {
    (void)state;
    double a[4] = {2, 1, 1, 2}, w[2], scratch[2];
    assert_true(acf_symmetric_eigen(a, 2, w, scratch));
    acf_assert_close(fmin(w[0], w[1]), 1, 1e-15, "smaller");
    acf_assert_close(fmax(w[0], w[1]), 3, 1e-15, "larger");
}

/* A NaN or infinity anywhere ends in a refusal. */
static void nonfinite_numbers_are_refused(void **state) {
    (void)state;
    enum { N = 5 };
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j <= i; j++) {
            double *a = random_symmetric(N), w[N], scratch[N];
            a[i * N + j] = a[j * N + i] = NAN;
            assert_false(acf_symmetric_eigen(a, N, w, scratch));
            free(a);
        }
    double alone = NAN, w, scratch;
    assert_false(acf_symmetric_eigen(&alone, 1, &w, &scratch));
}

ACF_TESTS(symmetric_eigen, cmocka_unit_test(vectors_give_the_matrix_back), cmocka_unit_test(special_matrices),
          cmocka_unit_test(known_eigenvalues), cmocka_unit_test(nonfinite_numbers_are_refused))
