/* fit, impute, score, sample and eval for images: used if their argument, or their model, is one of images. Functions
 * return the exit code, after a message. */
#ifndef ACF_CLI_PICTURES_H
#define ACF_CLI_PICTURES_H

#include "cli/job.h"

/* Reads images for a model, or with the job's options if m is NULL, and prints their warnings. */
int cli_images(const char *command, const char *path, const acf_model *m, const acf_options *o, acf_images **out);

/* The mask if it is the file of a picture; NULL if it is the text of a mixture, or not given. */
const char *cli_mask_file(const char *mask);

/* Trains and saves. */
int cli_fit_pictures(cli_job *job, const char *path, const char *output, const char *log);

/* Inpaintings into a folder: NAME.1.png ... for the draws, NAME.guess.png, and sheet.png. */
typedef struct cli_inpaint {
    const char *path, *model, *mask, *output;
    const char *truth; /* images to show beside them; NULL: the images at path */
    long long draws;
} cli_inpaint;
int cli_impute_pictures(const cli_job *job, const cli_inpaint *ask);

/* Refuses a name that does not end in .png. */
int cli_need_png(const char *command, const char *path);

/* A CSV line for each image: name, log p, bits per dimension. mask NULL: the joint density. */
int cli_score_pictures(const cli_job *job, const char *path, const char *model, const char *mask, const char *output);

/* n new images: a sheet if output ends in .png, otherwise a file for each in that folder. */
int cli_sample_pictures(const acf_model *m, long long n, long long seed, const char *output);

/* The flags of eval; NULL: not given. */
typedef struct cli_eval_wish {
    const char *model, *mask, *truth, *features, *log, *output;
    bool json;
} cli_eval_wish;

/* Likelihoods, PSNR, squared error, precision and recall of a model's answers; without a model one is fitted to a part
 * of the images. */
int cli_eval_pictures(cli_job *job, const cli_eval_wish *what, const char *path);
/* The same of completed images at path, beside the true ones. */
int cli_eval_completed(const cli_job *job, const cli_eval_wish *what, const char *path);
/* Precision and recall over n files of features of completed images, beside those of real ones. */
int cli_eval_features(const cli_job *job, const cli_eval_wish *what, const char *const *path, int n);

#endif
