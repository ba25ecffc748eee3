/* Matrix products on a GPU by cuBLASLt, and sums of columns.
 *
 * Workload: M = 512 to 4,096 rows of a batch or up to 300,000 packed elements, N and K from 1 to 1,024. A training
 * step has some dozens of different shapes, the same in every step. Selecting an algorithm takes cuBLASLt tens of
 * microseconds, so its answer is cached by shape.
 *
 * cuBLASLt is column-major. A row-major matrix is its transpose there, so c (M,N) = op(a) op(b) is computed as cᵀ
 * (N,M) = op(b)ᵀ op(a)ᵀ: b comes first, and each factor is transposed exactly where device.h says so. A bias of N
 * numbers then runs along the first axis, where cuBLASLt adds it. */
#include "device/cuda.cuh"

#include <cublasLt.h>
#include <string.h>

/* ---- plans ----------------------------------------------------------------------------------------------------- */

/* All that the choice of an algorithm depends on. No padding: keys are compared as bytes. */
typedef struct plan_key {
    int64_t M, N, K, lda, ldb, ldc;
    int32_t ta, tb, precision, epilogue;
    uint32_t align_a, align_b, align_c, numbers;
} plan_key;

/* The number types of a and b, and of c. */
typedef enum numbers { ALL_FLOAT, BF16_TO_FLOAT, ALL_BF16 } numbers;

typedef struct plan {
    bool used;
    plan_key key;
    cublasComputeType_t compute;
    cublasLtMatmulAlgo_t algo;
} plan;

#define PLANS 1024 /* shapes kept at once: a model has some dozens */

struct acf_products {
    cublasLtHandle_t handle;
    int n;
    plan plans[PLANS];
};

static acf_status lt_status(cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return ACF_OK;
    return acf_fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ACF_EMEMORY : ACF_EDEVICE, "cublas: %s: %s", what,
                    cublasLtGetStatusName(status));
}
#define LT(call) ACF_TRY(lt_status(call, #call))

acf_status acf_products_create(acf_products **out) {
    acf_products *p = (acf_products *)acf_alloc_zero(sizeof *p, "plans of products");
    if (!p) return ACF_EMEMORY;
    acf_status status = lt_status(cublasLtCreate(&p->handle), "cublasLtCreate");
    if (status)
        acf_release(p);
    else
        *out = p;
    return status;
}

void acf_products_free(acf_products *p) {
    if (!p) return;
    cublasLtDestroy(p->handle);
    acf_release(p);
}

/* The power of two that divides an address, up to the alignment that cuBLASLt can use. */
static uint32_t alignment(const void *p) {
    uintptr_t a = (uintptr_t)p | 256;
    return (uint32_t)(a & (~a + 1));
}

/* The cuBLASLt descriptors of a product; lives on the stack. */
typedef struct product {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
} product;

static acf_status describe(product *p, const acf_gemm *g, numbers of, cublasComputeType_t compute,
                           cublasLtEpilogue_t epilogue, const void *bias) {
    const cudaDataType in = of == ALL_FLOAT ? CUDA_R_32F : CUDA_R_16BF, out = of == ALL_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasOperation_t on_b = g->tb ? CUBLAS_OP_T : CUBLAS_OP_N, on_a = g->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    LT(cublasLtMatmulDescInit(&p->desc, compute, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &on_b, sizeof on_b));
    LT(cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &on_a, sizeof on_a));
    LT(cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (bias) LT(cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    LT(cublasLtMatrixLayoutInit(&p->b, in, (uint64_t)(g->tb ? g->K : g->N), (uint64_t)(g->tb ? g->N : g->K), g->ldb));
    LT(cublasLtMatrixLayoutInit(&p->a, in, (uint64_t)(g->ta ? g->M : g->K), (uint64_t)(g->ta ? g->K : g->M), g->lda));
    LT(cublasLtMatrixLayoutInit(&p->c, out, (uint64_t)g->N, (uint64_t)g->M, g->ldc));
    return ACF_OK;
}

/* cuBLASLt's first choice; *found is false if it has none. */
static acf_status ask(cublasLtHandle_t handle, product *p, const plan_key *k, cublasLtMatmulAlgo_t *algo, bool *found) {
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t result;
    const size_t capacity = ACF_SCRATCH;
    int n = 0;
    LT(cublasLtMatmulPreferenceInit(&wish));
    LT(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &capacity,
                                            sizeof capacity));
    LT(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &k->align_b,
                                            sizeof k->align_b));
    LT(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &k->align_a,
                                            sizeof k->align_a));
    LT(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &k->align_c,
                                            sizeof k->align_c));
    LT(cublasLtMatmulPreferenceSetAttribute(&wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &k->align_c,
                                            sizeof k->align_c));
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, &p->desc, &p->b, &p->a, &p->c, &p->c, &wish, 1, &result, &n);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) ACF_TRY(lt_status(status, "cublasLtMatmulAlgoGetHeuristic"));
    *found = status == CUBLAS_STATUS_SUCCESS && n > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    if (*found) *algo = result.algo;
    return ACF_OK;
}

/* The plan for a shape, created if needed; *p describes the product for it. A precision without an algorithm for
 * this shape (odd widths, for example) falls back to float. */
static acf_status plan_for(acf_products *all, const acf_gemm *g, const plan_key *key, const void *bias, product *p,
                           plan **out) {
    static const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                                                   CUBLAS_COMPUTE_32F_FAST_16BF};
    const cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)key->epilogue;
    const numbers of = (numbers)key->numbers;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *key; i++) hash = (hash ^ ((const unsigned char *)key)[i]) * 0x100000001b3u;
    if (all->n == PLANS / 2) all->n = 0, memset(all->plans, 0, sizeof all->plans);
    plan *slot = &all->plans[hash % PLANS];
    while (slot->used && memcmp(&slot->key, key, sizeof *key) != 0)
        slot = slot + 1 == all->plans + PLANS ? all->plans : slot + 1;
    if (!slot->used) {
        bool found = false;
        for (int i = key->precision; i >= 0 && !found; i = i > 0 ? 0 : -1) {
            slot->compute = computes[i];
            ACF_TRY(describe(p, g, of, slot->compute, epilogue, bias));
            ACF_TRY(ask(all->handle, p, key, &slot->algo, &found));
        }
        if (!found)
            return acf_fail(ACF_EDEVICE, "cublas: no algorithm for a product of %lld x %lld x %lld", (long long)g->M,
                            (long long)g->N, (long long)g->K);
        slot->key = *key;
        slot->used = true;
        all->n++;
    } else
        ACF_TRY(describe(p, g, of, slot->compute, epilogue, bias));
    *out = slot;
    return ACF_OK;
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* c (M,N) = beta c + bias, then relu: a product with K = 0. */
static __global__ void only_epilogue(acf_real *c, int64_t ldc, int64_t M, int64_t N, acf_real beta,
                                     const acf_real *bias, bool relu) {
    int64_t i = acf_thread();
    if (i >= M * N) return;
    acf_real *at = c + i / N * ldc + i % N;
    acf_real x = (beta == 0 ? 0 : beta * *at) + (bias ? bias[i % N] : 0);
    *at = relu && x < 0 ? 0 : x;
}

/* from: the matrix that beta multiplies; c if NULL. */
static acf_status multiply(acf_device *dev, const acf_gemm *g, numbers of, const void *bias, bool relu,
                           const void *from) {
    cudaStream_t stream = acf_cuda_stream(dev);
    const cublasLtEpilogue_t epilogue = bias ? (relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                             : (relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
    const plan_key key = {g->M,
                          g->N,
                          g->K,
                          g->lda,
                          g->ldb,
                          g->ldc,
                          g->ta,
                          g->tb,
                          of == ALL_FLOAT ? (int32_t)dev->precision : 0,
                          (int32_t)epilogue,
                          alignment(g->a),
                          alignment(g->b),
                          alignment(g->c),
                          (uint32_t)of};
    acf_products *all = acf_cuda_products(dev);
    product p;
    plan *plan = NULL;
    ACF_TRY(plan_for(all, g, &key, bias, &p, &plan));
    LT(cublasLtMatmul(all->handle, &p.desc, &g->alpha, g->b, &p.b, g->a, &p.a, &g->beta, from ? from : g->c, &p.c, g->c,
                      &p.c, &plan->algo, acf_cuda_scratch(dev), ACF_SCRATCH, stream));
    return ACF_OK;
}

acf_status acf_cuda_gemm(acf_device *dev, const acf_gemm *g, const acf_real *bias, bool relu) {
    if (g->M <= 0 || g->N <= 0) return ACF_OK;
    if (g->K > 0) return multiply(dev, g, ALL_FLOAT, bias, relu, NULL);
    only_epilogue<<<acf_blocks(g->M * g->N, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(
        g->c, g->ldc, g->M, g->N, g->beta, bias, relu);
    return ACF_LAUNCHED("gemm");
}

acf_status acf_cuda_gemm_bf16_onto(acf_device *dev, const acf_gemm *g, bool bf16_c, const void *bias,
                                   const void *from) {
    if (g->M <= 0 || g->N <= 0) return ACF_OK;
    ACF_ASSERT(g->K > 0);
    return multiply(dev, g, bf16_c ? ALL_BF16 : BF16_TO_FLOAT, bias, false, from);
}

acf_status acf_cuda_gemm_bf16(acf_device *dev, const acf_gemm *g, bool bf16_c) {
    return acf_cuda_gemm_bf16_onto(dev, g, bf16_c, NULL, NULL);
}

/* ---- sums of columns ------------------------------------------------------------------------------------------- */

#define LANES 8   /* rows of a block at a time, 32 columns wide */
#define PIECES 64 /* blocks along the rows at most */
#define PIECE_ROWS 64

/* Block (x,y) sums rows [y per, (y+1) per) of columns [32 x, 32 x + 32). The last block of a column adds the pieces
 * in order. */
static __global__ void colsum(acf_real *out, acf_real *piece, unsigned *tickets, const acf_real *x, const int32_t *rows,
                              int64_t capacity, int64_t C, int64_t ld, int64_t per) {
    __shared__ acf_real lane[LANES][32];
    const int64_t n = rows ? min((int64_t)*rows, capacity) : capacity, c = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const int64_t end = min((blockIdx.y + 1) * per, n);
    const int k = threadIdx.x / 32;
    acf_real sum = 0;
    if (c < C)
#pragma unroll 4
        for (int64_t i = blockIdx.y * per + k; i < end; i += LANES) sum += x[i * ld + c];
    lane[k][threadIdx.x % 32] = sum;
    __syncthreads();
    if (k == 0 && c < C) {
        for (int j = 1; j < LANES; j++) sum += lane[j][threadIdx.x];
        if (gridDim.y == 1)
            out[c] += sum;
        else
            piece[blockIdx.y * C + c] = sum;
    }
    if (gridDim.y == 1 || !acf_last_block(&tickets[blockIdx.x], gridDim.y)) return;
    if (k > 0 || c >= C) return;
    sum = 0;
#pragma unroll 8
    for (unsigned y = 0; y < gridDim.y; y++) sum += __ldcg(&piece[y * C + c]);
    out[c] += sum;
}

acf_status acf_cuda_colsum(acf_device *dev, acf_real *out, const acf_real *x, const int32_t *rows, int64_t capacity,
                           int64_t C, int64_t ld) {
    if (C <= 0 || capacity <= 0) return ACF_OK;
    ACF_ASSERT(C <= 32 * (int64_t)ACF_TICKETS);
    const int64_t most = (int64_t)(ACF_SCRATCH / sizeof(acf_real)) / C; /* pieces that scratch memory holds */
    const int64_t pieces = acf_max(acf_min(acf_min(acf_ceil_div(capacity, PIECE_ROWS), PIECES), most), 1);
    dim3 grid(acf_blocks(C, 32), (unsigned)pieces);
    colsum<<<grid, 32 * LANES, 0, acf_cuda_stream(dev)>>>(out, (acf_real *)acf_cuda_scratch(dev), acf_cuda_tickets(dev),
                                                          x, rows, capacity, C, ld, acf_ceil_div(capacity, pieces));
    return ACF_LAUNCHED("colsum");
}
