/* acflow info: describes a table or a model; without either, the library and the machine, which every bug report should
 * have. */
#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *json, *devices;
static const cli_flag flags[] = {
    {"json", 0, NULL, "output",
     "Write JSON instead of text. For a table it is a schema, which can be edited and used with --schema", &json},
    {"devices", 0, NULL, "machine", "List the devices that --device accepts, and why there is no GPU", &devices},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"input", "images", "machine", NULL};

static const cli_page page = {
    "info",
    "[TABLE|IMAGES|MODEL] [OPTIONS]",
    "Describes a table, images or a model. Without a file: the version and the machine.",
    "Of a table: its columns and their types. Of images: their number, size and levels. Of a model: its columns, its "
    "options and its training. Without a file: version, build, CPU, cores, threads, kernels and peak memory; please "
    "attach this to a bug report.",
    "  acflow info patients.csv\n"
    "  acflow info patients.csv --json > schema.json\n"
    "  acflow info m.safetensors\n",
    "  acflow info faces/ --image-size 64\n"
    "  acflow info --json --threads 2\n"
    "  acflow info --devices\n",
    "docs/columns.md, docs/cli.md",
    sections};

static acf_status devices_of_this_machine(const void *ignored, acf_format format, char *out, size_t cap,
                                          size_t *needed) {
    (void)ignored;
    return acf_devices(format, out, cap, needed);
}

static void print(const char *text) { cli_print(json ? "%s\n" : "%s", text); }

static int show(const acf_options *o) {
    char *text =
        cli_text("info", devices ? devices_of_this_machine : (cli_writer)acf_info, o, json ? ACF_JSON : ACF_TEXT);
    if (!text) return acf_status_exit(acf_error_status());
    print(text);
    free(text);
    return 0;
}

/* A model file begins with the length of its header, less than 2^32, and then a brace; no text does. */
static bool is_model(const char *path) {
    unsigned char begin[9];
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : NULL;
    bool yes = f && fread(begin, 1, 9, f) == 9 && begin[8] == '{' && !begin[4] && !begin[5] && !begin[6] && !begin[7];
    if (f) fclose(f);
    return yes;
}

/* The dialect in the words of flags, to free; NULL without memory, with a message. */
static char *dialect_of(const acf_table *t) {
    size_t needed = 0;
    acf_table_dialect(t, NULL, 0, &needed);
    char *how = malloc(needed + 1);
    if (how && acf_table_dialect(t, how, needed + 1, NULL) == ACF_OK) return cli_in_flags(how);
    if (how)
        cli_failed("info");
    else
        cli_no_memory("a text");
    free(how);
    return NULL;
}

/* info always prints the dialect, under the first line; the library prints only an unusual one. */
static int print_table(const acf_table *t, const char *text) {
    char *how = dialect_of(t);
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
    const acf_format format = json ? ACF_JSON : ACF_TEXT;
    if (is_model(path)) {
        if (acf_model_load(path, o, &m) == ACF_OK)
            text = cli_text("info", (cli_writer)acf_model_info, m, format);
        else
            cli_failed("info");
    } else if (acf_images_recognise(path)) {
        if (acf_images_open(path, NULL, o, &im) == ACF_OK) {
            if (*acf_images_note(im)) cli_say(CLI_WARN, "%s", acf_images_note(im));
            text = cli_text("info", (cli_writer)acf_images_describe, im, format);
        } else
            cli_failed("info");
    } else if (acf_table_read(path, NULL, o, &t) == ACF_OK) {
        text = cli_text("info", (cli_writer)acf_table_describe, t, format);
    } else
        cli_failed("info");
    int code = text ? 0 : acf_status_exit(acf_error_status());
    if (text && t && !json)
        code = print_table(t, text = cli_in_flags(text));
    else if (text)
        print(text);
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
    if (job.is.config) cli_say(CLI_INFO, "options read from '%s'", job.is.config);
    if (job.n_rest > 1)
        code = cli_usage("info", "info takes one file, but there is also '%s'", argv[1]);
    else if (job.n_rest && devices)
        code = cli_usage("info", "--devices takes no input, but there is also '%s'", argv[0]);
    else
        code = job.n_rest ? describe(job.o, argv[0]) : show(job.o);
    cli_job_close(&job);
    return code;
}

const cli_command cli_info = {"info", "describe a table, images, a model or this machine", run, &page, flags, FLAGS};
