/* A place that holds memory and multiplies matrices.
 *
 * Small on purpose: memory, copies, streams, GEMM. The CPU implements it on OpenBLAS and OpenMP; a GPU is a second
 * implementation of the same table and nothing above changes. Work on a stream runs in order; a CPU stream has always
 * finished when a call returns. */
#ifndef ACF_DEVICE_DEVICE_H
#define ACF_DEVICE_DEVICE_H

#include "base/arena.h"
#include "base/real.h"

typedef enum acf_device_kind { ACF_DEVICE_CPU, ACF_DEVICE_CUDA, ACF_DEVICE_KINDS } acf_device_kind;

typedef enum acf_copy_kind { ACF_TO_DEVICE, ACF_TO_HOST, ACF_ON_DEVICE } acf_copy_kind;

/* c (M,N) = alpha * op(a) (M,K) * op(b) (K,N) + beta * c, all row-major with leading dimensions.
 * ta: a is stored (K,M); tb: b is stored (N,K). With beta = 0 the old content of c is not read. */
typedef struct acf_gemm {
    bool ta, tb;
    int64_t M, N, K;
    acf_real alpha;
    const acf_real *a;
    int64_t lda;
    const acf_real *b;
    int64_t ldb;
    acf_real beta;
    acf_real *c;
    int64_t ldc;
} acf_gemm;

typedef struct acf_device acf_device;
typedef struct acf_stream acf_stream;

/* What a device must be able to do. Every function returns a status; asynchronous failures come back from sync. */
typedef struct acf_device_table {
    const char *name;
    void (*close)(acf_device *dev);
    acf_status (*copy)(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind);
    acf_status (*zero)(acf_device *dev, void *dst, size_t bytes);
    acf_status (*stream_open)(acf_device *dev, acf_stream **out);
    void (*stream_close)(acf_device *dev, acf_stream *s);
    acf_status (*sync)(acf_device *dev);
    acf_status (*gemm)(acf_device *dev, const acf_gemm *g);
    acf_status (*memory_info)(acf_device *dev, size_t *free_bytes, size_t *total_bytes);
} acf_device_table;

struct acf_device {
    const acf_device_table *table;
    acf_device_kind kind;
    int threads;        /* CPU: threads of its parallel loops */
    bool bf16;          /* CPU: large products of acf_cpu_gemm in bf16 (bf16.h); only where acf_cpu_has_bf16. Off at first */
    acf_memory memory;  /* what arenas on this device allocate from */
    acf_stream *stream; /* where work goes; NULL is the device's own stream */
    void *state;        /* the implementation's */
};

/* Opens the CPU with this many threads (0: every core the process may use). Gives *out; close with acf_device_close.
 * Fails: ACF_EMEMORY, ACF_EUSAGE (threads < 0). */
acf_status acf_device_open_cpu(int threads, acf_device **out);
void acf_device_close(acf_device *dev);

acf_status acf_device_copy(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind);
acf_status acf_device_zero(acf_device *dev, void *dst, size_t bytes);
acf_status acf_device_sync(acf_device *dev);
acf_status acf_stream_open(acf_device *dev, acf_stream **out);
void acf_stream_close(acf_device *dev, acf_stream *s);
acf_status acf_device_gemm(acf_device *dev, const acf_gemm *g);
acf_status acf_device_memory(acf_device *dev, size_t *free_bytes, size_t *total_bytes);

/* Cores this process may run on. */
int acf_cores(void);

#endif
