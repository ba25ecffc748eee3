/* acflow info: what a table or a model is; without either, which library this is and what it runs on, the first thing to attach to a bug
 * report. */
#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *json, *devices;
static const cli_flag flags[] = {
    {"json", 0, NULL,
     "JSON instead of lines for people; of a table, a schema that can be edited and given back by --schema", &json},
    {"devices", 0, NULL, "the devices that --device can name, and why there is no GPU among them", &devices},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const cli_page page = {
    "info", "[TABLE|IMAGES|MODEL] [OPTIONS]",
    "Of a table: its columns and what acflow takes them for. Of images: their number, size and levels. Of a model: its columns, its options, how\n"
    "it was trained. Without a file: version, build, CPU, cores, threads, kernels and peak memory.",
    "  acflow info patients.csv\n"
    "  acflow info patients.csv --json > schema.json\n"
    "  acflow info faces/ --image-size 64\n"
    "  acflow info m.safetensors\n"
    "  acflow info --json --threads 2\n"
    "  acflow info --devices\n",
    CLI_READING};

/* The buffer is several times what the description takes; a longer one is reported, not cut. */
static int show(const acf_options *o) {
    char text[1 << 14];
    acf_status status;
    if (devices)
        status = json ? acf_devices(text, sizeof text, NULL) : acf_devices_text(text, sizeof text, NULL);
    else
        status = json ? acf_info(o, text, sizeof text, NULL) : acf_info_text(o, text, sizeof text, NULL);
    if (status != ACF_OK) return cli_failed("info");
    cli_print(json ? "%s\n" : "%s", text);
    return 0;
}

/* A model's file begins with the length of its header, less than 2^32, and then with a brace; no text does. */
static bool is_model(const char *path) {
    unsigned char begin[9];
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : NULL;
    bool yes = f && fread(begin, 1, 9, f) == 9 && begin[8] == '{' && !begin[4] && !begin[5] && !begin[6] && !begin[7];
    if (f) fclose(f);
    return yes;
}

/* Here the dialect is always said, under the first line; the library says it where it is an unusual one. */
static int print_table(const acf_table *t, const char *text) {
    char *how = cli_in_flags(cli_text("info", (cli_writer)acf_table_dialect, t));
    if (!how) return acf_status_exit(acf_error_status());
    const char *rest = strchr(text, '\n') + 1;
    const bool said = !*how || strncmp(rest, how, strlen(how)) == 0;
    cli_print("%.*s%s%s%s", (int)(rest - text), text, said ? "" : how, said ? "" : "\n", rest);
    free(how);
    return 0;
}

static int describe(const acf_options *o, const char *path) {
    acf_model *m = NULL;
    acf_table *t = NULL;
    acf_images *im = NULL;
    char *text = NULL;
    if (is_model(path)) {
        if (acf_model_load(path, o, &m) == ACF_OK)
            text = cli_text("info", json ? (cli_writer)acf_model_info : (cli_writer)acf_model_info_text, m);
        else
            cli_failed("info");
    } else if (acf_images_recognise(path)) {
        if (acf_images_open(path, o, &im) == ACF_OK) {
            if (*acf_images_note(im)) cli_say(CLI_WARN, "%s", acf_images_note(im));
            text = cli_text("info", json ? (cli_writer)acf_images_describe_json : (cli_writer)acf_images_describe, im);
        } else
            cli_failed("info");
    } else if (acf_table_read(path, o, &t) == ACF_OK) {
        text = cli_text("info", json ? (cli_writer)acf_table_describe_json : (cli_writer)acf_table_describe, t);
    } else
        cli_failed("info");
    int code = text ? 0 : acf_status_exit(acf_error_status());
    if (text && t && !json)
        code = print_table(t, text = cli_in_flags(text));
    else if (text)
        cli_print(json ? "%s\n" : "%s", text);
    free(text);
    acf_model_free(m);
    acf_table_free(t);
    acf_images_free(im);
    return code;
}

static int run(int argc, char **argv) {
    cli_job job;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.config) cli_say(CLI_INFO, "options read from '%s'", job.config);
    if (job.n_rest > 1)
        code = cli_usage("info", "info takes one file, but there is also '%s'", argv[1]);
    else if (job.n_rest && devices)
        code = cli_usage("info", "--devices is about this machine, but there is also '%s'", argv[0]);
    else
        code = job.n_rest ? describe(job.o, argv[0]) : show(job.o);
    cli_job_close(&job);
    return code;
}

const cli_command cli_info = {"info", "what a table, images, a model or this program is", run, &page, flags, FLAGS};
