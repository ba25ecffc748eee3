/* Products with the right factor laid out in panels, for acf_real, on kernels of our own.
 *
 * Why not a BLAS: it packs both factors at every call. A recurrent network multiplies the same weights (768,256) at every step with
 * the few rows that are left, 250 down to one; there packing takes a tenth to two thirds of the time. Here the weights are laid out
 * once and then used by all steps, the left factor is read where it lies, and the rate is the same from 6 rows on (bench/lab/panels.c).
 *
 * An element's bits depend on its row of a and its column of b alone: one sum along K, in blocks that start at multiples of
 * ACF_PANELS_DEPTH where b is packed on the way, in a single one where it was laid out before. So callers may share out rows and columns
 * among any number of threads, in any way, and get the same bits. */
#ifndef ACF_DEVICE_PANELS_H
#define ACF_DEVICE_PANELS_H

#include "device/device.h"

#define ACF_PANELS_LANES ((int64_t)(64 / sizeof(acf_real))) /* numbers of a vector */
#define ACF_PANELS_WIDTH (4 * ACF_PANELS_LANES)             /* columns of a panel */
#define ACF_PANELS_ROWS 6                                   /* of a that a kernel takes at once */
#define ACF_PANELS_DEPTH 256

/* Instructions that the kernels are there for; plain is what the build was told to use. */
typedef enum acf_panels_set { ACF_PANELS_PLAIN, ACF_PANELS_AVX2, ACF_PANELS_AVX512, ACF_PANELS_SETS } acf_panels_set;

/* The best that this CPU has. Plain ones are right, but slow where registers are few (x86 without AVX2). */
acf_panels_set acf_panels_best(void);

#ifdef ACF_DEBUG
/* Tests: from now on no better than this, in every thread. ACF_PANELS_AVX512 is what it starts with. */
void acf_panels_limit(acf_panels_set most);
#endif

/* Numbers that the panels of b (K,N) take: N is rounded up to whole panels. */
int64_t acf_panels_count(int64_t K, int64_t N);

/* Lays out panels [p0,p1) of op(b) (K,N): panel p, at out + p·K·WIDTH, has columns p·WIDTH and up, [k][column], zeros beyond N. out is
 * aligned to 64 bytes. tb: b is (N,K). */
void acf_panels_pack(acf_real *out, bool tb, const acf_real *b, int64_t ldb, int64_t K, int64_t N, int64_t p0,
                     int64_t p1);

/* c (M,N) = a (M,K) · b (K,N) + beta · c with b in panels, on the calling thread. beta 0: c is not read. */
void acf_panels_multiply(int64_t M, int64_t N, int64_t K, const acf_real *a, int64_t lda, const acf_real *panels,
                         acf_real beta, acf_real *c, int64_t ldc);

/* The product of device.h on the calling thread, with both factors as they are. Takes 450 KB of stack. */
void acf_panels_gemm(const acf_gemm *g);

#endif
