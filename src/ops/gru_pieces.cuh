/* Device pieces that the kernels of the GRU share: packed numbers, gate functions, matrix fragments, clusters, rows
 * in shared memory. Included only by .cu files. */
#ifndef ACF_OPS_GRU_PIECES_CUH
#define ACF_OPS_GRU_PIECES_CUH

#include "ops/gru_kernels.h"
#include "ops/mma.cuh"

#include <cuda_bf16.h>

#define MAX_SHARED 232448 /* bytes a block may have on sm_90 */
#define R 0               /* gates in the order of the weights */
#define Z 1
#define NEW 2

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

struct Tf32 { /* what a tf32 product multiplies: a float, rounded */
    float v;
};
template <typename G> constexpr bool is_tf32 = false;
template <> constexpr bool is_tf32<Tf32> = true;

/* V neighbouring numbers of type G in their memory layout; V·sizeof(G) is 4, 8, 16 or 32. */
template <typename G, int V> struct Pack { uint32_t w[V * sizeof(G) / 4]; };

template <typename G, int V> __device__ __forceinline__ Pack<G, V> load(const G *p) {
    Pack<G, V> r;
    if constexpr (sizeof r == 4) r.w[0] = *(const uint32_t *)p;
    if constexpr (sizeof r == 8) {
        uint2 q = *(const uint2 *)p;
        r.w[0] = q.x, r.w[1] = q.y;
    }
    if constexpr (sizeof r == 16) {
        uint4 q = *(const uint4 *)p;
        r.w[0] = q.x, r.w[1] = q.y, r.w[2] = q.z, r.w[3] = q.w;
    }
    if constexpr (sizeof r == 32) {
        uint4 q = *(const uint4 *)p, s = *(const uint4 *)(p + 4);
        r.w[0] = q.x, r.w[1] = q.y, r.w[2] = q.z, r.w[3] = q.w, r.w[4] = s.x, r.w[5] = s.y, r.w[6] = s.z, r.w[7] = s.w;
    }
    return r;
}

template <typename G, int V> __device__ __forceinline__ void store(G *p, const Pack<G, V> &r) {
    if constexpr (sizeof r == 4) *(uint32_t *)p = r.w[0];
    if constexpr (sizeof r == 8) *(uint2 *)p = make_uint2(r.w[0], r.w[1]);
    if constexpr (sizeof r >= 16) *(uint4 *)p = make_uint4(r.w[0], r.w[1], r.w[2], r.w[3]);
    if constexpr (sizeof r == 32) *(uint4 *)(p + 4) = make_uint4(r.w[4], r.w[5], r.w[6], r.w[7]);
}

template <typename G, int V> __device__ __forceinline__ float get(const Pack<G, V> &r, int i) {
    if constexpr (sizeof(G) == 4)
        return __uint_as_float(r.w[i]);
    else
        return __uint_as_float(i & 1 ? r.w[i / 2] & 0xffff0000u : r.w[i / 2] << 16);
}

template <typename G, int V> __device__ __forceinline__ Pack<G, V> zeros() {
    Pack<G, V> r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof r / 4); i++) r.w[i] = 0;
    return r;
}

template <typename G, int V> __device__ __forceinline__ Pack<G, V> pack(const float (&v)[V]) {
    Pack<G, V> r;
    if constexpr (sizeof(G) == 2) {
#pragma unroll
        for (int i = 0; i < V / 2; i++) r.w[i] = two_bf16(v[2 * i], v[2 * i + 1]);
    } else if constexpr (is_tf32<G>) {
#pragma unroll
        for (int i = 0; i < V; i++) r.w[i] = as_tf32(v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++) r.w[i] = __float_as_uint(v[i]);
    }
    return r;
}

__device__ __forceinline__ float sigmoid(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }
__device__ __forceinline__ float tanh_of(float v) { return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * v)); }

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void read4(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ __forceinline__ void read2(uint32_t (&r)[2], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
}

/* d (16,8) += a (16, 32 bytes)·bᵀ, b (8, 32 bytes) */
template <typename E>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (sizeof(E) == 2)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- clusters; a single block uses none of it, and runs on older cards too ------------------------------------- */

__device__ __forceinline__ int cluster_rank() {
#if __CUDA_ARCH__ >= 900
    uint32_t r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return (int)r;
#else
    return 0;
#endif
}

__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void sync_all(int C) {
    if (C == 1) {
        __syncthreads();
        return;
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();
}

/* Writes r to the address `at` in every block's shared memory. */
template <typename E, int V> __device__ __forceinline__ void store_to_all(uint32_t at, const Pack<E, V> &r, int C) {
    for (int c = 0; c < C; c++) {
        uint32_t to = at;
#if __CUDA_ARCH__ >= 900
        if (C > 1) asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at), "r"(c));
#define ACF_STORE "st.shared::cluster"
#else
#define ACF_STORE "st.shared"
#endif
        if constexpr (sizeof r == 4) asm volatile(ACF_STORE ".b32 [%0], %1;" ::"r"(to), "r"(r.w[0]) : "memory");
        if constexpr (sizeof r == 8)
            asm volatile(ACF_STORE ".v2.b32 [%0], {%1,%2};" ::"r"(to), "r"(r.w[0]), "r"(r.w[1]) : "memory");
        if constexpr (sizeof r == 16)
            asm volatile(ACF_STORE ".v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(r.w[0]), "r"(r.w[1]), "r"(r.w[2]),
                         "r"(r.w[3])
                         : "memory");
    }
}

/* ---- layout of shared memory ----------------------------------------------------------------------------------- */

/* Rows of K numbers in chunks of 16 bytes. The same chunk of eight neighbouring rows must lie in different banks.
 * Either the row is a multiple of 128 bytes and chunks are permuted by the row number, or it is an odd number of
 * chunks long. */
struct Rows {
    int pitch; /* bytes */
    int swap;  /* 7 or 0 */
};

__host__ __device__ static inline Rows rows_of(int K, int size) {
    Rows r;
    r.swap = K * size % 128 ? 0 : 7;
    r.pitch = K * size + (r.swap ? 0 : 16);
    return r;
}

/* The row of unit u among a block's weights: threads of a quad get 2·UT neighbouring units each. */
template <int UT> __host__ __device__ static inline int unit_place(int u) {
    int v = u % (8 * UT), quad = v / (2 * UT), j = v % (2 * UT) / 2;
    return u - v + j * 8 + quad * 2 + v % 2;
}

/* Number of slots of a tile that are among the first n ranks. */
__device__ __forceinline__ int slots(int n, int tile, int tiles) { return n > tile ? (n - tile - 1) / tiles + 1 : 0; }

/* Sets rows T_true..T of a tensor of `width` bytes a row, a multiple of 16, to zeros; all blocks of the grid take
 * part. */
__device__ static inline void clear_tail(void *p, int64_t width, int64_t from, int64_t to) {
    if (!p) return;
    int64_t begin = from * width / 16, end = to * width / 16;
    for (int64_t i = begin + blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < end;
         i += (int64_t)gridDim.x * blockDim.x)
        ((uint4 *)p)[i] = make_uint4(0, 0, 0, 0);
}

#endif
