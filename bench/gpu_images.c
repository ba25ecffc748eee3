/* Speed of the image model on a GPU. bench/gpu_images compares it with PyTorch. This program measures one size and one
 * batch, and prints lines of comma-separated values:
 *
 *     images,acflow,PRECISION,SIDE,BATCH,JOB,IMAGES_PER_SECOND,MS       the median of five blocks of runs
 *     failed,acflow,PRECISION,SIDE,BATCH,JOB,MESSAGE
 *
 *     bench-gpu_images [--device cuda] [--side 28] [--channels 1] [--batch 64] [--precision tf32]
 *                      [--jobs train,loglik,sample] [--like pixelcnn] [--scales 3] [--width 32] [--blocks 2]
 *                      [--like-width 64] [--like-blocks 4] [--seconds 1]
 *
 * Jobs: a step of training (log p of random images with half the pixels given, its gradient, clipping, Adam), log p,
 * and a draw of the other half. All on images in device memory, in a CUDA graph where the device has them. */
#include "bench.h"
#include "model/image_net.h"
#include "ops/adam.h"
#include "ops/arith.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "tensor/tape_graph.h"

#include <string.h>

enum { BLOCKS = 5, WARM = 4 };

typedef struct bench {
    acf_image_sizes size;
    int64_t N;
    double seconds;
    acf_precision precision;
    acf_device *dev;
    acf_image_net *net;
    acf_tape *t;
    acf_image_query q; /* in device memory */
    int64_t steps;     /* of Adam, on the CPU */
} bench;

static const char *const precision_name[] = {"float", "tf32", "bf16"};

/* ---- the jobs ---------------------------------------------------------------------------------------------------- */

static const acf_adam adam = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static acf_status optimise(bench *b, acf_tensor *loss) {
    acf_params *ps = acf_image_net_params(b->net);
    double norm;
    if (b->dev->plugin) {
        ACF_TRY(acf_device_copy(b->dev, &ps->pace->loss[0], loss->data, sizeof(acf_real), ACF_ON_DEVICE));
        return acf_optimise(ps, &adam, 1, 0);
    }
    ACF_TRY(acf_grad_norm(ps, &norm));
    return acf_adam_step(ps, &adam, ++b->steps, acf_clip_factor(norm, 1));
}

static acf_status train(void *ctx) {
    bench *b = ctx;
    acf_tape_begin(b->t, true);
    ACF_TRY(acf_params_zero_grad(acf_image_net_params(b->net)));
    acf_tensor *loss =
        acf_scale(b->t, -1, acf_mean(b->t, acf_image_net_logp(b->t, acf_image_net_view(b->t, b->net, &b->q, NULL))));
    ACF_TRY(acf_tape_backward(b->t, loss));
    return optimise(b, loss);
}

static acf_status loglik(void *ctx) {
    bench *b = ctx;
    acf_tape_begin(b->t, false);
    acf_image_net_logp(b->t, acf_image_net_view(b->t, b->net, &b->q, NULL));
    return acf_tape_status(b->t);
}

static acf_status sample(void *ctx) {
    bench *b = ctx;
    acf_tape_begin(b->t, false);
    acf_image_net_answer(b->t, acf_image_net_view(b->t, b->net, &b->q, NULL), &(acf_draw){.seed = 3});
    return acf_tape_status(b->t);
}

static const struct job {
    const char *name;
    acf_status (*enqueue)(void *ctx);
} jobs[] = {{"train", train}, {"loglik", loglik}, {"sample", sample}};

/* ---- the model and its data -------------------------------------------------------------------------------------- */

static acf_status place(bench *b, const void *data, size_t bytes, const void **out) {
    void *p = b->dev->memory.alloc(b->dev->memory.ctx, bytes);
    if (!p) return acf_fail(ACF_EMEMORY, "out of memory: %zu bytes", bytes);
    ACF_TRY(acf_device_copy(b->dev, p, data, bytes, ACF_TO_DEVICE));
    *out = p;
    return acf_device_sync(b->dev);
}

static acf_status make_images(bench *b) {
    const int64_t pixels = b->N * b->size.H * b->size.W, n = pixels * b->size.C;
    acf_real *x = acf_alloc((size_t)n * sizeof *x, "images");
    uint8_t *given = acf_alloc((size_t)pixels, "a mask");
    if (!x || !given) return ACF_EMEMORY;
    for (int64_t i = 0; i < n; i++)
        x[i] = (acf_real)acf_rng_normal((acf_rng_counter){.seed = 1, .row = (uint64_t)i, .stream = ACF_STREAM_SYNTH});
    for (int64_t i = 0; i < pixels; i++)
        given[i] = acf_rng_uniform((acf_rng_counter){.seed = 2, .row = (uint64_t)i, .stream = ACF_STREAM_SYNTH}) < 0.5;
    b->q = (acf_image_query){.N = b->N, .there = true};
    const void *there[2];
    ACF_TRY(place(b, x, (size_t)n * sizeof *x, &there[0]));
    ACF_TRY(place(b, given, (size_t)pixels, &there[1]));
    b->q.x = there[0], b->q.role = there[1];
    acf_release(x), acf_release(given);
    return ACF_OK;
}

static acf_status open_bench(bench *b, const char *device) {
    ACF_TRY(acf_device_open(device, acf_ops_needed(false), 0, &b->dev));
    ACF_TRY(acf_image_net_declare(b->dev, &b->size, &b->net));
    ACF_TRY(acf_image_net_build(b->net, 1, true));
    const acf_pace pace = {.lr = adam.lr, .step = 1};
    acf_params *ps = acf_image_net_params(b->net);
    if (b->dev->plugin) ACF_TRY(acf_device_copy(b->dev, ps->pace, &pace, sizeof pace, ACF_TO_DEVICE));
    ACF_TRY(acf_tape_create(b->dev, NULL, &b->t));
    return make_images(b);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static acf_status measure(bench *b, const struct job *j, double *seconds) {
    acf_tape_graph r = {0};
    double each[BLOCKS];
    acf_status status = acf_tape_graph_run(&r, b->t, j->enqueue, b, WARM);
    if (!status) status = acf_device_sync(b->dev);
    for (int k = -1; k < BLOCKS && !status; k++) { /* the first one sets the number of runs per block */
        const int64_t n = k < 0 ? 1 : acf_max(1, (int64_t)(b->seconds / BLOCKS / *seconds));
        const double begin = now();
        status = acf_tape_graph_run(&r, b->t, j->enqueue, b, n);
        if (!status) status = acf_device_sync(b->dev);
        *seconds = (now() - begin) / (double)n;
        if (k >= 0)
            each[k] = *seconds;
        else
            *seconds = *seconds > 1e-6 ? *seconds : 1e-6;
    }
    acf_tape_graph_free(&r, b->dev);
    ACF_TRY(status);
    qsort(each, BLOCKS, sizeof *each, by_size);
    *seconds = each[BLOCKS / 2];
    return ACF_OK;
}

static void do_job(bench *b, const struct job *j) {
    double seconds = 1;
    b->dev->precision = b->precision;
    acf_status status = measure(b, j, &seconds);
    printf("%s,acflow,%s,%lld,%lld,%s,", status ? "failed" : "images", precision_name[b->precision],
           (long long)b->size.H, (long long)b->N, j->name);
    if (status)
        printf("%s\n", acf_error());
    else
        printf("%.1f,%.4f\n", (double)b->N / seconds, 1e3 * seconds);
}

static const acf_image_like_kind *like_named(const char *name) {
    for (int k = 0; acf_image_like_kinds[k]; k++)
        if (strcmp(acf_image_like_kinds[k]->name, name) == 0) return acf_image_like_kinds[k];
    fprintf(stderr, "bench: there is no likelihood '%s'\n", name);
    exit(2);
}

/* Sets an option to a whole number. */
static void set_number(bench *b, const char *name, int64_t v) {
    if (strcmp(name, "--side") == 0)
        b->size.H = b->size.W = v;
    else if (strcmp(name, "--channels") == 0)
        b->size.C = v;
    else if (strcmp(name, "--batch") == 0)
        b->N = v;
    else if (strcmp(name, "--scales") == 0)
        b->size.scales = (int)v;
    else if (strcmp(name, "--width") == 0)
        b->size.width = v;
    else if (strcmp(name, "--blocks") == 0)
        b->size.blocks = (int)v;
    else if (strcmp(name, "--like-width") == 0)
        b->size.like_width = v;
    else if (strcmp(name, "--like-blocks") == 0)
        b->size.like_blocks = (int)v;
}

int main(int argc, char **argv) {
    const char *device = "cuda", *wanted = "train,loglik,sample";
    bench b = {.size = {.H = 28,
                        .W = 28,
                        .C = 1,
                        .scales = 3,
                        .blocks = 2,
                        .width = 32,
                        .like = &acf_image_pixelcnn,
                        .like_width = 64,
                        .like_blocks = 4,
                        .embed_blocks = 2,
                        .components = 10},
               .N = 64,
               .seconds = 1,
               .precision = ACF_PRECISION_TF32};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--device") == 0)
            device = value;
        else if (strcmp(name, "--jobs") == 0)
            wanted = value;
        else if (strcmp(name, "--like") == 0)
            b.size.like = like_named(value);
        else if (strcmp(name, "--seconds") == 0)
            b.seconds = atof(value);
        else if (strcmp(name, "--precision") == 0) {
            for (int k = 0; k < 3; k++)
                if (strcmp(value, precision_name[k]) == 0) b.precision = (acf_precision)k;
        } else
            set_number(&b, name, atoll(value));
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    need(open_bench(&b, device));
    for (size_t k = 0; k < sizeof jobs / sizeof jobs[0]; k++)
        if (strstr(wanted, jobs[k].name)) do_job(&b, &jobs[k]);
    const acf_memory *m = &b.dev->memory;
    m->free(m->ctx, (void *)b.q.x), m->free(m->ctx, (void *)b.q.role);
    acf_tape_free(b.t);
    acf_image_net_free(b.net);
    acf_device_close(b.dev);
    return 0;
}
