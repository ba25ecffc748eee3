/* Causal attention of short rows on tensor cores, in tf32: for heads of 32 and 64 numbers and rows of at most 64
 * tokens. Softmaxes, sums, inputs and outputs are float.
 *
 * A block handles a row and head, with a warp for every 16 of its tokens: their queries in the forward; first their
 * keys and then their queries in the backward. A block's tokens are in shared memory, rounded to tf32, as tiles (16
 * M,H). The assignment of head numbers and tokens to fragment positions is free as long as both factors agree. It is
 * chosen so that lanes read 16 bytes:
 *
 *     both factors by rows (scores)   lane 4g + t has numbers 16i + 4t .. + 3 of token g, for two products of 8 numbers
 *     second factor by columns        tokens 2t and 2t + 1, numbers 4 turned(g) .. + 3 of 32, for four products;
 *                                     the first factor is what a product left in registers, and rows of the result
 *                                     have four neighbours in a lane, 16 in four
 *
 * The four numbers c of token r are stored at c ^ turned(r), so that eight lanes that read together use different
 * banks. The backward computes transposed scores, keys by queries, whose probabilities and gradients are in the
 * layout that values and keys need. For queries they are transposed through shared memory, where values and
 * gradients of outputs were. Every sum has one order, and every gradient one owner. A NaN value also reaches the
 * tokens before it among its 16. */
#ifndef ACF_OPS_ATTENTION_MMA_CUH
#define ACF_OPS_ATTENTION_MMA_CUH

#include "ops/attention_pieces.cuh"
#include "ops/attention_scores.cuh"

/* The arguments of the backward. */
typedef struct source {
    const acf_real *dout, *out, *lse, *qkv;
} source;

static __device__ int turned(int r) { return (r >> 1 & 3) | (r & 1) << 2; }

static __device__ uint4 bits(const float *x) { return *(const uint4 *)x; }

/* d (two of (16,8)) += tokens a (16,H) times tokens b (16,H). */
template <int H> static __device__ void rows_by_rows(float (&d)[2][4], const float *a, const float *b) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, at = g * H + 4 * (lane % 4 ^ turned(g));
#pragma unroll
    for (int i = 0; i < H / 16; i++) {
        const uint4 u = bits(a + (at ^ 16 * i)), v = bits(a + 8 * H + (at ^ 16 * i));
        const uint32_t one[4] = {u.x, v.x, u.y, v.y}, two[4] = {u.z, v.z, u.w, v.w};
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const uint4 x = bits(b + 8 * n * H + (at ^ 16 * i));
            mma_tf32(d[n], one, x.x, x.y);
            mma_tf32(d[n], two, x.z, x.w);
        }
    }
}

/* d (16,H) += a (16,8) times tokens b (8,H). */
template <int H> static __device__ void by_columns(float (&d)[H / 8][4], const uint32_t (&a)[4], const float *b) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < H / 32; i++) {
        const uint4 x = bits(b + 2 * t * H + 32 * i + 4 * (turned(g) ^ t));
        const uint4 y = bits(b + (2 * t + 1) * H + 32 * i + 4 * (turned(g) ^ t ^ 4));
        mma_tf32(d[4 * i], a, x.x, y.x);
        mma_tf32(d[4 * i + 1], a, x.y, y.y);
        mma_tf32(d[4 * i + 2], a, x.z, y.z);
        mma_tf32(d[4 * i + 3], a, x.w, y.w);
    }
}

/* Numbers 32i + 16half + 4t .. + 3 of row g, or g + 8, of the result of by_columns. */
template <int H> static __device__ float4 made(const float (&d)[H / 8][4], int i, int half, int below) {
    const int c = 2 * below + half;
    return {d[4 * i][c], d[4 * i + 1][c], d[4 * i + 2][c], d[4 * i + 3][c]};
}

/* A block's tokens, four numbers a thread: i-th of H/8. */
template <int H, int M> static __device__ int token_of(int i) { return (int)threadIdx.x / (H / 4) + i * (128 * M / H); }
template <int H, int M>
static __device__ void fetch(float4 (&to)[H / 8], const acf_real *from, int64_t stride, const int *where) {
#pragma unroll
    for (int i = 0; i < H / 8; i++) {
        const int e = where[token_of<H, M>(i)];
        to[i] = {0, 0, 0, 0};
        if (e >= 0) to[i] = *(const float4 *)(from + e * stride + 4 * (threadIdx.x % (H / 4)));
    }
}
template <int H, int M> static __device__ void keep(float *tile, const float4 (&x)[H / 8]) {
#pragma unroll
    for (int i = 0; i < H / 8; i++) {
        const int r = token_of<H, M>(i), c = (int)threadIdx.x % (H / 4);
        *(uint4 *)(tile + r * H + 4 * (c ^ turned(r))) = {as_tf32(x[i].x), as_tf32(x[i].y), as_tf32(x[i].z),
                                                          as_tf32(x[i].w)};
    }
}

/* where (16 M) receives the elements of the row's tokens, -1 after the last. */
template <int M> static __device__ void find(int *where, int k, const sequences &s) {
    const int t = (int)threadIdx.x;
    if (t < SIDE * M) where[t] = exists(s, t, k) ? (int)element(s, t, k) : -1;
    __syncthreads();
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Scores of this warp's queries against tokens b (16,H); q is in the layout that rows_by_rows reads. */
template <int H> static __device__ void ask(float (&d)[2][4], const uint32_t (&q)[H / 8][4], const float *b) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, at = g * H + 4 * (lane % 4 ^ turned(g));
#pragma unroll
    for (int i = 0; i < H / 16; i++)
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const uint4 x = bits(b + 8 * n * H + (at ^ 16 * i));
            mma_tf32(d[n], q[2 * i], x.x, x.y);
            mma_tf32(d[n], q[2 * i + 1], x.z, x.w);
        }
}

/* Queries of tokens e[0] and e[1] (negative: none), in the layout that rows_by_rows reads. */
template <int H>
static __device__ void fetch_queries(uint32_t (&q)[H / 8][4], const acf_real *from, int64_t stride, const int (&e)[2]) {
    const int t = (int)threadIdx.x % 4;
    float4 x[2][H / 16];
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int i = 0; i < H / 16; i++) {
            x[r][i] = {0, 0, 0, 0};
            if (e[r] >= 0) x[r][i] = *(const float4 *)(from + e[r] * stride + 16 * i + 4 * t);
        }
#pragma unroll
    for (int i = 0; i < H / 16; i++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            q[2 * i][r] = as_tf32(x[r][i].x), q[2 * i][2 + r] = as_tf32(x[r][i].y);
            q[2 * i + 1][r] = as_tf32(x[r][i].z), q[2 * i + 1][2 + r] = as_tf32(x[r][i].w);
        }
}

/* This thread's share of the zeros after the last token. */
static __device__ void clear_tail(acf_real *out, int64_t behind, const sequences &s) {
    const int64_t four = s.W / 4, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = behind * four + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.T * four; i += threads)
        ((float4 *)out)[i] = {0, 0, 0, 0};
}

/* out (T,W), zeros after the last token; lse (T,heads) or NULL. */
template <int H, int M>
static __global__ void __launch_bounds__(32 * M, 16 / M)
    short_fwd(acf_real *__restrict__ out, acf_real *__restrict__ lse, const acf_real *__restrict__ qkv, sequences s) {
    __shared__ float4 tiles_[2 * SIDE * M * H / 4];
    __shared__ int where[SIDE * M];
    const int64_t W = s.W, behind = s.first[s.D];
    const int k = (int)blockIdx.x / s.heads, h = (int)blockIdx.x % s.heads, at = h * H;
    find<M>(where, k, s);
    if (where[0] < 0) return clear_tail(out, behind, s);
    float *keys = (float *)tiles_, *values = keys + SIDE * M * H;
    const int w = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int e[2] = {where[SIDE * w + g], where[SIDE * w + g + 8]};
    uint32_t q[H / 8][4];
    {
        float4 a[H / 8], b[H / 8];
        fetch<H, M>(a, qkv + W + at, 3 * W, where);
        fetch<H, M>(b, qkv + 2 * W + at, 3 * W, where);
        fetch_queries<H>(q, qkv + at, 3 * W, e);
        clear_tail(out, behind, s);
        keep<H, M>(keys, a);
        keep<H, M>(values, b);
    }
    __syncthreads();
    if (where[SIDE * w] < 0) return;
    float p[M][2][4] = {};
#pragma unroll
    for (int j = 0; j < M; j++)
        if (j <= w) ask<H>(p[j], q, keys + j * SIDE * H);
    float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < M; j++)
        if (j <= w) update_max(most, p[j], j == w, g, t);
    const float scale = s.scale * LOG2_E;
    float less[2];
#pragma unroll
    for (int r = 0; r < 2; r++) most[r] = quad_max(most[r]), less[r] = most[r] * scale;
    float o[H / 8][4] = {};
#pragma unroll
    for (int j = 0; j < M; j++)
        if (j <= w)
#pragma unroll
            for (int n = 0; n < 2; n++) {
#pragma unroll
                for (int c = 0; c < 4; c++)
                    p[j][n][c] = exp2f(p[j][n][c] * scale - less[c / 2]), sum[c / 2] += p[j][n][c];
                const uint32_t a[4] = {as_tf32(p[j][n][0]), as_tf32(p[j][n][2]), as_tf32(p[j][n][1]),
                                       as_tf32(p[j][n][3])};
                by_columns<H>(o, a, values + (j * SIDE + 8 * n) * H);
            }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float all = quad_sum(sum[r]), part = 1 / all;
        if (e[r] < 0) continue;
        acf_real *to = out + e[r] * W + at + 4 * t;
#pragma unroll
        for (int i = 0; i < H / 16; i++) {
            const float4 x = made<H>(o, i / 2, i % 2, r);
            *(float4 *)(to + 16 * i) = {part * x.x, part * x.y, part * x.z, part * x.w};
        }
        if (lse && t == 0) lse[(int64_t)e[r] * s.heads + h] = most[r] * s.scale + logf(all);
    }
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Shared memory of the backward, in floats: keys, queries, values, gradients of outputs (16 M,H) each; gradients of
 * scores (16 M,16 M + 8), in the memory of the last two; two numbers of each query; elements. */
template <int H, int M> struct plan {
    static constexpr int tile = SIDE * M * H, stride = SIDE * M + 8, turn = SIDE * M * stride;
    static constexpr int notes = 2 * tile + (turn > 2 * tile ? turn : 2 * tile);
    static constexpr int where = notes + 2 * SIDE * M, all = where + SIDE * M;
};

/* Prefetches the gradients to be added to into the L2 cache while the row is processed. */
template <int H, int M> static __device__ void announce(const acf_real *dqkv, const int *where, int64_t W) {
#ifdef __CUDA_ARCH__
    for (int i = (int)threadIdx.x; i < SIDE * M * 3 * (H / 32); i += 32 * M) {
        const int e = where[i / (3 * (H / 32))], c = i % (3 * (H / 32));
        if (e >= 0)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(dqkv + e * 3 * W + c / (H / 32) * W + c % (H / 32) * 32));
    }
#endif
}

/* Rows of tokens e[0] and e[1] += scale × the result of by_columns. */
template <int H>
static __device__ void add_made(acf_real *to, const float (&d)[H / 8][4], acf_real scale, int64_t stride,
                                const int (&e)[2]) {
    const int t = (int)threadIdx.x % 4;
    float4 there[2][H / 16];
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int i = 0; i < H / 16; i++)
            if (e[r] >= 0) there[r][i] = *(const float4 *)(to + e[r] * stride + 16 * i + 4 * t);
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int i = 0; i < H / 16; i++) {
            const float4 x = made<H>(d, i / 2, i % 2, r), y = there[r][i];
            if (e[r] >= 0)
                *(float4 *)(to + e[r] * stride + 16 * i + 4 * t) = {y.x + scale * x.x, y.y + scale * x.y,
                                                                    y.z + scale * x.z, y.w + scale * x.w};
        }
}

/* Adds to dqkv (T,3W). */
template <int H, int M>
static __global__ void __launch_bounds__(32 * M, (H == 64 ? 12 : 16) / M)
    short_bwd(acf_real *__restrict__ dqkv, source from, sequences s) {
    extern __shared__ float4 tiles[];
    typedef plan<H, M> in;
    float *keys = (float *)tiles, *queries = keys + in::tile, *values = queries + in::tile, *douts = values + in::tile;
    float *turn = values;
    float2 *notes = (float2 *)(keys + in::notes); /* of a query: log-sum-exp times log2 e, and Σ out dout */
    int *where = (int *)(keys + in::where);
    const int64_t W = s.W;
    const int k = (int)blockIdx.x / s.heads, h = (int)blockIdx.x % s.heads, at = h * H;
    find<M>(where, k, s);
    if (where[0] < 0) return;
    const int w = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    {
        float4 a[H / 8], b[H / 8];
        fetch<H, M>(a, from.qkv + at, 3 * W, where);
        fetch<H, M>(b, from.qkv + W + at, 3 * W, where);
        announce<H, M>(dqkv + at, where, W);
        keep<H, M>(queries, a);
        fetch<H, M>(a, from.qkv + 2 * W + at, 3 * W, where);
        keep<H, M>(keys, b);
        fetch<H, M>(b, from.dout + at, W, where);
        keep<H, M>(values, a);
        fetch<H, M>(a, from.out + at, W, where);
        keep<H, M>(douts, b);
#pragma unroll
        for (int i = 0; i < H / 8; i++) {
            const int r = token_of<H, M>(i), e = where[r];
            float sum = a[i].x * b[i].x + a[i].y * b[i].y + a[i].z * b[i].z + a[i].w * b[i].w;
            for (int d = H / 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
            /* after the last token probabilities are 0 */
            if (threadIdx.x % (H / 4) == 0)
                notes[r] = {e < 0 ? INFINITY : from.lse[(int64_t)e * s.heads + h] * LOG2_E, sum};
        }
    }
    __syncthreads();
    const int e[2] = {where[SIDE * w + g], where[SIDE * w + g + 8]};
    const bool live = where[SIDE * w] >= 0, early = 2 * w >= M; /* later keys have fewer queries, and wait */
    const float scale = s.scale * LOG2_E;
    float dk[H / 8][4] = {}, dv[H / 8][4] = {};
    uint32_t ds[M][2][4];
#pragma unroll
    for (int j = 0; j < M; j++) { /* queries of the j-th warp after this one */
        const int first = SIDE * (w + j);
        if (w + j >= M || where[first] < 0) continue;
        float p[2][4] = {}, dp[2][4] = {};
        rows_by_rows<H>(p, keys + SIDE * w * H, queries + first * H);
        rows_by_rows<H>(dp, values + SIDE * w * H, douts + first * H);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const float4 note = *(const float4 *)(notes + first + 8 * n + 2 * t);
            uint32_t pr[4];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const bool seen = j > 0 || g + 8 * (c / 2) <= 8 * n + 2 * t + c % 2;
                const float x = seen ? exp2f(p[n][c] * scale - (c % 2 ? note.z : note.x)) : 0;
                pr[c] = as_tf32(x), ds[j][n][c] = as_tf32(x * (dp[n][c] - (c % 2 ? note.w : note.y)));
            }
            const uint32_t a[4] = {pr[0], pr[2], pr[1], pr[3]};
            const uint32_t b[4] = {ds[j][n][0], ds[j][n][2], ds[j][n][1], ds[j][n][3]};
            by_columns<H>(dv, a, douts + (first + 8 * n) * H);
            by_columns<H>(dk, b, queries + (first + 8 * n) * H);
        }
    }
    if (early) add_made<H>(dqkv + W + at, dk, s.scale, 3 * W, e), add_made<H>(dqkv + 2 * W + at, dv, 1, 3 * W, e);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < M; j++) {
        const int first = SIDE * (w + j);
        if (w + j >= M || where[first] < 0) continue;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int row = first + 8 * n + 2 * t + c % 2;
                turn[row * in::stride + SIDE * w + g + 8 * (c / 2)] = __uint_as_float(ds[j][n][c]);
            }
    }
    __syncthreads();
    if (!live) return;
    float dq[H / 8][4] = {};
#pragma unroll 1
    for (int j = 0; j <= w; j++)
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const float *row = turn + (SIDE * w + g) * in::stride + SIDE * j + 8 * n + 2 * t;
            const uint2 u = *(const uint2 *)row, v = *(const uint2 *)(row + 8 * in::stride);
            const uint32_t a[4] = {u.x, v.x, u.y, v.y};
            by_columns<H>(dq, a, keys + (SIDE * j + 8 * n) * H);
        }
    if (!early) add_made<H>(dqkv + W + at, dk, s.scale, 3 * W, e), add_made<H>(dqkv + 2 * W + at, dv, 1, 3 * W, e);
    add_made<H>(dqkv + at, dq, s.scale, 3 * W, e);
}

#endif
