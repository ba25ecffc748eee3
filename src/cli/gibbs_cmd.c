/* acflow gibbs: a chain of images, in which each step redraws half of the image. */
#include "cli/output.h"
#include "cli/picture_files.h"
#include "cli/pictures.h"

#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *steps_text, *seed_text, *animate;
static const cli_flag flags[] = {
    {"model", 'm', "FILE", "input", "Model of images from acflow fit (required)", &model_path},
    {"steps", 0, "N", "queries", "Number of steps, each of which redraws half of the image (default 50)", &steps_text},
    {"seed", 0, "N", "queries", "Seed of the random numbers (default 1)", &seed_text},
    {"animate", 0, NULL, "output", "Write an animated PNG instead of a strip", &animate},
    {"output", 'o', "FILE", "output", "PNG file to write (required)", &output},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"queries", "images", "image queries", "machine", NULL};

static const cli_page page = {
    "gibbs",
    "[IMAGE] --model MODEL -o FILE [OPTIONS]",
    "Draws a Gibbs chain of images: each step redraws one half given the other, in the order top, left, bottom, "
    "right. It starts from IMAGE, or from an image drawn from the model.",
    NULL,
    "  acflow gibbs --model faces.safetensors --steps 50 -o chain.png\n"
    "  acflow gibbs photo.png --model faces.safetensors --steps 200 --animate -o chain.png\n",
    NULL,
    "docs/images.md",
    sections};

#define STRIP 10 /* images in a row of the strip */
#define FRAME_MS 80
#define FRAME_SIDE 256 /* approximate pixels of a small image in the animation */

/* The first image: that of the file, or a draw. */
static int first_image(const acf_model *m, const acf_options *o, acf_image_session *s, const char *path, long long seed,
                       acf_images **im, uint8_t **level) {
    int64_t shape[4];
    int code = path                                   ? cli_images("gibbs", path, m, o, im)
               : acf_images_blank(m, 1, im) == ACF_OK ? 0
                                                      : cli_failed("gibbs");
    if (code) return code;
    if (acf_images_shape(*im, shape) != ACF_OK) return cli_failed("gibbs");
    if (!(*level = malloc((size_t)(shape[1] * shape[2] * shape[3])))) return cli_no_memory("an image");
    if (path)
        memcpy(*level, acf_images_pixels(*im), (size_t)(shape[1] * shape[2] * shape[3]));
    else if (acf_image_session_draw(s, *im, NULL, (uint64_t)seed, UINT32_MAX, *level) != ACF_OK)
        return cli_failed("gibbs");
    return 0;
}

static int chain(const acf_model *m, const acf_options *o, const char *path, long long steps, long long seed) {
    acf_image_session *s = NULL;
    acf_images *im = NULL;
    uint8_t *first = NULL, *all = NULL;
    int64_t shape[4] = {0};
    int code =
        acf_image_session_create(m, &s) == ACF_OK ? first_image(m, o, s, path, seed, &im, &first) : cli_failed("gibbs");
    if (!code && acf_images_shape(im, shape) != ACF_OK) code = cli_failed("gibbs");
    if (!code && shape[0] != 1)
        code = cli_usage("gibbs", "a chain starts from one image, but '%s' has %lld", path, (long long)shape[0]);
    shape[0] = steps + 1;
    if (!code && !(all = malloc((size_t)(shape[0] * shape[1] * shape[2] * shape[3]))))
        code = cli_no_memory("the chain");
    if (!code && acf_image_session_gibbs(s, im, first, (uint64_t)seed, steps, all) != ACF_OK)
        code = cli_failed("gibbs");
    if (!code) code = cli_unpad("gibbs", im, steps + 1, all, shape);
    if (!code) {
        const int bits = acf_images_bits(im);
        const int64_t across = shape[0] < STRIP ? shape[0] : STRIP;
        const acf_status status =
            animate
                ? acf_picture_animate(output, all, shape, bits, cli_zoom(shape, FRAME_SIDE), FRAME_MS)
                : acf_picture_sheet(output, all, shape, bits, across, cli_zoom(shape, CLI_SHEET_SIDE), CLI_SHEET_GAP);
        if (status != ACF_OK) code = cli_failed("gibbs");
    }
    free(first);
    free(all);
    acf_images_free(im);
    acf_image_session_free(s);
    return code;
}

static int check(const cli_job *job, const char *path) {
    const cli_file files[] = {
        {CLI_READS, "the image", path}, {CLI_READS, "--model", model_path}, {CLI_WRITES, "-o", output}};
    return cli_check_files(job, files, 3);
}

static int run(int argc, char **argv) {
    cli_job job;
    acf_model *m = NULL;
    long long steps = 50, seed = 1;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest > 1)
        code = cli_usage("gibbs", "gibbs takes one image, but there is also '%s'", argv[1]);
    else if (!model_path)
        code = cli_usage("gibbs", "--model is required (make one of images with acflow fit)");
    else if (!output)
        code = cli_usage("gibbs", "-o is required: the PNG file to write");
    else if ((code = cli_need_png("gibbs", output)) != 0) {
    } else if ((steps_text && !cli_number("gibbs", "steps", steps_text, 1, 10000, &steps)) ||
               (seed_text && !cli_number("gibbs", "seed", seed_text, 0, 9007199254740992, &seed)))
        code = 2;
    else if ((code = check(&job, job.n_rest ? argv[0] : NULL)) != 0) {
    } else if (acf_model_load(model_path, job.o, &m) != ACF_OK)
        code = cli_failed("gibbs");
    else if (!acf_model_is_images(m))
        code = cli_usage("gibbs", "'%s' is a model of a table, expected one of images", model_path);
    else
        code = chain(m, job.o, job.n_rest ? argv[0] : NULL, steps, seed);
    acf_model_free(m);
    cli_job_close(&job);
    return code;
}

const cli_command cli_gibbs = {"gibbs", "draw a Gibbs chain of images", run, &page, flags, FLAGS};
