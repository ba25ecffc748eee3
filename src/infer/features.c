/* A network that predicts the orientation of images: see features.h. */
#include "infer/features.h"

#include "base/rng.h"
#include "image/image_ops.h"
#include "nn/conv_layer.h"
#include "ops/adam.h"
#include "ops/arith.h"
#include "ops/reduce.h"

#include <math.h>

#define BATCH 64
#define RATE 2e-3 /* of Adam; falls to 0 in a half cosine */
#define CODES 64  /* features from the middle of the network */
#define THUMB 8   /* width and height of the thumbnail in pixels; fewer for smaller images */
#define FIRST 16  /* channels of the first convolution; the others have two and four times as many */
/* Orientations: rotated by 0, 90, 180, 270 degrees, each also flipped. Images that are not square have 4, without
 * quarter turns. */
#define WAYS 8

struct acf_features {
    int64_t H, W, C, n; /* n = H W C */
    int64_t h, w;       /* of the thumbnail */
    double most;        /* the greatest level */
    double code, thumb; /* factors of the two parts of the features */
    acf_params *ps;
    acf_tape *t;
    acf_conv_layer layer[5]; /* three that halve, one for the features, one for the orientations */
    acf_real *x;             /* (BATCH,H,W,C) the current batch */
    acf_real *way;           /* (BATCH,WAYS) 1 for the orientation of each image */
    uint8_t *turned;         /* (H,W,C) */
};
enum { CODE = 3, WAY, LAYERS };

/* Fully connected layers are convolutions as well: with a kernel as large as the remaining image, and of single
 * pixels. */
static acf_status declare(acf_features *f) {
    static const char *const name[LAYERS] = {"halve0", "halve1", "halve2", "code", "way"};
    int64_t h = f->H, w = f->W, in = f->C;
    for (int k = 0; k < CODE; k++) {
        const acf_conv how = {.stride = 2, .top = 1, .left = 1, .bottom = 1, .right = 1, .act = ACF_RELU};
        ACF_TRY(acf_conv_layer_declare(&f->layer[k], f->ps, name[k], (acf_conv_size){3, 3, in, FIRST << k, 1}, how));
        h = acf_ceil_div(h, 2), w = acf_ceil_div(w, 2), in = FIRST << k;
    }
    const acf_conv plain = {.stride = 1};
    ACF_TRY(acf_conv_layer_declare(&f->layer[CODE], f->ps, name[CODE], (acf_conv_size){h, w, in, CODES, 1}, plain));
    return acf_conv_layer_declare(&f->layer[WAY], f->ps, name[WAY], (acf_conv_size){1, 1, CODES, WAYS, 1}, plain);
}

void acf_features_free(acf_features *f) {
    if (!f) return;
    acf_tape_free(f->t);
    acf_params_free(f->ps);
    acf_release(f->x), acf_release(f->way), acf_release(f->turned);
    acf_release(f);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* Image k of the batch: levels as numbers from -1/2 to 1/2. */
static void put(acf_features *f, int64_t k, const uint8_t *level) {
    for (int64_t i = 0; i < f->n; i++) f->x[k * f->n + i] = (acf_real)(level[i] / f->most - 0.5);
}

static acf_tensor *encode(acf_features *f, int64_t N) {
    acf_tensor *h = acf_tensor_input(f->t, f->x, 4, (const int64_t[]){N, f->H, f->W, f->C});
    for (int k = 0; k <= CODE; k++) h = acf_conv_layer_run(f->t, &f->layer[k], h);
    return h;
}

/* Image k of the batch in this orientation: rotated by quarters, then flipped. */
static void put_turned(acf_features *f, int64_t k, const uint8_t *level, int way) {
    const int quarters = f->H == f->W ? way % 4 : way % 2 * 2;
    const bool mirrored = f->H == f->W ? way >= 4 : way >= 2;
    acf_image_rotate(f->turned, level, f->H, f->W, f->C, quarters);
    if (mirrored) acf_image_flip(f->turned, f->H, f->W, f->C);
    put(f, k, f->turned);
    for (int i = 0; i < WAYS; i++) f->way[k * WAYS + i] = i == way;
}

static int ways(const acf_features *f) { return f->H == f->W ? WAYS : WAYS / 2; }

static acf_tensor *tell(acf_features *f, int64_t N) {
    return acf_conv_layer_run(f->t, &f->layer[WAY], acf_act(f->t, ACF_RELU, encode(f, N)));
}

/* Squared error of the prediction against 1 for the right orientation and 0 for the others. Its minimum is at the
 * probabilities. */
static acf_tensor *error_of(acf_features *f, int64_t N) {
    acf_tensor *way = acf_tensor_input(f->t, f->way, 4, (const int64_t[]){N, 1, 1, WAYS});
    return acf_mean(f->t, acf_square(f->t, acf_sub(f->t, tell(f, N), way)));
}

/* Batches are drawn with replacement; their images and orientations depend only on seed and step. */
static acf_status learn(acf_features *f, const acf_images *im, int64_t steps, uint64_t seed) {
    for (int64_t step = 1; step <= steps; step++) {
        const double rate = RATE * 0.5 * (1 + cos(M_PI * (double)(step - 1) / (double)steps));
        for (uint32_t k = 0; k < BATCH; k++) {
            const acf_rng_counter at = {seed, 0, ACF_STREAM_FEATURE, k, (uint32_t)step},
                                  turn = {seed, 1, ACF_STREAM_FEATURE, k, (uint32_t)step};
            put_turned(f, k, acf_images_at(im, acf_rng_below(at, im->N)), (int)acf_rng_below(turn, ways(f)));
        }
        ACF_TRY(acf_params_zero_grad(f->ps));
        acf_tape_begin(f->t, true);
        ACF_TRY(acf_tape_backward(f->t, error_of(f, BATCH)));
        ACF_TRY(acf_adam_step(f->ps, &(acf_adam){.lr = rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, step, 1));
    }
    return ACF_OK;
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

int64_t acf_features_count(const acf_features *f) { return CODES + f->h * f->w * f->C; }

/* out (h,w,C): means over the pixels of image k of the batch that fall into each cell. */
static void shrink(const acf_features *f, int64_t k, acf_real *out) {
    for (int64_t y = 0; y < f->h; y++)
        for (int64_t x = 0; x < f->w; x++)
            for (int64_t c = 0; c < f->C; c++) {
                const int64_t y0 = y * f->H / f->h, y1 = (y + 1) * f->H / f->h, x0 = x * f->W / f->w,
                              x1 = (x + 1) * f->W / f->w;
                double sum = 0;
                for (int64_t p = y0; p < y1; p++)
                    for (int64_t q = x0; q < x1; q++) sum += (double)f->x[k * f->n + (p * f->W + q) * f->C + c];
                out[(y * f->w + x) * f->C + c] = (acf_real)(f->thumb * sum / (double)((y1 - y0) * (x1 - x0)));
            }
}

acf_status acf_features_of(acf_features *f, const uint8_t *level, int64_t N, acf_real *out) {
    const int64_t F = acf_features_count(f);
    for (int64_t at = 0; at < N; at += BATCH) {
        const int64_t n = acf_min(BATCH, N - at);
        for (int64_t k = 0; k < n; k++) put(f, k, level + (at + k) * f->n);
        acf_tape_begin(f->t, false);
        const acf_tensor *code = encode(f, n);
        ACF_TRY(acf_tape_status(f->t));
        for (int64_t k = 0; k < n; k++) {
            acf_real *to = out + (at + k) * F;
            for (int64_t i = 0; i < CODES; i++) to[i] = (acf_real)(f->code * (double)code->data[k * CODES + i]);
            shrink(f, k, to + CODES);
        }
    }
    return ACF_OK;
}

/* 1 over the root of the summed variances of columns from .. to-1 of x (N,F). */
static double unit(const acf_real *x, int64_t N, int64_t F, int64_t from, int64_t to) {
    double all = 0;
    for (int64_t k = from; k < to; k++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < N; i++) mean += (double)x[i * F + k] / (double)N;
        for (int64_t i = 0; i < N; i++) square += ((double)x[i * F + k] - mean) * ((double)x[i * F + k] - mean);
        all += square / (double)N;
    }
    return all > 0 ? 1 / sqrt(all) : 1;
}

/* Scales both parts to equal variance over the images, so that they count equally in distances. */
static acf_status balance(acf_features *f, const acf_images *im) {
    const int64_t F = acf_features_count(f);
    acf_real *x = acf_alloc((size_t)(im->N * F) * sizeof *x, "features");
    if (!x) return ACF_EMEMORY;
    f->code = f->thumb = 1;
    acf_status status = acf_features_of(f, im->pixel, im->N, x);
    if (!status) f->code = unit(x, im->N, F, 0, CODES), f->thumb = unit(x, im->N, F, CODES, F);
    acf_release(x);
    return status;
}

acf_status acf_features_learn(acf_device *cpu, const acf_images *im, int64_t steps, uint64_t seed, acf_features **out) {
    acf_status status = ACF_OK;
    acf_features *f = acf_alloc_zero(sizeof *f, "a feature network");
    if (!f) return ACF_EMEMORY;
    f->H = im->H, f->W = im->W, f->C = im->C, f->n = im->H * im->W * im->C, f->most = (1 << im->bits) - 1;
    f->h = acf_min(f->H, THUMB), f->w = acf_min(f->W, THUMB);
    ACF_TRY_DONE(acf_params_create(cpu, &f->ps));
    ACF_TRY_DONE(declare(f));
    ACF_TRY_DONE(acf_params_build(f->ps, seed, true));
    ACF_TRY_DONE(acf_tape_create(cpu, NULL, &f->t));
    f->x = acf_alloc((size_t)(BATCH * f->n) * sizeof *f->x, "a feature network");
    f->way = acf_alloc((size_t)(BATCH * WAYS) * sizeof *f->way, "a feature network");
    f->turned = acf_alloc((size_t)f->n, "a feature network");
    if (!f->x || !f->way || !f->turned) status = ACF_EMEMORY;
    if (!status) status = learn(f, im, steps, seed);
    if (!status) status = balance(f, im);
    if (!status) *out = f;
done:
    if (status) acf_features_free(f);
    return status;
}

acf_status acf_features_right(acf_features *f, const uint8_t *level, int64_t N, double *out) {
    const int n = ways(f);
    int64_t right = 0;
    for (int64_t i = 0; i < N; i++) {
        for (int way = 0; way < n; way++) put_turned(f, way, level + i * f->n, way);
        acf_tape_begin(f->t, false);
        const acf_tensor *y = tell(f, n);
        ACF_TRY(acf_tape_status(f->t));
        for (int way = 0; way < n; way++) {
            int best = 0;
            for (int k = 1; k < n; k++)
                if (y->data[way * WAYS + k] > y->data[way * WAYS + best]) best = k;
            right += best == way;
        }
    }
    *out = (double)right / (double)(N * n);
    return ACF_OK;
}
