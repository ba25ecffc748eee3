/* Matrix products with the right factor packed in panels, for acf_real, on this library's own kernels.
 *
 * Reason: a BLAS packs both factors at every call. A recurrent network multiplies the same weights (768,256) at
 * every step with the remaining rows, 250 down to one; there packing takes a tenth to two thirds of the time. Here
 * the weights are packed once and used by all steps, and the left factor is read in place. The rate is the same from
 * 6 rows on (bench/lab/panels.c).
 *
 * The bits of an element depend only on its row of a and its column of b. It is one sum along K: in blocks that
 * start at multiples of ACF_PANELS_DEPTH if b is packed during the call, in one block if it was packed before.
 * Callers may therefore divide rows and columns among any number of threads, in any way, and get the same bits. */
#ifndef ACF_DEVICE_PANELS_H
#define ACF_DEVICE_PANELS_H

#include "device/device.h"

#define ACF_PANELS_LANES ((int64_t)(64 / sizeof(acf_real))) /* numbers of a vector */
#define ACF_PANELS_WIDTH (4 * ACF_PANELS_LANES)             /* columns of a panel */
#define ACF_PANELS_ROWS 6                                   /* rows of a that a kernel handles at once */
#define ACF_PANELS_DEPTH 256

/* Instruction sets that have kernels; plain is the target of the build. */
typedef enum acf_panels_set { ACF_PANELS_PLAIN, ACF_PANELS_AVX2, ACF_PANELS_AVX512, ACF_PANELS_SETS } acf_panels_set;

/* The best that this CPU supports. The plain kernels are correct, but slow where registers are few (x86 without
 * AVX2). */
acf_panels_set acf_panels_best(void);

#ifdef ACF_DEBUG
/* For tests: limits the instruction set, in every thread. The initial limit is ACF_PANELS_AVX512. */
void acf_panels_limit(acf_panels_set most);
#endif

/* Numbers in the panels of b (K,N): N is rounded up to whole panels. */
int64_t acf_panels_count(int64_t K, int64_t N);

/* Packs panels [p0,p1) of op(b) (K,N). Panel p starts at out + p·K·WIDTH and has columns p·WIDTH and up,
 * [k][column], with zeros beyond N. out is aligned to 64 bytes. tb: b is (N,K). */
void acf_panels_pack(acf_real *out, bool tb, const acf_real *b, int64_t ldb, int64_t K, int64_t N, int64_t p0,
                     int64_t p1);

/* c (M,N) = a (M,K) · b (K,N) + beta · c with b in panels, on the calling thread. With beta 0, c is not read. */
void acf_panels_multiply(int64_t M, int64_t N, int64_t K, const acf_real *a, int64_t lda, const acf_real *panels,
                         acf_real beta, acf_real *c, int64_t ldc);

/* The product of device.h on the calling thread, with neither factor packed. Uses 450 KB of stack. */
void acf_panels_gemm(const acf_gemm *g);

#endif
