/* Images of weights: wh in bf16, in the order that the kernels of gru_fast.h use in shared memory. See
 * gru_kernels.h. */
#include "ops/gru_fast.cuh"

struct Images {
    void *image[ACF_GRU_IMAGES];
    const float *wh[ACF_GRU_IMAGES];
};

/* One chunk of 16 bytes per thread. Forward: groups of 16 units of [r z n] rows (unit_place) of H; backward: slices
 * of H rows (unit_place of the receiving unit) of [r z b_n] x 64 units. Chunks of a row are permuted by the row
 * number as in struct Rows. */
__global__ void image_kernel(const __grid_constant__ Images m) {
    const float *wh = m.wh[blockIdx.y];
    unsigned char *out = (unsigned char *)m.image[blockIdx.y];
    int i = blockIdx.x * blockDim.x + threadIdx.x, count = FORWARD_BYTES / 16;
    float v[8];
    if (i < count) {
        int group = i / (48 * 32), row = i / 32 % 48, chunk = i % 32 ^ (row & 7), place = row % 16;
        int unit = group * 16 + place % 8 / 2 * 4 + place / 8 * 2 + place % 2;
        const float *from = wh + ((int64_t)(row / 16) * HU + unit) * HU + chunk * 8;
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = from[k];
        store((bf16 *)(out + (int64_t)i * 16), pack<bf16, 8>(v));
    } else if (i < 2 * count) {
        i -= count;
        int row = i % HU, spot = i / HU % 24, slice = i / HU / 24, chunk = spot ^ (row & 7), place = row % 64;
        int unit = row - place + place % 8 / 2 * 16 + place / 8 * 2 + place % 2, k0 = chunk * 8;
        const float *from = wh + ((int64_t)(k0 / 64) * HU + slice * 64 + k0 % 64) * HU + unit;
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = from[k * HU];
        store((bf16 *)(out + FORWARD_BYTES + (int64_t)slice * SLICE + row * 384 + spot * 16), pack<bf16, 8>(v));
    }
}

extern "C" int64_t acf_gru_image_bytes(int64_t H) { return H == HU ? 2 * FORWARD_BYTES : 0; }

extern "C" cudaError_t acf_gru_images_launch(void *const *image, const float *const *wh, int n, int64_t H,
                                             cudaStream_t stream) {
    Images m = {};
    if (H != HU || n < 1) return cudaSuccess;
    if (n > ACF_GRU_IMAGES) return cudaErrorInvalidValue;
    for (int i = 0; i < n; i++) m.image[i] = image[i], m.wh[i] = wh[i];
    image_kernel<<<dim3(2 * FORWARD_BYTES / 16 / 256, (unsigned)n), 256, 0, stream>>>(m);
    return cudaGetLastError();
}
