/* acflow fit: a model from a table with holes, or from images. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <stdio.h>
#include <stdlib.h>

static const char *output, *log_path, *valid_path;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "where the model goes (safetensors); needed", &output},
    {"valid-table", 0, "FILE",
     "validate on the rows of this table, asked with the masks of training, and hold nothing out of TABLE",
     &valid_path},
    {"log", 0, "FILE", "write every step as a line of JSON, for acflow plot training", &log_path},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const cli_page page = {
    "fit", "TABLE|IMAGES -o MODEL [OPTIONS]",
    "Learns one model of the table, which may have holes: CSV, TSV and the like, plain or gzip, an NPY matrix, or - for standard input.\n"
    "Columns are typed from their cells and shown. The model answers every question about the columns: see impute, score, sample.\n\n"
    "Images are a folder of PNG or JPEG files, one such file, an idx file as MNIST's, or .npy of bytes in 3 or 4 dimensions; --preset says what model.",
    "  acflow fit patients.csv -o patients.safetensors\n"
    "  acflow fit patients.csv -o m.safetensors --types zip=category,id=identifier --missing -999\n"
    "  acflow fit big.csv.gz -o m.safetensors --steps 50000      ^C ends it and keeps m.safetensors.checkpoint;\n"
    "  acflow fit big.csv.gz -o m.safetensors --steps 50000 --resume      goes on from there\n"
    "  acflow fit faces/ --preset tiny --image-size 32 -o faces.safetensors\n"
    "  acflow fit more/ --init-from faces.safetensors --seed 2 -o better.safetensors      from a model on\n",
    CLI_ALL};

/* Trains, then saves; the checkpoint has done its service once the model is there. */
static int fit(cli_job *job, const char *path) {
    acf_table *t = NULL, *valid = NULL;
    acf_model *m = NULL;
    if (acf_table_read(path, job->o, &t) != ACF_OK) return cli_failed("fit");
    cli_show_table(job, t);
    int code = valid_path && acf_table_read_like(valid_path, t, job->o, &valid) != ACF_OK ? cli_failed("fit") : 0;
    if (!code && valid) cli_say_warnings(valid);
    if (!code) code = cli_fit_table(job, t, valid, log_path, &m);
    if (!code && acf_model_save(m, output) != ACF_OK) code = cli_failed("fit");
    if (!code && !job->quiet && acf_model_rows(m))
        fprintf(
            stderr,
            "Rows like their own tell more of unknown cells, so the model looks them up: %s holds all %lld rows of the table. --no-donors leaves them out.\n",
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
        code = cli_usage("fit", job.n_rest ? "fit takes one table, but there is also '%s'" : "which table?%s",
                         job.n_rest ? argv[1] : "");
    else if (!output)
        code = cli_usage("fit", "where should the model go? -o FILE");
    else if ((code = cli_keep_state(&job, output)) != 0 || (code = check(&job, argv[0])) != 0) {
    } else if (!acf_images_recognise(argv[0]))
        code = fit(&job, argv[0]);
    else if (valid_path)
        code = cli_usage("fit", "--valid-table is for tables; of images a part is held out, --valid");
    else
        code = cli_fit_pictures(&job, argv[0], output, log_path);
    cli_job_close(&job);
    return code;
}

const cli_command cli_fit = {"fit", "learn a model of a table with holes, or of images", run, &page, flags, FLAGS};
