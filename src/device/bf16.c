/* Matrix products in bf16: see bf16.h.
 *
 * Workload: the products of GRUs and dense layers, M = 10 to 4,096 rows, N and K from 64 to 1,024. One core of a Zen
 * 4 reaches about 190 GFLOP/s; a large product in float reaches 100.
 *
 * The instruction multiplies pairs: each 32-bit lane of the sum gets a0·b0 + a1·b1. Both factors are therefore
 * packed as pairs of neighbours along K, one pair in 32 bits (kp counts pairs):
 *
 *     b, a panel of 64 columns    [kp][64]       four vectors a step
 *     a, a block of rows          [row][kp]      one pair is broadcast; [kp][row] where a is transposed
 *
 * A kernel keeps 6 rows of 64 columns of c in 24 registers while it runs along K. A block of K is 256 long. A panel
 * of b is then 32 KB and is read from the L2 cache, while a stays in L1. */
#include "device/bf16.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Only these functions are compiled for AVX512-BF16. The rest of the build may be for any CPU; acf_bf16_available
 * checks at run time. */
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline __attribute__((always_inline)) TARGET

#define ROWS 6        /* rows of c in registers */
#define VECTORS 4     /* vectors of 16 columns of c in registers */
#define PANEL 64      /* columns: ROWS · VECTORS registers */
#define PAIRS 128     /* pairs of a block along K */
#define BLOCK_ROWS 96 /* rows of a that are packed at a time */
#define BLOCK_COLS 256
#define A_STRIDE (PAIRS + 16) /* not a power of two: rows would share cache sets */

bool acf_bf16_available(void) { return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw"); }

/* Lanes below n, for the last vector of a row. */
static __mmask16 lanes(int64_t n) { return (__mmask16)(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1); }

/* ---- packing --------------------------------------------------------------------------------------------------- */

/* 32 numbers of a row, the first n of them valid, as 16 pairs. */
INLINE __m512i pairs_of(const float *x, int64_t n) {
    __m512 low = _mm512_maskz_loadu_ps(lanes(n), x), high = _mm512_maskz_loadu_ps(lanes(n - 16), x + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* out [row][kp], stride A_STRIDE, from x (rows,k): pairs are contiguous. */
TARGET static void pack_rows(uint32_t *out, const float *x, int64_t ld, int64_t rows, int64_t k) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < k; j += 32)
            _mm512_storeu_si512(out + r * A_STRIDE + j / 2, pairs_of(x + r * ld + j, k - j));
}

/* out [kp][column], with the given stride, from x (k,columns): a pair spans two rows. */
TARGET static void pack_columns(uint32_t *out, int64_t stride, const float *x, int64_t ld, int64_t k, int64_t columns) {
    for (int64_t r = 0; r < k; r += 2)
        for (int64_t j = 0; j < columns; j += 16) {
            __mmask16 valid = lanes(columns - j), second = r + 1 < k ? valid : 0;
            const float *p = x + r * ld + j;
            __m512 a = _mm512_maskz_loadu_ps(valid, p), b = _mm512_maskz_loadu_ps(second, second ? p + ld : p);
            __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(a));
            __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(b)), 16);
            _mm512_storeu_si512(out + r / 2 * stride + j, _mm512_or_si512(low, high));
        }
}

/* Transposes 16 vectors of 16 lanes: first within quarters by unpacking, then the quarters. */
INLINE void transpose(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]), r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]), r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88), t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xDD);
        t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88),
              t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88), r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xDD);
        r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88),
              r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xDD);
    }
}

/* A panel [kp][64] from x (columns,k): pairs are contiguous, columns are strided. */
TARGET static void pack_transposed(uint32_t *out, const float *x, int64_t ld, int64_t columns, int64_t k) {
    for (int64_t c = 0; c < columns; c += 16)
        for (int64_t j = 0; j < k; j += 32) {
            __m512i r[16];
            for (int64_t i = 0; i < 16; i++)
                r[i] = c + i < columns ? pairs_of(x + (c + i) * ld + j, k - j) : _mm512_setzero_si512();
            transpose(r);
            for (int64_t i = 0; i < 16; i++) _mm512_storeu_si512(out + (j / 2 + i) * PANEL + c, r[i]);
        }
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

/* The arguments of a kernel: `pairs` steps along K of packed a and b, added to beta·c. */
typedef struct tile {
    const uint32_t *a, *b;
    int64_t row, step; /* a's strides, from row to row and from pair to pair */
    int64_t pairs;
    float *c;
    int64_t ldc;
    float beta;
    __mmask16 last; /* columns of the last vector that exist */
} tile;

/* rows and vectors are constants at each call, so the sums stay in registers. */
INLINE void kernel(int rows, int vectors, const tile *t) {
    __m512 sum[ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_setzero_ps();
    for (int64_t k = 0; k < t->pairs; k++) {
        __m512bh b[VECTORS];
        for (int j = 0; j < vectors; j++) b[j] = (__m512bh)_mm512_load_si512(t->b + k * PANEL + 16 * j);
        for (int i = 0; i < rows; i++) {
            __m512bh a = (__m512bh)_mm512_set1_epi32((int)t->a[i * t->row + k * t->step]);
            for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], b[j], a);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            __mmask16 valid = j == vectors - 1 ? t->last : (__mmask16)0xFFFF;
            float *c = t->c + i * t->ldc + 16 * j;
            __m512 old = _mm512_maskz_loadu_ps(t->beta == 0 ? (__mmask16)0 : valid, c); /* beta 0: c is not read */
            _mm512_mask_storeu_ps(c, valid, _mm512_fmadd_ps(_mm512_set1_ps(t->beta), old, sum[i][j]));
        }
}

TARGET static void kernel_6x64(const tile *t) { kernel(6, 4, t); }
TARGET static void kernel_6x16(const tile *t) { kernel(6, 1, t); }
TARGET static void kernel_1x64(const tile *t) { kernel(1, 4, t); }
TARGET static void kernel_1x16(const tile *t) { kernel(1, 1, t); }

/* One panel of b times all packed rows of a. Edges use the small kernels: one row, 16 columns. */
TARGET static void run_panel(tile t, int64_t rows, int64_t columns) {
    const tile start = t;
    for (int64_t i = 0; i < rows;) {
        bool six = rows - i >= ROWS;
        t.a = start.a + i * t.row;
        if (columns == PANEL) {
            t.b = start.b, t.c = start.c + i * t.ldc, t.last = 0xFFFF;
            six ? kernel_6x64(&t) : kernel_1x64(&t);
        } else {
            for (int64_t j = 0; j < columns; j += 16) {
                t.b = start.b + j, t.c = start.c + i * t.ldc + j, t.last = lanes(columns - j);
                six ? kernel_6x16(&t) : kernel_1x16(&t);
            }
        }
        i += six ? ROWS : 1;
    }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* The part of b at (k0,n0), k long and n wide, as panels of [PAIRS][PANEL]. */
TARGET static void pack_b(uint32_t *out, const acf_bf16_product *g, int64_t k0, int64_t k, int64_t n0, int64_t n) {
    for (int64_t j = 0; j < n; j += PANEL) {
        int64_t columns = acf_min(PANEL, n - j), at = n0 + j;
        if (g->tb)
            pack_transposed(out + j * PAIRS, g->b + at * g->ldb + k0, g->ldb, columns, k);
        else
            pack_columns(out + j * PAIRS, PANEL, g->b + k0 * g->ldb + at, g->ldb, k, columns);
    }
}

static void pack_a(uint32_t *out, const acf_bf16_product *g, int64_t k0, int64_t k, int64_t m0, int64_t m) {
    if (g->ta)
        pack_columns(out, BLOCK_ROWS, g->a + k0 * g->lda + m0, g->lda, k, m);
    else
        pack_rows(out, g->a + m0 * g->lda + k0, g->lda, m, k);
}

void acf_bf16_gemm(const acf_bf16_product *g) {
    _Alignas(64) uint32_t a[BLOCK_ROWS * A_STRIDE], b[BLOCK_COLS * PAIRS];
    for (int64_t k0 = 0; k0 < g->K; k0 += 2 * PAIRS)
        for (int64_t n0 = 0; n0 < g->N; n0 += BLOCK_COLS) {
            int64_t k = acf_min(2 * PAIRS, g->K - k0), n = acf_min(BLOCK_COLS, g->N - n0);
            tile t = {.row = g->ta ? 1 : A_STRIDE,
                      .step = g->ta ? BLOCK_ROWS : 1,
                      .pairs = acf_ceil_div(k, 2),
                      .ldc = g->ldc,
                      .beta = k0 ? 1 : g->beta,
                      .a = a};
            pack_b(b, g, k0, k, n0, n);
            for (int64_t m0 = 0; m0 < g->M; m0 += BLOCK_ROWS) {
                int64_t m = acf_min(BLOCK_ROWS, g->M - m0);
                pack_a(a, g, k0, k, m0, m);
                for (int64_t j = 0; j < n; j += PANEL) {
                    t.b = b + j * PAIRS, t.c = g->c + m0 * g->ldc + n0 + j;
                    run_panel(t, m, acf_min(PANEL, n - j));
                }
            }
        }
}

#else

bool acf_bf16_available(void) { return false; }
void acf_bf16_gemm(const acf_bf16_product *g) {
    (void)g;
    __builtin_trap(); /* acf_bf16_available returned true */
}

#endif
