/* Tests of one dense matrix: factors, solves and the transposed inverse against their definitions, on both sides of
 * the size where blocks of rows begin. */
#include "ops/dense_lu.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>

static const double eps = (double)ACF_REAL_EPS;
static const int64_t sizes[] = {1, 2, 3, 8, 15, 16, 17, 33, 64, 95, 96, 97, 128, 130};
#define EACH_SIZE(n)                                                                                                   \
    for (size_t at_ = 0; at_ < sizeof sizes / sizeof sizes[0]; at_++)                                                  \
        for (int64_t n = sizes[at_], once_ = 1; once_; once_ = 0)

/* Everything about one random matrix. */
typedef struct bench {
    int64_t n;
    acf_real *m, *f, *d, *x, *z, *scratch;
    int32_t *order;
} bench;

static acf_real *reals(int64_t n) {
    acf_real *p = aligned_alloc(64, (size_t)acf_pad(n + 1) * sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < acf_pad(n + 1); i++) p[i] = 0;
    return p;
}

static bench open_bench(int64_t n) {
    bench b = {n,
               reals(n * n),
               reals(n * n),
               reals(n * n),
               reals(n),
               reals(n),
               reals(n * ACF_DENSE_BLOCK),
               calloc((size_t)n + 1, sizeof(int32_t))};
    assert_non_null(b.order);
    for (int64_t i = 0; i < n * n; i++) b.m[i] = ACF_R(acf_lab_random(17 + (uint64_t)n, i, -1, 1));
    acf_dense_lu(b.f, b.order, b.m, n);
    return b;
}

static void close_bench(bench *b) {
    free(b->m), free(b->f), free(b->d), free(b->x), free(b->z), free(b->scratch), free(b->order);
}

static void factors_multiply_to_the_matrix(void **state) {
    (void)state;
    EACH_SIZE(n) {
        bench b = open_bench(n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0; /* L (lower, with pivots) times U (upper, ones on its diagonal) */
                for (int64_t k = 0; k <= i && k <= j; k++)
                    sum += (double)b.f[i * n + k] * (k == j ? 1 : (double)b.f[k * n + j]);
                acf_assert_close(sum, (double)b.m[i * n + b.order[j]], 20 * (double)n * eps, "L U = M P");
            }
        close_bench(&b);
    }
}

/* Partial pivoting: no element of U exceeds 1, and the order is a permutation. */
static void pivots_are_the_largest(void **state) {
    (void)state;
    EACH_SIZE(n) {
        bench b = open_bench(n);
        int64_t seen[130] = {0};
        for (int64_t i = 0; i < n; i++) {
            assert_in_range(b.order[i], 0, n - 1);
            seen[b.order[i]]++;
            for (int64_t j = i + 1; j < n; j++) assert_true(fabs((double)b.f[i * n + j]) <= 1 + 8 * eps);
        }
        for (int64_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
        close_bench(&b);
    }
}

static void factors_in_place(void **state) {
    (void)state;
    EACH_SIZE(n) {
        bench b = open_bench(n);
        acf_dense_lu(b.m, b.order, b.m, n);
        assert_memory_equal(b.m, b.f, (size_t)(n * n) * sizeof *b.m);
        close_bench(&b);
    }
}

/* M x = z and Mᵀ v = g, by the relative residual. */
static void solves_satisfy_the_equation(void **state) {
    (void)state;
    EACH_SIZE(n) for (int transposed = 0; transposed < 2; transposed++) {
        bench b = open_bench(n);
        for (int64_t i = 0; i < n; i++) b.z[i] = ACF_R(acf_lab_random(5, i, -1, 1));
        if (transposed)
            acf_dense_solve_t(b.x, b.z, b.f, b.order, n);
        else
            acf_dense_solve(b.x, b.z, b.f, b.order, n);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j < n; j++) {
                double term = (double)(transposed ? b.m[j * n + i] : b.m[i * n + j]) * (double)b.x[j];
                sum += term, size += fabs(term);
            }
            assert_true(fabs(sum - (double)ACF_R(acf_lab_random(5, i, -1, 1))) <= 40 * (double)n * eps * (1 + size));
        }
        close_bench(&b);
    }
}

/* Mᵀ (M⁻ᵀ) = I, scaled by g and added to the existing values. */
static void inverse_is_one(void **state) {
    (void)state;
    EACH_SIZE(n) {
        bench b = open_bench(n);
        for (int64_t i = 0; i < n * n; i++) b.d[i] = 1;
        acf_dense_inverse_t(b.d, ACF_R(0.5), b.f, b.order, n, b.scratch);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < n; k++) {
                    double term = (double)b.m[k * n + i] * 2 * ((double)b.d[k * n + j] - 1);
                    sum += term, size += fabs(term);
                }
                assert_true(fabs(sum - (i == j)) <= 60 * (double)n * eps * (2 + size));
            }
        close_bench(&b);
    }
}

static void logarithm_of_many_pivots(void **state) {
    (void)state;
    acf_real p[3000];
    double expected = 0;
    for (int64_t i = 0; i < 3000; i++) {
        p[i] = ACF_R((i % 2 ? -1 : 1) * pow(10, acf_lab_random(3, i, -35, 30)));
        expected += log(fabs((double)p[i]));
    }
    assert_true(fabs(acf_dense_logabs(p, 1, 3000) - expected) <= 1e-9);
    assert_true(fabs(acf_dense_logabs(p, 3, 2) - log(fabs((double)p[0])) - log(fabs((double)p[3]))) <= 1e-12);
    assert_true(acf_dense_logabs(p, 1, 0) == 0);
}

static void largest_sees_every_element(void **state) {
    (void)state;
    acf_real m[40];
    for (int64_t n = 0; n < 40; n++)
        for (int64_t at = 0; at < n; at++) {
            for (int64_t i = 0; i < 40; i++) m[i] = i < n ? 1 : 9;
            m[at] = -3;
            if (at > 0) m[at - 1] = (acf_real)NAN;
            assert_true(acf_dense_largest(m, n) == 3);
        }
    assert_true(acf_dense_largest(m, 0) == 0);
}

static void singular_is_relative_to_the_largest(void **state) {
    (void)state;
    const acf_real e = ACF_REAL_EPS, p[4] = {1, -2, 8 * e, ACF_R(4.0)};
    assert_int_equal(acf_dense_singular(p, 1, 4, 1), -1);
    assert_int_equal(acf_dense_singular(p, 1, 4, 2), 2); /* 8e is not above 4 · e · 2 */
    assert_int_equal(acf_dense_singular(p, 2, 2, 1), -1);
    const acf_real bad[3] = {(acf_real)NAN, (acf_real)INFINITY, 0};
    for (int i = 0; i < 3; i++) assert_int_equal(acf_dense_singular(bad + i, 1, 1, 0), 0);
}

/* For any position of a NaN, some pivot is NaN: no invalid matrix counts as valid. */
static void nan_reaches_a_pivot(void **state) {
    (void)state;
    const int64_t ns[] = {3, 5, 100};
    for (int s = 0; s < 3; s++)
        for (int64_t at = 0; at < ns[s] * ns[s]; at += s == 2 ? 37 : 1) {
            bench b = open_bench(ns[s]);
            for (int64_t i = 0; i < b.n; i++) b.m[i * b.n + i] += 2;
            b.m[at] = (acf_real)NAN;
            acf_dense_lu(b.f, b.order, b.m, b.n);
            assert_true(acf_dense_singular(b.f, b.n + 1, b.n, acf_dense_largest(b.m, b.n * b.n)) >= 0);
            close_bench(&b);
        }
}

ACF_TESTS(dense_lu, cmocka_unit_test(factors_multiply_to_the_matrix), cmocka_unit_test(pivots_are_the_largest),
          cmocka_unit_test(factors_in_place), cmocka_unit_test(solves_satisfy_the_equation),
          cmocka_unit_test(inverse_is_one), cmocka_unit_test(logarithm_of_many_pivots),
          cmocka_unit_test(largest_sees_every_element), cmocka_unit_test(singular_is_relative_to_the_largest),
          cmocka_unit_test(nan_reaches_a_pivot))
