/* Evaluation of images: how well are hidden pixels reconstructed, and is that better than simple fillings?
 *
 *     images ── masks ──> given pixels ──┬── model ──> log p, best guess, draws and their mean ──┐
 *       │                                └── mean image, smooth filling ─────────────────────────┤
 *       └─────────────────────────── the hidden pixels, as they were ────────────────────────────┴──> scores
 *
 * Scores are by method and by mask. Completions made elsewhere can replace the model; or two files of features
 * (prd.h) are compared and nothing else.
 *
 * Scores of a filling (formulas in docs/math.md, Evaluation): PSNR over all pixels including given ones, as in the
 * paper, and over hidden pixels only; the mean squared error of hidden pixels, 0..255; recall and precision of
 * distributions. All fillings are scored on the same masks, number 0; log p on several. */
#ifndef ACF_INFER_IMAGE_EVALUATE_H
#define ACF_INFER_IMAGE_EVALUATE_H

#include "image/image_masks.h"
#include "infer/evaluate.h"
#include "infer/image_session.h"
#include "infer/metrics.h"
#include "infer/prd.h"

#define ACF_PRD_IMAGES 100 /* with fewer images, 20 clusters would hold only a few each */

/* Fillings in the order of the report: two baselines, then the model's, or completions of unknown kind. */
enum { ACF_FILL_MEAN, ACF_FILL_SMOOTH, ACF_FILL_GUESS, ACF_FILL_MEAN_DRAW, ACF_FILL_DRAW, ACF_FILL_OTHER, ACF_FILLS };
#define ACF_FILL_BASELINES 2

typedef struct acf_fill_scores {
    int64_t sets;             /* sets scored, for draws their number; 0: this filling is absent */
    double psnr, hidden;      /* dB, mean over images and sets; of all pixels, and of hidden ones */
    double mse;               /* of hidden numbers, levels scaled to 0..255; of all numbers if the mask is unknown */
    double recall, precision; /* F8 and F1/8; NaN: not compared */
} acf_fill_scores;

/* Scores of images whose mask is of one part of the mixture; log p and best guess on masks number 0. */
typedef struct acf_mask_scores {
    char name[120];
    int64_t images, finite; /* finite: images with a finite PSNR */
    /* Share of pixels; nats an image; bits per dimension; dB of the best guess, all pixels. */
    double hidden, nll, bits, psnr;
} acf_mask_scores;

typedef struct acf_image_evaluation {
    int64_t N, H, W, C; /* of the evaluated images; N = 0: features only */
    int bits;
    char masks[256];    /* as requested; "": unknown */
    double share;       /* of pixels that are hidden, in masks number 0 */
    double changed;     /* share of given numbers that differ in completed images; 0 for a model */
    bool model, fitted; /* there is a model; it was fitted here, to `trained` images */
    int64_t trained;
    int passes; /* passes of the model's queries (image/image_passes.h) */
    acf_eval_settings set;
    acf_mean_deviation nll, bpd; /* of the hidden pixels, over masks */
    double joint, joint_bpd;     /* of whole images */
    acf_fill_scores fill[ACF_FILLS];
    int parts;
    acf_mask_scores part[ACF_IMAGE_MASKS_MAX];
    int64_t features;  /* features per image; 0: not compared */
    bool own_features; /* made by features.h */
    acf_prd prd;       /* of draws, or of the completions */
} acf_image_evaluation;

/* A set of completions from elsewhere: levels (N,H,W,C), and the filling that they count as. */
typedef struct acf_fill_set {
    const uint8_t *level;
    int fill;
} acf_fill_set;

typedef struct acf_image_job {
    const acf_images *im;    /* the truth */
    const acf_model *model;  /* NULL: `set` is scored instead */
    const acf_fill_set *set; /* (sets) */
    int64_t sets;
    const char *masks;      /* NULL: unknown, and then there is no model */
    const acf_images *seen; /* images whose mean is the baseline; NULL: the mean of the other evaluated images */
    acf_device *cpu;        /* for everything but the model */
    acf_eval_settings how;  /* masks: for log p; draws: 0 for none */
} acf_image_job;

/* Borrows the job. Gives *out; free with acf_release. Fails: ACF_EUSAGE and ACF_EDATA (the masks; images of another
 * size), and as queries do. */
acf_status acf_image_evaluate(const acf_image_job *job, acf_image_evaluation **out);

/* Only recall and precision, of sets of features done[0..n), each .npy (M,F), against those of real images. Gives
 * *out. Fails: ACF_EIO, ACF_EDATA (also: widths that differ), ACF_EMEMORY. */
acf_status acf_image_evaluate_features(acf_device *cpu, const char *real, const char *const *done, int n, uint64_t seed,
                                       acf_image_evaluation **out);

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* out (N,H,W,C): hidden pixels take the mean of `seen`, which has the same shape, or of the other images if it is
 * NULL. NaN if there is no other. b NULL: everything is hidden. */
void acf_fill_mean(const acf_images *im, const uint8_t *b, const acf_images *seen, double *out);

/* Replaces the hidden pixels of `out`, which already has the given ones, by the smoothest continuation of the given
 * ones: each is the mean of its neighbours. An image without given pixels stays as it is. */
void acf_fill_smooth(const acf_device *dev, const acf_images *im, const uint8_t *b, double *out);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

const char *acf_fill_name(int fill);

/* Scores by name. */
typedef struct acf_fill_metric {
    const char *key, *title; /* in JSON; for people */
    size_t at;               /* of the double in acf_fill_scores */
    bool high;               /* higher is better */
} acf_fill_metric;
extern const acf_fill_metric acf_fill_metrics[];

/* The best baseline that is better in this score than every other filling; -1: none. *best: the best of the other
 * fillings. */
int acf_fill_winner(const acf_image_evaluation *e, int metric, int *best);

void acf_image_evaluation_text(const acf_image_evaluation *e, acf_text *out);
/* Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_image_evaluation_json(const acf_image_evaluation *e, json_t **out);

#endif
