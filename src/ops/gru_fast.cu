/* Persistent kernels of the gated recurrent unit for H = 256 on bf16 products: see gru_kernels.h; formulas in docs/math.md, 5.
 *
 * Workload: N = 512 to 4096 rows, 6 to 63 steps. What a step costs is latency: product, gates, exchange, then the next step. So nothing
 * in the loop waits for global memory (inputs of a step are asked for a step ahead, states stay in registers, weights on chip) and no
 * barrier orders global stores: blocks of a cluster write into each other's shared memory with st.async, which counts the bytes on
 * an mbarrier of the receiver. A team is the warps of all blocks that share rows; teams never wait for each other.
 *
 *     forward    a block has U = H/C units: state (rows, H) · whᵀ (H, 3U) -> gates -> its columns of the state, to all blocks
 *     backward   a block has U = H/4 units: gradients (rows, 3U) · wh (3U, H) -> partial sums for all units -> each block its columns
 *
 * The forward gathers (it exchanges H numbers a row), the backward scatters sums: gathering 3H gradients would need three
 * times the memory and the bandwidth. Slots and tiles as in gru_kernels.cu. */
#include "ops/gru_fast.h"
#include "ops/gru_pieces.cuh"
#include "ops/hopper.cuh"

#define HU 256                          /* units */
#define GROUP (3 * 16 * HU * 2)         /* bytes of the forward's weights of 16 units */
#define SLICE (HU * 3 * (HU / 4) * 2)   /* bytes of the backward's weights of a block */
#define FORWARD_BYTES (HU / 16 * GROUP) /* the forward's part of an image; the backward's, as large, follows it */

/* ---- images of weights ------------------------------------------------------------------------------------------------- */

struct Images {
    void *image[ACF_GRU_IMAGES];
    const float *wh[ACF_GRU_IMAGES];
};

/* One chunk of 16 bytes a thread. Forward: groups of 16 units of [r z n] rows (place of unit) of H; backward: slices of H rows (place of
 * the unit that receives) of [r z b_n] x 64 units. Chunks of a row are swapped about by the row's number as in struct Rows. */
__global__ void image_kernel(const __grid_constant__ Images m) {
    const float *wh = m.wh[blockIdx.y];
    unsigned char *out = (unsigned char *)m.image[blockIdx.y];
    int i = blockIdx.x * blockDim.x + threadIdx.x, count = FORWARD_BYTES / 16;
    float v[8];
    if (i < count) {
        int group = i / (48 * 32), row = i / 32 % 48, chunk = i % 32 ^ (row & 7), place = row % 16;
        int unit = group * 16 + place % 8 / 2 * 4 + place / 8 * 2 + place % 2;
        const float *from = wh + ((int64_t)(row / 16) * HU + unit) * HU + chunk * 8;
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = from[k];
        store((bf16 *)(out + (int64_t)i * 16), pack<bf16, 8>(v));
    } else if (i < 2 * count) {
        i -= count;
        int row = i % HU, spot = i / HU % 24, slice = i / HU / 24, chunk = spot ^ (row & 7), place = row % 64;
        int unit = row - place + place % 8 / 2 * 16 + place / 8 * 2 + place % 2, k0 = chunk * 8;
        const float *from = wh + ((int64_t)(k0 / 64) * HU + slice * 64 + k0 % 64) * HU + unit;
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = from[k * HU];
        store((bf16 *)(out + FORWARD_BYTES + (int64_t)slice * SLICE + row * 384 + spot * 16), pack<bf16, 8>(v));
    }
}

extern "C" int64_t acf_gru_image_bytes(int64_t H) { return H == HU ? 2 * FORWARD_BYTES : 0; }

extern "C" cudaError_t acf_gru_images_launch(void *const *image, const float *const *wh, int n, int64_t H, cudaStream_t stream) {
    Images m = {};
    if (H != HU || n < 1) return cudaSuccess;
    if (n > ACF_GRU_IMAGES) return cudaErrorInvalidValue;
    for (int i = 0; i < n; i++) m.image[i] = image[i], m.wh[i] = wh[i];
    image_kernel<<<dim3(2 * FORWARD_BYTES / 16 / 256, (unsigned)n), 256, 0, stream>>>(m);
    return cudaGetLastError();
}

/* ---- pieces --------------------------------------------------------------------------------------------------------- */

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

/* acc[g][m][j] += rows of tile m · 16 rows of weights of group g, K-steps of 16, for tiles M0 to M1. a, w: where this lane's ldmatrix
 * row begins; PITCH: bytes of a row. One tile of rows: fragments of a step are read while the step before multiplies; more tiles
 * need the registers. */
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

/* The first `live` tiles: all of them at once, or, where rows have ended, one by one. */
template <int STEPS, int PITCH, int GROUPS, int MT>
__device__ __forceinline__ void products(float (&acc)[GROUPS][MT][2][4], uint32_t a, uint32_t w, int live) {
    __syncwarp();
    if (MT == 1 || live == MT) products_of<0, MT, STEPS, PITCH>(acc, a, w);
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

/* ---- forward ----------------------------------------------------------------------------------------------------------- */

/* The forward's shared memory: weights, rows of states (1 or 2 buffers), biases (r, z, b_n, n), barriers. */
template <int C> struct ForwardPlan {
    static constexpr int U = HU / C, WN = U / 16, PITCH = 2 * HU, STATES = 3 * U * PITCH;
    __host__ __device__ static int biases(const acf_gru_fast &g) { return STATES + g.buffers * g.rows * PITCH; }
    __host__ __device__ static int barriers(const acf_gru_fast &g) { return biases(g) + 4 * U * 4; }
    __host__ __device__ static int bytes(const acf_gru_fast &g) { return barriers(g) + 8 * (1 + 3 * g.teams); }
};

template <int C>
__device__ void forward_begin(const acf_gru_forward &f, const acf_gru_fast &g, unsigned char *shared, int c, int tile) {
    typedef ForwardPlan<C> P;
    uint32_t base = shared_address(shared), bars = base + P::barriers(g);
    if (threadIdx.x == 0) {
        bar_init(bars, 1);
        for (int i = 0; i < 2 * g.teams; i++) bar_init(bars + 8 + 8 * i, 1);
        for (int i = 0; i < g.teams; i++) bar_init(bars + 8 + 8 * (2 * g.teams + i), C * P::WN);
        fence_init();
        copy_weights(base, (const unsigned char *)f.image + c * P::WN * GROUP, P::WN * GROUP, bars);
    }
    float *bias = (float *)(shared + P::biases(g));
    for (int i = threadIdx.x; i < 4 * P::U; i += blockDim.x) {
        int k = i / P::U, u = c * P::U + i % P::U; /* r, z, b_n, n */
        float own = k < 3 ? f.bh[k * HU + u] : 0, in = k == 2 || f.cond || !f.bx ? 0 : f.bx[(k < 2 ? k : 2) * HU + u];
        bias[i] = own + in;
    }
    int n = f.h0 && f.s.D ? slots(f.s.active[0], tile, g.tiles) : 0;
    for (int i = threadIdx.x; i < n * (HU / 8); i += blockDim.x) {
        int slot = i / (HU / 8), chunk = i % (HU / 8);
        const float4 *from = (const float4 *)(f.h0 + (tile + (int64_t)g.tiles * slot) * HU + chunk * 8);
        float4 x = from[0], y = from[1];
        float v[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
        store((bf16 *)(shared + P::STATES + slot * P::PITCH + ((chunk ^ (slot & 7)) << 4)), pack<bf16, 8>(v));
    }
    int64_t truth = f.s.first[f.s.D];
    clear_tail(f.h, 4 * HU, truth, f.s.T);
    clear_tail(f.h16, 2 * HU, truth, f.s.T);
}

/* COND: rows add cond. A constant because its third of the gates must wait in registers for the product. */
template <typename G, int C, int MT, bool COND, bool APPROX>
__global__ void __launch_bounds__(MT == 4 ? 256 : 512, 1) forward_fast(const __grid_constant__ acf_gru_forward f,
                                                       const __grid_constant__ acf_gru_fast g) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef ForwardPlan<C> P;
    constexpr int H = HU, PITCH = P::PITCH, V = 4;
    int c = cluster_rank(), tile = blockIdx.x / C, tiles = g.tiles, D = (int)f.s.D;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, wn = warp % P::WN, team = warp / P::WN, slot0 = team * 16 * MT;
    int local = wn * 16 + (lane & 3) * V, unit = c * P::U + local;
    uint32_t base = shared_address(shared), bars = base + P::barriers(g), full = bars + 8 + 16 * team, vacant = bars + 8 + 8 * (2 * g.teams + team);
    bool one = g.buffers == 1;
    int buffer = one ? 0 : g.rows * PITCH;
    uint32_t a = base + P::STATES + (slot0 + (lane & 15)) * PITCH;
    uint32_t w = base + wn * GROUP + ((lane >> 4) * 8 + (lane & 7)) * PITCH;
    uint32_t mine = P::STATES + (slot0 + (lane >> 2)) * PITCH + (((unit >> 3) ^ (lane >> 2)) << 4) + (unit & 4) * 2;
    const float *bias = (const float *)(shared + P::biases(g)) + local;

    forward_begin<C>(f, g, shared, c, tile);
    if (f.save) clear_tail(f.gates, 4 * H * sizeof(G), f.s.first[D], f.s.T);
    uint32_t far[C];
#pragma unroll
    for (int i = 0; i < C; i++) far[i] = far_address(base, i);
    int active = D ? f.s.active[0] : 0, active1 = D > 1 ? f.s.active[1] : 0;
    int now = team_rows<16 * MT>(active, tile, tiles, slot0);
    int64_t rank = tile + (int64_t)tiles * (slot0 + (lane >> 2)), stride = 8 * (int64_t)tiles; /* of rows 8 slots apart */
    int64_t first = 0;
    Pack<G, V> in[3][MT][2];
    float old[MT][2][V];
    auto ask = [&](int64_t at, int n) { /* the inputs of a step that begins at `at` */
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++)
                if (m * 16 + s * 8 + (lane >> 2) < n) {
                    const G *p = (const G *)f.gates + (at + rank + (2 * m + s) * stride) * 4 * H + unit;
#pragma unroll
                    for (int k = 0; k < 3; k++) in[k][m][s] = load<G, V>(p + k * H);
                }
    };
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
#pragma unroll
            for (int k = 0; k < 3; k++) in[k][m][s] = zeros<G, V>();
            Pack<float, V> start = zeros<float, V>();
            if (f.h0 && m * 16 + s * 8 + (lane >> 2) < now)
                start = load<float, V>(f.h0 + (rank + (2 * m + s) * stride) * H + unit);
#pragma unroll
            for (int i = 0; i < V; i++) old[m][s][i] = get(start, i);
        }
    if (f.projected) ask(0, now);
    sync_all(2);

    uint32_t vacant_parity = 0;
    bool ready = false; /* weights have come */
    for (int t = 0; now; t++) {
        int active2 = t + 2 < D ? f.s.active[t + 2] : 0;
        int later = team_rows<16 * MT>(active1, tile, tiles, slot0);
        float acc[3][MT][2][4], an[MT][2][V]; /* accumulators 2j + b of row s: unit 2j + b of this thread's four */
        Pack<float, V> br = load<float, V>(bias), bz = load<float, V>(bias + P::U), bb = load<float, V>(bias + 2 * P::U);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                Pack<float, V> cr = zeros<float, V>(), cz = cr, cn = cr;
                if (COND && m * 16 + s * 8 + (lane >> 2) < now) {
                    int64_t k = rank + (2 * m + s) * stride;
                    const float *add = f.cond + (int64_t)(f.s.row ? f.s.row[k] : k) * 3 * H + unit;
                    cr = load<float, V>(add), cz = load<float, V>(add + H), cn = load<float, V>(add + 2 * H);
                }
#pragma unroll
                for (int i = 0; i < V; i++) {
                    acc[R][m][i / 2][2 * s + i % 2] = get(cr, i) + get(br, i);
                    acc[Z][m][i / 2][2 * s + i % 2] = get(cz, i) + get(bz, i);
                    acc[NEW][m][i / 2][2 * s + i % 2] = get(bb, i);
                    an[m][s][i] = COND ? get(cn, i) : 0;
                }
            }
        bool has_past = t > 0 || f.h0, vacate = one && has_past && later;
        if (has_past) {
            if (t) bar_wait(full + (one ? 0 : (t & 1) * 8), (one ? t - 1 : (t - 1) >> 1) & 1);
            if (!ready) bar_wait(bars, 0), ready = true;
        }
        if (wn == 0 && lane == 0 && later) bar_expect(full + (one ? 0 : (~t & 1) * 8), (uint32_t)(later * PITCH));
        __syncwarp();
        if (has_past) products<H / 16, PITCH>(acc, a + (t & 1) * buffer, w, (now + 15) / 16);
        if (vacate) {
            __syncwarp();
            if (lane < C) bar_arrive_far(far_address(vacant, lane));
        }
        if (f.x) {
            for (int i = 0; i < f.I; i++)
#pragma unroll
                for (int v = 0; v < V; v++) {
                    const float *p = f.wx + (int64_t)(unit + v) * f.I + i;
                    float wr = __ldg(p), wz = __ldg(p + H * f.I), wnew = __ldg(p + 2 * H * f.I);
#pragma unroll
                    for (int m = 0; m < MT; m++)
#pragma unroll
                        for (int s = 0; s < 2; s++) {
                            bool here = m * 16 + s * 8 + (lane >> 2) < now;
                            float x = here ? __ldg(f.x + (first + rank + (2 * m + s) * stride) * f.I + i) : 0;
                            acc[R][m][v / 2][2 * s + v % 2] += x * wr;
                            acc[Z][m][v / 2][2 * s + v % 2] += x * wz;
                            an[m][s][v] += x * wnew;
                        }
                }
        }
        if (vacate) bar_wait(vacant, vacant_parity), vacant_parity ^= 1;
        Pack<float, V> bn = load<float, V>(bias + 3 * P::U);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int row = m * 16 + s * 8 + (lane >> 2);
                if (row >= now) continue;
                float vr[V], vz[V], vb[V], vn[V];
#pragma unroll
                for (int i = 0; i < V; i++) {
                    vr[i] = sigmoid_by<APPROX>(acc[R][m][i / 2][2 * s + i % 2] + get(in[1][m][s], i));
                    vz[i] = sigmoid_by<APPROX>(acc[Z][m][i / 2][2 * s + i % 2] + get(in[2][m][s], i));
                    vb[i] = acc[NEW][m][i / 2][2 * s + i % 2];
                    vn[i] = tanh_by<APPROX>(an[m][s][i] + get(bn, i) + get(in[0][m][s], i) + vr[i] * vb[i]);
                    old[m][s][i] = vn[i] + vz[i] * (old[m][s][i] - vn[i]);
                }
                Pack<bf16, V> sent = pack<bf16, V>(old[m][s]);
                if (row < later)
#pragma unroll
                    for (int i = 0; i < C; i++)
                        send8(far[i] + mine + (~t & 1) * buffer + (m * 16 + s * 8) * PITCH, sent.w[0], sent.w[1],
                              far[i] + (full - base) + (one ? 0 : (~t & 1) * 8));
                int64_t at = first + rank + (2 * m + s) * stride;
                store(f.h + at * H + unit, pack<float, V>(old[m][s]));
                if (f.h16) store((bf16 *)f.h16 + at * H + unit, sent);
                if (f.save) {
                    G *out = (G *)f.gates + at * 4 * H + unit;
                    store(out, pack<G, V>(vn)), store(out + H, pack<G, V>(vr));
                    store(out + 2 * H, pack<G, V>(vz)), store(out + 3 * H, pack<G, V>(vb));
                }
            }
        first += active, active = active1, active1 = active2, now = later;
        if (f.projected) ask(first, now);
    }
    sync_all(2); /* no block leaves while others may still signal it */
}

/* ---- backward ---------------------------------------------------------------------------------------------------------- */

#define BC 4          /* blocks of a cluster */
#define BU (HU / BC)  /* units of a block */
#define BPITCH (6 * BU) /* bytes of a row of gradients [r z b_n] */

/* Weights; gradients (rows, 3U) bf16; sums (BC senders, rows, U) of type S; barriers: weights, then one a team, then BC a team. */
template <typename S> struct BackwardPlan {
    static constexpr int GRADS = SLICE;
    __host__ __device__ static int sums(const acf_gru_fast &g) { return GRADS + g.rows * BPITCH; }
    __host__ __device__ static int barriers(const acf_gru_fast &g) { return sums(g) + BC * g.rows * BU * (int)sizeof(S); }
    __host__ __device__ static int bytes(const acf_gru_fast &g) { return barriers(g) + 8 * (1 + (1 + BC) * g.teams); }
};

/* What a thread reads of an element: 8 units. */
template <typename G> struct Element {
    Pack<G, 8> gate[4];
    Pack<float, 4> dh[2], old[2];
};

__device__ __forceinline__ void ask_L2(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/* Sums over the rows of a warp of x (4 gates, 8 units): lane (gate, 8 lanes) gets its gate's. Lanes 8 apart have the same units. */
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
__global__ void __launch_bounds__(384, 1) backward_fast(const __grid_constant__ acf_gru_backward f,
                                                                        const __grid_constant__ acf_gru_fast g, float *parts) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef BackwardPlan<S> P;
    constexpr int H = HU;
    int c = cluster_rank(), tile = blockIdx.x / BC, tiles = g.tiles, D = (int)f.s.D;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, to = warp % BC, team = warp / BC, slot0 = team * 16 * MT;
    int spot = threadIdx.x & 7, row0 = threadIdx.x % 128 / 8, unit = c * BU + spot * 8; /* of this thread's elements */
    uint32_t base = shared_address(shared), bars = base + P::barriers(g), full = bars + 8 + 8 * team;
    uint32_t vacant = bars + 8 * (1 + g.teams + BC * team); /* + 8 b: block b has read what we sent */
    uint32_t a = base + P::GRADS + (slot0 + (lane & 15)) * BPITCH;
    uint32_t w = base + (to * BU + (lane >> 4) * 8 + (lane & 7)) * BPITCH;
    S *sums = (S *)(shared + P::sums(g));
    uint32_t out = far_address(base, to) + P::sums(g) + ((c * g.rows + slot0 + (lane >> 2)) * BU + (lane & 3) * 16) * sizeof(S);
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
    int last = -1; /* the last step of this team: active falls */
    for (int t = lane; t < (D + 31) / 32 * 32; t += 32)
        last += __popc(__ballot_sync(0xffffffffu, t < D && f.s.active[t < D ? t : 0] > tile + (int64_t)tiles * slot0));

    auto ask = [&](Element<G> &e, int t, int64_t at, int64_t before, int m) { /* rows of a step that begins at `at` */
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
    auto ask_ahead = [&](int t, int64_t at, int64_t before, int n) { /* to the second cache: eight threads have eight lines of a row */
#pragma unroll
        for (int m = 0; m < MT; m++) {
            int64_t k = rank + m * stride;
            if (m * 16 + row0 >= n) continue;
            if (spot < 4) {
                ask_L2((const G *)f.gates + (at + k) * 4 * H + spot * H + c * BU);
                if (sizeof(G) == 4) ask_L2((const G *)f.gates + (at + k) * 4 * H + spot * H + c * BU + 32);
            } else if (spot < 6) ask_L2(f.dh + (at + k) * H + c * BU + (spot & 1) * 32);
            else if (t) ask_L2(f.h + (before + k) * H + c * BU + (spot & 1) * 32);
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
    auto received = [&](float (&v)[8], int row) { /* adds the four senders' sums, in their order */
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
                for (int i = 0; i < 8; i++) v[i] += i < 4 ? get(q, i & 3) : get(r, i & 3);
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
                float vn = get(now.gate[0], i), r = get(now.gate[1], i), z = get(now.gate[2], i), bn = get(now.gate[3], i);
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
            store(o, pack<G, 8>(dn)), store(o + H, pack<G, 8>(dr)), store(o + 2 * H, pack<G, 8>(dz)), store(o + 3 * H, pack<G, 8>(db));
            if (f.past) store((G *)f.past + at * H + unit, pack<G, 8>(old));
        }
        if constexpr (MT == 1) {
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int i = 0; i < 8; i++) sum[k][i] += x[k][i];
        } else add_rows(total, x);
        if (t == 0 && !f.dh0) {
            n_next = n;
            break;
        }
        asm volatile("bar.sync %0, 128;" ::"r"(1 + team) : "memory");
        if (t < last && lane == 0) bar_arrive_far(far_address(vacant + 8 * c, to)); /* what block `to` sent has been read */
        int n_then = t ? team_rows<16 * MT>(then, tile, tiles, slot0) : 0;
        if (t) ask_ahead(t - 1, before, before2, n_then);
        if (!ready) bar_wait(bars, 0), ready = true;
        float acc[4][MT][2][4];
#pragma unroll
        for (int i = 0; i < 4 * MT * 8; i++) (&acc[0][0][0][0])[i] = 0;
        products<3 * BU / 16, BPITCH>(acc, a, w, (n + 15) / 16);
        __syncwarp();
        if (lane == 0) {
            if (to == 0) bar_expect(full, (uint32_t)(n * BC * BU * (int)sizeof(S)));
            else bar_arrive(full);
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
                        send16(here + k * 16, __float_as_uint(acc[k][m][0][2 * s]), __float_as_uint(acc[k][m][0][2 * s + 1]),
                               __float_as_uint(acc[k][m][1][2 * s]), __float_as_uint(acc[k][m][1][2 * s + 1]), out_bar);
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
        for (int i = 0; i < 8; i++) d[i] += sum[MT == 1 ? 1 : 0][i], d[H + i] += sum[MT == 1 ? 2 : 0][i], d[2 * H + i] += sum[0][i];
    }
    if constexpr (MT == 1) add_rows(total, sum);
    sync_all(2); /* no block leaves, or reuses its memory, while others may still signal it */
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

/* dbx and dbh += the sums of parts (P,4H), in the order of the parts. */
__global__ void bias_fast(float *dbx, float *dbh, const float *parts, int P) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, k = j / HU, u = j % HU; /* n, r, z, b_n */
    float v = 0;
#pragma unroll 32
    for (int p = 0; p < P; p++) v += parts[(int64_t)p * 4 * HU + j];
    if (dbx && k < 3) dbx[(k == 0 ? 2 : k - 1) * HU + u] += v;
    if (dbh && k > 0) dbh[(k - 1) * HU + u] += v;
}

/* dcond (N,3H) += the gates' gradients of a row over its steps. A block a rank, 96 threads of 8 columns. */
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

/* ---- choice and launches ------------------------------------------------------------------------------------------------- */

extern "C" acf_gru_fast acf_gru_try; /* for the kernel lab: what is not 0 is taken instead of the choice below */
acf_gru_fast acf_gru_try = {};

static int ceil_of(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

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

/* One wave of clusters: 66 of two, 30 of four fit on an H200 (132 multiprocessors, 120 of them in groups of four). */
static void choose_forward(acf_gru_fast *g, int64_t N) {
    if (N <= 30 * 16) *g = {4, 1, 1};
    else if (N <= 30 * 32) *g = {4, 1, 2};
    else if (N <= 66 * 32) *g = {2, 1, 2};
    else *g = {2, 4, 1};
    if (acf_gru_try.C) *g = acf_gru_try;
    g->rows = 16 * g->MT * g->teams;
    int least = ceil_of(N, g->rows);
    if (g->tiles < least) g->tiles = least;
    if (!g->buffers) g->buffers = 768 * HU / g->C * 2 + 2 * g->rows * 2 * HU + 16 * HU / g->C + 256 <= MAX_SHARED ? 2 : 1;
}

static void choose_backward(acf_gru_fast *g, int64_t N) {
    if (N <= 30 * 16) *g = {BC, 1, 1};
    else if (N <= 30 * 32) *g = {BC, 1, 2};
    else if (N <= 30 * 48) *g = {BC, 1, 3};
    else if (N <= 30 * 96) *g = {BC, 2, 3};
    else *g = {BC, 3, 3};
    if (acf_gru_try.C) *g = acf_gru_try;
    g->C = BC, g->rows = 16 * g->MT * g->teams;
    int least = ceil_of(N, g->rows);
    if (g->tiles < least) g->tiles = least;
}

template <typename G, int C, int MT> static cudaError_t forward_with(const acf_gru_forward *f, const acf_gru_fast &g, cudaStream_t stream) {
    int warps = ForwardPlan<C>::WN * g.teams, bytes = ForwardPlan<C>::bytes(g);
    constexpr bool narrow = sizeof(G) == 2;
    if (warps > (MT == 4 ? 8 : 16) || bytes > MAX_SHARED) return cudaErrorInvalidConfiguration;
    if (f->cond) return run_clusters(forward_fast<G, C, MT, true, false>, g, warps, bytes, stream, *f, g);
    if (narrow && g.approx) return run_clusters(forward_fast<G, C, MT, false, narrow>, g, warps, bytes, stream, *f, g);
    return run_clusters(forward_fast<G, C, MT, false, false>, g, warps, bytes, stream, *f, g);
}

template <typename G> static cudaError_t forward_of(const acf_gru_forward *f, const acf_gru_fast &g, cudaStream_t stream) {
    if (g.C == 8) return forward_with<G, 8, 1>(f, g, stream);
    if (g.C == 4) return forward_with<G, 4, 1>(f, g, stream);
    if (g.MT == 4) return forward_with<G, 2, 4>(f, g, stream);
    return g.MT == 1 ? forward_with<G, 2, 1>(f, g, stream) : forward_with<G, 2, 2>(f, g, stream);
}

cudaError_t acf_gru_forward_fast(const acf_gru_forward *f, bool narrow, cudaStream_t stream) {
    acf_gru_fast g = {};
    choose_forward(&g, f->s.N);
    return narrow ? forward_of<bf16>(f, g, stream) : forward_of<float>(f, g, stream);
}

template <typename G, typename S, int MT>
static cudaError_t backward_with(const acf_gru_backward *b, const acf_gru_fast &g, float *parts, cudaStream_t stream) {
    int warps = BC * g.teams, bytes = BackwardPlan<S>::bytes(g);
    if (warps > 12 || bytes > MAX_SHARED) return cudaErrorInvalidConfiguration;
    return run_clusters(backward_fast<G, S, MT>, g, warps, bytes, stream, *b, g, parts);
}

template <typename G> static cudaError_t backward_of(const acf_gru_backward *b, const acf_gru_fast &g, float *parts, cudaStream_t stream) {
    if (g.MT == 1) return g.approx ? backward_with<G, bf16, 1>(b, g, parts, stream) : backward_with<G, float, 1>(b, g, parts, stream);
    if (g.MT == 2) return backward_with<G, bf16, 2>(b, g, parts, stream);
    return backward_with<G, bf16, 3>(b, g, parts, stream);
}

cudaError_t acf_gru_backward_fast(const acf_gru_backward *b, bool narrow, cudaStream_t stream) {
    acf_gru_fast g = {};
    choose_backward(&g, b->s.N);
    float *parts = b->dbx || b->dbh ? b->scratch : NULL;
    cudaError_t e = narrow ? backward_of<bf16>(b, g, parts, stream) : backward_of<float>(b, g, parts, stream);
    if (e) return e;
    if (b->dcond && g.MT > 1) {
        if (narrow) row_sums<bf16><<<(unsigned)b->s.N, 96, 0, stream>>>(*b);
        else row_sums<float><<<(unsigned)b->s.N, 96, 0, stream>>>(*b);
    }
    if (parts) bias_fast<<<4 * HU / 64, 64, 0, stream>>>(b->dbx, b->dbh, parts, g.tiles);
    return cudaGetLastError();
}
