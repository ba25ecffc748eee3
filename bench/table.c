/* Speed of the table model: the paper's network at d columns, Bernoulli(1/2) masks, on the CPU. Prints rows per second for training,
 * training with best guess, log-likelihood and sampling, and peak memory; bench/table.sh sets the PyTorch peer beside it.
 *
 *     bench-table [D] [BATCH] [ROUNDS] [PRESET] [NAME=VALUE...]          options of the model, and threads=N */
#include "bench.h"
#include "data/masks.h"
#include "model/config.h"
#include "model/net.h"
#include "ops/adam.h"
#include "ops/arith.h"
#include "ops/reduce.h"

#include <sys/resource.h>

typedef struct bench {
    acf_device *dev;
    acf_tape *t;
    acf_net *net;
    acf_batch *batch;
    acf_masks masks;
    uint32_t step;
    acf_real *out;
} bench;

static void new_masks(bench *b) {
    for (int64_t i = 0; i < b->batch->N * b->batch->D; i++) b->batch->m[i] = 1;
    acf_masks_draw(b->dev, &b->masks, 1, b->step++, b->batch->N, b->batch->D, b->batch->id, b->batch->b, b->batch->m);
}

static void train(bench *b, bool guess) {
    acf_params *ps = acf_net_params(b->net);
    new_masks(b);
    acf_tape_begin(b->t, true);
    need(acf_params_zero_grad(ps));
    acf_view *v = acf_net_view(b->t, b->net, b->batch, NULL);
    acf_tensor *loss = acf_scale(b->t, -1, acf_mean(b->t, acf_net_logp(b->t, v)));
    if (guess) loss = acf_add(b->t, loss, acf_mean(b->t, acf_net_guess_error(b->t, v)));
    need(acf_tape_backward(b->t, loss));
    double norm;
    need(acf_grad_norm(ps, &norm));
    need(acf_adam_step(ps, &(acf_adam){.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, b->step, acf_clip_factor(norm, 1)));
}

static void run_train(bench *b) { train(b, false); }
static void run_guess(bench *b) { train(b, true); }

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

static double rate(bench *b, void (*run)(bench *), int rounds) {
    double best = 1e30;
    run(b);
    for (int i = 0; i < rounds; i++) {
        double t0 = now();
        run(b);
        double s = now() - t0;
        if (s < best) best = s;
    }
    return (double)b->batch->N / best;
}

static int threads; /* 0: all cores */

static void set_option(acf_options *o, const char *text) {
    char name[64];
    int length = 0;
    if (sscanf(text, "threads=%d", &threads) == 1) return;
    if (sscanf(text, "%63[^=]=%n", name, &length) != 1 || length == 0) need(acf_fail(ACF_EUSAGE, "'%s' is not NAME=VALUE", text));
    need(acf_opts_set(o, name, text + length));
}

int main(int argc, char **argv) {
    int64_t D = argc > 1 ? atoll(argv[1]) : 8, N = argc > 2 ? atoll(argv[2]) : 256;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    bench b = {0};
    acf_options *o;
    need(acf_config_create(&o));
    need(acf_opts_set(o, "preset", argc > 4 ? argv[4] : "paper"));
    for (int i = 5; i < argc; i++) set_option(o, argv[i]);
    need(acf_config_finish(o));
    need(acf_device_open_cpu(threads, &b.dev));
    need(acf_tape_create(b.dev, NULL, &b.t));
    need(acf_net_create(b.dev, NULL, D, o, 1, true, &b.net));
    need(acf_batch_create(N, D, &b.batch));
    need(acf_masks_parse("bernoulli:0.5", &b.masks));
    b.batch->N = N;
    b.out = acf_alloc((size_t)(N * D) * sizeof *b.out, "samples");
    if (!b.out) need(ACF_EMEMORY);
    for (int64_t i = 0; i < N * D; i++)
        b.batch->x[i] = (acf_real)acf_rng_normal((acf_place){.seed = 1, .row = (uint64_t)i, .stream = ACF_STREAM_SYNTH});
    for (int64_t i = 0; i < N; i++) b.batch->id[i] = (uint64_t)i;
    /* From the smallest to the largest: peak memory only grows. */
    void (*const runs[4])(bench *) = {run_sample, run_loglik, run_train, run_guess};
    static const char *const names[4] = {"sample", "loglik", "train", "train_guess"};
    printf("{\"d\": %lld, \"batch\": %lld, \"params\": %lld", (long long)D, (long long)N, (long long)acf_net_params(b.net)->total);
    for (int k = 0; k < 4; k++) {
        double r = rate(&b, runs[k], rounds);
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf(", \"%s_rows_s\": %.0f, \"%s_peak_mb\": %.0f", names[k], r, names[k], (double)usage.ru_maxrss / 1024);
    }
    printf("}\n");
    acf_release(b.out);
    acf_batch_free(b.batch);
    acf_net_free(b.net);
    acf_tape_free(b.t);
    acf_device_close(b.dev);
    acf_opts_free(o);
    return 0;
}
