/* Speed of the engine, as ratios inside one run: GRU and MLP against one large sgemm on the same cores, ragged against
 * full subsets, batched LU against LAPACK, and the tape's own cost. The references are OpenBLAS where it is installed
 * (openblas.h). Without it the large product is acflow's own, and the line against LAPACK is left out. Machines are
 * shared and noisy, so every figure is the best of several interleaved rounds, and none is compared with a figure of
 * another run.
 *
 *     bench-engine [--threads N] [--rounds N]          prints one table; bench/run.sh adds PyTorch's GRU if
 * installed */
#include "bench.h"
#include "openblas.h"
#include "ops/gru.h"
#include "ops/lu.h"

#include <math.h>
#include <string.h>

static void *get(size_t bytes) {
    void *p = acf_alloc(bytes, "a benchmark");
    if (!p) need(ACF_EMEMORY);
    return p;
}

static void fill(acf_real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = (acf_real)((double)(i * 2654435761u % 2000) / 1000.0 - 1.0);
}

/* ---- one workload: a function to time, and its FLOP -------------------------------------------------------------- */

typedef struct bench bench;
struct bench {
    const char *name;
    double flops;          /* of one run; 0 where a rate makes no sense */
    void (*run)(bench *b); /* NULL where the reference is not installed */
    double best;           /* seconds */
    const openblas *blas;
    acf_device *dev;
    acf_tape *tape;
    acf_params *params;
    uint8_t *observed; /* (N,D) or NULL */
    int64_t N, D;
    acf_param *p[16];
    acf_real *x, *y, *w;
    int64_t count;
};

static void time_all(bench *b, int n, int rounds) {
    for (int i = 0; i < n; i++) {
        b[i].best = 1e30;
        if (b[i].run) b[i].run(&b[i]); /* warm up: arenas, pages, threads */
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n; i++) {
            if (!b[i].run) continue;
            double t0 = now();
            b[i].run(&b[i]);
            double s = now() - t0;
            if (s < b[i].best) b[i].best = s;
        }
}

/* ---- sgemm ------------------------------------------------------------------------------------------------------- */

#define GEMM 1536

/* OpenBLAS with its own threads: the speed of the machine. */
static void run_sgemm(bench *b) {
    b->blas->set_threads(b->dev->threads);
    b->blas->sgemm(BLAS_ROWS, BLAS_PLAIN, BLAS_TRANSPOSED, GEMM, GEMM, GEMM, 1, b->x, GEMM, b->w, GEMM, 0, b->y, GEMM);
    b->blas->set_threads(1);
}

static void run_tiled(bench *b) {
    need(acf_device_gemm(b->dev, &(acf_gemm){.tb = true,
                                             .M = GEMM,
                                             .N = GEMM,
                                             .K = GEMM,
                                             .alpha = 1,
                                             .a = b->x,
                                             .lda = GEMM,
                                             .b = b->w,
                                             .ldb = GEMM,
                                             .c = b->y,
                                             .ldc = GEMM}));
}

static void make_gemm(bench *b, bench *tiled, acf_device *dev, const openblas *blas) {
    int64_t n = (int64_t)GEMM * GEMM;
    *b = (bench){.name = "sgemm 1536, OpenBLAS threads",
                 .flops = 2.0 * GEMM * GEMM * GEMM,
                 .run = blas ? run_sgemm : NULL,
                 .blas = blas,
                 .dev = dev};
    b->x = get((size_t)n * sizeof *b->x), b->w = get((size_t)n * sizeof *b->w), b->y = get((size_t)n * sizeof *b->y);
    fill(b->x, n), fill(b->w, n);
    *tiled = *b;
    tiled->name = "sgemm 1536, acflow's tiles";
    tiled->run = run_tiled;
}

/* ---- GRU: hidden 256, 2 layers, batch 256, 8 steps --------------------------------------------------------------- */

enum { HIDDEN = 256, BATCH = 256, STEPS = 8, LAYERS = 2 };

static void open_engine(bench *b, acf_device *dev) {
    b->dev = dev;
    need(acf_tape_create(dev, NULL, &b->tape));
    need(acf_params_create(dev, &b->params));
}

/* Forward, backward and the loss sum of x over the subset; the loss's own cost is that of one linear layer with one
 * output. */
static void run_gru(bench *b) {
    acf_tape *t = b->tape;
    const acf_subset *u;
    acf_tape_begin(t, true);
    need(acf_params_zero_grad(b->params));
    need(acf_subset_build(t->mem, b->observed, NULL, b->N, b->D, &u));
    acf_tensor *x = acf_tensor_wrap(t, b->x, 2, (int64_t[]){u->T, HIDDEN});
    x = acf_tensor_as_packed(t, x, u);
    acf_gru w[LAYERS];
    for (int l = 0; l < LAYERS; l++)
        w[l] =
            (acf_gru){acf_p(b->p[l * 4]), NULL, acf_p(b->p[l * 4 + 1]), acf_p(b->p[l * 4 + 2]), acf_p(b->p[l * 4 + 3])};
    acf_tensor *h = acf_gru_stack(t, x, NULL, LAYERS, w, u, NULL);
    /* (T,H) · (1,H)ᵀ, then (1,T) · (1,T)ᵀ: a scalar with gradients everywhere. */
    acf_tensor *y = acf_linear(t, h, acf_p(b->p[8]), NULL, ACF_IDENTITY);
    acf_tensor *ones = acf_tensor_wrap(t, b->y, 2, (int64_t[]){1, u->T});
    need(acf_tape_backward(t, acf_linear(t, acf_tensor_view(t, y, 2, (int64_t[]){1, u->T}), ones, NULL, ACF_IDENTITY)));
}

static void make_gru(bench *b, acf_device *dev, const char *name, bool half) {
    *b = (bench){.name = name, .run = run_gru, .N = BATCH, .D = STEPS};
    open_engine(b, dev);
    for (int l = 0; l < LAYERS; l++) {
        const char *names[4] = {"wx", "bx", "wh", "bh"};
        for (int k = 0; k < 4; k++) {
            char full[32];
            snprintf(full, sizeof full, "%d.%s", l, names[k]);
            b->p[l * 4 + k] =
                k % 2 ? acf_param_add(b->params, full, ACF_INIT_CONST, 0, 1, (int64_t[]){3 * HIDDEN})
                      : acf_param_add(b->params, full, ACF_INIT_UNIFORM, 1, 2, (int64_t[]){3 * HIDDEN, HIDDEN});
        }
    }
    b->p[8] = acf_param_add(b->params, "head", ACF_INIT_UNIFORM, 1, 2, (int64_t[]){1, HIDDEN});
    need(acf_params_build(b->params, 1, true));
    int64_t cells = b->N * b->D, T = 0;
    b->observed = get((size_t)cells);
    for (int64_t i = 0; i < cells; i++) { /* half: Bernoulli(1/2) masks, as in training */
        b->observed[i] = half && (i * 2654435761u >> 7 & 1);
        T += !b->observed[i];
    }
    b->x = get((size_t)(T * HIDDEN) * sizeof *b->x), b->y = get((size_t)T * sizeof *b->y);
    fill(b->x, T * HIDDEN);
    for (int64_t i = 0; i < T; i++) b->y[i] = ACF_R(1e-3);
    b->flops =
        3.0 * LAYERS * 2.0 * (double)T * 3.0 * HIDDEN * (2.0 * HIDDEN); /* x and h sides, forward and twice backward */
    b->flops -= 2.0 * (double)T * 3.0 * HIDDEN * HIDDEN;                /* no dx for the first layer's input */
}

/* ---- MLP: 256 -> 256 -> 256 -> 256, tanh, batch 2048 ------------------------------------------------------------- */

enum { MLP_BATCH = 2048, MLP_LAYERS = 3 };

static void run_mlp(bench *b) {
    acf_tape *t = b->tape;
    acf_tape_begin(t, true);
    need(acf_params_zero_grad(b->params));
    acf_tensor *h = acf_tensor_wrap(t, b->x, 2, (int64_t[]){MLP_BATCH, HIDDEN});
    for (int l = 0; l < MLP_LAYERS; l++) h = acf_linear(t, h, acf_p(b->p[l * 2]), acf_p(b->p[l * 2 + 1]), ACF_TANH);
    acf_tensor *y = acf_linear(t, h, acf_p(b->p[8]), NULL, ACF_IDENTITY);
    acf_tensor *ones = acf_tensor_wrap(t, b->y, 2, (int64_t[]){1, MLP_BATCH});
    need(acf_tape_backward(
        t, acf_linear(t, acf_tensor_view(t, y, 2, (int64_t[]){1, MLP_BATCH}), ones, NULL, ACF_IDENTITY)));
}

static void make_mlp(bench *b, acf_device *dev) {
    *b = (bench){.name = "MLP 3x256 tanh, batch 2048, forward+backward", .run = run_mlp};
    open_engine(b, dev);
    for (int l = 0; l < MLP_LAYERS; l++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", l);
        b->p[l * 2] = acf_param_add(b->params, name, ACF_INIT_UNIFORM, 1, 2, (int64_t[]){HIDDEN, HIDDEN});
        snprintf(name, sizeof name, "b%d", l);
        b->p[l * 2 + 1] = acf_param_add(b->params, name, ACF_INIT_CONST, 0, 1, (int64_t[]){HIDDEN});
    }
    b->p[8] = acf_param_add(b->params, "head", ACF_INIT_UNIFORM, 1, 2, (int64_t[]){1, HIDDEN});
    need(acf_params_build(b->params, 1, true));
    b->x = get((size_t)(MLP_BATCH * HIDDEN) * sizeof *b->x), b->y = get((size_t)MLP_BATCH * sizeof *b->y);
    fill(b->x, MLP_BATCH * HIDDEN);
    for (int64_t i = 0; i < MLP_BATCH; i++) b->y[i] = ACF_R(1e-3);
    b->flops = (3.0 * MLP_LAYERS - 1) * 2.0 * MLP_BATCH * HIDDEN * HIDDEN; /* no dx for the first layer */
}

/* ---- the tape's own cost: 1,000 operations on one element, recorded, run forward and back ------------------------ */

enum { TAPE_OPS = 1000 };

static void run_tape(bench *b) {
    acf_tape_begin(b->tape, true);
    acf_tensor *x = acf_tensor_view(b->tape, acf_p(b->p[0]), 1, (int64_t[]){1});
    for (int i = 0; i < TAPE_OPS; i++) x = acf_act(b->tape, ACF_TANH, x);
    need(acf_tape_backward(b->tape, x));
}

static void make_tape(bench *b, acf_device *dev) {
    *b = (bench){.name = "tape: 1,000 tiny operations, forward+backward", .run = run_tape};
    open_engine(b, dev);
    b->p[0] = acf_param_add(b->params, "x", ACF_INIT_CONST, 0.5, 1, (int64_t[]){1});
    need(acf_params_build(b->params, 1, true));
}

/* ---- log|det| of 1,024 matrices of size 32 ----------------------------------------------------------------------- */

enum { LU_ROWS = 1024, LU_SIZE = 32 };

/* The usual code with LAPACK: factorise one by one, add up the logarithms. */
static void run_sgetrf(bench *b) {
    const int n = LU_SIZE;
    int pivots[LU_SIZE], info;
    memcpy(b->w, b->x, (size_t)(LU_ROWS * n * n) * sizeof *b->w);
    for (int i = 0; i < LU_ROWS; i++) {
        acf_real *a = b->w + i * n * n;
        b->blas->sgetrf(&n, &n, a, &n, pivots, &info);
        double sum = 0;
        for (int k = 0; k < n; k++) sum += log(fabs((double)a[k * (n + 1)]));
        b->y[i] = (acf_real)sum;
    }
}

static void run_lu(bench *b) {
    const acf_subset *u;
    acf_tape_begin(b->tape, false);
    need(acf_subset_build(b->tape->mem, NULL, NULL, LU_ROWS, LU_SIZE, &u));
    acf_tensor *list = acf_tensor_wrap(b->tape, b->x, 1, &u->square[u->N]);
    acf_tensor *ld = acf_lu_logdet(b->tape, acf_lu_factor(b->tape, list, u));
    need(acf_tape_status(b->tape));
    b->w[0] = ld->data[LU_ROWS - 1];
}

static void make_lu(bench *lapack, bench *ours, acf_device *dev, const openblas *blas) {
    int64_t n = LU_ROWS * LU_SIZE * LU_SIZE;
    *lapack = (bench){.name = "log|det| of 1,024 matrices of size 32, sgetrf in a loop",
                      .run = blas ? run_sgetrf : NULL,
                      .blas = blas};
    lapack->x = get((size_t)n * sizeof *lapack->x), lapack->w = get((size_t)n * sizeof *lapack->w);
    lapack->y = get(LU_ROWS * sizeof *lapack->y);
    fill(lapack->x, n);
    for (int64_t i = 0; i < LU_ROWS; i++) /* well conditioned */
        for (int64_t k = 0; k < LU_SIZE; k++) lapack->x[i * LU_SIZE * LU_SIZE + k * (LU_SIZE + 1)] += LU_SIZE;
    *ours = (bench){.name = "log|det| of 1,024 matrices of size 32, batched LU", .run = run_lu, .x = lapack->x};
    open_engine(ours, dev);
    ours->w = get(sizeof *ours->w);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

enum { SGEMM, TILED, GRU, GRU_HALF, MLP, SGETRF, LU, TAPE, BENCHES };

static int missed;

/* One line: a ratio, its reference, and whether the target is met. */
static void line(const bench *b, const char *rate, double ratio, const char *of, bool at_least, double target) {
    bool ok = at_least ? ratio >= target : ratio <= target;
    missed += !ok;
    printf("%-56s %9.3f ms %-14s %5.2f %s; target %s %.2f: %s\n", b->name, b->best * 1e3, rate, ratio, of,
           at_least ? ">=" : "<=", target, ok ? "ok" : "MISSED");
}

static const char *rate_of(const bench *b, char text[32]) {
    snprintf(text, 32, "%.0f GFLOP/s", b->flops / b->best * 1e-9);
    return text;
}

int main(int argc, char **argv) {
    int threads = 0, rounds = 15;
    double torch_ms = 0;
    const char *torch_label = "PyTorch";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) threads = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--torch-ms") == 0) torch_ms = atof(argv[i + 1]);
        if (strcmp(argv[i], "--torch-label") == 0) torch_label = argv[i + 1];
    }
    acf_device *dev;
    need(acf_device_open_cpu(threads, &dev));
    const openblas *blas = openblas_load();
    bench b[BENCHES];
    make_gemm(&b[SGEMM], &b[TILED], dev, blas);
    make_gru(&b[GRU], dev, "GRU 2x256, batch 256, 8 steps, forward+backward", false);
    make_gru(&b[GRU_HALF], dev, "the same, half the columns observed", true);
    make_mlp(&b[MLP], dev);
    make_lu(&b[SGETRF], &b[LU], dev, blas);
    make_tape(&b[TAPE], dev);
    time_all(b, BENCHES, rounds);
    /* The limit is the faster of the two large products; one that did not run has a rate of 0. */
    double limit = fmax(b[SGEMM].flops / b[SGEMM].best, b[TILED].flops / b[TILED].best);
    char text[32];
    printf("%d threads, best of %d interleaved rounds; OpenBLAS %s\n", dev->threads, rounds,
           blas ? blas->core() : "is not installed");
    if (blas) printf("%-56s %9.3f ms %s\n", b[SGEMM].name, b[SGEMM].best * 1e3, rate_of(&b[SGEMM], text));
    printf("%-56s %9.3f ms %s\n", b[TILED].name, b[TILED].best * 1e3, rate_of(&b[TILED], text));
    line(&b[GRU], rate_of(&b[GRU], text), b[GRU].flops / b[GRU].best / limit, "of the faster sgemm", true, 0.60);
    line(&b[GRU_HALF], rate_of(&b[GRU_HALF], text), b[GRU_HALF].best / b[GRU].best, "of the full time", false, 0.65);
    line(&b[MLP], rate_of(&b[MLP], text), b[MLP].flops / b[MLP].best / limit, "of the faster sgemm", true, 0.60);
    if (blas) printf("%-56s %9.3f ms\n", b[SGETRF].name, b[SGETRF].best * 1e3);
    if (blas)
        line(&b[LU], "", b[LU].best / b[SGETRF].best, "of the sgetrf loop", false, 2.0);
    else
        printf("%-56s %9.3f ms\n", b[LU].name, b[LU].best * 1e3);
    line(&b[TAPE], "", b[TAPE].best / TAPE_OPS * 1e6, "us per operation", false, 1.0);
    if (torch_ms > 0)
        printf("the same GRU in %s: %.3f ms, %.2f times acflow's\n", torch_label, torch_ms,
               torch_ms * 1e-3 / b[GRU].best);
    return missed != 0;
}
