/* Questions to models of images: see image_session.h. */
#include "infer/image_session.h"

#include "data/image_batches.h"
#include "model/image_model.h"

#include <string.h>

#define SCORE_SEED 0                        /* of the noise in levels: scores and guesses are reproducible */
/* Numbers of a batch, some: memory is a thousand times that. A GPU takes about as long for four times as many. */
#define BATCH_NUMBERS ((int64_t)1 << 16)
#define BATCH_NUMBERS_GPU ((int64_t)1 << 18)
#define BATCH_IMAGES 64

struct acf_image_session {
    const acf_model *m;
    acf_tape *t;
    acf_image_batch *batch;
    int64_t *row;  /* (batch) */
    acf_real *y;   /* (batch,H,W,C) what the network answers, encoded */
};

acf_status acf_paint_create(const acf_model *m, acf_image_session **out) {
    const acf_image_sizes *z = acf_image_net_sizes(m->image);
    const bool gpu = m->dev->kind == ACF_DEVICE_CUDA;
    const int64_t n = z->H * z->W * z->C, most = gpu ? 4 * BATCH_IMAGES : BATCH_IMAGES;
    const int64_t rows = acf_max(1, acf_min(most, (gpu ? BATCH_NUMBERS_GPU : BATCH_NUMBERS) / n));
    const acf_images shape = {.N = 1, .H = z->H, .W = z->W, .C = z->C, .bits = m->map->bits};
    acf_status status = ACF_OK;
    acf_image_session *s = acf_alloc_zero(sizeof *s, "a session");
    if (!s) return ACF_EMEMORY;
    s->m = m;
    ACF_TRY_DONE(acf_tape_create(m->dev, NULL, &s->t));
    ACF_TRY_DONE(acf_image_batch_create(rows, &shape, m->map, &s->batch));
    s->row = acf_alloc((size_t)rows * sizeof *s->row, "a session");
    s->y = s->row ? acf_alloc((size_t)(rows * n) * sizeof *s->y, "a session") : NULL;
    if (!s->y) status = ACF_EMEMORY;
    else *out = s;
done:
    if (status) acf_paint_free(s);
    return status;
}

void acf_paint_free(acf_image_session *s) {
    if (!s) return;
    acf_tape_free(s->t);
    acf_image_batch_free(s->batch);
    acf_release(s->row);
    acf_release(s->y);
    acf_release(s);
}

/* ---- batch by batch ------------------------------------------------------------------------------------------------------- */

/* A question to one batch of images, from number `from` on. */
typedef struct asked {
    acf_image_session *s;
    const acf_images *im;
    const uint8_t *b;
    uint64_t seed;
    uint32_t draw;
    int64_t from;
    int round, rounds; /* 0 of 1: all at once */
} asked;

static acf_status check(const acf_image_session *s, const acf_images *im) {
    char name[ACF_IMAGE_NAME_MAX] = "the images";
    return acf_image_model_check(s->m, im->path ? acf_img_name(name, im, 0) : name, (const int64_t[]){im->H, im->W, im->C}, im->bits);
}

/* Fills the batch and begins a tape for it, in the precision that the model answers in, until answered. */
static acf_image_view *look(const asked *a) {
    acf_image_session *s = a->s;
    acf_image_batch *batch = s->batch;
    const int64_t P = a->im->H * a->im->W, n = acf_min(batch->capacity, a->im->N - a->from);
    for (int64_t i = 0; i < n; i++) s->row[i] = a->from + i;
    if (!a->b) memset(batch->b, 0, (size_t)(n * P));
    for (int64_t i = 0; i < n; i++)
        acf_image_round(a->rounds, a->round, a->im->H, a->im->W, a->b ? a->b + (a->from + i) * P : batch->b + i * P, batch->b + i * P);
    acf_image_batch_fill(s->m->dev, batch, a->im, NULL, a->seed, a->draw, s->row, n);
    acf_tape_begin(s->t, false);
    s->m->dev->precision = s->m->answers;
    return acf_image_net_view(s->t, s->m->image, &(acf_image_query){.N = n, .x = batch->x, .role = batch->b, .id = batch->id}, NULL);
}

static int rounds_of(const acf_image_session *s) { return s->m->at_once ? 1 : (int)acf_options_int(s->m->config, "image-rounds"); }

static acf_status answered(const acf_image_session *s, acf_status status) {
    s->m->dev->precision = ACF_PRECISION_FLOAT;
    return status;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

static acf_status add_logp(const asked *a, double share, double *out) {
    acf_tape *t = a->s->t;
    const acf_image_batch *batch = a->s->batch;
    acf_tensor *logp = acf_image_net_logp(t, look(a));
    ACF_TRY(answered(a->s, acf_tape_check(t, logp)));
    acf_real *host = acf_arena_alloc(t->host, (size_t)batch->N * sizeof *host);
    if (!host) return ACF_EMEMORY;
    ACF_TRY(acf_device_copy(t->dev, host, logp->data, (size_t)batch->N * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    for (int64_t i = 0; i < batch->N; i++) out[a->from + i] += share * ((double)host[i] + batch->logdet[i]);
    return ACF_OK;
}

acf_status acf_paint_logp(acf_image_session *s, const acf_images *im, const uint8_t *b, int32_t draws, double *out) {
    const int rounds = rounds_of(s);
    ACF_TRY(check(s, im));
    for (int64_t i = 0; i < im->N; i++) out[i] = 0;
    for (int32_t k = 0; k < draws; k++)
        for (int64_t at = 0; at < im->N; at += s->batch->capacity)
            for (int r = 0; r < rounds; r++)
                ACF_TRY(add_logp(&(asked){s, im, b, SCORE_SEED, (uint32_t)k, at, r, rounds}, 1 / (double)draws, out));
    return ACF_OK;
}

static acf_image_code code_of(const acf_image_session *s, const acf_images *im) { return (acf_image_code){s->m->map, im->H * im->W, im->C}; }

/* One round of one batch; its levels go to out, the others stay as a->im has them. */
static acf_status draw_round(const asked *a, uint8_t *out) {
    acf_image_session *s = a->s;
    const acf_image_code code = code_of(s, a->im);
    const acf_draw how = {.seed = a->seed, .draw = a->draw, .log_temperature = s->m->log_temperature};
    acf_image_view *v = look(a);
    ACF_TRY(answered(s, acf_image_net_draw(s->t, v, &how, s->y)));
    acf_image_decode(s->m->dev, &code, s->batch->N, s->y, s->batch->b, s->batch->level, out + a->from * code.P * code.C);
    return ACF_OK;
}

/* Later rounds are asked of what the ones before have left in out. */
acf_status acf_paint_draw(acf_image_session *s, const acf_images *im, const uint8_t *b, uint64_t seed, uint32_t draw, uint8_t *out) {
    const int rounds = rounds_of(s);
    acf_images now = *im; /* borrows: nothing of it is freed */
    ACF_TRY(check(s, im));
    for (int64_t at = 0; at < im->N; at += s->batch->capacity)
        for (int r = 0; r < rounds; r++) {
            now.pixel = r ? out : im->pixel;
            ACF_TRY(draw_round(&(asked){s, &now, b, seed, draw, at, r, rounds}, out));
        }
    return ACF_OK;
}

acf_status acf_paint_guess(acf_image_session *s, const acf_images *im, const uint8_t *b, uint8_t *level, double *real) {
    const acf_image_code code = code_of(s, im);
    ACF_TRY(check(s, im));
    for (int64_t at = 0; at < im->N; at += s->batch->capacity) {
        const acf_image_batch *batch = s->batch;
        const int64_t to = at * code.P * code.C;
        acf_image_view *v = look(&(asked){s, im, b, SCORE_SEED, 0, at, 0, 1});
        ACF_TRY(answered(s, acf_image_net_guess(s->t, v, s->y)));
        if (level) acf_image_decode(s->m->dev, &code, batch->N, s->y, batch->b, batch->level, level + to);
        else acf_image_decode_real(s->m->dev, &code, batch->N, s->y, batch->b, batch->level, real + to);
    }
    return ACF_OK;
}

/* b (N,H,W): half number k is hidden. Of an odd number of rows or columns the middle one is drawn with both halves. */
static void hide_half(const acf_images *im, int64_t k, uint8_t *b) {
    for (int64_t i = 0; i < im->N * im->H * im->W; i++) {
        const int64_t y = i / im->W % im->H, x = i % im->W, at = k % 2 ? 2 * x + 1 - im->W : 2 * y + 1 - im->H;
        b[i] = k % 4 < 2 ? at > 0 : at < 0;
    }
}

acf_status acf_paint_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first, uint64_t seed, int64_t steps, uint8_t *out) {
    const size_t n = (size_t)(im->N * im->H * im->W * im->C);
    uint8_t *b = acf_alloc((size_t)(im->N * im->H * im->W), "masks");
    acf_status status = b ? ACF_OK : ACF_EMEMORY;
    memcpy(out, first ? first : im->pixel, n);
    for (int64_t k = 0; k < steps && !status; k++) {
        acf_images now = *im; /* borrows: nothing of it is freed */
        now.pixel = out + (size_t)k * n;
        hide_half(im, k, b);
        status = acf_paint_draw(s, &now, b, seed, (uint32_t)k, now.pixel + n);
    }
    acf_release(b);
    return status;
}
