/* Causal attention on the GPU: see attention.h; formulas in docs/math.md, 12. In float, whatever the precision of products.
 *
 * Workload: 256 to 4,096 rows of 5 to 100 tokens, 2 to 8 heads of 16 to 64 numbers: with some 20 tokens a row bound by memory, with 100 by
 * arithmetic. A block has a tile of at most 64 tokens of a row and head. A query has a group of four lanes, which share its numbers:
 *
 *     lane 4 g + p of a warp    query g of 8     numbers 16 i + 4 p .. + 3 of the head, i = 0 .. V-1
 *
 * so that a warp reads keys and values from shared memory without conflicts, 16 bytes for 4 multiply-adds. Keys are taken four at a time: each lane
 * ends up with the score of one, and the softmax goes on as in FlashAttention, so that no row is too long. The backward makes the probabilities
 * again, twice: first for the gradient of queries, then with keys in the place of queries, for those of keys and values. Each gradient is
 * written by the one group that owns it, in an order that never changes. Heads of more than 128 numbers take a plain way. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/attention.h"
}

#define GROUP 4    /* lanes of a token, and keys taken at once */
#define TOKENS 8   /* of a warp */
#define WIDEST 128 /* numbers of a head that a group has in registers */
#define ALL 0xffffffffu
#define THREADS(V) ((V) == 8 ? 128 : 256) /* of a block at most; so many registers are there for a token's numbers, and for what is on its way */

/* Token t of the row of rank k is element first[t] + k. */
typedef struct sequences {
    const int32_t *row, *rank, *size, *first, *row_of;
    int64_t N, D, T, W;
    int H, heads;
    acf_real scale;
    bool aligned; /* four numbers at a time can be read and written */
} sequences;

static __device__ int64_t element(const sequences &s, int64_t t, int64_t k) { return s.first[t] + k; }

static __device__ acf_real dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static __device__ void add(float4 &to, acf_real w, float4 x) { to.x += w * x.x, to.y += w * x.y, to.z += w * x.z, to.w += w * x.w; }
static __device__ float4 times(acf_real w, float4 x) { return {w * x.x, w * x.y, w * x.z, w * x.w}; }

/* Numbers c .. c + 3 of a head that begins at x; 0 behind its end. */
static __device__ float4 numbers(const acf_real *x, int c, const sequences &s) {
    if (s.aligned) return c < s.H ? *(const float4 *)(x + c) : float4{0, 0, 0, 0};
    return {c < s.H ? x[c] : 0, c + 1 < s.H ? x[c + 1] : 0, c + 2 < s.H ? x[c + 2] : 0, c + 3 < s.H ? x[c + 3] : 0};
}
static __device__ void put(acf_real *x, int c, float4 v, const sequences &s) {
    if (s.aligned && c < s.H) *(float4 *)(x + c) = v;
    if (s.aligned) return;
    if (c < s.H) x[c] = v.x;
    if (c + 1 < s.H) x[c + 1] = v.y;
    if (c + 2 < s.H) x[c + 2] = v.z;
    if (c + 3 < s.H) x[c + 3] = v.w;
}

/* This lane's part of a head's numbers, from x on; and back, added to what is there. */
template <int V> static __device__ void load(float4 (&to)[V], const acf_real *x, const sequences &s) {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = numbers(x, 16 * i + 4 * (threadIdx.x % GROUP), s);
}
template <int V> static __device__ void add_to(acf_real *x, const float4 (&from)[V], const sequences &s) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int c = 16 * i + 4 * ((int)threadIdx.x % GROUP);
        float4 there = numbers(x, c, s);
        add(there, 1, from[i]);
        put(x, c, there, s);
    }
}

/* The sum over a group, in all its lanes. */
static __device__ acf_real group_sum(acf_real x) {
    x += __shfl_xor_sync(ALL, x, 2);
    return x + __shfl_xor_sync(ALL, x, 1);
}
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

/* This lane's products of x with rows b = 0..3 of a tile (.,4V) in shared memory, summed over the group: lane p gets that of row p. */
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

/* What was read from shared memory before is read again: kept in registers for `products` and `add_row` alike it would not fit. */
static __device__ void forget(void) { __syncwarp(); }

/* to += weight × row b of the tile. */
template <int V> static __device__ void add_row(float4 (&to)[V], acf_real weight, const float4 *tile, int b) {
#pragma unroll
    for (int i = 0; i < V; i++) add(to[i], weight, tile[b * 4 * V + 4 * i + threadIdx.x % GROUP]);
}

/* This block's row and head, and this group's token in the block's tile. */
typedef struct seat {
    int k, h, at;  /* rank; head; where it begins among W numbers */
    int L, tile;   /* tokens of the row, and of a tile */
    int first;     /* token of the tile */
    int warp, t;   /* the warp's first token, and the group's own */
    int g;         /* its place in the tile */
} seat;
static __device__ seat seat_of(const sequences &s) {
    seat p;
    p.k = (int)blockIdx.x / s.heads, p.h = (int)blockIdx.x % s.heads, p.at = p.h * s.H;
    p.L = s.size[s.row[p.k]], p.tile = (int)blockDim.x / GROUP, p.first = (int)blockIdx.y * p.tile;
    p.g = (int)threadIdx.x / GROUP, p.t = p.first + p.g, p.warp = p.first + p.g / TOKENS * TOKENS;
    return p;
}

/* Row g of a tile that begins at token t0 = this group's share of two arrays of heads; behind the row's end it stays as it is. */
template <int V>
static __device__ void fill(float4 *a, float4 *b, const acf_real *from_a, const acf_real *from_b, bool there, const seat &p, const sequences &s) {
    if (!there) return;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int c = 4 * i + (int)threadIdx.x % GROUP;
        a[p.g * 4 * V + c] = numbers(from_a, 4 * c, s);
        b[p.g * 4 * V + c] = numbers(from_b, 4 * c, s);
    }
}

extern __shared__ float4 tiles[]; /* two of (tokens,4V), then numbers of tokens */

/* ---- forward -------------------------------------------------------------------------------------------------------------------- */

/* What a query has seen: its softmax so far, sum for this lane's keys alone. */
template <int V> struct view {
    float4 out[V];
    acf_real most, sum;
};

/* Four more keys, of which the query sees the first `seen`; EDGE false: all of them. */
template <int V, bool EDGE>
static __device__ void see(view<V> &w, const float4 (&q)[V], const float4 *keys, const float4 *values, int seen) {
    acf_real score = products<V>(q, keys);
    if (EDGE && (int)threadIdx.x % GROUP >= seen) score = -INFINITY;
    const acf_real most = fmaxf(w.most, group_max(score)), shrink = expf(w.most - most), p = expf(score - most);
    w.most = most, w.sum = w.sum * shrink + p;
#pragma unroll
    for (int i = 0; i < V; i++) w.out[i] = times(shrink, w.out[i]);
#pragma unroll
    for (int b = 0; b < GROUP; b++) {
        const acf_real weight = of_lane(p, b);
        if (!EDGE || b < seen) add_row<V>(w.out, weight, values, b); /* what is not seen may be no number */
    }
}

/* out (T,W), zeros behind the last token; lse (T,heads) or NULL. */
template <int V>
static __global__ void __launch_bounds__(THREADS(V), 2) attention_fwd(acf_real *__restrict__ out, acf_real *__restrict__ lse, const acf_real *__restrict__ qkv,
                                                            sequences s) {
    const int64_t threads = (int64_t)gridDim.x * gridDim.y * blockDim.x, self = (int64_t)blockIdx.y * gridDim.x * blockDim.x + acf_thread();
    for (int64_t i = s.first[s.D] * s.W + self; i < s.T * s.W; i += threads) out[i] = 0;
    const seat p = seat_of(s);
    if (p.first >= p.L) return;
    const bool live = p.t < p.L;
    const int64_t W = s.W, e = element(s, live ? p.t : p.L - 1, p.k);
    float4 *keys = tiles, *values = tiles + p.tile * 4 * V, q[V];
    view<V> w = {{}, -INFINITY, 0};
    load<V>(q, qkv + e * 3 * W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) q[i] = times(s.scale, q[i]);
    const int last = p.warp < p.L ? min(p.warp + TOKENS, p.L) : 0; /* behind what the warp sees */
    for (int j0 = 0; j0 <= p.first; j0 += p.tile) {
        const int own = j0 + p.g;
        const acf_real *from = qkv + (own < p.L ? element(s, own, p.k) * 3 * W + p.at : 0);
        __syncthreads();
        fill<V>(keys, values, from + W, from + 2 * W, own < p.L, p, s);
        __syncthreads();
#pragma unroll 1
        for (int j = j0; j < min(j0 + p.tile, last); j += GROUP) {
            const int row = (j - j0) * 4 * V;
            if (j + GROUP - 1 <= p.warp) see<V, false>(w, q, keys + row, values + row, GROUP);
            else see<V, true>(w, q, keys + row, values + row, min(p.t, p.L - 1) - j + 1);
        }
    }
    const acf_real sum = group_sum(w.sum);
    if (!live) return;
#pragma unroll
    for (int i = 0; i < V; i++) put(out + e * W + p.at, 16 * i + 4 * (threadIdx.x % GROUP), times(1 / sum, w.out[i]), s);
    if (lse && threadIdx.x % GROUP == 0) lse[e * s.heads + p.h] = w.most + logf(sum);
}

/* ---- backward ------------------------------------------------------------------------------------------------------------------- */

/* What a token's group knows of its own query: log-sum-exp, and Σ out dout. */
typedef struct note {
    acf_real lse, dot;
} note;
template <int V>
static __device__ note note_of(const acf_real *out, const acf_real *dout, const acf_real *lse, int64_t e, const seat &p, const sequences &s) {
    float4 o[V], d[V];
    acf_real sum = 0;
    load<V>(o, out + e * s.W + p.at, s), load<V>(d, dout + e * s.W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) sum += dot(o[i], d[i]);
    return {lse[e * s.heads + p.h], group_sum(sum)};
}

/* The gradient of this group's query: dq. */
template <int V>
static __device__ void queries_bwd(acf_real *dqkv, const acf_real *dout, const acf_real *out, const acf_real *lse, const acf_real *qkv, const seat &p,
                                   const sequences &s) {
    const bool live = p.t < p.L;
    const int64_t W = s.W, e = element(s, live ? p.t : p.L - 1, p.k);
    const int lane = threadIdx.x % GROUP, last = p.warp < p.L ? min(p.warp + TOKENS, p.L) : 0;
    float4 *keys = tiles, *values = tiles + p.tile * 4 * V, q[V], d[V], dq[V] = {};
    load<V>(q, qkv + e * 3 * W + p.at, s), load<V>(d, dout + e * W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) q[i] = times(s.scale, q[i]);
    const note own = note_of<V>(out, dout, lse, e, p, s);
    for (int j0 = 0; j0 <= p.first; j0 += p.tile) {
        const int mine = j0 + p.g;
        const acf_real *from = qkv + (mine < p.L ? element(s, mine, p.k) * 3 * W + p.at : 0);
        __syncthreads();
        fill<V>(keys, values, from + W, from + 2 * W, mine < p.L, p, s);
        __syncthreads();
#pragma unroll 1
        for (int j = j0; j < min(j0 + p.tile, last); j += GROUP) {
            const int row = (j - j0) * 4 * V, seen = min(p.t, p.L - 1) - j + 1;
            const acf_real weight = expf(products<V>(q, keys + row) - own.lse);
            const acf_real back = weight * (products<V>(d, values + row) - own.dot) * s.scale, ds = lane < seen ? back : 0;
            forget();
#pragma unroll
            for (int b = 0; b < GROUP; b++) {
                const acf_real w = of_lane(ds, b);
                if (b < seen) add_row<V>(dq, w, keys + row, b);
            }
        }
    }
    if (live) add_to<V>(dqkv + e * 3 * W + p.at, dq, s);
}

/* The gradients of this group's key and value. */
template <int V>
static __device__ void keys_bwd(acf_real *dqkv, const acf_real *dout, const acf_real *out, const acf_real *lse, const acf_real *qkv, const seat &p,
                                const sequences &s) {
    const bool live = p.t < p.L;
    const int64_t W = s.W, e = element(s, live ? p.t : p.L - 1, p.k);
    const int lane = threadIdx.x % GROUP;
    float4 *queries = tiles, *douts = tiles + p.tile * 4 * V, k[V], v[V], dk[V] = {}, dv[V] = {};
    note *notes = (note *)(tiles + 2 * p.tile * 4 * V); /* (tile) */
    load<V>(k, qkv + e * 3 * W + W + p.at, s), load<V>(v, qkv + e * 3 * W + 2 * W + p.at, s);
#pragma unroll
    for (int i = 0; i < V; i++) k[i] = times(s.scale, k[i]);
    for (int t0 = p.first; t0 < p.L; t0 += p.tile) {
        const bool there = t0 + p.g < p.L;
        const int64_t mine = element(s, there ? t0 + p.g : p.L - 1, p.k);
        __syncthreads();
        fill<V>(queries, douts, qkv + mine * 3 * W + p.at, dout + mine * W + p.at, there, p, s);
        const note n = note_of<V>(out, dout, lse, mine, p, s);
        if (lane == 0) notes[p.g] = n;
        __syncthreads();
#pragma unroll 1
        for (int t = max(t0, p.warp); t < min(t0 + p.tile, p.L); t += GROUP) {
            const int row = (t - t0) * 4 * V;
            const note asked = notes[t - t0 + lane];
            const bool seen = t + lane >= p.t && t + lane < p.L;
            const acf_real weight = expf(products<V>(k, queries + row) - asked.lse);
            const acf_real back = weight * (products<V>(v, douts + row) - asked.dot) * s.scale;
            const acf_real pr = seen ? weight : 0, ds = seen ? back : 0;
            forget();
#pragma unroll
            for (int b = 0; b < GROUP; b++) {
                const acf_real wk = of_lane(ds, b), wv = of_lane(pr, b);
                if (t + b >= p.t && t + b < p.L) add_row<V>(dk, wk, queries + row, b), add_row<V>(dv, wv, douts + row, b);
            }
        }
    }
    if (!live) return;
    add_to<V>(dqkv + e * 3 * W + W + p.at, dk, s);
    add_to<V>(dqkv + e * 3 * W + 2 * W + p.at, dv, s);
}

/* Adds to dqkv (T,3W). */
template <int V>
static __global__ void __launch_bounds__(THREADS(V), V == 1 ? 4 : 2) attention_bwd(acf_real *dqkv, const acf_real *__restrict__ dout, const acf_real *__restrict__ out,
                                                            const acf_real *__restrict__ lse, const acf_real *__restrict__ qkv, sequences s) {
    const seat p = seat_of(s);
    if (p.first >= p.L) return;
    queries_bwd<V>(dqkv, dout, out, lse, qkv, p, s);
    keys_bwd<V>(dqkv, dout, out, lse, qkv, p, s);
}

/* ---- one token of a row --------------------------------------------------------------------------------------------------------- */

/* The token's place among those of its row, by all lanes: the tokens of the row before it. */
static __device__ int64_t step_of(const sequences &s, int32_t token, int64_t k) {
    const int lane = threadIdx.x % 32;
    int64_t t = 0;
    for (int64_t i = 0; i < s.D; i += 32) {
        const int before = __popc(__ballot_sync(ALL, i + lane < s.D && s.first[i + lane] + k < token));
        t += before;
        if (before < 32) break;
    }
    return t;
}

/* cache: this head's part of the token's row, from qkv. */
static __device__ void remember(acf_real *cache, const acf_real *qkv, const sequences &s, int lane, int lanes) {
    for (int64_t c = lane; c < s.H; c += lanes)
        for (int part = 0; part < 3; part++) cache[part * s.W + c] = qkv[part * s.W + c];
}

/* out (n,W): a warp a token and head. Each group goes through every eighth key, and what the groups have seen is put together. */
template <int V>
static __global__ void __launch_bounds__(128) step_fwd(acf_real *__restrict__ out, acf_real *cache, const acf_real *__restrict__ qkv,
                                                       const int32_t *__restrict__ token, int64_t n, sequences s) {
    const int64_t i = acf_thread() / 32, e = i / s.heads, W = s.W, at = i % s.heads * s.H;
    const int lane = threadIdx.x % 32, g = lane / GROUP;
    if (e >= n) return;
    const int32_t own = token[e];
    if (own < 0) {
        for (int64_t c = lane; c < s.H; c += 32) out[e * W + at + c] = 0;
        return;
    }
    const acf_real *here = qkv + e * 3 * W + at;
    const int64_t k = s.rank[s.row_of[own]], t = step_of(s, own, k);
    float4 q[V], key[V], value[V];
    view<V> w = {{}, -INFINITY, 0};
    load<V>(q, here, s);
    for (int64_t j0 = 0; j0 <= t; j0 += TOKENS) {
        const int64_t j = j0 + g;
        const acf_real *from = j < t ? cache + element(s, j, k) * 3 * W + at : here;
        acf_real score = 0;
        load<V>(key, from + W, s), load<V>(value, from + 2 * W, s);
#pragma unroll
        for (int c = 0; c < V; c++) score += dot(q[c], key[c]);
        score = group_sum(score) * s.scale;
        if (j > t) continue; /* the last round, and no lane is waited for in what follows */
        const acf_real most = fmaxf(w.most, score), shrink = expf(w.most - most), p = expf(score - most);
        w.most = most, w.sum = w.sum * shrink + p;
#pragma unroll
        for (int c = 0; c < V; c++) w.out[c] = times(shrink, w.out[c]), add(w.out[c], p, value[c]);
    }
    __syncwarp();
    acf_real most = w.most;
    for (int d = 4; d < 32; d *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, d));
    const acf_real share = t < g ? 0 : expf(w.most - most); /* a group may have seen none */
    acf_real sum = w.sum * share;
    for (int d = 4; d < 32; d *= 2) sum += __shfl_xor_sync(ALL, sum, d);
#pragma unroll
    for (int c = 0; c < V; c++) {
        float4 o = times(share, w.out[c]);
        for (int d = 4; d < 32; d *= 2) {
            o.x += __shfl_xor_sync(ALL, o.x, d), o.y += __shfl_xor_sync(ALL, o.y, d);
            o.z += __shfl_xor_sync(ALL, o.z, d), o.w += __shfl_xor_sync(ALL, o.w, d);
        }
        if (g == 0) put(out + e * W + at, 16 * c + 4 * lane, times(1 / sum, o), s);
    }
    remember(cache + (int64_t)own * 3 * W + at, here, s, lane, 32);
}

/* ---- heads of any width ----------------------------------------------------------------------------------------------------------- */

/* p (n) = scale x · key_j, keys of the row of rank k from `keys` on: a warp a key. */
static __device__ void wide_dots(acf_real *p, const acf_real *x, const acf_real *keys, int64_t stride, acf_real scale, int64_t n, int64_t k,
                                 const sequences &s) {
    for (int64_t j = threadIdx.x / 32; j < n; j += blockDim.x / 32) {
        acf_real sum = 0;
        for (int64_t c = threadIdx.x % 32; c < s.H; c += 32) sum += x[c] * keys[element(s, j, k) * stride + c];
        sum = acf_warp_sum(sum);
        if (threadIdx.x % 32 == 0) p[j] = scale * sum;
    }
}

/* out (H) of a query that sees n tokens of qkv (.,3W), which begins with this head; p (n) is scratch. The log-sum-exp. Every thread must call it. */
static __device__ acf_real wide_answer(acf_real *out, acf_real *p, const acf_real *q, const acf_real *qkv, int64_t n, int64_t k, const sequences &s) {
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
    __syncthreads(); /* p is the next query's */
    return most + logf(sum);
}

/* A block a row and head; room (blocks,D). */
static __global__ void wide_fwd(acf_real *out, acf_real *lse, const acf_real *qkv, acf_real *room, sequences s) {
    for (int64_t i = s.first[s.D] * s.W + acf_thread(); i < s.T * s.W; i += (int64_t)gridDim.x * blockDim.x) out[i] = 0;
    const int64_t k = blockIdx.x / s.heads, h = blockIdx.x % s.heads, L = s.size[s.row[k]], at = h * s.H;
    for (int64_t t = 0; t < L; t++) {
        const int64_t e = element(s, t, k);
        const acf_real sum = wide_answer(out + e * s.W + at, room + blockIdx.x * s.D, qkv + e * 3 * s.W + at, qkv + at, t + 1, k, s);
        if (lse && threadIdx.x == 0) lse[e * s.heads + h] = sum;
    }
}

/* room (blocks,2,D): probabilities, and gradients of scores. */
static __global__ void wide_bwd(acf_real *dqkv, const acf_real *dout, const acf_real *out, const acf_real *lse, const acf_real *qkv, acf_real *room,
                                sequences s) {
    const int64_t k = blockIdx.x / s.heads, h = blockIdx.x % s.heads, L = s.size[s.row[k]], W = s.W, at = h * s.H;
    acf_real *p = room + blockIdx.x * 2 * s.D, *ds = p + s.D;
    for (int64_t t = 0; t < L; t++) {
        const int64_t e = element(s, t, k);
        const acf_real *q = qkv + e * 3 * W + at, *d = dout + e * W + at, *o = out + e * W + at;
        wide_dots(p, q, qkv + at + W, 3 * W, s.scale, t + 1, k, s);
        wide_dots(ds, d, qkv + at + 2 * W, 3 * W, 1, t + 1, k, s);
        acf_real sum = 0;
        for (int64_t c = threadIdx.x; c < s.H; c += blockDim.x) sum += o[c] * d[c];
        sum = acf_block_sum(sum); /* waits for the block */
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

/* A block a token and head; room (blocks,D). */
static __global__ void wide_step(acf_real *out, acf_real *cache, const acf_real *qkv, const int32_t *token, acf_real *room, sequences s) {
    const int64_t e = blockIdx.x / s.heads, at = blockIdx.x % s.heads * s.H;
    const int32_t own = token[e];
    for (int64_t c = threadIdx.x; own < 0 && c < s.H; c += blockDim.x) out[e * s.W + at + c] = 0;
    if (own < 0) return;
    const int64_t k = s.rank[s.row_of[own]], t = step_of(s, own, k);
    remember(cache + (int64_t)own * 3 * s.W + at, qkv + e * 3 * s.W + at, s, (int)threadIdx.x, (int)blockDim.x);
    __syncthreads();
    wide_answer(out + e * s.W + at, room + blockIdx.x * s.D, qkv + e * 3 * s.W + at, cache + at, t + 1, k, s);
}

/* ---- host side ---------------------------------------------------------------------------------------------------------------------- */

/* So many bytes can be read at once from where a is. */
static bool on_four(const void *a) { return !a || (uintptr_t)a % sizeof(float4) == 0; }

static sequences sequences_of(const acf_subset *u, int64_t W, int heads, const acf_real *a, const acf_real *b, const acf_real *c, const acf_real *d) {
    const int64_t H = W / heads;
    const bool aligned = H % 4 == 0 && on_four(a) && on_four(b) && on_four(c) && on_four(d);
    return {u->row, u->rank, u->size, u->first, u->row_of, u->N, u->D, u->T, W, (int)H, heads, (acf_real)(1 / sqrt((double)H)), aligned};
}

/* The call for heads of this width, with V: lanes have 4 V numbers each. */
#define BY_WIDTH(kernel, H, ...)                                                                                       \
    do {                                                                                                               \
        if ((H) <= 16) kernel<1> __VA_ARGS__;                                                                          \
        else if ((H) <= 32) kernel<2> __VA_ARGS__;                                                                     \
        else if ((H) <= 64) kernel<4> __VA_ARGS__;                                                                     \
        else kernel<8> __VA_ARGS__;                                                                                    \
    } while (0)

/* The shape of the launch over all tokens: two tiles and their notes fit into 48 KB. */
typedef struct shape {
    dim3 grid;
    int threads;
    size_t bytes;
} shape;
static shape shape_of(const sequences &s) {
    const int64_t V = s.H <= 16 ? 1 : s.H <= 32 ? 2 : s.H <= 64 ? 4 : 8;
    const int64_t warps = acf_max(acf_min(acf_ceil_div(s.D, TOKENS), V == 8 ? 4 : 8), 1), tile = warps * TOKENS;
    return {dim3((unsigned)(s.N * s.heads), (unsigned)acf_ceil_div(s.D, tile)), (int)(32 * warps),
            (size_t)tile * (2 * 4 * (size_t)V * sizeof(float4) + sizeof(note))};
}

#define WIDE_THREADS 128

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_attention_attrs *a = (acf_attention_attrs *)n->attr;
    const acf_tensor *qkv = n->in[0], *out = n->out[0];
    const sequences s = sequences_of(a->s, out->dim[1], a->heads, qkv->data, out->data, NULL, NULL);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (n->save) a->lse = acf_tape_reals(t, s.T * s.heads);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *room = s.H > WIDEST ? acf_tape_reals(t, s.N * s.heads * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (s.N == 0 || s.D == 0) return ACF_OK;
    const shape p = shape_of(s);
    if (room) wide_fwd<<<(unsigned)(s.N * s.heads), WIDE_THREADS, 0, stream>>>(out->data, a->lse, qkv->data, room, s);
    else BY_WIDTH(attention_fwd, s.H, <<<p.grid, p.threads, p.bytes, stream>>>(out->data, a->lse, qkv->data, s));
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
    acf_real *room = dqkv && s.H > WIDEST ? acf_tape_reals(t, s.N * s.heads * 2 * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (!dqkv || s.N == 0 || s.D == 0) return ACF_OK;
    const shape p = shape_of(s);
    if (room) wide_bwd<<<(unsigned)(s.N * s.heads), WIDE_THREADS, 0, stream>>>(dqkv, out->grad, out->data, a->lse, qkv->data, room, s);
    else BY_WIDTH(attention_bwd, s.H, <<<p.grid, p.threads, p.bytes, stream>>>(dqkv, out->grad, out->data, a->lse, qkv->data, s));
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("attention");
}

ACF_CUDA_OP(attention, forward, backward);

static acf_status step_forward(acf_tape *t, acf_node *n) {
    const acf_attention_step_attrs *a = (const acf_attention_step_attrs *)n->attr;
    const acf_tensor *qkv = n->in[0], *cache = n->in[1], *out = n->out[0];
    const sequences s = sequences_of(a->s, out->dim[1], a->heads, qkv->data, out->data, cache->data, NULL);
    const int64_t heads = qkv->dim[0] * s.heads;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *room = s.H > WIDEST ? acf_tape_reals(t, heads * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (heads == 0) return ACF_OK;
    if (room) wide_step<<<(unsigned)heads, WIDE_THREADS, 0, stream>>>(out->data, cache->data, qkv->data, a->token, room, s);
    else BY_WIDTH(step_fwd, s.H, <<<acf_blocks(heads, 4), 128, 0, stream>>>(out->data, cache->data, qkv->data, a->token, qkv->dim[0], s));
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("attention_step");
}

ACF_CUDA_OP(attention_step, step_forward, NULL);
