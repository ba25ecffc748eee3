/* The recurrent loops backward, narrow form: see rnn_loop_kernels.h; formulas in docs/math.md, 5.
 *
 * Workload and tiling as in rnn_loop_forward.cu. The order is from the last step to the first, each from the value down
 * to the first layer:
 *
 *     dy -> dout, in every block;  dout · w2 -> dhidden, to all blocks;  dhidden · w1 -> gradient of the last state
 *     layer l:  gates -> gradients of [n r z b_n], in place and to all blocks
 *               · [wh] -> gradient for the step before,  · [wx] -> gradient for the layer below
 *
 * A thread has the same units of the same rows in every product and in the gates, so gradients between steps stay in
 * that thread, in float. Only gradients are exchanged between blocks. Nothing here sums over elements: the weights'
 * gradients are library products afterwards. */
#include "ops/rnn_loop_stream.cuh"

/* Shared memory: ring, gradients (buffers, rows, 4H), dhidden, dout, w0 (r, z, n), parts of dvalue (rows, warps of all
 * blocks), inputs of a step's values (outputs, then y and dy of the rows), barriers. */
struct BackPlan {
    int grads, dhidden, dout, w0, parts, values, bars, bytes;
};

__host__ __device__ static inline BackPlan back_plan(const Stream &g, int O) {
    BackPlan p;
    int rows = 16 * g.MT;
    p.grads = g.stages * STAGE;
    p.dhidden = p.grads + g.buffers * rows * pitch_of(4 * g.H);
    p.dout = p.dhidden + rows * pitch_of(g.F);
    p.w0 = p.dout + rows * pitch_of(g.O);
    p.parts = p.w0 + 3 * 16 * g.H * 4;
    p.values = p.parts + rows * g.C * g.W * 4;
    p.bars = p.values + rows * (O + 2) * 4;
    p.bytes = p.bars + 8 * (2 * g.stages + 1);
    return p;
}

/* The last step of a tile: active counts fall. */
__device__ __forceinline__ int last_step(const acf_loop &f, int tile) {
    int last = -1, D = (int)f.s.D;
    for (int t = threadIdx.x & 31; t < (D + 31) / 32 * 32; t += 32)
        last += __popc(__ballot_sync(WHOLE, t < D && f.s.active[t < D ? t : 0] > tile));
    return last;
}

template <int C>
__device__ __forceinline__ void feed_back(const acf_loop &f, const Stream &g, Ring r, int c, int last) {
    const unsigned char *image = (const unsigned char *)f.image;
    int H = g.H / C, F = g.F / C;
    for (int t = last; t >= 0; t--) {
        feed(r, image, g.back.w2, g.O, g.F, F * c, F);
        feed(r, image, g.back.w1, g.F, g.H, H * c, H);
        for (int l = g.layers - 1; l >= 0; l--) {
            if (t) feed(r, image, g.back.wh[l], 3 * g.H, g.H, H * c, H);
            if (l) feed(r, image, g.back.wx[l], 3 * g.H, g.H, H * c, H);
        }
    }
}

/* What a thread reads of a row and group: gates [n r z b_n] and the state before. */
struct Saved {
    Pack<bf16, 4> gate[4], old;
};

template <typename T>
__device__ __forceinline__ void ask(Saved (&e)[T::GR][T::MT][2], const T &t, const acf_loop &f, const Stream &g, int l,
                                    int64_t first, int64_t before, int now) {
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
                const bf16 *p = (const bf16 *)y.gates + (first + t.rank(row)) * 4 * H + unit;
#pragma unroll
                for (int k = 0; k < 4; k++) e[gr][m][s].gate[k] = load<bf16, 4>(p + k * H);
                e[gr][m][s].old = zeros<bf16, 4>();
                if (before >= 0) e[gr][m][s].old = load<bf16, 4>((const bf16 *)y.h + (before + t.rank(row)) * H + unit);
            }
}

/* Gates to gradients. dh: on entry the gradient from above; on return z·dh, the gradient of the state before that
 * bypasses the products. carry: the gradient from the next step, for rows that have one. The first layer writes its
 * parts of dvalue. */
template <typename T>
__device__ __forceinline__ void gates_back(float (&dh)[T::GR][T::MT][2][4], const float (&carry)[T::GR][T::MT][2][4],
                                           const Saved (&e)[T::GR][T::MT][2], const T &t, const acf_loop &f,
                                           const Stream &g, int l, int to, int parts, const float *w0, int64_t first,
                                           int now, int later) {
    int H = (int)f.s.H;
    const acf_loop_layer &y = f.layer[l];
#pragma unroll
    for (int m = 0; m < T::MT; m++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
            int row = t.row(m, s);
            float part = 0;
#pragma unroll
            for (int gr = 0; gr < T::GR; gr++) {
                int unit = t.unit(gr, g.H);
                if (row >= now || !t.has(gr, g.H)) continue;
                const Saved &q = e[gr][m][s];
                float dn[4], dr[4], dz[4], db[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float n = get(q.gate[0], i), r = get(q.gate[1], i), z = get(q.gate[2], i), b = get(q.gate[3], i);
                    float d = of(dh[gr][m], s, i) + (row < later ? carry[gr][m][s][i] : 0);
                    dn[i] = d * (1 - z) * (1 - n * n);
                    dz[i] = d * (get(q.old, i) - n) * z * (1 - z);
                    dr[i] = dn[i] * b * r * (1 - r);
                    db[i] = dn[i] * r;
                    of(dh[gr][m], s, i) = d * z;
                    if (l == 0) part += dr[i] * w0[unit + i] + dz[i] * w0[H + unit + i] + dn[i] * w0[2 * H + unit + i];
                }
                Pack<bf16, 4> out[4] = {pack<bf16, 4>(dn), pack<bf16, 4>(dr), pack<bf16, 4>(dz), pack<bf16, 4>(db)};
                int64_t p = first + t.rank(row);
                bf16 *o = (bf16 *)y.gates + p * 4 * H + unit;
                uint32_t at = t.base + to + row * pitch_of(4 * g.H) + unit * 2;
#pragma unroll
                for (int k = 0; k < 4; k++)
                    store(o + k * H, out[k]), store_to_all<bf16, 4>(at + k * H * 2, out[k], T::C);
                store((bf16 *)y.past + p * H + unit, q.old);
            }
            if (l) continue;
            part += __shfl_xor_sync(WHOLE, part, 1), part += __shfl_xor_sync(WHOLE, part, 2);
            Pack<float, 1> one = {{__float_as_uint(part)}};
            if ((t.lane & 3) == 0)
                store_to_all<float, 1>(t.base + parts + (row * T::C * T::W + t.c * T::W + t.warp) * 4, one, T::C);
        }
}

__device__ __forceinline__ void copy4(float *to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* Starts copying the inputs of a step's values; values_back waits for it. */
template <typename T>
__device__ __forceinline__ void ask_values(const T &t, const acf_loop &f, float *to, int64_t first, int now) {
    int O = (int)f.O;
    for (int row = t.warp; row < now; row += T::W) { /* a warp copies the rows that it will process */
        int64_t p = first + t.rank(row);
        for (int k = t.lane; k < O + 2; k += 32)
            copy4(to + row * (O + 2) + k, k < O ? f.out + p * O + k : k == O ? f.y + p : f.dy + p);
    }
}

/* Gradients of a step's outputs, one warp per row. */
template <typename T>
__device__ __forceinline__ void values_back(const T &t, const acf_loop &f, const Stream &g, unsigned char *dout,
                                            const float *parts, const float *saved, int64_t first, int now, int later) {
    int O = (int)f.O;
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    for (int row = t.warp; row < now; row += T::W) {
        int64_t p = first + t.rank(row);
        const float *o = saved + row * (O + 2);
        float dy = o[O + 1] + sum_of_warp(row < later && t.lane < T::C * T::W ? parts[row * T::C * T::W + t.lane] : 0);
        bf16 *here = (bf16 *)(dout + row * pitch_of(g.O)), *there = (bf16 *)f.dout + p * O;
        dvalue_of(f, o, o[O], dy, f.dz && t.c == 0 ? f.dz + p : NULL, [&](int k, float d) {
            bf16 v = __float2bfloat16(d);
            here[k] = v;
            if (t.c == 0) there[k] = v;
        });
    }
}

template <typename T>
__device__ __forceinline__ void ask_hidden(Pack<bf16, 4> (&y)[T::GR][T::MT][2], const T &t, const acf_loop &f,
                                           const Stream &g, int64_t first, int now) {
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++)
#pragma unroll
        for (int m = 0; m < T::MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++)
                if (t.row(m, s) < now && t.has(gr, g.F))
                    y[gr][m][s] =
                        load<bf16, 4>((const bf16 *)f.hidden + (first + t.rank(t.row(m, s))) * f.F + t.unit(gr, g.F));
}

/* Through the activation; to memory and to all blocks. */
template <typename T>
__device__ __forceinline__ void hidden_back(float (&acc)[1][T::GR][T::MT][2][4],
                                            const Pack<bf16, 4> (&y)[T::GR][T::MT][2], const T &t, const acf_loop &f,
                                            const Stream &g, int to, int64_t first, int now) {
#pragma unroll
    for (int gr = 0; gr < T::GR; gr++)
#pragma unroll
        for (int m = 0; m < T::MT; m++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                int row = t.row(m, s), unit = t.unit(gr, g.F);
                if (row >= now || !t.has(gr, g.F)) continue;
                int64_t at = (first + t.rank(row)) * f.F + unit;
                float d[4];
#pragma unroll
                for (int i = 0; i < 4; i++) d[i] = of(acc[0][gr][m], s, i) * slope_of(f.act, get(y[gr][m][s], i));
                Pack<bf16, 4> v = pack<bf16, 4>(d);
                store((bf16 *)f.dhidden + at, v);
                store_to_all<bf16, 4>(t.base + to + row * pitch_of(g.F) + unit * 2, v, T::C);
            }
}

__device__ static void clear_tails_back(const acf_loop &f) {
    int64_t from = f.s.first[f.s.D], to = f.s.T;
    clear_any((bf16 *)f.dout, f.O, from, to);
    clear_tail(f.dhidden, f.F * 2, from, to);
    for (int l = 0; l < f.layers; l++)
        clear_tail(f.layer[l].gates, f.s.H * 8, from, to), clear_tail(f.layer[l].past, f.s.H * 2, from, to);
}

template <int C, int W, int MT>
__global__ void __launch_bounds__(Crew<C, W, MT>::THREADS, 1)
    back_kernel(const __grid_constant__ acf_loop f, const __grid_constant__ Stream g) {
    extern __shared__ __align__(128) unsigned char shared[];
    typedef Crew<C, W, MT> T;
    BackPlan p = back_plan(g, (int)f.O);
    T t(shared, p.bars, g);
    int H = (int)f.s.H, last = last_step(f, t.tile);
    float *w0 = (float *)(shared + p.w0);
    for (int i = threadIdx.x; i < 3 * H; i += T::THREADS) w0[i] = f.layer[0].wx[i * (1 + f.E)];
    for (int i = threadIdx.x; i < T::ROWS * pitch_of(g.O) / 4; i += T::THREADS)
        ((uint32_t *)(shared + p.dout))[i] = 0; /* stays 0 beyond O */
    clear_tails_back(f);
    __syncthreads();
    sync_all(C);

    if (!t.works()) {
        t.give_registers();
        if (t.feeds()) feed_back<C>(f, g, t.ring, t.c, last);
    } else {
        t.take_registers();
        float carry[NARROW_LAYERS][T::GR][MT][2][4];
        float *values = (float *)(shared + p.values);
        int turn = 0, later = 0, now = last < 0 ? 0 : slots(f.s.active[last], t.tile, t.tiles);
        int64_t first = last < 0 ? 0 : f.s.first[last], before = last > 0 ? f.s.first[last - 1] : -1;
        ask_values(t, f, values, first, now);
        for (int step = last; step >= 0; step--) {
            int then = step ? f.s.active[step - 1] : 0;
            int64_t before2 = step > 1 ? f.s.first[step - 2] : -1;
            float acc[1][T::GR][MT][2][4];
            Saved e[T::GR][MT][2];
            Pack<bf16, 4> hidden[T::GR][MT][2];
            ask_hidden(hidden, t, f, g, first, now);
            values_back(t, f, g, shared + p.dout, (const float *)(shared + p.parts), values, first, now, later);
            t.gather();
            clear(acc);
            t.template product<1, 0>(acc, p.dout, pitch_of(g.O), g.O, g.F, now);
            then = slots(then, t.tile, t.tiles);
            if (step) ask_values(t, f, values, before, then);
            hidden_back(acc, hidden, t, f, g, p.dhidden, first, now);
            t.arrive();
            ask(e, t, f, g, g.layers - 1, first, before, now);
            clear(acc);
            t.wait();
            t.template product<1, 0>(acc, p.dhidden, pitch_of(g.F), g.F, g.H, now);
            for (int l = g.layers - 1; l >= 0; l--) {
                int grads = p.grads + turn * T::ROWS * pitch_of(4 * g.H);
                if (g.buffers == 1)
                    t.meet(); /* all have read the data replaced next */
                else
                    turn ^= 1;
                gates_back(acc[0], carry[l], e, t, f, g, l, grads, p.parts, w0, first, now, later);
                t.arrive();
                if (l) ask(e, t, f, g, l - 1, first, before, now);
                t.wait();
                if (step) { /* acc begins with z·dh */
                    t.template product<1, 0>(acc, grads + H * 2, pitch_of(4 * g.H), 3 * g.H, g.H, now);
#pragma unroll
                    for (int i = 0; i < T::GR * MT * 8; i++) { /* from the accumulators' order to (s, i) */
                        int s = i / 4 % 2, j = i % 4;
                        carry[l][i / 8 / MT][i / 8 % MT][s][j] = of(acc[0][i / 8 / MT][i / 8 % MT], s, j);
                    }
                }
                if (l == 0) break;
                clear(acc);
                t.template product<1, 0>(acc, grads, pitch_of(4 * g.H), 3 * g.H, g.H, now);
            }
            later = now, now = then, first = before, before = before2;
        }
    }
    __syncwarp();
    sync_all(C); /* no block exits while others may still write to it */
}

/* ---- choice and launch ------------------------------------------------------------------------------------------- */

static bool fit_back(Stream *g, int O) {
    for (g->buffers = 2; g->buffers > 0; g->buffers--)
        for (g->stages = 8; g->stages >= (g->buffers == 2 ? 4 : 2); g->stages--)
            if (back_plan(*g, O).bytes <= MAX_SHARED) return true;
    return false;
}

template <int C, int W> static cudaError_t back_with(const acf_loop *f, const Stream &g, cudaStream_t stream) {
    int bytes = back_plan(g, (int)f->O).bytes;
    if (g.MT == 1) return launch_stream(back_kernel<C, W, 1>, f, g, Crew<C, W, 1>::THREADS, bytes, stream);
    return launch_stream(back_kernel<C, W, 2>, f, g, Crew<C, W, 2>::THREADS, bytes, stream);
}

cudaError_t acf_loop_backward_narrow(const acf_loop *f, cudaStream_t stream) {
    Stream g = stream_of(f);
    cut_batch(&g, f);
    if (!fit_back(&g, (int)f->O)) return cudaErrorInvalidConfiguration;
    if (g.C == 4) return back_with<4, 4>(f, g, stream);
    if (g.C == 2) return back_with<2, 8>(f, g, stream);
    return back_with<1, 8>(f, g, stream);
}

bool acf_loop_backward_fits(const acf_loop *f) {
    Stream g = stream_of(f);
    g.C = 2, g.W = 8, g.MT = 2;
    return fit_back(&g, (int)f->O);
}
