/* What attention over all tokens of a batch (attention.cu) and of one token of each row (attention_step.cu) share on
 * the GPU: the batch's sequences, a head's numbers in registers, the running softmax of a query, and the simple
 * kernel of wide heads.
 *
 * A group of four lanes shares the numbers of a head:
 *
 *     lane 4 g + p of a warp    group g of 8     numbers 16 i + 4 p .. + 3 of the head, i = 0 .. V-1
 */
#ifndef ACF_OPS_ATTENTION_PIECES_CUH
#define ACF_OPS_ATTENTION_PIECES_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/attention.h"
}

#define GROUP 4          /* lanes that share a head's numbers */
#define TOKENS 8         /* groups of a warp */
#define WIDEST 128       /* numbers of a head that fit in a group's registers */
#define WIDE_THREADS 128 /* of a block for wider ones */
#define ALL 0xffffffffu

/* Token t of the row of rank k is element first[t] + k. */
typedef struct sequences {
    const int32_t *row, *rank, *size, *first, *active, *row_of;
    int64_t N, D, T, W;
    int H, heads;
    acf_real scale;
    bool aligned; /* four numbers at a time can be read and written */
} sequences;

static __device__ int64_t element(const sequences &s, int64_t t, int64_t k) { return s.first[t] + k; }
/* True if the row has token t. Available before the row's length, which needs two dependent loads. */
static __device__ bool exists(const sequences &s, int64_t t, int64_t k) { return t < s.D && k < s.active[t]; }

/* ---- a head's numbers in a group --------------------------------------------------------------------------------- */

static __device__ acf_real dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static __device__ void add(float4 &to, acf_real w, float4 x) {
    to.x += w * x.x, to.y += w * x.y, to.z += w * x.z, to.w += w * x.w;
}
static __device__ float4 times(acf_real w, float4 x) { return {w * x.x, w * x.y, w * x.z, w * x.w}; }

/* Numbers c .. c + 3 of a head that begins at x; 0 after its end. */
static __device__ float4 numbers(const acf_real *x, int c, const sequences &s) {
    if (s.aligned) return c < s.H ? *(const float4 *)(x + c) : float4{0, 0, 0, 0};
    return {c < s.H ? x[c] : 0, c + 1 < s.H ? x[c + 1] : 0, c + 2 < s.H ? x[c + 2] : 0, c + 3 < s.H ? x[c + 3] : 0};
}
static __device__ void put(acf_real *x, int c, float4 v, const sequences &s) {
    const acf_real n[4] = {v.x, v.y, v.z, v.w};
    if (s.aligned && c < s.H) *(float4 *)(x + c) = v;
    for (int q = 0; !s.aligned && q < 4; q++)
        if (c + q < s.H) x[c + q] = n[q];
}

/* This lane's part of a head's numbers that begins at x. */
template <int V> static __device__ void load(float4 (&to)[V], const acf_real *x, const sequences &s) {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = numbers(x, 16 * i + 4 * (threadIdx.x % GROUP), s);
}

/* The sum over a group, in all its lanes. */
static __device__ acf_real group_sum(acf_real x) {
    x += __shfl_xor_sync(ALL, x, 2);
    return x + __shfl_xor_sync(ALL, x, 1);
}

/* The running softmax of a query; `sum` covers only this lane's keys. */
template <int V> struct view {
    float4 out[V];
    acf_real most, sum;
};

/* ---- heads of any width ------------------------------------------------------------------------------------------ */

/* p (n) = scale x · key_j; the keys of the row of rank k begin at `keys`. One warp per key. */
static __device__ void wide_dots(acf_real *p, const acf_real *x, const acf_real *keys, int64_t stride, acf_real scale,
                                 int64_t n, int64_t k, const sequences &s) {
    for (int64_t j = threadIdx.x / 32; j < n; j += blockDim.x / 32) {
        acf_real sum = 0;
        for (int64_t c = threadIdx.x % 32; c < s.H; c += 32) sum += x[c] * keys[element(s, j, k) * stride + c];
        sum = acf_warp_sum(sum);
        if (threadIdx.x % 32 == 0) p[j] = scale * sum;
    }
}

/* out (H) of a query that sees n tokens of qkv (.,3W), which begins with this head; p (n) is scratch. Returns the
 * log-sum-exp. Every thread must call it. */
static __device__ acf_real wide_answer(acf_real *out, acf_real *p, const acf_real *q, const acf_real *qkv, int64_t n,
                                       int64_t k, const sequences &s) {
    wide_dots(p, q, qkv + s.W, 3 * s.W, s.scale, n, k, s);
    __syncthreads();
    acf_real most = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x % 32; j < n; j += 32) most = fmaxf(most, p[j]);
    for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, d));
    for (int64_t j = threadIdx.x % 32; j < n; j += 32) sum += expf(p[j] - most);
    sum = acf_warp_sum(sum);
    for (int64_t c = threadIdx.x; c < s.H; c += blockDim.x) {
        acf_real all = 0;
        for (int64_t j = 0; j < n; j++) all += expf(p[j] - most) * qkv[element(s, j, k) * 3 * s.W + 2 * s.W + c];
        out[c] = all / sum;
    }
    __syncthreads(); /* the next query overwrites p */
    return most + logf(sum);
}

/* ---- host side --------------------------------------------------------------------------------------------------- */

/* True if this many bytes can be read at once from a. */
static bool on_four(const void *a) { return !a || (uintptr_t)a % sizeof(float4) == 0; }

static sequences sequences_of(const acf_subset *u, int64_t W, int heads, const acf_real *a, const acf_real *b,
                              const acf_real *c, const acf_real *d) {
    const int64_t H = W / heads;
    const acf_real scale = (acf_real)(1 / sqrt((double)H));
    const bool aligned = H % 4 == 0 && on_four(a) && on_four(b) && on_four(c) && on_four(d);
    return {u->row, u->rank, u->size, u->first, u->active, u->row_of, u->N,
            u->D,   u->T,    W,       (int)H,   heads,     scale,     aligned};
}

/* The call for heads of this width, with V: a lane has 4 V numbers. */
#define BY_WIDTH(kernel, H, ...)                                                                                       \
    do {                                                                                                               \
        if ((H) <= 16)                                                                                                 \
            kernel<1> __VA_ARGS__;                                                                                     \
        else if ((H) <= 32)                                                                                            \
            kernel<2> __VA_ARGS__;                                                                                     \
        else if ((H) <= 64)                                                                                            \
            kernel<4> __VA_ARGS__;                                                                                     \
        else                                                                                                           \
            kernel<8> __VA_ARGS__;                                                                                     \
    } while (0)

#endif
