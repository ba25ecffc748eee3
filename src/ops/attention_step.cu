/* Causal attention of one token of each row on the GPU, with a cache of keys and values of the tokens before it: see
 * attention.h. attention.cu is for all tokens of a batch.
 *
 * Workload: 256 to 4,096 tokens, each after up to 100 others, 2 to 8 heads of 16 to 64 numbers. A warp handles a
 * token and head, and each of its groups of four lanes (attention_pieces.cuh) handles every eighth key. Wider heads
 * use a block. */
#include "ops/attention_pieces.cuh"

/* The token's position among those of its row, found by all lanes: the number of the row's tokens before it. */
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

/* Copies this head's part of the token's row from qkv to the cache. */
static __device__ void remember(acf_real *cache, const acf_real *qkv, const sequences &s, int lane, int lanes) {
    for (int64_t c = lane; c < s.H; c += lanes)
        for (int part = 0; part < 3; part++) cache[part * s.W + c] = qkv[part * s.W + c];
}

/* out (n,W): one warp per token and head. Each group handles every eighth key; then the groups' results are
 * combined. */
template <int V>
static __global__ void __launch_bounds__(128)
    step_fwd(acf_real *__restrict__ out, acf_real *cache, const acf_real *__restrict__ qkv,
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
        if (j > t) continue; /* the last iteration; no lane synchronises after it */
        const acf_real most = fmaxf(w.most, score), shrink = __expf(w.most - most), p = __expf(score - most);
        w.most = most, w.sum = w.sum * shrink + p;
#pragma unroll
        for (int c = 0; c < V; c++) w.out[c] = times(shrink, w.out[c]), add(w.out[c], p, value[c]);
    }
    __syncwarp();
    acf_real most = w.most;
    for (int d = 4; d < 32; d *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, d));
    const acf_real share = t < g ? 0 : __expf(w.most - most); /* a group may have no keys */
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

/* One block per token and head; scratch `memory` (blocks,D). */
static __global__ void wide_step(acf_real *out, acf_real *cache, const acf_real *qkv, const int32_t *token,
                                 acf_real *memory, sequences s) {
    const int64_t e = blockIdx.x / s.heads, at = blockIdx.x % s.heads * s.H;
    const int32_t own = token[e];
    for (int64_t c = threadIdx.x; own < 0 && c < s.H; c += blockDim.x) out[e * s.W + at + c] = 0;
    if (own < 0) return;
    const int64_t k = s.rank[s.row_of[own]], t = step_of(s, own, k);
    remember(cache + (int64_t)own * 3 * s.W + at, qkv + e * 3 * s.W + at, s, (int)threadIdx.x, (int)blockDim.x);
    __syncthreads();
    wide_answer(out + e * s.W + at, memory + blockIdx.x * s.D, qkv + e * 3 * s.W + at, cache + at, t + 1, k, s);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_attention_step_attrs *a = (const acf_attention_step_attrs *)n->attr;
    const acf_tensor *qkv = n->in[0], *cache = n->in[1], *out = n->out[0];
    const sequences s = sequences_of(a->s, out->dim[1], a->heads, qkv->data, out->data, cache->data, NULL);
    const int64_t heads = qkv->dim[0] * s.heads;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *memory = s.H > WIDEST ? acf_tape_reals(t, heads * s.D) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (heads == 0) return ACF_OK;
    if (memory)
        wide_step<<<(unsigned)heads, WIDE_THREADS, 0, stream>>>(out->data, cache->data, qkv->data, a->token, memory, s);
    else
        BY_WIDTH(
            step_fwd, s.H,
            <<<acf_blocks(heads, 4), 128, 0, stream>>>(out->data, cache->data, qkv->data, a->token, qkv->dim[0], s));
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("attention_step");
}

ACF_CUDA_OP(attention_step, forward, NULL);
