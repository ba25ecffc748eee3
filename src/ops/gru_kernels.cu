/* Persistent kernels of the gated recurrent unit: see gru_kernels.h; formulas in docs/math.md, 5.
 *
 * Workload: H = 256, N = 512 to 8192, 6 to 63 steps. A step multiplies (rows, H)·(H, 3H), waits for the step before
 * and is too small to read its weights from memory each time. Weights therefore stay in shared memory for the whole
 * sequence: a cluster of C blocks divides the units (U = H/C each) and keeps wh in the shared memory of its blocks.
 * A cluster runs a tile of rows through all steps; no cluster waits for another. After each step the blocks write
 * their part of the new state into each other's memory.
 *
 *     block c of a cluster:   state (rows, H) ─ mma ─ weights of its U units ─> gates of its U units ─> its U columns
 *                                  ^                                                                   of the new state
 *                                  └──────────────── to all C blocks ─────────────────────────────────────────┘
 *
 * The backward is the same with the gradients of [r z b_n] (3H) instead of the state. Rows are sorted by length, so
 * a tile takes every tiles-th rank (rank = tile + tiles·slot). Tiles are then equal, and the rows of a tile that
 * still have a step are its first slots.
 *
 * Products are mma.sync on fragments that ldmatrix reads. A k-step is 32 bytes of a row, 16 bf16 or 8 tf32. The
 * fragments of both types have the same layout in units of four bytes, so one source serves both. The order of units
 * in the weights' rows is permuted (unit_place) such that the accumulators of a thread are neighbouring units: it
 * reads and writes its gates as vectors. */
#include "ops/gru_fast.h"
#include "ops/gru_kernels.h"
#include "ops/gru_pieces.cuh"

/* 16 bytes of E from the numbers at p, p + stride, ...; NEAR: stride is 1, and p is aligned. */
template <typename E, bool NEAR> __device__ __forceinline__ uint4 chunk_of(const float *p, int64_t stride) {
    constexpr int V = 16 / sizeof(E);
    float v[V];
#pragma unroll
    for (int i = 0; i < V; i += NEAR ? 4 : 1)
        if constexpr (NEAR)
            *(float4 *)(v + i) = __ldg((const float4 *)(p + i));
        else
            v[i] = __ldg(p + i * stride);
    Pack<E, V> r = pack<E, V>(v);
    return make_uint4(r.w[0], r.w[1], r.w[2], r.w[3]);
}

/* w (3U rows of H): row (gate, place of unit) = wh (gate·H + unit) */
template <typename E, int UT>
__device__ void load_weights(unsigned char *w, Rows l, const float *wh, int H, int U, int unit0) {
    int V = 16 / sizeof(E), chunks = H / V;
#pragma unroll 4
    for (int i = threadIdx.x; i < 3 * U * chunks; i += blockDim.x) {
        int chunk = i % chunks, u = i / chunks % U, gate = i / chunks / U, row = gate * U + unit_place<UT>(u);
        *(uint4 *)(w + row * l.pitch + ((chunk ^ (row & l.swap)) << 4)) =
            chunk_of<E, true>(wh + ((int64_t)gate * H + unit0 + u) * H + chunk * V, 1);
    }
}

/* w (U rows of 3H): row (place of unit u) = column u of wh */
template <typename E, int UT>
__device__ void load_weights_back(unsigned char *w, Rows l, const float *wh, int H, int U, int unit0) {
    int V = 16 / sizeof(E), chunks = 3 * H / V;
#pragma unroll 2
    for (int i = threadIdx.x; i < U * chunks; i += blockDim.x) {
        int u = i % U, chunk = i / U, row = unit_place<UT>(u);
        *(uint4 *)(w + row * l.pitch + ((chunk ^ (row & l.swap)) << 4)) =
            chunk_of<E, false>(wh + (int64_t)chunk * V * H + unit0 + u, H);
    }
}

/* acc[gate][m][j] = rows [m] · weights, over `steps` k-steps. a, w: this lane's ldmatrix rows (below); `gap`: bytes
 * between gates. */
template <typename E, int GATES, int MT, int UT>
__device__ __forceinline__ void product(float (&acc)[GATES][MT][UT][4], uint32_t a, int a_pitch, int a_swap, uint32_t w,
                                        int gap, int w_swap, int steps, bool second) {
    int lane = threadIdx.x & 31, ra = lane & a_swap & 7, rw = lane & w_swap & 7;
    int ca = lane >> 4, cw = lane >> 3 & 1; /* the chunk of a k-step that this lane points at */
    __syncwarp();
#pragma unroll 2
    for (int k = 0; k < steps; k++) {
        uint32_t fa[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
            if (m == 0 || second) read4(fa[m], a + m * 16 * a_pitch + (((2 * k + ca) ^ ra) << 4));
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            uint32_t at = w + g * gap + (((2 * k + cw) ^ rw) << 4), fb[2 * UT];
            if constexpr (UT == 2)
                read4(fb, at);
            else
                read2(fb, at);
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int j = 0; j < UT; j++)
                    if (m == 0 || second) mma<E>(acc[g][m][j], fa[m], fb[2 * j], fb[2 * j + 1]);
        }
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

struct Tiling {
    int C, rows, tiles; /* blocks of a cluster; rows of a tile; tiles */
    int wm, wn;         /* warps along the rows and along the units of a block */
    int buffers;        /* of the exchanged rows */
    int shared;         /* bytes */
};

/* Loads the rows of the initial states. */
template <typename E>
__device__ void load_state(unsigned char *a, Rows l, const float *h0, int n, int H, int tile, int tiles) {
    int V = 16 / sizeof(E), chunks = H / V;
    for (int i = threadIdx.x; i < n * chunks; i += blockDim.x) {
        int slot = i / chunks, chunk = i % chunks;
        *(uint4 *)(a + slot * l.pitch + ((chunk ^ (slot & l.swap)) << 4)) =
            chunk_of<E, true>(h0 + (tile + (int64_t)tiles * slot) * H + chunk * V, 1);
    }
}

/* The terms that a thread's units add in every row: the biases. */
template <int V> struct Bias { float r[V], z[V], nx[V], nh[V]; };

template <int V> __device__ void load_bias(Bias<V> &b, const acf_gru_forward &f, int unit) {
    int H = (int)f.s.H;
    bool bx = f.bx && !f.cond;
#pragma unroll
    for (int i = 0; i < V; i++) {
        int u = unit + i;
        b.r[i] = f.bh[u] + (bx ? f.bx[u] : 0);
        b.z[i] = f.bh[H + u] + (bx ? f.bx[H + u] : 0);
        b.nh[i] = f.bh[2 * H + u];
        b.nx[i] = bx ? f.bx[2 * H + u] : 0;
    }
}

/* Adds the input's side of a narrow input to acc r, z and to an, for the rows of a block. */
template <int MT, int UT>
__device__ __forceinline__ void add_narrow(float (&acc)[3][MT][UT][4], float (&an)[MT][2][2 * UT],
                                           const acf_gru_forward &f, const int64_t (&at)[MT][2], int unit) {
    int H = (int)f.s.H, I = (int)f.I;
    for (int c = 0; c < I; c++) {
        float v[MT][2];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) v[m][s] = at[m][s] < 0 ? 0 : __ldg(f.x + at[m][s] * I + c);
#pragma unroll
        for (int i = 0; i < 2 * UT; i++) {
            const float *w = f.wx + (int64_t)(unit + i) * I + c;
            float wr = __ldg(w), wz = __ldg(w + (int64_t)H * I), wn = __ldg(w + (int64_t)2 * H * I);
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    acc[R][m][i / 2][2 * s + i % 2] += v[m][s] * wr;
                    acc[Z][m][i / 2][2 * s + i % 2] += v[m][s] * wz;
                    an[m][s][i] += v[m][s] * wn;
                }
        }
    }
}

template <typename E, typename G, int MT, int UT>
__global__ void __launch_bounds__(UT == 1 ? 512 : 256, 1)
    forward_kernel(const __grid_constant__ acf_gru_forward f, const __grid_constant__ Tiling g) {
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int V = 2 * UT; /* units of a thread in a row */
    int H = (int)f.s.H, C = g.C, U = H / C, c = C == 1 ? 0 : cluster_rank(), tile = blockIdx.x / C, tiles = g.tiles;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, wn = warp % g.wn, wm = warp / g.wn;
    int unit = c * U + wn * 8 * UT + (lane & 3) * V; /* this thread's first */
    Rows l = rows_of(H, sizeof(E));
    unsigned char *weights = shared, *state = shared + 3 * U * l.pitch;
    int buffer = g.rows * l.pitch;
    uint32_t w = shared_address(weights) + (wn * 8 * UT + (UT == 2 ? (lane >> 4) * 8 : 0) + (lane & 7)) * l.pitch;
    uint32_t a = shared_address(state) + ((lane >> 3 & 1) * 8 + (lane & 7)) * l.pitch;
    uint32_t mine = shared_address(state) + (lane >> 2) * l.pitch +
                    (((unit * (int)sizeof(E) >> 4) ^ (lane >> 2 & l.swap)) << 4) + (unit * (int)sizeof(E) & 15);
    G *gates = (G *)f.gates;
    const float *hp = f.h; /* states of the step before, in packed order */

    load_weights<E, UT>(weights, l, f.wh, H, U, c * U);
    int now = f.s.D ? f.s.active[0] : 0, first = 0, before = 0;
    if (f.h0) load_state<E>(state, l, f.h0, slots(now, tile, tiles), H, tile, tiles);
    int64_t truth = f.s.first[f.s.D];
    clear_tail(f.h, 4 * H, truth, f.s.T);
    clear_tail(f.h16, 2 * H, truth, f.s.T);
    clear_tail(f.save ? f.gates : NULL, 4 * H * sizeof(G), truth, f.s.T);
    Bias<V> bias;
    load_bias<V>(bias, f, unit);
    sync_all(C);

    for (int t = 0; t < f.s.D; t++) {
        int next = t + 1 < f.s.D ? f.s.active[t + 1] : 0, first_next = f.s.first[t + 1];
        int n = slots(now, tile, tiles), later = slots(next, tile, tiles);
        if (!n) break;
        bool start = t == 0 && !f.h0;
        if (t == 0) hp = f.h0;
        for (int b = wm; b * 16 * MT < n; b += g.wm) {
            int slot0 = b * 16 * MT;
            bool second = MT == 2 && slot0 + 16 < n;
            int64_t at[MT][2];
            Pack<G, V> in[3][MT][2];
            Pack<float, V> old[MT][2];
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    int slot = slot0 + m * 16 + s * 8 + (lane >> 2), rank = tile + tiles * slot;
                    at[m][s] = slot < n ? (int64_t)first + rank : -1;
                    old[m][s] = zeros<float, V>();
#pragma unroll
                    for (int k = 0; k < 3; k++) in[k][m][s] = zeros<G, V>();
                    if (at[m][s] < 0) continue;
                    if (!start) old[m][s] = load<float, V>(hp + ((int64_t)before + rank) * H + unit);
                    if (f.projected)
#pragma unroll
                        for (int k = 0; k < 3; k++) in[k][m][s] = load<G, V>(gates + at[m][s] * 4 * H + k * H + unit);
                }
            float acc[3][MT][UT][4];
#pragma unroll
            for (int k = 0; k < 3; k++)
#pragma unroll
                for (int m = 0; m < MT; m++)
#pragma unroll
                    for (int j = 0; j < UT; j++)
#pragma unroll
                        for (int i = 0; i < 4; i++) acc[k][m][j][i] = 0;
            if (!start)
                product<E, 3, MT, UT>(acc, a + (t & 1) * buffer + slot0 * l.pitch, l.pitch, l.swap, w, U * l.pitch,
                                      l.swap, H * (int)sizeof(E) / 32, second);
            float an[MT][2][V];
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++)
#pragma unroll
                    for (int i = 0; i < V; i++) {
                        an[m][s][i] = bias.nx[i] + get(in[0][m][s], i);
                        acc[R][m][i / 2][2 * s + i % 2] += bias.r[i] + get(in[1][m][s], i);
                        acc[Z][m][i / 2][2 * s + i % 2] += bias.z[i] + get(in[2][m][s], i);
                    }
            if (f.x) add_narrow<MT, UT>(acc, an, f, at, unit);
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    if (at[m][s] < 0) continue;
                    int slot = slot0 + m * 16 + s * 8 + (lane >> 2);
                    float vr[V], vz[V], vb[V], vn[V], vh[V];
                    if (f.cond) {
                        int rank = tile + tiles * slot;
                        const float *add = f.cond + (int64_t)(f.s.row ? f.s.row[rank] : rank) * 3 * H + unit;
                        Pack<float, V> cr = load<float, V>(add), cz = load<float, V>(add + H),
                                       cn = load<float, V>(add + 2 * H);
#pragma unroll
                        for (int i = 0; i < V; i++) {
                            acc[R][m][i / 2][2 * s + i % 2] += get(cr, i);
                            acc[Z][m][i / 2][2 * s + i % 2] += get(cz, i);
                            an[m][s][i] += get(cn, i);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < V; i++) {
                        vr[i] = sigmoid(acc[R][m][i / 2][2 * s + i % 2]);
                        vz[i] = sigmoid(acc[Z][m][i / 2][2 * s + i % 2]);
                        vb[i] = acc[NEW][m][i / 2][2 * s + i % 2] + bias.nh[i];
                        vn[i] = tanh_of(an[m][s][i] + vr[i] * vb[i]);
                        vh[i] = vn[i] + vz[i] * (get(old[m][s], i) - vn[i]);
                    }
                    store(f.h + at[m][s] * H + unit, pack<float, V>(vh));
                    if (f.h16) store((__nv_bfloat16 *)f.h16 + at[m][s] * H + unit, pack<__nv_bfloat16, V>(vh));
                    if (f.save) {
                        G *out = gates + at[m][s] * 4 * H + unit;
                        store(out, pack<G, V>(vn)), store(out + H, pack<G, V>(vr));
                        store(out + 2 * H, pack<G, V>(vz)), store(out + 3 * H, pack<G, V>(vb));
                    }
                    if (slot < later)
                        store_to_all(mine + (~t & 1) * buffer + (slot0 + m * 16 + s * 8) * l.pitch, pack<E, V>(vh), C);
                }
        }
        before = first, first = first_next, now = next, hp = f.h;
        if (!later) break; /* the same in all blocks of a cluster */
        sync_all(C);
    }
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

/* Adds a thread's gradients over its rows and over the threads of its column to parts (warps along the rows, 4H). */
template <int MT, int UT>
__device__ __forceinline__ void write_sums(float *parts, const float (&sum)[4][MT][2][2 * UT], int H, int unit) {
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < 2 * UT; i++) {
            float v = 0;
#pragma unroll
            for (int m = 0; m < MT; m++) v += sum[k][m][0][i] + sum[k][m][1][i];
            for (int d = 4; d < 32; d *= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
            if ((threadIdx.x & 31) < 4) parts[k * H + unit + i] = v;
        }
}

template <typename E, typename G, int MT, int UT>
__global__ void __launch_bounds__(UT == 1 ? 512 : 256, 1)
    backward_kernel(const __grid_constant__ acf_gru_backward f, const __grid_constant__ Tiling g, float *parts) {
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int V = 2 * UT;
    int H = (int)f.s.H, C = g.C, U = H / C, c = C == 1 ? 0 : cluster_rank(), tile = blockIdx.x / C, tiles = g.tiles;
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, wn = warp % g.wn, wm = warp / g.wn;
    int unit = c * U + wn * 8 * UT + (lane & 3) * V, slot0 = wm * 16 * MT;
    Rows l = rows_of(3 * H, sizeof(E));
    unsigned char *weights = shared, *grads = shared + U * l.pitch;
    int buffer = g.buffers == 2 ? g.rows * l.pitch : 0;
    uint32_t w = shared_address(weights) + (wn * 8 * UT + (UT == 2 ? (lane >> 4) * 8 : 0) + (lane & 7)) * l.pitch;
    uint32_t a = shared_address(grads) + (slot0 + (lane >> 3 & 1) * 8 + (lane & 7)) * l.pitch;
    G *gates = (G *)f.gates, *past = (G *)f.past;

    load_weights_back<E, UT>(weights, l, f.wh, H, U, c * U);
    int64_t truth = f.s.first[f.s.D];
    clear_tail(f.gates, 4 * H * sizeof(G), truth, f.s.T);
    clear_tail(f.past, H * sizeof(G), truth, f.s.T);
    int last = -1; /* the last step of this tile: active decreases */
    for (int t0 = 0; t0 < f.s.D; t0 += blockDim.x) {
        int t = t0 + threadIdx.x;
        last += __syncthreads_count(t < f.s.D && f.s.active[t] > tile);
    }
    float sum[4][MT][2][V] = {}, carry[MT][2][V] = {}, acc[1][MT][UT][4];
    sync_all(C);

    int now = last < 0 ? 0 : f.s.active[last], first = last < 0 ? 0 : f.s.first[last], n_next = 0;
    for (int t = last; t >= 0; t--) {
        int n = slots(now, tile, tiles);
        int then = t ? f.s.active[t - 1] : 0, first_then = t ? f.s.first[t - 1] : 0;
        Pack<G, V> in[4][MT][2];
        Pack<float, V> dout[MT][2], old[MT][2];
        int64_t at[MT][2];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int slot = slot0 + m * 16 + s * 8 + (lane >> 2), rank = tile + tiles * slot;
                at[m][s] = slot < n ? (int64_t)first + rank : -1;
                dout[m][s] = old[m][s] = zeros<float, V>();
#pragma unroll
                for (int k = 0; k < 4; k++) in[k][m][s] = zeros<G, V>();
                if (at[m][s] < 0) continue;
#pragma unroll
                for (int k = 0; k < 4; k++) in[k][m][s] = load<G, V>(gates + at[m][s] * 4 * H + k * H + unit);
                dout[m][s] = load<float, V>(f.dh + at[m][s] * H + unit);
                if (t)
                    old[m][s] = load<float, V>(f.h + ((int64_t)first_then + rank) * H + unit);
                else if (f.h0)
                    old[m][s] = load<float, V>(f.h0 + (int64_t)rank * H + unit);
            }
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int j = 0; j < UT; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) acc[0][m][j][i] = 0;
        if (t < last && slot0 < n_next)
            product<E, 1, MT, UT>(acc, a + (t & 1) * buffer, l.pitch, l.swap, w, 0, l.swap, 3 * H * (int)sizeof(E) / 32,
                                  MT == 2 && slot0 + 16 < n_next);
        bool send = t > 0 || f.dh0;
        __syncwarp();
        if (g.buffers == 1 && C > 1 && send) cluster_arrive(); /* this block has read what it received */
        uint32_t mine = shared_address(grads) + (~t & 1) * buffer + (slot0 + (lane >> 2)) * l.pitch;
        Pack<E, V> out[3][MT][2];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                float dr[V], dz[V], db[V], dn[V], vo[V];
                bool later = slot0 + m * 16 + s * 8 + (lane >> 2) < n_next;
#pragma unroll
                for (int i = 0; i < V; i++) {
                    float n_ = get(in[0][m][s], i), r = get(in[1][m][s], i), z = get(in[2][m][s], i),
                          bn = get(in[3][m][s], i);
                    float dh = get(dout[m][s], i) + (later ? carry[m][s][i] + acc[0][m][i / 2][2 * s + i % 2] : 0);
                    vo[i] = get(old[m][s], i);
                    dn[i] = dh * (1 - z) * (1 - n_ * n_);
                    dz[i] = dh * (vo[i] - n_) * z * (1 - z);
                    dr[i] = dn[i] * bn * r * (1 - r);
                    db[i] = dn[i] * r;
                    carry[m][s][i] = dh * z;
                    sum[0][m][s][i] += dn[i], sum[1][m][s][i] += dr[i], sum[2][m][s][i] += dz[i],
                        sum[3][m][s][i] += db[i];
                }
                out[R][m][s] = pack<E, V>(dr), out[Z][m][s] = pack<E, V>(dz), out[NEW][m][s] = pack<E, V>(db);
                if (at[m][s] < 0) continue;
                G *o = gates + at[m][s] * 4 * H + unit;
                store(o, pack<G, V>(dn)), store(o + H, pack<G, V>(dr));
                store(o + 2 * H, pack<G, V>(dz)), store(o + 3 * H, pack<G, V>(db));
                if (past) store(past + at[m][s] * H + unit, pack<G, V>(vo));
            }
        if (send) {
            __syncwarp();
            if (g.buffers == 1) {
                if (C > 1)
                    cluster_wait();
                else
                    __syncthreads();
            }
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++)
                    if (at[m][s] >= 0)
#pragma unroll
                        for (int k = 0; k < 3; k++) {
                            int byte = (k * H + unit) * (int)sizeof(E);
                            store_to_all(mine + (m * 16 + s * 8) * l.pitch +
                                             (((byte >> 4) ^ (lane >> 2 & l.swap)) << 4) + (byte & 15),
                                         out[k][m][s], C);
                        }
            sync_all(C);
        }
        n_next = n, now = then, first = first_then;
    }

    if (f.dh0 && last >= 0) { /* gradients from the first step: n_next rows, in the buffer that step -1 would read */
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int j = 0; j < UT; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) acc[0][m][j][i] = 0;
        if (slot0 < n_next)
            product<E, 1, MT, UT>(acc, a + buffer, l.pitch, l.swap, w, 0, l.swap, 3 * H * (int)sizeof(E) / 32,
                                  MT == 2 && slot0 + 16 < n_next);
    }
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
            int slot = slot0 + m * 16 + s * 8 + (lane >> 2), rank = tile + tiles * slot;
            if (slot >= n_next) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (f.dcond) {
                    float *d = f.dcond + (int64_t)(f.s.row ? f.s.row[rank] : rank) * 3 * H + unit + i;
                    d[0] += sum[1][m][s][i], d[H] += sum[2][m][s][i], d[2 * H] += sum[0][m][s][i];
                }
                if (f.dh0) f.dh0[(int64_t)rank * H + unit + i] += carry[m][s][i] + acc[0][m][i / 2][2 * s + i % 2];
            }
        }
    if (parts) write_sums<MT, UT>(parts + (int64_t)(tile * g.wm + wm) * 4 * H, sum, H, unit);
}

/* ---- choice of a tiling ---------------------------------------------------------------------------------------- */

/* For the kernel lab: nonzero fields override the choice below. */
extern "C" int acf_gru_try_blocks, acf_gru_try_rows;
int acf_gru_try_blocks = 0, acf_gru_try_rows = 0;

static int multiprocessors(void) {
    static int n = 0;
    int device = 0;
    if (!n && (cudaGetDevice(&device) || cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device))) return 1;
    return n;
}

/* Compiled for sm_90a only: later devices run the code for sm_80. */
static bool has_clusters(void) {
    static int major = 0;
    int device = 0;
    if (!major && (cudaGetDevice(&device) || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)))
        return false;
    return major == 9;
}

/* Bytes of shared memory available to a block. */
static int most_shared(void) {
    static int n = 0;
    int device = 0;
    if (!n && (cudaGetDevice(&device) || cudaDeviceGetAttribute(&n, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)))
        return 0;
    return n < MAX_SHARED ? n : MAX_SHARED;
}

/* Rows that fit beside the weights of U units when K numbers of a row are exchanged; a multiple of 16. */
static int rows_that_fit(int weights, int K, int size, int buffers) {
    Rows l = rows_of(K, size);
    int left = most_shared() - weights * l.pitch;
    return left < 0 ? 0 : left / (buffers * l.pitch) / 16 * 16;
}

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

/* A tiling for C blocks a cluster; false if it does not fit. */
static bool tiling_with(Tiling *g, int C, int64_t N, int H, int size, bool back) {
    if (H % (8 * C)) return false;
    int U = H / C, UT = U % 16 || U <= 32 ? 1 : 2, most = UT == 1 ? 16 : 8; /* warps of a block */
    int weights = back ? U : 3 * U, K = back ? 3 * H : H;
    *g = {};
    g->C = C, g->wn = U / (8 * UT), g->buffers = 2;
    if (g->wn > most) return false;
    int fit = rows_that_fit(weights, K, size, 2), want = ceil_div(ceil_div(N, multiprocessors() / C), 16) * 16;
    if (acf_gru_try_rows) want = acf_gru_try_rows;
    int per_warp = back ? 32 : 1 << 20,
        cap = most / g->wn * per_warp; /* the backward keeps a warp's rows in registers */
    if (back && fit < 64 && fit < want) fit = rows_that_fit(weights, K, size, 1), g->buffers = 1;
    if (fit < 16) return false;
    g->rows = want < fit ? want : fit;
    if (g->rows > cap) g->rows = cap;
    int MT = g->rows > 16 ? 2 : 1;
    if (MT == 2) g->rows = g->rows / 32 * 32;
    g->wm = g->rows / (16 * MT);
    if (g->wm > 8 / g->wn) g->wm = back ? g->wm : 8 / g->wn ? 8 / g->wn : 1;
    g->tiles = ceil_div(N, g->rows);
    Rows l = rows_of(K, size);
    g->shared = weights * l.pitch + g->buffers * g->rows * l.pitch;
    return true;
}

/* The smallest cluster that handles all rows at once, else the one that handles most of them. */
static bool choose_tiling(Tiling *g, int64_t N, int H, int size, bool back) {
    static const int sizes[] = {1, 2, 4, 8};
    Tiling best = {}, g1;
    int64_t reach = 0;
    for (int C : sizes) {
        if (acf_gru_try_blocks && C != acf_gru_try_blocks) continue;
        if (C > 1 && !has_clusters()) break;
        if (!tiling_with(&g1, C, N, H, size, back)) continue;
        int64_t at_once = (int64_t)(multiprocessors() / C) * g1.rows;
        if (at_once > N) at_once = N;
        if (at_once > reach) best = g1, reach = at_once;
    }
    *g = best;
    return reach > 0;
}

extern "C" bool acf_gru_is_fast(int64_t H, acf_gru_math math) {
    Tiling g;
    int size = math == ACF_GRU_TF32 ? 4 : 2;
    if (math == ACF_GRU_FLOAT || H % 16 || H < 16 || H > 1024) return false;
    return choose_tiling(&g, 1, (int)H, size, false) && choose_tiling(&g, 1, (int)H, size, true);
}

extern "C" int64_t acf_gru_scratch(const acf_gru_shape *s) {
    return s->N * s->H + ((s->N + 15) / 16 + 1024) * 4 * s->H; /* carry, and sums of each row of warps */
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

template <typename K, typename... A>
static cudaError_t launch(K kernel, const Tiling &g, cudaStream_t stream, A... args) {
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, g.shared);
    if (e) return e;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)g.C, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)(g.tiles * g.C)), c.blockDim = dim3((unsigned)(32 * g.wm * g.wn));
    c.dynamicSmemBytes = (size_t)g.shared, c.stream = stream;
    c.attrs = &cluster, c.numAttrs = g.C > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&c, kernel, args...);
}

/* Calls what(MT, UT) as constants. */
#define WITH_TILE(g, H, call)                                                                                          \
    do {                                                                                                               \
        bool wide = (g).wn * 16 == (H) / (g).C, two = (g).rows > 16;                                                   \
        if (wide && two) return call(2, 2);                                                                            \
        if (wide) return call(1, 2);                                                                                   \
        if (two) return call(2, 1);                                                                                    \
        return call(1, 1);                                                                                             \
    } while (0)

template <typename E, typename G>
static cudaError_t forward_fast(const acf_gru_forward *f, const Tiling &g, cudaStream_t stream) {
#define CALL(MT, UT) launch(forward_kernel<E, G, MT, UT>, g, stream, *f, g)
    WITH_TILE(g, f->s.H, CALL);
#undef CALL
}

template <typename E, typename G>
static cudaError_t backward_fast(const acf_gru_backward *b, const Tiling &g, cudaStream_t stream, float *parts) {
#define CALL(MT, UT) launch(backward_kernel<E, G, MT, UT>, g, stream, *b, g, parts)
    WITH_TILE(g, b->s.H, CALL);
#undef CALL
}

/* For the kernel lab: clusters of C blocks, each with most of the shared memory, that the device runs at once. */
extern "C" int acf_gru_try_clusters(int C);
extern "C" int acf_gru_try_clusters(int C) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)C, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)(1024 * C)), c.blockDim = dim3(256), c.dynamicSmemBytes = 229376, c.attrs = &cluster,
    c.numAttrs = 1;
    auto kernel = forward_kernel<__nv_bfloat16, __nv_bfloat16, 2, 2>;
    int n = 0;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MAX_SHARED);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    return cudaOccupancyMaxActiveClusters(&n, kernel, &c) ? -1 : n;
}

extern "C" cudaError_t acf_gru_forward_launch(const acf_gru_forward *f, acf_gru_math math, cudaStream_t stream) {
    Tiling g;
    if (!acf_gru_is_fast(f->s.H, math)) return acf_gru_forward_plain(f, stream);
    if (f->image && math >= ACF_GRU_BF16_WIDE && has_clusters())
        return acf_gru_forward_fast(f, math == ACF_GRU_BF16, stream);
    if (!choose_tiling(&g, f->s.N, (int)f->s.H, math == ACF_GRU_TF32 ? 4 : 2, false))
        return cudaErrorInvalidConfiguration;
    if (math == ACF_GRU_TF32) return forward_fast<Tf32, float>(f, g, stream);
    if (math == ACF_GRU_BF16_WIDE) return forward_fast<__nv_bfloat16, float>(f, g, stream);
    return forward_fast<__nv_bfloat16, __nv_bfloat16>(f, g, stream);
}

extern "C" cudaError_t acf_gru_backward_launch(const acf_gru_backward *b, acf_gru_math math, cudaStream_t stream) {
    Tiling g;
    if (!acf_gru_is_fast(b->s.H, math)) return acf_gru_backward_plain(b, stream);
    if (b->image && math >= ACF_GRU_BF16_WIDE && has_clusters())
        return acf_gru_backward_fast(b, math == ACF_GRU_BF16, stream);
    if (!choose_tiling(&g, b->s.N, (int)b->s.H, math == ACF_GRU_TF32 ? 4 : 2, true))
        return cudaErrorInvalidConfiguration;
    float *parts = b->dbx || b->dbh ? b->scratch : NULL;
    cudaError_t e = math == ACF_GRU_TF32        ? backward_fast<Tf32, float>(b, g, stream, parts)
                    : math == ACF_GRU_BF16_WIDE ? backward_fast<__nv_bfloat16, float>(b, g, stream, parts)
                                                : backward_fast<__nv_bfloat16, __nv_bfloat16>(b, g, stream, parts);
    if (e || !parts) return e;
    return acf_gru_add_parts(b->dbx, b->dbh, parts, g.tiles * g.wm, b->s.H, stream);
}
