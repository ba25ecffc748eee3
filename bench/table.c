/* Speed of the table model on the CPU: the paper's network at d columns, Bernoulli(1/2) masks. Prints one line of JSON.
 * For sampling, log-likelihood, training and training with best guess: rows per second, peak memory, arithmetic per row
 * in GFLOP, and its rate as a fraction of one large sgemm's, timed alternately. bench/table.sh compares it with the
 * PyTorch peer.
 *
 *     bench-table [D] [BATCH] [ROUNDS] [PRESET] [float|bf16]
 *                                                 ACF_NUM_THREADS: threads; bf16: products of training steps */
#include "arithmetic.h"
#include "bench.h"
#include "device/cpu.h"
#include "model/config.h"
#include "model/net.h"
#include "ops/adam.h"
#include "table/masks.h"
#include "train/loss.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

typedef struct bench {
    acf_device *dev;
    acf_tape *t;
    acf_net *net;
    acf_batch *batch;
    acf_masks masks;
    uint32_t step;
    acf_real *out;
    bool bf16;
    double sgemm; /* best rate of the large product */
} bench;

static double watch(const bench *b) { return bench_watch(b->dev->threads); }

static void new_masks(bench *b) {
    for (int64_t i = 0; i < b->batch->N * b->batch->D; i++) b->batch->m[i] = 1;
    acf_masks_draw(b->dev, &b->masks, 1, b->step++, b->batch->N, b->batch->D, b->batch->id, b->batch->b, b->batch->m);
}

static void train(bench *b, double guess_weight) {
    acf_params *ps = acf_net_params(b->net);
    double loss, norm;
    new_masks(b);
    need(acf_params_zero_grad(ps));
    b->dev->precision = b->bf16 ? ACF_PRECISION_BF16 : ACF_PRECISION_FLOAT;
    need(acf_loss_backward(b->t, b->net, b->batch, NULL, &(acf_loss){.guess_weight = guess_weight}, &loss));
    b->dev->precision = ACF_PRECISION_FLOAT;
    need(acf_grad_norm(ps, &norm));
    need(acf_adam_step(ps, &(acf_adam){.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, b->step,
                       acf_clip_factor(norm, 1)));
}

static void run_train(bench *b) { train(b, 0); }
static void run_guess(bench *b) { train(b, 1); }

static void run_loglik(bench *b) {
    new_masks(b);
    acf_tape_begin(b->t, false);
    need(acf_tape_check(b->t, acf_net_logp(b->t, acf_net_view(b->t, b->net, b->batch, NULL))));
}

static void run_sample(bench *b) {
    new_masks(b);
    acf_tape_begin(b->t, false);
    need(acf_net_draw(b->t, acf_net_view(b->t, b->net, b->batch, NULL), &(acf_draw){.seed = 1}, b->out));
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* FLOP of the batch with its current masks. */
static double flops(const bench *b, bool back) {
    bench_work w = bench_work_mean(b->batch->N, b->batch->D, 1); /* tokens and their pairs; nothing is modelled yet */
    for (int64_t i = 0; i < b->batch->N; i++) {
        int64_t u = 0;
        for (int64_t j = 0; j < b->batch->D; j++) u += !b->batch->b[i * b->batch->D + j];
        w.elements += (double)u, w.started += u > 0;
    }
    return bench_flops(acf_net_params(b->net), w, back);
}

enum { SGEMM = 1536 };

/* Rate of one large product in FLOP/s. Its memory is freed after this call, so the model's memory does not include
 * it. */
static double sgemm_rate(bench *b) {
    const int64_t n = (int64_t)SGEMM * SGEMM;
    size_t bytes = (size_t)(2 * n) * sizeof(acf_real);
    acf_real *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (a == MAP_FAILED) need(acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for a product", bytes));
    for (int64_t i = 0; i < n; i++) a[i] = (acf_real)(i % 7 - 3);
    double t0 = watch(b);
    need(acf_device_gemm(b->dev, &(acf_gemm){.M = SGEMM,
                                             .N = SGEMM,
                                             .K = SGEMM,
                                             .alpha = 1,
                                             .a = a,
                                             .lda = SGEMM,
                                             .b = a,
                                             .ldb = SGEMM,
                                             .c = a + n,
                                             .ldc = SGEMM}));
    double seconds = watch(b) - t0;
    munmap(a, bytes);
    return 2.0 * SGEMM * SGEMM * SGEMM / seconds;
}

/* ---- the four jobs ----------------------------------------------------------------------------------------------- */

typedef struct job {
    const char *name;
    void (*run)(bench *);
    bool back;
    double passes; /* forward or forward and backward, of the whole network */
} job;

/* Peak memory so far, after some runs. Measured before any large product, because BLAS keeps its buffers. */
static double peak_mb(bench *b, const job *j) {
    struct rusage usage;
    for (int i = 0; i < 3; i++) j->run(b);
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* Each round is one product and one run: the best of both, and the arithmetic of the best run. */
static void measure(bench *b, const job *j, int rounds, double peak) {
    double best = 1e30, work = 0, limit = 0;
    for (int i = 0; i < rounds; i++) {
        double rate = sgemm_rate(b), t0 = watch(b);
        j->run(b);
        double s = watch(b) - t0;
        if (rate > limit) limit = rate;
        if (s < best) best = s, work = j->passes * flops(b, j->back);
    }
    double rows = (double)b->batch->N / best;
    printf(", \"%s_rows_s\": %.0f, \"%s_peak_mb\": %.0f, \"%s_gflop_row\": %.4f, \"%s_limit_rows_s\": %.0f, "
           "\"%s_of_sgemm\": %.2f",
           j->name, rows, j->name, peak, j->name, 1e-9 * work / (double)b->batch->N, j->name,
           limit / work * (double)b->batch->N, j->name, work / best / limit);
    b->sgemm = limit > b->sgemm ? limit : b->sgemm;
}

static void open_bench(bench *b, int64_t D, int64_t N, const char *preset) {
    acf_options *o;
    need(acf_config_create(&o));
    need(acf_options_set_text(o, "preset", preset));
    need(acf_config_finish(o));
    need(acf_device_open_cpu((int)acf_options_int(o, "threads"), &b->dev));
    need(acf_tape_create(b->dev, NULL, &b->t));
    need(acf_net_create(b->dev, NULL, D, o, 1, true, &b->net));
    need(acf_batch_create(N, D, &b->batch));
    need(acf_masks_parse("bernoulli:0.5", &b->masks));
    acf_options_free(o);
    b->batch->N = N;
    b->out = acf_alloc((size_t)(N * D) * sizeof *b->out, "samples");
    if (!b->out) need(ACF_EMEMORY);
    for (int64_t i = 0; i < N * D; i++)
        b->batch->x[i] =
            (acf_real)acf_rng_normal((acf_rng_counter){.seed = 1, .row = (uint64_t)i, .stream = ACF_STREAM_SYNTH});
    for (int64_t i = 0; i < N; i++) b->batch->id[i] = (uint64_t)i;
}

static void close_bench(bench *b) {
    acf_release(b->out);
    acf_batch_free(b->batch);
    acf_net_free(b->net);
    acf_tape_free(b->t);
    acf_device_close(b->dev);
}

int main(int argc, char **argv) {
    int64_t D = argc > 1 ? atoll(argv[1]) : 8, N = argc > 2 ? atoll(argv[2]) : 256;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    bench b = {.bf16 = argc > 5 && strcmp(argv[5], "bf16") == 0 && acf_cpu_has_bf16()};
    open_bench(&b, D, N, argc > 4 ? argv[4] : "paper");
    enum { JOBS = 4 };
    static const job jobs[JOBS] = {{"sample", run_sample, false, 1},
                                   {"loglik", run_loglik, false, 1},
                                   {"train", run_train, true, 1},
                                   {"train_guess", run_guess, true, 2}};
    printf("{\"d\": %lld, \"batch\": %lld, \"params\": %lld", (long long)D, (long long)N,
           (long long)acf_net_params(b.net)->total);
    double peak[JOBS];
    for (int k = 0; k < JOBS; k++)
        peak[k] = peak_mb(&b, &jobs[k]); /* from the smallest to the largest: the peak only grows */
    for (int k = 0; k < JOBS; k++) measure(&b, &jobs[k], rounds, peak[k]);
    printf(", \"sgemm_gflop_s\": %.0f, \"threads\": %d, \"precision\": \"%s\"}\n", 1e-9 * b.sgemm, b.dev->threads,
           b.bf16 ? "bf16" : "float");
    close_bench(&b);
    return 0;
}
