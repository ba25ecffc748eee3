/* Device pieces of sm_90: barriers in shared memory that count arrivals and bytes, and stores and copies that signal
 * them. On older cards the functions are empty; their kernels never call them. Addresses are in the shared window;
 * "far" addresses belong to another block of the cluster. */
#ifndef ACF_OPS_HOPPER_CUH
#define ACF_OPS_HOPPER_CUH

#include "ops/mma.cuh"

#include <cuda_bf16.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#define ON90(...) __VA_ARGS__
#else
#define ON90(...)
#endif

__device__ __forceinline__ uint32_t far_address(uint32_t at, int block) {
    uint32_t r = at;
    ON90(asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at), "r"(block));)
    return r;
}

__device__ __forceinline__ void bar_init(uint32_t bar, int count) {
    ON90(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");)
}

__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes) {
    ON90(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");)
}

__device__ __forceinline__ void bar_arrive(uint32_t bar) {
    ON90(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");)
}

__device__ __forceinline__ void bar_arrive_far(uint32_t far) {
    ON90(asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");)
}

__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
    ON90(asm volatile("{\n\t.reg .pred p;\n"
                      "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@p bra done;\n\tbra again;\n"
                      "done:\n\t}" ::"r"(bar),
                      "r"(parity)
                      : "memory");)
}

/* Stores 8 or 16 bytes into a block's shared memory, counted on a barrier there. */
__device__ __forceinline__ void send8(uint32_t far, uint32_t a, uint32_t b, uint32_t bar) {
    ON90(asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1,%2}, [%3];" ::"r"(far),
                      "r"(a), "r"(b), "r"(bar)
                      : "memory");)
}
__device__ __forceinline__ void send16(uint32_t far, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t bar) {
    ON90(asm volatile(
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(far),
             "r"(a), "r"(b), "r"(c), "r"(d), "r"(bar)
             : "memory");)
}

/* Copies n bytes, a multiple of 16, counted on bar. */
__device__ __forceinline__ void bulk_copy(uint32_t to, const void *from, int n, uint32_t bar) {
    ON90(asm volatile(
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
             "l"(from), "r"(n), "r"(bar)
             : "memory");)
}

/* Makes barriers that were just initialised visible to other blocks and to the copy engine. */
__device__ __forceinline__ void fence_init() {
    ON90(asm volatile("fence.mbarrier_init.release.cluster;" ::
                          : "memory");
         asm volatile("fence.proxy.async.shared::cta;" ::
                          : "memory");)
}

/* Arrives at a far barrier. Its waiters then see what this thread (and, after __syncwarp, its warp) wrote anywhere
 * in the cluster. */
__device__ __forceinline__ void bar_publish(uint32_t far) {
    ON90(asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");)
}

__device__ __forceinline__ void bar_wait_published(uint32_t bar, uint32_t parity) {
    ON90(asm volatile("{\n\t.reg .pred p;\n"
                      "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n\t"
                      "@p bra done;\n\tbra again;\n"
                      "done:\n\t}" ::"r"(bar),
                      "r"(parity)
                      : "memory");)
}

/* Registers of a warp group (all 4 warps call it): some groups release registers, so that others can have more than
 * a block's even share. */
template <int N> __device__ __forceinline__ void registers_fewer() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ __forceinline__ void registers_more() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

/* d (16,8) += a (16,16)·bᵀ */
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    mma_bf16(d, a, b0, b1);
}

#endif
