/* One row of pixels on the GPU: see pixel_row.h.
 *
 * Workload: N = 16 to 512 images, rows of 8 to 64 pixels, F = 32 to 128 channels, 2 to 8 blocks. A pixel takes some
 * hundred thousand multiplications per image, and pixels follow one another. So the latency of one pixel counts, and a
 * launch per layer would dominate it. A thread block handles up to 8 images and makes the whole row. Shared memory
 * holds the layers' inputs of the last three pixels. Weights come from the L2 cache (1.2 MB a pixel at F = 64, 4
 * blocks: about 10 us), four rows at a time per warp. Sums have a fixed order. */
#include "ops/act.cuh"
#include "ops/gaussian.cuh"

extern "C" {
#include "ops/pixel_row.h"
}

#define THREADS 512
#define WARPS (THREADS / 32)
#define ROWS 4       /* of weights that a warp loads together */
#define MAX_IMAGES 8 /* images per block */

/* The shared memory of a block of threads, with G images of each array. */
typedef struct block_memory {
    double *w;       /* (G,K) weights of a mixture */
    float *kept;     /* (2·blocks, 3, G, 2F): layer inputs of pixels c at c mod 3 */
    float *image;    /* (3, G, 2C+1) */
    float *h, *unit; /* (G,F): the stream, and its elu */
    float *y;        /* (G, A or 2F): a product */
    float *mixture;  /* (G,3K) */
    float *now;      /* (G,C): the pixel */
} block_memory;

static __device__ block_memory lay_out(double *shared, const acf_pixel_row_attrs &a, int G) {
    const int64_t F = a.F, wide = a.A > 2 * F ? a.A : 2 * F;
    block_memory d;
    d.kept = (float *)shared; /* first: its parts are multiples of 16 bytes where vectors are read */
    d.h = d.kept + 2 * a.blocks * 3 * 2 * F * G;
    d.unit = d.h + F * G;
    d.y = d.unit + F * G;
    d.mixture = d.y + wide * G;
    d.now = d.mixture + 3 * a.K * G;
    d.image = d.now + a.C * G;
    const int64_t floats = d.image + 3 * (2 * a.C + 1) * G - (float *)shared;
    d.w = shared + (floats + 1) / 2;
    return d;
}

static size_t block_bytes(const acf_pixel_row_attrs *a, int G) {
    return (size_t)(acf_pixel_row_numbers(a->F, a->C, a->A, a->K, a->blocks) * G + 16) * sizeof(float);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static __device__ inline float dot(float a, float b, float sum) { return fmaf(a, b, sum); }
static __device__ inline float dot(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* y (G,O) = w (O,parts,S) · x + b: part j of x is (G,S) at part (j + turn) mod 3 of seen. V is float, or float4 where S
 * is a multiple of 4. All warps of the block take part; the caller syncs. */
template <int G, typename V>
static __device__ void product(float *y, const float *__restrict__ w, const float *__restrict__ b, const float *seen,
                               int turn, int parts, int S, int O) {
    const int lane = threadIdx.x % 32, wide = sizeof(V) / sizeof(float);
    const int64_t K = (int64_t)parts * S;
    for (int o = threadIdx.x / 32 * ROWS; o < O; o += WARPS * ROWS) {
        float sum[ROWS][G];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int g = 0; g < G; g++) sum[r][g] = 0;
        for (int j = 0; j < parts; j++) {
            const float *x = seen + (j + turn) % 3 * G * S, *from = w + o * K + (int64_t)j * S;
            for (int k = lane * wide; k < S; k += 32 * wide) {
                V v[ROWS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) v[r] = __ldg((const V *)(from + (o + r < O ? r : 0) * K + k));
#pragma unroll
                for (int g = 0; g < G; g++) {
                    const V u = *(const V *)(x + g * S + k);
#pragma unroll
                    for (int r = 0; r < ROWS; r++) sum[r][g] = dot(v[r], u, sum[r][g]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int g = 0; g < G; g++) {
                const float all = acf_warp_sum(sum[r][g]);
                if (lane == 0 && o + r < O) y[g * O + o + r] = all + b[o + r];
            }
    }
}

/* ---- the mixture of one number ----------------------------------------------------------------------------------- */

/* A draw from mixture (3K), by one warp, as in mixture.cu: NaN where no component can be chosen. w (K) is scratch. */
static __device__ float draw_from(const float *mixture, double *w, const acf_pixel_row_attrs &a, int64_t cell) {
    const int lane = threadIdx.x % 32, K = (int)a.K;
    double top = -CUDART_INF, total = 0;
    for (int k = 0; k < K; k++) top = fmax(top, (double)mixture[k]);
    for (int k = lane; k < K; k += 32) total += w[k] = exp((double)mixture[k] - top);
    total = acf_warp_sum(total);
    __syncwarp();
    if (!(total > 0 && isfinite(total))) return CUDART_NAN_F;
    double left = acf_rng_uniform_cuda(acf_rng_counter_of(a.draw, ACF_STREAM_COMPONENT, cell)) * total, before = 0;
    int chosen = -1;
    for (int k = 0; k < K; k++) { /* the last component with a weight takes the rounding remainder */
        if (!(w[k] > 0)) continue;
        chosen = k, before += w[k];
        if (left < before) break;
    }
    if (chosen < 0) return CUDART_NAN_F;
    const double noise = acf_rng_normal_cuda(acf_rng_counter_of(a.draw, ACF_STREAM_NORMAL, cell));
    return acf_nearest(acf_seen(mixture[K + chosen]) + exp(acf_clamped(mixture[2 * K + chosen], a.lo, a.hi)) * noise);
}

static __device__ float mean_of(const float *mixture, const acf_pixel_row_attrs &a) {
    const int K = (int)a.K;
    double top = -CUDART_INF, weight = 0, sum = 0;
    for (int k = 0; k < K; k++) top = fmax(top, (double)mixture[k]);
    for (int k = threadIdx.x % 32; k < K; k += 32) {
        const double w = exp((double)mixture[k] - top);
        weight += w, sum += w * (double)mixture[K + k];
    }
    return acf_nearest(acf_seen(acf_warp_sum(sum) / acf_warp_sum(weight)));
}

/* Image g's pixel, channel by channel, by one warp: p (A) is the stream's output. */
static __device__ void make_pixel(const block_memory &d, const acf_pixel_row_attrs &a, const float *p, int G, int g,
                                  int64_t n, int64_t c) {
    const int lane = threadIdx.x % 32, K = (int)a.K, C = (int)a.C;
    const int64_t pixel = (n * a.H + a.row) * a.W + c;
    float *m = d.mixture + g * 3 * K, *now = d.now + g * C;
    const float *slope = p + C * 3 * K;
    for (int k = 0; k < C; k++) {
        for (int i = lane; i < 3 * K; i += 32) {
            float v = p[k * 3 * K + i];
            if (i >= K && i < 2 * K)
                for (int j = 0; j < k; j++) v += tanhf(slope[j * K + i - K]) * now[j];
            m[i] = v;
        }
        slope += k * K;
        __syncwarp();
        const bool made = a.u[pixel * C + k] > 0.5f;
        const float v = !made     ? a.given[pixel * C + k]
                        : a.draws ? draw_from(m, d.w + g * K, a, (c * a.N + n) * C + k)
                                  : mean_of(m, a);
        if (lane == 0) {
            now[k] = v;
            a.z[pixel * C + k] = a.image[pixel * (2 * C + 1) + k] = v;
        }
        __syncwarp();
    }
    /* the image as the next pixels see it: masks and ones are on the canvas already */
    for (int i = lane; i < 2 * C + 1; i += 32)
        d.image[((c % 3) * G + g) * (2 * C + 1) + i] = i < C ? now[i] : a.image[pixel * (2 * C + 1) + i];
}

/* ---- the row ----------------------------------------------------------------------------------------------------- */

/* Images [blockIdx.x G, + G). Those behind the last compute the last image again and write nothing. */
template <int G, typename V> static __global__ void __launch_bounds__(THREADS, 1) row_fwd(acf_pixel_row_attrs a) {
    extern __shared__ double shared[];
    const block_memory d = lay_out(shared, a, G);
    const int F = (int)a.F, S = 2 * F, wide = 2 * (int)a.C + 1, A = (int)a.A;
    const int64_t first = (int64_t)blockIdx.x * G;
    for (int i = threadIdx.x; i < 2 * a.blocks * 3 * S * G; i += THREADS) d.kept[i] = 0;
    for (int i = threadIdx.x; i < 3 * wide * G; i += THREADS) d.image[i] = 0;
    __syncthreads();
    for (int c = 0; c < (int)a.W; c++) {
        product<G, float>(d.y, a.left, a.left_bias, d.image, c, 3, wide, F);
        __syncthreads();
        for (int i = threadIdx.x; i < G * F; i += THREADS) {
            const int64_t n = min(first + i / F, a.N - 1);
            d.h[i] = d.y[i] + a.first[(n * a.W + c) * F + i % F];
        }
        for (int k = 0; k < a.blocks; k++) {
            float *in = d.kept + (int64_t)2 * k * 3 * G * S, *mid = in + 3 * G * S;
            for (int i = threadIdx.x; i < G * F; i += THREADS) { /* each thread reads only its own h */
                float *to = in + (c % 3 * G + i / F) * S + i % F;
                to[0] = acf_act_value(ACF_ELU, d.h[i]), to[F] = acf_act_value(ACF_ELU, -d.h[i]);
            }
            __syncthreads();
            product<G, V>(d.y, a.block[k].in, a.block[k].in_bias, in, c + 1, 3, S, F);
            __syncthreads();
            for (int i = threadIdx.x; i < G * F; i += THREADS) {
                const int64_t n = min(first + i / F, a.N - 1);
                const float v = d.y[i] + a.block[k].aux[(n * a.W + c) * F + i % F];
                float *to = mid + (c % 3 * G + i / F) * S + i % F;
                to[0] = acf_act_value(ACF_ELU, v), to[F] = acf_act_value(ACF_ELU, -v);
            }
            __syncthreads();
            product<G, V>(d.y, a.block[k].out, a.block[k].out_bias, mid, c + 1, 3, S, S);
            __syncthreads();
            for (int i = threadIdx.x; i < G * F; i += THREADS) {
                const int g = i / F, f = i % F;
                const float *cond = a.block[k].cond + (min(first + g, a.N - 1) * a.W + c) * S;
                d.h[i] += (d.y[g * S + f] + cond[f]) * acf_act_value(ACF_SIGMOID, d.y[g * S + F + f] + cond[F + f]);
            }
        }
        for (int i = threadIdx.x; i < G * F; i += THREADS) d.unit[i] = acf_act_value(ACF_ELU, d.h[i]);
        __syncthreads();
        product<G, V>(d.y, a.head, a.head_bias, d.unit, 0, 1, F, A);
        __syncthreads();
        const int g = threadIdx.x / 32;
        if (g < G && first + g < a.N) make_pixel(d, a, d.y + g * A, G, g, first + g, c);
        __syncthreads();
    }
}

/* Few images per block give low latency; more share the weights that are read. */
template <int G, typename V> static acf_status launch(acf_device *dev, const acf_pixel_row_attrs *a) {
    const size_t bytes = block_bytes(a, G);
    ACF_CUDA(cudaFuncSetAttribute(row_fwd<G, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    row_fwd<G, V><<<acf_blocks(a->N, G), THREADS, bytes, acf_cuda_stream(dev)>>>(*a);
    return ACF_LAUNCHED("pixel_row");
}

template <typename V> static acf_status run(acf_device *dev, const acf_pixel_row_attrs *a) {
    int G = 1;
    const int64_t capacity = ACF_ROW_ROOM / acf_pixel_row_numbers(a->F, a->C, a->A, a->K, a->blocks);
    while (G < MAX_IMAGES && 2 * G <= capacity && acf_ceil_div(a->N, G) > acf_cuda_processors(dev)) G *= 2;
    switch (G) {
    case 1: return launch<1, V>(dev, a);
    case 2: return launch<2, V>(dev, a);
    case 4: return launch<4, V>(dev, a);
    default: return launch<8, V>(dev, a);
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_pixel_row_attrs *a = (const acf_pixel_row_attrs *)n->attr;
    if (a->N == 0 || a->W == 0) return ACF_OK;
    if (!(acf_pixel_row_numbers(a->F, a->C, a->A, a->K, a->blocks) <= ACF_ROW_ROOM))
        return acf_fail(ACF_EDEVICE, "a row of %lld channels in %d blocks is too large for one launch", (long long)a->F,
                        a->blocks);
    return a->F % 4 == 0 ? run<float4>(t->dev, a) : run<float>(t->dev, a);
}

ACF_CUDA_OP(pixel_row, forward, NULL);
