/* Images on the command line: see pictures.h. */
#include "cli/pictures.h"

#include "cli/output.h"
#include "cli/picture_files.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define LOG2 0.69314718055994530942
#define SHEET_ROWS 16  /* maximum number of images on a contact sheet */
#define SHEET_DRAWS 16 /* and draws of each */

/* ---- images, models, masks --------------------------------------------------------------------------------------- */

int cli_images(const char *command, const char *path, const acf_model *m, const acf_options *o, acf_images **out) {
    if (acf_images_open(path, m, o, out) != ACF_OK) return cli_failed(command);
    if (*acf_images_note(*out)) cli_say(CLI_WARN, "%s", acf_images_note(*out));
    return 0;
}

/* The inputs of a job on images. */
typedef struct work {
    const char *command;
    acf_model *m;
    acf_images *im;
    acf_image_session *s;
    int64_t shape[4], P, size; /* pixels of an image; numbers of all */
    uint8_t *given;            /* (images, rows, columns); NULL: nothing is given */
} work;

static uint64_t seed_of(const acf_options *o) {
    char seed[32] = "1";
    return acf_options_get(o, "seed", seed, sizeof seed, NULL) == ACF_OK ? strtoull(seed, NULL, 10) : 1;
}

static int open_work(work *w, const char *command, const acf_options *o, const char *path, const char *model,
                     const char *mask) {
    *w = (work){.command = command};
    if (acf_model_load(model, o, &w->m) != ACF_OK) return cli_failed(command);
    if (!acf_model_is_images(w->m))
        return cli_usage(command, "'%s' has images, but '%s' is a model of a table", path, model);
    int code = cli_images(command, path, w->m, o, &w->im);
    if (code) return code;
    if (acf_image_session_create(w->m, &w->s) != ACF_OK || acf_images_shape(w->im, w->shape) != ACF_OK)
        return cli_failed(command);
    w->P = w->shape[1] * w->shape[2], w->size = w->shape[0] * w->P * w->shape[3];
    if (!mask) return 0;
    if (!(w->given = malloc((size_t)(w->shape[0] * w->P)))) return cli_no_memory("the images");
    return acf_images_masks(w->im, mask, seed_of(o), w->given) == ACF_OK ? 0 : cli_failed(command);
}

static void close_work(work *w) {
    acf_image_session_free(w->s);
    acf_images_free(w->im);
    acf_model_free(w->m);
    free(w->given);
}

/* Number of target values of image i. */
static int64_t target(const work *w, int64_t i) {
    int64_t n = 0;
    for (int64_t p = 0; p < w->P; p++) n += !w->given || !w->given[i * w->P + p];
    return n * w->shape[3];
}

/* ---- fit --------------------------------------------------------------------------------------------------------- */

int cli_fit_pictures(cli_job *job, const char *path, const char *output, const char *log) {
    acf_options *all = NULL;
    acf_images *im = NULL;
    acf_model *m = NULL;
    int code =
        acf_options_for_images(job->o, &all) == ACF_OK ? cli_images("fit", path, NULL, all, &im) : cli_failed("fit");
    char *text = code || job->is.quiet ? NULL : cli_text("fit", (cli_writer)acf_images_describe, im, ACF_TEXT);
    if (text) fputs(text, stderr);
    free(text);
    if (!code) code = cli_fit_images(job, im, log, &m);
    if (!code && acf_model_save(m, output) != ACF_OK) code = cli_failed("fit");
    if (!code) cli_drop_state(job);
    acf_model_free(m);
    acf_images_free(im);
    acf_options_free(all);
    return code;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool ends_in_png(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcasecmp(path + n - 4, ".png") == 0;
}

const char *cli_mask_file(const char *mask) {
    const char *dot = mask ? strrchr(mask, '.') : NULL;
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0)
               ? mask
               : NULL;
}

int cli_need_png(const char *command, const char *path) {
    return ends_in_png(path) ? 0 : cli_usage(command, "'%s' does not end in .png; pictures are written as PNG", path);
}

/* ---- impute ------------------------------------------------------------------------------------------------------ */

/* The contents of the sheet: (columns, rows, H, W, C) levels, and the text above each column. */
typedef struct contact {
    int64_t rows;
    int columns;
    uint8_t *level;
    const uint8_t *at[SHEET_DRAWS + 2];
    const char *name[SHEET_DRAWS + 2];
    char draw[SHEET_DRAWS][16];
} contact;

/* Sets the next column to the first of these images. */
static void add_column(const work *w, contact *c, const char *name, const uint8_t *level) {
    const size_t n = (size_t)(c->rows * w->P * w->shape[3]);
    c->at[c->columns] = memcpy(c->level + (size_t)c->columns * n, level, n);
    c->name[c->columns++] = name;
}

/* Writes folder/NAME.WHAT.png of each image; level is changed. */
static int put_images(const work *w, const char *folder, const char *what, uint8_t *level) {
    int64_t shape[4];
    int code = cli_unpad(w->command, w->im, w->shape[0], level, shape);
    for (int64_t i = 0; i < w->shape[0] && !code; i++) {
        char name[400], path[5000];
        if (acf_images_file_name(w->im, i, name, sizeof name, NULL) != ACF_OK) return cli_failed(w->command);
        snprintf(path, sizeof path, "%s/%s.%s.png", folder, name, what);
        code = cli_put_picture(w->command, path, level, shape, acf_images_bits(w->im), i);
    }
    return code;
}

/* Writes draws and the best guess, each to files and to its column of the sheet. */
static int paint(const work *w, const cli_job *job, const cli_inpaint *ask, uint8_t *level, contact *c) {
    int code = 0;
    for (long long k = 0; k < ask->draws && !code; k++) {
        char what[32];
        snprintf(what, sizeof what, "%lld", k + 1);
        if (acf_image_session_draw(w->s, w->im, w->given, seed_of(job->o), (uint32_t)k, level) != ACF_OK)
            return cli_failed(w->command);
        if (k < SHEET_DRAWS) {
            snprintf(c->draw[k], sizeof c->draw[k], "draw %d", (int)k + 1);
            add_column(w, c, c->draw[k], level);
        }
        code = put_images(w, ask->output, what, level);
    }
    if (!code && acf_image_session_guess(w->s, w->im, w->given, level, NULL) != ACF_OK) code = cli_failed(w->command);
    if (code) return code;
    add_column(w, c, "guess", level);
    return put_images(w, ask->output, "guess", level);
}

/* Is `name` an output for an image called `base`: base.N.png with N up to draws, or base.guess.png? */
static bool is_answer(const char *name, const char *base, long long draws) {
    const size_t n = strlen(base);
    char *end;
    if (strncmp(name, base, n) != 0 || name[n] != '.') return false;
    if (strcmp(name + n, ".guess.png") == 0) return true;
    const long long k = strtoll(name + n + 1, &end, 10);
    return name[n + 1] >= '1' && name[n + 1] <= '9' && k <= draws && strcmp(end, ".png") == 0;
}

/* Refuses to overwrite a file that was read with one written into the folder. */
static int check_names(const work *w, const cli_inpaint *ask) {
    const char *const read[] = {ask->path, ask->model, cli_mask_file(ask->mask), ask->truth};
    struct stat folder, here;
    int code = 0;
    for (int k = 0; k < 4 && !code; k++) {
        char at[PATH_MAX], name[400];
        if (!read[k] || stat(ask->output, &folder) != 0 || !realpath(read[k], at)) continue;
        char *slash = strrchr(at, '/');
        const char *last = slash + 1;
        *slash = 0;
        if (stat(*at ? at : "/", &here) != 0 || here.st_dev != folder.st_dev || here.st_ino != folder.st_ino) continue;
        bool taken = strcmp(last, "sheet.png") == 0;
        for (int64_t i = 0; i < w->shape[0] && !taken; i++) {
            if (acf_images_file_name(w->im, i, name, sizeof name, NULL) != ACF_OK) return cli_failed(w->command);
            taken = is_answer(last, name, ask->draws);
        }
        if (taken)
            code = cli_usage(w->command, "'%s' would be overwritten by a result in -o '%s'; give another folder",
                             read[k], ask->output);
    }
    return code;
}

/* *out: images for the last column, one for each image; NULL: none are given. */
static int open_truth(const work *w, const cli_job *job, const char *path, acf_images **out) {
    int64_t shape[4];
    int code = path ? cli_images(w->command, path, w->m, job->o, out) : 0;
    if (code || !*out) return code;
    if (acf_images_shape(*out, shape) != ACF_OK) return cli_failed(w->command);
    if (shape[0] == w->shape[0]) return 0;
    return cli_usage(w->command, "--truth '%s' has %lld images, but there are %lld to compare with", path,
                     (long long)shape[0], (long long)w->shape[0]);
}

int cli_impute_pictures(const cli_job *job, const cli_inpaint *ask) {
    work w;
    contact c = {0};
    uint8_t *level = NULL;
    acf_images *truth = NULL;
    char sheet[4096 + 16];
    int code = open_work(&w, "impute", job->o, ask->path, ask->model, ask->mask);
    if (!code) code = open_truth(&w, job, ask->truth, &truth);
    if (!code) code = cli_make_folder("impute", ask->output, ask->path);
    if (!code) code = check_names(&w, ask);
    if (!code) {
        c.rows = w.shape[0] < SHEET_ROWS ? w.shape[0] : SHEET_ROWS;
        level = malloc((size_t)w.size), c.level = malloc((size_t)((SHEET_DRAWS + 2) * c.rows * w.P * w.shape[3]));
        if (!level || !c.level) code = cli_no_memory("the images");
    }
    if (!code) code = paint(&w, job, ask, level, &c);
    if (!code) add_column(&w, &c, truth ? "truth" : "original", acf_images_pixels(truth ? truth : w.im));
    snprintf(sheet, sizeof sheet, "%s/sheet.png", ask->output);
    if (!code && acf_plot_completed(sheet, NULL, w.im, w.given, c.rows, c.at, c.name, c.columns) != ACF_OK)
        code = cli_failed("impute");
    if (!code)
        cli_say(CLI_INFO, "%lld images, %lld draws each and the best guess; %s shows them", (long long)w.shape[0],
                ask->draws, sheet);
    free(level);
    free(c.level);
    acf_images_free(truth);
    close_work(&w);
    return code;
}

/* ---- score ------------------------------------------------------------------------------------------------------- */

static int put_scores(const work *w, FILE *f) {
    double *lp = malloc((size_t)w->shape[0] * sizeof *lp);
    int code = !lp                                                           ? cli_no_memory("the images")
               : acf_image_session_logp(w->s, w->im, w->given, lp) == ACF_OK ? 0
                                                                             : cli_failed(w->command);
    if (!code) fputs("image,logp,bits_per_dimension\n", f);
    for (int64_t i = 0; i < w->shape[0] && !code; i++) {
        char name[400] = "";
        if (acf_images_name(w->im, i, name, sizeof name, NULL) != ACF_OK) code = cli_failed(w->command);
        cli_put_field(f, name);
        fprintf(f, ",%.9g,%.6g\n", lp[i], -lp[i] / ((double)target(w, i) * LOG2));
    }
    free(lp);
    return code;
}

int cli_score_pictures(const cli_job *job, const char *path, const char *model, const char *mask, const char *output) {
    work w;
    cli_output out;
    int code = open_work(&w, "score", job->o, path, model, mask);
    if (!code && (code = cli_output_open(&out, output)) == 0) code = cli_output_close(&out, put_scores(&w, out.file));
    close_work(&w);
    return code;
}

/* ---- sample ------------------------------------------------------------------------------------------------------ */

/* A name with another ending is meant to be a file: drawn.csv, drawn.jpg. */
static bool looks_like_a_file(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot && dot != path && dot[1] && strlen(dot) <= 5 && !ends_in_png(path);
}

int cli_sample_pictures(const acf_model *m, long long n, long long seed, const char *output) {
    work w = {.command = "sample"};
    if (looks_like_a_file(output))
        return cli_usage("sample", "'%s' is neither a .png file (a sheet) nor a folder (a file per image)", output);
    uint8_t *level = NULL;
    int code = 0;
    if (acf_images_blank(m, n, &w.im) != ACF_OK || acf_image_session_create(m, &w.s) != ACF_OK ||
        acf_images_shape(w.im, w.shape) != ACF_OK)
        code = cli_failed("sample");
    if (!code && !(level = malloc((size_t)(n * w.shape[1] * w.shape[2] * w.shape[3]))))
        code = cli_no_memory("the images");
    if (!code && acf_image_session_draw(w.s, w.im, NULL, (uint64_t)seed, 0, level) != ACF_OK)
        code = cli_failed("sample");
    if (!code) code = cli_unpad("sample", w.im, n, level, w.shape);
    const int64_t across = (int64_t)ceil(sqrt((double)n));
    const int bits = acf_images_bits(w.im);
    if (!code && ends_in_png(output)) {
        if (acf_picture_sheet(output, level, w.shape, bits, across, cli_zoom(w.shape, CLI_SHEET_SIDE), CLI_SHEET_GAP) !=
            ACF_OK)
            code = cli_failed("sample");
    } else if (!code && (code = cli_make_folder("sample", output, NULL)) == 0) {
        for (int64_t i = 0; i < n && !code; i++) {
            char path[4096 + 64];
            snprintf(path, sizeof path, "%s/%06lld.png", output, (long long)i + 1);
            code = cli_put_picture("sample", path, level, w.shape, bits, i);
        }
    }
    free(level);
    acf_image_session_free(w.s);
    acf_images_free(w.im);
    return code;
}
