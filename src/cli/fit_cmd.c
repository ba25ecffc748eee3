/* acflow fit: a model from a table with missing cells, or from images. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <stdio.h>
#include <stdlib.h>

static const char *output, *log_path, *valid_path;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "output", "Model file to write (safetensors; required)", &output},
    {"valid-table", 0, "FILE", "training",
     "Table to validate on, with the training masks. Nothing of TABLE is then held out", &valid_path, .more = true},
    {"log", 0, "FILE", "training", "Training log to write, a JSON object per step. acflow plot training draws it",
     &log_path, .more = true},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"input",  "model",       "donors",  "training",
                                       "images", "image model", "machine", NULL};

static const cli_page page = {
    "fit",
    "TABLE|IMAGES -o MODEL [OPTIONS]",
    "Fits one model to a table, which may have missing cells, or to images. The model answers every query about the "
    "columns: see acflow impute, score and sample.",
    "A table is CSV, TSV or a relative, plain or gzip, an NPY matrix, or - for standard input. Columns are typed from "
    "their cells; the types are shown.\n\n"
    "Images are a folder of PNG or JPEG files, one such file, an idx file as MNIST's, or .npy of bytes in 3 or 4 "
    "dimensions; --preset selects the model.\n\n"
    "^C stops training and keeps its state in MODEL.checkpoint; the same command with --resume continues.",
    "  acflow fit patients.csv -o patients.safetensors\n"
    "  acflow fit patients.csv -o m.safetensors --types zip=category,id=identifier --missing -999\n"
    "  acflow fit faces/ --preset tiny --image-size 32 -o faces.safetensors\n",
    "  acflow fit big.csv.gz -o m.safetensors --steps 50000      ^C stops it and keeps m.safetensors.checkpoint;\n"
    "  acflow fit big.csv.gz -o m.safetensors --steps 50000 --resume      continues from there\n"
    "  acflow fit more/ --init-from faces.safetensors --seed 2 -o better.safetensors      continues a model\n",
    "docs/tables.md, docs/images.md",
    sections};

/* Trains, then saves; the checkpoint is removed once the model is saved. */
static int fit(cli_job *job, const char *path) {
    acf_table *t = NULL, *valid = NULL;
    acf_model *m = NULL;
    if (acf_table_read(path, NULL, job->o, &t) != ACF_OK) return cli_failed("fit");
    cli_show_table(job, t);
    int code = valid_path && acf_table_read_like(valid_path, t, job->o, &valid) != ACF_OK ? cli_failed("fit") : 0;
    if (!code && valid) cli_say_warnings(valid);
    if (!code) code = cli_fit_table(job, t, valid, log_path, &m);
    if (!code && acf_model_save(m, output) != ACF_OK) code = cli_failed("fit");
    if (!code && !job->is.quiet && acf_model_rows(m))
        fprintf(stderr,
                "Nearest-neighbour donors improved the validation score, so %s stores the %lld training rows. "
                "Use --no-donors to leave them out.\n",
                output, (long long)acf_model_rows(m));
    if (!code) cli_drop_state(job);
    acf_model_free(m);
    acf_table_free(valid);
    acf_table_free(t);
    return code;
}

static int check(const cli_job *job, const char *path) {
    const cli_file files[] = {{CLI_READS, "the table", path},
                              {CLI_READS, "--valid-table", valid_path},
                              {CLI_WRITES, "-o", output},
                              {CLI_WRITES, "--log", log_path}};
    return cli_check_files(job, files, 4);
}

static int run(int argc, char **argv) {
    cli_job job;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest != 1)
        code = cli_usage(
            "fit", job.n_rest ? "fit takes one input, but there is also '%s'" : "a table, or images, is required%s",
            job.n_rest ? argv[1] : "");
    else if (!output)
        code = cli_usage("fit", "-o is required: the model file to write");
    else if ((code = cli_keep_state(&job, output)) != 0 || (code = check(&job, argv[0])) != 0) {
    } else if (!acf_images_recognise(argv[0]))
        code = fit(&job, argv[0]);
    else if (valid_path)
        code = cli_usage("fit", "--valid-table is for tables; for images set --valid, the fraction to hold out");
    else
        code = cli_fit_pictures(&job, argv[0], output, log_path);
    cli_job_close(&job);
    return code;
}

const cli_command cli_fit = {"fit", "fit a model to a table with missing cells, or to images", run, &page, flags,
                             FLAGS};
