/* Causal attention of short rows on tensor cores, with inputs and outputs in bf16: for heads of 32 and 64 numbers
 * and rows of at most 64 tokens. Softmaxes and sums are float.
 *
 * A block handles a row and head, with a warp for every 16 of its tokens: their queries in the forward; first their
 * keys and then their queries in the backward, as in attention_mma.cuh. The row's tokens are in shared memory as
 * tiles (16 M,H). Rows are padded by 16 bytes, so that ldmatrix reads eight of them from different banks. One
 * addressing scheme for 16 by 16 numbers serves all factors:
 *
 *     r = ldmatrix           first factor {r0,r1,r2,r3};
 *                            second, by rows: {r0,r2} and {r1,r3} for eight columns of the result each
 *     r = ldmatrix.trans     second factor, by columns: {r0,r1} and {r2,r3}; first, transposed: {r0,r2,r1,r3}
 *
 * The backward computes transposed scores, keys by queries, so that probabilities and their gradients are in the
 * layout that values and keys need. For queries, gradients go through shared memory, where values and gradients of
 * outputs were. Results are written by the rows of queries, 16 bytes a lane. Every sum has one order, and every
 * gradient one owner. Rows after the last token hold zeros. */
#ifndef ACF_OPS_ATTENTION_BF16_CUH
#define ACF_OPS_ATTENTION_BF16_CUH

#include "ops/attention_scores.cuh"

#include <cuda_bf16.h>

typedef __nv_bfloat16 bf16;

/* Token t of the row of rank k is element first[t] + k, where k < active[t]. */
typedef struct short_rows {
    const int32_t *first, *active;
    int64_t D, T, W;
    int heads;
    float scale;
} short_rows;

/* r = 16 by 16 numbers from (row, column) of a matrix in shared memory with this many numbers a row. */
template <bool TURNED>
static __device__ void load16(uint32_t (&r)[4], const bf16 *from, int pitch, int row, int column) {
    const int lane = (int)threadIdx.x % 32;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(from + (row + lane % 16) * pitch + column + lane / 16 * 8);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

/* The token elements of a block's row, -1 after the last. */
template <int M> static __device__ void find(int *where, int k, const short_rows &s) {
    const int t = (int)threadIdx.x;
    if (t < SIDE * M) where[t] = t < s.D && k < s.active[t] ? s.first[t] + k : -1;
    __syncthreads();
}

/* Starts the copy of a head's numbers of the row's tokens to tile (16 M,H); arrive() completes it. */
template <int H, int M> static __device__ void fetch(bf16 *tile, const bf16 *from, int64_t stride, const int *where) {
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        const int chunk = (int)threadIdx.x + 32 * M * i, r = chunk / (H / 8), c = chunk % (H / 8) * 8, e = where[r];
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(tile + r * (H + 8) + c);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"(to), "l"(from + (e < 0 ? 0 : e * stride) + c), "r"(e < 0 ? 0 : 16)
                     : "memory");
    }
}
static __device__ void arrive(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

/* Rows of 16 tokens = scale d (16,H), through a tile that this warp owns. */
template <int H>
static __device__ void leave(bf16 *to, int64_t stride, const int *where, bf16 *tile, const float (&d)[H / 8][4],
                             const float (&scale)[2]) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < H / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            *(uint32_t *)(tile + (g + 8 * r) * (H + 8) + 8 * n + 2 * t) =
                two_bf16(scale[r] * d[n][2 * r], scale[r] * d[n][2 * r + 1]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        const int chunk = lane + 32 * i, r = chunk / (H / 8), c = chunk % (H / 8) * 8, e = where[r];
        if (e >= 0) *(uint4 *)(to + e * stride + c) = *(const uint4 *)(tile + r * (H + 8) + c);
    }
}

/* This thread's share of the zeros in rows of this many numbers after the last token. */
static __device__ void clear_tail(bf16 *x, int64_t width, const short_rows &s) {
    const int64_t end = s.T * width / 8, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = s.first[s.D] * width / 8 + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += threads)
        ((uint4 *)x)[i] = make_uint4(0, 0, 0, 0);
}

/* d (16,16) as a first factor. */
static __device__ void as_factor(uint32_t (&a)[4], const float (&d)[2][4]) {
    a[0] = two_bf16(d[0][0], d[0][1]), a[1] = two_bf16(d[0][2], d[0][3]);
    a[2] = two_bf16(d[1][0], d[1][1]), a[3] = two_bf16(d[1][2], d[1][3]);
}

/* d (16,16) += tokens a (16,H) times tokens b (16,H). */
template <int H> static __device__ void by_rows(float (&d)[2][4], const bf16 *a, int at_a, const bf16 *b, int at_b) {
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        uint32_t x[4], y[4];
        load16<false>(x, a, H + 8, at_a, 16 * i);
        load16<false>(y, b, H + 8, at_b, 16 * i);
        mma_bf16(d[0], x, y[0], y[2]);
        mma_bf16(d[1], x, y[1], y[3]);
    }
}

/* d (16,H) += a (16,16) times tokens b (16,H). */
template <int H>
static __device__ void by_columns(float (&d)[H / 8][4], const uint32_t (&a)[4], const bf16 *b, int at_b) {
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        uint32_t y[4];
        load16<true>(y, b, H + 8, at_b, 16 * i);
        mma_bf16(d[2 * i], a, y[0], y[1]);
        mma_bf16(d[2 * i + 1], a, y[2], y[3]);
    }
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* out (T,W), zeros after the last token; lse (T,heads). */
template <int H, int M>
static __global__ void __launch_bounds__(32 * M, 16 / M)
    narrow_fwd(bf16 *__restrict__ out, float *__restrict__ lse, const bf16 *__restrict__ qkv, short_rows s) {
    __shared__ uint4 memory[3 * SIDE * M * (H + 8) / 8];
    __shared__ int where[SIDE * M];
    const int64_t W = s.W;
    const int k = (int)blockIdx.x / s.heads, h = (int)blockIdx.x % s.heads, at = h * H;
    find<M>(where, k, s);
    if (where[0] < 0) return clear_tail(out, W, s);
    bf16 *queries = (bf16 *)memory, *keys = queries + SIDE * M * (H + 8), *values = keys + SIDE * M * (H + 8);
    fetch<H, M>(queries, qkv + at, 3 * W, where);
    fetch<H, M>(keys, qkv + W + at, 3 * W, where);
    fetch<H, M>(values, qkv + 2 * W + at, 3 * W, where);
    clear_tail(out, W, s);
    arrive();
    const int w = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (where[SIDE * w] < 0) return;
    float p[M][2][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, less[2];
#pragma unroll
    for (int j = 0; j < M; j++)
        if (j <= w) {
            by_rows<H>(p[j], queries, SIDE * w, keys, SIDE * j);
            update_max(most, p[j], j == w, g, t);
        }
    const float scale = s.scale * LOG2_E;
#pragma unroll
    for (int r = 0; r < 2; r++) most[r] = quad_max(most[r]), less[r] = most[r] * scale;
    float o[H / 8][4] = {};
#pragma unroll
    for (int j = 0; j < M; j++)
        if (j <= w) {
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    p[j][n][c] = exp2f(p[j][n][c] * scale - less[c / 2]), sum[c / 2] += p[j][n][c];
            uint32_t a[4];
            as_factor(a, p[j]);
            by_columns<H>(o, a, values, SIDE * j);
        }
    float part[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float all = quad_sum(sum[r]);
        const int e = where[SIDE * w + g + 8 * r];
        part[r] = 1 / all;
        if (e >= 0 && t == 0) lse[(int64_t)e * s.heads + h] = most[r] * s.scale + logf(all);
    }
    leave<H>(out + at, W, where + SIDE * w, queries + SIDE * w * (H + 8), o, part);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* dqkv (T,3W), zeros after the last token. */
template <int H, int M>
static __global__ void __launch_bounds__(32 * M, 16 / M)
    narrow_bwd(bf16 *__restrict__ dqkv, const bf16 *__restrict__ dout, const bf16 *__restrict__ out,
               const float *__restrict__ lse, const bf16 *__restrict__ qkv, short_rows s) {
    constexpr int P = H + 8, TILE = SIDE * M * P, TURN = SIDE * M + 8;
    __shared__ uint4 memory[4 * TILE / 8];
    /* of a query: log-sum-exp times log2 e, and the product of out and dout */
    __shared__ __align__(16) float2 notes[SIDE * M];
    __shared__ int where[SIDE * M];
    const int64_t W = s.W;
    const int k = (int)blockIdx.x / s.heads, h = (int)blockIdx.x % s.heads, at = h * H;
    find<M>(where, k, s);
    if (where[0] < 0) return clear_tail(dqkv, 3 * W, s);
    bf16 *queries = (bf16 *)memory, *keys = queries + TILE, *values = keys + TILE, *douts = values + TILE;
    bf16 *turn = values;
    fetch<H, M>(queries, qkv + at, 3 * W, where);
    fetch<H, M>(keys, qkv + W + at, 3 * W, where);
    fetch<H, M>(values, qkv + 2 * W + at, 3 * W, where);
    fetch<H, M>(douts, dout + at, W, where);
    clear_tail(dqkv, 3 * W, s);
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        const int chunk = (int)threadIdx.x + 32 * M * i, r = chunk / (H / 8), c = chunk % (H / 8) * 8, e = where[r];
        uint4 x = make_uint4(0, 0, 0, 0), y = x;
        if (e >= 0) x = *(const uint4 *)(out + e * W + at + c), y = *(const uint4 *)(dout + e * W + at + c);
        const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
        float sum = 0;
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum += __uint_as_float(a[j] << 16) * __uint_as_float(b[j] << 16) +
                   __uint_as_float(a[j] & 0xffff0000u) * __uint_as_float(b[j] & 0xffff0000u);
#pragma unroll
        for (int d = H / 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        /* after the last token probabilities are 0 */
        if (c == 0) notes[r] = {e < 0 ? INFINITY : lse[(int64_t)e * s.heads + h] * LOG2_E, sum};
    }
    arrive();
    const int w = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool live = where[SIDE * w] >= 0;
    const float scale = s.scale * LOG2_E;
    float dk[H / 8][4] = {}, dv[H / 8][4] = {};
    uint32_t ds[M][4];
#pragma unroll
    for (int j = 0; j < M; j++) { /* queries of the j-th warp after this one */
        const int first = SIDE * (w + j);
        if (w + j >= M || where[first] < 0) continue;
        float p[2][4] = {}, dp[2][4] = {};
        by_rows<H>(p, keys, SIDE * w, queries, first);
        by_rows<H>(dp, values, SIDE * w, douts, first);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const float4 note = *(const float4 *)(notes + first + 8 * n + 2 * t);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const bool seen = j > 0 || g + 8 * (c / 2) <= 8 * n + 2 * t + c % 2;
                p[n][c] = seen ? exp2f(p[n][c] * scale - (c % 2 ? note.z : note.x)) : 0;
                dp[n][c] = p[n][c] * (dp[n][c] - (c % 2 ? note.w : note.y));
            }
        }
        uint32_t a[4];
        as_factor(a, p);
        as_factor(ds[j], dp);
        by_columns<H>(dv, a, douts, first);
        by_columns<H>(dk, ds[j], queries, first);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < M; j++) {
        const int first = SIDE * (w + j);
        if (w + j >= M || where[first] < 0) continue;
#pragma unroll
        for (int c = 0; c < 4; c++)
            *(uint32_t *)(turn + (SIDE * w + g + c % 2 * 8) * TURN + first + c / 2 * 8 + 2 * t) = ds[j][c];
    }
    bf16 *own = queries + SIDE * w * P;
    if (live) {
        const float by[2] = {s.scale, s.scale}, as_is[2] = {1, 1};
        leave<H>(dqkv + W + at, 3 * W, where + SIDE * w, own, dk, by);
        leave<H>(dqkv + 2 * W + at, 3 * W, where + SIDE * w, own, dv, as_is);
    }
    __syncthreads();
    if (!live) return;
    float dq[H / 8][4] = {};
    for (int j = 0; j <= w; j++) {
        uint32_t r[4];
        load16<true>(r, turn, TURN, SIDE * j, SIDE * w);
        const uint32_t a[4] = {r[0], r[2], r[1], r[3]};
        by_columns<H>(dq, a, keys, SIDE * j);
    }
    const float by[2] = {s.scale, s.scale};
    leave<H>(dqkv + at, 3 * W, where + SIDE * w, own, dq, by);
}

#endif
