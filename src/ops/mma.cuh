/* Small products of one warp on tensor cores, and their number types; sums are float. Fragments, for lane 4g + t:
 *
 *     bf16   a (16,16): a[0] = {(g,2t),(g,2t+1)}, a[1] = the same 8 rows below, a[2] and a[3] = these two 8 columns on
 *            b (16,8):  b0 = {(2t,g),(2t+1,g)}, b1 = the same 8 rows below
 *     tf32   a (16,8):  a[0] = (g,t), a[1] = 8 rows below, a[2] and a[3] = these two 4 columns on
 *            b (8,8):   b0 = (t,g), b1 = (t+4,g)
 *     d (16,8): d[0], d[1] = (g,2t), (g,2t+1);  d[2], d[3] = the same 8 rows below */
#ifndef ACF_OPS_MMA_CUH
#define ACF_OPS_MMA_CUH

#include <stdint.h>

__device__ __forceinline__ uint32_t two_bf16(float lo, float hi) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

__device__ __forceinline__ uint32_t as_tf32(float v) {
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

/* d += a·b */
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif
