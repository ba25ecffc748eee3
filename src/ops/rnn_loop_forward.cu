/* The recurrent loops forward, narrow form: see rnn_loop_kernels.h; formulas in docs/math.md, 5.
 *
 * Workload: N = 512 to 4096 rows, 6 to 63 steps, 2 or 4 layers of 256 units and a head. A step cannot start before the
 * value of the step before. A cluster of C blocks takes a tile of 16 or 32 rows through all steps; weights are streamed
 * (rnn_loop_stream.cuh).
 *
 *     layer l:  state_l of the step before · whᵀ, then state_(l-1) of this step · wxᵀ -> gates
 *               -> its units of state_l, to all blocks
 *     head:     state · w1ᵀ -> hidden, to all blocks
 *               hidden · w2ᵀ -> outputs and values, all of them in every block
 *
 * The recurrent product comes first because it needs nothing of this step. It runs while the layer below is still being
 * exchanged. Products see states as bf16; the states themselves are float and private to the thread that has their
 * units. */
#include "ops/rnn_loop_stream.cuh"

enum { NX = 2, NH = 3 }; /* accumulators: r, z, the input's and the state's side of n */

/* Shared memory: ring, states (buffers, layers, rows), hidden, outputs, biases (layers; r, z, n, b_n), w0 (r, z, n),
 * values, barriers. */
struct AheadPlan {
    int states, hidden, outputs, biases, w0, values, bars, bytes;
};

__host__ __device__ static inline AheadPlan ahead_plan(const Stream &g, int O) {
    AheadPlan p;
    int rows = 16 * g.MT;
    p.states = g.stages * STAGE;
    p.hidden = p.states + g.buffers * g.layers * rows * pitch_of(g.H);
    p.outputs = p.hidden + rows * pitch_of(g.F);
    p.biases = p.outputs + rows * O * 4;
    p.w0 = p.biases + g.layers * 4 * 16 * g.H * 4;
    p.values = p.w0 + 3 * 16 * g.H * 4;
    p.bars = p.values + rows * 4;
    p.bytes = p.bars + 8 * (2 * g.stages + 1);
    return p;
}

/* The feeding warp: the same order as the crew's products. */
template <int C>
__device__ __forceinline__ void feed_ahead(const acf_loop &f, const Stream &g, Ring r, int c, int tile) {
    const unsigned char *image = (const unsigned char *)f.image;
    int H = g.H / C, F = g.F / C;
    for (int t = 0; t < f.s.D && f.s.active[t] > tile; t++) {
        for (int l = 0; l < g.layers; l++) {
            if (t) feed(r, image, g.ahead.wh[l], g.H, 3 * g.H, 3 * H * c, 3 * H);
            if (l) feed(r, image, g.ahead.wx[l], g.H, 3 * g.H, 3 * H * c, 3 * H);
        }
        feed(r, image, g.ahead.w1, g.H, g.F, F * c, F);
        feed(r, image, g.ahead.w2, g.O, g.F, 0, g.F); /* by groups of outputs, not by K: see outputs_of */
    }
}

/* Terms that rows add to a layer's sums: r, z, n of the conditioning vector's side. */
template <typename T> struct Rows3 { Pack<float, 4> of[T::GR][T::MT][2][3]; };

template <typename T>
__device__ __forceinline__ void ask_rows(Rows3<T> &add, const T &t, const acf_loop &f, const Stream &g, int l,
                                         int now) {
    int64_t H = f.s.H;
    const float *cond = f.layer[l].cond;
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++)
#pragma unroll
        for (int m = 0; m < T::MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int64_t k = t.rank(t.row(m, s));
                bool here = cond && t.row(m, s) < now && t.has(gr, g.H);
                const float *p = cond + (here ? (int64_t)(f.s.row ? f.s.row[k] : k) * 3 * H + t.unit(gr, g.H) : 0);
#pragma unroll
                for (int q = 0; q < 3; q++) {
                    add.of[gr][m][s][q] = zeros<float, 4>();
                    if (here) add.of[gr][m][s][q] = load<float, 4>(p + q * H);
                }
            }
}

/* Adds to a layer's sums the terms that are not products: Rows3, biases (r, z, n, b_n), and in the first layer the
 * value before and the known numbers. */
template <typename T>
__device__ __forceinline__ void add_rows(float (&acc)[4][T::GR][T::MT][2][4], const Rows3<T> &add, const T &t,
                                         const acf_loop &f, const Stream &g, int l, const float *bias, const float *w0,
                                         const float *values, int64_t first, int now) {
    int H = (int)f.s.H;
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++) {
        if (!t.has(gr, g.H)) continue;
        int unit = t.unit(gr, g.H);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            Pack<float, 4> b = load<float, 4>(bias + q * H + unit), w = zeros<float, 4>();
            if (l == 0 && q < 3) w = load<float, 4>(w0 + q * H + unit);
#pragma unroll
            for (int m = 0; m < T::MT; m++)
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    int row = t.row(m, s);
                    Pack<float, 4> in = zeros<float, 4>();
                    if (l == 0 && q < 3 && f.input && row < now)
                        in = load<float, 4>(f.input + ((first + t.rank(row)) * 3 + q) * H + unit);
                    float v = l == 0 ? values[row] : 0;
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        of(acc[q][gr][m], s, i) +=
                            get(b, i) +
                            (q < 3 ? get(add.of[gr][m][s][q < 3 ? q : 0], i) + get(in, i) + v * get(w, i) : 0);
                }
        }
    }
}

/* Gates from the sums; the state, in place, to memory and to all blocks. to: byte offset in shared memory. */
template <typename T>
__device__ __forceinline__ void end_layer(float (&acc)[4][T::GR][T::MT][2][4], float (&state)[T::GR][T::MT][2][4],
                                          const T &t, const acf_loop &f, const Stream &g, int l, int to, int64_t first,
                                          int now) {
    int H = (int)f.s.H;
    const acf_loop_layer &y = f.layer[l];
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++)
#pragma unroll
        for (int m = 0; m < T::MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int row = t.row(m, s), unit = t.unit(gr, g.H);
                if (row >= now || !t.has(gr, g.H)) continue;
                float r[4], z[4], b[4], n[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    r[i] = sigmoid(of(acc[R][gr][m], s, i)), z[i] = sigmoid(of(acc[Z][gr][m], s, i));
                    b[i] = of(acc[NH][gr][m], s, i);
                    n[i] = tanh_of(of(acc[NX][gr][m], s, i) + r[i] * b[i]);
                    state[gr][m][s][i] = n[i] + z[i] * (state[gr][m][s][i] - n[i]);
                }
                Pack<bf16, 4> h = pack<bf16, 4>(state[gr][m][s]);
                store_to_all<bf16, 4>(t.base + to + row * pitch_of(g.H) + unit * 2, h, T::C);
                int64_t p = first + t.rank(row);
                if (y.h) store((bf16 *)y.h + p * H + unit, h);
                if (y.gates) {
                    bf16 *o = (bf16 *)y.gates + p * 4 * H + unit;
                    store(o, pack<bf16, 4>(n)), store(o + H, pack<bf16, 4>(r));
                    store(o + 2 * H, pack<bf16, 4>(z)), store(o + 3 * H, pack<bf16, 4>(b));
                }
            }
}

/* The head's hidden layer, to memory and to all blocks. */
template <typename T>
__device__ __forceinline__ void end_hidden(float (&acc)[1][T::GR][T::MT][2][4], const T &t, const acf_loop &f,
                                           const Stream &g, int to, int64_t first, int now) {
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++) {
        if (!t.has(gr, g.F)) continue;
        int unit = t.unit(gr, g.F);
        Pack<float, 4> b = zeros<float, 4>();
        if (f.b1) b = load<float, 4>(f.b1 + unit);
#pragma unroll
        for (int m = 0; m < T::MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int row = t.row(m, s);
                if (row >= now) continue;
                float v[4];
#pragma unroll
                for (int i = 0; i < 4; i++) v[i] = act_of(f.act, of(acc[0][gr][m], s, i) + get(b, i));
                Pack<bf16, 4> h = pack<bf16, 4>(v);
                store_to_all<bf16, 4>(t.base + to + row * pitch_of(g.F) + unit * 2, h, T::C);
                if (f.hidden) store((bf16 *)f.hidden + (first + t.rank(row)) * f.F + unit, h);
            }
    }
}

/* Outputs (rows,O) of the whole tile in this block. There are few units, so a warp takes a group of 16 through all of
 * K, and groups are dealt to the warps in turn. */
template <typename T>
__device__ __forceinline__ void outputs_of(T &t, const acf_loop &f, const Stream &g, int hidden, float *out) {
    int each = STAGE / (g.F * FRAGMENT), pitch = pitch_of(g.F), O = (int)f.O;
    for (int o = 0; o < g.O; o += each) {
        int n = g.O - o < each ? g.O - o : each;
        bar_wait(t.ring.full + 8 * t.ring.stage, t.ring.parity);
        for (int i = 0; i < n; i++) {
            if ((o + i) % T::W != t.warp) continue;
            const unsigned char *w = t.shared + t.ring.stage * STAGE + i * g.F * FRAGMENT + t.lane * 16;
            uint32_t a = t.base + hidden + (t.lane & 15) * pitch + (t.lane >> 4) * 16;
            float acc[T::MT][2][4] = {};
#pragma unroll 4
            for (int k = 0; k < g.F; k++) {
                uint4 q = *(const uint4 *)(w + k * FRAGMENT);
#pragma unroll
                for (int m = 0; m < T::MT; m++) {
                    uint32_t fa[4];
                    read4(fa, a + m * 16 * pitch + k * 32);
                    multiply(acc[m][0], fa, q.x, q.y), multiply(acc[m][1], fa, q.z, q.w);
                }
            }
#pragma unroll
            for (int m = 0; m < T::MT; m++)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    int s = j / 4, at = (o + i) * 16 + (t.lane & 3) * 4 + j % 4;
                    if (at < O) out[t.row(m, s) * O + at] = of(acc[m], s, j % 4) + (f.b2 ? __ldg(f.b2 + at) : 0);
                }
        }
        __syncwarp();
        if (t.lane == 0) bar_arrive(t.ring.vacant + 8 * t.ring.stage);
        t.ring.next();
    }
}

/* Values of a step, one warp per row; lane i has the given numbers of the warp's i-th row. */
template <typename T>
__device__ __forceinline__ void values_of(const T &t, const acf_loop &f, const Given &mine, const float *out,
                                          float *values, int64_t first, int now) {
    int O = (int)f.O;
    for (int i = 0, row = t.warp; row < now; i++, row += T::W) {
        int64_t p = first + t.rank(row);
        Given its = {__shfl_sync(WHOLE, mine.uniform, i), __shfl_sync(WHOLE, mine.normal, i),
                     __shfl_sync(WHOLE, mine.z, i)};
        float v = value_of(f, out + row * O, its);
        if (t.lane == 0) {
            values[row] = v;
            if (t.c == 0) f.y[p] = v;
        }
        if (f.out && t.c == 0)
            for (int k = t.lane; k < O; k += 32) f.out[p * O + k] = out[row * O + k];
    }
}

__device__ static void clear_tails_ahead(const acf_loop &f) {
    int64_t from = f.s.first[f.s.D], to = f.s.T;
    clear_any(f.y, 1, from, to), clear_any(f.out, f.O, from, to);
    clear_tail(f.hidden, f.F * 2, from, to);
    for (int l = 0; l < f.layers; l++)
        clear_tail(f.layer[l].gates, f.s.H * 8, from, to), clear_tail(f.layer[l].h, f.s.H * 2, from, to);
}

template <int C, int W, int MT>
__global__ void __launch_bounds__(Crew<C, W, MT>::THREADS, 1)
    ahead_kernel(const __grid_constant__ acf_loop f, const __grid_constant__ Stream g) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef Crew<C, W, MT> T;
    AheadPlan p = ahead_plan(g, (int)f.O);
    T t(shared, p.bars, g);
    int H = (int)f.s.H, pitch = pitch_of(g.H), layer = T::ROWS * pitch;
    float *out = (float *)(shared + p.outputs), *biases = (float *)(shared + p.biases), *w0 = (float *)(shared + p.w0),
          *values = (float *)(shared + p.values);
    for (int i = threadIdx.x; i < 3 * H; i += T::THREADS) w0[i] = f.layer[0].wx[i * (1 + f.E)];
    for (int i = threadIdx.x; i < T::ROWS; i += T::THREADS) values[i] = START;
    for (int i = threadIdx.x; i < g.layers * 4 * H; i += T::THREADS) {
        const acf_loop_layer &y = f.layer[i / (4 * H)];
        int q = i / H % 4, u = i % H;
        biases[i] = (q == 2 ? 0 : y.bh[(q == 3 ? 2 : q) * H + u]) + (q < 3 && y.bx && !y.cond ? y.bx[q * H + u] : 0);
    }
    clear_tails_ahead(f);
    __syncthreads();
    sync_all(C); /* barriers of all blocks are ready */

    if (!t.works()) {
        t.give_registers();
        if (t.feeds()) feed_ahead<C>(f, g, t.ring, t.c, t.tile);
    } else {
        t.take_registers();
        float state[NARROW_LAYERS][T::GR][MT][2][4];
        for (int l = 0; l < g.layers; l++)
#pragma unroll
            for (int i = 0; i < T::GR * MT * 8; i++) (&state[l][0][0][0][0])[i] = 0;
        int64_t first = 0;
        int active = f.s.active[0], now = slots(active, t.tile, t.tiles);
        for (int step = 0; now; step++) {
            int active1 = step + 1 < f.s.D ? f.s.active[step + 1] : 0;
            int fresh = p.states + (g.buffers == 2 ? (step & 1) * g.layers * layer : 0);
            int stale = p.states + (g.buffers == 2 ? (~step & 1) * g.layers * layer : 0);
            for (int l = 0; l < g.layers; l++) {
                float acc[4][T::GR][MT][2][4];
                Rows3<T> add; /* loaded before the products if registers allow, used after them */
                clear(acc);
                ask_rows(add, t, f, g, l, now);
                if (T::LARGE) add_rows(acc, add, t, f, g, l, biases + l * 4 * H, w0, values, first, now);
                if (step) t.template product<3, NH>(acc, stale + l * layer, pitch, g.H, g.H, now);
                if (l) {
                    t.wait();
                    t.template product<3, NX>(acc, fresh + (l - 1) * layer, pitch, g.H, g.H, now);
                }
                if (!T::LARGE) add_rows(acc, add, t, f, g, l, biases + l * 4 * H, w0, values, first, now);
                if (g.buffers == 1) t.meet(); /* all have read the data replaced next */
                end_layer(acc, state[l], t, f, g, l, fresh + l * layer, first, now);
                t.arrive();
            }
            float acc[1][T::GR][MT][2][4];
            Given mine = {};
            if (t.warp + W * t.lane < now) mine = given_of(f, first + t.rank(t.warp + W * t.lane));
            clear(acc);
            t.wait();
            t.template product<1, 0>(acc, fresh + (g.layers - 1) * layer, pitch, g.H, g.F, now);
            end_hidden(acc, t, f, g, p.hidden, first, now);
            t.meet();
            outputs_of(t, f, g, p.hidden, out);
            t.gather();
            values_of(t, f, mine, out, values, first, now);
            t.gather();
            first += active, active = active1, now = slots(active, t.tile, t.tiles);
        }
    }
    __syncwarp();
    sync_all(C); /* no block exits while others may still write to it */
}

/* ---- choice and launch ------------------------------------------------------------------------------------------- */

extern "C" {
Stream acf_loop_try = {};
}

static bool fit_ahead(Stream *g, int O) {
    for (g->buffers = 2; g->buffers > 0; g->buffers--)
        for (g->stages = 8; g->stages >= (g->buffers == 2 ? 4 : 2); g->stages--)
            if (ahead_plan(*g, O).bytes <= MAX_SHARED) return true;
    return false;
}

template <int C, int W> static cudaError_t ahead_with(const acf_loop *f, const Stream &g, cudaStream_t stream) {
    int bytes = ahead_plan(g, (int)f->O).bytes;
    if (g.MT == 1) return launch_stream(ahead_kernel<C, W, 1>, f, g, Crew<C, W, 1>::THREADS, bytes, stream);
    return launch_stream(ahead_kernel<C, W, 2>, f, g, Crew<C, W, 2>::THREADS, bytes, stream);
}

cudaError_t acf_loop_forward_narrow(const acf_loop *f, cudaStream_t stream) {
    Stream g = stream_of(f);
    cut_batch(&g, f);
    if (!fit_ahead(&g, (int)f->O)) return cudaErrorInvalidConfiguration;
    if (g.C == 4) return ahead_with<4, 4>(f, g, stream);
    if (g.C == 2) return ahead_with<2, 8>(f, g, stream);
    return ahead_with<1, 8>(f, g, stream);
}

bool acf_loop_forward_fits(const acf_loop *f) {
    Stream g = stream_of(f);
    g.MT = 2;
    return fit_ahead(&g, (int)f->O);
}
