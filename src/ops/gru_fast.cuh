/* Device pieces and launches that the forward and the backward of gru_fast.h share. Included only by .cu files. */
#ifndef ACF_OPS_GRU_FAST_CUH
#define ACF_OPS_GRU_FAST_CUH

#include "ops/gru_fast.h"
#include "ops/gru_pieces.cuh"
#include "ops/hopper.cuh"

#define HU 256                          /* units */
#define GROUP (3 * 16 * HU * 2)         /* bytes of the forward's weights of 16 units */
#define SLICE (HU * 3 * (HU / 4) * 2)   /* bytes of the backward's weights of a block */
#define FORWARD_BYTES (HU / 16 * GROUP) /* the forward's part of an image; the backward's, as large, follows it */

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ void copy_weights(uint32_t to, const unsigned char *from, int bytes, uint32_t bar) {
    bar_expect(bar, (uint32_t)bytes);
    for (int i = 0; i < bytes; i += GROUP) bulk_copy(to + i, from + i, GROUP, bar);
}

template <bool APPROX> __device__ __forceinline__ float tanh_by(float v) {
    if constexpr (!APPROX) return tanh_of(v);
    float r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
template <bool APPROX> __device__ __forceinline__ float sigmoid_by(float v) {
    if constexpr (!APPROX) return sigmoid(v);
    return 0.5f + 0.5f * tanh_by<true>(0.5f * v);
}

/* acc[g][m][j] += rows of tile m · 16 rows of weights of group g, K-steps of 16, for tiles M0 to M1. a, w: start of
 * this lane's ldmatrix row; PITCH: bytes of a row. With one tile of rows, fragments of a step are read while the
 * previous step multiplies; with more, the registers do not suffice. */
template <int M0, int M1, int STEPS, int PITCH, int GROUPS, int MT>
__device__ __forceinline__ void products_of(float (&acc)[GROUPS][MT][2][4], uint32_t a, uint32_t w) {
    constexpr int AHEAD = M1 - M0 == 1 ? 1 : 0;
    int lane = threadIdx.x & 31;
    uint32_t pa[4], pw[4], fa[1 + AHEAD][M1 - M0][4], fw[1 + AHEAD][GROUPS][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pa[i] = a + (((2 * i + (lane >> 4)) ^ (lane & 7)) << 4);
        pw[i] = w + (((2 * i + (lane >> 3 & 1)) ^ (lane & 7)) << 4);
    }
    auto fetch = [&](int k) {
#pragma unroll
        for (int m = M0; m < M1; m++) read4(fa[k & AHEAD][m - M0], pa[k & 3] + k / 4 * 128 + m * 16 * PITCH);
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (AHEAD) read4(fw[k & AHEAD][g], pw[k & 3] + k / 4 * 128 + g * 16 * PITCH);
    };
    fetch(0);
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (k + AHEAD < STEPS && k + AHEAD) fetch(k + AHEAD);
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            if (!AHEAD) read4(fw[0][g], pw[k & 3] + k / 4 * 128 + g * 16 * PITCH);
#pragma unroll
            for (int m = M0; m < M1; m++) {
                multiply(acc[g][m][0], fa[k & AHEAD][m - M0], fw[k & AHEAD][g][0], fw[k & AHEAD][g][1]);
                multiply(acc[g][m][1], fa[k & AHEAD][m - M0], fw[k & AHEAD][g][2], fw[k & AHEAD][g][3]);
            }
        }
    }
}

/* The first `live` tiles: all at once if no rows have ended, else one by one. */
template <int STEPS, int PITCH, int GROUPS, int MT>
__device__ __forceinline__ void products(float (&acc)[GROUPS][MT][2][4], uint32_t a, uint32_t w, int live) {
    __syncwarp();
    if (MT == 1 || live == MT)
        products_of<0, MT, STEPS, PITCH>(acc, a, w);
    else {
        products_of<0, 1, STEPS, PITCH>(acc, a, w);
        if constexpr (MT > 2)
            if (live > 1) products_of<1, 2, STEPS, PITCH>(acc, a, w);
        if constexpr (MT > 3)
            if (live > 2) products_of<2, 3, STEPS, PITCH>(acc, a, w);
    }
}

/* Rows of a team, of ROWS at most from slot0 on, that are among the first n ranks. */
template <int ROWS> __device__ __forceinline__ int team_rows(int n, int tile, int tiles, int slot0) {
    int rows = slots(n, tile, tiles) - slot0;
    return rows < 0 ? 0 : rows > ROWS ? ROWS : rows;
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

extern "C" acf_gru_fast acf_gru_try; /* for the kernel lab: nonzero fields override the choice */

static inline int ceil_of(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

template <typename K, typename... A>
static cudaError_t run_clusters(K kernel, const acf_gru_fast &g, int warps, int bytes, cudaStream_t stream, A... args) {
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e) return e;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)g.C, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)(g.tiles * g.C)), c.blockDim = dim3((unsigned)(32 * warps));
    c.dynamicSmemBytes = (size_t)bytes, c.stream = stream, c.attrs = &cluster, c.numAttrs = 1;
    return cudaLaunchKernelEx(&c, kernel, args...);
}

#endif
