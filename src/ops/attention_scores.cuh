/* What attention of short rows in tf32 (attention_mma.cuh) and in bf16 (attention_bf16.cuh) share. A warp has 16
 * tokens. Their scores against 16 others are two fragments (16,8) of mma.cuh: lane 4g + t has some of rows g and g +
 * 8, and the four lanes of a row are neighbours. */
#ifndef ACF_OPS_ATTENTION_SCORES_CUH
#define ACF_OPS_ATTENTION_SCORES_CUH

#include "ops/mma.cuh"

#define SIDE 16      /* tokens of a warp */
#define MOST_WARPS 4 /* of a block */
#define LOG2_E 1.4426950408889634f

/* Reductions over the four lanes of a row. */
static __device__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
static __device__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Updates most, the largest score so far of rows g and g + 8, with p. own: these are the queries' own tokens, and
 * the causal mask applies. */
static __device__ void update_max(float (&most)[2], float (&p)[2][4], bool own, int g, int t) {
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            if (own && 8 * n + 2 * t + c % 2 > g + 8 * (c / 2)) p[n][c] = -INFINITY;
            most[c / 2] = fmaxf(most[c / 2], p[n][c]);
        }
}

#endif
