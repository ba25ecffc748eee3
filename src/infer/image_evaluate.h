/* Evaluation of images: how well are hidden pixels found again, and is that better than simple fillings?
 *
 *     images ── masks ──> what is given ──┬── model ──> log p, best guess, draws and their mean ──┐
 *       │                                 └── mean image, smooth filling ─────────────────────────┤
 *       └──────────────────────────── the hidden pixels, as they were ────────────────────────────┴──> scores, by method and by mask
 *
 * or completions that were made elsewhere, in place of the model; or two files of features (prd.h) and nothing else.
 *
 * Scores of a filling, formulas in docs/math.md, Evaluation: PSNR as the paper counts it, over all pixels of an image, given ones included, and over
 * hidden ones alone; the mean squared error of hidden pixels, 0..255; recall and precision of distributions. All fillings are scored on the same
 * masks, number 0; log p over several. */
#ifndef ACF_INFER_IMAGE_EVALUATE_H
#define ACF_INFER_IMAGE_EVALUATE_H

#include "image/image_masks.h"
#include "infer/evaluate.h"
#include "infer/image_session.h"
#include "infer/metrics.h"
#include "infer/prd.h"

#define ACF_PRD_IMAGES 100 /* fewer are not clustered: 20 clusters would hold a few each */

/* Fillings, in the order of the report: two baselines, then the model's, or completions of a kind that is not known. */
enum { ACF_FILL_MEAN, ACF_FILL_SMOOTH, ACF_FILL_GUESS, ACF_FILL_MEAN_DRAW, ACF_FILL_DRAW, ACF_FILL_OTHER, ACF_FILLS };
#define ACF_FILL_BASELINES 2

typedef struct acf_fill_scores {
    int64_t sets;             /* that were scored: 0, this filling is not there; of draws, their number */
    double psnr, hidden;      /* dB, mean over images and sets; of all pixels, and of hidden ones */
    double mse;               /* of hidden numbers, levels scaled to 0..255; where no mask is known, of all */
    double recall, precision; /* F8 and F1/8; NaN: not compared */
} acf_fill_scores;

/* Of the images for which the mixture chose a part; log p and best guess on masks number 0. */
typedef struct acf_mask_scores {
    char name[120];
    int64_t images, finite; /* finite: whose PSNR is */
    double hidden, nll, bits,
        psnr; /* share of pixels; nats an image; bits per dimension; dB of the best guess, all pixels */
} acf_mask_scores;

typedef struct acf_image_evaluation {
    int64_t N, H, W, C; /* of what was evaluated; N = 0: features alone */
    int bits;
    char masks[256];    /* as they were asked for; "": not known */
    double share;       /* of pixels that are hidden, in masks number 0 */
    double changed;     /* of numbers that are given: share that completed images have otherwise; 0 for a model */
    bool model, fitted; /* there is one; it was fitted here, to `trained` images */
    int64_t trained;
    int passes; /* that hidden pixels are asked for in (image/image_passes.h) */
    acf_eval_settings set;
    acf_mean_deviation nll, bpd; /* of what is hidden, over masks */
    double joint, joint_bpd;     /* of whole images */
    acf_fill_scores fill[ACF_FILLS];
    int parts;
    acf_mask_scores part[ACF_IMAGE_MASKS_MAX];
    int64_t features;  /* numbers of an image's features; 0: none were compared */
    bool own_features; /* those of features.h */
    acf_prd prd;       /* of draws, or of whatever completions there are */
} acf_image_evaluation;

/* A set of completions from elsewhere: levels (N,H,W,C), and which filling they count as. */
typedef struct acf_fill_set {
    const uint8_t *level;
    int fill;
} acf_fill_set;

typedef struct acf_image_job {
    const acf_images *im;    /* the truth */
    const acf_model *model;  /* NULL: sets are scored instead */
    const acf_fill_set *set; /* (sets) */
    int64_t sets;
    const char *masks;      /* NULL: not known, and then no model */
    const acf_images *seen; /* whose mean is the baseline; NULL: that of the other images evaluated */
    acf_device *cpu;        /* for what is not the model */
    acf_eval_settings how;  /* masks: of log p; draws: 0 for none */
} acf_image_job;

/* Borrows the job. Gives *out; free with acf_release. Fails: ACF_EUSAGE and ACF_EDATA (the masks; images of another size), and as questions do. */
acf_status acf_image_evaluate(const acf_image_job *job, acf_image_evaluation **out);

/* Recall and precision alone, of sets of features done[0..n), each .npy (M,F), beside those of real images. Gives *out.
 * Fails: ACF_EIO, ACF_EDATA (also: widths that differ), ACF_EMEMORY. */
acf_status acf_image_evaluate_features(acf_device *cpu, const char *real, const char *const *done, int n, uint64_t seed,
                                       acf_image_evaluation **out);

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* out (N,H,W,C): hidden pixels as in the mean of `seen`, which has the same shape, or where it is NULL of the other images. NaN where there is no
 * other. b NULL: everything is hidden. */
void acf_fill_mean(const acf_images *im, const uint8_t *b, const acf_images *seen, double *out);

/* Hidden pixels of `out`, where given ones are already, become the smoothest continuation of the given ones: each the mean of its neighbours. An
 * image of which nothing is given stays as it is. */
void acf_fill_smooth(const acf_device *dev, const acf_images *im, const uint8_t *b, double *out);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

const char *acf_fill_name(int fill);

/* Scores by name. */
typedef struct acf_fill_metric {
    const char *key, *title; /* in JSON; for people */
    size_t at;               /* of the double in acf_fill_scores */
    bool high;               /* better */
} acf_fill_metric;
extern const acf_fill_metric acf_fill_metrics[];

/* The baseline that is better in this score than each of the other fillings: the best one, or -1 where none is. *best: which of the others is. */
int acf_fill_winner(const acf_image_evaluation *e, int metric, int *best);

void acf_image_evaluation_text(const acf_image_evaluation *e, acf_text *out);
/* Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_image_evaluation_json(const acf_image_evaluation *e, json_t **out);

#endif
