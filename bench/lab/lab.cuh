/* Shared by the kernel labs on a GPU: checked calls, random numbers, and device memory initialised to NaN. Each lab is
 * one file. */
#ifndef ACF_BENCH_LAB_CUH
#define ACF_BENCH_LAB_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#define CHECK(call) check_cuda((call), #call, __LINE__)
static void check_cuda(cudaError_t e, const char *what, int line) {
    if (!e) return;
    printf("line %d: %s: %s\n", line, what, cudaGetErrorString(e));
    exit(1);
}

static uint64_t seed = 1;
static double uniform(void) { /* splitmix64, (-1, 1) */
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

typedef std::vector<float> floats;
static floats random_floats(int64_t n, double scale) {
    floats v((size_t)n);
    for (float &x : v) x = (float)(scale * uniform());
    return v;
}

/* ---- device memory ----------------------------------------------------------------------------------------------- */

static std::vector<void *> owned;
static void *device_bytes(size_t n) { /* poisoned with NaN */
    void *p;
    CHECK(cudaMalloc(&p, n + 64));
    CHECK(cudaMemset(p, 0xff, n + 64));
    owned.push_back(p);
    return p;
}
static void release_all(void) {
    for (void *p : owned) CHECK(cudaFree(p));
    owned.clear();
}
template <typename T> static T *to_device(const std::vector<T> &v) {
    T *p = (T *)device_bytes(v.size() * sizeof(T));
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}
/* n floats; with `half` they are bf16 on the device. */
static floats to_host(const void *p, int64_t n, bool half) {
    floats v((size_t)n);
    std::vector<uint16_t> b(half ? (size_t)n : 0);
    CHECK(
        cudaMemcpy(half ? (void *)b.data() : (void *)v.data(), p, (size_t)n * (half ? 2 : 4), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < b.size(); i++) {
        uint32_t w = (uint32_t)b[i] << 16;
        memcpy(&v[i], &w, 4);
    }
    return v;
}

#endif
