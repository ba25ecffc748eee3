/* Queries to models of images: see image_session.h. */
#include "infer/image_session.h"

#include "image/image_batches.h"
#include "image/image_symmetry.h"
#include "model/image_model.h"

#include <string.h>

#define SCORE_SEED 0 /* of the dequantisation noise: scores and guesses are reproducible */
/* Numbers per batch, which bounds memory to about a thousand times as many bytes. A GPU takes about the same time
 * for four times as many. */
#define BATCH_NUMBERS ((int64_t)1 << 16)
#define BATCH_NUMBERS_GPU ((int64_t)1 << 18)
#define BATCH_IMAGES 64

struct acf_image_session {
    const acf_model *m;
    acf_device *dev; /* a handle of its own, in the model's query precision */
    acf_tape *t;
    acf_image_batch *batch;
    int64_t *row;                                      /* (batch) */
    acf_real *y;                                       /* (batch,H,W,C) answers of the network, encoded */
    acf_image_symmetry symmetry[ACF_IMAGE_SYMMETRIES]; /* for best guesses; the first is the identity */
    int symmetries;
    bool masks_alike; /* the training masks have every symmetry */
    struct copies {   /* of a batch, if there are symmetries. All (batch,H,W,C) but b (batch,H,W) */
        uint8_t *pixel, *b;
        double *real, *sum;
        int64_t *of; /* (batch) the image in the batch that each is a copy of */
        int *n;      /* (batch) number of guesses in sum */
    } copy;
};

/* Finds the model's symmetries, and allocates a batch of copies. */
static acf_status learn_symmetries(acf_image_session *s, int64_t rows, int64_t P, int64_t C) {
    const bool rotated = s->m->seen.rotated, flipped = s->m->seen.flipped;
    acf_image_masks *masks;
    struct copies *c = &s->copy;
    s->symmetries = acf_image_symmetries(rotated, flipped, s->symmetry);
    if (s->symmetries == 1) return ACF_OK;
    ACF_TRY(acf_image_masks_create(acf_options_text(s->m->config, "image-masks"), &masks));
    s->masks_alike = acf_image_masks_symmetric(masks, rotated, flipped);
    acf_image_masks_free(masks);
    c->pixel = acf_alloc((size_t)(rows * P * C), "a session"),
    c->b = c->pixel ? acf_alloc((size_t)(rows * P), "a session") : NULL;
    c->real = c->b ? acf_alloc((size_t)(rows * P * C) * sizeof *c->real, "a session") : NULL;
    c->sum = c->real ? acf_alloc((size_t)(rows * P * C) * sizeof *c->sum, "a session") : NULL;
    c->of = c->sum ? acf_alloc((size_t)rows * sizeof *c->of, "a session") : NULL;
    c->n = c->of ? acf_alloc((size_t)rows * sizeof *c->n, "a session") : NULL;
    return c->n ? ACF_OK : ACF_EMEMORY;
}

acf_status acf_image_session_open(const acf_model *m, acf_image_session **out) {
    const acf_image_sizes *z = acf_image_net_sizes(m->image);
    const bool gpu = m->dev->kind == ACF_DEVICE_CUDA;
    const int64_t n = z->H * z->W * z->C, most = gpu ? 4 * BATCH_IMAGES : BATCH_IMAGES;
    const int64_t rows = acf_max(1, acf_min(most, (gpu ? BATCH_NUMBERS_GPU : BATCH_NUMBERS) / n));
    const acf_images shape = {.N = 1, .H = z->H, .W = z->W, .C = z->C, .bits = m->map->bits};
    acf_status status = ACF_OK;
    acf_image_session *s = acf_alloc_zero(sizeof *s, "a session");
    if (!s) return ACF_EMEMORY;
    s->m = m;
    ACF_TRY_DONE(acf_device_again(m->dev, &s->dev));
    s->dev->precision = m->query_precision;
    ACF_TRY_DONE(acf_tape_create(s->dev, NULL, &s->t));
    ACF_TRY_DONE(acf_image_batch_create(rows, &shape, m->map, &s->batch));
    s->row = acf_alloc((size_t)rows * sizeof *s->row, "a session");
    s->y = s->row ? acf_alloc((size_t)(rows * n) * sizeof *s->y, "a session") : NULL;
    if (!s->y) status = ACF_EMEMORY;
    ACF_TRY_DONE(status);
    ACF_TRY_DONE(learn_symmetries(s, rows, z->H * z->W, z->C));
    *out = s;
done:
    if (status) acf_image_session_free(s);
    return status;
}

int acf_image_session_passes(const acf_image_session *s) {
    return s->m->at_once ? 1 : (int)acf_options_int(s->m->config, "image-passes");
}

void acf_image_session_free(acf_image_session *s) {
    if (!s) return;
    acf_tape_free(s->t);
    acf_image_batch_free(s->batch);
    acf_release(s->row);
    acf_release(s->y);
    acf_release(s->copy.pixel), acf_release(s->copy.b), acf_release(s->copy.real);
    acf_release(s->copy.sum), acf_release(s->copy.of), acf_release(s->copy.n);
    acf_device_close(s->dev);
    acf_release(s);
}

/* ---- batch by batch ---------------------------------------------------------------------------------------------- */

/* A query for one batch of images, starting at image number `from`. */
typedef struct target {
    acf_image_session *s;
    const acf_images *im;
    const uint8_t *b;
    uint64_t seed;
    uint32_t draw;
    int64_t from;
    int round, passes; /* 0 of 1: all pixels in a single pass */
} target;

static acf_status check(const acf_image_session *s, const acf_images *im) {
    char name[ACF_IMAGE_NAME_MAX] = "the images";
    return acf_image_model_check(s->m, im->path ? acf_images_write_name(name, im, 0) : name,
                                 (const int64_t[]){im->H, im->W, im->C}, im->bits);
}

static int64_t images_of(const target *a) { return acf_min(a->s->batch->capacity, a->im->N - a->from); }

/* Sets the batch's roles; false: this pass has no target pixel in any image, as in early passes of small masks. */
static bool ask(const target *a) {
    uint8_t *role = a->s->batch->b;
    const int64_t P = a->im->H * a->im->W, n = images_of(a);
    int64_t pixels = 0;
    if (!a->b) memset(role, 0, (size_t)(n * P));
    for (int64_t i = 0; i < n; i++)
        pixels += acf_image_pass(a->passes, a->round, a->im->H, a->im->W,
                                 a->b ? a->b + (a->from + i) * P : role + i * P, role + i * P);
    return pixels > 0;
}

/* Fills the batch with its roles, and begins a tape for it. */
static acf_image_view *look(const target *a) {
    acf_image_session *s = a->s;
    acf_image_batch *batch = s->batch;
    const int64_t n = images_of(a);
    for (int64_t i = 0; i < n; i++) s->row[i] = a->from + i;
    acf_image_batch_fill(s->dev, batch, a->im, NULL, a->seed, a->draw, s->row, n);
    acf_tape_begin(s->t, false);
    return acf_image_net_view(s->t, s->m->image,
                              &(acf_image_query){.N = n, .x = batch->x, .role = batch->b, .id = batch->id}, NULL);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static acf_status add_logp(const target *a, double share, double *out) {
    acf_tape *t = a->s->t;
    const acf_image_batch *batch = a->s->batch;
    if (!ask(a)) return ACF_OK;
    acf_tensor *logp = acf_image_net_logp(t, look(a));
    ACF_TRY(acf_tape_check(t, logp));
    acf_real *host = acf_arena_alloc(t->host, (size_t)batch->N * sizeof *host);
    if (!host) return ACF_EMEMORY;
    ACF_TRY(acf_device_copy(t->dev, host, logp->data, (size_t)batch->N * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    for (int64_t i = 0; i < batch->N; i++) out[a->from + i] += share * ((double)host[i] + batch->logdet[i]);
    return ACF_OK;
}

acf_status acf_image_session_query_logp(acf_image_session *s, const acf_images *im, const uint8_t *b, int32_t draws,
                                        double *out) {
    const int passes = acf_image_session_passes(s);
    ACF_TRY(check(s, im));
    for (int64_t i = 0; i < im->N; i++) out[i] = 0;
    for (int32_t k = 0; k < draws; k++)
        for (int64_t at = 0; at < im->N; at += s->batch->capacity)
            for (int r = 0; r < passes; r++)
                ACF_TRY(add_logp(&(target){s, im, b, SCORE_SEED, (uint32_t)k, at, r, passes}, 1 / (double)draws, out));
    return ACF_OK;
}

static acf_image_code code_of(const acf_image_session *s, const acf_images *im) {
    return (acf_image_code){s->m->map, im->H * im->W, im->C};
}

/* Draws one pass of one batch. Its levels go to out, other levels of out stay. A temperature T below 1 is lower in
 * early passes: each remaining pass adds 1/2 to the exponent of T. Coarse pixels determine the content, fine ones the
 * texture. */
static acf_status draw_round(const target *a, uint8_t *out) {
    acf_image_session *s = a->s;
    const acf_image_code code = code_of(s, a->im);
    const acf_draw how = {
        .seed = a->seed, .draw = a->draw, .log_temperature = s->m->log_temperature * (a->passes - a->round + 1) / 2};
    if (!ask(a)) return ACF_OK;
    acf_image_view *v = look(a);
    ACF_TRY(acf_image_net_draw(s->t, v, &how, s->y));
    acf_image_decode(s->dev, &code, s->batch->N, s->y, s->batch->b, s->batch->level, out + a->from * code.P * code.C);
    return ACF_OK;
}

/* Each pass is given the results of the earlier ones in out. */
acf_status acf_image_session_query_draw(acf_image_session *s, const acf_images *im, const uint8_t *b, uint64_t seed,
                                        uint32_t draw, uint8_t *out) {
    const int passes = acf_image_session_passes(s);
    acf_images now = *im; /* borrows: nothing of it is freed */
    ACF_TRY(check(s, im));
    if (out != im->pixel) memcpy(out, im->pixel, (size_t)(im->N * im->H * im->W * im->C));
    now.pixel = out;
    for (int64_t at = 0; at < im->N; at += s->batch->capacity)
        for (int r = 0; r < passes; r++) ACF_TRY(draw_round(&(target){s, &now, b, seed, draw, at, r, passes}, out));
    return ACF_OK;
}

/* The guess for one batch: levels, or real numbers if level is NULL. */
static acf_status guess_batch(const target *a, uint8_t *level, double *real) {
    acf_image_session *s = a->s;
    const acf_image_code code = code_of(s, a->im);
    const acf_image_batch *batch = s->batch;
    ask(a);
    acf_image_view *v = look(a);
    ACF_TRY(acf_image_net_guess(s->t, v, s->y));
    if (level)
        acf_image_decode(s->dev, &code, batch->N, s->y, batch->b, batch->level, level);
    else
        acf_image_decode_real(s->dev, &code, batch->N, s->y, batch->b, batch->level, real);
    return ACF_OK;
}

/* Makes copies by one symmetry of n images from a->from on, only of those whose moved mask the model knows. Returns
 * how many. */
static int64_t copy_images(const target *a, int64_t n, acf_image_symmetry by) {
    const acf_image_session *s = a->s;
    const int64_t H = a->im->H, W = a->im->W, C = a->im->C, P = H * W;
    int64_t made = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *b = a->b ? a->b + (a->from + i) * P : NULL;
        if (b && !s->masks_alike && !acf_image_symmetric(by, H, W, b)) continue;
        acf_image_move(by, H, W, C, acf_images_at(a->im, a->from + i), s->copy.pixel + made * P * C);
        if (b) acf_image_move(by, H, W, 1, b, s->copy.b + made * P);
        s->copy.of[made++] = i;
    }
    return made;
}

/* Adds the guesses of these copies, moved back, to the sums. */
static acf_status add_guesses(const target *a, int64_t n, acf_image_symmetry by) {
    const struct copies *c = &a->s->copy;
    const int64_t H = a->im->H, W = a->im->W, C = a->im->C, size = H * W * C;
    const acf_images moved = {.N = n, .H = H, .W = W, .C = C, .bits = a->im->bits, .pixel = c->pixel};
    if (n == 0) return ACF_OK;
    ACF_TRY(guess_batch(&(target){a->s, &moved, a->b ? c->b : NULL, a->seed, a->draw, 0, 0, 1}, NULL, c->real));
    for (int64_t k = 0; k < n; k++) {
        double *sum = c->sum + c->of[k] * size;
        const double *real = c->real + k * size;
        for (int64_t i = 0; i < size; i++) sum[i] += real[acf_image_moved(by, H, W, i / C) * C + i % C];
        c->n[c->of[k]]++;
    }
    return ACF_OK;
}

/* As guess_batch, averaged over all symmetries. */
static acf_status guess_symmetric(const target *a, uint8_t *level, double *real) {
    const acf_image_session *s = a->s;
    const int64_t size = a->im->H * a->im->W * a->im->C, n = acf_min(s->batch->capacity, a->im->N - a->from);
    memset(s->copy.sum, 0, (size_t)(n * size) * sizeof *s->copy.sum);
    memset(s->copy.n, 0, (size_t)n * sizeof *s->copy.n);
    for (int k = 0; k < s->symmetries; k++) ACF_TRY(add_guesses(a, copy_images(a, n, s->symmetry[k]), s->symmetry[k]));
    for (int64_t i = 0; i < n * size; i++) {
        const double mean = s->copy.sum[i] / s->copy.n[i / size];
        if (level)
            level[i] = (uint8_t)(mean + 0.5);
        else
            real[i] = mean;
    }
    return ACF_OK;
}

acf_status acf_image_session_query_guess(acf_image_session *s, const acf_images *im, const uint8_t *b, uint8_t *level,
                                         double *real) {
    const int64_t size = im->H * im->W * im->C;
    ACF_TRY(check(s, im));
    for (int64_t at = 0; at < im->N; at += s->batch->capacity) {
        const target a = {s, im, b, SCORE_SEED, 0, at, 0, 1};
        ACF_TRY((s->symmetries > 1 ? guess_symmetric : guess_batch)(&a, level ? level + at * size : NULL,
                                                                    real ? real + at * size : NULL));
    }
    return ACF_OK;
}

/* b (N,H,W): hides half number k. With an odd number of rows or columns, both halves include the middle one. */
static void hide_half(const acf_images *im, int64_t k, uint8_t *b) {
    for (int64_t i = 0; i < im->N * im->H * im->W; i++) {
        const int64_t y = i / im->W % im->H, x = i % im->W, at = k % 2 ? 2 * x + 1 - im->W : 2 * y + 1 - im->H;
        b[i] = k % 4 < 2 ? at > 0 : at < 0;
    }
}

acf_status acf_image_session_query_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first,
                                         uint64_t seed, int64_t steps, uint8_t *out) {
    const size_t n = (size_t)(im->N * im->H * im->W * im->C);
    uint8_t *b = acf_alloc((size_t)(im->N * im->H * im->W), "masks");
    acf_status status = b ? ACF_OK : ACF_EMEMORY;
    memcpy(out, first ? first : im->pixel, n);
    for (int64_t k = 0; k < steps && !status; k++) {
        acf_images now = *im; /* borrows: nothing of it is freed */
        now.pixel = out + (size_t)k * n;
        hide_half(im, k, b);
        status = acf_image_session_query_draw(s, &now, b, seed, (uint32_t)k, now.pixel + n);
    }
    acf_release(b);
    return status;
}
