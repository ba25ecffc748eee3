/* Tests of products on panels: comparison with three loops for every size and form, no writes outside c, the same
 * bits however they are divided. */
#include "device/cpu.h"
#include "device/panels.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARK ACF_R(12345.0)

/* Random numbers, then NaN from `rows` times `ld` on, which must not be read. */
static acf_real *matrix(int64_t rows, int64_t columns, int64_t ld, uint64_t seed) {
    acf_real *x = aligned_alloc(64, ((size_t)(rows * ld + 1) * sizeof *x + 127) / 64 * 64);
    assert_non_null(x);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < ld; j++)
            x[i * ld + j] = j < columns ? (acf_real)acf_lab_random(seed, i * columns + j, -1, 1) : (acf_real)NAN;
    return x;
}

typedef struct sizes {
    int64_t M, N, K;
} sizes;

static acf_gemm make(sizes n, int form, double beta) {
    bool ta = form & 1, tb = form & 2;
    acf_gemm g = {
        ta,   tb,     n.M, n.N, n.K, 1, NULL, (ta ? n.M : n.K) + 3, NULL, (tb ? n.K : n.N) + 2, (acf_real)beta,
        NULL, n.N + 1};
    g.a = matrix(ta ? n.K : n.M, ta ? n.M : n.K, g.lda, 1);
    g.b = matrix(tb ? n.N : n.K, tb ? n.K : n.N, g.ldb, 2);
    g.c = matrix(n.M, n.N, g.ldc, 3);
    for (int64_t i = 0; i < n.M; i++) {
        g.c[i * g.ldc + n.N] = MARK;
        for (int64_t j = 0; beta == 0 && j < n.N; j++) g.c[i * g.ldc + j] = (acf_real)NAN; /* must not be read */
    }
    return g;
}

static void compare(const acf_gemm *g) {
    acf_real *before = matrix(g->M, g->N, g->ldc, 3);
    for (int64_t i = 0; i < g->M; i++) {
        for (int64_t j = 0; j < g->N; j++) {
            double sum = g->beta == 0 ? 0 : (double)g->beta * (double)before[i * g->ldc + j];
            for (int64_t k = 0; k < g->K; k++)
                sum += (double)g->a[g->ta ? k * g->lda + i : i * g->lda + k] *
                       (double)g->b[g->tb ? j * g->ldb + k : k * g->ldb + j];
            acf_assert_close((double)g->c[i * g->ldc + j], sum, (double)ACF_REAL_EPS * (double)(10 + g->K), "product");
        }
        assert_true(g->c[i * g->ldc + g->N] == MARK);
    }
    free(before);
}

static void release(const acf_gemm *g) { free((void *)g->a), free((void *)g->b), free(g->c); }

/* Both ways: b packed during the call and, where a is not transposed, packed before into memory that is not zero. */
static void try_product(sizes n, int form, double beta) {
    acf_gemm g = make(n, form, beta);
    acf_panels_gemm(&g);
    compare(&g);
    release(&g);
    if (form & 1) return;
    g = make(n, form, beta);
    int64_t count = acf_panels_count(n.K, n.N);
    acf_real *panels = matrix(1, 0, count, 4);
    acf_panels_pack(panels, g.tb, g.b, g.ldb, n.K, n.N, 0, acf_ceil_div(n.N, ACF_PANELS_WIDTH));
    for (int64_t i = 0; i < count; i++) assert_true(!isnan(panels[i])); /* zeros beyond the last column */
    acf_panels_multiply(n.M, n.N, n.K, g.a, g.lda, panels, g.beta, g.c, g.ldc);
    compare(&g);
    free(panels);
    release(&g);
}

/* Sizes around every edge: vectors, rows of a kernel, panels and blocks. */
static void every_edge(void) {
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 95, 97},
                         columns[] = {1, 7, 8, 9, 15, 17, 31, 33, 63, 64, 65, 130}, depth[] = {0, 1, 15, 17, 40};
    for (int form = 0; form < 4; form++) {
        for (size_t m = 0; m < sizeof rows / sizeof *rows; m++)
            for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
                for (size_t k = 0; k < sizeof depth / sizeof *depth; k++)
                    try_product((sizes){rows[m], columns[n], depth[k]}, form, (double)(k % 3) / 2);
        try_product((sizes){13, 70, ACF_PANELS_DEPTH - 1}, form,
                    1); /* one short of a block along K, then two and three blocks */
        try_product((sizes){13, 70, ACF_PANELS_DEPTH + 1}, form, 0);
        try_product((sizes){13, 70, 2 * ACF_PANELS_DEPTH + 9}, form, 0.5);
        try_product((sizes){9, 300, 70}, form, 1); /* two blocks of columns (float; three in double) */
        try_product((sizes){200, 9, 70}, form, 1); /* three blocks of rows */
    }
}

static void products_match_three_loops(void **state) {
    (void)state;
    for (int set = 0; set < ACF_PANELS_SETS; set++) {
        acf_panels_limit((acf_panels_set)set);
        every_edge();
    }
    acf_panels_limit(ACF_PANELS_AVX512);
}

/* A model gives the same bits on a CPU with AVX2 and on one with AVX-512: both add along K in one order. */
static void instructions_do_not_change_the_bits(void **state) {
    (void)state;
    if (acf_panels_best() < ACF_PANELS_AVX512) acf_skip("this CPU has no AVX-512");
    for (int form = 0; form < 4; form++) {
        acf_gemm g[2];
        for (int i = 0; i < 2; i++) {
            acf_panels_limit(i ? ACF_PANELS_AVX2 : ACF_PANELS_AVX512);
            g[i] = make((sizes){41, 77, 300}, form, 1);
            acf_panels_gemm(&g[i]);
        }
        acf_panels_limit(ACF_PANELS_AVX512);
        assert_memory_equal(g[0].c, g[1].c, (size_t)(41 * g[0].ldc) * sizeof *g[0].c);
        release(&g[0]), release(&g[1]);
    }
}

/* The bits of an element do not depend on what else is computed with it. */
static void a_part_is_the_same_as_the_whole(void **state) {
    (void)state;
    enum { M = 110, N = 150, K = 300 };
    for (int form = 0; form < 4; form++) {
        acf_gemm whole = make((sizes){M, N, K}, form, 1), parts = make((sizes){M, N, K}, form, 1);
        acf_panels_gemm(&whole);
        for (int64_t i = 0; i < M; i += 37)
            for (int64_t j = 0; j < N; j += 29) {
                acf_gemm p = parts;
                p.M = acf_min(37, M - i), p.N = acf_min(29, N - j), p.c += i * p.ldc + j;
                p.a += p.ta ? i : i * p.lda, p.b += p.tb ? j * p.ldb : j;
                acf_panels_gemm(&p);
            }
        assert_memory_equal(whole.c, parts.c, (size_t)(M * whole.ldc) * sizeof *whole.c);
        release(&whole), release(&parts);
    }
}

/* A packed right factor gives a row the same bits alone and with other rows. In bf16 the results are close. */
static void rows_with_a_packed_factor_are_independent(void **state) {
    (void)state;
    enum { M = 29, N = 90, K = 520 };
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(2, &dev), ACF_OK);
    for (int bf16 = 0; bf16 <= acf_cpu_has_bf16(); bf16++) {
        acf_gemm g = make((sizes){M, N, K}, 2, 1), alone = make((sizes){M, N, K}, 2, 1);
        acf_real *memory = matrix(1, 0, acf_right_capacity(K, N), 4);
        dev->precision = bf16 ? ACF_PRECISION_BF16 : ACF_PRECISION_FLOAT;
        acf_right r = acf_right_make(dev, memory, true, K, N, g.b, g.ldb);
        assert_int_equal(!r.panels, bf16);
        acf_right_times(&r, M, g.a, g.lda, 1, g.c, g.ldc);
        acf_right_times(&r, 0, NULL, 0, 1, NULL, 0);
        if (!bf16) compare(&g);
        for (int64_t i = 0; i < M; i++)
            acf_right_times(&r, 1, alone.a + i * g.lda, g.lda, 1, alone.c + i * g.ldc, g.ldc);
        assert_memory_equal(g.c, alone.c, (size_t)(M * g.ldc) * sizeof *g.c);
        free(memory);
        release(&g), release(&alone);
    }
    acf_device_close(dev);
}

/* NaN and infinity propagate. */
static void nan_and_infinity_propagate(void **state) {
    (void)state;
    static const acf_real wrong[] = {(acf_real)NAN, (acf_real)INFINITY, -(acf_real)INFINITY};
    for (int i = 0; i < 3; i++) {
        acf_real a[3] = {0, 0, wrong[i]}, b[3] = {0, 0, 1}, c;
        acf_panels_gemm(&(acf_gemm){false, false, 1, 1, 3, 1, a, 3, b, 1, 0, &c, 1});
        assert_true(isnan(wrong[i]) ? isnan(c) : c == wrong[i]);
    }
}

ACF_TESTS(panels, cmocka_unit_test(products_match_three_loops), cmocka_unit_test(instructions_do_not_change_the_bits),
          cmocka_unit_test(a_part_is_the_same_as_the_whole),
          cmocka_unit_test(rows_with_a_packed_factor_are_independent), cmocka_unit_test(nan_and_infinity_propagate))
