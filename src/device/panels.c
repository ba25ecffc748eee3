/* Matrix products on panels: see panels.h.
 *
 * Workload: the products of GRUs and dense layers, M from 1 to 4,096 rows, N and K from 1 to 1,024, and gradients of
 * weights with K up to 100,000. One core of a Zen 4 reaches 111 GFLOP/s for any M that is a multiple of 6; its FMA
 * units have 115. OpenBLAS reaches 34 at M = 6, 85 at 48 and 96 at 252.
 *
 * A kernel keeps 6 rows of a panel's 64 columns of c in 24 registers while it runs along K. Each step has 4 loads of
 * b, 6 broadcasts of a and 24 FMAs. 64 KB of a panel are in use at a time; they come from the L2 cache, 256 bytes
 * for 24 cycles of arithmetic. a is read in place, along its rows. A transposed a is first packed, six columns at a
 * time. */
#include "device/panels.h"

#include <string.h>

#define LANES ACF_PANELS_LANES
#define WIDTH ACF_PANELS_WIDTH
#define ROWS ACF_PANELS_ROWS
#define DEPTH ACF_PANELS_DEPTH
#define BLOCK_ROWS 96                  /* rows of a: with DEPTH numbers each they stay in the L2 cache beside a panel */
#define BLOCK_PANELS 4                 /* panels of b that are packed at a time */
#define AHEAD 12                       /* rows of a transposed a that are prefetched before they are packed */
#define LEFT_GROUP (ROWS * DEPTH + 16) /* numbers of six packed rows of a; not a power of two (cache sets) */

typedef acf_real vec __attribute__((vector_size(64), may_alias));
typedef acf_real anywhere __attribute__((vector_size(64), aligned(sizeof(acf_real)), may_alias));

/* Interleaves the lower halves of two vectors; and the upper halves. */
#ifdef ACF_DOUBLE
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* Rows of a times one panel of b: c = alpha · a · b + beta · c. */
typedef struct tile {
    const acf_real *a, *b;
    int64_t row, step, group; /* a's strides: from row to row, along K, and from six rows to the next six */
    int64_t depth;            /* along K */
    acf_real *c;
    int64_t ldc, columns; /* columns: those of the panel that exist */
    acf_real alpha, beta;
} tile;

#define TARGET
#define NAMED(x) x##_plain
#define VECTORS 1
#include "device/panel_kernels.inc"
#undef TARGET
#undef NAMED
#undef VECTORS

#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,fma")))
#define NAMED(x) x##_avx2
#define VECTORS 1
#include "device/panel_kernels.inc"
#undef TARGET
#undef NAMED
#undef VECTORS

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define NAMED(x) x##_avx512
#define VECTORS 4
#include "device/panel_kernels.inc"

static acf_panels_set of_cpu(void) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return ACF_PANELS_PLAIN;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? ACF_PANELS_AVX512
               : ACF_PANELS_AVX2;
}

#else

#define run_avx2 run_plain
#define run_avx512 run_plain
#define pack_transposed_avx2 pack_transposed_plain
#define pack_transposed_avx512 pack_transposed_plain
static acf_panels_set of_cpu(void) { return ACF_PANELS_PLAIN; }

#endif

#ifdef ACF_DEBUG
static acf_panels_set limit = ACF_PANELS_AVX512;
void acf_panels_limit(acf_panels_set most) { limit = most; }
#else
static const acf_panels_set limit = ACF_PANELS_AVX512;
#endif

acf_panels_set acf_panels_best(void) { return (acf_panels_set)acf_min(of_cpu(), limit); }

static void (*const run_by_set[ACF_PANELS_SETS])(const tile *, int64_t) = {run_plain, run_avx2, run_avx512};
static void (*const pack_by_set[ACF_PANELS_SETS])(acf_real *, const acf_real *, int64_t, int64_t, int64_t) = {
    pack_transposed_plain, pack_transposed_avx2, pack_transposed_avx512};

/* ---- packing --------------------------------------------------------------------------------------------------- */

int64_t acf_panels_count(int64_t K, int64_t N) { return acf_ceil_div(N, WIDTH) * WIDTH * K; }

/* A panel from b (K,columns). */
static void pack_rows(acf_real *out, const acf_real *b, int64_t ldb, int64_t K, int64_t columns) {
    for (int64_t k = 0; k < K; k++) {
        if (columns == WIDTH)
            memcpy(out + k * WIDTH, b + k * ldb, WIDTH * sizeof *out); /* a constant: four vectors */
        else
            memcpy(out + k * WIDTH, b + k * ldb, (size_t)columns * sizeof *out);
    }
}

void acf_panels_pack(acf_real *out, bool tb, const acf_real *b, int64_t ldb, int64_t K, int64_t N, int64_t p0,
                     int64_t p1) {
    for (int64_t p = p0; p < p1; p++) {
        acf_real *panel = out + p * K * WIDTH;
        int64_t c = p * WIDTH, columns = acf_min(WIDTH, N - c);
        if (columns < WIDTH) memset(panel, 0, (size_t)(K * WIDTH) * sizeof *panel);
        if (tb)
            pack_by_set[acf_panels_best()](panel, b + c * ldb, ldb, K, columns);
        else
            pack_rows(panel, b + c, ldb, K, columns);
    }
}

/* Packs rows of a transposed a, stored (K,rows): [six rows][k][row], stride LEFT_GROUP. The last group may have
 * fewer rows; its remainder is not used. */
static void pack_left(acf_real *out, const acf_real *a, int64_t lda, int64_t K, int64_t rows) {
    /* a is read along its rows: its columns are often 4 KB apart and would share a cache set. Hardware prefetchers
     * do not cross pages, so some rows ahead are prefetched here. */
    for (int64_t k = 0; k < K; k++) {
        const acf_real *ahead = a + acf_min(k + AHEAD, K - 1) * lda;
        for (int64_t i = 0; i < rows; i += LANES) __builtin_prefetch(ahead + i);
        for (int64_t i = 0; i < rows; i += ROWS) {
            acf_real *to = out + i / ROWS * LEFT_GROUP + k * ROWS;
            const acf_real *from = a + k * lda + i;
            if (rows - i >= ROWS)
                memcpy(to, from, ROWS * sizeof *to); /* a constant size: compiles to two moves */
            else
                memcpy(to, from, (size_t)(rows - i) * sizeof *to);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------------------------- */

/* A block of rows times panels that are `apart` numbers from each other. t has the first panel and all columns. */
static void run_panels(tile t, int64_t rows, int64_t apart) {
    acf_panels_set set = acf_panels_best();
    for (int64_t left = t.columns; left > 0; left -= WIDTH) {
        t.columns = acf_min(WIDTH, left);
        run_by_set[set](&t, rows);
        t.b += apart, t.c += WIDTH;
    }
}

void acf_panels_multiply(int64_t M, int64_t N, int64_t K, const acf_real *a, int64_t lda, const acf_real *panels,
                         acf_real beta, acf_real *c, int64_t ldc) {
    for (int64_t m = 0; m < M; m += BLOCK_ROWS) {
        tile t = {a + m * lda, panels, lda, 1, ROWS * lda, K, c + m * ldc, ldc, N, 1, beta};
        run_panels(t, acf_min(BLOCK_ROWS, M - m), K * WIDTH);
    }
}

/* One block along K with all columns that are packed. */
static void run_block(const acf_gemm *g, acf_real *a, const acf_real *b, int64_t k0, int64_t k, int64_t n0, int64_t n) {
    tile t = {NULL, b, g->lda, 1, ROWS * g->lda, k, NULL, g->ldc, n, g->alpha, k0 ? 1 : g->beta};
    if (g->ta) t.row = 1, t.step = ROWS, t.group = LEFT_GROUP;
    for (int64_t m = 0; m < g->M; m += BLOCK_ROWS) {
        int64_t rows = acf_min(BLOCK_ROWS, g->M - m);
        t.a = g->ta ? a : g->a + m * g->lda + k0;
        t.c = g->c + m * g->ldc + n0;
        if (g->ta) pack_left(a, g->a + k0 * g->lda + m, g->lda, k, rows);
        run_panels(t, rows, k * WIDTH);
    }
}

void acf_panels_gemm(const acf_gemm *g) {
    _Alignas(64) acf_real a[BLOCK_ROWS / ROWS * LEFT_GROUP], b[BLOCK_PANELS * DEPTH * (64 / sizeof(acf_real)) * 4];
    int64_t k0 = 0;
    do { /* at least once: K = 0 is beta · c */
        int64_t k = acf_min(DEPTH, g->K - k0), wide = BLOCK_PANELS * WIDTH;
        for (int64_t n0 = 0; n0 < g->N; n0 += wide) {
            int64_t n = acf_min(wide, g->N - n0);
            acf_panels_pack(b, g->tb, g->b + (g->tb ? n0 * g->ldb + k0 : k0 * g->ldb + n0), g->ldb, k, n, 0,
                            acf_ceil_div(n, WIDTH));
            run_block(g, a, b, k0, k, n0, n);
        }
        k0 += DEPTH;
    } while (k0 < g->K);
}
