/* Persistent kernels of the gated recurrent unit for H = 256 on bf16 products: see gru_kernels.h; formulas in
 * docs/math.md, 5.
 *
 * Workload: N = 512 to 4096 rows, 6 to 63 steps. The cost of a step is latency: product, gates, exchange, then the
 * next step. Therefore nothing in the loop waits for global memory (inputs are prefetched one step ahead, states
 * stay in registers, weights in shared memory), and no barrier orders global stores. Blocks of a cluster write into
 * each other's shared memory with st.async, which counts the bytes on an mbarrier of the receiver. A team is the
 * warps of all blocks that share rows; teams never wait for each other.
 *
 *     forward    a block has U = H/C units: state (rows, H) · whᵀ (H, 3U) -> gates
 *                -> its columns of the state, to all blocks
 *     backward   a block has U = H/4 units: gradients (rows, 3U) · wh (3U, H)
 *                -> partial sums for all units -> each block its columns
 *
 * The forward gathers (it exchanges H numbers a row), the backward scatters sums: gathering 3H gradients would need
 * three times the memory and the bandwidth. Slots and tiles are as in gru_kernels.cu. */
#include "ops/gru_fast.cuh"

/* ---- forward --------------------------------------------------------------------------------------------------- */

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

/* COND: rows add cond. It is a constant because a third of the gates then waits in registers for the product. */
template <typename G, int C, int MT, bool COND, bool APPROX>
__global__ void __launch_bounds__(MT == 4 ? 256 : 512, 1)
    forward_fast(const __grid_constant__ acf_gru_forward f, const __grid_constant__ acf_gru_fast g) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef ForwardPlan<C> P;
    constexpr int H = HU, PITCH = P::PITCH, V = 4;
    int c = cluster_rank(), tile = blockIdx.x / C, tiles = g.tiles, D = (int)f.s.D;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, wn = warp % P::WN, team = warp / P::WN,
        slot0 = team * 16 * MT;
    int local = wn * 16 + (lane & 3) * V, unit = c * P::U + local;
    uint32_t base = shared_address(shared), bars = base + P::barriers(g), full = bars + 8 + 16 * team,
             vacant = bars + 8 + 8 * (2 * g.teams + team);
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
    int64_t rank = tile + (int64_t)tiles * (slot0 + (lane >> 2)),
            stride = 8 * (int64_t)tiles; /* stride between rows 8 slots apart */
    int64_t first = 0;
    Pack<G, V> in[3][MT][2];
    float old[MT][2][V];
    auto ask = [&](int64_t at, int n) { /* prefetches the inputs of a step that begins at `at` */
#pragma unroll
                                        for (int m = 0; m < MT; m++)
#pragma unroll
                                            for (int s = 0; s < 2; s++)
                                                if (m * 16 + s * 8 + (lane >> 2) < n) {
                                                    const G *p = (const G *)f.gates +
                                                                 (at + rank + (2 * m + s) * stride) * 4 * H + unit;
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
    bool ready = false; /* weights have arrived */
    for (int t = 0; now; t++) {
        int active2 = t + 2 < D ? f.s.active[t + 2] : 0;
        int later = team_rows<16 * MT>(active1, tile, tiles, slot0);
        float acc[3][MT][2][4], an[MT][2][V]; /* accumulators 2j + b of row s: unit 2j + b of this thread's four */
        Pack<float, V> br = load<float, V>(bias), bz = load<float, V>(bias + P::U),
                       bb = load<float, V>(bias + 2 * P::U);
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
    sync_all(2); /* a block must not exit while others may still signal it */
}

/* ---- choice and launch ----------------------------------------------------------------------------------------- */

acf_gru_fast acf_gru_try = {};

/* One wave of clusters: 66 of two, 30 of four fit on an H200 (132 multiprocessors, 120 of them in groups of four). */
static void choose_forward(acf_gru_fast *g, int64_t N, int64_t D) {
    if (N <= 30 * 16)
        *g = {4, 1, 1};
    else if (N <= 30 * 32)
        *g = {4, 1, 2, 30};
    else if (N <= 66 * 32 || D > 12)
        *g = {2, 1, 2};
    else
        *g = {2, 4, 1}; /* tall tiles: all rows at once, which is faster when there are few steps */
    if (acf_gru_try.C) *g = acf_gru_try;
    g->rows = 16 * g->MT * g->teams;
    int least = ceil_of(N, g->rows);
    if (g->tiles < least) g->tiles = least;
    if (!g->buffers)
        g->buffers = 768 * HU / g->C * 2 + 2 * g->rows * 2 * HU + 16 * HU / g->C + 256 <= MAX_SHARED ? 2 : 1;
}

template <typename G, int C, int MT>
static cudaError_t forward_with(const acf_gru_forward *f, const acf_gru_fast &g, cudaStream_t stream) {
    int warps = ForwardPlan<C>::WN * g.teams, bytes = ForwardPlan<C>::bytes(g);
    constexpr bool narrow = sizeof(G) == 2;
    if (warps > (MT == 4 ? 8 : 16) || bytes > MAX_SHARED) return cudaErrorInvalidConfiguration;
    if (f->cond) return run_clusters(forward_fast<G, C, MT, true, false>, g, warps, bytes, stream, *f, g);
    if (narrow && g.approx) return run_clusters(forward_fast<G, C, MT, false, narrow>, g, warps, bytes, stream, *f, g);
    return run_clusters(forward_fast<G, C, MT, false, false>, g, warps, bytes, stream, *f, g);
}

template <typename G>
static cudaError_t forward_of(const acf_gru_forward *f, const acf_gru_fast &g, cudaStream_t stream) {
    if (g.C == 8) return forward_with<G, 8, 1>(f, g, stream);
    if (g.C == 4) return forward_with<G, 4, 1>(f, g, stream);
    if (g.MT == 4) return forward_with<G, 2, 4>(f, g, stream);
    return g.MT == 1 ? forward_with<G, 2, 1>(f, g, stream) : forward_with<G, 2, 2>(f, g, stream);
}

cudaError_t acf_gru_forward_fast(const acf_gru_forward *f, bool narrow, cudaStream_t stream) {
    acf_gru_fast g = {};
    choose_forward(&g, f->s.N, f->s.D);
    return narrow ? forward_of<bf16>(f, g, stream) : forward_of<float>(f, g, stream);
}
