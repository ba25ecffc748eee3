/* Products around a recurrence on the GPU: see gru.cuh.
 *
 * Workload: T = 1,000 to 250,000 elements, H = 256, I = 1 to 256. Each side of the gates is one sub-matrix of
 * (T,4H). The input's side has its gates in another order than the weights (n first), so its float products come in
 * two parts. bf16 products use a copy of the weights that is already in the gates' order. */
#include "ops/gru.cuh"

#include <cuda_bf16.h>

/* ---- numbers as bf16 ------------------------------------------------------------------------------------------- */

static __global__ void halve(__nv_bfloat16 *__restrict__ y, const acf_real *__restrict__ x, const int32_t *rows,
                             int64_t M, int64_t C, int64_t ld) {
    const int64_t true_rows = acf_true_rows(rows, M);
    ACF_EACH(i, M * ld) {
        acf_cell at = acf_cell_of(i, ld);
        y[i] = __float2bfloat16(at.row < true_rows && at.column < C ? x[at.row * C + at.column] : 0);
    }
}

static __global__ void halve_weights(__nv_bfloat16 *__restrict__ y, const acf_real *__restrict__ w, int64_t ldw,
                                     int64_t H, int64_t C, int64_t ld) {
    ACF_EACH(i, 3 * H * ld) {
        acf_cell at = acf_cell_of(i, ld);
        const int64_t row = at.row < H ? 2 * H + at.row : at.row - H;
        y[i] = __float2bfloat16(at.column < C ? w[row * ldw + at.column] : 0);
    }
}

acf_status acf_cuda_halve(acf_device *dev, void *y, const acf_real *x, const int32_t *rows, int64_t M, int64_t C) {
    const int64_t ld = acf_number_ld(C, true);
    halve<<<acf_each_blocks(M * ld), ACF_THREADS, 0, acf_cuda_stream(dev)>>>((__nv_bfloat16 *)y, x, rows, M, C, ld);
    return ACF_LAUNCHED("numbers as bf16");
}

acf_status acf_cuda_halve_weights(acf_device *dev, void *y, const acf_real *w, int64_t ldw, int64_t H, int64_t C) {
    const int64_t ld = acf_number_ld(C, true);
    halve_weights<<<acf_each_blocks(3 * H * ld), ACF_THREADS, 0, acf_cuda_stream(dev)>>>((__nv_bfloat16 *)y, w, ldw, H,
                                                                                         C, ld);
    return ACF_LAUNCHED("weights as bf16");
}

/* ---- products -------------------------------------------------------------------------------------------------- */

static acf_status float_product(acf_device *dev, bool ta, bool tb, int64_t M, int64_t N, int64_t K, const void *a,
                                int64_t lda, const void *b, int64_t ldb, acf_real beta, void *c, int64_t ldc) {
    const acf_gemm g = {ta, tb, M, N, K, 1, (const acf_real *)a, lda, (const acf_real *)b, ldb, beta, (acf_real *)c,
                        ldc};
    return acf_cuda_gemm(dev, &g, NULL, false);
}

static acf_status half_product(acf_device *dev, bool ta, bool tb, int64_t M, int64_t N, int64_t K, const void *a,
                               int64_t lda, const void *b, int64_t ldb, acf_real beta, void *c, int64_t ldc,
                               bool half_c) {
    const acf_gemm g = {ta, tb, M, N, K, 1, (const acf_real *)a, lda, (const acf_real *)b, ldb, beta, (acf_real *)c,
                        ldc};
    return acf_cuda_gemm_bf16(dev, &g, half_c);
}

acf_status acf_cuda_gru_project(acf_device *dev, const acf_gru_sizes *s, void *gates, const void *x, const void *wx) {
    const int64_t T = s->T, H = s->H, I = s->I, ld = acf_number_ld(I, s->half);
    if (s->half)
        return half_product(dev, false, true, T, 3 * H, ld, x, ld, wx, ld, 0, gates, 4 * H, true); /* zeros beyond I */
    ACF_TRY(float_product(dev, false, true, T, 2 * H, I, x, I, wx, I, 0, acf_number(gates, H, false), 4 * H));
    return float_product(dev, false, true, T, H, I, x, I, acf_number(wx, 2 * H * I, false), I, 0, gates, 4 * H);
}

acf_status acf_cuda_gru_dinputs(acf_device *dev, const acf_gru_sizes *s, acf_real *dx, const void *gates,
                                const void *wx, int64_t ldw) {
    const int64_t T = s->T, H = s->H, I = s->I;
    if (s->half)
        return half_product(dev, false, false, T, I, 3 * H, gates, 4 * H, wx, acf_number_ld(I, true), 1, dx, I, false);
    ACF_TRY(float_product(dev, false, false, T, I, 2 * H, acf_number(gates, H, false), 4 * H, wx, ldw, 1, dx, I));
    return float_product(dev, false, false, T, I, H, gates, 4 * H, acf_number(wx, 2 * H * ldw, false), ldw, 1, dx, I);
}

acf_status acf_cuda_gru_gradient(acf_device *dev, bool half, acf_real *c, int64_t M, int64_t N, int64_t T,
                                 const void *a, int64_t lda, const void *b, int64_t ldb) {
    if (half) return half_product(dev, true, false, M, N, T, a, lda, b, ldb, 1, c, N, false);
    return float_product(dev, true, false, M, N, T, a, lda, b, ldb, 1, c, N);
}

acf_status acf_cuda_gru_weights(acf_device *dev, const acf_gru_sizes *s, acf_real *dwx, acf_real *dwh,
                                const void *gates, const void *x, const void *past) {
    const int64_t T = s->T, H = s->H, I = s->I, ld = acf_number_ld(I, s->half);
    const acf_real *beyond_n = acf_number(gates, H, s->half); /* r, z and then b_n */
    if (dwh) ACF_TRY(acf_cuda_gru_gradient(dev, s->half, dwh, 3 * H, H, T, beyond_n, 4 * H, past, H));
    if (!dwx || I == 0) return ACF_OK;
    ACF_TRY(acf_cuda_gru_gradient(dev, s->half, dwx, 2 * H, I, T, beyond_n, 4 * H, x, ld));
    return acf_cuda_gru_gradient(dev, s->half, dwx + 2 * H * I, H, I, T, gates, 4 * H, x, ld);
}
