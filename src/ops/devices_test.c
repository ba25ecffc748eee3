/* Tests of a GPU as a device: products of every form, memory and its error message, faults found by kernels. Run
 * with acflow-test --device cuda. */
#include "device/plugin.h"

#include "harness/lab.h"
#include "ops/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* n random numbers on the device; host receives a copy, to be freed. */
static acf_real *numbers(acf_lab *l, int64_t n, uint64_t seed, acf_real **host) {
    *host = malloc((size_t)(n + 1) * sizeof **host);
    assert_non_null(*host);
    for (int64_t i = 0; i < n; i++) (*host)[i] = (acf_real)acf_lab_random(seed, i, -1, 1);
    acf_real *there = acf_lab_copy(l, *host, (size_t)n * sizeof **host);
    assert_non_null(there);
    return there;
}

/* One product against three loops in double; checks that nothing beyond the columns of c is written. `off` shifts
 * the matrices from their alignment. */
static void try_product(acf_lab *l, int64_t M, int64_t N, int64_t K, int form, acf_real beta, int64_t off) {
    const bool ta = form & 1, tb = form & 2;
    const int64_t lda = (ta ? M : K) + off, ldb = (tb ? K : N) + off, ldc = N + off;
    const double tol = l->dev->precision == ACF_PRECISION_FLOAT  ? 1e-6
                       : l->dev->precision == ACF_PRECISION_TF32 ? 1e-3
                                                                 : 1e-2;
    acf_real *ha, *hb, *hc, *a = numbers(l, (ta ? K : M) * lda + off, 1, &ha),
                            *b = numbers(l, (tb ? N : K) * ldb + off, 2, &hb);
    acf_real *c = numbers(l, M * ldc + off, 3, &hc);
    const acf_gemm g = {.ta = ta,
                        .tb = tb,
                        .M = M,
                        .N = N,
                        .K = K,
                        .alpha = 0.5,
                        .a = a + off,
                        .lda = lda,
                        .b = b + off,
                        .ldb = ldb,
                        .beta = beta,
                        .c = c + off,
                        .ldc = ldc};
    if (acf_device_gemm(l->dev, &g)) fail_msg("%s", acf_error());
    acf_real *found = acf_lab_fetch(l->dev, c, M * ldc + off);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < ldc && i * ldc + j < M * ldc; j++) {
            double sum = 0, before = (double)hc[off + i * ldc + j];
            for (int64_t k = 0; j < N && k < K; k++)
                sum += (double)ha[off + (ta ? k * lda + i : i * lda + k)] *
                       (double)hb[off + (tb ? j * ldb + k : k * ldb + j)];
            acf_assert_close((double)found[off + i * ldc + j], j < N ? 0.5 * sum + (double)beta * before : before,
                             tol * sqrt(1.0 + (double)K), "product");
        }
    free(ha), free(hb), free(hc), free(found);
}

static void products(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},     {5, 3, 7},    {64, 128, 32}, {257, 96, 33},
                                       {3, 512, 300}, {512, 2, 64}, {100, 70, 0}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int form = 0; form < 4; form++)
            for (int64_t off = 0; off < 2; off++) {
                acf_lab l;
                acf_lab_open_on(&l, acf_test_device(), 1, 1, ACF_MASK_ALL, 1);
                try_product(&l, sizes[k][0], sizes[k][1], sizes[k][2], form, (acf_real)form / 2, off);
                acf_lab_close(&l);
            }
}

static void refuses_memory_beyond_the_device(void **state) {
    (void)state;
    acf_lab l;
    size_t left, all;
    acf_lab_open_on(&l, acf_test_device(), 1, 1, ACF_MASK_ALL, 1);
    assert_int_equal(acf_device_memory(l.dev, &left, &all), ACF_OK);
    assert_true(left > 0 && left <= all);
    acf_tensor_new(l.t, 2, (int64_t[]){(int64_t)1 << 30, (int64_t)1 << 14});
    assert_int_equal(acf_tape_status(l.t), ACF_EMEMORY);
    if (!strstr(acf_error(), "GiB requested") || !strstr(acf_error(), "try a smaller batch"))
        fail_msg("%s", acf_error());
    acf_lab_begin(&l, false); /* the device still works */
    assert_int_equal(acf_tape_status(l.t), ACF_OK);
    acf_lab_close(&l);
}

/* Kernels cannot return a message: it comes with the next sync, once. */
static void faults_come_with_the_next_sync(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open_on(&l, acf_test_device(), 1, 1, ACF_MASK_ALL, 1);
    const int32_t code[4] = {0, -1, 9, 2};
    acf_tensor *table = acf_leaf(&l, "table", -1, 1, 2, (int64_t[]){3, 2});
    acf_tensor *y = acf_embedding(l.t, table, acf_lab_copy(&l, code, sizeof code), 4, NULL);
    assert_int_equal(acf_tape_check(l.t, y), ACF_EDATA);
    assert_string_equal(acf_error(), "embedding: the index at place 2 is 9; expected -1 to 2");
    assert_int_equal(acf_device_sync(l.dev), ACF_OK);
    acf_lab_close(&l);
}

/* An operation without a kernel is refused by name. It does not run on the CPU with the device's pointers. */
static void a_missing_kernel_is_named(void **state) {
    (void)state;
    acf_lab l;
    static acf_kernel none[ACF_OP_COUNT];
    acf_lab_open_on(&l, acf_test_device(), 1, 1, ACF_MASK_ALL, 1);
    l.t->kernels = none;
    acf_embedding_columns(l.t, acf_leaf(&l, "table", -1, 1, 2, (int64_t[]){1, 2}), l.u);
    assert_int_equal(acf_tape_status(l.t), ACF_EDEVICE);
    assert_string_equal(acf_error(), "embedding: the operation has no kernel for cuda; use the device cpu");
    acf_lab_close(&l);
}

ACF_DEVICE_TESTS(cuda, cmocka_unit_test(products), cmocka_unit_test(refuses_memory_beyond_the_device),
                 cmocka_unit_test(faults_come_with_the_next_sync), cmocka_unit_test(a_missing_kernel_is_named))
