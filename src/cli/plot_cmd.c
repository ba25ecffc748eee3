/* acflow plot: pictures of tables, models and training. */
#include "cli/names.h"
#include "cli/output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *column, *columns, *given, *rows_text, *draws_text, *title, *masks_text,
    *seed_text;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "output", "Picture to write, .png or .svg (required)", &output},
    {"model", 'm', "FILE", "input", "Model from acflow fit (imputed, conditional, pairs)", &model_path},
    {"column", 0, "NAME", "queries", "Target column (conditional)", &column},
    {"rows", 0, "LIST", "queries", "Rows of the table, such as 1,17, at most 8 (conditional)", &rows_text},
    {"given", 0, "LIST", "queries", "Given values, such as age=40,sex=F (conditional)", &given},
    {"columns", 0, "LIST", "queries", "Columns to show, 2 to 8 (pairs; default the first five)", &columns},
    {"draws", 0, "M", "queries", "Number of completed tables (imputed; default 5)", &draws_text},
    {"masks", 0, "TEXT", "images",
     "Masks, such as paper-mnist or 'mcar:0.2*2 + rect:0.1-1 + left' (masks; docs/images.md lists them)", &masks_text},
    {"seed", 0, "N", "images", "Seed of the masks (masks; default 1)", &seed_text, .more = true},
    {"title", 0, "TEXT", "output", "Title of the figure", &title},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *kind_name(int k);

static const char *const sections[] = {"input", "queries", "images", "machine", NULL};

static const cli_page page = {
    "plot",
    "KIND [FILE] -o PICTURE [OPTIONS]",
    "Draws a figure of a table, a model, a training run or images. KIND is\n"
    "  missing      the missing cells of a table\n"
    "  imputed      imputed values beside observed ones\n"
    "  conditional  the predictive distribution of a column, for rows or given values\n"
    "  pairs        pairs of columns: the table, and draws from the model\n"
    "  training     a training run, from the log of acflow fit --log\n"
    "  images       a sheet of images\n"
    "  masks        masks of hidden pixels, over images or alone",
    NULL,
    "  acflow plot missing patients.csv -o missing.png\n"
    "  acflow plot imputed patients.csv --model m.safetensors -o imputed.svg\n"
    "  acflow plot conditional --model m.safetensors --column bmi --given age=40,sex=F -o bmi.png\n",
    "  acflow plot conditional patients.csv --model m.safetensors --column bmi --rows 1,2,3 -o bmi.png\n"
    "  acflow plot training fit.log -o training.png\n"
    "  acflow plot images faces/ -o sheet.png\n"
    "  acflow plot masks --masks paper-celeba --image-size 64 -o masks.png\n"
    "  acflow plot masks faces/ --masks 'left + rect:0.1-0.5' -o faces.png\n",
    "docs/tables.md, docs/images.md",
    sections,
    kind_name};

/* The inputs of a figure. */
typedef struct scene {
    cli_job *job;
    const char *path;
    acf_model *m;
    acf_table *t;
    acf_session *s;
    acf_plot_column *texts;
    acf_plot_options o;
} scene;

/* How the columns' values are written: names of classes, dates. NULL without memory; the figure is drawn
 * nevertheless. */
static acf_plot_column *column_texts(const acf_table *t) {
    const int64_t D = acf_table_columns(t);
    acf_plot_column *list = calloc((size_t)D, sizeof *list);
    for (int64_t j = 0; list && j < D; j++) {
        const char *kind = acf_table_kind(t, j);
        const int32_t classes = acf_table_classes(t, j);
        if (kind && strcmp(kind, "date") == 0) list[j].seconds = 86400;
        if (kind && strcmp(kind, "time") == 0) list[j].seconds = 1;
        char **labels = classes ? calloc((size_t)classes, sizeof *labels) : NULL;
        for (int32_t k = 0; labels && k < classes; k++) {
            size_t needed = 0;
            acf_table_format(t, j, k, NULL, 0, &needed);
            if ((labels[k] = malloc(needed + 1))) acf_table_format(t, j, k, labels[k], needed + 1, NULL);
        }
        list[j].labels = (const char *const *)labels;
    }
    return list;
}

static void free_texts(const acf_table *t, acf_plot_column *list) {
    for (int64_t j = 0; list && j < acf_table_columns(t); j++) {
        for (int32_t k = 0; list[j].labels && k < acf_table_classes(t, j); k++) free((void *)list[j].labels[k]);
        free((void *)list[j].labels);
    }
    free(list);
}

static int open_scene(scene *v, bool model) {
    if (model && !model_path) return cli_usage("plot", "--model is required (make one with acflow fit)");
    if (!v->path) return cli_usage("plot", "a table is required");
    if (model && acf_model_load(model_path, v->job->o, &v->m) != ACF_OK) return cli_failed("plot");
    if (acf_table_read(v->path, v->m, v->job->o, &v->t) != ACF_OK) return cli_failed("plot");
    cli_say_warnings(v->t);
    v->o.columns = v->texts = column_texts(v->t);
    return v->m && acf_session_create(v->m, &v->s) != ACF_OK ? cli_failed("plot") : 0;
}

static size_t cells_of(const acf_table *t) { return (size_t)(acf_table_rows(t) * acf_table_columns(t)); }

static int plot_missing(scene *v) {
    int code = open_scene(v, false);
    return code ? code : acf_plot_missing(output, &v->o, v->t) == ACF_OK ? 0 : cli_failed("plot");
}

static int plot_imputed(scene *v) {
    long long draws = 5;
    if (draws_text && !cli_number("plot", "draws", draws_text, 1, 1000, &draws)) return 2;
    int code = open_scene(v, true);
    if (code) return code;
    const size_t size = cells_of(v->t);
    double *x = malloc((size_t)draws * size * sizeof *x);
    if (!x) return cli_no_memory("the draws");
    for (long long k = 0; !code && k < draws; k++)
        if (acf_session_draw(v->s, v->t, NULL, NULL, 1, (uint32_t)k, x + (size_t)k * size) != ACF_OK)
            code = cli_failed("plot");
    if (!code && acf_plot_imputed(output, &v->o, v->t, x, (int32_t)draws) != ACF_OK) code = cli_failed("plot");
    free(x);
    return code;
}

/* A table of the rows of the query, with their labels. */
static int pick_rows(scene *v, acf_table **out, char label[8][32], int *n) {
    const int64_t N = acf_table_rows(v->t), D = acf_table_columns(v->t);
    double *x = malloc(8 * (size_t)D * sizeof *x);
    int32_t *classes = malloc((size_t)D * sizeof *classes);
    const char **names = malloc((size_t)D * sizeof *names);
    int code = x && classes && names ? 0 : cli_no_memory("the rows");
    *n = 0;
    for (const char *p = rows_text; !code && *p;) {
        char *end;
        long long row = strtoll(p, &end, 10);
        if (end == p || (*end && *end != ',') || row < 1 || row > N)
            code = cli_usage("plot", "--rows is '%s'; expected row numbers from 1 to %lld with commas between",
                             rows_text, (long long)N);
        else if (*n == 8)
            code = cli_usage("plot", "--rows has more than 8 rows");
        else {
            memcpy(x + *n * D, acf_table_values(v->t) + (row - 1) * D, (size_t)D * sizeof *x);
            snprintf(label[(*n)++], 32, "row %lld", row);
            p = end + (*end == ',');
        }
    }
    for (int64_t j = 0; !code && j < D; j++)
        classes[j] = acf_table_classes(v->t, j), names[j] = acf_table_name(v->t, j);
    if (!code && acf_table_create(x, NULL, *n, D, classes, names, out) != ACF_OK) code = cli_failed("plot");
    free(x);
    free(classes);
    free(names);
    return code;
}

static int plot_conditional(scene *v) {
    acf_table *rows = NULL;
    char label[8][32];
    const char *labels[8];
    int n = 0, code = 0;
    int64_t j;
    if (!column) return cli_usage("plot", "--column is required: the target column");
    if (!rows_text == !given) return cli_usage("plot", "--rows or --given is required, and not both");
    if (rows_text) {
        code = open_scene(v, true);
        if (!code) code = pick_rows(v, &rows, label, &n);
    } else {
        if (!model_path) return cli_usage("plot", "--model is required (make one with acflow fit)");
        if (acf_model_load(model_path, v->job->o, &v->m) != ACF_OK || acf_session_create(v->m, &v->s) != ACF_OK ||
            acf_table_blank(v->m, 1, given, &rows) != ACF_OK)
            code = cli_failed("plot");
        cli_say_warnings(rows);
        snprintf(label[n++], 32, "%.31s", given);
    }
    for (int i = 0; i < n; i++) labels[i] = label[i];
    if (!code && acf_table_find(v->t ? v->t : rows, column, &j) != ACF_OK) code = cli_failed("plot");
    if (!code && given && !isnan(acf_table_values(rows)[j]))
        code = cli_usage("plot", "column '%s' is both given and the target; leave it out of --given", column);
    acf_plot_column *texts = !code && !v->t ? column_texts(rows) : NULL; /* without a table those of the model */
    if (texts) v->o.columns = texts;
    if (!code && acf_plot_conditional(output, &v->o, v->s, rows, j, labels) != ACF_OK) code = cli_failed("plot");
    if (texts) free_texts(rows, texts);
    acf_table_free(rows);
    return code;
}

static int plot_pairs(scene *v) {
    int64_t pick[8];
    int n = 0, code = open_scene(v, true);
    char name[1024];
    for (const char *p = columns; !code && p && *p;) {
        size_t length = strcspn(p, ",");
        if (n == 8 || length >= sizeof name) return cli_usage("plot", "--columns has more than 8 columns");
        memcpy(name, p, length), name[length] = 0;
        if (acf_table_find(v->t, name, &pick[n++]) != ACF_OK) code = cli_failed("plot");
        p += length + (p[length] == ',');
    }
    for (; !code && !columns && n < 5 && n < acf_table_columns(v->t); n++) pick[n] = n;
    if (code) return code;
    acf_table *blank = NULL; /* as many new rows as a picture can show legibly */
    const int64_t rows = acf_table_rows(v->t) < 1000 ? acf_table_rows(v->t) : 1000;
    double *x = malloc((size_t)(rows * acf_table_columns(v->t)) * sizeof *x);
    if (!x || acf_table_blank(v->m, rows, NULL, &blank) != ACF_OK ||
        acf_session_draw(v->s, blank, NULL, NULL, 1, 0, x) != ACF_OK ||
        acf_plot_pairs(output, &v->o, v->t, x, rows, pick, n) != ACF_OK)
        code = cli_failed("plot");
    acf_table_free(blank);
    free(x);
    return code;
}

/* The number of a "name" in a line of JSON that acflow wrote; NaN if it is null or absent. */
static double number_of(const char *line, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(line, key);
    char *end;
    if (!at) return (double)NAN;
    double v = strtod(at + strlen(key), &end);
    return end == at + strlen(key) ? (double)NAN : v;
}

static int plot_training(scene *v) {
    if (!v->path) return cli_usage("plot", "a training log is required (acflow fit --log writes one)");
    FILE *f = fopen(v->path, "r");
    char line[2048];
    acf_fit_report *list = NULL;
    size_t n = 0, cap = 0;
    int code = 0;
    if (!f) {
        cli_say(CLI_ERROR, "cannot open '%s': %s", v->path, strerror(errno));
        return acf_status_exit(ACF_EIO);
    }
    for (; !code && fgets(line, sizeof line, f); n++) {
        const double step = number_of(line, "step");
        if (!(step >= 1)) {
            cli_say(CLI_ERROR, "%s, line %zu: not a training step; expected a file from acflow fit --log", v->path,
                    n + 1);
            code = acf_status_exit(ACF_EDATA);
            break;
        }
        if (n == cap) {
            acf_fit_report *more = realloc(list, (cap = cap ? 2 * cap : 1024) * sizeof *list);
            if (!more)
                code = cli_no_memory("the steps");
            else
                list = more;
        }
        if (!code)
            list[n] = (acf_fit_report){.member = number_of(line, "member") > 1 ? 2 : 1,
                                       .pass = number_of(line, "pass") == 2 ? 2 : 1,
                                       .step = (int64_t)step,
                                       .loss = number_of(line, "loss"),
                                       .valid = number_of(line, "valid"),
                                       .best = number_of(line, "kept"),
                                       .validated = strstr(line, "\"validated\": true") != NULL};
    }
    fclose(f);
    if (!code && acf_plot_training(output, &v->o, list, (int64_t)n) != ACF_OK) code = cli_failed("plot");
    free(list);
    return code;
}

/* The images of the file; prints which were left out. */
static int open_images(scene *v, acf_images **out) {
    if (acf_images_open(v->path, NULL, v->job->o, out) != ACF_OK) return cli_failed("plot");
    if (*acf_images_note(*out)) cli_say(CLI_WARN, "%s", acf_images_note(*out));
    return 0;
}

static int plot_images(scene *v) {
    acf_images *im = NULL;
    if (!v->path) return cli_usage("plot", "images are required: a folder or a file");
    int code = open_images(v, &im);
    if (!code && acf_plot_images(output, &v->o, im) != ACF_OK) code = cli_failed("plot");
    acf_images_free(im);
    return code;
}

/* Over the first images of a folder or file; without one, of the size in --image-size, or 32 x 32. */
static int plot_masks(scene *v) {
    acf_images *im = NULL;
    long long seed = 1, w = 32, h = 32;
    char size[64], rest;
    if (!masks_text) return cli_usage("plot", "--masks is required, such as paper-mnist");
    if (seed_text && !cli_number("plot", "seed", seed_text, 0, 9007199254740992, &seed)) return 2;
    int code = v->path ? open_images(v, &im) : 0;
    if (code) return code;
    if (!im && acf_options_get(v->job->o, "image-size", size, sizeof size, NULL) == ACF_OK && *size) {
        if (sscanf(size, "%lld%c", &w, &rest) == 1)
            h = w;
        else if (sscanf(size, "%lldx%lld%c", &w, &h, &rest) != 2)
            return cli_usage("plot",
                             "--image-size is '%s'; expected width and height in pixels, such as 64x48, or one number",
                             size);
    }
    if (acf_plot_masks(output, &v->o, masks_text, im, w, h, (uint64_t)seed) != ACF_OK) code = cli_failed("plot");
    acf_images_free(im);
    return code;
}

static const struct {
    const char *name;
    int (*plot)(scene *v);
} kinds[] = {{"missing", plot_missing}, {"imputed", plot_imputed},   {"conditional", plot_conditional},
             {"pairs", plot_pairs},     {"training", plot_training}, {"images", plot_images},
             {"masks", plot_masks}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *kind_name(int k) { return k < KINDS ? kinds[k].name : NULL; }
#define KINDS_LISTED "missing, imputed, conditional, pairs, training, images or masks"

static int draw(cli_job *job, int argc, char **argv) {
    scene v = {.job = job, .path = argc > 1 ? argv[1] : NULL, .o = {.title = title}};
    int code = -1;
    for (int i = 0; i < KINDS; i++)
        if (strcmp(argv[0], kinds[i].name) == 0) code = kinds[i].plot(&v);
    if (code < 0) {
        const char *names[KINDS];
        for (int i = 0; i < KINDS; i++) names[i] = kinds[i].name;
        int near = cli_nearest(argv[0], names, KINDS);
        code = near < 0 ? cli_usage("plot", "unknown kind '%s'; expected " KINDS_LISTED, argv[0])
                        : cli_usage("plot", "unknown kind '%s'; did you mean '%s'?", argv[0], names[near]);
    }
    if (v.t) free_texts(v.t, v.texts);
    acf_session_free(v.s);
    acf_table_free(v.t);
    acf_model_free(v.m);
    return code;
}

static int check(const cli_job *job, const char *path) {
    const cli_file files[] = {
        {CLI_READS, "the input", path}, {CLI_READS, "--model", model_path}, {CLI_WRITES, "-o", output}};
    return cli_check_files(job, files, 3);
}

static int run(int argc, char **argv) {
    cli_job job;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest < 1)
        code = cli_usage("plot", "a kind of figure is required: " KINDS_LISTED);
    else if (job.n_rest > 2)
        code = cli_usage("plot", "plot takes one input, but there is also '%s'", argv[2]);
    else if (!output)
        code = cli_usage("plot", "-o is required: FILE.png or FILE.svg");
    else if ((code = check(&job, job.n_rest > 1 ? argv[1] : NULL)) == 0)
        code = draw(&job, job.n_rest, argv);
    cli_job_close(&job);
    return code;
}

const cli_command cli_plot = {"plot", "draw figures of tables, models, training and images", run, &page, flags, FLAGS};
