/* The recurrent loops in float, for any number of layers, units, hidden units and outputs: see rnn_loop_kernels.h;
 * formulas in docs/math.md, 5.
 *
 * Not for speed: for sizes without a narrow form, GPUs before sm_90, and as the reference of the narrow form. Still one
 * launch: a block takes 8 rows through all steps. Weights come from the L2 cache and are used 8 times; data between
 * phases is in global memory. */
#include "ops/rnn_loop_pieces.cuh"

#define ROWS 8
#define THREADS 256

/* Indices of a block's rows in a tensor: packed index or rank. */
struct Places {
    int64_t at[ROWS];
    int n;
};

__device__ static Places places(int64_t first, int n, int tile, int tiles) {
    Places p;
    p.n = n;
    for (int r = 0; r < ROWS; r++) p.at[r] = first + tile + (int64_t)tiles * r;
    return p;
}

/* put(r, j, Σ_k in_r[k]·w[j·ld + k]), j < J: one warp per output. */
template <typename Put>
__device__ static void rows_times(const float *in, int64_t stride, const Places &p, const float *w, int64_t ld, int J,
                                  int K, Put put) {
    int lane = threadIdx.x & 31;
    for (int j = threadIdx.x / 32; j < J; j += THREADS / 32) {
        float sum[ROWS] = {};
        for (int k = lane; k < K; k += 32) {
            float v = w[j * ld + k];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < p.n) sum[r] += in[p.at[r] * stride + k] * v;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float v = sum_of_warp(sum[r]);
            if (lane == 0 && r < p.n) put(r, j, v);
        }
    }
}

/* put(r, j, Σ_k in_r[k]·w[k·ld + j]), j < J: one thread per output. */
template <typename Put>
__device__ static void rows_through(const float *in, int64_t stride, const Places &p, const float *w, int64_t ld, int J,
                                    int K, Put put) {
    for (int j = threadIdx.x; j < J; j += THREADS) {
        float sum[ROWS] = {};
        for (int k = 0; k < K; k++) {
            float v = w[k * ld + j];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < p.n) sum[r] += in[p.at[r] * stride + k] * v;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r < p.n) put(r, j, sum[r]);
    }
}

/* Scratch between the phases of a step, by rank. */
struct Work {
    float *state; /* (layers,N,H); of a backward the gradient for the step before */
    float *sums;  /* (N,4H) r, z, the input's and the state's side of n; of a backward (N,H), the gradient from above */
    float *hidden, *out; /* (N,F), (N,O) */
    float *value;        /* (N) the value before, or its gradient */
};

__device__ static Work work_of(const acf_loop &f) {
    int64_t N = f.s.N, H = f.s.H;
    Work w;
    w.state = f.scratch, w.sums = w.state + f.layers * N * H, w.hidden = w.sums + 4 * N * H, w.out = w.hidden + N * f.F,
    w.value = w.out + N * f.O;
    return w;
}

__device__ static void layer_plain(const acf_loop &f, const Work &w, int l, const Places &e, const Places &k,
                                   bool start) {
    int H = (int)f.s.H;
    const acf_loop_layer &y = f.layer[l];
    float *state = w.state + l * f.s.N * H;
    const float *below = state - f.s.N * H;
    if (!start)
        rows_times(state, H, k, y.wh, H, 3 * H, H,
                   [&](int r, int j, float v) { w.sums[k.at[r] * 4 * H + (j < 2 * H ? j : j + H)] = v; });
    __syncthreads();
    for (int i = threadIdx.x; i < k.n * H; i += THREADS) { /* biases, conditioning, and in the first layer the inputs */
        int r = i / H, u = i % H;
        float *s = w.sums + k.at[r] * 4 * H + u, value = START;
        if (l == 0 && !start) value = w.value[k.at[r]];
        for (int q = 0; q < 3; q++) {
            float a = y.cond ? y.cond[((f.s.row ? f.s.row[k.at[r]] : k.at[r]) * 3 + q) * H + u]
                      : y.bx ? y.bx[q * H + u]
                             : 0;
            if (l == 0) a += value * y.wx[(q * H + u) * (1 + f.E)];
            if (l == 0 && f.input) a += f.input[(e.at[r] * 3 + q) * H + u];
            float b = y.bh[q * H + u] + (start ? 0 : s[(q < 2 ? q : 3) * H]);
            if (q < 2)
                s[q * H] = a + b;
            else
                s[2 * H] = a, s[3 * H] = b;
        }
    }
    __syncthreads();
    if (l) {
        rows_times(below, H, k, y.wx, H, 3 * H, H, [&](int r, int j, float v) { w.sums[k.at[r] * 4 * H + j] += v; });
        __syncthreads();
    }
    for (int i = threadIdx.x; i < k.n * H; i += THREADS) {
        int r = i / H, u = i % H;
        const float *s = w.sums + k.at[r] * 4 * H + u;
        float *h = state + k.at[r] * H + u, old = start ? 0 : *h;
        float gr = 1 / (1 + expf(-s[0])), gz = 1 / (1 + expf(-s[H])), gn = tanhf(s[2 * H] + gr * s[3 * H]);
        *h = gn + gz * (old - gn);
        if (y.h) ((float *)y.h)[e.at[r] * H + u] = *h;
        float *g = (float *)y.gates + e.at[r] * 4 * H + u;
        if (y.gates) g[0] = gn, g[H] = gr, g[2 * H] = gz, g[3 * H] = s[3 * H];
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) plain_ahead(const __grid_constant__ acf_loop f) {
    int H = (int)f.s.H, F = (int)f.F, O = (int)f.O, tile = blockIdx.x, tiles = gridDim.x, warp = threadIdx.x / 32,
        lane = threadIdx.x & 31;
    Work w = work_of(f);
    int64_t first = 0, from = f.s.first[f.s.D], to = f.s.T;
    clear_any(f.y, 1, from, to), clear_any(f.out, f.O, from, to), clear_any((float *)f.hidden, f.F, from, to);
    for (int l = 0; l < f.layers; l++)
        clear_any((float *)f.layer[l].gates, 4 * H, from, to), clear_any((float *)f.layer[l].h, H, from, to);
    for (int t = 0; t < f.s.D; t++) {
        int active = f.s.active[t], n = slots(active, tile, tiles);
        if (!n) break;
        Places e = places(first, n, tile, tiles), k = places(0, n, tile, tiles);
        for (int l = 0; l < f.layers; l++) layer_plain(f, w, l, e, k, t == 0);
        rows_times(w.state + (f.layers - 1) * f.s.N * H, H, k, f.w1, H, F, H, [&](int r, int j, float v) {
            v = act_of(f.act, v + (f.b1 ? f.b1[j] : 0));
            w.hidden[k.at[r] * F + j] = v;
            if (f.hidden) ((float *)f.hidden)[e.at[r] * F + j] = v;
        });
        __syncthreads();
        rows_times(w.hidden, F, k, f.w2, F, O, F, [&](int r, int j, float v) {
            v += f.b2 ? f.b2[j] : 0;
            w.out[k.at[r] * O + j] = v;
            if (f.out) f.out[e.at[r] * O + j] = v;
        });
        __syncthreads();
        if (warp < n) {
            float v = value_of(f, w.out + k.at[warp] * O, given_of(f, e.at[warp]));
            if (lane == 0) f.y[e.at[warp]] = v, w.value[k.at[warp]] = v;
        }
        __syncthreads();
        first += active;
    }
}

/* Gates of a step to gradients. w.sums: gradient from above. w.state: on entry the gradient from the next step, on
 * return z·dh. w.value: gradient of the value before. */
__device__ static void gates_plain_back(const acf_loop &f, const Work &w, int l, const Places &e, const Places &k,
                                        int t, int later) {
    int H = (int)f.s.H, lane = threadIdx.x & 31;
    const acf_loop_layer &y = f.layer[l];
    float *carry = w.state + l * f.s.N * H;
    int64_t before = t ? f.s.first[t - 1] : 0, first = f.s.first[t];
    for (int r = threadIdx.x / 32; r < k.n; r += THREADS / 32) {
        float sum = 0;
        for (int u = lane; u < H; u += 32) {
            float *q = (float *)y.gates + e.at[r] * 4 * H + u, n = q[0], gr = q[H], z = q[2 * H], b = q[3 * H];
            float old = t ? ((const float *)y.h)[(e.at[r] - first + before) * H + u] : 0, *c = carry + k.at[r] * H + u;
            float d = w.sums[k.at[r] * H + u] + (r < later ? *c : 0), dn = d * (1 - z) * (1 - n * n),
                  dr = dn * b * gr * (1 - gr);
            float dz = d * (old - n) * z * (1 - z);
            q[0] = dn, q[H] = dr, q[2 * H] = dz, q[3 * H] = dn * gr;
            *c = d * z;
            ((float *)y.past)[e.at[r] * H + u] = old;
            const float *w0 = y.wx + (int64_t)u * (1 + f.E);
            if (l == 0) sum += dr * w0[0] + dz * w0[H * (1 + f.E)] + dn * w0[2 * H * (1 + f.E)];
        }
        sum = sum_of_warp(sum);
        if (l == 0 && lane == 0) w.value[k.at[r]] = sum;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) plain_back(const __grid_constant__ acf_loop f) {
    int H = (int)f.s.H, F = (int)f.F, O = (int)f.O, tile = blockIdx.x, tiles = gridDim.x, warp = threadIdx.x / 32;
    Work w = work_of(f);
    int64_t from = f.s.first[f.s.D], to = f.s.T;
    float *dout = (float *)f.dout, *dhidden = (float *)f.dhidden;
    clear_any(dout, O, from, to), clear_any(dhidden, F, from, to);
    for (int l = 0; l < f.layers; l++)
        clear_any((float *)f.layer[l].gates, 4 * H, from, to), clear_any((float *)f.layer[l].past, H, from, to);
    for (int t = (int)f.s.D - 1, later = 0; t >= 0; t--) {
        int n = slots(f.s.active[t], tile, tiles);
        if (!n) continue;
        Places e = places(f.s.first[t], n, tile, tiles), k = places(0, n, tile, tiles);
        if (warp < n) {
            int64_t p = e.at[warp];
            float dy = f.dy[p] + (warp < later ? w.value[k.at[warp]] : 0);
            dvalue_of(f, f.out + p * O, f.y[p], dy, f.dz ? f.dz + p : NULL,
                      [&](int j, float d) { dout[p * O + j] = d; });
        }
        __syncthreads();
        rows_through(dout, O, e, f.w2, F, F, O, [&](int r, int j, float v) {
            dhidden[e.at[r] * F + j] = v * slope_of(f.act, ((const float *)f.hidden)[e.at[r] * F + j]);
        });
        __syncthreads();
        rows_through(dhidden, F, e, f.w1, H, H, F, [&](int r, int j, float v) { w.sums[k.at[r] * H + j] = v; });
        __syncthreads();
        for (int l = f.layers - 1; l >= 0; l--) {
            const float *g = (const float *)f.layer[l].gates;
            gates_plain_back(f, w, l, e, k, t, later);
            float *carry = w.state + l * f.s.N * H;
            if (t)
                rows_through(g + H, 4 * H, e, f.layer[l].wh, H, H, 3 * H,
                             [&](int r, int j, float v) { carry[k.at[r] * H + j] += v; });
            if (l) {
                const float *wx = f.layer[l].wx; /* gradients are n, r, z; rows of wx r, z, n */
                rows_through(g + H, 4 * H, e, wx, H, H, 2 * H,
                             [&](int r, int j, float v) { w.sums[k.at[r] * H + j] = v; });
                rows_through(g, 4 * H, e, wx + 2 * H * H, H, H, H,
                             [&](int r, int j, float v) { w.sums[k.at[r] * H + j] += v; });
            }
            __syncthreads();
        }
        later = n;
    }
}

static unsigned blocks_of(const acf_loop *f) { return (unsigned)((f->s.N + ROWS - 1) / ROWS); }

cudaError_t acf_loop_forward_plain(const acf_loop *f, cudaStream_t stream) {
    plain_ahead<<<blocks_of(f), THREADS, 0, stream>>>(*f);
    return cudaGetLastError();
}

cudaError_t acf_loop_backward_plain(const acf_loop *f, cudaStream_t stream) {
    plain_back<<<blocks_of(f), THREADS, 0, stream>>>(*f);
    return cudaGetLastError();
}
