/* What all .cu files share: the device behind an acf_device, launches, and sums in a fixed order. docs/cuda.md
 * explains how to write a kernel.
 *
 * .cu files are C with launches. The library's headers are C: include them inside extern "C", after this one. */
#ifndef ACF_DEVICE_CUDA_CUH
#define ACF_DEVICE_CUDA_CUH

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#define _Noreturn __attribute__((noreturn))
extern "C" {
#include "device/plugin.h"
}

/* ---- host side ------------------------------------------------------------------------------------------------- */

/* cuda_gemm.cu: handle and plans of products; NULL is allowed. */
typedef struct acf_products acf_products;
acf_status acf_products_create(acf_products **out);
void acf_products_free(acf_products *p);
acf_products *acf_cuda_products(const acf_device *dev);

/* cuda_dnn.cu: cuDNN, if it is installed, and its plans; NULL is allowed. */
typedef struct acf_dnn acf_dnn;
acf_status acf_dnn_create(acf_dnn **out);
void acf_dnn_free(acf_dnn *d);
acf_dnn *acf_cuda_dnn(const acf_device *dev);

/* For the plugin's entry point: false if the plugin already serves another copy of the library. */
bool acf_cuda_serve(const acf_services *host);

/* The functions of acf_plugin. */
acf_status acf_cuda_count(int *out);
acf_status acf_cuda_facts(int n, acf_device_facts *out);
acf_status acf_cuda_open(int n, const acf_plugin *plugin, acf_device **out);
acf_status acf_cuda_capture_begin(acf_device *dev);
acf_status acf_cuda_capture_end(acf_device *dev, acf_graph **out);
acf_status acf_cuda_graph_run(acf_device *dev, acf_graph *g);
void acf_cuda_graph_free(acf_device *dev, acf_graph *g);
acf_status acf_cuda_join(acf_device *dev);
void *acf_cuda_pinned_alloc(acf_device *dev, size_t bytes);
void acf_cuda_pinned_free(acf_device *dev, void *p);
acf_status acf_cuda_mark(acf_device *dev, int mark);
acf_status acf_cuda_wait(acf_device *dev, int mark);

/* Makes the device current for the calling thread and returns the stream for new work. Every launch begins with it. */
cudaStream_t acf_cuda_stream(const acf_device *dev);

/* In a captured step, switches to a second stream, ordered after all work enqueued before, with its own scratch and
 * counters; and back. acf_cuda_join waits for it. Kernels call it through acf_cuda_aside (ops/ops.cuh). */
acf_status acf_cuda_turn(const acf_device *dev, bool aside);
/* True if work goes to the second stream now. */
bool acf_cuda_is_aside(const acf_device *dev);

/* Number of multiprocessors, for kernels whose grid depends on the machine and not on the data. */
int acf_cuda_processors(const acf_device *dev);

#define ACF_TICKETS 4096
/* ACF_TICKETS counters in device memory, zero between launches, for kernels whose last block finishes the work
 * (acf_last_block). Kernels of one stream run one after the other, so all share the counters. */
unsigned *acf_cuda_tickets(const acf_device *dev);

/* Counts, in device memory, the rows of a batch that exceed the capacity of a subset (tensor/subset.cu); and the
 * plugin's function that reads the count. */
int32_t *acf_cuda_left_out(const acf_device *dev);
acf_status acf_cuda_take_left_out(acf_device *dev, int64_t *out);

/* An error found by a kernel. The kernel records the first one in device memory and continues; the next sync fails
 * with it. The first is that of the earliest operation and, within it, the lowest row, whatever the thread order. */
typedef enum acf_fault_kind {
    ACF_FAULT_NONE,
    ACF_FAULT_INDEX,      /* position, index, largest: ACF_EDATA */
    ACF_FAULT_REPEAT,     /* row: ACF_EDATA */
    ACF_FAULT_SINGULAR,   /* row, column of the table: ACF_ENUMERIC */
    ACF_FAULT_SLOT,       /* position, slot, largest: ACF_EDATA */
    ACF_FAULT_CODE,       /* row, column, code, classes of the column: ACF_EDATA */
    ACF_FAULT_CHOICE,     /* row, column: ACF_ENUMERIC */
    ACF_FAULT_COVARIANCE, /* row, position: ACF_ENUMERIC */
    ACF_FAULT_PROBABILITY /* row, column, the float's bits: ACF_EUSAGE */
} acf_fault_kind;
typedef struct acf_fault {
    int kind, lock; /* acf_fault_kind; 1 while one thread writes */
    const char *op; /* pointer to host memory */
    int64_t number[4];
} acf_fault;
acf_fault *acf_cuda_fault(const acf_device *dev);

/* ACF_OK, or the failure as a message that begins with `what`: ACF_EMEMORY for memory, else ACF_EDEVICE. */
acf_status acf_cuda_status(cudaError_t error, const char *what);
#define ACF_CUDA(call) ACF_TRY(acf_cuda_status(call, #call))
/* Call after a launch: reports an invalid configuration. Errors during execution are reported by the next sync. */
#define ACF_LAUNCHED(kernel) acf_cuda_status(cudaGetLastError(), kernel)

/* Scratch in device memory for one call; the next call overwrites it. Products use it, too. */
#define ACF_SCRATCH ((size_t)32 << 20) /* bytes; what NVIDIA recommends for cuBLASLt on Hopper */
void *acf_cuda_scratch(const acf_device *dev);

/* The product of device.h with bias (N; may be NULL) added to each row, then relu if asked for. */
acf_status acf_cuda_gemm(acf_device *dev, const acf_gemm *g, const acf_real *bias, bool relu);

/* The product of bf16 matrices a and b (leading dimensions count bf16 numbers) into a c that is float or bf16. Sums
 * are float, K > 0. The pointers of g point to numbers of these types. */
acf_status acf_cuda_gemm_bf16(acf_device *dev, const acf_gemm *g, bool bf16_c);
/* The same, with bias (N; may be NULL), of c's type, added to each row; and with beta times `from`, as large as c,
 * instead of beta · c. */
acf_status acf_cuda_gemm_bf16_onto(acf_device *dev, const acf_gemm *g, bool bf16_c, const void *bias, const void *from);

/* out (C) += sum over rows of x (rows,C), leading dimension ld. With rows NULL, there are `capacity` rows; else
 * *rows in device memory, at most `capacity`. Deterministic. */
acf_status acf_cuda_colsum(acf_device *dev, acf_real *out, const acf_real *x, const int32_t *rows, int64_t capacity,
                           int64_t C, int64_t ld);

#define ACF_THREADS 256 /* threads of a block, unless a kernel needs another number */

/* Blocks for one thread per element; at least one, because an empty launch is an error. */
static inline unsigned acf_blocks(int64_t n, int per_block) { return (unsigned)acf_max(acf_ceil_div(n, per_block), 1); }

/* Blocks of ACF_THREADS for a kernel whose body is ACF_EACH(i, n). */
#define ACF_PER_THREAD 4
static inline unsigned acf_each_blocks(int64_t n) { return acf_blocks(n, ACF_THREADS * ACF_PER_THREAD); }

/* ---- device side ----------------------------------------------------------------------------------------------- */

/* This thread's element in a grid of acf_blocks(n, blockDim.x). */
static __device__ inline int64_t acf_thread(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }

/* Loops over this thread's elements i < n: ACF_PER_THREAD of them, a block apart. Neighbouring threads read
 * neighbouring elements, and several loads are in flight at once. */
#define ACF_EACH(i, n)                                                                                                 \
    _Pragma("unroll")                                                                                                  \
    for (int each_ = 0; each_ < ACF_PER_THREAD; each_++)                                                               \
        if (const int64_t i = ((int64_t)blockIdx.x * ACF_PER_THREAD + each_) * ACF_THREADS + threadIdx.x; i < (n))

/* Row and column of element i in rows of C. Uses 32-bit division where the numbers fit, which is several times as
 * fast. */
typedef struct acf_cell {
    int64_t row, column;
} acf_cell;
static __device__ inline acf_cell acf_cell_of(int64_t i, int64_t C) {
    if (i <= UINT32_MAX && C <= UINT32_MAX) {
        uint32_t row = (uint32_t)i / (uint32_t)C;
        return {row, (int64_t)((uint32_t)i - row * (uint32_t)C)};
    }
    return {i / C, i % C};
}

/* The sum over a warp, in every lane. The order is that of the lane numbers, so the bits are always the same. */
template <typename T> static __device__ inline T acf_warp_sum(T x) {
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* The sum over a block of whole warps, in every thread. Every thread must call it. */
template <typename T> static __device__ inline T acf_block_sum(T x) {
    __shared__ T warp[32];
    x = acf_warp_sum(x);
    __syncthreads(); /* the previous call may still be reading */
    if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++) x += warp[w];
    return x;
}

/* True in all threads of the block that finishes last among the `blocks` that share a counter. The global writes of
 * the others are visible to it, and the counter is zero again. It can then add partial results in a fixed order
 * without a second launch; read them with __ldcg. Every thread must call it. */
static __device__ inline bool acf_last_block(unsigned *ticket, unsigned blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) == blocks - 1;
        if (last) *ticket = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}

/* Records a fault of the operation with this name (n->op->name, a host pointer). a and then b order the faults of
 * one operation. Slow, but rare: the step has failed. */
static __device__ inline void acf_report(acf_fault *f, const char *op, acf_fault_kind kind, int64_t a, int64_t b,
                                         int64_t c, int64_t d = 0) {
    for (bool done = false; !done;) { /* lanes lock one after the other; each unlocks in the same iteration */
        if (atomicCAS(&f->lock, 0, 1) != 0) continue;
        __threadfence();
        volatile acf_fault *v = f; /* other threads write it */
        const bool earlier = a < v->number[0] || (a == v->number[0] && b < v->number[1]);
        if (v->kind == ACF_FAULT_NONE || (v->kind == (int)kind && v->op == op && earlier))
            v->kind = kind, v->op = op, v->number[0] = a, v->number[1] = b, v->number[2] = c, v->number[3] = d;
        __threadfence();
        atomicExch(&f->lock, 0);
        done = true;
    }
}

/* A double sum as a float: finite stays finite, an infinite one stays visible (ops/reduce.h). */
static __device__ inline float acf_float_from(double x) {
    if (isinf(x) || isnan(x)) return (float)x;
    return (float)fmin(fmax(x, -(double)FLT_MAX), (double)FLT_MAX);
}

#endif
