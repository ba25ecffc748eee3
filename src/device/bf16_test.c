/* Tests of products in bf16: the exact product of the rounded factors for every size and form, and the device's use
 * of them. */
#include "device/bf16.h"
#include "device/cpu.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void need_bf16(void) {
    if (!acf_bf16_available()) acf_skip("this CPU has no AVX512-BF16");
}

/* Rounds to the nearest bf16, ties to even. */
static float rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7FFF + (bits >> 16 & 1);
    bits &= 0xFFFF0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float *random_floats(int64_t n, uint64_t seed) {
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)acf_lab_random(seed, i, -1, 1);
    return x;
}

#define MARK 12345.0f

/* Compares every element with three loops in double over rounded factors, whose products are exact in float. Checks
 * that nothing outside c is written. */
static void try_product(int64_t M, int64_t N, int64_t K, int form, float beta) {
    bool ta = form & 1, tb = form & 2;
    int64_t lda = (ta ? M : K) + 3, ldb = (tb ? K : N) + 2, ldc = N + 1;
    float *a = random_floats((ta ? K : M) * lda, 1), *b = random_floats((tb ? N : K) * ldb, 2),
          *c = random_floats(M * ldc, 3);
    float *before = random_floats(M * ldc, 3);
    for (int64_t i = 0; i < M; i++) {
        c[i * ldc + N] = MARK;
        for (int64_t j = 0; beta == 0 && j < N; j++) c[i * ldc + j] = NAN; /* must not be read */
    }
    acf_bf16_gemm(&(acf_bf16_product){ta, tb, M, N, K, a, lda, b, ldb, beta, c, ldc});
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += (double)rounded(a[ta ? k * lda + i : i * lda + k]) *
                       (double)rounded(b[tb ? j * ldb + k : k * ldb + j]);
            acf_assert_close((double)c[i * ldc + j], sum + (beta == 0 ? 0 : (double)beta * (double)before[i * ldc + j]),
                             1e-7 * (double)(10 + K), "product");
        }
        assert_true(c[i * ldc + N] == MARK);
    }
    free(a), free(b), free(c), free(before);
}

/* Sizes around every edge: pairs, vectors, rows of a kernel, panels and blocks. */
static void products_are_those_of_rounded_factors(void **state) {
    (void)state;
    need_bf16();
    static const int64_t rows[] = {1, 5, 6, 7, 95, 97}, columns[] = {1, 15, 16, 17, 63, 65, 130},
                         depth[] = {1, 2, 31, 33, 64};
    for (int form = 0; form < 4; form++) {
        for (size_t m = 0; m < sizeof rows / sizeof *rows; m++)
            for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
                for (size_t k = 0; k < sizeof depth / sizeof *depth; k++)
                    try_product(rows[m], columns[n], depth[k], form, (float)(k % 3) / 2);
        try_product(13, 70, 255, form, 1); /* blocks along K: one short of a block, then two and three blocks */
        try_product(13, 70, 257, form, 0);
        try_product(13, 70, 600, form, 0.5f);
        try_product(9, 300, 70, form, 1); /* two blocks of columns */
        try_product(200, 9, 70, form, 1); /* three blocks of rows */
    }
}

/* The bits of an element do not depend on what else is computed with it. */
static void a_part_is_the_same_as_the_whole(void **state) {
    (void)state;
    need_bf16();
    enum { M = 110, N = 150, K = 300 };
    float *a = random_floats(M * K, 1), *b = random_floats(N * K, 2), *whole = random_floats(M * N, 3),
          *part = random_floats(M * N, 3);
    acf_bf16_gemm(&(acf_bf16_product){false, true, M, N, K, a, K, b, K, 0, whole, N});
    for (int64_t i = 0; i < M; i += 37)
        for (int64_t j = 0; j < N; j += 29) {
            int64_t m = acf_min(37, M - i), n = acf_min(29, N - j);
            acf_bf16_gemm(
                &(acf_bf16_product){false, true, m, n, K, a + i * K, K, b + j * K, K, 0, part + i * N + j, N});
        }
    assert_memory_equal(whole, part, M * N * sizeof *whole);
    free(a), free(b), free(whole), free(part);
}

/* NaN and infinity propagate. */
static void nan_and_infinity_propagate(void **state) {
    (void)state;
    need_bf16();
    enum { K = 64 };
    float a[K] = {0}, b[K] = {0}, c;
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        a[K - 1] = wrong[i], b[K - 1] = 1;
        acf_bf16_gemm(&(acf_bf16_product){false, false, 1, 1, K, a, K, b, 1, 0, &c, 1});
        assert_true(isnan(wrong[i]) ? isnan(c) : c == wrong[i]);
    }
}

/* ---- the device ------------------------------------------------------------------------------------------------ */

static void multiply(int threads, bool bf16, int64_t M, int64_t N, int64_t K, acf_real alpha, const acf_real *a,
                     const acf_real *b, acf_real *c) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    assert_int_equal(dev->precision, ACF_PRECISION_FLOAT);
    if (bf16) dev->precision = ACF_PRECISION_BF16;
    acf_cpu_gemm(
        dev,
        &(acf_gemm){
            .tb = true, .M = M, .N = N, .K = K, .alpha = alpha, .a = a, .lda = K, .b = b, .ldb = K, .c = c, .ldc = N},
        NULL, NULL);
    acf_device_close(dev);
}

/* Large products differ from float products by no more than rounding. The bits are the same for any number of
 * threads. */
static void the_device_uses_bf16_on_request(void **state) {
    (void)state;
    if (!acf_cpu_has_bf16()) acf_skip("no AVX512-BF16, or a build for double");
    enum { M = 300, N = 520, K = 256 };
    acf_real *a = malloc(M * K * sizeof *a), *b = malloc(N * K * sizeof *b), *c[4];
    assert_true(a && b);
    for (int i = 0; i < M * K; i++) a[i] = (acf_real)acf_lab_random(1, i, -1, 1);
    for (int i = 0; i < N * K; i++) b[i] = (acf_real)acf_lab_random(2, i, -1, 1);
    for (int k = 0; k < 4; k++) {
        assert_non_null(c[k] = malloc(M * N * sizeof **c));
        multiply(k ? k : 2, k > 0, M, N, K, 1, a, b, c[k]);
        if (k > 1) assert_memory_equal(c[1], c[k], M * N * sizeof **c);
    }
    double square = 0, worst = 0;
    for (int i = 0; i < M * N; i++) {
        double d = fabs((double)c[0][i] - (double)c[1][i]);
        square += d * d, worst = fmax(worst, d);
    }
    /* A factor is off by up to 2^-8 of itself, so a product (1/3 in the mean square) by sqrt(2) · 2^-8 / 3 at most;
     * K of them. */
    double most = sqrt(2.0 * K) / 3 * 0x1p-8;
    assert_true(square > 0 && sqrt(square / (M * N)) < most && worst < 6 * most);
    for (int k = 0; k < 4; k++) free(c[k]);
    free(a), free(b);
}

/* Small products, and those with alpha other than 1, have the same bits as in float. */
static void small_products_stay_float(void **state) {
    (void)state;
    if (!acf_cpu_has_bf16()) acf_skip("no AVX512-BF16, or a build for double");
    static const struct {
        int64_t M, N, K;
        double alpha;
    } shape[] = {{40, 64, 63, 1}, {40, 15, 64, 1}, {40, 64, 64, 0.5}, {40, 64, 64, 1}};
    acf_real a[40 * 64], b[64 * 64], c[2][40 * 64] = {{0}};
    for (int i = 0; i < 40 * 64; i++) a[i] = (acf_real)acf_lab_random(1, i, -1, 1);
    for (int i = 0; i < 64 * 64; i++) b[i] = (acf_real)acf_lab_random(2, i, -1, 1);
    for (int s = 0; s < 4; s++) {
        for (int k = 0; k < 2; k++)
            multiply(1, k, shape[s].M, shape[s].N, shape[s].K, (acf_real)shape[s].alpha, a, b, c[k]);
        assert_int_equal(memcmp(c[0], c[1], sizeof c[0]) == 0, s < 3);
    }
}

ACF_TESTS(bf16, cmocka_unit_test(products_are_those_of_rounded_factors),
          cmocka_unit_test(a_part_is_the_same_as_the_whole), cmocka_unit_test(nan_and_infinity_propagate),
          cmocka_unit_test(the_device_uses_bf16_on_request), cmocka_unit_test(small_products_stay_float))
