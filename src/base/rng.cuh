/* Random numbers on the GPU: the same function of the same place as on the CPU, so the same bits, and the same numbers to rounding. See
 * rng.h. */
#ifndef ACF_BASE_RNG_CUH
#define ACF_BASE_RNG_CUH

#include <Random123/philox.h>

extern "C" {
#include "base/rng.h"
}

static __device__ inline philox4x32_ctr_t acf_rng_bits_cuda(acf_rng_counter at) {
    const uint32_t high = (uint32_t)(at.row >> 32 & 0xffff) << 16 | (at.stream & 0xffff);
    const philox4x32_ctr_t counter = {{(uint32_t)at.row, high, at.column, at.draw}};
    const philox4x32_key_t key = {{(uint32_t)at.seed, (uint32_t)(at.seed >> 32)}};
    return philox4x32(counter, key);
}

static __device__ inline double acf_rng_unit_cuda(uint32_t lo, uint32_t hi) {
    return ((double)(((uint64_t)hi << 32 | lo) >> 12) + 0.5) * 0x1p-52;
}

static __device__ inline double acf_rng_uniform_cuda(acf_rng_counter at) {
    const philox4x32_ctr_t w = acf_rng_bits_cuda(at);
    return acf_rng_unit_cuda(w.v[0], w.v[1]);
}

static __device__ inline double acf_rng_normal_cuda(acf_rng_counter at) {
    const philox4x32_ctr_t w = acf_rng_bits_cuda(at);
    return sqrt(-2.0 * log(acf_rng_unit_cuda(w.v[0], w.v[1]))) * cospi(2.0 * acf_rng_unit_cuda(w.v[2], w.v[3]));
}

#endif
