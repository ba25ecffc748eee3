/* Products with the weights of a GRU: our panels, laid out beforehand, against OpenBLAS (where it is installed), which
 * packs at every call. Checks, then times on one core, in processor time.
 *
 *     lab-panels [REPEATS] */
#include "device/panels.h"
#include "../bench.h"
#include "../openblas.h"
#include "device/cpu.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    const char *what;
    bool ta, tb;
    int64_t N, K, lda, ldb;
} shape;

static const shape shapes[] = {{"h whT", false, true, 768, 256, 256, 256},
                               {"gates wh", false, false, 256, 768, 1024, 256},
                               {"gatesT x", true, false, 256, 1024, 1024, 256}};
enum { SIDE = 1024, VARIANTS = 3 };

/* Leading dimensions as in gru.c: states and weights are as wide as the number of units, the gates four times that. */
static const openblas *blas;

static void run(int variant, const shape *s, int64_t M, const acf_real *a, const acf_real *b, const acf_real *panels,
                acf_real *c) {
    acf_gemm g = {.ta = s->ta,
                  .tb = s->tb,
                  .M = M,
                  .N = s->N,
                  .K = s->K,
                  .alpha = 1,
                  .a = a,
                  .lda = s->lda,
                  .b = b,
                  .ldb = s->ldb,
                  .c = c,
                  .ldc = s->N};
    if (variant == 0)
        blas->sgemm(BLAS_ROWS, s->ta ? BLAS_TRANSPOSED : BLAS_PLAIN, s->tb ? BLAS_TRANSPOSED : BLAS_PLAIN, (int)M,
                    (int)s->N, (int)s->K, 1, a, (int)s->lda, b, (int)s->ldb, 0, c, (int)s->N);
    else if (variant == 1)
        acf_panels_gemm(&g);
    else
        acf_panels_multiply(M, s->N, s->K, a, s->lda, panels, 0, c, s->N);
}

static double rate(int variant, const shape *s, int64_t M, const acf_real *a, const acf_real *b, const acf_real *panels,
                   acf_real *c, int repeats) {
    double flop = 2.0 * (double)(M * s->N * s->K), best = 0;
    int calls = 1 + (int)(2e8 / flop);
    for (int r = 0; r < repeats; r++) {
        double t0 = bench_watch(1);
        for (int i = 0; i < calls; i++) run(variant, s, M, a, b, panels, c);
        best = fmax(best, 1e-9 * flop * calls / (bench_watch(1) - t0));
    }
    return best;
}

int main(int argc, char **argv) {
    int repeats = argc > 1 ? atoi(argv[1]) : 5;
    static const int64_t rows[] = {1, 3, 6, 12, 24, 47, 96, 128, 256, 768};
    blas = openblas_load();
    size_t bytes = (size_t)SIDE * SIDE * sizeof(acf_real);
    acf_real *a = acf_alloc(bytes, "a"), *b = acf_alloc(bytes, "b"), *panels = acf_alloc(bytes, "panels"),
             *c[2] = {acf_alloc(bytes, "c"), acf_alloc(bytes, "c")};
    if (!a || !b || !panels || !c[0] || !c[1]) need(ACF_EMEMORY);
    for (int64_t i = 0; i < SIDE * SIDE; i++) a[i] = (acf_real)(i % 13 - 6) / 8, b[i] = (acf_real)(i % 11 - 5) / 8;
    printf("%-10s %5s %10s %10s %10s   GFLOP/s\n", "", "M", "OpenBLAS", "panels", "laid out");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const shape *s = &shapes[k];
        acf_panels_pack(panels, s->tb, b, s->ldb, s->K, s->N, 0, acf_ceil_div(s->N, ACF_PANELS_WIDTH));
        for (size_t m = 0; m < sizeof rows / sizeof *rows; m++) {
            printf("%-10s %5lld", s->what, (long long)rows[m]);
            if (!blas) printf(" %10s", "-");
            for (int v = !blas; v < VARIANTS - s->ta; v++) {
                memset(c[!!v], 0, bytes);
                run(v, s, rows[m], a, b, panels, c[!!v]); /* exact: small multiples of 1/64 */
                if (v && blas && memcmp(c[0], c[1], bytes)) need(acf_fail(ACF_ENUMERIC, "variant %d differs", v));
                printf(" %10.1f", rate(v, s, rows[m], a, b, panels, c[!!v], repeats));
            }
            printf("\n");
        }
    }
    acf_release(a), acf_release(b), acf_release(panels), acf_release(c[0]), acf_release(c[1]);
    return 0;
}
