/* The backward of the gated recurrent unit for H = 256 on bf16 products: see gru_fast.cu, which describes both
 * directions. */
#include "ops/gru_fast.cuh"

#define BC 4            /* blocks of a cluster */
#define BU (HU / BC)    /* units of a block */
#define BPITCH (6 * BU) /* bytes of a row of gradients [r z b_n] */

/* Weights; gradients (rows, 3U) bf16; sums (BC senders, rows, U) of type S; barriers: weights, then one a team, then
 * BC a team. */
template <typename S> struct BackwardPlan {
    static constexpr int GRADS = SLICE;
    __host__ __device__ static int sums(const acf_gru_fast &g) { return GRADS + g.rows * BPITCH; }
    __host__ __device__ static int barriers(const acf_gru_fast &g) {
        return sums(g) + BC * g.rows * BU * (int)sizeof(S);
    }
    __host__ __device__ static int bytes(const acf_gru_fast &g) { return barriers(g) + 8 * (1 + (1 + BC) * g.teams); }
};

/* The values of an element that a thread reads: 8 units. */
template <typename G> struct Element {
    Pack<G, 8> gate[4];
    Pack<float, 4> dh[2], old[2];
};

__device__ __forceinline__ void ask_L2(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/* Sums over the rows of a warp of x (4 gates, 8 units). Each lane (gate, 8 lanes) gets its gate's sums. Lanes 8
 * apart have the same units. */
__device__ __forceinline__ void add_rows(float (&sum)[8], float (&x)[4][8]) {
    bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    float y[2][8];
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            y[k][i] = (high ? x[2 + k][i] : x[k][i]) + __shfl_xor_sync(0xffffffffu, high ? x[k][i] : x[2 + k][i], 16);
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum[i] += (odd ? y[1][i] : y[0][i]) + __shfl_xor_sync(0xffffffffu, odd ? y[0][i] : y[1][i], 8);
}

template <typename G, typename S, int MT>
__global__ void __launch_bounds__(384, 1)
    backward_fast(const __grid_constant__ acf_gru_backward f, const __grid_constant__ acf_gru_fast g, float *parts) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef BackwardPlan<S> P;
    constexpr int H = HU;
    int c = cluster_rank(), tile = blockIdx.x / BC, tiles = g.tiles, D = (int)f.s.D;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, to = warp % BC, team = warp / BC, slot0 = team * 16 * MT;
    int spot = threadIdx.x & 7, row0 = threadIdx.x % 128 / 8, unit = c * BU + spot * 8; /* of this thread's elements */
    uint32_t base = shared_address(shared), bars = base + P::barriers(g), full = bars + 8 + 8 * team;
    uint32_t vacant = bars + 8 * (1 + g.teams + BC * team); /* + 8 b: block b has read what this block sent */
    uint32_t a = base + P::GRADS + (slot0 + (lane & 15)) * BPITCH;
    uint32_t w = base + (to * BU + (lane >> 4) * 8 + (lane & 7)) * BPITCH;
    S *sums = (S *)(shared + P::sums(g));
    uint32_t out =
        far_address(base, to) + P::sums(g) + ((c * g.rows + slot0 + (lane >> 2)) * BU + (lane & 3) * 16) * sizeof(S);
    uint32_t out_bar = far_address(full, to);

    if (threadIdx.x == 0) {
        bar_init(bars, 1);
        for (int i = 0; i < g.teams; i++) bar_init(bars + 8 + 8 * i, BC);
        for (int i = 0; i < BC * g.teams; i++) bar_init(bars + 8 * (1 + g.teams + i), 1);
        fence_init();
        copy_weights(base, (const unsigned char *)f.image + FORWARD_BYTES + c * SLICE, SLICE, bars);
    }
    int64_t truth = f.s.first[D], rank = tile + (int64_t)tiles * (slot0 + row0), stride = 16 * (int64_t)tiles;
    clear_tail(f.gates, 4 * H * sizeof(G), truth, f.s.T);
    clear_tail(f.past, H * sizeof(G), truth, f.s.T);
    int last = -1; /* the last step of this team: active decreases */
    for (int t = lane; t < (D + 31) / 32 * 32; t += 32)
        last += __popc(__ballot_sync(0xffffffffu, t < D && f.s.active[t < D ? t : 0] > tile + (int64_t)tiles * slot0));

    auto ask = [&](Element<G> &e, int t, int64_t at, int64_t before,
                   int m) { /* rows of a step that begins at `at` */
                            int64_t k = rank + m * stride;
                            const G *p = (const G *)f.gates + (at + k) * 4 * H + unit;
                            const float *past = t ? f.h + (before + k) * H + unit : f.h0 ? f.h0 + k * H + unit : NULL;
#pragma unroll
                            for (int i = 0; i < 4; i++) e.gate[i] = load<G, 8>(p + i * H);
#pragma unroll
                            for (int i = 0; i < 2; i++) {
                                e.dh[i] = load<float, 4>(f.dh + (at + k) * H + unit + 4 * i);
                                e.old[i] = zeros<float, 4>();
                                if (past) e.old[i] = load<float, 4>(past + 4 * i);
                            }
    };
    auto ask_ahead = [&](int t, int64_t at, int64_t before,
                         int n) { /* prefetches to the L2 cache: eight threads have eight lines of a row */
#pragma unroll
                                  for (int m = 0; m < MT; m++) {
                                      int64_t k = rank + m * stride;
                                      if (m * 16 + row0 >= n) continue;
                                      if (spot < 4) {
                                          ask_L2((const G *)f.gates + (at + k) * 4 * H + spot * H + c * BU);
                                          if (sizeof(G) == 4)
                                              ask_L2((const G *)f.gates + (at + k) * 4 * H + spot * H + c * BU + 32);
                                      } else if (spot < 6)
                                          ask_L2(f.dh + (at + k) * H + c * BU + (spot & 1) * 32);
                                      else if (t)
                                          ask_L2(f.h + (before + k) * H + c * BU + (spot & 1) * 32);
                                  }
    };
    float carry[MT][8] = {}, total[8] = {}, sum[MT == 1 ? 4 : 1][8] = {};
    int n = last < 0 ? 0 : team_rows<16 * MT>(f.s.active[last], tile, tiles, slot0), n_next = 0;
    int64_t first = last < 0 ? 0 : f.s.first[last];
    Element<G> e;
    if (row0 < n) ask(e, last, first, last ? f.s.first[last - 1] : 0, 0);
    sync_all(2);

    uint32_t parity = 0, vacant_parity = 0;
    bool ready = false;
    auto received = [&](float(&v)[8], int row) { /* adds the four senders' sums, in their order */
#pragma unroll
                                                 for (int b = 0; b < BC; b++) {
                                                     const S *p = sums + (b * g.rows + slot0 + row) * BU + spot * 8;
                                                     if constexpr (sizeof(S) == 2) {
                                                         Pack<S, 8> q = load<S, 8>(p);
#pragma unroll
                                                         for (int i = 0; i < 8; i++) v[i] += get(q, i);
                                                     } else {
                                                         Pack<S, 4> q = load<S, 4>(p), r = load<S, 4>(p + 4);
#pragma unroll
                                                         for (int i = 0; i < 8; i++)
                                                             v[i] += i < 4 ? get(q, i & 3) : get(r, i & 3);
                                                     }
                                                 }
    };
    for (int t = last; t >= 0; t--) {
        int then = t ? f.s.active[t - 1] : 0;
        int64_t before = t ? first - then : 0, before2 = t > 1 ? before - f.s.active[t - 2] : 0;
        if (t < last) bar_wait(full, parity), parity ^= 1;
        float x[4][8] = {}; /* gradients of [n r z b_n], summed over this thread's rows */
#pragma unroll
        for (int m = 0; m < MT; m++) {
            int row = m * 16 + row0;
            Element<G> now = e;
            if (m + 1 < MT && row + 16 < n) ask(e, t, first, before, m + 1);
            if (row >= n) continue;
            float dh[8], dn[8], dr[8], dz[8], db[8], old[8];
#pragma unroll
            for (int i = 0; i < 8; i++) dh[i] = row < n_next ? carry[m][i] : 0, old[i] = get(now.old[i / 4], i & 3);
            if (row < n_next) received(dh, row);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float vn = get(now.gate[0], i), r = get(now.gate[1], i), z = get(now.gate[2], i),
                      bn = get(now.gate[3], i);
                float d = dh[i] + get(now.dh[i / 4], i & 3);
                dn[i] = d * (1 - z) * (1 - vn * vn);
                dz[i] = d * (old[i] - vn) * z * (1 - z);
                dr[i] = dn[i] * bn * r * (1 - r);
                db[i] = dn[i] * r;
                carry[m][i] = d * z;
                x[0][i] += dn[i], x[1][i] += dr[i], x[2][i] += dz[i], x[3][i] += db[i];
            }
            unsigned char *to_row = shared + P::GRADS + (slot0 + row) * BPITCH + ((spot ^ (row & 7)) << 4);
            store((bf16 *)to_row, pack<bf16, 8>(dr));
            store((bf16 *)(to_row + 128), pack<bf16, 8>(dz));
            store((bf16 *)(to_row + 256), pack<bf16, 8>(db));
            int64_t at = first + rank + m * stride;
            G *o = (G *)f.gates + at * 4 * H + unit;
            store(o, pack<G, 8>(dn)), store(o + H, pack<G, 8>(dr)), store(o + 2 * H, pack<G, 8>(dz)),
                store(o + 3 * H, pack<G, 8>(db));
            if (f.past) store((G *)f.past + at * H + unit, pack<G, 8>(old));
        }
        if constexpr (MT == 1) {
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int i = 0; i < 8; i++) sum[k][i] += x[k][i];
        } else
            add_rows(total, x);
        if (t == 0 && !f.dh0) {
            n_next = n;
            break;
        }
        asm volatile("bar.sync %0, 128;" ::"r"(1 + team) : "memory");
        if (t < last && lane == 0)
            bar_arrive_far(far_address(vacant + 8 * c, to)); /* what block `to` sent has been read */
        int n_then = t ? team_rows<16 * MT>(then, tile, tiles, slot0) : 0;
        if (t) ask_ahead(t - 1, before, before2, n_then);
        if (!ready) bar_wait(bars, 0), ready = true;
        float acc[4][MT][2][4];
#pragma unroll
        for (int i = 0; i < 4 * MT * 8; i++) (&acc[0][0][0][0])[i] = 0;
        products<3 * BU / 16, BPITCH>(acc, a, w, (n + 15) / 16);
        __syncwarp();
        if (lane == 0) {
            if (to == 0)
                bar_expect(full, (uint32_t)(n * BC * BU * (int)sizeof(S)));
            else
                bar_arrive(full);
        }
        if (t < last) bar_wait(vacant + 8 * to, vacant_parity), vacant_parity ^= 1;
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                if (m * 16 + s * 8 + (lane >> 2) >= n) continue;
                uint32_t here = out + (m * 16 + s * 8) * BU * (int)sizeof(S);
                if constexpr (sizeof(S) == 2) {
#pragma unroll
                    for (int k = 0; k < 4; k += 2)
                        send16(here + k * 8, two_bf16(acc[k][m][0][2 * s], acc[k][m][0][2 * s + 1]),
                               two_bf16(acc[k][m][1][2 * s], acc[k][m][1][2 * s + 1]),
                               two_bf16(acc[k + 1][m][0][2 * s], acc[k + 1][m][0][2 * s + 1]),
                               two_bf16(acc[k + 1][m][1][2 * s], acc[k + 1][m][1][2 * s + 1]), out_bar);
                } else {
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        send16(here + k * 16, __float_as_uint(acc[k][m][0][2 * s]),
                               __float_as_uint(acc[k][m][0][2 * s + 1]), __float_as_uint(acc[k][m][1][2 * s]),
                               __float_as_uint(acc[k][m][1][2 * s + 1]), out_bar);
                }
            }
        n_next = n, n = n_then, first = before;
        if (t && row0 < n) ask(e, t - 1, first, before2, 0);
    }

    if (f.dh0 && last >= 0) {
        bar_wait(full, parity);
#pragma unroll
        for (int m = 0; m < MT; m++) {
            if (m * 16 + row0 >= n_next) continue;
            received(carry[m], m * 16 + row0);
            float *d = f.dh0 + (rank + m * stride) * H + unit;
#pragma unroll
            for (int i = 0; i < 8; i++) d[i] += carry[m][i];
        }
    }
    if (MT == 1 && f.dcond && row0 < n_next) {
        float *d = f.dcond + (int64_t)(f.s.row ? f.s.row[rank] : rank) * 3 * H + unit;
#pragma unroll
        for (int i = 0; i < 8; i++)
            d[i] += sum[MT == 1 ? 1 : 0][i], d[H + i] += sum[MT == 1 ? 2 : 0][i], d[2 * H + i] += sum[0][i];
    }
    if constexpr (MT == 1) add_rows(total, sum);
    sync_all(2); /* a block must not exit or reuse its memory while others may still signal it */
    if (!parts) return;
    float *sheet = (float *)(shared + P::GRADS); /* (warps, 4, U) */
#pragma unroll
    for (int i = 0; i < 8; i++) sheet[(warp * 4 + lane / 8) * BU + spot * 8 + i] = total[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 4 * BU; i += blockDim.x) {
        float v = 0;
        for (int k = 0; k < g.teams * BC; k++) v += sheet[k * 4 * BU + i];
        parts[(int64_t)tile * 4 * H + i / BU * H + c * BU + i % BU] = v;
    }
}

/* dcond (N,3H) += the gates' gradients of a row over its steps. One block per rank, 96 threads of 8 columns. */
template <typename G> __global__ void row_sums(const __grid_constant__ acf_gru_backward f) {
    int k = blockIdx.x, col = threadIdx.x * 8, gate = col / HU;
    float v[8] = {};
    int64_t first = 0;
#pragma unroll 4
    for (int t = 0; t < f.s.D; t++) {
        int n = f.s.active[t];
        if (k >= n) break;
        Pack<G, 8> q = load<G, 8>((const G *)f.gates + (first + k) * 4 * HU + col);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] += get(q, i);
        first += n;
    }
    float *d = f.dcond + (int64_t)(f.s.row ? f.s.row[k] : k) * 3 * HU + (gate == 0 ? 2 : gate - 1) * HU + col % HU;
#pragma unroll
    for (int i = 0; i < 8; i++) d[i] += v[i];
}

/* ---- choice and launch ----------------------------------------------------------------------------------------- */

/* Sums are exchanged as bf16 if gates are bf16 too. */
static void choose_backward(acf_gru_fast *g, int64_t N, bool narrow) {
    if (N <= 30 * 16)
        *g = {BC, 1, 1, 0, 0, narrow};
    else if (N <= 30 * 32)
        *g = {BC, 1, 2, 30, 0, narrow};
    else if (N <= 30 * 48)
        *g = {BC, 1, 3};
    else if (N <= 30 * 96)
        *g = {BC, 2, 3};
    else
        *g = {BC, 3, 3};
    if (acf_gru_try.C) *g = acf_gru_try;
    g->C = BC, g->rows = 16 * g->MT * g->teams;
    int least = ceil_of(N, g->rows);
    if (g->tiles < least) g->tiles = least;
}

template <typename G, typename S, int MT>
static cudaError_t backward_with(const acf_gru_backward *b, const acf_gru_fast &g, float *parts, cudaStream_t stream) {
    int warps = BC * g.teams, bytes = BackwardPlan<S>::bytes(g);
    if (warps > 12 || bytes > MAX_SHARED) return cudaErrorInvalidConfiguration;
    return run_clusters(backward_fast<G, S, MT>, g, warps, bytes, stream, *b, g, parts);
}

template <typename G>
static cudaError_t backward_of(const acf_gru_backward *b, const acf_gru_fast &g, float *parts, cudaStream_t stream) {
    if (g.MT == 1)
        return g.approx ? backward_with<G, bf16, 1>(b, g, parts, stream)
                        : backward_with<G, float, 1>(b, g, parts, stream);
    if (g.MT == 2) return backward_with<G, bf16, 2>(b, g, parts, stream);
    return backward_with<G, bf16, 3>(b, g, parts, stream);
}

cudaError_t acf_gru_backward_fast(const acf_gru_backward *b, bool narrow, cudaStream_t stream) {
    acf_gru_fast g = {};
    choose_backward(&g, b->s.N, narrow);
    float *parts = b->dbx || b->dbh ? b->scratch : NULL;
    cudaError_t e = narrow ? backward_of<bf16>(b, g, parts, stream) : backward_of<float>(b, g, parts, stream);
    if (e) return e;
    if (b->dcond && g.MT > 1) {
        if (narrow)
            row_sums<bf16><<<(unsigned)b->s.N, 96, 0, stream>>>(*b);
        else
            row_sums<float><<<(unsigned)b->s.N, 96, 0, stream>>>(*b);
    }
    e = cudaGetLastError();
    return e || !parts ? e : acf_gru_add_parts(b->dbx, b->dbh, parts, g.tiles, HU, stream);
}
