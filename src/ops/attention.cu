/* Causal attention over all tokens of a batch on the GPU: see attention.h; formulas in docs/math.md, 21. In float;
 * short rows in other precisions use attention_mma.cuh. For one token of each row, with a cache, see
 * attention_step.cu.
 *
 * Workload: 256 to 4,096 rows of 5 to 100 tokens, 2 to 8 heads of 16 to 64 numbers: bound by arithmetic and by the
 * bandwidth of shared memory. A block handles a tile of at most 64 tokens of a row and head. A group of four lanes
 * shares the numbers of a query (attention_pieces.cuh). A warp then reads keys and values from shared memory without
 * bank conflicts, 16 bytes for 4 multiply-adds. Keys are processed four at a time: each lane gets the score of one,
 * and the softmax is updated online as in FlashAttention, so that the row length is not limited. The backward
 * computes the probabilities again, twice: first for the gradient of queries, then, with keys in the role of
 * queries, for those of keys and values. Each gradient is written by the one group that owns it, in a fixed order.
 * Heads of more than 128 numbers use a simple kernel. */
#include "ops/attention_mma.cuh"
#include "ops/attention_pieces.cuh"

/* Threads of a block at most. It leaves enough registers for a token's numbers and for loads in flight. */
#define THREADS(V) ((V) == 8 ? 128 : 256)

/* Adds this lane's part of a head's numbers. */
template <int V> static __device__ void add_to(acf_real *x, const float4 (&from)[V], const sequences &s) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int c = 16 * i + 4 * ((int)threadIdx.x % GROUP);
        float4 there = numbers(x, c, s);
        add(there, 1, from[i]);
        put(x, c, there, s);
    }
}

/* The maximum over a group, in all its lanes. */
static __device__ acf_real group_max(acf_real x) {
    x = fmaxf(x, __shfl_xor_sync(ALL, x, 2));
    return fmaxf(x, __shfl_xor_sync(ALL, x, 1));
}
/* Four sums over a group; lane p gets the p-th. */
static __device__ acf_real dealt_sum(const acf_real (&s)[GROUP]) {
    const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
    const acf_real a = (upper ? s[2] : s[0]) + __shfl_xor_sync(ALL, upper ? s[0] : s[2], 2);
    const acf_real b = (upper ? s[3] : s[1]) + __shfl_xor_sync(ALL, upper ? s[1] : s[3], 2);
    return (odd ? b : a) + __shfl_xor_sync(ALL, odd ? a : b, 1);
}
static __device__ acf_real of_lane(acf_real x, int p) { return __shfl_sync(ALL, x, p, GROUP); }

/* This lane's products of x with rows b = 0..3 of a tile (.,4V) in shared memory, summed over the group. Lane p gets
 * that of row p. */
template <int V> static __device__ acf_real products(const float4 (&x)[V], const float4 *tile) {
    acf_real s[GROUP];
#pragma unroll
    for (int b = 0; b < GROUP; b++) {
        s[b] = 0;
#pragma unroll
        for (int i = 0; i < V; i++) s[b] += dot(x[i], tile[b * 4 * V + 4 * i + threadIdx.x % GROUP]);
    }
    return dealt_sum(s);
}

/* Makes the compiler read shared memory again. The values would not fit in registers for both `products` and
 * `add_row`. */
static __device__ void forget(void) { __syncwarp(); }

/* to += weight × row b of the tile. */
template <int V> static __device__ void add_row(float4 (&to)[V], acf_real weight, const float4 *tile, int b) {
#pragma unroll
    for (int i = 0; i < V; i++) add(to[i], weight, tile[b * 4 * V + 4 * i + threadIdx.x % GROUP]);
}

/* This block's row and head, and this group's token in the block's tile. */
typedef struct seat {
    int k, h, at; /* rank; head; its offset among W numbers */
    int L, tile;  /* tokens of the row, and of a tile */
    int first;    /* token of the tile */
    int warp, t;  /* the warp's first token, and the group's own */
    int g;        /* its position in the tile */
    bool live;    /* there is such a token */
} seat;
static __device__ seat seat_of(const sequences &s) {
    seat p;
    p.k = (int)blockIdx.x / s.heads, p.h = (int)blockIdx.x % s.heads, p.at = p.h * s.H;
    p.L = s.size[s.row[p.k]], p.tile = (int)blockDim.x / GROUP, p.first = (int)blockIdx.y * p.tile;
    p.g = (int)threadIdx.x / GROUP, p.t = p.first + p.g, p.warp = p.first + p.g / TOKENS * TOKENS;
    p.live = exists(s, p.t, p.k);
    return p;
}

/* Row g of two tiles = this group's token; rows after the last token are not written. */
template <int V>
static __device__ void fill(float4 *a, float4 *b, const acf_real *from_a, const acf_real *from_b, bool there,
                            const seat &p, const sequences &s) {
    if (!there) return;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int c = 4 * i + (int)threadIdx.x % GROUP;
        a[p.g * 4 * V + c] = numbers(from_a, 4 * c, s);
        b[p.g * 4 * V + c] = numbers(from_b, 4 * c, s);
    }
}

extern __shared__ float4 tiles[]; /* two of (tokens,4V), then some numbers per token */

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Adds four more keys, of which the query sees the first `seen`; EDGE false: all of them. */
template <int V, bool EDGE>
static __device__ void see(view<V> &w, const float4 (&q)[V], const float4 *keys, const float4 *values, int seen) {
    acf_real score = products<V>(q, keys);
    if (EDGE && (int)threadIdx.x % GROUP >= seen) score = -INFINITY;
    const acf_real most = fmaxf(w.most, group_max(score)), shrink = __expf(w.most - most), p = __expf(score - most);
    w.most = most, w.sum = w.sum * shrink + p;
#pragma unroll
    for (int i = 0; i < V; i++) w.out[i] = times(shrink, w.out[i]);
#pragma unroll
    for (int b = 0; b < GROUP; b++) {
        const acf_real weight = of_lane(p, b);
        if (!EDGE || b < seen) add_row<V>(w.out, weight, values, b); /* masked values may be NaN */
    }
}

/* out (T,W), zeros after the last token; lse (T,heads) or NULL. */
template <int V>
static __global__ void __launch_bounds__(THREADS(V), 2)
    attention_fwd(acf_real *__restrict__ out, acf_real *__restrict__ lse, const acf_real *__restrict__ qkv,
                  sequences s) {
    const int64_t threads = (int64_t)gridDim.x * gridDim.y * blockDim.x;
    const int64_t self = (int64_t)blockIdx.y * gridDim.x * blockDim.x + acf_thread();
    for (int64_t i = s.first[s.D] * s.W + self; i < s.T * s.W; i += threads) out[i] = 0;
    const seat p = seat_of(s);
    if (!exists(s, p.first, p.k)) return;
    const int64_t W = s.W, e = element(s, p.live ? p.t : p.first, p.k);
    float4 *keys = tiles, *values = tiles + p.tile * 4 * V, q[V];
    view<V> w = {{}, -INFINITY, 0};
    load<V>(q, qkv + e * 3 * W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) q[i] = times(s.scale, q[i]);
    const int last = p.warp < p.L ? min(p.warp + TOKENS, p.L) : 0; /* end of the keys that the warp sees */
    for (int j0 = 0; j0 <= p.first; j0 += p.tile) {
        const bool there = exists(s, j0 + p.g, p.k);
        const acf_real *from = qkv + element(s, there ? j0 + p.g : p.first, p.k) * 3 * W + p.at;
        __syncthreads();
        fill<V>(keys, values, from + W, from + 2 * W, there, p, s);
        __syncthreads();
#pragma unroll 1
        for (int j = j0; j < min(j0 + p.tile, last); j += GROUP) {
            const int row = (j - j0) * 4 * V;
            if (j + GROUP - 1 <= p.warp)
                see<V, false>(w, q, keys + row, values + row, GROUP);
            else
                see<V, true>(w, q, keys + row, values + row, min(p.t, p.L - 1) - j + 1);
        }
    }
    const acf_real sum = group_sum(w.sum);
    if (!p.live) return;
#pragma unroll
    for (int i = 0; i < V; i++)
        put(out + e * W + p.at, 16 * i + 4 * (threadIdx.x % GROUP), times(1 / sum, w.out[i]), s);
    if (lse && threadIdx.x % GROUP == 0) lse[e * s.heads + p.h] = w.most + logf(sum);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* What a token's group stores about its own query: log-sum-exp, and Σ out dout. */
typedef struct note {
    acf_real lse, dot;
} note;
template <int V>
static __device__ note note_of(const acf_real *out, const acf_real *dout, const acf_real *lse, int64_t e, const seat &p,
                               const sequences &s) {
    float4 o[V], d[V];
    acf_real sum = 0;
    load<V>(o, out + e * s.W + p.at, s), load<V>(d, dout + e * s.W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) sum += dot(o[i], d[i]);
    return {lse[e * s.heads + p.h], group_sum(sum)};
}

/* A row of a tile, in registers. */
template <int V> static __device__ void from_tile(float4 (&to)[V], const float4 *tile, int row) {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = tile[(row * V + i) * GROUP + threadIdx.x % GROUP];
}

/* Tiles of the backward. If every row has at most one tile, all four are loaded at the start; else queries and keys
 * share the memory. */
typedef struct table {
    float4 *keys, *values, *queries, *douts; /* (tile,4V) each */
    note *notes;                             /* (tile) of the queries */
} table;
template <int V, bool WHOLE> static __device__ table table_of(const seat &p) {
    const int rows = p.tile * GROUP * V;
    table b = {tiles, tiles + rows, tiles, tiles + rows, (note *)(tiles + 2 * rows)};
    if (WHOLE) b.queries += 2 * rows, b.douts += 2 * rows, b.notes = (note *)(tiles + 4 * rows);
    return b;
}

template <int V>
static __device__ void fill_keys(const table &b, const source &from, int j0, const seat &p, const sequences &s) {
    const bool there = exists(s, j0 + p.g, p.k);
    const acf_real *key = from.qkv + element(s, there ? j0 + p.g : p.first, p.k) * 3 * s.W + s.W + p.at;
    fill<V>(b.keys, b.values, key, key + s.W, there, p, s);
}
template <int V>
static __device__ void fill_queries(const table &b, const source &from, int t0, const seat &p, const sequences &s) {
    const bool there = exists(s, t0 + p.g, p.k);
    const int64_t e = element(s, there ? t0 + p.g : p.first, p.k);
    fill<V>(b.queries, b.douts, from.qkv + e * 3 * s.W + p.at, from.dout + e * s.W + p.at, there, p, s);
    const note n = note_of<V>(from.out, from.dout, from.lse, e, p, s);
    if (threadIdx.x % GROUP == 0) b.notes[p.g] = n;
}

/* Adds to dq the terms of four keys, of which the query sees the first `seen`; EDGE false: all of them. q is scaled. */
template <int V, bool EDGE>
static __device__ void query_back(float4 (&dq)[V], const float4 (&q)[V], const float4 (&d)[V], note own,
                                  const float4 *keys, const float4 *values, int seen, acf_real scale) {
    const acf_real weight = __expf(products<V>(q, keys) - own.lse);
    const acf_real back = weight * (products<V>(d, values) - own.dot) * scale;
    const acf_real ds = !EDGE || (int)threadIdx.x % GROUP < seen ? back : 0;
    forget();
#pragma unroll
    for (int b = 0; b < GROUP; b++) {
        const acf_real w = of_lane(ds, b);
        if (!EDGE || b < seen) add_row<V>(dq, w, keys, b);
    }
}

/* The gradient of this group's query. */
template <int V, bool WHOLE>
static __device__ void queries_bwd(acf_real *dqkv, const table &b, const source &from, const seat &p,
                                   const sequences &s) {
    const int64_t e = element(s, p.live ? p.t : p.first, p.k);
    const int last = p.warp < p.L ? min(p.warp + TOKENS, p.L) : 0; /* end of the keys that the warp sees */
    float4 q[V], d[V], dq[V] = {};
    note own;
    if (WHOLE) {
        from_tile<V>(q, b.queries, p.g), from_tile<V>(d, b.douts, p.g), own = b.notes[p.g];
    } else {
        load<V>(q, from.qkv + e * 3 * s.W + p.at, s), load<V>(d, from.dout + e * s.W + p.at, s);
        own = note_of<V>(from.out, from.dout, from.lse, e, p, s);
    }
#pragma unroll
    for (int i = 0; i < V; i++) q[i] = times(s.scale, q[i]);
    for (int j0 = 0; j0 <= p.first; j0 += p.tile) {
        if (!WHOLE) {
            __syncthreads();
            fill_keys<V>(b, from, j0, p, s);
            __syncthreads();
        }
#pragma unroll 1
        for (int j = j0; j < min(j0 + p.tile, last); j += GROUP) {
            const int row = (j - j0) * GROUP * V;
            if (j + GROUP - 1 <= p.warp)
                query_back<V, false>(dq, q, d, own, b.keys + row, b.values + row, GROUP, s.scale);
            else
                query_back<V, true>(dq, q, d, own, b.keys + row, b.values + row, min(p.t, p.L - 1) - j + 1, s.scale);
        }
    }
    if (p.live) add_to<V>(dqkv + e * 3 * s.W + p.at, dq, s);
}

/* Adds to dk and dv the terms of four queries, whose notes begin at `first_note`. Queries from..to-1 see the key; EDGE
 * false: all of them. k is scaled. */
template <int V, bool EDGE>
static __device__ void key_back(float4 (&dk)[V], float4 (&dv)[V], const float4 (&k)[V], const float4 (&v)[V],
                                const note *first_note, const float4 *queries, const float4 *douts, int from, int to,
                                acf_real scale) {
    const int lane = threadIdx.x % GROUP;
    const note n = first_note[lane];
    const bool seen = !EDGE || (lane >= from && lane < to);
    const acf_real weight = __expf(products<V>(k, queries) - n.lse);
    const acf_real back = weight * (products<V>(v, douts) - n.dot) * scale;
    const acf_real pr = seen ? weight : 0, ds = seen ? back : 0;
    forget();
#pragma unroll
    for (int b = 0; b < GROUP; b++) {
        const acf_real wk = of_lane(ds, b), wv = of_lane(pr, b);
        if (!EDGE || (b >= from && b < to)) add_row<V>(dk, wk, queries, b), add_row<V>(dv, wv, douts, b);
    }
}

/* The gradients of this group's key and value. */
template <int V, bool WHOLE>
static __device__ void keys_bwd(acf_real *dqkv, const table &b, const source &from, const seat &p, const sequences &s) {
    const int64_t e = element(s, p.live ? p.t : p.first, p.k);
    const acf_real *key = from.qkv + e * 3 * s.W + s.W + p.at;
    float4 k[V], v[V], dk[V] = {}, dv[V] = {};
    if (WHOLE)
        from_tile<V>(k, b.keys, p.g), from_tile<V>(v, b.values, p.g);
    else
        load<V>(k, key, s), load<V>(v, key + s.W, s);
#pragma unroll
    for (int i = 0; i < V; i++) k[i] = times(s.scale, k[i]);
    for (int t0 = p.first; t0 < p.L; t0 += p.tile) {
        if (!WHOLE) {
            __syncthreads();
            fill_queries<V>(b, from, t0, p, s);
            __syncthreads();
        }
#pragma unroll 1
        for (int t = max(t0, p.warp); t < min(t0 + p.tile, p.L); t += GROUP) {
            const int row = (t - t0) * GROUP * V;
            const note *first_note = b.notes + (t - t0);
            if (t >= p.warp + TOKENS - 1 && t + GROUP <= p.L)
                key_back<V, false>(dk, dv, k, v, first_note, b.queries + row, b.douts + row, 0, GROUP, s.scale);
            else
                key_back<V, true>(dk, dv, k, v, first_note, b.queries + row, b.douts + row, p.t - t, p.L - t, s.scale);
        }
    }
    if (!p.live) return;
    add_to<V>(dqkv + e * 3 * s.W + s.W + p.at, dk, s);
    add_to<V>(dqkv + e * 3 * s.W + 2 * s.W + p.at, dv, s);
}

/* Adds to dqkv (T,3W). */
template <int V, bool WHOLE>
static __global__ void __launch_bounds__(THREADS(V), V == 1 ? 4 : 2)
    attention_bwd(acf_real *dqkv, source from, sequences s) {
    const seat p = seat_of(s);
    const table b = table_of<V, WHOLE>(p);
    if (!exists(s, p.first, p.k)) return;
    if (WHOLE) {
        fill_keys<V>(b, from, 0, p, s);
        fill_queries<V>(b, from, 0, p, s);
        __syncthreads();
    }
    queries_bwd<V, WHOLE>(dqkv, b, from, p, s);
    keys_bwd<V, WHOLE>(dqkv, b, from, p, s);
}

/* ---- heads of any width ------------------------------------------------------------------------------------------ */

/* One block per row and head; scratch `memory` (blocks,D). */
static __global__ void wide_fwd(acf_real *out, acf_real *lse, const acf_real *qkv, acf_real *memory, sequences s) {
    for (int64_t i = s.first[s.D] * s.W + acf_thread(); i < s.T * s.W; i += (int64_t)gridDim.x * blockDim.x) out[i] = 0;
    const int64_t k = blockIdx.x / s.heads, h = blockIdx.x % s.heads, L = s.size[s.row[k]], at = h * s.H;
    for (int64_t t = 0; t < L; t++) {
        const int64_t e = element(s, t, k);
        const acf_real sum =
            wide_answer(out + e * s.W + at, memory + blockIdx.x * s.D, qkv + e * 3 * s.W + at, qkv + at, t + 1, k, s);
        if (lse && threadIdx.x == 0) lse[e * s.heads + h] = sum;
    }
}

/* scratch `memory` (blocks,2,D): probabilities, and gradients of scores. */
static __global__ void wide_bwd(acf_real *dqkv, const acf_real *dout, const acf_real *out, const acf_real *lse,
                                const acf_real *qkv, acf_real *memory, sequences s) {
    const int64_t k = blockIdx.x / s.heads, h = blockIdx.x % s.heads, L = s.size[s.row[k]], W = s.W, at = h * s.H;
    acf_real *p = memory + blockIdx.x * 2 * s.D, *ds = p + s.D;
    for (int64_t t = 0; t < L; t++) {
        const int64_t e = element(s, t, k);
        const acf_real *q = qkv + e * 3 * W + at, *d = dout + e * W + at, *o = out + e * W + at;
        wide_dots(p, q, qkv + at + W, 3 * W, s.scale, t + 1, k, s);
        wide_dots(ds, d, qkv + at + 2 * W, 3 * W, 1, t + 1, k, s);
        acf_real sum = 0;
        for (int64_t c = threadIdx.x; c < s.H; c += blockDim.x) sum += o[c] * d[c];
        sum = acf_block_sum(sum); /* synchronises the block */
        for (int64_t j = threadIdx.x; j <= t; j += blockDim.x) {
            p[j] = expf(p[j] - lse[e * s.heads + h]);
            ds[j] = p[j] * (ds[j] - sum) * s.scale;
        }
        __syncthreads();
        for (int64_t c = threadIdx.x; c < s.H; c += blockDim.x) {
            acf_real dq = 0;
            for (int64_t j = 0; j <= t; j++) {
                const int64_t there = element(s, j, k) * 3 * W + at + c;
                dq += ds[j] * qkv[there + W];
                dqkv[there + W] += ds[j] * q[c];
                dqkv[there + 2 * W] += p[j] * d[c];
            }
            dqkv[e * 3 * W + at + c] += dq;
        }
        __syncthreads();
    }
}

/* ---- host side --------------------------------------------------------------------------------------------------- */

/* The launch configuration over all tokens: two tiles of the forward fit into 48 KB. */
typedef struct shape {
    dim3 grid;
    int threads;
    bool whole;               /* no row has more than one tile */
    size_t forward, backward; /* bytes of shared memory */
} shape;
static shape shape_of(const sequences &s) {
    const int64_t V = s.H <= 16 ? 1 : s.H <= 32 ? 2 : s.H <= 64 ? 4 : 8;
    const int64_t warps = acf_max(acf_min(acf_ceil_div(s.D, TOKENS), V == 8 ? 4 : 8), 1), tile = warps * TOKENS;
    const size_t row = GROUP * (size_t)V * sizeof(float4);
    return {dim3((unsigned)(s.N * s.heads), (unsigned)acf_ceil_div(s.D, tile)), (int)(32 * warps), s.D <= tile,
            (size_t)tile * 2 * row, (size_t)tile * ((s.D <= tile ? 4 : 2) * row + sizeof(note))};
}

/* Warps per row and head for short rows; 0 if tensor cores cannot be used for them, or the precision is float. */
static int short_warps(const acf_device *dev, const sequences &s) {
    const bool fits = s.aligned && (s.H == 32 || s.H == 64) && s.D <= SIDE * MOST_WARPS;
    return fits && dev->precision != ACF_PRECISION_FLOAT ? (int)acf_ceil_div(s.D, SIDE) : 0;
}

static acf_status launch_short_fwd(acf_real *out, acf_real *lse, const acf_real *qkv, int warps, const sequences &s,
                                   cudaStream_t stream) {
    static void (*const kernels[2][MOST_WARPS])(acf_real *, acf_real *, const acf_real *, sequences) = {
        {short_fwd<32, 1>, short_fwd<32, 2>, short_fwd<32, 3>, short_fwd<32, 4>},
        {short_fwd<64, 1>, short_fwd<64, 2>, short_fwd<64, 3>, short_fwd<64, 4>}};
    void (*kernel)(acf_real *, acf_real *, const acf_real *, sequences) = kernels[s.H == 64][warps - 1];
    ACF_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    kernel<<<(unsigned)(s.N * s.heads), 32 * warps, 0, stream>>>(out, lse, qkv, s);
    return ACF_LAUNCHED("attention");
}

static acf_status launch_short_bwd(acf_real *dqkv, const source &from, int warps, const sequences &s,
                                   cudaStream_t stream) {
#define WITH_ROOM(H, M)                                                                                                \
    { short_bwd<H, M>, plan<H, M>::all }
    static const struct {
        void (*run)(acf_real *, source, sequences);
        int floats;
    } kernels[2][MOST_WARPS] = {{WITH_ROOM(32, 1), WITH_ROOM(32, 2), WITH_ROOM(32, 3), WITH_ROOM(32, 4)},
                                {WITH_ROOM(64, 1), WITH_ROOM(64, 2), WITH_ROOM(64, 3), WITH_ROOM(64, 4)}};
    const auto &kernel = kernels[s.H == 64][warps - 1];
    const int bytes = kernel.floats * (int)sizeof(float);
    ACF_CUDA(cudaFuncSetAttribute(kernel.run, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    ACF_CUDA(cudaFuncSetAttribute(kernel.run, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared));
    kernel.run<<<(unsigned)(s.N * s.heads), 32 * warps, bytes, stream>>>(dqkv, from, s);
    return ACF_LAUNCHED("attention");
}

template <int V>
static acf_status launch_bwd(acf_real *dqkv, const source &from, const shape &p, const sequences &s,
                             cudaStream_t stream) {
    void (*kernel)(acf_real *, source, sequences) = p.whole ? attention_bwd<V, true> : attention_bwd<V, false>;
    if (p.backward > 48 << 10)
        ACF_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)p.backward));
    kernel<<<p.grid, p.threads, p.backward, stream>>>(dqkv, from, s);
    return ACF_LAUNCHED("attention");
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_attention_attrs *a = (acf_attention_attrs *)n->attr;
    const acf_tensor *qkv = n->in[0], *out = n->out[0];
    const sequences s = sequences_of(a->s, out->dim[1], a->heads, qkv->data, out->data, NULL, NULL);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (n->save) a->lse = acf_tape_reals(t, s.T * s.heads);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *memory = s.H > WIDEST ? acf_tape_reals(t, s.N * s.heads * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (s.N == 0 || s.D == 0) return ACF_OK;
    const shape p = shape_of(s);
    const int warps = short_warps(t->dev, s);
    if (warps) return launch_short_fwd(out->data, a->lse, qkv->data, warps, s, stream);
    if (memory)
        wide_fwd<<<(unsigned)(s.N * s.heads), WIDE_THREADS, 0, stream>>>(out->data, a->lse, qkv->data, memory, s);
    else
        BY_WIDTH(attention_fwd, s.H, <<<p.grid, p.threads, p.forward, stream>>>(out->data, a->lse, qkv->data, s));
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("attention");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_attention_attrs *a = (const acf_attention_attrs *)n->attr;
    const acf_tensor *qkv = n->in[0], *out = n->out[0];
    acf_real *dqkv = acf_grad(t, n->in[0]);
    const sequences s = sequences_of(a->s, out->dim[1], a->heads, qkv->data, out->data, dqkv, out->grad);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *memory = dqkv && s.H > WIDEST ? acf_tape_reals(t, s.N * s.heads * 2 * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (!dqkv || s.N == 0 || s.D == 0) return ACF_OK;
    const shape p = shape_of(s);
    const source from = {out->grad, out->data, a->lse, qkv->data};
    const int warps = short_warps(t->dev, s);
    if (warps) return launch_short_bwd(dqkv, from, warps, s, stream);
    acf_status status = ACF_OK;
    if (memory)
        wide_bwd<<<(unsigned)(s.N * s.heads), WIDE_THREADS, 0, stream>>>(dqkv, out->grad, out->data, a->lse, qkv->data,
                                                                         memory, s);
    else
        BY_WIDTH(status = launch_bwd, s.H, (dqkv, from, p, s, stream));
    acf_arena_release(t->mem, mark);
    return status ? status : ACF_LAUNCHED("attention");
}

ACF_CUDA_OP(attention, forward, backward);
