/* Images on the command line: see pictures.h. */
#include "cli/pictures.h"

#include "cli/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG2 0.69314718055994530942
#define SHEET_ROWS 16  /* images on a sheet at most */
#define SHEET_SIDE 96  /* pixels that a small image is enlarged to, about */
#define GAP 2

/* ---- images, models, masks ------------------------------------------------------------------------------------------------ */

int cli_images(const char *command, const char *path, const acf_model *m, const acf_options *o, acf_images **out) {
    if ((m ? acf_images_open_for(path, m, o, out) : acf_images_open(path, o, out)) != ACF_OK) return cli_failed(command);
    if (*acf_images_note(*out)) cli_say(CLI_WARN, "%s", acf_images_note(*out));
    return 0;
}

/* What a job on images works with. */
typedef struct work {
    const char *command;
    acf_model *m;
    acf_images *im;
    acf_image_session *s;
    int64_t shape[4], P, size; /* pixels of an image; numbers of all */
    uint8_t *given;            /* (images, rows, columns); NULL: nothing is given */
} work;

static int no_memory(void) {
    cli_say(CLI_ERROR, "out of memory for the images");
    return acf_status_exit(ACF_EMEMORY);
}

static uint64_t seed_of(const acf_options *o) {
    char seed[32] = "1";
    return acf_options_get(o, "seed", seed, sizeof seed, NULL) == ACF_OK ? strtoull(seed, NULL, 10) : 1;
}

static int open_work(work *w, const char *command, const acf_options *o, const char *path, const char *model, const char *mask) {
    *w = (work){.command = command};
    if (acf_model_load(model, o, &w->m) != ACF_OK) return cli_failed(command);
    if (!acf_model_is_images(w->m)) return cli_usage(command, "'%s' holds images, but '%s' is a model of a table", path, model);
    int code = cli_images(command, path, w->m, o, &w->im);
    if (code) return code;
    if (acf_image_session_create(w->m, &w->s) != ACF_OK || acf_images_shape(w->im, w->shape) != ACF_OK) return cli_failed(command);
    w->P = w->shape[1] * w->shape[2], w->size = w->shape[0] * w->P * w->shape[3];
    if (!mask) return 0;
    if (!(w->given = malloc((size_t)(w->shape[0] * w->P)))) return no_memory();
    return acf_images_masks(w->im, mask, seed_of(o), w->given) == ACF_OK ? 0 : cli_failed(command);
}

static void close_work(work *w) {
    acf_image_session_free(w->s);
    acf_images_free(w->im);
    acf_model_free(w->m);
    free(w->given);
}

/* Numbers asked for of image i. */
static int64_t asked(const work *w, int64_t i) {
    int64_t n = 0;
    for (int64_t p = 0; p < w->P; p++) n += !w->given || !w->given[i * w->P + p];
    return n * w->shape[3];
}

/* ---- fit ------------------------------------------------------------------------------------------------------------------ */

int cli_fit_pictures(cli_job *job, const char *path, const char *output, const char *log) {
    acf_options *all = NULL;
    acf_images *im = NULL;
    acf_model *m = NULL;
    char checkpoint[4096] = "";
    int code = acf_options_for_images(job->o, &all) == ACF_OK ? cli_images("fit", path, NULL, all, &im) : cli_failed("fit");
    char *text = code || job->quiet ? NULL : cli_text("fit", (cli_writer)acf_images_describe, im);
    if (text) fputs(text, stderr);
    free(text);
    if (!code) code = cli_fit_images(job, im, log, &m);
    if (!code && acf_model_save(m, output) != ACF_OK) code = cli_failed("fit");
    if (!code && acf_options_get(job->o, "checkpoint", checkpoint, sizeof checkpoint, NULL) == ACF_OK && *checkpoint) unlink(checkpoint);
    acf_model_free(m);
    acf_images_free(im);
    acf_options_free(all);
    return code;
}

/* ---- files ---------------------------------------------------------------------------------------------------------------- */

static int64_t zoom_for(const int64_t *shape) {
    const int64_t side = shape[1] > shape[2] ? shape[1] : shape[2], zoom = SHEET_SIDE / side;
    return zoom < 1 ? 1 : zoom;
}

static int make_folder(const char *path) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return 0;
    cli_say(CLI_ERROR, "cannot make the folder '%s': %s", path, strerror(errno));
    return acf_status_exit(ACF_EIO);
}

/* folder/NAME.WHAT.png, where NAME is the image's without its ending and what no file can be called. */
static void file_name(char *out, size_t cap, const char *folder, const work *w, int64_t i, const char *what) {
    char name[400] = "image";
    if (acf_images_name(w->im, i, name, sizeof name, NULL) != ACF_OK) snprintf(name, sizeof name, "image %lld", (long long)i);
    char *slash = strrchr(name, '/');
    if (slash) memmove(name, slash + 1, strlen(slash));
    char *dot = strrchr(name, '.');
    if (dot && dot != name && (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"))) *dot = 0;
    for (char *c = name; *c; c++)
        if (*c == ' ') *c = '-';
    snprintf(out, cap, "%s/%s.%s.png", folder, name, what);
}

/* Image i of `level` as a file of its own. */
static int put_image(const work *w, const char *folder, int64_t i, const char *what, const uint8_t *level) {
    char path[4096 + 500];
    const int64_t one[4] = {1, w->shape[1], w->shape[2], w->shape[3]};
    file_name(path, sizeof path, folder, w, i, what);
    return acf_picture_sheet(path, level + i * w->P * w->shape[3], one, acf_images_bits(w->im), 1, 1, 0) == ACF_OK ? 0 : cli_failed(w->command);
}

static int put_images(const work *w, const char *folder, const char *what, const uint8_t *level) {
    int code = 0;
    for (int64_t i = 0; i < w->shape[0] && !code; i++) code = put_image(w, folder, i, what, level);
    return code;
}

/* ---- impute --------------------------------------------------------------------------------------------------------------- */

/* Hidden pixels in the middle grey, with every other pixel dark: a hole is not mistaken for a colour. */
static void punch(const work *w, const uint8_t *level, uint8_t *out) {
    const int most = (1 << acf_images_bits(w->im)) - 1;
    for (int64_t k = 0; k < w->size; k++) {
        const int64_t p = k / w->shape[3], x = p % w->shape[2], y = p / w->shape[2] % w->shape[1];
        out[k] = !w->given || !w->given[p] ? (uint8_t)((x + y) % 2 ? most / 2 : most / 3) : level[k];
    }
}

/* Columns of the sheet from `kind` on: as many images of each as fit. sheet (rows, columns, H, W, C). */
static void put_column(const work *w, uint8_t *sheet, int64_t rows, int64_t columns, int64_t column, const uint8_t *level) {
    const size_t n = (size_t)(w->P * w->shape[3]);
    for (int64_t i = 0; i < rows; i++) memcpy(sheet + (size_t)(i * columns + column) * n, level + (size_t)i * n, n);
}

/* Draws and the best guess, each to files and to its column of the sheet. */
static int paint(const work *w, const acf_options *o, long long draws, const char *folder, uint8_t *level, uint8_t *sheet, int64_t rows) {
    const int64_t columns = draws + 3;
    int code = 0;
    punch(w, acf_images_pixels(w->im), level);
    put_column(w, sheet, rows, columns, 0, level);
    for (long long k = 0; k < draws && !code; k++) {
        char what[32];
        snprintf(what, sizeof what, "%lld", k + 1);
        if (acf_image_session_draw(w->s, w->im, w->given, seed_of(o), (uint32_t)k, level) != ACF_OK) return cli_failed(w->command);
        put_column(w, sheet, rows, columns, k + 1, level);
        code = put_images(w, folder, what, level);
    }
    if (!code && acf_image_session_guess(w->s, w->im, w->given, level) != ACF_OK) code = cli_failed(w->command);
    if (!code) code = put_images(w, folder, "guess", level);
    put_column(w, sheet, rows, columns, draws + 1, level);
    put_column(w, sheet, rows, columns, draws + 2, acf_images_pixels(w->im));
    return code;
}

int cli_impute_pictures(const cli_job *job, const char *path, const char *model, const char *mask, long long draws, const char *output) {
    work w;
    int code = open_work(&w, "impute", job->o, path, model, mask);
    if (!code) code = make_folder(output);
    if (!code) {
        const int64_t rows = w.shape[0] < SHEET_ROWS ? w.shape[0] : SHEET_ROWS, columns = draws + 3;
        const int64_t shape[4] = {rows * columns, w.shape[1], w.shape[2], w.shape[3]};
        uint8_t *level = malloc((size_t)w.size), *sheet = malloc((size_t)(rows * columns * w.P * w.shape[3]));
        char name[4096 + 16];
        code = level && sheet ? paint(&w, job->o, draws, output, level, sheet, rows) : no_memory();
        snprintf(name, sizeof name, "%s/sheet.png", output);
        if (!code && acf_picture_sheet(name, sheet, shape, acf_images_bits(w.im), columns, zoom_for(shape), GAP) != ACF_OK) code = cli_failed("impute");
        if (!code)
            cli_say(CLI_INFO, "%lld images, %lld draws each and the best guess; %s: input, draws, best guess, what was hidden", (long long)w.shape[0], draws, name);
        free(level);
        free(sheet);
    }
    close_work(&w);
    return code;
}

/* ---- score ---------------------------------------------------------------------------------------------------------------- */

static int put_scores(const work *w, FILE *f) {
    double *lp = malloc((size_t)w->shape[0] * sizeof *lp);
    int code = !lp ? no_memory() : acf_image_session_logp(w->s, w->im, w->given, lp) == ACF_OK ? 0 : cli_failed(w->command);
    if (!code) fputs("image,logp,bits_per_dimension\n", f);
    for (int64_t i = 0; i < w->shape[0] && !code; i++) {
        char name[400] = "";
        if (acf_images_name(w->im, i, name, sizeof name, NULL) != ACF_OK) code = cli_failed(w->command);
        cli_put_field(f, name);
        fprintf(f, ",%.9g,%.6g\n", lp[i], -lp[i] / ((double)asked(w, i) * LOG2));
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

/* ---- sample --------------------------------------------------------------------------------------------------------------- */

static bool ends_in_png(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcasecmp(path + n - 4, ".png") == 0;
}

int cli_sample_pictures(const acf_model *m, long long n, long long seed, const char *output) {
    work w = {.command = "sample"};
    uint8_t *level = NULL;
    int code = 0;
    if (acf_images_blank(m, n, &w.im) != ACF_OK || acf_image_session_create(m, &w.s) != ACF_OK || acf_images_shape(w.im, w.shape) != ACF_OK)
        code = cli_failed("sample");
    w.P = w.shape[1] * w.shape[2], w.size = w.shape[0] * w.P * w.shape[3];
    if (!code && !(level = malloc((size_t)w.size))) code = no_memory();
    if (!code && acf_image_session_draw(w.s, w.im, NULL, (uint64_t)seed, 0, level) != ACF_OK) code = cli_failed("sample");
    const int64_t across = (int64_t)ceil(sqrt((double)n));
    if (!code && ends_in_png(output)) {
        if (acf_picture_sheet(output, level, w.shape, acf_images_bits(w.im), across, zoom_for(w.shape), GAP) != ACF_OK) code = cli_failed("sample");
    } else if (!code && (code = make_folder(output)) == 0) {
        for (int64_t i = 0; i < n && !code; i++) {
            char path[4096 + 64];
            const int64_t one[4] = {1, w.shape[1], w.shape[2], w.shape[3]};
            snprintf(path, sizeof path, "%s/%06lld.png", output, (long long)i + 1);
            if (acf_picture_sheet(path, level + i * w.P * w.shape[3], one, acf_images_bits(w.im), 1, 1, 0) != ACF_OK) code = cli_failed("sample");
        }
    }
    free(level);
    acf_image_session_free(w.s);
    acf_images_free(w.im);
    return code;
}
