/* Kernel lab for the per-row matrices: batched LU against a plain loop over LAPACK (OpenBLAS, which must be installed).
 * Checks, then times.
 *
 *     make build/lab-lu && build/lab-lu
 *
 * The loop is serial, single-threaded sgetrf and a sum of logs; ours is the function that a model calls, on 1 and on 2
 * threads. */
#include "ops/lu.h"
#include "../bench.h"
#include "../openblas.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS 21

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

/* N matrices of size n: random, with 2 on the diagonal. */
static float *random_matrices(int64_t N, int64_t n) {
    float *m = malloc((size_t)(N * n * n) * sizeof *m);
    if (!m) exit(1);
    for (int64_t i = 0; i < N * n * n; i++)
        m[i] = (float)(acf_rng_uniform((acf_rng_counter){.seed = 1, .row = (uint64_t)i, .stream = ACF_STREAM_TEST}) -
                       0.5) +
               (i % (n * n) % (n + 1) == 0 ? 2 : 0);
    return m;
}

static void lapack_logdet(const openblas *blas, float *ld, float *work, int *pivots, const float *m, int64_t N,
                          int64_t n) {
    const int size = (int)n;
    int info;
    memcpy(work, m, (size_t)(N * n * n) * sizeof *work);
    for (int64_t i = 0; i < N; i++) {
        float *a = work + i * n * n;
        blas->sgetrf(&size, &size, a, &size, pivots, &info);
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += log(fabs((double)a[k * (n + 1)]));
        ld[i] = (float)sum;
    }
}

/* One step of a tape: factors and log-determinant, with `train` also their backward. */
static const float *our_logdet(acf_tape *t, float *m, const acf_subset *u, bool train) {
    acf_tape_begin(t, train);
    acf_tensor *list = acf_tensor_wrap(t, m, 1, &u->square[u->N]);
    list->needs_grad = train;
    acf_tensor *ld = acf_lu_logdet(t, acf_lu_factor(t, list, u));
    need(acf_tape_status(t));
    if (train) {
        /* Backward of one node without a loss: its gradient is set by hand, and the node runs. */
        acf_real *g = acf_grad(t, ld);
        for (int64_t i = 0; i < u->N; i++) g[i] = 1;
        need(t->last->op->cpu.backward(t, t->last));
    }
    return ld->data;
}

typedef struct timing {
    double lapack, ours, both; /* medians, seconds: sgetrf loop; factor + logdet; the same and its backward */
    int64_t wrong;             /* rows whose log-determinants disagree */
} timing;

static timing time_logdet(const openblas *blas, int threads, int64_t N, int64_t n) {
    acf_device *dev;
    acf_tape *t;
    acf_arena *arena;
    const acf_subset *u;
    need(acf_device_open_cpu(threads, &dev));
    need(acf_tape_create(dev, NULL, &t));
    need(acf_arena_create(&acf_heap, 0, &arena));
    need(acf_subset_build(arena, NULL, NULL, N, n, &u));
    float *m = random_matrices(N, n), *work = malloc((size_t)(N * n * n) * sizeof *work),
          *ld = malloc((size_t)N * sizeof *ld);
    int *pivots = malloc((size_t)n * sizeof *pivots);
    if (!work || !ld || !pivots) exit(1);
    double lapack[REPEATS], ours[REPEATS], both[REPEATS];
    int64_t wrong = 0;
    for (int k = 0; k < REPEATS; k++) { /* interleaved, so that a slow moment of the machine affects all */
        double t0 = now();
        lapack_logdet(blas, ld, work, pivots, m, N, n);
        double t1 = now();
        const float *mine = our_logdet(t, m, u, false);
        double t2 = now();
        for (int64_t i = 0; i < N; i++) wrong += !(fabsf(mine[i] - ld[i]) <= 1e-4f * (1 + fabsf(ld[i])));
        double t3 = now();
        our_logdet(t, m, u, true);
        double t4 = now();
        lapack[k] = t1 - t0, ours[k] = t2 - t1, both[k] = t4 - t3;
    }
    free(m), free(work), free(ld), free(pivots);
    acf_arena_free(arena);
    acf_tape_free(t);
    acf_device_close(dev);
    return (timing){median(lapack, REPEATS), median(ours, REPEATS), median(both, REPEATS), wrong};
}

int main(void) {
    int64_t wrong = 0;
    const openblas *blas = openblas_load();
    if (!blas) need(acf_fail(ACF_EUSAGE, "OpenBLAS is not installed"));
    printf("      N    n  threads   sgetrf loop   factor+logdet   ratio   with backward\n");
    for (int threads = 1; threads <= 2; threads++)
        for (int64_t n = 4; n <= 512; n *= 2) {
            int64_t N = n <= 64 ? 1024 : n == 128 ? 128 : 16;
            timing x = time_logdet(blas, threads, N, n);
            printf("%7lld %4lld %8d %10.3f ms %12.3f ms %7.2f %12.3f ms\n", (long long)N, (long long)n, threads,
                   1e3 * x.lapack, 1e3 * x.ours, x.ours / x.lapack, 1e3 * x.both);
            wrong += x.wrong;
        }
    if (wrong) printf("%lld rows disagree with LAPACK\n", (long long)wrong);
    return wrong != 0;
}
