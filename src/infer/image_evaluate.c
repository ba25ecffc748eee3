/* Evaluation of images: see image_evaluate.h.
 *
 * Workload: 1e2 to 1e4 images of 1e3 to 1e4 numbers, 10 to 20 draws. Most of the time goes to queries. Draws are
 * scored one after the other and not kept, so memory is about 20 bytes per number of the images. */
#include "infer/image_evaluate.h"

#include "image/image_codec.h"
#include "infer/features.h"

#include <math.h>
#include <string.h>

#define LOG2 0.69314718055994530942

/* Sums over the sets of a filling. */
typedef struct sums {
    double psnr, hidden, mse, images, hidden_images, numbers; /* the last three: counts of each sum */
    acf_prd prd;
} sums;

/* The state of an evaluation. */
typedef struct work {
    const acf_image_job *job;
    const acf_images *im;
    acf_image_evaluation *e;
    acf_image_masks *masks; /* NULL: unknown */
    acf_image_session *s;   /* NULL: no model */
    acf_features *f;        /* NULL: no comparison of features */
    acf_arena *memory;      /* owns the arrays below */
    int64_t n, size;        /* numbers per image; in all images */
    uint64_t *id;           /* (N) 0, 1, 2, ... */
    uint8_t *b;             /* (N,H,W) masks number 0; NULL: unknown */
    uint8_t *later;         /* masks number 1, 2, ... */
    uint8_t *level;         /* (N,H,W,C) the current filling as levels */
    double *value, *mean;   /* (N,H,W,C) the same as real numbers; sum of draws */
    double *each, *logp;    /* (N) PSNR of each image in the last filling; log p */
    acf_real *real, *done;  /* (N,features) */
    sums *sum;              /* (ACF_FILLS) */
} work;

/* ---- scores of a filling ----------------------------------------------------------------------------------------- */

static double decibel(double square) { return -10 * log10(square); }

/* Adds the squared errors of image i of w->value, in units of the full range. An image without any error has an
 * infinite PSNR and is left out of the mean, as in the paper. */
static void add_errors(work *w, int64_t i, sums *s) {
    const double most = (1 << w->im->bits) - 1;
    double all = 0, hidden = 0, numbers = 0;
    for (int64_t k = i * w->n; k < (i + 1) * w->n; k++) {
        const double d = (w->value[k] - w->im->pixel[k]) / most;
        all += d * d;
        if (!w->b || !w->b[k / w->im->C]) hidden += d * d, numbers++;
    }
    w->each[i] = decibel(all / (double)w->n);
    if (!(all <= 0)) s->psnr += w->each[i], s->images++;
    if (!(hidden <= 0)) s->hidden += decibel(hidden / numbers), s->hidden_images++;
    s->mse += 65025 * hidden, s->numbers += numbers;
}

/* Rounds real numbers to levels, for the feature network. */
static void round_values(work *w) {
    const double most = (1 << w->im->bits) - 1;
    for (int64_t k = 0; k < w->size; k++) w->level[k] = (uint8_t)fmin(fmax(nearbyint(w->value[k]), 0), most);
}

/* Scores w->value as one more set of this filling. */
static acf_status add_fill(work *w, int fill) {
    sums *s = &w->sum[fill];
    w->e->fill[fill].sets++;
    for (int64_t i = 0; i < w->im->N; i++) add_errors(w, i, s);
    if (!w->f) return ACF_OK;
    round_values(w);
    ACF_TRY(acf_features_of(w->f, w->level, w->im->N, w->done));
    return acf_prd_compare(w->job->cpu, w->real, w->im->N, w->done, w->im->N, w->e->features, w->job->how.seed,
                           &s->prd);
}

static acf_status add_levels(work *w, int fill, const uint8_t *level) {
    for (int64_t k = 0; k < w->size; k++) w->value[k] = level[k];
    if (fill == ACF_FILL_DRAW)
        for (int64_t k = 0; k < w->size; k++) w->mean[k] += w->value[k];
    return add_fill(w, fill);
}

/* Scores the mean of the draws so far, if there are several. */
static acf_status add_mean_draw(work *w) {
    const double draws = (double)w->e->fill[ACF_FILL_DRAW].sets;
    if (draws < 2) return ACF_OK;
    for (int64_t k = 0; k < w->size; k++) w->value[k] = w->mean[k] / draws;
    return add_fill(w, ACF_FILL_MEAN_DRAW);
}

static void finish_fill(acf_fill_scores *f, const sums *s) {
    f->psnr = s->images > 0 ? s->psnr / s->images : NAN; /* NaN: no image has an error */
    f->hidden = s->hidden_images > 0 ? s->hidden / s->hidden_images : NAN;
    f->mse = s->numbers > 0 ? s->mse / s->numbers : NAN;
    f->recall = acf_prd_f(&s->prd, 8), f->precision = acf_prd_f(&s->prd, 1.0 / 8);
}

/* ---- fillings ---------------------------------------------------------------------------------------------------- */

static acf_status add_baselines(work *w) {
    if (!w->b || (!w->job->seen && w->im->N < 2)) return ACF_OK;
    acf_fill_mean(w->im, w->b, w->job->seen, w->value);
    ACF_TRY(add_fill(w, ACF_FILL_MEAN));
    acf_fill_smooth(w->job->cpu, w->im, w->b, w->value); /* images without given pixels keep the mean image */
    return add_fill(w, ACF_FILL_SMOOTH);
}

static acf_status add_model(work *w) {
    for (int64_t k = 0; k < w->job->how.draws; k++) {
        ACF_TRY(acf_image_session_query_draw(w->s, w->im, w->b, w->job->how.seed, (uint32_t)k, w->level));
        ACF_TRY(add_levels(w, ACF_FILL_DRAW, w->level));
    }
    ACF_TRY(add_mean_draw(w));
    ACF_TRY(acf_image_session_query_guess(w->s, w->im, w->b, NULL, w->value));
    return add_fill(w, ACF_FILL_GUESS);
}

/* Counts given numbers that differ in a completed image. Then it was made with another mask, or its file format
 * loses values. */
static void count_changed(work *w) {
    int64_t given = 0, changed = 0;
    for (int64_t s = 0; s < w->job->sets && w->b; s++)
        for (int64_t k = 0; k < w->size; k++)
            if (w->b[k / w->im->C]) given++, changed += w->job->set[s].level[k] != w->im->pixel[k];
    w->e->changed = given ? (double)changed / (double)given : 0;
}

static acf_status add_sets(work *w) {
    count_changed(w);
    for (int64_t k = 0; k < w->job->sets; k++) ACF_TRY(add_levels(w, w->job->set[k].fill, w->job->set[k].level));
    return add_mean_draw(w);
}

/* ---- log p ------------------------------------------------------------------------------------------------------- */

static int64_t hidden_pixels(const work *w, const uint8_t *b, int64_t i) {
    const int64_t P = w->im->H * w->im->W;
    int64_t n = 0;
    for (int64_t p = 0; p < P; p++) n += !b[i * P + p];
    return n;
}

/* Bits per dimension of image i with mask b, from its log p. */
static double bits_of(const work *w, const uint8_t *b, int64_t i) {
    return -w->logp[i] / ((double)(hidden_pixels(w, b, i) * w->im->C) * LOG2);
}

/* Scores of masks number 0 by part of the mixture; w->each is the best guess's. */
static void add_parts(work *w) {
    for (int64_t i = 0; i < w->im->N; i++) {
        acf_mask_scores *p = &w->e->part[acf_image_masks_choice(w->masks, w->job->how.seed, w->id[i], 0)];
        p->images++;
        p->hidden += (double)hidden_pixels(w, w->b, i) / (double)(w->im->H * w->im->W);
        p->nll -= w->logp[i], p->bits += bits_of(w, w->b, i);
        p->psnr += isfinite(w->each[i]) ? w->each[i] : 0, p->finite += isfinite(w->each[i]);
    }
    w->e->parts = w->masks->n;
    for (int k = 0; k < w->masks->n; k++) {
        acf_mask_scores *p = &w->e->part[k];
        const double n = (double)p->images;
        acf_text t = acf_text_into(p->name, sizeof p->name);
        acf_image_mask_part_write(&w->masks->part[k], &t);
        p->hidden /= n, p->nll /= n, p->bits /= n, p->psnr /= (double)p->finite; /* NaN if there are none */
    }
}

static acf_status ask_logp(work *w) {
    const int64_t N = w->im->N, masks = w->job->how.masks;
    double *nll = acf_arena_alloc(w->memory, (size_t)(2 * masks) * sizeof *nll), *bits = nll ? nll + masks : NULL;
    if (!nll) return ACF_EMEMORY;
    for (int64_t k = 0; k < masks; k++) {
        uint8_t *b = k ? w->later : w->b;
        if (k) acf_image_masks_draw(w->job->cpu, w->masks, w->job->how.seed, (uint32_t)k, N, w->id, b);
        ACF_TRY(acf_image_session_query_logp(w->s, w->im, b, 1, w->logp));
        nll[k] = bits[k] = 0;
        for (int64_t i = 0; i < N; i++) nll[k] -= w->logp[i] / (double)N, bits[k] += bits_of(w, b, i) / (double)N;
        if (k == 0) add_parts(w);
    }
    w->e->nll = acf_metric_repeated(nll, masks), w->e->bpd = acf_metric_repeated(bits, masks);
    ACF_TRY(acf_image_session_query_logp(w->s, w->im, NULL, 1, w->logp));
    w->e->joint = 0;
    for (int64_t i = 0; i < N; i++) w->e->joint -= w->logp[i] / (double)N;
    w->e->joint_bpd = w->e->joint / ((double)w->n * LOG2);
    return ACF_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void *array(work *w, int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_arena_alloc(w->memory, bytes) : NULL;
}

static acf_status make_arrays(work *w) {
    const int64_t N = w->im->N, P = w->im->H * w->im->W;
    ACF_TRY(acf_arena_create(&acf_heap, 0, &w->memory));
    w->id = array(w, N, sizeof *w->id), w->b = array(w, N * P, 1), w->later = array(w, N * P, 1),
    w->level = array(w, w->size, 1);
    w->value = array(w, w->size, sizeof *w->value), w->mean = array(w, w->size, sizeof *w->mean);
    w->each = array(w, N, sizeof *w->each), w->logp = array(w, N, sizeof *w->logp);
    w->real = array(w, N * ACF_FEATURES_MAX, sizeof *w->real),
    w->done = array(w, N * ACF_FEATURES_MAX, sizeof *w->done);
    w->sum = array(w, ACF_FILLS, sizeof *w->sum);
    if (!w->id || !w->b || !w->later || !w->level || !w->value || !w->mean || !w->each || !w->logp || !w->real ||
        !w->done || !w->sum)
        return ACF_EMEMORY;
    for (int64_t i = 0; i < N; i++) w->id[i] = (uint64_t)i;
    memset(w->mean, 0, (size_t)w->size * sizeof *w->mean);
    memset(w->sum, 0, ACF_FILLS * sizeof *w->sum);
    return ACF_OK;
}

/* Makes masks number 0. */
static acf_status hide(work *w) {
    int64_t hidden = 0;
    if (!w->job->masks) {
        w->b = NULL;
        return ACF_OK;
    }
    acf_text t = acf_text_into(w->e->masks, sizeof w->e->masks);
    acf_text_add(&t, w->job->masks);
    ACF_TRY(acf_image_masks_open(w->job->masks, w->im, &w->masks));
    acf_image_masks_draw(w->job->cpu, w->masks, w->job->how.seed, 0, w->im->N, w->id, w->b);
    for (int64_t i = 0; i < w->im->N; i++) hidden += hidden_pixels(w, w->b, i);
    w->e->share = (double)hidden / (double)(w->im->N * w->im->H * w->im->W);
    return ACF_OK;
}

/* Learns features if there are draws or completions, and enough images for a comparison of distributions. */
static acf_status learn_features(work *w) {
    if (w->im->N < ACF_PRD_IMAGES || (w->job->model && w->job->how.draws == 0)) return ACF_OK;
    ACF_TRY(acf_features_learn(w->job->cpu, w->im, ACF_FEATURE_STEPS, w->job->how.seed, &w->f));
    w->e->features = acf_features_count(w->f), w->e->own_features = true;
    return acf_features_of(w->f, w->im->pixel, w->im->N, w->real);
}

static acf_status run(work *w) {
    ACF_TRY(make_arrays(w));
    ACF_TRY(hide(w));
    if (w->job->model) ACF_TRY(acf_image_session_open(w->job->model, &w->s));
    if (w->s) w->e->passes = acf_image_session_passes(w->s);
    ACF_TRY(learn_features(w));
    ACF_TRY(add_baselines(w));
    if (w->s) {
        ACF_TRY(add_model(w));
        ACF_TRY(ask_logp(w));
    } else
        ACF_TRY(add_sets(w));
    for (int k = 0; k < ACF_FILLS; k++) finish_fill(&w->e->fill[k], &w->sum[k]);
    w->e->prd = w->sum[w->e->fill[ACF_FILL_DRAW].sets    ? ACF_FILL_DRAW
                       : w->e->fill[ACF_FILL_OTHER].sets ? ACF_FILL_OTHER
                                                         : ACF_FILL_GUESS]
                    .prd;
    return ACF_OK;
}

acf_status acf_image_evaluate(const acf_image_job *job, acf_image_evaluation **out) {
    const acf_images *im = job->im;
    acf_image_evaluation *e = acf_alloc_zero(sizeof *e, "an evaluation");
    if (!e) return ACF_EMEMORY;
    *e = (acf_image_evaluation){.N = im->N,
                                .H = im->H,
                                .W = im->W,
                                .C = im->C,
                                .bits = im->bits,
                                .model = job->model,
                                .fitted = job->seen,
                                .trained = job->seen ? job->seen->N : 0,
                                .set = job->how,
                                .nll = {NAN, NAN},
                                .bpd = {NAN, NAN},
                                .joint = NAN,
                                .joint_bpd = NAN};
    work w = {.job = job, .im = im, .e = e, .n = im->H * im->W * im->C, .size = im->N * im->H * im->W * im->C};
    acf_status status = run(&w);
    acf_image_masks_free(w.masks);
    acf_image_session_free(w.s);
    acf_features_free(w.f);
    if (w.memory) acf_arena_free(w.memory);
    if (status)
        acf_release(e);
    else
        *out = e;
    return status;
}

/* ---- features alone ---------------------------------------------------------------------------------------------- */

/* Adds one more set from a file. */
static acf_status add_file(acf_device *cpu, const char *path, const char *real_path, const acf_real *real, int64_t N,
                           int64_t F, uint64_t seed, acf_prd *prd) {
    acf_real *x;
    int64_t M, G;
    ACF_TRY(acf_prd_read(path, &x, &M, &G));
    acf_status status =
        G == F ? acf_prd_compare(cpu, real, N, x, M, F, seed, prd)
               : acf_fail(ACF_EDATA,
                          "%s has %lld features an image, but %s has %lld; both must come from the same network", path,
                          (long long)G, real_path, (long long)F);
    acf_release(x);
    return status;
}

acf_status acf_image_evaluate_features(acf_device *cpu, const char *real, const char *const *done, int n, uint64_t seed,
                                       acf_image_evaluation **out) {
    acf_real *x;
    int64_t N, F;
    ACF_TRY(acf_prd_read(real, &x, &N, &F));
    acf_image_evaluation *e = acf_alloc_zero(sizeof *e, "an evaluation");
    acf_status status = e ? ACF_OK : ACF_EMEMORY;
    for (int k = 0; k < n && !status; k++) status = add_file(cpu, done[k], real, x, N, F, seed, &e->prd);
    acf_release(x);
    if (status) {
        acf_release(e);
        return status;
    }
    e->features = F, e->set.seed = seed, e->trained = N;
    acf_fill_scores *f = &e->fill[ACF_FILL_OTHER];
    *f = (acf_fill_scores){n, NAN, NAN, NAN, acf_prd_f(&e->prd, 8), acf_prd_f(&e->prd, 1.0 / 8)};
    *out = e;
    return ACF_OK;
}
