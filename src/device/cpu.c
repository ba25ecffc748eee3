/* The CPU device: matrix products on the kernels of panels.h and bf16.h, with OpenMP over tiles. See device.h and
 * cpu.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "device/cpu.h"

#include "device/bf16.h"
#include "device/panels.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- products -------------------------------------------------------------------------------------------------- */

/* For bf16: a tile has about 12 MFLOP (an eighth of a millisecond on one core) or more, and there are at most 16
 * tiles. The grid is the one with the least packing: every tile row packs B again and every tile column packs A
 * again. It depends only on the shape. */
#define TILE_FLOPS 12e6
#define MAX_TILES 16
/* For panels, whose bits do not depend on the division: one tile a thread, if each has at least 2 MFLOP. */
#define PART_FLOPS 2e6

typedef struct grid {
    int64_t rows, cols; /* tiles in each direction */
    int64_t height, width;
} grid;

static int64_t round_up(int64_t n, int64_t to) { return acf_ceil_div(n, to) * to; }

static grid tile_grid(int64_t M, int64_t N, int64_t K) {
    double flops = 2.0 * (double)M * (double)N * (double)K;
    int64_t tiles = 1;
    while (tiles < MAX_TILES && flops >= TILE_FLOPS * 2.0 * (double)tiles) tiles *= 2;
    grid best = {1, 1, M, N};
    double best_cost = -1.0;
    for (int64_t rows = 1; rows <= tiles; rows *= 2) {
        int64_t cols = tiles / rows;
        double cost = (double)rows * (double)N + (double)cols * (double)M;
        if (best_cost >= 0.0 && cost >= best_cost) continue;
        best_cost = cost;
        best.height = round_up(acf_ceil_div(M, rows), 16);
        best.width = round_up(acf_ceil_div(N, cols), 16);
    }
    best.rows = acf_ceil_div(M, best.height);
    best.cols = acf_ceil_div(N, best.width);
    return best;
}

/* Estimated cycles of a tile: 16 FMAs a cycle, plus packing b by element or by row, plus packing a where it is
 * transposed. */
static double tile_cycles(const acf_gemm *g, int64_t height, int64_t width) {
    double M = (double)height, N = (double)width, K = (double)g->K;
    return K * (M * N / 16 + N * (g->tb ? 0.3 : 0.1) + (g->ta ? M * 0.3 : 0));
}

/* The grid of at most `threads` tiles with the smallest cost of a tile. Edges fall on whole kernels. */
static grid thread_grid(const acf_gemm *g, int threads) {
    double flops = 2.0 * (double)g->M * (double)g->N * (double)g->K, least = -1;
    int64_t parts = acf_max(1, acf_min(threads, (int64_t)(flops / PART_FLOPS)));
    grid best = {1, 1, g->M, g->N};
    for (int64_t rows = 1; rows <= parts; rows++) {
        int64_t height = round_up(acf_ceil_div(g->M, rows), ACF_PANELS_ROWS);
        int64_t width = round_up(acf_ceil_div(g->N, parts / rows), ACF_PANELS_WIDTH);
        double cycles = tile_cycles(g, acf_min(height, g->M), acf_min(width, g->N));
        if (least >= 0 && cycles >= least) continue;
        least = cycles;
        best = (grid){acf_ceil_div(g->M, height), acf_ceil_div(g->N, width), height, width};
    }
    return best;
}

bool acf_cpu_has_bf16(void) { return sizeof(acf_real) == sizeof(float) && acf_bf16_available(); }

/* True if the product is large enough to gain from bf16. Smaller ones stay float: output heads of two numbers, and
 * first layers of narrow tables. The networks have no products with alpha other than 1. */
static bool suits_bf16(const acf_gemm *g) { return g->K >= 64 && g->N >= 16 && g->alpha == 1; }

/* Called only where acf_real is float, so the pointer casts are valid. */
static void gemm_bf16(const acf_gemm *g) {
    acf_bf16_gemm(&(acf_bf16_product){.ta = g->ta,
                                      .tb = g->tb,
                                      .M = g->M,
                                      .N = g->N,
                                      .K = g->K,
                                      .a = (const void *)g->a,
                                      .lda = g->lda,
                                      .b = (const void *)g->b,
                                      .ldb = g->ldb,
                                      .beta = (float)g->beta,
                                      .c = (void *)g->c,
                                      .ldc = g->ldc});
}

/* The part of g that computes rows [r0,r1) and columns [c0,c1) of c. */
static acf_gemm tile_of(const acf_gemm *g, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    acf_gemm t = *g;
    t.M = r1 - r0;
    t.N = c1 - c0;
    t.a = g->a + (g->ta ? r0 : r0 * g->lda);
    t.b = g->b + (g->tb ? c0 * g->ldb : c0);
    t.c = g->c + r0 * g->ldc + c0;
    return t;
}

void acf_cpu_gemm(const acf_device *dev, const acf_gemm *g, acf_epilogue done, void *ctx) {
    if (g->M <= 0 || g->N <= 0) return;
    bool bf16 = dev->precision == ACF_PRECISION_BF16 && suits_bf16(g);
    grid tiles = bf16 ? tile_grid(g->M, g->N, g->K) : thread_grid(g, dev->threads);
    int64_t n = tiles.rows * tiles.cols;
    int threads = n == 1 ? 1 : dev->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        int64_t r0 = i / tiles.cols * tiles.height, r1 = acf_min(r0 + tiles.height, g->M);
        int64_t c0 = i % tiles.cols * tiles.width, c1 = acf_min(c0 + tiles.width, g->N);
        acf_gemm t = tile_of(g, r0, r1, c0, c1);
        if (bf16)
            gemm_bf16(&t);
        else
            acf_panels_gemm(&t);
        if (done) done(ctx, r0, r1, c0, c1);
    }
}

int64_t acf_right_capacity(int64_t K, int64_t N) { return acf_panels_count(K, N); }

acf_right acf_right_make(const acf_device *dev, acf_real *memory, bool tb, int64_t K, int64_t N, const acf_real *b,
                         int64_t ldb) {
    acf_right r = {.g = {.tb = tb, .N = N, .K = K, .alpha = 1, .b = b, .ldb = ldb}};
    if (dev->precision == ACF_PRECISION_BF16 && suits_bf16(&r.g)) return r;
    int64_t panels = acf_ceil_div(N, ACF_PANELS_WIDTH);
    ACF_PARALLEL(dev, K * N)
    for (int64_t p = 0; p < panels; p++) acf_panels_pack(memory, tb, b, ldb, K, N, p, p + 1);
    r.panels = memory;
    return r;
}

void acf_right_times(const acf_right *r, int64_t M, const acf_real *a, int64_t lda, acf_real beta, acf_real *c,
                     int64_t ldc) {
    acf_gemm g = r->g;
    if (M <= 0 || g.N <= 0) return;
    g.M = M, g.a = a, g.lda = lda, g.beta = beta, g.c = c, g.ldc = ldc;
    if (r->panels)
        acf_panels_multiply(M, g.N, g.K, a, lda, r->panels, beta, c, ldc);
    else
        gemm_bf16(&g);
}

#define COL_BLOCK 64

void acf_cpu_colsum(const acf_device *dev, acf_real *out, const acf_real *x, int64_t N, int64_t C, int64_t ld) {
    int64_t blocks = acf_ceil_div(C, COL_BLOCK);
    ACF_PARALLEL(dev, N * C)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t c0 = b * COL_BLOCK, n = acf_min(COL_BLOCK, C - c0);
        acf_real sum[COL_BLOCK] = {0};
        for (int64_t i = 0; i < N; i++) {
            const acf_real *row = x + i * ld + c0;
            ACF_SIMD
            for (int64_t c = 0; c < n; c++) sum[c] += row[c];
        }
        for (int64_t c = 0; c < n; c++) out[c0 + c] += sum[c];
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define CORES_MAX 65536

/* taskset and containers can reduce the number. The set is sized for machines with more than cpu_set_t's 1,024 CPUs. */
int acf_cores(void) {
    union {
        cpu_set_t set;
        char bytes[CORES_MAX / 8];
    } mask;
    if (sched_getaffinity(0, sizeof mask, &mask.set) == 0) return CPU_COUNT_S(sizeof mask, &mask.set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static void cpu_close(acf_device *dev) { acf_release(dev); }

static acf_status cpu_copy(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind) {
    (void)dev, (void)kind;
    memcpy(dst, src, bytes);
    return ACF_OK;
}

static acf_status cpu_zero(acf_device *dev, void *dst, size_t bytes) {
    (void)dev;
    memset(dst, 0, bytes);
    return ACF_OK;
}

static acf_status cpu_fill(acf_device *dev, acf_real *dst, acf_real value, int64_t n) {
    (void)dev;
    for (int64_t i = 0; i < n; i++) dst[i] = value;
    return ACF_OK;
}

/* A CPU stream needs no state: its work is done when the call returns. */
struct acf_stream {
    acf_device *dev;
};

static acf_status cpu_stream_open(acf_device *dev, acf_stream **out) {
    acf_stream *s = acf_alloc(sizeof *s, "a stream");
    if (!s) return ACF_EMEMORY;
    s->dev = dev;
    *out = s;
    return ACF_OK;
}

static void cpu_stream_close(acf_device *dev, acf_stream *s) {
    if (dev->stream == s) dev->stream = NULL;
    acf_release(s);
}

static acf_status cpu_sync(acf_device *dev) {
    (void)dev;
    return ACF_OK;
}

static acf_status cpu_gemm(acf_device *dev, const acf_gemm *g) {
    acf_cpu_gemm(dev, g, NULL, NULL);
    return ACF_OK;
}

/* The memory that the kernel reports as available: free pages and reclaimable file pages. 0 where it reports
 * nothing. */
static size_t available_memory(void) {
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    unsigned long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    if (f) fclose(f);
    return (size_t)kib * 1024;
}

static acf_status cpu_memory(acf_device *dev, size_t *free_bytes, size_t *total_bytes) {
    (void)dev;
    long page = sysconf(_SC_PAGESIZE), available = sysconf(_SC_AVPHYS_PAGES), all = sysconf(_SC_PHYS_PAGES);
    if (page <= 0 || available < 0 || all <= 0)
        return acf_fail(ACF_EDEVICE, "cpu: the system does not report its memory size");
    *free_bytes = available_memory();
    if (*free_bytes == 0) *free_bytes = (size_t)available * (size_t)page;
    *total_bytes = (size_t)all * (size_t)page;
    return ACF_OK;
}

static acf_status cpu_again(const acf_device *dev, acf_device **out) {
    acf_device *again = acf_alloc_zero(sizeof *again, "a device");
    if (!again) return ACF_EMEMORY;
    again->table = dev->table;
    again->kind = dev->kind;
    again->memory = dev->memory;
    *out = again;
    return ACF_OK;
}

static const acf_device_table cpu_table = {
    .name = "cpu",
    .again = cpu_again,
    .close = cpu_close,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .fill = cpu_fill,
    .stream_open = cpu_stream_open,
    .stream_close = cpu_stream_close,
    .sync = cpu_sync,
    .gemm = cpu_gemm,
    .memory_info = cpu_memory,
};

acf_status acf_device_open_cpu(int threads, acf_device **out) {
    if (threads < 0) return acf_fail(ACF_EUSAGE, "threads is %d; expected 0 (all cores) or more", threads);
    acf_device *dev = acf_alloc_zero(sizeof *dev, "a device");
    if (!dev) return ACF_EMEMORY;
    dev->table = &cpu_table;
    dev->kind = ACF_DEVICE_CPU;
    dev->threads = threads ? threads : acf_cores();
    dev->memory = acf_heap;
    *out = dev;
    return ACF_OK;
}
