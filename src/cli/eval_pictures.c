/* acflow eval on images, on completed images, and on features of either: see pictures.h. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <stdlib.h>

static int put_report(const cli_eval_wish *what, const acf_image_evaluation *e) {
    return cli_put_report("eval", what->output, (cli_writer)acf_image_eval_report, e, what->json ? ACF_JSON : ACF_TEXT);
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

/* Sets a share of the images aside and fits a model to the others, as eval of a table does with cells. *im becomes
 * those set aside. */
static int fit_others(cli_job *job, const cli_eval_wish *what, acf_images **im, acf_images **learned, acf_model **m) {
    char share[64] = "", seed[32] = "";
    acf_images *rest = NULL;
    if (acf_options_get(job->o, "eval-rate", share, sizeof share, NULL) != ACF_OK ||
        acf_options_get(job->o, "seed", seed, sizeof seed, NULL) != ACF_OK ||
        acf_images_split(*im, strtod(share, NULL), strtoull(seed, NULL, 10), learned, &rest) != ACF_OK)
        return cli_failed("eval");
    acf_images_free(*im);
    *im = rest;
    return cli_fit_images(job, *learned, what->log, m);
}

/* Reads the images as the model needs them, or, if one is to be fitted, as its preset does. */
static int open_images(const cli_job *job, const char *path, const acf_model *m, acf_images **im) {
    acf_options *all = NULL;
    if (m) return cli_images("eval", path, m, job->o, im);
    int code =
        acf_options_for_images(job->o, &all) == ACF_OK ? cli_images("eval", path, NULL, all, im) : cli_failed("eval");
    acf_options_free(all);
    return code;
}

int cli_eval_pictures(cli_job *job, const cli_eval_wish *what, const char *path) {
    acf_model *m = NULL;
    acf_images *im = NULL, *learned = NULL;
    acf_image_evaluation *e = NULL;
    int code = 0;
    if (what->model && acf_model_load(what->model, job->o, &m) != ACF_OK) return cli_failed("eval");
    if (m && !acf_model_is_images(m))
        code = cli_usage("eval", "'%s' has images, but '%s' is a model of a table", path, what->model);
    if (!code) code = open_images(job, path, m, &im);
    if (!code && !m) code = fit_others(job, what, &im, &learned, &m);
    if (!code && acf_image_eval_run(im, m, what->mask, learned, job->o, &e) != ACF_OK) code = cli_failed("eval");
    if (!code) code = put_report(what, e);
    acf_image_eval_free(e);
    acf_model_free(m);
    acf_images_free(learned);
    acf_images_free(im);
    return code;
}

/* ---- completed images and features ----------------------------------------------------------------------------- */

int cli_eval_completed(const cli_job *job, const cli_eval_wish *what, const char *path) {
    acf_images *truth = NULL;
    acf_image_evaluation *e = NULL;
    int code = cli_images("eval", what->truth, NULL, job->o, &truth);
    if (!code && acf_image_eval_completed(truth, path, what->mask, job->o, &e) != ACF_OK) code = cli_failed("eval");
    if (!code) code = put_report(what, e);
    acf_image_eval_free(e);
    acf_images_free(truth);
    return code;
}

int cli_eval_features(const cli_job *job, const cli_eval_wish *what, const char *const *path, int n) {
    acf_image_evaluation *e = NULL;
    int code = acf_image_eval_features(what->features, path, n, job->o, &e) == ACF_OK ? 0 : cli_failed("eval");
    if (!code) code = put_report(what, e);
    acf_image_eval_free(e);
    return code;
}
