/* Device functions of the recurrent loops: the value of a step from the head's output, and its derivative; activations;
 * Philox. Both forms of the loops use them. Included by .cu files only. */
#ifndef ACF_OPS_RNN_LOOP_PIECES_CUH
#define ACF_OPS_RNN_LOOP_PIECES_CUH

#include "ops/gru_pieces.cuh"
#include "ops/rnn_loop_kernels.h"

#define START (-1.0f) /* ACF_RNN_START */
#define WHOLE 0xffffffffu

/* ---- activations: numbers of acf_act_kind ------------------------------------------------------------------------ */

enum { IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID, SOFTPLUS, ELU };

__device__ __forceinline__ float act_of(int act, float x) {
    switch (act) {
    case RELU: return x < 0 ? 0 : x;
    case LEAKY_RELU: return x < 0 ? 0.01f * x : x;
    case TANH: return tanhf(x);
    case SIGMOID: return 1 / (1 + expf(-x));
    case SOFTPLUS: return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    case ELU: return x < 0 ? expm1f(x) : x;
    default: return x;
    }
}

/* From the output. */
__device__ __forceinline__ float slope_of(int act, float y) {
    switch (act) {
    case RELU: return y > 0 ? 1 : 0;
    case LEAKY_RELU: return y < 0 ? 0.01f : 1;
    case TANH: return 1 - y * y;
    case SIGMOID: return y * (1 - y);
    case SOFTPLUS: return -expm1f(-y);
    case ELU: return y < 0 ? y + 1 : 1;
    default: return 1;
    }
}

/* ---- random numbers: base/rng.h ---------------------------------------------------------------------------------- */

__device__ __forceinline__ uint4 philox(uint64_t seed, uint64_t row, uint32_t stream, uint32_t column, uint32_t draw) {
    uint32_t a = (uint32_t)row, b = (uint32_t)(row >> 32 & 0xffff) << 16 | (stream & 0xffff), c = column, d = draw;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t x = (uint64_t)a * 0xD2511F53u, y = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(y >> 32) ^ b ^ k0, b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ k1, d = (uint32_t)x;
    }
    return make_uint4(a, b, c, d);
}

__device__ __forceinline__ double unit_of(uint32_t lo, uint32_t hi) {
    return ((double)(((uint64_t)hi << 32 | lo) >> 12) + 0.5) * 0x1p-52;
}

/* Inputs of an element's value besides the outputs: for a sample its random numbers (of the component, of the value),
 * for an inverse z. */
struct Given {
    double uniform, normal;
    float z;
};

/* Random numbers of element p, at the counter that acf_draw_counter gives. */
__device__ __forceinline__ Given given_of(const acf_loop &f, int64_t p) {
    Given n = {};
    if (f.kind == ACF_LOOP_INVERSE) n.z = f.z[p];
    if (f.kind != ACF_LOOP_SAMPLE) return n;
    int row = f.row_of[p];
    uint64_t id = f.row_id ? f.row_id[row] : (uint64_t)row;
    uint32_t column = (uint32_t)f.col_of[p];
    const uint32_t draw = f.now ? *f.now : f.draw;
    uint4 u = philox(f.seed, id, 5, column, draw), v = philox(f.seed, id, 6, column, draw); /* COMPONENT, NORMAL */
    n.uniform = unit_of(u.x, u.y);
    n.normal = sqrt(-2.0 * log(unit_of(v.x, v.y))) * cospi(2.0 * unit_of(v.z, v.w));
    return n;
}

/* ---- a step's value; one warp per row ---------------------------------------------------------------------------- */

__device__ __forceinline__ float sum_of_warp(float v) {
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(WHOLE, v, d);
    return v;
}

__device__ __forceinline__ float top_of_warp(const float *x, int n) {
    float v = -INFINITY;
    for (int k = threadIdx.x & 31; k < n; k += 32) v = fmaxf(v, x[k]);
    for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(WHOLE, v, d));
    return v;
}

/* Σ w μ of o (3K); *norm = 1 / Σ e^(logit - top), for the derivative. */
__device__ __forceinline__ float mean_of(const float *o, int K, float *top, float *norm) {
    float sum = 0, mean = 0;
    *top = top_of_warp(o, K);
    for (int k = threadIdx.x & 31; k < K; k += 32) {
        float w = expf(o[k] - *top);
        sum += w, mean += w * o[K + k];
    }
    *norm = 1 / sum_of_warp(sum);
    mean = sum_of_warp(mean) * *norm;
    return mean + 0 * mean; /* an infinite mean becomes NaN */
}

__device__ __forceinline__ double rounded(double v) {
    return v > 3.402823466e38 ? 3.402823466e38 : v < -3.402823466e38 ? -3.402823466e38 : v;
}

/* A draw from o (3K): acf_rng_categorical and acf_rng_normal. In double, so that a component equals the CPU's for all
 * parameters. */
__device__ __forceinline__ float draw_of(const float *o, int K, float lo, float hi, double uniform, double normal) {
    int lane = threadIdx.x & 31;
    float top = top_of_warp(o, K);
    double sum = 0, before = 0;
    for (int k = lane; k < K; k += 32) sum += exp((double)o[k] - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(WHOLE, sum, d);
    if (!(sum > 0) || isinf(sum)) return __int_as_float(0x7fc00000);
    double left = uniform * sum;
    int last = -1;
    for (int k0 = 0; k0 < K; k0 += 32) {
        double w = k0 + lane < K ? exp((double)o[k0 + lane] - top) : 0, upto = w;
        for (int d = 1; d < 32; d *= 2) {
            double other = __shfl_up_sync(WHOLE, upto, d);
            if (lane >= d) upto += other;
        }
        uint32_t can = __ballot_sync(WHOLE, w > 0), hit = __ballot_sync(WHOLE, w > 0 && before + upto > left);
        if (hit) {
            last = k0 + __ffs(hit) - 1;
            break;
        }
        if (can) last = k0 + 31 - __clz(can);
        before += __shfl_sync(WHOLE, upto, 31);
    }
    double mean = o[K + last], s = o[2 * K + last];
    s = s < lo ? lo : s, s = s > hi ? hi : s;
    return (float)rounded(mean + 0.0 * mean + exp(s) * normal);
}

/* The value of an element from o (O numbers), in all lanes. */
__device__ __forceinline__ float value_of(const acf_loop &f, const float *o, const Given &g) {
    int K = (int)f.O / 3;
    float top, norm;
    if (f.kind == ACF_LOOP_MEAN) return mean_of(o, K, &top, &norm);
    if (f.kind == ACF_LOOP_SAMPLE) return draw_of(o, K, f.lo, f.hi, g.uniform, g.normal);
    float s = f.O == 2 ? f.bound * tanhf(o[0] / f.bound) : 0;
    return (g.z - o[f.O - 1]) * expf(-s);
}

/* Calls give(k, d) with the gradient d of output k, for an element whose value y has the gradient dy; also for d = 0.
 * dz: added to, or NULL. */
template <typename Give>
__device__ __forceinline__ void dvalue_of(const acf_loop &f, const float *o, float y, float dy, float *dz, Give give) {
    int lane = threadIdx.x & 31;
    if (f.kind == ACF_LOOP_MEAN) {
        int K = (int)f.O / 3;
        float top, norm, mean = mean_of(o, K, &top, &norm);
        for (int k = lane; k < K; k += 32) {
            float w = expf(o[k] - top) * norm * dy;
            give(k, w * (o[K + k] - mean)), give(K + k, w), give(2 * K + k, 0.0f);
        }
        return;
    }
    float th = f.O == 2 ? tanhf(o[0] / f.bound) : 0, shrunk = dy * expf(-f.bound * th);
    if (lane) return;
    if (dz) *dz += shrunk;
    if (f.O == 2) give(0, -dy * y * (1 - th * th));
    give((int)f.O - 1, -shrunk);
}

/* Sets elements from..to of p (any width) to zero; all threads of the grid take part. */
template <typename G> __device__ void clear_any(G *p, int64_t width, int64_t from, int64_t to) {
    if (!p) return;
    for (int64_t i = from * width + blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < to * width;
         i += (int64_t)gridDim.x * blockDim.x)
        p[i] = G(0.0f);
}

#endif
