/* acflow sample: new rows, or images, from a model. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <stdlib.h>

static const char *output, *model_path, *rows_text, *given, *seed_text;
static const cli_flag flags[] = {
    {"model", 'm', "FILE", "input", "Model from acflow fit (required)", &model_path},
    {"rows", 'n', "N", "queries", "Number of rows (default 1000), or of images (default 16)", &rows_text},
    {"given", 0, "LIST", "queries", "Given values of every row, such as age=40,sex=F", &given},
    {"seed", 0, "N", "queries", "Seed of the random numbers (default 1)", &seed_text},
    {"output", 'o', "FILE", "output",
     "CSV file to write (default: standard output). For images: a sheet (.png) or a folder, required", &output},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"queries", "image queries", "machine", NULL};

static const cli_page page = {
    "sample",
    "--model MODEL [OPTIONS]",
    "Draws new rows, or new images, from a model. Columns can be given; the others are then drawn given these.",
    "A model of images draws images, as one sheet or a file each.",
    "  acflow sample --model m.safetensors -n 1000 -o drawn.csv\n"
    "  acflow sample --model m.safetensors -n 20 --given age=40,sex=F\n"
    "  acflow sample --model faces.safetensors -n 64 -o faces.png\n",
    NULL,
    "docs/tables.md, docs/images.md",
    sections};

static int draw(const acf_model *m, long long rows, long long seed) {
    acf_table *t = NULL;
    acf_session *s = NULL;
    acf_writer *w = NULL;
    const acf_write_plan plan = {.imputations = 1, .drawn = 1, .seed = (uint64_t)seed};
    double *x = malloc((size_t)rows * (size_t)acf_model_columns(m) * sizeof *x);
    if (!x) return cli_no_memory("the rows");
    bool ok = acf_table_blank(m, rows, given, &t) == ACF_OK;
    if (ok) cli_say_warnings(t);
    ok = ok && acf_writer_check(t, cli_destination(output), &plan) == ACF_OK && acf_session_create(m, &s) == ACF_OK &&
         acf_session_draw(s, t, NULL, NULL, (uint64_t)seed, 0, x) == ACF_OK &&
         acf_writer_open(t, cli_destination(output), &plan, &w) == ACF_OK && acf_writer_put(w, x, NULL, NULL) == ACF_OK;
    if (!ok) acf_writer_abort(w);
    ok = ok && acf_writer_commit(w) == ACF_OK;
    int code = ok ? 0 : cli_failed("sample");
    acf_session_free(s);
    acf_table_free(t);
    free(x);
    return code;
}

static int draw_images(const acf_model *m, long long images, long long seed) {
    if (given) return cli_usage("sample", "--given is for tables; use acflow impute --mask to draw parts of images");
    if (!output) return cli_usage("sample", "-o is required for images: FILE.png or a folder");
    return cli_sample_pictures(m, images, seed, output);
}

/* Images may go to a folder, and the kind of the model is not known yet. */
static int check(const cli_job *job) {
    const cli_file files[] = {{CLI_READS, "--model", model_path}, {CLI_FILLS, "-o", cli_destination(output)}};
    return cli_check_files(job, files, 2);
}

static int run(int argc, char **argv) {
    cli_job job;
    acf_model *m = NULL;
    long long rows = 1000, seed = 1;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest)
        code = cli_usage("sample", "sample takes no input, but there is '%s'", argv[0]);
    else if (!model_path)
        code = cli_usage("sample", "--model is required (make one with acflow fit)");
    else if ((rows_text && !cli_number("sample", "rows", rows_text, 1, 100000000, &rows)) ||
             (seed_text && !cli_number("sample", "seed", seed_text, 0, 9007199254740992, &seed)))
        code = 2;
    else if ((code = check(&job)) != 0) {
    } else if (acf_model_load(model_path, job.o, &m) != ACF_OK)
        code = cli_failed("sample");
    else if (!acf_model_is_images(m) && (code = cli_check_output(output)) != 0) {
    } else
        code = acf_model_is_images(m) ? draw_images(m, rows_text ? rows : 16, seed) : draw(m, rows, seed);
    acf_model_free(m);
    cli_job_close(&job);
    return code;
}

const cli_command cli_sample = {"sample", "draw new rows or images from a model", run, &page, flags, FLAGS};
