/* What CPU kernels use besides the device table: parallel loops, products with an epilogue, and products that share
 * a right factor.
 *
 * The bits are the same for any thread count: each piece of work is computed by one thread in one order, and no
 * piece adds to another's output. An element of a float product (panels.h) has the same bits however the product is
 * divided, so every thread gets a piece. In bf16 this does not hold; there the tiles depend only on the shape. */
#ifndef ACF_DEVICE_CPU_H
#define ACF_DEVICE_CPU_H

#include "device/device.h"

/* The number of threads worth starting for a loop of about `work` scalar operations. Waking a team costs some
 * microseconds. */
static inline int acf_threads_for(const acf_device *dev, int64_t work) { return work < 32768 ? 1 : dev->threads; }

/* Use before a for loop whose iterations write disjoint memory:
 *     ACF_PARALLEL(dev, N * C)
 *     for (int64_t i = 0; i < N; i++) ...
 */
#define ACF_PRAGMA(x) _Pragma(#x)
#define ACF_PARALLEL(dev, work) ACF_PRAGMA(omp parallel for schedule(static) num_threads(acf_threads_for(dev, work)))
/* Same, for iterations of uneven cost (rows with subsets of different size). */
#define ACF_PARALLEL_UNEVEN(dev, work)                                                                                 \
    ACF_PRAGMA(omp parallel for schedule(dynamic, 8) num_threads(acf_threads_for(dev, work)))
#define ACF_SIMD ACF_PRAGMA(omp simd)

/* Elements of a flat array that one iteration of a parallel loop handles. The number is fixed, so partial sums are
 * too. */
#define ACF_CHUNK 4096

/* Called for each finished tile of a product, rows [r0,r1) and columns [c0,c1), while the tile is still in cache. */
typedef void (*acf_epilogue)(void *ctx, int64_t r0, int64_t r1, int64_t c0, int64_t c1);

/* True if this CPU can multiply in bf16 and acf_real is float. */
bool acf_cpu_has_bf16(void);

/* The product of device.h with an epilogue (NULL: none), which also runs when K = 0. Uses bf16 if dev->precision
 * says so. */
void acf_cpu_gemm(const acf_device *dev, const acf_gemm *g, acf_epilogue done, void *ctx);

/* A right factor shared by several products: op(b) (K,N), packed once for all of them. */
typedef struct acf_right {
    acf_gemm g;             /* b, tb, N and K */
    const acf_real *panels; /* NULL: products in bf16, each of which packs b itself */
} acf_right;

/* Reals of caller-owned memory that the factor needs, aligned to 64 bytes. */
int64_t acf_right_capacity(int64_t K, int64_t N);
/* Borrows the memory and b as long as products use them. tb: b is (N,K). Uses bf16 if dev->precision says so. */
acf_right acf_right_make(const acf_device *dev, acf_real *memory, bool tb, int64_t K, int64_t N, const acf_real *b,
                         int64_t ldb);
/* c (M,N) = a (M,K) · op(b) + beta · c on the calling thread. The bits of an element depend only on its row and
 * column. A recurrent loop can therefore run each thread's rows through all steps, with no synchronisation between
 * threads. */
void acf_right_times(const acf_right *r, int64_t M, const acf_real *a, int64_t lda, acf_real beta, acf_real *c,
                     int64_t ldc);

/* out (C) += sum over rows of x (N,C) with leading dimension ld; rows are added in order. */
void acf_cpu_colsum(const acf_device *dev, acf_real *out, const acf_real *x, int64_t N, int64_t C, int64_t ld);

#endif
