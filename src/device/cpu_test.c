/* Tests of the CPU device: products against three plain loops, their epilogue, sums, copies, and the rest of the
 * table. */
#include "device/cpu.h"
#include "device/panels.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static acf_device *open_cpu(int threads) {
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

static acf_real *random_reals(int64_t n, uint64_t seed) {
    acf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = (acf_real)acf_lab_random(seed, i, -1, 1);
    return x;
}

/* ---- products -------------------------------------------------------------------------------------------------- */

/* A product with its three arrays. Leading dimensions are a little larger than needed, and the padding holds a
 * marker. */
typedef struct product {
    acf_gemm g;
    acf_real *a, *b, *c, *before;
    int64_t c_size;
} product;

#define MARK ACF_R(12345.0)

static product make_product(int64_t M, int64_t N, int64_t K, bool ta, bool tb, double alpha, double beta) {
    product p;
    int64_t lda = (ta ? M : K) + 3, ldb = (tb ? K : N) + 2, ldc = N + 1;
    p.a = random_reals((ta ? K : M) * lda, 1);
    p.b = random_reals((tb ? N : K) * ldb, 2);
    p.c = random_reals(M * ldc, 3);
    p.c_size = M * ldc;
    for (int64_t i = 0; i < M; i++) p.c[i * ldc + N] = MARK;
    p.before = malloc((size_t)(p.c_size + 1) * sizeof *p.before);
    assert_non_null(p.before);
    memcpy(p.before, p.c, (size_t)p.c_size * sizeof *p.c);
    p.g = (acf_gemm){ta, tb, M, N, K, (acf_real)alpha, p.a, lda, p.b, ldb, (acf_real)beta, p.c, ldc};
    return p;
}

static void free_product(product *p) { free(p->a), free(p->b), free(p->c), free(p->before); }

static void compare(const product *p) {
    const acf_gemm *g = &p->g;
    double tol = (double)ACF_REAL_EPS * (10 + (double)g->K);
    for (int64_t i = 0; i < g->M; i++) {
        for (int64_t j = 0; j < g->N; j++) {
            double sum = 0, old = (double)p->before[i * g->ldc + j];
            for (int64_t k = 0; k < g->K; k++)
                sum += (double)p->a[g->ta ? k * g->lda + i : i * g->lda + k] *
                       (double)p->b[g->tb ? j * g->ldb + k : k * g->ldb + j];
            double expected = (double)g->alpha * sum + (g->beta == 0 ? 0 : (double)g->beta * old);
            acf_assert_close((double)p->c[i * g->ldc + j], expected, tol, "product");
        }
        assert_true(p->c[i * g->ldc + g->N] == MARK);
    }
}

static void try_product(const acf_device *dev, int64_t M, int64_t N, int64_t K, double alpha, double beta) {
    for (int form = 0; form < 4; form++) {
        product p = make_product(M, N, K, form & 1, form & 2, alpha, beta);
        acf_cpu_gemm(dev, &p.g, NULL, NULL);
        compare(&p);
        if (M * N * K < 1000000) { /* and on the calling thread */
            memcpy(p.c, p.before, (size_t)p.c_size * sizeof *p.c);
            acf_panels_gemm(&p.g);
            compare(&p);
        }
        free_product(&p);
    }
}

static void products_match_three_loops_here(void) {
    const int64_t size[][3] = {{1, 1, 1}, {1, 7, 3}, {7, 1, 5}, {5, 3, 1}, {17, 33, 9}, {64, 64, 64}, {31, 129, 65}};
    const double factor[][2] = {{1, 0}, {1, 1}, {-0.5, 2}, {0, 0.5}, {0, 0}};
    acf_device *dev = open_cpu(2);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (size_t f = 0; f < sizeof factor / sizeof factor[0]; f++)
            try_product(dev, size[s][0], size[s][1], size[s][2], factor[f][0], factor[f][1]);
    acf_device_close(dev);
}

/* Wide, tall and cubic shapes, odd sizes, and sizes that are divided into tiles in both directions. */
static void products_of_several_tiles_match_here(void) {
    acf_device *dev = open_cpu(3);
    try_product(dev, 403, 307, 291, 1, 1);
    try_product(dev, 5, 4001, 801, 1, 0);
    try_product(dev, 4001, 5, 801, 2, 0);
    acf_device_close(dev);
}

/* K = 0: c = beta c. M or N = 0: nothing is written. */
static void empty_products_here(void) {
    acf_device *dev = open_cpu(2);
    try_product(dev, 6, 5, 0, 1, 0);
    try_product(dev, 6, 5, 0, 1, 1);
    try_product(dev, 6, 5, 0, 1, 0.5);
    try_product(dev, 0, 5, 3, 1, 0);
    try_product(dev, 5, 0, 3, 1, 0);
    try_product(dev, 0, 0, 0, 1, 0);
    acf_device_close(dev);
}

/* With beta = 0 the old content is not read. Fresh memory is full of NaN in debug builds. */
static void beta_zero_overwrites_garbage_here(void) {
    const int64_t size[][3] = {{3, 4, 5}, {3, 4, 0}, {65, 33, 17}, {300, 300, 300}};
    acf_device *dev = open_cpu(2);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (int form = 0; form < 4; form++) {
            product p = make_product(size[s][0], size[s][1], size[s][2], form & 1, form & 2, 1, 0);
            for (int64_t i = 0; i < p.g.M; i++)
                for (int64_t j = 0; j < p.g.N; j++) p.c[i * p.g.ldc + j] = (acf_real)NAN;
            assert_int_equal(acf_device_gemm(dev, &p.g), ACF_OK);
            compare(&p);
            free_product(&p);
        }
    acf_device_close(dev);
}

static void same_bits_on_any_number_of_threads_here(void) {
    for (int form = 0; form < 4; form++) {
        product p = make_product(517, 389, 401, form & 1, form & 2, 1, 1);
        size_t bytes = (size_t)p.c_size * sizeof *p.c;
        acf_real *first = malloc(bytes);
        assert_non_null(first);
        for (int threads = 1; threads <= 3; threads++) {
            acf_device *dev = open_cpu(threads);
            memcpy(p.c, p.before, bytes);
            acf_cpu_gemm(dev, &p.g, NULL, NULL);
            if (threads == 1) memcpy(first, p.c, bytes);
            assert_memory_equal(first, p.c, bytes);
            acf_device_close(dev);
        }
        free(first);
        free_product(&p);
    }
}

/* ---- epilogue and sums ------------------------------------------------------------------------------------------- */

typedef struct visits {
    uint8_t *count;
    int64_t N;
} visits;

static void visit(void *ctx, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    const visits *v = ctx;
    for (int64_t r = r0; r < r1; r++)
        for (int64_t c = c0; c < c1; c++) v->count[r * v->N + c]++;
}

/* Tiles are disjoint and cover everything, also when K = 0. */
static void epilogue_sees_every_element_once_here(void) {
    const int64_t size[][3] = {{1, 1, 1},       {40, 30, 0},     {403, 307, 291},
                               {17, 5003, 401}, {5003, 17, 401}, {1031, 1033, 257}};
    acf_device *dev = open_cpu(3);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        int64_t M = size[s][0], N = size[s][1], K = size[s][2];
        product p = make_product(M, N, K, false, true, 1, 0);
        visits v = {calloc((size_t)(M * N), 1), N};
        assert_non_null(v.count);
        acf_cpu_gemm(dev, &p.g, visit, &v);
        for (int64_t i = 0; i < M * N; i++) assert_int_equal(v.count[i], 1);
        free(v.count);
        free_product(&p);
    }
    acf_device_close(dev);
}

/* Runs all of the above on the kernels of every instruction set. */
static void on_every_kernel(void (*test)(void)) {
    for (int set = 0; set < ACF_PANELS_SETS; set++) {
        acf_panels_limit((acf_panels_set)set);
        test();
    }
    acf_panels_limit(ACF_PANELS_AVX512);
}

static void products_match_three_loops(void **state) { (void)state, on_every_kernel(products_match_three_loops_here); }
static void products_of_several_tiles_match(void **state) {
    (void)state, on_every_kernel(products_of_several_tiles_match_here);
}
static void empty_products(void **state) { (void)state, on_every_kernel(empty_products_here); }
static void beta_zero_overwrites_garbage(void **state) {
    (void)state, on_every_kernel(beta_zero_overwrites_garbage_here);
}
static void same_bits_on_any_number_of_threads(void **state) {
    (void)state, on_every_kernel(same_bits_on_any_number_of_threads_here);
}
static void epilogue_sees_every_element_once(void **state) {
    (void)state, on_every_kernel(epilogue_sees_every_element_once_here);
}

static void column_sums_are_added(void **state) {
    (void)state;
    const int64_t size[][2] = {{0, 5}, {1, 1}, {3, 64}, {7, 65}, {700, 131}, {5, 0}};
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        int64_t N = size[s][0], C = size[s][1], ld = C + 3;
        acf_real *x = random_reals(N * ld, 4), first[131] = {0};
        for (int threads = 1; threads <= 3; threads++) {
            acf_device *dev = open_cpu(threads);
            acf_real out[131];
            for (int64_t c = 0; c < C; c++) out[c] = (acf_real)c;
            acf_cpu_colsum(dev, out, x, N, C, ld);
            for (int64_t c = 0; c < C; c++) {
                double sum = (double)c;
                for (int64_t i = 0; i < N; i++) sum += (double)x[i * ld + c];
                acf_assert_close((double)out[c], sum, (double)ACF_REAL_EPS * 100, "column sum");
            }
            if (threads == 1) memcpy(first, out, (size_t)C * sizeof *out);
            assert_memory_equal(first, out, (size_t)C * sizeof *out);
            acf_device_close(dev);
        }
        free(x);
    }
}

/* ---- the rest of the table ------------------------------------------------------------------------------------- */

static void copies_and_clears(void **state) {
    (void)state;
    acf_device *dev = open_cpu(1);
    acf_real a[5] = {1, 2, 3, 4, 5}, b[5] = {0}, c[5];
    assert_int_equal(acf_device_copy(dev, b, a, sizeof a, ACF_TO_DEVICE), ACF_OK);
    assert_int_equal(acf_device_copy(dev, c, b, sizeof a, ACF_TO_HOST), ACF_OK);
    assert_memory_equal(a, c, sizeof a);
    assert_int_equal(acf_device_zero(dev, b + 1, 3 * sizeof *b), ACF_OK);
    assert_true(b[0] == 1 && b[1] == 0 && b[3] == 0 && b[4] == 5);
    assert_int_equal(acf_device_copy(dev, NULL, NULL, 0, ACF_ON_DEVICE), ACF_OK); /* zero bytes from NULL */
    assert_int_equal(acf_device_zero(dev, NULL, 0), ACF_OK);
    assert_int_equal(acf_device_sync(dev), ACF_OK);
    acf_device_close(dev);
    acf_device_close(NULL);
}

static void streams_open_and_close(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    acf_device *dev = open_cpu(1);
    acf_stream *s = NULL;
    assert_int_equal(acf_stream_open(dev, &s), ACF_OK);
    dev->stream = s;
    assert_int_equal(acf_device_sync(dev), ACF_OK);
    acf_stream_close(dev, s);
    assert_null(dev->stream); /* a closed stream is no longer used */
    acf_stream_close(dev, NULL);
    acf_alloc_fail_at(1);
    s = NULL;
    assert_int_equal(acf_stream_open(dev, &s), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_null(s);
    acf_device_close(dev);
    assert_int_equal(acf_alloc_live(), live);
}

static void opening(void **state) {
    (void)state;
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(-1, &dev), ACF_EUSAGE);
    assert_string_equal(acf_error(), "threads is -1; expected 0 (all cores) or more");
    assert_null(dev);
    acf_alloc_fail_at(1);
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_null(dev);
    assert_true(acf_cores() >= 1);
    dev = open_cpu(0);
    assert_int_equal(dev->threads, acf_cores());
    assert_int_equal(acf_threads_for(dev, 10), 1); /* too little work for a team */
    assert_int_equal(acf_threads_for(dev, 1 << 20), acf_cores());
    size_t free_bytes = 0, total = 0;
    assert_int_equal(acf_device_memory(dev, &free_bytes, &total), ACF_OK);
    assert_true(total > 0 && free_bytes <= total);
    acf_device_close(dev);
}

ACF_TESTS(cpu, cmocka_unit_test(products_match_three_loops), cmocka_unit_test(products_of_several_tiles_match),
          cmocka_unit_test(empty_products), cmocka_unit_test(beta_zero_overwrites_garbage),
          cmocka_unit_test(same_bits_on_any_number_of_threads), cmocka_unit_test(epilogue_sees_every_element_once),
          cmocka_unit_test(column_sums_are_added), cmocka_unit_test(copies_and_clears),
          cmocka_unit_test(streams_open_and_close), cmocka_unit_test(opening))
