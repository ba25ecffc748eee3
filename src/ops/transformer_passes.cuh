/* The kernels between the products of a transformer's block in bf16. Used by transformer_narrow.cu alone, which
 * describes the block and its workload.
 *
 * For norms a warp has a row and each lane four neighbouring numbers; for gelu and incoming gradients a thread has
 * eight columns. So the column sums, which are gradients of biases and norms, are made in the same pass. Blocks write
 * their parts of those sums; a launch beside the main stream adds them up. Dropout draws its masks again in the
 * backward, from the same counters. */
#ifndef ACF_OPS_TRANSFORMER_PASSES_CUH
#define ACF_OPS_TRANSFORMER_PASSES_CUH

#include "ops/ops.cuh"

#include "base/rng.cuh"
#include "ops/attention_bf16.cuh"

extern "C" {
#include "ops/dropout.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
}

#define WARPS 8    /* of a block, one row each at a time */
#define WIDEST 512 /* largest W that a warp holds in registers */
#define EIGHT 8    /* columns of a thread, and rows of a block at a time, in kernels by columns */

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static __device__ float low(uint32_t x) { return __uint_as_float(x << 16); }
static __device__ float high(uint32_t x) { return __uint_as_float(x & 0xffff0000u); }
static __device__ void spread(float (&to)[EIGHT], uint4 x) {
    to[0] = low(x.x), to[1] = high(x.x), to[2] = low(x.y), to[3] = high(x.y);
    to[4] = low(x.z), to[5] = high(x.z), to[6] = low(x.w), to[7] = high(x.w);
}
static __device__ uint4 narrowed(const float (&x)[EIGHT]) {
    return make_uint4(two_bf16(x[0], x[1]), two_bf16(x[2], x[3]), two_bf16(x[4], x[5]), two_bf16(x[6], x[7]));
}
static __device__ float4 four(const bf16 *x) {
    const uint2 u = *(const uint2 *)x;
    return {low(u.x), high(u.x), low(u.y), high(u.y)};
}
static __device__ void put_four(bf16 *to, float4 x) {
    *(uint2 *)to = make_uint2(two_bf16(x.x, x.y), two_bf16(x.z, x.w));
}

/* A dropout; off: all numbers are kept. */
typedef struct dropping {
    bool on;
    uint32_t dropped; /* random words below it drop the number */
    float scale;      /* factor of kept numbers */
    acf_drop drop;
    acf_cells at;
} dropping;

/* The factors of numbers c .. c + 3 of row m; c is a multiple of 4. The bits are those of dropout.cu. */
static __device__ float4 dropout_factors(const dropping &d, int64_t m, int c, int C) {
    if (!d.on) return {1, 1, 1, 1};
    const int64_t row = d.at.row[m], column = d.at.column[m];
    if (row < 0) return {0, 0, 0, 0};
    const acf_rng_counter place = {d.drop.seed, d.drop.row_id ? d.drop.row_id[row] : (uint64_t)row,
                                   ACF_STREAM_DROPOUT + d.drop.site, (uint32_t)(column * (C / 4) + c / 4),
                                   d.drop.now ? *d.drop.now : d.drop.step};
    const philox4x32_ctr_t w = acf_rng_bits_cuda(place);
    return {w.v[0] >= d.dropped ? d.scale : 0, w.v[1] >= d.dropped ? d.scale : 0, w.v[2] >= d.dropped ? d.scale : 0,
            w.v[3] >= d.dropped ? d.scale : 0};
}

static __device__ float4 plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
static __device__ float4 times(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
static __device__ float total(float4 a) { return (a.x + a.y) + (a.z + a.w); }

/* ---- parameters in bf16 ------------------------------------------------------------------------------------------ */

#define COPIES 6
typedef struct copies {
    const float *from[COPIES];
    bf16 *to[COPIES];
    int64_t end[COPIES]; /* cumulative counts, in units of four */
} copies;

static __global__ void copy_parameters(copies k) {
    ACF_EACH(i, k.end[COPIES - 1]) {
        int p = 0;
        while (i >= k.end[p]) p++;
        const int64_t at = 4 * (i - (p ? k.end[p - 1] : 0));
        put_four(k.to[p] + at, *(const float4 *)(k.from[p] + at));
    }
}

/* y (n) = x (n) as float, n a multiple of 8. */
static __global__ void widen(float *__restrict__ y, const bf16 *__restrict__ x, int64_t n) {
    ACF_EACH(i, n / 4) * (float4 *)(y + 4 * i) = four(x + 4 * i);
}

/* ---- norms, one warp per row ------------------------------------------------------------------------------------- */

/* For the float4 of a row in this lane: the k-th is numbers c .. c + 3. */
#define EACH_FOUR(k, c, C)                                                                                             \
    _Pragma("unroll")                                                                                                  \
    for (int k = 0; k < K; k++)                                                                                        \
        if (const int c = 4 * lane + 128 * k; c < (C))

/* y (M,C) = the norm of h, or with x of a (M,C) = h + drop(x + bias); stat (M,2). Behind the true rows y and a are
 * 0. */
template <int K>
static __global__ void __launch_bounds__(32 * WARPS)
    norm_fwd(bf16 *__restrict__ y, float *__restrict__ stat, float *__restrict__ a, const float *__restrict__ h,
             const bf16 *__restrict__ x, const float *__restrict__ bias, const float *__restrict__ scale,
             const float *__restrict__ shift, dropping d, const int32_t *rows, int64_t M, int C) {
    const int64_t m = acf_thread() / 32;
    const int lane = (int)threadIdx.x % 32;
    if (m >= M) return;
    const float4 none = {0, 0, 0, 0};
    if (m >= acf_true_rows(rows, M)) {
        EACH_FOUR(k, c, C) {
            put_four(y + m * C + c, none);
            if (a) *(float4 *)(a + m * C + c) = none;
        }
        return;
    }
    float4 v[K];
    float sum = 0, square = 0;
    EACH_FOUR(k, c, C) v[k] = *(const float4 *)(h + m * C + c);
    if (x) {
        EACH_FOUR(k, c, C)
        v[k] = plus(v[k], times(plus(four(x + m * C + c), *(const float4 *)(bias + c)), dropout_factors(d, m, c, C)));
    }
    EACH_FOUR(k, c, C) {
        if (a) *(float4 *)(a + m * C + c) = v[k];
        sum += total(v[k]);
    }
    const float mean = acf_warp_sum(sum) / (float)C;
    EACH_FOUR(k, c, C) {
        v[k] = plus(v[k], {-mean, -mean, -mean, -mean});
        square += total(times(v[k], v[k]));
    }
    const float inverse = 1 / sqrtf(acf_warp_sum(square) / (float)C + (float)ACF_LAYER_NORM_EPS);
    EACH_FOUR(k, c, C)
    put_four(y + m * C + c, plus(times(times(v[k], {inverse, inverse, inverse, inverse}), *(const float4 *)(scale + c)),
                                 *(const float4 *)(shift + c)));
    if (lane == 0) stat[2 * m] = mean, stat[2 * m + 1] = inverse;
}

/* to (C) = the warps' sums, in their order. Every thread must call it. */
template <int K> static __device__ void add_warps(float *to, const float4 (&sum)[K], float *memory, int C) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    __syncthreads(); /* the previous call may still be reading */
    EACH_FOUR(k, c, C) * (float4 *)(memory + warp * C + c) = sum[k];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < C; c += (int)blockDim.x) {
        float all = 0;
        for (int w = 0; w < WARPS; w++) all += memory[w * C + c];
        to[c] = all;
    }
}

/* The gradient through a norm of x from dy: da (M,C) = base + it, and narrow (M,C) = that times the dropout's mask; or,
 * without narrow, da += base + it. da NULL: not needed. part (blocks,3,C): what this block's rows add to the gradients
 * of scale, shift, and of a bias before the dropout. Behind the true rows da and narrow are 0, or da is unchanged. */
template <int K, bool MIDDLE>
static __global__ void __launch_bounds__(32 * WARPS, 2)
    norm_bwd(float *__restrict__ da, bf16 *__restrict__ narrow, float *__restrict__ part,
             const float *__restrict__ base, const bf16 *__restrict__ dy, const float *__restrict__ stat,
             const float *__restrict__ x, const float *__restrict__ scale, dropping d, const int32_t *rows, int64_t M,
             int C) {
    extern __shared__ float memory[];
    const int lane = (int)threadIdx.x % 32;
    const int64_t n = acf_true_rows(rows, M), per = (M + gridDim.x - 1) / gridDim.x;
    const int64_t end = min((int64_t)(blockIdx.x + 1) * per, M);
    const float4 none = {0, 0, 0, 0};
    float4 dscale[K], dshift[K], dbias[MIDDLE ? K : 1];
#pragma unroll
    for (int k = 0; k < K; k++) {
        dscale[k] = none, dshift[k] = none;
        if (MIDDLE) dbias[k] = none;
    }
    for (int64_t m = blockIdx.x * per + threadIdx.x / 32; m < end; m += WARPS) {
        if (m >= n) {
            if (MIDDLE) {
                EACH_FOUR(k, c, C) * (float4 *)(da + m * C + c) = none, put_four(narrow + m * C + c, none);
            }
            continue;
        }
        float4 g[K], v[K], there[K];
        EACH_FOUR(k, c, C) {
            v[k] = *(const float4 *)(x + m * C + c), g[k] = four(dy + m * C + c);
            there[k] = *(const float4 *)(base + m * C + c);
            if (!MIDDLE && da) there[k] = plus(there[k], *(const float4 *)(da + m * C + c));
        }
        const float mean = stat[2 * m], inverse = stat[2 * m + 1];
        float sum = 0, product = 0;
        EACH_FOUR(k, c, C) {
            v[k] = times(plus(v[k], {-mean, -mean, -mean, -mean}), {inverse, inverse, inverse, inverse});
            dscale[k] = plus(dscale[k], times(g[k], v[k])), dshift[k] = plus(dshift[k], g[k]);
            g[k] = times(g[k], *(const float4 *)(scale + c));
            sum += total(g[k]), product += total(times(g[k], v[k]));
        }
        sum = acf_warp_sum(sum) / (float)C, product = acf_warp_sum(product) / (float)C;
        if (!MIDDLE && !da) continue;
        EACH_FOUR(k, c, C) {
            const float4 back =
                times(plus(plus(g[k], {-sum, -sum, -sum, -sum}), times(v[k], {-product, -product, -product, -product})),
                      {inverse, inverse, inverse, inverse});
            const float4 all = plus(there[k], back);
            *(float4 *)(da + m * C + c) = all;
            if (!MIDDLE) continue;
            const float4 through = times(all, dropout_factors(d, m, c, C));
            put_four(narrow + m * C + c, through);
            dbias[k] = plus(dbias[k], through);
        }
    }
    float *own = part + (int64_t)blockIdx.x * 3 * C;
    add_warps<K>(own, dscale, memory, C);
    add_warps<K>(own + C, dshift, memory, C);
    if constexpr (MIDDLE) add_warps<K>(own + 2 * C, dbias, memory, C);
}

/* ---- by columns -------------------------------------------------------------------------------------------------- */

/* By the fast exponential and division, as in gelu.cu. */
static __device__ float gate(float x) {
    return __fdividef(1, 1 + __expf(-ACF_GELU_SLOPE * (x + ACF_GELU_CUBE * x * x * x)));
}
static __device__ float slope(float x) {
    const float s = gate(x);
    x = x < -ACF_GELU_FAR ? -ACF_GELU_FAR : x;
    x = x > ACF_GELU_FAR ? ACF_GELU_FAR : x;
    return s + x * s * (1 - s) * ACF_GELU_SLOPE * (1 + 3 * ACF_GELU_CUBE * x * x);
}

/* y (8n) = gelu(x) */
static __global__ void gelu_fwd(bf16 *__restrict__ y, const bf16 *__restrict__ x, int64_t n) {
    ACF_EACH(i, n) {
        float v[EIGHT];
        spread(v, *(const uint4 *)(x + EIGHT * i));
#pragma unroll
        for (int k = 0; k < EIGHT; k++) v[k] *= gate(v[k]);
        *(uint4 *)(y + EIGHT * i) = narrowed(v);
    }
}

/* The transformation of the numbers whose columns are added up. */
typedef enum columns_kind {
    DROPPED, /* to = dy times the dropout's mask, float */
    GELU,    /* to = to · gelu'(x) */
    AS_IS    /* to is unchanged */
} columns_kind;

/* to (M,C); part (gridDim.y,C) = sums over each block's rows. Behind the true rows `to` is 0, or unchanged. */
template <columns_kind KIND>
static __global__ void __launch_bounds__(32 * EIGHT)
    columns(bf16 *to, float *__restrict__ part, const float *__restrict__ dy, const bf16 *__restrict__ x, dropping d,
            const int32_t *rows, int64_t M, int C) {
    __shared__ float lane[EIGHT][32 * EIGHT];
    const int t = (int)threadIdx.x % 32, r = (int)threadIdx.x / 32, c = ((int)blockIdx.x * 32 + t) * EIGHT;
    const int64_t n = acf_true_rows(rows, M), per = (M + gridDim.y - 1) / gridDim.y;
    const int64_t begin = blockIdx.y * per, end = min(begin + per, M);
    float sum[EIGHT] = {};
    constexpr int AHEAD = 2; /* rows in flight */
    for (int64_t m0 = begin + r; c < C && m0 < end; m0 += AHEAD * EIGHT) {
        float v[AHEAD][EIGHT], u[AHEAD][EIGHT];
#pragma unroll
        for (int q = 0; q < AHEAD; q++) {
            const int64_t m = m0 + q * EIGHT, at = m * C + c;
#pragma unroll
            for (int k = 0; k < EIGHT; k++) v[q][k] = 0, u[q][k] = 0;
            if (m >= end || m >= n) continue;
            if (KIND == DROPPED) {
                const float4 a = *(const float4 *)(dy + at), b = *(const float4 *)(dy + at + 4);
                v[q][0] = a.x, v[q][1] = a.y, v[q][2] = a.z, v[q][3] = a.w;
                v[q][4] = b.x, v[q][5] = b.y, v[q][6] = b.z, v[q][7] = b.w;
            } else
                spread(v[q], *(const uint4 *)(to + at));
            if (KIND == GELU) spread(u[q], *(const uint4 *)(x + at));
        }
#pragma unroll
        for (int q = 0; q < AHEAD; q++) {
            const int64_t m = m0 + q * EIGHT, at = m * C + c;
            if (m >= end) continue;
            if (KIND == DROPPED && d.on) {
                const float4 a = dropout_factors(d, m, c, C), b = dropout_factors(d, m, c + 4, C);
                v[q][0] *= a.x, v[q][1] *= a.y, v[q][2] *= a.z, v[q][3] *= a.w;
                v[q][4] *= b.x, v[q][5] *= b.y, v[q][6] *= b.z, v[q][7] *= b.w;
            }
#pragma unroll
            for (int k = 0; k < EIGHT; k++) {
                if (KIND == GELU) v[q][k] *= slope(u[q][k]);
                sum[k] += v[q][k];
            }
            if (KIND != AS_IS) *(uint4 *)(to + at) = narrowed(v[q]);
        }
    }
#pragma unroll
    for (int k = 0; k < EIGHT; k++) lane[r][t * EIGHT + k] = sum[k];
    __syncthreads();
    const int own = (int)blockIdx.x * 32 * EIGHT + (int)threadIdx.x;
    if (own >= C) return;
    float all = 0;
    for (int k = 0; k < EIGHT; k++) all += lane[k][threadIdx.x];
    part[(int64_t)blockIdx.y * C + own] = all;
}

/* Up to three gradients (C) += the blocks' parts (blocks,stride), which hold their columns one after the other; in a
 * fixed order. */
typedef struct gradients {
    float *to[3];
} gradients;
static __global__ void add_parts(gradients g, const float *__restrict__ part, int blocks, int stride, int C) {
    __shared__ float lane[EIGHT][32];
    const int c = (int)blockIdx.x * 32 + (int)threadIdx.x % 32, k = (int)threadIdx.x / 32;
    float sum = 0;
    if (c < stride)
#pragma unroll 8
        for (int q = k; q < blocks; q += EIGHT) sum += part[(int64_t)q * stride + c];
    lane[k][threadIdx.x % 32] = sum;
    __syncthreads();
    if (k > 0 || c >= stride || !g.to[c / C]) return;
    for (int j = 1; j < EIGHT; j++) sum += lane[j][threadIdx.x];
    g.to[c / C][c % C] += sum;
}

/* y (M,C) = a + drop(x + bias) */
static __global__ void join(float *__restrict__ y, const float *__restrict__ a, const bf16 *__restrict__ x,
                            const float *__restrict__ bias, dropping d, int64_t M, int C) {
    ACF_EACH(i, M * C / 4) {
        const acf_cell at = acf_cell_of(i, C / 4);
        const int c = 4 * (int)at.column;
        *(float4 *)(y + 4 * i) =
            plus(*(const float4 *)(a + 4 * i),
                 times(plus(four(x + 4 * i), *(const float4 *)(bias + c)), dropout_factors(d, at.row, c, C)));
    }
}

#endif
