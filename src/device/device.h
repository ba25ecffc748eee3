/* A device: holds memory and multiplies matrices.
 *
 * The interface is small on purpose: memory, copies, streams, GEMM. The CPU implements it with its own kernels and
 * OpenMP. A GPU is a second implementation of the same table; the layers above do not change. Work on a stream runs
 * in order. A CPU stream has always finished when a call returns. */
#ifndef ACF_DEVICE_DEVICE_H
#define ACF_DEVICE_DEVICE_H

#include "base/arena.h"
#include "base/real.h"

typedef enum acf_device_kind { ACF_DEVICE_CPU, ACF_DEVICE_CUDA, ACF_DEVICE_KINDS } acf_device_kind;

typedef enum acf_copy_kind { ACF_TO_DEVICE, ACF_TO_HOST, ACF_ON_DEVICE } acf_copy_kind;

/* The precision of large products; sums are always float. In the order of the option `precision`.
 *     tf32   a GPU's float with 10 bits of mantissa: about three digits
 *     bf16   8 bits: two to three digits; on the CPU see bf16.h
 */
typedef enum acf_precision { ACF_PRECISION_FLOAT, ACF_PRECISION_TF32, ACF_PRECISION_BF16 } acf_precision;

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

/* The functions of a device. Every function returns a status; sync returns asynchronous failures. */
typedef struct acf_device_table {
    const char *name;
    void (*close)(acf_device *dev);
    acf_status (*copy)(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind);
    acf_status (*zero)(acf_device *dev, void *dst, size_t bytes);
    acf_status (*fill)(acf_device *dev, acf_real *dst, acf_real value, int64_t n);
    acf_status (*stream_open)(acf_device *dev, acf_stream **out);
    void (*stream_close)(acf_device *dev, acf_stream *s);
    acf_status (*sync)(acf_device *dev);
    acf_status (*gemm)(acf_device *dev, const acf_gemm *g);
    acf_status (*memory_info)(acf_device *dev, size_t *free_bytes, size_t *total_bytes);
    acf_status (*again)(const acf_device *dev, acf_device **out);
} acf_device_table;

struct acf_device {
    const acf_device_table *table;
    acf_device_kind kind;
    int threads;                     /* CPU: threads of its parallel loops */
    acf_precision precision;         /* float at first; others only if acf_device_multiplies returns true */
    acf_memory memory;               /* what arenas on this device allocate from */
    acf_stream *stream;              /* target of new work; NULL is the device's own stream */
    void *state;                     /* private to the implementation */
    const struct acf_plugin *plugin; /* the plugin that owns the device (plugin.h); NULL: one of the library's own */
};

/* A handle is used by one thread at a time: it holds the precision and the stream of new work and, on a GPU, the
 * scratch of kernels.
 *
 * Opens the CPU with this many threads (0: every core the process may use). Gives *out; close with acf_device_close.
 * Fails: ACF_EMEMORY, ACF_EUSAGE (threads < 0). */
acf_status acf_device_open_cpu(int threads, acf_device **out);
void acf_device_close(acf_device *dev);

/* Another handle on the same device, for a second thread. It has as many threads and precision float, and shares
 * nothing else. Memory of one handle can be used by the other once the work that fills it is done (acf_device_sync).
 * dev may be in use meanwhile. Gives *out; close with acf_device_close. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_device_again(const acf_device *dev, acf_device **out);

acf_status acf_device_copy(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind);
acf_status acf_device_zero(acf_device *dev, void *dst, size_t bytes);
/* dst[0..n) = value. Copies nothing from the host, so a captured step may call it. */
acf_status acf_device_fill(acf_device *dev, acf_real *dst, acf_real value, int64_t n);
acf_status acf_device_sync(acf_device *dev);
acf_status acf_stream_open(acf_device *dev, acf_stream **out);
void acf_stream_close(acf_device *dev, acf_stream *s);
acf_status acf_device_gemm(acf_device *dev, const acf_gemm *g);
acf_status acf_device_memory(acf_device *dev, size_t *free_bytes, size_t *total_bytes);

/* True if the device can multiply in this precision. */
bool acf_device_multiplies(const acf_device *dev, acf_precision precision);

/* Cores this process may run on. */
int acf_cores(void);

#endif
