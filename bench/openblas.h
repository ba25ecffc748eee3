/* OpenBLAS as a reference. It is loaded at run time if it is installed (Debian's libopenblas0-pthread). Nothing else of
 * acflow uses it, and without it the benchmarks leave out its figures. */
#ifndef ACF_BENCH_OPENBLAS_H
#define ACF_BENCH_OPENBLAS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

enum { BLAS_ROWS = 101, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112 };

typedef struct openblas {
    void (*sgemm)(int order, int ta, int tb, int M, int N, int K, float alpha, const float *a, int lda, const float *b,
                  int ldb, float beta, float *c, int ldc);
    void (*sgetrf)(const int *m, const int *n, float *a, const int *lda, int *pivots, int *info);
    void (*set_threads)(int threads);
    char *(*core)(void); /* the kernels chosen for this CPU */
} openblas;

/* NULL: it is not installed. Starts with one thread. */
static inline const openblas *openblas_load(void) {
    static openblas b;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) return NULL;
    b.sgemm = dlsym(library, "cblas_sgemm"), b.sgetrf = dlsym(library, "sgetrf_");
    b.set_threads = dlsym(library, "openblas_set_num_threads"), b.core = dlsym(library, "openblas_get_corename");
    if (!b.sgemm || !b.sgetrf || !b.set_threads || !b.core) return NULL;
    b.set_threads(1);
    return &b;
}

#endif
